/* SPDX-License-Identifier: BSD-2-Clause */
/* Error lines of vi_fabric, and its exit statuses. */
#ifndef FAB_SAY_H
#define FAB_SAY_H

#include "u_base.h"

enum { EXIT_OK = 0, EXIT_FAIL = 1, EXIT_USAGE = 2 };

/* Each writes one line on standard error, and returns EXIT_FAIL or EXIT_USAGE. */
int U_PRINTF(1, 2) fab_fail(const char *fmt, ...);
int U_PRINTF(1, 2) fab_usage(const char *fmt, ...);

#endif
