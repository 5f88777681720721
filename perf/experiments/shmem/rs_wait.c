/* SPDX-License-Identifier: BSD-2-Clause */
/* The barrier, and what a put costs the processor. */
#include <stdlib.h>

#include "rs.h"

#define COST_BATCH 1000u
#define COST_BATCHES 20u

/* The median: a barrier of which no PE waited for a processor. */
void rs_barrier(const struct rs_task *t, struct rs_result *out)
{
	int64_t *took = calloc(t->count, sizeof(*took)), owed = 0, began;

	if (took == NULL)
		rs_fail("no memory");
	for (int i = 0; i < 3; i++)
		shmem_barrier_all();
	for (uint64_t n = 0; n < t->count; n++) {
		began = rs_now();
		shmem_barrier_all();
		rs_charge(&owed, (int64_t)t->post_ns * t->dilation);
		took[n] = rs_now() - began;
	}
	out->value = rs_mean(t, (double)rs_median(took, t->count) / t->dilation / 1e3);
	out->unit = "us";
	free(took);
}

/* The best batch: one during which the thread kept its processor. */
void rs_cost(const struct rs_task *t, struct rs_result *out)
{
	uint64_t *word = rs_room(64), from[8] = { 0 };
	double best = 0;

	for (unsigned int batch = 0; batch < COST_BATCHES && t->me == 0; batch++) {
		int64_t began = rs_now();

		for (unsigned int n = 0; n < COST_BATCH; n++) {
			shmem_putmem(word, from, sizeof(from), 1);
			shmem_quiet();
		}
		if (batch == 0 || (double)(rs_now() - began) < best)
			best = (double)(rs_now() - began);
	}
	shmem_barrier_all();
	out->value = best / COST_BATCH;
	out->unit = "ns";
}
