/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kill -9 of a client, a server, an agent, under traffic: every survivor learns it, by an error
 * callback and by error completions of everything outstanding, and nothing is left.
 */
#include "clu.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

constexpr size_t kVis = 4, kDepth = 16, kBytes = 6000;
constexpr int64_t kWithin = 5000000000, kSoon = 1000000000;

/* Cells of each side (0 client, 1 server). */
enum { CELL_COUNT, CELL_CALLBACK, CELL_FLUSHED, CELL_CLOSED, CELLS = 16 };

static std::atomic<uint64_t> &mine(unsigned side, unsigned what)
{
	return cell(side * CELLS + what);
}

static VIP_RELIABILITY_LEVEL level(size_t i)
{
	return i % 4 == 3 ? VIP_SERVICE_UNRELIABLE
	       : i % 2	  ? VIP_SERVICE_RELIABLE_DELIVERY
			  : VIP_SERVICE_RELIABLE_RECEPTION;
}

/* One side of the traffic: messages both ways on each VI until the connections are lost. */
class Side {
public:
	explicit Side(unsigned which)
	    : side(which), nic(text("host%u", which)), slab(nic, kVis * kDepth * 2, kBytes)
	{
		for (size_t i = 0; i < kVis; i++) {
			vis.push_back(std::make_unique<Vi>(nic, attrs(level(i))));
			for (size_t k = 0; k < kDepth; k++)
				post_recv(*vis[i], slab, slab.fill(i * kDepth + k, kBytes));
		}
		for (size_t i = 0; i < kVis; i++)
			NEED_RC(VIP_SUCCESS, side ? serve(nic, *vis[i], text("kill%zu", i))
						  : request(nic, *vis[i], 1, text("kill%zu", i)));
		for (size_t i = 0; i < kVis && side == 0; i++)
			for (size_t k = 0; k < kDepth / 2; k++)
				send_message(i, k);
	}

	void run()
	{
		size_t lost = 0;
		std::vector<bool> broken(kVis);
		for (size_t turn = 0; lost < kVis; turn++) {
			size_t i = turn % kVis;
			if (!broken[i] && !step(i, turn % 7 == 0)) {
				broken[i] = true;
				lost++;
			}
		}
		mine(side, CELL_FLUSHED) = static_cast<uint64_t>(now_ns());
		NEED(until([this] { return nic.first_event_at() != 0; }));
		mine(side, CELL_CALLBACK) = static_cast<uint64_t>(nic.first_event_at());
		for (auto &vi : vis) {
			NEED(vi->state() == VIP_STATE_ERROR);
			vi->destroy();
		}
	}

private:
	/* Takes one message and answers it; false when the VI is broken and its queues empty. */
	bool step(size_t i, bool block)
	{
		VIP_DESCRIPTOR *d = nullptr;
		VIP_RETURN rc = block ? VipRecvWait(*vis[i], 3, &d) : VipRecvDone(*vis[i], &d);
		if (rc == VIP_SUCCESS) {
			size_t k = slab.index(d) % kDepth;
			post_recv(*vis[i], slab, slab.fill(i * kDepth + k, kBytes));
			reap(i);
			send_message(i, k);
			mine(side, CELL_COUNT)++;
			return true;
		}
		if (rc != VIP_DESCRIPTOR_ERROR)
			return true;
		/* Everything outstanding comes back, with an error. */
		while (d) {
			NEED((d->CS.Status & VIP_STATUS_ERROR_MASK) != 0);
			NEED_RC(VIP_DESCRIPTOR_ERROR, VipRecvDone(*vis[i], &d));
		}
		NEED(until([&] { return reap(i); }));
		return false;
	}

	/* Takes completed sends; true when the queue is empty. */
	bool reap(size_t i)
	{
		VIP_DESCRIPTOR *d;
		VIP_RETURN rc;
		for (;;) {
			rc = VipSendDone(*vis[i], &d);
			if (!d)
				return rc == VIP_DESCRIPTOR_ERROR;
			busy[slab.index(d)] = false;
		}
	}

	/* Sends with the same descriptor each time, so waits until the last send has completed. */
	void send_message(size_t i, size_t k)
	{
		size_t at = (kVis + i) * kDepth + k;
		NEED(until([&] { return !busy[at] || (reap(i), !busy[at]); }));
		busy[at] = true;
		post_send(*vis[i], slab, slab.fill(at, 1 + (turns++ * 977) % kBytes));
	}

	unsigned side;
	Nic nic;
	Slab slab;
	std::vector<std::unique_ptr<Vi>> vis;
	std::vector<bool> busy = std::vector<bool>(2 * kVis * kDepth);
	uint64_t turns = 0;
};

ROLE(side)
{
	Await awaited("one side of the traffic", 60);
	unsigned which = static_cast<unsigned>(atoi(args[0].c_str()));
	{
		Side side(which);
		side.run();
	}
	mine(which, CELL_CLOSED) = 1;
}

enum Victim { CLIENT, SERVER, AGENT_OF_CLIENT, AGENT_OF_SERVER, VICTIMS };

struct Times {
	std::vector<int64_t> callback, completion;

	static void show(const char *what, std::vector<int64_t> &t)
	{
		std::sort(t.begin(), t.end());
		size_t late =
			static_cast<size_t>(t.end() - std::upper_bound(t.begin(), t.end(), kSoon));
		if (t.empty())
			return;
		printf("%s after a kill: median %.1f ms, 90 %% %.1f ms, worst %.1f ms, "
		       "%zu of %zu over 1 s\n",
		       what, static_cast<double>(t[t.size() / 2]) / 1e6,
		       static_cast<double>(t[t.size() * 9 / 10]) / 1e6,
		       static_cast<double>(t.back()) / 1e6, late, t.size());
	}
};

static void kill_one(Victim victim, Random &random, Times &times)
{
	Fabric fabric(2);
	board_clear();
	std::vector<size_t> fds;
	std::vector<uint64_t> window;
	for (unsigned i = 0; i < 2; i++) {
		window.push_back(fabric.window_used(i));
		fds.push_back(quiet_fds(fabric.agent(i).pid()));
	}
	Process sides[2] = { role("side", { "0" }, { { "VIADUCT_LOG", "error" } }),
			     role("side", { "1" }, { { "VIADUCT_LOG", "error" } }) };
	/* A random moment is a random number of messages after the first. */
	uint64_t moment = 1 + random.below(2000);
	NEED(until([&] {
		return mine(0, CELL_COUNT) >= moment || sides[0].ended() || sides[1].ended();
	}));
	ASSERT_FALSE(sides[0].ended() || sides[1].ended()) << "a side ended before the kill";
	Process &dead = victim < AGENT_OF_CLIENT ? sides[victim]
						 : fabric.agent(victim - AGENT_OF_CLIENT);
	int64_t at = now_ns();
	dead.kill(SIGKILL);
	EXPECT_EQ(128 + SIGKILL, dead.wait());
	for (unsigned i = 0; i < 2; i++) {
		if (victim == static_cast<Victim>(i))
			continue;
		EXPECT_EQ(0, sides[i].wait()) << "side " << i << ", victim " << victim;
		EXPECT_EQ(1u, mine(i, CELL_CLOSED));
		int64_t callback = static_cast<int64_t>(mine(i, CELL_CALLBACK)) - at;
		int64_t flushed = static_cast<int64_t>(mine(i, CELL_FLUSHED)) - at;
		EXPECT_LT(callback, kWithin)
			<< "error callback of side " << i << ", victim " << victim;
		EXPECT_LT(flushed, kWithin) << "completions of side " << i << ", victim " << victim;
		times.callback.push_back(callback);
		times.completion.push_back(flushed);
		if (callback > kSoon || flushed > kSoon)
			printf("late: side %u, victim %d: callback %.0f ms, completions %.0f ms\n",
			       i, victim, static_cast<double>(callback) / 1e6,
			       static_cast<double>(flushed) / 1e6);
	}
	/* The agents that live hold nothing of it any more. */
	for (unsigned i = 0; i < 2; i++) {
		if (fabric.agent(i).ended())
			continue;
		EXPECT_TRUE(until([&] {
			return fabric.clients(i) == 0 && fabric.window_used(i) <= window[i];
		})) << "agent "
		    << i << " holds " << fabric.window_used(i) << " of " << window[i];
		EXPECT_TRUE(until([&] { return fd_count(fabric.agent(i).pid()) <= fds[i]; }))
			<< "agent " << i << ": " << fd_count(fabric.agent(i).pid())
			<< " descriptors, " << fds[i] << " before";
	}
}

TEST(Kill, AtRandomMoments)
{
	size_t count = scaled(20, 200);
	Await awaited("kills", stress() ? 1200 : 110);
	Random random(1);
	Times times;
	for (size_t i = 0; i < count && !HasFailure(); i++)
		kill_one(static_cast<Victim>(i % VICTIMS), random, times);
	Times::show("error callback", times.callback);
	Times::show("all completions", times.completion);
}

/* The agent that the library itself started on demand is killed too, and a new one takes its place. */
ROLE(alone)
{
	Await awaited("a process with an agent of its own", 40);
	Nic nic;
	Vi a(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY)),
		b(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
	NEED_RC(VIP_SUCCESS, join(nic, a, nic, b, "alone"));
	cell(0) = 1;
	NEED(nic.event(VIP_ERROR_CONN_LOST));
}

TEST(Kill, AgentStartedOnDemand)
{
	Await awaited("an agent started on demand", 60);
	std::string name = text("clu-%d-alone", getpid());
	for (int i = 0; i < 2; i++) {
		board_clear();
		Process alone = role("alone", {},
				     { { "VIADUCT_FABRIC", name }, { "VIADUCT_LOG", "error" } });
		ASSERT_TRUE(until([&] { return cell(0) == 1 || alone.ended(); }));
		std::vector<pid_t> agents = agents_of(name);
		ASSERT_EQ(1u, agents.size());
		ASSERT_EQ(0, ::kill(agents[0], SIGKILL));
		EXPECT_EQ(0, alone.wait());
		EXPECT_TRUE(until([&] { return agents_of(name).empty(); }));
	}
}
