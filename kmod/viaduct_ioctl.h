/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interface of viaduct.ko for programs: docs/kernel-module.md.
 *
 * Each structure has the same layout in 32 and 64 bits.  Reserved fields and unknown flags have to be 0 in a request
 * (otherwise -EINVAL), and are 0 in an answer.
 */
#ifndef VIADUCT_IOCTL_H
#define VIADUCT_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define VIADUCT_ABI 2
#define VIADUCT_WINDOWS 8 /* of a port, at most */
#define VIADUCT_DB_BITS 64

#define VIADUCT_LINK_DOWN 0
#define VIADUCT_LINK_UP 1
#define VIADUCT_LINK_GONE 2 /* the adapter or its driver was removed */

/* The page that a port descriptor or a client descriptor maps at offset 0, read-only. */
struct viaduct_status {
	__u32 abi;
	__u32 link;	  /* VIADUCT_LINK_* */
	__u32 generation; /* of the link's life; another one after each time it came up */
	__u32 interrupts; /* counts rings of any bit and changes of the link */
	__u32 db_count[VIADUCT_DB_BITS]; /* for each bit: rings, which coalesce */
};

/* The page that an interrupt object maps at offset 0, to be read and written by all its holders. */
struct viaduct_irq_page {
	__u32 seq; /* the kernel adds to it when a bit is rung, and compares it when a thread is to sleep */
	__u32 holders[1023]; /* the holders agree among themselves on the meaning */
};

struct viaduct_window {
	__u64 inbound;	/* bytes of memory of this host; 0 until the link was up once */
	__u64 outbound; /* bytes of the peer's address space that the adapter shows */
};

struct viaduct_info {
	__u32 abi;
	__u32 windows;
	__u64 db_bits;
	__u32 spads;
	__u32 link;
	__u32 generation;
	__u32 page_size; /* slices are aligned to it */
	struct viaduct_window window[VIADUCT_WINDOWS];
};

/* Each ring, and each write of a peer's scratchpad, waits for a read across the link. */
#define VIADUCT_READS_BACK (1U << 0)

/* How the module treats the adapter. */
struct viaduct_traits {
	__u32 flags; /* VIADUCT_READS_BACK; others may come */
	__u32 reserved[3];
};

#define VIADUCT_INBOUND 0  /* memory of this host, cached */
#define VIADUCT_OUTBOUND 1 /* the peer's, write-combining */

struct viaduct_slice {
	__u32 direction;
	__u32 window; /* inbound: in the answer */
	__u64 offset; /* in the window.  inbound: in the answer */
	__u64 len;    /* rounded up to pages in the answer */
	__s32 fd;     /* in the answer */
	__u32 reserved;
};

/*
 * Maps memory of the caller, whole pages, into places of a window: an IOMMU makes the places lead there.  The slice is
 * inbound, cannot be mapped, and keeps the pages pinned until it is ended or its last descriptor is closed.
 */
struct viaduct_adopt {
	__u64 address;
	__u64 len;
	__u64 offset; /* in the answer */
	__u32 window; /* in the answer */
	__s32 fd;     /* in the answer */
};

/*
 * Ends a slice or a client.  The mappings of a slice, in all its holders, never show pages of a window again, and it no
 * longer counts towards the limits.  The places of a slice of VIADUCT_ADOPT stay taken, but lead to the window's own
 * pages again; the program's pages are no longer pinned.  A client can ring nothing, has no bindings and no longer
 * counts.  Either stays a descriptor for all its holders.
 */
struct viaduct_end {
	__s32 fd;
	__u32 reserved;
};

struct viaduct_client {
	__u64 ring_bits; /* doorbell bits that the holder may ring */
	__s32 fd;	 /* in the answer */
	__u32 reserved;
};

#define VIADUCT_BIND_LINK (1U << 0) /* also changes of the link */

struct viaduct_bind {
	__u64 db_bits;
	__s32 eventfd; /* or an interrupt object */
	__u32 flags;
};

struct viaduct_ring {
	__u64 db_bits;
};

struct viaduct_irq {
	__s32 fd; /* in the answer */
	__u32 reserved;
};

struct viaduct_irq_wait {
	__u64 db_bits;	  /* a wake-up for one of these ends the wait; not 0 */
	__s64 timeout_ns; /* negative: no timeout */
	__u32 ticket;	  /* 0 is returned at once if `seq` is not this */
	__u32 reserved;
};

struct viaduct_link {
	__u32 enable; /* 0 or 1 */
	__u32 reserved;
};

#define VIADUCT_SPAD_PEER (1U << 0)
#define VIADUCT_SPAD_WRITE (1U << 1)

struct viaduct_spad {
	__u32 index;
	__u32 flags;
	__u32 value; /* 0 in a request to read */
	__u32 reserved;
};

/* Memory of the program is registered for copies, until the slice is closed or VIADUCT_UNPIN is called. */
struct viaduct_pin {
	__u64 address;
	__u64 len;
	__u32 region; /* in the answer */
	__u32 reserved;
};

struct viaduct_unpin {
	__u32 region;
	__u32 reserved;
};

struct viaduct_copy {
	__u32 region;
	__u32 flags;
	__u64 source; /* in the region */
	__u64 target; /* in the slice */
	__u64 len;
	__u64 ticket; /* in the answer: the copy is done when that many are */
};

/* Counts for all copies into a slice, which are done in the order in which they were asked for. */
struct viaduct_copied {
	__u64 done;	 /* also those that failed */
	__u64 failed;	 /* their data may have arrived in part */
	__u64 by_engine; /* bytes that a DMA engine has copied */
	__u32 error;	 /* why the last one failed; ENOLINK: the slice has ended */
	__u32 reserved;
};

#define VIADUCT_IOC 0xb7
/* For port and client descriptors. */
#define VIADUCT_GET_INFO _IOR(VIADUCT_IOC, 0, struct viaduct_info)
#define VIADUCT_BIND _IOW(VIADUCT_IOC, 1, struct viaduct_bind)
#define VIADUCT_RING _IOW(VIADUCT_IOC, 2, struct viaduct_ring)
/* Where a slice of this port is: only `fd` of the request is set. */
#define VIADUCT_SLICE_INFO _IOWR(VIADUCT_IOC, 3, struct viaduct_slice)
/* Reads across the link: all stores that the caller made before are in the peer's memory. */
#define VIADUCT_FLUSH _IO(VIADUCT_IOC, 4)
/* Modules that are older answer ENOTTY. */
#define VIADUCT_GET_TRAITS _IOR(VIADUCT_IOC, 5, struct viaduct_traits)
/* For port descriptors. */
#define VIADUCT_SLICE _IOWR(VIADUCT_IOC, 8, struct viaduct_slice)
#define VIADUCT_CLIENT _IOWR(VIADUCT_IOC, 9, struct viaduct_client)
#define VIADUCT_LINK _IOW(VIADUCT_IOC, 10, struct viaduct_link)
#define VIADUCT_SPAD _IOWR(VIADUCT_IOC, 11, struct viaduct_spad)
#define VIADUCT_IRQ _IOWR(VIADUCT_IOC, 12, struct viaduct_irq)
#define VIADUCT_END _IOW(VIADUCT_IOC, 13, struct viaduct_end)
#define VIADUCT_ADOPT _IOWR(VIADUCT_IOC, 14, struct viaduct_adopt)
/* For interrupt objects: ETIMEDOUT, EINTR, or 0.  A raise only wakes: the caller changes `seq` before it. */
#define VIADUCT_IRQ_WAIT _IOW(VIADUCT_IOC, 24, struct viaduct_irq_wait)
#define VIADUCT_IRQ_RAISE _IOW(VIADUCT_IOC, 25, struct viaduct_ring)
/* For outbound slices. */
#define VIADUCT_PIN _IOWR(VIADUCT_IOC, 32, struct viaduct_pin)
#define VIADUCT_UNPIN _IOW(VIADUCT_IOC, 33, struct viaduct_unpin)
#define VIADUCT_COPY _IOWR(VIADUCT_IOC, 34, struct viaduct_copy)
#define VIADUCT_COPIED _IOR(VIADUCT_IOC, 35, struct viaduct_copied)

#endif
