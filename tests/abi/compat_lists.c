/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In the manner of cluster middleware of the years of compat_fields.c: Control/Data descriptors
 * in malloc'ed arrays, aligned by hand and kept on a free list through Next;
 * memory registered without attributes; one completion queue of 1024 entries for
 * both queues; receives that keep the IMMEDIATE bit; messages without segments;
 * 300 RDMA writes at a time; the name service shut down before connecting.
 */
#include <vipl.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ADDR_LEN 6
#define DISC_LEN 12
#define DESC_BYTES (sizeof(VIP_DESCRIPTOR) + 252 * sizeof(VIP_DATA_SEGMENT))
#define SEGMENTS 7
#define DESCS 64
#define ROUNDS 500
#define OUTSTANDING 16
#define WRITES 300
#define BUFFER 8192
#define BYE 0xB7Eu
#define SECONDS 40

struct lists {
	char *raw;
	VIP_DESCRIPTOR *free;
	VIP_MEM_HANDLE handle;
	size_t bytes;
};

static const char *role;
static time_t deadline;
static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES nic_attrs;
static VIP_CQ_HANDLE cq;
static VIP_VI_HANDLE vi;
static struct lists list;
static VIP_UINT64 table[WRITES];
static VIP_MEM_HANDLE table_handle;

static void fail(const char *what, long code)
{
	fprintf(stderr, "%s: %s: %ld\n", role, what, code);
	_exit(1);
}

#define CHECK(call)                                                                                \
	do {                                                                                       \
		VIP_RETURN rc_ = (call);                                                           \
		if (rc_ != VIP_SUCCESS)                                                            \
			fail(#call, rc_);                                                          \
	} while (0)

static char *payload(VIP_DESCRIPTOR *d)
{
	return (char *)d + (DESC_BYTES + 63) / 64 * 64;
}

static VIP_DESCRIPTOR *take(void)
{
	VIP_DESCRIPTOR *d = list.free;

	if (!d)
		fail("free list", 0);
	list.free = d->Control.Next.Address;
	return d;
}

static void give(VIP_DESCRIPTOR *d)
{
	d->Control.Next.Address = list.free;
	list.free = d;
}

/* Registers the memory without attributes, so without tag and RDMA. */
static void make_list(void)
{
	size_t each = (DESC_BYTES + 63) / 64 * 64 + BUFFER;
	char *at;
	int i;

	list.bytes = each * DESCS * 2 + VIP_DESCRIPTOR_ALIGNMENT;
	list.raw = malloc(list.bytes);
	if (!list.raw)
		fail("malloc", 0);
	CHECK(VipRegisterMem(nic, list.raw, list.bytes, NULL, &list.handle));
	at = (char *)(((VIP_ULONG)list.raw + VIP_DESCRIPTOR_ALIGNMENT - 1) &
		      ~(VIP_ULONG)(VIP_DESCRIPTOR_ALIGNMENT - 1));
	for (i = 0; i < DESCS * 2; i++, at += each)
		give((VIP_DESCRIPTOR *)at);
}

/*
 * SegCount segments that share `length` bytes of the descriptor's buffer, in uneven parts.  There
 * may be more of them than the type declares.
 */
static void segments(VIP_DESCRIPTOR *d, int count, VIP_UINT32 length)
{
	VIP_DATA_SEGMENT *data = (void *)((char *)d + offsetof(VIP_DESCRIPTOR, Data));
	char *at = payload(d);
	VIP_UINT32 left = length;
	int i;

	for (i = 0; i < count; i++, data++) {
		VIP_UINT32 part = i == count - 1 ? left : left / 3;

		data->Data.Address = at;
		data->Handle = list.handle;
		data->Length = part;
		at += part;
		left -= part;
	}
	d->Control.SegCount = (VIP_UINT16)count;
	d->Control.Length = length;
	d->Control.Reserved = 0;
	d->Control.Status = 0;
}

static void post_receives(int count)
{
	while (count-- > 0) {
		VIP_DESCRIPTOR *d = take();

		segments(d, 3, BUFFER);
		d->Control.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
		CHECK(VipPostRecv(vi, d, list.handle));
	}
}

static void post_message(VIP_UINT32 imm, VIP_UINT32 length)
{
	VIP_DESCRIPTOR *d = take();

	memset(payload(d), (int)imm, length);
	segments(d, length ? SEGMENTS : 0, length);
	d->Control.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
	d->Control.ImmediateData = imm;
	CHECK(VipPostSend(vi, d, list.handle));
}

/*
 * The next completion of either queue: *received tells which.  At the end, when
 * the other side may have disconnected, receives may be flushed; sends may not.
 */
static int ending;

static VIP_DESCRIPTOR *complete(int *received)
{
	VIP_DESCRIPTOR *d = NULL;
	VIP_VI_HANDLE from;
	VIP_BOOLEAN recv;
	VIP_RETURN rc;

	do {
		rc = VipCQWait(cq, 500, &from, &recv);
		if (time(NULL) > deadline)
			fail("VipCQWait", rc);
	} while (rc == VIP_TIMEOUT);
	if (rc != VIP_SUCCESS || from != vi)
		fail("VipCQWait", rc);
	do
		rc = recv ? VipRecvDone(vi, &d) : VipSendDone(vi, &d);
	while (rc == VIP_NOT_DONE);
	*received = recv;
	if (rc == VIP_DESCRIPTOR_ERROR && d && ending && recv)
		return d;
	if (rc == VIP_DESCRIPTOR_ERROR && d)
		fail("Status", (long)d->Control.Status);
	if (rc != VIP_SUCCESS || !d)
		fail("Done after VipCQWait", rc);
	return d;
}

static void check_message(VIP_DESCRIPTOR *d, VIP_UINT32 imm, VIP_UINT32 length)
{
	VIP_UINT32 i;

	if ((d->Control.Status & VIP_STATUS_OP_MASK) != VIP_STATUS_OP_RECEIVE ||
	    !(d->Control.Status & VIP_STATUS_IMMEDIATE) || d->Control.ImmediateData != imm ||
	    d->Control.Length != length)
		fail("message", (long)d->Control.Status);
	for (i = 0; i < length; i++)
		if (payload(d)[i] != (char)imm)
			fail("byte", (long)i);
}

static VIP_UINT32 length_of(VIP_UINT32 round)
{
	return round % 5 == 0 ? 0 : round * 977 % (BUFFER + 1);
}

/* The address of the server as consumers fill it in: discriminator first, name later. */
static void make_address(char *buffer, const char *discriminator)
{
	VIP_NET_ADDRESS *address = (VIP_NET_ADDRESS *)buffer;
	char name[256];

	if (gethostname(name, sizeof(name)) != 0)
		fail("gethostname", 0);
	if (strchr(name, '.'))
		*strchr(name, '.') = '\0';
	memset(buffer, 0, sizeof(VIP_NET_ADDRESS) + ADDR_LEN + DISC_LEN);
	address->HostAddressLen = nic_attrs.NicAddressLen;
	address->DiscriminatorLen = DISC_LEN;
	memcpy(address->HostAddress + ADDR_LEN, discriminator, DISC_LEN);
	CHECK(VipNSGetHostByName(nic, name, address, 0));
	if (address->HostAddressLen != ADDR_LEN || address->DiscriminatorLen != DISC_LEN ||
	    memcmp(address->HostAddress + ADDR_LEN, discriminator, DISC_LEN) != 0)
		fail("VipNSGetHostByName", address->HostAddressLen);
	if (memcmp(address->HostAddress, nic_attrs.LocalNicAddress, ADDR_LEN) != 0)
		fail("LocalNicAddress", 0);
	if (VipNSGetHostByName(nic, name, address, 99) != VIP_ERROR_NAMESERVICE)
		fail("VipNSGetHostByName: index", 99);
}

static void open_all(char *local, char *remote, const char *mine, const char *other)
{
	VIP_VI_ATTRIBUTES attrs;
	VIP_MEM_ATTRIBUTES writable;

	CHECK(VipOpenNic("nic0", &nic));
	CHECK(VipQueryNic(nic, &nic_attrs));
	if (nic_attrs.NicAddressLen != ADDR_LEN || nic_attrs.MaxCQEntries < 1024 ||
	    nic_attrs.MaxDescriptorsPerQueue < WRITES || nic_attrs.MaxSegmentsPerDesc < 252)
		fail("NIC attributes", nic_attrs.NicAddressLen);
	CHECK(VipNSInit(nic, NULL));
	make_address(local, mine);
	make_address(remote, other);
	CHECK(VipNSShutdown(nic));

	CHECK(VipCreateCQ(nic, 1024, &cq));
	memset(&attrs, 0, sizeof(attrs));
	if (nic_attrs.ReliabilityLevelSupport >= VIP_SERVICE_RELIABLE_RECEPTION)
		attrs.ReliabilityLevel = VIP_SERVICE_RELIABLE_RECEPTION;
	else if (nic_attrs.ReliabilityLevelSupport >= VIP_SERVICE_RELIABLE_DELIVERY)
		attrs.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
	else
		attrs.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
	attrs.MaxTransferSize = 32768;
	attrs.EnableRdmaWrite = VIP_TRUE;
	CHECK(VipCreateVi(nic, &attrs, cq, cq, &vi));
	make_list();
	writable.Ptag = 0;
	writable.EnableRdmaWrite = VIP_TRUE;
	writable.EnableRdmaRead = VIP_FALSE;
	CHECK(VipRegisterMem(nic, table, sizeof(table), &writable, &table_handle));
	post_receives(DESCS);
}

/* Disconnects twice, empties the queues and destroys everything; ignores what VipCloseNic returns. */
static void close_all(void)
{
	VIP_DESCRIPTOR *d;
	VIP_BOOLEAN send_empty, recv_empty;
	VIP_VI_STATE state;
	VIP_VI_ATTRIBUTES attrs;

	CHECK(VipDisconnect(vi));
	CHECK(VipDisconnect(vi));
	do
		(void)VipRecvDone(vi, &d);
	while (d);
	do
		(void)VipSendDone(vi, &d);
	while (d);
	CHECK(VipQueryVi(vi, &state, &attrs, &send_empty, &recv_empty));
	if (state != VIP_STATE_IDLE || !send_empty || !recv_empty)
		fail("VipQueryVi", state);
	CHECK(VipDestroyVi(vi));
	CHECK(VipDestroyCQ(cq));
	CHECK(VipDeregisterMem(nic, table, table_handle));
	CHECK(VipDeregisterMem(nic, list.raw, list.handle));
	(void)VipCloseNic(nic);
	free(list.raw);
}

static void serve(char *local)
{
	char remote[sizeof(VIP_NET_ADDRESS) + ADDR_LEN + DISC_LEN];
	VIP_VI_ATTRIBUTES attrs;
	VIP_CONN_HANDLE conn;
	VIP_DESCRIPTOR *d;
	VIP_UINT32 round = 0;
	int received, i;

	CHECK(VipConnectWait(nic, (VIP_NET_ADDRESS *)local, VIP_INFINITE, (VIP_NET_ADDRESS *)remote,
			     &attrs, &conn));
	CHECK(VipConnectAccept(conn, vi));
	d = take();
	memcpy(payload(d), &table_handle, sizeof(table_handle));
	*(VIP_UINT64 *)(payload(d) + 8) = (VIP_UINT64)(VIP_ULONG)table;
	segments(d, 1, 16);
	d->Control.Control = VIP_CONTROL_OP_SENDRECV;
	CHECK(VipPostSend(vi, d, list.handle));
	for (;;) {
		d = complete(&received);
		if (received && d->Control.ImmediateData == BYE)
			break;
		if (received) {
			check_message(d, round, length_of(round));
			post_message(round, length_of(round));
			round++;
			post_receives(1);
		}
		give(d);
	}
	if (round != ROUNDS)
		fail("messages", (long)round);
	for (i = 0; i < WRITES; i++)
		if (table[i] != (VIP_UINT64)i * 3 + 1)
			fail("RDMA write", i);
}

static void write_table(VIP_MEM_HANDLE handle, VIP_UINT64 address)
{
	static char descs[(WRITES + 1) * 64];
	VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)(((VIP_ULONG)descs + 63) & ~63UL);
	VIP_MEM_HANDLE desc_handle;
	int i, received;

	CHECK(VipRegisterMem(nic, descs, sizeof(descs), NULL, &desc_handle));
	for (i = 0; i < WRITES; i++) {
		table[i] = (VIP_UINT64)i * 3 + 1;
		memset(&d[i], 0, sizeof(d[i]));
		d[i].Control.SegCount = 2;
		d[i].Control.Control = VIP_CONTROL_OP_RDMAWRITE;
		d[i].Control.Length = sizeof(table[i]);
		d[i].Data[0].Data.AddressBits = address + (VIP_ULONG)i * sizeof(table[i]);
		d[i].Data[0].Handle = handle;
		d[i].Data[1].Data.Address = &table[i];
		d[i].Data[1].Handle = table_handle;
		d[i].Data[1].Length = sizeof(table[i]);
		CHECK(VipPostSend(vi, &d[i], desc_handle));
	}
	for (i = 0; i < WRITES; i++)
		if (complete(&received) != &d[i] || received)
			fail("order of RDMA writes", i);
	CHECK(VipDeregisterMem(nic, descs, desc_handle));
}

static void ask(char *local, char *remote)
{
	VIP_UINT32 sent = 0, answered = 0;
	VIP_MEM_HANDLE handle;
	VIP_VI_ATTRIBUTES attrs;
	VIP_DESCRIPTOR *d;
	VIP_UINT64 address;
	VIP_RETURN rc;
	int received, outstanding = 0;

	do {
		rc = VipConnectRequest(vi, (VIP_NET_ADDRESS *)local, (VIP_NET_ADDRESS *)remote,
				       ~0UL, &attrs);
		if (time(NULL) > deadline)
			fail("VipConnectRequest", rc);
	} while (rc == VIP_NO_MATCH);
	if (rc != VIP_SUCCESS)
		fail("VipConnectRequest", rc);
	d = complete(&received);
	if (!received || d->Control.Length != 16)
		fail("first message", received);
	memcpy(&handle, payload(d), sizeof(handle));
	address = *(VIP_UINT64 *)(payload(d) + 8);
	give(d);
	while (answered < ROUNDS || outstanding) {
		while (sent < ROUNDS && sent - answered < OUTSTANDING) {
			post_message(sent, length_of(sent));
			sent++;
			outstanding++;
		}
		d = complete(&received);
		if (received) {
			check_message(d, answered, length_of(answered));
			answered++;
			post_receives(1);
		} else {
			outstanding--;
		}
		give(d);
	}
	write_table(handle, address);
	ending = 1;
	post_message(BYE, 0);
	do
		d = complete(&received);
	while (received);
	if ((d->Control.Status & VIP_STATUS_OP_MASK) != VIP_STATUS_OP_SEND)
		fail("last message", (long)d->Control.Status);
}

int main(void)
{
	char local[sizeof(VIP_NET_ADDRESS) + ADDR_LEN + DISC_LEN];
	char remote[sizeof(local)];
	int status = 1;
	pid_t child;

	deadline = time(NULL) + SECONDS;
	child = fork();
	if (child < 0)
		return 1;
	role = child ? "client" : "server";
	if (!child) {
		alarm(SECONDS);
		open_all(local, remote, "lists-server", "lists-client");
		serve(local);
		close_all();
		_exit(0);
	}
	open_all(local, remote, "lists-client", "lists-server");
	ask(local, remote);
	close_all();
	if (waitpid(child, &status, 0) != child)
		return 1;
	return status != 0;
}
