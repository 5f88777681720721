// SPDX-License-Identifier: BSD-2-Clause
/*
 * Streams are looked at first; the kernel is asked about all other descriptors, and about the
 * directions of streams that are on TCP, in one call.  The order before a sleep is that of
 * st_stream.h.
 */
#include "vs_poll.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "vs_epoll.h"
#include "vs_ready.h"
#include "vs_real.h"
#include "vs_signal.h"
#include "vs_sock.h"
#include "vs_table.h"
#include "vs_time.h"

#define ON_STACK 32

/* One entry of the call. */
struct entry {
	struct vs_obj *o;    /* with a reference; NULL: the kernel's */
	struct st_stream *s; /* of o; NULL: the kernel's, or an epoll set */
	unsigned int kernel, found;
	bool over; /* the kernel's socket has ended, of which the stream tells in time: not watched for urgent bytes */
};

struct job {
	struct pollfd *v; /* the caller's */
	nfds_t n;
	struct entry *e;
	struct pollfd *k; /* for the kernel: n entries, then wait objects, then the thread's */
	struct st_wait **w;
	nfds_t waits;
	uint32_t handled; /* handlers of signals before the call */
	bool ours;	  /* some entry is not only the kernel's */
	bool unarmed;	  /* nothing rings for some event, so that sleeps are short */
	void *memory;
};

/* ---- a call ---- */

bool vs_poll_concerns(const struct pollfd *v, nfds_t n)
{
	nfds_t i;

	if (vs_table_count() == 0)
		return false;
	for (i = 0; i < n; i++) {
		if (vs_peek(v[i].fd))
			return true;
	}
	return false;
}

/* The entry is an epoll set that has an object. */
static bool is_set(const struct entry *e)
{
	return e->o && !vs_is_socket(e->o);
}

/*
 * Makes the entries, in `room` if it is large enough, with references of their objects: 0, -ENOMEM.  A socket whose
 * first use this is gets its stream, and `eager` promotes it.
 */
static int job_begin(struct job *j, struct pollfd *v, nfds_t n, void *room, size_t size)
{
	size_t bytes = n * (sizeof(*j->e) + 2 * sizeof(*j->k) + sizeof(*j->w)) + 2 * sizeof(*j->k);
	char *at = room;
	nfds_t i;

	memset(j, 0, sizeof(*j));
	if (bytes > size)
		at = j->memory = malloc(bytes);
	if (!at)
		return -ENOMEM;
	j->v = v;
	j->n = n;
	j->handled = vs_handled();
	j->e = (struct entry *)(void *)at;
	j->w = (struct st_wait **)(void *)(j->e + n);
	j->k = (struct pollfd *)(void *)(j->w + n);
	for (i = 0; i < n; i++) {
		j->e[i] = (struct entry){ .o = vs_get(v[i].fd) };
		if (j->e[i].o && vs_is_socket(j->e[i].o))
			j->e[i].s = vs_sock_stream(j->e[i].o, v[i].fd);
		j->ours |= j->e[i].s || is_set(&j->e[i]);
	}
	return 0;
}

/* Gives the references and the memory back. */
static void job_end(struct job *j)
{
	nfds_t i;

	for (i = 0; i < j->n; i++) {
		if (j->e[i].o)
			vs_put(j->e[i].o);
	}
	free(j->memory);
}

/* Looks at streams and epoll sets, and sets `found` and `kernel`; how many have events. */
static int look_all(struct job *j)
{
	struct vs_ready look;
	int found = 0;
	nfds_t i;

	for (i = 0; i < j->n; i++) {
		struct entry *e = &j->e[i];
		unsigned int asked = (unsigned short)j->v[i].events;

		e->found = 0;
		if (e->s) {
			vs_ready_get(e->o, e->s, asked, &look);
			e->found = look.events;
			e->kernel = look.kernel;
		} else if (is_set(e) && vs_epoll_peek(e->o)) {
			e->found = asked & (POLLIN | POLLRDNORM);
		}
		found += e->found != 0;
	}
	return found;
}

/* Sets the events that the kernel is asked for at once, or watches during a sleep. */
static void set_kernel(struct job *j, bool sleep)
{
	nfds_t i;

	for (i = 0; i < j->n; i++) {
		unsigned int asked = (unsigned short)j->v[i].events, events = asked;
		const struct entry *e = &j->e[i];

		if (e->s && sleep)
			events = st_kernel_events(e->s, vs_stream_events(asked)) |
				 (e->over ? 0 : e->kernel & POLLPRI);
		else if (e->s)
			events = e->kernel;
		j->k[i] = (struct pollfd){ .fd = j->v[i].fd, .events = (short)events };
		if (e->s && events == 0)
			j->k[i].fd = -1;
	}
}

/* Sets revents of the caller to what the kernel and the streams have found; how many entries have events. */
static int merge(struct job *j)
{
	int n = 0;
	nfds_t i;

	for (i = 0; i < j->n; i++) {
		const struct entry *e = &j->e[i];
		unsigned int events = (unsigned short)j->k[i].revents;

		if (e->s)
			events &= e->kernel | POLLNVAL;
		j->v[i].revents = (short)(events | e->found);
		n += j->v[i].revents != 0;
	}
	return n;
}

/*
 * Asks the kernel without waiting, and sets revents; signals that only `mask` lets through arrive.  How many entries
 * have events, or -1, errno.
 */
static int ask(struct job *j, const sigset_t *mask)
{
	const struct timespec now = { 0 };

	set_kernel(j, false);
	if (vs_real.ppoll(j->k, j->n, &now, mask) < 0)
		return -1;
	return merge(j);
}

/*
 * Arms all, lists the wait objects, and sets `unarmed` if nobody rings for some event.  False: something is there
 * already, and the rest is not armed.
 */
static bool arm_all(struct job *j)
{
	struct st_wait *w;
	nfds_t i, x;
	int rc;

	j->waits = 0;
	j->unarmed = false;
	for (i = 0; i < j->n; i++) {
		if (is_set(&j->e[i]) && !vs_epoll_arm(j->e[i].o, &j->unarmed))
			return false;
		if (!j->e[i].s)
			continue;
		if (st_arm(j->e[i].s, vs_stream_events((unsigned short)j->v[i].events)) != 0) {
			struct vs_ready look;

			vs_ready_get(j->e[i].o, j->e[i].s, (unsigned short)j->v[i].events, &look);
			if (look.events != 0)
				return false;
			j->unarmed = true;
		}
		w = st_wait_of(j->e[i].s);
		for (x = 0; w && x < j->waits && j->w[x] != w; x++)
			;
		if (w && x == j->waits)
			j->w[j->waits++] = w;
	}
	for (x = 0; x < j->waits; x++) {
		rc = st_wait_arm(j->w[x]);
		if (rc > 0)
			return false;
		j->unarmed |= rc < 0;
	}
	return true;
}

/*
 * True: there are more entries than the kernel takes, one for each descriptor that the process may have.  Short sleeps
 * do without ours then.
 */
static bool is_too_long(nfds_t n)
{
	struct rlimit most;

	return n > ON_STACK && getrlimit(RLIMIT_NOFILE, &most) == 0 && n > most.rlim_cur;
}

/*
 * After a sleep: notes the entries that the kernel has told of an end which does not count yet, as bytes come by the
 * VI.  It would tell of it again at once, before each sleep.
 */
static void note_ends(struct job *j)
{
	nfds_t i;

	for (i = 0; i < j->n; i++) {
		struct entry *e = &j->e[i];

		if (e->s && ((unsigned short)j->k[i].revents & (POLLERR | POLLHUP) & ~e->kernel))
			e->over = true;
	}
}

/*
 * Arms all and sleeps once.  -1: errno, EINTR for a handler since the call began; 0: the time is over; 1: look again.
 */
static int doze(struct job *j, const struct timespec *until, const sigset_t *mask)
{
	int fd = st_sleep_begin(NULL, NULL), rc = 1;
	nfds_t x, n = j->n;

	if (fd >= 0 && arm_all(j)) {
		set_kernel(j, true);
		for (x = 0; x < j->waits; x++)
			j->k[n++] = (struct pollfd){ .fd = st_wait_fd(j->w[x]), .events = POLLIN };
		j->k[n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
		vs_stat_add(VS_SLEEPS, 1);
		if (n > j->n && is_too_long(n)) {
			j->unarmed = true;
			n = j->n;
			j->waits = 0;
		}
		if (vs_handled_since(j->handled, fd)) {
			errno = EINTR;
			rc = -1;
		} else {
			rc = vs_sleep_slice(j->k, n, until, j->unarmed, mask);
		}
		vs_handled_end();
		if (rc > 0)
			note_ends(j);
		for (x = 0; rc > 0 && x < j->waits; x++) {
			if (j->k[j->n + x].revents)
				vs_epoll_take(j->w[x]);
		}
	}
	if (fd >= 0)
		st_sleep_end();
	else
		errno = -fd;
	return fd < 0 ? -1 : rc;
}

/* Looks for a moment before a sleep.  True: there is something. */
static bool spin(struct job *j)
{
	uint64_t end = vs_spin_ns ? vs_now_ns() + vs_spin_ns : 0;

	while (end && vs_now_ns() < end) {
		if (look_all(j) > 0)
			return true;
		if (!st_give_way())
			break;
	}
	return false;
}

/* Whether the kernel, or a VI, has part in any of the entries. */
static void shares(struct job *j, bool *kernel, bool *vi)
{
	nfds_t i;

	set_kernel(j, false);
	*kernel = *vi = false;
	for (i = 0; i < j->n; i++) {
		*kernel |= j->k[i].fd >= 0;
		*vi |= is_set(&j->e[i]) || (j->e[i].s && st_on_vi(j->e[i].s));
	}
}

/* The call: how many entries have events, 0 when the time is over, -1 with errno; `once`: without a sleep. */
static int run(struct job *j, const struct timespec *until, bool once, const sigset_t *mask)
{
	bool kernel, vi;
	int n, rc;

	for (;;) {
		/* As the kernel, which lets no signal through if it has found events. */
		n = look_all(j);
		if (n > 0 || once)
			return ask(j, n > 0 ? NULL : mask);
		shares(j, &kernel, &vi);
		n = kernel ? ask(j, mask) : 0;
		if (n != 0)
			return n;
		if (vi && spin(j))
			return ask(j, NULL);
		rc = doze(j, until, mask);
		if (rc < 0)
			return -1;
		look_all(j);
		n = ask(j, NULL);
		if (n != 0 || rc == 0)
			return n;
	}
}

/* Returns a timeout in ns; INT64_MAX stands for all that are longer than about 146 years. */
static uint64_t time_ns(const struct timespec *t)
{
	if (t->tv_sec > INT64_MAX / 2000000000)
		return INT64_MAX;
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

int vs_poll(struct pollfd *v, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	_Alignas(16) char room[ON_STACK * (sizeof(struct entry) + 32)];
	struct timespec until;
	bool once = timeout && timeout->tv_sec == 0 && timeout->tv_nsec == 0;
	struct job j;
	int rc, before = errno;

	if (vs_bad_time(timeout)) {
		errno = EINVAL;
		return -1;
	}
	if (timeout)
		until = vs_in_ns(time_ns(timeout));
	rc = job_begin(&j, v, n, room, sizeof(room));
	if (rc < 0) {
		errno = -rc;
		return -1;
	}
	rc = j.ours ? run(&j, timeout ? &until : NULL, once, mask)
		    : vs_real.ppoll(v, n, timeout, mask);
	if (rc >= 0)
		errno = before;
	before = errno;
	job_end(&j);
	errno = before;
	return rc;
}
