/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * viaduct.ko: NTB ports for programs.  Design: docs/kernel-module.md.
 *
 * Units, lowest first: viaduct_irq.c (interrupt objects), viaduct_event.c (doorbells, link events, eventfds),
 * viaduct_limit.c (limits and rates), viaduct_pin.c (memory of programs that is pinned), viaduct_quirk.c (drivers whose
 * doorbells overtake stores), viaduct_msg.c (message registers), viaduct_place.c (the page that a place of a window
 * leads to), viaduct_window.c (memory of windows), viaduct_engine.c (the DMA engine), viaduct_copy.c (copies into
 * slices), viaduct_inode.c (inodes of slices), viaduct_slice.c (mappable descriptors), viaduct_file.c (port and client
 * descriptors), viaduct_link.c (the state of the link), viaduct_main.c (the NTB client: probe, removal).
 *
 * Locks, outermost first: mmap_lock, port->lock, engine->lock or port->alloc_lock, then the spinlocks.  So nothing
 * copies from or to user memory under any of them.  No spinlock of these units is taken inside another.  Locks of
 * the kernel are: inside event_lock those of eventfds, of wait queues and of their waiters, inside msg.lock that
 * of msg.wait, inside storm.lock that of a workqueue, inside both those of the adapter's driver.
 */
#ifndef VIADUCT_H
#define VIADUCT_H

#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/ntb.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/version.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "viaduct_ioctl.h"
#include "viaduct_msg.h"

/* The rate of events: viaduct_limit.c. */
struct vd_rate {
	u64 due; /* ns */
};

struct vd_user;

/* A peer that rings without end: bits are told after a pause, when their interrupts have become too many. */
struct vd_storm {
	spinlock_t lock; /* taken by interrupts */
	struct vd_rate rate;
	struct vd_rate link_rate;
	bool paused;
	u64 bits; /* to be told */
	struct delayed_work work;
};

/* Cells are those of viaduct_msg.h. */
struct vd_msg {
	bool used;	/* the adapter needs messages */
	bool by_sender; /* to set windows */
	bool spads;	/* for scratchpads */

	spinlock_t lock;
	struct vd_rate rate;
	bool live;	  /* the adapter sees a link */
	bool heard;	  /* the peer knows this session */
	bool told;	  /* the peer has addresses of windows, and the link was not down since */
	bool leaving;	  /* the peer's memory goes away */
	bool confirm_due; /* and it waits to be told that nothing is stored there */
	bool closing;	  /* this side's memory goes away */
	bool confirmed;
	bool restarted; /* the peer has begun a new session, and the link has not gone down for that yet */
	bool lost;
	bool hello_due;
	bool ack_due;
	u32 session;
	u32 peer_session;
	u64 dirty; /* cells to be sent */
	u64 got;   /* cells of the peer's session */
	u32 ours[VD_CELLS];
	u32 theirs[VD_CELLS];
	unsigned int rx_number; /* received last */
	unsigned int tx_number; /* sent last, with these: */
	bool in_flight;
	unsigned int cell;
	u32 value;
	int tries;
	unsigned long due; /* jiffies: to be sent again */

	struct delayed_work work;
	wait_queue_head_t wait;
};

#define VD_PIECE_BYTES (256 * 1024)
#define VD_PIECE_PAGES (VD_PIECE_BYTES / PAGE_SIZE + 1)

/* Part of a copy: as much as is copied at a time. */
struct vd_piece {
	struct page **pages;
	u64 source; /* counted from the beginning of the first page */
	phys_addr_t target;
	u64 len;
};

struct vd_mapped {
	dma_addr_t dma;
	size_t len;
};

struct vd_engine {
	struct mutex lock;
	struct dma_chan *chan;
	bool tried; /* in the generation below */
	u32 generation;
	unsigned int failures; /* without a success between */
	struct completion done;
	atomic_t left;
	atomic_t bad;
	struct vd_mapped mapped[VD_PIECE_PAGES];
};

/* Pages of a program. */
struct vd_pinned {
	struct page **pages; /* NULL: none */
	unsigned long count;
	struct mm_struct *mm; /* to which they are charged */
};

struct vd_window {
	/* Inbound: allocated when the link comes up first, kept until the port is removed. */
	void *memory;
	dma_addr_t dma_memory; /* with the bytes lost to alignment: [memory, memory + memory_bytes) */
	size_t memory_bytes;
	void *base;
	dma_addr_t dma;
	size_t bytes;
	bool translated;     /* the adapter leads there */
	bool lost;	     /* the DMA API cannot take the memory back, and it is not mapped */
	unsigned long *used; /* a bit for each page */
	struct iommu_domain *domain; /* NULL: all places lead to the memory above, for ever */
	unsigned long adopt_first;   /* from this place on they can lead elsewhere */
	/* Outbound. */
	phys_addr_t out_phys;
	resource_size_t out_bytes;
	bool out_wc;		   /* its cache mode is reserved */
	resource_size_t out_opens; /* the part of out_bytes for which the peer has memory */
	void __iomem *flush;	   /* a page of it */
	bool stored;		   /* somebody may store there: there was a slice */
};

struct vd_port {
	struct kref ref;
	char name[16];
	int id;
	struct miscdevice misc;
	unsigned long in_use; /* bit 0: a port descriptor is open */

	struct rw_semaphore lock; /* ntb, enabled, up, generation, windows */
	struct ntb_dev *ntb;	  /* NULL after removal */
	bool enabled;		  /* by the agent */
	bool wire;		  /* the adapter sees a link */
	bool up;		  /* programs do, too */
	u32 generation;
	unsigned int windows;
	struct vd_window window[VIADUCT_WINDOWS];
	u64 db_bits;
	bool read_back; /* doorbells overtake stores, unless a read separates them */

	struct mutex alloc_lock; /* the used bits of windows, slices */
	struct list_head slice_list;
	unsigned int slices;
	unsigned int clients;

	struct delayed_work link_work;
	atomic_t link_events; /* events that the driver reported and the work has not seen */

	spinlock_t event_lock; /* bindings, status; taken by interrupts */
	struct list_head bindings;
	struct viaduct_status *status;
	wait_queue_head_t waiters;

	struct vd_storm storm;
	struct vd_msg msg;
	struct vd_engine engine;
};

/* A port descriptor (agent) or a client descriptor. */
struct vd_file {
	struct vd_port *port;
	bool agent;
	u64 ring_bits;
	u32 seen; /* interrupts of the link that the holder has been told */
	unsigned int bindings;
	bool ended;	      /* clients: by VIADUCT_END; under port->lock, as ring_bits */
	struct vd_user *user; /* the user to whom the objects of the descriptor are charged */
	spinlock_t rate_lock;
	struct vd_rate rate; /* of rings by a client */
};

static inline void vd_vma_flags(struct vm_area_struct *vma, unsigned long set, unsigned long clear)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags |= set;
	vma->vm_flags &= ~clear;
#endif
}

/* viaduct_irq.c */
struct vd_irq;
struct file *vd_irq_make(struct vd_user *user);
struct vd_irq *vd_irq_get(int fd);
void vd_irq_put(struct vd_irq *irq);
void vd_irq_interrupt(struct vd_irq *irq, u64 bits);

/* viaduct_event.c */
int vd_event_init(struct vd_port *port);
void vd_event_fini(struct vd_port *port);
void vd_event_doorbell(struct vd_port *port, u64 bits);
void vd_event_link(struct vd_port *port, u32 link, u32 generation);
int vd_event_bind(struct vd_file *vf, const struct viaduct_bind *bind);
void vd_event_unbind_all(struct vd_file *vf);
int vd_event_mmap(struct vd_port *port, struct vm_area_struct *vma);

/* viaduct_limit.c */
struct vd_user *vd_user_get(kuid_t uid);
void vd_user_put(struct vd_user *user);
int vd_user_charge_slice(struct vd_user *user, u64 bytes);
void vd_user_uncharge_slice(struct vd_user *user, u64 bytes);
int vd_user_charge_client(struct vd_user *user);
void vd_user_uncharge_client(struct vd_user *user);
int vd_user_charge_irq(struct vd_user *user);
void vd_user_uncharge_irq(struct vd_user *user);
int vd_limit_ring(struct vd_file *vf, bool wait, unsigned int count);
bool vd_limit_message(struct vd_rate *taken);
void vd_limit_doorbell(struct vd_port *port);
void vd_limit_init(struct vd_port *port);
unsigned long vd_limit_link(struct vd_port *port);
void vd_limit_link_done(struct vd_port *port);

/* viaduct_pin.c */
int vd_pin(struct vd_pinned *pinned, unsigned long address, unsigned long count);
void vd_unpin(struct vd_pinned *pinned, bool written);

/* viaduct_quirk.c */
bool vd_quirk_read_back(struct ntb_dev *ntb);

/* viaduct_msg.c */
int vd_msg_init(struct vd_port *port);
void vd_msg_event(struct vd_port *port);
void vd_msg_begin(struct vd_port *port, bool live);
bool vd_msg_ready(struct vd_port *port, bool *again);
bool vd_msg_lost(struct vd_port *port);
void vd_msg_confirm(struct vd_port *port);
bool vd_msg_leave(struct vd_port *port);
bool vd_msg_window(struct vd_port *port, unsigned int widx, u64 *address, u64 *bytes);
unsigned int vd_msg_spad_count(struct vd_port *port);
int vd_msg_spad(struct vd_port *port, struct viaduct_spad *spad);

/* viaduct_place.c */
unsigned long vd_place_find(const struct vd_window *w, unsigned long pages, bool adopts);
unsigned long vd_place_pfn(const struct vd_window *w, unsigned long place);
int vd_place_split(struct vd_window *w, struct device *dev);
int vd_place_lead(const struct vd_window *w, unsigned long first, const struct vd_pinned *pinned,
		  bool *lost);
bool vd_place_back(const struct vd_window *w, unsigned long first, unsigned long count);

/* viaduct_window.c */
struct device *vd_window_device(struct ntb_dev *ntb);
int vd_window_init(struct vd_port *port);
int vd_window_setup(struct vd_port *port);
void vd_window_read_back(struct vd_port *port);
int vd_window_flush(struct vd_port *port);
int vd_window_adopts(struct vd_port *port, u64 bytes);
int vd_window_open(struct vd_port *port);
void vd_window_close(struct vd_port *port);
void vd_window_fini(struct vd_port *port, struct ntb_dev *ntb, bool freed);

/* viaduct_engine.c */
void vd_engine_init(struct vd_port *port);
int vd_engine_copy(struct vd_port *port, const struct vd_piece *piece, u64 all);
void vd_engine_fini(struct vd_port *port);

/* viaduct_copy.c */
struct vd_copier;
int vd_copy_init(void);
void vd_copy_fini(void);
struct vd_copier *vd_copy_create(struct vd_port *port, phys_addr_t phys, u64 bytes, u32 generation,
				 const bool *ended);
void vd_copy_destroy(struct vd_copier *c);
long vd_copy_ioctl(struct vd_copier *c, unsigned int cmd, void __user *arg);
bool vd_copy_pending(struct vd_copier *c);

/* viaduct_inode.c */
int vd_inode_init(void);
void vd_inode_fini(void);
struct inode *vd_inode_new(void);

/* viaduct_slice.c */
void vd_slice_zap(struct vd_port *port);
void vd_slice_disown(struct vd_port *port);
int vd_slice_make(struct vd_file *vf, struct viaduct_slice *request, struct file **file);
int vd_slice_adopt(struct vd_file *vf, struct viaduct_adopt *request, struct file **file);
int vd_slice_info(struct vd_port *port, struct file *file, struct viaduct_slice *answer);
int vd_slice_end(struct vd_port *port, struct file *file);

/* viaduct_file.c */
extern const struct file_operations vd_port_fops;

/* viaduct_link.c */
void vd_link_init(struct vd_port *port);
void vd_link_event(struct vd_port *port);
void vd_link_check(struct vd_port *port);

/* viaduct_main.c */
void vd_port_put(struct vd_port *port);

#endif
