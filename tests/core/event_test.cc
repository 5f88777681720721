/* SPDX-License-Identifier: BSD-2-Clause */
/* Handlers: asynchronous errors and one-shot notifications. */
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>

#include "core_fixture.h"

namespace {

/* The arguments with which handlers were called. */
struct Calls {
	std::mutex lock;
	std::condition_variable cond;
	std::vector<VIP_ERROR_DESCRIPTOR> errors;
	std::vector<VIP_DESCRIPTOR *> descs;
	std::vector<std::pair<VIP_VI_HANDLE, VIP_BOOLEAN>> entries;
	std::atomic<bool> hold{ false }; /* handlers wait until it is false */
	std::atomic<bool> inside{ false };

	void enter()
	{
		inside = true;
		while (hold)
			std::this_thread::yield();
		inside = false;
	}

	bool wait(size_t errs, size_t ds = 0, size_t es = 0)
	{
		std::unique_lock<std::mutex> l(lock);

		return cond.wait_for(l, std::chrono::seconds(10), [&] {
			return errors.size() >= errs && descs.size() >= ds && entries.size() >= es;
		});
	}

	static void on_error(void *context, VIP_ERROR_DESCRIPTOR *e)
	{
		auto *c = static_cast<Calls *>(context);

		c->enter();
		std::lock_guard<std::mutex> l(c->lock);
		c->errors.push_back(*e);
		c->cond.notify_all();
	}

	static void on_desc(void *context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR *d)
	{
		auto *c = static_cast<Calls *>(context);

		c->enter();
		std::lock_guard<std::mutex> l(c->lock);
		c->descs.push_back(d);
		c->cond.notify_all();
	}

	static void on_cq(void *context, VIP_NIC_HANDLE, VIP_VI_HANDLE vi, VIP_BOOLEAN recv)
	{
		auto *c = static_cast<Calls *>(context);

		c->enter();
		std::lock_guard<std::mutex> l(c->lock);
		c->entries.emplace_back(vi, recv);
		c->cond.notify_all();
	}
};

class Event : public CoreTest {
protected:
	Calls calls;
};

TEST_F(Event, TellsWhatHappened)
{
	VIP_VI_HANDLE vi = create_vi();

	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(nic, &calls, Calls::on_error));
	fake_connect(vi);
	fake_break(vi, 1, VIP_ERROR_CONN_LOST);
	ASSERT_TRUE(calls.wait(1));
	EXPECT_EQ(nic, calls.errors[0].NicHandle);
	EXPECT_EQ(vi, calls.errors[0].ViHandle);
	EXPECT_EQ(nullptr, calls.errors[0].CQHandle);
	EXPECT_EQ(nullptr, calls.errors[0].DescriptorPtr);
	EXPECT_EQ(VIP_RESOURCE_VI, calls.errors[0].ResourceCode);
	EXPECT_EQ(VIP_ERROR_CONN_LOST, calls.errors[0].ErrorCode);
	fake_raise(nic, vi, desc(1), VIP_ERROR_POST_DESC);
	fake_raise(nic, nullptr, nullptr, VIP_ERROR_CATASTROPHIC);
	ASSERT_TRUE(calls.wait(3));
	EXPECT_EQ(vi, calls.errors[1].ViHandle);
	EXPECT_EQ(desc(1), calls.errors[1].DescriptorPtr);
	EXPECT_EQ(nullptr, calls.errors[2].ViHandle);
	EXPECT_EQ(nullptr, calls.errors[2].DescriptorPtr);
	EXPECT_EQ(VIP_RESOURCE_NIC, calls.errors[2].ResourceCode);
	destroy_vi(vi);
}

TEST_F(Event, DefaultHandlerComesBackWithNull)
{
	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(nic, &calls, Calls::on_error));
	fake_raise(nic, nullptr, nullptr, VIP_ERROR_RDMAW_PROT);
	ASSERT_TRUE(calls.wait(1));
	EXPECT_EQ(VIP_ULONG(VIP_STATUS_OP_RDMA_WRITE), calls.errors[0].OpCode);
	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(nic, nullptr, nullptr));
	testing::internal::CaptureStderr();
	fake_raise(nic, nullptr, nullptr, VIP_ERROR_RDMAW_PROT);
	/* Events come in order: when the next one is handled, this one was. */
	VIP_VI_HANDLE vi = create_vi();
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	ASSERT_EQ(VIP_SUCCESS, VipRecvNotify(vi, &calls, Calls::on_desc));
	fake_connect(vi);
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	ASSERT_TRUE(calls.wait(1, 1));
	std::string log = testing::internal::GetCapturedStderr();
	EXPECT_NE(std::string::npos, log.find("RDMA write was refused")) << log;
	EXPECT_EQ(1u, calls.errors.size());
	destroy_vi(vi);
}

/* Ten lines a second at most, whatever a peer causes. */
TEST_F(Event, DefaultHandlerDoesNotFloodTheLog)
{
	constexpr int kEvents = 120;
	VIP_VI_HANDLE vi = create_vi();
	size_t lines = 0;

	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(nic, &calls, Calls::on_error));
	calls.hold = true;
	fake_raise(nic, nullptr, nullptr, VIP_ERROR_CATASTROPHIC);
	ASSERT_TRUE(eventually([&] { return calls.inside.load(); }));
	auto start = std::chrono::steady_clock::now();
	testing::internal::CaptureStderr();
	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(nic, nullptr, nullptr));
	for (int i = 0; i < kEvents; i++)
		fake_raise(nic, nullptr, nullptr, VIP_ERROR_RECVQ_EMPTY);
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	ASSERT_EQ(VIP_SUCCESS, VipRecvNotify(vi, &calls, Calls::on_desc));
	fake_connect(vi);
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	calls.hold = false;
	ASSERT_TRUE(calls.wait(1, 1));
	std::string log = testing::internal::GetCapturedStderr();
	std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
	for (size_t at = 0; (at = log.find("a message met no receive", at)) != log.npos; at++)
		lines++;
	EXPECT_GE(lines, 10u);
	EXPECT_LE(lines, 10 * size_t(took.count() + 2)) << log;
	destroy_vi(vi);
}

/* A burst while a handler runs: coalesced and bounded, but no lost connection is lost. */
TEST_F(Event, FloodLosesNoLostConnection)
{
	constexpr unsigned kVis = 600;
	std::vector<VIP_VI_HANDLE> vis;

	for (unsigned i = 0; i < kVis; i++) {
		vis.push_back(create_vi());
		fake_connect(vis.back());
	}
	calls.hold = true;
	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(nic, &calls, Calls::on_error));
	fake_raise(nic, nullptr, nullptr, VIP_ERROR_CATASTROPHIC);
	ASSERT_TRUE(eventually([&] { return calls.inside.load(); }));
	for (unsigned i = 0; i < 10000; i++)
		fake_raise(nic, vis[i % 3], nullptr, VIP_ERROR_RECVQ_EMPTY);
	for (VIP_VI_HANDLE vi : vis)
		fake_break(vi, 1, VIP_ERROR_CONN_LOST);
	calls.hold = false;
	EXPECT_TRUE(eventually([&] {
		std::set<void *> lost;
		std::lock_guard<std::mutex> l(calls.lock);

		for (auto &e : calls.errors)
			if (e.ErrorCode == VIP_ERROR_CONN_LOST)
				lost.insert(e.ViHandle);
		return lost.size() == kVis;
	}));
	{
		std::lock_guard<std::mutex> l(calls.lock);
		EXPECT_LT(calls.errors.size(), kVis + 300);
	}
	for (VIP_VI_HANDLE vi : vis)
		destroy_vi(vi);
}

TEST_F(Event, AtALowRateEachEventIsTold)
{
	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(nic, &calls, Calls::on_error));
	calls.hold = true;
	for (int i = 0; i < 50; i++)
		fake_raise(nic, nullptr, nullptr, VIP_ERROR_RECVQ_EMPTY);
	calls.hold = false;
	EXPECT_TRUE(calls.wait(50));
}

/* After VipDestroyVi() no handler starts that names the VI, and none is still running. */
TEST_F(Event, DestroyWaitsForTheHandlerAndDropsTheRest)
{
	VIP_VI_HANDLE vi = create_vi();
	std::atomic<bool> destroyed{ false };

	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(nic, &calls, Calls::on_error));
	calls.hold = true;
	fake_raise(nic, vi, nullptr, VIP_ERROR_RDMAW_PROT);
	ASSERT_TRUE(eventually([&] { return calls.inside.load(); }));
	for (int i = 0; i < 5; i++)
		fake_raise(nic, vi, nullptr, VIP_ERROR_RECVQ_EMPTY);
	std::thread destroyer([&] {
		VIP_RETURN rc;
		/* The destruction is refused while the call below is inside. */
		do
			rc = VipDestroyVi(vi);
		while (rc == VIP_ERROR_RESOURCE);
		EXPECT_EQ(VIP_SUCCESS, rc);
		destroyed = true;
	});
	/* First the handle becomes invalid, then the destroyer waits. */
	VIP_DESCRIPTOR *d;
	ASSERT_TRUE(eventually([&] { return VipRecvDone(vi, &d) == VIP_INVALID_PARAMETER; }));
	EXPECT_FALSE(destroyed);
	calls.hold = false;
	destroyer.join();
	fake_raise(nic, nullptr, nullptr, VIP_ERROR_CATASTROPHIC);
	ASSERT_TRUE(calls.wait(2));
	EXPECT_EQ(2u, calls.errors.size());
	EXPECT_EQ(VIP_ERROR_CATASTROPHIC, calls.errors[1].ErrorCode);
}

/* ---- notify on work queues ------------------------------------------------------------------- */

TEST_F(Event, NotifyIsServedOncePerCallInOrder)
{
	VIP_VI_HANDLE vi = create_vi();
	VIP_DESCRIPTOR *d;

	fake_connect(vi);
	for (unsigned i = 0; i < 4; i++)
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, i));
	/* The first is complete before its handler is there. */
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	for (unsigned i = 0; i < 3; i++)
		ASSERT_EQ(VIP_SUCCESS, VipRecvNotify(vi, &calls, Calls::on_desc));
	ASSERT_TRUE(calls.wait(0, 1));
	EXPECT_EQ(2u, fake_notify_armed(nic));
	for (unsigned i = 1; i < 4; i++)
		fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	ASSERT_TRUE(calls.wait(0, 3));
	for (unsigned i = 0; i < 3; i++)
		EXPECT_EQ(desc(i), calls.descs[i]);
	/* Handlers are called once: the fourth descriptor is for Done. */
	EXPECT_TRUE(eventually([&] { return fake_notify_armed(nic) == 0; }));
	EXPECT_EQ(VIP_SUCCESS, VipRecvDone(vi, &d));
	EXPECT_EQ(desc(3), d);
	destroy_vi(vi);
}

TEST_F(Event, NotifyOfErrorsAndOnSends)
{
	VIP_VI_HANDLE vi = create_vi();

	ASSERT_EQ(VIP_SUCCESS, VipSendNotify(vi, &calls, Calls::on_desc));
	ASSERT_EQ(VIP_SUCCESS, post_send(vi, 0));
	ASSERT_TRUE(calls.wait(0, 1));
	EXPECT_TRUE(calls.descs[0]->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
	destroy_vi(vi);
}

TEST_F(Event, NotifyArguments)
{
	VIP_CQ_HANDLE cq = create_cq();
	VIP_VI_HANDLE vi = create_vi(nullptr, cq);

	EXPECT_EQ(VIP_INVALID_PARAMETER, VipRecvNotify(vi, &calls, Calls::on_desc));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipSendNotify(vi, &calls, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCQNotify(cq, &calls, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipSendNotify(nic, &calls, Calls::on_desc));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCQNotify(vi, &calls, Calls::on_cq));
	EXPECT_EQ(VIP_SUCCESS, VipSendNotify(vi, &calls, Calls::on_desc));
	destroy_vi(vi);
	EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(cq));
	EXPECT_EQ(0u, fake_notify_armed(nic));
}

TEST_F(Event, DestroyCancelsNotify)
{
	VIP_CQ_HANDLE cq = create_cq();
	VIP_VI_HANDLE vi = create_vi();

	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(VIP_SUCCESS, VipRecvNotify(vi, &calls, Calls::on_desc));
		ASSERT_EQ(VIP_SUCCESS, VipSendNotify(vi, &calls, Calls::on_desc));
		ASSERT_EQ(VIP_SUCCESS, VipCQNotify(cq, &calls, Calls::on_cq));
	}
	EXPECT_EQ(9u, fake_notify_armed(nic));
	destroy_vi(vi);
	EXPECT_EQ(3u, fake_notify_armed(nic));
	EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(cq));
	EXPECT_EQ(0u, fake_notify_armed(nic));
	EXPECT_TRUE(calls.descs.empty());
	EXPECT_TRUE(calls.entries.empty());
}

TEST_F(Event, CqNotify)
{
	VIP_CQ_HANDLE cq = create_cq();
	VIP_VI_HANDLE vi = create_vi(cq, cq);
	VIP_VI_HANDLE out;
	VIP_BOOLEAN recv;
	VIP_DESCRIPTOR *d;

	fake_connect(vi);
	for (unsigned i = 0; i < 3; i++)
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, i));
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	ASSERT_EQ(VIP_SUCCESS, VipCQNotify(cq, &calls, Calls::on_cq));
	ASSERT_TRUE(calls.wait(0, 0, 1));
	ASSERT_EQ(VIP_SUCCESS, VipCQNotify(cq, &calls, Calls::on_cq));
	EXPECT_EQ(VIP_NOT_DONE, VipCQDone(cq, &out, &recv));
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 0, 0);
	ASSERT_TRUE(calls.wait(0, 0, 2));
	for (auto &e : calls.entries) {
		EXPECT_EQ(vi, e.first);
		EXPECT_EQ(VIP_TRUE, e.second);
	}
	/* The third entry goes to no handler; all descriptors are still on the queue. */
	EXPECT_EQ(VIP_SUCCESS, VipCQDone(cq, &out, &recv));
	EXPECT_EQ(VIP_NOT_DONE, VipCQDone(cq, &out, &recv));
	for (unsigned i = 0; i < 3; i++)
		EXPECT_EQ(VIP_SUCCESS, VipRecvDone(vi, &d));
	destroy_vi(vi);
	EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(cq));
}

/* A server that works in its handler: it takes, arms again, and posts again. */
struct Chain {
	std::atomic<unsigned> count{ 0 };
	VIP_MEM_HANDLE handle;

	static void on_cq(void *context, VIP_NIC_HANDLE, VIP_VI_HANDLE vi, VIP_BOOLEAN)
	{
		auto *c = static_cast<Chain *>(context);
		VIP_DESCRIPTOR *d;

		/* At the end the descriptors are flushed: the chain ends too. */
		if (VipRecvDone(vi, &d) != VIP_SUCCESS)
			return;
		ASSERT_EQ(VIP_SUCCESS, VipPostRecv(vi, d, c->handle));
		ASSERT_EQ(VIP_SUCCESS, VipCQNotify(cq, c, on_cq));
		c->count++;
	}

	static VIP_CQ_HANDLE cq;
};

VIP_CQ_HANDLE Chain::cq;

TEST_F(Event, CqNotifyChainLosesNothing)
{
	constexpr unsigned kCount = 3000;
	Chain chain;
	VIP_CQ_HANDLE cq = Chain::cq = create_cq();
	VIP_VI_HANDLE vi = create_vi(nullptr, cq);

	chain.handle = handle;
	fake_connect(vi);
	for (unsigned i = 0; i < 64; i++)
		ASSERT_EQ(VIP_SUCCESS, post_recv(vi, i));
	ASSERT_EQ(VIP_SUCCESS, VipCQNotify(cq, &chain, Chain::on_cq));
	for (unsigned i = 0; i < kCount; i++) {
		/* At most as many descriptors are outstanding as there are. */
		ASSERT_TRUE(eventually([&] { return i - chain.count < 32; }));
		fake_complete_at(vi, 1, i, VIP_STATUS_OP_RECEIVE);
	}
	EXPECT_TRUE(eventually([&] { return chain.count == kCount; }));
	destroy_vi(vi);
	EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(cq));
}

/* ---- handlers that destroy the objects they are called for ----------------------------------- */

TEST_F(Event, AHandlerMayDestroyItsVi)
{
	VIP_VI_HANDLE vi = create_vi();
	std::atomic<int> result{ -1 };

	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(nic, &result, [](void *r, VIP_ERROR_DESCRIPTOR *e) {
			  VipDisconnect(e->ViHandle);
			  *static_cast<std::atomic<int> *>(r) = VipDestroyVi(e->ViHandle);
		  }));
	fake_connect(vi);
	fake_break(vi, 1, VIP_ERROR_CONN_LOST);
	EXPECT_TRUE(eventually([&] { return result != -1; }));
	EXPECT_EQ(VIP_SUCCESS, result);
}

TEST_F(Event, ANotifyHandlerMayDestroyItsVi)
{
	VIP_VI_HANDLE vi = create_vi();
	struct Seen {
		/* VipDisconnect() uses the VI until it returns. */
		std::atomic<bool> disconnected{ false };
		std::atomic<int> result{ -1 };
	} seen;

	for (int i = 0; i < 2; i++)
		ASSERT_EQ(VIP_SUCCESS,
			  VipRecvNotify(vi, &seen,
					[](void *p, VIP_NIC_HANDLE, VIP_VI_HANDLE v,
					   VIP_DESCRIPTOR *) {
						auto &s = *static_cast<Seen *>(p);
						eventually([&] { return s.disconnected.load(); });
						s.result = VipDestroyVi(v);
					}));
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	EXPECT_EQ(VIP_SUCCESS, VipDisconnect(vi));
	seen.disconnected = true;
	EXPECT_TRUE(eventually([&] { return seen.result != -1; }));
	EXPECT_EQ(VIP_SUCCESS, seen.result);
	EXPECT_EQ(0u, fake_notify_armed(nic));
}

TEST_F(Event, AHandlerMayCloseItsNic)
{
	VIP_NIC_HANDLE other;
	std::atomic<int> result{ -1 };

	ASSERT_EQ(VIP_SUCCESS, VipOpenNic("fake", &other));
	ASSERT_EQ(VIP_SUCCESS,
		  VipErrorCallback(other, &result, [](void *r, VIP_ERROR_DESCRIPTOR *e) {
			  *static_cast<std::atomic<int> *>(r) = VipCloseNic(e->NicHandle);
		  }));
	fake_raise(other, nullptr, nullptr, VIP_ERROR_CATASTROPHIC);
	EXPECT_TRUE(eventually([&] { return result != -1; }));
	EXPECT_EQ(VIP_SUCCESS, result);
	VIP_NIC_ATTRIBUTES a;
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipQueryNic(other, &a));
}

TEST_F(Event, AHandlerMayExit)
{
	GTEST_FLAG_SET(death_test_style, "threadsafe");
	EXPECT_EXIT(
		{
			VipErrorCallback(nic, nullptr,
					 [](void *, VIP_ERROR_DESCRIPTOR *) { exit(7); });
			fake_raise(nic, nullptr, nullptr, VIP_ERROR_CATASTROPHIC);
			eventually([] { return false; });
		},
		testing::ExitedWithCode(7), "");
}

TEST_F(Event, CloseWaitsForAHandler)
{
	VIP_NIC_HANDLE other;

	ASSERT_EQ(VIP_SUCCESS, VipOpenNic("fake", &other));
	calls.hold = true;
	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(other, &calls, Calls::on_error));
	fake_raise(other, nullptr, nullptr, VIP_ERROR_CATASTROPHIC);
	ASSERT_TRUE(eventually([&] { return calls.inside.load(); }));
	std::thread closer([&] {
		VIP_RETURN rc;
		/* The destruction is refused while the query below is inside. */
		do
			rc = VipCloseNic(other);
		while (rc == VIP_ERROR_RESOURCE);
		EXPECT_EQ(VIP_SUCCESS, rc);
		std::lock_guard<std::mutex> l(calls.lock);
		EXPECT_EQ(1u, calls.errors.size());
	});
	VIP_NIC_ATTRIBUTES a;
	EXPECT_TRUE(eventually([&] { return VipQueryNic(other, &a) == VIP_INVALID_PARAMETER; }));
	calls.hold = false;
	closer.join();
}

} // namespace
