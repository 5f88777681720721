/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Direct stores into the peer's window memory.
 *
 * The first RDMA write to a handle goes through slots, like any, and asks the peer's
 * process for a grant.  Where that memory lies in a window and is open to the VI, the
 * slice is mapped outbound, and later writes are stores: no slot, no copy but the
 * store itself, and complete when the post returns.
 *
 * Order: a write may not overtake what the VI sent before it, so it is direct only
 * when the peer has consumed every slot; slots of writes ask for credit at once.
 *
 * Rights: a grant is for a whole region, as its attributes and the VI's were when it was
 * given.  When they change the peer unmaps it before VipSetMemAttributes() returns, or loses
 * its connection.  Memory that is freed is only unmapped here: its pages are the slice's and
 * never used again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nvi.h"
#include "u_copy.h"
#include "u_log.h"
#include "u_time.h"
#include "vi_hot.h"

#define REVOKE_MS 2000u

static void tell(struct nvi_nic *nic, uint64_t conn, const struct w_grant *grant,
		 uint32_t slice_id)
{
	struct w_tell msg;

	memset(&msg, 0, sizeof(msg));
	msg.conn = conn;
	msg.slice_id = slice_id;
	msg.body_len = sizeof(*grant);
	memcpy(msg.body, grant, sizeof(*grant));
	nvi_ctl_send(nic, &msg, W_TELL, sizeof(msg));
}

static uint64_t conn_of(struct nvi_chan *ch)
{
	uint64_t conn;

	pthread_mutex_lock(&ch->nic->ctl_lock);
	conn = ch->conn;
	pthread_mutex_unlock(&ch->nic->ctl_lock);
	return conn;
}

/* ---- who writes ----------------------------------------------------------------------------- */

static struct nvi_grant *find_grant(struct nvi_chan *ch, uint32_t handle)
{
	if (u_likely(ch->grants[ch->grant_last].handle == handle &&
		     ch->grants[ch->grant_last].state != NVI_GRANT_NONE))
		return &ch->grants[ch->grant_last];
	for (uint32_t i = 0; i < ch->grant_count; i++) {
		if (ch->grants[i].handle == handle && ch->grants[i].state != NVI_GRANT_NONE) {
			ch->grant_last = i;
			return &ch->grants[i];
		}
	}
	return NULL;
}

static void release(struct nvi_chan *ch, struct nvi_grant *g)
{
	if (g->state == NVI_GRANT_HELD)
		port_unmap(ch->port, &g->map);
	memset(g, 0, sizeof(*g));
}

/* One that is free, or the one that was taken longest ago and is not awaited. */
static struct nvi_grant *free_grant(struct nvi_chan *ch)
{
	struct nvi_grant *g;

	if (ch->grant_count < NVI_GRANTS_MAX)
		return &ch->grants[ch->grant_count++];
	for (uint32_t i = 0; i < NVI_GRANTS_MAX; i++) {
		g = &ch->grants[ch->grant_next++ % NVI_GRANTS_MAX];
		if (g->state == NVI_GRANT_ASKED)
			continue;
		if (g->state == NVI_GRANT_HELD) {
			struct w_grant gone = { .kind = W_GRANT_GONE, .handle = g->handle };

			tell(ch->nic, conn_of(ch), &gone, 0);
		}
		release(ch, g);
		return g;
	}
	return NULL;
}

static U_COLD void ask(struct nvi_chan *ch, uint32_t handle)
{
	struct w_grant body = { .kind = W_GRANT_ASK, .handle = handle };
	struct nvi_grant *g = free_grant(ch);
	uint64_t conn = conn_of(ch);

	if (g == NULL || conn == 0)
		return;
	g->handle = handle;
	g->state = NVI_GRANT_ASKED;
	tell(ch->nic, conn, &body, 0);
}

/* The bytes become visible in ascending order, the last ones last. */
static int store(struct nvi_chan *ch, const struct nvi_grant *g, const struct vi_wqe *wqe,
		 uint8_t *dst)
{
	uint32_t left = wqe->length, len;
	struct vi_sg sg;
	uint8_t *src;

	if (vi_sg_init(&sg, ch->vi, wqe, VI_READ) != 0)
		return -EFAULT;
	while (left > 0) {
		if (vi_sg_next(&sg, left, &src, &len) != 0)
			return -EFAULT;
		left -= len;
		if (u_unlikely(g->map.out.ops != NULL)) {
			uint32_t tail = left == 0 ? (len < U_LINE ? len : U_LINE) : 0;

			u_out_copy(&g->map.out, dst, src, len - tail);
			u_out_fence(&g->map.out);
			u_out_copy(&g->map.out, dst + len - tail, src + len - tail, tail);
		} else if (left > 0) {
			u_copy_shared(dst, src, len);
		} else {
			u_copy_last_last(dst, src, len);
		}
		dst += len;
	}
	u_out_fence(&g->map.out);
	return 0;
}

/* Is nothing on the way that the peer has not taken? */
static bool all_taken(struct nvi_chan *ch)
{
	return atomic_load_explicit(&ch->in_ctl->credit, memory_order_acquire) == ch->tx_seq &&
	       nvi_tx_credit(ch) >= 0;
}

bool nvi_write_now(struct nvi_chan *ch)
{
	struct vi_wq *sq = &ch->vi->sq;
	struct vi_wqe *wqe = vi_wqe(sq, sq->next);
	const uint32_t plain = VIP_CONTROL_OP_MASK | VIP_CONTROL_IMMEDIATE | VIP_CONTROL_RESERVED;
	VIP_ADDRESS_SEGMENT remote;
	struct nvi_grant *g;

	if ((wqe->control & plain) != VIP_CONTROL_OP_RDMAWRITE || wqe->segs < 2 ||
	    wqe->length == 0 || sq->next + 1 != sq->tail || nvi_sq_done(sq) != sq->next ||
	    ch->tx.op != 0)
		return false;
	remote = *vi_wqe_remote(wqe);
	g = find_grant(ch, remote.Handle);
	if (u_unlikely(g == NULL)) {
		ask(ch, remote.Handle);
		return false;
	}
	if (g->state != NVI_GRANT_HELD || remote.Data.AddressBits < g->base ||
	    !u_range_ok(remote.Data.AddressBits - g->base, wqe->length, g->length) ||
	    !all_taken(ch) || vi_desc_check_send(ch->vi, wqe) != 0 ||
	    atomic_load_explicit(&ch->break_pending, memory_order_relaxed) != 0)
		return false;
	if (store(ch, g, wqe, (uint8_t *)g->map.base + (remote.Data.AddressBits - g->base)) != 0)
		return false;
	ch->vi->counters.RdmaWrites++;
	ch->vi->counters.BytesSent += wqe->length;
	wqe->mark = wqe->first = ch->tx_seq;
	sq->next++;
	nvi_complete_send(sq, sq->next - 1, 0);
	return true;
}

void nvi_grants_drop(struct nvi_chan *ch)
{
	for (uint32_t i = 0; i < ch->grant_count; i++)
		release(ch, &ch->grants[i]);
	ch->grant_count = ch->grant_next = ch->grant_last = 0;
}

/* The answer to ask(). */
static void on_give(struct nvi_chan *ch, const struct w_grant *m, uint64_t conn, int fd)
{
	struct vi_vi *vi = ch->vi;
	struct nvi_grant *g;

	u_biased_take(&vi->tx_lock);
	g = vi->chan == ch && conn_of(ch) == conn ? find_grant(ch, m->handle) : NULL;
	if (g != NULL && g->state == NVI_GRANT_ASKED) {
		g->state = NVI_GRANT_DENIED;
		if (m->kind == W_GRANT_GIVE && fd >= 0 && m->length != 0 &&
		    m->length <= SIZE_MAX / 2 && m->base <= UINT64_MAX - m->length &&
		    port_map(ch->port, fd, m->length, PORT_OUTBOUND, &g->map) == 0) {
			g->base = m->base;
			g->length = m->length;
			g->state = NVI_GRANT_HELD;
		}
	}
	u_biased_drop(&vi->tx_lock);
}

static void on_take(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_grant *m,
		    uint64_t conn)
{
	struct w_grant gone = { .kind = W_GRANT_GONE, .handle = m->handle };
	struct vi_vi *vi = ch->vi;
	struct nvi_grant *g;

	u_biased_take(&vi->tx_lock);
	g = vi->chan == ch && conn_of(ch) == conn ? find_grant(ch, m->handle) : NULL;
	/* One that was asked for and is on its way is refused when it comes. */
	if (g != NULL)
		release(ch, g);
	u_biased_drop(&vi->tx_lock);
	tell(nic, conn, &gone, 0);
}

/* ---- whose memory it is --------------------------------------------------------------------- */

/* Caller holds mem_lock, here and below. */
static struct nvi_window *find_window(struct nvi_nic *nic, uint64_t base)
{
	struct nvi_window *w = nic->windows;

	while (w != NULL && (uintptr_t)w->map.base != base)
		w = w->next;
	return w;
}

static bool give(struct nvi_window *w, struct nvi_chan *ch, uint64_t conn)
{
	struct nvi_given *given;

	for (given = w->given; given != NULL; given = given->next)
		if (given->conn == conn)
			return true;
	given = malloc(sizeof(*given));
	if (given == NULL)
		return false;
	given->ch = ch;
	given->conn = conn;
	given->next = w->given;
	w->given = given;
	return true;
}

static void on_ask(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_grant *m,
		   uint64_t conn)
{
	struct w_grant answer = { .kind = W_GRANT_DENY, .handle = m->handle };
	const struct vi_region *r;
	struct nvi_window *w = NULL;
	struct vi_vi *vi = ch->vi;

	pthread_mutex_lock(&nic->mem_lock);
	r = vi_tpt_region(&nic->vi_nic->tpt, m->handle);
	if (r != NULL && vi->rdma_write) {
		answer.base = atomic_load_explicit(&r->base, memory_order_relaxed);
		answer.length = atomic_load_explicit(&r->length, memory_order_relaxed);
		w = find_window(nic, answer.base);
	}
	if (w != NULL && !w->closed &&
	    vi_region_allows(r, vi->ptag, answer.base, answer.length, VI_REMOTE_WRITE) &&
	    vi_tpt_region(&nic->vi_nic->tpt, m->handle) == r && give(w, ch, conn))
		answer.kind = W_GRANT_GIVE;
	tell(nic, conn, &answer, answer.kind == W_GRANT_GIVE ? w->slice_id : 0);
	pthread_mutex_unlock(&nic->mem_lock);
}

static bool take_out(struct nvi_window *w, uint64_t conn)
{
	struct nvi_given **at = &w->given, *given;

	while (*at != NULL && (*at)->conn != conn)
		at = &(*at)->next;
	given = *at;
	if (given == NULL)
		return false;
	*at = given->next;
	free(given);
	return true;
}

/* The peer holds no grant of this handle any more. */
static void on_gone(struct nvi_nic *nic, const struct w_grant *m, uint64_t conn)
{
	const struct vi_region *r;
	struct nvi_window *w = NULL;

	pthread_mutex_lock(&nic->mem_lock);
	r = vi_tpt_region(&nic->vi_nic->tpt, m->handle);
	if (r != NULL)
		w = find_window(nic, atomic_load_explicit(&r->base, memory_order_relaxed));
	if (w != NULL && take_out(w, conn))
		pthread_cond_broadcast(&nic->mem_changed);
	pthread_mutex_unlock(&nic->mem_lock);
}

void nvi_given_forget(struct nvi_nic *nic, uint64_t conn)
{
	bool changed = false;

	pthread_mutex_lock(&nic->mem_lock);
	for (struct nvi_window *w = nic->windows; w != NULL; w = w->next)
		changed |= take_out(w, conn);
	if (changed)
		pthread_cond_broadcast(&nic->mem_changed);
	pthread_mutex_unlock(&nic->mem_lock);
}

/* Caller holds mem_lock. */
static void take_all(struct nvi_nic *nic, struct nvi_window *w, uint32_t handle)
{
	struct w_grant body = { .kind = W_GRANT_TAKE, .handle = handle };

	for (struct nvi_given *given = w->given; given != NULL; given = given->next)
		tell(nic, given->conn, &body, 0);
}

static void wait_gone(struct nvi_nic *nic, struct nvi_window *w)
{
	int64_t deadline = u_deadline_ms(REVOKE_MS);
	struct timespec until = { .tv_sec = deadline / 1000000000,
				  .tv_nsec = deadline % 1000000000 };

	while (w->given != NULL && pthread_cond_timedwait(&nic->mem_changed, &nic->mem_lock,
							  &until) != ETIMEDOUT)
		;
}

void nvi_window_revoke(struct vi_nic *vi_nic, void *window, uint32_t handle)
{
	struct nvi_nic *nic = vi_nic->prov;
	struct nvi_window *w = window;
	struct nvi_given *late;

	pthread_mutex_lock(&nic->mem_lock);
	w->closed = true;
	take_all(nic, w, handle);
	wait_gone(nic, w);
	while ((late = w->given) != NULL) {
		struct nvi_chan *ch = late->ch;

		u_warn("nvi", "a peer did not give back memory within %u ms; it is disconnected",
		       REVOKE_MS);
		take_out(w, late->conn);
		pthread_mutex_unlock(&nic->mem_lock);
		nvi_cm_cut(nic, ch);
		pthread_mutex_lock(&nic->mem_lock);
	}
	w->closed = false;
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
	struct nvi_window **at = &nic->windows;

	pthread_mutex_lock(&nic->mem_lock);
	while (*at != NULL && *at != w)
		at = &(*at)->next;
	if (*at == w)
		*at = w->next;
	while (w->given != NULL)
		take_out(w, w->given->conn);
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
		on_give(ch, &m, msg->conn, fd);
		break;
	case W_GRANT_TAKE:
		on_take(nic, ch, &m, msg->conn);
		break;
	case W_GRANT_GONE:
		on_gone(nic, &m, msg->conn);
		break;
	}
}
