/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end of a stream is hostile, or of another version: a process changes what its library posts, or
 * ends its connection, at a post that is chosen by its number.  The honest end must end by itself, with
 * bytes, an end or a reset; another connection of it goes on.  A hostile end that only falls silent is
 * killed, since TCP would not notice it either.
 */
#include "pair.h"

#include "alter.h"

extern "C" {
#include "st_ring.h"
#include "st_wire.h"
}

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

namespace {

constexpr size_t kPort = 0, kAltered = 1, kOver = 2, kWhy = 4,
		 kBytes = 6; /* cells; kBytes is one for each role */
constexpr size_t kTurns = 60, kPiece = 600;
constexpr uint32_t kRing = 4096;
constexpr size_t kHeader = 16, kMessage = 40, kMagicBytes = 4;

enum Kind {
	FLIP,	  /* one bit */
	WORD,	  /* eight bytes are replaced */
	LENGTH,	  /* the length of a record becomes one that is hard to check */
	RECORD,	  /* another kind of record, or of message */
	PLACE,	  /* it goes to another place of the ring, or of the words after it */
	SHORT,	  /* the last bytes are left out */
	WAKES,	  /* a message becomes a wake, or a wake has another number */
	TCP,	  /* bytes that nobody expects are written to TCP */
	SHUTDOWN, /* the kernel's socket ends */
	RESET,	  /* the kernel's socket is reset */
	KILL,
	KINDS
};
const char *const kNames[] = { "a bit",	   "a word",	      "a length", "a kind",
			       "a place",  "an end left out", "a wake",	  "TCP",
			       "shutdown", "reset",	      "kill" };

struct {
	Kind kind;
	unsigned at;
	int fd;
	Random *random;
} plan;

uint8_t *bytes_of(const VIP_DATA_SEGMENT &local)
{
	return reinterpret_cast<uint8_t *>(static_cast<uintptr_t>(local.Data.AddressBits));
}

void change_header(uint8_t *header, Kind kind)
{
	static const uint32_t lengths[] = { 0,		1,	    15,	       16,
					    kRing - 16, kRing - 15, kRing,     kRing + 1,
					    0x7fffffff, 0xfffffff0, 0xffffffff };
	uint32_t value;

	if (kind == LENGTH) {
		value = lengths[plan.random->below(std::size(lengths))];
		memcpy(header, &value, 4);
	} else {
		value = static_cast<uint32_t>(plan.random->below(6));
		memcpy(header + 4, &value, 4);
	}
}

void change_bytes(VIP_DATA_SEGMENT &local, Kind kind)
{
	uint8_t *bytes = bytes_of(local);
	uint64_t word = plan.random->next();
	size_t n = local.Length;

	if (kind == FLIP)
		bytes[plan.random->below(n)] ^= static_cast<uint8_t>(1u << plan.random->below(8));
	else if (kind == WORD && n >= 8)
		memcpy(bytes + plan.random->below(n / 8) * 8, &word, 8);
	else if ((kind == LENGTH || kind == RECORD) && n == kMessage)
		bytes[kMagicBytes + 1] = static_cast<uint8_t>(plan.random->below(8));
	else if ((kind == LENGTH || kind == RECORD) && n >= kHeader)
		change_header(bytes + n - kHeader, kind);
	else if (kind == SHORT)
		local.Length -= static_cast<uint32_t>(1 + plan.random->below(n));
}

void change_tcp(Kind kind)
{
	const linger now = { 1, 0 };
	char bytes[40];

	memset(bytes, 'h', sizeof(bytes));
	if (kind == TCP) {
		NEED(::send(plan.fd, bytes, 1 + plan.random->below(sizeof(bytes)),
			    MSG_NOSIGNAL | MSG_DONTWAIT) != 0);
	} else if (kind == SHUTDOWN) {
		shutdown(plan.fd, SHUT_RDWR);
	} else if (kind == RESET) {
		sockaddr none = {};

		/* As close() would, but the library may still use the descriptor. */
		setsockopt(plan.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		connect(plan.fd, &none, sizeof(none));
	} else {
		raise(SIGKILL);
	}
}

/* Changes one post, then about each fourth. */
void hostile(VIP_DESCRIPTOR *d, unsigned n)
{
	bool write = (d->CS.Control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_RDMAWRITE;
	VIP_DATA_SEGMENT &local = d->DS[d->CS.SegCount - 1].Local;

	if (n < plan.at || (n > plan.at && plan.random->below(4) != 0))
		return;
	cell(kAltered)++;
	if (plan.kind >= TCP)
		change_tcp(plan.kind);
	else if (plan.kind == WAKES && !write)
		d->CS.ImmediateData = static_cast<uint32_t>(plan.random->next());
	else if (plan.kind == PLACE && write)
		d->DS[0].Remote.Data.AddressBits += 8 * plan.random->below(2 * kRing / 8);
	else if (local.Length > 0 &&
		 (d->CS.Control & VIP_CONTROL_OP_MASK) != VIP_CONTROL_OP_RDMAREAD)
		change_bytes(local, plan.kind < PLACE || plan.kind == SHORT ? plan.kind : WORD);
	d->CS.Length = local.Length;
}

/* Headers that no record can have, written in place of a valid one. */
const struct {
	uint32_t length, kind;
} kImpossible[] = {
	{ kRing + 1, ST_REC_DATA }, { 0x7fffffff, ST_REC_DATA }, { 0xffffffff, ST_REC_DATA },
	{ 16, ST_REC_FIN },	    { 0, ST_REC_OVER + 1 },	 { 0, ST_REC_DATA },
};

void impossible(VIP_DESCRIPTOR *d, unsigned)
{
	VIP_DATA_SEGMENT &local = d->DS[d->CS.SegCount - 1].Local;
	uint32_t length = 0;

	if (cell(kAltered) != 0 || local.Length < kPiece + kHeader ||
	    (d->CS.Control & VIP_CONTROL_OP_MASK) != VIP_CONTROL_OP_RDMAWRITE)
		return;
	uint8_t *header = bytes_of(local) + local.Length - kHeader;
	memcpy(&length, header, 4);
	if (length != kPiece)
		return;
	memcpy(header, &kImpossible[plan.at], sizeof(kImpossible[0]));
	cell(kAltered) = 1;
}

/* Ends TCP just before the first direction is agreed to: its token has not been written then. */
void ends_before_token(VIP_DESCRIPTOR *d, unsigned)
{
	if ((d->CS.Control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_SENDRECV &&
	    d->CS.Length == kMessage && bytes_of(d->DS[0].Local)[kMagicBytes + 1] == ST_MSG_YES &&
	    cell(kAltered)++ == 0)
		shutdown(plan.fd, SHUT_RDWR);
}

/* Makes all messages name another version. */
void other_version(VIP_DESCRIPTOR *d, unsigned)
{
	if ((d->CS.Control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_SENDRECV &&
	    d->CS.Length == kMessage) {
		bytes_of(d->DS[0].Local)[kMagicBytes]++;
		cell(kAltered)++;
	}
}

/* Sends bytes both ways, and sleeps for them, until the end of the stream or an error, which it returns. */
ssize_t talk(End &end, st_role role)
{
	/* One more byte, so that a write past the end is seen. */
	std::vector<uint8_t> out(kPiece, static_cast<uint8_t>(role)), in(kPiece + 1);

	for (size_t i = 0; i < kTurns; i++) {
		for (size_t sent = 0; sent < kPiece;) {
			ssize_t rc = end.send_wait(out.data(), kPiece - sent);
			if (rc <= 0)
				return rc;
			sent += static_cast<size_t>(rc);
		}
		in[kPiece] = 0xa5;
		for (size_t got = 0; got < kPiece;) {
			ssize_t rc = end.recv_wait(in.data(), kPiece - got);
			NEED(rc <= static_cast<ssize_t>(kPiece - got) && in[kPiece] == 0xa5);
			if (rc <= 0)
				return rc;
			got += static_cast<size_t>(rc);
			cell(kBytes + role) += static_cast<size_t>(rc);
		}
	}
	return 1;
}

} // namespace

/* HOST, PEER'S HOST, KIND OF CHANGE, AT WHICH POST, SEED */
ROLE(hostile)
{
	Await awaited("a hostile end", 90);
	Random random(strtoull(args[4].c_str(), nullptr, 10));
	Library library("host" + args[0], kRing);
	End end = meet(ST_CONNECTOR, kPort);

	plan = { static_cast<Kind>(atoi(args[2].c_str())),
		 static_cast<unsigned>(atoi(args[3].c_str())), end.fd, &random };
	alter_by(hostile);
	end.promote("host" + args[1]);
	talk(end, ST_CONNECTOR);
}

/* HOST, PEER'S HOST */
ROLE(honest)
{
	Await awaited("an honest end", 90);
	Library library("host" + args[0], kRing);
	Pair other;
	char got[4];

	other.promoted("host" + args[0]);
	End end = meet(ST_ACCEPTOR, kPort);
	end.promote("host" + args[1]);
	ssize_t rc = talk(end, ST_ACCEPTOR);
	if (rc <= 0 && rc != -ECONNRESET && rc != -EPIPE)
		NEED(rc == 0);
	cell(kOver) = 1;
	/* Changes must not affect another connection of this process. */
	other.a.send_all("ping", 4);
	other.b.recv_all(got, 4);
	NEED(memcmp(got, "ping", 4) == 0 && other.a.fast() && other.b.fast());
}

/* ROLE, HOST, PEER'S HOST, WHICH IMPOSSIBLE HEADER */
ROLE(headers)
{
	Await awaited("an end of an impossible record", 90);
	st_role role = static_cast<st_role>(atoi(args[0].c_str()));
	Library library("host" + args[1], kRing);
	End end = meet(role, kPort);
	ssize_t rc = 1;

	plan.at = static_cast<unsigned>(atoi(args[3].c_str()));
	if (role == ST_CONNECTOR)
		alter_by(impossible);
	end.promote("host" + args[2]);
	while (rc == 1)
		rc = talk(end, role);
	NEED(rc == -ECONNRESET || (role == ST_CONNECTOR && rc == -EPIPE));
	if (role == ST_ACCEPTOR)
		NEED(stats().resets == 1);
}

/* ROLE, HOST, PEER'S HOST, IS IT THE ONE OF ANOTHER VERSION? */
ROLE(versions)
{
	Await awaited("an end of another version", 90);
	st_role role = static_cast<st_role>(atoi(args[0].c_str()));
	Library library("host" + args[1], kRing);
	End end = meet(role, kPort);

	if (args[3] == "1")
		alter_by(other_version);
	end.promote("host" + args[2]);
	NEED(talk(end, role) == 1);
	NEED(until([&] { return st_on_tcp(end) && st_why(end) != ST_WHY_NONE; }));
	NEED(talk(end, role) == 1);
	NEED(st_on_vi(end) == 0);
	cell(kWhy + role - 1) = st_why(end);
	NEED(stats().vi_bytes_sent == 0 && stats().vi_bytes_received == 0 && stats().resets == 0);
}

namespace {

const Env quiet = { { "VIADUCT_LOG", "error" }, { "VIADUCT_LOG_FILE", "/dev/null" } };

void against(Fabric &fabric, Kind kind, unsigned at, uint64_t seed)
{
	std::string hosts[2] = { "0", std::to_string(fabric.size() - 1) };

	SCOPED_TRACE(text("%s at post %u, seed %llu", kNames[kind], at,
			  static_cast<unsigned long long>(seed)));
	board_clear();
	Process honest = role("honest", { hosts[0], hosts[1] }, quiet);
	Process bad = role("hostile",
			   { hosts[1], hosts[0], std::to_string(kind), std::to_string(at),
			     std::to_string(seed) },
			   quiet);
	/* The hostile end may have made the honest one wait for bytes that it will not send. */
	NEED(until([&] { return cell(kAltered) > 0 || bad.ended() || honest.ended(); }));
	until([&] { return bad.ended() || cell(kOver) != 0 || honest.ended(); }, 300);
	if (!bad.ended())
		bad.kill(SIGKILL);
	EXPECT_EQ(0, honest.wait(60));
	bad.wait();
}

} // namespace

TEST(SockHostile, NoPostOfTheOtherEndDoesHarm)
{
	Await awaited("hostile ends", stress() ? 3000 : 200);
	Random random(11);

	for (unsigned hosts : { 1u, 2u }) {
		Fabric fabric(hosts);

		for (int kind = 0; kind < KINDS; kind++)
			for (size_t i = 0; i < scaled(2, 100) && !HasFailure(); i++)
				against(fabric, static_cast<Kind>(kind),
					1 + static_cast<unsigned>(random.below(100)),
					random.next());
		EXPECT_TRUE(until([&] { return fabric.clients(0) == 0; }));
	}
}

TEST(SockHostile, AnImpossibleRecordResetsTheConnection)
{
	Await awaited("impossible records", 200);
	Fabric fabric(2);

	for (size_t i = 0; i < std::size(kImpossible); i++) {
		SCOPED_TRACE(text("header %zu", i));
		board_clear();
		Process bad = role("headers",
				   { std::to_string(ST_CONNECTOR), "0", "1", std::to_string(i) },
				   quiet);
		Process honest =
			role("headers", { std::to_string(ST_ACCEPTOR), "1", "0", "0" }, quiet);
		EXPECT_EQ(0, honest.wait(60));
		EXPECT_EQ(0, bad.wait(60));
		EXPECT_EQ(1u, cell(kAltered));
	}
}

/* The token is written to TCP that has ended, which answers with a reset if it comes before the end is read. */
TEST(SockHostile, TcpThatEndsBeforeTheTokenEndsBothEnds)
{
	Await awaited("an end of TCP before the token", 60);
	Fabric fabric(1);
	Library library("host0");
	Pair p;
	char got;

	board_clear();
	plan.fd = p.a.fd;
	alter_by(ends_before_token);
	p.promote("host0", "host0");
	for (End *end : { &p.a, &p.b }) {
		ssize_t rc = end->recv_wait(&got, 1);
		EXPECT_TRUE(rc == 0 || rc == -ECONNRESET || rc == -EPIPE) << rc;
	}
	EXPECT_GT(cell(kAltered), 0u);
	alter_by(nullptr);
}

TEST(SockHostile, AnotherVersionStaysWithTcp)
{
	Await awaited("ends of other versions", 100);
	Fabric fabric(2);

	for (unsigned other : { 1u, 2u }) {
		board_clear();
		Process one = role("versions", { "1", "0", "1", other == 1 ? "1" : "0" }, quiet);
		Process two = role("versions", { "2", "1", "0", other == 2 ? "1" : "0" }, quiet);
		EXPECT_EQ(0, one.wait(60));
		EXPECT_EQ(0, two.wait(60));
		EXPECT_GT(cell(kAltered), 0u);
		EXPECT_EQ(ST_WHY_VERSION, cell(kWhy + 2 - other));
		EXPECT_EQ(2 * kTurns * kPiece, cell(kBytes + 1));
		EXPECT_EQ(2 * kTurns * kPiece, cell(kBytes + 2));
	}
}
