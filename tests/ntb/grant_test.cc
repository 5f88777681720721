// SPDX-License-Identifier: BSD-2-Clause
// Direct stores into window memory: who may, when, and that it ends when it is said to.
#include <gtest/gtest.h>

#include <dirent.h>

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
}

namespace {

constexpr uint32_t kWrite = VIP_STATUS_OP_RDMA_WRITE;
constexpr size_t kWindow = 65536, kOurs = 65536;
constexpr uint32_t kLong = 20000; // milliseconds; nothing here takes so long

template <typename Predicate> bool eventually(Predicate happened)
{
	auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);

	while (!happened()) {
		if (std::chrono::steady_clock::now() > deadline)
			return false;
		std::this_thread::yield();
	}
	return true;
}

size_t fd_count()
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(dir) != nullptr)
		n++;
	closedir(dir);
	return n;
}

struct Window {
	uint8_t *data;
	VIP_MEM_HANDLE handle;
};

// End 0 writes, end 1 owns the window.
class Grant : public ::testing::Test {
protected:
	static constexpr unsigned kDescs = 64, kDescBytes = 256;

	void open(int lvl, const char *port = "emu", uint32_t revoke_ms = kLong,
		  const char *faults = "")
	{
		nvi_loop_cfg cfg = {};

		cfg.slots = 16;
		cfg.ring_bytes = 16384;
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
		// Nobody shall wait for answers of an end that is told nothing any more.
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

	// `pieces`: lengths of the segments, one behind the other in our memory.
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

	// Until nothing moves and nobody has anything to say.
	void settle()
	{
		for (int i = 0; i < 100000; i++)
			if ((nvi_loop_poke(loop, 0) | nvi_loop_poke(loop, 1) |
			     nvi_agent_step(agent)) == 0)
				return;
		FAIL() << "the ends never came to rest";
	}

	// The head of the send queue; 0: in progress.
	uint32_t status()
	{
		VIP_DESCRIPTOR *d = nullptr;

		return nvi_loop_send_done(loop, 0, &d) > 0 ? d->CS.Status : 0;
	}

	void expect_sent(uint32_t bits = 0)
	{
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

	// The first write: through slots, and with it comes the grant.
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

	void tell(int end, uint32_t kind, uint32_t handle, int fd = -1, uint64_t base = 0,
		  uint64_t length = 0)
	{
		w_grant g = { kind, handle, base, length };

		nvi_agent_tell(agent, end, &g, sizeof(g), fd);
	}

	nvi_loop *loop = nullptr;
	nvi_agent *agent = nullptr;
	std::vector<uint8_t> ours;
	std::unique_ptr<uint8_t, void (*)(void *)> descs{ nullptr, ::free };
	VIP_MEM_HANDLE our_handle = 0, desc_handle = 0;
	std::vector<Window> windows;
	Window window = {};
};

class EachWay : public Grant, public ::testing::WithParamInterface<std::tuple<int, const char *>> {
protected:
	void SetUp() override { open(std::get<0>(GetParam()), std::get<1>(GetParam())); }
};

// ---- what a grant does

TEST_P(EachWay, TheSecondWriteIsAStore)
{
	VIPX_COUNTERS c;

	warm(window);
	write(window, 1000, 3000);
	expect_sent();
	EXPECT_TRUE(landed(window, 1000, 3000));
	EXPECT_EQ(window.data[999], 0);
	EXPECT_EQ(window.data[4000], 0);
	c = counters(0);
	EXPECT_EQ(c.RdmaWrites, 2u);
	EXPECT_EQ(c.MessagesSent, 2u);
	EXPECT_EQ(c.BytesSent, 3008u);
	EXPECT_EQ(c.SlotsSent, 1u);
	c = counters(1);
	EXPECT_EQ(c.MessagesReceived, 1u);
	EXPECT_EQ(c.BytesReceived, 8u);
}

TEST_P(EachWay, EverySizeAndAlignmentLands)
{
	warm(window);
	for (size_t n : { 1, 2, 7, 8, 9, 63, 64, 65, 127, 1000, 4096, 20000 })
		for (size_t off : { 0, 1, 7, 60, 4095 }) {
			std::memset(window.data, 0, kWindow);
			write(window, off, n);
			expect_sent();
			ASSERT_TRUE(landed(window, off, n)) << n << " at " << off;
			ASSERT_EQ(window.data[off + n], 0) << n << " at " << off;
			ASSERT_TRUE(off == 0 || window.data[off - 1] == 0) << n << " at " << off;
		}
	EXPECT_EQ(counters(0).SlotsSent, 1u);
}

TEST_P(EachWay, SegmentsAreStoredOneAfterTheOther)
{
	warm(window);
	for (const std::vector<size_t> &pieces :
	     { std::vector<size_t>{ 5000, 3, 1 }, { 1, 1, 1 }, { 0, 100, 0, 4000 }, { 60, 2, 2 } }) {
		size_t total = 0;

		for (size_t n : pieces)
			total += n;
		std::memset(window.data, 0, kWindow);
		write(window, 33, pieces);
		expect_sent();
		EXPECT_TRUE(landed(window, 33, total));
		EXPECT_EQ(window.data[33 + total], 0);
	}
	EXPECT_EQ(counters(0).SlotsSent, 1u);
}

TEST_P(EachWay, NothingOvertakesASendBeforeIt)
{
	VIP_DESCRIPTOR *d, *r = build(40, 0, { 64 }, nullptr, 0);

	warm(window);
	ASSERT_EQ(nvi_loop_post_recv(loop, 1, r, desc_handle), 0);
	d = build(41, VIP_CONTROL_OP_SENDRECV, { 64 }, nullptr, 0);
	ASSERT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
	write(window, 200, 50);
	EXPECT_EQ(window.data[200], 0) << "the receive is not complete";
	nvi_loop_poke(loop, 1);
	EXPECT_TRUE(landed(window, 200, 50));
	settle();
	EXPECT_NE(status(), 0u);
	expect_sent();
	EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
	EXPECT_TRUE(direct(window));
}

// Posted behind a send that the peer has not taken.
TEST_P(EachWay, ALongOneWaitsRatherThanGoThroughSlots)
{
	VIP_DESCRIPTOR *d, *r = build(40, 0, { 64 }, nullptr, 0);

	warm(window);
	ASSERT_EQ(nvi_loop_post_recv(loop, 1, r, desc_handle), 0);
	d = build(41, VIP_CONTROL_OP_SENDRECV, { 64 }, nullptr, 0);
	ASSERT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
	write(window, 200, 8000);
	EXPECT_EQ(counters(0).SlotsSent, 2u);
	EXPECT_EQ(window.data[200], 0);
	settle();
	EXPECT_NE(status(), 0u);
	expect_sent();
	EXPECT_TRUE(landed(window, 200, 8000));
	EXPECT_EQ(counters(0).SlotsSent, 2u);
	EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
}

TEST_P(EachWay, ARunOfShortOnesComesBackToStores)
{
	constexpr unsigned kWrites = 20, kRun = 8; // NVI_WRITE_RUN of nvi.h, which is C
	VIP_DESCRIPTOR *d, *r = build(40, 0, { 64 }, nullptr, 0);

	warm(window);
	ASSERT_EQ(nvi_loop_post_recv(loop, 1, r, desc_handle), 0);
	d = build(41, VIP_CONTROL_OP_SENDRECV, { 64 }, nullptr, 0);
	ASSERT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
	for (unsigned i = 0; i < kWrites; i++)
		write(window, 64 * i, std::vector<size_t>{ 8 }, i);
	EXPECT_EQ(counters(0).SlotsSent, 2u + kRun);
	settle();
	EXPECT_NE(status(), 0u);
	for (unsigned i = 0; i < kWrites; i++) {
		expect_sent();
		EXPECT_TRUE(landed(window, 64 * i, 8)) << "write " << i;
	}
	EXPECT_EQ(counters(0).SlotsSent, 2u + kRun);
	EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
	EXPECT_TRUE(direct(window));
}

TEST_P(EachWay, ASendBehindItFindsTheBytesThere)
{
	warm(window);
	for (int i = 0; i < 40; i++) {
		VIP_DESCRIPTOR *d, *r = build(40, 0, { 64 }, nullptr, 0);

		std::memset(window.data, 0, 5000);
		ASSERT_EQ(nvi_loop_post_recv(loop, 1, r, desc_handle), 0);
		write(window, 0, 5000);
		d = build(41, VIP_CONTROL_OP_SENDRECV, { 64 }, nullptr, 0);
		ASSERT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
		while (nvi_loop_recv_done(loop, 1, &d) == 0)
			nvi_loop_poke(loop, 1);
		ASSERT_TRUE(landed(window, 0, 5000)) << i;
		settle();
		expect_sent();
		EXPECT_NE(status(), 0u);
	}
}

TEST_P(EachWay, ImmediateDataAndEmptyWritesGoThroughSlots)
{
	VIP_DESCRIPTOR *d, *r = build(40, 0, { 64 }, nullptr, 0);

	warm(window);
	ASSERT_EQ(nvi_loop_post_recv(loop, 1, r, desc_handle), 0);
	d = build(1, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, { 10 }, window.data,
		  window.handle);
	ASSERT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
	settle();
	expect_sent();
	EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), 1);
	write(window, 0, std::vector<size_t>{ 0 });
	settle();
	expect_sent();
	EXPECT_EQ(counters(0).SlotsSent, 3u);
}

TEST_P(EachWay, WhatTheDescriptorMayNotReadIsNotStored)
{
	VIP_DESCRIPTOR *d;

	warm(window);
	std::memset(window.data, 0, kWindow);
	d = build(0, VIP_CONTROL_OP_RDMAWRITE, { 100 }, window.data, window.handle);
	d->DS[1].Local.Handle ^= 1u << 30;
	ASSERT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
	expect_sent(VIP_STATUS_PROTECTION_ERROR);
	EXPECT_EQ(window.data[0], 0);
}

// ---- what it does not allow

struct Beyond {
	const char *name;
	int64_t off;
	size_t n;
};

class Refused : public Grant, public ::testing::WithParamInterface<Beyond> {};

TEST_P(Refused, OutsideOfTheRegion)
{
	Window w;

	open(VIP_SERVICE_RELIABLE_RECEPTION);
	warm(window);
	w = window;
	w.data = window.data + GetParam().off;
	std::memset(window.data, 0, kWindow);
	write(w, 0, GetParam().n);
	settle();
	expect_sent(VIP_STATUS_RDMA_PROT_ERROR);
	for (size_t i = 0; i < kWindow; i++)
		ASSERT_EQ(window.data[i], 0) << i;
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_ERROR);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u) << "nothing is mapped by a broken connection";
}

INSTANTIATE_TEST_SUITE_P(Bounds, Refused,
			 ::testing::Values(Beyond{ "before", -1, 100 },
					   Beyond{ "behind", kWindow - 99, 100 },
					   Beyond{ "at_the_end", kWindow, 1 },
					   Beyond{ "far", INT64_C(1) << 40, 8 },
					   Beyond{ "around", -8, 16 }),
			 [](const auto &info) { return info.param.name; });

TEST_F(Grant, AnotherRegistrationOfTheMemoryIsNotGranted)
{
	Window twin = {};

	open(VIP_SERVICE_RELIABLE_RECEPTION);
	twin.data = window.data;
	twin.handle = nvi_loop_register(loop, window.data, kWindow);
	EXPECT_FALSE(direct(twin));
	settle();
	EXPECT_FALSE(direct(twin));
	EXPECT_EQ(nvi_agent_said(agent, W_GRANT_DENY), 1u);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	nvi_loop_deregister(loop, twin.data, twin.handle);
}

TEST_F(Grant, MemoryThatIsNotOpenIsNotGranted)
{
	Window closed;

	open(VIP_SERVICE_UNRELIABLE);
	closed = alloc(false);
	for (int i = 0; i < 2; i++) {
		write(closed);
		settle();
		expect_sent();
	}
	EXPECT_EQ(closed.data[0], 0);
	EXPECT_EQ(nvi_agent_said(agent, W_GRANT_ASK), 1u) << "it is asked once";
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
}

// ---- taking it back

class Revoked : public Grant {
protected:
	void SetUp() override
	{
		open(VIP_SERVICE_RELIABLE_RECEPTION);
		warm(window);
		EXPECT_EQ(nvi_agent_given(agent), 1u);
		nvi_agent_thread(agent);
	}

	void expect_refused()
	{
		std::memset(window.data, 0, 200);
		write(window);
		EXPECT_TRUE(eventually([&] {
			nvi_loop_poke(loop, 1);
			nvi_loop_poke(loop, 0);
			return nvi_loop_state(loop, 0) == VIP_STATE_ERROR;
		}));
		expect_sent(VIP_STATUS_RDMA_PROT_ERROR);
		EXPECT_EQ(window.data[0], 0);
	}
};

TEST_F(Revoked, ByItsAttributes)
{
	ASSERT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, false), 0);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	expect_refused();
}

TEST_F(Revoked, AndGrantedAgain)
{
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, true), 0);
		EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
		write(window);
		EXPECT_TRUE(eventually([&] {
			nvi_loop_poke(loop, 1);
			nvi_loop_poke(loop, 0);
			return nvi_agent_held(agent, 0) == 1 && status() != 0;
		}));
		EXPECT_TRUE(direct(window));
	}
}

TEST_F(Revoked, ByFreeing)
{
	VIP_MEM_HANDLE handle = window.handle;
	Window other = alloc();

	free(window);
	EXPECT_EQ(nvi_agent_said(agent, W_GRANT_GONE), 1u);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	window = other;
	window.handle = handle;
	expect_refused();
	window = other;
}

TEST_F(Revoked, ByADisconnectOfTheOwner)
{
	nvi_agent_disconnect(agent, 1);
	EXPECT_EQ(nvi_agent_said(agent, W_GRANT_TAKE), 1u);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u) << "before the call returned";
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	std::memset(window.data, 0, 200);
	write(window);
	EXPECT_EQ(window.data[0], 0);
}

TEST_F(Revoked, ByADisconnectOfTheWriter)
{
	nvi_agent_disconnect(agent, 0);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	EXPECT_TRUE(eventually([&] { return nvi_agent_given(agent) == 0; }));
}

TEST_F(Revoked, ByTheLossOfTheConnection)
{
	nvi_agent_lost(agent, 0);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	nvi_agent_lost(agent, 1);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	ASSERT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, false), 0);
	EXPECT_EQ(nvi_agent_said(agent, W_GRANT_TAKE), 0u) << "nobody has it";
}

class TooSlow : public Grant {
protected:
	void SetUp() override
	{
		open(VIP_SERVICE_RELIABLE_DELIVERY, "emu", 20);
		warm(window);
		nvi_agent_swallow(agent, 1u << W_GRANT_TAKE);
		nvi_agent_thread(agent);
	}
};

TEST_F(TooSlow, IsCutOff)
{
	ASSERT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, false), 0);
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	EXPECT_TRUE(eventually([&] { return nvi_agent_closed(agent) == 1; }));
}

TEST_F(TooSlow, IsCutOffWhenTheMemoryIsFreed)
{
	free(window);
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	EXPECT_TRUE(eventually([&] { return nvi_agent_closed(agent) == 1; }));
}

TEST_F(TooSlow, DoesNotKeepADisconnectWaiting)
{
	nvi_agent_disconnect(agent, 1);
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_IDLE);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
}

// While rights are being changed an answer is "not now", and the next write asks again.
TEST_F(Revoked, NotNow)
{
	std::thread changer;

	nvi_agent_swallow(agent, 1u << W_GRANT_GONE);
	changer = std::thread(
		[&] { nvi_agent_open_memory(agent, window.data, window.handle, true); });
	EXPECT_TRUE(eventually([&] { return nvi_agent_held(agent, 0) == 0; }));
	write(window);
	EXPECT_TRUE(eventually([&] { return nvi_agent_said(agent, W_GRANT_TAKE) == 2; }));
	EXPECT_TRUE(eventually([&] { return nvi_agent_said(agent, W_GRANT_GONE) == 2; }));
	EXPECT_EQ(nvi_agent_said(agent, W_GRANT_GIVE), 1u);
	tell(1, W_GRANT_GONE, window.handle);
	changer.join();
	nvi_agent_swallow(agent, 0);
	EXPECT_TRUE(eventually([&] {
		nvi_loop_poke(loop, 1);
		nvi_loop_poke(loop, 0);
		return status() != 0;
	}));
	write(window);
	EXPECT_TRUE(eventually([&] { return nvi_agent_held(agent, 0) == 1; }));
}

// A writer in a loop, and an owner that closes its memory, looks, and opens it again.
TEST_F(Grant, NothingChangesWhileTheMemoryIsClosed)
{
	std::atomic<bool> stop{ false };
	uint64_t direct_writes = 0;
	std::thread writer;
	/* One more while a write waits for a slot. */
	auto direct_count = [&] {
		VIPX_COUNTERS c = counters(0);

		return c.RdmaWrites - c.SlotsSent;
	};

	open(VIP_SERVICE_UNRELIABLE);
	nvi_agent_thread(agent);
	writer = std::thread([&] {
		while (!stop) {
			write(window, 0, 512);
			while (!stop && status() == 0)
				nvi_loop_poke(loop, 0);
		}
	});
	for (int round = 0; round < 10; round++) {
		EXPECT_TRUE(eventually([&] {
			nvi_loop_poke(loop, 1);
			return direct_count() > direct_writes + 2;
		}));
		EXPECT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, false), 0);
		EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
		direct_writes = direct_count();
		std::memset(window.data, 0, 512);
		for (int i = 0; i < 200; i++)
			nvi_loop_poke(loop, 1);
		for (int i = 0; i < 512; i++)
			EXPECT_EQ(window.data[i], 0) << round;
		/* A write may have been refused meanwhile: another asks again, though not the next. */
		EXPECT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, true), 0);
	}
	stop = true;
	writer.join();
}

// ---- messages that should not come

TEST_F(Grant, OneNobodyAskedForIsGivenBack)
{
	size_t fds;

	open(VIP_SERVICE_RELIABLE_DELIVERY);
	fds = fd_count();
	tell(0, W_GRANT_GIVE, window.handle, nvi_agent_fd(agent, window.data),
	     reinterpret_cast<uint64_t>(window.data), kWindow);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	nvi_agent_step(agent);
	EXPECT_EQ(nvi_agent_said(agent, W_GRANT_GONE), 1u);
	EXPECT_EQ(fd_count(), fds);
}

TEST_F(Grant, TheSecondAnswerIsGivenBack)
{
	size_t fds;

	open(VIP_SERVICE_RELIABLE_DELIVERY);
	warm(window);
	fds = fd_count();
	for (int i = 0; i < 3; i++)
		tell(0, W_GRANT_GIVE, window.handle, nvi_agent_fd(agent, window.data),
		     reinterpret_cast<uint64_t>(window.data), kWindow);
	EXPECT_EQ(nvi_agent_held(agent, 0), 1u);
	tell(0, W_GRANT_DENY, window.handle);
	EXPECT_EQ(fd_count(), fds);
	EXPECT_TRUE(direct(window));
}

TEST_F(Grant, OneThatCannotBeMappedIsGivenBack)
{
	struct {
		uint64_t base, length;
	} const bad[] = { { 4096, kWindow + 4096 }, { 4096, 0 },
			  { 4096, UINT64_MAX },	    { UINT64_MAX, kWindow },
			  { 0, UINT64_C(1) << 62 }, { 1, 1u << 31 } };
	size_t fds;

	open(VIP_SERVICE_RELIABLE_DELIVERY);
	nvi_agent_swallow(agent, 1u << W_GRANT_ASK);
	fds = fd_count();
	for (const auto &b : bad) {
		uint32_t gone = nvi_agent_said(agent, W_GRANT_GONE);
		uint32_t asked = nvi_agent_said(agent, W_GRANT_ASK);

		for (int i = 0; nvi_agent_said(agent, W_GRANT_ASK) == asked; i++) {
			ASSERT_LT(i, 5000);
			write(window);
			settle();
			expect_sent();
		}
		tell(0, W_GRANT_GIVE, window.handle, nvi_agent_fd(agent, window.data), b.base,
		     b.length);
		EXPECT_EQ(nvi_agent_held(agent, 0), 0u) << b.length;
		nvi_agent_step(agent);
		EXPECT_EQ(nvi_agent_said(agent, W_GRANT_GONE), gone + 1);
		tell(0, W_GRANT_TAKE, window.handle);
		nvi_agent_step(agent);
	}
	EXPECT_EQ(fd_count(), fds);
}

TEST_F(Grant, OneWithoutASliceIsGivenBack)
{
	open(VIP_SERVICE_RELIABLE_DELIVERY);
	nvi_agent_no_slices(agent, true);
	write(window);
	settle();
	expect_sent();
	EXPECT_EQ(nvi_agent_said(agent, W_GRANT_GIVE), 1u);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	EXPECT_FALSE(direct(window));
}

TEST_F(Grant, AFloodOfQuestionsIsAnsweredAndNoMore)
{
	size_t fds;

	open(VIP_SERVICE_RELIABLE_DELIVERY);
	fds = fd_count();
	for (int i = 0; i < 2000; i++) {
		tell(1, W_GRANT_ASK, window.handle);
		nvi_agent_step(agent);
	}
	/* End 0 did not ask: it gives each back at once. */
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	nvi_agent_swallow(agent, 1u << W_GRANT_GIVE);
	for (int i = 0; i < 2000; i++) {
		tell(1, W_GRANT_ASK, window.handle);
		nvi_agent_step(agent);
	}
	EXPECT_EQ(nvi_agent_given(agent), 1u);
	EXPECT_EQ(nvi_agent_said(agent, W_GRANT_GIVE), 2001u);
	EXPECT_EQ(nvi_agent_said(agent, W_GRANT_DENY), 1999u);
	EXPECT_EQ(fd_count(), fds);
}

TEST_F(Grant, NonsenseIsIgnored)
{
	uint8_t bytes[W_TELL_MAX] = {};

	open(VIP_SERVICE_RELIABLE_DELIVERY);
	warm(window);
	for (uint32_t len = 0; len <= sizeof(bytes); len++)
		nvi_agent_tell(agent, 0, bytes, len, nvi_agent_fd(agent, window.data));
	for (uint32_t kind : { 0u, 6u, 7u, 0x80000001u })
		tell(1, kind, window.handle);
	tell(0, W_GRANT_GONE, window.handle);
	tell(1, W_GRANT_GONE, 12345);
	tell(1, W_GRANT_GIVE, window.handle);
	tell(1, W_GRANT_DENY, window.handle);
	EXPECT_EQ(nvi_agent_given(agent), 1u);
	EXPECT_TRUE(direct(window));
}

TEST_F(Grant, AQuestionThatWasLostIsAskedAgain)
{
	open(VIP_SERVICE_RELIABLE_DELIVERY);
	nvi_agent_swallow(agent, 1u << W_GRANT_ASK);
	EXPECT_FALSE(direct(window));
	nvi_agent_swallow(agent, 0);
	for (int i = 0; i < 3000 && nvi_agent_held(agent, 0) == 0; i++)
		EXPECT_FALSE(direct(window));
	EXPECT_TRUE(direct(window));
	EXPECT_EQ(nvi_agent_said(agent, W_GRANT_ASK), 2u);
}

// ---- many regions, many connections

TEST_F(Grant, MoreRegionsThanGrants)
{
	std::vector<Window> many;

	open(VIP_SERVICE_RELIABLE_RECEPTION);
	for (int i = 0; i < 40; i++)
		many.push_back(alloc());
	for (int round = 0; round < 5; round++)
		for (const Window &w : many)
			direct(w, static_cast<size_t>(round) * 128, 100);
	settle();
	EXPECT_LE(nvi_agent_held(agent, 0), 16u);
	EXPECT_EQ(nvi_agent_given(agent), nvi_agent_held(agent, 0));
	/* Not a mapping made and dropped for each write. */
	EXPECT_LT(nvi_agent_said(agent, W_GRANT_ASK), 60u);
	/* One that is used much gets its grant all the same. */
	for (int i = 0; i < 2000 && !direct(many[0]); i++)
		;
	EXPECT_TRUE(direct(many[0]));
}

TEST_F(Grant, OrdinaryMemoryIsNotAskedForAgainAndAgain)
{
	std::vector<uint8_t> plain(kWindow);
	std::vector<VIP_MEM_HANDLE> handles;

	open(VIP_SERVICE_RELIABLE_RECEPTION);
	for (int i = 0; i < 40; i++)
		handles.push_back(nvi_loop_register(loop, plain.data(), kWindow));
	warm(window);
	for (int round = 0; round < 25; round++)
		for (VIP_MEM_HANDLE h : handles)
			EXPECT_FALSE(direct({ plain.data(), h }));
	EXPECT_LT(nvi_agent_said(agent, W_GRANT_ASK), 40u);
	EXPECT_TRUE(direct(window)) << "a grant is not given up for a refusal";
	for (VIP_MEM_HANDLE h : handles)
		nvi_loop_deregister(loop, plain.data(), h);
}

TEST_F(Grant, AnotherConnectionIsGrantedAnew)
{
	size_t fds = 0;

	open(VIP_SERVICE_RELIABLE_DELIVERY);
	nvi_agent_thread(agent);
	for (int i = 0; i < 4; i++) {
		write(window);
		EXPECT_TRUE(eventually([&] {
			nvi_loop_poke(loop, 1);
			nvi_loop_poke(loop, 0);
			return nvi_agent_held(agent, 0) == 1 && status() != 0;
		}));
		EXPECT_TRUE(direct(window));
		ASSERT_EQ(nvi_agent_reconnect(agent), 0);
		EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
		EXPECT_EQ(nvi_agent_given(agent), 0u);
		if (i == 0)
			fds = fd_count();
	}
	EXPECT_EQ(fd_count(), fds);
}

// ---- the link

// What is not known to have arrived is not reported as arrived.
TEST_F(Grant, AStoreThatTheLinkSwallowed)
{
	uint32_t bits = 0;

	open(VIP_SERVICE_RELIABLE_RECEPTION, "emu+fault", kLong, "down_after=200,down_ms=0");
	warm(window);
	std::memset(window.data, 0, kWindow);
	for (int i = 0; i < 100 && bits == 0; i++) {
		std::memset(window.data, 0, 1000);
		write(window, 0, 1000);
		bits = status() & VIP_STATUS_ERROR_MASK;
		if (bits == 0) {
			ASSERT_TRUE(landed(window, 0, 1000)) << i;
		}
	}
	EXPECT_EQ(bits,
		  static_cast<uint32_t>(VIP_STATUS_TRANSPORT_ERROR | VIP_STATUS_PARTIAL_ERROR));
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_ERROR);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
}

std::string WayName(const ::testing::TestParamInfo<std::tuple<int, const char *>> &info)
{
	const char *level = std::get<0>(info.param) == VIP_SERVICE_UNRELIABLE ? "unreliable"
			    : std::get<0>(info.param) == VIP_SERVICE_RELIABLE_DELIVERY
				    ? "delivery"
				    : "reception";

	return std::string(level) +
	       (std::string(std::get<1>(info.param)) == "emu" ? "" : "_strict");
}

INSTANTIATE_TEST_SUITE_P(Ways, EachWay,
			 ::testing::Combine(::testing::Values(VIP_SERVICE_UNRELIABLE,
							      VIP_SERVICE_RELIABLE_DELIVERY,
							      VIP_SERVICE_RELIABLE_RECEPTION),
					    ::testing::Values("emu", "emu+strict")),
			 WayName);

} // namespace
