/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "st_paths.h"
#include "st_risk.h"
#include "st_told.h"

#define BIG_LEAST 65536u /* from here on the memory itself is sent from, where writes are stores, */
#define BIG_MOST 1048576u /* as much at a time, */
#define BIG_RECORD 16368u /* in such records, which are 16 KiB with their headers */
#define HOLD_NS 200000000u
#define PIECES 16 /* of a call that follows a mark */

/* ---- TCP ----------------------------------------------------------------------------------------------------- */

int st_tx_pending(struct st_stream *s)
{
	while (s->tx.pend_bytes > 0) {
		struct iovec iov = { s->tx.pend, s->tx.pend_bytes };
		ssize_t n = st_sys_send(s->fd, &iov, 1, 0);

		if (n < 0)
			return n == -EINTR ? -EAGAIN : (int)n;
		s->tx.given += (uint64_t)n;
		s->tx.pend_bytes -= (uint32_t)n;
		memmove(s->tx.pend, s->tx.pend + n, s->tx.pend_bytes);
	}
	s->tx.pend_lazy = false;
	return 0;
}

void st_tx_leave(struct st_stream *s, bool lazy)
{
	struct st_token mark = st_mark(s->link->peer.key, s->tx.position);

	memcpy(s->tx.pend + s->tx.pend_bytes, &mark, sizeof(mark));
	s->tx.pend_bytes += sizeof(mark);
	s->tx.pend_lazy = lazy;
	s->tx.fin_due = false; /* the kernel's end tells of it */
	s->tx.path = ST_TX_TCP;
	s->tx.acked = s->tx.position;
	s->tx.acked_bytes = s->tx.bytes;
	s->tx.edges++;
}

/* Sends over TCP the bytes that were kept back for the ring: 0: none is left; -EAGAIN, or the kernel's error. */
static int held_to_tcp(struct st_stream *s)
{
	while (s->tx.held_bytes > 0) {
		struct iovec iov = { s->tx.held, s->tx.held_bytes };
		ssize_t n = st_sys_send(s->fd, &iov, 1, 0);

		if (n < 0)
			return n == -EINTR ? -EAGAIN : (int)n;
		s->tx.given += (uint64_t)n;
		s->tx.tcp_bytes += (uint64_t)n;
		st_count(&st_counts.tcp_sent, (uint64_t)n);
		s->tx.held_bytes -= (uint32_t)n;
		memmove(s->tx.held, s->tx.held + n, s->tx.held_bytes);
	}
	return 0;
}

/*
 * Sends what is pending and the bytes after it in one call, since the first byte that reaches a closed end is answered
 * by a reset.  Returns how many of the latter were sent, or -errno; -EAGAIN: none.
 */
static ssize_t behind_pending(struct st_stream *s, const struct iovec *iov, int count, int flags)
{
	struct iovec all[1 + PIECES] = { { s->tx.pend, s->tx.pend_bytes } };
	ssize_t n;

	count = count < PIECES ? count : PIECES;
	memcpy(all + 1, iov, (size_t)count * sizeof(*iov));
	n = st_sys_send(s->fd, all, 1 + count, flags);
	if (n < 0)
		return n;
	s->tx.given += s->tx.pend_bytes < (size_t)n ? s->tx.pend_bytes : (uint64_t)n;
	if ((size_t)n < s->tx.pend_bytes) {
		s->tx.pend_bytes -= (uint32_t)n;
		memmove(s->tx.pend, s->tx.pend + n, s->tx.pend_bytes);
		s->tx.pend_lazy = false;
		return -EAGAIN;
	}
	n -= (ssize_t)s->tx.pend_bytes;
	s->tx.pend_bytes = 0;
	s->tx.pend_lazy = false;
	return n > 0 ? n : -EAGAIN;
}

/* Sends over TCP, after what is pending or was kept back: bytes, or -errno. */
static ssize_t to_tcp(struct st_stream *s, const struct iovec *iov, int count, int flags)
{
	ssize_t n = 0;

	flags &= MSG_MORE | MSG_OOB;
	if (st_unlikely(s->tx.held_bytes > 0)) {
		n = st_tx_pending(s);
		if (n == 0)
			n = held_to_tcp(s);
	}
	if (n == 0 && st_unlikely(s->tx.pend_bytes > 0))
		n = behind_pending(s, iov, count, flags);
	else if (n == 0)
		n = st_sys_send(s->fd, iov, count, flags);
	if (n > 0) {
		s->tx.given += (uint64_t)n;
		s->tx.tcp_bytes += (uint64_t)n;
		st_count(&st_counts.tcp_sent, (uint64_t)n);
	}
	return n;
}

/* ---- the ring ------------------------------------------------------------------------------------------------ */

/* Takes the credit that has come: 0, or -EPROTO. */
static int take_credit(struct st_stream *s, struct st_link *l)
{
	uint64_t credit = __atomic_load_n(&l->words->credit, __ATOMIC_ACQUIRE);
	uint64_t bytes = __atomic_load_n(&l->words->credit_bytes, __ATOMIC_RELAXED);

	if (st_unlikely(!st_credit_ok(s->tx.acked, credit, s->tx.position)))
		return -EPROTO;
	if (credit != s->tx.acked)
		s->tx.edges++;
	s->tx.acked = credit;
	if (bytes - s->tx.acked_bytes <= s->tx.bytes - s->tx.acked_bytes)
		s->tx.acked_bytes = bytes;
	return 0;
}

/* Free bytes of the other end's ring by the credit that was taken, the reserve not counted. */
static uint64_t ring_room(struct st_stream *s)
{
	uint64_t used = s->tx.position - s->tx.acked + ST_RESERVE_BYTES;
	uint32_t size = s->link->peer.ring_bytes;

	return used < size ? size - used : 0;
}

uint64_t st_tx_room(struct st_stream *s)
{
	uint64_t room;

	if (take_credit(s, s->link) != 0) {
		st_reset(s);
		return 0;
	}
	room = ring_room(s);
	return room > ST_HEADER_BYTES ? room - ST_HEADER_BYTES : 0;
}

bool st_tx_writable(struct st_stream *s)
{
	uint32_t enough;

	if (s->tx.path != ST_TX_RING || atomic_load(&s->link->broken))
		return false;
	if (!st_link_settled(s->link) && ST_SENDS - st_link_reap(s, s->link) >= ST_SENDS_DATA)
		return false;
	enough = s->link->peer.ring_bytes / 4;
	/* A ring that was started over has little room until the other end knows; it is not full. */
	if (!s->tx.full && enough > ST_CALM_BYTES / 4)
		enough = ST_CALM_BYTES / 4;
	if (st_tx_room(s) < enough)
		return false;
	s->tx.full = false;
	return true;
}

/*
 * Goes back to the ring's beginning where all was read, and does nothing where not: false if the connection was reset,
 * or the record could not be sent.
 */
static bool start_over(struct st_stream *s, struct st_link *l)
{
	if (take_credit(s, l) != 0) {
		st_reset(s);
		return false;
	}
	return s->tx.acked != s->tx.position || st_link_record(s, l, ST_REC_OVER, NULL, 0, 0) == 0;
}

/*
 * Makes room for one more record, and passes the end of the ring by an empty one: the most payload of the record.  0:
 * no room, no slot, or bad credit, which resets.
 */
static uint32_t next_fits(struct st_stream *s, struct st_link *l, size_t left)
{
	/* Only for short records: long ones need all of the ring. */
	if (left <= ST_BOUNCE && st_may_skip(l->peer.ring_bytes, s->tx.position) &&
	    !start_over(s, l))
		return 0;
	for (int i = 0; i < 2; i++) {
		uint64_t room = ring_room(s);
		uint32_t fits = st_record_fits(l->peer.ring_bytes, s->tx.position, room);

		if (fits > 0)
			return fits;
		/* Credit is looked at when it is needed. */
		if (room < 2 * ST_HEADER_BYTES) {
			if (take_credit(s, l) != 0) {
				st_reset(s);
				return 0;
			}
			continue;
		}
		/* The last place at the ring's end has room for a header only. */
		if (st_link_record(s, l, ST_REC_DATA, NULL, 0, 0) != 0)
			return 0;
	}
	return st_record_fits(l->peer.ring_bytes, s->tx.position, ring_room(s));
}

/* True: descriptors are left for one more record of data. */
static bool slots_left(struct st_stream *s, struct st_link *l)
{
	return st_link_settled(l) || ST_SENDS - st_link_reap(s, l) < ST_SENDS_DATA;
}

/* Writes a record as st_link_record(), and notes in `direct` whether it went through no slot: writes are stores. */
static int probe(struct st_stream *s, struct st_link *l, const struct iovec *iov, size_t skip,
		 uint32_t n)
{
	VIPX_COUNTERS before = { .Size = sizeof(before) }, after = { .Size = sizeof(after) };
	int rc;

	VipxQueryCounters(st_process.nic, l->vi, &before);
	rc = st_link_record(s, l, ST_REC_DATA, iov, skip, n);
	VipxQueryCounters(st_process.nic, l->vi, &after);
	l->direct = rc == 0 && st_link_settled(l) && after.SlotsSent == before.SlotsSent;
	return rc;
}

/*
 * Sends from one piece of memory, in records that the other end copies out while the next one is written: bytes.  0: no
 * room for many, or the writes are not stores.
 */
static uint32_t lend(struct st_stream *s, struct st_link *l, const uint8_t *from, uint32_t bytes)
{
	uint32_t done = 0, fits = next_fits(s, l, bytes);
	VIP_MEM_HANDLE handle;

	if (fits < BIG_RECORD || !st_link_lend(l, from, bytes, &handle))
		return 0;
	while (done < bytes && fits > 0) {
		uint32_t n = bytes - done < fits ? bytes - done : fits;

		n = n < BIG_RECORD ? n : BIG_RECORD;
		if (st_link_big(s, l, from + done, handle, n) != 0)
			break;
		st_link_ring(s, l, ST_ARM_DATA);
		done += n;
		fits = done < bytes ? next_fits(s, l, bytes) : 0;
	}
	st_link_lent(from, handle);
	return done;
}

/* As much of `bytes` as the next record can copy, through free slots that follow each other. */
static uint32_t can_copy(const struct st_link *l, uint32_t bytes)
{
	uint32_t used = l->send_head - l->send_tail, at = l->send_head % ST_SENDS;
	uint32_t slots = used < ST_SENDS_DATA ? ST_SENDS_DATA - used : 1;
	uint32_t room = ST_BOUNCE;

	if (slots > ST_SENDS - at)
		slots = ST_SENDS - at;
	if (slots > 1)
		room = slots * ST_SLOT_BYTES - ST_HEADER_BYTES;
	if (room > BIG_RECORD)
		room = BIG_RECORD;
	return bytes < room ? bytes : room;
}

/*
 * Writes records from iov at `skip`, of which `left` bytes are to go, and rings: bytes, at least one, or -EAGAIN, also
 * if the VI is broken.
 */
static ssize_t some_records(struct st_stream *s, struct st_link *l, const struct iovec *iov,
			    size_t skip, size_t left)
{
	uint32_t fits = next_fits(s, l, left), n;
	size_t at = skip;
	int rc;

	if (fits == 0 || !slots_left(s, l))
		return -EAGAIN;
	n = left < fits ? (uint32_t)left : fits;
	n = can_copy(l, n);
	if (left < BIG_LEAST) {
		rc = st_link_record(s, l, ST_REC_DATA, iov, skip, n);
	} else {
		for (; at >= iov->iov_len; iov++)
			at -= iov->iov_len;
		left = iov->iov_len - at < BIG_MOST ? iov->iov_len - at : BIG_MOST;
		if (l->direct && left >= BIG_LEAST) {
			uint32_t big =
				lend(s, l, (const uint8_t *)iov->iov_base + at, (uint32_t)left);

			if (big > 0)
				return big;
			if (atomic_load(&l->broken))
				return -EAGAIN;
		}
		rc = l->direct ? st_link_record(s, l, ST_REC_DATA, iov, at, n)
			       : probe(s, l, iov, at, n);
	}
	if (rc != 0)
		return -EAGAIN;
	st_link_ring(s, l, ST_ARM_DATA);
	return (ssize_t)n;
}

/* Marks the ring as full, and the first time lists the stream: a sleeper may have armed it only for bytes to read. */
static void no_room(struct st_stream *s)
{
	if (s->tx.full)
		return;
	s->tx.full = true;
	st_tell(s);
}

int st_tx_release(struct st_stream *s)
{
	struct iovec iov = { s->tx.held, s->tx.held_bytes };
	struct st_link *l = s->link;

	if (s->tx.path == ST_TX_TCP) {
		int rc = st_tx_pending(s);

		return rc != 0 ? rc : held_to_tcp(s);
	}
	if (s->tx.path != ST_TX_RING)
		return -EAGAIN;
	while (s->tx.held_bytes > 0) {
		ssize_t n = some_records(s, l, &iov, 0, s->tx.held_bytes);

		if (n < 0) {
			no_room(s);
			return -EAGAIN;
		}
		st_count_own(&s->tx.moved, (uint64_t)n);
		s->tx.held_bytes -= (uint32_t)n;
		memmove(s->tx.held, s->tx.held + n, s->tx.held_bytes);
		iov.iov_len = s->tx.held_bytes;
	}
	return 0;
}

/* Keeps the bytes of a call with MSG_MORE back; false: there is no room for all of them, and none is kept. */
static bool hold(struct st_stream *s, const struct iovec *iov, int count, size_t total)
{
	if (s->tx.held == NULL)
		s->tx.held = malloc(ST_BOUNCE);
	if (s->tx.held == NULL || s->tx.held_bytes + total > ST_BOUNCE)
		return false;
	if (s->tx.held_bytes == 0) {
		s->tx.held_since = st_now_ns();
		st_look_after(s, s->tx.held_since + HOLD_NS);
	}
	for (int i = 0; i < count; i++) {
		if (iov[i].iov_len > 0)
			memcpy(s->tx.held + s->tx.held_bytes, iov[i].iov_base, iov[i].iov_len);
		s->tx.held_bytes += (uint32_t)iov[i].iov_len;
	}
	return true;
}

/* Sends over the ring: the bytes that found room or were kept back, or -EAGAIN, also where the VI is broken. */
static ssize_t to_ring(struct st_stream *s, const struct iovec *iov, int count, int flags)
{
	struct st_link *l = s->link;
	size_t total = 0, done = 0;

	for (int i = 0; i < count; i++)
		total += iov[i].iov_len;
	if (!st_link_settled(l))
		st_link_reap(s, l);
	if (st_unlikely(atomic_load_explicit(&l->broken, memory_order_relaxed)))
		return -EAGAIN;
	if (st_unlikely((flags & MSG_MORE) && total > 0 && hold(s, iov, count, total)))
		return (ssize_t)total;
	if (st_unlikely(s->tx.held_bytes > 0) && st_tx_release(s) != 0)
		return -EAGAIN;
	while (done < total) {
		ssize_t n = some_records(s, l, iov, done, total - done);

		if (n < 0)
			break;
		done += (size_t)n;
	}
	st_count_own(&s->tx.moved, done);
	if (done == total) {
		s->tx.full = false;
		return (ssize_t)total;
	}
	no_room(s);
	/* Credit may lie in slots, which only a poll of the VI moves. */
	if (done == 0 && ++s->tx.full_tries % 16 == 0)
		st_link_progress(s, l);
	if (atomic_load(&l->broken))
		st_look_after(s, 0);
	return done > 0 ? (ssize_t)done : -EAGAIN;
}

void st_tx_end(struct st_stream *s)
{
	bool was_due = s->tx.fin_due;

	s->tx.fin_due = st_tx_release(s) != 0 ||
			st_link_record(s, s->link, ST_REC_FIN, NULL, 0, 0) != 0;
	if (!s->tx.fin_due)
		st_link_ring(s, s->link, ST_ARM_DATA);
	else if (!was_due)
		st_look_after(s, 0);
}

void st_tx_push(struct st_stream *s)
{
	int rc;

	if (s->tx.path != ST_TX_RING && s->tx.pend_lazy && s->tx.held_bytes == 0)
		return;
	if (s->tx.fin_due) {
		st_tx_end(s);
		return;
	}
	rc = s->tx.path == ST_TX_PROVING ? st_tx_pending(s) : st_tx_release(s);
	if (rc == 0 || rc == -EAGAIN)
		return;
	s->tx.pend_bytes = s->tx.held_bytes = 0;
	/* The kernel reports EPIPE at the next send, too; bytes that it holds are read before. */
	if (rc != -EPIPE)
		st_keep_error(s, -rc);
}

ssize_t st_tx(struct st_stream *s, const struct iovec *iov, int count, int flags)
{
	ssize_t n;
	int error;

	if (st_unlikely(s->tx.fin))
		return -EPIPE;
	error = st_give_error(s);
	if (st_unlikely(error != 0))
		return error;
	if (st_unlikely(atomic_load_explicit(&s->dead, memory_order_relaxed)))
		return -EPIPE;
	switch ((enum st_tx_path)s->tx.path) {
	case ST_TX_RING:
		n = to_ring(s, iov, count, flags);
		if (st_unlikely(st_at_risk(s) && !s->tx.at_risk))
			st_risk_begin(s);
		return n;
	case ST_TX_TCP:
		return to_tcp(s, iov, count, flags);
	default:
		s->tx.full = true;
		return -EAGAIN;
	}
}
