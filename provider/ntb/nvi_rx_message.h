/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that are received: receive descriptors, and sends of the peer. */
#ifndef NVI_RX_MESSAGE_H
#define NVI_RX_MESSAGE_H

#include "nvi_chan.h"

/* A slot, copied and checked. */
struct nvi_rx_slot {
	uint8_t op, flags;
	uint32_t arg, frag;
	uint32_t number;	 /* counted from 0 */
	uint32_t message;	 /* in a packed slot: the message being taken in, counted from 0 */
	const struct w_slot *in; /* inline payload lies here, */
	uint32_t inline_off;	 /* from this offset; */
	const uint8_t *buffered; /* or here */
	struct w_rdma rdma;
	struct w_offer offer; /* in a read request with an offer */
	struct w_atomic atomic;
};

/* The caller of all functions below holds rx_lock. */

/* Copies payload bytes [off, off + n) of the slot to dst. */
void nvi_rx_payload(const struct nvi_rx_slot *s, void *dst, uint32_t off, uint32_t n);
/* Scatters the fragment over the segments. 0 or -EFAULT: then a part of it may have been copied. */
int nvi_rx_scatter(struct vi_sg *sg, const struct nvi_rx_slot *s);
/*
 * Are the next n bytes of the segments those at `at`, and may they still be written?  Moves `sg` past what it checks.
 */
bool nvi_rx_are_at(struct vi_sg *sg, const uint8_t *at, uint32_t n);
/*
 * Takes the next receive descriptor, for so many bytes.  W_ERR_NONE, or the error to report to the peer: with
 * W_ERR_NO_DESC, for which it raises an event, none was taken; else the one that was taken is unfit.
 */
enum w_err nvi_rx_take_receive(struct nvi_chan *ch, uint32_t bytes);
/* Completes the receive descriptor of the message under way. */
void nvi_rx_complete_receive(struct nvi_chan *ch, uint32_t status, uint32_t length);
/*
 * The message under way failed.  Its receive descriptor, if it has one, completes with `op_status`
 * and the error.  Reliable connections are marked to be broken, unreliable ones drop the rest of
 * the message.
 */
void nvi_rx_fail(struct nvi_chan *ch, const struct nvi_rx_slot *s, enum w_err err,
		 uint32_t op_status);
/* Marks the connection to be broken, on every level: a correct peer would not have sent this slot now. */
void nvi_rx_protocol_error(struct nvi_chan *ch, const struct nvi_rx_slot *s);
/* Counts a message of `total` bytes as received. */
void nvi_rx_count(struct nvi_chan *ch, uint32_t total);
/* Takes in a fragment of a send; one that is not packed.  A fault that it finds is marked. */
void nvi_rx_send(struct nvi_chan *ch, const struct nvi_rx_slot *s);
/* Takes in the sends of a packed slot, up to one that breaks the connection. */
void nvi_rx_packed(struct nvi_chan *ch, const struct nvi_rx_slot *s);

static inline bool nvi_rx_reliable(const struct nvi_chan *ch)
{
	return ch->level != VIP_SERVICE_UNRELIABLE;
}

#endif
