/* SPDX-License-Identifier: BSD-2-Clause */
#include "w_slot.h"

#include <errno.h>

#include "u_base.h"

/*
 * Checks a slot that stands alone: it carries no part of a payload stream.  0 or -EPROTO.  The stream stays as
 * it is, also for an ABORT.
 */
static int check_single(const struct w_stream *s, uint8_t op, uint8_t flags, uint32_t arg,
			uint32_t frag, const struct w_rdma *rdma)
{
	if (arg != 0)
		return -EPROTO;
	switch (op) {
	case W_OP_NOP:
		return frag == 0 && flags == W_F_ACK ? 0 : -EPROTO;
	case W_OP_ABORT:
		return frag == 0 && flags == W_F_LAST && (s->op == W_OP_SEND || s->op == W_OP_WRITE)
			       ? 0
			       : -EPROTO;
	case W_OP_READ_REQ:
		return s->op == 0 && (flags & ~W_F_ACK) == (W_F_FIRST | W_F_LAST) &&
				       (frag == sizeof(*rdma) ||
					frag == sizeof(struct w_read_req)) &&
				       rdma->length <= s->max_length
			       ? 0
			       : -EPROTO;
	case W_OP_ATOMIC_REQ:
		return s->op == 0 && (flags & ~W_F_ACK) == (W_F_FIRST | W_F_LAST) &&
				       frag == sizeof(struct w_atomic_req) &&
				       (rdma->length == 4 || rdma->length == 8) &&
				       rdma->addr % rdma->length == 0
			       ? 0
			       : -EPROTO;
	default:
		return -EPROTO;
	}
}

int w_atomic_check(const struct w_atomic *a)
{
	return a->op >= W_ATOMIC_FETCH && a->op < W_ATOMIC_MAX && a->fetch <= 1 ? 0 : -EPROTO;
}

/*
 * May a fragment of `frag` bytes be carried as the flags say, in the payload buffer or inline after
 * `rdma_bytes`?  1 or 0.
 */
static int check_place(const struct w_stream *s, uint8_t flags, uint32_t frag, uint32_t rdma_bytes)
{
	if (flags & W_F_BUFFERED)
		return frag >= 1 && frag <= w_frag_max(s->payload_bytes);
	return (flags & W_F_REWOUND) == 0 && frag <= W_INLINE_MAX - rdma_bytes;
}

/*
 * May a slot announce a message that was stored at its destination?  Only a message that takes a receive, or an
 * answer to a read.
 */
static int may_be_placed(uint8_t op, uint8_t flags, uint32_t frag)
{
	return (w_takes_receive(op, flags) || (op == W_OP_READ_RESP && (flags & W_F_FIRST))) &&
	       (flags & W_F_LAST) && (flags & (W_F_BUFFERED | W_F_REWOUND)) == 0 && frag >= 1;
}

/* May a slot with PACKED come now?  0 or -EPROTO. */
static int check_packed(const struct w_stream *s, uint8_t op, uint8_t flags, uint32_t arg,
			uint32_t frag)
{
	return s->op == 0 && w_packed_ok(op, flags, arg, frag) && frag <= s->max_length ? 0
											: -EPROTO;
}

/* Checks a slot with a fragment of a message, and moves the stream on.  0, or -EPROTO and the stream is unchanged. */
static int check_message(struct w_stream *s, uint8_t op, uint8_t flags, uint32_t arg, uint32_t frag,
			 const struct w_rdma *rdma, uint32_t *inline_off)
{
	int first = flags & W_F_FIRST, last = flags & W_F_LAST;
	uint8_t imm = flags & W_F_IMM;
	uint32_t rdma_bytes = first && op == W_OP_WRITE ? sizeof(*rdma) : 0;
	uint32_t total = first ? (last ? frag : arg) : s->total;
	uint32_t done = first ? 0 : s->done;

	if (first ? s->op != 0 : s->op != op)
		return -EPROTO;
	if (!(flags & W_F_PLACED ? may_be_placed(op, flags, frag)
				 : check_place(s, flags, frag, rdma_bytes)) ||
	    total > s->max_length)
		return -EPROTO;
	if (rdma_bytes != 0 && rdma->length != 0)
		return -EPROTO;
	if (op == W_OP_READ_RESP ? imm != 0 : !first && imm != s->imm)
		return -EPROTO;
	if (arg != 0 && (last ? imm == 0 : !first))
		return -EPROTO;
	if (last ? frag != total - done : (frag == 0 || frag >= total - done))
		return -EPROTO;
	s->op = last ? 0 : op;
	s->imm = imm;
	s->total = total;
	s->done = done + frag;
	*inline_off = rdma_bytes;
	return 0;
}

int w_slot_check(struct w_stream *s, uint8_t op, uint8_t flags, uint16_t reserved, uint32_t arg,
		 uint32_t frag, const struct w_rdma *rdma, uint32_t *inline_off)
{
	int err;

	if (u_unlikely(reserved != 0 || (flags & ~W_F_KNOWN) != 0))
		return -EPROTO;
	if (flags & W_F_PACKED) {
		*inline_off = 0;
		return check_packed(s, op, flags, arg, frag);
	}
	if (u_likely(op >= W_OP_SEND && op <= W_OP_READ_RESP && op != W_OP_READ_REQ))
		return check_message(s, op, flags, arg, frag, rdma, inline_off);
	err = check_single(s, op, flags, arg, frag, rdma);
	if (err == 0) {
		*inline_off = 0;
		if (op == W_OP_ABORT)
			s->op = 0;
	}
	return err;
}

int w_slot_bounds(uint8_t op, uint8_t flags, uint16_t reserved, uint32_t arg, uint32_t frag,
		  uint32_t payload_bytes, uint32_t *inline_out)
{
	uint32_t rdma_bytes = op == W_OP_WRITE && (flags & W_F_FIRST) ? sizeof(struct w_rdma) : 0;

	if (reserved != 0 || (flags & ~W_F_KNOWN) != 0 || op < W_OP_SEND || op > W_OP_ATOMIC_REQ)
		return -EPROTO;
	if (flags & W_F_PACKED) {
		*inline_out = arg * frag;
		return w_packed_ok(op, flags, arg, frag) ? 0 : -EPROTO;
	}
	*inline_out = rdma_bytes;
	if (flags & W_F_PLACED)
		return may_be_placed(op, flags, frag) ? 0 : -EPROTO;
	if (flags & W_F_BUFFERED)
		return frag >= 1 && frag <= w_frag_max(payload_bytes) ? 0 : -EPROTO;
	*inline_out += frag;
	return (flags & W_F_REWOUND) == 0 && frag <= W_INLINE_MAX - rdma_bytes ? 0 : -EPROTO;
}
