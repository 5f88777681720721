// SPDX-License-Identifier: BSD-2-Clause
// Connections over relays: set-up, refusals, ends and losses in every state, on several topologies.
#include <algorithm>
#include <random>

#include "agent_fixture.h"

using namespace agent_test;

namespace {

struct Path {
	const char *name, *topology;
	unsigned hosts, from, to, hops;
};

std::ostream &operator<<(std::ostream &os, const Path &w)
{
	return os << w.topology;
}

const Path kChain3 = { "chain3", "chain", 3, 0, 2, 2 }, kBack = { "back", "chain", 3, 2, 0, 2 },
	   kChain5 = { "chain5", "chain", 5, 0, 4, 4 }, kRing4 = { "ring4", "ring", 4, 1, 3, 2 },
	   kMesh = { "mesh", "mesh:3x2", 6, 0, 5, 3 },
	   kGraph = { "graph", "graph:0-2,2-1,1-3", 4, 3, 0, 3 };

class RelayTest : public FabricTest {
protected:
	void up_paths(const Path &w, const Fabric::Tweak &tweak = nullptr)
	{
		path = w;
		up(w.hosts, [topology = w.topology, tweak](ag_cfg &cfg) {
			cfg.topology = topology;
			if (tweak)
				tweak(cfg);
		});
		wait_ways(*fabric);
		c = std::make_unique<Client>(*fabric, w.from);
		s = std::make_unique<Client>(*fabric, w.to);
	}

	// Expects that no host keeps anything.
	void TearDown() override
	{
		c.reset();
		s.reset();
		for (unsigned i = 0; i < fabric->hosts(); i++)
			EXPECT_TRUE(eventually([&] { return held(*fabric, i) == 0; }))
				<< "host " << i << " holds " << held(*fabric, i);
		FabricTest::TearDown();
	}

	w_addr here() const { return address(path.from, "c"); }
	w_addr there() const { return address(path.to, "s"); }

	// Connects up to W_ARRIVED; returns its conn.
	uint64_t arrive(uint64_t token = 2, const w_vi_attrs &attrs = attributes())
	{
		s->listen(1, there());
		s->sync();
		c->connection(W_CONNECT, token, here(), there(), attrs);
		Msg m = s->recv();
		EXPECT_EQ(m.type, W_ARRIVED);
		return m.type == W_ARRIVED ? m.as<w_arrived>().conn : 0;
	}

	// Connects up to LINKED at the client, which has not confirmed.
	Pair link_up()
	{
		Pair p;

		p.server_conn = arrive();
		s->accept(p.server_conn, 3);
		p.client_linked = c->recv();
		EXPECT_EQ(p.client_linked.type, W_LINKED);
		p.client_conn = p.client_linked.as<w_linked>().conn;
		return p;
	}

	void part(const Pair &p)
	{
		c->conn(W_CLOSE, p.client_conn);
		lost(s->recv(), p.server_conn, W_LOST_CLOSED);
		s->conn(W_CLOSE, p.server_conn);
	}

	static void refused(const Msg &m, uint64_t token, w_status status)
	{
		ASSERT_EQ(m.type, W_REFUSED);
		EXPECT_EQ(m.as<w_refused>().token, token);
		EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(status));
	}

	static void lost(const Msg &m, uint64_t conn, w_lost reason)
	{
		ASSERT_EQ(m.type, W_LOST);
		EXPECT_EQ(m.as<w_lost_msg>().conn, conn);
		EXPECT_EQ(m.as<w_lost_msg>().reason, static_cast<uint32_t>(reason));
	}

	void admin(unsigned host, w_admin_verb verb, const char *port)
	{
		Client tool(*fabric, host, W_KIND_TOOL);
		w_admin m = {};

		m.verb = verb;
		snprintf(m.name, sizeof(m.name), "%s", port);
		tool.send(m, W_ADMIN);
		ASSERT_EQ(tool.recv().type, W_DONE);
	}

	Path path = {};
	std::unique_ptr<Client> c, s;
};

class Relayed : public RelayTest, public ::testing::WithParamInterface<Path> {
protected:
	void SetUp() override { up_paths(GetParam()); }
};

// ---- data ---------------------------------------------------------------------------------------

class Slice {
public:
	explicit Slice(int fd, const w_geometry &g) : len_(g.slice_len)
	{
		base_ = mmap(nullptr, len_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		EXPECT_NE(base_, MAP_FAILED);
	}
	Slice(const Slice &) = delete;
	~Slice() { munmap(base_, len_); }

	w_slot *slot(uint32_t n)
	{
		return reinterpret_cast<w_slot *>(static_cast<uint8_t *>(base_) + W_SLICE_FIFO) + n;
	}
	w_control *control() { return static_cast<w_control *>(base_); }

private:
	void *base_;
	size_t len_;
};

void message_passes(Msg &from, Msg &to, const char *text)
{
	ASSERT_EQ(from.fds.size(), 2u);
	ASSERT_EQ(to.fds.size(), 2u);
	Slice out(from.fds[1], from.as<w_linked>().outbound),
		in(to.fds[0], to.as<w_linked>().inbound);
	Slice back(to.fds[1], to.as<w_linked>().outbound),
		credit(from.fds[0], from.as<w_linked>().inbound);
	w_slot *slot = out.slot(0);

	snprintf(reinterpret_cast<char *>(slot->data), W_HEAD_INLINE, "%s", text);
	slot->head.op = W_OP_SEND;
	slot->head.flags = W_F_FIRST | W_F_LAST;
	slot->head.frag = W_HEAD_INLINE;
	atomic_store(&slot->head.seq, w_seq(0));
	ASSERT_TRUE(eventually([&] { return atomic_load(&in.slot(0)->head.seq) == w_seq(0); }));
	EXPECT_STREQ(reinterpret_cast<char *>(in.slot(0)->data), text);
	atomic_store(&back.control()->credit, 1u);
	ASSERT_TRUE(eventually([&] { return atomic_load(&credit.control()->credit) == 1; }));
}

TEST_P(Relayed, MessagesPassBothWays)
{
	Pair p = join(*c, *s);

	EXPECT_EQ(p.client_linked.as<w_linked>().hops, path.hops);
	EXPECT_EQ(p.server_linked.as<w_linked>().hops, path.hops);
	message_passes(p.client_linked, p.server_linked, "there");
	message_passes(p.server_linked, p.client_linked, "and back");
}

TEST_P(Relayed, AProcessThatBreaksTheRulesIsCutOff)
{
	Pair bad = join(*c, *s, "bad"), good = join(*s, *c, "good");
	Slice out(bad.server_linked.fds.at(1), bad.server_linked.as<w_linked>().outbound);

	out.slot(0)->head.op = 99;
	atomic_store(&out.slot(0)->head.seq, w_seq(0));
	lost(c->recv(), bad.client_conn, W_LOST_PROCESS);
	lost(s->recv(), bad.server_conn, W_LOST_PROCESS);
	s->conn(W_CLOSE, bad.server_conn);
	message_passes(good.client_linked, good.server_linked, "others go on");
	c->conn(W_CLOSE, bad.client_conn);
}

TEST_P(Relayed, ManyAtOnceAndAgain)
{
	constexpr int kConns = 40;

	for (int round = 0; round < 2; round++) {
		std::vector<Pair> pairs;

		for (int i = 0; i < kConns; i++)
			pairs.push_back(i % 2 ? join(*c, *s) : join(*s, *c));
		for (int i = 0; i < kConns; i++) {
			bool by_c = i % 4 < 2, c_asked = i % 2;
			Pair &p = pairs[static_cast<size_t>(i)];
			uint64_t of_c = c_asked ? p.client_conn : p.server_conn;
			uint64_t of_s = c_asked ? p.server_conn : p.client_conn;

			(by_c ? c : s)->conn(W_CLOSE, by_c ? of_c : of_s);
			lost((by_c ? s : c)->recv(), by_c ? of_s : of_c, W_LOST_CLOSED);
			(by_c ? s : c)->conn(W_CLOSE, by_c ? of_s : of_c);
		}
	}
}

// ---- refusals -----------------------------------------------------------------------------------

TEST_P(Relayed, NobodyWaits)
{
	c->connection(W_CONNECT, 7, here(), address(path.to, "nobody"));
	refused(c->recv(), 7, W_NO_MATCH);
}

TEST_P(Relayed, Rejected)
{
	s->conn(W_REJECT, arrive());
	refused(c->recv(), 2, W_REJECTED);
}

TEST_P(Relayed, AttributesDifferAndTheRequestLives)
{
	uint64_t conn = arrive(2, attributes(2, 100));

	s->accept(conn, 3, attributes(1, 100));
	refused(s->recv(), 3, W_BAD_RELIABILITY);
	s->accept(conn, 4, attributes(2, 100));
	EXPECT_EQ(c->recv().type, W_LINKED);
}

// ---- ends in every state --------------------------------------------------------------------------

TEST_P(Relayed, TheClientCancelsARequest)
{
	uint64_t conn = arrive();

	c->token(W_CANCEL, 2);
	refused(c->recv(), 2, W_TIMED_OUT);
	// The server learns of it whether the withdrawal or the acceptance is first.
	s->accept(conn, 3);
	refused(s->recv(), 3, W_TIMED_OUT);
}

TEST_P(Relayed, TheClientDiesBeforeItIsAccepted)
{
	uint64_t conn = arrive();

	c.reset();
	s->accept(conn, 3);
	Msg m = s->recv();
	// The agent may have linked it before it notices the end.
	if (m.type == W_LINKED)
		lost(s->recv(), conn, W_LOST_PROCESS);
	else
		refused(m, 3, W_TIMED_OUT);
}

TEST_P(Relayed, TheServerDiesBeforeItAccepts)
{
	arrive();
	s.reset();
	refused(c->recv(), 2, W_NO_MATCH);
}

TEST_P(Relayed, TheClientClosesBeforeItConfirms)
{
	Pair p = link_up();

	EXPECT_EQ(s->recv().type, W_LINKED);
	c->conn(W_CLOSE, p.client_conn);
	lost(s->recv(), p.server_conn, W_LOST_CLOSED);
}

TEST_P(Relayed, TheClientDiesBeforeItConfirms)
{
	Pair p = link_up();

	EXPECT_EQ(s->recv().type, W_LINKED);
	c.reset();
	lost(s->recv(), p.server_conn, W_LOST_PROCESS);
}

TEST_P(Relayed, TheServerLeavesBeforeTheClientConfirms)
{
	Pair p = link_up();

	EXPECT_EQ(s->recv().type, W_LINKED);
	s->conn(W_CLOSE, p.server_conn);
	lost(c->recv(), p.client_conn, W_LOST_CLOSED);
	c->conn(W_CONFIRM, p.client_conn);
	c->conn(W_CLOSE, p.client_conn);
}

TEST_P(Relayed, TheServerDiesBeforeTheConfirmation)
{
	Pair p = link_up();

	s.reset();
	lost(c->recv(), p.client_conn, W_LOST_PROCESS);
}

TEST_P(Relayed, EitherProcessDiesWhenConnected)
{
	Pair p = join(*c, *s);

	s.reset();
	lost(c->recv(), p.client_conn, W_LOST_PROCESS);
	s = std::make_unique<Client>(*fabric, path.to);
	c->conn(W_CLOSE, p.client_conn);
	p = join(*c, *s);
	c.reset();
	lost(s->recv(), p.server_conn, W_LOST_PROCESS);
}

TEST_P(Relayed, BothCloseAtOnce)
{
	for (int i = 0; i < 30; i++) {
		Pair p = join(*c, *s);

		c->conn(W_CLOSE, p.client_conn);
		s->conn(W_CLOSE, p.server_conn);
		EXPECT_TRUE(eventually([&] {
			return held(*fabric, path.from) == 0 && held(*fabric, path.to) == 0;
		}));
		// An end that closed gets no message; if its peer was faster, it learns that the connection was lost.
		for (auto *end : { c.get(), s.get() }) {
			end->token(W_UNLISTEN, 99);
			Msg m = end->recv();
			if (m.type == W_LOST)
				m = end->recv();
			ASSERT_EQ(m.type, W_UNLISTENED);
		}
	}
}

// ---- peer to peer --------------------------------------------------------------------------------

TEST_P(Relayed, PeersMeetInAnyOrder)
{
	for (uint64_t i = 0; i < 30; i++) {
		Client *first = i % 2 ? c.get() : s.get(), *second = i % 2 ? s.get() : c.get();
		w_addr a = address(first->welcome.host_id, "p"),
		       b = address(second->welcome.host_id, "q");
		bool first_decides = memcmp(a.host, b.host, sizeof(a.host)) < 0;

		first->connection(W_PEER, 2 * i, a, b);
		if (i % 3 == 0)
			first->sync();
		second->connection(W_PEER, 2 * i + 1, b, a);
		Client *confirms = first_decides ? second : first,
		       *decides = first_decides ? first : second;
		Msg m = confirms->recv();
		ASSERT_EQ(m.type, W_LINKED);
		EXPECT_EQ(m.as<w_linked>().hops, path.hops);
		confirms->conn(W_CONFIRM, m.as<w_linked>().conn);
		Msg k = decides->recv();
		ASSERT_EQ(k.type, W_LINKED);
		EXPECT_EQ(m.as<w_linked>().inbound.payload_bytes,
			  w_payload_of_path(4096, path.hops));
		EXPECT_EQ(k.as<w_linked>().inbound.payload_bytes,
			  w_payload_of_path(4096, path.hops));
		if (i == 0)
			message_passes(m, k, "peer");
		confirms->conn(W_CLOSE, m.as<w_linked>().conn);
		lost(decides->recv(), k.as<w_linked>().conn, W_LOST_CLOSED);
		decides->conn(W_CLOSE, k.as<w_linked>().conn);
	}
}

TEST_P(Relayed, PeersThatDifferAreBothRefused)
{
	c->connection(W_PEER, 1, here(), there(), attributes(2, 100));
	s->connection(W_PEER, 2, there(), here(), attributes(2, 200));
	refused(c->recv(), 1, W_BAD_MTU);
	refused(s->recv(), 2, W_BAD_MTU);
}

TEST_P(Relayed, PeersWithdrawAndWaitAgain)
{
	Client *low = path.from < path.to ? c.get() : s.get(),
	       *high = low == c.get() ? s.get() : c.get();
	w_addr a = address(low->welcome.host_id, "p"), b = address(high->welcome.host_id, "q");

	high->connection(W_PEER, 1, b, a);
	high->token(W_CANCEL, 1);
	refused(high->recv(), 1, W_TIMED_OUT);
	low->connection(W_PEER, 2, a, b);
	high->connection(W_PEER, 3, b, a);
	Msg m = high->recv();
	ASSERT_EQ(m.type, W_LINKED);
	high->conn(W_CLOSE, m.as<w_linked>().conn);
	refused(low->recv(), 2, W_NO_RESOURCE);
	// The attempt is linked, then withdrawn: the end that decides waits for another.
	low->connection(W_PEER, 4, a, b);
	high->connection(W_PEER, 5, b, a);
	m = high->recv();
	ASSERT_EQ(m.type, W_LINKED);
	high->token(W_CANCEL, 5);
	high->conn(W_CLOSE, m.as<w_linked>().conn);
	high->connection(W_PEER, 6, b, a);
	m = high->recv();
	ASSERT_EQ(m.type, W_LINKED);
	EXPECT_EQ(m.as<w_linked>().token, 6u);
	high->conn(W_CONFIRM, m.as<w_linked>().conn);
	m = low->recv();
	ASSERT_EQ(m.type, W_LINKED);
	EXPECT_EQ(m.as<w_linked>().token, 4u);
}

// ---- messages of processes to each other -----------------------------------------------------------

TEST_P(Relayed, TellsPassInOrderWithoutTheirMemory)
{
	Pair p = join(*c, *s);
	w_alloc want = {};

	want.token = 9;
	want.length = 4096;
	c->send(want, W_ALLOC);
	Msg got = c->recv();
	ASSERT_EQ(got.type, W_ALLOCATED);
	for (uint8_t i = 0; i < 100; i++) {
		w_tell t = {};

		t.conn = p.client_conn;
		t.slice_id = i % 2 ? got.as<w_alloc>().slice_id : 0;
		t.body_len = 1;
		t.body[0] = i;
		c->send(t, W_TELL);
	}
	for (uint8_t i = 0; i < 100; i++) {
		Msg m = s->recv();
		ASSERT_EQ(m.type, W_TOLD);
		EXPECT_EQ(m.as<w_tell>().conn, p.server_conn);
		ASSERT_EQ(m.as<w_tell>().body[0], i);
		EXPECT_EQ(m.as<w_tell>().slice_id, 0u);
		EXPECT_TRUE(m.fds.empty());
	}
}

// ---- anything at any time --------------------------------------------------------------------------

// Clients at both ends act at random; each attempt is answered once, and no slot is held for
// retransmission.
TEST_P(Relayed, Storm)
{
	const char *text = getenv("VIADUCT_SEED");
	uint32_t seed = text != nullptr ? static_cast<uint32_t>(strtoul(text, nullptr, 0)) : 4711;
	SCOPED_TRACE("VIADUCT_SEED=" + std::to_string(seed));
	std::mt19937 rng(seed);
	struct Actor {
		std::unique_ptr<Client> client;
		unsigned host;
		std::vector<uint64_t> arrived, linked, tokens;
	} actor[4];

	for (unsigned i = 0; i < 4; i++)
		actor[i].host = i % 2 ? path.to : path.from;
	for (uint64_t step = 1; step < 600; step++) {
		Actor &a = actor[rng() % 4];
		unsigned far = a.host == path.from ? path.to : path.from;
		auto any = [&](const std::vector<uint64_t> &v) {
			return v.empty() ? 0 : v[rng() % v.size()];
		};

		if (a.client == nullptr) {
			a = Actor{ std::make_unique<Client>(*fabric, a.host), a.host, {}, {}, {} };
			continue;
		}
		switch (rng() % 12) {
		case 0:
			if (rng() % 4 == 0)
				a.client.reset();
			break;
		case 1:
		case 2:
			a.client->listen(step, address(a.host, "x"));
			break;
		case 3:
		case 4:
			a.tokens.push_back(step);
			a.client->connection(W_CONNECT, step, address(a.host, "y"),
					     address(far, "x"));
			break;
		case 5:
			a.tokens.push_back(step);
			a.client->connection(W_PEER, step, address(a.host, "z"), address(far, "z"));
			break;
		case 6:
			a.client->token(W_CANCEL, any(a.tokens));
			break;
		case 7:
			a.tokens.push_back(step);
			a.client->accept(any(a.arrived), step);
			break;
		case 8:
			a.client->conn(W_CONFIRM, any(a.linked));
			break;
		case 9:
			a.client->conn(rng() % 2 ? W_CLOSE : W_REJECT,
				       any(rng() % 2 ? a.linked : a.arrived));
			break;
		default:
			for (Msg m = a.client->recv(1); m.type > 0; m = a.client->recv(0)) {
				if (m.type == W_ARRIVED) {
					a.arrived.push_back(m.as<w_arrived>().conn);
					if (rng() % 2) {
						a.tokens.push_back(10000 + step);
						a.client->accept(a.arrived.back(), 10000 + step);
					}
				} else if (m.type == W_LINKED) {
					a.linked.push_back(m.as<w_linked>().conn);
					if (rng() % 2)
						a.client->conn(W_CONFIRM, a.linked.back());
				}
			}
		}
	}
}

INSTANTIATE_TEST_SUITE_P(Paths, Relayed,
			 ::testing::Values(kChain3, kBack, kChain5, kRing4, kMesh, kGraph),
			 [](const auto &info) { return std::string(info.param.name); });

// ---- links lost ----------------------------------------------------------------------------------

// Parameter: the end of a chain of four hosts whose link to the next is lost.
class Severed : public RelayTest, public ::testing::WithParamInterface<unsigned> {
protected:
	void SetUp() override { up_paths({ "chain4", "chain", 4, 0, 3, 3 }); }

	void cut() { admin(GetParam(), W_ADMIN_LINK_DOWN, "right"); }

	void mend()
	{
		admin(GetParam(), W_ADMIN_LINK_UP, "right");
		wait_ways(*fabric);
	}

	void TearDown() override
	{
		mend();
		RelayTest::TearDown();
	}
};

TEST_P(Severed, ARequestThatArrived)
{
	uint64_t conn = arrive();

	cut();
	refused(c->recv(), 2, W_NOT_REACHABLE);
	Msg m;
	EXPECT_TRUE(eventually([&] {
		s->accept(conn, 3);
		m = s->recv();
		return m.type == W_REFUSED && m.as<w_refused>().status != W_BAD_STATE;
	}));
	EXPECT_TRUE(m.as<w_refused>().status == W_TIMED_OUT ||
		    m.as<w_refused>().status == W_NOT_REACHABLE)
		<< m.as<w_refused>().status;
}

TEST_P(Severed, AnAcceptedRequest)
{
	Pair p = link_up();

	EXPECT_EQ(s->recv().type, W_LINKED);
	cut();
	lost(c->recv(), p.client_conn, W_LOST_LINK);
	lost(s->recv(), p.server_conn, W_LOST_LINK);
	c->conn(W_CONFIRM, p.client_conn);
}

TEST_P(Severed, AConnection)
{
	Pair p = join(*c, *s);

	cut();
	lost(c->recv(), p.client_conn, W_LOST_LINK);
	lost(s->recv(), p.server_conn, W_LOST_LINK);
	c->connection(W_CONNECT, 8, here(), there());
	refused(c->recv(), 8, W_NOT_REACHABLE);
	mend();
	s->conn(W_CLOSE, p.server_conn);
	c->conn(W_CLOSE, p.client_conn);
	p = join(*c, *s, "again");
	message_passes(p.client_linked, p.server_linked, "again");
}

TEST_P(Severed, APeersRequest)
{
	s->connection(W_PEER, 1, there(), here());
	EXPECT_TRUE(eventually([&] { return held(*fabric, 2) != 0 && held(*fabric, 1) != 0; }));
	c->sync();
	cut();
	refused(s->recv(), 1, W_NOT_REACHABLE);
	mend();
	c->connection(W_PEER, 2, here(), there());
	s->connection(W_PEER, 3, there(), here());
	EXPECT_EQ(s->recv().type, W_LINKED);
}

// One end has closed, the other has not: neither waits for an answer that cannot come.
TEST_P(Severed, AHalfClosedConnection)
{
	for (int by_client = 0; by_client < 2; by_client++) {
		Pair p = join(*c, *s);
		Client &closes = by_client ? *c : *s, &other = by_client ? *s : *c;

		closes.conn(W_CLOSE, by_client ? p.client_conn : p.server_conn);
		ASSERT_EQ(other.recv().type, W_LOST);
		cut();
		closes.sync();
		EXPECT_TRUE(eventually([&] { return held(*fabric, closes.welcome.host_id) == 0; }))
			<< "the end that closed is kept";
		other.conn(W_CLOSE, by_client ? p.server_conn : p.client_conn);
		mend();
	}
}

INSTANTIATE_TEST_SUITE_P(Links, Severed, ::testing::Values(0u, 1u, 2u));

class Flapping : public RelayTest {};

TEST_F(Flapping, EndsAreAlwaysTold)
{
	up_paths(kChain3);
	for (int i = 0; i < 12; i++) {
		Pair p = join(*c, *s, std::to_string(i));

		admin(static_cast<unsigned>(i % 2), W_ADMIN_LINK_DOWN, "right");
		lost(c->recv(), p.client_conn, W_LOST_LINK);
		lost(s->recv(), p.server_conn, W_LOST_LINK);
		c->conn(W_CLOSE, p.client_conn);
		s->conn(W_CLOSE, p.server_conn);
		admin(static_cast<unsigned>(i % 2), W_ADMIN_LINK_UP, "right");
		wait_ways(*fabric);
	}
}

TEST_F(Flapping, ARelayThatDiesAndComesBack)
{
	up_paths(kChain3);
	Pair p = join(*c, *s);

	fabric->stop(1);
	lost(c->recv(), p.client_conn, W_LOST_LINK);
	lost(s->recv(), p.server_conn, W_LOST_LINK);
	fabric->start(1);
	wait_ways(*fabric);
	p = join(*c, *s, "again");
	message_passes(p.client_linked, p.server_linked, "again");
}

// ---- no room -------------------------------------------------------------------------------------

class Room : public RelayTest {
protected:
	// The relay has room for that many slices on each link.
	void up_with_room(uint32_t slices)
	{
		up_paths(kChain3, [slices](ag_cfg &cfg) {
			if (cfg.host_id == 1)
				cfg.window_bytes = 4096 + 64 * 512 + slices * 12288;
		});
		ASSERT_EQ(slice_bytes(*fabric), 12288u);
	}
};

TEST_F(Room, NoneForTheAcceptance)
{
	up_with_room(2);
	Pair p = join(*c, *s, "1"), q = join(*c, *s, "2");

	for (uint64_t i = 0; i < 5; i++) {
		uint64_t conn = arrive(10 + i);
		s->accept(conn, 30 + i);
		refused(c->recv(), 10 + i, W_NO_RESOURCE);
		refused(s->recv(), 30 + i, W_NO_RESOURCE);
	}
	part(p);
	c->sync();
	s->sync();
	EXPECT_TRUE(eventually([&] { return held(*fabric, 0) == 1; }));
	q = join(*c, *s, "3");
	message_passes(q.client_linked, q.server_linked, "room again");
}

TEST_F(Room, NoneForTheConfirmation)
{
	up_with_room(1);
	Client here1(*fabric, 1);
	Pair fills = join(here1, *s, "fills the right side");

	for (int i = 0; i < 5; i++) {
		Pair p = link_up();
		c->conn(W_CONFIRM, p.client_conn);
		refused(s->recv(), 3, W_NO_RESOURCE);
		lost(c->recv(), p.client_conn, W_LOST_LINK);
		// The client may store until it closes: no other connection gets that memory before.
		EXPECT_EQ(held(*fabric, 1), 3u) << "two ends of a circuit beside what fills";
		c->conn(W_CLOSE, p.client_conn);
	}
	here1.conn(W_CLOSE, fills.client_conn);
	lost(s->recv(), fills.server_conn, W_LOST_CLOSED);
	s->conn(W_CLOSE, fills.server_conn);
	EXPECT_TRUE(eventually([&] { return held(*fabric, 1) == 0; }));
	Pair p = join(*c, *s, "now");
	message_passes(p.client_linked, p.server_linked, "room again");
}

// ---- how large the payload buffers are ---------------------------------------------------------

class PayloadBuffers : public RelayTest {
protected:
	void up_with_window(unsigned host, uint64_t bytes)
	{
		up_paths(kChain3, [host, bytes](ag_cfg &cfg) {
			if (cfg.host_id == host)
				cfg.window_bytes = 4096 + 64 * 512 + bytes;
		});
	}

	// The sum of all slices of the connection.
	static uint32_t payload_of(const Pair &p)
	{
		const auto *at_c = &p.client_linked.as<w_linked>(),
			   *at_s = &p.server_linked.as<w_linked>();

		EXPECT_EQ(at_c->inbound.payload_bytes, at_c->outbound.payload_bytes);
		EXPECT_EQ(at_c->inbound.payload_bytes, at_s->inbound.payload_bytes);
		EXPECT_EQ(at_c->inbound.payload_bytes, at_s->outbound.payload_bytes);
		return at_c->inbound.payload_bytes;
	}
};

TEST_F(PayloadBuffers, GrowWithThePath)
{
	const uint32_t expected[] = { 4096, 4096, 8192, 16384, 16384 };

	up_paths(kChain5);
	for (unsigned to = 0; to < 5; to++) {
		Client here(*fabric, 0), there(*fabric, to);
		Pair p = join(here, there, "to"), q = join(there, here, "back");

		EXPECT_EQ(payload_of(p), expected[to]) << "from host 0 to " << to;
		EXPECT_EQ(payload_of(q), expected[to]) << "from host " << to << " to 0";
		message_passes(p.client_linked, p.server_linked, "to");
		message_passes(q.client_linked, q.server_linked, "back");
	}
}

class Narrow : public PayloadBuffers, public ::testing::WithParamInterface<unsigned> {};

INSTANTIATE_TEST_SUITE_P(Host, Narrow, ::testing::Values(0u, 1u, 2u));

// An end or the relay has little room.
TEST_P(Narrow, WindowsKeepPayloadBuffersSmall)
{
	up_with_window(GetParam(), 2 * 12288);
	Pair p = join(*c, *s, "p"), q = join(*s, *c, "q");

	EXPECT_EQ(payload_of(p), 4096u);
	EXPECT_EQ(payload_of(q), 4096u);
	message_passes(p.client_linked, p.server_linked, "short");
}

// One agent has more slots than the others: the relay stands between ends of equal geometry.
TEST_P(Narrow, AllHaveTheFewestSlots)
{
	up_paths(kChain3, [](ag_cfg &cfg) {
		if (cfg.host_id == GetParam())
			cfg.slots = 32;
	});
	Pair p = join(*c, *s, "p"), q = join(*s, *c, "q");

	for (Pair *pair : { &p, &q }) {
		EXPECT_EQ(pair->client_linked.as<w_linked>().inbound.slots, 8u);
		EXPECT_EQ(pair->client_linked.as<w_linked>().outbound.slots, 8u);
		message_passes(pair->client_linked, pair->server_linked, "few slots");
	}
}

// Connections that were only requested count in the window, too: all find room in the end.
TEST_P(Narrow, RingsThatWereAskedForCount)
{
	const unsigned n = 28;
	std::vector<uint64_t> arrived;
	std::vector<Pair> pairs(n);

	up_with_window(GetParam(), 24 * 16384);
	for (unsigned i = 0; i < n; i++)
		arrived.push_back(arrive(10 + i));
	for (unsigned i = 0; i < n; i++) {
		s->accept(arrived[i], 100 + i);
		pairs[i].client_linked = c->recv();
		ASSERT_EQ(pairs[i].client_linked.type, W_LINKED) << "connection " << i;
		c->conn(W_CONFIRM, pairs[i].client_linked.as<w_linked>().conn);
		pairs[i].server_linked = s->recv();
		ASSERT_EQ(pairs[i].server_linked.type, W_LINKED) << "connection " << i;
		EXPECT_EQ(payload_of(pairs[i]), i < 4 ? 8192u : 4096u) << "connection " << i;
	}
}

// A refused connection takes up nothing.
TEST_P(Narrow, RingsThatAreNotMadeDoNotCount)
{
	up_with_window(GetParam(), 24 * 16384);
	for (unsigned i = 0; i < 50; i++) {
		uint64_t conn = arrive(10 + i);

		s->conn(W_REJECT, conn);
		refused(c->recv(), 10 + i, W_REJECTED);
	}
	EXPECT_EQ(payload_of(join(*c, *s, "long")), 8192u);
}

// Each takes a slice of 16 KiB at both of the relay's links, where agents have 36 KiB already.
TEST_F(PayloadBuffers, LongOnesHaveAQuarterOfAWindow)
{
	std::vector<Pair> pairs;

	up_with_window(1, 24 * 16384);
	for (uint32_t i = 0; i < 6; i++)
		pairs.push_back(join(*c, *s, std::to_string(i)));
	for (uint32_t i = 0; i < 6; i++)
		EXPECT_EQ(payload_of(pairs[i]), i < 4 ? 8192u : 4096u) << "connection " << i;
	for (uint32_t i : { 0, 4, 5 })
		part(pairs[i]);
	EXPECT_TRUE(eventually([&] { return held(*fabric, 1) == 2 * 3; }));
	EXPECT_EQ(payload_of(join(*c, *s, "again")), 8192u);
}

// ---- small windows --------------------------------------------------------------------------------

// The hosts between which a relayed connection is made have windows of `ends` bytes, the others of `relays` bytes.
class SmallRelay : public RelayTest {
protected:
	void up_windows(const Path &w, uint64_t ends, uint64_t relays)
	{
		up_paths(w, [=](ag_cfg &cfg) {
			bool end = cfg.host_id == w.from || cfg.host_id == w.to;

			cfg.slots = cfg.payload_bytes = 0;
			cfg.window_bytes = end ? ends : relays;
		});
	}

	static void all_small(const Pair &p)
	{
		for (const Msg *m : { &p.client_linked, &p.server_linked }) {
			const w_linked &linked = m->as<w_linked>();

			for (const w_geometry *g : { &linked.inbound, &linked.outbound }) {
				EXPECT_EQ(g->slots, 32u);
				EXPECT_EQ(g->payload_bytes, 8192u);
				EXPECT_EQ(g->slice_len, 16384u);
			}
		}
	}
};

TEST_F(SmallRelay, BetweenLargeWindowsHoldsItsCircuit)
{
	up_windows(kChain3, 64 << 20, 1 << 20);
	uint64_t before = window_used(*fabric, 1);
	Pair p = join(*c, *s, "p"), q = join(*s, *c, "q");

	for (Pair *pair : { &p, &q }) {
		all_small(*pair);
		message_passes(pair->client_linked, pair->server_linked, "through little");
	}
	EXPECT_EQ(window_used(*fabric, 1) - before, 4 * 16384u);
}

// No payload buffer becomes longer with the path.
TEST_F(SmallRelay, SixteenCircuitsOverAChain)
{
	std::vector<Pair> pairs;

	up_windows(kChain5, 1 << 20, 1 << 20);
	for (unsigned i = 0; i < 16; i++) {
		pairs.push_back(join(*c, *s, std::to_string(i)));
		all_small(pairs.back());
	}
	message_passes(pairs[15].client_linked, pairs[15].server_linked, "the last");
}

TEST_F(SmallRelay, LargeRelayBetweenSmallWindows)
{
	up_windows(kChain3, 1 << 20, 64 << 20);
	Pair p = join(*c, *s, "p");

	all_small(p);
	message_passes(p.client_linked, p.server_linked, "through much");
}

// ---- reports of which links are up ---------------------------------------------------------------

class Links : public RelayTest {
protected:
	bool routed(unsigned from, unsigned to, unsigned hops)
	{
		Client tool(*fabric, from, W_KIND_TOOL);

		return eventually([&] {
			w_route r = tool.route(to);
			return hops == 0 ? r.reachable == 0 : r.reachable == 1 && r.hops == hops;
		});
	}
};

TEST_F(Links, RoutesTurnAndReturn)
{
	up_paths({ "ring5", "ring", 5, 0, 2, 2 });
	for (int i = 0; i < 3; i++) {
		admin(1, W_ADMIN_LINK_DOWN, "right");
		EXPECT_TRUE(routed(0, 2, 3)) << "a link of others";
		EXPECT_TRUE(routed(1, 2, 4));
		EXPECT_TRUE(routed(2, 1, 4));
		EXPECT_TRUE(routed(3, 1, 3));
		wait_ways(*fabric);
		Pair p = join(*c, *s, std::to_string(i));
		EXPECT_EQ(p.client_linked.as<w_linked>().hops, 3u);
		message_passes(p.client_linked, p.server_linked, "round");
		part(p);
		admin(1, W_ADMIN_LINK_UP, "right");
		for (unsigned k = 0; k < 5; k++)
			EXPECT_TRUE(routed(k, (k + 2) % 5, 2)) << k;
		wait_ways(*fabric);
		Pair q = join(*c, *s, "back " + std::to_string(i));
		EXPECT_EQ(q.client_linked.as<w_linked>().hops, 2u);
		part(q);
	}
}

TEST_F(Links, ADividedNetworkKnowsIt)
{
	up_paths({ "ring4", "ring", 4, 0, 2, 2 });
	admin(0, W_ADMIN_LINK_DOWN, "right");
	admin(2, W_ADMIN_LINK_DOWN, "right");
	EXPECT_TRUE(routed(0, 1, 0));
	EXPECT_TRUE(routed(0, 2, 0));
	EXPECT_TRUE(routed(3, 2, 0));
	EXPECT_TRUE(routed(0, 3, 1));
	EXPECT_TRUE(routed(1, 2, 1));
	c->connection(W_CONNECT, 5, here(), there());
	refused(c->recv(), 5, W_NOT_REACHABLE);
	// Updates that were made on either side while they were apart are exchanged when they meet.
	admin(2, W_ADMIN_LINK_UP, "right");
	EXPECT_TRUE(routed(0, 1, 3));
	EXPECT_TRUE(routed(1, 0, 3));
	admin(0, W_ADMIN_LINK_UP, "right");
	EXPECT_TRUE(routed(0, 1, 1));
	wait_ways(*fabric);
}

TEST_F(Links, ARestartedAgentIsBelieved)
{
	up_paths({ "ring4", "ring", 4, 0, 2, 2 });
	for (int i = 0; i < 2; i++) {
		fabric->stop(1);
		EXPECT_TRUE(routed(3, 1, 0));
		EXPECT_TRUE(routed(0, 2, 2));
		fabric->start(1);
		EXPECT_TRUE(routed(3, 1, 2));
		EXPECT_TRUE(routed(1, 3, 2));
		wait_ways(*fabric);
	}
	Client at1(*fabric, 1), at3(*fabric, 3);
	Pair p = join(at1, at3, "old friends");
	message_passes(p.client_linked, p.server_linked, "hello");
}

} // namespace
