/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of a user without rights on a fabric, together with honest ones on its two hosts.  The
 * unauthorised processes send agents and cables descriptors that hold up whoever closes them, keep
 * connections open, send HELLO and hang up, send bytes that are no message, listen at addresses of
 * hosts that the fabric does not have, do not read what they are told, die and come again.  What
 * must hold: no honest call fails, none of the unauthorised is let in, and in the end agents have
 * the descriptors that they had.
 *
 * CLUSTER_STRANGER_SECONDS says for how long; the longest waits are as in hostile_test.cc.  The
 * test runs once with the kernel as it is, and once as if it could not keep descriptors out.
 */
#include "honest.h"
#include "lingering.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

extern "C" {
#include "w_addr.h"
#include "w_ctl.h"
}

using namespace clu;

constexpr unsigned kHosts = 2, kUnauthorised = 3, kPorts = 4, kNobodys = 60;
constexpr uid_t kUnauthorisedUid = 31337;
constexpr size_t kDeeds = 512, kFdsMax = 253, kOversize = 100000;
enum Deed { LINGER, KEEP, HELLO, NOISE, SQUAT, UNREAD, DEEDS };
enum { SENT = kDeeds + DEEDS, KEPT_OUT, REACHED, LET_IN, COUNTS = 4 };
static const char *const deed_names[] = { "lingering", "kept open", "HELLOs",
					  "noise",     "squats",    "unread" };
static const char *const count_names[] = { "sent", "kept out by the kernel", "reached", "let in" };

/* A descriptor that the destructor closes. */
class Fd {
public:
	explicit Fd(int number) : fd(number) {}
	Fd(Fd &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
	Fd &operator=(Fd &&other) noexcept
	{
		std::swap(fd, other.fd);
		return *this;
	}
	~Fd()
	{
		if (fd >= 0)
			close(fd);
	}
	operator int() const { return fd; }

private:
	int fd;
};

class UnauthorisedUser {
public:
	UnauthorisedUser(uid_t owner, uint64_t stream) : owner_(owner), random_(stream) {}

	void act()
	{
		auto deed = static_cast<Deed>(random_.below(DEEDS));

		cell(kDeeds + deed)++;
		switch (deed) {
		case LINGER:
			linger();
			break;
		case KEEP:
			keep();
			break;
		case HELLO:
			hello();
			break;
		case NOISE:
			noise();
			break;
		case SQUAT:
			squat();
			break;
		default:
			unread();
		}
		if (random_.below(8) == 0)
			give_up();
		if (random_.below(64) == 0)
			_exit(0);
	}

private:
	/*
	 * The address of an agent or of a cable, of a host of the fabric (`ours`) or of one that it does not
	 * have.
	 */
	socklen_t any_addr(sockaddr_un *un, bool ours)
	{
		const char *fabric = getenv("VIADUCT_FABRIC");
		auto host = static_cast<unsigned>(ours ? random_.below(kHosts)
						       : kHosts + random_.below(kNobodys));

		if (random_.below(3) != 0)
			return w_agent_addr(un, owner_, fabric, host);
		return w_cable_addr(un, owner_, fabric, host,
				    static_cast<unsigned>(random_.below(kPorts)));
	}

	/* Is the peer another unauthorised process, which would be held up by what is sent? */
	static bool squatted(int sock)
	{
		ucred cred = {};
		socklen_t len = sizeof(cred);

		return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
		       cred.uid == kUnauthorisedUid;
	}

	/* Not connected when no agent listens there or its queue is full. */
	Fd dial()
	{
		sockaddr_un un;
		socklen_t len = any_addr(&un, true);
		Fd sock(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

		if (connect(sock, reinterpret_cast<sockaddr *>(&un), len) != 0)
			return sock;
		if (squatted(sock))
			return Fd(-1);
		cell(REACHED)++;
		return sock;
	}

	void note(int rc)
	{
		cell(SENT) += rc == 0;
		cell(KEPT_OUT) += rc == EPERM;
	}

	/* The last holder of each waits for an hour, or until this process ends. */
	void linger()
	{
		w_hello m = {};

		w_ctl_init(&m, W_HELLO, sizeof(m));
		m.kind = W_KIND_NIC;
		for (uint64_t n = 1 + random_.below(8); n > 0 && !over(); n--) {
			auto l = std::make_unique<Lingering>();
			Fd sock = dial(), memory(memfd_create("unauthorised", MFD_CLOEXEC));
			size_t more = random_.below(2) ? random_.below(kFdsMax) : 0;

			if (!l->ok())
				return;
			note(l->pass(sock, &m, random_.below(4) ? sizeof(m) : 0,
				     std::vector<int>(more, memory)));
			lingering_.push_back(std::move(l));
			if (random_.below(2))
				kept_.push_back(std::move(sock));
		}
		while (lingering_.size() > 32)
			lingering_.pop_front();
	}

	void keep()
	{
		for (uint64_t n = random_.below(400); n > 0 && !over(); n--)
			kept_.push_back(dial());
		while (kept_.size() > 600)
			kept_.pop_front();
	}

	bool send_hello(int sock)
	{
		w_hello m = {};

		w_ctl_init(&m, W_HELLO, sizeof(m));
		m.kind = random_.below(2) ? W_KIND_NIC : W_KIND_TOOL;
		return w_ctl_send(sock, &m, nullptr, 0) == 0;
	}

	/* Sends HELLO; sometimes waits for the answer, which must not be WELCOME. */
	void hello()
	{
		for (uint64_t n = random_.below(200); n > 0 && !over(); n--) {
			alignas(8) uint8_t answer[W_CTL_MAX];
			Fd sock = dial();
			ssize_t len;

			send_hello(sock);
			if (random_.below(4) != 0)
				continue;
			len = recv(sock, answer, sizeof(answer), MSG_DONTWAIT);
			if (len > 0 && w_ctl_check(answer, static_cast<uint32_t>(len)) == W_WELCOME)
				cell(LET_IN)++;
		}
	}

	void noise()
	{
		std::vector<uint8_t> bytes(random_.below(2) ? W_CTL_MAX : kOversize);
		Fd sock = dial(), memory(memfd_create("unauthorised", MFD_CLOEXEC));
		Fd device(open("/dev/zero", O_RDONLY | O_CLOEXEC));

		for (uint8_t &b : bytes)
			b = static_cast<uint8_t>(random_.next());
		for (uint64_t n = random_.below(32); n > 0 && !over(); n--) {
			size_t len = random_.below(bytes.size() + 1);

			if (len >= sizeof(w_ctl_hdr) && random_.below(2))
				w_ctl_init(bytes.data(),
					   static_cast<w_ctl_type>(random_.below(150)),
					   static_cast<uint32_t>(len));
			if (random_.below(2))
				(void)!send(sock, bytes.data(), len, MSG_NOSIGNAL);
			else
				note(Lingering::send_fds(sock, bytes.data(), len, device,
							 std::vector<int>(random_.below(kFdsMax),
									  memory)));
			if (random_.below(4) == 0)
				sock = dial();
		}
	}

	void squat()
	{
		for (uint64_t n = random_.below(40); n > 0 && !over(); n--) {
			sockaddr_un un;
			socklen_t len = any_addr(&un, random_.below(8) == 0);
			Fd sock(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

			if (bind(sock, reinterpret_cast<sockaddr *>(&un), len) == 0 &&
			    listen(sock, 1) == 0)
				kept_.push_back(std::move(sock));
		}
	}

	void unread()
	{
		for (uint64_t n = random_.below(100); n > 0 && !over(); n--) {
			kept_.push_back(dial());
			for (int i = 0; i < 64 && send_hello(kept_.back()); i++)
				;
		}
	}

	void give_up()
	{
		kept_.clear();
		lingering_.clear();
	}

	const uid_t owner_;
	Random random_;
	std::deque<Fd> kept_;
	std::deque<std::unique_ptr<Lingering>> lingering_;
};

/* Becomes another user than the one the test runs as; the process still ends with the test. */
static void drop_rights()
{
	NEED(setgroups(0, nullptr) == 0 && setgid(kUnauthorisedUid) == 0 &&
	     setuid(kUnauthorisedUid) == 0);
	NEED(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
}

/* stream */
ROLE(unauthorised)
{
	UnauthorisedUser s(geteuid(), std::stoull(args.at(0)));

	cell(0);
	drop_rights();
	while (!over())
		s.act();
	_exit(0); /* with whatever still lingers */
}

/* ---- the run ------------------------------------------------------------------------------------- */

class UnauthorisedUsers : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Descriptors, UnauthorisedUsers, ::testing::Values(true, false),
			 [](const auto &info) {
				 return info.param ? "KeptOutByTheKernel" : "Peeked";
			 });

TEST_P(UnauthorisedUsers, HarmNobody)
{
	if (geteuid() != 0)
		GTEST_SKIP() << "needs root to become somebody else";
	board_clear();
	Fabric f(kHosts, GetParam() ? Args{} : Args{ "--no-passrights" });
	std::vector<size_t> before;
	for (unsigned host = 0; host < kHosts; host++)
		before.push_back(quiet_fds(f.agent(host).pid()));
	Honest good({ kHosts, 2, 2, 2 });
	std::vector<Process> bad(kUnauthorised);
	uint64_t generations = 0;
	size_t most = 0;

	good.run(honest_seconds("CLUSTER_STRANGER_SECONDS"), [&] {
		for (Process &p : bad) {
			if (p.pid() < 0 || p.ended())
				p = role("unauthorised", { text("%" PRIu64, ++generations) }, {},
					 1000);
		}
		most = std::max(most, fd_count(f.agent(0).pid()));
	});
	good.end(bad);
	print_deeds("unauthorised users", kDeeds, deed_names, DEEDS);
	print_deeds("of these", SENT, count_names, COUNTS);
	printf("descriptors of an agent: %zu before, %zu at most\n", before[0], most);
	EXPECT_EQ(cell(LET_IN), 0u);
	expect_nobody(f, kHosts);
	for (unsigned host = 0; host < kHosts; host++)
		EXPECT_TRUE(until([&] { return quiet_fds(f.agent(host).pid()) <= before[host]; }))
			<< fd_count(f.agent(host).pid()) << " instead of " << before[host];
	f.stop();
	EXPECT_EQ(f.left_behind(), "");
}
