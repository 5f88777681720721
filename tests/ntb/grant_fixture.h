// SPDX-License-Identifier: BSD-2-Clause
// Two ends and the agents between them; end 0 writes into window memory of end 1.
#ifndef GRANT_FIXTURE_H
#define GRANT_FIXTURE_H

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

extern "C" {
#include "nvi_agent.h"
#include "w_ctl.h"
#include "w_grant.h"
}
#include "eventually.h"
#include "open_fds.h"

constexpr uint32_t kWrite = VIP_STATUS_OP_RDMA_WRITE;
constexpr size_t kWindow = 65536, kOurs = 65536;
constexpr uint32_t kLong = 20000; // milliseconds; nothing here takes so long

struct Window {
	uint8_t *data;
	VIP_MEM_HANDLE handle;
};

// End 0 writes, end 1 owns the window.
class Grant : public ::testing::Test {
protected:
	static constexpr unsigned kDescs = 64, kDescBytes = 256;

	void open(int lvl, const char *port = "emu", uint32_t revoke_ms = kLong,
		  const char *faults = "", bool resumable = false)
	{
		nvi_loop_cfg cfg = {};

		flushed = resumable || lvl == VIP_SERVICE_RELIABLE_RECEPTION;
		cfg.resumable = resumable;

		cfg.slots = 16;
		cfg.payload_bytes = 16384;
		cfg.level = static_cast<VIP_RELIABILITY_LEVEL>(lvl);
		cfg.port = port;
		cfg.options = faults;
		cfg.seed = 11;
		loop = nvi_loop_open(&cfg);
		ASSERT_NE(loop, nullptr);
		agent = nvi_agent_start(loop, revoke_ms);
		ours.resize(kOurs);
		for (size_t i = 0; i < kOurs; i++)
			ours[i] = static_cast<uint8_t>(i * 7 + i / 256 + 1);
		our_handle = nvi_loop_register(loop, ours.data(), kOurs);
		descs.reset(static_cast<uint8_t *>(aligned_alloc(64, kDescs * kDescBytes)));
		std::memset(descs.get(), 0, kDescs * kDescBytes);
		desc_handle = nvi_loop_register(loop, descs.get(), kDescs * kDescBytes);
		window = alloc();
	}

	void TearDown() override
	{
		if (loop == nullptr)
			return;
		// Neither end may wait for answers of the other, which gets no messages from now on.
		nvi_agent_lost(agent, 0);
		nvi_agent_lost(agent, 1);
		for (Window &w : windows)
			nvi_agent_free(agent, w.data, w.handle);
		nvi_loop_deregister(loop, ours.data(), our_handle);
		nvi_loop_deregister(loop, descs.get(), desc_handle);
		nvi_agent_stop(agent);
		nvi_loop_close(loop);
	}

	Window alloc(bool opened = true)
	{
		Window w = {};

		w.data = nvi_agent_alloc(agent, kWindow, opened, &w.handle);
		EXPECT_NE(w.data, nullptr);
		windows.push_back(w);
		return w;
	}

	void free(const Window &w)
	{
		VIP_MEM_HANDLE handle = w.handle;

		for (auto at = windows.begin(); at != windows.end(); at++) {
			if (at->handle == handle) {
				windows.erase(at);
				break;
			}
		}
		nvi_agent_free(agent, w.data, handle);
	}

	// `pieces`: lengths of the segments, which follow each other in our memory.
	VIP_DESCRIPTOR *build(unsigned i, unsigned control, const std::vector<size_t> &pieces,
			      const void *to, VIP_MEM_HANDLE handle)
	{
		auto *d = reinterpret_cast<VIP_DESCRIPTOR *>(descs.get() + i * kDescBytes);
		auto *seg = reinterpret_cast<VIP_DESCRIPTOR_SEGMENT *>(
			reinterpret_cast<uint8_t *>(d) + sizeof(VIP_CONTROL_SEGMENT));
		bool rdma = (control & VIP_CONTROL_OP_MASK) != VIP_CONTROL_OP_SENDRECV;
		size_t off = 0;

		std::memset(static_cast<void *>(d), 0, kDescBytes);
		d->CS.Control = static_cast<VIP_UINT16>(control);
		if (rdma) {
			seg->Remote.Data.Address = const_cast<void *>(to);
			seg->Remote.Handle = handle;
			seg++;
		}
		for (size_t n : pieces) {
			seg->Local.Data.Address = ours.data() + off;
			seg->Local.Handle = our_handle;
			seg->Local.Length = static_cast<VIP_UINT32>(n);
			off += n;
			seg++;
		}
		d->CS.Length = static_cast<VIP_UINT32>(off);
		d->CS.SegCount = static_cast<VIP_UINT16>(pieces.size() + rdma);
		return d;
	}

	VIP_DESCRIPTOR *write(const Window &w, size_t off, const std::vector<size_t> &pieces,
			      unsigned i = 0)
	{
		VIP_DESCRIPTOR *d =
			build(i, VIP_CONTROL_OP_RDMAWRITE, pieces, w.data + off, w.handle);

		EXPECT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
		return d;
	}

	VIP_DESCRIPTOR *write(const Window &w, size_t off = 0, size_t n = 100)
	{
		return write(w, off, std::vector<size_t>{ n });
	}

	// A message that end 1 has room for, and has not taken.
	void send()
	{
		VIP_DESCRIPTOR *r = build(40, 0, { 64 }, nullptr, 0);
		VIP_DESCRIPTOR *d = build(41, VIP_CONTROL_OP_SENDRECV, { 64 }, nullptr, 0);

		EXPECT_EQ(nvi_loop_post_recv(loop, 1, r, desc_handle), 0);
		EXPECT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
	}

	// Makes progress until nothing moves and no end has a message for the other.
	void settle()
	{
		for (int i = 0; i < 100000; i++)
			if ((nvi_loop_progress(loop, 0) | nvi_loop_progress(loop, 1) |
			     nvi_agent_step(agent)) == 0)
				return;
		FAIL() << "the ends never came to rest";
	}

	// The status of the head of the send queue; 0: in progress.
	uint32_t status()
	{
		VIP_DESCRIPTOR *d = nullptr;

		return nvi_loop_send_done(loop, 0, &d) > 0 ? d->CS.Status : 0;
	}

	// Serves both ends until the write under way is complete and end 0 holds the grant.
	bool granted()
	{
		return eventually([&] {
			nvi_loop_progress(loop, 1);
			nvi_loop_progress(loop, 0);
			return nvi_agent_held(agent, 0) == 1 && status() != 0;
		});
	}

	// A direct write is complete when it is posted, or when progress has seen that it arrived.
	void expect_sent(uint32_t bits = 0)
	{
		if (flushed)
			nvi_loop_progress(loop, 0);
		EXPECT_EQ(status(), VIP_STATUS_DONE | kWrite | bits);
	}

	VIPX_COUNTERS counters(int end)
	{
		VIPX_COUNTERS c;

		nvi_loop_counters(loop, end, &c);
		return c;
	}

	::testing::AssertionResult landed(const Window &w, size_t off, size_t n)
	{
		for (size_t i = 0; i < n; i++)
			if (w.data[off + i] != ours[i])
				return ::testing::AssertionFailure() << "byte " << i;
		return ::testing::AssertionSuccess();
	}

	// Makes the first write: it goes through slots, and brings the grant.
	void warm(const Window &w)
	{
		write(w, 0, 8);
		settle();
		expect_sent();
		ASSERT_GE(nvi_agent_held(agent, 0), 1u);
	}

	// Was this written without a slot?
	bool direct(const Window &w, size_t off = 64, size_t n = 100)
	{
		uint64_t slots = counters(0).SlotsSent;

		std::memset(w.data + off, 0, n);
		write(w, off, n);
		if (counters(0).SlotsSent != slots) {
			settle();
			expect_sent();
			EXPECT_TRUE(landed(w, off, n));
			return false;
		}
		expect_sent();
		EXPECT_TRUE(landed(w, off, n));
		return true;
	}

	void deliver_grant(int end, uint32_t kind, uint32_t handle, int fd = -1, uint64_t base = 0,
			   uint64_t length = 0)
	{
		w_grant g = { kind, handle, base, length, 0 };

		nvi_agent_deliver(agent, end, &g, sizeof(g), fd);
	}

	bool flushed = false;
	nvi_loop *loop = nullptr;
	nvi_agent *agent = nullptr;
	std::vector<uint8_t> ours;
	std::unique_ptr<uint8_t, void (*)(void *)> descs{ nullptr, ::free };
	VIP_MEM_HANDLE our_handle = 0, desc_handle = 0;
	std::vector<Window> windows;
	Window window = {};
};

#endif
