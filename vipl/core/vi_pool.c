/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "vi_pool.h"

static void **link_of(const struct vi_pool *pool, void *object)
{
	return (void **)((char *)object + pool->link);
}

void *vi_pool_get(struct vi_pool *pool)
{
	size_t bytes = u_align_up(pool->size, U_LINE_PAIR);
	void *object;

	u_lock_take(&pool->lock);
	object = pool->free;
	if (object != NULL)
		pool->free = *link_of(pool, object);
	u_lock_drop(&pool->lock);
	if (object != NULL)
		return object;
	object = aligned_alloc(U_LINE_PAIR, bytes);
	if (object != NULL)
		memset(object, 0, bytes);
	return object;
}

void vi_pool_put(struct vi_pool *pool, void *object)
{
	if (object == NULL)
		return;
	u_lock_take(&pool->lock);
	*link_of(pool, object) = pool->free;
	pool->free = object;
	u_lock_drop(&pool->lock);
}

void vi_pool_forked(struct vi_pool *pool)
{
	pool->lock = (struct u_lock)U_LOCK_INIT;
	if (pool->lost == NULL)
		pool->lost = pool->free;
	pool->free = NULL;
}
