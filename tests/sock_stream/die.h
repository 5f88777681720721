/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that dies by SIGKILL at a chosen call of a stream to the library or to the kernel. */
#ifndef DIE_H
#define DIE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The `n`th call from now on is the last thing that this process does, behind a call of `before`; 0: none. */
void die_at(unsigned n, void (*before)(void));
/* How many calls there were. */
unsigned die_calls(void);
/* Or the next record without payload, which fills the ring's end. */
void die_behind_empty(void);
/* Does an other end sleep until the next record comes? */
bool die_awaited(void);
/* Does a stream have posts under way, which end with the process? */
bool die_queued(void);

#ifdef __cplusplus
}
#endif

#endif
