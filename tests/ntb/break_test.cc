// SPDX-License-Identifier: BSD-2-Clause
// How connections break: which descriptor reports it, and which memory is touched afterwards.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

extern "C" {
#include "nvi_loop.h"
#include "w_slot.h"
}
#include "eventually.h"

namespace {

constexpr uint32_t kDone = VIP_STATUS_DONE, kSend = VIP_STATUS_OP_SEND,
		   kReceive = VIP_STATUS_OP_RECEIVE, kWrite = VIP_STATUS_OP_RDMA_WRITE,
		   kRemoteWrite = VIP_STATUS_OP_REMOTE_RDMA_WRITE, kRead = VIP_STATUS_OP_RDMA_READ,
		   kProtection = VIP_STATUS_PROTECTION_ERROR, kLength = VIP_STATUS_LENGTH_ERROR,
		   kFlushed = VIP_STATUS_DESC_FLUSHED_ERROR,
		   kTransport = VIP_STATUS_TRANSPORT_ERROR, kPartial = VIP_STATUS_PARTIAL_ERROR,
		   kRdmaProt = VIP_STATUS_RDMA_PROT_ERROR,
		   kRemoteDesc = VIP_STATUS_REMOTE_DESC_ERROR;

// More than the payload buffer holds, so that it is under way until both ends have made progress many times.
constexpr size_t kLong = 300000;
constexpr size_t kRegion = 512 << 10;
constexpr uint32_t kQueued = W_INLINE_MAX + 1; // bytes of a read whose answer is queued
constexpr int64_t kTooLong = INT64_C(10000000000);

class Events {
public:
	static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *d)
	{
		auto *e = static_cast<Events *>(context);
		std::lock_guard<std::mutex> hold(e->lock);

		e->codes.push_back(d->ErrorCode);
	}

	int count(VIP_ERROR_CODE code)
	{
		std::lock_guard<std::mutex> hold(lock);
		int n = 0;

		for (VIP_ERROR_CODE c : codes)
			n += c == code;
		return n;
	}

	bool wait(VIP_ERROR_CODE code)
	{
		return eventually([&] { return count(code) > 0; });
	}

private:
	std::mutex lock;
	std::vector<VIP_ERROR_CODE> codes;
};

// Memory with its own registration, which the test ends.
struct Region {
	nvi_loop *loop;
	std::vector<uint8_t> bytes;
	VIP_MEM_HANDLE handle;

	Region(nvi_loop *l, size_t size, uint8_t value)
	    : loop(l), bytes(size, value), handle(nvi_loop_register(l, bytes.data(), size))
	{
		EXPECT_NE(0u, handle);
	}

	~Region() { end(); }

	void end()
	{
		if (handle != 0)
			nvi_loop_deregister(loop, bytes.data(), handle);
		handle = 0;
	}

	// The owner uses the memory for something else.
	void reuse(uint8_t value)
	{
		end();
		std::memset(bytes.data(), value, bytes.size());
	}

	bool only(uint8_t value) const
	{
		for (uint8_t b : bytes)
			if (b != value)
				return false;
		return true;
	}

	bool has(uint8_t value) const { return std::memchr(bytes.data(), value, bytes.size()); }
};

struct Place {
	uint8_t *addr;
	VIP_MEM_HANDLE handle;
};

Place at(Region &r, size_t off = 0)
{
	return { r.bytes.data() + off, r.handle };
}

class Connection : public ::testing::Test {
protected:
	static constexpr unsigned kDescs = 64, kDescBytes = 256;

	void open(int lvl, uint32_t slots = 16)
	{
		nvi_loop_cfg cfg = {};

		level = lvl;
		cfg.slots = slots;
		cfg.payload_bytes = 16384;
		cfg.level = static_cast<VIP_RELIABILITY_LEVEL>(lvl);
		cfg.port = "emu";
		cfg.seed = 7;
		loop = nvi_loop_open(&cfg);
		ASSERT_NE(loop, nullptr);
		ASSERT_EQ(nvi_loop_on_error(loop, Events::on_error, &events), 0);
		ours = std::make_unique<Region>(loop, kRegion, 0x11);
		theirs = std::make_unique<Region>(loop, kRegion, 0xee);
		fickle = std::make_unique<Region>(loop, kRegion, 0x11);
		descs.reset(static_cast<uint8_t *>(aligned_alloc(64, kDescs * kDescBytes)));
		std::memset(descs.get(), 0, kDescs * kDescBytes);
		desc_handle = nvi_loop_register(loop, descs.get(), kDescs * kDescBytes);
		ASSERT_NE(desc_handle, 0u);
	}

	void TearDown() override
	{
		if (loop == nullptr)
			return;
		nvi_loop_lose(loop, 0);
		nvi_loop_lose(loop, 1);
		ours.reset();
		theirs.reset();
		fickle.reset();
		nvi_loop_deregister(loop, descs.get(), desc_handle);
		nvi_loop_close(loop);
	}

	bool reliable() const { return level != VIP_SERVICE_UNRELIABLE; }

	// Does the sender's descriptor wait for the peer if its message has this length? See send().
	bool acknowledged(size_t len, size_t inline_max = W_INLINE_MAX) const
	{
		return level == VIP_SERVICE_RELIABLE_RECEPTION ||
		       (level == VIP_SERVICE_RELIABLE_DELIVERY && len > inline_max);
	}

	VIP_DESCRIPTOR *build(unsigned i, unsigned control, Place local, size_t len,
			      Place remote = { nullptr, 0 })
	{
		auto *d = reinterpret_cast<VIP_DESCRIPTOR *>(descs.get() + i * kDescBytes);
		unsigned s = 0;

		std::memset(static_cast<void *>(d), 0, kDescBytes);
		d->CS.Control = static_cast<VIP_UINT16>(control);
		d->CS.Length = static_cast<VIP_UINT32>(len);
		if ((control & VIP_CONTROL_OP_MASK) != VIP_CONTROL_OP_SENDRECV) {
			d->DS[0].Remote.Data.Address = remote.addr;
			d->DS[0].Remote.Handle = remote.handle;
			s = 1;
		}
		d->DS[s].Local.Data.Address = local.addr;
		d->DS[s].Local.Handle = local.handle;
		d->DS[s].Local.Length = static_cast<VIP_UINT32>(len);
		d->CS.SegCount = static_cast<VIP_UINT16>(s + 1);
		return d;
	}

	// Longer than a slot: it has two segments, since a short one with one segment does not wait for the peer.
	VIP_DESCRIPTOR *send(unsigned i, Place from, size_t len, int end = 0)
	{
		VIP_DESCRIPTOR *d = build(i, VIP_CONTROL_OP_SENDRECV, from, len);

		if (len > W_INLINE_MAX) {
			d->CS.SegCount = 2;
			d->DS[1].Local = d->DS[0].Local;
			d->DS[0].Local.Length = 1;
			d->DS[1].Local.Data.Address = from.addr + 1;
			d->DS[1].Local.Length--;
		}
		EXPECT_EQ(nvi_loop_post_send(loop, end, d, desc_handle), 0);
		return d;
	}

	VIP_DESCRIPTOR *receive(unsigned i, Place to, size_t len)
	{
		VIP_DESCRIPTOR *d = build(i, VIP_CONTROL_OP_SENDRECV, to, len);

		EXPECT_EQ(nvi_loop_post_recv(loop, 1, d, desc_handle), 0);
		return d;
	}

	VIP_DESCRIPTOR *rdma(unsigned i, unsigned control, Place local, size_t len, Place remote,
			     uint32_t imm = 0)
	{
		VIP_DESCRIPTOR *d = build(i, control, local, len, remote);

		d->CS.ImmediateData = imm;
		EXPECT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
		return d;
	}

	bool broken() const
	{
		return nvi_loop_state(loop, 0) == VIP_STATE_ERROR &&
		       nvi_loop_state(loop, 1) == VIP_STATE_ERROR;
	}

	// Makes progress until nothing moves, or nothing can.
	void settle()
	{
		for (int i = 0; i < 100000; i++) {
			if ((nvi_loop_progress(loop, 0) | nvi_loop_progress(loop, 1)) == 0 ||
			    broken())
				return;
		}
		FAIL() << "the ends never came to rest";
	}

	// Makes progress until some fragments have arrived, and some are still to be sent.
	void go_half_path()
	{
		VIP_DESCRIPTOR *d;

		for (int i = 0; i < 2; i++) {
			ASSERT_NE(nvi_loop_progress(loop, 1), 0);
			ASSERT_NE(nvi_loop_progress(loop, 0), 0);
		}
		ASSERT_EQ(nvi_loop_send_done(loop, 0, &d), 0);
		ASSERT_LE(nvi_loop_recv_done(loop, 1, &d), 0);
		ASSERT_EQ(nvi_loop_state(loop, 0), VIP_STATE_CONNECTED);
	}

	void expect_sent(VIP_DESCRIPTOR *want, uint32_t status)
	{
		expect_done(nvi_loop_send_done, 0, want, status);
	}

	void expect_received(VIP_DESCRIPTOR *want, uint32_t status)
	{
		expect_done(nvi_loop_recv_done, 1, want, status);
	}

	void expect_done(int (*take)(nvi_loop *, int, VIP_DESCRIPTOR **), int end,
			 VIP_DESCRIPTOR *want, uint32_t status)
	{
		VIP_DESCRIPTOR *d = nullptr;
		int got = take(loop, end, &d);

		EXPECT_EQ(got, status & VIP_STATUS_ERROR_MASK ? 2 : 1);
		EXPECT_EQ(d, want);
		EXPECT_EQ(want->CS.Status, kDone | status)
			<< std::hex << "0x" << want->CS.Status << " for 0x" << (kDone | status);
	}

	VIPX_COUNTERS counters(int end)
	{
		VIPX_COUNTERS c;

		nvi_loop_counters(loop, end, &c);
		return c;
	}

	void expect_broken()
	{
		for (int end = 0; end < 2; end++) {
			EXPECT_EQ(nvi_loop_state(loop, end), VIP_STATE_ERROR) << end;
			EXPECT_EQ(counters(end).ConnectionsLost, 1u) << end;
		}
	}

	void expect_connected()
	{
		for (int end = 0; end < 2; end++) {
			EXPECT_EQ(nvi_loop_state(loop, end), VIP_STATE_CONNECTED) << end;
			EXPECT_EQ(counters(end).ConnectionsLost, 0u) << end;
		}
	}

	// Reliable connections break; others continue, as the next message shows.
	void expect_aftermath()
	{
		if (reliable()) {
			expect_broken();
			return;
		}
		expect_connected();
		VIP_DESCRIPTOR *r = receive(60, at(*theirs), 100);
		VIP_DESCRIPTOR *s = send(61, at(*ours), 100);
		settle();
		expect_sent(s, kSend);
		expect_received(r, kReceive);
	}

	// ---- slots that a hostile peer writes to `end`

	w_control *control(int end)
	{
		uint64_t len;

		return reinterpret_cast<w_control *>(nvi_loop_inbound(loop, end, &len));
	}

	void forge(int end, uint32_t n, uint32_t slots, uint8_t op, uint8_t flags, uint32_t arg,
		   uint32_t frag, const w_rdma *rdma = nullptr)
	{
		uint64_t len;
		auto *slot = reinterpret_cast<w_slot *>(nvi_loop_inbound(loop, end, &len) +
							W_SLICE_FIFO) +
			     n % slots;

		std::memset(slot->data, 0, sizeof(slot->data));
		if (rdma != nullptr)
			std::memcpy(slot->data, rdma, sizeof(*rdma));
		slot->head.op = op;
		slot->head.flags = flags;
		slot->head.reserved = 0;
		slot->head.arg = arg;
		slot->head.frag = frag;
		__atomic_store_n(&slot->head.seq, w_seq(n), __ATOMIC_RELEASE);
	}

	/* Writes an atomic operation, in which a test may change any field. */
	void forge_atomic(uint32_t n, uint32_t slots, const w_atomic_req &want)
	{
		uint64_t len;
		auto *slot =
			reinterpret_cast<w_slot *>(nvi_loop_inbound(loop, 1, &len) + W_SLICE_FIFO) +
			n % slots;

		std::memcpy(slot->data, &want, sizeof(want));
		slot->head.op = W_OP_ATOMIC_REQ;
		slot->head.flags = W_F_FIRST | W_F_LAST;
		slot->head.reserved = 0;
		slot->head.arg = 0;
		slot->head.frag = sizeof(want);
		__atomic_store_n(&slot->head.seq, w_seq(n), __ATOMIC_RELEASE);
	}

	w_atomic_req atomic_add()
	{
		w_atomic_req want = {};

		want.rdma.addr = (reinterpret_cast<uintptr_t>(theirs->bytes.data()) + 7) & ~7ul;
		want.rdma.handle = theirs->handle;
		want.rdma.length = 8;
		want.atomic.op = W_ATOMIC_ADD;
		want.atomic.operand = 1;
		want.atomic.fetch = 1;
		return want;
	}

	void forge_read(uint32_t n, uint32_t slots, uint32_t length = kQueued)
	{
		w_rdma want = {};

		want.addr = reinterpret_cast<uintptr_t>(theirs->bytes.data());
		want.handle = theirs->handle;
		want.length = length;
		forge(1, n, slots, W_OP_READ_REQ, W_F_FIRST | W_F_LAST, 0, sizeof(want), &want);
	}

	struct Free {
		void operator()(uint8_t *p) const { free(p); }
	};

	nvi_loop *loop = nullptr;
	int level = 0;
	Events events;
	std::unique_ptr<Region> ours, theirs, fickle;
	std::unique_ptr<uint8_t, Free> descs;
	VIP_MEM_HANDLE desc_handle = 0;
};

std::string LevelName(int level)
{
	return level == VIP_SERVICE_UNRELIABLE		? "unreliable"
	       : level == VIP_SERVICE_RELIABLE_DELIVERY ? "delivery"
							: "reception";
}

class EachLevel : public Connection, public ::testing::WithParamInterface<int> {
protected:
	void SetUp() override { open(GetParam()); }
};

class EachReliable : public EachLevel {};

// ---- a peer that reports an error and goes on sending: each poll finds its next message

TEST_P(EachReliable, AStreamHidesNoBreak)
{
	VIP_DESCRIPTOR *d;
	uint32_t n;

	__atomic_store_n(&control(1)->error, w_error_word(0, 0, W_ERR_NO_DESC), __ATOMIC_RELEASE);
	for (n = 0; n < 64 && nvi_loop_state(loop, 1) == VIP_STATE_CONNECTED; n++) {
		receive(n, at(*theirs), 4);
		forge(1, n, 16, W_OP_SEND, W_F_FIRST | W_F_LAST, 0, 4);
		EXPECT_EQ(nvi_loop_poll_recv(loop, 1, &d), 1) << n;
	}
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
	EXPECT_LE(n, 16u) << "messages behind the report";
}

// ---- deregistered between fragments: no longer touched, and the right descriptor reports it

class Deregistered : public EachLevel {};
class DeregisteredReading : public EachLevel {};

TEST_P(Deregistered, SendSource)
{
	VIP_DESCRIPTOR *r = receive(0, at(*theirs), kLong);
	VIP_DESCRIPTOR *s = send(1, at(*fickle), kLong);

	ASSERT_NO_FATAL_FAILURE(go_half_path());
	fickle->reuse(0x22);
	settle();
	expect_sent(s, kSend | kProtection);
	EXPECT_FALSE(theirs->has(0x22));
	EXPECT_EQ(counters(0).ProtectionErrors, 1u);
	if (reliable()) {
		VIP_DESCRIPTOR *d;

		EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), 2);
	} else {
		expect_received(r, kReceive | kPartial | kTransport);
		EXPECT_EQ(counters(1).Dropped, 1u);
	}
	expect_aftermath();
}

TEST_P(Deregistered, ReceiveTarget)
{
	VIP_DESCRIPTOR *r = receive(0, at(*fickle), kLong);
	VIP_DESCRIPTOR *s = send(1, at(*ours), kLong);

	ASSERT_NO_FATAL_FAILURE(go_half_path());
	fickle->reuse(0x22);
	settle();
	EXPECT_TRUE(fickle->only(0x22));
	expect_received(r, kReceive | kProtection);
	expect_sent(s, kSend | (reliable() ? kRemoteDesc : 0));
	EXPECT_EQ(counters(1).ProtectionErrors, 1u);
	EXPECT_EQ(counters(1).Dropped, 1u);
	expect_aftermath();
}

TEST_P(Deregistered, WriteSource)
{
	VIP_DESCRIPTOR *w = rdma(0, VIP_CONTROL_OP_RDMAWRITE, at(*fickle), kLong, at(*theirs));

	ASSERT_NO_FATAL_FAILURE(go_half_path());
	fickle->reuse(0x22);
	settle();
	expect_sent(w, kWrite | kProtection);
	EXPECT_FALSE(theirs->has(0x22));
	if (!reliable()) {
		EXPECT_TRUE(events.wait(VIP_ERROR_RDMAW_ABORT));
		EXPECT_EQ(counters(1).Dropped, 1u);
	}
	expect_aftermath();
}

TEST_P(Deregistered, WriteTarget)
{
	VIP_DESCRIPTOR *w = rdma(0, VIP_CONTROL_OP_RDMAWRITE, at(*ours), kLong, at(*fickle));

	ASSERT_NO_FATAL_FAILURE(go_half_path());
	fickle->reuse(0x22);
	settle();
	EXPECT_TRUE(fickle->only(0x22));
	expect_sent(w, kWrite | (reliable() ? kRdmaProt : 0));
	EXPECT_TRUE(events.wait(VIP_ERROR_RDMAW_PROT));
	EXPECT_EQ(counters(1).ProtectionErrors, 1u);
	EXPECT_EQ(counters(1).Dropped, 1u);
	expect_aftermath();
}

// A write that ends early ends its immediate data with it: the receive reports it, and no event does.
TEST_P(Deregistered, WriteTargetWithImmediate)
{
	VIP_DESCRIPTOR *r = receive(0, at(*theirs), 64);
	VIP_DESCRIPTOR *w = rdma(1, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, at(*ours),
				 kLong, at(*fickle), 0xabcd);

	ASSERT_NO_FATAL_FAILURE(go_half_path());
	fickle->reuse(0x22);
	settle();
	EXPECT_TRUE(fickle->only(0x22));
	expect_received(r, kRemoteWrite | kRdmaProt);
	EXPECT_EQ(r->CS.ImmediateData, 0u);
	EXPECT_EQ(r->CS.Length, 0u);
	expect_sent(w, kWrite | (reliable() ? kRdmaProt : 0));
	EXPECT_EQ(counters(1).Dropped, 1u);
	expect_aftermath();
	EXPECT_EQ(events.count(VIP_ERROR_RDMAW_PROT), 0);
}

TEST_P(Deregistered, WriteSourceWithImmediate)
{
	VIP_DESCRIPTOR *r = receive(0, at(*theirs), 64), *d;
	VIP_DESCRIPTOR *w = rdma(1, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, at(*fickle),
				 kLong, at(*theirs), 0xabcd);

	ASSERT_NO_FATAL_FAILURE(go_half_path());
	fickle->reuse(0x22);
	settle();
	expect_sent(w, kWrite | kProtection);
	EXPECT_FALSE(theirs->has(0x22));
	EXPECT_EQ(r->CS.ImmediateData, 0u);
	if (reliable()) {
		EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), 2);
	} else {
		expect_received(r, kRemoteWrite | kPartial | kTransport);
		EXPECT_EQ(counters(1).Dropped, 1u);
	}
	expect_aftermath();
	EXPECT_EQ(events.count(VIP_ERROR_RDMAW_ABORT), 0);
}

TEST_P(DeregisteredReading, Target)
{
	VIP_DESCRIPTOR *d = rdma(0, VIP_CONTROL_OP_RDMAREAD, at(*fickle), kLong, at(*theirs));

	ASSERT_NO_FATAL_FAILURE(go_half_path());
	fickle->reuse(0x22);
	settle();
	EXPECT_TRUE(fickle->only(0x22));
	expect_sent(d, kRead | kProtection);
	expect_broken();
}

TEST_P(DeregisteredReading, Source)
{
	VIP_DESCRIPTOR *first = rdma(0, VIP_CONTROL_OP_RDMAREAD, at(*ours), 64, at(*theirs));
	VIP_DESCRIPTOR *bad, *later;

	settle();
	expect_sent(first, kRead);
	bad = rdma(1, VIP_CONTROL_OP_RDMAREAD, at(*ours), kLong, at(*fickle));
	later = rdma(2, VIP_CONTROL_OP_RDMAREAD, at(*ours), 64, at(*theirs));
	ASSERT_NO_FATAL_FAILURE(go_half_path());
	fickle->reuse(0x22);
	settle();
	expect_sent(bad, kRead | kRdmaProt);
	expect_sent(later, kRead | kFlushed);
	EXPECT_FALSE(ours->has(0x22));
	EXPECT_TRUE(events.wait(VIP_ERROR_RDMAR_PROT));
	EXPECT_EQ(counters(1).ProtectionErrors, 1u);
	expect_broken();
}

// The memory of the descriptor itself is deregistered: its later segments are no longer read.
class DeregisteredDescriptor : public EachLevel {
protected:
	static constexpr unsigned kSegments = 250;

	void SetUp() override
	{
		EachLevel::SetUp();
		memory.reset(static_cast<VIP_DESCRIPTOR *>(aligned_alloc(64, kBytes)));
		std::memset(static_cast<void *>(memory.get()), 0, kBytes);
		handle = nvi_loop_register(loop, memory.get(), kBytes);
		ASSERT_NE(handle, 0u);
	}

	VIP_DESCRIPTOR *scattered(unsigned control, Place local, Place remote = { nullptr, 0 })
	{
		VIP_DESCRIPTOR *d = memory.get();
		auto *seg = reinterpret_cast<VIP_DESCRIPTOR_SEGMENT *>(
			reinterpret_cast<uint8_t *>(d) + sizeof(VIP_CONTROL_SEGMENT));

		d->CS.Control = static_cast<VIP_UINT16>(control);
		d->CS.Length = kLong;
		if (remote.addr != nullptr) {
			seg->Remote.Data.Address = remote.addr;
			seg->Remote.Handle = remote.handle;
			seg++;
			d->CS.SegCount = 1;
		}
		for (unsigned i = 0; i < kSegments; i++, seg++) {
			seg->Local.Data.Address = local.addr + i * (kLong / kSegments);
			seg->Local.Handle = local.handle;
			seg->Local.Length = kLong / kSegments;
		}
		d->CS.SegCount = static_cast<VIP_UINT16>(d->CS.SegCount + kSegments);
		return d;
	}

	// The segments stay unchanged: code that read them would go on as before.
	void vanish()
	{
		nvi_loop_deregister(loop, memory.get(), handle);
		handle = 0;
	}

	void TearDown() override
	{
		if (loop != nullptr && handle != 0) {
			nvi_loop_lose(loop, 0);
			nvi_loop_lose(loop, 1);
			vanish();
		}
		EachLevel::TearDown();
	}

	void expect_lost(int (*take)(nvi_loop *, int, VIP_DESCRIPTOR **), int end)
	{
		VIP_DESCRIPTOR *d = nullptr;

		EXPECT_EQ(take(loop, end, &d), 2);
		EXPECT_EQ(d, memory.get());
		EXPECT_EQ(d->CS.Status, 0u);
		EXPECT_TRUE(events.wait(VIP_ERROR_COMP_PROT));
	}

	static constexpr size_t kBytes = 8192;
	static_assert(kLong % kSegments == 0, "segments");
	std::unique_ptr<VIP_DESCRIPTOR, void (*)(void *)> memory{ nullptr, free };
	VIP_MEM_HANDLE handle = 0;
};

TEST_P(DeregisteredDescriptor, Send)
{
	VIP_DESCRIPTOR *s = scattered(VIP_CONTROL_OP_SENDRECV, at(*fickle));

	receive(0, at(*theirs), kLong);
	ASSERT_EQ(nvi_loop_post_send(loop, 0, s, handle), 0);
	ASSERT_NO_FATAL_FAILURE(go_half_path());
	vanish();
	settle();
	expect_lost(nvi_loop_send_done, 0);
	EXPECT_NE(theirs->bytes[kLong - 1], 0x11);
	VIP_DESCRIPTOR *d;
	EXPECT_EQ(nvi_loop_recv_done(loop, 1, &d), 2);
	expect_aftermath();
}

TEST_P(DeregisteredDescriptor, Receive)
{
	VIP_DESCRIPTOR *r = scattered(VIP_CONTROL_OP_SENDRECV, at(*theirs));

	ASSERT_EQ(nvi_loop_post_recv(loop, 1, r, handle), 0);
	VIP_DESCRIPTOR *s = send(0, at(*ours), kLong);
	ASSERT_NO_FATAL_FAILURE(go_half_path());
	vanish();
	settle();
	expect_lost(nvi_loop_recv_done, 1);
	EXPECT_NE(theirs->bytes[kLong - 1], 0x11);
	expect_sent(s, kSend | (reliable() ? kRemoteDesc : 0));
	expect_aftermath();
}

TEST_P(DeregisteredDescriptor, Write)
{
	VIP_DESCRIPTOR *w = scattered(VIP_CONTROL_OP_RDMAWRITE, at(*ours), at(*theirs));

	ASSERT_EQ(nvi_loop_post_send(loop, 0, w, handle), 0);
	ASSERT_NO_FATAL_FAILURE(go_half_path());
	vanish();
	settle();
	expect_lost(nvi_loop_send_done, 0);
	EXPECT_NE(theirs->bytes[kLong - 1], 0x11);
	expect_aftermath();
}

TEST_P(DeregisteredDescriptor, Read)
{
	if (!reliable())
		GTEST_SKIP() << "no RDMA read on the unreliable level";
	VIP_DESCRIPTOR *d = scattered(VIP_CONTROL_OP_RDMAREAD, at(*ours), at(*theirs));

	ASSERT_EQ(nvi_loop_post_send(loop, 0, d, handle), 0);
	ASSERT_NO_FATAL_FAILURE(go_half_path());
	vanish();
	settle();
	expect_lost(nvi_loop_send_done, 0);
	EXPECT_NE(ours->bytes[kLong - 1], 0xee);
	expect_broken();
}

// ---- refused by the peer

class Refused : public Connection, public ::testing::WithParamInterface<std::tuple<int, size_t>> {
protected:
	static constexpr size_t kWriteInline = W_INLINE_MAX - sizeof(w_rdma);

	void SetUp() override
	{
		open(std::get<0>(GetParam()));
		size = std::get<1>(GetParam());
	}

	// One good message, the one to be refused, and one after it that lies in the payload
	// buffer.
	void send_three()
	{
		early = send(10, at(*ours), 2000);
		bad = send(11, at(*ours), size);
		late = send(12, at(*ours), 2000);
		settle();
	}

	void expect_send_refused()
	{
		expect_sent(early, kSend);
		expect_sent(bad, kSend | (acknowledged(size) ? kRemoteDesc : 0));
		expect_sent(late, kSend | (reliable() ? kFlushed : 0));
		if (reliable())
			expect_broken();
		else
			expect_connected();
	}

	size_t size = 0;
	VIP_DESCRIPTOR *early = nullptr, *bad = nullptr, *late = nullptr;
};

TEST_P(Refused, SendWithoutReceive)
{
	VIP_DESCRIPTOR *r = receive(0, at(*theirs), 2000);

	send_three();
	expect_received(r, kReceive);
	expect_send_refused();
	EXPECT_TRUE(events.wait(VIP_ERROR_RECVQ_EMPTY));
	EXPECT_EQ(counters(1).RecvQueueEmpty, reliable() ? 1u : 2u);
	EXPECT_EQ(counters(1).Dropped, reliable() ? 1u : 2u);
	EXPECT_FALSE(std::memchr(theirs->bytes.data() + 2000, 0x11, kRegion - 2000));
}

TEST_P(Refused, SendLongerThanTheReceive)
{
	VIP_DESCRIPTOR *r[3];

	for (unsigned i = 0; i < 3; i++)
		r[i] = receive(i, at(*theirs, 4096 * i), i == 1 ? size - 1 : 2000);
	send_three();
	expect_received(r[0], kReceive);
	expect_received(r[1], kReceive | kLength);
	expect_received(r[2], kReceive | (reliable() ? kFlushed : 0));
	expect_send_refused();
	EXPECT_EQ(theirs->bytes[4096], 0xee);
	EXPECT_EQ(counters(1).Dropped, 1u);
}

TEST_P(Refused, SendToAnUnprotectedReceive)
{
	VIP_DESCRIPTOR *r[3];
	Place nowhere = at(*theirs, 4096);

	nowhere.handle = 0;
	r[0] = receive(0, at(*theirs), 2000);
	r[1] = receive(1, nowhere, size);
	r[2] = receive(2, at(*theirs, 2 * 4096), 2000);
	send_three();
	expect_received(r[0], kReceive);
	expect_received(r[1], kReceive | kProtection);
	expect_received(r[2], kReceive | (reliable() ? kFlushed : 0));
	expect_send_refused();
	EXPECT_EQ(theirs->bytes[4096], 0xee);
	EXPECT_EQ(counters(1).Dropped, 1u);
}

TEST_P(Refused, Write)
{
	Place forbidden = at(*theirs, 4096);

	forbidden.handle = 0;
	early = rdma(10, VIP_CONTROL_OP_RDMAWRITE, at(*ours), 2000, at(*theirs));
	bad = rdma(11, VIP_CONTROL_OP_RDMAWRITE, at(*ours), size, forbidden);
	late = rdma(12, VIP_CONTROL_OP_RDMAWRITE, at(*ours), 2000, at(*theirs, kRegion - 2000));
	settle();
	expect_sent(early, kWrite);
	expect_sent(bad, kWrite | (acknowledged(size, kWriteInline) ? kRdmaProt : 0));
	expect_sent(late, kWrite | (reliable() ? kFlushed : 0));
	EXPECT_TRUE(events.wait(VIP_ERROR_RDMAW_PROT));
	EXPECT_EQ(theirs->bytes[0], 0x11);
	EXPECT_EQ(theirs->bytes[4096], 0xee);
	EXPECT_EQ(theirs->bytes[kRegion - 1], reliable() ? 0xee : 0x11);
	EXPECT_EQ(counters(1).ProtectionErrors, 1u);
	EXPECT_EQ(counters(1).Dropped, 1u);
	expect_aftermath();
}

TEST_P(Refused, WriteWithImmediate)
{
	VIP_DESCRIPTOR *r = receive(0, at(*theirs), 64);
	Place forbidden = at(*theirs);

	forbidden.handle = 0;
	bad = rdma(11, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, at(*ours), size, forbidden,
		   0xabcd);
	settle();
	expect_received(r, kRemoteWrite | kRdmaProt);
	EXPECT_EQ(r->CS.ImmediateData, 0u);
	EXPECT_EQ(r->CS.Length, 0u);
	expect_sent(bad, kWrite | (acknowledged(size, kWriteInline) ? kRdmaProt : 0));
	EXPECT_EQ(counters(1).Dropped, 1u);
	expect_aftermath();
	EXPECT_EQ(events.count(VIP_ERROR_RDMAW_PROT), 0);
}

// One message has two faults: the region refused it, whether a receive was there or not.
TEST_P(Refused, WriteWithImmediateWithoutReceive)
{
	Place forbidden = at(*theirs);

	forbidden.handle = 0;
	bad = rdma(11, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, at(*ours), size, forbidden,
		   0xabcd);
	settle();
	expect_sent(bad, kWrite | (acknowledged(size, kWriteInline) ? kRdmaProt : 0));
	EXPECT_EQ(counters(1).Dropped, 1u);
	EXPECT_TRUE(theirs->only(0xee));
	expect_aftermath();
}

// ---- reads

TEST_P(EachReliable, ReadWithTheImmediateBit)
{
	VIP_DESCRIPTOR *d = rdma(0, VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_IMMEDIATE, at(*ours), 64,
				 at(*theirs), 0xabcd);

	settle();
	expect_sent(d, kRead);
	EXPECT_EQ(ours->bytes[63], 0xee);
	expect_connected();
	EXPECT_EQ(counters(1).ProtocolErrors, 0u);
}

class Reads : public Connection, public ::testing::WithParamInterface<int> {
protected:
	static constexpr uint32_t kSlots = 64;

	void SetUp() override { open(GetParam(), kSlots); }
};

TEST_P(Reads, MoreThanMayBeUnderWayAllComplete)
{
	VIP_DESCRIPTOR *d[40];

	for (unsigned i = 0; i < 40; i++)
		d[i] = rdma(i, VIP_CONTROL_OP_RDMAREAD, at(*ours, 64 * i), 64, at(*theirs));
	settle();
	for (VIP_DESCRIPTOR *one : d)
		expect_sent(one, kRead);
	EXPECT_EQ(ours->bytes[40 * 64 - 1], 0xee);
	EXPECT_EQ(ours->bytes[40 * 64], 0x11);
	expect_connected();
}

// The initiator has the answer, and sends another request, before the answerer's thread has gone on.
TEST_P(Reads, TheSeventeenthComesWhenTheFirstIsAnswered)
{
	struct Race {
		nvi_loop *loop;
		std::thread progressing;
		bool fired, taken;

		static void published(void *arg)
		{
			auto *r = static_cast<Race *>(arg);

			if (r->fired)
				return;
			r->fired = true;
			nvi_loop_progress(r->loop, 0);
			nvi_loop_progress(r->loop, 0);
			r->progressing = std::thread([r] { nvi_loop_progress(r->loop, 1); });
			r->taken = eventually([r] {
				int64_t n = nvi_loop_reads_consumed(r->loop, 1);

				return n < 0 || n >= 17;
			});
		}
	} race = { loop, {}, false, false };
	VIP_DESCRIPTOR *d[18];

	for (unsigned i = 0; i < 18; i++)
		d[i] = rdma(i, VIP_CONTROL_OP_RDMAREAD, at(*ours, kQueued * i), kQueued,
			    at(*theirs));
	nvi_loop_on_publish(loop, 1, Race::published, &race);
	nvi_loop_progress(loop, 1);
	ASSERT_TRUE(race.fired);
	race.progressing.join();
	EXPECT_TRUE(race.taken);
	settle();
	EXPECT_EQ(counters(1).ProtocolErrors, 0u);
	expect_connected();
	for (VIP_DESCRIPTOR *one : d)
		expect_sent(one, kRead);
}

TEST_P(Reads, SixteenOfAHostilePeerAreAnswered)
{
	for (uint32_t n = 0; n < 16; n++)
		forge_read(n, kSlots);
	while (nvi_loop_progress(loop, 1) != 0)
		;
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_CONNECTED);
	EXPECT_EQ(counters(1).SlotsSent, 16u);
	EXPECT_EQ(counters(1).ProtocolErrors, 0u);
}

TEST_P(Reads, AtomicOperationsCountAmongTheSixteen)
{
	for (uint32_t n = 0; n < 16; n++)
		forge_read(n, kSlots);
	forge_atomic(16, kSlots, atomic_add());
	while (nvi_loop_progress(loop, 1) != 0)
		;
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
	EXPECT_EQ(counters(1).ProtocolErrors, 1u);
	EXPECT_TRUE(theirs->only(0xee)) << "it was not executed";
}

TEST_P(Reads, SeventeenOfAHostilePeerAreAProtocolError)
{
	for (uint32_t n = 0; n < 17; n++)
		forge_read(n, kSlots);
	while (nvi_loop_progress(loop, 1) != 0)
		;
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
	EXPECT_EQ(counters(1).ProtocolErrors, 1u);
	EXPECT_EQ(counters(1).ConnectionsLost, 1u);
	EXPECT_EQ(__atomic_load_n(&control(0)->error, __ATOMIC_ACQUIRE),
		  w_error_word(16, 0, W_ERR_PROTOCOL));
}

// Requests whose answers fit into a slot are answered as they come: there is no queue to overflow.
TEST_P(Reads, ShortOnesOfAHostilePeerAreAnsweredAsTheyCome)
{
	for (uint32_t n = 0; n < 17; n++)
		forge_read(n, kSlots, 64);
	while (nvi_loop_progress(loop, 1) != 0)
		;
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_CONNECTED);
	EXPECT_EQ(counters(1).SlotsSent, 17u);
	EXPECT_EQ(counters(1).ProtocolErrors, 0u);
}

TEST_P(Reads, AnAnswerToNoReadIsAProtocolError)
{
	forge(1, 0, kSlots, W_OP_READ_RESP, W_F_FIRST | W_F_LAST, 0, 8);
	while (nvi_loop_progress(loop, 1) != 0)
		;
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
	EXPECT_EQ(counters(1).ProtocolErrors, 1u);
}

// ---- operations that the peer has acknowledged complete

// Descriptors that cannot be sent.
enum Spoilt { kBadHandle, kReservedBit, kWrongLength };

// Descriptors posted before one that is refused locally complete first.
class OwnError : public Connection, public ::testing::WithParamInterface<std::tuple<int, int>> {
protected:
	void SetUp() override { open(std::get<0>(GetParam()), 32); }

	VIP_DESCRIPTOR *bad(unsigned i)
	{
		VIP_DESCRIPTOR *d = build(i, VIP_CONTROL_OP_SENDRECV, at(*ours), 64);

		switch (std::get<1>(GetParam())) {
		case kBadHandle:
			d->DS[0].Local.Handle = 0;
			break;
		case kReservedBit:
			d->CS.Control |= 0x10;
			break;
		default:
			d->CS.Length++;
		}
		EXPECT_EQ(nvi_loop_post_send(loop, 0, d, desc_handle), 0);
		return d;
	}

	uint32_t bad_bits() const
	{
		static const uint32_t bits[] = { kProtection, VIP_STATUS_FORMAT_ERROR, kLength };

		return bits[std::get<1>(GetParam())];
	}

	// Short ones, which a slot holds, and ones for the payload buffer.
	static size_t size_of(unsigned i) { return i % 2 ? 700 : 64; }

	void post(unsigned count)
	{
		for (unsigned i = 0; i < count; i++) {
			receives.push_back(receive(i, at(*theirs, 1000 * i), 1000));
			sends.push_back(send(32 + i, at(*ours), size_of(i)));
		}
	}

	void expect_all_sent()
	{
		for (size_t i = 0; i < sends.size(); i++) {
			SCOPED_TRACE(i);
			expect_sent(sends[i], kSend);
			expect_received(receives[i], kReceive);
		}
	}

	std::vector<VIP_DESCRIPTOR *> sends, receives;
};

TEST_P(OwnError, WhatWasSentBeforeIsNotFlushed)
{
	VIP_DESCRIPTOR *spoilt, *later, *d;

	post(24);
	spoilt = bad(60);
	later = send(61, at(*ours), 64);
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_CONNECTED) << "the peer took nothing yet";
	settle();
	expect_all_sent();
	expect_sent(spoilt, kSend | bad_bits());
	expect_sent(later, kSend | kFlushed);
	EXPECT_EQ(nvi_loop_send_done(loop, 0, &d), -ENOENT);
	expect_broken();
}

TEST_P(OwnError, BehindAFullFifo)
{
	std::vector<VIP_DESCRIPTOR *> more;
	VIP_DESCRIPTOR *spoilt;

	post(24);
	for (unsigned i = 56; i < 60; i++) {
		more.push_back(build(i, VIP_CONTROL_OP_SENDRECV, at(*theirs, 50000), 20000));
		ASSERT_EQ(nvi_loop_post_recv(loop, 1, more.back(), desc_handle), 0);
	}
	for (unsigned i = 24; i < 28; i++)
		sends.push_back(send(i, at(*ours), 20000));
	receives.insert(receives.end(), more.begin(), more.end());
	spoilt = bad(60);
	settle();
	expect_all_sent();
	expect_sent(spoilt, kSend | bad_bits());
	expect_broken();
}

TEST_P(OwnError, BehindWritesAndReads)
{
	VIP_DESCRIPTOR *w = rdma(0, VIP_CONTROL_OP_RDMAWRITE, at(*ours), 5000, at(*theirs));
	VIP_DESCRIPTOR *r =
		rdma(1, VIP_CONTROL_OP_RDMAREAD, at(*ours, 8192), 5000, at(*theirs, 8192));
	VIP_DESCRIPTOR *spoilt = bad(2);
	VIP_DESCRIPTOR *later =
		rdma(3, VIP_CONTROL_OP_RDMAWRITE, at(*ours), 64, at(*theirs, 30000));

	settle();
	expect_sent(w, kWrite);
	expect_sent(r, kRead);
	expect_sent(spoilt, kSend | bad_bits());
	expect_sent(later, kWrite | kFlushed);
	EXPECT_EQ(ours->bytes[8192 + 4999], 0xee);
	EXPECT_EQ(theirs->bytes[4999], 0x11);
	EXPECT_EQ(theirs->bytes[30000], 0xee);
	expect_broken();
}

// The peer refuses an earlier one: that broke the connection, and the bad one is flushed.
TEST_P(OwnError, BehindOneThatThePeerRefuses)
{
	VIP_DESCRIPTOR *refused, *spoilt;

	post(3);
	refused = send(50, at(*ours), 700);
	spoilt = bad(60);
	settle();
	expect_all_sent();
	expect_sent(refused, kSend | kRemoteDesc);
	expect_sent(spoilt, kSend | kFlushed);
	expect_broken();
}

TEST_P(OwnError, ALossIsNotWaitedFor)
{
	VIP_DESCRIPTOR *spoilt;

	post(3);
	spoilt = bad(60);
	nvi_loop_lose(loop, 0);
	for (unsigned i = 0; i < 3; i++)
		if (!acknowledged(size_of(i)))
			expect_sent(sends[i], kSend);
		else if (i == (acknowledged(size_of(0)) ? 0 : 1))
			expect_sent(sends[i], kSend | kTransport | kPartial);
		else
			expect_sent(sends[i], kSend | kFlushed);
	expect_sent(spoilt, kSend | kFlushed);
}

// A descriptor that waits to be refused may become valid; the next one waits for all before it, too.
TEST_P(EachReliable, SendsBeforeTheSecondThatIsRefused)
{
	VIP_DESCRIPTOR *r[3], *s[3], *bad;

	for (unsigned i = 0; i < 3; i++)
		r[i] = receive(i, at(*theirs), 700);
	s[0] = send(10, at(*ours), 64);
	s[1] = send(11, { ours->bytes.data(), 0 }, 64);
	s[1]->DS[0].Local.Handle = ours->handle;
	settle();
	s[2] = send(12, at(*ours), 64);
	bad = send(13, { ours->bytes.data(), 0 }, 64);
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_CONNECTED) << "the peer did not take it yet";
	settle();
	for (unsigned i = 0; i < 3; i++) {
		expect_sent(s[i], kSend);
		expect_received(r[i], kReceive);
	}
	expect_sent(bad, kSend | kProtection);
	expect_broken();
}

// The source of a message is deregistered while it is under way: earlier ones are not flushed.
TEST_P(EachReliable, SendsBeforeOneWhoseSourceGoes)
{
	VIP_DESCRIPTOR *r[4], *s[3], *bad;

	for (unsigned i = 0; i < 4; i++)
		r[i] = receive(i, at(*theirs), kLong);
	for (unsigned i = 0; i < 3; i++)
		s[i] = send(10 + i, at(*ours), i == 1 ? 64 : 700);
	bad = send(20, at(*fickle), kLong);
	for (int i = 0; i < 2; i++)
		nvi_loop_progress(loop, 0);
	fickle->reuse(0x22);
	settle();
	for (unsigned i = 0; i < 3; i++) {
		expect_sent(s[i], kSend);
		expect_received(r[i], kReceive);
	}
	expect_sent(bad, kSend | kProtection);
	EXPECT_FALSE(theirs->has(0x22));
	expect_broken();
}

// ---- an error of this end's receive queue

class RecvError : public EachReliable {
protected:
	// Two sends are out, and the peer's message, which meets no receive, breaks the connection.
	void break_off()
	{
		for (unsigned i = 0; i < 2; i++) {
			r[i] = receive(i, at(*theirs), 2000);
			s[i] = send(10 + i, at(*ours), 2000);
		}
		send(20, at(*theirs), 64, 1);
		nvi_loop_progress(loop, 0);
		EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_ERROR);
		EXPECT_EQ(nvi_loop_send_done(loop, 0, &d), 0) << "the peer may take them yet";
	}

	VIP_DESCRIPTOR *r[2], *s[2], *d;
};

TEST_P(RecvError, SendsThatArriveAreDone)
{
	break_off();
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_CONNECTED);
	for (int i = 0; i < 4; i++)
		nvi_loop_progress(loop, i % 2 == 0);
	for (unsigned i = 0; i < 2; i++) {
		expect_received(r[i], kReceive);
		expect_sent(s[i], kSend);
	}
	expect_broken();
	EXPECT_LT(nvi_loop_settle(loop, 10), 10);
}

TEST_P(RecvError, WhatIsPostedMeanwhileIsFlushedBehindThem)
{
	VIP_DESCRIPTOR *later;

	break_off();
	later = send(30, at(*ours), 64);
	EXPECT_EQ(nvi_loop_send_done(loop, 0, &d), 0);
	for (int i = 0; i < 4; i++)
		nvi_loop_progress(loop, i % 2 == 0);
	expect_sent(s[0], kSend);
	expect_sent(s[1], kSend);
	expect_sent(later, kSend | kFlushed);
	EXPECT_EQ(nvi_loop_send_done(loop, 0, &d), -ENOENT);
}

TEST_P(RecvError, BothEndsAtOnce)
{
	VIP_DESCRIPTOR *back = send(40, at(*theirs), 2000, 1);

	break_off();
	s[0] = s[1] = nullptr;
	for (int i = 0; i < 6; i++)
		nvi_loop_progress(loop, i % 2 == 0);
	while (nvi_loop_send_done(loop, 0, &d) > 0)
		EXPECT_EQ(d->CS.Status, kDone | kSend);
	expect_done(nvi_loop_send_done, 1, back, kSend | kRemoteDesc);
	expect_broken();
	EXPECT_LT(nvi_loop_settle(loop, 10), 10);
}

TEST_P(RecvError, ThePeerRefusesOneOfThem)
{
	VIP_DESCRIPTOR *third;

	third = build(12, VIP_CONTROL_OP_SENDRECV, at(*ours), 2000);
	for (unsigned i = 0; i < 2; i++) {
		r[i] = receive(i, at(*theirs), 2000);
		s[i] = send(10 + i, at(*ours), 2000);
	}
	EXPECT_EQ(nvi_loop_post_send(loop, 0, third, desc_handle), 0);
	send(20, at(*theirs), 64, 1);
	nvi_loop_progress(loop, 0);
	for (int i = 0; i < 6; i++)
		nvi_loop_progress(loop, i % 2 == 0);
	expect_sent(s[0], kSend);
	expect_sent(s[1], kSend);
	expect_sent(third, kSend | kRemoteDesc);
	expect_broken();
}

TEST_P(RecvError, ALossMeanwhileTellsWhatMayBeLost)
{
	break_off();
	nvi_loop_lose(loop, 0);
	expect_sent(s[0], kSend | kTransport | kPartial);
	expect_sent(s[1], kSend | kFlushed);
	EXPECT_EQ(counters(0).ConnectionsLost, 1u);
	EXPECT_LT(nvi_loop_settle(loop, 10), 10);
}

TEST_P(RecvError, ForgedCreditMeanwhileIsNoAcknowledgement)
{
	break_off();
	control(0)->credit = 77;
	for (int i = 0; i < 4; i++)
		nvi_loop_progress(loop, 0);
	expect_sent(s[0], kSend | kTransport | kPartial);
	expect_sent(s[1], kSend | kFlushed);
	EXPECT_EQ(counters(0).ProtocolErrors, 1u);
}

TEST_P(EachReliable, AcknowledgedSendsAreNotFlushedByARefusal)
{
	VIP_DESCRIPTOR *r = receive(0, at(*theirs), 2000);
	VIP_DESCRIPTOR *good = send(1, at(*ours), 2000);

	nvi_loop_progress(loop, 1);
	expect_received(r, kReceive);
	// The other case in which a message meets no receive: then this end breaks.
	send(2, at(*theirs), 64, 1);
	nvi_loop_progress(loop, 0);
	expect_sent(good, kSend);
	settle();
	expect_broken();
}

TEST_P(EachReliable, AcknowledgedSendsAreNotFlushedByNonsense)
{
	VIP_DESCRIPTOR *r = receive(0, at(*theirs), 2000);
	VIP_DESCRIPTOR *good = send(1, at(*ours), 2000);

	nvi_loop_progress(loop, 1);
	expect_received(r, kReceive);
	forge(0, 0, 16, 77, 0, 0, 0);
	nvi_loop_progress(loop, 0);
	expect_sent(good, kSend);
	EXPECT_EQ(counters(0).ProtocolErrors, 1u);
	settle();
	expect_broken();
}

TEST_P(EachLevel, ALossIsCountedOnce)
{
	for (int end = 0; end < 2; end++) {
		nvi_loop_lose(loop, end);
		nvi_loop_lose(loop, end);
	}
	expect_broken();
	EXPECT_TRUE(events.wait(VIP_ERROR_CONN_LOST));
}

// The end that learns of the loss consumes the slots that are there: more than one batch of a long fifo.
class LongFifo : public Connection, public ::testing::WithParamInterface<int> {
protected:
	void SetUp() override { open(GetParam(), 128); }
};

TEST_P(LongFifo, ASendThatIsRefusedAfterALossIsRefusedOnce)
{
	VIP_DESCRIPTOR *r[3];

	for (unsigned i = 0; i < 3; i++)
		r[i] = receive(i, at(*theirs, 4096 * i), 500);
	send(10, at(*ours), 1000);
	nvi_loop_lose(loop, 1);
	EXPECT_EQ(counters(1).Dropped, 1u);
	expect_received(r[0], kReceive | kLength);
	expect_received(r[1], kReceive | kFlushed);
	expect_received(r[2], kReceive | kFlushed);
	settle();
	expect_broken();
}

TEST_P(LongFifo, ASendWithoutReceiveBeforeALossIsRefusedOnce)
{
	send(10, at(*ours), 1000);
	nvi_loop_lose(loop, 1);
	EXPECT_EQ(counters(1).RecvQueueEmpty, 1u);
	EXPECT_EQ(counters(1).Dropped, 1u);
	settle();
	expect_broken();
}

TEST_P(EachReliable, ABrokenConnectionMovesNothing)
{
	send(1, at(*ours), 64);
	settle();
	expect_broken();
	EXPECT_LT(nvi_loop_settle(loop, 10), 10);
}

// ---- actions of no correct peer

TEST_P(EachLevel, ANopIsTakenAnywhere)
{
	VIP_DESCRIPTOR *r = receive(0, at(*theirs), 200);

	forge(1, 0, 16, W_OP_NOP, W_F_ACK, 0, 0);
	forge(1, 1, 16, W_OP_SEND, W_F_FIRST, 100, 40);
	forge(1, 2, 16, W_OP_NOP, W_F_ACK, 0, 0);
	nvi_loop_progress(loop, 1);
	EXPECT_EQ(control(0)->credit, 3u);
	forge(1, 3, 16, W_OP_SEND, W_F_LAST, 0, 60);
	nvi_loop_progress(loop, 1);
	expect_received(r, kReceive);
	EXPECT_EQ(r->CS.Length, 100u);
	forge(1, 4, 16, W_OP_NOP, W_F_ACK | W_F_LAST, 0, 0);
	nvi_loop_progress(loop, 1);
	EXPECT_EQ(counters(1).ProtocolErrors, 1u);
}

TEST_P(EachLevel, AnAtomicOperationThatNoPeerSends)
{
	void (*const spoils[])(w_atomic_req *) = {
		[](w_atomic_req *w) { w->atomic.op = 0; },
		[](w_atomic_req *w) { w->atomic.op = W_ATOMIC_MAX; },
		[](w_atomic_req *w) { w->atomic.op = UINT32_MAX; },
		[](w_atomic_req *w) { w->atomic.fetch = 2; },
		[](w_atomic_req *w) { w->rdma.length = 0; },
		[](w_atomic_req *w) { w->rdma.length = 16; },
		[](w_atomic_req *w) { w->rdma.addr += 4; },
		[](w_atomic_req *w) { w->rdma.addr += 1; },
	};

	for (auto spoil : spoils) {
		w_atomic_req want = atomic_add();

		spoil(&want);
		forge_atomic(0, 16, want);
		nvi_loop_progress(loop, 1);
		EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
		EXPECT_EQ(counters(1).ProtocolErrors, 1u);
		EXPECT_TRUE(theirs->only(0xee));
		TearDown();
		SetUp();
	}
}

TEST_P(EachLevel, AtomicOperationsAreForReliableLevels)
{
	forge_atomic(0, 16, atomic_add());
	nvi_loop_progress(loop, 1);
	EXPECT_EQ(counters(1).ProtocolErrors, reliable() ? 0u : 1u);
	EXPECT_EQ(nvi_loop_state(loop, 1), reliable() ? VIP_STATE_CONNECTED : VIP_STATE_ERROR);
	EXPECT_EQ(counters(1).SlotsSent, reliable() ? 1u : 0u);
	EXPECT_EQ(theirs->only(0xee), !reliable());
}

TEST_P(EachLevel, AbortIsForTheUnreliableLevel)
{
	VIP_DESCRIPTOR *r = receive(0, at(*theirs), 200);

	forge(1, 0, 16, W_OP_SEND, W_F_FIRST, 100, 40);
	forge(1, 1, 16, W_OP_ABORT, W_F_LAST, 0, 0);
	nvi_loop_progress(loop, 1);
	EXPECT_EQ(counters(1).ProtocolErrors, reliable() ? 1u : 0u);
	EXPECT_EQ(nvi_loop_state(loop, 1), reliable() ? VIP_STATE_ERROR : VIP_STATE_CONNECTED);
	// Some of it has arrived already: it was not just flushed.
	expect_received(r, kReceive | kPartial | kTransport);
	EXPECT_EQ(theirs->bytes[0], 0);
	if (reliable()) {
		EXPECT_EQ(__atomic_load_n(&control(0)->error, __ATOMIC_ACQUIRE),
			  w_error_word(1, 0, W_ERR_PROTOCOL));
	}
}

class Credit : public EachLevel {
protected:
	// Enough to fill the fifo: at every level some send waits for credit.
	void fill()
	{
		for (unsigned i = 0; i < 20; i++)
			waiting[i] = send(i, at(*ours), 100);
	}

	void set(uint32_t credit)
	{
		__atomic_store_n(&control(0)->credit, credit, __ATOMIC_RELEASE);
	}

	// Descriptors from `from` on did not complete: one failed, the rest are flushed.
	void expect_forgery_noticed(unsigned from)
	{
		nvi_loop_progress(loop, 0);
		EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_ERROR);
		EXPECT_EQ(counters(0).ProtocolErrors, 1u);
		EXPECT_EQ(counters(0).ConnectionsLost, 1u);
		if (level != VIP_SERVICE_RELIABLE_RECEPTION)
			return;
		for (unsigned i = 0; i < 20; i++)
			expect_sent(waiting[i], kSend | (i < from    ? 0
							 : i == from ? kTransport | kPartial
								     : kFlushed));
	}

	VIP_DESCRIPTOR *waiting[20];
};

TEST_P(Credit, BeyondWhatWasSent)
{
	fill();
	set(17);
	expect_forgery_noticed(0);
}

TEST_P(Credit, Backwards)
{
	fill();
	set(8);
	nvi_loop_progress(loop, 0);
	ASSERT_EQ(nvi_loop_state(loop, 0), VIP_STATE_CONNECTED);
	set(7);
	for (unsigned i = 20; i < 40; i++)
		send(i, at(*ours), 100);
	nvi_loop_progress(loop, 0);
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_ERROR);
	EXPECT_EQ(counters(0).ProtocolErrors, 1u);
	EXPECT_EQ(counters(0).ConnectionsLost, 1u);
	if (level == VIP_SERVICE_RELIABLE_RECEPTION) {
		for (unsigned i = 0; i < 9; i++)
			expect_sent(waiting[i], kSend | (i < 8 ? 0 : kTransport | kPartial));
	}
}

TEST_P(Credit, FarBeyond)
{
	fill();
	set(0x80000000u);
	expect_forgery_noticed(0);
}

// Forged when the connection breaks for another reason: it acknowledges nothing.
TEST_P(Credit, ForgedAcknowledgesNothingAtABreak)
{
	fill();
	set(17);
	forge(0, 0, 16, 77, 0, 0, 0);
	expect_forgery_noticed(0);
}

// ---- waking threads that sleep, or are about to

class Wake : public Connection {
protected:
	void SetUp() override
	{
		open(VIP_SERVICE_RELIABLE_RECEPTION);
		ticket = nvi_loop_arm(loop);
		ASSERT_EQ(nvi_loop_polled(loop), 0u);
	}

	// End 1 is not rung for messages that end 0 sends now.
	void silence() { __atomic_store_n(&control(0)->notify, 0, __ATOMIC_SEQ_CST); }

	uint32_t ticket = 0;
};

TEST_F(Wake, EndsTheSleepOfAnOlderTicket)
{
	nvi_loop_wake(loop);
	EXPECT_FALSE(nvi_loop_overslept(loop, ticket, kTooLong));
}

TEST_F(Wake, EndsASleep)
{
	std::atomic<bool> overslept{ true };
	std::thread sleeper([&] { overslept = nvi_loop_overslept(loop, ticket, kTooLong); });

	EXPECT_TRUE(eventually([&] { return nvi_loop_sleepers(loop) != 0; }));
	nvi_loop_wake(loop);
	sleeper.join();
	EXPECT_FALSE(overslept);
}

// A channel that is polled does not ring: no thread may sleep while it is.
TEST_F(Wake, NoSleepWhileSomethingIsPolled)
{
	VIP_DESCRIPTOR *r = receive(0, at(*theirs), 64);

	silence();
	send(1, at(*ours), 64);
	ASSERT_NE(nvi_loop_polled(loop), 0u);
	EXPECT_FALSE(nvi_loop_overslept(loop, ticket, kTooLong));
	expect_received(r, kReceive);
}

TEST_F(Wake, SleepersAreKickedWhenSomethingIsPolledAgain)
{
	std::atomic<bool> overslept{ true };
	std::thread sleeper;

	receive(0, at(*theirs), 64);
	silence();
	sleeper = std::thread([&] { overslept = nvi_loop_overslept(loop, ticket, kTooLong); });
	EXPECT_TRUE(eventually([&] { return nvi_loop_sleepers(loop) != 0; }));
	send(1, at(*ours), 64);
	sleeper.join();
	EXPECT_FALSE(overslept);
}

TEST_F(Wake, WhatArrivesEndsTheSleep)
{
	receive(0, at(*theirs), 64);
	send(1, at(*ours), 64);
	EXPECT_FALSE(nvi_loop_overslept(loop, ticket, kTooLong));
}

// ---- which levels work

std::string OneLevel(const ::testing::TestParamInfo<int> &info)
{
	return LevelName(info.param);
}

const auto kAll = ::testing::Values(VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
				    VIP_SERVICE_RELIABLE_RECEPTION);
const auto kReliable =
	::testing::Values(VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION);

INSTANTIATE_TEST_SUITE_P(Levels, EachLevel, kAll, OneLevel);
INSTANTIATE_TEST_SUITE_P(Levels, EachReliable, kReliable, OneLevel);
INSTANTIATE_TEST_SUITE_P(Levels, RecvError, kReliable, OneLevel);
INSTANTIATE_TEST_SUITE_P(Levels, LongFifo, kReliable, OneLevel);
std::string OwnErrorName(const ::testing::TestParamInfo<std::tuple<int, int>> &info)
{
	static const char *const what[] = { "handle", "reserved", "length" };

	return LevelName(std::get<0>(info.param)) + "_" + what[std::get<1>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Levels, OwnError,
			 ::testing::Combine(kReliable, ::testing::Values(kBadHandle, kReservedBit,
									 kWrongLength)),
			 OwnErrorName);
INSTANTIATE_TEST_SUITE_P(Levels, Deregistered, kAll, OneLevel);
INSTANTIATE_TEST_SUITE_P(Levels, DeregisteredReading, kReliable, OneLevel);
INSTANTIATE_TEST_SUITE_P(Levels, DeregisteredDescriptor, kAll, OneLevel);
INSTANTIATE_TEST_SUITE_P(Levels, Reads, kReliable, OneLevel);
INSTANTIATE_TEST_SUITE_P(Levels, Credit, kAll, OneLevel);
// Inline, one fragment through the payload buffer, many fragments.
INSTANTIATE_TEST_SUITE_P(Levels, Refused,
			 ::testing::Combine(kAll, ::testing::Values(size_t{ 64 }, size_t{ 2000 },
								    size_t{ 200000 })),
			 [](const ::testing::TestParamInfo<std::tuple<int, size_t>> &info) {
				 return LevelName(std::get<0>(info.param)) + "_" +
					std::to_string(std::get<1>(info.param));
			 });

} // namespace
