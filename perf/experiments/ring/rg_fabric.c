/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port_fault.h"
#include "rg.h"
#include "u_time.h"

#define PATIENCE_MS 20000

static int port_open(struct rg_host *h, const char *name, uint32_t index, const char *kind,
		     struct port **out)
{
	struct port_emu_cfg cfg = { .index = index };
	struct port *base;
	int err;

	snprintf(cfg.name, sizeof(cfg.name), "%s", name);
	err = port_emu_create(h->emu, &cfg, &base);
	if (err != 0)
		return err;
	err = port_decorate(base, kind, "", 0, out);
	if (err != 0)
		port_close(base);
	return err;
}

static int host_open(struct rg_host *h, const char *left, const char *right)
{
	int err = port_emu_host_create(&h->emu);

	if (err == 0)
		err = port_open(h, "left", 1, left, &h->left);
	if (err == 0)
		err = port_open(h, "right", 2, right, &h->right);
	return err;
}

static int plug(struct port *a, struct port *b)
{
	int pair[2];
	int err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	err = port_emu_plug(a, pair[0]);
	if (err != 0) {
		close(pair[1]);
		return err;
	}
	err = port_emu_plug(b, pair[1]);
	if (err == 0)
		err = port_link_enable(a);
	return err == 0 ? port_link_enable(b) : err;
}

static bool link_up(struct port *a, struct port *b)
{
	port_service(a);
	port_service(b);
	return port_link_state(a, NULL) == PORT_LINK_UP && port_link_state(b, NULL) == PORT_LINK_UP;
}

static int join(struct port *a, struct port *b)
{
	int64_t deadline = u_deadline_ms(PATIENCE_MS);
	int err = plug(a, b);

	while (err == 0 && !link_up(a, b)) {
		if (u_now_ns() > deadline)
			err = -ETIMEDOUT;
		u_nap_ns(100000);
	}
	return err;
}

int rg_fabric_open(struct rg_fabric *f, unsigned int hosts, const char (*kinds)[PORT_KIND_MAX])
{
	int err = 0;

	memset(f, 0, sizeof(*f));
	f->hosts = hosts;
	for (unsigned int i = 0; i < hosts && err == 0; i++)
		err = host_open(&f->host[i], kinds[(i + hosts - 1) % hosts], kinds[i]);
	for (unsigned int i = 0; i < hosts && err == 0; i++)
		err = join(f->host[i].right, f->host[(i + 1) % hosts].left);
	if (err != 0) {
		ring_print_error("a ring of %u hosts with ports %s did not come up: %s", hosts,
				 kinds[0], strerror(-err));
		rg_fabric_close(f);
	}
	return err;
}

void rg_fabric_close(struct rg_fabric *f)
{
	for (unsigned int i = 0; i < f->hosts; i++) {
		port_close(f->host[i].left);
		port_close(f->host[i].right);
		port_emu_host_destroy(f->host[i].emu);
	}
}
