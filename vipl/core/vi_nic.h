/* SPDX-License-Identifier: BSD-2-Clause */
/* NICs: opening and closing, and the state that all objects of a NIC share. */
#ifndef VI_NIC_H
#define VI_NIC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_idle.h"
#include "vi_handle.h"
#include "vi_pool.h"
#include "vi_tpt.h"
#include "vipl.h"
#include "vipl_ext.h"

struct u_affinity;
struct vi_conn;
struct vi_cq;
struct vi_dispatcher;
struct vi_provider_ops;
struct vi_vi;

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
	enum u_idle_mode wait_mode;
	struct u_idle_past idle_past; /* of the threads that wait */
	VIPX_COUNTERS closed;	      /* sums of VIs that are gone; under lock */
	pthread_mutex_t place_lock;   /* of what follows */
	struct u_affinity *affinity;
	VIPX_PLACEMENT placed[2]; /* by role: application, transfer */
	void *pool_link;
};

int vi_nic_open(const char *device, struct vi_nic **out);
/* -EBUSY while VIs, CQs, regions or ptags live or a thread is inside a call; -EINVAL: stale id. */
int vi_nic_close(struct vi_nic *nic, uint64_t id);

/* The NIC of a handle, held until vi_ref_put(&nic->ref), or NULL. */
struct vi_nic *vi_nic_get(const void *handle);

/* Sums the counters of the NIC, or gives those of one VI. */
void vi_nic_counters(struct vi_nic *nic, struct vi_vi *vi, VIPX_COUNTERS *out);

extern struct vi_pool vi_nic_pool;

#endif
