/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "st_helper.h"
#include "st_nic.h"
#include "st_parting.h"
#include "st_risk.h"
#include "st_step.h"
#include "st_wait.h"

#define RING_BYTES (1u << 20)

/* ---- life ---------------------------------------------------------------------------------------------------- */

int st_create(int fd, const struct st_origin *origin, struct st_stream **out)
{
	struct st_stream *s;

	if (origin->size != sizeof(*origin) || fd < 0 ||
	    (origin->role != ST_CONNECTOR && origin->role != ST_ACCEPTOR))
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	atomic_store(&s->refs, 1);
	s->fd = fd;
	s->closing_fd = -1;
	s->origin = *origin;
	s->tx.tcp_bytes = s->tx.given = origin->sent;
	s->rx.tcp_bytes = s->rx.taken = origin->received;
	if (st_lock(&st_process.lock) != 0) {
		free(s);
		return -EDEADLK;
	}
	s->next_all = st_process.all;
	s->prev_all = &st_process.all;
	if (s->next_all != NULL)
		s->next_all->prev_all = &s->next_all;
	st_process.all = s;
	st_unlock(&st_process.lock);
	*out = s;
	return 0;
}

void st_set_fd(struct st_stream *s, int fd)
{
	bool rx = st_lock_rx(s) == 0, tx = st_lock(&s->tx_lock) == 0;

	s->fd = fd;
	if (tx)
		st_unlock(&s->tx_lock);
	if (rx)
		st_unlock(&s->rx_lock);
}

void st_set_context(struct st_stream *s, void *context)
{
	s->context = context;
}

void *st_context(struct st_stream *s)
{
	return s->context;
}

int st_promote(struct st_stream *s, const char *host, struct st_wait *w, uint32_t ring_bytes)
{
	uint8_t unused[ST_DISCRIMINATOR_BYTES];
	int rc = 0;

	if (ring_bytes == 0)
		ring_bytes = st_process.config.ring_bytes != 0 ? st_process.config.ring_bytes
							       : RING_BYTES;
	if (strlen(host) >= sizeof(s->host) || ring_bytes < ST_RING_LEAST ||
	    ring_bytes > ST_RING_MOST || (ring_bytes & (ring_bytes - 1)) != 0)
		return -EINVAL;
	if (atomic_load(&s->foreign))
		return -EPERM;
	if (st_discriminator(&s->origin, s->origin.role, unused) != 0)
		return -EOPNOTSUPP;
	rc = st_helper_start();
	if (rc != 0)
		return rc;
	if (st_lock(&st_process.lock) != 0)
		return -EDEADLK;
	if (s->closing || atomic_load(&s->closed) || s->tx.fin || s->rx.fin)
		rc = -ENOTCONN;
	else if (atomic_load(&s->phase) != ST_PHASE_NONE || s->tx.pend_bytes > 0 ||
		 s->rx.path != ST_RX_TCP)
		rc = -EALREADY;
	else if (st_nic_is_stranger(host))
		rc = -EHOSTUNREACH;
	if (rc == 0) {
		strcpy(s->host, host);
		s->ring_bytes = ring_bytes;
		s->want_tcp = s->asked_back = false;
		s->why = ST_WHY_NONE;
		if (w != NULL && s->wait == NULL) {
			st_wait_get(w);
			s->wait = w;
		}
		atomic_store(&s->phase, ST_PHASE_ASKED);
	}
	st_unlock(&st_process.lock);
	if (rc == 0)
		st_look_after(s, 0);
	return rc;
}

/* ---- bytes --------------------------------------------------------------------------------------------------- */

/* 0; -EBADF: closed, -ENOTCONN: foreign. */
static inline int usable(struct st_stream *s)
{
	if (st_unlikely(atomic_load_explicit(&s->closed, memory_order_relaxed)))
		return -EBADF;
	return st_unlikely(atomic_load_explicit(&s->foreign, memory_order_relaxed)) ? -ENOTCONN : 0;
}

ssize_t st_send(struct st_stream *s, const struct iovec *iov, int count, int flags)
{
	ssize_t rc = st_lock(&s->tx_lock);

	if (st_unlikely(rc != 0))
		return rc;
	rc = usable(s);
	if (st_likely(rc == 0))
		rc = st_tx(s, iov, count, flags);
	st_unlock(&s->tx_lock);
	return rc;
}

ssize_t st_recv(struct st_stream *s, const struct iovec *iov, int count, int flags)
{
	ssize_t rc = st_lock_rx(s);

	if (st_unlikely(rc != 0))
		return rc;
	rc = usable(s);
	if (st_likely(rc == 0))
		rc = st_rx(s, iov, count, flags);
	st_unlock(&s->rx_lock);
	return rc;
}

int st_flush(struct st_stream *s)
{
	int rc = st_lock(&s->tx_lock);

	if (rc != 0)
		return rc;
	rc = usable(s);
	if (rc == 0 && s->tx.held_bytes > 0)
		rc = st_tx_release(s);
	st_unlock(&s->tx_lock);
	return rc;
}

int st_take_error(struct st_stream *s)
{
	int error = -st_give_error(s);

	return error != 0 || usable(s) != 0 ? error : st_sys_error(s->fd);
}

/* ---- ends ---------------------------------------------------------------------------------------------------- */

/*
 * Ends sending, once; what cannot be ended at once the helper ends.  0, or -errno of the kernel or the lock.  Takes tx.
 */
static int shutdown_send(struct st_stream *s)
{
	int rc = st_lock(&s->tx_lock);
	bool later = false;

	if (rc != 0)
		return rc;
	if (!s->tx.fin) {
		if (s->tx.path == ST_TX_RING) {
			st_tx_end(s);
			/* The kernel's end follows the ring's, when that has arrived. */
			later = s->tx.fin_due || VipxFlush(s->link->vi, 0) != VIP_SUCCESS;
		} else if (s->tx.path == ST_TX_TCP) {
			later = s->tx.pend_bytes > 0 && !s->tx.pend_lazy &&
				st_tx_pending(s) == -EAGAIN;
		} else {
			/* Between two paths: the helper sees that this direction has ended. */
			later = true;
		}
		s->tx.fin = true;
		s->tx.kernel_fin_due = later;
		if (!later) {
			st_risk_end(s);
			rc = st_sys_shutdown(s->fd, SHUT_WR);
		}
	}
	st_unlock(&s->tx_lock);
	if (later)
		st_look_after(s, 0);
	return rc;
}

int st_shutdown(struct st_stream *s, int how)
{
	int rc = usable(s);

	if (rc != 0)
		return rc;
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (how != SHUT_RD)
		rc = shutdown_send(s);
	if (how != SHUT_WR) {
		if (st_lock_rx(s) != 0)
			return -EDEADLK;
		s->rx.shut = true;
		st_unlock(&s->rx_lock);
		st_sys_shutdown(s->fd, SHUT_RD);
	}
	st_kick_all(s);
	return rc;
}

/* Under tx: ends sending on the present path; true: a copy of the socket has to wait until the other end has all. */
static bool close_send(struct st_stream *s)
{
	if (s->tx.path == ST_TX_RING) {
		if (!s->tx.fin)
			st_tx_end(s);
		s->flushed = !s->tx.fin_due && !s->rx.credit_due &&
			     VipxFlush(s->link->vi, 0) == VIP_SUCCESS;
		return !s->flushed;
	}
	if (s->tx.path == ST_TX_TCP && s->tx.held_bytes == 0 &&
	    (s->tx.pend_bytes == 0 || (s->tx.pend_lazy && !s->tx.at_risk))) {
		s->tx.pend_bytes = 0;
		s->flushed = s->link == NULL || VipxFlush(s->link->vi, 0) != VIP_TIMEOUT;
		return false;
	}
	if (s->tx.path == ST_TX_TCP && st_tx_release(s) == 0) {
		s->flushed = true;
		return false;
	}
	/* A token that was sent needs nothing more: the other end finds TCP's end after it. */
	s->flushed = s->tx.path != ST_TX_TCP && s->tx.pend_bytes == 0;
	return !s->flushed;
}

/* `locked`: under rx and tx.  True: a copy of the socket has to wait until st_parting_due() is false. */
static bool wait_for_tcp(struct st_stream *s, bool locked)
{
	if (locked && !st_parting_due(s))
		return false;
	if (s->flushed && !s->tx.fin) {
		s->tx.fin = true;
		st_sys_shutdown(s->fd, SHUT_WR);
	}
	s->tcp_due = true;
	return true;
}

void st_close(struct st_stream *s, enum st_close_how how)
{
	bool waits = false, unread, rx, tx, all;

	if (atomic_exchange(&s->closed, true))
		return;
	if (atomic_load(&s->foreign))
		return;
	/* A lock that a signal handler does not get stays with the call that it has interrupted. */
	rx = st_lock_rx(s) == 0;
	/* A token or mark that has come is no unread byte of the program's, but the kernel would reset for it. */
	if (rx && s->rx.path != ST_RX_TCP)
		st_rx_step(s);
	/* Otherwise the other end would take bytes that were read for lost with the VI. */
	if (rx && s->rx.path == ST_RX_RING)
		st_rx_credit(s, 1);
	tx = st_lock(&s->tx_lock) == 0;
	unread = !s->rx.shut && (s->link != NULL || s->rx.stash != NULL) && st_rx_own_bytes(s) > 0;
	if (how == ST_CLOSE_ABORT || unread) {
		st_sys_linger_reset(s->fd);
		s->tx.at_risk = false;
		s->flushed = true;
	} else if (atomic_load(&s->dead) || atomic_load(&s->phase) == ST_PHASE_NONE) {
		/* Bytes that were kept back for TCP are the helper's. */
		waits = !atomic_load(&s->dead) && close_send(s);
		s->flushed = !waits;
	} else {
		waits = close_send(s);
		waits = wait_for_tcp(s, rx && tx) || waits;
	}
	if (s->flushed)
		st_risk_end(s);
	else
		st_risk_check(s);
	if (waits)
		s->closing_fd = st_sys_dup(s->fd, st_low_fd());
	s->fd = s->closing_fd;
	if (tx)
		st_unlock(&s->tx_lock);
	if (rx)
		st_unlock(&s->rx_lock);
	st_kick_all(s);
	all = st_lock(&st_process.lock) == 0;
	s->closing = atomic_load(&s->phase) != ST_PHASE_NONE || waits;
	if (all)
		st_unlock(&st_process.lock);
	if (s->closing)
		st_look_after(s, 0);
}

/*
 * Under tx: sends what was kept back, and waits a short time until all has arrived.  VIP_TIMEOUT: not yet.  TCP's bytes
 * are the kernel's to deliver.
 */
static VIP_RETURN wait_delivered(struct st_stream *s)
{
	VIP_RETURN rc = VIP_SUCCESS;

	if (s->tx.path == ST_TX_RING) {
		st_tx_push(s);
		rc = s->tx.held_bytes == 0 && !s->tx.fin_due ? VipxFlush(s->link->vi, 50)
							     : VIP_TIMEOUT;
		/* st_risk_check() would flush again, and what the helper has posted since may be under way. */
		if (rc == VIP_SUCCESS)
			st_risk_end(s);
	} else if (s->tx.path == ST_TX_TCP) {
		s->tx.pend_lazy = s->tx.pend_lazy && !s->tx.at_risk;
		st_tx_push(s);
		st_risk_check(s);
	}
	return s->tx.at_risk ? VIP_TIMEOUT : rc;
}

int st_linger(struct st_stream *s, uint32_t timeout_ms)
{
	uint64_t end = st_now_ns() + timeout_ms * 1000000ull;
	struct timespec turn = { 0, 100000 };
	VIP_RETURN rc;
	int err;

	for (;;) {
		err = st_lock(&s->tx_lock);
		if (err != 0)
			return err;
		err = usable(s);
		rc = err == 0 ? wait_delivered(s) : VIP_SUCCESS;
		st_unlock(&s->tx_lock);
		if (err != 0 || rc != VIP_TIMEOUT || atomic_load(&s->dead))
			return err;
		if (st_now_ns() >= end)
			return -EAGAIN;
		st_sys_poll(NULL, 0, &turn);
	}
}

/* ---- back to TCP --------------------------------------------------------------------------------------------- */

void st_demote(struct st_stream *s, enum st_why why)
{
	bool all = st_lock(&st_process.lock) == 0;

	if (atomic_load(&s->phase) != ST_PHASE_NONE && !s->want_tcp) {
		s->why = why != ST_WHY_NONE ? why : ST_WHY_ASKED;
		s->want_tcp = true;
	}
	if (all)
		st_unlock(&st_process.lock);
	st_look_after(s, 0);
}

bool st_on_tcp(struct st_stream *s)
{
	bool yes;

	/* Nothing but this end moves its own direction: where that is on the VI no lock is needed to know. */
	if (st_likely(s->tx.path == ST_TX_RING))
		return false;
	if (st_lock_rx(s) != 0)
		return false;
	if (st_lock(&s->tx_lock) != 0) {
		st_unlock(&s->rx_lock);
		return false;
	}
	st_rx_step(s);
	yes = s->tx.path == ST_TX_TCP && s->rx.path == ST_RX_TCP && s->rx.stash == NULL &&
	      (s->tx.pend_bytes == 0 || s->tx.pend_lazy) && s->tx.held_bytes == 0 &&
	      (atomic_load(&s->phase) == ST_PHASE_NONE || s->want_tcp) && !atomic_load(&s->foreign);
	st_unlock(&s->tx_lock);
	st_unlock(&s->rx_lock);
	return yes;
}

int st_settle(struct st_stream *s)
{
	int rc = st_lock(&s->tx_lock);

	if (rc != 0)
		return rc;
	rc = usable(s);
	if (rc == 0 && s->tx.path == ST_TX_TCP) {
		s->tx.pend_lazy = false;
		st_tx_push(s);
		st_risk_check(s);
	}
	if (rc == 0 && (s->tx.path != ST_TX_TCP || s->tx.pend_bytes > 0 || s->tx.held_bytes > 0 ||
			s->tx.at_risk))
		rc = -EAGAIN;
	st_unlock(&s->tx_lock);
	return rc;
}

enum st_why st_why(struct st_stream *s)
{
	return atomic_load(&s->why);
}

bool st_foreign(struct st_stream *s)
{
	return atomic_load(&s->foreign);
}
