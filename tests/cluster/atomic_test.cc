/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations while paths are lost.  Each flow has a counter of its own and adds 1 to it: the
 * old value that an addition returns is the number of additions before it, unless one was lost or
 * executed twice.  All flows to a host also add to a common counter.
 */
#include "flow.h"

#include <cstdio>
#include <memory>

#include <gtest/gtest.h>

using namespace clu;

constexpr unsigned kFlows = 6, kHosts = 4;
constexpr size_t kUnderWay = 40; /* more than the library has under way at once */

enum { DONE, ADDRESS, HANDLE, LEFT, SUM, FLOW_CELLS };
static std::atomic<uint64_t> &flow_cell(unsigned flow, unsigned what)
{
	return cell(64 + flow * FLOW_CELLS + what);
}

static std::atomic<uint64_t> &enough()
{
	return cell(8);
}

static VIP_RELIABILITY_LEVEL level(unsigned flow)
{
	return flow % 2 ? VIP_SERVICE_RELIABLE_RECEPTION : VIP_SERVICE_RELIABLE_DELIVERY;
}

/* An atomic operation takes two descriptors of a slab; the old value is returned in its data. */
static VIP_DESCRIPTOR *add(Slab &slab, size_t i, unsigned flow, size_t word)
{
	auto *d = reinterpret_cast<VIPX_ATOMIC_DESCRIPTOR *>(slab.desc(2 * i));
	memset(d, 0, sizeof(*d));
	d->CS.Control = VIPX_CONTROL_OP_ATOMIC;
	d->CS.ImmediateData = VIPX_ATOMIC_ADD;
	d->CS.Length = d->Result.Length = 8;
	d->CS.SegCount = 3;
	d->Remote.Data.AddressBits = flow_cell(flow, ADDRESS) + 8 * word;
	d->Remote.Handle = static_cast<VIP_MEM_HANDLE>(flow_cell(flow, HANDLE));
	d->Atomic.Operand = 1;
	d->Result.Data.Address = slab.data(2 * i);
	d->Result.Handle = slab.h;
	return slab.desc(2 * i);
}

/* FLOW, OWN HOST, PEER HOST */
ROLE(count_out)
{
	Await awaited("a counting flow", stress() ? 900 : 150);
	unsigned flow = static_cast<unsigned>(atoi(args[0].c_str()));
	unsigned peer = static_cast<unsigned>(atoi(args[2].c_str()));
	Nic nic("host" + args[1]);
	Slab slab(nic, 2 * kUnderWay, 64, true);
	Vi vi(nic, attrs(level(flow), 1u << 17, true));
	uint64_t posted = 0, done = 0;
	NEED_RC(VIP_SUCCESS, request(nic, vi, peer, text("count%u", flow)));
	while (!enough() || done < posted) {
		if (!enough() && posted - done < kUnderWay) {
			post_send(vi, slab, add(slab, posted % kUnderWay, flow, posted % 2));
			posted++;
			continue;
		}
		VIP_DESCRIPTOR *d = nullptr;
		VIP_RETURN rc = VipSendDone(vi, &d);
		if (rc == VIP_NOT_DONE) {
			rest();
			continue;
		}
		NEED_RC(VIP_SUCCESS, rc);
		NEED(slab.index(d) == 2 * (done % kUnderWay));
		uint64_t old;
		memcpy(&old, slab.data(slab.index(d)), sizeof(old));
		if (done % 2 == 0 && old != done / 2)
			fail(__FILE__, __LINE__,
			     text("addition %lu to find %lu, found %lu",
				  static_cast<unsigned long>(done),
				  static_cast<unsigned long>(done / 2),
				  static_cast<unsigned long>(old)));
		flow_cell(flow, DONE) = ++done;
	}
	NEED(nic.count(VIP_ERROR_CONN_LOST) == 0);
	NEED(vi.state() == VIP_STATE_CONNECTED);
	NEED(until([&] { return flow_cell(flow, SUM) == done; }));
	flow_cell(flow, LEFT) = 1;
}

/* Provides the memory: word 0 belongs to the flow, to word 1 this host's own thread adds as well. */
ROLE(count_in)
{
	Await awaited("a counter", stress() ? 900 : 150);
	unsigned flow = static_cast<unsigned>(atoi(args[0].c_str()));
	Nic nic("host" + args[2]);
	Slab memory(nic, 2, 64, true);
	auto *word = reinterpret_cast<uint64_t *>(memory.data(0));
	uint64_t own = 0;
	Vi vi(nic, attrs(level(flow), 1u << 17, true));
	word[0] = word[1] = 0;
	flow_cell(flow, ADDRESS) = reinterpret_cast<uintptr_t>(word);
	flow_cell(flow, HANDLE) = memory.h;
	NEED_RC(VIP_SUCCESS, serve(nic, vi, text("count%u", flow)));
	while (flow_cell(flow, LEFT) == 0) {
		VIP_DESCRIPTOR *d;
		VipRecvDone(vi, &d);
		__atomic_fetch_add(&word[1], 1, __ATOMIC_RELAXED);
		own++;
		flow_cell(flow, SUM) = __atomic_load_n(&word[0], __ATOMIC_RELAXED) +
				       __atomic_load_n(&word[1], __ATOMIC_RELAXED) - own;
		rest();
	}
}

static void advance(uint64_t by)
{
	uint64_t before[kFlows];
	for (unsigned f = 0; f < kFlows; f++)
		before[f] = flow_cell(f, DONE);
	NEED(until(
		[&] {
			for (unsigned f = 0; f < kFlows; f++)
				if (flow_cell(f, DONE) < before[f] + by)
					return false;
			return true;
		},
		kSeconds * 1000));
}

static void count(const Args &agent_args, uint64_t falls)
{
	static const unsigned pairs[kFlows][2] = { { 0, 1 }, { 1, 3 }, { 2, 1 },
						   { 3, 0 }, { 0, 2 }, { 1, 0 } };
	Await awaited("links that fall", stress() ? 3000 : 180);
	Fabric fabric(kHosts, agent_args);
	std::vector<uint64_t> before = windows(fabric);
	std::vector<Process> ends;
	Random random(11);
	uint64_t sum = 0;
	board_clear();
	for (unsigned f = 0; f < kFlows; f++) {
		Args args = { std::to_string(f), std::to_string(pairs[f][0]),
			      std::to_string(pairs[f][1]) };
		ends.push_back(role("count_in", args));
		ends.push_back(role("count_out", args));
	}
	advance(1);
	for (uint64_t i = 0; i < falls; i++) {
		unsigned host = static_cast<unsigned>(random.below(kHosts));
		std::string port = random.below(2) ? "left" : "right";
		fabric.link(host, port, false);
		advance(random.below(300));
		fabric.link(host, port, true);
		fabric.await_links();
		advance(random.below(300));
	}
	enough() = 1;
	for (auto &end : ends)
		EXPECT_EQ(0, end.wait(120));
	for (unsigned f = 0; f < kFlows; f++)
		sum += flow_cell(f, DONE);
	printf("%u flows, %lu additions, %lu falls of links\n", kFlows,
	       static_cast<unsigned long>(sum), static_cast<unsigned long>(falls));
	expect_idle(fabric, before);
}

TEST(Atomic, CountsWhileLinksFall)
{
	count({}, scaled(20, 2000));
}

TEST(Atomic, CountsWhileLinksFallOnStrictPorts)
{
	count({ "--port", "emu+strict" }, scaled(10, 500));
}
