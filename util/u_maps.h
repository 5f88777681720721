/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of memory of this process by the kernel's list of mappings, /proc/self/maps. */
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
	/* Set only if the mapping was read from the list: */
	bool executable, stack;
	bool private_file;	/* a file's, but what is written there stays in this process */
	uint64_t offset, inode; /* of a file, or of shared memory */
	uint32_t dev_major, dev_minor;
};

/*
 * Is all of [start, start + len) mapped and readable, and is all of it writable?  Returns 0; -EFAULT
 * for a gap or a part that cannot be read; -errno when /proc cannot be read.  An error leaves *writable_out.
 */
int u_maps_check(const void *start, uint64_t len, bool *writable_out);

/*
 * As u_maps_check(), and is all of it private anonymous memory, which no file, device or other process
 * can take away or hold back, in a few mappings?  Looks at no page.  With PROCMAP_QUERY (Linux 6.11) and
 * a descriptor that stays open, this takes the same time for any `len`; without it the list is read, as
 * long as that takes less time than populating the pages.
 *
 * Returns 0; -EFAULT when a part is something else or the kernel did not tell: the caller then checks
 * in another way.  That leaves *writable_out.
 */
int u_maps_check_private(const void *start, uint64_t len, bool *writable_out);

#define U_MAPS_WHY 96
/*
 * Is all of [start, start + len) private memory, anonymous or of a file, that may be read and written, of
 * pages of the ordinary size, with no attributes except hints: no stack, not locked, without settings for fork,
 * core dumps and faults?  Does not detect pages that are guarded, or that lie after the end of a file.  Reads the
 * details of every mapping up to there, which takes some microseconds for each and milliseconds for each GiB present.
 *
 * Returns 0; -EFAULT for a gap; -EOPNOTSUPP for other memory; -errno when /proc cannot be read now.
 * `why` gets the reason in a few words.
 */
int u_maps_check_plain(const void *start, uint64_t len, char why[U_MAPS_WHY]);

/*
 * Finds the first mapping that ends after `start`: it contains that, or lies above.  0; -ENOENT: none; -errno when
 * /proc cannot be read.  *out means nothing after an error.
 */
int u_maps_find(const void *start, struct u_mapping *out);

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/*
 * Makes pages present by madvise() with MADV_POPULATE_READ or _WRITE, which is repeated when a signal ends it.  0 or
 * -errno, -EINVAL also if Linux does not know the advice.
 */
int u_maps_populate(void *start, uint64_t len, int advice);

/*
 * mremap() to a fixed address, by the system call: a program may have replaced the function by one that cannot do all
 * that the call does, or that takes locks.  `to`, or MAP_FAILED with errno.
 */
static inline void *u_maps_move(void *from, uint64_t old_len, uint64_t len, void *to)
{
	return (void *)syscall(SYS_mremap, from, old_len, len,
			       (long)(MREMAP_MAYMOVE | MREMAP_FIXED), to);
}

/* In a child of fork(): closes the descriptor, which shows the mappings of the parent. */
void u_maps_forked(void);

#endif
