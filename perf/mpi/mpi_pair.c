/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mpi_pair - latency, message rate and bandwidth between two ranks of any MPI library.
 *
 * The figures of vi_lat, vi_rate and vi_bw, by the median of batches, in lines of
 *	lat SIZE NANOSECONDS	half of a round trip
 *	rate SIZE NANOSECONDS	one way, a window of messages at a time, per message
 *
 *	mpirun -np 2 mpi_pair CPU0 CPU1 BATCH_MS SIZE...
 */
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 41
#define WINDOW 64
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
			MPI_Send(p->buf, p->size, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(p->buf, p->size, MPI_BYTE, !p->rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (p->rank == 1)
			MPI_Send(p->buf, p->size, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
	}
}

static int window(const struct pair *p)
{
	return p->size < LARGE ? WINDOW : LARGE_WINDOW;
}

/* `count` windows from rank 0 to rank 1, then one answer. */
static void windows(const struct pair *p, uint64_t count)
{
	MPI_Request req[WINDOW];
	MPI_Status status[WINDOW];
	int i;

	for (; count; count--) {
		for (i = 0; i < window(p); i++) {
			if (p->rank == 0)
				MPI_Isend(p->buf, p->size, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &req[i]);
			else
				MPI_Irecv(p->buf, p->size, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &req[i]);
		}
		MPI_Waitall(window(p), req, status);
	}
	if (p->rank == 0)
		MPI_Recv(p->buf, 1, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(p->buf, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
}

typedef void (*body)(const struct pair *p, uint64_t count);

static double timed(const struct pair *p, body run, uint64_t count)
{
	double start;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	run(p, count);
	return MPI_Wtime() - start;
}

/* A process may have lost its processor in some batches. */
static double quickest(const struct pair *p, body run, uint64_t count)
{
	double a = timed(p, run, count), b = timed(p, run, count);

	return a < b ? a : b;
}

/* Rank 0 decides how often. */
static uint64_t calibrate(const struct pair *p, body run, double seconds)
{
	unsigned long long count = 2;
	double took;

	for (;;) {
		took = quickest(p, run, count);
		MPI_Bcast(&took, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
		if (took >= seconds / 4 || count > (1ull << 32))
			break;
		count *= 2;
	}
	count = (unsigned long long)((double)count * seconds / took);
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

static void measure(struct pair *p, double seconds)
{
	double lat, rate;

	p->buf = aligned_alloc(4096, ((size_t)p->size + 8191) & ~(size_t)4095);
	if (!p->buf)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(p->buf, 1, (size_t)p->size);
	lat = median(p, round_trips, seconds) / 2;
	rate = median(p, windows, seconds) / window(p);
	if (p->rank == 0)
		printf("lat %d %.3f\nrate %d %.3f\n", p->size, lat, p->size, rate);
	free(p->buf);
}

int main(int argc, char **argv)
{
	struct pair p = { 0 };
	int ranks, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 5 || ranks != 2) {
		fprintf(stderr, "usage: mpirun -np 2 mpi_pair CPU0 CPU1 BATCH_MS SIZE...\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	if (pin(argv[1 + p.rank]))
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (i = 4; i < argc; i++) {
		p.size = (int)strtol(argv[i], NULL, 10);
		measure(&p, strtod(argv[3], NULL) / 1e3);
	}
	MPI_Finalize();
	return 0;
}
