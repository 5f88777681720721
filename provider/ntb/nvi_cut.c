/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvi_cut.h"
#include "nvi_break.h"
#include "nvi_given.h"
#include "nvi_req.h"

void nvi_cut(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn)
{
	nvi_chan_lost(ch, nic, conn, W_LOST_LINK);
	/* The agent tells the other end; the VI itself stays in Error until it is disconnected. */
	if (nvi_chan_forget(nic, ch, conn))
		nvi_ctl_send_conn(nic, W_CLOSE, conn);
	nvi_given_forget(nic, conn);
}

/*
 * Finds channels in use whose link is gone, or has another generation than when they were made, but no resumable
 * ones; at most `max`.  Returns how many.  Caller holds chan_lock.
 */
static uint32_t find_cut(struct nvi_nic *nic, struct nvi_chan **cut, uint32_t max)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < nic->chan_count && count < max; i++) {
		struct nvi_chan *ch = nic->chans[i];

		/* A resumable connection outlives its link: the agents resume or end it. */
		if (ch->retx == NULL && ch->generation != ch->port_use->generation &&
		    nvi_chan_lives(ch))
			cut[count++] = ch;
	}
	return count;
}

/* Has a link gone down or come up since the last call?  Notes the generations.  Caller holds chan_lock. */
static bool links_changed(struct nvi_nic *nic)
{
	bool changed = false;

	for (unsigned int i = 0; i < PORT_PER_HOST; i++) {
		struct nvi_port *p = nic->ports[i];
		uint32_t generation = p != NULL ? nvi_port_generation(p) : 0;

		if (p != NULL && generation != p->generation) {
			p->generation = generation;
			changed = true;
		}
	}
	return changed;
}

void nvi_check_links(struct nvi_nic *nic)
{
	enum { BATCH = 64 };
	struct nvi_chan *cut[BATCH];
	uint32_t count = 0;

	u_lock_take(&nic->chan_lock);
	if (links_changed(nic))
		count = find_cut(nic, cut, BATCH);
	u_lock_drop(&nic->chan_lock);
	while (count > 0) {
		for (uint32_t i = 0; i < count; i++)
			nvi_cut(nic, cut[i], nvi_chan_conn(cut[i]));
		u_lock_take(&nic->chan_lock);
		count = find_cut(nic, cut, BATCH);
		u_lock_drop(&nic->chan_lock);
	}
}
