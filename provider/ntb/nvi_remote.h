/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings of the peer's window memory for the program (VipxMapRemote()).  nvi_window.c has the
 * owner's side.
 */
#ifndef NVI_REMOTE_H
#define NVI_REMOTE_H

#include "nvi_chan.h"
#include "w_grant.h"

/*
 * vi_provider_ops.remote_map: asks the owner, waits up to 5 s for its answer, and maps.  Also -ENOSPC: the connection
 * has too many mappings.  *out is set only on success.  No locks held.
 */
int nvi_remote_map(struct vi_vi *vi, uint64_t addr, uint64_t len, uint32_t handle, void **out);
/*
 * vi_provider_ops.remote_unmap: unmaps, and tells the owner unless the right was lost before.  -EINVAL: nothing is
 * mapped there.  No locks held.
 */
int nvi_remote_unmap(struct vi_vi *vi, void *at);

/*
 * The right to all mappings of the connection has ended: private memory takes their place, and requests under way get
 * -EISCONN.  If there is no such memory, that is logged, and the peer's stays mapped.  Caller holds both locks.
 */
void nvi_remotes_lose(struct nvi_chan *ch);
/*
 * Unmaps all, including memory to which the right was lost before; requests under way get -EISCONN.  Caller holds both
 * locks.
 */
void nvi_remotes_end(struct nvi_chan *ch);

/* Handles the owner's answer, with the descriptor of its slice or -1, which stays the caller's.  No locks held. */
void nvi_remote_on_give(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_grant *m,
			uint64_t conn, int fd);
/* Handles TAKE: replaces the owner's memory by private memory, and answers GONE, unless that failed.  No locks held. */
void nvi_remote_on_take(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_grant *m,
			uint64_t conn);

#endif
