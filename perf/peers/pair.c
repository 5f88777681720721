/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The figures of vi_lat, vi_rate and vi_bw over the library of a peer, by the median of batches, in lines of
 *	lat SIZE NANOSECONDS	half of a round trip
 *	rate SIZE NANOSECONDS	one way, a window of messages at a time, per message
 *
 *	PROGRAM CPU0 CPU1 BATCH_MS SIZE...
 *	PROGRAM --version
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pair.h"

#define BATCHES 41
#define LARGE_WINDOW 16 /* from LARGE on */
#define LARGE (1 << 20)

struct pair {
	int rank, size;
	char *buf;
};

static void round_trips(const struct pair *p, uint64_t count)
{
	for (; count; count--) {
		if (p->rank == 0)
			pair_send(p->buf, p->size);
		pair_recv(p->buf, p->size);
		if (p->rank == 1)
			pair_send(p->buf, p->size);
	}
}

static int window(const struct pair *p)
{
	return p->size < LARGE ? PAIR_WINDOW : LARGE_WINDOW;
}

/* `count` windows from process 0 to process 1, then one answer. */
static void windows(const struct pair *p, uint64_t count)
{
	for (; count; count--) {
		if (p->rank == 0)
			pair_send_many(p->buf, p->size, window(p));
		else
			pair_recv_many(p->buf, p->size, window(p));
	}
	if (p->rank == 0)
		pair_recv(p->buf, 1);
	else
		pair_send(p->buf, 1);
}

typedef void (*body)(const struct pair *p, uint64_t count);

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double timed(const struct pair *p, body run, uint64_t count)
{
	struct pair byte = { .rank = p->rank, .size = 1, .buf = p->buf };
	double start;

	round_trips(&byte, 1); /* both begin */
	start = now();
	run(p, count);
	return now() - start;
}

/* A process may have lost its processor in some batches. */
static double quickest(const struct pair *p, body run, uint64_t count)
{
	double a = timed(p, run, count), b = timed(p, run, count);

	return a < b ? a : b;
}

/* Process 0 decides how often. */
static uint64_t calibrate(const struct pair *p, body run, double seconds)
{
	uint64_t count = 2;
	double took;

	for (;;) {
		took = quickest(p, run, count);
		if (p->rank == 0)
			pair_send(&took, sizeof(took));
		else
			pair_recv(&took, sizeof(took));
		if (took >= seconds / 4 || count > (1ull << 32))
			break;
		count *= 2;
	}
	count = (uint64_t)((double)count * seconds / took);
	return count ? count : 1;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const struct pair *p, body run, double seconds)
{
	uint64_t count = calibrate(p, run, seconds);
	double took[BATCHES];
	int i;

	for (i = 0; i < BATCHES; i++)
		took[i] = timed(p, run, count) / (double)count;
	qsort(took, BATCHES, sizeof(took[0]), by_value);
	return took[BATCHES / 2] * 1e9;
}

static int pin(const char *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((int)strtol(cpu, NULL, 10), &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static int measure(struct pair *p, double seconds)
{
	double lat, rate;

	p->buf = aligned_alloc(4096, ((size_t)p->size + 8191) & ~(size_t)4095);
	if (!p->buf)
		return -1;
	memset(p->buf, 1, (size_t)p->size);
	lat = median(p, round_trips, seconds) / 2;
	rate = median(p, windows, seconds) / window(p);
	if (p->rank == 0)
		printf("lat %d %.3f\nrate %d %.3f\n", p->size, lat, p->size, rate);
	free(p->buf);
	return 0;
}

int main(int argc, char **argv)
{
	struct pair p = { 0 };
	int i;

	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts(pair_version()) < 0;
	if (argc < 5) {
		fprintf(stderr, "usage: %s CPU0 CPU1 BATCH_MS SIZE...\n", argv[0]);
		return 2;
	}
	p.rank = pair_open(&argc, &argv);
	if (pin(argv[1 + p.rank])) {
		perror("pinning to a processor");
		return 1;
	}
	for (i = 4; i < argc; i++) {
		p.size = (int)strtol(argv[i], NULL, 10);
		if (p.size < 1 || measure(&p, strtod(argv[3], NULL) / 1e3)) {
			fprintf(stderr, "%s: no memory, or not a size: %s\n", argv[0], argv[i]);
			return 1;
		}
	}
	pair_close();
	return 0;
}
