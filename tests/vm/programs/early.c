// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs in two guests, one port of viaduct.ko each, on a link whose doorbells and scratchpads overtake stores.
 *
 *   early A|B READS     READS: 1 if the module is to read across the link before it rings, else 0
 *
 * A stores into memory of B, through two windows in turn, and rings, or writes a scratchpad of B.  B looks at once
 * whether the store is there, waits until it is, and rings back.
 */
#include "kmod_side.h"

#include <inttypes.h>
#include <time.h>

#define WINDOWS 2
#define ROUNDS 10	/* each may last as long as the link holds stores back */
#define ROUNDS_READ 100 /* with the reads nothing has to be waited for */
#define DB_BIT 4ULL
#define SPAD 3

static struct side port;
static bool is_a;
static volatile uint64_t *word[WINDOWS]; /* A: of B's memory; B: its own */
static int event;

struct counts {
	unsigned int early, lost;
	int64_t latest_us;
};

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static bool traits_are(bool reads)
{
	struct viaduct_traits t;

	memset(&t, 0xff, sizeof(t));
	return ioctl(port.fd, VIADUCT_GET_TRAITS, &t) == 0 &&
	       t.flags == (reads ? VIADUCT_READS_BACK : 0) && t.reserved[0] == 0 &&
	       t.reserved[1] == 0 && t.reserved[2] == 0;
}

/* B: a slice of a page in each window, the second one after the first is full.  Tells A where they are. */
static void offer(void)
{
	struct viaduct_slice in[WINDOWS], rest;
	bool good = slice(&port, VIADUCT_INBOUND, 0, 0, PAGE, &in[0]) == 0 &&
		    slice(&port, VIADUCT_INBOUND, 0, 0, port.info.window[0].inbound - PAGE,
			  &rest) == 0 &&
		    slice(&port, VIADUCT_INBOUND, 0, 0, PAGE, &in[1]) == 0;
	unsigned int i;

	CHECK(good && in[0].window == 0 && in[1].window == 1, "a slice of either window");
	for (i = 0; i < WINDOWS; i++) {
		word[i] = map(in[i].fd, PAGE, 0);
		CHECK(word[i] != MAP_FAILED, "it is mapped");
		ask("put slice%u %" PRIu64, i, (uint64_t)in[i].offset);
	}
}

static void open_offered(void)
{
	struct viaduct_slice out;
	unsigned int i;

	for (i = 0; i < WINDOWS; i++) {
		char key[8];

		snprintf(key, sizeof(key), "slice%u", i);
		CHECK(slice(&port, VIADUCT_OUTBOUND, i, strtoull(ask("get %s", key), NULL, 0), PAGE,
			    &out) == 0,
		      "a slice of the peer is opened");
		word[i] = map(out.fd, PAGE, 0);
		CHECK(word[i] != MAP_FAILED, "and mapped");
	}
}

static bool ring(void)
{
	struct viaduct_ring r = { .db_bits = DB_BIT };

	return ioctl(port.fd, VIADUCT_RING, &r) == 0;
}

/* B's own scratchpad, or A's access to it. */
static bool spad(unsigned int flags, uint32_t *value)
{
	struct viaduct_spad s = { .index = SPAD,
				  .flags = flags,
				  .value = flags & VIADUCT_SPAD_WRITE ? *value : 0 };
	bool good = ioctl(port.fd, VIADUCT_SPAD, &s) == 0;

	*value = s.value;
	return good;
}

static bool spad_becomes(uint32_t wanted)
{
	int64_t end = now_us() + WAIT_MS * INT64_C(1000);
	uint32_t value;

	do {
		if (!spad(0, &value))
			return false;
	} while (value != wanted && now_us() < end);
	return value == wanted;
}

/* B has been told of the n-th store: is it there, and if not, when? */
static void look(volatile uint64_t *w, uint64_t n, struct counts *c)
{
	int64_t begin = now_us(), late = 0;

	if (*w == n)
		return;
	c->early++;
	while (*w != n && late < WAIT_MS * INT64_C(1000))
		late = now_us() - begin;
	c->lost += *w != n;
	if (late > c->latest_us)
		c->latest_us = late;
}

/* Stores and tells it, by a ring or by a scratchpad, `rounds` times.  Counts what was told before it was there. */
static void tell(const char *how, bool by_spad, uint64_t first, unsigned int rounds, bool reads)
{
	struct counts c = { 0 };
	bool good = true;
	uint64_t n;

	for (n = first; n < first + rounds && good; n++) {
		uint32_t value = (uint32_t)n;

		if (is_a) {
			word[n % WINDOWS][0] = n;
			good = by_spad ? spad(VIADUCT_SPAD_PEER | VIADUCT_SPAD_WRITE, &value)
				       : ring();
			good = good && rung(event);
			continue;
		}
		good = by_spad ? spad_becomes(value) : rung(event);
		if (good)
			look(&word[n % WINDOWS][0], n, &c);
		good = good && ring();
	}
	CHECK(good, how);
	if (is_a)
		return;
	CHECK(c.lost == 0, "each store arrives");
	CHECK(reads ? c.early == 0 : c.early > 0,
	      reads ? "each store is there before its peer is told of it"
		    : "without the read across the link the peer is told before the store is there");
	printf("note %s: %u of %u early, by at most %" PRId64 " us\n", how, c.early, rounds,
	       c.latest_us);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct viaduct_bind bind = { .db_bits = DB_BIT, .eventfd = eventfd(0, EFD_NONBLOCK) };
	unsigned int rounds;
	bool reads;

	if (argc != 3)
		return 2;
	is_a = strcmp(argv[1], "A") == 0;
	reads = strcmp(argv[2], "1") == 0;
	rounds = reads ? ROUNDS_READ : ROUNDS;
	event = bind.eventfd;
	open_side(&port, "/dev/viaduct0");
	CHECK(traits_are(reads), reads ? "the module says that it reads before it rings"
				       : "the module says that it does not read before it rings");
	CHECK(link_set(&port, 1) == 0 && wait_link(&port, VIADUCT_LINK_UP), "the link comes up");
	CHECK(ioctl(port.fd, VIADUCT_BIND, &bind) == 0, "an eventfd is bound to a doorbell bit");
	if (is_a)
		open_offered();
	else
		offer();
	ask("barrier bound%d", reads);
	tell("a ring after each store", false, 1, rounds, reads);
	tell("a scratchpad after each store", true, 1 + rounds, rounds, reads);
	ask("barrier told%d", reads);
	printf("end %d\n", failures);
	return failures != 0;
}
