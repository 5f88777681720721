/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of a message in one thread, for budget_test.py, which counts its instructions with
 * callgrind: two pairs of VIs of one NIC; one pair receives through a completion queue.
 *
 *	path BATCHES ROUNDS
 *
 * runs each row in batches of rounds and prints, for each batch, the row and the nanoseconds
 * of a round.  Its first line says whether locks can be biased here.
 */
#include <linux/membarrier.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <vipl.h>
#include <vipl_ext.h>

#define MOST_BYTES 4096
#define VIS 4	  /* 0 sends to 1, 2 to 3 */
#define WARM 3000 /* rounds */

static _Alignas(VIP_DESCRIPTOR_ALIGNMENT) struct {
	VIP_DESCRIPTOR send, recv;
	char from[MOST_BYTES], to[MOST_BYTES];
} mem;
static VIP_NIC_HANDLE nic;
static VIP_CQ_HANDLE cq;
static VIP_MEM_HANDLE handle, other_handle, window_handle;
static VIP_PVOID window;
static VIP_VI_HANDLE vis[VIS];

static void check(VIP_RETURN rc, const char *call)
{
	if (rc == VIP_SUCCESS)
		return;
	fprintf(stderr, "path: %s answered %s\n", call, VipxErrorString(rc));
	exit(1);
}

/* ---- the rounds ---- */

static void fill(VIP_DESCRIPTOR *desc, char *data, VIP_UINT32 bytes)
{
	memset(desc, 0, sizeof(*desc));
	desc->CS.Control = VIP_CONTROL_OP_SENDRECV;
	desc->CS.SegCount = 1;
	desc->CS.Length = desc->DS[0].Local.Length = bytes;
	desc->DS[0].Local.Data.Address = data;
	desc->DS[0].Local.Handle = handle;
}

static void fill_write(VIP_DESCRIPTOR *desc, VIP_UINT32 bytes)
{
	memset(desc, 0, sizeof(*desc));
	desc->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
	desc->CS.SegCount = 2;
	desc->CS.Length = desc->DS[1].Local.Length = bytes;
	desc->DS[0].Remote.Data.Address = window;
	desc->DS[0].Remote.Handle = window_handle;
	desc->DS[1].Local.Data.Address = mem.from;
	desc->DS[1].Local.Handle = handle;
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

static void post_both(int from, VIP_UINT32 bytes, VIP_MEM_HANDLE from_handle)
{
	fill(&mem.recv, mem.to, bytes);
	fill(&mem.send, mem.from, bytes);
	mem.send.DS[0].Local.Handle = from_handle;
	check(VipPostRecv(vis[from + 1], &mem.recv, handle), "VipPostRecv");
	check(VipPostSend(vis[from], &mem.send, handle), "VipPostSend");
}

static void message(VIP_UINT32 bytes)
{
	post_both(0, bytes, handle);
	take(VipRecvDone, vis[1]);
	take(VipSendDone, vis[0]);
}

static void message_in_turn(VIP_UINT32 bytes)
{
	static bool other;

	other = !other;
	post_both(0, bytes, other ? other_handle : handle);
	take(VipRecvDone, vis[1]);
	take(VipSendDone, vis[0]);
}

static void message_to_cq(VIP_UINT32 bytes)
{
	VIP_BOOLEAN is_recv;
	VIP_VI_HANDLE vi;
	VIP_RETURN rc;

	post_both(2, bytes, handle);
	do
		rc = VipCQDone(cq, &vi, &is_recv);
	while (rc == VIP_NOT_DONE);
	check(rc, "VipCQDone");
	take(VipRecvDone, vi);
	take(VipSendDone, vis[2]);
}

static void poll(VIP_UINT32 bytes)
{
	VIP_DESCRIPTOR *desc;

	if (VipRecvDone(vis[1], &desc) != VIP_NOT_DONE)
		check(VIP_ERROR_RESOURCE, "VipRecvDone of nothing");
}

static void poll_cq(VIP_UINT32 bytes)
{
	VIP_BOOLEAN is_recv;
	VIP_VI_HANDLE vi;

	if (VipCQDone(cq, &vi, &is_recv) != VIP_NOT_DONE)
		check(VIP_ERROR_RESOURCE, "VipCQDone of nothing");
}

static void write_window(VIP_UINT32 bytes)
{
	fill_write(&mem.send, bytes);
	check(VipPostSend(vis[0], &mem.send, handle), "VipPostSend");
	take(VipSendDone, vis[0]);
}

static const struct row {
	const char *name;
	void (*round)(VIP_UINT32 bytes);
	VIP_UINT32 bytes;
} rows[] = {
	{ "message-4", message, 4 },
	{ "message-64", message, 64 },
	{ "message-4096", message, 4096 },
	{ "in-turn-4", message_in_turn, 4 },
	{ "cq-4", message_to_cq, 4 },
	{ "cq-empty", poll_cq, 0 },
	{ "empty", poll, 0 },
	{ "write-8", write_window, 8 },
};

/* callgrind counts while this function runs; it knows it by its name. */
__attribute__((noinline, noclone)) static void measured(const struct row *row, long count)
{
	for (long i = 0; i < count; i++)
		row->round(row->bytes);
}

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void run(const struct row *row, long batches, long count)
{
	/*
	 * Until every fifo was used once round, and locks are biased to this thread, which takes
	 * longer if threads of the NIC took them in between, as they do when they have just
	 * started.
	 */
	for (long i = 0; i < WARM; i++)
		row->round(row->bytes);
	/* A CQ no longer polls a queue that many polls found empty; a message makes it hot again. */
	message_to_cq(4);
	for (long i = 0; i < batches; i++) {
		double start = now_ns();

		measured(row, count);
		printf("%s %.1f\n", row->name, (now_ns() - start) / (double)count);
	}
}

static VIP_UINT64 slots_sent(void)
{
	VIPX_COUNTERS c = { .Size = sizeof(c) };

	check(VipxQueryCounters(nic, vis[0], &c), "VipxQueryCounters");
	return c.SlotsSent;
}

/*
 * The first write asks for a grant; once it is given a write needs no slot, provided that the peer
 * has consumed the slots before it.
 */
static void await_grant(void)
{
	double end = now_ns() + 30e9;
	VIP_UINT64 before;

	do {
		before = slots_sent();
		write_window(8);
		poll(0);
		if (now_ns() > end)
			check(VIP_TIMEOUT, "the grant");
	} while (slots_sent() != before);
}

/* ---- setting up ---- */

union address {
	VIP_NET_ADDRESS addr;
	char room[64];
};

static void set_address(union address *at, int number)
{
	const char name[] = { 'p', 'a', 't', 'h', (char)('0' + number) };
	VIP_NIC_ATTRIBUTES attrs;

	check(VipQueryNic(nic, &attrs), "VipQueryNic");
	memset(at, 0, sizeof(*at));
	at->addr.HostAddressLen = attrs.NicAddressLen;
	at->addr.DiscriminatorLen = sizeof(name);
	memcpy(at->addr.HostAddress, attrs.LocalNicAddress, attrs.NicAddressLen);
	memcpy(at->addr.HostAddress + attrs.NicAddressLen, name, sizeof(name));
}

static void connect_pair(int first, VIP_CQ_HANDLE recv_cq)
{
	VIP_VI_ATTRIBUTES attrs = {
		VIP_SERVICE_RELIABLE_DELIVERY, MOST_BYTES, NULL, NULL, VIP_TRUE, VIP_FALSE
	};
	union address at[2];

	for (int i = 0; i < 2; i++) {
		set_address(&at[i], first + i);
		check(VipCreateVi(nic, &attrs, NULL, i ? recv_cq : NULL, &vis[first + i]),
		      "VipCreateVi");
	}
	for (int i = 0; i < 2; i++)
		check(VipConnectPeerRequest(vis[first + i], &at[i].addr, &at[1 - i].addr, 10000),
		      "VipConnectPeerRequest");
	for (int i = 0; i < 2; i++)
		check(VipConnectPeerWait(vis[first + i], &attrs), "VipConnectPeerWait");
}

static void set_up(void)
{
	VIP_MEM_ATTRIBUTES attrs = { NULL, VIP_TRUE, VIP_FALSE };

	check(VipOpenNic("nic0", &nic), "VipOpenNic");
	check(VipRegisterMem(nic, &mem, sizeof(mem), NULL, &handle), "VipRegisterMem");
	check(VipRegisterMem(nic, &mem, sizeof(mem), NULL, &other_handle), "VipRegisterMem");
	check(VipxAllocMem(nic, MOST_BYTES, &attrs, &window, &window_handle), "VipxAllocMem");
	check(VipCreateCQ(nic, 64, &cq), "VipCreateCQ");
	connect_pair(0, NULL);
	connect_pair(2, cq);
}

/* Takes the receives that nothing came for. */
static void disconnect(VIP_VI_HANDLE vi)
{
	VIP_DESCRIPTOR *desc;

	check(VipDisconnect(vi), "VipDisconnect");
	while (VipRecvDone(vi, &desc) == VIP_DESCRIPTOR_ERROR && desc != NULL)
		;
	check(VipDestroyVi(vi), "VipDestroyVi");
}

static void take_down(void)
{
	for (int i = 0; i < VIS; i++)
		disconnect(vis[i]);
	check(VipDestroyCQ(cq), "VipDestroyCQ");
	check(VipxFreeMem(nic, window, window_handle), "VipxFreeMem");
	check(VipDeregisterMem(nic, &mem, other_handle), "VipDeregisterMem");
	check(VipDeregisterMem(nic, &mem, handle), "VipDeregisterMem");
	check(VipCloseNic(nic), "VipCloseNic");
}

int main(int argc, char **argv)
{
	long batches = argc == 3 ? atol(argv[1]) : 0;
	long count = argc == 3 ? atol(argv[2]) : 0;

	if (batches < 1 || count < 1) {
		fprintf(stderr, "usage: path BATCHES ROUNDS\n");
		return 2;
	}
	printf("biased %s\n",
	       syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0
		       ? "yes"
		       : "no");
	set_up();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].round == poll)
			check(VipPostRecv(vis[1], &mem.recv, handle), "VipPostRecv");
		if (rows[i].round == write_window)
			await_grant();
		run(&rows[i], batches, count);
	}
	take_down();
	return 0;
}
