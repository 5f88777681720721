// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs in two guests: RDMA writes of one into window memory of the other, new or adopted, are
 * direct stores, as the counter of slots shows, and the other sees them without a call. Usage:
 * vm_direct server [adopt] | vm_direct client HOST
 */
#include <inttypes.h>
#include <stdbool.h>

#include "vipl_side.h"

#define BYTES (1u << 20) /* of a write */
#define WRITES 20

struct places {
	struct place window, other; /* memory in a window, and memory of VipRegisterMem() */
};

static _Alignas(VIP_DESCRIPTOR_ALIGNMENT) struct {
	VIP_DESCRIPTOR desc, recv;
	struct places places;
	unsigned char data[BYTES];
} mem;

static VIP_VI_HANDLE vi;

/* Fills in the n-th pattern; no two patterns have the same last word. */
static void fill(unsigned char *at, unsigned int n)
{
	for (unsigned int i = 0; i < BYTES; i++)
		at[i] = (unsigned char)(i * 7 + (i >> 8) + n * 31);
	memcpy(at + BYTES - sizeof(n), &n, sizeof(n));
}

/* Writes all; returns the number of slots that this takes. */
static VIP_UINT64 write_all(const struct place *to)
{
	return write_to(vi, &mem.desc, to, mem.data, BYTES);
}

static void begin(union address *here)
{
	open_nic(&mem, sizeof(mem), "direct", here);
	create_vi(VIP_SERVICE_RELIABLE_DELIVERY, BYTES, &vi);
	expect_message(vi, &mem.recv, &mem.places, sizeof(mem.places));
}

static void client(VIP_CHAR *host)
{
	union address here;
	VIP_UINT64 slots = 1;
	time_t until;

	begin(&here);
	connect_to(vi, host, &here);
	wait_message(vi);
	fill(mem.data, 0);
	until = time(NULL) + PATIENCE_MS / 1000;
	while (slots != 0 && time(NULL) < until)
		slots = write_all(&mem.places.window);
	expect(slots == 0, "writes into window memory of another machine become stores");
	for (unsigned int n = 1; n <= WRITES; n++) {
		fill(mem.data, n);
		expect(write_all(&mem.places.window) == 0, "they remain so");
	}
	slots = write_all(&mem.places.other);
	expect(slots >= BYTES / (32 << 10), "writes into other memory go through slots");
	printf("%u writes of %u bytes took no slot, one into other memory %" PRIu64 "\n", WRITES,
	       BYTES, (uint64_t)slots);
	send_message(vi, &mem.desc, &mem.places, 1);
}

/* Makes registered memory that lies in a window, or behind one. */
static VIP_PVOID make_window(bool adopt, VIP_MEM_HANDLE *window)
{
	VIP_MEM_ATTRIBUTES open = { NULL, VIP_TRUE, VIP_FALSE };
	VIP_PVOID at;

	if (!adopt) {
		CHECK(VipxAllocMem(nic, BYTES, &open, &at, window));
		return at;
	}
	return adopt_memory(BYTES, window);
}

/* Frees the window memory; adopted memory stays usable, with its content. */
static void drop_window(bool adopt, unsigned char *at, VIP_MEM_HANDLE window)
{
	if (!adopt) {
		CHECK(VipxFreeMem(nic, at, window));
		return;
	}
	CHECK(VipDeregisterMem(nic, at, window));
	expect(memcmp(mem.data, at, BYTES) == 0, "given back it has the last pattern");
	memset(at, 1, BYTES);
	expect(at[BYTES - 1] == 1 && munmap(at, BYTES) == 0, "and can be used");
}

static void server(bool adopt)
{
	VIPX_COUNTERS counters = { 0 };
	time_t until;
	VIP_MEM_HANDLE window;
	union address here;
	VIP_PVOID at;

	counters.Size = sizeof(counters);
	begin(&here);
	at = make_window(adopt, &window);
	accept_one(vi, &here);
	mem.places.window = (struct place){ (VIP_UINT64)(uintptr_t)at, window };
	mem.places.other = (struct place){ (VIP_UINT64)(uintptr_t)mem.data, handle };
	send_message(vi, &mem.desc, &mem.places, sizeof(mem.places));
	/* The last words are stored last. */
	until = time(NULL) + PATIENCE_MS / 1000;
	while (load_word((char *)at + BYTES - sizeof(int)) != WRITES && time(NULL) < until)
		;
	CHECK(VipxQueryCounters(nic, vi, &counters));
	wait_message(vi);
	expect(memcmp(mem.data, at, BYTES) == 0, "both memories have the last pattern");
	fill(mem.data, WRITES);
	expect(memcmp(mem.data, at, BYTES) == 0, "and it is the right one");
	printf("%" PRIu64 " slots for what was written before the stores\n",
	       (uint64_t)counters.SlotsReceived);
	drop_window(adopt, at, window);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "client") == 0)
		client(argv[2]);
	else
		server(argc == 3 && strcmp(argv[2], "adopt") == 0);
	CHECK(VipDisconnect(vi));
	CHECK(VipDestroyVi(vi));
	CHECK(VipDeregisterMem(nic, &mem, handle));
	CHECK(VipCloseNic(nic));
	return 0;
}
