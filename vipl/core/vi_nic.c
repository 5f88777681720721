/* SPDX-License-Identifier: BSD-2-Clause */
/* NICs: finding the provider of a device, opening and closing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "u_cfg.h"
#include "u_membarrier.h"
#include "vi_conn.h"
#include "vi_cq.h"
#include "vi_dispatch.h"
#include "vi_event.h"
#include "vi_fork.h"
#include "vi_limits.h"
#include "vi_mem.h"
#include "vi_nic.h"
#include "vi_place.h"
#include "vi_provider.h"
#include "vi_ptag.h"
#include "vi_vi.h"

#define PROVIDERS_MAX 8u

struct vi_pool vi_nic_pool = {
	.size = sizeof(struct vi_nic),
	.link = offsetof(struct vi_nic, pool_link),
};

/* The providers' tables, completed; filled once. */
static struct vi_provider_ops full_ops[PROVIDERS_MAX];
static uint32_t provider_count;

/* Fills full_ops; for pthread_once(). */
static void fill_providers(void)
{
	while (provider_count < PROVIDERS_MAX && vi_providers[provider_count] != NULL) {
		vi_provider_fill(&full_ops[provider_count], vi_providers[provider_count]);
		provider_count++;
	}
}

/* In a child of fork(): initialises locks and pools that all NICs share again. */
static void renew_shared(void)
{
	vi_conn_forked();
	vi_pool_forked(&vi_nic_pool);
	vi_pool_forked(&vi_vi_pool);
	vi_pool_forked(&vi_cq_pool);
	vi_pool_forked(&vi_ptag_pool);
}

/* Limits that hold for every provider; each narrows them in nic_open(). */
static void default_attrs(struct vi_nic *nic)
{
	nic->attrs = (VIP_NIC_ATTRIBUTES){
		.LocalNicAddress = nic->address,
		.ThreadSafe = VIP_TRUE,
		.MaxRegisterBytes = VI_MAX_REGISTER_BYTES,
		.MaxRegisterRegions = VI_MAX_REGIONS,
		.MaxRegisterBlockBytes = vi_max_region_bytes(),
		.MaxVI = VI_MAX_VIS,
		.MaxDescriptorsPerQueue = VI_MAX_DESCRIPTORS,
		.MaxSegmentsPerDesc = VI_MAX_SEGMENTS,
		.MaxCQ = VI_MAX_CQS,
		.MaxCQEntries = VI_MAX_CQ_ENTRIES,
		.MaxTransferSize = VI_MAX_TRANSFER,
		.MaxPtags = VI_MAX_PTAGS,
	};
}

/* Differs between NICs, so that a memory handle of one is not valid for another. */
static uint32_t next_first_generation(void)
{
	static _Atomic uint32_t count;

	return (atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) * 0x9e37u) & 0x3fffu;
}

/* Initializes a NIC that is to be opened, but for its id, dispatcher and reference count. */
static void reset(struct vi_nic *nic)
{
	pthread_mutex_init(&nic->lock, NULL);
	pthread_mutex_init(&nic->place_lock, NULL);
	nic->affinity = NULL;
	nic->mover = NULL;
	memset(nic->placed, 0, sizeof(nic->placed));
	nic->ops = NULL;
	nic->prov = NULL;
	nic->vis = NULL;
	nic->cqs = NULL;
	nic->conns = NULL;
	nic->vi_count = nic->cq_count = nic->ptag_count = 0;
	memset(&nic->tpt, 0, sizeof(nic->tpt));
	nic->tpt.first_generation = next_first_generation();
	atomic_store_explicit(&nic->notify_armed, 0, memory_order_relaxed);
	atomic_store_explicit(&nic->sleeps, 0, memory_order_relaxed);
	atomic_store_explicit(&nic->ns_ready, false, memory_order_relaxed);
	nic->fence = !u_membarrier_available();
	nic->wait_mode = (enum u_idle_mode)u_cfg_uint(U_CFG_WAIT);
	u_idle_past_init(&nic->idle_past, nic->wait_mode);
	memset(&nic->closed, 0, sizeof(nic->closed));
	memset(nic->address, 0, sizeof(nic->address));
	default_attrs(nic);
}

/* Opens the device with the first provider that knows it, and sets nic->ops.  -EINVAL: none does; else its error. */
static int open_provider(struct vi_nic *nic, const char *device)
{
	int err = -ENODEV;

	for (uint32_t i = 0; i < provider_count && err == -ENODEV; i++) {
		nic->ops = &full_ops[i];
		err = nic->ops->nic_open(nic, device);
	}
	return err == -ENODEV ? -EINVAL : err;
}

static void free_tpt(struct vi_tpt *tpt)
{
	for (uint32_t i = 0; i < VI_TPT_CHUNKS; i++)
		free(atomic_exchange_explicit(&tpt->chunk[i], NULL, memory_order_relaxed));
}

/*
 * Gives the NIC a dispatcher and an id, opens the device, and places the threads; on failure nothing of this is
 * left.  The id comes first: a provider's thread may raise events that name it while the device is being opened.
 */
static int open_nic(struct vi_nic *nic, const char *device)
{
	uint64_t id;
	int err;

	nic->dispatcher = vi_event_create(nic, vi_dispatch);
	if (nic->dispatcher == NULL)
		return -ENOMEM;
	id = u_idtab_add(VI_TYPE_NIC, nic);
	err = id == 0 ? -ENOSPC : 0;
	if (err == 0) {
		atomic_store_explicit(&nic->id, id, memory_order_relaxed);
		err = open_provider(nic, device);
	}
	if (err == 0) {
		err = vi_place_nic(nic, NULL);
		if (err == 0)
			return 0;
		nic->ops->nic_close(nic);
	}
	u_idtab_del(id);
	atomic_store_explicit(&nic->id, 0, memory_order_relaxed);
	vi_event_destroy(nic->dispatcher);
	nic->dispatcher = NULL;
	return err;
}

int vi_nic_open(const char *device, struct vi_nic **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct vi_nic *nic;
	int err = u_idtab_orphaned() ? -ENOSPC : vi_fork_watch(renew_shared);

	if (err == 0)
		err = u_cfg_load();
	if (err != 0)
		return err;
	pthread_once(&once, fill_providers);
	u_membarrier_register();
	nic = vi_pool_get(&vi_nic_pool);
	if (nic == NULL)
		return -ENOMEM;
	/* No thread may hold it before it is open. */
	atomic_fetch_or_explicit(&nic->ref.users, VI_REF_DEAD, memory_order_relaxed);
	reset(nic);
	err = open_nic(nic, device);
	if (err != 0) {
		pthread_mutex_destroy(&nic->place_lock);
		pthread_mutex_destroy(&nic->lock);
		vi_pool_put(&vi_nic_pool, nic);
		return err;
	}
	vi_ref_revive(&nic->ref);
	*out = nic;
	return 0;
}

struct vi_nic *vi_nic_get(const void *handle)
{
	uint64_t id = vi_handle_id(handle);
	struct vi_nic *nic = vi_handle_object(handle, VI_TYPE_NIC);

	if (nic == NULL || !vi_ref_get(&nic->ref))
		return NULL;
	if (atomic_load_explicit(&nic->id, memory_order_relaxed) == id)
		return nic;
	vi_ref_put(&nic->ref);
	return NULL;
}

/*
 * Refuses further holders of the NIC, or returns why that is not allowed: -EBUSY or -EINVAL, and nothing has changed.
 * Takes nic->lock.
 */
static int retire(struct vi_nic *nic, uint64_t id)
{
	int err = 0;

	if (!vi_ref_kill(&nic->ref))
		return -EBUSY;
	if (atomic_load_explicit(&nic->id, memory_order_relaxed) != id) {
		vi_ref_revive(&nic->ref);
		return -EINVAL;
	}
	pthread_mutex_lock(&nic->lock);
	if (nic->vi_count != 0 || nic->cq_count != 0 || nic->ptag_count != 0 || nic->tpt.count != 0)
		err = -EBUSY;
	pthread_mutex_unlock(&nic->lock);
	if (err != 0)
		vi_ref_revive(&nic->ref);
	return err;
}

int vi_nic_close(struct vi_nic *nic, uint64_t id)
{
	int err = retire(nic, id);

	if (err != 0)
		return err;
	u_idtab_del(id);
	vi_conn_refuse_all(nic);
	nic->ops->nic_close(nic);
	/* After the provider, whose threads may raise events. */
	atomic_store_explicit(&nic->id, 0, memory_order_relaxed);
	vi_event_destroy(nic->dispatcher);
	nic->dispatcher = NULL;
	free_tpt(&nic->tpt);
	vi_place_fini(nic);
	pthread_mutex_destroy(&nic->place_lock);
	pthread_mutex_destroy(&nic->lock);
	vi_pool_put(&vi_nic_pool, nic);
	return 0;
}
