/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that the sender stores into their receives: all rules of a message hold, and the memory is
 * belongs to the program from the completion on.
 */
#include "placing.h"

using namespace conf;

namespace {

constexpr size_t kRoom = 1u << 19;

std::string rule(const std::string &what, const Level &level, Kind kind)
{
	return "vipl_ext VipxAllocMem: " + what + ", " + name_of(kind) + ", " + level.name;
}

const Kind kKinds[] = { Kind::kWindow, Kind::kAdopted };

} // namespace

TEST(Placed, Lengths)
{
	constexpr size_t most = 4u << 20;
	LinkOptions o;
	o.max_transfer = most;
	o.arena = 2 * most;
	for (auto &level : levels())
		for (Kind kind : kKinds) {
			RULE(rule("a message goes to its receive, whole and into nothing else",
				  level, kind));
			Link l(level.value, o);
			Room room(l.nb, kind, most + 4096);
			Sender s(l, most);
			unsigned turn = 0;
			ASSERT_TRUE(s.warm(room));
			for (size_t n : { size_t{ 0 }, size_t{ 1 }, size_t{ 4095 }, size_t{ 4096 },
					  size_t{ 4097 }, size_t{ 8192 }, size_t{ 20000 },
					  kManySlots, (size_t{ 1 } << 20) + 1, most })
				for (size_t more : { 0, 100 }) {
					Target to(room, n % 61, n + more);
					std::optional<VIP_UINT32> imm;
					if (++turn % 2)
						imm = turn;
					uint64_t slots = s.pass(s.receive({ to.seg }), n, imm);
					EXPECT_TRUE(to.holds(n, s.seed)) << n;
					EXPECT_TRUE(same(to.at() + n, 0, 77));
					if (n >= kManySlots)
						EXPECT_EQ(places() && room.is_window(), slots == 1)
							<< n << " bytes took " << slots << " slots";
				}
		}
}

TEST(Placed, ReceivesThatAreNotStoredInto)
{
	for (auto &level : levels()) {
		RULE(rule("only receives of one segment in memory open to writes are stored into",
			  level, Kind::kOrdinary));
		Link l(level.value);
		Room open(l.nb, Kind::kWindow, kRoom), closed(l.nb, Kind::kWindow, kRoom, false);
		Room ordinary(l.nb, Kind::kOrdinary, kRoom);
		Sender s(l, kRoom);
		ASSERT_TRUE(s.warm(open));
		EXPECT_FALSE(s.placed(closed));
		EXPECT_FALSE(s.placed(ordinary));
		Target one(open, 0, 30000), two(open, 40000, 30000);
		EXPECT_LT(1u, s.pass(s.receive({ one.seg, two.seg }), 60000));
		EXPECT_TRUE(one.holds(0, 0));
		EXPECT_TRUE(two.holds(0, 0));
		EXPECT_EQ(0, memcmp(one.at(), s.out.p, 30000));
		EXPECT_EQ(0, memcmp(two.at(), static_cast<char *>(s.out.p) + 30000, 30000));
		EXPECT_EQ(places(), s.placed(open)) << "as before";
	}
}

TEST(Placed, ViThatIsClosedToWrites)
{
	for (auto &level : levels()) {
		RULE(rule("the memory of a VI without EnableRdmaWrite is not stored into", level,
			  Kind::kWindow));
		LinkOptions o;
		o.enable_write = false;
		Link l(level.value, o);
		Room room(l.nb, Kind::kWindow, kRoom);
		Sender s(l, kRoom);
		for (int i = 0; i < 20; i++)
			EXPECT_FALSE(s.placed(room));
	}
}

TEST(Placed, MessageTooLongForTheReceive)
{
	for (auto &level : levels())
		for (Kind kind : kKinds)
			for (size_t n : { size_t{ 4097 }, size_t{ 100000 } }) {
				RULE(rule("a message longer than its receive is an error", level,
					  kind));
				Link l(level.value);
				Room room(l.nb, kind, kRoom);
				Sender s(l, kRoom);
				ASSERT_TRUE(s.warm(room));
				Target to(room, 0, n - 1);
				VIP_DESCRIPTOR *recv = s.receive({ to.seg });
				VIP_DESCRIPTOR *send = s.post(n);
				ASSERT_EQ(recv, take_recv(*l.vb));
				EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_RECEIVE |
								     VIP_STATUS_LENGTH_ERROR));
				EXPECT_TRUE(to.holds(n - 1, 77)) << "nothing was stored";
				ASSERT_EQ(send, take_send(*l.va));
				if (level.value == VIP_SERVICE_RELIABLE_RECEPTION)
					EXPECT_TRUE(has_error(send, VIP_STATUS_REMOTE_DESC_ERROR));
				EXPECT_TRUE(level.reliable() ? l.broken() : l.unbroken());
				if (!level.reliable())
					EXPECT_TRUE(s.warm(room)) << "the numbers still agree";
			}
}

TEST(Placed, MessagesWithoutAReceive)
{
	RULE("VIPL 2: unreliable messages without a receive are dropped, and the next goes to its own");
	Link l(VIP_SERVICE_UNRELIABLE);
	Room room(l.nb, Kind::kWindow, kRoom);
	Sender s(l, kRoom);
	VIPX_COUNTERS c{};
	c.Size = sizeof(c);
	for (uint64_t dropped = 0; dropped < 30; dropped += 3) {
		ASSERT_TRUE(s.warm(room));
		for (size_t n : { size_t{ 4 }, size_t{ 4096 }, kManySlots }) {
			VIP_DESCRIPTOR *send = s.post(n);
			EXPECT_EQ(send, take_send(*l.va));
		}
		EXPECT_TRUE(eventually([&] {
			VIP_DESCRIPTOR *none;
			VipRecvDone(*l.vb, &none);
			VipxProgress(l.nb.h);
			VipxQueryCounters(l.nb.h, *l.vb, &c);
			return c.RecvQueueEmpty == dropped + 3;
		}));
	}
	EXPECT_TRUE(s.warm(room));
}

/* ---- registrations that end --------------------------------------------------------------------- */

/* A receive that waits in memory of its own, into which messages are stored if they can be here. */
struct Waiting {
	Waiting(VIP_RELIABILITY_LEVEL level, Kind kind)
	    : l(level), room(l.nb, kind, kRoom), s(l, kRoom), warm(s.warm(room)),
	      to(room, 0, kManySlots), recv(s.receive({ to.seg }))
	{
	}
	Link l;
	Room room;
	Sender s;
	bool warm;
	Target to;
	VIP_DESCRIPTOR *recv;
};

TEST(Placed, DeregisteredWhilePosted)
{
	for (auto &level : levels())
		for (Kind kind : kKinds) {
			RULE(rule(
				"a receive whose memory was deregistered is an error, and its bytes "
				"are the program's",
				level, kind));
			Waiting w(level.value, kind);
			auto &[l, room, s, warm, to, recv] = w;
			ASSERT_TRUE(warm);
			VIP_DESCRIPTOR *next = l.recv_b(kManySlots);
			room.end();
			VIP_DESCRIPTOR *send = s.post(kManySlots);
			ASSERT_EQ(recv, take_recv(*l.vb));
			EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_RECEIVE |
							     VIP_STATUS_PROTECTION_ERROR));
			if (kind == Kind::kAdopted)
				EXPECT_TRUE(to.holds(kManySlots, 77));
			ASSERT_EQ(send, take_send(*l.va));
			if (level.value == VIP_SERVICE_RELIABLE_RECEPTION)
				EXPECT_TRUE(has_error(send, VIP_STATUS_REMOTE_DESC_ERROR));
			if (level.reliable()) {
				EXPECT_TRUE(l.broken());
				ASSERT_EQ(next, take_recv(*l.vb));
				EXPECT_TRUE(has_error(next, VIP_STATUS_DESC_FLUSHED_ERROR));
			} else {
				EXPECT_LT(1u, s.pass(next, kManySlots));
				EXPECT_TRUE(l.unbroken());
			}
		}
}

/* The message was stored before its memory was deregistered, and is taken afterwards. */
TEST(Placed, DeregisteredBetweenStoreAndReceive)
{
	if (!places())
		GTEST_SKIP() << "no message is stored";
	for (auto &level : levels())
		for (Kind kind : kKinds) {
			RULE(rule(
				"memory is the program's when its registration has ended, whatever was "
				"stored before",
				level, kind));
			Waiting w(level.value, kind);
			auto &[l, room, s, warm, to, recv] = w;
			ASSERT_TRUE(warm);
			VIP_DESCRIPTOR *send = s.post(kManySlots);
			room.end();
			if (kind == Kind::kAdopted)
				fill(to.at(), kManySlots, 5);
			ASSERT_EQ(recv, take_recv(*l.vb));
			ASSERT_EQ(send, take_send(*l.va));
			/* The engine may have received it in time. */
			if ((recv->CS.Status & VIP_STATUS_ERROR_MASK) != 0) {
				EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_RECEIVE |
								     VIP_STATUS_PROTECTION_ERROR));
				EXPECT_TRUE(level.reliable() ? l.broken() : l.unbroken());
			}
			if (kind == Kind::kAdopted)
				EXPECT_TRUE(to.holds(kManySlots, 5));
		}
}

TEST(Placed, ClosedAndOpenedAgain)
{
	for (auto &level : levels())
		for (Kind kind : kKinds) {
			RULE(rule("memory closed by VipSetMemAttributes is not stored into, and its "
				  "receives get their messages",
				  level, kind));
			Link l(level.value);
			Room room(l.nb, kind, kRoom);
			Sender s(l, kRoom);
			for (int turn = 0; turn < 3; turn++) {
				ASSERT_TRUE(s.warm(room)) << turn;
				Target one(room, 0, kManySlots),
					two(room, 2 * kManySlots, kManySlots);
				VIP_DESCRIPTOR *first = s.receive({ one.seg });
				VIP_DESCRIPTOR *second = s.receive({ two.seg });
				room.set(false);
				EXPECT_LT(1u, s.pass(first, kManySlots));
				EXPECT_TRUE(one.holds(kManySlots, s.seed));
				EXPECT_LT(1u, s.pass(second, kManySlots));
				EXPECT_TRUE(two.holds(kManySlots, s.seed));
				EXPECT_FALSE(s.placed(room));
				room.set(true);
			}
		}
}

TEST(Placed, AnotherTag)
{
	for (auto &level : levels()) {
		RULE(rule("a receive whose memory got another tag is an error", level,
			  Kind::kWindow));
		LinkOptions o;
		o.with_ptags = true;
		Link l(level.value, o);
		Room room(l.nb, Kind::kWindow, kRoom, true, l.tag_b());
		Ptag other(l.nb);
		Sender s(l, kRoom);
		ASSERT_TRUE(s.warm(room));
		Target to(room, 0, kManySlots);
		VIP_DESCRIPTOR *recv = s.receive({ to.seg });
		room.set(true, other);
		VIP_DESCRIPTOR *send = s.post(kManySlots);
		ASSERT_EQ(recv, take_recv(*l.vb));
		ASSERT_EQ(send, take_send(*l.va));
		EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_RECEIVE | VIP_STATUS_PROTECTION_ERROR));
		EXPECT_TRUE(to.holds(kManySlots, 77));
		EXPECT_TRUE(level.reliable() ? l.broken() : l.unbroken());
		room.end();
	}
}

/* ---- connections that end ------------------------------------------------------------------------ */

TEST(Placed, FlushedByADisconnect)
{
	for (auto &level : levels())
		for (int own = 0; own < 2; own++) {
			RULE(rule("receives are flushed, and nothing is stored after VipDisconnect",
				  level, Kind::kWindow));
			Link l(level.value);
			Room room(l.nb, Kind::kWindow, kRoom);
			Sender s(l, kRoom);
			/* Receives are posted before the connection, too. */
			for (int generation = 0; generation < 3; generation++) {
				ASSERT_TRUE(s.warm(room)) << generation;
				std::vector<VIP_DESCRIPTOR *> posted;
				for (size_t i = 0; i < 6; i++)
					posted.push_back(s.receive(
						{ room.seg(i * kManySlots, kManySlots) }));
				EXPECT_EQ(places(), s.pass(posted[0], kManySlots) == 1);
				EXPECT_TRUE(same(room.p, kManySlots, s.seed));
				EXPECT_RC(VIP_SUCCESS, VipDisconnect(own ? *l.vb : *l.va));
				if (!own)
					EXPECT_TRUE(l.vb->reaches(VIP_STATE_ERROR));
				for (size_t i = 1; i < 6; i++) {
					ASSERT_EQ(posted[i], take_recv(*l.vb));
					EXPECT_TRUE(has_status(
						posted[i], VIP_STATUS_OP_RECEIVE |
								   VIP_STATUS_DESC_FLUSHED_ERROR));
				}
				fill(room.p, room.length, 4);
				if (own)
					EXPECT_TRUE(l.va->reaches(VIP_STATE_ERROR));
				EXPECT_RC(VIP_SUCCESS, VipDisconnect(own ? *l.va : *l.vb));
				EXPECT_TRUE(same(room.p, room.length, 4));
				l.va->drain();
				VIP_DESCRIPTOR *recv = s.receive({ room.seg(4096, kManySlots) });
				connect(*l.va, *l.vb);
				s.pass(recv, kManySlots);
				EXPECT_TRUE(same(room.p + 4096, kManySlots, s.seed));
			}
		}
}

/* ---- many receives ------------------------------------------------------------------------------- */

/* No receive is posted until then, and messages through slots take other paths than those that are stored. */
TEST(Placed, FullQueue)
{
	constexpr size_t count = 4096, each = kManySlots;
	for (bool with_short : { false, true }) {
		RULE(rule(std::string("all messages of a full queue are stored") +
				  (with_short ? ", with short ones between" : ""),
			  levels()[1], Kind::kWindow));
		LinkOptions o;
		o.arena = 8u << 20;
		Link l(VIP_SERVICE_RELIABLE_DELIVERY, o);
		Room room(l.nb, Kind::kWindow, 8 * each);
		Sender s(l, each);
		std::vector<VIP_DESCRIPTOR *> posted;
		ASSERT_TRUE(s.warm(room));
		for (size_t i = 0; i < count; i++)
			posted.push_back(s.receive({ room.seg(i % 8 * each, each) }));
		uint64_t stored = 0, others = 0;
		for (size_t i = 0; i < count; i++) {
			bool is_short = with_short && i % 100 < 70;
			size_t n = is_short ? 4 : each;
			bool one = s.pass(posted[i], n) == 1;
			ASSERT_TRUE(same(room.p + i % 8 * each, n, s.seed)) << i;
			if (!is_short)
				(one ? stored : others)++;
		}
		if (places())
			EXPECT_LE(others, with_short ? stored / 4 : 0);
		else
			EXPECT_EQ(0u, stored);
	}
}

TEST(Placed, WritesWithImmediateData)
{
	for (auto &level : levels())
		for (Kind kind : kKinds) {
			RULE(rule("a write with immediate data is one slot, too", level, kind));
			Link l(level.value);
			Room room(l.nb, kind, kRoom);
			Seg from = l.seg_a(kRoom / 2);
			Sender s(l, kRoom);
			auto write = [&](size_t n, VIP_UINT32 imm) {
				VIP_DESCRIPTOR *recv = s.receive({ room.seg(kRoom - 8, 8) });
				uint64_t before = s.slots();
				Target to(room, 0, n);
				fill(from.p, n, imm);
				VIP_DESCRIPTOR *d = l.write_a({ { from.p, from.h, n } },
							      { to.at(), room.h },
							      VIP_CONTROL_IMMEDIATE, imm);
				EXPECT_EQ(recv, take_recv(*l.vb));
				EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_REMOTE_RDMA_WRITE |
								     VIP_STATUS_IMMEDIATE));
				EXPECT_EQ(n, recv->CS.Length);
				EXPECT_EQ(imm, recv->CS.ImmediateData);
				EXPECT_TRUE(to.holds(n, imm));
				EXPECT_EQ(d, take_send(*l.va));
				EXPECT_TRUE(has_status(d, VIP_STATUS_OP_RDMA_WRITE));
				return s.slots() - before == 1;
			};
			if (places() && room.is_window())
				ASSERT_TRUE(eventually([&] { return write(kManySlots, 7); }));
			for (size_t n :
			     { size_t{ 1 }, size_t{ 100 }, size_t{ 4096 }, kManySlots }) {
				bool one = write(n, static_cast<VIP_UINT32>(n));
				if (n >= kManySlots)
					EXPECT_EQ(places() && room.is_window(), one) << n;
			}
			EXPECT_TRUE(l.unbroken());
		}
}
