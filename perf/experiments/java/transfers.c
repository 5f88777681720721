/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transfers - a file from one process to another over VIs, in buffers, by several threads: the row of C with which
 * perf/java_experiments compares the channels of Java.
 *
 *	transfers serve FILE BYTES BUFFER THREADS ROUNDS	writes FILE
 *	transfers ask HOST FILE BYTES BUFFER THREADS ROUNDS	reads FILE; a JSON object for each round
 *
 * Each thread has a part of the file and a VI.  The sender reads a buffer's worth and writes it to the next slot of the
 * receiver by RDMA, with its length as immediate data.  The receiver writes the slot to its file, and tells by an empty
 * message how many slots are free again.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <vipl.h>
#include <vipl_ext.h>

#define MOST_SLOTS 64
#define MOST_THREADS 64
#define MEMORY (64u << 20) /* of a thread, as a channel of perf/java_experiments has */
#define CONNECT_MS 30000

/* All memory of a part that only descriptors name. */
struct block {
	VIP_DESCRIPTOR sends[MOST_SLOTS], recvs[MOST_SLOTS + 1];
	struct place {
		uint64_t at;
		uint32_t handle;
	} place; /* of the receiver's slots, sent first */
};

struct part {
	pthread_t thread;
	VIP_VI_HANDLE vi;
	struct block *block;
	VIP_MEM_HANDLE block_handle, slots_handle;
	uint8_t *slots;
	uint64_t sent, taken; /* slots, since the connection began */
	uint64_t told;	      /* of `taken`, those that the sender knows of */
	uint64_t from, to;    /* of the file */
};

static VIP_NIC_HANDLE nic;
static bool client;
static const char *host;
static int file;
static uint64_t all_bytes;
static uint32_t buffer, slots_count, threads, rounds;
static struct part parts[MOST_THREADS];

static void check(VIP_RETURN rc, const char *call)
{
	if (rc == VIP_SUCCESS)
		return;
	fprintf(stderr, "transfers: %s answered %s\n", call, VipxErrorString(rc));
	exit(1);
}

static void fail_with_errno(const char *call)
{
	fprintf(stderr, "transfers: %s: %s\n", call, errno != 0 ? strerror(errno) : "end of file");
	exit(1);
}

static void refuse(const char *what, uint64_t number)
{
	fprintf(stderr, "transfers: a %s of %llu came: both sides need the same numbers\n", what,
		(unsigned long long)number);
	exit(1);
}

/* Each call tells of a lost connection. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	(void)context;
	(void)error;
}

/* A descriptor of `bytes` at the place in the block. */
static void fill(struct part *p, VIP_DESCRIPTOR *d, uint32_t bytes)
{
	memset(d, 0, sizeof(*d));
	d->CS.SegCount = 1;
	d->CS.Length = d->DS[0].Local.Length = bytes;
	d->DS[0].Local.Data.Address = &p->block->place;
	d->DS[0].Local.Handle = p->block_handle;
}

static void post_recv(struct part *p, VIP_DESCRIPTOR *d)
{
	fill(p, d, sizeof(p->block->place));
	check(VipPostRecv(p->vi, d, p->block_handle), "VipPostRecv");
}

/* The place, or an empty message, with a number. */
static void post_send(struct part *p, VIP_DESCRIPTOR *d, uint32_t bytes, uint32_t number)
{
	fill(p, d, bytes);
	d->CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
	d->CS.ImmediateData = number;
	check(VipPostSend(p->vi, d, p->block_handle), "VipPostSend");
}

static void post_slot(struct part *p, VIP_DESCRIPTOR *d, uint32_t slot, uint32_t bytes)
{
	memset(d, 0, sizeof(*d));
	d->CS.Control = VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE;
	d->CS.SegCount = 2;
	d->CS.ImmediateData = d->CS.Length = d->DS[1].Local.Length = bytes;
	d->DS[0].Remote.Data.AddressBits = p->block->place.at + (uint64_t)slot * buffer;
	d->DS[0].Remote.Handle = p->block->place.handle;
	d->DS[1].Local.Data.Address = p->slots + (size_t)slot * buffer;
	d->DS[1].Local.Handle = p->slots_handle;
	check(VipPostSend(p->vi, d, p->block_handle), "VipPostSend");
}

static VIP_DESCRIPTOR *take_recv(struct part *p)
{
	VIP_DESCRIPTOR *d;

	check(VipRecvWait(p->vi, VIP_INFINITE, &d), "VipRecvWait");
	return d;
}

static void take_send(struct part *p)
{
	VIP_DESCRIPTOR *d;

	check(VipSendWait(p->vi, VIP_INFINITE, &d), "VipSendWait");
}

/* ---- a connection -------------------------------------------------------------------------------------------- */

static void prepare(struct part *p)
{
	VIP_MEM_ATTRIBUTES open = { NULL, VIP_TRUE, VIP_FALSE };
	VIP_NIC_ATTRIBUTES limits;
	VIP_VI_ATTRIBUTES attrs = { .ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
				    .EnableRdmaWrite = VIP_TRUE };
	VIP_PVOID at;

	check(VipQueryNic(nic, &limits), "VipQueryNic");
	attrs.MaxTransferSize = limits.MaxTransferSize;
	p->block = aligned_alloc(VIP_DESCRIPTOR_ALIGNMENT, (sizeof(*p->block) + 63) / 64 * 64);
	if (p->block == NULL)
		fail_with_errno("aligned_alloc");
	check(VipRegisterMem(nic, p->block, sizeof(*p->block), NULL, &p->block_handle),
	      "VipRegisterMem");
	check(VipxAllocMem(nic, (size_t)slots_count * buffer, &open, &at, &p->slots_handle),
	      "VipxAllocMem");
	p->slots = at;
	check(VipCreateVi(nic, &attrs, NULL, NULL, &p->vi), "VipCreateVi");
	for (uint32_t i = 0; i <= slots_count; i++)
		post_recv(p, &p->block->recvs[i]);
}

static void connect_part(struct part *p, uint32_t number)
{
	union {
		VIP_NET_ADDRESS addr;
		char room[sizeof(VIP_NET_ADDRESS) + 64];
	} here = { .room = { 0 } }, there;
	VIP_NIC_ATTRIBUTES limits;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE conn;
	VIP_RETURN rc;
	int tries = 1000;

	check(VipQueryNic(nic, &limits), "VipQueryNic");
	here.addr.HostAddressLen = limits.NicAddressLen;
	here.addr.DiscriminatorLen = sizeof(number);
	memcpy(here.addr.HostAddress, limits.LocalNicAddress, limits.NicAddressLen);
	memcpy(here.addr.HostAddress + limits.NicAddressLen, &number, sizeof(number));
	there = here;
	if (client) {
		check(VipNSGetHostByName(nic, (char *)host, &there.addr, 0), "VipNSGetHostByName");
		while ((rc = VipConnectRequest(p->vi, &here.addr, &there.addr, CONNECT_MS,
					       &theirs)) == VIP_NO_MATCH &&
		       tries-- > 0)
			usleep(10000); /* the server does not wait yet */
		check(rc, "VipConnectRequest");
		post_recv(p, take_recv(p));
		return;
	}
	check(VipConnectWait(nic, &here.addr, CONNECT_MS, &there.addr, &theirs, &conn),
	      "VipConnectWait");
	check(VipConnectAccept(conn, p->vi), "VipConnectAccept");
	p->block->place = (struct place){ (uintptr_t)p->slots, p->slots_handle };
	post_send(p, &p->block->sends[0], sizeof(p->block->place), 0);
	take_send(p);
}

static void end_part(struct part *p)
{
	check(VipDisconnect(p->vi), "VipDisconnect");
	/* Receives that were posted come back. */
	for (VIP_DESCRIPTOR *d = p->block->recvs; d != NULL;) {
		d = NULL;
		VipRecvDone(p->vi, &d);
	}
	check(VipDestroyVi(p->vi), "VipDestroyVi");
	check(VipxFreeMem(nic, p->slots, p->slots_handle), "VipxFreeMem");
	check(VipDeregisterMem(nic, p->block, p->block_handle), "VipDeregisterMem");
	free(p->block);
}

/* ---- the file ------------------------------------------------------------------------------------------------ */

static void read_file(uint8_t *to, size_t bytes, uint64_t at)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n;

		errno = 0;
		n = pread(file, to + done, bytes - done, (off_t)(at + done));
		if (n <= 0)
			fail_with_errno("pread");
		done += (size_t)n;
	}
}

static void write_file(const uint8_t *from, size_t bytes, uint64_t at)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = pwrite(file, from + done, bytes - done, (off_t)(at + done));

		if (n < 0)
			fail_with_errno("pwrite");
		done += (size_t)n;
	}
}

/* The receiver tells that it has taken some. */
static void take_credit(struct part *p)
{
	VIP_DESCRIPTOR *d = take_recv(p);
	uint32_t more = d->CS.ImmediateData;

	if (more > p->sent - p->taken)
		refuse("credit", more);
	post_recv(p, d);
	for (; more > 0; more--) {
		take_send(p);
		p->taken++;
	}
}

static void *send_part(void *arg)
{
	struct part *p = arg;

	for (uint64_t at = p->from; at < p->to;) {
		uint32_t bytes = p->to - at < buffer ? (uint32_t)(p->to - at) : buffer;
		uint32_t slot = (uint32_t)(p->sent % slots_count);

		if (p->sent - p->taken == slots_count)
			take_credit(p);
		read_file(p->slots + (size_t)slot * buffer, bytes, at);
		post_slot(p, &p->block->sends[slot], slot, bytes);
		p->sent++;
		at += bytes;
	}
	while (p->taken < p->sent)
		take_credit(p);
	return NULL;
}

static void give_credit(struct part *p)
{
	VIP_DESCRIPTOR *d = &p->block->sends[p->told % slots_count];

	post_send(p, d, 0, (uint32_t)(p->taken - p->told));
	take_send(p);
	p->told = p->taken;
}

static void receive_part(struct part *p)
{
	uint32_t every = slots_count > 4 ? slots_count / 4 : 1;

	for (uint64_t at = p->from; at < p->to;) {
		VIP_DESCRIPTOR *d = take_recv(p);
		uint32_t bytes = d->CS.ImmediateData, slot = (uint32_t)(p->taken % slots_count);

		if (bytes == 0 || bytes > buffer || bytes > p->to - at)
			refuse("buffer", bytes);
		write_file(p->slots + (size_t)slot * buffer, bytes, at);
		post_recv(p, d);
		p->taken++;
		at += bytes;
		if (p->taken - p->told == every || at == p->to)
			give_credit(p);
	}
}

static void *serve_part(void *arg)
{
	for (uint32_t round = 0; round < rounds; round++)
		receive_part(arg);
	return NULL;
}

/* ---- rounds -------------------------------------------------------------------------------------------------- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void all(void *(*what)(void *))
{
	for (uint32_t i = 0; i < threads; i++)
		if ((errno = pthread_create(&parts[i].thread, NULL, what, &parts[i])) != 0)
			fail_with_errno("pthread_create");
	for (uint32_t i = 0; i < threads; i++)
		pthread_join(parts[i].thread, NULL);
}

static void ask(void)
{
	for (uint32_t round = 0; round < rounds; round++) {
		double start = now(), seconds;

		all(send_part);
		seconds = now() - start;
		printf("{\"bytes\": %u, \"number\": %u, \"round\": %u, \"seconds\": %.9f, \"mb_per_s\": %.2f}\n",
		       buffer, threads, round, seconds, (double)all_bytes / seconds / 1e6);
	}
}

static bool number(const char *text, uint64_t most, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return errno == 0 && *text >= '0' && *text <= '9' && *end == 0 && *out > 0 && *out <= most;
}

static bool parse(int argc, char **argv)
{
	uint64_t bytes, many, times;

	client = argc == 8 && strcmp(argv[1], "ask") == 0;
	if (!client && (argc != 7 || strcmp(argv[1], "serve") != 0))
		return false;
	host = client ? argv[2] : NULL;
	argv += client ? 3 : 2;
	if (!number(argv[1], 1ull << 50, &all_bytes) || !number(argv[2], MEMORY / 2, &bytes) ||
	    !number(argv[3], MOST_THREADS, &many) || !number(argv[4], 1000, &times))
		return false;
	buffer = (uint32_t)bytes;
	threads = (uint32_t)many;
	rounds = (uint32_t)times;
	slots_count = MEMORY / buffer / 2 < MOST_SLOTS ? MEMORY / buffer / 2 : MOST_SLOTS;
	slots_count = slots_count > 2 ? slots_count : 2;
	file = open(argv[0], client ? O_RDONLY | O_CLOEXEC : O_WRONLY | O_CLOEXEC);
	if (file < 0)
		fail_with_errno(argv[0]);
	return true;
}

int main(int argc, char **argv)
{
	if (!parse(argc, argv)) {
		fprintf(stderr, "usage: transfers serve FILE BYTES BUFFER THREADS ROUNDS\n"
				"       transfers ask HOST FILE BYTES BUFFER THREADS ROUNDS\n");
		return 2;
	}
	check(VipOpenNic("nic0", &nic), "VipOpenNic");
	check(VipErrorCallback(nic, NULL, on_error), "VipErrorCallback");
	check(VipNSInit(nic, NULL), "VipNSInit");
	for (uint32_t i = 0; i < threads; i++) {
		parts[i].from = all_bytes * i / threads;
		parts[i].to = all_bytes * (i + 1) / threads;
		prepare(&parts[i]);
	}
	if (!client) {
		puts("ready");
		fflush(stdout);
	}
	for (uint32_t i = 0; i < threads; i++)
		connect_part(&parts[i], i);
	if (client)
		ask();
	else
		all(serve_part);
	for (uint32_t i = 0; i < threads; i++)
		end_part(&parts[i]);
	check(VipNSShutdown(nic), "VipNSShutdown");
	check(VipCloseNic(nic), "VipCloseNic");
	close(file);
	return fflush(stdout) == 0 ? 0 : 1;
}
