// SPDX-License-Identifier: BSD-2-Clause
// Several short sends in one slot: for a program each is a message of its own.
#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

extern "C" {
#include "nvi_loop.h"
#include "w_slot.h"
}

namespace {

constexpr uint32_t kDone = VIP_STATUS_DONE, kSent = kDone | VIP_STATUS_OP_SEND,
		   kReceived = kDone | VIP_STATUS_OP_RECEIVE,
		   kFlushed = VIP_STATUS_DESC_FLUSHED_ERROR;
constexpr unsigned kMany = 128, kRoom = 64, kSlots = 16;

struct Kind {
	const char *name, *port;
	bool resumable;
};

class Pack : public ::testing::Test {
protected:
	void open(int lvl, const char *port, bool resumable = false)
	{
		nvi_loop_cfg cfg = {};

		level = lvl;
		cfg.slots = kSlots;
		cfg.payload_bytes = 16384;
		cfg.level = static_cast<VIP_RELIABILITY_LEVEL>(lvl);
		cfg.port = port;
		cfg.seed = 7;
		cfg.resumable = resumable;
		loop = nvi_loop_open(&cfg);
		ASSERT_NE(loop, nullptr);
		handle = nvi_loop_register(loop, &memory, sizeof(memory));
		ASSERT_NE(handle, 0u);
		for (size_t i = 0; i < sizeof(memory.ours); i++)
			memory.ours[i] = static_cast<uint8_t>(i * 7 + i / 251);
		// The queues' caches hold the region, and the queues have room.
		receives(kMany, kRoom);
		for (unsigned i = 0; i < kMany; i++)
			post_lengths(std::vector<size_t>{ 8 });
		settle();
		expect_all(std::vector<size_t>(kMany, 8));
		begin();
	}

	void TearDown() override
	{
		if (loop == nullptr)
			return;
		nvi_loop_lose(loop, 0);
		nvi_loop_lose(loop, 1);
		nvi_loop_deregister(loop, &memory, handle);
		nvi_loop_close(loop);
	}

	// From here on descriptors and counts are those of the messages to come.
	void begin()
	{
		next_send = next_recv = taken_send = taken_recv = 0;
		nvi_loop_counters(loop, 0, &before[0]);
		nvi_loop_counters(loop, 1, &before[1]);
	}

	VIP_DESCRIPTOR *build(VIP_DESCRIPTOR *d, uint8_t *at, size_t len)
	{
		std::memset(static_cast<void *>(d), 0, sizeof(*d));
		d->CS.SegCount = 1;
		d->CS.Length = d->DS[0].Local.Length = static_cast<VIP_UINT32>(len);
		d->DS[0].Local.Data.Address = at;
		d->DS[0].Local.Handle = handle;
		return d;
	}

	uint8_t *place(unsigned i) { return memory.theirs + (i % kMany) * kRoom; }

	VIP_DESCRIPTOR *receive(size_t len)
	{
		unsigned i = next_recv++ % kMany;
		VIP_DESCRIPTOR *d = build(&memory.recvs[i], place(i), len);

		std::memset(place(i), 0xee, kRoom);
		EXPECT_EQ(nvi_loop_post_recv(loop, 1, d, handle), 0);
		return d;
	}

	void receives(unsigned count, size_t len)
	{
		while (count-- > 0)
			receive(len);
	}

	// Message i consists of the bytes from i on.
	VIP_DESCRIPTOR *message(size_t len)
	{
		unsigned i = next_send++ % kMany;

		return build(&memory.sends[i], memory.ours + i, len);
	}

	void post(const std::vector<VIP_DESCRIPTOR *> &all)
	{
		uint64_t posted = 0;

		ASSERT_EQ(nvi_loop_post_sends(loop, 0, all.data(), all.size(), handle, &posted), 0);
		ASSERT_EQ(posted, all.size());
	}

	void post_lengths(const std::vector<size_t> &lens)
	{
		std::vector<VIP_DESCRIPTOR *> all;

		for (size_t len : lens)
			all.push_back(message(len));
		post(all);
	}

	void settle() { ASSERT_LT(nvi_loop_settle(loop, 10000), 10000); }

	// Expects that the next send, or receive, is complete with this status.
	void expect_send(uint32_t status)
	{
		VIP_DESCRIPTOR *d = nullptr, *want = &memory.sends[taken_send++ % kMany];

		EXPECT_EQ(nvi_loop_send_done(loop, 0, &d), status & VIP_STATUS_ERROR_MASK ? 2 : 1);
		EXPECT_EQ(d, want);
		EXPECT_EQ(want->CS.Status, status) << "send " << taken_send - 1;
	}

	void expect_receive(size_t len, uint32_t status = kReceived)
	{
		unsigned i = taken_recv++ % kMany;
		VIP_DESCRIPTOR *d = nullptr, *want = &memory.recvs[i];

		EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), status & VIP_STATUS_ERROR_MASK ? 2 : 1);
		EXPECT_EQ(d, want);
		EXPECT_EQ(want->CS.Status, status) << "receive " << i;
		EXPECT_EQ(want->CS.Length, len);
		if (status & VIP_STATUS_ERROR_MASK)
			return;
		EXPECT_EQ(std::memcmp(place(i), memory.ours + i, len), 0) << "receive " << i;
		for (size_t n = len; n < kRoom; n++)
			EXPECT_EQ(place(i)[n], 0xee) << "behind receive " << i;
	}

	void expect_none_left()
	{
		VIP_DESCRIPTOR *d;

		EXPECT_LE(nvi_loop_send_done(loop, 0, &d), 0);
		EXPECT_LE(nvi_loop_recv_done(loop, 1, &d), 0);
	}

	void expect_all(const std::vector<size_t> &lens)
	{
		for (size_t len : lens) {
			expect_send(kSent);
			expect_receive(len);
		}
		expect_none_left();
	}

	VIPX_COUNTERS counted(int end)
	{
		VIPX_COUNTERS c;

		nvi_loop_counters(loop, end, &c);
		c.SlotsSent -= before[end].SlotsSent;
		c.SlotsReceived -= before[end].SlotsReceived;
		c.MessagesSent -= before[end].MessagesSent;
		c.MessagesReceived -= before[end].MessagesReceived;
		c.BytesSent -= before[end].BytesSent;
		c.BytesReceived -= before[end].BytesReceived;
		c.SendsPosted -= before[end].SendsPosted;
		return c;
	}

	w_slot *slot(int end, uint64_t n)
	{
		uint64_t len;

		return reinterpret_cast<w_slot *>(nvi_loop_inbound(loop, end, &len) +
						  W_SLICE_FIFO) +
		       n % kSlots;
	}

	bool reliable() const { return level != VIP_SERVICE_UNRELIABLE; }

	void expect_broken()
	{
		EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_ERROR);
		EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
	}

	struct {
		alignas(64) VIP_DESCRIPTOR sends[kMany];
		VIP_DESCRIPTOR recvs[kMany];
		uint8_t ours[kMany + 8192];
		uint8_t theirs[kMany * kRoom];
	} memory;
	nvi_loop *loop = nullptr;
	VIP_MEM_HANDLE handle = 0;
	int level = 0;
	unsigned next_send = 0, next_recv = 0, taken_send = 0, taken_recv = 0;
	VIPX_COUNTERS before[2] = {};
};

class EachKind : public Pack, public ::testing::WithParamInterface<std::tuple<int, Kind>> {
protected:
	void SetUp() override
	{
		const Kind &kind = std::get<1>(GetParam());

		open(std::get<0>(GetParam()), kind.port, kind.resumable);
	}
};

// ---- sends that are packed

TEST_P(EachKind, AsManyAsFit)
{
	for (size_t len : { 1, 2, 3, 4, 5, 7, 8, 16, 17, 23, 33, 37, 48, 49, 55, 56, 57, 64 }) {
		for (unsigned count : { 2u, 3u, 5u, 12u, 13u, 28u, 29u, 40u, 112u, 113u }) {
			const unsigned most = len <= 56 ? W_INLINE_MAX / static_cast<unsigned>(len)
							: 1;
			const std::vector<size_t> lens(count, len);
			VIPX_COUNTERS c;

			SCOPED_TRACE(std::to_string(count) + " of " + std::to_string(len));
			// Sends that wait for a slot are not packed; credit comes for each quarter of the slots.
			if ((count + most - 1) / most > kSlots / 2)
				continue;
			begin();
			receives(count, len);
			post_lengths(lens);
			settle();
			expect_all(lens);
			c = counted(0);
			EXPECT_EQ(c.SlotsSent, (count + most - 1) / most);
			EXPECT_EQ(c.SendsPosted, count);
			EXPECT_EQ(c.MessagesSent, count);
			EXPECT_EQ(c.BytesSent, count * len);
			c = counted(1);
			EXPECT_EQ(c.MessagesReceived, count);
			EXPECT_EQ(c.BytesReceived, count * len);
			EXPECT_EQ(c.Dropped, 0u);
			ASSERT_FALSE(HasFailure());
		}
	}
}

TEST_P(EachKind, RunsOfOneLengthOnly)
{
	const std::vector<size_t> lens = { 4, 4, 4, 8, 8, 3, 57, 57, 4, 4, 0, 0, 4, 4 };

	receives(static_cast<unsigned>(lens.size()), kRoom);
	post_lengths(lens);
	settle();
	expect_all(lens);
	EXPECT_EQ(counted(0).SlotsSent, 9u) << "3, 2, 1, 1, 1, 2, 1, 1, 2";
}

// Sends that a slot with several messages cannot describe, or that have to wait for others, go alone.
TEST_P(EachKind, PlainOnesOnly)
{
	std::vector<VIP_DESCRIPTOR *> all;
	VIP_DESCRIPTOR *d[12];

	for (auto &one : d)
		all.push_back(one = message(4));
	d[2]->CS.Control |= VIP_CONTROL_IMMEDIATE;
	d[2]->CS.ImmediateData = 77;
	d[5]->CS.Control |= VIP_CONTROL_QFENCE;
	d[8]->CS.SegCount = 2;
	d[8]->DS[1].Local = d[8]->DS[0].Local;
	d[8]->DS[0].Local.Length = d[8]->DS[1].Local.Length = 2;
	d[8]->DS[1].Local.Data.AddressBits += 2;
	receives(12, kRoom);
	post(all);
	settle();
	for (unsigned i = 0; i < 12; i++) {
		expect_send(kSent);
		expect_receive(4, i == 2 ? kReceived | VIP_STATUS_IMMEDIATE : kReceived);
	}
	EXPECT_EQ(memory.recvs[2].CS.ImmediateData, 77u);
	expect_none_left();
}

TEST_P(EachKind, MoreThanTheFifoHolds)
{
	const std::vector<size_t> lens(kMany, 50);

	receives(kMany, kRoom);
	post_lengths(lens);
	settle();
	expect_all(lens);
	EXPECT_GE(counted(0).SlotsSent, kMany / 2);
}

TEST_P(EachKind, BehindAMessageThatWaits)
{
	VIP_DESCRIPTOR *d;

	build(&memory.recvs[0], memory.theirs, 4096);
	ASSERT_EQ(nvi_loop_post_recv(loop, 1, &memory.recvs[0], handle), 0);
	next_recv = 70;
	receives(5, kRoom);
	post_lengths({ 4096 });
	next_send = 70;
	post_lengths({ 6, 6, 6, 6, 6 });
	settle();
	EXPECT_EQ(counted(0).MessagesSent, 6u);
	expect_send(kSent);
	taken_send = 70;
	for (unsigned i = 0; i < 5; i++)
		expect_send(kSent);
	ASSERT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
	EXPECT_EQ(d->CS.Length, 4096u);
	taken_recv = 70;
	for (unsigned i = 0; i < 5; i++)
		expect_receive(6);
	expect_none_left();
}

TEST_P(EachKind, OnePollLeavesTheOthersComplete)
{
	VIP_DESCRIPTOR *d;

	receives(5, kRoom);
	post_lengths({ 4, 4, 4, 4, 4 });
	nvi_loop_flush(loop);
	ASSERT_EQ(nvi_loop_poll_recv(loop, 1, &d), 1);
	EXPECT_EQ(d, &memory.recvs[0]);
	taken_recv = 1;
	for (unsigned i = 1; i < 5; i++)
		expect_receive(4);
	settle();
	for (unsigned i = 0; i < 5; i++)
		expect_send(kSent);
	expect_none_left();
}

// ---- failures

TEST_P(EachKind, NoReceiveForTheThird)
{
	receives(2, kRoom);
	post_lengths({ 4, 4, 4, 4, 4 });
	settle();
	expect_receive(4);
	expect_receive(4);
	expect_send(kSent);
	expect_send(kSent);
	if (level == VIP_SERVICE_RELIABLE_RECEPTION) {
		expect_send(kSent | VIP_STATUS_REMOTE_DESC_ERROR);
		expect_send(kSent | kFlushed);
		expect_send(kSent | kFlushed);
	} else {
		for (unsigned i = 2; i < 5; i++)
			expect_send(kSent);
	}
	expect_none_left();
	EXPECT_EQ(counted(1).MessagesReceived, 2u);
	EXPECT_EQ(counted(1).RecvQueueEmpty, reliable() ? 1u : 3u);
	EXPECT_EQ(counted(1).Dropped, reliable() ? 1u : 3u);
	if (reliable())
		expect_broken();
}

TEST_P(EachKind, TooLongForTheThird)
{
	receives(2, kRoom);
	receive(3);
	receives(2, kRoom);
	post_lengths({ 4, 4, 4, 4, 4 });
	settle();
	expect_receive(4);
	expect_receive(4);
	expect_receive(0, kReceived | VIP_STATUS_LENGTH_ERROR);
	for (unsigned i = 3; i < 5; i++) {
		if (reliable())
			expect_receive(0, kReceived | kFlushed);
		else
			expect_receive(4);
	}
	for (unsigned i = 0; i < 5; i++)
		expect_send(level != VIP_SERVICE_RELIABLE_RECEPTION || i < 2 ? kSent
			    : i == 2 ? kSent | VIP_STATUS_REMOTE_DESC_ERROR
				     : kSent | kFlushed);
	expect_none_left();
	if (reliable())
		expect_broken();
}

// The first slot of several is consumed, the second is not.
TEST_P(EachKind, NoReceiveForTheThirtieth)
{
	receives(29, kRoom);
	post_lengths(std::vector<size_t>(40, 4));
	settle();
	for (unsigned i = 0; i < 40; i++)
		expect_send(level != VIP_SERVICE_RELIABLE_RECEPTION || i < 29 ? kSent
			    : i == 29 ? kSent | VIP_STATUS_REMOTE_DESC_ERROR
				      : kSent | kFlushed);
	for (unsigned i = 0; i < 29; i++)
		expect_receive(4);
	expect_none_left();
}

// Receives that are not plain take the slow path, and so do the others of their slot.
TEST_P(EachKind, ReceivesOfTwoSegments)
{
	for (unsigned i = 0; i < 9; i++) {
		VIP_DESCRIPTOR *d = &memory.recvs[next_recv];

		if (i % 3 != 1) {
			receive(kRoom);
			continue;
		}
		build(d, place(next_recv), 5);
		std::memset(place(next_recv), 0xee, kRoom);
		d->CS.SegCount = 2;
		d->CS.Length = 64;
		d->DS[1].Local = d->DS[0].Local;
		d->DS[1].Local.Length = 59;
		d->DS[1].Local.Data.Address = place(next_recv) + 5;
		ASSERT_EQ(nvi_loop_post_recv(loop, 1, d, handle), 0);
		next_recv++;
	}
	post_lengths(std::vector<size_t>(9, 12));
	settle();
	EXPECT_EQ(counted(0).SlotsSent, 1u);
	expect_all(std::vector<size_t>(9, 12));
}

// ---- a hostile peer

class EachLevel : public Pack, public ::testing::WithParamInterface<int> {
protected:
	void SetUp() override { open(GetParam(), "emu"); }

	void forge(uint8_t op, uint8_t flags, uint32_t arg, uint32_t frag)
	{
		w_slot *s = slot(1, before[0].SlotsSent);

		s->head.op = op;
		s->head.flags = flags;
		s->head.reserved = 0;
		s->head.arg = arg;
		s->head.frag = frag;
		__atomic_store_n(&s->head.seq, w_seq(static_cast<uint32_t>(before[0].SlotsSent)),
				 __ATOMIC_RELEASE);
	}
};

TEST_P(EachLevel, AMalformedSlotIsAProtocolError)
{
	const uint8_t whole = W_F_FIRST | W_F_LAST | W_F_PACKED;
	const struct {
		uint8_t op, flags;
		uint32_t arg, frag;
	} bad[] = {
		{ W_OP_SEND, whole, 0, 4 },
		{ W_OP_SEND, whole, 1, 4 },
		{ W_OP_SEND, whole, 29, 4 },
		{ W_OP_SEND, whole, 113, 1 },
		{ W_OP_SEND, whole, 2, 57 },
		{ W_OP_SEND, whole, 2, 0 },
		{ W_OP_SEND, whole, UINT32_MAX, 1 },
		{ W_OP_SEND, whole, 1u << 30, 4 },
		{ W_OP_SEND, whole | W_F_IMM, 2, 4 },
		{ W_OP_SEND, whole | W_F_BUFFERED, 2, 4 },
		{ W_OP_SEND, whole | W_F_PLACED, 2, 4 },
		{ W_OP_SEND, W_F_FIRST | W_F_PACKED, 2, 4 },
		{ W_OP_SEND, W_F_LAST | W_F_PACKED, 2, 4 },
		{ W_OP_WRITE, whole, 2, 4 },
		{ W_OP_READ_RESP, whole, 2, 4 },
		{ W_OP_NOP, W_F_ACK | W_F_PACKED, 0, 0 },
		{ W_OP_SEND, whole | W_F_REWOUND, 2, 4 },
		{ W_OP_SEND, W_F_FIRST | W_F_LAST | W_F_REWOUND, 0, 4 },
		{ W_OP_SEND, W_F_FIRST | W_F_LAST | W_F_REWOUND | W_F_IMM, 1, 4 },
	};
	VIP_DESCRIPTOR *d;

	for (size_t i = 0; i < std::size(bad); i++) {
		SCOPED_TRACE("slot " + std::to_string(i));
		receives(kMany / 2, kRoom);
		forge(bad[i].op, bad[i].flags, bad[i].arg, bad[i].frag);
		EXPECT_LE(nvi_loop_poll_recv(loop, 1, &d), 2);
		nvi_loop_progress(loop, 1);
		EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
		EXPECT_EQ(counted(1).MessagesReceived, 0u);
		for (unsigned n = 0; n < kMany / 2 * kRoom; n++)
			ASSERT_EQ(memory.theirs[n], 0xee);
		while (nvi_loop_recv_done(loop, 1, &d) > 0)
			EXPECT_TRUE(d->CS.Status & kFlushed);
		ASSERT_EQ(nvi_loop_reconnect(loop), 0);
		begin();
		before[0].SlotsSent = 0;
	}
}

// A report that names a message which its slot does not have.
TEST_P(EachLevel, AReportOfAMessageThatIsNot)
{
	uint64_t len;
	auto *control = reinterpret_cast<w_control *>(nvi_loop_inbound(loop, 0, &len));
	VIP_DESCRIPTOR *d;
	unsigned failed = 0, good = 0;

	post_lengths(std::vector<size_t>(40, 4));
	__atomic_store_n(&control->error,
			 w_error_word(static_cast<uint32_t>(before[0].SlotsSent), 255,
				      W_ERR_NO_DESC),
			 __ATOMIC_RELEASE);
	nvi_loop_progress(loop, 0);
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_ERROR);
	while (nvi_loop_send_done(loop, 0, &d) > 0) {
		good += d->CS.Status == kSent;
		failed += d->CS.Status == (kSent | VIP_STATUS_REMOTE_DESC_ERROR);
	}
	EXPECT_EQ(good, level == VIP_SERVICE_RELIABLE_RECEPTION ? 27u : 40u);
	EXPECT_EQ(failed, level == VIP_SERVICE_RELIABLE_RECEPTION ? 1u : 0u) << "the last of them";
}

// ---- a path that is lost

class Resumed : public Pack, public ::testing::WithParamInterface<int> {
protected:
	void SetUp() override { open(GetParam(), "emu+fault", true); }

	void lose_and_find()
	{
		ASSERT_EQ(nvi_loop_lose_path(loop), 0);
		nvi_loop_link(loop, 1);
		ASSERT_EQ(nvi_loop_find_path(loop), 0);
	}
};

TEST_P(Resumed, ASlotThatWasLostIsPublishedAgain)
{
	const std::vector<size_t> lens(60, 4);

	receives(60, kRoom);
	nvi_loop_link(loop, 0);
	post_lengths(lens);
	nvi_loop_progress(loop, 1);
	EXPECT_EQ(counted(1).MessagesReceived, 0u);
	lose_and_find();
	settle();
	expect_all(lens);
	EXPECT_EQ(counted(0).SlotsSent, 3u);
	EXPECT_EQ(counted(1).SlotsReceived, 3u);
}

TEST_P(Resumed, SendsWithoutAPath)
{
	const std::vector<size_t> lens(60, 30);

	receives(60, kRoom);
	ASSERT_EQ(nvi_loop_lose_path(loop), 0);
	post_lengths(lens);
	ASSERT_EQ(nvi_loop_find_path(loop), 0);
	settle();
	expect_all(lens);
}

std::string LevelName(int level)
{
	return level == VIP_SERVICE_UNRELIABLE		? "unreliable"
	       : level == VIP_SERVICE_RELIABLE_DELIVERY ? "delivery"
							: "reception";
}

const int kLevels[] = { VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
			VIP_SERVICE_RELIABLE_RECEPTION };

const Kind kKinds[] = { { "emu", "emu", false },
			{ "strict", "emu+strict", false },
			{ "resumable", "emu", true },
			{ "resumable_strict", "emu+strict", true } };

INSTANTIATE_TEST_SUITE_P(Kinds, EachKind,
			 ::testing::Combine(::testing::ValuesIn(kLevels),
					    ::testing::ValuesIn(kKinds)),
			 [](const auto &info) {
				 return LevelName(std::get<0>(info.param)) + "_" +
					std::get<1>(info.param).name;
			 });
INSTANTIATE_TEST_SUITE_P(Levels, EachLevel, ::testing::ValuesIn(kLevels),
			 [](const auto &info) { return LevelName(info.param); });
INSTANTIATE_TEST_SUITE_P(Levels, Resumed,
			 ::testing::Values(VIP_SERVICE_RELIABLE_DELIVERY,
					   VIP_SERVICE_RELIABLE_RECEPTION),
			 [](const auto &info) { return LevelName(info.param); });

} // namespace
