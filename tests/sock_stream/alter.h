/* SPDX-License-Identifier: BSD-2-Clause */
/* alter.h - changes the posts of this process's streams, delays their completions, and hides a record once */
#ifndef ALTER_H
#define ALTER_H

#include <stdbool.h>
#include <stdint.h>

#include <vipl.h>
#include <vipl_ext.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called with each descriptor before it is posted, and the count of posts. */
typedef void (*alter_fn)(VIP_DESCRIPTOR *d, unsigned n);
void alter_by(alter_fn fn);
/* While on, no send completes and completion queues return nothing. */
void alter_hold(bool on);
/* The next look of this thread at a record after that position of its ring finds none. */
void alter_hide(uint64_t position);

#ifdef __cplusplus
}
#endif

#endif
