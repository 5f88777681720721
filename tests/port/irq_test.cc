/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts under load: no wake-up is lost; a client in another process sleeps and rings too. */
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "open_fds.h"
#include "rig.h"

/*
 * Waits for `bit` by the protocol of port.h, until `news` returns true.
 * A wait that ends by its limit although there was news has lost its wake-up.
 */
static bool await(struct port *p, uint32_t bit, const std::function<bool()> &news)
{
	uint32_t ticket;

	for (;;) {
		ticket = port_irq_ticket(p->irq);
		port_db_clear(p, bit);
		if (news())
			return true;
		if (port_irq_wait(p->irq, ticket, bit, kPatience) == -ETIMEDOUT)
			return false;
	}
}

class Irq : public testing::TestWithParam<Variant> {};

INSTANTIATE_TEST_SUITE_P(Some, Irq,
			 testing::Values(Variant{ "self", "emu", true },
					 Variant{ "pair", "emu", true },
					 Variant{ "pair", "emu", false },
					 Variant{ "pair", "emu+strict+fault", false }),
			 [](const testing::TestParamInfo<Variant> &i) { return i.param.name(); });

/* Two threads ring each other; each goes to sleep when it has caught up. */
TEST_P(Irq, NoWakeUpIsLost)
{
	Rig rig(GetParam());
	const uint32_t rings = 100000;
	const uint32_t ahead =
		64; /* so that rings meet threads that are awake and threads that sleep */
	std::atomic<uint32_t> sent[2] = {};
	std::atomic<bool> lost{ false };

	auto run = [&](int me) {
		const uint32_t out = UINT32_C(1) << (2 + me);
		const uint32_t in = UINT32_C(1) << (2 + !me);

		for (uint32_t n = 1; n <= rings && !lost; n++) {
			sent[me] = n;
			port_peer_db_ring(rig.user[me], out);
			uint32_t need = n > ahead ? n - (n * 2654435761u >> 26) : 0;
			if (!await(rig.user[me], in, [&] { return sent[!me] >= need || lost; }))
				lost = true;
		}
	};
	std::thread other(run, 1);
	run(0);
	other.join();
	EXPECT_FALSE(lost);
}

/* One ring wakes all threads that sleep on its bit. */
TEST_P(Irq, EverySleeperOfABitWakes)
{
	Rig rig(GetParam());
	struct port *views[3] = { rig.user[1], rig.attach(1), rig.attach(1) };
	std::atomic<int> tids[3] = {};
	std::atomic<int> awake{ 0 };
	std::atomic<bool> news{ false };
	std::vector<std::thread> sleepers;

	for (int i = 0; i < 3; i++) {
		sleepers.emplace_back([&, i] {
			tids[i] = gettid();
			awake += await(views[i], 0x40, [&] { return news.load(); }) ? 1 : 0;
		});
	}
	for (auto &tid : tids) {
		for (int64_t end = u_now_ns() + kPatience; u_now_ns() < end;) {
			if (tid != 0 && is_asleep(tid))
				break;
			std::this_thread::yield();
		}
	}
	news = true;
	port_peer_db_ring(rig.user[0], 0x40);
	for (auto &t : sleepers)
		t.join();
	EXPECT_EQ(awake, 3);
}

TEST_P(Irq, OtherBitsDoNotWake)
{
	Rig rig(GetParam());
	struct port_irq *irq = rig.user[1]->irq;
	std::atomic<int> returns{ 0 };
	std::atomic<int> tid{ 0 };
	std::atomic<bool> stop{ false };
	const int rings = 200;

	std::thread sleeper([&] {
		tid = gettid();
		while (!stop) {
			uint32_t ticket = port_irq_ticket(irq);

			if (!stop)
				port_irq_wait(irq, ticket, 0x2, kPatience);
			returns++;
		}
	});
	int64_t end = u_now_ns() + kPatience;
	for (int i = 0; i < rings; i++) {
		while ((tid == 0 || !is_asleep(tid)) && u_now_ns() < end)
			std::this_thread::yield();
		port_peer_db_ring(rig.user[0], 0x1);
	}
	EXPECT_LT(returns, rings / 2);
	stop = true;
	port_irq_kick(irq, 0x2);
	sleeper.join();
	EXPECT_LT(u_now_ns(), end);
}

class Process : public testing::TestWithParam<Variant> {};

INSTANTIATE_TEST_SUITE_P(All, Process, testing::ValuesIn(all_variants()),
			 [](const testing::TestParamInfo<Variant> &i) { return i.param.name(); });

/* A client: it attaches, sleeps, checks, stores and rings. */
static int client(const char *text, int *fds, unsigned int nfds, struct port_host *host, int in_fd,
		  int out_fd, uint32_t rounds)
{
	struct port_irq *irq;
	struct port *p;
	struct port_map in;
	struct port_map out;

	if (port_irq_open(port_host_doorbells_fd(host), port_host_status_fd(host), &irq) != 0 ||
	    port_attach(text, fds, nfds, irq, &p) != 0 ||
	    port_map(p, in_fd, 4096, PORT_INBOUND, &in) != 0 ||
	    port_map(p, out_fd, 4096, PORT_OUTBOUND, &out) != 0)
		return 1;
	for (uint32_t n = 1; n <= rounds; n++) {
		if (!await(p, 0x1, [&] {
			    return __atomic_load_n(static_cast<uint32_t *>(in.base),
						   __ATOMIC_ACQUIRE) == n;
		    }))
			return 2;
		u_out_store32(&out.out, static_cast<uint32_t *>(out.base), n);
		u_out_fence(&out.out);
		port_peer_db_ring(p, 0x2);
	}
	port_unmap(p, &in);
	port_unmap(p, &out);
	port_close(p);
	port_irq_close(irq);
	return 0;
}

TEST_P(Process, ClientsSleepAndRingInTheirOwnProcess)
{
	Rig rig(GetParam());
	Window to(rig, 4096);
	struct port_slice back;
	struct port_map in;
	char text[PORT_VIEW_MAX];
	int fds[PORT_ATTACH_FDS];
	unsigned int nfds;
	int out_fd;
	int status = -1;
	const uint32_t rounds = 200;

	ASSERT_EQ(port_slice_alloc(rig.agent[0], 4096, &back), 0);
	ASSERT_EQ(port_peer_slice_open(rig.agent[1], back.id, 4096, &out_fd), 0);
	ASSERT_EQ(port_map(rig.user[0], back.fd, 4096, PORT_INBOUND, &in), 0);
	ASSERT_EQ(port_export_view(rig.agent[1], text, sizeof(text), fds, &nfds), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(client(text, fds, nfds, rig.host[1], to.slice.fd, out_fd, rounds));
	ASSERT_GT(pid, 0);
	for (uint32_t n = 1; n <= rounds; n++) {
		u_out_store32(&to.out.out, to.out32(0), n);
		to.fence();
		port_peer_db_ring(rig.user[0], 0x1);
		ASSERT_TRUE(await(rig.user[0], 0x2, [&] {
			return __atomic_load_n(static_cast<uint32_t *>(in.base),
					       __ATOMIC_ACQUIRE) == n;
		})) << n;
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	port_unmap(rig.user[0], &in);
	port_slice_free(rig.agent[0], back.id);
	close(back.fd);
	close(out_fd);
}

/* Runs f so that any system call kills the process.  -1: that is impossible here. */
template <typename F> static int without_system_calls(F f)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	return -1;
#endif
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
			_exit(77);
		f();
		syscall(SYS_exit, 0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return -1;
	return status == 0;
}

TEST_P(Irq, PollingAndRingingTheWakefulIsNoSystemCall)
{
	Rig rig(GetParam());
	int quiet = without_system_calls([&] {
		for (int i = 0; i < 1000; i++) {
			port_peer_db_ring(rig.user[0], 0x5);
			port_irq_ticket(rig.user[1]->irq);
			port_db_clear(rig.user[1], port_db_read(rig.user[1]));
			port_link_state(rig.user[0], nullptr);
		}
	});

	if (quiet < 0)
		GTEST_SKIP() << "seccomp cannot be used here";
	EXPECT_EQ(quiet, 1);
	EXPECT_EQ(without_system_calls([&] { getppid(); }), 0) << "or it would not be noticed";
}

/* A sleeper that is killed costs later rings one system call, and loses nothing. */
TEST(IrqCrash, KilledSleepersLeaveNothingBehind)
{
	Rig rig({ "pair", "emu", true });
	int ready[2];
	int status;
	char byte = 0;

	ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		uint32_t ticket = port_irq_ticket(rig.irq[1]);

		if (write(ready[1], "x", 1) == 1)
			port_irq_wait(rig.irq[1], ticket, 0x1, -1);
		_exit(0);
	}
	ASSERT_EQ(read(ready[0], &byte, 1), 1);
	kill(pid, SIGKILL);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	port_peer_db_ring(rig.user[0], 0x1);
	EXPECT_EQ(port_db_read(rig.user[1]), 0x1u);
	EXPECT_NE(without_system_calls([&] { port_peer_db_ring(rig.user[0], 0x1); }), 0);
	close(ready[0]);
	close(ready[1]);
}

TEST(IrqOpen, OnlyRegisterPagesAreTaken)
{
	struct port_irq *irq = nullptr;
	int before = open_fds();
	int blank = memfd_create("blank", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	struct port_emu_host *host = nullptr;

	ASSERT_EQ(port_emu_host_create(&host), 0);
	int doorbells = port_emu_host_doorbells_fd(host), status = port_emu_host_status_fd(host);
	for (int bad : { -1, 0, blank }) {
		EXPECT_EQ(port_irq_open(bad, status, &irq), -EINVAL);
		EXPECT_EQ(port_irq_open(doorbells, bad, &irq), -EINVAL);
	}
	ASSERT_EQ(ftruncate(blank, 4096), 0);
	EXPECT_EQ(port_irq_open(doorbells, blank, &irq), -EINVAL);
	ASSERT_EQ(fcntl(blank, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	EXPECT_EQ(port_irq_open(doorbells, blank, &irq), -EPROTO);
	EXPECT_EQ(port_irq_open(doorbells, doorbells, &irq), -EPROTO);
	EXPECT_EQ(irq, nullptr);
	ASSERT_EQ(port_irq_open(doorbells, status, &irq), 0);
	port_irq_close(irq);
	port_emu_host_destroy(host);
	close(blank);
	EXPECT_EQ(open_fds(), before);
	port_irq_close(nullptr);
	port_emu_host_destroy(nullptr);
	port_close(nullptr);
}

/* The port `self` of a host, whatever its other ports are. */
class IrqOfSelf : public testing::TestWithParam<Variant> {};

static std::vector<Variant> hosts()
{
	std::vector<Variant> all = { { "pair", "emu", false } };

	if (getenv("VIADUCT_TEST_ADAPTERS") != nullptr)
		all.push_back({ "pair", "cdev", false });
	return all;
}

INSTANTIATE_TEST_SUITE_P(Hosts, IrqOfSelf, testing::ValuesIn(hosts()),
			 [](const testing::TestParamInfo<Variant> &i) { return i.param.name(); });

TEST_P(IrqOfSelf, WakesTheAgentAndProcesses)
{
	const uint32_t agent_bit = 0x1, bit = 0x4;
	Rig rig(GetParam());
	struct port_emu_cfg cfg = {};
	struct port *self = nullptr;

	snprintf(cfg.name, sizeof(cfg.name), "self");
	cfg.db_bits = 16;
	cfg.spads = 8;
	cfg.window_bytes = 1 << 20;
	cfg.agent_bits = agent_bit;
	ASSERT_EQ(port_host_port(rig.host[0], &cfg, &self), 0);
	for (uint32_t one : { agent_bit, bit }) {
		struct port_irq *irq = one == bit ? port_host_irq(rig.host[0])
						  : port_host_agent_irq(rig.host[0]);
		uint32_t ticket = port_irq_ticket(irq);
		int rc = -1;

		std::thread sleeper([&] { rc = port_irq_wait(irq, ticket, one, kPatience); });
		port_peer_db_ring(self, one);
		sleeper.join();
		EXPECT_EQ(rc, 0) << one;
		EXPECT_EQ(port_db_read(self) & one, one);
	}
	port_close(self);
}
