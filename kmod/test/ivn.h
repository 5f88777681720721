/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ntb_hw_ivshmem: an NTB hardware driver for tests, over QEMU's ivshmem-doorbell.
 *
 * Units, lowest first: ivn_profile.c (rules of the chips), ivn_mem.c (memory of windows), ivn_port.c (link,
 * scratchpads), ivn_msg.c (messages), ivn_db.c (doorbells), ivn_main.c (the device).
 */
#ifndef IVN_H
#define IVN_H

#include <linux/irq_work.h>
#include <linux/ntb.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/spinlock.h>

#include "ivn_reg.h"

#define IVN_WINDOWS 4

/* BAR 0 of ivshmem-doorbell. */
#define IVSHMEM_POSITION 0x08
#define IVSHMEM_DOORBELL 0x0c

/* The rules of a chip; the numbers bound those of the link. */
struct ivn_profile {
	const char *name;
	u8 windows;
	u8 doorbells;
	u8 spads;
	u8 msgs;
	u32 addr_align; /* 0: the size of the window */
	u32 size_align; /* 0: the size of the window */
	u32 flags;
};

#define IVN_NO_MASK BIT(0)    /* masks of doorbells do nothing */
#define IVN_ONE_BIT BIT(1)    /* only the lowest of several bits is rung */
#define IVN_NO_VECTORS BIT(2) /* no vector operations: all bits seem to share one vector */
#define IVN_BY_SENDER BIT(3)  /* the sender sets the translation, not the receiver */
#define IVN_DB_ADDR BIT(4)    /* the address of the peer's doorbell register is given out */
#define IVN_B2B                                                                                    \
	BIT(5) /* the ports have the numbers 0 and 1; otherwise both 0, as with a switch between them */

#define IVN_NO_ROOM BIT(6)   /* the firmware has given outbound windows no addresses */
#define IVN_UNALIGNED BIT(7) /* outbound windows begin within a page */
#define IVN_OWN_SIZE BIT(8)  /* an address has to be aligned to its size, which no client is told */

struct ivn_dev;

struct ivn_vector {
	struct ivn_dev *ivn;
	unsigned int idx;
};

struct ivn_slot {
	void *vaddr;
	bool used;
};

struct ivn_dev {
	struct ntb_dev ntb;
	struct ntb_dev_ops ops; /* those of the profile */
	const struct ivn_profile *profile;
	unsigned int port; /* of this device, 0 or 1; its peer has the other */
	unsigned int doorbells;
	unsigned int link_vector;
	unsigned int windows;
	resource_size_t window_bytes;

	void __iomem *regs;   /* BAR 0 */
	void __iomem *shared; /* header and registers of both ports */
	phys_addr_t bus;      /* BAR 2 */

	/* Slots of windows: ivn_mem.c. */
	struct device *dma; /* that clients take memory for: the adapter, or a device of its own */
	struct platform_device *own_dma;
	spinlock_t slot_lock;
	struct ivn_slot slots[IVN_WINDOWS];
	unsigned int asked; /* the window whose rules a client asked for last */

	/* Taken by interrupts. */
	spinlock_t lock;
	u32 seen[IVN_DOORBELLS]; /* of the counters of rings */
	u64 pending;
	u64 mask;
	u64 replay;   /* bits whose event is due because they were unmasked */
	bool link_up; /* and the counters below, as the client was told last */
	u32 link_changes;
	u32 link_enables;
	u64 msg_mask;
	u64 msg_failed;
	u32 msg_told[IVN_MSGS]; /* counters of messages, as the client was told last */
	struct irq_work work;

	struct ivn_vector vectors[IVN_DOORBELLS + 1];
	unsigned int irqs; /* of vectors, those that were requested */
};

static inline struct ivn_dev *to_ivn(struct ntb_dev *ntb)
{
	return container_of(ntb, struct ivn_dev, ntb);
}

static inline u32 ivn_head(const struct ivn_dev *ivn, unsigned int off)
{
	return readl(ivn->shared + off);
}

static inline void __iomem *ivn_own(const struct ivn_dev *ivn, unsigned int off)
{
	return ivn->shared + IVN_PORT_BASE + ivn->port * IVN_PORT_SIZE + off;
}

static inline void __iomem *ivn_peer(const struct ivn_dev *ivn, unsigned int off)
{
	return ivn->shared + IVN_PORT_BASE + !ivn->port * IVN_PORT_SIZE + off;
}

/* Raises an interrupt vector of the peer. */
static inline void ivn_ring(const struct ivn_dev *ivn, unsigned int vector)
{
	writel((!ivn->port << 16) | vector, ivn->regs + IVSHMEM_DOORBELL);
}

/* ivn_profile.c */
const struct ivn_profile *ivn_profile_find(const char *name);
void ivn_profile_align(const struct ivn_dev *ivn, resource_size_t *addr, resource_size_t *size);

/* ivn_mem.c */
int ivn_mem_init(struct ivn_dev *ivn);
void ivn_mem_fini(struct ivn_dev *ivn);
struct device *ivn_get_dma_dev(struct ntb_dev *ntb);
int ivn_mw_count(struct ntb_dev *ntb, int pidx);
int ivn_mw_get_align(struct ntb_dev *ntb, int pidx, int widx, resource_size_t *addr_align,
		     resource_size_t *size_align, resource_size_t *size_max);
int ivn_mw_set_trans(struct ntb_dev *ntb, int pidx, int widx, dma_addr_t addr,
		     resource_size_t size);
int ivn_peer_mw_count(struct ntb_dev *ntb);
int ivn_peer_mw_get_addr(struct ntb_dev *ntb, int widx, phys_addr_t *base, resource_size_t *size);
int ivn_peer_mw_set_trans(struct ntb_dev *ntb, int pidx, int widx, u64 addr, resource_size_t size);

/* ivn_port.c */
void ivn_link_init(struct ivn_dev *ivn);
bool ivn_link_present(const struct ivn_dev *ivn);
void ivn_link_check(struct ivn_dev *ivn);
u64 ivn_link_is_up(struct ntb_dev *ntb, enum ntb_speed *speed, enum ntb_width *width);
int ivn_link_enable(struct ntb_dev *ntb, enum ntb_speed max_speed, enum ntb_width max_width);
int ivn_link_disable(struct ntb_dev *ntb);
int ivn_spad_count(struct ntb_dev *ntb);
u32 ivn_spad_read(struct ntb_dev *ntb, int sidx);
int ivn_spad_write(struct ntb_dev *ntb, int sidx, u32 val);
u32 ivn_peer_spad_read(struct ntb_dev *ntb, int pidx, int sidx);
int ivn_peer_spad_write(struct ntb_dev *ntb, int pidx, int sidx, u32 val);

/* ivn_msg.c */
void ivn_msg_init(struct ivn_dev *ivn);
void ivn_msg_check(struct ivn_dev *ivn);
int ivn_msg_count(struct ntb_dev *ntb);
u64 ivn_msg_inbits(struct ntb_dev *ntb);
u64 ivn_msg_outbits(struct ntb_dev *ntb);
u64 ivn_msg_read_sts(struct ntb_dev *ntb);
int ivn_msg_clear_sts(struct ntb_dev *ntb, u64 bits);
int ivn_msg_set_mask(struct ntb_dev *ntb, u64 bits);
int ivn_msg_clear_mask(struct ntb_dev *ntb, u64 bits);
u32 ivn_msg_read(struct ntb_dev *ntb, int *pidx, int midx);
int ivn_peer_msg_write(struct ntb_dev *ntb, int pidx, int midx, u32 msg);

/* ivn_db.c */
void ivn_db_init(struct ivn_dev *ivn);
void ivn_db_raise(struct ivn_dev *ivn, unsigned int bit);
void ivn_db_replay(struct ivn_dev *ivn);
void ivn_db_replay_all(struct ivn_dev *ivn);
u64 ivn_db_valid_mask(struct ntb_dev *ntb);
int ivn_db_vector_count(struct ntb_dev *ntb);
u64 ivn_db_vector_mask(struct ntb_dev *ntb, int vector);
u64 ivn_db_read(struct ntb_dev *ntb);
int ivn_db_clear(struct ntb_dev *ntb, u64 bits);
u64 ivn_db_read_mask(struct ntb_dev *ntb);
int ivn_db_set_mask(struct ntb_dev *ntb, u64 bits);
int ivn_db_clear_mask(struct ntb_dev *ntb, u64 bits);
int ivn_peer_db_addr(struct ntb_dev *ntb, phys_addr_t *addr, resource_size_t *size, u64 *data,
		     int bit);
int ivn_peer_db_set(struct ntb_dev *ntb, u64 bits);

#endif
