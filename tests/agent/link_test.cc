// SPDX-License-Identifier: BSD-2-Clause
// Links: set-up by scratchpads, neighbours that are wrong, hostile, silent or gone.
#include <random>

#include "agent_fixture.h"
#include "neighbour.h"

using namespace agent_test;

namespace {

bool reachable(const Fabric &f)
{
	Client tool(f, 0, W_KIND_TOOL);

	return tool.route(1).reachable == 1;
}

class Setup : public ::testing::Test {
protected:
	Setup() : fabric(2, nullptr, 1), peer(fabric) {}

	// Waits until everything that was announced is handled: a look-up is served after it.
	bool stays_down()
	{
		for (int i = 0; i < 20; i++) {
			if (reachable(fabric))
				return false;
			poll(nullptr, 0, 5);
		}
		return true;
	}

	Fabric fabric;
	Neighbour peer;
};

TEST_F(Setup, WorksWithAnIndependentNeighbour)
{
	peer.join();
	EXPECT_TRUE(eventually([&] { return reachable(fabric); }));
}

TEST_F(Setup, NothingAnnounced)
{
	EXPECT_TRUE(stays_down());
}

TEST_F(Setup, AnotherVersion)
{
	testing::internal::CaptureStderr();
	peer.announce(W_CTL_VERSION + 1);
	EXPECT_TRUE(stays_down());
	peer.announce(W_CTL_VERSION + 1);
	EXPECT_TRUE(stays_down());
	std::string log = testing::internal::GetCapturedStderr();
	const std::string mine = std::to_string(W_CTL_VERSION),
			  next = std::to_string(W_CTL_VERSION + 1);
	size_t at = log.find("speaks version " + mine + ", the agent of host 1 speaks " + next);
	EXPECT_NE(at, std::string::npos) << log;
	EXPECT_EQ(log.find("speaks version", at + 40), std::string::npos) << "said twice";
}

TEST_F(Setup, WrongHostAtTheCable)
{
	testing::internal::CaptureStderr();
	peer.announce(W_CTL_VERSION, 7);
	EXPECT_TRUE(stays_down());
	EXPECT_NE(testing::internal::GetCapturedStderr().find("stays down: host 1 of 2 expected"),
		  std::string::npos);
}

TEST_F(Setup, FabricOfAnotherSize)
{
	testing::internal::CaptureStderr();
	peer.announce(W_CTL_VERSION, 1, 5);
	EXPECT_TRUE(stays_down());
	EXPECT_NE(testing::internal::GetCapturedStderr().find("host 1 of 5"), std::string::npos);
}

TEST_F(Setup, MoreDoorbellBitsThanThisPortHas)
{
	testing::internal::CaptureStderr();
	peer.announce(W_CTL_VERSION, 1, 0, 0, Neighbour::kDbBits + 1);
	EXPECT_TRUE(stays_down());
	EXPECT_NE(testing::internal::GetCapturedStderr().find(
			  "host 1 uses 17 doorbell bits, this port has 16"),
		  std::string::npos);
}

TEST_F(Setup, FewerDoorbellBitsAreEnough)
{
	peer.join(2);
	EXPECT_TRUE(eventually([&] { return reachable(fabric); }));
}

TEST_F(Setup, TornWordsAreNotBelieved)
{
	peer.announce();
	port_peer_spad_write(peer.port, 4, 0xffffffff);
	port_peer_spad_write(peer.port, 0, 0xffffffff);
	port_peer_db_ring(peer.port, 1);
	EXPECT_TRUE(stays_down());
}

TEST_F(Setup, UnknownSliceIsNotMapped)
{
	port_peer_spad_write(peer.port, 3, 12345);
	peer.announce();
	port_peer_spad_write(peer.port, 3, 54321);
	EXPECT_TRUE(stays_down() || true);
	peer.join();
	EXPECT_TRUE(eventually([&] { return reachable(fabric); }));
}

// The agent's set-up begins again after a second; its neighbour goes on with its own, and has no other slice to offer.
TEST_F(Setup, ANeighbourThatAnswersAfterTheLimitIsJoined)
{
	uint32_t nonce = 0;

	peer.announce();
	ASSERT_TRUE(eventually([&] {
		port_service(peer.port);
		return port_spad_read(peer.port, 5) == Neighbour::kNonce;
	})) << "the slice was not opened";
	nonce = port_spad_read(peer.port, 2);
	ASSERT_TRUE(eventually([&] {
		port_service(peer.port);
		return port_spad_read(peer.port, 2) != nonce;
	})) << "the set-up did not begin again";
	peer.join();
	EXPECT_TRUE(eventually([&] { return reachable(fabric); }));
}

// A stopped agent reads nothing from its cable, so in the end no slice can be offered.
TEST_F(Setup, ANeighbourThatGoesOnIsJoinedThoughItsCableWasFull)
{
	Client tool(fabric, 0, W_KIND_TOOL);
	w_admin m = {};

	snprintf(m.name, sizeof(m.name), "right");
	for (int i = 0; i < 600; i++) {
		for (uint32_t verb : { W_ADMIN_LINK_DOWN, W_ADMIN_LINK_UP }) {
			m.verb = verb;
			tool.send(m, W_ADMIN);
			ASSERT_EQ(tool.recv().type, W_DONE);
		}
	}
	ASSERT_TRUE(eventually([&] {
		port_service(peer.port);
		peer.announce();
		return port_spad_read(peer.port, 5) == Neighbour::kNonce;
	})) << "it never asked to be joined";
	peer.join();
	EXPECT_TRUE(eventually([&] { return reachable(fabric); }));
}

// ---- a neighbour that breaks the rules of the control slice is cut off, and no other is ----

class Hostile : public ::testing::Test {
protected:
	Hostile() : fabric(2, nullptr, 1), peer(std::make_unique<Neighbour>(fabric))
	{
		peer->join();
		EXPECT_TRUE(eventually([&] { return reachable(fabric); }));
	}

	void agent_lives()
	{
		Client a(fabric, 0), b(fabric, 0);

		join(a, b);
	}

	w_cm cm(uint64_t src, uint64_t dst = 0)
	{
		w_cm m = {};

		m.src_conn = src;
		m.dst_conn = dst;
		m.local = address(1, "far");
		m.remote = address(0, "near");
		return m;
	}

	Fabric fabric;
	std::unique_ptr<Neighbour> peer;
};

TEST_F(Hostile, RecordOfImpossibleLength)
{
	w_cm m = cm(1);

	w_ctl_init(&m, W_CM_REQ, sizeof(m));
	peer->send(&m, sizeof(m), 0xffffffff);
	EXPECT_TRUE(peer->cut());
	agent_lives();
}

TEST_F(Hostile, MessageOfProcesses)
{
	w_conn m = {};

	w_ctl_init(&m, W_CLOSE, sizeof(m));
	m.conn = 1;
	peer->send(&m, sizeof(m), sizeof(m));
	EXPECT_TRUE(peer->cut());
	agent_lives();
}

TEST_F(Hostile, CreditNeverGiven)
{
	peer->credit(1000);
	EXPECT_TRUE(peer->cut());
	agent_lives();
}

TEST_F(Hostile, RequestsThatNobodyReadsTheAnswersOf)
{
	uint64_t i;

	for (i = 1; i < 200000 && port_link_state(peer->port, nullptr) == PORT_LINK_UP; i++) {
		w_cm m = cm(i);
		auto *consumed = static_cast<std::atomic<uint32_t> *>(peer->in.base);

		ASSERT_TRUE(eventually([&] {
			port_service(peer->port);
			return peer->next - consumed->load() < 64 ||
			       port_link_state(peer->port, nullptr) != PORT_LINK_UP;
		}));
		peer->send(m, W_CM_REQ);
	}
	EXPECT_LT(i, 200000u);
	agent_lives();
}

TEST_F(Hostile, UnknownConnsAreIgnored)
{
	static const w_ctl_type types[] = { W_CM_REFUSE, W_CM_CANCEL, W_CM_CLOSE,
					    W_CM_PEER_CANCEL };
	w_cm answer;

	for (w_ctl_type type : types) {
		for (uint64_t dst : { 0ull, 1ull, 0x100000001ull, ~0ull }) {
			w_cm m = cm(99, dst);
			m.status = 2; // W_REJECTED, W_LOST_PROCESS
			peer->send(m, type);
		}
	}
	for (w_ctl_type type : { W_CM_ACCEPT, W_CM_CONFIRM }) {
		w_cm m = cm(99, 0x100000001ull);
		m.geometry.slots = 8;
		m.geometry.payload_bytes = 4096;
		m.geometry.slice_len = w_slice_bytes(8, 4096);
		peer->send(m, type);
	}
	w_cm beat = cm(0);
	beat.status = 1;
	peer->send(beat, W_CM_HEARTBEAT);
	ASSERT_TRUE(peer->recv(&answer));
	EXPECT_EQ(answer.hdr.type, W_CM_HEARTBEAT);
	agent_lives();
}

TEST_F(Hostile, AcceptOfASliceThatNeverComes)
{
	Client c(fabric, 0);
	w_cm req, m;

	c.connection(W_CONNECT, 5, address(0, "c"), address(1, "s"));
	ASSERT_TRUE(peer->recv(&req));
	ASSERT_EQ(req.hdr.type, W_CM_REQ);
	m = cm(7, req.src_conn);
	m.geometry.slots = 8;
	m.geometry.payload_bytes = 4096;
	m.geometry.slice_id = 4242;
	m.geometry.slice_len = w_slice_bytes(8, 4096);
	peer->send(m, W_CM_ACCEPT);
	Msg refused = c.recv();
	ASSERT_EQ(refused.type, W_REFUSED);
	EXPECT_EQ(refused.as<w_refused>().status, static_cast<uint32_t>(W_NOT_REACHABLE));
	ASSERT_TRUE(peer->recv(&m));
	EXPECT_EQ(m.hdr.type, W_CM_CANCEL);
	EXPECT_EQ(m.status, static_cast<uint32_t>(W_NOT_REACHABLE));
}

// Requests beyond those that may wait are held, can be cancelled, and are sent in their order.
TEST_F(Hostile, RequestsToANeighbourThatDoesNotDrain)
{
	constexpr uint64_t kRequests = 1000;
	Client c(fabric, 0);
	w_cm m;

	for (uint64_t i = 1; i <= kRequests; i++)
		c.connection(i % 2 ? W_CONNECT : W_PEER, i, address(0, "z" + std::to_string(i)),
			     address(i % 2 ? 1 : 0, "s"));
	c.sync();
	c.token(W_CANCEL, kRequests - 1);
	Msg refused = c.recv();
	ASSERT_EQ(refused.type, W_REFUSED);
	EXPECT_EQ(refused.as<w_refused>().token, kRequests - 1);
	EXPECT_EQ(refused.as<w_refused>().status, static_cast<uint32_t>(W_TIMED_OUT));
	for (uint64_t i = 1; i < kRequests - 1; i += 2) {
		ASSERT_TRUE(peer->recv(&m)) << i;
		ASSERT_EQ(m.hdr.type, W_CM_REQ) << i;
		ASSERT_EQ(std::string(reinterpret_cast<char *>(m.local.disc), m.local.disc_len),
			  "z" + std::to_string(i));
	}
	w_cm beat = cm(0);
	beat.status = 1;
	peer->send(beat, W_CM_HEARTBEAT);
	ASSERT_TRUE(peer->recv(&m));
	EXPECT_EQ(m.hdr.type, W_CM_HEARTBEAT) << "one that was cancelled was sent";
}

TEST_F(Hostile, HeldRequestsEndWithTheirProcessAndWithTheLink)
{
	Client c(fabric, 0);
	{
		Client gone(fabric, 0);
		for (uint64_t i = 1; i <= 300; i++)
			gone.connection(W_CONNECT, i, address(0, "c"), address(1, "s"));
		gone.sync();
	}
	for (uint64_t i = 1; i <= 300; i++)
		c.connection(W_CONNECT, i, address(0, "c"), address(1, "s"));
	c.sync();
	peer.reset();
	for (uint64_t i = 1; i <= 300; i++) {
		Msg m = c.recv();
		ASSERT_EQ(m.type, W_REFUSED);
		EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(W_NOT_REACHABLE));
	}
	agent_lives();
}

TEST_F(Hostile, SilenceWithConnectionsIsDeath)
{
	Client c(fabric, 0);
	w_cm req;

	c.connection(W_CONNECT, 5, address(0, "c"), address(1, "s"));
	ASSERT_TRUE(peer->recv(&req));
	Msg refused = c.recv();
	ASSERT_EQ(refused.type, W_REFUSED);
	EXPECT_EQ(refused.as<w_refused>().status, static_cast<uint32_t>(W_NOT_REACHABLE));
	EXPECT_STREQ(refused.as<w_refused>().text, "the neighbour's agent is silent");
}

TEST_F(Hostile, OffersAreBounded)
{
	w_cm answer = {};

	for (uint64_t i = 1; i < 6000; i++) {
		w_cm m = cm(i);
		auto *consumed = static_cast<std::atomic<uint32_t> *>(peer->in.base);

		m.local = address(1, "peer");
		m.remote = address(0, "near" + std::to_string(i));
		ASSERT_TRUE(eventually([&] { return peer->next - consumed->load() < 60; }));
		peer->send(m, W_CM_PEER);
	}
	ASSERT_TRUE(peer->recv(&answer));
	EXPECT_EQ(answer.hdr.type, W_CM_REFUSE);
	EXPECT_EQ(answer.status, static_cast<uint32_t>(W_NO_RESOURCE));
	agent_lives();
}

// Valid headers around random bodies, for the state machine rather than the validator.
TEST_F(Hostile, RandomRecords)
{
	std::mt19937 rng(12345);
	Client c(fabric, 0), s(fabric, 0);
	auto *consumed = static_cast<std::atomic<uint32_t> *>(peer->in.base);

	for (int i = 0; i < 20000; i++) {
		w_cm m = {};

		if (i % 50 == 0)
			s.listen(static_cast<uint64_t>(i), address(0, "near"));
		if (i % 50 == 1)
			c.connection(W_CONNECT, static_cast<uint64_t>(i), address(0, "c"),
				     address(1, "s"));
		if (i % 50 == 2)
			c.connection(W_PEER, static_cast<uint64_t>(i), address(0, "near"),
				     address(1, "far"));
		while (c.recv_any(0).type > 0) {}
		Msg told = s.recv_any(0);
		if (told.type == W_ARRIVED)
			s.accept(told.as<w_arrived>().conn, static_cast<uint64_t>(i));
		if (port_link_state(peer->port, nullptr) != PORT_LINK_UP) {
			peer = std::make_unique<Neighbour>(fabric);
			peer->join();
			consumed = static_cast<std::atomic<uint32_t> *>(peer->in.base);
		}
		m = cm(1 + rng() % 7, (uint64_t{ rng() % 4 } << 32) + 1 + rng() % 7);
		m.status = 1 + rng() % 3;
		m.geometry.slots = 8;
		m.geometry.payload_bytes = 4096;
		m.geometry.slice_len = w_slice_bytes(8, 4096);
		m.src_host = 1;
		m.path.hops = m.path.at = m.path.port[0] = 1;
		w_ctl_init(&m, static_cast<w_ctl_type>(W_CM_REQ + rng() % 8), sizeof(m));
		if (!eventually([&] {
			    port_service(peer->port);
			    return peer->next - consumed->load() < 60 ||
				   port_link_state(peer->port, nullptr) != PORT_LINK_UP;
		    }))
			FAIL() << "the agent stopped reading";
		peer->send(&m, sizeof(m), sizeof(m));
		peer->credit(peer->seen); // never moves: messages to it are not read
	}
	agent_lives();
}

// ---- agents that end and start ----

class LinkGeneration : public FabricTest {};

TEST_F(LinkGeneration, NeighbourDiesAndComesBack)
{
	up(3);
	Client c(*fabric, 0), s(*fabric, 1), t(*fabric, 2);
	Pair cs = join(c, s), ct = join(c, t);

	fabric->stop(1);
	Msg m = c.recv();
	ASSERT_EQ(m.type, W_SUSPEND) << "the host may be reached the other way round";
	EXPECT_EQ(m.as<w_conn>().conn, cs.client_conn);
	m = c.recv();
	ASSERT_EQ(m.type, W_LOST) << "it is not";
	EXPECT_EQ(m.as<w_lost_msg>().conn, cs.client_conn);
	EXPECT_EQ(m.as<w_lost_msg>().reason, static_cast<uint32_t>(W_LOST_LINK));
	EXPECT_EQ(s.recv().type, 0) << "the agent's own processes see it hang up";
	s.hang_up();
	fabric->start(1);
	wait_links(*fabric);
	Client s2(*fabric, 1);
	join(c, s2, "again");
	c.conn(W_CLOSE, ct.client_conn);
	EXPECT_EQ(t.recv().type, W_LOST) << "the other link was not touched";
}

TEST_F(LinkGeneration, HundredFlapsOfALink)
{
	up(2);
	Client c(*fabric, 0), s(*fabric, 1);
	Client tool(*fabric, 1, W_KIND_TOOL);

	for (int i = 0; i < 100; i++) {
		Pair p = join(c, s);
		for (uint32_t verb : { W_ADMIN_LINK_DOWN, W_ADMIN_LINK_UP }) {
			w_admin m = {};
			m.verb = verb;
			snprintf(m.name, sizeof(m.name), "left");
			tool.send(m, W_ADMIN);
			ASSERT_EQ(tool.recv().type, W_DONE);
		}
		ASSERT_EQ(c.recv().type, W_LOST);
		ASSERT_EQ(s.recv().type, W_LOST);
		wait_link(*fabric, 0, 1);
		wait_link(*fabric, 1, 0);
	}
}

// More than a client's queue and socket hold: the client is slow, not hostile.
TEST_F(LinkGeneration, ThousandsOfConnectionsBreakAtOnce)
{
	constexpr int kConns = 12000;
	up(2, [](ag_cfg &cfg) { cfg.window_bytes = 1 << 30; });
	Client c(*fabric, 0);
	{
		Client s(*fabric, 1);
		for (int i = 0; i < kConns; i++)
			ASSERT_NE(join(c, s).client_conn, 0u);
	}
	Client tool(*fabric, 0, W_KIND_TOOL);
	tool.route(1);
	for (int i = 0; i < kConns; i++)
		ASSERT_EQ(c.recv().type, W_LOST) << i;
	c.sync();
}

TEST_F(LinkGeneration, StrictPorts)
{
	up(3, [](ag_cfg &cfg) { cfg.port_kind = "emu+strict"; });
	Client c(*fabric, 0), s(*fabric, 1);

	for (int i = 0; i < 50; i++) {
		Pair p = join(c, s, std::to_string(i));
		c.conn(W_CLOSE, p.client_conn);
		EXPECT_EQ(s.recv().type, W_LOST);
		s.conn(W_CLOSE, p.server_conn);
	}
}

TEST_F(LinkGeneration, LostDoorbellsOnlyDelay)
{
	up(2, [](ag_cfg &cfg) {
		cfg.port_kind = "emu+fault";
		cfg.fault_options = "drop_db=0.5,spurious_db=0.1";
		cfg.seed = 7;
	});
	Client c(*fabric, 0), s(*fabric, 1);

	for (int i = 0; i < 15; i++) {
		Pair p = join(c, s, std::to_string(i));
		c.conn(W_CLOSE, p.client_conn);
		EXPECT_EQ(s.recv().type, W_LOST);
		s.conn(W_CLOSE, p.server_conn);
	}
}

TEST_F(LinkGeneration, EarlyDoorbellsOnlyDelay)
{
	up(2, [](ag_cfg &cfg) {
		cfg.port_kind = "emu+fault";
		cfg.fault_options = "early_db=0.5";
		cfg.seed = 7;
	});
	Client c(*fabric, 0), s(*fabric, 1);

	for (int i = 0; i < 15; i++) {
		Pair p = join(c, s, std::to_string(i));
		c.conn(W_CLOSE, p.client_conn);
		EXPECT_EQ(s.recv().type, W_LOST);
		s.conn(W_CLOSE, p.server_conn);
	}
}

TEST_F(LinkGeneration, LeavesWhenIdle)
{
	ag_cfg cfg = {};
	ag_agent *a = nullptr;
	std::string name = unique_fabric();

	cfg.fabric = name.c_str();
	cfg.owner = geteuid();
	cfg.host_count = 1;
	cfg.group = AG_NO_GROUP;
	cfg.leave_when_idle = true;
	cfg.grace_ms = 50;
	ASSERT_EQ(ag_create(&cfg, &a), 0);
	/* A tool connects; that does not count as use of the agent. */
	w_hello hello = {};
	sockaddr_un un;
	socklen_t len = w_agent_addr(&un, geteuid(), name.c_str(), 0);
	int tool = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ASSERT_EQ(connect(tool, reinterpret_cast<sockaddr *>(&un), len), 0);
	hello.kind = W_KIND_TOOL;
	w_ctl_init(&hello, W_HELLO, sizeof(hello));
	ASSERT_EQ(w_ctl_send(tool, &hello, nullptr, 0), 0);
	std::thread t([a] { EXPECT_EQ(ag_run(a), 0); });
	t.join();
	ag_destroy(a);
	close(tool);
}

TEST_F(LinkGeneration, OneAgentPerHost)
{
	up(1);
	ag_cfg cfg = fabric->config(0);
	ag_agent *a = nullptr;

	EXPECT_EQ(ag_create(&cfg, &a), -EADDRINUSE);
}

TEST_F(LinkGeneration, BadConfigurations)
{
	ag_agent *a = nullptr;
	std::string name = unique_fabric();
	ag_cfg good = {};
	good.fabric = name.c_str();
	good.owner = geteuid();
	good.host_count = 1;
	good.group = AG_NO_GROUP;
	ag_alias wrong = { "x", 9 };
	const char *names[] = { "a b" }, *twice[] = { "0", "0" };
	std::vector<ag_cfg> bad(15, good);

	bad[0].fabric = "a/b";
	bad[1].host_count = 0;
	bad[2].host_id = 1;
	bad[3].host_count = 65;
	bad[4].slots = 7;
	bad[5].db_bits = 1;
	bad[6].spads = 4;
	bad[7].aliases = &wrong;
	bad[7].alias_count = 1;
	bad[8].host_names = names;
	bad[9].topology = "mesh:2x2";
	bad[10].relay_threads = AG_RELAY_THREADS_MAX + 1;
	bad[11].relay_threads = 3; /* of 4 doorbell bits, 2 are for other purposes */
	bad[11].db_bits = 4;
	bad[12].relay_cpu_count = AG_RELAY_CPUS_MAX + 1;
	bad[13].relay_wait = 3;
	bad[14].host_names = twice;
	bad[14].host_count = 2;
	testing::internal::CaptureStderr();
	for (const ag_cfg &cfg : bad)
		EXPECT_EQ(ag_create(&cfg, &a), -EINVAL);
	testing::internal::GetCapturedStderr();
}

} // namespace
