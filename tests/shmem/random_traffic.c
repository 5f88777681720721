/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random puts, gets, strided and with signals, atomic operations and collectives of up to 8 MiB among all PEs, round
 * after round.  Each PE knows what the others do (random_plan.h), and compares all of its memory after each round.
 * PE 0 writes a line now and then, and ends the job after so many rounds, or when its standard input ends.
 *
 * usage: random_traffic SEED [ROUNDS]
 */
#include <poll.h>
#include <unistd.h>

#include "random_plan.h"
#include "rules.h"

#define CELLS 16
#define CONTEXTS 3
#define SAY_EVERY 10

struct cells {
	uint64_t sum[CELLS], bits[CELLS], swapped[CELLS], ticket;
	uint32_t sum32[CELLS];
	int taken[PLAN_OPS];			    /* tickets */
	uint64_t counted[MAX_PES], noted[PLAN_OPS]; /* signals */
};

static char variable[PLAN_VARIABLE];
static struct cells cells, wanted;
static uint64_t conserved[CELLS], conserved_all[CELLS];
static long stop;

static struct plan plan;
static char *arena[PLAN_ARENAS], *source, *results;
static char *model[PLAN_ARENAS], *model_results, *mirror[PLAN_ARENAS], *own, *scratch, *scratch2;
static const size_t arena_bytes[PLAN_ARENAS] = { PLAN_HEAP, PLAN_VARIABLE };
static shmem_ctx_t contexts[CONTEXTS];
static shmem_team_t teams[PLAN_TEAMS];
static long now; /* the round */

/* ---- transfers ---- */

#define SIZED(element, call, ...)                                                                  \
	((element) == 1	  ? shmem_ctx_##call##8(__VA_ARGS__)                                       \
	 : (element) == 2 ? shmem_ctx_##call##16(__VA_ARGS__)                                      \
	 : (element) == 4 ? shmem_ctx_##call##32(__VA_ARGS__)                                      \
	 : (element) == 8 ? shmem_ctx_##call##64(__VA_ARGS__)                                      \
			  : shmem_ctx_##call##128(__VA_ARGS__))

#define SIZED_NBI(element, call, ...)                                                              \
	((element) == 1	  ? shmem_ctx_##call##8_nbi(__VA_ARGS__)                                   \
	 : (element) == 2 ? shmem_ctx_##call##16_nbi(__VA_ARGS__)                                  \
	 : (element) == 4 ? shmem_ctx_##call##32_nbi(__VA_ARGS__)                                  \
	 : (element) == 8 ? shmem_ctx_##call##64_nbi(__VA_ARGS__)                                  \
			  : shmem_ctx_##call##128_nbi(__VA_ARGS__))

static void put_strided(const struct plan_op *o, shmem_ctx_t ctx, void *to, const void *from)
{
	ptrdiff_t dst = (ptrdiff_t)(o->to_stride / o->element),
		  sst = (ptrdiff_t)(o->from_stride / o->element);
	size_t block = o->block / o->element;

	if (block == 1)
		SIZED(o->element, iput, ctx, to, from, dst, sst, o->blocks, o->other);
	else
		SIZED(o->element, ibput, ctx, to, from, dst, sst, block, o->blocks, o->other);
}

static void get_strided(const struct plan_op *o, shmem_ctx_t ctx, void *to, const void *from)
{
	ptrdiff_t dst = (ptrdiff_t)(o->to_stride / o->element),
		  sst = (ptrdiff_t)(o->from_stride / o->element);
	size_t block = o->block / o->element;

	if (block == 1)
		SIZED(o->element, iget, ctx, to, from, dst, sst, o->blocks, o->other);
	else
		SIZED(o->element, ibget, ctx, to, from, dst, sst, block, o->blocks, o->other);
}

static void put_block(const struct plan_op *o, shmem_ctx_t ctx, void *to, const void *from,
		      bool nbi)
{
	if (o->block == 8 && o->element == 8 && !nbi) {
		uint64_t word;
		memcpy(&word, from, sizeof(word));
		shmem_ctx_uint64_p(ctx, to, word, o->other);
	} else if (nbi) {
		SIZED_NBI(o->element, put, ctx, to, from, o->block / o->element, o->other);
	} else {
		SIZED(o->element, put, ctx, to, from, o->block / o->element, o->other);
	}
}

static void put_any(const struct plan_op *o, shmem_ctx_t ctx, void *to, const void *from, bool nbi)
{
	if (o->blocks > 1)
		put_strided(o, ctx, to, from);
	else
		put_block(o, ctx, to, from, nbi);
}

/*
 * Variants: non-blocking; from memory that is not symmetric; from such memory that is used again at
 * once; after another put to the same place.
 */
static void put(const struct plan_op *o)
{
	shmem_ctx_t ctx = contexts[o->choice % CONTEXTS];
	bool nbi = o->choice & 0x100;
	char *to = arena[o->arena] + o->to;

	if ((o->choice & 0xe00) == 0 && o->blocks == 1 && o->block <= PLAN_SOURCE / 2) {
		put_block(o, ctx, to, own + PLAN_SOURCE / 2, nbi);
		shmem_ctx_fence(ctx);
	}
	switch (o->choice >> 12 & 3) {
	case 0:
		put_any(o, ctx, to, source + o->from, nbi);
		break;
	case 1:
		put_any(o, ctx, to, own + o->from, nbi);
		break;
	default: {
		size_t n = (o->blocks - 1) * o->from_stride + o->block;
		memcpy(scratch, own + o->from, n);
		put_any(o, ctx, to, scratch, false);
		memset(scratch, 0x5a, n);
		break;
	}
	}
}

static void put_with_signal(const struct plan_op *o)
{
	shmem_ctx_t ctx = contexts[o->choice % CONTEXTS];
	bool adds = o->choice & 0x200;
	uint64_t *sig = adds ? &cells.counted[me] : &cells.noted[o - plan.ops];
	uint64_t value = adds ? 1 : (uint64_t)now;
	int op = adds ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET;
	const char *from = (o->choice & 0x1000 ? own : source) + o->from;

	if (o->choice & 0x100)
		shmem_ctx_putmem_signal_nbi(ctx, arena[o->arena] + o->to, from, o->block, sig,
					    value, op, o->other);
	else
		shmem_ctx_putmem_signal(ctx, arena[o->arena] + o->to, from, o->block, sig, value,
					op, o->other);
}

static bool is_mirrored(const struct plan_op *o)
{
	return o->kind == PLAN_GET && (o->choice & 0x1000);
}

static void get(const struct plan_op *o)
{
	shmem_ctx_t ctx = contexts[o->choice % CONTEXTS];
	char *to = (is_mirrored(o) ? mirror : arena)[o->arena] + o->to, *from = source + o->from;
	size_t n = o->block / o->element;

	if (o->blocks > 1) {
		get_strided(o, ctx, to, from);
	} else if (o->block == 8 && o->element == 8) {
		uint64_t word = shmem_ctx_uint64_g(ctx, (uint64_t *)(void *)from, o->other);
		memcpy(to, &word, sizeof(word));
	} else if (o->choice & 0x100) {
		SIZED_NBI(o->element, get, ctx, to, from, n, o->other);
	} else {
		SIZED(o->element, get, ctx, to, from, n, o->other);
		plan_fill(scratch, plan_tag(now, o->other), o->from, o->block);
		CHECK(memcmp(scratch, to, o->block) == 0);
	}
}

/* Applies a transfer to the expected memory. */
static void apply(const struct plan_op *o, char *const at[PLAN_ARENAS], bool copies)
{
	int from = o->kind == PLAN_GET ? o->other : o->pe;

	for (size_t i = 0; i < o->blocks; i++) {
		char *to = at[o->arena] + o->to + i * o->to_stride;
		if (copies)
			memcpy(to, mirror[o->arena] + o->to + i * o->to_stride, o->block);
		else
			plan_fill(to, plan_tag(now, from), o->from + i * o->from_stride, o->block);
	}
}

/* ---- atomic operations ---- */

static void add_one(uint64_t *cell, int pe, shmem_ctx_t ctx)
{
	uint64_t old = shmem_ctx_uint64_atomic_fetch(ctx, cell, pe), seen;

	while ((seen = shmem_ctx_uint64_atomic_compare_swap(ctx, cell, old, old + 1, pe)) != old)
		old = seen;
}

static void add(const struct plan_op *o)
{
	shmem_ctx_t ctx = contexts[o->choice % CONTEXTS];
	int i = (int)(o->value % CELLS);

	switch (o->choice >> 8 & 7) {
	case 0:
		add_one(&cells.sum[i], o->other, ctx);
		break;
	case 1:
		shmem_ctx_uint64_atomic_inc(ctx, &cells.sum[i], o->other);
		break;
	case 2:
		shmem_ctx_uint32_atomic_add(ctx, &cells.sum32[i], (uint32_t)o->value, o->other);
		break;
	case 3:
		shmem_ctx_uint32_atomic_fetch_add(ctx, &cells.sum32[i], (uint32_t)o->value,
						  o->other);
		break;
	case 4:
		shmem_ctx_uint64_atomic_fetch_add(ctx, &cells.sum[i], o->value, o->other);
		break;
	default:
		shmem_ctx_uint64_atomic_add(ctx, &cells.sum[i], o->value, o->other);
		break;
	}
}

static void add_wanted(const struct plan_op *o)
{
	int i = (int)(o->value % CELLS), variant = (int)(o->choice >> 8 & 7);

	if (variant == 2 || variant == 3)
		wanted.sum32[i] += (uint32_t)o->value;
	else
		wanted.sum[i] += variant < 2 ? 1 : o->value;
}

static void atomic(const struct plan_op *o)
{
	shmem_ctx_t ctx = contexts[o->choice % CONTEXTS];
	int i = (int)(o->value % CELLS);
	uint64_t ticket;

	if (o->kind == PLAN_ADD) {
		add(o);
	} else if (o->kind == PLAN_XOR) {
		shmem_ctx_uint64_atomic_xor(ctx, &cells.bits[i], o->value, o->other);
	} else if (o->kind == PLAN_SWAP) {
		conserved[i] += o->value;
		conserved[i] -=
			shmem_ctx_uint64_atomic_swap(ctx, &cells.swapped[i], o->value, o->other);
	} else {
		ticket = shmem_ctx_uint64_atomic_fetch_inc(ctx, &cells.ticket, o->other);
		CHECK(ticket < PLAN_OPS);
		shmem_ctx_int_atomic_inc(ctx, &cells.taken[ticket], o->other);
	}
}

/* ---- collectives ---- */

static size_t uneven(const struct plan_op *o, int member)
{
	return o->block / 8 - (size_t)member % 2;
}

static void collective(const struct plan_op *o)
{
	shmem_team_t team = teams[o->team];
	int members = plan_members(o->team, me, npes), mine = shmem_team_my_pe(team);
	uint64_t *to = (uint64_t *)(void *)(results + o->to),
		 *from = (uint64_t *)(void *)(source + o->from);
	size_t n = o->block / 8;

	CHECK(members == shmem_team_n_pes(team));
	if (o->call == PLAN_BROADCAST)
		shmem_uint64_broadcast(team, to, from, n, o->other % members);
	else if (o->call == PLAN_FCOLLECT)
		shmem_fcollectmem(team, to, from, o->block);
	else if (o->call == PLAN_COLLECT)
		shmem_uint64_collect(team, to, from, uneven(o, mine));
	else if (o->call == PLAN_ALLTOALL)
		shmem_uint64_alltoall(team, to, from, n);
	else if (o->call == PLAN_SUM)
		shmem_uint64_sum_reduce(team, to, from, n);
	else if (o->call == PLAN_XORS)
		shmem_uint32_xor_reduce(team, (uint32_t *)to, (uint32_t *)from, n * 2);
	else if (o->call == PLAN_MAX)
		shmem_uint64_max_reduce(team, to, from, n);
	else if (o->call == PLAN_INSCAN)
		shmem_uint64_sum_inscan(team, to, from, n);
	else if (o->call == PLAN_EXSCAN)
		shmem_uint64_sum_exscan(team, to, from, n);
	else if (o->choice & 1)
		shmem_team_sync(team);
	else
		shmem_barrier_all();
}

/* The blocks of the members one after the other; or combined, those from the first to `last`. */
static void combined(const struct plan_op *o, int last, uint64_t *to)
{
	uint64_t *part = (uint64_t *)(void *)scratch2;

	memset(to, 0, o->block);
	for (int i = 0; i <= last; i++) {
		plan_fill(part, plan_tag(now, plan_member(o->team, me, i, npes)), o->from,
			  o->block);
		for (size_t k = 0; k < o->block / 8; k++) {
			if (o->call == PLAN_XORS)
				to[k] ^= part[k];
			else if (o->call == PLAN_MAX)
				to[k] = part[k] > to[k] ? part[k] : to[k];
			else
				to[k] += part[k];
		}
	}
}

static void collective_wanted(const struct plan_op *o)
{
	int members = plan_members(o->team, me, npes), mine = shmem_team_my_pe(teams[o->team]);
	char *to = model_results + o->to;
	size_t n;

	if (o->call == PLAN_BROADCAST) {
		plan_fill(to, plan_tag(now, plan_member(o->team, me, o->other % members, npes)),
			  o->from, o->block);
	} else if (o->call == PLAN_FCOLLECT || o->call == PLAN_COLLECT ||
		   o->call == PLAN_ALLTOALL) {
		for (int i = 0; i < members; i++) {
			n = o->call == PLAN_COLLECT ? uneven(o, i) * 8 : o->block;
			plan_fill(to, plan_tag(now, plan_member(o->team, me, i, npes)),
				  o->from + (o->call == PLAN_ALLTOALL ? (size_t)mine * n : 0), n);
			to += n;
		}
	} else if (o->call == PLAN_INSCAN || o->call == PLAN_EXSCAN) {
		combined(o, mine - (o->call == PLAN_EXSCAN), (uint64_t *)(void *)to);
	} else if (o->call != PLAN_SYNC) {
		combined(o, members - 1, (uint64_t *)(void *)to);
	}
}

/* ---- a round ---- */

/* Its members get the new team. */
static void split(shmem_team_t *team, int first, int step, int n)
{
	shmem_team_t made;

	shmem_team_split_strided(SHMEM_TEAM_WORLD, first, step, n, NULL, 0, &made);
	if (made != SHMEM_TEAM_INVALID)
		*team = made;
}

static void make_handles(void)
{
	static const long options[] = { 0, SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED, 0 };
	int half = (npes + 1) / 2;

	contexts[0] = SHMEM_CTX_DEFAULT;
	CHECK(shmem_ctx_create(options[now % 4], &contexts[1]) == 0);
	CHECK(shmem_team_create_ctx(SHMEM_TEAM_WORLD, options[(now + 1) % 4], &contexts[2]) == 0);
	for (int i = 0; i < PLAN_TEAMS; i++)
		teams[i] = SHMEM_TEAM_WORLD;
	if (npes == 1)
		return;
	split(&teams[1], 0, 2, half);
	split(&teams[1], 1, 2, npes / 2);
	split(&teams[2], 0, 1, half);
	split(&teams[2], half, 1, npes - half);
}

static void begin(uint64_t seed)
{
	plan_make(&plan, seed, now, npes);
	make_handles();
	plan_fill(source, plan_tag(now, me), 0, PLAN_SOURCE);
	memcpy(own, source, PLAN_SOURCE);
	memset(&cells, 0, sizeof(cells));
	memset(&wanted, 0, sizeof(wanted));
	memset(conserved, 0, sizeof(conserved));
	shmem_barrier_all();
}

static void act(uint64_t seed)
{
	uint64_t random = seed + (uint64_t)now * 64 + (uint64_t)me;

	for (int i = 0; i < plan.n; i++) {
		const struct plan_op *o = &plan.ops[i];

		if (o->kind == PLAN_COLLECTIVE_CALL)
			collective(o);
		if (o->kind == PLAN_COLLECTIVE_CALL || o->pe != me)
			continue;
		if (o->kind == PLAN_PUT)
			put(o);
		else if (o->kind == PLAN_SIGNAL)
			put_with_signal(o);
		else if (o->kind == PLAN_GET)
			get(o);
		else
			atomic(o);
		if (plan_random(&random) % 16 == 0)
			shmem_ctx_quiet(contexts[plan_random(&random) % CONTEXTS]);
	}
	for (int i = 0; i < CONTEXTS; i++)
		shmem_ctx_quiet(contexts[i]);
}

static void expect(void)
{
	uint64_t counted[MAX_PES] = { 0 };

	for (int i = 0; i < plan.n; i++) {
		const struct plan_op *o = &plan.ops[i];

		if (o->kind == PLAN_COLLECTIVE_CALL)
			collective_wanted(o);
		else if (o->kind == PLAN_GET && o->pe == me)
			apply(o, model, false);
		else if (o->kind <= PLAN_SIGNAL && o->kind != PLAN_GET && o->other == me)
			apply(o, model, false);
		else if (o->kind == PLAN_ADD && o->other == me)
			add_wanted(o);
		else if (o->kind == PLAN_XOR && o->other == me)
			wanted.bits[o->value % CELLS] ^= o->value;
		else if (o->kind == PLAN_TICKET && o->other == me)
			wanted.taken[wanted.ticket++] = 1;
		if (is_mirrored(o) && o->pe == me)
			apply(o, arena, true);
		if (o->kind == PLAN_SIGNAL && o->other == me)
			counted[o->pe] += o->choice >> 9 & 1;
	}
	for (int i = 0; i < npes; i++)
		shmem_signal_wait_until(&cells.counted[i], SHMEM_CMP_EQ, counted[i]);
	for (int i = 0; i < plan.n; i++) {
		const struct plan_op *o = &plan.ops[i];

		if (o->kind != PLAN_SIGNAL || o->other != me)
			continue;
		if (!(o->choice & 0x200))
			shmem_signal_wait_until(&cells.noted[i], SHMEM_CMP_EQ, (uint64_t)now);
		CHECK(memcmp(arena[o->arena] + o->to, model[o->arena] + o->to, o->block) == 0);
	}
}

static void compare(void)
{
	for (int i = 0; i < CELLS; i++) {
		CHECK(cells.sum[i] == wanted.sum[i]);
		CHECK(cells.sum32[i] == wanted.sum32[i]);
		CHECK(cells.bits[i] == wanted.bits[i]);
		conserved[i] -= cells.swapped[i];
	}
	CHECK(cells.ticket == wanted.ticket);
	CHECK(memcmp(cells.taken, wanted.taken, sizeof(cells.taken)) == 0);
	for (int i = 0; i < PLAN_ARENAS; i++)
		CHECK(memcmp(arena[i], model[i], arena_bytes[i]) == 0);
	CHECK(memcmp(results, model_results, PLAN_COLLECTIVE) == 0);
	shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, conserved_all, conserved, CELLS);
	for (int i = 0; i < CELLS; i++)
		CHECK(conserved_all[i] == 0);
}

static void end(void)
{
	shmem_ctx_destroy(contexts[1]);
	shmem_ctx_destroy(contexts[2]);
	if (npes > 1) {
		shmem_team_destroy(teams[2]);
		shmem_team_destroy(teams[1]);
	}
}

static bool has_ended(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };
	char byte;

	return poll(&p, 1, 0) == 1 && read(fd, &byte, 1) <= 0;
}

static void *must(void *p)
{
	CHECK(p != NULL);
	return p;
}

static void allocate(void)
{
	arena[0] = must(shmem_calloc(1, PLAN_HEAP));
	arena[1] = variable;
	results = must(shmem_calloc(1, PLAN_COLLECTIVE));
	source = must(shmem_malloc(PLAN_SOURCE));
	for (int i = 0; i < PLAN_ARENAS; i++) {
		model[i] = must(calloc(1, arena_bytes[i]));
		mirror[i] = must(calloc(1, arena_bytes[i]));
	}
	model_results = must(calloc(1, PLAN_COLLECTIVE));
	own = must(malloc(PLAN_SOURCE));
	scratch = must(malloc(PLAN_SOURCE));
	scratch2 = must(malloc(PLAN_SOURCE));
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 0;

	shmem_init();
	learn_who();
	allocate();
	rule_name = "random traffic";
	while (!stop) {
		now++;
		begin(seed);
		act(seed);
		expect();
		shmem_barrier_all();
		compare();
		if (me == 0 && (now % SAY_EVERY == 0 || rounds == 0)) {
			printf("round %ld\n", now);
			fflush(stdout);
		}
		if (me == 0)
			stop = rounds != 0 ? now == rounds : has_ended(STDIN_FILENO);
		end();
		shmem_barrier_all(); /* also: all have read */
		shmem_long_broadcast(SHMEM_TEAM_WORLD, &stop, &stop, 1, 0);
	}
	if (me == 0)
		printf("all %ld rounds are right\n", now);
	shmem_finalize();
	return 0;
}
