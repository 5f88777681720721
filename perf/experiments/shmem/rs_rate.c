/* SPDX-License-Identifier: BSD-2-Clause */
/* E1, E2: each lane is a thread with a context of its own, whose transfers one quiet completes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rs.h"

#define LANES 2u /* of a host: to the right neighbour and to the left one */

struct lane {
	const struct rs_task *task;
	int to;
	uint8_t *data, *target; /* symmetric */
	pthread_barrier_t *start;
	pthread_t thread;
	int64_t ns;
};

static void transfer(const struct lane *l, shmem_ctx_t ctx)
{
	const struct rs_task *t = l->task;

	if (t->get && t->blocking)
		shmem_ctx_getmem(ctx, l->target, l->data, t->bytes, l->to);
	else if (t->get)
		shmem_ctx_getmem_nbi(ctx, l->target, l->data, t->bytes, l->to);
	else if (t->blocking)
		shmem_ctx_double_put(ctx, (double *)(void *)l->target, (double *)(void *)l->data,
				     t->bytes / sizeof(double), l->to);
	else
		shmem_ctx_putmem_nbi(ctx, l->target, l->data, t->bytes, l->to);
}

static void *lane_main(void *arg)
{
	struct lane *l = arg;
	const struct rs_task *t = l->task;
	shmem_ctx_t ctx = rs_context();
	int64_t owed = 0, began;

	rs_warm(t, ctx, l->target, l->to);
	pthread_barrier_wait(l->start);
	pthread_barrier_wait(l->start); /* in between, PEs meet */
	began = rs_now();
	for (uint64_t n = 0; n < t->count; n++) {
		transfer(l, ctx);
		rs_charge(&owed, (int64_t)t->post_ns * t->dilation);
	}
	shmem_ctx_quiet(ctx);
	l->ns = rs_now() - began;
	shmem_ctx_destroy(ctx);
	return NULL;
}

/* In the order in which more links are used: one, both of PE 0, all. */
static unsigned int lanes_here(const struct rs_task *t)
{
	unsigned int before = t->me * LANES;

	return t->links <= before ? 0 : t->links - before < LANES ? t->links - before : LANES;
}

static void lane_start(struct lane *l, const struct rs_task *t, unsigned int i, uint8_t *room,
		       pthread_barrier_t *start)
{
	unsigned int to = i == 0 ? t->me + 1 : t->me + t->hosts - 1;

	l->task = t;
	l->to = (int)(to % t->hosts);
	l->data = room + 2 * i * t->bytes;
	l->target = l->data + t->bytes;
	l->start = start;
	if (pthread_create(&l->thread, NULL, lane_main, l) != 0)
		rs_fail("a thread was sought and there is none");
}

void rs_rate(const struct rs_task *t, struct rs_result *out)
{
	unsigned int n = lanes_here(t);
	struct lane lanes[LANES];
	pthread_barrier_t start;
	uint8_t *room = rs_room(2 * LANES * t->bytes);
	double sum = 0;

	pthread_barrier_init(&start, NULL, n + 1);
	for (unsigned int i = 0; i < n; i++)
		lane_start(&lanes[i], t, i, room, &start);
	pthread_barrier_wait(&start);
	shmem_barrier_all();
	pthread_barrier_wait(&start);
	for (unsigned int i = 0; i < n; i++) {
		pthread_join(lanes[i].thread, NULL);
		sum += (double)(t->bytes * t->count) * t->dilation / (double)lanes[i].ns;
	}
	pthread_barrier_destroy(&start);
	out->value = rs_mean(t, n > 0 ? sum / n : NAN);
	out->unit = "GB/s";
}
