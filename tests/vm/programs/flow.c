/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flow of messages from one host to another; each end reports its result.
 *
 *   flow receive NAME FILE       waits for a flow of that name, checks it, says «received N whole|broken»
 *   flow send HOST NAME FILE     sends until SIGTERM, says «sent N of M whole|broken»: N completed without error
 *
 * Messages are numbered from 0, and length and content follow from the number.  The receiver ends with 1 at once
 * when one is missing, doubled, out of order or changed.  FILE holds the number of messages so far.
 * Acknowledgements by messages of the other direction keep the receiver's queue from running empty.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vipl.h>
#include <vipl_ext.h>

#define LONGEST 32768u
#define DEPTH 32u /* receives that are posted, slots of sends */
#define AHEAD 24u /* messages without acknowledgement */
#define ACK_EVERY 8u
#define SILENT_MS 120000u
#define TRIES 3000

struct message {
	uint64_t number;
	uint32_t length, last;
	uint8_t data[];
};

static _Alignas(VIP_DESCRIPTOR_ALIGNMENT) struct {
	VIP_DESCRIPTOR send[DEPTH], recv[DEPTH];
	_Alignas(64) uint8_t out[DEPTH][LONGEST], in[DEPTH][LONGEST];
} mem;
static VIP_NIC_HANDLE nic;
static VIP_MEM_HANDLE handle;
static VIP_VI_HANDLE vi;
static union {
	VIP_NET_ADDRESS addr;
	char room[128];
} here, there;
static volatile sig_atomic_t stop;
static int progress;

static void on_signal(int number)
{
	stop = number;
}

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	(void)context;
	(void)error;
}

static void check(VIP_RETURN rc, const char *call)
{
	if (rc == VIP_SUCCESS)
		return;
	printf("%s answered %s\n", call, VipxErrorString(rc));
	exit(1);
}

static void say_progress(uint64_t n)
{
	char text[32];
	int length = snprintf(text, sizeof(text), "%-20" PRIu64 "\n", n);

	if (pwrite(progress, text, (size_t)length, 0) != length)
		exit(1);
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	return x ^ x >> 29;
}

static uint32_t length_of(uint64_t number)
{
	uint32_t most = number % 16 == 0 ? LONGEST : 2048;

	return (uint32_t)(sizeof(struct message) +
			  mix(number) % (most - sizeof(struct message) + 1));
}

static uint8_t byte_of(uint64_t number, uint32_t i)
{
	return (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

static VIP_DESCRIPTOR *fill(VIP_DESCRIPTOR *desc, void *at, uint32_t length)
{
	memset(desc, 0, sizeof(*desc));
	desc->CS.Control = VIP_CONTROL_OP_SENDRECV;
	desc->CS.SegCount = 1;
	desc->CS.Length = desc->DS[0].Local.Length = length;
	desc->DS[0].Local.Data.Address = at;
	desc->DS[0].Local.Handle = handle;
	return desc;
}

static void set_up(const char *name)
{
	VIP_VI_ATTRIBUTES attrs = { VIP_SERVICE_RELIABLE_RECEPTION, LONGEST, NULL, NULL, 0, 0 };
	VIP_NIC_ATTRIBUTES own;
	unsigned int i;

	check(VipOpenNic("nic0", &nic), "VipOpenNic");
	check(VipErrorCallback(nic, NULL, on_error), "VipErrorCallback");
	check(VipQueryNic(nic, &own), "VipQueryNic");
	here.addr.HostAddressLen = own.NicAddressLen;
	here.addr.DiscriminatorLen = (VIP_UINT16)strlen(name);
	memcpy(here.addr.HostAddress, own.LocalNicAddress, own.NicAddressLen);
	memcpy(here.addr.HostAddress + own.NicAddressLen, name, strlen(name));
	there = here;
	check(VipRegisterMem(nic, &mem, sizeof(mem), NULL, &handle), "VipRegisterMem");
	check(VipCreateVi(nic, &attrs, NULL, NULL, &vi), "VipCreateVi");
	for (i = 0; i < DEPTH; i++)
		check(VipPostRecv(vi, fill(&mem.recv[i], mem.in[i], LONGEST), handle),
		      "VipPostRecv");
}

static bool good(const VIP_DESCRIPTOR *desc)
{
	return !(desc->CS.Status & VIP_STATUS_ERROR_MASK);
}

/* ---- the receiver ---- */

static bool right(const struct message *m, uint64_t number, uint32_t length)
{
	uint32_t i, n = length_of(number) - (uint32_t)sizeof(*m);

	if (m->number != number || m->length != n || length != length_of(number))
		return false;
	for (i = 0; i < n && m->data[i] == byte_of(number, i); i++)
		;
	return i == n;
}

/* Takes sends that have completed. */
static bool reap(uint64_t *confirmed)
{
	VIP_DESCRIPTOR *done;
	bool whole = true;

	while (VipSendDone(vi, &done), done != NULL) {
		whole = whole && good(done);
		*confirmed += whole;
	}
	return whole;
}

/* Acknowledges a message.  Ignores a broken connection: messages that have arrived are still to be taken. */
static void acknowledge(uint64_t number)
{
	static uint64_t confirmed, posted;
	unsigned int slot = posted++ % DEPTH;

	if (!reap(&confirmed))
		return;
	memcpy(mem.out[slot], &number, sizeof(number));
	VipPostSend(vi, fill(&mem.send[slot], mem.out[slot], sizeof(number)), handle);
}

/* Returns the next message; NULL when the connection is broken. */
static VIP_DESCRIPTOR *receive(void)
{
	VIP_DESCRIPTOR *done;
	VIP_RETURN rc = VipRecvWait(vi, SILENT_MS, &done);

	if (rc == VIP_SUCCESS || rc == VIP_DESCRIPTOR_ERROR)
		return good(done) ? done : NULL;
	check(rc, "VipRecvWait");
	return NULL;
}

static int receiver(void)
{
	const struct message *m;
	VIP_CONN_HANDLE conn;
	VIP_VI_ATTRIBUTES theirs;
	VIP_DESCRIPTOR *done;
	bool last = false;
	uint64_t n = 0;

	check(VipConnectWait(nic, &here.addr, SILENT_MS, &there.addr, &theirs, &conn),
	      "VipConnectWait");
	check(VipConnectAccept(conn, vi), "VipConnectAccept");
	while (!last && (done = receive()) != NULL) {
		m = done->DS[0].Local.Data.Address;
		if (!right(m, n, done->CS.Length)) {
			printf("message %" PRIu64 " is not what was sent: number %" PRIu64
			       ", %u bytes\n",
			       n, m->number, done->CS.Length);
			return 1;
		}
		last = m->last;
		n++;
		say_progress(n);
		VipPostRecv(vi, fill(done, done->DS[0].Local.Data.Address, LONGEST), handle);
		if (n % ACK_EVERY == 0 && !last)
			acknowledge(n);
	}
	if (last) /* the sender disconnects when its last message has been confirmed */
		receive();
	printf("received %" PRIu64 " %s\n", n, last ? "whole" : "broken");
	return 0;
}

/* ---- the sender ---- */

static void connect_to(char *host)
{
	VIP_VI_ATTRIBUTES theirs;
	int tries = TRIES;
	VIP_RETURN rc;

	check(VipNSInit(nic, NULL), "VipNSInit");
	check(VipNSGetHostByName(nic, host, &there.addr, 0), "VipNSGetHostByName");
	while ((rc = VipConnectRequest(vi, &here.addr, &there.addr, SILENT_MS, &theirs)) ==
		       VIP_NO_MATCH &&
	       tries--)
		poll(NULL, 0, 10); /* the receiver does not yet wait for a connection */
	check(rc, "VipConnectRequest");
}

static bool post(uint64_t number, bool last)
{
	unsigned int slot = number % DEPTH;
	uint32_t length = length_of(number), i;
	struct message *m = (struct message *)mem.out[slot];

	m->number = number;
	m->length = length - (uint32_t)sizeof(*m);
	m->last = last;
	for (i = 0; i < m->length; i++)
		m->data[i] = byte_of(number, i);
	return VipPostSend(vi, fill(&mem.send[slot], m, length), handle) == VIP_SUCCESS;
}

/* Waits until at most `left` sends have not completed.  False: one has failed. */
static bool await_confirmed(uint64_t posted, uint64_t left, uint64_t *confirmed)
{
	VIP_DESCRIPTOR *done;
	bool whole = true;
	VIP_RETURN rc;

	while (whole && posted - *confirmed > left) {
		rc = VipSendWait(vi, SILENT_MS, &done);
		if (rc != VIP_DESCRIPTOR_ERROR)
			check(rc, "VipSendWait");
		whole = good(done);
		*confirmed += whole;
	}
	return whole;
}

/* Waits until at most AHEAD messages are not acknowledged. */
static bool await_acked(uint64_t posted, uint64_t *acked)
{
	VIP_DESCRIPTOR *done;

	while (posted - *acked > AHEAD) {
		done = receive();
		if (done == NULL)
			return false;
		memcpy(acked, done->DS[0].Local.Data.Address, sizeof(*acked));
		VipPostRecv(vi, fill(done, done->DS[0].Local.Data.Address, LONGEST), handle);
	}
	return true;
}

static int sender(char *host)
{
	uint64_t posted = 0, confirmed = 0, acked = 0;
	bool whole = true, last = false;

	connect_to(host);
	while (whole && !last) {
		last = stop;
		whole = post(posted, last);
		posted += whole;
		whole = whole && reap(&confirmed) && await_acked(posted, &acked) &&
			await_confirmed(posted, last ? 0 : AHEAD, &confirmed);
		say_progress(confirmed);
	}
	reap(&confirmed);
	VipDisconnect(vi);
	printf("sent %" PRIu64 " of %" PRIu64 " %s\n", confirmed, posted,
	       whole ? "whole" : "broken");
	return 0;
}

int main(int argc, char **argv)
{
	bool sends = argc == 5 && strcmp(argv[1], "send") == 0;
	struct sigaction end = { .sa_handler = on_signal };

	if (!sends && (argc != 4 || strcmp(argv[1], "receive") != 0)) {
		fprintf(stderr, "usage: flow receive NAME FILE | flow send HOST NAME FILE\n");
		return 2;
	}
	sigaction(SIGTERM, &end, NULL);
	progress = open(argv[argc - 1], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (progress < 0)
		return 1;
	say_progress(0);
	set_up(argv[sends ? 3 : 2]);
	return sends ? sender(argv[2]) : receiver();
}
