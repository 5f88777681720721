/* SPDX-License-Identifier: BSD-2-Clause */
/* Many streams, one after the other and at once; idle ones; and changes of path at every byte. */
#include "all_lock.h"
#include "pair.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

namespace {

constexpr size_t kMost = 48, kIdle = 100;
/* Cells of the board. */
constexpr size_t kBetween = 0, kPorts = 16;

/* A direction whose bytes are sent in parts, and received by a thread in reads of odd sizes. */
class Direction {
public:
	Direction(End &from, End &to, uint64_t seed)
	    : from(from), to(to), seed(seed), taker([this] { take(); })
	{
	}
	~Direction() { end(); }
	void send(size_t n)
	{
		uint8_t bytes[kMost];

		NEED(n <= kMost);
		fill(bytes, n, sent, seed);
		from.send_all(bytes, n);
		sent += n;
	}
	void end()
	{
		if (ended)
			return;
		ended = true;
		st_shutdown(from, SHUT_WR);
		taker.join();
		EXPECT_EQ(sent, taken);
	}

private:
	void take()
	{
		uint8_t bytes[kMost];

		for (size_t size = 1;; size = size * 3 % 47) {
			ssize_t n = to.recv_wait(bytes, size);
			if (n == 0)
				return;
			NEED(n > 0);
			NEED(differs(bytes, static_cast<size_t>(n), taken, seed) ==
			     static_cast<size_t>(n));
			taken += static_cast<uint64_t>(n);
		}
	}

	End &from, &to;
	const uint64_t seed;
	uint64_t sent = 0, taken = 0;
	bool ended = false;
	Thread taker;
};

void exchange(Pair &p)
{
	char got[4];

	p.a.send_all("ping", 4);
	p.b.recv_all(got, 4);
	p.b.send_all("pong", 4);
	p.a.recv_all(got, 4);
}

/*
 * Ends one direction: that end still gets an answer, and the other one sees the end of the stream
 * and ends its own direction.
 */
void half_close(Pair &p, size_t unread)
{
	std::vector<uint8_t> got(unread);
	char pong[4];

	NEED(st_shutdown(p.a, SHUT_WR) == 0);
	NEED(p.a.send("x", 1) == -EPIPE);
	p.b.recv_all(got.data(), unread);
	NEED(differs(got.data(), unread, 0) == unread);
	/* The change is over now, or there is none. */
	until([&] { return (st_on_vi(p.a) & ST_OUT) || st_kernel_events(p.a, ST_OUT) != 0; }, 200);
	EXPECT_EQ(0, p.b.recv_wait(pong, 1));
	p.b.send_all("pong", 4);
	p.a.recv_all(pong, 4);
	EXPECT_EQ(0, st_shutdown(p.b, SHUT_WR));
	EXPECT_EQ(0, p.a.recv_wait(pong, 1));
	EXPECT_EQ(0, st_take_error(p.a));
}

} // namespace

/* ROUNDS */
ROLE(closer)
{
	Await awaited("the end that closes", stress() ? 600 : 110);
	Library library("host0", 4096);
	size_t rounds = std::stoul(args[0]);

	for (size_t i = 0; i < rounds; i++) {
		End end = meet(ST_ACCEPTOR, kPorts + i);
		int unread = 0;

		end.promote("host0");
		NEED(until([&] { return st_on_vi(end) != 0; }));
		while (!end.fast() && (unread == 0 || (st_on_vi(end) & ST_OUT) == 0))
			NEED(ioctl(end.fd, FIONREAD, &unread) == 0);
		cell(kBetween) += !end.fast();
		end.close();
	}
}

/*
 * Each round changes to the ring and back, with bytes before, during and after the changes: the
 * counts of bytes depend on the round, so that over all rounds a change comes at every byte, and a
 * ring is left at every place.
 */
TEST(SockLife, ChangesOfPathAtEveryByte)
{
	Await awaited("changes of path", stress() ? 600 : 110);
	Fabric fabric(1);
	Library library("host0", 4096);
	Pair p;
	Random random(7);
	Direction one(p.a, p.b, 1), two(p.b, p.a, 2);
	size_t rounds = scaled(300, 4000);
	uint64_t before = stats().promotions, resets = stats().resets;

	for (size_t i = 0; i < rounds; i++) {
		one.send(random.below(3));
		two.send(random.below(3));
		for (End *end : { &p.a, &p.b })
			NEED(until([&] {
				return st_promote(*end, "host0", nullptr, 0) != -EALREADY;
			}));
		one.send(random.below(3));
		two.send(random.below(3));
		if (!until([&] { return p.a.fast() && p.b.fast(); }))
			fail(__FILE__, __LINE__,
			     text("promotion in round %zu, found \"%s\" and \"%s\"", i,
				  st_why_text(st_why(p.a)), st_why_text(st_why(p.b))));
		for (size_t k = i % 300; k > 0; k -= std::min<size_t>(k, 40)) {
			one.send(std::min<size_t>(k, 1 + random.below(40)));
			two.send(std::min<size_t>(k, 1 + random.below(40)));
		}
		st_demote(i % 2 ? p.a : p.b, ST_WHY_ASKED);
		if (i % 3 == 0)
			st_demote(i % 2 ? p.b : p.a, ST_WHY_ASKED);
		one.send(random.below(3));
		two.send(random.below(3));
		NEED(until([&] { return st_on_tcp(p.a) && st_on_tcp(p.b); }));
	}
	one.end();
	two.end();
	EXPECT_EQ(before + 2 * rounds, stats().promotions);
	EXPECT_EQ(resets, stats().resets);
}

/*
 * The closer has read all, and sends over the VI already; it closes while the other end's token lies unread in the
 * kernel's socket, if its helper thread is not faster.  As with TCP the other end finds the end of the stream, and no
 * reset.
 */
TEST(SockLife, ACloseDuringAChangeOfPathResetsNothing)
{
	Await awaited("closes during a change of path", stress() ? 600 : 110);
	Fabric fabric(1);
	Library library("host0", 4096);
	size_t rounds = scaled(200, 4000);

	board_clear();
	Process closer = role("closer", { std::to_string(rounds) });
	for (size_t i = 0; i < rounds; i++) {
		End end = meet(ST_CONNECTOR, kPorts + i);
		char byte;

		end.promote("host0");
		NEED(end.recv_wait(&byte, 1) == 0);
		NEED(st_take_error(end) == 0);
	}
	EXPECT_EQ(0, closer.wait());
	std::cout << cell(kBetween) << " of " << rounds << " rounds closed between the paths\n";
}

/* The times of the shutdowns range from the beginning of a promotion to some time after its end. */
TEST(SockLife, AShutdownWhileADirectionChangesItsPath)
{
	Await awaited("shutdowns while paths change", stress() ? 600 : 110);
	Fabric fabric(1);
	Library library("host0", 4096);
	uint64_t resets = stats().resets;
	size_t rounds = scaled(300, 4000), n = 100;
	int64_t begun, took = 0;
	uint8_t bytes[100];

	fill(bytes, n, 0);
	for (size_t i = 0; i < rounds && !HasFailure(); i++) {
		Pair p;

		SCOPED_TRACE(text("round %zu, a promotion takes %lld ns", i,
				  static_cast<long long>(took)));
		p.a.send_all(bytes, n);
		begun = now_ns();
		p.promote("host0", "host0");
		if (i % 50 < 2) {
			NEED(until([&] { return p.a.fast() && p.b.fast(); }));
			took = now_ns() - begun;
		} else {
			while (now_ns() < begun + took * static_cast<int64_t>(i % 50) / 45)
				;
		}
		half_close(p, n);
	}
	EXPECT_EQ(resets, stats().resets);
}

/* A reader that has not read all bytes delays its answer. */
TEST(SockLife, AShutdownBehindAQuestion)
{
	Await awaited("a shutdown behind a question", 110);
	Fabric fabric(1);
	Library library("host0");
	std::vector<uint8_t> bytes(600000);
	size_t sent = 0;
	ssize_t rc;
	Pair p;

	fill(bytes.data(), bytes.size(), 0);
	while (sent < bytes.size() && (rc = p.a.send(&bytes[sent], bytes.size() - sent)) > 0)
		sent += static_cast<size_t>(rc);
	NEED(sent > 400000);
	p.promote("host0", "host0");
	NEED(until([&] { return st_on_vi(p.b) == ST_OUT; }));
	NEED(until([&] { return st_kernel_events(p.a, ST_OUT) == 0; }));
	NEED(st_shutdown(p.a, SHUT_WR) == 0);
	/* The helper polls, and leaves the kernel's socket as it is. */
	until([&] { return st_kernel_events(p.a, ST_OUT) != 0; }, 4);
	half_close(p, sent);
	EXPECT_EQ(0u, stats().resets);
}

/* The child ends like a child of vfork() whose program cannot be run. */
TEST(SockLife, AChildThatEndsLeavesItsParentsStreams)
{
	Await awaited("a child that ends", 100);
	Fabric fabric(1);
	Library library("host0", 4096);
	int status = -1;
	char got[2];
	Pair p;

	p.promoted("host0");
	exchange(p);
	NEED(p.a.send("a", 1, MSG_MORE) == 1);
	pid_t child = fork();
	if (child == 0) {
		st_fork_child();
		st_deliver(10000);
		_exit(st_foreign(p.a) && !st_on_tcp(p.b) ? 17 : 18);
	}
	NEED(waitpid(child, &status, 0) == child);
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(17, WEXITSTATUS(status));
	p.a.send_all("b", 1);
	p.b.recv_all(got, 2);
	EXPECT_EQ("ab", std::string(got, 2));
	EXPECT_EQ(-EAGAIN, p.b.recv(got, 1));
	exchange(p);
	EXPECT_EQ(0u, stats().resets);
}

/*
 * After a VI is lost the mark is delayed for a while; a process that gets the descriptor could
 * write before it.
 */
TEST(SockLife, ADescriptorIsHandedOnBehindALostVi)
{
	Await awaited("a lost VI", 100);
	Fabric fabric(1);
	Library library("host0", 4096);
	struct linger now = {};
	socklen_t size = sizeof(now);
	char got[4];
	Pair p;

	p.promoted("host0");
	exchange(p);
	EXPECT_EQ(-EAGAIN, st_settle(p.b));
	fabric.kill(0);
	NEED(until([&] { return !(st_on_vi(p.a) & ST_OUT) && !(st_on_vi(p.b) & ST_OUT); }));
	p.a.send_all("ping", 4);
	p.b.recv_all(got, 4);
	st_demote(p.b, ST_WHY_ASKED);
	NEED(until([&] { return st_on_tcp(p.b); }));
	EXPECT_EQ(0, st_settle(p.b));
	EXPECT_EQ(0, getsockopt(p.b.fd, SOL_SOCKET, SO_LINGER, &now, &size));
	EXPECT_EQ(0, now.l_onoff);
	NEED(::send(p.b.fd, "pong", 4, MSG_NOSIGNAL) == 4);
	p.a.recv_all(got, 4);
	EXPECT_EQ("pong", std::string(got, 4));
	EXPECT_EQ(0u, stats().resets);
}

TEST(SockLife, ManyMadeAndClosedLeaveNothing)
{
	Await awaited("streams that are made and closed", stress() ? 3000 : 110);
	Fabric fabric(1);
	Library library("host0", 4096);
	size_t count = scaled(600, 100000), window = 0, fds = 0;
	uint64_t memory = 0, before = stats().promotions, resets = stats().resets;

	for (size_t i = 0; i < count; i++) {
		/* The first hundreds fill the pools that later ones use. */
		if (i == count / 4) {
			NEED(until([&] { return fabric.connections(0) == 0; }));
			window = fabric.window_used(0);
			fds = fd_count(getpid());
			memory = own_memory(getpid());
		}
		Pair p;
		p.promoted("host0");
		exchange(p);
		if (i % 2)
			p.a.close();
	}
	EXPECT_TRUE(until([&] { return fabric.connections(0) == 0; }));
	EXPECT_TRUE(until([&] { return fabric.window_used(0) <= window; }))
		<< fabric.window_used(0) << " of the window, " << window << " before";
	EXPECT_TRUE(until([&] { return fd_count(getpid()) <= fds; }))
		<< fd_count(getpid()) << " descriptors, " << fds << " before";
	if (!sanitized()) {
		EXPECT_LT(own_memory(getpid()), memory + (2u << 20));
	}
	EXPECT_EQ(before + 2 * count, stats().promotions);
	EXPECT_EQ(resets, stats().resets);
}

/* Says by a cell that all streams are made, and exchanges bytes again at a signal. */
ROLE(idle)
{
	Await awaited("idle streams", 100);
	sigset_t one;
	int sig;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	NEED(sigprocmask(SIG_BLOCK, &one, nullptr) == 0);
	Library library("host0", 4096);
	std::vector<Pair> pairs(kIdle / 2);

	for (Pair &p : pairs)
		p.promote("host0", "host0");
	for (Pair &p : pairs) {
		NEED(until([&] { return p.a.fast() && p.b.fast(); }));
		exchange(p);
	}
	cell(1) = 1;
	NEED(sigwait(&one, &sig) == 0);
	for (Pair &p : pairs)
		exchange(p);
}

/*
 * Threads of a process with idle streams sleep, and hardly anything wakes them up.  How much
 * processor time that takes depends on the machine, too: only the longer run judges it.
 */
TEST(SockLife, AHundredIdleOnesUseNoProcessor)
{
	Await awaited("idle streams", 110);
	Fabric fabric(1);
	int64_t seconds = stress() ? 10 : 2;

	board_clear();
	Process idle = role("idle", {}, { { "VIADUCT_LOG", "error" } });
	NEED(until([&] { return cell(1) == 1 || idle.ended(); }));
	/* Wait until all work that their promotion has left is done. */
	NEED(until([&] { return awake(idle.pid()) == 0; }));
	int64_t used = cpu_ns(idle.pid()), slept = sleeps(idle.pid());
	int64_t end = now_ns() + seconds * 1000000000;
	until([&] { return now_ns() > end; }, static_cast<unsigned>(seconds) * 2000);
	used = cpu_ns(idle.pid()) - used;
	slept = sleeps(idle.pid()) - slept;
	printf("%zu idle streams slept %lld times and used %.1f ms in %lld s\n", kIdle,
	       static_cast<long long>(slept), static_cast<double>(used) / 1e6,
	       static_cast<long long>(seconds));
	EXPECT_LE(slept, 50 * seconds);
	EXPECT_TRUE(until([&] { return awake(idle.pid()) == 0; }));
	if (stress() && !sanitized()) {
		EXPECT_LE(used, 10000000);
	}
	idle.kill(SIGUSR1);
	EXPECT_EQ(0, idle.wait());
}

/* Many streams share one wait object, as in an epoll set, and one has its own. */
TEST(SockLife, IdleOnesAreNotLookedAtUntilSomethingHappens)
{
	Await awaited("quiet streams", 100);
	Fabric fabric(1);
	Library library("host0", 4096);
	st_wait *shared;

	NEED(st_wait_create(&shared) == 0);
	{
		std::vector<Pair> pairs(4);

		for (Pair &p : pairs) {
			p.a.promote("host0", &p == &pairs[0] ? nullptr : shared);
			p.b.promote("host0", shared);
		}
		for (Pair &p : pairs) {
			NEED(until([&] { return p.a.fast() && p.b.fast(); }));
			exchange(p);
		}
		/* Twice the time that the helper leaves between two polls. */
		uint64_t looks = stats().looks;
		int64_t since = now_ns();

		EXPECT_TRUE(until([&] {
			if (stats().looks != looks) {
				looks = stats().looks;
				since = now_ns();
			}
			return now_ns() - since > 1000000000;
		}));
		/* No thread of this end takes entries, so the helper has to find the other end's request. */
		for (Pair &p : pairs) {
			End &asks = &p == &pairs[0] ? p.b : p.a;

			st_demote(asks, ST_WHY_ASKED);
			EXPECT_TRUE(until([&] { return st_on_tcp(p.a) && st_on_tcp(p.b); }));
			exchange(p);
		}
		EXPECT_EQ(0u, stats().resets);
	}
	st_wait_destroy(shared);
}

// A handler whose thread was in the middle of a change of these lists must not change them.
TEST(Handlers, ReferencesAreGivenBackByTheNextThread)
{
	st_origin origin = {};
	origin.size = sizeof(origin);
	origin.role = ST_CONNECTOR;
	st_stream *streams[2];
	st_wait *wait, *none;
	int socks[2];
	auto counted = [](int (*count)()) {
		all_lock();
		int n = count();
		all_unlock();
		return n;
	};

	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, socks), 0);
	const int streams_before = counted(all_streams), waits_before = counted(all_waits);
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(st_create(socks[i], &origin, &streams[i]), 0);
	ASSERT_EQ(st_wait_create(&wait), 0);
	for (st_stream *s : streams)
		st_close(s, ST_CLOSE_ORDERLY);
	st_get(streams[0]);

	all_lock();
	st_put(streams[0]);
	st_put(streams[0]);
	st_wait_destroy(wait);
	EXPECT_EQ(st_wait_create(&none), -EDEADLK);
	EXPECT_TRUE(all_locked());
	EXPECT_EQ(all_streams(), streams_before + 2);
	EXPECT_EQ(all_waits(), waits_before + 1);
	all_unlock();

	st_put(streams[1]);
	EXPECT_EQ(counted(all_streams), streams_before);
	EXPECT_EQ(counted(all_waits), waits_before);
	close(socks[0]);
	close(socks[1]);
}

TEST(Handlers, AWaitObjectOfTheirThreadIsNotArmed)
{
	st_wait *wait;

	ASSERT_EQ(st_wait_create(&wait), 0);
	wait_lock(wait);
	EXPECT_EQ(st_wait_arm(wait), -EDEADLK);
	wait_unlock(wait);
	EXPECT_EQ(st_wait_arm(wait), 0);
	st_wait_destroy(wait);
}
