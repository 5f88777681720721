/* SPDX-License-Identifier: BSD-2-Clause */
/* One cache line at a time: the flag line, the slots, the fifo. */
#include <string.h>

#include "raw.h"

#define RING_SLOTS 64u
#define FIFO_SLOTS 256u

/*
 * ---- line: a flag in each direction, one pause per poll; half of the round trip is R ----
 *
 * The distance of a line depends on the place in the processor where it is cached, so every batch
 * uses other lines.
 */

#define PAIRS 64u

static struct raw_counter *pair_of(const struct raw_job *job)
{
	return (struct raw_counter *)(void *)job->shm + job->batch % PAIRS * 4;
}

static void line_lead(struct raw_job *job, uint64_t count)
{
	struct raw_counter *c = pair_of(job);

	while (count--) {
		raw_store(&c[0], ++job->done);
		raw_await(&c[2], job->done);
	}
}

static void line_follow(struct raw_job *job, uint64_t count)
{
	struct raw_counter *c = pair_of(job);

	while (count--) {
		raw_await(&c[0], ++job->done);
		raw_store(&c[2], job->done);
	}
}

int raw_test_line(const struct raw_config *cfg, raw_emit emit)
{
	struct raw_job job = { .test = "line",
			       .variant = "R",
			       .side = { line_lead, line_follow },
			       .unit = RAW_HALF_TRIP };

	return emit(cfg, &job);
}

/* ---- slot: payload and sequence in one line, a fifo of lines in each direction ---- */

struct slot {
	uint8_t data[RAW_LINE - 8];
	_Atomic uint64_t seq;
};

static struct slot *slot_of(struct raw_job *job, int dir, uint64_t n)
{
	return (struct slot *)(void *)job->shm + dir * RING_SLOTS + n % RING_SLOTS;
}

static void slot_put(struct raw_job *job, int dir, uint64_t n)
{
	struct slot *s = slot_of(job, dir, n);

	memcpy(s->data, &n, 4);
	atomic_store_explicit(&s->seq, n, memory_order_release);
}

static void slot_get(struct raw_job *job, int dir, uint64_t n)
{
	struct slot *s = slot_of(job, dir, n);

	while (atomic_load_explicit(&s->seq, memory_order_acquire) != n)
		raw_pause();
	memcpy(job->own, s->data, 4);
}

static void slot_lead(struct raw_job *job, uint64_t count)
{
	while (count--) {
		slot_put(job, 0, ++job->done);
		slot_get(job, 1, job->done);
	}
}

static void slot_follow(struct raw_job *job, uint64_t count)
{
	while (count--) {
		slot_get(job, 0, ++job->done);
		slot_put(job, 1, job->done);
	}
}

int raw_test_slot(const struct raw_config *cfg, raw_emit emit)
{
	struct raw_job job = { .test = "slot",
			       .variant = "ring of 64",
			       .side = { slot_lead, slot_follow },
			       .unit = RAW_HALF_TRIP,
			       .size = 4,
			       .ring = RING_SLOTS * RAW_LINE };

	return emit(cfg, &job);
}

/* ---- fifo: one direction, sequence in the slot, credit for a quarter of the fifo at a time ---- */

static uint64_t stride(const struct raw_job *job)
{
	return job->chunk;
}

static uint8_t *fifo_slot(struct raw_job *job, uint64_t n)
{
	return job->shm + RAW_LINE * 2 + n % FIFO_SLOTS * stride(job);
}

static _Atomic uint64_t *fifo_seq(struct raw_job *job, uint8_t *slot)
{
	return (_Atomic uint64_t *)(void *)(slot + stride(job) - 8);
}

static inline __attribute__((always_inline)) void fifo_lead(struct raw_job *job, uint64_t count,
							    size_t size)
{
	struct raw_counter *credit = (void *)job->shm;
	uint64_t n = job->done, end = n + count;

	while (n < end) {
		uint8_t *slot = fifo_slot(job, n);

		if (n - job->acked == FIFO_SLOTS) {
			raw_await_least(credit, n - FIFO_SLOTS + 1);
			job->acked = raw_load(credit);
		}
		memcpy(slot, job->own, size);
		atomic_store_explicit(fifo_seq(job, slot), ++n, memory_order_release);
	}
	raw_await(credit, end);
	job->acked = end;
	job->done = end;
}

static inline __attribute__((always_inline)) void fifo_follow(struct raw_job *job, uint64_t count,
							      size_t size)
{
	struct raw_counter *credit = (void *)job->shm;
	uint64_t n = job->done, end = n + count;

	while (n < end) {
		uint8_t *slot = fifo_slot(job, n++);

		while (atomic_load_explicit(fifo_seq(job, slot), memory_order_acquire) != n)
			raw_pause();
		memcpy(job->own, slot, size);
		if (n % (FIFO_SLOTS / 4) == 0)
			raw_store(credit, n);
	}
	raw_store(credit, end);
	job->done = end;
}

static void fifo_lead_4(struct raw_job *job, uint64_t count)
{
	fifo_lead(job, count, 4);
}

static void fifo_follow_4(struct raw_job *job, uint64_t count)
{
	fifo_follow(job, count, 4);
}

static void fifo_lead_64(struct raw_job *job, uint64_t count)
{
	fifo_lead(job, count, 64);
}

static void fifo_follow_64(struct raw_job *job, uint64_t count)
{
	fifo_follow(job, count, 64);
}

int raw_test_fifo(const struct raw_config *cfg, raw_emit emit)
{
	struct raw_job small = { .test = "fifo",
				 .variant = "sequence in slot",
				 .side = { fifo_lead_4, fifo_follow_4 },
				 .unit = RAW_RATE,
				 .size = 4,
				 .chunk = RAW_LINE,
				 .ring = FIFO_SLOTS * RAW_LINE };
	struct raw_job large = small;
	int rc = emit(cfg, &small);

	large.side[0] = fifo_lead_64;
	large.side[1] = fifo_follow_64;
	large.size = 64;
	large.chunk = 2 * RAW_LINE;
	large.ring = FIFO_SLOTS * 2 * RAW_LINE;
	return rc ? rc : emit(cfg, &large);
}
