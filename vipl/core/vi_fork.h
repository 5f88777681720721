/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VI_FORK_H
#define VI_FORK_H

#include <stdint.h>

/*
 * A child of fork() has a copy of its parent's objects and none of its threads.  Handles of the
 * parent are refused in it (u_idtab.h), so nothing touches the copies; locks and pools that
 * all NICs share are initialised again, so that it can open NICs of its own.
 */
/*
 * From here on every child runs `renew` before fork() returns there.  All calls pass the same
 * function.  Called before the first object is made; 0 or -ENOMEM.
 */
int vi_fork_watch(void (*renew)(void));
/* Differs in a child of fork(), so that a thread can tell that it runs in one. */
uint32_t vi_fork_generation(void);

#endif
