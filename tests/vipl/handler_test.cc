/* SPDX-License-Identifier: BSD-2-Clause */
/* VIPL 5.8 and 5.5: a handler may call the library, and destroy the objects that it is called for. */
#include "harness.h"

#include <atomic>

using namespace conf;

namespace {

enum Kind { ON_ERROR, ON_SEND, ON_RECV, ON_CQ, KINDS };
const char *const kKinds[] = { "the error callback", "a handler of VipSendNotify",
			       "a handler of VipRecvNotify", "a handler of VipCQNotify" };

/* A NIC handle with all objects that a handler may destroy. */
struct Ground {
	Ground(Kind k, const Level &level)
	    : kind(k), client(nic(0), vi_attrs(level.value)), arena(nic(0), nullptr, 4096)
	{
		VIP_VI_ATTRIBUTES attrs = vi_attrs(level.value);
		VIP_MEM_ATTRIBUTES ma{};
		EXPECT_RC(VIP_SUCCESS, VipOpenNic(device(1), &n));
		EXPECT_RC(VIP_SUCCESS, VipCreatePtag(n, &ptag));
		ma.Ptag = attrs.Ptag = ptag;
		memset(room, 0, sizeof(room));
		EXPECT_RC(VIP_SUCCESS, VipRegisterMem(n, room, sizeof(room), &ma, &h));
		EXPECT_RC(VIP_SUCCESS, VipCreateCQ(n, 16, &cq));
		VIP_CQ_HANDLE used = kind == ON_CQ ? cq : nullptr;
		EXPECT_RC(VIP_SUCCESS, VipCreateVi(n, &attrs, used, used, &vi));
		EXPECT_RC(VIP_SUCCESS, VipPostRecv(vi, desc(0), h));
		EXPECT_RC(VIP_SUCCESS, VipPostRecv(vi, desc(1), h));
		join();
	}
	VIP_DESCRIPTOR *desc(int i) { return reinterpret_cast<VIP_DESCRIPTOR *>(room) + i; }

	void join()
	{
		VIP_RETURN accepted = VIP_TIMEOUT, requested = VIP_NO_MATCH;
		std::string disc = unique_disc();
		std::thread waiter([&] {
			Addr here(nic(1), disc), from(nic(1), "");
			VIP_VI_ATTRIBUTES seen;
			VIP_CONN_HANDLE conn;
			accepted = VipConnectWait(n, here, kWaitMs, from, &seen, &conn);
			if (accepted == VIP_SUCCESS)
				accepted = VipConnectAccept(conn, vi);
		});
		Addr local(nic(0), "c"), remote(nic(1), disc);
		VIP_VI_ATTRIBUTES seen;
		eventually([&] {
			requested = VipConnectRequest(client, local, remote, kWaitMs, &seen);
			return requested != VIP_NO_MATCH;
		});
		waiter.join();
		EXPECT_RC(VIP_SUCCESS, accepted);
		EXPECT_RC(VIP_SUCCESS, requested);
	}

	/* Arms two handlers, if there can be two, and makes something happen for the first. */
	void provoke()
	{
		VIP_DESCRIPTOR *send;
		switch (kind) {
		case ON_ERROR:
			EXPECT_RC(VIP_SUCCESS, VipErrorCallback(n, this, on_error));
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(client));
			break;
		case ON_SEND:
			for (int i = 0; i < 2; i++)
				EXPECT_RC(VIP_SUCCESS, VipSendNotify(vi, this, on_desc));
			send = make(arena, 0, {});
			EXPECT_RC(VIP_SUCCESS, VipPostRecv(client, send, arena.mem.h));
			EXPECT_RC(VIP_SUCCESS, VipPostSend(vi, desc(2), h));
			break;
		default:
			for (int i = 0; i < 2; i++)
				EXPECT_RC(VIP_SUCCESS, kind == ON_RECV
							       ? VipRecvNotify(vi, this, on_desc)
							       : VipCQNotify(cq, this, on_cq));
			send = make(arena, 0, {});
			EXPECT_RC(VIP_SUCCESS, VipPostSend(client, send, arena.mem.h));
		}
	}

	void drain()
	{
		VIP_DESCRIPTOR *d;
		do {
			VipSendDone(vi, &d);
		} while (d);
		do {
			VipRecvDone(vi, &d);
		} while (d);
	}

	void take_away()
	{
		EXPECT_RC(VIP_SUCCESS, VipPostRecv(vi, desc(3), h));
		EXPECT_RC(VIP_SUCCESS, VipPostSend(vi, desc(4), h));
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(vi));
		drain();
		EXPECT_RC(VIP_SUCCESS, VipDestroyVi(vi));
		EXPECT_RC(VIP_SUCCESS, VipDestroyCQ(cq));
		EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(n, room, h));
		EXPECT_RC(VIP_SUCCESS, VipDestroyPtag(n, ptag));
		if (close)
			EXPECT_RC(VIP_SUCCESS, VipCloseNic(n));
	}

	static void called(void *context)
	{
		Ground *g = static_cast<Ground *>(context);
		if (g->runs++ == 0 && g->work)
			g->work(*g);
		g->over++;
	}
	static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *) { called(context); }
	static void on_desc(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR *)
	{
		called(context);
	}
	static void on_cq(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN)
	{
		called(context);
	}

	Kind kind;
	bool close = false;
	std::function<void(Ground &)> work;
	std::atomic<int> runs{ 0 }, over{ 0 };
	Vi client;
	Arena arena;
	VIP_NIC_HANDLE n = nullptr;
	VIP_VI_HANDLE vi = nullptr;
	VIP_CQ_HANDLE cq = nullptr;
	VIP_PROTECTION_HANDLE ptag = nullptr;
	VIP_MEM_HANDLE h = 0;
	alignas(64) char room[4096];
};

void no_desc(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR *) {}
void no_entry(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) {}

void use_vi(VIP_NIC_HANDLE n)
{
	VIP_VI_ATTRIBUTES attrs = vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY), seen;
	VIP_VI_STATE state;
	VIP_BOOLEAN s, r;
	VIP_DESCRIPTOR *d;
	VIP_VI_HANDLE vi;
	VIP_CONN_HANDLE conn;
	Addr here(nic(1), unique_disc()), there(nic(0), "nobody"), from(nic(1), "");
	ASSERT_RC(VIP_SUCCESS, VipCreateVi(n, &attrs, nullptr, nullptr, &vi));
	EXPECT_RC(VIP_SUCCESS, VipSetViAttributes(vi, &attrs));
	EXPECT_RC(VIP_SUCCESS, VipQueryVi(vi, &state, &seen, &s, &r));
	EXPECT_RC(VIP_TIMEOUT, VipConnectWait(n, here, 0, from, &seen, &conn));
	EXPECT_RC(VIP_SUCCESS, VipConnectPeerRequest(vi, here, there, kWaitMs));
	EXPECT_RC(VIP_NOT_DONE, VipConnectPeerDone(vi, &seen));
	EXPECT_RC(VIP_SUCCESS, VipDisconnect(vi));
	EXPECT_RC(VIP_SUCCESS, VipSendNotify(vi, nullptr, no_desc));
	EXPECT_RC(VIP_SUCCESS, VipRecvNotify(vi, nullptr, no_desc));
	EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipSendDone(vi, &d));
	EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipRecvDone(vi, &d));
	EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipSendWait(vi, 1, &d));
	EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipRecvWait(vi, 1, &d));
	EXPECT_RC(VIP_SUCCESS, VipDestroyVi(vi));
}

void use_cq(VIP_NIC_HANDLE n)
{
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN r;
	int fd = -1;
	ASSERT_RC(VIP_SUCCESS, VipCreateCQ(n, 4, &cq));
	EXPECT_RC(VIP_SUCCESS, VipResizeCQ(cq, 8));
	EXPECT_RC(VIP_NOT_DONE, VipCQDone(cq, &vi, &r));
	EXPECT_RC(VIP_TIMEOUT, VipCQWait(cq, 1, &vi, &r));
	EXPECT_RC(VIP_SUCCESS, VipxCQFd(cq, &fd));
	EXPECT_RC(VIP_SUCCESS, VipxCQArm(cq));
	EXPECT_RC(VIP_SUCCESS, VipCQNotify(cq, nullptr, no_entry));
	EXPECT_RC(VIP_SUCCESS, VipDestroyCQ(cq));
}

void use_memory(VIP_NIC_HANDLE n)
{
	static char memory[4096];
	VIP_MEM_ATTRIBUTES attrs{};
	VIP_PROTECTION_HANDLE ptag;
	VIP_MEM_HANDLE h;
	VIP_PVOID address;
	ASSERT_RC(VIP_SUCCESS, VipCreatePtag(n, &ptag));
	ASSERT_RC(VIP_SUCCESS, VipRegisterMem(n, memory, sizeof(memory), nullptr, &h));
	attrs.Ptag = ptag;
	EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(n, memory, h, &attrs));
	EXPECT_RC(VIP_SUCCESS, VipQueryMem(n, memory, h, &attrs));
	EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(n, memory, h));
	EXPECT_RC(VIP_SUCCESS, VipDestroyPtag(n, ptag));
	ASSERT_RC(VIP_SUCCESS, VipxAllocMem(n, 4096, nullptr, &address, &h));
	EXPECT_RC(VIP_SUCCESS, VipxFreeMem(n, address, h));
}

void use_nic(VIP_NIC_HANDLE n)
{
	VIP_NIC_ATTRIBUTES attrs;
	VIP_AUTODISCOVERY_LIST list = { 1, nullptr, 0 };
	VIP_CHAR name[128];
	VIP_ULONG length = sizeof(name);
	VIPX_ROUTE route{};
	VIPX_COUNTERS counters{};
	Addr here(nic(1), ""), found(std::string(), "");
	route.Size = sizeof(route);
	counters.Size = sizeof(counters);
	EXPECT_RC(VIP_SUCCESS, VipQueryNic(n, &attrs));
	EXPECT_RC(VIP_SUCCESS, VipQuerySystemManagementInfo(n, VIP_SMI_AUTODISCOVERY, &list));
	EXPECT_RC(VIP_SUCCESS, VipNSInit(n, nullptr));
	EXPECT_RC(VIP_SUCCESS, VipNSGetHostByAddr(n, here, name, &length));
	EXPECT_RC(VIP_SUCCESS, VipNSGetHostByName(n, name, found, 0));
	EXPECT_RC(VIP_SUCCESS, VipNSShutdown(n));
	EXPECT_RC(VIP_SUCCESS, VipxQueryRoute(n, here, &route));
	EXPECT_RC(VIP_SUCCESS, VipxQueryCounters(n, nullptr, &counters));
	VIP_RETURN rc = VipxProgress(n);
	EXPECT_TRUE(rc == VIP_SUCCESS || rc == VIP_NOT_DONE) << name_of(rc);
	EXPECT_RC(VIP_SUCCESS, VipErrorCallback(n, nullptr, nullptr));
}

} // namespace

TEST(Handler, MayUseTheLibrary)
{
	for (auto &level : levels())
		for (int kind = 0; kind < KINDS; kind++) {
			RULE(std::string("vipl.h, allowed in handlers: each such function, in ") +
			     kKinds[kind] + ", " + level.name);
			Ground g(static_cast<Kind>(kind), level);
			g.work = [](Ground &here) {
				use_vi(here.n);
				use_cq(here.n);
				use_memory(here.n);
				use_nic(here.n);
			};
			g.provoke();
			EXPECT_TRUE(eventually([&] { return g.over > 0; }));
			g.close = true;
			g.take_away();
		}
}

TEST(Handler, MayTakeItsGroundAway)
{
	for (auto &level : levels())
		for (int kind = 0; kind < KINDS; kind++) {
			RULE(std::string("vipl.h: posts, disconnects, destroys its VI and CQ and "
					 "deregisters their memory in ") +
			     kKinds[kind] + ", " + level.name);
			Ground g(static_cast<Kind>(kind), level);
			g.work = &Ground::take_away;
			g.provoke();
			EXPECT_TRUE(eventually([&] { return g.over > 0; }));
			EXPECT_RC(VIP_INVALID_PARAMETER, VipDestroyVi(g.vi));
			EXPECT_RC(VIP_INVALID_PARAMETER, VipDestroyCQ(g.cq));
			EXPECT_RC(VIP_SUCCESS, VipCloseNic(g.n));
			EXPECT_EQ(1, g.over) << "the second handler is cancelled";
		}
}

TEST(Handler, MayCloseItsNic)
{
	for (auto &level : levels())
		for (int kind = 0; kind < KINDS; kind++) {
			RULE(std::string("vipl.h VipCloseNic: from ") + kKinds[kind] +
			     " of the same NIC, which is then its last, " + level.name);
			Ground g(static_cast<Kind>(kind), level);
			g.close = true;
			g.work = &Ground::take_away;
			g.provoke();
			EXPECT_TRUE(eventually([&] { return g.over > 0; }));
			VIP_NIC_ATTRIBUTES attrs;
			EXPECT_RC(VIP_INVALID_PARAMETER, VipQueryNic(g.n, &attrs));
			EXPECT_RC(VIP_INVALID_PARAMETER, VipCloseNic(g.n));
			EXPECT_EQ(1, g.over) << "no other handler after it";
		}
}

TEST(Handler, MayNotCloseWhatIsUsed)
{
	for (int kind = 0; kind < KINDS; kind++) {
		RULE(std::string(
			     "vipl.h VipCloseNic: VIP_ERROR_RESOURCE while objects are left, in ") +
		     kKinds[kind]);
		Ground g(static_cast<Kind>(kind), levels()[1]);
		g.work = [](Ground &here) { EXPECT_RC(VIP_ERROR_RESOURCE, VipCloseNic(here.n)); };
		g.provoke();
		EXPECT_TRUE(eventually([&] { return g.over > 0; }));
		g.close = true;
		g.take_away();
	}
}
