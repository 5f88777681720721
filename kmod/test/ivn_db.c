// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Doorbells.
 *
 * The sender counts its rings of each bit in the peer's registers and then raises the bit's vector.  A bit
 * becomes pending when its counter is found changed, by the interrupt or by a read of the register, whichever
 * comes first: so the register is exact although interrupts of ivshmem come some time later.
 */
#include <linux/bitops.h>
#include <linux/bits.h>

#include "ivn.h"

static bool collect_locked(struct ivn_dev *ivn, unsigned int bit)
{
	u32 rung = readl(ivn_own(ivn, IVN_R_RUNG + 4 * bit));

	if (rung == ivn->seen[bit])
		return false;
	ivn->seen[bit] = rung;
	ivn->pending |= BIT_ULL(bit);
	return true;
}

static void collect_all_locked(struct ivn_dev *ivn)
{
	unsigned int bit;

	for (bit = 0; bit < ivn->doorbells; bit++)
		collect_locked(ivn, bit);
}

void ivn_db_init(struct ivn_dev *ivn)
{
	collect_all_locked(ivn);
	ivn->pending = 0;
	ivn->mask = 0;
	ivn->replay = 0;
}

/* The vector of a bit came. */
void ivn_db_raise(struct ivn_dev *ivn, unsigned int bit)
{
	unsigned long flags;
	bool due;

	spin_lock_irqsave(&ivn->lock, flags);
	/* A write to the register whose address was given out is not counted. */
	if (!collect_locked(ivn, bit) && ivn->profile->flags & IVN_DB_ADDR)
		ivn->pending |= BIT_ULL(bit);
	due = ivn->pending & ~ivn->mask & BIT_ULL(bit);
	spin_unlock_irqrestore(&ivn->lock, flags);
	if (due)
		ntb_db_event(&ivn->ntb, bit);
}

void ivn_db_replay(struct ivn_dev *ivn)
{
	unsigned long flags;
	u64 due;

	spin_lock_irqsave(&ivn->lock, flags);
	collect_all_locked(ivn);
	due = ivn->replay & ivn->pending & ~ivn->mask;
	ivn->replay = 0;
	spin_unlock_irqrestore(&ivn->lock, flags);
	for (; due; due &= due - 1)
		ntb_db_event(&ivn->ntb, __ffs64(due));
}

/* Bits that were rung before there was an interrupt for them. */
void ivn_db_replay_all(struct ivn_dev *ivn)
{
	unsigned long flags;

	spin_lock_irqsave(&ivn->lock, flags);
	ivn->replay = ~0ull;
	spin_unlock_irqrestore(&ivn->lock, flags);
	irq_work_queue(&ivn->work);
}

u64 ivn_db_valid_mask(struct ntb_dev *ntb)
{
	return BIT_ULL(to_ivn(ntb)->doorbells) - 1;
}

int ivn_db_vector_count(struct ntb_dev *ntb)
{
	return to_ivn(ntb)->doorbells;
}

u64 ivn_db_vector_mask(struct ntb_dev *ntb, int vector)
{
	if (vector < 0 || vector >= to_ivn(ntb)->doorbells)
		return 0;
	return BIT_ULL(vector);
}

u64 ivn_db_read(struct ntb_dev *ntb)
{
	struct ivn_dev *ivn = to_ivn(ntb);
	unsigned long flags;
	u64 pending;

	spin_lock_irqsave(&ivn->lock, flags);
	collect_all_locked(ivn);
	pending = ivn->pending;
	spin_unlock_irqrestore(&ivn->lock, flags);
	return pending;
}

int ivn_db_clear(struct ntb_dev *ntb, u64 bits)
{
	struct ivn_dev *ivn = to_ivn(ntb);
	unsigned long flags;

	spin_lock_irqsave(&ivn->lock, flags);
	collect_all_locked(ivn);
	ivn->pending &= ~bits;
	spin_unlock_irqrestore(&ivn->lock, flags);
	return 0;
}

u64 ivn_db_read_mask(struct ntb_dev *ntb)
{
	return to_ivn(ntb)->mask;
}

int ivn_db_set_mask(struct ntb_dev *ntb, u64 bits)
{
	struct ivn_dev *ivn = to_ivn(ntb);
	unsigned long flags;

	if (bits & ~ivn_db_valid_mask(ntb))
		return -EINVAL;
	if (ivn->profile->flags & IVN_NO_MASK)
		return 0;
	spin_lock_irqsave(&ivn->lock, flags);
	ivn->mask |= bits;
	spin_unlock_irqrestore(&ivn->lock, flags);
	return 0;
}

/* Bits that are pending raise their event now: a client that unmasks misses nothing. */
int ivn_db_clear_mask(struct ntb_dev *ntb, u64 bits)
{
	struct ivn_dev *ivn = to_ivn(ntb);
	unsigned long flags;
	u64 due;

	if (bits & ~ivn_db_valid_mask(ntb))
		return -EINVAL;
	if (ivn->profile->flags & IVN_NO_MASK)
		return 0;
	spin_lock_irqsave(&ivn->lock, flags);
	collect_all_locked(ivn);
	due = ivn->mask & bits & ivn->pending;
	ivn->mask &= ~bits;
	ivn->replay |= due;
	spin_unlock_irqrestore(&ivn->lock, flags);
	if (due)
		irq_work_queue(&ivn->work);
	return 0;
}

int ivn_peer_db_addr(struct ntb_dev *ntb, phys_addr_t *addr, resource_size_t *size, u64 *data,
		     int bit)
{
	struct ivn_dev *ivn = to_ivn(ntb);

	if (bit < 0 || bit >= ivn->doorbells)
		return -EINVAL;
	if (addr)
		*addr = pci_resource_start(ntb->pdev, 0) + IVSHMEM_DOORBELL;
	if (size)
		*size = sizeof(u32);
	if (data)
		*data = (!ivn->port << 16) | bit;
	return 0;
}

int ivn_peer_db_set(struct ntb_dev *ntb, u64 bits)
{
	struct ivn_dev *ivn = to_ivn(ntb);
	unsigned long flags;

	if (bits & ~ivn_db_valid_mask(ntb))
		return -EINVAL;
	if (ivn->profile->flags & IVN_ONE_BIT)
		bits &= -bits;
	if (!ivn_link_present(ivn))
		return 0;
	spin_lock_irqsave(&ivn->lock, flags);
	for (; bits; bits &= bits - 1) {
		unsigned int bit = __ffs64(bits);
		void __iomem *rung = ivn_peer(ivn, IVN_R_RUNG + 4 * bit);

		writel(readl(rung) + 1, rung);
		ivn_ring(ivn, bit);
	}
	spin_unlock_irqrestore(&ivn->lock, flags);
	return 0;
}
