/* SPDX-License-Identifier: BSD-2-Clause */
/* E3, E4: eight threads of each PE put to each other PE in turn, and wait for each put. */
#include <string.h>

#include "rs.h"

struct caller {
	const struct rs_task *task;
	unsigned int number;
	uint8_t *data, *target; /* symmetric; of `target` the part of this PE's caller */
	pthread_barrier_t *start;
	pthread_t thread;
	int64_t ns;
};

static unsigned int target_of(const struct rs_task *t, unsigned int source, uint64_t n)
{
	return (source + 1 + (unsigned int)(n % (t->hosts - 1))) % t->hosts;
}

static void put(struct caller *c, shmem_ctx_t ctx, uint64_t n)
{
	const struct rs_task *t = c->task;

	memcpy(c->data + t->bytes - sizeof(n), &n, sizeof(n));
	shmem_ctx_putmem_nbi(ctx, c->target, c->data, t->bytes, (int)target_of(t, t->me, n));
	shmem_ctx_quiet(ctx);
}

static void *caller_main(void *arg)
{
	struct caller *c = arg;
	const struct rs_task *t = c->task;
	shmem_ctx_t ctx = rs_context();
	int64_t owed = 0, began;

	for (uint64_t n = 0; n < t->hosts - 1; n++)
		rs_warm(t, ctx, c->target, (int)target_of(t, t->me, n));
	pthread_barrier_wait(c->start);
	pthread_barrier_wait(c->start); /* in between, PEs meet */
	began = rs_now();
	for (uint64_t n = 1; n <= t->count; n++) {
		put(c, ctx, n);
		rs_charge(&owed, (int64_t)t->post_ns * t->dilation);
	}
	c->ns = rs_now() - began;
	shmem_ctx_destroy(ctx);
	return NULL;
}

/* Did the last put of each caller to this PE arrive? */
static void check(const struct rs_task *t, const uint8_t *room)
{
	for (unsigned int i = 0; i < t->hosts * RS_CALLERS; i++) {
		unsigned int source = i / RS_CALLERS;
		uint64_t n = t->count, found;

		while (n > 0 && target_of(t, source, n) != t->me)
			n--;
		memcpy(&found, room + (i + 1) * t->bytes - sizeof(found), sizeof(found));
		if (source != t->me && found != n)
			rs_fail("a put completed that did not arrive");
	}
}

void rs_put(const struct rs_task *t, struct rs_result *out)
{
	struct caller callers[RS_CALLERS];
	uint8_t *room = rs_room(t->hosts * RS_CALLERS * t->bytes);
	uint8_t *data = rs_room(RS_CALLERS * t->bytes);
	pthread_barrier_t start;
	double ns = 0;

	pthread_barrier_init(&start, NULL, RS_CALLERS + 1);
	for (unsigned int i = 0; i < RS_CALLERS; i++) {
		struct caller *c = &callers[i];

		c->task = t;
		c->number = i;
		c->data = data + i * t->bytes;
		c->target = room + (t->me * RS_CALLERS + i) * t->bytes;
		c->start = &start;
		if (pthread_create(&c->thread, NULL, caller_main, c) != 0)
			rs_fail("a thread was sought and there is none");
	}
	pthread_barrier_wait(&start);
	shmem_barrier_all();
	pthread_barrier_wait(&start);
	for (unsigned int i = 0; i < RS_CALLERS; i++) {
		pthread_join(callers[i].thread, NULL);
		ns += (double)callers[i].ns / (double)t->count / t->dilation / RS_CALLERS;
	}
	pthread_barrier_destroy(&start);
	shmem_barrier_all();
	check(t, room);
	ns = rs_mean(t, ns);
	out->value = ns / 1e3;
	out->unit = "us";
	out->rate = (double)(t->bytes * RS_CALLERS) / ns;
}
