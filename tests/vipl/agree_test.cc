/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VIPL 5.3 and 5.4: the attributes on which two VIs must agree, each pair of values, by each way
 * to connect, with the result at both sides.
 */
#include "harness.h"

using namespace conf;

namespace {

constexpr size_t kSize = 7000;

struct Pair {
	std::string what;
	VIP_VI_ATTRIBUTES a, b;
	VIP_RETURN rc;
};

/* Levels and sizes in every combination; if both differ the level is reported. */
std::vector<Pair> pairs()
{
	std::vector<Pair> all;
	for (auto &x : levels())
		for (auto &y : levels())
			for (size_t size :
			     { kSize, kSize - 1, kSize + 1, size_t(1), size_t(1) << 30 }) {
				VIP_VI_ATTRIBUTES a = vi_attrs(x.value, kSize),
						  b = vi_attrs(y.value, size);
				/* These need not agree. */
				a.EnableRdmaWrite = VIP_TRUE;
				b.EnableRdmaRead = offers_read(y);
				all.push_back({ std::string(x.name) + " " + std::to_string(kSize) +
							" and " + y.name + " " +
							std::to_string(size),
						a, b,
						x.value != y.value ? VIP_INVALID_RELIABILITY_LEVEL
						: size != kSize	   ? VIP_INVALID_MTU
								   : VIP_SUCCESS });
			}
	return all;
}

void expect_same(const VIP_VI_ATTRIBUTES &want, const VIP_VI_ATTRIBUTES &got)
{
	EXPECT_EQ(want.ReliabilityLevel, got.ReliabilityLevel);
	EXPECT_EQ(want.MaxTransferSize, got.MaxTransferSize);
	EXPECT_EQ(nullptr, got.QoS);
	EXPECT_EQ(!!want.EnableRdmaWrite, !!got.EnableRdmaWrite);
	EXPECT_EQ(!!want.EnableRdmaRead, !!got.EnableRdmaRead);
}

enum After { REJECT, LEAVE, MEND, PATHS };
const char *const kAfter[] = { "then rejected: VIP_REJECT", "then left alone: VIP_TIMEOUT",
			       "then mended: VIP_SUCCESS" };

/* A client with attributes a sends a request; a server with b tries to accept it. */
void try_accept(const Pair &p, After after)
{
	Vi client(nic(0), p.a), server(nic(1), p.b);
	std::string disc = unique_disc();
	VIP_VI_ATTRIBUTES seen{}, theirs{};
	VIP_CONN_HANDLE conn = nullptr;
	VIP_RETURN requested = VIP_NOT_DONE;
	std::thread asker([&] {
		Addr local(nic(0), "c"), remote(nic(1), disc);
		VIP_ULONG ms = p.rc != VIP_SUCCESS && after == LEAVE ? 30 : kWaitMs;
		eventually([&] {
			requested = VipConnectRequest(client, local, remote, ms, &theirs);
			return requested != VIP_NO_MATCH;
		});
	});
	Addr here(nic(1), disc), from(nic(1), "");
	EXPECT_RC(VIP_SUCCESS, VipConnectWait(nic(1).h, here, kWaitMs, from, &seen, &conn));
	expect_same(p.a, seen);
	EXPECT_RC(p.rc, VipConnectAccept(conn, server));
	VIP_VI_ATTRIBUTES mended = p.b;
	mended.ReliabilityLevel = p.a.ReliabilityLevel;
	mended.MaxTransferSize = p.a.MaxTransferSize;
	mended.EnableRdmaRead = VIP_FALSE;
	VIP_RETURN expected = VIP_SUCCESS;
	if (p.rc != VIP_SUCCESS) {
		EXPECT_EQ(VIP_STATE_IDLE, server.state());
		if (after == REJECT) {
			EXPECT_RC(VIP_SUCCESS, VipConnectReject(conn));
			expected = VIP_REJECT;
		} else if (after == MEND) {
			EXPECT_RC(VIP_SUCCESS, VipSetViAttributes(server, &mended));
			EXPECT_RC(VIP_SUCCESS, VipConnectAccept(conn, server));
		} else {
			expected = VIP_TIMEOUT;
		}
	}
	asker.join();
	EXPECT_RC(expected, requested);
	EXPECT_EQ(expected == VIP_SUCCESS ? VIP_STATE_CONNECTED : VIP_STATE_IDLE, client.state());
	if (expected == VIP_SUCCESS)
		expect_same(p.rc == VIP_SUCCESS ? p.b : mended, theirs);
	if (expected == VIP_TIMEOUT)
		EXPECT_RC(VIP_SUCCESS, VipConnectReject(conn));
}

void try_peers(const Pair &p, bool a_first)
{
	Vi va(nic(0), p.a), vb(nic(1), p.b);
	Addr a(nic(0), unique_disc()), b(nic(1), unique_disc());
	VIP_VI_ATTRIBUTES seen_a{}, seen_b{};
	for (int i = 0; i < 2; i++) {
		if ((i == 0) == a_first)
			EXPECT_RC(VIP_SUCCESS, VipConnectPeerRequest(va, a, b, kWaitMs));
		else
			EXPECT_RC(VIP_SUCCESS, VipConnectPeerRequest(vb, b, a, kWaitMs));
	}
	EXPECT_RC(p.rc, VipConnectPeerWait(va, &seen_a));
	EXPECT_RC(p.rc, VipConnectPeerWait(vb, &seen_b));
	VIP_VI_STATE state = p.rc == VIP_SUCCESS ? VIP_STATE_CONNECTED : VIP_STATE_IDLE;
	EXPECT_EQ(state, va.state());
	EXPECT_EQ(state, vb.state());
	if (p.rc == VIP_SUCCESS) {
		expect_same(p.b, seen_a);
		expect_same(p.a, seen_b);
		return;
	}
	EXPECT_EQ(0u, seen_a.MaxTransferSize) << "written only on success";
	EXPECT_EQ(0u, seen_b.MaxTransferSize) << "written only on success";
	EXPECT_RC(VIP_INVALID_STATE, VipConnectPeerDone(va, &seen_a)) << "once";
}

} // namespace

TEST(Agree, ClientAndServer)
{
	for (auto &p : pairs())
		for (int after = 0; after < PATHS; after++) {
			if (p.rc == VIP_SUCCESS && after != 0)
				continue;
			RULE("VIPL 5.3 VipConnectAccept: " + p.what + ": " + name_of(p.rc) +
			     (p.rc == VIP_SUCCESS ? "" : std::string(", ") + kAfter[after]));
			try_accept(p, static_cast<After>(after));
		}
}

TEST(Agree, Peers)
{
	for (auto &p : pairs())
		for (int order = 0; order < 2; order++) {
			RULE("VIPL 5.4: " + p.what + ": " + name_of(p.rc) + " at both sides");
			try_peers(p, order == 0);
		}
}

TEST(Agree, PeersAfterTheyMended)
{
	RULE("VIPL 5.4: after a mismatch the VIs agree and connect at the same addresses");
	Vi va(nic(0), vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY, 100));
	Vi vb(nic(1), vi_attrs(VIP_SERVICE_RELIABLE_RECEPTION, 200));
	Addr a(nic(0), unique_disc()), b(nic(1), unique_disc());
	VIP_VI_ATTRIBUTES seen, next = vb.attrs;
	for (VIP_RETURN rc : { VIP_INVALID_RELIABILITY_LEVEL, VIP_INVALID_MTU, VIP_SUCCESS }) {
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerRequest(va, a, b, kWaitMs));
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerRequest(vb, b, a, kWaitMs));
		EXPECT_RC(rc, VipConnectPeerWait(va, &seen));
		EXPECT_RC(rc, VipConnectPeerWait(vb, &seen));
		if (rc == VIP_INVALID_RELIABILITY_LEVEL)
			next.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
		else
			next.MaxTransferSize = 100;
		if (rc != VIP_SUCCESS)
			EXPECT_RC(VIP_SUCCESS, VipSetViAttributes(vb, &next));
	}
}

/* No VI has a quality of service, so no two differ; see tests/agent for peers that have one. */
TEST(Agree, QualityOfServiceIsNone)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.2: a QoS that is not NULL is refused before it could differ, ") +
		     level.name);
		VIP_VI_ATTRIBUTES attrs = vi_attrs(level.value);
		attrs.QoS = &attrs;
		VIP_VI_HANDLE h;
		EXPECT_RC(VIP_INVALID_QOS, VipCreateVi(nic(0).h, &attrs, nullptr, nullptr, &h));
		Vi vi(nic(0), vi_attrs(level.value));
		EXPECT_RC(VIP_INVALID_QOS, VipSetViAttributes(vi, &attrs));
	}
}

TEST(Agree, LocalAddressesOfWrongLength)
{
	std::string own = Addr(nic(0), "").host(), server = Addr(nic(1), "").host();
	for (auto &bad : { std::string(), own.substr(1), own + "x" })
		for (int remote = 0; remote < 2; remote++) {
			RULE(std::string("vipl.h: a ") + (remote ? "remote" : "local") +
			     " host address of " + std::to_string(bad.size()) +
			     " bytes is VIP_INVALID_PARAMETER for VipConnectRequest and "
			     "VipConnectPeerRequest");
			Vi vi(nic(0), vi_attrs(VIP_SERVICE_UNRELIABLE));
			Addr mine(remote ? own : bad, "c"), theirs(remote ? bad : server, "nobody");
			VIP_VI_ATTRIBUTES seen;
			EXPECT_RC(VIP_INVALID_PARAMETER,
				  VipConnectRequest(vi, mine, theirs, kWaitMs, &seen));
			EXPECT_RC(VIP_INVALID_PARAMETER,
				  VipConnectPeerRequest(vi, mine, theirs, kWaitMs));
			EXPECT_EQ(VIP_STATE_IDLE, vi.state());
		}
}
