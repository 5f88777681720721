/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: an entry for every completion, none lost, none invented. */
#include <poll.h>

#include <atomic>
#include <map>

#include "core_fixture.h"

namespace {

class Cq : public CqTest {
protected:
	void complete_recv(VIP_VI_HANDLE vi, unsigned i)
	{
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, i));
		fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	}

	void expect_entry(VIP_VI_HANDLE want, VIP_BOOLEAN want_recv)
	{
		VIP_VI_HANDLE vi = nullptr;
		VIP_BOOLEAN recv = 7;

		ASSERT_EQ(VIP_SUCCESS, VipCQDone(cq, &vi, &recv));
		EXPECT_EQ(want, vi);
		EXPECT_EQ(want_recv, recv);
	}

	void expect_empty()
	{
		VIP_VI_HANDLE vi = this;
		VIP_BOOLEAN recv = 7;

		EXPECT_EQ(VIP_NOT_DONE, VipCQDone(cq, &vi, &recv));
		EXPECT_EQ(this, vi);
		EXPECT_EQ(7, recv);
	}
};

TEST_F(Cq, OneEntryPerCompletion)
{
	VIP_VI_HANDLE vi = connected_vi();
	VIP_DESCRIPTOR *d;

	expect_empty();
	ASSERT_EQ(VIP_SUCCESS, post_send(vi, 0));
	for (unsigned i = 1; i < 4; i++)
		complete_recv(vi, i);
	for (unsigned i = 1; i < 4; i++) {
		expect_entry(vi, VIP_TRUE);
		EXPECT_EQ(VIP_SUCCESS, VipRecvDone(vi, &d));
		EXPECT_EQ(desc(i), d);
	}
	expect_empty();
	fake_complete(vi, 0, 0, VIP_STATUS_OP_SEND, 0, 0);
	expect_entry(vi, VIP_FALSE);
	expect_empty();
	EXPECT_EQ(VIP_SUCCESS, VipSendDone(vi, &d));
}

TEST_F(Cq, FlushedAndIdleSendsMakeEntriesToo)
{
	VIP_VI_HANDLE vi = create_vi(cq, cq);

	vis.push_back(vi);
	ASSERT_EQ(VIP_SUCCESS, post_send(vi, 0));
	expect_entry(vi, VIP_FALSE);
	for (unsigned i = 1; i < 4; i++)
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, i));
	expect_empty();
	EXPECT_EQ(VIP_SUCCESS, VipDisconnect(vi));
	for (unsigned i = 1; i < 4; i++)
		expect_entry(vi, VIP_TRUE);
	expect_empty();
}

TEST_F(Cq, FairAmongQueues)
{
	std::map<VIP_VI_HANDLE, int> count;
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN recv;

	for (int v = 0; v < 4; v++) {
		vi = connected_vi();
		for (unsigned i = 0; i < 10; i++)
			complete_recv(vi, v * 10 + i);
	}
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(VIP_SUCCESS, VipCQDone(cq, &vi, &recv));
		count[vi]++;
	}
	for (auto &c : count)
		EXPECT_EQ(5, c.second);
	for (int i = 0; i < 20; i++)
		ASSERT_EQ(VIP_SUCCESS, VipCQDone(cq, &vi, &recv));
	expect_empty();
}

TEST_F(Cq, AnEmptyPollMakesProgressOncePerViAndChecksTheDoorbell)
{
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN recv;

	connected_vi();
	connected_vi();
	fake_reset();
	EXPECT_EQ(VIP_NOT_DONE, VipCQDone(cq, &vi, &recv));
	EXPECT_EQ(2u, fake_progress_calls());
	EXPECT_EQ(1u, fake_doorbells());
	complete_recv(vis[0], 0);
	EXPECT_EQ(VIP_SUCCESS, VipCQDone(cq, &vi, &recv));
	EXPECT_LE(fake_progress_calls(), 4u);
}

/* With many VIs, existing entries are found before progress is made on all. */
TEST_F(Cq, AnEntryOfManyIsTakenAfterProgressOnOneAtMost)
{
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN recv;

	for (int i = 0; i < 4; i++)
		connected_vi();
	EXPECT_EQ(VIP_NOT_DONE, VipCQDone(cq, &vi, &recv));
	fake_reset();
	complete_recv(vis[3], 0);
	EXPECT_EQ(VIP_SUCCESS, VipCQDone(cq, &vi, &recv));
	EXPECT_EQ(vis[3], vi);
	EXPECT_LE(fake_progress_calls(), 1u);
}

/* Messages for the others are found even if one VI never runs out of entries. */
TEST_F(Cq, OneBusyVIKeepsNoOtherWaiting)
{
	VIP_VI_HANDLE vi = nullptr;
	VIP_BOOLEAN recv;
	int polls = 0;

	for (int i = 0; i < 8; i++)
		connected_vi();
	ASSERT_EQ(VIP_SUCCESS, post_recv(vis[7], 9));
	fake_on_progress_vi(
		[](VIP_VI_HANDLE progressed, void *wanted) {
			if (progressed != wanted)
				return;
			fake_on_progress_vi(nullptr, nullptr);
			fake_complete(progressed, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
		},
		vis[7]);
	for (; vi != vis[7]; polls++) {
		ASSERT_LT(polls, 40) << "two queues of eight VIs, each progressed in its turn";
		complete_recv(vis[0], 0);
		ASSERT_EQ(VIP_SUCCESS, VipCQDone(cq, &vi, &recv));
		ASSERT_TRUE(vi == vis[0] || vi == vis[7]);
		VIP_DESCRIPTOR *d;
		ASSERT_EQ(VIP_SUCCESS, VipRecvDone(vi, &d));
	}
}

TEST_F(Cq, IdleQueuesCoolDownBesideABusyOne)
{
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN recv;
	VIP_DESCRIPTOR *d;

	for (int i = 0; i < 8; i++)
		connected_vi();
	for (int i = 0; i < 16 * 5000; i++) {
		complete_recv(vis[0], 0);
		ASSERT_EQ(VIP_SUCCESS, VipCQDone(cq, &vi, &recv));
		ASSERT_EQ(vis[0], vi);
		ASSERT_EQ(VIP_SUCCESS, VipRecvDone(vi, &d));
	}
	EXPECT_EQ(1, fake_hot(vis[0], 1));
	for (int i = 1; i < 8; i++)
		EXPECT_EQ(0, fake_hot(vis[i], 1)) << i;
}

TEST_F(Cq, WhatProgressCompletesIsFoundInTheSamePoll)
{
	VIP_VI_HANDLE vi = connected_vi();

	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	fake_on_progress_vi(
		[](VIP_VI_HANDLE v, void *) {
			fake_on_progress_vi(nullptr, nullptr);
			fake_complete(v, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
		},
		nullptr);
	expect_entry(vi, VIP_TRUE);
	expect_empty();
}

TEST_F(Cq, WhatTheDoorbellCompletesIsFoundInTheSamePoll)
{
	VIP_VI_HANDLE vi = connected_vi();

	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	fake_on_doorbell(
		[](void *v) {
			fake_on_doorbell(nullptr, nullptr);
			fake_complete(v, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
		},
		vi);
	expect_entry(vi, VIP_TRUE);
}

TEST_F(Cq, IdleQueuesCoolDownAndComeBack)
{
	VIP_VI_HANDLE vi = connected_vi();
	VIP_VI_HANDLE out;
	VIP_BOOLEAN recv;

	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	EXPECT_EQ(1, fake_hot(vi, 1));
	for (int i = 0; i < 5000; i++)
		ASSERT_EQ(VIP_NOT_DONE, VipCQDone(cq, &out, &recv));
	EXPECT_EQ(0, fake_hot(vi, 1));
	EXPECT_EQ(0, fake_hot(vi, 0));
	uint32_t progress_calls = fake_progress_calls();
	ASSERT_EQ(VIP_NOT_DONE, VipCQDone(cq, &out, &recv));
	EXPECT_EQ(progress_calls, fake_progress_calls());
	/* A completion by any thread makes the queue hot again. */
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	EXPECT_EQ(1, fake_hot(vi, 1));
	expect_entry(vi, VIP_TRUE);
	ASSERT_EQ(VIP_NOT_DONE, VipCQDone(cq, &out, &recv));
	EXPECT_EQ(progress_calls + 1, fake_progress_calls());
}

TEST_F(Cq, AQueueWithSendsUnderWayStaysHot)
{
	VIP_VI_HANDLE vi = connected_vi();
	VIP_VI_HANDLE out;
	VIP_BOOLEAN recv;

	ASSERT_EQ(VIP_SUCCESS, post_send(vi, 0));
	for (int i = 0; i < 10000; i++)
		ASSERT_EQ(VIP_NOT_DONE, VipCQDone(cq, &out, &recv));
	EXPECT_EQ(1, fake_hot(vi, 0));
}

TEST_F(Cq, PostingMakesHot)
{
	VIP_VI_HANDLE vi = create_vi(cq, cq);

	vis.push_back(vi);
	EXPECT_EQ(0, fake_hot(vi, 1));
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	EXPECT_EQ(1, fake_hot(vi, 1));
}

TEST_F(Cq, DestroyingAViRemovesItsEntries)
{
	VIP_VI_HANDLE one = create_vi(cq, cq);
	VIP_VI_HANDLE two = connected_vi();

	fake_connect(one);
	for (unsigned i = 0; i < 3; i++) {
		complete_recv(one, i);
		complete_recv(two, 10 + i);
	}
	destroy_vi(one);
	for (unsigned i = 0; i < 3; i++)
		expect_entry(two, VIP_TRUE);
	expect_empty();
}

/*
 * A VI leaves its CQ only when no handler about it runs any longer.  Until then its handle
 * is invalid, and the CQ reports neither entries that were taken nor those that were left.
 */
TEST_F(Cq, NoEntriesOfAViThatIsBeingDestroyed)
{
	struct Handler {
		std::atomic<bool> inside{ false }, go{ false };

		static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *)
		{
			auto *h = static_cast<Handler *>(context);

			h->inside = true;
			eventually([h] { return h->go.load(); });
		}
	} handler;
	VIP_VI_HANDLE vi = create_vi(cq, cq);
	VIP_DESCRIPTOR *d;
	VIP_VI_STATE state;
	VIP_VI_ATTRIBUTES a;
	VIP_BOOLEAN send_empty, recv_empty;

	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(nic, &handler, Handler::on_error));
	/* One of two entries is taken; both descriptors are. */
	ASSERT_EQ(VIP_SUCCESS, post_send(vi, 0));
	ASSERT_EQ(VIP_SUCCESS, post_send(vi, 1));
	expect_entry(vi, VIP_FALSE);
	ASSERT_NE(VIP_NOT_DONE, VipSendDone(vi, &d));
	ASSERT_NE(VIP_NOT_DONE, VipSendDone(vi, &d));
	fake_raise(nic, vi, nullptr, VIP_ERROR_RDMAW_PROT);
	ASSERT_TRUE(eventually([&] { return handler.inside.load(); }));
	/* The destruction is refused while the query below uses the VI. */
	std::thread destroyer(
		[&] { EXPECT_TRUE(eventually([&] { return VipDestroyVi(vi) == VIP_SUCCESS; })); });
	EXPECT_TRUE(eventually([&] {
		return VipQueryVi(vi, &state, &a, &send_empty, &recv_empty) ==
		       VIP_INVALID_PARAMETER;
	}));
	for (int i = 0; i < 3; i++)
		expect_empty();
	handler.go = true;
	destroyer.join();
	expect_empty();
	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(nic, nullptr, nullptr));
}

TEST_F(Cq, DestroyNeedsNoVis)
{
	VIP_CQ_HANDLE other = create_cq();
	VIP_VI_HANDLE vi = create_vi(other, nullptr);

	EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyCQ(other));
	destroy_vi(vi);
	EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(other));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipDestroyCQ(other));
}

TEST_F(Cq, Resize)
{
	VIP_VI_HANDLE vi = connected_vi();
	VIP_NIC_ATTRIBUTES a;

	ASSERT_EQ(VIP_SUCCESS, VipQueryNic(nic, &a));
	for (unsigned i = 0; i < 10; i++)
		complete_recv(vi, i);
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipResizeCQ(cq, 9));
	EXPECT_EQ(VIP_SUCCESS, VipResizeCQ(cq, 10));
	EXPECT_EQ(VIP_SUCCESS, VipResizeCQ(cq, a.MaxCQEntries));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipResizeCQ(cq, 0));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipResizeCQ(cq, a.MaxCQEntries + 1));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipResizeCQ(cq, (1ul << 32) + 5));
	for (unsigned i = 0; i < 10; i++)
		expect_entry(vi, VIP_TRUE);
	expect_empty();
}

TEST_F(Cq, CreateLimits)
{
	VIP_CQ_HANDLE more[8];
	VIP_CQ_HANDLE none;

	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCreateCQ(nic, 0, &none));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCreateCQ(nic, (1ul << 24) + 1, &none));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCreateCQ(nic, 1, nullptr));
	for (int i = 0; i < 7; i++)
		more[i] = create_cq(1);
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipCreateCQ(nic, 1, &none));
	for (int i = 0; i < 7; i++)
		EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(more[i]));
}

/* A CQ of one entry still loses nothing. */
TEST_F(Cq, MoreCompletionsThanEntries)
{
	VIP_CQ_HANDLE tiny = create_cq(1);
	VIP_VI_HANDLE vi = create_vi(nullptr, tiny);
	VIP_VI_HANDLE out;
	VIP_BOOLEAN recv;

	fake_connect(vi);
	for (unsigned i = 0; i < 1000; i++)
		complete_recv(vi, i);
	for (unsigned i = 0; i < 1000; i++)
		ASSERT_EQ(VIP_SUCCESS, VipCQDone(tiny, &out, &recv));
	EXPECT_EQ(VIP_NOT_DONE, VipCQDone(tiny, &out, &recv));
	destroy_vi(vi);
	EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(tiny));
}

/* Completers on many VIs, consumers on one CQ: as many entries as completions. */
TEST_F(Cq, ConcurrentCompletersAndConsumers)
{
	constexpr unsigned kVis = 6, kEach = 1500;
	std::atomic<unsigned> taken{ 0 };
	std::vector<std::thread> threads;

	for (unsigned v = 0; v < kVis; v++) {
		VIP_VI_HANDLE vi = connected_vi();

		for (unsigned i = 0; i < kEach / 2; i++) {
			ASSERT_EQ(VIP_SUCCESS, post_recv(vi, v * 1000 + i));
			ASSERT_EQ(VIP_SUCCESS, post_send(vi, v * 1000 + i));
		}
	}
	for (unsigned t = 0; t < 2; t++) {
		threads.emplace_back([&, t] {
			for (unsigned i = 0; i < kEach / 2; i++) {
				for (unsigned v = t; v < kVis; v += 2) {
					fake_complete_at(vis[v], 0, i, VIP_STATUS_OP_SEND);
					fake_complete_at(vis[v], 1, i, VIP_STATUS_OP_RECEIVE);
				}
			}
		});
		threads.emplace_back([&] {
			VIP_DESCRIPTOR *d;
			VIP_VI_HANDLE vi;
			VIP_BOOLEAN recv;

			while (taken < kVis * kEach) {
				if (VipCQDone(cq, &vi, &recv) != VIP_SUCCESS)
					continue;
				/* The descriptor is complete before its entry: never in progress, never missing. */
				ASSERT_EQ(VIP_SUCCESS,
					  recv ? VipRecvDone(vi, &d) : VipSendDone(vi, &d));
				ASSERT_NE(nullptr, d);
				taken++;
			}
		});
	}
	for (auto &t : threads)
		t.join();
	expect_empty();
}

/* ---- the file descriptor --------------------------------------------------------------------- */

static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, timeout_ms) == 1;
}

TEST_F(Cq, FdIsReadableAfterTheNextEntry)
{
	VIP_VI_HANDLE vi = connected_vi();
	int fd = -1;
	int again = -1;

	ASSERT_EQ(VIP_SUCCESS, VipxCQFd(cq, &fd));
	ASSERT_EQ(VIP_SUCCESS, VipxCQFd(cq, &again));
	EXPECT_EQ(fd, again);
	complete_recv(vi, 0);
	EXPECT_FALSE(readable(fd, 0)); /* not armed */
	expect_entry(vi, VIP_TRUE);
	ASSERT_EQ(VIP_SUCCESS, VipxCQArm(cq));
	EXPECT_EQ(1u, fake_notify_armed(nic));
	EXPECT_GT(fake_arms(), 0u);
	EXPECT_FALSE(readable(fd, 0));
	ASSERT_EQ(VIP_SUCCESS, VipxCQArm(cq));
	EXPECT_EQ(1u, fake_notify_armed(nic));
	complete_recv(vi, 1);
	EXPECT_TRUE(readable(fd, 10000));
	EXPECT_EQ(0u, fake_notify_armed(nic));
	/* An entry that is there already makes it readable at once. */
	ASSERT_EQ(VIP_SUCCESS, VipxCQArm(cq));
	EXPECT_TRUE(readable(fd, 0));
	expect_entry(vi, VIP_TRUE);
	ASSERT_EQ(VIP_SUCCESS, VipxCQArm(cq));
	EXPECT_FALSE(readable(fd, 0));
}

/* The documented loop: arm, take all, sleep in poll(2). */
TEST_F(Cq, FdLosesNoWakeUp)
{
	constexpr unsigned kCount = 3000;
	VIP_VI_HANDLE vi = connected_vi();
	VIP_VI_HANDLE out;
	VIP_BOOLEAN recv;
	unsigned taken = 0;
	int fd;

	for (unsigned i = 0; i < kCount; i++)
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, i));
	ASSERT_EQ(VIP_SUCCESS, VipxCQFd(cq, &fd));
	std::thread completer([&] {
		for (unsigned i = 0; i < kCount; i++) {
			fake_complete_at(vi, 1, i, VIP_STATUS_OP_RECEIVE);
			if (i % 3 == 0)
				std::this_thread::yield();
		}
	});
	while (taken < kCount) {
		ASSERT_EQ(VIP_SUCCESS, VipxCQArm(cq));
		while (VipCQDone(cq, &out, &recv) == VIP_SUCCESS)
			taken++;
		if (taken < kCount) {
			ASSERT_TRUE(readable(fd, 10000));
		}
	}
	completer.join();
}

} // namespace
