/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvi_rx_write.h"
#include "u_copy.h"
#include "u_trace.h"

/*
 * Returns the memory for bytes [done, done + n) of the write, or NULL.  It is checked for each
 * fragment, because regions can be deregistered.
 */
static uint8_t *write_target(struct nvi_chan *ch, uint32_t n)
{
	const struct nvi_rx_message *m = &ch->rx.msg;

	if (!ch->vi->rdma_write)
		return NULL;
	return vi_tpt_check(ch->vi->nic, ch->vi->ptag, m->rdma.addr + m->done, n, m->rdma.handle,
			    VI_REMOTE_WRITE);
}

/*
 * Takes in the immediate data of a write: completes a receive descriptor with `error` bits.  False
 * when that failed, and with it the message.
 */
static bool write_immediate(struct nvi_chan *ch, const struct nvi_rx_slot *s, uint32_t error)
{
	struct nvi_rx_message *m = &ch->rx.msg;
	enum w_err err = nvi_rx_take_receive(ch, 0);

	if (err != W_ERR_NONE) {
		nvi_rx_fail(ch, s, err, VIP_STATUS_OP_REMOTE_RDMA_WRITE);
		return false;
	}
	if (error != 0) {
		nvi_rx_complete_receive(ch, VIP_STATUS_OP_REMOTE_RDMA_WRITE | error, 0);
		return true;
	}
	vi_wqe(&ch->vi->rq, m->entry)->imm = s->arg;
	nvi_rx_count(ch, m->total);
	nvi_rx_complete_receive(ch, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE,
				m->total);
	return true;
}

/* Refuses a write: with immediate data the receive descriptor reports it, else an event does. */
static void refuse_write(struct nvi_chan *ch, const struct nvi_rx_slot *s)
{
	struct nvi_rx_message *m = &ch->rx.msg;
	bool raise;

	ch->vi->counters.ProtectionErrors++;
	if ((s->flags & W_F_IMM) && nvi_rx_take_receive(ch, 0) == W_ERR_NONE)
		m->status = VIP_STATUS_RDMA_PROT_ERROR;
	raise = !m->has_entry;
	nvi_rx_fail(ch, s, W_ERR_RDMA_PROT, VIP_STATUS_OP_REMOTE_RDMA_WRITE);
	if (raise)
		vi_event_raise(ch->vi->nic, ch->vi, VIP_RESOURCE_VI, VIP_ERROR_RDMAW_PROT);
}

/* Copies the fragment to dst; in the last fragment of a write the last bytes are stored last. */
static void place_write(struct nvi_chan *ch, const struct nvi_rx_slot *s, uint8_t *dst)
{
	uint8_t bytes[W_INLINE_MAX];

	if (s->buffered != NULL) {
		if (s->flags & W_F_LAST)
			u_copy_last_last(dst, s->buffered, s->frag);
		else
			u_copy_shared(dst, s->buffered, s->frag);
		return;
	}
	nvi_rx_payload(s, bytes, 0, s->frag);
	u_copy_last_last(dst, bytes, s->frag);
}

/* Takes in the first fragment of an RDMA write: refuses one to memory that the peer may not write. */
static void begin_write(struct nvi_chan *ch, const struct nvi_rx_slot *s)
{
	struct nvi_rx_message *m = &ch->rx.msg;

	m->discard = m->has_entry = false;
	m->status = 0;
	m->total = s->flags & W_F_LAST ? s->frag : s->arg;
	m->done = 0;
	m->rdma = s->rdma;
	if (u_unlikely(write_target(ch, m->total) == NULL))
		refuse_write(ch, s);
}

void nvi_rx_write(struct nvi_chan *ch, const struct nvi_rx_slot *s)
{
	struct nvi_rx_message *m = &ch->rx.msg;
	uint8_t *dst;

	if (s->flags & W_F_FIRST) {
		begin_write(ch, s);
		if (m->discard)
			return;
	}
	if (u_unlikely(m->discard))
		return;
	dst = write_target(ch, s->frag);
	if (u_unlikely(dst == NULL)) {
		refuse_write(ch, s);
		return;
	}
	if ((s->flags & W_F_PLACED) == 0)
		place_write(ch, s, dst);
	U_TRACE(payload_copied, ch, s->frag);
	m->done += s->frag;
	if (!(s->flags & W_F_LAST))
		return;
	if (s->flags & W_F_IMM)
		write_immediate(ch, s, 0);
	else
		nvi_rx_count(ch, m->total);
}

/* Only on the unreliable level does a correct sender continue after that. */
void nvi_rx_abort(struct nvi_chan *ch, const struct nvi_rx_slot *s)
{
	const uint32_t bits = VIP_STATUS_PARTIAL_ERROR | VIP_STATUS_TRANSPORT_ERROR;
	struct nvi_rx_message *m = &ch->rx.msg;

	if (nvi_rx_reliable(ch)) {
		nvi_rx_protocol_error(ch, s);
		return;
	}
	if (m->discard)
		return;
	m->discard = true;
	if (m->has_entry) {
		ch->vi->counters.Dropped++;
		nvi_rx_complete_receive(ch, VIP_STATUS_OP_RECEIVE | bits, 0);
	} else if (ch->rx.stream.imm == 0 || write_immediate(ch, s, bits)) {
		ch->vi->counters.Dropped++;
		if (ch->rx.stream.imm == 0)
			vi_event_raise(ch->vi->nic, ch->vi, VIP_RESOURCE_VI, VIP_ERROR_RDMAW_ABORT);
	}
}
