/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "open_fds.h"
#include "rig.h"

class Fault : public testing::TestWithParam<Variant> {};

INSTANTIATE_TEST_SUITE_P(All, Fault,
			 testing::Values(Variant{ "self", "emu+fault", false },
					 Variant{ "self", "emu+fault", true },
					 Variant{ "pair", "emu+fault", false },
					 Variant{ "pair", "emu+fault", true },
					 Variant{ "pair", "emu+strict+fault", false },
					 Variant{ "pair", "emu+fault+strict", false }),
			 [](const testing::TestParamInfo<Variant> &i) { return i.param.name(); });

static uint32_t rings_heard(const Variant &v, const char *faults, uint32_t bit, int rings)
{
	Rig rig(v, Rig::Limits(), faults);
	uint32_t heard = 0;

	for (int i = 0; i < rings; i++) {
		port_peer_db_ring(rig.user[0], 0x1);
		heard += (port_db_read(rig.user[1]) & bit) != 0;
		port_db_clear(rig.user[1], UINT32_MAX);
	}
	return heard;
}

TEST_P(Fault, DoorbellsAreLostAsOftenAsAsked)
{
	EXPECT_EQ(rings_heard(GetParam(), "", 0x1, 100), 100u);
	EXPECT_EQ(rings_heard(GetParam(), "drop_db=0", 0x1, 100), 100u);
	EXPECT_EQ(rings_heard(GetParam(), "drop_db=1", 0x1, 100), 0u);
	EXPECT_NEAR(rings_heard(GetParam(), "drop_db=0.25", 0x1, 2000), 1500, 150);
}

TEST_P(Fault, SpuriousDoorbellsRingAllBits)
{
	EXPECT_EQ(rings_heard(GetParam(), "spurious_db=1", 0x8000, 100), 100u);
	EXPECT_NEAR(rings_heard(GetParam(), "spurious_db=0.5", 0x8000, 2000), 1000, 150);
	EXPECT_EQ(rings_heard(GetParam(), "spurious_db=1,drop_db=1", 0x8000, 100), 0u);
}

TEST_P(Fault, NextDoorbellsAreLost)
{
	Rig rig(GetParam());

	port_fault_drop_doorbells(rig.user[0], 2);
	port_peer_db_ring(rig.user[0], 0x1);
	port_peer_db_ring(rig.user[0], 0x2);
	port_peer_db_ring(rig.user[0], 0x4);
	EXPECT_EQ(port_db_read(rig.user[1]), 0x4u);
}

TEST_P(Fault, NothingPassesALinkThatIsDown)
{
	Rig rig(GetParam());
	Window w(rig, 4096);
	uint32_t old_generation;
	uint32_t generation;

	u_out_store32(&w.out.out, w.out32(0), 1);
	w.fence();
	EXPECT_EQ(port_link_state(rig.user[0], &old_generation), PORT_LINK_UP);
	for (int i = 0; i < 3; i++) {
		port_fault_link(rig.user[0], PORT_LINK_DOWN);
		port_fault_link(rig.user[0], PORT_LINK_DOWN);
		EXPECT_EQ(port_link_state(rig.user[0], nullptr), PORT_LINK_DOWN);
		u_out_store32(&w.out.out, w.out32(0), 2);
		w.fence();
		port_flush(rig.user[0]);
		EXPECT_EQ(w.in32(0), 1u);
		port_peer_db_ring(rig.user[0], 0x1);
		EXPECT_EQ(port_db_read(rig.user[1]), 0u);
		EXPECT_EQ(port_peer_spad_write(rig.user[0], 0, 5), -ENOTCONN);
		EXPECT_EQ(port_peer_spad_read(rig.user[0], 0), UINT32_MAX);
		port_fault_link(rig.user[0], PORT_LINK_UP);
		port_fault_link(rig.user[0], PORT_LINK_UP);
		ASSERT_TRUE(rig.settle(
			[&] { return port_link_state(rig.user[0], &generation) == PORT_LINK_UP; }));
		EXPECT_NE(generation, old_generation);
		EXPECT_NE(generation, 0u);
		old_generation = generation;
		EXPECT_EQ(port_peer_spad_write(rig.user[0], 0, 5), GetParam().client ? -EPERM : 0);
	}
	// The old map ended with the old generation of the link; a new one works.
	u_out_store32(&w.out.out, w.out32(0), 3);
	w.fence();
	EXPECT_EQ(w.in32(0), 1u);
	Window again(rig, 4096);
	u_out_store32(&again.out.out, again.out32(0), 3);
	again.fence();
	EXPECT_EQ(again.in32(0), 3u);
}

TEST_P(Fault, LinkGoesDownAfterSoManyStores)
{
	Rig rig(GetParam(), Rig::Limits(), "down_after=10");
	Window w(rig, 4096);

	for (uint32_t i = 0; i < 20; i++) {
		u_out_store32(&w.out.out, w.out32(i * 64), 1);
		w.fence();
	}
	EXPECT_EQ(port_link_state(rig.user[0], nullptr), PORT_LINK_DOWN);
	for (uint32_t i = 0; i < 20; i++)
		EXPECT_EQ(w.in32(i * 64), i < 10) << i;
	ASSERT_EQ(w.in32(0), 1u);
}

/* The line that was under way is cut at a word, at many places over many seeds. */
TEST_P(Fault, LinesAreTorn)
{
	if (std::string(GetParam().kind) == "emu+fault+strict")
		GTEST_SKIP() << "strict hands on single words, which are never torn";
	uint8_t line[64];
	size_t lengths = 0;

	memset(line, 1, sizeof(line));
	for (uint64_t seed = 0; seed < 30; seed++) {
		Rig rig(GetParam(), Rig::Limits(), "down_after=2,torn=1", seed);
		Window w(rig, 4096);
		size_t n = 0;

		w.store(0, line, 64);
		w.fence();
		w.store(64, line, 64);
		w.fence();
		w.store(128, line, 64);
		w.fence();
		while (n < 64 && w.in_bytes()[64 + n] == 1)
			n++;
		for (size_t i = n; i < 128; i++)
			ASSERT_EQ(w.in_bytes()[64 + i], 0);
		EXPECT_EQ(w.in_bytes()[63], 1);
		lengths |= size_t(1) << n / 8;
	}
	EXPECT_EQ(lengths & 1u << 8, 0u) << "a torn line is never whole";
	EXPECT_GE(__builtin_popcountll(lengths), 3);
}

TEST_P(Fault, LinkComesBackByItself)
{
	Rig rig(GetParam(), Rig::Limits(), "down_after=1,down_ms=30");
	Window w(rig, 4096);
	uint32_t old_generation;
	uint32_t generation;
	int64_t start = u_now_ns();

	ASSERT_EQ(port_link_state(rig.user[0], &old_generation), PORT_LINK_UP);
	u_out_store32(&w.out.out, w.out32(0), 1);
	w.fence();
	ASSERT_TRUE(rig.settle([&] {
		return port_link_state(rig.user[0], &generation) == PORT_LINK_UP &&
		       generation != old_generation;
	}));
	EXPECT_GE(u_now_ns() - start, 30000000);
	Window again(rig, 4096);
	u_out_store32(&again.out.out, again.out32(64), 1);
	again.fence();
	EXPECT_EQ(again.in32(64), 1u);
}

/* Rings after a fenced store, and tells whether a reader that clears and looks at once finds the store. */
static bool ring_finds_store(Rig &rig, Window &w, uint32_t value)
{
	bool found;

	w.fence();
	u_out_store32(&w.out.out, w.out32(0), value);
	w.fence();
	port_peer_db_ring(rig.user[0], 0x1);
	EXPECT_EQ(port_db_read(rig.user[1]), 0x1u);
	port_db_clear(rig.user[1], 0x1);
	found = w.in32(0) == value;
	for (int64_t deadline = u_now_ns() + 60000000000; w.in32(0) != value;) {
		if (u_now_ns() > deadline) {
			ADD_FAILURE() << "it does not arrive without a flush";
			break;
		}
		sched_yield();
	}
	return found;
}

static int early_rings(const Variant &v, const char *faults, int rings)
{
	Rig rig(v, Rig::Limits(), faults);
	Window w(rig, 4096);
	int early = 0;

	for (int i = 1; i <= rings; i++)
		early += !ring_finds_store(rig, w, static_cast<uint32_t>(i));
	return early;
}

TEST_P(Fault, EarlyRingsPrecedeTheirStores)
{
	EXPECT_EQ(early_rings(GetParam(), "", 100), 0);
	EXPECT_EQ(early_rings(GetParam(), "early_db=0", 100), 0);
	EXPECT_GT(early_rings(GetParam(), "early_db=1", 100), 0);
	EXPECT_GT(early_rings(GetParam(), "early_db=0.3", 200), 0);
}

TEST_P(Fault, FlushesAndUnmappingLandWhatEarlyRingsOvertook)
{
	Rig rig(GetParam(), Rig::Limits(), "early_db=1");

	for (uint32_t i = 1; i <= 50; i++) {
		Window w(rig, 4096);

		w.fence();
		u_out_store32(&w.out.out, w.out32(0), i);
		port_flush(rig.user[0]);
		ASSERT_EQ(w.in32(0), i);
		w.fence();
		u_out_store32(&w.out.out, w.out32(64), i);
		port_unmap(rig.user[0], &w.out);
		ASSERT_EQ(w.in32(64), i);
	}
}

TEST_P(Fault, EarlyRingsLeaveStoresInOrder)
{
	Rig::Limits limits;

	limits.window_bytes = 1 << 20;
	Rig rig(GetParam(), limits, "early_db=0.5");
	Window w(rig, 128 << 10);
	std::atomic<uint32_t> taken{ 0 };
	// The longer ones are more than can be held.
	const size_t lengths[] = { 8, 200, 5000, 60000 };
	std::thread writer([&] {
		std::vector<uint8_t> data(60000);

		for (uint32_t i = 1; i <= 200; i++) {
			size_t n = lengths[i % 4];

			memset(data.data(), static_cast<int>(i), n);
			w.store(64, data.data(), n);
			w.fence();
			u_out_store32(&w.out.out, w.out32(0), i);
			w.fence();
			while (taken.load(std::memory_order_acquire) != i)
				sched_yield();
		}
	});
	bool good = true;

	for (uint32_t i = 1; i <= 200; i++) {
		const uint8_t *at = w.in_bytes() + 64;
		size_t n = lengths[i % 4];

		while (w.in32(0) != i)
			sched_yield();
		good = good && std::all_of(at, at + n, [&](uint8_t b) { return b == (i & 0xff); });
		taken.store(i, std::memory_order_release);
	}
	writer.join();
	EXPECT_TRUE(good);
}

TEST_P(Fault, LinksThatGoDownLoseWhatEarlyRingsOvertook)
{
	Rig rig(GetParam(), Rig::Limits(), "early_db=1");
	int lost = 0;

	for (int i = 0; i < 50; i++) {
		Window w(rig, 4096);

		w.fence();
		u_out_store32(&w.out.out, w.out32(0), 1);
		port_fault_link(rig.user[0], PORT_LINK_DOWN);
		/* It lands what the port below has: the store, if its time was over before the link went down. */
		port_flush(rig.user[0]);
		lost += w.in32(0) == 0;
		port_fault_link(rig.user[0], PORT_LINK_UP);
		ASSERT_TRUE(rig.settle(
			[&] { return port_link_state(rig.user[0], nullptr) == PORT_LINK_UP; }));
	}
	EXPECT_GT(lost, 0);
}

TEST_P(Fault, AgentsLinkDownIsSeenByItsPeerAndItsClients)
{
	if (GetParam().self())
		GTEST_SKIP() << "the link of self is up";
	Rig rig(GetParam(), Rig::Limits(), "down_ms=20");
	struct port *view = rig.attach(0);
	struct pollfd pfd = { port_event_fd(rig.agent[0]), POLLIN, 0 };
	int changes = 0;

	while (port_service(rig.agent[0]) > 0)
		;
	port_fault_link(rig.agent[0], PORT_LINK_DOWN);
	ASSERT_EQ(poll(&pfd, 1, 10000), 1);
	ASSERT_TRUE(rig.settle([&] {
		return port_link_state(rig.agent[1], nullptr) == PORT_LINK_DOWN ||
		       port_link_state(rig.agent[0], nullptr) == PORT_LINK_UP;
	}));
	ASSERT_TRUE(rig.settle_link(PORT_LINK_UP)) << "the timer is an event";
	EXPECT_EQ(port_link_state(view, nullptr), PORT_LINK_UP);
	port_fault_link(rig.agent[0], PORT_LINK_DOWN);
	EXPECT_EQ(port_link_state(view, nullptr), PORT_LINK_DOWN);
	changes = port_service(rig.agent[0]);
	EXPECT_GE(changes, 1);
}

TEST_P(Fault, LinkStaysDownWhatTheAgentAsked)
{
	if (GetParam().self())
		GTEST_SKIP() << "the link of self is up";
	Rig rig(GetParam());

	port_fault_link(rig.agent[0], PORT_LINK_DOWN);
	EXPECT_EQ(port_link_enable(rig.agent[0]), 0);
	EXPECT_EQ(port_link_state(rig.agent[0], nullptr), PORT_LINK_DOWN);
	ASSERT_TRUE(rig.settle_link(PORT_LINK_DOWN));
	port_link_disable(rig.agent[0]);
	port_fault_link(rig.agent[0], PORT_LINK_UP);
	EXPECT_EQ(port_link_state(rig.agent[0], nullptr), PORT_LINK_DOWN) << "it is disabled";
	EXPECT_EQ(port_link_enable(rig.agent[0]), 0);
	EXPECT_TRUE(rig.settle_link(PORT_LINK_UP));
}

TEST(FaultOptions, BadOnesAreRefused)
{
	Rig rig({ "self", "emu", false });
	struct port *out = nullptr;

	for (const char *bad :
	     { "drop_db", "drop_db=", "drop_db=1.1", "drop_db=-1", "drop_db=x", "drop_db=.",
	       "torn=2", "early_db=2", "early_db", "down_after=1.5", "down_ms=99999999999999999999",
	       "what=1", "drop_db=1,,torn=1", "drop_db =1", "=1", ",", "down_after=0x10",
	       "drop_db=1e-3", "drop_db=nan" })
		EXPECT_EQ(port_fault_wrap(rig.agent[0], bad, 1, &out), -EINVAL) << bad;
	EXPECT_EQ(out, nullptr);
}

TEST(Decorate, KindsNameTheirDecorators)
{
	for (const char *bad : { "", "strict", "emu+", "emu+model:gen9", "emu+model:gen3x8:0",
				 "emu+models", "cdev", "emu+strict+", "emu++strict",
				 "emu+strict+fault+strict+fault+strict+fault+strict" }) {
		Rig rig({ "self", "emu", false });
		struct port *out = nullptr;

		if (std::string(bad) == "emu+" || std::string(bad) == "emu+strict+" ||
		    std::string(bad) == "emu++strict")
			continue;
		EXPECT_EQ(port_decorate(rig.agent[0], bad, "", 1, &out), -EINVAL) << bad;
		EXPECT_EQ(out, nullptr) << bad;
		EXPECT_EQ(port_link_state(rig.agent[0], nullptr), PORT_LINK_UP) << "still good";
	}
	Rig rig({ "self", "emu", false });
	struct port *out = nullptr;
	int before = open_fds();

	ASSERT_EQ(port_decorate(rig.agent[0], "emu", nullptr, 1, &out), 0);
	EXPECT_EQ(out, rig.agent[0]);
	EXPECT_EQ(port_decorate(rig.agent[0], "emu+strict+fault", "drop_db=7", 1, &out), -EINVAL);
	EXPECT_EQ(out, rig.agent[0]);
	EXPECT_EQ(open_fds(), before);
}

TEST(OpsCheck, IncompleteBackEndsAreRefused)
{
	Rig rig({ "pair", "emu", false });
	const size_t count = sizeof(struct port_ops) / sizeof(void (*)());
	int refused = 0;

	for (size_t i = 0; i < count; i++) {
		struct port_ops ops = *rig.agent[0]->ops;

		memset(reinterpret_cast<char *>(&ops) + i * sizeof(void (*)()), 0,
		       sizeof(void (*)()));
		refused += port_ops_check(&ops) == -EINVAL;
	}
	EXPECT_EQ(refused, static_cast<int>(count) - 6)
		<< "slice_end, slice_share, memory_alloc, view_end, event_fd, service";
}
