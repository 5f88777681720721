/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VIPL 8: each way an access is forbidden, for each kind of access and level.  A
 * refused access changes no byte of the target, and the error is the one of
 * VIPL 7.
 */
#include "harness.h"

#include <atomic>

using namespace conf;

namespace {

/* The address and the handle of the access. */
struct Spot {
	char *p;
	VIP_MEM_HANDLE h;
};

/* A target of 256 bytes with one thing wrong. */
struct Forbidden {
	std::string what;
	LinkOptions options;
	/* Prepares the target and returns the spot; the objects that it makes live in `keep`. */
	std::function<Spot(Link &, std::vector<std::unique_ptr<Mem>> &,
			   std::vector<std::unique_ptr<Ptag>> &)>
		prepare;
};

constexpr size_t kSize = 256;

LinkOptions options(bool tags, bool write, bool read)
{
	LinkOptions o;
	o.with_ptags = tags;
	o.enable_write = write;
	o.enable_read = read;
	return o;
}

std::vector<Forbidden> forbidden(bool write)
{
	using Mems = std::vector<std::unique_ptr<Mem>>;
	using Tags = std::vector<std::unique_ptr<Ptag>>;
	auto good = [](Link &l, Mems &keep) -> Mem & {
		keep.push_back(std::make_unique<Mem>(l.nb, kSize, true, true, l.tag_b()));
		return *keep.back();
	};
	std::vector<Forbidden> all = {
		{ "the VI does not enable it", options(false, !write, write),
		  [=](Link &l, Mems &keep, Tags &) {
			  Mem &m = good(l, keep);
			  return Spot{ m.data, m.h };
		  } },
		{ "the region does not enable it", options(false, true, true),
		  [=](Link &l, Mems &keep, Tags &) {
			  keep.push_back(std::make_unique<Mem>(l.nb, kSize, !write, write));
			  return Spot{ keep.back()->data, keep.back()->h };
		  } },
		{ "the region has another tag than the VI", options(true, true, true),
		  [=](Link &l, Mems &keep, Tags &tags) {
			  tags.push_back(std::make_unique<Ptag>(l.nb));
			  keep.push_back(
				  std::make_unique<Mem>(l.nb, kSize, true, true, tags.back()->h));
			  return Spot{ keep.back()->data, keep.back()->h };
		  } },
		{ "handle 0", options(false, true, true),
		  [=](Link &l, Mems &keep, Tags &) {
			  return Spot{ good(l, keep).data, 0 };
		  } },
		{ "handle 0xffffffff", options(false, true, true),
		  [=](Link &l, Mems &keep, Tags &) {
			  return Spot{ good(l, keep).data, 0xffffffff };
		  } },
		{ "a handle with another generation", options(false, true, true),
		  [=](Link &l, Mems &keep, Tags &) {
			  Mem &m = good(l, keep);
			  return Spot{ m.data, m.h ^ (1u << 20) };
		  } },
		{ "the handle of another region", options(false, true, true),
		  [=](Link &l, Mems &keep, Tags &) {
			  Mem &m = good(l, keep);
			  char *p = m.data;
			  return Spot{ p, good(l, keep).h };
		  } },
		{ "a handle of the near side", options(false, true, true),
		  [=](Link &l, Mems &keep, Tags &) {
			  return Spot{ good(l, keep).data, l.a.mem.h + (77u << 18) };
		  } },
		{ "a stale handle", options(false, true, true),
		  [=](Link &l, Mems &keep, Tags &) {
			  Mem &m = good(l, keep);
			  Spot spot = { m.data, m.h };
			  m.deregister();
			  return spot;
		  } },
		{ "a stale handle whose place is used again", options(false, true, true),
		  [=](Link &l, Mems &keep, Tags &) {
			  Mem &m = good(l, keep);
			  Spot spot = { m.data, m.h };
			  m.deregister();
			  VIP_MEM_ATTRIBUTES attrs = { nullptr, VIP_TRUE, VIP_TRUE };
			  EXPECT_RC(VIP_SUCCESS,
				    VipRegisterMem(l.nb.h, m.data, kSize, &attrs, &m.h));
			  return spot;
		  } },
		{ "rights taken away since", options(false, true, true),
		  [=](Link &l, Mems &keep, Tags &) {
			  Mem &m = good(l, keep);
			  VIP_MEM_ATTRIBUTES attrs = { nullptr, !write, write };
			  EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(l.nb.h, m.data, m.h, &attrs));
			  return Spot{ m.data, m.h };
		  } },
		{ "address 0", options(false, true, true),
		  [=](Link &l, Mems &keep, Tags &) {
			  return Spot{ nullptr, good(l, keep).h };
		  } },
		{ "the last address", options(false, true, true),
		  [=](Link &l, Mems &keep, Tags &) {
			  return Spot{ reinterpret_cast<char *>(~uintptr_t(0)), good(l, keep).h };
		  } },
	};
	for (ptrdiff_t off :
	     { ptrdiff_t(-1), ptrdiff_t(-64), ptrdiff_t(1), ptrdiff_t(255), ptrdiff_t(256) })
		all.push_back({ "out of bounds by " + std::to_string(off),
				options(false, true, true), [=](Link &l, Mems &keep, Tags &) {
					Mem &m = good(l, keep);
					return Spot{ m.data + off, m.h };
				} });
	return all;
}

/* The bytes of all regions of the target side, which must not change. */
struct Snapshot {
	explicit Snapshot(const std::vector<std::unique_ptr<Mem>> &all)
	{
		for (auto &m : all) {
			fill(m->data, m->length, 77);
			list.push_back(m.get());
		}
	}
	::testing::AssertionResult unchanged() const
	{
		for (auto *m : list) {
			if (auto ok = same(m->data, m->length, 77); !ok)
				return ok;
			if (!m->guards_intact())
				return ::testing::AssertionFailure()
				       << "bytes beside the region changed";
		}
		return ::testing::AssertionSuccess();
	}
	std::vector<Mem *> list;
};

} // namespace

TEST(Protection, RdmaWrite)
{
	for (auto &level : levels())
		for (auto &f : forbidden(true))
			for (int immediate = 0; immediate < 2; immediate++) {
				RULE("VIPL 8, RDMA write: " + f.what +
				     (immediate ? ", with immediate data, " : ", ") + level.name);
				Link l(level.value, f.options);
				std::vector<std::unique_ptr<Ptag>> tags;
				std::vector<std::unique_ptr<Mem>> mems;
				Spot spot = f.prepare(l, mems, tags);
				Snapshot before(mems);
				VIP_DESCRIPTOR *recv = l.recv_b(16);
				Seg seg = l.seg_a(kSize);
				memset(seg.p, 0xff, kSize);
				VIP_DESCRIPTOR *desc =
					l.write_a({ seg }, { spot.p, spot.h },
						  immediate ? VIP_CONTROL_IMMEDIATE : 0, 1);
				ASSERT_EQ(desc, take_send(*l.va));
				if (immediate) {
					EXPECT_EQ(recv, take_recv(*l.vb));
					EXPECT_TRUE(has_error(recv,
							      VIP_STATUS_RDMA_PROT_ERROR |
								      VIP_STATUS_PROTECTION_ERROR));
				} else {
					EXPECT_TRUE(l.nb.wait_event(VIP_ERROR_RDMAW_PROT, l.vb->h));
				}
				if (level.value == VIP_SERVICE_RELIABLE_RECEPTION)
					EXPECT_TRUE(has_error(desc, VIP_STATUS_RDMA_PROT_ERROR));
				EXPECT_TRUE(before.unchanged());
				if (level.reliable())
					EXPECT_TRUE(l.broken());
				else
					EXPECT_EQ(VIP_STATE_CONNECTED, l.vb->state());
				EXPECT_TRUE(before.unchanged());
			}
}

TEST(Protection, RdmaRead)
{
	for (auto &level : levels()) {
		if (!offers_read(level))
			continue;
		for (auto &f : forbidden(false)) {
			RULE("VIPL 8, RDMA read: " + f.what + ", " + level.name);
			Link l(level.value, f.options);
			std::vector<std::unique_ptr<Ptag>> tags;
			std::vector<std::unique_ptr<Mem>> mems;
			Spot spot = f.prepare(l, mems, tags);
			Snapshot before(mems);
			Seg seg = l.seg_a(kSize);
			fill(seg.p, kSize, 5);
			VIP_DESCRIPTOR *desc = l.read_a({ seg }, { spot.p, spot.h });
			ASSERT_EQ(desc, take_send(*l.va));
			EXPECT_TRUE(has_error(desc, VIP_STATUS_RDMA_PROT_ERROR));
			EXPECT_TRUE(same(seg.p, kSize, 5)) << "nothing was read";
			EXPECT_TRUE(l.nb.wait_event(VIP_ERROR_RDMAR_PROT, l.vb->h));
			EXPECT_TRUE(l.broken());
			EXPECT_TRUE(before.unchanged());
		}
	}
}

TEST(Protection, LocalTags)
{
	for (auto &level : levels())
		for (int queue = 0; queue < 2; queue++)
			for (int combination = 0; combination < 6; combination++) {
				/* VI: none or t1; region: none, t1 or t2. */
				bool vi_tag = combination >= 3;
				int region = combination % 3;
				bool fits = !vi_tag ||
					    region != 2; /* strict between two tags only */
				RULE(std::string("VIPL 8: VI ") +
				     (vi_tag ? "with tag 1" : "without tag") + ", region " +
				     (region == 0   ? "without tag"
				      : region == 1 ? "with tag 1"
						    : "with tag 2") +
				     (fits ? ": allowed, " : ": PROTECTION_ERROR, ") +
				     (queue ? "receive, " : "send, ") + level.name);
				Nic &n = queue ? nic(1) : nic(0);
				Ptag t1(n), t2(n);
				VIP_PROTECTION_HANDLE tags[] = { nullptr, t1, t2 };
				Mem data(n, 64, false, false, tags[region]);
				LinkOptions o;
				o.connected = false;
				Link l(level.value, o);
				Vi &vi = queue ? *l.vb : *l.va;
				/* The descriptor itself lies in memory the VI may use. */
				Arena own(n, vi_tag ? t1.h : nullptr, 4096);
				VIP_VI_ATTRIBUTES attrs = vi.attrs;
				attrs.Ptag = vi_tag ? t1.h : nullptr;
				EXPECT_RC(VIP_SUCCESS, VipSetViAttributes(vi, &attrs));
				fill(data.data, 64, 3);
				VIP_DESCRIPTOR *mine = make(own, 0, { { data.data, data.h, 64 } }),
					       *other;
				if (queue) {
					EXPECT_RC(VIP_SUCCESS, VipPostRecv(vi, mine, own.mem.h));
					connect(*l.va, *l.vb);
					other = l.send_a({ l.seg_a(64) });
					EXPECT_EQ(mine, take_recv(vi));
				} else {
					other = l.recv_b(64);
					connect(*l.va, *l.vb);
					EXPECT_RC(VIP_SUCCESS, VipPostSend(vi, mine, own.mem.h));
					EXPECT_EQ(mine, take_send(vi));
				}
				if (fits) {
					EXPECT_EQ(0u, mine->CS.Status & VIP_STATUS_ERROR_MASK)
						<< status_text(mine->CS.Status);
				} else {
					EXPECT_TRUE(has_error(mine, VIP_STATUS_PROTECTION_ERROR));
					EXPECT_TRUE(same(data.data, 64, 3)) << "no byte changes";
				}
				(void)other;
				EXPECT_RC(VIP_SUCCESS, VipDisconnect(vi));
				vi.drain();
				attrs.Ptag = nullptr;
				EXPECT_RC(VIP_SUCCESS, VipSetViAttributes(vi, &attrs));
			}
}

TEST(Protection, DescriptorMemoryHasATagToo)
{
	for (auto &level : levels())
		for (int recv = 0; recv < 2; recv++) {
			RULE(std::string(
				     "VIPL 8: a descriptor in memory of another tag is refused, ") +
			     (recv ? "receive, " : "send, ") + level.name);
			Ptag t1(nic(0)), t2(nic(0));
			Vi vi(nic(0), vi_attrs(level.value, 4096, t1));
			Arena wrong(nic(0), t2, 4096);
			nic(0).clear();
			VIP_DESCRIPTOR *desc = make(wrong, 0, {}), *got;
			VIP_RETURN rc = recv ? VipPostRecv(vi, desc, wrong.mem.h)
					     : VipPostSend(vi, desc, wrong.mem.h);
			EXPECT_RC(VIP_INVALID_PARAMETER, rc);
			EXPECT_TRUE(nic(0).wait_event(VIP_ERROR_POST_DESC, vi.h));
			EXPECT_RC(VIP_DESCRIPTOR_ERROR,
				  recv ? VipRecvDone(vi, &got) : VipSendDone(vi, &got));
			EXPECT_EQ(nullptr, got);
		}
}

TEST(Protection, SegmentsBeyondTheDescriptorsRegion)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 8: a descriptor whose segments leave its region is refused or fails, ") +
		     level.name);
		Link l(level.value);
		Mem tight(l.na, 64);
		auto *desc = reinterpret_cast<VIP_DESCRIPTOR *>(tight.data);
		ASSERT_EQ(0u, reinterpret_cast<uintptr_t>(desc) % 64);
		memset(tight.data, 0, 64);
		desc->CS.SegCount = 3; /* 32 + 3 * 16 bytes: 16 too many */
		l.recv_b(64);
		VIP_RETURN rc = VipPostSend(*l.va, desc, tight.h);
		if (rc == VIP_SUCCESS) {
			EXPECT_EQ(desc, take_send(*l.va));
			EXPECT_TRUE(has_error(desc, VIP_STATUS_PROTECTION_ERROR |
							    VIP_STATUS_FORMAT_ERROR));
			if (level.reliable())
				EXPECT_TRUE(l.broken());
		} else {
			EXPECT_RC(VIP_INVALID_PARAMETER, rc);
			EXPECT_TRUE(l.na.wait_event(VIP_ERROR_POST_DESC, l.va->h));
		}
	}
}

TEST(Protection, HandlesOfAnotherOpen)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 8: memory of another open of the NIC is PROTECTION_ERROR, ") +
		     level.name);
		Nic other(0);
		Arena foreign(other, nullptr, 4096);
		Link l(level.value);
		/* The same handle may exist in both opens, but not for that address. */
		VIP_DESCRIPTOR *desc = l.send_a({ { foreign.bytes(64), foreign.mem.h, 64 } });
		l.recv_b(64);
		EXPECT_EQ(desc, take_send(*l.va));
		EXPECT_TRUE(has_error(desc, VIP_STATUS_PROTECTION_ERROR));
		if (level.reliable())
			EXPECT_TRUE(l.broken());
	}
}

TEST(Protection, DeregisteredReceiveBuffer)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.7 VipDeregisterMem: a posted receive into it fails with PROTECTION_ERROR, no byte "
			     "changes, ") +
		     level.name);
		Link l(level.value);
		Mem room(l.nb, 64);
		fill(room.data, 64, 9);
		VIP_DESCRIPTOR *recv = make(l.b, 0, { { room.data, room.h, 64 } });
		l.post_recv_b(recv);
		room.deregister();
		l.send_a({ l.seg_a(64) });
		EXPECT_EQ(recv, take_recv(*l.vb));
		EXPECT_TRUE(has_error(recv, VIP_STATUS_PROTECTION_ERROR));
		EXPECT_TRUE(same(room.data, 64, 9));
		if (level.reliable())
			EXPECT_TRUE(l.broken());
	}
}

namespace {

void expect_untouched(const Mem &room, size_t from)
{
	EXPECT_TRUE(room.guards_intact());
	for (size_t i = from; i < room.length; i++)
		ASSERT_EQ(0x5a, room.data[i]) << "at " << i;
}

VIP_DESCRIPTOR *declared_recv(Link &l, Mem &room, unsigned parts)
{
	std::vector<Seg> segs;

	memset(room.data, 0x5a, room.length);
	if (parts > 1)
		segs.push_back({ room.data, room.h, 40 });
	segs.push_back({ room.data + (parts > 1 ? 40 : 0), room.h, 65536 });
	if (parts > 1)
		segs.push_back({ room.data, 0x7777, 65536 });
	VIP_DESCRIPTOR *recv = make(l.b, 0, segs);
	l.post_recv_b(recv);
	return recv;
}

} // namespace

/* Programs post receives of 64 KiB into smaller buffers, and get short messages. */
TEST(Protection, ReceiveOfMoreThanIsRegistered)
{
	for (auto &level : levels())
		for (size_t room_bytes : { 60, 112, 2048, 50000 })
			for (unsigned parts : { 1, 3 })
				for (size_t size : { size_t{ 0 }, size_t{ 1 }, size_t{ 48 },
						     room_bytes / 2, room_bytes - 1, room_bytes }) {
					RULE(std::string(
						     "VIPL 7, local buffer: a receive that declares more than is "
						     "registered takes what fits into the registered part, ") +
					     level.name);
					Link l(level.value);
					Mem room(l.nb, room_bytes);
					for (int round = 0; round < 2; round++) {
						VIP_DESCRIPTOR *recv =
							declared_recv(l, room, parts);
						Seg seg = l.seg_a(size);
						fill(seg.p, size, size + round);
						l.send_a({ seg });
						ASSERT_EQ(recv, take_recv(*l.vb));
						ASSERT_TRUE(
							has_status(recv, VIP_STATUS_OP_RECEIVE));
						EXPECT_EQ(size, recv->CS.Length);
						EXPECT_TRUE(same(room.data, size, size + round));
						expect_untouched(room, size);
						EXPECT_NE(nullptr, take_send(*l.va));
					}
				}
}

TEST(Protection, MessageBeyondWhatIsRegistered)
{
	for (auto &level : levels())
		for (size_t room_bytes : { 60, 112, 2048, 50000 })
			for (unsigned parts : { 1, 3 })
				for (size_t size :
				     { room_bytes + 1, room_bytes + 64, size_t{ 65536 } }) {
					RULE(std::string(
						     "VIPL 7, local buffer: a message that goes beyond the registered "
						     "part is a PROTECTION_ERROR, no byte changes, ") +
					     level.name);
					Link l(level.value);
					Mem room(l.nb, room_bytes);
					VIP_DESCRIPTOR *recv = declared_recv(l, room, parts);
					VIP_DESCRIPTOR *later = l.recv_b(64);
					VIP_DESCRIPTOR *send = l.send_a({ l.seg_a(size) });
					ASSERT_EQ(recv, take_recv(*l.vb));
					EXPECT_TRUE(has_status(
						recv, VIP_STATUS_OP_RECEIVE |
							      VIP_STATUS_PROTECTION_ERROR));
					expect_untouched(room, 0);
					ASSERT_EQ(send, take_send(*l.va));
					if (level.value == VIP_SERVICE_RELIABLE_RECEPTION)
						EXPECT_TRUE(has_error(
							send, VIP_STATUS_REMOTE_DESC_ERROR));
					if (!level.reliable()) {
						l.send_a({ l.seg_a(64) });
						EXPECT_EQ(later, take_recv(*l.vb));
						EXPECT_TRUE(
							has_status(later, VIP_STATUS_OP_RECEIVE));
						continue;
					}
					EXPECT_TRUE(l.broken());
					EXPECT_EQ(later, take_recv(*l.vb));
					EXPECT_TRUE(
						has_error(later, VIP_STATUS_DESC_FLUSHED_ERROR));
				}
}

/* The immediate data of a write takes a receive, but none of its memory. */
TEST(Protection, ImmediateDataNeedsNoMemory)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 7, local buffer: of a receive only where a byte arrives, write with "
			     "immediate data, ") +
		     level.name);
		Link l(level.value);
		Mem target(l.nb, 256, true);
		VIP_DESCRIPTOR *recv = make(l.b, 0, { { target.data, 0x7777, 4096 } });
		l.post_recv_b(recv);
		l.write_a({ l.seg_a(256) }, { target.data, target.h }, VIP_CONTROL_IMMEDIATE, 77);
		ASSERT_EQ(recv, take_recv(*l.vb));
		EXPECT_TRUE(
			has_status(recv, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE));
		EXPECT_EQ(77u, recv->CS.ImmediateData);
		EXPECT_NE(nullptr, take_send(*l.va));
	}
}

/* A descriptor that was valid at the post is checked again if memory was deregistered since. */
TEST(Protection, DeregisteredReceiveOfMoreThanIsRegistered)
{
	for (auto &level : levels())
		for (size_t size : { 8, 2000 }) {
			RULE(std::string(
				     "VIPL 5.7 VipDeregisterMem: a receive that declares more than was "
				     "registered fails, no byte changes, ") +
			     level.name);
			Link l(level.value);
			Mem room(l.nb, 2048);
			VIP_DESCRIPTOR *recv = declared_recv(l, room, 1);
			room.deregister();
			l.send_a({ l.seg_a(size) });
			ASSERT_EQ(recv, take_recv(*l.vb));
			EXPECT_TRUE(has_error(recv, VIP_STATUS_PROTECTION_ERROR));
			expect_untouched(room, 0);
			if (level.reliable())
				EXPECT_TRUE(l.broken());
		}
}

/* All bytes of a read arrive, so all its segments have to be open. */
TEST(Protection, ReadBeyondWhatIsRegistered)
{
	for (auto &level : levels())
		for (size_t size : { 64, 3000, 100000 }) {
			if (!offers_read(level))
				continue;
			RULE(std::string(
				     "VIPL 7, local buffer: a read into one byte more than is registered is a "
				     "PROTECTION_ERROR, no byte changes, ") +
			     level.name);
			Link l(level.value);
			Mem target(l.nb, size, false, true), room(l.na, size - 1);
			memset(room.data, 0x5a, room.length);
			VIP_DESCRIPTOR *read = l.read_a({ { room.data, room.h, size } },
							{ target.data, target.h });
			ASSERT_EQ(read, take_send(*l.va));
			EXPECT_TRUE(has_error(read, VIP_STATUS_PROTECTION_ERROR));
			expect_untouched(room, 0);
			EXPECT_TRUE(l.broken());
		}
}

/* Deregisters while writes and reads are under way: before the call they arrive, after it they do not. */
TEST(Protection, DeregisteredInFlight)
{
	for (auto &level : levels())
		for (int read = 0; read < 2; read++)
			for (size_t size : { 64, 4096, 500000 }) {
				if (read && !offers_read(level))
					continue;
				RULE(std::string(
					     "VIPL 8: after VipDeregisterMem no byte changes, with RDMA in flight, ") +
				     (read ? "read, " : "write, ") + level.name);
				LinkOptions o;
				o.arena = 32u << 20;
				Link l(level.value, o);
				Mem target(l.nb, size, true, true);
				std::vector<VIP_DESCRIPTOR *> descs;
				for (int i = 0; i < 40; i++) {
					Seg seg = l.seg_a(size);
					memset(seg.p, 0x77, size);
					descs.push_back(
						read ? l.read_a({ seg }, { target.data, target.h })
						     : l.write_a({ seg },
								 { target.data, target.h }));
				}
				target.deregister();
				fill(target.data, size, 123);
				for (auto *d : descs)
					ASSERT_EQ(d, take_send(*l.va));
				/* Everything under way is over when a later message has passed, or the VI broke. */
				if (!l.works())
					EXPECT_TRUE(level.reliable() ? l.broken() : l.unbroken());
				EXPECT_TRUE(same(target.data, size, 123));
			}
}

TEST(Protection, RightsChangeWhileConnected)
{
	for (auto &level : levels()) {
		RULE(std::string(
			     "VIPL 5.7 VipSetMemAttributes: holds for every access that begins after it, ") +
		     level.name);
		Link l(level.value);
		Mem target(l.nb, 64, false, false);
		VIP_MEM_ATTRIBUTES allow = { nullptr, VIP_TRUE, VIP_TRUE },
				   forbid = { nullptr, VIP_FALSE, VIP_FALSE };
		EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(l.nb.h, target.data, target.h, &allow));
		Seg seg = l.seg_a(64);
		fill(seg.p, 64, 6);
		l.write_a({ seg }, { target.data, target.h });
		EXPECT_NE(nullptr, take_send(*l.va));
		EXPECT_TRUE(l.works());
		EXPECT_TRUE(same(target.data, 64, 6));
		EXPECT_RC(VIP_SUCCESS, VipSetMemAttributes(l.nb.h, target.data, target.h, &forbid));
		fill(seg.p, 64, 7);
		l.write_a({ seg }, { target.data, target.h });
		EXPECT_NE(nullptr, take_send(*l.va));
		EXPECT_TRUE(l.nb.wait_event(VIP_ERROR_RDMAW_PROT, l.vb->h));
		EXPECT_TRUE(same(target.data, 64, 6));
	}
}

/* Accesses up to the exact bounds are allowed. */
TEST(Protection, WithinBounds)
{
	for (auto &level : levels())
		for (size_t at : { 0, 1, 100, 255 })
			for (size_t length : { 0, 1, 156, 256 }) {
				if (at + length > kSize)
					continue;
				RULE(std::string(
					     "VIPL 8: RDMA within the bounds of the region is allowed, ") +
				     level.name);
				Link l(level.value);
				Mem target(l.nb, kSize, true, true);
				fill(target.data, kSize, 1);
				Seg seg = l.seg_a(length), back = l.seg_a(length);
				fill(seg.p, length, 2);
				l.write_a({ seg }, { target.data + at, target.h });
				EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_RDMA_WRITE));
				EXPECT_TRUE(l.works());
				EXPECT_TRUE(same(target.data + at, length, 2));
				if (offers_read(level)) {
					l.read_a({ back }, { target.data + at, target.h });
					EXPECT_TRUE(has_status(take_send(*l.va),
							       VIP_STATUS_OP_RDMA_READ));
					EXPECT_TRUE(same(back.p, length, 2));
				}
			}
}
