/* SPDX-License-Identifier: BSD-2-Clause */
/* st_fork.c - begin and end of the process's part, and children of fork() */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "st_helper.h"
#include "st_nic.h"
#include "st_parting.h"
#include "st_poller.h"
#include "st_quiet.h"
#include "st_risk.h"
#include "st_step.h"
#include "st_wait.h"

/* Those that this thread has taken: fork() in a handler leaves alone what the interrupted call has. */
static __thread bool took_lists, took_sleepers;

/* Takes the locks of the lists, which after_fork() gives back: between these two no list is changed. */
static void before_fork(void)
{
	took_lists = st_lock(&st_process.lock) == 0;
	took_sleepers = st_lock(&st_process.sleepers_lock) == 0;
}

/* In the parent and in the child, whose streams stay as they are until it calls st_fork_child(). */
static void after_fork(void)
{
	if (took_sleepers)
		st_unlock(&st_process.sleepers_lock);
	if (took_lists)
		st_unlock(&st_process.lock);
}

static void register_handlers(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

int st_init(const struct st_config *config)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint32_t ring;
	int rc = 0;

	/* The structure of programs that were built before `sleep` was added ends before it. */
	if (config->size != sizeof(*config) && config->size != offsetof(struct st_config, sleep))
		return -EINVAL;
	ring = config->ring_bytes;
	if (config->pollers > ST_POLLERS_MOST)
		return -EINVAL;
	if (ring != 0 && (ring < ST_RING_LEAST || ring > ST_RING_MOST || (ring & (ring - 1)) != 0))
		return -EINVAL;
	pthread_once(&once, register_handlers);
	st_lock(&st_process.lock);
	if (st_process.ready) {
		rc = -EALREADY;
	} else {
		st_process.config = (struct st_config){ 0 };
		memcpy(&st_process.config, config, config->size);
		st_process.alone = st_sys_processors() == 1;
		st_process.ready = true;
		st_process.nic_failed = false;
	}
	st_unlock(&st_process.lock);
	return rc;
}

void st_fini(uint32_t wait_ms)
{
	struct st_stream *s;

	st_helper_end(st_now_ns() + wait_ms * 1000000ull);
	st_pollers_end();
	for (;;) {
		st_lock(&st_process.lock);
		for (s = st_process.all; s != NULL && s->link == NULL; s = s->next_all)
			;
		if (s != NULL)
			st_get(s);
		st_unlock(&st_process.lock);
		if (s == NULL)
			break;
		if (!atomic_load(&s->closed))
			st_reset(s);
		st_drop_link(s);
		st_put(s);
	}
	while (st_process.streams != NULL) {
		s = st_process.streams;
		st_lock(&st_process.lock);
		st_process.streams = s->next;
		if (s->next != NULL)
			s->next->prev = &st_process.streams;
		s->prev = NULL;
		st_unlock(&st_process.lock);
		st_put(s);
	}
	for (struct st_wait *w = st_process.waits; w != NULL; w = w->next) {
		if (w->cq != NULL)
			VipDestroyCQ(w->cq);
		w->cq = NULL;
		w->cq_fd = -1;
	}
	st_nic_close();
	st_process.strangers_count = 0;
	st_process.ready = false;
}

/* ---- _exit() ------------------------------------------------------------------------------------------------- */

/* True: this thread, which a signal handler may have interrupted, is in the middle of a call of this library. */
static bool is_inside(void)
{
	bool mine = st_lock_is_mine(&st_process.lock) || st_lock_is_mine(&st_process.sleepers_lock);

	if (mine)
		return true;
	st_lock(&st_process.lock);
	for (struct st_stream *s = st_process.all; s != NULL; s = s->next_all)
		mine = mine || st_lock_is_mine(&s->rx_lock) || st_lock_is_mine(&s->tx_lock);
	for (struct st_wait *w = st_process.waits; w != NULL; w = w->next)
		mine = mine || st_lock_is_mine(&w->lock);
	st_unlock(&st_process.lock);
	return mine;
}

/*
 * Sends what is left.  True: nothing of the stream's is lost if the process ends now, or it was reset.  False also
 * while another thread sends.
 */
static bool is_delivered(struct st_stream *s)
{
	bool rx = st_trylock(&s->rx_lock), parted = false, done;

	/* As st_close() does. */
	if (rx && s->rx.path == ST_RX_RING)
		st_rx_credit(s, 1);
	if (!st_trylock(&s->tx_lock)) {
		if (rx)
			st_unlock(&s->rx_lock);
		return false;
	}
	if (s->link != NULL)
		st_link_reap(s, s->link);
	/* The other end may read on, and needs the mark, if something may have been lost. */
	s->tx.pend_lazy = s->tx.pend_lazy && !s->tx.at_risk;
	st_tx_push(s);
	/* Without the lock another thread is reading: not yet. */
	if (rx) {
		parted = !st_parting_due(s);
		st_unlock(&s->rx_lock);
	}
	done = parted && s->tx.held_bytes == 0 && !s->tx.fin_due &&
	       (s->tx.pend_bytes == 0 || s->tx.pend_lazy) &&
	       (s->tx.path != ST_TX_RING || VipxFlush(s->link->vi, 0) == VIP_SUCCESS);
	if (done)
		st_risk_end(s);
	st_unlock(&s->tx_lock);
	return done || atomic_load(&s->dead);
}

/*
 * The stream after `s`, or the first for NULL, with a reference that is not given back: the process ends.  NULL: there
 * is none.
 */
static struct st_stream *next_of(struct st_stream *s)
{
	st_lock(&st_process.lock);
	s = s != NULL ? s->next_all : st_process.all;
	if (s != NULL)
		st_get(s);
	st_unlock(&st_process.lock);
	return s;
}

void st_deliver(uint32_t wait_ms)
{
	uint64_t end = st_now_ns() + wait_ms * 1000000ull;
	struct timespec turn = { 0, 100000 };

	if (!st_process.ready || is_inside())
		return;
	for (struct st_stream *s = next_of(NULL); s != NULL; s = next_of(s))
		while (!is_delivered(s) && st_now_ns() < end)
			st_sys_poll(NULL, 0, &turn);
}

/* ---- children ------------------------------------------------------------------------------------------------ */

/* In a child: the stream has no VI; if bytes were under way it is foreign, the parent's alone. */
static void renew_stream(struct st_stream *s)
{
	bool plain = s->tx.path == ST_TX_TCP && s->rx.path == ST_RX_TCP && s->tx.pend_bytes == 0 &&
		     s->tx.held_bytes == 0 && s->rx.stash == NULL && s->rx.token_have == 0;

	memset(&s->rx_lock, 0, sizeof(s->rx_lock));
	memset(&s->tx_lock, 0, sizeof(s->tx_lock));
	/* The VI and its memory are the parent's: the part that this process has mapped stays mapped. */
	s->link = NULL;
	atomic_store(&s->phase, ST_PHASE_NONE);
	s->want_tcp = s->asked_back = s->closing = s->listed = false;
	s->rx.asked = s->rx.credit_due = s->tx.fin_due = false;
	s->closing_fd = -1;
	s->why = ST_WHY_FORK;
	if (!plain) {
		/* The parent sends the bytes that are under way, and sets SO_LINGER of the socket that both have. */
		atomic_store(&s->foreign, true);
		s->tx.path = ST_TX_TCP;
		s->rx.path = ST_RX_TCP;
		s->tx.pend_bytes = s->tx.held_bytes = 0;
		s->tx.at_risk = false;
	}
	if (s->prev != NULL) {
		s->prev = NULL;
		atomic_fetch_sub(&s->refs, 1);
	}
}

void st_fork_child(void)
{
	int old_helper = st_process.helper_fd;

	/* _Fork() runs no handlers: in its child another thread of the parent may seem to hold these locks. */
	memset(&st_process.lock, 0, sizeof(st_process.lock));
	memset(&st_process.sleepers_lock, 0, sizeof(st_process.sleepers_lock));
	st_process.era++;
	st_changed();
	st_process.nic = NULL;
	st_process.nic_failed = false;
	st_process.helper_runs = false;
	st_process.helper_fd = -1;
	if (old_helper >= 0)
		st_sys_close(old_helper);
	st_pollers_forked();
	st_quiet_close();
	st_process.sleepers = NULL;
	atomic_store(&st_process.sleepers_count, 0);
	st_process.streams = NULL;
	for (struct st_stream *s = st_process.all; s != NULL; s = s->next_all)
		renew_stream(s);
	for (struct st_wait *w = st_process.waits; w != NULL; w = w->next)
		st_wait_renew(w);
	st_deferred_renew();
}
