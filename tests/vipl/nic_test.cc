/* SPDX-License-Identifier: BSD-2-Clause */
/* VIPL 4.3 and 5.1: opening, querying and closing NICs. */
#include "harness.h"
#include "probes.h"

#include <algorithm>

#include <pthread.h>
#include <unistd.h>

using namespace conf;

TEST(Nic, DeviceNames)
{
	const char *const names[] = { "/dev/clanvi0", "/dev/via_eth0", "/dev/via_lo",
				      "/etc/via_lo",  "nic0",	       "VINIC",
				      "VINIC0",	      "anything else" };
	for (auto name : names) {
		RULE(std::string("VIPL 5.1 VipOpenNic: any device name opens the default NIC: ") +
		     name);
		VIP_NIC_HANDLE h = nullptr;
		EXPECT_RC(VIP_SUCCESS, VipOpenNic(name, &h));
		EXPECT_NE(nullptr, h);
		EXPECT_RC(VIP_SUCCESS, VipCloseNic(h));
	}
}

TEST(Nic, UnknownDeviceWithoutDefault)
{
	RULE("VIPL 5.1 VipOpenNic: an unknown device is VIP_INVALID_PARAMETER if no default NIC is configured");
	nic(0);
	EXPECT_EQ(VIP_INVALID_PARAMETER,
		  child_wait(spawn_child("open", "nosuch",
					 { "VIADUCT_DEFAULT_NIC=no", "VIADUCT_LOG=error" })));
}

TEST(Nic, UnknownDeviceWithDefault)
{
	RULE("VIPL 5.1 VipOpenNic: an unknown device opens the default NIC if one is configured");
	nic(0);
	EXPECT_EQ(VIP_SUCCESS,
		  child_wait(spawn_child("open", "nosuch", { "VIADUCT_DEFAULT_NIC=yes" })));
}

TEST(Nic, NoAgentToBeHad)
{
	std::string none = "none-" + std::to_string(getpid());
	std::string others = "VIADUCT_FABRIC=" + std::to_string(geteuid() + 1) + ":" + none;
	struct Case {
		const char *what;
		std::vector<std::string> env;
	} all[] = {
		{ "none may be started", { "VIADUCT_FABRIC=" + none, "VIADUCT_AGENT=none" } },
		{ "the fabric is another user's", { others } },
		{ "the program is missing",
		  { "VIADUCT_FABRIC=" + none, "VIADUCT_AGENT=/nowhere" } },
		{ "the program is another",
		  { "VIADUCT_FABRIC=" + none, "VIADUCT_AGENT=/bin/true" } },
	};
	for (auto &c : all) {
		RULE(std::string("VIPL 5.1 VipOpenNic: without an agent, VIP_ERROR_RESOURCE: ") +
		     c.what);
		EXPECT_EQ(VIP_ERROR_RESOURCE, child_wait(spawn_child("open", "nic0", c.env)));
	}
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST(Nic, NoThreadToBeHad)
{
	RULE("VIPL 5.1 VipOpenNic: a thread that cannot be created is VIP_ERROR_RESOURCE");
	pthread_attr_t usual, huge;
	VIP_NIC_HANDLE h = nullptr;
	nic(0);
	ASSERT_EQ(0, pthread_getattr_default_np(&usual));
	ASSERT_EQ(0, pthread_attr_init(&huge));
	ASSERT_EQ(0, pthread_attr_setstacksize(&huge, size_t(1) << 47));
	ASSERT_EQ(0, pthread_setattr_default_np(&huge));
	testing::internal::CaptureStderr();
	VIP_RETURN rc = VipOpenNic(device(0), &h);
	std::string log = testing::internal::GetCapturedStderr();
	EXPECT_EQ(0, pthread_setattr_default_np(&usual));
	EXPECT_RC(VIP_ERROR_RESOURCE, rc);
	EXPECT_EQ(nullptr, h);
	EXPECT_NE(std::string::npos, log.find("cannot be started")) << log;
	if (probe_refused_fds_are_closed()) { /* else the agent's socket needs a thread, too */
		EXPECT_EQ(1, std::count(log.begin(), log.end(), '\n')) << log;
	}
	pthread_attr_destroy(&usual);
	pthread_attr_destroy(&huge);
}
#endif

TEST(Nic, OpensAreIndependent)
{
	VIP_NIC_HANDLE h[8];
	for (auto &one : h)
		ASSERT_RC(VIP_SUCCESS, VipOpenNic(device(0), &one));
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < i; k++) {
			RULE("VIPL 5.1 VipOpenNic: each open gives a distinct handle");
			EXPECT_NE(h[i], h[k]);
		}
	VIP_NIC_ATTRIBUTES attrs;
	for (int i = 0; i < 8; i++) {
		RULE("VIPL 5.1 VipCloseNic: other handles of the same NIC stay open");
		EXPECT_RC(VIP_SUCCESS, VipCloseNic(h[i]));
		EXPECT_RC(VIP_INVALID_PARAMETER, VipCloseNic(h[i]));
		if (i < 7)
			EXPECT_RC(VIP_SUCCESS, VipQueryNic(h[7], &attrs));
	}
}

TEST(Nic, CloseWithLiveObjects)
{
	VIP_NIC_HANDLE h;
	ASSERT_RC(VIP_SUCCESS, VipOpenNic(device(0), &h));
	struct Case {
		const char *what;
		std::function<VIP_RETURN()> make, unmake;
	};
	VIP_VI_ATTRIBUTES attrs = vi_attrs(VIP_SERVICE_UNRELIABLE);
	VIP_VI_HANDLE vi;
	VIP_CQ_HANDLE cq;
	VIP_PROTECTION_HANDLE ptag;
	VIP_MEM_HANDLE mem;
	VIP_PVOID address;
	static char memory[64];
	Case all[] = {
		{ "a VI", [&] { return VipCreateVi(h, &attrs, nullptr, nullptr, &vi); },
		  [&] { return VipDestroyVi(vi); } },
		{ "a CQ", [&] { return VipCreateCQ(h, 4, &cq); },
		  [&] { return VipDestroyCQ(cq); } },
		{ "a protection tag", [&] { return VipCreatePtag(h, &ptag); },
		  [&] { return VipDestroyPtag(h, ptag); } },
		{ "registered memory", [&] { return VipRegisterMem(h, memory, 64, nullptr, &mem); },
		  [&] { return VipDeregisterMem(h, memory, mem); } },
		{ "window memory", [&] { return VipxAllocMem(h, 4096, nullptr, &address, &mem); },
		  [&] { return VipxFreeMem(h, address, mem); } },
	};
	for (auto &c : all) {
		RULE(std::string("VIPL 5.1 VipCloseNic: VIP_ERROR_RESOURCE while it has ") +
		     c.what);
		ASSERT_RC(VIP_SUCCESS, c.make());
		EXPECT_RC(VIP_ERROR_RESOURCE, VipCloseNic(h));
		VIP_NIC_ATTRIBUTES na;
		EXPECT_RC(VIP_SUCCESS, VipQueryNic(h, &na));
		EXPECT_RC(VIP_SUCCESS, c.unmake());
	}
	EXPECT_RC(VIP_SUCCESS, VipCloseNic(h));
}

TEST(Nic, Attributes)
{
	const VIP_NIC_ATTRIBUTES &a = nic(0).attrs;
	struct Case {
		const char *rule;
		bool good;
	} all[] = {
		{ "Name is terminated and not empty",
		  a.Name[0] && memchr(a.Name, 0, sizeof(a.Name)) },
		{ "NicAddressLen is 6", a.NicAddressLen == 6 },
		{ "LocalNicAddress points at the address", a.LocalNicAddress != nullptr },
		{ "ThreadSafe is TRUE", a.ThreadSafe == VIP_TRUE },
		{ "MaxDiscriminatorLen is at least 16", a.MaxDiscriminatorLen >= 16 },
		{ "MaxRegisterBytes is not less than MaxRegisterBlockBytes",
		  a.MaxRegisterBytes >= a.MaxRegisterBlockBytes },
		{ "MaxRegisterBlockBytes holds a transfer of the maximum size",
		  a.MaxRegisterBlockBytes >= a.MaxTransferSize },
		{ "MaxRegisterRegions is positive", a.MaxRegisterRegions > 0 },
		{ "MaxVI is at least 1000", a.MaxVI >= 1000 },
		{ "MaxDescriptorsPerQueue is at least 300", a.MaxDescriptorsPerQueue >= 300 },
		{ "MaxSegmentsPerDesc is at least 252 data segments and an address",
		  a.MaxSegmentsPerDesc >= 253 },
		{ "MaxCQ is positive", a.MaxCQ > 0 },
		{ "MaxCQEntries is at least 1024", a.MaxCQEntries >= 1024 },
		{ "MaxTransferSize is at least 1 GiB", a.MaxTransferSize >= (1ul << 30) },
		{ "NativeMTU is positive and not above MaxTransferSize",
		  a.NativeMTU > 0 && a.NativeMTU <= a.MaxTransferSize },
		{ "MaxPtags is positive", a.MaxPtags > 0 },
		{ "all three reliability levels are supported", a.ReliabilityLevelSupport == 7 },
		{ "RDMA read is offered on the reliable levels only", a.RDMAReadSupport == 6 },
	};
	for (auto &c : all) {
		RULE(std::string("VIPL 4.3 VipQueryNic: ") + c.rule);
		EXPECT_TRUE(c.good);
	}
}

TEST(Nic, AttributesAreStatic)
{
	Vi vi(nic(0), vi_attrs(VIP_SERVICE_UNRELIABLE));
	VIP_NIC_ATTRIBUTES again{};
	RULE("VIPL 4.3 VipQueryNic: the values are static");
	ASSERT_RC(VIP_SUCCESS, VipQueryNic(nic(0).h, &again));
	const VIP_NIC_ATTRIBUTES &a = nic(0).attrs;
	EXPECT_STREQ(a.Name, again.Name);
	EXPECT_EQ(a.LocalNicAddress, again.LocalNicAddress);
	EXPECT_EQ(a.MaxVI, again.MaxVI);
	EXPECT_EQ(a.MaxTransferSize, again.MaxTransferSize);
	EXPECT_EQ(a.MaxDescriptorsPerQueue, again.MaxDescriptorsPerQueue);
	EXPECT_EQ(a.MaxRegisterRegions, again.MaxRegisterRegions);
}

TEST(Nic, AddressesTellHostsApart)
{
	RULE("VIPL 4.3: NICs of one host have its address, other hosts another");
	bool equal = !memcmp(nic(0).attrs.LocalNicAddress, nic(1).attrs.LocalNicAddress, 6);
	EXPECT_EQ(hosts() == 1, equal);
}

/* Objects of one open do not work with another open of the same NIC. */
TEST(Nic, ObjectsBelongToOneOpen)
{
	Nic other(0);
	Ptag ptag(nic(0));
	Cq cq(nic(0));
	Mem mem(nic(0), 64);
	VIP_VI_ATTRIBUTES attrs = vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY);
	VIP_VI_HANDLE vi;
	VIP_MEM_HANDLE out;
	VIP_MEM_ATTRIBUTES ma{};
	{
		RULE("VIPL 5.2 VipCreateVi: a CQ of another open is VIP_INVALID_PARAMETER");
		EXPECT_RC(VIP_INVALID_PARAMETER, VipCreateVi(other.h, &attrs, cq, nullptr, &vi));
		EXPECT_RC(VIP_INVALID_PARAMETER, VipCreateVi(other.h, &attrs, nullptr, cq, &vi));
	}
	{
		RULE("VIPL 8: a ptag of another open is VIP_INVALID_PTAG for VipCreateVi");
		attrs.Ptag = ptag;
		EXPECT_RC(VIP_INVALID_PTAG, VipCreateVi(other.h, &attrs, nullptr, nullptr, &vi));
	}
	{
		RULE("VIPL 8: a ptag of another open is VIP_INVALID_PTAG for VipRegisterMem");
		ma.Ptag = ptag;
		EXPECT_RC(VIP_INVALID_PTAG, VipRegisterMem(other.h, mem.data, 64, &ma, &out));
	}
	{
		RULE("VIPL 8: a ptag of another open is VIP_INVALID_PTAG for VipDestroyPtag");
		EXPECT_RC(VIP_INVALID_PTAG, VipDestroyPtag(other.h, ptag));
	}
	{
		RULE("VIPL 8: a memory handle of one open is not valid on another");
		EXPECT_RC(VIP_INVALID_PARAMETER, VipDeregisterMem(other.h, mem.data, mem.h));
		EXPECT_RC(VIP_INVALID_PARAMETER, VipQueryMem(other.h, mem.data, mem.h, &ma));
	}
}

TEST(Nic, ProcessEndIsConnectionLoss)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.1: the end of a process is a connection loss for its peers, ") +
		     level.name);
		std::string disc = unique_disc();
		Vi vi(nic(0), vi_attrs(level.value, 4096));
		Arena arena(nic(0));
		VIP_DESCRIPTOR *recv = make(arena, VIP_CONTROL_OP_SENDRECV,
					    { { arena.bytes(64), arena.mem.h, 64 } });
		ASSERT_RC(VIP_SUCCESS, VipPostRecv(vi, recv, arena.mem.h));
		pid_t pid =
			spawn_child("connect-and-exit", std::to_string(level.value) + ":" + disc);
		accept_one(vi, disc);
		VIP_ERROR_DESCRIPTOR event{};
		EXPECT_TRUE(nic(0).wait_event(VIP_ERROR_CONN_LOST, vi.h, &event));
		EXPECT_EQ(VIP_STATE_ERROR, vi.state());
		EXPECT_EQ(recv, take_recv(vi));
		EXPECT_TRUE(has_error(recv,
				      VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_TRANSPORT_ERROR));
		EXPECT_EQ(0, child_wait(pid));
	}
}
