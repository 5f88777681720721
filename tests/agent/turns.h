/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Agents in the test's own thread: they take their turns while the test waits for something, and time is virtual
 * (virtual_time.h).  It jumps to what is due next when no agent has anything to do.  A program has this if it is
 * compiled with AGENT_STEPPED; else agents are threads, and time is that of the machine.
 */
#ifndef TURNS_H
#define TURNS_H

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <vector>

extern "C" {
#include "ag_agent.h"
#include "ag_irq.h"
#include "ag_state.h"
#include "u_poll.h"
#include "u_time.h"
}

#ifdef AGENT_STEPPED
#include "virtual_time.h"

namespace agent_test {

class Turns {
public:
	/* From now on the agent takes turns. */
	static void begin(ag_agent *a)
	{
		vt_turns([](void *, int64_t until) { return take(until); }, nullptr);
		taking_part().push_back({ a, 0 });
	}

	/* The agent takes no more turns: it has ended, or is paused. */
	static void end(ag_agent *a)
	{
		auto &all = taking_part();

		all.erase(std::remove_if(all.begin(), all.end(),
					 [&](auto &p) { return p.agent == a; }),
			  all.end());
	}

	/*
	 * Makes one step of each agent that has anything to do; if there is none, time passes until one has.
	 * False: none has before `until`.
	 */
	static bool take(int64_t until)
	{
		int64_t next = U_NEVER;
		bool any = false;
		std::vector<ag_agent *> ended;

		for (auto &p : taking_part()) {
			if (ready(p)) {
				any = true;
				p.due = 0;
				int rc = ag_step(p.agent, &p.due);
				EXPECT_GE(rc, 0) << strerror(-rc);
				if (rc != 0)
					ended.push_back(p.agent);
			}
			next = std::min(next, p.due);
		}
		for (ag_agent *a : ended)
			end(a);
		if (any)
			return true;
		if (next >= until)
			return false;
		vt_pass(next - u_now_ns());
		return true;
	}

private:
	struct Part {
		ag_agent *agent;
		int64_t due;
	};

	static std::vector<Part> &taking_part()
	{
		static std::vector<Part> all;

		return all;
	}

	static bool ready(const Part &p)
	{
		pollfd events = { p.agent->epoll, POLLIN, 0 };

		return p.due <= u_now_ns() || ag_irq_rung(p.agent) || poll(&events, 1, 0) > 0;
	}
};

} // namespace agent_test
#endif

#endif
