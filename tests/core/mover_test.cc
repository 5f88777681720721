/* SPDX-License-Identifier: BSD-2-Clause */
/* Service threads that the library moves by load: what the rules, the kernel and other threads have to do with it. */
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "eventually.h"
#include "fake.h"
#include "two_cores.h"

extern "C" {
#include "vi_mover.h"
}

namespace {

/* A thread that calls VipxPlaceThread() as a service thread, and waits. */
class Service {
public:
	Service(VIP_NIC_HANDLE nic, VIP_ULONG index, VIP_ULONG count)
	    : thread([this, nic, index, count] {
		      std::unique_lock<std::mutex> guard(lock);

		      rc = VipxPlaceThread(nic, VIPX_ROLE_SERVICE, index, count, 0, nullptr);
		      tid = static_cast<int>(syscall(SYS_gettid));
		      changed.notify_all();
		      changed.wait(guard, [this] { return ends; });
	      })
	{
		std::unique_lock<std::mutex> guard(lock);

		changed.wait(guard, [this] { return tid != 0; });
	}
	~Service() { end(); }
	Service(const Service &) = delete;
	void end()
	{
		if (!thread.joinable())
			return;
		{
			std::lock_guard<std::mutex> guard(lock);
			ends = true;
		}
		changed.notify_all();
		thread.join();
	}
	std::vector<int> cpus() const { return cpus_of(tid); }
	int tid = 0;
	VIP_RETURN rc = VIP_ERROR_RESOURCE;

private:
	std::mutex lock;
	std::condition_variable changed;
	bool ends = false;
	std::thread thread;
};

/* A NIC with rules; the intervals are the test's. */
struct Mover : testing::Test {
	void SetUp() override
	{
		two = two_cores();
		if (two.empty())
			GTEST_SKIP() << "one core";
		ASSERT_EQ(VIP_SUCCESS, VipOpenNic("fake", &nic));
	}
	void TearDown() override
	{
		if (nic != nullptr) {
			EXPECT_EQ(VIP_SUCCESS, VipCloseNic(nic));
		}
	}
	/* A place of two processors. */
	std::string rules(const std::string &more = ";dynamic") const
	{
		return "service=" + std::to_string(two[0]) + "," + std::to_string(two[1]) + more;
	}
	/* An interval in which the first processor was used in full, by each service thread a fifth of it. */
	void interval()
	{
		vi_mover *m = fake_mover(nic);

		std::fill(std::begin(m->used), std::end(m->used), uint16_t(0));
		m->used[two[0]] = 1000;
		for (unsigned i = 0; i < m->count; i++)
			m->threads[i].used = 200;
		vi_mover_step(m);
	}
	std::vector<int> two;
	VIP_NIC_HANDLE nic = nullptr;
};

using Set = std::vector<int>;

/* The lock of placement, against the library's own intervals. */
struct Held {
	explicit Held(VIP_NIC_HANDLE of) : nic(of) { fake_place_lock(nic); }
	~Held() { fake_place_unlock(nic); }
	Held(const Held &) = delete;
	VIP_NIC_HANDLE nic;
};

} // namespace

TEST_F(Mover, NothingMovesUnlessAskedFor)
{
	ASSERT_EQ(VIP_SUCCESS, VipxSetAffinity(nic, rules("").c_str()));
	Service service(nic, 0, 1);

	EXPECT_EQ(service.rc, VIP_SUCCESS);
	EXPECT_EQ(service.cpus(), two);
	EXPECT_EQ(fake_mover(nic), nullptr);
}

TEST_F(Mover, ACrowdedThreadMoves)
{
	ASSERT_EQ(VIP_SUCCESS, VipxSetAffinity(nic, rules().c_str()));
	Service service(nic, 0, 1);

	EXPECT_EQ(service.rc, VIP_SUCCESS);
	EXPECT_EQ(service.cpus(), Set{ two[0] });
	Held held(nic);
	ASSERT_NE(fake_mover(nic), nullptr);
	interval();
	EXPECT_EQ(service.cpus(), Set{ two[0] }) << "one interval is not enough";
	interval();
	EXPECT_EQ(service.cpus(), Set{ two[1] });
}

TEST_F(Mover, AThreadThatHasEndedIsForgotten)
{
	ASSERT_EQ(VIP_SUCCESS, VipxSetAffinity(nic, rules().c_str()));
	Service one(nic, 0, 2), other(nic, 1, 2);

	{
		Held held(nic);
		ASSERT_EQ(fake_mover(nic)->count, 2u);
		EXPECT_EQ(fake_mover(nic)->number[0], one.tid);
	}
	one.end();
	/* The kernel forgets it a moment after it was joined. */
	eventually([&] {
		return access(("/proc/self/task/" + std::to_string(one.tid)).c_str(), F_OK) != 0;
	});
	Held held(nic);
	interval();
	interval();
	ASSERT_EQ(fake_mover(nic)->count, 1u);
	EXPECT_EQ(fake_mover(nic)->number[0], other.tid);
}

TEST_F(Mover, OtherRulesEndIt)
{
	ASSERT_EQ(VIP_SUCCESS, VipxSetAffinity(nic, rules().c_str()));
	Service service(nic, 0, 1);

	EXPECT_NE(fake_mover(nic), nullptr);
	ASSERT_EQ(VIP_SUCCESS, VipxSetAffinity(nic, "none"));
	EXPECT_EQ(fake_mover(nic), nullptr);
	EXPECT_EQ(service.cpus(), Set{ two[0] }) << "it stays where it is";
	ASSERT_EQ(VIP_SUCCESS, VipxSetAffinity(nic, rules().c_str()));
	EXPECT_EQ(fake_mover(nic), nullptr) << "no thread has asked since";
}

TEST_F(Mover, AThreadCountsOnce)
{
	ASSERT_EQ(VIP_SUCCESS, VipxSetAffinity(nic, rules().c_str()));
	std::thread([&] {
		for (VIP_ULONG i = 0; i < 3; i++) {
			EXPECT_EQ(VIP_SUCCESS,
				  VipxPlaceThread(nic, VIPX_ROLE_SERVICE, i, 4, 0, nullptr));
			Held held(nic);
			EXPECT_EQ(fake_mover(nic)->count, 1u);
			EXPECT_EQ(fake_mover(nic)->index[0], i);
		}
	}).join();
}

TEST_F(Mover, TooManyThreadsStayWhereTheyAre)
{
	std::vector<std::unique_ptr<Service>> all_of_them;

	ASSERT_EQ(VIP_SUCCESS, VipxSetAffinity(nic, rules().c_str()));
	for (VIP_ULONG i = 0; i < VI_MOVER_MOST + 2; i++) {
		all_of_them.push_back(std::make_unique<Service>(nic, i, VI_MOVER_MOST + 2));
		EXPECT_EQ(all_of_them.back()->rc, VIP_SUCCESS);
	}
	Held held(nic);
	EXPECT_EQ(fake_mover(nic)->count, unsigned(VI_MOVER_MOST));
}

TEST_F(Mover, RulesThatAreRefused)
{
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxSetAffinity(nic, "dynamic"));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxSetAffinity(nic, "service=none;dynamic"));
	EXPECT_EQ(VIP_INVALID_PARAMETER, VipxSetAffinity(nic, "service=same-core;dynamic"));
}
