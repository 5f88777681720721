/* SPDX-License-Identifier: BSD-2-Clause */
#include "port_host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "port_cdev.h"
#include "u_fd.h"
#include "u_log.h"

#define PATH_BYTES 108

struct port_host {
	struct port_emu_host *emu;
	bool cdev;
	int fd[PORT_PER_HOST];	     /* of adapters whose port is not made yet; -1: none */
	int irq_fd, agent_irq_fd;    /* taken by the emu host; -1 for emu */
	dev_t device[PORT_PER_HOST]; /* of adapters */
	uint32_t db_bits;
};

/*
 * Returns the length of the NAME=PATH at the beginning of the text, and that of NAME in *name_len_out; 0 when
 * there is none.
 */
static size_t adapter_word(const char *text, size_t *name_len_out)
{
	size_t len = strcspn(text, ","), name = strcspn(text, "=");

	if (name == 0 || name >= PORT_NAME_MAX || name + 1 >= len || len - name - 1 >= PATH_BYTES ||
	    text[name + 1] != '/')
		return 0;
	*name_len_out = name;
	return len;
}

int port_adapters_check(const char *text)
{
	size_t len, name;

	while (text[0] != '\0') {
		len = adapter_word(text, &name);
		if (len == 0 || (text[len] == ',' && text[len + 1] == '\0'))
			return -EINVAL;
		text += len + (text[len] == ',');
	}
	return 0;
}

/*
 * Finds the device of a port: in the list, or, when that is empty, /dev/viaduct0 for the first, and so on.  0, -EINVAL:
 * it is no list; -ENODEV, logged: it does not have the port.
 */
static int adapter_path(const struct port_host_cfg *cfg, uint32_t index, char path[PATH_BYTES])
{
	const char *text = cfg->adapters;
	const char *want = cfg->names[index];
	size_t len, name = 0;

	if (text == NULL || text[0] == '\0') {
		snprintf(path, PATH_BYTES, "/dev/viaduct%u", index - 1);
		return 0;
	}
	for (; text[0] != '\0'; text += len + (text[len] == ',')) {
		len = adapter_word(text, &name);
		if (len == 0)
			return -EINVAL;
		if (strlen(want) == name && strncmp(text, want, name) == 0) {
			snprintf(path, PATH_BYTES, "%.*s", (int)(len - name - 1), text + name + 1);
			return 0;
		}
	}
	u_error("port",
		"an adapter of port %s was sought, \"%s\" names none; write NAME=PATH for each "
		"port of this host, with commas between",
		want, cfg->adapters);
	return -ENODEV;
}

/*
 * Opens the adapters of all ports, and makes the interrupt objects.  0; or -errno, and what was opened stays in
 * `h`.
 */
static int adapters_open(struct port_host *h, const struct port_host_cfg *cfg)
{
	char path[PATH_BYTES];
	struct stat stat;
	uint32_t bits;
	int err = 0;

	for (uint32_t i = 1; i < cfg->ports && err == 0; i++) {
		err = adapter_path(cfg, i, path);
		if (err == 0)
			err = port_cdev_open(path, &h->fd[i]);
		if (err != 0)
			break;
		h->device[i] = fstat(h->fd[i], &stat) == 0 ? stat.st_rdev : 0;
		bits = port_cdev_db_bits(h->fd[i]);
		h->db_bits = bits < h->db_bits ? bits : h->db_bits;
	}
	if (err == 0 && cfg->ports > 1)
		err = port_cdev_irq_make(h->fd[1], &h->irq_fd);
	if (err == 0 && cfg->ports > 1)
		err = port_cdev_irq_make(h->fd[1], &h->agent_irq_fd);
	return err;
}

int port_host_create(const struct port_host_cfg *cfg, struct port_host **out)
{
	struct port_host *h = calloc(1, sizeof(*h));
	int err = 0;

	if (h == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < PORT_PER_HOST; i++)
		h->fd[i] = -1;
	h->irq_fd = h->agent_irq_fd = -1;
	h->db_bits = PORT_DB_MAX;
	h->cdev = strncmp(cfg->kind, "cdev", 4) == 0;
	if (h->cdev)
		err = cfg->ports <= PORT_PER_HOST ? adapters_open(h, cfg) : -EINVAL;
	if (err == 0) {
		err = port_emu_host_create_on(h->irq_fd, h->agent_irq_fd, &h->emu);
		if (err != 0)
			h->irq_fd = h->agent_irq_fd = -1; /* the host owns them now */
	}
	if (err != 0) {
		port_host_destroy(h);
		return err;
	}
	*out = h;
	return 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void port_host_destroy(struct port_host *h)
{
	if (h == NULL)
		return;
	if (h->emu != NULL) {
		port_emu_host_destroy(h->emu);
	} else {
		close_fd(h->irq_fd);
		close_fd(h->agent_irq_fd);
	}
	for (unsigned int i = 0; i < PORT_PER_HOST; i++)
		close_fd(h->fd[i]);
	free(h);
}

int port_host_port(struct port_host *h, const struct port_emu_cfg *cfg, struct port **out)
{
	struct port_cdev_cfg cc = { .port = *cfg,
				    .irq_fd = h->irq_fd,
				    .agent_irq_fd = h->agent_irq_fd,
				    .irq = port_emu_host_irq(h->emu) };

	if (cfg->index == 0)
		return port_emu_self_create(h->emu, cfg, out);
	if (!h->cdev)
		return port_emu_create(h->emu, cfg, out);
	if (cfg->index >= PORT_PER_HOST || h->fd[cfg->index] < 0)
		return -ENODEV;
	cc.fd = h->fd[cfg->index];
	h->fd[cfg->index] = -1;
	return port_cdev_create(&cc, out);
}

bool port_host_has_cables(const struct port_host *h)
{
	return !h->cdev;
}

uint32_t port_host_db_bits(const struct port_host *h)
{
	return h->db_bits;
}

bool port_host_adapter(const struct port_host *h, uint32_t index, char *folder, size_t size)
{
	dev_t device = index < PORT_PER_HOST ? h->device[index] : 0;

	/* The device of an adapter is that of the NTB core, whose parent is the one on the bus. */
	if (device != 0)
		snprintf(folder, size, "/sys/dev/char/%u:%u/device/..", major(device),
			 minor(device));
	return device != 0;
}

struct port_irq *port_host_irq(struct port_host *h)
{
	return port_emu_host_irq(h->emu);
}

struct port_irq *port_host_agent_irq(struct port_host *h)
{
	return port_emu_host_agent_irq(h->emu);
}

int port_host_doorbells_fd(const struct port_host *h)
{
	return port_emu_host_doorbells_fd(h->emu);
}

int port_host_status_fd(const struct port_host *h)
{
	return port_emu_host_status_fd(h->emu);
}
