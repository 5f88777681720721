// SPDX-License-Identifier: BSD-2-Clause
#include "vf_accept.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "vf_flow.h"
#include "vf_host.h"
#include "vf_loop.h"
#include "vf_pair.h"
#include "vf_target.h"
#include "vs_env.h"

#define CHECK_MS 50

/* A call that waits for a connection. */
struct waiter {
	struct vf_source source; /* a copy of the listener */
	struct waiter *next;
	struct vf_call call;
	int64_t until; /* -1: for ever */
};

/*
 * A connection that was accepted for a call which became void: the next call gets it.  The kernel's queue lacks it, so
 * a connection of this process, the filler, is put there, for the program's poll() to tell.
 */
struct saved {
	struct vf_source filler;
	struct saved *next;
	uint64_t listener; /* its inode */
	int fd;		   /* for the program; -1: taken, and the filler is still there */
	struct sockaddr_storage peer, filler_name;
};

static struct waiter *waiters;
static struct saved *saved;

static uint64_t number_of(int fd)
{
	return vf_target_inode(fd);
}

/* ---- connections that are saved ---- */

static void drop(struct saved *k)
{
	struct saved **at = &saved;

	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	vf_loop_want(&k->filler, 0);
	if (k->filler.fd >= 0)
		close(k->filler.fd);
	if (k->fd >= 0)
		close(k->fd);
	free(k);
}

/* The filler was reset: nobody listens any more, or its connection was accepted and closed. */
static void filler_ended(struct vf_source *source, uint32_t events)
{
	(void)events;
	drop((struct saved *)(void *)source);
}

/* Connects the filler with the listener. */
static void fill(struct saved *k, int listener)
{
	struct sockaddr_storage at;
	socklen_t n = sizeof(at), m = sizeof(k->filler_name);

	if (getsockname(listener, (struct sockaddr *)&at, &n) != 0)
		return;
	k->filler.fd = vf_pair_socket(at.ss_family);
	if (k->filler.fd < 0)
		return;
	if ((connect(k->filler.fd, (struct sockaddr *)&at, n) != 0 && errno != EINPROGRESS) ||
	    getsockname(k->filler.fd, (struct sockaddr *)&k->filler_name, &m) != 0 ||
	    vf_loop_want(&k->filler, EPOLLIN | EPOLLRDHUP) != 0) {
		close(k->filler.fd);
		k->filler.fd = -1;
	}
}

static void save(int listener, int fd, const struct sockaddr_storage *peer)
{
	struct saved *k = calloc(1, sizeof(*k));

	if (!k) {
		close(fd);
		return;
	}
	*k = (struct saved){ .filler = { .ready = filler_ended, .fd = -1 },
			     .next = saved,
			     .listener = number_of(listener),
			     .fd = fd,
			     .peer = *peer };
	saved = k;
	fill(k, listener);
}

/* Takes a connection that was saved for the listener: its descriptor, or -1. */
static int take_saved(int listener, struct sockaddr_storage *peer)
{
	uint64_t number = number_of(listener);
	struct saved *k;
	int fd;

	for (k = saved; k && (k->listener != number || k->fd < 0); k = k->next)
		;
	if (!k)
		return -1;
	fd = k->fd;
	k->fd = -1;
	*peer = k->peer;
	if (k->filler.fd < 0)
		drop(k);
	return fd;
}

/* True: the accepted connection is a filler; it is closed. */
static bool is_filler(int fd, const struct sockaddr_storage *peer)
{
	struct saved *k;

	for (k = saved; k; k = k->next) {
		if (k->filler.fd >= 0 && memcmp(&k->filler_name, peer, vf_target_length(peer)) == 0)
			break;
	}
	if (!k)
		return false;
	close(fd);
	if (k->fd < 0) {
		drop(k);
	} else {
		vf_loop_want(&k->filler, 0);
		close(k->filler.fd);
		k->filler.fd = -1;
	}
	return true;
}

/* ---- one connection ---- */

/* What an accepted connection has from its listener, and the local one is to have. */
static void copy_options(int to, int from)
{
	static const struct {
		int level, name;
	} options[] = { { SOL_SOCKET, SO_KEEPALIVE }, { SOL_SOCKET, SO_OOBINLINE },
			{ SOL_SOCKET, SO_RCVTIMEO },  { SOL_SOCKET, SO_SNDTIMEO },
			{ SOL_SOCKET, SO_RCVLOWAT },  { SOL_SOCKET, SO_LINGER },
			{ SOL_SOCKET, SO_PRIORITY },  { IPPROTO_TCP, TCP_NODELAY },
			{ IPPROTO_TCP, TCP_CORK } };
	char value[64];
	socklen_t n;
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		n = sizeof(value);
		if (getsockopt(from, options[i].level, options[i].name, value, &n) == 0)
			setsockopt(to, options[i].level, options[i].name, value, n);
	}
}

/*
 * Makes a flow of an accepted connection: the end of the local connection that is for the program, or -1: it gets the
 * connection itself.
 */
static int make_flow(int far, const struct vf_names *names)
{
	struct vs_addr peer;
	bool used;
	int near, end;

	if (!vs_addr_of((const struct sockaddr *)&names->peer, sizeof(names->peer), &peer))
		return -1;
	near = vf_pair_socket(names->peer.ss_family);
	if (near < 0)
		return -1;
	end = vf_pair_join(near, names->peer.ss_family, vs_addr_is_v4(&peer), &used);
	if (end >= 0) {
		copy_options(end, far);
		if (vf_flow_start(near, far, number_of(end), names))
			return end;
		close(end);
	}
	close(near);
	return -1;
}

/* The descriptor that the program is to get for an accepted connection; closes that if it is not needed any more. */
static int prepare(const struct vf_call *call, int fd, const struct sockaddr_storage *peer)
{
	struct vf_names names = { .peer = *peer };
	struct vs_addr here, there;
	socklen_t n = sizeof(names.local);
	int end = -1;

	if (vf_target_is_tcp(fd) && getsockname(fd, (struct sockaddr *)&names.local, &n) == 0 &&
	    vs_addr_of((struct sockaddr *)&names.local, n, &here) &&
	    vs_addr_of((const struct sockaddr *)peer, sizeof(*peer), &there) &&
	    vf_host_carries(call->thread, &there, &here))
		end = make_flow(fd, &names);
	return end >= 0 ? end : fd;
}

/* Gives the program a connection.  False: the call is void. */
static bool hand_over(const struct vf_call *call, int fd, const struct sockaddr_storage *peer)
{
	int flags = call->number == SYS_accept4 ? (int)call->args[3] : 0, rc = 0;

	vf_target_set_nonblock(fd, flags & SOCK_NONBLOCK);
	if (call->args[1] != 0)
		rc = vf_target_write_name(call->thread, call->args[1], call->args[2], peer);
	if (rc != 0)
		return vf_notify_valid(call->id) && (vf_notify_answer(call->id, rc), true);
	rc = vf_notify_give(call->id, fd, flags & SOCK_CLOEXEC);
	if (rc != 0 && rc != -ENOENT)
		vf_notify_answer(call->id, rc);
	return rc == 0;
}

/* Accepts, without waiting, though the listener may be one whose calls wait: a descriptor, or -errno. */
static int accept_now(int listener, struct sockaddr_storage *peer)
{
	bool nonblock = vf_target_nonblock(listener);
	socklen_t n;
	int fd;

	if (!nonblock)
		vf_target_set_nonblock(listener, true);
	do {
		n = sizeof(*peer);
		memset(peer, 0, sizeof(*peer));
		fd = accept4(listener, (struct sockaddr *)peer, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
	} while (fd >= 0 ? is_filler(fd, peer) : errno == EINTR || errno == ECONNABORTED);
	if (fd < 0)
		fd = -errno;
	if (!nonblock)
		vf_target_set_nonblock(listener, false);
	return fd;
}

/* True: the call is answered or void.  False: there is no connection now. */
static bool serve(const struct vf_call *call, int listener)
{
	struct sockaddr_storage peer;
	int fd = take_saved(listener, &peer);

	if (fd < 0) {
		fd = accept_now(listener, &peer);
		if (fd == -EAGAIN)
			return false;
		if (fd < 0) {
			vf_notify_go_on(
				call->id); /* the program's own call finds the error, or has room */
			return true;
		}
		fd = prepare(call, fd, &peer);
	}
	if (hand_over(call, fd, &peer))
		close(fd);
	else
		save(listener, fd, &peer);
	return true;
}

/* ---- calls that wait ---- */

static void end_waiter(struct waiter *w)
{
	struct waiter **at = &waiters;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	vf_loop_want(&w->source, 0);
	close(w->source.fd);
	free(w);
}

static void ready(struct vf_source *source, uint32_t events)
{
	struct waiter *w = (struct waiter *)(void *)source;

	(void)events;
	if (!vf_notify_valid(w->call.id)) {
		end_waiter(w);
	} else if (serve(&w->call, source->fd)) {
		end_waiter(w);
	} else if (events & (EPOLLHUP | EPOLLERR)) {
		vf_notify_go_on(w->call.id);
		end_waiter(w);
	}
}

/* Has the call wait; has the listener from then on.  False: no memory. */
static bool wait(const struct vf_call *call, int listener)
{
	struct timeval t = { 0 };
	socklen_t n = sizeof(t);
	struct waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return false;
	*w = (struct waiter){ .source = { .ready = ready, .fd = listener },
			      .next = waiters,
			      .call = *call,
			      .until = -1 };
	if (getsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &t, &n) == 0 && (t.tv_sec || t.tv_usec))
		w->until = vf_loop_now() + t.tv_sec * 1000 + t.tv_usec / 1000;
	if (vf_loop_want(&w->source, EPOLLIN) != 0) {
		free(w);
		return false;
	}
	waiters = w;
	return true;
}

/* True: peers of the fabric may connect to this socket. */
static bool is_listener(int fd)
{
	struct sockaddr_storage at;
	struct vs_addr addr;
	int listens = 0;
	socklen_t n = sizeof(listens), m = sizeof(at);

	return vf_target_may_be_tcp(fd) &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) == 0 && listens &&
	       getsockname(fd, (struct sockaddr *)&at, &m) == 0 &&
	       vs_addr_of((struct sockaddr *)&at, m, &addr) && vf_host_may(&addr);
}

void vf_accept(const struct vf_call *call)
{
	int listener = vf_target_fd(call->thread, (int)call->args[0]);
	int unknown = ~(SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (listener < 0 || !is_listener(listener) || !vf_notify_valid(call->id) ||
	    (call->number == SYS_accept4 && ((int)call->args[3] & unknown)))
		vf_notify_go_on(call->id);
	else if (serve(call, listener))
		; /* done */
	else if (vf_target_nonblock(listener))
		vf_notify_answer(call->id, -EAGAIN);
	else if (wait(call, listener))
		return; /* which has the listener */
	else
		vf_notify_go_on(call->id);
	if (listener >= 0)
		close(listener);
}

int vf_accept_check(void)
{
	struct waiter *w = waiters, *after;
	int64_t now = vf_loop_now();

	for (; w; w = after) {
		after = w->next;
		if (w->until >= 0 && w->until <= now)
			vf_notify_answer(w->call.id, -EAGAIN);
		if (!vf_notify_valid(w->call.id))
			end_waiter(w);
	}
	return waiters ? CHECK_MS : -1;
}
