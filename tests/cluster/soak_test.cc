/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eight hosts in a ring, flows between hosts drawn at random (soak.h), and disturbances: links
 * fall, also two at a time, so that hosts are cut off from each other, and agents are killed, on
 * hosts that only relay and on hosts with processes.
 *
 * CLUSTER_SOAK_SECONDS says for how long; the quick run counts disturbances and messages.
 */
#include "soak.h"

#include <cstdlib>
#include <iterator>

#include <gtest/gtest.h>

using namespace clu;

enum Disturbance { ONE_FALL, TWO_FALLS, RELAY_DIES, AGENT_DIES, FLOW_MOVES };

static void disturb(Soak &soak, Disturbance what)
{
	switch (what) {
	case ONE_FALL:
		return soak.fall();
	case TWO_FALLS:
		return soak.cut();
	case RELAY_DIES:
		return soak.kill_relay();
	case AGENT_DIES:
		return soak.kill_agent();
	case FLOW_MOVES:
		return soak.move();
	}
}

TEST(Soak, EverythingAtOnce)
{
	static const Disturbance kinds[] = { ONE_FALL,	 RELAY_DIES, ONE_FALL, TWO_FALLS,
					     ONE_FALL,	 FLOW_MOVES, ONE_FALL, ONE_FALL,
					     RELAY_DIES, TWO_FALLS,  ONE_FALL, AGENT_DIES,
					     ONE_FALL,	 FLOW_MOVES };
	const char *given = getenv("CLUSTER_SOAK_SECONDS");
	unsigned seconds = given ? static_cast<unsigned>(atoi(given)) : stress() ? 600 : 0;
	Await awaited("the soak", seconds + 180);
	board_clear();
	Soak soak;
	/* Each kind once, then random ones. */
	for (Disturbance kind : kinds) {
		soak.advance(soak.below(800));
		disturb(soak, kind);
	}
	if (seconds == 0) {
		soak.advance(scaled(10000, 0));
	} else {
		for (int64_t end = now_ns() + int64_t{ seconds } * 1000000000; now_ns() < end;) {
			disturb(soak, kinds[soak.below(std::size(kinds))]);
			soak.advance(soak.below(400));
		}
	}
	soak.end();
}
