/* SPDX-License-Identifier: BSD-2-Clause */
/* A measurement under way, and a batch of it. */
#ifndef PF_BATCH_H
#define PF_BATCH_H

#include <stdint.h>

#include "pf_config.h"
#include "pf_ctl.h"
#include "pf_ep.h"
#include "pf_report.h"
#include "pf_result.h"

/*
 * One batch: `count` samples of --batch round trips (vi_lat) or rounds (vi_bw, vi_rate) of messages
 * of `size` bytes.
 * The client leaves a sample for each in run->hist, and adds to elapsed_ns.
 */
struct pf_batch {
	uint32_t size;
	uint64_t count;
	uint64_t first; /* number of the first message, so that no two batches look alike */
};

struct pf_run {
	struct pf_config *cfg;
	struct pf_ep ep;
	struct pf_ctl ctl;
	struct pf_hist hist;
	int64_t elapsed_ns;
	struct pf_place place;
};

#endif
