/* SPDX-License-Identifier: BSD-2-Clause */
/* vipl_ext: posting and taking many descriptors at once. */
#include "harness.h"

using namespace conf;

namespace {

constexpr VIP_ULONG kMany = 24;

/* Descriptors for messages of 4 bytes each, whose content is their number. */
std::vector<VIP_DESCRIPTOR *> messages(Arena &arena, VIP_ULONG count)
{
	std::vector<VIP_DESCRIPTOR *> all;

	for (VIP_UINT32 i = 0; i < count; i++) {
		char *data = arena.bytes(4);

		memcpy(data, &i, 4);
		all.push_back(make(arena, VIP_CONTROL_OP_SENDRECV, { { data, arena.mem.h, 4 } }));
	}
	return all;
}

/* Takes `count` of them in as many calls as it needs, each for `most` at most. */
std::vector<VIP_DESCRIPTOR *> take(VIP_RETURN (*done)(VIP_VI_HANDLE, VIP_DESCRIPTOR **, VIP_ULONG,
						      VIP_ULONG *),
				   VIP_VI_HANDLE vi, size_t count, VIP_ULONG most)
{
	std::vector<VIP_DESCRIPTOR *> all;

	eventually([&] {
		std::vector<VIP_DESCRIPTOR *> part(most + 1, nullptr);
		VIP_ULONG n = 77;
		VIP_RETURN rc = done(vi, part.data(), most, &n);

		EXPECT_LE(n, most);
		EXPECT_EQ(part[most], nullptr) << "no more than Max pointers are written";
		EXPECT_EQ(rc, n > 0 ? VIP_SUCCESS : VIP_NOT_DONE);
		all.insert(all.end(), part.begin(), part.begin() + n);
		return all.size() >= count || (rc != VIP_SUCCESS && rc != VIP_NOT_DONE);
	});
	return all;
}

VIP_UINT32 content(const VIP_DESCRIPTOR *desc)
{
	VIP_UINT32 v;

	memcpy(&v, desc->DS[0].Local.Data.Address, 4);
	return v;
}

} // namespace

TEST(Many, MessagesArriveWholeAndInOrder)
{
	for (auto &level : levels())
		for (VIP_ULONG most : { VIP_ULONG(1), VIP_ULONG(7), kMany, VIP_ULONG(1000) }) {
			RULE(std::string("vipl_ext VipxPostSends, VipxPostRecvs, VipxSendsDone, ") +
			     "VipxRecvsDone: many in one call, in order, " + std::to_string(most) +
			     " at most, " + level.name);
			Link l(level.value);
			auto recvs = messages(l.b, kMany), sends = messages(l.a, kMany);
			VIP_ULONG posted = 0;

			for (auto *d : recvs)
				memset(d->DS[0].Local.Data.Address, 0xff, 4);
			ASSERT_RC(VIP_SUCCESS,
				  VipxPostRecvs(*l.vb, recvs.data(), kMany, l.b.mem.h, &posted));
			ASSERT_EQ(kMany, posted);
			ASSERT_RC(VIP_SUCCESS,
				  VipxPostSends(*l.va, sends.data(), kMany, l.a.mem.h, &posted));
			ASSERT_EQ(kMany, posted);
			EXPECT_EQ(recvs, take(VipxRecvsDone, *l.vb, kMany, most));
			EXPECT_EQ(sends, take(VipxSendsDone, *l.va, kMany, most));
			for (VIP_UINT32 i = 0; i < kMany; i++)
				EXPECT_EQ(i, content(recvs[i]));
		}
}

TEST(Many, ThePostEndsWithTheFirstThatIsRefused)
{
	for (bool recv : { false, true }) {
		RULE(std::string("vipl_ext VipxPost") + (recv ? "Recvs" : "Sends") +
		     ": a descriptor that is refused ends the call, those before it are posted");
		Link l(VIP_SERVICE_RELIABLE_DELIVERY);
		auto post = recv ? VipxPostRecvs : VipxPostSends;
		static VIP_DESCRIPTOR outside[2];
		auto all = messages(l.a, 5);
		VIP_ULONG posted = 77;

		if (!recv)
			for (int i = 0; i < 5; i++)
				ASSERT_NE(nullptr, l.recv_b(4));
		all[3] = recv ? nullptr : &outside[1];
		l.na.clear();
		EXPECT_RC(VIP_INVALID_PARAMETER, post(*l.va, all.data(), 5, l.a.mem.h, &posted));
		EXPECT_EQ(3u, posted);
		if (!recv)
			EXPECT_EQ(3u, take(VipxSendsDone, *l.va, 3, 8).size());
		RULE("vipl_ext VipxPostSends, VipxPostRecvs: none of no descriptors is a success");
		EXPECT_RC(VIP_SUCCESS, post(*l.va, all.data(), 0, l.a.mem.h, &posted));
		EXPECT_EQ(0u, posted);
	}
}

TEST(Many, AFullQueueIsTold)
{
	RULE("vipl_ext VipxPostRecvs: a full queue is ERROR_RESOURCE, and Posted says how far it went");
	ViIn in(VIP_STATE_IDLE, VIP_SERVICE_RELIABLE_DELIVERY);
	Arena arena(nic(0));
	std::vector<VIP_DESCRIPTOR *> all(nic(0).attrs.MaxDescriptorsPerQueue + 1,
					  messages(arena, 1)[0]);
	VIP_ULONG posted = 0;

	EXPECT_RC(VIP_ERROR_RESOURCE,
		  VipxPostRecvs(in.vi(), all.data(), all.size(), arena.mem.h, &posted));
	EXPECT_EQ(all.size() - 1, posted);
}

TEST(Many, TakingEndsBehindAnError)
{
	RULE("vipl_ext VipxRecvsDone: ends behind a descriptor with an error, which it hands out");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	auto recvs = messages(l.b, 3);
	std::vector<VIP_DESCRIPTOR *> got(8, nullptr);
	VIP_ULONG n = 0;

	ASSERT_RC(VIP_SUCCESS, VipxPostRecvs(*l.vb, recvs.data(), 3, l.b.mem.h, &n));
	ASSERT_RC(VIP_SUCCESS, VipDisconnect(*l.vb));
	EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipxRecvsDone(*l.vb, got.data(), 8, &n));
	EXPECT_EQ(1u, n);
	EXPECT_EQ(recvs[0], got[0]);
	EXPECT_TRUE(has_status(got[0], VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_OP_RECEIVE));
	EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipxRecvsDone(*l.vb, got.data(), 8, &n));
	EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipxRecvsDone(*l.vb, got.data(), 8, &n));
	RULE("vipl_ext VipxRecvsDone, VipxSendsDone: an empty queue is NOT_DONE");
	EXPECT_RC(VIP_NOT_DONE, VipxRecvsDone(*l.vb, got.data(), 8, &n));
	EXPECT_EQ(0u, n);
	EXPECT_RC(VIP_NOT_DONE, VipxSendsDone(*l.vb, got.data(), 8, &n));
	RULE("vipl_ext VipxRecvsDone, VipxSendsDone: Max 0 is INVALID_PARAMETER");
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxRecvsDone(*l.vb, got.data(), 0, &n));
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxSendsDone(*l.vb, got.data(), 0, &n));
}

/* Twice as many messages as there are slots, and none is lost where the receiver is slow. */
TEST(Many, MoreThanTheFifoHolds)
{
	RULE("vipl_ext VipxPostSends: more messages than slots are sent as credit comes");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY, { .arena = 1u << 20 });
	auto recvs = messages(l.b, 600), sends = messages(l.a, 600);
	VIP_ULONG posted;

	ASSERT_RC(VIP_SUCCESS, VipxPostRecvs(*l.vb, recvs.data(), 600, l.b.mem.h, &posted));
	ASSERT_RC(VIP_SUCCESS, VipxPostSends(*l.va, sends.data(), 600, l.a.mem.h, &posted));
	EXPECT_EQ(recvs, take(VipxRecvsDone, *l.vb, 600, 1000));
	EXPECT_EQ(sends, take(VipxSendsDone, *l.va, 600, 1000));
}
