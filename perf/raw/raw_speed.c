/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast the processors compute at this moment.  A step is an addition that needs the result of
 * the one before, and a branch that is taken: one cycle on a core without other load.  A core
 * fetches one taken branch in a cycle for all its threads together, so a step takes up to twice as
 * long where something else runs on the core: the other side, or a program of another virtual
 * machine, of which nothing else is to be seen here.  Longer sequences of additions without a
 * branch would show the frequency alone.
 */
#include "raw.h"

/* Both values pass through the asm, so the compiler cannot compute them or unroll the loop. */
static uint64_t add_up(uint64_t count)
{
	uint64_t sum = 0;

	while (count--) {
		sum += count;
		__asm__ __volatile__("" : "+r"(sum), "+r"(count));
	}
	return sum;
}

/* Both compute at once, as in the measurements; the slower side counts. */
static void speed_lead(struct raw_job *job, uint64_t count)
{
	struct raw_counter *ended = (void *)job->shm;

	job->done += add_up(count);
	raw_await(ended, job->batch);
}

static void speed_follow(struct raw_job *job, uint64_t count)
{
	struct raw_counter *ended = (void *)job->shm;

	job->done += add_up(count);
	raw_store(ended, job->batch);
}

int raw_test_speed(const struct raw_config *cfg, raw_emit emit)
{
	struct raw_job job = { .test = "speed",
			       .variant = "both compute",
			       .side = { speed_lead, speed_follow },
			       .unit = RAW_STEP };

	return emit(cfg, &job);
}
