/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that stores anything into all registers of its host and of the neighbours that it
 * is handed: other processes still see the true state, and agents reach each other.
 */
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "open_fds.h"
#include "probes.h"
#include "rig.h"

extern "C" {
#include "port_emu_priv.h"
}

namespace {

constexpr uint32_t kAgentBit = 0x1, kBit = 0x4;

/* Everything a process with a NIC on host `end` may map, and how it may map it. */
std::vector<int> handed_out(Rig &rig, int end)
{
	char text[PORT_VIEW_MAX];
	int fds[PORT_ATTACH_FDS];
	unsigned int nfds = 0;
	std::vector<int> all = { port_host_doorbells_fd(rig.host[end]),
				 port_host_status_fd(rig.host[end]) };

	EXPECT_EQ(port_export_view(rig.agent[end], text, sizeof(text), fds, &nfds), 0);
	all.insert(all.end(), fds, fds + nfds);
	return all;
}

/* Threads that scribble over all pages they can map writable, until they end. */
class Scribblers {
public:
	explicit Scribblers(const std::vector<int> &fds)
	{
		for (int fd : fds) {
			void *at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

			if (at != MAP_FAILED)
				pages_.push_back(static_cast<std::atomic<uint32_t> *>(at));
		}
		for (int how = 0; how < 3; how++)
			threads_.emplace_back([this, how] { run(how); });
		while (rounds_ < 6)
			std::this_thread::yield();
	}

	~Scribblers()
	{
		stop_ = true;
		for (auto &t : threads_)
			t.join();
		for (auto *page : pages_)
			munmap(page, 4096);
	}

	size_t pages() const { return pages_.size(); }

private:
	/* Stores nothing, everything, or anything. */
	void run(int how)
	{
		std::minstd_rand random(static_cast<unsigned>(how));

		while (!stop_) {
			for (auto *page : pages_) {
				for (int i = 0; i < 1024; i++)
					page[i].store(how == 0	 ? 0
						      : how == 1 ? ~0u
								 : static_cast<uint32_t>(random()),
						      std::memory_order_relaxed);
			}
			rounds_++;
			std::this_thread::yield();
		}
	}

	std::vector<std::atomic<uint32_t> *> pages_;
	std::atomic<uint32_t> rounds_{ 0 };
	std::atomic<bool> stop_{ false };
	std::vector<std::thread> threads_;
};

class Scribble : public testing::TestWithParam<bool> {
protected:
	Scribble() : rig({ GetParam() ? "self" : "pair", "emu", true }, limits()) {}

	static Rig::Limits limits()
	{
		Rig::Limits l;

		l.agent_bits = kAgentBit;
		return l;
	}

	/* Agent 0 rings agent 1, which sleeps until then. */
	void agents_ring()
	{
		struct port_irq *irq = port_host_agent_irq(rig.host[1]);
		bool woken = true;

		std::thread sleeper([&] {
			uint32_t ticket = port_irq_ticket(irq);

			while (woken && !(port_db_read(rig.agent[1]) & kAgentBit)) {
				woken = port_irq_wait(irq, ticket, kAgentBit, kPatience) == 0;
				ticket = port_irq_ticket(irq);
			}
		});
		port_peer_db_ring(rig.agent[0], kAgentBit);
		sleeper.join();
		EXPECT_TRUE(woken);
		EXPECT_EQ(port_db_read(rig.agent[1]) & kAgentBit, kAgentBit);
		port_db_clear(rig.agent[1], kAgentBit);
		EXPECT_EQ(port_db_read(rig.agent[1]) & kAgentBit, 0u);
	}

	/* A process rings one that sleeps. */
	void processes_ring()
	{
		struct port_irq *irq = rig.user[1]->irq;
		uint32_t ticket = port_irq_ticket(irq);
		int rc = 0;

		port_db_clear(rig.user[1], kBit);
		std::thread sleeper([&] { rc = port_irq_wait(irq, ticket, kBit, kPatience); });
		port_peer_db_ring(rig.user[0], kBit);
		sleeper.join();
		EXPECT_EQ(rc, 0);
		EXPECT_EQ(port_db_read(rig.user[1]) & kBit, kBit);
	}

	Rig rig;
};

INSTANTIATE_TEST_SUITE_P(Links, Scribble, testing::Values(true, false),
			 [](const testing::TestParamInfo<bool> &i) {
				 return i.param ? "self" : "pair";
			 });

TEST_P(Scribble, ChangesNothingThatOthersBelieve)
{
	uint32_t generation[2] = {}, now = 0;
	std::vector<int> fds = handed_out(rig, 0);

	for (int end = 0; end < 2; end++) {
		ASSERT_EQ(port_link_state(rig.user[end], &generation[end]), PORT_LINK_UP);
		ASSERT_EQ(port_spad_write(rig.agent[end], 3, 33), 0);
	}
	{
		Scribblers all(fds);

		EXPECT_EQ(all.pages(), fds.size() - 1) << "all but the status";
		for (int i = 0; i < 2000; i++) {
			for (int end = 0; end < 2; end++) {
				ASSERT_EQ(port_link_state(rig.user[end], &now), PORT_LINK_UP);
				ASSERT_EQ(now, generation[end]);
				ASSERT_EQ(port_spad_read(rig.agent[end], 3), 33u);
			}
			/* A client that attaches now is served as before. */
			if (i % 100 == 0) {
				struct port *view = rig.attach(1);

				ASSERT_EQ(port_link_state(view, nullptr), PORT_LINK_UP);
			}
		}
		for (int i = 0; i < 200; i++)
			agents_ring();
	}
	for (int i = 0; i < 200; i++)
		processes_ring();
}

/* The wake-up of a sleeper may be prevented, but it does not sleep longer than its limit. */
TEST_P(Scribble, KeepsNobodyAsleepForLong)
{
	Scribblers all(handed_out(rig, 0));

	for (int i = 0; i < 50; i++) {
		int64_t begin = u_now_ns();

		port_irq_wait(rig.user[1]->irq, port_irq_ticket(rig.user[1]->irq), kBit, 1000000);
		EXPECT_LT(u_now_ns() - begin, kPatience);
	}
}

TEST_P(Scribble, ProcessesCannotRingTheAgents)
{
	uint32_t ticket = port_irq_ticket(port_host_agent_irq(rig.host[1]));

	port_peer_db_ring(rig.user[0], kAgentBit | kBit);
	EXPECT_EQ(port_db_read(rig.user[1]) & kBit, kBit);
	EXPECT_EQ(port_db_read(rig.agent[1]) & kBit, kBit) << "transfer threads are rung by all";
	EXPECT_EQ(port_db_read(rig.agent[1]) & kAgentBit, 0u);
	EXPECT_EQ(port_irq_ticket(port_host_agent_irq(rig.host[1])), ticket);
}

/* A process that has the status cannot get a writable mapping of it, nor change its bytes. */
TEST(ScribbleStatus, IsSealed)
{
	struct port_emu_host *host = nullptr;
	int before = open_fds();

	ASSERT_EQ(port_emu_host_create(&host), 0);
	int fd = port_emu_host_status_fd(host);
	std::string path = "/proc/self/fd/" + std::to_string(fd);
	int again = open(path.c_str(), O_RDWR | O_CLOEXEC);

	for (int one : { fd, again }) {
		if (one < 0)
			continue; /* no /proc here */
		EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, one, 0),
			  MAP_FAILED);
		void *at = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, one, 0);
		ASSERT_NE(at, MAP_FAILED);
		EXPECT_NE(mprotect(at, 4096, PROT_READ | PROT_WRITE), 0);
		if (probe_madvise_remove()) {
			EXPECT_NE(madvise(at, 4096, MADV_REMOVE), 0);
		}
		munmap(at, 4096);
		EXPECT_LT(pwrite(one, "x", 1, 128), 0);
		EXPECT_NE(ftruncate(one, 0), 0);
		EXPECT_NE(ftruncate(one, 8192), 0);
		EXPECT_NE(fallocate(one, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
		EXPECT_NE(fcntl(one, F_ADD_SEALS, F_SEAL_WRITE), 0);
	}
	/* No process can keep later processes from ringing either. */
	EXPECT_NE(fcntl(port_emu_host_doorbells_fd(host), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	EXPECT_NE(ftruncate(port_emu_host_doorbells_fd(host), 0), 0);
	if (again >= 0)
		close(again);
	port_emu_host_destroy(host);
	EXPECT_EQ(open_fds(), before);
}

} // namespace
