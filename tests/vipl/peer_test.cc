/* SPDX-License-Identifier: BSD-2-Clause */
/* VIPL 5.4: connections between equals. */
#include "harness.h"

#include <atomic>
#include <chrono>

using namespace conf;

namespace {

struct Peers {
	Peers(const VIP_VI_ATTRIBUTES &a, const VIP_VI_ATTRIBUTES &b)
	    : va(nic(0), a), vb(nic(1), b), addr_a(nic(0), unique_disc()),
	      addr_b(nic(1), unique_disc())
	{
	}
	explicit Peers(VIP_RELIABILITY_LEVEL level) : Peers(vi_attrs(level), vi_attrs(level)) {}
	VIP_RETURN ask_a(VIP_ULONG ms = kWaitMs)
	{
		return VipConnectPeerRequest(va, addr_a, addr_b, ms);
	}
	VIP_RETURN ask_b(VIP_ULONG ms = kWaitMs)
	{
		return VipConnectPeerRequest(vb, addr_b, addr_a, ms);
	}
	Vi va, vb;
	Addr addr_a, addr_b;
	VIP_VI_ATTRIBUTES seen_a{}, seen_b{};
};

VIP_RETURN poll_done(Vi &vi, VIP_VI_ATTRIBUTES *seen)
{
	VIP_RETURN rc = VIP_NOT_DONE;
	eventually([&] {
		rc = VipConnectPeerDone(vi, seen);
		return rc != VIP_NOT_DONE;
	});
	return rc;
}

} // namespace

TEST(Peer, EitherOrder)
{
	for (auto &level : levels())
		for (int order = 0; order < 2; order++)
			for (int wait = 0; wait < 2; wait++) {
				RULE(std::string(
					     "VIPL 5.4: the order of the requests is free, result by ") +
				     (wait ? "VipConnectPeerWait, " : "VipConnectPeerDone, ") +
				     level.name);
				Peers p(level.value);
				EXPECT_RC(VIP_SUCCESS, order ? p.ask_a() : p.ask_b());
				EXPECT_EQ(VIP_STATE_CONNECT_PENDING, (order ? p.va : p.vb).state());
				EXPECT_RC(VIP_NOT_DONE,
					  VipConnectPeerDone(order ? p.va : p.vb,
							     order ? &p.seen_a : &p.seen_b));
				EXPECT_RC(VIP_SUCCESS, order ? p.ask_b() : p.ask_a());
				EXPECT_RC(VIP_SUCCESS, wait ? VipConnectPeerWait(p.va, &p.seen_a)
							    : poll_done(p.va, &p.seen_a));
				EXPECT_RC(VIP_SUCCESS, wait ? VipConnectPeerWait(p.vb, &p.seen_b)
							    : poll_done(p.vb, &p.seen_b));
				EXPECT_EQ(VIP_STATE_CONNECTED, p.va.state());
				EXPECT_EQ(VIP_STATE_CONNECTED, p.vb.state());
				EXPECT_RC(VIP_INVALID_STATE, VipConnectPeerDone(p.va, &p.seen_a))
					<< "once";
			}
}

TEST(Peer, AttributesReachBothSides)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.4: each side learns the attributes of the other, ") +
		     level.name);
		VIP_VI_ATTRIBUTES a = vi_attrs(level.value, 7000), b = a;
		a.EnableRdmaWrite = VIP_TRUE;
		b.EnableRdmaRead = offers_read(level);
		Peers p(a, b);
		EXPECT_RC(VIP_SUCCESS, p.ask_a());
		EXPECT_RC(VIP_SUCCESS, p.ask_b());
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerWait(p.va, &p.seen_a));
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerWait(p.vb, &p.seen_b));
		EXPECT_EQ(7000u, p.seen_a.MaxTransferSize);
		EXPECT_EQ(level.value, p.seen_a.ReliabilityLevel);
		EXPECT_FALSE(p.seen_a.EnableRdmaWrite);
		EXPECT_EQ(offers_read(level), !!p.seen_a.EnableRdmaRead);
		EXPECT_TRUE(p.seen_b.EnableRdmaWrite);
		EXPECT_FALSE(p.seen_b.EnableRdmaRead);
	}
}

TEST(Peer, Mismatch)
{
	struct Case {
		const char *what;
		VIP_RETURN rc;
		std::function<void(VIP_VI_ATTRIBUTES &, const Level &)> change;
	} all[] = {
		{ "another MaxTransferSize is VIP_INVALID_MTU", VIP_INVALID_MTU,
		  [](VIP_VI_ATTRIBUTES &a, const Level &) { a.MaxTransferSize++; } },
		{ "another ReliabilityLevel is VIP_INVALID_RELIABILITY_LEVEL",
		  VIP_INVALID_RELIABILITY_LEVEL,
		  [](VIP_VI_ATTRIBUTES &a, const Level &l) {
			  a.ReliabilityLevel =
				  l.value == 4 ? 1
					       : static_cast<VIP_RELIABILITY_LEVEL>(l.value * 2);
		  } },
	};
	for (auto &level : levels())
		for (auto &c : all)
			for (int order = 0; order < 2; order++) {
				RULE(std::string("VIPL 5.4: ") + c.what + " at both sides, " +
				     level.name);
				VIP_VI_ATTRIBUTES a = vi_attrs(level.value, 7000), b = a;
				c.change(b, level);
				Peers p(a, b);
				EXPECT_RC(VIP_SUCCESS, order ? p.ask_a() : p.ask_b());
				EXPECT_RC(VIP_SUCCESS, order ? p.ask_b() : p.ask_a());
				EXPECT_RC(c.rc, VipConnectPeerWait(p.va, &p.seen_a));
				EXPECT_RC(c.rc, VipConnectPeerWait(p.vb, &p.seen_b));
				EXPECT_EQ(VIP_STATE_IDLE, p.va.state());
				EXPECT_EQ(VIP_STATE_IDLE, p.vb.state());
			}
}

TEST(Peer, TimesOut)
{
	for (auto &level : levels())
		for (int wait = 0; wait < 2; wait++) {
			RULE(std::string(
				     "VIPL 5.4: a request without counterpart ends with VIP_TIMEOUT, ") +
			     level.name);
			Peers p(level.value);
			auto begin = std::chrono::steady_clock::now();
			EXPECT_RC(VIP_SUCCESS, p.ask_a(40));
			EXPECT_RC(VIP_TIMEOUT, wait ? VipConnectPeerWait(p.va, &p.seen_a)
						    : poll_done(p.va, &p.seen_a));
			EXPECT_GE(std::chrono::steady_clock::now() - begin,
				  std::chrono::milliseconds(40));
			EXPECT_EQ(VIP_STATE_IDLE, p.va.state());
			EXPECT_RC(VIP_INVALID_STATE, VipConnectPeerDone(p.va, &p.seen_a));
		}
}

TEST(Peer, BadArguments)
{
	std::string own(reinterpret_cast<const char *>(nic(0).attrs.LocalNicAddress), 6),
		strange = own;
	strange[4] = 0x7f;
	std::string longer(nic(0).attrs.MaxDiscriminatorLen + 1u, 'x');
	struct Case {
		const char *rule;
		Addr local, remote;
		VIP_ULONG timeout;
	} all[] = {
		{ "Timeout 0", { own, "a" }, { own, "b" }, 0 },
		{ "a local address of another host", { strange, "a" }, { own, "b" }, kWaitMs },
		{ "a local address that is too short",
		  { own.substr(1), "a" },
		  { own, "b" },
		  kWaitMs },
		{ "a local discriminator that is too long", { own, longer }, { own, "b" }, kWaitMs },
		{ "a remote discriminator that is too long",
		  { own, "a" },
		  { own, longer },
		  kWaitMs },
	};
	for (auto &level : levels())
		for (auto &c : all) {
			RULE(std::string("VIPL 5.4 VipConnectPeerRequest: ") + c.rule +
			     " is VIP_INVALID_PARAMETER, " + level.name);
			Vi vi(nic(0), vi_attrs(level.value));
			EXPECT_RC(VIP_INVALID_PARAMETER,
				  VipConnectPeerRequest(vi, c.local, c.remote, c.timeout));
			EXPECT_EQ(VIP_STATE_IDLE, vi.state());
		}
}

TEST(Peer, NotReachable)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.4: a host that does not exist is VIP_NOT_REACHABLE, ") +
		     level.name);
		Vi vi(nic(0), vi_attrs(level.value));
		std::string nowhere(reinterpret_cast<const char *>(nic(0).attrs.LocalNicAddress),
				    6);
		nowhere[4] = 0x7f;
		Addr local(nic(0), "p"), remote(nowhere, "q");
		VIP_VI_ATTRIBUTES attrs;
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerRequest(vi, local, remote, kWaitMs));
		EXPECT_RC(VIP_NOT_REACHABLE, VipConnectPeerWait(vi, &attrs));
		EXPECT_EQ(VIP_STATE_IDLE, vi.state());
	}
}

TEST(Peer, MatchIsSymmetric)
{
	RULE("VIPL 5.4: A.Local must be B.Remote and A.Remote must be B.Local");
	Peers p(VIP_SERVICE_RELIABLE_DELIVERY);
	Addr elsewhere(nic(0), unique_disc());
	EXPECT_RC(VIP_SUCCESS, p.ask_a());
	EXPECT_RC(VIP_SUCCESS, VipConnectPeerRequest(p.vb, p.addr_b, elsewhere, 100));
	EXPECT_RC(VIP_TIMEOUT, VipConnectPeerWait(p.vb, &p.seen_b));
	EXPECT_RC(VIP_NOT_DONE, VipConnectPeerDone(p.va, &p.seen_a));
	EXPECT_RC(VIP_SUCCESS, p.ask_b());
	EXPECT_RC(VIP_SUCCESS, VipConnectPeerWait(p.va, &p.seen_a));
	EXPECT_RC(VIP_SUCCESS, VipConnectPeerWait(p.vb, &p.seen_b));
}

TEST(Peer, NeverMatchesAWaiter)
{
	RULE("VIPL 5.4: peer requests match only peer requests, not waiters");
	Peers p(VIP_SERVICE_RELIABLE_DELIVERY);
	VIP_RETURN waited = VIP_NOT_DONE;
	std::thread waiter([&] {
		Addr from(nic(1), "");
		VIP_VI_ATTRIBUTES attrs;
		VIP_CONN_HANDLE conn;
		waited = VipConnectWait(nic(1).h, p.addr_b, 200, from, &attrs, &conn);
	});
	EXPECT_RC(VIP_SUCCESS, p.ask_a(200));
	EXPECT_RC(VIP_TIMEOUT, VipConnectPeerWait(p.va, &p.seen_a));
	waiter.join();
	EXPECT_RC(VIP_TIMEOUT, waited);
}

TEST(Peer, RequestsOfClientsDoNotMatchPeers)
{
	RULE("VIPL 5.4: a client's request finds no waiter in a peer request");
	Peers p(VIP_SERVICE_RELIABLE_DELIVERY);
	EXPECT_RC(VIP_SUCCESS, p.ask_b());
	EXPECT_RC(VIP_NO_MATCH, VipConnectRequest(p.va, p.addr_a, p.addr_b, kWaitMs, &p.seen_a));
}

TEST(Peer, DisconnectCancels)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 6: VipDisconnect takes a VI from Pending to Idle, ") +
		     level.name);
		Peers p(level.value);
		EXPECT_RC(VIP_SUCCESS, p.ask_a());
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(p.va));
		EXPECT_EQ(VIP_STATE_IDLE, p.va.state());
		EXPECT_RC(VIP_INVALID_STATE, VipConnectPeerDone(p.va, &p.seen_a));
		/* The other side may learn of the request before it learns of its end. */
		EXPECT_RC(VIP_SUCCESS, p.ask_b(50));
		VIP_RETURN rc = VipConnectPeerWait(p.vb, &p.seen_b);
		if (rc == VIP_SUCCESS)
			EXPECT_TRUE(p.vb.reaches(VIP_STATE_ERROR));
		else
			EXPECT_RC(VIP_TIMEOUT, rc);
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(p.vb));
		EXPECT_RC(VIP_SUCCESS, p.ask_a());
		EXPECT_RC(VIP_SUCCESS, p.ask_b());
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerWait(p.va, &p.seen_a));
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerWait(p.vb, &p.seen_b));
	}
}

TEST(Peer, DisconnectEndsAWait)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "vipl.h VipConnectPeerWait: VipDisconnect in another thread ends it with "
			     "VIP_TIMEOUT, ") +
		     level.name);
		Peers p(level.value);
		std::atomic<int> refused{ 0 }, ended{ 0 };
		EXPECT_RC(VIP_SUCCESS, p.ask_a(VIP_INFINITE));
		auto wait = [&] {
			VIP_VI_ATTRIBUTES seen;
			VIP_RETURN rc = VipConnectPeerWait(p.va, &seen);
			refused += rc == VIP_NOT_DONE;
			ended += rc == VIP_TIMEOUT;
		};
		std::thread one(wait), two(wait);
		/* One is refused because the other is inside. */
		EXPECT_TRUE(eventually([&] { return refused == 1; }));
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(p.va));
		one.join();
		two.join();
		EXPECT_EQ(1, ended);
		EXPECT_EQ(VIP_STATE_IDLE, p.va.state());
		EXPECT_RC(VIP_INVALID_STATE, VipConnectPeerDone(p.va, &p.seen_a));
	}
}

TEST(Peer, TwoThreadsWait)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "vipl.h VipConnectPeerWait: one thread gets the result, another that asks "
			     "meanwhile VIP_NOT_DONE, ") +
		     level.name);
		Peers p(level.value);
		std::atomic<int> refused{ 0 }, done{ 0 };
		EXPECT_RC(VIP_SUCCESS, p.ask_a());
		auto wait = [&] {
			VIP_VI_ATTRIBUTES seen;
			VIP_RETURN rc = VipConnectPeerWait(p.va, &seen);
			refused += rc == VIP_NOT_DONE;
			done += rc == VIP_SUCCESS;
		};
		std::thread one(wait), two(wait);
		EXPECT_TRUE(eventually([&] { return refused == 1; }));
		EXPECT_RC(VIP_SUCCESS, p.ask_b());
		one.join();
		two.join();
		EXPECT_EQ(1, refused);
		EXPECT_EQ(1, done);
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerWait(p.vb, &p.seen_b));
	}
}

TEST(Peer, MessagesPass)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.4: a connection between peers carries messages, ") +
		     level.name);
		LinkOptions o;
		o.connected = false;
		Link l(level.value, o);
		Addr a(l.na, unique_disc()), b(l.nb, unique_disc());
		VIP_VI_ATTRIBUTES seen;
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerRequest(*l.va, a, b, kWaitMs));
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerRequest(*l.vb, b, a, kWaitMs));
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerWait(*l.va, &seen));
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerWait(*l.vb, &seen));
		EXPECT_TRUE(l.works());
	}
}
