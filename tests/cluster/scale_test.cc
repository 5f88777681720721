/* SPDX-License-Identifier: BSD-2-Clause */
/* Many VIs, many processes, many connections one after the other. */
#include "clu.h"

#include <cstdio>
#include <memory>
#include <thread>

#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

/* ---- 1,000 VIs on one NIC ------------------------------------------------------------------- */

/* VI i and VI i + 1 are joined, for even i. */
struct Crowd {
	Crowd(Nic &n, VIP_CQ_HANDLE cq, size_t count) : nic(n), slab(n, 2 * count, 64)
	{
		for (size_t i = 0; i < count; i++) {
			auto level = i / 2 % 3 == 0   ? VIP_SERVICE_UNRELIABLE
				     : i / 2 % 3 == 1 ? VIP_SERVICE_RELIABLE_DELIVERY
						      : VIP_SERVICE_RELIABLE_RECEPTION;
			vis.push_back(std::make_unique<Vi>(nic, attrs(level), nullptr, cq));
			post_recv(*vis[i], slab, slab.fill(i, 64));
		}
		for (size_t i = 0; i < count; i += 2)
			NEED_RC(VIP_SUCCESS,
				join(nic, *vis[i], nic, *vis[i + 1], text("crowd%zu", i)));
	}

	void send_from_each()
	{
		size_t count = vis.size();
		for (size_t i = 0; i < count; i++) {
			snprintf(slab.data(count + i), 64, "from %zu", i);
			post_send(*vis[i], slab, slab.fill(count + i, 64));
		}
		for (auto &vi : vis)
			sent(*vi);
	}

	void check(VIP_VI_HANDLE vi)
	{
		VIP_DESCRIPTOR *d = nullptr;
		NEED_RC(VIP_SUCCESS, VipRecvDone(vi, &d));
		size_t i = slab.index(d);
		ASSERT_EQ(vis[i]->h, vi);
		ASSERT_EQ(text("from %zu", i ^ 1), slab.data(i));
	}

	Nic &nic;
	Slab slab;
	std::vector<std::unique_ptr<Vi>> vis;
};

TEST(Scale, ThousandVis)
{
	Await awaited("1,000 VIs", 60);
	const size_t count = 1000;
	Fabric fabric(1);
	Nic nic;
	/* The first registration of the process opens a descriptor, which stays open. */
	Slab(nic, 1, 64);
	size_t fds = fd_count(getpid());
	uint64_t window = fabric.window_used(0);
	VIP_CQ_HANDLE cq;
	ASSERT_GE(nic.attrs.MaxVI, count);
	NEED_RC(VIP_SUCCESS, VipCreateCQ(nic, count, &cq));
	{
		Crowd crowd(nic, cq, count);
		EXPECT_EQ(count, fabric.connections(0));
		crowd.send_from_each();
		for (size_t i = 0; i < count; i++) {
			VIP_VI_HANDLE vi;
			VIP_BOOLEAN recv;
			NEED_RC(VIP_SUCCESS, VipCQWait(cq, kSeconds * 1000, &vi, &recv));
			ASSERT_TRUE(recv);
			crowd.check(vi);
		}
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN recv;
		EXPECT_EQ(VIP_NOT_DONE, VipCQDone(cq, &vi, &recv));
	}
	NEED_RC(VIP_SUCCESS, VipDestroyCQ(cq));
	EXPECT_TRUE(until([&] { return fabric.window_used(0) == window; }))
		<< fabric.window_used(0);
	EXPECT_TRUE(until([&] { return fd_count(getpid()) == fds; })) << fd_count(getpid()) - fds;
	nic.close();
}

/* ---- many processes, all to all ------------------------------------------------------------- */

enum { CELL_READY, CELL_DONE, CELL_ROUNDS, CELL_FDS };
constexpr unsigned kLetters = 4;

static void barrier(size_t at, uint64_t count)
{
	cell(at)++;
	NEED(until([&] { return cell(at) >= count; }, 60000));
}

/* Messages to every other process, in order, and from every one. */
ROLE(member)
{
	Await awaited("a member of all to all", 120);
	unsigned self = static_cast<unsigned>(atoi(args[0].c_str()));
	unsigned count = static_cast<unsigned>(atoi(args[1].c_str()));
	Nic nic;
	Slab slab(nic, count * (kLetters + 1), 32);
	std::vector<std::unique_ptr<Vi>> vis(count);
	VIP_VI_ATTRIBUTES remote;
	for (unsigned i = 0; i < count; i++) {
		if (i == self)
			continue;
		vis[i] = std::make_unique<Vi>(nic, attrs(VIP_SERVICE_RELIABLE_RECEPTION, 4096));
		for (unsigned k = 0; k < kLetters; k++)
			post_recv(*vis[i], slab, slab.fill(i * kLetters + k, 32));
		Addr here(nic, text("m%u-%u", self, i)), there(nic, text("m%u-%u", i, self));
		NEED_RC(VIP_SUCCESS, VipConnectPeerRequest(*vis[i], here, there, 60000));
	}
	for (auto &vi : vis)
		if (vi)
			NEED_RC(VIP_SUCCESS, VipConnectPeerWait(*vi, &remote));
	barrier(CELL_READY, count);
	for (unsigned k = 0; k < kLetters; k++)
		for (unsigned i = 0; i < count; i++) {
			if (i == self)
				continue;
			size_t at = count * kLetters + i;
			snprintf(slab.data(at), 32, "%u %u %u", self, i, k);
			post_send(*vis[i], slab, slab.fill(at, 32));
			sent(*vis[i]);
		}
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; i != self && k < kLetters; k++) {
			VIP_DESCRIPTOR *d = received(*vis[i]);
			NEED(slab.index(d) == i * kLetters + k);
			NEED(text("%u %u %u", i, self, k) == slab.data(slab.index(d)));
		}
	cell(CELL_ROUNDS)++;
	barrier(CELL_DONE, count);
}

TEST(Scale, AllToAll)
{
	unsigned count = stress() ? 64 : sanitized() ? 8 : 16;
	Await awaited("processes all to all", 120);
	board_clear();
	Fabric fabric(1);
	size_t fds = quiet_fds(fabric.agent(0).pid());
	std::vector<Process> members;
	for (unsigned i = 0; i < count; i++)
		members.push_back(role("member", { std::to_string(i), std::to_string(count) }));
	for (auto &member : members)
		EXPECT_EQ(0, member.wait(90));
	EXPECT_EQ(count, cell(CELL_ROUNDS));
	EXPECT_TRUE(until([&] { return fabric.clients(0) == 0 && fabric.window_used(0) == 0; }));
	EXPECT_TRUE(until([&] { return fd_count(fabric.agent(0).pid()) == fds; }))
		<< fd_count(fabric.agent(0).pid()) << " instead of " << fds;
}

/* ---- connections one after the other -------------------------------------------------------- */

/* The resources that must not grow. */
struct Holdings {
	explicit Holdings(Fabric &fabric)
	{
		for (unsigned i = 0; i < fabric.size(); i++) {
			window.push_back(fabric.window_used(i));
			connections.push_back(fabric.connections(i));
		}
		add(getpid());
		for (unsigned i = 0; i < fabric.size(); i++)
			add(fabric.agent(i).pid());
	}
	void add(pid_t pid)
	{
		fds.push_back(quiet_fds(pid));
		rss.push_back(rss_bytes(pid));
	}
	bool as_unconnected_as(const Holdings &other) const
	{
		return window == other.window && connections == other.connections;
	}
	bool same(const Holdings &other) const
	{
		return fds == other.fds && as_unconnected_as(other);
	}
	std::string show() const
	{
		std::string all;
		for (size_t i = 0; i < fds.size(); i++)
			all += text("%s: %zu fds, %llu KiB; ", i ? "agent" : "client", fds[i],
				    static_cast<unsigned long long>(rss[i] >> 10));
		for (auto w : window)
			all += text("window %llu; ", static_cast<unsigned long long>(w));
		return all;
	}
	std::vector<size_t> fds;
	std::vector<uint64_t> rss, window;
	std::vector<unsigned> connections;
};

/* A server thread and a client on two NIC handles, through every course that a connection can take. */
class Cycles {
public:
	Cycles(const std::string &a, const std::string &b, unsigned host)
	    : client(a), server(b), server_host(host), cslab(client, 2, 512), sslab(server, 2, 512),
	      cvi(client, attrs(VIP_SERVICE_RELIABLE_DELIVERY)),
	      svi(server, attrs(VIP_SERVICE_RELIABLE_DELIVERY))
	{
	}

	void run(size_t count)
	{
		for (size_t i = 0; i < count; i++) {
			switch (i % 8) {
			case 0:
				rejected();
				break;
			case 1:
				nobody();
				break;
			case 2:
				NEED_RC(VIP_SUCCESS, join(client, cvi, server, svi, "peers"));
				talk(i);
				break;
			case 3: /* a VI of its own for this connection */
			{
				Vi mine(client, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
				NEED_RC(VIP_SUCCESS, join(client, mine, server, svi, "fresh"));
				mine.destroy();
				server_sees_loss();
				break;
			}
			default:
				connected();
				talk(i);
			}
		}
	}

private:
	void connected()
	{
		VIP_RETURN rc = VIP_NOT_DONE;
		std::thread waiter([&] { rc = serve(server, svi, "cycle"); });
		VIP_RETURN mine = request(client, cvi, server_host, "cycle");
		waiter.join();
		NEED_RC(VIP_SUCCESS, mine);
		NEED_RC(VIP_SUCCESS, rc);
	}

	void rejected()
	{
		Addr here(server, "cycle"), there(server, "cycle");
		VIP_VI_ATTRIBUTES remote;
		VIP_CONN_HANDLE conn;
		VIP_RETURN rc = VIP_NOT_DONE;
		std::thread waiter([&] {
			rc = VipConnectWait(server, here, kSeconds * 1000, there, &remote, &conn);
			if (rc == VIP_SUCCESS)
				rc = VipConnectReject(conn);
		});
		VIP_RETURN mine = request(client, cvi, server_host, "cycle");
		waiter.join();
		NEED_RC(VIP_REJECT, mine);
		NEED_RC(VIP_SUCCESS, rc);
	}

	void nobody()
	{
		Addr here(client, "x"), there(server_host, "nobody");
		Addr none(server, "none");
		VIP_VI_ATTRIBUTES remote;
		VIP_CONN_HANDLE conn;
		NEED_RC(VIP_NO_MATCH,
			VipConnectRequest(cvi, here, there, kSeconds * 1000, &remote));
		NEED_RC(VIP_TIMEOUT, VipConnectWait(server, none, 0, there, &remote, &conn));
	}

	void server_sees_loss()
	{
		NEED(server.event(VIP_ERROR_CONN_LOST, svi));
		svi.disconnect();
	}

	void talk(size_t i)
	{
		post_recv(svi, sslab, sslab.fill(0, 512));
		memset(cslab.data(0), static_cast<int>(i), 512);
		post_send(cvi, cslab, cslab.fill(0, 1 + i % 512));
		sent(cvi);
		NEED(received(svi)->CS.Length == 1 + i % 512);
		NEED(sslab.data(0)[i % 512] == static_cast<char>(i));
		if (i & 8) {
			cvi.disconnect();
			server_sees_loss();
		} else {
			svi.disconnect();
			NEED(client.event(VIP_ERROR_CONN_LOST, cvi));
			cvi.disconnect();
		}
	}

	Nic client, server;
	unsigned server_host;
	Slab cslab, sslab;
	Vi cvi, svi;
};

static void cycles(unsigned hosts)
{
	size_t count = scaled(1000, 10000);
	Await awaited(text("%zu connections", count), stress() ? 600 : 90);
	Fabric fabric(hosts);
	Cycles c("host0", hosts == 1 ? "host0" : "host1", hosts - 1);
	Holdings fresh(fabric);
	c.run(200); /* pools and caches fill */
	/* Agents give back the last connection's memory in their own time. */
	EXPECT_TRUE(until([&] { return Holdings(fabric).as_unconnected_as(fresh); }));
	Holdings before(fabric);
	c.run(count);
	EXPECT_TRUE(until([&] { return Holdings(fabric).same(before); }));
	Holdings after(fabric);
	printf("before: %s\nafter:  %s\n", before.show().c_str(), after.show().c_str());
	for (size_t i = 0; !sanitized() && i < before.rss.size(); i++)
		EXPECT_LE(after.rss[i], before.rss[i] + (1u << 20)) << "process " << i;
}

TEST(Scale, CyclesOnOneHost)
{
	cycles(1);
}

TEST(Scale, CyclesBetweenHosts)
{
	cycles(2);
}

TEST(Scale, NicsOpenedAndClosed)
{
	Await awaited("NICs to open and close", 90);
	Fabric fabric(2);
	Holdings fresh(fabric);
	auto open_some = [](size_t count) {
		for (size_t i = 0; i < count; i++) {
			Nic a("host0"), b("host1");
			Vi va(a, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
			Vi vb(b, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
			NEED_RC(VIP_SUCCESS, join(a, va, b, vb, "open"));
			va.destroy();
			vb.destroy();
			a.close();
			b.close();
		}
	};
	open_some(10);
	EXPECT_TRUE(until([&] { return fabric.clients(0) + fabric.clients(1) == 0; }));
	/* An agent gives back a client's memory after it has forgotten the client. */
	EXPECT_TRUE(until([&] { return Holdings(fabric).as_unconnected_as(fresh); }));
	Holdings before(fabric);
	open_some(scaled(100, 2000));
	EXPECT_TRUE(until([&] { return Holdings(fabric).same(before); }));
	Holdings after(fabric);
	printf("before: %s\nafter:  %s\n", before.show().c_str(), after.show().c_str());
	for (size_t i = 0; !sanitized() && i < before.rss.size(); i++)
		EXPECT_LE(after.rss[i], before.rss[i] + (1u << 20)) << "process " << i;
}
