/* SPDX-License-Identifier: BSD-2-Clause */
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" {
#include "u_processors.h"
}

namespace {

u_processors process(std::initializer_list<int> cpus, uint64_t group = 0, uint32_t quota = 0)
{
	u_processors p = {};

	p.machine = 7;
	p.group = group;
	p.quota = quota;
	for (int cpu : cpus)
		p.cpus[cpu / 64] |= UINT64_C(1) << cpu % 64;
	p.count = (uint32_t)cpus.size();
	return p;
}

bool crowded(const std::vector<u_processors> &all, size_t me)
{
	u_processors_crowd c;

	u_processors_crowd_begin(&c, &all[me]);
	for (const u_processors &p : all)
		u_processors_crowd_add(&c, &p);
	return u_processors_crowd_is(&c);
}

TEST(ProcessorsCrowd, AffinityDecides)
{
	EXPECT_FALSE(crowded({ process({ 0, 1 }), process({ 0, 1 }) }, 0));
	EXPECT_TRUE(crowded({ process({ 0 }), process({ 0 }) }, 0));
	EXPECT_TRUE(crowded({ process({ 0, 1 }), process({ 0, 1 }), process({ 0, 1 }) }, 2));
}

TEST(ProcessorsCrowd, ProcessesThatAreBoundApartDoNotShare)
{
	std::vector<u_processors> all;

	for (int cpu = 0; cpu < 300; cpu += 3)
		all.push_back(process({ cpu }));
	for (size_t me = 0; me < all.size(); me++)
		EXPECT_FALSE(crowded(all, me));
}

TEST(ProcessorsCrowd, SomeShareAndOthersDoNot)
{
	std::vector<u_processors> all = { process({ 0 }), process({ 0 }),
					  process({ 0, 1, 2, 3, 4, 5 }) };

	EXPECT_TRUE(crowded(all, 0));
	EXPECT_TRUE(crowded(all, 1));
	EXPECT_FALSE(crowded(all, 2));
}

TEST(ProcessorsCrowd, SetsThatOverlap)
{
	EXPECT_FALSE(crowded({ process({ 0, 1 }), process({ 1, 2 }), process({ 0, 2 }) }, 0));
	EXPECT_TRUE(crowded(
		{ process({ 0, 1 }), process({ 1, 2 }), process({ 0, 2 }), process({ 0, 1 }) }, 0));
}

TEST(ProcessorsCrowd, OtherMachinesDoNotCount)
{
	u_processors other = process({ 0 });

	other.machine = 8;
	EXPECT_FALSE(crowded({ process({ 0 }), other }, 0));
}

TEST(ProcessorsCrowd, QuotaOfOneGroup)
{
	EXPECT_TRUE(crowded({ process({ 0, 1 }, 5, 1500), process({ 0, 1 }, 5, 1500) }, 0));
	EXPECT_FALSE(crowded({ process({ 0, 1 }, 5, 2000), process({ 0, 1 }, 5, 2000) }, 0));
	EXPECT_FALSE(crowded({ process({ 0, 1 }, 5, 1000), process({ 0, 1 }, 6, 1000) }, 0));
}

TEST(ProcessorsCrowd, NothingKnown)
{
	EXPECT_FALSE(crowded({ process({}), process({}) }, 0));
}

class Quota : public testing::Test {
protected:
	char folder[32] = "/tmp/processorsXXXXXX";
	uint64_t group = 9;
	uint32_t quota = 9;

	void SetUp() override { ASSERT_NE(mkdtemp(folder), nullptr); }
	void TearDown() override
	{
		std::string command = std::string("rm -r ") + folder;

		EXPECT_EQ(system(command.c_str()), 0);
	}
	std::string at(const std::string &name) { return std::string(folder) + "/" + name; }
	void write(const std::string &name, const std::string &text)
	{
		for (size_t i = 0; (i = name.find('/', i)) != std::string::npos; i++)
			mkdir(at(name.substr(0, i)).c_str(), 0700);
		std::ofstream(at(name)) << text;
	}
	void mount(const std::string &root, const std::string &point, const std::string &rest)
	{
		std::ofstream(at("mountinfo"), std::ios::app)
			<< "31 23 0:28 " << root << " " << at(point) << " rw,relatime shared:1 - "
			<< rest << "\n";
	}
	bool read() { return u_processors_quota(folder, &group, &quota); }
};

TEST_F(Quota, NoControlGroups)
{
	EXPECT_FALSE(read());
	write("mountinfo", "1 1 0:1 / /proc rw - proc proc rw\nnot a line\n");
	write("cgroup", "nothing\n0::/a\n");
	EXPECT_FALSE(read());
	EXPECT_EQ(quota, 0u);
}

TEST_F(Quota, SecondVersionTakesTheSmallestOfTheWayUp)
{
	uint64_t parent;

	write("cgroup", "1:name=systemd:/x\n0::/a/b\n");
	mount("/", "two", "cgroup2 cgroup2 rw");
	write("two/a/b/cpu.max", "max 100000\n");
	EXPECT_FALSE(read());
	write("two/a/cpu.max", "150000 100000\n");
	ASSERT_TRUE(read());
	EXPECT_EQ(quota, 1500u);
	parent = group;
	write("two/a/b/cpu.max", "50000 100000\n");
	ASSERT_TRUE(read());
	EXPECT_EQ(quota, 500u);
	EXPECT_NE(group, parent);
	write("two/a/b/cpu.max", "300000 100000\n");
	ASSERT_TRUE(read());
	EXPECT_EQ(quota, 1500u);
	EXPECT_EQ(group, parent);
}

TEST_F(Quota, FirstVersion)
{
	write("cgroup", "3:cpuset:/c\n2:cpu,cpuacct:/d/e\n0::/\n");
	mount("/", "memory", "cgroup cgroup rw,memory");
	mount("/", "one", "cgroup cgroup rw,cpu,cpuacct");
	write("one/d/e/cpu.cfs_quota_us", "-1\n");
	write("one/d/e/cpu.cfs_period_us", "100000\n");
	EXPECT_FALSE(read());
	write("one/d/e/cpu.cfs_quota_us", "200000\n");
	ASSERT_TRUE(read());
	EXPECT_EQ(quota, 2000u);
}

TEST_F(Quota, ContainerSeesItsPartAlone)
{
	write("cgroup", "2:cpu:/docker/f00\n");
	mount("/docker/f00", "one", "cgroup cgroup rw,cpu");
	write("one/cpu.cfs_quota_us", "1000\n");
	write("one/cpu.cfs_period_us", "100000\n");
	ASSERT_TRUE(read());
	EXPECT_EQ(quota, 10u);
	write("cgroup", "2:cpu:/elsewhere\n");
	ASSERT_TRUE(read());
	EXPECT_EQ(quota, 10u);
}

TEST(Processors, CountFollowsAffinity)
{
	unsigned int n = 0;

	std::thread([&] {
		cpu_set_t all, one;

		ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
		CPU_ZERO(&one);
		for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++) {
			if (CPU_ISSET(cpu, &all))
				CPU_SET(cpu, &one);
		}
		ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
		n = u_processors_count();
	}).join();
	EXPECT_EQ(n, 1u);
	EXPECT_GE(u_processors_count(), 1u);
}

} // namespace
