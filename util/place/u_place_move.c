/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_place_move.h"

#include <stdio.h>
#include <string.h>

/* The processors of `places` that are on the core of this one. */
static void core_of(const struct u_topo *topo, const struct u_cpuset *places, int cpu,
		    struct u_cpuset *out)
{
	struct u_cpuset one = { { 0 } };

	memset(out, 0, sizeof(*out));
	u_cpuset_add(&one, cpu);
	if (topo != NULL && u_topo_find(topo, cpu) >= 0)
		u_topo_around(topo, &one, U_TOPO_CORE, out);
	else
		*out = one;
	u_cpuset_and(out, places);
}

void u_move_first_core(const struct u_topo *topo, struct u_cpuset *set)
{
	const struct u_cpuset whole = *set;
	int cpu = u_cpuset_next(set, 0);

	if (cpu >= 0)
		core_of(topo, &whole, cpu, set);
}

/* How much of the processors of a core was used, in thousandths, without `own`, which one thread there has used. */
static unsigned int others(const struct u_move_case *c, const struct u_cpuset *core,
			   unsigned int own)
{
	unsigned int sum = 0, n = (unsigned int)u_cpuset_count(core);

	for (int cpu = u_cpuset_next(core, 0); cpu >= 0; cpu = u_cpuset_next(core, cpu + 1))
		sum += c->used[cpu];
	return n == 0 || sum < own ? 0 : (sum - own) / n;
}

/* Are both under one cache, as far as is known? */
static bool one_cache(const struct u_topo *topo, int a, int b)
{
	int i = topo == NULL ? -1 : u_topo_find(topo, a),
	    k = topo == NULL ? -1 : u_topo_find(topo, b);

	return i < 0 || k < 0 || topo->cpus[i].cache == topo->cpus[k].cache;
}

/* Finds the core that others use least, one under the same cache before others.  False: there is no other. */
static bool find_better(const struct u_move_case *c, const struct u_move_thread *t,
			struct u_move_decision *d)
{
	unsigned int best = 0, here, cost;
	int own = u_cpuset_next(&t->cpus, 0);
	struct u_cpuset core, seen;
	bool found = false;

	core_of(c->topo, &c->places, own, &seen);
	u_cpuset_or(&seen, &t->cpus);
	for (int cpu = u_cpuset_next(&c->places, 0); cpu >= 0;
	     cpu = u_cpuset_next(&c->places, cpu + 1)) {
		if (u_cpuset_has(&seen, cpu))
			continue;
		core_of(c->topo, &c->places, cpu, &core);
		u_cpuset_or(&seen, &core);
		here = others(c, &core, 0);
		cost = here + (one_cache(c->topo, cpu, own) ? 0 : U_MOVE_CACHE);
		if (found && cost >= best)
			continue;
		found = true;
		best = cost;
		d->to = core;
		d->others_there = here;
	}
	return found && best + U_MOVE_GAIN <= d->others;
}

/* Decides for one thread as if it were alone; U_MOVE_GOES: it should. */
static enum u_move_why judge(const struct u_move_case *c, struct u_move_thread *t,
			     struct u_move_decision *d)
{
	d->others = others(c, &t->cpus, t->used);
	if (t->rest > 0)
		t->rest--;
	if (d->others < U_MOVE_CROWDED || t->used < U_MOVE_LITTLE) {
		t->crowded = 0;
		return d->others < U_MOVE_CROWDED ? U_MOVE_QUIET : U_MOVE_IDLE;
	}
	if (t->crowded < U_MOVE_IN_TURN)
		t->crowded++;
	if (t->rest > 0)
		return U_MOVE_RESTS;
	if (t->crowded < U_MOVE_IN_TURN)
		return U_MOVE_WAITS;
	return find_better(c, t, d) ? U_MOVE_GOES : U_MOVE_NO_BETTER;
}

void u_move_decide(const struct u_move_case *c, struct u_move_thread *threads, unsigned int n,
		   struct u_move_decision *out)
{
	unsigned int i, goes = n;

	memset(out, 0, n * sizeof(*out));
	for (i = 0; i < n; i++) {
		out[i].why = judge(c, &threads[i], &out[i]);
		if (out[i].why == U_MOVE_GOES && (goes == n || out[i].others > out[goes].others))
			goes = i;
	}
	for (i = 0; i < n; i++) {
		if (out[i].why == U_MOVE_GOES && i != goes)
			out[i].why = U_MOVE_LATER;
	}
	if (goes == n)
		return;
	threads[goes].cpus = out[goes].to;
	threads[goes].crowded = 0;
	threads[goes].rest = U_MOVE_REST + (c->salt + goes) % 4;
}

char *u_move_text(const struct u_move_decision *d, char out[U_MOVE_TEXT])
{
	static const char *const texts[] = {
		[U_MOVE_QUIET] = "stays",
		[U_MOVE_IDLE] = "stays, as it needs little",
		[U_MOVE_RESTS] = "stays, as it has moved not long ago",
		[U_MOVE_WAITS] = "stays for one more interval",
		[U_MOVE_NO_BETTER] = "stays, as no other core is much freer",
		[U_MOVE_LATER] = "stays while another thread moves",
	};
	char list[48];

	if (d->why == U_MOVE_GOES)
		snprintf(out, U_MOVE_TEXT,
			 "goes to processor%s %s: others used %u %% of its core, %u %% of that one",
			 u_cpuset_count(&d->to) == 1 ? "" : "s",
			 u_cpuset_text(&d->to, list, sizeof(list)), d->others / 10,
			 d->others_there / 10);
	else
		snprintf(out, U_MOVE_TEXT, "%s: others used %u %% of its core", texts[d->why],
			 d->others / 10);
	return out;
}
