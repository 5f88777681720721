/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that can be used up: the call that finds nothing left says so, nothing is lost, and what is
 * given back can be used again.
 */
#include "clu.h"

#include <cstdio>
#include <memory>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

/* ---- queues --------------------------------------------------------------------------------- */

TEST(Exhaust, CqOfOneEntryLosesNothing)
{
	Await awaited("completions of 100 VIs through a CQ of one entry", 60);
	const size_t pairs = 50, each = 8;
	Fabric fabric(1);
	Nic nic;
	VIP_CQ_HANDLE cq;
	NEED_RC(VIP_SUCCESS, VipCreateCQ(nic, 1, &cq));
	{
		Slab slab(nic, 4 * pairs * each, 64);
		std::vector<std::unique_ptr<Vi>> vis;
		for (size_t i = 0; i < 2 * pairs; i++) {
			vis.push_back(std::make_unique<Vi>(
				nic, attrs(VIP_SERVICE_RELIABLE_RECEPTION), cq, cq));
			for (size_t k = 0; k < each; k++)
				post_recv(*vis[i], slab, slab.fill(i * each + k, 64));
		}
		for (size_t i = 0; i < 2 * pairs; i += 2)
			NEED_RC(VIP_SUCCESS,
				join(nic, *vis[i], nic, *vis[i + 1], text("cq%zu", i)));
		for (size_t k = 0; k < each; k++)
			for (size_t i = 0; i < 2 * pairs; i++)
				post_send(*vis[i], slab, slab.fill((2 * pairs + i) * each + k, 64));
		/* All have completed before the first is taken. */
		NEED(until([&] {
			VipxProgress(nic);
			return nic.counters().MessagesReceived == 2 * pairs * each;
		}));
		std::map<VIP_VI_HANDLE, size_t> found[2];
		for (size_t n = 0; n < 4 * pairs * each; n++) {
			VIP_VI_HANDLE vi;
			VIP_BOOLEAN recv;
			VIP_DESCRIPTOR *d = nullptr;
			ASSERT_EQ(VIP_SUCCESS, VipCQWait(cq, kSeconds * 1000, &vi, &recv)) << n;
			ASSERT_EQ(VIP_SUCCESS, recv ? VipRecvDone(vi, &d) : VipSendDone(vi, &d));
			size_t first = recv ? 0 : 2 * pairs * each;
			size_t i = (slab.index(d) - first) / each, k = slab.index(d) % each;
			ASSERT_EQ(vis[i]->h, vi);
			ASSERT_EQ(k, found[recv ? 1 : 0][vi]++) << "out of order";
		}
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN recv;
		EXPECT_EQ(VIP_NOT_DONE, VipCQDone(cq, &vi, &recv));
		EXPECT_EQ(0u, nic.count(VIP_ERROR_CATASTROPHIC));
	}
	NEED_RC(VIP_SUCCESS, VipDestroyCQ(cq));
}

TEST(Exhaust, FullQueuesSaySoAndKeepWhatTheyHold)
{
	Await awaited("queues to fill", 60);
	Fabric fabric(1);
	Nic nic;
	size_t depth = nic.attrs.MaxDescriptorsPerQueue;
	Slab slab(nic, 2 * depth + 2, 8);
	Vi a(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY)),
		b(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
	for (size_t i = 0; i < depth; i++)
		post_recv(b, slab, slab.fill(i, 8));
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipPostRecv(b, slab.fill(2 * depth, 8), slab.h));
	EXPECT_TRUE(nic.event(VIP_ERROR_VI_OVERRUN, b));
	NEED_RC(VIP_SUCCESS, join(nic, a, nic, b, "full"));
	for (size_t i = 0; i < depth; i++) {
		*reinterpret_cast<uint64_t *>(slab.data(depth + i)) = i;
		post_send(a, slab, slab.fill(depth + i, 8));
	}
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipPostSend(a, slab.fill(2 * depth + 1, 8), slab.h));
	EXPECT_TRUE(nic.event(VIP_ERROR_VI_OVERRUN, a));
	for (size_t i = 0; i < depth; i++) {
		ASSERT_EQ(depth + i, slab.index(sent(a)));
		VIP_DESCRIPTOR *d = received(b);
		ASSERT_EQ(i, slab.index(d));
		ASSERT_EQ(i, *reinterpret_cast<uint64_t *>(slab.data(i)));
	}
	/* There is room again. */
	post_recv(b, slab, slab.fill(0, 8));
	post_send(a, slab, slab.fill(1, 8));
	sent(a);
	received(b);
	EXPECT_EQ(VIP_STATE_CONNECTED, a.state());
	EXPECT_EQ(VIP_STATE_CONNECTED, b.state());
}

/* ---- connections until something is used up -------------------------------------------------- */

/* Pairs of VIs on two NIC handles. */
struct Pairs {
	Pairs(Nic &a, Nic &b, size_t max) : na(a), nb(b), sa(a, max, 64), sb(b, max, 64) {}

	/* Adds pairs until one fails; returns its error, VIP_SUCCESS if none failed. */
	VIP_RETURN fill()
	{
		VIP_RETURN rc = VIP_SUCCESS;
		while (rc == VIP_SUCCESS && list.size() < sa.count) {
			auto a = std::make_unique<Vi>(na, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
			auto b = std::make_unique<Vi>(nb, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
			rc = join(na, *a, nb, *b, text("pair%zu", serial++));
			if (rc == VIP_SUCCESS)
				list.emplace_back(std::move(a), std::move(b));
		}
		return rc;
	}

	/* A message each way on each. */
	void use()
	{
		for (size_t i = 0; i < list.size(); i++) {
			Vi &a = *list[i].first, &b = *list[i].second;
			post_recv(b, sb, sb.fill(i, 64));
			snprintf(sa.data(i), 64, "a%zu", i);
			post_send(a, sa, sa.fill(i, 64));
			sent(a);
			received(b);
			NEED(text("a%zu", i) == sb.data(i));
			post_recv(a, sa, sa.fill(i, 64));
			snprintf(sb.data(i), 64, "b%zu", i);
			post_send(b, sb, sb.fill(i, 64));
			sent(b);
			received(a);
			NEED(text("b%zu", i) == sa.data(i));
		}
	}

	/* Destroys both VIs of the last pair. */
	void drop_one()
	{
		list.back().first->destroy();
		list.back().second->destroy();
		list.pop_back();
	}

	Nic &na, &nb;
	Slab sa, sb;
	size_t serial = 0;
	std::vector<std::pair<std::unique_ptr<Vi>, std::unique_ptr<Vi>>> list;
};

/* At least `least` connections fit into a window of that size. */
static void window_exhausted(unsigned hosts, const char *bytes, size_t least)
{
	Await awaited("the window to be used up", 60);
	Fabric fabric(hosts, { "--window", bytes });
	std::vector<uint64_t> window;
	for (unsigned i = 0; i < hosts; i++)
		window.push_back(fabric.window_used(i));
	{
		Nic a("host0"), b(hosts == 1 ? "host0" : "host1");
		Pairs pairs(a, b, 128);
		for (int round = 0; round < 3; round++) {
			ASSERT_EQ(VIP_ERROR_RESOURCE, pairs.fill());
			ASSERT_GE(pairs.list.size(), least);
			pairs.use();
			size_t before = pairs.list.size();
			pairs.drop_one();
			/* The space is free again when both processes have given it up. */
			ASSERT_TRUE(until([&] {
				return pairs.fill() == VIP_ERROR_RESOURCE &&
				       pairs.list.size() == before;
			}));
			pairs.use();
			while (pairs.list.size() > 1)
				pairs.drop_one();
		}
		pairs.use();
	}
	EXPECT_TRUE(until([&] {
		for (unsigned i = 0; i < hosts; i++)
			if (fabric.window_used(i) != window[i])
				return false;
		return true;
	}));
}

TEST(Exhaust, WindowOfOneHost)
{
	window_exhausted(1, "8M", 2);
}

TEST(Exhaust, WindowBetweenHosts)
{
	window_exhausted(2, "8M", 2);
}

TEST(Exhaust, SmallWindowOfOneHost)
{
	window_exhausted(1, "1M", 16);
}

TEST(Exhaust, SmallWindowBetweenHosts)
{
	window_exhausted(2, "1M", 16);
}

TEST(Exhaust, LeastWindowBetweenHosts)
{
	window_exhausted(2, "256K", 8);
}

TEST(Exhaust, WindowMemory)
{
	Await awaited("window memory to be used up", 60);
	Fabric fabric(1, { "--window", "4M" });
	Nic nic;
	std::vector<std::pair<VIP_PVOID, VIP_MEM_HANDLE>> held;
	VIP_PVOID p;
	VIP_MEM_HANDLE h;
	VIP_RETURN rc;
	while ((rc = VipxAllocMem(nic, 256u << 10, nullptr, &p, &h)) == VIP_SUCCESS) {
		memset(p, 1, 256u << 10);
		held.emplace_back(p, h);
		ASSERT_LE(held.size(), 16u);
	}
	EXPECT_EQ(VIP_ERROR_RESOURCE, rc);
	EXPECT_GE(held.size(), 14u);
	/* No slice is left for a connection: the call says so, and the VIs can be used later. */
	Vi a(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY)),
		b(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
	EXPECT_EQ(VIP_ERROR_RESOURCE, join(nic, a, nic, b, "none"));
	EXPECT_EQ(VIP_STATE_IDLE, a.state());
	EXPECT_EQ(VIP_STATE_IDLE, b.state());
	for (auto &piece : held)
		NEED_RC(VIP_SUCCESS, VipxFreeMem(nic, piece.first, piece.second));
	EXPECT_TRUE(until([&] { return join(nic, a, nic, b, "some") == VIP_SUCCESS; }));
}

/* ---- descriptors of the process -------------------------------------------------------------- */

/* Under a low limit: whatever fails returns VIP_ERROR_RESOURCE, and what was made before still works. */
ROLE(poor)
{
	Await awaited("a process with few descriptors", 60);
	Nic a("host0"), b("host0");
	{
		Pairs pairs(a, b, 8);
		NEED_RC(VIP_SUCCESS, pairs.fill());
		pairs.use();
		std::vector<int> taken;
		for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
			taken.push_back(fd);
		NEED(errno == EMFILE);
		VIP_NIC_HANDLE other;
		NEED_RC(VIP_ERROR_RESOURCE, VipOpenNic("nic0", &other));
		VIP_CQ_HANDLE cq;
		int fd;
		NEED_RC(VIP_SUCCESS, VipCreateCQ(a, 4, &cq));
		NEED_RC(VIP_ERROR_RESOURCE, VipxCQFd(cq, &fd));
		NEED_RC(VIP_SUCCESS, VipDestroyCQ(cq));
		VIP_PVOID p;
		VIP_MEM_HANDLE h;
		NEED_RC(VIP_ERROR_RESOURCE, VipxAllocMem(a, 4096, nullptr, &p, &h));
		Vi x(a, attrs(VIP_SERVICE_RELIABLE_DELIVERY)),
			y(b, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
		NEED_RC(VIP_ERROR_RESOURCE, join(a, x, b, y, "poor", 1000));
		NEED(x.state() == VIP_STATE_IDLE && y.state() == VIP_STATE_IDLE);
		pairs.use();
		for (int one : taken)
			close(one);
		NEED_RC(VIP_SUCCESS, join(a, x, b, y, "rich"));
		NEED_RC(VIP_SUCCESS, VipOpenNic("nic0", &other));
		NEED_RC(VIP_SUCCESS, VipCloseNic(other));
		pairs.use();
	}
	cell(0) = 1;
}

TEST(Exhaust, DescriptorsOfTheProcess)
{
	Await awaited("a process with few descriptors", 60);
	board_clear();
	Fabric fabric(1);
	uint64_t window = fabric.window_used(0);
	Process poor = role("poor", {}, { { "VIADUCT_LOG", "error" } }, 64);
	EXPECT_EQ(0, poor.wait(50));
	EXPECT_EQ(1u, cell(0));
	EXPECT_TRUE(
		until([&] { return fabric.clients(0) == 0 && fabric.window_used(0) == window; }));
}

/* ---- descriptors of the agent ---------------------------------------------------------------- */

TEST(Exhaust, DescriptorsOfTheAgent)
{
	Await awaited("an agent with few descriptors", 60);
	Fabric fabric(1, {}, 32);
	auto first = std::make_unique<Nic>("host0"), second = std::make_unique<Nic>("host0");
	auto pairs = std::make_unique<Pairs>(*first, *second, 4);
	ASSERT_EQ(VIP_SUCCESS, pairs->fill());
	pairs->use();
	std::vector<VIP_NIC_HANDLE> more;
	VIP_NIC_HANDLE nic;
	VIP_RETURN rc;
	while ((rc = VipOpenNic("host0", &nic)) == VIP_SUCCESS && more.size() < 64)
		more.push_back(nic);
	EXPECT_EQ(VIP_ERROR_RESOURCE, rc);
	EXPECT_GT(more.size(), 0u);
	pairs->use();
	EXPECT_FALSE(fabric.agent(0).ended());
	for (VIP_NIC_HANDLE one : more)
		NEED_RC(VIP_SUCCESS, VipCloseNic(one));
	/* It serves again when others have left. */
	EXPECT_TRUE(until([&] { return VipOpenNic("host0", &nic) == VIP_SUCCESS; }));
	NEED_RC(VIP_SUCCESS, VipCloseNic(nic));
	pairs->use();
	pairs.reset();
}
