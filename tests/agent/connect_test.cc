// SPDX-License-Identifier: BSD-2-Clause
// Client-server set-up: every path with every outcome, within a host and between neighbours.
#include <set>

#include "agent_fixture.h"

using namespace agent_test;

namespace {

// Parameter: hosts of the fabric; the client is on host 0, the server on the last.
class Connect : public FabricTest, public ::testing::WithParamInterface<unsigned> {
protected:
	void SetUp() override
	{
		up(GetParam());
		server_host = GetParam() - 1;
		open();
	}

	void TearDown() override
	{
		s.reset();
		c.reset();
		FabricTest::TearDown();
	}

	void open()
	{
		c = std::make_unique<Client>(*fabric, 0);
		s = std::make_unique<Client>(*fabric, server_host);
		here = address(0, "client");
		there = address(server_host, "server");
	}

	// Connects up to the server's knowledge of the request; returns its conn.
	uint64_t arrive(const w_vi_attrs &attrs = attributes())
	{
		s->listen(1, there);
		s->sync();
		c->connection(W_CONNECT, 2, here, there, attrs);
		Msg m = s->recv();
		EXPECT_EQ(m.type, W_ARRIVED);
		EXPECT_EQ(m.as<w_arrived>().token, 1u);
		return m.as<w_arrived>().conn;
	}

	// Connects up to LINKED at both ends, which the client has not confirmed; returns the client's conn.
	uint64_t link_up()
	{
		server_conn = arrive();
		s->accept(server_conn, 3);
		client_linked = c->recv();
		EXPECT_EQ(client_linked.type, W_LINKED);
		server_linked = s->recv();
		EXPECT_EQ(server_linked.type, W_LINKED);
		return client_linked.as<w_linked>().conn;
	}

	static void refused(const Msg &m, uint64_t token, w_status status)
	{
		ASSERT_EQ(m.type, W_REFUSED);
		EXPECT_EQ(m.as<w_refused>().token, token);
		EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(status))
			<< m.as<w_refused>().text;
	}

	static void lost(const Msg &m, uint64_t conn, w_lost reason)
	{
		ASSERT_EQ(m.type, W_LOST);
		EXPECT_EQ(m.as<w_lost_msg>().conn, conn);
		EXPECT_EQ(m.as<w_lost_msg>().reason, static_cast<uint32_t>(reason));
	}

	unsigned server_host = 0;
	uint64_t server_conn = 0;
	Msg client_linked, server_linked;
	w_addr here, there;
	std::unique_ptr<Client> c, s;
};

void *map(int fd, size_t len)
{
	void *p = mmap(nullptr, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	EXPECT_NE(p, MAP_FAILED);
	return p;
}

TEST_P(Connect, AcceptGivesEachEndTheOthersSlice)
{
	Pair p = join(*c, *s);
	const w_linked &cl = p.client_linked.as<w_linked>();
	const w_linked &sl = p.server_linked.as<w_linked>();

	ASSERT_EQ(p.client_linked.fds.size(), 2u);
	ASSERT_EQ(p.server_linked.fds.size(), 2u);
	EXPECT_EQ(cl.token, 2u);
	EXPECT_EQ(sl.token, 3u);
	EXPECT_EQ(cl.hops, server_host == 0 ? 0u : 1u);
	EXPECT_EQ(cl.outbound.db_bit, s->welcome.db_bit);
	EXPECT_EQ(sl.outbound.db_bit, c->welcome.db_bit);
	EXPECT_NE(cl.outbound.db_bit, 0u);
	EXPECT_EQ(cl.attrs.max_transfer, 65536u);

	auto *out = static_cast<char *>(map(p.client_linked.fds[1], cl.outbound.slice_len));
	auto *in = static_cast<char *>(map(p.server_linked.fds[0], sl.inbound.slice_len));
	strcpy(out + 4096, "through the window");
	EXPECT_STREQ(in + 4096, "through the window");
	munmap(out, cl.outbound.slice_len);
	munmap(in, sl.inbound.slice_len);
}

TEST_P(Connect, PortIsToldOnceBeforeItsFirstUse)
{
	join(*c, *s, "one");
	join(*c, *s, "two");
	/* A link can go down and up between the two, and its port is told again then. */
	for (const Client *end : { c.get(), s.get() }) {
		EXPECT_FALSE(end->ports.empty());
		EXPECT_EQ(std::set(end->ports.begin(), end->ports.end()).size(), end->ports.size());
	}
}

TEST_P(Connect, NobodyWaits)
{
	c->connection(W_CONNECT, 2, here, there);
	refused(c->recv(), 2, W_NO_MATCH);
}

TEST_P(Connect, WaiterServesOneRequest)
{
	arrive();
	c->connection(W_CONNECT, 4, here, there);
	refused(c->recv(), 4, W_NO_MATCH);
}

TEST_P(Connect, DiscriminatorsDifferByLength)
{
	s->listen(1, address(server_host, "serve"));
	s->sync();
	c->connection(W_CONNECT, 2, here, there);
	refused(c->recv(), 2, W_NO_MATCH);
}

TEST_P(Connect, UnlistenedWaiterIsGone)
{
	s->listen(1, there);
	s->token(W_UNLISTEN, 1);
	Msg m = s->recv();
	ASSERT_EQ(m.type, W_UNLISTENED);
	EXPECT_EQ(m.as<w_token>().token, 1u);
	c->connection(W_CONNECT, 2, here, there);
	refused(c->recv(), 2, W_NO_MATCH);
}

TEST_P(Connect, ArrivedCarriesAddressAndAttributes)
{
	s->listen(1, there);
	s->sync();
	c->connection(W_CONNECT, 2, here, there, attributes(4, 12345, 7));
	Msg m = s->recv();
	ASSERT_EQ(m.type, W_ARRIVED);
	const w_arrived &a = m.as<w_arrived>();
	EXPECT_EQ(a.attrs.max_transfer, 12345u);
	EXPECT_EQ(a.attrs.reliability, 4u);
	EXPECT_EQ(a.attrs.qos, 7u);
	EXPECT_EQ(memcmp(&a.remote, &here, sizeof(here)), 0);
}

TEST_P(Connect, Rejected)
{
	s->conn(W_REJECT, arrive());
	refused(c->recv(), 2, W_REJECTED);
}

TEST_P(Connect, MismatchLeavesTheRequestAlive)
{
	uint64_t conn = arrive(attributes(2, 1000, 5));

	s->accept(conn, 10, attributes(4, 1000, 5));
	refused(s->recv(), 10, W_BAD_RELIABILITY);
	s->accept(conn, 11, attributes(2, 1001, 5));
	refused(s->recv(), 11, W_BAD_MTU);
	s->accept(conn, 12, attributes(2, 1000, 6));
	refused(s->recv(), 12, W_BAD_QOS);
	s->accept(conn, 13, attributes(2, 1000, 5));
	Msg m = c->recv();
	ASSERT_EQ(m.type, W_LINKED);
	c->conn(W_CONFIRM, m.as<w_linked>().conn);
	EXPECT_EQ(s->recv().type, W_LINKED);
}

TEST_P(Connect, SecondAcceptIsRefused)
{
	uint64_t conn = arrive();

	s->accept(conn, 3);
	s->accept(conn, 4);
	Msg m = s->recv();
	if (m.type == W_LINKED)
		m = s->recv();
	refused(m, 4, W_BAD_STATE);
}

TEST_P(Connect, AcceptOfAnInventedConn)
{
	s->accept(0x1234567800000001ull, 9);
	refused(s->recv(), 9, W_TIMED_OUT);
}

TEST_P(Connect, ConnsBelongToTheirProcess)
{
	uint64_t conn = arrive();
	Client other(*fabric, server_host);

	other.accept(conn, 9);
	refused(other.recv(), 9, W_TIMED_OUT);
	other.conn(W_REJECT, conn);
	other.conn(W_CLOSE, conn);
	other.sync();
	s->accept(conn, 3);
	EXPECT_EQ(c->recv().type, W_LINKED);
}

TEST_P(Connect, ClientCancelsBeforeTheAnswer)
{
	uint64_t conn = arrive();

	c->token(W_CANCEL, 2);
	refused(c->recv(), 2, W_TIMED_OUT);
	EXPECT_TRUE(eventually([&] {
		s->accept(conn, 3);
		Msg m = s->recv();
		return m.type == W_REFUSED && m.as<w_refused>().status == W_TIMED_OUT;
	}));
}

TEST_P(Connect, CancelOfAnUnknownToken)
{
	c->token(W_CANCEL, 99);
	c->sync();
}

TEST_P(Connect, CancelCrossesLinked)
{
	uint64_t conn = link_up();

	c->token(W_CANCEL, 2);
	c->sync();
	c->conn(W_CLOSE, conn);
	lost(s->recv(), server_conn, W_LOST_CLOSED);
	s->conn(W_CLOSE, server_conn);
	s->sync();
}

TEST_P(Connect, ServerLeavesBeforeTheClientConfirms)
{
	uint64_t conn = link_up();

	s->conn(W_CLOSE, server_conn);
	lost(c->recv(), conn, W_LOST_CLOSED);
	c->conn(W_CONFIRM, conn);
	c->conn(W_CLOSE, conn);
	c->sync();
	s->sync();
}

TEST_P(Connect, WhatTheServerSendsWaitsForTheClient)
{
	uint64_t conn = link_up();
	const w_linked &cl = client_linked.as<w_linked>();
	const w_linked &sl = server_linked.as<w_linked>();
	auto *out = static_cast<char *>(map(server_linked.fds[1], sl.outbound.slice_len));
	w_tell tell = {};

	strcpy(out + 4096, "before the confirmation");
	tell.conn = server_conn;
	tell.body_len = 5;
	memcpy(tell.body, "early", 5);
	s->send(tell, W_TELL);
	Msg m = c->recv();
	ASSERT_EQ(m.type, W_TOLD);
	EXPECT_EQ(m.as<w_tell>().conn, conn);
	EXPECT_EQ(memcmp(m.as<w_tell>().body, "early", 5), 0);
	c->conn(W_CONFIRM, conn);
	auto *in = static_cast<char *>(map(client_linked.fds[0], cl.inbound.slice_len));
	EXPECT_STREQ(in + 4096, "before the confirmation");
	munmap(out, sl.outbound.slice_len);
	munmap(in, cl.inbound.slice_len);
}

TEST_P(Connect, ClientDiesBeforeTheAnswer)
{
	uint64_t conn = arrive();

	c->hang_up();
	s->accept(conn, 3);
	Msg m = s->recv();
	// The agent may have linked it before it notices the end.
	if (m.type == W_LINKED)
		lost(s->recv(), conn, W_LOST_PROCESS);
	else
		refused(m, 3, W_TIMED_OUT);
}

TEST_P(Connect, ClientDiesWhenLinked)
{
	link_up();
	c->hang_up();
	lost(s->recv(), server_conn, W_LOST_PROCESS);
	s->conn(W_CLOSE, server_conn);
	s->sync();
}

TEST_P(Connect, ClientDiesWhenConnected)
{
	Pair p = join(*c, *s);

	c->hang_up();
	lost(s->recv(), p.server_conn, W_LOST_PROCESS);
	s->conn(W_CLOSE, p.server_conn);
	s->sync();
}

TEST_P(Connect, ServerDiesWaiting)
{
	s->listen(1, there);
	s->sync();
	s->hang_up();
	EXPECT_TRUE(eventually([&] {
		c->connection(W_CONNECT, 2, here, there);
		Msg m = c->recv();
		return m.type == W_REFUSED && m.as<w_refused>().status == W_NO_MATCH;
	}));
}

TEST_P(Connect, ServerDiesBeforeItsAnswer)
{
	arrive();
	s->hang_up();
	refused(c->recv(), 2, W_NO_MATCH);
}

TEST_P(Connect, ServerDiesAccepting)
{
	uint64_t conn = link_up();

	s->hang_up();
	lost(c->recv(), conn, W_LOST_PROCESS);
	c->conn(W_CLOSE, conn);
	c->sync();
}

TEST_P(Connect, ServerDiesWhenConnected)
{
	Pair p = join(*c, *s);

	s->hang_up();
	lost(c->recv(), p.client_conn, W_LOST_PROCESS);
	c->conn(W_CLOSE, p.client_conn);
	c->sync();
}

TEST_P(Connect, CloseIsToldAndAnswered)
{
	uint64_t idle = window_used(*fabric, 0);
	Pair p = join(*c, *s);

	c->conn(W_CLOSE, p.client_conn);
	lost(s->recv(), p.server_conn, W_LOST_CLOSED);
	EXPECT_GE(window_used(*fabric, 0), idle + slice_bytes(*fabric))
		<< "freed before the peer let go";
	s->conn(W_CLOSE, p.server_conn);
	s->sync();
	EXPECT_TRUE(eventually([&] { return window_used(*fabric, 0) == idle; }));
	s->conn(W_CLOSE, p.server_conn);
	c->conn(W_CLOSE, p.client_conn);
	c->conn(W_CONFIRM, p.client_conn);
	c->sync();
	s->sync();
}

TEST_P(Connect, BothCloseAtOnce)
{
	Pair p = join(*c, *s);

	c->conn(W_CLOSE, p.client_conn);
	s->conn(W_CLOSE, p.server_conn);
	c->hang_up();
}

TEST_P(Connect, WithinOneProcess)
{
	Client one(*fabric, 0);
	w_addr at = address(0, "mine");

	one.listen(1, at);
	one.connection(W_CONNECT, 2, here, at);
	Msg m = one.recv();
	ASSERT_EQ(m.type, W_ARRIVED);
	one.accept(m.as<w_arrived>().conn, 3);
	m = one.recv();
	ASSERT_EQ(m.type, W_LINKED);
	EXPECT_EQ(m.as<w_linked>().token, 2u);
	one.conn(W_CONFIRM, m.as<w_linked>().conn);
	m = one.recv();
	ASSERT_EQ(m.type, W_LINKED);
	EXPECT_EQ(m.as<w_linked>().token, 3u);
}

TEST_P(Connect, AddressesOfNoHost)
{
	w_addr bad = there;

	bad.host_len = 5;
	c->connection(W_CONNECT, 2, here, bad);
	refused(c->recv(), 2, W_NOT_REACHABLE);
	bad = there;
	bad.host[0] ^= 1;
	c->connection(W_CONNECT, 3, here, bad);
	refused(c->recv(), 3, W_NOT_REACHABLE);
	c->connection(W_CONNECT, 4, here, address(GetParam(), "beyond"));
	refused(c->recv(), 4, W_NOT_REACHABLE);
}

INSTANTIATE_TEST_SUITE_P(Hosts, Connect, ::testing::Values(1u, 2u, 3u));

class Ring : public FabricTest {};

TEST_F(Ring, FarHostsAreRelayed)
{
	up(5);
	Client c(*fabric, 0);

	c.connection(W_CONNECT, 2, address(0, "c"), address(2, "s"));
	Msg m = c.recv();
	ASSERT_EQ(m.type, W_REFUSED);
	EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(W_NO_MATCH));
	w_route r;
	EXPECT_TRUE(eventually([&] {
		r = c.route(3);
		return r.reachable != 0 && r.hops == 2;
	}));
	EXPECT_EQ(r.path, 3u);
	EXPECT_STREQ(r.reason, "relayed by host4");
}

TEST_F(Ring, EveryHostConnectsToBothNeighboursAtOnce)
{
	constexpr unsigned kHosts = 6;
	up(kHosts);
	std::vector<std::unique_ptr<Client>> c;
	std::vector<Pair> pairs;

	for (unsigned i = 0; i < kHosts; i++)
		c.push_back(std::make_unique<Client>(*fabric, i));
	for (unsigned i = 0; i < kHosts; i++) {
		unsigned right = (i + 1) % kHosts;
		pairs.push_back(join(*c[i], *c[right], "r" + std::to_string(i)));
		pairs.push_back(join(*c[right], *c[i], "l" + std::to_string(i)));
	}
	for (const Pair &p : pairs)
		EXPECT_NE(p.client_conn, 0u);
}

// ---- windows ----

class Window : public FabricTest {
protected:
	// Has room for `slices` slices on the host, in addition to its control slices.
	static Fabric::Tweak room(unsigned host, unsigned slices)
	{
		return [=](ag_cfg &cfg) {
			if (cfg.host_id != host)
				return;
			uint64_t slice = (w_slice_bytes(cfg.slots, cfg.payload_bytes) + 4095) &
					 ~4095ull;
			cfg.window_bytes = slices * slice + (cfg.host_count > 1 ? 36864 : 0);
		};
	}
};

TEST_F(Window, ExhaustedAtTheServerLeavesTheRequestAlive)
{
	up(2, room(1, 1));
	Client c(*fabric, 0), s(*fabric, 1);
	Pair first = join(c, s);
	w_addr at = address(1, "second");

	s.listen(5, at);
	s.sync();
	c.connection(W_CONNECT, 6, address(0, "c"), at);
	Msg m = s.recv();
	ASSERT_EQ(m.type, W_ARRIVED);
	uint64_t conn = m.as<w_arrived>().conn;
	s.accept(conn, 7);
	m = s.recv();
	ASSERT_EQ(m.type, W_REFUSED);
	EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(W_NO_RESOURCE));

	s.conn(W_CLOSE, first.server_conn);
	EXPECT_EQ(c.recv().type, W_LOST);
	c.conn(W_CLOSE, first.client_conn);
	EXPECT_TRUE(eventually([&] { return window_used(*fabric, 1) < 40000; }));
	s.accept(conn, 8);
	m = c.recv();
	ASSERT_EQ(m.type, W_LINKED);
	c.conn(W_CONFIRM, m.as<w_linked>().conn);
	EXPECT_EQ(s.recv().type, W_LINKED);
}

TEST_F(Window, ExhaustedAtTheClientEndsBoth)
{
	up(2, room(0, 0));
	Client c(*fabric, 0), s(*fabric, 1);
	w_addr at = address(1, "s");

	s.listen(1, at);
	s.sync();
	c.connection(W_CONNECT, 2, address(0, "c"), at);
	Msg m = s.recv();
	ASSERT_EQ(m.type, W_ARRIVED);
	s.accept(m.as<w_arrived>().conn, 3);
	m = c.recv();
	ASSERT_EQ(m.type, W_REFUSED);
	EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(W_NO_RESOURCE));
	m = s.recv();
	ASSERT_EQ(m.type, W_REFUSED);
	EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(W_NO_RESOURCE));
}

TEST_F(Window, SharedByBothEndsWithinAHost)
{
	up(1, [](ag_cfg &cfg) {
		room(0, 1)(cfg);
		cfg.window_bytes += 8192; // a process may have part of this
	});
	Client c(*fabric, 0), s(*fabric, 0);
	w_addr at = address(0, "s");

	s.listen(1, at);
	s.sync();
	c.connection(W_CONNECT, 2, address(0, "c"), at);
	Msg m = s.recv();
	ASSERT_EQ(m.type, W_ARRIVED);
	s.accept(m.as<w_arrived>().conn, 3);
	m = c.recv();
	ASSERT_EQ(m.type, W_REFUSED);
	EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(W_NO_RESOURCE));
	EXPECT_EQ(s.recv().type, W_REFUSED);
}

// ---- small windows ----

class SmallWindow : public FabricTest {
protected:
	// The agents choose the geometry; the window of each host has the bytes of its place in `windows`.
	void up_windows(std::vector<uint64_t> windows)
	{
		unsigned hosts = static_cast<unsigned>(windows.size());

		up(hosts, [windows = std::move(windows)](ag_cfg &cfg) {
			cfg.slots = cfg.payload_bytes = 0;
			cfg.window_bytes = windows[cfg.host_id];
		});
	}

	static void all_have(const Pair &p, uint32_t slots, uint32_t payload)
	{
		for (const Msg *m : { &p.client_linked, &p.server_linked }) {
			const w_linked &linked = m->as<w_linked>();

			for (const w_geometry *g : { &linked.inbound, &linked.outbound }) {
				EXPECT_EQ(g->slots, slots);
				EXPECT_EQ(g->payload_bytes, payload);
				EXPECT_EQ(g->slice_len, w_slice_bytes(slots, payload));
			}
		}
	}

	// 16 connections between processes of the two hosts at once, and 16 KiB for each slice.
	void sixteen(unsigned from, unsigned to)
	{
		Client c(*fabric, from), s(*fabric, to);
		std::vector<Pair> pairs;
		uint64_t before = window_used(*fabric, from);

		for (unsigned i = 0; i < 16; i++) {
			pairs.push_back(join(c, s, std::to_string(i)));
			all_have(pairs.back(), 32, 8192);
		}
		EXPECT_EQ(window_used(*fabric, from) - before, (from == to ? 32u : 16u) * 16384);
	}
};

TEST_F(SmallWindow, SixteenConnectionsWithinAHost)
{
	up_windows({ 1 << 20 });
	sixteen(0, 0);
}

TEST_F(SmallWindow, SixteenConnectionsBetweenNeighbours)
{
	up_windows({ 1 << 20, 1 << 20 });
	sixteen(0, 1);
}

TEST_F(SmallWindow, EndsAtFourMebibytes)
{
	up_windows({ 4 << 20 });
	Client c(*fabric, 0), s(*fabric, 0);

	all_have(join(c, s), 32, 8192);
	EXPECT_EQ(c.welcome.slots, 32u);
	EXPECT_EQ(c.welcome.payload_bytes, 8192u);
}

TEST_F(SmallWindow, AboveNothingIsSmall)
{
	up_windows({ (4 << 20) + 4096 });
	Client c(*fabric, 0), s(*fabric, 0);

	all_have(join(c, s), 128, 256 << 10);
	EXPECT_EQ(c.welcome.slots, 128u);
	EXPECT_EQ(c.welcome.payload_bytes, 256u << 10);
}

// A sixteenth of the window has room for one payload buffer for streams; another connection gets none.
TEST_F(SmallWindow, HasRoomForFewStreams)
{
	up_windows({ 128 << 20, 128 << 20 });
	Client c(*fabric, 0), s(*fabric, 1);
	Pair first = join(c, s, "first");

	all_have(first, 128, 4 << 20);
	all_have(join(c, s, "second"), 128, 256 << 10);
	EXPECT_EQ(c.welcome.payload_bytes, 256u << 10) << "the least that there is";
}

// Where a sixteenth of the window has no room for one, connections have as much room as before.
TEST_F(SmallWindow, HasNoRoomForStreams)
{
	up_windows({ 64 << 20, 64 << 20 });
	Client c(*fabric, 0), s(*fabric, 1);

	all_have(join(c, s), 128, 256 << 10);
}

// Both slices of a connection within a host lie in one window.
TEST_F(SmallWindow, AHostHasRoomForStreamsWithinIt)
{
	up_windows({ UINT64_C(16) << 30 });
	Client c(*fabric, 0), s(*fabric, 0);

	for (unsigned i = 0; i < 31; i++)
		all_have(join(c, s, std::to_string(i)), 128, 4 << 20);
	all_have(join(c, s, "next"), 128, 256 << 10);
}

// However large the window, streams touch 256 MiB of it at most.
TEST_F(SmallWindow, TheFirstConnectionsOfALargeOneAreForStreams)
{
	up_windows({ UINT64_C(16) << 30, UINT64_C(16) << 30 });
	Client c(*fabric, 0), s(*fabric, 1);

	for (unsigned i = 0; i < 63; i++)
		all_have(join(c, s, std::to_string(i)), 128, 4 << 20);
	EXPECT_LE(window_used(*fabric, 0), 256u << 20);
	for (unsigned i = 63; i < 70; i++)
		all_have(join(c, s, std::to_string(i)), 128, 256 << 10);
}

// The room that a request reserves for a stream is free again after its refusal.
TEST_F(SmallWindow, ARefusedRequestLeavesTheRoomForStreams)
{
	up_windows({ 128 << 20, 128 << 20 });
	Client c(*fabric, 0), s(*fabric, 1);

	for (unsigned i = 0; i < 3; i++) {
		w_addr at = address(1, std::to_string(i));

		s.listen(1, at);
		s.sync();
		c.connection(W_CONNECT, 2, address(0, "c"), at);
		Msg arrived = s.recv();
		ASSERT_EQ(arrived.type, W_ARRIVED);
		s.conn(W_REJECT, arrived.as<w_arrived>().conn);
		ASSERT_EQ(c.recv().type, W_REFUSED);
	}
	all_have(join(c, s), 128, 4 << 20);
}

// Memory, which is in the window of its own host, counts in the quarter that leaves room for others, and not
// among what streams touch.
class MemoryAndStreams : public SmallWindow {
protected:
	void expect_payload(uint64_t window, uint64_t memory, uint32_t payload)
	{
		up_windows({ window });
		Client c(*fabric, 0), s(*fabric, 0);
		w_alloc m = {};

		m.length = memory;
		c.send(m, W_ALLOC);
		Msg got = c.recv();
		ASSERT_EQ(got.type, W_ALLOCATED);
		ASSERT_EQ(got.as<w_alloc>().status, static_cast<uint32_t>(W_SUCCESS));
		all_have(join(c, s), 128, payload);
	}
};

TEST_F(MemoryAndStreams, BothInTheQuarter)
{
	expect_payload(256 << 20, 55 << 20, 4 << 20);
}

TEST_F(MemoryAndStreams, NotBothInTheQuarter)
{
	expect_payload(256 << 20, 57 << 20, 256 << 10);
}

TEST_F(MemoryAndStreams, MemoryIsNoStream)
{
	expect_payload(UINT64_C(4) << 30, 512 << 20, 4 << 20);
}

// Both directions of a connection have the geometry of the smaller window.
TEST_F(SmallWindow, OfOneEndDecidesForBoth)
{
	up_windows({ 16 << 20, 1 << 20 });
	Client large(*fabric, 0), small(*fabric, 1);

	all_have(join(large, small, "to"), 32, 8192);
	all_have(join(small, large, "back"), 32, 8192);
}

TEST_F(SmallWindow, LeavesAGeometryThatWasSet)
{
	up(2, [](ag_cfg &cfg) {
		cfg.slots = 64;
		cfg.payload_bytes = 16384;
		cfg.window_bytes = 1 << 20;
	});
	Client c(*fabric, 0), s(*fabric, 1);

	all_have(join(c, s), 64, 16384);
}

// ---- links going down ----

class LinkDown : public FabricTest {
protected:
	void SetUp() override { up(2); }

	void cut()
	{
		w_admin m = {};
		Client tool(*fabric, 0, W_KIND_TOOL);

		m.verb = W_ADMIN_LINK_DOWN;
		snprintf(m.name, sizeof(m.name), "right");
		tool.send(m, W_ADMIN);
		Msg done = tool.recv();
		ASSERT_EQ(done.type, W_DONE);
		ASSERT_EQ(done.as<w_refused>().status, static_cast<uint32_t>(W_SUCCESS));
	}

	void mend()
	{
		w_admin m = {};
		Client tool(*fabric, 0, W_KIND_TOOL);

		m.verb = W_ADMIN_LINK_UP;
		snprintf(m.name, sizeof(m.name), "right");
		tool.send(m, W_ADMIN);
		EXPECT_EQ(tool.recv().type, W_DONE);
		wait_links(*fabric);
	}

	static void refused(const Msg &m, uint64_t token)
	{
		ASSERT_EQ(m.type, W_REFUSED);
		EXPECT_EQ(m.as<w_refused>().token, token);
		EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(W_NOT_REACHABLE));
	}

	void TearDown() override
	{
		mend();
		FabricTest::TearDown();
	}
};

TEST_F(LinkDown, BeforeTheRequest)
{
	Client c(*fabric, 0);

	cut();
	c.connection(W_CONNECT, 2, address(0, "c"), address(1, "s"));
	Msg m = c.recv();
	refused(m, 2);
	EXPECT_STREQ(m.as<w_refused>().text, "host 1 cannot be reached while link 0-1 is down");
}

TEST_F(LinkDown, WhileTheServerThinks)
{
	Client c(*fabric, 0), s(*fabric, 1);
	w_addr at = address(1, "s");

	s.listen(1, at);
	s.sync();
	c.connection(W_CONNECT, 2, address(0, "c"), at);
	Msg m = s.recv();
	ASSERT_EQ(m.type, W_ARRIVED);
	cut();
	refused(c.recv(), 2);
	EXPECT_TRUE(eventually([&] {
		Client probe(*fabric, 1, W_KIND_TOOL);
		return probe.route(0).reachable == 0;
	}));
	s.accept(m.as<w_arrived>().conn, 3);
	m = s.recv();
	ASSERT_EQ(m.type, W_REFUSED);
	EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(W_TIMED_OUT));
}

TEST_F(LinkDown, WhileTheClientMaps)
{
	Client c(*fabric, 0), s(*fabric, 1);
	w_addr at = address(1, "s");

	s.listen(1, at);
	s.sync();
	c.connection(W_CONNECT, 2, address(0, "c"), at);
	Msg m = s.recv();
	ASSERT_EQ(m.type, W_ARRIVED);
	s.accept(m.as<w_arrived>().conn, 3);
	ASSERT_EQ(c.recv().type, W_LINKED);
	ASSERT_EQ(s.recv().type, W_LINKED);
	cut();
	for (Client *end : { &c, &s }) {
		m = end->recv();
		ASSERT_EQ(m.type, W_LOST);
		EXPECT_EQ(m.as<w_lost_msg>().reason, static_cast<uint32_t>(W_LOST_LINK));
	}
}

TEST_F(LinkDown, WhenConnectedAndUpAgain)
{
	Client c(*fabric, 0), s(*fabric, 1);
	Pair p = join(c, s);

	cut();
	Msg m = c.recv();
	ASSERT_EQ(m.type, W_LOST);
	EXPECT_EQ(m.as<w_lost_msg>().conn, p.client_conn);
	EXPECT_EQ(m.as<w_lost_msg>().reason, static_cast<uint32_t>(W_LOST_LINK));
	m = s.recv();
	ASSERT_EQ(m.type, W_LOST);
	EXPECT_EQ(m.as<w_lost_msg>().reason, static_cast<uint32_t>(W_LOST_LINK));
	c.conn(W_CLOSE, p.client_conn);
	s.conn(W_CLOSE, p.server_conn);
	mend();
	join(c, s, "again");
	EXPECT_EQ(c.ports.size(), 2u) << "the port is told again after its link came up again";
}

} // namespace
