/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * emu: the reference implementation of the port contract, in shared memory.
 *
 * - A host has three pages of registers, each a sealed memfd.  *Doorbells*: an interrupt word and
 *   for each port its doorbell counters; the processes of the host and of its neighbours map it.
 *   *Agents' registers*: the same for the doorbell bits that only agents ring (agent_bits), and the
 *   scratchpads; agents of neighbours map it, no process gets it.  *Status*: the state of each
 *   link; the host's processes map it and cannot store there.  So no process can change the state
 *   that others rely on.
 * - Waiters sleep on an interrupt word with FUTEX_WAIT_BITSET, doorbell bit n being futex
 *   bit n.  A process that has the doorbells can make rings get lost: a thread that
 *   sleeps polls again after a bounded time, as for any doorbell.
 * - A doorbell bit is a counter, so that any number of processes of a host can each see which bits
 *   rang since they last cleared them.
 * - A slice is a sealed memfd of its own, mapped only by processes that hold its descriptor.
 * - A cable (a SOCK_SEQPACKET Unix socket between the two agents) stands for the
 *   link: doorbells, registers and slice descriptors travel over it, and its hang-up
 *   is the link going down.
 */
#ifndef PORT_EMU_H
#define PORT_EMU_H

#include "port.h"

struct port_emu_host;

/* The registers of one emulated host; shared by all its ports.  Interrupts included. */
int port_emu_host_create(struct port_emu_host **out);
/*
 * As above, with interrupt objects of viaduct.ko (port_cdev.h) in the place of doorbells and of the agents'
 * interrupt word.  Takes the descriptors, also when it fails.
 */
int port_emu_host_create_on(int irq_fd, int agent_irq_fd, struct port_emu_host **out);
void port_emu_host_destroy(struct port_emu_host *host);
struct port_irq *port_emu_host_irq(struct port_emu_host *host);
/* Where the agents' doorbell bits interrupt, and no others. */
struct port_irq *port_emu_host_agent_irq(struct port_emu_host *host);
/* Borrowed; for port_irq_open(). */
int port_emu_host_doorbells_fd(const struct port_emu_host *host);
int port_emu_host_status_fd(const struct port_emu_host *host);

/* A client's view of the interrupts of a host.  The descriptors stay the caller's. */
int port_irq_open(int doorbells_fd, int status_fd, struct port_irq **out);
void port_irq_close(struct port_irq *irq);

struct port_emu_cfg {
	char name[PORT_NAME_MAX];
	uint32_t index;	       /* of the port on its host, < PORT_PER_HOST; self is 0 */
	uint32_t db_bits;      /* 1..PORT_DB_MAX; 0: 16 */
	uint32_t spads;	       /* 1..PORT_SPAD_MAX; 0: 8 */
	uint64_t window_bytes; /* 0: 4 GiB */
	/*
	 * Doorbell bits that only agents ring and read.  A process that rings or clears them
	 * reaches no other.
	 */
	uint32_t agent_bits;
};

/* The port that joins the processes of one host; its peer is itself, its link always up. */
int port_emu_self_create(struct port_emu_host *host, const struct port_emu_cfg *cfg,
			 struct port **out);

/* A port with no cable yet: link down until one is plugged and both sides enable it. */
int port_emu_create(struct port_emu_host *host, const struct port_emu_cfg *cfg, struct port **out);

/*
 * Plugs the cable: a connected SOCK_SEQPACKET socket whose other end is plugged
 * into another emu port.  Takes ownership, also when it fails.  Replaces a cable
 * that was there.  `p` may be decorated.
 * The far side is hostile: its pages and slice descriptors are checked
 * (size, seals) before they are mapped.  A hang-up unplugs by itself (link down).
 */
int port_emu_plug(struct port *p, int cable_fd);
void port_emu_unplug(struct port *p);
bool port_emu_plugged(const struct port *p);

#endif
