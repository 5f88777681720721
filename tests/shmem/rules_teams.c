/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of teams. */
#include "rules.h"

static long source[64], dest[64 * MAX_PES];

/* A collective of the team works, and gives the sum over its members. */
static void use(shmem_team_t team)
{
	int n = shmem_team_n_pes(team);
	long sum = 0;

	for (int i = 0; i < n; i++)
		sum += shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD);
	source[0] = me;
	CHECK(shmem_long_sum_reduce(team, dest, source, 1) == 0);
	CHECK(dest[0] == sum);
	CHECK(shmem_team_sync(team) == 0);
}

static shmem_team_t split(shmem_team_t parent, int start, int stride, int size)
{
	shmem_team_t team = SHMEM_TEAM_WORLD;

	CHECK(shmem_team_split_strided(parent, start, stride, size, NULL, 0, &team) == 0);
	return team;
}

static void predefined(void)
{
	CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me &&
	      shmem_team_n_pes(SHMEM_TEAM_WORLD) == npes);
	CHECK(shmem_team_translate_pe(SHMEM_TEAM_SHARED, shmem_team_my_pe(SHMEM_TEAM_SHARED),
				      SHMEM_TEAM_WORLD) == me);
	use(SHMEM_TEAM_WORLD);
	shmem_barrier_all();
	use(SHMEM_TEAM_SHARED);
}

static void invalid_team(void)
{
	shmem_team_t team = SHMEM_TEAM_WORLD, other = SHMEM_TEAM_WORLD;
	shmem_team_config_t config = { 0 };

	CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 &&
	      shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
	CHECK(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD) == -1);
	CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_INVALID) == -1);
	CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, -1, SHMEM_TEAM_WORLD) == -1);
	CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, npes, SHMEM_TEAM_WORLD) == -1);
	CHECK(shmem_team_get_config(SHMEM_TEAM_INVALID, SHMEM_TEAM_NUM_CONTEXTS, &config) != 0);
	CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0);
	CHECK(team == SHMEM_TEAM_INVALID);
	team = SHMEM_TEAM_WORLD;
	CHECK(shmem_team_split_2d(SHMEM_TEAM_INVALID, 1, NULL, 0, &team, NULL, 0, &other) != 0);
	CHECK(team == SHMEM_TEAM_INVALID && other == SHMEM_TEAM_INVALID);
	shmem_team_destroy(SHMEM_TEAM_INVALID);
}

static void invalid_triplets(void)
{
	const int triplets[][3] = { { 0, 1, npes + 1 }, { 1, 1, npes },	  { -1, 1, 1 },
				    { npes, 1, 1 },	{ 0, -1, 2 },	  { 0, npes, 2 },
				    { 0, 0, 2 },	{ 0, 1, 0 },	  { 0, 1, -1 },
				    { npes - 1, 1, 2 }, { 0, 1 << 30, 4 } };

	for (size_t i = 0; i < sizeof(triplets) / sizeof(triplets[0]); i++) {
		shmem_team_t team = SHMEM_TEAM_WORLD;
		CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, triplets[i][0], triplets[i][1],
					       triplets[i][2], NULL, 0, &team) != 0);
		CHECK(team == SHMEM_TEAM_INVALID);
	}
	use(SHMEM_TEAM_WORLD);
}

static void strides(void)
{
	shmem_team_t even = split(SHMEM_TEAM_WORLD, 0, 2, (npes + 1) / 2);
	shmem_team_t back = split(SHMEM_TEAM_WORLD, npes - 1, -1, npes);
	shmem_team_t one = split(SHMEM_TEAM_WORLD, npes / 2, 0, 1);

	/* A PE that is not a member got no error, and no team. */
	CHECK((even == SHMEM_TEAM_INVALID) == (me % 2 == 1));
	CHECK((one == SHMEM_TEAM_INVALID) == (me != npes / 2));
	if (even != SHMEM_TEAM_INVALID) {
		CHECK(shmem_team_my_pe(even) == me / 2 && shmem_team_n_pes(even) == (npes + 1) / 2);
		use(even);
	}
	CHECK(shmem_team_my_pe(back) == npes - 1 - me);
	CHECK(shmem_team_translate_pe(back, 0, SHMEM_TEAM_WORLD) == npes - 1);
	CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 1 % npes, even) == (npes > 1 ? -1 : 0) ||
	      even == SHMEM_TEAM_INVALID);
	use(back);
	if (one != SHMEM_TEAM_INVALID) {
		CHECK(shmem_team_n_pes(one) == 1 && shmem_team_my_pe(one) == 0);
		use(one);
	}
	shmem_team_destroy(even);
	shmem_team_destroy(back);
	shmem_team_destroy(one);
}

static void relative_to_the_parent(void)
{
	shmem_team_t back = split(SHMEM_TEAM_WORLD, npes - 1, -1, npes);
	shmem_team_t half = split(back, 0, 1, (npes + 1) / 2); /* the upper half of the world */

	CHECK((half != SHMEM_TEAM_INVALID) == (npes - 1 - me < (npes + 1) / 2));
	if (half != SHMEM_TEAM_INVALID) {
		int n = shmem_team_n_pes(half);
		shmem_team_t last = split(half, n - 1, 1, 1);

		CHECK(shmem_team_my_pe(half) == npes - 1 - me);
		use(half);
		CHECK((last != SHMEM_TEAM_INVALID) == (shmem_team_my_pe(half) == n - 1));
		if (last != SHMEM_TEAM_INVALID)
			use(last);
		shmem_team_destroy(last);
	}
	shmem_team_destroy(back); /* before its child, which stays */
	if (half != SHMEM_TEAM_INVALID)
		use(half);
	shmem_team_destroy(half);
}

static void two_dimensions(void)
{
	for (int xrange = 1; xrange <= npes + 2; xrange++) {
		int width = xrange < npes ? xrange : npes, row = me / width;
		int rest = npes - row * width, height = (npes - me % width + width - 1) / width;
		shmem_team_t x = SHMEM_TEAM_INVALID, y = SHMEM_TEAM_INVALID;

		CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, xrange, NULL, 0, &x, NULL, 0, &y) == 0);
		CHECK(shmem_team_my_pe(x) == me % width && shmem_team_my_pe(y) == row);
		CHECK(shmem_team_n_pes(x) == (rest < width ? rest : width));
		CHECK(shmem_team_n_pes(y) == height);
		CHECK(shmem_team_translate_pe(x, 0, SHMEM_TEAM_WORLD) == row * width);
		CHECK(shmem_team_translate_pe(y, 0, SHMEM_TEAM_WORLD) == me % width);
		use(x);
		use(y);
		shmem_team_destroy(x);
		shmem_team_destroy(y);
	}
}

static void configuration(void)
{
	shmem_team_config_t config = { 3 };
	shmem_team_t team;

	CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, &config,
				       SHMEM_TEAM_NUM_CONTEXTS, &team) == 0);
	config.num_contexts = -1;
	CHECK(shmem_team_get_config(team, 0, NULL) == 0);
	CHECK(shmem_team_get_config(team, 0, &config) == 0 && config.num_contexts == -1);
	CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0);
	CHECK(config.num_contexts >= 0);
	shmem_team_destroy(team);
	/* With mask 0 the configuration is not looked at. */
	config.num_contexts = -77;
	CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, &config, 0, &team) == 0);
	use(team);
	shmem_team_destroy(team);
}

static void many_at_once(void)
{
	enum { MANY = 100 };
	shmem_team_t teams[MANY];

	for (int i = 0; i < MANY; i++)
		teams[i] = split(SHMEM_TEAM_WORLD, i % 2 ? npes - 1 : 0, i % 2 ? -1 : 1, npes);
	for (int i = 0; i < MANY; i += 7)
		use(teams[i]);
	for (int i = 0; i < MANY; i++)
		for (int k = i + 1; k < MANY; k++)
			CHECK(teams[i] != teams[k]);
	for (int i = 0; i < MANY; i++)
		shmem_team_destroy(teams[(i * 37) % MANY]);
}

static void made_and_destroyed(void)
{
	for (int i = 0; i < 300; i++) {
		shmem_team_t team = split(SHMEM_TEAM_WORLD, 0, 1, 1 + i % npes);
		if (team != SHMEM_TEAM_INVALID)
			use(team);
		shmem_team_destroy(team);
	}
}

/* Collectives of several teams in turn, with no other synchronization between them. */
static void no_cross_talk(void)
{
	shmem_team_t low = split(SHMEM_TEAM_WORLD, 0, 1, (npes + 1) / 2);
	shmem_team_t high = split(SHMEM_TEAM_WORLD, npes / 2, 1, npes - npes / 2);
	shmem_team_t back = split(SHMEM_TEAM_WORLD, npes - 1, -1, npes);
	const shmem_team_t teams[] = { low, SHMEM_TEAM_WORLD, high, back };
	static long from[4][50], into[4][50];

	for (int round = 0; round < 50; round++)
		for (int t = 0; t < 4; t++)
			from[t][round] = 1000 * t + round + me;
	for (int round = 0; round < 50; round++) {
		for (int t = 0; t < 4; t++) {
			int n = shmem_team_n_pes(teams[t]);
			long want = (long)n * (1000 * t + round);
			if (teams[t] == SHMEM_TEAM_INVALID)
				continue;
			for (int i = 0; i < n; i++)
				want += shmem_team_translate_pe(teams[t], i, SHMEM_TEAM_WORLD);
			CHECK(shmem_long_sum_reduce(teams[t], &into[t][round], &from[t][round],
						    1) == 0);
			CHECK(into[t][round] == want);
		}
	}
	shmem_team_destroy(low);
	shmem_team_destroy(high);
	shmem_team_destroy(back);
}

static void numbers_of_contexts_are_the_teams(void)
{
	shmem_team_config_t config = { 1 };
	shmem_team_t back, team;
	shmem_ctx_t ctx;

	CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, &config,
				       SHMEM_TEAM_NUM_CONTEXTS, &back) == 0);
	CHECK(shmem_team_create_ctx(back, 0, &ctx) == 0);
	dest[1] = -1;
	shmem_ctx_long_p(ctx, &dest[1], me, shmem_team_my_pe(back)); /* to this PE */
	shmem_ctx_quiet(ctx);
	CHECK(dest[1] == me);
	CHECK(shmem_ctx_long_atomic_fetch(ctx, &dest[1], shmem_team_my_pe(back)) == me);
	CHECK(shmem_ctx_get_team(ctx, &team) == 0 && team == back);
	shmem_ctx_destroy(ctx);
	shmem_team_destroy(back);
}

/* Every kind of access counts PEs by the team of its context. */
static void contexts_of_a_team_reach_its_members(void)
{
	shmem_team_config_t config = { 1 };
	static long slots[4], old;
	static uint64_t sig;
	shmem_team_t back;
	shmem_ctx_t ctx;
	int to, world;

	CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, &config,
				       SHMEM_TEAM_NUM_CONTEXTS, &back) == 0);
	to = (shmem_team_my_pe(back) + 1) % npes;
	world = shmem_team_translate_pe(back, to, SHMEM_TEAM_WORLD);
	CHECK(world == prev); /* the team counts backwards */
	CHECK(shmem_team_create_ctx(back, 0, &ctx) == 0);
	shmem_ctx_long_put(ctx, &slots[0], &(long){ 10 + me }, 1, to);
	shmem_ctx_long_atomic_add(ctx, &slots[1], 20 + me, to);
	shmem_ctx_long_put_nbi(ctx, &slots[2], &slots[3], 1, to);
	shmem_ctx_long_put_signal(ctx, &slots[2], &(long){ 30 + me }, 1, &sig, 4, SHMEM_SIGNAL_SET,
				  to);
	shmem_ctx_pe_quiet(ctx, &to, 1);
	CHECK(shmem_ctx_long_g(ctx, &slots[0], to) == 10 + me);
	CHECK(shmem_long_g(&slots[0], world) == 10 + me);
	shmem_ctx_long_atomic_fetch_add_nbi(ctx, &old, &slots[1], 5, to);
	shmem_ctx_quiet(ctx);
	CHECK(old == 20 + me);
	CHECK(shmem_signal_wait_until(&sig, SHMEM_CMP_NE, 0) == 4);
	shmem_barrier_all();
	CHECK(slots[0] == 10 + next && slots[1] == 25 + next && slots[2] == 30 + next);
	shmem_ctx_destroy(ctx);
	shmem_team_destroy(back);
}

static void no_contexts_by_default(void)
{
	shmem_team_config_t config = { -1 };
	shmem_team_t team = split(SHMEM_TEAM_WORLD, 0, 1, npes);

	CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0);
	CHECK(config.num_contexts == 0);
	shmem_team_destroy(team);
}

static const struct rule rules[] = {
	RULE(predefined),
	RULE(invalid_team),
	RULE(invalid_triplets),
	RULE(strides),
	RULE(relative_to_the_parent),
	RULE(two_dimensions),
	RULE(configuration),
	RULE(many_at_once),
	RULE(made_and_destroyed),
	RULE(no_cross_talk),
	RULE(numbers_of_contexts_are_the_teams),
	RULE(contexts_of_a_team_reach_its_members),
	RULE(no_contexts_by_default),
};

RULES_MAIN
