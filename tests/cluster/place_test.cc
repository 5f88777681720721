/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that senders store into receives of their neighbours, when links and processes go away
 * under them: every message arrives once, complete and in order, and nothing is left of processes that died.
 */
#include "flow.h"

#include <csignal>
#include <cstdio>

#include <gtest/gtest.h>

using namespace clu;

namespace {

/* Through slots each message would take two or more. */
constexpr size_t kBytes = 96u << 10, kLeast = 40000;
constexpr size_t kBatch = 8, kReceives = 16;

enum { TAKEN, POSTED, PLACED, HANDLE, ADDRESS, LIMIT, LEFT, FLOW_CELLS };
std::atomic<uint64_t> &flow_cell(unsigned flow, unsigned what)
{
	return cell(64 + flow * FLOW_CELLS + what);
}

/* Set when the flows shall end; each then tells its LIMIT. */
std::atomic<uint64_t> &enough()
{
	return cell(8);
}

VIP_RELIABILITY_LEVEL level(unsigned flow)
{
	return flow % 2 ? VIP_SERVICE_RELIABLE_RECEPTION : VIP_SERVICE_RELIABLE_DELIVERY;
}

/* The kind and the length of a message follow from its number. */
Kind kind_of(uint64_t number)
{
	uint64_t x = mix(number) % 8;
	return x == 0 ? WRITE_IMM : x < 4 ? SEND_IMM : SEND;
}

size_t length_of(uint64_t number)
{
	return kLeast + mix(number + 77) % (kBytes - kLeast);
}

struct Args3 {
	explicit Args3(const Args &args)
	    : flow(static_cast<unsigned>(atoi(args[0].c_str()))), own(args[1]),
	      peer(static_cast<unsigned>(atoi(args[2].c_str()))), breaks(args[3] == "breaks")
	{
	}
	unsigned flow;
	std::string own;
	unsigned peer;
	bool breaks; /* the peer is going to die */
};

/* ---- the sender ---------------------------------------------------------------------------------- */

class Out {
public:
	explicit Out(const Args3 &a)
	    : flow(a.flow), nic("host" + a.own), slab(nic, kBatch, kBytes),
	      vi(nic, attrs(level(flow), 1u << 17, true))
	{
		NEED_RC(VIP_SUCCESS, request(nic, vi, a.peer, text("place%u", flow)));
	}

	/* False: the connection broke. */
	bool batch()
	{
		uint64_t slots = nic.counters(vi).SlotsSent;
		size_t n = 0;
		for (; n < kBatch && may_post(); n++)
			post(number + n);
		for (size_t i = 0; i < n; i++)
			if (!one_done(number + i))
				return false;
		number += n;
		if (nic.counters(vi).SlotsSent == slots + n)
			flow_cell(flow, PLACED) += n;
		return true;
	}

	const unsigned flow;
	Nic nic;
	Slab slab;
	Vi vi;
	uint64_t number = 0;

private:
	/* Is there a receive for all of the batch?  A connection that breaks has none, but ends the wait. */
	bool may_post()
	{
		return until([&] {
			if (number + kBatch - flow_cell(flow, TAKEN) <= kReceives ||
			    vi.state() != VIP_STATE_CONNECTED)
				return true;
			rest();
			return false;
		});
	}

	void post(uint64_t which)
	{
		size_t i = which % kBatch;
		uint64_t place = flow_cell(flow, ADDRESS) + which % kReceives * kBytes;
		auto handle = static_cast<VIP_MEM_HANDLE>(flow_cell(flow, HANDLE));

		post_send(vi, slab,
			  fill_message(slab, i, kind_of(which), which, length_of(which), place,
				       handle));
		flow_cell(flow, POSTED) = which + 1;
	}

	bool one_done(uint64_t which)
	{
		VIP_DESCRIPTOR *d = nullptr;
		VIP_RETURN rc = VIP_NOT_DONE;

		NEED(until([&] { return (rc = VipSendDone(vi, &d)) != VIP_NOT_DONE; }));
		if (rc == VIP_DESCRIPTOR_ERROR)
			return false;
		NEED_RC(VIP_SUCCESS, rc);
		NEED(slab.index(d) == which % kBatch);
		/* The data is not needed any more, even if the peer has not taken the message yet. */
		memset(slab.data(which % kBatch), 0x55, length_of(which));
		return true;
	}
};

/* FLOW, OWN HOST, PEER HOST, "breaks" or "lasts" */
ROLE(place_out)
{
	Await awaited("a sender of placed messages", stress() ? 900 : 60);
	Args3 a(args);
	Out out(a);
	while (!enough() || a.breaks) {
		if (out.batch())
			continue;
		NEED(a.breaks);
		NEED(out.nic.event(VIP_ERROR_CONN_LOST, out.vi));
		NEED(out.vi.state() == VIP_STATE_ERROR);
		out.vi.disconnect();
		flow_cell(a.flow, LEFT) = 1;
		return;
	}
	flow_cell(a.flow, LIMIT) = out.number;
	NEED(until([&] { return flow_cell(a.flow, TAKEN) == out.number; }));
	NEED(out.nic.count(VIP_ERROR_CONN_LOST) == 0);
	NEED(out.vi.state() == VIP_STATE_CONNECTED);
	flow_cell(a.flow, LEFT) = 1;
}

/* ---- the receiver -------------------------------------------------------------------------------- */

class In {
public:
	explicit In(const Args3 &a)
	    : flow(a.flow), nic("host" + a.own), slab(nic, kReceives, 1),
	      vi(nic, attrs(level(flow), 1u << 17, true))
	{
		VIP_MEM_ATTRIBUTES open = { nullptr, VIP_TRUE, VIP_FALSE };
		VIP_PVOID at = nullptr;

		NEED_RC(VIP_SUCCESS, VipxAllocMem(nic, 2 * kReceives * kBytes, &open, &at, &h));
		receives = static_cast<char *>(at);
		written = receives + kReceives * kBytes;
		for (size_t i = 0; i < kReceives; i++)
			post(i);
		flow_cell(flow, ADDRESS) = reinterpret_cast<uintptr_t>(written);
		flow_cell(flow, HANDLE) = h;
		NEED_RC(VIP_SUCCESS, serve(nic, vi, text("place%u", flow)));
	}

	~In()
	{
		if (receives)
			NEED_RC(VIP_SUCCESS, VipxFreeMem(nic, receives, h));
	}

	/* False: there are no more, or the connection broke. */
	bool take()
	{
		VIP_DESCRIPTOR *d = nullptr;
		VIP_RETURN rc = VIP_NOT_DONE;

		NEED(until([&] {
			rc = VipRecvDone(vi, &d);
			return rc != VIP_NOT_DONE || flow_cell(flow, LIMIT) == number;
		}));
		if (rc != VIP_SUCCESS) {
			broken = d;
			return false;
		}
		bool sent = kind_of(number) != WRITE_IMM;
		size_t i = number % kReceives;
		NEED(slab.index(d) == i && d->CS.Length == length_of(number));
		NEED(((d->CS.Status & VIP_STATUS_IMMEDIATE) != 0) == (kind_of(number) != SEND));
		if (kind_of(number) != SEND)
			NEED(d->CS.ImmediateData == static_cast<VIP_UINT32>(number));
		NEED(holds((sent ? receives : written) + i * kBytes, number, length_of(number)));
		memset((sent ? receives : written) + i * kBytes, 0, length_of(number));
		post(i);
		flow_cell(flow, TAKEN) = ++number;
		return true;
	}

	/* All that is outstanding comes back, and after that the memory is the program's. */
	void end_broken()
	{
		size_t count = 0;

		for (VIP_DESCRIPTOR *d = broken; d != nullptr; count++) {
			NEED(slab.index(d) == (number + count) % kReceives);
			NEED((d->CS.Status & VIP_STATUS_ERROR_MASK) != 0);
			NEED_RC(VIP_DESCRIPTOR_ERROR, VipRecvDone(vi, &d));
		}
		NEED(count == kReceives);
		NEED(nic.event(VIP_ERROR_CONN_LOST, vi));
		NEED(vi.state() == VIP_STATE_ERROR);
		vi.disconnect();
		memset(receives, 7, 2 * kReceives * kBytes);
		for (size_t i = 0; i < 2 * kReceives * kBytes; i++)
			NEED(receives[i] == 7);
		NEED_RC(VIP_SUCCESS, VipxFreeMem(nic, receives, h));
		receives = nullptr;
	}

	const unsigned flow;

private:
	void post(size_t i)
	{
		VIP_DESCRIPTOR *d = slab.fill(i, kBytes);

		d->DS[0].Local.Data.Address = receives + i * kBytes;
		d->DS[0].Local.Handle = h;
		post_recv(vi, slab, d);
	}

	Nic nic;
	Slab slab;
	Vi vi;
	char *receives, *written;
	VIP_MEM_HANDLE h = 0;
	uint64_t number = 0;
	VIP_DESCRIPTOR *broken = nullptr;
};

ROLE(place_in)
{
	Await awaited("a receiver of placed messages", stress() ? 900 : 60);
	Args3 a(args);
	In in(a);
	while (in.take())
		;
	if (a.breaks)
		in.end_broken();
	else
		NEED(until([&] { return flow_cell(a.flow, LEFT) == 1; }));
}

/* ---- flows --------------------------------------------------------------------------------------- */

class Flows {
public:
	void start(unsigned from, unsigned to, bool breaks = false)
	{
		unsigned flow = static_cast<unsigned>(ins.size());
		std::string how = breaks ? "breaks" : "lasts", number = std::to_string(flow);

		flow_cell(flow, LIMIT) = UINT64_MAX;
		ins.push_back(role("place_in",
				   { number, std::to_string(to), std::to_string(from), how }, env));
		outs.push_back(role("place_out",
				    { number, std::to_string(from), std::to_string(to), how },
				    env));
	}

	/* Returns when a cell of each flow has grown by so much. */
	void advance(unsigned what, uint64_t by)
	{
		std::vector<uint64_t> before;
		for (unsigned f = 0; f < ins.size(); f++)
			before.push_back(flow_cell(f, what));
		for (unsigned f = 0; f < ins.size(); f++)
			NEED(until([&] { return flow_cell(f, what) >= before[f] + by; }));
	}

	/* Returns when each flow has messages under way and none of them was taken for a while. */
	void stand_still()
	{
		for (unsigned f = 0; f < ins.size(); f++) {
			uint64_t taken = 0, polls = 0;

			NEED(until([&] {
				rest();
				if (taken != flow_cell(f, TAKEN) || flow_cell(f, POSTED) == taken)
					polls = 0;
				taken = flow_cell(f, TAKEN);
				return ++polls == 20;
			}));
		}
	}

	void end()
	{
		enough() = 1;
		for (size_t f = 0; f < ins.size(); f++) {
			EXPECT_EQ(0, outs[f].wait());
			EXPECT_EQ(0, ins[f].wait());
		}
	}

	std::vector<Process> ins, outs;

private:
	const Env env = { { "VIADUCT_LOG", "error" } };
};

void links_fall(const Args &agent_args, uint64_t falls)
{
	const unsigned hosts = 4;
	Await awaited("links that fall", stress() ? 3000 : 120);
	board_clear();
	Fabric fabric(hosts, agent_args);
	std::vector<uint64_t> before = windows(fabric);
	Random random(31);
	uint64_t taken = 0, placed = 0;
	Flows flows;
	flows.start(0, 1);
	flows.start(2, 1);
	flows.start(3, 2);
	flows.advance(PLACED, 1);
	for (uint64_t i = 0; i < falls; i++) {
		/* Each of these links carries one of the flows. */
		static const struct {
			unsigned host;
			const char *port;
		} links[] = { { 0, "right" }, { 2, "left" }, { 3, "left" } };
		auto &link = links[random.below(3)];
		fabric.link(link.host, link.port, false);
		flows.advance(TAKEN, 1 + random.below(40));
		fabric.link(link.host, link.port, true);
		fabric.await_links();
		/* On the short path again, messages are stored again. */
		flows.advance(PLACED, 1 + random.below(40));
	}
	flows.end();
	for (unsigned f = 0; f < 3; f++) {
		taken += flow_cell(f, TAKEN);
		placed += flow_cell(f, PLACED);
	}
	printf("%lu messages, %lu of them surely placed, %lu falls of links\n",
	       static_cast<unsigned long>(taken), static_cast<unsigned long>(placed),
	       static_cast<unsigned long>(falls));
	expect_idle(fabric, before);
}

} // namespace

TEST(Place, LinksFall)
{
	links_fall({}, scaled(10, 1000));
}

TEST(Place, LinksFallOnStrictPorts)
{
	links_fall({ "--port", "emu+strict" }, scaled(5, 300));
}

/*
 * The receiver's agent takes the link down while the sender's is stopped.  So the receivers have
 * left the path when the last messages are stored and announced, and the slots, with the payload in
 * them, are published again over relays.
 */
TEST(Place, SlotsArePublishedAgainOverRelays)
{
	Await awaited("slots that are published again", stress() ? 1200 : 100);
	board_clear();
	Fabric fabric(4);
	std::vector<uint64_t> before = windows(fabric);
	Flows flows;
	flows.start(0, 1);
	flows.start(0, 1);
	for (uint64_t round = 0; round < scaled(4, 100); round++) {
		flows.advance(PLACED, 20);
		fabric.agent(0).kill(SIGSTOP);
		fabric.link(1, "left", false);
		flows.stand_still();
		fabric.agent(0).kill(SIGCONT);
		flows.advance(TAKEN, 50);
		fabric.link(1, "left", true);
		fabric.await_links();
	}
	flows.advance(PLACED, 20);
	flows.end();
	expect_idle(fabric, before);
}

/* One end of a flow is killed; another flow between the two hosts goes on. */
TEST(Place, OneEndKilled)
{
	Await awaited("killed ends", stress() ? 1200 : 100);
	Fabric fabric(2);
	Random random(32);
	std::vector<uint64_t> used = windows(fabric);
	size_t fds[2];
	for (unsigned i = 0; i < 2; i++)
		fds[i] = quiet_fds(fabric.agent(i).pid());
	for (uint64_t round = 0; round < scaled(8, 200); round++) {
		board_clear();
		Flows flows;
		if (round % 4 < 2)
			flows.start(0, 1, true);
		flows.start(1, 0);
		if (round % 4 >= 2)
			flows.start(0, 1, true);
		unsigned dying = round % 4 < 2 ? 0 : 1;
		flows.advance(PLACED, 1);
		flows.advance(TAKEN, random.below(300));
		Process &dead = round % 2 ? flows.outs[dying] : flows.ins[dying];
		Process &left = round % 2 ? flows.ins[dying] : flows.outs[dying];
		ASSERT_FALSE(dead.ended() || left.ended());
		dead.kill(SIGKILL);
		EXPECT_EQ(128 + SIGKILL, dead.wait());
		EXPECT_EQ(0, left.wait()) << "round " << round;
		uint64_t taken = flow_cell(1 - dying, TAKEN), placed = flow_cell(1 - dying, PLACED);
		EXPECT_TRUE(until([&] {
			return flow_cell(1 - dying, TAKEN) > taken + 50 &&
			       flow_cell(1 - dying, PLACED) > placed;
		})) << "the other flow stands still";
		enough() = 1;
		EXPECT_EQ(0, flows.outs[1 - dying].wait());
		EXPECT_EQ(0, flows.ins[1 - dying].wait());
		expect_idle(fabric, used);
		for (unsigned i = 0; i < 2; i++)
			EXPECT_TRUE(until([&] {
				return fabric.clients(i) == 0 &&
				       fd_count(fabric.agent(i).pid()) <= fds[i];
			})) << "agent "
			    << i << ": " << fd_count(fabric.agent(i).pid()) << " descriptors, "
			    << fds[i] << " before";
	}
}
