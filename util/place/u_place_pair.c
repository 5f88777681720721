/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_place_pair.h"

#include <stdio.h>
#include <string.h>

/*
 * Adds to *out the core of each service thread that is held on one as same-core says.  How many service threads that
 * place has.
 */
static unsigned int held(const struct u_place_case *c, const struct u_place_ask *asks,
			 unsigned int n, const struct u_place_decision *d, struct u_cpuset *out)
{
	unsigned int i, count = 0;

	for (i = 0; i < n; i++) {
		if (asks[i].role != U_PLACE_SERVICE || d[i].got != U_PLACE_SAME_CORE)
			continue;
		count++;
		if (!u_cpuset_empty(&d[i].cpus) &&
		    u_topo_spread(c->topo, &d[i].cpus, U_TOPO_CORE) == 1)
			u_topo_around(c->topo, &d[i].cpus, U_TOPO_CORE, out);
	}
	return count;
}

/* Writes the answer, and returns whether it is yes. */
static bool answer(const char *why_not, char out[U_PLACE_TEXT])
{
	snprintf(out, U_PLACE_TEXT, "%s%s",
		 why_not == NULL ? "yes" : "no: ", why_not == NULL ? "" : why_not);
	return why_not == NULL;
}

bool u_place_one_core(const struct u_place_case *c, const struct u_place_ask *asks, unsigned int n,
		      const struct u_place_decision *d, char out[U_PLACE_TEXT])
{
	struct u_cpuset callers, all = { { 0 } }, cores = { { 0 } }, list;
	unsigned int count;
	char text[48];

	u_place_application(c, &callers);
	if (c->topo == NULL)
		return answer("nothing is known of this machine's cores", out);
	u_topo_all(c->topo, &all);
	u_cpuset_and(&callers, &all);
	if (u_cpuset_empty(&callers))
		return answer("the place of the application is not known", out);
	count = held(c, asks, n, d, &cores);
	if (count == 0)
		return answer("no service thread is placed by same-core", out);
	list = callers;
	u_cpuset_less(&list, &cores);
	if (u_cpuset_empty(&list))
		return answer(NULL, out);
	snprintf(
		out, U_PLACE_TEXT,
		"no: %u service thread%s for %d core%s of the application; on processor%s %s a thread has "
		"none on its core",
		count, count == 1 ? "" : "s", u_topo_spread(c->topo, &callers, U_TOPO_CORE),
		u_topo_spread(c->topo, &callers, U_TOPO_CORE) == 1 ? "" : "s",
		u_cpuset_count(&list) == 1 ? "" : "s", u_cpuset_text(&list, text, sizeof(text)));
	return false;
}
