/* SPDX-License-Identifier: BSD-2-Clause */
/* VipxFlush: operations posted before it have been executed after it, without help of the other end's program. */
#include "writer.h"

#include <atomic>

#include <signal.h>
#include <sys/wait.h>

using namespace conf;

namespace {

using Word = uint64_t;

/* Memory of side b to which side a writes. */
struct Window {
	explicit Window(Nic &n, size_t bytes = 1u << 17) : nic(n)
	{
		VIP_MEM_ATTRIBUTES attrs = { nullptr, VIP_TRUE, VIP_TRUE };
		VIP_PVOID at = nullptr;
		EXPECT_RC(VIP_SUCCESS, VipxAllocMem(nic.h, bytes, &attrs, &at, &h));
		p = static_cast<char *>(at);
	}
	~Window() { EXPECT_RC(VIP_SUCCESS, VipxFreeMem(nic.h, p, h)); }
	Window(const Window &) = delete;
	Nic &nic;
	char *p = nullptr;
	VIP_MEM_HANDLE h = 0;
};

VIPX_COUNTERS counters(Nic &n, VIP_VI_HANDLE vi)
{
	VIPX_COUNTERS c{};
	c.Size = sizeof(c);
	EXPECT_RC(VIP_SUCCESS, VipxQueryCounters(n.h, vi, &c));
	return c;
}

void take_sends(VIP_VI_HANDLE vi, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		VIP_DESCRIPTOR *d = nullptr;
		EXPECT_RC(VIP_SUCCESS, VipSendDone(vi, &d)) << "complete already";
	}
}

} // namespace

TEST(Flush, NothingPosted)
{
	for (auto &level : levels()) {
		RULE(std::string("vipl_ext VipxFlush: nothing to wait for, ") + level.name);
		Link l(level.value);
		uint64_t slots = counters(l.na, *l.va).SlotsSent;
		for (int i = 0; i < 100; i++)
			EXPECT_RC(VIP_SUCCESS, VipxFlush(*l.va, 0));
		EXPECT_EQ(slots, counters(l.na, *l.va).SlotsSent) << "nobody was asked";
		EXPECT_TRUE(l.works());
		EXPECT_RC(VIP_SUCCESS, VipxFlush(*l.va, kWaitMs));
		EXPECT_RC(VIP_SUCCESS, VipxFlush(*l.vb, VIP_INFINITE));
		EXPECT_TRUE(l.works());
	}
}

TEST(Flush, NotConnected)
{
	for (VIP_VI_STATE state : states()) {
		if (state == VIP_STATE_CONNECTED)
			continue;
		RULE(std::string("vipl_ext VipxFlush: a VI that is ") + state_name(state));
		ViIn in(state, VIP_SERVICE_RELIABLE_DELIVERY);
		EXPECT_RC(VIP_INVALID_STATE, VipxFlush(in.vi(), kWaitMs));
	}
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxFlush(nullptr, kWaitMs));
}

TEST(Flush, WritesAreThere)
{
	for (auto &level : levels())
		for (bool window : { false, true })
			for (size_t length : { 1ul, 8ul, 96ul, 97ul, 4096ul, 100000ul }) {
				RULE(std::string("vipl_ext VipxFlush: writes are there, ") +
				     std::to_string(length) + " bytes, " + level.name +
				     (window ? ", window memory" : ""));
				Link l(level.value);
				Window w(l.nb);
				Mem plain(l.nb, 1u << 17, true, true);
				char *at = window ? w.p : plain.data;
				Seg from = l.seg_a(length);
				Remote to = { at, window ? w.h : plain.h };
				for (uint64_t turn = 1; turn <= 30; turn++) {
					fill(from.p, length, turn);
					VIP_DESCRIPTOR *first = l.write_a({ from }, to);
					VIP_DESCRIPTOR *last = l.write_a({ from }, to);
					ASSERT_RC(VIP_SUCCESS, VipxFlush(*l.va, kWaitMs));
					EXPECT_TRUE(is_done(first) && is_done(last));
					ASSERT_TRUE(same(at, length, turn)) << turn;
					take_sends(*l.va, 2);
				}
			}
}

TEST(Flush, SendsAreReceived)
{
	for (auto &level : levels())
		for (size_t length : { 4ul, 5000ul }) {
			RULE(std::string("vipl_ext VipxFlush: sends have been received, ") +
			     std::to_string(length) + " bytes, " + level.name);
			Link l(level.value);
			for (int turn = 0; turn < 20; turn++) {
				VIP_DESCRIPTOR *recv[4];
				for (auto &r : recv)
					r = l.recv_b(length);
				for (int i = 0; i < 4; i++)
					l.send_a({ l.seg_a(length) });
				ASSERT_RC(VIP_SUCCESS, VipxFlush(*l.va, kWaitMs));
				for (auto r : recv)
					EXPECT_TRUE(is_done(r));
				take_sends(*l.va, 4);
				for (auto r : recv)
					EXPECT_EQ(r, take_recv(*l.vb));
			}
		}
}

TEST(Flush, DroppedSends)
{
	RULE("vipl_ext VipxFlush: messages that met no receive");
	Link l(VIP_SERVICE_UNRELIABLE);
	for (int i = 0; i < 10; i++)
		l.send_a({ l.seg_a(100) });
	EXPECT_RC(VIP_SUCCESS, VipxFlush(*l.va, kWaitMs));
	EXPECT_EQ(10u, counters(l.nb, *l.vb).Dropped);
}

TEST(Flush, ReadsAndAtomicOperations)
{
	for (auto &level : levels()) {
		if (!offers_read(level))
			continue;
		RULE(std::string("vipl_ext VipxFlush: reads and atomic operations, ") + level.name);
		Link l(level.value);
		Window w(l.nb);
		for (int turn = 1; turn <= 20; turn++) {
			auto *d = reinterpret_cast<VIPX_ATOMIC_DESCRIPTOR *>(l.a.desc(4));
			memset(d, 0, sizeof(*d));
			d->CS.Control = VIPX_CONTROL_OP_ATOMIC;
			d->CS.ImmediateData = VIPX_ATOMIC_ADD;
			d->CS.Length = 8;
			d->CS.SegCount = 2;
			d->Remote.Data.Address = w.p;
			d->Remote.Handle = w.h;
			d->Atomic.Operand = 1;
			l.post_a(reinterpret_cast<VIP_DESCRIPTOR *>(d));
			VIP_DESCRIPTOR *read = l.read_a({ l.seg_a(3000) }, { w.p, w.h });
			ASSERT_RC(VIP_SUCCESS, VipxFlush(*l.va, kWaitMs));
			EXPECT_EQ(turn, w.p[0]);
			EXPECT_TRUE(is_done(read));
			take_sends(*l.va, 2);
		}
	}
}

/*
 * Data by one VI, and the flag that announces it by another: only the flush between them keeps their
 * order, which a port that holds stores back would otherwise change.
 */
TEST(Flush, OrdersVis)
{
	for (auto &level : levels())
		for (size_t length : { 8ul, 5000ul }) {
			RULE(std::string(
				     "vipl_ext VipxFlush: a message of another VI comes behind, ") +
			     std::to_string(length) + " bytes, " + level.name);
			constexpr Word kTurns = 150;
			Link data(level.value), flag(level.value);
			Window at(data.nb), told(data.nb);
			Seg from = data.seg_a(length), number = flag.seg_a(8);
			auto *seen = reinterpret_cast<Word *>(told.p);
			std::atomic<Word> checked{ 0 };
			std::thread reader([&] {
				for (Word turn = 1; turn <= kTurns; turn++) {
					if (!eventually([&] {
						    return __atomic_load_n(
								   seen, __ATOMIC_ACQUIRE) >= turn;
					    }))
						break;
					EXPECT_TRUE(same(at.p, length, turn)) << turn;
					checked = turn;
				}
			});
			for (Word turn = 1; turn <= kTurns; turn++) {
				fill(from.p, length, turn);
				memcpy(number.p, &turn, sizeof(turn));
				data.write_a({ from }, { at.p, at.h });
				ASSERT_RC(VIP_SUCCESS, VipxFlush(*data.va, kWaitMs));
				flag.write_a({ number }, { told.p, told.h });
				ASSERT_RC(VIP_SUCCESS, VipxFlush(*flag.va, kWaitMs));
				take_sends(*data.va, 1);
				take_sends(*flag.va, 1);
				EXPECT_TRUE(eventually([&] { return checked == turn; }));
			}
			reader.join();
			EXPECT_EQ(kTurns, checked);
		}
}

TEST(Flush, MappedStores)
{
	if (hops() != 0)
		GTEST_SKIP() << "memory of another host cannot be mapped";
	RULE("vipl_ext VipxFlush: stores through a mapping, and loads behind the flush");
	/* If two threads each store and then load, at least one sees the other's store. */
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window w(l.nb);
	void *at = nullptr;
	ASSERT_RC(VIP_SUCCESS,
		  VipxMapRemote(*l.va, reinterpret_cast<uintptr_t>(w.p), 128, w.h, &at));
	auto *near = static_cast<std::atomic<Word> *>(at), *far = near + 8;
	for (Word turn = 1; turn < 2000; turn++) {
		std::atomic<int> ready{ 0 };
		Word saw[2];
		auto side = [&](std::atomic<Word> *mine, std::atomic<Word> *theirs,
				VIP_VI_HANDLE vi, Word *out) {
			ready++;
			while (ready != 2)
				;
			mine->store(turn, std::memory_order_relaxed);
			EXPECT_RC(VIP_SUCCESS, VipxFlush(vi, 0));
			*out = theirs->load(std::memory_order_relaxed);
		};
		std::thread other(side, far, near, l.vb->h, &saw[1]);
		side(near, far, *l.va, &saw[0]);
		other.join();
		EXPECT_TRUE(saw[0] == turn || saw[1] == turn);
	}
}

TEST(Flush, ManyThreads)
{
	RULE("vipl_ext VipxFlush: several threads post and flush");
	constexpr size_t kThreads = 4, kTurns = 200;
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window w(l.nb);
	Mem plain(l.nb, 4096, true, true);
	std::vector<std::thread> threads;
	std::vector<VIP_DESCRIPTOR *> write;
	std::vector<Word *> value;
	for (size_t t = 0; t < kThreads; t++) {
		Seg from = l.seg_a(8);
		char *to = t % 2 ? w.p + 8 * t : plain.data + 8 * t;
		value.push_back(static_cast<Word *>(from.p));
		write.push_back(make(l.a, VIP_CONTROL_OP_RDMAWRITE, { from },
				     Remote{ to, t % 2 ? w.h : plain.h }));
	}
	for (size_t t = 0; t < kThreads; t++)
		threads.emplace_back([&, t] {
			auto *to = static_cast<Word *>(write[t]->DS[0].Remote.Data.Address);
			for (Word turn = 1; turn <= kTurns; turn++) {
				*value[t] = turn;
				write[t]->CS.Status = 0;
				EXPECT_RC(VIP_SUCCESS, VipPostSend(*l.va, write[t], l.a.mem.h));
				ASSERT_RC(VIP_SUCCESS, VipxFlush(*l.va, kWaitMs));
				EXPECT_EQ(turn, __atomic_load_n(to, __ATOMIC_RELAXED));
				/* Any thread may take any thread's descriptor. */
				VIP_DESCRIPTOR *d = nullptr;
				EXPECT_RC(VIP_SUCCESS, VipSendDone(*l.va, &d));
			}
		});
	for (auto &t : threads)
		t.join();
}

TEST(Flush, PeerThatTakesNothing)
{
	for (VIP_ULONG timeout : { 0ul, 50ul }) {
		RULE("vipl_ext VipxFlush: not in time");
		LinkOptions o;
		o.max_transfer = 16u << 20;
		o.connected = false;
		Link l(VIP_SERVICE_RELIABLE_DELIVERY, o);
		pid_t pid = connect_stopped(*l.va);
		ASSERT_GT(pid, 0);
		EXPECT_RC(VIP_SUCCESS, VipxFlush(*l.va, timeout)) << "nothing was posted";
		l.send_a({ l.seg_a(8) });
		EXPECT_RC(VIP_TIMEOUT, VipxFlush(*l.va, timeout));
		EXPECT_RC(VIP_TIMEOUT, VipxFlush(*l.va, timeout));
		std::thread killer([&] { kill(pid, SIGKILL); });
		EXPECT_RC(VIP_INVALID_STATE, VipxFlush(*l.va, VIP_INFINITE));
		killer.join();
		EXPECT_EQ(-1, child_wait(pid));
		EXPECT_RC(VIP_INVALID_STATE, VipxFlush(*l.va, VIP_INFINITE));
	}
}

TEST(Flush, DisconnectedMeanwhile)
{
	for (bool own : { false, true }) {
		RULE(std::string("vipl_ext VipxFlush: the connection ends, by ") +
		     (own ? "this end" : "the other"));
		Link l(VIP_SERVICE_RELIABLE_RECEPTION);
		Window w(l.nb);
		for (int round = 0; round < 20; round++) {
			std::thread flushing([&] {
				VIP_RETURN rc;
				do {
					rc = VipxFlush(*l.va, kWaitMs);
				} while (rc == VIP_SUCCESS);
				EXPECT_RC(VIP_INVALID_STATE, rc);
			});
			for (int i = 0; i < 20; i++)
				l.write_a({ l.seg_a(64) }, { w.p, w.h });
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(own ? *l.va : *l.vb));
			flushing.join();
			for (Vi *vi : { l.va.get(), l.vb.get() }) {
				EXPECT_RC(VIP_SUCCESS, VipDisconnect(*vi));
				vi->drain();
			}
			connect(*l.va, *l.vb);
			l.a.used = 0;
		}
	}
}
