/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * emu: the reference implementation of the port contract, in shared memory.
 *
 * - A host has three pages of registers, each a sealed memfd.  *Doorbells*: an interrupt word and
 *   for each port its doorbell counters; the processes of the host and of its neighbours map it.
 *   *Agents' registers*: an interrupt word and counters for the doorbell bits that only agents ring
 *   (agent_bits), and the scratchpads; agents of neighbours map it, other processes do not get it.
 *   *Status*: the state of each link; the host's processes map it and cannot store there.  So no
 *   process can change the state that others rely on.
 * - Waiters sleep on an interrupt word with FUTEX_WAIT_BITSET, doorbell bit n being futex
 *   bit n.  A process that has the doorbells can make rings get lost: a thread that
 *   sleeps polls again after a bounded time, as for any doorbell.
 * - A doorbell bit is a counter, so that any number of processes of a host can each see which bits
 *   rang since they last cleared them.
 * - A slice is a sealed memfd of its own, mapped only by processes that hold its descriptor.
 * - A cable (a SOCK_SEQPACKET Unix socket between the two agents) stands for the link: doorbells,
 *   registers and slice descriptors travel over it, and when it hangs up the link goes down.
 */
#ifndef PORT_EMU_H
#define PORT_EMU_H

#include "port.h"
#include "port_emu_cfg.h"
#include "port_emu_regs.h"

/*
 * Makes the port that joins the processes of one host; its peer is itself, its link always up.  `host` outlives
 * it.  0 or -errno.
 */
int port_emu_self_create(struct port_emu_host *host, const struct port_emu_cfg *cfg,
			 struct port **out);

/*
 * Makes a port with no cable yet: its link is down until one is plugged and both sides enable it.  `host`
 * outlives it.  0 or -errno.
 */
int port_emu_create(struct port_emu_host *host, const struct port_emu_cfg *cfg, struct port **out);

/*
 * Plugs the cable: a connected SOCK_SEQPACKET socket whose other end is plugged into another emu port.  Takes
 * ownership of the socket, and closes it on failure; -EOPNOTSUPP: this port has no cable.  Replaces a cable that was
 * there.  `p` may be decorated.  The far side is hostile: its pages and slice descriptors are checked (size, seals)
 * before they are mapped.  A hang-up unplugs by itself (link down).
 */
int port_emu_plug(struct port *p, int cable_fd);

/* Unplugs the cable, if there is one: the link is down.  `p` may be decorated or of a kind without cables. */
void port_emu_unplug(struct port *p);

/* Is a cable plugged?  That does not say that the link is up.  False for a kind without cables. */
bool port_emu_plugged(const struct port *p);

#endif
