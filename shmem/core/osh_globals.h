/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The global and static variables of the executable as a range of whole pages that can be adopted:
 * found, exchanged for anonymous pages, and copied for children of fork().
 */
#ifndef OSH_GLOBALS_H
#define OSH_GLOBALS_H

#include <stddef.h>
#include <stdint.h>

struct osh_globals {
	uint8_t *base; /* page-aligned */
	size_t len;    /* whole pages; 0: the executable has none */
	uint64_t id;   /* of the executable and its layout: equal in PEs that run the same */
};

/* Finds them. */
void osh_globals_find(struct osh_globals *s);
/* Exchanges the pages for private anonymous ones of the same content.  0 or -errno. */
int osh_globals_privatise(const struct osh_globals *s);
/*
 * From now on, or (NULL) no longer, children of fork() get a private copy of the range, which would be missing
 * there.  Its handler of fork() is installed by the first call, which has to come before libraries that are used
 * install theirs: in a child those run in this order, and may use variables that the linker has put into the
 * executable (`environ`, those of sanitizers).  0 or -errno.
 */
int osh_globals_for_children(const struct osh_globals *s);

#endif
