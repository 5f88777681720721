// SPDX-License-Identifier: BSD-2-Clause
// An agent that is called, ag_step(), in place of threads that run it.
#include <dirent.h>

#include "agent_fixture.h"

extern "C" {
#include "ag_client.h"
#include "ag_link.h"
#include "ag_loop.h"
#include "u_close.h"
}

using namespace agent_test;

namespace {

unsigned threads()
{
	unsigned n = 0;
	DIR *folder = opendir("/proc/self/task");

	while (dirent *entry = readdir(folder))
		n += entry->d_name[0] != '.';
	closedir(folder);
	return n;
}

class Stepped {
public:
	explicit Stepped(const std::function<void(ag_cfg &)> &tweak = nullptr, unsigned hosts = 1)
	    : fabric(hosts, nullptr, 0)
	{
		// Descriptors that agents of earlier tests left to be closed are due, too, whichever agent steps.
		while (u_close_timers(u_now_ns()) != U_NEVER)
			poll(nullptr, 0, 1);
		for (unsigned i = 0; i < hosts; i++) {
			ag_cfg cfg = fabric.config(i);

			if (tweak)
				tweak(cfg);
			EXPECT_EQ(ag_create(&cfg, &agent[i]), 0);
		}
	}
	~Stepped()
	{
		for (ag_agent *a : agent)
			ag_destroy(a);
	}

	// Handles everything that is ready now; returns the result of the last step.
	int step(unsigned host = 0)
	{
		int rc = 0;

		for (int i = 0; rc == 0 && i < 4; i++) {
			due = 0;
			rc = ag_step(agent[host], &due);
		}
		return rc;
	}

	Fabric fabric;
	ag_agent *agent[2] = {};
	int64_t due = 0;
};

} // namespace

TEST(Step, TwoHostsAreJoinedWithoutAThread)
{
	unsigned before = threads();
	Stepped s(nullptr, 2);

	for (int i = 0; i < 1000 && !(ag_link_usable(&s.agent[0]->links[1]) &&
				      ag_link_usable(&s.agent[1]->links[1]));
	     i++) {
		EXPECT_EQ(s.step(0), 0);
		EXPECT_EQ(s.step(1), 0);
		vt_pass(1000000);
	}
	EXPECT_TRUE(ag_link_usable(&s.agent[0]->links[1]));
	EXPECT_TRUE(ag_link_usable(&s.agent[1]->links[1]));
	EXPECT_LE(threads(), before); // one that closed a descriptor may have ended
}

TEST(Step, TellsWhenItWantsToBeCalled)
{
	testing::internal::CaptureStderr();
	{
		Stepped s;
		Client silent;

		silent.dial(s.fabric, 0);
		EXPECT_EQ(s.step(), 0);
		EXPECT_EQ(s.due, u_now_ns() + AG_HELLO_NS);
		vt_pass(AG_HELLO_NS - 1);
		EXPECT_EQ(s.step(), 0);
		EXPECT_EQ(s.due, u_now_ns() + 1);
		EXPECT_EQ(silent.recv_any(0).type, -1);
		EXPECT_EQ(ag_step(s.agent[0], &s.due), 0) << "it waits for that time by itself";
		EXPECT_EQ(silent.recv_any(0).type, 0) << "hung up";
	}
	testing::internal::GetCapturedStderr();
}

TEST(Step, EndsWhenItIsStopped)
{
	Stepped s;

	EXPECT_EQ(s.step(), 0);
	ag_stop(s.agent[0]);
	EXPECT_EQ(s.step(), 1);
}

TEST(Step, EndsWhenNobodyHasComeForTheGrace)
{
	Stepped s([](ag_cfg &cfg) { cfg.leave_when_idle = true; });

	EXPECT_EQ(s.step(), 0);
	EXPECT_EQ(s.due, u_now_ns() + AG_GRACE_MS * INT64_C(1000000));
	vt_pass(s.due - u_now_ns() - 1);
	EXPECT_EQ(s.step(), 0);
	vt_pass(1);
	EXPECT_EQ(s.step(), 1);
}
