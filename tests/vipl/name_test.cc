/* SPDX-License-Identifier: BSD-2-Clause */
/* VIPL 5.8: name service, system management, routes. */
#include "harness.h"

#include <unistd.h>

using namespace conf;

namespace {

std::string own_name(Nic &n)
{
	VIP_CHAR name[128] = "";
	VIP_ULONG length = sizeof(name);
	Addr self(n, "");
	EXPECT_RC(VIP_SUCCESS, VipNSGetHostByAddr(n.h, self, name, &length));
	return name;
}

struct Names : ::testing::Test {
	void SetUp() override
	{
		for (int i = 0; i < 2; i++)
			EXPECT_RC(VIP_SUCCESS, VipNSInit(nic(i).h, nullptr));
	}
};

VIP_RETURN look_up(Nic &n, const std::string &name, Addr &out, VIP_ULONG index = 0)
{
	std::vector<char> text(name.begin(), name.end());
	text.push_back(0);
	return VipNSGetHostByName(n.h, text.data(), out, index);
}

} // namespace

TEST(NamesBefore, LookUpNeedsInit)
{
	Nic n(0);
	Addr addr(n, "");
	VIP_CHAR name[64];
	VIP_ULONG length = sizeof(name);
	{
		RULE("VIPL 5.8 VipNSInit: must precede look-ups");
		EXPECT_RC(VIP_ERROR_NAMESERVICE, look_up(n, "host0", addr));
		EXPECT_RC(VIP_ERROR_NAMESERVICE, VipNSGetHostByAddr(n.h, addr, name, &length));
	}
	{
		RULE("VIPL 5.8 VipNSInit: may be called again");
		EXPECT_RC(VIP_SUCCESS, VipNSInit(n.h, nullptr));
		EXPECT_RC(VIP_SUCCESS, VipNSInit(n.h, nullptr));
		EXPECT_RC(VIP_SUCCESS, VipNSGetHostByAddr(n.h, addr, name, &length));
	}
	{
		RULE("VIPL 5.8 VipNSShutdown: ends look-ups; may be called without VipNSInit");
		EXPECT_RC(VIP_SUCCESS, VipNSShutdown(n.h));
		EXPECT_RC(VIP_ERROR_NAMESERVICE, look_up(n, "host0", addr));
		EXPECT_RC(VIP_SUCCESS, VipNSShutdown(n.h));
	}
}

TEST_F(Names, ThereAndBack)
{
	for (int from = 0; from < 2; from++)
		for (int of = 0; of < 2; of++) {
			RULE("VIPL 5.8: the name of an address leads to that address");
			VIP_CHAR name[128] = "";
			VIP_ULONG length = sizeof(name);
			Addr wanted(nic(of), ""), got(std::string(), "");
			EXPECT_RC(VIP_SUCCESS,
				  VipNSGetHostByAddr(nic(from).h, wanted, name, &length));
			EXPECT_EQ(strlen(name), length);
			EXPECT_RC(VIP_SUCCESS, look_up(nic(from), name, got));
			EXPECT_EQ(wanted.host(), got.host());
		}
}

TEST_F(Names, BothForms)
{
	RULE("VIPL 5.8 VipNSGetHostByName: of a name with dots the part before the first is tried too");
	Addr got(std::string(), "");
	EXPECT_RC(VIP_SUCCESS, look_up(nic(0), own_name(nic(1)) + ".example.org", got));
	EXPECT_EQ(Addr(nic(1), "").host(), got.host());
}

TEST_F(Names, OwnMachine)
{
	char machine[256] = "";
	ASSERT_EQ(0, gethostname(machine, sizeof(machine) - 1));
	for (int side = 0; side < 2; side++)
		for (std::string name : { std::string("localhost"), std::string(machine),
					  std::string("localhost.localdomain") }) {
			RULE("VIPL 5.8 VipNSGetHostByName: the machine's own name is the host of who asks");
			Addr got(std::string(), "");
			EXPECT_RC(VIP_SUCCESS, look_up(nic(side), name, got));
			EXPECT_EQ(Addr(nic(side), "").host(), got.host());
		}
}

TEST_F(Names, Unknown)
{
	const std::string names[] = { "no-such-host",
				      "",
				      ".",
				      "no-such-host.example.org",
				      std::string(63, 'x'),
				      std::string(64, 'x'),
				      std::string(5000, 'x') };
	for (auto &name : names) {
		RULE("VIPL 5.8 VipNSGetHostByName: an unknown name is VIP_ERROR_NAMESERVICE");
		Addr got(std::string(), "");
		memset(got.room, 0xee, sizeof(got.room));
		EXPECT_RC(VIP_ERROR_NAMESERVICE, look_up(nic(0), name, got));
		EXPECT_EQ(0xee, got.room[4]) << "the result is written only on success";
	}
	for (VIP_ULONG index : { 1UL, 100UL, 0xffffffffUL, ~0UL }) {
		RULE("VIPL 5.8 VipNSGetHostByName: an index beyond the last address is VIP_ERROR_NAMESERVICE");
		Addr got(std::string(), "");
		EXPECT_RC(VIP_ERROR_NAMESERVICE, look_up(nic(0), own_name(nic(0)), got, index));
	}
}

TEST_F(Names, WritesOnlyTheHost)
{
	for (VIP_UINT16 before : { 0, 6, 200, 0xffff }) {
		RULE("VIPL 5.8 VipNSGetHostByName: HostAddressLen is no capacity; other bytes stay");
		Addr got(std::string(), "");
		memset(got.room, 0xee, sizeof(got.room));
		got->HostAddressLen = before;
		got->DiscriminatorLen = 12;
		EXPECT_RC(VIP_SUCCESS, look_up(nic(0), own_name(nic(1)), got));
		EXPECT_EQ(6, got->HostAddressLen);
		EXPECT_EQ(12, got->DiscriminatorLen);
		for (size_t i = 10; i < sizeof(got.room); i++)
			EXPECT_EQ(0xee, got.room[i]);
	}
}

TEST_F(Names, ByAddr)
{
	Addr self(nic(0), "with a discriminator");
	std::string name = own_name(nic(0));
	for (VIP_ULONG room = 0; room <= name.size() + 2; room++) {
		RULE("VIPL 5.8 VipNSGetHostByAddr: NameLen is the room; too little is VIP_ERROR_RESOURCE and tells it");
		std::vector<char> out(128, '#');
		VIP_ULONG length = room;
		bool fits = room > name.size();
		EXPECT_RC(fits ? VIP_SUCCESS : VIP_ERROR_RESOURCE,
			  VipNSGetHostByAddr(nic(0).h, self, out.data(), &length));
		EXPECT_EQ(fits ? name.size() : name.size() + 1, length);
		for (size_t i = fits ? room : 0; i < out.size(); i++)
			EXPECT_EQ('#', out[i]);
		if (fits)
			EXPECT_STREQ(name.c_str(), out.data());
	}
	std::string host = Addr(nic(0), "").host();
	std::string strange = host;
	strange[4] = 0x7f;
	for (auto &bad : { host.substr(0, 1), host.substr(0, 5), host + "x", std::string() }) {
		RULE("vipl.h VipNSGetHostByAddr: a wrong length is told before VipNSInit is missed");
		VIP_CHAR out[64];
		VIP_ULONG length = sizeof(out);
		Nic n(0);
		Addr addr(bad, "");
		EXPECT_RC(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(n.h, addr, out, &length));
		EXPECT_EQ(sizeof(out), length);
	}
	for (auto &bad : { strange, host.substr(0, 5), host + "x", std::string() }) {
		bool whole = bad.size() == host.size();
		RULE(std::string("VIPL 5.8 VipNSGetHostByAddr: an address ") +
		     (whole ? "unknown to the fabric is VIP_ERROR_NAMESERVICE"
			    : "of wrong length is VIP_INVALID_PARAMETER"));
		VIP_CHAR out[64];
		VIP_ULONG length = sizeof(out);
		Addr addr(bad, "");
		EXPECT_RC(whole ? VIP_ERROR_NAMESERVICE : VIP_INVALID_PARAMETER,
			  VipNSGetHostByAddr(nic(0).h, addr, out, &length));
	}
}

TEST_F(Names, AddressesStayValidAfterShutdown)
{
	RULE("VIPL 5.8 VipNSShutdown: addresses stay valid");
	Nic n(0);
	Addr server(nic(1), ""), found(std::string(), "");
	EXPECT_RC(VIP_SUCCESS, VipNSInit(n.h, nullptr));
	EXPECT_RC(VIP_SUCCESS, look_up(n, own_name(nic(1)), found));
	EXPECT_RC(VIP_SUCCESS, VipNSShutdown(n.h));
	Vi vi(n, vi_attrs(VIP_SERVICE_UNRELIABLE));
	Addr local(n, "x"), remote(found.host(), "nobody");
	VIP_VI_ATTRIBUTES attrs;
	EXPECT_RC(VIP_NO_MATCH, VipConnectRequest(vi, local, remote, kWaitMs, &attrs));
}

TEST(Management, Autodiscovery)
{
	VIP_ULONG total = static_cast<VIP_ULONG>(hosts());
	VIP_AUTODISCOVERY_LIST list{};
	{
		RULE("VIPL 5.8 VipQuerySystemManagementInfo: with capacity 0 the number is told");
		list.NumberOfHops = 10;
		EXPECT_RC(VIP_SUCCESS,
			  VipQuerySystemManagementInfo(nic(0).h, VIP_SMI_AUTODISCOVERY, &list));
		EXPECT_EQ(total, list.NumAdAddrs);
	}
	{
		RULE("VIPL 5.8 VipQuerySystemManagementInfo: the addresses of the fabric, the nearest first");
		std::vector<Addr> room(8, Addr(std::string(), ""));
		VIP_NET_ADDRESS *array[8];
		for (int i = 0; i < 8; i++)
			array[i] = room[i];
		list = { 10, array, 8 };
		EXPECT_RC(VIP_SUCCESS,
			  VipQuerySystemManagementInfo(nic(0).h, VIP_SMI_AUTODISCOVERY, &list));
		EXPECT_EQ(total, list.NumAdAddrs);
		EXPECT_EQ(Addr(nic(0), "").host(), room[0].host());
		if (total > 1)
			EXPECT_EQ(Addr(nic(1), "").host(), room[total == 2 ? 1 : 3].host());
	}
	{
		RULE("VIPL 5.8 VipQuerySystemManagementInfo: 0 hops is this host only");
		std::vector<Addr> room(8, Addr(std::string(), ""));
		VIP_NET_ADDRESS *array[8];
		for (int i = 0; i < 8; i++)
			array[i] = room[i];
		list = { 0, array, 8 };
		EXPECT_RC(VIP_SUCCESS,
			  VipQuerySystemManagementInfo(nic(0).h, VIP_SMI_AUTODISCOVERY, &list));
		EXPECT_EQ(1u, list.NumAdAddrs);
		EXPECT_EQ(Addr(nic(0), "").host(), room[0].host());
	}
	if (total > 1) {
		RULE("VIPL 5.8 VipQuerySystemManagementInfo: too little room is VIP_ERROR_RESOURCE; the number is "
		     "told, the first are filled");
		Addr room(std::string(), "");
		VIP_NET_ADDRESS *array[1] = { room };
		list = { 10, array, 1 };
		EXPECT_RC(VIP_ERROR_RESOURCE,
			  VipQuerySystemManagementInfo(nic(0).h, VIP_SMI_AUTODISCOVERY, &list));
		EXPECT_EQ(total, list.NumAdAddrs);
		EXPECT_EQ(Addr(nic(0), "").host(), room.host());
	}
	{
		RULE("VIPL 5.8 VipQuerySystemManagementInfo: an array or a buffer that is NULL is "
		     "VIP_INVALID_PARAMETER");
		VIP_NET_ADDRESS *array[1] = { nullptr };
		list = { 0, nullptr, 1 };
		EXPECT_RC(VIP_INVALID_PARAMETER,
			  VipQuerySystemManagementInfo(nic(0).h, VIP_SMI_AUTODISCOVERY, &list));
		list = { 0, array, 1 };
		EXPECT_RC(VIP_INVALID_PARAMETER,
			  VipQuerySystemManagementInfo(nic(0).h, VIP_SMI_AUTODISCOVERY, &list));
	}
	for (VIP_ULONG type : { 0UL, 2UL, ~0UL }) {
		RULE("VIPL 5.8 VipQuerySystemManagementInfo: another InfoType is VIP_INVALID_PARAMETER");
		EXPECT_RC(VIP_INVALID_PARAMETER,
			  VipQuerySystemManagementInfo(nic(0).h, type, &list));
	}
}

TEST(Management, Routes)
{
	VIPX_ROUTE route{};
	route.Size = sizeof(route);
	{
		RULE("vipl_ext VipxQueryRoute: to the own host");
		Addr self(nic(0), "");
		EXPECT_RC(VIP_SUCCESS, VipxQueryRoute(nic(0).h, self, &route));
		EXPECT_EQ(VIP_ULONG(VIP_TRUE), route.Reachable);
		EXPECT_EQ(0u, route.Hops);
		EXPECT_EQ(VIP_ULONG(VIPX_PATH_SELF), route.PathKind);
		EXPECT_STRNE("", route.Reason);
	}
	{
		RULE("vipl_ext VipxQueryRoute: to the other side");
		Addr other(nic(1), "");
		EXPECT_RC(VIP_SUCCESS, VipxQueryRoute(nic(0).h, other, &route));
		static const VIP_ULONG kinds[] = { VIPX_PATH_SELF, VIPX_PATH_NEIGHBOUR,
						   VIPX_PATH_RELAYED };
		EXPECT_EQ(VIP_ULONG(hops()), route.Hops);
		EXPECT_EQ(kinds[hops()], route.PathKind);
	}
	{
		RULE("vipl_ext VipxQueryRoute: a host that does not exist is not reachable, with a reason");
		std::string nowhere = Addr(nic(0), "").host();
		nowhere[4] = 0x7f;
		Addr addr(nowhere, "");
		EXPECT_RC(VIP_SUCCESS, VipxQueryRoute(nic(0).h, addr, &route));
		EXPECT_EQ(VIP_ULONG(VIP_FALSE), route.Reachable);
		EXPECT_STRNE("", route.Reason);
	}
	{
		RULE("vipl_ext VipxQueryRoute: an address of wrong length or a small Size is VIP_INVALID_PARAMETER");
		Addr self(nic(0), ""), wrong("12345", "");
		EXPECT_RC(VIP_INVALID_PARAMETER, VipxQueryRoute(nic(0).h, wrong, &route));
		route.Size = 8;
		EXPECT_RC(VIP_INVALID_PARAMETER, VipxQueryRoute(nic(0).h, self, &route));
	}
}
