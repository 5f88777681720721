/* SPDX-License-Identifier: BSD-2-Clause */
/* The host that a command names: its number, its agent, and the program to start for it. */
#ifndef FAB_HOST_H
#define FAB_HOST_H

#include <stddef.h>

#include "fab.h"

int fab_open(const struct fabric *f, unsigned int host, struct cl_agent *out, char *error);

/* Connects to any agent that answers; -ENODEV when there is none. */
int fab_open_any(const struct fabric *f, struct cl_agent *out, char *error);

/* Finds the number of the host of this name; asks an agent for it, if one answers. */
int fab_host_number(const struct fabric *f, const char *name, unsigned int *out, char *error);

/* Finds the path of viaductd.  Returns an exit status, and prints the error. */
int fab_agent_path(char *path, size_t size);

#endif
