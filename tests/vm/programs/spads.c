// SPDX-License-Identifier: BSD-2-Clause
/* Runs in a guest with both ports of a link: scratchpads and windows that are made of message registers. */
#include "ports.h"

#define SPADS 8
#define ROUNDS 200

static int port[2];

static uint32_t get(int side, unsigned int flags, unsigned int index)
{
	struct viaduct_spad spad = { .index = index, .flags = flags };

	return ioctl(port[side], VIADUCT_SPAD, &spad) == 0 ? spad.value : 0xdeadbeef;
}

static bool put(int side, unsigned int flags, unsigned int index, uint32_t value)
{
	struct viaduct_spad spad = { .index = index,
				     .flags = flags | VIADUCT_SPAD_WRITE,
				     .value = value };

	return ioctl(port[side], VIADUCT_SPAD, &spad) == 0;
}

/* Does it become that value?  There is no event for it, so this polls for some time. */
static bool becomes(int side, unsigned int flags, unsigned int index, uint32_t value)
{
	int64_t end = now_ms() + WAIT_MS;

	while (get(side, flags, index) != value) {
		if (now_ms() > end)
			return false;
		sched_yield();
	}
	return true;
}

static void test_values(void)
{
	struct viaduct_info info;
	unsigned int i;
	bool good = true;

	CHECK(ioctl(port[0], VIADUCT_GET_INFO, &info) == 0 && info.spads == SPADS,
	      "there are 8 scratchpads");
	CHECK(put(0, 0, SPADS, 1) == false && errno == EINVAL, "and no ninth");
	for (i = 0; i < SPADS; i++)
		good &= put(0, VIADUCT_SPAD_PEER, i, 100 + i);
	for (i = 0; i < SPADS; i++)
		good &= becomes(1, 0, i, 100 + i) && get(0, VIADUCT_SPAD_PEER, i) == 100 + i;
	CHECK(good, "all that are written at the peer are read there");
	for (i = 0; i < SPADS; i++)
		good &= put(1, 0, i, 200 + i);
	for (i = 0; i < SPADS; i++)
		good &= becomes(0, VIADUCT_SPAD_PEER, i, 200 + i);
	CHECK(good, "those that their owner writes are read by the peer");
}

/* Both write the same scratchpad: afterwards both read the same value, the last one of either. */
static void test_races(void)
{
	uint32_t value = 0;
	int64_t end;
	bool good = true;
	int i;

	for (i = 1; i <= ROUNDS && good; i++) {
		good = put(0, VIADUCT_SPAD_PEER, 5, 2 * i) && put(1, 0, 5, 2 * i + 1);
		end = now_ms() + WAIT_MS;
		put(0, VIADUCT_SPAD_PEER, 6, i);
		put(1, 0, 7, i);
		good &= becomes(1, 0, 6, i) && becomes(0, VIADUCT_SPAD_PEER, 7, i);
		do {
			value = get(1, 0, 5);
		} while (get(0, VIADUCT_SPAD_PEER, 5) != value && now_ms() < end);
		good &= now_ms() < end && (value == 2u * i || value == 2u * i + 1);
	}
	CHECK(good, "writes of both sides at a time leave one value");
}

static void test_link(void)
{
	CHECK(link_set(port[1], 0) == 0 && wait_link(port[0], VIADUCT_LINK_DOWN),
	      "the link goes down");
	CHECK(get(0, VIADUCT_SPAD_PEER, 1) == 0xffffffff, "then all of the peer read as ones");
	CHECK(put(0, VIADUCT_SPAD_PEER, 1, 77) && put(1, 0, 2, 88), "writes are possible");
	CHECK(both_up(port[0], port[1]), "it comes up again");
	CHECK(get(0, VIADUCT_SPAD_PEER, 2) == 88, "what the owner wrote is there at once");
	CHECK(get(1, 0, 1) == 201, "what was written across the link is lost");
}

static void test_windows(void)
{
	struct viaduct_slice in[2], out[2];
	volatile uint64_t *mine, *yours;
	bool good = true;
	int i;

	/* More than a window holds, so a slice in each. */
	for (i = 0; i < 2; i++)
		good &= make_slice(port[1], VIADUCT_INBOUND, 0, 0, 3 << 20, &in[i]) == 0;
	CHECK(good && in[0].window != in[1].window, "a slice in each window");
	for (i = 0; i < 2; i++) {
		good &= make_slice(port[0], VIADUCT_OUTBOUND, in[i].window, in[i].offset, in[i].len,
				   &out[i]) == 0;
		mine = map_slice(&in[i]);
		yours = map_slice(&out[i]);
		yours[100000] = 1000 + i;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		good &= mine[100000] == 1000u + i;
	}
	CHECK(good, "what is stored into each arrives");
}

int main(void)
{
	port[0] = open_port(0);
	port[1] = open_port(1);
	CHECK(both_up(port[0], port[1]), "the link comes up");
	test_values();
	test_races();
	test_link();
	test_windows();
	CHECK(link_set(port[0], 0) == 0 && wait_link(port[1], VIADUCT_LINK_DOWN),
	      "it is taken down");
	CHECK(both_up(port[0], port[1]), "and comes up");
	ask("flood");
	CHECK(wait_link(port[0], VIADUCT_LINK_DOWN), "a peer without the module is no peer");
	ask("rebind");
	close(port[1]);
	port[1] = open_port(2);
	CHECK(both_up(port[0], port[1]), "with the module it is one again");
	return end();
}
