/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocking waits use no processor time and miss no wake-up; one-sided transfers need no help. */
#include "clu.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include <sys/epoll.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

constexpr VIP_ULONG kIdleMs = 2000;
constexpr int64_t kIdleCpu = 20000000;
/*
 * The processor time of a wait itself is the same in each turn; what a busy machine adds, such as page
 * faults, is not.
 */
constexpr int kIdleTurns = 4;

/* ---- idle waits ----------------------------------------------------------------------------- */

enum Wait { RECV_WAIT, CQ_WAIT, CONNECT_WAIT, PEER_WAIT, EPOLL, WAITS };
static const char *const wait_names[] = { "VipRecvWait", "VipCQWait", "VipConnectWait",
					  "VipConnectPeerWait", "epoll on VipxCQFd" };

/*
 * The number of events within that time; in a process that was stopped and continued the call was
 * interrupted, and is made again.
 */
static int epoll_events(int fd, unsigned ms)
{
	struct epoll_event event;
	int64_t end = now_ns() + static_cast<int64_t>(ms) * 1000000, left;
	int n;
	do {
		left = std::max<int64_t>(end - now_ns(), 0);
		n = epoll_wait(fd, &event, 1, static_cast<int>((left + 999999) / 1000000));
	} while (n < 0 && errno == EINTR);
	return n;
}

/* VIs of one NIC joined in pairs, one with and one without a CQ; nothing moves. */
struct Quiet {
	Quiet()
	{
		NEED_RC(VIP_SUCCESS, VipCreateCQ(nic, 8, &cq));
		a = std::make_unique<Vi>(nic, attrs(VIP_SERVICE_RELIABLE_RECEPTION, 4096, true));
		b = std::make_unique<Vi>(nic, attrs(VIP_SERVICE_RELIABLE_RECEPTION, 4096, true), cq,
					 cq);
		lone = std::make_unique<Vi>(nic, attrs(VIP_SERVICE_RELIABLE_RECEPTION, 4096));
		slab = std::make_unique<Slab>(nic, 4, 64, true);
		post_recv(*a, *slab, slab->fill(0, 64));
		post_recv(*b, *slab, slab->fill(1, 64));
		NEED_RC(VIP_SUCCESS, join(nic, *a, nic, *b, text("quiet%d", getpid())));
		/* It has carried traffic. */
		post_send(*a, *slab, slab->fill(2, 64));
		sent(*a);
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN recv;
		VIP_DESCRIPTOR *d;
		NEED_RC(VIP_SUCCESS, VipCQWait(cq, kSeconds * 1000, &vi, &recv));
		NEED_RC(VIP_SUCCESS, VipRecvDone(*b, &d));
	}

	~Quiet()
	{
		a.reset();
		b.reset();
		VipDestroyCQ(cq);
	}

	void wait(Wait how)
	{
		VIP_DESCRIPTOR *d;
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN recv;
		VIP_VI_ATTRIBUTES remote;
		VIP_CONN_HANDLE conn;
		Addr here(nic, text("idle%d", getpid())), from(nic, "");
		switch (how) {
		case RECV_WAIT:
			NEED_RC(VIP_TIMEOUT, VipRecvWait(*a, kIdleMs, &d));
			break;
		case CQ_WAIT:
			NEED_RC(VIP_TIMEOUT, VipCQWait(cq, kIdleMs, &vi, &recv));
			break;
		case CONNECT_WAIT:
			NEED_RC(VIP_TIMEOUT,
				VipConnectWait(nic, here, kIdleMs, from, &remote, &conn));
			break;
		case PEER_WAIT:
			NEED_RC(VIP_SUCCESS, VipConnectPeerRequest(*lone, here, from, kIdleMs));
			NEED_RC(VIP_TIMEOUT, VipConnectPeerWait(*lone, &remote));
			break;
		default:
			epoll();
		}
	}

	void epoll()
	{
		int cq_fd, fd = epoll_create1(EPOLL_CLOEXEC);
		struct epoll_event event = {};
		event.events = EPOLLIN;
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN recv;
		NEED_RC(VIP_SUCCESS, VipxCQFd(cq, &cq_fd));
		NEED(epoll_ctl(fd, EPOLL_CTL_ADD, cq_fd, &event) == 0);
		NEED_RC(VIP_SUCCESS, VipxCQArm(cq));
		NEED_RC(VIP_NOT_DONE, VipCQDone(cq, &vi, &recv));
		NEED(epoll_events(fd, kIdleMs) == 0);
		close(fd);
	}

	Nic nic;
	VIP_CQ_HANDLE cq;
	std::unique_ptr<Slab> slab;
	std::unique_ptr<Vi> a, b, lone;
};

/* Prints the processor time of each thread of this process. */
void print_threads()
{
	for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
		std::ifstream stat(task.path() / "schedstat"), comm(task.path() / "comm");
		std::string name;
		int64_t ns = 0;
		stat >> ns;
		comm >> name;
		fprintf(stderr, "%-16s %8.2f ms\n", name.c_str(), static_cast<double>(ns) / 1e6);
	}
}

ROLE(idle)
{
	Await awaited("an idle wait", 40);
	int how = atoi(args[0].c_str());
	Quiet quiet;
	int64_t least = INT64_MAX;
	for (int turn = 0; turn < kIdleTurns && least > kIdleCpu; turn++) {
		int64_t before = cpu_ns(getpid());
		quiet.wait(static_cast<Wait>(how));
		least = std::min(least, cpu_ns(getpid()) - before);
	}
	if (least > kIdleCpu)
		print_threads();
	cell(static_cast<size_t>(how)) = 1 + static_cast<uint64_t>(least);
}

TEST(Idle, WaitsUseNoProcessorTime)
{
	Await awaited("idle waits", 60);
	board_clear();
	Fabric fabric(2);
	std::vector<Process> waiters;
	/* The agents are measured too, over all that time; they also made the connections. */
	int64_t before = cpu_ns(fabric.agent(0).pid()) + cpu_ns(fabric.agent(1).pid());
	for (int how = 0; how < WAITS; how++)
		waiters.push_back(role("idle", { std::to_string(how) }));
	for (auto &waiter : waiters)
		EXPECT_EQ(0, waiter.wait());
	for (size_t how = 0; how < WAITS; how++) {
		int64_t used = static_cast<int64_t>(cell(how)) - 1;
		printf("%-20s %6.2f ms of processor time in %lu ms\n", wait_names[how],
		       static_cast<double>(used) / 1e6, kIdleMs);
		EXPECT_GE(used, 0);
		EXPECT_LT(used, sanitized() ? 10 * kIdleCpu : kIdleCpu) << wait_names[how];
	}
	int64_t agents = cpu_ns(fabric.agent(0).pid()) + cpu_ns(fabric.agent(1).pid()) - before;
	printf("%-20s %6.2f ms\n", "both agents", static_cast<double>(agents) / 1e6);
	EXPECT_LT(agents, sanitized() ? 20 * kIdleCpu : 2 * kIdleCpu);
}

/* ---- wake-ups ------------------------------------------------------------------------------- */

constexpr int64_t kLate = 100000000;
constexpr size_t kStills = 10; /* of the two players, and of up to eight processors */
enum { ROUNDS = 100, OUTLIERS, EXCUSED, WORST, NOTIFIED, PIDS, STILLS = PIDS + 2 };

/* Ping-pong; each turn this side waits in another way, after working for a random while. */
class Player {
public:
	Player(const std::string &device, bool first)
	    : still(standstill(STILLS + 2 * first)), nic(device), starts(first), slab(nic, 8, 64),
	      random(first ? 5 : 6)
	{
		NEED_RC(VIP_SUCCESS, VipCreateCQ(nic, 8, &cq));
		plain = std::make_unique<Vi>(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
		queued = std::make_unique<Vi>(nic, attrs(VIP_SERVICE_RELIABLE_RECEPTION), nullptr,
					      cq);
		for (size_t i = 0; i < 2; i++)
			post_recv(i ? *queued : *plain, slab, slab.fill(i, 64));
	}

	~Player()
	{
		plain.reset();
		queued.reset();
		VipDestroyCQ(cq);
	}

	void connect(unsigned host)
	{
		for (Vi *vi : { plain.get(), queued.get() }) {
			std::string disc = vi == plain.get() ? "plain" : "queued";
			NEED_RC(VIP_SUCCESS,
				starts ? request(nic, *vi, host, disc) : serve(nic, *vi, disc));
		}
	}

	void play(uint64_t rounds)
	{
		cell(PIDS + starts) = static_cast<uint64_t>(getpid());
		NEED(until([] { return cell(PIDS) != 0 && cell(PIDS + 1) != 0; }));
		for (uint64_t i = 0; i < rounds; i++) {
			bool with_cq = i / 3 % 2;
			if (i % 16 == 0) {
				waited = waited_for_processor();
				faults = both_disk_faults();
			}
			Vi &vi = with_cq ? *queued : *plain;
			if (starts)
				send(vi, i);
			int64_t excused = stood_still(STILLS, kStills), from = now_ns();
			with_cq ? wait_queued() : wait_plain();
			int64_t took = now_ns() - from;
			excused = stood_still(STILLS, kStills) - excused;
			NEED(memcmp(slab.data(with_cq), &i, sizeof(i)) == 0);
			post_recv(vi, slab, slab.fill(with_cq, 64));
			if (!starts)
				send(vi, i);
			note(took, excused);
		}
	}

private:
	void send(Vi &vi, uint64_t number)
	{
		size_t at = 2 + number % 4;
		/* The peer is in its wait, about to sleep, or asleep. */
		compute(static_cast<int64_t>(random.below(100000)));
		memcpy(slab.data(at), &number, sizeof(number));
		post_send(vi, slab, slab.fill(at, 64));
		VIP_DESCRIPTOR *d;
		if (random.below(2)) {
			sent(vi);
			return;
		}
		VIP_RETURN rc = VIP_NOT_DONE;
		while (rc == VIP_NOT_DONE)
			rc = VipSendDone(vi, &d);
		NEED_RC(VIP_SUCCESS, rc);
	}

	void wait_plain()
	{
		static const char *const methods[] = { "VipRecvDone", "VipRecvNotify",
						       "VipRecvWait", "VipRecvWait" };
		VIP_DESCRIPTOR *d = nullptr;
		VIP_RETURN rc = VIP_NOT_DONE;
		uint64_t choice = random.below(4);
		method = methods[choice];
		switch (choice) {
		case 0:
			for (; rc == VIP_NOT_DONE;)
				rc = VipRecvDone(*plain, &d);
			NEED_RC(VIP_SUCCESS, rc);
			break;
		case 1:
			notified = false;
			NEED_RC(VIP_SUCCESS, VipRecvNotify(*plain, this, on_recv));
			notice();
			break;
		default:
			received(*plain);
		}
	}

	void wait_queued()
	{
		static const char *const methods[] = { "VipCQDone", "VipCQNotify", "epoll",
						       "VipCQWait" };
		VIP_VI_HANDLE vi = nullptr;
		VIP_BOOLEAN recv = VIP_FALSE;
		VIP_DESCRIPTOR *d = nullptr;
		VIP_RETURN rc = VIP_NOT_DONE;
		uint64_t choice = random.below(4);
		method = methods[choice];
		switch (choice) {
		case 0:
			for (; rc == VIP_NOT_DONE;)
				rc = VipCQDone(cq, &vi, &recv);
			break;
		case 1:
			notified = false;
			NEED_RC(VIP_SUCCESS, VipCQNotify(cq, this, on_entry));
			notice();
			vi = queued->h;
			recv = VIP_TRUE;
			rc = VIP_SUCCESS;
			break;
		case 2:
			rc = by_epoll(&vi, &recv);
			break;
		default:
			rc = VipCQWait(cq, kSeconds * 1000, &vi, &recv);
		}
		NEED_RC(VIP_SUCCESS, rc);
		NEED(vi == queued->h && recv);
		NEED_RC(VIP_SUCCESS, VipRecvDone(vi, &d));
	}

	VIP_RETURN by_epoll(VIP_VI_HANDLE *vi, VIP_BOOLEAN *recv)
	{
		int fd;
		NEED_RC(VIP_SUCCESS, VipxCQFd(cq, &fd));
		NEED_RC(VIP_SUCCESS, VipxCQArm(cq));
		VIP_RETURN rc = VipCQDone(cq, vi, recv);
		if (rc != VIP_NOT_DONE)
			return rc;
		if (epoll < 0) {
			struct epoll_event event = {};
			event.events = EPOLLIN;
			epoll = epoll_create1(EPOLL_CLOEXEC);
			NEED(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
		}
		NEED(epoll_events(epoll, kSeconds * 1000) == 1);
		return VipCQDone(cq, vi, recv);
	}

	static void on_recv(VIP_PVOID self, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR *)
	{
		static_cast<Player *>(self)->announce();
	}
	static void on_entry(VIP_PVOID self, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN)
	{
		static_cast<Player *>(self)->announce();
	}

	void announce()
	{
		std::lock_guard<std::mutex> guard(lock);
		notified = true;
		changed.notify_one();
	}

	void notice()
	{
		std::unique_lock<std::mutex> guard(lock);
		NEED(changed.wait_for(guard, std::chrono::seconds(kSeconds),
				      [this] { return notified; }));
		cell(NOTIFIED)++;
	}

	static int64_t waited_for_processor()
	{
		return delay_ns(static_cast<pid_t>(cell(PIDS))) +
		       delay_ns(static_cast<pid_t>(cell(PIDS + 1)));
	}

	static uint64_t both_disk_faults()
	{
		return disk_faults(static_cast<pid_t>(cell(PIDS))) +
		       disk_faults(static_cast<pid_t>(cell(PIDS + 1)));
	}

	void note(int64_t took, int64_t excused)
	{
		cell(ROUNDS)++;
		/*
		 * A wait is also long on a machine that has other work to do, stands still, or has
		 * to read a page of the program again.
		 */
		int64_t delayed = took > kLate ? waited_for_processor() - waited : 0;
		if (took > kLate && took - excused - delayed > kLate &&
		    both_disk_faults() == faults) {
			cell(OUTLIERS)++;
			fprintf(stderr,
				"%s waited %.1f ms by %s; nothing ran for %.1f ms, no processor for %.1f ms\n",
				starts ? "first" : "second", static_cast<double>(took) / 1e6,
				method, static_cast<double>(excused) / 1e6,
				static_cast<double>(delayed) / 1e6);
		} else if (took > kLate) {
			cell(EXCUSED)++;
		}
		if (static_cast<uint64_t>(took) > cell(WORST))
			cell(WORST) = static_cast<uint64_t>(took);
	}

	Standstill still;
	Nic nic;
	bool starts;
	Slab slab;
	Random random;
	VIP_CQ_HANDLE cq;
	std::unique_ptr<Vi> plain, queued;
	std::mutex lock;
	std::condition_variable changed;
	bool notified = false;
	int epoll = -1;
	int64_t waited = 0;
	uint64_t faults = 0;
	const char *method = "";
};

ROLE(player)
{
	uint64_t rounds = strtoull(args[2].c_str(), nullptr, 10);
	Await awaited("ping-pong", stress() ? 1200 : 100);
	Player player(args[0], args[1] == "first");
	player.connect(static_cast<unsigned>(atoi(args[3].c_str())));
	player.play(rounds);
	cell(args[1] == "first" ? 98 : 99) = 1;
	NEED(until([] { return cell(98) == 1 && cell(99) == 1; }));
}

static void wake_ups(unsigned hosts, const char *how)
{
	uint64_t rounds = scaled(4000, 200000);
	Await awaited("wake-ups", stress() ? 1300 : 110);
	board_clear();
	auto processors = watch_processors(STILLS + 4, kStills - 2);
	Fabric fabric(hosts);
	std::string host = std::to_string(hosts - 1);
	Env env = { { "VIADUCT_WAIT", how } };
	Process server =
		role("player", { "host" + host, "second", std::to_string(rounds), "0" }, env);
	Process client = role("player", { "host0", "first", std::to_string(rounds), host }, env);
	EXPECT_EQ(0, client.wait(stress() ? 1200 : 100));
	EXPECT_EQ(0, server.wait());
	EXPECT_EQ(2 * rounds, cell(ROUNDS));
	EXPECT_GT(cell(NOTIFIED), 0u);
	printf("%s: %llu rounds, worst wait %.1f ms, %llu over 100 ms, %llu more while "
	       "nothing ran\n",
	       how, static_cast<unsigned long long>(rounds), static_cast<double>(cell(WORST)) / 1e6,
	       static_cast<unsigned long long>(cell(OUTLIERS)),
	       static_cast<unsigned long long>(cell(EXCUSED)));
	/* A check by the clock, which makes up for lost doorbells, comes after up to 256 ms. */
	EXPECT_EQ(0u, cell(OUTLIERS));
}

TEST(Wake, NoneIsLostOnOneHost)
{
	wake_ups(1, "adaptive");
}

TEST(Wake, NoneIsLostBetweenHosts)
{
	wake_ups(2, "adaptive");
}

TEST(Wake, NoneIsLostWhenWaitsSleepAtOnce)
{
	wake_ups(2, "block");
}

/* ---- one-sided ------------------------------------------------------------------------------ */

enum { ADDRESS = 200, HANDLE, STATE, FINISHED };
constexpr size_t kTarget = 4u << 20;

/* Owns the memory and makes no call while the other side writes and reads. */
ROLE(target)
{
	Await awaited("the target of one-sided transfers", 60);
	bool busy = args[0] == "computes";
	Nic nic("host1");
	Slab slab(nic, 1, kTarget, true);
	Vi vi(nic, attrs(VIP_SERVICE_RELIABLE_RECEPTION, kTarget, true));
	cell(ADDRESS) = reinterpret_cast<uintptr_t>(slab.data(0));
	cell(HANDLE) = slab.h;
	NEED_RC(VIP_SUCCESS, serve(nic, vi, "target"));
	cell(STATE) = 1;
	while (cell(FINISHED) == 0) {
		if (busy)
			compute(1000000);
		else
			NEED(until([] { return cell(FINISHED) != 0; }));
	}
}

static void one_sided(const char *state)
{
	Await awaited("one-sided transfers", 60);
	board_clear();
	Fabric fabric(2);
	Process target = role("target", { state });
	int64_t worst = 0;
	{
		Nic nic("host0");
		Slab slab(nic, 2, kTarget, true);
		Vi vi(nic, attrs(VIP_SERVICE_RELIABLE_RECEPTION, kTarget, true));
		NEED_RC(VIP_SUCCESS, request(nic, vi, 1, "target"));
		NEED(until([] { return cell(STATE) == 1; }));
		Random random(9);
		for (uint64_t i = 0; i < scaled(100, 5000); i++) {
			size_t length = i % 10 ? 1 + random.below(10000)
					       : kTarget - random.below(4096);
			memset(slab.data(0), static_cast<int>(i), length);
			memset(slab.data(1), ~static_cast<int>(i), length);
			int64_t from = now_ns();
			VIP_MEM_HANDLE handle = static_cast<VIP_MEM_HANDLE>(cell(HANDLE).load());
			post_send(vi, slab,
				  slab.fill_rdma(0, length, VIP_CONTROL_OP_RDMAWRITE, cell(ADDRESS),
						 handle));
			post_send(vi, slab,
				  slab.fill_rdma(1, length, VIP_CONTROL_OP_RDMAREAD, cell(ADDRESS),
						 handle));
			sent(vi);
			sent(vi);
			worst = std::max(worst, now_ns() - from);
			ASSERT_EQ(0, memcmp(slab.data(0), slab.data(1), length)) << i;
		}
		cell(FINISHED) = 1;
	}
	EXPECT_EQ(0, target.wait());
	printf("target %s: slowest write and read %.1f ms\n", state,
	       static_cast<double>(worst) / 1e6);
}

TEST(OneSided, TargetThatComputes)
{
	one_sided("computes");
}

TEST(OneSided, TargetThatIsBlockedElsewhere)
{
	one_sided("blocked");
}
