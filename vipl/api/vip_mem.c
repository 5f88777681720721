/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "vi_mem.h"
#include "vi_ptag.h"
#include "vip_api.h"

VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE *ProtectionTag)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic;
	uint64_t id;
	int err;

	if (ProtectionTag == NULL)
		return VIP_INVALID_PARAMETER;
	nic = vi_nic_get(NicHandle);
	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_ptag_create(nic, &id);
	if (err == 0)
		*ProtectionTag = vi_id_handle(id);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE ProtectionTag)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic = vi_nic_get(NicHandle);
	int err;

	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_ptag_destroy(nic, vi_handle_id(ProtectionTag));
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_ULONG Length,
			  VIP_MEM_ATTRIBUTES *MemAttribs, VIP_MEM_HANDLE *MemoryHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic;
	int err;

	if (MemoryHandle == NULL)
		return VIP_INVALID_PARAMETER;
	nic = vi_nic_get(NicHandle);
	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_mem_register(nic, VirtualAddress, Length, MemAttribs, NULL, MemoryHandle);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress,
			    VIP_MEM_HANDLE MemoryHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic = vi_nic_get(NicHandle);
	int err;

	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_mem_deregister(nic, VirtualAddress, MemoryHandle, NULL);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

VIP_RETURN VipSetMemAttributes(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address,
			       VIP_MEM_HANDLE MemoryHandle, VIP_MEM_ATTRIBUTES *MemAttribs)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic;
	int err;

	if (MemAttribs == NULL)
		return VIP_INVALID_PARAMETER;
	nic = vi_nic_get(NicHandle);
	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_mem_set(nic, Address, MemoryHandle, MemAttribs);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

VIP_RETURN VipQueryMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemoryHandle,
		       VIP_MEM_ATTRIBUTES *MemAttribs)
{
	struct vi_nic *nic;
	int err;

	if (MemAttribs == NULL)
		return VIP_INVALID_PARAMETER;
	nic = vi_nic_get(NicHandle);
	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_mem_query(nic, Address, MemoryHandle, MemAttribs);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}
