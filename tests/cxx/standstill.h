/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures how long a process stood still: a thread that should run every few milliseconds records how
 * late it runs.  So tests can tell delays that a stopped machine causes from those of the product.
 */
#ifndef STANDSTILL_H
#define STANDSTILL_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include <pthread.h>
#include <sched.h>
#include <time.h>

class Standstill {
public:
	/* May lie in shared memory: then others can read it even while the process stands still. */
	struct Record {
		std::atomic<uint64_t> lost, tick;

		/* Nanoseconds so far. */
		int64_t ns() const
		{
			uint64_t sum = lost, last = tick;

			return static_cast<int64_t>(sum + (last ? late(last, now()) : 0));
		}
	};

	/*
	 * `cpu`: the processor that is watched; -1: any.  The thread on a given processor comes first there, if this
	 * user may ask for that: then it is late only where the machine took the processor away.
	 */
	explicit Standstill(Record &r, int cpu = -1) : record(r)
	{
		record.lost = 0;
		record.tick = now();
		thread = std::thread([this, cpu] { watch(cpu); });
	}
	~Standstill()
	{
		{
			std::lock_guard<std::mutex> guard(lock);
			stop = true;
		}
		changed.notify_one();
		thread.join();
	}
	Standstill(const Standstill &) = delete;

private:
	static constexpr uint64_t kTick = 5000000, kLate = 10000000;

	static uint64_t now()
	{
		struct timespec ts;

		clock_gettime(CLOCK_MONOTONIC, &ts);
		return static_cast<uint64_t>(ts.tv_sec) * 1000000000 +
		       static_cast<uint64_t>(ts.tv_nsec);
	}

	/* How late the thread is; up to kLate is the usual wait for a processor. */
	static uint64_t late(uint64_t last, uint64_t at)
	{
		return at > last + kTick + kLate ? at - last - kTick : 0;
	}

	void watch(int cpu)
	{
		std::unique_lock<std::mutex> guard(lock);

		if (cpu >= 0) {
			struct sched_param first = {};
			cpu_set_t one;

			first.sched_priority = sched_get_priority_min(SCHED_FIFO);
			CPU_ZERO(&one);
			CPU_SET(static_cast<size_t>(cpu), &one);
			pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
			pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
		}
		while (!changed.wait_for(guard, std::chrono::nanoseconds(kTick),
					 [this] { return stop; })) {
			uint64_t at = now();

			/* In this order a reader may count the delay twice, but never misses it. */
			record.lost += late(record.tick, at);
			record.tick = at;
		}
	}

	Record &record;
	std::mutex lock;
	std::condition_variable changed;
	bool stop = false;
	std::thread thread;
};

#endif
