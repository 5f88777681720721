/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that a stream posts can be changed before, completions held back, and a record hidden; the linker's
 * --wrap leads the calls here.
 */
#include "alter.h"

#include <stdatomic.h>

#include "st_ring.h"

static _Atomic(alter_fn) change;
static atomic_uint posts;
static atomic_bool held;

void alter_by(alter_fn fn)
{
	atomic_store(&posts, 0);
	atomic_store(&change, fn);
}

VIP_RETURN __real_VipPostSend(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d, VIP_MEM_HANDLE handle);
VIP_RETURN __wrap_VipPostSend(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d, VIP_MEM_HANDLE handle);

VIP_RETURN __wrap_VipPostSend(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d, VIP_MEM_HANDLE handle)
{
	alter_fn fn = atomic_load(&change);

	if (fn)
		fn(d, atomic_fetch_add(&posts, 1) + 1);
	return __real_VipPostSend(vi, d, handle);
}

void alter_hold(bool on)
{
	atomic_store(&held, on);
}

VIP_RETURN __real_VipSendDone(VIP_VI_HANDLE vi, VIP_DESCRIPTOR **d);
VIP_RETURN __wrap_VipSendDone(VIP_VI_HANDLE vi, VIP_DESCRIPTOR **d);

VIP_RETURN __wrap_VipSendDone(VIP_VI_HANDLE vi, VIP_DESCRIPTOR **d)
{
	return atomic_load(&held) ? VIP_NOT_DONE : __real_VipSendDone(vi, d);
}

VIP_RETURN __real_VipxCQTake(VIP_CQ_HANDLE cq, VIPX_COMPLETION *all, VIP_ULONG most, VIP_ULONG *n);
VIP_RETURN __wrap_VipxCQTake(VIP_CQ_HANDLE cq, VIPX_COMPLETION *all, VIP_ULONG most, VIP_ULONG *n);

VIP_RETURN __wrap_VipxCQTake(VIP_CQ_HANDLE cq, VIPX_COMPLETION *all, VIP_ULONG most, VIP_ULONG *n)
{
	return atomic_load(&held) ? VIP_NOT_DONE : __real_VipxCQTake(cq, all, most, n);
}

static _Thread_local uint64_t hidden = UINT64_MAX;

void alter_hide(uint64_t position)
{
	hidden = position;
}

int __real_st_record_check(const uint8_t *ring, uint32_t ring_bytes, uint64_t key,
			   uint64_t position, struct st_header *header);
int __wrap_st_record_check(const uint8_t *ring, uint32_t ring_bytes, uint64_t key,
			   uint64_t position, struct st_header *header);

int __wrap_st_record_check(const uint8_t *ring, uint32_t ring_bytes, uint64_t key,
			   uint64_t position, struct st_header *header)
{
	if (position > hidden) {
		hidden = UINT64_MAX;
		return 0;
	}
	return __real_st_record_check(ring, ring_bytes, key, position, header);
}
