/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream's bytes on TCP, over a VI, and on the way between the two; both ends in one process. */
#include "alter.h"
#include "pair.h"

#include <poll.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

/* As st_sys.h, which is C only, declares it. */
extern "C" int st_sys_moved(int fd, bool connector, uint64_t *given, uint64_t *taken);

namespace {

/* A fabric of one host, and the library. */
struct Here {
	explicit Here(uint32_t ring_bytes = 0) : fabric(1), library("host0", ring_bytes) {}
	Fabric fabric;
	Library library;
};

} // namespace

TEST(Stream, IsTcpBeforeItIsPromoted)
{
	Here here;
	Pair p;
	char got[8] = {};

	EXPECT_EQ(p.b.recv(got, 8), -EAGAIN);
	EXPECT_EQ(p.a.send("hello", 5), 5);
	p.b.recv_all(got, 5);
	EXPECT_STREQ(got, "hello");
	EXPECT_EQ(st_on_vi(p.a), 0u);
	EXPECT_TRUE(st_on_tcp(p.a));
}

TEST(Stream, MovesToAViAndCarriesBytes)
{
	Here here;
	Pair p;
	char got[16] = {};
	const struct st_stats earlier = stats(); /* other tests may have run before */

	p.a.send_all("before", 6);
	p.promoted("host0");
	p.a.send_all("after", 5);
	p.b.recv_all(got, 11);
	EXPECT_STREQ(got, "beforeafter");
	p.b.send_all("back", 4);
	p.a.recv_all(got, 4);
	EXPECT_EQ(stats().vi_bytes_sent, earlier.vi_bytes_sent + 9);
	EXPECT_EQ(stats().vi_bytes_received, earlier.vi_bytes_received + 9);
}

namespace {

void both_ways(Pair &p, uint64_t n, size_t most)
{
	Thread one([&] { send_stream(p.a, 0, n, 1, most); });
	Thread two([&] { recv_stream(p.b, 0, n, 1, most); });
	Thread three([&] { send_stream(p.b, 0, n, 2, most); });
	recv_stream(p.a, 0, n, 2, most);
}

} // namespace

TEST(Stream, CarriesBytesBothWaysInPiecesOfAnyLength)
{
	Await awaited("streams both ways", 100);
	for (uint32_t ring : { 4096u, 65536u, 1u << 20 }) {
		Here here(ring);
		Pair p;

		p.promoted("host0");
		both_ways(p, scaled(4u << 20, 64u << 20), 3000);
		both_ways(p, scaled(16u << 20, 256u << 20), 200000);
		EXPECT_TRUE(p.a.fast() && p.b.fast());
		EXPECT_EQ(stats().resets, 0u);
	}
}

TEST(Stream, MovesToAViAtAnyByteOfBusyStreams)
{
	Await awaited("promotions under way", 100);
	Here here(4096);

	for (int round = 0; round < 40; round++) {
		Pair p;
		Thread one([&] { send_stream(p.a, 0, 100000, 1, 700); });
		Thread two([&] { recv_stream(p.b, 0, 100000, 1, 900); });
		Thread three([&] { send_stream(p.b, 0, 100000, 2, 900); });
		Thread four([&] { recv_stream(p.a, 0, 100000, 2, 700); });

		p.promote("host0", "host0");
		NEED(until([&] { return p.a.fast() && p.b.fast(); }));
	}
	EXPECT_EQ(stats().resets, 0u);
}

TEST(Stream, MovesAtEveryByteAndBack)
{
	Await awaited("promotion and demotion at every byte", 100);
	Here here(4096);
	const size_t length = 40;
	uint8_t all[length], got[length];

	fill(all, length, 0);
	for (size_t up = 0; up <= length; up += 3) {
		for (size_t down = up; down <= length; down += 4) {
			Pair p;
			for (size_t i = 0; i < length; i++) {
				if (i == up)
					p.promoted("host0");
				if (i == down) {
					st_demote(down % 2 ? p.a : p.b, ST_WHY_ASKED);
					/* Bytes are under way during this. */
				}
				p.a.send_all(all + i, 1);
				p.b.send_all(all + i, 1);
			}
			p.b.recv_all(got, length);
			EXPECT_EQ(differs(got, length, 0), length);
			p.a.recv_all(got, length);
			EXPECT_EQ(differs(got, length, 0), length);
			if (down < length) {
				EXPECT_TRUE(
					until([&] { return st_on_tcp(p.a) && st_on_tcp(p.b); }));
			}
		}
	}
	EXPECT_EQ(stats().resets, 0u);
}

TEST(Stream, GoesToAndFroUnderLoad)
{
	Await awaited("promotion and demotion under load", 100);
	Here here(4096);
	Pair p;
	std::atomic<bool> done = false;
	Thread mover([&] {
		while (!done) {
			if (st_promote(p.a, "host0", nullptr, 0) == 0)
				NEED(until([&] {
					return done || st_promote(p.b, "host0", nullptr, 0) == 0;
				}));
			if (!until([&] { return done || (p.a.fast() && p.b.fast()); }))
				fail(__FILE__, __LINE__, "not promoted");
			st_demote(p.a, ST_WHY_ASKED);
			NEED(until([&] {
				return done || (st_on_vi(p.a) == 0 && st_on_vi(p.b) == 0);
			}));
		}
	});

	both_ways(p, scaled(8u << 20, 64u << 20), 5000);
	done = true;
	EXPECT_GT(stats().promotions, 2u);
	EXPECT_EQ(stats().resets, 0u);
}

TEST(Stream, EndsWhereTheOtherEndShutDown)
{
	Here here;
	Pair p;
	char got[8];

	p.promoted("host0");
	p.a.send_all("last", 4);
	EXPECT_EQ(st_shutdown(p.a, SHUT_WR), 0);
	EXPECT_EQ(p.a.send("x", 1), -EPIPE);
	p.b.recv_all(got, 4);
	EXPECT_EQ(p.b.recv_wait(got, 4), 0);
	EXPECT_EQ(p.b.recv_wait(got, 4), 0);
	p.b.send_all("answer", 6);
	p.b.close();
	p.a.recv_all(got, 6);
	EXPECT_EQ(p.a.recv_wait(got, 4), 0);
}

TEST(Stream, CloseLosesNothing)
{
	Await awaited("closes with a full ring", 100);
	Here here(4096);

	for (int round = 0; round < 20; round++) {
		Pair p;
		std::vector<uint8_t> all(3000), got(3000);

		p.promoted("host0");
		fill(all.data(), all.size(), 0, round);
		p.a.send_all(all.data(), all.size());
		p.a.close();
		p.b.recv_all(got.data(), got.size());
		EXPECT_EQ(differs(got.data(), got.size(), 0, round), got.size());
		EXPECT_EQ(p.b.recv_wait(got.data(), 1), 0);
		/* As with TCP: one send succeeds and is answered by a reset, then EPIPE. */
		EXPECT_EQ(p.b.send_wait("x", 1), 1);
		EXPECT_TRUE(until([&] { return p.b.send("x", 1) < 0; }));
	}
}

TEST(Stream, CloseWithUnreadBytesResets)
{
	Here here;
	Pair p;
	char got[4];

	p.promoted("host0");
	p.a.send_all("read", 4);
	p.b.send_all("unread", 6);
	EXPECT_TRUE(until([&] { return st_readable_bytes(p.a) == 6; }));
	p.a.close();
	p.b.recv_all(got, 4);
	EXPECT_EQ(p.b.recv_wait(got, 4), -ECONNRESET);
	EXPECT_EQ(p.b.recv_wait(got, 4), 0);
	EXPECT_EQ(p.b.send_wait("x", 1), -EPIPE);
}

/* Calls that began before another thread's close find a stream whose VI is closed. */
TEST(Stream, ClosesWhileOtherThreadsLook)
{
	Await awaited("closes beside threads that look", 100);
	Here here(4096);

	for (int round = 0; round < 60; round++) {
		Pair p;
		std::atomic<bool> stop{ false };
		auto look = [&] {
			struct st_ready ready;

			while (!stop) {
				st_ready(p.a, &ready);
				st_arm(p.a, ST_IN);
				st_readable_bytes(p.a);
				st_on_tcp(p.a);
			}
		};

		p.promoted("host0");
		Thread one(look), two(look);
		p.a.close();
		p.b.close();
		EXPECT_TRUE(until([&] { return st_wait_of(p.a) == nullptr || !p.a.fast(); }));
		stop = true;
	}
}

TEST(Stream, PeeksAndCounts)
{
	Here here(4096);
	Pair p;
	char got[16] = {};

	p.promoted("host0");
	EXPECT_EQ(st_readable_bytes(p.b), 0);
	p.a.send_all("one", 3);
	p.a.send_all("two", 3);
	EXPECT_TRUE(until([&] { return st_readable_bytes(p.b) == 6; }));
	/* The bytes have arrived, though they are unread. */
	EXPECT_TRUE(until([&] { return st_unsent_bytes(p.a) == 0; }));
	EXPECT_EQ(p.b.recv(got, 16, MSG_PEEK), 6);
	EXPECT_STREQ(got, "onetwo");
	EXPECT_EQ(p.b.recv(got, 2), 2);
	EXPECT_EQ(st_readable_bytes(p.b), 4);
	EXPECT_EQ(p.b.recv(nullptr, 1, MSG_TRUNC), 1);
	EXPECT_EQ(p.b.recv(got, 16), 3);
	EXPECT_EQ(memcmp(got, "two", 3), 0);
	EXPECT_EQ(p.b.recv(got, 1), -EAGAIN);
}

/* The end comes as a record, which a peek does not take. */
TEST(Stream, PeeksAtTheEnd)
{
	Here here;
	Pair p;
	char got[8] = {};

	p.promoted("host0");
	p.a.send_all("last", 4);
	NEED(st_shutdown(p.a, SHUT_WR) == 0);
	p.b.recv_all(got, 4);
	EXPECT_EQ(p.b.recv_wait(got, 8, MSG_PEEK), 0);
	EXPECT_EQ(p.b.recv(got, 8), 0);
}

/* A peek may find the kernel's bytes, and one that ended before a record came does not go on after it. */
TEST(Stream, PeeksAtBytesOfBothPathsInTheirOrder)
{
	Here here;
	Pair p;
	char got[16] = {};

	p.promoted("host0");
	p.a.send_all("one", 3);
	p.a.send_all("two", 3);
	st_demote(p.a, ST_WHY_ASKED);
	EXPECT_TRUE(until([&] { return !(st_on_vi(p.a) & ST_OUT); }));
	p.a.send_all("three", 5);
	EXPECT_TRUE(until([&] { return st_readable_bytes(p.b) == 11; }));
	alter_hide(0);
	EXPECT_EQ(p.b.recv(got, 16, MSG_PEEK), 3);
	EXPECT_STREQ(got, "one");
	EXPECT_EQ(p.b.recv(got, 16, MSG_PEEK), 11);
	EXPECT_STREQ(got, "onetwothree");
}

/* While the reader keeps up a large ring is used at its beginning, and there is room for more at any time. */
TEST(Stream, BeginsALargeRingAnew)
{
	Await awaited("rings begun again", 100);
	const uint32_t ring = 1u << 20;
	Here here(ring);
	Pair p;
	const size_t piece = 4000, burst = 700000;
	std::vector<uint8_t> all(burst), got(burst);
	uint64_t at = 0;
	int restarts = 0;

	p.promoted("host0");
	for (int i = 0; i < 400; i++) {
		struct st_ready ready;

		fill(all.data(), piece, at);
		p.a.send_all(all.data(), piece);
		/* A skipped rest of the ring counts as used until the other end has reached it. */
		restarts += st_writable_bytes(p.a) < ring / 2;
		st_ready(p.a, &ready);
		EXPECT_TRUE(ready.events & ST_OUT);
		p.b.recv_all(got.data(), piece);
		EXPECT_EQ(differs(got.data(), piece, at), piece);
		at += piece;
		if (i % 50 == 25) {
			fill(all.data(), burst, at);
			Thread sender([&] { p.a.send_all(all.data(), burst); });
			p.b.recv_all(got.data(), burst);
			EXPECT_EQ(differs(got.data(), burst, at), burst);
			at += burst;
		}
	}
	/* Where stores land late the credit is not there yet when the next send begins. */
	if (getenv("VIADUCT_FAULT") == nullptr) {
		EXPECT_GT(restarts, 10);
	}
	EXPECT_TRUE(p.a.fast());
	EXPECT_EQ(stats().resets, 0u);
}

TEST(Stream, KeepsBackWhatMoreFollows)
{
	Here here;
	Pair p;
	char got[8];

	p.promoted("host0");
	EXPECT_EQ(p.a.send("ab", 2, MSG_MORE), 2);
	EXPECT_EQ(st_readable_bytes(p.b), 0);
	EXPECT_EQ(p.a.send("cd", 2), 2);
	p.b.recv_all(got, 4);
	EXPECT_EQ(memcmp(got, "abcd", 4), 0);
	EXPECT_EQ(p.a.send("ef", 2, MSG_MORE), 2);
	EXPECT_EQ(st_flush(p.a), 0);
	p.b.recv_all(got, 2);
	/* The bytes also leave by themselves after a while. */
	EXPECT_EQ(p.a.send("gh", 2, MSG_MORE), 2);
	p.b.recv_all(got, 2);
	EXPECT_EQ(memcmp(got, "gh", 2), 0);
}

TEST(Stream, GivesUpWithoutAPeer)
{
	Fabric fabric(1);
	Library library("host0", 0, 100);
	Pair p;
	char got[4];

	p.a.promote("host0");
	EXPECT_EQ(st_promote(p.a, "host0", nullptr, 0), -EALREADY);
	EXPECT_TRUE(until([&] { return st_why(p.a) == ST_WHY_NO_PEER; }));
	EXPECT_TRUE(until([&] { return st_on_tcp(p.a); }));
	p.a.send_all("tcp", 3);
	p.b.recv_all(got, 3);
	End c = End(dup(p.a.fd), ST_CONNECTOR);
	c.promote("nowhere");
	EXPECT_TRUE(until([&] { return st_why(c) == ST_WHY_NO_HOST; }));
	EXPECT_TRUE(until([&] { return st_promote(c, "nowhere", nullptr, 0) == -EHOSTUNREACH; }));
}

/* As a child of fork() does that has a copy of the socket: the ends would not agree on where the token lies. */
TEST(Stream, StaysOnTcpOnceAnotherProcessHasUsedIt)
{
	Here here;

	for (bool sends : { true, false }) {
		SCOPED_TRACE(sends ? "it has sent" : "it has received");
		Pair p;
		char got[64] = {};

		p.a.send_all("ours ", 5);
		if (sends)
			NEED(::write(p.a.fd, "of another ", 11) == 11);
		else
			NEED(::read(p.b.fd, got, 1) == 1);
		p.promote("host0", "host0");
		EXPECT_TRUE(until([&] { return st_why(sends ? p.a : p.b) == ST_WHY_FORK; }));
		p.a.send_all("more", 4);
		p.b.recv_all(got, sends ? 20 : 8);
		EXPECT_STREQ(got, sends ? "ours of another more" : "urs more");
		EXPECT_EQ(st_on_vi(p.b) & ST_IN, 0u);
		EXPECT_TRUE(until([&] { return st_on_tcp(p.a) && st_on_tcp(p.b); }));
	}
}

/* The kernel counts the peer's end as a byte received: it is none that another process has taken. */
TEST(Stream, CountsNoEndAmongTheBytesTaken)
{
	Pair p;
	uint64_t given, taken;
	char got[8];
	pollfd ended = { p.b.fd, POLLRDHUP, 0 };

	p.a.send_all("hello", 5);
	NEED(st_sys_moved(p.a.fd, true, &given, &taken) == 0);
	EXPECT_EQ(given, 5u);
	NEED(::shutdown(p.a.fd, SHUT_WR) == 0);
	NEED(::poll(&ended, 1, kSeconds * 1000) == 1);
	NEED(st_sys_moved(p.b.fd, false, &given, &taken) == 0);
	EXPECT_EQ(taken, 0u);
	p.b.recv_all(got, 2);
	NEED(st_sys_moved(p.b.fd, false, &given, &taken) == 0);
	EXPECT_EQ(taken, 2u);
	p.b.recv_all(got, 3);
	NEED(st_sys_moved(p.b.fd, false, &given, &taken) == 0);
	EXPECT_EQ(taken, 5u);
}

TEST(Stream, AThousandAtOnce)
{
	Await awaited("a thousand streams", 100);
	Here here(4096);
	std::vector<Pair> pairs(scaled(250, 1000));
	char got[8];

	for (Pair &p : pairs)
		p.promote("host0", "host0");
	for (Pair &p : pairs) {
		NEED(until([&] { return p.a.fast() && p.b.fast(); }));
		p.a.send_all("many", 4);
	}
	for (Pair &p : pairs) {
		p.b.recv_all(got, 4);
		p.b.send_all("back", 4);
	}
	for (Pair &p : pairs)
		p.a.recv_all(got, 4);
	EXPECT_EQ(stats().resets, 0u);
}

/* TCP's queues are never empty, so that the change of path has to come between two bytes of a sender that waits. */
TEST(Stream, AStreamThatNeverPausesMovesToAVi)
{
	Await awaited("a stream without a pause", 110);
	Fabric fabric(1);
	Library library("host0");
	Pair p;
	std::atomic<bool> moved = false;
	uint64_t sent = 0, taken = 0;
	Thread sender([&] {
		uint8_t bytes[50000];

		while (!moved || sent < 40000000) {
			fill(bytes, sizeof(bytes), sent, 3);
			p.a.send_all(bytes, sizeof(bytes));
			sent += sizeof(bytes);
		}
		st_shutdown(p.a, SHUT_WR);
	});

	/* The queues are full before the first request. */
	NEED(until([&] { return st_readable_bytes(p.b) > 50000 && st_unsent_bytes(p.a) > 50000; }));
	for (End *end : { &p.a, &p.b })
		end->promote("host0");
	for (;;) {
		uint8_t bytes[20000];
		ssize_t n = p.b.recv_wait(bytes, sizeof(bytes));

		if (n == 0)
			break;
		NEED(n > 0);
		NEED(differs(bytes, static_cast<size_t>(n), taken, 3) == static_cast<size_t>(n));
		taken += static_cast<uint64_t>(n);
		moved = moved || (st_on_vi(p.a) & ST_OUT);
	}
	sender.join();
	EXPECT_EQ(sent, taken);
	EXPECT_GT(stats().vi_bytes_received, 0u);
}

/* A reader that does not read: bytes go on by TCP, and the path changes when it reads. */
TEST(Stream, AReaderThatPausesHoldsNobodyUp)
{
	Await awaited("a reader that pauses", 110);
	Fabric fabric(1);
	Library library("host0");
	Pair p;
	std::vector<uint8_t> bytes(100000);
	uint64_t sent = 0;
	ssize_t n;

	while ((n = p.a.send(bytes.data(), bytes.size())) > 0)
		sent += static_cast<uint64_t>(n);
	NEED(sent > 400000);
	for (End *end : { &p.a, &p.b })
		end->promote("host0");
	NEED(until([&] { return st_on_vi(p.b) == ST_OUT; }));
	/* The sender has asked and was refused: it may send again. */
	NEED(until([&] { return st_kernel_events(p.a, ST_OUT) == 0; }));
	NEED(until([&] { return st_kernel_events(p.a, ST_OUT) == ST_OUT; }));
	EXPECT_EQ(ST_WHY_NONE, st_why(p.a));
	for (; sent > 0; sent -= static_cast<uint64_t>(n))
		NEED((n = p.b.recv_wait(bytes.data(), std::min<uint64_t>(sent, bytes.size()))) > 0);
	NEED(until([&] { return p.a.fast() && p.b.fast(); }));
	p.a.send_all(bytes.data(), bytes.size());
	p.b.recv_all(bytes.data(), bytes.size());
}
