/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "st_nic.h"
#include "st_parting.h"
#include "st_quiet.h"
#include "st_risk.h"
#include "st_step.h"
#include "st_switch.h"
#include "st_wait.h"

#define FIRST_NS 20000u
#define LAST_NS 8000000u
#define HELLO_NS 2000000000u
#define CLOSE_NS 60000000000u
/* TCP tells that the other end has died at most this long after its agent, or after the last byte was read. */
#define MARK_NS 200000000u
#define MARK_LATE_NS 1000000000u

/* When to come again: after the backoff, which doubles with each call. */
static uint64_t later(struct st_stream *s, uint64_t now)
{
	uint64_t due = now + s->backoff;

	s->backoff = s->backoff * 2 < LAST_NS ? s->backoff * 2 : LAST_NS;
	return due;
}

/* ---- the VI goes --------------------------------------------------------------------------------------------- */

void st_drop_link(struct st_stream *s)
{
	struct st_link *l = s->link;

	if (l == NULL)
		return;
	VipDisconnect(l->vi); /* may wait, so under no lock */
	st_lock(&s->rx_lock);
	st_lock(&s->tx_lock);
	st_lock(&s->wait->lock);
	st_link_cut(l);
	s->link = NULL;
	/* Closed: calls of other threads that were under way find no ring any more. */
	if (s->rx.path == ST_RX_RING)
		s->rx.path = ST_RX_TCP;
	if (s->tx.path == ST_TX_RING)
		s->tx.path = ST_TX_TCP;
	s->rx.asked = s->rx.credit_due = s->tx.fin_due = false;
	/* Changed together under the locks: st_on_tcp() takes a phase without want_tcp for one that goes on. */
	s->want_tcp = false;
	atomic_store(&s->phase, ST_PHASE_NONE);
	st_wait_forget(s->wait, s);
	st_unlock(&s->wait->lock);
	st_unlock(&s->tx_lock);
	st_unlock(&s->rx_lock);
	st_link_destroy(l);
	st_kick_all(s);
}

/* Ends an attempt to get a VI, with its reason: phase NONE, the stream stays on TCP. */
static void give_up(struct st_stream *s, enum st_why why)
{
	s->why = why;
	st_count(&st_counts.given_up, 1);
	st_count(&st_counts.demotions[why], 1);
	/* Once the phase is set the program may ask for the next attempt: nothing of the stream is set after it. */
	if (s->link != NULL) {
		st_drop_link(s);
		return;
	}
	s->want_tcp = false;
	atomic_store(&s->phase, ST_PHASE_NONE);
	st_kick_all(s);
}

/* Under rx: the end of the other end's stream, on the ring or in the kernel, or a reset has come. */
static bool peer_ended(struct st_stream *s)
{
	return s->rx.fin || s->rx.scan_last || (s->fd >= 0 && st_sys_peer_ended(s->fd));
}

/*
 * Under rx: bytes of the other end's have not been read on TCP, or some have been since the last look.  The last of
 * them, and its end, may lie in its kernel until there is room here, also when the process is gone.
 */
static bool tcp_comes(struct st_stream *s)
{
	uint64_t before = s->seen_taken;
	int unread = 0;

	s->seen_taken = s->rx.taken;
	return s->rx.path == ST_RX_TCP && s->fd >= 0 &&
	       ((st_sys_ioctl_int(s->fd, FIONREAD, &unread) == 0 && unread > 0) ||
		s->rx.taken != before);
}

/*
 * Under tx: the sender's bytes go on with TCP.  The other end may have died: its kernel would answer the mark by a
 * reset, where TCP tells of the end of the stream.
 */
static void sender_lost(struct st_stream *s)
{
	bool unread, ring = s->tx.path == ST_TX_RING;

	if (ring)
		st_tx_room(s); /* takes the credit that has come */
	unread = ring && s->tx.acked != s->tx.position;
	if (s->tx.path == ST_TX_ASKED) {
		s->tx.path = ST_TX_TCP;
	} else if (st_link_peer_closed(s->link)) {
		/* Nobody reads the mark: see st_parting.h. */
		if (s->tx.path != ST_TX_TCP) {
			st_tx_leave(s, true);
			unread = false;
		}
		s->tx.pend_bytes = 0;
		s->tx.pend_lazy = false;
		st_risk_end(s);
	} else if (s->tx.path != ST_TX_TCP && s->tx.fin && !s->tx.kernel_fin_due) {
		s->tx.path = ST_TX_TCP;
	} else if (s->tx.path != ST_TX_TCP) {
		st_count(&st_counts.demotions[atomic_load(&s->why)], 1);
		/* The rest of a token that was sent in part follows at once. */
		st_tx_leave(s, !s->tx.fin && s->tx.held_bytes == 0 &&
				       s->tx.pend_bytes % ST_TOKEN_BYTES == 0);
	}
	st_tx_push(s);
	/* Without the mark the other end would not know of records that were lost. */
	if (unread && st_at_risk(s))
		st_risk_begin(s);
	else if (!unread && s->tx.pend_lazy)
		st_risk_end(s);
	s->tx.edges++;
}

/*
 * Disconnects the VI, which is broken, for phase LOST: records that came can still be read, sending goes back to TCP.
 * Takes rx and tx.
 */
static void lost(struct st_stream *s)
{
	if (s->why == ST_WHY_NONE)
		s->why = ST_WHY_LOST;
	atomic_store(&s->link->broken, true);
	VipDisconnect(s->link->vi);
	st_lock(&s->rx_lock);
	st_lock(&s->tx_lock);
	atomic_store(&s->phase, ST_PHASE_LOST);
	if (s->rx.path == ST_RX_RING && !atomic_load(&s->closed))
		st_rx_scan(s);
	sender_lost(s);
	s->rx.proof_due = s->rx.asked = false;
	st_unlock(&s->tx_lock);
	st_rx_step(s);
	st_unlock(&s->rx_lock);
	s->backoff = FIRST_NS;
	s->lost_at = st_now_ns();
	s->deadline = s->lost_at + MARK_NS;
	st_kick_all(s);
}

/* ---- up ------------------------------------------------------------------------------------------------------ */

/* Makes the wait object, where the program has given none, and its queue: 0, -errno. */
static int make_wait(struct st_stream *s)
{
	struct st_wait *w = s->wait;

	if (w == NULL) {
		if (st_wait_new(&w) != 0)
			return -ENOBUFS;
		s->wait = w;
	}
	return st_wait_open(w);
}

/* True: packets to that address pass agents of other hosts; false also if that is unknown. */
static bool is_relayed(union st_address *remote)
{
	VIPX_ROUTE route = { .Size = sizeof(route) };

	return VipxQueryRoute(st_process.nic, &remote->net, &route) == VIP_SUCCESS &&
	       route.PathKind == VIPX_PATH_RELAYED;
}

/* In phase ASKED: opens the NIC, makes the VI and the peer request, or gives up.  Returns when to come again. */
static uint64_t begin(struct st_stream *s, uint64_t now)
{
	uint32_t give_up_ms = st_process.config.give_up_ms != 0 ? st_process.config.give_up_ms
								: 2000;
	union st_address local, remote;
	struct st_link *l = NULL;
	enum st_why why = st_nic_open();

	if (why == ST_WHY_NONE)
		why = st_nic_addresses(s, &local, &remote);
	if (why == ST_WHY_NONE &&
	    (make_wait(s) != 0 || st_link_create(s, s->ring_bytes, s->wait->cq, &l) != 0))
		why = ST_WHY_NO_MEMORY;
	if (why == ST_WHY_NONE) {
		l->relayed = is_relayed(&remote);
		st_lock(&s->rx_lock);
		st_lock(&s->tx_lock);
		st_lock(&s->wait->lock);
		s->link = l;
		st_unlock(&s->wait->lock);
		st_unlock(&s->tx_lock);
		st_unlock(&s->rx_lock);
		st_count(&st_counts.attempts, 1);
		if (VipConnectPeerRequest(l->vi, &local.net, &remote.net, give_up_ms) !=
		    VIP_SUCCESS)
			why = ST_WHY_NO_MEMORY;
	}
	if (why != ST_WHY_NONE) {
		give_up(s, why);
		return now;
	}
	atomic_store(&s->phase, ST_PHASE_MATCH);
	s->backoff = FIRST_NS;
	/* Sleepers have a wait object to watch now. */
	st_kick_all(s);
	return now + s->backoff;
}

/* The reason that a failed VipConnectPeerDone() tells. */
static enum st_why why_not(VIP_RETURN rc)
{
	switch (rc) {
	case VIP_NOT_REACHABLE:
		return ST_WHY_NO_HOST;
	case VIP_ERROR_RESOURCE:
		return ST_WHY_NO_MEMORY;
	case VIP_TIMEOUT:
		return ST_WHY_NO_PEER;
	default:
		return ST_WHY_VERSION;
	}
}

/* In phase MATCH: once the peer request is done, sends the greeting; gives up if it failed.  When to come again. */
static uint64_t match(struct st_stream *s, uint64_t now)
{
	struct st_link *l = s->link;
	VIP_VI_ATTRIBUTES theirs;
	VIP_RETURN rc;
	struct st_message m = { .magic = ST_WIRE_MAGIC,
				.version = ST_WIRE_VERSION,
				.kind = ST_MSG_HELLO };

	if (s->want_tcp || s->closing) {
		give_up(s, s->closing ? ST_WHY_CLOSED : s->why);
		return now;
	}
	rc = VipConnectPeerDone(l->vi, &theirs);
	if (rc == VIP_NOT_DONE)
		return later(s, now);
	if (rc != VIP_SUCCESS) {
		give_up(s, why_not(rc));
		return now;
	}
	m.hello.ring = (uintptr_t)l->ring;
	m.hello.words = (uintptr_t)l->words;
	m.hello.key = l->key;
	m.hello.handle = l->ring_handle;
	m.hello.ring_bytes = l->ring_bytes;
	st_lock(&s->tx_lock);
	st_link_send(s, l, &m);
	st_unlock(&s->tx_lock);
	s->deadline = now + HELLO_NS;
	atomic_store(&s->phase, ST_PHASE_HELLO);
	s->backoff = FIRST_NS;
	return now;
}

/* True: TCP is wanted, both directions are on it, and all that was written has arrived.  Takes rx and tx. */
static bool done_with_vi(struct st_stream *s)
{
	bool done;

	st_lock(&s->rx_lock);
	st_lock(&s->tx_lock);
	done = s->tx.path == ST_TX_TCP && s->rx.path == ST_RX_TCP && s->want_tcp &&
	       VipxFlush(s->link->vi, 0) == VIP_SUCCESS;
	st_unlock(&s->tx_lock);
	st_unlock(&s->rx_lock);
	return done;
}

/*
 * Shuts sending down in the kernel when the ring's end has arrived; true: that is still due.  Between two paths neither
 * is due.  Takes tx.
 */
static bool kernel_fin(struct st_stream *s)
{
	bool due;

	st_lock(&s->tx_lock);
	if (s->tx.kernel_fin_due && s->tx.pend_bytes == 0 && s->tx.held_bytes == 0 &&
	    !s->tx.fin_due &&
	    (s->link == NULL || s->tx.path == ST_TX_TCP ||
	     (s->tx.path == ST_TX_RING && VipxFlush(s->link->vi, 0) == VIP_SUCCESS))) {
		st_risk_end(s);
		st_sys_shutdown(s->fd, SHUT_WR);
		s->tx.kernel_fin_due = false;
	}
	due = s->tx.kernel_fin_due;
	st_unlock(&s->tx_lock);
	return due;
}

/* In phases HELLO and UP: one round, after which the VI may be lost, given up or given back.  When to come again. */
static uint64_t work(struct st_stream *s, uint64_t now)
{
	uint64_t due;

	if (atomic_load(&s->link->broken)) {
		lost(s);
		return now;
	}
	due = st_switch_step(s, now);
	if (atomic_load(&s->link->broken)) {
		lost(s);
		return now;
	}
	if (atomic_load(&s->phase) == ST_PHASE_HELLO &&
	    (now > s->deadline || s->want_tcp || s->closing)) {
		give_up(s, s->closing ? ST_WHY_CLOSED : s->want_tcp ? s->why : ST_WHY_VERSION);
		return now;
	}
	if (done_with_vi(s)) {
		st_drop_link(s);
		return now;
	}
	return kernel_fin(s) && due > now + FIRST_NS ? later(s, now) : due;
}

/* In phase LOST: the ring lives until it is read, and what is pending for TCP is sent; then the VI goes. */
static uint64_t after_loss(struct st_stream *s, uint64_t now)
{
	bool ring, pending, waits, ended, comes;

	st_lock(&s->rx_lock);
	if (!atomic_load(&s->closed))
		st_rx_step(s);
	st_rx_token_due(s, now);
	ring = s->rx.path == ST_RX_RING && !atomic_load(&s->closed) && !atomic_load(&s->dead);
	ended = peer_ended(s);
	comes = tcp_comes(s);
	st_unlock(&s->rx_lock);
	st_lock(&s->tx_lock);
	/* A mark that may tell of lost records waits no longer than that for a program that reads nothing. */
	comes = comes && s->tx.pend_lazy && (!s->tx.at_risk || now < s->lost_at + CLOSE_NS);
	if (comes)
		s->deadline = now + MARK_LATE_NS;
	/* The other end has ended but not died: only the mark tells it of lost records. */
	if (ended ? s->tx.at_risk : now >= s->deadline)
		s->tx.pend_lazy = false;
	waits = s->tx.pend_lazy && !ended;
	st_tx_push(s);
	st_risk_check(s);
	pending = waits || (s->tx.pend_bytes > 0 && !s->tx.pend_lazy) || s->tx.held_bytes > 0;
	st_unlock(&s->tx_lock);
	pending = kernel_fin(s) || pending;
	if (pending && (ring || !atomic_load(&s->dead)))
		return comes ? now + MARK_NS : later(s, now);
	if (ring)
		return now + 500000000u;
	st_drop_link(s);
	return now;
}

/* ---- the end ------------------------------------------------------------------------------------------------- */

/*
 * Ends a closed stream: its copy of the socket, without SO_LINGER's reset if `all` was delivered, and its VI.  Returns
 * ST_NEVER.
 */
static uint64_t finish(struct st_stream *s, bool all)
{
	int fd = s->closing_fd;

	st_lock(&s->tx_lock);
	if (all)
		st_risk_end(s);
	s->closing_fd = s->fd = -1;
	st_unlock(&s->tx_lock);
	if (fd >= 0)
		st_sys_close(fd);
	st_drop_link(s);
	return ST_NEVER;
}

/* Closed by the program: the other end gets all, then the VI goes. */
static uint64_t closing(struct st_stream *s, uint64_t now)
{
	int phase = atomic_load(&s->phase);
	bool pending, credit, due;

	if (s->close_deadline == 0) {
		s->close_deadline = now + CLOSE_NS;
		s->backoff = FIRST_NS;
	}
	due = now <= s->close_deadline && st_parting_step(s);
	if (due && s->flushed)
		return later(s, now);
	if (s->flushed || phase < ST_PHASE_UP || now > s->close_deadline)
		return finish(s, s->flushed);
	if (phase == ST_PHASE_UP && atomic_load(&s->link->broken)) {
		lost(s);
		return now;
	}
	st_lock(&s->rx_lock);
	if (s->rx.credit_due)
		st_rx_credit(s, 1);
	credit = s->rx.credit_due;
	st_unlock(&s->rx_lock);
	st_lock(&s->tx_lock);
	if (phase == ST_PHASE_UP) {
		VIP_RETURN rc;

		st_link_reap(s, s->link);
		/* The rest of a token, too. */
		if (s->tx.fin_due || s->tx.pend_bytes > 0)
			st_tx_push(s);
		st_link_ring(s, s->link, ST_ARM_DATA);
		rc = VipxFlush(s->link->vi, 0);
		pending = credit || s->tx.fin_due || s->tx.pend_bytes > 0 || rc != VIP_SUCCESS;
		if (rc != VIP_SUCCESS && rc != VIP_TIMEOUT)
			atomic_store(&s->link->broken, true);
	} else {
		/* A reader that still reads finds the mark before the kernel's end of the stream. */
		s->tx.pend_lazy = false;
		st_tx_push(s);
		pending = s->tx.pend_bytes > 0 || s->tx.held_bytes > 0;
	}
	st_unlock(&s->tx_lock);
	if ((pending || due) && !atomic_load(&s->dead))
		return later(s, now);
	return finish(s, !pending);
}

/* A stream that has no VI may still have something to give to the kernel. */
static uint64_t without_vi(struct st_stream *s, uint64_t now)
{
	bool pending, token;

	st_lock(&s->rx_lock);
	if (!atomic_load(&s->closed))
		st_rx_step(s);
	token = st_rx_token_due(s, now);
	st_unlock(&s->rx_lock);
	st_lock(&s->tx_lock);
	st_tx_push(s);
	st_risk_check(s);
	pending = token || s->tx.held_bytes > 0 || (s->tx.pend_bytes > 0 && !s->tx.pend_lazy);
	st_unlock(&s->tx_lock);
	pending = kernel_fin(s) || pending;
	if (!pending || atomic_load(&s->dead))
		return ST_NEVER;
	return later(s, now);
}

uint64_t st_step(struct st_stream *s, uint64_t now)
{
	st_quiet_end(s);
	st_count(&st_counts.looks, 1);
	if (s->closing)
		return closing(s, now);
	switch (atomic_load(&s->phase)) {
	case ST_PHASE_ASKED:
		return begin(s, now);
	case ST_PHASE_MATCH:
		return match(s, now);
	case ST_PHASE_HELLO:
	case ST_PHASE_UP:
		return work(s, now);
	case ST_PHASE_LOST:
		return after_loss(s, now);
	default:
		return without_vi(s, now);
	}
}
