/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The raw limits: the figures of two processes of this machine with loads, stores,
 * copies, futexes and sockets, without any message library.
 *
 * A measurement is a job: two functions, one per process, that do `count` steps together.  Side 0
 * times them; the figure is the median over batches of the time of one step.
 */
#ifndef RAW_H
#define RAW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RAW_MAX_BATCHES 1001u
#define RAW_LINE 64u

struct raw_job;

/* One side's part of one batch.  Runs in a process of its own. */
typedef void (*raw_side)(struct raw_job *job, uint64_t count);

enum raw_unit {
	RAW_HALF_TRIP, /* a step is a round trip, the figure half of it in ns */
	RAW_RATE,      /* a step is a message, the figure messages per second */
	RAW_BANDWIDTH, /* a step is a message, the figure bytes per second */
	RAW_STEP,      /* the figure is the time of a step in ns */
};

struct raw_job {
	const char *test, *variant;
	raw_side side[2]; /* side[1] NULL: one process alone */
	enum raw_unit unit;
	bool one_core; /* both on the first processor */
	uint64_t size; /* of a message, 0 if it has none */
	uint32_t window;
	uint64_t chunk, ring;
	uint32_t pairs; /* of buffers, each for some batches in turn; 0: one */
	double idle_ns; /* part of a step that is not counted */
	int fd[2];	/* sockets of the sides, -1: none */

	uint8_t *shm; /* shared, zero at first, raw_shm_len() bytes */
	/* Each process has its own copy of the fields below. */
	uint8_t *own;  /* private buffer of `size` bytes */
	uint64_t done; /* steps, or chunks, so far */
	uint64_t acked;
	uint64_t batch; /* the number of this one */
};

struct raw_config {
	bool pin, json;
	int cpu[2];
	uint32_t batches;
	double batch_ms, timeout;
	uint64_t *sizes; /* NULL: those of each test */
	size_t size_count;
	bool wanted[16]; /* by test */
};

/*
 * Runs the job in two new processes.  Returns 0 with the median in *out, in the job's unit, or
 * -errno after a line on standard error.
 */
int raw_run(const struct raw_config *cfg, struct raw_job *job, double *out);

size_t raw_shm_len(const struct raw_job *job);

/* Takes a finished measurement: prints or keeps it. */
typedef int (*raw_emit)(const struct raw_config *cfg, struct raw_job *job);

/* The tests: each runs its jobs through emit(), until one fails. */
int raw_test_speed(const struct raw_config *cfg, raw_emit emit);
int raw_test_line(const struct raw_config *cfg, raw_emit emit);
int raw_test_slot(const struct raw_config *cfg, raw_emit emit);
int raw_test_fifo(const struct raw_config *cfg, raw_emit emit);
int raw_test_pingpong(const struct raw_config *cfg, raw_emit emit);
int raw_test_put(const struct raw_config *cfg, raw_emit emit);
int raw_test_stream(const struct raw_config *cfg, raw_emit emit);
int raw_test_chunk(const struct raw_config *cfg, raw_emit emit);
int raw_test_memcpy(const struct raw_config *cfg, raw_emit emit);
int raw_test_futex(const struct raw_config *cfg, raw_emit emit);
int raw_test_asleep(const struct raw_config *cfg, raw_emit emit);
int raw_test_shared_core(const struct raw_config *cfg, raw_emit emit);
int raw_test_unix(const struct raw_config *cfg, raw_emit emit);
int raw_test_tcp(const struct raw_config *cfg, raw_emit emit);

static inline void raw_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

/* A counter alone in its cache line. */
struct raw_counter {
	_Alignas(RAW_LINE) _Atomic uint64_t v;
};

static inline uint64_t raw_load(struct raw_counter *c)
{
	return atomic_load_explicit(&c->v, memory_order_acquire);
}

static inline void raw_store(struct raw_counter *c, uint64_t v)
{
	atomic_store_explicit(&c->v, v, memory_order_release);
}

static inline void raw_await(struct raw_counter *c, uint64_t v)
{
	while (raw_load(c) != v)
		raw_pause();
}

static inline void raw_await_least(struct raw_counter *c, uint64_t v)
{
	while (raw_load(c) < v)
		raw_pause();
}

#endif
