/* SPDX-License-Identifier: BSD-2-Clause */
/* Processors of threads, and two of this process that are different cores. */
#ifndef TWO_CORES_H
#define TWO_CORES_H

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include <sched.h>

extern "C" {
#include "u_topo_read.h"
}

/* The processors on which a thread may run; 0: the calling thread. */
inline std::vector<int> cpus_of(int tid)
{
	cpu_set_t set;
	std::vector<int> out;

	EXPECT_EQ(sched_getaffinity(tid, sizeof(set), &set), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			out.push_back(cpu);
	return out;
}

/* Two processors of this process on different cores, as far as is known; empty: it has not got them. */
inline std::vector<int> two_cores()
{
	std::vector<int> all = cpus_of(0);
	char error[U_TOPO_ERROR];
	u_topo *topo = nullptr;

	if (u_topo_read(nullptr, &topo, error) == 0) {
		auto core = [&](int cpu) { return topo->cpus[u_topo_find(topo, cpu)].core; };

		while (all.size() > 1 && core(all.back()) == core(all.front()))
			all.pop_back();
		free(topo);
	}
	return all.size() > 1 ? std::vector<int>{ all.front(), all.back() } : std::vector<int>();
}

#endif
