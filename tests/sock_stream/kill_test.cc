/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An end of a stream, an agent or a link is lost in every state of the stream.  The other end
 * receives all bytes that were sent, then the end of the stream or a reset; a lost VI goes
 * unnoticed, or resets both ends.  Nobody waits for long, and nothing is left.
 */
#include "pair.h"

#include "die.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

namespace {

constexpr int64_t kWithin = 10000000000; /* until a survivor knows */
constexpr size_t kMost = 5000;
constexpr uint32_t kRing = 4096;

/* Cells: of the connection, and of each end by its role. */
enum { PORT, CELLS = 16 };
enum { SENT, RECEIVED, OUTCOME, ENDED_AT, STAGE, CALLS, QUEUED, RESETS };

std::atomic<uint64_t> &mine(unsigned role, unsigned what)
{
	return cell(role * CELLS + what);
}

/* The result that ends a conversation early: 0 at the end of the stream, or an error. */
struct Over {
	ssize_t rc;
};

/* Makes the same calls at both ends, in turn: each expects what the other sends. */
class Talk {
public:
	Talk(st_role role, const std::string &peer) : role(role), peer(peer), end(meet(role, PORT))
	{
	}

	void all()
	{
		for (size_t i = 0; i < 4; i++)
			turn(1 + i * 7);
		for (int round = 0; round < 2; round++) {
			promote();
			for (size_t i = 0; i < 12; i++)
				turn(1 + i * 333);
			flood(20000); /* more than the ring holds, both at once */
			back();
			turn(100);
		}
		NEED(st_shutdown(end, SHUT_WR) == 0);
		ssize_t rc = end.recv_wait(&own, 1);
		if (rc != 0)
			throw Over{ rc };
	}

	/* Tries to promote; an attempt ends at both ends, with success or not. */
	void promote()
	{
		bool asked = false;

		/* The earlier VI may still be there. */
		do
			asked = asked || st_promote(end, peer.c_str(), nullptr, 0) != -EALREADY;
		while (!same(asked));
		while (!same(end.fast() || st_why(end) != ST_WHY_NONE))
			;
	}

	void back()
	{
		if (role == ST_CONNECTOR)
			st_demote(end, ST_WHY_ASKED);
		while (!same(st_on_tcp(end)))
			;
	}

	void turn(size_t n)
	{
		if (role == ST_CONNECTOR)
			move(n, 0);
		move(0, n);
		if (role == ST_ACCEPTOR)
			move(n, 0);
	}

	void flood(size_t n) { move(n, n); }

	/* Sends and receives at the same time; sleeps for bytes and room. */
	void move(size_t out, size_t in)
	{
		while (out > 0 || in > 0) {
			size_t sent = out > 0 ? give(std::min(out, kMost)) : 0;
			size_t got = in > 0 ? take(std::min(in, kMost)) : 0;
			out -= sent;
			in -= got;
			if (sent == 0 && got == 0)
				doze(out == 0 ? ST_IN : in == 0 ? ST_OUT : ST_IN | ST_OUT);
		}
	}

	/* Receives whatever still comes. */
	void drain()
	{
		uint8_t bytes[kMost];
		ssize_t rc;

		while ((rc = end.recv_wait(bytes, sizeof(bytes))) > 0)
			mine(role, RECEIVED) += static_cast<uint64_t>(rc);
		if (rc == -ECONNRESET) {
			mine(role, RESETS)++;
			drain();
		}
		NEED(rc != -ETIME);
	}

	const st_role role;
	const std::string peer;
	End end;

private:
	/* Exchanges a byte; true if both ends say so. */
	bool same(bool yes)
	{
		ssize_t rc;

		own = yes;
		rc = end.send_wait(&own, 1);
		if (rc != 1)
			throw Over{ rc };
		mine(role, SENT)++;
		rc = end.recv_wait(&other, 1);
		if (rc != 1)
			throw Over{ rc };
		mine(role, RECEIVED)++;
		return own && other;
	}

	void doze(unsigned events)
	{
		timespec until;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += kSeconds;
		NEED(st_sleep(end, events, &until) > 0);
	}

	size_t give(size_t n)
	{
		uint8_t bytes[kMost];

		fill(bytes, n, sent, role);
		ssize_t rc = end.send(bytes, n);
		if (rc == -EAGAIN)
			return 0;
		if (rc <= 0)
			throw Over{ rc };
		sent += static_cast<uint64_t>(rc);
		mine(role, SENT) += static_cast<uint64_t>(rc);
		return static_cast<size_t>(rc);
	}

	size_t take(size_t n)
	{
		uint8_t bytes[kMost];

		ssize_t rc = end.recv(bytes, n);
		if (rc == -EAGAIN)
			return 0;
		if (rc <= 0)
			throw Over{ rc };
		size_t some = static_cast<size_t>(rc);
		NEED(differs(bytes, some, received, 3 - role) == some);
		received += some;
		mine(role, RECEIVED) += some;
		return some;
	}

	uint64_t sent = 0, received = 0;
	uint8_t own = 0, other = 0;
};

enum Outcome { WHOLE = 1, END, RESET };

void come_to_an_end(Talk &talk, const std::function<void()> &what)
{
	Outcome outcome = WHOLE;

	try {
		what();
	} catch (const Over &over) {
		if (over.rc != 0 && over.rc != -ECONNRESET && over.rc != -EPIPE)
			fail(__FILE__, __LINE__, text("an end or a reset, found %zd", over.rc));
		outcome = over.rc == 0 ? END : RESET;
		mine(talk.role, RESETS) += over.rc == -ECONNRESET;
		talk.drain();
	}
	mine(talk.role, ENDED_AT) = static_cast<uint64_t>(now_ns());
	mine(talk.role, OUTCOME) = outcome;
}

} // namespace

static st_role dying;

/* ROLE, OWN HOST, PEER HOST, CALL TO DIE AT */
ROLE(talker)
{
	Await awaited("a talk", 90);
	st_role role = static_cast<st_role>(atoi(args[0].c_str()));
	Library library("host" + args[1], kRing);
	Talk talk(role, "host" + args[2]);

	dying = role;
	die_at(static_cast<unsigned>(atoi(args[3].c_str())),
	       [] { mine(dying, QUEUED) = die_queued(); });
	come_to_an_end(talk, [&] { talk.all(); });
	mine(role, CALLS) = die_calls();
}

/*
 * ROLE, OWN HOST, PEER HOST, r, w, h, a, OR e: READS, WRITES, DOES NEITHER, READS ALL, DIES AFTER
 * AN EMPTY RECORD
 */
ROLE(holder)
{
	Await awaited("a talk with one that holds it", 60);
	st_role role = static_cast<st_role>(atoi(args[0].c_str()));
	Library library("host" + args[1], kRing);
	Talk talk(role, "host" + args[2]);

	come_to_an_end(talk, [&] {
		talk.promote();
		NEED(talk.end.fast());
		mine(role, STAGE) = 1;
		if (args[3] == "h")
			pause();
		if (args[3] == "e") {
			die_behind_empty();
			for (;;) {
				NEED(until(die_awaited));
				talk.move(20, 0); /* 48 bytes of the ring each */
			}
		}
		talk.move(args[3] == "w" ? 1u << 30 : 0,
			  args[3] == "a" ? 1u << 30 : args[3] == "r");
	});
}

namespace {

const Env quiet = { { "VIADUCT_LOG", "error" } };

/* Checks that both agents of a fabric hold no more than before. */
class Clean {
public:
	explicit Clean(Fabric &fabric) : fabric(fabric)
	{
		for (unsigned i = 0; i < fabric.size(); i++) {
			window.push_back(fabric.window_used(i));
			fds.push_back(quiet_fds(fabric.agent(i).pid()));
		}
	}
	void check()
	{
		for (unsigned i = 0; i < fabric.size(); i++) {
			EXPECT_TRUE(until([&] {
				return fabric.clients(i) == 0 && fabric.window_used(i) <= window[i];
			})) << "agent "
			    << i << " holds " << fabric.window_used(i) << " of " << window[i];
			EXPECT_TRUE(until([&] {
				return fd_count(fabric.agent(i).pid()) <= fds[i];
			})) << "agent "
			    << i << ": " << fd_count(fabric.agent(i).pid());
		}
	}

private:
	Fabric &fabric;
	std::vector<uint64_t> window;
	std::vector<size_t> fds;
};

Process start(const char *what, unsigned role_, unsigned hosts, const std::string &how)
{
	unsigned own = hosts > 1 ? role_ - 1 : 0, peer = hosts > 1 ? 2 - role_ : 0;

	return role(what, { std::to_string(role_), std::to_string(own), std::to_string(peer), how },
		    quiet);
}

std::string what_it_waits_for(Process &end)
{
	return stacks(end.pid(),
		      { "*st_process.all", "*st_process.all->link", "*st_process.all->wait" });
}

/* Requires that the end ends before its own deadline. */
void in_time(Process &end)
{
	if (!until([&] { return end.ended(); }, kSeconds * 500))
		ADD_FAILURE() << "an end has not ended:\n" << what_it_waits_for(end);
}

/* The number of kills by which bytes were lost. */
unsigned lossy;

/* Kills the victim at a call; false: the victim finished before that call. */
bool kill_at(Fabric &fabric, unsigned victim, unsigned call)
{
	unsigned other = 3 - victim;
	bool killed;

	board_clear();
	Process dead = start("talker", victim, fabric.size(), std::to_string(call));
	Process live = start("talker", other, fabric.size(), "0");
	killed = dead.wait() == 128 + SIGKILL;
	int64_t at = now_ns();
	in_time(live);
	EXPECT_EQ(0, live.wait(60)) << "victim " << victim << " at call " << call;
	/*
	 * Bytes in the queue of a process, at most those of a ring, are lost with it; a reset
	 * reports that.
	 */
	if (mine(other, RECEIVED) < mine(victim, SENT)) {
		EXPECT_TRUE(mine(victim, QUEUED)) << "victim " << victim << " at call " << call;
		EXPECT_GE(mine(other, RECEIVED) + kRing, mine(victim, SENT));
		EXPECT_GE(mine(other, RESETS), 1u)
			<< "victim " << victim << " at call " << call << ": "
			<< mine(victim, SENT) - mine(other, RECEIVED)
			<< " bytes are missing before the end of the stream";
		lossy++;
	}
	EXPECT_LT(static_cast<int64_t>(mine(other, ENDED_AT)) - at, kWithin)
		<< "victim " << victim << " at call " << call;
	return killed;
}

} // namespace

namespace {

/* The range of calls to die at in a run of all: KILL_CALLS=FIRST-LAST, for a run in parts. */
struct Range {
	unsigned first = 1, last = UINT_MAX;
	Range()
	{
		const char *text = getenv("KILL_CALLS");

		if (text != nullptr && sscanf(text, "%u-%u", &first, &last) != 2)
			fail(__FILE__, __LINE__, "KILL_CALLS is FIRST-LAST");
	}
};

} // namespace

TEST(SockKill, AtEveryCallOfEitherEnd)
{
	Await awaited("ends of streams that are killed", stress() ? 3400 : 110);
	Random random(1);
	Range range;

	for (unsigned hosts : { 1u, 2u }) {
		Fabric fabric(hosts);
		Clean clean(fabric);

		for (unsigned victim : { 1u, 2u }) {
			EXPECT_FALSE(kill_at(fabric, victim, 0));
			EXPECT_EQ(WHOLE, mine(1, OUTCOME));
			EXPECT_EQ(WHOLE, mine(2, OUTCOME));
			unsigned calls = static_cast<unsigned>(mine(victim, CALLS));
			EXPECT_GT(calls, 60u);
			for (unsigned n = 0; n < 8 && !stress() && !HasFailure(); n++)
				kill_at(fabric, victim,
					1 + static_cast<unsigned>(random.below(calls)));
			for (unsigned n = range.first;
			     stress() && n <= std::min(calls, range.last) && !HasFailure(); n++)
				kill_at(fabric, victim, n);
			printf("%u hosts, victim %u: %u calls; bytes were lost by %u kills so far\n",
			       hosts, victim, calls, lossy);
		}
		clean.check();
	}
}

TEST(SockKill, OfOneThatTheOtherWaitsFor)
{
	Await awaited("ends of streams that are killed while the other sleeps", 110);
	Fabric fabric(2);
	Clean clean(fabric);

	for (unsigned victim : { 1u, 2u })
		for (const char *how : { "r", "w" })
			for (bool stop : { false, true }) {
				unsigned other = 3 - victim;

				board_clear();
				Process dead = start("holder", victim, 2, "h");
				Process live = start("holder", other, 2, how);
				NEED(until([&] {
					return mine(1, STAGE) != 0 && mine(2, STAGE) != 0;
				}));
				/* A writer has filled the ring. */
				NEED(until(
					[&] { return *how == 'r' || mine(other, SENT) > 3000; }));
				if (stop)
					dead.kill(SIGSTOP);
				dead.kill(SIGKILL);
				EXPECT_EQ(128 + SIGKILL, dead.wait());
				int64_t at = now_ns();
				EXPECT_EQ(0, live.wait(60));
				EXPECT_NE(WHOLE, mine(other, OUTCOME));
				EXPECT_LT(static_cast<int64_t>(mine(other, ENDED_AT)) - at,
					  kWithin);
			}
	clean.check();
}

TEST(SockKill, BehindAnEmptyRecord)
{
	Await awaited("an end that is killed at its ring's end", 110);
	Fabric fabric(2);

	for (unsigned victim : { 1u, 2u }) {
		board_clear();
		Process dead = start("holder", victim, 2, "e"),
			live = start("holder", 3 - victim, 2, "a");
		EXPECT_EQ(128 + SIGKILL, dead.wait());
		EXPECT_EQ(0, live.wait());
		EXPECT_NE(WHOLE, mine(3 - victim, OUTCOME));
		EXPECT_EQ(mine(victim, SENT), mine(3 - victim, RECEIVED));
	}
}

namespace {

/* Calls `what` at a random moment, which loses something; both ends go on, or are reset. */
void lose(unsigned hosts, const std::function<void(Fabric &)> &what, bool unnoticed, Random &random)
{
	Fabric fabric(hosts);
	uint64_t moment = random.below(130000);
	int64_t at = 0;

	board_clear();
	Process ends[2] = { start("talker", 1, 2, "0"), start("talker", 2, 2, "0") };
	if (!until(
		    [&] {
			    return mine(1, SENT) + mine(2, SENT) >= moment || ends[0].ended() ||
				   ends[1].ended();
		    },
		    kSeconds * 500))
		ADD_FAILURE() << "before the loss: " << mine(1, SENT) << " and " << mine(2, SENT)
			      << " bytes were sent, of " << moment << '\n'
			      << what_it_waits_for(ends[0]) << what_it_waits_for(ends[1]);
	what(fabric);
	at = now_ns();
	for (Process &end : ends)
		in_time(end);
	for (Process &end : ends)
		EXPECT_EQ(0, end.wait(60)) << "after " << moment << " bytes";
	for (unsigned i : { 1u, 2u }) {
		EXPECT_LE(mine(i, RECEIVED), mine(3 - i, SENT));
		EXPECT_LT(static_cast<int64_t>(mine(i, ENDED_AT)) - at, kWithin);
		if (unnoticed) {
			EXPECT_EQ(WHOLE, mine(i, OUTCOME)) << "after " << moment << " bytes";
		}
		/* An end without a reset has lost nothing. */
		if (mine(i, OUTCOME) == WHOLE) {
			EXPECT_EQ(mine(i, RECEIVED), mine(3 - i, SENT));
		}
		EXPECT_NE(END, mine(i, OUTCOME)) << "after " << moment << " bytes";
	}
}

} // namespace

TEST(SockKill, OfAnAgent)
{
	Await awaited("agents that are killed under streams", stress() ? 1200 : 110);
	Random random(2);

	for (size_t i = 0; i < scaled(6, 100) && !HasFailure(); i++)
		lose(
			2, [&](Fabric &f) { f.kill(static_cast<unsigned>(i % 2)); }, false, random);
}

TEST(SockKill, OfALink)
{
	Await awaited("links that are cut under streams", stress() ? 1200 : 110);
	Random random(3);

	for (size_t i = 0; i < scaled(4, 60) && !HasFailure(); i++)
		lose(
			2, [&](Fabric &f) { f.link(0, "right", false); }, false, random);
	/* There is another path. */
	for (size_t i = 0; i < scaled(4, 60) && !HasFailure(); i++)
		lose(
			3, [&](Fabric &f) { f.link(0, "right", false); }, true, random);
}
