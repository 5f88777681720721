/* SPDX-License-Identifier: BSD-2-Clause */
/* The character device of an adapter: opening it, and what the adapter has. */
#ifndef PORT_CDEV_DEVICE_H
#define PORT_CDEV_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "u_fd.h"

/* An adapter that this process has, as its agent, and its interrupt objects.  The log says why not. */
int port_cdev_open(const char *path, int *fd_out);
/* The same without a line in the log; the text says what an error of it means. */
int port_cdev_try(const char *path, int *fd_out);
const char *port_cdev_reason(int err, char text[U_FD_ERROR]);

#define PORT_CDEV_WINDOWS 8

/* What the adapter has, and its link as the module sees it. */
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
int port_cdev_ask(int fd, struct port_cdev_info *out);

int port_cdev_irq_make(int fd, int *irq_fd_out);
/* Doorbell bits of an adapter, at most PORT_DB_MAX; 0 when the descriptor is none. */
uint32_t port_cdev_db_bits(int fd);

#endif
