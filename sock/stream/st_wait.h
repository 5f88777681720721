/* SPDX-License-Identifier: BSD-2-Clause */
/* st_wait.h - wait objects */
#ifndef ST_WAIT_H
#define ST_WAIT_H

#include "st_link.h"

/* Makes one without a descriptor that is there before the NIC is open; the caller has the first reference. */
int st_wait_new(struct st_wait **w);
void st_wait_get(struct st_wait *w);
/* Gives a reference back; the last one destroys the queue and closes the descriptor. */
void st_wait_put(struct st_wait *w);
/* Makes the completion queue, once the NIC is open: 0, -ENOBUFS. */
int st_wait_open(struct st_wait *w);
/* Takes what completed, and lists its streams; under the lock of w.  The count of descriptors. */
int st_wait_entries(struct st_wait *w);
/* Takes the stream off the list, and its reference away; under the lock of w. The caller has another reference. */
void st_wait_forget(struct st_wait *w, struct st_stream *s);
/* In a child of fork(): no queue, an empty list, and a descriptor of its own. */
void st_wait_renew(struct st_wait *w);

#endif
