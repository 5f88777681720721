/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of the Virtual Interface Architecture: NIC, protection tag,
 * memory region (translation and protection table), VI, work queue, completion
 * queue.  State machines and rules only: how packets travel is the provider's
 * matter (vi_provider.h).
 *
 * Locks, in order of taking: nic->lock, cq->lock, vi->rx_lock, vi->tx_lock,
 * event lock.  No lock is held while a consumer's handler runs.  The provider's
 * progress() and doorbell_rung() may be called with a cq->lock held.
 *
 * Objects live in pools: their memory stays readable after they are destroyed,
 * so that a look-up racing with a destroy is refused, not a crash.
 */
#ifndef VI_CORE_H
#define VI_CORE_H

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_base.h"
#include "u_biased.h"
#include "u_idtab.h"
#include "u_lock.h"
#include "u_trace.h"
#include "vipl.h"
#include "vipl_ext.h"

struct vi_nic;
struct vi_vi;
struct vi_cq;
struct vi_ptag;
struct vi_conn;
struct vi_provider_ops;
struct vi_fast_ops;

/* Types of handles (u_idtab). */
enum vi_type { VI_TYPE_NIC = 1, VI_TYPE_VI, VI_TYPE_CQ, VI_TYPE_PTAG, VI_TYPE_CONN };

static inline uint64_t vi_handle_id(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

static inline void *vi_id_handle(uint64_t id)
{
	return (void *)(uintptr_t)id;
}

/* The object of a handle, or NULL; for calls that may take their time. */
static inline void *vi_handle_object(const void *handle, enum vi_type type)
{
	uint64_t id = vi_handle_id(handle);
	void *object = u_idtab_get(id, (uint8_t)type);

	if (u_unlikely(object == NULL))
		u_idtab_refused(id);
	return object;
}

/* ---- users of an object ---------------------------------------------------------------------- */

/*
 * Threads inside a call that may last (not Post, not Done) hold an object; a
 * destroy is refused meanwhile.  The count survives the object: who comes too
 * late finds VI_REF_DEAD, or another id.
 */
#define VI_REF_DEAD 0x80000000u

struct vi_ref {
	_Atomic uint32_t users;
};

static inline void vi_ref_put(struct vi_ref *ref)
{
	atomic_fetch_sub_explicit(&ref->users, 1, memory_order_release);
}

static inline bool vi_ref_get(struct vi_ref *ref)
{
	if (!(atomic_fetch_add_explicit(&ref->users, 1, memory_order_acquire) & VI_REF_DEAD))
		return true;
	vi_ref_put(ref);
	return false;
}

/* Nobody may hold the object.  false: somebody does, and it lives on. */
static inline bool vi_ref_kill(struct vi_ref *ref)
{
	uint32_t none = 0;

	return atomic_compare_exchange_strong_explicit(&ref->users, &none, VI_REF_DEAD,
						       memory_order_acq_rel, memory_order_relaxed);
}

static inline void vi_ref_revive(struct vi_ref *ref)
{
	atomic_fetch_and_explicit(&ref->users, ~VI_REF_DEAD, memory_order_release);
}

/*
 * Objects whose memory is reused only for the same type and stays readable.
 * The memory is zero when it is used for the first time.
 */
struct vi_pool {
	struct u_lock lock;
	size_t size;
	size_t link; /* offset of a `void *` that only the pool uses */
	void *free;
	void *lost; /* see vi_pool_forked() */
};

void *vi_pool_get(struct vi_pool *pool); /* NULL: out of memory */
void vi_pool_put(struct vi_pool *pool, void *object);
/* In a child of fork(): what was put back stays away, as its locks may be held by nobody. */
void vi_pool_forked(struct vi_pool *pool);

extern struct vi_pool vi_nic_pool, vi_vi_pool, vi_cq_pool, vi_ptag_pool;

/* ---- fork() ---------------------------------------------------------------------------------- */

/*
 * A child of fork() has a copy of its parent's objects and none of its threads.  Handles of the
 * parent are refused in it (u_idtab.h), so nothing touches the copies; locks and pools that
 * all NICs share are made new, so that it can open NICs of its own.
 */
/*
 * From here on every child runs `renew`, always the same function, before fork() returns there.
 * Called before the first object is made; 0 or -ENOMEM.
 */
int vi_fork_watch(void (*renew)(void));
/* Changes in a child: who compares finds out that it was forked from. */
uint32_t vi_fork_generation(void);

/* ---- limits, as VipQueryNic reports them --------------------------------------------------- */

#define VI_MAX_TRANSFER 0x40000000ul /* 1 GiB */
#define VI_MAX_SEGMENTS 253u	     /* address segment included: 252 data segments with RDMA */
#define VI_MAX_DESCRIPTORS 4096u     /* per work queue */
#define VI_MAX_VIS 65536u
#define VI_MAX_CQS 16384u
#define VI_MAX_CQ_ENTRIES (1u << 24)
#define VI_MAX_PTAGS 65536u
#define VI_MAX_REGIONS ((1u << 18) - 1)
#define VI_MAX_REGISTER_BYTES (1ul << 46) /* of all regions: the same memory counts each time */
/* Of one: all of its pages are made present, so it is no more than the machine has. */
uint64_t vi_max_region_bytes(void);

/* ---- translation and protection table ------------------------------------------------------- */

/* A memory handle: generation (14) | slot (18); slot 0 is never used, nor the handle ~0. */
#define VI_TPT_SLOT_BITS 18u
#define VI_TPT_CHUNK 1024u
#define VI_TPT_CHUNKS ((1u << VI_TPT_SLOT_BITS) / VI_TPT_CHUNK)

enum vi_access {
	VI_READ = 1,	     /* local source of a send or RDMA write; descriptor memory */
	VI_WRITE = 2,	     /* local target of a receive or RDMA read */
	VI_REMOTE_WRITE = 4, /* target of the peer's RDMA write */
	VI_REMOTE_READ = 8,  /* source of the peer's RDMA read */
};

struct vi_region {
	_Alignas(U_LINE) _Atomic uint32_t
		handle;		 /* 0 while free; stored last to register, first to deregister */
	_Atomic uint32_t rights; /* mask of enum vi_access */
	_Atomic uint64_t base;
	_Atomic uint64_t length;
	_Atomic uint64_t ptag; /* id of the ptag, 0 for the default tag */
	void *window;	       /* VipxAllocMem: the provider's record, else NULL */
	/* Under nic->lock: */
	struct vi_ptag *ptag_ref;
	uint32_t next_free;
	uint32_t generation; /* of the last handle, 14 bits */
};

struct vi_tpt {
	/*
	 * Changes whenever a right is taken away: what a check under an older epoch allowed must be
	 * checked again.  Read before the check; changed before the wait for the VIs' locks.
	 */
	_Atomic uint64_t epoch;
	struct vi_region *_Atomic chunk[VI_TPT_CHUNKS];
	uint32_t slots;		       /* ever used; under nic->lock as all below */
	uint32_t free_head, free_tail; /* slots, 0 for none; first in, first out */
	uint32_t free_count;
	uint32_t first_generation; /* differs between NICs, so that one's handle is not another's */
	uint32_t count;
	uint64_t bytes;
};

static inline uint64_t vi_tpt_epoch(const struct vi_tpt *tpt)
{
	return atomic_load_explicit(&tpt->epoch, memory_order_acquire);
}

/* The region of a live handle, or NULL. */
static inline struct vi_region *vi_tpt_region(const struct vi_tpt *tpt, uint32_t handle)
{
	uint32_t slot = handle & ((1u << VI_TPT_SLOT_BITS) - 1);
	/* R: pairs with the release in add_slot(). */
	struct vi_region *chunk =
		atomic_load_explicit(&tpt->chunk[slot / VI_TPT_CHUNK], memory_order_acquire);
	struct vi_region *r = chunk != NULL ? &chunk[slot % VI_TPT_CHUNK] : NULL;

	/* R: pairs with the release in vi_mem_register(). */
	if (u_unlikely(r == NULL || handle == 0 ||
		       atomic_load_explicit(&r->handle, memory_order_acquire) != handle))
		return NULL;
	return r;
}

/* Does the region allow a VI of `ptag` all of `access` to [addr, addr + len)? */
static inline bool vi_region_allows(const struct vi_region *r, uint64_t ptag, uint64_t addr,
				    uint64_t len, uint32_t access)
{
	uint64_t region_ptag = atomic_load_explicit(&r->ptag, memory_order_relaxed);
	uint64_t base = atomic_load_explicit(&r->base, memory_order_relaxed);
	uint64_t length = atomic_load_explicit(&r->length, memory_order_relaxed);

	if (u_unlikely((atomic_load_explicit(&r->rights, memory_order_relaxed) & access) != access))
		return false;
	if (u_unlikely(ptag != region_ptag && ptag != 0 && region_ptag != 0))
		return false;
	return u_likely(addr >= base && u_range_ok(addr - base, len, length));
}

/*
 * May a VI with protection tag `ptag` (id, 0 for none) access [addr, addr + len)
 * through `handle` with all of `access`?  Lock-free; the caller holds a lock of
 * the VI (rx or tx) until it is done with the memory, which is what
 * deregistration waits for.  Returns the address, or NULL when refused.  `len`
 * may be 0: then address and handle are still checked.  Two tags must be equal
 * unless one of them is 0.
 */
void *vi_tpt_check(const struct vi_nic *nic, uint64_t ptag, uint64_t addr, uint64_t len,
		   uint32_t handle, uint32_t access);

/* From here on what was checked before is checked again. */
void vi_tpt_change(struct vi_nic *nic);

int vi_mem_register(struct vi_nic *nic, void *addr, uint64_t len, const VIP_MEM_ATTRIBUTES *attrs,
		    void *window, VIP_MEM_HANDLE *handle_out);
/* `window_out`: the provider's record of window memory, whose pages are the caller's to free. */
int vi_mem_deregister(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle, void **window_out);
int vi_mem_set(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle,
	       const VIP_MEM_ATTRIBUTES *attrs);
int vi_mem_query(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle, VIP_MEM_ATTRIBUTES *out);

/* ---- protection tags ------------------------------------------------------------------------ */

struct vi_ptag {
	uint64_t id;
	struct vi_nic *_Atomic nic; /* NULL while free */
	uint32_t users;		    /* VIs and regions; under nic->lock */
	void *pool_link;
};

int vi_ptag_create(struct vi_nic *nic, uint64_t *id_out);
int vi_ptag_destroy(struct vi_nic *nic, uint64_t id);
/*
 * Takes a use of a tag.  NULL (id 0) gives *out = NULL; -EKEYREJECTED when unknown to this NIC.
 * Caller holds nic->lock.
 */
int vi_ptag_get(struct vi_nic *nic, uint64_t id, struct vi_ptag **out);
void vi_ptag_put(struct vi_ptag *ptag); /* caller holds nic->lock; accepts NULL */

/* ---- work queues ---------------------------------------------------------------------------- */

/*
 * One posted descriptor: our own record of it, so that completion never trusts
 * what others wrote meanwhile.
 */
struct vi_wqe {
	VIP_DESCRIPTOR *desc;
	/*
	 * A plain descriptor with one data segment: its memory, checked under `epoch`; else NULL.
	 * As long as the epoch is the table's the descriptor needs no other check.
	 */
	uint8_t *at;
	uint64_t epoch;	 /* of the table, before the descriptor's memory was checked */
	uint32_t at_len; /* of a receive: as far as it is registered */
	uint32_t handle; /* of the descriptor's memory */
	uint32_t length; /* total bytes, as posted (sends) or received */
	uint32_t status; /* 0 until complete, then what goes into the descriptor */
	uint32_t imm;
	uint16_t control;   /* as posted */
	uint16_t segs;	    /* SegCount as posted */
	uint32_t mark;	    /* the provider's own (e.g. its last slot) */
	uint32_t first;	    /* the provider's own (e.g. its first slot) */
	uint32_t unused[2]; /* entries are whole lines */
};
static_assert(sizeof(struct vi_wqe) == U_LINE, "vi_wqe");

/*
 * Counters run freely; entries are wqe[n & mask].  Order:
 * head <= done <= next <= tail.  [head, done) complete and not dequeued;
 * [done, next) started by the provider; [next, tail) not started.
 * Everything is under the queue's lock (sq: tx_lock, rq: rx_lock); `done` and
 * `reaped` are also read without it.
 */
struct vi_ready { /* a queue on the dispatcher's list; under the event lock */
	struct vi_ready *next;
	bool queued;
	struct vi_wq *wq; /* one of the two, for life */
	struct vi_cq *cq;
};

/* The region that was looked up last: what the table said under `epoch`. */
struct vi_tpt_cache {
	uint64_t epoch; /* VI_NO_EPOCH: nothing is known */
	uint64_t base, end;
	uint32_t handle;
	uint32_t rights;
};

#define VI_NO_EPOCH UINT64_MAX /* the table never has it */

struct vi_wq {
	struct vi_wqe *wqe;
	uint32_t mask; /* entries - 1; grows by doubling up to VI_MAX_DESCRIPTORS */
	uint32_t head;
	uint32_t next;
	uint32_t tail;
	_Atomic uint32_t done; /* one writer at a time: holder of the queue's lock */
	/* completions that VipCQDone has told; writer: holder of cq->lock */
	_Atomic uint32_t reaped;
	struct vi_cq *cq; /* for life; NULL: polled directly */
	struct vi_vi *vi;
	bool is_recv;
	struct vi_tpt_cache desc_cache, data_cache; /* of the last descriptor, and of its data */
	/*
	 * Is the queue on its CQ's hot list or on the way to it?  Set by vi_cq_mark();
	 * cleared under cq->lock and the queue's lock by a poll that found it idle.
	 */
	_Atomic uint32_t hot;
	uint32_t idle;		   /* polls without completion; under cq->lock */
	struct vi_wq *mark_next;   /* cq->marked; the pusher's, then the drainer's */
	_Atomic uint32_t sleepers; /* threads in vi_wait() for this queue */
	/* Armed one-shot notify handlers, under the queue's lock. */
	struct vi_notify *notify_first, *notify_last;
	struct vi_ready ready;
};

/* The VIP_STATUS_OP_ bits of an entry's own operation. */
uint32_t vi_wqe_op(const struct vi_wq *wq, const struct vi_wqe *wqe);

static inline struct vi_wqe *vi_wqe(struct vi_wq *wq, uint32_t n)
{
	return &wq->wqe[n & wq->mask];
}

int vi_wq_init(struct vi_wq *wq, struct vi_vi *vi, bool is_recv, struct vi_cq *cq);
void vi_wq_fini(struct vi_wq *wq); /* also cancels its handlers */

/*
 * Completes entry n (done <= n < tail) with `status` (VIP_STATUS_DONE is added) and `length`.
 * `status` carries the VIP_STATUS_OP_ bits too, and on a receive VIP_STATUS_IMMEDIATE if
 * wqe->imm holds the peer's data.  Entries complete towards the consumer
 * strictly in order: the descriptors of the leading run of complete entries get, on
 * receives, their Length and ImmediateData and then, last and with release order,
 * their Status; then `done` moves, the CQ learns of them and notify handlers are
 * queued.  A descriptor whose memory is no longer registered is not written:
 * VIP_ERROR_COMP_PROT.  An entry that is complete already stays as it is.  Caller
 * holds the lock.  The one place that decides completion order.
 */
void vi_wq_complete(struct vi_wq *wq, uint32_t n, uint32_t status, uint32_t length);

/*
 * Completes everything not complete with `status`, to which the entry's OP bits are
 * added; `next` moves to tail.  Caller holds the lock.
 */
void vi_wq_flush(struct vi_wq *wq, uint32_t status);
/* The same for what was not started. */
void vi_wq_flush_new(struct vi_wq *wq, uint32_t status);

/*
 * Dequeues the head.  1: *desc_out complete without error; 2: complete with error;
 * 0: head in progress; -ENOENT: queue empty.  Caller holds the lock.
 */
static inline int vi_wq_pop(struct vi_wq *wq, VIP_DESCRIPTOR **desc_out)
{
	struct vi_wqe *wqe;

	if (u_unlikely(wq->head == wq->tail))
		return -ENOENT;
	if (wq->head == atomic_load_explicit(&wq->done, memory_order_relaxed))
		return 0;
	wqe = vi_wqe(wq, wq->head++);
	*desc_out = wqe->desc;
	U_TRACE(completion_taken, wqe->desc, wqe->length);
	return u_unlikely(wqe->status & VIP_STATUS_ERROR_MASK) ? 2 : 1;
}

static inline bool vi_wq_empty(const struct vi_wq *wq)
{
	return wq->head == wq->tail;
}

/* ---- descriptors' segments ------------------------------------------------------------------- */

/*
 * A walk over the local data segments of a descriptor.  It may go on over several
 * times of holding the VI's lock, so segments and data are checked against the TPT
 * each time they are touched: they may have been deregistered in between.
 */
struct vi_sg {
	const struct vi_nic *nic;
	uint64_t ptag;
	const VIP_DESCRIPTOR_SEGMENT *seg;
	uint16_t left;	 /* segments not begun */
	uint64_t need;	 /* bytes that are wanted of those; what lies behind them is not touched */
	uint32_t access; /* VI_READ or VI_WRITE */
	uint32_t desc_handle; /* of the memory that `seg` points into */
	uint32_t handle;      /* of the current segment's memory */
	uint8_t *at;	      /* in the current segment */
	uint32_t at_left;
};

/*
 * Starts a walk over the first `need` bytes of wqe's local segments (skips the address segment
 * of RDMA).  Checks that the descriptor's own memory - all its segments - lies in its region.
 * Returns 0 or -EFAULT (protection).
 */
int vi_sg_init(struct vi_sg *sg, const struct vi_vi *vi, const struct vi_wqe *wqe, uint32_t access,
	       uint64_t need);

/*
 * Up to `want` contiguous bytes: *len_out > 0 at *addr_out.  Segments of length 0 are passed
 * over unchecked.  Returns 0, -EFAULT (protection), -ENOSPC (no segment left, or none needed).
 */
int vi_sg_next(struct vi_sg *sg, uint32_t want, uint8_t **addr_out, uint32_t *len_out);

/*
 * Checks what is needed of every segment of the walk's rest without using it; 0 or -EFAULT.
 * *total_out: the sum of the segments' lengths, also of what is not needed.
 */
int vi_sg_check_all(const struct vi_sg *sg, uint64_t *total_out);

/* The address segment of an RDMA descriptor. */
static inline const VIP_ADDRESS_SEGMENT *vi_wqe_remote(const struct vi_wqe *wqe)
{
	return &wqe->desc->DS[0].Remote;
}

/*
 * Is the descriptor fit to be started?  0, or the VIP_STATUS_ error bits it
 * completes with: FORMAT, LENGTH or PROTECTION.  Caller holds the queue's lock.
 */
uint32_t vi_desc_check_send(const struct vi_vi *vi, const struct vi_wqe *wqe);
/*
 * The same for a message of `bytes`: only where these lie the memory has to be open.  LENGTH: the
 * segments hold less.
 */
uint32_t vi_desc_check_recv(const struct vi_vi *vi, const struct vi_wqe *wqe, uint64_t bytes);

/* ---- virtual interfaces --------------------------------------------------------------------- */

struct vi_vi {
	/* Hot, read-mostly. */
	const struct vi_fast_ops *_Atomic fast; /* read without lock by pollers */
	struct vi_nic *nic;
	_Atomic uint64_t id;	/* 0 when destroyed; changes with both queue locks held */
	void *chan;		/* the provider's connection state */
	uint64_t ptag;		/* id, 0 for none */
	_Atomic uint32_t state; /* VIP_VI_STATE; changes with both queue locks held */
	uint32_t level;		/* VIP_RELIABILITY_LEVEL */
	uint64_t max_transfer;
	bool rdma_write, rdma_read;

	_Alignas(U_LINE_PAIR) struct u_biased tx_lock;
	struct vi_wq sq;
	_Alignas(U_LINE_PAIR) struct u_biased rx_lock;
	struct vi_wq rq;

	/* Cold. */
	_Alignas(U_LINE_PAIR) struct vi_ref ref;
	_Atomic uint32_t conn_lost; /* VIP_ERROR_CONN_LOST met a full event queue; 2: a quiet one */
	VIP_VI_ATTRIBUTES attrs;    /* changes with both queue locks held */
	struct vi_ptag *ptag_ref;   /* under nic->lock */
	struct vi_vi *next, *prev;  /* nic->vis, under nic->lock */
	void *pool_link;
	/*
	 * The provider's own; stays with this memory for its next VI, as late pollers may checked.
	 */
	void *prov;
	const struct vi_provider_ops *prov_ops; /* whose prov is */
	VIPX_COUNTERS counters; /* rx fields written under rx_lock, tx fields under tx_lock */
};

int vi_vi_create(struct vi_nic *nic, const VIP_VI_ATTRIBUTES *attrs, struct vi_cq *send_cq,
		 struct vi_cq *recv_cq, struct vi_vi **out);
/* -EISCONN: not Idle; -EBUSY: descriptors left, or a thread is inside a call; -EINVAL: stale id. */
int vi_vi_destroy(struct vi_vi *vi, uint64_t id);
int vi_vi_set(struct vi_vi *vi, const VIP_VI_ATTRIBUTES *attrs);
void vi_vi_query(struct vi_vi *vi, VIP_VI_STATE *state_out, VIP_VI_ATTRIBUTES *attrs_out,
		 bool *send_empty_out, bool *recv_empty_out);

/* The VI of a handle, held until vi_ref_put(&vi->ref), or NULL. */
struct vi_vi *vi_vi_get(const void *handle);

/* Caller holds both queue locks. */
static inline void vi_set_state(struct vi_vi *vi, VIP_VI_STATE state)
{
	atomic_store_explicit(&vi->state, (uint32_t)state, memory_order_release);
}

static inline VIP_VI_STATE vi_state(const struct vi_vi *vi)
{
	return (VIP_VI_STATE)atomic_load_explicit(&vi->state, memory_order_acquire);
}

/* Both queue locks, rx first. */
void vi_lock_both(struct vi_vi *vi);
void vi_unlock_both(struct vi_vi *vi);

#define VI_BREAK_RAISE 1u /* raises `event`, once */
#define VI_BREAK_QUIET 2u /* which the default handler does not write down: nothing was lost */
/* The provider completes what is in the send queue, and flushes the rest of it, later. */
#define VI_BREAK_KEEP_SENDS 4u

/*
 * Moves the VI to the Error state and flushes both queues with DESC_FLUSHED.  Does nothing unless
 * Connected.  Caller holds both queue locks.
 */
void vi_break(struct vi_vi *vi, uint32_t how, VIP_ERROR_CODE event);

/* ---- posting and taking descriptors ---------------------------------------------------------- */

/* As vi_send_done() or vi_recv_done() of vi_hot.h, waiting; 0 at the deadline.  -EINVAL also for a queue with a CQ. */
int vi_queue_wait(struct vi_vi *vi, bool is_recv, int64_t deadline, VIP_DESCRIPTOR **desc_out);

/* Arms a one-shot handler.  -EINVAL for a queue with a CQ; -ENOMEM; -ENOSPC: no thread. */
int vi_queue_notify(struct vi_vi *vi, bool is_recv, void *context,
		    void (*handler)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR *));

/* ---- completion queues ---------------------------------------------------------------------- */

/*
 * A CQ holds no ring of its own: an entry is a work queue with done != reaped,
 * so none can be lost.  Queues that completed something lately are on the hot
 * list, and a poll looks at (and makes progress on) only those.  A queue that is not hot comes
 * there by vi_cq_mark(): whoever completes something pushes it on `marked`,
 * without a lock, and the next poll moves it.
 *
 * Invariant: a queue with done != reaped is on `hot` or on `marked`.
 */
#define VI_CQ_FD_NONE (-1)
#define VI_CQ_IDLE_POLLS 2048u /* after so many polls without completion a queue is not hot */

struct vi_cq {
	struct u_biased lock; /* hot list, reaped counters, handlers */
	struct vi_nic *nic;
	_Atomic uint64_t id; /* 0 when destroyed */
	uint32_t entries;    /* as asked for */
	uint32_t attached;   /* queues */
	struct vi_wq **hot;  /* array of hot_cap >= attached */
	uint32_t hot_count, hot_cap;
	uint32_t hot_next; /* where the next poll starts: round robin */
	/* the one on which progress is made though there are entries */
	uint32_t progress_next;
	struct vi_wq *_Atomic marked; /* many push, the holder of the lock takes all */
	_Atomic uint32_t armed;	      /* notify handlers, plus one if the descriptor is armed */
	_Atomic uint32_t sleepers;    /* threads in vi_cq_wait() */
	struct vi_notify *notify_first, *notify_last;
	struct vi_ready ready;
	int event_fd; /* VipxCQFd; set once */
	_Atomic uint32_t fd_armed;
	struct vi_ref ref;
	struct vi_cq *next, *prev; /* nic->cqs */
	void *pool_link;
};

int vi_cq_create(struct vi_nic *nic, uint32_t entries, struct vi_cq **out);
/* -EBUSY: queues are attached or a thread is inside a call; -EINVAL: stale id. */
int vi_cq_destroy(struct vi_cq *cq, uint64_t id);
int vi_cq_resize(struct vi_cq *cq, uint32_t entries);
int vi_cq_attach(struct vi_cq *cq, struct vi_wq *wq); /* room in the hot list is reserved here */
void vi_cq_detach(struct vi_cq *cq, struct vi_wq *wq);

/* The CQ of a handle, held until vi_ref_put(&cq->ref), or NULL. */
struct vi_cq *vi_cq_get(const void *handle);

/*
 * Takes one entry if there is one without polling; else makes progress on the hot VIs once
 * and looks at the doorbell.  1: taken, 0: none; -EINVAL: stale id.
 */
int vi_cq_poll(struct vi_cq *cq, uint64_t id, uint64_t *vi_out, bool *is_recv_out);

/* As vi_cq_poll(), waiting; 0 at the deadline. */
int vi_cq_wait(struct vi_cq *cq, int64_t deadline, uint64_t *vi_out, bool *is_recv_out);

/* Takes one entry without polling.  Caller holds cq->lock. */
bool vi_cq_take(struct vi_cq *cq, struct vi_wq **wq_out);

/* Does any queue of the hot list have an entry, and how many are there?  Caller holds cq->lock. */
bool vi_cq_has_entry(struct vi_cq *cq);
uint64_t vi_cq_count(struct vi_cq *cq);

/* Takes a queue off the hot list.  Caller holds cq->lock. */
void vi_cq_unlist(struct vi_cq *cq, struct vi_wq *wq);

/* Takes back `n` armed handlers or descriptors. */
void vi_cq_disarm(struct vi_cq *cq, uint32_t n);

/*
 * wq, which has a CQ, completed something or deserves polling: puts it on the
 * hot list.  Caller holds the queue's lock.  A provider marks the queues of a
 * VI that connected.  When a queue leaves the hot list progress is made once on its VI
 * more, with wq->hot 0.
 */
void vi_cq_mark(struct vi_wq *wq);

/* Something completed on a queue of cq: handlers and descriptor.  The queue's lock may be held. */
void vi_cq_alert(struct vi_cq *cq);

int vi_cq_notify(struct vi_cq *cq, void *context,
		 void (*handler)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN));
int vi_cq_fd(struct vi_cq *cq, int *fd_out);
int vi_cq_arm(struct vi_cq *cq);

/* ---- asynchronous events and handlers ------------------------------------------------------- */

/* One-shot handler of VipSendNotify, VipRecvNotify, VipCQNotify. */
struct vi_notify {
	struct vi_notify *next;
	VIP_PVOID context;
	void (*on_desc)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR *);
	void (*on_cq)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN);
};

typedef void vi_error_handler(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *desc);

/* `main`: vi_dispatch(), for the thread, which does not run yet.  NULL: out of memory. */
struct vi_dispatcher *vi_event_create(struct vi_nic *nic, void *(*main)(void *));
void *vi_dispatch(void *dispatcher);
/* Stops and frees it; waits for a running handler unless called from one.  Accepts NULL. */
void vi_event_destroy(struct vi_dispatcher *d);
int vi_event_start(struct vi_nic *nic); /* the thread, if it does not run; 0 or -ENOSPC */
int vi_event_handler(struct vi_nic *nic, vi_error_handler *handler, void *context);

/*
 * Queues an asynchronous error for the NIC's handler; never blocks, callable
 * with queue locks held.  vi may be NULL.  When many wait, one that
 * is queued already is not queued again; when too many wait, it is counted and
 * lost, except VIP_ERROR_CONN_LOST of a VI.
 */
void vi_event_raise(struct vi_nic *nic, struct vi_vi *vi, VIP_RESOURCE_CODE resource,
		    VIP_ERROR_CODE code);
/* The same about a VI that broke; `quiet`: the default handler does not write it down. */
void vi_event_raise_broken(struct vi_vi *vi, VIP_ERROR_CODE code, bool quiet);
/* The same about a descriptor of a work queue; op: its VIP_STATUS_OP_ bits. */
void vi_event_raise_desc(struct vi_wq *wq, VIP_DESCRIPTOR *desc, uint32_t op,
			 VIP_RESOURCE_CODE resource, VIP_ERROR_CODE code);

/* An armed handler of this queue may be due: the dispatcher looks.  Queue locks may be held. */
void vi_event_ready(struct vi_nic *nic, struct vi_ready *ready);

/*
 * The object is going: drops its events and takes it off the list; then waits
 * for a handler of it, unless the caller is that handler.
 */
void vi_event_forget_vi(struct vi_vi *vi, uint64_t id);
void vi_event_forget_cq(struct vi_cq *cq, uint64_t id);

/* Takes the first handler off a list that is not empty. */
struct vi_notify *vi_notify_take(struct vi_notify **first, struct vi_notify **last);
/* Frees the handlers of a list; returns how many. */
uint32_t vi_notify_cancel(struct vi_notify **first, struct vi_notify **last);
void vi_notify_append(struct vi_notify **first, struct vi_notify **last, struct vi_notify *n);

/* ---- NICs ----------------------------------------------------------------------------------- */

enum vi_wait_mode { VI_WAIT_SPIN, VI_WAIT_YIELD, VI_WAIT_BLOCK, VI_WAIT_ADAPTIVE };
void vi_wait_init(struct vi_nic *nic, enum vi_wait_mode mode);

struct vi_nic {
	_Atomic uint64_t id;
	struct vi_ref ref;
	const struct vi_provider_ops *ops;
	void *prov;
	VIP_NIC_ATTRIBUTES attrs;
	uint8_t address[8];

	pthread_mutex_t lock; /* lists, ptags, regions */
	struct vi_vi *vis;
	struct vi_cq *cqs;
	struct vi_conn *conns; /* requests handed out, not decided; see vi_conn_take() */
	uint32_t vi_count, cq_count, ptag_count;
	struct vi_tpt tpt;

	struct vi_dispatcher *dispatcher; /* vi_event.c: thread "vi-event", started on first need */
	/* Armed notify handlers and CQ descriptors: somebody must progress. */
	_Atomic uint32_t notify_armed;
	_Atomic uint64_t sleeps; /* times a thread went to sleep in vi_wait() */
	_Atomic bool ns_ready;	 /* VipNSInit was called */
	/* no membarrier: completers fence before they checked for sleepers */
	bool fence;
	enum vi_wait_mode wait_mode;
	_Atomic uint32_t adaptive_polls; /* polls before the first yield; a hint */
	/* so many waits sleep at once, see u_contention.h; a hint */
	_Atomic uint32_t contention;
	_Atomic uint32_t lossy_sleeps; /* so many sleeps have a short cap; a hint */
	VIPX_COUNTERS closed;	       /* sums of VIs that are gone; under lock */
	void *pool_link;
};

int vi_nic_open(const char *device, struct vi_nic **out);
/* -EBUSY while VIs, CQs, regions or ptags live or a thread is inside a call; -EINVAL: stale id. */
int vi_nic_close(struct vi_nic *nic, uint64_t id);

/* The NIC of a handle, held until vi_ref_put(&nic->ref), or NULL. */
struct vi_nic *vi_nic_get(const void *handle);

/* Sums the counters of the NIC, or gives those of one VI. */
void vi_nic_counters(struct vi_nic *nic, struct vi_vi *vi, VIPX_COUNTERS *out);

/*
 * Waits until try(arg) returns nonzero or the deadline passes: polls, then
 * yields, then arms the provider, tries again and sleeps (VIADUCT_WAIT).
 * Returns what try returned, 0 at the deadline.
 *
 * Another thread of this process may bring it about, too: `sleepers` is nonzero while
 * this one sleeps, and who finds it so calls ops->wake().
 *
 * Between two sleeps the thread may be cancelled: then it gives back `held`, which its caller
 * holds, and nothing was taken.  try() meets no cancellation point.  `held` is NULL where the caller
 * turned cancellation off.
 */
int vi_wait(struct vi_nic *nic, _Atomic uint32_t *sleepers, struct vi_ref *held,
	    int (*try)(void *arg), void *arg, int64_t deadline);

/* ---- connection requests --------------------------------------------------------------------- */

int vi_conn_create(struct vi_nic *nic, struct vi_conn **out);
void vi_conn_free(struct vi_conn *conn);	/* one that was never published; accepts NULL */
uint64_t vi_conn_publish(struct vi_conn *conn); /* its id, 0 when the table is full */

/*
 * The request of a handle, for one caller at a time, or NULL.  It ends with vi_conn_return()
 * (undecided, can be taken again) or vi_conn_end().
 */
struct vi_conn *vi_conn_take(const void *handle);
void vi_conn_return(struct vi_conn *conn);
void vi_conn_end(struct vi_conn *conn);
void vi_conn_refuse_all(struct vi_nic *nic); /* for closing; no lock held */
void vi_conn_forked(void);		     /* in a child of fork() */

/* ---- errors --------------------------------------------------------------------------------- */

/* The one table from -errno to VIP_RETURN (vi_status.c). 0 -> VIP_SUCCESS. */
VIP_RETURN vi_return(int err);

const char *vi_return_name(VIP_RETURN code); /* never NULL */

/* "DONE|LENGTH_ERROR|OP_RECEIVE", cut to size - 1 characters. Returns the uncut length. */
size_t vi_status_text(uint32_t status, char *out, size_t size);

/*
 * 0 VIP_SUCCESS, -EAGAIN NOT_DONE, -EINVAL INVALID_PARAMETER,
 * -ENOMEM/-ENOSPC/-ENOBUFS/-EBUSY/-EMFILE/-ENFILE ERROR_RESOURCE, -ETIMEDOUT TIMEOUT,
 * -ECONNREFUSED REJECT, -EPROTOTYPE INVALID_RELIABILITY_LEVEL, -EMSGSIZE INVALID_MTU,
 * -EDOM INVALID_QOS, -EKEYREJECTED INVALID_PTAG, -EACCES INVALID_RDMAREAD, -EBADMSG DESCRIPTOR_ERROR,
 * -EISCONN INVALID_STATE, -ENOENT ERROR_NAMESERVICE, -ENOMSG NO_MATCH, -EHOSTUNREACH NOT_REACHABLE,
 * -EOPNOTSUPP ERROR_NOT_SUPPORTED; anything else ERROR_RESOURCE.
 */

#endif
