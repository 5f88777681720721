// SPDX-License-Identifier: BSD-2-Clause
/* Promotion of a connected socket to a VI, and its way back to TCP. */
#include "vs_sock_promote.h"

#include <errno.h>

#include "st_stream.h"
#include "vs_env.h"
#include "vs_epoll.h"
#include "vs_item.h"
#include "vs_ready.h"
#include "vs_time.h"

#define RING_LEAST 65536u
#define RING_USUAL (1u << 20) /* st_promote()'s */
#define RING_MOST (16u << 20)

static _Atomic bool any_asked;

bool vs_sock_any_asked(void)
{
	return atomic_load(&any_asked);
}

void vs_sock_bar_promotion(struct vs_sock *k, enum vs_why why)
{
	if (!k->barred)
		k->why = why;
	k->barred = true;
}

/* The least power of two that holds so many bytes, between RING_LEAST and RING_MOST. */
static uint32_t ring_for(uint64_t bytes)
{
	uint32_t ring = RING_LEAST;

	while (ring < bytes && ring < RING_MOST)
		ring *= 2;
	return ring;
}

/*
 * How large the ring is to be from which the socket's end reads; 0: the default.  It stands for two buffers: that of
 * this end for receiving, and that of the other end for sending, which is taken for as large as this end's.  Twice the
 * low-water mark fits, as a poll() would not tell of a ring that is full below it.
 */
static uint32_t ring_bytes(struct vs_sock *k)
{
	uint64_t receive = (uint64_t)atomic_load(&k->receive_buffer);
	uint64_t least = (uint64_t)atomic_load(&k->send_buffer);
	uint64_t low = 2 * (uint64_t)atomic_load(&k->low_water);

	least = least + receive > low ? least + receive : low;
	return receive == 0 && least <= RING_USUAL ? 0 : ring_for(least);
}

void vs_sock_promote(struct vs_obj *o)
{
	struct st_stream *s = atomic_load(&o->sock.stream);
	char host[VS_NAME_MAX];
	struct st_wait *w;

	if (!s || o->sock.barred || vs_items_held() || atomic_exchange(&o->sock.asked, true))
		return;
	if (!vs_env_host(&vs_env, &o->sock.peer, host))
		return;
	if (!atomic_exchange(&any_asked, true))
		vs_env_restore();
	w = vs_epoll_wait_for(o);
	if (st_promote(s, host, w, ring_bytes(&o->sock)) == -EHOSTUNREACH)
		vs_sock_bar_promotion(&o->sock, VS_WHY_ADDRESS);
	vs_epoll_promoting(o);
}

void vs_sock_wait_promoted(struct vs_obj *o, int fd)
{
	struct st_stream *s = atomic_load(&o->sock.stream);
	struct timespec until = vs_in_ns(VS_EAGER_NS);
	struct pollfd p[2] = { { .events = POLLIN }, { .fd = fd, .events = POLLRDHUP } };
	int before = errno, rc = 1;

	while (s && rc > 0 && !p[1].revents && !st_on_tcp(s) && st_on_vi(s) != (ST_IN | ST_OUT)) {
		struct st_ready ready;

		p[0].fd = st_sleep_begin(s, NULL);
		st_ready(s, &ready);
		if (st_on_vi(s) != (ST_IN | ST_OUT))
			rc = vs_sleep_slice(p, 2, &until, true, NULL);
		st_sleep_end();
	}
	errno = before;
}

void vs_sock_moved(struct vs_obj *o, bool sent, size_t bytes)
{
	struct vs_sock *k = &o->sock;

	if (vs_likely(atomic_load_explicit(&k->was_on_vi, memory_order_relaxed)) || k->barred)
		return;
	if (atomic_load_explicit(&k->asked, memory_order_relaxed)) {
		vs_ready_note(o);
		return;
	}
	if (vs_auto_count(&k->traffic, sent, bytes) || vs_now_ns() - k->since >= VS_AUTO_NS)
		vs_sock_promote(o);
}

bool vs_sock_uses_vi(struct vs_obj *o)
{
	struct st_stream *s = atomic_load(&o->sock.stream);

	return s && !st_foreign(s) && !st_on_tcp(s);
}

void vs_sock_count_demoted(struct vs_sock *k, enum vs_why why)
{
	if (!atomic_exchange(&k->demoted, true))
		vs_stat_demoted(why);
}

void vs_sock_forbid(struct vs_obj *o, enum vs_why why)
{
	struct st_stream *s;

	if (!vs_is_socket(o))
		return;
	vs_sock_bar_promotion(&o->sock, why);
	s = atomic_load(&o->sock.stream);
	if (!s)
		return;
	vs_ready_note(o);
	if (st_on_vi(s))
		vs_sock_count_demoted(&o->sock, why);
}

void vs_sock_bar(struct vs_obj *o, enum vs_why why)
{
	struct st_stream *s;

	if (!vs_is_socket(o))
		return;
	vs_sock_forbid(o, why);
	s = atomic_load(&o->sock.stream);
	if (s && !st_on_tcp(s))
		st_demote(s, ST_WHY_ASKED);
}

/*
 * True: nothing is left to wait for before another process, or code that calls the kernel, uses the descriptor; or no
 * wait helps.  Receiving is settled when it is on TCP, and while bytes of the VI are unread or after its end; sending,
 * when the kernel has all of it.  A stream that is over is settled.  Gives the kernel what was kept back, unless
 * receiving is not settled.
 */
static bool is_settled(struct st_stream *s)
{
	struct st_ready ready = { 0 };

	if (!st_on_tcp(s)) {
		st_ready(s, &ready);
		if (!(ready.events & ST_IN))
			return false;
	}
	return (ready.events & ST_HUP) || st_settle(s) != -EAGAIN;
}

int vs_sock_wait_tcp(struct vs_obj *o, int ms)
{
	struct st_stream *s = vs_is_socket(o) ? atomic_load(&o->sock.stream) : NULL;
	struct timespec until = vs_in_ns((uint64_t)ms * 1000000);
	struct pollfd p = { .events = POLLIN };
	int rc = s && st_foreign(s) ? -ETIMEDOUT : 0;

	while (s && rc == 0 && !is_settled(s)) {
		p.fd = st_sleep_begin(s, NULL);
		if (!is_settled(s) && vs_sleep_slice(&p, 1, &until, true, NULL) == 0)
			rc = -ETIMEDOUT;
		st_sleep_end();
	}
	return rc;
}

void vs_sock_deliver(struct vs_obj *o, int ms)
{
	struct st_stream *s = vs_is_socket(o) ? atomic_load(&o->sock.stream) : NULL;

	if (s)
		st_linger(s, (uint32_t)ms);
}
