// SPDX-License-Identifier: BSD-2-Clause
// End 0 sends to receives of end 1; some of them lie in window memory.
#ifndef PLACE_FIXTURE_H
#define PLACE_FIXTURE_H

#include "grant_fixture.h"

extern "C" {
#include "w_slot.h"
}

constexpr uint32_t kReceived = VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE;
constexpr uint32_t kSent = VIP_STATUS_DONE | VIP_STATUS_OP_SEND;
constexpr uint32_t kImm = VIP_STATUS_IMMEDIATE;
constexpr uint32_t kRemote = VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE | kImm;
constexpr size_t kLeast = 4096; // NVI_PLACE_SEND_MIN and VI_LONG_RECV, which are C
constexpr size_t kBody = 6000;	// one slot if it is placed, two if not
constexpr uint32_t kSlots = 16; // of Grant::open()

class Placed : public Grant {
protected:
	static constexpr unsigned kMany = 256;

	void start(int lvl, const char *port = "emu", bool resumable = false)
	{
		level = lvl;
		open(lvl, port, kLong, "", resumable);
		many.reset(static_cast<VIP_DESCRIPTOR *>(
			aligned_alloc(64, kMany * sizeof(VIP_DESCRIPTOR))));
		std::memset(static_cast<void *>(many.get()), 0, kMany * sizeof(VIP_DESCRIPTOR));
		many_handle = nvi_loop_register(loop, many.get(), kMany * sizeof(VIP_DESCRIPTOR));
		std::memset(theirs, 0, sizeof(theirs));
		theirs_handle = nvi_loop_register(loop, theirs, sizeof(theirs));
	}

	void TearDown() override
	{
		nvi_loop_deregister(loop, many.get(), many_handle);
		nvi_loop_deregister(loop, theirs, theirs_handle);
		Grant::TearDown();
	}

	bool reliable() const { return level != VIP_SERVICE_UNRELIABLE; }

	VIP_DESCRIPTOR *plain(void *addr, VIP_MEM_HANDLE handle, size_t n)
	{
		VIP_DESCRIPTOR *d = &many.get()[next++ % kMany];

		std::memset(static_cast<void *>(d), 0, sizeof(*d));
		d->CS.SegCount = 1;
		d->CS.Length = static_cast<VIP_UINT32>(n);
		d->DS[0].Local.Data.Address = addr;
		d->DS[0].Local.Handle = handle;
		d->DS[0].Local.Length = static_cast<VIP_UINT32>(n);
		return d;
	}

	VIP_DESCRIPTOR *post(VIP_DESCRIPTOR *d)
	{
		EXPECT_EQ(nvi_loop_post_recv(loop, 1, d, many_handle), 0);
		return d;
	}

	// A receive of end 1 in the window, or in other memory.
	VIP_DESCRIPTOR *receive(size_t off = 0, size_t n = 8192)
	{
		return post(plain(window.data + off, window.handle, n));
	}

	VIP_DESCRIPTOR *receive_elsewhere(size_t n = 8192)
	{
		return post(plain(theirs, theirs_handle, n));
	}

	// A send of n bytes of ours from `from` on.
	VIP_DESCRIPTOR *message(size_t n = kBody, size_t from = 0)
	{
		VIP_DESCRIPTOR *d = plain(ours.data() + from, our_handle, n);

		d->CS.Control = VIP_CONTROL_OP_SENDRECV;
		EXPECT_EQ(nvi_loop_post_send(loop, 0, d, many_handle), 0);
		return d;
	}

	VIP_DESCRIPTOR *message_imm(uint32_t imm, size_t n = kBody)
	{
		VIP_DESCRIPTOR *d = plain(ours.data(), our_handle, n);

		d->CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
		d->CS.ImmediateData = imm;
		EXPECT_EQ(nvi_loop_post_send(loop, 0, d, many_handle), 0);
		return d;
	}

	// A write of n bytes with immediate data; its descriptor is number `i`.
	VIP_DESCRIPTOR *write_imm(uint32_t imm, size_t off, size_t n, unsigned i = 0)
	{
		VIP_DESCRIPTOR *d = build(i, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE,
					  { n }, window.data + off, window.handle);

		d->CS.ImmediateData = imm;
		EXPECT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
		return d;
	}

	// The header of the slot that end 0 published last, as end 1 sees it.
	const w_head &last_slot()
	{
		uint64_t len;
		auto *slots =
			reinterpret_cast<w_slot *>(nvi_loop_inbound(loop, 1, &len) + W_SLICE_FIFO);

		nvi_loop_flush(loop);
		return slots[(counters(0).SlotsSent - 1) % kSlots].head;
	}

	bool was_placed() { return (last_slot().flags & W_F_PLACED) != 0; }

	const w_advert *adverts()
	{
		uint64_t len;

		nvi_loop_flush(loop);
		return reinterpret_cast<w_control *>(nvi_loop_inbound(loop, 0, &len))->adverts;
	}

	// Expects that the next receive is complete with `status`; returns its length, SIZE_MAX if it is not complete.
	size_t received(uint32_t status = kReceived, uint32_t *imm_out = nullptr)
	{
		VIP_DESCRIPTOR *d = nullptr;

		if (nvi_loop_recv_done(loop, 1, &d) <= 0)
			return SIZE_MAX;
		EXPECT_EQ(d->CS.Status, status);
		if (imm_out != nullptr)
			*imm_out = d->CS.ImmediateData;
		return d->CS.Length;
	}

	::testing::AssertionResult has(const uint8_t *at, size_t n, size_t from = 0)
	{
		for (size_t i = 0; i < n; i++)
			if (at[i] != ours[from + i])
				return ::testing::AssertionFailure() << "byte " << i;
		return ::testing::AssertionSuccess();
	}

	// Passes one message through the payload buffer, after which the sender has the grant.
	void meet()
	{
		receive();
		message();
		EXPECT_FALSE(was_placed());
		settle();
		EXPECT_EQ(received(), kBody);
		EXPECT_EQ(status(), kSent);
		ASSERT_EQ(nvi_agent_held(agent, 0), 1u);
		std::memset(window.data, 0, kWindow);
	}

	// Makes credit come: at the unreliable level it comes for each quarter of the slots, or for a write.
	void get_credit()
	{
		write(window, 0, 8);
		settle();
		EXPECT_EQ(status(), VIP_STATUS_DONE | kWrite);
	}

	int level = 0;
	unsigned next = 0;
	struct Free {
		void operator()(VIP_DESCRIPTOR *p) const { ::free(p); }
	};
	std::unique_ptr<VIP_DESCRIPTOR, Free> many;
	VIP_MEM_HANDLE many_handle = 0, theirs_handle = 0;
	alignas(64) uint8_t theirs[16384];
};

#endif
