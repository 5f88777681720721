/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "nvi_chan.h"

/* Returns the channel of a VI, which it keeps for ever: another thread may still read one that has closed. */
struct nvi_chan *nvi_chan_get(struct vi_vi *vi)
{
	struct nvi_chan *ch = vi->prov;

	if (ch == NULL) {
		ch = aligned_alloc(U_LINE_PAIR, sizeof(*ch));
		if (ch == NULL)
			return NULL;
		memset(ch, 0, sizeof(*ch));
		ch->vi = vi;
	}
	/* The control thread may still read the channel of a VI of this NIC that no longer exists. */
	if (ch->nic != vi->nic->prov)
		ch->nic = vi->nic->prov;
	return ch;
}

void nvi_chan_unwatch(struct nvi_chan *ch)
{
	struct vi_vi *vi = ch->vi;
	struct vi_cq *cq = NULL;

	u_biased_take(&vi->rx_lock);
	ch->rx.unwatched++;
	/*
	 * Without a connection there is no word to load, and the VI may be being destroyed: only a
	 * connection keeps it, and that only while the lock is held.
	 */
	if (vi->chan == ch && vi->rq.cq != NULL && vi_cq_unwatch(&vi->rq))
		cq = vi->rq.cq;
	u_biased_drop(&vi->rx_lock);
	/* The CQ may be destroyed by now: then no poll is under way, and its lock still exists. */
	if (cq != NULL)
		vi_cq_grace(cq);
}

/* ---- the agent's name of the connection ------------------------------------------------------ */

void nvi_chan_enter(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn)
{
	struct nvi_chan **bucket = &nic->conns[conn % NVI_CONN_BUCKETS];

	ch->id.conn = conn;
	ch->id.next = *bucket;
	*bucket = ch;
}

struct nvi_chan *nvi_chan_find(struct nvi_nic *nic, uint64_t conn)
{
	struct nvi_chan *ch;

	pthread_mutex_lock(&nic->ctl_lock);
	ch = nic->conns[conn % NVI_CONN_BUCKETS];
	while (ch != NULL && ch->id.conn != conn)
		ch = ch->id.next;
	pthread_mutex_unlock(&nic->ctl_lock);
	return ch;
}

uint64_t nvi_chan_conn(struct nvi_chan *ch)
{
	uint64_t conn;

	pthread_mutex_lock(&ch->nic->ctl_lock);
	conn = ch->id.conn;
	pthread_mutex_unlock(&ch->nic->ctl_lock);
	return conn;
}

bool nvi_chan_is_conn(struct nvi_chan *ch, struct nvi_nic *nic, uint64_t conn)
{
	bool yes;

	pthread_mutex_lock(&nic->ctl_lock);
	yes = ch->nic == nic && ch->id.conn == conn;
	pthread_mutex_unlock(&nic->ctl_lock);
	return yes;
}

bool nvi_chan_forget(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn)
{
	struct nvi_chan **at = &nic->conns[conn % NVI_CONN_BUCKETS];
	bool found;

	pthread_mutex_lock(&nic->ctl_lock);
	while (*at != NULL && *at != ch)
		at = &(*at)->id.next;
	found = conn != 0 && *at == ch && ch->id.conn == conn;
	if (found) {
		*at = ch->id.next;
		ch->id.next = NULL;
		ch->id.conn = 0;
	}
	pthread_mutex_unlock(&nic->ctl_lock);
	return found;
}

bool nvi_chan_is_live(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn)
{
	return ch->vi->chan == ch && vi_state(ch->vi) == VIP_STATE_CONNECTED &&
	       nvi_chan_is_conn(ch, nic, conn);
}
