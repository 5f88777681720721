// SPDX-License-Identifier: BSD-2-Clause
/* Prints the time of a call of read() in picoseconds: the least of many batches. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 200
#define CALLS 10000

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int main(void)
{
	int64_t least = INT64_MAX, began, ns;
	char byte;
	int i, k;

	for (i = 0; i < BATCHES; i++) {
		began = now_ns();
		for (k = 0; k < CALLS; k++) {
			if (read(7, &byte, 1) != 0)
				return 1;
		}
		ns = now_ns() - began;
		least = ns < least ? ns : least;
	}
	printf("%lld\n", (long long)(least * 1000 / CALLS));
	return 0;
}
