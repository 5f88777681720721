/* SPDX-License-Identifier: BSD-2-Clause */
/* The extensions that post and take many descriptors, of a queue or of a completion queue. */
#include <errno.h>

#include "vi_handle.h"
#include "vi_many.h"
#include "vi_status.h"
#include "vi_vi.h"
#include "vip_api.h"

/*
 * Posts by `post`; *posted_out tells how many were posted, also on failure.  Returns the error of the one that was
 * refused.
 */
static VIP_RETURN post_many(VIP_VI_HANDLE handle, VIP_DESCRIPTOR *const *descs, VIP_ULONG count,
			    VIP_MEM_HANDLE memory, VIP_ULONG *posted_out,
			    int (*post)(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR *const *descs,
					uint64_t count, VIP_MEM_HANDLE memory,
					uint64_t *posted_out))
{
	uint64_t id = vi_handle_id(handle), posted = 0;
	struct vi_vi *vi = u_idtab_get(id, VI_TYPE_VI);
	int err;

	if (u_unlikely(posted_out == NULL))
		return VIP_INVALID_PARAMETER;
	*posted_out = 0;
	if (u_unlikely(vi == NULL || descs == NULL))
		return vip_refuse(handle);
	err = post(vi, id, descs, count, memory, &posted);
	*posted_out = posted;
	return vi_return(err);
}

VIP_RETURN VipxPostSends(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *const *Descriptors,
			 VIP_ULONG Count, VIP_MEM_HANDLE MemoryHandle, VIP_ULONG *Posted)
{
	return post_many(ViHandle, Descriptors, Count, MemoryHandle, Posted, vi_post_sends);
}

VIP_RETURN VipxPostRecvs(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *const *Descriptors,
			 VIP_ULONG Count, VIP_MEM_HANDLE MemoryHandle, VIP_ULONG *Posted)
{
	return post_many(ViHandle, Descriptors, Count, MemoryHandle, Posted, vi_post_recvs);
}

/*
 * Takes by `take`.  VIP_NOT_DONE: none is complete, or the queue is empty; VIP_DESCRIPTOR_ERROR: the last one taken
 * has an error.  *count_out is set in any case, to 0 if the handle is refused.
 */
static VIP_RETURN take_many(VIP_VI_HANDLE handle, VIP_DESCRIPTOR **descs, VIP_ULONG max,
			    VIP_ULONG *count_out,
			    int (*take)(struct vi_vi *vi, uint64_t id, VIP_DESCRIPTOR **descs,
					uint64_t max, uint64_t *count_out))
{
	uint64_t id = vi_handle_id(handle), count = 0;
	struct vi_vi *vi = u_idtab_get(id, VI_TYPE_VI);
	int got;

	if (u_unlikely(count_out == NULL))
		return VIP_INVALID_PARAMETER;
	*count_out = 0;
	if (u_unlikely(vi == NULL || descs == NULL || max == 0))
		return vip_refuse(handle);
	got = take(vi, id, descs, max, &count);
	*count_out = count;
	if (u_unlikely(got < 0))
		return vi_return(got);
	return got == 0 ? VIP_NOT_DONE : got == 2 ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS;
}

VIP_RETURN VipxSendsDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **Descriptors, VIP_ULONG Max,
			 VIP_ULONG *Count)
{
	return take_many(ViHandle, Descriptors, Max, Count, vi_sends_done);
}

VIP_RETURN VipxRecvsDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **Descriptors, VIP_ULONG Max,
			 VIP_ULONG *Count)
{
	return take_many(ViHandle, Descriptors, Max, Count, vi_recvs_done);
}

/* Are the array, its length and the Size of its entries valid for VipxCQTake()? */
static bool is_completions(const VIPX_COMPLETION *all, VIP_ULONG max)
{
	return all != NULL && max != 0 && all->Size >= sizeof(*all) &&
	       all->Size % _Alignof(VIPX_COMPLETION) == 0;
}

VIP_RETURN VipxCQTake(VIP_CQ_HANDLE CQHandle, VIPX_COMPLETION *Completions, VIP_ULONG Max,
		      VIP_ULONG *Count)
{
	uint64_t id = vi_handle_id(CQHandle), count = 0;
	struct vi_cq *cq = u_idtab_get(id, VI_TYPE_CQ);
	int got;

	if (u_unlikely(Count == NULL))
		return VIP_INVALID_PARAMETER;
	*Count = 0;
	if (u_unlikely(cq == NULL || !is_completions(Completions, Max)))
		return vip_refuse(CQHandle);
	got = vi_cq_take_many(cq, id, Completions, Completions->Size, Max, &count);
	*Count = count;
	return u_likely(got > 0) ? VIP_SUCCESS : got == 0 ? VIP_NOT_DONE : vi_return(got);
}

VIP_RETURN VipxSetViContext(VIP_VI_HANDLE ViHandle, VIP_PVOID Context)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_vi *vi = vi_vi_get(ViHandle);

	if (vi == NULL)
		return VIP_INVALID_PARAMETER;
	vi_vi_set_context(vi, Context);
	vi_ref_put(&vi->ref);
	return VIP_SUCCESS;
}
