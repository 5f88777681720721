/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A VI is lost, not made, or without a free slot at a moment that the test chooses: between a
 * request and its token, after an end, during the next attempt.  Both ends are in one process.
 */
#include "pair.h"

#include "alter.h"

extern "C" {
#include "st_ring.h"
#include "st_wire.h"
}

#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

namespace {

constexpr uint32_t kRing = 4096;

/* Restores the state, so that a test that has failed does not change the next one. */
struct SockLost : testing::Test {
	~SockLost() override
	{
		alter_by(nullptr);
		alter_hold(false);
	}
	const uint64_t resets = stats().resets; /* the resets of earlier tests */
};

/*
 * Between an end and its TCP connection: bytes that the end writes stay here until the test passes
 * them on.
 */
class Middle {
public:
	explicit Middle(End &end) : tcp(dup(end.fd))
	{
		int fds[2];

		NEED(tcp >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
		NEED(dup2(fds[0], end.fd) == end.fd);
		::close(fds[0]);
		written = fds[1];
	}
	Middle(const Middle &) = delete;
	~Middle()
	{
		::close(tcp);
		::close(written);
	}
	/* Returns what the end has written, at most n bytes. */
	size_t peek(void *bytes, size_t n) { return take(written, bytes, n, MSG_PEEK); }
	void give(const void *bytes, size_t n)
	{
		NEED(::send(tcp, bytes, n, MSG_NOSIGNAL) == static_cast<ssize_t>(n));
	}
	/* Passes all bytes on, both ways. */
	void pass_on()
	{
		move(written, tcp);
		move(tcp, written);
	}

private:
	static size_t take(int fd, void *bytes, size_t n, int flags)
	{
		ssize_t rc = recv(fd, bytes, n, flags | MSG_DONTWAIT);

		return rc < 0 ? 0 : static_cast<size_t>(rc);
	}
	static void move(int from, int to)
	{
		char bytes[256];
		size_t n;

		while ((n = take(from, bytes, sizeof(bytes), 0)) > 0)
			NEED(::send(to, bytes, n, MSG_NOSIGNAL) == static_cast<ssize_t>(n));
	}
	int tcp, written;
};

/* Both directions were agreed to, and the VI is lost before the token of the first end's can come. */
void lose_before_token(Fabric &fabric, Pair &p, Middle &middle)
{
	uint8_t token[16];
	uint64_t used = 0;

	p.promote("host0", "host0");
	NEED(until([&] { return middle.peek(token, sizeof(token)) == sizeof(token); }));
	used = fabric.window_used(0);
	/* Each end gives up, since it has no proof, and both rings are freed. */
	NEED(until([&] { return fabric.window_used(0) + 2 * kRing <= used; }));
}

} // namespace

TEST_F(SockLost, ATokenThatComesLaterThanTheLossIsTaken)
{
	Await awaited("a VI that is lost before the token", 100);
	Fabric fabric(1);
	Library library("host0", kRing);
	Pair p;
	Middle middle(p.a);
	char got;

	lose_before_token(fabric, p, middle);
	for (auto [from, to] : { std::pair(&p.a, &p.b), std::pair(&p.b, &p.a) }) {
		ssize_t rc = 0;

		from->send_all("x", 1);
		EXPECT_TRUE(until([&] {
			middle.pass_on();
			rc = to->recv(&got, 1);
			return rc != -EAGAIN;
		}));
		EXPECT_EQ(1, rc);
		EXPECT_EQ('x', got);
	}
	EXPECT_EQ(resets, stats().resets);
}

/* Bytes that begin like the token are held back for a second, and then given to the program. */
TEST_F(SockLost, BytesThatBeginAsATokenAreData)
{
	Await awaited("bytes that begin as a token", 100);
	Fabric fabric(1);
	Library library("host0", kRing);
	Pair p;
	Middle middle(p.a);
	uint8_t token[3], got[3] = {};
	uint64_t counted;

	lose_before_token(fabric, p, middle);
	counted = stats().tcp_bytes_received;
	NEED(middle.peek(token, sizeof(token)) == sizeof(token));
	middle.give(token, sizeof(token));
	p.b.recv_all(got, sizeof(got));
	EXPECT_EQ(0, memcmp(got, token, sizeof(got)));
	EXPECT_EQ(counted + sizeof(got), stats().tcp_bytes_received);
	EXPECT_EQ(resets, stats().resets);
}

namespace {

constexpr size_t kLost = 1, kRefused = 2; /* cells */

/* Loses a record of six bytes, and drops the VI when an end is asked to go back to TCP. */
void lose_record(VIP_DESCRIPTOR *d, unsigned)
{
	VIP_DATA_SEGMENT &local = d->DS[d->CS.SegCount - 1].Local;
	uint8_t *bytes =
		reinterpret_cast<uint8_t *>(static_cast<uintptr_t>(local.Data.AddressBits));
	unsigned op = d->CS.Control & VIP_CONTROL_OP_MASK;
	st_header header;

	if (op == VIP_CONTROL_OP_RDMAWRITE && local.Length == st_record_bytes(6)) {
		memcpy(&header, bytes + local.Length - sizeof(header), sizeof(header));
		if (header.kind != ST_REC_DATA || header.length != 6)
			return;
		bytes[local.Length - 1] ^= 1;
		cell(kLost)++;
	} else if (op == VIP_CONTROL_OP_SENDRECV && local.Length == sizeof(st_message) &&
		   reinterpret_cast<st_message *>(bytes)->kind == ST_MSG_BACK) {
		reinterpret_cast<st_message *>(bytes)->version++;
		cell(kRefused)++;
	}
}

} // namespace

/* The sender has seen that the other end's direction ends, or goes back to TCP, and has nothing more to send. */
TEST_F(SockLost, RecordsThatAreLostBehindAnEndAreResetFor)
{
	Await awaited("records that are lost with the VI", 100);
	Fabric fabric(1);
	Library library("host0", kRing);

	for (bool shut : { true, false }) {
		SCOPED_TRACE(shut ? "an end" : "back to TCP");
		Pair p;
		char got[6];

		board_clear();
		p.promoted("host0");
		alter_by(lose_record);
		if (shut) {
			EXPECT_EQ(0, st_shutdown(p.b, SHUT_WR));
			EXPECT_EQ(0, p.a.recv_wait(got, 1));
		}
		p.a.send_all("answer", 6);
		st_demote(p.b, ST_WHY_ASKED);
		EXPECT_EQ(-ECONNRESET, p.b.recv_wait(got, 6));
		EXPECT_EQ(0, st_take_error(p.b)) << "it was told already";
		alter_by(nullptr);
		EXPECT_EQ(1u, cell(kLost));
		EXPECT_EQ(1u, cell(kRefused));
	}
}

namespace {

/*
 * Fills the ring of the other end; returns the number of bytes.  A send that finds no free slot is
 * tried again.
 */
size_t fill_ring(End &end)
{
	uint8_t bytes[100] = {};
	size_t filled = 0;
	ssize_t rc;

	NEED(until([&] {
		while ((rc = end.send(bytes, sizeof(bytes))) > 0)
			filled += static_cast<size_t>(rc);
		return st_writable_bytes(end) < static_cast<int64_t>(sizeof(bytes));
	}));
	return filled;
}

/*
 * The first end fills the ring of the second, which has no slot left when it has read all; returns
 * the number of bytes sent.
 */
size_t use_slots_up(Pair &p)
{
	uint8_t bytes[100] = {};
	size_t filled = fill_ring(p.a), sent = 0;
	ssize_t rc;

	alter_hold(true);
	for (; p.b.send(bytes, 1) == 1; sent++)
		;
	/* Credit uses up the slots that no records use. */
	for (size_t got = 0; got < filled; got += static_cast<size_t>(rc))
		NEED(until([&] { return (rc = p.b.recv(bytes, sizeof(bytes))) > 0; }));
	return sent;
}

/* Receives n bytes, and the stream's end. */
void take_all(End &end, size_t n)
{
	std::vector<uint8_t> bytes(n);

	end.recv_all(bytes.data(), n);
	EXPECT_EQ(0, end.recv_wait(bytes.data(), 1));
}

} // namespace

/* The helper returns it, without a call of the program, which may sleep. */
TEST_F(SockLost, CreditThatFindsNoSlotIsReturnedLater)
{
	Await awaited("credit that waits for a slot", 100);
	Fabric fabric(1);
	Library library("host0", kRing);
	Pair p;

	p.promoted("host0");
	use_slots_up(p);
	int64_t room = st_writable_bytes(p.a);
	alter_hold(false);
	EXPECT_TRUE(until([&] { return st_writable_bytes(p.a) > room; })) << room;
}

TEST_F(SockLost, AnEndThatFindsNoSlotIsToldLater)
{
	Await awaited("an end that waits for a slot", 100);
	Fabric fabric(1);
	Library library("host0", kRing);

	for (bool closes : { false, true }) {
		SCOPED_TRACE(closes ? "close" : "shutdown");
		Pair p;

		p.promoted("host0");
		size_t sent = use_slots_up(p);
		if (closes)
			p.b.close();
		else
			EXPECT_EQ(0, st_shutdown(p.b, SHUT_WR));
		alter_hold(false);
		take_all(p.a, sent);
	}
}

TEST_F(SockLost, AnEndFollowsWhatAFullRingKeptBack)
{
	Await awaited("an end behind bytes that were kept back", 100);
	Fabric fabric(1);
	Library library("host0", kRing);

	for (bool closes : { false, true }) {
		SCOPED_TRACE(closes ? "close" : "shutdown");
		Pair p;

		p.promoted("host0");
		size_t sent = fill_ring(p.a);
		EXPECT_EQ(2, p.a.send("xy", 2, MSG_MORE));
		if (closes)
			p.a.close();
		else
			EXPECT_EQ(0, st_shutdown(p.a, SHUT_WR));
		/*
		 * The helper polls the stream now and then until there is room; a child of fork()
		 * does not.
		 */
		uint64_t looks = stats().looks;
		pid_t child = fork();
		if (child == 0) {
			st_fork_child();
			st_deliver(10000);
			_exit(17);
		}
		int status = -1;
		NEED(waitpid(child, &status, 0) == child);
		EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 17) << status;
		int64_t begun = now_ns();
		NEED(until([&] { return now_ns() - begun > 50000000; }));
		EXPECT_LT(stats().looks - looks, 1000u);
		take_all(p.b, sent + 2);
	}
}

/* The VI is lost with credit that has found no slot; the next one begins with none. */
TEST_F(SockLost, CreditOfALostViStaysWithIt)
{
	Await awaited("a VI behind a lost one", 100);
	Fabric fabric(1);
	Library library("host0", kRing);
	char got[16];
	Pair p;

	p.promoted("host0");
	size_t sent = use_slots_up(p);
	NEED(sent <= sizeof(got));
	board_clear();
	alter_by(lose_record);
	st_demote(p.a, ST_WHY_ASKED);
	NEED(until([&] { return cell(kRefused) == 1 && st_on_vi(p.b) == 0; }));
	alter_by(nullptr);
	alter_hold(false);
	p.a.recv_all(got, sent);
	for (End *end : { &p.a, &p.b })
		/* st_on_tcp() takes a mark that comes later than the VI has gone. */
		NEED(until([&] {
			return st_on_tcp(*end) && st_promote(*end, "host0", nullptr, 0) == 0;
		}));
	NEED(until([&] { return p.a.fast() && p.b.fast(); }));
	p.a.send_all("over", 4);
	p.b.recv_all(got, 4);
	EXPECT_EQ("over", std::string(got, 4));
	EXPECT_EQ(resets, stats().resets);
}

/*
 * The other end closed after it had read all: no mark is sent to the closed socket, which would
 * answer by a reset.
 */
TEST_F(SockLost, ACloseThatHasReadAllIsNoLoss)
{
	Await awaited("a close behind an answer", 100);
	Fabric fabric(1);
	Library library("host0", kRing);
	char got[8];
	ssize_t rc;
	Pair p;

	p.promoted("host0");
	p.a.send_all("question", 8);
	/* Polls without sleeping: a sleep would return the credit. */
	while ((rc = p.b.recv(got, 8)) == -EAGAIN)
		;
	NEED(rc == 8);
	p.b.send_all("answer", 6);
	p.b.close();
	while ((rc = p.a.recv(got, 8)) != 0)
		NEED(rc > 0 || rc == -EAGAIN);
	NEED(until([&] { return !(st_on_vi(p.a) & ST_OUT); }));
	/* The helper's next poll would send the mark. */
	uint64_t looks = stats().looks;
	NEED(until([&] { return stats().looks >= looks + 2; }));
	/* A connection that was reset has no peer. */
	sockaddr_storage peer;
	socklen_t size = sizeof(peer);
	EXPECT_EQ(0, getpeername(p.a.fd, reinterpret_cast<sockaddr *>(&peer), &size));
}

/*
 * As soon as one attempt has ended the program may ask for the next, while the helper still cleans
 * up after the first.
 */
TEST_F(SockLost, AnAttemptBesideTheEndOfAnotherIsMade)
{
	Await awaited("attempts behind each other", 200);
	Fabric fabric(1);
	Library library("host0", kRing, 1);
	Pair p;

	for (size_t i = 0; i < scaled(200, 5000); i++) {
		int64_t end = now_ns() + 20000000000;
		int rc;

		/* Tries without a pause, which would let the helper finish. */
		while ((rc = st_promote(p.a, "host0", nullptr, 0)) == -EALREADY)
			;
		NEED(rc == 0);
		while (st_why(p.a) == ST_WHY_NONE)
			NEED(now_ns() < end);
	}
	EXPECT_EQ(ST_WHY_NO_PEER, st_why(p.a));
}
