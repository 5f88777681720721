/* SPDX-License-Identifier: BSD-2-Clause */
/* st_switch.h - the steps of a direction from TCP to a VI and back */
#ifndef ST_SWITCH_H
#define ST_SWITCH_H

#include "st_paths.h"

/*
 * Handles messages of the other end, and does the steps to a VI and back that do not wait for it; takes rx and tx.
 * Returns when to come again, or ST_NEVER: the stream is quiet.
 */
uint64_t st_switch_step(struct st_stream *s, uint64_t now);

#endif
