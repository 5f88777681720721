/* SPDX-License-Identifier: BSD-2-Clause */
/* VIPL 5.2 and 6: creating, changing, querying and destroying VIs, in every state. */
#include "harness.h"

using namespace conf;

namespace {

struct Bad {
	std::string rule;
	VIP_VI_ATTRIBUTES attrs;
	VIP_RETURN rc;
};

/* Every attribute wrong in every way, with otherwise good ones of `level`. */
std::vector<Bad> bad_attributes(const Level &level, VIP_PROTECTION_HANDLE foreign,
				VIP_PROTECTION_HANDLE stale)
{
	const VIP_NIC_ATTRIBUTES &na = nic(0).attrs;
	std::vector<Bad> all;
	auto add = [&](const std::string &rule, VIP_RETURN rc, auto change) {
		VIP_VI_ATTRIBUTES attrs = vi_attrs(level.value);
		change(attrs);
		all.push_back({ rule + ", " + level.name, attrs, rc });
	};
	for (unsigned value : { 0u, 3u, 5u, 6u, 7u, 8u, 0x10u, 0x8001u, 0xffffu })
		add("ReliabilityLevel " + std::to_string(value) +
			    ", not exactly one supported level, is VIP_INVALID_RELIABILITY_LEVEL",
		    VIP_INVALID_RELIABILITY_LEVEL, [&](auto &a) {
			    a.ReliabilityLevel = static_cast<VIP_RELIABILITY_LEVEL>(value);
		    });
	add("MaxTransferSize 0 is VIP_INVALID_MTU", VIP_INVALID_MTU,
	    [](auto &a) { a.MaxTransferSize = 0; });
	for (VIP_ULONG size : { na.MaxTransferSize + 1, 0xffffffffUL, ~0UL })
		add("MaxTransferSize above the NIC's is VIP_INVALID_MTU", VIP_INVALID_MTU,
		    [&](auto &a) { a.MaxTransferSize = size; });
	add("QoS that is not NULL is VIP_INVALID_QOS", VIP_INVALID_QOS,
	    [](auto &a) { a.QoS = reinterpret_cast<VIP_QOS>(1); });
	add("Ptag of another open is VIP_INVALID_PTAG", VIP_INVALID_PTAG,
	    [&](auto &a) { a.Ptag = foreign; });
	add("Ptag destroyed before is VIP_INVALID_PTAG", VIP_INVALID_PTAG,
	    [&](auto &a) { a.Ptag = stale; });
	add("Ptag that never was is VIP_INVALID_PTAG", VIP_INVALID_PTAG,
	    [](auto &a) { a.Ptag = reinterpret_cast<VIP_PROTECTION_HANDLE>(0x1234); });
	add("Ptag that is a NIC handle is VIP_INVALID_PTAG", VIP_INVALID_PTAG,
	    [](auto &a) { a.Ptag = nic(0).h; });
	if (!offers_read(level))
		add("EnableRdmaRead at a level without RDMA read is VIP_INVALID_RDMAREAD",
		    VIP_INVALID_RDMAREAD, [](auto &a) { a.EnableRdmaRead = VIP_TRUE; });
	return all;
}

void expect_attributes(VIP_VI_HANDLE vi, const VIP_VI_ATTRIBUTES &want)
{
	VIP_VI_STATE state;
	VIP_VI_ATTRIBUTES got{};
	VIP_BOOLEAN s, r;
	ASSERT_RC(VIP_SUCCESS, VipQueryVi(vi, &state, &got, &s, &r));
	EXPECT_EQ(want.ReliabilityLevel, got.ReliabilityLevel);
	EXPECT_EQ(want.MaxTransferSize, got.MaxTransferSize);
	EXPECT_EQ(want.QoS, got.QoS);
	EXPECT_EQ(want.Ptag, got.Ptag);
	EXPECT_EQ(!!want.EnableRdmaWrite, !!got.EnableRdmaWrite);
	EXPECT_EQ(!!want.EnableRdmaRead, !!got.EnableRdmaRead);
}

} // namespace

TEST(Vi, CreateWithBadAttributes)
{
	Nic other(0);
	Ptag foreign(other);
	VIP_PROTECTION_HANDLE stale;
	ASSERT_RC(VIP_SUCCESS, VipCreatePtag(nic(0).h, &stale));
	ASSERT_RC(VIP_SUCCESS, VipDestroyPtag(nic(0).h, stale));
	for (auto &level : levels())
		for (auto &bad : bad_attributes(level, foreign, stale)) {
			RULE("VIPL 5.2 VipCreateVi: " + bad.rule);
			VIP_VI_HANDLE vi = &bad;
			EXPECT_RC(bad.rc, VipCreateVi(nic(0).h, &bad.attrs, nullptr, nullptr, &vi));
		}
}

TEST(Vi, SetBadAttributesChangesNothing)
{
	Nic other(0);
	Ptag foreign(other);
	VIP_PROTECTION_HANDLE stale;
	ASSERT_RC(VIP_SUCCESS, VipCreatePtag(nic(0).h, &stale));
	ASSERT_RC(VIP_SUCCESS, VipDestroyPtag(nic(0).h, stale));
	for (auto &level : levels())
		for (auto &bad : bad_attributes(level, foreign, stale)) {
			RULE("VIPL 5.2 VipSetViAttributes: " + bad.rule + ", and nothing changes");
			VIP_VI_ATTRIBUTES before = vi_attrs(VIP_SERVICE_UNRELIABLE, 777);
			before.EnableRdmaWrite = VIP_TRUE;
			Vi vi(nic(0), before);
			EXPECT_RC(bad.rc, VipSetViAttributes(vi, &bad.attrs));
			expect_attributes(vi, before);
		}
}

TEST(Vi, CreateWithGoodAttributes)
{
	Ptag tag(nic(0));
	const VIP_ULONG sizes[] = { 1, 4096, 65536, nic(0).attrs.MaxTransferSize };
	for (auto &level : levels())
		for (VIP_ULONG size : sizes)
			for (int bits = 0; bits < 8; bits++) {
				VIP_VI_ATTRIBUTES attrs =
					vi_attrs(level.value, size, bits & 1 ? tag.h : nullptr);
				attrs.EnableRdmaWrite = (bits & 2) != 0;
				attrs.EnableRdmaRead = (bits & 4) != 0;
				if (attrs.EnableRdmaRead && !offers_read(level))
					continue;
				RULE(std::string(
					     "VIPL 5.2 VipCreateVi: creates an Idle VI with these attributes, ") +
				     level.name);
				Vi vi(nic(0), attrs);
				EXPECT_EQ(VIP_STATE_IDLE, vi.state());
				expect_attributes(vi, attrs);
			}
}

TEST(Vi, SetGoodAttributes)
{
	Ptag tag(nic(0));
	for (auto &from : levels())
		for (auto &to : levels()) {
			RULE(std::string("VIPL 5.2 VipSetViAttributes: an Idle VI changes from ") +
			     from.name + " to " + to.name);
			Vi vi(nic(0), vi_attrs(from.value));
			VIP_VI_ATTRIBUTES attrs = vi_attrs(to.value, 12345, tag);
			attrs.EnableRdmaWrite = VIP_TRUE;
			attrs.EnableRdmaRead = offers_read(to);
			EXPECT_RC(VIP_SUCCESS, VipSetViAttributes(vi, &attrs));
			expect_attributes(vi, attrs);
		}
}

TEST(Vi, QueuesAndTheirCqs)
{
	Cq one(nic(0)), two(nic(0));
	struct Case {
		const char *what;
		VIP_CQ_HANDLE scq, rcq;
	} all[] = { { "without CQ", nullptr, nullptr },
		    { "with a send CQ", one, nullptr },
		    { "with a receive CQ", nullptr, one },
		    { "with the same CQ twice", one, one },
		    { "with two CQs", one, two } };
	for (auto &level : levels())
		for (auto &c : all) {
			RULE(std::string("VIPL 5.2 VipCreateVi: ") + c.what + ", " + level.name);
			Vi vi(nic(0), vi_attrs(level.value), c.scq, c.rcq);
			VIP_DESCRIPTOR *desc;
			/* Wait is for queues without a CQ (VIPL 5.5). */
			EXPECT_RC(c.scq ? VIP_INVALID_PARAMETER : VIP_DESCRIPTOR_ERROR,
				  VipSendWait(vi, 0, &desc));
			EXPECT_RC(c.rcq ? VIP_INVALID_PARAMETER : VIP_DESCRIPTOR_ERROR,
				  VipRecvWait(vi, 0, &desc));
		}
}

TEST(Vi, CqArgumentsThatAreNoCq)
{
	Ptag tag(nic(0));
	VIP_VI_ATTRIBUTES attrs = vi_attrs(VIP_SERVICE_UNRELIABLE);
	VIP_CQ_HANDLE stale;
	ASSERT_RC(VIP_SUCCESS, VipCreateCQ(nic(0).h, 4, &stale));
	ASSERT_RC(VIP_SUCCESS, VipDestroyCQ(stale));
	for (void *wrong : { static_cast<void *>(nic(0).h), static_cast<void *>(tag.h),
			     reinterpret_cast<void *>(64), static_cast<void *>(stale) })
		for (int queue = 0; queue < 2; queue++) {
			RULE("VIPL 5.2 VipCreateVi: a CQ argument that is no CQ is VIP_INVALID_PARAMETER");
			VIP_VI_HANDLE vi;
			EXPECT_RC(VIP_INVALID_PARAMETER,
				  VipCreateVi(nic(0).h, &attrs, queue ? nullptr : wrong,
					      queue ? wrong : nullptr, &vi));
		}
}

/* ---- function x state x level --------------------------------------------------------------- */

TEST(ViStates, QueryVi)
{
	for (auto &level : levels())
		for (auto state : states()) {
			RULE(std::string("VIPL 5.2 VipQueryVi: tells state and empty queues in ") +
			     state_name(state) + ", " + level.name);
			ViIn in(state, level.value);
			VIP_VI_STATE got;
			VIP_VI_ATTRIBUTES attrs;
			VIP_BOOLEAN s = 0, r = 0;
			EXPECT_RC(VIP_SUCCESS, VipQueryVi(in.vi(), &got, &attrs, &s, &r));
			EXPECT_EQ(state, got);
			EXPECT_EQ(VIP_TRUE, s);
			EXPECT_EQ(VIP_TRUE, r);
		}
}

TEST(ViStates, SetViAttributes)
{
	for (auto &level : levels())
		for (auto state : states()) {
			RULE(std::string("VIPL 5.2 VipSetViAttributes: only in Idle, here ") +
			     state_name(state) + ", " + level.name);
			ViIn in(state, level.value);
			VIP_VI_ATTRIBUTES attrs = vi_attrs(level.value, 4321);
			EXPECT_RC(state == VIP_STATE_IDLE ? VIP_SUCCESS : VIP_INVALID_STATE,
				  VipSetViAttributes(in.vi(), &attrs));
			EXPECT_EQ(state, in.vi().state());
		}
}

TEST(ViStates, DestroyVi)
{
	for (auto &level : levels())
		for (auto state : states()) {
			if (state == VIP_STATE_IDLE)
				continue;
			RULE(std::string("VIPL 5.2 VipDestroyVi: VIP_INVALID_STATE in ") +
			     state_name(state) + ", " + level.name);
			ViIn in(state, level.value);
			EXPECT_RC(VIP_INVALID_STATE, VipDestroyVi(in.vi()));
			EXPECT_EQ(state, in.vi().state());
		}
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.2 VipDestroyVi: an Idle VI with empty queues goes, ") +
		     level.name);
		VIP_VI_ATTRIBUTES attrs = vi_attrs(level.value);
		VIP_VI_HANDLE vi;
		ASSERT_RC(VIP_SUCCESS, VipCreateVi(nic(0).h, &attrs, nullptr, nullptr, &vi));
		EXPECT_RC(VIP_SUCCESS, VipDestroyVi(vi));
		EXPECT_RC(VIP_INVALID_PARAMETER, VipDestroyVi(vi));
	}
}

TEST(ViStates, DestroyViWithDescriptors)
{
	for (auto &level : levels())
		for (int recv = 0; recv < 2; recv++) {
			RULE(std::string(
				     "VIPL 5.2 VipDestroyVi: VIP_ERROR_RESOURCE while descriptors are on the ") +
			     (recv ? "receive" : "send") + " queue, " + level.name);
			Vi vi(nic(0), vi_attrs(level.value));
			Arena arena(nic(0));
			VIP_DESCRIPTOR *desc = make(arena, VIP_CONTROL_OP_SENDRECV, {}),
				       *got = nullptr;
			EXPECT_RC(VIP_SUCCESS, recv ? VipPostRecv(vi, desc, arena.mem.h)
						    : VipPostSend(vi, desc, arena.mem.h));
			EXPECT_RC(VIP_ERROR_RESOURCE, VipDestroyVi(vi));
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(vi));
			/* Flushed, but not yet taken. */
			EXPECT_RC(VIP_ERROR_RESOURCE, VipDestroyVi(vi));
			EXPECT_RC(VIP_DESCRIPTOR_ERROR,
				  recv ? VipRecvDone(vi, &got) : VipSendDone(vi, &got));
			EXPECT_EQ(desc, got);
			vi.drain();
		}
}

TEST(ViStates, QueryViQueueEmptiness)
{
	for (auto &level : levels()) {
		Vi vi(nic(0), vi_attrs(level.value));
		Arena arena(nic(0));
		VIP_VI_STATE state;
		VIP_VI_ATTRIBUTES attrs;
		VIP_BOOLEAN s, r;
		VIP_DESCRIPTOR *got;
		RULE(std::string(
			     "VIPL 5.2 VipQueryVi: a queue is empty when nothing posted is left to take, ") +
		     level.name);
		ASSERT_RC(VIP_SUCCESS, VipPostRecv(vi, make(arena, 0, {}), arena.mem.h));
		VipQueryVi(vi, &state, &attrs, &s, &r);
		EXPECT_TRUE(s);
		EXPECT_FALSE(r);
		ASSERT_RC(VIP_SUCCESS, VipPostSend(vi, make(arena, 0, {}), arena.mem.h));
		VipQueryVi(vi, &state, &attrs, &s, &r);
		EXPECT_FALSE(s) << "a completed descriptor stays on the queue until taken";
		VipSendDone(vi, &got);
		VipQueryVi(vi, &state, &attrs, &s, &r);
		EXPECT_TRUE(s);
	}
}

TEST(ViStates, Disconnect)
{
	for (auto &level : levels())
		for (auto state : states()) {
			RULE(std::string("VIPL 5.3 VipDisconnect: any state to Idle, from ") +
			     state_name(state) + ", " + level.name);
			ViIn in(state, level.value);
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(in.vi()));
			EXPECT_EQ(VIP_STATE_IDLE, in.vi().state());
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(in.vi()));
			EXPECT_EQ(VIP_STATE_IDLE, in.vi().state());
		}
}

TEST(ViStates, ConnectRequest)
{
	for (auto &level : levels())
		for (auto state : states()) {
			RULE(std::string("VIPL 5.3 VipConnectRequest: only in Idle, here ") +
			     state_name(state) + ", " + level.name);
			ViIn in(state, level.value);
			Addr local(nic(0), "c"), remote(nic(1), "nobody waits here");
			VIP_VI_ATTRIBUTES attrs;
			EXPECT_RC(state == VIP_STATE_IDLE ? VIP_NO_MATCH : VIP_INVALID_STATE,
				  VipConnectRequest(in.vi(), local, remote, kWaitMs, &attrs));
			EXPECT_EQ(state, in.vi().state());
		}
}

TEST(ViStates, ConnectPeerRequest)
{
	for (auto &level : levels())
		for (auto state : states()) {
			RULE(std::string("VIPL 5.4 VipConnectPeerRequest: only in Idle, here ") +
			     state_name(state) + ", " + level.name);
			ViIn in(state, level.value);
			Addr local(nic(0), unique_disc()), remote(nic(1), unique_disc());
			EXPECT_RC(state == VIP_STATE_IDLE ? VIP_SUCCESS : VIP_INVALID_STATE,
				  VipConnectPeerRequest(in.vi(), local, remote, kWaitMs));
		}
}

TEST(ViStates, ConnectPeerDone)
{
	for (auto &level : levels())
		for (auto state : states()) {
			RULE(std::string(
				     "VIPL 5.4 VipConnectPeerDone: without a request VIP_INVALID_STATE, here ") +
			     state_name(state) + ", " + level.name);
			ViIn in(state, level.value);
			VIP_VI_ATTRIBUTES attrs;
			bool pending = state == VIP_STATE_CONNECT_PENDING;
			EXPECT_RC(pending ? VIP_NOT_DONE : VIP_INVALID_STATE,
				  VipConnectPeerDone(in.vi(), &attrs));
			if (!pending)
				EXPECT_RC(VIP_INVALID_STATE, VipConnectPeerWait(in.vi(), &attrs));
		}
}

TEST(ViStates, ConnectAccept)
{
	for (auto &level : levels())
		for (auto state : states()) {
			RULE(std::string("VIPL 5.3 VipConnectAccept: the VI must be Idle, here ") +
			     state_name(state) + ", " + level.name);
			ViIn in(state, level.value);
			Vi client(nic(1), vi_attrs(level.value));
			std::string disc = unique_disc();
			VIP_RETURN requested = VIP_NOT_DONE;
			std::thread asker([&] {
				Addr local(nic(1), "c"), remote(nic(0), disc);
				VIP_VI_ATTRIBUTES attrs;
				eventually([&] {
					requested = VipConnectRequest(client, local, remote,
								      kWaitMs, &attrs);
					return requested != VIP_NO_MATCH;
				});
			});
			Addr local(nic(0), disc), from(nic(0), "");
			VIP_VI_ATTRIBUTES attrs;
			VIP_CONN_HANDLE conn;
			VIP_RETURN rc =
				VipConnectWait(nic(0).h, local, kWaitMs, from, &attrs, &conn);
			EXPECT_RC(VIP_SUCCESS, rc);
			if (rc == VIP_SUCCESS) {
				bool idle = state == VIP_STATE_IDLE;
				EXPECT_RC(idle ? VIP_SUCCESS : VIP_INVALID_STATE,
					  VipConnectAccept(conn, in.vi()));
				if (!idle)
					EXPECT_RC(VIP_SUCCESS, VipConnectReject(conn));
				asker.join();
				EXPECT_RC(idle ? VIP_SUCCESS : VIP_REJECT, requested);
			} else {
				asker.join();
			}
		}
}

/* The work queue functions in each state: their results on empty queues. */
TEST(ViStates, EmptyQueues)
{
	struct Case {
		const char *function;
		VIP_RETURN (*call)(VIP_VI_HANDLE, VIP_DESCRIPTOR **);
	} all[] = {
		{ "VipSendDone",
		  [](VIP_VI_HANDLE v, VIP_DESCRIPTOR **d) { return VipSendDone(v, d); } },
		{ "VipRecvDone",
		  [](VIP_VI_HANDLE v, VIP_DESCRIPTOR **d) { return VipRecvDone(v, d); } },
		{ "VipSendWait",
		  [](VIP_VI_HANDLE v, VIP_DESCRIPTOR **d) { return VipSendWait(v, kWaitMs, d); } },
		{ "VipRecvWait",
		  [](VIP_VI_HANDLE v, VIP_DESCRIPTOR **d) { return VipRecvWait(v, kWaitMs, d); } },
	};
	for (auto &level : levels())
		for (auto state : states()) {
			ViIn in(state, level.value);
			for (auto &c : all) {
				RULE(std::string("VIPL 5.5 ") + c.function +
				     ": an empty queue is VIP_DESCRIPTOR_ERROR with NULL, here " +
				     state_name(state) + ", " + level.name);
				VIP_DESCRIPTOR *desc = reinterpret_cast<VIP_DESCRIPTOR *>(&in);
				EXPECT_RC(VIP_DESCRIPTOR_ERROR, c.call(in.vi(), &desc));
				EXPECT_EQ(nullptr, desc);
			}
		}
}

TEST(ViStates, SendsPosted)
{
	for (auto &level : levels())
		for (auto state : states())
			for (VIP_UINT16 op : { VIP_CONTROL_OP_SENDRECV, VIP_CONTROL_OP_RDMAWRITE,
					       VIP_CONTROL_OP_RDMAREAD }) {
				if (state == VIP_STATE_CONNECTED)
					continue;
				RULE(std::string("VIPL 6: operation ") + std::to_string(op) +
				     " posted to the send queue completes with DESC_FLUSHED in " +
				     state_name(state) + ", " + level.name);
				ViIn in(state, level.value);
				Arena arena(nic(0));
				Seg seg = { arena.bytes(8), arena.mem.h, 8 };
				VIP_DESCRIPTOR *desc =
					op == VIP_CONTROL_OP_SENDRECV
						? make(arena, op, { seg })
						: make(arena, op, { seg },
						       Remote{ arena.mem.data, arena.mem.h });
				VIP_DESCRIPTOR *got = nullptr;
				EXPECT_RC(VIP_SUCCESS, VipPostSend(in.vi(), desc, arena.mem.h));
				EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipSendDone(in.vi(), &got));
				EXPECT_EQ(desc, got);
				EXPECT_TRUE(has_error(got, VIP_STATUS_DESC_FLUSHED_ERROR));
				EXPECT_EQ(state, in.vi().state());
			}
}

TEST(ViStates, ReceivesPosted)
{
	for (auto &level : levels())
		for (auto state : states()) {
			bool error = state == VIP_STATE_ERROR;
			RULE(std::string("VIPL 6: a receive posted in ") + state_name(state) +
			     (error ? " completes with DESC_FLUSHED, " : " is kept, ") +
			     level.name);
			ViIn in(state, level.value);
			Arena arena(nic(0));
			VIP_DESCRIPTOR *desc = make(arena, VIP_CONTROL_OP_SENDRECV, {}),
				       *got = nullptr;
			EXPECT_RC(VIP_SUCCESS, VipPostRecv(in.vi(), desc, arena.mem.h));
			EXPECT_RC(error ? VIP_DESCRIPTOR_ERROR : VIP_NOT_DONE,
				  VipRecvDone(in.vi(), &got));
			EXPECT_EQ(error ? desc : nullptr, got);
			if (!error) {
				EXPECT_RC(VIP_SUCCESS, VipDisconnect(in.vi()));
				EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipRecvDone(in.vi(), &got));
				EXPECT_EQ(desc, got);
			}
			EXPECT_TRUE(has_status(got, VIP_STATUS_OP_RECEIVE |
							    VIP_STATUS_DESC_FLUSHED_ERROR));
		}
}
