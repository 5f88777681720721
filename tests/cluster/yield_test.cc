/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows over the relays of a ring of eight whose ends never sleep of their own accord: they poll and
 * yield, by themselves or inside the library, and are many more than there are processors.  Links
 * are taken down and restored during the run.  A flow whose hosts can reach each other must go on.
 *
 * Every 100 ms a thread records which links are up and, for every thread of agents and flows, its
 * state, its processor, the time it got and how long it could have run and got none.  A flow that
 * stood still is reported with what its threads and those of the agents did during that time: a
 * letter for each 100 ms, small where it got no time at all.
 *
 * Time that other programs on the machine take is not counted against a flow: where they have half
 * of the processor time that is used, a second counts half, and not at all while they keep a
 * processor that threads of ours wait for, or keep the recorder from its work, which only wakes now
 * and then.  Nor does a flow count whose end, which polls and yields by itself, got no processor,
 * or while an end or an agent waits for a lock of the kernel (kernel_holds() in clu.h).
 *
 * CLUSTER_YIELD_SECONDS says for how long, CLUSTER_YIELD_FLOWS how many flows; CLUSTER_YIELD_TAKES how they
 * wait: "own" is VipRecvDone and sched_yield, else it is a VIADUCT_WAIT; by default "yield" in a long run,
 * and "own" and "yield" by turns in a quick one.  A program that yields in a loop of its own runs only in the
 * quick one: the library cannot help it.
 */
#include "flow.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

constexpr unsigned kHosts = 8, kMostFlows = 64;
constexpr size_t kWindow = 8, kMax = 4096;
constexpr int64_t kSecond = 1000000000, kSampleNs = kSecond / 10;

/* ---- what ends and test tell each other ----------------------------------------------------------- */

enum Cell : unsigned {
	HOST,		 /* of either end */
	BASE = HOST + 2, /* the first message of the connection that the sender asks for */
	POSTED,
	TAKEN,	     /* numbers below are no longer under way */
	GENERATIONS, /* connections made */
	CELLS
};

enum Side : unsigned { OUT, IN };

static std::atomic<uint64_t> &at(unsigned flow, unsigned what)
{
	return cell(64 + flow * CELLS + what);
}

static std::atomic<uint64_t> &quit()
{
	return cell(0);
}

/* ---- one end --------------------------------------------------------------------------------------- */

static size_t length_of(uint64_t number)
{
	uint64_t x = mix(number + 77);
	return sizeof(number) + (x % 8 == 0 ? x / 8 % (kMax - sizeof(number)) : x / 8 % 100);
}

class End {
public:
	End(unsigned f, Side s, const std::string &takes)
	    : flow(f), side(s), waits(takes != "own"),
	      nic(text("host%u", static_cast<unsigned>(at(f, HOST + s)))),
	      slab(nic, s == OUT ? kWindow : 2 * kWindow, kMax)
	{
	}

	/* Makes one connection after the other: a connection that has no path for long breaks. */
	void run()
	{
		while (quit() == 0) {
			Vi vi(nic, attrs(flow % 2 ? VIP_SERVICE_RELIABLE_RECEPTION
						  : VIP_SERVICE_RELIABLE_DELIVERY,
					 kMax));
			if (side == OUT ? request(vi) : serve(vi)) {
				while (quit() == 0 && (side == OUT ? send(vi) : receive(vi)))
					;
			}
			vi.destroy();
		}
	}

private:
	std::string disc() const { return text("yield%u", flow); }

	static void may_fail(VIP_RETURN rc)
	{
		if (rc != VIP_TIMEOUT && rc != VIP_NO_MATCH && rc != VIP_NOT_REACHABLE)
			fail(__FILE__, __LINE__,
			     text("a connection or a reason to wait, found %s",
				  VipxErrorString(rc)));
		poll_pause();
	}
	static void poll_pause() { sched_yield(); }

	bool request(Vi &vi)
	{
		Addr here(nic, disc() + "?"),
			there(static_cast<unsigned>(at(flow, HOST + IN)), disc());
		VIP_VI_ATTRIBUTES remote;
		at(flow, BASE) = back = posted;
		VIP_RETURN rc = VipConnectRequest(vi, here, there, 1000, &remote);
		if (rc == VIP_SUCCESS)
			at(flow, GENERATIONS)++;
		else
			may_fail(rc);
		return rc == VIP_SUCCESS;
	}

	bool serve(Vi &vi)
	{
		Addr here(nic, disc()), remote(nic, disc());
		VIP_VI_ATTRIBUTES attributes;
		VIP_CONN_HANDLE conn;
		for (size_t i = 0; i < 2 * kWindow; i++)
			post_recv(vi, slab, slab.fill(i, kMax));
		VIP_RETURN rc = VipConnectWait(nic, here, 100, remote, &attributes, &conn);
		if (rc == VIP_SUCCESS) {
			at(flow, TAKEN) = next = at(flow, BASE);
			rc = VipConnectAccept(conn, vi);
			if (rc != VIP_SUCCESS)
				VipConnectReject(conn);
		}
		if (rc != VIP_SUCCESS)
			may_fail(rc);
		return rc == VIP_SUCCESS;
	}

	/* False when the connection is broken. */
	bool take(Vi &vi, VIP_DESCRIPTOR **d)
	{
		const VIP_ULONG ms = 20;
		VIP_RETURN rc;
		*d = nullptr;
		if (waits)
			rc = side == OUT ? VipSendWait(vi, ms, d) : VipRecvWait(vi, ms, d);
		else
			rc = side == OUT ? VipSendDone(vi, d) : VipRecvDone(vi, d);
		if (rc == VIP_DESCRIPTOR_ERROR)
			return false;
		NEED(rc == VIP_SUCCESS || rc == VIP_NOT_DONE || rc == VIP_TIMEOUT);
		if (*d == nullptr && !waits)
			poll_pause();
		return true;
	}

	bool send(Vi &vi)
	{
		VIP_DESCRIPTOR *d;
		if (posted - back < kWindow && posted - at(flow, TAKEN) < kWindow) {
			d = fill_message(slab, posted % kWindow, SEND, posted, length_of(posted), 0,
					 0);
			at(flow, POSTED) = ++posted;
			if (VipPostSend(vi, d, slab.h) == VIP_SUCCESS)
				return true;
			return false;
		}
		if (posted == back) {
			poll_pause();
			return vi.state() == VIP_STATE_CONNECTED;
		}
		if (!take(vi, &d))
			return false;
		if (d != nullptr)
			NEED(slab.index(d) == back++ % kWindow);
		return true;
	}

	bool receive(Vi &vi)
	{
		VIP_DESCRIPTOR *d;
		if (!take(vi, &d))
			return false;
		if (d == nullptr)
			return true;
		NEED(d->CS.Length == length_of(next) &&
		     holds(slab.data(slab.index(d)), next, length_of(next)));
		VIP_RETURN rc = VipPostRecv(vi, slab.fill(slab.index(d), kMax), slab.h);
		at(flow, TAKEN) = ++next;
		return rc == VIP_SUCCESS;
	}

	const unsigned flow;
	const Side side;
	const bool waits;
	Nic nic;
	Slab slab;
	uint64_t posted = 0, back = 0, next = 0;
};

/* FLOW, SIDE, TAKES */
ROLE(end)
{
	End end(static_cast<unsigned>(atoi(args[0].c_str())),
		static_cast<Side>(atoi(args[1].c_str())), args[2]);
	end.run();
}

/* ---- the record of all threads ---------------------------------------------------------------------- */

static std::string slurp(const std::string &path)
{
	char room[2048];
	int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, room, sizeof(room)) : 0;
	if (fd >= 0)
		close(fd);
	return std::string(room, n > 0 ? static_cast<size_t>(n) : 0);
}

struct Moment {
	char state;
	int cpu;	      /* the one that it runs on, or waits for */
	int64_t ran, delayed; /* so far */
};

struct Thread {
	std::string name;
	unsigned host = kHosts, flow = kMostFlows; /* whose it is */
	bool first = false;			   /* of its process */
	int stat = -1, sched = -1;
	std::string dir, stuck; /* what it waits for inside the kernel */
	std::deque<Moment> moments;
};

struct Scene {
	int64_t at;
	unsigned links; /* a bit each */
	int64_t busy;	/* of all processors, whoever used them; ns */
};

class Recorder {
public:
	static constexpr size_t kKept = 120;

	void add(pid_t pid, const std::string &name, unsigned host, unsigned flow)
	{
		std::lock_guard<std::mutex> guard(lock);
		watched[pid] = { name, host, flow };
	}

	void sample(unsigned links)
	{
		std::lock_guard<std::mutex> guard(lock);
		if (count++ % 10 == 0)
			find_threads();
		scenes.push_back({ now_ns(), links, busy_ns() });
		for (auto &entry : threads) {
			Thread &t = entry.second;
			t.moments.push_back(look(t));
			if (t.moments.back().state == 'D')
				t.stuck = " in " + slurp(t.dir + "/wchan") + " of system call " +
					  slurp(t.dir + "/syscall");
			if (t.moments.size() > kKept)
				t.moments.pop_front();
		}
		if (scenes.size() > kKept)
			scenes.pop_front();
	}

	/* The part of the processor time used lately that our threads used. */
	double share()
	{
		std::lock_guard<std::mutex> guard(lock);
		int64_t ours = 0, all = 0;
		size_t span = std::min<size_t>(4, scenes.size());
		for (auto &entry : threads)
			ours += span_of(entry.second, span).ran;
		if (span > 1)
			all = scenes.back().busy - scenes[scenes.size() - span].busy;
		return all <= ours ? 1 : static_cast<double>(ours) / static_cast<double>(all);
	}

	/*
	 * Is there a processor that gave none of these threads any time, though some waited for it?
	 * Then other programs had it: any order of these threads alone would have given it to one of them.
	 */
	bool shut_out()
	{
		std::lock_guard<std::mutex> guard(lock);
		std::map<int, bool> waited, served;
		for (auto &entry : threads) {
			const Thread &t = entry.second;
			if (t.moments.size() < 2)
				continue;
			bool ran = span_of(t, 2).ran > 0;
			waited[t.moments.back().cpu] |= !ran && t.moments.back().state == 'R';
			served[t.moments.back().cpu] |= ran;
		}
		return std::any_of(waited.begin(), waited.end(), [&](auto &entry) {
			return entry.second && !served[entry.first];
		});
	}

	/* Has a thread that a flow may need been waiting for a lock of the kernel, all the time lately? */
	bool held(unsigned flow)
	{
		std::lock_guard<std::mutex> guard(lock);
		return std::any_of(threads.begin(), threads.end(), [&](auto &entry) {
			const Thread &t = entry.second;
			return (t.flow == flow || t.host < kHosts) && t.moments.size() > 1 &&
			       t.moments.back().state == 'D' && span_of(t, 2).ran == 0;
		});
	}

	/* Did the program's own thread at an end of a flow want to run lately, and get no processor? */
	bool starved(unsigned flow)
	{
		std::lock_guard<std::mutex> guard(lock);
		return std::any_of(threads.begin(), threads.end(), [&](auto &entry) {
			const Thread &t = entry.second;
			return t.first && t.flow == flow && t.moments.size() > 1 &&
			       t.moments.back().state == 'R' && span_of(t, 2).ran == 0;
		});
	}

	/*
	 * An account of the threads that `concern` picks, and of the greatest users of the processors, since
	 * `from`.
	 */
	std::string account(int64_t from, const std::function<bool(const Thread &)> &concern)
	{
		std::lock_guard<std::mutex> guard(lock);
		size_t span = 0;
		std::string all = "  links";
		while (span < scenes.size() && scenes[scenes.size() - 1 - span].at >= from)
			span++;
		span = std::min(span + 2, scenes.size());
		for (size_t i = scenes.size() - span; i < scenes.size(); i++)
			all += text(" %02x", scenes[i].links);
		all += "\n";
		std::vector<std::pair<int64_t, const Thread *>> order;
		for (auto &entry : threads)
			order.push_back({ span_of(entry.second, span).ran, &entry.second });
		std::sort(order.rbegin(), order.rend());
		for (size_t i = 0; i < order.size(); i++)
			if (i < 8 || concern(*order[i].second))
				all += line(*order[i].second, span);
		all += text(
			"  all of these %.0f ms, all processors %.0f ms in %.0f ms\n",
			static_cast<double>(sum(order)) / 1e6,
			static_cast<double>(scenes.back().busy -
					    scenes[scenes.size() - span].busy) /
				1e6,
			static_cast<double>(scenes.back().at - scenes[scenes.size() - span].at) /
				1e6);
		return all;
	}

	~Recorder()
	{
		for (auto &entry : threads) {
			close(entry.second.stat);
			close(entry.second.sched);
		}
	}

private:
	struct Watched {
		std::string name;
		unsigned host, flow;
	};

	static int64_t sum(const std::vector<std::pair<int64_t, const Thread *>> &order)
	{
		int64_t all = 0;
		for (auto &entry : order)
			all += entry.first;
		return all;
	}

	static Moment span_of(const Thread &t, size_t span)
	{
		if (t.moments.empty())
			return { '-', 0, 0, 0 };
		size_t n = std::min(span, t.moments.size());
		const Moment &a = t.moments[t.moments.size() - n], &b = t.moments.back();
		return { b.state, b.cpu, b.ran - a.ran, b.delayed - a.delayed };
	}

	static std::string line(const Thread &t, size_t span)
	{
		Moment s = span_of(t, span);
		std::string states;
		size_t n = std::min(span, t.moments.size());
		for (size_t i = t.moments.size() - n; i < t.moments.size(); i++) {
			const Moment &m = t.moments[i];
			bool ran = i == 0 || m.ran != t.moments[i - 1].ran;
			/* A small letter: it got no processor since the sample before. */
			states += ran ? m.state : static_cast<char>(tolower(m.state));
			if (m.state == 'R')
				states += std::to_string(m.cpu);
		}
		bool stuck = states.find_first_of("dD") != std::string::npos;
		return text("  %-24s ran %7.1f ms, waited %7.1f ms %s%s\n", t.name.c_str(),
			    static_cast<double>(s.ran) / 1e6, static_cast<double>(s.delayed) / 1e6,
			    states.c_str(), stuck ? t.stuck.c_str() : "");
	}

	static Moment look(const Thread &t)
	{
		char room[512];
		long long ran = 0, delayed = 0;
		ssize_t n = pread(t.sched, room, sizeof(room) - 1, 0);
		room[n > 0 ? n : 0] = 0;
		sscanf(room, "%lld %lld", &ran, &delayed);
		n = pread(t.stat, room, sizeof(room) - 1, 0);
		room[n > 0 ? n : 0] = 0;
		const char *end = strrchr(room, ')');
		return { end ? end[2] : '-', end ? processor(end + 2) : 0, ran, delayed };
	}

	/* The number in the 39th field of a line of /proc/PID/stat; `field` is the third. */
	static int processor(const char *field)
	{
		for (int i = 3; i < 39 && field != nullptr; i++)
			field = strchr(field + 1, ' ');
		return field != nullptr ? atoi(field) : 0;
	}

	static int64_t busy_ns()
	{
		long long user = 0, nice = 0, sys = 0;
		sscanf(slurp("/proc/stat").c_str(), "cpu %lld %lld %lld", &user, &nice, &sys);
		return (user + nice + sys) * (kSecond / sysconf(_SC_CLK_TCK));
	}

	void find_threads()
	{
		for (auto &entry : watched) {
			std::string tasks = text("/proc/%d/task", entry.first);
			DIR *d = opendir(tasks.c_str());
			while (struct dirent *e = d ? readdir(d) : nullptr) {
				int tid = atoi(e->d_name);
				if (tid > 0 && threads.find(tid) == threads.end())
					add_thread(tid, tasks + "/" + e->d_name, entry.second,
						   tid == entry.first);
			}
			if (d)
				closedir(d);
		}
	}

	void add_thread(int tid, const std::string &dir, const Watched &w, bool first)
	{
		std::string comm = slurp(dir + "/comm");
		Thread t;
		t.name = w.name + " " + comm.substr(0, comm.find('\n'));
		t.host = w.host;
		t.dir = dir;
		t.flow = w.flow;
		t.first = first;
		t.stat = open((dir + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
		t.sched = open((dir + "/schedstat").c_str(), O_RDONLY | O_CLOEXEC);
		threads[tid] = t;
	}

	std::mutex lock;
	std::map<pid_t, Watched> watched;
	std::map<int, Thread> threads;
	std::deque<Scene> scenes;
	uint64_t count = 0;
};

/* Is this more than the quick run? */
static bool is_long()
{
	return stress() || getenv("CLUSTER_YIELD_SECONDS") != nullptr;
}

/* ---- the test ---------------------------------------------------------------------------------------- */

class Trial {
public:
	Trial() : random(9)
	{
		const char *given = getenv("CLUSTER_YIELD_FLOWS");
		count = given	      ? static_cast<unsigned>(atoi(given))
			: is_long()   ? 24
			: sanitized() ? 4
				      : 12;
		NEED(count > 0 && count <= kMostFlows);
		for (unsigned host = 0; host < kHosts; host++)
			recorder.add(fabric.agent(host).pid(), text("host%u", host), host,
				     kMostFlows);
		flows = std::vector<Flow>(count);
		for (unsigned f = 0; f < count; f++)
			start(f);
		awake = std::thread([this] { record(); });
	}

	~Trial() { stop_recording(); }

	void wait_connected()
	{
		NEED(until([&] {
			for (unsigned f = 0; f < count; f++)
				if (at(f, TAKEN) == 0)
					return false;
			return true;
		}));
	}

	/* One link falls, or two, and comes back. */
	void disturb()
	{
		unsigned one = below(kHosts), two = (one + 1 + below(kHosts - 1)) % kHosts;
		bool both = below(5) == 0;
		set_link(one, false);
		pass(is_long() ? 100 + below(700) : below(200));
		if (both) {
			set_link(two, false);
			pass(is_long() ? 100 + below(1500) : 1000);
			set_link(two, true);
		}
		set_link(one, true);
		if (!until([&] { return fabric.links_up(); }))
			fail(__FILE__, __LINE__, "links to come up");
		{
			std::lock_guard<std::mutex> guard(lock);
			down = 0;
		}
		falls += 1 + both;
		pass(below(is_long() ? 500 : 100));
	}

	void end()
	{
		quit() = 1;
		for (auto &flow : flows)
			for (auto &end : flow.ends)
				EXPECT_EQ(0, end.wait(60));
		stop_recording();
		expect_idle(fabric, idle);
		uint64_t messages = 0, generations = 0;
		for (unsigned f = 0; f < count; f++) {
			messages += at(f, TAKEN);
			generations += at(f, GENERATIONS);
			EXPECT_GT(at(f, TAKEN), 0u) << "of flow " << f;
		}
		printf("%u flows, %u falls of links, %" PRIu64 " messages over %" PRIu64
		       " connections; longest standstill of a flow with a path %.2f s, over 1 s: "
		       "%u, longest that counts %.2f s; longest call to switch a link %.0f ms, mean %.0f ms\n",
		       count, falls, messages, generations, static_cast<double>(longest) / 1e9,
		       stalls, static_cast<double>(longest_counted) / 1e9,
		       static_cast<double>(longest_switch) / 1e6,
		       static_cast<double>(switching) / 1e6 / switches);
	}

	int64_t longest = 0, longest_counted = 0, longest_switch = 0;

private:
	struct Flow {
		std::array<Process, 2> ends;
		std::string takes;
		uint64_t taken = 0;
		int64_t since = 0, checked_at = 0;
		int64_t counted = 0; /* the part of the time since then that counts against it */
	};

	unsigned below(unsigned n) { return static_cast<unsigned>(random.below(n)); }

	void start(unsigned f)
	{
		const char *given = getenv("CLUSTER_YIELD_TAKES");
		Flow &flow = flows[f];
		flow.takes = given ? given : is_long() || f / 2 % 2 ? "yield" : "own";
		at(f, HOST + OUT) = below(kHosts);
		at(f, HOST + IN) = (at(f, HOST + OUT) + 2 + below(kHosts - 3)) % kHosts;
		Env env{ { "VIADUCT_LOG", "error" } };
		if (flow.takes != "own")
			env["VIADUCT_WAIT"] = flow.takes;
		flow.since = flow.checked_at = now_ns();
		for (unsigned side : { IN, OUT }) {
			flow.ends[side] =
				role("end", { std::to_string(f), std::to_string(side), flow.takes },
				     env);
			recorder.add(flow.ends[side].pid(),
				     text("flow%u %s", f, side == OUT ? "out" : "in"), kHosts, f);
		}
	}

	/* Link i joins hosts i and i+1. */
	void set_link(unsigned link, bool up)
	{
		if (!up) {
			std::lock_guard<std::mutex> guard(lock);
			down |= 1u << link;
		}
		int64_t began = now_ns();
		if (up || below(2) == 0)
			fabric.link(link, "right", up);
		fabric.link((link + 1) % kHosts, "left", up);
		int64_t took = now_ns() - began;
		switching += took;
		switches++;
		longest_switch = std::max(longest_switch, took);
		if (took > kSecond / 2)
			printf("%.1f: link %u %s took %.0f ms\n%s", seconds(), link,
			       up ? "up" : "down", static_cast<double>(took) / 1e6,
			       recorder.account(began,
						[&](const Thread &t) {
							return t.host == link ||
							       t.host == (link + 1) % kHosts;
						})
				       .c_str());
	}

	void pass(unsigned ms)
	{
		until(
			[&] {
				for (unsigned f = 0; f < count; f++)
					for (auto &end : flows[f].ends)
						NEED(!end.ended());
				return false;
			},
			ms);
	}

	double seconds() const { return static_cast<double>(now_ns() - begun) / 1e9; }

	bool is_path(unsigned from, unsigned to) const
	{
		for (unsigned host = from; host != to; host = (host + 1) % kHosts)
			if (down & 1u << host)
				return false;
		return true;
	}

	bool has_path(unsigned f) const
	{
		unsigned a = static_cast<unsigned>(at(f, HOST + OUT));
		unsigned b = static_cast<unsigned>(at(f, HOST + IN));
		return is_path(a, b) || is_path(b, a);
	}

	void record()
	{
		std::unique_lock<std::mutex> guard(lock);
		while (!changed.wait_for(guard, std::chrono::nanoseconds(kSampleNs),
					 [this] { return stop; })) {
			recorder.sample(~down & 0xff);
			double share = recorder.shut_out() ? 0 : recorder.share();
			for (unsigned f = 0; f < count; f++)
				watch(f, share);
		}
	}

	void watch(unsigned f, double share)
	{
		Flow &flow = flows[f];
		uint64_t taken = at(f, TAKEN);
		int64_t now = now_ns(), still = now - flow.since;
		if (!recorder.held(f) && (flow.takes != "own" || !recorder.starved(f)))
			flow.counted += static_cast<int64_t>(
				static_cast<double>(
					std::min(now - flow.checked_at, 2 * kSampleNs)) *
				share);
		flow.checked_at = now;
		if (taken != 0 && has_path(f)) {
			longest = std::max(longest, still);
			longest_counted = std::max(longest_counted, flow.counted);
		}
		if (taken == flow.taken && has_path(f))
			return;
		if (taken != 0 && has_path(f) && still > kSecond)
			print_stall(f, still);
		flow.taken = taken;
		flow.since = now;
		flow.counted = 0;
	}

	void print_stall(unsigned f, int64_t still)
	{
		const Flow &flow = flows[f];
		stalls++;
		printf("%.1f: flow %u (%s), host %u to host %u, stood still for %.2f s, of which "
		       "%.2f count\n%s",
		       seconds(), f, flow.takes.c_str(), static_cast<unsigned>(at(f, HOST + OUT)),
		       static_cast<unsigned>(at(f, HOST + IN)), static_cast<double>(still) / 1e9,
		       static_cast<double>(flow.counted) / 1e9,
		       recorder.account(flow.since,
					[&](const Thread &t) {
						return t.flow == f || t.host < kHosts;
					})
			       .c_str());
		fflush(stdout);
	}

	void stop_recording()
	{
		if (!awake.joinable())
			return;
		{
			std::lock_guard<std::mutex> guard(lock);
			stop = true;
		}
		changed.notify_one();
		awake.join();
	}

	Fabric fabric{ kHosts };
	const std::vector<uint64_t> idle = windows(fabric);
	const int64_t begun = now_ns();
	Random random;
	Recorder recorder;
	unsigned count = 0, falls = 0, stalls = 0, switches = 0;
	int64_t switching = 0;
	std::vector<Flow> flows;
	std::mutex lock; /* protects what record() reads */
	unsigned down = 0;
	std::condition_variable changed;
	bool stop = false;
	std::thread awake;
};

TEST(Yield, FlowsOverRelaysGoOn)
{
	constexpr unsigned kQuick = 8;
	const char *given = getenv("CLUSTER_YIELD_SECONDS");
	unsigned seconds = given ? static_cast<unsigned>(atoi(given)) : stress() ? 600 : 0;
	/* The quick run finds flows that stand still for ever, or for as long as a time limit lasts. */
	int64_t most = (is_long() ? 1 : sanitized() ? 16 : 4) * kSecond;
	Await awaited("the run", seconds + 180);
	board_clear();
	Trial run;
	run.wait_connected();
	if (seconds == 0) {
		for (unsigned i = 0; i < kQuick; i++)
			run.disturb();
	} else {
		for (int64_t end = now_ns() + seconds * kSecond; now_ns() < end;)
			run.disturb();
	}
	run.end();
	EXPECT_LE(run.longest_counted, most);
	EXPECT_LT(run.longest_switch, most);
}
