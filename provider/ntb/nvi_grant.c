/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The writer's side of grants.  The first RDMA write to a handle goes through slots, like any
 * other, and asks the peer's process for a grant.  If that memory lies in a window and the VI may
 * write to it, the slice is mapped outbound, and later writes are stores (nvi_write.c).
 *
 * Rights: a grant is for an entire region, as its attributes and those of the VI are.  Before a
 * call that ends one of these rights returns - VipSetMemAttributes(), VipxFreeMem(),
 * VipDisconnect() - the peer has unmapped the memory, or has had its connection cut because it was
 * too slow.
 *
 * The messages are those of struct w_grant; those of one connection stay in order.  An agent never
 * waits for a process, so sending to it ends even if a lock is held.
 */
#include <string.h>

#include "nvi_grant.h"
#include "nvi_req.h"

/*
 * The most writes that do not ask after a refusal, and the number of writes after which an
 * unanswered request is forgotten.
 */
#define PAUSE_MAX 1024u
/* With at least so many direct writes a mapping was worth its messages. */
#define USES_MIN 64u

/* Makes the message of a grant for the other end of `conn`, without header and slice. */
static void fill(struct w_tell *msg, uint64_t conn, const struct w_grant *grant)
{
	memset(msg, 0, sizeof(*msg));
	msg->conn = conn;
	msg->body_len = sizeof(*grant);
	memcpy(msg->body, grant, sizeof(*grant));
}

int nvi_grant_tell(struct nvi_nic *nic, uint64_t conn, const struct w_grant *grant,
		   uint32_t slice_id)
{
	struct w_tell msg;

	fill(&msg, conn, grant);
	msg.slice_id = slice_id;
	return nvi_ctl_send(nic, &msg, W_TELL, sizeof(msg));
}

int nvi_grant_tell_about(struct nvi_nic *nic, uint64_t conn, enum w_grant_kind kind,
			 uint32_t handle, uint64_t map)
{
	struct w_grant grant = { .kind = kind, .handle = handle, .map = map };

	return nvi_grant_tell(nic, conn, &grant, 0);
}

/* ---- the table of grants --------------------------------------------------------------------- */

/*
 * Frees the entry, and unmaps its memory if it is held: everything that was stored through the mapping has arrived
 * before.  Tells the owner nothing.
 */
static void release(struct nvi_chan *ch, struct nvi_grant *g)
{
	if (g->state == NVI_GRANT_HELD) {
		port_flush(ch->port);
		port_unmap(ch->port, &g->map);
		ch->tx.grants_held--;
		ch->tx.direct_writes = ch->tx.wrote && ch->tx.grants_held != 0;
	}
	memset(g, 0, sizeof(*g));
}

/* A request was of no use: doubles the count of writes that do not ask. */
static void back_off(struct nvi_chan *ch)
{
	ch->tx.grant_pause = ch->tx.grant_pause == 0 ? 1 : ch->tx.grant_pause * 2;
	if (ch->tx.grant_pause > PAUSE_MAX)
		ch->tx.grant_pause = PAUSE_MAX;
	ch->tx.grant_skip = ch->tx.grant_pause;
}

/* Returns a grant, which is held, to its owner: unmaps it, frees the entry and tells the owner. */
static void give_up(struct nvi_chan *ch, struct nvi_grant *g)
{
	uint32_t handle = g->handle;

	if (g->uses < USES_MIN)
		back_off(ch);
	else
		ch->tx.grant_pause = 0;
	release(ch, g);
	nvi_grant_tell_about(ch->nic, nvi_chan_conn(ch), W_GRANT_GONE, handle, 0);
}

/*
 * Finds an entry for another region: a free one, else one that was refused, else one with a grant,
 * which is returned to the peer's process.  NULL: all wait for an answer.
 */
static struct nvi_grant *free_grant(struct nvi_chan *ch)
{
	struct nvi_grant *best = NULL;

	for (uint32_t i = 0; i < NVI_GRANTS_MAX; i++) {
		struct nvi_grant *g = &ch->tx.grants[ch->tx.grant_next++ % NVI_GRANTS_MAX];

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

/*
 * Asks the peer's process for a grant, unless the pause after a refusal lasts, for which this call counts as a write.
 * Posting does not wait for the agent: if there is no room for the message, a later write asks again.
 */
static U_COLD void ask(struct nvi_chan *ch, uint32_t handle)
{
	struct w_grant body = { .kind = W_GRANT_ASK, .handle = handle };
	struct nvi_grant *g;
	struct w_tell msg;
	uint64_t conn;

	if (ch->hops > 1 || ch->tx.unheard)
		return;
	if (ch->tx.grant_skip > 0) {
		ch->tx.grant_skip--;
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

struct nvi_grant *nvi_grant_for(struct nvi_chan *ch, const VIP_ADDRESS_SEGMENT *remote, uint32_t n)
{
	uint32_t handle = remote->Handle;
	struct nvi_grant *g = nvi_grant_find(ch, handle);

	if (u_unlikely(g == NULL)) {
		ask(ch, handle);
		return NULL;
	}
	/*
	 * A refusal, or a wait for an answer, ends after some writes: rights change, and a message
	 * about a connection that is only being made may be lost.
	 */
	if (u_unlikely(g->state != NVI_GRANT_HELD) && ++g->uses == PAUSE_MAX)
		release(ch, g);
	return nvi_grant_covers(g, remote->Data.AddressBits, n) ? g : NULL;
}

struct nvi_grant *nvi_grant_for_write(struct nvi_chan *ch, const VIP_ADDRESS_SEGMENT *remote,
				      uint32_t n)
{
	ch->tx.wrote = true;
	ch->tx.direct_writes = ch->tx.grants_held != 0;
	return nvi_grant_for(ch, remote, n);
}

void nvi_grants_drop(struct nvi_chan *ch)
{
	for (uint32_t i = 0; i < NVI_GRANTS_MAX; i++)
		release(ch, &ch->tx.grants[i]);
	ch->tx.grant_next = ch->tx.grant_pause = ch->tx.grant_skip = 0;
}

/* ---- messages of the owner ------------------------------------------------------------------- */

/*
 * Maps the memory of a grant outbound, and marks the grant as held.  False, and nothing changed: malformed, or it
 * cannot be mapped.  The descriptor stays the caller's.
 */
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
	ch->tx.grants_held++;
	ch->tx.direct_writes = ch->tx.wrote;
	return true;
}

/* Handles the answer to ask(): maps the memory; returns a grant that is not awaited or cannot be mapped. */
void nvi_grant_on_give(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_grant *m,
		       uint64_t conn, int fd)
{
	struct vi_vi *vi = ch->vi;
	struct nvi_grant *g;
	bool held = false;

	u_biased_take(&vi->tx_lock);
	g = nvi_chan_is_live(nic, ch, conn) ? nvi_grant_find(ch, m->handle) : NULL;
	if (g != NULL && g->state == NVI_GRANT_ASKED) {
		g->state = NVI_GRANT_DENIED;
		g->uses = 0;
		held = m->kind == W_GRANT_GIVE && hold(ch, g, m, fd);
		if (!held)
			back_off(ch);
	}
	u_biased_drop(&vi->tx_lock);
	if (m->kind == W_GRANT_GIVE && !held)
		nvi_grant_tell_about(nic, conn, W_GRANT_GONE, m->handle, 0);
}

/*
 * Frees the entry.  TAKE is also the answer to ask() while the owner changes rights: then the next write asks again.
 */
void nvi_grant_on_take(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_grant *m,
		       uint64_t conn)
{
	struct vi_vi *vi = ch->vi;
	struct nvi_grant *g;

	u_biased_take(&vi->tx_lock);
	g = nvi_chan_is_live(nic, ch, conn) ? nvi_grant_find(ch, m->handle) : NULL;
	if (g != NULL)
		release(ch, g);
	u_biased_drop(&vi->tx_lock);
	nvi_grant_tell_about(nic, conn, W_GRANT_GONE, m->handle, 0);
}
