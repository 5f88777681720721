/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The switch of a direction from TCP to the ring, as in tests/model/sock_switch.pml, and the request to go back.
 */
#include <errno.h>
#include <string.h>

#include "st_quiet.h"
#include "st_risk.h"
#include "st_switch.h"

#define ANSWER_NS 1000000000u  /* an answer takes longer: the VI is given up */
#define DEFER_NS 500000000u    /* a reader that has much to read on TCP says NO after this, */
#define STALL_NS 10000000u     /* or when it has not read for so long */
#define ASK_AGAIN_NS 20000000u /* after NO; after each further one twice as long, up to */
#define ASK_LATEST_NS 10000000000u

/* Marks the VI as broken, for that reason; the round ends with its loss. */
static void bad_peer(struct st_stream *s, enum st_why why)
{
	s->why = why;
	atomic_store(&s->link->broken, true);
}

/* A message of that kind, the rest 0. */
static struct st_message message(enum st_message_kind kind)
{
	return (struct st_message){ .magic = ST_WIRE_MAGIC,
				    .version = ST_WIRE_VERSION,
				    .kind = (uint8_t)kind };
}

/*
 * Before a switch of this direction: 0, also where the kernel does not count; -EAGAIN: look again.  -EPERM, and the VI
 * is left: another process has used it, so the ends count its bytes differently, and would take the token for data.
 */
static int used_alone(struct st_stream *s, bool sending)
{
	uint64_t given, taken;
	int rc = st_sys_moved(s->fd, s->origin.role == ST_CONNECTOR, &given, &taken);

	if (rc != 0)
		return rc == -EAGAIN ? rc : 0;
	if (sending ? given == s->tx.given : taken == s->rx.taken)
		return 0;
	s->why = ST_WHY_FORK;
	s->want_tcp = true;
	return -EPERM;
}

/* ---- the sender's side --------------------------------------------------------------------------------------- */

/* Under tx, on TCP: sends SWITCH unless something is against it; bytes wait from then on. */
static void ask(struct st_stream *s, uint64_t now)
{
	struct st_message m = message(ST_MSG_SWITCH);

	if (s->tx.path != ST_TX_TCP || s->want_tcp || atomic_load(&s->closed) || s->tx.fin ||
	    s->tx.pend_bytes > 0 || s->tx.held_bytes > 0 || now < s->tx.next_ask ||
	    atomic_load(&s->dead) || used_alone(s, true) != 0)
		return;
	s->tx.token = (struct st_token){ { st_random64(), st_random64() } };
	m.change.count = s->tx.tcp_bytes;
	m.change.half = s->tx.token.half[0];
	if (st_link_send(s, s->link, &m) != 0)
		return;
	s->tx.path = ST_TX_ASKED;
	s->tx.asked_since = now;
}

/* Takes YES: the token goes to TCP; or NO: sending on TCP goes on, and SWITCH is repeated later. */
static void take_answer(struct st_stream *s, bool yes, uint64_t now)
{
	if (s->tx.path != ST_TX_ASKED) {
		bad_peer(s, ST_WHY_VERSION);
		return;
	}
	if (!yes) {
		s->tx.path = ST_TX_TCP;
		s->tx.ask_after = s->tx.ask_after == 0 ? ASK_AGAIN_NS : 2 * s->tx.ask_after;
		if (s->tx.ask_after > ASK_LATEST_NS)
			s->tx.ask_after = ASK_LATEST_NS;
		s->tx.next_ask = now + s->tx.ask_after;
		s->tx.edges++;
		return;
	}
	s->tx.ask_after = 0;
	memcpy(s->tx.pend, &s->tx.token, ST_TOKEN_BYTES);
	s->tx.pend_bytes = ST_TOKEN_BYTES;
	s->tx.path = ST_TX_PROVING;
	s->tx.asked_since = now;
	s->tx.position = s->tx.acked = s->tx.bytes = s->tx.acked_bytes = 0;
	st_tx_push(s);
}

/* Takes the proof that the other end has read the token: sending goes over the ring; a wrong one resets. */
static void take_proof(struct st_stream *s, const struct st_message *m)
{
	if (s->tx.path != ST_TX_PROVING) {
		bad_peer(s, ST_WHY_VERSION);
		return;
	}
	if (m->change.half != s->tx.token.half[1]) {
		/* The token went to another process than that of the VI, and into its data. */
		bad_peer(s, ST_WHY_TOKEN);
		st_reset(s);
		return;
	}
	s->tx.path = ST_TX_RING;
	s->tx.edges++;
	/* The program has shut the direction down during the switch. */
	if (s->tx.fin)
		st_tx_end(s);
	if (!s->want_tcp)
		s->why = ST_WHY_NONE;
	st_count(&st_counts.promotions, 1);
}

/* ---- the reader's side --------------------------------------------------------------------------------------- */

/* Under tx: sends YES or NO: 0, -EAGAIN: no slot is free, -EPIPE: broken. */
static int answer(struct st_stream *s, enum st_message_kind kind)
{
	struct st_message m = message(kind);

	return st_link_send(s, s->link, &m);
}

/*
 * Under rx and tx: answers a SWITCH that has come, now or in a later round; after YES the reader waits for the token.
 * The other end keeps its bytes back until it has the answer, so the unread bytes on TCP get fewer as the program
 * reads: the answer is given when the stash holds the rest, when that takes long, or when it does not read.  It is NO
 * once st_close() has begun, which may have found that no token is to come: one would reset the closed connection.
 */
static void answer_switch(struct st_stream *s, uint64_t now)
{
	bool agreed;
	int rc;

	if (!s->rx.asked)
		return;
	agreed = s->rx.path == ST_RX_TCP && !s->want_tcp && !atomic_load(&s->closed) &&
		 s->rx.until >= s->rx.tcp_bytes;
	if (s->rx.asked_at != s->rx.tcp_bytes) {
		s->rx.asked_at = s->rx.tcp_bytes;
		s->rx.moved_since = now;
	}
	if (agreed && s->rx.until - s->rx.tcp_bytes > ST_STASH_MOST) {
		if (now - s->rx.asked_since < DEFER_NS && now - s->rx.moved_since < STALL_NS)
			return;
		agreed = false;
	}
	if (agreed) {
		rc = used_alone(s, false);
		if (rc == -EAGAIN)
			return;
		agreed = rc == 0;
	}
	if (answer(s, agreed ? ST_MSG_YES : ST_MSG_NO) != 0)
		return;
	s->rx.asked = false;
	if (agreed) {
		s->rx.token_have = 0;
		/* For the mark that follows the token, should the VI be lost before it comes. */
		s->rx.ring_key = s->link->key;
		s->rx.ring_position = 0;
		s->rx.path = ST_RX_TOKEN;
	}
}

/* Takes SWITCH, to be answered by answer_switch(); NO at once where the reader is not on TCP. */
static void take_switch(struct st_stream *s, const struct st_message *m, uint64_t now)
{
	if (s->rx.asked) {
		bad_peer(s, ST_WHY_VERSION);
		return;
	}
	if (s->rx.path != ST_RX_TCP) {
		if (answer(s, ST_MSG_NO) != 0)
			bad_peer(s, ST_WHY_LOST);
		return;
	}
	s->rx.until = m->change.count;
	s->rx.half = m->change.half;
	s->rx.asked = true;
	s->rx.asked_at = s->rx.tcp_bytes;
	s->rx.asked_since = s->rx.moved_since = now;
	answer_switch(s, now);
}

/* Takes the greeting, which says where the other end's ring is: phase UP. */
static void take_hello(struct st_stream *s, const struct st_message *m)
{
	struct st_link *l = s->link;

	if (atomic_load(&s->phase) != ST_PHASE_HELLO) {
		bad_peer(s, ST_WHY_VERSION);
		return;
	}
	l->peer.ring = m->hello.ring;
	l->peer.words = m->hello.words;
	l->peer.key = m->hello.key;
	l->peer.handle = m->hello.handle;
	l->peer.ring_bytes = m->hello.ring_bytes;
	atomic_store(&s->phase, ST_PHASE_UP);
}

/* Checks a message and acts on it; the VI is broken after one that is bad or comes at a wrong time. */
static void take_message(struct st_stream *s, const struct st_message *m, uint64_t now)
{
	int kind = st_message_check(m, sizeof(*m));

	if (kind < 0 || (atomic_load(&s->phase) == ST_PHASE_HELLO && kind != ST_MSG_HELLO)) {
		bad_peer(s, ST_WHY_VERSION);
		return;
	}
	switch (kind) {
	case ST_MSG_HELLO:
		take_hello(s, m);
		break;
	case ST_MSG_SWITCH:
		take_switch(s, m, now);
		break;
	case ST_MSG_YES:
	case ST_MSG_NO:
		take_answer(s, kind == ST_MSG_YES, now);
		break;
	case ST_MSG_PROOF:
		take_proof(s, m);
		break;
	case ST_MSG_BACK:
		if (!s->want_tcp)
			s->why = ST_WHY_PEER;
		s->want_tcp = true;
		s->asked_back = true;
		break;
	}
}

/* Under rx and tx: moves packets, and acts on all messages that have come, up to a bad one. */
static void take_messages(struct st_stream *s, uint64_t now)
{
	struct st_link *l = s->link;
	struct st_message all[ST_RECVS];
	uint32_t n;

	st_link_progress(s, l);
	st_lock(&l->inbox_lock);
	n = l->inbox_count;
	memcpy(all, l->inbox, n * sizeof(all[0]));
	l->inbox_count = 0;
	st_unlock(&l->inbox_lock);
	for (uint32_t i = 0; i < n && !atomic_load(&l->broken); i++)
		take_message(s, &all[i], now);
}

/* Under tx: sends the proof if it is due; where no slot is free it stays due. */
static void prove(struct st_stream *s)
{
	struct st_message m = message(ST_MSG_PROOF);

	if (!s->rx.proof_due)
		return;
	m.change.half = s->rx.half;
	if (st_link_send(s, s->link, &m) == 0)
		s->rx.proof_due = false;
}

/* ---- back to TCP --------------------------------------------------------------------------------------------- */

/* Under tx: leaves the ring for TCP, if a record finds room, and asks the other end, once, to go back too. */
static void go_back(struct st_stream *s)
{
	struct st_message m = message(ST_MSG_BACK);

	/* The mark would reach a closed socket, and the VI ends by itself. */
	if (st_link_peer_closed(s->link))
		return;
	if (s->tx.path == ST_TX_RING && !s->tx.fin && st_tx_release(s) == 0 &&
	    st_link_record(s, s->link, ST_REC_BACK, NULL, 0, 0) == 0) {
		st_link_ring(s, s->link, ST_ARM_DATA);
		st_tx_leave(s, false);
		st_count(&st_counts.demotions[atomic_load(&s->why)], 1);
	}
	if (!s->asked_back && st_link_send(s, s->link, &m) == 0)
		s->asked_back = true;
}

/* ---- a round ------------------------------------------------------------------------------------------------- */

/*
 * Under rx and tx: rings again.  A record or credit that had to wait for a slot may have left after the arm words were
 * looked at.  Records and credit that had left by the last look need no wake: a sleeper that armed since then has found
 * them.
 */
static void ring_late(struct st_stream *s, struct st_link *l)
{
	bool all_left = st_link_settled(l);

	if (!l->unrung && l->rung_position == s->tx.position && l->rung_credit == s->rx.told)
		return;
	l->unrung = false;
	st_link_ring(s, l, ST_ARM_DATA);
	st_link_ring(s, l, ST_ARM_ROOM);
	if (all_left) {
		l->rung_position = s->tx.position;
		l->rung_credit = s->rx.told;
	}
}

/*
 * Under rx and tx: does the work that is late: completions, rings, bytes that wait for TCP, and whether some are still
 * at risk.
 */
static void settle(struct st_stream *s)
{
	struct st_link *l = s->link;

	st_link_reap(s, l);
	if (l->peer.ring_bytes != 0)
		ring_late(s, l);
	if (s->tx.path == ST_TX_TCP || s->tx.path == ST_TX_PROVING)
		st_tx_push(s);
	st_risk_check(s);
}

/*
 * Under rx and tx: nothing has moved since the last look, and nothing is left to do.  Notes the positions for the next.
 */
static bool is_quiet(struct st_stream *s)
{
	struct st_link *l = s->link;
	bool same = s->seen_sent == s->tx.position && s->seen_read == s->rx.position;

	s->seen_sent = s->tx.position;
	s->seen_read = s->rx.position;
	return same && !l->unrung && l->rung_position == s->tx.position &&
	       l->rung_credit == s->rx.told && s->rx.path == ST_RX_RING && s->tx.held_bytes == 0 &&
	       !s->tx.at_risk && !s->tx.kernel_fin_due && !atomic_load(&l->broken);
}

/* When to come again; ST_NEVER: the stream has become quiet. */
static uint64_t next_round(struct st_stream *s, uint64_t now)
{
	bool moving = s->tx.path == ST_TX_ASKED || s->tx.path == ST_TX_PROVING ||
		      s->rx.path == ST_RX_TOKEN || s->rx.path == ST_RX_MARK || s->rx.asked ||
		      s->rx.proof_due || s->rx.credit_due || s->tx.fin_due ||
		      s->tx.pend_bytes > 0 || s->want_tcp || !st_link_settled(s->link) ||
		      atomic_load(&s->phase) == ST_PHASE_HELLO;

	if (!moving && s->tx.path == ST_TX_TCP && !s->tx.fin)
		return s->tx.next_ask > now ? s->tx.next_ask : now + ASK_AGAIN_NS;
	if (moving)
		return now + s->backoff;
	return is_quiet(s) && st_quiet_begin(s) ? ST_NEVER : st_next_idle(now);
}

uint64_t st_switch_step(struct st_stream *s, uint64_t now)
{
	enum st_tx_path tx;
	enum st_rx_path rx;
	uint64_t due;

	st_lock(&s->rx_lock);
	st_lock(&s->tx_lock);
	tx = s->tx.path;
	rx = s->rx.path;
	take_messages(s, now);
	if (!atomic_load(&s->link->broken))
		answer_switch(s, now);
	settle(s);
	st_rx_token_due(s, now);
	st_unlock(&s->tx_lock);
	st_rx_step(s);
	if (s->rx.credit_due && s->rx.path == ST_RX_RING)
		st_rx_credit(s, 1);
	st_lock(&s->tx_lock);
	if (!atomic_load(&s->link->broken) && atomic_load(&s->phase) == ST_PHASE_UP) {
		prove(s);
		if (s->want_tcp)
			go_back(s);
		else
			ask(s, now);
		if ((s->tx.path == ST_TX_ASKED || s->tx.path == ST_TX_PROVING) &&
		    now - s->tx.asked_since > ANSWER_NS)
			bad_peer(s, ST_WHY_LOST);
	}
	if (s->tx.fin_due || (s->tx.held_bytes > 0 && now >= s->tx.held_since + 200000000u))
		st_tx_push(s);
	if (tx != s->tx.path || rx != s->rx.path)
		s->backoff = 20000;
	due = next_round(s, now);
	if (s->tx.held_bytes > 0 && due > s->tx.held_since + 200000000u)
		due = s->tx.held_since + 200000000u > now ? s->tx.held_since + 200000000u
							  : now + 1000000;
	st_unlock(&s->tx_lock);
	st_unlock(&s->rx_lock);
	s->backoff = s->backoff < 4000000 ? s->backoff * 2 : 8000000;
	if (tx != s->tx.path || rx != s->rx.path)
		st_kick_all(s);
	return due;
}
