/* SPDX-License-Identifier: BSD-2-Clause */
/* The extensions of vipl_ext.h. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "u_time.h"
#include "vi_cq.h"
#include "vi_cq_notify.h"
#include "vi_mem.h"
#include "vi_vi.h"
#include "vip_api.h"

/* ---- window memory -------------------------------------------------------------------------- */

/*
 * Allocates window memory, `len` rounded up to whole pages, and registers it.  0, or -errno, and there is none;
 * -EINVAL: `len` is 0 or above the limit of the NIC.
 */
static int alloc_window(struct vi_nic *nic, uint64_t len, const VIP_MEM_ATTRIBUTES *attrs,
			void **addr_out, VIP_MEM_HANDLE *handle_out)
{
	void *window;
	void *addr;
	int err;

	if (len == 0 || len > nic->attrs.MaxRegisterBlockBytes)
		return -EINVAL;
	len = u_align_up(len, (uint64_t)sysconf(_SC_PAGESIZE));
	err = nic->ops->window_alloc(nic, len, false, &addr, &window);
	if (err != 0)
		return err;
	err = vi_mem_register(nic, addr, len, attrs, window, handle_out);
	if (err != 0)
		nic->ops->window_free(nic, window);
	else
		*addr_out = addr;
	return err;
}

VIP_RETURN VipxAllocMem(VIP_NIC_HANDLE NicHandle, VIP_ULONG Length, VIP_MEM_ATTRIBUTES *MemAttribs,
			VIP_PVOID *Address, VIP_MEM_HANDLE *MemoryHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic;
	int err;

	if (Address == NULL || MemoryHandle == NULL)
		return VIP_INVALID_PARAMETER;
	nic = vi_nic_get(NicHandle);
	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = alloc_window(nic, Length, MemAttribs, Address, MemoryHandle);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

VIP_RETURN VipxFreeMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemoryHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic = vi_nic_get(NicHandle);
	void *window;
	int err;

	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_mem_deregister(nic, Address, MemoryHandle, &window);
	if (err == 0)
		nic->ops->window_free(nic, window);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

VIP_RETURN VipxAdoptMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_ULONG Length,
			VIP_MEM_ATTRIBUTES *MemAttribs, VIP_ULONG Flags,
			VIP_MEM_HANDLE *MemoryHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic;
	int err;

	if (MemoryHandle == NULL || (Flags & ~(VIP_ULONG)VIPX_ADOPT_NO_WRITERS) != 0)
		return VIP_INVALID_PARAMETER;
	nic = vi_nic_get(NicHandle);
	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_mem_adopt(nic, Address, Length, MemAttribs, (Flags & VIPX_ADOPT_NO_WRITERS) == 0,
			   MemoryHandle);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

VIP_RETURN VipxMapRemote(VIP_VI_HANDLE ViHandle, VIP_UINT64 RemoteAddress, VIP_ULONG Length,
			 VIP_MEM_HANDLE RemoteMemHandle, VIP_PVOID *Address)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_vi *vi;
	int err;

	if (Address == NULL || Length == 0)
		return VIP_INVALID_PARAMETER;
	vi = vi_vi_get(ViHandle);
	if (vi == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi->nic->ops->remote_map(vi, RemoteAddress, Length, RemoteMemHandle, Address);
	vi_ref_put(&vi->ref);
	return vi_return(err);
}

VIP_RETURN VipxUnmapRemote(VIP_VI_HANDLE ViHandle, VIP_PVOID Address)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_vi *vi;
	int err;

	if (Address == NULL)
		return VIP_INVALID_PARAMETER;
	vi = vi_vi_get(ViHandle);
	if (vi == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi->nic->ops->remote_unmap(vi, Address);
	vi_ref_put(&vi->ref);
	return vi_return(err);
}

VIP_RETURN VipxFlush(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout)
{
	struct vi_vi *vi = vi_vi_get(ViHandle);
	int got;

	if (vi == NULL)
		return VIP_INVALID_PARAMETER;
	got = vi->nic->ops->flush(vi, u_deadline_ms(Timeout));
	vi_ref_put(&vi->ref);
	if (got == 0)
		return VIP_TIMEOUT;
	return got > 0 ? VIP_SUCCESS : vi_return(got);
}

/* ---- completion queues and progress ---------------------------------------------------------- */

VIP_RETURN VipxCQFd(VIP_CQ_HANDLE CQHandle, int *Fd)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_cq *cq;
	int err;

	if (Fd == NULL)
		return VIP_INVALID_PARAMETER;
	cq = vi_cq_get(CQHandle);
	if (cq == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_cq_fd(cq, Fd);
	vi_ref_put(&cq->ref);
	return vi_return(err);
}

VIP_RETURN VipxCQArm(VIP_CQ_HANDLE CQHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_cq *cq = vi_cq_get(CQHandle);
	int err;

	if (cq == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi_cq_arm(cq);
	vi_ref_put(&cq->ref);
	return vi_return(err);
}

VIP_RETURN VipxProgress(VIP_NIC_HANDLE NicHandle)
{
	struct vi_nic *nic = vi_nic_get(NicHandle);
	int moved;

	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	moved = nic->ops->progress(nic);
	vi_ref_put(&nic->ref);
	return moved > 0 ? VIP_SUCCESS : VIP_NOT_DONE;
}

/* ---- texts ---------------------------------------------------------------------------------- */

const char *VipxErrorString(VIP_RETURN Code)
{
	return vi_return_name(Code);
}

VIP_RETURN VipxStatusString(VIP_ULONG Status, char *Buffer, VIP_ULONG Length)
{
	if (Buffer == NULL || Length == 0)
		return VIP_INVALID_PARAMETER;
	return vi_status_text((uint32_t)Status, Buffer, Length) < Length ? VIP_SUCCESS
									 : VIP_ERROR_RESOURCE;
}

/* ---- queries -------------------------------------------------------------------------------- */

/* Asks the provider for the route to the host of the address; leaves out->Size.  0, or -errno and leaves *out. */
static int query_route(struct vi_nic *nic, const VIP_NET_ADDRESS *remote, VIPX_ROUTE *out)
{
	VIPX_ROUTE route = { 0 };
	struct vi_addr addr;
	int err = vip_host_in(nic, remote, &addr);

	if (err == 0)
		err = nic->ops->route(nic, &addr, &route);
	if (err != 0)
		return err;
	route.Size = out->Size;
	*out = route;
	return 0;
}

VIP_RETURN VipxQueryRoute(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *RemoteAddr, VIPX_ROUTE *Route)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_nic *nic;
	int err;

	/* Version 1 is the first: a caller with more room gets these fields and nothing after them. */
	if (RemoteAddr == NULL || Route == NULL || Route->Size < sizeof(*Route))
		return VIP_INVALID_PARAMETER;
	nic = vi_nic_get(NicHandle);
	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = query_route(nic, RemoteAddr, Route);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

/*
 * Gives the counters of one VI of the NIC or, without a handle, of the NIC; leaves out->Size.  0, or -EINVAL and
 * leaves *out: the handle is none of a VI of this NIC.
 */
static int query_counters(struct vi_nic *nic, const void *vi_handle, VIPX_COUNTERS *out)
{
	VIPX_COUNTERS counters;
	struct vi_vi *vi = NULL;
	int err = 0;

	if (vi_handle != NULL) {
		vi = vi_vi_get(vi_handle);
		if (vi == NULL)
			return -EINVAL;
		err = vi->nic == nic ? 0 : -EINVAL;
	}
	if (err == 0) {
		vi_nic_counters(nic, vi, &counters);
		counters.Size = out->Size;
		*out = counters;
	}
	if (vi != NULL)
		vi_ref_put(&vi->ref);
	return err;
}

VIP_RETURN VipxQueryCounters(VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
			     VIPX_COUNTERS *Counters)
{
	struct vi_nic *nic;
	int err;

	if (Counters == NULL || Counters->Size < sizeof(*Counters))
		return VIP_INVALID_PARAMETER;
	nic = vi_nic_get(NicHandle);
	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	err = query_counters(nic, ViHandle, Counters);
	vi_ref_put(&nic->ref);
	return vi_return(err);
}

VIP_RETURN VipxQueryVersion(VIP_ULONG *Extension, const char **Release)
{
	if (Extension != NULL)
		*Extension = VIPX_VERSION;
	if (Release != NULL)
		*Release = VIPX_RELEASE;
	return VIP_SUCCESS;
}
