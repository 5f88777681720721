/* SPDX-License-Identifier: BSD-2-Clause */
/* The character device of an adapter: opening it, and the properties of the adapter. */
#ifndef PORT_CDEV_DEVICE_H
#define PORT_CDEV_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "u_fd.h"

/* Opens an adapter as its agent.  0 or -errno; the log says why it failed. */
int port_cdev_open(const char *path, int *fd_out);
/* As port_cdev_open(), without a line in the log; port_cdev_reason() says what its error means. */
int port_cdev_try(const char *path, int *fd_out);

/* Returns what a negative error means, for a log line, as a constant or in `text`. */
const char *port_cdev_reason(int err, char text[U_FD_ERROR]);

#define PORT_CDEV_WINDOWS 8

/* The properties of an adapter, and its link as the module sees it. */
struct port_cdev_info {
	uint32_t windows;
	struct {
		uint64_t inbound, outbound; /* bytes; inbound 0 until the link was up once */
	} window[PORT_CDEV_WINDOWS];
	uint64_t db_bits; /* a mask */
	uint32_t spads;
	uint32_t generation;
	bool up;
};

/* Reads them from the descriptor of an adapter of this version, which is not checked.  0 or -errno. */
int port_cdev_ask(int fd, struct port_cdev_info *out);

/* Makes an interrupt object of viaduct.ko by the descriptor of an adapter.  Its own is the caller's.  0 or -errno. */
int port_cdev_irq_make(int fd, int *irq_fd_out);
/*
 * Returns the number of doorbell bits of an adapter, at most PORT_DB_MAX; 0 when the descriptor is
 * not of an adapter.
 */
uint32_t port_cdev_db_bits(int fd);

#endif
