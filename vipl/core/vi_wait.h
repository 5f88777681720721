/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting until another thread, or the peer, makes a condition true. */
#ifndef VI_WAIT_H
#define VI_WAIT_H

#include <stdatomic.h>
#include <stdint.h>

struct vi_nic;
struct vi_ref;

/*
 * Waits until try(arg) returns nonzero or the deadline passes: polls, then yields, then arms the
 * provider, tries again and sleeps (VIADUCT_WAIT). Returns the value of try, 0 at the deadline.
 *
 * Another thread of this process may make it true, too: `sleepers` is nonzero while this one
 * sleeps, and the other thread then calls ops->wake().
 *
 * Between two sleeps the thread may be cancelled: then it drops `held`, a reference of its caller,
 * and has taken nothing.  try() has no cancellation point.  `held` is NULL if the caller turned
 * cancellation off.
 */
int vi_wait(struct vi_nic *nic, _Atomic uint32_t *sleepers, struct vi_ref *held,
	    int (*try)(void *arg), void *arg, int64_t deadline);

#endif
