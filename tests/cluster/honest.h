/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Honest processes, for tests of what others do to them: pairs with a standing connection, whose messages are
 * checked; makers, which make a new connection for each message; and comers, which also open their NIC again
 * for each, so that they are new clients to the agent.  A call of theirs that fails ends them.
 *
 * The longest waits are noted, less the time that the process itself or a processor stood still.  The first 512
 * cells of the board are theirs.
 */
#ifndef HONEST_H
#define HONEST_H

#include "clu.h"

namespace clu {

/* In a ring of `hosts` hosts. */
struct HonestPlan {
	unsigned hosts, pairs, makers, comers;
	unsigned all() const { return pairs + makers + comers; }
};

/* Is the run over?  All of its processes ask. */
bool over();

/* The length of a run: as the variable says, else 5 s, or 10 minutes in the stress suite. */
unsigned honest_seconds(const char *variable);

class Honest {
public:
	/* They have connected when this returns. */
	explicit Honest(const HonestPlan &plan);
	/*
	 * Calls `beside` again and again for so long; ends early when an honest process ends, which fails the
	 * test.
	 */
	void run(unsigned seconds, const std::function<void()> &beside);
	/*
	 * Makers and comers go on making connections while the `others` run and when these are
	 * killed.  Then all end, and what they did is printed; the stress suite allows no wait of a
	 * second.
	 */
	void end(std::vector<Process> &others);

private:
	void expect_more();
	void stop();
	void report() const;

	const HonestPlan plan;
	const std::vector<std::unique_ptr<Standstill>> processors; /* each is watched */
	std::vector<Process> all;
};

/* Waits until the agents of the hosts 0..hosts - 1 have no process and no connection. */
void expect_nobody(Fabric &fabric, unsigned hosts);

/* Prints what the others did: `count` cells from `first` on. */
void print_deeds(const char *who, size_t first, const char *const names[], unsigned count);

} // namespace clu

#endif
