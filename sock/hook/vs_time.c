// SPDX-License-Identifier: BSD-2-Clause
#include "vs_time.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vs_real.h"

#define SPIN_NS 50000
#define SLICE_NS 1000000
#define SECOND UINT64_C(1000000000)

uint64_t vs_spin_ns;

void vs_spin_init(void)
{
	const char *wait = secure_getenv("VIADUCT_WAIT");

	if (!wait || strcmp(wait, "block") != 0)
		vs_spin_ns = SPIN_NS;
}

uint64_t vs_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

struct timespec vs_in_ns(uint64_t ns)
{
	uint64_t at = vs_now_ns();

	at = ns > INT64_MAX - at ? INT64_MAX : at + ns;
	return (struct timespec){ .tv_sec = (time_t)(at / SECOND), .tv_nsec = (long)(at % SECOND) };
}

bool vs_bad_time(const struct timespec *t)
{
	return t && (t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec >= (long)SECOND);
}

struct timespec vs_time_left(const struct timespec *until)
{
	uint64_t now = vs_now_ns();
	uint64_t end = (uint64_t)until->tv_sec * SECOND + (uint64_t)until->tv_nsec;
	uint64_t left = end > now ? end - now : 0;

	return (struct timespec){ .tv_sec = (time_t)(left / SECOND),
				  .tv_nsec = (long)(left % SECOND) };
}

int vs_sleep_poll(struct pollfd *v, nfds_t n, const struct timespec *until, const sigset_t *mask)
{
	struct timespec left;

	if (until)
		left = vs_time_left(until);
	return vs_real.ppoll(v, n, until ? &left : NULL, mask);
}

int vs_sleep_slice(struct pollfd *v, nfds_t n, const struct timespec *until, bool brief,
		   const sigset_t *mask)
{
	struct timespec turn;
	int rc;

	if (!brief)
		return vs_sleep_poll(v, n, until, mask);
	turn = vs_in_ns(SLICE_NS);
	if (until && (until->tv_sec < turn.tv_sec ||
		      (until->tv_sec == turn.tv_sec && until->tv_nsec <= turn.tv_nsec)))
		return vs_sleep_poll(v, n, until, mask);
	rc = vs_sleep_poll(v, n, &turn, mask);
	return rc == 0 ? 1 : rc;
}
