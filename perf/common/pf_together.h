/* SPDX-License-Identifier: BSD-2-Clause */
/* Options that do not go together. */
#ifndef PF_TOGETHER_H
#define PF_TOGETHER_H

#include "pf_config.h"

/* Returns -1 to continue, or the exit code after one line on standard error. */
int pf_together(const struct pf_config *cfg);

/*
 * One line on standard error: `what`, with `found` behind it unless NULL, and `right`, the accepted
 * values.
 */
int pf_usage(const struct pf_tool *tool, const char *what, const char *found, const char *right);

#endif
