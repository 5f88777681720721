/* SPDX-License-Identifier: BSD-2-Clause */
/* A VI of a loop's NIC, with its queues on a CQ, that is destroyed while messages of the agent are handled. */
#ifndef NVI_LATE_H
#define NVI_LATE_H

#ifdef __cplusplus
extern "C" {
#endif

#include <stdbool.h>
#include <stdint.h>

#include "nvi_loop.h"

struct nvi_late;

/* NULL when something is missing. */
struct nvi_late *nvi_late_open(struct nvi_loop *loop);
void nvi_late_close(struct nvi_late *late);
/*
 * A receive of the VI completes to the CQ and is taken; then the VI is destroyed, and another one made
 * in its memory.  0, or -errno of what failed.
 */
int nvi_late_replace(struct nvi_late *late);
/* Handles a message that suspends a connection which is over.  Any thread. */
int nvi_late_suspend(struct nvi_late *late);
/* Does such a message leave a watched queue of the VI as it is?  Then as nvi_late_replace(). */
bool nvi_late_stays_watched(struct nvi_late *late);
/* The number of queues on the CQ's hot list. */
uint32_t nvi_late_hot(struct nvi_late *late);

#ifdef __cplusplus
}
#endif

#endif
