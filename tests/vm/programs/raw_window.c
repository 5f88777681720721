// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs in two guests, one port of viaduct.ko each: the speed of a window and a doorbell without a
 * library above them.
 *
 *   raw_window A|B DEVICE ROUND     A measures, B answers; ROUND tells the runs of a suite apart
 *
 * Words go both ways by stores into the mapped window, doorbells by eventfds; then copies are made
 * into the window.
 */
#include "kmod_side.h"

#include <inttypes.h>
#include <time.h>

#define BYTES (1 << 20) /* of a copy */
#define BATCH 32	/* round trips that are timed together, as vi_lat --batch 32 does */
#define BATCHES 200
#define RINGS 300
#define COPIES 120
#define CHUNK (32 << 10) /* of a copy in two steps, as the library copies a long message */
#define CHUNKS (BYTES / CHUNK)
#define RING 8 /* chunks that the peer's memory holds */
#define DB_BIT 1ULL

static bool is_a;

struct raw {
	struct side port;
	struct viaduct_slice in, out;
	const volatile uint32_t *mine;
	volatile uint32_t *yours;
	int client; /* that rings */
	int rung;   /* the eventfd of the doorbell */
	uint32_t word;
};

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[n / 2];
}

static void figure(const char *name, double value, const char *unit)
{
	printf("figure %s %.3f %s\n", name, value, unit);
	fflush(stdout);
}

/* Stores a word.  A store into write-combining memory leaves with the fence, or at any time before. */
static void store_word(struct raw *r, uint32_t value)
{
	*r->yours = value;
	__builtin_ia32_sfence();
}

static void await_word(const struct raw *r, uint32_t value)
{
	while (*r->mine != value)
		__builtin_ia32_pause();
}

static void open_raw(struct raw *r, const char *device, const char *round)
{
	uint32_t window;
	uint64_t offset;

	open_side(&r->port, device);
	CHECK(link_set(&r->port, 1) == 0 && wait_link(&r->port, VIADUCT_LINK_UP),
	      "the link comes up");
	CHECK(slice(&r->port, VIADUCT_INBOUND, 0, 0, PAGE + BYTES, &r->in) == 0, "a slice");
	r->mine = map(r->in.fd, r->in.len, 0);
	ask("put raw%s%s %u %" PRIu64, round, is_a ? "A" : "B", r->in.window,
	    (uint64_t)r->in.offset);
	CHECK(sscanf(ask("get raw%s%s", round, is_a ? "B" : "A"), "%" SCNu32 " %" SCNu64, &window,
		     &offset) == 2,
	      "the peer names a slice");
	CHECK(slice(&r->port, VIADUCT_OUTBOUND, window, offset, PAGE + BYTES, &r->out) == 0,
	      "it is opened");
	r->yours = map(r->out.fd, r->out.len, 0);
	CHECK(r->mine != MAP_FAILED && r->yours != MAP_FAILED, "both are mapped");
}

static void open_doorbell(struct raw *r)
{
	struct viaduct_client client = { .ring_bits = DB_BIT };
	struct viaduct_bind bind = { .db_bits = DB_BIT, .eventfd = eventfd(0, EFD_CLOEXEC) };

	CHECK(ioctl(r->port.fd, VIADUCT_BIND, &bind) == 0, "an eventfd is bound to a doorbell bit");
	CHECK(ioctl(r->port.fd, VIADUCT_CLIENT, &client) == 0, "a client rings it");
	r->rung = bind.eventfd;
	r->client = client.fd;
	ask("barrier bound");
}

static void words(struct raw *r, unsigned int count)
{
	while (count--) {
		r->word++;
		if (is_a)
			store_word(r, r->word);
		await_word(r, r->word);
		if (!is_a)
			store_word(r, r->word);
	}
}

static void measure_words(struct raw *r)
{
	double times[BATCHES];
	unsigned int i;

	words(r, BATCH * BATCHES / 4); /* not counted */
	for (i = 0; i < BATCHES; i++) {
		double start = now_us();

		words(r, BATCH);
		times[i] = (now_us() - start) / (2 * BATCH);
	}
	if (is_a)
		figure("raw_window_4B_poll", median(times, BATCHES), "us");
}

static void ring(const struct raw *r)
{
	struct viaduct_ring bits = { .db_bits = DB_BIT };

	if (ioctl(r->client, VIADUCT_RING, &bits) != 0)
		failures++;
}

static void await_ring(const struct raw *r)
{
	uint64_t value;

	if (read(r->rung, &value, sizeof(value)) != sizeof(value))
		failures++;
}

static void rings(const struct raw *r)
{
	if (is_a)
		ring(r);
	await_ring(r);
	if (!is_a)
		ring(r);
}

static void measure_rings(struct raw *r)
{
	double times[RINGS];
	unsigned int i;

	for (i = 0; i < RINGS / 4; i++)
		rings(r);
	for (i = 0; i < RINGS; i++) {
		double start = now_us();

		rings(r);
		times[i] = (now_us() - start) / 2;
	}
	if (is_a)
		figure("raw_doorbell_eventfd", median(times, RINGS), "us");
}

/*
 * Copies chunk by chunk into the first chunks of the peer's memory, from where the peer copies them
 * on, as for messages.
 */
static void copy_by_chunks(struct raw *r, char *own, uint32_t *done)
{
	volatile uint32_t *yours = r->yours, *flag = yours + 16;
	const volatile uint32_t *mine = r->mine;
	unsigned int i;

	for (i = 0; i < CHUNKS; i++) {
		size_t place = PAGE + (*done % RING) * CHUNK;

		++*done;
		if (is_a) {
			while ((int32_t)(*done - mine[16]) > RING)
				__builtin_ia32_pause();
			memcpy((char *)yours + place, own + i * CHUNK, CHUNK);
			__builtin_ia32_sfence();
			*flag = *done;
		} else {
			while ((int32_t)(mine[16] - *done) < 0)
				__builtin_ia32_pause();
			memcpy(own + i * CHUNK, (const char *)mine + place, CHUNK);
			*flag = *done;
		}
		__builtin_ia32_sfence();
	}
}

static void measure_two_copies(struct raw *r)
{
	char *own = aligned_alloc(PAGE, BYTES);
	uint32_t done = 0;
	unsigned int i;
	double start;

	memset(own, 0x5a, BYTES);
	for (i = 0; i < COPIES / 4; i++)
		copy_by_chunks(r, own, &done);
	start = now_us();
	for (i = 0; i < COPIES; i++)
		copy_by_chunks(r, own, &done);
	if (is_a) {
		while (r->mine[16] != done)
			__builtin_ia32_pause();
		figure("raw_two_copies_1M", (double)COPIES * BYTES / (now_us() - start), "MB/s");
	}
	free(own);
}

/* Copies 1 MiB, in pieces that go to the first `room` bytes of the peer's memory in turn; nobody reads them. */
static double time_copy(const struct raw *r, const char *from, size_t piece, size_t room)
{
	char *target = (char *)r->yours + PAGE;
	double start = now_us();
	size_t at;

	for (at = 0; at < BYTES; at += piece)
		memcpy(target + at % room, from + at, piece);
	__builtin_ia32_sfence();
	return now_us() - start;
}

static void measure_copy(const struct raw *r, const char *name, size_t piece, size_t room)
{
	char *from = aligned_alloc(PAGE, BYTES);
	double times[COPIES];
	unsigned int i;

	memset(from, 0x5a, BYTES);
	for (i = 0; i < COPIES / 4; i++)
		time_copy(r, from, piece, room);
	for (i = 0; i < COPIES; i++)
		times[i] = time_copy(r, from, piece, room);
	figure(name, BYTES / median(times, COPIES), "MB/s");
	free(from);
}

/* The peer polls during the copies, as a library that receives the data would. */
static void measure_copies(struct raw *r)
{
	r->word++;
	if (!is_a) {
		await_word(r, r->word);
		CHECK(memchr((const char *)r->mine + PAGE, 0, BYTES) == NULL,
		      "the copy has arrived");
		store_word(r, r->word);
		return;
	}
	measure_copy(r, "raw_copy_1M", BYTES, BYTES);
	measure_copy(r, "raw_copy_32K", CHUNK, RING * CHUNK);
	store_word(r, r->word);
	await_word(r, r->word);
}

int main(int argc, char **argv)
{
	struct raw r = { 0 };

	if (argc != 4)
		return 2;
	is_a = strcmp(argv[1], "A") == 0;
	open_raw(&r, argv[2], argv[3]);
	open_doorbell(&r);
	measure_words(&r);
	measure_rings(&r);
	measure_copies(&r);
	measure_two_copies(&r);
	ask("barrier raw");
	printf("end %d\n", failures);
	return failures != 0;
}
