// SPDX-License-Identifier: BSD-2-Clause
// A relay that lies: host 1 of a ring, played by the test, forges records in the names of other hosts.
// The false records are dropped and counted; the other hosts go on, and no record circulates.
#include <random>

#include "agent_fixture.h"
#include "neighbour.h"

extern "C" {
#include "u_log.h"
#include "u_time.h"
}

using namespace agent_test;

namespace {

// Ports of hosts in a ring.
constexpr uint8_t kLeft = 1, kRight = 2;
constexpr uint32_t kSliceBytes = 12288;
constexpr uint32_t kCircuits = 8000; // that each of two neighbours may request of a relay

w_path path_of(std::initializer_list<uint8_t> ports, uint8_t at = 1)
{
	w_path w = {};

	for (uint8_t port : ports)
		w.port[w.hops++] = port;
	w.at = at;
	return w;
}

// Sends from host 1 by host 0 to host 3 and on to host 2.
const w_path kTo3 = path_of({ kLeft, kLeft }), kTo2 = path_of({ kLeft, kLeft, kLeft });

// Hosts 0, 2 and 3 of a ring of four have agents; two of them are connected through the third.
class Liar : public ::testing::Test {
protected:
	Liar()
	    : fabric(
		      4,
		      [](ag_cfg &cfg) {
			      cfg.relay_threads = 1;
			      cfg.circuits = 2 * kCircuits;
		      },
		      0)
	{
		for (unsigned host : { 0u, 2u, 3u })
			fabric.start(host);
		a = std::make_unique<Client>(fabric, 0);
		b = std::make_unique<Client>(fabric, 2);
		EXPECT_TRUE(eventually([&] { return joins("probe"); }));
		good = agent_test::join(*a, *b, "good");
		EXPECT_EQ(good.client_linked.as<w_linked>().hops, 2u);
		// Not earlier: the answer shows that host 0 knows that host 2 has no link to host 1.
		join_as_neighbour();
	}

	void join_as_neighbour()
	{
		peer.reset();
		peer = std::make_unique<Neighbour>(fabric);
		peer->join();
		ASSERT_TRUE(eventually([&] {
			Client tool(fabric, 0, W_KIND_TOOL);
			return number_in(tool.item(W_LIST_PORTS, kRight), "peer") == 1 &&
			       tool.item(W_LIST_PORTS, kRight).find("\"up\"") != std::string::npos;
		}));
		// Host 0 tells host 3, a moment later.
		ASSERT_TRUE(eventually([&] {
			Client tool(fabric, 3, W_KIND_TOOL);
			return (number_in(tool.item(W_LIST_LINKS, 0), "up") & 1u << kRight) != 0;
		}));
	}

	// No process listens there: the answer comes from the other end.
	bool joins(const char *disc)
	{
		a->connection(W_CONNECT, 1, address(0, "c"), address(2, disc));
		Msg m = a->recv();
		return m.type == W_REFUSED && m.as<w_refused>().status == W_NO_MATCH;
	}

	// The connection still exists, and new ones can be made.
	void others_go_on()
	{
		w_tell t = {};

		t.conn = good.client_conn;
		t.body_len = 4;
		memcpy(t.body, "good", 4);
		a->send(t, W_TELL);
		Msg m = b->recv();
		ASSERT_EQ(m.type, W_TOLD) << "instead of what host 0 said";
		EXPECT_EQ(memcmp(m.as<w_tell>().body, "good", 4), 0);
		Client c(fabric, 0), s(fabric, 2), local(fabric, 3);
		agent_test::join(c, s, "new");
		agent_test::join(local, s, "next");
	}

	// It is correctly connected to a process next door; `m_out` is its last message.
	void connect(Client &server, w_cm *m_out)
	{
		w_cm m = cm(1, 0, 77);

		server.listen(1, address(0, "near"));
		server.sync();
		peer->send_by(m, W_CM_REQ, path_of({ kLeft }));
		Msg told = server.recv();
		ASSERT_EQ(told.type, W_ARRIVED);
		uint64_t conn = told.as<w_arrived>().conn;
		server.accept(conn, 5);
		ASSERT_EQ(next_record().hdr.type, W_CM_ACCEPT);
		m = cm(1, 0, 77, conn);
		m.geometry.slice_id = peer->offer(kSliceBytes).id;
		peer->send_by(m, W_CM_CONFIRM, path_of({ kLeft }));
		ASSERT_EQ(server.recv().type, W_LINKED);
		*m_out = m;
	}

	// Nothing is kept under the names of hosts when their circuits have lost their node.
	void leaves_nothing()
	{
		a.reset();
		b.reset();
		peer.reset();
		for (unsigned host : { 0u, 2u, 3u })
			EXPECT_TRUE(eventually([&] { return held(fabric, host) == 0; }))
				<< "host " << host << " holds " << held(fabric, host);
	}

	uint64_t dropped(unsigned host)
	{
		struct ag_usage u = {};

		fabric.pause(host);
		ag_usage(fabric.agent(host), &u);
		EXPECT_EQ(u.circuits, 0u);
		EXPECT_EQ(u.conns, 0u);
		EXPECT_EQ(u.offers, 0u);
		return u.relay_dropped;
	}

	static w_cm cm(uint16_t src, uint16_t dst, uint64_t src_conn, uint64_t dst_conn = 0)
	{
		w_cm m = {};

		m.src_host = src;
		m.dst_host = dst;
		m.src_conn = src_conn;
		m.dst_conn = dst_conn;
		m.status = W_LOST_CLOSED;
		m.attrs = attributes();
		m.local = address(src, "far");
		m.remote = address(dst, "near");
		m.geometry.slots = 8;
		m.geometry.payload_bytes = 4096;
		m.geometry.slice_len = kSliceBytes;
		return m;
	}

	static void refused(const Msg &m, uint64_t token, w_status status)
	{
		ASSERT_EQ(m.type, W_REFUSED);
		EXPECT_EQ(m.as<w_refused>().token, token);
		EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(status));
	}

	// The next record except heartbeats and link-state updates.
	w_cm next_record()
	{
		w_cm m = {};

		EXPECT_TRUE(peer->recv(&m));
		return m;
	}

	// A server at host 3 that has a request of ours; its conn is in the record with which it answers.
	uint64_t request(Client &server, uint64_t src_conn)
	{
		w_cm m = cm(1, 3, src_conn);

		server.listen(1, address(3, "near"));
		server.sync();
		peer->send_by(m, W_CM_REQ, kTo3);
		Msg arrived = server.recv();
		EXPECT_EQ(arrived.type, W_ARRIVED);
		return arrived.type == W_ARRIVED ? arrived.as<w_arrived>().conn : 0;
	}

	Fabric fabric;
	std::unique_ptr<Neighbour> peer;
	std::unique_ptr<Client> a, b;
	Pair good;
};

TEST_F(Liar, IsServedWhileItKeepsTheRules)
{
	Client server(fabric, 3);
	uint64_t conn = request(server, 77);
	w_cm m;

	server.accept(conn, 5);
	m = next_record();
	ASSERT_EQ(m.hdr.type, W_CM_ACCEPT);
	EXPECT_EQ(m.src_host, 3);
	EXPECT_EQ(m.path.hops, 2);
	EXPECT_EQ(m.path.at, 2);
	w_cm confirm = cm(1, 3, 77, m.src_conn);
	confirm.geometry.slice_id = peer->offer(kSliceBytes).id;
	peer->send_by(confirm, W_CM_CONFIRM, kTo3);
	EXPECT_EQ(server.recv().type, W_LINKED);
	w_cm close = cm(1, 3, 77, m.src_conn);
	peer->send_by(close, W_CM_CLOSE, kTo3);
	Msg lost = server.recv();
	ASSERT_EQ(lost.type, W_LOST);
	server.conn(W_CLOSE, conn);
	m = next_record();
	EXPECT_EQ(m.hdr.type, W_CM_CLOSE);
	server.hang_up();
	leaves_nothing();
	EXPECT_EQ(dropped(0), 0u);
}

// A host that refuses a path may soon know better, and no link need change for that.
TEST_F(Liar, RefusesAConnectionThatGoesOnWhenItIsAskedAgain)
{
	Client c(fabric, 0);
	w_cm req, m;

	c.connection(W_CONNECT, 5, address(0, "c"), address(1, "s"));
	req = next_record();
	ASSERT_EQ(req.hdr.type, W_CM_REQ);
	m = cm(1, 0, 7, req.src_conn);
	m.geometry.slice_id = peer->offer(kSliceBytes).id;
	peer->send(m, W_CM_ACCEPT);
	Msg linked = c.recv();
	ASSERT_EQ(linked.type, W_LINKED);
	w_suspended suspended = { {}, linked.as<w_linked>().conn, {} };
	c.conn(W_CONFIRM, suspended.conn);
	/* Its agent sent CONFIRM when it linked the connection: that record does not show that this one was taken. */
	c.sync();
	ASSERT_EQ(next_record().hdr.type, W_CM_CONFIRM);
	m.status = W_LOST_LINK;
	peer->send(m, W_CM_CLOSE);
	ASSERT_EQ(c.recv().type, W_SUSPEND);
	c.send(suspended, W_SUSPENDED);
	ASSERT_EQ(next_record().hdr.type, W_CM_CLOSE);
	for (uint32_t epoch = 1; epoch < 4; epoch++) {
		w_cm resume = next_record();
		ASSERT_EQ(resume.hdr.type, W_CM_RESUME);
		EXPECT_EQ(resume.epoch, epoch);
		m.epoch = epoch;
		m.status = W_NOT_REACHABLE;
		peer->send(m, W_CM_REFUSE);
	}
	m.epoch = next_record().epoch;
	m.geometry.slice_id = peer->offer(kSliceBytes).id;
	peer->send(m, W_CM_ACCEPT);
	EXPECT_EQ(c.recv().type, W_RESUMED);
}

// The client gave up before it knew that the server had accepted, and died.
TEST_F(Liar, CancelsWhatWasAcceptedAndClosed)
{
	Client server(fabric, 3);
	uint64_t conn = request(server, 77);

	server.accept(conn, 5);
	ASSERT_EQ(next_record().hdr.type, W_CM_ACCEPT);
	server.hang_up();
	ASSERT_EQ(next_record().hdr.type, W_CM_CLOSE);
	w_cm cancel = cm(1, 3, 77);
	cancel.status = W_TIMED_OUT;
	peer->send_by(cancel, W_CM_CANCEL, kTo3);
	EXPECT_TRUE(eventually([&] { return held(fabric, 3) == 2; }))
		<< "beside the circuit of the others, host 3 holds " << held(fabric, 3);
	EXPECT_TRUE(eventually([&] { return held(fabric, 0) == 1; }));
	leaves_nothing();
}

// The end that it names does not exist: host 3 does not know the end that host 0 believed to exist.
TEST_F(Liar, CancelsByANameThatNobodyHas)
{
	Client server(fabric, 3);
	uint64_t conn = request(server, 77);
	w_cm cancel = cm(1, 3, 77, 0xabc00000001);

	cancel.status = W_TIMED_OUT;
	peer->send_by(cancel, W_CM_CANCEL, kTo3);
	ASSERT_TRUE(peer->consumed());
	server.accept(conn, 5);
	EXPECT_EQ(next_record().hdr.type, W_CM_ACCEPT);
	leaves_nothing();
	refused(server.recv(), 5, W_NOT_REACHABLE);
	EXPECT_GE(dropped(0), 1u);
}

// One connection by two names: a cancellation of the first must not leave the circuit of the second alone.
TEST_F(Liar, AsksTwiceAsIfItHadComeAnotherPath)
{
	Client server(fabric, 3);
	uint64_t conn = request(server, 77);
	w_cm again = cm(1, 3, 77), cancel = cm(1, 3, 77), confirm = cm(1, 3, 77);

	again.epoch = cancel.epoch = 1;
	cancel.status = W_TIMED_OUT;
	peer->send_by(again, W_CM_REQ, kTo3);
	server.accept(conn, 5);
	EXPECT_EQ(next_record().hdr.type, W_CM_ACCEPT);
	peer->send_by(cancel, W_CM_CANCEL, kTo3);
	confirm.dst_conn = conn;
	confirm.geometry.slice_id = peer->offer(kSliceBytes).id;
	peer->send_by(confirm, W_CM_CONFIRM, kTo3);
	EXPECT_EQ(server.recv().type, W_LINKED);
	server.hang_up();
	leaves_nothing();
	EXPECT_GE(dropped(0), 2u);
}

// It cannot know an end that does not exist yet; one request never makes two circuits.
TEST_F(Liar, AsksForAnEndByName)
{
	for (int i = 0; i < 10; i++) {
		w_cm m = cm(1, 3, 77, 5);

		m.hdr.type = 0;
		peer->send_by(m, i % 2 ? W_CM_REQ : W_CM_PEER, kTo3);
	}
	ASSERT_TRUE(peer->consumed());
	EXPECT_EQ(held(fabric, 0), 1u) << "beside the connection of the others";
	others_go_on();
	leaves_nothing();
	EXPECT_EQ(dropped(0), 10u);
}

// A record that does not end the connection at its end must not end the circuit at the relay.
TEST_F(Liar, CallsOffInAWayThatTheOtherEndIgnores)
{
	for (w_ctl_type type : { W_CM_CLOSE, W_CM_REFUSE, W_CM_PEER_CANCEL }) {
		SCOPED_TRACE(static_cast<int>(type));
		Client server(fabric, 3);
		uint64_t conn = request(server, 77);
		w_cm off = cm(1, 3, 77);

		peer->send_by(off, type, kTo3);
		ASSERT_TRUE(peer->consumed());
		server.accept(conn, 5);
		ASSERT_EQ(next_record().hdr.type, W_CM_ACCEPT);
		w_cm cancel = cm(1, 3, 77);
		cancel.status = W_TIMED_OUT;
		peer->send_by(cancel, W_CM_CANCEL, kTo3);
		refused(server.recv(), 5, W_TIMED_OUT);
	}
	leaves_nothing();
	EXPECT_GE(dropped(0), 3u);
}

TEST_F(Liar, GoesWithoutAnAnswerToAClose)
{
	Client server(fabric, 3);
	uint64_t conn = request(server, 77);

	server.accept(conn, 5);
	ASSERT_EQ(next_record().hdr.type, W_CM_ACCEPT);
	server.hang_up();
	ASSERT_EQ(next_record().hdr.type, W_CM_CLOSE);
	leaves_nothing();
}

// A record of a circuit must follow the path of the circuit.
TEST_F(Liar, RecordsThatLeaveThePathOfTheirCircuit)
{
	Client server(fabric, 3);
	uint64_t conn = request(server, 77);

	server.accept(conn, 5);
	w_cm m = next_record();
	ASSERT_EQ(m.hdr.type, W_CM_ACCEPT);
	// The circuit is host 0's to host 3; host 2 can be reached by it too.
	w_cm_tell t = {};
	t.src_host = 1;
	t.dst_host = 2;
	t.src_conn = 77;
	t.dst_conn = m.src_conn;
	t.body_len = 1;
	peer->send_by(t, W_CM_TELL, kTo2);
	w_cm close = cm(1, 2, 77, m.src_conn);
	peer->send_by(close, W_CM_CLOSE, kTo2);
	ASSERT_TRUE(peer->consumed());
	w_cm fin = cm(1, 3, 77, m.src_conn);
	peer->send_by(fin, W_CM_CLOSE, kTo3);
	Msg r = server.recv();
	ASSERT_EQ(r.type, W_REFUSED);
	others_go_on();
	server.hang_up();
	leaves_nothing();
	EXPECT_GE(dropped(0), 2u);
}

// Host 0 knows that records of host 2 come by way of host 3.
TEST_F(Liar, InTheNameOfAHostBehindAnother)
{
	uint64_t conns[] = { good.client_conn, good.server_conn, 1, 0x100000001 };
	uint32_t sent = 0;

	for (uint16_t src : { 0, 2, 3 }) {
		for (w_ctl_type type : { W_CM_CLOSE, W_CM_CANCEL, W_CM_REFUSE, W_CM_PEER_CANCEL,
					 W_CM_CONFIRM, W_CM_ACCEPT }) {
			for (uint64_t conn : conns) {
				w_cm m = cm(src, 0, good.server_conn, conn);
				// As a neighbour; as a host whose path leads through host 1; by the
				// true path.
				peer->send_by(m, type, path_of({ kLeft }));
				peer->send_by(m, type, path_of({ kLeft, kLeft }, 2));
				peer->send_by(m, type, path_of({ kRight, kRight }, 2));
				sent += 3;
				ASSERT_TRUE(peer->consumed());
			}
		}
		w_cm_tell t = {};
		t.src_host = src;
		t.src_conn = good.server_conn;
		t.dst_conn = good.client_conn;
		t.body_len = 4;
		peer->send_by(t, W_CM_TELL, path_of({ kLeft, kLeft }, 2));
		sent++;
	}
	ASSERT_TRUE(peer->consumed());
	others_go_on();
	a->sync(); // and it was told of nothing
	leaves_nothing();
	EXPECT_GE(dropped(0), sent / 2);
}

// The fields about the client that a server gets are checked against the host that sent the request.
TEST_F(Liar, AsksWithAnAddressOfAnotherHost)
{
	Client server(fabric, 0);

	server.listen(1, address(0, "near"));
	server.sync();
	for (w_ctl_type type : { W_CM_REQ, W_CM_PEER }) {
		for (auto [local, remote] : { std::pair<unsigned, unsigned>{ 0, 0 },
					      { 2, 0 },
					      { 63, 0 },
					      { 1, 2 },
					      { 1, 1 } }) {
			w_cm m = cm(1, 0, 0x900 + local);

			m.local = address(local, "far");
			m.remote = address(remote, "near");
			peer->send_by(m, type, path_of({ kLeft }));
			w_cm back = next_record();
			EXPECT_EQ(back.hdr.type, W_CM_REFUSE) << local << " to " << remote;
			EXPECT_EQ(back.status, static_cast<uint32_t>(W_BAD_REQUEST));
		}
	}
	server.sync(); // and it was told of none of them
	w_cm m = cm(1, 0, 77);
	peer->send_by(m, W_CM_REQ, path_of({ kLeft }));
	EXPECT_EQ(server.recv().type, W_ARRIVED);
	server.hang_up();
	others_go_on();
	leaves_nothing();
}

// A peer's offer is withdrawn by the path by which it came, not by another that may contain its host
// too.
TEST_F(Liar, WithdrawsTheOfferOfAnother)
{
	Client low(fabric, 0), high(fabric, 3);
	w_addr here = address(0, "p"), there = address(3, "p");

	low.connection(W_PEER, 1, here, there);
	high.connection(W_PEER, 2, there, here);
	Msg m = high.recv();
	ASSERT_EQ(m.type, W_LINKED);
	uint64_t conn = m.as<w_linked>().conn;
	high.conn(W_CONFIRM, conn);
	m = low.recv();
	ASSERT_EQ(m.type, W_LINKED);
	high.conn(W_CLOSE, conn);
	ASSERT_EQ(low.recv().type, W_LOST);
	low.conn(W_CLOSE, m.as<w_linked>().conn);
	EXPECT_TRUE(eventually([&] { return held(fabric, 0) == 1; }));
	EXPECT_TRUE(eventually([&] { return held(fabric, 3) == 2; })) << held(fabric, 3);

	high.connection(W_PEER, 3, there, here);
	high.sync();
	wait_link(fabric, 3, 0);
	// The name of the new attempt: the place of the previous one, used once more.
	w_cm off = cm(3, 0, conn + (uint64_t{ 1 } << 32));
	EXPECT_TRUE(eventually([&] { return joins("after it"); }));
	peer->send_by(off, W_CM_PEER_CANCEL, path_of({ kLeft, kLeft, kLeft }, 3));
	ASSERT_TRUE(peer->consumed());
	low.connection(W_PEER, 4, here, there);
	EXPECT_EQ(high.recv().type, W_LINKED);
	low.hang_up();
	high.hang_up();
	leaves_nothing();
}

// Every small value in every field that names hosts and paths; one at a time.
TEST_F(Liar, EveryFieldOfThePath)
{
	static const uint8_t values[] = { 0, 1, 2, 3, 4, 7, 63, 64, 65, 128, 255 };
	std::vector<size_t> fields = { offsetof(w_cm, src_host), offsetof(w_cm, src_host) + 1,
				       offsetof(w_cm, dst_host), offsetof(w_cm, dst_host) + 1,
				       offsetof(w_cm, epoch),	 offsetof(w_cm, src_conn),
				       offsetof(w_cm, dst_conn), offsetof(w_cm, path.hops),
				       offsetof(w_cm, path.at) };
	uint32_t sent = 0, came = 0;

	for (size_t i = 0; i < 5; i++)
		fields.push_back(offsetof(w_cm, path.port) + i);
	for (int type = W_CM_REQ; type <= W_CM_UNKNOWN; type++) {
		if (type == W_CM_TELL || type == W_CM_HEARTBEAT || type == W_CM_LINKS)
			continue;
		for (const w_path &path : { kTo3, kTo2, path_of({ kLeft }) }) {
			for (size_t field : fields) {
				for (uint8_t value : values) {
					w_cm m = cm(1,
						    path.hops == 3   ? 2
						    : path.hops == 2 ? 3
								     : 0,
						    7, 7);

					w_ctl_init(&m, static_cast<w_ctl_type>(type), sizeof(m));
					m.path = path;
					reinterpret_cast<uint8_t *>(&m)[field] = value;
					if (w_ctl_check(&m, sizeof(m)) < 0)
						continue;
					peer->send(&m, sizeof(m), sizeof(m));
					ASSERT_TRUE(peer->consumed(32));
					came += peer->drain();
					sent++;
				}
			}
		}
	}
	ASSERT_TRUE(peer->consumed());
	EXPECT_GT(sent, 3000u);
	EXPECT_TRUE(peer->up());
	others_go_on();
	came += peer->drain();
	EXPECT_LE(came, 2 * sent + 100) << "records go round";
	leaves_nothing();
	EXPECT_GT(dropped(0), sent / 2);
}

TEST_F(Liar, RandomRecords)
{
	const char *text = getenv("VIADUCT_SEED");
	uint32_t seed = text != nullptr ? static_cast<uint32_t>(strtoul(text, nullptr, 0)) : 4711;
	SCOPED_TRACE("VIADUCT_SEED=" + std::to_string(seed));
	std::mt19937 rng(seed);
	const w_path paths[] = { kTo3, kTo2, path_of({ kLeft }), path_of({ kLeft, kLeft }, 2) };
	uint64_t heard[8] = {}; // conns that came in records
	uint32_t sent = 0, came = 0, news = 0, slices = 0;
	auto keep_conn = [&](const w_cm &m) {
		if (m.hdr.type != W_CM_LINKS && m.src_conn != 0)
			heard[news++ % 8] = m.src_conn;
	};
	Client server(fabric, 3);

	for (int i = 0; i < 20000; i++) {
		w_cm m = cm(static_cast<uint16_t>(rng() % 8 ? 1 : rng() % 4),
			    static_cast<uint16_t>(rng() % 2 ? 3 : rng() % 5), 1 + rng() % 12,
			    rng() % 3 ? heard[rng() % 8] : rng() % 12);

		if (i % 64 == 0) {
			server.listen(static_cast<uint64_t>(i), address(3, "near"));
			for (Msg told = server.recv_any(0); told.type > 0;
			     told = server.recv_any(0)) {
				if (told.type == W_ARRIVED)
					server.accept(told.as<w_arrived>().conn, ~0ull - 1);
			}
		}
		m.path = paths[rng() % 4];
		if (rng() % 4 == 0)
			m.path.port[rng() % 4] = static_cast<uint8_t>(rng() % 5);
		if (rng() % 8 == 0)
			m.path.hops = static_cast<uint8_t>(rng() % 5);
		if (rng() % 8 == 0)
			m.path.at = static_cast<uint8_t>(rng() % 5);
		m.epoch = rng() % 8 == 0;
		if (rng() % 64 == 0 && slices++ < 40)
			m.geometry.slice_id = peer->offer(kSliceBytes).id;
		int type = W_CM_REQ + static_cast<int>(rng() % 8);
		// Names of slices that never come block the link for a while.
		if (m.geometry.slice_id == 0 && (type == W_CM_ACCEPT || type == W_CM_CONFIRM))
			type = W_CM_CLOSE;
		w_ctl_init(&m, static_cast<w_ctl_type>(type), sizeof(m));
		if (w_ctl_check(&m, sizeof(m)) < 0)
			continue;
		peer->send(&m, sizeof(m), sizeof(m));
		sent++;
		ASSERT_TRUE(peer->consumed(32));
		came += peer->drain(keep_conn);
		if (!peer->up())
			join_as_neighbour();
	}
	ASSERT_TRUE(peer->consumed());
	others_go_on();
	came += peer->drain();
	EXPECT_LE(came, 2 * sent + 100) << "records go round";
	server.hang_up();
	leaves_nothing();
	EXPECT_GT(dropped(0), 100u);
}

// A host that requests without end gets an answer for each at most, and the hosts between keep nothing of it.
TEST_F(Liar, AsksForEndsThatNobodyKnows)
{
	const uint64_t kMany = 20000, of_others[] = { held(fabric, 0), held(fabric, 3) };
	uint64_t sent = 0, came = 0;
	auto look = [&](const w_cm &m) {
		if (m.hdr.type != W_CM_UNKNOWN)
			return;
		EXPECT_EQ(m.src_host, 3);
		EXPECT_EQ(m.dst_host, 1);
		EXPECT_EQ(m.dst_conn, 7u);
		EXPECT_LT(m.src_conn, kMany + 1);
		came++;
	};

	while (sent < kMany) {
		w_cm m = cm(1, 3, 7, ++sent);
		peer->send_by(m, W_CM_QUERY, kTo3);
		ASSERT_TRUE(peer->consumed(32));
		peer->drain(look);
	}
	EXPECT_EQ(held(fabric, 0), of_others[0]);
	EXPECT_EQ(held(fabric, 3), of_others[1]);
	others_go_on();
	EXPECT_TRUE(peer->up());
	// Updates that were left out are requested again.
	uint64_t before = came;
	EXPECT_TRUE(eventually([&] {
		w_cm m = cm(1, 3, 7, 5);
		peer->send_by(m, W_CM_QUERY, kTo3);
		sent++;
		peer->consumed();
		peer->drain(look);
		return came > before;
	}));
	EXPECT_LE(came, sent);
	leaves_nothing();
	EXPECT_EQ(dropped(0), 0u);
}

// Host 1 may still store into the slices that were left; other hosts cannot claim that it does not.
TEST_F(Liar, SaysThatSlicesAreLeftThatAreNot)
{
	Client server(fabric, 0);
	w_cm m;

	ASSERT_NO_FATAL_FAILURE(connect(server, &m));
	uint64_t conn = m.dst_conn;
	uint64_t used = window_used(fabric, 0);

	m.epoch = 1;
	m.status = 0;
	peer->send_by(m, W_CM_RESUME, path_of({ kLeft }));
	ASSERT_EQ(server.recv().type, W_SUSPEND);
	int64_t begin = u_now_ns();
	w_suspended done = {};
	done.conn = conn;
	server.send(done, W_SUSPENDED);
	ASSERT_EQ(next_record().hdr.type, W_CM_CLOSE);
	ASSERT_EQ(next_record().hdr.type, W_CM_ACCEPT);
	for (uint64_t name : { uint64_t{ 0 }, conn }) {
		m = cm(2, 0, 1, name);
		peer->send_by(m, W_CM_CLOSE, path_of({ kLeft, kLeft }, 2));
	}
	ASSERT_TRUE(peer->consumed());
	uint64_t now_used = window_used(fabric, 0);
	if (u_now_ns() - begin < 4000000000) { // after a while it is freed in any case
		EXPECT_EQ(now_used, used + kSliceBytes);
	}
	m = cm(1, 0, 77, conn);
	peer->send_by(m, W_CM_CLOSE, path_of({ kLeft }));
	ASSERT_TRUE(peer->consumed());
	EXPECT_EQ(window_used(fabric, 0), used);
	server.hang_up();
	leaves_nothing();
}

// ---- invented updates about links ----------------------------------------------------------------

w_cm_links link_state(uint16_t origin, uint16_t up, uint64_t serial)
{
	w_cm_links m = {};

	w_ctl_init(&m, W_CM_LINKS, sizeof(m));
	m.src_host = 1;
	m.dst_host = 0;
	m.origin = origin;
	m.up = up;
	m.serial = serial;
	return m;
}

uint64_t calendar_ns()
{
	timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return static_cast<uint64_t>(ts.tv_sec) * 1000000000 + static_cast<uint64_t>(ts.tv_nsec);
}

TEST_F(Liar, LinkStateUpdates)
{
	uint32_t sent = 0, came = peer->drain() * 0;
	uint64_t now = calendar_ns();

	for (uint64_t round = 0; round < 40; round++) {
		for (uint16_t origin : { 0, 1, 2, 3, 4, 64, 65535 }) {
			for (uint64_t serial :
			     { uint64_t{ 0 }, now - 1, now + round, now + 3600000000000 + round,
			       W_LINKS_LAST + 1, UINT64_MAX }) {
				w_cm_links m = link_state(origin, round % 2 ? 0 : 0xff, serial);

				peer->send(&m, sizeof(m), sizeof(m));
				sent++;
				ASSERT_TRUE(peer->consumed(32));
				came += peer->drain();
			}
		}
	}
	// The hosts whose names were used correct it.
	ASSERT_TRUE(peer->consumed());
	EXPECT_TRUE(peer->up());
	Client tool(fabric, 0, W_KIND_TOOL);
	EXPECT_TRUE(eventually([&] {
		w_route r = tool.route(2);
		return r.reachable == 1 && r.hops == 2;
	}));
	EXPECT_TRUE(eventually([&] { return joins("again"); }));
	others_go_on();
	came += peer->drain();
	EXPECT_LE(came, 3 * sent + 100) << "link-state updates go round";
	leaves_nothing();
	EXPECT_GT(dropped(0), 100u);
}

// The second is as new as the answer to the first, and arrives before it.
TEST_F(Liar, ALinkStateUpdateAsNewAsItsCorrection)
{
	Client tool(fabric, 0, W_KIND_TOOL);

	for (uint64_t i = 0; i < 20; i++) {
		uint64_t serial = calendar_ns() + (i + 1) * 1000000000000;
		for (uint64_t k = 0; k < 2; k++) {
			w_cm_links m = link_state(2, i % 2 ? 1 : 2, serial + k);
			peer->send(&m, sizeof(m), sizeof(m));
		}
		ASSERT_TRUE(peer->consumed());
		ASSERT_TRUE(eventually([&] { return tool.route(2).reachable == 1; })) << i;
		peer->drain();
	}
	EXPECT_TRUE(eventually([&] { return joins("again"); }));
	others_go_on();
	leaves_nothing();
}

// No host can send a greater one.  All forget what they know of the host, and its updates begin again.
TEST_F(Liar, TheLastNumberOfALinkStateUpdate)
{
	Client near(fabric, 3, W_KIND_TOOL), here(fabric, 0, W_KIND_TOOL);
	auto true_for = [](Client &tool) {
		return number_in(tool.item(W_LIST_LINKS, 2), "up") ==
		       5; // without the link to host 1
	};

	testing::internal::CaptureStderr();
	for (uint64_t serial : { W_LINKS_LAST - 1, W_LINKS_LAST, uint64_t{ 1000 } }) {
		for (uint16_t up : { uint16_t{ 1 }, uint16_t{ 7 } }) {
			w_cm_links m = link_state(2, up, serial);

			peer->send(&m, sizeof(m), sizeof(m));
			ASSERT_TRUE(peer->consumed());
			ASSERT_TRUE(eventually([&] { return true_for(near) && true_for(here); }))
				<< here.item(W_LIST_LINKS, 2);
			peer->drain();
		}
	}
	std::string log = testing::internal::GetCapturedStderr();
	EXPECT_NE(log.find("have reached the last number"), std::string::npos) << log;
}

// It reads next to nothing for a while; updates that it missed it gets afterwards.
TEST_F(Liar, LinkStateUpdatesThatMeetAFullQueue)
{
	constexpr uint64_t kAnswers = 5000;
	Client here(fabric, 0, W_KIND_TOOL), there(fabric, 3, W_KIND_TOOL);
	auto up_of_3 = [&] { return number_in(here.item(W_LIST_LINKS, 3), "up"); };
	uint64_t answers = 0, about = 0;
	uint16_t last = 0;
	auto look = [&](const w_cm &m) {
		w_cm_links links;

		memcpy(&links, &m, sizeof(links));
		answers += m.hdr.type == W_CM_REFUSE;
		if (m.hdr.type != W_CM_LINKS || links.origin != 3)
			return;
		about++;
		last = links.up;
	};

	for (uint64_t i = 1; i <= kAnswers; i++) {
		w_cm m = cm(1, 0, i);

		peer->send_by(m, W_CM_REQ, path_of({ kLeft }));
		ASSERT_TRUE(peer->consumed(32));
	}
	ASSERT_TRUE(peer->consumed());
	for (int i = 0; i < 3; i++) {
		for (w_admin_verb verb : { W_ADMIN_LINK_DOWN, W_ADMIN_LINK_UP }) {
			w_admin m = {};
			uint64_t wanted = verb == W_ADMIN_LINK_UP ? 7 : 5;

			if (i == 2 && verb == W_ADMIN_LINK_UP)
				break;
			m.verb = verb;
			snprintf(m.name, sizeof(m.name), "left");
			there.send(m, W_ADMIN);
			ASSERT_EQ(there.recv().type, W_DONE);
			ASSERT_TRUE(eventually([&] { return up_of_3() == wanted; })) << up_of_3();
			// A slow host is not a silent one.
			w_cm one = {};
			ASSERT_TRUE(peer->recv_any(&one));
			look(one);
		}
	}
	ASSERT_TRUE(peer->up());
	EXPECT_TRUE(eventually([&] {
		peer->drain(look);
		return answers == kAnswers && about > 0;
	})) << answers
	    << " answers, " << about << " link-state updates";
	EXPECT_EQ(last, 5) << "host 3 has lost its link to host 2";
}

// A link-state update from a day ahead does not silence the host that it describes.
TEST_F(Liar, ALinkStateUpdateFromTomorrow)
{
	for (uint16_t origin : { 0, 2, 3 }) {
		w_cm_links m = link_state(origin, 1, calendar_ns() + 86000ull * 1000000000);
		peer->send(&m, sizeof(m), sizeof(m));
	}
	ASSERT_TRUE(peer->consumed());
	EXPECT_TRUE(eventually([&] { return joins("tomorrow"); }));
	others_go_on();
	fabric.stop(3);
	fabric.start(3);
	EXPECT_TRUE(eventually([&] {
		Client c(fabric, 0);
		c.connection(W_CONNECT, 1, address(0, "c"), address(2, "x"));
		Msg m = c.recv();
		return m.type == W_REFUSED && m.as<w_refused>().status == W_NO_MATCH;
	}));
	leaves_nothing();
}

// ---- the log -------------------------------------------------------------------------------------

// Standard error, where agents write their lines, as a file.
class Lines {
public:
	Lines() : file_(memfd_create("log", MFD_CLOEXEC)), kept_(dup(STDERR_FILENO))
	{
		dup2(file_, STDERR_FILENO);
	}
	~Lines()
	{
		dup2(kept_, STDERR_FILENO);
		close(kept_);
		close(file_);
	}
	Lines(const Lines &) = delete;

	std::string text() const
	{
		std::string s(static_cast<size_t>(lseek(file_, 0, SEEK_END)), '\0');

		s.resize(static_cast<size_t>(pread(file_, &s[0], s.size(), 0)));
		return s;
	}
	uint64_t count(const char *what) const
	{
		std::string s = text();
		uint64_t n = 0;

		for (size_t at = s.find(what); at != std::string::npos; at = s.find(what, at + 1))
			n++;
		return n;
	}

private:
	int file_, kept_;
};

// Each bad record is counted, but writes no line; one line gives the number of those without one.
TEST_F(Liar, FillsNoLog)
{
	constexpr uint32_t kRecords = 6000, kClients = 300;

	if (!u_log_enabled(U_LOG_WARN, "ag") || getenv("VIADUCT_LOG_FILE") != nullptr)
		GTEST_SKIP() << "warnings are not written to standard error";
	Lines log;
	int64_t begin = u_now_ns();
	for (uint32_t i = 0; i < kRecords; i++) {
		w_cm m = cm(3, 0, 1 + i);
		w_cm_links links = link_state(2, 1, UINT64_MAX - i);

		peer->send_by(m, W_CM_REQ, path_of({ kRight, kRight }, 2));
		peer->send(&links, sizeof(links), sizeof(links));
		ASSERT_TRUE(peer->consumed(32));
	}
	for (uint32_t i = 0; i < kClients; i++) {
		Client c;

		c.dial(fabric, 0);
		ASSERT_EQ(send(c.sock, "nonsense", 8, MSG_NOSIGNAL), 8);
		EXPECT_EQ(c.recv_any().type, 0);
	}
	ASSERT_TRUE(peer->consumed());
	a->sync();
	uint64_t most =
		(static_cast<uint64_t>((u_now_ns() - begin) / 1000000000) / U_LOG_RATELIMIT_S + 2) *
		U_LOG_RATELIMIT_LINES;
	uint64_t records = log.count("it lost its path") + log.count("for links is ignored");
	uint64_t clients = log.count("malformed message");
	EXPECT_GE(records, U_LOG_RATELIMIT_LINES);
	EXPECT_LE(records, most);
	EXPECT_GE(clients, 1u);
	EXPECT_LE(clients, most);
	EXPECT_TRUE(eventually([&] {
		return log.count("more lines about bad records of port right were left out") > 0 &&
		       log.count("more lines about processes that were dropped or turned away "
				 "were left out") > 0;
	})) << log.text();
	others_go_on();
	leaves_nothing();
	EXPECT_GE(dropped(0), 2 * kRecords);
}

// ---- floods --------------------------------------------------------------------------------------

TEST_F(Liar, FloodsOfRequests)
{
	uint64_t i;

	for (i = 1; i <= 6000 && peer->up(); i++) {
		w_cm m = cm(1, i % 2 ? 3 : 2, i);

		peer->send_by(m, i % 3 ? W_CM_REQ : W_CM_PEER, i % 2 ? kTo3 : kTo2);
		ASSERT_TRUE(peer->consumed(32));
		if (i % 8 == 0)
			peer->drain();
	}
	others_go_on();
	leaves_nothing();
}

// Names that a multiplication by a known constant would map to one place.
TEST_F(Liar, ChoosesNamesThatCollide)
{
	constexpr uint64_t kTimes = 0x9e3779b97f4a7c15, kNames = 2000;
	uint64_t inverse = kTimes;

	for (int i = 0; i < 6; i++)
		inverse *= 2 - kTimes * inverse;
	ASSERT_EQ(inverse * kTimes, 1u);
	for (uint64_t i = 1; i <= kNames; i++) {
		w_cm m = cm(1, 3, (i * inverse) ^ uint64_t{ 1 } << 48);

		peer->send_by(m, W_CM_PEER, kTo3);
		ASSERT_TRUE(peer->consumed(32));
		peer->drain();
	}
	ASSERT_TRUE(peer->consumed());
	struct ag_usage u = {};
	fabric.pause(0);
	ag_usage(fabric.agent(0), &u);
	EXPECT_GE(u.circuits, kNames);
	EXPECT_LE(u.longest_circuits, 40u);
}

// It has more than its share of circuits, in names of peers that wait for their own: it is refused, others are not.
TEST_F(Liar, AsksForAllCircuits)
{
	uint32_t refusals = 0;

	for (uint64_t i = 1; i <= kCircuits + 100; i++) {
		w_cm m = cm(1, i % 2 ? 3 : 2, i);

		peer->send_by(m, W_CM_PEER, i % 2 ? kTo3 : kTo2);
		ASSERT_TRUE(peer->consumed(32));
		peer->drain([&](const w_cm &r) {
			refusals += r.hdr.type == W_CM_REFUSE && r.status == W_NO_RESOURCE;
		});
	}
	EXPECT_TRUE(eventually([&] {
		peer->drain([&](const w_cm &r) {
			refusals += r.hdr.type == W_CM_REFUSE && r.status == W_NO_RESOURCE;
		});
		return refusals >= 100;
	})) << refusals;
	Client requester(fabric, 3);
	requester.connection(W_CONNECT, 9, address(3, "k"), address(1, "x"));
	w_cm next = next_record();
	while (next.hdr.type == W_CM_REFUSE)
		next = next_record();
	EXPECT_EQ(next.hdr.type, W_CM_REQ) << "the other neighbour has its part";
	requester.hang_up();
	others_go_on();
	leaves_nothing();
	EXPECT_EQ(dropped(0), 0u);
	struct ag_usage u = {};
	ag_usage(fabric.agent(0), &u);
	EXPECT_GE(u.relay_refused, 100u);
}

// Payload buffers of no size, and of sizes for which no host has room: the relay passes on what it has
// room for.
TEST_F(Liar, AsksForRings)
{
	uint64_t name = 100;

	for (uint32_t payload : { 0u, 1u, 4097u, 1u << 30, 0xffffffffu, 64u << 20, 16384u }) {
		Client server(fabric, 3);
		w_cm m = cm(1, 3, ++name);

		m.geometry.payload_bytes = payload;
		server.listen(1, address(3, "near"));
		server.sync();
		peer->send_by(m, W_CM_REQ, kTo3);
		Msg arrived = server.recv();
		ASSERT_EQ(arrived.type, W_ARRIVED);
		server.accept(arrived.as<w_arrived>().conn, 5);
		m = next_record();
		ASSERT_EQ(m.hdr.type, W_CM_ACCEPT);
		EXPECT_EQ(m.geometry.payload_bytes, 8192u) << "asked for " << payload;
		server.hang_up();
		EXPECT_EQ(next_record().hdr.type, W_CM_CLOSE);
		m = cm(1, 3, name, m.src_conn);
		peer->send_by(m, W_CM_CLOSE, kTo3);
	}
	others_go_on();
	leaves_nothing();
	EXPECT_EQ(dropped(0), 0u);
}

// It is larger than was requested.
TEST_F(Liar, AcceptsWithALongRing)
{
	for (uint32_t payload : { 16384u, 64u << 20 }) {
		Client c(fabric, 3);
		w_cm req, m;

		c.connection(W_CONNECT, 5, address(3, "c"), address(1, "s"));
		req = next_record();
		ASSERT_EQ(req.hdr.type, W_CM_REQ);
		EXPECT_EQ(req.geometry.payload_bytes, 8192u);
		m = cm(1, 3, 7, req.src_conn);
		m.geometry.payload_bytes = payload;
		m.geometry.slice_len = w_slice_bytes(8, payload);
		m.geometry.slice_id = peer->offer(m.geometry.slice_len).id;
		peer->send_by(m, W_CM_ACCEPT, kTo3);
		refused(c.recv(), 5, W_NO_RESOURCE);
		EXPECT_EQ(next_record().hdr.type, W_CM_CANCEL);
	}
	others_go_on();
	leaves_nothing();
}

TEST_F(Liar, AcceptsWithMoreSlotsThanWereRequested)
{
	Client c(fabric, 3);
	w_cm req, m;

	c.connection(W_CONNECT, 5, address(3, "c"), address(1, "s"));
	req = next_record();
	ASSERT_EQ(req.hdr.type, W_CM_REQ);
	EXPECT_EQ(req.geometry.slots, 8u);
	m = cm(1, 3, 7, req.src_conn);
	m.geometry.slots = 4096;
	m.geometry.slice_len = w_slice_bytes(4096, m.geometry.payload_bytes);
	m.geometry.slice_id = peer->offer(m.geometry.slice_len).id;
	peer->send_by(m, W_CM_ACCEPT, kTo3);
	refused(c.recv(), 5, W_NO_RESOURCE);
	EXPECT_EQ(next_record().hdr.type, W_CM_CANCEL);
	others_go_on();
	leaves_nothing();
}

// No host lacks room: the end behaves as if the path had been lost.
TEST_F(Liar, AcceptsWithASliceThatNeverComes)
{
	Client c(fabric, 3);
	w_cm req, m;

	c.connection(W_CONNECT, 5, address(3, "c"), address(1, "s"));
	req = next_record();
	ASSERT_EQ(req.hdr.type, W_CM_REQ);
	m = cm(1, 3, 7, req.src_conn);
	m.geometry.slice_len = w_slice_bytes(m.geometry.slots, m.geometry.payload_bytes);
	m.geometry.slice_id = 4242;
	peer->send_by(m, W_CM_ACCEPT, kTo3);
	refused(c.recv(), 5, W_NOT_REACHABLE);
	m = next_record();
	EXPECT_EQ(m.hdr.type, W_CM_CANCEL);
	EXPECT_EQ(m.status, static_cast<uint32_t>(W_NOT_REACHABLE));
	others_go_on();
	leaves_nothing();
}

// It lives, but does not read: hosts that send to it are delayed for a while only.
TEST_F(Liar, ReadsNothingAndBeats)
{
	Client server(fabric, 0);
	w_cm m;

	ASSERT_NO_FATAL_FAILURE(connect(server, &m));
	uint64_t conn = m.dst_conn;
	for (uint64_t i = 0; i < 5000; i++) {
		m = cm(1, 0, 100 + i);
		peer->send_by(m, W_CM_REQ, path_of({ kLeft }));
		ASSERT_TRUE(peer->consumed(32));
	}
	ASSERT_TRUE(peer->consumed());
	w_tell t = {};
	t.conn = conn;
	server.send(t, W_TELL);
	server.token(W_UNLISTEN, 9);
	EXPECT_TRUE(eventually([&] {
		if (peer->up() && peer->consumed(32)) {
			m = cm(1, 0, 1);
			m.status = 0;
			peer->send(m, W_CM_HEARTBEAT);
		}
		for (Msg told = server.recv_any(20); told.type > 0; told = server.recv_any(0)) {
			if (told.type == W_UNLISTENED)
				return true;
		}
		return false;
	})) << "the process is not heard any more";
	server.hang_up();
	others_go_on();
	leaves_nothing();
}

// It does not read answers: it is cut off, and no other host is.
TEST_F(Liar, ReadsNoAnswers)
{
	uint64_t i;

	for (i = 1; i < 100000 && peer->up(); i++) {
		w_cm m = cm(1, 3, i);

		peer->send_by(m, W_CM_REQ, kTo3);
		ASSERT_TRUE(peer->consumed(60));
	}
	EXPECT_LT(i, 100000u);
	others_go_on();
	leaves_nothing();
}

} // namespace
