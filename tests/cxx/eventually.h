/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef EVENTUALLY_H
#define EVENTUALLY_H

#include <chrono>
#include <thread>

#include "limit.h"

/* Waits until another thread has made it true; false after ten seconds times limit_factor(). */
template <typename Predicate> bool eventually(Predicate happened)
{
	auto deadline =
		std::chrono::steady_clock::now() + std::chrono::seconds(10 * limit_factor());

	while (!happened()) {
		if (std::chrono::steady_clock::now() > deadline)
			return false;
		std::this_thread::yield();
	}
	return true;
}

#endif
