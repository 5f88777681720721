/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of a message in one thread: two VIs of one NIC, one round after the
 * other of post a receive, post a send, take both completions.  budget.py counts
 * its instructions; on its own it prints nanoseconds, for a look.
 *
 *	path ROUNDS BYTES [delivery|unreliable|reception]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vipl.h>
#include <vipl_ext.h>

#define MOST_BYTES 65536

static _Alignas(VIP_DESCRIPTOR_ALIGNMENT) struct {
	VIP_DESCRIPTOR send, recv;
	char from[MOST_BYTES], to[MOST_BYTES];
} mem;
static VIP_NIC_HANDLE nic;
static VIP_MEM_HANDLE handle;
static VIP_VI_HANDLE vis[2];

static void check(VIP_RETURN rc, const char *call)
{
	if (rc == VIP_SUCCESS)
		return;
	fprintf(stderr, "path: %s answered %s\n", call, VipxErrorString(rc));
	exit(1);
}

static void fill(VIP_DESCRIPTOR *desc, char *data, VIP_UINT32 bytes)
{
	memset(desc, 0, sizeof(*desc));
	desc->CS.Control = VIP_CONTROL_OP_SENDRECV;
	desc->CS.SegCount = 1;
	desc->CS.Length = desc->DS[0].Local.Length = bytes;
	desc->DS[0].Local.Data.Address = data;
	desc->DS[0].Local.Handle = handle;
}

static void connect_both(VIP_RELIABILITY_LEVEL level)
{
	VIP_VI_ATTRIBUTES attrs = { level, MOST_BYTES, NULL, NULL, 0, 0 };
	VIP_NIC_ATTRIBUTES nic_attrs;
	union {
		VIP_NET_ADDRESS addr;
		char room[64];
	} at[2];

	check(VipQueryNic(nic, &nic_attrs), "VipQueryNic");
	for (int i = 0; i < 2; i++) {
		memset(&at[i], 0, sizeof(at[i]));
		at[i].addr.HostAddressLen = nic_attrs.NicAddressLen;
		at[i].addr.DiscriminatorLen = 5;
		memcpy(at[i].addr.HostAddress, nic_attrs.LocalNicAddress, nic_attrs.NicAddressLen);
		memcpy(at[i].addr.HostAddress + nic_attrs.NicAddressLen, i ? "path1" : "path0", 5);
		check(VipCreateVi(nic, &attrs, NULL, NULL, &vis[i]), "VipCreateVi");
	}
	for (int i = 0; i < 2; i++)
		check(VipConnectPeerRequest(vis[i], &at[i].addr, &at[1 - i].addr, 10000),
		      "VipConnectPeerRequest");
	for (int i = 0; i < 2; i++)
		check(VipConnectPeerWait(vis[i], &attrs), "VipConnectPeerWait");
}

static void take(VIP_RETURN (*done)(VIP_VI_HANDLE, VIP_DESCRIPTOR **), VIP_VI_HANDLE vi)
{
	VIP_DESCRIPTOR *desc;
	VIP_RETURN rc;

	do
		rc = done(vi, &desc);
	while (rc == VIP_NOT_DONE);
	check(rc, "VipSendDone or VipRecvDone");
}

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Kept apart, so that what it calls can be counted without the rest. */
__attribute__((noinline)) static void rounds(long count, VIP_UINT32 bytes)
{
	for (long i = 0; i < count; i++) {
		fill(&mem.recv, mem.to, bytes);
		fill(&mem.send, mem.from, bytes);
		check(VipPostRecv(vis[1], &mem.recv, handle), "VipPostRecv");
		check(VipPostSend(vis[0], &mem.send, handle), "VipPostSend");
		take(VipRecvDone, vis[1]);
		take(VipSendDone, vis[0]);
	}
}

int main(int argc, char **argv)
{
	VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY;
	long count = argc > 2 ? atol(argv[1]) : 0;
	long bytes = argc > 2 ? atol(argv[2]) : -1;
	double start;

	if (argc > 3 && strcmp(argv[3], "delivery") != 0)
		level = strcmp(argv[3], "reception") == 0 ? VIP_SERVICE_RELIABLE_RECEPTION
							  : VIP_SERVICE_UNRELIABLE;
	if (count < 1 || bytes < 0 || bytes > MOST_BYTES) {
		fprintf(stderr, "usage: path ROUNDS BYTES [delivery|unreliable|reception]\n");
		return 2;
	}
	check(VipOpenNic("nic0", &nic), "VipOpenNic");
	check(VipRegisterMem(nic, &mem, sizeof(mem), NULL, &handle), "VipRegisterMem");
	connect_both(level);
	rounds(1000, (VIP_UINT32)bytes); /* warm, and locks have found their owner */
	start = now_ns();
	rounds(count, (VIP_UINT32)bytes);
	printf("%.1f ns a message\n", (now_ns() - start) / (double)count);
	for (int i = 0; i < 2; i++) {
		check(VipDisconnect(vis[i]), "VipDisconnect");
		check(VipDestroyVi(vis[i]), "VipDestroyVi");
	}
	check(VipDeregisterMem(nic, &mem, handle), "VipDeregisterMem");
	check(VipCloseNic(nic), "VipCloseNic");
	return 0;
}
