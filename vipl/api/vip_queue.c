/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "u_time.h"
#include "vi_post_hot.h"
#include "vi_take_hot.h"
#include "vi_vi.h"
#include "vip_api.h"

VIP_RETURN VipPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *DescriptorPtr,
		       VIP_MEM_HANDLE MemoryHandle)
{
	uint64_t id = vi_handle_id(ViHandle);
	struct vi_vi *vi = u_idtab_peek(id, VI_TYPE_VI);

	if (u_unlikely(vi == NULL))
		return vip_refuse(ViHandle);
	return vi_return(vi_post_send(vi, id, DescriptorPtr, MemoryHandle));
}

VIP_RETURN VipPostRecv(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *DescriptorPtr,
		       VIP_MEM_HANDLE MemoryHandle)
{
	uint64_t id = vi_handle_id(ViHandle);
	struct vi_vi *vi = u_idtab_peek(id, VI_TYPE_VI);

	if (u_unlikely(vi == NULL))
		return vip_refuse(ViHandle);
	return vi_return(vi_post_recv(vi, id, DescriptorPtr, MemoryHandle));
}

/*
 * Translates the result of vi_send_done() or vi_recv_done(); `busy`: the code for a head in progress.  An empty queue
 * gives VIP_DESCRIPTOR_ERROR, as a descriptor with an error does.
 */
static inline VIP_RETURN taken(int got, VIP_RETURN busy)
{
	if (u_likely(got == 1))
		return VIP_SUCCESS;
	if (got == 0)
		return busy;
	return got == 2 || got == -ENOENT ? VIP_DESCRIPTOR_ERROR : vi_return(got);
}

VIP_RETURN VipSendDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **DescriptorPtr)
{
	uint64_t id = vi_handle_id(ViHandle);
	struct vi_vi *vi = u_idtab_peek(id, VI_TYPE_VI);

	if (u_unlikely(DescriptorPtr == NULL))
		return VIP_INVALID_PARAMETER;
	*DescriptorPtr = NULL;
	if (u_unlikely(vi == NULL))
		return vip_refuse(ViHandle);
	return taken(vi_send_done(vi, id, DescriptorPtr), VIP_NOT_DONE);
}

VIP_RETURN VipRecvDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **DescriptorPtr)
{
	uint64_t id = vi_handle_id(ViHandle);
	struct vi_vi *vi = u_idtab_peek(id, VI_TYPE_VI);

	if (u_unlikely(DescriptorPtr == NULL))
		return VIP_INVALID_PARAMETER;
	*DescriptorPtr = NULL;
	if (u_unlikely(vi == NULL))
		return vip_refuse(ViHandle);
	return taken(vi_recv_done(vi, id, DescriptorPtr), VIP_NOT_DONE);
}

/*
 * Waits until the head of the queue is complete, and takes it; VIP_TIMEOUT: it was not.  VIP_DESCRIPTOR_ERROR: it has
 * an error, or the queue is empty, at once and with *out NULL.  VIP_INVALID_PARAMETER also for a queue with a CQ.
 */
static VIP_RETURN queue_wait(const void *handle, bool is_recv, VIP_ULONG timeout,
			     VIP_DESCRIPTOR **out)
{
	struct vi_vi *vi;
	int got;

	if (out == NULL)
		return VIP_INVALID_PARAMETER;
	*out = NULL;
	vi = vi_vi_get(handle);
	if (vi == NULL)
		return VIP_INVALID_PARAMETER;
	got = vi_queue_wait(vi, is_recv, u_deadline_ms(timeout), out);
	vi_ref_put(&vi->ref);
	return taken(got, VIP_TIMEOUT);
}

VIP_RETURN VipSendWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR **DescriptorPtr)
{
	return queue_wait(ViHandle, false, Timeout, DescriptorPtr);
}

VIP_RETURN VipRecvWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR **DescriptorPtr)
{
	return queue_wait(ViHandle, true, Timeout, DescriptorPtr);
}

/* Arms a one-shot handler.  VIP_INVALID_PARAMETER also for a queue with a CQ. */
static VIP_RETURN queue_notify(const void *handle, bool is_recv, VIP_PVOID context,
			       VIP_VI_CALLBACK handler)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_vi *vi;
	int err;

	if (handler == NULL)
		return VIP_INVALID_PARAMETER;
	vi = vi_vi_get(handle);
	if (vi == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_queue_notify(vi, is_recv, context, handler);
	vi_ref_put(&vi->ref);
	return vi_return(err);
}

VIP_RETURN VipSendNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context,
			 void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle,
					 VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *Descriptor))
{
	return queue_notify(ViHandle, false, Context, Handler);
}

VIP_RETURN VipRecvNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context,
			 void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle,
					 VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *Descriptor))
{
	return queue_notify(ViHandle, true, Context, Handler);
}
