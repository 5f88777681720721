/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pthread_cancel(): a thread is cancelled where it waits and nowhere else.  The objects of its wait stay
 * usable: each test closes its NICs, which is refused while a call is left in its middle.
 */
#include "harness.h"

#include <algorithm>
#include <atomic>
#include <random>

#include <pthread.h>

using namespace conf;

namespace {

/* A thread that may be cancelled. */
struct Thread {
	explicit Thread(std::function<void()> w) : work(std::move(w))
	{
		EXPECT_EQ(0, pthread_create(&id, nullptr, run, this));
	}
	/* Was it cancelled? */
	bool cancel()
	{
		void *result = nullptr;
		EXPECT_EQ(0, pthread_cancel(id));
		EXPECT_EQ(0, pthread_join(id, &result));
		return result == PTHREAD_CANCELED;
	}
	static void *run(void *self)
	{
		static_cast<Thread *>(self)->work();
		return nullptr;
	}
	std::function<void()> work;
	pthread_t id{};
};

uint64_t seed()
{
	const char *text = getenv("VIADUCT_SEED");
	return text ? strtoull(text, nullptr, 10) : 4711;
}

/* Lets a thread run to a random place. */
struct Dice {
	explicit Dice() : value(seed()), random(value) {}
	void wait()
	{
		static const int most[] = { 1, 20, 200, 2000 };
		int us = static_cast<int>(random() % static_cast<unsigned>(most[random() % 4]));
		auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
		do
			std::this_thread::yield();
		while (std::chrono::steady_clock::now() < end);
	}
	uint64_t value;
	std::mt19937_64 random;
};

constexpr int kTurns = 40;

/* Makes the calls of a program that does not wait, up to the last. */
void live(Nic &na, Nic &nb, Arena &a, Arena &b, std::atomic<int> &step)
{
	VIP_PROTECTION_HANDLE tag;
	VIP_MEM_HANDLE h;
	VIP_MEM_ATTRIBUTES open = { nullptr, VIP_TRUE, VIP_FALSE };
	VIP_PVOID at;
	VIP_NIC_HANDLE own;
	int fd;
	EXPECT_RC(VIP_SUCCESS, VipOpenNic(device(0), &own));
	step = 1;
	EXPECT_RC(VIP_SUCCESS,
		  VipErrorCallback(own, nullptr, [](VIP_PVOID, VIP_ERROR_DESCRIPTOR *) {}));
	EXPECT_RC(VIP_SUCCESS, VipCreatePtag(own, &tag));
	EXPECT_RC(VIP_SUCCESS, VipDestroyPtag(own, tag));
	EXPECT_RC(VIP_SUCCESS, VipRegisterMem(own, a.mem.data, 64, nullptr, &h));
	EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(own, a.mem.data, h, &open));
	EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(own, a.mem.data, h));
	EXPECT_RC(VIP_SUCCESS, VipxAllocMem(own, 4096, &open, &at, &h));
	EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(own, at, h, &open));
	EXPECT_RC(VIP_SUCCESS, VipxFreeMem(own, at, h));
	EXPECT_RC(VIP_SUCCESS, VipNSInit(own, nullptr));
	Addr host(na, ""), at_a(na, unique_disc()), at_b(nb, unique_disc());
	VIP_CHAR name[64] = "";
	VIP_ULONG length = sizeof(name);
	EXPECT_RC(VIP_SUCCESS, VipNSGetHostByAddr(own, host, name, &length));
	EXPECT_RC(VIP_SUCCESS, VipNSGetHostByName(own, name, host, 0));
	VIP_AUTODISCOVERY_LIST list = { 9, nullptr, 0 };
	EXPECT_RC(VIP_SUCCESS, VipQuerySystemManagementInfo(own, VIP_SMI_AUTODISCOVERY, &list));
	VIPX_ROUTE route{};
	route.Size = sizeof(route);
	EXPECT_RC(VIP_SUCCESS, VipxQueryRoute(own, host, &route));
	EXPECT_RC(VIP_SUCCESS, VipCloseNic(own));
	step = 2;
	{
		Cq cq(nb);
		Vi va(na, vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY));
		Vi vb(nb, vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY), nullptr, cq);
		VIP_VI_ATTRIBUTES seen;
		VIP_DESCRIPTOR *in = make(b, 0, { { b.bytes(8), b.mem.h, 8 } }), *got = nullptr;
		VIP_DESCRIPTOR *out = make(a, 0, { { a.bytes(8), a.mem.h, 8 } });
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN is_recv;
		EXPECT_RC(VIP_SUCCESS, VipxCQFd(cq, &fd));
		EXPECT_RC(VIP_SUCCESS, VipPostRecv(vb, in, b.mem.h));
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerRequest(va, at_a, at_b, kWaitMs));
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerRequest(vb, at_b, at_a, kWaitMs));
		for (VIP_VI_HANDLE v : { va.h, vb.h })
			EXPECT_TRUE(eventually(
				[&] { return VipConnectPeerDone(v, &seen) == VIP_SUCCESS; }));
		step = 3;
		EXPECT_RC(VIP_SUCCESS, VipxCQArm(cq));
		EXPECT_RC(VIP_SUCCESS, VipPostSend(va, out, a.mem.h));
		EXPECT_TRUE(
			eventually([&] { return VipCQDone(cq, &vi, &is_recv) == VIP_SUCCESS; }));
		EXPECT_RC(VIP_SUCCESS, VipRecvDone(vb, &got));
		EXPECT_EQ(in, got);
		EXPECT_TRUE(eventually([&] { return VipSendDone(va, &got) == VIP_SUCCESS; }));
		/* Waiting calls do not wait if there is something to take. */
		EXPECT_RC(VIP_SUCCESS,
			  VipPostRecv(va, in = make(a, 0, { { a.bytes(8), a.mem.h, 8 } }),
				      a.mem.h));
		EXPECT_RC(VIP_SUCCESS,
			  VipPostSend(vb, make(b, 0, { { b.bytes(8), b.mem.h, 8 } }), b.mem.h));
		EXPECT_TRUE(eventually([&] { return is_done(in) || VipxProgress(na.h) == 99; }));
		EXPECT_RC(VIP_SUCCESS, VipRecvWait(va, VIP_INFINITE, &got));
		EXPECT_EQ(in, got);
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(va));
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(vb));
	}
	step = 4;
}

/* Numbers that come in messages of a connection, taken by threads that are cancelled. */
struct Numbers {
	void got(VIP_RETURN rc, VIP_DESCRIPTOR *desc)
	{
		uint64_t n = ~0u;
		EXPECT_RC(VIP_SUCCESS, rc);
		if (desc)
			memcpy(&n, desc->DS[0].Local.Data.Address, sizeof(n));
		list.push_back(n);
		count = list.size();
	}
	std::vector<uint64_t> list;
	std::atomic<size_t> count{ 0 };
};

constexpr size_t kNumbers = 400;

/* Sends numbers while threads that take them by `take` come and go. */
void taken_by_cancelled(Link &l, const std::function<void(Numbers &)> &take)
{
	Dice dice;
	SCOPED_TRACE("VIADUCT_SEED=" + std::to_string(dice.value));
	Numbers numbers;
	size_t sent = 0;
	int cancelled = 0;
	for (size_t i = 0; i < kNumbers; i++)
		l.recv_b(8);
	auto send = [&] {
		Seg seg = l.seg_a(8);
		uint64_t n = sent++;
		memcpy(seg.p, &n, sizeof(n));
		l.send_a({ seg });
	};
	while (sent < kNumbers) {
		Thread thread([&] {
			for (;;)
				take(numbers);
		});
		for (int i = 0; i < 5 && sent < kNumbers; i++) {
			send();
			dice.wait();
		}
		/* Now and then the thread has time to go to sleep. */
		if (sent % 25 == 0)
			eventually([&] { return numbers.count == sent; });
		cancelled += thread.cancel();
	}
	EXPECT_GT(cancelled, 0);
	Thread last([&] {
		for (;;)
			take(numbers);
	});
	EXPECT_TRUE(eventually([&] { return numbers.count == kNumbers; }));
	EXPECT_TRUE(last.cancel());
	ASSERT_EQ(kNumbers, numbers.list.size());
	for (size_t i = 0; i < kNumbers; i++)
		ASSERT_EQ(i, numbers.list[i]);
	while (take_send(*l.va, 0))
		;
}

/* Two VIs that are to be connected, each on a NIC of its own. */
class CancelConnecting : public ::testing::Test {
protected:
	Dice dice;
	testing::ScopedTrace trace{ __FILE__, __LINE__,
				    "VIADUCT_SEED=" + std::to_string(dice.value) };
	Nic na{ 0 }, nb{ 1 };
	Vi a{ na, vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY) },
		b{ nb, vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY) };
};

} // namespace

TEST(Cancel, OnlyWhereItWaits)
{
	RULE("vipl.h, threads: no call but those that wait is a cancellation point");
	Nic na(0), nb(1);
	Arena a(na), b(nb);
	std::atomic<int> step{ 0 };
	Thread thread([&] {
		pthread_cancel(pthread_self());
		live(na, nb, a, b, step);
		pthread_testcancel();
		step = 5;
	});
	EXPECT_TRUE(thread.cancel());
	EXPECT_EQ(4, step) << "cancelled behind this step";
}

TEST(Cancel, InRecvWait)
{
	RULE("vipl.h, threads: VipRecvWait is cancelled while it waits, no completion is lost");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	taken_by_cancelled(l, [&](Numbers &numbers) {
		VIP_DESCRIPTOR *desc;
		VIP_RETURN rc = VipRecvWait(*l.vb, VIP_INFINITE, &desc);
		/* All messages were taken. */
		if (rc == VIP_DESCRIPTOR_ERROR && desc == nullptr)
			pthread_testcancel();
		else
			numbers.got(rc, desc);
	});
	EXPECT_TRUE(l.unbroken());
}

TEST(Cancel, InCqWait)
{
	RULE("vipl.h, threads: VipCQWait is cancelled while it waits, no entry is lost");
	Cq cq(nic(1), kNumbers);
	LinkOptions options;
	options.b_rcq = cq;
	Link l(VIP_SERVICE_RELIABLE_DELIVERY, options);
	taken_by_cancelled(l, [&](Numbers &numbers) {
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN is_recv;
		VIP_DESCRIPTOR *desc = nullptr;
		EXPECT_RC(VIP_SUCCESS, VipCQWait(cq, VIP_INFINITE, &vi, &is_recv));
		VIP_RETURN rc = VipRecvDone(vi, &desc);
		numbers.got(rc, desc);
	});
	EXPECT_EQ(VIP_STATE_CONNECTED, l.vb->state());
}

TEST(Cancel, InSendWait)
{
	RULE("vipl.h, threads: VipSendWait is cancelled while it waits");
	Dice dice;
	SCOPED_TRACE("VIADUCT_SEED=" + std::to_string(dice.value));
	Link l(VIP_SERVICE_RELIABLE_RECEPTION);
	size_t length = 1u << 20;
	Mem from(l.na, length), to(l.nb, length);
	for (int i = 0; i < kTurns; i++) {
		/* No thread polls at b: the send is under way for a while. */
		std::atomic<bool> taken{ false };
		VIP_DESCRIPTOR *in = make(l.b, 0, { { to.data, to.h, length } });
		l.post_recv_b(in);
		VIP_DESCRIPTOR *out = l.send_a({ { from.data, from.h, length } });
		Thread thread([&] {
			VIP_DESCRIPTOR *desc;
			EXPECT_RC(VIP_SUCCESS, VipSendWait(*l.va, VIP_INFINITE, &desc));
			taken = true;
		});
		dice.wait();
		thread.cancel();
		EXPECT_EQ(in, take_recv(*l.vb));
		if (!taken)
			EXPECT_EQ(out, take_send(*l.va));
	}
	EXPECT_TRUE(l.unbroken());
}

TEST(Cancel, InFlush)
{
	RULE("vipl.h, threads: VipxFlush is cancelled while it waits, and can be called again");
	Dice dice;
	SCOPED_TRACE("VIADUCT_SEED=" + std::to_string(dice.value));
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	size_t length = 1u << 20;
	Mem from(l.na, length), to(l.nb, length);
	for (int i = 0; i < kTurns; i++) {
		VIP_DESCRIPTOR *in = make(l.b, 0, { { to.data, to.h, length } });
		l.post_recv_b(in);
		VIP_DESCRIPTOR *out = l.send_a({ { from.data, from.h, length } });
		Thread thread([&] { EXPECT_RC(VIP_SUCCESS, VipxFlush(*l.va, VIP_INFINITE)); });
		dice.wait();
		thread.cancel();
		EXPECT_RC(VIP_SUCCESS, VipxFlush(*l.va, kWaitMs));
		EXPECT_TRUE(is_done(in));
		EXPECT_EQ(in, take_recv(*l.vb));
		EXPECT_EQ(out, take_send(*l.va));
	}
	EXPECT_TRUE(l.unbroken());
}

TEST_F(CancelConnecting, InConnectWait)
{
	RULE("vipl.h, threads: VipConnectWait is cancelled while it waits; others connect afterwards");
	std::string disc = unique_disc();
	Addr here(nb, disc), local(na, "cancel");
	std::atomic<bool> stop{ false };
	std::atomic<int> answers{ 0 };
	std::thread client([&] {
		VIP_VI_ATTRIBUTES theirs;
		while (!stop) {
			VIP_RETURN rc = VipConnectRequest(a, local, here, kWaitMs, &theirs);
			EXPECT_TRUE(rc == VIP_NO_MATCH || rc == VIP_REJECT) << name_of(rc);
			answers++;
		}
	});
	for (int i = 0; i < kTurns; i++) {
		VIP_CONN_HANDLE request = nullptr;
		Thread thread([&] {
			Addr from(nb, "");
			VIP_VI_ATTRIBUTES seen;
			EXPECT_RC(VIP_SUCCESS,
				  VipConnectWait(nb.h, here, VIP_INFINITE, from, &seen, &request));
		});
		dice.wait();
		bool cancelled = thread.cancel();
		EXPECT_EQ(cancelled, request == nullptr);
		if (request)
			EXPECT_RC(VIP_SUCCESS, VipConnectReject(request));
	}
	stop = true;
	client.join();
	EXPECT_GT(answers, 0);
	connect(a, b);
}

TEST_F(CancelConnecting, InConnectRequest)
{
	RULE("vipl.h, threads: VipConnectRequest is cancelled while it waits, the VI is Idle then");
	Addr here(nb, unique_disc()), local(na, "cancel");
	for (int i = 0; i < kTurns; i++) {
		bool accept = i & 1;
		std::atomic<bool> over{ false }, linked{ false };
		std::thread server([&] {
			VIP_VI_ATTRIBUTES seen;
			VIP_CONN_HANDLE request;
			Addr from(nb, "");
			while (!over) {
				if (VipConnectWait(nb.h, here, 5, from, &seen, &request) !=
				    VIP_SUCCESS)
					continue;
				if (accept)
					VipConnectAccept(request, b);
				else
					while (!over)
						std::this_thread::yield();
				if (!accept)
					VipConnectReject(request);
				else
					VipDisconnect(b);
			}
		});
		Thread thread([&] {
			VIP_VI_ATTRIBUTES theirs;
			VIP_RETURN rc;
			do
				rc = VipConnectRequest(a, local, here, kWaitMs, &theirs);
			while (rc == VIP_NO_MATCH || rc == VIP_TIMEOUT);
			linked = rc == VIP_SUCCESS;
		});
		dice.wait();
		thread.cancel();
		over = true;
		server.join();
		if (linked)
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(a));
		EXPECT_EQ(VIP_STATE_IDLE, a.state());
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(b));
	}
	connect(a, b);
}

TEST_F(CancelConnecting, InPeerWait)
{
	RULE("vipl.h, threads: VipConnectPeerWait is cancelled while it waits, the request goes on");
	Addr at_a(na, unique_disc()), at_b(nb, unique_disc());
	ASSERT_RC(VIP_SUCCESS, VipConnectPeerRequest(a, at_a, at_b, kWaitMs));
	VIP_VI_ATTRIBUTES seen;
	for (int i = 0; i < kTurns; i++) {
		Thread thread([&] {
			VIP_VI_ATTRIBUTES theirs;
			VipConnectPeerWait(a, &theirs);
			ADD_FAILURE() << "nobody answers yet";
		});
		dice.wait();
		EXPECT_TRUE(thread.cancel());
	}
	EXPECT_RC(VIP_NOT_DONE, VipConnectPeerDone(a, &seen));
	ASSERT_RC(VIP_SUCCESS, VipConnectPeerRequest(b, at_b, at_a, kWaitMs));
	EXPECT_RC(VIP_SUCCESS, VipConnectPeerWait(a, &seen));
	EXPECT_RC(VIP_SUCCESS, VipConnectPeerWait(b, &seen));
}

/* In each mode of waiting: a process reads VIADUCT_WAIT once, so each mode has a process of its own. */
TEST(Cancel, InEveryMode)
{
	for (const char *mode : { "spin", "yield", "block" }) {
		RULE(std::string("vipl.h, threads: a wait is cancelled with VIADUCT_WAIT=") + mode);
		EXPECT_EQ(0, child_wait(spawn_child("cancel", "",
						    { std::string("VIADUCT_WAIT=") + mode })));
	}
}
