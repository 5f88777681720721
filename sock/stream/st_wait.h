/* SPDX-License-Identifier: BSD-2-Clause */
/* st_wait.h - wait objects */
#ifndef ST_WAIT_H
#define ST_WAIT_H

#include "st_link.h"

/*
 * Makes one without a descriptor that is there before the NIC is open; the caller has the first reference.  0, -ENOMEM,
 * -EDEADLK where this thread has the process lock, as in a handler that has interrupted the holder.
 */
int st_wait_new(struct st_wait **w);
void st_wait_get(struct st_wait *w);
/*
 * Gives a reference back; the last one destroys the queue and closes the descriptor.  Accepts NULL.  Where this thread
 * has the process lock, a later st_put() does so.
 */
void st_wait_put(struct st_wait *w);
/* Makes the completion queue, unless it has one, once the NIC is open: 0, -ENOBUFS.  Takes the lock of w. */
int st_wait_open(struct st_wait *w);
/* Takes what completed, and lists its streams; under the lock of w.  The count of descriptors. */
int st_wait_entries(struct st_wait *w);
/* Takes a stream that is listed off the list, and its reference away; under the lock of w.  The caller has another. */
void st_wait_forget(struct st_wait *w, struct st_stream *s);
/* In a child of fork(): lists again what handlers have deferred, wherever another thread of the parent was with it. */
void st_deferred_renew(void);
/* In a child of fork(): no queue, an empty list, and a descriptor of its own if it had one before the NIC was open. */
void st_wait_renew(struct st_wait *w);

#endif
