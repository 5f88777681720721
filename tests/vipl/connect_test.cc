/* SPDX-License-Identifier: BSD-2-Clause */
/* VIPL 5.3: connections between client and server. */
#include "harness.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <sys/wait.h>

using namespace conf;

namespace {

/* A client that sends a request in a thread of its own until it is decided. */
struct Asker {
	Asker(VIP_VI_HANDLE vi, Nic &mine, Nic &server, const std::string &disc,
	      VIP_ULONG timeout = kWaitMs, const std::string &local_disc = "client")
	    : thread([=, &mine, &server] {
		      Addr local(mine, local_disc), remote(server, disc);
		      eventually([&] {
			      rc = VipConnectRequest(vi, local, remote, timeout, &attrs);
			      return rc != VIP_NO_MATCH;
		      });
	      })
	{
	}
	~Asker()
	{
		if (thread.joinable())
			thread.join();
	}
	VIP_RETURN result()
	{
		thread.join();
		return rc;
	}
	VIP_RETURN rc = VIP_NOT_DONE;
	VIP_VI_ATTRIBUTES attrs{};
	std::thread thread;
};

/* A request at the server, waiting for a decision. */
struct Request {
	explicit Request(const VIP_VI_ATTRIBUTES &attrs, VIP_ULONG timeout = kWaitMs)
	    : disc(unique_disc()), client(nic(0), attrs),
	      asker(client, nic(0), nic(1), disc, timeout), from(nic(1), "")
	{
		Addr here(nic(1), disc);
		EXPECT_RC(VIP_SUCCESS, VipConnectWait(nic(1).h, here, kWaitMs, from, &seen, &conn));
	}
	std::string disc;
	Vi client;
	Asker asker;
	Addr from;
	VIP_VI_ATTRIBUTES seen{};
	VIP_CONN_HANDLE conn = nullptr;
};

} // namespace

TEST(Connect, WaitTimesOut)
{
	for (VIP_ULONG ms : { 0UL, 1UL, 30UL }) {
		RULE("VIPL 5.3 VipConnectWait: VIP_TIMEOUT after " + std::to_string(ms) +
		     " ms; 0 looks once");
		Addr local(nic(0), unique_disc()), from(nic(0), "");
		VIP_VI_ATTRIBUTES attrs;
		VIP_CONN_HANDLE conn;
		auto begin = std::chrono::steady_clock::now();
		EXPECT_RC(VIP_TIMEOUT, VipConnectWait(nic(0).h, local, ms, from, &attrs, &conn));
		EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(ms));
	}
}

TEST(Connect, WaitOnBadAddresses)
{
	std::string own(reinterpret_cast<const char *>(nic(0).attrs.LocalNicAddress), 6),
		other = own;
	other[5] = static_cast<char>(other[5] + 77);
	size_t max = nic(0).attrs.MaxDiscriminatorLen;
	struct Case {
		const char *rule;
		Addr addr;
	} all[] = {
		{ "a host address of another NIC", { other, "d" } },
		{ "a host address that is too short", { own.substr(0, 5), "d" } },
		{ "a host address that is too long", { own + "x", "d" } },
		{ "a host address of no bytes", { std::string(), "d" } },
		{ "a discriminator longer than MaxDiscriminatorLen",
		  { own, std::string(max + 1, 'd') } },
	};
	for (auto &c : all) {
		RULE(std::string("VIPL 5.3 VipConnectWait: ") + c.rule +
		     " is VIP_INVALID_PARAMETER");
		Addr from(nic(0), "");
		VIP_VI_ATTRIBUTES attrs;
		VIP_CONN_HANDLE conn;
		EXPECT_RC(VIP_INVALID_PARAMETER,
			  VipConnectWait(nic(0).h, c.addr, 0, from, &attrs, &conn));
	}
}

TEST(Connect, RequestFromAnotherHost)
{
	RULE("VIPL 5.4 VipConnectRequest: a local address of another host is "
	     "VIP_INVALID_PARAMETER");
	std::string own(reinterpret_cast<const char *>(nic(0).attrs.LocalNicAddress), 6),
		other = own;
	other[5] = static_cast<char>(other[5] + 77);
	Addr local(other, "d"), remote(nic(1), unique_disc());
	VIP_VI_ATTRIBUTES attrs;
	Vi vi(nic(0), vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY));
	EXPECT_RC(VIP_INVALID_PARAMETER, VipConnectRequest(vi, local, remote, kWaitMs, &attrs));
	EXPECT_EQ(VIP_STATE_IDLE, vi.state());
}

TEST(Connect, RequestToBadAddresses)
{
	std::string server(reinterpret_cast<const char *>(nic(1).attrs.LocalNicAddress), 6),
		nowhere = server;
	nowhere[4] = 0x7f;
	size_t max = nic(0).attrs.MaxDiscriminatorLen;
	struct Case {
		const char *rule;
		VIP_RETURN rc;
		Addr addr;
		VIP_ULONG timeout;
	} all[] = {
		{ "a host that does not exist is VIP_NOT_REACHABLE",
		  VIP_NOT_REACHABLE,
		  { nowhere, "d" },
		  kWaitMs },
		{ "an all-zero host is VIP_NOT_REACHABLE",
		  VIP_NOT_REACHABLE,
		  { std::string(6, 0), "d" },
		  kWaitMs },
		{ "nobody waits there: VIP_NO_MATCH at once",
		  VIP_NO_MATCH,
		  { server, "nobody" },
		  VIP_INFINITE },
		{ "nobody waits there, no discriminator: VIP_NO_MATCH",
		  VIP_NO_MATCH,
		  { server, "" },
		  VIP_INFINITE },
		{ "a discriminator that is too long is VIP_INVALID_PARAMETER",
		  VIP_INVALID_PARAMETER,
		  { server, std::string(max + 1, 'd') },
		  kWaitMs },
		{ "Timeout 0 is VIP_INVALID_PARAMETER", VIP_INVALID_PARAMETER, { server, "d" }, 0 },
	};
	for (auto &level : levels())
		for (auto &c : all) {
			RULE(std::string("VIPL 5.3 VipConnectRequest: ") + c.rule + ", " +
			     level.name);
			Vi vi(nic(0), vi_attrs(level.value));
			Addr local(nic(0), "c");
			VIP_VI_ATTRIBUTES attrs;
			EXPECT_RC(c.rc, VipConnectRequest(vi, local, c.addr, c.timeout, &attrs));
			EXPECT_EQ(VIP_STATE_IDLE, vi.state()) << "after any failure the VI is Idle";
		}
}

TEST(Connect, DiscriminatorsMatchByteForByte)
{
	size_t max = nic(0).attrs.MaxDiscriminatorLen;
	const std::string waited = "abc";
	struct Case {
		const char *what;
		std::string disc;
	} all[] = { { "a prefix", "ab" },
		    { "an extension", "abcd" },
		    { "another byte", "abd" },
		    { "an empty one", "" },
		    { "a zero byte more", std::string("abc\0", 4) } };
	for (auto &c : all) {
		RULE(std::string("VIPL 5.3: ") + c.what + " of the discriminator does not match");
		std::atomic<bool> stop{ false };
		std::thread waiter([&] {
			Addr here(nic(1), waited), from(nic(1), "");
			VIP_VI_ATTRIBUTES attrs;
			VIP_CONN_HANDLE conn;
			while (!stop)
				EXPECT_RC(VIP_TIMEOUT,
					  VipConnectWait(nic(1).h, here, 1, from, &attrs, &conn));
		});
		Vi vi(nic(0), vi_attrs(VIP_SERVICE_UNRELIABLE));
		Addr local(nic(0), "c"), remote(nic(1), c.disc);
		VIP_VI_ATTRIBUTES attrs;
		for (int i = 0; i < 5; i++)
			EXPECT_RC(VIP_NO_MATCH,
				  VipConnectRequest(vi, local, remote, kWaitMs, &attrs));
		stop = true;
		waiter.join();
	}
	for (size_t length :
	     { size_t(0), size_t(1), size_t(8), size_t(12), size_t(16), max - 1, max }) {
		RULE("VIPL 4.2: discriminators of " + std::to_string(length) +
		     " bytes, with any byte in them");
		std::string disc;
		for (size_t i = 0; i < length; i++)
			disc += static_cast<char>(i * 37 + length);
		Vi client(nic(0), vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY));
		Asker asker(client, nic(0), nic(1), disc, kWaitMs,
			    disc + (length < max ? "x" : ""));
		Addr here(nic(1), disc), from(nic(1), "");
		VIP_VI_ATTRIBUTES seen;
		VIP_CONN_HANDLE conn;
		ASSERT_RC(VIP_SUCCESS, VipConnectWait(nic(1).h, here, kWaitMs, from, &seen, &conn));
		EXPECT_EQ(disc + (length < max ? "x" : ""), from.disc())
			<< "the client's local address";
		EXPECT_EQ(Addr(nic(0), "").host(), from.host());
		EXPECT_RC(VIP_SUCCESS, VipConnectReject(conn));
		EXPECT_RC(VIP_REJECT, asker.result());
	}
}

TEST(Connect, OutAddressHoldsOnlyItsLengths)
{
	RULE("VIPL 4.2: no more than the actual lengths are written into an OUT address");
	Vi client(nic(0), vi_attrs(VIP_SERVICE_UNRELIABLE));
	std::string disc = unique_disc();
	Asker asker(client, nic(0), nic(1), disc, kWaitMs, "12");
	Addr here(nic(1), disc), from(nic(1), "");
	memset(from.room, 0xee, sizeof(from.room));
	VIP_VI_ATTRIBUTES seen;
	VIP_CONN_HANDLE conn;
	ASSERT_RC(VIP_SUCCESS, VipConnectWait(nic(1).h, here, kWaitMs, from, &seen, &conn));
	EXPECT_EQ("12", from.disc());
	for (size_t i = 4 + 6 + 2; i < sizeof(from.room); i++)
		EXPECT_EQ(0xee, from.room[i]) << "byte " << i;
	EXPECT_RC(VIP_SUCCESS, VipConnectReject(conn));
}

TEST(Connect, AttributesReachBothSides)
{
	for (auto &level : levels())
		for (int bits = 0; bits < 16; bits++) {
			VIP_VI_ATTRIBUTES c = vi_attrs(level.value, 5000), s = c;
			c.EnableRdmaWrite = bits & 1;
			s.EnableRdmaWrite = (bits >> 1) & 1;
			c.EnableRdmaRead = (bits >> 2) & 1;
			s.EnableRdmaRead = (bits >> 3) & 1;
			if ((c.EnableRdmaRead || s.EnableRdmaRead) && !offers_read(level))
				continue;
			RULE(std::string(
				     "VIPL 5.3: RDMA enables need not match, each side learns the other's, ") +
			     level.name);
			Request r(c);
			Vi server(nic(1), s);
			EXPECT_EQ(c.ReliabilityLevel, r.seen.ReliabilityLevel);
			EXPECT_EQ(c.MaxTransferSize, r.seen.MaxTransferSize);
			EXPECT_EQ(c.EnableRdmaWrite, r.seen.EnableRdmaWrite);
			EXPECT_EQ(c.EnableRdmaRead, r.seen.EnableRdmaRead);
			EXPECT_RC(VIP_SUCCESS, VipConnectAccept(r.conn, server));
			EXPECT_EQ(VIP_STATE_CONNECTED, server.state())
				<< "Connected before accept returns";
			EXPECT_RC(VIP_SUCCESS, r.asker.result());
			EXPECT_EQ(VIP_STATE_CONNECTED, r.client.state());
			EXPECT_EQ(s.ReliabilityLevel, r.asker.attrs.ReliabilityLevel);
			EXPECT_EQ(s.MaxTransferSize, r.asker.attrs.MaxTransferSize);
			EXPECT_EQ(s.EnableRdmaWrite, r.asker.attrs.EnableRdmaWrite);
			EXPECT_EQ(s.EnableRdmaRead, r.asker.attrs.EnableRdmaRead);
		}
}

TEST(Connect, PtagsNeedNotMatch)
{
	for (auto &level : levels())
		for (int bits = 0; bits < 4; bits++) {
			RULE(std::string("VIPL 5.3: protection tags need not match, ") +
			     level.name);
			Ptag pa(nic(0)), pb(nic(1));
			Vi client(nic(0), vi_attrs(level.value, 4096, bits & 1 ? pa.h : nullptr));
			Vi server(nic(1), vi_attrs(level.value, 4096, bits & 2 ? pb.h : nullptr));
			connect(client, server);
			EXPECT_EQ(VIP_STATE_CONNECTED, client.state());
			EXPECT_EQ(VIP_STATE_CONNECTED, server.state());
		}
}

TEST(Connect, FailedAcceptKeepsTheRequest)
{
	for (auto &level : levels())
		for (auto &wrong : levels()) {
			if (wrong.value == level.value)
				continue;
			RULE(std::string("VIPL 5.3 VipConnectAccept: ") + wrong.name +
			     " for a client of " + level.name +
			     " is VIP_INVALID_RELIABILITY_LEVEL; the request stays alive");
			Request r(vi_attrs(level.value, 5000));
			Vi server(nic(1), vi_attrs(wrong.value, 5000));
			EXPECT_RC(VIP_INVALID_RELIABILITY_LEVEL, VipConnectAccept(r.conn, server));
			EXPECT_EQ(VIP_STATE_IDLE, server.state());
			EXPECT_EQ(VIP_STATE_CONNECT_PENDING, r.client.state())
				<< "the client is told nothing";
			VIP_VI_ATTRIBUTES right = vi_attrs(level.value, 5000);
			EXPECT_RC(VIP_SUCCESS, VipSetViAttributes(server, &right));
			EXPECT_RC(VIP_SUCCESS, VipConnectAccept(r.conn, server));
			EXPECT_RC(VIP_SUCCESS, r.asker.result());
		}
	for (auto &level : levels())
		for (VIP_ULONG size : { 1UL, 4999UL, 5001UL, 1UL << 20 }) {
			RULE(std::string(
				     "VIPL 5.3 VipConnectAccept: another MaxTransferSize is VIP_INVALID_MTU; "
				     "the request stays alive, ") +
			     level.name);
			Request r(vi_attrs(level.value, 5000));
			Vi server(nic(1), vi_attrs(level.value, size));
			EXPECT_RC(VIP_INVALID_MTU, VipConnectAccept(r.conn, server));
			EXPECT_EQ(VIP_STATE_IDLE, server.state());
			VIP_VI_ATTRIBUTES right = vi_attrs(level.value, 5000);
			EXPECT_RC(VIP_SUCCESS, VipSetViAttributes(server, &right));
			EXPECT_RC(VIP_SUCCESS, VipConnectAccept(r.conn, server));
			EXPECT_RC(VIP_SUCCESS, r.asker.result());
		}
}

TEST(Connect, AcceptWithAForeignVi)
{
	RULE("VIPL 5.3 VipConnectAccept: a VI of another NIC handle is VIP_INVALID_PARAMETER; the request stays");
	Nic other(1);
	VIP_VI_ATTRIBUTES attrs = vi_attrs(VIP_SERVICE_UNRELIABLE);
	Vi foreign(other, attrs), server(nic(1), attrs);
	Request r(attrs);
	EXPECT_RC(VIP_INVALID_PARAMETER, VipConnectAccept(r.conn, foreign));
	EXPECT_RC(VIP_INVALID_PARAMETER, VipConnectAccept(r.conn, nullptr));
	EXPECT_RC(VIP_SUCCESS, VipConnectAccept(r.conn, server));
	EXPECT_RC(VIP_SUCCESS, r.asker.result());
}

TEST(Connect, RequestIsUsedUp)
{
	VIP_VI_ATTRIBUTES attrs = vi_attrs(VIP_SERVICE_UNRELIABLE);
	{
		RULE("VIPL 5.3: an accepted request cannot be accepted or rejected again");
		Vi server(nic(1), attrs), second(nic(1), attrs);
		Request r(attrs);
		EXPECT_RC(VIP_SUCCESS, VipConnectAccept(r.conn, server));
		EXPECT_RC(VIP_INVALID_PARAMETER, VipConnectAccept(r.conn, second));
		EXPECT_RC(VIP_INVALID_PARAMETER, VipConnectReject(r.conn));
		EXPECT_RC(VIP_SUCCESS, r.asker.result());
	}
	{
		RULE("VIPL 5.3: a rejected request cannot be accepted or rejected again");
		Vi server(nic(1), attrs);
		Request r(attrs);
		EXPECT_RC(VIP_SUCCESS, VipConnectReject(r.conn));
		EXPECT_RC(VIP_INVALID_PARAMETER, VipConnectAccept(r.conn, server));
		EXPECT_RC(VIP_INVALID_PARAMETER, VipConnectReject(r.conn));
		EXPECT_RC(VIP_REJECT, r.asker.result());
	}
}

TEST(Connect, RejectAtEachLevel)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.3 VipConnectReject: the client gets VIP_REJECT and an Idle VI, ") +
		     level.name);
		Request r(vi_attrs(level.value));
		EXPECT_EQ(VIP_STATE_CONNECT_PENDING, r.client.state());
		EXPECT_RC(VIP_SUCCESS, VipConnectReject(r.conn));
		EXPECT_RC(VIP_REJECT, r.asker.result());
		EXPECT_EQ(VIP_STATE_IDLE, r.client.state());
	}
}

TEST(Connect, ClientTimesOut)
{
	for (auto &level : levels())
		for (int accept = 0; accept < 2; accept++) {
			RULE(std::string(
				     "VIPL 5.3: without a decision in time the client gets VIP_TIMEOUT; then ") +
			     (accept ? "accept gives VIP_TIMEOUT, " : "reject succeeds, ") +
			     level.name);
			Request r(vi_attrs(level.value), 50);
			Vi server(nic(1), vi_attrs(level.value));
			EXPECT_RC(VIP_TIMEOUT, r.asker.result());
			EXPECT_EQ(VIP_STATE_IDLE, r.client.state());
			if (accept) {
				EXPECT_RC(VIP_TIMEOUT, VipConnectAccept(r.conn, server));
				EXPECT_EQ(VIP_STATE_IDLE, server.state());
				EXPECT_RC(VIP_INVALID_PARAMETER, VipConnectReject(r.conn));
			} else {
				EXPECT_RC(VIP_SUCCESS, VipConnectReject(r.conn));
			}
		}
}

TEST(Connect, DisconnectEndsARequest)
{
	RULE("VIPL 5.3 VipDisconnect: ends a request of another thread with VIP_TIMEOUT; the VI is Idle");
	Request r(vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY), VIP_INFINITE);
	EXPECT_RC(VIP_SUCCESS, VipDisconnect(r.client));
	EXPECT_RC(VIP_TIMEOUT, r.asker.result());
	EXPECT_EQ(VIP_STATE_IDLE, r.client.state());
	VipConnectReject(r.conn);
}

TEST(Connect, WaitersOnSeveralDiscriminators)
{
	constexpr int kN = 6;
	RULE("VIPL 5.3: several threads wait on different discriminators, each gets its own client");
	std::vector<std::string> discs;
	std::vector<std::unique_ptr<Vi>> clients, servers;
	std::vector<std::thread> waiters;
	std::vector<std::string> seen(kN);
	for (int i = 0; i < kN; i++) {
		discs.push_back(unique_disc());
		clients.push_back(
			std::make_unique<Vi>(nic(0), vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY)));
		servers.push_back(
			std::make_unique<Vi>(nic(1), vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY)));
	}
	for (int i = 0; i < kN; i++)
		waiters.emplace_back([&, i] {
			Addr here(nic(1), discs[i]), from(nic(1), "");
			VIP_VI_ATTRIBUTES attrs;
			VIP_CONN_HANDLE conn;
			EXPECT_RC(VIP_SUCCESS,
				  VipConnectWait(nic(1).h, here, kWaitMs, from, &attrs, &conn));
			seen[i] = from.disc();
			EXPECT_RC(VIP_SUCCESS, VipConnectAccept(conn, *servers[i]));
		});
	for (int i = kN - 1; i >= 0; i--) {
		Asker asker(*clients[i], nic(0), nic(1), discs[i], kWaitMs,
			    "from" + std::to_string(i));
		EXPECT_RC(VIP_SUCCESS, asker.result());
	}
	for (int i = 0; i < kN; i++) {
		waiters[i].join();
		EXPECT_EQ("from" + std::to_string(i), seen[i]);
	}
}

TEST(Connect, WaitersOnOneDiscriminator)
{
	constexpr int kN = 6;
	RULE("VIPL 5.3: several threads wait on one discriminator, each request goes to one of them");
	std::string disc = unique_disc();
	std::vector<std::unique_ptr<Vi>> clients, servers;
	std::vector<std::thread> waiters;
	for (int i = 0; i < kN; i++) {
		clients.push_back(
			std::make_unique<Vi>(nic(0), vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY)));
		servers.push_back(
			std::make_unique<Vi>(nic(1), vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY)));
	}
	for (int i = 0; i < kN; i++)
		waiters.emplace_back([&, i] {
			Addr here(nic(1), disc), from(nic(1), "");
			VIP_VI_ATTRIBUTES attrs;
			VIP_CONN_HANDLE conn;
			EXPECT_RC(VIP_SUCCESS,
				  VipConnectWait(nic(1).h, here, kWaitMs, from, &attrs, &conn));
			EXPECT_RC(VIP_SUCCESS, VipConnectAccept(conn, *servers[i]));
		});
	{
		std::vector<std::unique_ptr<Asker>> askers;
		for (int i = 0; i < kN; i++)
			askers.push_back(
				std::make_unique<Asker>(*clients[i], nic(0), nic(1), disc));
		for (auto &asker : askers)
			EXPECT_RC(VIP_SUCCESS, asker->result());
	}
	for (auto &w : waiters)
		w.join();
	for (auto &s : servers)
		EXPECT_EQ(VIP_STATE_CONNECTED, s->state());
}

TEST(Connect, ReceivesPostedBeforehand)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 6: receives posted in Idle are there for the first message, ") +
		     level.name);
		LinkOptions o;
		o.connected = false;
		Link l(level.value, o);
		VIP_DESCRIPTOR *recv = l.recv_b(100);
		connect(*l.va, *l.vb);
		Seg seg = l.seg_a(100);
		fill(seg.p, 100, 9);
		l.send_a({ seg });
		EXPECT_EQ(recv, take_recv(*l.vb));
		EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_RECEIVE));
		EXPECT_TRUE(same(recv->DS[0].Local.Data.Address, 100, 9));
	}
}

/*
 * A child asks and is stopped; the server accepts, sends, and lets the child go on.  Returns the child's exit code:
 * not 0 where the machine stood still for so long that the agent did not wait for the child.
 */
static int accept_stopped(VIP_RELIABILITY_LEVEL level)
{
	std::string disc = unique_disc();
	Vi vi(nic(0), vi_attrs(level));
	Arena arena(nic(0));
	Addr here(nic(0), disc), from(nic(0), "");
	VIP_VI_ATTRIBUTES seen;
	VIP_CONN_HANDLE conn = nullptr;
	char *out = arena.bytes(1);
	VIP_DESCRIPTOR *send = make(arena, 0, { { out, arena.mem.h, 1 } });
	int status = 0;
	pid_t pid = spawn_child("connect-and-receive", std::to_string(level) + ":" + disc);

	*out = 7;
	EXPECT_RC(VIP_SUCCESS, VipConnectWait(nic(0).h, here, kWaitMs, from, &seen, &conn));
	kill(pid, SIGSTOP);
	EXPECT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	EXPECT_TRUE(WIFSTOPPED(status)) << status;
	EXPECT_RC(VIP_SUCCESS, VipConnectAccept(conn, vi));
	VipPostSend(vi, send, arena.mem.h);
	kill(pid, SIGCONT);
	return child_wait(pid);
}

TEST(Connect, AStoppedClientHoldsUpNoServer)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.3 VipConnectAccept: does not wait for the client's "
				 "process; what is sent waits, ") +
		     level.name);
		EXPECT_TRUE(eventually([&] {
			return accept_stopped(level.value) == 0 || ::testing::Test::HasFailure();
		}));
		nic(0).clear();
	}
}

TEST(Connect, AgainAndAgain)
{
	for (auto &level : levels()) {
		LinkOptions o;
		o.connected = false;
		Link l(level.value, o);
		for (int i = 0; i < 10; i++) {
			RULE(std::string("VIPL 6: a VI connects again after a disconnect, ") +
			     level.name);
			connect(i & 1 ? *l.vb : *l.va, i & 1 ? *l.va : *l.vb);
			EXPECT_TRUE(l.works());
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(i & 2 ? *l.va : *l.vb));
			EXPECT_TRUE((i & 2 ? *l.vb : *l.va).reaches(VIP_STATE_ERROR));
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(i & 2 ? *l.vb : *l.va));
		}
	}
}

TEST(Connect, DisconnectTellsThePeer)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.3 VipDisconnect: own descriptors are flushed, the peer goes to Error and "
			     "gets CONN_LOST, ") +
		     level.name);
		Link l(level.value);
		VIP_DESCRIPTOR *ra[3], *rb[3], *got;
		for (int i = 0; i < 3; i++) {
			ra[i] = l.recv_a(10);
			rb[i] = l.recv_b(10);
		}
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.va));
		EXPECT_EQ(VIP_STATE_IDLE, l.va->state());
		for (auto &r : ra) {
			EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipRecvDone(*l.va, &got));
			EXPECT_EQ(r, got);
			EXPECT_TRUE(has_status(got, VIP_STATUS_OP_RECEIVE |
							    VIP_STATUS_DESC_FLUSHED_ERROR));
		}
		VIP_ERROR_DESCRIPTOR event{};
		EXPECT_TRUE(l.nb.wait_event(VIP_ERROR_CONN_LOST, l.vb->h, &event));
		EXPECT_EQ(l.nb.h, event.NicHandle);
		EXPECT_EQ(VIP_RESOURCE_VI, event.ResourceCode);
		EXPECT_EQ(VIP_STATE_ERROR, l.vb->state()) << "in its new state before the event";
		for (auto &r : rb) {
			EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipRecvDone(*l.vb, &got));
			EXPECT_EQ(r, got);
			EXPECT_TRUE(has_status(got, VIP_STATUS_OP_RECEIVE |
							    VIP_STATUS_DESC_FLUSHED_ERROR));
		}
		EXPECT_EQ(0u, l.na.events(VIP_ERROR_CONN_LOST, l.va->h))
			<< "not for one's own disconnect";
	}
}

TEST(Connect, CompletedSendsArriveBeforeTheLoss)
{
	for (auto &level : levels()) {
		if (!level.reliable())
			continue;
		RULE(std::string(
			     "VIPL 7: what completed on a reliable level arrives before the peer sees the loss, ") +
		     level.name);
		Link l(level.value);
		std::vector<VIP_DESCRIPTOR *> recvs;
		for (int i = 0; i < 20; i++)
			recvs.push_back(l.recv_b(64));
		for (int i = 0; i < 20; i++) {
			Seg seg = l.seg_a(64);
			fill(seg.p, 64, i);
			l.send_a({ seg });
		}
		for (int i = 0; i < 20; i++)
			EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_SEND));
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.va));
		EXPECT_TRUE(l.vb->reaches(VIP_STATE_ERROR));
		for (int i = 0; i < 20; i++) {
			EXPECT_EQ(recvs[i], take_recv(*l.vb));
			EXPECT_TRUE(has_status(recvs[i], VIP_STATUS_OP_RECEIVE)) << "message " << i;
			EXPECT_TRUE(same(recvs[i]->DS[0].Local.Data.Address, 64, i));
		}
	}
}

TEST(Connect, WithinOneNicHandle)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.3: two VIs of one NIC handle connect, ") + level.name);
		Vi client(nic(0), vi_attrs(level.value)), server(nic(0), vi_attrs(level.value));
		Arena arena(nic(0));
		connect(client, server);
		char *in = arena.bytes(32), *out = arena.bytes(32);
		fill(out, 32, 5);
		VIP_DESCRIPTOR *recv = make(arena, 0, { { in, arena.mem.h, 32 } });
		ASSERT_RC(VIP_SUCCESS, VipPostRecv(server, recv, arena.mem.h));
		ASSERT_RC(VIP_SUCCESS,
			  VipPostSend(client, make(arena, 0, { { out, arena.mem.h, 32 } }),
				      arena.mem.h));
		EXPECT_EQ(recv, take_recv(server));
		EXPECT_TRUE(same(in, 32, 5));
		EXPECT_TRUE(has_status(take_send(client), VIP_STATUS_OP_SEND));
	}
}
