/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts in a ring and flows between hosts drawn at random, for tests that disturb them.
 *
 * A flow is two processes and one connection after the other, each of a *generation*: hosts, level,
 * service, sizes and ways to wait are drawn again.  What must hold:
 *
 *  - on a reliable connection messages arrive once, complete and in order, up to where it breaks;
 *    at reliable reception every message whose send succeeded has arrived;
 *  - on an unreliable one the receiver sees numbers that grow, and counts what it drops;
 *  - when a connection breaks both ends are told, and it does so only if something happened to it;
 *  - no flow stands still;
 *  - in the end nothing is left.
 *
 * CLUSTER_SOAK_LOUD=1 shows what happens during the run, and what agents know when a flow has not
 * moved for a second; =2 also shows what all threads do then.
 */
#ifndef SOAK_H
#define SOAK_H

#include "flow.h"

#include <array>
#include <cinttypes>
#include <memory>

namespace clu {

constexpr unsigned kHosts = 8, kFlows = 10;
constexpr size_t kWindow = 8;		      /* messages of a reliable flow under way */
constexpr size_t kAhead = 48, kReceives = 16; /* of an unreliable one: some meet no receive */
constexpr size_t kUnreliableLongest = 64u << 10;
constexpr unsigned kStill = 20; /* a flow that takes no step for so many seconds has failed */

bool is_loud();

/* ---- what ends and test tell each other ----------------------------------------------------------- */

enum Cell : unsigned {
	/* The generation that is planned; written last. */
	GENERATION,
	LEVEL,
	SERVICE,
	HOST,		  /* of each end */
	TAKES = HOST + 2, /* likewise */
	WINDOWED = TAKES + 2,
	TARGET,
	STOP, /* the generation that is to end before its target */
	/* The sender. */
	POSTED,
	DONE,	/* succeeded, without a failure before */
	LATE,	/* a bit for each that succeeded after the first failure */
	FAILED, /* came back with an error */
	LIMIT,
	/* The receiver. */
	ADDRESS,
	HANDLE,
	TAKEN, /* numbers below may be used again, kWindow or kAhead further on */
	ARRIVED,
	DROPPED,
	/* The generation and the stage of each end, in one word. */
	STAGE,
	CELLS = STAGE + 2
};

enum Side : unsigned { OUT, IN };
/* KILLED is set by the test, for a process that it has killed. */
enum Stage : uint64_t { WAITING, OPEN, CONNECTED, FINISHED, WHOLE, BROKEN, UNMADE, KILLED };
enum Service { MIXED, SENDS, IMMEDIATE, WRITES, WRITES_IMM, READS, SERVICES };
enum Takes { POLL, WAIT, CQ_POLL, CQ_WAIT, TAKES_COUNT };

std::atomic<uint64_t> &at(unsigned flow, unsigned what);
/* The processes of flows are to end. */
std::atomic<uint64_t> &quit();
/* The processes of flows are to close their NICs as soon as they have no generation. */
std::atomic<uint64_t> &leave();
/* Grows by 1 before the agent of a host is killed, and when there is another: odd between. */
std::atomic<uint64_t> &deaths(unsigned host);
/* The number of agents that were stopped so far, and of those that are stopped. */
std::atomic<uint64_t> &halts();
std::atomic<uint64_t> &halted_now();
/*
 * The time of the test's last turn, 0 in tests that do not say: while it does not run for long, agents may
 * not either.
 */
std::atomic<uint64_t> &checked_at();
constexpr int64_t kStall = 1000000000;

struct Plan {
	unsigned flow;
	uint64_t generation;
	VIP_RELIABILITY_LEVEL level;
	Service service;
	unsigned host[2];
	Takes takes[2];
	bool windowed;
	uint64_t target;

	explicit Plan(unsigned f)
	    : flow(f), generation(at(f, GENERATION)),
	      level(static_cast<VIP_RELIABILITY_LEVEL>(at(f, LEVEL))),
	      service(static_cast<Service>(at(f, SERVICE).load())), windowed(at(f, WINDOWED) != 0),
	      target(at(f, TARGET))
	{
		for (unsigned side = 0; side < 2; side++) {
			host[side] = static_cast<unsigned>(at(f, HOST + side));
			takes[side] = static_cast<Takes>(at(f, TAKES + side).load());
		}
	}

	bool reliable() const { return level != VIP_SERVICE_UNRELIABLE; }
	size_t longest() const { return reliable() ? kLongest : kUnreliableLongest; }
	size_t window() const { return reliable() ? kWindow : kAhead; }
	uint64_t id(uint64_t number) const { return generation << 32 | number; }
	std::string disc() const { return text("soak%u.%" PRIu64, flow, generation); }

	/* Every fourth message completes a receive, so that writes before it can be checked. */
	Kind kind(uint64_t number) const
	{
		static const Kind of_service[] = { SEND, SEND, SEND_IMM, WRITE, WRITE_IMM, READ };
		static const Kind any[] = { SEND, SEND_IMM, WRITE, WRITE_IMM, READ };
		Kind k = of_service[service];
		if (service == MIXED || mix(id(number) + 3) % 8 == 0)
			k = any[mix(id(number) + 5) % 5];
		return !notifies(k) && (number % 4 == 3 || !reliable()) ? SEND : k;
	}

	/* Mostly short. */
	size_t length(uint64_t number) const
	{
		uint64_t x = mix(id(number) + 77), y = x >> 12;
		size_t least = !reliable() && kind(number) == SEND ? sizeof(uint64_t) : 0;
		if (reliable() && x % 500 == 0)
			return y % kLongest;
		return least + y % (x % 8 == 0 ? kUnreliableLongest - least : 300);
	}
};

/* ---- the test -------------------------------------------------------------------------------------- */

/*
 * Disturbances that a generation has met; each is a reason for a connection to break.  DEATH and
 * HALT are of any agent, OWN_ of one of the flow's own hosts: killed, or stopped for so long that
 * its neighbours give it up.
 */
enum Trouble : unsigned {
	NONE = 0,
	FALL = 1,
	DEATH = 2,
	CUT = 4,
	OWN_DEATH = 8,
	HALT = 16,
	OWN_HALT = 32,
	LEFT = 64 /* an end was killed */
};

struct Totals {
	uint64_t generations = 0, whole = 0, broken = 0, unmade = 0;
	uint64_t in_spite = 0; /* broken after both ends had it, though there was a path */
	uint64_t posted = 0, done = 0, failed = 0, arrived = 0, dropped = 0;
	uint64_t arrived_failed = 0; /* reported as failed, but had arrived */
};

/* The stage that a side has reached in a generation. */
Stage stage(unsigned f, unsigned side, uint64_t generation);

class Soak {
public:
	Soak();
	virtual ~Soak() = default;
	Soak(const Soak &) = delete;

	/* Returns when so many messages more have arrived. */
	void advance(uint64_t messages);
	void fall();
	/*
	 * Takes two links down, so that the hosts between them are cut off, until all have been told or for a
	 * moment.
	 */
	void cut();
	/* Kills the agent of a host without processes. */
	void kill_relay();
	/* Kills the agent of a host, mostly of one with processes. */
	void kill_agent();
	/* Moves a flow to other hosts. */
	void move();
	/* Ends all flows and their processes. */
	void end();
	unsigned below(unsigned n) { return static_cast<unsigned>(random.below(n)); }

protected:
	enum Halted { GOES_ON, BRIEFLY, LONG };
	struct Flow {
		std::array<Process, 2> ends;
		std::array<bool, 2> paused{}, killed{};
		std::array<uint64_t, 2> over{}; /* the generation that an end was killed in */
		uint64_t generation = 0;	/* the one under way */
		unsigned trouble = NONE;
		bool again = false; /* the next is between the same hosts */
		uint64_t steps = 0, arrived = 0;
		int64_t since = 0;
		bool shown = false; /* it was reported to stand still */
	};

	/* ---- flows ---- */
	void spawn(unsigned f, Side side);
	void draw_host(unsigned f, Side side);
	void plan(unsigned f);
	bool is_at(unsigned f, unsigned host) const;
	bool ended(const std::array<uint64_t, kFlows> &generations) const;
	virtual void tick();
	void tick(unsigned f);
	void watch(unsigned f);
	void still(unsigned f);
	void pump(const std::string &what, const std::function<bool()> &good);
	/* Ends all generations; no others begin. */
	void close_all();

	/* ---- what is known of a generation that has ended ---- */
	struct Account {
		explicit Account(const Plan &p);
		bool broken() const { return out == BROKEN || in == BROKEN; }
		bool unmade() const { return out == UNMADE && in == UNMADE; }
		const Stage out, in;
		const uint64_t posted, done, failed, came, dropped;
	};
	void audit(unsigned f);
	void add_up(unsigned f, const Plan &p, const Account &a);
	uint64_t arrived() const;

	/* ---- trouble ---- */
	/* Link i joins hosts i and i+1. `ends`: one end takes it down, the other, or both. */
	void set_link(unsigned link, unsigned ends, bool up);
	void wait_links();
	void die(unsigned host);
	void live(unsigned host);
	/* Adds the present trouble to that of each flow. */
	void remember();
	/* Does the path from `from` to the right lead to `to`? */
	bool is_path(unsigned from, unsigned to) const;
	unsigned trouble_now(unsigned f) const;
	/* Is there a reason for the flow not to move? */
	bool excused(unsigned f) const;
	bool any_halted() const;
	/* The generations whose ends cannot reach each other. */
	std::array<uint64_t, kFlows> apart() const;

	/* ---- what is shown ---- */
	void note(const char *format, ...) __attribute__((format(printf, 2, 3)));
	void show_state();
	void show_flow(unsigned f) const;
	/* The stacks of a flow's processes and agents; `debugged`: from a debugger, too. */
	void show_stacks(unsigned f, bool debugged);
	virtual void show() const;

	Fabric fabric{ kHosts };
	const std::vector<uint64_t> idle = windows(fabric);
	const int64_t begun = now_ns();
	Random random;
	std::array<Flow, kFlows> flows;
	std::array<bool, kHosts> down{}, dead{};
	std::array<Halted, kHosts> halted{};
	unsigned barred = kHosts;
	bool closing = false;
	uint64_t generations_planned = 0, past = 0;
	/*
	 * The longest time without a step of a flow that had a path; the other while any agent was stopped.
	 */
	int64_t longest = 0, longest_halted = 0;
	std::array<Totals, 3> totals;
	unsigned falls = 0, cuts = 0, relay_deaths = 0, agent_deaths = 0;
	std::deque<std::string> notes;
};

} // namespace clu

#endif
