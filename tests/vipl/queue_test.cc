/* SPDX-License-Identifier: BSD-2-Clause */
/* VIPL 5.5 and 4.1: posting, taking, waiting for and being notified of descriptors. */
#include "harness.h"

#include <atomic>
#include <chrono>

using namespace conf;

namespace {

struct Queue {
	const char *name;
	bool recv;
	VIP_RETURN post(VIP_VI_HANDLE v, VIP_DESCRIPTOR *d, VIP_MEM_HANDLE h) const
	{
		return recv ? VipPostRecv(v, d, h) : VipPostSend(v, d, h);
	}
	VIP_RETURN done(VIP_VI_HANDLE v, VIP_DESCRIPTOR **d) const
	{
		return recv ? VipRecvDone(v, d) : VipSendDone(v, d);
	}
	VIP_RETURN wait(VIP_VI_HANDLE v, VIP_ULONG ms, VIP_DESCRIPTOR **d) const
	{
		return recv ? VipRecvWait(v, ms, d) : VipSendWait(v, ms, d);
	}
	VIP_RETURN notify(VIP_VI_HANDLE v, void *context,
			  void (*handler)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE,
					  VIP_DESCRIPTOR *)) const
	{
		return recv ? VipRecvNotify(v, context, handler)
			    : VipSendNotify(v, context, handler);
	}
};
const Queue kQueues[] = { { "VipPostSend", false }, { "VipPostRecv", true } };

/* The arguments of notify handlers. */
struct Seen {
	static void handler(VIP_PVOID context, VIP_NIC_HANDLE nic_handle, VIP_VI_HANDLE vi,
			    VIP_DESCRIPTOR *desc)
	{
		auto *self = static_cast<Seen *>(context);
		std::lock_guard<std::mutex> guard(self->lock);
		self->list.push_back(desc);
		self->last_nic = nic_handle;
		self->last_vi = vi;
		self->thread = std::this_thread::get_id();
	}
	bool reaches(size_t n)
	{
		return eventually([&] {
			std::lock_guard<std::mutex> guard(lock);
			return list.size() >= n;
		});
	}
	std::mutex lock;
	std::vector<VIP_DESCRIPTOR *> list;
	VIP_NIC_HANDLE last_nic = nullptr;
	VIP_VI_HANDLE last_vi = nullptr;
	std::thread::id thread;
};

} // namespace

TEST(Queue, MisplacedDescriptors)
{
	for (auto &level : levels())
		for (auto &q : kQueues)
			for (auto state : { VIP_STATE_IDLE, VIP_STATE_CONNECTED }) {
				ViIn in(state, level.value);
				Arena arena(nic(0));
				Mem small(nic(0), 128), other(nic(0), 128);
				static VIP_DESCRIPTOR outside[2];
				char *aligned = reinterpret_cast<char *>(arena.desc(2));
				VIP_MEM_HANDLE stale;
				ASSERT_RC(VIP_SUCCESS, VipRegisterMem(nic(0).h, small.data, 128,
								      nullptr, &stale));
				ASSERT_RC(VIP_SUCCESS,
					  VipDeregisterMem(nic(0).h, small.data, stale));
				auto at = [](void *p) { return static_cast<VIP_DESCRIPTOR *>(p); };
				struct Case {
					std::string what;
					VIP_DESCRIPTOR *desc;
					VIP_MEM_HANDLE h;
				};
				std::vector<Case> all = {
					{ "in memory that is not registered", &outside[1],
					  arena.mem.h },
					{ "with the handle of other memory", at(aligned), other.h },
					{ "with handle 0", at(aligned), 0 },
					{ "with handle 0xffffffff", at(aligned), 0xffffffff },
					{ "with a stale handle", at(small.data), stale },
					{ "that begins before the region", at(small.data - 64),
					  small.h },
					{ "that ends behind the region", at(small.data + 128),
					  small.h },
				};
				for (int shift : { 1, 8, 16, 32, 63 })
					all.push_back({ "that is " + std::to_string(shift) +
								" bytes off a multiple of 64",
							at(aligned + shift), arena.mem.h });
				for (auto &c : all) {
					RULE(std::string("VIPL 5.5 ") + q.name + ": a descriptor " +
					     c.what + " is not queued and POST_DESC is reported, " +
					     state_name(state) + ", " + level.name);
					nic(0).clear();
					VIP_DESCRIPTOR *got;
					EXPECT_RC(VIP_INVALID_PARAMETER,
						  q.post(in.vi(), c.desc, c.h));
					EXPECT_RC(VIP_DESCRIPTOR_ERROR, q.done(in.vi(), &got));
					EXPECT_EQ(nullptr, got);
					VIP_ERROR_DESCRIPTOR event{};
					EXPECT_TRUE(nic(0).wait_event(VIP_ERROR_POST_DESC,
								      in.vi().h, &event));
					EXPECT_EQ(c.desc, event.DescriptorPtr);
					EXPECT_EQ(state, in.vi().state());
				}
			}
}

TEST(Queue, InProgressIsNotDone)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.5: a head in progress is VIP_NOT_DONE with NULL, a wait VIP_TIMEOUT, ") +
		     level.name);
		Link l(level.value);
		l.recv_b(8);
		VIP_DESCRIPTOR *got = reinterpret_cast<VIP_DESCRIPTOR *>(&l);
		EXPECT_RC(VIP_NOT_DONE, VipRecvDone(*l.vb, &got));
		EXPECT_EQ(nullptr, got);
		for (VIP_ULONG ms : { 0UL, 1UL, 20UL }) {
			got = reinterpret_cast<VIP_DESCRIPTOR *>(&l);
			auto begin = std::chrono::steady_clock::now();
			EXPECT_RC(VIP_TIMEOUT, VipRecvWait(*l.vb, ms, &got));
			EXPECT_GE(std::chrono::steady_clock::now() - begin,
				  std::chrono::milliseconds(ms));
			EXPECT_EQ(nullptr, got);
		}
	}
}

TEST(Queue, TakenOnce)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.5: a completed head is taken once, the queue is then empty, ") +
		     level.name);
		Link l(level.value);
		VIP_DESCRIPTOR *recv = l.recv_b(8), *send = l.send_a({ l.seg_a(8) }), *got;
		EXPECT_EQ(recv, take_recv(*l.vb));
		EXPECT_EQ(send, take_send(*l.va));
		EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipRecvDone(*l.vb, &got));
		EXPECT_EQ(nullptr, got);
		EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipSendDone(*l.va, &got));
		EXPECT_EQ(nullptr, got);
	}
}

TEST(Queue, PollWithoutWait)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.5: polling Done alone moves everything, ") + level.name);
		Link l(level.value);
		for (int i = 0; i < 50; i++) {
			VIP_DESCRIPTOR *recv = l.recv_b(8), *got = nullptr;
			VIP_DESCRIPTOR *send = l.send_a({ l.seg_a(8) });
			EXPECT_TRUE(eventually(
				[&] { return VipSendDone(*l.va, &got) != VIP_NOT_DONE; }));
			EXPECT_EQ(send, got);
			EXPECT_TRUE(eventually(
				[&] { return VipRecvDone(*l.vb, &got) != VIP_NOT_DONE; }));
			EXPECT_EQ(recv, got);
		}
	}
}

TEST(Queue, NextBelongsToTheProvider)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 4.1: Next and NextHandle need not be anything at post time, ") +
		     level.name);
		Link l(level.value);
		VIP_DESCRIPTOR *recv = make(l.b, 0, { l.seg_b(8) }),
			       *send = make(l.a, 0, { l.seg_a(8) });
		recv->CS.Next.AddressBits = send->CS.Next.AddressBits = 0xdeadbeefdeadbeef;
		recv->CS.NextHandle = send->CS.NextHandle = 0xdeadbeef;
		l.post_recv_b(recv);
		l.post_a(send);
		EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_SEND));
		EXPECT_TRUE(has_status(take_recv(*l.vb), VIP_STATUS_OP_RECEIVE));
	}
}

TEST(Queue, ReceiveControlBits)
{
	for (auto &level : levels()) {
		struct Case {
			const char *rule;
			VIP_UINT16 control;
			VIP_UINT32 imm;
		} all[] = {
			{ "the IMMEDIATE bit of a receive is ignored",
			  VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE, 77 },
			{ "a plain receive", VIP_CONTROL_OP_SENDRECV, 0 },
		};
		for (auto &c : all)
			for (int with = 0; with < 2; with++) {
				RULE(std::string("VIPL 4.1: ") + c.rule +
				     (with ? ", message with immediate data, "
					   : ", message without, ") +
				     level.name);
				Link l(level.value);
				VIP_DESCRIPTOR *recv =
					make(l.b, c.control, { l.seg_b(8) }, std::nullopt, c.imm);
				l.post_recv_b(recv);
				l.send_a({ l.seg_a(8) }, with ? VIP_CONTROL_IMMEDIATE : 0, 0xcafe);
				EXPECT_EQ(recv, take_recv(*l.vb));
				EXPECT_TRUE(has_status(recv,
						       VIP_STATUS_OP_RECEIVE |
							       (with ? VIP_STATUS_IMMEDIATE : 0u)));
				if (with)
					EXPECT_EQ(0xcafeu, recv->CS.ImmediateData);
			}
	}
}

TEST(Queue, ReceiveLengthIsTheBytesReceived)
{
	for (auto &level : levels())
		for (size_t sent : { 0, 1, 40, 64, 100 })
			for (VIP_UINT32 declared : { 0u, 5u, 100u, 0xffffffffu }) {
				RULE(std::string(
					     "VIPL 4.1: Length of a receive is stored at completion, not relied upon "
					     "before, ") +
				     level.name);
				Link l(level.value);
				VIP_DESCRIPTOR *recv = make(l.b, 0, { l.seg_b(100) });
				recv->CS.Length = declared;
				l.post_recv_b(recv);
				Seg seg = l.seg_a(sent);
				fill(seg.p, sent, 3);
				l.send_a({ seg });
				EXPECT_EQ(recv, take_recv(*l.vb));
				EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_RECEIVE));
				EXPECT_EQ(sent, recv->CS.Length);
				EXPECT_TRUE(same(recv->DS[0].Local.Data.Address, sent, 3));
			}
}

TEST(Queue, ZeroLengthMessages)
{
	for (auto &level : levels())
		for (int send_segs = 0; send_segs < 2; send_segs++)
			for (int recv_segs = 0; recv_segs < 2; recv_segs++) {
				RULE("VIPL 4.1: a message of no bytes with SegCount " +
				     std::to_string(send_segs) + " into a receive with SegCount " +
				     std::to_string(recv_segs) + ", " + level.name);
				Link l(level.value);
				std::vector<Seg> out, in;
				if (send_segs)
					out.push_back(l.seg_a(0));
				if (recv_segs)
					in.push_back(l.seg_b(0));
				VIP_DESCRIPTOR *recv = make(l.b, 0, in);
				l.post_recv_b(recv);
				l.send_a(out, VIP_CONTROL_IMMEDIATE, 5);
				EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_SEND));
				EXPECT_EQ(recv, take_recv(*l.vb));
				EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_RECEIVE |
								     VIP_STATUS_IMMEDIATE));
				EXPECT_EQ(0u, recv->CS.Length);
				EXPECT_EQ(5u, recv->CS.ImmediateData);
			}
}

TEST(Queue, ControlDataSpelling)
{
	RULE("VIPL 4.1: Control and Data are the same bytes as CS and DS");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	VIP_DESCRIPTOR *recv = l.recv_b(8), *send = l.a.desc();
	char *bytes = l.a.bytes(8);
	send->Control.SegCount = 1;
	send->Control.Control = VIP_CONTROL_OP_SENDRECV;
	send->Control.Length = 8;
	send->Data[0].Data.Address = bytes;
	send->Data[0].Handle = l.a.mem.h;
	send->Data[0].Length = 8;
	l.post_a(send);
	EXPECT_EQ(recv, take_recv(*l.vb));
	EXPECT_EQ(8u, recv->Control.Length);
	EXPECT_EQ(64u, sizeof(VIP_DESCRIPTOR));
}

TEST(Queue, WaitOnAQueueWithACq)
{
	Cq cq(nic(0));
	for (auto &level : levels())
		for (auto &q : kQueues)
			for (VIP_ULONG ms : { 0UL, 10UL, 0xffffffffUL, ~0UL }) {
				RULE(std::string(
					     "VIPL 5.5: Wait and Notify are not allowed on a queue with a CQ, ") +
				     q.name + ", " + level.name);
				Vi vi(nic(0), vi_attrs(level.value), q.recv ? nullptr : cq.h,
				      q.recv ? cq.h : nullptr);
				Arena arena(nic(0));
				VIP_DESCRIPTOR *got;
				ASSERT_RC(VIP_SUCCESS, q.post(vi, make(arena, 0, {}), arena.mem.h));
				EXPECT_RC(VIP_INVALID_PARAMETER, q.wait(vi, ms, &got));
				EXPECT_RC(VIP_INVALID_PARAMETER,
					  q.notify(vi, nullptr, Seen::handler));
			}
}

TEST(Queue, InfiniteTimeouts)
{
	for (VIP_ULONG forever : { 0xffffffffUL, ~0UL })
		for (auto &level : levels()) {
			RULE(std::string("VIPL 2: 0xFFFFFFFF and ~0UL both wait without end, ") +
			     level.name);
			Link l(level.value);
			VIP_DESCRIPTOR *recv = l.recv_b(8), *got = nullptr;
			std::thread sender([&] { l.send_a({ l.seg_a(8) }); });
			EXPECT_RC(VIP_SUCCESS, VipRecvWait(*l.vb, forever, &got));
			EXPECT_EQ(recv, got);
			sender.join();
		}
}

TEST(Queue, DoneDoesNotWaitBehindAWait)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.5: Done never blocks, not behind a thread in Wait on the same queue, ") +
		     level.name);
		Link l(level.value);
		l.recv_b(8);
		std::atomic<bool> finished{ false };
		std::thread waiter([&] {
			VIP_DESCRIPTOR *got;
			VipRecvWait(*l.vb, VIP_INFINITE, &got);
			finished = true;
		});
		for (int i = 0; i < 200; i++) {
			VIP_DESCRIPTOR *got;
			EXPECT_RC(VIP_NOT_DONE, VipRecvDone(*l.vb, &got));
			std::this_thread::yield();
		}
		EXPECT_FALSE(finished);
		l.send_a({ l.seg_a(8) });
		waiter.join();
	}
}

TEST(Queue, TwoWaitersShare)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 9: two threads wait on a queue, each completion goes to exactly one, ") +
		     level.name);
		Link l(level.value);
		constexpr int kN = 60;
		std::vector<VIP_DESCRIPTOR *> recvs, seen[2];
		for (int i = 0; i < kN; i++)
			recvs.push_back(l.recv_b(8));
		std::vector<std::thread> waiters;
		for (auto &mine : seen)
			waiters.emplace_back([&l, &mine] {
				for (;;) {
					VIP_DESCRIPTOR *got = nullptr;
					VipRecvWait(*l.vb, kWaitMs, &got);
					if (!got)
						return;
					mine.push_back(got);
				}
			});
		for (int i = 0; i < kN; i++) {
			VIP_DESCRIPTOR *send = l.send_a({ l.seg_a(8) });
			EXPECT_EQ(send, take_send(*l.va));
		}
		for (auto &w : waiters)
			w.join();
		EXPECT_EQ(size_t(kN), seen[0].size() + seen[1].size());
		for (auto &mine : seen)
			for (size_t i = 1; i < mine.size(); i++)
				EXPECT_LT(mine[i - 1], mine[i]) << "each thread sees them in order";
	}
}

TEST(Queue, DisconnectWakesWaiters)
{
	for (auto &level : levels())
		for (int remote = 0; remote < 2; remote++) {
			RULE(std::string("VIPL 6: a waiter gets the flushed descriptor when ") +
			     (remote ? "the peer disconnects, " : "this side disconnects, ") +
			     level.name);
			Link l(level.value);
			VIP_DESCRIPTOR *recv = l.recv_b(8), *got = nullptr;
			VIP_RETURN rc = VIP_NOT_DONE;
			std::thread waiter([&] { rc = VipRecvWait(*l.vb, kWaitMs, &got); });
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(remote ? *l.va : *l.vb));
			waiter.join();
			EXPECT_RC(VIP_DESCRIPTOR_ERROR, rc);
			EXPECT_EQ(recv, got);
			EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_RECEIVE |
							     VIP_STATUS_DESC_FLUSHED_ERROR));
		}
}

/* ---- notification -------------------------------------------------------------------------- */

TEST(Notify, HeadAlreadyComplete)
{
	for (auto &level : levels())
		for (auto &q : kQueues) {
			RULE(std::string(
				     "VIPL 5.5 Notify: a head already complete is taken and handed to the handler, ") +
			     q.name + ", " + level.name);
			Link l(level.value);
			VIP_DESCRIPTOR *recv = l.recv_b(8), *send = l.send_a({ l.seg_a(8) }), *got;
			Seen seen;
			for (auto *desc : { send, recv })
				EXPECT_TRUE(eventually([&] {
					VipxProgress(l.na.h);
					VipxProgress(l.nb.h);
					return is_done(desc);
				}));
			Vi &vi = q.recv ? *l.vb : *l.va;
			EXPECT_RC(VIP_SUCCESS, q.notify(vi, &seen, Seen::handler));
			ASSERT_TRUE(seen.reaches(1));
			EXPECT_EQ(q.recv ? recv : send, seen.list[0]);
			EXPECT_EQ(vi.h, seen.last_vi);
			EXPECT_EQ(vi.owner.h, seen.last_nic);
			EXPECT_RC(VIP_DESCRIPTOR_ERROR, q.done(vi, &got));
			EXPECT_EQ(nullptr, got);
		}
}

TEST(Notify, HeadCompletesLater)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.5 VipRecvNotify: the handler is called once, when the head completes, in "
			     "another thread, ") +
		     level.name);
		Link l(level.value);
		VIP_DESCRIPTOR *first = l.recv_b(8), *second = l.recv_b(8);
		Seen seen;
		EXPECT_RC(VIP_SUCCESS, VipRecvNotify(*l.vb, &seen, Seen::handler));
		l.send_a({ l.seg_a(8) });
		l.send_a({ l.seg_a(8) });
		ASSERT_TRUE(seen.reaches(1));
		EXPECT_EQ(first, seen.list[0]);
		EXPECT_NE(std::this_thread::get_id(), seen.thread);
		EXPECT_EQ(second, take_recv(*l.vb)) << "one-shot: the second is for the queue";
		std::lock_guard<std::mutex> guard(seen.lock);
		EXPECT_EQ(1u, seen.list.size());
	}
}

TEST(Notify, SeveralAreServedInOrder)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.5 Notify: several may be outstanding, served in order, ") +
		     level.name);
		Link l(level.value);
		std::vector<VIP_DESCRIPTOR *> recvs;
		Seen seen;
		for (int i = 0; i < 20; i++) {
			recvs.push_back(l.recv_b(8));
			EXPECT_RC(VIP_SUCCESS, VipRecvNotify(*l.vb, &seen, Seen::handler));
		}
		for (int i = 0; i < 20; i++)
			l.send_a({ l.seg_a(8) });
		ASSERT_TRUE(seen.reaches(20));
		EXPECT_EQ(recvs, seen.list);
	}
}

TEST(Notify, HandlerSeesErrors)
{
	for (auto &level : levels())
		for (int remote = 0; remote < 2; remote++) {
			RULE(std::string(
				     "VIPL 5.5 Notify: a flushed descriptor is a completion too, ") +
			     level.name);
			Link l(level.value);
			VIP_DESCRIPTOR *recv = l.recv_b(8);
			Seen seen;
			EXPECT_RC(VIP_SUCCESS, VipRecvNotify(*l.vb, &seen, Seen::handler));
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(remote ? *l.va : *l.vb));
			ASSERT_TRUE(seen.reaches(1));
			EXPECT_EQ(recv, seen.list[0]);
			EXPECT_TRUE(has_error(recv, VIP_STATUS_DESC_FLUSHED_ERROR));
		}
}

namespace {
struct Again {
	static void handler(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE vi,
			    VIP_DESCRIPTOR *desc)
	{
		auto *self = static_cast<Again *>(context);
		if (desc->CS.Status & VIP_STATUS_ERROR_MASK)
			return; /* it is flushed at the end of the test */
		desc->CS.Status = 0;
		EXPECT_RC(VIP_SUCCESS, VipPostRecv(vi, desc, self->handle));
		EXPECT_RC(VIP_SUCCESS, VipRecvNotify(vi, self, handler));
		self->count++;
	}
	VIP_MEM_HANDLE handle = 0;
	std::atomic<int> count{ 0 };
};
} // namespace

TEST(Notify, HandlerArmsAgain)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.5 Notify: the handler may arm again and call the library, ") +
		     level.name);
		Again again;
		Link l(level.value);
		again.handle = l.b.mem.h;
		l.recv_b(8);
		EXPECT_RC(VIP_SUCCESS, VipRecvNotify(*l.vb, &again, Again::handler));
		for (int i = 0; i < 20; i++) {
			l.send_a({ l.seg_a(8) });
			EXPECT_TRUE(eventually([&] { return again.count > i; })) << i;
		}
	}
}

TEST(Notify, DestroyCancels)
{
	for (auto &level : levels())
		for (auto &q : kQueues) {
			RULE(std::string(
				     "VIPL 5.2 VipDestroyVi: pending Notify handlers are cancelled, ") +
			     q.name + ", " + level.name);
			Seen seen;
			{
				Vi vi(nic(0), vi_attrs(level.value));
				for (int i = 0; i < 3; i++)
					EXPECT_RC(VIP_SUCCESS, q.notify(vi, &seen, Seen::handler));
			}
			EXPECT_TRUE(seen.list.empty());
		}
}
