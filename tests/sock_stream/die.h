/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that dies by SIGKILL at a chosen call of a stream to the library or to the kernel. */
#ifndef DIE_H
#define DIE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The process dies at the `n`th call from now on, after a call of `before`; 0: at none. */
void die_at(unsigned n, void (*before)(void));
/* The number of calls so far. */
unsigned die_calls(void);
/* The process dies after the next record without payload, which skips the rest of the ring. */
void die_behind_empty(void);
/* Does the other end of a stream sleep until the next record comes? */
bool die_awaited(void);
/* Does a stream have posts under way, which end with the process? */
bool die_queued(void);

#ifdef __cplusplus
}
#endif

#endif
