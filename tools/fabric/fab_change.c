/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fab_change.h"
#include "fab_host.h"
#include "fab_say.h"

int fab_down(const struct fabric *f)
{
	char error[CL_ERROR_MAX];
	int n = fab_stop_hosts(f, CL_HOSTS_MAX, error);

	if (n == 0)
		fab_not_up(f, error);
	if (n <= 0)
		return fab_fail("%s", error);
	printf("fabric %s is down\n", f->name);
	return EXIT_OK;
}

int fab_stop(const struct fabric *f, const char *name)
{
	char error[CL_ERROR_MAX];
	unsigned int host;
	int rc = fab_host_number(f, name, &host, error);

	if (rc == 0)
		rc = fab_stop_host(f, host, error);
	if (rc != 0)
		return fab_fail("%s", error);
	printf("host %s of fabric %s is down\n", name, f->name);
	return EXIT_OK;
}

int fab_link(const struct fabric *f, char **args)
{
	bool up = strcmp(args[2], "up") == 0;
	struct cl_agent agent;
	char error[CL_ERROR_MAX];
	unsigned int host;
	int rc;

	if (!up && strcmp(args[2], "down") != 0)
		return fab_usage("link: up or down expected, found %s", args[2]);
	rc = fab_host_number(f, args[0], &host, error);
	if (rc == 0)
		rc = fab_open(f, host, &agent, error);
	if (rc != 0)
		return fab_fail("%s", error);
	rc = cl_admin(&agent, up ? W_ADMIN_LINK_UP : W_ADMIN_LINK_DOWN, args[1], error);
	cl_close(&agent);
	return rc == 0 ? EXIT_OK : fab_fail("%s", error);
}

struct telling {
	enum w_admin_verb verb;
	const char *pair;
	char error[CL_ERROR_MAX];
	unsigned int told, failed;
};

static int tell(void *arg, struct cl_greeted *g)
{
	struct telling *t = arg;
	int rc = g->rc;

	if (rc == -ENODEV || rc == -EPIPE)
		return 0;
	if (rc == 0)
		rc = cl_admin(&g->agent, t->verb, t->pair, g->error);
	if (rc == 0)
		t->told++;
	else if (t->failed++ == 0)
		snprintf(t->error, sizeof(t->error), "%s", g->error);
	return 0;
}

int fab_name(const struct fabric *f, enum w_admin_verb verb, const char *pair)
{
	struct telling t = { .verb = verb, .pair = pair };

	cl_greet_all(f->owner, f->name, CL_HOSTS_MAX, tell, &t);
	if (t.failed > 0)
		return fab_fail("%s%s", t.error, t.told > 0 ? "; the other hosts were told" : "");
	if (t.told > 0)
		return EXIT_OK;
	fab_not_up(f, t.error);
	return fab_fail("%s", t.error);
}
