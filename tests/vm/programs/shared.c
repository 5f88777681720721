// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs in two guests: two programs of one store into the same adopted memory of a program of the other, each
 * over a connection of its own, at the same time; then one connection ends, and the other goes on.  The two
 * connections use every other page each.  Usage: vm_shared server | vm_shared client HOST.  The server asks
 * the script how much its agent has pinned («do pinned»), and to wait until that is nothing («do unpinned»).
 */
#include <stdbool.h>

#include "vipl_side.h"

#define PAGE 4096u
#define PAGES 16u /* of both writers */
#define WRITERS 2u
#define BYTES (PAGES * PAGE)
/* A write is complete at once, and only the adapter can hold up a program that writes without a pause. */
#define LEVEL VIP_SERVICE_RELIABLE_DELIVERY
#define ROUNDS 10 /* in each of them every writer must have stored something new */

struct order {
	struct place memory;
	unsigned int writer;
};

static struct side {
	_Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR desc;
	_Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR recv;
	struct order order;   /* to the client */
	unsigned char enough; /* to the client, which then stops */
	unsigned int rounds;  /* to the server: rounds that the client has made */
	unsigned char data[PAGE];
} mem[WRITERS];

static VIP_VI_HANDLE vi[WRITERS];

/* Fills a page as its writer stores it in a round; the last word is the number of the round. */
static void fill(unsigned char *at, unsigned int page, unsigned int round)
{
	for (unsigned int i = 0; i < PAGE; i++)
		at[i] = (unsigned char)(i * 7 + (i >> 8) + page * 13 + round * 31);
	memcpy(at + PAGE - sizeof(round), &round, sizeof(round));
}

/* ---- the writer ------------------------------------------------------------------------------- */

/* Writes the pages of a round; returns the number of slots that this takes. */
static VIP_UINT64 write_round(unsigned int round)
{
	const struct order *o = &mem[0].order;
	VIP_UINT64 slots = 0;
	struct place at;

	for (unsigned int page = o->writer; page < PAGES; page += WRITERS) {
		at = o->memory;
		at.address += page * PAGE;
		fill(mem[0].data, page, round);
		slots += write_to(vi[0], &mem[0].desc, &at, mem[0].data, PAGE);
	}
	return slots;
}

/* Writes rounds until told to stop; from round 1 on they must be direct stores. */
static void write_until_told(void)
{
	time_t until = time(NULL) + PATIENCE_MS / 1000;
	VIP_DESCRIPTOR *done;
	VIP_UINT64 slots = 1;
	VIP_RETURN rc;

	while (slots != 0 && time(NULL) < until)
		slots = write_round(0);
	expect(slots == 0, "writes into memory that another connection writes to become stores");
	do {
		expect(write_round(++mem[0].rounds) == 0, "they remain so");
		rc = VipRecvDone(vi[0], &done);
	} while (rc == VIP_NOT_DONE);
	CHECK(rc);
}

static void client(VIP_CHAR *host)
{
	union address here;

	open_nic(mem, sizeof(mem), "shared", &here);
	create_vi(LEVEL, BYTES, &vi[0]);
	expect_message(vi[0], &mem[0].recv, &mem[0].order, sizeof(mem[0].order));
	connect_to(vi[0], host, &here);
	wait_message(vi[0]);
	expect_message(vi[0], &mem[0].recv, &mem[0].enough, 1);
	write_until_told();
	send_message(vi[0], &mem[0].desc, &mem[0].rounds, sizeof(mem[0].rounds));
	printf("writer %u: %u rounds of stores\n", mem[0].order.writer, mem[0].rounds);
	CHECK(VipDisconnect(vi[0]));
	CHECK(VipDestroyVi(vi[0]));
}

/* ---- the owner of the memory ------------------------------------------------------------------ */

static void tell(bool good, const char *text)
{
	printf("%s %s\n", good ? "ok" : "not ok", text);
	fflush(stdout);
}

/* Asks the script; returns its answer in bytes. */
static unsigned long ask(const char *what)
{
	char line[64];

	printf("do %s\n", what);
	fflush(stdout);
	expect(fgets(line, sizeof(line), stdin) != NULL, "the script answers");
	return strtoul(line, NULL, 10) << 10;
}

/* The number of the round that is in the writer's last page. */
static unsigned int round_of(const unsigned char *memory, unsigned int writer)
{
	unsigned int page = PAGES - WRITERS + writer;

	return load_word(memory + (page + 1) * PAGE - sizeof(unsigned int));
}

/* Does each of the writers from `first` on store something new, again and again? */
static bool all_go_on(const unsigned char *memory, unsigned int first)
{
	time_t until = time(NULL) + PATIENCE_MS / 1000;
	unsigned int seen;

	for (int i = 0; i < ROUNDS; i++) {
		for (unsigned int w = first; w < WRITERS; w++) {
			seen = round_of(memory, w);
			while (round_of(memory, w) == seen)
				if (time(NULL) >= until)
					return false;
		}
	}
	return true;
}

/* Are all pages of the writer from that round? */
static bool is_whole(const unsigned char *memory, unsigned int writer, unsigned int round)
{
	unsigned char page[PAGE];

	for (unsigned int p = writer; p < PAGES; p += WRITERS) {
		fill(page, p, round);
		if (memcmp(page, memory + p * PAGE, PAGE) != 0)
			return false;
	}
	return true;
}

static void end_writer(unsigned int writer)
{
	send_message(vi[writer], &mem[writer].desc, &mem[writer].enough, 1);
	wait_message(vi[writer]);
}

static void disconnect(unsigned int writer)
{
	CHECK(VipDisconnect(vi[writer]));
	CHECK(VipDestroyVi(vi[writer]));
}

static void begin(VIP_PVOID memory, VIP_MEM_HANDLE adopted, union address *here)
{
	for (unsigned int w = 0; w < WRITERS; w++) {
		create_vi(LEVEL, BYTES, &vi[w]);
		expect_message(vi[w], &mem[w].recv, &mem[w].rounds, sizeof(mem[w].rounds));
		accept_one(vi[w], here);
		mem[w].order.memory = (struct place){ (VIP_UINT64)(uintptr_t)memory, adopted };
		mem[w].order.writer = w;
	}
	for (unsigned int w = 0; w < WRITERS; w++)
		send_message(vi[w], &mem[w].desc, &mem[w].order, sizeof(mem[w].order));
}

static void server(void)
{
	union address here;
	VIP_MEM_HANDLE adopted;
	unsigned char *memory;

	open_nic(mem, sizeof(mem), "shared", &here);
	memory = adopt_memory(BYTES, &adopted);
	begin(memory, adopted, &here);
	tell(all_go_on(memory, 0), "both connections store into the memory at the same time");
	tell(ask("pinned") == BYTES, "it is pinned once");
	end_writer(0);
	tell(is_whole(memory, 0, mem[0].rounds), "what came over the first one is right");
	disconnect(0);
	tell(all_go_on(memory, 1), "the second one goes on when the first one has ended");
	tell(ask("pinned") == BYTES, "the memory is still pinned");
	end_writer(1);
	tell(is_whole(memory, 1, mem[1].rounds), "what came over the second one is right");
	tell(is_whole(memory, 0, mem[0].rounds), "and so is still that of the first one");
	disconnect(1);
	tell(ask("unpinned") == 0, "and not any more when the last one has ended");
	CHECK(VipDeregisterMem(nic, memory, adopted));
	tell(is_whole(memory, 0, mem[0].rounds) && is_whole(memory, 1, mem[1].rounds),
	     "given back it has the content of both");
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "client") == 0)
		client(argv[2]);
	else
		server();
	CHECK(VipDeregisterMem(nic, mem, handle));
	CHECK(VipCloseNic(nic));
	if (argc == 2)
		printf("end 0\n");
	return 0;
}
