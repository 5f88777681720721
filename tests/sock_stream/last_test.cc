/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last bytes of a process that ends without a close.  The other end is stopped, so that they wait: in its own ring,
 * in slots, or in the process that ends.  It gets all of them when the process takes its time to deliver them; when the
 * process is killed, all of them or ECONNRESET, and never the end of the stream in their place.
 */
#include "pair.h"

#include <algorithm>
#include <cstdlib>

#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

namespace {

enum { PORT, STAGE, SENT, RECEIVED, RESETS, GO };
constexpr size_t kMost = 5000;
constexpr uint32_t kRing = 1u << 20;

bool lingers(int fd)
{
	struct linger l = {};
	socklen_t size = sizeof(l);

	NEED(getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &size) == 0);
	return l.l_onoff != 0;
}

} // namespace

static void take_all(const std::vector<std::string> &args)
{
	Await awaited("the one that takes", 100);
	Library library("host" + args[0], kRing);
	End end = meet(ST_ACCEPTOR, PORT);
	uint8_t bytes[kMost];
	ssize_t rc;

	end.promote("host" + args[1]);
	NEED(until([&] { return end.fast(); }));
	cell(STAGE)++;
	while ((rc = end.recv_wait(bytes, sizeof(bytes))) != 0) {
		if (rc == -ECONNRESET) {
			cell(RESETS)++;
			continue;
		}
		NEED(rc > 0);
		NEED(differs(bytes, static_cast<size_t>(rc), cell(RECEIVED)) ==
		     static_cast<size_t>(rc));
		cell(RECEIVED) += static_cast<uint64_t>(rc);
	}
}

/*
 * OWN HOST, PEER HOST.  Without a check for leaks, which other tests make: after threads have just ended
 * LeakSanitizer of GCC 12 sometimes waits for ever.
 */
ROLE(taker)
{
	take_all(args);
	_exit(0);
}

/*
 * OWN HOST, PEER HOST, BYTES, HOW: k IS KILLED, i IS KILLED WHEN ALL IS DELIVERED, d DELIVERS, h DELIVERS WHAT MSG_MORE
 * KEPT BACK
 */
ROLE(giver)
{
	Await awaited("the one that gives", 100);
	Library library("host" + args[0], kRing);
	End end = meet(ST_CONNECTOR, PORT);
	uint64_t n = strtoull(args[2].c_str(), nullptr, 10), sent = 0;
	uint8_t bytes[kMost];
	int full = 0;

	end.promote("host" + args[1]);
	NEED(until([&] { return end.fast(); }));
	cell(STAGE)++;
	NEED(until([&] { return cell(GO) != 0; }));
	/* Sends all of it, or as much as there is room for. */
	while (sent < n && full < 1000) {
		size_t some = static_cast<size_t>(std::min<uint64_t>(n - sent, kMost));

		fill(bytes, some, sent);
		ssize_t rc = end.send(bytes, some, args[3] == "h" ? MSG_MORE : 0);
		full = rc == -EAGAIN ? full + 1 : 0;
		NEED(rc > 0 || rc == -EAGAIN);
		sent += rc > 0 ? static_cast<uint64_t>(rc) : 0;
	}
	cell(SENT) = sent;
	if (args[3] == "i") {
		NEED(until([&] { return !lingers(end.fd); }));
	}
	cell(STAGE)++;
	if (args[3] == "k" || args[3] == "i")
		pause();
	st_deliver(60000);
	_exit(0);
}

namespace {

struct Place {
	const char *name;
	unsigned hosts, a, b;
};

class Last : public testing::TestWithParam<Place> {
protected:
	void run(uint64_t bytes, char how)
	{
		const Place &place = GetParam();
		Env env = { { "VIADUCT_LOG", "error" } };
		Fabric fabric(place.hosts);
		std::string a = std::to_string(place.a), b = std::to_string(place.b);

		board_clear();
		Process taker = role("taker", { b, a }, env);
		Process giver = role("giver", { a, b, std::to_string(bytes), { how } }, env);
		NEED(until([&] { return cell(STAGE) == 2; }));
		if (how != 'i')
			taker.stop();
		cell(GO) = 1;
		NEED(until([&] { return cell(STAGE) == 3; }));
		if (how == 'k' || how == 'i') {
			giver.kill(SIGKILL);
			EXPECT_EQ(128 + SIGKILL, giver.wait());
			/* The agent has cleaned up, after it has waited its time for the other end. */
			EXPECT_TRUE(until([&] {
				return fabric.clients(place.a) <= (place.a == place.b ? 1u : 0u);
			}));
		}
		taker.kill(SIGCONT);
		if (how == 'd' || how == 'h') {
			EXPECT_EQ(0, giver.wait());
		}
		EXPECT_EQ(0, taker.wait());
		EXPECT_GT(cell(SENT), 0u);
		EXPECT_LE(cell(RECEIVED), cell(SENT));
		if (how != 'k') {
			EXPECT_EQ(cell(SENT), cell(RECEIVED));
			EXPECT_EQ(0u, cell(RESETS));
		} else if (cell(RECEIVED) < cell(SENT) || place.hosts > 2) {
			/*
			 * With relays between nobody knows, while the other end is stopped, that
			 * the bytes have arrived.
			 */
			EXPECT_EQ(1u, cell(RESETS)) << cell(RECEIVED) << " of " << cell(SENT);
		}
	}
};

} // namespace

TEST_P(Last, BytesOfAKilledProcessArriveOrAreResetFor)
{
	Await awaited("bytes of processes that are killed", 200);

	for (uint64_t bytes : { 1u, 100u, 4000u, 60000u, 400000u, 4000000u })
		run(bytes, 'k');
}

TEST_P(Last, BytesThatHaveArrivedNeedNoReset)
{
	Await awaited("bytes of processes that are killed later", 200);

	for (uint64_t bytes : { 1u, 60000u, 4000000u })
		run(bytes, 'i');
}

TEST_P(Last, BytesOfAnOrderlyEndArrive)
{
	Await awaited("bytes of processes that end", 200);

	for (uint64_t bytes : { 100u, 60000u, 4000000u })
		run(bytes, 'd');
	run(3000, 'h');
}

INSTANTIATE_TEST_SUITE_P(Of, Last,
			 testing::Values(Place{ "host", 1, 0, 0 }, Place{ "neighbours", 2, 0, 1 },
					 Place{ "relays", 4, 0, 2 }),
			 [](const testing::TestParamInfo<Place> &info) { return info.param.name; });
