/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mail - sends one message to the program that waits as "mail" on host1: mailbox.c. It may be started first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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

/* A request is answered at once where no program waits: the other one may not have come so far. */
static VIP_RETURN connect_to(VIP_VI_HANDLE vi, VIP_NET_ADDRESS *from, VIP_NET_ADDRESS *to)
{
	VIP_VI_ATTRIBUTES theirs;
	VIP_RETURN rc;
	int tries = 0;

	while ((rc = VipConnectRequest(vi, from, to, 10000, &theirs)) == VIP_NO_MATCH &&
	       tries++ < 1000) {
		if (tries == 1)
			fprintf(stderr, "mail: no mailbox waits on host1 yet; trying for 10 s\n");
		usleep(10000);
	}
	return rc;
}

int main(void)
{
	union {
		VIP_NET_ADDRESS addr;
		char room[64];
	} from, to; /* bytes follow the struct */
	VIP_VI_ATTRIBUTES attrs = { VIP_SERVICE_RELIABLE_DELIVERY, 4096, NULL, NULL, 0, 0 };
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
	CHECK(connect_to(vi, &from.addr, &to.addr));

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
