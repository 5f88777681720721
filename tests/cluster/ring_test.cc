/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of four hosts whose agents are threads of this process, with traffic both ways on each
 * link from several threads: so the thread sanitizer sees both sides of every access.
 */
#include "clu.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include <unistd.h>

#include <gtest/gtest.h>

extern "C" {
#include "ag_agent.h"
}

using namespace clu;

constexpr unsigned kHosts = 4;

class Ring : public ::testing::Test {
protected:
	Ring()
	{
		std::string name = text("ring-%d", getpid());
		setenv("VIADUCT_FABRIC", name.c_str(), 1);
		setenv("VIADUCT_AGENT", "none", 1);
		for (unsigned i = 0; i < kHosts; i++) {
			struct ag_cfg cfg = {};
			cfg.fabric = name.c_str();
			cfg.owner = geteuid();
			cfg.host_id = i;
			cfg.host_count = kHosts;
			cfg.group = AG_NO_GROUP;
			NEED(ag_create(&cfg, &agents[i]) == 0);
			threads[i] = std::thread([this, i] { results[i] = ag_run(agents[i]); });
		}
	}

	~Ring() override
	{
		for (unsigned i = 0; i < kHosts; i++) {
			struct ag_usage usage;
			ag_stop(agents[i]);
			threads[i].join();
			EXPECT_EQ(0, results[i]);
			ag_usage(agents[i], &usage);
			EXPECT_EQ(0u, usage.conns) << "host " << i;
			EXPECT_EQ(0u, usage.circuits) << "host " << i;
			EXPECT_EQ(0u, usage.allocs) << "host " << i;
			EXPECT_EQ(0u, usage.listens) << "host " << i;
		}
		for (unsigned i = 0; i < kHosts; i++)
			ag_destroy(agents[i]);
	}

	static std::string host(unsigned i) { return text("host%u", i % kHosts); }

	/* Opens a NIC of each host, when every link is up. */
	static std::vector<std::unique_ptr<Nic>> open_all()
	{
		std::vector<std::unique_ptr<Nic>> nics;
		for (unsigned i = 0; i < kHosts; i++)
			nics.push_back(std::make_unique<Nic>(host(i)));
		for (unsigned i = 0; i < 2 * kHosts; i++) {
			Addr to((i / 2 + (i % 2 ? 1 : kHosts - 1)) % kHosts, "");
			NEED(until([&] { return route(*nics[i / 2], to).Reachable == VIP_TRUE; }));
		}
		return nics;
	}

	static VIPX_ROUTE route(Nic &nic, VIP_NET_ADDRESS *to)
	{
		VIPX_ROUTE found = {};
		found.Size = sizeof(found);
		NEED_RC(VIP_SUCCESS, VipxQueryRoute(nic, to, &found));
		return found;
	}

	Await awaited{ "a ring of hosts", 60 };
	struct ag_agent *agents[kHosts];
	std::thread threads[kHosts];
	int results[kHosts];
};

/* One end of a connection: sends and receives a stream of numbered messages at the same time. */
class End {
public:
	End(Nic &n, VIP_RELIABILITY_LEVEL level)
	    : vi(n, attrs(level)), nic(n), slab(n, 2 * kDepth, kBytes)
	{
		for (size_t i = 0; i < kDepth; i++)
			post_recv(vi, slab, slab.fill(i, kBytes));
	}

	/* Sends only what the peer has a receive for. */
	void exchange(End &peer, uint64_t count, uint64_t stream)
	{
		uint64_t out = 0, taken = 0, got = 0;
		Random random(stream);
		while (got < count || taken < count) {
			VIP_DESCRIPTOR *d;
			bool moved = false;
			if (out < count && out - taken < kDepth &&
			    out < peer.in.load(std::memory_order_relaxed) + kDepth) {
				size_t at = kDepth + out % kDepth;
				memcpy(slab.data(at), &out, sizeof(out));
				post_send(vi, slab, slab.fill(at, 8 + random.below(kBytes - 7)));
				out++;
				moved = true;
			}
			VIP_RETURN rc = VipSendDone(vi, &d);
			check(rc, d);
			taken += rc == VIP_SUCCESS;
			moved = moved || rc == VIP_SUCCESS;
			if (got == count)
				continue;
			rc = moved ? VipRecvDone(vi, &d) : VipRecvWait(vi, 2, &d);
			if (rc == VIP_NOT_DONE || rc == VIP_TIMEOUT)
				continue;
			check(rc, d);
			NEED(memcmp(slab.data(slab.index(d)), &got, sizeof(got)) == 0);
			post_recv(vi, slab, slab.fill(slab.index(d), kBytes));
			in.store(++got, std::memory_order_relaxed);
		}
	}

	/* Fails unless there is no descriptor, or one that succeeded. */
	void check(VIP_RETURN rc, const VIP_DESCRIPTOR *d)
	{
		char status[200];
		if (rc == VIP_SUCCESS || d == nullptr)
			return;
		VipxStatusString(d->CS.Status, status, sizeof(status));
		fail(__FILE__, __LINE__,
		     text("a good completion, found %s of descriptor %zu, %zu protocol errors",
			  status, slab.index(d),
			  static_cast<size_t>(nic.counters(vi).ProtocolErrors)));
	}

	Vi vi;
	std::atomic<uint64_t> in{ 0 }; /* received, and posted again */

private:
	static constexpr size_t kDepth = 32, kBytes = 3000;
	Nic &nic;
	Slab slab;
};

/* Thread `which` of the NIC of host `i`, towards its right and its left neighbour. */
TEST_F(Ring, TrafficBothWaysOnEachLink)
{
	uint64_t count = scaled(4000, 200000);
	std::vector<std::unique_ptr<Nic>> nics = open_all();
	std::vector<std::unique_ptr<End>> right, left;
	auto level = [](unsigned i) {
		return i % 2 ? VIP_SERVICE_RELIABLE_DELIVERY : VIP_SERVICE_RELIABLE_RECEPTION;
	};
	for (unsigned i = 0; i < kHosts; i++) {
		right.push_back(std::make_unique<End>(*nics[i], level(i)));
		left.push_back(std::make_unique<End>(*nics[i], level(i + kHosts - 1)));
	}
	for (unsigned i = 0; i < kHosts; i++) {
		unsigned to = (i + 1) % kHosts;
		NEED_RC(VIP_SUCCESS,
			join(*nics[i], right[i]->vi, *nics[to], left[to]->vi, text("link%u", i)));
	}
	std::vector<std::thread> workers;
	std::atomic<unsigned> failures{ 0 };
	for (unsigned i = 0; i < 2 * kHosts; i++)
		workers.emplace_back([&, i] {
			try {
				unsigned h = i / 2;
				if (i % 2)
					right[h]->exchange(*left[(h + 1) % kHosts], count, i);
				else
					left[h]->exchange(*right[(h + kHosts - 1) % kHosts], count,
							  i);
			} catch (const std::exception &e) {
				fprintf(stderr, "cluster: worker %u: %s\n", i, e.what());
				failures++;
			}
		});
	for (auto &worker : workers)
		worker.join();
	EXPECT_EQ(0u, failures);
	for (unsigned i = 0; i < kHosts; i++) {
		EXPECT_EQ(VIP_STATE_CONNECTED, right[i]->vi.state());
		EXPECT_EQ(VIP_STATE_CONNECTED, left[i]->vi.state());
	}
}

TEST_F(Ring, WhoIsNoNeighbourIsReachedByRelays)
{
	Nic nic(host(0)), far(host(2));
	Vi vi(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
	Addr here(nic, "far"), there(2, "far");
	VIP_VI_ATTRIBUTES remote;
	until([&] { return route(nic, there).Reachable == VIP_TRUE; });
	EXPECT_EQ(2u, route(nic, there).Hops);
	EXPECT_EQ(static_cast<VIP_ULONG>(VIPX_PATH_RELAYED), route(nic, there).PathKind);
	/* Nobody waits there. */
	EXPECT_EQ(VIP_NO_MATCH, VipConnectRequest(vi, here, there, kSeconds * 1000, &remote));
	EXPECT_EQ(VIP_STATE_IDLE, vi.state());
	/* No host of that number at all. */
	Addr nowhere(9, "far");
	EXPECT_EQ(VIP_NOT_REACHABLE,
		  VipConnectRequest(vi, here, nowhere, kSeconds * 1000, &remote));
}

/* Connections come and go on all links while others carry traffic. */
TEST_F(Ring, ConnectionsComeAndGoFromManyThreads)
{
	uint64_t count = scaled(60, 3000);
	std::vector<std::unique_ptr<Nic>> nics = open_all();
	std::vector<std::thread> workers;
	std::atomic<unsigned> failures{ 0 };
	for (unsigned i = 0; i < 2 * kHosts; i++)
		workers.emplace_back([&, i] {
			try {
				Nic &a = *nics[i / 2], &b = *nics[(i / 2 + 1) % kHosts];
				for (uint64_t n = 0; n < count; n++) {
					End x(a, VIP_SERVICE_RELIABLE_DELIVERY);
					End y(b, VIP_SERVICE_RELIABLE_DELIVERY);
					NEED_RC(VIP_SUCCESS,
						join(a, x.vi, b, y.vi, text("go%u", i)));
					std::thread other([&] { y.exchange(x, 20, i); });
					x.exchange(y, 20, i);
					other.join();
				}
			} catch (const std::exception &e) {
				fprintf(stderr, "cluster: worker %u: %s\n", i, e.what());
				failures++;
			}
		});
	for (auto &worker : workers)
		worker.join();
	EXPECT_EQ(0u, failures);
}
