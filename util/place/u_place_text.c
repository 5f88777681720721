/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "u_place.h"

static const char *const why_texts[] = {
	[U_PLACE_NOT_ASKED] = "nothing was asked for",
	[U_PLACE_AS_ASKED] = "as asked",
	[U_PLACE_LOOSE] = "as asked, but the application's thread may run there, too",
	[U_PLACE_SHARED_OUT] = "as asked, for the threads that run there",
	[U_PLACE_EVERYWHERE] = "this machine has one memory node, so no processor is nearer",
	[U_PLACE_NOT_THERE] = "this machine has no such processor",
	[U_PLACE_NOT_ALLOWED] = "this process may not use such processors",
	[U_PLACE_NO_CACHES] = "the kernel does not tell which cores share a cache",
	[U_PLACE_WIDE] = "the application's thread may run under several caches; bind it to one",
	[U_PLACE_PARTLY] = "this process may not use the others, or they are offline",
	[U_PLACE_NO_TOPOLOGY] = "nothing is known of this machine's cores and caches",
	[U_PLACE_NO_APPLICATION] = "the place of the application is not known; application=LIST "
				   "tells it",
	[U_PLACE_TOO_WIDE] = "the application's thread may run in several packages; bind it to one",
	[U_PLACE_NO_DEVICE] = "no adapter is known whose memory node the kernel tells",
	[U_PLACE_NO_LIST] = "this process may use none of them, or they are offline",
};

/* The place of the rule as a word, or its list, which is written to `list`. */
static const char *where_text(const struct u_place_rule *rule, char list[U_CPUSET_TEXT])
{
	return rule->where == U_PLACE_LIST ? u_cpuset_text(&rule->list, list, U_CPUSET_TEXT)
					   : u_place_where_words[rule->where];
}

/* Writes the place that a thread got, such as "shared-cache (L3)", or "these" for a list. */
static void got_text(const struct u_place_case *c, const struct u_place_decision *d, char *out,
		     size_t size)
{
	int at = c->topo == NULL ? -1 : u_topo_find(c->topo, u_cpuset_next(&d->cpus, 0));

	if (d->got == U_PLACE_SHARED_CACHE && at >= 0)
		snprintf(out, size, "shared-cache (L%d)", c->topo->cpus[at].cache_level);
	else
		snprintf(out, size, "%s",
			 d->got == U_PLACE_LIST ? "these" : u_place_where_words[d->got]);
}

char *u_place_text(const struct u_place_case *c, const struct u_place_ask *ask,
		   const struct u_place_decision *d, char out[U_PLACE_TEXT])
{
	const struct u_place_rule *rule = &c->rules->of[ask->role];
	char list[48], asked[U_CPUSET_TEXT], got[32];

	if (d->why == U_PLACE_NOT_ASKED) {
		snprintf(out, U_PLACE_TEXT, "not placed");
	} else if (u_cpuset_empty(&d->cpus)) {
		snprintf(out, U_PLACE_TEXT, "not placed; asked %.40s: %s", where_text(rule, asked),
			 why_texts[d->why]);
	} else {
		u_cpuset_text(&d->cpus, list, sizeof(list));
		got_text(c, d, got, sizeof(got));
		snprintf(out, U_PLACE_TEXT, "processor%s %s; asked %.40s, got %s%s%s",
			 u_cpuset_count(&d->cpus) > 1 ? "s" : "", list, where_text(rule, asked),
			 got, d->why == U_PLACE_AS_ASKED ? "" : ": ",
			 d->why == U_PLACE_AS_ASKED ? "" : why_texts[d->why]);
	}
	return out;
}

/* Writes the name of thread `with`: its role, with a number where that has several; n: "application". */
static void other_text(const struct u_place_ask *asks, unsigned int n, unsigned int with, char *out,
		       size_t size)
{
	if (with >= n)
		snprintf(out, size, "application");
	else if (asks[with].count > 1)
		snprintf(out, size, "%s %u", u_place_role_words[asks[with].role], asks[with].index);
	else
		snprintf(out, size, "%s", u_place_role_words[asks[with].role]);
}

char *u_place_warning(const struct u_place_ask *asks, unsigned int n, unsigned int index,
		      const struct u_place_decision *d, char out[U_PLACE_TEXT])
{
	unsigned int w = d->warnings;
	char other[32];

	out[0] = '\0';
	other_text(asks, n, d->with, other, sizeof(other));
	if ((w & U_PLACE_POLLS) != 0)
		snprintf(
			out, U_PLACE_TEXT,
			"has one processor with %s, and %s never sleeps there: each hand-over can take "
			"milliseconds; let it wait otherwise (adaptive, block)",
			other, asks[index].polls ? "itself" : "that");
	else if ((w & U_PLACE_TOO_MANY) != 0)
		snprintf(
			out, U_PLACE_TEXT,
			"never sleeps, and more such threads than processors are there; let some wait "
			"otherwise (adaptive, block)");
	else if ((w & U_PLACE_SHARES_CPU) != 0)
		snprintf(out, U_PLACE_TEXT, "has one processor with %s", other);
	else if ((w & U_PLACE_SHARES_CORE) != 0)
		snprintf(out, U_PLACE_TEXT, "has one core with %s", other);
	return out;
}
