/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of a put to the right neighbour: one put at a time, whose last word the target looks for. */
#include <stdlib.h>

#include "rs.h"

struct puts {
	const struct rs_task *task;
	uint8_t *data, *target; /* symmetric */
	int64_t *seen;		/* symmetric: when PE 1 saw the last word of each put */
};

static uint64_t *last_word(const struct puts *p, uint8_t *of)
{
	return (uint64_t *)(void *)(of + p->task->bytes - sizeof(uint64_t));
}

/* Notes when each put began, and how long after that the call and the quiet returned. */
static void put_all(const struct puts *p, int64_t *began, int64_t *called, int64_t *done)
{
	const struct rs_task *t = p->task;
	shmem_ctx_t ctx = rs_context();
	int64_t owed = 0;

	rs_warm(t, ctx, p->target, 1);
	shmem_barrier_all();
	for (uint64_t n = 0; n < t->count; n++) {
		*last_word(p, p->data) = n + 1;
		began[n] = rs_now();
		shmem_ctx_putmem_nbi(ctx, p->target, p->data, t->bytes, 1);
		rs_charge(&owed, (int64_t)t->post_ns * t->dilation);
		called[n] = rs_now() - began[n];
		shmem_ctx_quiet(ctx);
		done[n] = rs_now() - began[n];
	}
	shmem_ctx_destroy(ctx);
}

static void see_all(const struct puts *p)
{
	const struct rs_task *t = p->task;

	shmem_barrier_all();
	for (uint64_t n = 0; n < t->count; n++) {
		while (!shmem_uint64_test(last_word(p, p->target), SHMEM_CMP_GE, n + 1))
			;
		p->seen[n] = rs_now();
	}
	shmem_putmem(p->seen, p->seen, t->count * sizeof(*p->seen), 0);
}

static void conclude(const struct puts *p, const int64_t *began, int64_t *called, int64_t *done,
		     struct rs_result *out)
{
	const struct rs_task *t = p->task;
	double us = t->dilation * 1e3;

	for (uint64_t n = 0; n < t->count; n++)
		p->seen[n] -= began[n];
	out->steps.call_us = (double)rs_median(called, t->count) / us;
	out->steps.seen_us = (double)rs_median(p->seen, t->count) / us;
	out->steps.done_us = (double)rs_median(done, t->count) / us;
	out->value = out->steps.done_us;
	out->unit = "us";
}

void rs_steps(const struct rs_task *t, struct rs_result *out)
{
	struct puts p = { .task = t };
	int64_t *times = calloc(3 * t->count, sizeof(*times));
	int64_t *called = times + t->count, *done = called + t->count;

	if (times == NULL)
		rs_fail("no memory");
	p.data = rs_room(t->bytes);
	p.target = rs_room(t->bytes);
	p.seen = rs_room(t->count * sizeof(*p.seen));
	if (t->me == 0)
		put_all(&p, times, called, done);
	else if (t->me == 1)
		see_all(&p);
	else
		shmem_barrier_all();
	shmem_barrier_all();
	if (t->me == 0)
		conclude(&p, times, called, done, out);
	free(times);
}
