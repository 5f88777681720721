/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VI_POOL_H
#define VI_POOL_H

#include <stddef.h>

#include "u_lock.h"

/*
 * Objects whose memory is reused only for the same type and stays readable.
 * The memory is zero when it is used for the first time.
 */
struct vi_pool {
	struct u_lock lock;
	size_t size;
	size_t link; /* offset of a `void *` that only the pool uses */
	void *free;
	void *lost; /* objects that are not used again: vi_pool_forked() */
};

/*
 * Returns an object: one that was put back, with its old content, or else a new one of zeros; NULL: out of memory.
 * Takes the pool's lock.
 */
void *vi_pool_get(struct vi_pool *pool);
/* Gives an object back for reuse; its memory stays readable.  Accepts NULL.  Takes the pool's lock. */
void vi_pool_put(struct vi_pool *pool, void *object);
/*
 * In a child of fork(): objects that were put back are not used again, as their locks may be held by threads that are
 * not in the child.  Initialises the lock again.
 */
void vi_pool_forked(struct vi_pool *pool);

#endif
