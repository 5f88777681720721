/* SPDX-License-Identifier: BSD-2-Clause */
/* fork(): a child can do nothing with its parent's NICs, and everything with its own. */
#include "calls.h"
#include "probes.h"

#include <algorithm>
#include <atomic>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace conf;

namespace {

constexpr unsigned kChildSeconds = 60; /* a child that hangs is ended by its alarm */

struct Ended {
	int code;	  /* exit code, or -1 */
	std::string said; /* on standard error */
};

pid_t plain_fork()
{
	return fork();
}

/* A fork without the handlers of pthread_atfork(), as by _Fork(). */
pid_t raw_fork()
{
	return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

/* Runs `work` in a child; its result is the exit code. */
Ended in_child(const std::function<int()> &work, pid_t (*make)() = plain_fork)
{
	int said[2];
	if (pipe(said))
		return { -1, "" };
	pid_t pid = make();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(kChildSeconds);
		dup2(said[1], STDERR_FILENO);
		close(said[0]);
		close(said[1]);
		_exit(work());
	}
	close(said[1]);
	Ended ended = { -1, "" };
	char text[4096];
	ssize_t n;
	while ((n = read(said[0], text, sizeof(text))) > 0)
		ended.said.append(text, static_cast<size_t>(n));
	close(said[0]);
	ended.code = child_wait(pid);
	return ended;
}

size_t lines(const std::string &text)
{
	return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

/* The number of calls with these handles that are not refused. */
int allowed(Good &g, const std::vector<Call> &calls, void *handle)
{
	int count = 0;
	for (auto &call : calls)
		if (call.call(g, handle) != VIP_INVALID_PARAMETER) {
			fprintf(stderr, "%s is not refused\n", call.function);
			count++;
		}
	return count;
}

int try_everything(Good &g, Link &l, Cq &cq, VIP_CONN_HANDLE request)
{
	int count = 0;
	for (int i = 0; i < 2; i++) {
		count += allowed(g, vi_calls(), l.va->h) + allowed(g, vi_calls(), l.vb->h);
		count += allowed(g, cq_calls(), cq.h) + allowed(g, conn_calls(), request);
		count += allowed(g, nic_calls(), l.na.h) + allowed(g, nic_calls(), l.nb.h);
	}
	return count;
}

/* Connects a VI of a NIC of its own to the server at `disc` of side 0, and passes messages. */
int talk(const std::string &disc)
{
	Nic mine(1);
	{
		Addr local(mine, "forked"), remote(mine, disc);
		memcpy(reinterpret_cast<unsigned char *>(remote->HostAddress),
		       nic(0).attrs.LocalNicAddress, nic(0).attrs.NicAddressLen);
		Arena arena(mine);
		Vi vi(mine, vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY));
		VIP_DESCRIPTOR *in = make(arena, 0, { { arena.bytes(8), arena.mem.h, 8 } });
		VIP_DESCRIPTOR *out = make(arena, 0, { { arena.bytes(8), arena.mem.h, 8 } });
		VIP_VI_ATTRIBUTES theirs;
		VIP_RETURN rc = VIP_NO_MATCH;
		EXPECT_RC(VIP_SUCCESS, VipPostRecv(vi, in, arena.mem.h));
		eventually([&] {
			rc = VipConnectRequest(vi, local, remote, kWaitMs, &theirs);
			return rc != VIP_NO_MATCH;
		});
		EXPECT_RC(VIP_SUCCESS, rc);
		EXPECT_RC(VIP_SUCCESS, VipPostSend(vi, out, arena.mem.h));
		EXPECT_EQ(out, take_send(vi));
		EXPECT_EQ(in, take_recv(vi));
		EXPECT_TRUE(has_status(in, VIP_STATUS_OP_RECEIVE));
	}
	return ::testing::Test::HasFailure() ? 1 : 0;
}

} // namespace

TEST(Fork, ChildIsRefusedEverything)
{
	for (auto make : { plain_fork, raw_fork }) {
		RULE(std::string("VIPL 8: a child's calls on handles of its parent are ") +
		     "VIP_INVALID_PARAMETER and change nothing: by " +
		     (make == plain_fork ? "fork" : "clone"));
		if (make == raw_fork && (sysconf(_SC_PAGESIZE) != 4096 || !probe_wipe_on_fork()))
			continue;
		Good g;
		Cq cq(nic(1));
		LinkOptions options;
		options.b_rcq = cq;
		Link l(VIP_SERVICE_RELIABLE_DELIVERY, options);
		Vi client(nic(0), vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY));
		Addr here(nic(1), unique_disc()), local(nic(0), "asks"), from(nic(1), "");
		VIP_VI_ATTRIBUTES seen;
		VIP_CONN_HANDLE request;
		std::thread asks([&] {
			VIP_VI_ATTRIBUTES theirs;
			eventually([&] {
				VIP_RETURN rc =
					VipConnectRequest(client, local, here, kWaitMs, &theirs);
				EXPECT_TRUE(rc == VIP_NO_MATCH || rc == VIP_REJECT) << name_of(rc);
				return rc != VIP_NO_MATCH;
			});
		});
		ASSERT_RC(VIP_SUCCESS,
			  VipConnectWait(nic(1).h, here, kWaitMs, from, &seen, &request));
		VIP_DESCRIPTOR *recv = l.recv_b(8);
		Ended ended = in_child([&] { return try_everything(g, l, cq, request); }, make);
		EXPECT_EQ(0, ended.code) << ended.said;
		EXPECT_EQ(1u, lines(ended.said)) << ended.said;
		EXPECT_NE(std::string::npos, ended.said.find("child of fork()")) << ended.said;
		EXPECT_EQ(VIP_STATE_CONNECTED, l.va->state());
		EXPECT_EQ(VIP_STATE_CONNECTED, l.vb->state());
		EXPECT_EQ(0u, l.na.events(VIP_ERROR_CONN_LOST, nullptr));
		l.send_a({ l.seg_a(8) });
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN is_recv;
		VIP_DESCRIPTOR *got;
		EXPECT_RC(VIP_SUCCESS, VipCQWait(cq, kWaitMs, &vi, &is_recv));
		EXPECT_EQ(l.vb->h, vi);
		EXPECT_RC(VIP_SUCCESS, VipRecvDone(vi, &got));
		EXPECT_EQ(recv, got);
		EXPECT_RC(VIP_SUCCESS, VipConnectReject(request));
		asks.join();
	}
}

TEST(Fork, ChildOpensItsOwn)
{
	RULE("VIPL 8: a child opens a NIC of its own, and its ids are not its parent's");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	Arena arena(nic(0));
	Vi server(nic(0), vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY));
	VIP_DESCRIPTOR *in = make(arena, 0, { { arena.bytes(8), arena.mem.h, 8 } });
	VIP_DESCRIPTOR *out = make(arena, 0, { { arena.bytes(8), arena.mem.h, 8 } });
	ASSERT_RC(VIP_SUCCESS, VipPostRecv(server, in, arena.mem.h));
	std::string disc = unique_disc();
	/* Until the child exists the thread only waits: it may hold no lock, not even one of a sanitizer. */
	std::atomic<bool> waits{ false };
	int forked[2];
	ASSERT_EQ(0, pipe(forked));
	std::thread serve([&] {
		char byte;
		waits = true;
		ASSERT_EQ(1, read(forked[0], &byte, 1));
		Addr here(nic(0), disc), from(nic(0), "");
		VIP_VI_ATTRIBUTES seen;
		VIP_CONN_HANDLE request;
		ASSERT_RC(VIP_SUCCESS,
			  VipConnectWait(nic(0).h, here, kWaitMs, from, &seen, &request));
		ASSERT_RC(VIP_SUCCESS, VipConnectAccept(request, server));
		EXPECT_RC(VIP_SUCCESS, VipPostSend(server, out, arena.mem.h));
		EXPECT_EQ(in, take_recv(server));
	});
	ASSERT_TRUE(eventually([&] { return waits.load(); }));
	Ended ended = in_child([&] {
		int rc = write(forked[1], "", 1) == 1 ? talk(disc) : 1;
		VIP_DESCRIPTOR *desc;
		Nic mine(0);
		for (int i = 0; i < 100; i++) {
			VIP_NIC_HANDLE own;
			if (VipOpenNic(device(0), &own) != VIP_SUCCESS || own == l.na.h ||
			    own == l.nb.h || VipRecvDone(*l.vb, &desc) != VIP_INVALID_PARAMETER ||
			    VipCloseNic(own) != VIP_SUCCESS)
				return 2;
		}
		/* A child of the child gets the handles of both refused. */
		Ended grand = in_child([&] {
			VIP_NIC_ATTRIBUTES attrs;
			VIP_NIC_HANDLE own;
			return VipQueryNic(mine.h, &attrs) == VIP_INVALID_PARAMETER &&
					       VipQueryNic(l.na.h, &attrs) ==
						       VIP_INVALID_PARAMETER &&
					       VipOpenNic(device(0), &own) == VIP_SUCCESS &&
					       VipCloseNic(own) == VIP_SUCCESS
				       ? 0
				       : 1;
		});
		return rc != 0 || grand.code != 0 ? 3 : 0;
	});
	EXPECT_EQ(0, ended.code) << ended.said;
	close(forked[1]);
	serve.join();
	close(forked[0]);
	EXPECT_TRUE(l.unbroken());
}

/* Whatever lock another thread holds at that moment. */
TEST(Fork, WhileOthersOpenAndClose)
{
	RULE("VIPL 8: a child opens a NIC whatever its parent's other threads do while it forks");
	if (!probe_fork_among_threads())
		GTEST_SKIP()
			<< "a child of an emulated process may inherit the emulator's locks taken";
	std::atomic<bool> stop{ false };
	auto churn = [&] {
		while (!stop) {
			Nic n(0);
			Vi vi(n, vi_attrs(VIP_SERVICE_UNRELIABLE));
			Cq cq(n);
			Ptag tag(n);
		}
	};
	std::thread a(churn), b(churn);
	for (int i = 0; i < 20 && !HasFailure(); i++) {
		Ended ended = in_child([&] {
			VIP_VI_ATTRIBUTES attrs = vi_attrs(VIP_SERVICE_UNRELIABLE);
			VIP_NIC_HANDLE n;
			VIP_VI_HANDLE vi;
			VIP_CQ_HANDLE cq;
			return VipOpenNic(device(0), &n) == VIP_SUCCESS &&
					       VipCreateCQ(n, 4, &cq) == VIP_SUCCESS &&
					       VipCreateVi(n, &attrs, cq, cq, &vi) == VIP_SUCCESS &&
					       VipDestroyVi(vi) == VIP_SUCCESS &&
					       VipDestroyCQ(cq) == VIP_SUCCESS &&
					       VipCloseNic(n) == VIP_SUCCESS
				       ? 0
				       : 1;
		});
		EXPECT_EQ(0, ended.code) << ended.said;
	}
	stop = true;
	a.join();
	b.join();
}

TEST(Fork, Memory)
{
	RULE("vipl.h, processes: a child shares window memory, and has a copy of registered memory");
	Mem mem(nic(0), 64);
	VIP_PVOID at;
	VIP_MEM_HANDLE h;
	ASSERT_RC(VIP_SUCCESS, VipxAllocMem(nic(0).h, 64, nullptr, &at, &h));
	auto *window = static_cast<char *>(at);
	mem.data[0] = window[0] = window[1] = 1;
	Ended ended = in_child([&] {
		int before = mem.data[0] + window[0];
		mem.data[0] = window[0] = 2;
		return before == 2 ? 0 : 1;
	});
	EXPECT_EQ(0, ended.code);
	EXPECT_EQ(1, mem.data[0]);
	EXPECT_EQ(2, window[0]);
	EXPECT_EQ(1, window[1]);
	EXPECT_RC(VIP_SUCCESS, VipxFreeMem(nic(0).h, at, h));
}

TEST(Fork, InAHandler)
{
	RULE("VIPL 8: a handler may fork: the child ends where the handler returns, the parent goes on");
	Link l(VIP_SERVICE_RELIABLE_DELIVERY);
	static std::atomic<int> code;
	code = -2;
	VIP_DESCRIPTOR *recv = l.recv_b(8);
	ASSERT_RC(VIP_SUCCESS,
		  VipRecvNotify(*l.vb, recv,
				[](VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *) {
					VIP_DESCRIPTOR *desc;
					pid_t pid = fork();
					if (pid != 0) {
						code = child_wait(pid);
						return;
					}
					prctl(PR_SET_PDEATHSIG, SIGKILL);
					alarm(kChildSeconds);
					/* The last thread that ends calls exit(): this must run nothing of the test. */
					atexit([] { _exit(0); });
					if (VipSendDone(vi, &desc) != VIP_INVALID_PARAMETER)
						_exit(1);
				}));
	l.send_a({ l.seg_a(8) });
	EXPECT_TRUE(eventually([] { return code != -2; }, 4 * kWaitMs));
	EXPECT_EQ(0, code);
	EXPECT_NE(nullptr, take_send(*l.va));
	EXPECT_TRUE(l.unbroken());
}

/* The descriptors of a dead parent stay open in its child: this must not keep its connections. */
TEST(Fork, ParentEndsBeforeItsChild)
{
	RULE("VIPL 5.1: a process that ends lets its peers know though a child of it lives");
	Vi server(nic(0), vi_attrs(VIP_SERVICE_RELIABLE_DELIVERY, 4096));
	std::string disc = unique_disc();
	/* Emulators of user programs do not let a process wait for the children of its children. */
	bool reaper = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
	pid_t pid = spawn_child("connect-and-leave-a-child",
				std::to_string(VIP_SERVICE_RELIABLE_DELIVERY) + ":" + disc);
	accept_one(server, disc);
	EXPECT_EQ(0, child_wait(pid));
	EXPECT_TRUE(server.reaches(VIP_STATE_ERROR));
	EXPECT_EQ(0, kill(-pid, SIGKILL)) << "it has ended before its time";
	if (reaper) {
		EXPECT_GT(waitpid(-pid, nullptr, 0), 0);
	}
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}
