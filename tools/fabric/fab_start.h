/* SPDX-License-Identifier: BSD-2-Clause */
/* The command start: the agent of one host again, like those of the others. */
#ifndef FAB_START_H
#define FAB_START_H

#include "fab.h"

/* `name`: of a host whose agent died or was stopped.  Returns the exit status; an error is printed. */
int fab_start(const struct fabric *f, const char *name);

#endif
