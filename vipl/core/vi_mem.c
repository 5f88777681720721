/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions: the translation and protection table.
 *
 * A look-up takes no lock.  A region's fields other than ptag and rights are
 * constant while its handle is live, and the slot is used again only after
 * deregistration has passed through the locks of every VI: a thread that found the
 * handle live under such a lock sees whole fields and may use the memory until it
 * drops the lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "u_adopt.h"
#include "u_log.h"
#include "u_maps.h"
#include "vi_limits.h"
#include "vi_mem.h"
#include "vi_objects.h"
#include "vi_probe.h"
#include "vi_provider.h"
#include "vi_ptag.h"
#include "vi_slot.h"

/* ---- registration --------------------------------------------------------------------------- */

static const VIP_MEM_ATTRIBUTES no_attrs;

/* Returns the peers' rights by these attributes; to write only where the process itself may (`local`). */
static uint32_t remote_rights(const VIP_MEM_ATTRIBUTES *attrs, uint32_t local)
{
	return (attrs->EnableRdmaWrite && (local & VI_WRITE) ? VI_REMOTE_WRITE : 0u) |
	       (attrs->EnableRdmaRead ? VI_REMOTE_READ : 0u);
}

/* 0, or -EACCES: RDMA reads are enabled, which the NIC does not have. */
static int check_attrs(const struct vi_nic *nic, const VIP_MEM_ATTRIBUTES *attrs)
{
	return attrs->EnableRdmaRead && nic->attrs.RDMAReadSupport == 0 ? -EACCES : 0;
}

uint64_t vi_max_region_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	uint64_t bytes = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;

	if (bytes < VI_MAX_TRANSFER)
		bytes = VI_MAX_TRANSFER;
	return u_min64(bytes, VI_MAX_REGISTER_BYTES);
}

/*
 * 0, or -EINVAL: NULL, no bytes, more than a region of the NIC may have, or past the end of the addresses.  Reads no
 * memory.
 */
static int check_range(const struct vi_nic *nic, void *addr, uint64_t len)
{
	uint64_t start = (uintptr_t)addr;

	if (addr == NULL || len == 0 || len > nic->attrs.MaxRegisterBlockBytes)
		return -EINVAL;
	return len - 1 > UINTPTR_MAX - start ? -EINVAL : 0;
}

/*
 * Counts a region in and takes a slot for it.  -ENOSPC: too many regions or bytes; -ENOMEM: no slot.  Caller holds
 * nic->lock.
 */
static int enter_region(struct vi_nic *nic, uint64_t len, uint32_t *slot_out)
{
	struct vi_tpt *tpt = &nic->tpt;

	if (tpt->count >= nic->attrs.MaxRegisterRegions ||
	    len > nic->attrs.MaxRegisterBytes - tpt->bytes)
		return -ENOSPC;
	*slot_out = vi_slot_take(tpt);
	if (*slot_out == 0)
		return -ENOMEM;
	tpt->count++;
	tpt->bytes += len;
	return 0;
}

/* Undoes reserve(), for a region without a live handle; does not free its window.  Caller holds nic->lock. */
static void leave_region(struct vi_nic *nic, uint32_t slot)
{
	struct vi_region *r = vi_slot_region(&nic->tpt, slot);

	vi_ptag_put(r->ptag_ref);
	r->ptag_ref = NULL;
	r->window = NULL;
	r->adopted = NULL;
	nic->tpt.count--;
	nic->tpt.bytes -= atomic_load_explicit(&r->length, memory_order_relaxed);
	vi_slot_put(&nic->tpt, slot);
}

/*
 * Counts a region in and fills its slot, all but the handle; `local`: its rights without those of peers.  The region
 * holds a reference to its ptag.  Returns 0, or -EKEYREJECTED, -ENOSPC or -ENOMEM; leave_region() undoes it.  Caller
 * holds nic->lock.
 */
static int reserve(struct vi_nic *nic, void *addr, uint64_t len, const VIP_MEM_ATTRIBUTES *attrs,
		   uint32_t local, uint32_t *slot_out)
{
	struct vi_ptag *ptag;
	struct vi_region *r;
	int err;

	err = vi_ptag_get(nic, vi_handle_id(attrs->Ptag), &ptag);
	if (err != 0)
		return err;
	err = enter_region(nic, len, slot_out);
	if (err != 0) {
		vi_ptag_put(ptag);
		return err;
	}
	r = vi_slot_region(&nic->tpt, *slot_out);
	r->ptag_ref = ptag;
	atomic_store_explicit(&r->base, (uintptr_t)addr, memory_order_relaxed);
	atomic_store_explicit(&r->length, len, memory_order_relaxed);
	atomic_store_explicit(&r->ptag, vi_handle_id(attrs->Ptag), memory_order_relaxed);
	atomic_store_explicit(&r->rights, local | remote_rights(attrs, local),
			      memory_order_relaxed);
	return 0;
}

/* Makes the handle valid.  A: the fields before the handle that makes them live. */
static void publish(struct vi_nic *nic, VIP_MEM_HANDLE handle)
{
	atomic_store_explicit(&vi_slot_region(&nic->tpt, handle & VI_SLOT_MASK)->handle, handle,
			      memory_order_release);
}

/*
 * Enters a region, whose handle is then valid.  Returns as reserve(); *handle_out is set only with 0.  Caller holds
 * nic->lock.
 */
static int register_locked(struct vi_nic *nic, void *addr, uint64_t len,
			   const VIP_MEM_ATTRIBUTES *attrs, uint32_t local, void *window,
			   VIP_MEM_HANDLE *handle_out)
{
	uint32_t slot;
	int err;

	if (window != NULL)
		local |= VI_WINDOW;
	err = reserve(nic, addr, len, attrs, local, &slot);

	if (err != 0)
		return err;
	vi_slot_region(&nic->tpt, slot)->window = window;
	*handle_out = vi_slot_handle(&nic->tpt, slot);
	publish(nic, *handle_out);
	return 0;
}

int vi_mem_register(struct vi_nic *nic, void *addr, uint64_t len, const VIP_MEM_ATTRIBUTES *attrs,
		    void *window, VIP_MEM_HANDLE *handle_out)
{
	uint32_t local = VI_READ | VI_WRITE;
	int err;

	if (attrs == NULL)
		attrs = &no_attrs;
	err = check_range(nic, addr, len);
	if (err == 0)
		err = check_attrs(nic, attrs);
	if (err == 0 && window == NULL)
		err = vi_probe_range(addr, len, &local);
	if (err != 0 && window == NULL && vi_tpt_in_window(nic, addr, len)) {
		local = VI_READ | VI_WRITE;
		err = 0;
	}
	if (err != 0)
		return err;
	pthread_mutex_lock(&nic->lock);
	err = register_locked(nic, addr, len, attrs, local, window, handle_out);
	pthread_mutex_unlock(&nic->lock);
	return err;
}

/*
 * Changes the version of the table, and waits for both locks of every VI: a thread that found the old state of the
 * table and copies under such a lock has finished.  Caller holds nic->lock, and no lock of a VI.
 */
static void grace(struct vi_nic *nic)
{
	vi_tpt_change(nic);
	u_biased_grace_begin();
	for (struct vi_vi *vi = nic->vis; vi != NULL; vi = vi->next) {
		u_biased_grace(&vi->rx_lock);
		u_biased_grace(&vi->tx_lock);
	}
}

/* The live region of this handle and start address; NULL: there is none.  Caller holds nic->lock. */
static struct vi_region *own_region(struct vi_nic *nic, const void *addr, VIP_MEM_HANDLE handle)
{
	struct vi_region *r = vi_tpt_region(&nic->tpt, handle);

	if (r == NULL ||
	    atomic_load_explicit(&r->base, memory_order_relaxed) != (uint64_t)(uintptr_t)addr)
		return NULL;
	return r;
}

/* ---- adopted memory --------------------------------------------------------------------------- */

/* Memory of the program whose pages are those of a window. */
struct vi_adopted {
	void *window;
	void *pages; /* the window's own mapping of them */
	uint64_t len;
	bool exact; /* as in u_adopt() */
};

/* Does the range consist of whole pages?  0 or -EINVAL. */
static int check_pages(const void *addr, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (uintptr_t)addr % page != 0 || len % page != 0 ? -EINVAL : 0;
}

/*
 * Allocates a window and makes its pages those of the program's memory; fills `adopted`, whose length and `exact` are
 * set.  0; or -errno, and there is no window.  Logs why the memory cannot be adopted.
 */
static int adopt_pages(struct vi_nic *nic, void *addr, struct vi_adopted *adopted)
{
	char why[U_MAPS_WHY];
	int err =
		nic->ops->window_alloc(nic, adopted->len, true, &adopted->pages, &adopted->window);

	if (err != 0)
		return err;
	err = u_adopt(addr, adopted->len, adopted->pages, adopted->exact, why);
	if (err == 0)
		return 0;
	u_info("vi", "%" PRIu64 " bytes at %p cannot become window memory: %s", adopted->len, addr,
	       why);
	nic->ops->window_free(nic, adopted->window);
	return err == -EFAULT ? -EINVAL : err;
}

/*
 * Adopts memory for a reserved region, which gets its handle after that, or is freed on failure; `adopted` then stays
 * the caller's.  It is reserved before the memory changes.  Takes nic->lock.
 */
static int adopt_reserved(struct vi_nic *nic, void *addr, uint32_t slot, struct vi_adopted *adopted,
			  VIP_MEM_HANDLE *handle_out)
{
	struct vi_region *r = vi_slot_region(&nic->tpt, slot);
	int err = adopt_pages(nic, addr, adopted);

	pthread_mutex_lock(&nic->lock);
	if (err != 0) {
		leave_region(nic, slot);
	} else {
		r->window = adopted->window;
		r->adopted = adopted;
		*handle_out = vi_slot_handle(&nic->tpt, slot);
		publish(nic, *handle_out);
	}
	pthread_mutex_unlock(&nic->lock);
	return err;
}

int vi_mem_adopt(struct vi_nic *nic, void *addr, uint64_t len, const VIP_MEM_ATTRIBUTES *attrs,
		 bool exact, VIP_MEM_HANDLE *handle_out)
{
	struct vi_adopted *adopted;
	uint32_t slot;
	int err;

	if (attrs == NULL)
		attrs = &no_attrs;
	err = check_range(nic, addr, len);
	if (err == 0)
		err = check_pages(addr, len);
	if (err == 0)
		err = check_attrs(nic, attrs);
	if (err != 0)
		return err;
	adopted = malloc(sizeof(*adopted));
	if (adopted == NULL)
		return -ENOMEM;
	*adopted = (struct vi_adopted){ .len = len, .exact = exact };
	pthread_mutex_lock(&nic->lock);
	err = reserve(nic, addr, len, attrs, VI_READ | VI_WRITE | VI_WINDOW, &slot);
	pthread_mutex_unlock(&nic->lock);
	if (err == 0)
		err = adopt_reserved(nic, addr, slot, adopted, handle_out);
	if (err != 0)
		free(adopted);
	return err;
}

/*
 * Gives back the memory of a region whose handle was made invalid, and frees `adopted`; after a failure the handle is
 * valid again, and all is as before.  0 or -errno.  Takes nic->lock, and blocks without it.
 */
static int give_back(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle,
		     struct vi_adopted *adopted)
{
	int err;

	nic->ops->window_revoke(nic, adopted->window);
	err = u_adopt_undo(addr, adopted->len, adopted->pages, adopted->exact);
	pthread_mutex_lock(&nic->lock);
	if (err == 0)
		leave_region(nic, handle & VI_SLOT_MASK);
	else
		publish(nic, handle);
	pthread_mutex_unlock(&nic->lock);
	if (err != 0)
		return err;
	nic->ops->window_free(nic, adopted->window);
	free(adopted);
	return 0;
}

/* ---- the end of a registration ---------------------------------------------------------------- */

/*
 * Is the region for the call that is made?  Memory from VipxAllocMem is freed by its own call, VipxFreeMem, which
 * passes `window_out`; all other by VipDeregisterMem.
 */
static bool is_for_call(const struct vi_region *r, void **window_out)
{
	return (r->window != NULL && r->adopted == NULL) == (window_out != NULL);
}

/*
 * Makes the handle invalid, and waits until no thread uses the memory by it.  Adopted memory, which *adopted_out then
 * names, keeps its region until give_back(); NULL: other memory, whose region is freed.  -EINVAL: no such region, or
 * the other call is meant; leaves the outputs.  Caller holds nic->lock.
 */
static int deregister_locked(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle,
			     void **window_out, struct vi_adopted **adopted_out)
{
	struct vi_region *r = own_region(nic, addr, handle);

	if (r == NULL || !is_for_call(r, window_out))
		return -EINVAL;
	atomic_store_explicit(&r->handle, 0, memory_order_relaxed);
	grace(nic);
	if (window_out != NULL)
		*window_out = r->window;
	*adopted_out = r->adopted;
	if (r->adopted == NULL)
		leave_region(nic, handle & VI_SLOT_MASK);
	return 0;
}

int vi_mem_deregister(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle, void **window_out)
{
	struct vi_adopted *adopted;
	int err;

	pthread_mutex_lock(&nic->lock);
	err = deregister_locked(nic, addr, handle, window_out, &adopted);
	pthread_mutex_unlock(&nic->lock);
	if (err == 0 && adopted != NULL)
		err = give_back(nic, addr, handle, adopted);
	return err;
}

/*
 * No check may see rights that neither the old nor the new attributes give.  So this stores the rights
 * that both give, then the tag, then the new rights, each after all threads that saw the previous
 * state have finished.  Caller holds nic->lock.
 */
static void set_rights(struct vi_nic *nic, struct vi_region *r, uint32_t rights, uint64_t ptag)
{
	uint32_t old = atomic_load_explicit(&r->rights, memory_order_relaxed);

	atomic_store_explicit(&r->rights, old & rights, memory_order_relaxed);
	grace(nic);
	atomic_store_explicit(&r->ptag, ptag, memory_order_relaxed);
	grace(nic);
	atomic_store_explicit(&r->rights, rights, memory_order_relaxed);
}

/*
 * Gives the region another tag and other rights, and waits until no thread uses the old ones.  -EINVAL: no such
 * region; -EKEYREJECTED: no such tag.  Caller holds nic->lock.
 */
static int set_locked(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle,
		      const VIP_MEM_ATTRIBUTES *attrs)
{
	struct vi_region *r = own_region(nic, addr, handle);
	struct vi_ptag *ptag;
	uint32_t local;
	int err;

	if (r == NULL)
		return -EINVAL;
	err = vi_ptag_get(nic, vi_handle_id(attrs->Ptag), &ptag);
	if (err != 0)
		return err;
	vi_ptag_put(r->ptag_ref);
	r->ptag_ref = ptag;
	local = atomic_load_explicit(&r->rights, memory_order_relaxed) &
		(VI_READ | VI_WRITE | VI_WINDOW);
	set_rights(nic, r, local | remote_rights(attrs, local), vi_handle_id(attrs->Ptag));
	return 0;
}

int vi_mem_set(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle,
	       const VIP_MEM_ATTRIBUTES *attrs)
{
	struct vi_region *r;
	void *window = NULL;
	int err;

	pthread_mutex_lock(&nic->lock);
	r = own_region(nic, addr, handle);
	err = r == NULL ? -EINVAL : check_attrs(nic, attrs);
	if (err == 0)
		err = set_locked(nic, addr, handle, attrs);
	if (err == 0)
		window = r->window;
	pthread_mutex_unlock(&nic->lock);
	if (window != NULL)
		nic->ops->window_revoke(nic, window);
	return err;
}

int vi_mem_query(struct vi_nic *nic, void *addr, VIP_MEM_HANDLE handle, VIP_MEM_ATTRIBUTES *out)
{
	struct vi_region *r;
	uint32_t rights;

	pthread_mutex_lock(&nic->lock);
	r = own_region(nic, addr, handle);
	if (r != NULL) {
		rights = atomic_load_explicit(&r->rights, memory_order_relaxed);
		out->Ptag = vi_id_handle(atomic_load_explicit(&r->ptag, memory_order_relaxed));
		out->EnableRdmaWrite = rights & VI_REMOTE_WRITE ? VIP_TRUE : VIP_FALSE;
		out->EnableRdmaRead = rights & VI_REMOTE_READ ? VIP_TRUE : VIP_FALSE;
	}
	pthread_mutex_unlock(&nic->lock);
	return r != NULL ? 0 : -EINVAL;
}
