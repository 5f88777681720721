/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "st_paths.h"

#define PROGRESS_LOOKS 32 /* empty looks between calls that move packets */
#define CREDIT_LOOKS 64
#define PEEKED 16 /* buffers that a peek goes on in */

/* ---- the ring ------------------------------------------------------------------------------------------------ */

int st_rx_scan(struct st_stream *s)
{
	struct st_link *l = s->link;
	struct st_header header;
	int rc;

	if (s->rx.scan < s->rx.position) {
		s->rx.scan = s->rx.position;
		s->rx.scan_bytes = s->rx.bytes;
	}
	while (!s->rx.scan_fin && s->rx.scan - s->rx.position < l->ring_bytes) {
		rc = st_record_check(l->ring, l->ring_bytes, l->key, s->rx.scan, &header);
		if (rc <= 0)
			return rc;
		if (s->rx.scan == s->rx.position)
			s->rx.scan_bytes = s->rx.bytes - s->rx.offset;
		s->rx.scan =
			st_next_position(l->ring_bytes, s->rx.scan, header.kind, header.length);
		s->rx.scan_bytes += header.length;
		s->rx.edges++;
		s->rx.scan_fin = header.kind == ST_REC_FIN || header.kind == ST_REC_BACK;
		s->rx.scan_last = header.kind == ST_REC_FIN;
	}
	return 0;
}

uint64_t st_rx_own_bytes(struct st_stream *s)
{
	uint64_t bytes = s->rx.stash_end - s->rx.stash_at, scanned = 0;

	if (s->rx.path == ST_RX_RING && st_rx_scan(s) == 0 && s->rx.scan > s->rx.position)
		scanned = s->rx.scan_bytes - s->rx.bytes;
	/* A hostile end may have changed the records since they were scanned. */
	return scanned == 0 || scanned > s->link->ring_bytes ? bytes : bytes + scanned;
}

int st_rx_kernel_after(struct st_stream *s)
{
	switch ((enum st_rx_path)s->rx.path) {
	case ST_RX_TCP:
		return 0;
	case ST_RX_RING: /* which scan_fin has ended */
		return s->rx.scan_fin && !s->rx.scan_last ? ST_TOKEN_BYTES : -1;
	case ST_RX_MARK:
		return (int)(ST_TOKEN_BYTES - s->rx.token_have);
	default:
		return -1;
	}
}

void st_rx_credit(struct st_stream *s, uint64_t least)
{
	struct st_link *l = s->link;
	uint64_t words[2] = { s->rx.position, s->rx.bytes };
	bool was_due;

	if (s->rx.position - s->rx.told < least || s->rx.position == s->rx.told ||
	    atomic_load(&s->phase) != ST_PHASE_UP || st_lock(&s->tx_lock) != 0)
		return;
	was_due = s->rx.credit_due;
	/* Where no slot is free this thread may sleep before one is. */
	s->rx.credit_due =
		st_link_word(s, l, offsetof(struct st_words, credit), words, sizeof(words)) != 0;
	if (s->rx.credit_due && !was_due) {
		st_look_after(s, 0);
	} else if (!s->rx.credit_due) {
		s->rx.told = s->rx.position;
		st_link_ring(s, l, ST_ARM_ROOM);
	}
	st_unlock(&s->tx_lock);
}

struct cursor {
	const struct iovec *iov;
	int count;
	size_t at; /* in iov[0] */
	bool throw_away;
};

/* Copies up to n bytes; those that found room. */
static uint32_t put(struct cursor *to, const uint8_t *from, uint32_t n)
{
	uint32_t done = 0;

	while (done < n && to->count > 0) {
		size_t left = to->iov->iov_len - to->at;
		uint32_t some = left < n - done ? (uint32_t)left : n - done;

		if (some > 0 && !to->throw_away)
			memcpy((uint8_t *)to->iov->iov_base + to->at, from + done, some);
		done += some;
		to->at += some;
		if (to->at == to->iov->iov_len) {
			to->iov++;
			to->count--;
			to->at = 0;
		}
	}
	return done;
}

/*
 * Copies records from the ring into the buffers: 0, with their payload in `bytes`, or -EPROTO.  A record that ends the
 * stream or the ring's use is carried out.  Peeking moves nothing.
 */
static int read_records(struct st_stream *s, struct cursor *to, bool peek, ssize_t *bytes)
{
	struct st_link *l = s->link;
	uint64_t position = s->rx.position;
	uint32_t offset = s->rx.offset;
	struct st_header header;
	uint64_t most = position + l->ring_bytes;

	while (to->count > 0 && position < most) {
		int rc = st_record_check(l->ring, l->ring_bytes, l->key, position, &header);
		uint32_t n;

		if (rc < 0)
			return rc;
		if (rc == 0)
			break;
		/* The length was read again: a hostile end may have changed it. */
		if (st_unlikely(offset > header.length))
			return -EPROTO;
		if (header.kind == ST_REC_OVER) {
			position = st_next_position(l->ring_bytes, position, header.kind, 0);
			continue;
		}
		if (header.kind != ST_REC_DATA) {
			if (peek)
				break;
			s->rx.position = position + ST_HEADER_BYTES;
			s->rx.offset = 0;
			s->rx.bytes += (uint64_t)*bytes;
			if (header.kind == ST_REC_FIN)
				st_rx_ends(s);
			else if (header.kind == ST_REC_BACK)
				st_rx_leave(s);
			return 0;
		}
		n = put(to,
			l->ring + st_header_at(l->ring_bytes, position) - header.length + offset,
			header.length - offset);
		*bytes += n;
		offset += n;
		if (offset < header.length)
			break;
		position += st_record_bytes(header.length);
		offset = 0;
	}
	if (!peek) {
		s->rx.position = position;
		s->rx.offset = offset;
		s->rx.bytes += (uint64_t)*bytes;
	}
	return 0;
}

/*
 * Returns credit: early where the ring is empty, so that the other end may start at its beginning again; seldom
 * otherwise.  Takes tx.
 */
static void credit_when_due(struct st_stream *s)
{
	struct st_link *l = s->link;
	uint64_t read = s->rx.position - s->rx.told;
	struct st_header header;

	if (st_likely(read < l->ring_bytes / 8) &&
	    (read < ST_CALM_BYTES / 4 ||
	     st_record_check(l->ring, l->ring_bytes, l->key, s->rx.position, &header) != 0))
		return;
	st_rx_credit(s, 1);
}

/*
 * Reads from the ring: bytes; 0: none have come.  A bad record resets the connection after the bytes before it.  Takes
 * tx for credit.
 */
static ssize_t from_ring(struct st_stream *s, struct cursor *to, int flags)
{
	ssize_t bytes = 0;

	if (st_unlikely(read_records(s, to, flags & MSG_PEEK, &bytes) != 0)) {
		st_reset(s);
		return bytes;
	}
	if (bytes > 0) {
		s->rx.empty_looks = 0;
		if (!(flags & MSG_PEEK)) {
			st_count_own(&s->rx.moved, (uint64_t)bytes);
			if (s->rx.path == ST_RX_RING)
				credit_when_due(s);
		}
		return bytes;
	}
	if (++s->rx.empty_looks % PROGRESS_LOOKS == 0 && atomic_load(&s->phase) == ST_PHASE_UP)
		st_link_progress(s, s->link);
	if (s->rx.empty_looks % CREDIT_LOOKS == 0 && s->rx.path == ST_RX_RING)
		st_rx_credit(s, 1);
	return 0;
}

/* Reads from the stash, which is freed when it is empty. */
static ssize_t from_stash(struct st_stream *s, struct cursor *to, int flags)
{
	uint32_t n = put(to, s->rx.stash + s->rx.stash_at, s->rx.stash_end - s->rx.stash_at);

	if (flags & MSG_PEEK)
		return n;
	s->rx.stash_at += n;
	if (s->rx.stash_at == s->rx.stash_end) {
		free(s->rx.stash);
		s->rx.stash = NULL;
		s->rx.stash_at = s->rx.stash_end = s->rx.stash_size = 0;
	}
	return n;
}

/* Reads from the kernel's socket, and counts the bytes: as st_sys_recv(). */
static ssize_t from_tcp(struct st_stream *s, const struct iovec *iov, int count, int flags)
{
	ssize_t n = st_sys_recv(s->fd, iov, count, flags & (MSG_PEEK | MSG_TRUNC));

	if (n > 0 && !(flags & MSG_PEEK)) {
		s->rx.taken += (uint64_t)n;
		s->rx.tcp_bytes += (uint64_t)n;
		st_count(&st_counts.tcp_received, (uint64_t)n);
		if (st_unlikely(s->rx.asked) && s->rx.until - s->rx.tcp_bytes <= ST_STASH_MOST)
			st_look_after(s, 0);
	}
	return n;
}

/*
 * Peeks at the kernel's bytes after the `copied` ones, as far as they follow and there is room: how many.  A mark
 * between them is not told.
 */
static ssize_t peek_on(struct st_stream *s, const struct cursor *to, ssize_t copied, int flags)
{
	uint8_t mark[ST_TOKEN_BYTES];
	struct iovec iov[1 + PEEKED];
	int i, skip, count = to->count < PEEKED ? to->count : PEEKED;
	ssize_t n;

	/* Records that have come since they were copied are before the kernel's bytes. */
	if (st_rx_own_bytes(s) != (uint64_t)copied)
		return 0;
	skip = st_rx_kernel_after(s);
	if (skip < 0 || count == 0)
		return 0;
	iov[0] = (struct iovec){ mark, (size_t)skip };
	for (i = 0; i < count; i++)
		iov[1 + i] = to->iov[i];
	iov[1].iov_base = (uint8_t *)iov[1].iov_base + to->at;
	iov[1].iov_len -= to->at;
	n = st_sys_recv(s->fd, iov, 1 + count, flags & (MSG_PEEK | MSG_TRUNC));
	return n > skip ? n - skip : 0;
}

/* False: all buffers are empty. */
static bool has_room(const struct iovec *iov, int count)
{
	while (count > 0 && iov[count - 1].iov_len == 0)
		count--;
	return count > 0;
}

/* The result of a call that finds no byte: a kept error, 0 at the end, -EAGAIN, or on TCP what the kernel gives. */
static ssize_t nothing(struct st_stream *s, const struct iovec *iov, int count, int flags)
{
	int error = st_give_error(s);

	if (error != 0)
		return error;
	if (s->rx.fin || atomic_load(&s->dead))
		return 0;
	/* The kernel gives what it has before shutdown(SHUT_RD) counts. */
	if (s->rx.path == ST_RX_TCP)
		return from_tcp(s, iov, count, flags);
	return s->rx.shut ? 0 : -EAGAIN;
}

ssize_t st_rx(struct st_stream *s, const struct iovec *iov, int count, int flags)
{
	struct cursor to = { iov, count, 0, flags & MSG_TRUNC };
	ssize_t bytes = 0;

	if (st_unlikely(s->rx.path != ST_RX_RING || s->rx.stash != NULL ||
			atomic_load_explicit(&s->phase, memory_order_relaxed) != ST_PHASE_UP)) {
		if (s->rx.path == ST_RX_TCP && s->rx.stash == NULL && !atomic_load(&s->dead) &&
		    atomic_load_explicit(&s->error, memory_order_relaxed) == 0)
			return from_tcp(s, iov, count, flags);
		if (!has_room(iov, count))
			return 0;
		st_rx_step(s);
		if (s->rx.stash != NULL)
			bytes = from_stash(s, &to, flags);
	}
	if (s->rx.path == ST_RX_RING && !s->rx.fin &&
	    !atomic_load_explicit(&s->dead, memory_order_relaxed))
		bytes += from_ring(s, &to, flags);
	if (st_unlikely(flags & MSG_PEEK) && bytes > 0)
		return bytes + peek_on(s, &to, bytes, flags);
	if (bytes > 0)
		return bytes;
	/* A peek has left a record that ends the stream, or the ring's use, where it is. */
	if (s->rx.path == ST_RX_MARK || (flags & MSG_PEEK))
		st_rx_step(s);
	if (!has_room(iov, count))
		return 0;
	return nothing(s, iov, count, flags);
}
