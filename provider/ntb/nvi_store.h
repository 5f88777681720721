/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores from a descriptor's memory into granted memory of the peer. */
#ifndef NVI_STORE_H
#define NVI_STORE_H

#include "nvi_grant.h"
#include "u_copy.h"

#define NVI_DIRECT_MAX (16u << 20) /* bytes stored while tx_lock is held */

/* Copies from memory that the consumer shares with its peer; `out` NULL: to memory of this process. */
static inline void nvi_copy_region(const struct u_out *out, void *dst, const void *src, uint32_t n)
{
	if (out != NULL && out->ops != NULL)
		u_out_copy(out, dst, src, n);
	else
		u_copy_shared(dst, src, n);
}

/* As u_copy_last_last(), to a mapping that does not keep the order of stores by itself. */
void nvi_store_last_last(const struct u_out *out, uint8_t *dst, const uint8_t *src, uint32_t n);

/* Stores a piece, after which `left` bytes of the message follow; the last bytes of a message are stored last. */
static inline void nvi_store_piece(const struct u_out *out, uint8_t *dst, const uint8_t *src,
				   uint32_t n, uint32_t left)
{
	if (u_unlikely(left >= U_LINE)) {
		if (out->ops != NULL)
			u_out_copy(out, dst, src, n);
		else
			u_copy_shared(dst, src, n);
	} else if (u_unlikely(out->ops != NULL)) {
		nvi_store_last_last(out, dst, src, n);
	} else {
		u_copy_last_last(dst, src, n);
	}
}

/* Returns the address at which this process stores bytes for `addr` at the peer, in memory that the grant covers. */
static inline uint8_t *nvi_grant_at(const struct nvi_grant *g, uint64_t addr)
{
	return (uint8_t *)g->map.base + (addr - g->base);
}

/*
 * Stores the data of a send or write to `addr`, all in memory that the grant covers: slots that are published later
 * arrive after it.  0, or -EFAULT: the descriptor cannot be stored, or its memory is being deregistered, so it goes
 * through slots; some bytes may have been stored.  Completes nothing.  Caller holds tx_lock.
 */
int nvi_store(struct nvi_chan *ch, struct nvi_grant *g, const struct vi_wqe *wqe, uint64_t addr);
/* Flushes the link.  Is it still of that generation?  If so, all stores through it have arrived. */
bool nvi_link_stands(const struct nvi_port *p, uint32_t generation);

#endif
