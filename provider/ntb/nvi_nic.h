/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open NIC: the state that its channels, threads and connections share, and its views of ports.
 *
 * Locks, in order: nic->mem_lock, vi->rx_lock, vi->tx_lock, nic->chan_lock, nic->ctl_lock.
 */
#ifndef NVI_NIC_H
#define NVI_NIC_H

#include <pthread.h>
#include <stdatomic.h>

#include "nvi_out.h"
#include "port.h"
#include "u_lock.h"
#include "u_log.h"
#include "vi_core.h"
#include "w_ctl.h"

#define NVI_CONN_BUCKETS 256u

struct nvi_chan;
struct nvi_given;
struct nvi_req;
struct nvi_window;

/* A view of a port; a new one replaces it when its link comes back. */
struct nvi_port {
	struct port *port;
	_Atomic uint32_t users; /* nic->ports and channels */
	/* link generation last seen, 0 when it was down; under chan_lock */
	uint32_t generation;
};

enum nvi_deep {
	NVI_AWAKE,
	NVI_DEEP,   /* asleep on the doorbell, all channels armed */
	NVI_PARKED, /* asleep while a thread of the application does its work */
};

struct nvi_nic {
	struct vi_nic *vi_nic;
	struct w_welcome welcome;
	struct port_irq *irq;
	uint32_t db_mask;
	struct nvi_port *ports[PORT_PER_HOST]; /* under chan_lock; writer: the control thread */

	/* Channels that are connected. */
	_Alignas(U_LINE_PAIR) struct u_lock chan_lock;
	struct nvi_chan **chans;
	uint32_t chan_count, chan_cap;
	_Atomic uint32_t polled;      /* how many of these are polled */
	_Atomic uint32_t ticket_seen; /* the ticket when a poll last checked doorbells */

	/* The engine, which is the transfer thread, and the control thread. */
	pthread_t engine, ctl;
	_Atomic uint32_t stop;
	_Atomic uint32_t
		sleepers; /* application threads in nvi_sleep(): they do the engine's work */
	_Atomic uint32_t engine_deep; /* enum nvi_deep: the engine sleeps, kick it for new work */
	_Atomic uint32_t engine_park; /* futex: incremented to wake a parked engine */
	_Atomic uint64_t rung,
		cleared; /* doorbells rung at peers, and how often this process cleared its own */

	/* Window memory of this process, and the connections that were granted it. */
	pthread_mutex_t mem_lock;
	pthread_cond_t mem_changed;
	struct nvi_window *windows;
	struct nvi_given *given[NVI_CONN_BUCKETS];
	uint32_t revoke_ms; /* time that a peer may take to return memory */
	uint32_t drain_ms;  /* time that a disconnect waits for its sends while there is a path */

	/* Control. */
	pthread_mutex_t ctl_lock;
	bool dead; /* the agent is gone */
	uint64_t next_token;
	struct nvi_req *reqs;
	struct nvi_chan *conns[NVI_CONN_BUCKETS];

	struct nvi_out out;
	/* for log lines that peers can cause without end */
	struct u_log_ratelimit held, unattached;
};

/* Returns the present view of port `index`, counted as used; NULL when there is none.  Takes chan_lock. */
struct nvi_port *nvi_port_get(struct nvi_nic *nic, unsigned int index);
/* Ends one use of a view; the last one closes the port and frees the view.  Accepts NULL.  Takes no lock. */
void nvi_port_put(struct nvi_port *p);
/* Returns the generation of its link, 0 while that is down. */
uint32_t nvi_port_generation(const struct nvi_port *p);

/* There is new work: wakes the engine if it sleeps, or the application threads that do its work. */
void nvi_engine_kick(struct nvi_nic *nic);

#endif
