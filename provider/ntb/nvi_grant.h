/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Grants: window memory of the peer into which this end may store.  nvi_window.c has the owner's
 * side.
 */
#ifndef NVI_GRANT_H
#define NVI_GRANT_H

#include "nvi_chan.h"
#include "w_ctl.h"
#include "w_grant.h"

/*
 * Sends a message about grants to the process at the other end.  `slice_id`: the slice of the
 * memory that is granted, else 0.  Returns as nvi_ctl_send() does; does not wait for an answer.
 */
int nvi_grant_tell(struct nvi_nic *nic, uint64_t conn, const struct w_grant *grant,
		   uint32_t slice_id);
/* As nvi_grant_tell(), for a message that has only a handle and `map` of struct w_grant. */
int nvi_grant_tell_about(struct nvi_nic *nic, uint64_t conn, enum w_grant_kind kind,
			 uint32_t handle, uint64_t map);

/* Returns the entry of this region of the peer, in whatever state, or NULL.  Caller holds tx_lock. */
static inline struct nvi_grant *nvi_grant_find(struct nvi_chan *ch, uint32_t handle)
{
	struct nvi_grant *g = ch->tx.grant_last;

	if (u_likely(g->handle == handle && g->state != NVI_GRANT_NONE))
		return g;
	for (g = ch->tx.grants; g < ch->tx.grants + NVI_GRANTS_MAX; g++) {
		if (g->handle == handle && g->state != NVI_GRANT_NONE) {
			ch->tx.grant_last = g;
			return g;
		}
	}
	return NULL;
}

/* Is the grant held, and do the n bytes at `addr` of the peer lie in its region? */
static inline bool nvi_grant_covers(const struct nvi_grant *g, uint64_t addr, uint32_t n)
{
	return g->state == NVI_GRANT_HELD && addr >= g->base &&
	       u_range_ok(addr - g->base, n, g->length);
}

/*
 * Returns the grant by which n bytes can be stored to `remote`, or NULL; asks for one when there is none, but not on
 * relayed connections or in the pause after a refusal.  Does not wait for the answer.  Caller holds tx_lock.
 */
struct nvi_grant *nvi_grant_for(struct nvi_chan *ch, const VIP_ADDRESS_SEGMENT *remote, uint32_t n);
/* As nvi_grant_for(), for an RDMA write: it makes later sends ask for credit while a grant is held. */
struct nvi_grant *nvi_grant_for_write(struct nvi_chan *ch, const VIP_ADDRESS_SEGMENT *remote,
				      uint32_t n);
/*
 * Flushes and unmaps all memory that was granted to the connection, and forgets requests and refusals; tells the owner
 * nothing.  Caller holds tx_lock.
 */
void nvi_grants_drop(struct nvi_chan *ch);

/* Handles the owner's answer, with the descriptor of its slice or -1, which stays the caller's.  No locks held. */
void nvi_grant_on_give(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_grant *m,
		       uint64_t conn, int fd);
/* Handles TAKE: unmaps the memory, and answers GONE even when there is no such grant.  No locks held. */
void nvi_grant_on_take(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_grant *m,
		       uint64_t conn);

#endif
