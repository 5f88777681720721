// SPDX-License-Identifier: BSD-2-Clause
// Which part of the payload buffer messages go through: dialogues of short ones its beginning, others all of it.
#include <gtest/gtest.h>

#include <cstring>
#include <tuple>
#include <vector>

extern "C" {
#include "nvi_loop.h"
#include "w_slot.h"
}

namespace {

constexpr uint32_t kSlots = 128, kPayload = 1u << 20, kMost = 64u << 10, kDescs = 128, kAnswer = 8;
constexpr uint32_t kDemoted = 256u << 10; // dialogues go so far where lines are demoted
constexpr uint8_t kUnused = 0xee;

struct Channel {
	bool resumable, demotes, prefetches;
};

class Walk : public ::testing::TestWithParam<std::tuple<int, Channel>> {
protected:
	void SetUp() override
	{
		nvi_loop_cfg cfg = {};

		cfg.slots = kSlots;
		cfg.payload_bytes = kPayload;
		cfg.level = static_cast<VIP_RELIABILITY_LEVEL>(std::get<0>(GetParam()));
		cfg.resumable = kind().resumable;
		cfg.port = kind().resumable ? "emu+fault" : "emu";
		cfg.seed = 7;
		loop = nvi_loop_open(&cfg);
		ASSERT_NE(loop, nullptr);
		desc_handle = nvi_loop_register(loop, descs, sizeof(descs));
		from_handle = nvi_loop_register(loop, from.data(), from.size());
		to_handle = nvi_loop_register(loop, to.data(), to.size());
		for (int end = 0; end < 2; end++) {
			nvi_loop_set_demotes(loop, end, kind().demotes);
			nvi_loop_set_prefetches(loop, end, kind().prefetches);
		}
	}

	void TearDown() override
	{
		if (loop == nullptr)
			return;
		nvi_loop_lose(loop, 0);
		nvi_loop_lose(loop, 1);
		nvi_loop_deregister(loop, descs, desc_handle);
		nvi_loop_deregister(loop, from.data(), from_handle);
		nvi_loop_deregister(loop, to.data(), to_handle);
		nvi_loop_close(loop);
	}

	static Channel kind() { return std::get<1>(GetParam()); }

	VIP_DESCRIPTOR *build(unsigned i, uint16_t control, uint8_t *at, uint32_t len,
			      VIP_MEM_HANDLE h, unsigned segs = 1)
	{
		VIP_DESCRIPTOR *d = &descs[i];
		unsigned k = (control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_SENDRECV ? 0 : 1;

		std::memset(static_cast<void *>(d), 0, sizeof(*d));
		d->CS.Control = control;
		d->CS.SegCount = static_cast<VIP_UINT16>(segs + k);
		d->CS.Length = len;
		if (k != 0) {
			d->DS[0].Remote.Data.Address = to.data();
			d->DS[0].Remote.Handle = to_handle;
		}
		for (unsigned s = 0; s < segs; s++) {
			uint32_t part = s + 1 < segs ? len / segs : len - len / segs * (segs - 1);

			d->DS[s + k].Local.Data.Address = at + s * (len / segs);
			d->DS[s + k].Local.Handle = h;
			d->DS[s + k].Local.Length = part;
		}
		return d;
	}

	void settle() { ASSERT_LT(nvi_loop_settle(loop, 1000), 1000); }

	void send(int end, VIP_DESCRIPTOR *d)
	{
		ASSERT_EQ(nvi_loop_post_send(loop, end, d, desc_handle), 0);
	}

	void receive(int end, unsigned i, uint8_t *at, uint32_t len)
	{
		ASSERT_EQ(nvi_loop_post_recv(loop, end, build(i, 0, at, len, to_handle),
					     desc_handle),
			  0);
	}

	void expect_done(int end)
	{
		VIP_DESCRIPTOR *d;

		ASSERT_EQ(nvi_loop_send_done(loop, end, &d), 1);
	}

	void expect_received(int end)
	{
		VIP_DESCRIPTOR *d;

		ASSERT_EQ(nvi_loop_recv_done(loop, end, &d), 1);
	}

	// End 0 sends `len` bytes, end 1 answers in a slot.
	void ask(uint32_t len, unsigned segs)
	{
		from[0]++;
		receive(1, 0, to.data(), len);
		send(0, build(2, 0, from.data(), len, from_handle, segs));
		settle();
		expect_received(1);
		ASSERT_EQ(std::memcmp(to.data(), from.data(), len), 0);
		answer();
		expect_done(0);
	}

	void answer()
	{
		receive(0, 1, to.data() + 4 * kMost, kAnswer);
		send(1, build(3, 0, from.data(), kAnswer, from_handle));
		settle();
		expect_received(0);
		expect_done(1);
	}

	// The path is lost and found; what is sent meanwhile is stored before or after it is known that it is lost.
	template <typename F> void lose_path(bool before, F send_some)
	{
		nvi_loop_link(loop, 0);
		if (before)
			send_some();
		ASSERT_EQ(nvi_loop_lose_path(loop), 0);
		if (!before)
			send_some();
		nvi_loop_link(loop, 1);
		ASSERT_EQ(nvi_loop_find_path(loop), 0);
	}

	// Sends message i of a few, each from and to memory of its own.
	void send_numbered(unsigned i, uint32_t len)
	{
		std::memset(&from[i * kMost], static_cast<int>(++stamp), len);
		std::memset(&to[i * kMost], 0, len);
		receive(1, 4 + i, &to[i * kMost], len);
		send(0, build(10 + i, 0, &from[i * kMost], len, from_handle));
	}

	void expect_numbered(unsigned i, uint32_t len)
	{
		expect_received(1);
		expect_done(0);
		EXPECT_EQ(std::memcmp(&to[i * kMost], &from[i * kMost], len), 0) << i;
	}

	uint8_t *payload()
	{
		uint64_t bytes;

		return nvi_loop_inbound(loop, 1, &bytes) + w_slice_payload(kSlots);
	}

	void mark_unused() { std::memset(payload(), kUnused, kPayload); }

	// Where the part ends that was used.
	uint32_t used()
	{
		uint32_t n = kPayload;

		while (n > 0 && payload()[n - 1] == kUnused)
			n--;
		return n;
	}

	// The first message of a connection does not answer, so the second follows it.
	static uint32_t dialogue(uint32_t len)
	{
		return 2 * (len + 64) + (kind().demotes ? kDemoted : 0);
	}

	alignas(64) VIP_DESCRIPTOR descs[kDescs] = {};
	std::vector<uint8_t> from = std::vector<uint8_t>(4 * kMost, 0x11),
			     to = std::vector<uint8_t>(4 * kMost + kAnswer);
	unsigned stamp = 0;
	VIP_MEM_HANDLE desc_handle = 0, from_handle = 0, to_handle = 0;
	nvi_loop *loop = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Levels, Walk,
			 ::testing::Combine(::testing::Values(VIP_SERVICE_UNRELIABLE,
							      VIP_SERVICE_RELIABLE_DELIVERY,
							      VIP_SERVICE_RELIABLE_RECEPTION),
					    ::testing::Values(Channel{ false, false, false },
							      Channel{ false, false, true },
							      Channel{ true, false, true },
							      Channel{ false, true, true },
							      Channel{ true, true, true })));

// Also of several segments.
TEST_P(Walk, ADialogueStaysAtTheBeginning)
{
	for (uint32_t len : { 200u, 1000u, 4000u, 4096u }) {
		for (unsigned segs : { 1u, 3u }) {
			SCOPED_TRACE(::testing::Message() << len << " bytes, segments: " << segs);
			mark_unused();
			for (uint32_t sum = 0; sum < 3 * kPayload && !HasFatalFailure(); sum += len)
				ask(len, segs);
			ASSERT_FALSE(HasFatalFailure());
			EXPECT_GT(used(), 0u);
			EXPECT_LE(used(), dialogue(len));
		}
	}
}

TEST_P(Walk, ADialogueOfWritesStaysAtTheBeginning)
{
	constexpr uint32_t kLen = 1000;

	mark_unused();
	for (uint32_t sum = 0; sum < 3 * kPayload; sum += kLen) {
		receive(0, 1, to.data() + 4 * kMost, kAnswer);
		receive(1, 0, to.data() + 4 * kMost, kAnswer);
		send(0, build(2, VIP_CONTROL_OP_RDMAWRITE, from.data(), kLen, from_handle));
		send(0, build(4, 0, from.data(), kAnswer, from_handle));
		settle();
		send(1, build(3, 0, from.data(), kAnswer, from_handle));
		settle();
		expect_received(0);
		expect_received(1);
		expect_done(0);
		expect_done(0);
		expect_done(1);
		ASSERT_FALSE(HasFatalFailure());
	}
	EXPECT_GT(used(), 0u);
	EXPECT_LE(used(), dialogue(kLen));
}

// Whether or not the peer consumes each message before the next is sent, and although it answers from time to time.
TEST_P(Walk, AStreamGoesThroughAll)
{
	struct {
		uint32_t len;
		unsigned run;
		bool answers;
	} const streams[] = {
		{ 4000, 1, false }, { 4200, 1, true }, { 4000, 50, true }, { 1000, 50, true }
	};

	for (const auto &s : streams) {
		SCOPED_TRACE(::testing::Message()
			     << s.run << " of " << s.len << " bytes at a time");
		mark_unused();
		for (uint32_t sum = 0; sum < 2 * kPayload; sum += s.run * s.len) {
			for (unsigned i = 0; i < s.run; i++)
				receive(1, i, to.data(), s.len);
			for (unsigned i = 0; i < s.run; i++)
				send(0, build(s.run + i, 0, from.data(), s.len, from_handle));
			settle();
			for (unsigned i = 0; i < s.run; i++) {
				expect_received(1);
				expect_done(0);
			}
			if (s.answers)
				answer();
			ASSERT_FALSE(HasFatalFailure());
		}
		EXPECT_GT(used(), kPayload - 2 * s.len);
	}
}

// Messages without one of the peer between them are not at the start each.
TEST_P(Walk, AMessageThatAnswersNoneFollowsTheOneBefore)
{
	if (kind().demotes)
		GTEST_SKIP() << "none is at the start";
	for (unsigned i = 0; i < 3; i++)
		ask(200, 1);
	for (unsigned i = 0; i < 3; i++) {
		send_numbered(i, 200);
		settle();
		expect_numbered(i, 200);
		EXPECT_EQ(payload()[i * 256], static_cast<uint8_t>(stamp));
	}
}

// Credit for slots before the message that began at the start again takes no room away from those after it.
TEST_P(Walk, CreditForSlotsBeforeComesLate)
{
	const unsigned slots = kSlots / 4 + 1; // after so many the peer gives credit
	VIP_DESCRIPTOR *d;

	for (unsigned round = 0; round < 8; round++) {
		ask(200, 1);
		for (unsigned i = 0; i < slots; i++) {
			receive(1, 20 + i, to.data(), kAnswer);
			send(0, build(64 + i, 0, from.data(), kAnswer, from_handle));
		}
		send_numbered(0, 1500);
		for (unsigned i = 0; i < slots; i++)
			ASSERT_EQ(nvi_loop_poll_recv(loop, 1, &d), 1);
		nvi_loop_progress(loop, 0);
		send_numbered(1, 3000);
		while (nvi_loop_progress(loop, 1) > 0)
			;
		expect_received(1);
		expect_received(1);
		settle();
		for (unsigned i = 0; i < slots + 2; i++)
			expect_done(0);
		ASSERT_FALSE(HasFatalFailure());
	}
}

// Each message that goes to the start counts as a whole buffer, so the count of bytes comes to its end, after weeks:
// within a dialogue or a stream.
TEST_P(Walk, TheCountOfBytesBeginsAgain)
{
	for (uint64_t left : { 2 * kPayload, kPayload, kPayload / 2, 64u }) {
		for (unsigned asked = 0; asked < 5; asked++) {
			SCOPED_TRACE(::testing::Message()
				     << left << " bytes left, asked " << asked);
			ASSERT_EQ(nvi_loop_reconnect(loop), 0);
			nvi_loop_payload_from(loop, -left);
			for (unsigned i = 0; i < asked; i++)
				ask(200, 1);
			for (uint32_t sum = 0; sum < 4 * kPayload; sum += 2 * 30000) {
				for (unsigned i = 0; i < 2; i++)
					send_numbered(i, 30000);
				settle();
				for (unsigned i = 0; i < 2; i++)
					expect_numbered(i, 30000);
				ASSERT_FALSE(HasFatalFailure());
			}
			ask(200, 1);
		}
	}
}

// The peer has not seen the message that began at the start again when the path is lost, or it is sent while there is
// none: it goes to the place that both count for it, as do those after it.
TEST_P(Walk, APathIsLostAfterTheBufferWasBegunAgain)
{
	if (!kind().resumable)
		GTEST_SKIP() << "the connection ends with its path";
	for (uint32_t len : { 200u, 1000u, 8000u, 30000u, 60000u }) {
		for (unsigned round = 0; round < 12; round++) {
			const unsigned count = 1 + round % 3;
			const bool before = round % 2 != 0, in_slot = round / 6 != 0;

			SCOPED_TRACE(::testing::Message() << len << " bytes, round " << round);
			ask(len, 1);
			ask(1000, 1);
			ask(1000, 1);
			ASSERT_FALSE(HasFatalFailure());
			lose_path(before, [&] {
				// One that no payload belongs to, whose credit comes later.
				if (in_slot)
					send_numbered(0, kAnswer);
				for (unsigned i = 0; i < count; i++)
					send_numbered(1 + i, len);
			});
			settle();
			if (in_slot)
				expect_numbered(0, kAnswer);
			for (unsigned i = 0; i < count; i++)
				expect_numbered(1 + i, len);
			ask(len, 1);
			ASSERT_FALSE(HasFatalFailure());
		}
	}
}

} // namespace
