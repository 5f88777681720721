/* SPDX-License-Identifier: BSD-2-Clause */
/* The arguments and variables of a running agent, to start another like it. */
#ifndef FAB_ARGS_H
#define FAB_ARGS_H

#include <sys/types.h>

struct fab_args {
	char **v; /* ends with NULL */
	unsigned int count;
};

/*
 * Reads the arguments of the viaductd `pid`, a process of this user, without the program and
 * --ready-fd, and with `host` in place of its own.  Returns 0 or -errno; fab_args_free() must follow
 * in any case.
 */
int fab_args_read(pid_t pid, unsigned int host, struct fab_args *out);
void fab_args_free(struct fab_args *args);

/* Replaces the VIADUCT_* variables of this process by those of `pid`.  Returns 0 or -errno. */
int fab_args_environ(pid_t pid);

#endif
