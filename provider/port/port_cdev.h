/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cdev: ports of NTB adapters, over the character devices of viaduct.ko (docs/kernel-module.md).
 *
 * - Stores go into a write-combining mapping, so each fence empties the processor's buffers, and
 *   each flush reads across the link, in the kernel.
 * - Doorbell counters and the state of the link are in a page of the module, which programs cannot
 *   write.  Threads sleep on interrupt objects.
 * - Agents say which slices they offer in a table, which lies at the beginning of the first window
 *   of each and which only the neighbour's agent writes.  It holds a handshake, too: a port says
 *   that its link is up when both tables are in place and each agent has seen the other's nonce.
 * - A slice lies behind one adapter, so only slices of this very port can be shared.
 */
#ifndef PORT_CDEV_H
#define PORT_CDEV_H

#include "port_emu.h"
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

struct port_cdev_cfg {
	struct port_emu_cfg port; /* bits, scratchpads and window: the most to be used; 0: all */
	int fd;			  /* of port_cdev_open(); taken, also on failure */
	int irq_fd;		  /* where its doorbells interrupt, */
	int agent_irq_fd;	  /* but for those of agent_bits; both stay the caller's */
	struct port_irq *irq;	  /* as irq_fd */
};

/* A port whose link is down until both sides enabled it. */
int port_cdev_create(const struct port_cdev_cfg *cfg, struct port **out);

#endif
