/* SPDX-License-Identifier: BSD-2-Clause */
/* VIPL 5.6: a completion queue of many busy VIs, which polls watch instead of visiting them. */
#include "harness.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <map>
#include <mutex>
#include <thread>

#include <signal.h>

using namespace conf;

namespace {

constexpr size_t kLinks = 14; /* 28 queues on the CQ */

/* Links whose sides b (`side` 0: a) complete to one CQ. */
struct Busy {
	explicit Busy(VIP_RELIABILITY_LEVEL level, size_t count = kLinks, int side = 1)
	    : cq(nic(side), 4096)
	{
		LinkOptions o;
		(side == 1 ? o.b_scq : o.a_scq) = (side == 1 ? o.b_rcq : o.a_rcq) = cq;
		o.arena = 1u << 16;
		for (size_t i = 0; i < count; i++)
			links.push_back(std::make_unique<Link>(level, o));
	}
	/* Takes one entry and its descriptor; NULL when there is none. */
	VIP_DESCRIPTOR *poll(VIP_VI_HANDLE *vi_out, VIP_BOOLEAN *recv_out)
	{
		VIP_DESCRIPTOR *desc = nullptr;

		if (VipCQDone(cq, vi_out, recv_out) != VIP_SUCCESS)
			return nullptr;
		if (*recv_out)
			VipRecvDone(*vi_out, &desc);
		else
			VipSendDone(*vi_out, &desc);
		EXPECT_NE(nullptr, desc) << "the descriptor is complete before its entry is";
		return desc;
	}
	/* Takes `count` entries; returns how many receives and sends each VI had. */
	std::map<VIP_VI_HANDLE, std::pair<int, int>> take(size_t count)
	{
		std::map<VIP_VI_HANDLE, std::pair<int, int>> all;

		eventually([&] {
			VIP_VI_HANDLE vi;
			VIP_BOOLEAN recv;

			while (count > 0 && poll(&vi, &recv) != nullptr) {
				(recv ? all[vi].first : all[vi].second)++;
				count--;
			}
			return count == 0;
		});
		EXPECT_EQ(0u, count);
		return all;
	}
	void expect_empty()
	{
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN recv;

		EXPECT_RC(VIP_NOT_DONE, VipCQDone(cq, &vi, &recv));
	}
	Cq cq;
	std::vector<std::unique_ptr<Link>> links;
};

} // namespace

TEST(CqMany, RoundTripsOfAll)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.6: one entry for each completion, of many VIs, ") +
		     level.name);
		Busy busy(level.value);
		for (int turn = 0; turn < 8; turn++) {
			for (auto &l : busy.links) {
				l->recv_b(200);
				/* In one slot and through the payload buffer in turn. */
				l->send_a({ l->seg_a(turn % 2 ? 200 : 8) });
			}
			for (auto &each : busy.take(kLinks))
				EXPECT_EQ(std::make_pair(1, 0), each.second);
			for (auto &l : busy.links) {
				l->recv_a(200);
				VIP_DESCRIPTOR *d = make(l->b, 0, { l->seg_b(turn % 2 ? 8 : 200) });
				EXPECT_RC(VIP_SUCCESS, VipPostSend(*l->vb, d, l->b.mem.h));
			}
			for (auto &l : busy.links)
				EXPECT_NE(nullptr, take_recv(*l->va));
			for (auto &each : busy.take(kLinks))
				EXPECT_EQ(std::make_pair(0, 1), each.second);
			busy.expect_empty();
		}
	}
}

/* More messages each way than there are slots, so that sends wait for credit. */
TEST(CqMany, SendsThatWaitForCredit)
{
	constexpr size_t kEach = 300;

	for (auto &level : levels()) {
		if (!level.reliable())
			continue;
		RULE(std::string("VIPL 5.6: sends that wait for the peer complete to the CQ, ") +
		     level.name);
		Busy busy(level.value, 9);
		Link &l = *busy.links[4];
		std::vector<VIP_DESCRIPTOR *> recvs;
		for (size_t i = 0; i < kEach; i++)
			recvs.push_back(l.recv_a(8));
		VIP_DESCRIPTOR *d = make(l.b, 0, { l.seg_b(8) });
		std::vector<VIP_DESCRIPTOR *> sends(1, d);
		for (size_t i = 1; i < kEach; i++)
			sends.push_back(make(l.b, 0, { l.seg_b(8) }));
		for (auto *each : sends)
			EXPECT_RC(VIP_SUCCESS, VipPostSend(*l.vb, each, l.b.mem.h));
		std::thread receiver([&] {
			for (auto *each : recvs)
				EXPECT_EQ(each, take_recv(*l.va));
		});
		auto all = busy.take(kEach);
		receiver.join();
		EXPECT_EQ(1u, all.size());
		EXPECT_EQ(std::make_pair(0, int(kEach)), all[*l.vb]);
		busy.expect_empty();
	}
}

/* The number of polls of the CQ of side B, on which its receives complete, until a message from there has arrived. */
int polls_of_a_message(Link &l, Cq &cq, VIP_DESCRIPTOR *send, VIP_DESCRIPTOR *recv)
{
	VIP_DESCRIPTOR *got = nullptr;
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN is_recv;
	int polls = 0;

	EXPECT_RC(VIP_SUCCESS, VipPostRecv(*l.va, recv, l.a.mem.h));
	/* Polls until all are watched. */
	for (size_t i = 0; i < 4 * kLinks; i++)
		EXPECT_RC(VIP_NOT_DONE, VipCQDone(cq, &vi, &is_recv));
	EXPECT_RC(VIP_SUCCESS, VipPostSend(*l.vb, send, l.b.mem.h));
	/* A port may hold stores back until a thread of its own has run. */
	eventually([&] {
		for (int i = 0; i < 100; i++) {
			if (VipRecvDone(*l.va, &got) != VIP_NOT_DONE)
				return true;
			EXPECT_RC(VIP_NOT_DONE, VipCQDone(cq, &vi, &is_recv));
			polls++;
		}
		return false;
	});
	EXPECT_EQ(recv, got);
	EXPECT_EQ(send, take_send(*l.vb));
	return polls;
}

/*
 * A send queue without a CQ: polls of the receive queue's CQ move the message on, as with few VIs, and
 * not only when it is the VI's turn.
 */
TEST(CqMany, PollsMoveLongSendsOn)
{
	if (hops() > 1)
		GTEST_SKIP() << "packets move when relays move them";
	RULE("VIPL 5.6: a poll of a completion queue moves the packets of its VIs");
	constexpr size_t kBytes = 1u << 20;
	constexpr int kPolls = 100;
	Cq cq(nic(1), 64);
	LinkOptions o;
	o.b_rcq = cq;
	o.max_transfer = kBytes;
	std::vector<std::unique_ptr<Link>> links;
	for (size_t i = 0; i < kLinks; i++)
		links.push_back(std::make_unique<Link>(VIP_SERVICE_RELIABLE_DELIVERY, o));
	Link &l = *links[kLinks / 2];
	VIP_DESCRIPTOR *send = make(l.b, 0, { l.seg_b(kBytes) });
	VIP_DESCRIPTOR *recv = make(l.a, 0, { l.seg_a(kBytes) });
	int least = INT_MAX;

	/* If a thread of the provider is interrupted while it has the VI's lock, one message takes long. */
	for (int i = 0; i < 30 && least >= kPolls; i++)
		least = std::min(least, polls_of_a_message(l, cq, send, recv));
	EXPECT_LT(least, kPolls);
}

/* How many entries a VI with `flood` messages has made until each of the others has made one. */
int entries_of_a_flood(int flood)
{
	Busy busy(VIP_SERVICE_RELIABLE_DELIVERY);
	std::map<VIP_VI_HANDLE, int> count;
	Link &first = *busy.links[0];

	for (int i = 0; i < flood; i++)
		first.recv_b(8);
	for (size_t i = 1; i < kLinks; i++)
		busy.links[i]->recv_b(8);
	busy.expect_empty();
	for (int i = 0; i < flood; i++)
		first.send_a({ first.seg_a(8) });
	for (size_t i = 1; i < kLinks; i++)
		busy.links[i]->send_a({ busy.links[i]->seg_a(8) });
	/* A send that waits for its peer's credit gets it whenever the provider's thread runs. */
	for (size_t i = 1; i < kLinks; i++)
		take_send(*busy.links[i]->va);
	eventually([&] {
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN recv;

		while (count.size() < kLinks && busy.poll(&vi, &recv) != nullptr)
			count[vi]++;
		return count.size() == kLinks;
	});
	EXPECT_EQ(kLinks, count.size());
	return count[*first.vb];
}

TEST(CqMany, NoneStarves)
{
	RULE("VIPL 5.6: the entries of a VI that never rests keep those of others waiting for a few "
	     "entries only");
	constexpr int kFlood = 100, kFew = 3 * int(kLinks), kTimes = 10;
	int late = entries_of_a_flood(kFlood) >= kFew;

	if (late == 0 || stores_may_wait())
		return;
	/* If a thread of the provider is interrupted while it has the lock of a VI, that one's entry takes long. */
	for (int i = 0; i < kTimes && !HasFailure(); i++)
		late += entries_of_a_flood(kFlood) >= kFew;
	EXPECT_LE(late, kTimes / 2);
}

/* Every descriptor that was posted makes an entry, whichever end disconnects while a thread polls. */
TEST(CqMany, DisconnectedUnderThePoll)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.6: flushed descriptors of many VIs give entries, ") +
		     level.name);
		Busy busy(level.value);
		std::atomic<bool> stop{ false };
		std::mutex lock;
		std::map<VIP_VI_HANDLE, int> count;
		std::thread poller([&] {
			VIP_VI_HANDLE vi;
			VIP_BOOLEAN recv;

			while (!stop) {
				if (busy.poll(&vi, &recv) == nullptr)
					continue;
				std::lock_guard<std::mutex> guard(lock);
				count[vi]++;
			}
		});
		auto reaches = [&](VIP_VI_HANDLE vi, int want) {
			return eventually([&] {
				std::lock_guard<std::mutex> guard(lock);
				return count[vi] == want;
			});
		};
		for (auto &l : busy.links)
			for (int i = 0; i < 4; i++)
				l->recv_b(8);
		for (size_t i = 0; i < kLinks; i++) {
			Link &l = *busy.links[i];
			Link &other = *busy.links[(i + 1) % kLinks];

			if (i + 1 < kLinks)
				other.send_a({ other.seg_a(8) });
			l.na.clear();
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(i % 2 ? *l.va : *l.vb));
			EXPECT_TRUE(reaches(*l.vb, 4)) << i;
		}
		stop = true;
		poller.join();
		for (auto &each : count)
			EXPECT_EQ(4, each.second);
	}
}

/* Their slices are unmapped, and made again, while a thread compares the words in them. */
TEST(CqMany, ConnectedAnewUnderThePoll)
{
	RULE("VIPL 5.2 VipDestroyVi: VIs come and go while a thread polls their CQ");
	Busy busy(VIP_SERVICE_RELIABLE_DELIVERY, 8);
	std::atomic<bool> stop{ false };
	std::atomic<int> taken{ 0 };
	std::thread poller([&] {
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN recv;

		while (!stop)
			taken += busy.poll(&vi, &recv) != nullptr;
	});
	LinkOptions o;
	o.b_scq = o.b_rcq = busy.cq;
	o.arena = 1u << 14;
	for (int i = 0; i < 40; i++) {
		Link l(VIP_SERVICE_RELIABLE_DELIVERY, o);
		int before = taken;

		l.recv_b(8);
		l.recv_b(8);
		l.send_a({ l.seg_a(8) });
		EXPECT_TRUE(eventually([&] { return taken == before + 1; }));
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.vb));
		EXPECT_TRUE(eventually([&] { return taken == before + 2; }));
	}
	stop = true;
	poller.join();
}

TEST(CqMany, KilledPeers)
{
	RULE("VIPL 5.6: the receives of VIs whose peers were killed are flushed to the CQ");
	/* The children connect to side 0. */
	Busy busy(VIP_SERVICE_RELIABLE_DELIVERY, 8, 0);
	std::vector<std::unique_ptr<Vi>> vis;
	std::vector<pid_t> pids;
	Arena arena(nic(0));
	VIP_VI_ATTRIBUTES attrs = vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY, 16u << 20);

	for (int i = 0; i < 3; i++) {
		vis.push_back(std::make_unique<Vi>(nic(0), attrs, busy.cq, busy.cq));
		pids.push_back(connect_stopped(*vis.back()));
		ASSERT_GT(pids.back(), 0);
		for (int k = 0; k < 2; k++)
			EXPECT_RC(VIP_SUCCESS,
				  VipPostRecv(*vis.back(), make(arena, 0, {}), arena.mem.h));
	}
	busy.expect_empty();
	for (pid_t pid : pids) {
		kill(pid, SIGKILL);
		child_wait(pid);
	}
	auto all = busy.take(6);
	for (auto &vi : vis) {
		EXPECT_EQ(std::make_pair(2, 0), all[*vi]);
		EXPECT_TRUE(vi->reaches(VIP_STATE_ERROR));
	}
	nic(0).clear();
	for (auto &l : busy.links) {
		l->recv_a(8);
		EXPECT_RC(VIP_SUCCESS,
			  VipPostSend(*l->vb, make(l->b, 0, { l->seg_b(8) }), l->b.mem.h));
	}
	EXPECT_EQ(busy.links.size(), busy.take(busy.links.size()).size());
}

/* Any of the VIs wakes a program that sleeps. */
TEST(CqMany, WaitWakes)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.6 VipCQWait: a completion of any VI ends the wait, ") +
		     level.name);
		Busy busy(level.value);
		for (size_t i = 0; i < kLinks; i++) {
			Link &l = *busy.links[i];
			VIP_VI_HANDLE vi = nullptr;
			VIP_BOOLEAN recv = VIP_FALSE;
			VIP_DESCRIPTOR *desc;

			l.recv_b(8);
			std::thread sender([&] { l.send_a({ l.seg_a(8) }); });
			EXPECT_RC(VIP_SUCCESS, VipCQWait(busy.cq, kWaitMs, &vi, &recv));
			EXPECT_EQ(l.vb->h, vi);
			EXPECT_RC(VIP_SUCCESS, VipRecvDone(vi, &desc));
			sender.join();
		}
	}
}
