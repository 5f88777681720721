/* SPDX-License-Identifier: BSD-2-Clause */
#include "pf_hist.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int pf_hist_init(struct pf_hist *h)
{
	*h = (struct pf_hist){ .min = UINT64_MAX };
	h->fine = calloc(PF_HIST_FINE, sizeof(*h->fine));
	return h->fine ? 0 : -ENOMEM;
}

void pf_hist_fini(struct pf_hist *h)
{
	free(h->fine);
	free(h->coarse);
	*h = (struct pf_hist){ 0 };
}

void pf_hist_reset(struct pf_hist *h)
{
	memset(h->fine, 0, PF_HIST_FINE * sizeof(*h->fine));
	h->coarse_count = 0;
	h->coarse_sorted = 0;
	h->count = 0;
	h->max = 0;
	h->min = UINT64_MAX;
	h->sum = 0;
	h->sum_of_squares = 0;
}

int pf_hist_add_coarse(struct pf_hist *h, uint64_t ns)
{
	if (h->coarse_count == h->coarse_room) {
		size_t room = h->coarse_room ? h->coarse_room * 2 : 1024;
		uint64_t *v = reallocarray(h->coarse, room, sizeof(*v));

		if (!v)
			return -ENOMEM;
		h->coarse = v;
		h->coarse_room = room;
	}
	h->coarse[h->coarse_count++] = ns;
	h->coarse_sorted = 0;
	return 0;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t coarse_rank(struct pf_hist *h, uint64_t rank)
{
	if (!h->coarse_sorted)
		qsort(h->coarse, h->coarse_count, sizeof(*h->coarse), compare_u64);
	h->coarse_sorted = 1;
	return h->coarse[rank - 1];
}

/* p percent of n, rounded up; a result above a whole number by a rounding error is that number. */
static uint64_t nearest_rank(double p, uint64_t n)
{
	uint64_t rank = (uint64_t)ceil(p * (double)n / 100.0 - 1e-9 * (double)n / 100.0);

	if (rank < 1)
		return 1;
	return rank > n ? n : rank;
}

uint64_t pf_hist_percentile(struct pf_hist *h, double p)
{
	uint64_t rank, seen = 0, ns;

	if (!h->count)
		return 0;
	rank = nearest_rank(p, h->count);
	for (ns = 0; ns < PF_HIST_FINE; ns++) {
		seen += h->fine[ns];
		if (seen >= rank)
			return ns;
	}
	return coarse_rank(h, rank - seen);
}

double pf_hist_mean(const struct pf_hist *h)
{
	return h->count ? h->sum / (double)h->count : 0;
}

double pf_hist_stddev(const struct pf_hist *h)
{
	double mean = pf_hist_mean(h), variance;

	if (h->count < 2)
		return 0;
	variance = (h->sum_of_squares - mean * h->sum) / (double)(h->count - 1);
	return variance > 0 ? sqrt(variance) : 0;
}
