/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Goes through the files and trees named on the command line.
 */
#ifndef VI_CP_WALK_H
#define VI_CP_WALK_H

#include <sys/stat.h>

enum walk_kind {
	WALK_DIR,     /* before its contents */
	WALK_DIR_END, /* after them */
	WALK_FILE,
	WALK_LINK,
	WALK_SPECIAL, /* device, FIFO, socket */
};

struct walk_entry {
	enum walk_kind kind;
	const char *source; /* to open it by */
	const char *path;   /* relative to the destination */
	const struct stat *st;
};

/* A negative return ends the walk. */
typedef int (*walk_visit)(void *context, const struct walk_entry *entry);

/*
 * Visits everything in `sources`, in the order of names.  Counts in *unread what
 * cannot be read, and prints a line for each if `report`.  Returns 0 or what a
 * visit returned.
 */
int walk(char *const *sources, int count, walk_visit visit, void *context, int report,
	 unsigned int *unread);

#endif
