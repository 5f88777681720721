/* SPDX-License-Identifier: BSD-2-Clause */
/* alter.h - changes the posts of this process's streams, and delays their completions */
#ifndef ALTER_H
#define ALTER_H

#include <stdbool.h>

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

#ifdef __cplusplus
}
#endif

#endif
