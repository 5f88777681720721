/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For programs of guests: a NIC, connections over it, and writes whose slots are counted.  An error
 * ends the program.
 */
#ifndef VIPL_SIDE_H
#define VIPL_SIDE_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <vipl.h>
#include <vipl_ext.h>

#define PATIENCE_MS 60000 /* longer than a test that passes ever needs */
#define CHECK(call) check(call, #call)

struct place {
	VIP_UINT64 address;
	VIP_MEM_HANDLE handle;
};

union address {
	VIP_NET_ADDRESS addr;
	char room[64];
};

static VIP_NIC_HANDLE nic;
static VIP_MEM_HANDLE handle; /* of the program's own memory, with its descriptors */

static void check(VIP_RETURN rc, const char *call)
{
	if (rc != VIP_SUCCESS) {
		fprintf(stderr, "%s: %s\n", call, VipxErrorString(rc));
		exit(1);
	}
}

static void expect(int good, const char *text)
{
	if (!good) {
		fprintf(stderr, "not so: %s\n", text);
		exit(1);
	}
}

/* The word that the peer has stored last at that place. */
static inline unsigned int load_word(const void *at)
{
	return atomic_load((const _Atomic unsigned int *)at);
}

static void open_nic(void *own, VIP_ULONG own_bytes, const char *name, union address *here)
{
	VIP_MEM_ATTRIBUTES open = { NULL, VIP_TRUE, VIP_FALSE };
	VIP_NIC_ATTRIBUTES attrs;

	CHECK(VipOpenNic("nic0", &nic));
	CHECK(VipRegisterMem(nic, own, own_bytes, &open, &handle));
	CHECK(VipQueryNic(nic, &attrs));
	here->addr.HostAddressLen = attrs.NicAddressLen;
	here->addr.DiscriminatorLen = (VIP_UINT16)strlen(name);
	memcpy(here->addr.HostAddress, attrs.LocalNicAddress, attrs.NicAddressLen);
	memcpy(here->addr.HostAddress + attrs.NicAddressLen, name, strlen(name));
}

static void create_vi(VIP_RELIABILITY_LEVEL level, unsigned int bytes, VIP_VI_HANDLE *vi)
{
	VIP_VI_ATTRIBUTES attrs = { level, bytes, NULL, NULL, 0, 0 };

	attrs.EnableRdmaWrite = VIP_TRUE;
	CHECK(VipCreateVi(nic, &attrs, NULL, NULL, vi));
}

static void segment(VIP_DESCRIPTOR *d, int at, void *data, VIP_UINT32 length)
{
	d->DS[at].Local.Data.Address = data;
	d->DS[at].Local.Handle = handle;
	d->DS[at].Local.Length = length;
	d->CS.Length = length;
	d->CS.SegCount = (VIP_UINT16)(at + 1);
}

static void send_message(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *desc, void *data, VIP_UINT32 length)
{
	VIP_DESCRIPTOR *done;

	memset(desc, 0, sizeof(*desc));
	desc->CS.Control = VIP_CONTROL_OP_SENDRECV;
	segment(desc, 0, data, length);
	CHECK(VipPostSend(vi, desc, handle));
	CHECK(VipSendWait(vi, PATIENCE_MS, &done));
}

static void expect_message(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *recv, void *at, VIP_UINT32 length)
{
	memset(recv, 0, sizeof(*recv));
	recv->CS.Control = VIP_CONTROL_OP_SENDRECV;
	segment(recv, 0, at, length);
	CHECK(VipPostRecv(vi, recv, handle));
}

static void wait_message(VIP_VI_HANDLE vi)
{
	VIP_DESCRIPTOR *done = NULL;
	VIP_RETURN rc = VipRecvWait(vi, PATIENCE_MS, &done);

	if (rc == VIP_DESCRIPTOR_ERROR)
		fprintf(stderr, "a message that was expected has the status %#x\n",
			done->CS.Status);
	check(rc, "VipRecvWait");
}

/* Writes the data; returns the number of slots that this takes. */
static inline VIP_UINT64 write_to(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *desc, const struct place *to,
				  void *data, VIP_UINT32 length)
{
	VIPX_COUNTERS before = { 0 }, after = { 0 };
	VIP_DESCRIPTOR *done;

	memset(desc, 0, sizeof(*desc));
	desc->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
	desc->DS[0].Remote.Data.AddressBits = to->address;
	desc->DS[0].Remote.Handle = to->handle;
	segment(desc, 1, data, length);
	before.Size = after.Size = sizeof(before);
	CHECK(VipxQueryCounters(nic, vi, &before));
	CHECK(VipPostSend(vi, desc, handle));
	CHECK(VipSendWait(vi, PATIENCE_MS, &done));
	CHECK(VipxQueryCounters(nic, vi, &after));
	expect(after.RdmaWrites == before.RdmaWrites + 1, "a write is counted as one");
	return after.SlotsSent - before.SlotsSent;
}

/* Connects; tries again until the server waits. */
static void connect_to(VIP_VI_HANDLE vi, VIP_CHAR *host, union address *here)
{
	time_t until = time(NULL) + PATIENCE_MS / 1000;
	union address there = *here;
	VIP_VI_ATTRIBUTES theirs;
	VIP_RETURN rc;

	CHECK(VipNSInit(nic, NULL));
	CHECK(VipNSGetHostByName(nic, host, &there.addr, 0));
	do
		rc = VipConnectRequest(vi, &here->addr, &there.addr, PATIENCE_MS, &theirs);
	while (rc == VIP_NO_MATCH && time(NULL) < until && sched_yield() == 0);
	CHECK(rc);
}

static void accept_one(VIP_VI_HANDLE vi, union address *here)
{
	union address there = *here;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE conn;

	CHECK(VipConnectWait(nic, &here->addr, PATIENCE_MS, &there.addr, &theirs, &conn));
	CHECK(VipConnectAccept(conn, vi));
}

/* Makes registered memory of the program, which may lie behind a window. */
static inline VIP_PVOID adopt_memory(VIP_ULONG bytes, VIP_MEM_HANDLE *adopted)
{
	VIP_MEM_ATTRIBUTES open = { NULL, VIP_TRUE, VIP_FALSE };
	VIP_PVOID at;

	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect(at != MAP_FAILED, "there is memory");
	CHECK(VipxAdoptMem(nic, at, bytes, &open, 0, adopted));
	return at;
}

#endif
