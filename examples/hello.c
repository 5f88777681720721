/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hello - two programs exchange a message: read this one first.
 *
 *	hello			starts both sides on this host
 *	hello --serve		waits for one client and answers it
 *	hello HOST		greets the server on HOST
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vipl.h>
#include <vipl_ext.h>

/* All memory that the NIC touches: descriptors, at multiples of 64 bytes, and data. */
static _Alignas(VIP_DESCRIPTOR_ALIGNMENT) struct {
	VIP_DESCRIPTOR send, recv;
	char text_out[64], text_in[64];
} mem;
static VIP_NIC_HANDLE nic;
static VIP_MEM_HANDLE handle;
static VIP_VI_HANDLE vi;
static union {
	VIP_NET_ADDRESS addr;
	char room[64];
} here, there; /* bytes follow the struct */

static void check(VIP_RETURN rc, const char *call)
{
	if (rc == VIP_SUCCESS)
		return;
	fprintf(stderr, "hello: %s answered %s; vi_info shows the hosts\n", call,
		VipxErrorString(rc));
	exit(1);
}

/* A connection that ends after the last message is not an error here. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {}

static void fill(VIP_DESCRIPTOR *desc, char *text, size_t length)
{
	memset(desc, 0, sizeof(*desc));
	desc->CS.Control = VIP_CONTROL_OP_SENDRECV;
	desc->CS.SegCount = 1;
	desc->CS.Length = desc->DS[0].Local.Length = (VIP_UINT32)length;
	desc->DS[0].Local.Data.Address = text;
	desc->DS[0].Local.Handle = handle;
}

static void set_up(void)
{
	VIP_VI_ATTRIBUTES attrs = { VIP_SERVICE_RELIABLE_DELIVERY, 4096, NULL, NULL, 0, 0 };
	VIP_NIC_ATTRIBUTES nic_attrs;

	check(VipOpenNic("nic0", &nic), "VipOpenNic");
	check(VipErrorCallback(nic, NULL, on_error), "VipErrorCallback");
	check(VipQueryNic(nic, &nic_attrs), "VipQueryNic");
	here.addr.HostAddressLen = nic_attrs.NicAddressLen;
	here.addr.DiscriminatorLen = 5;
	memcpy(here.addr.HostAddress, nic_attrs.LocalNicAddress, nic_attrs.NicAddressLen);
	memcpy(here.addr.HostAddress + nic_attrs.NicAddressLen, "hello", 5);
	there = here;
	check(VipRegisterMem(nic, &mem, sizeof(mem), NULL, &handle), "VipRegisterMem");
	check(VipCreateVi(nic, &attrs, NULL, NULL, &vi), "VipCreateVi");
	fill(&mem.recv, mem.text_in, sizeof(mem.text_in) - 1);
	check(VipPostRecv(vi, &mem.recv, handle), "VipPostRecv"); /* before the peer can send */
}

static void send_text(const char *who)
{
	VIP_DESCRIPTOR *done;

	fill(&mem.send, mem.text_out, (size_t)sprintf(mem.text_out, "hello from the %s", who));
	check(VipPostSend(vi, &mem.send, handle), "VipPostSend");
	check(VipSendWait(vi, VIP_INFINITE, &done), "VipSendWait");
}

static void receive_text(const char *who)
{
	VIP_DESCRIPTOR *done;

	check(VipRecvWait(vi, VIP_INFINITE, &done), "VipRecvWait");
	printf("%s received: %s\n", who, mem.text_in);
}

static void serve(VIP_ULONG timeout)
{
	VIP_VI_ATTRIBUTES attrs;
	VIP_CONN_HANDLE conn;

	check(VipConnectWait(nic, &here.addr, timeout, &there.addr, &attrs, &conn),
	      "VipConnectWait");
	check(VipConnectAccept(conn, vi), "VipConnectAccept");
	receive_text("server");
	send_text("server");
}

static void greet(char *host)
{
	VIP_VI_ATTRIBUTES attrs;
	VIP_RETURN rc;
	int tries = 1000;

	if (host) {
		check(VipNSInit(nic, NULL), "VipNSInit");
		check(VipNSGetHostByName(nic, host, &there.addr, 0), "VipNSGetHostByName");
	}
	while ((rc = VipConnectRequest(vi, &here.addr, &there.addr, 10000, &attrs)) ==
		       VIP_NO_MATCH &&
	       tries--)
		usleep(10000); /* the server does not wait yet */
	check(rc, "VipConnectRequest");
	send_text("client");
	receive_text("client");
}

int main(int argc, char **argv)
{
	int both = argc == 1, serving = argc == 2 && !strcmp(argv[1], "--serve"), status = 0;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-' && !serving)) {
		fprintf(stderr, "usage: hello [--serve | HOST]\n");
		return 2;
	}
	if (both)
		serving = fork() == 0;
	set_up();
	if (serving)
		serve(both ? 10000 : VIP_INFINITE);
	else
		greet(argv[1]);
	check(VipDisconnect(vi), "VipDisconnect");
	check(VipDestroyVi(vi), "VipDestroyVi");
	check(VipDeregisterMem(nic, &mem, handle), "VipDeregisterMem");
	check(VipCloseNic(nic), "VipCloseNic");
	wait(&status);
	if (status)
		return 1;
	if (fflush(stdout)) {
		perror("hello: writing to standard output");
		return 1;
	}
	return 0;
}
