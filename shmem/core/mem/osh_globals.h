/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The global and static variables of the executable as pieces of whole pages that can be adopted: found, and
 * copied for children of fork().
 */
#ifndef OSH_GLOBALS_H
#define OSH_GLOBALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osh_state.h"

struct osh_piece {
	uint8_t *base; /* page-aligned */
	size_t len;    /* whole pages */
	bool adopted;  /* written by osh_open.c: children of fork() need a copy */
};

struct osh_globals {
	struct osh_piece piece[OSH_DATA_PIECES];
	int count;
	uint64_t id; /* of the executable, its layout and the pieces: equal in PEs that run the same */
};

/*
 * Finds those pages of the executable's writable segments that are private memory and may be read and written.  Not
 * found is what the program has protected, or has mapped shared memory over, and what comes after
 * OSH_DATA_PIECES pieces.
 */
void osh_globals_find(struct osh_globals *g);
/* Does the address lie in a writable segment of the executable, adopted or not? */
bool osh_globals_have(const void *addr);
/*
 * Gives children of fork() a private copy of adopted pieces of *g, which they would otherwise lack.  NULL ends that;
 * *g has to exist until then.  Children also become processes without PEs (osh_state_leave_to_parent()), after NULL
 * too.
 * The handler of fork() is installed by the first call, which has to come before libraries in use install theirs: in
 * a child those run in this order, and may use variables that the linker has put into the executable (`environ`, those
 * of sanitizers).  0 or -errno.
 */
int osh_globals_for_children(const struct osh_globals *g);
/*
 * A piece is about to be adopted (true), or was not (false): children that another thread makes meanwhile get it, too.
 * Waits while a thread forks.
 */
void osh_globals_adopted(struct osh_piece *piece, bool adopted);

#endif
