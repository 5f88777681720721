/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of remote memory access and of atomic operations. */
#include "rules.h"

#define MOST 300000

static unsigned char there[MOST + 64], from[MOST + 64], back[MOST + 64];

static unsigned char byte_at(int pe, size_t i, size_t salt)
{
	return (unsigned char)(i * 131 + salt * 17 + (size_t)pe * 59);
}

static void fill(unsigned char *p, size_t n, int pe, size_t salt)
{
	for (size_t i = 0; i < n; i++)
		p[i] = byte_at(pe, i, salt);
}

static int filled(const unsigned char *p, size_t n, int pe, size_t salt)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != byte_at(pe, i, salt))
			return 0;
	return 1;
}

/* ---- Remote memory access -------------------------------------------------------------------- */

static void all_lengths_and_alignments(void)
{
	const size_t lengths[] = { 1,	 2,    3,     4,     7,	    8,	   9,	   15,
				   16,	 17,   31,    47,    48,    49,	   63,	   64,
				   65,	 127,  500,   1023,  1024,  2049,  4095,   4096,
				   4097, 8192, 16385, 65535, 65536, 65537, 131072, MOST };

	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
		size_t n = lengths[k], at = k % 9, of = k % 5;
		fill(from + of, n, me, k);
		memset(there, 0, at);
		there[at + n] = 0;
		shmem_barrier_all();
		shmem_putmem(there + at, from + of, n, next);
		memset(from, 0xEE, n + of); /* the source is free at once */
		shmem_barrier_all();
		CHECK(filled(there + at, n, prev, k));
		CHECK(there[at + n] == 0 && (at == 0 || there[at - 1] == 0));
		memset(back, 0, n + of + 1);
		shmem_getmem(back + of, there + at, n, next);
		CHECK(filled(back + of, n, me, k));
		CHECK(back[of + n] == 0 && (of == 0 || back[of - 1] == 0));
		shmem_barrier_all();
	}
}

static void every_pe_to_every_pe(void)
{
	static long table[MAX_PES], copy[MAX_PES];

	for (int round = 1; round <= 20; round++) {
		for (int pe = 0; pe < npes; pe++)
			shmem_long_p(&table[me], round * 100 + me, pe);
		shmem_barrier_all();
		for (int pe = 0; pe < npes; pe++) {
			shmem_long_get(copy, table, (size_t)npes, pe);
			for (int k = 0; k < npes; k++)
				CHECK(copy[k] == round * 100 + k);
		}
		shmem_barrier_all();
	}
}

static void zero_lengths(void)
{
	static long one = 1;

	shmem_long_put(NULL, NULL, 0, next);
	shmem_long_put(&one, &one, 0, next);
	shmem_getmem(NULL, NULL, 0, next);
	shmem_put128(NULL, NULL, 0, next);
	shmem_get8_nbi(NULL, NULL, 0, next);
	shmem_double_put_nbi(NULL, NULL, 0, next);
	shmem_iput32(NULL, NULL, 1, 1, 0, next);
	shmem_long_iget(NULL, NULL, 1, 1, 0, next);
	shmem_long_ibput(NULL, NULL, 1, 1, 1, 0, next);
	shmem_long_ibput(&one, &one, 1, 1, 0, 5, next);
	shmem_ibget64(NULL, NULL, 1, 1, 1, 0, next);
	shmem_quiet();
	CHECK(one == 1);
}

static void strided(size_t elem, size_t dst, size_t sst, size_t n)
{
	fill(from, elem * sst * n, me, dst + sst);
	memset(there, 0, elem * dst * n);
	shmem_barrier_all();
	switch (elem) {
	case 1:
		shmem_iput8(there, from, (ptrdiff_t)dst, (ptrdiff_t)sst, n, next);
		break;
	case 4:
		shmem_iput32(there, from, (ptrdiff_t)dst, (ptrdiff_t)sst, n, next);
		break;
	default:
		shmem_iput128(there, from, (ptrdiff_t)dst, (ptrdiff_t)sst, n, next);
		break;
	}
	shmem_barrier_all();
	for (size_t i = 0; i < elem * dst * n; i++) {
		size_t at = i % (elem * dst), source = i / (elem * dst) * elem * sst + at;
		CHECK(there[i] == (at < elem ? byte_at(prev, source, dst + sst) : 0));
	}
	memset(back, 0, elem * sst * n);
	switch (elem) {
	case 1:
		shmem_iget8(back, there, (ptrdiff_t)sst, (ptrdiff_t)dst, n, next);
		break;
	case 4:
		shmem_iget32(back, there, (ptrdiff_t)sst, (ptrdiff_t)dst, n, next);
		break;
	default:
		shmem_iget128(back, there, (ptrdiff_t)sst, (ptrdiff_t)dst, n, next);
		break;
	}
	for (size_t i = 0; i < elem * sst * n; i++)
		CHECK(back[i] == (i % (elem * sst) < elem ? from[i] : 0));
	shmem_barrier_all();
}

static void strides(void)
{
	const size_t elems[] = { 1, 4, 16 };

	for (int e = 0; e < 3; e++)
		for (size_t dst = 1; dst <= 3; dst++)
			for (size_t sst = 1; sst <= 3; sst++)
				for (size_t n = 1; n <= 1000; n = n * 31 + 1)
					strided(elems[e], dst, sst, n);
}

static void blocks_with_strides(size_t bsize, size_t dst, size_t sst, size_t nblocks)
{
	static long into[1000], out_of[1000], again[1000];

	memset(into, 0, sizeof(into));
	memset(again, 0, sizeof(again));
	for (size_t i = 0; i < 1000; i++)
		out_of[i] = me * 1000 + (long)i + 1;
	shmem_barrier_all();
	shmem_long_ibput(into, out_of, (ptrdiff_t)dst, (ptrdiff_t)sst, bsize, nblocks, next);
	shmem_barrier_all();
	for (size_t i = 0; i < 1000; i++) {
		size_t block = i / dst, at = i % dst;
		int written = block < nblocks && at < bsize;
		CHECK(into[i] == (written ? prev * 1000 + (long)(block * sst + at) + 1 : 0));
	}
	shmem_long_ibget(again, into, (ptrdiff_t)sst, (ptrdiff_t)dst, bsize, nblocks, next);
	for (size_t i = 0; i < 1000; i++) {
		int written = i / sst < nblocks && i % sst < bsize;
		CHECK(again[i] == (written ? out_of[i] : 0));
	}
	shmem_barrier_all();
}

static void strides_of_blocks(void)
{
	const size_t sizes[] = { 1, 3, 8 };

	for (int s = 0; s < 3; s++)
		for (size_t dst = sizes[s]; dst <= sizes[s] + 2; dst += 2)
			for (size_t sst = sizes[s]; sst <= sizes[s] + 1; sst++)
				for (size_t n = 1; n <= 100; n = n * 9 + 1)
					blocks_with_strides(sizes[s], dst, sst, n);
}

static void to_self(void)
{
	static long object, vector[100];
	long local[100];

	for (int i = 0; i < 100; i++)
		local[i] = i;
	shmem_long_put(vector, local, 100, me);
	shmem_quiet();
	CHECK(vector[99] == 99);
	shmem_long_p(&object, 7, me);
	shmem_quiet();
	CHECK(object == 7 && shmem_long_g(&object, me) == 7);
	shmem_long_put(vector, vector, 100, me); /* onto itself */
	shmem_quiet();
	CHECK(vector[50] == 50);
}

static void many_small_nbi(void)
{
	static int table[20000];

	for (int i = 0; i < 20000; i++)
		((int *)from)[i] = me * 20000 + i;
	for (int i = 0; i < 20000; i++)
		shmem_int_put_nbi(&table[i], &((int *)from)[i], 1, next);
	shmem_barrier_all();
	for (int i = 0; i < 20000; i++)
		CHECK(table[i] == prev * 20000 + i);
	for (int i = 0; i < 20000; i++)
		shmem_int_get_nbi(&((int *)back)[i], &table[i], 1, next);
	shmem_quiet();
	for (int i = 0; i < 20000; i++)
		CHECK(((int *)back)[i] == me * 20000 + i);
}

/* ---- Atomic operations ----------------------------------------------------------------------- */

static void all_add_at_one(void)
{
	static int counter32;
	static long counter64;
	static size_t counter_size;
	static unsigned char seen[2000 * MAX_PES];
	int last = npes - 1;

	for (int i = 0; i < 2000; i++) {
		int ticket = shmem_int_atomic_fetch_inc(&counter32, last);
		CHECK(ticket >= 0 && ticket < 2000 * npes);
		shmem_uchar_p(&seen[ticket], 1, last);
		shmem_long_atomic_add(&counter64, 3, last);
		shmem_size_atomic_inc(&counter_size, last);
	}
	shmem_barrier_all();
	if (me == last) {
		CHECK(counter32 == 2000 * npes && counter64 == 6000L * npes);
		CHECK(counter_size == 2000u * (unsigned)npes);
		for (int i = 0; i < 2000 * npes; i++)
			CHECK(seen[i] == 1); /* each ticket was given once */
	}
}

/* The PE itself and the others, in turn and at once, on the same object. */
static void to_self_and_by_others(void)
{
	static long object;

	for (int i = 0; i < 1000; i++) {
		shmem_long_atomic_inc(&object, me);
		shmem_long_atomic_fetch_add(&object, 1, next);
	}
	shmem_barrier_all();
	CHECK(object == 2000);
}

static void compare_and_swap_excludes(void)
{
	static long lock, data;

	for (int i = 0; i < 200; i++) {
		while (shmem_long_atomic_compare_swap(&lock, 0, me + 1, 0) != 0)
			;
		shmem_long_p(&data, shmem_long_g(&data, 0) + 1, 0);
		shmem_quiet();
		CHECK(shmem_long_atomic_swap(&lock, 0, 0) == me + 1);
	}
	shmem_barrier_all();
	CHECK(shmem_long_g(&data, 0) == 200L * npes);
}

static void bits_of_all(void)
{
	static uint64_t ones, zeros = UINT64_MAX;
	static unsigned int flips;

	shmem_uint64_atomic_or(&ones, (uint64_t)0x11 << 8 * me, 0);
	shmem_uint64_atomic_and(&zeros, ~((uint64_t)0x80 << 8 * me), 0);
	for (int i = 0; i < 101; i++)
		shmem_uint_atomic_xor(&flips, 1u << me, 0);
	shmem_barrier_all();
	for (int pe = 0; pe < MAX_PES; pe++) {
		unsigned is = pe < npes;
		CHECK((shmem_uint64_atomic_fetch(&ones, 0) >> 8 * pe & 0xFF) == (is ? 0x11 : 0));
		CHECK((shmem_uint64_g(&zeros, 0) >> 8 * pe & 0x80) == (is ? 0 : 0x80));
		CHECK((shmem_uint_atomic_fetch(&flips, 0) >> pe & 1) == is);
	}
}

static void wrap_around(void)
{
	static int i = INT32_MAX;
	static uint32_t u = UINT32_MAX;
	static int64_t l = INT64_MAX;
	static int neighbours[3] = { -1, -1, -1 };

	CHECK(shmem_int_atomic_fetch_add(&i, 1, me) == INT32_MAX && i == INT32_MIN);
	CHECK(shmem_uint32_atomic_fetch_inc(&u, me) == UINT32_MAX && u == 0);
	CHECK(shmem_int64_atomic_fetch_add(&l, 2, me) == INT64_MAX && l == INT64_MIN + 1);
	shmem_int_atomic_inc(&neighbours[1], next); /* four bytes, not eight */
	shmem_barrier_all();
	CHECK(neighbours[0] == -1 && neighbours[1] == 0 && neighbours[2] == -1);
}

static void reals(void)
{
	static float f = 1.25f;
	static double d = -0.0;

	CHECK(shmem_float_atomic_fetch(&f, me) == 1.25f);
	shmem_barrier_all();
	CHECK(shmem_float_atomic_swap(&f, 2.5f + (float)me, next) == 1.25f);
	shmem_double_atomic_set(&d, 1e300 / (me + 1), next);
	shmem_barrier_all();
	CHECK(f == 2.5f + (float)prev && d == 1e300 / (prev + 1));
}

/* An atomic operation meets a wait at its target. */
static void waits_see_atomics(void)
{
	static long ball;

	for (int round = 1; round <= 200; round++) {
		if (me == 0) {
			shmem_long_atomic_set(&ball, round, next);
			shmem_quiet();
			shmem_long_wait_until(&ball, SHMEM_CMP_GE, round);
		} else {
			shmem_long_wait_until(&ball, SHMEM_CMP_EQ, round);
			shmem_long_atomic_add(&ball, 0, me);
			shmem_long_atomic_set(&ball, round, next);
			shmem_quiet();
		}
	}
}

static const struct rule rules[] = {
	RULE(all_lengths_and_alignments),
	RULE(every_pe_to_every_pe),
	RULE(zero_lengths),
	RULE(strides),
	RULE(strides_of_blocks),
	RULE(to_self),
	RULE(many_small_nbi),
	RULE(all_add_at_one),
	RULE(to_self_and_by_others),
	RULE(compare_and_swap_excludes),
	RULE(bits_of_all),
	RULE(wrap_around),
	RULE(reals),
	RULE(waits_see_atomics),
};

RULES_MAIN
