/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VIPL 7, the table of errors by level.  S is the sender's status, R the
 * receiver's, A the asynchronous event, "break" both VIs in Error and everything
 * else flushed.
 */
#include "harness.h"

using namespace conf;

namespace {

constexpr VIP_UINT32 kFlushed = VIP_STATUS_DESC_FLUSHED_ERROR;

std::string rule(const char *event, const std::string &what, const Level &level)
{
	return std::string("VIPL 7, ") + event + ": " + what + ", " + level.name;
}

/* Expects after an error: a break with everything flushed on reliable levels, else a connection that works. */
void expect_aftermath(Link &l, const Level &level, VIP_DESCRIPTOR *later_send,
		      VIP_DESCRIPTOR *later_recv)
{
	if (!level.reliable()) {
		EXPECT_EQ(VIP_STATE_CONNECTED, l.va->state());
		EXPECT_EQ(VIP_STATE_CONNECTED, l.vb->state());
		return;
	}
	EXPECT_TRUE(l.broken());
	if (later_send) {
		EXPECT_EQ(later_send, take_send(*l.va));
		EXPECT_TRUE(has_error(later_send, kFlushed | VIP_STATUS_TRANSPORT_ERROR));
	}
	if (later_recv) {
		EXPECT_EQ(later_recv, take_recv(*l.vb));
		EXPECT_TRUE(has_status(later_recv, VIP_STATUS_OP_RECEIVE | kFlushed));
	}
}

struct BadDesc {
	std::string what;
	std::function<VIP_DESCRIPTOR *(Link &, Mem &)> make;
	VIP_UINT32 status;
	bool reliable_only = false;
};

std::vector<BadDesc> bad_sends()
{
	auto send = [](Link &l) { return make(l.a, VIP_CONTROL_OP_SENDRECV, { l.seg_a(64) }); };
	std::vector<BadDesc> all = {
		{ "operation 3",
		  [=](Link &l, Mem &) {
			  VIP_DESCRIPTOR *d = send(l);
			  d->CS.Control = VIP_CONTROL_OP_RESERVED;
			  return d;
		  },
		  VIP_STATUS_FORMAT_ERROR },
		{ "SegCount above MaxSegmentsPerDesc",
		  [=](Link &l, Mem &) {
			  VIP_DESCRIPTOR *d =
				  make(l.a, 0,
				       std::vector<Seg>(l.na.attrs.MaxSegmentsPerDesc + 1,
							Seg{ l.a.mem.data, l.a.mem.h, 0 }));
			  return d;
		  },
		  VIP_STATUS_FORMAT_ERROR },
		{ "SegCount 65535",
		  [=](Link &l, Mem &) {
			  VIP_DESCRIPTOR *d = send(l);
			  d->CS.SegCount = 65535;
			  return d;
		  },
		  VIP_STATUS_FORMAT_ERROR },
		{ "an RDMA write without address segment",
		  [=](Link &l, Mem &) {
			  VIP_DESCRIPTOR *d = l.a.desc();
			  d->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
			  return d;
		  },
		  VIP_STATUS_FORMAT_ERROR },
		{ "an RDMA read without address segment",
		  [=](Link &l, Mem &) {
			  VIP_DESCRIPTOR *d = l.a.desc();
			  d->CS.Control = VIP_CONTROL_OP_RDMAREAD;
			  return d;
		  },
		  VIP_STATUS_FORMAT_ERROR },
		{ "Length below the sum of the segments",
		  [=](Link &l, Mem &) {
			  VIP_DESCRIPTOR *d = send(l);
			  d->CS.Length--;
			  return d;
		  },
		  VIP_STATUS_LENGTH_ERROR },
		{ "Length above the sum of the segments",
		  [=](Link &l, Mem &) {
			  VIP_DESCRIPTOR *d = send(l);
			  d->CS.Length++;
			  return d;
		  },
		  VIP_STATUS_LENGTH_ERROR },
		{ "Length 0 with segments of 64 bytes",
		  [=](Link &l, Mem &) {
			  VIP_DESCRIPTOR *d = send(l);
			  d->CS.Length = 0;
			  return d;
		  },
		  VIP_STATUS_LENGTH_ERROR },
		{ "Length 64 without segments",
		  [=](Link &l, Mem &) {
			  VIP_DESCRIPTOR *d = l.a.desc();
			  d->CS.Length = 64;
			  return d;
		  },
		  VIP_STATUS_LENGTH_ERROR },
		{ "segments whose sum wraps round 32 bits",
		  [=](Link &l, Mem &) {
			  VIP_DESCRIPTOR *d = make(l.a, 0,
						   { { l.a.mem.data, l.a.mem.h, 0x80000000u },
						     { l.a.mem.data, l.a.mem.h, 0x80000040u } });
			  d->CS.Length = 64;
			  return d;
		  },
		  VIP_STATUS_LENGTH_ERROR | VIP_STATUS_PROTECTION_ERROR },
		{ "Length above the VI's MaxTransferSize",
		  [=](Link &l, Mem &) {
			  return make(l.a, 0,
				      { { l.a.bytes((1u << 20) + 1), l.a.mem.h, (1u << 20) + 1 } });
		  },
		  VIP_STATUS_LENGTH_ERROR },
		{ "an RDMA write above the VI's MaxTransferSize",
		  [=](Link &l, Mem &t) {
			  return make(l.a, VIP_CONTROL_OP_RDMAWRITE,
				      { { l.a.bytes((1u << 20) + 1), l.a.mem.h, (1u << 20) + 1 } },
				      Remote{ t.data, t.h });
		  },
		  VIP_STATUS_LENGTH_ERROR },
		{ "an RDMA read above the VI's MaxTransferSize",
		  [=](Link &l, Mem &t) {
			  return make(l.a, VIP_CONTROL_OP_RDMAREAD,
				      { { l.a.bytes((1u << 20) + 1), l.a.mem.h, (1u << 20) + 1 } },
				      Remote{ t.data, t.h });
		  },
		  VIP_STATUS_LENGTH_ERROR, true },
		{ "a local buffer with handle 0",
		  [=](Link &l, Mem &) {
			  VIP_DESCRIPTOR *d = send(l);
			  d->DS[0].Local.Handle = 0;
			  return d;
		  },
		  VIP_STATUS_PROTECTION_ERROR },
		{ "a local buffer one byte beyond its region",
		  [=](Link &l, Mem &) {
			  VIP_DESCRIPTOR *d = send(l);
			  d->DS[0].Local.Data.Address = l.a.mem.data + l.a.mem.length - 63;
			  return d;
		  },
		  VIP_STATUS_PROTECTION_ERROR },
		{ "a local buffer one byte before its region",
		  [=](Link &l, Mem &) {
			  VIP_DESCRIPTOR *d = send(l);
			  d->DS[0].Local.Data.Address = l.a.mem.data - 1;
			  return d;
		  },
		  VIP_STATUS_PROTECTION_ERROR },
		{ "the second of two segments not registered",
		  [=](Link &l, Mem &) {
			  return make(l.a, 0, { l.seg_a(64), { l.a.bytes(64), 0x7777, 64 } });
		  },
		  VIP_STATUS_PROTECTION_ERROR },
		{ "an RDMA write from a buffer that is not registered",
		  [=](Link &l, Mem &t) {
			  return make(l.a, VIP_CONTROL_OP_RDMAWRITE,
				      { { l.a.bytes(64), 0x7777, 64 } }, Remote{ t.data, t.h });
		  },
		  VIP_STATUS_PROTECTION_ERROR },
		{ "an RDMA read into a buffer that is not registered",
		  [=](Link &l, Mem &t) {
			  return make(l.a, VIP_CONTROL_OP_RDMAREAD,
				      { { l.a.bytes(64), 0x7777, 64 } }, Remote{ t.data, t.h });
		  },
		  VIP_STATUS_PROTECTION_ERROR, true },
	};
	for (int bit = 4; bit < 16; bit++)
		all.push_back({ "reserved Control bit " + std::to_string(bit),
				[=](Link &l, Mem &) {
					VIP_DESCRIPTOR *d = send(l);
					d->CS.Control |= static_cast<VIP_UINT16>(1u << bit);
					return d;
				},
				VIP_STATUS_FORMAT_ERROR });
	return all;
}

} // namespace

TEST(Reliability, BadSends)
{
	LinkOptions o;
	o.arena = 8u << 20;
	for (auto &level : levels())
		for (auto &bad : bad_sends()) {
			if (bad.reliable_only && !offers_read(level))
				continue;
			RULE(rule("bad descriptor or local buffer",
				  bad.what + " gives S an error" +
					  (level.reliable() ? " and breaks" : ", not sent"),
				  level));
			Link l(level.value, o);
			Mem target(l.nb, 2u << 20, true, true);
			VIP_DESCRIPTOR *recv = l.recv_b(128), *desc = bad.make(l, target);
			l.post_a(desc);
			VIP_DESCRIPTOR *later = l.send_a({ l.seg_a(8) });
			ASSERT_EQ(desc, take_send(*l.va));
			EXPECT_TRUE(has_error(desc, bad.status));
			if (level.reliable()) {
				expect_aftermath(l, level, later, recv);
			} else {
				/* It was not sent: the receive takes the next message. */
				EXPECT_EQ(later, take_send(*l.va));
				EXPECT_EQ(recv, take_recv(*l.vb));
				EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_RECEIVE));
				EXPECT_EQ(8u, recv->CS.Length);
				EXPECT_TRUE(l.unbroken());
			}
		}
}

TEST(Reliability, RdmaReadWhereNotOffered)
{
	for (auto &level : levels()) {
		if (offers_read(level))
			continue;
		RULE(rule("RDMA read",
			  "is not offered at this level: S gets an error, nothing is read", level));
		Link l(level.value);
		Mem source(l.nb, 64, false, true);
		Seg seg = l.seg_a(64);
		memset(seg.p, 0x11, 64);
		VIP_DESCRIPTOR *desc = l.read_a({ seg }, { source.data, source.h });
		EXPECT_EQ(desc, take_send(*l.va));
		EXPECT_TRUE(has_error(desc, VIP_STATUS_ERROR_MASK));
		for (int i = 0; i < 64; i++)
			EXPECT_EQ(0x11, static_cast<char *>(seg.p)[i]);
		EXPECT_TRUE(l.unbroken());
	}
}

TEST(Reliability, NoReceivePosted)
{
	for (auto &level : levels())
		for (size_t size : { 0, 8, 100, 50000 }) {
			Link l(level.value);
			VIP_DESCRIPTOR *send = l.send_a({ l.seg_a(size) });
			RULE(rule(
				"no receive posted",
				level.value == VIP_SERVICE_UNRELIABLE
					? "dropped, A RECVQ_EMPTY, stays connected"
				: level.value == VIP_SERVICE_RELIABLE_DELIVERY
					? "A RECVQ_EMPTY, break, S may be SUCCESS, TRANSPORT or REMOTE_DESC"
					: "S REMOTE_DESC_ERROR, break",
				level));
			ASSERT_EQ(send, take_send(*l.va));
			switch (level.value) {
			case VIP_SERVICE_UNRELIABLE:
				EXPECT_TRUE(has_status(send, VIP_STATUS_OP_SEND));
				EXPECT_TRUE(l.nb.wait_event(VIP_ERROR_RECVQ_EMPTY, l.vb->h));
				EXPECT_TRUE(l.unbroken());
				break;
			case VIP_SERVICE_RELIABLE_DELIVERY:
				EXPECT_EQ(0u, send->CS.Status & VIP_STATUS_ERROR_MASK &
						      ~(VIP_STATUS_TRANSPORT_ERROR |
							VIP_STATUS_REMOTE_DESC_ERROR));
				EXPECT_TRUE(l.nb.wait_event(VIP_ERROR_RECVQ_EMPTY, l.vb->h));
				EXPECT_TRUE(l.broken());
				break;
			default:
				EXPECT_TRUE(has_error(send, VIP_STATUS_REMOTE_DESC_ERROR));
				EXPECT_TRUE(l.broken());
			}
		}
}

TEST(Reliability, LossesAreCountedAtTheReceiver)
{
	RULE("VIPL 7, no receive posted: unreliable losses are counted on the receiver's side, once");
	Link l(VIP_SERVICE_UNRELIABLE);
	Mem target(l.nb, 64, true);
	for (int i = 0; i < 10; i++) {
		if (i % 2)
			l.send_a({ l.seg_a(8) });
		else
			l.write_a({ l.seg_a(8) }, { target.data, target.h }, VIP_CONTROL_IMMEDIATE,
				  1);
		EXPECT_NE(nullptr, take_send(*l.va));
		EXPECT_TRUE(l.nb.wait_event(VIP_ERROR_RECVQ_EMPTY, l.vb->h));
	}
	VIPX_COUNTERS c{};
	c.Size = sizeof(c);
	EXPECT_RC(VIP_SUCCESS, VipxQueryCounters(l.nb.h, *l.vb, &c));
	EXPECT_EQ(10u, c.RecvQueueEmpty);
	EXPECT_EQ(10u, c.Dropped);
	EXPECT_EQ(0u, c.MessagesReceived);
	EXPECT_RC(VIP_SUCCESS, VipxQueryCounters(l.na.h, *l.va, &c));
	EXPECT_EQ(0u, c.RecvQueueEmpty);
}

TEST(Reliability, MessageTooLongForTheReceive)
{
	struct Case {
		size_t room, sent;
	} all[] = {
		{ 0, 1 }, { 63, 64 }, { 64, 65 }, { 100, 4000 }, { 4096, 4097 }, { 100, 100000 }
	};
	for (auto &level : levels())
		for (auto &c : all) {
			RULE(rule("message larger than the receive",
				  "R LENGTH_ERROR" +
					  std::string(level.reliable() ? ", break" : "") +
					  (level.value == VIP_SERVICE_RELIABLE_RECEPTION
						   ? ", S REMOTE_DESC_ERROR"
						   : ""),
				  level));
			Link l(level.value);
			Mem room(l.nb, c.room + 1);
			VIP_DESCRIPTOR *recv = make(l.b, 0, { { room.data, room.h, c.room } }),
				       *next = nullptr;
			l.post_recv_b(recv);
			next = l.recv_b(16);
			room.data[c.room] = 0x3c;
			VIP_DESCRIPTOR *send = l.send_a({ l.seg_a(c.sent) });
			ASSERT_EQ(recv, take_recv(*l.vb));
			EXPECT_TRUE(has_error(recv, VIP_STATUS_LENGTH_ERROR));
			EXPECT_EQ(0x3c, room.data[c.room]) << "beyond the receive buffer";
			ASSERT_EQ(send, take_send(*l.va));
			if (level.value == VIP_SERVICE_RELIABLE_RECEPTION)
				EXPECT_TRUE(has_error(send, VIP_STATUS_REMOTE_DESC_ERROR));
			if (level.value == VIP_SERVICE_UNRELIABLE)
				EXPECT_TRUE(has_status(send, VIP_STATUS_OP_SEND));
			expect_aftermath(l, level, nullptr, level.reliable() ? next : nullptr);
			if (!level.reliable()) {
				l.send_a({ l.seg_a(16) });
				EXPECT_EQ(next, take_recv(*l.vb));
				EXPECT_TRUE(has_status(next, VIP_STATUS_OP_RECEIVE));
				EXPECT_NE(nullptr, take_send(*l.va));
				EXPECT_TRUE(l.unbroken());
			}
		}
}

TEST(Reliability, BadReceives)
{
	struct Case {
		const char *what;
		VIP_UINT32 status;
		std::function<void(Link &, VIP_DESCRIPTOR *)> spoil;
	} all[] = {
		{ "operation RDMA write", VIP_STATUS_FORMAT_ERROR,
		  [](Link &, VIP_DESCRIPTOR *d) { d->CS.Control = VIP_CONTROL_OP_RDMAWRITE; } },
		{ "operation RDMA read", VIP_STATUS_FORMAT_ERROR,
		  [](Link &, VIP_DESCRIPTOR *d) { d->CS.Control = VIP_CONTROL_OP_RDMAREAD; } },
		{ "operation 3", VIP_STATUS_FORMAT_ERROR,
		  [](Link &, VIP_DESCRIPTOR *d) { d->CS.Control = VIP_CONTROL_OP_RESERVED; } },
		{ "a reserved Control bit", VIP_STATUS_FORMAT_ERROR,
		  [](Link &, VIP_DESCRIPTOR *d) { d->CS.Control |= 0x8000; } },
		{ "SegCount 65535", VIP_STATUS_FORMAT_ERROR,
		  [](Link &, VIP_DESCRIPTOR *d) { d->CS.SegCount = 65535; } },
		{ "a buffer with handle 0", VIP_STATUS_PROTECTION_ERROR,
		  [](Link &, VIP_DESCRIPTOR *d) { d->DS[0].Local.Handle = 0; } },
		{ "a buffer one byte beyond its region", VIP_STATUS_PROTECTION_ERROR,
		  [](Link &l, VIP_DESCRIPTOR *d) {
			  d->DS[0].Local.Data.Address = l.b.mem.data + l.b.mem.length - 63;
		  } },
		{ "a buffer one byte before its region", VIP_STATUS_PROTECTION_ERROR,
		  [](Link &l, VIP_DESCRIPTOR *d) {
			  d->DS[0].Local.Data.Address = l.b.mem.data - 1;
		  } },
	};
	for (auto &level : levels())
		for (auto &c : all) {
			RULE(rule("receive descriptor malformed or unprotected",
				  std::string(c.what) + ": R an error" +
					  (level.reliable() ? ", break" : "") +
					  (level.value == VIP_SERVICE_RELIABLE_RECEPTION
						   ? ", S REMOTE_DESC_ERROR"
						   : ""),
				  level));
			Link l(level.value);
			VIP_DESCRIPTOR *recv = make(l.b, 0, { l.seg_b(64) });
			c.spoil(l, recv);
			l.post_recv_b(recv);
			VIP_DESCRIPTOR *send = l.send_a({ l.seg_a(64) });
			ASSERT_EQ(recv, take_recv(*l.vb));
			EXPECT_TRUE(has_error(recv, c.status));
			ASSERT_EQ(send, take_send(*l.va));
			if (level.value == VIP_SERVICE_RELIABLE_RECEPTION)
				EXPECT_TRUE(has_error(send, VIP_STATUS_REMOTE_DESC_ERROR |
								    VIP_STATUS_TRANSPORT_ERROR |
								    kFlushed));
			expect_aftermath(l, level, nullptr, nullptr);
		}
}

/* "RDMA write to an invalid region" and "RDMA read refused": the columns; protection_test has the ways. */
TEST(Reliability, RdmaWriteRefused)
{
	for (auto &level : levels())
		for (int immediate = 0; immediate < 2; immediate++) {
			RULE(rule("RDMA write to a forbidden region",
				  level.value == VIP_SERVICE_UNRELIABLE
					  ? "dropped, A RDMAW_PROT, stays connected"
				  : level.value == VIP_SERVICE_RELIABLE_DELIVERY
					  ? "A RDMAW_PROT, break, S RDMA_PROT if known in time"
					  : "S RDMA_PROT_ERROR, break",
				  level) +
			     (immediate ? ", with immediate data" : ""));
			Link l(level.value);
			Mem target(l.nb, 64, false, false);
			fill(target.data, 64, 1);
			VIP_DESCRIPTOR *recv = l.recv_b(16);
			VIP_DESCRIPTOR *desc = l.write_a({ l.seg_a(64) }, { target.data, target.h },
							 immediate ? VIP_CONTROL_IMMEDIATE : 0, 1);
			ASSERT_EQ(desc, take_send(*l.va));
			if (immediate) {
				EXPECT_EQ(recv, take_recv(*l.vb));
				EXPECT_TRUE(has_error(recv, VIP_STATUS_RDMA_PROT_ERROR |
								    VIP_STATUS_PROTECTION_ERROR));
			} else {
				EXPECT_TRUE(l.nb.wait_event(VIP_ERROR_RDMAW_PROT, l.vb->h));
			}
			EXPECT_TRUE(same(target.data, 64, 1));
			switch (level.value) {
			case VIP_SERVICE_UNRELIABLE:
				EXPECT_TRUE(has_status(desc, VIP_STATUS_OP_RDMA_WRITE));
				break;
			case VIP_SERVICE_RELIABLE_DELIVERY:
				EXPECT_EQ(0u, desc->CS.Status & VIP_STATUS_ERROR_MASK &
						      ~(VIP_STATUS_RDMA_PROT_ERROR |
							VIP_STATUS_TRANSPORT_ERROR));
				break;
			default:
				EXPECT_TRUE(has_error(desc, VIP_STATUS_RDMA_PROT_ERROR));
			}
			expect_aftermath(l, level, nullptr,
					 level.reliable() && !immediate ? recv : nullptr);
		}
}

TEST(Reliability, RdmaReadRefused)
{
	for (auto &level : levels()) {
		if (!offers_read(level))
			continue;
		RULE(rule("RDMA read refused",
			  "S RDMA_PROT_ERROR, A RDMAR_PROT at the target, break", level));
		Link l(level.value);
		Mem source(l.nb, 64, true, false);
		VIP_DESCRIPTOR *recv = l.recv_b(16);
		Seg seg = l.seg_a(64);
		memset(seg.p, 0x42, 64);
		VIP_DESCRIPTOR *desc = l.read_a({ seg }, { source.data, source.h });
		VIP_DESCRIPTOR *later = l.send_a({ l.seg_a(8) }, VIP_CONTROL_QFENCE);
		ASSERT_EQ(desc, take_send(*l.va));
		EXPECT_TRUE(has_error(desc, VIP_STATUS_RDMA_PROT_ERROR));
		EXPECT_TRUE(l.nb.wait_event(VIP_ERROR_RDMAR_PROT, l.vb->h));
		for (int i = 0; i < 64; i++)
			EXPECT_EQ(0x42, static_cast<char *>(seg.p)[i]);
		expect_aftermath(l, level, later, recv);
	}
}

TEST(Reliability, WriteWithImmediateMeetsNoReceive)
{
	for (auto &level : levels()) {
		RULE(rule("no receive posted", "for a write with immediate data", level));
		Link l(level.value);
		Mem target(l.nb, 64, true);
		VIP_DESCRIPTOR *desc = l.write_a({ l.seg_a(64) }, { target.data, target.h },
						 VIP_CONTROL_IMMEDIATE, 1);
		ASSERT_EQ(desc, take_send(*l.va));
		if (level.value == VIP_SERVICE_RELIABLE_RECEPTION)
			EXPECT_TRUE(has_error(desc, VIP_STATUS_REMOTE_DESC_ERROR));
		else
			EXPECT_TRUE(l.nb.wait_event(VIP_ERROR_RECVQ_EMPTY, l.vb->h));
		expect_aftermath(l, level, nullptr, nullptr);
	}
}

TEST(Reliability, PeerDisconnects)
{
	for (auto &level : levels()) {
		RULE(rule("peer lost", "A CONN_LOST, VI in Error, outstanding descriptors flushed",
			  level));
		Link l(level.value);
		std::vector<VIP_DESCRIPTOR *> recvs;
		for (int i = 0; i < 5; i++)
			recvs.push_back(l.recv_a(16));
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.vb));
		EXPECT_TRUE(l.na.wait_event(VIP_ERROR_CONN_LOST, l.va->h));
		EXPECT_EQ(VIP_STATE_ERROR, l.va->state());
		for (auto *r : recvs) {
			EXPECT_EQ(r, take_recv(*l.va));
			EXPECT_TRUE(has_status(r, VIP_STATUS_OP_RECEIVE | kFlushed));
		}
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.va));
		EXPECT_EQ(VIP_STATE_IDLE, l.va->state());
	}
}

TEST(Reliability, PeerDisconnectsUnderTraffic)
{
	for (auto &level : levels())
		for (size_t size : { 64, 5000, 200000 }) {
			RULE(rule("peer lost",
				  "under traffic every descriptor completes, once and in order",
				  level));
			LinkOptions o;
			o.arena = 64u << 20;
			Link l(level.value, o);
			std::vector<VIP_DESCRIPTOR *> sends;
			for (int i = 0; i < 100; i++)
				l.recv_b(size);
			for (int i = 0; i < 100; i++)
				sends.push_back(l.send_a({ l.seg_a(size) }));
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.vb));
			EXPECT_TRUE(l.va->reaches(VIP_STATE_ERROR));
			bool failed = false;
			for (auto *s : sends) {
				ASSERT_EQ(s, take_send(*l.va));
				bool error = (s->CS.Status & VIP_STATUS_ERROR_MASK) != 0;
				if (level.reliable() && failed)
					EXPECT_TRUE(error)
						<< "none succeeds behind one that failed";
				failed |= error;
			}
			VIP_DESCRIPTOR *got;
			EXPECT_RC(VIP_DESCRIPTOR_ERROR, VipSendDone(*l.va, &got));
			EXPECT_EQ(nullptr, got);
		}
}

/* Reliable reception: the failing descriptor is the one marked. */
TEST(Reliability, ReceptionMarksTheFailingDescriptor)
{
	const Level &level = levels()[2];
	for (int good = 0; good < 8; good++) {
		RULE(rule("no receive posted",
			  "the failing descriptor is marked, those before succeeded", level));
		Link l(level.value);
		std::vector<VIP_DESCRIPTOR *> recvs, sends;
		for (int i = 0; i < good; i++)
			recvs.push_back(l.recv_b(16));
		for (int i = 0; i < good + 3; i++) {
			Seg seg = l.seg_a(16);
			fill(seg.p, 16, i);
			sends.push_back(l.send_a({ seg }));
		}
		for (int i = 0; i < good + 3; i++) {
			ASSERT_EQ(sends[i], take_send(*l.va));
			if (i < good)
				EXPECT_TRUE(has_status(sends[i], VIP_STATUS_OP_SEND)) << i;
			else if (i == good)
				EXPECT_TRUE(has_error(sends[i], VIP_STATUS_REMOTE_DESC_ERROR));
			else
				EXPECT_TRUE(has_error(sends[i], kFlushed));
		}
		for (int i = 0; i < good; i++) {
			ASSERT_EQ(recvs[i], take_recv(*l.vb));
			EXPECT_TRUE(has_status(recvs[i], VIP_STATUS_OP_RECEIVE));
			EXPECT_TRUE(same(recvs[i]->DS[0].Local.Data.Address, 16, i));
		}
		EXPECT_TRUE(l.broken());
	}
}

/* Reliable reception: a completed send is in the target's memory. */
TEST(Reliability, ReceptionMeansInMemory)
{
	const Level &level = levels()[2];
	for (size_t size : { 8, 64, 1000, 70000 }) {
		RULE(rule("when a send completes", "its data is in the remote memory", level));
		Link l(level.value);
		Mem target(l.nb, size, true);
		for (int i = 1; i <= 10; i++) {
			VIP_DESCRIPTOR *recv = l.recv_b(size);
			Seg seg = l.seg_a(size);
			fill(seg.p, size, i);
			l.send_a({ seg });
			EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_SEND));
			EXPECT_TRUE(same(recv->DS[0].Local.Data.Address, size, i));
			EXPECT_EQ(recv, take_recv(*l.vb));
			l.write_a({ seg }, { target.data, target.h });
			EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_RDMA_WRITE));
			EXPECT_TRUE(same(target.data, size, i));
			l.a.used = l.b.used = 0;
		}
	}
}

TEST(Reliability, ErrorNeverHealsByItself)
{
	for (auto &level : levels()) {
		RULE(rule("state Error", "is left only by VipDisconnect", level));
		Link l(level.value);
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.vb));
		EXPECT_TRUE(l.va->reaches(VIP_STATE_ERROR));
		VIP_VI_ATTRIBUTES attrs = l.va->attrs;
		EXPECT_RC(VIP_INVALID_STATE, VipSetViAttributes(*l.va, &attrs));
		EXPECT_EQ(VIP_STATE_ERROR, l.va->state());
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(*l.va));
		connect(*l.va, *l.vb);
		EXPECT_TRUE(l.works());
	}
}
