/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "sb.h"

#define MAX_BATCHES 10000
#define TRIES 3

static uint64_t operations; /* since the last figure, those that do not count included */

_Noreturn void sb_fail(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

_Noreturn void sb_refuse(const char *what)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	exit(1);
}

_Noreturn void sb_wrong(const char *option, const char *text)
{
	fprintf(stderr, "%s: %s '%s' is not understood; see --help\n",
		program_invocation_short_name, option, text);
	exit(2);
}

uint64_t sb_number(const char *option, const char *text, uint64_t most)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || value < 1 || value > most)
		sb_wrong(option, text);
	return value;
}

int64_t sb_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int64_t sb_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void sb_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

void *sb_memory(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p)
		sb_fail("memory");
	memset(p, 's', size);
	return p;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The least of some: one that lost its processor would make the batch too short. */
static int64_t least_time(sb_work *work, void *context, uint64_t count)
{
	int64_t least = INT64_MAX, took;
	int i;

	operations += TRIES * count;
	for (i = 0; i < TRIES; i++) {
		took = work(context, count);
		least = took < least ? took : least;
	}
	return least;
}

/* Doubles the batch until it takes as long as it shall; what ran before is the warming up. */
static uint64_t batch_length(const struct sb_options *options, sb_work *work, void *context)
{
	int64_t wanted = options->batch_us * 1000;
	uint64_t count = 1;

	while (count < UINT64_C(1) << 40 && least_time(work, context, count) <= wanted / 2)
		count *= 2;
	return count;
}

double sb_median(const struct sb_options *options, sb_work *work, void *context)
{
	uint64_t count = batch_length(options, work, context);
	long n = options->batches < MAX_BATCHES ? options->batches : MAX_BATCHES, i;
	double *times = sb_memory((size_t)n * sizeof(*times)), middle;

	operations += (uint64_t)n * count;
	for (i = 0; i < n; i++)
		times[i] = (double)work(context, count) / (double)count;
	qsort(times, (size_t)n, sizeof(*times), compare);
	middle = n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
	free(times);
	return middle;
}

void sb_say(const struct sb_options *options, const char *test, size_t size, const char *unit,
	    double value)
{
	printf("{\"test\": \"%s\", \"wait\": \"%s\", \"size_bytes\": %zu, \"connections\": %ld, "
	       "\"operations\": %llu, \"unit\": \"%s\", \"value\": %.6g}\n",
	       test, options->polled ? "poll" : "block", size, options->connections,
	       (unsigned long long)operations, unit, value);
	fflush(stdout);
	operations = 0;
}
