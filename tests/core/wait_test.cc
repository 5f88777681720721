/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting: timeouts, wake-ups, which thread gets which completion. */
#include <atomic>
#include <string>

#include "core_fixture.h"

namespace {

enum { SPIN, YIELD, BLOCK, ADAPTIVE };

class Wait : public CoreTest, public testing::WithParamInterface<int> {
protected:
	VIP_VI_HANDLE vi = nullptr;

	void SetUp() override
	{
		CoreTest::SetUp();
		fake_wait_mode(nic, GetParam());
		vi = create_vi();
		fake_connect(vi);
	}

	void TearDown() override
	{
		destroy_vi(vi);
		CoreTest::TearDown();
	}
};

TEST_P(Wait, TimeoutZeroPollsOnce)
{
	VIP_DESCRIPTOR *d = desc(9);

	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	EXPECT_EQ(VIP_TIMEOUT, VipRecvWait(vi, 0, &d));
	EXPECT_EQ(nullptr, d);
	EXPECT_EQ(1u, fake_progress_calls());
	EXPECT_EQ(0u, fake_arms());
}

TEST_P(Wait, EmptyQueueAnswersAtOnce)
{
	VIP_DESCRIPTOR *d = desc(9);

	EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvWait(vi, VIP_INFINITE, &d));
	EXPECT_EQ(nullptr, d);
	EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendWait(vi, ~0ul, &d));
}

TEST_P(Wait, TimesOut)
{
	VIP_DESCRIPTOR *d = desc(9);
	auto before = std::chrono::steady_clock::now();

	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	EXPECT_EQ(VIP_TIMEOUT, VipRecvWait(vi, 20, &d));
	EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(20));
	EXPECT_EQ(nullptr, d);
}

TEST_P(Wait, QueueWithACqIsRefused)
{
	VIP_CQ_HANDLE cq = create_cq();
	VIP_VI_HANDLE other = create_vi(nullptr, cq);
	VIP_DESCRIPTOR *d;

	EXPECT_EQ(VIP_INVALID_PARAMETER, VipRecvWait(other, 0, &d));
	EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendWait(other, 0, &d));
	destroy_vi(other);
	EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(cq));
}

/* Another thread of the process completes what the wait is for: no poll and no packet helps. */
TEST_P(Wait, CompletionByAnotherThreadEndsTheWait)
{
	for (unsigned i = 0; i < 200; i++) {
		VIP_DESCRIPTOR *d = nullptr;

		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, i));
		std::thread completer([&] { fake_complete_at(vi, 1, i, VIP_STATUS_OP_RECEIVE); });
		EXPECT_EQ(VIP_SUCCESS, VipRecvWait(vi, 10000, &d));
		EXPECT_EQ(desc(i), d);
		completer.join();
	}
}

/* The completion comes in the gap between the last check and the sleep. */
TEST_P(Wait, NoWakeUpIsLostAtTheEdgeOfSleep)
{
	VIP_DESCRIPTOR *d = nullptr;

	if (GetParam() != BLOCK && GetParam() != ADAPTIVE)
		GTEST_SKIP() << "does not sleep";
	for (unsigned i = 0; i < 50; i++) {
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, i));
		fake_on_sleep([](void *v) { fake_complete(v, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0); },
			      vi);
		ASSERT_EQ(VIP_SUCCESS, VipRecvWait(vi, VIP_INFINITE, &d));
		ASSERT_EQ(desc(i), d);
	}
	EXPECT_EQ(50u, fake_wakes());
	EXPECT_EQ(0u, fake_unrung());
}

/* A thread that goes on yielding while others compute gets less processor time than they do. */
TEST_P(Wait, SleepsUnderContention)
{
	VIP_DESCRIPTOR *d = nullptr;

	if (GetParam() == SPIN)
		GTEST_SKIP() << "never sleeps";
	for (unsigned i = 0; i < 50; i++) {
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, i));
		fake_contention(nic, 1);
		fake_on_sleep([](void *v) { fake_complete(v, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0); },
			      vi);
		ASSERT_EQ(VIP_SUCCESS, VipRecvWait(vi, 10000, &d))
			<< "nothing comes but to a sleeper";
		ASSERT_EQ(desc(i), d);
	}
	EXPECT_EQ(50u, fake_wakes());
	EXPECT_EQ(0u, fake_unrung());
}

TEST_P(Wait, CqNoWakeUpIsLostAtTheEdgeOfSleep)
{
	VIP_CQ_HANDLE cq = create_cq();
	VIP_VI_HANDLE with_cq = create_vi(nullptr, cq);
	VIP_VI_HANDLE out;
	VIP_BOOLEAN recv;

	fake_connect(with_cq);
	for (unsigned i = 0; i < 50; i++) {
		ASSERT_EQ(VIP_SUCCESS, post_recv(with_cq, i));
		std::thread completer(
			[&] { fake_complete_at(with_cq, 1, i, VIP_STATUS_OP_RECEIVE); });
		ASSERT_EQ(VIP_SUCCESS, VipCQWait(cq, 10000, &out, &recv));
		EXPECT_EQ(with_cq, out);
		EXPECT_EQ(VIP_TRUE, recv);
		completer.join();
	}
	EXPECT_EQ(VIP_TIMEOUT, VipCQWait(cq, 0, &out, &recv));
	EXPECT_EQ(VIP_TIMEOUT, VipCQWait(cq, 1, &out, &recv));
	destroy_vi(with_cq);
	EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(cq));
}

TEST_P(Wait, DisconnectEndsTheWait)
{
	VIP_DESCRIPTOR *d = nullptr;
	std::atomic<bool> waiting{ false };

	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	fake_on_progress_vi([](VIP_VI_HANDLE,
			       void *w) { *static_cast<std::atomic<bool> *>(w) = true; },
			    &waiting);
	std::thread other([&] {
		EXPECT_TRUE(eventually([&] { return waiting.load(); }));
		VipDisconnect(vi);
	});
	EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvWait(vi, VIP_INFINITE, &d));
	EXPECT_EQ(desc(0), d);
	other.join();
}

/* A thread in a wait holds its VI; Done does not wait for it. */
TEST_P(Wait, DestroyIsRefusedWhileAThreadWaits)
{
	VIP_DESCRIPTOR *d = nullptr;
	std::atomic<bool> waiting{ false };

	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	fake_on_progress_vi([](VIP_VI_HANDLE,
			       void *w) { *static_cast<std::atomic<bool> *>(w) = true; },
			    &waiting);
	std::thread waiter([&] {
		VIP_DESCRIPTOR *mine = nullptr;

		EXPECT_EQ(VIP_SUCCESS, VipRecvWait(vi, VIP_INFINITE, &mine));
		EXPECT_EQ(desc(0), mine);
	});
	ASSERT_TRUE(eventually([&] { return waiting.load(); }));
	EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(vi, &d));
	EXPECT_EQ(VIP_INVALID_STATE, VipDestroyVi(vi));
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipCloseNic(nic));
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	waiter.join();
}

/* Stops a thread inside its wait, with no lock held, until the test lets it go. */
struct Inside {
	std::atomic<bool> there{ false }, go{ false };
	static void hold(void *arg)
	{
		auto *self = static_cast<Inside *>(arg);

		self->there = true;
		EXPECT_TRUE(eventually([&] { return self->go.load(); }));
	}
};

/* The VI is idle, with empty queues: only the thread that has not come back keeps it. */
TEST_P(Wait, DestroyOfAnEmptyViIsRefusedWhileAThreadIsInside)
{
	for (int recv = 0; recv < 2; recv++) {
		VIP_VI_HANDLE other = create_vi();
		VIP_DESCRIPTOR *d = nullptr;
		Inside inside;

		fake_connect(other);
		ASSERT_EQ(VIP_SUCCESS, recv ? post_recv(other, 0) : post_send(other, 0));
		fake_on_progress_vi([](VIP_VI_HANDLE, void *arg) { Inside::hold(arg); }, &inside);
		std::thread waiter([&] {
			VIP_DESCRIPTOR *mine = desc(7);

			EXPECT_EQ(VIP_DESCRIPTOR_ERROR,
				  recv ? VipRecvWait(other, VIP_INFINITE, &mine)
				       : VipSendWait(other, VIP_INFINITE, &mine));
			EXPECT_EQ(nullptr, mine);
		});
		ASSERT_TRUE(eventually([&] { return inside.there.load(); }));
		fake_on_progress_vi(nullptr, nullptr);
		EXPECT_EQ(VIP_INVALID_STATE, VipDestroyVi(other));
		EXPECT_EQ(VIP_SUCCESS, VipDisconnect(other));
		EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyVi(other)) << "a descriptor is left";
		EXPECT_EQ(VIP_DESCRIPTOR_ERROR,
			  recv ? VipRecvDone(other, &d) : VipSendDone(other, &d));
		EXPECT_EQ(desc(0), d);
		EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyVi(other)) << "a thread is inside";
		inside.go = true;
		waiter.join();
		EXPECT_EQ(VIP_SUCCESS, VipDestroyVi(other));
	}
}

TEST_P(Wait, DestroyOfACqIsRefusedWhileAThreadIsInside)
{
	if (GetParam() != BLOCK && GetParam() != ADAPTIVE)
		GTEST_SKIP() << "does not sleep";
	VIP_CQ_HANDLE cq = create_cq();
	VIP_VI_HANDLE other = create_vi(cq, cq);
	Inside inside;

	fake_on_sleep(Inside::hold, &inside);
	std::thread waiter([&] {
		VIP_VI_HANDLE v;
		VIP_BOOLEAN r;

		EXPECT_EQ(VIP_SUCCESS, VipCQWait(cq, VIP_INFINITE, &v, &r));
	});
	ASSERT_TRUE(eventually([&] { return inside.there.load(); }));
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyCQ(cq)) << "a VI is associated";
	EXPECT_EQ(VIP_SUCCESS, VipDestroyVi(other));
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyCQ(cq)) << "a thread is inside";
	inside.go = true;
	/* A send of an idle VI completes at once and ends the wait. */
	other = create_vi(cq, cq);
	EXPECT_EQ(VIP_SUCCESS, post_send(other, 0));
	waiter.join();
	destroy_vi(other);
	EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(cq));
}

TEST_P(Wait, EachCompletionGoesToOneWaiter)
{
	constexpr unsigned kCount = 400;
	std::atomic<unsigned> taken{ 0 };
	std::vector<std::thread> waiters;

	for (unsigned i = 0; i < kCount; i++)
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, i));
	for (int t = 0; t < 3; t++) {
		waiters.emplace_back([&] {
			VIP_DESCRIPTOR *d;
			VIP_RETURN rc;

			while ((rc = VipRecvWait(vi, 10000, &d)) == VIP_SUCCESS)
				taken++;
			/* The queue is empty. */
			EXPECT_EQ(VIP_DESCRIPTOR_ERROR, rc);
		});
	}
	for (unsigned i = 0; i < kCount; i++)
		fake_complete_at(vi, 1, i, VIP_STATUS_OP_RECEIVE);
	for (auto &t : waiters)
		t.join();
	EXPECT_EQ(kCount, taken);
}

TEST_P(Wait, SleepsAreCounted)
{
	VIPX_COUNTERS c = {};
	VIP_DESCRIPTOR *d;
	bool sleeps = GetParam() == BLOCK || GetParam() == ADAPTIVE;
	uint64_t before;

	c.Size = sizeof(c);
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	/* A thread that stands still before it sleeps finds its deadline passed. */
	EXPECT_TRUE(eventually([&] {
		before = c.Sleeps;
		EXPECT_EQ(VIP_TIMEOUT, VipRecvWait(vi, 10, &d));
		EXPECT_EQ(VIP_SUCCESS, VipxQueryCounters(nic, nullptr, &c));
		return !sleeps || c.Sleeps > 0;
	}));
	EXPECT_LE(c.Sleeps - before, 10u); /* each is longer than the last */
	if (GetParam() == SPIN) {
		EXPECT_EQ(0u, c.Sleeps);
	}
}

std::string mode_name(const testing::TestParamInfo<int> &p)
{
	static const char *const names[] = { "spin", "yield", "block", "adaptive" };

	return names[p.param];
}

INSTANTIATE_TEST_SUITE_P(Modes, Wait, testing::Values(SPIN, YIELD, BLOCK, ADAPTIVE), mode_name);

} // namespace
