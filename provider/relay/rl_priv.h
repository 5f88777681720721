/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RL_PRIV_H
#define RL_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "rl_types.h"
#include "u_out.h"

/* One node of a circuit, and the slots and credit from it. */
struct rl_end {
	struct port *port;
	struct port_map in_map, out_map;
	struct u_out out;
	const struct w_control *in_ctl; /* written by the node */
	const struct w_slot *in_slots;
	const uint8_t *in_payload;
	struct w_control *out_ctl; /* written by this relay, never read */
	struct w_slot *out_slots;
	uint8_t *out_payload;
	uint32_t db_mask;

	uint32_t next;	 /* slots of this node that were forwarded */
	uint32_t credit; /* how many of them the other end has consumed, as told to the node */
	uint64_t cursor; /* in its payload buffer */
	uint32_t rung;	 /* its last notify request for which the relay rang */
	bool two_lines;	 /* its last slot had two lines */
	bool reported;	 /* its error word was forwarded; nothing from it is forwarded after that */
};

struct rl_circuit {
	struct rl_thread *thread;
	void *user;
	struct rl_end end[2];
	uint32_t mask, payload_bytes;
	uint32_t index; /* in thread->circuits */
	uint32_t seen;	/* slots and credit moved, at the last tick */
	bool fresh;	/* armed in this pass */
	bool broken;
	struct rl_circuit *next_broken;
};

/* The first `polled` circuits are polled, the others armed. */
struct rl_thread {
	struct rl_relay *relay;
	unsigned int index;
	uint32_t db_mask;
	uint32_t ticket;    /* taken at the last check of the doorbells */
	int64_t next_check; /* time of the next check of all circuits, rung for or not */
	pthread_t thread;
	bool started;
	_Atomic bool stop;
	/* other threads that want or have the lock; the thread sleeps on this word */
	_Atomic uint32_t wanted;
	pthread_mutex_t lock;
	struct rl_circuit **circuits;
	uint32_t count, polled, cap;
	struct rl_circuit *broken;
	struct rl_counters counters;
};

struct rl_relay {
	struct rl_cfg cfg;
	struct port *ports[PORT_PER_HOST];
	struct u_cpuset cpus[RL_THREADS_MAX];
	struct rl_thread threads[RL_THREADS_MAX];
};

/* rl_move.c; the caller holds the thread's lock. */
void rl_end_place(struct rl_circuit *c, unsigned int side, const struct rl_side *from);
/* Has anything come that rl_move() would forward? */
bool rl_ready(const struct rl_circuit *c);
/*
 * Forwards slots, credit and error reports of both ends, `budget` slots each, and rings.  Returns how much moved; may
 * mark the circuit broken, which the caller then stops.
 */
uint32_t rl_move(struct rl_circuit *c, uint32_t budget);
/* Forwards everything from one end, slots, credit and error, without a budget; may mark the circuit broken. */
void rl_move_all(struct rl_circuit *c, unsigned int side);
/* Returns the count of slots and credit moved so far, of both ends together; it wraps. */
uint32_t rl_moves(const struct rl_circuit *c);
void rl_write_notify(struct rl_circuit *c);
void rl_clear_notify(struct rl_circuit *c);

/* rl_relay.c: a circuit of a thread that runs, or that a test steps. */
int rl_circuit_create(struct rl_thread *t, const struct rl_side side[2], uint32_t slots,
		      uint32_t payload_bytes, void *user, struct rl_circuit **out);

/* rl_thread.c */
/* Forwards for the polled circuits, and for all after a ring.  Returns how much moved.  Takes the lock itself. */
uint32_t rl_thread_pass(struct rl_thread *t);
/*
 * Arms polled circuits: all, or those that did not move since the last call.  Returns true if
 * something came for one of them while it did so.  The caller holds the lock.
 */
bool rl_thread_arm(struct rl_thread *t, bool all);
#define RL_CHECK_NS INT64_C(64000000)
/*
 * Every RL_CHECK_NS, polls again the armed circuits for which something came without a ring.
 * Returns true if there were any.  The caller holds the lock.
 */
bool rl_thread_check(struct rl_thread *t, int64_t now);
int rl_thread_start(struct rl_thread *t);
void rl_thread_stop(struct rl_thread *t);
/* For other threads, to take the lock of this thread: it sleeps until they drop it. */
void rl_thread_lock(struct rl_thread *t);
void rl_thread_unlock(struct rl_thread *t);
/*
 * Another thread has moved the circuit: the ring for which it is armed may have come already, or it
 * broke.  Has it polled again, and wakes its thread for that; or takes it off the list and notifies the agent.  The
 * caller holds the lock.
 */
void rl_thread_moved(struct rl_circuit *c);
int rl_thread_enlist(struct rl_thread *t, struct rl_circuit *c);
void rl_thread_delist(struct rl_circuit *c);

#endif
