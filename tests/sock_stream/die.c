/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that have an effect at the other end; the linker's --wrap leads them here. */
#include "die.h"

#include <signal.h>
#include <stdatomic.h>

#include <vipl.h>
#include <vipl_ext.h>

#include "st_process.h"

static atomic_uint calls, last;
static atomic_bool behind_empty;
static void (*last_act)(void);

void die_at(unsigned n, void (*before)(void))
{
	last_act = before;
	atomic_store(&calls, 0);
	atomic_store(&last, n);
}

unsigned die_calls(void)
{
	return atomic_load(&calls);
}

/*
 * The callers hold locks of streams, so this takes none; a post that another thread makes during
 * this is under way, too.
 */
__attribute__((no_sanitize("thread"))) bool die_queued(void)
{
	bool queued = false;

	for (struct st_stream *s = st_process.all; s != NULL; s = s->next_all)
		queued |= s->link != NULL && s->link->send_head != s->link->send_tail;
	return queued;
}

void die_behind_empty(void)
{
	atomic_store(&behind_empty, true);
}

static bool is_empty(const VIP_DESCRIPTOR *d)
{
	const struct st_header *header =
		(const void *)(uintptr_t)d->DS[1].Local.Data.AddressBits; /* after the address */

	return d->CS.SegCount == 2 && d->CS.Length == sizeof(*header) &&
	       header->kind == ST_REC_DATA && header->length == 0;
}

__attribute__((no_sanitize("thread"))) bool die_awaited(void)
{
	bool asked = false;

	for (struct st_stream *s = st_process.all; s != NULL; s = s->next_all)
		asked |= s->link != NULL &&
			 __atomic_load_n(&s->link->words->arm[ST_ARM_DATA], __ATOMIC_ACQUIRE) !=
				 s->link->rung[ST_ARM_DATA];
	return asked;
}

static void die_here(void)
{
	if (atomic_fetch_add(&calls, 1) + 1 != atomic_load(&last))
		return;
	if (last_act)
		last_act();
	raise(SIGKILL);
}

VIP_RETURN __real_VipCreateVi(VIP_NIC_HANDLE nic, VIP_VI_ATTRIBUTES *attrs, VIP_CQ_HANDLE send,
			      VIP_CQ_HANDLE recv, VIP_VI_HANDLE *vi);
VIP_RETURN __wrap_VipCreateVi(VIP_NIC_HANDLE nic, VIP_VI_ATTRIBUTES *attrs, VIP_CQ_HANDLE send,
			      VIP_CQ_HANDLE recv, VIP_VI_HANDLE *vi);
VIP_RETURN __real_VipConnectPeerRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS *local,
					VIP_NET_ADDRESS *remote, VIP_ULONG timeout);
VIP_RETURN __wrap_VipConnectPeerRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS *local,
					VIP_NET_ADDRESS *remote, VIP_ULONG timeout);
VIP_RETURN __real_VipPostSend(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d, VIP_MEM_HANDLE handle);
VIP_RETURN __wrap_VipPostSend(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d, VIP_MEM_HANDLE handle);
VIP_RETURN __real_VipDisconnect(VIP_VI_HANDLE vi);
VIP_RETURN __wrap_VipDisconnect(VIP_VI_HANDLE vi);
ssize_t __real_st_sys_send(int fd, const struct iovec *iov, int count, int flags);
ssize_t __wrap_st_sys_send(int fd, const struct iovec *iov, int count, int flags);
int __real_st_sys_shutdown(int fd, int how);
int __wrap_st_sys_shutdown(int fd, int how);

VIP_RETURN __wrap_VipCreateVi(VIP_NIC_HANDLE nic, VIP_VI_ATTRIBUTES *attrs, VIP_CQ_HANDLE send,
			      VIP_CQ_HANDLE recv, VIP_VI_HANDLE *vi)
{
	die_here();
	return __real_VipCreateVi(nic, attrs, send, recv, vi);
}

VIP_RETURN __wrap_VipConnectPeerRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS *local,
					VIP_NET_ADDRESS *remote, VIP_ULONG timeout)
{
	die_here();
	return __real_VipConnectPeerRequest(vi, local, remote, timeout);
}

VIP_RETURN __wrap_VipPostSend(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d, VIP_MEM_HANDLE handle)
{
	VIP_RETURN rc;

	die_here();
	rc = __real_VipPostSend(vi, d, handle);
	if (atomic_load(&behind_empty) && is_empty(d))
		raise(SIGKILL);
	return rc;
}

VIP_RETURN __wrap_VipDisconnect(VIP_VI_HANDLE vi)
{
	die_here();
	return __real_VipDisconnect(vi);
}

ssize_t __wrap_st_sys_send(int fd, const struct iovec *iov, int count, int flags)
{
	die_here();
	return __real_st_sys_send(fd, iov, count, flags);
}

int __wrap_st_sys_shutdown(int fd, int how)
{
	die_here();
	return __real_st_sys_shutdown(fd, how);
}
