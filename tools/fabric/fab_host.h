/* SPDX-License-Identifier: BSD-2-Clause */
/* The host that a command is about: its number, its agent, and the program to start for it. */
#ifndef FAB_HOST_H
#define FAB_HOST_H

#include <stddef.h>

#include "fab.h"

int fab_open(const struct fabric *f, unsigned int host, struct cl_agent *out, char *error);

/* Any agent that answers; -ENODEV when there is none. */
int fab_open_any(const struct fabric *f, struct cl_agent *out, char *error);

/* The number of the host of this name.  An agent is asked for it, if one answers. */
int fab_host_number(const struct fabric *f, const char *name, unsigned int *out, char *error);

/* The path of viaductd.  Returns an exit status; its error is printed. */
int fab_agent_path(char *path, size_t size);

#endif
