/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VIPL 5.8 and 7: each asynchronous error that can happen, in the way that it happens between two
 * NICs.  VIP_ERROR_POST_DESC and VIP_ERROR_VI_OVERRUN, which need no peer, are in error_test.cc.
 */
#include "harness.h"

#include <signal.h>
#include <sys/wait.h>

using namespace conf;

namespace {

constexpr size_t kBig = 16u << 20; /* far more than fits between two sides */

LinkOptions big_link()
{
	LinkOptions o;
	o.max_transfer = kBig;
	return o;
}

/* Expects that the event came, and names its object. */
void expect_event(Nic &n, VIP_ERROR_CODE code, VIP_VI_HANDLE vi, VIP_RESOURCE_CODE resource,
		  const VIP_DESCRIPTOR *desc = nullptr, VIP_ULONG op = VIP_STATUS_OP_SEND)
{
	VIP_ERROR_DESCRIPTOR e{};
	ASSERT_TRUE(n.wait_event(code, vi, &e)) << "asynchronous error " << code;
	EXPECT_EQ(n.h, e.NicHandle);
	EXPECT_EQ(vi, e.ViHandle);
	EXPECT_EQ(resource, e.ResourceCode);
	EXPECT_EQ(desc, e.DescriptorPtr);
	EXPECT_EQ(op, e.OpCode);
}

void expect_operation(Nic &n, VIP_ERROR_CODE code, VIP_VI_HANDLE vi, VIP_ULONG op)
{
	VIP_ERROR_DESCRIPTOR e{};
	ASSERT_TRUE(n.wait_event(code, vi, &e)) << "asynchronous error " << code;
	EXPECT_EQ(n.h, e.NicHandle);
	EXPECT_EQ(vi, e.ViHandle);
	EXPECT_EQ(nullptr, e.CQHandle);
	EXPECT_EQ(nullptr, e.DescriptorPtr);
	EXPECT_EQ(VIP_RESOURCE_VI, e.ResourceCode);
	EXPECT_EQ(op, e.OpCode);
}

/* On a reliable level the connection is lost at both sides, on the unreliable level at none. */
void expect_loss(Link &l, const Level &level)
{
	if (!level.reliable()) {
		EXPECT_TRUE(l.unbroken());
		EXPECT_EQ(0u, l.na.events(VIP_ERROR_CONN_LOST, l.va->h));
		EXPECT_EQ(0u, l.nb.events(VIP_ERROR_CONN_LOST, l.vb->h));
		return;
	}
	EXPECT_TRUE(l.broken());
	expect_event(l.na, VIP_ERROR_CONN_LOST, l.va->h, VIP_RESOURCE_VI);
	expect_event(l.nb, VIP_ERROR_CONN_LOST, l.vb->h, VIP_RESOURCE_VI);
}

/* Deregisters the source of a write before it was sent; false when it was sent sooner. */
bool abandon_write(Link &l, Mem &target, VIP_UINT16 flags)
{
	Mem source(l.na, kBig);
	VIP_DESCRIPTOR *desc =
		l.write_a({ { source.data, source.h, kBig } }, { target.data, target.h }, flags, 1);
	source.deregister();
	VIP_DESCRIPTOR *got = take_send(*l.va);
	EXPECT_EQ(desc, got);
	return got && (got->CS.Status & VIP_STATUS_PROTECTION_ERROR);
}

} // namespace

TEST(Event, MessageWithoutReceive)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.8 RECVQ_EMPTY: at the receiver, with VI and operation, ") +
		     level.name);
		Link l(level.value);
		l.send_a({ l.seg_a(8) });
		expect_operation(l.nb, VIP_ERROR_RECVQ_EMPTY, l.vb->h, VIP_STATUS_OP_RECEIVE);
		EXPECT_NE(nullptr, take_send(*l.va));
		EXPECT_EQ(0u, l.na.events(VIP_ERROR_RECVQ_EMPTY, nullptr)) << "not at the sender";
		expect_loss(l, level);
	}
}

TEST(Event, RefusedWrite)
{
	for (auto &level : levels())
		for (int immediate = 0; immediate < 2; immediate++) {
			RULE(std::string("VIPL 5.8 RDMAW_PROT: at the target, ") +
			     (immediate ? "but with immediate data in the receive, " : "") +
			     level.name);
			Link l(level.value);
			Mem target(l.nb, 64, false, true);
			VIP_DESCRIPTOR *recv = l.recv_b(8);
			l.write_a({ l.seg_a(64) }, { target.data, target.h },
				  immediate ? VIP_CONTROL_IMMEDIATE : 0, 1);
			EXPECT_NE(nullptr, take_send(*l.va));
			if (immediate) {
				EXPECT_EQ(recv, take_recv(*l.vb));
				EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_REMOTE_RDMA_WRITE |
								     VIP_STATUS_RDMA_PROT_ERROR));
			} else {
				expect_operation(l.nb, VIP_ERROR_RDMAW_PROT, l.vb->h,
						 VIP_STATUS_OP_RDMA_WRITE);
			}
			if (!immediate && !level.reliable()) {
				EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.vb));
				EXPECT_EQ(recv, take_recv(*l.vb)) << "the write used up no receive";
			} else {
				expect_loss(l, level);
			}
			EXPECT_EQ(0u, l.nb.events(VIP_ERROR_RDMAW_PROT, l.vb->h));
			EXPECT_EQ(0u, l.na.events(VIP_ERROR_RDMAW_PROT, nullptr));
		}
}

TEST(Event, WriteNotFinished)
{
	for (auto &level : levels())
		for (int immediate = 0; immediate < 2; immediate++) {
			RULE(std::string("VIPL 5.8 RDMAW_ABORT: ") +
			     (level.reliable() ? "not on a reliable level, which breaks, "
			      : immediate      ? "with immediate data in the receive instead, "
					       : "at the target, ") +
			     level.name);
			std::unique_ptr<Link> l;
			std::unique_ptr<Mem> target;
			VIP_DESCRIPTOR *recv = nullptr;
			ASSERT_TRUE(eventually([&] {
				target.reset();
				l = std::make_unique<Link>(level.value, big_link());
				target = std::make_unique<Mem>(l->nb, kBig, true);
				recv = l->recv_b(8);
				return abandon_write(*l, *target,
						     immediate ? VIP_CONTROL_IMMEDIATE : 0);
			}));
			if (level.reliable()) {
				expect_loss(*l, level);
				EXPECT_EQ(recv, take_recv(*l->vb));
				EXPECT_TRUE(has_error(recv, VIP_STATUS_DESC_FLUSHED_ERROR));
				EXPECT_EQ(0u, l->nb.events(VIP_ERROR_RDMAW_ABORT, nullptr));
			} else if (immediate) {
				EXPECT_EQ(recv, take_recv(*l->vb));
				EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_REMOTE_RDMA_WRITE |
								     VIP_STATUS_PARTIAL_ERROR |
								     VIP_STATUS_TRANSPORT_ERROR));
				EXPECT_TRUE(l->unbroken());
				EXPECT_EQ(0u, l->nb.events(VIP_ERROR_RDMAW_ABORT, nullptr));
			} else {
				expect_operation(l->nb, VIP_ERROR_RDMAW_ABORT, l->vb->h,
						 VIP_STATUS_OP_RDMA_WRITE);
				EXPECT_FALSE(is_done(recv)) << "the write used up no receive";
				EXPECT_EQ(VIP_STATE_CONNECTED, l->vb->state());
			}
		}
}

TEST(Event, RefusedRead)
{
	for (auto &level : levels()) {
		if (!offers_read(level))
			continue;
		RULE(std::string("VIPL 5.8 RDMAR_PROT: at the target, the VIs break, ") +
		     level.name);
		Link l(level.value);
		Mem source(l.nb, 64, true, false);
		l.read_a({ l.seg_a(64) }, { source.data, source.h });
		EXPECT_TRUE(has_status(take_send(*l.va),
				       VIP_STATUS_OP_RDMA_READ | VIP_STATUS_RDMA_PROT_ERROR));
		expect_operation(l.nb, VIP_ERROR_RDMAR_PROT, l.vb->h, VIP_STATUS_OP_RDMA_READ);
		expect_loss(l, level);
		EXPECT_EQ(0u, l.na.events(VIP_ERROR_RDMAR_PROT, nullptr));
	}
}

TEST(Event, ReadWhoseSourceGoes)
{
	for (auto &level : levels()) {
		if (!offers_read(level))
			continue;
		RULE(std::string(
			     "VIPL 5.8 RDMAR_PROT: also when the source is deregistered while it "
			     "is read, ") +
		     level.name);
		std::unique_ptr<Link> l;
		VIP_DESCRIPTOR *got = nullptr;
		ASSERT_TRUE(eventually([&] {
			l = std::make_unique<Link>(level.value, big_link());
			Mem source(l->nb, kBig, false, true), room(l->na, kBig);
			l->read_a({ { room.data, room.h, kBig } }, { source.data, source.h });
			source.deregister();
			got = take_send(*l->va);
			return got && (got->CS.Status & VIP_STATUS_ERROR_MASK);
		}));
		EXPECT_TRUE(has_status(got, VIP_STATUS_OP_RDMA_READ | VIP_STATUS_RDMA_PROT_ERROR));
		expect_operation(l->nb, VIP_ERROR_RDMAR_PROT, l->vb->h, VIP_STATUS_OP_RDMA_READ);
		expect_loss(*l, level);
	}
}

/* The descriptor itself lies in memory that is no longer registered when it completes. */
TEST(Event, CompletionOfAReceive)
{
	for (auto &level : levels())
		for (int by = 0; by < 3; by++) {
			static const char *const methods[] = { "by a message",
							       "by the own disconnect",
							       "by the peer's disconnect" };
			RULE(std::string("VIPL 5.8 COMP_PROT: a receive whose descriptor is in "
					 "deregistered memory, completed ") +
			     methods[by] + ", " + level.name);
			Link l(level.value);
			Arena doomed(l.nb, nullptr, 4096);
			VIP_DESCRIPTOR *recv = make(doomed, 0, { l.seg_b(8) }), *got = nullptr;
			EXPECT_RC(VIP_SUCCESS, VipPostRecv(*l.vb, recv, doomed.mem.h));
			doomed.mem.deregister();
			if (by == 0) {
				l.send_a({ l.seg_a(8) });
				EXPECT_NE(nullptr, take_send(*l.va));
			} else {
				EXPECT_RC(VIP_SUCCESS, VipDisconnect(by == 1 ? *l.vb : *l.va));
			}
			expect_event(l.nb, VIP_ERROR_COMP_PROT, l.vb->h, VIP_RESOURCE_DESCRIPTOR,
				     recv, VIP_STATUS_OP_RECEIVE);
			EXPECT_EQ(0u, recv->CS.Status) << "not written";
			EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipRecvWait(*l.vb, kWaitMs, &got));
			EXPECT_EQ(recv, got) << "it must still be taken";
			if (by == 0)
				expect_loss(l, level);
		}
}

TEST(Event, CompletionOfASend)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 5.8 COMP_PROT: a send whose descriptor is in deregistered "
				 "memory, ") +
		     level.name);
		std::unique_ptr<Link> l;
		VIP_DESCRIPTOR *send = nullptr, *got = nullptr;
		std::unique_ptr<Arena> doomed;
		/* The earlier write takes so long that the send is still on its queue. */
		ASSERT_TRUE(eventually([&] {
			doomed.reset();
			l = std::make_unique<Link>(level.value, big_link());
			doomed = std::make_unique<Arena>(l->na, nullptr, 4096);
			Mem source(l->na, kBig), target(l->nb, kBig, true);
			l->recv_b(8);
			l->write_a({ { source.data, source.h, kBig } }, { target.data, target.h });
			send = make(*doomed, 0, { l->seg_a(8) });
			EXPECT_RC(VIP_SUCCESS, VipPostSend(*l->va, send, doomed->mem.h));
			doomed->mem.deregister();
			EXPECT_NE(nullptr, take_send(*l->va));
			got = take_send(*l->va);
			return !is_done(send);
		}));
		EXPECT_EQ(send, got) << "it must still be taken";
		expect_event(l->na, VIP_ERROR_COMP_PROT, l->va->h, VIP_RESOURCE_DESCRIPTOR, send,
			     VIP_STATUS_OP_SEND);
	}
}

TEST(Event, CompletionToACq)
{
	RULE("VIPL 4.6: a COMP_PROT names the completion queue of the work queue");
	Cq cq(nic(0));
	Vi vi(nic(0), vi_attrs(VIP_SERVICE_UNRELIABLE), nullptr, cq);
	Arena doomed(nic(0), nullptr, 4096);
	VIP_DESCRIPTOR *recv = make(doomed, 0, {});
	VIP_ERROR_DESCRIPTOR e{};
	VIP_VI_HANDLE who;
	VIP_BOOLEAN is_recv;
	nic(0).clear();
	EXPECT_RC(VIP_SUCCESS, VipPostRecv(vi, recv, doomed.mem.h));
	doomed.mem.deregister();
	EXPECT_RC(VIP_SUCCESS, VipDisconnect(vi));
	ASSERT_TRUE(nic(0).wait_event(VIP_ERROR_COMP_PROT, vi.h, &e));
	EXPECT_EQ(cq.h, e.CQHandle);
	EXPECT_EQ(recv, e.DescriptorPtr);
	EXPECT_RC(VIP_SUCCESS, VipCQDone(cq, &who, &is_recv)) << "it gives an entry all the same";
}

/* A peer that is stopped takes nothing: messages to it stay under way until it is killed. */
TEST(Event, PeerLostUnderRdma)
{
	for (auto &level : levels())
		for (int read = 0; read < 2; read++) {
			if (read && !offers_read(level))
				continue;
			RULE(std::string("VIPL 5.8 CONN_LOST: a peer lost under an RDMA ") +
			     (read ? "read" : "write") +
			     ": TRANSPORT_ERROR in the descriptor, CONN_LOST, no RDMA_TRANSPORT, " +
			     level.name);
			Vi vi(nic(0), vi_attrs(level.value, kBig));
			Arena arena(nic(0), nullptr, 4096);
			Mem data(nic(0), kBig);
			nic(0).clear();
			pid_t pid = connect_stopped(vi);
			ASSERT_GT(pid, 0);
			VIP_DESCRIPTOR *desc = make(
				arena, read ? VIP_CONTROL_OP_RDMAREAD : VIP_CONTROL_OP_RDMAWRITE,
				{ { data.data, data.h, kBig } }, Remote{ data.data, data.h });
			EXPECT_RC(VIP_SUCCESS, VipPostSend(vi, desc, arena.mem.h));
			EXPECT_FALSE(is_done(desc));
			kill(pid, SIGKILL);
			EXPECT_EQ(-1, child_wait(pid));
			EXPECT_EQ(desc, take_send(vi));
			EXPECT_TRUE(has_status(desc, (read ? VIP_STATUS_OP_RDMA_READ
							   : VIP_STATUS_OP_RDMA_WRITE) |
							     VIP_STATUS_TRANSPORT_ERROR |
							     VIP_STATUS_PARTIAL_ERROR));
			expect_event(nic(0), VIP_ERROR_CONN_LOST, vi.h, VIP_RESOURCE_VI);
			EXPECT_EQ(VIP_STATE_ERROR, vi.state());
			EXPECT_EQ(0u, nic(0).events(VIP_ERROR_RDMA_TRANSPORT, nullptr));
		}
}

TEST(Event, AgentGone)
{
	RULE("VIPL 5.8 CATASTROPHIC: the agent is gone; the connections are lost before, calls that "
	     "need it say so, the NIC can be closed");
	EXPECT_EQ(0, child_wait(spawn_child("agent-gone", fabric_name() + "-gone",
					    { "VIADUCT_FABRIC=" + fabric_name() + "-gone",
					      "VIADUCT_LOG=error" })));
}
