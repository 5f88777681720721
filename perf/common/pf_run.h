/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole measurement: roles, sizes, batches. */
#ifndef PF_RUN_H
#define PF_RUN_H

#include "pf_batch.h"
#include "pf_report.h"
#include "pf_stream.h"

/* The main function of each tool. */
int pf_main(const struct pf_tool *tool, int argc, char **argv);

/* Fills the memory that a peer will read, so that it can check it. */
void pf_fill_source(struct pf_run *run, const struct pf_batch *batch);

#endif
