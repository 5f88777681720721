/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In the manner of message-passing libraries of the first VI adapters: two processes, each with a
 * server thread and a client on two openings of the same NIC; descriptors in char[64] fields; no
 * protection tag on VIs; answers by RDMA write into polled memory, with a flag word after the data;
 * the memory handle itself sent by RDMA write; acknowledgements of length 0 in one segment.
 */
#define VIPL095
#include <vipl.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef VIP_ERROR_NOT_SUPPORTED
#define VIP_ERROR_NOT_SUPPORTED -33333
#endif

#define DEVICE "/dev/clanvi0"
#define DISCRIMINATOR sizeof(double)
#define MESSAGE (64 * 1023)
#define REPLIES 40
#define REPLY_BYTES 253952
#define SECONDS 40

/* Descriptors first: they need the alignment. */
struct message {
	char send_desc[64];
	char recv_desc[64];
	char ack_desc[64];
	VIP_UINT64 reply_address;
	VIP_MEM_HANDLE reply_handle;
	VIP_UINT32 number;
	char payload[MESSAGE];
};

struct reply {
	char bytes[REPLY_BYTES - sizeof(int)];
	volatile int flag; /* last, so that it is written last */
};

struct side {
	VIP_NIC_HANDLE nic;
	VIP_PROTECTION_HANDLE ptag;
	VIP_VI_HANDLE vi;
	VIP_VI_ATTRIBUTES attrs;
	struct message *message;
	VIP_MEM_HANDLE message_handle;
	struct reply *reply;
	VIP_MEM_HANDLE reply_handle, reply_writable;
	VIP_ULONG max_transfer;
};

static time_t deadline;
static int rank;

static void fail(const char *what, int code)
{
	fprintf(stderr, "rank %d: %s: %d\n", rank, what, code);
	_exit(1);
}

#define CHECK(call)                                                                                \
	do {                                                                                       \
		VIP_RETURN rc_ = (call);                                                           \
		if (rc_ != VIP_SUCCESS)                                                            \
			fail(#call, rc_);                                                          \
	} while (0)

static void on_time(const char *what)
{
	if (time(NULL) > deadline)
		fail(what, -1);
}

/* A connection may be lost at the end, when the other side disconnects first. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	pthread_mutex_t *mutex = context;

	pthread_mutex_lock(mutex);
	if (error->ErrorCode != VIP_ERROR_CONN_LOST)
		fail("asynchronous error", error->ErrorCode);
	pthread_mutex_unlock(mutex);
}

static void make_address(struct side *s, char *buffer, double discriminator)
{
	VIP_NET_ADDRESS *address = (VIP_NET_ADDRESS *)buffer;
	char name[256], *dot;

	if (gethostname(name, sizeof(name)) != 0)
		fail("gethostname", 0);
	dot = strchr(name, '.');
	if (dot)
		*dot = '\0';
	memset(buffer, 0, 40);
	CHECK(VipNSGetHostByName(s->nic, name, address, 0));
	if (address->HostAddressLen == 0 || address->DiscriminatorLen != 0)
		fail("VipNSGetHostByName: HostAddressLen", address->HostAddressLen);
	address->DiscriminatorLen = DISCRIMINATOR;
	memcpy(address->HostAddress + address->HostAddressLen, &discriminator, DISCRIMINATOR);
}

static void *shared_memory(size_t bytes)
{
	int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
	void *memory = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
	if (memory == (void *)-1)
		fail("shared memory", id);
	return memory;
}

static void open_side(struct side *s)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	VIP_NIC_ATTRIBUTES nic;
	VIP_MEM_ATTRIBUTES plain, writable;

	CHECK(VipOpenNic(DEVICE, &s->nic));
	CHECK(VipQueryNic(s->nic, &nic));
	if (nic.NicAddressLen + sizeof(VIP_NET_ADDRESS) + DISCRIMINATOR > 40 || !nic.ThreadSafe)
		fail("NIC attributes", nic.NicAddressLen);
	CHECK(VipErrorCallback(s->nic, &mutex, on_error));
	CHECK(VipNSInit(s->nic, NULL));
	CHECK(VipCreatePtag(s->nic, &s->ptag));

	memset(&s->attrs, 0, sizeof(s->attrs));
	s->attrs.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
	s->attrs.MaxTransferSize = s->max_transfer = nic.MaxTransferSize;
	s->attrs.EnableRdmaWrite = VIP_TRUE;
	CHECK(VipCreateVi(s->nic, &s->attrs, NULL, NULL, &s->vi));

	s->message = shared_memory(sizeof(*s->message));
	if (posix_memalign((void **)&s->reply, 4096, sizeof(*s->reply)) != 0)
		fail("posix_memalign", 0);
	memset(s->reply, 0, sizeof(*s->reply));
	memset(&plain, 0, sizeof(plain));
	plain.Ptag = s->ptag;
	writable = plain;
	writable.EnableRdmaWrite = VIP_TRUE;
	CHECK(VipRegisterMem(s->nic, s->message, sizeof(*s->message), &plain, &s->message_handle));
	CHECK(VipRegisterMem(s->nic, s->reply, sizeof(*s->reply), &plain, &s->reply_handle));
	CHECK(VipRegisterMem(s->nic, s->reply, sizeof(*s->reply), &writable, &s->reply_writable));
	if (s->reply_handle == 0 || s->reply_writable == 0 || (int)s->reply_handle == -1 ||
	    s->reply_handle == s->reply_writable)
		fail("memory handles", (int)s->reply_handle);
}

static void close_side(struct side *s)
{
	CHECK(VipDisconnect(s->vi));
	CHECK(VipDestroyVi(s->vi));
	CHECK(VipDeregisterMem(s->nic, s->reply, s->reply_writable));
	CHECK(VipDeregisterMem(s->nic, s->reply, s->reply_handle));
	CHECK(VipDeregisterMem(s->nic, s->message, s->message_handle));
	CHECK(VipDestroyPtag(s->nic, s->ptag));
	CHECK(VipNSShutdown(s->nic));
	CHECK(VipCloseNic(s->nic));
	free(s->reply);
	shmdt(s->message);
}

static void fill(VIP_DESCRIPTOR *d, VIP_UINT16 control, void *data, VIP_MEM_HANDLE handle,
		 VIP_UINT32 length)
{
	int last = control == VIP_CONTROL_OP_RDMAWRITE;

	d->CS.SegCount = (VIP_UINT16)(1 + last);
	d->CS.Control = control;
	d->CS.Reserved = 0;
	d->CS.Status = 0;
	d->CS.Length = length;
	d->DS[last].Local.Data.AddressBits = 0;
	d->DS[last].Local.Data.Address = data;
	d->DS[last].Local.Handle = handle;
	d->DS[last].Local.Length = length;
}

static void post_recv(struct side *s)
{
	VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)s->message->recv_desc;

	fill(d, VIP_CONTROL_OP_SENDRECV, &s->message->reply_address, s->message_handle,
	     sizeof(*s->message) - offsetof(struct message, reply_address));
	CHECK(VipPostRecv(s->vi, d, s->message_handle));
}

/* Posts a descriptor to the send queue and polls until it is done; any other fails. */
static void send_one(struct side *s, char *desc)
{
	VIP_DESCRIPTOR *out = NULL;
	VIP_RETURN rc;

	CHECK(VipPostSend(s->vi, (VIP_DESCRIPTOR *)desc, s->message_handle));
	do {
		rc = VipSendDone(s->vi, &out);
		on_time("VipSendDone");
	} while (rc == VIP_NOT_DONE);
	if (rc != VIP_SUCCESS || (char *)out != desc)
		fail("VipSendDone", rc);
	if ((out->CS.Status & VIP_STATUS_OP_MASK) !=
	    ((out->CS.Control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_RDMAWRITE
		     ? VIP_STATUS_OP_RDMA_WRITE
		     : VIP_STATUS_OP_SEND))
		fail("Status", (int)out->CS.Status);
}

static VIP_DESCRIPTOR *receive(struct side *s)
{
	VIP_DESCRIPTOR *out = NULL;
	VIP_RETURN rc;

	do {
		rc = VipRecvWait(s->vi, 1, &out);
		on_time("VipRecvWait");
	} while (rc == VIP_NOT_DONE || rc == VIP_TIMEOUT);
	if (rc != VIP_SUCCESS || (char *)out != s->message->recv_desc)
		fail("VipRecvWait", rc);
	return out;
}

static void acknowledge(struct side *s)
{
	fill((VIP_DESCRIPTOR *)s->message->ack_desc, VIP_CONTROL_OP_SENDRECV, s->message->payload,
	     s->message_handle, 0);
	send_one(s, s->message->ack_desc);
}

/* Writes a reply, all bytes of which are `number`, to the peer's memory; the last word is the flag. */
static void answer(struct side *s, int number)
{
	VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)s->message->send_desc;

	memset(s->reply->bytes, number, sizeof(s->reply->bytes));
	s->reply->flag = number + 1;
	fill(d, VIP_CONTROL_OP_RDMAWRITE, s->reply, s->reply_handle, sizeof(*s->reply));
	d->DS[0].Remote.Data.AddressBits = s->message->reply_address;
	d->DS[0].Remote.Handle = s->message->reply_handle;
	d->DS[0].Remote.Reserved = 0;
	send_one(s, s->message->send_desc);
}

static void *serve(void *arg)
{
	struct side *s = arg;
	char local[40], remote[40];
	VIP_VI_ATTRIBUTES attrs;
	VIP_CONN_HANDLE conn;
	VIP_RETURN rc;
	double from;

	make_address(s, local, 100.5 + rank);
	post_recv(s);
	do {
		memset(remote, 0, sizeof(remote));
		rc = VipConnectWait(s->nic, (VIP_NET_ADDRESS *)local, 200,
				    (VIP_NET_ADDRESS *)remote, &attrs, &conn);
		on_time("VipConnectWait");
	} while (rc == VIP_TIMEOUT);
	if (rc != VIP_SUCCESS)
		fail("VipConnectWait", rc);
	memcpy(&from,
	       ((VIP_NET_ADDRESS *)remote)->HostAddress +
		       ((VIP_NET_ADDRESS *)remote)->HostAddressLen,
	       sizeof(from));
	if (from != 200.5 + (1 - rank) || attrs.MaxTransferSize != s->max_transfer)
		fail("address of the client", (int)from);
	CHECK(VipConnectAccept(conn, s->vi));
	for (int i = 0; i < REPLIES; i++) {
		VIP_DESCRIPTOR *d = receive(s);

		if (d->CS.Length != sizeof(*s->message) - offsetof(struct message, reply_address) ||
		    s->message->number != (VIP_UINT32)i ||
		    s->message->payload[MESSAGE - 1] != (char)(i + 3))
			fail("request", i);
		post_recv(s);
		acknowledge(s);
		answer(s, i);
	}
	return NULL;
}

static void connect_client(struct side *s)
{
	char local[40], remote[40];
	VIP_VI_ATTRIBUTES attrs;
	VIP_RETURN rc;

	make_address(s, local, 200.5 + rank);
	make_address(s, remote, 100.5 + (1 - rank));
	post_recv(s);
	do {
		rc = VipConnectRequest(s->vi, (VIP_NET_ADDRESS *)local, (VIP_NET_ADDRESS *)remote,
				       2000, &attrs);
		on_time("VipConnectRequest");
		sched_yield();
	} while (rc == VIP_NO_MATCH || rc == VIP_TIMEOUT || rc == VIP_REJECT);
	if (rc == VIP_NOT_REACHABLE || rc != VIP_SUCCESS)
		fail("VipConnectRequest", rc);
	if (!attrs.EnableRdmaWrite)
		fail("RemoteViAttribs", attrs.EnableRdmaWrite);
}

static void client(struct side *s)
{
	VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)s->message->send_desc;
	VIP_UINT32 length = sizeof(*s->message) - offsetof(struct message, reply_address);
	VIP_DESCRIPTOR *ack;

	connect_client(s);
	for (int i = 0; i < REPLIES; i++) {
		s->reply->flag = 0;
		s->message->reply_address = (VIP_UINT64)(uintptr_t)s->reply;
		s->message->reply_handle = s->reply_writable;
		s->message->number = (VIP_UINT32)i;
		memset(s->message->payload, i + 3, MESSAGE);
		fill(d, VIP_CONTROL_OP_SENDRECV, &s->message->reply_address, s->message_handle,
		     length);
		send_one(s, s->message->send_desc);
		ack = receive(s);
		if (ack->CS.Length != 0)
			fail("acknowledgement", (int)ack->CS.Length);
		post_recv(s);
		while (s->reply->flag != i + 1) {
			VIP_DESCRIPTOR *none;

			if (VipRecvDone(s->vi, &none) != VIP_NOT_DONE || none)
				fail("VipRecvDone", i);
			on_time("reply");
		}
		for (size_t k = 0; k < sizeof(s->reply->bytes); k++)
			if (s->reply->bytes[k] != (char)i)
				fail("reply: byte", (int)k);
	}
}

/* Takes the descriptors of both queues until there are none. */
static void drain(struct side *s)
{
	VIP_DESCRIPTOR *d;

	do
		(void)VipRecvDone(s->vi, &d);
	while (d);
	do
		(void)VipSendDone(s->vi, &d);
	while (d);
}

static int peer_barrier(int to_peer, int from_peer)
{
	char byte = 'x';

	return write(to_peer, &byte, 1) == 1 && read(from_peer, &byte, 1) == 1 ? 0 : -1;
}

static int run(int to_peer, int from_peer)
{
	struct side in, out;
	pthread_t server;

	open_side(&in);
	open_side(&out);
	if (in.nic == out.nic)
		fail("two openings, one handle", 0);
	printf("rank %d: transfers of %ld bytes at most\n", rank, (long)in.max_transfer);
	if (pthread_create(&server, NULL, serve, &in) != 0)
		fail("pthread_create", 0);
	client(&out);
	pthread_join(server, NULL);
	if (peer_barrier(to_peer, from_peer) != 0)
		fail("the other process", 0);
	CHECK(VipDisconnect(in.vi));
	CHECK(VipDisconnect(out.vi));
	drain(&in);
	drain(&out);
	close_side(&in);
	close_side(&out);
	return 0;
}

int main(void)
{
	int up[2], down[2], status = 1;
	pid_t child;

	deadline = time(NULL) + SECONDS;
	if (pipe(up) != 0 || pipe(down) != 0)
		return 1;
	child = fork();
	if (child < 0)
		return 1;
	rank = child == 0;
	close(rank ? up[0] : up[1]);
	close(rank ? down[1] : down[0]);
	if (rank)
		return run(up[1], down[0]);
	run(down[1], up[0]);
	if (waitpid(child, &status, 0) != child)
		return 1;
	return status != 0;
}
