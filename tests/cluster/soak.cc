/* SPDX-License-Identifier: BSD-2-Clause */
#include "soak.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

namespace clu {

bool is_loud()
{
	static const bool loud = getenv("CLUSTER_SOAK_LOUD") != nullptr;
	return loud;
}

static const char *const stage_names[] = { "waiting", "open",	"connected", "finished",
					   "whole",   "broken", "unmade",    "killed" };
static const char *const service_names[] = { "mixed",  "sends",	     "immediate",
					     "writes", "writes imm", "reads" };
static const char *const takes_names[] = { "poll", "wait", "cq poll", "cq wait" };

Soak::Soak() : random(6)
{
	for (unsigned f = 0; f < kFlows; f++) {
		plan(f);
		for (Side side : { OUT, IN })
			spawn(f, side);
	}
}

void Soak::spawn(unsigned f, Side side)
{
	flows[f].ends[side] = role("end",
				   { std::to_string(f), std::to_string(side),
				     std::to_string(flows[f].over[side]) },
				   { { "VIADUCT_LOG", "error" } });
	flows[f].killed[side] = false;
}

Stage stage(unsigned f, unsigned side, uint64_t generation)
{
	uint64_t s = at(f, STAGE + side);
	return s >> 4 == generation ? static_cast<Stage>(s & 15) : WAITING;
}

static std::string generation_text(const Plan &p)
{
	static const char *const levels[] = { "", "unreliable", "delivery", "", "reception" };
	return text("flow %u generation %" PRIu64 " host %u (%s) to %u (%s), %s, %s%s", p.flow,
		    p.generation, p.host[OUT], takes_names[p.takes[OUT]], p.host[IN],
		    takes_names[p.takes[IN]], levels[p.level], service_names[p.service],
		    p.windowed ? ", window" : "");
}

void Soak::advance(uint64_t messages)
{
	uint64_t goal = arrived() + messages;
	pump("messages to arrive", [&] { return arrived() >= goal; });
}

void Soak::fall()
{
	unsigned link = below(kHosts), ends = below(3);
	note("link %u falls", link);
	set_link(link, ends, false);
	advance(below(200));
	set_link(link, ends, true);
	wait_links();
	falls++;
}

void Soak::cut()
{
	unsigned one = below(kHosts), two = (one + 1 + below(kHosts - 1)) % kHosts;
	bool moment = below(4) == 0;
	note("links %u and %u fall", one, two);
	set_link(one, 0, false);
	advance(below(50));
	set_link(two, 1, false);
	std::array<uint64_t, kFlows> generations = apart();
	if (!moment)
		pump("both ends to be told", [&] { return ended(generations); });
	set_link(one, 0, true);
	if (!moment)
		advance(below(50));
	set_link(two, 1, true);
	wait_links();
	cuts++;
}

void Soak::kill_relay()
{
	unsigned host = below(kHosts);
	barred = host;
	note("host %u is cleared", host);
	for (unsigned f = 0; f < kFlows; f++)
		if (is_at(f, host))
			at(f, STOP) = flows[f].generation;
	pump("processes to leave a host", [&] { return fabric.clients(host) == 0; });
	die(host);
	advance(below(200));
	live(host);
	wait_links();
	barred = kHosts;
	relay_deaths++;
}

void Soak::kill_agent()
{
	unsigned host = below(kHosts);
	std::array<uint64_t, kFlows> generations{};
	barred = host;
	for (unsigned f = 0; f < kFlows; f++)
		generations[f] = is_at(f, host) ? flows[f].generation : 0;
	die(host);
	pump("processes of a dead agent to be told", [&] { return ended(generations); });
	live(host);
	wait_links();
	barred = kHosts;
	agent_deaths++;
}

void Soak::move()
{
	unsigned f = below(kFlows);
	at(f, STOP) = flows[f].generation;
}

void Soak::close_all()
{
	closing = true;
	for (unsigned f = 0; f < kFlows; f++)
		at(f, STOP) = flows[f].generation;
	pump("flows to end", [&] {
		return std::all_of(flows.begin(), flows.end(),
				   [](const Flow &flow) { return flow.generation == 0; });
	});
}

void Soak::end()
{
	close_all();
	quit() = 1;
	for (auto &flow : flows)
		for (auto &end : flow.ends)
			EXPECT_EQ(0, end.wait());
	show();
	expect_idle(fabric, idle);
}

uint64_t Soak::arrived() const
{
	uint64_t sum = past;
	for (unsigned f = 0; f < kFlows; f++)
		sum += flows[f].generation != 0 ? at(f, ARRIVED).load() : 0;
	return sum;
}

void Soak::draw_host(unsigned f, Side side)
{
	unsigned host;
	do
		host = below(kHosts);
	while (host == barred);
	at(f, HOST + side) = host;
}

void Soak::plan(unsigned f)
{
	static const VIP_RELIABILITY_LEVEL levels[] = { VIP_SERVICE_UNRELIABLE,
							VIP_SERVICE_RELIABLE_DELIVERY,
							VIP_SERVICE_RELIABLE_RECEPTION };
	Flow &flow = flows[f];
	if (!flow.again || is_at(f, barred)) {
		draw_host(f, OUT);
		draw_host(f, IN);
	}
	at(f, LEVEL) = levels[(below(5) + 1) / 2];
	at(f, SERVICE) = below(SERVICES);
	at(f, TAKES + OUT) = below(TAKES_COUNT);
	at(f, TAKES + IN) = below(TAKES_COUNT);
	at(f, WINDOWED) = below(2);
	at(f, TARGET) = 1 + below(below(8) == 0 ? 8000 : 800);
	at(f, LIMIT) = UINT64_MAX;
	for (Cell what : { POSTED, DONE, LATE, FAILED, TAKEN, ARRIVED, DROPPED })
		at(f, what) = 0;
	flow.since = now_ns();
	flow.trouble = trouble_now(f);
	/* The board is stored in order, and ends look at the generation first. */
	at(f, GENERATION) = flow.generation = ++generations_planned;
}

bool Soak::is_at(unsigned f, unsigned host) const
{
	return at(f, HOST + OUT) == host || at(f, HOST + IN) == host;
}

bool Soak::ended(const std::array<uint64_t, kFlows> &generations) const
{
	for (unsigned f = 0; f < kFlows; f++)
		if (generations[f] != 0 && flows[f].generation == generations[f])
			return false;
	return true;
}

void Soak::tick()
{
	for (unsigned f = 0; f < kFlows; f++)
		tick(f);
}

void Soak::tick(unsigned f)
{
	Flow &flow = flows[f];
	for (unsigned side = 0; side < 2; side++)
		if (!flow.killed[side] && flow.ends[side].ended())
			fail(__FILE__, __LINE__, text("process %u of flow %u to go on", side, f));
	if (flow.generation == 0) {
		if (!closing)
			plan(f);
		return;
	}
	if (stage(f, OUT, flow.generation) > FINISHED && stage(f, IN, flow.generation) > FINISHED) {
		audit(f);
		flow.generation = 0;
		if (!closing)
			plan(f);
		return;
	}
	watch(f);
}

static uint64_t steps(unsigned f, uint64_t generation)
{
	uint64_t all = generation;
	for (Cell what : { POSTED, DONE, FAILED, TAKEN, ARRIVED, STAGE })
		all = mix(all ^ at(f, what));
	return mix(all ^ at(f, STAGE + IN));
}

/* Fails if the flow stands still, unless there is a reason for it. */
void Soak::watch(unsigned f)
{
	Flow &flow = flows[f];
	uint64_t now = steps(f, flow.generation);
	if (!excused(f)) {
		int64_t &most = any_halted() ? longest_halted : longest;
		most = std::max(most, now_ns() - flow.since);
	}
	if (excused(f) || now != flow.steps) {
		flow.since = now_ns();
		flow.shown = false;
	}
	flow.steps = now;
	still(f);
}

void Soak::still(unsigned f)
{
	Flow &flow = flows[f];
	if (is_loud() && !flow.shown && !any_halted() && now_ns() - flow.since > 1000000000) {
		flow.shown = true;
		note("flow %u has not moved for a second", f);
		int64_t from = now_ns();
		show_stacks(f, strcmp(getenv("CLUSTER_SOAK_LOUD"), "2") == 0);
		flow.since += now_ns() - from; /* a debugger takes its time */
	}
	if (now_ns() - flow.since > int64_t{ limit_factor() } * kStill * 1000000000) {
		show_stacks(f, true);
		fail(__FILE__, __LINE__, text("flow %u not to stand still", f));
	}
}

void Soak::pump(const std::string &what, const std::function<bool()> &good)
{
	bool was_good;
	try {
		was_good = until(
			[&] {
				tick();
				return good();
			},
			3 * kStill * 1000);
		if (!was_good)
			fail(__FILE__, __LINE__, what);
	} catch (const std::exception &) {
		show_state();
		throw;
	}
}

static uint64_t bits(uint64_t x)
{
	return static_cast<uint64_t>(__builtin_popcountl(x));
}

Soak::Account::Account(const Plan &p)
    : out(stage(p.flow, OUT, p.generation)), in(stage(p.flow, IN, p.generation)),
      posted(at(p.flow, POSTED)), done(at(p.flow, DONE) + bits(at(p.flow, LATE))),
      failed(at(p.flow, FAILED)), came(at(p.flow, ARRIVED)), dropped(at(p.flow, DROPPED))
{
}

static void need(bool good, const char *else_what, const std::string &how)
{
	if (!good)
		throw std::runtime_error(text("%s: %s", else_what, how.c_str()));
}

void Soak::audit(unsigned f)
{
	Plan p(f);
	Account a(p);
	std::string how = text("%s: %s, %s; %" PRIu64 " posted, %" PRIu64 " succeeded, %" PRIu64
			       " failed, %" PRIu64 " arrived, %" PRIu64 " dropped",
			       generation_text(p).c_str(), stage_names[a.out], stage_names[a.in],
			       a.posted, a.done, a.failed, a.came, a.dropped);
	if (a.out != WHOLE || a.in != WHOLE)
		note("%s", how.c_str());
	need(a.came + a.dropped <= a.posted, "more arrived than was posted", how);
	need(a.out == KILLED || a.posted == a.done + a.failed, "descriptors that did not come back",
	     how);
	need(a.out != WHOLE || a.posted == a.done, "failures of a whole connection", how);
	need(a.in != WHOLE || a.posted == a.came + a.dropped, "losses", how);
	need(!p.reliable() || a.dropped == 0, "drops of a reliable connection", how);
	need(p.level != VIP_SERVICE_RELIABLE_RECEPTION || a.in == KILLED || a.done <= a.came,
	     "success of what did not arrive", how);
	need(!a.broken() || flows[f].trouble != NONE, "broken without a reason", how);
	add_up(f, p, a);
}

void Soak::add_up(unsigned f, const Plan &p, const Account &a)
{
	Flow &flow = flows[f];
	Totals &t = totals[p.level == VIP_SERVICE_UNRELIABLE	      ? 0
			   : p.level == VIP_SERVICE_RELIABLE_DELIVERY ? 1
								      : 2];
	bool both_had_it = a.out != UNMADE && a.in != UNMADE;
	if (a.broken() && both_had_it && p.reliable() &&
	    (flow.trouble & (CUT | OWN_DEATH | OWN_HALT | LEFT)) == 0) {
		t.in_spite++;
		note("though there was a path");
	}
	t.generations++;
	t.whole += a.out == WHOLE && a.in == WHOLE;
	t.broken += a.broken();
	t.unmade += a.unmade();
	t.posted += a.posted;
	t.done += a.done;
	t.failed += a.failed;
	t.arrived += a.came;
	t.dropped += a.dropped;
	t.arrived_failed += p.reliable() && a.came > a.done ? a.came - a.done : 0;
	past += a.came;
	flow.arrived += a.came;
	flow.again = a.broken() && below(2) == 0;
}

void Soak::remember()
{
	for (unsigned f = 0; f < kFlows; f++)
		flows[f].trouble |= trouble_now(f);
}

void Soak::set_link(unsigned link, unsigned ends, bool up)
{
	if (!up) {
		down[link] = true;
		remember();
	}
	if (ends != 1)
		fabric.link(link, "right", up);
	if (ends != 0)
		fabric.link((link + 1) % kHosts, "left", up);
	if (up)
		down[link] = false;
}

void Soak::wait_links()
{
	pump("links to come up", [&] { return fabric.links_up(); });
}

void Soak::die(unsigned host)
{
	dead[host] = true;
	remember();
	/* The generation might not have begun, and could not begin now. */
	for (unsigned f = 0; f < kFlows; f++)
		if (is_at(f, host))
			at(f, STOP) = flows[f].generation;
	note("agent %u dies", host);
	deaths(host)++;
	fabric.kill(host);
}

void Soak::live(unsigned host)
{
	fabric.restart(host);
	deaths(host)++;
	dead[host] = false;
}

bool Soak::is_path(unsigned from, unsigned to) const
{
	for (unsigned host = from; host != to; host = (host + 1) % kHosts)
		if (down[host] || (host != from && (dead[host] || halted[host] != GOES_ON)))
			return false;
	return true;
}

unsigned Soak::trouble_now(unsigned f) const
{
	unsigned a = static_cast<unsigned>(at(f, HOST + OUT));
	unsigned b = static_cast<unsigned>(at(f, HOST + IN));
	unsigned t = flows[f].killed[OUT] || flows[f].killed[IN] ? LEFT : NONE;
	if (std::any_of(down.begin(), down.end(), [](bool is) { return is; }))
		t |= FALL;
	for (unsigned host = 0; host < kHosts; host++) {
		bool own = a == host || b == host;
		if (dead[host])
			t |= own ? OWN_DEATH : DEATH;
		if (halted[host] == LONG)
			t |= own ? OWN_HALT : HALT;
	}
	if (t != NONE && !is_path(a, b) && !is_path(b, a))
		t |= CUT;
	return t;
}

bool Soak::any_halted() const
{
	return std::any_of(halted.begin(), halted.end(), [](Halted is) { return is != GOES_ON; });
}

bool Soak::excused(unsigned f) const
{
	const Flow &flow = flows[f];
	for (unsigned side = 0; side < 2; side++)
		if (flow.paused[side] || halted[at(f, HOST + side)] != GOES_ON)
			return true;
	return (trouble_now(f) & (CUT | OWN_DEATH | LEFT)) != 0;
}

std::array<uint64_t, kFlows> Soak::apart() const
{
	std::array<uint64_t, kFlows> generations{};
	for (unsigned f = 0; f < kFlows; f++)
		if ((trouble_now(f) & CUT) != 0 &&
		    std::max(stage(f, OUT, flows[f].generation),
			     stage(f, IN, flows[f].generation)) >= CONNECTED)
			generations[f] = flows[f].generation;
	return generations;
}

void Soak::note(const char *format, ...)
{
	char line[500];
	va_list ap;
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	notes.push_back(text("%9.3f %s", static_cast<double>(now_ns() - begun) / 1e9, line));
	if (is_loud())
		printf("%s\n", notes.back().c_str());
	if (notes.size() > 100)
		notes.pop_front();
}

void Soak::show_flow(unsigned f) const
{
	Plan p(f);
	printf("%s: %s, %s, trouble %x, for %.1f s; limit %" PRIu64 ", target %" PRIu64
	       ", posted %" PRIu64 ", succeeded %" PRIu64 ", failed %" PRIu64 ", taken %" PRIu64
	       ", arrived %" PRIu64 ", dropped %" PRIu64 "%s\n",
	       generation_text(p).c_str(), stage_names[stage(f, OUT, p.generation)],
	       stage_names[stage(f, IN, p.generation)], flows[f].trouble,
	       static_cast<double>(now_ns() - flows[f].since) / 1e9, at(f, LIMIT).load(), p.target,
	       at(f, POSTED).load(), at(f, DONE).load(), at(f, FAILED).load(), at(f, TAKEN).load(),
	       at(f, ARRIVED).load(), at(f, DROPPED).load(),
	       at(f, STOP) == p.generation ? ", stopped" : "");
}

void Soak::show_state()
{
	for (auto &line : notes)
		printf("%s\n", line.c_str());
	for (unsigned host = 0; host < kHosts; host++) {
		if (dead[host] || halted[host] != GOES_ON)
			continue;
		try {
			printf("host %u\n%s", host, fabric.report(host).c_str());
		} catch (const std::exception &e) {
			printf("host %u: %s\n", host, e.what());
		}
	}
	for (unsigned f = 0; f < kFlows; f++)
		show_flow(f);
	fflush(stdout);
}

void Soak::show_stacks(unsigned f, bool debugged)
{
	for (unsigned host = 0; host < kHosts; host++) {
		if (dead[host] || halted[host] != GOES_ON)
			continue;
		printf("host %u\n%s", host, fabric.report(host).c_str());
		if (debugged)
			printf("%s", stacks(fabric.agent(host).pid()).c_str());
	}
	for (unsigned side = 0; side < 2 && debugged; side++)
		printf("flow %u side %u\n%s", f, side, stacks(flows[f].ends[side].pid()).c_str());
	show_flow(f);
	fflush(stdout);
}

void Soak::show() const
{
	static const char *const levels[] = { "unreliable", "delivery", "reception" };
	for (unsigned i = 0; i < 3; i++) {
		const Totals &t = totals[i];
		printf("%-10s %6" PRIu64 " connections: %" PRIu64 " whole, %" PRIu64
		       " broken (%" PRIu64 " though there was a path), %" PRIu64
		       " not made; %" PRIu64 " messages: %" PRIu64 " succeeded, %" PRIu64
		       " reported failed (%" PRIu64 " arrived all the same), %" PRIu64
		       " arrived, %" PRIu64 " dropped\n",
		       levels[i], t.generations, t.whole, t.broken, t.in_spite, t.unmade, t.posted,
		       t.done, t.failed, t.arrived_failed, t.arrived, t.dropped);
	}
	printf("%u falls of links, %u cuts, %u deaths of relays, %u of agents with processes; "
	       "longest standstill of a flow %.1f s\n",
	       falls, cuts, relay_deaths, agent_deaths, static_cast<double>(longest) / 1e9);
	for (auto &flow : flows)
		EXPECT_GT(flow.arrived, 0u) << "of flow " << &flow - flows.data();
}

} // namespace clu
