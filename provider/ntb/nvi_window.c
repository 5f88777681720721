/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner's side of grants (nvi_grant.c): giving window memory to peers, and taking it back
 * before a right to it ends.
 */
#include <errno.h>

#include "nvi_break.h"
#include "nvi_cut.h"
#include "nvi_grant.h"
#include "nvi_remote.h"
#include "nvi_window.h"
#include "u_log.h"
#include "u_time.h"

/* ---- messages of the writer ------------------------------------------------------------------ */

/* Do the VI's attributes allow what its peer asked for?  From a mapping the peer may also load. */
static bool vi_allows(const struct nvi_chan *ch, uint64_t map)
{
	return ch->vi->rdma_write && (map == 0 || (ch->hops == 0 && ch->vi->rdma_read));
}

/*
 * Returns the window into which the VI's peer may store under answer->handle, whose place it writes into `answer`;
 * NULL: none.  *reason_out is set only if the rights allow it.  Takes rx_lock.  Only the region of VipxAllocMem()
 * itself is granted, so that all rights to a window change in one place.  A handle that is found under the lock of the
 * VI still has its window, and mem_lock keeps the window.
 */
static struct nvi_window *open_window(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn,
				      struct w_grant *answer, enum w_deny *reason_out)
{
	uint32_t rights = answer->map != 0 ? VI_REMOTE_WRITE | VI_REMOTE_READ : VI_REMOTE_WRITE;
	struct nvi_window *w = NULL;
	const struct vi_region *r;
	struct vi_vi *vi = ch->vi;

	u_biased_take(&vi->rx_lock);
	if (nvi_chan_is_live(nic, ch, conn) && ch->closing == 0 && vi_allows(ch, answer->map)) {
		r = vi_tpt_region(&nic->vi_nic->tpt, answer->handle);
		if (r != NULL) {
			answer->base = atomic_load_explicit(&r->base, memory_order_relaxed);
			answer->length = atomic_load_explicit(&r->length, memory_order_relaxed);
			if (vi_region_allows(r, vi->ptag, answer->base, answer->length, rights)) {
				w = r->window;
				*reason_out = W_DENY_NO_WINDOW;
			}
		}
	}
	u_biased_drop(&vi->rx_lock);
	return w;
}

/*
 * Chooses the answer, and enters what it gives.  The window is given once to a connection for direct stores, and once
 * for each mapping.  A peer asks for a mapping again if an answer does not come; then the answer is repeated.  Caller
 * holds mem_lock.
 */
static enum w_grant_kind answer_for(struct nvi_nic *nic, struct nvi_window *w, struct nvi_chan *ch,
				    const struct w_grant *m, uint64_t conn, enum w_deny *reason_out)
{
	if (w->closed != 0)
		return W_GRANT_TAKE;
	if (*nvi_given_find(nic, conn, m->handle, m->map) != NULL)
		return m->map != 0 ? W_GRANT_GIVE : W_GRANT_DENY;
	*reason_out = W_DENY_NO_ROOM;
	if (m->map != 0 && nvi_given_maps(nic, conn) >= NVI_REMOTES_MAX)
		return W_GRANT_DENY;
	return nvi_given_enter(nic, w, ch, conn, m->handle, m->map) ? W_GRANT_GIVE : W_GRANT_DENY;
}

/* Answers a request for a grant or a mapping: gives, denies or, while rights change, says TAKE.  Takes mem_lock. */
static void on_ask(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_grant *m, uint64_t conn)
{
	struct w_grant answer = { .kind = W_GRANT_DENY, .handle = m->handle, .map = m->map };
	enum w_deny reason = W_DENY_RIGHTS;
	struct nvi_window *w;

	pthread_mutex_lock(&nic->mem_lock);
	w = open_window(nic, ch, conn, &answer, &reason);
	if (w != NULL)
		answer.kind = answer_for(nic, w, ch, m, conn, &reason);
	if (answer.kind != W_GRANT_GIVE) {
		answer.base = m->map != 0 ? reason : 0;
		answer.length = 0;
	}
	if (nvi_grant_tell(nic, conn, &answer, answer.kind == W_GRANT_GIVE ? w->slice_id : 0) != 0)
		nvi_given_remove_all_of(nic, conn);
	pthread_mutex_unlock(&nic->mem_lock);
}

/* The other end has returned a grant or a mapping: removes the entry.  Takes mem_lock. */
static void on_gone(struct nvi_nic *nic, const struct w_grant *m, uint64_t conn)
{
	struct nvi_given **at;

	pthread_mutex_lock(&nic->mem_lock);
	at = nvi_given_find(nic, conn, m->handle, m->map);
	if (*at != NULL)
		nvi_given_remove(nic, at);
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
		if (m.map != 0)
			nvi_remote_on_give(nic, ch, &m, msg->conn, fd);
		else
			nvi_grant_on_give(nic, ch, &m, msg->conn, fd);
		break;
	case W_GRANT_TAKE:
		if (m.map != 0)
			nvi_remote_on_take(nic, ch, &m, msg->conn);
		else
			nvi_grant_on_take(nic, ch, &m, msg->conn);
		break;
	case W_GRANT_GONE:
		on_gone(nic, &m, msg->conn);
		break;
	}
}

/* ---- a connection ends ----------------------------------------------------------------------- */

/* Returns the time until which peers may return memory, on the monotonic clock. */
static struct timespec revoke_end(const struct nvi_nic *nic)
{
	int64_t end = u_deadline_ms(nic->revoke_ms);

	return (struct timespec){ .tv_sec = end / 1000000000, .tv_nsec = end % 1000000000 };
}

/*
 * Breaks the connection of a peer that has not returned memory in time.  A correct peer checks for
 * the error report before each store, so even a process that was stopped makes at most one more.  Does nothing if the
 * channel does not carry `conn` any more.  Takes both locks of the VI.
 */
static void break_off(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn)
{
	u_log_ratelimited(&nic->held, "a peer did not give back memory within %u ms; it is cut off",
			  nic->revoke_ms);
	vi_lock_both(ch->vi);
	if (nvi_chan_is_live(nic, ch, conn))
		nvi_chan_break(ch, (struct nvi_fault){ NVI_BREAK_LOCAL, W_ERR_SENDER, 0, 0 });
	vi_unlock_both(ch->vi);
}

/* Does the other end of `conn` still have anything of this process's memory? */
static bool is_given(struct nvi_nic *nic, uint64_t conn)
{
	struct nvi_given *given = *nvi_given_bucket(nic, conn);

	while (given != NULL && given->conn != conn)
		given = given->next;
	return given != NULL;
}

void nvi_revoke_conn_begin(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t *conn_out)
{
	struct timespec end = revoke_end(nic);
	uint64_t conn;

	pthread_mutex_lock(&nic->mem_lock);
	ch->closing++;
	conn = nvi_chan_conn(ch);
	for (struct nvi_given *given = *nvi_given_bucket(nic, conn); given != NULL;
	     given = given->next)
		if (given->conn == conn)
			nvi_grant_tell_about(nic, conn, W_GRANT_TAKE, given->handle, given->map);
	while (is_given(nic, conn) &&
	       pthread_cond_timedwait(&nic->mem_changed, &nic->mem_lock, &end) != ETIMEDOUT)
		;
	if (is_given(nic, conn))
		break_off(nic, ch, conn);
	pthread_mutex_unlock(&nic->mem_lock);
	*conn_out = conn;
}

void nvi_revoke_conn_end(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn)
{
	pthread_mutex_lock(&nic->mem_lock);
	ch->closing--;
	nvi_given_remove_all_of(nic, conn);
	pthread_mutex_unlock(&nic->mem_lock);
}

/* ---- a window is taken back ------------------------------------------------------------------ */

/* Returns the place of the entry of one connection that has the window, or NULL. */
static struct nvi_given **find_holder(struct nvi_nic *nic, const struct nvi_window *w)
{
	for (unsigned int i = 0; i < NVI_CONN_BUCKETS && w->given != 0; i++)
		for (struct nvi_given **at = &nic->given[i]; *at != NULL; at = &(*at)->next)
			if ((*at)->window == w)
				return at;
	return NULL;
}

/* Asks every connection that has the window to return it; does not wait. */
static void take_window(struct nvi_nic *nic, const struct nvi_window *w)
{
	for (unsigned int i = 0; i < NVI_CONN_BUCKETS && w->given != 0; i++)
		for (struct nvi_given *given = nic->given[i]; given != NULL; given = given->next)
			if (given->window == w)
				nvi_grant_tell_about(nic, given->conn, W_GRANT_TAKE, given->handle,
						     given->map);
}

/* Cuts the connections that still have the window.  Caller holds mem_lock, which is dropped meanwhile. */
static void cut_holders(struct nvi_nic *nic, const struct nvi_window *w)
{
	struct nvi_given **at;

	while ((at = find_holder(nic, w)) != NULL) {
		struct nvi_chan *ch = (*at)->ch;
		uint64_t conn = (*at)->conn;

		nvi_given_remove(nic, at);
		break_off(nic, ch, conn);
		pthread_mutex_unlock(&nic->mem_lock);
		nvi_cut(nic, ch, conn);
		pthread_mutex_lock(&nic->mem_lock);
	}
}

/* Returns the place of the window in the list, which holds NULL if it is not there. */
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
