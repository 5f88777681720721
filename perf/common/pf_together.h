/* SPDX-License-Identifier: BSD-2-Clause */
/* Options that do not go together. */
#ifndef PF_TOGETHER_H
#define PF_TOGETHER_H

#include "pf_config.h"

struct u_option_tool;

/* Returns -1 to continue, or the exit code after one line on standard error. */
int pf_together(const struct pf_config *cfg, const struct u_option_tool *t);

#endif
