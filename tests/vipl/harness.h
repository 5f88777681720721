/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fixture of the conformance tests.
 *
 * One process opens two NIC handles, side 0 and side 1, and drives both.  The
 * environment variable VIPL_TEST_HOSTS tells where: 1 puts both on one emulated
 * host, 2 on two neighbours joined by an emulated link, 4 on the opposite hosts of a ring of four,
 * which the other two relay for.  The fabric is private to the process and ends with it.
 *
 * Every case names the rule it checks: RULE("VIPL 5.2 ...").  The number of
 * cases is printed at the end.
 */
#ifndef VIPL_HARNESS_H
#define VIPL_HARNESS_H

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <vipl.h>
#include <vipl_ext.h>

#include "limit.h"

namespace conf {

/* Deadline of everything that must happen. */
inline const VIP_ULONG kWaitMs = 10000 * limit_factor();
constexpr size_t kArena = 4u << 20;

const char *rule_begin(const std::string &rule);
unsigned long rule_count();

#define CONF_CAT2(a, b) a##b
#define CONF_CAT(a, b) CONF_CAT2(a, b)
#define RULE(text)                                                                                 \
	::testing::ScopedTrace CONF_CAT(conf_rule, __LINE__)(__FILE__, __LINE__,                   \
							     ::conf::rule_begin(text))

int hosts();
int hops(); /* between the two sides */
/* May what was sent arrive after the send is done, as over relays and on ports that hold stores back? */
bool stores_may_wait();
bool adapters(); /* does an adapter lie between them?  Adopted memory never lies behind one */
const char *device(int side);
std::string fabric_name();

/* Runs this program again as `--child=MODE ARG`; see child.cc.  Returns its pid. */
pid_t spawn_child(const std::string &mode, const std::string &arg,
		  const std::vector<std::string> &env = {});
int child_main(const std::string &mode, const std::string &arg);
/* Exit code of a child, or -1 when a signal ended it. */
int child_wait(pid_t pid);

/* Polls until `good` or the deadline. */
bool eventually(const std::function<bool()> &good, unsigned long ms = kWaitMs);

std::string name_of(VIP_RETURN rc);
std::string status_text(VIP_ULONG status);

/* gtest prints the names of codes. */
#define EXPECT_RC(expected, call)                                                                  \
	EXPECT_EQ(::conf::name_of(expected), ::conf::name_of(call)) << #call << " "
#define ASSERT_RC(expected, call)                                                                  \
	ASSERT_EQ(::conf::name_of(expected), ::conf::name_of(call)) << #call << " "

struct Level {
	VIP_RELIABILITY_LEVEL value;
	const char *name;
	bool reliable() const { return value != VIP_SERVICE_UNRELIABLE; }
};
const std::vector<Level> &levels();

/* ---- NICs ---------------------------------------------------------------------------------- */

struct Nic {
	explicit Nic(int side);
	~Nic();
	Nic(const Nic &) = delete;
	/* Takes the first event of that code about that VI (NULL: any); waits for it. */
	bool wait_event(VIP_ERROR_CODE code, VIP_VI_HANDLE vi, VIP_ERROR_DESCRIPTOR *out = nullptr);
	size_t events(VIP_ERROR_CODE code, VIP_VI_HANDLE vi);
	void clear();

	VIP_NIC_HANDLE h = nullptr;
	VIP_NIC_ATTRIBUTES attrs{};
	int side;

private:
	static void handler(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error);
	std::mutex lock;
	std::condition_variable changed;
	std::vector<VIP_ERROR_DESCRIPTOR> list;
};

/* The NIC handles most tests share; opened once. */
Nic &nic(int side);
void close_shared_nics();

/* A NIC address with a discriminator. */
struct Addr {
	Addr(const Nic &nic, const std::string &disc);
	Addr(const std::string &host, const std::string &disc);
	operator VIP_NET_ADDRESS *() { return reinterpret_cast<VIP_NET_ADDRESS *>(room); }
	VIP_NET_ADDRESS *operator->() { return *this; }
	std::string host() const;
	std::string disc() const;
	alignas(8) unsigned char room[256];
};
std::string unique_disc();

/* ---- memory -------------------------------------------------------------------------------- */

constexpr size_t kGuard = 256;

/* Registered memory between two guards that are not registered. */
struct Mem {
	Mem(Nic &nic, size_t length, bool write = false, bool read = false,
	    VIP_PROTECTION_HANDLE ptag = nullptr, size_t offset = 0);
	~Mem();
	Mem(const Mem &) = delete;
	void deregister();
	bool guards_intact() const;
	Nic &owner;
	char *data;
	size_t length;
	VIP_MEM_HANDLE h = 0;

private:
	char *map;
	size_t map_length;
};

void fill(void *p, size_t length, uint64_t seed);
::testing::AssertionResult same(const void *p, size_t length, uint64_t seed);

struct Ptag {
	explicit Ptag(Nic &nic);
	~Ptag();
	Ptag(const Ptag &) = delete;
	operator VIP_PROTECTION_HANDLE() const { return h; }
	Nic &owner;
	VIP_PROTECTION_HANDLE h = nullptr;
};

struct Cq {
	explicit Cq(Nic &nic, VIP_ULONG entries = 64);
	~Cq();
	Cq(const Cq &) = delete;
	operator VIP_CQ_HANDLE() const { return h; }
	VIP_CQ_HANDLE h = nullptr;
};

/* ---- VIs ----------------------------------------------------------------------------------- */

VIP_VI_ATTRIBUTES vi_attrs(VIP_RELIABILITY_LEVEL level, size_t max_transfer = 1u << 20,
			   VIP_PROTECTION_HANDLE ptag = nullptr);

struct Vi {
	Vi(Nic &nic, const VIP_VI_ATTRIBUTES &attrs, VIP_CQ_HANDLE scq = nullptr,
	   VIP_CQ_HANDLE rcq = nullptr);
	~Vi(); /* disconnects, takes every descriptor, destroys */
	Vi(const Vi &) = delete;
	operator VIP_VI_HANDLE() const { return h; }
	VIP_VI_STATE state() const;
	bool reaches(VIP_VI_STATE state) const; /* waits for it */
	void drain();
	Nic &owner;
	VIP_VI_HANDLE h = nullptr;
	VIP_VI_ATTRIBUTES attrs;
};

/* Connects by client and server calls. */
void connect(Vi &client, Vi &server);
/* The server's part, when another process connects to this discriminator. */
void accept_one(Vi &server, const std::string &disc);
/* Connects a child, which then stops itself: a peer that takes nothing.  Returns its pid or -1. */
pid_t connect_stopped(Vi &server);

/* A VI brought into a state by public calls; keeps the objects that this needs. */
struct ViIn {
	ViIn(VIP_VI_STATE state, VIP_RELIABILITY_LEVEL level, VIP_CQ_HANDLE cq = nullptr);
	Vi &vi() { return *mine; }
	std::unique_ptr<Vi> mine, peer;
};
const char *state_name(VIP_VI_STATE state);
const std::vector<VIP_VI_STATE> &states();

/* ---- descriptors --------------------------------------------------------------------------- */

struct Seg {
	void *p;
	VIP_MEM_HANDLE h;
	size_t length;
};
struct Remote {
	void *p;
	VIP_MEM_HANDLE h;
};

/* Registered memory from which descriptors and small buffers are cut. */
struct Arena {
	explicit Arena(Nic &nic, VIP_PROTECTION_HANDLE ptag = nullptr, size_t length = kArena)
	    : mem(nic, length, false, false, ptag)
	{
	}
	VIP_DESCRIPTOR *desc(unsigned segs = 2);
	char *bytes(size_t length);
	Mem mem;
	size_t used = 0;
};

VIP_DESCRIPTOR *make(Arena &arena, VIP_UINT16 control, const std::vector<Seg> &segs,
		     const std::optional<Remote> &remote = std::nullopt, VIP_UINT32 imm = 0);

/* Looks at the Status of a descriptor that the library may still have. */
bool is_done(const VIP_DESCRIPTOR *desc);

/* Waits for the head of a queue without a CQ; the descriptor or NULL. */
VIP_DESCRIPTOR *take_send(VIP_VI_HANDLE vi, unsigned long ms = kWaitMs);
VIP_DESCRIPTOR *take_recv(VIP_VI_HANDLE vi, unsigned long ms = kWaitMs);

/* Has DONE and all bits of `bits`, and no other error bits. */
::testing::AssertionResult has_status(const VIP_DESCRIPTOR *desc, VIP_UINT32 bits);
/* Is done with at least one of these error bits. */
::testing::AssertionResult has_error(const VIP_DESCRIPTOR *desc, VIP_UINT32 any_of);

/* ---- two connected sides -------------------------------------------------------------------- */

struct LinkOptions {
	size_t max_transfer = 1u << 20;
	bool enable_write = true, enable_read = true; /* of side b's VI; read only where offered */
	bool with_ptags = false;		      /* both VIs and arenas have tags */
	VIP_CQ_HANDLE a_scq = nullptr, a_rcq = nullptr, b_scq = nullptr, b_rcq = nullptr;
	size_t arena = kArena;
	bool connected = true;
};

struct Link {
	explicit Link(VIP_RELIABILITY_LEVEL level, const LinkOptions &options = {});
	~Link();
	VIP_RELIABILITY_LEVEL level;
	Nic &na, &nb;
	std::unique_ptr<Ptag> ptag_a, ptag_b;
	Arena a, b;
	std::unique_ptr<Vi> va, vb;

	VIP_PROTECTION_HANDLE tag_a() const { return ptag_a ? ptag_a->h : nullptr; }
	VIP_PROTECTION_HANDLE tag_b() const { return ptag_b ? ptag_b->h : nullptr; }
	Seg seg_a(size_t length) { return { a.bytes(length), a.mem.h, length }; }
	Seg seg_b(size_t length) { return { b.bytes(length), b.mem.h, length }; }
	/* Posts a receive of `length` bytes at side b. */
	VIP_DESCRIPTOR *recv_b(size_t length);
	VIP_DESCRIPTOR *recv_a(size_t length);
	/* Posts on side a's send queue. */
	VIP_DESCRIPTOR *send_a(const std::vector<Seg> &segs, VIP_UINT16 flags = 0,
			       VIP_UINT32 imm = 0);
	VIP_DESCRIPTOR *write_a(const std::vector<Seg> &segs, const Remote &to,
				VIP_UINT16 flags = 0, VIP_UINT32 imm = 0);
	VIP_DESCRIPTOR *read_a(const std::vector<Seg> &segs, const Remote &from,
			       VIP_UINT16 flags = 0);
	void post_a(VIP_DESCRIPTOR *desc);
	void post_recv_b(VIP_DESCRIPTOR *desc);
	/* A message passes each way: the connection works. */
	::testing::AssertionResult works();
	/* Both VIs are in the error state. */
	::testing::AssertionResult broken();
	::testing::AssertionResult unbroken();
};

inline bool offers_read(const Level &level)
{
	return (nic(0).attrs.RDMAReadSupport & level.value) != 0;
}

} // namespace conf

#endif
