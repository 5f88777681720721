/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams between processes: on one host, on neighbours, on hosts with relays between them; on
 * ports that check every access, and on ports that lose doorbells.  Bytes are compared on both
 * paths.
 */
#include "pair.h"

#include <cstdlib>

#include <gtest/gtest.h>

using namespace clu;

namespace {

constexpr size_t kPort = 0, kReady = 8, kBytes = 16; /* cells; the last two are one for each end */

/* Waits until both ends have reached a step. */
void together(st_role role, uint64_t step)
{
	cell(kReady + role) = step;
	NEED(until([&] { return cell(kReady + 3 - role) >= step; }));
}

void both_ways(End &end, st_role role, uint64_t at, uint64_t n, size_t most)
{
	Thread sender([&] { send_stream(end, at, n, role, most); });

	recv_stream(end, at, n, 3 - role, most);
}

} // namespace

/* ROLE, OWN HOST, PEER HOST, RING BYTES, STREAM BYTES */
ROLE(end)
{
	Await awaited("an end of a stream", 100);
	st_role role = static_cast<st_role>(atoi(args[0].c_str()));
	std::string peer = "host" + args[2];
	uint64_t n = strtoull(args[4].c_str(), nullptr, 10);
	Library library("host" + args[1], static_cast<uint32_t>(atoi(args[3].c_str())));
	End end = meet(role, kPort);

	both_ways(end, role, 0, 10000, 3000);
	for (uint64_t round = 0, at = 10000; round < 2; round++, at += 2 * n + 10000) {
		NEED(until([&] { return st_promote(end, peer.c_str(), nullptr, 0) == 0; }));
		NEED(until([&] { return end.fast(); }));
		together(role, 3 * round + 1);
		both_ways(end, role, at, n, 3000);
		both_ways(end, role, at + n, n, 300000);
		NEED(end.fast());
		together(role, 3 * round + 2);
		if (role == ST_CONNECTOR)
			st_demote(end, ST_WHY_ASKED);
		NEED(until([&] { return st_on_tcp(end); }));
		together(role, 3 * round + 3);
		both_ways(end, role, at + 2 * n, 10000, 3000);
	}
	NEED(st_shutdown(end, SHUT_WR) == 0);
	char byte;
	NEED(end.recv_wait(&byte, 1) == 0);
	NEED(stats().resets == 0);
	cell(kBytes + role) = stats().vi_bytes_received;
}

namespace {

struct Place {
	const char *name;
	unsigned hosts, a, b;
	const char *port, *faults;
	bool around; /* the link between the two is down */
};

class Hosts : public testing::TestWithParam<Place> {};

} // namespace

TEST_P(Hosts, CarryStreams)
{
	const Place &place = GetParam();
	Env env = { { "VIADUCT_PORT", place.port }, { "VIADUCT_LOG", "error" } };

	if (*place.faults)
		env["VIADUCT_FAULT"] = place.faults;
	for (uint64_t ring : { 4096, 65536 }) {
		/* Where doorbells get lost, a turn of the ring takes some sleeps of 1 ms; relays take time, too. */
		uint64_t full = *place.faults && ring == 4096	   ? 4u << 20
				: *place.faults || place.hosts > 2 ? 32u << 20
								   : 64u << 20;
		uint64_t n = scaled(1u << 20, full);
		Fabric fabric(place.hosts, {}, 0, env);
		Process ends[2];

		board_clear();
		if (place.around) {
			fabric.link(place.a, "right", false);
			NEED(until([&] { return !fabric.links_up(); }));
		}
		for (unsigned i = 0; i < 2; i++)
			ends[i] =
				role("end",
				     { std::to_string(1 + i), std::to_string(i ? place.b : place.a),
				       std::to_string(i ? place.a : place.b), std::to_string(ring),
				       std::to_string(n) },
				     env);
		for (unsigned i = 0; i < 2; i++) {
			EXPECT_EQ(0, ends[i].wait(90));
			EXPECT_EQ(4 * n, cell(kBytes + 1 + i));
		}
		for (unsigned i = 0; i < fabric.size(); i++)
			EXPECT_TRUE(until([&] { return fabric.clients(i) == 0; }));
	}
}

static std::string name_of(const testing::TestParamInfo<Place> &info)
{
	return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(
	Places, Hosts,
	testing::Values(Place{ "OneHost", 1, 0, 0, "emu", "", false },
			Place{ "Neighbours", 2, 0, 1, "emu", "", false },
			Place{ "AroundARingOfThree", 3, 0, 1, "emu", "", true },
			Place{ "AcrossARingOfFour", 4, 0, 2, "emu", "", false },
			Place{ "NeighboursStrict", 2, 0, 1, "emu+strict", "", false },
			Place{ "AroundStrict", 3, 0, 1, "emu+strict", "", true },
			Place{ "NeighboursFaulty", 2, 0, 1, "emu+fault",
			       "drop_db=0.3,spurious_db=0.1", false },
			Place{ "AroundFaulty", 3, 0, 1, "emu+fault", "drop_db=0.3,spurious_db=0.1",
			       true },
			Place{ "NeighboursEarly", 2, 0, 1, "emu+fault", "early_db=0.3", false },
			Place{ "AroundEarly", 3, 0, 1, "emu+fault", "early_db=0.3", true }),
	name_of);
