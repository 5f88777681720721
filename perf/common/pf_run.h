/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole measurement: roles, sizes, batches. */
#ifndef PF_RUN_H
#define PF_RUN_H

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

/* The main function of each tool. */
int pf_main(const struct pf_tool *tool, int argc, char **argv);

/* Fills the memory that a peer will read, so that it can check it. */
void pf_fill_source(struct pf_run *run, const struct pf_batch *batch);

/* Batches of vi_bw and vi_rate (pf_stream.c). */
int pf_stream_client(struct pf_run *run, const struct pf_batch *batch);
int pf_stream_server(struct pf_run *run, const struct pf_batch *batch);

#endif
