/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory in which messages arrive, of each kind, for tests of messages that the sender stores there
 * itself.  The count of its slots shows that it did: one, however long the message.
 */
#ifndef VIPL_PLACING_H
#define VIPL_PLACING_H

#include "harness.h"

#include <sys/mman.h>

namespace conf {

enum class Kind { kWindow, kAdopted, kOrdinary };

inline const char *name_of(Kind kind)
{
	return kind == Kind::kWindow	? "memory of VipxAllocMem"
	       : kind == Kind::kAdopted ? "adopted memory"
					: "registered memory";
}

/* Bytes that take two slots or more if they go through slots: one takes 32 KiB at most. */
constexpr size_t kManySlots = 40000;

/* Are messages to window memory stored there?  Only neighbours may map it. */
inline bool places()
{
	return hops() < 2;
}

/* Memory of a kind.  If memory cannot be adopted here, it is registered instead. */
struct Room {
	Room(Nic &n, Kind k, size_t bytes, bool open = true, VIP_PROTECTION_HANDLE tag = nullptr)
	    : nic(n), kind(k), length((bytes + 4095) & ~size_t{ 4095 })
	{
		VIP_MEM_ATTRIBUTES attrs = { tag, open, VIP_TRUE };
		VIP_PVOID at = nullptr;
		if (kind == Kind::kWindow) {
			EXPECT_RC(VIP_SUCCESS, VipxAllocMem(nic.h, length, &attrs, &at, &h));
			p = static_cast<char *>(at);
			return;
		}
		at = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
		EXPECT_NE(MAP_FAILED, at);
		p = static_cast<char *>(at);
		VIP_RETURN rc = VIP_ERROR_NOT_SUPPORTED;
		if (kind == Kind::kAdopted)
			rc = VipxAdoptMem(nic.h, p, length, &attrs, VIPX_ADOPT_NO_WRITERS, &h);
		if (rc == VIP_ERROR_NOT_SUPPORTED) {
			kind = Kind::kOrdinary;
			rc = VipRegisterMem(nic.h, p, length, &attrs, &h);
		}
		EXPECT_RC(VIP_SUCCESS, rc);
	}
	~Room()
	{
		end();
		if (kind != Kind::kWindow)
			munmap(p, length);
	}
	Room(const Room &) = delete;
	/* The registration ends; memory of VipxAllocMem goes with it. */
	void end()
	{
		if (ended)
			return;
		EXPECT_RC(VIP_SUCCESS, kind == Kind::kWindow ? VipxFreeMem(nic.h, p, h)
							     : VipDeregisterMem(nic.h, p, h));
		ended = true;
	}
	void set(bool open, VIP_PROTECTION_HANDLE tag = nullptr)
	{
		VIP_MEM_ATTRIBUTES attrs = { tag, open, VIP_TRUE };
		EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(nic.h, p, h, &attrs));
	}
	bool is_window() const
	{
		return kind == Kind::kWindow || (kind == Kind::kAdopted && !adapters());
	}
	Seg seg(size_t off, size_t n) { return { p + off, h, n }; }
	Nic &nic;
	Kind kind;
	size_t length;
	char *p = nullptr;
	VIP_MEM_HANDLE h = 0;
	bool ended = false;
};

/* Bytes of a room, and 64 on each side that stay as they are. */
struct Target {
	Target(Room &r, size_t off, size_t n) : seg(r.seg(off + 64, n))
	{
		fill(at() - 64, 64, 78);
		fill(at(), n, 77);
		fill(at() + n, 64, 79);
	}
	char *at() const { return static_cast<char *>(seg.p); }
	/* The first n bytes are a message; after it nothing changed. */
	::testing::AssertionResult holds(size_t n, uint64_t seed) const
	{
		if (!same(at() - 64, 64, 78) || !same(at() + seg.length, 64, 79))
			return ::testing::AssertionFailure() << "bytes beside the receive changed";
		return same(at(), n, seed);
	}
	Seg seg;
};

/* Sends of side a into receives of side b, one at a time. */
struct Sender {
	Sender(Link &l, size_t most) : link(l), out(l.seg_a(most)) {}
	VIP_DESCRIPTOR *receive(const std::vector<Seg> &segs)
	{
		VIP_DESCRIPTOR *d = make(link.b, VIP_CONTROL_OP_SENDRECV, segs);
		link.post_recv_b(d);
		return d;
	}
	VIP_DESCRIPTOR *post(size_t n, std::optional<VIP_UINT32> imm = std::nullopt)
	{
		fill(out.p, n, ++seed);
		return link.send_a({ { out.p, out.h, n } }, imm ? VIP_CONTROL_IMMEDIATE : 0,
				   imm.value_or(0));
	}
	uint64_t slots() const
	{
		VIPX_COUNTERS c{};
		c.Size = sizeof(c);
		EXPECT_RC(VIP_SUCCESS, VipxQueryCounters(link.na.h, *link.va, &c));
		return c.SlotsSent;
	}
	/* Passes a message to the next receive, which is `recv`; returns how many slots it took. */
	uint64_t pass(VIP_DESCRIPTOR *recv, size_t n, std::optional<VIP_UINT32> imm = std::nullopt)
	{
		uint64_t before = slots();
		VIP_DESCRIPTOR *send = post(n, imm);
		EXPECT_EQ(recv, take_recv(*link.vb));
		EXPECT_TRUE(
			has_status(recv, VIP_STATUS_OP_RECEIVE | (imm ? VIP_STATUS_IMMEDIATE : 0)));
		EXPECT_EQ(n, recv->CS.Length);
		if (imm)
			EXPECT_EQ(*imm, recv->CS.ImmediateData);
		EXPECT_EQ(send, take_send(*link.va));
		EXPECT_TRUE(has_status(send, VIP_STATUS_OP_SEND));
		return slots() - before;
	}
	/* Passes a message to these bytes of a room and checks it; returns whether it was stored there. */
	bool placed(Room &room, size_t off = 0, size_t n = kManySlots)
	{
		Target to(room, off, n);
		bool one = pass(receive({ to.seg }), n) == 1;
		EXPECT_TRUE(to.holds(n, seed));
		return one;
	}
	/* Sends until messages are stored, if they can be here. */
	::testing::AssertionResult warm(Room &room)
	{
		if (!places() || !room.is_window() || eventually([&] { return placed(room); }))
			return ::testing::AssertionSuccess();
		return ::testing::AssertionFailure() << "no message was stored into the receive";
	}
	Link &link;
	Seg out;
	uint64_t seed = 1000;
};

} // namespace conf

#endif
