/* SPDX-License-Identifier: BSD-2-Clause */
/* poll() and epoll_wait() with a deadline. */
#ifndef U_POLL_H
#define U_POLL_H

#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>

/*
 * Poll until a deadline of u_now_ns(); U_NEVER: none; 0: they do not wait.  A call that a signal interrupts goes on.
 * They return how many are ready, 0 at the deadline, or -errno, and are cancellation points.
 */
int u_poll(struct pollfd *fds, unsigned int count, int64_t deadline);
int u_poll_events(int epoll, struct epoll_event *events, int max, int64_t deadline);

#endif
