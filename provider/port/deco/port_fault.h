/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault: a link that misbehaves on purpose.
 *
 * Options as text, comma separated (VIADUCT_FAULT): `drop_db=P` lose a rung doorbell with
 * probability P (0..1), `spurious_db=P` at each ring, with probability P, ring all bits,
 * `early_db=P` let rings overtake stores, `down_after=N` take the link down after N stores,
 * `down_ms=N` for so many milliseconds before it comes back (0: for good), `torn=P` with
 * probability P lose the rest of the stores of the line being stored when the link goes down.
 *
 * While the link is down, stores vanish, doorbells are lost, link_state answers down; when it comes
 * back it has a new generation.  An agent's port takes the link below down with it, so that its
 * peer and its clients notice; a client's is down for that process only.  `self` is always up
 * below.
 *
 * With early_db a fence begins with probability P a time of some 40 us, at whose end the stores
 * that were made in it land, in their order, while rings and writes of scratchpads pass at once.
 * So a thread that clears a bit may not find what was fenced before the ring, against the contract
 * (port_peer_db_ring()), as on adapters that are endpoints.  A flush lands them at once; it does not
 * land those of the peer, so a thread that flushes and goes to sleep may miss a slot, for which
 * nobody rings, until its sleep ends by its time limit (docs/memory-order.md, section 9).
 */
#ifndef PORT_FAULT_H
#define PORT_FAULT_H

#include "port.h"

/*
 * Takes ownership of `inner` on success.  `options` NULL: none.  0, -ENOMEM, or -EINVAL, which names the bad
 * option in the log.
 */
int port_fault_wrap(struct port *inner, const char *options, uint64_t seed, struct port **out);

/*
 * Direct control, for tests: do at once what the options say.  If `p` neither is nor has the wrapper, do
 * nothing. A link that is taken down comes up again by itself after down_ms, if that is not 0.
 */
void port_fault_link(struct port *p, enum port_link state);
/* Loses the next `count` rings; replaces an earlier count.  Without the wrapper it does nothing. */
void port_fault_drop_doorbells(struct port *p, uint32_t count);

#endif
