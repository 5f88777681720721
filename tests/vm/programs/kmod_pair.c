// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs in two guests, one port of viaduct.ko each: tests of everything that crosses the link.
 *
 *   kmod_pair A|B BITS BYTES     the doorbell bits that the ports have, the size of their windows
 *   kmod_pair again BITS BYTES   in a guest that was killed and has booted again
 *
 * Each stores into memory of the other, which checks it.  What they tell each other through the
 * script can overtake a store; a load through the same window returns only after the stores before
 * it, and a doorbell arrives after them.
 */
#include "kmod_side.h"

#include <inttypes.h>
#include <time.h>

#define WORDS (3 * PAGE / 8)
#define ROUNDS 200
#define DB_BIT 4ULL /* the doorbell bit that is used */

static struct side port;
static bool is_a;

struct half {
	struct viaduct_slice in, out;
	volatile uint64_t *mine;
	volatile uint64_t *yours;
};

static void both(const char *name)
{
	ask("barrier %s", name);
}

static uint64_t pattern(unsigned int i)
{
	return (i + 1) * 0x9e3779b97f4a7c15;
}

static void test_up(uint64_t bits, uint64_t bytes)
{
	CHECK(port.status != MAP_FAILED && port.status->abi == VIADUCT_ABI,
	      "the status page is mapped");
	CHECK(link_set(&port, 1) == 0, "the link is enabled");
	CHECK(wait_link(&port, VIADUCT_LINK_UP), "it comes up");
	CHECK(port.info.windows == 2 && port.info.db_bits == bits &&
		      port.info.window[0].inbound == bytes &&
		      port.info.window[0].outbound == bytes &&
		      port.info.window[1].outbound == bytes,
	      "windows and doorbells as the link has them");
}

static int spad(unsigned int flags, uint32_t *value)
{
	struct viaduct_spad spad = { .index = 3,
				     .flags = flags,
				     .value = flags & VIADUCT_SPAD_WRITE ? *value : 0 };
	int rc = ioctl(port.fd, VIADUCT_SPAD, &spad);

	*value = spad.value;
	return rc;
}

static void test_spads(void)
{
	uint32_t value = is_a ? 77 : 78;

	CHECK(spad(VIADUCT_SPAD_PEER | VIADUCT_SPAD_WRITE, &value) == 0,
	      "a scratchpad of the peer is written");
	CHECK(spad(VIADUCT_SPAD_PEER, &value) == 0 && value == (is_a ? 77 : 78), "and read back");
	both("spads");
	CHECK(spad(0, &value) == 0 && value == (is_a ? 78 : 77),
	      "this port has what the peer wrote");
}

static void open_peer(struct half *h, const char *key)
{
	uint32_t window;
	uint64_t offset;

	CHECK(sscanf(ask("get %s", key), "%" SCNu32 " %" SCNu64, &window, &offset) == 2,
	      "the peer names a slice");
	CHECK(slice(&port, VIADUCT_OUTBOUND, window, offset, WORDS * 8, &h->out) == 0,
	      "it is opened");
	h->yours = map(h->out.fd, h->out.len, 0);
	CHECK(h->yours != MAP_FAILED, "and mapped");
}

static void test_slices(struct half *h)
{
	struct viaduct_slice other;
	volatile uint64_t *beside;
	unsigned int i, wrong = 0;

	CHECK(slice(&port, VIADUCT_INBOUND, 0, 0, WORDS * 8, &h->in) == 0 &&
		      slice(&port, VIADUCT_INBOUND, 0, 0, PAGE, &other) == 0,
	      "slices of this machine's memory");
	h->mine = map(h->in.fd, h->in.len, 0);
	beside = map(other.fd, PAGE, 0);
	CHECK(h->mine != MAP_FAILED && beside != MAP_FAILED, "they are mapped");
	CHECK(h->mine[0] == 0 && h->mine[WORDS - 1] == 0 && beside[0] == 0, "and zero");
	ask("put slice%c %u %" PRIu64, is_a ? 'A' : 'B', h->in.window, (uint64_t)h->in.offset);
	open_peer(h, is_a ? "sliceB" : "sliceA");
	for (i = 0; i < WORDS; i++)
		h->yours[i] = pattern(i) + is_a;
	CHECK(h->yours[WORDS - 1] == pattern(WORDS - 1) + is_a,
	      "a load brings back what was stored");
	CHECK(system("/bin/grep -q \"$OUTBOUND. write-combining\" /sys/kernel/debug/x86/pat_memtype_list") ==
		      0,
	      "the window is write-combining");
	both("stored");
	for (i = 0; i < WORDS; i++)
		wrong += h->mine[i] != pattern(i) + !is_a;
	CHECK(wrong == 0, "this memory has what the peer stored");
	for (i = 0; i < PAGE / 8; i++)
		wrong += beside[i] != 0;
	CHECK(wrong == 0, "memory beside it does not");
	both("compared");
}

static void ring(const struct viaduct_client *client)
{
	struct viaduct_ring r = { .db_bits = DB_BIT };

	if (ioctl(client->fd, VIADUCT_RING, &r) != 0)
		failures++;
}

/* Each in turn stores a word and rings: after each doorbell the word stored before it is there. */
static void test_doorbells(struct half *h)
{
	struct viaduct_client client = { .ring_bits = DB_BIT };
	struct viaduct_bind bind = { .db_bits = DB_BIT, .eventfd = eventfd(0, EFD_NONBLOCK) };
	uint32_t before = port.status->db_count[2];
	unsigned int i, early = 0, lost = 0;
	struct timespec start, end;

	CHECK(ioctl(port.fd, VIADUCT_BIND, &bind) == 0, "an eventfd is bound to a doorbell bit");
	CHECK(ioctl(port.fd, VIADUCT_CLIENT, &client) == 0, "a client rings it");
	both("bound");
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (i = 1; i <= ROUNDS && !lost; i++) {
		if (is_a) {
			h->yours[0] = i;
			ring(&client);
		}
		lost += !rung(bind.eventfd);
		early += h->mine[0] != i;
		if (!is_a) {
			h->yours[0] = i;
			ring(&client);
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	CHECK(lost == 0, "each ring is heard");
	CHECK(early == 0, "and finds what was stored before it");
	CHECK(port.status->db_count[2] - before == ROUNDS, "rings are counted");
	if (is_a) {
		printf("note a word and a ring, to and fro: %" PRIu64 " us\n",
		       ((end.tv_sec - start.tv_sec) * 1000000 +
			(end.tv_nsec - start.tv_nsec) / 1000) /
			       (uint64_t)ROUNDS);
	}
	both("rung");
	close(client.fd);
}

/*
 * B binds, through a client descriptor such as processes have, an eventfd to each of some bits; A
 * rings all but the last, one after the other.
 */
static void test_eventfds(void)
{
	struct viaduct_client client = { .ring_bits = 0x7f };
	struct viaduct_bind bind[4];
	unsigned int i, heard = 0;
	uint64_t value;

	CHECK(ioctl(port.fd, VIADUCT_CLIENT, &client) == 0, "a client of the port");
	for (i = 0; i < 4 && !is_a; i++) {
		bind[i] = (struct viaduct_bind){ .db_bits = 8ULL << i,
						 .eventfd = eventfd(0, EFD_NONBLOCK) };
		heard += ioctl(client.fd, VIADUCT_BIND, &bind[i]) == 0;
	}
	CHECK(heard == (is_a ? 0 : 4), "it binds an eventfd to each of four bits");
	both("four bound");
	for (i = 0; i < 3; i++) {
		struct viaduct_ring r = { .db_bits = 8ULL << i };

		if (is_a)
			CHECK(ioctl(client.fd, VIADUCT_RING, &r) == 0, "a bit is rung");
		else
			CHECK(rung(bind[i].eventfd), "its eventfd is signalled");
		both("one of four");
	}
	for (i = 0; i < 4 && !is_a; i++) {
		CHECK(read(bind[i].eventfd, &value, sizeof(value)) < 0 && errno == EAGAIN,
		      "and no other, nor twice");
		close(bind[i].eventfd);
	}
	close(client.fd);
	both("four rung");
}

/* Nothing that A stored while the link was cut, or into the mapping from before the cut, is in B's memory. */
static void test_cut(struct half *h)
{
	uint32_t generation = port.info.generation;
	uint64_t value = h->mine[1];

	both("to be cut");
	if (is_a)
		ask("cut l");
	CHECK(wait_link(&port, VIADUCT_LINK_DOWN), "a cut is seen");
	h->yours[1] = 5;
	both("cut");
	if (is_a)
		ask("restore l");
	CHECK(wait_link(&port, VIADUCT_LINK_UP) && port.info.generation != generation,
	      "the link comes back, with another generation");
	h->yours[1] = 6;
	both("restored");
	open_peer(h, is_a ? "sliceB" : "sliceA");
	h->yours[2] = 7;
	CHECK(h->yours[2] == 7, "the slice can be used again");
	both("reopened");
	CHECK(h->mine[1] == value, "stores of between went nowhere");
	CHECK(h->mine[2] == 7, "those after that arrive");
}

/* The peer's machine is switched off while this one stores into its memory. */
static void test_death(struct half *h)
{
	unsigned int i;

	both("to be killed");
	if (!is_a) {
		ask("get nothing");
		return;
	}
	ask("kill B");
	for (i = 0; port.status->link == VIADUCT_LINK_UP; i++)
		h->yours[i % WORDS] = i;
	CHECK(wait_link(&port, VIADUCT_LINK_DOWN), "the peer's death is seen");
	h->yours[0] = 1;
	CHECK(h->yours[0] == 1, "the mapping can be used, but shows nothing");
	ask("put life 2");
	ask("start B");
	CHECK(wait_link(&port, VIADUCT_LINK_UP), "the link comes up when it has booted");
}

static void test_removal(void)
{
	struct pollfd poller = { .fd = port.fd, .events = POLLIN };

	both("to be removed");
	if (!is_a) {
		ask("unbind");
		CHECK(poll(&poller, 1, WAIT_MS) == 1 && poller.revents & POLLHUP,
		      "a port that is removed hangs up");
		CHECK(port.status->link == VIADUCT_LINK_GONE, "the status page says so");
	} else {
		CHECK(wait_link(&port, VIADUCT_LINK_DOWN), "the peer's removal is seen");
	}
	both("removed");
}

int main(int argc, char **argv)
{
	struct half h;

	if (argc != 4)
		return 2;
	is_a = strcmp(argv[1], "A") == 0;
	open_side(&port, "/dev/viaduct0");
	test_up(strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0));
	if (strcmp(argv[1], "again") != 0) {
		test_spads();
		test_slices(&h);
		test_doorbells(&h);
		test_eventfds();
		test_cut(&h);
		test_death(&h);
	}
	test_removal();
	printf("end %d\n", failures);
	return failures != 0;
}
