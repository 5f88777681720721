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
 * - A slice lies behind one adapter, so only slices of this port itself can be shared.
 */
#ifndef PORT_CDEV_H
#define PORT_CDEV_H

#include "port_cdev_device.h"
#include "port_emu_cfg.h"

struct port_cdev_cfg {
	struct port_emu_cfg port; /* bits, scratchpads and window: the most to be used; 0: all */
	int fd;		      /* from port_cdev_open(); owned by the port, and closed on failure */
	int irq_fd;	      /* interrupt object of its doorbells, */
	int agent_irq_fd;     /* and of those in agent_bits; both stay the caller's */
	struct port_irq *irq; /* interrupts of irq_fd */
};

/*
 * Makes a port whose link is down until both sides have enabled it.  cfg->fd is the port's, or closed on
 * failure.  0 or -errno.
 */
int port_cdev_create(const struct port_cdev_cfg *cfg, struct port **out);

#endif
