/* SPDX-License-Identifier: BSD-2-Clause */
#include "vip_api.h"

VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context,
			    void (*Handler)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR *ErrorDesc))
{
	struct vi_nic *nic = vi_nic_get(NicHandle);
	int err;

	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_event_handler(nic, Handler, Context);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}
