// SPDX-License-Identifier: BSD-2-Clause
/* select() as a poll(): the kernel gives both the same events by other names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vs_poll.h"
#include "vs_real.h"
#include "vs_table.h"
#include "vs_time.h"

#define IN (POLLRDNORM | POLLRDBAND | POLLIN | POLLHUP | POLLERR)
#define OUT (POLLWRBAND | POLLWRNORM | POLLOUT | POLLERR)
#define EXCEPT POLLPRI
#define ON_STACK 64

/* A set may be longer than an fd_set, so its words are counted by hand. */
typedef unsigned long word;
#define WORD_BITS (8 * (int)sizeof(word))

/* False for a NULL set. */
static bool has(const fd_set *s, int fd)
{
	const word *w = (const word *)(const void *)s;

	return s && (w[fd / WORD_BITS] >> (fd % WORD_BITS) & 1);
}

/* Adds or takes out; does nothing for a NULL set. */
static void put(fd_set *s, int fd, bool in)
{
	word *w = (word *)(void *)s, bit = (word)1 << (fd % WORD_BITS);

	if (s)
		w[fd / WORD_BITS] = in ? w[fd / WORD_BITS] | bit : w[fd / WORD_BITS] & ~bit;
}

bool vs_select_concerns(int n, const fd_set *r, const fd_set *w, const fd_set *e)
{
	int fd = -1;

	if (vs_table_count() == 0)
		return false;
	while ((fd = vs_table_next(fd + 1)) >= 0 && fd < n) {
		if (has(r, fd) || has(w, fd) || has(e, fd))
			return true;
	}
	return false;
}

/* Writes an entry for each descriptor of the sets; how many.  With v NULL it only counts. */
static nfds_t list(struct pollfd *v, int n, const fd_set *r, const fd_set *w, const fd_set *e)
{
	nfds_t k = 0;
	int fd, events;

	for (fd = 0; fd < n; fd++) {
		events = (has(r, fd) ? POLLIN | POLLRDNORM | POLLRDBAND : 0) |
			 (has(w, fd) ? POLLOUT | POLLWRNORM | POLLWRBAND : 0) |
			 (has(e, fd) ? POLLPRI : 0);
		if (events == 0)
			continue;
		if (v)
			v[k] = (struct pollfd){ .fd = fd, .events = (short)events };
		k++;
	}
	return k;
}

/* The descriptor; an entry that poll() is to leave out has its complement. */
static int number(const struct pollfd *p)
{
	return p->fd < 0 ? ~p->fd : p->fd;
}

/* How many bits are set; the sets then hold what was found. */
static int give(const struct pollfd *v, nfds_t k, fd_set *r, fd_set *w, fd_set *e)
{
	int count = 0;
	nfds_t i;

	for (i = 0; i < k; i++) {
		int fd = number(&v[i]), found = v[i].fd < 0 ? 0 : v[i].revents;
		bool in = has(r, fd) && (found & IN);
		bool out = has(w, fd) && (found & OUT);
		bool other = has(e, fd) && (found & EXCEPT);

		put(r, fd, in);
		put(w, fd, out);
		put(e, fd, other);
		count += in + out + other;
	}
	return count;
}

/* Takes entries out that have only ends and errors which are in none of the sets; true: another one has events. */
static bool leave_out(struct pollfd *v, nfds_t k)
{
	bool some = false;
	nfds_t i;

	for (i = 0; i < k; i++) {
		int asked = v[i].events, found = v[i].revents;

		if (v[i].fd < 0 || found == 0)
			continue;
		if (((asked & POLLIN) && (found & IN)) || ((asked & POLLOUT) && (found & OUT)) ||
		    (asked & found & EXCEPT))
			some = true;
		else
			v[i].fd = ~v[i].fd;
	}
	return some;
}

/* Some descriptor is not open. */
static bool has_wrong(const struct pollfd *v, nfds_t k)
{
	nfds_t i;

	for (i = 0; i < k; i++) {
		if (v[i].revents & POLLNVAL)
			return true;
	}
	return false;
}

/* What is left of a timeout that began then; 0 when it is over. */
static void time_left(struct timespec *left, const struct timespec *timeout, uint64_t began)
{
	uint64_t passed = vs_now_ns() - began;
	int64_t ns = (int64_t)timeout->tv_nsec - (int64_t)(passed % 1000000000);

	left->tv_sec = timeout->tv_sec - (time_t)(passed / 1000000000) - (ns < 0);
	left->tv_nsec = (long)(ns < 0 ? ns + 1000000000 : ns);
	if (left->tv_sec < 0)
		*left = (struct timespec){ 0 };
}

/* poll() until an entry has an event that select() tells: as vs_poll(), -1 and EBADF for one that is not open. */
static int ask(struct pollfd *v, nfds_t k, const struct timespec *timeout, const sigset_t *mask)
{
	uint64_t began = vs_now_ns();
	struct timespec left;
	int rc;

	for (;;) {
		if (timeout)
			time_left(&left, timeout, began);
		rc = vs_poll(v, k, timeout ? &left : NULL, mask);
		if (rc <= 0)
			return rc;
		if (has_wrong(v, k)) {
			errno = EBADF;
			return -1;
		}
		if (leave_out(v, k))
			return rc;
	}
}

int vs_select(int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *timeout,
	      const sigset_t *mask, struct timespec *left)
{
	struct pollfd room[ON_STACK], *v = room;
	nfds_t k = list(NULL, n, r, w, e);
	uint64_t began = vs_now_ns();
	int rc;

	if (k > ON_STACK)
		v = malloc(k * sizeof(*v));
	if (!v) {
		errno = ENOMEM;
		return -1;
	}
	list(v, n, r, w, e);
	rc = ask(v, k, timeout, mask);
	if (rc >= 0)
		rc = give(v, k, r, w, e);
	if (timeout && left)
		time_left(left, timeout, began);
	if (v != room)
		free(v);
	return rc;
}
