/* SPDX-License-Identifier: BSD-2-Clause */
/* The variables of the environment, read once by each shmem_init. */
#ifndef OSH_ENV_H
#define OSH_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include "boot.h"

/* Algorithms of collectives that a variable may choose, in the order of its words; OSH_AUTO: the library does. */
enum { OSH_AUTO };
enum { OSH_BARRIER_DISSEMINATION = 1, OSH_BARRIER_TREE, OSH_BARRIER_RING };
enum { OSH_BROADCAST_TREE = 1, OSH_BROADCAST_CHAIN, OSH_BROADCAST_FLAT };
enum { OSH_COLLECT_DIRECT = 1, OSH_COLLECT_RING };
enum { OSH_REDUCE_FLAT = 1, OSH_REDUCE_ROUNDS, OSH_REDUCE_SHARED, OSH_REDUCE_RING };

struct osh_env {
	size_t heap_bytes; /* whole pages, as heap_max */
	size_t heap_max;   /* what the heap may grow to; at least heap_bytes */
	bool version;	   /* print the version */
	bool info;	   /* print all variables */
	bool debug;	   /* check arguments */
	int barrier, broadcast, collect, reduce; /* algorithms */
};

extern struct osh_env osh_env;

/*
 * Fills osh_env from the environment. 0, or -EINVAL with one line about the variable that is not valid; then osh_env is
 * filled in part.
 */
int osh_env_read(char error[BOOT_TEXT_MAX]);
/* Prints name, value, default and meaning of each variable on standard output. */
void osh_env_print(void);
/*
 * A size as the specification writes it: a number, also with a fraction, and one of k m g t, of either case, after
 * it; what follows that letter is ignored.  Parts of a byte are rounded up.  False: not valid, or SIZE_MAX / 4 or
 * more; *bytes is as before.
 */
bool osh_env_size(const char *text, size_t *bytes);

#endif
