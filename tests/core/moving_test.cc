/* SPDX-License-Identifier: BSD-2-Clause */
/* A service thread leaves a core that another thread uses, by the loads that the kernel tells, in real time. */
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>

#include "eventually.h"
#include "fake.h"
#include "two_cores.h"

extern "C" {
#include "u_load.h"
}

namespace {

void burn(const std::atomic<bool> &ends)
{
	while (!ends)
		;
}

void hold(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
}

/* How much of each processor was used since then, in thousandths. */
std::vector<uint16_t> used_since(const u_load &before)
{
	auto now = std::make_unique<u_load>();
	std::vector<uint16_t> out(U_CPUSET_END);

	EXPECT_EQ(u_load_read(U_LOAD_FILE, now.get()), 0);
	u_load_between(&before, now.get(), out.data());
	return out;
}

} // namespace

TEST(Moving, AThreadLeavesACrowdedCore)
{
	std::vector<int> two = two_cores();
	std::atomic<bool> ends{ false };
	std::atomic<int> at{ -1 };
	VIP_NIC_HANDLE nic;

	if (two.empty())
		GTEST_SKIP() << "one core";
	auto before = std::make_unique<u_load>();
	ASSERT_EQ(u_load_read(U_LOAD_FILE, before.get()), 0);
	ASSERT_EQ(VIP_SUCCESS, VipOpenNic("fake", &nic));
	std::string rules =
		"service=" + std::to_string(two[0]) + "," + std::to_string(two[1]) + ";dynamic";
	ASSERT_EQ(VIP_SUCCESS, VipxSetAffinity(nic, rules.c_str()));
	std::thread service([&] {
		EXPECT_EQ(VIP_SUCCESS, VipxPlaceThread(nic, VIPX_ROLE_SERVICE, 0, 1, 0, nullptr));
		while (!ends)
			at = sched_getcpu();
	});
	eventually([&] { return at == two[0]; });
	std::thread other([&] {
		hold(two[0]);
		burn(ends);
	});
	bool moved = eventually([&] { return at == two[1]; });
	ends = true;
	service.join();
	other.join();
	EXPECT_EQ(VIP_SUCCESS, VipCloseNic(nic));
	if (!moved && used_since(*before)[two[1]] > 200)
		GTEST_SKIP() << "other programs use the second core, too";
	EXPECT_TRUE(moved);
}
