/* SPDX-License-Identifier: BSD-2-Clause */
/* NIC, memory and VIs of a process; a failure ends the process. */
#include "scale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECT_MS 30000u
#define MAX_TRANSFER 4096u

union address {
	VIP_NET_ADDRESS addr;
	uint8_t room[sizeof(VIP_NET_ADDRESS) + 128];
};

/* Does nothing: a connection may be lost here, and a later call reports it. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {}

void sc_open(struct sc_end *end)
{
	SC_CHECK(VipOpenNic("nic0", &end->nic));
	SC_CHECK(VipErrorCallback(end->nic, NULL, on_error));
	SC_CHECK(VipQueryNic(end->nic, &end->attrs));
}

void sc_close(struct sc_end *end)
{
	SC_CHECK(VipCloseNic(end->nic));
	end->nic = NULL;
}

void sc_slab_create(struct sc_end *end, struct sc_slab *slab, size_t count, size_t bytes)
{
	slab->count = count;
	slab->bytes = bytes;
	slab->room = (count * (sizeof(VIP_DESCRIPTOR) + bytes) + 4095) & ~(size_t)4095;
	slab->base = aligned_alloc(4096, slab->room);
	if (!slab->base)
		sc_die("%zu bytes of descriptors: out of memory", slab->room);
	memset(slab->base, 0, slab->room);
	SC_CHECK(VipRegisterMem(end->nic, slab->base, slab->room, NULL, &slab->handle));
}

void sc_slab_destroy(struct sc_end *end, struct sc_slab *slab)
{
	SC_CHECK(VipDeregisterMem(end->nic, slab->base, slab->handle));
	free(slab->base);
	slab->base = NULL;
}

VIP_DESCRIPTOR *sc_desc(const struct sc_slab *slab, size_t i)
{
	VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)(void *)(slab->base + i * sizeof(*d));
	size_t data = slab->count * sizeof(*d);

	d->CS.Control = VIP_CONTROL_OP_SENDRECV;
	d->CS.SegCount = 1;
	d->CS.Length = (VIP_UINT32)slab->bytes;
	d->CS.Status = 0;
	d->DS[0].Local.Data.Address = slab->base + data + i * slab->bytes;
	d->DS[0].Local.Handle = slab->handle;
	d->DS[0].Local.Length = (VIP_UINT32)slab->bytes;
	return d;
}

VIP_VI_HANDLE sc_vi(struct sc_end *end)
{
	VIP_VI_ATTRIBUTES attrs = { VIP_SERVICE_RELIABLE_DELIVERY, MAX_TRANSFER, NULL, NULL, 0, 0 };
	VIP_VI_HANDLE vi;

	SC_CHECK(VipCreateVi(end->nic, &attrs, NULL, NULL, &vi));
	return vi;
}

void sc_disconnect(VIP_VI_HANDLE vi)
{
	VIP_DESCRIPTOR *d;

	SC_CHECK(VipDisconnect(vi));
	do {
		VipSendDone(vi, &d);
	} while (d);
	do {
		VipRecvDone(vi, &d);
	} while (d);
}

void sc_vi_destroy(VIP_VI_HANDLE vi)
{
	sc_disconnect(vi);
	SC_CHECK(VipDestroyVi(vi));
}

static void fill_address(const struct sc_end *end, union address *a, const char *name)
{
	size_t host = end->attrs.NicAddressLen, len = strlen(name);

	memset(a, 0, sizeof(*a));
	if (offsetof(VIP_NET_ADDRESS, HostAddress) + host + len > sizeof(*a))
		sc_die("name '%.60s' is too long", name);
	a->addr.HostAddressLen = (VIP_UINT16)host;
	a->addr.DiscriminatorLen = (VIP_UINT16)len;
	memcpy(a->addr.HostAddress, end->attrs.LocalNicAddress, host);
	memcpy(a->addr.HostAddress + host, name, len);
}

void sc_connect_begin(struct sc_end *end, VIP_VI_HANDLE vi, const char *mine, const char *theirs)
{
	union address here, there;

	fill_address(end, &here, mine);
	fill_address(end, &there, theirs);
	SC_CHECK(VipConnectPeerRequest(vi, &here.addr, &there.addr, CONNECT_MS));
}

void sc_connect_end(VIP_VI_HANDLE vi)
{
	VIP_VI_ATTRIBUTES remote;

	SC_CHECK(VipConnectPeerWait(vi, &remote));
}

void sc_join(struct sc_end *end, VIP_VI_HANDLE a, VIP_VI_HANDLE b, uint32_t number)
{
	char first[64], second[64];

	snprintf(first, sizeof(first), "scale-%d-%u-a", (int)getpid(), number);
	snprintf(second, sizeof(second), "scale-%d-%u-b", (int)getpid(), number);
	sc_connect_begin(end, a, first, second);
	sc_connect_begin(end, b, second, first);
	sc_connect_end(a);
	sc_connect_end(b);
}
