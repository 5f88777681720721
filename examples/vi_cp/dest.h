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

/* The attributes that a file, directory or link is to get. */
struct dest_attrs {
	mode_t mode;
	struct timespec mtime;
	uid_t uid;
	gid_t gid;
	bool preserve;	 /* mode and time of the source; else as for a new file */
	bool owner;	 /* uid and gid of the source */
	bool no_clobber; /* an existing file is not replaced: -EEXIST */
	mode_t umask;
};

struct dest_file {
	int dir; /* the directory it lies in */
	int fd;
	uint64_t written, flushed; /* bytes; and those of them whose write to the disk has begun */
	char temporary[NAME_MAX + 1];
	char name[NAME_MAX + 1];
};

/* Opens the directory `path` below `root` ("" is root itself); returns a descriptor. */
int dest_open(int root, const char *path);

/*
 * Interprets a destination: an existing directory into which to copy, or a new name, or the name
 * of a file, in an existing one.  Opens the directory; `name` is empty or the name in it.
 * `directory`: it must be one, and is made if it is not there.  `root`: paths are below it,
 * or -1: anywhere, and symbolic links are followed.
 */
int dest_resolve(int root, const char *path, bool directory, char name[NAME_MAX + 1]);

/* Starts a file, with room for `room` bytes; 0: as it grows. */
int dest_file_create(int base, const char *path, uint64_t room, const struct dest_attrs *attrs,
		     struct dest_file *file);
int dest_file_write(struct dest_file *file, const void *bytes, size_t length);
int dest_file_hole(struct dest_file *file, uint64_t length);
/* Gives it its attributes and its name; on failure it is discarded. */
int dest_file_commit(struct dest_file *file, const struct dest_attrs *attrs);
void dest_file_discard(struct dest_file *file);

int dest_dir(int base, const char *path, const struct dest_attrs *attrs);
int dest_dir_finish(int base, const char *path, const struct dest_attrs *attrs);
int dest_link(int base, const char *path, const char *target, const struct dest_attrs *attrs);

/* Waits until everything that was written is on disk. */
int dest_sync(int base);

/* Is this the name of a temporary? */
bool dest_is_temporary(const char *name, pid_t *pid_out);

/* Removes the temporaries of dead processes below `root`; returns how many. */
unsigned int dest_clean(int root);

#endif
