/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "u_time.h"

#define NS_PER_S 1000000000

static int op_flags(int op, bool private_word)
{
	return private_word ? op | FUTEX_PRIVATE_FLAG : op;
}

/* The time of CLOCK_MONOTONIC at the end of a time-out that is not negative, as FUTEX_WAIT_BITSET takes it. */
static struct timespec absolute(int64_t timeout_ns)
{
	int64_t now = u_now_ns();
	int64_t end = timeout_ns > INT64_MAX - now ? INT64_MAX : now + timeout_ns;

	return (struct timespec){ .tv_sec = end / NS_PER_S, .tv_nsec = end % NS_PER_S };
}

int u_futex_wait(_Atomic uint32_t *word, uint32_t seen, uint32_t bits, int64_t timeout_ns,
		 bool private_word)
{
	struct timespec until;
	struct timespec *limit = NULL;

	if (timeout_ns >= 0) {
		until = absolute(timeout_ns);
		limit = &until;
	}
	if (syscall(SYS_futex, word, op_flags(FUTEX_WAIT_BITSET, private_word), seen, limit, NULL,
		    bits) != 0)
		return -errno;
	return 0;
}

int u_futex_wake(_Atomic uint32_t *word, int count, uint32_t bits, bool private_word)
{
	long woke = syscall(SYS_futex, word, op_flags(FUTEX_WAKE_BITSET, private_word), count, NULL,
			    NULL, bits);

	return woke < 0 ? -errno : (int)woke;
}
