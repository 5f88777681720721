// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Message registers, of chips without scratchpads.
 *
 * Bit i of the status says that register i holds a message; it holds it until that bit is cleared.  Bit 16 + i
 * says that a message to register i of the peer was refused, because that register was still full.
 */
#include <linux/bits.h>

#include "ivn.h"

#define OUT_SHIFT 16

static u64 inbits(const struct ivn_dev *ivn)
{
	return BIT_ULL(ivn->profile->msgs) - 1;
}

static u32 msgs_sent(const struct ivn_dev *ivn, unsigned int midx)
{
	return readl(ivn_own(ivn, IVN_R_MSG_SENT + 4 * midx));
}

static u64 status_locked(const struct ivn_dev *ivn)
{
	u64 status = ivn->msg_failed << OUT_SHIFT;
	unsigned int i;

	for (i = 0; i < ivn->profile->msgs; i++) {
		if (msgs_sent(ivn, i) != readl(ivn_own(ivn, IVN_R_MSG_READ + 4 * i)))
			status |= BIT_ULL(i);
	}
	return status;
}

void ivn_msg_init(struct ivn_dev *ivn)
{
	unsigned int i;

	for (i = 0; i < ivn->profile->msgs; i++) {
		ivn->msg_told[i] = msgs_sent(ivn, i);
		writel(ivn->msg_told[i], ivn_own(ivn, IVN_R_MSG_READ + 4 * i));
	}
}

/* Tells the client of messages that came since it was told last and are not masked. */
void ivn_msg_check(struct ivn_dev *ivn)
{
	unsigned long flags;
	bool fresh = false;
	unsigned int i;

	spin_lock_irqsave(&ivn->lock, flags);
	for (i = 0; i < ivn->profile->msgs; i++) {
		if (ivn->msg_told[i] == msgs_sent(ivn, i) || ivn->msg_mask & BIT_ULL(i))
			continue;
		ivn->msg_told[i] = msgs_sent(ivn, i);
		fresh = true;
	}
	spin_unlock_irqrestore(&ivn->lock, flags);
	if (fresh)
		ntb_msg_event(&ivn->ntb);
}

int ivn_msg_count(struct ntb_dev *ntb)
{
	return to_ivn(ntb)->profile->msgs;
}

u64 ivn_msg_inbits(struct ntb_dev *ntb)
{
	return inbits(to_ivn(ntb));
}

u64 ivn_msg_outbits(struct ntb_dev *ntb)
{
	return inbits(to_ivn(ntb)) << OUT_SHIFT;
}

u64 ivn_msg_read_sts(struct ntb_dev *ntb)
{
	struct ivn_dev *ivn = to_ivn(ntb);
	unsigned long flags;
	u64 status;

	spin_lock_irqsave(&ivn->lock, flags);
	status = status_locked(ivn);
	spin_unlock_irqrestore(&ivn->lock, flags);
	return status;
}

int ivn_msg_clear_sts(struct ntb_dev *ntb, u64 bits)
{
	struct ivn_dev *ivn = to_ivn(ntb);
	unsigned long flags;
	unsigned int i;

	if (bits & ~(inbits(ivn) | inbits(ivn) << OUT_SHIFT))
		return -EINVAL;
	spin_lock_irqsave(&ivn->lock, flags);
	ivn->msg_failed &= ~(bits >> OUT_SHIFT);
	for (i = 0; i < ivn->profile->msgs; i++) {
		if (bits & BIT_ULL(i))
			writel(msgs_sent(ivn, i), ivn_own(ivn, IVN_R_MSG_READ + 4 * i));
	}
	spin_unlock_irqrestore(&ivn->lock, flags);
	return 0;
}

int ivn_msg_set_mask(struct ntb_dev *ntb, u64 bits)
{
	struct ivn_dev *ivn = to_ivn(ntb);
	unsigned long flags;

	spin_lock_irqsave(&ivn->lock, flags);
	ivn->msg_mask |= bits;
	spin_unlock_irqrestore(&ivn->lock, flags);
	return 0;
}

int ivn_msg_clear_mask(struct ntb_dev *ntb, u64 bits)
{
	struct ivn_dev *ivn = to_ivn(ntb);
	unsigned long flags;

	spin_lock_irqsave(&ivn->lock, flags);
	ivn->msg_mask &= ~bits;
	spin_unlock_irqrestore(&ivn->lock, flags);
	irq_work_queue(&ivn->work);
	return 0;
}

u32 ivn_msg_read(struct ntb_dev *ntb, int *pidx, int midx)
{
	if (midx < 0 || midx >= ivn_msg_count(ntb))
		return ~0u;
	if (pidx)
		*pidx = 0;
	return readl(ivn_own(to_ivn(ntb), IVN_R_MSG + 4 * midx));
}

int ivn_peer_msg_write(struct ntb_dev *ntb, int pidx, int midx, u32 msg)
{
	struct ivn_dev *ivn = to_ivn(ntb);
	unsigned long flags;
	u32 sent;

	if (pidx || midx < 0 || midx >= ivn_msg_count(ntb))
		return -EINVAL;
	spin_lock_irqsave(&ivn->lock, flags);
	sent = readl(ivn_peer(ivn, IVN_R_MSG_SENT + 4 * midx));
	if (!ivn_link_present(ivn) || sent != readl(ivn_peer(ivn, IVN_R_MSG_READ + 4 * midx))) {
		ivn->msg_failed |= BIT_ULL(midx);
	} else {
		writel(msg, ivn_peer(ivn, IVN_R_MSG + 4 * midx));
		writel(sent + 1, ivn_peer(ivn, IVN_R_MSG_SENT + 4 * midx));
		ivn_ring(ivn, ivn->link_vector);
	}
	spin_unlock_irqrestore(&ivn->lock, flags);
	return 0;
}
