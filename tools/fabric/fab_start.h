/* SPDX-License-Identifier: BSD-2-Clause */
/* The command start: starts the agent of one host again, like those of the others. */
#ifndef FAB_START_H
#define FAB_START_H

#include "fab.h"

/* Starts the agent of host `name`, whose agent died or was stopped.  Returns the exit status, and prints an error. */
int fab_start(const struct fabric *f, const char *name);

#endif
