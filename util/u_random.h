/* SPDX-License-Identifier: BSD-2-Clause */
/* Random bytes, for numbers that must not repeat and that others must not guess. */
#ifndef U_RANDOM_H
#define U_RANDOM_H

#include <stddef.h>

/*
 * Fills up to 256 bytes with random ones of the kernel; it never waits.  If the kernel has none yet, early in the boot
 * of a machine, the bytes follow from the clock: they differ from call to call, but others may guess them.
 */
void u_random(void *out, size_t n);

#endif
