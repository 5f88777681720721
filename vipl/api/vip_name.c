/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "vip_api.h"

#define NAME_BYTES 256u

/* Opens the name service of the NIC for look-ups, or closes it.  VIP_INVALID_PARAMETER: a bad handle. */
static VIP_RETURN set_ready(const void *handle, bool ready)
{
	struct vi_nic *nic = vi_nic_get(handle);

	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	atomic_store_explicit(&nic->ns_ready, ready, memory_order_relaxed);
	vi_ref_put(&nic->ref);
	return VIP_SUCCESS;
}

VIP_RETURN VipNSInit(VIP_NIC_HANDLE NicHandle, VIP_PVOID NSInitInfo)
{
	(void)NSInitInfo;
	return set_ready(NicHandle, true);
}

VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE NicHandle)
{
	return set_ready(NicHandle, false);
}

/*
 * Looks up the name, then, if it has dots, the part before the first.  Every failure is -ENOENT, also that VipNSInit()
 * was not called.  `index`: which of the host's addresses.  `host_out` has room for NicAddressLen bytes.
 */
static int find_host(struct vi_nic *nic, const char *name, VIP_ULONG index, uint8_t *host_out)
{
	size_t cut = strcspn(name, ".");
	char part[NAME_BYTES];

	if (!atomic_load_explicit(&nic->ns_ready, memory_order_relaxed) || index > UINT32_MAX)
		return -ENOENT;
	if (nic->ops->name_to_host(nic, name, (uint32_t)index, host_out) == 0)
		return 0;
	if (name[cut] == '\0' || cut == 0 || cut >= sizeof(part))
		return -ENOENT;
	memcpy(part, name, cut);
	part[cut] = '\0';
	return nic->ops->name_to_host(nic, part, (uint32_t)index, host_out) == 0 ? 0 : -ENOENT;
}

VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE NicHandle, VIP_CHAR *Name, VIP_NET_ADDRESS *Address,
			      VIP_ULONG NameIndex)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_addr found = { 0 };
	struct vi_nic *nic;
	int err;

	if (Name == NULL || Address == NULL)
		return VIP_INVALID_PARAMETER;
	nic = vi_nic_get(NicHandle);
	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = find_host(nic, Name, NameIndex, found.host);
	if (err == 0) {
		/* The discriminator and its length stay as the caller set them. */
		Address->HostAddressLen = nic->attrs.NicAddressLen;
		memcpy(vip_addr_bytes(Address), found.host, nic->attrs.NicAddressLen);
	}
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

/*
 * Finds the name of a host.  -ENOENT: it has none, or VipNSInit() was not called; -EINVAL: no address.  `name_out` has
 * room for NAME_BYTES.
 */
static int find_name(struct vi_nic *nic, const VIP_NET_ADDRESS *addr, char *name_out)
{
	struct vi_addr host;
	int err = vip_host_in(nic, addr, &host);

	if (err != 0)
		return err;
	if (!atomic_load_explicit(&nic->ns_ready, memory_order_relaxed) ||
	    nic->ops->host_to_name(nic, host.host, name_out, NAME_BYTES) != 0)
		return -ENOENT;
	return 0;
}

/*
 * Copies the name and a NUL; *len, the room, becomes the length without the NUL.  -ENOSPC: *len is too small, and
 * becomes what is needed, with the NUL.
 */
static int name_out(const char *name, VIP_CHAR *out, VIP_ULONG *len)
{
	size_t need = strlen(name);

	if (need >= *len) {
		*len = need + 1;
		return -ENOSPC;
	}
	memcpy(out, name, need + 1);
	*len = need;
	return 0;
}

VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *Address, VIP_CHAR *Name,
			      VIP_ULONG *NameLen)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	char name[NAME_BYTES];
	struct vi_nic *nic;
	int err;

	if (Address == NULL || Name == NULL || NameLen == NULL)
		return VIP_INVALID_PARAMETER;
	nic = vi_nic_get(NicHandle);
	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = find_name(nic, Address, name);
	vi_ref_put(&nic->ref);
	if (err == 0)
		err = name_out(name, Name, NameLen);
	return vi_return(err);
}
