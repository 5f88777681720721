/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtual_time.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "u_futex.h"
#include "u_poll.h"
#include "u_time.h"

#define BEGIN_NS INT64_C(1000000000000)
#define BEGIN_CALENDAR_NS (INT64_C(1767225600) * 1000000000) /* 2026 */

static _Atomic int64_t passed;
static _Atomic int64_t calendar_ahead;
static bool (*take_turn)(void *arg, int64_t until);
static void *turn_arg;

void vt_pass(int64_t ns)
{
	atomic_fetch_add(&passed, ns);
}

void vt_set_calendar(int64_t ahead_ns)
{
	atomic_store(&calendar_ahead, ahead_ns);
}

void vt_turns(bool (*take)(void *arg, int64_t until), void *arg)
{
	take_turn = take;
	turn_arg = arg;
}

/* ---- u_time.c ---- */

int64_t u_now_ns(void)
{
	return BEGIN_NS + atomic_load(&passed);
}

int64_t u_calendar_ns(void)
{
	return BEGIN_CALENDAR_NS + atomic_load(&calendar_ahead) + atomic_load(&passed);
}

void u_nap_ns(int64_t ns)
{
	vt_pass(ns);
	sched_yield();
}

void u_nap_until(int64_t at)
{
	int64_t left = at - u_now_ns();

	u_nap_ns(left > 0 ? left : 0);
}

void u_yield(void)
{
	sched_yield();
}

/* ---- u_poll.c ---- */

/* Called when nothing is ready: lets others take a turn or time pass; returns how long the kernel may wait, in ms. */
static int patience(int64_t deadline)
{
	if (take_turn != NULL && take_turn(turn_arg, deadline))
		return 0;
	if (deadline == U_NEVER)
		return -1;
	if (deadline > u_now_ns())
		vt_pass(deadline - u_now_ns());
	return 0;
}

static bool over(int64_t deadline)
{
	return deadline != U_NEVER && u_now_ns() >= deadline;
}

int u_poll(struct pollfd *fds, unsigned int count, int64_t deadline)
{
	int n, ms = 0;

	do {
		bool last = over(deadline);

		n = poll(fds, count, ms);
		if (n == 0 && last)
			return 0;
		ms = n == 0 ? patience(deadline) : 0;
	} while (n == 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : n;
}

int u_poll_events(int epoll, struct epoll_event *events, int max, int64_t deadline)
{
	int n, ms = 0;

	do {
		bool last = over(deadline);

		n = epoll_wait(epoll, events, max, ms);
		if (n == 0 && last)
			return 0;
		ms = n == 0 ? patience(deadline) : 0;
	} while (n == 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : n;
}

/* ---- u_futex.c ---- */

static long futex(_Atomic uint32_t *word, int op, uint32_t value, uint32_t bits, bool private_word)
{
	return syscall(SYS_futex, word, op | (private_word ? FUTEX_PRIVATE_FLAG : 0), value, NULL,
		       NULL, bits);
}

int u_futex_wait(_Atomic uint32_t *word, uint32_t seen, uint32_t bits, int64_t timeout_ns,
		 bool private_word)
{
	if (timeout_ns == 0)
		return atomic_load(word) == seen ? -ETIMEDOUT : -EAGAIN;
	return futex(word, FUTEX_WAIT_BITSET, seen, bits, private_word) != 0 ? -errno : 0;
}

int u_futex_wake(_Atomic uint32_t *word, int count, uint32_t bits, bool private_word)
{
	long woke = futex(word, FUTEX_WAKE_BITSET, (uint32_t)count, bits, private_word);

	return woke < 0 ? -errno : (int)woke;
}
