/* SPDX-License-Identifier: BSD-2-Clause */
#include <atomic>

#include "core_fixture.h"

namespace {

class Wq : public CoreTest {
protected:
	VIP_VI_HANDLE vi = nullptr;

	void SetUp() override
	{
		CoreTest::SetUp();
		vi = create_vi();
	}

	void TearDown() override
	{
		destroy_vi(vi);
		CoreTest::TearDown();
	}

	/* Takes one receive descriptor, which must be descriptor i. */
	void expect_recv(VIP_RETURN want, unsigned i)
	{
		VIP_DESCRIPTOR *d = nullptr;

		ASSERT_EQ(want, VipRecvDone(vi, &d));
		ASSERT_EQ(desc(i), d);
	}
};

TEST_F(Wq, EmptyQueueIsDescriptorErrorWithNull)
{
	VIP_DESCRIPTOR *d = desc(0);

	EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvDone(vi, &d));
	EXPECT_EQ(nullptr, d);
	d = desc(0);
	EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(vi, &d));
	EXPECT_EQ(nullptr, d);
}

TEST_F(Wq, HeadInProgressIsNotDoneWithNull)
{
	VIP_DESCRIPTOR *d = desc(0);

	fake_connect(vi);
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(vi, &d));
	EXPECT_EQ(nullptr, d);
	ASSERT_EQ(VIP_SUCCESS, post_send(vi, 1));
	EXPECT_EQ(VIP_NOT_DONE, VipSendDone(vi, &d));
	EXPECT_EQ(1u, fake_posts());
}

TEST_F(Wq, CompletionWritesLengthImmediateAndStatus)
{
	VIP_DESCRIPTOR *d = nullptr;

	fake_connect(vi);
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	desc(0)->CS.ImmediateData = 1;
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE, 17, 0xabcd);
	ASSERT_EQ(VIP_SUCCESS, VipRecvDone(vi, &d));
	EXPECT_EQ(desc(0), d);
	EXPECT_EQ(17u, d->CS.Length);
	EXPECT_EQ(0xabcdu, d->CS.ImmediateData);
	EXPECT_EQ(uint32_t(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE),
		  d->CS.Status);
}

TEST_F(Wq, WithoutImmediateTheFieldIsNotTouched)
{
	fake_connect(vi);
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	desc(0)->CS.ImmediateData = 77;
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 17, 0xabcd);
	expect_recv(VIP_SUCCESS, 0);
	EXPECT_EQ(77u, desc(0)->CS.ImmediateData);
}

TEST_F(Wq, LengthOfASendStaysAsPosted)
{
	VIP_DESCRIPTOR *d;

	fake_connect(vi);
	ASSERT_EQ(VIP_SUCCESS, post_send(vi, 0));
	fake_complete(vi, 0, 0, VIP_STATUS_OP_SEND | VIP_STATUS_TRANSPORT_ERROR, 0, 0);
	EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(vi, &d));
	EXPECT_EQ(desc(0), d);
	EXPECT_EQ(64u, d->CS.Length);
}

TEST_F(Wq, CompletesStrictlyInOrder)
{
	VIP_DESCRIPTOR *d;

	fake_connect(vi);
	for (unsigned i = 0; i < 4; i++)
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, i));
	fake_complete(vi, 1, 2, VIP_STATUS_OP_RECEIVE, 2, 0);
	fake_complete(vi, 1, 1, VIP_STATUS_OP_RECEIVE, 1, 0);
	EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(vi, &d));
	EXPECT_EQ(0u, desc(1)->CS.Status);
	EXPECT_EQ(0u, desc(2)->CS.Status);
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	for (unsigned i = 0; i < 3; i++) {
		expect_recv(VIP_SUCCESS, i);
		EXPECT_EQ(i, desc(i)->CS.Length);
	}
	EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(vi, &d));
}

TEST_F(Wq, TheFirstCompletionStands)
{
	fake_connect(vi);
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 1));
	fake_complete_at(vi, 1, 0, VIP_STATUS_OP_RECEIVE);
	fake_complete_at(vi, 1, 0, VIP_STATUS_OP_RECEIVE | VIP_STATUS_LENGTH_ERROR);
	fake_complete_at(vi, 1, 2, VIP_STATUS_OP_RECEIVE);
	expect_recv(VIP_SUCCESS, 0);
	VIP_DESCRIPTOR *d;
	EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(vi, &d));
}

TEST_F(Wq, ErrorsAreTold)
{
	fake_connect(vi);
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE | VIP_STATUS_LENGTH_ERROR, 0, 0);
	expect_recv(VIP_DESCRIPTOR_ERROR, 0);
	EXPECT_TRUE(desc(0)->CS.Status & VIP_STATUS_LENGTH_ERROR);
}

TEST_F(Wq, GrowsAndKeepsOrderAcrossTheWrap)
{
	unsigned posted = 0;
	unsigned taken = 0;

	fake_connect(vi);
	EXPECT_EQ(16u, fake_capacity(vi, 1));
	/* The head is in the middle of the fifo before it grows. */
	for (; posted < 10; posted++)
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, posted));
	for (; taken < 7; taken++) {
		fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
		expect_recv(VIP_SUCCESS, taken);
	}
	for (; posted < 100; posted++)
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, posted));
	EXPECT_EQ(128u, fake_capacity(vi, 1));
	for (; taken < 100; taken++) {
		fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, taken, 0);
		expect_recv(VIP_SUCCESS, taken);
		ASSERT_EQ(taken, desc(taken)->CS.Length);
	}
}

TEST_F(Wq, FullAtTheReportedLimit)
{
	VIP_NIC_ATTRIBUTES a;

	ASSERT_EQ(VIP_SUCCESS, VipQueryNic(nic, &a));
	for (unsigned i = 0; i < a.MaxDescriptorsPerQueue; i++)
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, i)) << i;
	EXPECT_EQ(VIP_ERROR_RESOURCE, post_recv(vi, 8000));
	fake_connect(vi);
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	/* A complete descriptor that was not taken still fills the queue. */
	EXPECT_EQ(VIP_ERROR_RESOURCE, post_recv(vi, 8000));
	expect_recv(VIP_SUCCESS, 0);
	EXPECT_EQ(VIP_SUCCESS, post_recv(vi, 8000));
}

TEST_F(Wq, BreakFlushesWhatIsOutstanding)
{
	VIP_VI_STATE state;
	VIP_VI_ATTRIBUTES a;
	VIP_BOOLEAN empty[2];
	VIP_DESCRIPTOR *d;

	fake_connect(vi);
	for (unsigned i = 0; i < 20; i++)
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, i));
	ASSERT_EQ(VIP_SUCCESS, VipPostSend(vi, simple(100, 8, VIP_CONTROL_OP_RDMAWRITE), handle));
	ASSERT_EQ(VIP_SUCCESS, VipPostSend(vi, simple(101, 8, VIP_CONTROL_OP_RDMAREAD), handle));
	ASSERT_EQ(VIP_SUCCESS, post_send(vi, 102));
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 5, 0);
	/* The descriptor that caused the break keeps its own bits. */
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE | VIP_STATUS_PROTECTION_ERROR, 0, 0);
	fake_break(vi, 0, VIP_ERROR_CONN_LOST);
	ASSERT_EQ(VIP_SUCCESS, VipQueryVi(vi, &state, &a, &empty[0], &empty[1]));
	EXPECT_EQ(VIP_STATE_ERROR, state);
	EXPECT_FALSE(empty[0]);
	EXPECT_FALSE(empty[1]);
	expect_recv(VIP_SUCCESS, 0);
	expect_recv(VIP_DESCRIPTOR_ERROR, 1);
	EXPECT_EQ(uint32_t(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_PROTECTION_ERROR),
		  desc(1)->CS.Status);
	for (unsigned i = 2; i < 20; i++) {
		expect_recv(VIP_DESCRIPTOR_ERROR, i);
		EXPECT_EQ(uint32_t(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE |
				   VIP_STATUS_DESC_FLUSHED_ERROR),
			  desc(i)->CS.Status);
	}
	const uint32_t ops[] = { VIP_STATUS_OP_RDMA_WRITE, VIP_STATUS_OP_RDMA_READ,
				 VIP_STATUS_OP_SEND };
	for (unsigned i = 0; i < 3; i++) {
		ASSERT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(vi, &d));
		ASSERT_EQ(desc(100 + i), d);
		EXPECT_EQ(VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR | ops[i], d->CS.Status);
	}
}

TEST_F(Wq, PostsByState)
{
	VIP_DESCRIPTOR *d;

	/* In the idle and pending states sends come back at once, receives are kept. */
	for (int pending = 0; pending < 2; pending++) {
		if (pending)
			fake_pending(vi);
		ASSERT_EQ(VIP_SUCCESS, post_send(vi, 0));
		ASSERT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(vi, &d));
		EXPECT_EQ(desc(0), d);
		EXPECT_EQ(uint32_t(VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR), d->CS.Status);
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 1 + pending));
		EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(vi, &d));
	}
	EXPECT_EQ(0u, fake_posts());
	fake_connect(vi);
	EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(vi, &d));
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	expect_recv(VIP_SUCCESS, 1);
	/* In the error state both come back at once. */
	fake_break(vi, 0, VIP_ERROR_CONN_LOST);
	expect_recv(VIP_DESCRIPTOR_ERROR, 2);
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 3));
	expect_recv(VIP_DESCRIPTOR_ERROR, 3);
	EXPECT_TRUE(desc(3)->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
	ASSERT_EQ(VIP_SUCCESS, post_send(vi, 4));
	ASSERT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(vi, &d));
	EXPECT_EQ(desc(4), d);
}

TEST_F(Wq, BreakDoesNothingUnlessConnected)
{
	VIP_DESCRIPTOR *d;

	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	fake_break(vi, 1, VIP_ERROR_CONN_LOST);
	EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(vi, &d));
}

TEST_F(Wq, DoneMakesProgressOnlyWhenTheHeadIsInProgress)
{
	VIP_DESCRIPTOR *d;

	fake_connect(vi);
	VipRecvDone(vi, &d);
	EXPECT_EQ(0u, fake_progress_calls());
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	VipRecvDone(vi, &d);
	EXPECT_EQ(1u, fake_progress_calls());
	EXPECT_EQ(1u, fake_doorbells());
	fake_on_progress_vi([](VIP_VI_HANDLE v,
			       void *) { fake_complete(v, 1, 0, VIP_STATUS_OP_RECEIVE, 3, 0); },
			    nullptr);
	EXPECT_EQ(VIP_SUCCESS, VipRecvDone(vi, &d));
	EXPECT_EQ(desc(0), d);
}

TEST_F(Wq, TheDoorbellIsCheckedToo)
{
	VIP_DESCRIPTOR *d;

	fake_connect(vi);
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	fake_on_doorbell([](void *v) { fake_complete(v, 1, 0, VIP_STATUS_OP_RECEIVE, 3, 0); }, vi);
	EXPECT_EQ(VIP_SUCCESS, VipRecvDone(vi, &d));
	EXPECT_EQ(desc(0), d);
}

TEST_F(Wq, CountersOfPosts)
{
	VIPX_COUNTERS c = {};

	c.Size = sizeof(c);
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	ASSERT_EQ(VIP_SUCCESS, post_send(vi, 1));
	ASSERT_EQ(VIP_SUCCESS, post_send(vi, 2));
	ASSERT_EQ(VIP_SUCCESS, VipxQueryCounters(nic, vi, &c));
	EXPECT_EQ(1u, c.RecvsPosted);
	EXPECT_EQ(2u, c.SendsPosted);
	EXPECT_EQ(sizeof(c), c.Size);
	VIP_VI_HANDLE other = create_vi();
	ASSERT_EQ(VIP_SUCCESS, post_recv(other, 3));
	destroy_vi(other);
	ASSERT_EQ(VIP_SUCCESS, VipxQueryCounters(nic, nullptr, &c));
	EXPECT_EQ(2u, c.RecvsPosted);
}

/* Two threads take, one completes: each descriptor comes out once, in order per thread. */
TEST_F(Wq, ConcurrentTakers)
{
	constexpr unsigned kCount = 2000;
	std::vector<std::vector<unsigned>> got(2);
	std::vector<std::thread> takers;
	std::atomic<unsigned> taken{ 0 };

	fake_connect(vi);
	for (unsigned i = 0; i < kCount; i++)
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, i));
	for (auto &mine : got) {
		takers.emplace_back([&] {
			while (taken < kCount) {
				VIP_DESCRIPTOR *d;

				if (VipRecvDone(vi, &d) == VIP_SUCCESS) {
					mine.push_back(unsigned(d - desc(0)));
					taken++;
				}
			}
		});
	}
	for (unsigned i = 0; i < kCount; i++)
		fake_complete_at(vi, 1, i, VIP_STATUS_OP_RECEIVE);
	for (auto &t : takers)
		t.join();
	std::vector<bool> seen(kCount);
	for (auto &mine : got) {
		for (size_t i = 0; i < mine.size(); i++) {
			EXPECT_FALSE(seen[mine[i]]);
			seen[mine[i]] = true;
			if (i > 0) {
				EXPECT_LT(mine[i - 1], mine[i]);
			}
		}
	}
	EXPECT_EQ(kCount, got[0].size() + got[1].size());
}

} // namespace
