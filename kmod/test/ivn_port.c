// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The link and the scratchpads.
 *
 * The link is present while both guests live and the server has not cut it; only then an access reaches the
 * peer.  It is up while it is present and both ports have enabled it.
 */
#include "ivn.h"

bool ivn_link_present(const struct ivn_dev *ivn)
{
	return ivn_head(ivn, IVN_H_ALIVE) && ivn_head(ivn, IVN_H_ALIVE + 4) &&
	       !ivn_head(ivn, IVN_H_CUT);
}

static bool link_is_up(const struct ivn_dev *ivn)
{
	return ivn_link_present(ivn) && readl(ivn_own(ivn, IVN_R_ENABLED)) & 1 &&
	       readl(ivn_peer(ivn, IVN_R_ENABLED)) & 1;
}

/*
 * Also when the link went down and up again unseen, the client is told.  The counters are read first: a change that
 * comes between makes the next call tell the client once more.
 */
void ivn_link_check(struct ivn_dev *ivn)
{
	unsigned long flags;
	u32 changes, enables;
	bool up, told;

	spin_lock_irqsave(&ivn->lock, flags);
	changes = ivn_head(ivn, IVN_H_CHANGES);
	enables = readl(ivn_peer(ivn, IVN_R_ENABLED));
	up = link_is_up(ivn);
	told = up == ivn->link_up &&
	       (!up || (changes == ivn->link_changes && enables == ivn->link_enables));
	ivn->link_up = up;
	ivn->link_changes = changes;
	ivn->link_enables = enables;
	spin_unlock_irqrestore(&ivn->lock, flags);
	if (!told)
		ntb_link_event(&ivn->ntb);
}

u64 ivn_link_is_up(struct ntb_dev *ntb, enum ntb_speed *speed, enum ntb_width *width)
{
	/* Shared memory has no lanes that could be trained. */
	if (speed)
		*speed = NTB_SPEED_NONE;
	if (width)
		*width = NTB_WIDTH_NONE;
	return link_is_up(to_ivn(ntb));
}

static void set_enabled(struct ivn_dev *ivn, bool enabled)
{
	unsigned long flags;
	u32 counter;

	spin_lock_irqsave(&ivn->lock, flags);
	counter = readl(ivn_own(ivn, IVN_R_ENABLED));
	if ((counter & 1) != enabled)
		writel(counter + 1, ivn_own(ivn, IVN_R_ENABLED));
	spin_unlock_irqrestore(&ivn->lock, flags);
	ivn_ring(ivn, ivn->link_vector);
	irq_work_queue(&ivn->work);
}

int ivn_link_enable(struct ntb_dev *ntb, enum ntb_speed max_speed, enum ntb_width max_width)
{
	set_enabled(to_ivn(ntb), true);
	return 0;
}

int ivn_link_disable(struct ntb_dev *ntb)
{
	set_enabled(to_ivn(ntb), false);
	return 0;
}

/* A driver that was removed has left the link disabled, and for a guest that ended the server did. */
void ivn_link_init(struct ivn_dev *ivn)
{
	ivn->link_up = false;
	if (readl(ivn_own(ivn, IVN_R_ENABLED)) & 1)
		writel(readl(ivn_own(ivn, IVN_R_ENABLED)) + 1, ivn_own(ivn, IVN_R_ENABLED));
}

int ivn_spad_count(struct ntb_dev *ntb)
{
	return to_ivn(ntb)->profile->spads;
}

u32 ivn_spad_read(struct ntb_dev *ntb, int sidx)
{
	if (sidx < 0 || sidx >= ivn_spad_count(ntb))
		return ~0u;
	return readl(ivn_own(to_ivn(ntb), IVN_R_SPAD + 4 * sidx));
}

int ivn_spad_write(struct ntb_dev *ntb, int sidx, u32 val)
{
	if (sidx < 0 || sidx >= ivn_spad_count(ntb))
		return -EINVAL;
	writel(val, ivn_own(to_ivn(ntb), IVN_R_SPAD + 4 * sidx));
	return 0;
}

u32 ivn_peer_spad_read(struct ntb_dev *ntb, int pidx, int sidx)
{
	if (pidx || sidx < 0 || sidx >= ivn_spad_count(ntb) || !ivn_link_present(to_ivn(ntb)))
		return ~0u;
	return readl(ivn_peer(to_ivn(ntb), IVN_R_SPAD + 4 * sidx));
}

int ivn_peer_spad_write(struct ntb_dev *ntb, int pidx, int sidx, u32 val)
{
	if (pidx || sidx < 0 || sidx >= ivn_spad_count(ntb))
		return -EINVAL;
	if (ivn_link_present(to_ivn(ntb)))
		writel(val, ivn_peer(to_ivn(ntb), IVN_R_SPAD + 4 * sidx));
	return 0;
}
