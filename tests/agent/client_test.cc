// SPDX-License-Identifier: BSD-2-Clause
// Processes: which may connect, that hostile ones achieve nothing, limits, descriptors.
#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <random>

#include "agent_fixture.h"
#include "probes.h"

using namespace agent_test;

namespace {

class OneHost : public FabricTest {
protected:
	void SetUp() override { up(1); }

	void agent_lives()
	{
		Client a(*fabric, 0), b(*fabric, 0);

		join(a, b);
	}

	void dropped(Client &c)
	{
		Msg m;

		do {
			m = c.recv_any();
		} while (m.type > 0);
		EXPECT_EQ(m.type, 0);
		agent_lives();
	}
};

// ---- greeting ----

TEST_F(OneHost, WelcomeTellsWhoAndWhere)
{
	Client c(*fabric, 0);

	EXPECT_EQ(c.welcome.host_id, 0);
	EXPECT_EQ(c.welcome.host_count, 1);
	EXPECT_EQ(c.welcome.port_count, 1u);
	EXPECT_STREQ(c.welcome.fabric, fabric->name().c_str());
	EXPECT_STREQ(c.welcome.host_name, "host0");
	EXPECT_EQ(c.welcome.slots, 8u);
	EXPECT_NE(c.welcome.db_bit, 0u);
}

TEST_F(OneHost, OnlyNicsGetTheRegisters)
{
	for (uint32_t kind : { W_KIND_NIC, W_KIND_TOOL }) {
		Client c;
		c.dial(*fabric, 0);
		c.hello(kind);
		Msg m = c.recv_any();
		ASSERT_EQ(m.type, W_WELCOME);
		EXPECT_EQ(m.fds.size(), kind == W_KIND_NIC ? 2u : 0u);
	}
}

TEST_F(OneHost, DoorbellBitsAreSharedButNeverTheAgents)
{
	std::vector<std::unique_ptr<Client>> all;
	unsigned used = 0;

	for (int i = 0; i < 20; i++) {
		all.push_back(std::make_unique<Client>(*fabric, 0));
		EXPECT_NE(all.back()->welcome.db_bit, 0u);
		EXPECT_LT(all.back()->welcome.db_bit, 16u);
		used |= 1u << all.back()->welcome.db_bit;
	}
	EXPECT_EQ(used, 0xfffeu);
}

TEST_F(OneHost, AnotherVersionIsToldWhich)
{
	Client c;
	w_hello m = {};

	testing::internal::CaptureStderr();
	c.dial(*fabric, 0);
	m.kind = W_KIND_NIC;
	w_ctl_init(&m, W_HELLO, sizeof(m));
	m.hdr.version = 99;
	w_ctl_send(c.sock, &m, nullptr, 0);
	Msg answer = c.recv_any();
	ASSERT_EQ(answer.type, W_DONE);
	EXPECT_EQ(answer.as<w_refused>().status, static_cast<uint32_t>(W_BAD_VERSION));
	EXPECT_EQ(answer.as<w_refused>().text,
		  "agent speaks version " + std::to_string(W_CTL_VERSION) +
			  ", you speak 99; use programs and agent of one release");
	EXPECT_EQ(c.recv_any().type, 0);
	testing::internal::GetCapturedStderr();
}

// Runs `body` in a child with other credentials; its return is the exit status.
int as_other(uid_t uid, std::vector<gid_t> groups, const std::function<int()> &body)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		if (setgroups(groups.size(), groups.data()) != 0 || setgid(12345) != 0 ||
		    setuid(uid) != 0)
			_exit(99);
		_exit(body());
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// `stay`: the connection stays open until this process ends.
int hello_status(const Fabric &f, uid_t owner, bool stay = false)
{
	sockaddr_un un;
	socklen_t len = w_agent_addr(&un, owner, f.name().c_str(), 0);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	alignas(8) uint8_t buf[W_CTL_MAX];
	int fds[W_CTL_FDS];
	unsigned n;
	w_hello m = {};

	if (connect(sock, reinterpret_cast<sockaddr *>(&un), len) != 0)
		return 98;
	m.kind = W_KIND_TOOL;
	w_ctl_init(&m, W_HELLO, sizeof(m));
	w_ctl_send(sock, &m, nullptr, 0);
	int got = w_ctl_recv(sock, buf, sizeof(buf), fds, &n);
	int type = got > 0 ? w_ctl_check(buf, static_cast<uint32_t>(got)) : 97;
	if (!stay)
		close(sock);
	if (type == W_DONE)
		return static_cast<int>(reinterpret_cast<w_refused *>(buf)->status);
	return type;
}

TEST(Access, OthersAreDeniedUnlessTheGroupIsTheirs)
{
	if (geteuid() != 0)
		GTEST_SKIP() << "needs root to become somebody else";
	if (!probe_peer_groups())
		GTEST_SKIP() << "SO_PEERGROUPS is missing: only a user's first group is known";
	Fabric closed(1), open(1, [](ag_cfg &cfg) { cfg.group = 4242; });

	testing::internal::CaptureStderr();
	EXPECT_EQ(as_other(31337, {}, [&] { return hello_status(closed, 0); }), W_DENIED);
	EXPECT_EQ(as_other(31337, { 4242 }, [&] { return hello_status(closed, 0); }), W_DENIED);
	EXPECT_EQ(as_other(31337, { 1, 2, 3 }, [&] { return hello_status(open, 0); }), W_DENIED);
	EXPECT_EQ(as_other(31337, { 1, 4242 }, [&] { return hello_status(open, 0); }), W_WELCOME);
	EXPECT_EQ(as_other(0, {}, [&] { return hello_status(open, 0); }), W_WELCOME);
	testing::internal::GetCapturedStderr();
}

TEST(Access, PrimaryGroupCounts)
{
	if (geteuid() != 0)
		GTEST_SKIP() << "needs root to become somebody else";
	Fabric open(1, [](ag_cfg &cfg) { cfg.group = 12345; });

	EXPECT_EQ(as_other(31337, {}, [&] { return hello_status(open, 0); }), W_WELCOME);
}

// ---- no user takes the places of others ----

class FewDescriptors {
public:
	explicit FewDescriptors(rlim_t few)
	{
		getrlimit(RLIMIT_NOFILE, &before);
		rlimit now = { few, before.rlim_max };
		setrlimit(RLIMIT_NOFILE, &now);
	}
	~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before); }

private:
	rlimit before{};
};

// With that few descriptors an agent takes 64 processes of one user, 32 of them silent.
class Places : public ::testing::Test {
protected:
	void SetUp() override
	{
		FewDescriptors few(512);

		open = std::make_unique<Fabric>(1, [](ag_cfg &cfg) { cfg.group = 12345; });
	}

	// A connected socket, without HELLO.
	int connect_socket() const
	{
		sockaddr_un un;
		socklen_t len = w_agent_addr(&un, owner, open->name().c_str(), 0);
		int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		return connect(sock, reinterpret_cast<sockaddr *>(&un), len) == 0 ? sock : -1;
	}

	static bool hung_up(int sock, int ms = kDeadlineMs)
	{
		pollfd p = { sock, POLLIN, 0 };
		char byte;

		return poll(&p, 1, ms) == 1 && recv(sock, &byte, 1, 0) == 0;
	}

	const uid_t owner = geteuid();
	std::unique_ptr<Fabric> open;
};

TEST_F(Places, OneMemberLeavesSomeForOthers)
{
	if (geteuid() != 0)
		GTEST_SKIP() << "needs root to become somebody else";
	std::vector<int> held;
	int go[2], told[2];

	ASSERT_EQ(pipe(go), 0);
	ASSERT_EQ(pipe(told), 0);
	testing::internal::CaptureStderr();
	std::thread member([&] {
		int status = as_other(31337, {}, [&] {
			char byte;
			int result = 0;

			for (int i = 0; i < 64 && result == 0; i++)
				result = hello_status(*open, owner, true) == W_WELCOME ? 0 : 1;
			if (result == 0)
				result = hello_status(*open, owner) == W_NO_RESOURCE ? 0 : 2;
			write(told[1], "x", 1);
			read(go[0], &byte, 1);
			return result;
		});
		EXPECT_EQ(status, 0);
	});
	char byte;
	EXPECT_EQ(read(told[0], &byte, 1), 1);
	EXPECT_EQ(as_other(31338, {}, [&] { return hello_status(*open, owner); }), W_WELCOME);
	auto forty_more = [&] {
		for (int i = 0; i < 40; i++) {
			auto c = std::make_unique<Client>(*open, 0);
			EXPECT_TRUE(c->ok()) << "the owner may have more, in several processes";
			held.push_back(std::exchange(c->sock, -1));
		}
	};
	forty_more();
	pid_t another = fork();
	if (another == 0) {
		forty_more();
		_exit(testing::Test::HasFailure());
	}
	int status = -1;
	waitpid(another, &status, 0);
	EXPECT_EQ(status, 0);
	write(go[1], "x", 1);
	member.join();
	testing::internal::GetCapturedStderr();
	for (int fd : { go[0], go[1], told[0], told[1] })
		close(fd);
	for (int fd : held)
		close(fd);
}

// The oldest silent connection goes first; a process that was welcomed stays.
TEST_F(Places, SilentOnesMakeWay)
{
	Client old(*open, 0);
	std::vector<int> silent;

	testing::internal::CaptureStderr();
	for (int i = 0; i < 40; i++)
		silent.push_back(connect_socket());
	for (size_t i = 0; i < 8; i++)
		EXPECT_TRUE(hung_up(silent[i])) << i;
	old.sync();
	Client another(*open, 0); /* for this one the next silent connection goes */
	EXPECT_TRUE(another.ok());
	EXPECT_TRUE(hung_up(silent[8]));
	for (size_t i = 9; i < 40; i++)
		EXPECT_FALSE(hung_up(silent[i], 0)) << i;
	testing::internal::GetCapturedStderr();
	for (int fd : silent)
		close(fd);
}

// At the ceiling of a process the new connection takes the place of the one that goes for it.
TEST_F(Places, SilentOneMakesWayAtOnce)
{
	std::vector<std::unique_ptr<Client>> welcome;
	std::vector<int> silent;

	testing::internal::CaptureStderr();
	for (int i = 0; i < 32; i++)
		welcome.push_back(std::make_unique<Client>(*open, 0));
	for (int i = 0; i < 32; i++)
		silent.push_back(connect_socket());
	Client another(*open, 0);
	EXPECT_TRUE(another.ok());
	EXPECT_TRUE(hung_up(silent[0]));
	for (size_t i = 1; i < silent.size(); i++)
		EXPECT_FALSE(hung_up(silent[i], 0)) << i;
	testing::internal::GetCapturedStderr();
	for (int fd : silent)
		close(fd);
}

// ---- descriptors that an agent keeps, or holds for processes that do not read ----

// With that few descriptors it keeps 64 pieces of window memory of a process, 128 of a user, and as many that wait.
class Ceilings : public Places {
protected:
	static w_alloc alloc(Client &c)
	{
		w_alloc m = {};

		m.length = 4096;
		c.send(m, W_ALLOC);
		return c.recv().as<w_alloc>();
	}

	int of_another() const
	{
		Client c;

		c.sock = connect_socket();
		c.hello(W_KIND_NIC);
		return c.recv().type == W_WELCOME ? static_cast<int>(alloc(c).status) : 98;
	}

	static unsigned take_all(Client &c)
	{
		unsigned n = 0;

		while (n < 1000 && alloc(c).status == W_SUCCESS)
			n++;
		return n;
	}
};

TEST_F(Ceilings, WindowMemoryOfAProcessAndOfAUserIsBounded)
{
	testing::internal::CaptureStderr();
	Client first(*open, 0), second(*open, 0), third(*open, 0), before(*open, 0);
	w_alloc had = alloc(before);
	int fds;

	before.sync();
	fds = open_fds();
	EXPECT_EQ(take_all(first), 64u);
	first.sync();
	EXPECT_LE(open_fds() - fds, 64) << "more than one descriptor for each";
	EXPECT_EQ(take_all(second), 63u) << "those of a user count together";
	EXPECT_EQ(alloc(third).status, static_cast<uint32_t>(W_NO_RESOURCE));
	if (geteuid() == 0) {
		EXPECT_EQ(as_other(31338, {}, [&] { return of_another(); }), W_SUCCESS);
	}
	before.send(had, W_FREE);
	before.sync();
	EXPECT_EQ(alloc(third).status, static_cast<uint32_t>(W_SUCCESS));
	first.hang_up();
	EXPECT_TRUE(eventually([&] { return alloc(third).status == W_SUCCESS; }));
	std::string log = testing::internal::GetCapturedStderr();
	EXPECT_NE(log.find("gets no more window memory"), std::string::npos) << log;
}

// Among the clients of a user whose descriptors wait, the one with the most goes, not the one that comes last.
TEST_F(Ceilings, OfAUserWithTooManyThatWaitTheOneWithMostIsDropped)
{
	testing::internal::CaptureStderr();
	Client server(*open, 0);
	uint32_t slice = alloc(server).slice_id;
	std::vector<std::unique_ptr<Client>> lazy;
	std::vector<Pair> pairs;

	for (int i = 0; i < 3; i++) {
		lazy.push_back(std::make_unique<Client>(*open, 0));
		pairs.push_back(join(*lazy[i], server));
	}
	server.sync();
	const int none = open_fds();
	auto send_tell = [&](int i) {
		w_tell t = {};
		t.conn = pairs[i].server_conn;
		t.slice_id = slice;
		server.send(t, W_TELL);
	};
	/* Descriptors inside sockets are in no process: those that are open wait in the agent. */
	auto until = [&](int i, int waiting) {
		for (int n = 0; n < 4000 && open_fds() - none < waiting; n++) {
			send_tell(i);
			server.sync();
		}
		ASSERT_EQ(open_fds() - none, waiting);
	};
	until(0, 50);
	until(1, 50 + 60);
	until(2, 128);
	send_tell(2);
	/* Not lazy[2], whose descriptor was one too many. */
	Msg lost = server.recv();
	ASSERT_EQ(lost.type, W_LOST);
	EXPECT_EQ(lost.as<w_lost_msg>().conn, pairs[1].server_conn);
	server.conn(W_CLOSE, pairs[1].server_conn);
	EXPECT_LE(open_fds() - none, 50 + 19);
	for (int i : { 0, 2 }) {
		lazy[i]->token(W_UNLISTEN, ~0ull);
		Msg m = lazy[i]->recv();
		for (; m.type == W_TOLD; m = lazy[i]->recv())
			ASSERT_EQ(m.fds.size(), 1u);
		EXPECT_EQ(m.type, W_UNLISTENED);
	}
	EXPECT_TRUE(eventually([&] { return open_fds() < none; })) << "that of lazy[1] is closed";
	std::string log = testing::internal::GetCapturedStderr();
	EXPECT_NE(log.find("too many descriptors wait for its user"), std::string::npos) << log;
}

TEST(Access, MembersMayNotAdministrate)
{
	if (geteuid() != 0)
		GTEST_SKIP() << "needs root to become somebody else";
	Fabric open(1, [](ag_cfg &cfg) { cfg.group = 4242; });
	auto body = [&] {
		sockaddr_un un;
		socklen_t len = w_agent_addr(&un, 0, open.name().c_str(), 0);
		Client c;
		c.sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		if (connect(c.sock, reinterpret_cast<sockaddr *>(&un), len) != 0)
			return 98;
		c.hello(W_KIND_TOOL);
		c.recv();
		w_admin m = {};
		m.verb = W_ADMIN_STOP;
		c.send(m, W_ADMIN);
		return static_cast<int>(c.recv().as<w_refused>().status);
	};

	EXPECT_EQ(as_other(31337, { 4242 }, body), W_DENIED);
}

// ---- hostile ----

TEST_F(OneHost, SpeaksBeforeHello)
{
	Client c;

	c.dial(*fabric, 0);
	c.token(W_CANCEL, 1);
	dropped(c);
}

TEST_F(OneHost, GreetsTwice)
{
	Client c(*fabric, 0);

	c.hello(W_KIND_NIC);
	dropped(c);
}

TEST_F(OneHost, ToolsMayNotConnect)
{
	Client c(*fabric, 0, W_KIND_TOOL);

	c.listen(1, address(0, "x"));
	dropped(c);
}

TEST_F(OneHost, SpeaksAsAnAgent)
{
	for (w_ctl_type type : { W_WELCOME, W_LINKED, W_CM_REQ }) {
		Client c(*fabric, 0);
		w_cm cm = {};
		w_linked l = {};
		w_welcome w = {};

		cm.src_conn = 1;
		w.host_count = 1;
		w.slots = 8;
		w.payload_bytes = 4096;
		l.conn = 1;
		if (type == W_CM_REQ)
			c.send(cm, type);
		else if (type == W_WELCOME)
			c.send(w, type);
		else
			c.send(l, type);
		dropped(c);
	}
}

TEST_F(OneHost, TruncatedAtEveryLength)
{
	w_connect whole = {};

	w_ctl_init(&whole, W_CONNECT, sizeof(whole));
	for (size_t len = 1; len < sizeof(whole); len += 7) {
		Client c(*fabric, 0);
		ASSERT_EQ(send(c.sock, &whole, len, MSG_NOSIGNAL), static_cast<ssize_t>(len));
		Msg m = c.recv_any();
		EXPECT_EQ(m.type, 0) << len;
	}
	agent_lives();
}

TEST_F(OneHost, LongerThanAnyMessage)
{
	Client c(*fabric, 0);
	std::vector<uint8_t> big(5000);

	send(c.sock, big.data(), big.size(), MSG_NOSIGNAL);
	dropped(c);
}

TEST_F(OneHost, RandomGarbage)
{
	std::mt19937 rng(42);

	testing::internal::CaptureStderr();
	for (int i = 0; i < 500; i++) {
		Client c(*fabric, 0);
		std::vector<uint8_t> junk(1 + rng() % 600);
		for (uint8_t &b : junk)
			b = static_cast<uint8_t>(rng());
		if (i % 2 == 0 && junk.size() >= 16) {
			w_ctl_init(junk.data(), static_cast<w_ctl_type>(rng() % 140),
				   static_cast<uint32_t>(junk.size()));
		}
		send(c.sock, junk.data(), junk.size(), MSG_NOSIGNAL);
		Msg m;
		do {
			m = c.recv_any();
		} while (m.type > 0 && m.type != W_DONE);
		EXPECT_GE(m.type, 0);
	}
	testing::internal::GetCapturedStderr();
	agent_lives();
}

// Whole messages with random ids and fields, many states at once.
TEST_F(OneHost, RandomRequests)
{
	std::mt19937 rng(7);
	std::vector<std::unique_ptr<Client>> all(4);
	std::vector<uint64_t> conns(1, 1);

	for (int i = 0; i < 20000; i++) {
		auto &c = all[rng() % all.size()];
		if (!c)
			c = std::make_unique<Client>(*fabric, 0);
		for (;;) {
			Msg m = c->recv_any(0);
			if (m.type == W_ARRIVED)
				conns.push_back(m.as<w_arrived>().conn);
			if (m.type == W_LINKED)
				conns.push_back(m.as<w_linked>().conn);
			ASSERT_NE(m.type, 0) << "dropped for valid requests";
			if (m.type <= 0)
				break;
		}
		if (conns.size() > 50)
			conns.erase(conns.begin(), conns.begin() + 25);
		uint64_t conn = conns[rng() % conns.size()];
		w_addr a = address(0, std::string(1, "abc"[rng() % 3]));
		w_addr b = address(0, std::string(1, "abc"[rng() % 3]));
		uint64_t token = rng() % 10;
		switch (rng() % 12) {
		case 0:
		case 1:
			c->listen(token, a);
			break;
		case 2:
		case 3:
			c->connection(W_CONNECT, token, a, b);
			break;
		case 4:
		case 5:
			c->connection(W_PEER, token, a, b);
			break;
		case 6:
			c->token(rng() % 2 ? W_CANCEL : W_UNLISTEN, token);
			break;
		case 7:
			c->accept(conn, token);
			break;
		case 8:
			c->conn(W_CONFIRM, conn);
			break;
		case 9:
			c->conn(rng() % 2 ? W_REJECT : W_CLOSE, conn);
			break;
		case 10: {
			w_tell t = {};
			t.conn = conn;
			t.slice_id = rng() % 3;
			t.body_len = rng() % 97;
			c->send(t, W_TELL);
			break;
		}
		case 11:
			if (rng() % 20 == 0)
				c.reset();
			break;
		}
	}
	all.clear();
	agent_lives();
}

TEST_F(OneHost, NeverReads)
{
	Client c(*fabric, 0);
	w_name m = {};
	pollfd p = { c.sock, POLLOUT, 0 };
	int sent;

	fcntl(c.sock, F_SETFL, O_NONBLOCK);
	testing::internal::CaptureStderr();
	for (sent = 0; sent < 200000; sent++) {
		int rc = c.send(m, W_NAME);
		if (rc == -EAGAIN)
			poll(&p, 1, kDeadlineMs);
		else if (rc != 0)
			break;
	}
	EXPECT_LT(sent, 200000) << "never dropped";
	c.hang_up();
	testing::internal::GetCapturedStderr();
	agent_lives();
}

// Messages of others to a process that does not read are left out; it keeps its NIC.
TEST_F(OneHost, OthersSayMoreThanAProcessReads)
{
	constexpr int kTells = 12000;
	Client c(*fabric, 0), s(*fabric, 0), tool(*fabric, 0, W_KIND_TOOL);
	Pair p = join(c, s);
	w_count count = {};
	uint64_t missed = 0;
	Msg m;

	for (int i = 0; i < kTells; i++) {
		w_tell t = {};

		t.conn = p.client_conn;
		ASSERT_EQ(c.send(t, W_TELL), 0);
	}
	c.sync();
	for (uint32_t i = 0; i < 2; i++) {
		std::string item = tool.item(W_LIST_CLIENTS, i);
		if (number_in(item, "missed") != 0) {
			missed = number_in(item, "missed");
			count.index = i;
		}
	}
	EXPECT_GT(missed, 0u);
	for (int i = 0; i < kTells; i++) {
		ASSERT_EQ(tool.send(count, W_COUNT), 0);
		Msg counted = tool.recv();
		ASSERT_EQ(counted.type, W_COUNTED);
		EXPECT_EQ(counted.as<w_counted>().index, 0u);
	}
	s.token(W_UNLISTEN, 9);
	uint64_t heard = 0;
	for (m = s.recv(); m.type == W_TOLD; m = s.recv())
		heard++;
	EXPECT_EQ(m.type, W_UNLISTENED);
	EXPECT_EQ(heard + missed, static_cast<uint64_t>(kTells));
	c.conn(W_CLOSE, p.client_conn);
	EXPECT_EQ(s.recv().type, W_LOST);
	s.conn(W_CLOSE, p.server_conn);
}

// ---- names of others ----

class Claims : public FabricTest {
protected:
	void SetUp() override { up(2); }

	static void refused(Client &c, uint64_t token)
	{
		Msg m = c.recv();

		ASSERT_EQ(m.type, W_REFUSED);
		EXPECT_EQ(m.as<w_refused>().token, token);
		EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(W_BAD_REQUEST));
	}

	static uint32_t alloc(Client &c)
	{
		w_alloc m = {};

		m.length = 4096;
		c.send(m, W_ALLOC);
		Msg got = c.recv();
		EXPECT_EQ(got.type, W_ALLOCATED);
		return got.as<w_alloc>().slice_id;
	}

	static void send_tell(Client &from, uint64_t conn, uint32_t slice)
	{
		w_tell t = {};

		t.conn = conn;
		t.slice_id = slice;
		t.body_len = 4;
		from.send(t, W_TELL);
	}
};

TEST_F(Claims, ToSpeakForAnotherHost)
{
	Client c(*fabric, 0), s(*fabric, 1);
	w_addr at = address(1, "x"), shorter = address(0, "c"), other = address(0, "c");
	uint64_t token = 1;

	s.listen(1, at);
	s.sync();
	shorter.host_len = 5;
	other.host[0] = 0x12;
	for (const w_addr &local :
	     { address(1, "c"), address(63, "c"), shorter, other, w_addr{} }) {
		for (w_ctl_type type : { W_CONNECT, W_PEER, W_LISTEN }) {
			c.connection(type, ++token, local, at);
			refused(c, token);
		}
	}
	s.sync(); // and it was told of none of them
	c.connection(W_CONNECT, ++token, address(0, "c"), at);
	Msg m = s.recv();
	ASSERT_EQ(m.type, W_ARRIVED);
	EXPECT_EQ(m.as<w_arrived>().remote.host[5], 0);
}

// Every message that names a connection, a token or a piece of memory, with those of others.
TEST_F(Claims, WhatBelongsToOthers)
{
	Client a(*fabric, 0), b(*fabric, 1), waiter(*fabric, 0), asker(*fabric, 0),
		thief(*fabric, 0);
	Pair p = join(a, b);
	uint32_t slice = alloc(a);
	uint64_t used = window_used(*fabric, 0);

	waiter.listen(11, address(0, "open"));
	waiter.listen(12, address(0, "asked"));
	waiter.sync();
	asker.connection(W_CONNECT, 13, address(0, "c"), address(0, "asked"));
	Msg arrived = waiter.recv();
	ASSERT_EQ(arrived.type, W_ARRIVED);
	uint64_t asked = arrived.as<w_arrived>().conn;

	for (uint64_t conn : { p.client_conn, p.server_conn, asked }) {
		w_suspended suspended = {};

		suspended.conn = conn;
		thief.send(suspended, W_SUSPENDED);
		for (w_ctl_type type : { W_REJECT, W_CONFIRM, W_CLOSE })
			thief.conn(type, conn);
		send_tell(thief, conn, slice);
		thief.accept(conn, 20);
		Msg m = thief.recv();
		ASSERT_EQ(m.type, W_REFUSED);
		EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(W_TIMED_OUT));
	}
	for (uint64_t token : { 1, 2, 3, 11, 13 }) {
		thief.token(W_CANCEL, token);
		thief.token(W_UNLISTEN, token);
		EXPECT_EQ(thief.recv().type, W_UNLISTENED);
	}
	w_alloc free = {};
	free.slice_id = slice;
	thief.send(free, W_FREE);
	Pair own = join(thief, b, "thief's");
	send_tell(thief, own.client_conn, slice);
	send_tell(thief, own.client_conn, 0);
	Msg told = b.recv();
	ASSERT_EQ(told.type, W_TOLD) << "and not what named another's memory";
	EXPECT_EQ(told.as<w_tell>().slice_id, 0u);
	b.sync();
	thief.hang_up();
	ASSERT_EQ(b.recv().type, W_LOST);
	b.conn(W_CLOSE, own.server_conn);

	EXPECT_TRUE(eventually([&] { return window_used(*fabric, 0) == used; }));
	send_tell(a, p.client_conn, slice);
	told = b.recv();
	ASSERT_EQ(told.type, W_TOLD);
	EXPECT_EQ(told.as<w_tell>().conn, p.server_conn);
	EXPECT_EQ(told.fds.size(), 1u);
	asker.connection(W_CONNECT, 14, address(0, "c"), address(0, "open"));
	EXPECT_EQ(waiter.recv().type, W_ARRIVED);
	waiter.accept(asked, 15);
	EXPECT_EQ(asker.recv().type, W_LINKED);
}

// A tool that requests the counters of a NIC gets those of its process, once; nothing else gets them.
TEST_F(Claims, ToBeTheNicThatIsAskedForItsCounters)
{
	Client nic(*fabric, 0), thief(*fabric, 0), tool(*fabric, 0, W_KIND_TOOL);
	w_counted answer = {};
	w_count count = {};

	while (number_in(tool.item(W_LIST_CLIENTS, count.index), "id") != nic.welcome.client_id)
		ASSERT_LT(count.index++, 2u);
	for (uint64_t token : { 7, 8 }) {
		count.token = token;
		ASSERT_EQ(tool.send(count, W_COUNT), 0);
		Msg asked = nic.recv();
		ASSERT_EQ(asked.type, W_COUNT);
		answer.client = asked.as<w_count>().client;
		answer.token = token;
		thief.send(answer, W_COUNTED);
		thief.sync();
		for (uint64_t said : { token - 1, token, token }) {
			answer.token = said;
			nic.send(answer, W_COUNTED);
		}
		nic.sync();
		Msg heard = tool.recv();
		ASSERT_EQ(heard.type, W_COUNTED);
		EXPECT_EQ(heard.as<w_counted>().token, token);
		EXPECT_EQ(heard.as<w_counted>().client, nic.welcome.client_id);
		tool.item(W_LIST_HOSTS, 0); // and nothing else came
	}
}

// A tool sends requests to all processes before it reads the first answer, and gets the answers of all.
TEST_F(Claims, ToolAsksSeveralProcessesAtOnce)
{
	Client a(*fabric, 0), b(*fabric, 0), silent(*fabric, 0), tool(*fabric, 0, W_KIND_TOOL);
	w_counted answer = {};
	w_count count = {};

	for (count.index = 0; count.index < 3; count.index++) {
		count.token = 20 + count.index;
		ASSERT_EQ(tool.send(count, W_COUNT), 0);
	}
	tool.item(W_LIST_HOSTS, 0); // the agent has read all three
	for (Client *nic : { &b, &a }) {
		Msg asked = nic->recv();
		ASSERT_EQ(asked.type, W_COUNT);
		answer.client = asked.as<w_count>().client;
		answer.token = asked.as<w_count>().token;
		nic->send(answer, W_COUNTED);
		Msg heard = tool.recv();
		ASSERT_EQ(heard.type, W_COUNTED);
		EXPECT_EQ(heard.as<w_counted>().token, answer.token);
		EXPECT_EQ(heard.as<w_counted>().client, nic->welcome.client_id);
	}
}

// Questions about a NIC that does not read them are answered without it, and it is not dropped.
TEST_F(Claims, NicThatDoesNotReadIsAskedNoMore)
{
	Client nic(*fabric, 0), tool(*fabric, 0, W_KIND_TOOL);
	unsigned asked = 0, unheard = 0;
	w_count count = {};

	for (unsigned i = 1; i <= 8192 && unheard < 10; i++) {
		w_list sync = {};
		count.token = i;
		tool.send(count, W_COUNT);
		sync.what = W_LIST_HOSTS;
		tool.send(sync, W_LIST);
		Msg m = tool.recv();
		if (m.type == W_COUNTED) {
			EXPECT_EQ(m.as<w_counted>().token, i);
			EXPECT_EQ(m.as<w_counted>().index, 0u) << "there is one";
			unheard++;
			m = tool.recv();
		}
		ASSERT_EQ(m.type, W_LISTED);
	}
	EXPECT_EQ(unheard, 10u);
	EXPECT_EQ(number_in(tool.item(W_LIST_CLIENTS, 0), "missed"), 10u);
	nic.token(W_UNLISTEN, 7);
	for (Msg m = nic.recv(); m.type != W_UNLISTENED; m = nic.recv(), asked++)
		ASSERT_EQ(m.type, W_COUNT);
	EXPECT_GE(asked, 4096u);
	nic.sync();
}

// A tool that does not read the answers to its questions is dropped, but no NIC is.
TEST_F(Claims, ToolThatDoesNotReadIsDropped)
{
	Client nic(*fabric, 0), tool(*fabric, 0, W_KIND_TOOL);
	w_counted answer = {};
	w_count count = {};
	bool dropped = false;

	testing::internal::CaptureStderr();
	for (unsigned i = 1; i <= 16384 && !dropped; i++) {
		pollfd p = { nic.sock, POLLIN, 0 };
		count.token = i;
		dropped = tool.send(count, W_COUNT) != 0;
		while (!dropped && poll(&p, 1, 1) == 0) {
			pollfd t = { tool.sock, POLLRDHUP, 0 };
			dropped = poll(&t, 1, 0) == 1 && (t.revents & (POLLRDHUP | POLLHUP)) != 0;
		}
		if (dropped)
			break;
		Msg asked = nic.recv();
		ASSERT_EQ(asked.type, W_COUNT);
		answer.client = asked.as<w_count>().client;
		answer.token = i;
		nic.send(answer, W_COUNTED);
		nic.sync(); /* only the answer to the latest question is passed on */
	}
	EXPECT_TRUE(dropped);
	std::string log = testing::internal::GetCapturedStderr();
	EXPECT_NE(log.find("does not read its messages"), std::string::npos) << log;
}

TEST_F(OneHost, LimitsOfWaiters)
{
	Client c(*fabric, 0);

	for (uint64_t i = 0; i < 1024; i++)
		c.listen(i, address(0, "l" + std::to_string(i)));
	c.sync();
	c.listen(5000, address(0, "one too many"));
	Msg m = c.recv();
	ASSERT_EQ(m.type, W_REFUSED);
	EXPECT_EQ(m.as<w_refused>().token, 5000u);
	EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(W_NO_RESOURCE));
}

TEST_F(OneHost, LimitsOfAttempts)
{
	Client c(*fabric, 0);

	for (uint64_t i = 0; i < 4096; i++)
		c.connection(W_PEER, i, address(0, "a"), address(0, "b"));
	c.sync();
	c.connection(W_PEER, 9999, address(0, "a"), address(0, "b"));
	Msg m = c.recv();
	ASSERT_EQ(m.type, W_REFUSED);
	EXPECT_EQ(m.as<w_refused>().token, 9999u);
	EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(W_NO_RESOURCE));
}

// ---- no process takes everything ----

// A process requests connections to the agent, one after the other, as long as it gets them.
TEST(ProcessCeilings, OneProcessGetsSoManyConnectionsToTheAgentAndOthersFindRoom)
{
	FewDescriptors few(1024);
	Fabric f(1);
	std::vector<std::unique_ptr<Client>> all;
	Msg last;

	testing::internal::CaptureStderr();
	do {
		all.push_back(std::make_unique<Client>());
		all.back()->dial(f, 0);
		all.back()->hello(W_KIND_NIC);
		last = all.back()->recv();
	} while (last.type == W_WELCOME && all.size() < 1024);
	std::string log = testing::internal::GetCapturedStderr();
	ASSERT_EQ(last.type, W_DONE);
	EXPECT_EQ(last.as<w_refused>().status, static_cast<uint32_t>(W_NO_RESOURCE));
	EXPECT_EQ(all.size(), 1024 / 8 + 1u);
	std::string text = last.as<w_refused>().text, pid = "pid " + std::to_string(getpid());
	EXPECT_EQ(text.find(pid), 0u) << text;
	EXPECT_NE(log.find(pid + " gets no more connections to the agent"), std::string::npos)
		<< log;
	pid_t other = fork();
	if (other == 0)
		_exit(Client(f, 0).ok() ? 0 : 1);
	int status = -1;
	waitpid(other, &status, 0);
	EXPECT_EQ(status, 0) << "another process is turned away";
	all.erase(all.begin(), all.begin() + 2);
	EXPECT_TRUE(eventually([&] {
		Client again;
		again.dial(f, 0);
		again.hello(W_KIND_NIC);
		return again.recv().type == W_WELCOME;
	}));
}

// The agent holds descriptors for ends of connections that are accepted and not confirmed.
TEST(ProcessCeilings, OneProcessGetsSoManyConnectionsThatItNeverConfirms)
{
	FewDescriptors few(1024);
	Fabric f(1, [](ag_cfg &cfg) { cfg.window_bytes = 1 << 30; });
	Client c(f, 0), s(f, 0);
	unsigned linked = 0;
	Msg m;

	testing::internal::CaptureStderr();
	for (uint64_t i = 1;; i++) {
		s.listen(i, address(0, "x"));
		s.sync();
		c.connection(W_CONNECT, i, address(0, "c"), address(0, "x"));
		m = s.recv();
		ASSERT_EQ(m.type, W_ARRIVED);
		s.accept(m.as<w_arrived>().conn, i);
		m = s.recv();
		if (m.type != W_LINKED)
			break;
		ASSERT_EQ(c.recv().type, W_LINKED);
		ASSERT_LT(++linked, 1024u);
	}
	std::string log = testing::internal::GetCapturedStderr();
	EXPECT_EQ(m.type, W_REFUSED);
	EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(W_NO_RESOURCE));
	EXPECT_EQ(linked, 4 + 1024 / 32 - 1)
		<< "the end that accepts the last one belongs to this process, too";
	EXPECT_NE(log.find("gets no more connections in the making"), std::string::npos) << log;
	pid_t other = fork();
	if (other == 0) {
		Client a(f, 0), b(f, 0);
		join(a, b, "other");
		_exit(testing::Test::HasFailure());
	}
	int status = -1;
	waitpid(other, &status, 0);
	EXPECT_EQ(status, 0) << "another process gets none";
}

// It leaves two sixteenths of the window, and its user one.
TEST(ProcessCeilings, OneProcessDoesNotGetTheWholeWindow)
{
	constexpr uint64_t kWindow = 16 << 20;
	Fabric f(1);
	auto take = [&](Client &c, uint64_t bytes) {
		w_alloc m = {};

		m.length = bytes;
		c.send(m, W_ALLOC);
		return c.recv().as<w_alloc>().status == W_SUCCESS;
	};
	Client c(f, 0), d(f, 0);

	testing::internal::CaptureStderr();
	EXPECT_FALSE(take(c, kWindow / 16 * 15));
	EXPECT_TRUE(take(c, kWindow / 16 * 13));
	EXPECT_FALSE(take(d, kWindow / 8)) << "the process is the same";
	EXPECT_TRUE(take(d, kWindow / 16));
	EXPECT_FALSE(take(c, 4096));
	std::string log = testing::internal::GetCapturedStderr();
	EXPECT_NE(log.find("of the window of port 0"), std::string::npos) << log;
	pid_t other = fork();
	if (other == 0) {
		Client a(f, 0), b(f, 0);
		join(a, b, "other");
		_exit(testing::Test::HasFailure() || take(a, kWindow / 16) ||
		      !take(a, kWindow / 32));
	}
	int status = -1;
	waitpid(other, &status, 0);
	EXPECT_EQ(status, 0);
	c.hang_up();
	EXPECT_TRUE(eventually([&] { return take(d, kWindow / 16 * 13); }))
		<< "it does not come back";
}

// ---- descriptors ----

// Runs in a process of its own, since the limit is one of the process.
TEST(Descriptors, NoneLeftTurnsProcessesAway)
{
	auto body = [] {
		Fabric f(1);
		Client first(f, 0);
		rlimit rl;
		first.sync(); // the agent has closed what it handed over
		getrlimit(RLIMIT_NOFILE, &rl);
		// There is one more for the next client's own socket, none for the agent's end of it.
		int top = dup(0);
		close(top);
		rl.rlim_cur = static_cast<rlim_t>(top) + 1;
		setrlimit(RLIMIT_NOFILE, &rl);
		Client second;
		second.dial(f, 0);
		Msg m = second.recv_any();
		if (m.type != W_DONE || m.as<w_refused>().status != W_NO_RESOURCE)
			return 1;
		if (second.recv_any().type != 0)
			return 2;
		second.hang_up();
		first.sync();
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
		Client third(f, 0);
		return third.ok() ? 0 : 3;
	};
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(body());
	waitpid(pid, &status, 0);
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(WEXITSTATUS(status), 0);
}

class Leaks : public FabricTest {};

TEST_F(Leaks, ThousandConnectionsOverALink)
{
	up(2);
	Client c(*fabric, 0), s(*fabric, 1);
	auto cycle = [&](int i) {
		Pair p = join(c, s, std::to_string(i % 3));
		c.conn(W_CLOSE, p.client_conn);
		EXPECT_EQ(s.recv().type, W_LOST);
		s.conn(W_CLOSE, p.server_conn);
	};

	cycle(0);
	c.sync();
	s.sync();
	uint64_t window = window_used(*fabric, 0) + window_used(*fabric, 1);
	int fds = open_fds();
	for (int i = 0; i < 1000; i++)
		cycle(i);
	c.sync();
	s.sync();
	EXPECT_TRUE(eventually(
		[&] { return window_used(*fabric, 0) + window_used(*fabric, 1) <= window; }));
	EXPECT_TRUE(eventually([&] { return open_fds() <= fds; })) << open_fds() - fds;
}

TEST_F(Leaks, TenThousandProcesses)
{
	up(1);
	{
		Client c(*fabric, 0);
	}
	int fds = open_fds();
	for (int i = 0; i < 10000; i++)
		Client c(*fabric, 0, i % 2 ? W_KIND_NIC : W_KIND_TOOL);
	EXPECT_TRUE(eventually([&] { return open_fds() <= fds; })) << open_fds() - fds;
}

TEST_F(Leaks, AThousandVisOfOneProcess)
{
	up(1, [](ag_cfg &cfg) { cfg.window_bytes = 64 << 20; });
	Client c(*fabric, 0), s(*fabric, 0);
	int fds = open_fds();

	for (int i = 0; i < 1000; i++)
		join(c, s);
	c.hang_up();
	for (int i = 0; i < 1000; i++)
		ASSERT_EQ(s.recv().type, W_LOST);
	s.hang_up();
	EXPECT_TRUE(eventually([&] { return open_fds() <= fds; })) << open_fds() - fds;
}

// In a child: opens a NIC, has a child of its own keep the socket until `hold` ends, and leaves.
void open_fork_and_exit(const Fabric &f, int hold)
{
	Client nic(f, 0);
	char c;

	nic.sync();
	if (fork() == 0) {
		while (read(hold, &c, 1) > 0)
			;
		_exit(0);
	}
	_exit(0);
}

TEST_F(OneHost, AForkedChildDoesNotKeepItsParentAlive)
{
	Client tool(*fabric, 0, W_KIND_TOOL);
	int hold[2];

	ASSERT_EQ(pipe2(hold, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(hold[1]);
		open_fork_and_exit(*fabric, hold[0]);
	}
	close(hold[0]);
	ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
	EXPECT_TRUE(eventually([&] {
		w_list m = {};

		m.what = W_LIST_CLIENTS;
		tool.send(m, W_LIST);
		return tool.recv().as<w_listed>().more == 0;
	})) << "the agent still believes in a process that has ended";
	close(hold[1]);
}

// ---- names, lists, administration ----

class Names : public FabricTest {
protected:
	void SetUp() override
	{
		static const char *const names[] = { "alpha", "beta", "gamma" };
		static const ag_alias aliases[] = { { "head", 0 }, { "tail", 2 } };
		static const ag_alias devices[] = { { "/dev/clanvi0", 1 } };

		up(3, [](ag_cfg &cfg) {
			cfg.host_names = names;
			cfg.aliases = aliases;
			cfg.alias_count = 2;
			cfg.devices = devices;
			cfg.device_count = 1;
		});
	}

	static int look_up(Client &c, const char *name, uint32_t index = 0)
	{
		w_name m = {};

		m.index = index;
		snprintf(m.name, sizeof(m.name), "%s", name);
		c.send(m, W_NAME);
		Msg answer = c.recv();
		EXPECT_EQ(answer.type, W_NAMED);
		if (answer.as<w_name>().status != W_SUCCESS) {
			EXPECT_EQ(answer.as<w_name>().status,
				  static_cast<uint32_t>(W_UNKNOWN_NAME));
			return -1;
		}
		return answer.as<w_name>().host_addr[5];
	}

	static Msg admin(Client &c, w_admin_verb verb, const char *name)
	{
		w_admin m = {};

		m.verb = verb;
		snprintf(m.name, sizeof(m.name), "%s", name);
		c.send(m, W_ADMIN);
		return c.recv();
	}
};

TEST_F(Names, HostsAliasesNumbersDevices)
{
	Client c(*fabric, 1);

	EXPECT_EQ(look_up(c, "alpha"), 0);
	EXPECT_EQ(look_up(c, "gamma"), 2);
	EXPECT_EQ(look_up(c, "tail"), 2);
	EXPECT_EQ(look_up(c, "1"), 1);
	EXPECT_EQ(look_up(c, "3"), -1);
	EXPECT_EQ(look_up(c, "alpha", 1), -1);
	EXPECT_EQ(look_up(c, "/dev/clanvi0"), -1);
	EXPECT_EQ(look_up(c, "/dev/clanvi0", W_NAME_DEVICE), 1);
	EXPECT_EQ(look_up(c, "tail", W_NAME_DEVICE), 2);
	EXPECT_EQ(look_up(c, "nic0", W_NAME_DEVICE), -1);
	EXPECT_EQ(look_up(c, ""), -1);
}

TEST_F(Names, MachineNameIsTheHostOfWhoAsks)
{
	char machine[256] = "";
	ASSERT_EQ(gethostname(machine, sizeof(machine) - 1), 0);
	machine[strcspn(machine, ".")] = '\0';

	for (std::string name : { std::string("localhost"), std::string(machine) }) {
		/* A machine may have the name of a host of this fabric. */
		bool taken = name == "alpha" || name == "beta" || name == "gamma" ||
			     name == "head" || name == "tail" || isdigit(name[0]);

		for (unsigned host = 0; host < 3 && !taken; host++) {
			Client c(*fabric, host);

			EXPECT_EQ(look_up(c, name.c_str()), static_cast<int>(host)) << name;
			EXPECT_EQ(look_up(c, (name + "x").c_str()), -1);
			EXPECT_EQ(look_up(c, name.c_str(), 1), -1);
			EXPECT_EQ(look_up(c, name.c_str(), W_NAME_DEVICE), -1);
		}
		Client c(*fabric, 0);
		EXPECT_EQ(admin(c, W_ADMIN_ALIAS, (name + "=gamma").c_str()).as<w_refused>().status,
			  W_SUCCESS);
		if (!taken) {
			EXPECT_EQ(look_up(c, name.c_str()), 2)
				<< "a host or alias of that name comes first: " << name;
		}
	}
}

TEST_F(Names, AddressesHaveNames)
{
	Client c(*fabric, 0);
	w_name m = {};

	w_host_addr(2, m.host_addr);
	c.send(m, W_ADDR_NAME);
	Msg answer = c.recv();
	EXPECT_STREQ(answer.as<w_name>().name, "gamma");
	m.host_addr[0] = 0;
	c.send(m, W_ADDR_NAME);
	EXPECT_EQ(c.recv().as<w_name>().status, static_cast<uint32_t>(W_UNKNOWN_NAME));
}

TEST_F(Names, Lists)
{
	Client c(*fabric, 0);

	EXPECT_EQ(c.item(W_LIST_HOSTS, 2), "{\"id\":2,\"name\":\"gamma\",\"aliases\":[\"tail\"],"
					   "\"address\":\"02:56:44:00:00:02\"}");
	EXPECT_EQ(c.item(W_LIST_HOSTS, 3), "");
	EXPECT_NE(
		c.item(W_LIST_PORTS, 2).find("\"name\":\"right\",\"kind\":\"emu\",\"link\":\"up\""),
		std::string::npos);
	EXPECT_EQ(c.item(W_LIST_PORTS, 3), "");
	EXPECT_NE(c.item(W_LIST_CLIENTS, 0)
			  .find("\"program\":\"agent-test\",\"conns\":0,\"missed\":0}"),
		  std::string::npos);
	EXPECT_EQ(c.item(W_LIST_CLIENTS, 1), "");
	EXPECT_EQ(c.item(W_LIST_ALIASES, 2),
		  "{\"name\":\"/dev/clanvi0\",\"kind\":\"device\",\"host\":1}");
	EXPECT_EQ(c.item(W_LIST_ALIASES, 0xffffffff), "");
}

TEST_F(Names, NetworkIsListed)
{
	Client c(*fabric, 0, W_KIND_TOOL);

	EXPECT_EQ(c.item(W_LIST_TOPOLOGY, 0), "{\"spec\":\"ring\"}");
	EXPECT_EQ(c.item(W_LIST_TOPOLOGY, 1), "");
	EXPECT_EQ(c.item(W_LIST_TOPOLOGY, 0xffffffff), "");
	EXPECT_TRUE(eventually([&] {
		return c.item(W_LIST_LINKS, 2) ==
		       "{\"host\":2,\"heard\":true,\"up\":7,\"bridges\":0}";
	}));
	EXPECT_EQ(c.item(W_LIST_LINKS, 3), "");
	EXPECT_EQ(c.item(W_LIST_RELAY, 0).find("{\"threads\":"), 0u);
	EXPECT_NE(c.item(W_LIST_RELAY, 0).find("\"wait\":\"adaptive\",\"cpus\":[],\"circuits\":0,"),
		  std::string::npos);
	EXPECT_EQ(c.item(W_LIST_RELAY, 1).find("{\"thread\":\"vi-relay0\","), 0u);
	EXPECT_EQ(c.item(W_LIST_RELAY, 2).find("{\"thread\":\"vi-relay0\","), 0u); /* its warning */
	EXPECT_EQ(c.item(W_LIST_RELAY, 3), "");
}

TEST_F(Names, APortThatIsNotThereIsAnsweredWithThoseThatAre)
{
	Client c(*fabric, 1, W_KIND_TOOL);

	EXPECT_STREQ(admin(c, W_ADMIN_LINK_DOWN, "up").as<w_refused>().text,
		     "host 1 has no port up with a link; it has left, right");
}

TEST(Chain, TheRelaysOfALongRouteAreNamedAsFarAsThereIsRoom)
{
	Fabric f(16, [](ag_cfg &cfg) { cfg.topology = "chain"; });
	Client c(f, 0);
	w_route r;

	ASSERT_TRUE(eventually([&] {
		r = c.route(15);
		return r.reachable != 0;
	}));
	EXPECT_EQ(r.hops, 15u);
	EXPECT_STREQ(r.reason,
		     "relayed by host1, host2, host3, host4, host5, host6, host7, host8, host9, "
		     "host10, host11, host12, host13, host14");
	EXPECT_EQ(c.item(W_LIST_LINKS, 0), "{\"host\":0,\"heard\":true,\"up\":3,\"bridges\":2}");
}

TEST(Chain, RelaysThatDoNotFitAreCounted)
{
	static const std::string longer(60, 'n');
	static std::vector<std::string> text;
	static std::vector<const char *> names;

	for (unsigned i = 0; i < 6; i++)
		text.push_back(longer + std::to_string(i));
	for (auto &name : text)
		names.push_back(name.c_str());
	Fabric f(6, [](ag_cfg &cfg) {
		cfg.topology = "chain";
		cfg.host_names = names.data();
	});
	Client c(f, 0);
	w_route r;

	ASSERT_TRUE(eventually([&] {
		r = c.route(5);
		return r.reachable != 0;
	}));
	EXPECT_EQ(r.reason, "relayed by " + text[1] + ", " + text[2] + ", 2 more");
}

TEST_F(Names, AliasesAreAddedAndReplaced)
{
	Client c(*fabric, 0, W_KIND_TOOL);

	EXPECT_EQ(admin(c, W_ADMIN_ALIAS, "db=beta").as<w_refused>().status, W_SUCCESS);
	EXPECT_EQ(look_up(c, "db"), 1);
	EXPECT_EQ(admin(c, W_ADMIN_ALIAS, "db=2").as<w_refused>().status, W_SUCCESS);
	EXPECT_EQ(look_up(c, "db"), 2);
	EXPECT_EQ(admin(c, W_ADMIN_DEVICE, "VINIC=tail").as<w_refused>().status, W_SUCCESS);
	EXPECT_EQ(look_up(c, "VINIC", W_NAME_DEVICE), 2);
	EXPECT_EQ(admin(c, W_ADMIN_ALIAS, "db").as<w_refused>().status, W_BAD_REQUEST);
	EXPECT_EQ(admin(c, W_ADMIN_ALIAS, "db=delta").as<w_refused>().status, W_BAD_REQUEST);
	EXPECT_EQ(admin(c, W_ADMIN_ALIAS, "d\"b=beta").as<w_refused>().status, W_BAD_REQUEST);
	EXPECT_EQ(admin(c, W_ADMIN_DEVICE, "d\"b=beta").as<w_refused>().status, W_BAD_REQUEST);
	EXPECT_EQ(admin(c, W_ADMIN_LINK_DOWN, "self").as<w_refused>().status, W_BAD_REQUEST);
	EXPECT_EQ(admin(c, W_ADMIN_LINK_UP, "nowhere").as<w_refused>().status, W_BAD_REQUEST);
}

TEST_F(Names, TableOfAliasesIsBounded)
{
	Client c(*fabric, 0, W_KIND_TOOL);
	unsigned added = 0;

	for (int i = 0; i < 1100; i++)
		added += admin(c, W_ADMIN_ALIAS, ("x" + std::to_string(i) + "=0").c_str())
				 .as<w_refused>()
				 .status == W_SUCCESS;
	EXPECT_EQ(added, 1022u);
}

TEST(OnDemand, LeavesWhenAskedUnlessAProgramUsesIt)
{
	Fabric f(1, [](ag_cfg &cfg) {
		cfg.leave_when_idle = true;
		cfg.grace_ms = 3600000;
	});
	Client tool(f, 0, W_KIND_TOOL);
	w_admin m = {};

	m.verb = W_ADMIN_LEAVE;
	{
		Client nic(f, 0);
		tool.send(m, W_ADMIN);
		w_refused answer = tool.recv().as<w_refused>();
		EXPECT_EQ(answer.status, W_BAD_REQUEST);
		EXPECT_NE(strstr(answer.text, "is in use by "), nullptr) << answer.text;
		EXPECT_NE(strstr(answer.text, ("(pid " + std::to_string(getpid()) + ")").c_str()),
			  nullptr)
			<< answer.text;
	}
	ASSERT_TRUE(eventually([&] {
		tool.send(m, W_ADMIN);
		return tool.recv().as<w_refused>().status == W_SUCCESS;
	}));
	f.stop(0);
	EXPECT_EQ(tool.recv().type, 0);
}

TEST(OnDemand, OthersDoNotLeaveWhenAskedSo)
{
	Fabric f(1);
	Client tool(f, 0, W_KIND_TOOL);
	w_admin m = {};

	m.verb = W_ADMIN_LEAVE;
	tool.send(m, W_ADMIN);
	w_refused answer = tool.recv().as<w_refused>();
	EXPECT_EQ(answer.status, W_BAD_REQUEST);
	EXPECT_NE(strstr(answer.text, "is up already"), nullptr) << answer.text;
}

TEST(Stop, ByAdministration)
{
	Fabric f(1);
	Client tool(f, 0, W_KIND_TOOL), nic(f, 0);
	w_admin m = {};

	m.verb = W_ADMIN_STOP;
	tool.send(m, W_ADMIN);
	EXPECT_EQ(tool.recv().type, W_DONE);
	f.stop(0);
	EXPECT_EQ(tool.recv().type, 0);
	EXPECT_EQ(nic.recv().type, 0);
}

} // namespace
