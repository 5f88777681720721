/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiver's side of the file system: everything below one directory, no
 * symbolic link followed, nothing under its final name before it is whole.
 *
 * A file grows under the name `.name.vi_cp.PID` in its own directory, locked
 * (flock) as long as its writer lives.  Functions return 0 or -errno.
 */
#ifndef VI_CP_DEST_H
#define VI_CP_DEST_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct dest_file {
	int dir; /* the directory it lies in */
	int fd;
	char temporary[NAME_MAX + 1];
	char name[NAME_MAX + 1];
};

/* Opens the directory `path` below `root` ("" is root itself); returns a descriptor. */
int dest_open(int root, const char *path);

/* Starts a file of about `size` bytes, for which room is reserved. */
int dest_file_create(int base, const char *path, uint64_t size, struct dest_file *file);
int dest_file_write(struct dest_file *file, const void *bytes, size_t length);
/* Gives it its final mode, time and, after fsync, name; on failure it is discarded. */
int dest_file_commit(struct dest_file *file, mode_t mode, const struct timespec *mtime);
void dest_file_discard(struct dest_file *file);

int dest_dir(int base, const char *path);
int dest_dir_finish(int base, const char *path, mode_t mode, const struct timespec *mtime);
int dest_link(int base, const char *path, const char *target, const struct timespec *mtime);

/* Is this the name of a temporary? */
bool dest_is_temporary(const char *name, pid_t *pid_out);

/* Removes the temporaries of dead processes below `root`; returns how many. */
unsigned int dest_clean(int root);

#endif
