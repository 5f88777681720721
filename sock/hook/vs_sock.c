// SPDX-License-Identifier: BSD-2-Clause
/* A TCP socket: its object, how it becomes connected, and its end. */
#include "vs_sock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vs_env.h"
#include "vs_epoll.h"
#include "vs_note.h"
#include "vs_ready.h"
#include "vs_real.h"
#include "vs_sock_promote.h"
#include "vs_table.h"
#include "vs_time.h"

/* Protects the step from VS_CONNECTING to VS_CONNECTED, which each connection takes once. */
static pthread_mutex_t settle_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread _Atomic bool settles __attribute__((tls_model("initial-exec")));

static _Atomic int barred_new = VS_WHY_COUNT; /* why no connection is promoted any more */

static _Atomic bool shared;
static _Atomic uint32_t pid; /* 0: not asked for yet */

/* getpid(), without a system call for each connection. */
static uint32_t own_pid(void)
{
	if (vs_unlikely(atomic_load_explicit(&pid, memory_order_relaxed) == 0))
		atomic_store_explicit(&pid, (uint32_t)getpid(), memory_order_relaxed);
	return atomic_load_explicit(&pid, memory_order_relaxed);
}

void vs_sock_share(void)
{
	atomic_store_explicit(&shared, true, memory_order_relaxed);
}

bool vs_sock_shared(void)
{
	return atomic_load_explicit(&shared, memory_order_relaxed);
}

void vs_sock_see_nonblock(struct vs_obj *o, int fd)
{
	int before = errno, flags = vs_real.fcntl64(fd, F_GETFL, 0);

	if (flags >= 0)
		atomic_store(&o->sock.nonblock, (flags & O_NONBLOCK) != 0);
	errno = before;
}

void vs_sock_forked(void)
{
	settle_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	atomic_store(&pid, 0);
}

bool vs_sock_bar_new(enum vs_why why)
{
	int none = VS_WHY_COUNT;

	return !atomic_compare_exchange_strong(&barred_new, &none, (int)why);
}

/* True: some connection may be promoted, or statistics are asked for. */
static bool matters(void)
{
	return vs_env.possible || vs_stat_wanted;
}

static void sock_end(struct vs_obj *o)
{
	struct st_stream *s = atomic_exchange(&o->sock.stream, NULL);

	if (s)
		st_put(s);
}

/*
 * Gives the descriptor an object, with a reference for the caller.  NULL: no memory, the number is too high, or a
 * signal handler has interrupted a use of the table.
 */
static struct vs_obj *add(int fd, enum vs_state state, bool nonblock)
{
	struct vs_obj *o = vs_obj_create(VS_SOCKET, sock_end);

	if (!o)
		return NULL;
	o->sock.state = state;
	o->sock.nonblock = nonblock;
	o->sock.low_water = 1;
	if (vs_table_set(fd, o) != 0) {
		vs_put(o);
		return NULL;
	}
	return o; /* with the caller's reference */
}

void vs_sock_made(int fd, int family, int type, int protocol)
{
	struct vs_obj *o;

	if (!matters() || (family != AF_INET && family != AF_INET6) ||
	    (type & 0xf) != SOCK_STREAM || (protocol != 0 && protocol != IPPROTO_TCP))
		return;
	o = add(fd, VS_FRESH, type & SOCK_NONBLOCK);
	if (o)
		vs_put(o);
}

/* ---- becoming connected ---- */

/*
 * Asks the kernel for both addresses, for `k` and `origin`: 0; -ENOTCONN: it is not connected; -EAFNOSUPPORT: neither
 * IPv4 nor IPv6.
 */
static int addresses(struct vs_sock *k, int fd, struct st_origin *origin)
{
	socklen_t n = sizeof(origin->remote), m = sizeof(origin->local);

	if (getpeername(fd, (struct sockaddr *)&origin->remote, &n) != 0)
		return -ENOTCONN;
	if (getsockname(fd, (struct sockaddr *)&origin->local, &m) != 0 ||
	    !vs_addr_of((struct sockaddr *)&origin->remote, n, &k->peer) ||
	    !vs_addr_of((struct sockaddr *)&origin->local, m, &k->local))
		return -EAFNOSUPPORT;
	return 0;
}

/*
 * Under settle_lock: decides once whether a connection may be promoted, makes its stream, promotes an eager one that
 * was not accepted.  One without addresses stays with the kernel.  False, and nothing was done: it is not connected.
 */
static bool connected(struct vs_obj *o, int fd)
{
	struct st_origin origin = { .size = sizeof(origin),
				    .role = o->sock.accepted ? ST_ACCEPTOR : ST_CONNECTOR };
	struct vs_sock *k = &o->sock;
	struct st_stream *s = NULL;
	char host[VS_NAME_MAX];

	switch (addresses(k, fd, &origin)) {
	case 0:
		break;
	case -ENOTCONN:
		return false;
	default:
		atomic_store(&k->state, VS_KERNEL);
		return true;
	}
	vs_stat_add(VS_TCP_SOCKETS, 1);
	k->owner = own_pid();
	k->policy =
		vs_rules_policy(&vs_env.rules, vs_env.program, &k->peer, &k->local, vs_env.promote);
	if (k->policy == VS_NEVER)
		vs_sock_bar_promotion(k, VS_WHY_NEVER);
	else if (atomic_load(&barred_new) != VS_WHY_COUNT)
		vs_sock_bar_promotion(k, (enum vs_why)atomic_load(&barred_new));
	else if (!vs_env_host(&vs_env, &k->peer, host))
		vs_sock_bar_promotion(k, VS_WHY_ADDRESS);
	if (!k->barred && st_create(fd, &origin, &s) != 0)
		vs_sock_bar_promotion(k, VS_WHY_MEMORY);
	k->since = vs_now_ns();
	if (s) {
		st_set_context(s, o);
		atomic_store_explicit(&k->stream, s, memory_order_release);
	}
	atomic_store_explicit(&k->state, VS_CONNECTED, memory_order_release);
	/* An accepted one may be meant for a child of fork(): the process that uses it first promotes it. */
	if (s && k->policy == VS_EAGER && !k->accepted)
		vs_sock_promote(o);
	return true;
}

/* Takes settle_lock.  False: a signal handler has interrupted this thread here; the socket stays with the kernel. */
static bool settle_begin(void)
{
	if (atomic_load(&settles))
		return false;
	atomic_store(&settles, true);
	pthread_mutex_lock(&settle_lock);
	return true;
}

static void settle_end(void)
{
	pthread_mutex_unlock(&settle_lock);
	atomic_store(&settles, false);
}

/*
 * Completes a socket that was connecting if it is connected now; takes settle_lock, and in a handler that has
 * interrupted this thread there leaves the socket to the kernel for ever.  Leaves errno alone.
 */
static void settle(struct vs_obj *o, int fd)
{
	int before = errno;

	if (!settle_begin()) {
		atomic_store(&o->sock.state, VS_KERNEL);
		return;
	}
	if (atomic_load(&o->sock.state) == VS_CONNECTING)
		connected(o, fd);
	settle_end();
	errno = before;
}

struct st_stream *vs_sock_stream(struct vs_obj *o, int fd)
{
	int state = atomic_load_explicit(&o->sock.state, memory_order_acquire);

	if (vs_unlikely(state == VS_CONNECTING))
		settle(o, fd);
	if (vs_unlikely(o->sock.policy == VS_EAGER) && !atomic_exchange(&o->sock.waited, true)) {
		vs_sock_promote(o);
		vs_sock_wait_promoted(o, fd);
	}
	return atomic_load_explicit(&o->sock.stream, memory_order_acquire);
}

void vs_sock_connect(struct vs_obj *o, int fd, int error)
{
	int fresh = VS_FRESH;

	if (!vs_is_socket(o) || (error != 0 && error != EINPROGRESS && error != EINTR &&
				 error != EAGAIN && error != EALREADY && error != EISCONN))
		return;
	atomic_compare_exchange_strong(&o->sock.state, &fresh, VS_CONNECTING);
	if (error == 0 || error == EISCONN)
		settle(o, fd);
}

/*
 * An accepted connection has its listener's low-water mark, time-outs, buffers, TCP_CORK and SO_LINGER, and is barred
 * if an option barred that.
 */
static void inherit(struct vs_sock *k, struct vs_sock *from)
{
	k->low_water = atomic_load(&from->low_water);
	k->receive_ns = atomic_load(&from->receive_ns);
	k->send_ns = atomic_load(&from->send_ns);
	k->receive_buffer = atomic_load(&from->receive_buffer);
	k->send_buffer = atomic_load(&from->send_buffer);
	k->cork = atomic_load(&from->cork);
	k->lingers = atomic_load(&from->lingers);
	if (from->barred && from->why == VS_WHY_OPTION)
		vs_sock_bar_promotion(k, VS_WHY_OPTION);
}

void vs_sock_accepted(int listener, int fd, bool nonblock)
{
	struct vs_obj *o = matters() ? add(fd, VS_CONNECTING, nonblock) : NULL;
	struct vs_obj *from = o ? vs_get(listener) : NULL;
	int before = errno;

	if (!o)
		return;
	o->sock.accepted = true;
	if (from && vs_is_socket(from))
		inherit(&o->sock, &from->sock);
	else
		vs_note_all(&o->sock, fd);
	if (from)
		vs_put(from);
	if (settle_begin()) {
		/* One that has been reset is never connected again. */
		if (!connected(o, fd))
			atomic_store(&o->sock.state, VS_KERNEL);
		settle_end();
	} else {
		atomic_store(&o->sock.state, VS_KERNEL);
	}
	vs_put(o);
	errno = before;
}

bool vs_sock_is_accepted(int listener, int fd)
{
	int protocol = 0, before = errno;
	socklen_t n = sizeof(protocol);

	if (!matters())
		return false;
	if (vs_peek(listener))
		return true;
	if (vs_real.getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &n) != 0)
		protocol = 0;
	errno = before;
	return protocol == IPPROTO_TCP;
}

void vs_sock_listens(int fd)
{
	struct vs_obj *o = vs_get(fd);

	if (!o)
		return;
	if (vs_is_socket(o))
		atomic_store(&o->sock.state, VS_KERNEL);
	vs_put(o);
}

/* ---- the end ---- */

static enum vs_why why_of_stream(struct st_stream *s)
{
	static const enum vs_why why[ST_WHY_COUNT] = {
		[ST_WHY_NONE] = VS_WHY_SHORT,	    [ST_WHY_ASKED] = VS_WHY_OPTION,
		[ST_WHY_PEER] = VS_WHY_PEER,	    [ST_WHY_NO_NIC] = VS_WHY_FABRIC,
		[ST_WHY_NO_HOST] = VS_WHY_ADDRESS,  [ST_WHY_NO_PEER] = VS_WHY_NO_MATCH,
		[ST_WHY_NO_MEMORY] = VS_WHY_MEMORY, [ST_WHY_VERSION] = VS_WHY_NO_MATCH,
		[ST_WHY_TOKEN] = VS_WHY_NO_MATCH,   [ST_WHY_LOST] = VS_WHY_LOST,
		[ST_WHY_CLOSED] = VS_WHY_SHORT,	    [ST_WHY_FORK] = VS_WHY_FORK,
	};
	enum st_why w = st_why(s);

	return w < ST_WHY_COUNT ? why[w] : VS_WHY_SHORT;
}

/* At its end: counts why it was not promoted, or that the other end or a loss demoted it; its own process only. */
static void account(struct vs_sock *k, struct st_stream *s)
{
	if (atomic_load(&k->state) != VS_CONNECTED)
		return;
	if (k->owner != own_pid())
		return;
	if (atomic_load(&k->was_on_vi)) {
		/* By the other end, or with the VI: nobody here asked for it. */
		if (s && (st_why(s) == ST_WHY_PEER || st_why(s) == ST_WHY_LOST) && st_on_tcp(s))
			vs_sock_count_demoted(k, why_of_stream(s));
		return;
	}
	vs_stat_not_promoted(k->barred || !s ? k->why : why_of_stream(s));
}

/* How to close.  Waits before, as the kernel in close(), if SO_LINGER says so and the socket is in blocking mode. */
static enum st_close_how linger(struct vs_sock *k, struct st_stream *s)
{
	struct linger l = { 0 };

	if (!atomic_load(&k->lingers) && !vs_sock_shared())
		return ST_CLOSE_ORDERLY;
	if (st_get_linger(s, &l) != 0 || !l.l_onoff)
		return ST_CLOSE_ORDERLY;
	if (l.l_linger == 0)
		return ST_CLOSE_ABORT;
	if (!atomic_load(&k->nonblock))
		st_linger(s, (uint32_t)l.l_linger * 1000);
	return ST_CLOSE_ORDERLY;
}

/* Gives the stream another descriptor of the object, as its own may be the one that is closed. */
static void other_number(struct vs_obj *o, struct st_stream *s)
{
	int fd = -1;

	while ((fd = vs_table_next(fd + 1)) >= 0) {
		if (vs_peek(fd) == o) {
			st_set_fd(s, fd);
			return;
		}
	}
}

void vs_sock_close(struct vs_obj *o, int fd)
{
	struct st_stream *s = atomic_load(&o->sock.stream);
	int before = errno;

	if (atomic_load(&o->fds) > 0) {
		vs_epoll_unpark(o);
		if (s)
			other_number(o, s);
	} else {
		vs_epoll_forget(o);
		vs_ready_note(o);
		account(&o->sock, s);
		if (s)
			st_close(s, linger(&o->sock, s));
		vs_stat_publish();
	}
	errno = before;
}
