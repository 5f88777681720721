/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a program of which vi_forward serves all processes that no preloaded library reaches.
 *
 * vi_run has a child, which becomes vi_forward, and that has one, which becomes the program: so vi_forward is an
 * ancestor of all processes that it serves, as Linux may demand of one that looks into others.  vi_forward tells vi_run
 * the program's exit status by a pipe.
 */
#ifndef VR_ALL_H
#define VR_ALL_H

#include <stdbool.h>
#include <sys/types.h>

#include "vs_env.h"

struct vr_all {
	pid_t forward; /* the process that becomes vi_forward */
	int status_fd; /* tells the exit status, then that vi_forward goes on or, by its end, that it does not */
};

/*
 * Starts both: `path` is vi_forward's, and run() becomes the program or returns the exit status.  0, or 1 after an
 * error line.
 */
int vr_all_start(struct vr_all *all, const char *path, const struct vs_env *env,
		 int (*run)(char **program), char **program);

/* Waits for the program's end, and until its bytes are delivered: its exit status, or 1 after an error line. */
int vr_all_wait(struct vr_all *all);

#endif
