/* SPDX-License-Identifier: BSD-2-Clause */
/* vipl_ext: posting and taking many descriptors at once. */
#include "harness.h"

#include <atomic>
#include <map>
#include <thread>

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

/* Takes `count` descriptors in as many calls as it needs, each for `most` at most. */
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

/* There are twice as many messages as slots, and none is lost if the receiver is slow. */
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

/* ---- completions of a CQ --------------------------------------------------------------------- */

namespace {

/* Links whose sides b complete to one CQ, each with its own number as context. */
struct Taking {
	explicit Taking(VIP_RELIABILITY_LEVEL level, size_t count) : cq(nic(1), 4096)
	{
		LinkOptions o;
		o.b_scq = o.b_rcq = cq;
		o.arena = 1u << 16;
		for (size_t i = 0; i < count; i++) {
			links.push_back(std::make_unique<Link>(level, o));
			EXPECT_RC(VIP_SUCCESS, VipxSetViContext(*links[i]->vb, context(i)));
		}
	}
	VIP_PVOID context(size_t i) { return &places[i]; }
	/* Takes `count` completions in as many calls as it needs, each for `most` at most. */
	std::vector<VIPX_COMPLETION> take(size_t count, VIP_ULONG most)
	{
		std::vector<VIPX_COMPLETION> all;

		eventually([&] {
			std::vector<VIPX_COMPLETION> part(most + 1);
			VIP_ULONG n = 77;

			part[0].Size = sizeof(VIPX_COMPLETION);
			part[most].Reserved = 4711;
			VIP_RETURN rc = VipxCQTake(cq, part.data(), most, &n);
			EXPECT_LE(n, most);
			EXPECT_EQ(4711u, part[most].Reserved);
			EXPECT_EQ(rc, n > 0 ? VIP_SUCCESS : VIP_NOT_DONE);
			all.insert(all.end(), part.begin(), part.begin() + n);
			return all.size() >= count;
		});
		EXPECT_EQ(count, all.size());
		return all;
	}
	void expect_empty()
	{
		VIPX_COMPLETION c = {};
		VIP_ULONG n = 77;

		c.Size = sizeof(c);
		EXPECT_RC(VIP_NOT_DONE, VipxCQTake(cq, &c, 1, &n));
		EXPECT_EQ(0u, n);
	}
	Cq cq;
	char places[64];
	std::vector<std::unique_ptr<Link>> links;
};

} // namespace

TEST(CqTake, OfFewVIsAndOfMany)
{
	for (auto &level : levels())
		for (size_t count : { 1, 3, 12 })
			for (VIP_ULONG most : { 1, 7, 1000 }) {
				RULE("vipl_ext VipxCQTake: many completions in one call, " +
				     std::to_string(count) + " VIs, " + std::to_string(most) +
				     " at most, " + level.name);
				Taking t(level.value, count);
				std::map<VIP_PVOID, std::vector<VIP_DESCRIPTOR *>> want[2], got[2];

				for (size_t i = 0; i < count; i++) {
					Link &l = *t.links[i];
					for (int k = 0; k < 20; k++) {
						want[1][t.context(i)].push_back(l.recv_b(64));
						l.recv_a(8);
					}
				}
				for (size_t i = 0; i < count; i++) {
					Link &l = *t.links[i];
					for (int k = 0; k < 20; k++) {
						l.send_a({ l.seg_a(size_t(k) + 1) });
						auto *d = make(l.b, 0, { l.seg_b(8) });
						EXPECT_RC(VIP_SUCCESS,
							  VipPostSend(*l.vb, d, l.b.mem.h));
						want[0][t.context(i)].push_back(d);
					}
				}
				/* At reception level the sends are complete when the other side polls. */
				for (auto &l : t.links)
					for (int k = 0; k < 20; k++)
						EXPECT_NE(nullptr, take_recv(*l->va));
				for (auto &c : t.take(40 * count, most)) {
					Link &l = *t.links[size_t((char *)c.Context - t.places)];
					auto &of = got[c.RecvQueue != VIP_FALSE][c.Context];

					EXPECT_EQ(l.vb->h, c.ViHandle);
					of.push_back(c.DescriptorPtr);
					EXPECT_EQ(c.DescriptorPtr->CS.Status, c.Status);
					EXPECT_EQ(c.RecvQueue ? of.size() : 8u, c.Length);
				}
				EXPECT_EQ(want[0], got[0]);
				EXPECT_EQ(want[1], got[1]);
				t.expect_empty();
			}
}

TEST(CqTake, ErrorsAreEntries)
{
	RULE("vipl_ext VipxCQTake: descriptors with an error are entries, with their status");
	Taking t(VIP_SERVICE_RELIABLE_DELIVERY, 2);
	Link &l = *t.links[0];
	VIP_DESCRIPTOR *recvs[3], *bad = make(l.b, VIP_CONTROL_OP_RESERVED, {});

	for (auto &r : recvs)
		r = l.recv_b(8);
	EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.vb));
	auto all = t.take(3, 8);
	for (size_t i = 0; i < all.size(); i++) {
		EXPECT_EQ(recvs[i], all[i].DescriptorPtr);
		EXPECT_TRUE(all[i].Status & VIP_STATUS_DESC_FLUSHED_ERROR);
		EXPECT_EQ(recvs[i]->CS.Status, all[i].Status);
	}
	EXPECT_RC(VIP_SUCCESS, VipPostSend(*l.vb, bad, l.b.mem.h));
	EXPECT_EQ(bad, t.take(1, 8)[0].DescriptorPtr);
	t.expect_empty();
	l.na.clear();
}

TEST(CqTake, BesideCallsForOne)
{
	RULE("vipl_ext VipxCQTake: entries whose descriptors were taken are left out");
	Taking t(VIP_SERVICE_RELIABLE_DELIVERY, 1);
	Link &l = *t.links[0];
	VIP_DESCRIPTOR *recvs[6], *d = nullptr;
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN recv;

	for (auto &r : recvs)
		r = l.recv_b(8);
	EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.vb));
	/* Takes an entry and its descriptor; and a descriptor without its entry. */
	EXPECT_RC(VIP_SUCCESS, VipCQDone(t.cq, &vi, &recv));
	EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipRecvDone(vi, &d));
	EXPECT_EQ(recvs[0], d);
	EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipRecvDone(vi, &d));
	EXPECT_EQ(recvs[1], d);
	auto all = t.take(4, 2);
	for (size_t i = 0; i < all.size(); i++)
		EXPECT_EQ(recvs[2 + i], all[i].DescriptorPtr);
	t.expect_empty();
	EXPECT_RC(VIP_NOT_DONE, VipCQDone(t.cq, &vi, &recv));
}

TEST(CqTake, BehindManyThatAreLeftOut)
{
	RULE("vipl_ext VipxCQTake: VIP_NOT_DONE only when there is none, however few may be taken");
	constexpr size_t kLinks = 40;
	Taking t(VIP_SERVICE_RELIABLE_DELIVERY, kLinks);
	VIPX_COMPLETION c = {};
	VIP_ULONG n = 77;

	/* Takes the descriptors of all VIs but one, and leaves their entries. */
	for (auto &l : t.links) {
		VIP_DESCRIPTOR *d = nullptr, *r = l->recv_b(8);

		EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l->vb));
		if (l == t.links[kLinks / 2])
			continue;
		EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipRecvDone(*l->vb, &d));
		EXPECT_EQ(r, d);
	}
	c.Size = sizeof(c);
	EXPECT_RC(VIP_SUCCESS, VipxCQTake(t.cq, &c, 1, &n));
	EXPECT_EQ(1u, n);
	EXPECT_EQ(t.links[kLinks / 2]->vb->h, c.ViHandle);
	t.expect_empty();
}

TEST(CqTake, SizeIsTheDistanceOfEntries)
{
	RULE("vipl_ext VipxCQTake: entries lie Size bytes apart, and no more is written");
	struct Larger {
		VIPX_COMPLETION c;
		VIP_ULONG more;
	} large[4] = {};
	Taking t(VIP_SERVICE_RELIABLE_DELIVERY, 1);
	Link &l = *t.links[0];
	VIP_DESCRIPTOR *recvs[3];
	VIP_ULONG n = 77;

	for (auto &r : recvs)
		r = l.recv_b(8);
	EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.vb));
	for (auto &each : large)
		each.more = 4711;
	for (VIP_ULONG size : { VIP_ULONG(0), VIP_ULONG(sizeof(VIPX_COMPLETION) - 8),
				VIP_ULONG(sizeof(Larger) + 4) }) {
		large[0].c.Size = size;
		EXPECT_RC(VIP_INVALID_PARAMETER, VipxCQTake(t.cq, &large[0].c, 4, &n)) << size;
		EXPECT_EQ(0u, n);
	}
	large[0].c.Size = sizeof(Larger);
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxCQTake(t.cq, &large[0].c, 0, &n));
	EXPECT_RC(VIP_SUCCESS, VipxCQTake(t.cq, &large[0].c, 4, &n));
	ASSERT_EQ(3u, n);
	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(i < 3 ? recvs[i] : nullptr, large[i].c.DescriptorPtr);
		EXPECT_EQ(4711u, large[i].more);
	}
}

TEST(CqTake, TheContextIsThatOfTheVI)
{
	RULE("vipl_ext VipxSetViContext: NULL of a new VI, then what was set last");
	Cq cq(nic(0));
	for (int i = 0; i < 2; i++) {
		Vi vi(nic(0), vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY), cq, cq);
		Arena arena(nic(0));
		VIPX_COMPLETION c = {};
		VIP_ULONG n;

		c.Size = sizeof(c);
		c.Context = &n;
		for (VIP_PVOID want : { VIP_PVOID(nullptr), VIP_PVOID(&arena), VIP_PVOID(&cq) }) {
			if (want != nullptr)
				EXPECT_RC(VIP_SUCCESS, VipxSetViContext(vi, want));
			EXPECT_RC(VIP_SUCCESS, VipPostSend(vi, make(arena, 0, {}), arena.mem.h));
			EXPECT_RC(VIP_SUCCESS, VipxCQTake(cq, &c, 1, &n));
			EXPECT_EQ(want, c.Context);
			EXPECT_EQ(VIP_FALSE, c.RecvQueue);
		}
	}
}

/* Two threads take completions of VIs, some of which are disconnected and destroyed at the same time. */
TEST(CqTake, ByThreadsWhileVIsGo)
{
	RULE("vipl_ext VipxCQTake: each completion is taken once, whichever thread does");
	constexpr int kRounds = 30;
	Taking t(VIP_SERVICE_RELIABLE_DELIVERY, 9);
	std::atomic<bool> stop{ false };
	std::atomic<int> taken{ 0 };
	std::vector<std::thread> threads;
	LinkOptions o;
	int posted = 0;

	for (int i = 0; i < 2; i++)
		threads.emplace_back([&] {
			VIPX_COMPLETION part[8];
			VIP_ULONG n;

			part[0].Size = sizeof(part[0]);
			while (!stop)
				if (VipxCQTake(t.cq, part, 8, &n) == VIP_SUCCESS)
					taken += int(n);
		});
	o.b_scq = o.b_rcq = t.cq;
	o.arena = 1u << 14;
	for (int i = 0; i < kRounds; i++) {
		Link l(VIP_SERVICE_RELIABLE_DELIVERY, o);

		for (auto &each : t.links) {
			each->recv_b(8);
			each->send_a({ each->seg_a(8) });
		}
		for (int k = 0; k < 3; k++)
			l.recv_b(8);
		l.send_a({ l.seg_a(8) });
		posted += 3 + int(t.links.size());
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.vb));
		EXPECT_TRUE(eventually([&] { return taken == posted; })) << i;
	}
	stop = true;
	for (auto &thread : threads)
		thread.join();
	EXPECT_EQ(posted, taken);
	t.expect_empty();
}
