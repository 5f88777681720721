/* SPDX-License-Identifier: BSD-2-Clause */
/* Two ends of a link, with every kind of port: the conformance suite runs on them. */
#ifndef RIG_H
#define RIG_H

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

extern "C" {
#include "port_emu.h"
#include "port_fault.h"
#include "port_host.h"
#include "port_model.h"
#include "port_strict.h"
#include "u_time.h"
}

static const int64_t kSecond = 1000000000;
static const int64_t kPatience = 20 * kSecond; /* longer than a healthy test ever waits */

struct Variant {
	const char *base; /* "self": one port that is its own peer; "pair": two hosts, one cable */
	const char *kind;
	bool client; /* data goes through attached views, not the agent's ports */

	bool self() const { return std::string(base) == "self"; }
	/* Adapters of the machine, which VIADUCT_TEST_ADAPTERS names: "/dev/viaduct0,/dev/viaduct1". */
	bool cdev() const { return std::string(kind).compare(0, 4, "cdev") == 0; }
	/* Do stores and doorbells arrive some time after they were made, fenced or not? */
	bool late() const { return std::string(kind).find("model") != std::string::npos; }
	bool strict() const { return std::string(kind).find("strict") != std::string::npos; }
	std::string name() const;
};

std::ostream &operator<<(std::ostream &os, const Variant &v);
std::vector<Variant> all_variants();

class Rig {
public:
	struct Limits {
		uint32_t db_bits = 16;
		uint32_t spads = 8;
		uint64_t window_bytes = 1 << 20;
		uint32_t agent_bits = 0;
	};

	explicit Rig(const Variant &variant) : Rig(variant, Limits()) {}
	Rig(const Variant &variant, const Limits &limits, const char *faults = "",
	    uint64_t seed = 1);
	~Rig();
	Rig(const Rig &) = delete;
	Rig &operator=(const Rig &) = delete;

	/* Those of end 0 and end 1. */
	struct port *agent[2] = {};
	struct port *user[2] = {};
	struct port_irq *irq[2] = {};
	struct port_host *host[2] = {};

	/* One more view of an end, as another process of its host would attach it. */
	struct port *attach(int end, struct port_irq *with = nullptr);

	bool late() const { return variant.late(); }

	/* Services both agents until `done`; false when that never happens. */
	bool settle(const std::function<bool()> &done);
	bool settle_link(enum port_link state);

	/* Rings at the peer of user[0], and waits until it rang. */
	void ring(uint32_t bits);

	/* Plugs a fresh cable between the two ends. */
	void plug();

private:
	void make_end(int end, const Limits &limits, const char *faults, uint64_t seed);

	Variant variant;
	std::vector<struct port *> views;
	struct port *witness = nullptr; /* of end 1, whose doorbells are interrupts */
};

/* A slice of end 1 that end 0 may write, mapped at both. */
class Window {
public:
	Window(Rig &rig, size_t len);
	~Window();
	Window(const Window &) = delete;
	Window &operator=(const Window &) = delete;

	struct port_slice slice = {};
	struct port_map in = {};
	struct port_map out = {};

	uint8_t *in_bytes() { return static_cast<uint8_t *>(in.base); }
	uint8_t *out_bytes() { return static_cast<uint8_t *>(out.base); }
	uint32_t *out32(size_t off) { return reinterpret_cast<uint32_t *>(out_bytes() + off); }
	uint64_t *out64(size_t off) { return reinterpret_cast<uint64_t *>(out_bytes() + off); }
	uint32_t in32(size_t off);
	void store(size_t off, const void *src, size_t n)
	{
		u_out_copy(&out.out, out_bytes() + off, src, n);
	}
	void fence() { u_out_fence(&out.out); }
	/* Orders what was stored, and waits until the peer sees it. */
	void land();

private:
	Rig &rig;
	int out_fd = -1;
};

/* Has the thread `tid` of this process gone to sleep? */
bool is_asleep(int tid);

#endif
