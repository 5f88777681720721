/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of this PE: its segments and its peers. */
#ifndef OSH_STATE_H
#define OSH_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <vipl.h>
#include <vipl_ext.h>

#include "boot.h"
#include "osh_base.h"

/* What lies apart by -mcmodel=medium, sections with addresses of their own, or other memory that was mapped between. */
#define OSH_DATA_PIECES 8

/* The times that the heap can grow. */
#define OSH_EXTENTS 16

/* The heap, the pieces of the executable's variables, as many as it has, and what the heap has grown by. */
enum {
	OSH_HEAP,
	OSH_DATA,
	OSH_EXTENT = OSH_DATA + OSH_DATA_PIECES,
	OSH_SEGMENTS = OSH_EXTENT + OSH_EXTENTS
};

/* The heap and the program's part of it begin at a multiple of it, in every PE. */
#define OSH_ALIGN_MAX ((size_t)16 << 20)

struct osh_segment {
	uint8_t *base; /* in this process */
	size_t len;
	VIP_MEM_HANDLE handle;
};

/* Where another PE's segment is, in its process. */
struct osh_remote {
	uint64_t base;
	VIP_MEM_HANDLE handle;
};

/*
 * Another PE.  Writer: osh_open.c, before any other thread can use it, but for `span` and `at`, which the one thread
 * writes that maps the memory, and `mapping`, which is under the lock of osh_map.c.
 */
struct osh_peer {
	/*
	 * Bytes of each segment that can be accessed at `at`, here: 0 while it is not mapped, and always of
	 * a far PE.  Written once, after `at`.
	 */
	_Atomic size_t span[OSH_EXTENT];
	uint8_t *at[OSH_EXTENT];
	struct osh_remote seg[OSH_EXTENT];
	bool near, same_program; /* of equal pieces, too */
	bool mapping;		 /* a thread is about to map it: osh_map.c */
	uint16_t host_len;
	uint8_t host[22]; /* address of its host */
};

/* An extent of the heap of another PE: as in struct osh_peer. It is asked for at its first use: osh_target.c. */
struct osh_peer_extent {
	_Atomic size_t span;
	uint8_t *at;
	struct osh_remote seg;
	_Atomic uint32_t known; /* `seg` is filled; set after it */
};

/* What the heap has grown by once.  Writer: osh_grow.c, before it counts in osh_pe.extents. */
struct osh_extent {
	size_t start;		       /* offset in the program's part of the heap */
	struct osh_peer_extent *peers; /* for each PE of the world */
};

/*
 * In the library's part of the heap, at one offset in all PEs: where the extents of this PE are, for the others to
 * read, and what PEs agree on when the heap grows.  Writer: osh_grow.c.
 */
struct osh_extent_table {
	struct osh_remote at[OSH_EXTENTS];
	uint64_t accord[3];
};

/*
 * This PE.  Writer: shmem_init and shmem_finalize, which run beside no other routine; `child`: a child of fork().
 */
struct osh_state {
	int me, n;
	struct osh_peer *peers;
	struct osh_segment seg[OSH_SEGMENTS];
	int segments;	     /* of these, without extents */
	_Atomic int extents; /* of the heap; counted when all PEs have one more */
	struct osh_extent extent[OSH_EXTENTS];
	size_t extents_at;     /* offset of struct osh_extent_table in the heap */
	size_t internal_bytes; /* bytes at the start of the heap that belong to the library */
	bool has_far_peers;
	bool oversubscribed; /* PEs of this machine, also of other emulated hosts, share processors */
	bool child; /* this process is a child of a PE by fork(): it has neither memory of PEs nor a part in the job */
	int level; /* of threads */
	struct boot_job job;
	VIP_NIC_HANDLE nic;
};

extern struct osh_state osh_pe;

/*
 * Ends the process: routine `fn`, or (NULL) one for a team, was called outside of the job, or in a child of fork().
 */
_Noreturn void osh_not_in_job(const char *fn);

/*
 * In a child of fork(): makes it a process without PEs, whose routines end with a message; does nothing outside of a
 * job.
 */
void osh_state_leave_to_parent(void);

/* Is s a segment of the executable's variables, not of the heap and not OSH_SEGMENTS? */
static inline bool osh_is_data(int s)
{
	return s >= OSH_DATA && s < OSH_EXTENT;
}

/* What is known of the extent s, OSH_EXTENT or more, of PE `pe` of the world. */
static inline struct osh_peer_extent *osh_extent_of(int pe, int s)
{
	return &osh_pe.extent[s - OSH_EXTENT].peers[pe];
}

/* How many extents the heap has. */
static inline int osh_extents(void)
{
	/* R: pairs with osh_grow(): those that count are filled. */
	return atomic_load_explicit(&osh_pe.extents, memory_order_acquire);
}

/* As osh_segment_of(), for addresses in extents of the heap. */
int osh_extent_with(const void *addr, size_t n, size_t *offset);
/* As osh_near(), for them; `pe` is a number of the world. */
void *osh_extent_near(const void *addr, size_t n, int pe);

/*
 * The segment of this PE that has all of these bytes, with the offset; or OSH_SEGMENTS, with *offset as before. For
 * n = 0 the address has to lie in one, too.
 */
static inline int osh_segment_of(const void *addr, size_t n, size_t *offset)
{
	for (int s = 0; s < osh_pe.segments; s++) {
		size_t off = (size_t)((uintptr_t)addr - (uintptr_t)osh_pe.seg[s].base);

		if (off < osh_pe.seg[s].len && n <= osh_pe.seg[s].len - off) {
			*offset = off;
			return s;
		}
	}
	return osh_unlikely(osh_extents() > 0) ? osh_extent_with(addr, n, offset) : OSH_SEGMENTS;
}

/*
 * Where n bytes of PE pe, a number of the world, are mapped here; NULL where they are not, or not yet, where n is 0,
 * in the debug mode, and for extents, so that these cost nothing where there are none: osh_target() knows them.
 */
static inline void *osh_near(const void *addr, size_t n, int pe)
{
	struct osh_peer *p;
	size_t off, span;

	if (osh_unlikely((unsigned int)pe >= (unsigned int)osh_pe.n))
		return NULL;
	p = &osh_pe.peers[pe];
	off = (size_t)((uintptr_t)addr - (uintptr_t)osh_pe.seg[OSH_HEAP].base);
	/* R: pairs with osh_map_publish(): `at` is set where the span is not 0. */
	span = atomic_load_explicit(&p->span[OSH_HEAP], memory_order_acquire);
	if (osh_likely(off < span && n - 1 < span - off))
		return p->at[OSH_HEAP] + off;
	for (int s = OSH_DATA; s < osh_pe.segments; s++) {
		off = (size_t)((uintptr_t)addr - (uintptr_t)osh_pe.seg[s].base);
		span = atomic_load_explicit(&p->span[s], memory_order_acquire);
		if (off < span && n - 1 < span - off)
			return p->at[s] + off;
	}
	return NULL;
}

#endif
