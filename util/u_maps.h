/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel's list of mappings, /proc/self/maps, says of memory of this process. */
#ifndef U_MAPS_H
#define U_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct u_mapping {
	uint64_t from, to;
	bool readable, writable;
	bool private_anonymous;
	/* Of the list alone: */
	bool executable, stack;
	bool private_file;	/* a file's, but what is written there stays in this process */
	uint64_t offset, inode; /* of a file, or of shared memory */
	uint32_t dev_major, dev_minor;
};

/*
 * Is all of [start, start + len) mapped and readable, and is all of it writable?  Returns 0; -EFAULT
 * for a gap or a part that cannot be read; -errno when /proc cannot be read.
 */
int u_maps_check(const void *start, uint64_t len, bool *writable_out);

/*
 * The same for private anonymous memory, which no file, device or other process can take away or
 * hold back: is it all that, in a few mappings?  Looks at no page and takes the same time for any
 * `len`: with PROCMAP_QUERY (Linux 6.11) and a descriptor that stays open.  Without, a long range is
 * looked up in the list, as far as that takes less time than asking about its pages.
 *
 * Returns 0; -EFAULT when a part is something else or the kernel did not say, without a reason: the
 * caller asks in another way.
 */
int u_maps_check_private(const void *start, uint64_t len, bool *writable_out);

/*
 * Is all of [start, start + len) private memory, anonymous or of a file, that may be read and written, of
 * pages of the ordinary size, with no attribute but hints: no stack, not locked, as any for fork, core dumps
 * and faults?  Does not tell pages that are guarded, or that lie behind the end of a file.  Reads what the kernel
 * tells of every mapping up to there, which takes some microseconds for each and milliseconds for each GiB present.
 *
 * Returns 0; -EFAULT for a gap; -EOPNOTSUPP for other memory; -errno when /proc cannot be read now.
 * `why` tells it in a few words.
 */
#define U_MAPS_WHY 96
int u_maps_check_plain(const void *start, uint64_t len, char why[U_MAPS_WHY]);

/* The first mapping that ends behind `start`.  0; -ENOENT: none; -errno when /proc cannot be read. */
int u_maps_find(const void *start, struct u_mapping *out);

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* madvise() to make pages present, again when a signal ends it.  0 or -errno. */
int u_maps_populate(void *start, uint64_t len, int advice);

/*
 * mremap() to a fixed address, by the system call: a program may have replaced the function by one that does not know
 * all that the call does, or that takes locks.  `to`, or MAP_FAILED with errno.
 */
static inline void *u_maps_move(void *from, uint64_t old_len, uint64_t len, void *to)
{
	return (void *)syscall(SYS_mremap, from, old_len, len,
			       (long)(MREMAP_MAYMOVE | MREMAP_FIXED), to);
}

/* In a child of fork(): the descriptor shows the mappings of the parent. */
void u_maps_forked(void);

#endif
