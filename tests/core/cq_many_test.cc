/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues with many busy VIs, which polls watch instead of visiting them. */
#include <atomic>
#include <functional>
#include <map>
#include <set>

#include "core_fixture.h"

namespace {

class CqMany : public CqTest {
protected:
	static constexpr unsigned kMany = 24;

	void SetUp() override
	{
		CqTest::SetUp();
		fake_watchable();
	}

	/* `count` VIs, watched. */
	void watched_vis(unsigned count = kMany)
	{
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN recv;

		for (unsigned i = 0; i < count; i++)
			connected_vi();
		EXPECT_EQ(VIP_NOT_DONE, VipCQDone(cq, &vi, &recv));
	}

	uint64_t polls() const
	{
		uint64_t sum = 0;

		for (VIP_VI_HANDLE vi : vis)
			sum += fake_polls(vi);
		return sum;
	}

	/* Messages that progress finds, by VI; others come by calls of the test. */
	struct Arrivals {
		std::map<VIP_VI_HANDLE, unsigned> left;

		static void progress(VIP_VI_HANDLE vi, void *arg)
		{
			auto *self = static_cast<Arrivals *>(arg);
			auto it = self->left.find(vi);

			if (it == self->left.end() || it->second == 0)
				return;
			it->second--;
			fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
		}
	};

	unsigned polls_until(VIP_VI_HANDLE wanted);

	/* Takes one entry and its descriptor; NULL when there is none. */
	VIP_VI_HANDLE take()
	{
		VIP_VI_HANDLE vi = nullptr;
		VIP_BOOLEAN recv;
		VIP_DESCRIPTOR *d = nullptr;

		if (VipCQDone(cq, &vi, &recv) != VIP_SUCCESS)
			return nullptr;
		EXPECT_NE(VIP_NOT_DONE, recv ? VipRecvDone(vi, &d) : VipSendDone(vi, &d));
		EXPECT_NE(nullptr, d);
		return vi;
	}
};

TEST_F(CqMany, AnEmptyPollVisitsNone)
{
	watched_vis();
	uint64_t before = polls();

	for (int i = 0; i < 8; i++)
		EXPECT_EQ(nullptr, take());
	EXPECT_EQ(before, polls());
}

TEST_F(CqMany, TheOneForWhichSomethingCameIsVisited)
{
	Arrivals a;

	watched_vis();
	fake_on_progress_vi(Arrivals::progress, &a);
	for (unsigned i : { 13u, 0u, 23u, 13u }) {
		uint64_t before = polls();

		ASSERT_EQ(VIP_SUCCESS, post_recv(vis[i], i));
		EXPECT_EQ(nullptr, take());
		a.left[vis[i]] = 1;
		fake_arrive(vis[i]);
		EXPECT_EQ(vis[i], take());
		EXPECT_EQ(nullptr, take());
		EXPECT_LE(polls() - before, 3u);
	}
}

/* The word of a slot that completes nothing, then one that completes a receive. */
TEST_F(CqMany, AVisitThatCompletesNothingWatchesAgain)
{
	Arrivals a;

	watched_vis();
	fake_on_progress_vi(Arrivals::progress, &a);
	for (int i = 0; i < 3; i++) {
		fake_arrive(vis[7]);
		EXPECT_EQ(nullptr, take());
	}
	ASSERT_EQ(VIP_SUCCESS, post_recv(vis[7], 0));
	a.left[vis[7]] = 1;
	fake_arrive(vis[7]);
	EXPECT_EQ(vis[7], take());
}

/* The word is no longer loaded: whatever it holds leads to no visit. */
TEST_F(CqMany, AVIWhoseWordGoesIsVisitedOnceInstead)
{
	watched_vis();
	uint64_t before = polls();

	EXPECT_NE(0, fake_unwatch(vis[9]));
	EXPECT_NE(0, fake_unwatch(vis[9])) << "no poll has forgotten the word";
	EXPECT_EQ(before, polls());
	EXPECT_EQ(nullptr, take());
	EXPECT_EQ(before + 1, polls());
	/* A VI that has to be visited has no word. */
	fake_reset();
	EXPECT_NE(0, fake_unwatch(vis[9]));
	EXPECT_EQ(nullptr, take());
	EXPECT_EQ(0, fake_unwatch(vis[9]));
	fake_watchable();
	EXPECT_EQ(nullptr, take());
}

TEST_F(CqMany, WhatOthersCompleteIsFoundAtOnce)
{
	watched_vis();
	for (int round = 0; round < 3; round++) {
		std::multiset<VIP_VI_HANDLE> want, got;

		for (unsigned i = 0; i < kMany; i += 3) {
			ASSERT_EQ(VIP_SUCCESS, post_recv(vis[i], i));
			ASSERT_EQ(VIP_SUCCESS, post_send(vis[i], 100 + i));
		}
		EXPECT_EQ(nullptr, take());
		for (unsigned i = 0; i < kMany; i += 3) {
			fake_complete(vis[i], 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
			fake_complete(vis[i], 0, 0, VIP_STATUS_OP_SEND, 0, 0);
			want.insert({ vis[i], vis[i] });
		}
		for (size_t i = 0; i < want.size(); i++)
			got.insert(take());
		EXPECT_EQ(want, got);
		EXPECT_EQ(nullptr, take());
	}
}

TEST_F(CqMany, OfManyEntriesOfOneQueueNoneIsLost)
{
	watched_vis();
	for (unsigned i = 0; i < 20; i++)
		ASSERT_EQ(VIP_SUCCESS, post_recv(vis[5], i));
	for (unsigned i = 0; i < 20; i++)
		fake_complete(vis[5], 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	for (unsigned i = 0; i < 20; i++)
		EXPECT_EQ(vis[5], take());
	EXPECT_EQ(nullptr, take());
}

/* A thread that cannot get the lock of a queue wants it to be visited. */
TEST_F(CqMany, WhatWasMissedIsVisitedWhenTheLockIsFree)
{
	std::function<void()> poll = [this] {
		uint64_t before = polls();

		fake_unwatch_later(vis[5]);
		for (int i = 0; i < 4; i++)
			EXPECT_EQ(nullptr, take());
		EXPECT_EQ(before, polls());
	};

	watched_vis();
	fake_locked(
		vis[5], 1, [](void *arg) { (*static_cast<std::function<void()> *>(arg))(); },
		&poll);
	uint64_t before = polls();
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(nullptr, take());
	EXPECT_EQ(before + 1, polls()) << "visited once, then watched again";
	fake_unwatch_later(vis[2]);
	fake_unwatch_later(vis[11]);
	EXPECT_EQ(nullptr, take());
	EXPECT_EQ(before + 3, polls());
}

/* A send that is under way may complete when credit comes, which no word shows. */
TEST_F(CqMany, AVIWithASendUnderWayIsVisitedByEachPoll)
{
	watched_vis();
	ASSERT_EQ(VIP_SUCCESS, post_send(vis[3], 0));
	uint32_t before = fake_progress_calls();

	for (int i = 0; i < 8; i++)
		EXPECT_EQ(nullptr, take());
	EXPECT_GE(fake_progress_calls(), before + 8);
	fake_complete(vis[3], 0, 0, VIP_STATUS_OP_SEND, 0, 0);
	EXPECT_EQ(vis[3], take());
	EXPECT_EQ(nullptr, take());
	before = fake_progress_calls();
	EXPECT_EQ(nullptr, take());
	EXPECT_EQ(before, fake_progress_calls());
}

TEST_F(CqMany, WhatNoWordTellsIsFoundInTurn)
{
	Arrivals a;
	VIP_VI_HANDLE vi = nullptr;

	watched_vis();
	fake_on_progress_vi(Arrivals::progress, &a);
	for (VIP_VI_HANDLE each : vis) {
		ASSERT_EQ(VIP_SUCCESS, post_recv(each, 0));
		a.left[each] = 1;
		fake_arrive_unseen(each);
	}
	for (unsigned taken = 0; taken < kMany; taken++, vi = nullptr) {
		for (int i = 0; i < 4096 && vi == nullptr; i++)
			vi = take();
		ASSERT_NE(nullptr, vi) << taken;
		EXPECT_EQ(0u, a.left[vi]);
	}
}

TEST_F(CqMany, NoneStarvesBesideOneThatNeverEnds)
{
	constexpr unsigned kAll = 256;
	std::map<VIP_VI_HANDLE, unsigned> count;
	Arrivals a;
	unsigned taken = 0;

	watched_vis(kAll);
	fake_on_progress_vi(Arrivals::progress, &a);
	for (unsigned i = 0; i < kAll; i++)
		ASSERT_EQ(VIP_SUCCESS, post_recv(vis[i], i));
	EXPECT_EQ(nullptr, take());
	for (VIP_VI_HANDLE vi : vis) {
		a.left[vi] = 1;
		fake_arrive(vi);
	}
	for (; count.size() < kAll && taken < 4 * kAll; taken++) {
		VIP_VI_HANDLE vi = take();

		ASSERT_NE(nullptr, vi);
		count[vi]++;
		/* The first VI always has another message, with and without a change of its word in turn. */
		if (vi == vis[0]) {
			ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
			if (taken % 2 == 0) {
				a.left[vi] = 1;
				fake_arrive(vi);
			} else {
				fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
			}
		}
	}
	EXPECT_EQ(kAll, count.size());
	EXPECT_LE(count[vis[0]], 2 * kAll);
	for (unsigned i = 1; i < kAll; i++)
		EXPECT_EQ(1u, count[vis[i]]) << i;
}

/*
 * How many polls find an entry of the first VI, whose word tells of a message at each poll, until one has an entry of
 * the wanted VI.
 */
unsigned CqMany::polls_until(VIP_VI_HANDLE wanted)
{
	constexpr unsigned kMost = 10000;

	fake_arrive_messages(vis[0], kMost);
	for (unsigned n = 0; n < kMost; n++) {
		EXPECT_EQ(VIP_SUCCESS, post_recv(vis[0], 0));
		VIP_VI_HANDLE vi = take();

		if (vi == wanted)
			return n;
		EXPECT_EQ(vis[0], vi);
	}
	return kMost;
}

TEST_F(CqMany, NoneStarvesWhoseWordTellsNothing)
{
	Arrivals a;

	watched_vis();
	fake_on_progress_vi(Arrivals::progress, &a);
	for (unsigned i = 1; i <= 10; i++)
		ASSERT_EQ(VIP_SUCCESS, post_send(vis[i], i));
	ASSERT_EQ(VIP_SUCCESS, post_recv(vis[15], 15));
	ASSERT_EQ(VIP_SUCCESS, post_recv(vis[20], 20));
	EXPECT_EQ(nullptr, take());
	/* Completed by another thread. */
	fake_complete(vis[15], 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	EXPECT_LE(polls_until(vis[15]), 2u * 11);
	/* A send that was under way. */
	fake_complete(vis[7], 0, 0, VIP_STATUS_OP_SEND, 0, 0);
	EXPECT_LE(polls_until(vis[7]), 2u * 11);
	/* Missed by a thread that found the lock held. */
	a.left[vis[20]] = 1;
	fake_arrive_unseen(vis[20]);
	fake_unwatch_later(vis[20]);
	EXPECT_LE(polls_until(vis[20]), 16u + 2 * 11);
}

/* The only queue that is due goes, and another one becomes due. */
TEST_F(CqMany, TheLastThatIsDueMayGo)
{
	watched_vis();
	ASSERT_EQ(VIP_SUCCESS, post_send(vis.back(), 0));
	EXPECT_EQ(nullptr, take());
	destroy_vi(vis.back());
	vis.pop_back();
	ASSERT_EQ(VIP_SUCCESS, post_recv(vis[5], 5));
	fake_complete(vis[5], 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	EXPECT_LE(polls_until(vis[5]), 2u);
	EXPECT_EQ(vis[0], take());
}

/* Nor does the busy one, whose entries come in another way than those of the others. */
TEST_F(CqMany, TheBusyOneIsServedBesideOthersToo)
{
	Arrivals a;
	unsigned first = 0;

	watched_vis();
	fake_on_progress_vi(Arrivals::progress, &a);
	for (unsigned i = 0; i < 400; i++) {
		ASSERT_EQ(VIP_SUCCESS, post_recv(vis[0], i));
		fake_complete(vis[0], 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	}
	for (unsigned i = 1; i < kMany; i++) {
		ASSERT_EQ(VIP_SUCCESS, post_recv(vis[i], 1000 + i));
		a.left[vis[i]] = 1;
		fake_arrive(vis[i]);
	}
	for (unsigned taken = 0; taken < 400; taken++) {
		VIP_VI_HANDLE vi = take();

		ASSERT_NE(nullptr, vi);
		if (vi == vis[0]) {
			first++;
			continue;
		}
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 1000));
		a.left[vi] = 1;
		fake_arrive(vi);
	}
	EXPECT_GE(first, 400 / (kMany + 1) / 2);
}

TEST_F(CqMany, IdleQueuesCoolDownBesideABusyOne)
{
	watched_vis();
	for (int i = 0; i < 200000; i++) {
		ASSERT_EQ(VIP_SUCCESS, post_recv(vis[0], 0));
		fake_complete(vis[0], 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
		ASSERT_EQ(vis[0], take());
	}
	EXPECT_EQ(1, fake_hot(vis[0], 1));
	unsigned hot = 0;
	for (unsigned i = 1; i < kMany; i++)
		hot += fake_hot(vis[i], 0) + fake_hot(vis[i], 1);
	EXPECT_LE(hot, 8u);
	/* All come back. */
	for (unsigned i = 0; i < kMany; i++) {
		ASSERT_EQ(VIP_SUCCESS, post_recv(vis[i], i));
		EXPECT_EQ(1, fake_hot(vis[i], 1));
		fake_complete(vis[i], 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
		EXPECT_EQ(vis[i], take());
	}
}

TEST_F(CqMany, FewAgainAndManyAgain)
{
	Arrivals a;

	fake_on_progress_vi(Arrivals::progress, &a);
	for (int round = 0; round < 3; round++) {
		watched_vis();
		for (VIP_VI_HANDLE vi : vis) {
			ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
			a.left[vi] = 1;
			fake_arrive(vi);
			EXPECT_EQ(vi, take());
		}
		/* Destroys VIs until two are left; one of those that go has entries. */
		while (vis.size() > 2) {
			VIP_VI_HANDLE gone = vis.back();

			ASSERT_EQ(VIP_SUCCESS, post_recv(gone, 1));
			fake_complete(gone, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
			ASSERT_EQ(VIP_SUCCESS, post_recv(vis[0], 2));
			fake_complete(vis[0], 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
			vis.pop_back();
			destroy_vi(gone);
			EXPECT_EQ(vis[0], take());
			EXPECT_EQ(nullptr, take());
		}
	}
}

/* A VI that is not connected completes nothing by itself. */
TEST_F(CqMany, IdleVIsAreNotVisited)
{
	for (unsigned i = 0; i < kMany; i++) {
		vis.push_back(create_vi(cq, cq));
		ASSERT_EQ(VIP_SUCCESS, post_recv(vis.back(), i));
	}
	EXPECT_EQ(nullptr, take());
	EXPECT_EQ(VIP_SUCCESS, VipDisconnect(vis[20]));
	EXPECT_EQ(vis[20], take());
	EXPECT_EQ(nullptr, take());
	fake_connect(vis[4]);
	fake_complete(vis[4], 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	EXPECT_EQ(vis[4], take());
}

/* The calls for many take entries of each queue in turn. */
TEST_F(CqMany, OneTakeIsFair)
{
	std::map<VIP_VI_HANDLE, unsigned> count;
	VIPX_COMPLETION all[300];
	VIP_ULONG n = 0;

	watched_vis();
	for (unsigned i = 0; i < 400; i++) {
		ASSERT_EQ(VIP_SUCCESS, post_recv(vis[0], i));
		fake_complete(vis[0], 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	}
	for (unsigned i = 1; i < kMany; i++) {
		ASSERT_EQ(VIP_SUCCESS, post_recv(vis[i], 1000 + i));
		fake_complete(vis[i], 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	}
	all[0].Size = sizeof(all[0]);
	ASSERT_EQ(VIP_SUCCESS, VipxCQTake(cq, all, kMany + 40, &n));
	ASSERT_EQ(kMany + 40, n);
	for (VIP_ULONG i = 0; i < n; i++)
		count[all[i].ViHandle]++;
	EXPECT_EQ(kMany, count.size());
	EXPECT_EQ(41u, count[vis[0]]);
	/* It takes 256 at most; the next call takes the rest. */
	ASSERT_EQ(VIP_SUCCESS, VipxCQTake(cq, all, 300, &n));
	EXPECT_EQ(256u, n);
	ASSERT_EQ(VIP_SUCCESS, VipxCQTake(cq, all, 300, &n));
	EXPECT_EQ(400u - 41 - 256, n);
	EXPECT_EQ(VIP_NOT_DONE, VipxCQTake(cq, all, 300, &n));
	EXPECT_EQ(0u, n);
}

/* Completers on many VIs, consumers on one CQ: as many entries as completions. */
TEST_F(CqMany, ConcurrentCompletersAndConsumers)
{
	constexpr unsigned kEach = 300;
	std::atomic<unsigned> taken{ 0 };
	std::vector<std::thread> threads;

	watched_vis();
	for (unsigned v = 0; v < kMany; v++) {
		for (unsigned i = 0; i < kEach / 2; i++) {
			ASSERT_EQ(VIP_SUCCESS, post_recv(vis[v], v * 300 + i));
			ASSERT_EQ(VIP_SUCCESS, post_send(vis[v], v * 300 + i));
		}
	}
	for (unsigned t = 0; t < 2; t++) {
		threads.emplace_back([&, t] {
			for (unsigned i = 0; i < kEach / 2; i++) {
				for (unsigned v = t; v < kMany; v += 2) {
					fake_complete_at(vis[v], 0, i, VIP_STATUS_OP_SEND);
					fake_complete_at(vis[v], 1, i, VIP_STATUS_OP_RECEIVE);
					fake_arrive(vis[v]);
				}
			}
		});
		threads.emplace_back([&] {
			while (taken < kMany * kEach)
				if (take() != nullptr)
					taken++;
		});
	}
	for (auto &t : threads)
		t.join();
	EXPECT_EQ(nullptr, take());
}

/* VIs come and go while another thread polls, which takes what others complete. */
TEST_F(CqMany, VIsGoUnderThePoll)
{
	std::atomic<bool> stop{ false };
	std::atomic<uint64_t> taken{ 0 };
	uint64_t completed = 0;

	watched_vis(16);
	std::thread poller([&] {
		while (!stop)
			if (take() != nullptr)
				taken++;
	});
	for (unsigned round = 0; round < 300; round++) {
		VIP_VI_HANDLE gone = create_vi(cq, cq);

		fake_connect(gone);
		fake_arrive(gone);
		for (unsigned i = 0; i < 16; i += 5) {
			ASSERT_EQ(VIP_SUCCESS, post_recv(vis[i], round * 16 + i));
			fake_complete(vis[i], 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
			completed++;
		}
		ASSERT_TRUE(eventually([&] { return VipDisconnect(gone) == VIP_SUCCESS; }));
		ASSERT_TRUE(eventually([&] { return VipDestroyVi(gone) == VIP_SUCCESS; }));
	}
	EXPECT_TRUE(eventually([&] { return taken == completed; }));
	stop = true;
	poller.join();
	EXPECT_EQ(completed, taken);
}

} // namespace
