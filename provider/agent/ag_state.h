/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of an agent.  A comment before each group of fields names the unit that writes it; the
 * units above that one may read it.
 *
 * All of it belongs to the thread in ag_run() or ag_step(), but for the wake-up descriptor and the atomic
 * fields.
 */
#ifndef AG_STATE_H
#define AG_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ag_cfg.h"
#include "ag_list.h"
#include "ag_ratelimit.h"
#include "ag_watchdog.h"
#include "w_ctl.h"

/* The agent's doorbell bit.  Those of transfer threads follow; processes share the rest. */
#define AG_DB_BIT 0u

#define AG_HASH 4096u /* buckets of a table by host and connection */

struct ag_client;
struct ag_conn_slot;
struct ag_link;
struct port_host;
struct port_irq;
struct rl_relay;
struct rt_topo;

struct ag_agent {
	/* ag_agent.c */
	struct ag_cfg cfg;	 /* its pointers are replaced by the fields of this structure */
	bool geometry_by_window; /* the configuration has no geometry: that of a small window is small */
	char fabric[W_NAME_MAX];
	struct u_log_ratelimit ratelimit[AG_RATELIMITS];
	struct ag_watchdog watchdog;
	struct port_host *host;
	struct port_irq *irq;	    /* interrupts of the doorbells of transfer threads */
	struct port_irq *agent_irq; /* interrupts of AG_DB_BIT, which no process can ring */
	int64_t idle_since;	    /* when the last process with a NIC left */

	/* ag_loop.c; every unit sets `dirty` */
	int epoll;
	int wake; /* an eventfd: doorbells have rung, or ag_stop() was called */
	_Atomic bool stop;
	bool ending; /* ag_destroy() runs: processes that continue keep the memory that they have */
	bool dirty;  /* something was queued, dropped or broken since settle() last ran */

	/* ag_irq.c */
	_Atomic bool irq_stop;
	pthread_t irq_thread;
	bool irq_started;

	/* ag_admission.c: limits of these, by the descriptors that this process may have */
	uint32_t client_fds, user_fds, client_allocs, user_allocs;
	uint32_t user_silent;
	uint64_t fds; /* descriptors that this process may have */

	/* ag_accept.c */
	int listen_sock;
	bool rights_kept_out;	 /* the kernel refuses descriptors in messages to this agent */
	int spare_fd;		 /* closed to answer a process when descriptors run out */
	int64_t listen_again_at; /* 0: listen_sock is watched */

	/* ag_links.c; links[0] is the host itself */
	struct ag_link *links;
	uint32_t link_count;

	/* ag_route.c; the arrays have an entry for each host, by its id: */
	struct rt_topo *topo;
	int64_t begin_at; /* when this host sends its next update; 0: when a link changes */
	uint8_t *up; /* the links that it reports as up; all of them, if it never sent an update */
	uint64_t *up_serial;   /* of that link-state update; 0: none came, or it was forgotten */
	int64_t *up_forgotten; /* its updates are ignored until this time */
	uint8_t *bridges;      /* the links for which no other path exists */

	struct ag_list holders; /* ag_holder.c: of struct ag_holder */

	/* ag_client.c */
	struct ag_list clients; /* of struct ag_client, oldest first */
	struct ag_client **client_slot;
	uint32_t client_slots, client_count, client_serial;
	uint32_t nic_count; /* clients that opened a NIC; the others are tools */
	int64_t clients_at; /* no timer of a client is due before this time */

	/* ag_conn.c */
	uint64_t hash_key; /* unknown to the other hosts, which choose the ids of connections */
	struct ag_conn_slot *conn_slot;
	uint32_t conn_slots, conn_count, conn_free;
	struct ag_list hash[AG_HASH]; /* of struct ag_conn, by its other end */
	struct ag_list linked; /* of struct ag_conn, whose process has to confirm; oldest first */

	/* ag_waiter.c */
	struct ag_list listens; /* of struct ag_listen */
	struct ag_list offers;	/* of struct ag_offer */

	/* ag_retire.c, ag_suspend.c, ag_resume_ask.c */
	struct ag_list retired;	 /* of struct ag_retired */
	struct ag_list resuming; /* of struct ag_conn, whose path is lost */
	int64_t return_at;	 /* when to check for connections that have a shorter path now */

	struct ag_place *place; /* ag_place.c; NULL where nothing is relayed */

	/* ag_transfer.c; NULL and 0 where nothing is relayed */
	struct rl_relay *relay;
	uint32_t relay_threads;
	int relay_cpus[AG_RELAY_CPUS_MAX];
	_Atomic bool relay_broken; /* rl_broken() has something; set by transfer threads */

	/* ag_circuit.c, ag_relay.c */
	struct ag_list circuits[AG_HASH]; /* of struct ag_circuit, by the end that asked */
	uint32_t circuit_count;
	uint64_t relay_dropped; /* records that no neighbour should have sent */
	uint64_t relay_refused; /* circuits for which there was no room */

	/* ag_name.c */
	char (*names)[W_NAME_MAX]; /* of the hosts */
	struct ag_alias *aliases, *devices;
	uint32_t alias_count, device_count;
};

/* The first doorbell bit after those of the agent and of its transfer threads. */
static inline uint32_t ag_db_bits_end(const struct ag_agent *a)
{
	return AG_DB_BIT + 1 + a->relay_threads;
}

#endif
