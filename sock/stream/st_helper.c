/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "st_helper.h"
#include "st_nic.h"
#include "st_quiet.h"
#include "st_step.h"

static uint64_t end_at; /* under the process lock */

/* A stream that is due, with a reference; NULL: none, and when the next one is, and whether a closed one is left. */
static struct st_stream *take_due(uint64_t now, uint64_t *next, bool *closing)
{
	struct st_stream *s;

	*next = ST_NEVER;
	*closing = false;
	st_lock(&st_process.lock);
	if (atomic_exchange(&st_process.all_due, false))
		for (s = st_process.streams; s != NULL; s = s->next)
			s->due = 0;
	for (s = st_process.streams; s != NULL; s = s->next) {
		*closing |= s->closing;
		if (s->due <= now)
			break;
		if (s->due < *next)
			*next = s->due;
	}
	if (s != NULL) {
		st_get(s);
		s->due = ST_NEVER;
	}
	st_unlock(&st_process.lock);
	return s;
}

/*
 * After a step: the next one is at `due`, or sooner if a thread asked for it during the step; or the stream leaves the
 * list.  Gives the reference of take_due() back.
 */
static void put_back(struct st_stream *s, uint64_t due)
{
	bool leaves;

	st_lock(&st_process.lock);
	if (due < s->due)
		s->due = due;
	leaves = s->due == ST_NEVER && s->prev != NULL && !atomic_load(&s->quiet);
	if (leaves) {
		*s->prev = s->next;
		if (s->next != NULL)
			s->next->prev = s->prev;
		s->prev = NULL;
	}
	st_unlock(&st_process.lock);
	if (leaves)
		st_put(s);
	st_put(s);
}

/* Sleeps until `next`, until the helper is woken, or until quiet streams have entries. */
static void nap(uint64_t next)
{
	struct pollfd fds[2] = { { .fd = st_process.helper_fd, .events = POLLIN },
				 { .fd = st_quiet_fd(), .events = POLLIN } };
	uint64_t now = st_now_ns();
	struct timespec left;

	if (next <= now)
		return;
	left.tv_sec = (time_t)((next - now) / 1000000000u);
	left.tv_nsec = (long)((next - now) % 1000000000u);
	if (st_sys_poll(fds, 2, next == ST_NEVER ? NULL : &left) > 0 && fds[0].revents)
		st_sys_clear(st_process.helper_fd);
}

/* The helper's thread, until it is to end and no closed stream is left, or that has taken too long. */
static void *run(void *unused)
{
	(void)unused;
	st_quiet_open();
	for (;;) {
		uint64_t now = st_now_ns(), next, again;
		struct st_stream *s;
		bool closing;

		s = take_due(now, &next, &closing);
		if (s != NULL) {
			put_back(s, st_step(s, now));
			continue;
		}
		if (st_process.helper_ends) {
			if (!closing || now >= end_at)
				return NULL;
			next = end_at < next ? end_at : next;
		}
		again = st_quiet_step(now);
		nap(again < next ? again : next);
	}
}

int st_helper_start(void)
{
	sigset_t all, before;
	int rc = 0;

	if (st_lock(&st_process.lock) != 0)
		return -EDEADLK;
	if (!st_process.helper_runs) {
		st_process.helper_fd = st_sys_eventfd(st_low_fd());
		rc = st_process.helper_fd;
		if (rc >= 0) {
			st_process.helper_ends = false;
			sigfillset(&all);
			pthread_sigmask(SIG_SETMASK, &all, &before);
			rc = -pthread_create(&st_process.helper, NULL, run, NULL);
			pthread_sigmask(SIG_SETMASK, &before, NULL);
		}
		if (rc == 0) {
			pthread_setname_np(st_process.helper, "vi-sock");
			st_process.helper_runs = true;
		} else if (st_process.helper_fd >= 0) {
			st_sys_close(st_process.helper_fd);
			st_process.helper_fd = -1;
		}
	}
	st_unlock(&st_process.lock);
	return rc < 0 ? rc : 0;
}

void st_helper_end(uint64_t deadline)
{
	bool runs;

	st_lock(&st_process.lock);
	runs = st_process.helper_runs;
	end_at = deadline;
	st_process.helper_ends = true;
	st_unlock(&st_process.lock);
	if (!runs)
		return;
	st_helper_wake();
	pthread_join(st_process.helper, NULL);
	st_process.helper_runs = false;
	st_lock(&st_process.lock);
	st_quiet_close();
	st_unlock(&st_process.lock);
	st_sys_close(st_process.helper_fd);
	st_process.helper_fd = -1;
}
