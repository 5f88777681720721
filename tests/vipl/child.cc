/* SPDX-License-Identifier: BSD-2-Clause */
/* This program as another process, for tests that need one. */
#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace conf {

/* Opens the device; the exit code is the return code. */
static int child_open(const std::string &device_name)
{
	VIP_NIC_HANDLE h;
	VIP_RETURN rc = VipOpenNic(device_name.c_str(), &h);
	if (rc == VIP_SUCCESS)
		VipCloseNic(h);
	return rc;
}

/* After connecting, a child ends without a word, or stops, or first leaves a child of its own. */
enum class Then { kExit, kStop, kFork };

/* LEVEL:DISCRIMINATOR: connects from side 1 to side 0's host. */
static int child_connect(const std::string &arg, size_t max_transfer, Then then)
{
	size_t colon = arg.find(':');
	Nic mine(1), other(0);
	VIP_VI_ATTRIBUTES attrs = vi_attrs(
		static_cast<VIP_RELIABILITY_LEVEL>(std::stoi(arg.substr(0, colon))), max_transfer);
	Addr local(mine, "child"), remote(other, arg.substr(colon + 1));
	VIP_VI_ATTRIBUTES theirs;
	VIP_VI_HANDLE vi;
	VIP_RETURN rc = VipCreateVi(mine.h, &attrs, nullptr, nullptr, &vi);
	if (rc == VIP_SUCCESS)
		eventually([&] {
			rc = VipConnectRequest(vi, local, remote, kWaitMs, &theirs);
			return rc != VIP_NO_MATCH;
		});
	if (then == Then::kStop && rc == VIP_SUCCESS)
		raise(SIGSTOP);
	/* The child has all descriptors, and a process group by which it can be ended. */
	if (then == Then::kFork && setpgid(0, 0) == 0 && fork() == 0)
		for (;;)
			pause();
	_exit(rc);
}

/* LEVEL:DISCRIMINATOR: connects from side 1 to side 0's host and receives the number 7.  0: it came. */
static int child_receive(const std::string &arg)
{
	size_t colon = arg.find(':');
	Nic mine(1), other(0);
	Vi vi(mine, vi_attrs(static_cast<VIP_RELIABILITY_LEVEL>(std::stoi(arg.substr(0, colon)))));
	Addr local(mine, "child"), remote(other, arg.substr(colon + 1));
	Arena arena(mine);
	char *in = arena.bytes(1);
	VIP_DESCRIPTOR *recv = make(arena, 0, { { in, arena.mem.h, 1 } });
	VIP_VI_ATTRIBUTES theirs;
	VIP_RETURN rc = VipPostRecv(vi, recv, arena.mem.h);

	if (rc == VIP_SUCCESS)
		eventually([&] {
			rc = VipConnectRequest(vi, local, remote, kWaitMs, &theirs);
			return rc != VIP_NO_MATCH;
		});
	if (rc != VIP_SUCCESS || take_recv(vi) != recv)
		return 97;
	return (recv->CS.Status & VIP_STATUS_ERROR_MASK) == 0 && *in == 7 ? 0 : 96;
}

/* A counter in the child's memory, written to the window of side 0 again and again. */
struct Storing {
	Storing(Nic &n, VIP_VI_HANDLE v, uint64_t address, VIP_MEM_HANDLE handle)
	    : nic(n), arena(n), vi(v)
	{
		Remote to = { reinterpret_cast<void *>(address), handle };
		word = reinterpret_cast<uint64_t *>(arena.bytes(sizeof(*word)));
		desc = make(arena, VIP_CONTROL_OP_RDMAWRITE,
			    { { word, arena.mem.h, sizeof(*word) } }, to);
	}
	/* Writes the next number; returns whether it was written.  *direct: without a slot. */
	bool next(bool *direct)
	{
		uint64_t before = slots();
		++*word;
		if (VipPostSend(vi, desc, arena.mem.h) != VIP_SUCCESS || take_send(vi) != desc)
			return false;
		*direct = slots() == before;
		return (desc->CS.Status & VIP_STATUS_ERROR_MASK) == 0;
	}
	uint64_t slots()
	{
		VIPX_COUNTERS c{};
		c.Size = sizeof(c);
		VipxQueryCounters(nic.h, vi, &c);
		return c.SlotsSent;
	}
	Nic &nic;
	Arena arena;
	VIP_VI_HANDLE vi;
	uint64_t *word;
	VIP_DESCRIPTOR *desc;
};

/* DISCRIMINATOR:ADDRESS:HANDLE: connects to side 0's host and writes there without end. */
static int child_store(const std::string &arg, bool stop)
{
	size_t first = arg.find(':'), second = arg.find(':', first + 1);
	uint64_t address = std::stoull(arg.substr(first + 1, second - first - 1));
	auto handle = static_cast<VIP_MEM_HANDLE>(std::stoul(arg.substr(second + 1)));
	Nic mine(1), other(0);
	Vi vi(mine, vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY));
	Addr local(mine, "child"), remote(other, arg.substr(0, first));
	VIP_VI_ATTRIBUTES theirs;
	VIP_RETURN rc = VIP_NO_MATCH;
	bool direct = false;
	eventually([&] {
		rc = VipConnectRequest(vi, local, remote, kWaitMs, &theirs);
		return rc != VIP_NO_MATCH;
	});
	if (rc != VIP_SUCCESS)
		return 97;
	Storing storing(mine, vi, address, handle);
	while (storing.next(&direct)) {
		if (!direct || !stop)
			continue;
		raise(SIGSTOP);
		stop = false;
	}
	return vi.reaches(VIP_STATE_ERROR) ? 0 : 96;
}

/*
 * DISCRIMINATOR: connects to side 0's host, sends address and handle of window memory, and counts in its
 * second word without end.
 */
static int child_own(const std::string &disc)
{
	Nic mine(1), other(0);
	VIP_VI_ATTRIBUTES attrs = vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY), theirs;
	attrs.EnableRdmaWrite = attrs.EnableRdmaRead = VIP_TRUE;
	Vi vi(mine, attrs);
	Arena arena(mine);
	Addr local(mine, "child"), remote(other, disc);
	VIP_MEM_ATTRIBUTES open = { nullptr, VIP_TRUE, VIP_TRUE };
	VIP_MEM_HANDLE handle = 0;
	VIP_PVOID address = nullptr;
	VIP_RETURN rc = VIP_NO_MATCH;
	eventually([&] {
		rc = VipConnectRequest(vi, local, remote, kWaitMs, &theirs);
		return rc != VIP_NO_MATCH;
	});
	if (rc != VIP_SUCCESS ||
	    VipxAllocMem(mine.h, 1u << 16, &open, &address, &handle) != VIP_SUCCESS)
		return 97;
	auto *word = static_cast<uint64_t *>(address);
	uint64_t said[2] = { reinterpret_cast<uint64_t>(address), handle };
	char *out = arena.bytes(sizeof(said));
	memcpy(out, said, sizeof(said));
	if (VipPostSend(vi, make(arena, 0, { { out, arena.mem.h, sizeof(said) } }), arena.mem.h) !=
	    VIP_SUCCESS)
		return 96;
	for (;;)
		__atomic_fetch_add(word + 1, 1, __ATOMIC_RELAXED);
}

/* Starts an agent of a fabric of one host; returns its pid when it listens. */
static pid_t start_agent(const std::string &fabric)
{
	const char *program = getenv("VIADUCT_AGENT");
	int ready[2];
	char line[64] = "";
	if (!program || pipe(ready))
		return -1;
	std::string fd = std::to_string(ready[1]);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		execl(program, program, "--fabric", fabric.c_str(), "--hosts", "1", "--host-id",
		      "0", "--ready-fd", fd.c_str(), static_cast<char *>(nullptr));
		_exit(127);
	}
	close(ready[1]);
	ssize_t n = read(ready[0], line, sizeof(line) - 1);
	close(ready[0]);
	return n > 0 && !strcmp(line, "ready\n") ? pid : -1;
}

static void expect_no_agent(Nic &n, VIP_VI_HANDLE vi)
{
	Addr here(n, "x"), other(n, "");
	VIP_VI_ATTRIBUTES attrs;
	VIP_CONN_HANDLE conn;
	VIP_CHAR name[64] = "host0";
	VIP_ULONG length = sizeof(name);
	VIP_PVOID address;
	VIP_MEM_HANDLE handle;
	VIP_AUTODISCOVERY_LIST list = { 1, nullptr, 0 };
	VIPX_ROUTE route{};
	route.Size = sizeof(route);
	EXPECT_RC(VIP_ERROR_RESOURCE, VipConnectWait(n.h, here, kWaitMs, other, &attrs, &conn));
	EXPECT_RC(VIP_ERROR_RESOURCE, VipConnectRequest(vi, here, here, kWaitMs, &attrs));
	EXPECT_RC(VIP_ERROR_RESOURCE, VipConnectPeerRequest(vi, here, here, kWaitMs));
	EXPECT_RC(VIP_SUCCESS, VipNSInit(n.h, nullptr));
	EXPECT_RC(VIP_ERROR_NAMESERVICE, VipNSGetHostByName(n.h, name, other, 0));
	EXPECT_RC(VIP_ERROR_NAMESERVICE, VipNSGetHostByAddr(n.h, here, name, &length));
	EXPECT_RC(VIP_ERROR_RESOURCE,
		  VipQuerySystemManagementInfo(n.h, VIP_SMI_AUTODISCOVERY, &list));
	EXPECT_RC(VIP_ERROR_RESOURCE, VipxQueryRoute(n.h, here, &route));
	EXPECT_RC(VIP_ERROR_RESOURCE, VipxAllocMem(n.h, 4096, nullptr, &address, &handle));
}

/* Kills the agent under two connected VIs. */
static int child_agent_gone(const std::string &fabric)
{
	pid_t agent = start_agent(fabric);
	if (agent < 0)
		return 98;
	{
		Nic near(0), far(0);
		Vi a(near, vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY));
		Vi b(far, vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY));
		connect(a, b);
		kill(agent, SIGKILL);
		EXPECT_EQ(-1, child_wait(agent));
		for (Nic *n : { &near, &far }) {
			Vi &vi = n == &near ? a : b;
			VIP_ERROR_DESCRIPTOR e{};
			EXPECT_TRUE(n->wait_event(VIP_ERROR_CATASTROPHIC, nullptr, &e));
			EXPECT_EQ(1u, n->events(VIP_ERROR_CONN_LOST, vi.h)) << "before it";
			EXPECT_EQ(n->h, e.NicHandle);
			EXPECT_EQ(nullptr, e.ViHandle);
			EXPECT_EQ(nullptr, e.CQHandle);
			EXPECT_EQ(nullptr, e.DescriptorPtr);
			EXPECT_EQ(VIP_RESOURCE_NIC, e.ResourceCode);
			EXPECT_EQ(VIP_STATE_ERROR, vi.state());
			EXPECT_RC(VIP_SUCCESS, VipDisconnect(vi));
			expect_no_agent(*n, vi);
			EXPECT_EQ(VIP_STATE_IDLE, vi.state());
		}
	}
	return ::testing::Test::HasFailure() ? 1 : 0;
}

/* Cancels a thread that waits for something that never comes. */
static int child_cancel()
{
	{
		Nic mine(0);
		Arena arena(mine);
		Vi vi(mine, vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY));
		EXPECT_RC(VIP_SUCCESS, VipPostRecv(vi, make(arena, 0, {}), arena.mem.h));
		for (int i = 0; i < 5; i++) {
			pthread_t id;
			void *result = nullptr;
			EXPECT_EQ(0, pthread_create(
					     &id, nullptr,
					     [](void *of) -> void * {
						     VIP_DESCRIPTOR *desc;
						     VipRecvWait(of, VIP_INFINITE, &desc);
						     return of;
					     },
					     vi.h));
			EXPECT_EQ(0, pthread_cancel(id));
			EXPECT_EQ(0, pthread_join(id, &result));
			EXPECT_EQ(PTHREAD_CANCELED, result);
		}
	}
	return ::testing::Test::HasFailure() ? 1 : 0;
}

int child_main(const std::string &mode, const std::string &arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mode == "open")
		return child_open(arg);
	if (mode == "connect-and-exit")
		return child_connect(arg, 4096, Then::kExit);
	if (mode == "connect-and-stop")
		return child_connect(arg, 16u << 20, Then::kStop);
	if (mode == "connect-and-leave-a-child")
		return child_connect(arg, 4096, Then::kFork);
	if (mode == "connect-and-receive")
		return child_receive(arg);
	if (mode == "store")
		return child_store(arg, false);
	if (mode == "store-and-stop")
		return child_store(arg, true);
	if (mode == "own")
		return child_own(arg);
	if (mode == "cancel")
		return child_cancel();
	if (mode == "agent-gone")
		return child_agent_gone(arg);
	fprintf(stderr, "no such child: %s\n", mode.c_str());
	return 99;
}

} // namespace conf
