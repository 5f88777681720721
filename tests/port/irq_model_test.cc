/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sleep protocol of the interrupt word (port_emu_regs.c), step by step in
 * every possible order: a thread that sleeps after all rings are made has lost a wake-up.
 */
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <tuple>
#include <vector>

namespace {

const int kRingers = 2;
const int kSleepers = 2;

enum Flaw { NONE, NO_SECOND_COUNT, CHECK_BEFORE_COUNT, NO_WAKE, TICKET_AFTER_CHECK };

struct State {
	std::array<uint8_t, kRingers> ring_pc{};
	std::array<uint8_t, kRingers> rings_done{};
	std::array<uint8_t, kRingers> saw{}; /* `sleepers` as the ringer read it */
	std::array<uint8_t, kSleepers> sleep_pc{};
	std::array<uint8_t, kSleepers> ticket{};
	std::array<uint8_t, kSleepers> news{}; /* rings that the sleeper has seen */
	std::array<uint8_t, kSleepers> asleep{};
	uint8_t rung = 0; /* one bit for all: their counter */
	uint8_t seq = 0;
	uint8_t sleepers = 0;

	auto tie() const
	{
		return std::tie(ring_pc, rings_done, saw, sleep_pc, ticket, news, asleep, rung, seq,
				sleepers);
	}
	bool operator<(const State &o) const { return tie() < o.tie(); }
};

const uint8_t kDone = 100;

class Model {
public:
	Model(Flaw f, int rings, bool stale) : flaw(f), per_ringer(rings)
	{
		State first;

		first.sleepers = stale; /* left by a sleeper that was killed */
		visit(first);
		while (!pending.empty() && lost == 0) {
			State s = pending.back();
			pending.pop_back();
			expand(s);
		}
	}

	int lost = 0;
	size_t states() const { return seen.size(); }

private:
	void visit(const State &s)
	{
		if (seen.insert(s).second)
			pending.push_back(s);
	}

	void expand(const State &s)
	{
		bool stuck = true;

		for (int i = 0; i < kRingers; i++)
			stuck = !ringer(s, i) && stuck;
		for (int i = 0; i < kSleepers; i++)
			stuck = !sleeper(s, i) && stuck;
		for (int i = 0; i < kSleepers && stuck; i++)
			lost += s.sleep_pc[i] != kDone;
	}

	bool ringer(State s, int i)
	{
		switch (s.ring_pc[i]) {
		case 0:
			if (s.rings_done[i] == per_ringer)
				return false;
			s.rung++;
			break;
		case 1:
			if (flaw == CHECK_BEFORE_COUNT)
				s.saw[i] = s.sleepers;
			else
				s.seq++;
			break;
		case 2:
			if (flaw == CHECK_BEFORE_COUNT)
				s.seq++;
			else
				s.saw[i] = s.sleepers;
			break;
		case 3:
			if (s.saw[i] != 0)
				s.sleepers = 0;
			break;
		case 4:
			if (s.saw[i] != 0 && flaw != NO_SECOND_COUNT)
				s.seq++;
			break;
		default:
			wake(s, i);
			s.rings_done[i]++;
			s.ring_pc[i] = 0;
			visit(s);
			return true;
		}
		s.ring_pc[i]++;
		visit(s);
		return true;
	}

	void wake(State &s, int ringer)
	{
		for (int i = 0; i < kSleepers && s.saw[ringer] != 0 && flaw != NO_WAKE; i++) {
			if (s.asleep[i]) {
				s.asleep[i] = 0;
				s.sleep_pc[i] = 0;
			}
		}
		s.saw[ringer] = 0;
	}

	/* A sleeper that wants to have seen every ring. */
	bool sleeper(State s, int i)
	{
		const bool late = flaw == TICKET_AFTER_CHECK;

		if (s.asleep[i] || s.sleep_pc[i] == kDone)
			return false;
		switch (s.sleep_pc[i]++) {
		case 0:
			(late ? s.news[i] : s.ticket[i]) = late ? s.rung : s.seq;
			break;
		case 1:
			(late ? s.ticket[i] : s.news[i]) = late ? s.seq : s.rung;
			break;
		case 2:
			if (s.news[i] == per_ringer * kRingers)
				s.sleep_pc[i] = kDone;
			else if (s.seq != s.ticket[i])
				s.sleep_pc[i] = 0;
			break;
		case 3:
			s.sleepers = 1;
			break;
		default: /* the kernel compares and queues in one step */
			s.asleep[i] = s.seq == s.ticket[i];
			s.sleep_pc[i] = 0;
			break;
		}
		visit(s);
		return true;
	}

	Flaw flaw;
	int per_ringer;
	std::set<State> seen;
	std::vector<State> pending;
};

} // namespace

TEST(IrqModel, NoOrderOfStepsLosesAWakeUp)
{
	for (bool stale : { false, true }) {
		Model m(NONE, 1, stale);

		EXPECT_EQ(m.lost, 0);
		EXPECT_GT(m.states(), 1000u);
	}
}

TEST(IrqModel, EachStepIsNeeded)
{
	for (Flaw flaw : { NO_SECOND_COUNT, CHECK_BEFORE_COUNT, NO_WAKE, TICKET_AFTER_CHECK })
		EXPECT_GT(Model(flaw, 1, true).lost, 0) << flaw;
}
