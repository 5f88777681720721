/* SPDX-License-Identifier: BSD-2-Clause */
/* Abilities of this processor. */
#ifndef U_CPU_H
#define U_CPU_H

#include <stdbool.h>

/* Does u_demote_span() have an effect (x86: CLDEMOTE)? */
bool u_can_demote(void);

/*
 * Is a copy into lines that another processor has faster when they are prefetched?  Not on AMD's from family 26 on; for
 * figures see docs/performance.md.
 */
bool u_gains_by_prefetch(void);

#endif
