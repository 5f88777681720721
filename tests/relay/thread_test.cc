// SPDX-License-Identifier: BSD-2-Clause
// Transfer threads: sleepers are woken, each circuit keeps its order, circuits come and go.
#include <cstring>
#include <mutex>

#include "relay_rig.h"

using namespace relay_test;

namespace {

constexpr uint8_t kWhole = W_F_FIRST | W_F_LAST;

struct Mode {
	Kind kind;
	enum rl_wait wait;
};

std::string mode_name(const ::testing::TestParamInfo<Mode> &info)
{
	static const char *const waits[] = { "adaptive", "poll", "block" };

	return name_of(::testing::TestParamInfo<Kind>(info.param.kind, 0)) + "_" +
	       waits[info.param.wait];
}

class Wake : public ::testing::TestWithParam<Mode> {
protected:
	Wake() : rig(GetParam().kind, 1, GetParam().wait, false), circuit(rig) {}

	bool armed() { return circuit.node[0].notify() != 0 && circuit.node[1].notify() != 0; }

	// The thread is about to sleep, if it ever does: both nodes see that they have to ring.
	bool may_sleep() { return GetParam().wait == RL_POLL || armed(); }

	Rig rig;
	Circuit circuit;
};

TEST_P(Wake, AThreadThatSleepsHearsTheDoorbell)
{
	std::mt19937 rng(seed());
	Fragment came;

	for (uint32_t n = 0; n < 60; n++) {
		Node &a = circuit.node[n % 2], &b = circuit.node[1 - n % 2];
		Fragment f = fragment(rng, W_OP_SEND, kWhole, n);

		ASSERT_TRUE(eventually([&] { return may_sleep(); }));
		a.send(f);
		a.ring_if_due();
		ASSERT_TRUE(eventually([&] { return b.take(&came); }));
		EXPECT_TRUE(same(f, came));
		b.give_credit_and_ring();
		ASSERT_TRUE(eventually([&] { return a.credit() == a.sent; }));
	}
	EXPECT_EQ(rig.counters().slots, 60u);
	EXPECT_FALSE(GetParam().wait == RL_POLL && armed());
	EXPECT_TRUE(GetParam().wait == RL_POLL || rig.counters().sleeps > 0);
}

// Interrupts all the time, so that no sleep ends by its limit, and causes rings to get lost.
TEST_P(Wake, WhatIsNotRungForIsFoundAmidInterrupts)
{
	std::mt19937 rng(seed());
	std::atomic<bool> over{ false };
	std::thread scribbler([&] {
		while (!over) {
			port_irq_kick(rig.relay->cfg.irq, ~0u);
			std::this_thread::yield();
		}
	});

	for (uint32_t n = 0; n < 10 && !HasFailure(); n++) {
		Node &a = circuit.node[n % 2], &b = circuit.node[1 - n % 2];
		Fragment f = fragment(rng, W_OP_SEND, kWhole, n), came;

		EXPECT_TRUE(eventually([&] { return may_sleep(); }));
		a.send(f);
		EXPECT_TRUE(eventually([&] { return b.take(&came); }));
		b.give_credit(b.consumed);
		EXPECT_TRUE(eventually([&] { return a.credit() == a.sent; }));
	}
	over = true;
	scribbler.join();
}

TEST_P(Wake, CircuitsThatComeAndGo)
{
	std::mt19937 rng(seed());

	for (int i = 0; i < 20; i++) {
		Circuit fresh(rig);
		Fragment f = fragment(rng, W_OP_WRITE, kWhole | W_F_BUFFERED, 700), came;

		fresh.node[1].send(f);
		fresh.node[1].ring_if_due();
		ASSERT_TRUE(eventually([&] { return fresh.node[0].take(&came); }));
		EXPECT_TRUE(same(f, came));
		if (i % 2)
			fresh.remove();
	}
	EXPECT_EQ(rig.counters().circuits, 1u);
}

TEST_P(Wake, ABreakIsToldWhileAllSleep)
{
	ASSERT_TRUE(eventually([&] { return may_sleep(); }));
	circuit.node[0].send_raw(header(0, 0, 0));
	circuit.node[0].ring_if_due();
	ASSERT_TRUE(eventually([&] { return rig.notified == 1; }));
	EXPECT_EQ(rl_broken(rig.relay), &circuit);
	EXPECT_EQ(rig.counters().broken, 1u);
}

INSTANTIATE_TEST_SUITE_P(Modes, Wake,
			 ::testing::Values(Mode{ kPlain, RL_ADAPTIVE }, Mode{ kPlain, RL_POLL },
					   Mode{ kPlain, RL_BLOCK }, Mode{ kStrict, RL_ADAPTIVE },
					   Mode{ kStrict, RL_BLOCK }, Mode{ kLossy, RL_ADAPTIVE },
					   Mode{ kLossyStrict, RL_BLOCK },
					   Mode{ kEarly, RL_BLOCK }),
			 mode_name);

// ---- many circuits -----------------------------------------------------------------------------

// One end of many circuits: sends numbered slots, checks that those of the other end come in order.
class Player {
public:
	Player(std::vector<std::unique_ptr<Circuit>> &circuits, unsigned int side, uint32_t slots)
	    : circuits_(circuits), side_(side), slots_(slots), at_(circuits.size())
	{
	}

	void run()
	{
		auto end = std::chrono::steady_clock::now() + std::chrono::seconds(40);

		while (!done() && !failed) {
			bool moved = false;

			for (size_t i = 0; i < circuits_.size(); i++)
				moved |= step(i);
			if (!moved)
				std::this_thread::yield();
			failed = failed || std::chrono::steady_clock::now() > end;
		}
	}

	std::atomic<bool> failed{ false };

private:
	struct At {
		uint32_t sent = 0, came = 0;
	};

	bool done() const
	{
		for (const At &at : at_) {
			if (at.sent < slots_ || at.came < slots_)
				return false;
		}
		return true;
	}

	// Inline, or in the payload buffer, of a length that follows from the number.
	static Fragment numbered(size_t circuit, uint32_t n)
	{
		std::mt19937 rng(static_cast<uint32_t>(circuit) << 20 | n);

		return n % 3 ? fragment(rng, W_OP_SEND, kWhole, n % 113)
			     : fragment(rng, W_OP_SEND, kWhole | W_F_BUFFERED, 1 + n * 37 % 600);
	}

	bool step(size_t i)
	{
		Node &node = circuits_[i]->node[side_];
		At &at = at_[i];
		bool moved = false;
		Fragment came;

		for (int burst = 0; burst < 4 && at.sent < slots_; burst++) {
			Fragment f = numbered(2 * i + side_, at.sent);

			if (!node.room(f))
				break;
			node.send(f);
			at.sent++;
			moved = true;
		}
		if (moved)
			node.ring_if_due();
		while (node.take(&came)) {
			failed = failed || !same(numbered(2 * i + 1 - side_, at.came++), came);
			node.give_credit_and_ring();
			moved = true;
		}
		return moved;
	}

	std::vector<std::unique_ptr<Circuit>> &circuits_;
	unsigned int side_;
	uint32_t slots_;
	std::vector<At> at_;
};

struct Crowd {
	Kind kind;
	unsigned int threads;
	enum rl_wait wait;
};

std::string crowd_name(const ::testing::TestParamInfo<Crowd> &info)
{
	return mode_name(::testing::TestParamInfo<Mode>({ info.param.kind, info.param.wait }, 0)) +
	       "_" + std::to_string(info.param.threads);
}

class Many : public ::testing::TestWithParam<Crowd> {
protected:
	Many() : rig(GetParam().kind, GetParam().threads, GetParam().wait, false) {}

	void fill(unsigned int count)
	{
		for (unsigned int i = 0; i < count; i++)
			circuits.push_back(std::make_unique<Circuit>(
				rig, rl_thread_of(rig.relay, uint64_t{ i } << 32 | 1)));
	}

	Rig rig;
	std::vector<std::unique_ptr<Circuit>> circuits;
};

TEST_P(Many, EachKeepsItsOrder)
{
	constexpr unsigned int kCircuits = 12;
	constexpr uint32_t kEach = 150;

	fill(kCircuits);
	Player left(circuits, 0, kEach), right(circuits, 1, kEach);
	std::thread l([&] { left.run(); }), r([&] { right.run(); });
	l.join();
	r.join();
	EXPECT_FALSE(left.failed);
	EXPECT_FALSE(right.failed);
	EXPECT_EQ(rig.counters().slots, 2u * kCircuits * kEach);
	EXPECT_EQ(rig.counters().broken, 0u);
}

// Others are removed, added and drained, and counters are read, while traffic goes on.
TEST_P(Many, OthersComeAndGoUnderTraffic)
{
	constexpr uint32_t kEach = 200;
	std::atomic<bool> over{ false };

	fill(4);
	Player left(circuits, 0, kEach), right(circuits, 1, kEach);
	std::thread l([&] { left.run(); });
	std::thread r([&] {
		right.run();
		over = true;
	});
	std::mt19937 rng(seed());
	for (unsigned int i = 0; !over || i < 10; i++) {
		Circuit guest(rig, i % GetParam().threads);
		// Its nodes go on storing: it is removed with slots under way.
		for (uint32_t n = 0; n < kSlots; n++) {
			guest.node[i % 2].send(fragment(rng, W_OP_SEND, kWhole, n));
			guest.node[i % 2].ring_if_due();
		}
		if (i % 3 == 0)
			rl_drain(guest.rl, i % 2);
		if (i % 3 == 0) {
			Fragment came;
			for (uint32_t n = 0; n < kSlots; n++)
				EXPECT_TRUE(guest.node[1 - i % 2].take(&came));
		}
		if (i % 5 == 0)
			guest.node[1 - i % 2].send_raw(header(0, 0, 0));
		rig.counters();
		while (rl_broken(rig.relay) != nullptr) {}
	}
	l.join();
	r.join();
	EXPECT_FALSE(left.failed);
	EXPECT_FALSE(right.failed);
	EXPECT_EQ(rig.counters().circuits, 4u);
}

INSTANTIATE_TEST_SUITE_P(
	Crowds, Many,
	::testing::Values(Crowd{ kPlain, 1, RL_ADAPTIVE }, Crowd{ kPlain, 2, RL_POLL },
			  Crowd{ kPlain, 8, RL_BLOCK }, Crowd{ kPlain, 8, RL_ADAPTIVE },
			  Crowd{ kStrict, 3, RL_ADAPTIVE }, Crowd{ kLossy, 2, RL_BLOCK }),
	crowd_name);

// ---- a relay without circuits --------------------------------------------------------------------

TEST(Relay, RefusesWhatItCannotBe)
{
	struct rl_cfg cfg = {};
	struct rl_relay *relay = nullptr;

	cfg.threads = 0;
	EXPECT_EQ(rl_open(&cfg, &relay), -EINVAL);
	cfg.threads = RL_THREADS_MAX + 1;
	EXPECT_EQ(rl_open(&cfg, &relay), -EINVAL);
	cfg.threads = 2;
	cfg.first_db_bit = PORT_DB_MAX - 1;
	EXPECT_EQ(rl_open(&cfg, &relay), -EINVAL);
	cfg.first_db_bit = UINT32_MAX;
	EXPECT_EQ(rl_open(&cfg, &relay), -EINVAL);
	cfg.first_db_bit = 1;
	cfg.port_count = PORT_PER_HOST + 1;
	EXPECT_EQ(rl_open(&cfg, &relay), -EINVAL);
	EXPECT_EQ(relay, nullptr);
	rl_close(nullptr);
}

TEST(Relay, SharesFlowsOut)
{
	Rig rig(kPlain, RL_THREADS_MAX, RL_BLOCK, true);
	std::vector<int> flows(RL_THREADS_MAX);

	for (uint64_t conn = 1; conn <= 800; conn++)
		flows.at(rl_thread_of(rig.relay, conn << 32 | 1))++;
	for (unsigned int i = 0; i < RL_THREADS_MAX; i++) {
		EXPECT_GT(flows[i], 40) << "thread " << i;
		EXPECT_EQ(rl_db_bit(rig.relay, i), kFirstDbBit + i);
	}
}

} // namespace
