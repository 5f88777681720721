/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VIPL 5: «every function can return VIP_INVALID_PARAMETER for a bad handle or
 * pointer».  Each function meets each kind of wrong handle and each NULL pointer.
 */
#include "calls.h"

using namespace conf;

namespace {

enum Kind { NIC, VI, CQ, PTAG, CONN, KINDS };

struct Wrong {
	std::string what;
	void *handle;
};

/* Every kind of wrong handle in the place of one of kind `right`. */
std::vector<Wrong> wrong_handles(Good &g, Kind right)
{
	static int somewhere[64];
	std::vector<Wrong> all = {
		{ "NULL", nullptr },
		{ "a small number", reinterpret_cast<void *>(0x1234) },
		{ "all bits set", reinterpret_cast<void *>(~uintptr_t(0)) },
		{ "a pointer to other memory", somewhere },
		{ "an unmapped address", reinterpret_cast<void *>(uintptr_t(1) << 40) },
	};
	void *live[KINDS] = { nic(0).h, g.link.va->h, g.cq.h, g.ptag.h, nullptr };
	static const char *const names[KINDS] = { "a NIC", "a VI", "a CQ", "a protection tag",
						  "a request" };
	for (int k = 0; k < KINDS; k++)
		if (k != right && live[k])
			all.push_back({ std::string("the handle of ") + names[k], live[k] });
	if (live[right])
		for (uintptr_t flip :
		     { uintptr_t(1) << 31, uintptr_t(1) << 40, uintptr_t(1) << 62 })
			all.push_back({ "a valid handle with one bit changed",
					reinterpret_cast<void *>(
						reinterpret_cast<uintptr_t>(live[right]) ^ flip) });
	return all;
}

void try_all(Good &g, const std::vector<Call> &calls, const std::vector<Wrong> &wrong)
{
	for (auto &call : calls)
		for (auto &w : wrong) {
			RULE(std::string("VIPL 5 ") + call.function + ": " + call.argument +
			     " that is " + w.what + " is VIP_INVALID_PARAMETER");
			EXPECT_RC(VIP_INVALID_PARAMETER, call.call(g, w.handle));
		}
}

} // namespace

TEST(Handle, WrongNic)
{
	Good g;
	try_all(g, nic_calls(), wrong_handles(g, NIC));
}

TEST(Handle, WrongVi)
{
	Good g;
	try_all(g, vi_calls(), wrong_handles(g, VI));
}

TEST(Handle, WrongCq)
{
	Good g;
	try_all(g, cq_calls(), wrong_handles(g, CQ));
}

TEST(Handle, WrongRequest)
{
	Good g;
	try_all(g, conn_calls(), wrong_handles(g, CONN));
}

TEST(Handle, StaleHandles)
{
	Good g;
	VIP_NIC_HANDLE stale_nic;
	VIP_VI_HANDLE stale_vi;
	VIP_CQ_HANDLE stale_cq;
	ASSERT_RC(VIP_SUCCESS, VipOpenNic(device(0), &stale_nic));
	ASSERT_RC(VIP_SUCCESS, VipCloseNic(stale_nic));
	ASSERT_RC(VIP_SUCCESS, VipCreateVi(nic(0).h, &g.attrs, nullptr, nullptr, &stale_vi));
	ASSERT_RC(VIP_SUCCESS, VipDestroyVi(stale_vi));
	ASSERT_RC(VIP_SUCCESS, VipCreateCQ(nic(0).h, 4, &stale_cq));
	ASSERT_RC(VIP_SUCCESS, VipDestroyCQ(stale_cq));
	try_all(g, nic_calls(), { { "closed", stale_nic } });
	try_all(g, vi_calls(), { { "destroyed", stale_vi } });
	try_all(g, cq_calls(), { { "destroyed", stale_cq } });
}

/* A slot of the handle tables that is used again must not make an old handle valid. */
TEST(Handle, ReusedSlots)
{
	Good g;
	std::vector<VIP_VI_HANDLE> old;
	for (int i = 0; i < 40; i++) {
		RULE("VIPL 5.2: the handle of a destroyed VI stays invalid when its place is used again");
		Vi vi(nic(0), g.attrs);
		for (auto h : old)
			EXPECT_NE(h, vi.h);
		VIP_DESCRIPTOR *desc;
		if (!old.empty())
			EXPECT_RC(VIP_INVALID_PARAMETER, VipSendDone(old.back(), &desc));
		old.push_back(vi.h);
	}
}

TEST(Handle, NullPointers)
{
	Good g;
	VIP_NIC_HANDLE n = nic(0).h, nic_out;
	VIP_VI_HANDLE v = g.link.va->h;
	struct Case {
		const char *what;
		std::function<VIP_RETURN()> call;
	} all[] = {
		{ "VipOpenNic: DeviceName", [&] { return VipOpenNic(nullptr, &nic_out); } },
		{ "VipOpenNic: NicHandle", [&] { return VipOpenNic(device(0), nullptr); } },
		{ "VipQueryNic: NicAttribs", [&] { return VipQueryNic(n, nullptr); } },
		{ "VipCreateVi: ViAttribs",
		  [&] { return VipCreateVi(n, nullptr, nullptr, nullptr, &g.vi_out); } },
		{ "VipCreateVi: ViHandle",
		  [&] { return VipCreateVi(n, &g.attrs, nullptr, nullptr, nullptr); } },
		{ "VipSetViAttributes: ViAttribs", [&] { return VipSetViAttributes(v, nullptr); } },
		{ "VipQueryVi: State",
		  [&] { return VipQueryVi(v, nullptr, &g.attrs, &g.flag1, &g.flag2); } },
		{ "VipQueryVi: ViAttribs",
		  [&] { return VipQueryVi(v, &g.state, nullptr, &g.flag1, &g.flag2); } },
		{ "VipQueryVi: SendQEmpty",
		  [&] { return VipQueryVi(v, &g.state, &g.attrs, nullptr, &g.flag2); } },
		{ "VipQueryVi: RecvQEmpty",
		  [&] { return VipQueryVi(v, &g.state, &g.attrs, &g.flag1, nullptr); } },
		{ "VipConnectWait: LocalAddr",
		  [&] { return VipConnectWait(n, nullptr, 0, g.remote, &g.attrs, &g.conn_out); } },
		{ "VipConnectWait: RemoteAddr",
		  [&] { return VipConnectWait(n, g.local, 0, nullptr, &g.attrs, &g.conn_out); } },
		{ "VipConnectWait: RemoteViAttribs",
		  [&] { return VipConnectWait(n, g.local, 0, g.remote, nullptr, &g.conn_out); } },
		{ "VipConnectWait: ConnHandle",
		  [&] { return VipConnectWait(n, g.local, 0, g.remote, &g.attrs, nullptr); } },
		{ "VipConnectRequest: LocalAddr",
		  [&] { return VipConnectRequest(v, nullptr, g.remote, 1000, &g.attrs); } },
		{ "VipConnectRequest: RemoteAddr",
		  [&] { return VipConnectRequest(v, g.local, nullptr, 1000, &g.attrs); } },
		{ "VipConnectRequest: RemoteViAttribs",
		  [&] { return VipConnectRequest(v, g.local, g.remote, 1000, nullptr); } },
		{ "VipConnectPeerRequest: LocalAddr",
		  [&] { return VipConnectPeerRequest(v, nullptr, g.remote, 1000); } },
		{ "VipConnectPeerRequest: RemoteAddr",
		  [&] { return VipConnectPeerRequest(v, g.local, nullptr, 1000); } },
		{ "VipConnectPeerDone: RemoteViAttribs",
		  [&] { return VipConnectPeerDone(v, nullptr); } },
		{ "VipConnectPeerWait: RemoteViAttribs",
		  [&] { return VipConnectPeerWait(v, nullptr); } },
		{ "VipPostSend: DescriptorPtr", [&] { return VipPostSend(v, nullptr, g.mem.h); } },
		{ "VipPostRecv: DescriptorPtr", [&] { return VipPostRecv(v, nullptr, g.mem.h); } },
		{ "VipSendDone: DescriptorPtr", [&] { return VipSendDone(v, nullptr); } },
		{ "VipRecvDone: DescriptorPtr", [&] { return VipRecvDone(v, nullptr); } },
		{ "VipSendWait: DescriptorPtr", [&] { return VipSendWait(v, 0, nullptr); } },
		{ "VipRecvWait: DescriptorPtr", [&] { return VipRecvWait(v, 0, nullptr); } },
		{ "VipSendNotify: Handler", [&] { return VipSendNotify(v, nullptr, nullptr); } },
		{ "VipRecvNotify: Handler", [&] { return VipRecvNotify(v, nullptr, nullptr); } },
		{ "VipCreateCQ: CQHandle", [&] { return VipCreateCQ(n, 4, nullptr); } },
		{ "VipCQDone: ViHandle", [&] { return VipCQDone(g.cq, nullptr, &g.flag1); } },
		{ "VipCQDone: RecvQueue", [&] { return VipCQDone(g.cq, &g.vi_out, nullptr); } },
		{ "VipCQWait: ViHandle", [&] { return VipCQWait(g.cq, 0, nullptr, &g.flag1); } },
		{ "VipCQWait: RecvQueue", [&] { return VipCQWait(g.cq, 0, &g.vi_out, nullptr); } },
		{ "VipCQNotify: Handler", [&] { return VipCQNotify(g.cq, nullptr, nullptr); } },
		{ "VipCreatePtag: ProtectionTag", [&] { return VipCreatePtag(n, nullptr); } },
		{ "VipRegisterMem: VirtualAddress",
		  [&] { return VipRegisterMem(n, nullptr, 64, nullptr, &g.mem_out); } },
		{ "VipRegisterMem: MemoryHandle",
		  [&] { return VipRegisterMem(n, g.mem.data, 64, nullptr, nullptr); } },
		{ "VipSetMemAttributes: MemAttribs",
		  [&] { return VipSetMemAttributes(n, g.mem.data, g.mem.h, nullptr); } },
		{ "VipQueryMem: MemAttribs",
		  [&] { return VipQueryMem(n, g.mem.data, g.mem.h, nullptr); } },
		{ "VipQuerySystemManagementInfo: SysManInfo",
		  [&] { return VipQuerySystemManagementInfo(n, VIP_SMI_AUTODISCOVERY, nullptr); } },
		{ "VipNSGetHostByName: Name",
		  [&] { return VipNSGetHostByName(n, nullptr, g.remote, 0); } },
		{ "VipNSGetHostByName: Address",
		  [&] { return VipNSGetHostByName(n, g.name, nullptr, 0); } },
		{ "VipNSGetHostByAddr: Address",
		  [&] { return VipNSGetHostByAddr(n, nullptr, g.name, &g.name_len); } },
		{ "VipNSGetHostByAddr: Name",
		  [&] { return VipNSGetHostByAddr(n, g.local, nullptr, &g.name_len); } },
		{ "VipNSGetHostByAddr: NameLen",
		  [&] { return VipNSGetHostByAddr(n, g.local, g.name, nullptr); } },
		{ "VipxAllocMem: Address",
		  [&] { return VipxAllocMem(n, 64, nullptr, nullptr, &g.mem_out); } },
		{ "VipxAllocMem: MemoryHandle",
		  [&] { return VipxAllocMem(n, 64, nullptr, &g.address, nullptr); } },
		{ "VipxCQFd: Fd", [&] { return VipxCQFd(g.cq, nullptr); } },
		{ "VipxQueryRoute: RemoteAddr",
		  [&] { return VipxQueryRoute(n, nullptr, &g.route); } },
		{ "VipxQueryRoute: Route", [&] { return VipxQueryRoute(n, g.local, nullptr); } },
		{ "VipxQueryCounters: Counters",
		  [&] { return VipxQueryCounters(n, nullptr, nullptr); } },
		{ "VipxPostSends: Descriptors",
		  [&] { return VipxPostSends(v, nullptr, 1, g.link.a.mem.h, &g.name_len); } },
		{ "VipxPostSends: Posted",
		  [&] { return VipxPostSends(v, &g.desc, 1, g.link.a.mem.h, nullptr); } },
		{ "VipxPostRecvs: Descriptors",
		  [&] { return VipxPostRecvs(v, nullptr, 1, g.link.a.mem.h, &g.name_len); } },
		{ "VipxPostRecvs: Posted",
		  [&] { return VipxPostRecvs(v, &g.desc, 1, g.link.a.mem.h, nullptr); } },
		{ "VipxSendsDone: Descriptors",
		  [&] { return VipxSendsDone(v, nullptr, 1, &g.name_len); } },
		{ "VipxSendsDone: Count",
		  [&] { return VipxSendsDone(v, &g.desc_out, 1, nullptr); } },
		{ "VipxRecvsDone: Descriptors",
		  [&] { return VipxRecvsDone(v, nullptr, 1, &g.name_len); } },
		{ "VipxRecvsDone: Count",
		  [&] { return VipxRecvsDone(v, &g.desc_out, 1, nullptr); } },
		{ "VipxCQTake: Completions",
		  [&] { return VipxCQTake(g.cq, nullptr, 1, &g.name_len); } },
		{ "VipxCQTake: Count",
		  [&] { return VipxCQTake(g.cq, &g.completion, 1, nullptr); } },
		{ "VipxStatusString: Buffer", [&] { return VipxStatusString(0, nullptr, 10); } },
	};
	for (auto &c : all) {
		RULE(std::string("VIPL 5 ") + c.what + " NULL is VIP_INVALID_PARAMETER");
		EXPECT_RC(VIP_INVALID_PARAMETER, c.call());
	}
}
