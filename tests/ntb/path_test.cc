// SPDX-License-Identifier: BSD-2-Clause
// The data path without agents: two VIs back to back, which move only when the test makes progress.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

extern "C" {
#include "nvi_loop.h"
}

namespace {

struct Descriptor {
	alignas(64) VIP_DESCRIPTOR d[64]; // room for 252 segments
};

class Path : public ::testing::TestWithParam<std::tuple<int, const char *>> {
protected:
	void SetUp() override
	{
		nvi_loop_cfg cfg = {};
		cfg.slots = 16;
		cfg.payload_bytes = 16384;
		cfg.level = static_cast<VIP_RELIABILITY_LEVEL>(std::get<0>(GetParam()));
		cfg.port = std::get<1>(GetParam());
		cfg.seed = 7;
		loop = nvi_loop_open(&cfg);
		ASSERT_NE(loop, nullptr);
		memory.resize(kMemory);
		handle = nvi_loop_register(loop, memory.data(), memory.size());
		descs = std::make_unique<Descriptor[]>(8);
		desc_handle = nvi_loop_register(loop, descs.get(), 8 * sizeof(Descriptor));
		ASSERT_NE(handle, 0u);
	}

	void TearDown() override
	{
		if (loop == nullptr)
			return;
		nvi_loop_deregister(loop, memory.data(), handle);
		nvi_loop_deregister(loop, descs.get(), desc_handle);
		nvi_loop_close(loop);
	}

	bool reliable() const { return std::get<0>(GetParam()) != VIP_SERVICE_UNRELIABLE; }

	VIP_DESCRIPTOR *build(int i, uint16_t control, size_t off, size_t len, unsigned segments,
			      size_t remote = ~size_t{ 0 })
	{
		VIP_DESCRIPTOR *d = descs[i].d;
		unsigned s = 0;

		std::memset(static_cast<void *>(d), 0, sizeof(Descriptor));
		d->CS.Control = control;
		d->CS.Length = static_cast<VIP_UINT32>(len);
		if (remote != ~size_t{ 0 }) {
			d->DS[0].Remote.Data.Address = memory.data() + remote;
			d->DS[0].Remote.Handle = handle;
			s = 1;
		}
		for (unsigned k = 0; k < segments; k++) {
			size_t from = len * k / segments, to = len * (k + 1) / segments;

			d->DS[s].Local.Data.Address = memory.data() + off + from;
			d->DS[s].Local.Handle = handle;
			d->DS[s].Local.Length = static_cast<VIP_UINT32>(to - from);
			s++;
		}
		d->CS.SegCount = static_cast<VIP_UINT16>(s);
		return d;
	}

	void fill(size_t off, size_t len, unsigned seed)
	{
		std::mt19937 gen(seed);

		for (size_t i = 0; i < len; i++)
			memory[off + i] = static_cast<uint8_t>(gen());
	}

	void settle() { ASSERT_LT(nvi_loop_settle(loop, 100000), 100000); }

	static constexpr size_t kMemory = 1 << 20, kTarget = 512 << 10;
	nvi_loop *loop = nullptr;
	std::vector<uint8_t> memory;
	std::unique_ptr<Descriptor[]> descs;
	VIP_MEM_HANDLE handle = 0, desc_handle = 0;
};

const size_t kSizes[] = { 0,	 1,	47,    48,    49,    63,    64,	   65,	 95,
			  96,	 97,	111,   112,   113,   127,   4095,  4096, 4097,
			  16383, 16384, 16385, 65535, 65536, 65537, 300001 };

TEST_P(Path, SendOfEverySizeArrivesWhole)
{
	for (size_t size : kSizes) {
		for (unsigned segments : { 1u, 3u, 252u }) {
			if (segments > size && segments > 1)
				continue;
			VIP_DESCRIPTOR *done;

			SCOPED_TRACE(std::to_string(size) + " bytes, " + std::to_string(segments));
			fill(1, size, static_cast<unsigned>(size));
			std::memset(memory.data() + kTarget, 0xee, size + 2);
			VIP_DESCRIPTOR *r =
				build(0, VIP_CONTROL_OP_SENDRECV, kTarget + 1, size, segments);
			VIP_DESCRIPTOR *s = build(1,
						  VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE,
						  1, size, segments);
			s->CS.ImmediateData = 0xabcd0000u + static_cast<uint32_t>(size);
			ASSERT_EQ(nvi_loop_post_recv(loop, 1, r, desc_handle), 0);
			ASSERT_EQ(nvi_loop_post_send(loop, 0, s, desc_handle), 0);
			settle();
			ASSERT_EQ(nvi_loop_send_done(loop, 0, &done), 1);
			EXPECT_EQ(done, s);
			EXPECT_EQ(s->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_SEND);
			ASSERT_EQ(nvi_loop_recv_done(loop, 1, &done), 1);
			EXPECT_EQ(r->CS.Status,
				  VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE |
					  static_cast<unsigned>(VIP_STATUS_IMMEDIATE));
			EXPECT_EQ(r->CS.Length, size);
			EXPECT_EQ(r->CS.ImmediateData, s->CS.ImmediateData);
			EXPECT_EQ(std::memcmp(memory.data() + 1, memory.data() + kTarget + 1, size),
				  0);
			EXPECT_EQ(memory[kTarget], 0xee);
			EXPECT_EQ(memory[kTarget + 1 + size], 0xee);
		}
	}
}

TEST_P(Path, WriteOfEverySizeArrivesWhole)
{
	for (size_t size : kSizes) {
		VIP_DESCRIPTOR *done;

		SCOPED_TRACE(size);
		fill(3, size, static_cast<unsigned>(size) + 1);
		std::memset(memory.data() + kTarget, 0xee, size + 2);
		VIP_DESCRIPTOR *w = build(0, VIP_CONTROL_OP_RDMAWRITE, 3, size, 1, kTarget + 1);
		ASSERT_EQ(nvi_loop_post_send(loop, 0, w, desc_handle), 0);
		settle();
		ASSERT_EQ(nvi_loop_send_done(loop, 0, &done), 1);
		EXPECT_EQ(w->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE);
		EXPECT_EQ(nvi_loop_recv_done(loop, 1, &done), -ENOENT);
		EXPECT_EQ(std::memcmp(memory.data() + 3, memory.data() + kTarget + 1, size), 0);
		EXPECT_EQ(memory[kTarget], 0xee);
		EXPECT_EQ(memory[kTarget + 1 + size], 0xee);
	}
}

TEST_P(Path, WriteWithImmediateConsumesAReceive)
{
	VIP_DESCRIPTOR *done, *r = build(0, VIP_CONTROL_OP_SENDRECV, 0, 0, 0);

	for (size_t size : { size_t{ 0 }, size_t{ 50 }, size_t{ 40000 } }) {
		SCOPED_TRACE(size);
		fill(0, size, 5);
		r = build(0, VIP_CONTROL_OP_SENDRECV, 0, 0, 0);
		VIP_DESCRIPTOR *w = build(1, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, 0,
					  size, 1, kTarget);
		w->CS.ImmediateData = 77;
		ASSERT_EQ(nvi_loop_post_recv(loop, 1, r, desc_handle), 0);
		ASSERT_EQ(nvi_loop_post_send(loop, 0, w, desc_handle), 0);
		settle();
		ASSERT_EQ(nvi_loop_recv_done(loop, 1, &done), 1);
		EXPECT_EQ(r->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE |
						static_cast<unsigned>(VIP_STATUS_IMMEDIATE));
		EXPECT_EQ(r->CS.ImmediateData, 77u);
		EXPECT_EQ(r->CS.Length, size);
		EXPECT_EQ(std::memcmp(memory.data(), memory.data() + kTarget, size), 0);
		ASSERT_EQ(nvi_loop_send_done(loop, 0, &done), 1);
	}
}

TEST_P(Path, ReadOfEverySizeArrivesWhole)
{
	VIP_DESCRIPTOR *done;

	if (!reliable()) {
		VIP_DESCRIPTOR *d = build(0, VIP_CONTROL_OP_RDMAREAD, kTarget, 8, 1, 0);

		ASSERT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
		ASSERT_EQ(nvi_loop_send_done(loop, 0, &done), 2);
		EXPECT_TRUE(d->CS.Status & VIP_STATUS_FORMAT_ERROR);
		return;
	}
	for (size_t size : kSizes) {
		SCOPED_TRACE(size);
		fill(3, size, static_cast<unsigned>(size) + 2);
		std::memset(memory.data() + kTarget, 0xee, size + 2);
		VIP_DESCRIPTOR *d = build(0, VIP_CONTROL_OP_RDMAREAD, kTarget + 1, size, 1, 3);
		ASSERT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
		settle();
		ASSERT_EQ(nvi_loop_send_done(loop, 0, &done), 1);
		EXPECT_EQ(d->CS.Status,
			  VIP_STATUS_DONE | static_cast<unsigned>(VIP_STATUS_OP_RDMA_READ));
		EXPECT_EQ(std::memcmp(memory.data() + 3, memory.data() + kTarget + 1, size), 0);
		EXPECT_EQ(memory[kTarget], 0xee);
		EXPECT_EQ(memory[kTarget + 1 + size], 0xee);
	}
}

TEST_P(Path, FullFifoLosesNothing)
{
	// There are more messages than slots, and none is consumed until all are posted.
	std::vector<VIP_DESCRIPTOR> all(200);
	void *raw = nullptr;
	ASSERT_EQ(posix_memalign(&raw, 64, 200 * 64), 0);
	auto *d = static_cast<VIP_DESCRIPTOR *>(raw);
	VIP_MEM_HANDLE h = nvi_loop_register(loop, raw, 200 * 64);
	VIP_DESCRIPTOR *done;

	std::memset(raw, 0, 200 * 64);
	for (int i = 0; i < 200; i++) {
		memory[i] = static_cast<uint8_t>(i);
		d[i].CS.SegCount = 1;
		d[i].CS.Length = 1;
		d[i].DS[0].Local.Handle = handle;
		d[i].DS[0].Local.Length = 1;
		d[i].DS[0].Local.Data.Address = i < 100 ? &memory[kTarget + static_cast<size_t>(i)]
							: &memory[i - 100];
		if (i < 100) {
			ASSERT_EQ(nvi_loop_post_recv(loop, 1, &d[i], h), 0);
		} else {
			ASSERT_EQ(nvi_loop_post_send(loop, 0, &d[i], h), 0);
		}
	}
	settle();
	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(nvi_loop_recv_done(loop, 1, &done), 1);
		ASSERT_EQ(done, &d[i]);
		ASSERT_EQ(nvi_loop_send_done(loop, 0, &done), 1);
		ASSERT_EQ(done, &d[100 + i]);
		ASSERT_EQ(memory[kTarget + static_cast<size_t>(i)], i);
	}
	nvi_loop_deregister(loop, raw, h);
	free(raw);
}

TEST_P(Path, FenceWaitsForReads)
{
	VIP_DESCRIPTOR *done;

	if (!reliable())
		GTEST_SKIP() << "no RDMA read on the unreliable level";
	VIP_DESCRIPTOR *r = build(0, VIP_CONTROL_OP_SENDRECV, kTarget + 4096, 64, 1);
	VIP_DESCRIPTOR *read = build(1, VIP_CONTROL_OP_RDMAREAD, 0, 64, 1, kTarget);
	VIP_DESCRIPTOR *send = build(2, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_QFENCE, 0, 64, 1);
	fill(kTarget, 64, 9);
	ASSERT_EQ(nvi_loop_post_recv(loop, 1, r, desc_handle), 0);
	ASSERT_EQ(nvi_loop_post_send(loop, 0, read, desc_handle), 0);
	ASSERT_EQ(nvi_loop_post_send(loop, 0, send, desc_handle), 0);
	EXPECT_EQ(nvi_loop_send_done(loop, 0, &done), 0);
	settle();
	ASSERT_EQ(nvi_loop_recv_done(loop, 1, &done), 1);
	// The fenced send carries the data that the read before it fetched.
	EXPECT_EQ(std::memcmp(&memory[kTarget + 4096], &memory[kTarget], 64), 0);
	ASSERT_EQ(nvi_loop_send_done(loop, 0, &done), 1);
	EXPECT_EQ(done, read);
	ASSERT_EQ(nvi_loop_send_done(loop, 0, &done), 1);
	EXPECT_EQ(done, send);
}

std::string CaseName(const ::testing::TestParamInfo<Path::ParamType> &info)
{
	const char *level[] = { "", "unreliable", "delivery", "", "reception" };
	std::string port = std::get<1>(info.param);

	for (char &c : port)
		c = c == '+' ? '_' : c;
	return std::string(level[std::get<0>(info.param)]) + "_" + port;
}

// A message ends just where a run of sending has to let others run: nothing is left
// to be done, and a thread that waits sleeps.
TEST(Budget, EndsWithTheMessage)
{
	nvi_loop_cfg cfg = {};
	cfg.slots = 128;
	cfg.payload_bytes = 4 << 20;
	cfg.level = VIP_SERVICE_UNRELIABLE;
	cfg.port = "emu";
	cfg.seed = 7;
	nvi_loop *loop = nvi_loop_open(&cfg);
	ASSERT_NE(loop, nullptr);
	std::vector<uint8_t> memory(2 << 20);
	VIP_MEM_HANDLE handle = nvi_loop_register(loop, memory.data(), memory.size());
	auto descs = std::make_unique<Descriptor[]>(2);
	VIP_MEM_HANDLE desc_handle = nvi_loop_register(loop, descs.get(), 2 * sizeof(Descriptor));
	VIP_DESCRIPTOR *d[2], *done;
	for (int i = 0; i < 2; i++) {
		d[i] = descs[i].d;
		std::memset(static_cast<void *>(d[i]), 0, sizeof(Descriptor));
		d[i]->CS.Control = VIP_CONTROL_OP_SENDRECV;
		d[i]->CS.SegCount = 1;
		d[i]->CS.Length = d[i]->DS[0].Local.Length = 1 << 20;
		d[i]->DS[0].Local.Data.Address = memory.data() + (i << 20);
		d[i]->DS[0].Local.Handle = handle;
	}
	ASSERT_EQ(0, nvi_loop_post_recv(loop, 1, d[1], desc_handle));
	ASSERT_EQ(0, nvi_loop_post_send(loop, 0, d[0], desc_handle));
	ASSERT_LT(nvi_loop_settle(loop, 1000), 1000);
	ASSERT_EQ(1, nvi_loop_send_done(loop, 0, &done));
	ASSERT_EQ(1, nvi_loop_recv_done(loop, 1, &done));
	uint32_t ticket = nvi_loop_arm(loop);
	EXPECT_EQ(0u, nvi_loop_polled(loop));
	EXPECT_TRUE(nvi_loop_overslept(loop, ticket, 2000000)) << "something was left to be done";
	nvi_loop_deregister(loop, memory.data(), handle);
	nvi_loop_deregister(loop, descs.get(), desc_handle);
	nvi_loop_close(loop);
}

INSTANTIATE_TEST_SUITE_P(Levels, Path,
			 ::testing::Combine(::testing::Values(VIP_SERVICE_UNRELIABLE,
							      VIP_SERVICE_RELIABLE_DELIVERY,
							      VIP_SERVICE_RELIABLE_RECEPTION),
					    ::testing::Values("emu", "emu+strict")),
			 CaseName);

} // namespace
