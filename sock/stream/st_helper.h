/* SPDX-License-Identifier: BSD-2-Clause */
/* st_helper.h - the helper's thread, «vi-sock» */
#ifndef ST_HELPER_H
#define ST_HELPER_H

#include "st_process.h"

/*
 * Starts it if it does not run, under the process lock, which it takes: 0, -errno, -EDEADLK where this thread has it.
 */
int st_helper_start(void);
/* Ends it, when it has no closing stream left or at the deadline, a time of st_now_ns(), and waits for that. */
void st_helper_end(uint64_t deadline);

#endif
