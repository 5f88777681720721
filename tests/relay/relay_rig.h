/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host that relays between two others: its two ports, and at the other end of each link a node
 * that the test plays.  The relay's threads run, or the test makes their steps.
 */
#ifndef RELAY_RIG_H
#define RELAY_RIG_H

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "port_emu.h"
#include "port_fault.h"
#include "rl_priv.h"
#include "rl_relay.h"
}

namespace relay_test {

constexpr uint32_t kSlots = 8, kPayload = 4096, kNodeDbBit = 3, kFirstDbBit = 1, kGuard = 4096;

/* Seed of everything random: VIADUCT_SEED, or always the same. */
uint32_t seed();

struct Kind {
	const char *kind;
	const char *faults;
};
extern const Kind kPlain, kStrict, kLossy, kLossyStrict, kEarly;
std::ostream &operator<<(std::ostream &os, const Kind &k);
std::string name_of(const ::testing::TestParamInfo<Kind> &info);

class Rig {
public:
	Rig(const Kind &kind, unsigned int threads, enum rl_wait wait, bool stepped);
	~Rig();
	Rig(const Rig &) = delete;

	struct rl_relay *relay = nullptr;
	struct port *here[2] = {}; /* the relay's ports */
	struct port *node[2] = {}; /* the ports of the nodes at their other ends */
	struct port_irq *node_irq[2] = {};
	std::atomic<uint32_t> notified{ 0 };
	const bool stepped;

	struct rl_counters counters();
	/* One pass of all threads; returns how much moved. Stepped only. */
	uint32_t pass();
	/* Passes until nothing moves. */
	void settle();
	bool arm();

	/* Lets both ends of both links handle the messages of their cables. */
	void service();

private:
	struct port_emu_host *host_[3] = {};
};

/* A fragment that a node of a correct VI sends, or that came to it. */
struct Fragment {
	struct w_slot slot = {};	 /* complete except for the sequence */
	std::vector<uint8_t> in_payload; /* payload, when it lies in the payload buffer */
	uint32_t inline_bytes() const;
};

struct w_slot header(uint8_t op, uint8_t flags, uint32_t frag, uint32_t arg = 0);
/* A fragment of `frag` payload bytes from the generator, in the payload buffer or inline. */
Fragment fragment(std::mt19937 &rng, uint8_t op, uint8_t flags, uint32_t frag, uint32_t arg = 0,
		  uint32_t read_length = 0);

/* Fragments of random messages, as a correct sender makes them. */
class Stream {
public:
	explicit Stream(uint32_t start) : rng_(start) {}
	Fragment next();

private:
	std::mt19937 rng_;
	uint8_t op_ = 0, imm_ = 0;
	uint32_t left_ = 0;
};

/* One end of a circuit, played by the test. */
class Node {
public:
	struct port *port = nullptr;
	struct port_map in = {}, out = {}; /* its slice; the bypass buffer */
	uint32_t sent = 0, consumed = 0;
	uint64_t tx_cursor = 0, rx_cursor = 0;
	uint32_t ring_bits = 0; /* of the relay's thread */

	/* Stores the fragment; published when `seq` is stored. */
	void put(const Fragment &f);
	void send(const Fragment &f)
	{
		put(f);
		publish();
	}
	/* Stores any header as the next slot, payload bytes left as they are, and publishes it. */
	void send_raw(const struct w_slot &slot);
	void publish();
	bool room(const Fragment &f); /* is there room for it, by the credit that came? */
	void ring_if_due();	      /* after slots */
	void
	ring_surely(struct port *relay_port); /* even if doorbells are lost; for a stepped relay */
	/* Takes the next slot; false: none has come. */
	bool take(Fragment *f);
	bool has_come() const;
	void give_credit(uint32_t n);
	void give_credit_and_ring();
	void arm(uint32_t bits, uint32_t slot);
	void fail(uint64_t word);
	uint32_t credit() const;
	uint32_t notify() const;
	uint64_t error() const;
	bool rung(); /* since the last call */
	void scribble(size_t at, const void *bytes, size_t n);

private:
	const struct w_control *in_ctl() const { return static_cast<struct w_control *>(in.base); }
	struct w_control *out_ctl() { return static_cast<struct w_control *>(out.base); }
	struct w_slot *out_slot(uint32_t n);
	uint32_t rung_for_ = 0, credited_ = 0;
	/* positions in the payload buffer: after each slot; up to which it is free again */
	uint64_t ends_[kSlots] = {}, freed_ = 0;
	friend class Circuit;
};

class Circuit {
public:
	explicit Circuit(Rig &rig, unsigned int thread = 0);
	~Circuit();
	Circuit(const Circuit &) = delete;

	Rig &rig;
	Node node[2];
	struct rl_circuit *rl = nullptr;

	void remove(); /* from the relay */
	/* Sets all counters as if `n` slots had passed already; call it before the first slot. */
	void start_at(uint32_t n);
	/* Are the bytes after the slices unchanged? */
	bool guards_hold() const;

private:
	struct port_slice slice_[2][2] = {}; /* those of the relay, those of the nodes */
	struct port_map guard_[2][2] = {};   /* the owners' views of them */
};

/* Are both fragments equal? */
::testing::AssertionResult same(const Fragment &sent, const Fragment &came);

/* Waits for what a thread of the relay does. */
bool eventually(const std::function<bool()> &done);

} // namespace relay_test

#endif
