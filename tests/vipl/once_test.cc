/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program repeats flushed operations: on reliable levels nothing may be flushed that was delivered,
 * and nothing may be reported as done that was not.
 */
#include "harness.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

using namespace conf;

namespace {

constexpr VIP_UINT32 kFlushed = VIP_STATUS_DESC_FLUSHED_ERROR;
constexpr int kSends = 24;

std::string rule(const std::string &what, const Level &level)
{
	return "VIPL 7, in-flight operations when an error hits: " + what + ", " + level.name;
}

/* Sends of two segments from side a, which wait for side b; each has a receive of its own there. */
struct Sends {
	Sends(Link &link, size_t bytes, int count = kSends) : l(link), size(bytes)
	{
		for (int i = 0; i < count; i++) {
			recvs.push_back(l.recv_b(size));
			Seg seg = l.seg_a(size);
			fill(seg.p, size, i);
			auto *rest = static_cast<char *>(seg.p) + 1;
			sends.push_back(
				l.send_a({ { seg.p, seg.h, 1 }, { rest, seg.h, seg.length - 1 } }));
		}
	}
	void expect_all_done()
	{
		for (size_t i = 0; i < sends.size(); i++) {
			ASSERT_EQ(sends[i], take_send(*l.va));
			EXPECT_TRUE(has_status(sends[i], VIP_STATUS_OP_SEND)) << "send " << i;
		}
		for (size_t i = 0; i < sends.size(); i++) {
			ASSERT_EQ(recvs[i], take_recv(*l.vb));
			EXPECT_TRUE(has_status(recvs[i], VIP_STATUS_OP_RECEIVE)) << "message " << i;
			EXPECT_TRUE(same(recvs[i]->DS[0].Local.Data.Address, size, i));
		}
	}
	/* Each is done, or flushed and not received; all that were done come before all that were not. */
	void expect_known()
	{
		bool flushed = false;
		for (size_t i = 0; i < sends.size(); i++) {
			ASSERT_EQ(sends[i], take_send(*l.va));
			ASSERT_EQ(recvs[i], take_recv(*l.vb));
			bool received = !(recvs[i]->CS.Status & VIP_STATUS_ERROR_MASK);
			if (sends[i]->CS.Status & VIP_STATUS_ERROR_MASK) {
				flushed = true;
				EXPECT_TRUE(has_status(sends[i], VIP_STATUS_OP_SEND | kFlushed));
				EXPECT_FALSE(received) << "flushed, and it arrived: send " << i;
			} else {
				EXPECT_FALSE(flushed) << i;
				EXPECT_TRUE(received) << "done, and it did not arrive: send " << i;
			}
		}
	}
	Link &l;
	size_t size;
	std::vector<VIP_DESCRIPTOR *> sends, recvs;
};

struct Spoilt {
	const char *what;
	VIP_UINT32 status;
	void (*spoil)(VIP_DESCRIPTOR *);
};

const Spoilt kSpoilt[] = {
	{ "a bad handle", VIP_STATUS_PROTECTION_ERROR,
	  [](VIP_DESCRIPTOR *d) { d->DS[0].Local.Handle = 0x7777; } },
	{ "a reserved bit", VIP_STATUS_FORMAT_ERROR,
	  [](VIP_DESCRIPTOR *d) { d->CS.Control |= 0x10; } },
	{ "a wrong length", VIP_STATUS_LENGTH_ERROR, [](VIP_DESCRIPTOR *d) { d->CS.Length++; } },
};

} // namespace

TEST(Once, WhatWasPostedBeforeABadDescriptor)
{
	for (auto &level : levels())
		for (auto &bad : kSpoilt)
			for (size_t size : { 8, 112, 2000, 40000 }) {
				if (!level.reliable())
					continue;
				RULE(rule(std::string("what was posted before a descriptor with ") +
						  bad.what + " completes first",
					  level));
				Link l(level.value);
				Sends before(l, size);
				VIP_DESCRIPTOR *desc = make(l.a, 0, { l.seg_a(64) });
				bad.spoil(desc);
				l.post_a(desc);
				VIP_DESCRIPTOR *later = l.send_a({ l.seg_a(64) });
				before.expect_all_done();
				ASSERT_EQ(desc, take_send(*l.va));
				EXPECT_TRUE(has_status(desc, VIP_STATUS_OP_SEND | bad.status));
				ASSERT_EQ(later, take_send(*l.va));
				EXPECT_TRUE(has_status(later, VIP_STATUS_OP_SEND | kFlushed));
				EXPECT_TRUE(l.broken());
			}
}

TEST(Once, WritesAndReadsBeforeABadDescriptor)
{
	for (auto &level : levels()) {
		if (!level.reliable())
			continue;
		RULE(rule("RDMA that was posted before a bad descriptor completes first", level));
		Link l(level.value);
		Mem target(l.nb, 100000, true, true);
		std::vector<VIP_DESCRIPTOR *> all;
		for (size_t size : { 16, 3000, 100000 }) {
			Seg from = l.seg_a(size), to = l.seg_a(size);
			fill(from.p, size, size);
			all.push_back(l.write_a({ from }, { target.data, target.h }));
			if (offers_read(level))
				all.push_back(l.read_a({ to }, { target.data, target.h },
						       VIP_CONTROL_QFENCE));
		}
		VIP_DESCRIPTOR *desc = make(l.a, VIP_CONTROL_OP_RESERVED, { l.seg_a(64) });
		l.post_a(desc);
		for (auto *d : all) {
			ASSERT_EQ(d, take_send(*l.va));
			EXPECT_EQ(0u, d->CS.Status & VIP_STATUS_ERROR_MASK)
				<< status_text(d->CS.Status);
		}
		ASSERT_EQ(desc, take_send(*l.va));
		EXPECT_TRUE(has_error(desc, VIP_STATUS_FORMAT_ERROR));
		EXPECT_TRUE(same(target.data, 100000, 100000));
		EXPECT_TRUE(l.broken());
	}
}

/* A message of the peer meets no receive while sends of this side are under way. */
TEST(Once, AnErrorOfTheOwnReceiveQueue)
{
	for (auto &level : levels())
		for (size_t size : { 112, 2000, 40000 })
			for (int bad = 0; bad < 2; bad++) {
				if (!level.reliable())
					continue;
				RULE(rule(
					"an error of the own receive queue flushes nothing that was delivered",
					level));
				Link l(level.value);
				if (bad) {
					VIP_DESCRIPTOR *recv = make(l.a, 0, { l.seg_a(64) });
					recv->DS[0].Local.Handle = 0x7777;
					EXPECT_RC(VIP_SUCCESS, VipPostRecv(*l.va, recv, l.a.mem.h));
				}
				VIP_DESCRIPTOR *back = make(l.b, 0, { l.seg_b(64) });
				Sends out(l, size, 8);
				EXPECT_RC(VIP_SUCCESS, VipPostSend(*l.vb, back, l.b.mem.h));
				EXPECT_TRUE(l.broken());
				out.expect_known();
			}
}

TEST(Once, Disconnect)
{
	for (auto &level : levels())
		for (size_t size : { 8, 112, 2000, 40000 })
			for (int polls = 0; polls < 2; polls++) {
				if (!level.reliable())
					continue;
				RULE(std::string(
					     "VIPL 5.3 VipDisconnect: flushed is what was not delivered, "
					     "done is what was, ") +
				     level.name);
				Link l(level.value);
				Sends out(l, size);
				if (polls)
					VipRecvWait(*l.vb, 0, &out.recvs[0]);
				EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.va));
				EXPECT_EQ(VIP_STATE_IDLE, l.va->state());
				EXPECT_TRUE(l.vb->reaches(VIP_STATE_ERROR));
				if (!polls)
					out.expect_known();
			}
}

/* A message that has begun is completed, even if the fifo holds only a part of it. */
TEST(Once, DisconnectBehindALongMessage)
{
	for (auto &level : levels())
		for (bool with_cq : { false, true }) {
			if (!level.reliable())
				continue;
			RULE(std::string(
				     "VIPL 5.3 VipDisconnect: a message that has begun arrives, ") +
			     level.name);
			Cq cq(nic(0));
			LinkOptions o;
			o.a_scq = with_cq ? cq.h : nullptr;
			Link l(level.value, o);
			VIP_DESCRIPTOR *recv = l.recv_b(1u << 20);
			Seg seg = l.seg_a(1u << 20);
			fill(seg.p, seg.length, 3);
			VIP_DESCRIPTOR *send = l.send_a({ seg });
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.va));
			EXPECT_TRUE(has_status(send, VIP_STATUS_OP_SEND));
			EXPECT_TRUE(l.vb->reaches(VIP_STATE_ERROR));
			ASSERT_EQ(recv, take_recv(*l.vb));
			EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_RECEIVE));
			EXPECT_TRUE(same(recv->DS[0].Local.Data.Address, 1u << 20, 3));
		}
}

TEST(Once, BothDisconnect)
{
	for (auto &level : levels())
		for (int round = 0; round < 10; round++) {
			if (!level.reliable())
				continue;
			RULE(std::string("VIPL 5.3 VipDisconnect: both sides at once, ") +
			     level.name);
			Link l(level.value);
			for (int i = 0; i < 4; i++) {
				l.recv_a(64);
				l.recv_b(64);
			}
			for (int i = 0; i < 4; i++) {
				l.send_a({ l.seg_a(64) });
				EXPECT_RC(VIP_SUCCESS,
					  VipPostSend(*l.vb, make(l.b, 0, { l.seg_b(64) }),
						      l.b.mem.h));
			}
			std::thread other([&] { EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.vb)); });
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.va));
			other.join();
			EXPECT_EQ(VIP_STATE_IDLE, l.va->state());
			EXPECT_EQ(VIP_STATE_IDLE, l.vb->state());
		}
}

/* A handler disconnects, with sends under way. */
TEST(Once, DisconnectInAHandler)
{
	for (auto &level : levels()) {
		if (!level.reliable())
			continue;
		RULE(std::string("VIPL 5.8: VipDisconnect in a handler, with sends under way, ") +
		     level.name);
		static std::atomic<int> called;
		called = 0;
		Link l(level.value);
		VIP_DESCRIPTOR *recv = l.recv_a(64);
		EXPECT_RC(VIP_SUCCESS, VipRecvNotify(*l.va, nullptr,
						     [](VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE vi,
							VIP_DESCRIPTOR *) {
							     EXPECT_RC(VIP_SUCCESS,
								       VipDisconnect(vi));
							     called++;
						     }));
		Sends out(l, 2000);
		EXPECT_RC(VIP_SUCCESS,
			  VipPostSend(*l.vb, make(l.b, 0, { l.seg_b(64) }), l.b.mem.h));
		EXPECT_TRUE(eventually([] { return called == 1; }));
		EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_RECEIVE));
		EXPECT_TRUE(l.vb->reaches(VIP_STATE_ERROR));
		out.expect_known();
	}
}

/* The peer takes nothing: its process is stopped. */
TEST(Once, DisconnectFromAPeerThatIsStopped)
{
	for (auto &level : levels()) {
		if (!level.reliable())
			continue;
		RULE(std::string(
			     "VIPL 5.3 VipDisconnect: a peer that takes nothing does not hold it up, ") +
		     level.name);
		Vi vi(nic(0), vi_attrs(level.value, 16u << 20));
		Arena arena(nic(0), nullptr, 8192);
		pid_t pid = connect_stopped(vi);
		ASSERT_GT(pid, 0);
		VIP_DESCRIPTOR *desc = make(arena, 0,
					    { { arena.bytes(2000), arena.mem.h, 2000 },
					      { arena.bytes(2000), arena.mem.h, 2000 } });
		EXPECT_RC(VIP_SUCCESS, VipPostSend(vi, desc, arena.mem.h));
		EXPECT_FALSE(is_done(desc));
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(vi));
		EXPECT_EQ(VIP_STATE_IDLE, vi.state());
		EXPECT_EQ(desc, take_send(vi));
		EXPECT_TRUE(has_status(desc, VIP_STATUS_OP_SEND | kFlushed));
		kill(pid, SIGKILL);
		EXPECT_EQ(-1, child_wait(pid));
	}
}

/* ---- lines on standard error of a program without a callback ------------------------------------- */

namespace {

/* Sends standard error to a file without a name while it lives. */
struct Stderr {
	Stderr() : kept(dup(2)), file(memfd_create("stderr", MFD_CLOEXEC)) { dup2(file, 2); }
	~Stderr()
	{
		dup2(kept, 2);
		close(kept);
		close(file);
	}
	std::string text() const
	{
		char room[8192];
		ssize_t n = pread(file, room, sizeof(room), 0);
		return { room, n > 0 ? static_cast<size_t>(n) : 0 };
	}
	bool has(const std::string &part) const { return text().find(part) != std::string::npos; }
	int kept, file;
};

} // namespace

TEST(Once, ADisconnectIsNoNews)
{
	for (auto &level : levels())
		for (bool fault : { false, true }) {
			if (!level.reliable() && fault)
				continue;
			RULE(std::string("VIPL 5.8 VipErrorCallback: the default handler ") +
			     (fault ? "writes down a connection that broke, "
				    : "does not write down an orderly end, ") +
			     level.name);
			Nic mine(0);
			Arena arena(mine, nullptr, 8192);
			Vi a(mine, vi_attrs(level.value)), b(nic(1), vi_attrs(level.value));
			Arena far(nic(1), nullptr, 8192);
			connect(a, b);
			EXPECT_RC(VIP_SUCCESS, VipErrorCallback(mine.h, nullptr, nullptr));
			for (int i = 0; i < 3; i++) {
				VIP_DESCRIPTOR *recv =
					make(far, 0, { { far.bytes(64), far.mem.h, 64 } });
				EXPECT_RC(VIP_SUCCESS, VipPostRecv(b, recv, far.mem.h));
				VIP_DESCRIPTOR *send =
					make(arena, 0, { { arena.bytes(64), arena.mem.h, 64 } });
				EXPECT_RC(VIP_SUCCESS, VipPostSend(a, send, arena.mem.h));
				EXPECT_EQ(send, take_send(a));
				EXPECT_EQ(recv, take_recv(b));
			}
			Stderr said;
			if (fault)
				EXPECT_RC(VIP_SUCCESS,
					  VipPostSend(b, make(far, VIP_CONTROL_OP_RESERVED, {}),
						      far.mem.h));
			else
				EXPECT_RC(VIP_SUCCESS, VipDisconnect(b));
			EXPECT_TRUE(a.reaches(VIP_STATE_ERROR));
			/* A second error writes a line after it: errors are handled in order. */
			EXPECT_RC(VIP_INVALID_PARAMETER,
				  VipPostSend(
					  a, reinterpret_cast<VIP_DESCRIPTOR *>(arena.mem.data + 8),
					  arena.mem.h));
			EXPECT_TRUE(eventually([&] { return said.has("could not be queued"); }));
			EXPECT_EQ(fault, said.has("connection is lost")) << said.text();
		}
}
