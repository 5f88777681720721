/* SPDX-License-Identifier: BSD-2-Clause */
/* The events for which the event loop of ag_run() waits, and ending its wait. */
#include "ag_loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ag_state.h"

int ag_loop_open(struct ag_agent *a)
{
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (a->epoll < 0)
		return -errno;
	a->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->wake < 0)
		return -errno;
	return ag_loop_watch(a, a->wake, EPOLLIN, AG_EV(AG_EV_WAKE, 0));
}

int ag_loop_watch(struct ag_agent *a, int fd, uint32_t events, uint64_t what)
{
	struct epoll_event ev = { .events = events, .data.u64 = what };

	if (epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &ev) == 0)
		return 0;
	if (errno == EEXIST && epoll_ctl(a->epoll, EPOLL_CTL_MOD, fd, &ev) == 0)
		return 0;
	return -errno;
}

void ag_loop_unwatch(struct ag_agent *a, int fd)
{
	epoll_ctl(a->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void ag_loop_wake(struct ag_agent *a)
{
	uint64_t one = 1;
	ssize_t n = write(a->wake, &one, sizeof(one));

	(void)n; /* EAGAIN: the counter is full, so a wake-up is already under way */
}

void ag_loop_stop(struct ag_agent *a)
{
	atomic_store(&a->stop, true);
	ag_loop_wake(a);
}
