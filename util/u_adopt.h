/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts pages of a shared mapping in the place of private memory, and private pages back, with the
 * same content.  If `exact`, all other threads are stopped while this is done (u_stop.h); else threads
 * that read see the content at any moment, and the caller makes sure that none writes.
 *
 * Data that a device or the kernel writes into pages which it pinned before, as for direct I/O, is lost
 * unnoticed.
 */
#ifndef U_ADOPT_H
#define U_ADOPT_H

#include <stdbool.h>
#include <stddef.h>

#include "u_maps.h"

/*
 * Copies [start, start + len), whole pages, to `pages`, a shared mapping of that length that is
 * zero, and maps those pages at `start` too.  Pages of zeros are not copied and take
 * no memory. `pages` stays mapped.  Children of fork() get neither.  `exact`: all other threads are stopped
 * meanwhile; else the caller makes sure that none writes there.
 *
 * Returns 0, or an error that changed nothing: -EFAULT for a gap, -EOPNOTSUPP for memory that
 * u_maps_check_plain() refuses, for a stack of this thread, or if other threads cannot be stopped;
 * -ENOMEM, -EMFILE and the like.  `why` gets the reason in a few words.  After an error `pages` may hold a part
 * of the copy.
 */
int u_adopt(void *start, size_t len, void *pages, bool exact, char why[U_MAPS_WHY]);

/*
 * Puts private pages with the content of `pages` back, wherever [start, start + len) still maps them
 * as u_adopt() did: pages that the program has unmapped, or replaced by another mapping, are left alone,
 * and a protection that it has changed is kept.
 *
 * Returns 0, or -errno, -EOPNOTSUPP if other threads cannot be stopped.  After an error the first mapping
 * in the range that was not put back, and all after it, are as they were.  `pages` stays mapped in any case.
 * `exact` as in u_adopt().
 */
int u_adopt_undo(void *start, size_t len, void *pages, bool exact);

/* In a child of fork(), before it has other threads: initialises the lock again. */
void u_adopt_forked(void);

#endif
