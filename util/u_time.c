/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_time.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "u_cancel.h"

#define NS_PER_S 1000000000

static struct timespec spec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
}

int64_t u_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t u_calendar_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

void u_nap_ns(int64_t ns)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct timespec ts = spec(ns);

	nanosleep(&ts, NULL);
}

void u_nap_until(int64_t at)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct timespec ts = spec(at);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

void u_yield(void)
{
	sched_yield();
}
