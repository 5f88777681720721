/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors: which are refused at the post, and which when they are used. */
#include <atomic>

#include "core_fixture.h"

namespace {

class Desc : public CoreTest {
protected:
	VIP_VI_HANDLE vi = nullptr;

	void SetUp() override
	{
		CoreTest::SetUp();
		vi = create_vi();
		fake_connect(vi);
	}

	void TearDown() override
	{
		destroy_vi(vi);
		CoreTest::TearDown();
	}

	/* Posts to the send queue and checks it as the provider would. */
	uint32_t check_send(VIP_DESCRIPTOR *d)
	{
		static_cast<void>(d);
		EXPECT_EQ(VIP_SUCCESS, VipPostSend(vi, d, handle));
		uint32_t bits = fake_check_send(vi, 0);
		fake_complete(vi, 0, 0, 0, 0, 0);
		VIP_DESCRIPTOR *out;
		VipSendDone(vi, &out);
		return bits;
	}

	uint32_t check_recv(VIP_DESCRIPTOR *d, uint64_t bytes)
	{
		EXPECT_EQ(VIP_SUCCESS, VipPostRecv(vi, d, handle));
		uint32_t bits = fake_check_recv(vi, 0, bytes);
		fake_complete(vi, 1, 0, 0, 0, 0);
		VIP_DESCRIPTOR *out;
		VipRecvDone(vi, &out);
		return bits;
	}

	/* n segments of `each` bytes, one after the other in the data area. */
	VIP_DESCRIPTOR *many(unsigned n, uint32_t each, uint16_t control = 0)
	{
		VIP_DESCRIPTOR *d = desc(0);
		auto *seg = reinterpret_cast<VIP_DESCRIPTOR_SEGMENT *>(memory + 32);

		memset(memory, 0, 8192);
		d->CS.SegCount = uint16_t(n);
		d->CS.Control = control;
		for (unsigned i = 0; i < n; i++) {
			seg[i].Local.Data.Address = data + i * each;
			seg[i].Local.Handle = handle;
			seg[i].Local.Length = each;
		}
		d->CS.Length = n * each;
		return d;
	}

	/* As many(), but the first segment is the address segment. */
	VIP_DESCRIPTOR *rdma(unsigned data_segs, uint32_t each, uint16_t op)
	{
		VIP_DESCRIPTOR *d = many(data_segs + 1, each, op);

		d->CS.Length = data_segs * each;
		d->DS[0].Remote.Data.AddressBits = 0xdead;
		d->DS[0].Remote.Handle = 0xbeef;
		return d;
	}
};

TEST_F(Desc, GoodOnes)
{
	EXPECT_EQ(0u, check_send(many(0, 0)));
	EXPECT_EQ(0u, check_send(many(1, 0)));
	EXPECT_EQ(0u, check_send(many(1, 64)));
	EXPECT_EQ(0u, check_send(many(253, 100)));
	EXPECT_EQ(0u, check_send(many(1, 64, VIP_CONTROL_IMMEDIATE | VIP_CONTROL_QFENCE)));
	EXPECT_EQ(0u, check_send(rdma(1, 64, VIP_CONTROL_OP_RDMAWRITE)));
	EXPECT_EQ(0u, check_send(rdma(0, 0, VIP_CONTROL_OP_RDMAWRITE)));
	EXPECT_EQ(0u, check_send(rdma(252, 64, VIP_CONTROL_OP_RDMAREAD)));
}

TEST_F(Desc, FormatErrors)
{
	EXPECT_EQ(uint32_t(VIP_STATUS_FORMAT_ERROR), check_send(rdma(1, 8, 3)));
	for (unsigned bit = 4; bit < 16; bit++)
		EXPECT_EQ(uint32_t(VIP_STATUS_FORMAT_ERROR),
			  check_send(many(1, 8, uint16_t(1u << bit))))
			<< bit;
	EXPECT_EQ(uint32_t(VIP_STATUS_FORMAT_ERROR),
		  check_send(many(0, 0, VIP_CONTROL_OP_RDMAWRITE)));
	EXPECT_EQ(uint32_t(VIP_STATUS_FORMAT_ERROR),
		  check_send(many(0, 0, VIP_CONTROL_OP_RDMAREAD)));
	EXPECT_EQ(uint32_t(VIP_STATUS_FORMAT_ERROR), check_send(many(254, 8)));
	EXPECT_EQ(uint32_t(VIP_STATUS_FORMAT_ERROR),
		  check_send(rdma(253, 8, VIP_CONTROL_OP_RDMAWRITE)));
}

TEST_F(Desc, RdmaReadAtALevelWithoutIt)
{
	VIP_VI_ATTRIBUTES a = attrs();

	destroy_vi(vi);
	a.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
	ASSERT_EQ(VIP_SUCCESS, VipCreateVi(nic, &a, nullptr, nullptr, &vi));
	fake_connect(vi);
	EXPECT_EQ(uint32_t(VIP_STATUS_FORMAT_ERROR),
		  check_send(rdma(1, 8, VIP_CONTROL_OP_RDMAREAD)));
	EXPECT_EQ(0u, check_send(rdma(1, 8, VIP_CONTROL_OP_RDMAWRITE)));
}

TEST_F(Desc, LengthErrors)
{
	VIP_DESCRIPTOR *d = many(3, 8);

	for (int delta : { -1, 1 }) {
		d = many(3, 8);
		d->CS.Length = uint32_t(24 + delta);
		EXPECT_EQ(uint32_t(VIP_STATUS_LENGTH_ERROR), check_send(d));
	}
	/* The address segment does not count. */
	d = rdma(2, 8, VIP_CONTROL_OP_RDMAWRITE);
	d->CS.Length = 24;
	EXPECT_EQ(uint32_t(VIP_STATUS_LENGTH_ERROR), check_send(d));
	d = many(1, 0);
	d->CS.Length = 1;
	EXPECT_EQ(uint32_t(VIP_STATUS_LENGTH_ERROR), check_send(d));
}

TEST_F(Desc, MaxTransferSizeOfTheVi)
{
	VIP_VI_ATTRIBUTES a = attrs();

	destroy_vi(vi);
	a.MaxTransferSize = 100;
	ASSERT_EQ(VIP_SUCCESS, VipCreateVi(nic, &a, nullptr, nullptr, &vi));
	fake_connect(vi);
	EXPECT_EQ(0u, check_send(many(1, 100)));
	EXPECT_EQ(uint32_t(VIP_STATUS_LENGTH_ERROR), check_send(many(1, 101)));
}

TEST_F(Desc, ProtectionErrors)
{
	VIP_DESCRIPTOR *d = many(3, 8);

	d->DS[1].Local.Handle = handle + 1;
	EXPECT_EQ(uint32_t(VIP_STATUS_PROTECTION_ERROR), check_send(d));
	d = many(1, 8);
	d->DS[0].Local.Data.Address = memory + kDescBytes + kDataBytes - 7;
	EXPECT_EQ(uint32_t(VIP_STATUS_PROTECTION_ERROR), check_send(d));
	d->DS[0].Local.Data.Address = memory + kDescBytes + kDataBytes - 8;
	EXPECT_EQ(0u, check_send(d));
	d->DS[0].Local.Data.Address = memory - 1;
	EXPECT_EQ(uint32_t(VIP_STATUS_PROTECTION_ERROR), check_send(d));
}

/* All segments must lie in the descriptor's own region, not just its first 64 bytes. */
TEST_F(Desc, SegmentsOutsideTheDescriptorsRegion)
{
	VIP_MEM_HANDLE small;
	VIP_DESCRIPTOR *out;

	ASSERT_EQ(VIP_SUCCESS, VipRegisterMem(nic, memory, 64, nullptr, &small));
	many(2, 8);
	ASSERT_EQ(VIP_SUCCESS, VipPostSend(vi, desc(0), small));
	EXPECT_EQ(0u, fake_check_send(vi, 0));
	fake_complete(vi, 0, 0, 0, 0, 0);
	VipSendDone(vi, &out);
	many(3, 8);
	ASSERT_EQ(VIP_SUCCESS, VipPostSend(vi, desc(0), small));
	EXPECT_EQ(uint32_t(VIP_STATUS_PROTECTION_ERROR), fake_check_send(vi, 0));
	fake_complete(vi, 0, 0, 0, 0, 0);
	VipSendDone(vi, &out);
	EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(nic, memory, small));
}

TEST_F(Desc, Receives)
{
	EXPECT_EQ(0u, check_recv(many(3, 100), 300));
	EXPECT_EQ(uint32_t(VIP_STATUS_LENGTH_ERROR), check_recv(many(3, 100), 301));
	EXPECT_EQ(0u, check_recv(many(0, 0), 0));
	EXPECT_EQ(uint32_t(VIP_STATUS_LENGTH_ERROR), check_recv(many(0, 0), 1));
	/* Length at the post and the immediate bit mean nothing on a receive. */
	VIP_DESCRIPTOR *d = many(2, 50, VIP_CONTROL_IMMEDIATE);
	d->CS.Length = 7;
	EXPECT_EQ(0u, check_recv(d, 100));
	EXPECT_EQ(uint32_t(VIP_STATUS_FORMAT_ERROR),
		  check_recv(many(1, 8, VIP_CONTROL_OP_RDMAWRITE), 0));
	EXPECT_EQ(uint32_t(VIP_STATUS_FORMAT_ERROR), check_recv(many(1, 8, 0x10), 0));
	EXPECT_EQ(uint32_t(VIP_STATUS_FORMAT_ERROR), check_recv(many(254, 8), 0));
}

/* Memory has to be registered where bytes go, and nowhere else. */
TEST_F(Desc, ReceivesOfMoreThanIsRegistered)
{
	VIP_DESCRIPTOR *d = many(2, 8);

	d->DS[1].Local.Handle = 0;
	for (uint64_t bytes : { 0, 1, 8 })
		EXPECT_EQ(0u, check_recv(d, bytes)) << bytes;
	for (uint64_t bytes : { 9, 16, 17 })
		EXPECT_EQ(uint32_t(VIP_STATUS_PROTECTION_ERROR), check_recv(d, bytes)) << bytes;
	d = many(3, 8);
	d->DS[1].Local.Length = UINT32_MAX; /* bytes after it are not reached */
	d->DS[1].Local.Data.Address = memory + kDescBytes + kDataBytes - 5;
	for (uint64_t bytes : { 0, 8, 9, 13 })
		EXPECT_EQ(0u, check_recv(d, bytes)) << bytes;
	for (uint64_t bytes : { uint64_t{ 14 }, uint64_t{ UINT32_MAX } + 100 })
		EXPECT_EQ(uint32_t(VIP_STATUS_PROTECTION_ERROR), check_recv(d, bytes)) << bytes;
}

TEST_F(Desc, WalkGivesEveryByteOnce)
{
	fake_piece piece[64];
	VIP_DESCRIPTOR *d = many(4, 10);

	d->DS[1].Local.Length = 0; /* skipped, even with a bad handle */
	d->DS[1].Local.Handle = 0;
	ASSERT_EQ(VIP_SUCCESS, VipPostRecv(vi, d, handle));
	ASSERT_EQ(9, fake_walk(vi, 1, 0, UINT64_MAX, 4, piece, 64));
	uint32_t sum = 0;
	for (int i = 0; i < 9; i++) {
		static const unsigned segment[] = { 0, 2, 3 };

		EXPECT_EQ(i % 3 == 2 ? 2u : 4u, piece[i].len);
		EXPECT_EQ(data + segment[i / 3] * 10 + (i % 3) * 4, piece[i].addr);
		sum += piece[i].len;
	}
	EXPECT_EQ(30u, sum);
	EXPECT_EQ(3, fake_walk(vi, 1, 0, UINT64_MAX, 1000, piece, 64));
	EXPECT_EQ(2, fake_walk(vi, 1, 0, 15, 1000, piece, 64));
	EXPECT_EQ(5u, piece[1].len);
}

TEST_F(Desc, WalkStopsAtABadSegment)
{
	fake_piece piece[8];
	VIP_DESCRIPTOR *d = many(2, 10);

	d->DS[1].Local.Handle = 0;
	ASSERT_EQ(VIP_SUCCESS, VipPostRecv(vi, d, handle));
	EXPECT_EQ(1, fake_walk(vi, 1, 0, 20, 100, piece, 1));
	EXPECT_EQ(-EFAULT, fake_walk(vi, 1, 0, 20, 100, piece, 8));
	EXPECT_EQ(-EFAULT, fake_walk(vi, 1, 0, 11, 100, piece, 8));
	EXPECT_EQ(1, fake_walk(vi, 1, 0, 10, 100, piece, 8));
}

/* ---- at the post ---------------------------------------------------------------------------- */

struct Errors {
	std::atomic<int> count{ 0 };
	std::atomic<int> last{ -1 };
	std::atomic<void *> desc{ nullptr };
	std::atomic<void *> vi{ nullptr };
	std::atomic<VIP_ULONG> op{ ~0u };

	static void handler(void *context, VIP_ERROR_DESCRIPTOR *e)
	{
		auto *self = static_cast<Errors *>(context);

		self->last = e->ErrorCode;
		self->desc = e->DescriptorPtr;
		self->vi = e->ViHandle;
		self->op = e->OpCode;
		self->count++;
	}
};

TEST_F(Desc, BadPostsRaisePostDescAndAreRefused)
{
	Errors errors;
	VIP_MEM_HANDLE small;
	VIP_DESCRIPTOR *d = simple(0, 8);
	int n = 0;

	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(nic, &errors, Errors::handler));
	auto refused = [&](VIP_DESCRIPTOR *bad, VIP_MEM_HANDLE h) {
		n++;
		EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostSend(vi, bad, h));
		EXPECT_TRUE(eventually([&] { return errors.count == n; }));
		EXPECT_EQ(VIP_ERROR_POST_DESC, errors.last);
		EXPECT_EQ(bad, errors.desc);
		EXPECT_EQ(vi, errors.vi);
		EXPECT_EQ(VIP_ULONG(VIP_STATUS_OP_SEND), errors.op);
		n++;
		EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostRecv(vi, bad, h));
		EXPECT_TRUE(eventually([&] { return errors.count == n; }));
		EXPECT_EQ(VIP_ULONG(VIP_STATUS_OP_RECEIVE), errors.op);
	};
	refused(reinterpret_cast<VIP_DESCRIPTOR *>(memory + 32), handle);
	refused(d, 0);
	refused(d, handle + 1);
	refused(d, 0xffffffff);
	ASSERT_EQ(VIP_SUCCESS, VipRegisterMem(nic, memory, 63, nullptr, &small));
	refused(d, small);
	EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(nic, memory, small));
	refused(d, small);
	EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(vi, &d));
	EXPECT_EQ(nullptr, d);
	/* A NULL descriptor is a parameter error only. */
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostSend(vi, nullptr, handle));
	EXPECT_EQ(VIP_SUCCESS, VipErrorCallback(nic, nullptr, nullptr));
	EXPECT_EQ(n, errors.count);
}

TEST_F(Desc, OverrunIsReported)
{
	Errors errors;

	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(nic, &errors, Errors::handler));
	for (unsigned i = 0; i < 4096; i++)
		ASSERT_EQ(VIP_SUCCESS, post_send(vi, i));
	EXPECT_EQ(VIP_ERROR_RESOURCE, post_send(vi, 5000));
	EXPECT_TRUE(eventually([&] { return errors.count == 1; }));
	EXPECT_EQ(VIP_ERROR_VI_OVERRUN, errors.last);
}

TEST_F(Desc, DeregisteredDescriptorIsNotWritten)
{
	Errors errors;
	VIP_MEM_HANDLE own;
	VIP_DESCRIPTOR *d = simple(0, 8);
	VIP_DESCRIPTOR *out;

	ASSERT_EQ(VIP_SUCCESS, VipErrorCallback(nic, &errors, Errors::handler));
	ASSERT_EQ(VIP_SUCCESS, VipRegisterMem(nic, memory, 64, nullptr, &own));
	ASSERT_EQ(VIP_SUCCESS, VipPostRecv(vi, d, own));
	ASSERT_EQ(VIP_SUCCESS, post_recv(vi, 1));
	ASSERT_EQ(VIP_SUCCESS, VipDeregisterMem(nic, memory, own));
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 5, 0);
	EXPECT_TRUE(eventually([&] { return errors.count == 1; }));
	EXPECT_EQ(VIP_ERROR_COMP_PROT, errors.last);
	EXPECT_EQ(d, errors.desc);
	EXPECT_EQ(0u, d->CS.Status);
	/* It still leaves the queue, in its turn. */
	fake_complete(vi, 1, 0, VIP_STATUS_OP_RECEIVE, 5, 0);
	EXPECT_EQ(VIP_SUCCESS, VipRecvDone(vi, &out));
	EXPECT_EQ(d, out);
	EXPECT_EQ(VIP_SUCCESS, VipRecvDone(vi, &out));
	EXPECT_EQ(desc(1), out);
	EXPECT_EQ(5u, out->CS.Length);
}

} // namespace
