/* SPDX-License-Identifier: BSD-2-Clause */
/* mail - sends one message to the program that waits as "mail" on host1: mailbox.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vipl.h>
#include <vipl_ext.h>

#define CHECK(call) check(call, #call)

static _Alignas(VIP_DESCRIPTOR_ALIGNMENT) struct {
	VIP_DESCRIPTOR send;
	char text[64];
} mem = { .text = "hello over there" };

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
	} from, to; /* bytes follow the struct */
	VIP_VI_ATTRIBUTES attrs = { VIP_SERVICE_RELIABLE_DELIVERY, 4096, NULL, NULL, 0, 0 }, theirs;
	VIP_NIC_ATTRIBUTES nic_attrs;
	VIP_NIC_HANDLE nic;
	VIP_MEM_HANDLE handle;
	VIP_VI_HANDLE vi;
	VIP_DESCRIPTOR *done;
	char host[] = "host1";

	/* A NIC, memory it may touch, a VI. */
	CHECK(VipOpenNic("nic0", &nic));
	CHECK(VipRegisterMem(nic, &mem, sizeof(mem), NULL, &handle));
	CHECK(VipCreateVi(nic, &attrs, NULL, NULL, &vi));

	/* Addresses: a host, and a name (the discriminator) on it. */
	CHECK(VipQueryNic(nic, &nic_attrs));
	from.addr.HostAddressLen = nic_attrs.NicAddressLen;
	from.addr.DiscriminatorLen = 4;
	memcpy(from.addr.HostAddress, nic_attrs.LocalNicAddress, nic_attrs.NicAddressLen);
	memcpy(from.addr.HostAddress + nic_attrs.NicAddressLen, "mail", 4);
	to = from;
	CHECK(VipNSInit(nic, NULL));
	CHECK(VipNSGetHostByName(nic, host, &to.addr, 0));
	CHECK(VipConnectRequest(vi, &from.addr, &to.addr, 10000, &theirs));

	/* A descriptor says what to send; the queue takes it, the wait gives it back. */
	mem.send.CS.Control = VIP_CONTROL_OP_SENDRECV;
	mem.send.CS.SegCount = 1;
	mem.send.CS.Length = mem.send.DS[0].Local.Length = sizeof(mem.text);
	mem.send.DS[0].Local.Data.Address = mem.text;
	mem.send.DS[0].Local.Handle = handle;
	CHECK(VipPostSend(vi, &mem.send, handle));
	CHECK(VipSendWait(vi, VIP_INFINITE, &done));

	CHECK(VipDisconnect(vi));
	CHECK(VipDestroyVi(vi));
	CHECK(VipDeregisterMem(nic, &mem, handle));
	CHECK(VipCloseNic(nic));
	return 0;
}
