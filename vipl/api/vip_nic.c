/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vip_api.h"

VIP_RETURN VipOpenNic(const VIP_CHAR *DeviceName, VIP_NIC_HANDLE *NicHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic;
	int err;

	if (DeviceName == NULL || NicHandle == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_nic_open(DeviceName, &nic);
	if (err == 0)
		*NicHandle = vi_id_handle(atomic_load(&nic->id));
	return vi_return(err);
}

VIP_RETURN VipCloseNic(VIP_NIC_HANDLE NicHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	uint64_t id = vi_handle_id(NicHandle);
	struct vi_nic *nic = vi_handle_object(NicHandle, VI_TYPE_NIC);

	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	return vi_return(vi_nic_close(nic, id));
}

VIP_RETURN VipQueryNic(VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES *NicAttribs)
{
	struct vi_nic *nic = vi_nic_get(NicHandle);

	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	if (NicAttribs != NULL)
		*NicAttribs = nic->attrs;
	vi_ref_put(&nic->ref);
	return NicAttribs != NULL ? VIP_SUCCESS : VIP_INVALID_PARAMETER;
}

/* ---- autodiscovery -------------------------------------------------------------------------- */

struct found {
	struct vi_addr addr;
	uint32_t hops;
	uint32_t order;
};

struct found_list {
	struct found *host;
	size_t count, cap;
};

/* Appends a copy.  0 or -ENOMEM. */
static int found_add(struct found_list *list, const struct found *f)
{
	size_t cap = list->cap != 0 ? list->cap * 2 : 16;
	struct found *host;

	if (list->count == list->cap) {
		host = realloc(list->host, cap * sizeof(*host));
		if (host == NULL)
			return -ENOMEM;
		list->host = host;
		list->cap = cap;
	}
	list->host[list->count++] = *f;
	return 0;
}

/*
 * Lists all hosts at most `hops` away, in the order of the fabric.  0 or -errno; the caller frees list->host in any
 * case.
 */
static int discover(struct vi_nic *nic, VIP_ULONG hops, struct found_list *list)
{
	struct found f = { .addr.host_len = nic->attrs.NicAddressLen };
	int err;

	for (f.order = 0;; f.order++) {
		err = nic->ops->host_list(nic, f.order, f.addr.host, &f.hops);
		if (err == -ENOENT)
			return 0;
		if (err == 0 && f.hops <= hops)
			err = found_add(list, &f);
		if (err != 0)
			return err;
	}
}

/* For qsort() of struct found: the nearest first, hosts as near as each other in the order in which they were found. */
static int nearer_first(const void *a, const void *b)
{
	const struct found *x = a;
	const struct found *y = b;

	if (x->hops != y->hops)
		return x->hops < y->hops ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/*
 * Writes the hosts that are near enough, the nearest first, up to NumAdAddrs, which becomes the number of all.
 * -ENOSPC: there was room for some of them only; no room at all, 0, asks for the number, and is no error.
 */
static int fill_list(struct vi_nic *nic, VIP_AUTODISCOVERY_LIST *out)
{
	struct found_list list = { 0 };
	VIP_ULONG room = out->NumAdAddrs;
	int err = discover(nic, out->NumberOfHops, &list);

	if (err == 0 && list.count > 0) {
		qsort(list.host, list.count, sizeof(*list.host), nearer_first);
		for (size_t i = 0; i < list.count && i < room; i++)
			vip_addr_out(out->ADAddrArray[i], &list.host[i].addr);
	}
	if (err == 0) {
		out->NumAdAddrs = list.count;
		if (room != 0 && list.count > room)
			err = -ENOSPC;
	}
	free(list.host);
	return err;
}

/* Has the list a place for as many addresses as it says?  False for NULL. */
static bool list_usable(const VIP_AUTODISCOVERY_LIST *list)
{
	if (list == NULL || (list->NumAdAddrs != 0 && list->ADAddrArray == NULL))
		return false;
	for (VIP_ULONG i = 0; i < list->NumAdAddrs; i++) {
		if (list->ADAddrArray[i] == NULL)
			return false;
	}
	return true;
}

VIP_RETURN VipQuerySystemManagementInfo(VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType,
					VIP_PVOID SysManInfo)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic = vi_nic_get(NicHandle);
	int err = -EINVAL;

	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	if (InfoType == VIP_SMI_AUTODISCOVERY && list_usable(SysManInfo))
		err = fill_list(nic, SysManInfo);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}
