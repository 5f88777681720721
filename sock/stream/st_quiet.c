/* SPDX-License-Identifier: BSD-2-Clause */
#include "st_quiet.h"
#include "st_wait.h"

#define TAKEN 16

static int set = -1;
static struct st_wait *waits;	 /* of quiet streams */
static uint64_t next = ST_NEVER; /* when those that are not watched are watched again */

void st_quiet_open(void)
{
	set = st_sys_epoll(st_low_fd());
}

static void unlist(struct st_wait *w)
{
	*w->prev_quiet = w->next_quiet;
	if (w->next_quiet != NULL)
		w->next_quiet->prev_quiet = w->prev_quiet;
	w->prev_quiet = NULL;
	w->watched = false;
}

void st_quiet_close(void)
{
	for (struct st_stream *s = st_process.all; s != NULL; s = s->next_all)
		atomic_store(&s->quiet, false);
	for (struct st_wait *w = st_process.waits; w != NULL; w = w->next) {
		w->quiet = 0;
		w->watched = false;
		w->prev_quiet = NULL;
	}
	waits = NULL;
	if (set >= 0)
		st_sys_close(set);
	set = -1;
	next = ST_NEVER;
}

int st_quiet_fd(void)
{
	return set;
}

/*
 * Has the set watch the descriptor of w: the next entry makes it readable, or it is so already.  False: it could not;
 * or entries were there, which were taken, and it watches all the same.
 */
static bool watch(struct st_wait *w)
{
	if (st_sys_epoll_want(set, w->cq_fd, w) != 0)
		return false;
	w->watched = true;
	return st_wait_arm(w) == 0;
}

bool st_quiet_begin(struct st_stream *s)
{
	struct st_wait *w = s->wait;

	/* Before the entries are taken: later posts, and entries that have come, cause another look. */
	atomic_store(&s->quiet, true);
	if (w->quiet++ == 0) {
		w->next_quiet = waits;
		w->prev_quiet = &waits;
		if (waits != NULL)
			waits->prev_quiet = &w->next_quiet;
		waits = w;
	}
	if (w->watched || watch(w))
		return true;
	st_quiet_end(s);
	return false;
}

void st_quiet_end(struct st_stream *s)
{
	struct st_wait *w = s->wait;

	if (!atomic_exchange(&s->quiet, false) || --w->quiet > 0)
		return;
	if (w->prev_quiet == NULL)
		return;
	unlist(w);
	if (w->cq_fd >= 0)
		st_sys_epoll_drop(set, w->cq_fd);
}

/*
 * Takes entries of w, which name the streams that need a look.  Others come soon, perhaps: it is watched again later.
 */
static void take(struct st_wait *w)
{
	w->watched = false;
	if (st_lock(&w->lock) != 0)
		return;
	st_wait_entries(w);
	st_unlock(&w->lock);
}

uint64_t st_quiet_step(uint64_t now)
{
	void *came[TAKEN];
	int n;

	if (now >= next) {
		next = ST_NEVER;
		for (struct st_wait *w = waits; w != NULL; w = w->next_quiet)
			if (!w->watched && !watch(w) && !w->watched)
				next = st_next_idle(now);
	}
	do {
		n = st_sys_epoll_take(set, came, TAKEN);
		for (int i = 0; i < n; i++)
			take(came[i]);
		if (n > 0 && next == ST_NEVER)
			next = st_next_idle(now);
	} while (n == TAKEN);
	return next;
}
