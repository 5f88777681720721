/* SPDX-License-Identifier: BSD-2-Clause */
/* mailbox - waits for one message under the name "mail" and prints it; mail.c sends it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vipl.h>
#include <vipl_ext.h>

#define CHECK(call) check(call, #call)

static _Alignas(VIP_DESCRIPTOR_ALIGNMENT) struct {
	VIP_DESCRIPTOR receive;
	char text[64 + 1]; /* and a zero byte at its end, whatever the sender sends */
} mem;

static void check(VIP_RETURN rc, const char *call)
{
	if (rc != VIP_SUCCESS) {
		fprintf(stderr, "%s: %s\n", call, VipxErrorString(rc));
		exit(1);
	}
}

int main(void)
{
	union {
		VIP_NET_ADDRESS addr;
		char room[64];
	} here, there; /* bytes follow the struct */
	VIP_VI_ATTRIBUTES attrs = { VIP_SERVICE_RELIABLE_DELIVERY, 4096, NULL, NULL, 0, 0 }, theirs;
	VIP_NIC_ATTRIBUTES nic_attrs;
	VIP_CONN_HANDLE conn;
	VIP_MEM_HANDLE handle;
	VIP_NIC_HANDLE nic;
	VIP_VI_HANDLE vi;
	VIP_DESCRIPTOR *done;

	/* A NIC, memory it may touch, a VI. */
	CHECK(VipOpenNic("nic0", &nic));
	CHECK(VipRegisterMem(nic, &mem, sizeof(mem), NULL, &handle));
	CHECK(VipCreateVi(nic, &attrs, NULL, NULL, &vi));

	/* A receive for the message, posted before any client can send. */
	mem.receive.CS.Control = VIP_CONTROL_OP_SENDRECV;
	mem.receive.CS.SegCount = 1;
	mem.receive.CS.Length = mem.receive.DS[0].Local.Length = sizeof(mem.text) - 1;
	mem.receive.DS[0].Local.Data.Address = mem.text;
	mem.receive.DS[0].Local.Handle = handle;
	CHECK(VipPostRecv(vi, &mem.receive, handle));

	/* The name under which to wait, on this host. */
	CHECK(VipQueryNic(nic, &nic_attrs));
	here.addr.HostAddressLen = nic_attrs.NicAddressLen;
	here.addr.DiscriminatorLen = 4;
	memcpy(here.addr.HostAddress, nic_attrs.LocalNicAddress, nic_attrs.NicAddressLen);
	memcpy(here.addr.HostAddress + nic_attrs.NicAddressLen, "mail", 4);
	there = here;
	CHECK(VipConnectWait(nic, &here.addr, VIP_INFINITE, &there.addr, &theirs, &conn));
	CHECK(VipConnectAccept(conn, vi));

	CHECK(VipRecvWait(vi, VIP_INFINITE, &done));
	printf("%s\n", mem.text);

	CHECK(VipDisconnect(vi));
	CHECK(VipDestroyVi(vi));
	CHECK(VipDeregisterMem(nic, &mem, handle));
	CHECK(VipCloseNic(nic));
	return 0;
}
