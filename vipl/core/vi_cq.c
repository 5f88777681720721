/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: which of many work queues have completed something. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "u_cancel.h"
#include "u_fd.h"
#include "u_futex.h"
#include "u_log.h"
#include "u_time.h"
#include "vi_core.h"
#include "vi_provider.h"

struct vi_pool vi_cq_pool = {
	.size = sizeof(struct vi_cq),
	.link = offsetof(struct vi_cq, pool_link),
};

/* ---- the hot list --------------------------------------------------------------------------- */

void vi_cq_mark(struct vi_wq *wq)
{
	struct vi_cq *cq = wq->cq;
	struct vi_wq *first;

	if (u_likely(atomic_load_explicit(&wq->hot, memory_order_relaxed) != 0))
		return;
	atomic_store_explicit(&wq->hot, 1, memory_order_relaxed);
	first = atomic_load_explicit(&cq->marked, memory_order_relaxed);
	do {
		wq->mark_next = first;
		/* A: mark_next before the head; pairs with take_marked(). */
	} while (!atomic_compare_exchange_weak_explicit(
		&cq->marked, &first, wq, memory_order_release, memory_order_relaxed));
}

static U_COLD void take_marked(struct vi_cq *cq)
{
	/* R: pairs with vi_cq_mark(). */
	struct vi_wq *wq = atomic_exchange_explicit(&cq->marked, NULL, memory_order_acquire);
	struct vi_wq *next;

	for (; wq != NULL; wq = next) {
		next = wq->mark_next;
		wq->idle = 0;
		cq->hot[cq->hot_count++] = wq;
	}
}

static void poll_marked(struct vi_cq *cq)
{
	if (u_unlikely(atomic_load_explicit(&cq->marked, memory_order_relaxed) != NULL))
		take_marked(cq);
}

static uint32_t wq_entries(const struct vi_wq *wq)
{
	/* R: pairs with advance_done(): the descriptors are complete before their entry is seen. */
	return atomic_load_explicit(&wq->done, memory_order_acquire) -
	       atomic_load_explicit(&wq->reaped, memory_order_relaxed);
}

static void remove_hot(struct vi_cq *cq, uint32_t i)
{
	cq->hot[i] = cq->hot[--cq->hot_count];
	if (cq->hot_next >= cq->hot_count)
		cq->hot_next = 0;
}

/* The i-th queue of this poll. */
static uint32_t index_from_next(const struct vi_cq *cq, uint32_t i)
{
	uint32_t index = cq->hot_next + i;

	return index < cq->hot_count ? index : index - cq->hot_count;
}

static inline void take_from(struct vi_cq *cq, uint32_t index)
{
	struct vi_wq *wq = cq->hot[index];

	atomic_store_explicit(&wq->reaped,
			      atomic_load_explicit(&wq->reaped, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	wq->idle = 0;
	cq->hot_next = index + 1 < cq->hot_count ? index + 1 : 0;
}

bool vi_cq_take(struct vi_cq *cq, struct vi_wq **wq_out)
{
	poll_marked(cq);
	for (uint32_t i = 0; i < cq->hot_count; i++) {
		uint32_t index = index_from_next(cq, i);
		struct vi_wq *wq = cq->hot[index];

		if (wq_entries(wq) != 0) {
			take_from(cq, index);
			*wq_out = wq;
			return true;
		}
	}
	return false;
}

static bool has_entry(struct vi_cq *cq)
{
	poll_marked(cq);
	for (uint32_t i = 0; i < cq->hot_count; i++) {
		if (wq_entries(cq->hot[i]) != 0)
			return true;
	}
	return false;
}

static uint64_t count_entries(struct vi_cq *cq)
{
	uint64_t count = 0;

	poll_marked(cq);
	for (uint32_t i = 0; i < cq->hot_count; i++)
		count += wq_entries(cq->hot[i]);
	return count;
}

/* ---- polling -------------------------------------------------------------------------------- */

/* May this queue be forgotten until it completes something?  Then it is not hot any more. */
static bool cool_down(struct vi_wq *wq)
{
	struct u_biased *lock = wq->is_recv ? &wq->vi->rx_lock : &wq->vi->tx_lock;
	uint32_t done;
	bool cold;

	if (!u_biased_try(lock))
		return false;
	/* Under the queue's lock nothing completes: no entry can slip between check and store. */
	done = atomic_load_explicit(&wq->done, memory_order_relaxed);
	cold = wq_entries(wq) == 0 && (wq->is_recv || done == wq->tail);
	if (cold)
		atomic_store_explicit(&wq->hot, 0, memory_order_relaxed);
	u_biased_drop(lock);
	return cold;
}

static void forget(struct vi_vi *vi)
{
	const struct vi_fast_ops *fast = vi->fast;

	if (fast->unpolled != NULL)
		fast->unpolled(vi);
	fast->progress(vi);
}

static U_COLD void evict_idle(struct vi_cq *cq)
{
	for (uint32_t i = 0; i < cq->hot_count;) {
		struct vi_wq *wq = cq->hot[i];

		if (wq->idle >= VI_CQ_IDLE_POLLS && cool_down(wq)) {
			remove_hot(cq, i);
			forget(wq->vi);
			continue;
		}
		if (wq->idle >= VI_CQ_IDLE_POLLS)
			wq->idle = 0;
		i++;
	}
}

/* Both queues of a VI on the same CQ: the receive queue's turn makes progress for both. */
static bool progressed_elsewhere(const struct vi_cq *cq, const struct vi_wq *wq)
{
	return !wq->is_recv && wq->vi->rq.cq == cq &&
	       atomic_load_explicit(&wq->vi->rq.hot, memory_order_relaxed) != 0;
}

/* Takes in what came for a receive queue of the hot list. */
static inline void poll_recv_queue(struct vi_wq *wq)
{
	struct vi_vi *vi = wq->vi;
	_Atomic uint32_t *seq = u_biased_enter(&vi->rx_lock);
	int came;

	if (u_unlikely(seq == NULL) && !u_biased_try_slow(&vi->rx_lock))
		return;
	came = vi->fast->poll_recv(vi);
	u_biased_drop_slot(&vi->rx_lock, seq);
	if (u_unlikely(came & VI_POLL_PROGRESS))
		vi->fast->progress(vi);
}

/* Moves what a queue of the hot list waits for.  False: nothing can have come by that. */
static inline bool progress_queue(const struct vi_cq *cq, struct vi_wq *wq)
{
	if (wq->is_recv) {
		poll_recv_queue(wq);
		return true;
	}
	if (progressed_elsewhere(cq, wq))
		return false;
	wq->vi->fast->progress(wq->vi);
	return true;
}

/* One round over the hot list; what progress brings is taken at once. */
static bool progress_and_take(struct vi_cq *cq, struct vi_wq **wq_out)
{
	uint32_t index = cq->hot_next;
	bool idle = false, found = false;

	for (uint32_t i = cq->hot_count; i > 0; i--) {
		struct vi_wq *wq = cq->hot[index];

		if (wq_entries(wq) != 0 || (progress_queue(cq, wq) && wq_entries(wq) != 0)) {
			take_from(cq, index);
			*wq_out = wq;
			found = true;
			break;
		}
		idle |= ++wq->idle >= VI_CQ_IDLE_POLLS;
		if (++index >= cq->hot_count)
			index = 0;
	}
	/* Also with an entry: a round that takes long enough always finds one. */
	if (u_unlikely(idle))
		evict_idle(cq);
	if (!found)
		u_poll_empty();
	return found;
}

/*
 * With more hot queues than this, entries that are there are sought before progress is made on
 * all. On one it is made all the same, in turn: entries may never run out.
 */
#define FEW_HOT 4u

static bool progress_one_and_take(struct vi_cq *cq, struct vi_wq **wq_out)
{
	uint32_t index = cq->progress_next < cq->hot_count ? cq->progress_next : 0;
	struct vi_wq *wq = cq->hot[index];

	cq->progress_next = index + 1;
	progress_queue(cq, wq);
	if (u_unlikely(++wq->idle >= VI_CQ_IDLE_POLLS))
		evict_idle(cq);
	return vi_cq_take(cq, wq_out);
}

static inline int poll_once(struct vi_cq *cq, struct vi_wq **wq_out)
{
	poll_marked(cq);
	if (u_unlikely(cq->hot_count > FEW_HOT) && progress_one_and_take(cq, wq_out))
		return 1;
	if (progress_and_take(cq, wq_out))
		return 1;
	if (u_likely(!cq->nic->ops->doorbell_rung(cq->nic)))
		return 0;
	cq->nic->ops->progress(cq->nic);
	return vi_cq_take(cq, wq_out);
}

int vi_cq_poll(struct vi_cq *cq, uint64_t id, uint64_t *vi_out, bool *is_recv_out)
{
	_Atomic uint32_t *seq = u_biased_take_slot(&cq->lock);
	struct vi_wq *wq;
	uint64_t vi = 0;
	int got = -EINVAL;

	/* Entries of a VI that is being destroyed (id 0) vanish with it. */
	while (vi == 0 && u_likely(atomic_load_explicit(&cq->id, memory_order_relaxed) == id)) {
		got = poll_once(cq, &wq);
		if (got == 0)
			break;
		vi = atomic_load_explicit(&wq->vi->id, memory_order_relaxed);
	}
	u_biased_drop_slot(&cq->lock, seq);
	if (vi != 0) {
		*vi_out = vi;
		*is_recv_out = wq->is_recv;
	}
	return got;
}

struct wait_arg {
	struct vi_cq *cq;
	uint64_t id;
	uint64_t *vi_out;
	bool *is_recv_out;
};

static int try_cq(void *arg)
{
	struct wait_arg *w = arg;

	return vi_cq_poll(w->cq, w->id, w->vi_out, w->is_recv_out);
}

int vi_cq_wait(struct vi_cq *cq, int64_t deadline, uint64_t *vi_out, bool *is_recv_out)
{
	struct wait_arg arg = {
		.cq = cq,
		.id = atomic_load_explicit(&cq->id, memory_order_relaxed),
		.vi_out = vi_out,
		.is_recv_out = is_recv_out,
	};

	return vi_wait(cq->nic, &cq->sleepers, &cq->ref, try_cq, &arg, deadline);
}

/* ---- handlers and the descriptor ------------------------------------------------------------- */

static void armed_add(struct vi_cq *cq)
{
	atomic_fetch_add_explicit(&cq->nic->notify_armed, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&cq->armed, 1, memory_order_relaxed);
}

static void armed_sub(struct vi_cq *cq, uint32_t n)
{
	atomic_fetch_sub_explicit(&cq->armed, n, memory_order_relaxed);
	atomic_fetch_sub_explicit(&cq->nic->notify_armed, n, memory_order_relaxed);
}

U_COLD void vi_cq_alert(struct vi_cq *cq)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	const uint64_t one = 1;

	if (atomic_exchange_explicit(&cq->fd_armed, 0, memory_order_acquire) != 0) {
		armed_sub(cq, 1);
		/* It fails only when the counter is full: then it is readable anyway. */
		if (write(cq->event_fd, &one, sizeof(one)) < 0)
			errno = 0;
	}
	if (atomic_load_explicit(&cq->armed, memory_order_relaxed) != 0)
		vi_event_ready(cq->nic, &cq->ready);
}

/*
 * What was armed is seen by all who complete from here on, or their completion
 * is seen here: the half of the barrier that announce() saves itself.
 */
static void armed_barrier(struct vi_cq *cq)
{
	bool there;

	cq->nic->ops->arm(cq->nic);
	atomic_thread_fence(memory_order_seq_cst);
	u_membarrier_own();
	cq->nic->ops->progress(cq->nic);
	u_biased_take(&cq->lock);
	there = has_entry(cq);
	u_biased_drop(&cq->lock);
	if (there)
		vi_cq_alert(cq);
}

int vi_cq_notify(struct vi_cq *cq, void *context,
		 void (*handler)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN))
{
	struct vi_notify *n;
	int err = vi_event_start(cq->nic);

	if (err != 0)
		return err;
	n = calloc(1, sizeof(*n));
	if (n == NULL)
		return -ENOMEM;
	n->context = context;
	n->on_cq = handler;
	u_biased_take(&cq->lock);
	vi_notify_append(&cq->notify_first, &cq->notify_last, n);
	armed_add(cq);
	u_biased_drop(&cq->lock);
	armed_barrier(cq);
	return 0;
}

int vi_cq_fd(struct vi_cq *cq, int *fd_out)
{
	char text[U_FD_ERROR];
	int fd, err = 0;

	u_biased_take(&cq->lock);
	fd = cq->event_fd;
	if (fd == VI_CQ_FD_NONE) {
		fd = u_fd_above_std(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		err = errno;
		if (fd >= 0)
			cq->event_fd = fd;
	}
	u_biased_drop(&cq->lock);
	if (fd < 0) {
		u_error("vipl", "no event descriptor for a completion queue: %s",
			u_fd_error(err, text));
		return -EMFILE;
	}
	*fd_out = fd;
	return 0;
}

int vi_cq_arm(struct vi_cq *cq)
{
	uint64_t count;
	int fd;
	int err = vi_cq_fd(cq, &fd);

	if (err != 0)
		return err;
	/* Nothing to read is the usual case. */
	if (read(fd, &count, sizeof(count)) < 0)
		errno = 0;
	armed_add(cq);
	if (atomic_exchange_explicit(&cq->fd_armed, 1, memory_order_release) != 0)
		armed_sub(cq, 1);
	armed_barrier(cq);
	return 0;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void cq_fields(struct vi_cq *cq, struct vi_nic *nic, uint32_t entries)
{
	cq->nic = nic;
	cq->entries = entries;
	cq->attached = 0;
	cq->hot = NULL;
	cq->hot_count = cq->hot_cap = cq->hot_next = cq->progress_next = 0;
	atomic_store_explicit(&cq->marked, NULL, memory_order_relaxed);
	atomic_store_explicit(&cq->armed, 0, memory_order_relaxed);
	atomic_store_explicit(&cq->fd_armed, 0, memory_order_relaxed);
	cq->notify_first = cq->notify_last = NULL;
	cq->ready.cq = cq;
	cq->event_fd = VI_CQ_FD_NONE;
}

static void cq_link(struct vi_nic *nic, struct vi_cq *cq)
{
	cq->prev = NULL;
	cq->next = nic->cqs;
	if (nic->cqs != NULL)
		nic->cqs->prev = cq;
	nic->cqs = cq;
	nic->cq_count++;
}

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

/* Makes the handle invalid, or says why not. */
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
		armed_sub(cq, vi_notify_cancel(&cq->notify_first, &cq->notify_last));
		if (atomic_exchange_explicit(&cq->fd_armed, 0, memory_order_relaxed) != 0)
			armed_sub(cq, 1);
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
	cq->hot = NULL;
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
	if (count_entries(cq) > entries)
		err = -ENOSPC;
	else
		cq->entries = entries;
	u_biased_drop(&cq->lock);
	return err;
}

static int reserve_hot(struct vi_cq *cq, uint32_t need)
{
	uint32_t cap = cq->hot_cap != 0 ? cq->hot_cap * 2 : 4;
	struct vi_wq **hot;

	if (need <= cq->hot_cap)
		return 0;
	hot = realloc(cq->hot, cap * sizeof(struct vi_wq *));
	if (hot == NULL)
		return -ENOMEM;
	cq->hot = hot;
	cq->hot_cap = cap;
	return 0;
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
	poll_marked(cq);
	for (uint32_t i = 0; i < cq->hot_count; i++) {
		if (cq->hot[i] == wq) {
			remove_hot(cq, i);
			break;
		}
	}
	atomic_store_explicit(&wq->hot, 0, memory_order_relaxed);
	cq->attached--;
	u_biased_drop(&cq->lock);
}
