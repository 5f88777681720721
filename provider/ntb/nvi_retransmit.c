/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "nvi_credit.h"
#include "nvi_fault.h"
#include "nvi_publish.h"
#include "nvi_refuse.h"
#include "nvi_retransmit.h"
#include "nvi_store.h"

/* Copies a fragment from its source to its place in the payload buffer.  0 or -EFAULT. */
static int payload_again(struct nvi_chan *ch, const struct nvi_retx_slot *k, uint32_t offset)
{
	uint32_t skip = k->offset, left = k->line.head.frag, len;
	uint8_t *dst = ch->out_payload + offset, *src;
	struct vi_vi *vi = ch->vi;
	struct vi_sg sg;

	if (k->answer) {
		const void *at =
			vi_tpt_check(vi->nic, vi->ptag, k->addr, left, k->handle, VI_REMOTE_READ);

		if (at == NULL)
			return -EFAULT;
		nvi_copy_region(&ch->out, dst, at, left);
		return 0;
	}
	if (vi_sg_init(&sg, vi, vi_wqe(&vi->sq, k->entry), VI_READ, (uint64_t)k->offset + left) !=
	    0)
		return -EFAULT;
	while (left > 0) {
		if (vi_sg_next(&sg, skip > 0 ? skip : left, &src, &len) != 0)
			return -EFAULT;
		if (skip > 0) {
			skip -= len;
			continue;
		}
		u_out_copy(&ch->out, dst, src, len);
		dst += len;
		left -= len;
	}
	return 0;
}

/*
 * The source of a payload was deregistered, which the consumer may not do before the descriptor is
 * complete: fails the descriptor, or for an answer to a read raises an event, and marks the fault.
 */
static void lost_source(struct nvi_chan *ch, const struct nvi_retx_slot *k)
{
	if (k->answer) {
		ch->vi->counters.ProtectionErrors++;
		vi_event_raise(ch->vi->nic, ch->vi, VIP_RESOURCE_VI, VIP_ERROR_RDMAR_PROT);
		nvi_fault_tx(ch, (struct nvi_fault){ NVI_BREAK_LOCAL, W_ERR_SENDER, 0, 0 });
		return;
	}
	if (ch->tx.msg.op != 0 && ch->tx.msg.entry == k->entry)
		ch->tx.msg.op = 0;
	nvi_refuse(ch, k->entry, VIP_STATUS_PROTECTION_ERROR);
}

int nvi_retransmit(struct nvi_chan *ch)
{
	uint32_t n = atomic_load_explicit(&ch->tx.credit, memory_order_relaxed);
	uint64_t cursor = ch->tx.consumed;

	for (; n != ch->tx.seq; n++) {
		struct nvi_retx_slot *k = &ch->retx[n & ch->out_mask];
		uint32_t frag = k->line.head.frag;
		uint8_t flags = k->line.head.flags;

		if ((flags & W_F_BUFFERED) &&
		    payload_again(ch, k,
				  w_payload_find(&cursor, ch->out_payload_bytes, flags, frag)) !=
			    0) {
			/* The slots after it are not sent. */
			ch->tx.seq = n;
			lost_source(ch, k);
			return -EFAULT;
		}
		nvi_store_slot(ch, n, &k->line, k->line.more, W_TAIL_INLINE);
	}
	u_out_fence(&ch->out);
	return 0;
}
