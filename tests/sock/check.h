/* SPDX-License-Identifier: BSD-2-Clause */
/* For programs of sock_test.py: the first condition that does not hold ends the program with a line. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ends at once by _exit(), since other threads may still run. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("line %d: not %s: %s\n", __LINE__, #condition, strerror(errno));    \
			fflush(stdout);                                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* SIGALRM ends the program in so many seconds as the test gives it, which depend on the machine and the build. */
static inline void end_when_late(void)
{
	const char *text = getenv("CHECK_SECONDS");

	alarm(text ? (unsigned int)strtoul(text, NULL, 10) : 120);
}

#endif
