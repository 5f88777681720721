/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: creating and destroying, and the work queues attached to them. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "vi_cq.h"
#include "vi_cq_list.h"
#include "vi_cq_notify.h"
#include "vi_event.h"
#include "vi_objects.h"
#include "vi_provider.h"

struct vi_pool vi_cq_pool = {
	.size = sizeof(struct vi_cq),
	.link = offsetof(struct vi_cq, pool_link),
};

/* Initializes a CQ of the pool, but for id, lock, reference count and the list of the NIC.  Caller holds cq->lock. */
static void cq_fields(struct vi_cq *cq, struct vi_nic *nic, uint32_t entries)
{
	cq->nic = nic;
	cq->entries = entries;
	cq->attached = 0;
	cq->hot = NULL;
	cq->watch = NULL;
	cq->watched = NULL;
	cq->many = false;
	cq->watch_count = cq->watch_next = cq->turns_due = 0;
	atomic_store_explicit(&cq->polls, 0, memory_order_relaxed);
	cq->due = cq->due_last = NULL;
	cq->hot_count = cq->hot_cap = cq->hot_next = cq->progress_next = 0;
	atomic_store_explicit(&cq->marked, NULL, memory_order_relaxed);
	atomic_store_explicit(&cq->armed, 0, memory_order_relaxed);
	atomic_store_explicit(&cq->fd_armed, 0, memory_order_relaxed);
	cq->notify_first = cq->notify_last = NULL;
	cq->ready.cq = cq;
	cq->event_fd = VI_CQ_FD_NONE;
}

/* Enters the CQ into the NIC's list and count.  Caller holds nic->lock. */
static void cq_link(struct vi_nic *nic, struct vi_cq *cq)
{
	cq->prev = NULL;
	cq->next = nic->cqs;
	if (nic->cqs != NULL)
		nic->cqs->prev = cq;
	nic->cqs = cq;
	nic->cq_count++;
}

/* Takes the CQ off the NIC's list and count.  Caller holds nic->lock. */
static void cq_unlink(struct vi_nic *nic, struct vi_cq *cq)
{
	if (cq->prev != NULL)
		cq->prev->next = cq->next;
	else
		nic->cqs = cq->next;
	if (cq->next != NULL)
		cq->next->prev = cq->prev;
	nic->cq_count--;
}

/* Makes a CQ and its handle.  -ENOSPC: there are too many CQs or handles; -ENOMEM.  Caller holds nic->lock. */
static int create_locked(struct vi_nic *nic, uint32_t entries, struct vi_cq **out)
{
	struct vi_cq *cq;
	uint64_t id;

	if (nic->cq_count >= nic->attrs.MaxCQ)
		return -ENOSPC;
	cq = vi_pool_get(&vi_cq_pool);
	if (cq == NULL)
		return -ENOMEM;
	id = u_idtab_add(VI_TYPE_CQ, cq);
	if (id == 0) {
		vi_pool_put(&vi_cq_pool, cq);
		return -ENOSPC;
	}
	u_biased_take(&cq->lock);
	cq_fields(cq, nic, entries);
	atomic_store_explicit(&cq->id, id, memory_order_relaxed);
	vi_ref_revive(&cq->ref);
	u_biased_drop(&cq->lock);
	cq_link(nic, cq);
	*out = cq;
	return 0;
}

static int check_entries(const struct vi_nic *nic, uint32_t entries)
{
	return entries == 0 || entries > nic->attrs.MaxCQEntries ? -EINVAL : 0;
}

int vi_cq_create(struct vi_nic *nic, uint32_t entries, struct vi_cq **out)
{
	int err = check_entries(nic, entries);

	if (err != 0)
		return err;
	pthread_mutex_lock(&nic->lock);
	err = create_locked(nic, entries, out);
	pthread_mutex_unlock(&nic->lock);
	return err;
}

/*
 * Makes the handle invalid and cancels armed handlers, or returns why that is not allowed: -EINVAL, -EBUSY.  Takes
 * cq->lock.
 */
static int retire(struct vi_cq *cq, uint64_t id)
{
	int err = 0;

	u_biased_take(&cq->lock);
	if (atomic_load_explicit(&cq->id, memory_order_relaxed) != id)
		err = -EINVAL;
	else if (cq->attached != 0 || !vi_ref_kill(&cq->ref))
		err = -EBUSY;
	if (err == 0) {
		atomic_store_explicit(&cq->id, 0, memory_order_relaxed);
		vi_cq_disarm(cq, vi_notify_cancel(&cq->notify_first, &cq->notify_last));
		if (atomic_exchange_explicit(&cq->fd_armed, 0, memory_order_relaxed) != 0)
			vi_cq_disarm(cq, 1);
	}
	u_biased_drop(&cq->lock);
	return err;
}

int vi_cq_destroy(struct vi_cq *cq, uint64_t id)
{
	int err = retire(cq, id);
	struct vi_nic *nic;

	if (err != 0)
		return err;
	nic = cq->nic;
	u_idtab_del(id);
	vi_event_forget_cq(cq, id);
	pthread_mutex_lock(&nic->lock);
	cq_unlink(nic, cq);
	pthread_mutex_unlock(&nic->lock);
	if (cq->event_fd != VI_CQ_FD_NONE)
		close(cq->event_fd);
	free(cq->hot);
	free(cq->watch);
	free(cq->watched);
	cq->hot = NULL;
	cq->watch = NULL;
	cq->watched = NULL;
	vi_pool_put(&vi_cq_pool, cq);
	return 0;
}

struct vi_cq *vi_cq_get(const void *handle)
{
	uint64_t id = vi_handle_id(handle);
	struct vi_cq *cq = vi_handle_object(handle, VI_TYPE_CQ);

	if (cq == NULL || !vi_ref_get(&cq->ref))
		return NULL;
	if (atomic_load_explicit(&cq->id, memory_order_relaxed) == id)
		return cq;
	vi_ref_put(&cq->ref);
	return NULL;
}

int vi_cq_resize(struct vi_cq *cq, uint32_t entries)
{
	int err = check_entries(cq->nic, entries);

	if (err != 0)
		return err;
	u_biased_take(&cq->lock);
	if (vi_cq_count(cq) > entries)
		err = -ENOSPC;
	else
		cq->entries = entries;
	u_biased_drop(&cq->lock);
	return err;
}

/* Makes room for `cap` queues, 0; without memory for that, -ENOMEM, the lists stay as they are. */
static int resize_lists(struct vi_cq *cq, uint32_t cap)
{
	struct vi_watch *watch = realloc(cq->watch, cap * sizeof(*watch));
	struct vi_wq **hot, **watched;

	if (watch == NULL)
		return -ENOMEM;
	cq->watch = watch;
	watched = realloc(cq->watched, cap * sizeof(struct vi_wq *));
	if (watched == NULL)
		return -ENOMEM;
	cq->watched = watched;
	hot = realloc(cq->hot, cap * sizeof(struct vi_wq *));
	if (hot == NULL)
		return -ENOMEM;
	cq->hot = hot;
	cq->hot_cap = cap;
	return 0;
}

/* Makes room for `need` queues, one more than before at most.  0 or -ENOMEM.  Caller holds cq->lock. */
static int reserve_hot(struct vi_cq *cq, uint32_t need)
{
	if (need <= cq->hot_cap)
		return 0;
	return resize_lists(cq, cq->hot_cap != 0 ? cq->hot_cap * 2 : 4);
}

int vi_cq_attach(struct vi_cq *cq, struct vi_wq *wq)
{
	int err;

	u_biased_take(&cq->lock);
	err = reserve_hot(cq, cq->attached + 1);
	if (err == 0)
		cq->attached++;
	u_biased_drop(&cq->lock);
	return err;
}

void vi_cq_detach(struct vi_cq *cq, struct vi_wq *wq)
{
	u_biased_take(&cq->lock);
	vi_cq_unlist(cq, wq);
	cq->attached--;
	u_biased_drop(&cq->lock);
}
