/* SPDX-License-Identifier: BSD-2-Clause */
/* VipxSetAffinity, VipxQueryPlacement, VipxPlaceThread: threads on processors, by rules. */
#include "harness.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include <dirent.h>
#include <sched.h>
#include <unistd.h>

using namespace conf;

namespace {

using Set = std::vector<int>;

Set cpus_of(pid_t tid)
{
	cpu_set_t set;
	Set out;

	EXPECT_EQ(0, sched_getaffinity(tid, sizeof(set), &set));
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			out.push_back(cpu);
	return out;
}

std::vector<pid_t> threads(const std::string &name)
{
	std::vector<pid_t> out;
	DIR *dir = opendir("/proc/self/task");

	while (dirent *e = readdir(dir)) {
		std::string comm;
		std::ifstream(std::string("/proc/self/task/") + e->d_name + "/comm") >> comm;
		if (comm == name)
			out.push_back(atoi(e->d_name));
	}
	closedir(dir);
	return out;
}

/* A NIC of its own, and the thread that was started with it. */
struct Own {
	Own()
	{
		auto before = threads("vi-xfer");
		EXPECT_RC(VIP_SUCCESS, VipOpenNic("nic0", &h));
		/* A thread gets its name a moment after its start. */
		eventually([&] { return threads("vi-xfer").size() > before.size(); });
		for (pid_t tid : threads("vi-xfer"))
			if (std::find(before.begin(), before.end(), tid) == before.end())
				engine = tid;
		EXPECT_NE(0, engine);
	}
	~Own() { EXPECT_RC(VIP_SUCCESS, VipCloseNic(h)); }
	Own(const Own &) = delete;

	VIPX_PLACEMENT placement(VIP_ULONG role = VIPX_ROLE_TRANSFER)
	{
		VIPX_PLACEMENT p{};
		p.Size = sizeof(p);
		EXPECT_RC(VIP_SUCCESS, VipxQueryPlacement(h, role, &p));
		EXPECT_EQ(sizeof(p), p.Size);
		return p;
	}

	VIP_NIC_HANDLE h = nullptr;
	pid_t engine = 0;
};

std::string last_cpu()
{
	return std::to_string(cpus_of(0).back());
}

const std::string kBeyond = "8191"; /* no machine has that many */

} // namespace

TEST(Affinity, NothingIsPlacedUnasked)
{
	RULE("vipl_ext VipxQueryPlacement: without rules no thread is placed");
	Own own;
	Set all = cpus_of(getpid());

	EXPECT_EQ(all, cpus_of(own.engine));
	for (VIP_ULONG role : { VIPX_ROLE_APPLICATION, VIPX_ROLE_TRANSFER }) {
		VIPX_PLACEMENT p = own.placement(role);
		EXPECT_EQ(VIP_ULONG(VIPX_PLACE_ANYWHERE), p.Asked);
		EXPECT_EQ(VIP_ULONG(VIPX_PLACE_ANYWHERE), p.Got);
		EXPECT_EQ(VIP_ULONG(VIP_TRUE), p.AsAsked);
		EXPECT_STREQ("", p.Cpus);
		EXPECT_STREQ("not placed", p.Text);
	}
}

TEST(Affinity, TheThreadOfTheLibraryMovesAndNoOther)
{
	RULE("vipl_ext VipxSetAffinity: moves the transfer thread, and back; never the caller unasked");
	Own own;
	Set all = cpus_of(0);

	EXPECT_RC(VIP_SUCCESS, VipxSetAffinity(own.h, ("transfer=" + last_cpu()).c_str()));
	EXPECT_EQ(Set{ all.back() }, cpus_of(own.engine));
	EXPECT_EQ(all, cpus_of(0));
	VIPX_PLACEMENT p = own.placement();
	EXPECT_EQ(VIP_ULONG(VIPX_PLACE_LIST), p.Got);
	EXPECT_EQ(last_cpu(), p.Cpus);
	EXPECT_EQ("processor " + last_cpu() + "; asked " + last_cpu() + ", got these", p.Text);
	EXPECT_EQ(VIP_ULONG(VIP_TRUE), p.AsAsked);

	EXPECT_RC(VIP_SUCCESS, VipxSetAffinity(own.h, "none"));
	EXPECT_EQ(all, cpus_of(own.engine));
	EXPECT_STREQ("not placed", own.placement().Text);
}

TEST(Affinity, TheCallerMovesByTheRuleForTheApplicationOnly)
{
	RULE("vipl_ext VipxSetAffinity: a rule for application moves the calling thread");
	Own own;
	Set all = cpus_of(getpid());

	std::thread([&] {
		EXPECT_RC(VIP_SUCCESS,
			  VipxSetAffinity(own.h, ("application=" + last_cpu()).c_str()));
		EXPECT_EQ(Set{ all.back() }, cpus_of(0));
	}).join();
	EXPECT_EQ(all, cpus_of(0));
	EXPECT_EQ(all, cpus_of(own.engine));
	EXPECT_EQ(last_cpu(), own.placement(VIPX_ROLE_APPLICATION).Cpus);
}

TEST(Affinity, WhatCannotBeHad)
{
	RULE("vipl_ext VipxSetAffinity: what cannot be had is said; with strict it is refused, and nothing changes");
	Own own;
	Set all = cpus_of(getpid());

	EXPECT_RC(VIP_SUCCESS, VipxSetAffinity(own.h, ("transfer=" + kBeyond).c_str()));
	VIPX_PLACEMENT p = own.placement();
	EXPECT_EQ(VIP_ULONG(VIPX_PLACE_LIST), p.Asked);
	EXPECT_EQ(VIP_ULONG(VIPX_PLACE_ANYWHERE), p.Got);
	EXPECT_EQ(VIP_ULONG(VIP_FALSE), p.AsAsked);
	EXPECT_STREQ("", p.Cpus);
	EXPECT_NE(nullptr, strstr(p.Text, "not placed; asked 8191")) << p.Text;
	EXPECT_EQ(all, cpus_of(own.engine));

	EXPECT_RC(VIP_SUCCESS, VipxSetAffinity(own.h, ("transfer=" + last_cpu()).c_str()));
	EXPECT_RC(VIP_ERROR_RESOURCE,
		  VipxSetAffinity(own.h, ("strict;transfer=" + kBeyond).c_str()));
	EXPECT_EQ(Set{ all.back() }, cpus_of(own.engine));
	EXPECT_EQ(last_cpu(), own.placement().Cpus);
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxSetAffinity(own.h, "transfer=nowhere"));
	EXPECT_EQ(last_cpu(), own.placement().Cpus);
}

TEST(Affinity, Relations)
{
	RULE("vipl_ext VipxSetAffinity: places lie within what the process may use");
	Own own;
	Set all = cpus_of(getpid());

	for (const char *place :
	     { "same-core", "shared-cache", "same-package", "other-package", "device" }) {
		EXPECT_RC(VIP_SUCCESS,
			  VipxSetAffinity(own.h, (std::string("transfer=") + place).c_str()));
		VIPX_PLACEMENT p = own.placement();
		for (int cpu : cpus_of(own.engine))
			EXPECT_NE(all.end(), std::find(all.begin(), all.end(), cpu)) << place;
		EXPECT_STRNE("", p.Text);
		EXPECT_EQ(all, cpus_of(0)) << place;
	}
}

/* The calling thread, bound to one processor, has a place to which others are relative. */
TEST(Affinity, SameCoreAsABoundThread)
{
	RULE("vipl_ext VipxSetAffinity: relations are to the calling thread");
	Own own;

	std::thread([&] {
		VIPX_PLACEMENT p;
		EXPECT_RC(VIP_SUCCESS,
			  VipxSetAffinity(own.h, ("application=" + last_cpu()).c_str()));
		EXPECT_RC(VIP_SUCCESS, VipxSetAffinity(own.h, "transfer=same-core"));
		p = own.placement();
		if (strstr(p.Text, "hwloc") != nullptr)
			return; /* not installed: the reason is given, and nothing is placed */
		EXPECT_EQ(VIP_ULONG(VIPX_PLACE_SAME_CORE), p.Got) << p.Text;
		EXPECT_EQ(VIP_ULONG(VIP_TRUE), p.AsAsked) << p.Text;
		EXPECT_EQ(p.Cpus, std::to_string(cpus_of(own.engine)[0]));
	}).join();
}

TEST(Affinity, ServiceThreads)
{
	RULE("vipl_ext VipxPlaceThread: binds the caller by the rule for its role, in turn");
	Own own;
	Set all = cpus_of(getpid());
	std::string list = std::to_string(all.front()) + "," + last_cpu();

	EXPECT_RC(VIP_SUCCESS, VipxSetAffinity(own.h, ("service=" + list).c_str()));
	for (VIP_ULONG i = 0; i < 4; i++) {
		std::thread([&] {
			VIPX_PLACEMENT p{};
			p.Size = sizeof(p);
			EXPECT_RC(VIP_SUCCESS,
				  VipxPlaceThread(own.h, VIPX_ROLE_SERVICE, i, 4, 0, &p));
			int cpu = i % 2 == 0 ? all.front() : all.back();
			EXPECT_EQ(Set{ cpu }, cpus_of(0)) << i;
			EXPECT_EQ(std::to_string(cpu), p.Cpus) << i;
			EXPECT_EQ(sizeof(p), p.Size);
			/* no rule: it stays where it is */
			EXPECT_RC(VIP_SUCCESS,
				  VipxPlaceThread(own.h, VIPX_ROLE_APPLICATION, i, 4, 0, nullptr));
			EXPECT_EQ(Set{ cpu }, cpus_of(0)) << i;
		}).join();
	}
	EXPECT_RC(VIP_SUCCESS, VipxSetAffinity(own.h, ("strict;service=" + kBeyond).c_str()));
	EXPECT_RC(VIP_ERROR_RESOURCE, VipxPlaceThread(own.h, VIPX_ROLE_SERVICE, 0, 1, 0, nullptr));
	EXPECT_EQ(all, cpus_of(0));
}

TEST(Affinity, BadArguments)
{
	RULE("vipl_ext placement: bad arguments are VIP_INVALID_PARAMETER");
	Own own;
	VIPX_PLACEMENT p{};

	EXPECT_RC(VIP_INVALID_PARAMETER, VipxQueryPlacement(own.h, VIPX_ROLE_TRANSFER, nullptr));
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxQueryPlacement(own.h, VIPX_ROLE_TRANSFER, &p));
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxPlaceThread(own.h, VIPX_ROLE_SERVICE, 0, 1, 0, &p));
	p.Size = sizeof(p);
	for (VIP_ULONG role : { VIP_ULONG(VIPX_ROLE_SERVICE), VIP_ULONG(3), ~VIP_ULONG(0) })
		EXPECT_RC(VIP_INVALID_PARAMETER, VipxQueryPlacement(own.h, role, &p));
	for (VIP_ULONG role : { VIP_ULONG(VIPX_ROLE_TRANSFER), VIP_ULONG(3), ~VIP_ULONG(0) })
		EXPECT_RC(VIP_INVALID_PARAMETER, VipxPlaceThread(own.h, role, 0, 1, 0, &p));
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxPlaceThread(own.h, VIPX_ROLE_SERVICE, 0, 0, 0, &p));
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxPlaceThread(own.h, VIPX_ROLE_SERVICE, 2, 2, 0, &p));
	EXPECT_RC(VIP_INVALID_PARAMETER,
		  VipxPlaceThread(own.h, VIPX_ROLE_SERVICE, 0, ~VIP_ULONG(0), 0, &p));
	EXPECT_RC(VIP_INVALID_PARAMETER, VipxPlaceThread(own.h, VIPX_ROLE_SERVICE, 0, 1, 2, &p));
}

TEST(Affinity, TheVariable)
{
	RULE("vipl_ext: VipOpenNic() places by VIADUCT_AFFINITY, and fails where it is strict");
	nic(0);
	EXPECT_EQ(VIP_SUCCESS,
		  child_wait(spawn_child("open", "nic0",
					 { "VIADUCT_AFFINITY=transfer=" + last_cpu() })));
	EXPECT_EQ(VIP_ERROR_RESOURCE,
		  child_wait(spawn_child("open", "nic0",
					 { "VIADUCT_AFFINITY=strict;transfer=" + kBeyond,
					   "VIADUCT_LOG=error" })));
	EXPECT_EQ(VIP_INVALID_PARAMETER,
		  child_wait(spawn_child("open", "nic0",
					 { "VIADUCT_AFFINITY=transfer", "VIADUCT_LOG=error" })));
}
