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
	uint32_t message;	 /* of a packed slot the one that is taken in, counted from 0 */
	const struct w_slot *in; /* inline payload lies here, */
	uint32_t inline_off;	 /* from this offset; */
	const uint8_t *buffered; /* or here */
	struct w_rdma rdma;
	struct w_offer offer; /* of a read request of that length */
	struct w_atomic atomic;
};

/* Caller of all of these holds rx_lock. */

/* Copies payload bytes [off, off + n) of the slot to dst. */
void nvi_rx_payload(const struct nvi_rx_slot *s, void *dst, uint32_t off, uint32_t n);
/* Scatters the fragment over the segments. 0 or -EFAULT. */
int nvi_rx_scatter(struct vi_sg *sg, const struct nvi_rx_slot *s);
/* Are the next n bytes of the segments those at `at`, and still to be written? */
bool nvi_rx_are_at(struct vi_sg *sg, const uint8_t *at, uint32_t n);
/* Takes the next receive descriptor, for so many bytes. 0, or the error report for the peer. */
enum w_err nvi_rx_take_receive(struct nvi_chan *ch, uint32_t bytes);
void nvi_rx_complete_receive(struct nvi_chan *ch, uint32_t status, uint32_t length);
/*
 * The message under way failed.  Its receive descriptor, if it has one, completes with `op_status`
 * and the error.  Reliable connections are marked to be broken, unreliable ones drop the rest of
 * the message.
 */
void nvi_rx_fail(struct nvi_chan *ch, const struct nvi_rx_slot *s, enum w_err err,
		 uint32_t op_status);
/* A correct peer would not have sent this now: the connection is marked to be broken. */
void nvi_rx_protocol_error(struct nvi_chan *ch, const struct nvi_rx_slot *s);
void nvi_rx_count(struct nvi_chan *ch, uint32_t total);
/* A fragment of a send. */
void nvi_rx_send(struct nvi_chan *ch, const struct nvi_rx_slot *s);
/* The sends of a packed slot, up to one that breaks the connection. */
void nvi_rx_packed(struct nvi_chan *ch, const struct nvi_rx_slot *s);

static inline bool nvi_rx_reliable(const struct nvi_chan *ch)
{
	return ch->level != VIP_SERVICE_UNRELIABLE;
}

#endif
