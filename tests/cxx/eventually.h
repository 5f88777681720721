/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef EVENTUALLY_H
#define EVENTUALLY_H

#include <chrono>
#include <thread>

/* Waits for what another thread will do; false after ten seconds. */
template <typename Predicate> bool eventually(Predicate happened)
{
	auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);

	while (!happened()) {
		if (std::chrono::steady_clock::now() > deadline)
			return false;
		std::this_thread::yield();
	}
	return true;
}

#endif
