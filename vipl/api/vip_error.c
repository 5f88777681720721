/* SPDX-License-Identifier: BSD-2-Clause */
#include "vi_event.h"
#include "vip_api.h"

U_COLD VIP_RETURN vip_refuse(const void *handle)
{
	uint64_t id = vi_handle_id(handle);

	if (u_idtab_get(id, (uint8_t)(id >> 56)) == NULL)
		u_idtab_refused(id);
	return VIP_INVALID_PARAMETER;
}

VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context,
			    void (*Handler)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR *ErrorDesc))
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic = vi_nic_get(NicHandle);
	int err;

	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_event_handler(nic, Handler, Context);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}
