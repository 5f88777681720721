/* SPDX-License-Identifier: BSD-2-Clause */
/* alter.h - changes what the streams of this process post, and when they learn that it is complete */
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
/* No send is complete, and nothing comes from completion queues, until it is called with false. */
void alter_hold(bool on);

#ifdef __cplusplus
}
#endif

#endif
