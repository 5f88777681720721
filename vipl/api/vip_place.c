/* SPDX-License-Identifier: BSD-2-Clause */
/* Placement of threads on processors. */
#include <errno.h>
#include <limits.h>

#include "u_place.h"
#include "vi_place.h"
#include "vip_api.h"

VIP_RETURN VipxSetAffinity(VIP_NIC_HANDLE NicHandle, const char *Rules)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic = vi_nic_get(NicHandle);
	int err;

	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_place_nic(nic, Rules);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

VIP_RETURN VipxQueryPlacement(VIP_NIC_HANDLE NicHandle, VIP_ULONG Role, VIPX_PLACEMENT *Placement)
{
	struct vi_nic *nic;
	int err;

	/* Version 5 is the first with it: a caller with more room gets these fields and nothing after them. */
	if (Placement == NULL || Placement->Size < sizeof(*Placement))
		return VIP_INVALID_PARAMETER;
	nic = vi_nic_get(NicHandle);
	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_place_query(nic, Role, Placement);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

VIP_RETURN VipxPlaceThread(VIP_NIC_HANDLE NicHandle, VIP_ULONG Role, VIP_ULONG Index,
			   VIP_ULONG Count, VIP_ULONG Flags, VIPX_PLACEMENT *Placement)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct u_place_ask ask = {
		.role = (enum u_place_role)Role,
		.index = (unsigned int)Index,
		.count = (unsigned int)Count,
		.polls = (Flags & VIPX_PLACE_POLLS) != 0,
	};
	VIPX_PLACEMENT placement;
	struct vi_nic *nic;
	int err;

	if ((Role != VIPX_ROLE_SERVICE && Role != VIPX_ROLE_APPLICATION) || Index >= Count ||
	    Count > U_CPUSET_END || (Flags & ~(VIP_ULONG)VIPX_PLACE_POLLS) != 0 ||
	    (Placement != NULL && Placement->Size < sizeof(*Placement)))
		return VIP_INVALID_PARAMETER;
	nic = vi_nic_get(NicHandle);
	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_place_thread(nic, &ask, &placement);
	vi_ref_put(&nic->ref);
	if (err == 0 && Placement != NULL) {
		placement.Size = Placement->Size;
		*Placement = placement;
	}
	return vi_return(err);
}
