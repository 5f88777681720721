/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A heap that grows: run by grow_test.py with a heap of 4 MiB that may grow to 64 MiB, so it doubles four times.  The
 * argument names what to do.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rules.h"

#define MIB ((size_t)1 << 20)
#define BLOCK (3 * MIB)
#define BLOCKS 19 /* of 3 MiB: 1 in the first 4 MiB, and 1, 2, 5 and 10 in what is added */
#define WORDS (BLOCK / sizeof(long))
#define CHUNK 4096 /* words that each PE has in a block; MAX_PES of them fit */

static bool late;	    /* another PE comes later to each allocation */
static long arrived;	    /* PEs that are about to allocate, counted at the one that comes last */
static long own[2 * CHUNK]; /* memory that is no heap */

/* Allocates; a late PE calls when all others have counted, and has let them wait. */
static void *allocate(size_t n, int turn)
{
	int last = turn % npes;
	void *p;

	if (late && me != last)
		shmem_long_atomic_inc(&arrived, last);
	if (late && me == last) {
		shmem_long_wait_until(&arrived, SHMEM_CMP_EQ, npes - 1);
		arrived = 0;
		for (int i = 0; i < 100; i++) /* while the others wait */
			shmem_long_atomic_fetch(&arrived, i % npes);
	}
	p = shmem_malloc(n);
	return p;
}

static long value(int block, int from, int to, int i)
{
	return ((long)block << 48) + ((long)from << 40) + ((long)to << 32) + i;
}

/* Where PE `from` stores in a block of another. */
static long *place(long *block, int from)
{
	return block + (size_t)from * CHUNK;
}

/* Does every PE find in block b what all have stored there? */
static void check_block(long *block, int b)
{
	for (int from = 0; from < npes; from++) {
		for (int i = 0; i < CHUNK; i++)
			CHECK(place(block, from)[i] == value(b, from, me, i));
	}
}

/* Puts from private memory, from a variable and from another block; a word, and as many as registering takes. */
static void put_all(long *block, long *other, int b)
{
	long *private = malloc(CHUNK * sizeof(long)), *from;

	CHECK(private != NULL);
	for (int to = 0; to < npes; to++) {
		from = to % 3 == 0 ? private : to % 3 == 1 ? own : place(other, npes) + to * CHUNK;
		for (int i = 0; i < CHUNK; i++)
			from[i] = value(b, me, to, i);
		shmem_long_p(place(block, me), from[0], to);
		shmem_long_put(place(block, me) + 1, from + 1, 7, to);
		shmem_long_put_nbi(place(block, me) + 8, from + 8, CHUNK - 8, to);
		shmem_quiet();
	}
	free(private);
	shmem_barrier_all();
	check_block(block, b);
}

/* Gets what put_all() has put, also strided, and into another block. */
static void get_all(long *block, long *other, int b)
{
	long *to = place(other, npes);

	for (int pe = 0; pe < npes; pe++) {
		shmem_long_get(to, place(block, me), CHUNK, pe);
		for (int i = 0; i < CHUNK; i++)
			CHECK(to[i] == value(b, me, pe, i));
		shmem_long_iget(own, place(block, pe) + 1, 2, 3, 100, pe);
		for (int i = 0; i < 100; i++)
			CHECK(own[2 * i] == value(b, pe, pe, 1 + 3 * i));
		CHECK(shmem_long_g(place(block, pe) + 5, pe) == value(b, pe, pe, 5));
	}
	shmem_barrier_all();
	if (me == 0) {
		for (int i = 0; i < 100; i++)
			own[i] = -i;
		shmem_long_iput(place(block, npes), own, 3, 1, 100, npes - 1);
	}
	shmem_barrier_all();
	for (int i = 0; me == npes - 1 && i < 100; i++)
		CHECK(place(block, npes)[3 * i] == -i);
	shmem_barrier_all();
}

/* Atomic operations, a signal and a lock. */
static void atomics(long *block)
{
	long *sum = block + WORDS - 8, *lock = block + WORDS - 16, *count = block + WORDS - 24;
	uint64_t *signal = (uint64_t *)(block + WORDS - 32);

	*sum = *lock = *count = 0;
	*signal = 0;
	shmem_barrier_all();
	for (int pe = 0; pe < npes; pe++) {
		shmem_long_atomic_add(sum, me + 1, pe);
		CHECK(shmem_long_atomic_fetch(count, pe) == 0);
	}
	shmem_barrier_all();
	CHECK(*sum == (long)npes * (npes + 1) / 2);
	CHECK(shmem_long_atomic_compare_swap(sum, -1, 5, next) == (long)npes * (npes + 1) / 2);
	shmem_long_put_signal(block + WORDS - 64, own, 8, signal, 17, SHMEM_SIGNAL_ADD, next);
	shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 17);
	for (int i = 0; i < 8; i++)
		CHECK((block + WORDS - 64)[i] == shmem_long_g(own + i, prev));
	shmem_set_lock(lock);
	shmem_long_p(count, shmem_long_g(count, 0) + 1, 0);
	shmem_clear_lock(lock);
	shmem_barrier_all();
	CHECK(shmem_long_g(count, 0) == npes);
	shmem_barrier_all();
}

/* Collectives whose memory is in the block, and in another one. */
static void collectives(long *block, long *other)
{
	long *in = block + WORDS / 2, *out = other + WORDS / 2;

	for (size_t n = 1; n <= 4096; n *= 64) {
		for (size_t i = 0; i < n; i++)
			in[i] = me + 1 + (long)i;
		shmem_barrier_all();
		CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, out, in, n) == 0);
		for (size_t i = 0; i < n; i++)
			CHECK(out[i] == (long)npes * (npes + 1) / 2 + (long)i * npes);
		shmem_barrier_all(); /* before another PE changes `out` again */
		CHECK(shmem_long_fcollect(SHMEM_TEAM_WORLD, out, in, n) == 0);
		for (int pe = 0; pe < npes; pe++)
			CHECK(out[(size_t)pe * n + n - 1] == pe + (long)n);
		shmem_barrier_all();
		CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, out, in, n, npes - 1) == 0);
		CHECK(out[n - 1] == npes - 1 + (long)n);
		shmem_barrier_all();
		CHECK(shmem_long_alltoall(SHMEM_TEAM_WORLD, out, in, n / (size_t)npes) == 0);
		shmem_barrier_all();
	}
}

/* By load and store, in a team of its own, by a context of that. */
static void other_ways(long *block, int b)
{
	shmem_team_t team;
	shmem_ctx_t ctx;
	long *at;

	for (int pe = 0; pe < npes; pe++) {
		CHECK(shmem_addr_accessible(block, pe));
		CHECK(shmem_addr_accessible(block + WORDS - 1, pe));
		at = shmem_ptr(block, pe);
		CHECK((at != NULL) == (shmem_ptr(own, pe) != NULL));
		CHECK(at == NULL || at[(size_t)me * CHUNK] == value(b, me, pe, 0));
	}
	CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, NULL, 0, &team) == 0);
	CHECK(shmem_team_create_ctx(team, SHMEM_CTX_PRIVATE, &ctx) == 0);
	for (int pe = 0; pe < npes; pe++) /* which is number npes - 1 - pe there */
		CHECK(shmem_ctx_long_g(ctx, place(block, me), npes - 1 - pe) ==
		      value(b, me, pe, 0));
	shmem_ctx_destroy(ctx);
	shmem_team_destroy(team);
	shmem_barrier_all();
}

/* What was added stays, and is used again; reallocation moves into it, and keeps what was there. */
static void use_again(void)
{
	long *p = shmem_malloc(31 * MIB), *q, *r;

	CHECK(p != NULL); /* only the last extent has room for it */
	CHECK(shmem_malloc(31 * MIB) == NULL);
	q = shmem_realloc(p, 32 * MIB);
	CHECK(q == p);
	CHECK(shmem_realloc(q, 33 * MIB) == NULL); /* and leaves it */
	shmem_free(q);
	q = shmem_malloc(2 * MIB);
	for (size_t i = 0; i < 2 * MIB / sizeof(long); i++)
		q[i] = (long)i * (me + 1);
	p = shmem_malloc(2 * MIB - 64);
	CHECK(p != NULL);
	r = shmem_realloc(q, 20 * MIB);
	CHECK(r != NULL && r != q);
	for (size_t i = 0; i < 2 * MIB / sizeof(long); i++)
		CHECK(r[i] == (long)i * (me + 1));
	CHECK(shmem_long_g(r + 5, next) == 5 * (next + 1));
	shmem_free(r);
	shmem_free(p);
	for (size_t a = 64; a <= 8 * MIB; a *= 2) {
		p = shmem_align(a, 9 * MIB);
		CHECK(p != NULL && (uintptr_t)p % a == 0);
		shmem_free(p);
	}
	p = shmem_calloc(1, 10 * MIB);
	for (size_t i = 0; i < 10 * MIB / sizeof(long); i++)
		CHECK(p[i] == 0);
	shmem_free(p);
	p = shmem_malloc_with_hints(12 * MIB, SHMEM_MALLOC_ATOMICS_REMOTE);
	CHECK(p != NULL);
	shmem_free(p);
}

/* Allocates until there is no room: the heap has grown four times.  Blocks of each part are used, then all freed. */
static void fill(void)
{
	static const int used[] = { 0, 18, 1, 3, 8 };
	const int count = late ? 2 : 5;
	long *blocks[BLOCKS + 1];
	int n = 0, b;

	while (n <= BLOCKS && (blocks[n] = allocate(BLOCK, n)) != NULL)
		n++;
	CHECK(n == BLOCKS);
	for (int i = 0; i < count; i++) {
		b = used[i];
		put_all(blocks[b], blocks[(b + 7) % n], b);
		get_all(blocks[b], blocks[(b + 9) % n], b);
	}
	for (int i = 0; i < count; i++) {
		check_block(blocks[used[i]], used[i]);
		other_ways(blocks[used[i]], used[i]);
	}
	for (int i = 0; i < count; i++) {
		atomics(blocks[used[i]]);
		collectives(blocks[used[i]], blocks[(used[i] + 5) % n]);
	}
	for (b = 0; b < n; b++)
		shmem_free(blocks[(b * 7) % n]);
	use_again();
}

/* In a heap that has not grown yet. */
static void align_and_realloc_grow(void)
{
	long *p = shmem_align(2 * MIB, 7 * MIB), *q;

	CHECK(p != NULL && (uintptr_t)p % (2 * MIB) == 0);
	p[0] = 100 + me;
	shmem_barrier_all();
	CHECK(shmem_long_g(p, next) == 100 + next);
	q = shmem_realloc(p, 20 * MIB);
	CHECK(q != NULL && q != p && q[0] == 100 + me);
	shmem_barrier_all();
	CHECK(shmem_long_g(q, prev) == 100 + prev);
	shmem_free(q);
}

/* ---- memory that is refused ------------------------------------------------------------------ */

/* Bytes of addresses that this process has. */
static size_t addresses(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[4096];
	size_t kib = 0;

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, "VmSize:", 7) == 0)
			kib = strtoul(line + 7, NULL, 10);
	}
	fclose(f);
	return kib << 10;
}

/* One PE has no addresses for more: all get NULL, however often they ask, and nothing is left of it. */
static void refused(void)
{
	struct rlimit old, low;
	size_t before = 0;
	long *p;

	for (int pe = 0; pe < npes;
	     pe++) /* connections and mappings are there before the limit is */
		CHECK(shmem_long_g(own, pe) == 0);
	shmem_barrier_all();
	CHECK(getrlimit(RLIMIT_AS, &old) == 0);
	low = old;
	low.rlim_cur = addresses() + 20 * MIB;
	for (int i = 0; i < 40; i++) {
		if (i == 20 && me == npes - 1)
			CHECK(setrlimit(RLIMIT_AS, &old) == 0); /* and the bound refuses */
		if (i == 0 && me == npes - 1)
			CHECK(setrlimit(RLIMIT_AS, &low) == 0);
		CHECK(shmem_malloc(i < 20 ? 40 * MIB : 61 * MIB) == NULL);
		if (i == 0)
			before = addresses();
	}
	CHECK(addresses() < before + 200 * MIB); /* 20 times 56 MiB, were they still there */
	p = shmem_malloc(40 * MIB);
	CHECK(p != NULL);
	p[0] = me;
	shmem_barrier_all();
	CHECK(shmem_long_g(p, next) == next);
	shmem_barrier_all();
	shmem_free(p);
}

/* The window has no room for the heap once more, but for what is asked for; then for nothing more. */
static void narrow(void)
{
	long *p = shmem_malloc(99 * MIB), *q = shmem_malloc(10 * MIB);

	CHECK(p != NULL && q != NULL);
	shmem_long_p(q, me, next);
	shmem_barrier_all();
	CHECK(*q == prev);
	CHECK(shmem_malloc(60 * MIB) == NULL);
	shmem_free(q);
	q = shmem_malloc(10 * MIB);
	CHECK(q != NULL);
}

/* More than any machine has: that is refused, and what the machine has room for is not. */
static void beyond(void)
{
	CHECK(shmem_malloc((size_t)400 << 40) == NULL);
	CHECK(shmem_malloc(5 * MIB) != NULL);
}

/* ---- threads --------------------------------------------------------------------------------- */

static atomic_bool stop;
static long *shared[2];

/* Uses memory of the first part, and of what was added before, while another thread makes the heap grow. */
static void *traffic(void *arg)
{
	long *word = shared[(uintptr_t)arg];

	for (long i = 0; !stop || i < 10; i++) {
		shmem_long_p(word + 1 + me, i, next);
		shmem_quiet();
		CHECK(shmem_long_g(word + 1 + me, next) == i);
		shmem_long_atomic_inc(word, prev);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t thread[2];
	void *p[4];

	stop = false;
	shared[0] = shmem_calloc(16, sizeof(long));
	shared[1] = shmem_calloc(5 * MIB, 1); /* the first growth */
	CHECK(shared[0] != NULL && shared[1] != NULL);
	for (uintptr_t i = 0; i < 2; i++)
		CHECK(pthread_create(&thread[i], NULL, traffic, (void *)i) == 0);
	p[0] = shmem_malloc(9 * MIB);
	p[1] = shmem_malloc(15 * MIB);
	p[2] = shmem_malloc(20 * MIB);
	for (int i = 0; i < 3; i++) {
		CHECK(p[i] != NULL);
		shmem_long_p((long *)p[i], i + me, next);
	}
	shmem_barrier_all();
	for (int i = 0; i < 3; i++)
		CHECK(*(long *)p[i] == i + prev);
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	shmem_barrier_all();
}

/* ---- what ends the job ----------------------------------------------------------------------- */

/* Past the end of what was added. */
static void spans(void)
{
	char *p = shmem_malloc(5 * MIB), *end = p;

	while (shmem_addr_accessible(end, me))
		end += 4096;
	CHECK(end >= p + 5 * MIB);
	shmem_putmem(end - 8, own, 16, next);
}

static void unequal(void)
{
	shmem_malloc(me == 0 ? 5 * MIB : 9 * MIB);
}

static void dies(void)
{
	if (me == 0)
		kill(getpid(), SIGKILL);
	shmem_malloc(5 * MIB);
}

/* ---------------------------------------------------------------------------------------------- */

static void fill_late(void)
{
	late = true;
	fill();
}

/* No growth: the bound is that of the heap. */
static void bounded(void)
{
	void *p = shmem_malloc(3 * MIB);

	CHECK(p != NULL);
	CHECK(shmem_malloc(2 * MIB) == NULL);
	CHECK(shmem_malloc(MIB / 2) != NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		struct rule rule;
		int level;
		int jobs; /* between shmem_init and shmem_finalize, each with a new heap */
	} all[] = {
		{ RULE(fill), SHMEM_THREAD_SINGLE, 1 },
		{ RULE(fill_late), SHMEM_THREAD_SINGLE, 1 },
		{ RULE(align_and_realloc_grow), SHMEM_THREAD_SINGLE, 2 },
		{ RULE(refused), SHMEM_THREAD_SINGLE, 1 },
		{ RULE(narrow), SHMEM_THREAD_SINGLE, 2 },
		{ RULE(beyond), SHMEM_THREAD_SINGLE, 1 },
		{ RULE(threads), SHMEM_THREAD_MULTIPLE, 1 },
		{ RULE(spans), SHMEM_THREAD_SINGLE, 1 },
		{ RULE(unequal), SHMEM_THREAD_SINGLE, 1 },
		{ RULE(dies), SHMEM_THREAD_SINGLE, 1 },
		{ RULE(bounded), SHMEM_THREAD_SINGLE, 1 },
	};
	int provided;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (argc != 2 || strcmp(argv[1], all[i].rule.name) != 0)
			continue;
		for (int n = 0; n < all[i].jobs; n++) {
			if (shmem_init_thread(all[i].level, &provided) != 0)
				return 1;
			learn_who();
			run_rules(&all[i].rule, 1);
			shmem_finalize();
		}
		return 0;
	}
	fprintf(stderr, "usage: grow RULE\n");
	return 2;
}
