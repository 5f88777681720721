/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that continue over another path.
 *
 * A resumable channel is not broken when its link or a relay is lost.  It is suspended: slots that
 * came are consumed, the slices are unmapped, and memory of this process is mapped in their place.
 * The consumer notices nothing; its sends are written there while there is credit, and held (struct
 * nvi_retx_slot).  When the agents have found another path, each end reports how many slots it has
 * consumed.  Slots keep their numbers and their places in the payload buffer: each end publishes
 * again the slots that the other has not consumed.
 *
 * Payload in the payload buffer is copied from its source again.  The source still exists: a
 * descriptor whose data went through the payload buffer completes when the peer has consumed it.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "nvi_advert.h"
#include "nvi_answer.h"
#include "nvi_break.h"
#include "nvi_credit.h"
#include "nvi_grant.h"
#include "nvi_notify.h"
#include "nvi_parts.h"
#include "nvi_remote.h"
#include "nvi_resume.h"
#include "nvi_retransmit.h"
#include "nvi_tx.h"
#include "nvi_write.h"

/* ---- suspending ------------------------------------------------------------------------------ */

static size_t slice_bytes(uint32_t mask, uint32_t payload_bytes)
{
	return w_slice_bytes(mask + 1, payload_bytes);
}

/*
 * Makes memory in one piece for an inbound slice that no peer writes, and for an outbound one that no peer reads.  It
 * is mapped, so that only what is stored there costs time and memory.  0 or -ENOMEM.
 */
static int placeholder_make(struct nvi_chan *ch)
{
	size_t bytes = slice_bytes(ch->in_mask, ch->in_payload_bytes) +
		       slice_bytes(ch->out_mask, ch->out_payload_bytes);
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return -ENOMEM;
	madvise(mem, bytes, MADV_NOHUGEPAGE);
	ch->placeholder_mem = mem;
	ch->placeholder_bytes = bytes;
	return 0;
}

/* Puts the placeholder in place of both slices, with the credit taken in so far. */
static void placeholder_install(struct nvi_chan *ch)
{
	uint8_t *in = ch->placeholder_mem;
	uint8_t *out = in + slice_bytes(ch->in_mask, ch->in_payload_bytes);

	ch->out = (struct u_out){ 0 };
	ch->in_ctl = (struct w_control *)in;
	ch->in_slots = (struct w_slot *)(in + W_SLICE_FIFO);
	ch->in_payload = in + w_slice_payload(ch->in_mask + 1);
	ch->out_ctl = (struct w_control *)out;
	ch->out_slots = (struct w_slot *)(out + W_SLICE_FIFO);
	ch->out_payload = out + w_slice_payload(ch->out_mask + 1);
	atomic_store(&ch->in_ctl->credit, atomic_load(&ch->tx.credit));
}

static void unmap(struct nvi_chan *ch)
{
	port_unmap(ch->port, &ch->in_map);
	port_unmap(ch->port, &ch->out_map);
	memset(&ch->in_map, 0, sizeof(ch->in_map));
	memset(&ch->out_map, 0, sizeof(ch->out_map));
}

/* Is the channel resumable, and still used for this live connection? */
static bool may_go_on(struct nvi_chan *ch, struct nvi_nic *nic, uint64_t conn)
{
	return ch->retx != NULL && nvi_chan_is_live(nic, ch, conn);
}

/*
 * Lists the channel as polled: neither end was asked to ring over the new slices.  0 or -ENOMEM.  Caller holds
 * both locks; the channel is not listed.
 */
static int list_anew(struct nvi_chan *ch)
{
	ch->tx.rung = 0;
	ch->arm.polled_notify = ch->arm.quiet = ch->arm.moves = 0;
	return nvi_chan_list(ch);
}

/*
 * Puts the placeholder in the slices' place, unless it is there already, and says what was consumed.  0, -ENOMEM, or
 * -EPROTO: the peer's credit is wrong.  Caller holds both locks, and has called nvi_chan_unwatch().
 */
static int suspend(struct nvi_chan *ch, struct w_consumed *consumed_out)
{
	if (nvi_tx_credit(ch) < 0)
		return -EPROTO;
	if (ch->placeholder_mem == NULL) {
		if (placeholder_make(ch) != 0)
			return -ENOMEM;
		nvi_writes_flush(ch);
		nvi_answer_anew(ch);
		nvi_grants_drop(ch);
		nvi_remotes_lose(ch);
		ch->tx.unheard = true;
		nvi_chan_unlist(ch);
		unmap(ch);
		placeholder_install(ch);
		if (list_anew(ch) != 0)
			return -ENOMEM;
		/*
		 * The last slots may hold reads of the peer to answer, for which no other thread
		 * makes progress.
		 */
		nvi_tx_progress(ch);
	}
	consumed_out->slots = atomic_load_explicit(&ch->rx.seq, memory_order_relaxed);
	consumed_out->cursor = (uint32_t)ch->rx.cursor & (ch->in_payload_bytes - 1);
	return 0;
}

int nvi_chan_suspend(struct nvi_chan *ch, struct nvi_nic *nic, uint64_t conn,
		     struct w_consumed *consumed_out)
{
	struct vi_vi *vi = ch->vi;
	int err = -ENOTCONN;

	nvi_chan_unwatch(ch);
	u_biased_take(&vi->rx_lock);
	if (may_go_on(ch, nic, conn)) {
		nvi_rx_drain(ch);
		u_biased_take(&vi->tx_lock);
		/* One of the last slots may have broken the connection. */
		if (may_go_on(ch, nic, conn) && !nvi_chan_breaks(ch))
			err = suspend(ch, consumed_out);
		u_biased_drop(&vi->tx_lock);
	}
	nvi_chan_unwatched(ch);
	u_biased_drop(&vi->rx_lock);
	return err;
}

/* ---- resuming -------------------------------------------------------------------------------- */

static bool same_geometry(const struct nvi_chan *ch, const struct w_linked *linked)
{
	return linked->inbound.slots == ch->in_mask + 1 &&
	       linked->inbound.payload_bytes == ch->in_payload_bytes &&
	       linked->outbound.slots == ch->out_mask + 1 &&
	       linked->outbound.payload_bytes == ch->out_payload_bytes;
}

/*
 * Takes the peer's count of consumed slots as credit; its place in the payload buffer must be the
 * one that follows from that.  0 or -EPROTO; the credit may have been taken in also then.
 */
static int take_consumed(struct nvi_chan *ch, const struct w_consumed *consumed)
{
	uint32_t cursor;

	if (nvi_tx_take_credit(ch, consumed->slots) < 0)
		return -EPROTO;
	cursor = (uint32_t)ch->tx.consumed & (ch->out_payload_bytes - 1);
	return cursor == consumed->cursor ? 0 : -EPROTO;
}

/* Gives the channel the parts `p`, and puts its old ones into `p`.  Caller holds both locks. */
static void change_parts(struct nvi_chan *ch, const struct w_linked *linked, struct nvi_parts *p)
{
	struct nvi_parts old = { .port = ch->port_use,
				 .placeholder_mem = ch->placeholder_mem,
				 .placeholder_bytes = ch->placeholder_bytes };
	uint64_t *payload_after = p->payload_after;
	struct nvi_retx_slot *retx = p->retx;

	p->payload_after = ch->tx.after;
	p->retx = ch->retx;
	ch->placeholder_mem = NULL;
	nvi_chan_place(ch, linked, p);
	*p = old;
	p->payload_after = payload_after;
	p->retx = retx;
}

/*
 * Moves the channel to the new parts `p`, and publishes again what the peer has not consumed.  `p` gets the old
 * parts.  0, also if a source is gone: then a fault is marked; -ENOMEM, or -EPROTO: the peer's count is wrong.  Caller
 * holds both locks.
 */
static int resume(struct nvi_chan *ch, const struct w_linked *linked, struct nvi_parts *p)
{
	uint32_t consumed = atomic_load_explicit(&ch->rx.seq, memory_order_relaxed);
	int err = take_consumed(ch, &linked->consumed);

	if (err != 0)
		return err;
	nvi_chan_unlist(ch);
	change_parts(ch, linked, p);
	/* The peer stores its next credit here only after it has consumed another slot. */
	atomic_store(&ch->in_ctl->credit, linked->consumed.slots);
	nvi_count_returned(ch, consumed);
	ch->rx.cursor_credited = ch->rx.cursor;
	ch->rx.due = consumed + ch->in_mask / 4 + 1;
	if (list_anew(ch) != 0)
		return -ENOMEM;
	nvi_adverts_again(ch);
	/* If a source is gone, the connection is marked to be broken. */
	if (nvi_retransmit(ch) == 0) {
		nvi_ring_slots(ch);
		/* Continues sends that waited for the credit just taken in. */
		nvi_tx_progress(ch);
	}
	return 0;
}

int nvi_chan_resume(struct nvi_chan *ch, struct nvi_nic *nic, const struct w_linked *linked,
		    int fd_in, int fd_out)
{
	struct vi_vi *vi = ch->vi;
	struct nvi_parts parts = { 0 };
	int err = nvi_parts_make(nic, linked, fd_in, fd_out, &parts);

	if (err == 0) {
		vi_lock_both(vi);
		if (may_go_on(ch, nic, linked->conn) && ch->placeholder_mem != NULL &&
		    same_geometry(ch, linked))
			err = resume(ch, linked, &parts);
		else
			err = -ENOTCONN;
		vi_unlock_both(vi);
	}
	nvi_parts_free(&parts);
	return err;
}

void nvi_chan_confirmed(struct nvi_chan *ch, struct nvi_nic *nic, uint64_t conn)
{
	u_biased_take(&ch->vi->tx_lock);
	if (nvi_chan_is_live(nic, ch, conn))
		ch->tx.unheard = false;
	u_biased_drop(&ch->vi->tx_lock);
}
