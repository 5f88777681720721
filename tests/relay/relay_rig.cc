// SPDX-License-Identifier: BSD-2-Clause
#include "relay_rig.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace relay_test {

const Kind kPlain = { "emu", "" }, kStrict = { "emu+strict", "" },
	   kLossy = { "emu+fault", "drop_db=0.3,spurious_db=0.1" },
	   kLossyStrict = { "emu+strict+fault", "drop_db=0.3,spurious_db=0.1" },
	   kEarly = { "emu+fault", "early_db=0.3" };

std::ostream &operator<<(std::ostream &os, const Kind &k)
{
	return os << k.kind;
}

std::string name_of(const ::testing::TestParamInfo<Kind> &info)
{
	std::string text = info.param.kind;

	for (char &c : text)
		c = c == '+' ? '_' : c;
	return text;
}

uint32_t seed()
{
	const char *text = getenv("VIADUCT_SEED");

	return text != nullptr ? static_cast<uint32_t>(strtoul(text, nullptr, 0)) : 4711;
}

bool eventually(const std::function<bool()> &done)
{
	auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);

	while (!done()) {
		if (std::chrono::steady_clock::now() > end)
			return false;
		std::this_thread::yield();
	}
	return true;
}

// ---- the hosts --------------------------------------------------------------------------------

static struct port *make_port(struct port_emu_host *host, uint32_t index, const Kind &kind)
{
	struct port_emu_cfg cfg = {};
	struct port *base = nullptr, *out = nullptr;

	cfg.index = index;
	snprintf(cfg.name, sizeof(cfg.name), "%s", index == 1 ? "left" : "right");
	cfg.window_bytes = 64u << 20;
	EXPECT_EQ(port_emu_create(host, &cfg, &base), 0);
	EXPECT_EQ(port_decorate(base, kind.kind, kind.faults, seed() + index, &out), 0);
	return out;
}

static void count(void *arg)
{
	static_cast<Rig *>(arg)->notified++;
}

Rig::Rig(const Kind &kind, unsigned int threads, enum rl_wait wait, bool step) : stepped(step)
{
	struct rl_cfg cfg = {};

	for (auto &host : host_)
		EXPECT_EQ(port_emu_host_create(&host), 0);
	for (uint32_t i = 0; i < 2; i++) {
		int pair[2];

		here[i] = make_port(host_[2], i + 1, kind);
		node[i] = make_port(host_[i], 2 - i, kind);
		node_irq[i] = port_emu_host_irq(host_[i]);
		EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
				     pair),
			  0);
		EXPECT_EQ(port_emu_plug(here[i], pair[0]), 0);
		EXPECT_EQ(port_emu_plug(node[i], pair[1]), 0);
		EXPECT_EQ(port_link_enable(here[i]), 0);
		EXPECT_EQ(port_link_enable(node[i]), 0);
	}
	EXPECT_TRUE(eventually([&] {
		service();
		return port_link_state(here[0], nullptr) == PORT_LINK_UP &&
		       port_link_state(here[1], nullptr) == PORT_LINK_UP &&
		       port_link_state(node[0], nullptr) == PORT_LINK_UP &&
		       port_link_state(node[1], nullptr) == PORT_LINK_UP;
	}));
	cfg.threads = threads;
	cfg.wait = wait;
	cfg.first_db_bit = kFirstDbBit;
	cfg.irq = port_emu_host_irq(host_[2]);
	cfg.ports = here;
	cfg.port_count = 2;
	cfg.notify = count;
	cfg.notify_arg = this;
	EXPECT_EQ(rl_open(&cfg, &relay), 0);
}

Rig::~Rig()
{
	rl_close(relay);
	for (int i = 0; i < 2; i++) {
		port_close(here[i]);
		port_close(node[i]);
	}
	for (auto *host : host_)
		port_emu_host_destroy(host);
}

void Rig::service()
{
	for (int i = 0; i < 2; i++) {
		port_service(here[i]);
		port_service(node[i]);
	}
}

struct rl_counters Rig::counters()
{
	struct rl_counters c = {};

	rl_counters(relay, &c);
	return c;
}

uint32_t Rig::pass()
{
	uint32_t moved = 0;

	for (unsigned int i = 0; i < relay->cfg.threads; i++)
		moved += rl_thread_pass(&relay->threads[i]);
	return moved;
}

void Rig::settle()
{
	for (int i = 0; pass() != 0; i++)
		ASSERT_LT(i, 10000);
}

bool Rig::arm()
{
	bool came = false;

	for (unsigned int i = 0; i < relay->cfg.threads; i++) {
		rl_thread_lock(&relay->threads[i]);
		came |= rl_thread_arm(&relay->threads[i], true);
		rl_thread_unlock(&relay->threads[i]);
	}
	return came;
}

// ---- fragments ----------------------------------------------------------------------------------

uint32_t Fragment::inline_bytes() const
{
	uint32_t rdma = slot.head.op == W_OP_WRITE && (slot.head.flags & W_F_FIRST)
				? sizeof(struct w_rdma)
				: 0;

	if (slot.head.flags & W_F_PACKED)
		return slot.head.arg * slot.head.frag;
	return slot.head.flags & (W_F_BUFFERED | W_F_PLACED) ? rdma : rdma + slot.head.frag;
}

struct w_slot header(uint8_t op, uint8_t flags, uint32_t frag, uint32_t arg)
{
	struct w_slot s = {};

	s.head.op = op;
	s.head.flags = flags;
	s.head.arg = arg;
	s.head.frag = frag;
	return s;
}

Fragment fragment(std::mt19937 &rng, uint8_t op, uint8_t flags, uint32_t frag, uint32_t arg,
		  uint32_t read_length)
{
	Fragment f;
	bool rdma = (op == W_OP_WRITE && (flags & W_F_FIRST)) || op == W_OP_READ_REQ ||
		    op == W_OP_ATOMIC_REQ;

	f.slot = header(op, flags, frag, arg);
	for (auto &byte : f.slot.data)
		byte = static_cast<uint8_t>(rng());
	for (auto &byte : f.slot.more)
		byte = static_cast<uint8_t>(rng());
	if (rdma) {
		struct w_rdma r = { uint64_t{ rng() } << 32 | rng(), static_cast<uint32_t>(rng()),
				    op == W_OP_WRITE ? 0 : read_length };
		memcpy(f.slot.data, &r, sizeof(r));
	}
	if (flags & W_F_BUFFERED) {
		f.in_payload.resize(frag);
		for (auto &byte : f.in_payload)
			byte = static_cast<uint8_t>(rng());
	}
	return f;
}

::testing::AssertionResult same(const Fragment &sent, const Fragment &came)
{
	uint32_t n = sent.inline_bytes();
	uint32_t more = n > W_HEAD_INLINE ? n - W_HEAD_INLINE : 0;

	if (memcmp(&sent.slot, &came.slot, offsetof(struct w_slot, head.seq)) != 0)
		return ::testing::AssertionFailure()
		       << "line 0 of op " << int{ sent.slot.head.op } << " flags "
		       << int{ sent.slot.head.flags } << " frag " << sent.slot.head.frag;
	if (memcmp(sent.slot.more, came.slot.more, more) != 0)
		return ::testing::AssertionFailure() << "line 1, frag " << sent.slot.head.frag;
	if (sent.in_payload != came.in_payload)
		return ::testing::AssertionFailure() << "ring, frag " << sent.slot.head.frag;
	return ::testing::AssertionSuccess();
}

Fragment Stream::next()
{
	uint8_t flags = rng_() % 4 == 0 ? W_F_ACK : 0;
	uint32_t frag, arg = 0, most;
	bool first = op_ == 0, last;

	if (first && rng_() % 8 == 0)
		return fragment(rng_, W_OP_READ_REQ, W_F_FIRST | W_F_LAST | flags,
				rng_() % 2 ? sizeof(struct w_rdma) : sizeof(struct w_read_req), 0,
				rng_() % 65536);
	if (first && rng_() % 8 == 0)
		return fragment(rng_, W_OP_ATOMIC_REQ, W_F_FIRST | W_F_LAST | flags,
				sizeof(struct w_atomic_req), 0, rng_() % 2 ? 4 : 8);
	if (!first && op_ != W_OP_READ_RESP && rng_() % 16 == 0) {
		op_ = 0;
		return fragment(rng_, W_OP_ABORT, W_F_LAST, 0);
	}
	if (first) {
		static const uint8_t ops[] = { W_OP_SEND, W_OP_WRITE, W_OP_READ_RESP };

		op_ = ops[rng_() % 3];
		imm_ = op_ != W_OP_READ_RESP && rng_() % 2 ? W_F_IMM : 0;
		left_ = rng_() % 3 == 0 ? rng_() % 4096 : rng_() % 113;
	}
	most = first && op_ == W_OP_WRITE ? W_INLINE_MAX - sizeof(struct w_rdma) : W_INLINE_MAX;
	if (left_ > most || (left_ > 0 && rng_() % 2)) {
		flags |= W_F_BUFFERED;
		most = w_frag_max(kPayload);
	}
	last = left_ <= most && (left_ < 2 || rng_() % 3 != 0);
	frag = last ? left_ : 1 + rng_() % (left_ - 1 < most ? left_ - 1 : most);
	if (first && !last)
		arg = left_;
	if (last && imm_)
		arg = static_cast<uint32_t>(rng_());
	left_ -= frag;
	flags |= (first ? W_F_FIRST : 0) | (last ? W_F_LAST : 0) | imm_;
	Fragment f = fragment(rng_, op_, flags, frag, arg);
	if (last)
		op_ = 0;
	return f;
}

// ---- nodes ------------------------------------------------------------------------------------

struct w_slot *Node::out_slot(uint32_t n)
{
	auto *fifo = static_cast<uint8_t *>(out.base) + W_SLICE_FIFO;

	return reinterpret_cast<struct w_slot *>(fifo) + n % kSlots;
}

void Node::put(const Fragment &f)
{
	struct w_slot *slot = out_slot(sent);
	uint32_t n = f.inline_bytes();

	if (!f.in_payload.empty()) {
		if (f.slot.head.flags & W_F_REWOUND)
			tx_cursor = freed_ = w_payload_rewind(tx_cursor, kPayload);
		uint32_t at = w_payload_place(&tx_cursor, kPayload,
					      static_cast<uint32_t>(f.in_payload.size()));
		auto *payload = static_cast<uint8_t *>(out.base) + w_slice_payload(kSlots);

		u_out_copy(&out.out, payload + at, f.in_payload.data(), f.in_payload.size());
	}
	if (n > W_HEAD_INLINE)
		u_out_copy(&out.out, slot->more, f.slot.more, n - W_HEAD_INLINE);
	u_out_copy(&out.out, slot, &f.slot, offsetof(struct w_slot, head.seq));
	ends_[sent % kSlots] = tx_cursor;
}

void Node::publish()
{
	u_out_fence(&out.out);
	u_out_store32(&out.out, &out_slot(sent)->head.seq, w_seq(sent));
	u_out_fence(&out.out);
	sent++;
}

void Node::send_raw(const struct w_slot &slot)
{
	u_out_copy(&out.out, out_slot(sent), &slot, offsetof(struct w_slot, head.seq));
	publish();
}

/* Is there room for the fragment?  The payload buffer is free up to the end of the last slot that was consumed. */
bool Node::room(const Fragment &f)
{
	uint32_t given = credit();
	uint64_t cursor = tx_cursor;

	if (given != credited_)
		freed_ = ends_[(given - 1) % kSlots];
	credited_ = given;
	if (sent - given >= kSlots)
		return false;
	if (!f.in_payload.empty())
		w_payload_place(&cursor, kPayload, static_cast<uint32_t>(f.in_payload.size()));
	return cursor - freed_ <= kPayload;
}

void Node::ring_if_due()
{
	std::atomic_thread_fence(std::memory_order_seq_cst);
	uint32_t word = notify();

	if (word != rung_for_ && w_notify_due(word, sent)) {
		rung_for_ = word;
		port_peer_db_ring(port, ring_bits);
	}
}

void Node::ring_surely(struct port *relay_port)
{
	do
		port_peer_db_ring(port, ring_bits);
	while ((port_db_read(relay_port) & ring_bits) == 0);
}

bool Node::has_come() const
{
	auto *fifo = static_cast<uint8_t *>(in.base) + W_SLICE_FIFO;
	auto *slot = reinterpret_cast<struct w_slot *>(fifo) + consumed % kSlots;

	return atomic_load_explicit(&slot->head.seq, std::memory_order_acquire) == w_seq(consumed);
}

bool Node::take(Fragment *f)
{
	auto *fifo = static_cast<uint8_t *>(in.base) + W_SLICE_FIFO;
	auto *slot = reinterpret_cast<struct w_slot *>(fifo) + consumed % kSlots;

	if (!has_come())
		return false;
	memcpy(&f->slot, slot, sizeof(*slot));
	f->in_payload.clear();
	if (f->slot.head.flags & W_F_BUFFERED) {
		if (f->slot.head.flags & W_F_REWOUND)
			rx_cursor = w_payload_rewind(rx_cursor, kPayload);
		uint32_t at = w_payload_place(&rx_cursor, kPayload, f->slot.head.frag);
		auto *payload = static_cast<uint8_t *>(in.base) + w_slice_payload(kSlots) + at;

		f->in_payload.assign(payload, payload + f->slot.head.frag);
	}
	consumed++;
	return true;
}

void Node::give_credit(uint32_t n)
{
	u_out_store32(&out.out, &out_ctl()->credit, n);
	u_out_fence(&out.out);
}

void Node::give_credit_and_ring()
{
	give_credit(consumed);
	std::atomic_thread_fence(std::memory_order_seq_cst);
	if (notify() & W_NOTIFY_CREDIT)
		port_peer_db_ring(port, ring_bits);
}

void Node::arm(uint32_t bits, uint32_t slot)
{
	u_out_store32(&out.out, &out_ctl()->notify, bits == 0 ? 0 : w_notify(bits, slot));
	u_out_fence(&out.out);
	port_flush(port);
}

void Node::fail(uint64_t word)
{
	u_out_store64(&out.out, &out_ctl()->error, word);
	u_out_fence(&out.out);
	port_peer_db_ring(port, ring_bits);
}

uint32_t Node::credit() const
{
	return atomic_load_explicit(&in_ctl()->credit, std::memory_order_acquire);
}

uint32_t Node::notify() const
{
	return atomic_load_explicit(&in_ctl()->notify, std::memory_order_acquire);
}

uint64_t Node::error() const
{
	return atomic_load_explicit(&in_ctl()->error, std::memory_order_acquire);
}

bool Node::rung()
{
	uint32_t bit = UINT32_C(1) << kNodeDbBit;
	bool yes = (port_db_read(port) & bit) != 0;

	port_db_clear(port, bit);
	return yes;
}

void Node::scribble(size_t at, const void *bytes, size_t n)
{
	u_out_copy(&out.out, static_cast<uint8_t *>(out.base) + at, bytes, n);
	u_out_fence(&out.out);
}

// ---- circuits -----------------------------------------------------------------------------------

/* Makes a slice of `owner`, open and mapped at both ends, with guard bytes after it. */
static void make_slice(Rig &rig, struct port *owner, struct port *writer, struct port_slice *slice,
		       struct port_map *guard, struct port_map *in, struct port_map *out)
{
	size_t len = w_slice_bytes(kSlots, kPayload) + kGuard;
	int fd = -1;

	ASSERT_EQ(port_slice_alloc(owner, len, slice), 0);
	ASSERT_TRUE(eventually([&] {
		rig.service();
		return port_peer_slice_open(writer, slice->id, len, &fd) == 0;
	}));
	ASSERT_EQ(port_map(owner, slice->fd, len, PORT_INBOUND, guard), 0);
	memset(static_cast<uint8_t *>(guard->base) + len - kGuard, 0x5a, kGuard);
	ASSERT_EQ(port_map(owner, slice->fd, len, PORT_INBOUND, in), 0);
	ASSERT_EQ(port_map(writer, fd, len, PORT_OUTBOUND, out), 0);
	close(slice->fd);
	close(fd);
}

Circuit::Circuit(Rig &r, unsigned int thread) : rig(r)
{
	struct rl_side side[2] = {};

	for (int i = 0; i < 2; i++) {
		make_slice(rig, rig.here[i], rig.node[i], &slice_[0][i], &guard_[0][i], &side[i].in,
			   &node[i].out);
		make_slice(rig, rig.node[i], rig.here[i], &slice_[1][i], &guard_[1][i], &node[i].in,
			   &side[i].out);
		side[i].port = rig.here[i];
		side[i].db_mask = UINT32_C(1) << kNodeDbBit;
		node[i].port = rig.node[i];
		node[i].ring_bits = UINT32_C(1) << rl_db_bit(rig.relay, thread);
	}
	if (rig.stepped)
		EXPECT_EQ(rl_circuit_create(&rig.relay->threads[thread], side, kSlots, kPayload,
					    this, &rl),
			  0);
	else
		EXPECT_EQ(rl_add(rig.relay, thread, side, kSlots, kPayload, this, &rl), 0);
}

void Circuit::remove()
{
	if (rl != nullptr)
		rl_remove(rl);
	rl = nullptr;
}

Circuit::~Circuit()
{
	remove();
	for (int i = 0; i < 2; i++) {
		port_unmap(rig.node[i], &node[i].in);
		port_unmap(rig.node[i], &node[i].out);
		port_unmap(rig.here[i], &guard_[0][i]);
		port_unmap(rig.node[i], &guard_[1][i]);
		port_slice_free(rig.here[i], slice_[0][i].id);
		port_slice_free(rig.node[i], slice_[1][i].id);
	}
	rig.service();
}

void Circuit::start_at(uint32_t n)
{
	for (int i = 0; i < 2; i++) {
		node[i].sent = node[i].consumed = node[i].credited_ = n;
		node[i].give_credit(n);
		rl->end[i].next = rl->end[i].credit = n;
		u_out_store32(&rl->end[i].out, &rl->end[i].out_ctl->credit, n);
		u_out_fence(&rl->end[i].out);
	}
}

bool Circuit::guards_hold() const
{
	for (const auto &pair : guard_) {
		for (const auto &map : pair) {
			auto *at = static_cast<const uint8_t *>(map.base) + map.len - kGuard;

			for (uint32_t i = 0; i < kGuard; i++) {
				if (at[i] != 0x5a)
					return false;
			}
		}
	}
	return true;
}

} // namespace relay_test
