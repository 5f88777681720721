/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Window memory that peers store into, when links, agents and processes go away under the stores:
 * no write is reported as done that was not, nobody waits for a dead peer, and nothing is left.
 */
#include "clu.h"

#include <thread>

#include <signal.h>

#include <gtest/gtest.h>

using namespace clu;

namespace {

constexpr size_t kWindow = 1u << 16;
constexpr int64_t kPrompt = 1500000000; /* shorter than the wait for a slow peer */

struct Window {
	explicit Window(Nic &n) : nic(n) { set(true, true); }
	~Window() { end(); }
	Window(const Window &) = delete;
	void set(bool open, bool first = false)
	{
		VIP_MEM_ATTRIBUTES a = { nullptr, open, VIP_FALSE };
		VIP_PVOID at = p;
		if (first)
			NEED_RC(VIP_SUCCESS, VipxAllocMem(nic, kWindow, &a, &at, &h));
		else
			NEED_RC(VIP_SUCCESS, VipSetMemAttributes(nic, at, h, &a));
		p = static_cast<uint64_t *>(at);
	}
	void end()
	{
		if (p)
			NEED_RC(VIP_SUCCESS, VipxFreeMem(nic, p, h));
		p = nullptr;
	}
	uint64_t word() const { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
	Nic &nic;
	uint64_t *p = nullptr;
	VIP_MEM_HANDLE h = 0;
};

/* Writes a number that grows into the first word of the memory at `address`. */
struct Storer {
	Storer(Nic &n, Vi &v, uint64_t at, VIP_MEM_HANDLE h)
	    : nic(n), vi(v), slab(n, 1, 8), address(at), handle(h)
	{
	}
	/* Was it written?  `direct`: without a slot. */
	bool next()
	{
		uint64_t slots = nic.counters(vi).SlotsSent;
		VIP_DESCRIPTOR *d = slab.fill_rdma(0, 8, VIP_CONTROL_OP_RDMAWRITE, address, handle);
		tried++;
		memcpy(slab.data(0), &tried, sizeof(tried));
		post_send(vi, slab, d);
		VIP_RETURN rc = VIP_NOT_DONE;
		NEED(until([&] { return (rc = VipSendDone(vi, &d)) != VIP_NOT_DONE; }));
		direct = nic.counters(vi).SlotsSent == slots;
		if (rc != VIP_SUCCESS)
			return false;
		good = tried;
		return true;
	}
	void warm()
	{
		NEED(until([&] { return next() && direct; }));
	}
	Nic &nic;
	Vi &vi;
	Slab slab;
	uint64_t address;
	VIP_MEM_HANDLE handle;
	uint64_t tried = 0, good = 0;
	bool direct = false;
};

VIP_VI_ATTRIBUTES storing(VIP_RELIABILITY_LEVEL level)
{
	return attrs(level, 1u << 17, true);
}

/* The nanoseconds that `what` takes, less the time that this process stood still. */
int64_t took(const std::function<void()> &what)
{
	Standstill::Record record;
	Standstill still(record);
	int64_t from = now_ns();
	what();
	return now_ns() - from - record.ns();
}

} // namespace

TEST(Window, LinkCutUnderStores)
{
	Await awaited("stores over a link that is cut", 100);
	Fabric fabric(2);
	Random random(21);
	size_t fds[2] = {};
	Nic a("host0"), b("host1");
	Window window(b);
	for (uint64_t round = 0; round < scaled(6, 60); round++) {
		Vi va(a, storing(VIP_SERVICE_RELIABLE_RECEPTION)),
			vb(b, storing(VIP_SERVICE_RELIABLE_RECEPTION));
		NEED_RC(VIP_SUCCESS, join(a, va, b, vb, text("cut%d", static_cast<int>(round))));
		Storer storer(a, va, reinterpret_cast<uintptr_t>(window.p), window.h);
		*window.p = 0;
		storer.warm();
		std::atomic<uint64_t> stored{ 0 };
		uint64_t moment = 100 + random.below(20000);
		std::thread cutter([&] {
			until([&] { return stored >= moment; });
			fabric.link(round % 2, round % 2 ? "left" : "right", false);
		});
		while (storer.next())
			stored = storer.good;
		cutter.join();
		EXPECT_GT(storer.good, moment / 2);
		EXPECT_GE(window.word(), storer.good) << "a success that is not there";
		EXPECT_LE(window.word(), storer.tried);
		EXPECT_TRUE(until([&] {
			return va.state() == VIP_STATE_ERROR && vb.state() == VIP_STATE_ERROR;
		}));
		EXPECT_TRUE(b.event(VIP_ERROR_CONN_LOST, vb));
		EXPECT_LT(took([&] { window.set(true); }), kPrompt) << "nobody holds it";
		fabric.link(round % 2, round % 2 ? "left" : "right", true);
		fabric.await_links();
		for (unsigned i = 0; i < 2; i++) {
			size_t n = quiet_fds(fabric.agent(i).pid());
			if (round == 0)
				fds[i] = n;
			EXPECT_LE(n, fds[i]) << "agent " << i << " in round " << round;
		}
	}
}

TEST(Window, AgentOfTheOwnerKilled)
{
	Await awaited("a killed agent", 60);
	Fabric fabric(2);
	Nic a("host0"), b("host1");
	Vi va(a, storing(VIP_SERVICE_RELIABLE_DELIVERY)),
		vb(b, storing(VIP_SERVICE_RELIABLE_DELIVERY));
	Window window(b);
	NEED_RC(VIP_SUCCESS, join(a, va, b, vb, "agent"));
	Storer storer(a, va, reinterpret_cast<uintptr_t>(window.p), window.h);
	storer.warm();
	fabric.agent(1).kill(SIGKILL);
	EXPECT_TRUE(b.event(VIP_ERROR_CATASTROPHIC));
	EXPECT_LT(took([&] { window.set(false); }), kPrompt);
	NEED(until([&] { return !storer.next(); }));
	EXPECT_EQ(VIP_STATE_ERROR, va.state());
	EXPECT_LT(took([&] { vb.disconnect(); }), kPrompt);
	EXPECT_LT(took([&] { window.end(); }), kPrompt);
}

/* Connects to host 1 and stores there until it is killed. */
ROLE(storer)
{
	Await awaited("a process that stores", 60);
	Nic nic("host0");
	Vi vi(nic, storing(VIP_SERVICE_RELIABLE_DELIVERY));
	NEED_RC(VIP_SUCCESS, request(nic, vi, 1, args[0]));
	Storer storer(nic, vi, std::stoull(args[1]),
		      static_cast<VIP_MEM_HANDLE>(std::stoul(args[2])));
	storer.warm();
	for (cell(0)++; storer.next();)
		;
}

TEST(Window, WritersKilled)
{
	const size_t count = 4;
	Await awaited("killed writers", 110);
	Fabric fabric(2);
	Nic nic("host1");
	uint64_t used[2];
	size_t fds[2];
	for (unsigned i = 0; i < 2; i++) {
		used[i] = fabric.window_used(i);
		fds[i] = quiet_fds(fabric.agent(i).pid());
	}
	for (uint64_t round = 0; round < scaled(4, 40); round++) {
		board_clear();
		Window window(nic);
		std::vector<std::unique_ptr<Vi>> vis;
		std::vector<Process> writers;
		for (size_t i = 0; i < count; i++) {
			std::string disc = text("kill%d-%zu", static_cast<int>(round), i);
			vis.push_back(
				std::make_unique<Vi>(nic, storing(VIP_SERVICE_RELIABLE_DELIVERY)));
			writers.push_back(
				role("storer",
				     { disc, std::to_string(reinterpret_cast<uintptr_t>(window.p)),
				       std::to_string(window.h) },
				     { { "VIADUCT_LOG", "error" } }));
			NEED_RC(VIP_SUCCESS, serve(nic, *vis[i], disc));
		}
		NEED(until([&] { return cell(0) == count; }));
		for (Process &writer : writers)
			writer.kill(SIGKILL);
		/* This may come at any moment while they end. */
		EXPECT_LT(took([&] {
				  if (round % 3 == 0)
					  window.set(false);
				  else if (round % 3 == 1)
					  window.end();
				  else
					  for (auto &vi : vis)
						  vi->disconnect();
			  }),
			  kPrompt);
		for (Process &writer : writers)
			EXPECT_EQ(128 + SIGKILL, writer.wait());
	}
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_TRUE(until([&] { return fabric.window_used(i) <= used[i]; }))
			<< "agent " << i << ": " << fabric.window_used(i) << ", " << used[i]
			<< " before";
		EXPECT_TRUE(until([&] { return fd_count(fabric.agent(i).pid()) <= fds[i]; }))
			<< "agent " << i << ": " << fd_count(fabric.agent(i).pid()) << ", "
			<< fds[i] << " before";
	}
}
