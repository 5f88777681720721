/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams of all operations into receives in memory of all kinds, in both directions at once: every
 * message in order, complete, and with the completion that VIPL demands.
 */
#include "placing.h"

#include <cstdlib>
#include <deque>
#include <random>

using namespace conf;

namespace {

constexpr size_t kMost = 80u << 10, kDepth = 8, kMessages = 160;

uint64_t first_seed()
{
	const char *text = getenv("VIADUCT_SEED");
	return text ? strtoull(text, nullptr, 0) : 20261123;
}

enum class Method { kQueues, kCq, kTake };
const char *name_of(Method method)
{
	return method == Method::kQueues ? "VipSendDone and VipRecvDone"
	       : method == Method::kCq	 ? "VipCQDone"
					 : "VipxCQTake";
}

enum class Op { kSend, kWrite, kWriteImm, kRead };

struct Message {
	Op op;
	size_t length, off; /* `off`: in the memory that is written or read */
	bool imm;
	int receive; /* how the receive lies in memory */
	bool notifies() const { return op == Op::kSend || op == Op::kWriteImm; }
	VIP_UINT32 imm_data(size_t number) const { return static_cast<VIP_UINT32>(number * 3 + 1); }
};

struct End {
	Nic &nic;
	Vi &vi;
	Arena &arena;
	std::vector<Room *> rooms() { return { &window, &adopted, &ordinary }; }
	Room window{ nic, Kind::kWindow, kDepth *kMost };
	Room adopted{ nic, Kind::kAdopted, kDepth *kMost };
	Room ordinary{ nic, Kind::kOrdinary, kDepth *kMost };
	/* Memory that the peer writes and reads; and memory of own messages. */
	Room written{ nic, Kind::kWindow, kDepth *kMost };
	Room source{ nic, Kind::kWindow, kDepth *kMost };
	Room own{ nic, Kind::kOrdinary, kDepth *kMost };
	/* Memory for the data that is read from the peer. */
	Room got{ nic, Kind::kWindow, kDepth *kMost };
};

/* Messages from one end to the other. */
struct Direction {
	Direction(End &f, End &t, uint64_t seed, bool with_reads)
	    : from(f), to(t), base(seed * 1000000), random(seed)
	{
		for (size_t i = 0; i < kMessages; i++)
			all.push_back(draw(i, with_reads));
		for (size_t i = 0; i < kDepth; i++)
			fill(to.source.p + i * kMost, kMost, base + i);
	}

	Message draw(size_t i, bool with_reads)
	{
		static const Op ops[] = { Op::kSend, Op::kSend,	    Op::kSend, Op::kSend,
					  Op::kSend, Op::kWriteImm, Op::kRead, Op::kWrite };
		Message m{};
		uint64_t size = random() % 10;
		/* An operation that does not notify waits for one that does. */
		m.op = i % 4 == 3 ? Op::kSend : ops[random() % 8];
		if (m.op == Op::kRead && !with_reads)
			m.op = Op::kWriteImm;
		m.length = size < 3   ? random() % 200
			   : size < 8 ? 4000 + random() % 16000
				      : 20000 + random() % (kMost - 20000);
		m.imm = m.op == Op::kWriteImm || (m.op == Op::kSend && random() % 3 == 0);
		m.off = random() % (kMost - m.length + 1);
		m.receive = static_cast<int>(random() % 6);
		return m;
	}

	/* The segments of receive i: in one memory, or several segments of one or more. */
	std::vector<Seg> receive_of(size_t i)
	{
		const Message &m = all[i];
		size_t at = i % kDepth * kMost;
		size_t n = m.op == Op::kSend ? m.length + (kMost - m.length) * (i % 2) : 5000;
		auto rooms = to.rooms();
		if (m.receive < 4)
			return { rooms[static_cast<size_t>(m.receive) % 3]->seg(at, n) };
		if (m.receive == 4)
			return { to.window.seg(at, n / 3), to.window.seg(at + n / 3, n - n / 3) };
		return { to.window.seg(at, n / 2), to.ordinary.seg(at, 0),
			 to.adopted.seg(at, n - n / 2) };
	}

	void post_receives()
	{
		for (; received_next < all.size() && received_next < taken + kDepth;
		     received_next++) {
			if (!all[received_next].notifies())
				continue;
			VIP_DESCRIPTOR *d =
				make(to.arena, VIP_CONTROL_OP_SENDRECV, receive_of(received_next));
			EXPECT_RC(VIP_SUCCESS, VipPostRecv(to.vi, d, to.arena.mem.h));
			receives.push_back({ received_next, d });
		}
	}

	void post_sends()
	{
		size_t end = received_next < sent + kDepth ? received_next : sent + kDepth;
		for (; posted < end && random() % 8 != 0; posted++) {
			const Message &m = all[posted];
			size_t at = posted % kDepth * kMost;
			Seg seg = from.own.seg(at, m.length);
			VIP_DESCRIPTOR *d;
			if (m.op == Op::kRead) {
				if (m.receive % 3 != 0)
					seg = from.got.seg(at, m.length);
				d = make(from.arena, VIP_CONTROL_OP_RDMAREAD, { seg },
					 Remote{ to.source.p + at, to.source.h });
			} else if (m.op == Op::kSend) {
				fill(seg.p, m.length, base + 100 + posted);
				d = make(from.arena,
					 static_cast<VIP_UINT16>(
						 VIP_CONTROL_OP_SENDRECV |
						 (m.imm ? VIP_CONTROL_IMMEDIATE : 0)),
					 { seg }, std::nullopt, m.imm_data(posted));
			} else {
				fill(seg.p, m.length, base + 100 + posted);
				d = make(from.arena,
					 static_cast<VIP_UINT16>(
						 VIP_CONTROL_OP_RDMAWRITE |
						 (m.imm ? VIP_CONTROL_IMMEDIATE : 0)),
					 { seg }, Remote{ to.written.p + at + m.off, to.written.h },
					 m.imm_data(posted));
			}
			EXPECT_RC(VIP_SUCCESS, VipPostSend(from.vi, d, from.arena.mem.h));
			sends.push_back(d);
		}
	}

	void on_sent(VIP_DESCRIPTOR *d)
	{
		const Message &m = all.at(sent);
		ASSERT_FALSE(sends.empty());
		ASSERT_EQ(sends.front(), d) << sent;
		EXPECT_TRUE(has_status(d, m.op == Op::kSend   ? VIP_STATUS_OP_SEND
					  : m.op == Op::kRead ? VIP_STATUS_OP_RDMA_READ
							      : VIP_STATUS_OP_RDMA_WRITE))
			<< sent;
		if (m.op == Op::kRead)
			EXPECT_TRUE(
				same(d->DS[1].Local.Data.Address, m.length, base + sent % kDepth))
				<< sent;
		sends.pop_front();
		sent++;
	}

	void check_written(size_t i)
	{
		const Message &m = all[i];
		EXPECT_TRUE(
			same(to.written.p + i % kDepth * kMost + m.off, m.length, base + 100 + i))
			<< i;
	}

	/* Gathers the bytes first: fill() knows only bytes in one piece. */
	void check_received(size_t i, const VIP_DESCRIPTOR *d)
	{
		std::vector<char> bytes;
		size_t left = all[i].length;
		for (unsigned s = 0; s < d->CS.SegCount; s++) {
			const auto &seg =
				(reinterpret_cast<const VIP_DESCRIPTOR_SEGMENT *>(&d->CS + 1) + s)
					->Local;
			size_t n = std::min(left, static_cast<size_t>(seg.Length));
			auto *at = static_cast<const char *>(seg.Data.Address);
			bytes.insert(bytes.end(), at, at + n);
			left -= n;
		}
		EXPECT_EQ(0u, left);
		EXPECT_TRUE(same(bytes.data(), bytes.size(), base + 100 + i)) << i;
	}

	void on_received(VIP_DESCRIPTOR *d)
	{
		ASSERT_FALSE(receives.empty());
		auto [i, expected] = receives.front();
		const Message &m = all[i];
		ASSERT_EQ(expected, d) << i;
		receives.pop_front();
		EXPECT_TRUE(has_status(d, (m.op == Op::kSend ? VIP_STATUS_OP_RECEIVE
							     : VIP_STATUS_OP_REMOTE_RDMA_WRITE) |
						  (m.imm ? VIP_STATUS_IMMEDIATE : 0)))
			<< i;
		EXPECT_EQ(m.length, d->CS.Length) << i;
		if (m.imm)
			EXPECT_EQ(m.imm_data(i), d->CS.ImmediateData) << i;
		for (; taken < i; taken++)
			if (all[taken].op == Op::kWrite)
				check_written(taken);
		if (m.op == Op::kSend)
			check_received(i, d);
		else
			check_written(i);
		taken = i + 1;
	}

	bool done() const { return taken == all.size() && sent == all.size(); }

	End &from, &to;
	uint64_t base;
	std::mt19937_64 random;
	std::vector<Message> all;
	std::deque<VIP_DESCRIPTOR *> sends;
	std::deque<std::pair<size_t, VIP_DESCRIPTOR *>> receives;
	/* Counts of messages: considered for a receive; posted, complete; and received, with all before. */
	size_t received_next = 0, posted = 0, sent = 0, taken = 0;
};

/* Takes completions at an end, by one of the methods. */
struct Taker {
	bool step(const std::function<void(VIP_DESCRIPTOR *, bool)> &got)
	{
		VIP_DESCRIPTOR *d = nullptr;
		if (method == Method::kQueues) {
			if (VipSendDone(vi, &d) == VIP_SUCCESS)
				got(d, false);
			bool some = d != nullptr;
			if (VipRecvDone(vi, &d) == VIP_SUCCESS)
				got(d, true);
			return some || d != nullptr;
		}
		if (method == Method::kCq) {
			VIP_VI_HANDLE h;
			VIP_BOOLEAN recv;
			if (VipCQDone(*cq, &h, &recv) != VIP_SUCCESS)
				return false;
			EXPECT_RC(VIP_SUCCESS, recv ? VipRecvDone(h, &d) : VipSendDone(h, &d));
			got(d, recv);
			return true;
		}
		VIPX_COMPLETION c[5];
		VIP_ULONG n = 0;
		c[0].Size = sizeof(c[0]);
		if (VipxCQTake(*cq, c, 5, &n) != VIP_SUCCESS)
			return false;
		for (VIP_ULONG i = 0; i < n; i++) {
			EXPECT_EQ(c[i].Status, c[i].DescriptorPtr->CS.Status);
			EXPECT_EQ(c[i].Length, c[i].DescriptorPtr->CS.Length);
			got(c[i].DescriptorPtr, c[i].RecvQueue);
		}
		return true;
	}
	Method method;
	Vi &vi;
	Cq *cq;
};

void mix(const Level &level, Method method, uint64_t seed)
{
	SCOPED_TRACE("VIADUCT_SEED=" + std::to_string(seed));
	std::optional<Cq> cq_a, cq_b;
	LinkOptions o;
	o.arena = 1u << 20;
	if (method != Method::kQueues) {
		o.a_scq = o.a_rcq = cq_a.emplace(nic(0)).h;
		o.b_scq = o.b_rcq = cq_b.emplace(nic(1)).h;
	}
	Link l(level.value, o);
	End a{ l.na, *l.va, l.a }, b{ l.nb, *l.vb, l.b };
	Direction there(a, b, seed, offers_read(level)), back(b, a, seed + 1, offers_read(level));
	Taker at_a{ method, *l.va, cq_a ? &*cq_a : nullptr };
	Taker at_b{ method, *l.vb, cq_b ? &*cq_b : nullptr };
	EXPECT_TRUE(eventually([&] {
		for (Direction *d : { &there, &back }) {
			d->post_receives();
			d->post_sends();
		}
		while (at_a.step([&](VIP_DESCRIPTOR *d, bool recv) {
			recv ? back.on_received(d) : there.on_sent(d);
		}))
			;
		while (at_b.step([&](VIP_DESCRIPTOR *d, bool recv) {
			recv ? there.on_received(d) : back.on_sent(d);
		}))
			;
		return (there.done() && back.done()) || ::testing::Test::HasFailure();
	})) << "messages "
	    << there.taken << " and " << back.taken;
	if (method == Method::kQueues && !::testing::Test::HasFailure()) {
		Sender s(l, kMost);
		EXPECT_TRUE(s.warm(b.window)) << "after all that";
	}
}

} // namespace

TEST(Placed, MixedWithAllElse)
{
	uint64_t seed = first_seed();
	for (auto &level : levels())
		for (Method method : { Method::kQueues, Method::kCq, Method::kTake }) {
			RULE(std::string(
				     "VIPL 5.5: each message goes to its receive, in order, whatever "
				     "memory that lies in; completions by ") +
			     name_of(method) + ", " + level.name);
			mix(level, method, seed);
			seed += 2;
		}
}
