/* SPDX-License-Identifier: BSD-2-Clause */
/* Giving up the processor: futex and sched_yield. */
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pf_side.h"
#include "raw.h"

/* One direction.  The waker writes `word`, the waiter `waits`. */
struct doorbell {
	_Alignas(RAW_LINE) _Atomic uint32_t word;
	_Alignas(RAW_LINE) _Atomic uint32_t waits;
};

static struct doorbell *doorbell_of(struct raw_job *job, int dir)
{
	return (struct doorbell *)(void *)job->shm + dir;
}

static void futex_wait(struct doorbell *b, uint32_t seen)
{
	syscall(SYS_futex, &b->word, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static void futex_wake(struct doorbell *b)
{
	syscall(SYS_futex, &b->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void ring_always(struct doorbell *b, uint32_t v)
{
	atomic_store(&b->word, v);
	futex_wake(b);
}

static void await_always(struct doorbell *b, uint32_t v)
{
	uint32_t seen;

	while ((seen = atomic_load(&b->word)) != v)
		futex_wait(b, seen);
}

/* Sequentially consistent on both sides: either the waker sees `waits` or the waiter the word. */
static void ring_flagged(struct doorbell *b, uint32_t v)
{
	atomic_store(&b->word, v);
	if (atomic_load(&b->waits))
		futex_wake(b);
}

static void await_flagged(struct doorbell *b, uint32_t v)
{
	uint32_t seen;

	while (atomic_load(&b->word) != v) {
		atomic_store(&b->waits, 1);
		seen = atomic_load(&b->word);
		if (seen != v)
			futex_wait(b, seen);
		atomic_store(&b->waits, 0);
	}
}

/*
 * Two threads that are both awake may fall into step and never sleep.  Here the waker waits until
 * the other has announced its sleep, and long enough for that processor to become idle.
 */
#define ASLEEP_NS 5000

static void ring_asleep(struct doorbell *b, uint32_t v)
{
	double end;

	while (!atomic_load(&b->waits))
		raw_pause();
	end = pf_clock_ns() + ASLEEP_NS;
	while (pf_clock_ns() < end)
		raw_pause();
	ring_flagged(b, v);
}

static void ring_only(struct doorbell *b, uint32_t v)
{
	atomic_store_explicit(&b->word, v, memory_order_release);
}

static void await_yielding(struct doorbell *b, uint32_t v)
{
	while (atomic_load_explicit(&b->word, memory_order_acquire) != v)
		sched_yield();
}

#define SIDES(name, put, get)                                                                      \
	static void name##_lead(struct raw_job *job, uint64_t count)                               \
	{                                                                                          \
		while (count--) {                                                                  \
			job->done++;                                                               \
			put(doorbell_of(job, 0), (uint32_t)job->done);                             \
			get(doorbell_of(job, 1), (uint32_t)job->done);                             \
		}                                                                                  \
	}                                                                                          \
	static void name##_follow(struct raw_job *job, uint64_t count)                             \
	{                                                                                          \
		while (count--) {                                                                  \
			job->done++;                                                               \
			get(doorbell_of(job, 0), (uint32_t)job->done);                             \
			put(doorbell_of(job, 1), (uint32_t)job->done);                             \
		}                                                                                  \
	}

SIDES(always, ring_always, await_always)
SIDES(flagged, ring_flagged, await_flagged)
SIDES(asleep, ring_asleep, await_flagged)
SIDES(yielding, ring_only, await_yielding)

static int emit_futexes(const struct raw_config *cfg, raw_emit emit, const char *test, bool one)
{
	struct raw_job always_job = { .test = test,
				      .variant = "futex, wake always",
				      .side = { always_lead, always_follow },
				      .unit = RAW_HALF_TRIP,
				      .one_core = one };
	struct raw_job flagged_job = always_job;
	int rc = emit(cfg, &always_job);

	flagged_job.variant = "futex, wake when flagged";
	flagged_job.side[0] = flagged_lead;
	flagged_job.side[1] = flagged_follow;
	return rc ? rc : emit(cfg, &flagged_job);
}

int raw_test_futex(const struct raw_config *cfg, raw_emit emit)
{
	return emit_futexes(cfg, emit, "futex", false);
}

int raw_test_asleep(const struct raw_config *cfg, raw_emit emit)
{
	struct raw_job job = { .test = "asleep",
			       .variant = "futex, other asleep",
			       .side = { asleep_lead, asleep_follow },
			       .unit = RAW_HALF_TRIP,
			       .idle_ns = 2 * ASLEEP_NS };

	return emit(cfg, &job);
}

int raw_test_shared_core(const struct raw_config *cfg, raw_emit emit)
{
	struct raw_job job = { .test = "shared-core",
			       .variant = "sched_yield",
			       .side = { yielding_lead, yielding_follow },
			       .unit = RAW_HALF_TRIP,
			       .one_core = true };
	int rc = emit(cfg, &job);

	return rc ? rc : emit_futexes(cfg, emit, "shared-core", true);
}
