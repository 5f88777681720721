/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eight hosts in a ring and flows between them (soak.h), while agents, which relay for others too, and
 * processes of flows are stopped by SIGSTOP and continued, are killed, also while they are stopped,
 * and started again, and links fall.
 *
 * A host whose agent returns is *usable* when a new process there has connected to one of another host,
 * and the other way round, and each connection has carried a message.  Now and then all flows rest: then
 * agents must have the descriptors, the window and about the memory that they had before.
 *
 * CLUSTER_HALT_SECONDS says for how long; the quick run counts disturbances.
 */
#include "soak.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <list>

#include <signal.h>

#include <gtest/gtest.h>

using namespace clu;

constexpr int64_t kMs = 1000000;
/*
 * Neighbours give up an agent that is silent for 5 s; its last message may have come a while before it was
 * stopped.
 */
constexpr int64_t kBrief = 3000 * kMs;
/* The agent that is never killed: what it accumulates over the run shows. */
constexpr unsigned kOldest = 0;
constexpr uint64_t kMemory = 1u << 20; /* growth up to this is accepted */
constexpr unsigned kAway = 2;	       /* agents at a time */

/* ---- can a host be used? -------------------------------------------------------------------------- */

/* The side that requests the connection receives, so its receive is posted when the other sends. */
static void connect_and_receive(Nic &nic, unsigned host, const std::string &disc, unsigned ms)
{
	Vi vi(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
	Slab slab(nic, 1, 64);
	post_recv(vi, slab, slab.fill(0, 64));
	Addr here(nic, disc + "?"), there(host, disc);
	VIP_VI_ATTRIBUTES remote;
	VIP_RETURN rc = VIP_TIMEOUT;
	until([&] {
		rc = VipConnectRequest(vi, here, there, ms, &remote);
		return rc != VIP_NO_MATCH && rc != VIP_TIMEOUT && rc != VIP_NOT_REACHABLE;
	});
	NEED_RC(VIP_SUCCESS, rc);
	NEED(received(vi) == slab.desc(0));
	vi.disconnect();
}

static void accept_and_send(Nic &nic, const std::string &disc)
{
	Vi vi(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
	Slab slab(nic, 1, 64);
	NEED_RC(VIP_SUCCESS, serve(nic, vi, disc));
	post_send(vi, slab, slab.fill(0, 64));
	NEED(sent(vi) == slab.desc(0));
	until([&] { return vi.state() != VIP_STATE_CONNECTED; });
	vi.disconnect();
}

/* The OTHER host, number, milliseconds of a request, 1 if this one asks first */
ROLE(probe)
{
	Nic nic; /* of VIADUCT_HOST: no other agent is asked */
	unsigned other = static_cast<unsigned>(atoi(args[0].c_str()));
	unsigned ms = static_cast<unsigned>(atoi(args[2].c_str()));
	std::string from = "from" + args[1], to = "to" + args[1];
	if (args[3] == "1") {
		connect_and_receive(nic, other, from, ms);
		accept_and_send(nic, to);
	} else {
		accept_and_send(nic, from);
		connect_and_receive(nic, other, to, ms);
	}
	nic.close();
}

/* ---- the test -------------------------------------------------------------------------------------- */

/* The resources of an agent while nothing goes on. */
struct Held {
	size_t fds = 0;
	uint64_t window = 0, memory = 0;
};

class Halts : public Soak {
public:
	explicit Halts(unsigned most) : longest_shift(most) {}
	~Halts() override
	{
		for (unsigned host = 0; host < kHosts; host++)
			fabric.agent(host).kill(SIGCONT);
	}

	void pass(int64_t ns)
	{
		int64_t goal = now_ns() + ns;
		pump("time to pass", [&] { return now_ns() >= goal; });
	}

	void stop_agent()
	{
		unsigned host = below(kHosts);
		if (!may_disturb(host))
			return;
		int64_t ns = duration();
		note("agent %u stops for %.3f s", host, seconds(ns));
		halted[host] = ns < kBrief ? BRIEFLY : LONG;
		remember();
		halts()++;
		halted_now()++;
		start_anew();
		halted_since[host] = now_ns();
		fabric.agent(host).kill(SIGSTOP);
		agent_stops++;
		if (host != kOldest && below(8) == 0)
			later(ns, [this, host] {
				die(host);
				goes_on(host);
				agent_kills_stopped++;
				later(duration() / 8, [this, host] { comes_back(host); });
			});
		else
			later(ns, [this, host] {
				note("agent %u goes on", host);
				int64_t since = now_ns();
				fabric.agent(host).kill(SIGCONT);
				goes_on(host);
				probe(host, since);
			});
	}

	void kill_agent_for_a_while()
	{
		unsigned host = 1 + below(kHosts - 1);
		if (!may_disturb(host))
			return;
		die(host);
		agent_deaths++;
		later(duration() / 8, [this, host] { comes_back(host); });
	}

	void stop_end() { stop_end(below(kFlows), static_cast<Side>(below(2)), duration()); }

	void stop_both_ends()
	{
		unsigned f = below(kFlows);
		stop_end(f, OUT, duration());
		stop_end(f, IN, duration());
	}

	void kill_end()
	{
		unsigned f = below(kFlows);
		Side side = static_cast<Side>(below(2));
		if (!flows[f].paused[side] && !flows[f].killed[side])
			kill_end(f, side);
	}

	/* A link falls while nothing else keeps agents from answering. */
	void fall_alone()
	{
		if (away() == 0 && probes.empty())
			fall();
	}

	/* All rest, and agents have what they had before. */
	void take_stock()
	{
		pump("all to return", [&] { return due.empty() && probes.empty(); });
		close_all();
		leave() = 1;
		pump("links to be up and NICs closed", [&] { return at_rest(); });
		for (unsigned host = 0; host < kHosts; host++)
			take_stock(host);
		ends_hold();
		note("all rested; agent %u has %zu descriptors and %" PRIu64 " KiB", kOldest,
		     held(kOldest).fds, held(kOldest).memory >> 10);
		leave() = 0;
		closing = false;
		stocks++;
	}

	void show() const override
	{
		Soak::show();
		printf("%u stops of agents, %u kills of them, %u of them stopped; %u stops of "
		       "processes, %u kills of them, %u of them stopped; %u times a host was used "
		       "after its agent's return, at last after %.3f s (%.3f s without times for want of a "
		       "processor), on average %.3f s; longest standstill of a flow beside a "
		       "stopped agent %.1f s; the machine stood still %u times\n",
		       agent_stops, agent_deaths + agent_kills_stopped, agent_kills_stopped,
		       end_stops, end_kills, end_kills_stopped, uses, seconds(last_used),
		       seconds(last_ran), uses != 0 ? seconds(all_used) / uses : 0,
		       seconds(longest_halted), stalls);
		printf("%u times all rested; of agents, at first: %zu descriptors, %" PRIu64
		       " KiB; at most %zu and %" PRIu64 "; the oldest at last %zu and %" PRIu64
		       "\n",
		       stocks, first.fds, first.memory >> 10, most.fds, most.memory >> 10,
		       oldest.fds, oldest.memory >> 10);
		/* Reliable connections find another path. */
		for (auto &t : totals)
			EXPECT_EQ(0u, t.in_spite);
	}

private:
	struct Due {
		int64_t at;
		std::function<void()> act;
	};
	struct Probe {
		unsigned host, other;
		int64_t since;
		Process here, there;
		int64_t starved_before, stalled, starved = 0;
	};

	static double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

	/* A random time from a millisecond on; each power of two is equally likely. */
	int64_t duration()
	{
		unsigned ms = 1u << below(longest_shift + 1);
		return (ms + below(ms)) * kMs;
	}

	void later(int64_t ns, std::function<void()> act)
	{
		due.push_back({ now_ns() + ns, std::move(act) });
	}

	void tick() override
	{
		int64_t now = now_ns();
		notice_time(now);
		for (auto it = due.begin(); it != due.end();) {
			if (it->at > now) {
				++it;
				continue;
			}
			std::function<void()> act = std::move(it->act);
			it = due.erase(it);
			act();
		}
		probes.remove_if([this](Probe &p) { return over(p); });
		notice_time(now_ns());
		Soak::tick();
	}

	/* While this process did not run agents may not have run either, and those stopped were stopped for longer. */
	void notice_time(int64_t now)
	{
		bool stood = last_tick != 0 && now - last_tick > kStall;
		for (unsigned host = 0; host < kHosts; host++)
			if (halted[host] == BRIEFLY && now - halted_since[host] > kBrief) {
				halted[host] = LONG;
				remember();
			}
		if (stood) {
			note("the machine stood still for %.3f s", seconds(now - last_tick));
			for (auto &flow : flows)
				flow.trouble |= HALT | OWN_HALT;
			start_anew();
			halts()++;
			stalls++;
			stalled += now - last_tick;
		}
		last_tick = now;
		checked_at() = static_cast<uint64_t>(now);
	}

	/* ---- agents ---- */

	unsigned away() const
	{
		unsigned n = 0;
		for (unsigned host = 0; host < kHosts; host++)
			n += is_away(host);
		return n;
	}

	bool is_away(unsigned host) const { return dead[host] || halted[host] != GOES_ON; }
	bool may_disturb(unsigned host) const
	{
		return !is_away(host) && away() < kAway && probes.empty();
	}

	void goes_on(unsigned host)
	{
		halted[host] = GOES_ON;
		halted_now()--;
		start_anew();
	}

	void comes_back(unsigned host)
	{
		live(host);
		note("agent %u is back", host);
		probe(host, now_ns());
	}

	/*
	 * Measures the time without progress from now on: flows that stood still because of that agent have
	 * had no time yet.
	 */
	void start_anew()
	{
		for (auto &flow : flows)
			flow.since = now_ns();
	}

	/* Another host that it must be able to talk to, whoever else is away. */
	unsigned other_for(unsigned host)
	{
		unsigned right = (host + 1) % kHosts, left = (host + kHosts - 1) % kHosts;
		if (away() == 0)
			return (host + 1 + below(kHosts - 1)) % kHosts;
		return !is_away(right) ? right : !is_away(left) ? left : host;
	}

	void probe(unsigned host, int64_t since)
	{
		unsigned other = other_for(host);
		int64_t starved = starved_now(host) + starved_now(other) + stalled;
		probes.push_back({ host, other, since, Process(), Process(), starved, 0 });
		start(probes.back());
	}

	void start(Probe &p)
	{
		/* While other agents are away a request may have to pass one of them. */
		std::string ms = away() == 0 ? "2000" : "250", n = std::to_string(probes_made++);
		std::string a = std::to_string(p.host), b = std::to_string(p.other);
		p.here = role("probe", { b, n, ms, "1" }, { { "VIADUCT_HOST", a } });
		p.there = role("probe", { a, n, ms, "0" }, { { "VIADUCT_HOST", b } });
		p.stalled = stalled;
	}

	int64_t starved_now(unsigned host) { return delay_ns(fabric.agent(host).pid()); }

	/*
	 * The time for which a process wanted a processor and got none; the times of all concerned are added
	 * up.
	 */
	static int64_t starved_now(Process &process)
	{
		return process.ended() ? 0 : delay_ns(process.pid());
	}

	bool over(Probe &p)
	{
		int64_t took = now_ns() - p.since;
		bool ended = p.here.ended() && p.there.ended();
		bool failed = ended && (p.here.wait() != 0 || p.there.wait() != 0);
		p.starved = std::max(p.starved, starved_now(p.host) + starved_now(p.other) +
							starved_now(p.here) + starved_now(p.there) +
							stalled - p.starved_before);
		if (took - p.starved > usable_ns() || (failed && p.stalled == stalled)) {
			show_hosts(p);
			fail(__FILE__, __LINE__,
			     text("host %u and %u to talk %s after an agent's return, %.3f s ago",
				  p.host, p.other, failed ? "without a failure" : "in time",
				  seconds(took)));
		}
		/* It gave up on an agent that had no processor. */
		if (failed)
			start(p);
		if (!ended || failed)
			return false;
		note("host %u was used with %u after %.3f s, of which %.3f s without a "
		     "processor",
		     p.host, p.other, seconds(took), seconds(p.starved));
		uses++;
		last_used = std::max(last_used, took);
		last_ran = std::max(last_ran, took - p.starved);
		all_used += took;
		return true;
	}

	void show_hosts(Probe &p)
	{
		for (unsigned host : { p.host, p.other })
			printf("host %u\n%s%s", host, fabric.report(host).c_str(),
			       stacks(fabric.agent(host).pid()).c_str());
		for (Process *process : { &p.here, &p.there })
			if (!process->ended())
				printf("%s", stacks(process->pid()).c_str());
	}

	/*
	 * The time within which a host must be usable: what is required in the stress suite, else enough to
	 * show that it hangs.
	 */
	static int64_t usable_ns()
	{
		return (stress() && !sanitized() ? 2000 : 4 * kSeconds * 1000) * kMs;
	}

	/* ---- processes of flows ---- */

	void stop_end(unsigned f, Side side, int64_t ns)
	{
		Flow &flow = flows[f];
		if (flow.paused[side] || flow.killed[side])
			return;
		note("process %u of flow %u stops for %.3f s", side, f, seconds(ns));
		flow.paused[side] = true;
		flow.ends[side].kill(SIGSTOP);
		end_stops++;
		bool dies = below(8) == 0;
		later(ns, [this, f, side, dies] {
			flows[f].paused[side] = false;
			flows[f].since = now_ns();
			if (dies) {
				kill_end(f, side);
				end_kills_stopped++;
			} else {
				note("process %u of flow %u goes on", side, f);
				flows[f].ends[side].kill(SIGCONT);
			}
		});
	}

	void kill_end(unsigned f, Side side)
	{
		Flow &flow = flows[f];
		note("process %u of flow %u is killed", side, f);
		flow.killed[side] = true;
		flow.over[side] = at(f, GENERATION);
		remember();
		flow.ends[side].kill(SIGKILL);
		flow.ends[side].wait();
		if (stage(f, side, flow.over[side]) <= FINISHED)
			at(f, STAGE + side) = flow.over[side] << 4 | KILLED;
		end_kills++;
		later(duration() / 8, [this, f, side] { spawn(f, side); });
	}

	/* ---- what is held ---- */

	bool at_rest() const
	{
		for (unsigned host = 0; host < kHosts; host++)
			if (fabric.clients(host) != 0)
				return false;
		return fabric.links_up();
	}

	Held held(unsigned host)
	{
		pid_t pid = fabric.agent(host).pid();
		return { quiet_fds(pid), fabric.window_used(host), own_memory(pid) };
	}

	void take_stock(unsigned host)
	{
		Held h;
		bool same = until([&] {
			h = held(host);
			return stocks == 0 || (h.fds <= first.fds && h.window == idle[host]);
		});
		if (stocks == 0 && host == 0)
			first = h;
		first.fds = stocks == 0 ? std::max(first.fds, h.fds) : first.fds;
		first.memory = stocks == 0 ? std::max(first.memory, h.memory) : first.memory;
		most.fds = std::max(most.fds, h.fds);
		most.memory = std::max(most.memory, h.memory);
		if (host == kOldest)
			oldest = h;
		bool less = sanitized() || h.memory <= first.memory + kMemory;
		if (!same || !less)
			fail(__FILE__, __LINE__,
			     text("agent %u to have %zu descriptors, %" PRIu64
				  " bytes of window and "
				  "about %" PRIu64 " KiB, found %zu, %" PRIu64 ", %" PRIu64,
				  host, first.fds, idle[host], first.memory >> 10, h.fds, h.window,
				  h.memory >> 10));
	}

	/* A process without a NIC has no descriptors of one. */
	void ends_hold()
	{
		for (auto &flow : flows)
			for (auto &end : flow.ends) {
				size_t fds = quiet_fds(end.pid());
				if (end_fds == 0)
					end_fds = fds;
				if (fds > end_fds)
					fail(__FILE__, __LINE__,
					     text("process %d to have %zu descriptors, found %zu",
						  end.pid(), end_fds, fds));
			}
	}

	const unsigned longest_shift;
	std::list<Due> due;
	std::list<Probe> probes;
	unsigned agent_stops = 0, agent_kills_stopped = 0;
	unsigned end_stops = 0, end_kills = 0, end_kills_stopped = 0;
	unsigned probes_made = 0, uses = 0, stocks = 0, stalls = 0;
	int64_t last_tick = 0, stalled = 0;
	std::array<int64_t, kHosts> halted_since{};
	int64_t last_used = 0, last_ran = 0, all_used = 0;
	Held first, most, oldest;
	size_t end_fds = 0;
};

using Disturbance = void (Halts::*)();

TEST(Halts, StopKillAndContinue)
{
	static const Disturbance kinds[] = {
		&Halts::stop_agent, &Halts::stop_end,	    &Halts::kill_agent_for_a_while,
		&Halts::stop_agent, &Halts::stop_both_ends, &Halts::kill_end,
		&Halts::stop_agent, &Halts::stop_end,	    &Halts::fall_alone,
		&Halts::stop_agent, &Halts::move,
	};
	const char *given = getenv("CLUSTER_HALT_SECONDS");
	unsigned seconds = given ? static_cast<unsigned>(atoi(given)) : stress() ? 600 : 0;
	Await awaited("stops and returns", seconds + 300);
	board_clear();
	Halts soak(seconds == 0 ? 8 : 12);
	soak.advance(2000);
	soak.take_stock();
	for (Disturbance kind : kinds) {
		(soak.*kind)();
		soak.pass(static_cast<int64_t>(soak.below(300)) * kMs);
	}
	int64_t end = now_ns() + int64_t{ seconds } * 1000000000, stock = now_ns();
	while (now_ns() < end) {
		(soak.*kinds[soak.below(std::size(kinds))])();
		soak.pass(static_cast<int64_t>(soak.below(300)) * kMs);
		if (now_ns() - stock > 60000 * kMs) {
			soak.take_stock();
			stock = now_ns();
		}
	}
	soak.take_stock();
	soak.end();
}

/* A host without neighbours, whose agent is stopped. */
class Stopped : public ::testing::Test {
protected:
	void stop() { fabric.agent(0).kill(SIGSTOP); }
	void go_on() { fabric.agent(0).kill(SIGCONT); }
	/* Makes more requests to connect than a socket holds; each is withdrawn. */
	static void attempts(Nic &nic)
	{
		Addr here(nic, "here"), there(nic, "there");

		for (int i = 0; i < 1000; i++) {
			Vi vi(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
			NEED_RC(VIP_SUCCESS, VipConnectPeerRequest(vi, here, there, 1000));
		}
	}

	Fabric fabric{ 1 };
};

TEST_F(Stopped, AttemptsAreWithdrawnWithoutWaiting)
{
	Nic nic("host0");
	{
		Await awaited("attempts to be withdrawn", 3 * kSeconds);
		stop();
		attempts(nic);
	}
	go_on();
	Vi a(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY)),
		b(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
	EXPECT_EQ(VIP_SUCCESS, join(nic, a, nic, b, "after"));
}

TEST_F(Stopped, ANicIsClosedThoughMuchWasSaid)
{
	Nic nic("host0");
	Await awaited("a NIC to be closed", 3 * kSeconds);
	stop();
	attempts(nic);
	nic.close();
	go_on();
	EXPECT_TRUE(until([&] { return fabric.clients(0) == 0; }));
}

/* The agent allocates the memory when it goes on; the caller has returned and does not know its name. */
TEST_F(Stopped, MemoryThatCameTooLateIsFreed)
{
	Nic nic("host0");
	VIP_MEM_ATTRIBUTES a = { nullptr, VIP_FALSE, VIP_FALSE };
	VIP_PVOID p;
	VIP_MEM_HANDLE h;
	uint64_t before = fabric.window_used(0);
	size_t fds = quiet_fds(fabric.agent(0).pid());
	stop();
	EXPECT_EQ(VIP_TIMEOUT, VipxAllocMem(nic, 1u << 20, &a, &p, &h));
	go_on();
	/* The agent answers requests in order: this one after the one that timed out. */
	NEED_RC(VIP_SUCCESS, VipxAllocMem(nic, 1u << 20, &a, &p, &h));
	NEED_RC(VIP_SUCCESS, VipxFreeMem(nic, p, h));
	EXPECT_TRUE(until([&] { return fabric.window_used(0) == before; }))
		<< fabric.window_used(0) << " bytes lent out, " << before << " before";
	EXPECT_TRUE(until([&] { return quiet_fds(fabric.agent(0).pid()) == fds; }));
}
