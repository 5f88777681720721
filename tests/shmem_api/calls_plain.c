/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls the routines without types: set-up, memory, teams, contexts, order, locks. */
#include "calls.h"

/* ---- Set-up and queries ---------------------------------------------------------------------- */

static void test_shmem_query_thread(void)
{
	int level = -1;

	shmem_query_thread(&level);
	CHECK(level >= SHMEM_THREAD_SINGLE && level <= SHMEM_THREAD_MULTIPLE);
}

static void test_shmem_query_initialized(void)
{
	int initialized = -1;

	shmem_query_initialized(&initialized);
	CHECK(initialized == 1);
}

static void test_shmem_my_pe(void)
{
	CHECK(shmem_my_pe() >= 0 && shmem_my_pe() < shmem_n_pes());
}

static void test_shmem_n_pes(void)
{
	long *seen = slot(MAX_PES * sizeof(*seen));

	for (int pe = 0; pe < shmem_n_pes(); pe++)
		shmem_long_p(&seen[me], 1, pe);
	shmem_barrier_all();
	for (int pe = 0; pe < MAX_PES; pe++)
		CHECK(seen[pe] == (pe < shmem_n_pes()));
}

static void test_shmem_pe_accessible(void)
{
	for (int pe = 0; pe < npes; pe++)
		CHECK(shmem_pe_accessible(pe) == 1);
	CHECK(shmem_pe_accessible(-1) == 0 && shmem_pe_accessible(npes) == 0);
}

static void test_shmem_addr_accessible(void)
{
	int local = 0;
	void *private_memory = malloc(100);

	for (int pe = 0; pe < npes; pe++) {
		CHECK(shmem_addr_accessible(slots_heap, pe) == 1);
		CHECK(shmem_addr_accessible(slots_static, pe) == 1);
		CHECK(shmem_addr_accessible(&local, pe) == 0);
		CHECK(shmem_addr_accessible(private_memory, pe) == 0);
	}
	CHECK(shmem_addr_accessible(slots_heap, npes) == 0);
	free(private_memory);
}

static void through_pointers(void *(*pointer)(const void *, int))
{
	long *object = slot(sizeof(*object));
	int reachable = 0;

	CHECK(pointer(object, me) == object);
	for (int pe = 0; pe < npes; pe++) {
		long *there = pointer(object, pe);
		if (there != NULL) {
			__atomic_fetch_add(there, 1, __ATOMIC_SEQ_CST);
			reachable++;
		}
	}
	shmem_barrier_all();
	CHECK(*object == reachable);
	CHECK(pointer(&reachable, me) == NULL);
}

static void test_shmem_ptr(void)
{
	through_pointers(shmem_ptr);
}

static void *team_pointer(const void *object, int pe)
{
	return shmem_team_ptr(SHMEM_TEAM_WORLD, object, pe);
}

static void test_shmem_team_ptr(void)
{
	through_pointers(team_pointer);
	CHECK(shmem_team_ptr(SHMEM_TEAM_INVALID, slots_heap, 0) == NULL);
}

static void test_shmem_info_get_version(void)
{
	int major = 0, minor = 0;

	shmem_info_get_version(&major, &minor);
	CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION);
}

static void test_shmem_info_get_name(void)
{
	char name[SHMEM_MAX_NAME_LEN];

	memset(name, 1, sizeof(name));
	shmem_info_get_name(name);
	CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0);
}

static void test_shmem_pcontrol(void)
{
	shmem_pcontrol(0);
	shmem_pcontrol(1, "more", 2);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Can all PEs use this block of `bytes` bytes?  Each writes all of the next PE's block. */
static void check_block(void *block, size_t bytes)
{
	char *source = malloc(bytes);

	CHECK(block != NULL && source != NULL);
	fill(source, bytes, me);
	shmem_putmem(block, source, bytes, next);
	shmem_barrier_all();
	CHECK(filled(block, bytes, prev));
	free(source);
}

static void test_shmem_malloc(void)
{
	void *a = shmem_malloc(1000), *b = shmem_malloc(77);

	check_block(a, 1000);
	check_block(b, 77);
	CHECK(filled(a, 1000, prev));
	CHECK(shmem_malloc(0) == NULL);
	shmem_free(b);
	shmem_free(a);
}

static void test_shmem_free(void)
{
	shmem_free(NULL);
	/* The heap would be used up if nothing were given back. */
	for (int i = 0; i < 40; i++) {
		void *a = shmem_malloc(64u << 20);
		CHECK(a != NULL);
		shmem_free(a);
	}
}

static void test_shmem_calloc(void)
{
	char *a = shmem_calloc(100, 3);

	CHECK(a != NULL);
	for (int i = 0; i < 300; i++)
		CHECK(a[i] == 0);
	shmem_barrier_all();
	check_block(a, 300);
	CHECK(shmem_calloc(0, 3) == NULL && shmem_calloc(3, 0) == NULL);
	shmem_free(a);
}

static void test_shmem_align(void)
{
	for (size_t alignment = 1; alignment <= 1u << 16; alignment *= 2) {
		void *a = shmem_align(alignment, 50);
		CHECK((uintptr_t)a % alignment == 0);
		check_block(a, 50);
		shmem_free(a);
	}
	CHECK(shmem_align(64, 0) == NULL);
}

static void test_shmem_malloc_with_hints(void)
{
	const long hints[] = { 0, SHMEM_MALLOC_ATOMICS_REMOTE, SHMEM_MALLOC_SIGNAL_REMOTE,
			       SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE };

	for (int i = 0; i < 4; i++) {
		void *a = shmem_malloc_with_hints(200, hints[i]);
		check_block(a, 200);
		shmem_free(a);
	}
	CHECK(shmem_malloc_with_hints(0, 0) == NULL);
}

static void test_shmem_realloc(void)
{
	void *a = shmem_realloc(NULL, 100);

	check_block(a, 100);
	a = shmem_realloc(a, 5000);
	CHECK(a != NULL && filled(a, 100, prev));
	shmem_barrier_all();
	check_block(a, 5000);
	a = shmem_realloc(a, 10);
	CHECK(a != NULL && filled(a, 10, prev));
	CHECK(shmem_realloc(a, 0) == NULL);
}

/* ---- Teams ----------------------------------------------------------------------------------- */

static void test_shmem_team_my_pe(void)
{
	CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me);
	CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1);
}

static void test_shmem_team_n_pes(void)
{
	CHECK(shmem_team_n_pes(SHMEM_TEAM_WORLD) == npes);
	CHECK(shmem_team_n_pes(SHMEM_TEAM_SHARED) >= 1);
	CHECK(shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
}

static void test_shmem_team_split_strided(void)
{
	shmem_team_t team = SHMEM_TEAM_WORLD;

	CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, npes > 1 ? -1 : 1, npes, NULL, 0,
				       &team) == 0);
	CHECK(shmem_team_n_pes(team) == npes && shmem_team_my_pe(team) == npes - 1 - me);
	shmem_team_destroy(team);
}

static void test_shmem_team_split_2d(void)
{
	shmem_team_t x, y;

	CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &x, NULL, 0, &y) == 0);
	CHECK(shmem_team_my_pe(x) == me % 2 && shmem_team_my_pe(y) == me / 2);
	shmem_team_destroy(x);
	shmem_team_destroy(y);
}

static void test_shmem_team_get_config(void)
{
	shmem_team_config_t config = { 2 };
	shmem_team_t team;

	CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, &config,
				       SHMEM_TEAM_NUM_CONTEXTS, &team) == 0);
	config.num_contexts = -5;
	CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0);
	CHECK(config.num_contexts >= 0);
	CHECK(shmem_team_get_config(team, 0, NULL) == 0);
	CHECK(shmem_team_get_config(SHMEM_TEAM_INVALID, 0, &config) != 0);
	shmem_team_destroy(team);
}

static void test_shmem_team_translate_pe(void)
{
	CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, me, SHMEM_TEAM_WORLD) == me);
	CHECK(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD) == -1);
	CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_INVALID) == -1);
}

static void test_shmem_team_destroy(void)
{
	shmem_team_destroy(SHMEM_TEAM_INVALID);
	for (int i = 0; i < 20; i++) {
		shmem_team_t team;
		CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team) == 0);
		CHECK(shmem_team_sync(team) == 0);
		shmem_team_destroy(team);
	}
}

/* ---- Contexts -------------------------------------------------------------------------------- */

static void test_shmem_ctx_create(void)
{
	const long options[] = { 0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE,
				 SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE };
	long *dest = slot(4 * sizeof(*dest));

	for (int i = 0; i < 4; i++) {
		shmem_ctx_t made = SHMEM_CTX_DEFAULT;
		if (shmem_ctx_create(options[i], &made) != 0) {
			CHECK(made == SHMEM_CTX_INVALID);
			made = SHMEM_CTX_DEFAULT;
		}
		shmem_ctx_long_p(made, &dest[i], me + 1, next);
		shmem_ctx_quiet(made);
		if (made != SHMEM_CTX_DEFAULT)
			shmem_ctx_destroy(made);
	}
	shmem_barrier_all();
	for (int i = 0; i < 4; i++)
		CHECK(dest[i] == prev + 1);
}

static void test_shmem_team_create_ctx(void)
{
	shmem_ctx_t made = SHMEM_CTX_DEFAULT;

	CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &made) != 0 &&
	      made == SHMEM_CTX_INVALID);
	if (shmem_team_create_ctx(SHMEM_TEAM_WORLD, 0, &made) == 0) {
		shmem_ctx_quiet(made);
		shmem_ctx_destroy(made);
	} else {
		CHECK(made == SHMEM_CTX_INVALID);
	}
}

static void test_shmem_ctx_destroy(void)
{
	long *dest = slot(sizeof(*dest));
	shmem_ctx_t made;

	shmem_ctx_destroy(SHMEM_CTX_INVALID);
	if (shmem_ctx_create(0, &made) != 0)
		made = SHMEM_CTX_INVALID;
	shmem_ctx_long_atomic_add(made == SHMEM_CTX_INVALID ? SHMEM_CTX_DEFAULT : made, dest, 3,
				  next);
	shmem_ctx_destroy(made); /* completes it */
	shmem_barrier_all();
	CHECK(*dest == 3);
}

static void test_shmem_ctx_get_team(void)
{
	shmem_team_t team = SHMEM_TEAM_INVALID;

	CHECK(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) == 0 && team == SHMEM_TEAM_WORLD);
	CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0 && team == SHMEM_TEAM_INVALID);
}

static void test_shmem_ctx_session_start(void)
{
	shmem_ctx_session_config_t config = { 10 };
	long *dest = slot(10 * sizeof(*dest));

	shmem_ctx_session_start(SHMEM_CTX_INVALID, 0, NULL, 0);
	shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
	shmem_ctx_session_start(ctx, 0, NULL, 0);
	for (int i = 0; i < 10; i++)
		shmem_ctx_long_p(ctx, &dest[i], me + i, next);
	shmem_ctx_session_stop(ctx);
	shmem_ctx_quiet(ctx);
	shmem_barrier_all();
	for (int i = 0; i < 10; i++)
		CHECK(dest[i] == prev + i);
}

static void test_shmem_ctx_session_stop(void)
{
	shmem_ctx_session_stop(SHMEM_CTX_INVALID);
	shmem_ctx_session_start(ctx, 0, NULL, 0);
	shmem_ctx_session_stop(ctx);
	shmem_ctx_session_stop(ctx);
}

/* ---- Order and collectives ------------------------------------------------------------------- */

/* Stores data, calls the routine to be tested, stores a flag: a PE that sees the flag must see the data. */
static void ordered(shmem_ctx_t on, void (*order)(void))
{
	long *data = slot(2 * sizeof(*data));

	shmem_ctx_long_p(on, &data[0], 41, next);
	order();
	shmem_ctx_long_p(on, &data[1], 1, next);
	shmem_ctx_quiet(on);
	shmem_long_wait_until(&data[1], SHMEM_CMP_EQ, 1);
	CHECK(data[0] == 41);
}

static void ctx_fence(void)
{
	shmem_ctx_fence(ctx);
}

static void ctx_quiet(void)
{
	shmem_ctx_quiet(ctx);
}

static void pe_quiet(void)
{
	shmem_pe_quiet(&next, 1);
}

static void ctx_pe_quiet(void)
{
	shmem_ctx_pe_quiet(ctx, &next, 1);
}

static void test_shmem_fence(void)
{
	ordered(SHMEM_CTX_DEFAULT, shmem_fence);
}

static void test_shmem_ctx_fence(void)
{
	shmem_ctx_fence(SHMEM_CTX_INVALID);
	ordered(ctx, ctx_fence);
}

static void test_shmem_quiet(void)
{
	ordered(SHMEM_CTX_DEFAULT, shmem_quiet);
}

static void test_shmem_ctx_quiet(void)
{
	shmem_ctx_quiet(SHMEM_CTX_INVALID);
	ordered(ctx, ctx_quiet);
}

static void test_shmem_pe_quiet(void)
{
	shmem_pe_quiet(NULL, 0);
	ordered(SHMEM_CTX_DEFAULT, pe_quiet);
}

static void test_shmem_ctx_pe_quiet(void)
{
	shmem_ctx_pe_quiet(ctx, NULL, 0);
	shmem_ctx_pe_quiet(SHMEM_CTX_INVALID, &next, 1);
	ordered(ctx, ctx_pe_quiet);
}

static void test_shmem_barrier_all(void)
{
	long *data = slot(sizeof(*data));

	shmem_long_p(data, 6, next);
	shmem_barrier_all();
	CHECK(*data == 6);
}

/* No PE may return from sync() before every PE has called it. */
static void all_have_come(int (*sync)(void))
{
	long *count = slot(sizeof(*count));

	shmem_long_atomic_inc(count, 0);
	shmem_quiet();
	CHECK(sync() == 0);
	CHECK(shmem_long_atomic_fetch(count, 0) == npes);
}

static int sync_all(void)
{
	shmem_sync_all();
	return 0;
}

static int team_sync(void)
{
	return shmem_team_sync(SHMEM_TEAM_WORLD);
}

static void test_shmem_sync_all(void)
{
	all_have_come(sync_all);
}

static void test_shmem_team_sync(void)
{
	all_have_come(team_sync);
	CHECK(shmem_team_sync(SHMEM_TEAM_INVALID) != 0);
}

/* ---- Locks ----------------------------------------------------------------------------------- */

static long lock, count_under_lock;

static void test_shmem_set_lock(void)
{
	for (int i = 0; i < 10; i++) {
		shmem_set_lock(&lock);
		shmem_long_p(&count_under_lock, shmem_long_g(&count_under_lock, 0) + 1, 0);
		shmem_quiet();
		shmem_clear_lock(&lock);
	}
	shmem_barrier_all();
	CHECK(shmem_long_g(&count_under_lock, 0) == 10 * npes);
}

static void test_shmem_clear_lock(void)
{
	long *data = slot(sizeof(*data));

	shmem_set_lock(&lock);
	shmem_long_atomic_add(data, 1, 0);
	shmem_clear_lock(&lock); /* completes it */
	shmem_sync_all();
	CHECK(shmem_long_g(data, 0) == npes);
}

static void test_shmem_test_lock(void)
{
	long *taken = slot(sizeof(*taken));

	while (shmem_test_lock(&lock) != 0)
		;
	CHECK(shmem_long_atomic_fetch_inc(taken, 0) == 0);
	shmem_long_atomic_set(taken, 0, 0);
	shmem_clear_lock(&lock);
	shmem_barrier_all();
	if (me == 0)
		shmem_set_lock(&lock);
	shmem_barrier_all();
	CHECK(me == 0 || shmem_test_lock(&lock) == 1);
	shmem_barrier_all();
	if (me == 0)
		shmem_clear_lock(&lock);
}

/* clang-format off */
#define CALL(name) { #name, test_##name }
static const struct call calls[] = {
	CALL(shmem_query_thread), CALL(shmem_query_initialized), CALL(shmem_my_pe), CALL(shmem_n_pes),
	CALL(shmem_pe_accessible), CALL(shmem_addr_accessible), CALL(shmem_ptr), CALL(shmem_team_ptr),
	CALL(shmem_info_get_version), CALL(shmem_info_get_name), CALL(shmem_pcontrol),
	CALL(shmem_malloc), CALL(shmem_free), CALL(shmem_calloc), CALL(shmem_align),
	CALL(shmem_malloc_with_hints), CALL(shmem_realloc),
	CALL(shmem_team_my_pe), CALL(shmem_team_n_pes), CALL(shmem_team_split_strided),
	CALL(shmem_team_split_2d), CALL(shmem_team_get_config), CALL(shmem_team_translate_pe),
	CALL(shmem_team_destroy),
	CALL(shmem_ctx_create), CALL(shmem_team_create_ctx), CALL(shmem_ctx_destroy),
	CALL(shmem_ctx_get_team), CALL(shmem_ctx_session_start), CALL(shmem_ctx_session_stop),
	CALL(shmem_fence), CALL(shmem_ctx_fence), CALL(shmem_quiet), CALL(shmem_ctx_quiet),
	CALL(shmem_pe_quiet), CALL(shmem_ctx_pe_quiet), CALL(shmem_barrier_all),
	CALL(shmem_sync_all), CALL(shmem_team_sync),
	CALL(shmem_set_lock), CALL(shmem_clear_lock), CALL(shmem_test_lock),
};
/* clang-format on */

int main(void)
{
	int provided = -1, initialized = -1;

	shmem_query_initialized(&initialized);
	CHECK(initialized == 0);
	CHECK(shmem_init_thread(SHMEM_THREAD_SINGLE, &provided) == 0);
	CHECK(provided >= SHMEM_THREAD_SINGLE && provided <= SHMEM_THREAD_MULTIPLE);
	testing = "shmem_init";
	begin_calls(); /* the second start */
	passed("shmem_init");
	passed("shmem_init_thread");
	run_calls(calls, sizeof(calls) / sizeof(calls[0]));
	testing = "shmem_finalize";
	end_calls();
	shmem_query_initialized(&initialized);
	CHECK(initialized == 1);
	shmem_finalize();
	shmem_query_initialized(&initialized);
	CHECK(initialized == 0);
	if (me == 0)
		puts("ok shmem_finalize");
	return 0;
}
