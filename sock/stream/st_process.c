/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "st_process.h"

struct st_process st_process = { .helper_fd = -1 };
struct st_counts st_counts;

static __thread struct st_sleeper own = { .fd = -1 };
static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

void st_log(const char *format, ...)
{
	char line[256];
	va_list args;

	if (st_process.config.log == NULL)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	st_process.config.log(line);
}

int st_low_fd(void)
{
	int low = st_process.config.low_fd;
	struct rlimit limit;

	if (low == 0)
		low = 1000;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    (rlim_t)low + 64 > limit.rlim_cur)
		low = (int)(limit.rlim_cur / 2);
	return low;
}

void st_get(struct st_stream *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

/* ---- the helper's list --------------------------------------------------------------------------------------- */

void st_helper_wake(void)
{
	if (st_process.helper_fd >= 0)
		st_sys_signal(st_process.helper_fd);
}

void st_look_after(struct st_stream *s, uint64_t due)
{
	bool sooner;

	if (st_lock(&st_process.lock) != 0) {
		atomic_store(&st_process.all_due, true);
		st_helper_wake();
		return;
	}
	if (s->prev == NULL) {
		st_get(s);
		s->next = st_process.streams;
		s->prev = &st_process.streams;
		if (s->next != NULL)
			s->next->prev = &s->next;
		st_process.streams = s;
		s->due = ST_NEVER;
	}
	sooner = due < s->due;
	if (sooner)
		s->due = due;
	st_unlock(&st_process.lock);
	if (sooner)
		st_helper_wake();
}

/* ---- sleepers ------------------------------------------------------------------------------------------------ */

/* Under sleepers_lock: takes the sleeper off the list, if it is there. */
static void unlist(struct st_sleeper *me)
{
	if (!me->listed)
		return;
	*me->prev = me->next;
	if (me->next != NULL)
		me->next->prev = me->prev;
	me->listed = false;
	atomic_fetch_sub(&st_process.sleepers_count, 1);
}

/* When a thread ends: takes its sleeper off the list, and closes its descriptor. */
static void thread_ends(void *arg)
{
	struct st_sleeper *me = arg;

	st_lock(&st_process.sleepers_lock);
	if (me->era == st_process.era)
		unlist(me);
	st_unlock(&st_process.sleepers_lock);
	if (me->fd >= 0)
		st_sys_close(me->fd);
	me->fd = -1;
}

static void make_key(void)
{
	pthread_key_create(&own_key, thread_ends);
}

int st_sleep_begin(struct st_stream *s, struct st_wait *w)
{
	int fd;

	if (own.fd >= 0 && own.era != st_process.era) {
		/* The parent's, whose eventfd would be shared. */
		st_sys_close(own.fd);
		own = (struct st_sleeper){ .fd = -1 };
	}
	if (own.fd < 0) {
		pthread_once(&own_once, make_key);
		fd = st_sys_eventfd(st_low_fd());
		if (fd < 0)
			return fd;
		own.fd = fd;
		own.era = st_process.era;
		pthread_setspecific(own_key, &own);
	}
	if (st_lock(&st_process.sleepers_lock) != 0)
		return -EDEADLK;
	unlist(&own);
	own.stream = s;
	own.wait = w;
	own.tag = NULL;
	own.next = st_process.sleepers;
	own.prev = &st_process.sleepers;
	if (own.next != NULL)
		own.next->prev = &own.next;
	st_process.sleepers = &own;
	own.listed = true;
	st_sys_clear(own.fd);
	atomic_fetch_add(&st_process.sleepers_count, 1);
	st_unlock(&st_process.sleepers_lock);
	return own.fd;
}

void st_sleep_end(void)
{
	/* A handler that cannot have the lock could not list its thread either. */
	if (st_lock(&st_process.sleepers_lock) != 0)
		return;
	unlist(&own);
	st_unlock(&st_process.sleepers_lock);
}

/* Wakes the sleepers on the stream, the wait object, or any; this thread only if `me_too`. */
static void kick(struct st_stream *s, struct st_wait *w, bool me_too)
{
	/* Pairs with that of st_sleep_begin(), after which the sleeper looks. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&st_process.sleepers_count, memory_order_relaxed) == 0 ||
	    st_lock(&st_process.sleepers_lock) != 0)
		return;
	for (struct st_sleeper *at = st_process.sleepers; at != NULL; at = at->next)
		if ((me_too || at != &own) &&
		    ((at->stream == NULL && at->wait == NULL) || (s != NULL && at->stream == s) ||
		     (w != NULL && at->wait == w)))
			st_sys_signal(at->fd);
	st_unlock(&st_process.sleepers_lock);
}

void st_sleep_for(const void *tag)
{
	if (st_lock(&st_process.sleepers_lock) != 0)
		return;
	own.tag = tag;
	st_unlock(&st_process.sleepers_lock);
}

void st_wake(const void *tag)
{
	if (atomic_load(&st_process.sleepers_count) == 0 || st_lock(&st_process.sleepers_lock) != 0)
		return;
	for (struct st_sleeper *at = st_process.sleepers; at != NULL; at = at->next)
		if (at != &own && at->stream == NULL && at->wait == NULL &&
		    (at->tag == NULL || tag == NULL || at->tag == tag))
			st_sys_signal(at->fd);
	st_unlock(&st_process.sleepers_lock);
}

void st_kick(struct st_stream *s, struct st_wait *w)
{
	kick(s, w, false);
}

void st_changed(void)
{
	atomic_fetch_add(&st_process.changes, 1);
}

uint64_t st_changes(void)
{
	/* After st_sleep_begin(): either this count is new, or st_kick_all() sees the sleeper. */
	return atomic_load(&st_process.changes);
}

void st_kick_all(struct st_stream *s)
{
	st_changed();
	kick(s, s->wait, true);
}

const char *st_why_text(enum st_why why)
{
	static const char *const texts[ST_WHY_COUNT] = {
		[ST_WHY_NONE] = "on a VI, or not asked for",
		[ST_WHY_ASKED] = "the program did something that only TCP can",
		[ST_WHY_PEER] = "the other end went back to TCP",
		[ST_WHY_NO_NIC] = "no NIC can be opened",
		[ST_WHY_NO_HOST] = "no host of the fabric, or no path to it",
		[ST_WHY_NO_PEER] =
			"no answer: the other end does not run under vi_run, or addresses are translated",
		[ST_WHY_NO_MEMORY] = "no window memory or VI left",
		[ST_WHY_VERSION] = "the other end has another version",
		[ST_WHY_TOKEN] = "the VI had another owner than the TCP connection",
		[ST_WHY_LOST] = "the VI was lost",
		[ST_WHY_CLOSED] = "closed before",
		[ST_WHY_FORK] = "in a child of fork()",
	};

	return why < ST_WHY_COUNT ? texts[why] : "unknown";
}

uint32_t st_version(void)
{
	return ST_VERSION;
}

void st_stats(struct st_stats *stats)
{
	struct st_counts *c = &st_counts;
	bool locked = st_lock(&st_process.lock) == 0;
	struct st_stats all = {
		.size = stats->size,
		.vi_bytes_sent = c->vi_sent,
		.vi_bytes_received = c->vi_received,
		.tcp_bytes_sent = c->tcp_sent,
		.tcp_bytes_received = c->tcp_received,
		.promotions = c->promotions,
		.attempts = c->attempts,
		.given_up = c->given_up,
		.wakes_sent = c->wakes_sent,
		.wakes_received = c->wakes_received,
		.arms = c->arms,
		.resets = c->resets,
		.polled = c->polled,
		.poller_wakes = c->poller_wakes,
		.looks = c->looks,
		.given = c->given,
		.given_one_core = c->given_one_core,
	};
	for (int i = 0; i < 16; i++)
		all.demotions[i] = c->demotions[i];
	for (struct st_stream *s = st_process.all; s != NULL; s = s->next_all) {
		all.vi_bytes_sent += s->tx.moved;
		all.vi_bytes_received += s->rx.moved;
	}
	if (locked)
		st_unlock(&st_process.lock);
	memcpy(stats, &all, stats->size < sizeof(all) ? stats->size : sizeof(all));
}
