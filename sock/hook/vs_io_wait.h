/* SPDX-License-Identifier: BSD-2-Clause */
/* How a call over a stream waits: its deadline, signals that interrupt it, and pthread_cancel(). */
#ifndef VS_IO_WAIT_H
#define VS_IO_WAIT_H

#include <poll.h>

#include "vs_obj.h"
#include "vs_time.h"

/*
 * Waits for `events` of a stream up to `until`, which vs_io_deadline() gives, NULL: no end.  0 or -errno: -EAGAIN when
 * it is over, -EINTR when a signal's handler ends the call, as each does with a deadline.
 */
int vs_io_wait(struct vs_obj *o, struct st_stream *s, unsigned int events,
	       const struct timespec *until);
/*
 * As st_sleep(), whose stream is that of the object: above 0 or -errno, -EINTR for any handler.  pthread_cancel() ends
 * it and gives the object's reference back.
 */
int vs_io_wait_once(struct vs_obj *o, struct st_stream *s, unsigned int events,
		    const struct timespec *until);
/* For st_config, in vs_io_wait_once(): a sleep that signals end, and pthread_cancel().  Events, 0 or -errno. */
int vs_io_sleep(struct pollfd *v, unsigned int n, const struct timespec *left);

/* The deadline of a call that waits now, for `timeout_ns`: `at`; NULL, no end, for 0. */
static inline const struct timespec *vs_io_deadline(uint64_t timeout_ns, struct timespec *at)
{
	if (timeout_ns == 0)
		return NULL;
	*at = vs_in_ns(timeout_ns);
	return at;
}

#endif
