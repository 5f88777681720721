// SPDX-License-Identifier: BSD-2-Clause
// Tests an agent when the kernel has no room for a message, when time has passed, and when the calendar is set.
// Time is virtual (turns.h), and the linker puts the function below in the place of the kernel's sendmsg().
#include "agent_fixture.h"

extern "C" {
#include "ag_client.h"
#include "ag_conn.h"

ssize_t __real_sendmsg(int sock, const msghdr *mh, int flags);
ssize_t __wrap_sendmsg(int sock, const msghdr *mh, int flags);
}

using namespace agent_test;

namespace {

constexpr int64_t kSecond = 1000000000;

int no_room; // the error of messages with descriptors; 0: there is room
unsigned refused_sends;

// Agents take their turns until none has anything to do now.
void settle()
{
	while (Turns::take(u_now_ns()))
		;
}

// Agents take their turns meanwhile.
void pass(int64_t ns)
{
	u_poll(nullptr, 0, u_now_ns() + ns);
	settle();
}

int connected(const Fabric &f)
{
	sockaddr_un un;
	socklen_t len = w_agent_addr(&un, geteuid(), f.name().c_str(), 0);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	EXPECT_EQ(connect(sock, reinterpret_cast<sockaddr *>(&un), len), 0);
	return sock;
}

bool hung_up(int sock)
{
	pollfd p = { sock, POLLIN, 0 };
	char byte;

	return poll(&p, 1, 0) == 1 && recv(sock, &byte, 1, 0) == 0;
}

// ---- connections that send nothing ----

TEST(Silent, WhoDoesNotSayHelloInTimeIsDroppedAndNobodyElse)
{
	testing::internal::CaptureStderr();
	{
		Fabric f(1);
		Client here(f, 0), late;
		std::vector<int> silent;

		for (int i = 0; i < 3; i++)
			silent.push_back(connected(f));
		late.dial(f, 0);
		settle();
		pass(AG_HELLO_NS - 1);
		for (int sock : silent)
			EXPECT_FALSE(hung_up(sock));
		late.hello(W_KIND_NIC);
		EXPECT_EQ(late.recv().type, W_WELCOME);
		int later = connected(f);
		settle();
		pass(1);
		for (int sock : silent) {
			EXPECT_TRUE(hung_up(sock));
			close(sock);
		}
		EXPECT_FALSE(hung_up(later));
		close(later);
		here.sync();
		late.sync();
	}
	std::string log = testing::internal::GetCapturedStderr();
	EXPECT_NE(log.find("did not say HELLO in time"), std::string::npos) << log;
}

// A cable has no deadline, and needs none: the neighbour's cable replaces a silent one.
TEST(Silent, WhoSaysNothingAtACableMakesPathForTheNeighbour)
{
	testing::internal::CaptureStderr();
	{
		Fabric f(2, nullptr, 1);
		sockaddr_un un;
		socklen_t len = w_cable_addr(&un, geteuid(), f.name().c_str(), 0, 1);
		int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		char byte;

		ASSERT_EQ(connect(sock, reinterpret_cast<sockaddr *>(&un), len), 0);
		settle();
		ASSERT_EQ(recv(sock, &byte, 1, MSG_DONTWAIT), 1) << "plugged";
		Client here(f, 0);
		here.sync();
		f.start(1);
		wait_links(f);
		ssize_t n;
		while ((n = recv(sock, &byte, 1, MSG_DONTWAIT)) > 0)
			;
		EXPECT_EQ(n, 0) << "the agent has let it go";
		close(sock);
		here.sync();
	}
	testing::internal::GetCapturedStderr();
}

// ---- a process that requests connections and confirms none ----

class Unconfirmed : public ::testing::TestWithParam<unsigned> {
protected:
	// The server accepts a request of the client; both are told that they are linked.
	void accept()
	{
		Msg m;

		token++;
		s.listen(token, at);
		s.sync();
		c.connection(W_CONNECT, token, address(0, "c"), at);
		m = s.recv();
		ASSERT_EQ(m.type, W_ARRIVED);
		server_conn = m.as<w_arrived>().conn;
		s.accept(server_conn, token);
		m = s.recv();
		ASSERT_EQ(m.type, W_LINKED);
		EXPECT_EQ(m.as<w_linked>().conn, server_conn);
		m = c.recv();
		ASSERT_EQ(m.type, W_LINKED);
		conn = m.as<w_linked>().conn;
		c.sync(); // the agent waits for the confirmation now
	}

	static void expect_lost(Client &of, uint64_t its_conn, w_lost reason)
	{
		Msg m = of.recv();

		ASSERT_EQ(m.type, W_LOST);
		EXPECT_EQ(m.as<w_lost_msg>().conn, its_conn);
		EXPECT_EQ(m.as<w_lost_msg>().reason, static_cast<uint32_t>(reason));
	}

	void expect_refused(Client &of, w_status status)
	{
		Msg m = of.recv();

		ASSERT_EQ(m.type, W_REFUSED);
		EXPECT_EQ(m.as<w_refused>().token, token);
		EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(status));
	}

	Fabric f{ GetParam() };
	Client c{ f, 0 }, s{ f, GetParam() - 1 };
	w_addr at = address(GetParam() - 1, "s");
	uint64_t token = 0, conn = 0, server_conn = 0;
};

// No time passes: the server that waits for one client after the other is not held up.
TEST_P(Unconfirmed, TheNextClientIsAcceptedBeforeTheSilentOneHasTimedOut)
{
	if (GetParam() == 2) {
		wait_links(f);
		wait_ports(f);
	}
	ASSERT_NO_FATAL_FAILURE(accept());
	Client honest(f, 0);
	Pair p = join(honest, s, "next");
	EXPECT_EQ(p.server_linked.type, W_LINKED);
	c.conn(W_CONFIRM, conn); // it is late, and not too late
	c.sync();
	pass(AG_CONFIRM_NS);
	c.conn(W_CLOSE, conn);
	expect_lost(s, server_conn, W_LOST_CLOSED);
}

TEST_P(Unconfirmed, IsLostAfterAShortTimeAndRefusedAfterSome)
{
	testing::internal::CaptureStderr();
	if (GetParam() == 2) {
		wait_links(f);
		wait_ports(f);
	}
	for (unsigned i = 0; i < AG_UNCONFIRMED_MAX; i++) {
		SCOPED_TRACE("round " + std::to_string(i));
		ASSERT_NO_FATAL_FAILURE(accept());
		pass(AG_CONFIRM_NS - 1);
		s.sync();
		pass(1);
		ASSERT_NO_FATAL_FAILURE(expect_lost(s, server_conn, W_LOST_PROCESS));
		expect_lost(c, conn, W_LOST_CLOSED);
		c.conn(W_CONFIRM, conn); // too late
		c.conn(W_CLOSE, conn);
		s.conn(W_CLOSE, server_conn);
	}
	// From now on its requests are refused before a server waits for them.
	c.connection(W_CONNECT, ++token, address(0, "c"), at);
	expect_refused(c, W_NO_RESOURCE);
	// Others are served, and so is the process later.
	pass(AG_UNTRUSTED_NS);
	Pair p = join(c, s, "again");
	EXPECT_NE(p.client_conn, 0u);
	for (unsigned i = 0; i < 2; i++) {
		accept();
		c.conn(W_CONFIRM, conn);
	}
	std::string log = testing::internal::GetCapturedStderr();
	EXPECT_NE(log.find("does not confirm a connection"), std::string::npos) << log;
}

// Requests that it made before it was known for this.
TEST_P(Unconfirmed, RequestsThatWaitAreRefusedWhenTheyAreAccepted)
{
	testing::internal::CaptureStderr();
	if (GetParam() == 2) {
		wait_links(f);
		wait_ports(f);
	}
	s.listen(77, address(GetParam() - 1, "early"));
	s.sync();
	c.connection(W_CONNECT, 77, address(0, "c"), address(GetParam() - 1, "early"));
	Msg early = s.recv();
	ASSERT_EQ(early.type, W_ARRIVED);
	for (unsigned i = 0; i < AG_UNCONFIRMED_MAX; i++) {
		accept();
		pass(AG_CONFIRM_NS);
		expect_lost(s, server_conn, W_LOST_PROCESS);
		expect_lost(c, conn, W_LOST_CLOSED);
	}
	s.accept(early.as<w_arrived>().conn, 77);
	token = 77;
	expect_refused(s, W_TIMED_OUT);
	expect_refused(c, W_NO_RESOURCE);
	testing::internal::GetCapturedStderr();
}

INSTANTIATE_TEST_SUITE_P(Hosts, Unconfirmed, ::testing::Values(1u, 2u));

// ---- the calendar ----

uint64_t ups(const Fabric &f, unsigned at, unsigned of)
{
	return number_in(Client(f, at, W_KIND_TOOL).item(W_LIST_LINKS, of), "up");
}

void set_link(const Fabric &f, unsigned host, const char *name, w_admin_verb verb)
{
	Client tool(f, host, W_KIND_TOOL);
	w_admin m = {};

	m.verb = verb;
	snprintf(m.name, sizeof(m.name), "%s", name);
	tool.send(m, W_ADMIN);
	ASSERT_EQ(tool.recv().type, W_DONE);
}

// Agents report which links are up whatever the clock does: it is set back, an agent is started again, it is set ahead.
TEST(Calendar, LinkStateUpdatesDoNotDependOnIt)
{
	constexpr int64_t kDay = 86400 * kSecond;
	Fabric f(4);
	const unsigned all = 7, right_down = 3; // bits of self, left and right

	wait_ports(f);
	for (int64_t days : { 0, -2, -4, 3 }) {
		SCOPED_TRACE("clock " + std::to_string(days) + " days ahead");
		vt_set_calendar(days * kDay);
		set_link(f, 2, "right", W_ADMIN_LINK_DOWN);
		for (unsigned at = 0; at < 4; at++)
			EXPECT_TRUE(eventually([&] { return ups(f, at, 2) == right_down; })) << at;
		f.stop(1);
		f.start(1);
		set_link(f, 2, "right", W_ADMIN_LINK_UP);
		for (unsigned at = 0; at < 4; at++)
			EXPECT_TRUE(eventually([&] {
				return ups(f, at, 1) == all && ups(f, at, 2) == all;
			})) << at;
		if (HasFailure())
			break;
	}
	vt_set_calendar(0);
}

// ---- no room for descriptors that are sent ----

class NoRoom : public ::testing::TestWithParam<int> {
protected:
	static void send_alloc(Client &c)
	{
		w_alloc m = {};

		m.length = 4096;
		c.send(m, W_ALLOC);
	}
};

TEST_P(NoRoom, AMessageWaitsIsTriedAgainInTimeAndIsNotLost)
{
	Fabric f(1);
	Client c(f, 0);

	send_alloc(c);
	ASSERT_EQ(c.recv().type, W_ALLOCATED); // and the port was told
	settle();
	refused_sends = 0;
	no_room = GetParam();
	send_alloc(c);
	c.token(W_UNLISTEN, 7);
	settle();
	for (unsigned tries = 1; tries <= 3; tries++) {
		EXPECT_EQ(refused_sends, tries);
		pass(AG_FLUSH_NS - 1);
		EXPECT_EQ(refused_sends, tries) << "tried again before its time";
		EXPECT_EQ(c.recv_any(0).type, -1) << "what comes later is sent before";
		pass(1);
	}
	EXPECT_EQ(refused_sends, 4u);
	no_room = 0;
	pass(AG_FLUSH_NS);
	Msg m = c.recv();
	EXPECT_EQ(m.type, W_ALLOCATED);
	EXPECT_EQ(m.fds.size(), 1u);
	m = c.recv();
	EXPECT_EQ(m.type, W_UNLISTENED);
	EXPECT_EQ(m.as<w_token>().token, 7u);
	c.sync();
}

INSTANTIATE_TEST_SUITE_P(Errors, NoRoom, ::testing::Values(ETOOMANYREFS, ENOBUFS, ENOMEM));

} // namespace

ssize_t __wrap_sendmsg(int sock, const msghdr *mh, int flags)
{
	int err = mh->msg_controllen > 0 ? no_room : 0;

	if (err == 0)
		return __real_sendmsg(sock, mh, flags);
	refused_sends++;
	errno = err;
	return -1;
}
