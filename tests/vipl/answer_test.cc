/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA reads into memory of all kinds: even if the peer stores the answer there itself, all rules of a read
 * hold.
 */
#include "placing.h"

using namespace conf;

namespace {

constexpr size_t kRoom = 1u << 19;

/* Side a reads memory of side b. */
struct Reader {
	Reader(Link &l, size_t most) : link(l), from(l.nb, Kind::kOrdinary, most) {}
	Remote renew(size_t n)
	{
		fill(from.p, n, ++seed);
		return { from.p, from.h };
	}
	uint64_t slots() const
	{
		VIPX_COUNTERS c{};
		c.Size = sizeof(c);
		EXPECT_RC(VIP_SUCCESS, VipxQueryCounters(link.na.h, *link.va, &c));
		return c.SlotsReceived;
	}
	/* Reads, and returns how many slots the answer took. */
	uint64_t read(const std::vector<Seg> &segs, size_t n, VIP_UINT16 flags = 0)
	{
		uint64_t before = slots();
		VIP_DESCRIPTOR *d = link.read_a(segs, renew(n), flags);
		EXPECT_EQ(d, take_send(*link.va));
		EXPECT_TRUE(has_status(d, VIP_STATUS_OP_RDMA_READ));
		EXPECT_EQ(n, d->CS.Length);
		return slots() - before;
	}
	/* Reads into these bytes of a room and checks them; returns whether the answer was stored there. */
	bool placed(Room &room, size_t off = 0, size_t n = kManySlots, VIP_UINT16 flags = 0)
	{
		Target to(room, off, n);
		bool one = read({ to.seg }, n, flags) == 1;
		EXPECT_TRUE(to.holds(n, seed));
		return one;
	}
	/* Reads until the answers are stored, if they can be here. */
	::testing::AssertionResult warm(Room &room)
	{
		if (!places() || !room.is_window() || eventually([&] { return placed(room); }))
			return ::testing::AssertionSuccess();
		return ::testing::AssertionFailure() << "no answer was stored where it goes";
	}
	Link &link;
	Room from;
	uint64_t seed = 5000;
};

std::string rule(const std::string &what, const Level &level, Kind kind)
{
	return "VIPL 5.5, vipl_ext: " + what + ", into " + name_of(kind) + ", " + level.name;
}

const Kind kKinds[] = { Kind::kWindow, Kind::kAdopted, Kind::kOrdinary };

std::vector<Level> with_reads()
{
	std::vector<Level> some;
	for (auto &level : levels())
		if (offers_read(level))
			some.push_back(level);
	return some;
}

} // namespace

TEST(Answered, Lengths)
{
	constexpr size_t most = 4u << 20;
	LinkOptions o;
	o.max_transfer = most;
	for (auto &level : with_reads())
		for (Kind kind : kKinds) {
			RULE(rule("a read puts its bytes, and changes none beside them", level,
				  kind));
			Link l(level.value, o);
			Room room(l.na, kind, most + 4096);
			Reader r(l, most);
			ASSERT_TRUE(r.warm(room));
			for (size_t n : { size_t{ 1 }, size_t{ 112 }, size_t{ 113 }, size_t{ 4095 },
					  size_t{ 4096 }, size_t{ 20000 }, kManySlots,
					  (size_t{ 1 } << 20) + 1, most }) {
				bool one = r.placed(room, n % 61, n);
				if (n >= kManySlots)
					EXPECT_EQ(places() && room.is_window(), one) << n;
			}
		}
}

TEST(Answered, ReadsThatAreNotStored)
{
	for (auto &level : with_reads()) {
		RULE(rule("only answers for one segment in memory open to writes are stored by the "
			  "peer, and the others come as well",
			  level, Kind::kOrdinary));
		Link l(level.value);
		Room open(l.na, Kind::kWindow, kRoom), closed(l.na, Kind::kWindow, kRoom, false);
		Reader r(l, kRoom);
		ASSERT_TRUE(r.warm(open));
		EXPECT_FALSE(r.placed(closed));
		Target one(open, 0, 30000), two(open, 40000, 30000);
		EXPECT_LT(1u, r.read({ one.seg, two.seg }, 60000));
		EXPECT_TRUE(one.holds(30000, r.seed));
		EXPECT_TRUE(two.holds(0, 0));
		EXPECT_EQ(0, memcmp(two.at(), r.from.p + 30000, 30000));
		EXPECT_EQ(places(), r.placed(open)) << "as before";
	}
}

TEST(Answered, FencedReads)
{
	for (auto &level : with_reads())
		for (Kind kind : kKinds) {
			RULE(rule("a read with a fence puts its bytes", level, kind));
			Link l(level.value);
			Room room(l.na, kind, kRoom);
			Reader r(l, kRoom);
			ASSERT_TRUE(r.warm(room));
			for (size_t n : { size_t{ 8 }, size_t{ 5000 }, kManySlots })
				r.placed(room, 0, n, VIP_CONTROL_QFENCE);
		}
}

/* The bytes that were read are sent back by a fenced message, so it has the bytes of the read. */
TEST(Answered, AFencedMessageIsBehindARead)
{
	for (auto &level : with_reads())
		for (Kind kind : kKinds) {
			RULE(rule("a fenced message is sent when the reads before it are complete",
				  level, kind));
			Link l(level.value);
			Room room(l.na, kind, kRoom);
			Reader r(l, kRoom);
			ASSERT_TRUE(r.warm(room));
			for (size_t n : { size_t{ 8 }, size_t{ 200 }, kManySlots }) {
				Target to(room, 0, n);
				VIP_DESCRIPTOR *recv = l.recv_b(n);
				VIP_DESCRIPTOR *read = l.read_a({ to.seg }, r.renew(n));
				VIP_DESCRIPTOR *send = l.send_a({ to.seg }, VIP_CONTROL_QFENCE);
				EXPECT_EQ(recv, take_recv(*l.vb));
				EXPECT_EQ(read, take_send(*l.va));
				EXPECT_EQ(send, take_send(*l.va));
				EXPECT_TRUE(same(recv->DS[0].Local.Data.Address, n, r.seed)) << n;
			}
		}
}

TEST(Answered, RightsThatChange)
{
	for (auto &level : with_reads())
		for (Kind kind : { Kind::kWindow, Kind::kAdopted }) {
			RULE(rule("a read needs no right of the peer to the memory", level, kind));
			Link l(level.value);
			Room room(l.na, kind, kRoom);
			Reader r(l, kRoom);
			ASSERT_TRUE(r.warm(room));
			for (int i = 0; i < 3; i++) {
				room.set(false);
				if (room.is_window())
					EXPECT_FALSE(r.placed(room));
				room.set(true);
				EXPECT_TRUE(r.warm(room));
			}
		}
}

TEST(Answered, MemoryThatGoes)
{
	for (auto &level : with_reads())
		for (Kind kind : kKinds)
			for (bool source : { false, true }) {
				RULE(rule(std::string(
						  "a read is complete or fails when memory goes: "
						  "the ") +
						  (source ? "source" : "target"),
					  level, kind));
				constexpr size_t most = 1u << 20;
				Link l(level.value);
				Room to(l.na, kind, most), from(l.nb, kind, most);
				Reader r(l, kRoom);
				ASSERT_TRUE(r.warm(to));
				fill(from.p, most, 3);
				std::vector<VIP_DESCRIPTOR *> reads;
				for (int i = 0; i < 8; i++)
					reads.push_back(l.read_a({ to.seg(0, most) },
								 Remote{ from.p, from.h }));
				(source ? from : to).end();
				bool failed = false;
				for (VIP_DESCRIPTOR *d : reads) {
					ASSERT_EQ(d, take_send(*l.va));
					bool ok = (d->CS.Status & VIP_STATUS_ERROR_MASK) == 0;
					EXPECT_FALSE(ok && failed) << "in their order";
					failed |= !ok;
				}
				if (failed)
					EXPECT_TRUE(l.broken());
				else if (source)
					EXPECT_TRUE(same(to.p, most, 3));
			}
}
