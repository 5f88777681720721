/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stddef.h>

#include "vi_handle.h"
#include "vi_objects.h"
#include "vi_ptag.h"

struct vi_pool vi_ptag_pool = {
	.size = sizeof(struct vi_ptag),
	.link = offsetof(struct vi_ptag, pool_link),
};

/* Returns the tag, or NULL if it is not of this NIC, or the id is stale. */
static struct vi_ptag *ptag_of(const struct vi_nic *nic, uint64_t id)
{
	struct vi_ptag *ptag = u_idtab_get(id, VI_TYPE_PTAG);

	if (ptag == NULL || atomic_load_explicit(&ptag->nic, memory_order_relaxed) != nic)
		return NULL;
	return ptag;
}

/* Makes a tag.  -ENOSPC: there are too many tags or handles; -ENOMEM.  Caller holds nic->lock. */
static int create_locked(struct vi_nic *nic, uint64_t *id_out)
{
	struct vi_ptag *ptag;

	if (nic->ptag_count >= nic->attrs.MaxPtags)
		return -ENOSPC;
	ptag = vi_pool_get(&vi_ptag_pool);
	if (ptag == NULL)
		return -ENOMEM;
	ptag->users = 0;
	atomic_store_explicit(&ptag->nic, nic, memory_order_relaxed);
	ptag->id = u_idtab_add(VI_TYPE_PTAG, ptag);
	if (ptag->id == 0) {
		vi_pool_put(&vi_ptag_pool, ptag);
		return -ENOSPC;
	}
	nic->ptag_count++;
	*id_out = ptag->id;
	return 0;
}

int vi_ptag_create(struct vi_nic *nic, uint64_t *id_out)
{
	int err;

	pthread_mutex_lock(&nic->lock);
	err = create_locked(nic, id_out);
	pthread_mutex_unlock(&nic->lock);
	return err;
}

/* -EKEYREJECTED: not of this NIC; -EBUSY: VIs or regions use it.  Caller holds nic->lock. */
static int destroy_locked(struct vi_nic *nic, uint64_t id)
{
	struct vi_ptag *ptag = ptag_of(nic, id);

	if (ptag == NULL)
		return -EKEYREJECTED;
	if (ptag->users != 0)
		return -EBUSY;
	u_idtab_del(id);
	atomic_store_explicit(&ptag->nic, NULL, memory_order_relaxed);
	nic->ptag_count--;
	vi_pool_put(&vi_ptag_pool, ptag);
	return 0;
}

int vi_ptag_destroy(struct vi_nic *nic, uint64_t id)
{
	int err;

	pthread_mutex_lock(&nic->lock);
	err = destroy_locked(nic, id);
	pthread_mutex_unlock(&nic->lock);
	return err;
}

int vi_ptag_get(struct vi_nic *nic, uint64_t id, struct vi_ptag **out)
{
	struct vi_ptag *ptag = NULL;

	if (id != 0) {
		ptag = ptag_of(nic, id);
		if (ptag == NULL)
			return -EKEYREJECTED;
		ptag->users++;
	}
	*out = ptag;
	return 0;
}

void vi_ptag_put(struct vi_ptag *ptag)
{
	if (ptag != NULL)
		ptag->users--;
}
