/* SPDX-License-Identifier: BSD-2-Clause */
/* The access rights of this process to its memory, from /proc/self/maps. */
#ifndef U_MAPS_H
#define U_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Is all of [start, start + len) mapped and readable, and is all of it writable?  Returns 0; -EFAULT
 * for a gap or a part that cannot be read; -errno when /proc cannot be read.
 */
int u_maps_check(const void *start, uint64_t len, bool *writable_out);

#endif
