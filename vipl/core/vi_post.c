/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting descriptors, except the usual case. */
#include "vi_post.h"

#include <errno.h>

#include "vi_event.h"
#include "vi_post_hot.h"

/* The descriptor is not read: only its queue is known, not its operation. */
U_COLD int vi_refuse_post(struct vi_wq *wq, VIP_DESCRIPTOR *desc, int err)
{
	uint32_t op = wq->is_recv ? VIP_STATUS_OP_RECEIVE : VIP_STATUS_OP_SEND;

	if (err == -EINVAL)
		vi_event_raise_desc(wq, desc, op, VIP_RESOURCE_DESCRIPTOR, VIP_ERROR_POST_DESC);
	else if (err == -ENOBUFS)
		vi_event_raise_desc(wq, desc, op, VIP_RESOURCE_VI, VIP_ERROR_VI_OVERRUN);
	return err;
}

bool vi_post_plain_write(struct vi_vi *vi, VIP_DESCRIPTOR *desc)
{
	const VIP_ADDRESS_SEGMENT *remote = &desc->DS[0].Remote;
	const VIP_DATA_SEGMENT *seg = &desc->DS[1].Local;
	uint32_t length = __atomic_load_n(&desc->CS.Length, __ATOMIC_RELAXED);
	uint64_t addr = __atomic_load_n(&seg->Data.AddressBits, __ATOMIC_RELAXED);
	struct vi_wq *sq = &vi->sq;

	if (__atomic_load_n(&desc->CS.Control, __ATOMIC_RELAXED) != VIP_CONTROL_OP_RDMAWRITE ||
	    __atomic_load_n(&seg->Length, __ATOMIC_RELAXED) != length ||
	    length > vi->max_transfer || !vi_data_open(sq, seg, addr, length) ||
	    vi_state(vi) != VIP_STATE_CONNECTED || !vi_sq_idle(sq) ||
	    !vi->fast->write_unqueued(vi, (const uint8_t *)(uintptr_t)addr, length,
				      __atomic_load_n(&remote->Data.AddressBits, __ATOMIC_RELAXED),
				      __atomic_load_n(&remote->Handle, __ATOMIC_RELAXED)))
		return false;
	vi_sq_append_done(sq, desc, length, VIP_STATUS_OP_RDMA_WRITE);
	vi_sq_announce_done(sq);
	return true;
}

int vi_post_send_rest(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	int err = desc != NULL ? vi_post_send_any(vi, desc, handle) : -EINVAL;

	u_biased_drop(&vi->tx_lock);
	return err;
}

int vi_post_recv_rest(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	int err = desc != NULL ? vi_post_recv_any(vi, desc, handle) : -EINVAL;

	u_biased_drop(&vi->rx_lock);
	return err;
}

void vi_recv_posted(struct vi_vi *vi)
{
	struct vi_wq *rq = &vi->rq;

	if (vi_recv_in_window(vi) && vi_wqe(rq, rq->tail - 1)->at_len >= VI_LONG_RECV)
		vi->fast->recv_posted(vi);
}

int vi_post_recv_appended(struct vi_vi *vi)
{
	vi_recv_posted(vi);
	vi_wq_heat(&vi->rq);
	u_biased_drop(&vi->rx_lock);
	return 0;
}

U_COLD int vi_drop_stale(struct u_biased *lock, uint64_t id)
{
	u_biased_drop(lock);
	u_idtab_refused(id);
	return -EINVAL;
}

int vi_post_send_shared(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	u_biased_slow(&vi->tx_lock);
	return vi_post_send_locked(vi, id, desc, handle);
}

int vi_post_recv_shared(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	u_biased_slow(&vi->rx_lock);
	return vi_post_recv_locked(vi, id, desc, handle);
}

#define CHECK_SHORT 1

/* Does it have one local segment after the address segment, no immediate data and no fence? */
static bool is_plain_rdma(const struct vi_checked *checked)
{
	return checked->segs == 2 && (checked->control == VIP_CONTROL_OP_RDMAWRITE ||
				      checked->control == VIP_CONTROL_OP_RDMAREAD);
}

/*
 * Checks the descriptor's memory and reads its control segment, once.  -EINVAL: not
 * aligned, or not in memory that `handle` opens to the VI.
 *
 * The data of a plain descriptor is checked too; that holds until something is deregistered.  One that
 * is not plain, or not valid, is left to the checks of vi_sg.c when its turn comes.  CHECK_SHORT: a
 * plain receive, but not all of its memory is registered for writing.  out->at is NULL unless the data was checked.
 * Caller holds the queue's lock.
 *
 * All loads are as wide as the consumer's stores: a wider one would have to wait until those have
 * left the store buffer, perhaps after a store to a cache line that the peer holds.
 *
 * vi_post_hot.h has the same check for a plain descriptor whose regions are those that the queue used
 * last: vi_desc_open() and vi_data_open().
 */
static inline __attribute__((always_inline)) int check(struct vi_wq *wq, bool is_recv,
						       const VIP_DESCRIPTOR *desc, uint32_t handle,
						       struct vi_checked *out)
{
	const struct vi_vi *vi = wq->vi;
	const VIP_DATA_SEGMENT *seg;
	const uint32_t access = is_recv ? VI_WRITE : VI_READ;
	uint32_t more = 0; /* rights in addition to `access` */
	uint64_t addr;
	uint32_t len;

	out->tpt_version = vi_tpt_version(&vi->nic->tpt);
	if (u_unlikely(wq->tpt_version != out->tpt_version))
		vi_wq_forget_regions(wq, out->tpt_version);
	if (u_unlikely((uintptr_t)desc % VIP_DESCRIPTOR_ALIGNMENT != 0 ||
		       !vi_tpt_cache_allows(&wq->desc_cache, vi, handle, (uintptr_t)desc,
					    sizeof(*desc), VI_READ | VI_WRITE, sizeof(*desc))))
		return -EINVAL;
	out->at = NULL;
	out->at_len = 0;
	out->segs = __atomic_load_n(&desc->CS.SegCount, __ATOMIC_RELAXED);
	out->control = __atomic_load_n(&desc->CS.Control, __ATOMIC_RELAXED);
	out->imm = __atomic_load_n(&desc->CS.ImmediateData, __ATOMIC_RELAXED);
	out->length = __atomic_load_n(&desc->CS.Length, __ATOMIC_RELAXED);
	seg = &desc->DS[0].Local;
	if (u_unlikely(out->segs != 1 || (out->control & ~VIP_CONTROL_IMMEDIATE) != 0)) {
		if (is_recv || !is_plain_rdma(out))
			return 0;
		seg = &desc->DS[1].Local;
		more = out->control == VIP_CONTROL_OP_RDMAREAD ? VI_WRITE : 0;
	}
	addr = __atomic_load_n(&seg->Data.AddressBits, __ATOMIC_RELAXED);
	len = __atomic_load_n(&seg->Length, __ATOMIC_RELAXED);
	if (!is_recv && u_unlikely(len != out->length || len > vi->max_transfer))
		return 0;
	/* The `least` of 1 refuses a segment without data, too: it has no memory to use. */
	if (u_unlikely(!vi_tpt_cache_allows(&wq->data_cache, vi,
					    __atomic_load_n(&seg->Handle, __ATOMIC_RELAXED), addr,
					    len, access, 1) ||
		       (wq->data_cache.rights & more) != more))
		return is_recv ? CHECK_SHORT : 0;
	out->at = (uint8_t *)(uintptr_t)addr;
	out->at_len = len;
	return 0;
}

int vi_post_send_any(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	struct vi_wq *sq = &vi->sq;
	const uint64_t version = sq->tpt_version, desc_region = sq->desc_cache.handle,
		       data_region = sq->data_cache.handle;
	struct vi_checked checked;
	int err = check(sq, false, desc, handle, &checked);

	/* If vi_post_plain() only missed the regions: the queue's caches hold them now. */
	if (err == 0 && checked.at != NULL &&
	    (sq->tpt_version != version || sq->desc_cache.handle != desc_region ||
	     sq->data_cache.handle != data_region) &&
	    vi_post_plain(vi, desc, handle))
		return 0;
	if (u_likely(err == 0))
		err = vi_wq_push(sq, desc, handle, &checked);
	if (u_unlikely(err != 0))
		return vi_refuse_post(sq, desc, err);
	vi->counters.SendsPosted++;
	/* It may complete only when credit has come, for which no word is watched. */
	if (sq->cq != NULL)
		vi_cq_mark(sq);
	if (u_likely(vi_state(vi) == VIP_STATE_CONNECTED))
		vi->fast->post_send(vi);
	else
		vi_wq_flush_new(sq, VIP_STATUS_DESC_FLUSHED_ERROR);
	return 0;
}

int vi_post_recv_any(struct vi_vi *vi, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	struct vi_checked checked;
	int err = check(&vi->rq, true, desc, handle, &checked);

	if (err == 0)
		err = vi_wq_push(&vi->rq, desc, handle, &checked);
	else if (err == CHECK_SHORT)
		err = vi_wq_push_short(&vi->rq, desc, handle, &checked);
	if (u_unlikely(err != 0))
		return vi_refuse_post(&vi->rq, desc, err);
	vi->counters.RecvsPosted++;
	vi_wq_heat(&vi->rq);
	if (u_unlikely(vi_state(vi) == VIP_STATE_ERROR))
		vi_wq_flush(&vi->rq, VIP_STATUS_DESC_FLUSHED_ERROR);
	else
		vi_recv_posted(vi);
	return 0;
}
