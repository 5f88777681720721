/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "vi_cq.h"
#include "vi_vi.h"
#include "vip_api.h"

/*
 * The CQ of an optional handle, held; without a handle NULL and true.  False when it is not one of this NIC: nothing
 * is held.
 */
static bool cq_in(const struct vi_nic *nic, const void *handle, struct vi_cq **out)
{
	struct vi_cq *cq = handle != NULL ? vi_cq_get(handle) : NULL;

	if (cq != NULL && cq->nic != nic) {
		vi_ref_put(&cq->ref);
		return false;
	}
	*out = cq;
	return handle == NULL || cq != NULL;
}

static void cq_put(struct vi_cq *cq)
{
	if (cq != NULL)
		vi_ref_put(&cq->ref);
}

VIP_RETURN VipCreateVi(VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES *ViAttribs,
		       VIP_CQ_HANDLE SendCQHandle, VIP_CQ_HANDLE RecvCQHandle,
		       VIP_VI_HANDLE *ViHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic = vi_nic_get(NicHandle);
	struct vi_cq *send_cq = NULL;
	struct vi_cq *recv_cq = NULL;
	struct vi_vi *vi;
	int err = -EINVAL;

	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	if (ViAttribs != NULL && ViHandle != NULL && cq_in(nic, SendCQHandle, &send_cq) &&
	    cq_in(nic, RecvCQHandle, &recv_cq))
		err = vi_vi_create(nic, ViAttribs, send_cq, recv_cq, &vi);
	if (err == 0)
		*ViHandle = vi_id_handle(atomic_load_explicit(&vi->id, memory_order_relaxed));
	cq_put(send_cq);
	cq_put(recv_cq);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

VIP_RETURN VipDestroyVi(VIP_VI_HANDLE ViHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	uint64_t id = vi_handle_id(ViHandle);
	struct vi_vi *vi = vi_handle_object(ViHandle, VI_TYPE_VI);

	return vi_return(vi != NULL ? vi_vi_destroy(vi, id) : -EINVAL);
}

VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *ViAttribs)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_vi *vi = vi_vi_get(ViHandle);
	int err = -EINVAL;

	if (vi == NULL)
		return VIP_INVALID_PARAMETER;
	if (ViAttribs != NULL)
		err = vi_vi_set(vi, ViAttribs);
	vi_ref_put(&vi->ref);
	return vi_return(err);
}

VIP_RETURN VipQueryVi(VIP_VI_HANDLE ViHandle, VIP_VI_STATE *State, VIP_VI_ATTRIBUTES *ViAttribs,
		      VIP_BOOLEAN *SendQEmpty, VIP_BOOLEAN *RecvQEmpty)
{
	struct vi_vi *vi;
	bool send_empty;
	bool recv_empty;

	if (State == NULL || ViAttribs == NULL || SendQEmpty == NULL || RecvQEmpty == NULL)
		return VIP_INVALID_PARAMETER;
	vi = vi_vi_get(ViHandle);
	if (vi == NULL)
		return VIP_INVALID_PARAMETER;
	vi_vi_query(vi, State, ViAttribs, &send_empty, &recv_empty);
	*SendQEmpty = send_empty ? VIP_TRUE : VIP_FALSE;
	*RecvQEmpty = recv_empty ? VIP_TRUE : VIP_FALSE;
	vi_ref_put(&vi->ref);
	return VIP_SUCCESS;
}
