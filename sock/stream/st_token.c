/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader of a direction goes from TCP to the ring after a token, and back to TCP after a mark. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "st_paths.h"

#define TOKEN_NS 1000000000u
#define HALF 8u /* of a token */

/* Makes room for `more` bytes at the end of the stash, which may move: 0, or -ENOMEM, and it is as before. */
static int stash_room(struct st_stream *s, uint32_t more)
{
	uint32_t used = s->rx.stash_end - s->rx.stash_at;
	uint8_t *bigger;

	if (s->rx.stash_end + more <= s->rx.stash_size)
		return 0;
	bigger = malloc(used + more);
	if (bigger == NULL)
		return -ENOMEM;
	if (used > 0)
		memcpy(bigger, s->rx.stash + s->rx.stash_at, used);
	free(s->rx.stash);
	s->rx.stash = bigger;
	s->rx.stash_at = 0;
	s->rx.stash_end = used;
	s->rx.stash_size = used + more;
	return 0;
}

/*
 * From the kernel's socket; > 0, or 0: nothing more will come on this path, or -EAGAIN.  An error is kept for the
 * program, and gives 0.
 */
static ssize_t from_kernel(struct st_stream *s, void *to, size_t bytes)
{
	struct iovec iov = { to, bytes };
	ssize_t n = st_sys_recv(s->fd, &iov, 1, 0);

	if (n == -EINTR)
		return -EAGAIN;
	if (n < 0 && n != -EAGAIN) {
		st_keep_error(s, (int)-n);
		return 0;
	}
	if (n > 0)
		s->rx.taken += (uint64_t)n;
	return n;
}

/*
 * TCP's bytes before the token go to the stash; true: all of them are there.  False: not yet; or TCP has ended, so that
 * the reader is back there; or the connection was reset for want of memory.
 */
static bool take_before(struct st_stream *s)
{
	while (s->rx.tcp_bytes < s->rx.until) {
		uint32_t left = (uint32_t)(s->rx.until - s->rx.tcp_bytes);
		ssize_t n;

		if (stash_room(s, left) != 0) {
			st_reset(s);
			return false;
		}
		n = from_kernel(s, s->rx.stash + s->rx.stash_end, left);
		if (n == 0)
			s->rx.path = ST_RX_TCP;
		if (n <= 0)
			return false;
		s->rx.stash_end += (uint32_t)n;
		s->rx.tcp_bytes += (uint64_t)n;
		st_count(&st_counts.tcp_received, (uint64_t)n);
		s->rx.edges++;
	}
	return true;
}

/*
 * The bytes that came are data, not a token: the VI is not that of this connection, or the other end has lost it. They
 * go to the stash, and the reader back to TCP.
 */
static void no_token(struct st_stream *s)
{
	uint32_t have = s->rx.token_have;

	s->rx.token_have = 0;
	s->rx.path = ST_RX_TCP;
	s->rx.tcp_bytes += have;
	st_count(&st_counts.tcp_received, have);
	if (stash_room(s, have) != 0) {
		st_reset(s);
	} else if (have > 0) {
		memcpy(s->rx.stash + s->rx.stash_end, s->rx.token, have);
		s->rx.stash_end += have;
	}
	s->rx.edges++;
	st_kick_all(s);
}

bool st_rx_token_due(struct st_stream *s, uint64_t now)
{
	/* Half of it cannot be there by chance: the rest comes, however late. */
	if (s->rx.path != ST_RX_TOKEN || s->rx.token_have == 0 || s->rx.token_have >= HALF)
		return false;
	if (now < s->rx.token_since + TOKEN_NS)
		return true;
	no_token(s);
	return false;
}

/* The token is complete: the reader goes to the ring, and owes the proof. */
static void ring_opens(struct st_stream *s)
{
	s->rx.path = ST_RX_RING;
	s->rx.position = s->rx.scan = s->rx.told = 0;
	s->rx.bytes = s->rx.scan_bytes = s->rx.offset = 0;
	s->rx.proof_due = true;
	s->rx.scan_fin = s->rx.scan_last = s->rx.credit_due = false;
	memcpy(&s->rx.half, s->rx.token + 8, 8);
	st_look_after(s, 0);
}

/*
 * Reads the bytes before the token, and the token: the ring is next, without a VI the mark; a wrong token is data, and
 * the VI is broken.  True: the path changed, so the reader goes on at once.
 */
static bool take_token(struct st_stream *s)
{
	uint32_t have = s->rx.token_have;
	ssize_t n;

	if (!take_before(s))
		return false;
	n = from_kernel(s, s->rx.token + have, ST_TOKEN_BYTES - have);
	if (n == 0) {
		if (have >= HALF) {
			s->rx.token_have = 0;
			st_reset(s);
		}
		no_token(s);
		return true;
	}
	if (n < 0)
		return false;
	if (have == 0)
		s->rx.token_since = st_now_ns();
	have = s->rx.token_have += (uint32_t)n;
	if (memcmp(s->rx.token, &s->rx.half, have < HALF ? have : HALF) != 0) {
		if (s->link != NULL && !atomic_exchange(&s->link->broken, true)) {
			s->why = ST_WHY_TOKEN;
			st_look_after(s, 0);
		}
		no_token(s);
		return true;
	}
	if (have < ST_TOKEN_BYTES) {
		st_look_after(s, s->rx.token_since + TOKEN_NS);
		return false;
	}
	s->rx.token_have = 0;
	/* Without the VI the sender had no proof, and has written nothing to the ring. */
	if (atomic_load(&s->phase) == ST_PHASE_UP)
		ring_opens(s);
	else
		s->rx.path = ST_RX_MARK;
	return true;
}

/*
 * Reads the mark, or TCP's end: reading from TCP goes on; anything else resets the connection.  True: the path changed.
 */
static bool take_mark(struct st_stream *s)
{
	struct st_token mark = st_mark(s->rx.ring_key, s->rx.ring_position);
	uint32_t have = s->rx.token_have;
	ssize_t n = from_kernel(s, s->rx.token + have, ST_TOKEN_BYTES - have);
	bool wrong;

	if (n < 0)
		return false;
	have += (uint32_t)n;
	/* An end: the other end died, or has ended in this direction by the kernel's means. */
	wrong = n == 0 ? have > 0 : memcmp(s->rx.token, &mark, have) != 0;
	if (n > 0 && !wrong && have < ST_TOKEN_BYTES) {
		s->rx.token_have = have;
		return false;
	}
	s->rx.token_have = 0;
	s->rx.path = ST_RX_TCP;
	if (wrong)
		st_reset(s);
	else
		st_look_after(s, 0);
	return true;
}

void st_rx_leave(struct st_stream *s)
{
	s->rx.path = ST_RX_MARK;
	s->rx.token_have = 0;
	s->rx.ring_key = s->link->key;
	s->rx.ring_position = s->rx.position;
	s->rx.edges++;
	st_changed();
	st_look_after(s, 0);
}

void st_rx_ends(struct st_stream *s)
{
	s->rx.fin = true;
	/* An edge, unless it was told when the record was looked at. */
	if (!s->rx.scan_last)
		s->rx.edges++;
}

/*
 * Takes a record without payload, which ends the stream or the ring's use; a lost ring ends where no record lies. True:
 * one was taken, or the ring was left.
 */
static bool step_ring(struct st_stream *s)
{
	struct st_link *l = s->link;
	struct st_header header;
	int rc;

	if (s->rx.fin || s->rx.offset != 0)
		return false;
	rc = st_record_check(l->ring, l->ring_bytes, l->key, s->rx.position, &header);
	if (rc == 0 && atomic_load(&s->phase) == ST_PHASE_LOST) {
		st_rx_leave(s);
		return true;
	}
	if (rc <= 0 || header.length > 0)
		return false;
	s->rx.position = st_next_position(l->ring_bytes, s->rx.position, header.kind, 0);
	if (header.kind == ST_REC_FIN)
		st_rx_ends(s);
	else if (header.kind == ST_REC_BACK)
		st_rx_leave(s);
	return true;
}

void st_rx_step(struct st_stream *s)
{
	bool more = true;

	while (more && !atomic_load_explicit(&s->dead, memory_order_relaxed)) {
		switch ((enum st_rx_path)s->rx.path) {
		case ST_RX_TOKEN:
			more = take_token(s);
			break;
		case ST_RX_RING:
			more = step_ring(s);
			break;
		case ST_RX_MARK:
			more = take_mark(s);
			break;
		default:
			more = false;
		}
	}
}
