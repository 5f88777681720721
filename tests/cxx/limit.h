/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIMIT_H
#define LIMIT_H

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

/*
 * The time, in microseconds, within which a sleeping thread runs after it was woken up, in 99 of 100 of
 * 200 wake-ups; 0 if no thread can be started.  scripts/machine.py measures the same.
 */
inline int64_t wakeup_us()
{
	using Clock = std::chrono::steady_clock;
	const size_t wakeups = 200;
	std::mutex lock;
	std::condition_variable changed;
	bool woken = false, ended = false;
	Clock::time_point sent, end = Clock::now() + std::chrono::milliseconds(200);
	std::vector<int64_t> took;
	std::unique_lock<std::mutex> guard(lock);

	auto sleeper = [&] {
		std::unique_lock<std::mutex> mine(lock);
		for (;;) {
			changed.wait(mine, [&] { return woken || ended; });
			if (ended)
				return;
			took.push_back(std::chrono::duration_cast<std::chrono::microseconds>(
					       Clock::now() - sent)
					       .count());
			woken = false;
			changed.notify_all();
		}
	};
	std::thread thread;
	try {
		thread = std::thread(sleeper);
	} catch (const std::system_error &) {
		return 0;
	}
	for (size_t i = 0; i < wakeups && (took.empty() || Clock::now() < end); i++) {
		sent = Clock::now();
		woken = true;
		changed.notify_all();
		changed.wait(guard, [&] { return !woken; });
	}
	ended = true;
	changed.notify_all();
	guard.unlock();
	thread.join();
	std::sort(took.begin(), took.end());
	return took[took.size() * 99 / 100];
}

#if defined(__SANITIZE_THREAD__)
constexpr int kSanitizerFactor = 8;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kSanitizerFactor = 4;
#else
constexpr int kSanitizerFactor = 1;
#endif

/*
 * The factor of all limits of tests: more than 1 if a sanitizer or an emulator makes everything slow,
 * or if a wake-up took more than a millisecond when this was first called.
 */
inline unsigned limit_factor()
{
	static const unsigned factor = [] {
		const char *text = getenv("TEST_LIMIT_FACTOR");
		int64_t slow = std::min<int64_t>(std::max<int64_t>(wakeup_us() / 1000, 1), 8);
		return static_cast<unsigned>(std::max(text ? atoi(text) : kSanitizerFactor, 1) *
					     slow);
	}();

	return factor;
}

#endif
