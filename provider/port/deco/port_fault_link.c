/* SPDX-License-Identifier: BSD-2-Clause */
/* fault: the link goes down and comes up again, and the event descriptors report it. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "port_fault_priv.h"
#include "u_cancel.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_time.h"

/* Counts a change of the link, and makes the event descriptor readable. */
static void fault_notify(struct fault *f)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	uint64_t one = 1;

	atomic_fetch_add_explicit(&f->changes, 1, memory_order_relaxed);
	if (f->event_fd >= 0 && write(f->event_fd, &one, sizeof(one)) < 0)
		u_debug("port", "port %s event: %s", f->port.limits.name, strerror(errno));
}

/* Sets the timer to the time at which the link comes back, or stops it. */
static void timer_arm(struct fault *f)
{
	int64_t at = atomic_load_explicit(&f->up_at, memory_order_relaxed);
	struct itimerspec its = { 0 };

	if (f->timer_fd < 0)
		return;
	if (at != U_NEVER) {
		its.it_value.tv_sec = at / 1000000000;
		its.it_value.tv_nsec = at % 1000000000;
	}
	timerfd_settime(f->timer_fd, TFD_TIMER_ABSTIME, &its, NULL);
}

void fault_down(struct fault *f)
{
	u_lock_take(&f->lock);
	if (!atomic_exchange_explicit(&f->down, true, memory_order_seq_cst)) {
		atomic_store_explicit(&f->up_at,
				      f->opt.down_ms == 0
					      ? U_NEVER
					      : u_now_ns() + (int64_t)f->opt.down_ms * 1000000,
				      memory_order_relaxed);
		port_link_disable(f->port.inner);
		timer_arm(f);
		fault_notify(f);
	}
	u_lock_drop(&f->lock);
}

void fault_up(struct fault *f, int64_t now)
{
	u_lock_take(&f->lock);
	if (atomic_load_explicit(&f->down, memory_order_relaxed) &&
	    now >= atomic_load_explicit(&f->up_at, memory_order_relaxed)) {
		atomic_fetch_add_explicit(&f->ups, 1, memory_order_relaxed);
		if (f->enabled)
			port_link_enable(f->port.inner);
		atomic_store_explicit(&f->up_at, U_NEVER, memory_order_relaxed);
		atomic_store_explicit(&f->down, false, memory_order_seq_cst);
		timer_arm(f);
		fault_notify(f);
	}
	u_lock_drop(&f->lock);
}

bool fault_is_down(struct fault *f)
{
	int64_t at;
	int64_t now;

	if (u_likely(!atomic_load_explicit(&f->down, memory_order_acquire)))
		return false;
	at = atomic_load_explicit(&f->up_at, memory_order_relaxed);
	if (at == U_NEVER)
		return true;
	now = u_now_ns();
	if (now < at)
		return true;
	fault_up(f, now);
	return atomic_load_explicit(&f->down, memory_order_acquire);
}

int fault_link_enable(struct port *p)
{
	struct fault *f = fault_of(p);
	int err = 0;

	u_lock_take(&f->lock);
	if (!atomic_load_explicit(&f->down, memory_order_relaxed))
		err = port_link_enable(p->inner);
	if (err == 0)
		f->enabled = true;
	u_lock_drop(&f->lock);
	return err;
}

/* Disables the port below; it then stays disabled when the decorator lets the link come up. */
void fault_link_disable(struct port *p)
{
	struct fault *f = fault_of(p);

	u_lock_take(&f->lock);
	f->enabled = false;
	port_link_disable(p->inner);
	u_lock_drop(&f->lock);
}

/* As the port below, but down while this decorator says so; each time that it came up again counts as a generation. */
enum port_link fault_link_state(struct port *p, uint32_t *generation_out)
{
	struct fault *f = fault_of(p);
	bool down = fault_is_down(f);
	uint32_t generation;
	enum port_link state = port_link_state(p->inner, &generation);

	if (generation_out != NULL) {
		generation += atomic_load_explicit(&f->ups, memory_order_relaxed);
		*generation_out = generation != 0 ? generation : 1;
	}
	return down ? PORT_LINK_DOWN : state;
}

/* Lets epoll_fd report input of fd.  0 or -errno, -EBADF if one of them is -1. */
static int epoll_add(int epoll_fd, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	if (epoll_fd < 0 || fd < 0)
		return -EBADF;
	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

/* Closes the descriptor, if it is one, and sets it to -1. */
static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void fault_events_close(struct fault *f)
{
	close_fd(&f->epoll_fd);
	close_fd(&f->event_fd);
	close_fd(&f->timer_fd);
}

/* Opens all event descriptors or, after a failure, which is logged, none.  Called with the lock held. */
static void fault_events_open(struct fault *f)
{
	int below = port_event_fd(f->port.inner);
	char text[U_FD_ERROR];
	int err;

	f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	f->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	err = epoll_add(f->epoll_fd, f->event_fd);
	if (err == 0)
		err = epoll_add(f->epoll_fd, f->timer_fd);
	if (err == 0 && below >= 0)
		err = epoll_add(f->epoll_fd, below);
	if (err != 0) {
		u_error("port", "event descriptors for port %s were sought, there are none: %s",
			f->port.limits.name, u_fd_error(-err, text));
		fault_events_close(f);
		return;
	}
	timer_arm(f);
}

/* Opens the event descriptors when it is first called; -1: that failed. */
int fault_event_fd(struct port *p)
{
	struct fault *f = fault_of(p);

	u_lock_take(&f->lock);
	if (f->epoll_fd < 0)
		fault_events_open(f);
	u_lock_drop(&f->lock);
	return f->epoll_fd;
}

/* Reads a descriptor, which does not block, until it has nothing left; ignores -1. */
static void drain(int fd)
{
	uint64_t count;

	while (fd >= 0 && read(fd, &count, sizeof(count)) > 0)
		;
}

/* Returns the changes of the link below and those that the decorator made, or the error of the port below. */
int fault_service(struct port *p)
{
	struct fault *f = fault_of(p);
	int below;

	drain(f->timer_fd);
	fault_is_down(f);
	drain(f->event_fd);
	below = port_service(p->inner);
	if (below < 0)
		return below;
	return below + (int)atomic_exchange_explicit(&f->changes, 0, memory_order_relaxed);
}
