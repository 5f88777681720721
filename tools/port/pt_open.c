/* SPDX-License-Identifier: BSD-2-Clause */
/* The port: opened, its link brought up, served. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pt.h"
#include "u_time.h"

#define STEP_NS 5000000
#define EMULATED "emu"
#define CABLE_MAX 40u
#define SEED 1

/* Takes `fd`. */
static int open_adapter(struct pt_port *t, int fd)
{
	struct port_cdev_cfg cfg = { .port = { .name = "port" }, .fd = fd, .agent_irq_fd = -1 };
	int agent_irq = -1, err;

	t->adapter = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	cfg.irq_fd = -1;
	err = t->adapter < 0 ? -errno : port_cdev_irq_make(fd, &cfg.irq_fd);
	if (err == 0)
		err = port_cdev_irq_make(fd, &agent_irq);
	if (err != 0) {
		if (cfg.irq_fd >= 0)
			close(cfg.irq_fd);
		close(fd);
		return err;
	}
	err = port_emu_host_create_on(cfg.irq_fd, agent_irq, &t->host);
	if (err != 0) {
		close(fd);
		return err;
	}
	cfg.irq = port_emu_host_irq(t->host);
	return port_cdev_create(&cfg, &t->port);
}

/* Takes the kind from the device, up to the name of its cable. */
static int kind_of(const struct pt_port *t, char kind[PORT_KIND_MAX])
{
	size_t n = (size_t)(t->cable - 1 - t->device);

	if (n >= PORT_KIND_MAX)
		return -EINVAL;
	memcpy(kind, t->device, n);
	kind[n] = '\0';
	return port_kind_check(kind);
}

static int open_emulated(struct pt_port *t, const char *kind)
{
	struct port_emu_cfg cfg = { .name = "port", .index = 1 };
	const char *faults = getenv("VIADUCT_FAULT");
	int err = port_emu_host_create(&t->host);

	if (err == 0)
		err = port_emu_create(t->host, &cfg, &t->port);
	return err != 0
		       ? err
		       : port_decorate(t->port, kind, faults != NULL ? faults : "", SEED, &t->port);
}

bool pt_is_kind(const char *device)
{
	return strcmp(device, EMULATED) == 0 ||
	       (strncmp(device, EMULATED "+", strlen(EMULATED "+")) == 0 &&
		port_kind_check(device) == 0);
}

/* Does it begin as an emulated port?  The name of its cable follows the last colon. */
static bool is_emulated(const char *device, const char **cable_out)
{
	size_t n = strlen(EMULATED);

	if (strncmp(device, EMULATED, n) != 0 || (device[n] != ':' && device[n] != '+') ||
	    strrchr(device, ':') == NULL)
		return false;
	*cable_out = strrchr(device, ':') + 1;
	return true;
}

static int open_device(struct pt_port *t)
{
	char text[U_FD_ERROR], kind[PORT_KIND_MAX];
	int fd, err;

	if (is_emulated(t->device, &t->cable)) {
		if (t->cable[0] == '\0' || strlen(t->cable) > CABLE_MAX)
			return pt_usage("the name of a cable has 1 to %u characters, '%s' has not",
					CABLE_MAX, t->cable);
		if (kind_of(t, kind) != 0)
			return pt_usage(
				"'%s' does not begin with a kind of emulated ports: emu, then +strict, "
				"+fault, +model[:PROFILE[:DILATION]]",
				t->device);
		err = open_emulated(t, kind);
		return err == 0 ? EXIT_OK : pt_fail("making an emulated port: %s", pt_error(err));
	}
	if (t->device[0] != '/')
		return pt_usage("'%s' is no DEVICE: /dev/viaductN of an adapter (vi_port list), or "
				"emu:NAME; ports of emulated hosts are shown by vi_fabric status, "
				"vi_info and vi_stat",
				t->device);
	err = port_cdev_try(t->device, &fd);
	if (err == -EBUSY)
		return pt_fail(
			"%s: an agent or another vi_port has it, and there can be one: vi_info "
			"shows what an agent sees; or stop it (systemctl stop viaductd)",
			t->device);
	if (err != 0)
		return pt_fail("%s cannot be used as an adapter: %s", t->device,
			       port_cdev_reason(err, text));
	err = open_adapter(t, fd);
	return err == 0 ? EXIT_OK : pt_fail("%s: %s", t->device, pt_error(err));
}

int pt_open(struct pt_port *t, const char *device, double timeout)
{
	*t = (struct pt_port){
		.device = device, .adapter = -1, .timeout = timeout, .deadline = U_NEVER
	};
	if (timeout > 0)
		t->deadline = u_now_ns() + (int64_t)(timeout * 1e9);
	return open_device(t);
}

void pt_close(struct pt_port *t)
{
	port_close(t->port);
	port_emu_host_destroy(t->host);
	if (t->adapter >= 0)
		close(t->adapter);
}

bool pt_is_up(struct pt_port *t, uint32_t *generation_out)
{
	return port_link_state(t->port, generation_out) == PORT_LINK_UP;
}

uint32_t pt_all_bits(const struct pt_port *t)
{
	uint32_t n = t->port->limits.db_bits;

	return n >= 32 ? UINT32_MAX : (UINT32_C(1) << n) - 1;
}

int pt_step(struct pt_port *t, uint32_t ticket)
{
	int64_t left = u_time_left(t->deadline);

	if (left == 0)
		return -ETIMEDOUT;
	port_service(t->port);
	port_irq_wait(t->port->irq, ticket, pt_all_bits(t),
		      left < 0 || left > STEP_NS ? STEP_NS : left);
	return 0;
}

static int plug(struct pt_port *t)
{
	int fd, err = pt_cable(t->cable, t->deadline, &fd);

	return err == 0 ? port_emu_plug(t->port, fd) : err;
}

int pt_replug(struct pt_port *t)
{
	return t->cable != NULL && !port_emu_plugged(t->port) ? plug(t) : 0;
}

static int tell_unplugged(const struct pt_port *t, int err)
{
	if (err == -ETIMEDOUT)
		return pt_fail("%s: no other vi_port has named this cable in %g s; start one",
			       t->device, t->timeout);
	if (err == -EPERM)
		return pt_fail("%s: the process at its other end is another user's; choose "
			       "another name",
			       t->device);
	return pt_fail("%s: %s", t->device, pt_error(err));
}

int pt_enable(struct pt_port *t)
{
	int err = port_link_enable(t->port);

	if (err != 0)
		return pt_fail("%s: enabling its link: %s", t->device, pt_error(err));
	err = pt_replug(t);
	return err == 0 ? EXIT_OK : tell_unplugged(t, err);
}

/* Tells what is missing: the module's link is up before tables have come through the windows. */
static int tell_down(const struct pt_port *t)
{
	struct port_cdev_info info;

	if (t->adapter < 0)
		return pt_fail("%s: the link did not come up in %g s; did the other vi_port end?",
			       t->device, t->timeout);
	if (port_cdev_ask(t->adapter, &info) != 0)
		return pt_fail("%s: the adapter was removed", t->device);
	if (!info.up)
		return pt_fail(
			"%s: the link did not come up in %g s; is the cable in, and does the "
			"other host run an agent or vi_port on it?",
			t->device, t->timeout);
	return pt_fail(
		"%s: the adapter's link is up, but nothing arrives through window 0 in %g s; "
		"see the kernel's logs of both hosts for its memory and for faults of the "
		"IOMMU",
		t->device, t->timeout);
}

int pt_up(struct pt_port *t)
{
	int rc = pt_enable(t);

	while (rc == EXIT_OK && !pt_is_up(t, NULL)) {
		rc = pt_enable(t);
		if (rc == EXIT_OK && pt_step(t, port_irq_ticket(t->port->irq)) != 0)
			rc = tell_down(t);
	}
	return rc;
}
