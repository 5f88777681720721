/* SPDX-License-Identifier: BSD-2-Clause */
/* VIPL 7, ordering and fence. */
#include "harness.h"

#include <atomic>

using namespace conf;

TEST(Ordering, SendsCompleteAndArriveInOrder)
{
	for (auto &level : levels())
		for (size_t size : { 0, 8, 100, 5000, 70000 }) {
			RULE(std::string("VIPL 7: sends of ") + std::to_string(size) +
			     " bytes complete and arrive in post order, " + level.name);
			Link l(level.value);
			std::vector<VIP_DESCRIPTOR *> recvs, sends;
			for (int i = 0; i < 20; i++)
				recvs.push_back(l.recv_b(size));
			for (int i = 0; i < 20; i++) {
				Seg seg = l.seg_a(size);
				fill(seg.p, size, i);
				sends.push_back(l.send_a({ seg }, VIP_CONTROL_IMMEDIATE, i));
			}
			for (int i = 0; i < 20; i++) {
				ASSERT_EQ(sends[i], take_send(*l.va));
				EXPECT_TRUE(has_status(sends[i], VIP_STATUS_OP_SEND));
				ASSERT_EQ(recvs[i], take_recv(*l.vb));
				EXPECT_EQ(VIP_UINT32(i), recvs[i]->CS.ImmediateData);
				EXPECT_TRUE(same(recvs[i]->DS[0].Local.Data.Address, size, i));
			}
		}
}

TEST(Ordering, MixedOperationsCompleteInOrder)
{
	for (auto &level : levels())
		for (int seed = 0; seed < 6; seed++) {
			RULE(std::string(
				     "VIPL 7: descriptors of one queue complete in post order, whatever they are, ") +
			     level.name);
			Link l(level.value);
			Mem target(l.nb, 65536, true, true);
			std::vector<VIP_DESCRIPTOR *> order;
			for (int i = 0; i < 30; i++) {
				size_t size =
					static_cast<size_t>((i * 7919 + seed * 104729) % 9000);
				switch ((i + seed) % 3) {
				case 0:
					l.recv_b(size);
					order.push_back(l.send_a({ l.seg_a(size) }));
					break;
				case 1:
					order.push_back(l.write_a({ l.seg_a(size) },
								  { target.data, target.h }));
					break;
				default:
					if (offers_read(level))
						order.push_back(l.read_a(
							{ l.seg_a(size) },
							{ target.data, target.h },
							seed & 1 ? VIP_CONTROL_QFENCE : 0));
				}
			}
			for (auto *desc : order) {
				ASSERT_EQ(desc, take_send(*l.va));
				EXPECT_EQ(0u, desc->CS.Status & VIP_STATUS_ERROR_MASK)
					<< status_text(desc->CS.Status);
			}
		}
}

TEST(Ordering, WriteThenSend)
{
	for (auto &level : levels())
		for (size_t size : { 1, 64, 100, 4096, 100000 }) {
			RULE(std::string("VIPL 7: the data of a write of ") + std::to_string(size) +
			     " bytes is in place before a later send is received, " + level.name);
			Link l(level.value);
			Mem target(l.nb, size, true);
			for (int i = 0; i < 10; i++) {
				VIP_DESCRIPTOR *recv = l.recv_b(4);
				Seg seg = l.seg_a(size);
				fill(seg.p, size, i + 1);
				l.write_a({ seg }, { target.data, target.h });
				l.send_a({ l.seg_a(4) });
				ASSERT_EQ(recv, take_recv(*l.vb));
				ASSERT_TRUE(same(target.data, size, i + 1));
				take_send(*l.va);
				take_send(*l.va);
			}
		}
}

TEST(Ordering, WriteWithImmediate)
{
	for (auto &level : levels())
		for (size_t size : { 0, 1, 64, 5000 }) {
			RULE(std::string(
				     "VIPL 7: a write with immediate uses up the head receive: OP_REMOTE_RDMA_WRITE, "
				     "IMMEDIATE, Length is the bytes written, no data through it, ") +
			     level.name);
			Link l(level.value);
			Mem target(l.nb, 8192, true);
			VIP_DESCRIPTOR *recv = l.recv_b(16), *next = l.recv_b(16);
			memset(recv->DS[0].Local.Data.Address, 0x5c, 16);
			Seg seg = l.seg_a(size);
			fill(seg.p, size, 3);
			l.write_a({ seg }, { target.data + 10, target.h }, VIP_CONTROL_IMMEDIATE,
				  0x12345678);
			EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_RDMA_WRITE));
			ASSERT_EQ(recv, take_recv(*l.vb));
			EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_REMOTE_RDMA_WRITE |
							     VIP_STATUS_IMMEDIATE));
			EXPECT_EQ(0x12345678u, recv->CS.ImmediateData);
			EXPECT_EQ(size, recv->CS.Length);
			EXPECT_TRUE(same(target.data + 10, size, 3));
			for (int i = 0; i < 16; i++)
				EXPECT_EQ(0x5c,
					  static_cast<char *>(recv->DS[0].Local.Data.Address)[i]);
			VIP_DESCRIPTOR *got;
			EXPECT_RC(VIP_NOT_DONE, VipRecvDone(*l.vb, &got));
			l.send_a({ l.seg_a(4) });
			EXPECT_EQ(next, take_recv(*l.vb));
		}
}

TEST(Ordering, WriteWithoutImmediateIsSilent)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 7: a write without immediate data consumes no receive, ") +
		     level.name);
		Link l(level.value);
		Mem target(l.nb, 64, true);
		VIP_DESCRIPTOR *recv = l.recv_b(4), *got;
		for (int i = 0; i < 5; i++)
			l.write_a({ l.seg_a(64) }, { target.data, target.h });
		EXPECT_RC(VIP_NOT_DONE, VipRecvDone(*l.vb, &got));
		l.send_a({ l.seg_a(4) });
		EXPECT_EQ(recv, take_recv(*l.vb));
		EXPECT_TRUE(has_status(recv, VIP_STATUS_OP_RECEIVE));
	}
}

TEST(Ordering, FenceAfterRead)
{
	for (auto &level : levels()) {
		if (!offers_read(level))
			continue;
		for (size_t size : { 8, 4096, 200000 }) {
			RULE(std::string(
				     "VIPL 7: QFENCE makes a send wait for an earlier read, to carry its data, ") +
			     level.name);
			Link l(level.value);
			Mem source(l.nb, size, false, true);
			for (uint64_t i = 0; i < 10; i++) {
				fill(source.data, size, i);
				Seg seg = l.seg_a(size);
				VIP_DESCRIPTOR *recv = l.recv_b(size);
				l.read_a({ seg }, { source.data, source.h });
				l.send_a({ seg }, VIP_CONTROL_QFENCE);
				ASSERT_EQ(recv, take_recv(*l.vb));
				ASSERT_TRUE(same(recv->DS[0].Local.Data.Address, size, i));
				EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_RDMA_READ));
				EXPECT_TRUE(has_status(take_send(*l.va), VIP_STATUS_OP_SEND));
				l.a.used = l.b.used = 0;
			}
		}
	}
}

TEST(Ordering, FenceOnEveryOperation)
{
	for (auto &level : levels())
		for (VIP_UINT16 op : { VIP_CONTROL_OP_SENDRECV, VIP_CONTROL_OP_RDMAWRITE,
				       VIP_CONTROL_OP_RDMAREAD }) {
			if (op == VIP_CONTROL_OP_RDMAREAD && !offers_read(level))
				continue;
			RULE("VIPL 3.3: QFENCE is allowed on operation " + std::to_string(op) +
			     ", " + level.name);
			Link l(level.value);
			Mem target(l.nb, 4096, true, true);
			for (int i = 0; i < 10; i++) {
				VIP_DESCRIPTOR *desc;
				if (op == VIP_CONTROL_OP_SENDRECV) {
					l.recv_b(100);
					desc = l.send_a({ l.seg_a(100) }, VIP_CONTROL_QFENCE);
				} else if (op == VIP_CONTROL_OP_RDMAWRITE) {
					desc = l.write_a({ l.seg_a(100) },
							 { target.data, target.h },
							 VIP_CONTROL_QFENCE);
				} else {
					desc = l.read_a({ l.seg_a(100) }, { target.data, target.h },
							VIP_CONTROL_QFENCE);
				}
				EXPECT_EQ(desc, take_send(*l.va));
				EXPECT_EQ(0u, desc->CS.Status & VIP_STATUS_ERROR_MASK);
			}
		}
}

/* A reader that polls the last word must find all of the write before it. */
TEST(Ordering, LastBytesComeLast)
{
	for (auto &level : levels())
		for (size_t size : { 16, 64, 72, 200, 4096, 4104, 100000 }) {
			RULE(std::string("VIPL 7: the bytes of a write of ") +
			     std::to_string(size) + " become visible with the last ones last, " +
			     level.name);
			Link l(level.value);
			Mem target(l.nb, size, true);
			memset(target.data, 0, size);
			auto *flag =
				reinterpret_cast<std::atomic<uint64_t> *>(target.data + size - 8);
			for (uint64_t turn = 1; turn <= 30; turn++) {
				Seg seg = l.seg_a(size);
				memset(seg.p, static_cast<int>(turn), size - 8);
				memcpy(static_cast<char *>(seg.p) + size - 8, &turn, 8);
				l.write_a({ seg }, { target.data, target.h });
				ASSERT_TRUE(eventually([&] {
					VipxProgress(l.nb.h);
					return flag->load(std::memory_order_acquire) == turn;
				}));
				for (size_t i = 0; i < size - 8; i++)
					ASSERT_EQ(static_cast<char>(turn), target.data[i])
						<< "byte " << i;
				EXPECT_NE(nullptr, take_send(*l.va));
				l.a.used = 0;
			}
		}
}

TEST(Ordering, BothDirectionsAtOnce)
{
	for (auto &level : levels()) {
		RULE(std::string("VIPL 7: both directions of a VI are independent, ") + level.name);
		Link l(level.value);
		constexpr int kN = 200;
		auto half = [&](Arena &arena, Vi &vi) {
			std::vector<VIP_DESCRIPTOR *> recvs, sends;
			for (int i = 0; i < kN; i++) {
				Seg in = { arena.bytes(500), arena.mem.h, 500 };
				recvs.push_back(make(arena, 0, { in }));
				EXPECT_RC(VIP_SUCCESS, VipPostRecv(vi, recvs.back(), arena.mem.h));
			}
			return recvs;
		};
		auto ra = half(l.a, *l.va), rb = half(l.b, *l.vb);
		auto talk = [&](Arena &arena, Vi &vi, std::vector<VIP_DESCRIPTOR *> &recvs,
				int mine, int other) {
			Seg out = { arena.bytes(500), arena.mem.h, 500 };
			for (int i = 0; i < kN; i++) {
				fill(out.p, 500, mine + i);
				VIP_DESCRIPTOR *send = make(arena, 0, { out });
				EXPECT_RC(VIP_SUCCESS, VipPostSend(vi, send, arena.mem.h));
				EXPECT_EQ(send, take_send(vi));
			}
			for (int i = 0; i < kN; i++) {
				ASSERT_EQ(recvs[i], take_recv(vi));
				ASSERT_TRUE(same(recvs[i]->DS[0].Local.Data.Address, 500, other + i))
					<< i;
			}
		};
		std::thread other([&] { talk(l.b, *l.vb, rb, 10000, 20000); });
		talk(l.a, *l.va, ra, 20000, 10000);
		other.join();
	}
}
