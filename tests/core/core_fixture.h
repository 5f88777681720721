/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CORE_FIXTURE_H
#define CORE_FIXTURE_H

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "eventually.h"
#include "fake.h"

/* An open NIC and registered memory: descriptors at desc(i), data after them. */
class CoreTest : public testing::Test {
protected:
	static constexpr size_t kDescBytes = 64 * 8192;
	static constexpr size_t kDataBytes = 1 << 16;

	VIP_NIC_HANDLE nic = nullptr;
	uint8_t *memory = nullptr;
	uint8_t *data = nullptr;
	VIP_MEM_HANDLE handle = 0;

	void SetUp() override
	{
		fake_reset();
		ASSERT_EQ(VIP_SUCCESS, VipOpenNic("fake", &nic));
		memory = static_cast<uint8_t *>(aligned_alloc(4096, kDescBytes + kDataBytes));
		ASSERT_NE(nullptr, memory);
		memset(memory, 0, kDescBytes + kDataBytes);
		data = memory + kDescBytes;
		ASSERT_EQ(VIP_SUCCESS,
			  VipRegisterMem(nic, memory, kDescBytes + kDataBytes, nullptr, &handle));
	}

	void TearDown() override
	{
		fake_reset();
		EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(nic, memory, handle));
		EXPECT_EQ(VIP_SUCCESS, VipCloseNic(nic));
		free(memory);
	}

	static VIP_VI_ATTRIBUTES attrs(VIP_PROTECTION_HANDLE ptag = nullptr)
	{
		VIP_VI_ATTRIBUTES a = {};

		a.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
		a.MaxTransferSize = 1 << 20;
		a.Ptag = ptag;
		return a;
	}

	VIP_VI_HANDLE create_vi(VIP_CQ_HANDLE send = nullptr, VIP_CQ_HANDLE recv = nullptr,
				VIP_PROTECTION_HANDLE ptag = nullptr)
	{
		VIP_VI_ATTRIBUTES a = attrs(ptag);
		VIP_VI_HANDLE vi = nullptr;

		EXPECT_EQ(VIP_SUCCESS, VipCreateVi(nic, &a, send, recv, &vi));
		return vi;
	}

	VIP_CQ_HANDLE create_cq(VIP_ULONG entries = 64)
	{
		VIP_CQ_HANDLE cq = nullptr;

		EXPECT_EQ(VIP_SUCCESS, VipCreateCQ(nic, entries, &cq));
		return cq;
	}

	/* Disconnects, takes everything, destroys. */
	static void destroy_vi(VIP_VI_HANDLE vi)
	{
		VIP_DESCRIPTOR *d;

		EXPECT_EQ(VIP_SUCCESS, VipDisconnect(vi));
		do
			VipSendDone(vi, &d);
		while (d != nullptr);
		do
			VipRecvDone(vi, &d);
		while (d != nullptr);
		EXPECT_EQ(VIP_SUCCESS, VipDestroyVi(vi));
	}

	VIP_DESCRIPTOR *desc(unsigned i)
	{
		return reinterpret_cast<VIP_DESCRIPTOR *>(memory + 64 * i);
	}

	/* Descriptor i with one segment of `length` bytes of data. */
	VIP_DESCRIPTOR *simple(unsigned i, uint32_t length, uint16_t control = 0)
	{
		VIP_DESCRIPTOR *d = desc(i);

		memset(d, 0, sizeof(*d));
		d->CS.SegCount = 1;
		d->CS.Control = control;
		d->CS.Length = length;
		d->DS[0].Local.Data.Address = data;
		d->DS[0].Local.Handle = handle;
		d->DS[0].Local.Length = length;
		return d;
	}

	VIP_RETURN post_recv(VIP_VI_HANDLE vi, unsigned i)
	{
		return VipPostRecv(vi, simple(i, 64), handle);
	}

	VIP_RETURN post_send(VIP_VI_HANDLE vi, unsigned i)
	{
		return VipPostSend(vi, simple(i, 64), handle);
	}
};

/* A CQ, and VIs that have both queues on it. */
class CqTest : public CoreTest {
protected:
	VIP_CQ_HANDLE cq = nullptr;
	std::vector<VIP_VI_HANDLE> vis;

	void SetUp() override
	{
		CoreTest::SetUp();
		cq = create_cq();
	}

	void TearDown() override
	{
		for (VIP_VI_HANDLE vi : vis)
			destroy_vi(vi);
		EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(cq));
		CoreTest::TearDown();
	}

	VIP_VI_HANDLE connected_vi()
	{
		VIP_VI_HANDLE vi = create_vi(cq, cq);

		fake_connect(vi);
		vis.push_back(vi);
		return vi;
	}
};

#endif
