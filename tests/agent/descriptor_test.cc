// SPDX-License-Identifier: BSD-2-Clause
// Descriptors that block the thread that closes them: sent by unauthorised users, processes and neighbours, they do not
// block the agent.  Tested where the kernel keeps them out of sockets, and where it cannot.
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>

#include "agent_fixture.h"
#include "lingering.h"
#include "probes.h"

extern "C" {
#include "ag_watchdog.h"
#include "port_emu_priv.h"
#include "u_close.h"
#include "u_time.h"
}

using namespace agent_test;

namespace {

constexpr uid_t kUnauthorisedUid = 31337;

#ifdef __SANITIZE_THREAD__
constexpr bool kNoThreadsInChildren = true;
#else
constexpr bool kNoThreadsInChildren = false;
#endif

bool kernel_keeps_them_out()
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool does = u_rights_pass(sock, false);

	close(sock);
	return does;
}

class Waiting : public ::testing::TestWithParam<bool> {
protected:
	void SetUp() override
	{
		struct sigaction sa = {};
		sa.sa_handler = [](int) {};
		sigaction(SIGURG, &sa, nullptr);
		u_close_signal(SIGURG);
		if (GetParam() && !kernel_keeps_them_out())
			GTEST_SKIP() << "needs SO_PASSRIGHTS (Linux 6.16)";
		if (!GetParam() && !probe_refused_fds_are_closed())
			GTEST_SKIP() << "here a check takes descriptors that it has no room for";
		u_rights_forget(!GetParam());
		fabric = std::make_unique<Fabric>(2);
		wait_links(*fabric);
	}
	void TearDown() override
	{
		if (fabric != nullptr && !IsSkipped())
			serves();
		fabric.reset();
		u_rights_forget(false);
	}

	// Waits until everything that was to be closed on spare threads is closed: the agents do that.
	void serves()
	{
		for (unsigned host = 0; host < 2; host++) {
			Client c(*fabric, host);
			EXPECT_TRUE(c.ok());
		}
		wait_links(*fabric);
		EXPECT_TRUE(eventually([] { return u_close_busy() == 0; }));
	}

	int dial(socklen_t len, const sockaddr_un &un)
	{
		int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		EXPECT_EQ(connect(sock, reinterpret_cast<const sockaddr *>(&un), len), 0);
		return sock;
	}

	// The attack: one message with a socket whose last holder waits for an hour.
	int attack(int sock, Lingering &l, const std::vector<int> &more = {})
	{
		w_hello m = {};

		m.kind = W_KIND_TOOL;
		w_ctl_init(&m, W_HELLO, sizeof(m));
		return l.pass(sock, &m, sizeof(m), more);
	}

	// Another user attacks many times; some processes die, some hang up, some stay until they are told to go.
	void attack_unauthorised(const sockaddr_un &un, socklen_t len, unsigned times)
	{
		int go[2];

		ASSERT_EQ(pipe(go), 0);
		pid_t pid = fork();
		if (pid == 0) {
			if (setgroups(0, nullptr) != 0 || setgid(kUnauthorisedUid) != 0 ||
			    setuid(kUnauthorisedUid) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
				_exit(1);
			for (unsigned i = 0; i < times; i++) {
				auto *l = new Lingering;
				int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
				if (!l->ok() ||
				    connect(sock, reinterpret_cast<const sockaddr *>(&un), len) !=
					    0)
					_exit(2);
				attack(sock, *l);
				if (i % 2 == 0)
					close(sock);
			}
			write(go[1], "x", 1);
			pause();
		}
		char byte;
		close(go[1]); /* so that the end of a child that failed is noticed */
		EXPECT_EQ(read(go[0], &byte, 1), 1);
		serves();
		kill(pid, SIGKILL);
		waitpid(pid, nullptr, 0);
		close(go[0]);
	}

	std::unique_ptr<Fabric> fabric;
};

INSTANTIATE_TEST_SUITE_P(Descriptors, Waiting, ::testing::Values(true, false),
			 [](const auto &info) {
				 return info.param ? "KeptOutByTheKernel" : "Peeked";
			 });

TEST_P(Waiting, OfUnauthorisedUsersHoldNobodyUp)
{
	if (kNoThreadsInChildren)
		GTEST_SKIP() << "the sanitizer lets no child of a process with threads start one";
	if (geteuid() != 0)
		GTEST_SKIP() << "needs root to become somebody else";
	sockaddr_un un;
	socklen_t len = w_agent_addr(&un, 0, fabric->name().c_str(), 0);

	testing::internal::CaptureStderr();
	attack_unauthorised(un, len, 40);
	testing::internal::GetCapturedStderr();
}

TEST_P(Waiting, OfUnauthorisedUsersAtACableHoldNobodyUp)
{
	if (kNoThreadsInChildren)
		GTEST_SKIP() << "the sanitizer lets no child of a process with threads start one";
	if (geteuid() != 0)
		GTEST_SKIP() << "needs root to become somebody else";

	testing::internal::CaptureStderr();
	for (unsigned host = 0; host < 2; host++) {
		for (unsigned port = 1; port < 3; port++) {
			sockaddr_un un;
			socklen_t len = w_cable_addr(&un, 0, fabric->name().c_str(), host, port);
			int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
			bool listens = connect(probe, reinterpret_cast<sockaddr *>(&un), len) == 0;
			close(probe);
			if (listens)
				attack_unauthorised(un, len, 10);
		}
	}
	testing::internal::GetCapturedStderr();
}

TEST_P(Waiting, OfAProcessHoldNobodyUp)
{
	Lingering l[5];

	testing::internal::CaptureStderr();
	for (int i = 0; i < 5; i++) {
		Client c(*fabric, 0);
		w_token m = {};
		int memory = memfd_create("more", MFD_CLOEXEC);
		ASSERT_TRUE(l[i].ok());
		w_ctl_init(&m, W_CANCEL, sizeof(m));
		int rc = l[i].pass(c.sock, &m, i == 0 ? 0 : sizeof(m),
				   std::vector<int>(i < 2 ? 0 : 40u * i, memory));
		EXPECT_EQ(rc, GetParam() ? EPERM : 0);
		close(memory);
		if (i == 1)
			c.hang_up();
		else if (GetParam())
			c.sync(); /* the attack harmed nobody, the attacker included */
		else
			EXPECT_EQ(c.recv_any().type, 0) << "it is not dropped";
		serves();
	}
	testing::internal::GetCapturedStderr();
}

// An agent that ends hangs up on connections that it has not accepted yet.
TEST_P(Waiting, HoldNobodyUpWhoLeaves)
{
	Lingering l;
	sockaddr_un un;
	socklen_t len = w_agent_addr(&un, geteuid(), fabric->name().c_str(), 0);

	ASSERT_TRUE(l.ok());
	fabric->pause(0);
	int sock = dial(len, un);
	EXPECT_EQ(attack(sock, l), GetParam() ? EPERM : 0);
	fabric->finish(0);
	fabric->start(0);
	close(sock);
}

// The process at the cable has the right user, but breaks the rules.
TEST_P(Waiting, OfANeighbourHoldNobodyUp)
{
	testing::internal::CaptureStderr();
	fabric->stop(1);
	for (unsigned kind = 0; kind < 6; kind++) {
		sockaddr_un un;
		socklen_t len = w_cable_addr(&un, geteuid(), fabric->name().c_str(), 0, 1);
		Lingering l;
		int sock = dial(len, un), memory = memfd_create("more", MFD_CLOEXEC);
		struct emu_msg m = emu_msg(kind < 4 ? EMU_HELLO : EMU_OFFER);
		char hello[sizeof(struct emu_msg)];

		ASSERT_TRUE(l.ok());
		/* Its DOORBELLS and HELLO show that it takes descriptors from here on. */
		for (int i = 0; i < 2; i++)
			EXPECT_EQ(recv(sock, hello, sizeof(hello), 0),
				  static_cast<ssize_t>(sizeof(m)));
		EXPECT_EQ(l.pass(sock, &m, kind == 1 ? 0 : sizeof(m),
				 std::vector<int>(kind < 2 ? 0 : 60u * (kind - 1), memory)),
			  0);
		close(memory);
		if (kind % 2 == 0) {
			EXPECT_LE(recv(sock, hello, sizeof(hello), 0), 0) << "not unplugged";
		}
		close(sock);
		Client c(*fabric, 0);
		EXPECT_TRUE(c.ok());
	}
	fabric->start(1);
	testing::internal::GetCapturedStderr();
}

// ---- messages that wait for processes that do not read ----

TEST(Unread, DescriptorsThatWaitForOneAreBoundedAndOthersAreServed)
{
	Fabric f(1);
	std::vector<std::unique_ptr<Client>> lazy;
	int most = 0, before = open_fds();
	rlimit rl;

	getrlimit(RLIMIT_NOFILE, &rl);
	testing::internal::CaptureStderr();
	for (int k = 0; k < 3; k++) {
		lazy.push_back(std::make_unique<Client>(f, 0));
		bool dropped = false;
		for (int i = 0; i < 4000 && !dropped; i++) {
			w_alloc m = {};
			m.token = static_cast<uint64_t>(i);
			m.length = 4096;
			pollfd p = { lazy.back()->sock, POLLOUT, 0 };
			poll(&p, 1, kDeadlineMs);
			dropped = lazy.back()->send(m, W_ALLOC) != 0;
		}
		Client other(f, 0);
		EXPECT_TRUE(other.ok());
		most = std::max(most, open_fds() - before);
	}
	testing::internal::GetCapturedStderr();
	/* Two for each allocation, one of them waits; those in the socket have one. */
	EXPECT_LT(most, static_cast<int>(std::min<rlim_t>(rl.rlim_cur / 8, 2048)) * 2 + 1200);
	lazy.clear();
	EXPECT_TRUE(eventually([&] { return open_fds() <= before; }));
}

// ---- the watchdog ----

TEST(Watchdog, ReportsAThreadThatStandsOnceAndNoneThatWaits)
{
	ag_watchdog w = {};
	u_log_ratelimit ratelimit = { U_LOG_ERROR, "ag", "standstills", nullptr, 0, 0 };

	testing::internal::CaptureStderr();
	ASSERT_EQ(ag_watchdog_start(&w, &ratelimit, 7), 0);
	ag_watchdog_rest(&w);
	EXPECT_TRUE(eventually([&] { return atomic_load(&w.asleep) == 1; }));
	int64_t begun = u_now_ns();
	ag_watchdog_work(&w);
	EXPECT_TRUE(eventually([&] { return atomic_load(&w.reports) == 1; }));
	EXPECT_GE(u_now_ns() - begun, AG_STAND_NS);
	ag_watchdog_rest(&w);
	/* Nothing wakes it while there is nothing to watch. */
	EXPECT_TRUE(eventually([&] { return atomic_load(&w.asleep) == 1; }));
	ag_watchdog_work(&w);
	EXPECT_EQ(atomic_load(&w.asleep), 0u);
	ag_watchdog_rest(&w);
	ag_watchdog_stop(&w);
	EXPECT_EQ(atomic_load(&w.reports), 1u);
	std::string line = testing::internal::GetCapturedStderr();
	EXPECT_NE(line.find("the agent of host 7 has stood still for more than 1 s"),
		  std::string::npos)
		<< line;
}

} // namespace
