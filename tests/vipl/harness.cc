/* SPDX-License-Identifier: BSD-2-Clause */
#include "harness.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace conf {

using Clock = std::chrono::steady_clock;

/* ---- rules --------------------------------------------------------------------------------- */

static std::mutex rules_lock;
static std::set<std::string> rules;
static unsigned long cases;

const char *rule_begin(const std::string &rule)
{
	std::lock_guard<std::mutex> guard(rules_lock);
	cases++;
	return rules.insert(rule).first->c_str();
}

unsigned long rule_count()
{
	std::lock_guard<std::mutex> guard(rules_lock);
	return cases;
}

/* ---- the fabric ---------------------------------------------------------------------------- */

int hosts()
{
	const char *text = getenv("VIPL_TEST_HOSTS");
	int n = text ? atoi(text) : 1;
	return n == 2 || n == 4 ? n : 1;
}

int hops()
{
	return hosts() / 2;
}

bool stores_may_wait()
{
	const char *kind = getenv("VIADUCT_PORT");

	return hops() > 1 || (hops() > 0 && kind != nullptr && strstr(kind, "fault") != nullptr);
}

bool adapters()
{
	const char *kind = getenv("VIADUCT_PORT");

	return hops() > 0 && kind != nullptr && strncmp(kind, "cdev", 4) == 0;
}

const char *device(int side)
{
	if (hosts() == 1)
		return "nic0";
	if (hosts() == 2)
		return side ? "host1" : "host0";
	return side ? "host2" : "host0";
}

std::string fabric_name()
{
	const char *name = getenv("VIADUCT_FABRIC");
	return name ? name : "";
}

int child_wait(pid_t pid)
{
	int status = 0;
	if (pid <= 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static pid_t run(const std::string &program, std::vector<std::string> args,
		 const std::vector<std::string> &env)
{
	std::vector<char *> argv, envp;
	args.insert(args.begin(), program);
	for (auto &arg : args)
		argv.push_back(const_cast<char *>(arg.c_str()));
	argv.push_back(nullptr);
	for (char **e = environ; *e; e++) {
		std::string name(*e, strcspn(*e, "=") + 1);
		bool replaced = false;
		for (auto &given : env)
			replaced |= given.compare(0, name.size(), name) == 0;
		if (!replaced)
			envp.push_back(*e);
	}
	for (auto &given : env)
		envp.push_back(const_cast<char *>(given.c_str()));
	envp.push_back(nullptr);
	pid_t pid = -1;
	if (posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv.data(), envp.data()))
		return -1;
	return pid;
}

pid_t spawn_child(const std::string &mode, const std::string &arg,
		  const std::vector<std::string> &env)
{
	return run("/proc/self/exe", { "--child=" + mode, arg }, env);
}

/* `vi_fabric up --foreground`, which takes the fabric down when it, or this process, ends. */
static pid_t fabric_up()
{
	const char *tool = getenv("VI_FABRIC");
	char line[200];
	int out[2];
	if (!tool || pipe2(out, O_CLOEXEC)) {
		fprintf(stderr,
			"VI_FABRIC sought in the environment, the path of vi_fabric; use meson test\n");
		return -1;
	}
	pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(out[1], STDOUT_FILENO);
		if (getppid() == parent)
			execl(tool, tool, "up", "--hosts", getenv("VIPL_TEST_HOSTS"),
			      "--foreground", static_cast<char *>(nullptr));
		_exit(127);
	}
	close(out[1]);
	bool up = pid > 0 && read(out[0], line, sizeof(line)) > 0;
	close(out[0]);
	return up ? pid : -1;
}

class Fabric : public ::testing::Environment {
public:
	void SetUp() override
	{
		if (hosts() > 1) {
			ASSERT_GT(pid = fabric_up(), 0);
		}
	}
	void TearDown() override
	{
		close_shared_nics();
		if (pid > 0) {
			kill(pid, SIGTERM);
			EXPECT_EQ(0, child_wait(pid));
		}
		printf("conformance: %lu cases of %zu rules\n", rule_count(), rules.size());
	}

private:
	pid_t pid = -1;
};

/* ---- small things --------------------------------------------------------------------------- */

bool eventually(const std::function<bool()> &good, unsigned long ms)
{
	auto end = Clock::now() + std::chrono::milliseconds(ms);
	while (!good()) {
		if (Clock::now() > end)
			return good();
		std::this_thread::yield();
	}
	return true;
}

std::string name_of(VIP_RETURN rc)
{
	return VipxErrorString(rc);
}

std::string status_text(VIP_ULONG status)
{
	char text[200] = "";
	VipxStatusString(status, text, sizeof(text));
	return text;
}

const std::vector<Level> &levels()
{
	static const std::vector<Level> all = {
		{ VIP_SERVICE_UNRELIABLE, "unreliable" },
		{ VIP_SERVICE_RELIABLE_DELIVERY, "reliable delivery" },
		{ VIP_SERVICE_RELIABLE_RECEPTION, "reliable reception" },
	};
	return all;
}

const std::vector<VIP_VI_STATE> &states()
{
	static const std::vector<VIP_VI_STATE> all = { VIP_STATE_IDLE, VIP_STATE_CONNECT_PENDING,
						       VIP_STATE_CONNECTED, VIP_STATE_ERROR };
	return all;
}

const char *state_name(VIP_VI_STATE state)
{
	switch (state) {
	case VIP_STATE_IDLE:
		return "Idle";
	case VIP_STATE_CONNECTED:
		return "Connected";
	case VIP_STATE_CONNECT_PENDING:
		return "Connect Pending";
	case VIP_STATE_ERROR:
		return "Error";
	}
	return "unknown";
}

/* ---- NICs ---------------------------------------------------------------------------------- */

Nic::Nic(int s) : side(s)
{
	EXPECT_RC(VIP_SUCCESS, VipOpenNic(device(side), &h));
	EXPECT_RC(VIP_SUCCESS, VipQueryNic(h, &attrs));
	EXPECT_RC(VIP_SUCCESS, VipErrorCallback(h, this, handler));
}

Nic::~Nic()
{
	EXPECT_RC(VIP_SUCCESS, VipCloseNic(h));
}

void Nic::handler(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	Nic *self = static_cast<Nic *>(context);
	std::lock_guard<std::mutex> guard(self->lock);
	self->list.push_back(*error);
	self->changed.notify_all();
}

bool Nic::wait_event(VIP_ERROR_CODE code, VIP_VI_HANDLE vi, VIP_ERROR_DESCRIPTOR *out)
{
	std::unique_lock<std::mutex> guard(lock);
	auto end = Clock::now() + std::chrono::milliseconds(kWaitMs);
	for (;;) {
		for (auto it = list.begin(); it != list.end(); ++it) {
			if (it->ErrorCode != code || (vi && it->ViHandle != vi))
				continue;
			if (out)
				*out = *it;
			list.erase(it);
			return true;
		}
		if (changed.wait_until(guard, end) == std::cv_status::timeout)
			return false;
	}
}

size_t Nic::events(VIP_ERROR_CODE code, VIP_VI_HANDLE vi)
{
	std::lock_guard<std::mutex> guard(lock);
	size_t n = 0;
	for (auto &e : list)
		n += e.ErrorCode == code && (!vi || e.ViHandle == vi);
	return n;
}

void Nic::clear()
{
	std::lock_guard<std::mutex> guard(lock);
	list.clear();
}

static std::unique_ptr<Nic> shared[2];

Nic &nic(int side)
{
	if (!shared[side])
		shared[side] = std::make_unique<Nic>(side);
	return *shared[side];
}

void close_shared_nics()
{
	shared[0].reset();
	shared[1].reset();
}

Addr::Addr(const Nic &n, const std::string &disc)
    : Addr(std::string(reinterpret_cast<const char *>(n.attrs.LocalNicAddress),
		       n.attrs.NicAddressLen),
	   disc)
{
}

Addr::Addr(const std::string &host, const std::string &disc)
{
	VIP_NET_ADDRESS *p = *this;
	memset(room, 0, sizeof(room));
	p->HostAddressLen = static_cast<VIP_UINT16>(host.size());
	p->DiscriminatorLen = static_cast<VIP_UINT16>(disc.size());
	size_t at = offsetof(VIP_NET_ADDRESS, HostAddress);
	memcpy(room + at, host.data(), host.size());
	memcpy(room + at + host.size(), disc.data(), disc.size());
}

std::string Addr::host() const
{
	auto *p = reinterpret_cast<const VIP_NET_ADDRESS *>(room);
	return { reinterpret_cast<const char *>(p->HostAddress), p->HostAddressLen };
}

std::string Addr::disc() const
{
	auto *p = reinterpret_cast<const VIP_NET_ADDRESS *>(room);
	return { reinterpret_cast<const char *>(p->HostAddress) + p->HostAddressLen,
		 p->DiscriminatorLen };
}

std::string unique_disc()
{
	static std::atomic<unsigned> next{ 1 };
	return "t" + std::to_string(next++);
}

/* ---- memory -------------------------------------------------------------------------------- */

static constexpr unsigned char kGuardByte = 0xa5;

Mem::Mem(Nic &n, size_t len, bool write, bool read, VIP_PROTECTION_HANDLE ptag, size_t offset)
    : owner(n), length(len)
{
	VIP_MEM_ATTRIBUTES attrs = { ptag, write, read };
	map_length = length + offset + 4096 + kGuard;
	map = static_cast<char *>(mmap(nullptr, map_length, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	EXPECT_NE(MAP_FAILED, static_cast<void *>(map));
	data = map + 4096 + offset;
	memset(data - kGuard, kGuardByte, kGuard);
	memset(data + length, kGuardByte, kGuard);
	EXPECT_RC(VIP_SUCCESS, VipRegisterMem(owner.h, data, length, &attrs, &h));
}

void Mem::deregister()
{
	if (h)
		EXPECT_RC(VIP_SUCCESS, VipDeregisterMem(owner.h, data, h));
	h = 0;
}

Mem::~Mem()
{
	deregister();
	EXPECT_TRUE(guards_intact()) << "bytes outside the registered region changed";
	munmap(map, map_length);
}

bool Mem::guards_intact() const
{
	for (size_t i = 0; i < kGuard; i++)
		if (static_cast<unsigned char>(data[length + i]) != kGuardByte ||
		    static_cast<unsigned char>(data[-1 - static_cast<ptrdiff_t>(i)]) != kGuardByte)
			return false;
	return true;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	return x ^ (x >> 29);
}

void fill(void *p, size_t length, uint64_t seed)
{
	char *at = static_cast<char *>(p);
	for (uint64_t i = 0; length; i++) {
		uint64_t word = mix(seed * 0x9e3779b97f4a7c15u + i);
		size_t n = length < 8 ? length : 8;
		memcpy(at, &word, n);
		at += n;
		length -= n;
	}
}

::testing::AssertionResult same(const void *p, size_t length, uint64_t seed)
{
	const char *at = static_cast<const char *>(p);
	size_t whole = length;
	for (uint64_t i = 0; length; i++) {
		uint64_t word = mix(seed * 0x9e3779b97f4a7c15u + i);
		size_t n = length < 8 ? length : 8;
		if (memcmp(at, &word, n))
			return ::testing::AssertionFailure()
			       << "content differs within 8 bytes of offset " << whole - length
			       << " of " << whole;
		at += n;
		length -= n;
	}
	return ::testing::AssertionSuccess();
}

Ptag::Ptag(Nic &n) : owner(n)
{
	EXPECT_RC(VIP_SUCCESS, VipCreatePtag(owner.h, &h));
}

Ptag::~Ptag()
{
	EXPECT_RC(VIP_SUCCESS, VipDestroyPtag(owner.h, h));
}

Cq::Cq(Nic &n, VIP_ULONG entries)
{
	EXPECT_RC(VIP_SUCCESS, VipCreateCQ(n.h, entries, &h));
}

Cq::~Cq()
{
	EXPECT_RC(VIP_SUCCESS, VipDestroyCQ(h));
}

/* ---- VIs ----------------------------------------------------------------------------------- */

VIP_VI_ATTRIBUTES vi_attrs(VIP_RELIABILITY_LEVEL level, size_t max_transfer,
			   VIP_PROTECTION_HANDLE ptag)
{
	VIP_VI_ATTRIBUTES attrs{};
	attrs.ReliabilityLevel = level;
	attrs.MaxTransferSize = max_transfer;
	attrs.Ptag = ptag;
	return attrs;
}

Vi::Vi(Nic &n, const VIP_VI_ATTRIBUTES &a, VIP_CQ_HANDLE scq, VIP_CQ_HANDLE rcq)
    : owner(n), attrs(a)
{
	EXPECT_RC(VIP_SUCCESS, VipCreateVi(owner.h, &attrs, scq, rcq, &h));
}

void Vi::drain()
{
	VIP_DESCRIPTOR *desc;
	do {
		VipSendDone(h, &desc);
	} while (desc);
	do {
		VipRecvDone(h, &desc);
	} while (desc);
}

Vi::~Vi()
{
	EXPECT_RC(VIP_SUCCESS, VipDisconnect(h));
	drain();
	EXPECT_RC(VIP_SUCCESS, VipDestroyVi(h));
}

VIP_VI_STATE Vi::state() const
{
	VIP_VI_STATE state = VIP_STATE_ERROR;
	VIP_VI_ATTRIBUTES a;
	VIP_BOOLEAN s, r;
	EXPECT_RC(VIP_SUCCESS, VipQueryVi(h, &state, &a, &s, &r));
	return state;
}

bool Vi::reaches(VIP_VI_STATE wanted) const
{
	return eventually([&] { return state() == wanted; });
}

void connect(Vi &client, Vi &server)
{
	Addr local(client.owner, "client"), remote(server.owner, unique_disc()),
		from(client.owner, "");
	VIP_VI_ATTRIBUTES seen{}, theirs{};
	VIP_CONN_HANDLE conn = nullptr;
	VIP_RETURN accepted = VIP_TIMEOUT, rc;

	std::thread waiter([&] {
		Addr here = remote;
		accepted = VipConnectWait(server.owner.h, here, kWaitMs, from, &seen, &conn);
		if (accepted == VIP_SUCCESS)
			accepted = VipConnectAccept(conn, server);
	});
	eventually([&] {
		rc = VipConnectRequest(client, local, remote, kWaitMs, &theirs);
		return rc != VIP_NO_MATCH;
	});
	waiter.join();
	EXPECT_RC(VIP_SUCCESS, rc);
	EXPECT_RC(VIP_SUCCESS, accepted);
}

void accept_one(Vi &server, const std::string &disc)
{
	Addr local(server.owner, disc), from(server.owner, "");
	VIP_VI_ATTRIBUTES seen;
	VIP_CONN_HANDLE conn = nullptr;

	EXPECT_RC(VIP_SUCCESS, VipConnectWait(server.owner.h, local, kWaitMs, from, &seen, &conn));
	EXPECT_RC(VIP_SUCCESS, VipConnectAccept(conn, server));
}

pid_t connect_stopped(Vi &server)
{
	std::string disc = unique_disc();
	pid_t pid = spawn_child("connect-and-stop",
				std::to_string(server.attrs.ReliabilityLevel) + ":" + disc);
	int status = 0;

	if (pid <= 0)
		return -1;
	accept_one(server, disc);
	EXPECT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	EXPECT_TRUE(WIFSTOPPED(status)) << status;
	return pid;
}

ViIn::ViIn(VIP_VI_STATE state, VIP_RELIABILITY_LEVEL level, VIP_CQ_HANDLE cq)
{
	mine = std::make_unique<Vi>(nic(0), vi_attrs(level), cq, cq);
	if (state == VIP_STATE_CONNECT_PENDING) {
		Addr local(nic(0), unique_disc()), remote(nic(1), unique_disc());
		EXPECT_RC(VIP_SUCCESS, VipConnectPeerRequest(*mine, local, remote, VIP_INFINITE));
	} else if (state != VIP_STATE_IDLE) {
		peer = std::make_unique<Vi>(nic(1), vi_attrs(level));
		connect(*mine, *peer);
	}
	if (state == VIP_STATE_ERROR)
		EXPECT_RC(VIP_SUCCESS, VipDisconnect(*peer));
	EXPECT_TRUE(mine->reaches(state))
		<< "VIPL 6: bringing a VI into state " << state_name(state);
}

/* ---- descriptors --------------------------------------------------------------------------- */

VIP_DESCRIPTOR *Arena::desc(unsigned segs)
{
	used = (used + 63) & ~static_cast<size_t>(63);
	size_t length = 32 + 16 * static_cast<size_t>(segs < 2 ? 2 : segs);
	char *p = bytes(length);
	memset(p, 0, length);
	return reinterpret_cast<VIP_DESCRIPTOR *>(p);
}

char *Arena::bytes(size_t length)
{
	if (used + length > mem.length) {
		ADD_FAILURE() << "the arena of the test is too small";
		abort();
	}
	char *p = mem.data + used;
	used += length;
	return p;
}

VIP_DESCRIPTOR *make(Arena &arena, VIP_UINT16 control, const std::vector<Seg> &segs,
		     const std::optional<Remote> &remote, VIP_UINT32 imm)
{
	unsigned count = static_cast<unsigned>(segs.size()) + (remote ? 1 : 0), i = 0;
	VIP_DESCRIPTOR *desc = arena.desc(count);
	VIP_DESCRIPTOR_SEGMENT *seg = desc->DS;
	desc->CS.SegCount = static_cast<VIP_UINT16>(count);
	desc->CS.Control = control;
	desc->CS.ImmediateData = imm;
	if (remote) {
		seg[i].Remote.Data.AddressBits = reinterpret_cast<uintptr_t>(remote->p);
		seg[i].Remote.Handle = remote->h;
		i++;
	}
	for (auto &s : segs) {
		seg[i].Local.Data.AddressBits = reinterpret_cast<uintptr_t>(s.p);
		seg[i].Local.Handle = s.h;
		seg[i].Local.Length = static_cast<VIP_UINT32>(s.length);
		desc->CS.Length += static_cast<VIP_UINT32>(s.length);
		i++;
	}
	return desc;
}

bool is_done(const VIP_DESCRIPTOR *desc)
{
	return (__atomic_load_n(&desc->CS.Status, __ATOMIC_ACQUIRE) & VIP_STATUS_DONE) != 0;
}

VIP_DESCRIPTOR *take_send(VIP_VI_HANDLE vi, unsigned long ms)
{
	VIP_DESCRIPTOR *desc = nullptr;
	VipSendWait(vi, ms, &desc);
	return desc;
}

VIP_DESCRIPTOR *take_recv(VIP_VI_HANDLE vi, unsigned long ms)
{
	VIP_DESCRIPTOR *desc = nullptr;
	VipRecvWait(vi, ms, &desc);
	return desc;
}

::testing::AssertionResult has_status(const VIP_DESCRIPTOR *desc, VIP_UINT32 bits)
{
	if (!desc)
		return ::testing::AssertionFailure() << "no descriptor completed";
	if (desc->CS.Status == (bits | VIP_STATUS_DONE))
		return ::testing::AssertionSuccess();
	return ::testing::AssertionFailure()
	       << "Status " << status_text(desc->CS.Status) << ", expected "
	       << status_text(bits | VIP_STATUS_DONE);
}

::testing::AssertionResult has_error(const VIP_DESCRIPTOR *desc, VIP_UINT32 any_of)
{
	if (!desc)
		return ::testing::AssertionFailure() << "no descriptor completed";
	if ((desc->CS.Status & VIP_STATUS_DONE) && (desc->CS.Status & any_of))
		return ::testing::AssertionSuccess();
	return ::testing::AssertionFailure() << "Status " << status_text(desc->CS.Status)
					     << ", expected one of " << status_text(any_of);
}

/* ---- links --------------------------------------------------------------------------------- */

Link::Link(VIP_RELIABILITY_LEVEL l, const LinkOptions &o)
    : level(l), na(nic(0)), nb(nic(1)), ptag_a(o.with_ptags ? new Ptag(na) : nullptr),
      ptag_b(o.with_ptags ? new Ptag(nb) : nullptr), a(na, tag_a(), o.arena),
      b(nb, tag_b(), o.arena)
{
	bool read = (na.attrs.RDMAReadSupport & level) != 0;
	VIP_VI_ATTRIBUTES at = vi_attrs(level, o.max_transfer, tag_a());
	VIP_VI_ATTRIBUTES bt = vi_attrs(level, o.max_transfer, tag_b());
	at.EnableRdmaWrite = VIP_TRUE;
	at.EnableRdmaRead = read;
	bt.EnableRdmaWrite = o.enable_write;
	bt.EnableRdmaRead = o.enable_read && read;
	na.clear();
	nb.clear();
	va = std::make_unique<Vi>(na, at, o.a_scq, o.a_rcq);
	vb = std::make_unique<Vi>(nb, bt, o.b_scq, o.b_rcq);
	if (o.connected)
		connect(*va, *vb);
}

Link::~Link() = default;

VIP_DESCRIPTOR *Link::recv_b(size_t length)
{
	VIP_DESCRIPTOR *desc = make(b, VIP_CONTROL_OP_SENDRECV, { seg_b(length) });
	EXPECT_RC(VIP_SUCCESS, VipPostRecv(*vb, desc, b.mem.h));
	return desc;
}

VIP_DESCRIPTOR *Link::recv_a(size_t length)
{
	VIP_DESCRIPTOR *desc = make(a, VIP_CONTROL_OP_SENDRECV, { seg_a(length) });
	EXPECT_RC(VIP_SUCCESS, VipPostRecv(*va, desc, a.mem.h));
	return desc;
}

void Link::post_a(VIP_DESCRIPTOR *desc)
{
	EXPECT_RC(VIP_SUCCESS, VipPostSend(*va, desc, a.mem.h));
}

void Link::post_recv_b(VIP_DESCRIPTOR *desc)
{
	EXPECT_RC(VIP_SUCCESS, VipPostRecv(*vb, desc, b.mem.h));
}

VIP_DESCRIPTOR *Link::send_a(const std::vector<Seg> &segs, VIP_UINT16 flags, VIP_UINT32 imm)
{
	VIP_DESCRIPTOR *desc = make(a, VIP_CONTROL_OP_SENDRECV | flags, segs, std::nullopt, imm);
	post_a(desc);
	return desc;
}

VIP_DESCRIPTOR *Link::write_a(const std::vector<Seg> &segs, const Remote &to, VIP_UINT16 flags,
			      VIP_UINT32 imm)
{
	VIP_DESCRIPTOR *desc = make(a, VIP_CONTROL_OP_RDMAWRITE | flags, segs, to, imm);
	post_a(desc);
	return desc;
}

VIP_DESCRIPTOR *Link::read_a(const std::vector<Seg> &segs, const Remote &from, VIP_UINT16 flags)
{
	VIP_DESCRIPTOR *desc = make(a, VIP_CONTROL_OP_RDMAREAD | flags, segs, from);
	post_a(desc);
	return desc;
}

::testing::AssertionResult Link::works()
{
	size_t n = va->attrs.MaxTransferSize < 16 ? va->attrs.MaxTransferSize : 16;
	VIP_DESCRIPTOR *ra = recv_a(n), *rb = recv_b(n);
	Seg out_a = seg_a(n), out_b = seg_b(n);
	fill(out_a.p, n, 1);
	fill(out_b.p, n, 2);
	VIP_DESCRIPTOR *sa = send_a({ out_a });
	VIP_DESCRIPTOR *sb = make(b, VIP_CONTROL_OP_SENDRECV, { out_b });
	EXPECT_RC(VIP_SUCCESS, VipPostSend(*vb, sb, b.mem.h));
	if (take_recv(*vb) != rb || take_recv(*va) != ra || take_send(*va) != sa ||
	    take_send(*vb) != sb)
		return ::testing::AssertionFailure() << "a message did not pass";
	if (auto ok = same(rb->DS[0].Local.Data.Address, n, 1); !ok)
		return ok;
	return same(ra->DS[0].Local.Data.Address, n, 2);
}

::testing::AssertionResult Link::broken()
{
	if (va->reaches(VIP_STATE_ERROR) && vb->reaches(VIP_STATE_ERROR))
		return ::testing::AssertionSuccess();
	return ::testing::AssertionFailure()
	       << "the connection should be broken: this side is " << state_name(va->state())
	       << ", the peer " << state_name(vb->state());
}

::testing::AssertionResult Link::unbroken()
{
	if (va->state() == VIP_STATE_CONNECTED && vb->state() == VIP_STATE_CONNECTED)
		return works();
	return ::testing::AssertionFailure()
	       << "the connection should hold: this side is " << state_name(va->state())
	       << ", the peer " << state_name(vb->state());
}

} // namespace conf

extern "C" const char *__tsan_default_suppressions();

/*
 * Both sides live in this process, but each publishes to the other through
 * slices that are mapped twice, at two addresses.  The thread sanitizer does
 * not see that order, so copies of payload look like races with a thread that
 * fills a buffer before the post or reads it after the completion.
 */
extern "C" const char *__tsan_default_suppressions()
{
	return "race:u_copy_last_last\nrace:place_write\nrace:payload_copy\nrace:scatter\n"
	       "race:gather\nrace:u_out_copy\nrace:conf::fill\nrace:conf::same\n"
	       "race:operate32\nrace:operate64\n";
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strncmp(argv[1], "--child=", 8))
		return conf::child_main(argv[1] + 8, argv[2]);
	setenv("VIADUCT_FABRIC", ("vipl-test-" + std::to_string(getpid())).c_str(), 1);
	::testing::InitGoogleTest(&argc, argv);
	::testing::AddGlobalTestEnvironment(new conf::Fabric);
	return RUN_ALL_TESTS();
}
