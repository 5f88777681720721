/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts pages of a shared mapping in the place of private memory, and private pages back, with the
 * content that is there.  Where `exact` is asked for all other threads are stopped meanwhile (u_stop.h);
 * else threads that read see the content at any moment, and the caller answers for it that none writes.
 *
 * Not seen, and lost: what a device or the kernel writes into pages that it has pinned before, as for
 * direct I/O.
 */
#ifndef U_ADOPT_H
#define U_ADOPT_H

#include <stdbool.h>
#include <stddef.h>

#include "u_maps.h"

/*
 * Copies [start, start + len), whole pages, to `pages`, a shared mapping of that length that is
 * zero, and maps those pages at `start` too.  Pages of zeros are not copied and take
 * no memory. `pages` stays mapped.  Children of fork() get neither.
 *
 * Returns 0, or an error that changed nothing: -EFAULT for a gap, -EOPNOTSUPP for memory that
 * u_maps_check_plain() refuses, a stack of this thread, or where other threads cannot be stopped;
 * -ENOMEM, -EMFILE and the like.  `why` tells it in a few words.
 */
int u_adopt(void *start, size_t len, void *pages, bool exact, char why[U_MAPS_WHY]);

/*
 * Puts private pages with the content of `pages` back, wherever [start, start + len) still maps them
 * as u_adopt() did: what the program has unmapped or mapped anew is left alone, and protection that
 * it has changed is kept.
 *
 * Returns 0, or -errno, -EOPNOTSUPP where other threads cannot be stopped: pages of the first mapping in
 * the range that were not put back, and all behind it, are as they were.
 */
int u_adopt_undo(void *start, size_t len, void *pages, bool exact);

/* In a child of fork(), before it has other threads: initialises the lock again. */
void u_adopt_forked(void);

#endif
