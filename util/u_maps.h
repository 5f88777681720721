/* SPDX-License-Identifier: BSD-2-Clause */
/* What this process may do with its memory, as /proc/self/maps has it. */
#ifndef U_MAPS_H
#define U_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Is all of [start, start + len) mapped and readable, and is all of it writable?  Returns 0; -EFAULT
 * for a gap or a part that cannot be read; -errno when there is nothing to read that from.
 */
int u_maps_check(const void *start, uint64_t len, bool *writable_out);

#endif
