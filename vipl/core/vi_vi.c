/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual interfaces: creation and destruction, attributes, states. */
#include <errno.h>
#include <string.h>

#include "vi_cq.h"
#include "vi_event.h"
#include "vi_objects.h"
#include "vi_provider.h"
#include "vi_ptag.h"
#include "vi_vi.h"
#include "vi_wq.h"

struct vi_pool vi_vi_pool = {
	.size = sizeof(struct vi_vi),
	.link = offsetof(struct vi_vi, pool_link),
};

void vi_set_state(struct vi_vi *vi, VIP_VI_STATE state)
{
	vi->unqueued_max = state == VIP_STATE_CONNECTED
				   ? (uint32_t)u_min64(vi->fast->unqueued_max, vi->max_transfer)
				   : 0;
	if (state != VIP_STATE_CONNECTED)
		vi_prefetch_hint(vi, vi);
	atomic_store_explicit(&vi->state, (uint32_t)state, memory_order_release);
}

void vi_lock_both(struct vi_vi *vi)
{
	u_biased_take(&vi->rx_lock);
	u_biased_take(&vi->tx_lock);
}

void vi_unlock_both(struct vi_vi *vi)
{
	u_biased_drop(&vi->tx_lock);
	u_biased_drop(&vi->rx_lock);
}

U_COLD void vi_break(struct vi_vi *vi, uint32_t how, VIP_ERROR_CODE event)
{
	if (vi_state(vi) != VIP_STATE_CONNECTED)
		return;
	vi_set_state(vi, VIP_STATE_ERROR);
	vi->counters.ConnectionsLost++;
	if ((how & VI_BREAK_KEEP_SENDS) == 0)
		vi_wq_flush(&vi->sq, VIP_STATUS_DESC_FLUSHED_ERROR);
	vi_wq_flush(&vi->rq, VIP_STATUS_DESC_FLUSHED_ERROR);
	if (how & VI_BREAK_RAISE)
		vi_event_raise_broken(vi, event, (how & VI_BREAK_QUIET) != 0);
}

/* ---- attributes ----------------------------------------------------------------------------- */

/* 0, or the error of the first attribute that the NIC does not allow: -EPROTOTYPE, -EMSGSIZE, -EDOM. */
static int check_attrs(const struct vi_nic *nic, const VIP_VI_ATTRIBUTES *attrs)
{
	uint32_t level = attrs->ReliabilityLevel;

	if (level == 0 || (level & (level - 1)) != 0 ||
	    (level & nic->attrs.ReliabilityLevelSupport) == 0)
		return -EPROTOTYPE;
	if (attrs->MaxTransferSize == 0 || attrs->MaxTransferSize > nic->attrs.MaxTransferSize)
		return -EMSGSIZE;
	if (attrs->QoS != NULL)
		return -EDOM;
	return 0;
}

/*
 * 0, or -EACCES: RDMA reads are enabled, which the level does not have.  Called after the tag was checked: an error
 * of the tag is reported first.
 */
static int check_read(const struct vi_nic *nic, const VIP_VI_ATTRIBUTES *attrs)
{
	if (!attrs->EnableRdmaRead || (attrs->ReliabilityLevel & nic->attrs.RDMAReadSupport) != 0)
		return 0;
	return -EACCES;
}

/*
 * Checks all attributes and takes a use of the tag; *ptag_out is NULL for the default tag.  0, or an error of
 * check_attrs(), vi_ptag_get() or check_read(), and no use is taken.  Caller holds nic->lock.
 */
static int take_attrs(struct vi_nic *nic, const VIP_VI_ATTRIBUTES *attrs, struct vi_ptag **ptag_out)
{
	int err = check_attrs(nic, attrs);

	if (err == 0)
		err = vi_ptag_get(nic, vi_handle_id(attrs->Ptag), ptag_out);
	if (err != 0)
		return err;
	err = check_read(nic, attrs);
	if (err != 0)
		vi_ptag_put(*ptag_out);
	return err;
}

/*
 * Stores the attributes, and the use of the tag that take_attrs() took; the use of the old tag is for the caller to
 * end.  Caller holds both queue locks and nic->lock.
 */
static void set_attrs(struct vi_vi *vi, const VIP_VI_ATTRIBUTES *attrs, struct vi_ptag *ptag)
{
	vi->attrs = *attrs;
	vi->ptag_ref = ptag;
	vi->ptag = vi_handle_id(attrs->Ptag);
	vi->level = attrs->ReliabilityLevel;
	vi->max_transfer = attrs->MaxTransferSize;
	vi->rdma_write = attrs->EnableRdmaWrite != VIP_FALSE;
	vi->rdma_read = attrs->EnableRdmaRead != VIP_FALSE;
}

int vi_vi_set(struct vi_vi *vi, const VIP_VI_ATTRIBUTES *attrs)
{
	struct vi_nic *nic = vi->nic;
	struct vi_ptag *ptag;
	int err;

	pthread_mutex_lock(&nic->lock);
	err = vi_state(vi) != VIP_STATE_IDLE ? -EISCONN : take_attrs(nic, attrs, &ptag);
	if (err == 0) {
		vi_lock_both(vi);
		if (vi_state(vi) == VIP_STATE_IDLE) {
			vi_ptag_put(vi->ptag_ref);
			set_attrs(vi, attrs, ptag);
			/* Receives that are posted already were checked with the old tag. */
			vi_tpt_change(nic);
		} else {
			vi_ptag_put(ptag);
			err = -EISCONN;
		}
		vi_unlock_both(vi);
	}
	pthread_mutex_unlock(&nic->lock);
	return err;
}

void vi_vi_query(struct vi_vi *vi, VIP_VI_STATE *state_out, VIP_VI_ATTRIBUTES *attrs_out,
		 bool *send_empty_out, bool *recv_empty_out)
{
	vi_lock_both(vi);
	*state_out = vi_state(vi);
	*attrs_out = vi->attrs;
	*send_empty_out = vi_wq_empty(&vi->sq);
	*recv_empty_out = vi_wq_empty(&vi->rq);
	vi_unlock_both(vi);
}

void vi_vi_set_context(struct vi_vi *vi, void *context)
{
	vi_lock_both(vi);
	vi->context = context;
	vi_unlock_both(vi);
}

/* ---- create --------------------------------------------------------------------------------- */

/* Enters the VI into the NIC's list and count.  Caller holds nic->lock. */
static void link_vi(struct vi_nic *nic, struct vi_vi *vi)
{
	vi->prev = NULL;
	vi->next = nic->vis;
	if (nic->vis != NULL)
		nic->vis->prev = vi;
	nic->vis = vi;
	nic->vi_count++;
}

/* Takes the VI off the NIC's list and count.  Caller holds nic->lock. */
static void unlink_vi(struct vi_nic *nic, struct vi_vi *vi)
{
	if (vi->prev != NULL)
		vi->prev->next = vi->next;
	else
		nic->vis = vi->next;
	if (vi->next != NULL)
		vi->next->prev = vi->prev;
	nic->vi_count--;
}

/*
 * Takes a use of the tag for the VI, makes it Idle, and enters it into the list of the NIC's VIs.  0; or an error of
 * take_attrs(), or -ENOSPC: too many VIs, and nothing was done.  Takes nic->lock and both queue locks.
 */
static int enter(struct vi_nic *nic, struct vi_vi *vi, const VIP_VI_ATTRIBUTES *attrs)
{
	struct vi_ptag *ptag;
	int err;

	pthread_mutex_lock(&nic->lock);
	err = take_attrs(nic, attrs, &ptag);
	if (err == 0 && nic->vi_count >= nic->attrs.MaxVI) {
		vi_ptag_put(ptag);
		err = -ENOSPC;
	}
	if (err == 0) {
		vi_lock_both(vi);
		vi->nic = nic;
		vi->fast = &vi_fast_none;
		vi->chan = NULL;
		if (vi->prov_ops != nic->ops) {
			vi->prov = NULL;
			vi->prov_ops = nic->ops;
		}
		memset(&vi->counters, 0, sizeof(vi->counters));
		vi->context = NULL;
		atomic_store_explicit(&vi->conn_lost, 0, memory_order_relaxed);
		vi_set_state(vi, VIP_STATE_IDLE);
		set_attrs(vi, attrs, ptag);
		vi_unlock_both(vi);
		link_vi(nic, vi);
	}
	pthread_mutex_unlock(&nic->lock);
	return err;
}

/* Adds all counters, which are the members from SendsPosted on. */
static void add_counters(VIPX_COUNTERS *sum, const VIPX_COUNTERS *c)
{
	VIP_UINT64 *to = &sum->SendsPosted;
	const VIP_UINT64 *from = &c->SendsPosted;
	size_t n = (sizeof(*c) - offsetof(VIPX_COUNTERS, SendsPosted)) / sizeof(*to);

	for (size_t i = 0; i < n; i++)
		to[i] += from[i];
}

/* Undoes enter(); the VI's counters are added to those of VIs that are gone.  Takes nic->lock. */
static void leave(struct vi_nic *nic, struct vi_vi *vi)
{
	pthread_mutex_lock(&nic->lock);
	unlink_vi(nic, vi);
	vi_ptag_put(vi->ptag_ref);
	vi->ptag_ref = NULL;
	add_counters(&nic->closed, &vi->counters);
	pthread_mutex_unlock(&nic->lock);
}

/*
 * Takes both queues off their CQs, if they have some; completions are announced to nobody after that.  Takes the locks
 * of the CQs.
 */
static void detach_queues(struct vi_vi *vi)
{
	if (vi->sq.cq != NULL)
		vi_cq_detach(vi->sq.cq, &vi->sq);
	if (vi->rq.cq != NULL)
		vi_cq_detach(vi->rq.cq, &vi->rq);
	vi->sq.cq = vi->rq.cq = NULL;
	atomic_store_explicit(&vi->sq.awaited, 0, memory_order_relaxed);
	atomic_store_explicit(&vi->rq.awaited, 0, memory_order_relaxed);
}

/* Frees both queues and their handlers; takes both queue locks. */
static void free_queues(struct vi_vi *vi)
{
	vi_lock_both(vi);
	vi_wq_fini(&vi->sq);
	vi_wq_fini(&vi->rq);
	vi_unlock_both(vi);
}

/*
 * Attaches the queue to the CQ, for which completions are announced then; does nothing if that is NULL.  0 or -ENOMEM.
 * Takes cq->lock.
 */
static int attach(struct vi_cq *cq, struct vi_wq *wq)
{
	int err = cq != NULL ? vi_cq_attach(cq, wq) : 0;

	if (cq != NULL && err == 0) {
		wq->cq = cq;
		atomic_store_explicit(&wq->awaited, 1, memory_order_relaxed);
	}
	return err;
}

/*
 * Makes both queues and attaches them to their CQs.  0 or -ENOMEM: what was done before a failure stays, for the
 * caller to undo.
 */
static int init_queues(struct vi_vi *vi, struct vi_cq *send_cq, struct vi_cq *recv_cq)
{
	int err;

	vi_lock_both(vi);
	err = vi_wq_init(&vi->sq, vi, false);
	if (err == 0)
		err = vi_wq_init(&vi->rq, vi, true);
	vi_unlock_both(vi);
	if (err == 0)
		err = attach(send_cq, &vi->sq);
	if (err == 0)
		err = attach(recv_cq, &vi->rq);
	return err;
}

/* The last step: from here on the handle works, and threads may hold the VI.  0 or -ENOSPC.  Takes both queue locks. */
static int publish(struct vi_vi *vi)
{
	uint64_t id = u_idtab_add(VI_TYPE_VI, vi);

	if (id == 0)
		return -ENOSPC;
	vi_lock_both(vi);
	atomic_store_explicit(&vi->id, id, memory_order_relaxed);
	vi_ref_revive(&vi->ref);
	vi_unlock_both(vi);
	return 0;
}

/*
 * Makes the queues and the provider's part, then the handle.  0 or -errno: the queues stay, for the caller to undo,
 * but not the provider's part.
 */
static int build(struct vi_vi *vi, struct vi_cq *send_cq, struct vi_cq *recv_cq)
{
	int err = init_queues(vi, send_cq, recv_cq);

	if (err != 0)
		return err;
	err = vi->nic->ops->vi_create(vi);
	if (err != 0)
		return err;
	err = publish(vi);
	if (err != 0)
		vi->nic->ops->vi_destroy(vi);
	return err;
}

int vi_vi_create(struct vi_nic *nic, const VIP_VI_ATTRIBUTES *attrs, struct vi_cq *send_cq,
		 struct vi_cq *recv_cq, struct vi_vi **out)
{
	struct vi_vi *vi = vi_pool_get(&vi_vi_pool);
	int err;

	if (vi == NULL)
		return -ENOMEM;
	err = enter(nic, vi, attrs);
	if (err != 0)
		goto put_object;
	err = build(vi, send_cq, recv_cq);
	if (err != 0)
		goto leave_nic;
	*out = vi;
	return 0;

leave_nic:
	detach_queues(vi);
	free_queues(vi);
	leave(nic, vi);
put_object:
	vi_pool_put(&vi_vi_pool, vi);
	return err;
}

/* ---- destroy -------------------------------------------------------------------------------- */

/*
 * Makes the handle invalid, and frees the queues and their handlers, or returns why that is not allowed, as
 * vi_vi_destroy().  Takes both queue locks.
 */
static int retire(struct vi_vi *vi, uint64_t id)
{
	int err = 0;

	vi_lock_both(vi);
	if (atomic_load_explicit(&vi->id, memory_order_relaxed) != id)
		err = -EINVAL;
	else if (vi_state(vi) != VIP_STATE_IDLE)
		err = -EISCONN;
	else if (!vi_wq_empty(&vi->sq) || !vi_wq_empty(&vi->rq) || !vi_ref_kill(&vi->ref))
		err = -EBUSY;
	if (err == 0) {
		atomic_store_explicit(&vi->id, 0, memory_order_relaxed);
		vi->fast = &vi_fast_none;
		vi_wq_fini(&vi->sq);
		vi_wq_fini(&vi->rq);
	}
	vi_unlock_both(vi);
	return err;
}

int vi_vi_destroy(struct vi_vi *vi, uint64_t id)
{
	int err = retire(vi, id);
	struct vi_nic *nic;

	if (err != 0)
		return err;
	nic = vi->nic;
	u_idtab_del(id);
	vi_event_forget_vi(vi, id);
	detach_queues(vi);
	nic->ops->vi_destroy(vi);
	leave(nic, vi);
	vi_pool_put(&vi_vi_pool, vi);
	return 0;
}

struct vi_vi *vi_vi_get(const void *handle)
{
	uint64_t id = vi_handle_id(handle);
	struct vi_vi *vi = vi_handle_object(handle, VI_TYPE_VI);

	if (vi == NULL || !vi_ref_get(&vi->ref))
		return NULL;
	if (atomic_load_explicit(&vi->id, memory_order_relaxed) == id)
		return vi;
	vi_ref_put(&vi->ref);
	return NULL;
}

/* ---- counters ------------------------------------------------------------------------------- */

/* Adds the VI's counters to `sum`; takes both queue locks. */
static void read_counters(struct vi_vi *vi, VIPX_COUNTERS *sum)
{
	vi_lock_both(vi);
	add_counters(sum, &vi->counters);
	vi_unlock_both(vi);
}

void vi_nic_counters(struct vi_nic *nic, struct vi_vi *vi, VIPX_COUNTERS *out)
{
	VIPX_COUNTERS sum = { .Size = sizeof(sum) };

	if (vi != NULL) {
		read_counters(vi, &sum);
		*out = sum;
		return;
	}
	pthread_mutex_lock(&nic->lock);
	add_counters(&sum, &nic->closed);
	for (vi = nic->vis; vi != NULL; vi = vi->next)
		read_counters(vi, &sum);
	pthread_mutex_unlock(&nic->lock);
	sum.Sleeps += atomic_load_explicit(&nic->sleeps, memory_order_relaxed);
	nic->ops->counters(nic, &sum);
	*out = sum;
}
