/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Goes through the files and trees that are to be copied.
 */
#ifndef VI_CP_WALK_H
#define VI_CP_WALK_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

enum walk_kind {
	WALK_DIR,     /* before its contents */
	WALK_DIR_END, /* after them */
	WALK_FILE,
	WALK_STREAM, /* standard input, or a pipe or device that was named: read to its end */
	WALK_LINK,
	WALK_BAD, /* not to be copied */
};

struct walk_options {
	int root;	   /* sources lie below this directory, or -1: anywhere */
	bool input;	   /* "-" is standard input, and pipes and devices may be named */
	bool recursive;	   /* directories are copied, too */
	bool follow_named; /* a symbolic link that was named stands for its target */
};

struct walk_source {
	const char *name; /* with a slash at its end: its contents */
	const char *as;	  /* its name at the destination, or NULL for its own name */
};

struct walk_entry {
	enum walk_kind kind;
	const char *shown; /* for messages */
	const char *path;  /* relative to the destination */
	const struct stat *st;
	const char *why; /* of WALK_BAD */
	int top;	 /* the named source, and the path below it; "" is the source itself */
	const char *below;
};

/* A negative return ends the walk. */
typedef int (*walk_visit)(void *context, const struct walk_entry *entry);

/* Visits everything in `sources`, in the order of names.  Returns 0 or the result of a visit. */
int walk(const struct walk_options *options, const struct walk_source *sources, int count,
	 walk_visit visit, void *context);

/* Opens a file or stream for reading, following no link; returns a descriptor or -errno. */
int walk_open(const struct walk_entry *entry);

/* The target of a link, ended by a zero byte; its length or -errno. */
ssize_t walk_readlink(const struct walk_entry *entry, char *target, size_t room);

/* Does the name end in a slash, or otherwise stand for the contents of a directory? */
bool walk_is_contents(const char *name);

#endif
