/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "st_paths.h"
#include "st_ready.h"
#include "st_wait.h"

#define CONFIRM_SPINS                                                                              \
	200 /* looks for the answer of a read-back before the thread sleeps without it */
#define CONFIRM_ALONE 128 /* after so many the other end may wait for this processor, and gets it */
#define CONFIRM_YIELDS                                                                             \
	16 /* looks where there is one processor, which the other end gets after each */
#define YIELD_LONG_NS 200000 /* a yield that took longer ran threads that compute, */
#define YIELD_AGAIN 64u	     /* and the next one follows after so many times its time */

/* Until then there are no yields; a hint, of all threads. */
static _Atomic uint64_t crowded;

/* ---- events -------------------------------------------------------------------------------------------------- */

/*
 * Under rx: the events for reading that are there, after tokens and marks that have come were taken.  Kernel events are
 * left to the caller.  A bad record resets the connection; each 32nd look that finds nothing moves packets.
 */
static unsigned in_events(struct st_stream *s)
{
	unsigned events = 0;

	st_rx_step(s);
	if (atomic_load(&s->error) != 0 || atomic_load(&s->dead))
		events |= ST_IN | ST_RDHUP | ST_HUP | (atomic_load(&s->error) != 0 ? ST_ERR : 0);
	if (s->rx.fin || s->rx.shut)
		events |= ST_IN | ST_RDHUP;
	if (s->rx.stash != NULL)
		events |= ST_IN;
	if (s->rx.path == ST_RX_RING && !s->rx.fin) {
		if (st_rx_scan(s) < 0) {
			st_reset(s);
			return ST_IN | ST_ERR;
		}
		if (s->rx.scan > s->rx.position && s->rx.scan_last)
			events |= ST_IN | ST_RDHUP;
		else if (s->rx.scan > s->rx.position)
			events |= s->rx.scan_bytes > s->rx.bytes || s->rx.scan_fin ? ST_IN : 0;
		else if (atomic_load(&s->phase) == ST_PHASE_UP && ++s->rx.empty_looks % 32 == 0)
			st_link_progress(s, s->link);
	}
	return events;
}

/* Under tx: the events for sending that are there, but for the kernel's; ST_OUT also where a send would fail. */
static unsigned out_events(struct st_stream *s)
{
	if (s->tx.fin || atomic_load(&s->dead) || atomic_load(&s->error) != 0)
		return ST_OUT;
	return s->tx.path == ST_TX_RING && st_tx_writable(s) ? ST_OUT : 0;
}

/* The events for reading that the kernel has to be asked for. */
static unsigned kernel_in(struct st_stream *s)
{
	return s->rx.path == ST_RX_RING || s->rx.fin || atomic_load(&s->dead) ? 0
									      : ST_IN | ST_RDHUP;
}

/* The events for sending that the kernel has to be asked for. */
static unsigned kernel_out(struct st_stream *s)
{
	return s->tx.path == ST_TX_TCP && !s->tx.fin && !atomic_load(&s->dead) ? ST_OUT : 0;
}

/* True: the stream is closed or foreign, and has all events. */
static bool gone(struct st_stream *s)
{
	return atomic_load_explicit(&s->closed, memory_order_acquire) ||
	       atomic_load_explicit(&s->foreign, memory_order_acquire);
}

void st_ready(struct st_stream *s, struct st_ready *r)
{
	*r = (struct st_ready){ 0 };
	if (gone(s)) {
		r->events = ST_ERR | ST_HUP | ST_IN | ST_OUT;
		return;
	}
	if (st_lock_rx(s) != 0)
		return;
	r->events = in_events(s);
	r->kernel = kernel_in(s) | ST_ERR | ST_HUP;
	r->in_edges = s->rx.edges;
	if (st_lock(&s->tx_lock) == 0) {
		r->events |= out_events(s);
		r->kernel |= kernel_out(s);
		r->out_edges = s->tx.edges;
		if ((r->events & ST_RDHUP) && s->tx.fin)
			r->events |= ST_HUP;
		st_unlock(&s->tx_lock);
	}
	st_unlock(&s->rx_lock);
}

unsigned st_on_vi(struct st_stream *s)
{
	return (s->rx.path == ST_RX_RING ? ST_IN : 0u) | (s->tx.path == ST_TX_RING ? ST_OUT : 0u);
}

unsigned st_kernel_events(struct st_stream *s, unsigned events)
{
	unsigned kernel = 0;

	if (gone(s))
		return 0;
	/* An old value is replaced soon: a thread that changes a path wakes the sleepers. */
	if (s->rx.path != ST_RX_RING)
		kernel |= ST_IN | ST_RDHUP;
	if (s->tx.path == ST_TX_TCP)
		kernel |= ST_OUT;
	return kernel & events;
}

/* ---- arming -------------------------------------------------------------------------------------------------- */

/*
 * Under tx: arms for records or for room; does nothing where that is armed, or no descriptor is left.  The number goes
 * to the other end, and is read back; once until it rings.  Both or none of the two: the other end answers a number
 * once, so that none may be sent twice.
 */
static void arm(struct st_stream *s, struct st_link *l, unsigned kind)
{
	uint64_t number = l->number[kind] + 1;

	if (atomic_load(&l->armed[kind]))
		return;
	if (ST_SENDS - (l->send_head - l->send_tail) < ST_ARM_SENDS &&
	    st_link_reap(s, l) < ST_ARM_SENDS) {
		/* Sends are under way; when one has completed the sleeper looks again. */
		l->starved = true;
		return;
	}
	atomic_store(&l->confirmed[kind], false);
	atomic_store(&l->armed[kind], true);
	if (st_link_word(s, l, offsetof(struct st_words, arm) + 8 * kind, &number,
			 sizeof(number)) != 0 ||
	    st_link_read_back(s, l, kind) != 0)
		return; /* broken: the helper tells the sleeper */
	l->number[kind] = number;
	st_count(&st_counts.arms, 1);
}

/*
 * Yields the processor.  False if that took long, since threads that compute had it, and for a multiple of that time
 * after it, without yielding: a sleep is better then.
 */
static bool offer_processor(void)
{
	uint64_t before = st_now_ns(), took;

	if (before < atomic_load_explicit(&crowded, memory_order_relaxed))
		return false;
	sched_yield();
	took = st_now_ns() - before;
	if (took > YIELD_LONG_NS)
		atomic_store_explicit(&crowded, before + took * YIELD_AGAIN, memory_order_relaxed);
	return took <= YIELD_LONG_NS;
}

bool st_give_way(void)
{
	return !st_process.alone || offer_processor();
}

/* True: all arms that are out for these events were read back. */
static bool is_confirmed(struct st_link *l, unsigned events)
{
	return (!(events & ST_IN) || !atomic_load(&l->armed[ST_ARM_DATA]) ||
		atomic_load(&l->confirmed[ST_ARM_DATA])) &&
	       (!(events & ST_OUT) || !atomic_load(&l->armed[ST_ARM_ROOM]) ||
		atomic_load(&l->confirmed[ST_ARM_ROOM]));
}

/* Under tx: waits a short time for the read-back of the arms; it may return without. */
static void confirm(struct st_stream *s, unsigned events)
{
	struct st_link *l = s->link;

	l->confirming = true;
	for (int i = 0; i < (st_process.alone ? CONFIRM_YIELDS : CONFIRM_SPINS); i++) {
		if (is_confirmed(l, events) || !st_give_way())
			break;
		st_link_reap(s, l);
		if (i >= CONFIRM_ALONE && i % 8 == 0)
			offer_processor();
	}
	l->confirming = false;
	/* Later looks see what the other end wrote before it answered. */
	atomic_thread_fence(memory_order_seq_cst);
}

/* Under rx and tx: arms for those of the events that come over a VI, and confirms. */
static void arm_for(struct st_stream *s, unsigned events)
{
	struct st_link *l = s->link;
	bool in = (events & (ST_IN | ST_RDHUP)) && s->rx.path == ST_RX_RING && !s->rx.fin;
	bool out = (events & ST_OUT) && s->tx.path == ST_TX_RING && !s->tx.fin;

	if (l == NULL || atomic_load(&s->phase) != ST_PHASE_UP || (!in && !out))
		return;
	if (in)
		arm(s, l, ST_ARM_DATA);
	if (out)
		arm(s, l, ST_ARM_ROOM);
	confirm(s, (in ? ST_IN : 0) | (out ? ST_OUT : 0));
}

/*
 * Under rx and tx: arms for `events`, and returns those of `wanted` that are there.  The looks move packets and take
 * descriptors.  A wake that they take, or an answer that comes after the look at the ring, would no longer wake this
 * thread, and an arm that a wake has answered has to be sent again.
 */
static unsigned arm_and_check(struct st_stream *s, unsigned events, unsigned wanted)
{
	struct st_link *l = s->link;
	unsigned found;
	uint32_t news;

	do {
		arm_for(s, events);
		news = l != NULL ? atomic_load(&l->news) : 0;
		found = (in_events(s) | out_events(s)) & wanted;
	} while (found == 0 && l != NULL && news != atomic_load(&l->news));
	return found;
}

unsigned st_arm(struct st_stream *s, unsigned events)
{
	unsigned found, wanted = events | ST_ERR | ST_HUP;

	if (gone(s))
		return (ST_ERR | ST_HUP | ST_IN | ST_OUT) & wanted;
	if (st_lock_rx(s) != 0)
		return events;
	found = in_events(s) & wanted;
	if (s->rx.path == ST_RX_RING && (found & ST_IN) == 0)
		st_rx_credit(s, 1);
	if (found == 0 && st_lock(&s->tx_lock) == 0) {
		found = out_events(s) & wanted;
		if (found == 0)
			found = arm_and_check(s, events, wanted);
		st_unlock(&s->tx_lock);
	}
	st_unlock(&s->rx_lock);
	return found;
}

/* ---- pollers -------------------------------------------------------------------------------------------------- */

unsigned st_check(struct st_stream *s, unsigned events)
{
	unsigned found, wanted = events | ST_ERR | ST_HUP;

	if (gone(s) || st_on_vi(s) != (ST_IN | ST_OUT))
		return ST_ERR;
	if (!st_trylock(&s->rx_lock))
		return 0;
	found = in_events(s) & wanted;
	if (found == 0 && (events & ST_OUT) && st_trylock(&s->tx_lock)) {
		found = out_events(s) & wanted;
		st_unlock(&s->tx_lock);
	}
	st_unlock(&s->rx_lock);
	return found;
}

bool st_arm_is_sure(struct st_stream *s, unsigned events)
{
	bool sure = false;

	if (!st_trylock(&s->rx_lock))
		return false;
	if (st_trylock(&s->tx_lock)) {
		sure = s->link == NULL || is_confirmed(s->link, events);
		if (!sure)
			st_link_reap(s, s->link);
		st_unlock(&s->tx_lock);
	}
	st_unlock(&s->rx_lock);
	return sure;
}

bool st_arm_holds(struct st_stream *s, unsigned events)
{
	bool holds;

	if (!st_trylock(&s->tx_lock))
		return false;
	holds = s->link != NULL &&
		(!(events & ST_IN) || atomic_load(&s->link->armed[ST_ARM_DATA])) &&
		(!(events & ST_OUT) || atomic_load(&s->link->armed[ST_ARM_ROOM]));
	st_unlock(&s->tx_lock);
	return holds;
}

/* ---- one stream ---------------------------------------------------------------------------------------------- */

/* The time left to `until`; false: none. */
static bool time_left(const struct timespec *until, struct timespec *left)
{
	uint64_t now = st_now_ns(),
		 end = (uint64_t)until->tv_sec * 1000000000u + (uint64_t)until->tv_nsec;

	if (now >= end)
		return false;
	left->tv_sec = (time_t)((end - now) / 1000000000u);
	left->tv_nsec = (long)((end - now) % 1000000000u);
	return true;
}

/* Looks at the stream for st_config.spin_us: its events; 0: none yet, or the kernel has to be asked. */
static int spin(struct st_stream *s, unsigned events)
{
	uint64_t end = st_now_ns() + st_process.config.spin_us * 1000ull;
	struct st_ready r;

	do {
		for (int i = 0; i < (st_process.alone ? 1 : 16); i++) {
			st_ready(s, &r);
			if (r.events & (events | ST_ERR | ST_HUP))
				return (int)(r.events & (events | ST_ERR | ST_HUP));
			if ((r.kernel & events) != 0)
				return 0;
		}
	} while (st_now_ns() < end && st_give_way());
	return 0;
}

/*
 * Takes the entries of w, under its lock.  The streams stay listed: sleepers on many streams learn from the list which
 * to look at.
 */
static void take_entries(struct st_wait *w)
{
	if (st_lock(&w->lock) != 0)
		return;
	st_wait_entries(w);
	st_unlock(&w->lock);
}

/* Arms, sleeps once; events, 0: look again, or what st_sleep() gives. */
static int sleep_once(struct st_stream *s, unsigned events, const struct timespec *until, int own)
{
	struct st_wait *w = st_wait_of(s);
	struct timespec left;
	struct pollfd fds[3];
	unsigned found = st_arm(s, events);
	int n = 0;

	if (atomic_load(&s->closed))
		return -EBADF;
	if (found != 0)
		return (int)found;
	if (w != NULL)
		n = st_wait_arm(w);
	if (n != 0)
		return n < 0 ? n : 0;
	if (until != NULL && !time_left(until, &left))
		return -EAGAIN;
	fds[0] = (struct pollfd){ .fd = own, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = s->fd, .events = (short)st_kernel_events(s, events) };
	/* Not watched for nothing: poll() tells of POLLHUP unasked, while the ring may still be read. */
	if (fds[1].events == 0)
		fds[1].fd = -1;
	fds[2] = (struct pollfd){ .fd = w != NULL ? st_wait_fd(w) : -1, .events = POLLIN };
	n = (st_process.config.sleep != NULL ? st_process.config.sleep
					     : st_sys_poll)(fds, 3, until != NULL ? &left : NULL);
	if (n < 0)
		return n;
	if (fds[0].revents)
		st_sys_clear(own);
	if (fds[2].revents)
		take_entries(w);
	found = fds[1].revents & (events | ST_ERR | ST_HUP) &
		(st_kernel_events(s, events) | ST_ERR | ST_HUP);
	return (int)found;
}

int st_sleep(struct st_stream *s, unsigned events, const struct timespec *until)
{
	int rc = spin(s, events), own;

	if (rc != 0)
		return rc;
	own = st_sleep_begin(s, st_wait_of(s));
	if (own < 0)
		return own;
	do
		rc = sleep_once(s, events, until, own);
	while (rc == 0);
	st_sleep_end();
	return rc;
}

/* ---- counts -------------------------------------------------------------------------------------------------- */

/* True: a handler has interrupted this thread while it takes entries, for which others wait that hold the stream. */
static bool takes_entries(struct st_stream *s)
{
	struct st_wait *w = s->wait;

	return w != NULL && st_lock_is_mine(&w->lock);
}

int64_t st_readable_bytes(struct st_stream *s)
{
	int64_t bytes;
	int more = 0, mark;

	if (gone(s))
		return -EBADF;
	if (takes_entries(s) || st_lock_rx(s) != 0)
		return -EDEADLK;
	st_rx_step(s);
	bytes = (int64_t)st_rx_own_bytes(s);
	mark = st_rx_kernel_after(s);
	if (mark >= 0 && st_sys_ioctl_int(s->fd, FIONREAD, &more) == 0 && more > mark)
		bytes += more - mark;
	st_unlock(&s->rx_lock);
	return bytes;
}

int64_t st_unsent_bytes(struct st_stream *s)
{
	int64_t bytes = 0;
	int more = 0;

	if (gone(s))
		return -EBADF;
	if (st_lock(&s->tx_lock) != 0)
		return -EDEADLK;
	if (s->tx.path == ST_TX_RING) {
		st_tx_room(s);
		bytes = s->tx.held_bytes;
		/* All that was written has arrived, or else the bytes count that the other end has not read. */
		if (VipxFlush(s->link->vi, 0) == VIP_TIMEOUT)
			bytes += (int64_t)(s->tx.bytes - s->tx.acked_bytes);
	}
	if (st_sys_ioctl_int(s->fd, SIOCOUTQ, &more) == 0)
		bytes += more;
	st_unlock(&s->tx_lock);
	return bytes;
}

int64_t st_writable_bytes(struct st_stream *s)
{
	int64_t bytes = 0;

	if (gone(s))
		return -EBADF;
	if (st_lock(&s->tx_lock) != 0)
		return -EDEADLK;
	if (s->tx.path == ST_TX_RING)
		bytes = (int64_t)st_tx_room(s);
	else if (s->tx.path == ST_TX_TCP)
		bytes = st_sys_room(s->fd);
	st_unlock(&s->tx_lock);
	return bytes;
}
