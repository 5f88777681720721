/* SPDX-License-Identifier: BSD-2-Clause */
#include "all_lock.h"
#include "st_process.h"

void all_lock(void)
{
	st_lock(&st_process.lock);
}

void all_unlock(void)
{
	st_unlock(&st_process.lock);
}

bool all_locked(void)
{
	return st_lock_is_mine(&st_process.lock);
}

void wait_lock(struct st_wait *w)
{
	st_lock(&w->lock);
}

void wait_unlock(struct st_wait *w)
{
	st_unlock(&w->lock);
}

int all_streams(void)
{
	int n = 0;

	for (struct st_stream *s = st_process.all; s != NULL; s = s->next_all)
		n++;
	return n;
}

int all_waits(void)
{
	int n = 0;

	for (struct st_wait *w = st_process.waits; w != NULL; w = w->next)
		n++;
	return n;
}
