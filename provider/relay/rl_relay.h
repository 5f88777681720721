/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The relay: carries the packets of connections whose ends are other hosts.
 *
 * A connection that goes through this host is a *circuit*.  It has two ends, each the next node on one side: another
 * relay, or the process itself.  At either end lies a bypass buffer, an inbound slice of this host with the layout of
 * a VI's slice (w_slot.h) and the geometry of the receiver's slice:
 *
 *	node 0 --stores--> in[0]  ==forwarded==>  out[1] = the slice of node 1
 *	node 1 --stores--> in[1]  ==forwarded==>  out[0] = the slice of node 0
 *
 * Slot n is forwarded as slot n, its buffered payload to the same offset, and credit as it comes: the sender's credit
 * is the count of slots that the receiver consumed.  So a sender never has more in flight than the receiver's fifo
 * and payload buffer hold, each buffer on the path is as large, and a slot that came can always be forwarded: no
 * relay ever waits for room, and no circuit waits for another.
 *
 * Circuits are shared out among transfer threads.  Each owns one doorbell bit, on every port; a circuit stays with
 * its thread, so its packets stay in order.  Everything that a node wrote is copied once and checked, and only the
 * copy is used; a circuit whose node breaks the rules is stopped and reported.
 */
#ifndef RL_RELAY_H
#define RL_RELAY_H

#include <stdint.h>

#include "rl_types.h"

struct rl_relay;
struct rl_circuit;

/* Makes a relay, with a copy of *cfg.  Its threads start with their first circuits.  0, -EINVAL or -ENOMEM. */
int rl_open(const struct rl_cfg *cfg, struct rl_relay **out);

/* Ends a relay; the caller has removed all circuits.  Accepts NULL. */
void rl_close(struct rl_relay *relay);

/* Returns the number of the thread for a connection: always the same one for a `flow`. */
unsigned int rl_thread_of(const struct rl_relay *relay, uint64_t flow);
/* Returns the number, not the mask, of the thread's doorbell bit. */
uint32_t rl_db_bit(const struct rl_relay *relay, unsigned int thread);

/*
 * Starts forwarding.  All four slices have the geometry `slots` and `payload_bytes`, and the `in`
 * of either end has begun with the `first` of the other for credit.  Takes the maps, and unmaps
 * them when the circuit is removed; on failure they stay the caller's.  0 or -ENOMEM.
 */
int rl_add(struct rl_relay *relay, unsigned int thread, const struct rl_side side[2],
	   uint32_t slots, uint32_t payload_bytes, void *user, struct rl_circuit **out);

/*
 * Forwards everything that the node of that side has stored so far, and flushes; nothing if the circuit is broken.  The
 * circuit may break by it, which calls cfg.notify().  Takes the lock of its thread.
 */
void rl_drain(struct rl_circuit *c, unsigned int side);

/*
 * Frees a circuit, also a broken one, which rl_broken() does not report any more: on return no thread looks at it, and
 * its slices are not mapped.  Takes the lock of its thread.
 */
void rl_remove(struct rl_circuit *c);

/*
 * Returns the `user` of a circuit that was stopped and not yet reported here; NULL when there is none.  The circuit
 * still has to be removed.  Takes the lock of each thread.
 */
void *rl_broken(struct rl_relay *relay);

/* Adds up the counters of all threads, into an `out` that it clears; takes the lock of each. */
void rl_counters(struct rl_relay *relay, struct rl_counters *out);

#endif
