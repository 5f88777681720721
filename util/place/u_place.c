/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_place.h"

#include <string.h>

#include "u_place_move.h"

#define STEPS 4 /* the place of the rule, and those that are tried instead */

/* The state of one decision while it is made. */
struct work {
	const struct u_place_case *c;
	const struct u_place_ask *ask;
	struct u_cpuset anchor; /* the machine's processors that the application's thread may use */
	bool own;		/* shares are those of this process's threads alone */
	struct u_place_decision *d;
};

bool u_place_met(const struct u_place_decision *d)
{
	return d->why <= U_PLACE_EVERYWHERE;
}

static const struct u_place_rule *rule_of(const struct u_place_case *c, enum u_place_role role)
{
	return &c->rules->of[role];
}

/* ---- shares --------------------------------------------------------------------------------- */

/* Does part number i of n belong to this thread, one of all threads of the role on the machine? */
static bool mine(const struct work *w, unsigned int i, unsigned int n)
{
	unsigned int ranks = w->c->ranks > 0 && !w->own ? w->c->ranks : 1;
	unsigned int all = ranks * w->ask->count;
	unsigned int k = w->c->rank % ranks * w->ask->count + w->ask->index;

	return n <= all ? i == k % n : i % all == k;
}

/* Keeps this thread's share of the processors: more than one where there are more of them than threads of the role. */
static void share_list(const struct work *w, struct u_cpuset *set)
{
	const struct u_cpuset whole = *set;
	unsigned int i = 0, n = (unsigned int)u_cpuset_count(set);

	memset(set, 0, sizeof(*set));
	for (int cpu = u_cpuset_next(&whole, 0); cpu >= 0; cpu = u_cpuset_next(&whole, cpu + 1)) {
		if (mine(w, i++, n))
			u_cpuset_add(set, cpu);
	}
}

/* Keeps this thread's share of the cores.  The processors of a core stand together in a topology. */
static void share_cores(const struct work *w, struct u_cpuset *set)
{
	const struct u_topo *topo = w->c->topo;
	const struct u_cpuset whole = *set;
	unsigned int n = (unsigned int)u_topo_spread(topo, set, U_TOPO_CORE), core = 0;
	int last = U_TOPO_NONE;

	memset(set, 0, sizeof(*set));
	for (int i = 0; i < topo->count; i++) {
		if (!u_cpuset_has(&whole, topo->cpus[i].os))
			continue;
		core += last != U_TOPO_NONE && topo->cpus[i].core != last;
		last = topo->cpus[i].core;
		if (mine(w, core, n))
			u_cpuset_add(set, topo->cpus[i].os);
	}
}

/*
 * Keeps this thread's share of the application's cores, of which a service thread serves the threads that run there.
 * Those of other processes have other threads to serve.
 */
static void share_out(const struct work *w, struct u_cpuset *set)
{
	const struct work alone = { .c = w->c, .ask = w->ask, .own = true };

	share_cores(&alone, set);
}

/* ---- relations ------------------------------------------------------------------------------ */

/* Returns how many such parts the application's processors are in. The topology is known, as in all relations. */
static int spread(const struct work *w, enum u_topo_part part)
{
	return u_topo_spread(w->c->topo, &w->anchor, part);
}

/* Gives all processors of the parts that the application's processors are in. */
static void around(const struct work *w, enum u_topo_part part, struct u_cpuset *out)
{
	memset(out, 0, sizeof(*out));
	u_topo_around(w->c->topo, &w->anchor, part, out);
}

/* Gives the processors of the application's core, without its own if there are others.  Returns as related() does. */
static bool same_core(const struct work *w, const struct u_cpuset *limit, struct u_cpuset *out)
{
	struct u_cpuset others;

	around(w, U_TOPO_CORE, out);
	u_cpuset_and(out, limit);
	others = *out;
	u_cpuset_less(&others, &w->anchor);
	if (u_cpuset_count(&w->anchor) == 1 && !u_cpuset_empty(&others))
		*out = others;
	return spread(w, U_TOPO_CORE) > 1;
}

/*
 * Gives the part around the application's processors, within `limit`, without their nearer part `close`.  If the
 * application may run so widely that nothing is left: all of the part.  Returns as related() does.
 */
static bool beside(const struct work *w, enum u_topo_part part, enum u_topo_part close,
		   const struct u_cpuset *limit, struct u_cpuset *out)
{
	struct u_cpuset near, rest;

	around(w, part, out);
	around(w, close, &near);
	u_cpuset_and(out, limit);
	rest = *out;
	u_cpuset_less(&rest, &near);
	if (u_cpuset_empty(&rest) && spread(w, close) > 1)
		return true;
	*out = rest;
	return false;
}

/*
 * Gives the processors in `limit` that have this relation to the application, maybe none.  True: its own are
 * among them, because it may run on several cores.
 */
static bool related(const struct work *w, enum u_place_where where, const struct u_cpuset *limit,
		    struct u_cpuset *out)
{
	bool known = u_topo_caches_known(w->c->topo, &w->anchor);
	struct u_cpuset package;

	memset(out, 0, sizeof(*out));
	switch (where) {
	case U_PLACE_SAME_CORE:
		return same_core(w, limit, out);
	case U_PLACE_SHARED_CACHE:
		return known && spread(w, U_TOPO_CACHE) == 1 &&
		       beside(w, U_TOPO_CACHE, U_TOPO_CORE, limit, out);
	case U_PLACE_SAME_PACKAGE:
		return beside(w, U_TOPO_PACKAGE, known ? U_TOPO_CACHE : U_TOPO_CORE, limit, out);
	default:
		u_topo_all(w->c->topo, out);
		u_cpuset_and(out, limit);
		around(w, U_TOPO_PACKAGE, &package);
		u_cpuset_less(out, &package);
		return false;
	}
}

/* Returns why no allowed processor has that relation, which the caller has found. */
static enum u_place_why why_not(const struct work *w, enum u_place_where where)
{
	struct u_cpuset all = { { 0 } }, there;

	if (where == U_PLACE_SHARED_CACHE && !u_topo_caches_known(w->c->topo, &w->anchor))
		return U_PLACE_NO_CACHES;
	if (where == U_PLACE_SHARED_CACHE && spread(w, U_TOPO_CACHE) > 1)
		return U_PLACE_WIDE;
	u_topo_all(w->c->topo, &all);
	related(w, where, &all, &there);
	return u_cpuset_empty(&there) ? U_PLACE_NOT_THERE : U_PLACE_NOT_ALLOWED;
}

/* The rule is that service threads share out the application's cores, also of several packages. */
static bool shares_out(const struct work *w)
{
	return w->ask->role == U_PLACE_SERVICE &&
	       rule_of(w->c, U_PLACE_SERVICE)->where == U_PLACE_SAME_CORE;
}

/* Decides for a place relative to the application; if there is none, for the next best. d->cpus is empty before. */
static void decide_relation(const struct work *w, enum u_place_where asked)
{
	static const enum u_place_where steps[][STEPS] = {
		[U_PLACE_SAME_CORE] = { U_PLACE_SAME_CORE, U_PLACE_SHARED_CACHE,
					U_PLACE_SAME_PACKAGE, U_PLACE_OTHER_PACKAGE },
		[U_PLACE_SHARED_CACHE] = { U_PLACE_SHARED_CACHE, U_PLACE_SAME_PACKAGE,
					   U_PLACE_OTHER_PACKAGE, U_PLACE_SAME_CORE },
		[U_PLACE_SAME_PACKAGE] = { U_PLACE_SAME_PACKAGE, U_PLACE_SHARED_CACHE,
					   U_PLACE_OTHER_PACKAGE, U_PLACE_SAME_CORE },
		[U_PLACE_OTHER_PACKAGE] = { U_PLACE_OTHER_PACKAGE, U_PLACE_SAME_PACKAGE,
					    U_PLACE_SHARED_CACHE, U_PLACE_SAME_CORE },
	};
	struct u_place_decision *d = w->d;
	bool loose = false;
	int i;

	for (i = 0; i < STEPS && u_cpuset_empty(&d->cpus); i++) {
		d->got = steps[asked][i];
		loose = related(w, d->got, &w->c->allowed, &d->cpus);
	}
	if (d->got != asked || u_cpuset_empty(&d->cpus))
		d->why = why_not(w, asked);
	else
		d->why = loose ? U_PLACE_LOOSE : U_PLACE_AS_ASKED;
	if (d->why == U_PLACE_LOOSE && shares_out(w)) {
		d->why = U_PLACE_SHARED_OUT;
		share_out(w, &d->cpus);
		return;
	}
	if (u_cpuset_empty(&d->cpus))
		d->got = U_PLACE_NONE;
	else if (!loose)
		share_cores(w, &d->cpus);
}

/* ---- the other places ----------------------------------------------------------------------- */

/* Decides for the processors of the list that are allowed; threads but the application's get a share of them each. */
static void decide_list(const struct work *w, const struct u_cpuset *list)
{
	struct u_place_decision *d = w->d;

	d->cpus = *list;
	u_cpuset_and(&d->cpus, &w->c->allowed);
	if (u_cpuset_empty(&d->cpus)) {
		d->why = U_PLACE_NO_LIST;
		return;
	}
	d->got = U_PLACE_LIST;
	d->why = u_cpuset_equal(&d->cpus, list) ? U_PLACE_AS_ASKED : U_PLACE_PARTLY;
	if (w->ask->role != U_PLACE_APPLICATION)
		share_list(w, &d->cpus);
}

/* The processors of a node, or of the packages that the node is part of. */
static void near_node(const struct u_topo *topo, int node, bool package, struct u_cpuset *out)
{
	struct u_cpuset of = { { 0 } };

	for (int i = 0; i < topo->count; i++) {
		if (topo->cpus[i].node == node)
			u_cpuset_add(&of, topo->cpus[i].os);
	}
	memset(out, 0, sizeof(*out));
	u_topo_around(topo, &of, package ? U_TOPO_PACKAGE : U_TOPO_CPU, out);
}

/* Are all processors in one memory node, as far as is known? */
static bool one_node(const struct u_topo *topo)
{
	struct u_cpuset all = { { 0 } };

	u_topo_all(topo, &all);
	return u_topo_spread(topo, &all, U_TOPO_NODE) < 2;
}

/*
 * Decides for the adapter's memory node, or, where none of its processors is allowed, for its package; not for a
 * machine of one node. Threads but the application's get a share of the cores each.
 */
static void decide_device(const struct work *w)
{
	const struct u_topo *topo = w->c->topo;
	struct u_place_decision *d = w->d;
	struct u_cpuset there;

	if (one_node(topo)) {
		d->why = U_PLACE_EVERYWHERE;
		return;
	}
	near_node(topo, w->c->device_node, false, &there);
	if (w->c->device_node == U_TOPO_NONE || u_cpuset_empty(&there)) {
		d->why = U_PLACE_NO_DEVICE;
		return;
	}
	d->cpus = there;
	u_cpuset_and(&d->cpus, &w->c->allowed);
	d->got = U_PLACE_DEVICE;
	d->why = U_PLACE_AS_ASKED;
	if (u_cpuset_empty(&d->cpus)) {
		d->why = U_PLACE_NOT_ALLOWED;
		near_node(topo, w->c->device_node, true, &d->cpus);
		u_cpuset_and(&d->cpus, &w->c->allowed);
		d->got = u_cpuset_empty(&d->cpus) ? U_PLACE_NONE : U_PLACE_SAME_PACKAGE;
	}
	if (w->ask->role != U_PLACE_APPLICATION && !u_cpuset_empty(&d->cpus))
		share_cores(w, &d->cpus);
}

/* Decides for one thread as decide(), but for `dynamic`. */
static void decide_still(const struct u_place_case *c, const struct u_place_ask *ask,
			 const struct u_cpuset *application, struct u_place_decision *d)
{
	struct work w = { .c = c, .ask = ask, .anchor = *application, .d = d };
	const struct u_place_rule *rule = rule_of(c, ask->role);
	struct u_cpuset all = { { 0 } };

	memset(d, 0, sizeof(*d));
	if (rule->where == U_PLACE_NONE)
		return;
	if (rule->where == U_PLACE_LIST) {
		decide_list(&w, &rule->list);
		return;
	}
	if (c->topo == NULL) {
		d->why = U_PLACE_NO_TOPOLOGY;
		return;
	}
	if (rule->where == U_PLACE_DEVICE) {
		decide_device(&w);
		return;
	}
	u_topo_all(c->topo, &all);
	u_cpuset_and(&w.anchor, &all);
	if (u_cpuset_empty(&w.anchor))
		d->why = U_PLACE_NO_APPLICATION;
	else if (spread(&w, U_TOPO_PACKAGE) > 1 && !shares_out(&w))
		d->why = U_PLACE_TOO_WIDE;
	else
		decide_relation(&w, rule->where);
}

/*
 * Decides for one thread; `application`: where the application's thread will run.  One that moves by load begins on one
 * core.
 */
static void decide(const struct u_place_case *c, const struct u_place_ask *ask,
		   const struct u_cpuset *application, struct u_place_decision *d)
{
	decide_still(c, ask, application, d);
	if (c->rules->dynamic && ask->role == U_PLACE_SERVICE && d->got != U_PLACE_SAME_CORE)
		u_move_first_core(c->topo, &d->cpus);
}

/* ---- warnings ------------------------------------------------------------------------------- */

/* A thread and the processors that it may use. */
struct user {
	const struct u_cpuset *cpus;
	bool placed, polls;
	bool close; /* it was asked for the application's core */
};

/* Where the thread of a decision may run: where it is placed, or else all that is allowed. Points into *c or *d. */
static struct user user_of(const struct u_place_case *c, const struct u_place_ask *ask,
			   const struct u_place_decision *d)
{
	bool placed = !u_cpuset_empty(&d->cpus);

	return (struct user){
		.cpus = placed ? &d->cpus : &c->allowed,
		.placed = placed,
		.polls = ask->polls,
		.close = rule_of(c, ask->role)->where == U_PLACE_SAME_CORE,
	};
}

/* Are all processors of both sets on one core? False where that is not known. */
static bool on_one_core(const struct u_place_case *c, const struct u_cpuset *a,
			const struct u_cpuset *b)
{
	struct u_cpuset both = *a;

	u_cpuset_or(&both, b);
	return c->topo != NULL && u_topo_spread(c->topo, &both, U_TOPO_CORE) == 1;
}

/* Returns the warnings about two threads that share a processor or a core, 0 for none. */
static unsigned int compare(const struct u_place_case *c, const struct user *a,
			    const struct user *b)
{
	bool unwanted = (a->placed || b->placed) && !a->close && !b->close;
	bool polls = a->polls || b->polls;

	if (u_cpuset_count(a->cpus) == 1 && u_cpuset_equal(a->cpus, b->cpus))
		return (unwanted ? U_PLACE_SHARES_CPU : 0) | (polls ? U_PLACE_POLLS : 0);
	return unwanted && on_one_core(c, a->cpus, b->cpus) ? U_PLACE_SHARES_CORE : 0;
}

/*
 * Adds its warnings to each of the n decisions: the first other thread that shares its processor or core, and whether
 * more threads poll than there are processors.  `application`: its thread; NULL: not known, or one of `asks`.
 */
static void warn(const struct u_place_case *c, const struct u_place_ask *asks, unsigned int n,
		 const struct user *application, struct u_place_decision *out)
{
	unsigned int i, k, found, polling = application != NULL && application->polls;
	struct user me, other;

	for (i = 0; i < n; i++)
		polling += asks[i].polls;
	for (i = 0; i < n; i++) {
		me = user_of(c, &asks[i], &out[i]);
		for (k = 0; k <= n; k++) {
			if (k == i || (k == n && application == NULL))
				continue;
			other = k < n ? user_of(c, &asks[k], &out[k]) : *application;
			found = compare(c, &me, &other);
			if (found != 0 && out[i].warnings == 0)
				out[i].with = k;
			out[i].warnings |= out[i].with == k ? found : 0;
		}
		if (me.polls && polling > (unsigned int)u_cpuset_count(&c->allowed))
			out[i].warnings |= U_PLACE_TOO_MANY;
	}
}

bool u_place_application(const struct u_place_case *c, struct u_cpuset *out)
{
	const struct u_place_ask ask = { .role = U_PLACE_APPLICATION, .count = 1 };
	const struct u_place_rule *rule = rule_of(c, U_PLACE_APPLICATION);
	const struct u_cpuset none = { { 0 } };
	struct u_place_decision d;

	decide(c, &ask, &none, &d);
	if (c->foreign && rule->where == U_PLACE_LIST)
		d.cpus = rule->list;
	*out = u_cpuset_empty(&d.cpus) ? c->application : d.cpus;
	return !u_cpuset_empty(&d.cpus);
}

void u_place_of_service(const struct u_place_case *c, struct u_cpuset *out)
{
	const struct u_place_ask all = { .role = U_PLACE_SERVICE, .count = 1 };
	struct u_cpuset application;
	struct u_place_decision d;

	u_place_application(c, &application);
	decide_still(c, &all, &application, &d);
	*out = d.cpus;
}

void u_place(const struct u_place_case *c, const struct u_place_ask *asks, unsigned int n,
	     struct u_place_decision *out)
{
	struct u_cpuset application;
	struct user user = { .cpus = &application, .polls = c->application_polls };
	bool asked = false;

	user.placed = u_place_application(c, &application);
	for (unsigned int i = 0; i < n; i++) {
		decide(c, &asks[i], &application, &out[i]);
		asked |= asks[i].role == U_PLACE_APPLICATION;
	}
	warn(c, asks, n, asked || u_cpuset_empty(&application) ? NULL : &user, out);
}
