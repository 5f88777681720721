/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies.  In `ring` bytes of shared memory, cut into chunks, the sender copies in and the
 * receiver copies out, reads in place, or only checks the counter; a message of several chunks is
 * thus a pipeline of two copies.
 */
#include <string.h>

#include "raw.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define MAX_CHUNKS 1024u
#define BATCHES_PER_PAIR 6u

/* Begin of a job's memory: counters, then the data. */
struct copy_area {
	struct raw_counter flag[4];	     /* ping-pong: two lines apart; stream: credit */
	struct raw_counter full[MAX_CHUNKS]; /* number of the chunk in each place, from 1 */
	_Alignas(4096) uint8_t data[];
};

static struct copy_area *area_of(struct raw_job *job)
{
	return (void *)job->shm;
}

static uint8_t *direction_data(struct raw_job *job, int dir)
{
	return area_of(job)->data + dir * ((job->size + 4095) & ~UINT64_C(4095));
}

/* ---- ping-pong: copy in, flag, copy out ---- */

static void pong_put(struct raw_job *job, int dir)
{
	memcpy(direction_data(job, dir), job->own, job->size);
	raw_store(&area_of(job)->flag[2 * dir], job->done);
}

static void pong_get(struct raw_job *job, int dir, bool out)
{
	raw_await(&area_of(job)->flag[2 * dir], job->done);
	if (out)
		memcpy(job->own, direction_data(job, dir), job->size);
}

static void pong_lead(struct raw_job *job, uint64_t count)
{
	while (count--) {
		job->done++;
		pong_put(job, 0);
		pong_get(job, 1, true);
	}
}

static void pong_follow(struct raw_job *job, uint64_t count)
{
	while (count--) {
		job->done++;
		pong_get(job, 0, true);
		pong_put(job, 1);
	}
}

static void put_lead(struct raw_job *job, uint64_t count)
{
	while (count--) {
		job->done++;
		pong_put(job, 0);
		pong_get(job, 1, false);
	}
}

static void put_follow(struct raw_job *job, uint64_t count)
{
	while (count--) {
		job->done++;
		pong_get(job, 0, false);
		pong_put(job, 1);
	}
}

/* ---- streams ---- */

static uint64_t places(const struct raw_job *job)
{
	return job->ring / job->chunk;
}

static void send_chunk(struct raw_job *job, const uint8_t *from, size_t len)
{
	struct copy_area *a = area_of(job);
	uint64_t n = job->done++, place = n % places(job);

	if (n >= places(job) + job->acked) {
		raw_await_least(&a->flag[0], n - places(job) + 1);
		job->acked = raw_load(&a->flag[0]);
	}
	memcpy(a->data + place * job->chunk, from, len);
	raw_store(&a->full[place], n + 1);
}

static void stream_lead(struct raw_job *job, uint64_t count)
{
	uint64_t per = (job->size + job->chunk - 1) / job->chunk, at;

	while (count--) {
		uint64_t window = per * job->window;

		if (job->done + per > window)
			raw_await_least(&area_of(job)->flag[0], job->done + per - window);
		for (at = 0; at < job->size; at += job->chunk)
			send_chunk(job, job->own + at,
				   job->size - at < job->chunk ? job->size - at : job->chunk);
	}
	raw_await(&area_of(job)->flag[0], job->done);
}

/* Every line is loaded; the sum keeps the compiler from leaving it out. */
static uint64_t read_in_place(const uint8_t *p, size_t len)
{
	uint64_t sum = 0, v[4];
	size_t i;

	for (i = 0; i + sizeof(v) <= len; i += sizeof(v)) {
		memcpy(v, p + i, sizeof(v));
		sum += v[0] + v[1] + v[2] + v[3];
	}
	return sum;
}

enum consume { COPY_OUT, READ, NOTICE };

static inline __attribute__((always_inline)) void consume(struct raw_job *job, uint64_t count,
							  enum consume how)
{
	struct copy_area *a = area_of(job);
	uint64_t at, n, len;

	while (count--) {
		for (at = 0; at < job->size; at += job->chunk) {
			n = job->done++;
			len = job->size - at < job->chunk ? job->size - at : job->chunk;
			raw_await(&a->full[n % places(job)], n + 1);
			if (how == COPY_OUT)
				memcpy(job->own + at, a->data + n % places(job) * job->chunk, len);
			else if (how == READ)
				job->acked +=
					read_in_place(a->data + n % places(job) * job->chunk, len);
			raw_store(&a->flag[0], n + 1);
		}
	}
}

static void stream_copy(struct raw_job *job, uint64_t count)
{
	consume(job, count, COPY_OUT);
}

static void stream_read(struct raw_job *job, uint64_t count)
{
	consume(job, count, READ);
}

static void stream_notice(struct raw_job *job, uint64_t count)
{
	consume(job, count, NOTICE);
}

/* The pages of a buffer share places in a cache by chance, so there are several buffers. */
static void memcpy_alone(struct raw_job *job, uint64_t count)
{
	int pair = (int)(job->batch / BATCHES_PER_PAIR % job->pairs);
	uint8_t *from = direction_data(job, 2 * pair), *to = direction_data(job, 2 * pair + 1);

	while (count--) {
		memcpy(to, from, job->size);
		__asm__ __volatile__("" ::: "memory");
	}
}

static void memcpy_from_own(struct raw_job *job, uint64_t count)
{
	while (count--) {
		memcpy(direction_data(job, 0), job->own, job->size);
		__asm__ __volatile__("" ::: "memory");
	}
}

/* ---- tests ---- */

static int for_sizes(const struct raw_config *cfg, raw_emit emit, const struct raw_job *pattern,
		     const uint64_t *sizes, size_t n)
{
	size_t i;
	int rc = 0;

	if (cfg->sizes) {
		sizes = cfg->sizes;
		n = cfg->size_count;
	}
	for (i = 0; !rc && i < n; i++) {
		struct raw_job job = *pattern;

		if (!sizes[i])
			continue;
		job.size = sizes[i];
		rc = emit(cfg, &job);
	}
	return rc;
}

static const uint64_t trip_sizes[] = { 4, 64, KIB, 4 * KIB, 64 * KIB, MIB };
static const uint64_t bulk_sizes[] = { 64 * KIB, MIB };

int raw_test_pingpong(const struct raw_config *cfg, raw_emit emit)
{
	struct raw_job job = { .test = "pingpong",
			       .variant = "copy in, flag, copy out",
			       .side = { pong_lead, pong_follow },
			       .unit = RAW_HALF_TRIP };

	return for_sizes(cfg, emit, &job, trip_sizes, 6);
}

int raw_test_put(const struct raw_config *cfg, raw_emit emit)
{
	struct raw_job job = { .test = "put",
			       .variant = "copy in, flag",
			       .side = { put_lead, put_follow },
			       .unit = RAW_HALF_TRIP };

	return for_sizes(cfg, emit, &job, trip_sizes, 6);
}

/* Whole messages in slots, as many as the window. */
static int emit_stream(const struct raw_config *cfg, raw_emit emit, const char *variant,
		       raw_side follow, uint64_t size)
{
	static const uint32_t windows[] = { 1, 4, 16 };
	int rc = 0;
	size_t i;

	for (i = 0; !rc && i < 3; i++) {
		struct raw_job job = { .test = "stream",
				       .variant = variant,
				       .side = { stream_lead, follow },
				       .unit = RAW_BANDWIDTH,
				       .size = size,
				       .window = windows[i] };

		job.chunk = size;
		job.ring = job.chunk * windows[i];
		rc = emit(cfg, &job);
	}
	return rc;
}

int raw_test_stream(const struct raw_config *cfg, raw_emit emit)
{
	const uint64_t *sizes = cfg->sizes ? cfg->sizes : bulk_sizes;
	size_t n = cfg->sizes ? cfg->size_count : 2, i;
	int rc = 0;

	for (i = 0; !rc && i < n; i++) {
		if (!sizes[i])
			continue;
		rc = emit_stream(cfg, emit, "one copy, not read", stream_notice, sizes[i]);
		if (!rc)
			rc = emit_stream(cfg, emit, "one copy, read", stream_read, sizes[i]);
		if (!rc)
			rc = emit_stream(cfg, emit, "two copies", stream_copy, sizes[i]);
	}
	return rc;
}

/* Every geometry, so that the best of them is the limit. */
static int emit_chunks(const struct raw_config *cfg, raw_emit emit, uint64_t size, uint32_t window)
{
	static const uint64_t chunks[] = { 16 * KIB, 32 * KIB, 64 * KIB };
	static const uint64_t rings[] = { 256 * KIB, 512 * KIB, MIB };
	int rc = 0, c, r;

	for (c = 0; c < 3; c++) {
		for (r = 0; !rc && r < 3; r++) {
			struct raw_job job = { .test = "chunk",
					       .variant = "two copies in chunks",
					       .side = { stream_lead, stream_copy },
					       .unit = RAW_BANDWIDTH,
					       .size = size,
					       .window = window,
					       .chunk = chunks[c],
					       .ring = rings[r] };

			rc = emit(cfg, &job);
		}
	}
	return rc;
}

int raw_test_chunk(const struct raw_config *cfg, raw_emit emit)
{
	const uint64_t *sizes = cfg->sizes ? cfg->sizes : bulk_sizes;
	size_t n = cfg->sizes ? cfg->size_count : 2, i;
	int rc = 0;

	for (i = 0; !rc && i < n; i++) {
		if (sizes[i])
			rc = emit_chunks(cfg, emit, sizes[i], 64);
	}
	return rc;
}

int raw_test_memcpy(const struct raw_config *cfg, raw_emit emit)
{
	struct raw_job shared = { .test = "memcpy",
				  .variant = "shared to shared",
				  .side = { memcpy_alone, NULL },
				  .pairs = 8,
				  .unit = RAW_BANDWIDTH };
	struct raw_job own = { .test = "memcpy",
			       .variant = "private to shared",
			       .side = { memcpy_from_own, NULL },
			       .unit = RAW_BANDWIDTH };
	int rc = for_sizes(cfg, emit, &shared, bulk_sizes, 2);

	return rc ? rc : for_sizes(cfg, emit, &own, bulk_sizes, 2);
}
