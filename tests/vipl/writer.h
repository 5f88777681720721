/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA writes of side a into window memory of side b, allocated or adopted. */
#ifndef VIPL_WRITER_H
#define VIPL_WRITER_H

#include "harness.h"

namespace conf {

/* A descriptor of side a that is posted again and again. */
struct Writer {
	Writer(Link &l, size_t length) : link(l), seg(l.seg_a(length)) { fill(seg.p, length, 9); }

	/* Writes; returns the status with which the write completed. */
	VIP_UINT32 write(void *to, VIP_MEM_HANDLE h)
	{
		if (desc == nullptr)
			desc = make(link.a, VIP_CONTROL_OP_RDMAWRITE, { seg }, Remote{ to, h });
		desc->CS.Status = 0;
		desc->DS[0].Remote.Data.Address = to;
		desc->DS[0].Remote.Handle = h;
		link.post_a(desc);
		VIP_DESCRIPTOR *got = take_send(*link.va);
		EXPECT_EQ(desc, got);
		return got ? desc->CS.Status : 0;
	}

	VIPX_COUNTERS counters()
	{
		VIPX_COUNTERS c{};
		c.Size = sizeof(c);
		EXPECT_RC(VIP_SUCCESS, VipxQueryCounters(link.na.h, *link.va, &c));
		return c;
	}

	/* Writes; returns whether the write took no slot. */
	bool direct(void *to, VIP_MEM_HANDLE h)
	{
		uint64_t slots = counters().SlotsSent;
		EXPECT_EQ(VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE, write(to, h));
		return counters().SlotsSent == slots;
	}

	/* Writes until it is a store. */
	::testing::AssertionResult warm(void *to, VIP_MEM_HANDLE h)
	{
		if (eventually([&] { return direct(to, h); }))
			return ::testing::AssertionSuccess();
		return ::testing::AssertionFailure() << "the peer never gave its memory";
	}

	Link &link;
	Seg seg;
	VIP_DESCRIPTOR *desc = nullptr;
};

inline VIP_VI_ATTRIBUTES writable()
{
	VIP_VI_ATTRIBUTES attrs = vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY);
	attrs.EnableRdmaWrite = VIP_TRUE;
	return attrs;
}

/* Expects that a write is refused: with the error of VIPL 7, and no byte changes. */
inline void expect_refused(Link &l, const Level &level, Writer &w, void *to, VIP_MEM_HANDLE h)
{
	VIP_UINT32 status = w.write(to, h);
	if (level.value == VIP_SERVICE_RELIABLE_RECEPTION)
		EXPECT_TRUE(status & VIP_STATUS_RDMA_PROT_ERROR) << status_text(status);
	EXPECT_TRUE(l.nb.wait_event(VIP_ERROR_RDMAW_PROT, l.vb->h));
	if (level.reliable())
		EXPECT_TRUE(l.broken());
	else
		EXPECT_TRUE(l.unbroken());
}

} // namespace conf

#endif
