/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "nvi_store.h"
#include "vi_wq_hot.h"

U_COLD void nvi_store_last_last(const struct u_out *out, uint8_t *dst, const uint8_t *src,
				uint32_t n)
{
	uint32_t tail = (uint32_t)u_copy_tail(dst, n), word;

	u_out_copy(out, dst, src, n - tail);
	dst += n - tail;
	src += n - tail;
	for (; tail > 0; tail -= word, dst += word, src += word) {
		word = ((uintptr_t)dst & 7) == 0 && tail >= 8 ? 8 : 1;
		u_out_fence(out);
		u_out_copy(out, dst, src, word);
	}
}

/* Stores segment by segment, after checking the descriptor.  0 or -EFAULT; then some bytes may have been stored. */
static int store_segments(struct nvi_chan *ch, const struct nvi_grant *g, const struct vi_wqe *wqe,
			  uint8_t *dst)
{
	uint32_t left = wqe->length, len;
	struct vi_sg sg;
	uint8_t *src;

	if (vi_desc_check_send(ch->vi, wqe) != 0 ||
	    vi_sg_init(&sg, ch->vi, wqe, VI_READ, wqe->length) != 0)
		return -EFAULT;
	for (; left > 0; dst += len) {
		if (vi_sg_next(&sg, left, &src, &len) != 0)
			return -EFAULT;
		left -= len;
		nvi_store_piece(&g->map.out, dst, src, len, left);
	}
	return 0;
}

int nvi_store(struct nvi_chan *ch, struct nvi_grant *g, const struct vi_wqe *wqe, uint64_t addr)
{
	uint8_t *dst = nvi_grant_at(g, addr);

	if (u_likely(wqe->at != NULL && wqe->tpt_version == vi_tpt_version(&ch->vi->nic->tpt)))
		nvi_store_piece(&g->map.out, dst, wqe->at, wqe->length, 0);
	else if (store_segments(ch, g, wqe, dst) != 0)
		return -EFAULT;
	u_out_fence(&g->map.out);
	g->uses++;
	ch->tx.run_bytes += wqe->length;
	return 0;
}

bool nvi_link_stands(const struct nvi_port *p, uint32_t generation)
{
	port_flush(p->port);
	return nvi_port_generation(p) == generation;
}
