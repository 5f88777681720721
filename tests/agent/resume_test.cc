// SPDX-License-Identifier: BSD-2-Clause
// Continuing over another path, record by record: records that come late, cross, or are left
// unanswered.
#include <ctime>
#include <memory>

#include "agent_fixture.h"
#include "neighbour.h"

using namespace agent_test;

namespace {

void send_suspended_of(Client &c, uint64_t conn)
{
	w_suspended m = {};

	m.conn = conn;
	c.send(m, W_SUSPENDED);
}

// Host 0 of a ring of three has an agent, and is connected to host 1, which the test plays.
class Resumed : public ::testing::Test {
protected:
	Resumed() : fabric(3, nullptr, 1), peer(std::make_unique<Neighbour>(fabric)), c(fabric, 0)
	{
		peer->join();
		wait_link(fabric, 0, 1);
	}

	~Resumed() override
	{
		c.hang_up();
		EXPECT_TRUE(eventually([&] {
			peer->drain([&](const w_cm &m) {
				if (m.hdr.type == W_CM_CLOSE)
					send_record(W_CM_CLOSE, m.epoch, W_LOST_CLOSED);
			});
			return held(fabric, 0) == 0;
		}));
	}

	// Sends a record of host 1's end.  The slice that it names exists, if it names one.
	void send_record(w_ctl_type type, uint32_t epoch, uint32_t status = 0,
			 uint32_t no_slice = 0)
	{
		w_cm m = {};

		m.dst_host = 0;
		m.src_conn = kConn;
		m.dst_conn = conn;
		m.status = status;
		m.epoch = epoch;
		m.attrs = attributes();
		m.remote = address(0, "s");
		m.local = address(1, "c");
		if (type == W_CM_ACCEPT || type == W_CM_CONFIRM)
			m.geometry = slice(no_slice);
		peer->send(m, type);
	}

	// A link-state update of another host, whose links have changed or have not: it counts as new in
	// either case.
	void send_link_state()
	{
		timespec ts;
		w_cm_links m = {};

		clock_gettime(CLOCK_REALTIME, &ts);
		w_ctl_init(&m, W_CM_LINKS, sizeof(m));
		m.src_host = 1;
		m.origin = 2;
		m.up = 0xff;
		m.serial = static_cast<uint64_t>(ts.tv_sec) * 1000000000;
		peer->send(&m, sizeof(m), sizeof(m));
	}

	/* The next record; an end that waits for the first end's request sends QUERY again and again. */
	void expect_record(w_ctl_type type, uint32_t epoch)
	{
		do
			ASSERT_TRUE(peer->recv(&cm)) << "no record of type " << type;
		while (cm.hdr.type == W_CM_QUERY && type != W_CM_QUERY);
		ASSERT_EQ(cm.hdr.type, type);
		EXPECT_EQ(cm.epoch, epoch);
		EXPECT_EQ(cm.dst_conn, kConn);
	}

	void expect_message(w_ctl_type type)
	{
		msg = c.recv();
		ASSERT_EQ(msg.type, type);
		ASSERT_EQ(type == W_RESUMED ? msg.as<w_linked>().conn : msg.as<w_conn>().conn,
			  conn);
	}

	// Host 1 requests the connection, and host 0 is the other end.
	void connect_as_other_end()
	{
		c.listen(1, address(0, "s"));
		c.sync();
		conn = 0;
		send_record(W_CM_REQ, 0);
		Msg arrived = c.recv();
		ASSERT_EQ(arrived.type, W_ARRIVED);
		conn = arrived.as<w_arrived>().conn;
		c.accept(conn, 3);
		expect_record(W_CM_ACCEPT, 0);
		send_record(W_CM_CONFIRM, 0);
		Msg linked = c.recv();
		ASSERT_EQ(linked.type, W_LINKED);
		ASSERT_EQ(linked.as<w_linked>().resumable, 1u);
	}

	// Host 0 requests the connection, and is the first end.
	void connect_as_first_end()
	{
		c.connection(W_CONNECT, 2, address(0, "c"), address(1, "s"));
		ASSERT_TRUE(peer->recv(&cm));
		ASSERT_EQ(cm.hdr.type, W_CM_REQ);
		conn = cm.src_conn;
		send_record(W_CM_ACCEPT, 0);
		Msg linked = c.recv();
		ASSERT_EQ(linked.type, W_LINKED);
		ASSERT_EQ(linked.as<w_linked>().resumable, 1u);
		c.conn(W_CONFIRM, conn);
		c.sync();
		expect_record(W_CM_CONFIRM, 0);
	}

	void send_suspended() { send_suspended_of(c, conn); }

	// Connects up to the ACCEPT of epoch 1 by host 0.
	void accepted_again()
	{
		connect_as_other_end();
		send_record(W_CM_RESUME, 1);
		expect_message(W_SUSPEND);
		send_suspended();
		expect_record(W_CM_CLOSE, 0);
		expect_record(W_CM_ACCEPT, 1);
	}

	static constexpr uint64_t kConn = 77;

	Fabric fabric;
	std::unique_ptr<Neighbour> peer;
	Client c;
	uint64_t conn = 0;
	w_cm cm = {};
	Msg msg;

private:
	w_geometry slice(uint32_t none)
	{
		w_geometry g = {};

		g.slots = 8;
		g.payload_bytes = 4096;
		g.slice_len = 12288;
		g.db_bit = 3;
		g.slice_id = none != 0 ? none : peer->offer(g.slice_len).id;
		return g;
	}
};

// The later one of two requests counts, in whatever order they come.
TEST_F(Resumed, ALateRequestDoesNotTakeTheLatersPlace)
{
	connect_as_other_end();
	send_record(W_CM_RESUME, 2);
	send_record(W_CM_RESUME, 1);
	expect_record(W_CM_REFUSE, 1);
	expect_message(W_SUSPEND);
	send_suspended();
	expect_record(W_CM_CLOSE, 0);
	expect_record(W_CM_ACCEPT, 2);
	send_record(W_CM_CLOSE, 0, W_LOST_LINK);
	send_record(W_CM_CONFIRM, 2);
	expect_message(W_RESUMED);
}

// A path that is accepted and not confirmed is left like any other: relays wait for that.
TEST_F(Resumed, AnAcceptedPathIsLeftForALaterOne)
{
	accepted_again();
	send_record(W_CM_RESUME, 2);
	expect_record(W_CM_CLOSE, 1);
	expect_record(W_CM_ACCEPT, 2);
	send_record(W_CM_CONFIRM, 1);
	send_record(W_CM_CLOSE, 1, W_LOST_LINK);
	send_record(W_CM_CONFIRM, 2);
	expect_message(W_RESUMED);
}

TEST_F(Resumed, AnAcceptedPathThatIsClosedIsLeft)
{
	accepted_again();
	send_record(W_CM_CLOSE, 1, W_LOST_LINK);
	expect_record(W_CM_CLOSE, 1);
	send_record(W_CM_RESUME, 2);
	expect_record(W_CM_ACCEPT, 2);
	send_record(W_CM_CONFIRM, 2);
	expect_message(W_RESUMED);
}

// The first end may have confirmed it by then, and still learns of it.
TEST_F(Resumed, WhoHasAcceptedAndDisconnectsCloses)
{
	accepted_again();
	c.conn(W_CLOSE, conn);
	expect_record(W_CM_CLOSE, 1);
	EXPECT_EQ(cm.status, static_cast<uint32_t>(W_LOST_CLOSED));
	send_record(W_CM_CONFIRM, 1);
	send_record(W_CM_CLOSE, 1, W_LOST_CLOSED);
}

// The update about the missing link comes before the refusal.
TEST_F(Resumed, WhoIsRefusedAfterTheNewsAsksAgain)
{
	connect_as_first_end();
	send_record(W_CM_CLOSE, 0, W_LOST_LINK);
	expect_message(W_SUSPEND);
	send_suspended();
	expect_record(W_CM_CLOSE, 0);
	expect_record(W_CM_RESUME, 1);
	send_link_state();
	send_record(W_CM_REFUSE, 1, W_NOT_REACHABLE);
	expect_record(W_CM_RESUME, 2);
	send_record(W_CM_ACCEPT, 2);
	expect_message(W_RESUMED);
	c.conn(W_CONFIRM, conn);
	expect_record(W_CM_CONFIRM, 2);
}

// The window of a relay or of the other end may be full of slices that others are about to give back.
TEST_F(Resumed, WhoFindsNoRoomAsksAgain)
{
	connect_as_first_end();
	send_record(W_CM_CLOSE, 0, W_LOST_LINK);
	expect_message(W_SUSPEND);
	send_suspended();
	expect_record(W_CM_CLOSE, 0);
	for (uint32_t epoch = 1; epoch <= 3; epoch++) {
		expect_record(W_CM_RESUME, epoch);
		send_record(W_CM_REFUSE, epoch, W_NO_RESOURCE);
	}
	expect_record(W_CM_RESUME, 4);
	send_record(W_CM_ACCEPT, 4);
	expect_message(W_RESUMED);
	c.conn(W_CONFIRM, conn);
	expect_record(W_CM_CONFIRM, 4);
}

// Only an end that does not know the connection ends it.
TEST_F(Resumed, WhoIsNotKnownIsLost)
{
	connect_as_first_end();
	send_record(W_CM_CLOSE, 0, W_LOST_LINK);
	expect_message(W_SUSPEND);
	send_suspended();
	expect_record(W_CM_CLOSE, 0);
	expect_record(W_CM_RESUME, 1);
	send_record(W_CM_REFUSE, 1, W_NO_MATCH);
	expect_message(W_LOST);
}

// The slice was lost with the path, or there is no descriptor for it: the path is left, and another is
// taken.
TEST_F(Resumed, AConfirmedSliceThatNeverComesIsLeft)
{
	accepted_again();
	send_record(W_CM_CONFIRM, 1, 0, 4242);
	expect_record(W_CM_CLOSE, 1);
	EXPECT_EQ(cm.status, static_cast<uint32_t>(W_LOST_LINK));
	send_record(W_CM_RESUME, 2);
	expect_record(W_CM_ACCEPT, 2);
	send_record(W_CM_CONFIRM, 2);
	expect_message(W_RESUMED);
}

// A process that could not map the new path is suspended again when its agent finds out why.
TEST_F(Resumed, WhoDoesNotConfirmIsSuspendedAgain)
{
	accepted_again();
	send_record(W_CM_CONFIRM, 1);
	expect_message(W_RESUMED);
	send_record(W_CM_RESUME, 2);
	expect_message(W_SUSPEND);
	send_suspended();
	expect_record(W_CM_CLOSE, 1);
	expect_record(W_CM_ACCEPT, 2);
	send_record(W_CM_CONFIRM, 2);
	expect_message(W_RESUMED);
	c.conn(W_CONFIRM, conn);
}

// Or it is lost in the end, and the first end is told.
TEST_F(Resumed, WhoNeverConfirmsIsLost)
{
	accepted_again();
	send_record(W_CM_CONFIRM, 1);
	expect_message(W_RESUMED);
	expect_message(W_LOST);
	expect_record(W_CM_CLOSE, 1);
	EXPECT_EQ(cm.status, static_cast<uint32_t>(W_LOST_LINK));
}

// A host that requests one path after another and leaves none does not get all of the window, and
// continues when it leaves some.
TEST_F(Resumed, WhoLeavesNoPathIsRefusedOthers)
{
	uint64_t before = window_used(fabric, 0), slice = slice_bytes(fabric);
	uint32_t epoch = 1;

	accepted_again();
	while (++epoch < 100) {
		send_record(W_CM_RESUME, epoch);
		do
			ASSERT_TRUE(peer->recv(&cm)) << "epoch " << epoch;
		while (cm.hdr.type == W_CM_CLOSE || cm.hdr.type == W_CM_QUERY);
		if (cm.hdr.type != W_CM_ACCEPT)
			break;
	}
	ASSERT_EQ(cm.hdr.type, W_CM_REFUSE);
	EXPECT_EQ(cm.status, static_cast<uint32_t>(W_NO_RESOURCE));
	EXPECT_LE(window_used(fabric, 0), before + 17 * slice);
	for (uint32_t i = 0; i < epoch; i++)
		send_record(W_CM_CLOSE, i, W_LOST_LINK);
	send_record(W_CM_RESUME, epoch + 1);
	expect_record(W_CM_ACCEPT, epoch + 1);
	send_record(W_CM_CONFIRM, epoch + 1);
	expect_message(W_RESUMED);
}

// No path is left by which to tell the other end, which waits for this end's request.
TEST_F(Resumed, WhoIsClosedWithoutAPathHasAFinalMessage)
{
	connect_as_first_end();
	send_record(W_CM_CLOSE, 0, W_LOST_LINK);
	expect_message(W_SUSPEND);
	send_suspended();
	expect_record(W_CM_CLOSE, 0);
	expect_record(W_CM_RESUME, 1);
	EXPECT_EQ(cm.status, 0u);
	send_record(W_CM_REFUSE, 1, W_NOT_REACHABLE);
	c.conn(W_CLOSE, conn);
	// The agent may have sent the request once more by then.
	do
		ASSERT_TRUE(peer->recv(&cm));
	while (cm.status == 0 || cm.hdr.type == W_CM_CANCEL);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(cm.hdr.type, W_CM_RESUME);
		EXPECT_EQ(cm.status, static_cast<uint32_t>(W_LOST_CLOSED));
		EXPECT_EQ(held(fabric, 0), 1u) << "until the other end knows";
		send_record(W_CM_REFUSE, cm.epoch, W_NOT_REACHABLE);
		ASSERT_TRUE(peer->recv(&cm));
	}
	// An acceptance of a final message names nothing.
	send_record(W_CM_ACCEPT, cm.epoch);
	send_record(W_CM_REFUSE, cm.epoch, W_NO_MATCH);
	EXPECT_TRUE(eventually([&] { return held(fabric, 0) == 0; }));
}

TEST_F(Resumed, WhoDiesWithoutAPathHasAFinalMessage)
{
	connect_as_first_end();
	send_record(W_CM_CLOSE, 0, W_LOST_LINK);
	expect_message(W_SUSPEND);
	c.hang_up();
	expect_record(W_CM_CLOSE, 0);
	expect_record(W_CM_RESUME, 1);
	EXPECT_EQ(cm.status, static_cast<uint32_t>(W_LOST_PROCESS));
	send_record(W_CM_REFUSE, 1, W_NO_MATCH);
}

// The relay that was to pass the record on died.
TEST_F(Resumed, AClosingThatIsLostIsSaidAgain)
{
	connect_as_first_end();
	c.conn(W_CLOSE, conn);
	expect_record(W_CM_CLOSE, 0);
	EXPECT_EQ(cm.status, static_cast<uint32_t>(W_LOST_CLOSED));
	send_record(W_CM_CLOSE, 0, W_LOST_LINK);
	expect_record(W_CM_RESUME, 1);
	EXPECT_EQ(cm.status, static_cast<uint32_t>(W_LOST_CLOSED));
	send_record(W_CM_REFUSE, 1, W_NO_MATCH);
	EXPECT_TRUE(eventually([&] { return held(fabric, 0) == 0; }));
}

// Nor does it wait for ever for a message from the other end.
TEST_F(Resumed, AFinalMessageThatNobodyHears)
{
	connect_as_first_end();
	c.conn(W_CLOSE, conn);
	expect_record(W_CM_CLOSE, 0);
	send_record(W_CM_CLOSE, 0, W_LOST_LINK);
	expect_record(W_CM_RESUME, 1);
	EXPECT_TRUE(eventually([&] { return held(fabric, 0) == 0; }));
	expect_record(W_CM_CANCEL, 1);
}

// The other end, which finds the path again just before it would give up as well, waits for the
// request.
TEST_F(Resumed, WhoFindsNoPathInTimeHasAFinalMessage)
{
	connect_as_first_end();
	peer.reset();
	expect_message(W_SUSPEND);
	send_suspended();
	expect_message(W_LOST);
	EXPECT_EQ(msg.as<w_lost_msg>().reason, static_cast<uint32_t>(W_LOST_LINK));
	peer = std::make_unique<Neighbour>(fabric);
	peer->join();
	ASSERT_TRUE(peer->recv(&cm)) << "no final message";
	ASSERT_EQ(cm.hdr.type, W_CM_RESUME);
	EXPECT_EQ(cm.dst_conn, kConn);
	EXPECT_EQ(cm.status, static_cast<uint32_t>(W_LOST_LINK));
	send_record(W_CM_REFUSE, cm.epoch, W_NO_MATCH);
	EXPECT_TRUE(eventually([&] { return held(fabric, 0) == 0; }));
}

// An end that waits for a request sends QUERY to find out if one will come; the answer decides for its process.
TEST_F(Resumed, WhoWaitsForAnEndThatNobodyKnowsIsLost)
{
	connect_as_other_end();
	send_record(W_CM_CLOSE, 0, W_LOST_LINK);
	expect_message(W_SUSPEND);
	send_suspended();
	expect_record(W_CM_CLOSE, 0);
	expect_record(W_CM_QUERY, 0);
	EXPECT_EQ(cm.src_conn, conn);
	expect_record(W_CM_QUERY, 0);
	send_record(W_CM_UNKNOWN, 0);
	expect_message(W_LOST);
	EXPECT_EQ(msg.as<w_lost_msg>().reason, static_cast<uint32_t>(W_LOST_LINK));
	EXPECT_TRUE(eventually([&] { return held(fabric, 0) == 0; }));
	EXPECT_LE(peer->drain(), 40u) << "it asked on, until its time was over";
}

// The end that sent the request died before the answer, and no link that this host sees was lost.
TEST_F(Resumed, WhoHasAcceptedAndWaitsForNobodyIsLost)
{
	accepted_again();
	expect_record(W_CM_QUERY, 1);
	send_record(W_CM_UNKNOWN, 1);
	expect_message(W_LOST);
	EXPECT_EQ(msg.as<w_lost_msg>().reason, static_cast<uint32_t>(W_LOST_LINK));
	expect_record(W_CM_CLOSE, 1);
	EXPECT_LE(peer->drain(), 40u) << "it asked on, until its time was over";
	send_record(W_CM_CLOSE, 1, W_LOST_LINK);
}

// It goes on waiting, and gets the request in the end.
TEST_F(Resumed, WhoWaitsForAnEndThatIsKnownGoesOn)
{
	connect_as_other_end();
	send_record(W_CM_CLOSE, 0, W_LOST_LINK);
	expect_message(W_SUSPEND);
	send_suspended();
	expect_record(W_CM_CLOSE, 0);
	expect_record(W_CM_QUERY, 0);
	send_record(W_CM_RESUME, 1);
	expect_record(W_CM_ACCEPT, 1);
	send_record(W_CM_CONFIRM, 1);
	expect_message(W_RESUMED);
	c.conn(W_CONFIRM, conn);
}

// Only an end that waits may be told this; and no end of another name is lost.
TEST_F(Resumed, WhoDoesNotWaitIsNotUnknown)
{
	connect_as_other_end();
	send_record(W_CM_UNKNOWN, 0);
	send_record(W_CM_RESUME, 1);
	send_record(W_CM_UNKNOWN, 1);
	expect_message(W_SUSPEND);
	send_record(W_CM_UNKNOWN, 1);
	ASSERT_TRUE(peer->consumed());
	send_suspended();
	expect_record(W_CM_CLOSE, 0);
	expect_record(W_CM_ACCEPT, 1);
	for (uint64_t other : { conn + 1, conn + (uint64_t{ 1 } << 32), ~conn }) {
		std::swap(conn, other);
		send_record(W_CM_UNKNOWN, 1);
		std::swap(conn, other);
	}
	send_record(W_CM_CONFIRM, 1);
	expect_message(W_RESUMED);
	send_record(W_CM_UNKNOWN, 1);
	c.conn(W_CONFIRM, conn);
	c.sync();
	send_record(W_CM_UNKNOWN, 1);
	ASSERT_TRUE(peer->consumed());
	send_record(W_CM_RESUME, 2);
	expect_message(W_SUSPEND);
	send_suspended();
	expect_record(W_CM_CLOSE, 1);
	expect_record(W_CM_ACCEPT, 2);
}

// The first end sends its request by itself, and is refused by a host that does not know it.
TEST_F(Resumed, AFirstEndIsNotUnknown)
{
	connect_as_first_end();
	send_record(W_CM_CLOSE, 0, W_LOST_LINK);
	expect_message(W_SUSPEND);
	send_suspended();
	expect_record(W_CM_CLOSE, 0);
	expect_record(W_CM_RESUME, 1);
	send_record(W_CM_REFUSE, 1, W_NO_RESOURCE);
	send_record(W_CM_UNKNOWN, 1);
	expect_record(W_CM_RESUME, 2);
	send_record(W_CM_ACCEPT, 2);
	expect_message(W_RESUMED);
	c.conn(W_CONFIRM, conn);
	expect_record(W_CM_CONFIRM, 2);
}

// An agent is silent about the ends that it knows.
TEST_F(Resumed, OnlyWhatIsNotThereIsUnknown)
{
	connect_as_first_end();
	send_record(W_CM_QUERY, 0);
	send_record(W_CM_QUERY, 7);
	uint64_t known = conn;
	conn += uint64_t{ 1 } << 32;
	send_record(W_CM_QUERY, 3);
	expect_record(W_CM_UNKNOWN, 3);
	EXPECT_EQ(cm.src_conn, conn);
	conn = known;
	send_record(W_CM_CLOSE, 0, W_LOST_CLOSED);
	expect_message(W_LOST);
	c.conn(W_CLOSE, conn);
	expect_record(W_CM_CLOSE, 0);
	send_record(W_CM_QUERY, 0);
	expect_record(W_CM_UNKNOWN, 0);
	EXPECT_EQ(cm.src_conn, conn);
}

// The end that is told, on any host.
TEST_F(Resumed, WhoHearsTheFinalMessageIsLost)
{
	connect_as_other_end();
	send_record(W_CM_RESUME, 1, W_LOST_CLOSED);
	expect_message(W_SUSPEND);
	send_suspended();
	expect_record(W_CM_CLOSE, 0);
	expect_record(W_CM_REFUSE, 1);
	EXPECT_EQ(cm.status, static_cast<uint32_t>(W_NO_MATCH));
	expect_message(W_LOST);
	EXPECT_EQ(msg.as<w_lost_msg>().reason, static_cast<uint32_t>(W_LOST_CLOSED));
	send_record(W_CM_CLOSE, 0, W_LOST_CLOSED);
}

TEST_F(Resumed, WhoHearsTheFinalMessageForAPathIsLost)
{
	accepted_again();
	send_record(W_CM_RESUME, 2, W_LOST_PROCESS);
	expect_record(W_CM_CLOSE, 1);
	expect_record(W_CM_REFUSE, 2);
	expect_message(W_LOST);
	EXPECT_EQ(msg.as<w_lost_msg>().reason, static_cast<uint32_t>(W_LOST_PROCESS));
	send_record(W_CM_CLOSE, 0, W_LOST_CLOSED);
	send_record(W_CM_CLOSE, 1, W_LOST_CLOSED);
}

// The end that sent the request waits for an answer, and so do the relays.
TEST_F(Resumed, WhoIsAskedAndLeavesRefuses)
{
	connect_as_other_end();
	send_record(W_CM_RESUME, 1);
	expect_message(W_SUSPEND);
	c.conn(W_CLOSE, conn);
	expect_record(W_CM_CLOSE, 0);
	expect_record(W_CM_REFUSE, 1);
	EXPECT_EQ(cm.status, static_cast<uint32_t>(W_NO_MATCH));
	send_record(W_CM_CLOSE, 0, W_LOST_LINK);
}

// From end to end: host 0 has a connection to another host of a ring, by way of its right.
class ResumedRing : public ::testing::Test {
protected:
	void up(unsigned hosts, unsigned to = 1, const Fabric::Tweak &tweak = nullptr)
	{
		down();
		fabric = std::make_unique<Fabric>(hosts, [tweak](ag_cfg &cfg) {
			cfg.relay_threads = 1;
			if (tweak)
				tweak(cfg);
		});
		wait_links(*fabric);
		wait_ways(*fabric);
		c = std::make_unique<Client>(*fabric, 0);
		s = std::make_unique<Client>(*fabric, to);
	}

	void down()
	{
		c.reset();
		s.reset();
		fabric.reset();
	}

	void TearDown() override { down(); }

	void plug_right(bool plug, unsigned host = 0)
	{
		Client tool(*fabric, host, W_KIND_TOOL);
		w_admin m = {};

		m.verb = plug ? W_ADMIN_LINK_UP : W_ADMIN_LINK_DOWN;
		snprintf(m.name, sizeof(m.name), "right");
		tool.send(m, W_ADMIN);
		ASSERT_EQ(tool.recv().type, W_DONE);
	}

	// Both processes are to leave their path.
	void cut()
	{
		plug_right(false);
		ASSERT_EQ(c->recv().type, W_SUSPEND);
		ASSERT_EQ(s->recv().type, W_SUSPEND);
	}

	void both_suspended(const Pair &p)
	{
		send_suspended_of(*c, p.client_conn);
		send_suspended_of(*s, p.server_conn);
	}

	void closed(Client &end)
	{
		Msg told = end.recv();

		ASSERT_EQ(told.type, W_LOST);
		EXPECT_EQ(told.as<w_lost_msg>().reason, static_cast<uint32_t>(W_LOST_CLOSED))
			<< "not W_LOST_LINK, which would come with time";
	}

	void leaves_nothing()
	{
		for (unsigned i = 0; i < fabric->hosts(); i++)
			EXPECT_TRUE(eventually([&] { return held(*fabric, i) == 0; }))
				<< "host " << i;
	}

	std::unique_ptr<Fabric> fabric;
	std::unique_ptr<Client> c, s;
};

TEST_F(ResumedRing, TheFirstEndLearnsThatTheOtherLeft)
{
	up(4);
	Pair p = join(*c, *s);

	cut();
	both_suspended(p);
	ASSERT_EQ(c->recv().type, W_RESUMED);
	s->conn(W_CLOSE, p.server_conn);
	c->conn(W_CONFIRM, p.client_conn);
	closed(*c);
	c->conn(W_CLOSE, p.client_conn);
	leaves_nothing();
}

// The first end is closed while it has no path: the other learns that by the path over the relays.
TEST_F(ResumedRing, TheOtherEndLearnsThatTheFirstLeft)
{
	up(4);
	Pair p = join(*c, *s);

	cut();
	c->conn(W_CLOSE, p.client_conn);
	send_suspended_of(*s, p.server_conn);
	closed(*s);
	leaves_nothing();
}

// The agent ends while no host has the final message: the leak sanitizer reports memory that is not
// freed.
TEST_F(ResumedRing, WhoLeavesWithAFinalMessageIsFreed)
{
	up(3);
	join(*c, *s);
	/* By no path can the agent of host 1 tell that it leaves. */
	plug_right(false, 1);
	cut();
	fabric->stop(1);
	c.reset();
	/* Without a path it counts for the host itself.  It may move to that while all ports are queried. */
	ASSERT_TRUE(eventually([&] {
		Client tool(*fabric, 0, W_KIND_TOOL);
		return number_in(tool.item(W_LIST_PORTS, 0), "conns") == 1;
	}));
	fabric->stop(0);
}

// The shorter path has come up, the longer one is left for it, and the shorter one has no room.
TEST_F(ResumedRing, WhoFindsNoRoomOnTheShorterPathTakesTheLonger)
{
	up(5, 2, [](ag_cfg &cfg) {
		if (cfg.host_id == 1)
			cfg.window_bytes = 4096 + 64 * 512;
	});
	plug_right(false);
	ASSERT_TRUE(eventually([&] { return c->route(2).hops == 3; }));
	wait_ways(*fabric);
	Pair p = join(*c, *s);
	ASSERT_EQ(p.client_linked.as<w_linked>().hops, 3u);
	plug_right(true);
	ASSERT_EQ(c->recv().type, W_SUSPEND);
	send_suspended_of(*c, p.client_conn);
	ASSERT_EQ(s->recv().type, W_SUSPEND);
	send_suspended_of(*s, p.server_conn);
	Msg resumed = c->recv();
	ASSERT_EQ(resumed.type, W_RESUMED);
	EXPECT_EQ(resumed.as<w_linked>().hops, 3u);
	c->conn(W_CONFIRM, p.client_conn);
	ASSERT_EQ(s->recv().type, W_RESUMED);
}

// Neighbours of different geometry agree on one between which a relay can stand.
TEST_F(ResumedRing, NeighboursOfUnlikeGeometry)
{
	for (unsigned longer : { 0u, 1u }) {
		up(3, 1, [longer](ag_cfg &cfg) {
			if (cfg.host_id == longer) {
				cfg.slots = 16;
				cfg.payload_bytes = 16384;
			}
		});
		Pair p = join(*c, *s);

		EXPECT_EQ(p.client_linked.as<w_linked>().inbound.payload_bytes, 4096u);
		EXPECT_EQ(p.client_linked.as<w_linked>().outbound.payload_bytes, 4096u);
		cut();
		both_suspended(p);
		ASSERT_EQ(c->recv().type, W_RESUMED);
		c->conn(W_CONFIRM, p.client_conn);
		ASSERT_EQ(s->recv().type, W_RESUMED) << "host " << longer << " has more";
	}
}

// A connection for streams continues over a relay whose own connections have short payload buffers, with
// the geometry that it had.
TEST_F(ResumedRing, AConnectionForStreamsKeepsItsGeometry)
{
	up(3, 1, [](ag_cfg &cfg) {
		cfg.window_bytes = 128 << 20;
		if (cfg.host_id != 2)
			cfg.slots = cfg.payload_bytes = 0;
	});
	Pair p = join(*c, *s);

	ASSERT_EQ(p.client_linked.as<w_linked>().inbound.payload_bytes, 4u << 20);
	cut();
	both_suspended(p);
	for (Client *end : { c.get(), s.get() }) {
		Msg resumed = end->recv();

		ASSERT_EQ(resumed.type, W_RESUMED);
		EXPECT_EQ(resumed.as<w_linked>().hops, 2u);
		EXPECT_EQ(resumed.as<w_linked>().inbound.payload_bytes, 4u << 20);
		EXPECT_EQ(resumed.as<w_linked>().outbound.payload_bytes, 4u << 20);
		if (end == c.get())
			c->conn(W_CONFIRM, p.client_conn);
	}
}

} // namespace
