/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "vi_cq_list.h"
#include "vi_cq_poll.h"
#include "vi_many.h"
#include "vi_post_hot.h"
#include "vi_take_hot.h"

/* ---- posting --------------------------------------------------------------------------------- */

/*
 * Is it a plain send of `length` bytes, in the regions that the queue used last?  Then *at_out is its memory.  Caller
 * holds tx_lock.
 */
static inline bool may_pack(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle,
			    uint32_t length, uint8_t **at_out)
{
	struct vi_wq *sq = &vi->sq;
	const VIP_DATA_SEGMENT *seg;
	uint64_t addr;

	if (u_unlikely(desc == NULL) ||
	    !vi_desc_open(sq, desc, handle, vi_tpt_version(&vi->nic->tpt)) ||
	    __atomic_load_n(&desc->CS.Length, __ATOMIC_RELAXED) != length)
		return false;
	seg = &desc->DS[0].Local;
	addr = __atomic_load_n(&seg->Data.AddressBits, __ATOMIC_RELAXED);
	if (u_unlikely(__atomic_load_n(&desc->CS.SegCount, __ATOMIC_RELAXED) != 1 ||
		       __atomic_load_n(&desc->CS.Control, __ATOMIC_RELAXED) != 0 ||
		       __atomic_load_n(&seg->Length, __ATOMIC_RELAXED) != length ||
		       !vi_data_open(sq, seg, addr, length)))
		return false;
	*at_out = (uint8_t *)(uintptr_t)addr;
	return true;
}

/*
 * Finds how many of all->descs, which are `count`, may go together, from the first on, with `most` bytes in all: sets
 * all->count and all->at.  The other fields are set already.  Caller holds tx_lock.
 */
static void gather(struct vi_vi *vi, struct vi_packed *all, uint64_t count, uint32_t most)
{
	const struct vi_wq *sq = &vi->sq;
	uint32_t left = most;

	count = u_min64(count, VI_PACKED_MOST);
	count = u_min64(count, sq->mask + 1 - (sq->tail - sq->head));
	all->count = 0;
	while (all->count < count && all->length <= left &&
	       may_pack(vi, all->descs[all->count], all->handle, all->length,
			&all->at[all->count])) {
		U_TRACE(post_entered, vi, all->descs[all->count]);
		left -= all->length;
		all->count++;
	}
}

/*
 * Posts the first descriptors together if they are short sends of one length.  Returns how many, or 0: nothing was
 * done, and the first has to go alone.  Caller holds tx_lock.
 */
static uint32_t post_packed(struct vi_vi *vi, VIP_DESCRIPTOR *const *descs, uint64_t count,
			    VIP_MEM_HANDLE handle)
{
	const uint32_t most = vi->fast->packed_max;
	struct vi_packed all;

	if (count < 2 || descs[0] == NULL || vi->sq.next != vi->sq.tail ||
	    vi_state(vi) != VIP_STATE_CONNECTED ||
	    !vi_desc_open(&vi->sq, descs[0], handle, vi_tpt_version(&vi->nic->tpt)))
		return 0;
	all.length = __atomic_load_n(&descs[0]->CS.Length, __ATOMIC_RELAXED);
	if (all.length > most / 2 || all.length > vi->max_transfer)
		return 0;
	all.descs = descs;
	all.handle = handle;
	gather(vi, &all, count, most);
	if (all.count < 2 || !vi->fast->send_packed(vi, &all))
		return 0;
	vi->counters.SendsPosted += all.count;
	return all.count;
}

/*
 * Posts one send, in whatever way it can go: 0, or -EINVAL, -ENOBUFS or -ENOMEM; -EINVAL without an event for NULL.
 * Caller holds tx_lock.
 */
static int post_send(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	U_TRACE(post_entered, vi, desc);
	if (u_unlikely(desc == NULL))
		return -EINVAL;
	return u_likely(vi_post_plain(vi, desc, handle)) ? 0 : vi_post_send_any(vi, desc, handle);
}

int vi_post_sends(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *const *descs, uint64_t count,
		  VIP_MEM_HANDLE handle, uint64_t *posted_out)
{
	uint64_t i = 0;
	uint32_t packed;
	int err = 0;

	u_biased_take(&vi->tx_lock);
	if (u_unlikely(vi_stale(vi, id)))
		err = -EINVAL;
	while (err == 0 && i < count) {
		u_prefetch_write(atomic_load_explicit(&vi->prefetch, memory_order_relaxed));
		packed = post_packed(vi, descs + i, count - i, handle);
		if (packed == 0)
			err = post_send(vi, descs[i], handle);
		i += packed != 0 ? packed : err == 0;
	}
	u_biased_drop(&vi->tx_lock);
	*posted_out = i;
	return err;
}

/*
 * Appends descriptors while they are plain and there is room, and counts them; returns how many, 0 also while receives
 * go to window memory.  Caller holds rx_lock, and calls vi_wq_heat().
 */
static uint32_t append_plain_recvs(struct vi_vi *vi, VIP_DESCRIPTOR *const *descs, uint64_t count,
				   VIP_MEM_HANDLE handle)
{
	const uint64_t version = vi_tpt_version(&vi->nic->tpt);
	struct vi_wq *rq = &vi->rq;
	const uint32_t tail = rq->tail, room = rq->mask + 1 - (tail - rq->head);
	uint32_t n = 0;

	/* The provider is told of each receive in window memory, so these are posted one by one. */
	if (u_unlikely(vi_recv_in_window(vi)))
		return 0;
	count = u_min64(count, room);
	while (n < count && descs[n] != NULL &&
	       vi_fill_plain_recv(vi, vi_wqe(rq, tail + n), descs[n], handle, version))
		n++;
	rq->tail = tail + n;
	vi->counters.RecvsPosted += n;
	return n;
}

/*
 * Posts one receive: 0, or -EINVAL, -ENOBUFS or -ENOMEM; -EINVAL without an event for NULL.  Caller holds rx_lock, and
 * calls vi_wq_heat().
 */
static int post_recv(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	if (u_unlikely(desc == NULL))
		return -EINVAL;
	if (u_unlikely(!vi_append_plain_recv(vi, desc, handle)))
		return vi_post_recv_any(vi, desc, handle);
	if (u_unlikely(vi_recv_in_window(vi)))
		vi_recv_posted(vi);
	return 0;
}

int vi_post_recvs(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *const *descs, uint64_t count,
		  VIP_MEM_HANDLE handle, uint64_t *posted_out)
{
	uint64_t i = 0;
	int err = 0;

	u_biased_take(&vi->rx_lock);
	if (u_unlikely(vi_stale(vi, id)))
		err = -EINVAL;
	while (err == 0 && i < count) {
		i += append_plain_recvs(vi, descs + i, count - i, handle);
		if (i < count) {
			err = post_recv(vi, descs[i], handle);
			i += err == 0;
		}
	}
	if (i > 0)
		vi_wq_heat(&vi->rq);
	u_biased_drop(&vi->rx_lock);
	*posted_out = i;
	return err;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/*
 * Moves complete descriptors from the queue to `descs`, after the *count that are there, up to `max` in all and up to
 * one with an error; adds them to *count.  2: the last has an error; 1: *count is not 0, and the new ones are without
 * error; 0: there are none.  Caller holds the queue's lock.
 */
static inline int pop_many(struct vi_wq *wq, VIP_DESCRIPTOR **descs, uint64_t max, uint64_t *count)
{
	const uint32_t head = wq->head;
	const uint32_t ready = atomic_load_explicit(&wq->done, memory_order_relaxed) - head;
	const uint32_t n = (uint32_t)u_min64(max - *count, ready);
	uint32_t status = 0, i = 0;

	while (i < n && u_likely((status & VIP_STATUS_ERROR_MASK) == 0)) {
		const struct vi_wqe *wqe = vi_wqe(wq, head + i);

		status = wqe->status;
		descs[*count + i] = wqe->desc;
		i++;
		U_TRACE(completion_taken, wqe->desc, wqe->status);
	}
	wq->head = head + i;
	*count += i;
	if (u_unlikely((status & VIP_STATUS_ERROR_MASK) != 0))
		return 2;
	return *count > 0;
}

int vi_sends_done(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **descs, uint64_t max,
		  uint64_t *count_out)
{
	uint64_t count = 0;
	int got = -EINVAL;

	max = u_min64(max, VI_TAKE_MOST);
	u_biased_take(&vi->tx_lock);
	if (u_likely(!vi_stale(vi, id))) {
		got = pop_many(&vi->sq, descs, max, &count);
		if (got == 0 && !vi_wq_empty(&vi->sq)) {
			got = vi_send_done_slow(vi, descs);
			*count_out = got > 0;
			return got == -ENOENT ? 0 : got;
		}
	}
	u_biased_drop(&vi->tx_lock);
	*count_out = count;
	return got;
}

/*
 * Processes arrived messages, and moves what they complete to `descs` as pop_many(), which sets *got, until a poll
 * completes none: a peer can keep a queue busy for ever with slots that complete nothing, such as those of RDMA
 * writes.  Returns the OR of what poll_recv() returned.  Caller holds rx_lock.
 */
static int take_arrivals(struct vi_vi *vi, VIP_DESCRIPTOR **descs, uint64_t max, uint64_t *count,
			 int *got)
{
	int came = 0, once = VI_POLL_MOVED;
	uint64_t before = UINT64_MAX;

	while (*got != 2 && *count < max && *count != before && !vi_wq_empty(&vi->rq) &&
	       once == VI_POLL_MOVED) {
		before = *count;
		once = vi->fast->poll_recv(vi);
		came |= once;
		if (once & VI_POLL_MOVED)
			*got = pop_many(&vi->rq, descs, max, count);
	}
	return came;
}

int vi_recvs_done(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **descs, uint64_t max,
		  uint64_t *count_out)
{
	uint64_t count = 0;
	int got, came;

	max = u_min64(max, VI_TAKE_MOST);
	*count_out = 0;
	u_biased_take(&vi->rx_lock);
	if (u_unlikely(vi_stale(vi, id))) {
		u_biased_drop(&vi->rx_lock);
		return -EINVAL;
	}
	got = pop_many(&vi->rq, descs, max, &count);
	came = take_arrivals(vi, descs, max, &count, &got);
	if (u_unlikely(count == 0)) {
		if (came == 0 && !vi_nothing_rung(vi)) {
			u_biased_drop(&vi->rx_lock);
			return 0;
		}
		got = vi_recv_done_slow(vi, descs, came);
		*count_out = got > 0;
		return got == -ENOENT ? 0 : got;
	}
	u_biased_drop(&vi->rx_lock);
	*count_out = count;
	if (u_unlikely(came & VI_POLL_PROGRESS))
		vi->fast->progress(vi);
	return got;
}

/* ---- taking of a CQ --------------------------------------------------------------------------- */

#define TAKE_OF_ONE 16u /* entries of one queue before another has its turn */

/* The place of the next completion, and the number of those that still fit. */
struct taken {
	uint8_t *at;
	size_t stride;
	uint64_t left;
};

/* Writes the next completion, for which there is room, for the entry that was dequeued last. */
static void append_taken(struct taken *t, struct vi_wq *wq, uint64_t id, VIP_DESCRIPTOR *desc)
{
	const struct vi_wqe *wqe = vi_wqe(wq, wq->head - 1);
	VIPX_COMPLETION *c = (VIPX_COMPLETION *)(void *)t->at;

	c->ViHandle = vi_id_handle(id);
	c->Context = wq->vi->context;
	c->DescriptorPtr = desc;
	c->RecvQueue = wq->is_recv ? VIP_TRUE : VIP_FALSE;
	c->Status = wqe->status;
	c->Length = wqe->length;
	c->Reserved = 0;
	t->at += t->stride;
	t->left--;
}

/*
 * The queue has no complete entry left: has another one arrived?  Processes what arrived, unless no receive is posted,
 * when polls do that, and adds the result of poll_recv() to *came.  False for a send queue.  Caller holds the queue's
 * lock.
 */
static bool another_came(struct vi_wq *wq, int *came)
{
	struct vi_vi *vi = wq->vi;

	if (!wq->is_recv || vi_wq_empty(wq))
		return false;
	*came |= vi->fast->poll_recv(vi);
	return vi_wq_entries(wq) != 0;
}

/*
 * Takes completions, and their descriptors, of a queue from which one entry was taken, up to TAKE_OF_ONE and to the
 * room.  Caller holds cq->lock; takes the queue's lock.
 */
static void take_of_queue(struct vi_wq *wq, struct taken *t)
{
	struct vi_vi *vi = wq->vi;
	struct u_biased *lock = vi_wq_lock(wq);
	VIP_DESCRIPTOR *desc;
	int came = 0;
	uint64_t id;

	u_biased_take(lock);
	id = atomic_load_explicit(&vi->id, memory_order_relaxed);
	for (uint32_t n = 1;; n++) {
		if (vi_wq_pop(wq, &desc) > 0)
			append_taken(t, wq, id, desc);
		else
			vi_wq_reap_all(wq);
		if (n == TAKE_OF_ONE || t->left == 0 ||
		    (vi_wq_entries(wq) == 0 && !another_came(wq, &came)))
			break;
		vi_wq_reap(wq);
	}
	u_biased_drop(lock);
	if (u_unlikely(came & VI_POLL_PROGRESS))
		vi->fast->progress(vi);
}

int vi_cq_take_many(struct vi_cq *cq, uint64_t id, void *out, size_t stride, uint64_t max,
		    uint64_t *count_out)
{
	const uint64_t most = u_min64(max, VI_TAKE_MOST);
	struct taken t = { .at = out, .stride = stride, .left = most };
	struct vi_wq *wq;
	int err = 0;

	u_biased_take(&cq->lock);
	if (u_unlikely(atomic_load_explicit(&cq->id, memory_order_relaxed) != id))
		err = -EINVAL;
	/* Bounded: others may take descriptors without end, and leave entries; but a queue has none after one turn. */
	for (uint64_t n = 0; err == 0 && n < most + cq->attached && t.left > 0; n++) {
		if (!vi_cq_poll_locked(cq, t.left == most, &wq))
			break;
		take_of_queue(wq, &t);
	}
	u_biased_drop(&cq->lock);
	*count_out = most - t.left;
	return err != 0 ? err : *count_out > 0;
}
