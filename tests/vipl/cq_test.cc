/* SPDX-License-Identifier: BSD-2-Clause */
/* VIPL 5.6: completion queues. */
#include "harness.h"

#include <atomic>
#include <chrono>

#include <poll.h>

using namespace conf;

namespace {

bool readable(int fd, int ms)
{
	struct pollfd p = { fd, POLLIN, 0 };
	return poll(&p, 1, ms) == 1 && (p.revents & POLLIN);
}

/* Side b completes to a CQ. */
struct CqLink {
	explicit CqLink(VIP_RELIABILITY_LEVEL level, VIP_ULONG entries = 64) : cq(nic(1), entries)
	{
		LinkOptions o;
		o.b_scq = o.b_rcq = cq;
		l = std::make_unique<Link>(level, o);
	}
	/* Takes one entry and its descriptor. */
	VIP_DESCRIPTOR *take(bool *recv = nullptr)
	{
		VIP_VI_HANDLE vi = nullptr;
		VIP_BOOLEAN is_recv = VIP_FALSE;
		VIP_DESCRIPTOR *desc = nullptr;
		EXPECT_RC(VIP_SUCCESS, VipCQWait(cq, kWaitMs, &vi, &is_recv));
		EXPECT_EQ(l->vb->h, vi);
		if (is_recv)
			VipRecvDone(vi, &desc);
		else
			VipSendDone(vi, &desc);
		EXPECT_NE(nullptr, desc) << "the descriptor is complete before its entry is";
		if (recv)
			*recv = is_recv;
		return desc;
	}
	Cq cq;
	std::unique_ptr<Link> l;
};

struct CqSeen {
	static void handler(VIP_PVOID context, VIP_NIC_HANDLE nic_handle, VIP_VI_HANDLE vi,
			    VIP_BOOLEAN recv)
	{
		auto *self = static_cast<CqSeen *>(context);
		VIP_DESCRIPTOR *desc = nullptr;
		if (recv)
			VipRecvDone(vi, &desc);
		else
			VipSendDone(vi, &desc);
		std::lock_guard<std::mutex> guard(self->lock);
		self->list.push_back(desc);
		self->recvs += recv == VIP_TRUE;
		self->last_nic = nic_handle;
	}
	bool reaches(size_t n)
	{
		return eventually([&] {
			std::lock_guard<std::mutex> guard(lock);
			return list.size() >= n;
		});
	}
	std::mutex lock;
	std::vector<VIP_DESCRIPTOR *> list;
	size_t recvs = 0;
	VIP_NIC_HANDLE last_nic = nullptr;
};

} // namespace

TEST(Cq, EntryCounts)
{
	VIP_ULONG max = nic(0).attrs.MaxCQEntries;
	struct Case {
		VIP_ULONG count;
		VIP_RETURN rc;
	} all[] = { { 0, VIP_INVALID_PARAMETER },
		    { 1, VIP_SUCCESS },
		    { 2, VIP_SUCCESS },
		    { 1024, VIP_SUCCESS },
		    { max, VIP_SUCCESS },
		    { max + 1, VIP_INVALID_PARAMETER },
		    { ~0UL, VIP_INVALID_PARAMETER } };
	for (auto &c : all) {
		VIP_CQ_HANDLE h = nullptr;
		{
			RULE("VIPL 5.6 VipCreateCQ: EntryCount " + std::to_string(c.count));
			EXPECT_RC(c.rc, VipCreateCQ(nic(0).h, c.count, &h));
			if (c.rc == VIP_SUCCESS)
				EXPECT_RC(VIP_SUCCESS, VipDestroyCQ(h));
		}
		RULE("VIPL 5.6 VipResizeCQ: EntryCount " + std::to_string(c.count));
		Cq cq(nic(0), 16);
		EXPECT_RC(c.rc, VipResizeCQ(cq, c.count));
	}
}

TEST(Cq, Empty)
{
	Cq cq(nic(0));
	VIP_VI_HANDLE vi = &cq;
	VIP_BOOLEAN recv = 77;
	{
		RULE("VIPL 5.6 VipCQDone: VIP_NOT_DONE if empty, results not written");
		EXPECT_RC(VIP_NOT_DONE, VipCQDone(cq, &vi, &recv));
		EXPECT_EQ(&cq, vi);
		EXPECT_EQ(77, recv);
	}
	for (VIP_ULONG ms : { 0UL, 1UL, 25UL }) {
		RULE("VIPL 5.6 VipCQWait: VIP_TIMEOUT when none came in time");
		auto begin = std::chrono::steady_clock::now();
		EXPECT_RC(VIP_TIMEOUT, VipCQWait(cq, ms, &vi, &recv));
		EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(ms));
		EXPECT_EQ(77, recv);
	}
}

TEST(Cq, DestroyWhileAssociated)
{
	for (auto &level : levels())
		for (int queue = 0; queue < 3; queue++) {
			RULE(std::string(
				     "VIPL 5.6 VipDestroyCQ: VIP_ERROR_RESOURCE while a VI is associated, ") +
			     level.name);
			VIP_CQ_HANDLE h;
			ASSERT_RC(VIP_SUCCESS, VipCreateCQ(nic(0).h, 8, &h));
			{
				Vi vi(nic(0), vi_attrs(level.value), queue != 1 ? h : nullptr,
				      queue != 0 ? h : nullptr);
				EXPECT_RC(VIP_ERROR_RESOURCE, VipDestroyCQ(h));
			}
			EXPECT_RC(VIP_SUCCESS, VipDestroyCQ(h));
		}
}

TEST(Cq, OneEntryPerCompletion)
{
	for (auto &level : levels()) {
		CqLink c(level.value);
		for (int i = 0; i < 10; i++) {
			RULE(std::string(
				     "VIPL 5.6: one entry per completed descriptor, naming the queue, ") +
			     level.name);
			VIP_DESCRIPTOR *recv = c.l->recv_b(8);
			c.l->send_a({ c.l->seg_a(8) });
			bool is_recv = false;
			EXPECT_EQ(recv, c.take(&is_recv));
			EXPECT_TRUE(is_recv);
			c.l->recv_a(8);
			VIP_DESCRIPTOR *send = make(c.l->b, 0, { c.l->seg_b(8) });
			EXPECT_RC(VIP_SUCCESS, VipPostSend(*c.l->vb, send, c.l->b.mem.h));
			EXPECT_EQ(send, c.take(&is_recv));
			EXPECT_FALSE(is_recv);
			VIP_VI_HANDLE vi;
			VIP_BOOLEAN r;
			EXPECT_RC(VIP_NOT_DONE, VipCQDone(c.cq, &vi, &r));
		}
	}
}

TEST(Cq, EntriesOfErrors)
{
	for (auto &level : levels())
		for (int remote = 0; remote < 2; remote++) {
			RULE(std::string("VIPL 5.6: flushed descriptors give entries too, ") +
			     level.name);
			CqLink c(level.value);
			std::vector<VIP_DESCRIPTOR *> recvs;
			for (int i = 0; i < 5; i++)
				recvs.push_back(c.l->recv_b(8));
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(remote ? *c.l->va : *c.l->vb));
			for (int i = 0; i < 5; i++) {
				EXPECT_EQ(recvs[i], c.take());
				EXPECT_TRUE(has_error(recvs[i], VIP_STATUS_DESC_FLUSHED_ERROR));
			}
			VIP_VI_HANDLE vi;
			VIP_BOOLEAN r;
			EXPECT_RC(VIP_NOT_DONE, VipCQDone(c.cq, &vi, &r));
		}
}

TEST(Cq, BadDescriptorGivesAnEntry)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.6: a descriptor in error gives an entry, ") + level.name);
		CqLink c(level.value);
		VIP_DESCRIPTOR *bad = make(c.l->b, VIP_CONTROL_OP_RESERVED, {});
		EXPECT_RC(VIP_SUCCESS, VipPostSend(*c.l->vb, bad, c.l->b.mem.h));
		bool is_recv = true;
		EXPECT_EQ(bad, c.take(&is_recv));
		EXPECT_FALSE(is_recv);
		EXPECT_TRUE(has_error(bad, VIP_STATUS_FORMAT_ERROR));
	}
}

TEST(Cq, OrderOfOneQueue)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.6: entries of one work queue come in completion order, ") +
		     level.name);
		CqLink c(level.value);
		std::vector<VIP_DESCRIPTOR *> recvs;
		for (int i = 0; i < 40; i++)
			recvs.push_back(c.l->recv_b(8));
		for (int i = 0; i < 40; i++)
			c.l->send_a({ c.l->seg_a(8) });
		for (int i = 0; i < 40; i++)
			EXPECT_EQ(recvs[i], c.take());
	}
}

TEST(Cq, DescriptorMayBeTakenBeforeItsEntry)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.6: the entry exists although the descriptor was already taken, or is gone with "
			     "it; later entries still name a complete descriptor, ") +
		     level.name);
		CqLink c(level.value);
		VIP_DESCRIPTOR *first = c.l->recv_b(8), *second = c.l->recv_b(8), *got = nullptr;
		c.l->send_a({ c.l->seg_a(8) });
		EXPECT_TRUE(eventually([&] { return VipRecvDone(*c.l->vb, &got) == VIP_SUCCESS; }));
		EXPECT_EQ(first, got);
		c.l->send_a({ c.l->seg_a(8) });
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN recv;
		EXPECT_TRUE(eventually([&] {
			if (VipCQDone(c.cq, &vi, &recv) == VIP_SUCCESS)
				VipRecvDone(vi, &got);
			return got == second;
		}));
	}
}

TEST(Cq, ManyVisOneCq)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.2: one CQ serves many VIs and both their queues, ") +
		     level.name);
		Cq cq(nic(1), 512);
		LinkOptions o;
		o.b_rcq = o.b_scq = cq;
		o.arena = 1u << 16;
		std::vector<std::unique_ptr<Link>> links;
		for (int i = 0; i < 12; i++)
			links.push_back(std::make_unique<Link>(level.value, o));
		for (int turn = 0; turn < 5; turn++) {
			for (auto &l : links)
				l->recv_b(8);
			for (auto &l : links)
				l->send_a({ l->seg_a(8) });
			std::vector<int> count(links.size());
			for (size_t i = 0; i < links.size(); i++) {
				VIP_VI_HANDLE vi = nullptr;
				VIP_BOOLEAN recv = VIP_FALSE;
				VIP_DESCRIPTOR *desc;
				EXPECT_RC(VIP_SUCCESS, VipCQWait(cq, kWaitMs, &vi, &recv));
				EXPECT_TRUE(recv);
				EXPECT_RC(VIP_SUCCESS, VipRecvDone(vi, &desc));
				for (size_t k = 0; k < links.size(); k++)
					count[k] += links[k]->vb->h == vi;
			}
			for (int n : count)
				EXPECT_EQ(1, n);
		}
	}
}

TEST(Cq, WaitWakes)
{
	for (auto &level : levels())
		for (VIP_ULONG forever : { 0xffffffffUL, ~0UL }) {
			RULE(std::string("VIPL 5.6 VipCQWait: a completion ends the wait, ") +
			     level.name);
			CqLink c(level.value);
			c.l->recv_b(8);
			std::thread sender([&] { c.l->send_a({ c.l->seg_a(8) }); });
			VIP_VI_HANDLE vi = nullptr;
			VIP_BOOLEAN recv = VIP_FALSE;
			EXPECT_RC(VIP_SUCCESS, VipCQWait(c.cq, forever, &vi, &recv));
			EXPECT_EQ(c.l->vb->h, vi);
			sender.join();
		}
}

TEST(Cq, ResizeKeepsEntries)
{
	for (auto &level : levels()) {
		CqLink c(level.value, 32);
		std::vector<VIP_DESCRIPTOR *> recvs;
		for (int i = 0; i < 20; i++)
			recvs.push_back(c.l->recv_b(8));
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(*c.l->vb)); /* 20 entries at one time */
		{
			RULE(std::string(
				     "VIPL 5.6 VipResizeCQ: VIP_ERROR_RESOURCE if the contents do not fit, ") +
			     level.name);
			EXPECT_RC(VIP_ERROR_RESOURCE, VipResizeCQ(c.cq, 19));
			EXPECT_RC(VIP_ERROR_RESOURCE, VipResizeCQ(c.cq, 1));
		}
		RULE(std::string("VIPL 5.6 VipResizeCQ: keeps the entries, in order, ") +
		     level.name);
		EXPECT_RC(VIP_SUCCESS, VipResizeCQ(c.cq, 20));
		for (int i = 0; i < 10; i++)
			EXPECT_EQ(recvs[i], c.take());
		EXPECT_RC(VIP_SUCCESS, VipResizeCQ(c.cq, 10));
		EXPECT_RC(VIP_SUCCESS, VipResizeCQ(c.cq, 1000));
		for (int i = 10; i < 20; i++)
			EXPECT_EQ(recvs[i], c.take());
	}
}

TEST(Cq, OfOneEntryLosesNothing)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.6: a CQ of 1 entry loses no completion, ") + level.name);
		CqLink c(level.value, 1);
		std::vector<VIP_DESCRIPTOR *> recvs;
		for (int i = 0; i < 300; i++)
			recvs.push_back(c.l->recv_b(8));
		for (int i = 0; i < 300; i++)
			c.l->send_a({ c.l->seg_a(8) });
		for (int i = 0; i < 300; i++)
			EXPECT_EQ(recvs[i], c.take());
	}
}

TEST(Cq, DestroyViRemovesEntries)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.2 VipDestroyVi: entries of the VI left in a CQ are removed, ") +
		     level.name);
		Cq cq(nic(0));
		{
			Vi vi(nic(0), vi_attrs(level.value), cq, cq);
			Arena arena(nic(0));
			EXPECT_RC(VIP_SUCCESS, VipPostSend(vi, make(arena, 0, {}), arena.mem.h));
			vi.drain();
		}
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN recv;
		EXPECT_RC(VIP_NOT_DONE, VipCQDone(cq, &vi, &recv));
	}
}

/* ---- notification and descriptors for epoll ------------------------------------------------- */

TEST(CqNotify, EntryAlreadyThere)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.6 VipCQNotify: an entry already there is removed and handed over, ") +
		     level.name);
		CqLink c(level.value);
		VIP_DESCRIPTOR *recv = c.l->recv_b(8);
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(*c.l->vb));
		CqSeen seen;
		EXPECT_RC(VIP_SUCCESS, VipCQNotify(c.cq, &seen, CqSeen::handler));
		ASSERT_TRUE(seen.reaches(1));
		EXPECT_EQ(recv, seen.list[0]);
		EXPECT_EQ(1u, seen.recvs);
		EXPECT_EQ(c.l->nb.h, seen.last_nic);
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN r;
		EXPECT_RC(VIP_NOT_DONE, VipCQDone(c.cq, &vi, &r));
	}
}

TEST(CqNotify, SeveralAreServedInOrder)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.6 VipCQNotify: armed for the next entries, one each, in order, ") +
		     level.name);
		CqLink c(level.value);
		CqSeen seen;
		std::vector<VIP_DESCRIPTOR *> recvs;
		for (int i = 0; i < 10; i++) {
			recvs.push_back(c.l->recv_b(8));
			EXPECT_RC(VIP_SUCCESS, VipCQNotify(c.cq, &seen, CqSeen::handler));
		}
		recvs.push_back(c.l->recv_b(8));
		for (int i = 0; i < 11; i++)
			c.l->send_a({ c.l->seg_a(8) });
		ASSERT_TRUE(seen.reaches(10));
		EXPECT_EQ(recvs[10], c.take()) << "one-shot: the last is for the queue";
		EXPECT_EQ(std::vector<VIP_DESCRIPTOR *>(recvs.begin(), recvs.begin() + 10),
			  seen.list);
	}
}

TEST(CqNotify, DestroyCancels)
{
	RULE("VIPL 5.6 VipDestroyCQ: cancels pending notifies");
	CqSeen seen;
	{
		Cq cq(nic(0));
		EXPECT_RC(VIP_SUCCESS, VipCQNotify(cq, &seen, CqSeen::handler));
		EXPECT_RC(VIP_SUCCESS, VipCQNotify(cq, &seen, CqSeen::handler));
	}
	EXPECT_TRUE(seen.list.empty());
}

TEST(CqFd, ReadableAfterAnEntry)
{
	for (auto &level : levels()) {
		CqLink c(level.value);
		int fd = -1, again = -1;
		ASSERT_RC(VIP_SUCCESS, VipxCQFd(c.cq, &fd));
		{
			RULE(std::string(
				     "vipl_ext VipxCQFd: every call gives the same descriptor, ") +
			     level.name);
			ASSERT_RC(VIP_SUCCESS, VipxCQFd(c.cq, &again));
			EXPECT_EQ(fd, again);
		}
		for (int i = 0; i < 10; i++) {
			RULE(std::string(
				     "vipl_ext VipxCQArm: readable after an entry that came later, ") +
			     level.name);
			VIP_DESCRIPTOR *recv = c.l->recv_b(8);
			EXPECT_RC(VIP_SUCCESS, VipxCQArm(c.cq));
			EXPECT_FALSE(readable(fd, 0));
			c.l->send_a({ c.l->seg_a(8) });
			EXPECT_TRUE(readable(fd, kWaitMs));
			EXPECT_EQ(recv, c.take());
		}
		RULE(std::string("vipl_ext VipxCQArm: readable at once when entries are there, ") +
		     level.name);
		c.l->recv_b(8);
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(*c.l->vb));
		EXPECT_RC(VIP_SUCCESS, VipxCQArm(c.cq));
		EXPECT_TRUE(readable(fd, kWaitMs));
		c.take();
		EXPECT_RC(VIP_SUCCESS, VipxCQArm(c.cq));
		EXPECT_FALSE(readable(fd, 0));
	}
}
