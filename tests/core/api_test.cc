/* SPDX-License-Identifier: BSD-2-Clause */
/* The API layer: arguments, handles, states, addresses, names. */
#include <atomic>
#include <cerrno>
#include <string>

#include "core_fixture.h"

namespace {

/* A VIP_NET_ADDRESS with room after it, and canaries after that. */
struct Address {
	alignas(8) uint8_t bytes[64];

	Address() { memset(bytes, 0xee, sizeof(bytes)); }

	Address(const uint8_t *host, const std::string &disc) : Address()
	{
		get()->HostAddressLen = 6;
		get()->DiscriminatorLen = uint16_t(disc.size());
		memcpy(bytes + 4, host, 6);
		memcpy(bytes + 10, disc.data(), disc.size());
	}

	VIP_NET_ADDRESS *get() { return reinterpret_cast<VIP_NET_ADDRESS *>(bytes); }

	/* Are the bytes from `from` on untouched? */
	bool intact(size_t from) const
	{
		for (size_t i = from; i < sizeof(bytes); i++)
			if (bytes[i] != 0xee)
				return false;
		return true;
	}
};

class Api : public CoreTest {
protected:
	VIP_VI_STATE state(VIP_VI_HANDLE vi)
	{
		VIP_VI_STATE s;
		VIP_VI_ATTRIBUTES a;
		VIP_BOOLEAN e[2];

		EXPECT_EQ(VIP_SUCCESS, VipQueryVi(vi, &s, &a, &e[0], &e[1]));
		return s;
	}
};

TEST_F(Api, OpenAndClose)
{
	VIP_NIC_HANDLE one, two;

	EXPECT_EQ(VIP_INVALID_PARAMETER, VipOpenNic(nullptr, &one));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipOpenNic("fake", nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipOpenNic("no such device", &one));
	ASSERT_EQ(VIP_SUCCESS, VipOpenNic("fake", &one));
	ASSERT_EQ(VIP_SUCCESS, VipOpenNic("fake", &two));
	EXPECT_NE(one, two);
	EXPECT_EQ(VIP_SUCCESS, VipCloseNic(one));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCloseNic(one));
	EXPECT_EQ(VIP_SUCCESS, VipCloseNic(two));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCloseNic(nullptr));
}

TEST_F(Api, WhatKeepsANicOpen)
{
	VIP_NIC_HANDLE other;
	VIP_PROTECTION_HANDLE tag;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi;
	VIP_VI_ATTRIBUTES a = attrs();

	ASSERT_EQ(VIP_SUCCESS, VipOpenNic("fake", &other));
	ASSERT_EQ(VIP_SUCCESS, VipCreatePtag(other, &tag));
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipCloseNic(other));
	EXPECT_EQ(VIP_SUCCESS, VipDestroyPtag(other, tag));
	ASSERT_EQ(VIP_SUCCESS, VipCreateCQ(other, 1, &cq));
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipCloseNic(other));
	EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(cq));
	ASSERT_EQ(VIP_SUCCESS, VipCreateVi(other, &a, nullptr, nullptr, &vi));
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipCloseNic(other));
	EXPECT_EQ(VIP_SUCCESS, VipDestroyVi(vi));
	EXPECT_EQ(VIP_SUCCESS, VipCloseNic(other));
}

TEST_F(Api, QueryNic)
{
	VIP_NIC_ATTRIBUTES a;

	ASSERT_EQ(VIP_SUCCESS, VipQueryNic(nic, &a));
	EXPECT_STREQ("fake", a.Name);
	EXPECT_EQ(0, memcmp(a.LocalNicAddress, fake_host[0], 6));
	EXPECT_TRUE(a.ThreadSafe);
	EXPECT_EQ(253u, a.MaxSegmentsPerDesc);
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipQueryNic(nic, nullptr));
}

/* A handle of one kind is refused as any other kind. */
TEST_F(Api, HandlesOfAnotherKind)
{
	VIP_CQ_HANDLE cq = create_cq();
	VIP_VI_HANDLE vi = create_vi();
	VIP_NIC_ATTRIBUTES na;
	VIP_VI_HANDLE v;
	VIP_BOOLEAN b;
	VIP_DESCRIPTOR *d;
	void *bad[] = { nullptr, reinterpret_cast<void *>(1), reinterpret_cast<void *>(-1), memory,
			this };

	EXPECT_EQ(VIP_INVALID_PARAMETER, VipQueryNic(vi, &na));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCloseNic(cq));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCQDone(vi, &v, &b));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipRecvDone(nic, &d));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipDestroyVi(cq));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipDestroyCQ(vi));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectReject(vi));
	for (void *h : bad) {
		EXPECT_EQ(VIP_INVALID_PARAMETER, VipQueryNic(h, &na));
		EXPECT_EQ(VIP_INVALID_PARAMETER, VipCQDone(h, &v, &b));
		EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostSend(h, desc(0), handle));
		EXPECT_EQ(VIP_INVALID_PARAMETER, VipSendDone(h, &d));
		EXPECT_EQ(VIP_INVALID_PARAMETER, VipDestroyVi(h));
		EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectAccept(h, vi));
	}
	destroy_vi(vi);
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostRecv(vi, simple(0, 8), handle));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipDisconnect(vi));
	/* The next VI takes the same memory, not the same handle. */
	VIP_VI_HANDLE next = create_vi();
	EXPECT_NE(vi, next);
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipRecvDone(vi, &d));
	destroy_vi(next);
	EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(cq));
}

TEST_F(Api, NullOutputs)
{
	VIP_CQ_HANDLE cq = create_cq();
	VIP_VI_HANDLE vi = create_vi();
	VIP_VI_ATTRIBUTES a = attrs();
	VIP_VI_STATE s;
	VIP_VI_HANDLE v;
	VIP_BOOLEAN b;

	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCreateVi(nic, nullptr, nullptr, nullptr, &v));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCreateVi(nic, &a, nullptr, nullptr, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipQueryVi(vi, nullptr, &a, &b, &b));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipQueryVi(vi, &s, nullptr, &b, &b));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipQueryVi(vi, &s, &a, nullptr, &b));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipQueryVi(vi, &s, &a, &b, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipSetViAttributes(vi, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipSendDone(vi, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipRecvWait(vi, 0, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCQDone(cq, nullptr, &b));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCQDone(cq, &v, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCQWait(cq, 0, nullptr, &b));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCreatePtag(nic, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxCQFd(cq, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxAllocMem(nic, 1, nullptr, nullptr, nullptr));
	destroy_vi(vi);
	EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(cq));
}

TEST_F(Api, ViAttributes)
{
	VIP_VI_ATTRIBUTES good = attrs();
	VIP_VI_ATTRIBUTES a, out;
	VIP_VI_STATE s;
	VIP_BOOLEAN e[2];
	VIP_VI_HANDLE vi = create_vi();
	VIP_VI_HANDLE none = this;
	auto refused = [&](VIP_RETURN want) {
		EXPECT_EQ(want, VipCreateVi(nic, &a, nullptr, nullptr, &none));
		EXPECT_EQ(this, none);
		EXPECT_EQ(want, VipSetViAttributes(vi, &a));
	};

	for (unsigned level : { 0u, 3u, 5u, 7u, 8u, 0xffffu }) {
		a = good;
		a.ReliabilityLevel = uint16_t(level);
		refused(VIP_INVALID_RELIABILITY_LEVEL);
	}
	for (unsigned long mtu : { 0ul, (1ul << 30) + 1, ~0ul }) {
		a = good;
		a.MaxTransferSize = mtu;
		refused(VIP_INVALID_MTU);
	}
	a = good;
	a.QoS = this;
	refused(VIP_INVALID_QOS);
	a = good;
	a.Ptag = this;
	refused(VIP_INVALID_PTAG);
	a = good;
	a.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
	a.EnableRdmaRead = VIP_TRUE;
	refused(VIP_INVALID_RDMAREAD);
	/* The failed calls have changed nothing. */
	ASSERT_EQ(VIP_SUCCESS, VipQueryVi(vi, &s, &out, &e[0], &e[1]));
	EXPECT_EQ(0, memcmp(&good, &out, sizeof(out)));
	EXPECT_EQ(VIP_STATE_IDLE, s);
	EXPECT_TRUE(e[0] && e[1]);
	a = good;
	a.EnableRdmaRead = a.EnableRdmaWrite = VIP_TRUE;
	a.MaxTransferSize = 1ul << 30;
	EXPECT_EQ(VIP_SUCCESS, VipSetViAttributes(vi, &a));
	ASSERT_EQ(VIP_SUCCESS, VipQueryVi(vi, &s, &out, &e[0], &e[1]));
	EXPECT_EQ(a.MaxTransferSize, out.MaxTransferSize);
	fake_connect(vi);
	EXPECT_EQ(VIP_INVALID_STATE, VipSetViAttributes(vi, &good));
	fake_break(vi, 0, VIP_ERROR_CONN_LOST);
	EXPECT_EQ(VIP_INVALID_STATE, VipSetViAttributes(vi, &good));
	destroy_vi(vi);
}

TEST_F(Api, ATagHasUses)
{
	VIP_PROTECTION_HANDLE one, two;

	ASSERT_EQ(VIP_SUCCESS, VipCreatePtag(nic, &one));
	ASSERT_EQ(VIP_SUCCESS, VipCreatePtag(nic, &two));
	VIP_VI_HANDLE vi = create_vi(nullptr, nullptr, one);
	VIP_VI_ATTRIBUTES a = attrs(two);
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyPtag(nic, one));
	ASSERT_EQ(VIP_SUCCESS, VipSetViAttributes(vi, &a));
	EXPECT_EQ(VIP_SUCCESS, VipDestroyPtag(nic, one));
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyPtag(nic, two));
	a.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
	a.EnableRdmaRead = VIP_TRUE;
	EXPECT_EQ(VIP_INVALID_RDMAREAD, VipSetViAttributes(vi, &a));
	destroy_vi(vi);
	EXPECT_EQ(VIP_SUCCESS, VipDestroyPtag(nic, two));
}

TEST_F(Api, DestroyViNeedsIdleAndEmpty)
{
	VIP_VI_HANDLE vi = create_vi();
	VIP_DESCRIPTOR *d;

	fake_connect(vi);
	EXPECT_EQ(VIP_INVALID_STATE, VipDestroyVi(vi));
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 0));
	ASSERT_EQ(VIP_SUCCESS, VipDisconnect(vi));
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyVi(vi));
	EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvDone(vi, &d));
	EXPECT_EQ(desc(0), d);
	ASSERT_EQ(VIP_SUCCESS, VipDisconnect(vi));
	EXPECT_EQ(VIP_SUCCESS, VipDestroyVi(vi));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipDestroyVi(vi));
}

TEST_F(Api, ACqOfAnotherNicIsRefused)
{
	VIP_NIC_HANDLE other;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi;
	VIP_VI_ATTRIBUTES a = attrs();

	ASSERT_EQ(VIP_SUCCESS, VipOpenNic("fake", &other));
	ASSERT_EQ(VIP_SUCCESS, VipCreateCQ(other, 1, &cq));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCreateVi(nic, &a, cq, nullptr, &vi));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCreateVi(nic, &a, nullptr, cq, &vi));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipCreateVi(nic, &a, this, nullptr, &vi));
	EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(cq));
	EXPECT_EQ(VIP_SUCCESS, VipCloseNic(other));
}

TEST_F(Api, MaxVi)
{
	VIP_VI_ATTRIBUTES a = attrs();
	std::vector<VIP_VI_HANDLE> vis;
	VIP_VI_HANDLE more;

	for (int i = 0; i < 2000; i++)
		vis.push_back(create_vi());
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipCreateVi(nic, &a, nullptr, nullptr, &more));
	for (VIP_VI_HANDLE vi : vis)
		ASSERT_EQ(VIP_SUCCESS, VipDestroyVi(vi));
}

/* ---- connections ----------------------------------------------------------------------------- */

TEST_F(Api, ConnectWaitWritesNoMoreThanItSays)
{
	Address local(fake_host[0], "port");
	Address remote;
	VIP_VI_ATTRIBUTES offered = attrs(), got = {};
	VIP_CONN_HANDLE conn = nullptr;

	EXPECT_EQ(VIP_TIMEOUT, VipConnectWait(nic, local.get(), 0, remote.get(), &got, &conn));
	EXPECT_TRUE(remote.intact(0));
	fake_offer(&offered, "xyz", 3);
	ASSERT_EQ(VIP_SUCCESS, VipConnectWait(nic, local.get(), 0, remote.get(), &got, &conn));
	EXPECT_EQ(6, remote.get()->HostAddressLen);
	EXPECT_EQ(3, remote.get()->DiscriminatorLen);
	EXPECT_EQ(0, memcmp(remote.bytes + 4, fake_host[1], 6));
	EXPECT_EQ(0, memcmp(remote.bytes + 10, "xyz", 3));
	EXPECT_TRUE(remote.intact(13));
	EXPECT_EQ(offered.MaxTransferSize, got.MaxTransferSize);
	EXPECT_EQ(VIP_SUCCESS, VipConnectReject(conn));
	EXPECT_EQ(1u, fake_rejects());
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectReject(conn));
}

TEST_F(Api, AddressesAreChecked)
{
	VIP_VI_HANDLE vi = create_vi();
	VIP_VI_ATTRIBUTES a = attrs();
	VIP_CONN_HANDLE conn;
	Address good(fake_host[0], "0123456789abcdef");
	Address peer(fake_host[1], "d");
	Address out;
	Address bad[4] = { good, good, good, good };

	bad[0].get()->HostAddressLen = 5;
	bad[1].get()->HostAddressLen = 7;
	bad[2].get()->DiscriminatorLen = 17;
	bad[3].get()->DiscriminatorLen = 65535;
	fake_offer(&a, "", 0);
	for (Address &b : bad) {
		EXPECT_EQ(VIP_INVALID_PARAMETER,
			  VipConnectWait(nic, b.get(), 0, out.get(), &a, &conn));
		EXPECT_EQ(VIP_INVALID_PARAMETER,
			  VipConnectRequest(vi, b.get(), peer.get(), 10, &a));
		EXPECT_EQ(VIP_INVALID_PARAMETER,
			  VipConnectRequest(vi, good.get(), b.get(), 10, &a));
		EXPECT_EQ(VIP_INVALID_PARAMETER,
			  VipConnectPeerRequest(vi, b.get(), peer.get(), 10));
		EXPECT_EQ(VIP_INVALID_PARAMETER,
			  VipConnectPeerRequest(vi, good.get(), b.get(), 10));
	}
	/* An address of another host cannot be served. */
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectWait(nic, peer.get(), 0, out.get(), &a, &conn));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectPeerRequest(vi, peer.get(), good.get(), 10));
	/* NULL and timeout 0. */
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectWait(nic, nullptr, 0, out.get(), &a, &conn));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectWait(nic, good.get(), 0, nullptr, &a, &conn));
	EXPECT_EQ(VIP_INVALID_PARAMETER,
		  VipConnectWait(nic, good.get(), 0, out.get(), nullptr, &conn));
	EXPECT_EQ(VIP_INVALID_PARAMETER,
		  VipConnectWait(nic, good.get(), 0, out.get(), &a, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectRequest(vi, good.get(), peer.get(), 0, &a));
	EXPECT_EQ(VIP_INVALID_PARAMETER,
		  VipConnectRequest(vi, good.get(), peer.get(), 10, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectPeerRequest(vi, good.get(), peer.get(), 0));
	EXPECT_EQ(VIP_STATE_IDLE, state(vi));
	EXPECT_TRUE(out.intact(0));
	destroy_vi(vi);
}

TEST_F(Api, AcceptComparesAttributesAndKeepsTheRequest)
{
	Address local(fake_host[0], "");
	Address remote;
	VIP_VI_ATTRIBUTES offered = attrs(), a;
	VIP_CONN_HANDLE conn;
	VIP_VI_HANDLE vi = create_vi();

	fake_offer(&offered, "", 0);
	ASSERT_EQ(VIP_SUCCESS, VipConnectWait(nic, local.get(), 0, remote.get(), &a, &conn));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectAccept(conn, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectAccept(vi, vi));
	a = offered;
	a.ReliabilityLevel = VIP_SERVICE_RELIABLE_RECEPTION;
	ASSERT_EQ(VIP_SUCCESS, VipSetViAttributes(vi, &a));
	EXPECT_EQ(VIP_INVALID_RELIABILITY_LEVEL, VipConnectAccept(conn, vi));
	a = offered;
	a.MaxTransferSize--;
	ASSERT_EQ(VIP_SUCCESS, VipSetViAttributes(vi, &a));
	EXPECT_EQ(VIP_INVALID_MTU, VipConnectAccept(conn, vi));
	a = offered;
	/* These need not match. */
	a.EnableRdmaWrite = VIP_TRUE;
	ASSERT_EQ(VIP_SUCCESS, VipSetViAttributes(vi, &a));
	fake_connect_error(-ENOSPC);
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipConnectAccept(conn, vi));
	EXPECT_EQ(0u, fake_rejects());
	fake_connect_error(0);
	fake_pending(vi);
	EXPECT_EQ(VIP_INVALID_STATE, VipConnectAccept(conn, vi));
	VipDisconnect(vi);
	EXPECT_EQ(VIP_SUCCESS, VipConnectAccept(conn, vi));
	EXPECT_EQ(VIP_STATE_CONNECTED, state(vi));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectAccept(conn, vi));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectReject(conn));
	destroy_vi(vi);
}

TEST_F(Api, QosMustMatch)
{
	Address local(fake_host[0], "");
	Address remote;
	VIP_VI_ATTRIBUTES offered = attrs(), a;
	VIP_CONN_HANDLE conn;
	VIP_VI_HANDLE vi = create_vi();

	offered.QoS = this;
	fake_offer(&offered, "", 0);
	ASSERT_EQ(VIP_SUCCESS, VipConnectWait(nic, local.get(), 0, remote.get(), &a, &conn));
	EXPECT_EQ(VIP_INVALID_QOS, VipConnectAccept(conn, vi));
	EXPECT_EQ(VIP_SUCCESS, VipConnectReject(conn));
	destroy_vi(vi);
}

TEST_F(Api, AcceptOfAClientThatIsNotThereEndsTheRequest)
{
	Address local(fake_host[0], "");
	Address remote;
	VIP_VI_ATTRIBUTES a = attrs();
	VIP_CONN_HANDLE conn;
	VIP_VI_HANDLE vi = create_vi();

	for (int err : { -ETIMEDOUT, -EHOSTUNREACH }) {
		fake_offer(&a, "", 0);
		ASSERT_EQ(VIP_SUCCESS,
			  VipConnectWait(nic, local.get(), 0, remote.get(), &a, &conn));
		fake_connect_error(err);
		EXPECT_EQ(err == -ETIMEDOUT ? VIP_TIMEOUT : VIP_NOT_REACHABLE,
			  VipConnectAccept(conn, vi));
		EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectReject(conn));
	}
	destroy_vi(vi);
}

TEST_F(Api, UndecidedRequestsAreRefusedAtClose)
{
	Address local(fake_host[0], "");
	Address remote;
	VIP_VI_ATTRIBUTES a = attrs();
	VIP_CONN_HANDLE conn;
	VIP_NIC_HANDLE other;
	VIP_VI_HANDLE vi;

	ASSERT_EQ(VIP_SUCCESS, VipOpenNic("fake", &other));
	for (int i = 0; i < 3; i++) {
		fake_offer(&a, "", 0);
		ASSERT_EQ(VIP_SUCCESS,
			  VipConnectWait(other, local.get(), 0, remote.get(), &a, &conn));
	}
	vi = create_vi();
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectAccept(conn, vi)); /* another NIC's VI */
	EXPECT_EQ(VIP_SUCCESS, VipCloseNic(other));
	EXPECT_EQ(3u, fake_rejects());
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectReject(conn));
	destroy_vi(vi);
}

TEST_F(Api, ConnectRequestAndPeers)
{
	Address local(fake_host[0], "a");
	Address remote(fake_host[1], "b");
	VIP_VI_ATTRIBUTES a = {};
	VIP_VI_HANDLE vi = create_vi();

	for (auto &e :
	     { std::make_pair(-ECONNREFUSED, VIP_REJECT), std::make_pair(-ENOMSG, VIP_NO_MATCH),
	       std::make_pair(-EHOSTUNREACH, VIP_NOT_REACHABLE),
	       std::make_pair(-ETIMEDOUT, VIP_TIMEOUT) }) {
		fake_connect_error(e.first);
		EXPECT_EQ(e.second, VipConnectRequest(vi, local.get(), remote.get(), 10, &a));
		EXPECT_EQ(0u, a.MaxTransferSize);
	}
	fake_connect_error(0);
	EXPECT_EQ(VIP_SUCCESS, VipConnectRequest(vi, local.get(), remote.get(), 10, &a));
	EXPECT_NE(0u, a.MaxTransferSize);
	EXPECT_EQ(VIP_INVALID_STATE, VipConnectRequest(vi, local.get(), remote.get(), 10, &a));
	EXPECT_EQ(VIP_INVALID_STATE, VipConnectPeerRequest(vi, local.get(), remote.get(), 10));
	EXPECT_EQ(VIP_SUCCESS, VipDisconnect(vi));
	EXPECT_EQ(VIP_SUCCESS, VipDisconnect(vi));
	EXPECT_EQ(VIP_INVALID_STATE, VipConnectPeerDone(vi, &a));
	EXPECT_EQ(VIP_SUCCESS, VipConnectPeerRequest(vi, local.get(), remote.get(), 10));
	EXPECT_EQ(VIP_STATE_CONNECT_PENDING, state(vi));
	EXPECT_EQ(VIP_NOT_DONE, VipConnectPeerDone(vi, &a));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectPeerDone(vi, nullptr));
	EXPECT_EQ(VIP_SUCCESS, VipConnectPeerWait(vi, &a));
	EXPECT_EQ(VIP_STATE_CONNECTED, state(vi));
	destroy_vi(vi);
}

TEST_F(Api, ASparseProviderAnswersNotSupported)
{
	VIP_NIC_HANDLE sparse;
	VIP_VI_ATTRIBUTES a = attrs();
	VIP_VI_HANDLE vi;
	VIP_MEM_HANDLE h;
	void *addr;

	ASSERT_EQ(VIP_SUCCESS, VipOpenNic("sparse", &sparse));
	EXPECT_EQ(VIP_ERROR_NOT_SUPPORTED, VipxAllocMem(sparse, 1, nullptr, &addr, &h));
	a.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
	EXPECT_EQ(VIP_ERROR_NOT_SUPPORTED, VipCreateVi(sparse, &a, nullptr, nullptr, &vi));
	EXPECT_EQ(VIP_NOT_DONE, VipxProgress(sparse));
	/* The failed VI left nothing behind. */
	EXPECT_EQ(VIP_SUCCESS, VipCloseNic(sparse));
}

/* ---- names ----------------------------------------------------------------------------------- */

TEST_F(Api, NamesNeedInit)
{
	Address a;
	char name[16];
	VIP_ULONG len = sizeof(name);

	EXPECT_EQ(VIP_ERROR_NAMESERVICE,
		  VipNSGetHostByName(nic, const_cast<char *>("host1"), a.get(), 0));
	ASSERT_EQ(VIP_SUCCESS, VipNSInit(nic, nullptr));
	EXPECT_EQ(VIP_SUCCESS, VipNSGetHostByName(nic, const_cast<char *>("host1"), a.get(), 0));
	EXPECT_EQ(VIP_SUCCESS, VipNSGetHostByAddr(nic, a.get(), name, &len));
	ASSERT_EQ(VIP_SUCCESS, VipNSShutdown(nic));
	EXPECT_EQ(VIP_ERROR_NAMESERVICE, VipNSGetHostByAddr(nic, a.get(), name, &len));
	EXPECT_EQ(VIP_SUCCESS, VipNSShutdown(nic));
}

TEST_F(Api, HostByName)
{
	std::string longest(400, 'x');
	Address a;

	ASSERT_EQ(VIP_SUCCESS, VipNSInit(nic, nullptr));
	a.get()->HostAddressLen = 0; /* it is no capacity */
	a.get()->DiscriminatorLen = 9;
	for (const char *name : { "host2", "host2.example.org" }) {
		memset(a.bytes + 4, 0xee, 10);
		ASSERT_EQ(VIP_SUCCESS,
			  VipNSGetHostByName(nic, const_cast<char *>(name), a.get(), 0));
		EXPECT_EQ(6, a.get()->HostAddressLen);
		EXPECT_EQ(9, a.get()->DiscriminatorLen);
		EXPECT_EQ(0, memcmp(a.bytes + 4, fake_host[2], 6));
		EXPECT_TRUE(a.intact(10));
	}
	for (const char *name : { "host9", "", ".", ".org", "other.host2", longest.c_str() })
		EXPECT_EQ(VIP_ERROR_NAMESERVICE,
			  VipNSGetHostByName(nic, const_cast<char *>(name), a.get(), 0))
			<< name;
	EXPECT_EQ(VIP_ERROR_NAMESERVICE,
		  VipNSGetHostByName(nic, const_cast<char *>("host2"), a.get(), 1));
	EXPECT_EQ(VIP_ERROR_NAMESERVICE,
		  VipNSGetHostByName(nic, const_cast<char *>("host2"), a.get(), 1ul << 32));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipNSGetHostByName(nic, nullptr, a.get(), 0));
	EXPECT_EQ(VIP_INVALID_PARAMETER,
		  VipNSGetHostByName(nic, const_cast<char *>("host2"), nullptr, 0));
}

TEST_F(Api, HostByAddr)
{
	Address a(fake_host[3], "");
	char name[16] = "untouched";
	VIP_ULONG len = 5;

	ASSERT_EQ(VIP_SUCCESS, VipNSInit(nic, nullptr));
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipNSGetHostByAddr(nic, a.get(), name, &len));
	EXPECT_EQ(6u, len);
	EXPECT_STREQ("untouched", name);
	EXPECT_EQ(VIP_SUCCESS, VipNSGetHostByAddr(nic, a.get(), name, &len));
	EXPECT_STREQ("host3", name);
	EXPECT_EQ(5u, len);
	a.bytes[4] = 9;
	EXPECT_EQ(VIP_ERROR_NAMESERVICE, VipNSGetHostByAddr(nic, a.get(), name, &len));
	a.get()->HostAddressLen = 5;
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(nic, a.get(), name, &len));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(nic, nullptr, name, &len));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(nic, a.get(), nullptr, &len));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(nic, a.get(), name, nullptr));
}

TEST_F(Api, Autodiscovery)
{
	Address buffer[4];
	VIP_NET_ADDRESS *array[4];
	VIP_AUTODISCOVERY_LIST list = {};
	const int nearest_first[] = { 0, 2, 3, 1 };

	for (int i = 0; i < 4; i++)
		array[i] = buffer[i].get();
	list.NumberOfHops = 9;
	ASSERT_EQ(VIP_SUCCESS, VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list));
	EXPECT_EQ(4u, list.NumAdAddrs);
	list.ADAddrArray = array;
	ASSERT_EQ(VIP_SUCCESS, VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list));
	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(6, array[i]->HostAddressLen);
		EXPECT_EQ(0, array[i]->DiscriminatorLen);
		EXPECT_EQ(0, memcmp(buffer[i].bytes + 4, fake_host[nearest_first[i]], 6));
		EXPECT_TRUE(buffer[i].intact(10));
	}
	for (unsigned hops : { 0u, 1u, 2u }) {
		static const unsigned count[] = { 1, 3, 4 };

		list.NumberOfHops = hops;
		list.NumAdAddrs = 4;
		ASSERT_EQ(VIP_SUCCESS,
			  VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list));
		EXPECT_EQ(count[hops], list.NumAdAddrs);
	}
	buffer[1] = Address();
	list.NumAdAddrs = 1;
	EXPECT_EQ(VIP_ERROR_RESOURCE,
		  VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list));
	EXPECT_EQ(4u, list.NumAdAddrs);
	EXPECT_TRUE(buffer[1].intact(0));
	array[2] = nullptr;
	EXPECT_EQ(VIP_INVALID_PARAMETER,
		  VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list));
	EXPECT_EQ(VIP_INVALID_PARAMETER,
		  VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipQuerySystemManagementInfo(nic, 2, &list));
}

/* ---- extensions ------------------------------------------------------------------------------ */

TEST_F(Api, Route)
{
	struct {
		VIPX_ROUTE route;
		uint8_t behind[64];
	} out;
	Address a(fake_host[1], "");

	memset(&out, 0x5a, sizeof(out));
	a.get()->DiscriminatorLen = 60000; /* ignored */
	out.route.Size = sizeof(VIPX_ROUTE) - 1;
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxQueryRoute(nic, a.get(), &out.route));
	out.route.Size = sizeof(out);
	ASSERT_EQ(VIP_SUCCESS, VipxQueryRoute(nic, a.get(), &out.route));
	EXPECT_EQ(sizeof(out), out.route.Size);
	EXPECT_EQ(2u, out.route.Hops);
	EXPECT_STREQ("host1", out.route.Host);
	EXPECT_STREQ("", out.route.Reason);
	for (uint8_t b : out.behind)
		EXPECT_EQ(0x5a, b);
	a.get()->HostAddressLen = 4;
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxQueryRoute(nic, a.get(), &out.route));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxQueryRoute(nic, nullptr, &out.route));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxQueryRoute(nic, a.get(), nullptr));
}

TEST_F(Api, CountersArguments)
{
	VIP_NIC_HANDLE other;
	VIP_VI_HANDLE vi = create_vi();
	VIPX_COUNTERS c = {};

	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxQueryCounters(nic, vi, &c));
	c.Size = sizeof(c);
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxQueryCounters(nic, vi, nullptr));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxQueryCounters(nic, nic, &c));
	ASSERT_EQ(VIP_SUCCESS, VipOpenNic("fake", &other));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxQueryCounters(other, vi, &c));
	EXPECT_EQ(VIP_SUCCESS, VipCloseNic(other));
	destroy_vi(vi);
}

TEST_F(Api, Texts)
{
	const char *release = nullptr;
	VIP_ULONG version = 0;
	char text[160];

	EXPECT_STREQ("VIP_SUCCESS", VipxErrorString(VIP_SUCCESS));
	EXPECT_STREQ("VIP_ERROR_NOT_SUPPORTED", VipxErrorString(VIP_ERROR_NOT_SUPPORTED));
	EXPECT_NE(nullptr, VipxErrorString(static_cast<VIP_RETURN>(17)));
	EXPECT_EQ(VIP_SUCCESS, VipxStatusString(VIP_STATUS_DONE | VIP_STATUS_LENGTH_ERROR |
							VIP_STATUS_OP_RECEIVE,
						text, sizeof(text)));
	EXPECT_STREQ("DONE|LENGTH_ERROR|OP_RECEIVE", text);
	EXPECT_EQ(VIP_SUCCESS, VipxStatusString(0, text, 1));
	EXPECT_STREQ("", text);
	EXPECT_EQ(VIP_SUCCESS, VipxStatusString(VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE |
							VIP_STATUS_IMMEDIATE,
						text, sizeof(text)));
	EXPECT_STREQ("DONE|OP_REMOTE_RDMA_WRITE|IMMEDIATE", text);
	EXPECT_EQ(VIP_ERROR_RESOURCE, VipxStatusString(VIP_STATUS_DONE, text, 6));
	EXPECT_STREQ("DONE|", text);
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxStatusString(1, nullptr, 8));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxStatusString(1, text, 0));
	EXPECT_EQ(VIP_SUCCESS, VipxQueryVersion(&version, &release));
	EXPECT_EQ(VIP_ULONG(VIPX_VERSION), version);
	EXPECT_NE(nullptr, release);
	EXPECT_EQ(VIP_SUCCESS, VipxQueryVersion(nullptr, nullptr));
}

/* Threads post, take, query and destroy the same VIs: refused or done, never a crash. */
TEST_F(Api, RacesWithDestroy)
{
	constexpr int kRounds = 400;
	std::atomic<VIP_VI_HANDLE> shared{ nullptr };
	std::atomic<bool> stop{ false };
	std::vector<std::thread> threads;

	for (int t = 0; t < 2; t++) {
		threads.emplace_back([&, t] {
			VIP_DESCRIPTOR *d;
			VIP_VI_STATE s;
			VIP_VI_ATTRIBUTES a;
			VIP_BOOLEAN e[2];

			while (!stop) {
				VIP_VI_HANDLE vi = shared;

				if (vi == nullptr)
					continue;
				VipPostSend(vi, desc(100 + t), handle);
				VipSendDone(vi, &d);
				VipRecvDone(vi, &d);
				VipQueryVi(vi, &s, &a, &e[0], &e[1]);
				VipRecvWait(vi, 0, &d);
			}
		});
	}
	simple(100, 8);
	simple(101, 8);
	for (int i = 0; i < kRounds; i++) {
		VIP_VI_HANDLE vi = create_vi();
		VIP_DESCRIPTOR *d;
		VIP_RETURN rc;

		shared = vi;
		std::this_thread::yield();
		while ((rc = VipDestroyVi(vi)) == VIP_ERROR_RESOURCE)
			VipSendDone(vi, &d);
		ASSERT_EQ(VIP_SUCCESS, rc);
	}
	stop = true;
	for (auto &t : threads)
		t.join();
}

} // namespace
