/* SPDX-License-Identifier: BSD-2-Clause */
/* VIPL 5.8 and 4.6: the handler of asynchronous errors; texts and counters of vipl_ext.h. */
#include "harness.h"

#include <algorithm>
#include <atomic>

using namespace conf;

namespace {

struct Count {
	static void handler(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *)
	{
		(*static_cast<std::atomic<int> *>(context))++;
	}
};

/* Makes an event at a NIC: a descriptor that is not aligned. */
struct Provoker {
	explicit Provoker(Nic &n) : vi(n, vi_attrs(VIP_SERVICE_UNRELIABLE)), arena(n) {}
	void provoke()
	{
		char *p = reinterpret_cast<char *>(arena.desc(2)) + 8;
		EXPECT_RC(VIP_INVALID_PARAMETER,
			  VipPostSend(vi, reinterpret_cast<VIP_DESCRIPTOR *>(p), arena.mem.h));
	}
	Vi vi;
	Arena arena;
};

} // namespace

TEST(Error, OneHandlerPerNic)
{
	std::atomic<int> first{ 0 }, second{ 0 };
	Nic n(0);
	Provoker here(n), elsewhere(nic(0));
	{
		RULE("VIPL 5.8 VipErrorCallback: the handler gets the events of its NIC handle");
		EXPECT_RC(VIP_SUCCESS, VipErrorCallback(n.h, &first, Count::handler));
		here.provoke();
		EXPECT_TRUE(eventually([&] { return first == 1; }));
	}
	{
		RULE("VIPL 5.8 VipErrorCallback: another handler takes its place");
		EXPECT_RC(VIP_SUCCESS, VipErrorCallback(n.h, &second, Count::handler));
		here.provoke();
		EXPECT_TRUE(eventually([&] { return second == 1; }));
		EXPECT_EQ(1, first);
	}
	{
		RULE("VIPL 5.8 VipErrorCallback: events of other NIC handles do not come here");
		nic(0).clear();
		elsewhere.provoke();
		EXPECT_TRUE(nic(0).wait_event(VIP_ERROR_POST_DESC, elsewhere.vi.h));
		EXPECT_EQ(1, second);
	}
	{
		RULE("VIPL 5.8 VipErrorCallback: NULL restores the default handler");
		EXPECT_RC(VIP_SUCCESS, VipErrorCallback(n.h, nullptr, nullptr));
		here.provoke();
		EXPECT_EQ(1, first);
		EXPECT_EQ(1, second);
	}
}

TEST(Error, DescriptorOfAnEvent)
{
	RULE("VIPL 4.6: NIC, VI, descriptor and codes of a Post Descriptor Error");
	Vi vi(nic(0), vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY));
	Arena arena(nic(0));
	nic(0).clear();
	auto *p = reinterpret_cast<VIP_DESCRIPTOR *>(reinterpret_cast<char *>(arena.desc(2)) + 8);
	EXPECT_RC(VIP_INVALID_PARAMETER, VipPostRecv(vi, p, arena.mem.h));
	VIP_ERROR_DESCRIPTOR e{};
	ASSERT_TRUE(nic(0).wait_event(VIP_ERROR_POST_DESC, vi.h, &e));
	EXPECT_EQ(nic(0).h, e.NicHandle);
	EXPECT_EQ(vi.h, e.ViHandle);
	EXPECT_EQ(nullptr, e.CQHandle);
	EXPECT_EQ(p, e.DescriptorPtr);
	EXPECT_EQ(VIP_RESOURCE_DESCRIPTOR, e.ResourceCode);
}

TEST(Error, HandlersMayCallTheLibrary)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.8: a handler may take a VI down, no lock is held, ") +
		     level.name);
		Nic n(1);
		struct Context {
			VIP_VI_HANDLE vi;
			std::atomic<int> destroyed{ 0 };
			static void handler(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *e)
			{
				auto *self = static_cast<Context *>(context);
				if (e->ErrorCode != VIP_ERROR_CONN_LOST || e->ViHandle != self->vi)
					return;
				EXPECT_RC(VIP_SUCCESS, VipDisconnect(self->vi));
				EXPECT_RC(VIP_SUCCESS, VipDestroyVi(self->vi));
				self->destroyed++;
			}
		} context;
		EXPECT_RC(VIP_SUCCESS, VipErrorCallback(n.h, &context, Context::handler));
		Vi client(nic(0), vi_attrs(level.value));
		{
			auto server = std::make_unique<Vi>(n, vi_attrs(level.value));
			context.vi = server->h;
			connect(client, *server);
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(client));
			EXPECT_TRUE(eventually([&] { return context.destroyed == 1; }));
			/* The tear-down of the object meets a VI that is gone. */
			VIP_DESCRIPTOR *desc;
			EXPECT_RC(VIP_INVALID_PARAMETER, VipSendDone(server->h, &desc));
			VIP_VI_ATTRIBUTES attrs = vi_attrs(level.value);
			EXPECT_RC(VIP_SUCCESS,
				  VipCreateVi(n.h, &attrs, nullptr, nullptr, &server->h));
		}
		EXPECT_RC(VIP_SUCCESS, VipErrorCallback(n.h, nullptr, nullptr));
	}
}

TEST(Error, Overrun)
{
	for (auto &level : levels())
		for (int recv = 0; recv < 2; recv++) {
			RULE(std::string(
				     "VIPL 5.5: a post to a full queue is VIP_ERROR_RESOURCE and VI_OVERRUN, ") +
			     (recv ? "receive queue, " : "send queue, ") + level.name);
			VIP_ULONG max = nic(0).attrs.MaxDescriptorsPerQueue;
			Vi vi(nic(0), vi_attrs(level.value));
			Arena arena(nic(0), nullptr, (max + 2) * 64);
			nic(0).clear();
			auto post = [&](VIP_DESCRIPTOR *d) {
				return recv ? VipPostRecv(vi, d, arena.mem.h)
					    : VipPostSend(vi, d, arena.mem.h);
			};
			std::vector<VIP_DESCRIPTOR *> all;
			for (VIP_ULONG i = 0; i < max; i++) {
				all.push_back(make(arena, 0, {}));
				ASSERT_RC(VIP_SUCCESS, post(all.back())) << "descriptor " << i;
			}
			VIP_DESCRIPTOR *more = make(arena, 0, {}), *got;
			EXPECT_RC(VIP_ERROR_RESOURCE, post(more));
			VIP_ERROR_DESCRIPTOR e{};
			EXPECT_TRUE(nic(0).wait_event(VIP_ERROR_VI_OVERRUN, vi.h, &e));
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(vi));
			for (VIP_ULONG i = 0; i < max; i++) {
				ASSERT_RC(VIP_DESCRIPTOR_ERROR,
					  recv ? VipRecvDone(vi, &got) : VipSendDone(vi, &got));
				ASSERT_EQ(all[i], got) << "none is lost";
			}
			EXPECT_RC(VIP_DESCRIPTOR_ERROR,
				  recv ? VipRecvDone(vi, &got) : VipSendDone(vi, &got));
			EXPECT_EQ(nullptr, got);
			EXPECT_RC(VIP_SUCCESS, post(more));
		}
}

TEST(Ext, ErrorStrings)
{
	static const char *const names[] = { "VIP_SUCCESS",
					     "VIP_NOT_DONE",
					     "VIP_INVALID_PARAMETER",
					     "VIP_ERROR_RESOURCE",
					     "VIP_TIMEOUT",
					     "VIP_REJECT",
					     "VIP_INVALID_RELIABILITY_LEVEL",
					     "VIP_INVALID_MTU",
					     "VIP_INVALID_QOS",
					     "VIP_INVALID_PTAG",
					     "VIP_INVALID_RDMAREAD",
					     "VIP_DESCRIPTOR_ERROR",
					     "VIP_INVALID_STATE",
					     "VIP_ERROR_NAMESERVICE",
					     "VIP_NO_MATCH",
					     "VIP_NOT_REACHABLE",
					     "VIP_ERROR_NOT_SUPPORTED" };
	for (int i = 0; i < 17; i++) {
		RULE(std::string("VIPL 3.1: code ") + std::to_string(i) + " is " + names[i]);
		EXPECT_STREQ(names[i], VipxErrorString(static_cast<VIP_RETURN>(i)));
	}
	for (int i : { -1, 17, 1000 }) {
		RULE("vipl_ext VipxErrorString: an unknown code gives a text, never NULL");
		EXPECT_NE(nullptr, VipxErrorString(static_cast<VIP_RETURN>(i)));
	}
}

TEST(Ext, StatusStrings)
{
	struct Case {
		VIP_ULONG status;
		const char *text;
	} all[] = {
		{ VIP_STATUS_DONE, "DONE|OP_SEND" },
		{ VIP_STATUS_DONE | VIP_STATUS_LENGTH_ERROR | VIP_STATUS_OP_RECEIVE,
		  "DONE|LENGTH_ERROR|OP_RECEIVE" },
		{ VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE,
		  "DONE|OP_RECEIVE|IMMEDIATE" },
	};
	char text[160];
	for (auto &c : all) {
		RULE("vipl_ext VipxStatusString: names the bits");
		EXPECT_RC(VIP_SUCCESS, VipxStatusString(c.status, text, sizeof(text)));
		EXPECT_STREQ(c.text, text);
	}
	{
		RULE("vipl_ext VipxStatusString: a short buffer is VIP_ERROR_RESOURCE and terminated");
		EXPECT_RC(VIP_ERROR_RESOURCE, VipxStatusString(0xffffffff, text, 5));
		EXPECT_NE(nullptr, memchr(text, 0, 5));
		EXPECT_RC(VIP_INVALID_PARAMETER, VipxStatusString(1, text, 0));
	}
}

namespace {

/* The words of a status as vipl_ext.h documents them. */
std::string words_of(VIP_UINT32 status)
{
	static const char *const errors[] = { "FORMAT_ERROR",	    "PROTECTION_ERROR",
					      "LENGTH_ERROR",	    "PARTIAL_ERROR",
					      "DESC_FLUSHED_ERROR", "TRANSPORT_ERROR",
					      "RDMA_PROT_ERROR",    "REMOTE_DESC_ERROR" };
	static const char *const ops[] = { "OP_SEND",	    "OP_RECEIVE",
					   "OP_RDMA_WRITE", "OP_REMOTE_RDMA_WRITE",
					   "OP_RDMA_READ",  "OP_ATOMIC",
					   "OP_6",	    "OP_7" };
	std::string all;
	auto add = [&](const char *word) { all += (all.empty() ? "" : "|") + std::string(word); };
	if (status & VIP_STATUS_DONE)
		add("DONE");
	for (int i = 0; i < 8; i++)
		if (status & (2u << i))
			add(errors[i]);
	if (status & (VIP_STATUS_DONE | VIP_STATUS_OP_MASK))
		add(ops[(status & VIP_STATUS_OP_MASK) >> 16]);
	if (status & VIP_STATUS_IMMEDIATE)
		add("IMMEDIATE");
	return all;
}

} // namespace

/* Each of the 8,192 combinations of defined bits, in buffers of about its length. */
TEST(Ext, EveryStatusString)
{
	const VIP_UINT32 defined = VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK | VIP_STATUS_OP_MASK |
				   VIP_STATUS_IMMEDIATE;
	size_t longest = 0, count = 0;
	VIP_UINT32 status = 0;
	do {
		std::string want = words_of(status);
		longest = std::max(longest, want.size());
		count++;
		for (size_t room : { size_t(1), want.size() / 2 + 1, want.size(), want.size() + 1,
				     size_t(192) }) {
			char text[200];
			bool fits = room > want.size();
			memset(text, '#', sizeof(text));
			if (room == 0)
				continue;
			ASSERT_RC(fits ? VIP_SUCCESS : VIP_ERROR_RESOURCE,
				  VipxStatusString(status, text, room))
				<< want << " in " << room;
			ASSERT_EQ(fits ? want : want.substr(0, room - 1), text);
			for (size_t i = strlen(text) + 1; i < sizeof(text); i++)
				ASSERT_EQ('#', text[i]) << "behind the end";
		}
		char text[192];
		ASSERT_RC(VIP_SUCCESS, VipxStatusString(status | VIP_STATUS_RESERVED, text, 192));
		ASSERT_EQ(want, text) << "reserved bits have no name";
		status = (status - defined) & defined; /* the next subset of the bits */
	} while (status != 0);
	RULE("vipl_ext VipxStatusString: 192 bytes are enough for each combination of defined bits");
	EXPECT_EQ(1u << 13, count);
	EXPECT_LT(longest, 192u);
}

TEST(Ext, Version)
{
	RULE("vipl_ext VipxQueryVersion: the library's version, NULLs allowed");
	VIP_ULONG version = 0;
	const char *release = nullptr;
	EXPECT_RC(VIP_SUCCESS, VipxQueryVersion(&version, &release));
	EXPECT_EQ(VIP_ULONG(VIPX_VERSION), version);
	EXPECT_NE(nullptr, release);
	EXPECT_RC(VIP_SUCCESS, VipxQueryVersion(nullptr, nullptr));
}

TEST(Ext, Counters)
{
	for (auto &level : levels()) {
		RULE(std::string("vipl_ext VipxQueryCounters: counts what a VI does, ") +
		     level.name);
		Link l(level.value);
		VIPX_COUNTERS c{};
		c.Size = sizeof(c);
		for (int i = 0; i < 7; i++) {
			l.recv_b(100);
			l.send_a({ l.seg_a(100) });
			EXPECT_NE(nullptr, take_recv(*l.vb));
			EXPECT_NE(nullptr, take_send(*l.va));
		}
		EXPECT_RC(VIP_SUCCESS, VipxQueryCounters(l.na.h, *l.va, &c));
		EXPECT_EQ(7u, c.SendsPosted);
		EXPECT_EQ(7u, c.MessagesSent);
		EXPECT_EQ(700u, c.BytesSent);
		EXPECT_EQ(0u, c.MessagesReceived);
		EXPECT_RC(VIP_SUCCESS, VipxQueryCounters(l.nb.h, *l.vb, &c));
		EXPECT_EQ(7u, c.RecvsPosted);
		EXPECT_EQ(7u, c.MessagesReceived);
		EXPECT_EQ(700u, c.BytesReceived);
		VIPX_COUNTERS sum{};
		sum.Size = sizeof(sum);
		EXPECT_RC(VIP_SUCCESS, VipxQueryCounters(l.nb.h, nullptr, &sum));
		EXPECT_GE(sum.MessagesReceived, 7u);
	}
	{
		RULE("vipl_ext VipxQueryCounters: another NIC's VI or a small Size is INVALID_PARAMETER");
		Nic other(0);
		Vi vi(nic(0), vi_attrs(VIP_SERVICE_UNRELIABLE));
		VIPX_COUNTERS c{};
		c.Size = sizeof(c);
		EXPECT_RC(VIP_INVALID_PARAMETER, VipxQueryCounters(other.h, vi, &c));
		c.Size = 8;
		EXPECT_RC(VIP_INVALID_PARAMETER, VipxQueryCounters(nic(0).h, vi, &c));
	}
	{
		RULE("vipl_ext VipxQueryCounters: no more than Size bytes are written");
		struct {
			VIPX_COUNTERS c;
			unsigned char behind[64];
		} padded;
		memset(&padded, 0xee, sizeof(padded));
		padded.c.Size = sizeof(padded.c);
		EXPECT_RC(VIP_SUCCESS, VipxQueryCounters(nic(0).h, nullptr, &padded.c));
		for (unsigned char byte : padded.behind)
			EXPECT_EQ(0xee, byte);
	}
}
