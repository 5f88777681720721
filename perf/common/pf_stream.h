/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams of messages, in one direction or both. */
#ifndef PF_STREAM_H
#define PF_STREAM_H

#include "pf_batch.h"

/* Batches of vi_bw and vi_rate (pf_stream.c). */
int pf_stream_client(struct pf_run *run, const struct pf_batch *batch);
int pf_stream_server(struct pf_run *run, const struct pf_batch *batch);

#endif
