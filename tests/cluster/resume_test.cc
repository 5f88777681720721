/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reliable connections whose paths are lost while they carry traffic.  While there is another path
 * only the counters of the fabric show it: every message arrives once, complete and in order, and
 * every descriptor succeeds.
 */
#include "flow.h"

#include <csignal>
#include <cstdio>
#include <memory>
#include <utility>

#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

constexpr size_t kMax = 80u << 10, kWindow = 16; /* messages under way */
constexpr unsigned kFlows = 6;

enum { TAKEN, DONE, ADDRESS, HANDLE, LIMIT, LEFT, FLOW_CELLS };
static std::atomic<uint64_t> &flow_cell(unsigned flow, unsigned what)
{
	return cell(64 + flow * FLOW_CELLS + what);
}

/* Set when the flows shall end; each then tells its LIMIT. */
static std::atomic<uint64_t> &enough()
{
	return cell(8);
}

/* ---- messages: kind and length follow from the number -------------------------------------------- */

static Kind kind_of(uint64_t number)
{
	static const Kind kinds[] = { SEND, SEND, SEND, WRITE_IMM, SEND, WRITE_IMM, READ, SEND };
	return kinds[mix(number) % 8];
}

/* Mostly short, some of several fragments. */
static size_t length_of(uint64_t number)
{
	uint64_t x = mix(number + 77);
	return x % 4 == 0 ? 1 + x / 4 % kMax : 1 + x / 4 % 200;
}

static VIP_RELIABILITY_LEVEL level(unsigned flow)
{
	return flow % 2 ? VIP_SERVICE_RELIABLE_RECEPTION : VIP_SERVICE_RELIABLE_DELIVERY;
}

/* ---- one end sends, writes and reads ------------------------------------------------------------- */

/* FLOW, OWN HOST, PEER HOST */
ROLE(flow_out)
{
	Await awaited("a flow out", stress() ? 900 : 150);
	unsigned flow = static_cast<unsigned>(atoi(args[0].c_str()));
	unsigned peer = static_cast<unsigned>(atoi(args[2].c_str()));
	uint64_t limit = UINT64_MAX, posted = 0, done = 0;
	Nic nic("host" + args[1]);
	Slab slab(nic, kWindow, kMax, true);
	Vi vi(nic, attrs(level(flow), 1u << 17, true));
	NEED_RC(VIP_SUCCESS, request(nic, vi, peer, text("flow%u", flow)));
	while (done < limit) {
		if (limit == UINT64_MAX && enough())
			flow_cell(flow, LIMIT) = limit = posted;
		if (posted < limit && posted - done < kWindow &&
		    posted - flow_cell(flow, TAKEN) < kWindow) {
			size_t i = posted % kWindow, length = length_of(posted);
			uint64_t place = flow_cell(flow, ADDRESS) + i * kMax;
			VIP_MEM_HANDLE h = static_cast<VIP_MEM_HANDLE>(flow_cell(flow, HANDLE));
			VIP_DESCRIPTOR *d =
				fill_message(slab, i, kind_of(posted), posted, length, place, h);
			post_send(vi, slab, d);
			posted++;
			continue;
		}
		VIP_DESCRIPTOR *d = nullptr;
		VIP_RETURN rc = posted == done ? VIP_NOT_DONE : VipSendDone(vi, &d);
		if (rc == VIP_NOT_DONE) {
			rest();
			continue;
		}
		if (rc != VIP_SUCCESS)
			fail(__FILE__, __LINE__,
			     text("message %lu of kind %d to succeed, found %d, status %x",
				  static_cast<unsigned long>(done), kind_of(done), rc,
				  d ? d->CS.Status : 0));
		NEED(slab.index(d) == done % kWindow);
		if (kind_of(done) == READ)
			NEED(holds(slab.data(done % kWindow), done, length_of(done)));
		flow_cell(flow, DONE) = ++done;
	}
	NEED(until([&] { return flow_cell(flow, TAKEN) == limit; }));
	NEED(nic.count(VIP_ERROR_CONN_LOST) == 0);
	NEED(vi.state() == VIP_STATE_CONNECTED);
	flow_cell(flow, LEFT) = 1;
}

/* ---- the other end receives, and has memory to write to and to read from -------------------------- */

ROLE(flow_in)
{
	Await awaited("a flow in", stress() ? 900 : 150);
	unsigned flow = static_cast<unsigned>(atoi(args[0].c_str()));
	Nic nic("host" + args[2]);
	Slab slab(nic, 2 * kWindow, kMax, true), memory(nic, kWindow, kMax, true);
	Vi vi(nic, attrs(level(flow), 1u << 17, true));
	for (size_t i = 0; i < 2 * kWindow; i++)
		post_recv(vi, slab, slab.fill(i, kMax));
	flow_cell(flow, ADDRESS) = reinterpret_cast<uintptr_t>(memory.data(0));
	flow_cell(flow, HANDLE) = memory.h;
	/* The content for a read is stored before the peer may use its number. */
	auto prepare = [&](uint64_t number) {
		if (kind_of(number) == READ)
			put(memory.data(number % kWindow), number, length_of(number));
	};
	for (uint64_t number = 0; number < kWindow; number++)
		prepare(number);
	NEED_RC(VIP_SUCCESS, serve(nic, vi, text("flow%u", flow)));
	for (uint64_t number = 0;; number++) {
		VIP_DESCRIPTOR *d = nullptr;
		VIP_RETURN rc = VIP_NOT_DONE;
		NEED(until([&] {
			if (flow_cell(flow, LIMIT) == number)
				return true;
			if (kind_of(number) == READ)
				return flow_cell(flow, DONE) > number;
			rc = VipRecvDone(vi, &d);
			if (rc == VIP_NOT_DONE)
				rest();
			return rc != VIP_NOT_DONE;
		}));
		/* The other end ends when it sees that the last one is taken. */
		if (flow_cell(flow, LIMIT) == number)
			break;
		if (kind_of(number) != READ) {
			NEED_RC(VIP_SUCCESS, rc);
			bool written = kind_of(number) == WRITE_IMM;
			NEED(d->CS.Length == length_of(number));
			NEED(holds(written ? memory.data(number % kWindow)
					   : slab.data(slab.index(d)),
				   number, length_of(number)));
			if (written)
				NEED(d->CS.ImmediateData == static_cast<VIP_UINT32>(number));
			post_recv(vi, slab, slab.fill(slab.index(d), kMax));
		}
		prepare(number + kWindow);
		flow_cell(flow, TAKEN) = number + 1;
	}
	NEED(until([&] { return flow_cell(flow, LEFT) == 1; }));
}

/* ---- fabrics that fall apart ---------------------------------------------------------------------- */

class Flows {
public:
	using Pairs = std::vector<std::pair<unsigned, unsigned>>;

	explicit Flows(const Pairs &pairs)
	{
		NEED(pairs.size() == kFlows);
		board_clear();
		for (unsigned f = 0; f < kFlows; f++) {
			flow_cell(f, LIMIT) = UINT64_MAX;
			Args args = { std::to_string(f), std::to_string(pairs[f].first),
				      std::to_string(pairs[f].second) };
			ends.push_back(role("flow_in", args));
			ends.push_back(role("flow_out", args));
		}
		advance(1);
	}

	/* Returns when each flow has moved on by so much. */
	void advance(uint64_t by)
	{
		std::vector<uint64_t> before;
		for (unsigned f = 0; f < kFlows; f++)
			before.push_back(flow_cell(f, TAKEN));
		NEED(until(
			[&] {
				for (unsigned f = 0; f < kFlows; f++)
					if (flow_cell(f, TAKEN) < before[f] + by)
						return false;
				return true;
			},
			kSeconds * 1000));
	}

	/* Returns how many messages came in all. */
	uint64_t end()
	{
		uint64_t sum = 0;
		enough() = 1;
		for (auto &end : ends)
			EXPECT_EQ(0, end.wait(120));
		for (unsigned f = 0; f < kFlows; f++)
			sum += flow_cell(f, TAKEN);
		return sum;
	}

private:
	std::vector<Process> ends;
};

static void links_fall(const Args &agent_args, uint64_t falls)
{
	const unsigned hosts = 4;
	Await awaited("links that fall", stress() ? 3000 : 180);
	Fabric fabric(hosts, agent_args);
	std::vector<uint64_t> before = windows(fabric);
	Random random(5);
	/* To neighbours, and further. */
	Flows flows({ { 0, 1 }, { 1, 3 }, { 2, 1 }, { 3, 0 }, { 0, 2 }, { 1, 0 } });
	for (uint64_t i = 0; i < falls; i++) {
		unsigned host = static_cast<unsigned>(random.below(hosts));
		std::string port = random.below(2) ? "left" : "right";
		fabric.link(host, port, false);
		flows.advance(random.below(60));
		fabric.link(host, port, true);
		fabric.await_links();
		flows.advance(random.below(120));
	}
	uint64_t messages = flows.end();
	printf("%u flows, %lu messages, %lu falls of links\n", kFlows,
	       static_cast<unsigned long>(messages), static_cast<unsigned long>(falls));
	expect_idle(fabric, before);
}

TEST(Resume, LinksFallUnderTraffic)
{
	links_fall({}, scaled(20, 2000));
}

TEST(Resume, LinksFallUnderTrafficOnStrictPorts)
{
	links_fall({ "--port", "emu+strict" }, scaled(10, 500));
}

/* ---- many VIs on one completion queue, which watches them ------------------------------------------ */

namespace {

constexpr unsigned kMany = 12;
constexpr size_t kShort = 1000, kEach = 4; /* messages under way on each VI */

/* kMany VIs of one process, each with its own slab; both queues are on one completion queue. */
struct Many {
	explicit Many(Nic &nic)
	{
		NEED_RC(VIP_SUCCESS, VipCreateCQ(nic, 4096, &cq));
		for (unsigned i = 0; i < kMany; i++) {
			slabs.push_back(std::make_unique<Slab>(nic, 2 * kEach, kShort));
			vis.push_back(std::make_unique<Vi>(nic, attrs(level(i)), cq, cq));
			NEED_RC(VIP_SUCCESS, VipxSetViContext(*vis[i], &numbers[i]));
		}
	}
	~Many()
	{
		vis.clear();
		NEED_RC(VIP_SUCCESS, VipDestroyCQ(cq));
	}
	/* Completions without error, with the number of the VI; by calls for one and by those for many. */
	template <typename Taken> void take(const Taken &taken)
	{
		VIPX_COMPLETION some[8] = {};
		VIP_ULONG count = 0;

		some[0].Size = sizeof(some[0]);
		if (VipxCQTake(cq, some, 1 + calls++ % 8, &count) == VIP_NOT_DONE)
			rest();
		for (VIP_ULONG i = 0; i < count; i++) {
			NEED((some[i].Status & VIP_STATUS_ERROR_MASK) == 0);
			taken(static_cast<unsigned>(static_cast<char *>(some[i].Context) - numbers),
			      some[i].DescriptorPtr);
		}
	}
	VIP_CQ_HANDLE cq = nullptr;
	char numbers[kMany];
	unsigned calls = 0;
	std::vector<std::unique_ptr<Slab>> slabs;
	std::vector<std::unique_ptr<Vi>> vis;
};

size_t short_length(uint64_t number)
{
	return 1 + mix(number) % kShort;
}

} // namespace

/* OWN HOST, PEER HOST */
ROLE(many_out)
{
	Await awaited("many flows out", 150);
	Nic nic("host" + args[0]);
	Many many(nic);
	uint64_t posted[kMany] = {}, done[kMany] = {};
	for (unsigned i = 0; i < kMany; i++)
		NEED_RC(VIP_SUCCESS,
			request(nic, *many.vis[i], static_cast<unsigned>(atoi(args[1].c_str())),
				text("many%u", i)));
	for (unsigned ended = 0; ended < kMany;) {
		ended = 0;
		for (unsigned i = 0; i < kMany; i++) {
			if (enough() && flow_cell(i, LIMIT) == UINT64_MAX)
				flow_cell(i, LIMIT) = posted[i];
			if (flow_cell(i, LIMIT) == posted[i]) {
				ended += done[i] == posted[i];
				continue;
			}
			if (posted[i] - done[i] == kEach ||
			    posted[i] - flow_cell(i, TAKEN) >= kEach)
				continue;
			post_send(*many.vis[i], *many.slabs[i],
				  fill_message(*many.slabs[i], posted[i] % kEach, SEND, posted[i],
					       short_length(posted[i]), 0, 0));
			posted[i]++;
		}
		many.take([&](unsigned i, VIP_DESCRIPTOR *d) {
			NEED(many.slabs[i]->index(d) == done[i] % kEach);
			done[i]++;
		});
	}
	for (unsigned i = 0; i < kMany; i++)
		NEED(until([&] { return flow_cell(i, TAKEN) == posted[i]; }));
	NEED(nic.count(VIP_ERROR_CONN_LOST) == 0);
	flow_cell(0, LEFT) = 1;
}

/* OWN HOST */
ROLE(many_in)
{
	Await awaited("many flows in", 150);
	Nic nic("host" + args[0]);
	Many many(nic);
	auto go_on = [&](unsigned i) { return flow_cell(i, TAKEN) < flow_cell(i, LIMIT); };
	for (unsigned i = 0; i < kMany; i++) {
		for (size_t k = 0; k < 2 * kEach; k++)
			post_recv(*many.vis[i], *many.slabs[i], many.slabs[i]->fill(k, kShort));
		NEED_RC(VIP_SUCCESS, serve(nic, *many.vis[i], text("many%u", i)));
	}
	for (unsigned i = 0; i < kMany;) {
		many.take([&](unsigned k, VIP_DESCRIPTOR *d) {
			uint64_t number = flow_cell(k, TAKEN);
			Slab &slab = *many.slabs[k];

			NEED(d->CS.Length == short_length(number));
			NEED(holds(slab.data(slab.index(d)), number, d->CS.Length));
			post_recv(*many.vis[k], slab, slab.fill(slab.index(d), kShort));
			flow_cell(k, TAKEN) = number + 1;
		});
		for (i = 0; i < kMany && !go_on(i); i++)
			;
	}
	NEED(until([&] { return flow_cell(0, LEFT) == 1; }));
}

/* Slices are unmapped, and others mapped, while the completion queues of both ends watch words in them. */
TEST(Resume, ManyVIsOfOneCompletionQueue)
{
	const unsigned hosts = 4;
	Await awaited("many VIs whose links fall", 180);
	Fabric fabric(hosts);
	std::vector<uint64_t> before = windows(fabric);
	uint64_t falls = scaled(12, 500), messages = 0;
	auto advance = [&](uint64_t by) {
		for (unsigned i = 0; i < kMany; i++) {
			uint64_t past = flow_cell(i, TAKEN) + by;
			NEED(until([&] { return flow_cell(i, TAKEN) >= past; }, kSeconds * 1000));
		}
	};
	board_clear();
	for (unsigned i = 0; i < kMany; i++)
		flow_cell(i, LIMIT) = UINT64_MAX;
	Process in = role("many_in", { "0" }), out = role("many_out", { "1", "0" });
	advance(10);
	for (uint64_t i = 0; i < falls; i++) {
		/* The direct path, then the path through the other hosts. */
		fabric.link(i % 2 ? 2 : 0, "right", false);
		advance(i % 3 * 10);
		fabric.link(i % 2 ? 2 : 0, "right", true);
		fabric.await_links();
		advance(i % 5 * 10);
	}
	enough() = 1;
	EXPECT_EQ(0, out.wait(120));
	EXPECT_EQ(0, in.wait(120));
	for (unsigned i = 0; i < kMany; i++)
		messages += flow_cell(i, TAKEN);
	printf("%u VIs, %lu messages, %lu falls of links\n", kMany,
	       static_cast<unsigned long>(messages), static_cast<unsigned long>(falls));
	expect_idle(fabric, before);
}

/* A host that only relays dies, and its successor takes its place. */
TEST(Resume, RelaysDieUnderTraffic)
{
	const unsigned hosts = 5;
	Await awaited("relays that die", stress() ? 3000 : 180);
	Fabric fabric(hosts);
	std::vector<uint64_t> before = windows(fabric);
	/* All flows are between hosts 0, 1 and 3: the hosts between them may die, one at a time. */
	Flows flows({ { 0, 1 }, { 1, 0 }, { 1, 3 }, { 3, 1 }, { 0, 3 }, { 3, 0 } });
	uint64_t deaths = scaled(10, 500);
	for (uint64_t i = 0; i < deaths; i++) {
		unsigned victim = i % 2 ? 2 : 4;
		fabric.kill(victim);
		flows.advance(40);
		fabric.restart(victim);
		fabric.await_links();
		flows.advance(100);
	}
	uint64_t messages = flows.end();
	printf("%u flows, %lu messages, %lu deaths of relays\n", kFlows,
	       static_cast<unsigned long>(messages), static_cast<unsigned long>(deaths));
	expect_idle(fabric, before);
}

/* Both ends learn when there is no path left, and a host that comes back is connected to again. */
TEST(Resume, NoPathLeft)
{
	Await awaited("hosts that are cut off", 100);
	Fabric fabric(4);
	std::vector<uint64_t> before = windows(fabric);
	for (unsigned round = 0; round < scaled(4, 40); round++) {
		unsigned far = 1 + round % 2;
		Nic a("host0"), b(text("host%u", far));
		Vi va(a, attrs(level(round))), vb(b, attrs(level(round)));
		NEED_RC(VIP_SUCCESS, join(a, va, b, vb, text("cut%u", round)));
		int64_t at = now_ns();
		fabric.link(0, "left", false);
		fabric.link(0, "right", false);
		EXPECT_TRUE(a.event(VIP_ERROR_CONN_LOST, va));
		EXPECT_TRUE(b.event(VIP_ERROR_CONN_LOST, vb));
		printf("both ends of %u hops knew after %.0f ms\n", far,
		       static_cast<double>(now_ns() - at) / 1e6);
		EXPECT_EQ(VIP_STATE_ERROR, va.state());
		EXPECT_EQ(VIP_STATE_ERROR, vb.state());
		fabric.link(0, "left", true);
		fabric.link(0, "right", true);
		fabric.await_links();
	}
	expect_idle(fabric, before);
}

/* ---- the agent of an end is replaced -------------------------------------------------------------- */

/* The file that agents log to; it has no name and ends with the program. */
class Log {
public:
	Log() : file(tmpfile()) { NEED(file != nullptr); }
	~Log() { fclose(file); }
	Log(const Log &) = delete;
	Env env() const
	{
		std::string path = text("/proc/%d/fd/%d", getpid(), fileno(file));
		return { { "VIADUCT_LOG", "warn,ag=info" }, { "VIADUCT_LOG_FILE", path } };
	}
	bool has(const std::string &line) const
	{
		std::string all(static_cast<size_t>(lseek(fileno(file), 0, SEEK_END)), ' ');
		ssize_t n = pread(fileno(file), &all[0], all.size(), 0);
		return n > 0 && all.find(line) != std::string::npos;
	}

private:
	FILE *file;
};

/*
 * The agent of one end is killed, and another takes its place at once: the end that is left is told
 * because the new agent does not know the connection, not because of a time-out.  An agent that
 * takes longer to begin than ends wait for a path is killed once more.
 */
static void replaced(unsigned far, unsigned victim)
{
	Await awaited("an agent that is replaced", 180);
	Log log;
	Fabric fabric(4, {}, 0, log.env());
	std::vector<uint64_t> before = windows(fabric);
	std::string line = text("to host %u is lost: its other end is gone", victim);
	for (unsigned round = 0; round < 20 && !log.has(line); round++) {
		Nic a("host0"), b(text("host%u", far));
		Vi va(a, attrs(level(round))), vb(b, attrs(level(round)));
		NEED_RC(VIP_SUCCESS, join(a, va, b, vb, text("replaced%u", round)));
		int64_t at = now_ns();
		fabric.kill(victim);
		fabric.restart(victim);
		EXPECT_TRUE(a.event(VIP_ERROR_CONN_LOST, va));
		EXPECT_TRUE(b.event(VIP_ERROR_CONN_LOST, vb));
		printf("both ends knew after %.0f ms\n", static_cast<double>(now_ns() - at) / 1e6);
		EXPECT_EQ(VIP_STATE_ERROR, va.state());
		EXPECT_EQ(VIP_STATE_ERROR, vb.state());
		fabric.await_links();
	}
	EXPECT_TRUE(log.has(line)) << line;
	expect_idle(fabric, before);
}

/* The peer with the higher address asks for the connection, and for its continuation. */
TEST(Resume, TheAgentOfANeighbourThatAskedIsReplaced)
{
	replaced(1, 1);
}

TEST(Resume, TheAgentOfAFarEndThatAskedIsReplaced)
{
	replaced(2, 2);
}

TEST(Resume, TheAgentOfANeighbourThatWasAskedIsReplaced)
{
	replaced(1, 0);
}

TEST(Resume, TheAgentOfAFarEndThatWasAskedIsReplaced)
{
	replaced(2, 0);
}

/* ---- full buffers --------------------------------------------------------------------------------- */

constexpr size_t kFill = 300, kFillBytes = 3000;

/* NUMBER, OWN HOST, PEER HOST */
ROLE(fill_out)
{
	Await awaited("a full sender", 150);
	unsigned flow = static_cast<unsigned>(atoi(args[0].c_str()));
	Nic nic("host" + args[1]);
	Slab slab(nic, kFill, kFillBytes);
	Vi vi(nic, attrs(VIP_SERVICE_RELIABLE_RECEPTION));
	NEED_RC(VIP_SUCCESS, request(nic, vi, static_cast<unsigned>(atoi(args[2].c_str())),
				     text("fill%u", flow)));
	NEED(until([] { return cell(1) != 0; }));
	for (size_t i = 0; i < kFill; i++) {
		memcpy(slab.data(i), pattern(i + flow), kFillBytes);
		post_send(vi, slab, slab.fill(i, kFillBytes));
	}
	NEED(until([&] { return nic.counters(vi).Stalls > 0; }));
	cell(2)++;
	for (size_t i = 0; i < kFill; i++)
		sent(vi);
	cell(3)++;
	NEED(until([] { return cell(4) != 0; }));
}

ROLE(fill_in)
{
	Await awaited("a stopped receiver", 150);
	unsigned flow = static_cast<unsigned>(atoi(args[0].c_str()));
	Nic nic("host" + args[2]);
	Slab slab(nic, kFill, kFillBytes);
	Vi vi(nic, attrs(VIP_SERVICE_RELIABLE_RECEPTION));
	for (size_t i = 0; i < kFill; i++)
		post_recv(vi, slab, slab.fill(i, kFillBytes));
	NEED_RC(VIP_SUCCESS, serve(nic, vi, text("fill%u", flow)));
	cell(0)++;
	raise(SIGSTOP);
	for (size_t i = 0; i < kFill; i++) {
		VIP_DESCRIPTOR *d = received(vi);
		NEED(slab.index(d) == i && d->CS.Length == kFillBytes);
		NEED(memcmp(slab.data(i), pattern(i + flow), kFillBytes) == 0);
	}
	cell(3)++;
	NEED(until([] { return cell(4) != 0; }));
}

/*
 * Every host sends to the hosts two and three further on, both ways round, and none of these takes
 * anything: all bypass buffers of the ring fill.  Then they do, and all of it arrives.
 */
TEST(Resume, FullBuffersAllRoundDrain)
{
	const unsigned hosts = 5, flows = 2 * hosts;
	Await awaited("full buffers", 180);
	board_clear();
	Fabric fabric(hosts);
	std::vector<uint64_t> before = windows(fabric);
	std::vector<Process> ins, outs;
	for (unsigned f = 0; f < flows; f++) {
		Args args = { std::to_string(f), std::to_string(f % hosts),
			      std::to_string((f % hosts + 2 + f / hosts) % hosts) };
		ins.push_back(role("fill_in", args));
		outs.push_back(role("fill_out", args));
	}
	NEED(until([] { return cell(0) == flows; }, 60000));
	cell(1) = 1;
	NEED(until([] { return cell(2) == flows; }, 60000));
	EXPECT_EQ(0u, cell(3)) << "somebody was done, though nobody took anything";
	for (auto &in : ins)
		in.kill(SIGCONT);
	NEED(until([] { return cell(3) == 2 * flows; }, 60000));
	cell(4) = 1;
	for (auto &end : ins)
		EXPECT_EQ(0, end.wait());
	for (auto &end : outs)
		EXPECT_EQ(0, end.wait());
	expect_idle(fabric, before);
}
