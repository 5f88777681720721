/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rs.h"

#define CHARGE_MIN_NS 100000 /* sleeps are not shorter */
#define WARM_PUTS 16
#define WARM_NAP_NS 2000000

int64_t rs_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void nap(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	nanosleep(&ts, NULL);
}

void rs_charge(int64_t *owed, int64_t ns)
{
	int64_t began = rs_now();

	*owed += ns;
	if (*owed < CHARGE_MIN_NS)
		return;
	nap(*owed);
	*owed -= rs_now() - began;
}

_Noreturn void rs_fail(const char *what)
{
	fprintf(stderr, "ring_shmem: PE %d: %s\n", shmem_my_pe(), what);
	shmem_global_exit(1);
}

void *rs_room(size_t bytes)
{
	void *at = shmem_align(4096, bytes);

	if (at == NULL)
		rs_fail("the symmetric heap is too small: set SHMEM_SYMMETRIC_SIZE");
	memset(at, 0, bytes);
	return at;
}

static int by_length(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t rs_median(int64_t *times, uint64_t n)
{
	qsort(times, n, sizeof(*times), by_length);
	return times[n / 2];
}

shmem_ctx_t rs_context(void)
{
	shmem_ctx_t ctx;

	if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) != 0)
		rs_fail("a context was sought and there is none");
	return ctx;
}

void rs_warm(const struct rs_task *t, shmem_ctx_t ctx, void *to, int pe)
{
	uint64_t zeros[8] = { 0 };

	for (int i = 0; i < WARM_PUTS; i++) {
		shmem_ctx_putmem(ctx, to, zeros, sizeof(zeros), pe);
		shmem_ctx_quiet(ctx);
		if (t->dilation > 1)
			nap(WARM_NAP_NS);
	}
}

double rs_mean(const struct rs_task *t, double mine)
{
	double *all = rs_room(t->hosts * sizeof(*all)), sum = 0;
	unsigned int n = 0;

	shmem_double_p(&all[t->me], mine, 0);
	shmem_barrier_all();
	for (unsigned int i = 0; i < t->hosts; i++) {
		if (!isnan(all[i])) {
			sum += all[i];
			n++;
		}
	}
	shmem_free(all);
	return n > 0 ? sum / n : NAN;
}
