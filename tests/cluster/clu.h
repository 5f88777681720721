/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The base of the cluster tests: fabrics of agents as processes, programs as processes, a board of
 * counters that all of them see, and deadlines.
 *
 * A process of a test is this program again, with --child=ROLE; ROLE(name) defines
 * what it does.  Nothing here waits for time to pass: until() polls for an event with a
 * deadline, and Await ends the program when what it names takes too long.
 */
#ifndef CLU_H
#define CLU_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/types.h>

#include <vipl.h>
#include <vipl_ext.h>

#include "limit.h"
#include "standstill.h"

namespace clu {

/* ---- scale and time ------------------------------------------------------------------------ */

/* Use the full figures instead of the quick ones (CLUSTER_STRESS=1)? */
bool stress();
/* With a sanitizer?  It slows everything down, so less is done, and changes how memory grows. */
bool sanitized();
inline uint64_t scaled(uint64_t quick, uint64_t full)
{
	return stress() ? full : sanitized() ? (quick + 4) / 5 : quick;
}
int64_t now_ns();
std::string text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Fails the test, or the process of a role: where, what was expected. */
[[noreturn]] void fail(const char *file, int line, const std::string &what);
#define NEED(good) ((good) ? (void)0 : ::clu::fail(__FILE__, __LINE__, #good))
#define NEED_RC(expected, call) ::clu::need_rc(__FILE__, __LINE__, expected, call, #call)
void need_rc(const char *file, int line, VIP_RETURN expected, VIP_RETURN found, const char *call);

/* While it lives, the program must not take longer: it says what it awaited and aborts. */
class Await {
public:
	Await(const std::string &what, unsigned seconds);
	~Await();
	Await(const Await &) = delete;

private:
	uint64_t id;
};

constexpr unsigned kSeconds = 20; /* for one event */
/* Polls until `good`, giving the processor away; false at the deadline. */
bool until(const std::function<bool()> &good, unsigned ms = kSeconds * 1000);
/* Keeps the processor busy for about `ns`. */
void compute(int64_t ns);

/* Reproducible; the seed is printed once and comes from CLUSTER_SEED if that is set. */
class Random {
public:
	explicit Random(uint64_t stream);
	uint64_t next();
	uint64_t below(uint64_t n) { return next() % n; }

private:
	uint64_t state;
};

/* ---- the board: memory that the test and its processes share -------------------------------- */

constexpr size_t kCells = 1u << 17;
std::atomic<uint64_t> &cell(size_t i);
void board_clear();
/* Takes two cells. */
Standstill::Record &standstill(size_t i);
/*
 * Watches the first `most` of the processors that this process may use, from cell `first` on, until the result is
 * destroyed.
 */
std::vector<std::unique_ptr<Standstill>> watch_processors(size_t first, size_t most);
/* Nanoseconds so far of `count` records from cell `first` on; those that nobody has written count as 0. */
int64_t stood_still(size_t first, size_t count);

/* ---- processes ------------------------------------------------------------------------------ */

using Args = std::vector<std::string>;
using Env = std::map<std::string, std::string>;

struct Role {
	Role(const char *name, void (*run)(const Args &));
};
#define ROLE(name)                                                                                 \
	static void role_##name(const ::clu::Args &args);                                          \
	static ::clu::Role register_##name(#name, role_##name);                                    \
	static void role_##name([[maybe_unused]] const ::clu::Args &args)

/* A child of this process; killed and waited for at the latest in the destructor. */
class Process {
public:
	Process() = default;
	Process(const std::string &program, const Args &args, const Env &env = {},
		uint64_t fd_limit = 0);
	Process(Process &&other) noexcept { *this = std::move(other); }
	Process &operator=(Process &&other) noexcept;
	~Process();
	/* Exit code, or 128 + signal; fails at the deadline. */
	int wait(unsigned seconds = kSeconds);
	bool ended(); /* and was waited for */
	void kill(int sig);
	/* By SIGSTOP; returns when no thread of it runs any more. */
	void stop();
	pid_t pid() const { return id; }

private:
	pid_t id = -1;
	int status = -1;
};
Process role(const std::string &name, const Args &args, const Env &env = {}, uint64_t fd_limit = 0);

size_t fd_count(pid_t pid);
/*
 * The least number of its descriptors within 30 ms: those of a connection that is just ending do
 * not count.
 */
size_t quiet_fds(pid_t pid);
uint64_t rss_bytes(pid_t pid);
/* Its memory that is not mapped from the files of programs and libraries. */
uint64_t own_memory(pid_t pid);
/* Processor time of all threads of a process so far. */
int64_t cpu_ns(pid_t pid);
/* The number of times that its threads went to sleep so far, and of threads that run or want to. */
int64_t sleeps(pid_t pid);
size_t awake(pid_t pid);
/* The time for which its threads could have run and had no processor. */
int64_t delay_ns(pid_t pid);
/* The number of times that a thread of it waited for memory to be read from a disk. */
uint64_t disk_faults(pid_t pid);

/*
 * The state of each thread of a process; if a debugger is installed also the stacks, and the values
 * of variables.
 */
std::string stacks(pid_t pid, const Args &variables = {});

/* ---- fabrics -------------------------------------------------------------------------------- */

/* Agents of `hosts` hosts joined in a ring; a private name, nothing left behind. */
class Fabric {
public:
	explicit Fabric(unsigned hosts, const Args &agent_args = {}, uint64_t agent_fd_limit = 0,
			const Env &agent_env = {});
	~Fabric(); /* stop() and left_behind() must be empty */
	Fabric(const Fabric &) = delete;
	void stop();
	/* Sockets, processes and shared memory with the fabric's name. */
	std::string left_behind() const;
	Process &agent(unsigned host) { return agents.at(host); }
	/* Kills the agent of a host, without a word. */
	void kill(unsigned host);
	/* Starts another in place of one that was killed. */
	void restart(unsigned host);
	unsigned size() const { return static_cast<unsigned>(agents.size()); }
	/* Asks the agents; `all` adds up over ports. */
	uint64_t window_used(unsigned host) const;
	unsigned connections(unsigned host) const;
	unsigned clients(unsigned host) const;
	bool links_up() const;
	/* Waits until all are; fails, after it has printed what the agents tell and do, if that takes too long. */
	void await_links() const;
	void link(unsigned host, const std::string &port, bool up) const;
	/* The report of the agent of a host about its ports, its clients and its relay. */
	std::string report(unsigned host) const;
	const std::string name;

private:
	std::vector<std::string> list(unsigned host, int what) const;
	Args arguments(unsigned host) const;
	const Args agent_args;
	const uint64_t agent_fd_limit;
	const Env agent_env;
	const unsigned hosts;
	std::vector<Process> agents;
};
/*
 * Does a thread of a process wait inside the kernel, for one of the kernel's own locks?  Threads of the kernel
 * that go through all memory (kdamond, migration) hold locks that every change of a mapping needs, and
 * may get no processor for seconds where programs yield in a loop (Linux 6.18).
 */
bool kernel_holds(pid_t pid);
/* The agents that serve a fabric, whoever started them. */
std::vector<pid_t> agents_of(const std::string &fabric);
/* The number that a JSON object in one line has under this key. */
uint64_t json_number(const std::string &object, const std::string &key);

/* ---- VIPL ----------------------------------------------------------------------------------- */

struct Event {
	VIP_ERROR_DESCRIPTOR what;
	int64_t at;
};

class Nic {
public:
	explicit Nic(const std::string &device = "nic0");
	~Nic();
	Nic(const Nic &) = delete;
	operator VIP_NIC_HANDLE() const { return h; }
	void close(); /* must succeed */
	/* Waits for an event about `vi` (NULL: any) with this code; takes it. */
	bool event(VIP_ERROR_CODE code, VIP_VI_HANDLE vi = nullptr, unsigned ms = kSeconds * 1000);
	size_t count(VIP_ERROR_CODE code);
	int64_t first_event_at(); /* 0: none so far */
	VIPX_COUNTERS counters(VIP_VI_HANDLE vi = nullptr) const;
	VIP_NIC_HANDLE h = nullptr;
	VIP_NIC_ATTRIBUTES attrs{};

private:
	static void handler(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error);
	std::mutex lock;
	std::condition_variable changed;
	std::deque<Event> events;
};

struct Addr {
	Addr(const Nic &nic, const std::string &disc);
	Addr(unsigned host, const std::string &disc);
	operator VIP_NET_ADDRESS *() { return reinterpret_cast<VIP_NET_ADDRESS *>(room); }
	alignas(8) unsigned char room[160];
};

/* `count` descriptors, each with `bytes` of data, in one registered region. */
class Slab {
public:
	Slab(Nic &nic, size_t count, size_t bytes, bool rdma = false);
	~Slab();
	Slab(const Slab &) = delete;
	VIP_DESCRIPTOR *desc(size_t i) { return reinterpret_cast<VIP_DESCRIPTOR *>(base + i * 64); }
	char *data(size_t i) { return base + count * 64 + i * bytes; }
	size_t index(const VIP_DESCRIPTOR *d) const
	{
		return static_cast<size_t>(reinterpret_cast<const char *>(d) - base) / 64;
	}
	VIP_DESCRIPTOR *fill(size_t i, size_t length, VIP_UINT16 control = VIP_CONTROL_OP_SENDRECV);
	VIP_DESCRIPTOR *fill_rdma(size_t i, size_t length, VIP_UINT16 control, uint64_t address,
				  VIP_MEM_HANDLE handle);
	const size_t count, bytes;
	VIP_MEM_HANDLE h = 0;

private:
	Nic &nic;
	char *base;
	size_t room;
};

VIP_VI_ATTRIBUTES attrs(VIP_RELIABILITY_LEVEL level, size_t max_transfer = 1u << 17,
			bool rdma = false);

class Vi {
public:
	Vi(Nic &nic, const VIP_VI_ATTRIBUTES &attrs, VIP_CQ_HANDLE send = nullptr,
	   VIP_CQ_HANDLE recv = nullptr);
	~Vi();
	Vi(const Vi &) = delete;
	operator VIP_VI_HANDLE() const { return h; }
	VIP_VI_STATE state() const;
	void disconnect(); /* and takes every descriptor */
	void destroy();	   /* must succeed */
	VIP_VI_HANDLE h = nullptr;
};

void post_send(VIP_VI_HANDLE vi, Slab &slab, VIP_DESCRIPTOR *d);
void post_recv(VIP_VI_HANDLE vi, Slab &slab, VIP_DESCRIPTOR *d);
/* Waits for the head of a queue without CQ; it must be good. */
VIP_DESCRIPTOR *sent(VIP_VI_HANDLE vi);
VIP_DESCRIPTOR *received(VIP_VI_HANDLE vi);

/* Client and server calls; both try again until their partner is there. */
VIP_RETURN request(Nic &nic, Vi &vi, unsigned host, const std::string &disc,
		   unsigned seconds = kSeconds);
VIP_RETURN serve(Nic &nic, Vi &vi, const std::string &disc, unsigned seconds = kSeconds);
/* Two VIs of one process, peer to peer. */
VIP_RETURN join(Nic &na, Vi &a, Nic &nb, Vi &b, const std::string &disc,
		unsigned ms = kSeconds * 1000);

} // namespace clu

#endif
