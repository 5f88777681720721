/* SPDX-License-Identifier: BSD-2-Clause */
/* Every function that takes a handle, with good arguments except the handle. */
#ifndef VIPL_CALLS_H
#define VIPL_CALLS_H

#include "harness.h"

namespace conf {

inline void on_desc(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR *) {}
inline void on_cq(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) {}

/* Good arguments for everything, so that only one at a time is wrong. */
struct Good {
	Good()
	    : link(VIP_SERVICE_RELIABLE_DELIVERY, unconnected()), cq(nic(0)), ptag(nic(0)),
	      mem(nic(0), 4096), local(nic(0), "handles"), remote(nic(1), "nobody")
	{
		VipNSInit(nic(0).h, nullptr);
		attrs = vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY);
		desc = make(link.a, VIP_CONTROL_OP_SENDRECV, {});
		list.ADAddrArray = nullptr;
	}
	static LinkOptions unconnected()
	{
		LinkOptions o;
		o.connected = false;
		return o;
	}
	Link link;
	Cq cq;
	Ptag ptag;
	Mem mem;
	Addr local, remote;
	VIP_VI_ATTRIBUTES attrs{};
	VIP_MEM_ATTRIBUTES mem_attrs{};
	VIP_NIC_ATTRIBUTES nic_attrs{};
	VIP_VI_STATE state{};
	VIP_BOOLEAN flag1 = 0, flag2 = 0;
	VIP_VI_HANDLE vi_out = nullptr;
	VIP_CQ_HANDLE cq_out = nullptr;
	VIP_CONN_HANDLE conn_out = nullptr;
	VIP_PROTECTION_HANDLE ptag_out = nullptr;
	VIP_MEM_HANDLE mem_out = 0;
	VIP_DESCRIPTOR *desc = nullptr, *desc_out = nullptr;
	VIP_AUTODISCOVERY_LIST list{};
	VIP_CHAR name[64] = "nic0";
	VIP_ULONG name_len = sizeof(name);
	VIPX_COMPLETION completion = {
		sizeof(VIPX_COMPLETION), nullptr, nullptr, nullptr, 0, 0, 0, 0
	};
	VIP_PVOID address = nullptr;
	int fd = -1;
	VIPX_ROUTE route{};
	VIPX_COUNTERS counters{};
	VIPX_PLACEMENT placement{};
};

struct Call {
	const char *function;
	const char *argument;
	std::function<VIP_RETURN(Good &, void *)> call; /* with the handle to try */
};

#define NIC_CALL(name, ...)                                                                        \
	{                                                                                          \
#name, "NicHandle", [](Good &g, void *h) { (void)g; return name(h, ##__VA_ARGS__); }               \
	}

inline const std::vector<Call> &nic_calls()
{
	static const std::vector<Call> all = {
		NIC_CALL(VipCloseNic),
		NIC_CALL(VipQueryNic, &g.nic_attrs),
		NIC_CALL(VipCreateVi, &g.attrs, nullptr, nullptr, &g.vi_out),
		NIC_CALL(VipConnectWait, g.local, 0, g.remote, &g.attrs, &g.conn_out),
		NIC_CALL(VipCreateCQ, 4, &g.cq_out),
		NIC_CALL(VipCreatePtag, &g.ptag_out),
		NIC_CALL(VipDestroyPtag, g.ptag),
		NIC_CALL(VipRegisterMem, g.mem.data, 64, nullptr, &g.mem_out),
		NIC_CALL(VipDeregisterMem, g.mem.data, g.mem.h),
		NIC_CALL(VipSetMemAttributes, g.mem.data, g.mem.h, &g.mem_attrs),
		NIC_CALL(VipQueryMem, g.mem.data, g.mem.h, &g.mem_attrs),
		NIC_CALL(VipErrorCallback, nullptr, nullptr),
		NIC_CALL(VipQuerySystemManagementInfo, VIP_SMI_AUTODISCOVERY, &g.list),
		NIC_CALL(VipNSInit, nullptr),
		NIC_CALL(VipNSGetHostByName, g.name, g.remote, 0),
		NIC_CALL(VipNSGetHostByAddr, g.local, g.name, &g.name_len),
		NIC_CALL(VipNSShutdown),
		NIC_CALL(VipxAllocMem, 4096, nullptr, &g.address, &g.mem_out),
		NIC_CALL(VipxFreeMem, g.mem.data, g.mem.h),
		NIC_CALL(VipxAdoptMem, g.mem.data, 4096, nullptr, 0, &g.mem_out),
		NIC_CALL(VipxProgress),
		NIC_CALL(VipxQueryRoute, g.local, &g.route),
		NIC_CALL(VipxQueryCounters, nullptr, &g.counters),
		NIC_CALL(VipxSetAffinity, "none"),
		NIC_CALL(VipxQueryPlacement, VIPX_ROLE_TRANSFER, &g.placement),
		NIC_CALL(VipxPlaceThread, VIPX_ROLE_SERVICE, 0, 1, 0, nullptr),
	};
	return all;
}

#define VI_CALL(name, ...)                                                                         \
	{                                                                                          \
#name, "ViHandle", [](Good &g, void *h) { (void)g; return name(h, ##__VA_ARGS__); }                \
	}

inline const std::vector<Call> &vi_calls()
{
	static const std::vector<Call> all = {
		VI_CALL(VipDestroyVi),
		VI_CALL(VipSetViAttributes, &g.attrs),
		VI_CALL(VipQueryVi, &g.state, &g.attrs, &g.flag1, &g.flag2),
		VI_CALL(VipConnectRequest, g.local, g.remote, 1000, &g.attrs),
		VI_CALL(VipDisconnect),
		VI_CALL(VipConnectPeerRequest, g.local, g.remote, 1000),
		VI_CALL(VipConnectPeerDone, &g.attrs),
		VI_CALL(VipConnectPeerWait, &g.attrs),
		VI_CALL(VipPostSend, g.desc, g.link.a.mem.h),
		VI_CALL(VipPostRecv, g.desc, g.link.a.mem.h),
		VI_CALL(VipSendDone, &g.desc_out),
		VI_CALL(VipRecvDone, &g.desc_out),
		VI_CALL(VipSendWait, 0, &g.desc_out),
		VI_CALL(VipRecvWait, 0, &g.desc_out),
		VI_CALL(VipSendNotify, nullptr, on_desc),
		VI_CALL(VipRecvNotify, nullptr, on_desc),
		VI_CALL(VipxPostSends, &g.desc, 1, g.link.a.mem.h, &g.name_len),
		VI_CALL(VipxPostRecvs, &g.desc, 1, g.link.a.mem.h, &g.name_len),
		VI_CALL(VipxSendsDone, &g.desc_out, 1, &g.name_len),
		VI_CALL(VipxRecvsDone, &g.desc_out, 1, &g.name_len),
		VI_CALL(VipxSetViContext, nullptr),
		VI_CALL(VipxMapRemote, 4096, 8, 1, &g.address),
		VI_CALL(VipxUnmapRemote, g.mem.data),
		VI_CALL(VipxFlush, 0),
	};
	return all;
}

#define CQ_CALL(name, ...)                                                                         \
	{                                                                                          \
#name, "CQHandle", [](Good &g, void *h) { (void)g; return name(h, ##__VA_ARGS__); }                \
	}

inline const std::vector<Call> &cq_calls()
{
	static const std::vector<Call> all = {
		CQ_CALL(VipResizeCQ, 8),
		CQ_CALL(VipDestroyCQ),
		CQ_CALL(VipCQDone, &g.vi_out, &g.flag1),
		CQ_CALL(VipCQWait, 0, &g.vi_out, &g.flag1),
		CQ_CALL(VipCQNotify, nullptr, on_cq),
		CQ_CALL(VipxCQFd, &g.fd),
		CQ_CALL(VipxCQArm),
		CQ_CALL(VipxCQTake, &g.completion, 1, &g.name_len),
	};
	return all;
}

inline const std::vector<Call> &conn_calls()
{
	static const std::vector<Call> all = {
		{ "VipConnectAccept", "ConnHandle",
		  [](Good &g, void *h) { return VipConnectAccept(h, *g.link.va); } },
		{ "VipConnectReject", "ConnHandle",
		  [](Good &, void *h) { return VipConnectReject(h); } },
	};
	return all;
}

#undef NIC_CALL
#undef VI_CALL
#undef CQ_CALL

} // namespace conf

#endif
