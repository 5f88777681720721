/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_poll.h"

#include <errno.h>
#include <limits.h>

#include "u_time.h"

/*
 * Returns the time-out for poll(), -1 for U_NEVER, 0 for a deadline of 0 or in the past.  It is rounded up, so that
 * nothing returns before its deadline.
 */
static int timeout_ms(int64_t deadline)
{
	int64_t left = deadline == 0 ? 0 : u_time_left(deadline);

	if (left < 0)
		return -1;
	left = left / 1000000 + (left % 1000000 != 0);
	return left < INT_MAX ? (int)left : INT_MAX;
}

int u_poll(struct pollfd *fds, unsigned int count, int64_t deadline)
{
	int n;

	do {
		n = poll(fds, count, timeout_ms(deadline));
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int u_poll_events(int epoll, struct epoll_event *events, int max, int64_t deadline)
{
	int n;

	do {
		n = epoll_wait(epoll, events, max, timeout_ms(deadline));
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}
