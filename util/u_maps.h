/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel's list of mappings, /proc/self/maps, says of memory of this process. */
#ifndef U_MAPS_H
#define U_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

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

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* madvise() to make pages present, again when a signal ends it.  0 or -errno. */
int u_maps_populate(void *start, uint64_t len, int advice);

/* In a child of fork(): the descriptor shows the mappings of the parent. */
void u_maps_forked(void);

#endif
