// SPDX-License-Identifier: BSD-2-Clause
// Answers to RDMA reads that are stored into the reader's window memory, and announced by a slot: end 1
// reads memory of end 0, which answers.
#include "place_fixture.h"

namespace {

constexpr uint32_t kRead = VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ;
constexpr size_t kShort = W_INLINE_MAX; // an answer that travels in its slot
constexpr size_t kPiece = 1 << 20;	// bytes of one run, as in nvi_answer.c
constexpr size_t kLongRead = 3 * kPiece + 12345;

class Answered : public Placed {
protected:
	VIP_DESCRIPTOR *reading(size_t n, size_t from, void *to, VIP_MEM_HANDLE handle)
	{
		VIP_DESCRIPTOR *d = &many.get()[next++ % kMany];

		std::memset(static_cast<void *>(d), 0, sizeof(*d));
		d->CS.Control = VIP_CONTROL_OP_RDMAREAD;
		d->CS.SegCount = 2;
		d->CS.Length = static_cast<VIP_UINT32>(n);
		d->DS[0].Remote.Data.Address = ours.data() + from;
		d->DS[0].Remote.Handle = our_handle;
		d->DS[1].Local.Data.Address = to;
		d->DS[1].Local.Handle = handle;
		d->DS[1].Local.Length = static_cast<VIP_UINT32>(n);
		return d;
	}

	void request(VIP_DESCRIPTOR *d)
	{
		EXPECT_EQ(nvi_loop_post_send(loop, 1, d, many_handle), 0);
	}

	// Posts a read into the window, from byte `from` of ours on.
	void read(size_t n = kBody, size_t from = 0, size_t off = 0)
	{
		request(reading(n, from, window.data + off, window.handle));
	}

	void read_elsewhere(size_t n = kBody, size_t from = 0)
	{
		request(reading(n, from, theirs, theirs_handle));
	}

	// A read into two pieces of the window, which follow each other.
	void read_in_two(size_t n, size_t from, size_t off)
	{
		VIP_DESCRIPTOR *d = build(0, VIP_CONTROL_OP_RDMAREAD, { n / 2, n - n / 2 },
					  ours.data() + from, our_handle);
		auto *seg = reinterpret_cast<VIP_DESCRIPTOR_SEGMENT *>(
			reinterpret_cast<uint8_t *>(d) + sizeof(VIP_CONTROL_SEGMENT));

		seg[1].Local.Data.Address = window.data + off;
		seg[2].Local.Data.Address = window.data + off + n / 2;
		seg[1].Local.Handle = seg[2].Local.Handle = window.handle;
		EXPECT_EQ(nvi_loop_post_send(loop, 1, d, desc_handle), 0);
	}

	// Takes the oldest read; returns its status, 0: under way.
	uint32_t outcome()
	{
		VIP_DESCRIPTOR *d = nullptr;

		return nvi_loop_send_done(loop, 1, &d) > 0 ? d->CS.Status : 0;
	}

	// Only the answering end makes progress: was the answer placed?
	bool answered_by_placing()
	{
		while (nvi_loop_progress(loop, 0) != 0)
			;
		return was_placed();
	}

	void expect_read(size_t n = kBody, size_t from = 0, size_t off = 0)
	{
		settle();
		EXPECT_EQ(outcome(), kRead);
		EXPECT_TRUE(has(window.data + off, n, from));
	}

	// Passes one answer through the payload buffer, which brings the grant.
	void meet()
	{
		read();
		EXPECT_FALSE(answered_by_placing());
		expect_read();
		ASSERT_EQ(nvi_agent_held(agent, 0), 1u);
		std::memset(window.data, 0, kWindow);
	}

	// A window and a source of several pieces.
	void lengthen()
	{
		nvi_loop_deregister(loop, ours.data(), our_handle);
		ours.resize(kLongRead);
		for (size_t i = 0; i < ours.size(); i++)
			ours[i] = static_cast<uint8_t>(i * 7 + i / 256 + 1);
		our_handle = nvi_loop_register(loop, ours.data(), ours.size());
		window.data = nvi_agent_alloc(agent, kLongRead, true, &window.handle);
		ASSERT_NE(window.data, nullptr);
		windows.push_back(window);
		read(4096);
		expect_read(4096);
	}
};

class EachWay : public Answered,
		public ::testing::WithParamInterface<std::tuple<int, const char *>> {
protected:
	void SetUp() override { start(std::get<0>(GetParam()), std::get<1>(GetParam())); }
};

// ---- answers that are placed

TEST_P(EachWay, TheSecondAnswerIsOneSlot)
{
	uint64_t slots;

	meet();
	slots = counters(0).SlotsSent;
	read(kBody, 5, 1000);
	EXPECT_TRUE(answered_by_placing());
	EXPECT_EQ(counters(0).SlotsSent, slots + 1);
	EXPECT_TRUE(has(window.data + 1000, kBody, 5));
	EXPECT_EQ(outcome(), 0u) << "its slot was not consumed yet";
	expect_read(kBody, 5, 1000);
	EXPECT_EQ(window.data[999], 0);
	EXPECT_EQ(window.data[1000 + kBody], 0);
}

// The engine of the other end would look only at the next tick, as the application polled there last.
TEST_F(Answered, ASleepingReaderRingsForItsAnswer)
{
	uint64_t rung;

	start(VIP_SERVICE_RELIABLE_DELIVERY);
	for (bool waits : { false, true }) {
		read(8); // the movement makes both ends polled
		settle();
		EXPECT_EQ(outcome(), kRead);
		rung = nvi_loop_rung(loop);
		if (waits)
			read(8);
		nvi_loop_arm(loop);
		// The reader rings for the request, and the other end rings for the answer, as the reader is armed.
		EXPECT_EQ(nvi_loop_rung(loop), rung + 2 * waits);
		settle();
		EXPECT_EQ(outcome(), waits ? kRead : 0u);
	}
}

TEST_P(EachWay, LengthsAroundTheLeast)
{
	meet();
	for (size_t n : { size_t{ 1 }, size_t{ 8 }, kShort - 1, kShort, kShort + 1, kShort + 64,
			  size_t{ 4095 }, size_t{ 4096 }, size_t{ 16384 }, kWindow - 64 }) {
		std::memset(window.data, 0, kWindow);
		read(n, 3, 33);
		EXPECT_EQ(answered_by_placing(), n > kShort) << n;
		expect_read(n, 3, 33);
		ASSERT_EQ(window.data[32], 0) << n;
		ASSERT_EQ(window.data[33 + n], 0) << n;
	}
}

TEST_P(EachWay, TheWholeWindowAndItsEdges)
{
	meet();
	read(kWindow);
	EXPECT_TRUE(answered_by_placing());
	expect_read(kWindow);
	read(kBody, 1, kWindow - kBody);
	EXPECT_TRUE(answered_by_placing());
	expect_read(kBody, 1, kWindow - kBody);
}

TEST_P(EachWay, EachWindowHasItsGrant)
{
	Window first;

	meet();
	first = window;
	window = alloc();
	read(kBody, 2);
	EXPECT_FALSE(answered_by_placing());
	expect_read(kBody, 2);
	EXPECT_EQ(nvi_agent_held(agent, 0), 2u);
	read(kBody, 3);
	EXPECT_TRUE(answered_by_placing());
	expect_read(kBody, 3);
	window = first;
	read(kBody, 4);
	EXPECT_TRUE(answered_by_placing());
	expect_read(kBody, 4);
}

TEST_P(EachWay, MoreReadsThanMayBeUnderWay)
{
	constexpr unsigned kReads = 40;
	uint64_t slots;

	meet();
	slots = counters(0).SlotsSent;
	for (unsigned i = 0; i < kReads; i++)
		read(kBody, i, i % 8 * 8192);
	settle();
	EXPECT_EQ(counters(0).SlotsSent, slots + kReads);
	for (unsigned i = 0; i < kReads; i++)
		ASSERT_EQ(outcome(), kRead) << i;
	for (unsigned i = kReads - 8; i < kReads; i++)
		EXPECT_TRUE(has(window.data + i % 8 * 8192, kBody, i)) << i;
}

// If two go to one place, the later one is there in the end.
TEST_P(EachWay, ReadsIntoOnePlace)
{
	meet();
	for (size_t n : { size_t{ 60 }, kShort + 1, size_t{ 5000 } })
		for (size_t m : { size_t{ 60 }, kShort + 1, size_t{ 5000 } })
			for (bool two : { false, true }) {
				if (two)
					read_in_two(n, 1, 0);
				else
					read(n, 1, 0);
				read(m, 2, 0);
				settle();
				ASSERT_EQ(outcome(), kRead);
				ASSERT_EQ(outcome(), kRead);
				ASSERT_TRUE(has(window.data, m, 2)) << n << " then " << m;
			}
}

TEST_P(EachWay, ReadsAndOtherMessagesInTurn)
{
	VIP_DESCRIPTOR *d = nullptr;

	meet();
	for (unsigned round = 0; round < 50; round++) {
		receive(8192);
		message(round % 2 != 0 ? kBody : 40, round);
		read(5000, round, 0);
		read(8, round, 32768);
		read_elsewhere(300, round);
		read(kShort + 1, round, 40000);
		settle();
		for (int i = 0; i < 4; i++)
			ASSERT_EQ(outcome(), kRead) << round;
		ASSERT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
		ASSERT_EQ(status(), kSent);
		ASSERT_TRUE(has(window.data, 5000, round)) << round;
		ASSERT_TRUE(has(window.data + 8192, 40, round)) << round;
		ASSERT_TRUE(has(window.data + 32768, 8, round)) << round;
		ASSERT_TRUE(has(theirs, 300, round)) << round;
		ASSERT_TRUE(has(window.data + 40000, kShort + 1, round)) << round;
	}
}

TEST_P(EachWay, ALongAnswerIsStoredInPieces)
{
	uint64_t slots;

	meet();
	lengthen();
	slots = counters(0).SlotsSent;
	read(kLongRead);
	for (size_t i = 1; i < 4; i++) {
		nvi_loop_progress(loop, 0);
		nvi_loop_flush(loop);
		EXPECT_TRUE(has(window.data, i * kPiece)) << i;
		EXPECT_EQ(window.data[i * kPiece + 1], 0) << "other work comes first";
		EXPECT_EQ(counters(0).SlotsSent, slots);
	}
	EXPECT_TRUE(answered_by_placing());
	EXPECT_EQ(counters(0).SlotsSent, slots + 1);
	expect_read(kLongRead);
}

// ---- answers that wait while all threads go to sleep

class Waiting : public EachWay {
protected:
	// Fills the slots of the answering end, so that it cannot answer; the other end has taken none of them.
	void fill()
	{
		slots = counters(0).SlotsSent;
		for (unsigned i = 0; i < kSlots; i++) {
			receive(i * 64, 64);
			message(8);
		}
		ASSERT_EQ(counters(0).SlotsSent, slots + kSlots);
	}

	// An answer that will be placed waits for a slot, and credit for it came, which nobody has seen.
	void leave_credit_unseen()
	{
		fill();
		read(kBody, 0, kTo);
		nvi_loop_flush(loop);
		nvi_loop_receive(loop, 0);
		while (nvi_loop_progress(loop, 0) != 0)
			;
		ASSERT_EQ(counters(0).SlotsSent, slots + kSlots);
		ASSERT_TRUE(nvi_loop_answers(loop, 0));
		while (nvi_loop_progress(loop, 1) != 0)
			;
		nvi_loop_flush(loop);
	}

	// Threads arm, look where they are wanted and sleep, until no doorbell wakes them any more.
	void expect_answered(const uint8_t *at)
	{
		uint64_t rung;

		EXPECT_NE(nvi_loop_polled(loop), 0u) << "threads that sleep already have to wake";
		do {
			rung = nvi_loop_rung(loop);
			nvi_loop_arm(loop);
			nvi_loop_scan(loop);
		} while (nvi_loop_rung(loop) != rung);
		EXPECT_FALSE(nvi_loop_answers(loop, 0)) << "it waits for ever";
		EXPECT_EQ(outcome(), kRead);
		EXPECT_TRUE(has(at, kBody));
		nvi_loop_arm(loop);
		EXPECT_EQ(nvi_loop_polled(loop), 0u) << "nothing more is to be done";
	}

	static constexpr size_t kTo = 16384;
	uint64_t slots = 0;
};

// The thread that queued the answer found the lock for sending held, by a thread that sends nothing.
TEST_P(Waiting, AfterTheThreadThatQueuedItHasGone)
{
	read_elsewhere();
	nvi_loop_flush(loop);
	nvi_loop_receive(loop, 0);
	EXPECT_TRUE(nvi_loop_answers(loop, 0));
	expect_answered(theirs);
}

// Another thread sends the answer before the one that queued it has said that it waits.
TEST_P(Waiting, NotIfItWasSentMeanwhile)
{
	std::thread receiver;

	read_elsewhere();
	nvi_loop_flush(loop);
	nvi_loop_enter(loop, 0);
	receiver = std::thread([this] { nvi_loop_receive(loop, 0); });
	EXPECT_TRUE(eventually([this] { return nvi_loop_answers(loop, 0) != 0; }));
	nvi_loop_send(loop, 0);
	EXPECT_FALSE(nvi_loop_answers(loop, 0));
	nvi_loop_leave(loop, 0);
	receiver.join();
	expect_answered(theirs);
}

// A thread that waits until all is consumed takes the credit in.
TEST_P(Waiting, ForCreditThatAFlushTakesIn)
{
	meet();
	leave_credit_unseen();
	nvi_loop_drained(loop, 0);
	expect_answered(window.data + kTo);
}

// A write that is stored directly takes the credit in, and needs none of it.  At reliable reception it waits itself.
TEST_P(Waiting, ForCreditThatAWriteTakesIn)
{
	meet();
	warm(window);
	leave_credit_unseen();
	write(window, 8192, 100);
	EXPECT_EQ(counters(0).SlotsSent, slots + kSlots) << "the write is in no slot";
	expect_answered(window.data + kTo);
	EXPECT_TRUE(landed(window, 8192, 100));
}

// The order of bytes is that of this connection: slots of the one before do not count.
TEST_P(Waiting, NotForSlotsOfTheConnectionBefore)
{
	meet();
	for (int i = 0; i < 5; i++) {
		read_elsewhere();
		settle();
		EXPECT_EQ(outcome(), kRead);
	}
	nvi_agent_thread(agent);
	ASSERT_EQ(nvi_agent_reconnect(agent), 0);
	receive();
	message();
	EXPECT_TRUE(eventually([this] {
		nvi_loop_progress(loop, 0);
		nvi_loop_progress(loop, 1);
		return nvi_agent_held(agent, 0) == 1;
	}));
	EXPECT_EQ(received(), kBody);
	read(kBody, 0, kTo);
	expect_answered(window.data + kTo);
}

// ---- answers that are not placed

TEST_P(EachWay, OrdinaryMemory)
{
	meet();
	read_elsewhere();
	EXPECT_FALSE(answered_by_placing());
	settle();
	EXPECT_EQ(outcome(), kRead);
	EXPECT_TRUE(has(theirs, kBody));
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_ASK), 1u) << "there was nothing to ask for";
}

TEST_P(EachWay, TwoSegments)
{
	meet();
	read_in_two(kBody, 3, 100);
	EXPECT_FALSE(answered_by_placing());
	expect_read(kBody, 3, 100);
}

TEST_P(EachWay, MemoryThatThePeerMayNotWrite)
{
	meet();
	window = alloc(false);
	read();
	EXPECT_FALSE(answered_by_placing());
	expect_read();
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_ASK), 1u);
}

TEST_P(EachWay, PastTheEndOfTheWindow)
{
	meet();
	read(kBody, 0, kWindow - kBody + 1);
	settle();
	EXPECT_EQ(outcome(), kRead | VIP_STATUS_PROTECTION_ERROR);
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
}

// ---- order

// The bytes of the previous answer lie in the payload buffer, and its reader has sent a request already.
TEST_P(EachWay, BehindAnAnswerThroughSlots)
{
	uint64_t slots;

	read(kBody, 1);
	while (nvi_loop_progress(loop, 0) != 0)
		;
	while (nvi_agent_step(agent) != 0)
		;
	ASSERT_EQ(nvi_agent_held(agent, 0), 1u);
	read(kBody, 2);
	slots = counters(0).SlotsSent;
	while (nvi_loop_progress(loop, 0) != 0)
		;
	EXPECT_EQ(counters(0).SlotsSent, slots) << "it waits for credit";
	nvi_loop_progress(loop, 1);
	nvi_loop_flush(loop);
	EXPECT_EQ(outcome(), kRead);
	EXPECT_TRUE(has(window.data, kBody, 1));
	EXPECT_TRUE(answered_by_placing());
	EXPECT_EQ(counters(0).SlotsSent, slots + 1);
	expect_read(kBody, 2);
}

// No credit has come for it, but the request shows that its answer was consumed.
TEST_P(EachWay, BehindAShortAnswerThatWasConsumed)
{
	meet();
	for (int i = 0; i < 20; i++) {
		read(8, 0, 0);
		settle();
		EXPECT_EQ(outcome(), kRead);
		read(kBody, 1, 0);
		EXPECT_TRUE(answered_by_placing()) << i;
		expect_read(kBody, 1, 0);
	}
}

TEST_P(EachWay, BehindAShortAnswerThatWasNotConsumed)
{
	meet();
	read(60, 1, 0);
	read(200, 2, 0);
	EXPECT_FALSE(answered_by_placing());
	settle();
	EXPECT_EQ(outcome(), kRead);
	EXPECT_EQ(outcome(), kRead);
	EXPECT_TRUE(has(window.data, 200, 2));
}

// A write of the answering end, on its way through a slot, may be for the same memory.
TEST_P(EachWay, BehindAWriteOfTheAnsweringEnd)
{
	meet();
	receive_elsewhere(64);
	message(4);
	write(window, 0, 200);
	read(kBody, 7);
	while (nvi_loop_progress(loop, 0) != 0)
		;
	settle();
	EXPECT_EQ(outcome(), kRead);
	EXPECT_TRUE(has(window.data, kBody, 7));
}

TEST_P(EachWay, AFencedMessageIsBehindIt)
{
	VIP_DESCRIPTOR *d;

	meet();
	read(kBody, 9, 0);
	d = plain(window.data, window.handle, kBody);
	d->CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_QFENCE;
	request(d);
	VIP_DESCRIPTOR *r = plain(theirs, theirs_handle, kBody);
	EXPECT_EQ(nvi_loop_post_recv(loop, 0, r, many_handle), 0);
	settle();
	EXPECT_EQ(outcome(), kRead);
	EXPECT_EQ(outcome(), kSent);
	EXPECT_EQ(nvi_loop_recv_done(loop, 0, &d), 1);
	EXPECT_TRUE(has(theirs, kBody, 9)) << "the send has what was read";
}

// ---- rights that end

TEST_P(EachWay, MemoryThatIsFreedMeanwhile)
{
	meet();
	read();
	EXPECT_TRUE(answered_by_placing());
	nvi_agent_thread(agent);
	free(window);
	window = {};
	EXPECT_TRUE(eventually([&] {
		nvi_loop_progress(loop, 0);
		nvi_loop_progress(loop, 1);
		return outcome() == (kRead | VIP_STATUS_PROTECTION_ERROR);
	}));
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
}

TEST_P(EachWay, MemoryThatIsClosedMeanwhile)
{
	meet();
	read(kBody, 1, 0);
	EXPECT_TRUE(answered_by_placing());
	read(kBody, 2, 8192);
	nvi_agent_thread(agent);
	ASSERT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, false), 0);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	for (size_t from : { 1, 2 }) {
		EXPECT_TRUE(eventually([&] {
			nvi_loop_progress(loop, 0);
			nvi_loop_progress(loop, 1);
			return outcome() == kRead;
		}));
		EXPECT_TRUE(has(window.data + (from - 1) * 8192, kBody, from));
	}
}

// Some of its pieces were stored: it begins again, through slots.
TEST_P(EachWay, MemoryThatIsClosedBetweenTwoPieces)
{
	meet();
	lengthen();
	read(kLongRead);
	nvi_loop_progress(loop, 0);
	nvi_loop_progress(loop, 0);
	nvi_agent_thread(agent);
	ASSERT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, false), 0);
	std::memset(window.data, 0, kLongRead);
	EXPECT_TRUE(eventually([&] {
		nvi_loop_progress(loop, 0);
		nvi_loop_progress(loop, 1);
		return outcome() == kRead;
	}));
	EXPECT_TRUE(has(window.data, kLongRead));
}

TEST_P(EachWay, ASourceThatGoesBetweenTwoPieces)
{
	meet();
	lengthen();
	read(kLongRead);
	nvi_loop_progress(loop, 0);
	nvi_loop_deregister(loop, ours.data(), our_handle);
	settle();
	EXPECT_EQ(outcome(), kRead | VIP_STATUS_RDMA_PROT_ERROR);
	EXPECT_EQ(counters(0).ProtectionErrors, 1u);
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_ERROR);
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
	our_handle = nvi_loop_register(loop, ours.data(), ours.size());
}

// ---- actions of no correct peer

class Hostile : public EachWay {
protected:
	// Publishes a slot after those of end `from`.
	void forge(int from, uint8_t op, uint8_t flags, uint32_t frag, const void *data = nullptr)
	{
		uint64_t len, n = counters(from).SlotsSent + forged++;
		auto *slot = reinterpret_cast<w_slot *>(nvi_loop_inbound(loop, 1 - from, &len) +
							W_SLICE_FIFO) +
			     n % kSlots;

		nvi_loop_flush(loop);
		std::memset(slot->data, 0, sizeof(slot->data));
		if (data != nullptr)
			std::memcpy(slot->data, data, frag);
		slot->head.op = op;
		slot->head.flags = flags;
		slot->head.reserved = 0;
		slot->head.arg = 0;
		slot->head.frag = frag;
		__atomic_store_n(&slot->head.seq, w_seq(static_cast<uint32_t>(n)),
				 __ATOMIC_RELEASE);
		nvi_loop_progress(loop, 1 - from);
	}

	void placed(uint32_t length) { forge(0, W_OP_READ_RESP, kWhole, length); }

	void expect_refused()
	{
		EXPECT_EQ(counters(1).ProtocolErrors, 1u);
		EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
	}

	uint64_t forged = 0;
	static constexpr uint8_t kWhole = W_F_FIRST | W_F_LAST | W_F_PLACED;
};

TEST_P(Hostile, WithoutARead)
{
	placed(kBody);
	expect_refused();
}

TEST_P(Hostile, OfAReadThatWasNotOffered)
{
	read_elsewhere();
	placed(kBody);
	expect_refused();
	EXPECT_EQ(outcome(), kRead | VIP_STATUS_TRANSPORT_ERROR | VIP_STATUS_PARTIAL_ERROR);
}

TEST_P(Hostile, OfAShortRead)
{
	read(kShort);
	placed(kShort);
	expect_refused();
}

TEST_P(Hostile, OfAReadIntoTwoSegments)
{
	read_in_two(kBody, 0, 0);
	placed(kBody);
	expect_refused();
}

TEST_P(Hostile, OfAReadBehindOneThatWasOffered)
{
	read();
	read_elsewhere();
	placed(kBody);
	EXPECT_EQ(outcome(), kRead) << "the peer may leave there what it wants";
	placed(kBody);
	expect_refused();
}

TEST_P(Hostile, OfAnotherLength)
{
	read();
	placed(kBody - 1);
	expect_refused();
}

TEST_P(Hostile, Twice)
{
	read();
	placed(kBody);
	EXPECT_EQ(outcome(), kRead);
	placed(kBody);
	expect_refused();
}

// Its place in the table of reads was used by an earlier read, which was offered.
TEST_P(Hostile, OfAReadWhosePlaceHadAnOffer)
{
	meet();
	for (int i = 0; i < 16; i++) {
		read();
		expect_read();
	}
	read_elsewhere();
	placed(kBody);
	expect_refused();
}

// The memory that the descriptor names now must be the memory that was offered.
TEST_P(Hostile, OfADescriptorThatWasChanged)
{
	VIP_DESCRIPTOR *d = reading(kBody, 0, window.data, window.handle);
	uint8_t other[64];
	VIP_MEM_HANDLE handle;

	request(d);
	d->DS[1].Local.Data.Address = window.data + 8192;
	// Something is deregistered: from now on descriptors are read again.
	handle = nvi_loop_register(loop, other, sizeof(other));
	nvi_loop_deregister(loop, other, handle);
	placed(kBody);
	EXPECT_EQ(outcome(), kRead | VIP_STATUS_PROTECTION_ERROR);
}

// Offers come from the peer: they may name memory that was never granted, or more than was granted.
TEST_P(Hostile, OffersOfOtherMemory)
{
	const auto base = reinterpret_cast<uintptr_t>(window.data);
	w_offer bad[] = {
		{ reinterpret_cast<uintptr_t>(theirs), static_cast<uint32_t>(window.handle), 0 },
		{ base - 1, static_cast<uint32_t>(window.handle), 0 },
		{ base + kWindow - kBody + 1, static_cast<uint32_t>(window.handle), 0 },
		{ UINT64_MAX, static_cast<uint32_t>(window.handle), 0 },
		{ UINT64_MAX - kBody + 1, static_cast<uint32_t>(window.handle), 0 },
		{ base, 0, 0 },
		{ base, UINT32_MAX, 0 },
		{ reinterpret_cast<uintptr_t>(theirs), static_cast<uint32_t>(theirs_handle), 0 },
	};
	uint64_t len;

	meet();
	for (w_offer &offer : bad) {
		w_slot *slots =
			reinterpret_cast<w_slot *>(nvi_loop_inbound(loop, 0, &len) + W_SLICE_FIFO);

		std::memset(theirs, 0, sizeof(theirs));
		read(kBody, 4);
		nvi_loop_flush(loop);
		std::memcpy(slots[(counters(1).SlotsSent - 1) % kSlots].data + sizeof(w_rdma),
			    &offer, sizeof(offer));
		EXPECT_FALSE(answered_by_placing());
		expect_read(kBody, 4);
		for (uint8_t byte : theirs)
			ASSERT_EQ(byte, 0);
	}
}

// This harms only the order of bytes in the memory of the end that does it.
TEST_P(Hostile, OffersThatTellMoreThanWasConsumed)
{
	uint64_t len;

	meet();
	for (uint32_t consumed : { 0u, 1u, 1000u, 0x7fffffffu, 0x80000000u, 0xffffffffu }) {
		w_slot *slots =
			reinterpret_cast<w_slot *>(nvi_loop_inbound(loop, 0, &len) + W_SLICE_FIFO);

		read(60, 1, 8192);
		read(kBody, 2, 0);
		nvi_loop_flush(loop);
		std::memcpy(slots[(counters(1).SlotsSent - 1) % kSlots].data + sizeof(w_rdma) +
				    offsetof(w_offer, consumed),
			    &consumed, sizeof(consumed));
		settle();
		EXPECT_EQ(outcome(), kRead);
		expect_read(kBody, 2, 0);
		EXPECT_TRUE(has(window.data + 8192, 60, 1));
	}
	EXPECT_EQ(counters(0).ProtocolErrors, 0u);
}

std::string Name(const ::testing::TestParamInfo<std::tuple<int, const char *>> &info)
{
	int level = std::get<0>(info.param);
	std::string name = level == VIP_SERVICE_RELIABLE_DELIVERY ? "delivery" : "reception";

	name += std::string("_") + std::get<1>(info.param);
	for (char &c : name)
		if (c == '+')
			c = '_';
	return name;
}

const auto kWays = ::testing::Combine(::testing::Values(VIP_SERVICE_RELIABLE_DELIVERY,
							VIP_SERVICE_RELIABLE_RECEPTION),
				      ::testing::Values("emu", "emu+strict", "emu+model"));

INSTANTIATE_TEST_SUITE_P(Levels, EachWay, kWays, Name);
INSTANTIATE_TEST_SUITE_P(Levels, Hostile, kWays, Name);
INSTANTIATE_TEST_SUITE_P(Levels, Waiting, kWays, Name);

// ---- connections that continue over another path

class Resumed : public Answered, public ::testing::WithParamInterface<int> {
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
};

// The slot was lost with the path, the bytes were not.
TEST_P(Resumed, TheSlotAloneIsPublishedAgain)
{
	std::vector<uint8_t> before = ours;

	read(kBody, 1, 0);
	read(kBody, 2, 8192);
	EXPECT_TRUE(answered_by_placing());
	std::memset(ours.data(), 0xee, kOurs);
	lose_and_find();
	settle();
	EXPECT_EQ(outcome(), kRead);
	EXPECT_EQ(outcome(), kRead);
	std::memcpy(ours.data(), before.data(), kOurs);
	EXPECT_TRUE(has(window.data, kBody, 1));
	EXPECT_TRUE(has(window.data + 8192, kBody, 2));
}

TEST_P(Resumed, BytesThatTheLinkSwallowedGoThroughSlots)
{
	read(kBody, 1, 0);
	nvi_loop_flush(loop);
	nvi_loop_link(loop, 0);
	while (nvi_loop_progress(loop, 0) != 0)
		;
	EXPECT_FALSE(has(window.data, kBody, 1));
	lose_and_find();
	expect_read(kBody, 1, 0);
}

// When the path is lost, the request is lost, or has come; the answer is queued, or under way.
TEST_P(Resumed, ALongAnswerIsUnderWay)
{
	lengthen();
	for (int steps = 0; steps < 6; steps++) {
		std::memset(window.data, 0, kLongRead);
		read(kLongRead);
		for (int i = 0; i < steps; i++)
			nvi_loop_progress(loop, 0);
		if (steps % 2 != 0)
			nvi_loop_link(loop, 0);
		lose_and_find();
		expect_read(kLongRead);
	}
}

TEST_P(Resumed, TheGrantIsAskedForAgain)
{
	uint32_t asked = nvi_agent_sent(agent, W_GRANT_ASK);

	lose_and_find();
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	read(kBody, 1);
	EXPECT_FALSE(answered_by_placing());
	expect_read(kBody, 1);
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_ASK), asked + 1);
	read(kBody, 2);
	EXPECT_TRUE(answered_by_placing());
	expect_read(kBody, 2);
}

TEST_P(Resumed, AFewTimes)
{
	for (size_t round = 0; round < 20; round++) {
		read(kBody, round, 0);
		read(60, round + 1, 8192);
		read(kShort + 1, round + 2, 16384);
		if (round % 3 == 0)
			nvi_loop_progress(loop, 0);
		if (round % 3 == 1)
			settle();
		read(kBody, round + 3, 24576);
		lose_and_find();
		settle();
		for (int i = 0; i < 4; i++)
			ASSERT_EQ(outcome(), kRead) << round;
		ASSERT_TRUE(has(window.data, kBody, round));
		ASSERT_TRUE(has(window.data + 8192, 60, round + 1));
		ASSERT_TRUE(has(window.data + 16384, kShort + 1, round + 2));
		ASSERT_TRUE(has(window.data + 24576, kBody, round + 3));
	}
}

INSTANTIATE_TEST_SUITE_P(Levels, Resumed,
			 ::testing::Values(VIP_SERVICE_RELIABLE_DELIVERY,
					   VIP_SERVICE_RELIABLE_RECEPTION));

} // namespace
