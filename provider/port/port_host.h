/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ports of one host, of whatever kind: `self`, which is always emulated, and those to its
 * neighbours, which are emulated (port_emu.h) or adapters (port_cdev.h).
 */
#ifndef PORT_HOST_H
#define PORT_HOST_H

#include "port_emu.h"

struct port_host;

struct port_host_cfg {
	const char *kind;	  /* one that port_kind_check() accepts */
	const char *adapters;	  /* cdev: NAME=PATH,...; "": /dev/viaduct0 and so on, in order */
	const char *const *names; /* of the ports, by index; the first is `self` */
	uint32_t ports;
};

/*
 * Makes the interrupts of the host, and opens the adapters of kind cdev.  0 or -errno; the log says why an
 * adapter cannot be opened.
 */
int port_host_create(const struct port_host_cfg *cfg, struct port_host **out);
/* The caller has closed its ports before.  Accepts NULL. */
void port_host_destroy(struct port_host *h);

/*
 * Makes the port of index cfg->index, once, without decorators; 0 is `self`.  A port of an adapter has no more
 * doorbell bits and scratchpads than `cfg` says, and no more than the adapter has.  0 or -errno; -ENODEV: there
 * is no such adapter, or it was used up.
 */
int port_host_port(struct port_host *h, const struct port_emu_cfg *cfg, struct port **out);

/* Do neighbours plug cables?  Adapters have wires, whose state the kernel reports. */
bool port_host_has_cables(const struct port_host *h);
/* Returns the number of doorbell bits that every port of the host can have. */
uint32_t port_host_db_bits(const struct port_host *h);

/* Finds the folder in sysfs of the adapter of the port of that index.  False: it is emulated. */
bool port_host_adapter(const struct port_host *h, uint32_t index, char *folder, size_t size);

struct port_irq *port_host_irq(struct port_host *h);
/* Returns the interrupts of the agents' doorbell bits only. */
struct port_irq *port_host_agent_irq(struct port_host *h);
/* Return descriptors for port_irq_open(), which stay the host's. */
int port_host_doorbells_fd(const struct port_host *h);
int port_host_status_fd(const struct port_host *h);

/* Is `text` a list of adapters, NAME=PATH,..., or ""?  0 or -EINVAL. */
int port_adapters_check(const char *text);

#endif
