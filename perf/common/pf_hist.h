/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exact statistics of durations in nanoseconds, in bounded memory: a counter for each nanosecond
 * below about a millisecond, and each longer duration by itself - of those there are at most a
 * thousand per second of measuring.
 */
#ifndef PF_HIST_H
#define PF_HIST_H

#include <stddef.h>
#include <stdint.h>

#define PF_HIST_FINE (UINT64_C(1) << 20)

struct pf_hist {
	uint64_t *fine; /* PF_HIST_FINE counters */
	uint64_t *coarse;
	size_t coarse_count, coarse_room;
	int coarse_sorted;
	uint64_t count, min, max;
	double sum, sum_of_squares;
};

int pf_hist_init(struct pf_hist *h);
void pf_hist_fini(struct pf_hist *h);
void pf_hist_reset(struct pf_hist *h);

/* Returns 0 or -ENOMEM. */
int pf_hist_add_coarse(struct pf_hist *h, uint64_t ns);

static inline int pf_hist_add(struct pf_hist *h, uint64_t ns)
{
	h->count++;
	h->sum += (double)ns;
	h->sum_of_squares += (double)ns * (double)ns;
	h->min = ns < h->min ? ns : h->min;
	h->max = ns > h->max ? ns : h->max;
	if (ns >= PF_HIST_FINE)
		return pf_hist_add_coarse(h, ns);
	h->fine[ns]++;
	return 0;
}

/*
 * Nearest rank: the smallest duration such that at least p percent of all are not longer.  0 gives
 * the minimum, 100 the maximum.  0 when nothing was added.
 */
uint64_t pf_hist_percentile(struct pf_hist *h, double p);
double pf_hist_mean(const struct pf_hist *h);
double pf_hist_stddev(const struct pf_hist *h);

#endif
