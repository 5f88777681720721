/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "u_time.h"
#include "vi_cq.h"
#include "vi_cq_notify.h"
#include "vi_cq_poll.h"
#include "vip_api.h"

/* Counts above 32 bits are above every limit. */
static uint32_t entry_count(VIP_ULONG count)
{
	return count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE *CQHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic;
	struct vi_cq *cq;
	int err;

	if (CQHandle == NULL)
		return VIP_INVALID_PARAMETER;
	nic = vi_nic_get(NicHandle);
	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_cq_create(nic, entry_count(EntryCount), &cq);
	if (err == 0)
		*CQHandle = vi_id_handle(atomic_load_explicit(&cq->id, memory_order_relaxed));
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_cq *cq = vi_cq_get(CQHandle);
	int err;

	if (cq == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_cq_resize(cq, entry_count(EntryCount));
	vi_ref_put(&cq->ref);
	return vi_return(err);
}

VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	uint64_t id = vi_handle_id(CQHandle);
	struct vi_cq *cq = vi_handle_object(CQHandle, VI_TYPE_CQ);

	return vi_return(cq != NULL ? vi_cq_destroy(cq, id) : -EINVAL);
}

/*
 * Translates the result of a poll or wait; `none`: the code for an empty queue.  Sets the outputs only with
 * VIP_SUCCESS.
 */
static VIP_RETURN entry_out(int got, VIP_RETURN none, uint64_t vi, bool is_recv,
			    VIP_VI_HANDLE *vi_out, VIP_BOOLEAN *is_recv_out)
{
	if (got <= 0)
		return got == 0 ? none : vi_return(got);
	*vi_out = vi_id_handle(vi);
	*is_recv_out = is_recv ? VIP_TRUE : VIP_FALSE;
	return VIP_SUCCESS;
}

VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE *ViHandle, VIP_BOOLEAN *RecvQueue)
{
	uint64_t id = vi_handle_id(CQHandle);
	struct vi_cq *cq = u_idtab_get(id, VI_TYPE_CQ);
	bool is_recv = false;
	uint64_t vi = 0;
	int got;

	if (u_unlikely(cq == NULL || ViHandle == NULL || RecvQueue == NULL))
		return vip_refuse(CQHandle);
	got = vi_cq_poll(cq, id, &vi, &is_recv);
	return entry_out(got, VIP_NOT_DONE, vi, is_recv, ViHandle, RecvQueue);
}

VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE *ViHandle,
		     VIP_BOOLEAN *RecvQueue)
{
	struct vi_cq *cq;
	bool is_recv = false;
	uint64_t vi = 0;
	int got;

	if (ViHandle == NULL || RecvQueue == NULL)
		return VIP_INVALID_PARAMETER;
	cq = vi_cq_get(CQHandle);
	if (cq == NULL)
		return VIP_INVALID_PARAMETER;
	got = vi_cq_wait(cq, u_deadline_ms(Timeout), &vi, &is_recv);
	vi_ref_put(&cq->ref);
	return entry_out(got, VIP_TIMEOUT, vi, is_recv, ViHandle, RecvQueue);
}

VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQHandle, VIP_PVOID Context,
		       void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle,
				       VIP_VI_HANDLE ViHandle, VIP_BOOLEAN RecvQueue))
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_cq *cq;
	int err;

	if (Handler == NULL)
		return VIP_INVALID_PARAMETER;
	cq = vi_cq_get(CQHandle);
	if (cq == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_cq_notify(cq, Context, Handler);
	vi_ref_put(&cq->ref);
	return vi_return(err);
}
