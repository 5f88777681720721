/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual interfaces: their life, attributes and states. */
#ifndef VI_VI_H
#define VI_VI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_base.h"
#include "u_biased.h"
#include "vi_handle.h"
#include "vi_pool.h"
#include "vi_wq.h"
#include "vipl.h"
#include "vipl_ext.h"

struct vi_cq;
struct vi_fast_ops;
struct vi_nic;
struct vi_provider_ops;

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
	uint32_t unqueued_max; /* send_unqueued() takes messages up to this long; changes as `state` */
	bool rdma_write, rdma_read;

	_Alignas(U_LINE_PAIR) struct u_biased tx_lock;
	/*
	 * A line that the next post, or one soon after it, will write: VipPostSend() asks for it before all
	 * else.  A hint of the provider, under no lock; it may be stale, and nothing is read or written by it.
	 */
	const void *_Atomic ask;
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
	 * The provider's own; stays with this memory for its next VI, as late pollers may look at it.
	 */
	void *prov;
	const struct vi_provider_ops *prov_ops; /* whose prov is */
	void *context;		/* VipxSetViContext(); changes with both queue locks held */
	VIPX_COUNTERS counters; /* rx fields written under rx_lock, tx fields under tx_lock */
};

int vi_vi_create(struct vi_nic *nic, const VIP_VI_ATTRIBUTES *attrs, struct vi_cq *send_cq,
		 struct vi_cq *recv_cq, struct vi_vi **out);
/* -EISCONN: not Idle; -EBUSY: descriptors left, or a thread is inside a call; -EINVAL: stale id. */
int vi_vi_destroy(struct vi_vi *vi, uint64_t id);
int vi_vi_set(struct vi_vi *vi, const VIP_VI_ATTRIBUTES *attrs);
void vi_vi_query(struct vi_vi *vi, VIP_VI_STATE *state_out, VIP_VI_ATTRIBUTES *attrs_out,
		 bool *send_empty_out, bool *recv_empty_out);

void vi_vi_set_context(struct vi_vi *vi, void *context);

/* The VI of a handle, held until vi_ref_put(&vi->ref), or NULL. */
struct vi_vi *vi_vi_get(const void *handle);

/* The next post asks for this line; see struct vi_vi. */
static inline void vi_ask(struct vi_vi *vi, const void *line)
{
	atomic_store_explicit(&vi->ask, line, memory_order_relaxed);
}

/* Caller holds both queue locks; a VI that becomes Connected has its `fast`. */
void vi_set_state(struct vi_vi *vi, VIP_VI_STATE state);

static inline VIP_VI_STATE vi_state(const struct vi_vi *vi)
{
	return (VIP_VI_STATE)atomic_load_explicit(&vi->state, memory_order_acquire);
}

/* Both queue locks, rx first. */
void vi_lock_both(struct vi_vi *vi);
void vi_unlock_both(struct vi_vi *vi);

#define VI_BREAK_RAISE 1u /* raises `event`, once */
#define VI_BREAK_QUIET 2u /* which the default handler does not write down: nothing was lost */
/* The provider completes or flushes the entries of the send queue later. */
#define VI_BREAK_KEEP_SENDS 4u

/*
 * Moves the VI to the Error state and flushes both queues with DESC_FLUSHED.  Does nothing unless
 * Connected.  Caller holds both queue locks.
 */
void vi_break(struct vi_vi *vi, uint32_t how, VIP_ERROR_CODE event);

extern struct vi_pool vi_vi_pool;

#endif
