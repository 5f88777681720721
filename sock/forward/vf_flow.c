// SPDX-License-Identifier: BSD-2-Clause
#include "vf_flow.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "vf_loop.h"

#define BUFFER 65536
#define TURNS 16 /* pieces that a direction hands on before other flows have their turn */
#define BUCKETS 1024

struct side {
	struct vf_source source;
	struct flow *flow;
	struct side *other;
	size_t at, length; /* of the bytes that were read here, and are not yet handed on */
	bool ended;	   /* nothing more comes from here */
	bool broken;	   /* by an error; or the other side's bytes find no taker here */
	bool shut;	   /* the other side's end was handed on to here */
	bool urgent;	   /* an urgent byte is on its way or here */
	int urgent_byte;   /* that was read here, and follows `length`; -1: none */
	char *buffer;
};

struct flow {
	struct side near, far;
	struct flow *next; /* of its bucket */
	uint64_t inode;
	struct vf_names names;
};

static struct flow *buckets[BUCKETS];
static size_t count;
static int64_t moved;

size_t vf_flow_count(void)
{
	return count;
}

int64_t vf_flow_moved(void)
{
	return moved;
}

const struct vf_names *vf_flow_names(uint64_t inode)
{
	struct flow *f;

	for (f = buckets[inode % BUCKETS]; f; f = f->next) {
		if (f->inode == inode)
			return &f->names;
	}
	return NULL;
}

void vf_flow_set_reset(int fd, bool reset)
{
	struct linger l = { .l_onoff = reset };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
}

static void end_side(struct side *s, bool reset)
{
	vf_loop_want(&s->source, 0);
	if (!reset)
		vf_flow_set_reset(s->source.fd, false);
	close(s->source.fd);
	free(s->buffer);
}

static void end(struct flow *f, bool reset)
{
	struct flow **at = &buckets[f->inode % BUCKETS];

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	count--;
	end_side(&f->near, reset);
	end_side(&f->far, reset);
	free(f);
}

/* ---- one direction ---- */

static bool has(const struct side *s)
{
	return s->length > 0 || s->urgent_byte >= 0;
}

/* The kernel stops receives before an urgent byte.  True: that is here now, and it was taken. */
static bool take_urgent(struct side *from)
{
	char byte = 0;
	int there = 0;

	if (ioctl(from->source.fd, SIOCATMARK, &there) != 0 || !there)
		return false;
	from->urgent = false;
	if (recv(from->source.fd, &byte, 1, MSG_OOB) != 1)
		return false;
	from->urgent_byte = (unsigned char)byte;
	return true;
}

/* Reads when nothing waits to be handed on.  False: nothing is there now. */
static bool fill(struct side *from)
{
	ssize_t n;

	if (from->urgent && take_urgent(from))
		return true;
	n = recv(from->source.fd, from->buffer, BUFFER, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	from->at = 0;
	from->length = n > 0 ? (size_t)n : 0;
	from->ended = n <= 0;
	from->broken |= n < 0;
	moved = n > 0 ? vf_loop_now() : moved;
	return true;
}

/* Hands on what waits.  False: there is no room now. */
static bool drain(struct side *from)
{
	struct side *to = from->other;
	char byte = (char)from->urgent_byte;
	ssize_t n;

	if (from->length > 0)
		n = send(to->source.fd, from->buffer + from->at, from->length, MSG_NOSIGNAL);
	else
		n = send(to->source.fd, &byte, 1, MSG_OOB | MSG_NOSIGNAL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0) {
		to->broken = true; /* what it has sent before may still be read */
		return false;
	}
	if (from->length == 0) {
		from->urgent_byte = -1;
		return true;
	}
	from->at += (size_t)n;
	from->length -= (size_t)n;
	return true;
}

/* Moves what can be moved from this side to the other, as long as other flows can wait. */
static void pump(struct side *from)
{
	struct side *to = from->other;
	bool goes_on = true;
	int turn;

	for (turn = 0; goes_on && turn < TURNS && !to->broken; turn++) {
		if (has(from))
			goes_on = drain(from);
		else
			goes_on = !from->ended && fill(from);
	}
	if (from->ended && !from->broken && !has(from) && !to->shut && !to->broken) {
		shutdown(to->source.fd, SHUT_WR);
		to->shut = true;
	}
}

/* ---- both ---- */

/* Nothing can be handed on from this side any more, and not because all was. */
static bool is_lost(const struct side *s)
{
	return s->broken && s->ended && (!has(s) || s->other->broken);
}

static bool is_over(const struct side *s)
{
	return s->ended && !s->broken && s->other->shut;
}

/* Asks for the events that this side needs.  False: no memory. */
static bool want(struct side *s)
{
	uint32_t events = 0;

	if (!has(s) && !s->ended && !s->other->broken)
		events |= s->urgent ? EPOLLIN : EPOLLIN | EPOLLPRI;
	if (has(s->other) && !s->broken)
		events |= EPOLLOUT;
	return vf_loop_want(&s->source, events) == 0;
}

static void ready(struct vf_source *source, uint32_t events)
{
	struct side *s = (struct side *)(void *)source;
	struct flow *f = s->flow;

	if (events & EPOLLPRI)
		s->urgent = true;
	pump(s);
	pump(s->other);
	if (is_lost(&f->near) || is_lost(&f->far))
		end(f, true);
	else if (is_over(&f->near) && is_over(&f->far))
		end(f, false);
	else if (!want(&f->near) || !want(&f->far))
		end(f, true);
}

/* False: no memory. */
static bool begin_side(struct side *s, struct flow *f, struct side *other, int fd)
{
	s->source = (struct vf_source){ .ready = ready, .fd = fd };
	s->flow = f;
	s->other = other;
	s->urgent_byte = -1;
	s->buffer = malloc(BUFFER);
	return s->buffer && vf_loop_want(&s->source, EPOLLIN | EPOLLPRI) == 0;
}

static void set_options(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	vf_flow_set_reset(fd, true);
}

bool vf_flow_start(int near, int far, uint64_t inode, const struct vf_names *names)
{
	struct flow *f = calloc(1, sizeof(*f));

	if (!f)
		return false;
	f->inode = inode;
	f->names = *names;
	if (!begin_side(&f->near, f, &f->far, near) || !begin_side(&f->far, f, &f->near, far)) {
		vf_loop_want(&f->near.source, 0);
		free(f->near.buffer);
		free(f->far.buffer);
		free(f);
		return false;
	}
	set_options(near);
	set_options(far);
	f->next = buckets[inode % BUCKETS];
	buckets[inode % BUCKETS] = f;
	count++;
	return true;
}
