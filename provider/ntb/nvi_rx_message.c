/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "nvi_advert.h"
#include "nvi_fault.h"
#include "nvi_rx_message.h"
#include "u_trace.h"
#include "vi_wq_hot.h"

void nvi_rx_payload(const struct nvi_rx_slot *s, void *dst, uint32_t off, uint32_t n)
{
	uint32_t at = s->inline_off + off, head;

	if (s->buffered != NULL) {
		memcpy(dst, s->buffered + off, n);
		return;
	}
	head = at < W_HEAD_INLINE ? W_HEAD_INLINE - at : 0;
	if (head > n)
		head = n;
	memcpy(dst, s->in->data + (at < W_HEAD_INLINE ? at : 0), head);
	if (n > head)
		memcpy((uint8_t *)dst + head, s->in->more + (at + head - W_HEAD_INLINE), n - head);
}

int nvi_rx_scatter(struct vi_sg *sg, const struct nvi_rx_slot *s)
{
	for (uint32_t off = 0; off < s->frag;) {
		uint8_t *dst;
		uint32_t len;

		if (vi_sg_next(sg, s->frag - off, &dst, &len) != 0)
			return -EFAULT;
		nvi_rx_payload(s, dst, off, len);
		off += len;
	}
	return 0;
}

bool nvi_rx_are_at(struct vi_sg *sg, const uint8_t *at, uint32_t n)
{
	uint8_t *got;
	uint32_t len;

	return vi_sg_next(sg, n, &got, &len) == 0 && got == at && len == n;
}

/* ---- receive descriptors --------------------------------------------------------------------- */

enum w_err nvi_rx_take_receive(struct nvi_chan *ch, uint32_t bytes)
{
	struct nvi_rx_message *m = &ch->rx.msg;
	struct vi_wq *rq = &ch->vi->rq;
	struct vi_wqe *wqe;

	if (rq->next == rq->tail) {
		ch->vi->counters.RecvQueueEmpty++;
		vi_event_raise(ch->vi->nic, ch->vi, VIP_RESOURCE_VI, VIP_ERROR_RECVQ_EMPTY);
		return W_ERR_NO_DESC;
	}
	m->entry = rq->next++;
	m->has_entry = true;
	wqe = vi_wqe(rq, m->entry);
	m->status = vi_desc_check_recv(ch->vi, wqe, bytes);
	if (m->status == 0 && vi_sg_init(&m->sg, ch->vi, wqe, VI_WRITE, bytes) != 0)
		m->status = VIP_STATUS_PROTECTION_ERROR;
	if (m->status == VIP_STATUS_LENGTH_ERROR)
		return W_ERR_TOO_LONG;
	return m->status != 0 ? W_ERR_RECV_DESC : W_ERR_NONE;
}

void nvi_rx_complete_receive(struct nvi_chan *ch, uint32_t status, uint32_t length)
{
	struct nvi_rx_message *m = &ch->rx.msg;

	m->has_entry = false;
	vi_wq_complete(&ch->vi->rq, m->entry, status, length);
}

void nvi_rx_fail(struct nvi_chan *ch, const struct nvi_rx_slot *s, enum w_err err,
		 uint32_t op_status)
{
	struct nvi_rx_message *m = &ch->rx.msg;

	m->discard = true;
	ch->vi->counters.Dropped++;
	if (m->has_entry)
		nvi_rx_complete_receive(ch, op_status | m->status, 0);
	if (nvi_rx_reliable(ch))
		nvi_fault_rx(ch, (struct nvi_fault){ NVI_BREAK_LOCAL, err, s->number, s->message });
}

void nvi_rx_protocol_error(struct nvi_chan *ch, const struct nvi_rx_slot *s)
{
	ch->vi->counters.ProtocolErrors++;
	nvi_fault_rx(ch, (struct nvi_fault){ NVI_BREAK_PROTOCOL, W_ERR_PROTOCOL, s->number, 0 });
}

void nvi_rx_count(struct nvi_chan *ch, uint32_t total)
{
	ch->vi->counters.MessagesReceived++;
	ch->vi->counters.BytesReceived += total;
}

/* ---- sends ----------------------------------------------------------------------------------- */

/*
 * Are the bytes of a placed message in the receive's memory, as it was advertised?  0, or -EFAULT when the receive
 * now has another segment.
 */
static int is_there(struct nvi_chan *ch, const struct nvi_rx_slot *s)
{
	struct nvi_rx_message *m = &ch->rx.msg;

	return nvi_rx_are_at(&m->sg, vi_wqe(&ch->vi->rq, m->entry)->at, s->frag) ? 0 : -EFAULT;
}

void nvi_rx_send(struct nvi_chan *ch, const struct nvi_rx_slot *s)
{
	struct nvi_rx_message *m = &ch->rx.msg;
	enum w_err err;

	if (u_unlikely((s->flags & W_F_PLACED) && !nvi_was_advertised(ch))) {
		nvi_rx_protocol_error(ch, s);
		return;
	}
	if (s->flags & W_F_FIRST) {
		m->discard = m->has_entry = false;
		m->status = 0;
		m->total = s->flags & W_F_LAST ? s->frag : s->arg;
		err = nvi_rx_take_receive(ch, m->total);
		if (u_unlikely(err != W_ERR_NONE)) {
			nvi_rx_fail(ch, s, err, VIP_STATUS_OP_RECEIVE);
			return;
		}
	}
	if (u_unlikely(m->discard))
		return;
	if (u_unlikely((s->flags & W_F_PLACED ? is_there(ch, s) : nvi_rx_scatter(&m->sg, s)) !=
		       0)) {
		m->status = VIP_STATUS_PROTECTION_ERROR;
		ch->vi->counters.ProtectionErrors++;
		nvi_rx_fail(ch, s, W_ERR_RECV_DESC, VIP_STATUS_OP_RECEIVE);
		return;
	}
	U_TRACE(payload_copied, ch, s->frag);
	if (s->flags & W_F_LAST) {
		uint32_t status = VIP_STATUS_OP_RECEIVE;

		if (s->flags & W_F_IMM) {
			vi_wqe(&ch->vi->rq, m->entry)->imm = s->arg;
			status |= VIP_STATUS_IMMEDIATE;
		}
		nvi_rx_count(ch, m->total);
		nvi_rx_complete_receive(ch, status, m->total);
	}
}

void nvi_rx_packed(struct nvi_chan *ch, const struct nvi_rx_slot *s)
{
	struct nvi_rx_slot one = *s;

	one.flags &= (uint8_t)~W_F_PACKED;
	one.arg = 0;
	for (; one.message < s->arg && !nvi_chan_has_fault(ch, NVI_FAULT_RX); one.message++) {
		one.inline_off = one.message * s->frag;
		nvi_rx_send(ch, &one);
	}
}
