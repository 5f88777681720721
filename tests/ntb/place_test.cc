// SPDX-License-Identifier: BSD-2-Clause
// Messages that are stored into receives in window memory, and announced by a slot.
#include "place_fixture.h"

namespace {

class EachWay : public Placed, public ::testing::WithParamInterface<std::tuple<int, const char *>> {
protected:
	void SetUp() override { start(std::get<0>(GetParam()), std::get<1>(GetParam())); }
};

// ---- messages that are placed

TEST_P(EachWay, TheSecondSendIsOneSlot)
{
	VIPX_COUNTERS c;

	meet();
	receive(1000);
	c = counters(0);
	message(kBody, 5);
	EXPECT_TRUE(was_placed());
	EXPECT_EQ(counters(0).SlotsSent, c.SlotsSent + 1);
	EXPECT_EQ(counters(0).MessagesSent, c.MessagesSent + 1);
	EXPECT_EQ(counters(0).BytesSent, c.BytesSent + kBody);
	EXPECT_EQ(status() != 0, level != VIP_SERVICE_RELIABLE_RECEPTION) << "as a short send";
	nvi_loop_flush(loop);
	EXPECT_TRUE(has(window.data + 1000, kBody, 5));
	EXPECT_EQ(received(), SIZE_MAX) << "its slot was not consumed yet";
	c = counters(1);
	settle();
	EXPECT_EQ(received(), kBody);
	EXPECT_TRUE(has(window.data + 1000, kBody, 5));
	EXPECT_EQ(window.data[999], 0);
	EXPECT_EQ(window.data[1000 + kBody], 0);
	EXPECT_EQ(counters(1).MessagesReceived, c.MessagesReceived + 1);
	EXPECT_EQ(counters(1).BytesReceived, c.BytesReceived + kBody);
	if (level == VIP_SERVICE_RELIABLE_RECEPTION) {
		EXPECT_EQ(status(), kSent);
	}
}

TEST_P(EachWay, LengthsAroundTheLeastAndTheMost)
{
	meet();
	for (size_t room : { kLeast - 1, kLeast, kLeast + 1, size_t{ 9001 } })
		for (size_t n : { size_t{ 0 }, size_t{ 1 }, kLeast - 1, kLeast, kLeast + 1,
				  size_t{ 9000 }, size_t{ 9001 } }) {
			if (n > room)
				continue;
			std::memset(window.data, 0, kWindow);
			receive(64, room);
			message(n, 3);
			EXPECT_EQ(was_placed(), n >= kLeast) << n << " into " << room;
			settle();
			ASSERT_EQ(received(), n) << room;
			ASSERT_TRUE(has(window.data + 64, n, 3)) << n << " into " << room;
			ASSERT_EQ(window.data[64 + n], 0);
			ASSERT_EQ(status(), kSent);
		}
}

TEST_P(EachWay, WithImmediateData)
{
	uint32_t imm = 0;

	meet();
	receive();
	message_imm(0xfeedbeef);
	EXPECT_TRUE(was_placed());
	settle();
	EXPECT_EQ(received(kReceived | kImm, &imm), kBody);
	EXPECT_EQ(imm, 0xfeedbeefu);
	EXPECT_TRUE(has(window.data, kBody));
}

TEST_P(EachWay, SegmentsAreStoredOneAfterTheOther)
{
	meet();
	for (const std::vector<size_t> &pieces : { std::vector<size_t>{ 5000, 3, 1 },
						   { 1, 1, 5000 },
						   { 0, 100, 0, 4000 },
						   { 4096, 60 } }) {
		VIP_DESCRIPTOR *d = build(0, VIP_CONTROL_OP_SENDRECV, pieces, nullptr, 0);

		std::memset(window.data, 0, kWindow);
		receive(33);
		EXPECT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
		EXPECT_TRUE(was_placed());
		settle();
		ASSERT_EQ(received(), d->CS.Length);
		EXPECT_TRUE(has(window.data + 33, d->CS.Length));
		EXPECT_EQ(window.data[33 + d->CS.Length], 0);
		EXPECT_EQ(status(), kSent);
	}
}

TEST_P(EachWay, ReceivesPostedBeforeTheConnection)
{
	using Me = std::remove_pointer_t<decltype(this)>;
	auto post_two = [](void *arg) {
		auto *me = static_cast<Me *>(arg);

		me->receive(0);
		me->receive(8192);
	};

	ASSERT_EQ(nvi_agent_reconnect_after(agent, post_two, this), 0);
	EXPECT_EQ(adverts()[0].tag, 1u);
	EXPECT_EQ(adverts()[1].tag, 2u);
	EXPECT_EQ(adverts()[2].tag, 0u);
	message(kBody, 1);
	settle();
	EXPECT_EQ(received(), kBody);
	EXPECT_TRUE(has(window.data, kBody, 1));
	message(kBody, 2);
	EXPECT_TRUE(was_placed());
	settle();
	EXPECT_EQ(received(), kBody);
	EXPECT_TRUE(has(window.data + 8192, kBody, 2));
}

// All of them are advertised in the end, and each message goes to its own.
TEST_P(EachWay, MoreReceivesThanAdverts)
{
	constexpr unsigned kReceives = 150, kPlaces = 10;

	meet();
	for (unsigned i = 0; i < kReceives; i++)
		receive(i % kPlaces * 6144, 6144);
	for (unsigned i = 0; i < kReceives; i++) {
		message(kBody, i);
		ASSERT_TRUE(was_placed()) << i;
		settle();
		ASSERT_EQ(received(), kBody) << i;
		ASSERT_TRUE(has(window.data + i % kPlaces * 6144, kBody, i)) << i;
		ASSERT_EQ(status(), kSent) << i;
	}
}

// Short ones take all receives that are advertised, and the long ones after them fit into a slot each.
TEST_P(EachWay, MoreReceivesThanAdvertsBehindShortMessages)
{
	VIP_DESCRIPTOR *d = nullptr;

	meet();
	for (unsigned i = 0; i < 150; i++)
		receive(i % 8 * 8192);
	for (unsigned i = 0; i < 70; i++) {
		message(4, i);
		ASSERT_EQ(nvi_loop_poll_recv(loop, 1, &d), 1) << i;
		nvi_loop_progress(loop, 0);
		ASSERT_EQ(status(), kSent) << i;
	}
	message(kLeast, 1);
	EXPECT_FALSE(was_placed());
	ASSERT_EQ(nvi_loop_poll_recv(loop, 1, &d), 1);
	EXPECT_TRUE(has(window.data + 70 % 8 * 8192, kLeast, 1));
	message(kLeast, 2);
	EXPECT_TRUE(was_placed());
	ASSERT_EQ(nvi_loop_poll_recv(loop, 1, &d), 1);
	EXPECT_TRUE(has(window.data + 71 % 8 * 8192, kLeast, 2));
}

// Short messages take receives that were advertised, without reading the adverts.
TEST_P(EachWay, ShortMessagesAreCounted)
{
	meet();
	for (unsigned round = 0; round < 200; round++) {
		for (unsigned i = 0; i < 3; i++)
			receive(i * 8192);
		message(4, round);
		message(kBody, round);
		EXPECT_TRUE(was_placed()) << round;
		message(200, round);
		settle();
		for (size_t n : { size_t{ 4 }, kBody, size_t{ 200 } }) {
			ASSERT_EQ(received(), n) << round;
			ASSERT_EQ(status(), kSent) << round;
		}
		ASSERT_TRUE(has(window.data, 4, round));
		ASSERT_TRUE(has(window.data + 8192, kBody, round)) << round;
		ASSERT_TRUE(has(window.data + 16384, 200, round));
	}
}

TEST_P(EachWay, EachMessageOfAPackedSlotIsCounted)
{
	VIP_DESCRIPTOR *all[7];
	uint64_t posted;

	meet();
	for (int round = 0; round < 3; round++) {
		uint64_t slots = counters(0).SlotsSent;

		for (unsigned i = 0; i < 7; i++)
			receive(i * 64, 8192);
		receive(16384);
		for (unsigned i = 0; i < 7; i++)
			all[i] = plain(ours.data() + i, our_handle, 9);
		ASSERT_EQ(nvi_loop_post_sends(loop, 0, all, 7, many_handle, &posted), 0);
		settle();
		EXPECT_EQ(counters(0).SlotsSent, slots + 1);
		for (unsigned i = 0; i < 7; i++) {
			EXPECT_EQ(received(), 9u);
			EXPECT_TRUE(has(window.data + i * 64, 9, i)) << i;
			EXPECT_EQ(status(), kSent);
		}
		message(kBody, 5);
		EXPECT_TRUE(was_placed()) << round;
		settle();
		EXPECT_EQ(received(), kBody);
		EXPECT_TRUE(has(window.data + 16384, kBody, 5));
		EXPECT_EQ(status(), kSent);
	}
}

TEST_P(EachWay, WindowAndOtherMemoryMixed)
{
	meet();
	for (unsigned round = 0; round < 100; round++) {
		receive(0);
		receive_elsewhere();
		receive(8192, 100);
		receive(16384);
		message(kBody, 1);
		EXPECT_TRUE(was_placed());
		message(kBody, 2);
		EXPECT_FALSE(was_placed());
		message(100, 3);
		EXPECT_FALSE(was_placed());
		message(kBody, 4);
		EXPECT_TRUE(was_placed());
		settle();
		for (size_t n : { kBody, kBody, size_t{ 100 }, kBody }) {
			ASSERT_EQ(received(), n);
			ASSERT_EQ(status(), kSent);
		}
		ASSERT_TRUE(has(window.data, kBody, 1));
		ASSERT_TRUE(has(theirs, kBody, 2));
		ASSERT_TRUE(has(window.data + 8192, 100, 3));
		ASSERT_TRUE(has(window.data + 16384, kBody, 4));
	}
}

// There are more sends than slots: the sends wait for a slot, and none takes another way.
TEST_P(EachWay, AFullFifoIsWaitedFor)
{
	constexpr unsigned kSends = 40;
	uint64_t slots;

	meet();
	get_credit();
	slots = counters(0).SlotsSent;
	for (unsigned i = 0; i < kSends; i++)
		receive(i % 8 * 8192);
	for (unsigned i = 0; i < kSends; i++)
		message(kBody, i);
	EXPECT_EQ(counters(0).SlotsSent, slots + kSlots);
	settle();
	EXPECT_EQ(counters(0).SlotsSent, slots + kSends);
	for (unsigned i = 0; i < kSends; i++) {
		ASSERT_EQ(received(), kBody) << i;
		ASSERT_EQ(status(), kSent) << i;
	}
	for (unsigned i = kSends - 8; i < kSends; i++)
		EXPECT_TRUE(has(window.data + i % 8 * 8192, kBody, i)) << i;
}

// ---- messages that are not placed

TEST_P(EachWay, TooLongIsTheErrorThatItEverWas)
{
	meet();
	receive(0, 5000);
	message(5001);
	EXPECT_FALSE(was_placed());
	settle();
	EXPECT_EQ(received(kReceived | VIP_STATUS_LENGTH_ERROR), 0u);
	if (!reliable()) {
		EXPECT_EQ(status(), kSent);
		receive();
		message();
		EXPECT_TRUE(was_placed());
		settle();
		EXPECT_EQ(received(), kBody);
	} else {
		EXPECT_EQ(status(), kSent | VIP_STATUS_REMOTE_DESC_ERROR);
		EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
	}
}

TEST_P(EachWay, MemoryThatThePeerMayNotWrite)
{
	meet();
	window = alloc(false);
	receive();
	message();
	EXPECT_FALSE(was_placed());
	settle();
	EXPECT_EQ(received(), kBody);
	EXPECT_TRUE(has(window.data, kBody));
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_ASK), 1u) << "there was nothing to ask for";
}

// An earlier write through slots may go to this memory: its bytes come first.
TEST_P(EachWay, NotBeforeTheBytesOfAWrite)
{
	Window other;

	meet();
	other = window;
	receive(0);
	window = alloc();
	write(other, 0, std::vector<size_t>{ 200 }, 1);
	// This one is direct, as all was consumed; the next has to go through a slot.
	receive(0);
	message(4);
	write(window, 0, std::vector<size_t>{ 200 }, 2);
	message(kBody, 7);
	EXPECT_FALSE(was_placed());
	settle();
	EXPECT_EQ(received(), 4u);
	EXPECT_EQ(received(), kBody);
	EXPECT_TRUE(has(window.data, kBody, 7));
}

// ---- messages without a receive, and receives without a message

TEST_P(EachWay, DroppedMessagesAreCounted)
{
	if (reliable())
		GTEST_SKIP() << "they break the connection";
	meet();
	for (unsigned round = 0; round < 70; round++) {
		message(4);
		message(200);
		message(kBody);
		EXPECT_FALSE(was_placed()) << "there is no receive";
		if (round % 2 != 0)
			write_imm(1, 0, round % 4 == 1 ? 20 : 5000);
		settle();
		receive(8192);
		message(kBody, round);
		ASSERT_TRUE(was_placed()) << round;
		settle();
		ASSERT_EQ(received(), kBody) << round;
		ASSERT_TRUE(has(window.data + 8192, kBody, round)) << round;
		while (status() != 0)
			;
	}
	EXPECT_EQ(counters(1).RecvQueueEmpty, 70u * 3 + 35u);
}

// A write that is refused takes a receive, if there is one.
TEST_P(EachWay, RefusedWritesAreCounted)
{
	if (reliable())
		GTEST_SKIP() << "they break the connection";
	meet();
	for (unsigned with_receive = 0; with_receive < 2; with_receive++) {
		if (with_receive != 0)
			receive(0);
		build(0, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, { 9000 }, theirs,
		      theirs_handle + 1);
		ASSERT_EQ(nvi_loop_post_send(loop, 0,
					     reinterpret_cast<VIP_DESCRIPTOR *>(descs.get()),
					     desc_handle),
			  0);
		settle();
		if (with_receive != 0) {
			EXPECT_EQ(received(VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE |
					   VIP_STATUS_RDMA_PROT_ERROR),
				  0u);
		}
		receive(0);
		message(kBody, 9);
		EXPECT_TRUE(was_placed());
		settle();
		EXPECT_EQ(received(), kBody);
		EXPECT_TRUE(has(window.data, kBody, 9));
	}
}

// The write is counted when it begins, and takes a receive when it ends: this one, posted in between.
TEST_P(EachWay, AReceivePostedDuringAWriteWithImmediateData)
{
	write_imm(1, 0, 50000);
	nvi_loop_progress(loop, 1);
	receive(8192);
	settle();
	EXPECT_EQ(received(kRemote), 50000u);
	EXPECT_EQ(status(), VIP_STATUS_DONE | kWrite);
	ASSERT_EQ(nvi_agent_held(agent, 0), 1u);
	get_credit();
	receive(16384);
	message(kBody, 4);
	EXPECT_TRUE(was_placed());
	settle();
	EXPECT_EQ(received(), kBody);
	EXPECT_TRUE(has(window.data + 16384, kBody, 4));
}

// ---- writes with immediate data

TEST_P(EachWay, AWriteWithImmediateDataIsOneSlot)
{
	uint64_t slots, ends;
	uint32_t imm = 0;

	meet();
	get_credit();
	for (size_t n : { 97, 1000, 4096, 20000 }) {
		receive_elsewhere(64);
		std::memset(window.data, 0, kWindow);
		slots = counters(0).SlotsSent;
		ends = counters(0).RdmaWrites;
		write_imm(static_cast<uint32_t>(n) + 7, 100, n);
		EXPECT_TRUE(was_placed()) << n;
		EXPECT_EQ(counters(0).SlotsSent, slots + 1);
		EXPECT_EQ(counters(0).RdmaWrites, ends + 1);
		settle();
		EXPECT_EQ(received(kRemote, &imm), n);
		EXPECT_EQ(imm, n + 7);
		EXPECT_TRUE(has(window.data + 100, n));
		EXPECT_EQ(window.data[99], 0);
		EXPECT_EQ(window.data[100 + n], 0);
		EXPECT_EQ(status(), VIP_STATUS_DONE | kWrite);
	}
	receive_elsewhere(64);
	write_imm(3, 100, 96);
	EXPECT_FALSE(was_placed()) << "its bytes are in the slot";
	settle();
	EXPECT_EQ(received(kRemote, &imm), 96u);
}

TEST_P(EachWay, SuchWritesAndSendsAreAStream)
{
	uint64_t slots;

	meet();
	get_credit();
	for (unsigned i = 0; i < 6; i++)
		receive(8192 * i);
	slots = counters(0).SlotsSent;
	for (unsigned i = 0; i < 3; i++) {
		write_imm(i, 57344, 5000, i);
		EXPECT_TRUE(was_placed()) << i;
		message(kBody, i);
		EXPECT_TRUE(was_placed()) << i;
	}
	EXPECT_EQ(counters(0).SlotsSent, slots + 6);
	settle();
	for (unsigned i = 0; i < 3; i++) {
		EXPECT_EQ(received(kRemote), 5000u);
		EXPECT_EQ(received(), kBody);
		EXPECT_TRUE(has(window.data + 8192 * (2 * i + 1), kBody, i));
	}
}

// Bytes of a send that still lie in the payload buffer may go to this memory.
TEST_P(EachWay, SuchAWriteIsBehindASendThroughSlots)
{
	meet();
	receive_elsewhere();
	receive_elsewhere();
	message(200);
	write_imm(5, 0, 5000);
	EXPECT_FALSE(was_placed());
	settle();
	EXPECT_EQ(received(), 200u);
	EXPECT_EQ(received(kRemote), 5000u);
	EXPECT_TRUE(has(window.data, 5000));
}

// ---- rights that end

TEST_P(EachWay, MemoryThatIsFreedMeanwhile)
{
	meet();
	receive();
	message();
	EXPECT_TRUE(was_placed());
	nvi_agent_thread(agent);
	free(window);
	window = {};
	EXPECT_TRUE(eventually([&] {
		nvi_loop_progress(loop, 0);
		nvi_loop_progress(loop, 1);
		return received(kReceived | VIP_STATUS_PROTECTION_ERROR) != SIZE_MAX;
	}));
	EXPECT_EQ(nvi_loop_state(loop, 1), reliable() ? VIP_STATE_ERROR : VIP_STATE_CONNECTED);
}

// The bytes were stored while that was allowed; later ones come through slots.
TEST_P(EachWay, MemoryThatIsClosedMeanwhile)
{
	meet();
	receive(0);
	receive(8192);
	message(kBody, 1);
	EXPECT_TRUE(was_placed());
	nvi_agent_thread(agent);
	ASSERT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, false), 0);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	message(kBody, 2);
	EXPECT_FALSE(was_placed());
	for (size_t from : { 1, 2 }) {
		EXPECT_TRUE(eventually([&] {
			nvi_loop_progress(loop, 0);
			nvi_loop_progress(loop, 1);
			return received() == kBody;
		}));
		EXPECT_TRUE(has(window.data + (from - 1) * 8192, kBody, from));
	}
}

// ---- actions of no correct peer

class Hostile : public EachWay {
protected:
	// Publishes a slot of end 0, after those that it published.
	void forge(uint8_t op, uint8_t flags, uint32_t frag, uint32_t arg = 0)
	{
		uint64_t len, n = counters(0).SlotsSent + forged++;
		auto *slot =
			reinterpret_cast<w_slot *>(nvi_loop_inbound(loop, 1, &len) + W_SLICE_FIFO) +
			n % kSlots;

		nvi_loop_flush(loop);
		std::memset(slot->data, 0, sizeof(slot->data));
		slot->head.op = op;
		slot->head.flags = flags;
		slot->head.reserved = 0;
		slot->head.arg = arg;
		slot->head.frag = frag;
		__atomic_store_n(&slot->head.seq, w_seq(static_cast<uint32_t>(n)),
				 __ATOMIC_RELEASE);
		nvi_loop_progress(loop, 1);
	}

	void expect_refused()
	{
		EXPECT_EQ(counters(1).ProtocolErrors, 1u);
		EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
	}

	uint64_t forged = 0;
	static constexpr uint8_t kWhole = W_F_FIRST | W_F_LAST | W_F_PLACED;
};

TEST_P(Hostile, WithoutAReceive)
{
	forge(W_OP_SEND, kWhole, kBody);
	expect_refused();
}

TEST_P(Hostile, IntoAReceiveThatWasNotAdvertised)
{
	receive_elsewhere();
	forge(W_OP_SEND, kWhole, kBody);
	expect_refused();
}

TEST_P(Hostile, IntoOneOfTheConnectionBefore)
{
	// As many as the queue then has room for: the next overwrites the first.
	for (unsigned i = 0; i < kMany; i++)
		receive();
	ASSERT_EQ(nvi_agent_reconnect(agent), 0);
	while (received(kReceived | VIP_STATUS_DESC_FLUSHED_ERROR) != SIZE_MAX)
		;
	forged = 0 - counters(0).SlotsSent;
	receive_elsewhere();
	forge(W_OP_SEND, kWhole, kBody);
	expect_refused();
}

TEST_P(Hostile, IntoOneWhosePlaceInTheQueueHadAnother)
{
	for (unsigned i = 0; i < kMany; i++) {
		receive();
		message(4);
		settle();
		ASSERT_EQ(received(), 4u);
		ASSERT_EQ(status(), kSent);
	}
	receive_elsewhere();
	forge(W_OP_SEND, kWhole, kBody);
	expect_refused();
}

TEST_P(Hostile, LongerThanTheReceive)
{
	receive(0, 5000);
	forge(W_OP_SEND, kWhole, 5001);
	EXPECT_EQ(received(kReceived | VIP_STATUS_LENGTH_ERROR), 0u);
	EXPECT_EQ(counters(1).ProtocolErrors, 0u);
	EXPECT_EQ(nvi_loop_state(loop, 1), reliable() ? VIP_STATE_ERROR : VIP_STATE_CONNECTED);
}

TEST_P(Hostile, LongerThanAnyMessage)
{
	receive();
	forge(W_OP_SEND, kWhole, UINT32_MAX);
	expect_refused();
}

TEST_P(Hostile, InTheMiddleOfAMessage)
{
	receive(0);
	receive(8192);
	forge(W_OP_SEND, W_F_FIRST, 40, 100);
	forge(W_OP_SEND, kWhole, kBody);
	expect_refused();
}

TEST_P(Hostile, PartOfAMessage)
{
	receive();
	forge(W_OP_SEND, W_F_FIRST | W_F_PLACED, kLeast, 3 * kLeast);
	expect_refused();
}

// The memory that a receive names now must be the memory that was advertised.
TEST_P(Hostile, IntoADescriptorThatWasChanged)
{
	VIP_DESCRIPTOR *d = receive();
	uint8_t other[64];
	VIP_MEM_HANDLE handle;

	d->DS[0].Local.Data.Address = window.data + 8192;
	// Something is deregistered: from now on descriptors are read again.
	handle = nvi_loop_register(loop, other, sizeof(other));
	nvi_loop_deregister(loop, other, handle);
	forge(W_OP_SEND, kWhole, kBody);
	EXPECT_EQ(received(kReceived | VIP_STATUS_PROTECTION_ERROR), 0u);
}

// Adverts come from the peer: they may name memory that was never granted, or memory that was.
TEST_P(Hostile, AdvertsOfOtherMemory)
{
	uint64_t len, tag;

	meet();
	w_advert *a;
	struct {
		uint64_t addr;
		uint32_t handle, length;
	} bad[] = {
		{ reinterpret_cast<uintptr_t>(theirs), static_cast<uint32_t>(window.handle), 8192 },
		{ reinterpret_cast<uintptr_t>(window.data) - 1,
		  static_cast<uint32_t>(window.handle), 8192 },
		{ reinterpret_cast<uintptr_t>(window.data) + kWindow - kBody + 1,
		  static_cast<uint32_t>(window.handle), 8192 },
		{ UINT64_MAX, static_cast<uint32_t>(window.handle), UINT32_MAX },
		{ reinterpret_cast<uintptr_t>(window.data), 0, 8192 },
		{ reinterpret_cast<uintptr_t>(window.data), static_cast<uint32_t>(window.handle),
		  kBody - 1 },
		{ reinterpret_cast<uintptr_t>(theirs), static_cast<uint32_t>(theirs_handle), 8192 },
	};

	for (auto &b : bad) {
		receive_elsewhere();
		tag = counters(0).MessagesSent + 1;
		a = &reinterpret_cast<w_control *>(nvi_loop_inbound(loop, 0, &len))
			     ->adverts[(tag - 1) % W_ADVERTS];
		__atomic_store_n(&a->addr, b.addr, __ATOMIC_RELAXED);
		__atomic_store_n(&a->handle, b.handle, __ATOMIC_RELAXED);
		__atomic_store_n(&a->length, b.length, __ATOMIC_RELAXED);
		__atomic_store_n(&a->tag, tag, __ATOMIC_RELEASE);
		message();
		EXPECT_FALSE(was_placed());
		settle();
		EXPECT_EQ(received(), kBody);
		EXPECT_TRUE(has(theirs, kBody));
		EXPECT_EQ(status(), kSent);
	}
}

std::string Name(const ::testing::TestParamInfo<std::tuple<int, const char *>> &info)
{
	int level = std::get<0>(info.param);
	std::string name = level == VIP_SERVICE_UNRELIABLE	    ? "unreliable"
			   : level == VIP_SERVICE_RELIABLE_DELIVERY ? "delivery"
								    : "reception";

	name += std::string("_") + std::get<1>(info.param);
	for (char &c : name)
		if (c == '+')
			c = '_';
	return name;
}

const auto kWays =
	::testing::Combine(::testing::Values(VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
					     VIP_SERVICE_RELIABLE_RECEPTION),
			   ::testing::Values("emu", "emu+strict", "emu+model"));

INSTANTIATE_TEST_SUITE_P(Levels, EachWay, kWays, Name);
INSTANTIATE_TEST_SUITE_P(Levels, Hostile, kWays, Name);

// ---- connections that continue over another path

class Resumed : public Placed, public ::testing::WithParamInterface<int> {
protected:
	void SetUp() override
	{
		start(GetParam(), "emu+fault", true);
		meet();
	}

	void lose_and_find()
	{
		ASSERT_EQ(nvi_loop_lose_path(loop), 0);
		nvi_loop_link(loop, 1);
		ASSERT_EQ(nvi_loop_find_path(loop), 0);
	}

	void expect_received(size_t at, size_t from)
	{
		settle();
		EXPECT_EQ(received(), kBody);
		EXPECT_TRUE(has(window.data + at, kBody, from));
		EXPECT_EQ(status(), kSent);
	}
};

// The slot was lost with the path, the bytes were not.
TEST_P(Resumed, TheSlotAloneIsPublishedAgain)
{
	receive(0);
	receive(8192);
	message(kBody, 1);
	message(kBody, 2);
	EXPECT_TRUE(was_placed());
	std::memset(ours.data(), 0xee, kBody); // the sends no longer need it
	if (GetParam() == VIP_SERVICE_RELIABLE_RECEPTION)
		for (size_t i = 0; i < kOurs; i++)
			ours[i] = static_cast<uint8_t>(i * 7 + i / 256 + 1);
	lose_and_find();
	for (size_t i = 0; i < kOurs; i++)
		ours[i] = static_cast<uint8_t>(i * 7 + i / 256 + 1);
	expect_received(0, 1);
	expect_received(8192, 2);
}

TEST_P(Resumed, BytesThatTheLinkSwallowedGoThroughSlots)
{
	receive(0);
	receive(8192);
	message(kBody, 1);
	nvi_loop_link(loop, 0);
	message(kBody, 2);
	EXPECT_FALSE(has(window.data + 8192, kBody, 2));
	lose_and_find();
	expect_received(0, 1);
	expect_received(8192, 2);
}

TEST_P(Resumed, AWriteToo)
{
	receive_elsewhere();
	nvi_loop_link(loop, 0);
	write_imm(77, 8192, 5000);
	lose_and_find();
	settle();
	EXPECT_EQ(received(kRemote), 5000u);
	EXPECT_TRUE(has(window.data + 8192, 5000));
	EXPECT_EQ(status(), VIP_STATUS_DONE | kWrite);
}

// Receives that were posted before the loss, while there was no path, and afterwards.
TEST_P(Resumed, ReceivesAreAdvertisedAgain)
{
	receive(0);
	receive(8192);
	ASSERT_EQ(nvi_loop_lose_path(loop), 0);
	receive(16384);
	nvi_loop_link(loop, 1);
	ASSERT_EQ(nvi_loop_find_path(loop), 0);
	receive(24576);
	message(kBody, 1);
	EXPECT_FALSE(was_placed()) << "the grant has to be asked for again";
	expect_received(0, 1);
	for (size_t i = 1; i < 4; i++) {
		message(kBody, i + 1);
		EXPECT_TRUE(was_placed()) << i;
		expect_received(8192 * i, i + 1);
	}
}

// The agents would drop the question, and no answer would come.
TEST_P(Resumed, NoGrantIsAskedForWithoutAPath)
{
	uint32_t asked = nvi_agent_sent(agent, W_GRANT_ASK);
	w_grant late = {};

	ASSERT_EQ(nvi_loop_lose_path(loop), 0);
	receive_elsewhere(64);
	receive_elsewhere(64);
	write_imm(1, 0, 5000);
	// The late answer to an earlier question: its memory lies behind the lost link.
	late.kind = W_GRANT_GIVE;
	late.handle = window.handle;
	late.base = reinterpret_cast<uintptr_t>(window.data);
	late.length = kWindow;
	nvi_agent_deliver(agent, 0, &late, sizeof(late), nvi_agent_fd(agent, window.data));
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	nvi_agent_step(agent);
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_ASK), asked);
	nvi_loop_link(loop, 1);
	ASSERT_EQ(nvi_loop_find_path(loop), 0);
	settle();
	EXPECT_EQ(received(kRemote), 5000u);
	EXPECT_EQ(status(), VIP_STATUS_DONE | kWrite);
	write_imm(2, 8192, 5000);
	settle();
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_ASK), asked + 1);
	EXPECT_EQ(received(kRemote), 5000u);
	EXPECT_EQ(nvi_agent_held(agent, 0), 1u);
}

// A process tells its agent only afterwards that it continues on the new path.
TEST_P(Resumed, NoGrantIsAskedForBeforeThePathIsConfirmed)
{
	uint32_t asked = nvi_agent_sent(agent, W_GRANT_ASK);

	// So many that the last one cannot begin before the peer has given credit.
	for (unsigned i = 0; i < kSlots + 2; i++)
		receive(i % 8 * 8192);
	ASSERT_EQ(nvi_loop_lose_path(loop), 0);
	for (unsigned i = 0; i < kSlots + 2; i++)
		message(i < kSlots ? 200 : kBody, i);
	nvi_loop_link(loop, 1);
	ASSERT_EQ(nvi_loop_resume(loop), 0);
	settle();
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_ASK), asked);
	nvi_loop_confirm(loop);
	for (unsigned i = 0; i < kSlots + 2; i++) {
		EXPECT_EQ(received(), i < kSlots ? 200 : kBody) << i;
		EXPECT_EQ(status(), kSent) << i;
	}
	receive(0);
	message(kBody, 1);
	expect_received(0, 1);
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_ASK), asked + 1);
	receive(8192);
	message(kBody, 2);
	EXPECT_TRUE(was_placed());
	expect_received(8192, 2);
}

TEST_P(Resumed, AFewTimes)
{
	for (size_t round = 0; round < 20; round++) {
		receive(0);
		receive(8192);
		message(kBody, round);
		settle();
		message(kBody, round + 1);
		lose_and_find();
		expect_received(0, round);
		expect_received(8192, round + 1);
	}
}

INSTANTIATE_TEST_SUITE_P(Levels, Resumed,
			 ::testing::Values(VIP_SERVICE_RELIABLE_DELIVERY,
					   VIP_SERVICE_RELIABLE_RECEPTION));

} // namespace
