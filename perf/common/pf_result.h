/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of one size, the metrics made from them, and the expectations about these. */
#ifndef PF_RESULT_H
#define PF_RESULT_H

#include "pf_config.h"
#include "pf_hist.h"

struct pf_result {
	uint64_t size;
	uint64_t iterations;  /* samples asked for: round trips, or messages per VI */
	uint64_t messages;    /* of all VIs and directions */
	uint64_t bytes;	      /* likewise */
	int64_t elapsed_ns;   /* of the counted batches */
	struct pf_hist *hist; /* whole round trips, reads or rounds, in ns */
};

struct pf_metric {
	char key[32];
	double value;
};

/*
 * The factor of one sample of the histogram: a latency is half of a round trip, as in the
 * OSU benchmarks; a read is one operation and counts whole.  A sample of --batch round trips counts
 * as their mean.
 */
double pf_sample_scale(const struct pf_config *cfg);

#define PF_MAX_METRICS (8u + PF_MAX_PERCENTILES)

/* All metrics in the order of the columns.  Returns their number. */
size_t pf_metrics(const struct pf_config *cfg, const struct pf_result *r, struct pf_metric *out);
/* Returns 0, or -EINVAL for an unknown metric. */
int pf_metric_value(const struct pf_config *cfg, const struct pf_result *r, const char *key,
		    double *out);
/* "p99_9_us", or "max_us" and "min_us"; with "round_" in front for vi_bw and vi_rate. */
void pf_percentile_key(const struct pf_config *cfg, double p, char out[32]);

/* Number of expectations that this result does not meet; each gets a line on standard error. */
unsigned int pf_check_expects(const struct pf_config *cfg, const struct pf_result *r);

#endif
