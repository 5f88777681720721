/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Direct stores into the peer's window memory.
 *
 * The first RDMA write to a handle goes through slots, like any, and asks the peer's
 * process for a grant.  Where that memory lies in a window and is open to the VI, the
 * slice is mapped outbound, and later writes are stores: no slot, no copy but the
 * store itself, and complete when the post returns.  Where a completion has to mean that
 * the write arrived it comes with the next check, which flushes the link for all of them
 * (nvi_writes_flush()).
 *
 * Order: a write may not overtake what the VI sent before it, so it is direct only
 * when the peer has consumed every slot; slots of writes ask for credit at once.  What is
 * sent after it is published behind a fence, and not before what may be lost was flushed.
 *
 * Rights: a grant is for a whole region, as its attributes and the VI's are.  Before a call
 * that ends one of these rights returns - VipSetMemAttributes(), VipxFreeMem(), VipDisconnect() -
 * the peer has unmapped the memory, or has had its connection cut because it was too slow.
 *
 * The messages are those of struct w_grant, one connection's in order.  An agent never waits
 * for a process, so sending to it ends, also under a lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nvi.h"
#include "u_copy.h"
#include "u_log.h"
#include "u_time.h"
#include "vi_hot.h"

#define PAUSE_MAX 1024u /* writes */
#define USES_MIN 64u	/* of a mapping that was worth it */

static void fill(struct w_tell *msg, uint64_t conn, const struct w_grant *grant)
{
	memset(msg, 0, sizeof(*msg));
	msg->conn = conn;
	msg->body_len = sizeof(*grant);
	memcpy(msg->body, grant, sizeof(*grant));
}

static int tell(struct nvi_nic *nic, uint64_t conn, const struct w_grant *grant, uint32_t slice_id)
{
	struct w_tell msg;

	fill(&msg, conn, grant);
	msg.slice_id = slice_id;
	return nvi_ctl_send(nic, &msg, W_TELL, sizeof(msg));
}

static int tell_about(struct nvi_nic *nic, uint64_t conn, enum w_grant_kind kind, uint32_t handle)
{
	struct w_grant grant = { .kind = kind, .handle = handle };

	return tell(nic, conn, &grant, 0);
}

/* ---- who writes: which grants there are ------------------------------------------------------ */

static struct nvi_grant *find_grant(struct nvi_chan *ch, uint32_t handle)
{
	struct nvi_grant *g = ch->grant_last;

	if (u_likely(g->handle == handle && g->state != NVI_GRANT_NONE))
		return g;
	for (g = ch->grants; g < ch->grants + NVI_GRANTS_MAX; g++) {
		if (g->handle == handle && g->state != NVI_GRANT_NONE) {
			ch->grant_last = g;
			return g;
		}
	}
	return NULL;
}

/* What was stored has arrived when the mapping is gone. */
static void release(struct nvi_chan *ch, struct nvi_grant *g)
{
	if (g->state == NVI_GRANT_HELD) {
		port_flush(ch->port);
		port_unmap(ch->port, &g->map);
		ch->grants_held--;
	}
	memset(g, 0, sizeof(*g));
}

/* Messages that were of no use make the next one rarer. */
static void back_off(struct nvi_chan *ch)
{
	ch->grant_pause = ch->grant_pause == 0 ? 1 : ch->grant_pause * 2;
	if (ch->grant_pause > PAUSE_MAX)
		ch->grant_pause = PAUSE_MAX;
	ch->grant_skip = ch->grant_pause;
}

static void give_up(struct nvi_chan *ch, struct nvi_grant *g)
{
	uint32_t handle = g->handle;

	if (g->uses < USES_MIN)
		back_off(ch);
	else
		ch->grant_pause = 0;
	release(ch, g);
	tell_about(ch->nic, nvi_chan_conn(ch), W_GRANT_GONE, handle);
}

/* One that is free, else one that was refused, else one that is held: each kind in turn. */
static struct nvi_grant *free_grant(struct nvi_chan *ch)
{
	struct nvi_grant *best = NULL;

	for (uint32_t i = 0; i < NVI_GRANTS_MAX; i++) {
		struct nvi_grant *g = &ch->grants[ch->grant_next++ % NVI_GRANTS_MAX];

		if (g->state == NVI_GRANT_NONE)
			return g;
		if (g->state == NVI_GRANT_ASKED)
			continue;
		if (best == NULL || (best->state == NVI_GRANT_HELD && g->state == NVI_GRANT_DENIED))
			best = g;
	}
	if (best != NULL && best->state == NVI_GRANT_HELD)
		give_up(ch, best);
	else if (best != NULL)
		release(ch, best);
	return best;
}

/* Posting does not wait for the agent: what cannot be said now is said another time. */
static U_COLD void ask(struct nvi_chan *ch, uint32_t handle)
{
	struct w_grant body = { .kind = W_GRANT_ASK, .handle = handle };
	struct nvi_grant *g;
	struct w_tell msg;
	uint64_t conn;

	if (ch->hops > 1)
		return;
	if (ch->grant_skip > 0) {
		ch->grant_skip--;
		return;
	}
	conn = nvi_chan_conn(ch);
	g = conn != 0 ? free_grant(ch) : NULL;
	if (g == NULL)
		return;
	fill(&msg, conn, &body);
	if (nvi_ctl_try(ch->nic, &msg, W_TELL, sizeof(msg)) != 0) {
		back_off(ch);
		return;
	}
	g->handle = handle;
	g->state = NVI_GRANT_ASKED;
}

void nvi_grants_drop(struct nvi_chan *ch)
{
	for (uint32_t i = 0; i < NVI_GRANTS_MAX; i++)
		release(ch, &ch->grants[i]);
	ch->grant_next = ch->grant_pause = ch->grant_skip = 0;
}

/* ---- who writes: storing --------------------------------------------------------------------- */

/* As u_copy_last_last(), to a mapping that does not keep the order of stores by itself. */
static U_COLD void out_last_last(const struct u_out *out, uint8_t *dst, const uint8_t *src,
				 uint32_t n)
{
	uint32_t tail = n < U_LINE ? n : U_LINE, word;

	u_out_copy(out, dst, src, n - tail);
	dst += n - tail;
	src += n - tail;
	for (; tail > 0; tail -= word, dst += word, src += word) {
		word = ((uintptr_t)dst & 7) == 0 && tail >= 8 ? 8 : 1;
		u_out_fence(out);
		u_out_copy(out, dst, src, word);
	}
}

/* Stores a piece, behind which `left` bytes of the write follow. */
static inline void store_piece(const struct u_out *out, uint8_t *dst, const uint8_t *src,
			       uint32_t n, uint32_t left)
{
	if (u_unlikely(left >= U_LINE)) {
		if (out->ops != NULL)
			u_out_copy(out, dst, src, n);
		else
			u_copy_shared(dst, src, n);
	} else if (u_unlikely(out->ops != NULL)) {
		out_last_last(out, dst, src, n);
	} else {
		u_copy_last_last(dst, src, n);
	}
}

/* -EFAULT: the descriptor is not fit, or its memory goes away just now; slots will tell. */
static int store_segments(struct nvi_chan *ch, const struct nvi_grant *g, const struct vi_wqe *wqe,
			  uint8_t *dst)
{
	uint32_t left = wqe->length, len;
	struct vi_sg sg;
	uint8_t *src;

	if (vi_desc_check_send(ch->vi, wqe) != 0 ||
	    vi_sg_init(&sg, ch->vi, wqe, VI_READ, wqe->length) != 0)
		return -EFAULT;
	for (; left > 0; dst += len) {
		if (vi_sg_next(&sg, left, &src, &len) != 0)
			return -EFAULT;
		left -= len;
		store_piece(&g->map.out, dst, src, len, left);
	}
	return 0;
}

static inline int store(struct nvi_chan *ch, const struct nvi_grant *g, const struct vi_wqe *wqe,
			uint8_t *dst)
{
	if (u_likely(wqe->at != NULL && wqe->epoch == vi_tpt_epoch(&ch->vi->nic->tpt)))
		store_piece(&g->map.out, dst, wqe->at, wqe->length, 0);
	else if (store_segments(ch, g, wqe, dst) != 0)
		return -EFAULT;
	u_out_fence(&g->map.out);
	return 0;
}

/* Has the peer consumed whatever was sent, and is all of it complete, but for direct writes? */
static inline bool all_consumed(struct nvi_chan *ch)
{
	if (atomic_load_explicit(&ch->tx_credit, memory_order_relaxed) != ch->tx_seq &&
	    (nvi_tx_credit(ch) <= 0 ||
	     atomic_load_explicit(&ch->tx_credit, memory_order_relaxed) != ch->tx_seq))
		return false;
	return nvi_sq_done(&ch->vi->sq) + ch->tx_unflushed == ch->vi->sq.next;
}

static void count_write(struct nvi_chan *ch, uint64_t bytes)
{
	ch->vi->counters.RdmaWrites++;
	ch->vi->counters.MessagesSent++;
	ch->vi->counters.BytesSent += bytes;
}

/* The first n of those that are not flushed have arrived. */
static void complete_writes(struct nvi_chan *ch, uint32_t n)
{
	struct vi_wq *sq = &ch->vi->sq;

	for (uint32_t at = sq->next - ch->tx_unflushed; n > 0; at++, n--) {
		count_write(ch, vi_wqe(sq, at)->length);
		ch->tx_unflushed--;
		nvi_complete_send(sq, at, 0);
	}
}

/* They may have been lost with the link. */
static void writes_lost(struct nvi_chan *ch)
{
	if (ch->retx == NULL) {
		nvi_fault_tx(ch, (struct nvi_fault){ NVI_BREAK_LOST, W_ERR_NONE, 0 });
		return;
	}
	ch->vi->sq.next -= ch->tx_unflushed;
	ch->tx_unflushed = 0;
	nvi_grants_drop(ch);
}

/* What is read through a link comes behind what was stored through it. */
static bool still_stands(const struct nvi_port *p, uint32_t generation)
{
	port_flush(p->port);
	return nvi_port_generation(p) == generation;
}

bool nvi_writes_settle(struct nvi_chan *ch)
{
	if (ch->tx_unflushed == 0)
		return true;
	if (u_unlikely(!still_stands(ch->port_use, ch->generation)))
		return false;
	complete_writes(ch, ch->tx_unflushed);
	return true;
}

bool nvi_writes_flush(struct nvi_chan *ch)
{
	if (u_likely(nvi_writes_settle(ch)))
		return true;
	writes_lost(ch);
	return false;
}

int nvi_writes_check(struct nvi_chan *ch)
{
	struct nvi_port *port = ch->port_use;
	uint32_t stores = ch->tx_stores, generation = ch->generation, since;
	bool stands;

	if (u_likely(ch->tx_unflushed == 0))
		return 0;
	atomic_fetch_add_explicit(&port->users, 1, memory_order_relaxed);
	u_biased_drop(&ch->vi->tx_lock);
	stands = still_stands(port, generation);
	u_biased_take(&ch->vi->tx_lock);
	nvi_port_put(port);
	/* Meanwhile some were stored, and those before may have been flushed, or taken back. */
	since = ch->tx_stores - stores;
	if (ch->vi->chan != ch || ch->tx_unflushed <= since)
		return 0;
	if (u_likely(stands))
		complete_writes(ch, ch->tx_unflushed - since);
	else
		writes_lost(ch);
	return 1;
}

static inline enum nvi_write_method finish_write(struct nvi_chan *ch, struct vi_wqe *wqe)
{
	struct vi_wq *sq = &ch->vi->sq;

	wqe->mark = wqe->first = ch->tx_seq;
	sq->next++;
	if (ch->retx != NULL || ch->level == VIP_SERVICE_RELIABLE_RECEPTION) {
		ch->tx_unflushed++;
		ch->tx_stores++;
		atomic_store_explicit(&ch->tx_more, true, memory_order_relaxed);
		return NVI_METHOD_DONE;
	}
	count_write(ch, wqe->length);
	if (u_likely(wqe->epoch == vi_tpt_epoch(&ch->vi->nic->tpt)))
		vi_wq_complete_next(sq, wqe, VIP_STATUS_OP_RDMA_WRITE, wqe->length);
	else
		nvi_complete_send(sq, sq->next - 1, 0);
	return NVI_METHOD_DONE;
}

static inline bool covers(const struct nvi_grant *g, uint64_t addr, uint32_t n)
{
	return g->state == NVI_GRANT_HELD && addr >= g->base &&
	       u_range_ok(addr - g->base, n, g->length);
}

static inline uint8_t *target(const struct nvi_grant *g, uint64_t addr)
{
	return (uint8_t *)g->map.base + (addr - g->base);
}

bool nvi_write_now(struct vi_vi *vi, const uint8_t *at, uint32_t n, uint64_t addr, uint32_t handle)
{
	struct nvi_chan *ch = vi->chan;
	struct nvi_grant *g = find_grant(ch, handle);

	if (u_unlikely(g == NULL || !covers(g, addr, n) || n > NVI_WRITE_NOW_MAX ||
		       ch->level == VIP_SERVICE_RELIABLE_RECEPTION || ch->tx.op != 0 ||
		       !all_consumed(ch) || nvi_chan_breaks(ch)))
		return false;
	store_piece(&g->map.out, target(g, addr), at, n, 0);
	u_out_fence(&g->map.out);
	g->uses++;
	count_write(ch, n);
	return true;
}

/* The grant of a write's target; asks for one when there is none. */
static struct nvi_grant *grant_for(struct nvi_chan *ch, const VIP_ADDRESS_SEGMENT *remote,
				   uint32_t n)
{
	uint32_t handle = remote->Handle;
	struct nvi_grant *g = find_grant(ch, handle);

	if (u_unlikely(g == NULL)) {
		ask(ch, handle);
		return NULL;
	}
	/* Rights change, and a message about a connection that is just being made may be lost. */
	if (u_unlikely(g->state != NVI_GRANT_HELD) && ++g->uses == PAUSE_MAX)
		release(ch, g);
	return covers(g, remote->Data.AddressBits, n) ? g : NULL;
}

/*
 * Would the peer's next credit let a write go directly?  Not where writes alternate with short
 * sends: those would then take turns with the peer.
 */
static bool worth_waiting(const struct nvi_chan *ch, uint32_t n)
{
	return ch->tx_asked == ch->tx_seq &&
	       (n >= NVI_WRITE_WAIT ||
		(ch->write_run >= NVI_WRITE_RUN && ch->write_end == ch->tx_seq));
}

enum nvi_write_method nvi_write_queued(struct nvi_chan *ch, struct vi_wqe *wqe)
{
	const uint32_t plain = VIP_CONTROL_OP_MASK | VIP_CONTROL_IMMEDIATE | VIP_CONTROL_RESERVED;
	VIP_ADDRESS_SEGMENT remote;
	struct nvi_grant *g;

	if ((wqe->control & plain) != VIP_CONTROL_OP_RDMAWRITE || wqe->segs < 2 ||
	    wqe->length == 0 || wqe->length > NVI_WRITE_NOW_MAX || ch->tx.op != 0)
		return NVI_METHOD_SLOTS;
	remote = *vi_wqe_remote(wqe);
	g = grant_for(ch, &remote, wqe->length);
	if (g == NULL || u_unlikely(nvi_chan_breaks(ch)))
		return NVI_METHOD_SLOTS;
	if (!all_consumed(ch))
		return worth_waiting(ch, wqe->length) ? NVI_METHOD_WAIT : NVI_METHOD_SLOTS;
	if (store(ch, g, wqe, target(g, remote.Data.AddressBits)) != 0)
		return NVI_METHOD_SLOTS;
	g->uses++;
	ch->tx_direct += wqe->length;
	return finish_write(ch, wqe);
}

/* ---- who writes: what the owner says --------------------------------------------------------- */

/* Caller holds a lock of the VI. */
static bool is_live(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn)
{
	return ch->vi->chan == ch && vi_state(ch->vi) == VIP_STATE_CONNECTED &&
	       nvi_chan_is_conn(ch, nic, conn);
}

static bool hold(struct nvi_chan *ch, struct nvi_grant *g, const struct w_grant *m, int fd)
{
	if (fd < 0 || m->length == 0 || m->length > SIZE_MAX / 2 ||
	    m->base > UINT64_MAX - m->length ||
	    port_map(ch->port, fd, m->length, PORT_OUTBOUND, &g->map) != 0)
		return false;
	g->base = m->base;
	g->length = m->length;
	g->uses = 0;
	g->state = NVI_GRANT_HELD;
	ch->grants_held++;
	return true;
}

/* The answer to ask(); one that is not awaited, or cannot be used, is given back. */
static void on_give(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_grant *m,
		    uint64_t conn, int fd)
{
	struct vi_vi *vi = ch->vi;
	struct nvi_grant *g;
	bool held = false;

	u_biased_take(&vi->tx_lock);
	g = is_live(nic, ch, conn) ? find_grant(ch, m->handle) : NULL;
	if (g != NULL && g->state == NVI_GRANT_ASKED) {
		g->state = NVI_GRANT_DENIED;
		g->uses = 0;
		held = m->kind == W_GRANT_GIVE && hold(ch, g, m, fd);
		if (!held)
			back_off(ch);
	}
	u_biased_drop(&vi->tx_lock);
	if (m->kind == W_GRANT_GIVE && !held)
		tell_about(nic, conn, W_GRANT_GONE, m->handle);
}

/* Also the answer to an ask while rights are being changed: the next write asks again. */
static void on_take(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_grant *m,
		    uint64_t conn)
{
	struct vi_vi *vi = ch->vi;
	struct nvi_grant *g;

	u_biased_take(&vi->tx_lock);
	g = is_live(nic, ch, conn) ? find_grant(ch, m->handle) : NULL;
	if (g != NULL)
		release(ch, g);
	u_biased_drop(&vi->tx_lock);
	tell_about(nic, conn, W_GRANT_GONE, m->handle);
}

/* ---- whose memory it is: who was given what.  Caller holds mem_lock --------------------------- */

static struct nvi_given **bucket(struct nvi_nic *nic, uint64_t conn)
{
	return &nic->given[conn % NVI_CONN_BUCKETS];
}

/* Points to NULL when there is none. */
static struct nvi_given **find_given(struct nvi_nic *nic, uint64_t conn, uint32_t handle)
{
	struct nvi_given **at = bucket(nic, conn);

	while (*at != NULL && ((*at)->conn != conn || (*at)->handle != handle))
		at = &(*at)->next;
	return at;
}

static void end_given(struct nvi_nic *nic, struct nvi_given **at)
{
	struct nvi_given *given = *at;

	*at = given->next;
	given->window->given--;
	free(given);
	pthread_cond_broadcast(&nic->mem_changed);
}

static bool enter_given(struct nvi_nic *nic, struct nvi_window *w, struct nvi_chan *ch,
			uint64_t conn, uint32_t handle)
{
	struct nvi_given *given = malloc(sizeof(*given));

	if (given == NULL)
		return false;
	*given = (struct nvi_given){
		.next = *bucket(nic, conn), .window = w, .ch = ch, .conn = conn, .handle = handle
	};
	*bucket(nic, conn) = given;
	w->given++;
	return true;
}

static bool is_given(struct nvi_nic *nic, uint64_t conn)
{
	struct nvi_given *given = *bucket(nic, conn);

	while (given != NULL && given->conn != conn)
		given = given->next;
	return given != NULL;
}

static void forget(struct nvi_nic *nic, uint64_t conn)
{
	struct nvi_given **at = bucket(nic, conn);

	while (*at != NULL) {
		if ((*at)->conn == conn)
			end_given(nic, at);
		else
			at = &(*at)->next;
	}
}

void nvi_given_forget(struct nvi_nic *nic, uint64_t conn)
{
	pthread_mutex_lock(&nic->mem_lock);
	forget(nic, conn);
	pthread_mutex_unlock(&nic->mem_lock);
}

void nvi_given_forget_all(struct nvi_nic *nic)
{
	pthread_mutex_lock(&nic->mem_lock);
	for (unsigned int i = 0; i < NVI_CONN_BUCKETS; i++)
		while (nic->given[i] != NULL)
			end_given(nic, &nic->given[i]);
	pthread_mutex_unlock(&nic->mem_lock);
}

/* ---- whose memory it is: what the writer says ------------------------------------------------ */

/*
 * The window that the VI's peer may store into under this handle; NULL: none.  Only the
 * region of VipxAllocMem() itself is granted, so that all rights to a window change in one place.
 * While the handle is found live under the lock the window is there, and under mem_lock it stays.
 */
static struct nvi_window *open_window(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn,
				      struct w_grant *answer)
{
	struct nvi_window *w = NULL;
	const struct vi_region *r;
	struct vi_vi *vi = ch->vi;

	u_biased_take(&vi->rx_lock);
	if (is_live(nic, ch, conn) && ch->closing == 0 && vi->rdma_write) {
		r = vi_tpt_region(&nic->vi_nic->tpt, answer->handle);
		if (r != NULL && r->window != NULL) {
			answer->base = atomic_load_explicit(&r->base, memory_order_relaxed);
			answer->length = atomic_load_explicit(&r->length, memory_order_relaxed);
			if (vi_region_allows(r, vi->ptag, answer->base, answer->length,
					     VI_REMOTE_WRITE))
				w = r->window;
		}
	}
	u_biased_drop(&vi->rx_lock);
	return w;
}

static void on_ask(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_grant *m, uint64_t conn)
{
	struct w_grant answer = { .kind = W_GRANT_DENY, .handle = m->handle };
	struct nvi_window *w;

	pthread_mutex_lock(&nic->mem_lock);
	w = open_window(nic, ch, conn, &answer);
	if (w != NULL && w->closed != 0)
		answer.kind = W_GRANT_TAKE;
	else if (w != NULL && *find_given(nic, conn, m->handle) == NULL &&
		 enter_given(nic, w, ch, conn, m->handle))
		answer.kind = W_GRANT_GIVE;
	if (answer.kind != W_GRANT_GIVE)
		answer.base = answer.length = 0;
	if (tell(nic, conn, &answer, answer.kind == W_GRANT_GIVE ? w->slice_id : 0) != 0)
		forget(nic, conn);
	pthread_mutex_unlock(&nic->mem_lock);
}

static void on_gone(struct nvi_nic *nic, const struct w_grant *m, uint64_t conn)
{
	struct nvi_given **at;

	pthread_mutex_lock(&nic->mem_lock);
	at = find_given(nic, conn, m->handle);
	if (*at != NULL)
		end_given(nic, at);
	pthread_mutex_unlock(&nic->mem_lock);
}

void nvi_grant_told(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_tell *msg, int fd)
{
	struct w_grant m;

	if (msg->body_len != sizeof(m))
		return;
	memcpy(&m, msg->body, sizeof(m));
	switch (m.kind) {
	case W_GRANT_ASK:
		on_ask(nic, ch, &m, msg->conn);
		break;
	case W_GRANT_GIVE:
	case W_GRANT_DENY:
		on_give(nic, ch, &m, msg->conn, fd);
		break;
	case W_GRANT_TAKE:
		on_take(nic, ch, &m, msg->conn);
		break;
	case W_GRANT_GONE:
		on_gone(nic, &m, msg->conn);
		break;
	}
}

/* ---- whose memory it is: taking it back ------------------------------------------------------ */

static struct timespec revoke_end(const struct nvi_nic *nic)
{
	int64_t end = u_deadline_ms(nic->revoke_ms);

	return (struct timespec){ .tv_sec = end / 1000000000, .tv_nsec = end % 1000000000 };
}

/*
 * Writers look at the report before each store: one that was stopped, and goes on, ends the
 * store it was in and makes no other.
 */
static void break_off(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn)
{
	u_log_ratelimited(&nic->held, "a peer did not give back memory within %u ms; it is cut off",
			  nic->revoke_ms);
	vi_lock_both(ch->vi);
	if (is_live(nic, ch, conn))
		nvi_chan_break(ch, (struct nvi_fault){ NVI_BREAK_LOCAL, W_ERR_SENDER, 0 });
	vi_unlock_both(ch->vi);
}

void nvi_given_begin_end(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t *conn_out)
{
	struct timespec end = revoke_end(nic);
	uint64_t conn;

	pthread_mutex_lock(&nic->mem_lock);
	ch->closing++;
	conn = nvi_chan_conn(ch);
	for (struct nvi_given *given = *bucket(nic, conn); given != NULL; given = given->next)
		if (given->conn == conn)
			tell_about(nic, conn, W_GRANT_TAKE, given->handle);
	while (is_given(nic, conn) &&
	       pthread_cond_timedwait(&nic->mem_changed, &nic->mem_lock, &end) != ETIMEDOUT)
		;
	if (is_given(nic, conn))
		break_off(nic, ch, conn);
	pthread_mutex_unlock(&nic->mem_lock);
	*conn_out = conn;
}

void nvi_given_end(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn)
{
	pthread_mutex_lock(&nic->mem_lock);
	ch->closing--;
	forget(nic, conn);
	pthread_mutex_unlock(&nic->mem_lock);
}

/* One connection that has the window, or NULL. */
static struct nvi_given **find_holder(struct nvi_nic *nic, const struct nvi_window *w)
{
	for (unsigned int i = 0; i < NVI_CONN_BUCKETS && w->given != 0; i++)
		for (struct nvi_given **at = &nic->given[i]; *at != NULL; at = &(*at)->next)
			if ((*at)->window == w)
				return at;
	return NULL;
}

static void take_window(struct nvi_nic *nic, const struct nvi_window *w)
{
	for (unsigned int i = 0; i < NVI_CONN_BUCKETS && w->given != 0; i++)
		for (struct nvi_given *given = nic->given[i]; given != NULL; given = given->next)
			if (given->window == w)
				tell_about(nic, given->conn, W_GRANT_TAKE, given->handle);
}

static void cut_holders(struct nvi_nic *nic, const struct nvi_window *w)
{
	struct nvi_given **at;

	while ((at = find_holder(nic, w)) != NULL) {
		struct nvi_chan *ch = (*at)->ch;
		uint64_t conn = (*at)->conn;

		end_given(nic, at);
		break_off(nic, ch, conn);
		pthread_mutex_unlock(&nic->mem_lock);
		nvi_cm_cut(nic, ch, conn);
		pthread_mutex_lock(&nic->mem_lock);
	}
}

static struct nvi_window **find_window(struct nvi_nic *nic, const void *window)
{
	struct nvi_window **at = &nic->windows;

	while (*at != NULL && *at != window)
		at = &(*at)->next;
	return at;
}

void nvi_window_revoke(struct vi_nic *vi_nic, void *window)
{
	struct nvi_nic *nic = vi_nic->prov;
	struct timespec end = revoke_end(nic);
	struct nvi_window *w;

	pthread_mutex_lock(&nic->mem_lock);
	w = *find_window(nic, window);
	if (w != NULL) {
		w->closed++;
		take_window(nic, w);
		while (w->given != 0 &&
		       pthread_cond_timedwait(&nic->mem_changed, &nic->mem_lock, &end) != ETIMEDOUT)
			;
		cut_holders(nic, w);
		w->closed--;
		pthread_cond_broadcast(&nic->mem_changed);
	}
	pthread_mutex_unlock(&nic->mem_lock);
}

void nvi_window_enter(struct nvi_nic *nic, struct nvi_window *w)
{
	pthread_mutex_lock(&nic->mem_lock);
	w->next = nic->windows;
	nic->windows = w;
	pthread_mutex_unlock(&nic->mem_lock);
}

void nvi_window_leave(struct nvi_nic *nic, struct nvi_window *w)
{
	struct nvi_window **at;

	pthread_mutex_lock(&nic->mem_lock);
	while (w->closed != 0)
		pthread_cond_wait(&nic->mem_changed, &nic->mem_lock);
	at = find_window(nic, w);
	if (*at != NULL)
		*at = w->next;
	pthread_mutex_unlock(&nic->mem_lock);
}
