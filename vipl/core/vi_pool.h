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

/* NULL: out of memory.  An object that was put back before has its old content.  Takes the pool's lock. */
void *vi_pool_get(struct vi_pool *pool);
/* Accepts NULL.  Threads may go on reading the object.  Takes the pool's lock. */
void vi_pool_put(struct vi_pool *pool, void *object);
/*
 * In a child of fork(): objects that were put back are not used again, as their locks may be held
 * by threads that are not in the child.
 */
void vi_pool_forked(struct vi_pool *pool);

#endif
