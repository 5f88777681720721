/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Window memory that the peer stores into directly: all rules of an RDMA write hold, and the
 * right to store ends before the call that ends it returns.
 */
#include "writer.h"

#include <atomic>

#include <signal.h>
#include <sys/wait.h>

using namespace conf;

namespace {

constexpr size_t kWindow = 1u << 16;

/* Window memory of side b. */
struct Window {
	explicit Window(Link &l, bool write = true, VIP_PROTECTION_HANDLE tag = nullptr) : nic(l.nb)
	{
		VIP_MEM_ATTRIBUTES attrs = { tag, write, VIP_TRUE };
		VIP_PVOID at = nullptr;
		EXPECT_RC(VIP_SUCCESS, VipxAllocMem(nic.h, kWindow, &attrs, &at, &h));
		p = static_cast<char *>(at);
	}
	~Window() { end(); }
	Window(const Window &) = delete;
	void end()
	{
		if (p != nullptr)
			EXPECT_RC(VIP_SUCCESS, VipxFreeMem(nic.h, p, h));
		p = nullptr;
	}
	void open(bool write, VIP_PROTECTION_HANDLE tag = nullptr)
	{
		VIP_MEM_ATTRIBUTES attrs = { tag, write, VIP_TRUE };
		EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(nic.h, p, h, &attrs));
	}
	::testing::AssertionResult only(char value) const
	{
		for (size_t i = 0; i < kWindow; i++)
			if (p[i] != value)
				return ::testing::AssertionFailure() << "byte " << i << " changed";
		return ::testing::AssertionSuccess();
	}
	Nic &nic;
	char *p = nullptr;
	VIP_MEM_HANDLE h = 0;
};

class GrantedWindow : public ::testing::Test {
protected:
	void SetUp() override
	{
		if (hops() > 1)
			GTEST_SKIP() << "memory is given to neighbours only";
	}
};

} // namespace

/* Over relays writes arrive all the same, but always through slots. */
TEST(RelayedWindow, WritesGoThroughSlots)
{
	if (hops() < 2)
		GTEST_SKIP() << "this is about hosts that are no neighbours";
	RULE("VIPL 8: window memory of a host that is no neighbour is written through slots");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window window(l);
	Writer w(l, 64);
	for (int i = 0; i < 100; i++)
		EXPECT_FALSE(w.direct(window.p, window.h));
}

TEST_F(GrantedWindow, WritesLandInOrder)
{
	for (auto &level : levels())
		for (size_t length : { 1, 8, 63, 64, 65, 4096, 50000 }) {
			RULE(std::string(
				     "VIPL 8: a granted write is there before the send behind it, ") +
			     level.name);
			Link l(level.value);
			Window window(l);
			Writer w(l, length);
			ASSERT_TRUE(w.warm(window.p, window.h));
			for (int turn = 0; turn < 20; turn++) {
				memset(window.p, 0, kWindow);
				VIP_DESCRIPTOR *recv = l.recv_b(4);
				l.post_a(w.desc);
				l.send_a({ l.seg_a(4) });
				ASSERT_EQ(recv, take_recv(*l.vb));
				EXPECT_TRUE(same(window.p, length, 9));
				EXPECT_EQ(0, window.p[length]);
				EXPECT_EQ(w.desc, take_send(*l.va));
				EXPECT_NE(nullptr, take_send(*l.va));
			}
			EXPECT_TRUE(w.warm(window.p, window.h)) << "after sends it is direct again";
		}
}

TEST_F(GrantedWindow, CountsAsWritesThroughSlotsDo)
{
	RULE("vipl_ext VipxQueryCounters: a write counts the same whichever way it goes");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Window window(l);
	Writer w(l, 100);
	ASSERT_TRUE(w.warm(window.p, window.h));
	VIPX_COUNTERS before = w.counters();
	for (int i = 0; i < 10; i++)
		EXPECT_TRUE(w.direct(window.p, window.h));
	VIPX_COUNTERS after = w.counters();
	EXPECT_EQ(10u, after.RdmaWrites - before.RdmaWrites);
	EXPECT_EQ(10u, after.MessagesSent - before.MessagesSent);
	EXPECT_EQ(1000u, after.BytesSent - before.BytesSent);
	EXPECT_EQ(10u, after.SendsPosted - before.SendsPosted);
	EXPECT_EQ(0u, after.SlotsSent - before.SlotsSent);
	EXPECT_EQ(before.RdmaWrites, before.SlotsSent + 1) << "all but the last were not direct";
}

TEST_F(GrantedWindow, BoundsHoldAfterTheGrant)
{
	for (auto &level : levels())
		for (ptrdiff_t off : { -1, -100, static_cast<int>(kWindow) - 99,
				       static_cast<int>(kWindow), 1 << 30 }) {
			RULE("VIPL 8: a granted write outside of the region is refused, by " +
			     std::to_string(off) + ", " + level.name);
			Link l(level.value);
			Window window(l);
			Writer w(l, 100);
			ASSERT_TRUE(w.warm(window.p, window.h));
			memset(window.p, 3, kWindow);
			expect_refused(l, level, w, window.p + off, window.h);
			EXPECT_TRUE(window.only(3));
		}
}

TEST_F(GrantedWindow, RightsEndWithTheCall)
{
	enum Path { ATTRIBUTES, TAG, FREED, METHODS };
	for (auto &level : levels())
		for (int method = 0; method < METHODS; method++) {
			RULE(std::string(
				     "VIPL 8: a granted write is refused once the right is gone, ") +
			     (method == ATTRIBUTES ? "VipSetMemAttributes: no RDMA write, "
			      : method == TAG	   ? "VipSetMemAttributes: another tag, "
						   : "VipxFreeMem, ") +
			     level.name);
			LinkOptions o;
			o.with_ptags = true;
			Link l(level.value, o);
			Window window(l, true, l.tag_b());
			Ptag other(l.nb);
			Writer w(l, 100);
			ASSERT_TRUE(w.warm(window.p, window.h));
			char *p = window.p;
			if (method == ATTRIBUTES)
				window.open(false, l.tag_b());
			else if (method == TAG)
				window.open(true, other);
			else
				window.end();
			if (method != FREED)
				memset(p, 3, kWindow);
			expect_refused(l, level, w, p, window.h);
			if (method != FREED)
				EXPECT_TRUE(window.only(3));
			window.end();
		}
}

TEST_F(GrantedWindow, GrantedAgainAfterAChange)
{
	RULE("vipl_ext VipxAllocMem: attributes that still allow a write are granted again");
	Link l(VIP_SERVICE_RELIABLE_RECEPTION);
	Window window(l);
	Writer w(l, 100);
	for (int i = 0; i < 10; i++) {
		ASSERT_TRUE(w.warm(window.p, window.h));
		window.open(true);
		EXPECT_FALSE(w.direct(window.p, window.h));
	}
}

TEST_F(GrantedWindow, ClosedWhileThePeerWrites)
{
	RULE("VIPL 8: no byte changes after VipSetMemAttributes has returned");
	Link l(VIP_SERVICE_UNRELIABLE);
	Window window(l);
	Writer w(l, 4096);
	ASSERT_TRUE(w.warm(window.p, window.h));
	std::atomic<bool> stop{ false };
	std::thread writer([&] {
		while (!stop)
			w.write(window.p, window.h);
	});
	for (int round = 0; round < 20; round++) {
		window.open(false);
		memset(window.p, round, kWindow);
		for (int look = 0; look < 20; look++)
			EXPECT_TRUE(window.only(static_cast<char>(round)));
		window.open(true);
		EXPECT_TRUE(eventually([&] {
			return __atomic_load_n(window.p + 1, __ATOMIC_RELAXED) != round ||
			       __atomic_load_n(window.p + 2, __ATOMIC_RELAXED) != round;
		}));
	}
	stop = true;
	writer.join();
}

TEST_F(GrantedWindow, DisconnectTakesItBack)
{
	for (auto &level : levels()) {
		RULE(std::string("vipl VipDisconnect: the peer stores nothing after the return, ") +
		     level.name);
		Link l(level.value);
		Window window(l);
		Writer w(l, 100);
		for (int generation = 0; generation < 3; generation++) {
			ASSERT_TRUE(w.warm(window.p, window.h)) << generation;
			std::atomic<bool> stop{ false };
			std::thread writer([&] {
				while (!stop) {
					l.post_a(w.desc);
					if (take_send(*l.va) == nullptr)
						break;
				}
			});
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.vb));
			memset(window.p, 5, kWindow);
			EXPECT_TRUE(l.va->reaches(VIP_STATE_ERROR));
			stop = true;
			writer.join();
			EXPECT_TRUE(window.only(5));
			l.vb->drain();
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.va));
			l.va->drain();
			connect(*l.va, *l.vb);
		}
	}
}

TEST_F(GrantedWindow, ManyRegions)
{
	RULE("vipl_ext VipxAllocMem: more window memory than a VI can hold grants of");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	std::vector<std::unique_ptr<Window>> windows;
	Writer w(l, 500);
	for (int i = 0; i < 24; i++)
		windows.push_back(std::make_unique<Window>(l));
	for (int round = 0; round < 20; round++)
		for (auto &window : windows)
			EXPECT_EQ(VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE,
				  w.write(window->p + round * 512, window->h));
	EXPECT_TRUE(l.works());
	for (auto &window : windows)
		for (int round = 0; round < 20; round++)
			EXPECT_TRUE(same(window->p + round * 512, 500, 9));
	EXPECT_TRUE(w.warm(windows[0]->p, windows[0]->h));
}

TEST_F(GrantedWindow, StoppedPeerIsCutOff)
{
	RULE("vipl_ext VipxAllocMem: a peer that does not give memory back loses its connection");
	VIP_MEM_ATTRIBUTES attrs = { nullptr, VIP_TRUE, VIP_FALSE };
	VIP_PVOID p;
	VIP_MEM_HANDLE h;
	ASSERT_RC(VIP_SUCCESS, VipxAllocMem(nic(0).h, kWindow, &attrs, &p, &h));
	Vi server(nic(0), writable());
	std::string disc = unique_disc();
	nic(0).clear();
	pid_t pid = spawn_child("store-and-stop",
				disc + ":" + std::to_string(reinterpret_cast<uintptr_t>(p)) + ":" +
					std::to_string(h));
	ASSERT_GT(pid, 0);
	accept_one(server, disc);
	/* The child stops when its writes have become stores. */
	int status = 0;
	ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status)) << status;
	attrs.EnableRdmaWrite = VIP_FALSE;
	EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(nic(0).h, p, h, &attrs));
	EXPECT_EQ(VIP_STATE_ERROR, server.state());
	EXPECT_TRUE(nic(0).wait_event(VIP_ERROR_CONN_LOST, server.h));
	memset(p, 7, kWindow);
	/* When it continues it finds its connection lost. */
	EXPECT_EQ(0, kill(pid, SIGCONT));
	EXPECT_EQ(0, child_wait(pid));
	for (size_t i = 0; i < kWindow; i++)
		ASSERT_EQ(7, static_cast<char *>(p)[i]) << i;
	EXPECT_RC(VIP_SUCCESS, VipxFreeMem(nic(0).h, p, h));
}

TEST_F(GrantedWindow, KilledPeer)
{
	for (int turn = 0; turn < 3; turn++) {
		RULE("vipl_ext VipxAllocMem: a peer that dies with a grant keeps nobody waiting");
		VIP_MEM_ATTRIBUTES attrs = { nullptr, VIP_TRUE, VIP_FALSE };
		VIP_PVOID p;
		VIP_MEM_HANDLE h;
		ASSERT_RC(VIP_SUCCESS, VipxAllocMem(nic(0).h, kWindow, &attrs, &p, &h));
		Vi server(nic(0), writable());
		std::string disc = unique_disc();
		pid_t pid = spawn_child(
			"store", disc + ":" + std::to_string(reinterpret_cast<uintptr_t>(p)) + ":" +
					 std::to_string(h));
		ASSERT_GT(pid, 0);
		accept_one(server, disc);
		/* A thread that polls sees its stores. */
		auto *word = static_cast<uint64_t *>(p);
		uint64_t seen = 0;
		for (int i = 0; i < 100; i++) {
			ASSERT_TRUE(eventually(
				[&] { return __atomic_load_n(word, __ATOMIC_ACQUIRE) > seen; }));
			seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		}
		kill(pid, SIGKILL);
		if (turn == 0)
			EXPECT_RC(VIP_SUCCESS, VipxFreeMem(nic(0).h, p, h));
		EXPECT_EQ(-1, child_wait(pid));
		EXPECT_TRUE(server.reaches(VIP_STATE_ERROR));
		if (turn == 1)
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(server));
		if (turn != 0) {
			attrs.EnableRdmaWrite = VIP_FALSE;
			EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(nic(0).h, p, h, &attrs));
			EXPECT_RC(VIP_SUCCESS, VipxFreeMem(nic(0).h, p, h));
		}
	}
}
