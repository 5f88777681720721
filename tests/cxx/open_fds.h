/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef OPEN_FDS_H
#define OPEN_FDS_H

#include <dirent.h>

#include <chrono>
#include <thread>

#include "limit.h"

extern "C" {
#include "u_close.h"
}

/* The number of descriptors of this process plus a constant, for comparisons; without those that are being closed. */
inline int open_fds()
{
	auto deadline =
		std::chrono::steady_clock::now() + std::chrono::seconds(10 * limit_factor());

	while (u_close_busy() != 0 && std::chrono::steady_clock::now() < deadline)
		std::this_thread::yield();
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(dir) != nullptr)
		count++;
	closedir(dir);
	return count;
}

#endif
