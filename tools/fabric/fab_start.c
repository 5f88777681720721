/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting one host again.  An agent that runs is the source of its arguments and variables, of
 * names that hosts have been given since, and of the hosts to which there will be links.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fab_args.h"
#include "fab_host.h"
#include "fab_say.h"
#include "fab_start.h"
#include "fab_wait.h"

/* The answer of the agent of each host. */
struct survey {
	int rc[CL_HOSTS_MAX];
	char error[CL_HOSTS_MAX][CL_ERROR_MAX];
};

static int survey_take(void *arg, struct cl_greeted *g)
{
	struct survey *s = arg;

	s->rc[g->host] = g->rc == -EPIPE ? -ENODEV : g->rc;
	memcpy(s->error[g->host], g->error, sizeof(g->error));
	return 0;
}

/* Copies names that hosts were given after the start from one agent to another. */
static int names_copy(struct cl_agent *from, struct cl_agent *to, char *error)
{
	struct json_object *all = fab_list(from, W_LIST_ALIASES), *item, *host;
	uint8_t addr[W_HOST_ADDR_LEN];
	struct w_name name;
	char pair[2 * W_NAME_MAX + 2];
	size_t i, n = json_object_array_length(all);
	bool device;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		item = json_object_array_get_idx(all, i);
		device = strcmp(fab_text(item, "kind"), "device") == 0;
		if (!json_object_object_get_ex(item, "host", &host))
			continue;
		w_host_addr((uint16_t)json_object_get_int(host), addr);
		rc = cl_addr_name(from, addr, &name);
		if (rc != 0) {
			snprintf(error, CL_ERROR_MAX, "a host has no name: %s", strerror(-rc));
			break;
		}
		snprintf(pair, sizeof(pair), "%s=%s", fab_text(item, "name"), name.name);
		rc = cl_admin(to, device ? W_ADMIN_DEVICE : W_ADMIN_ALIAS, pair, error);
	}
	json_object_put(all);
	return rc;
}

/* Writes into `error` that a link of the host stays down. */
static void say_down(const struct fab_links *l, unsigned int host, char *error)
{
	const struct fab_ports *p = &l->ports[host];
	uint32_t i;

	for (i = 0; i < p->n; i++) {
		if (fab_links_wanted(l, host, i) && (p->up & 1u << i) == 0)
			break;
	}
	if (i < p->n)
		snprintf(
			error, CL_ERROR_MAX,
			"host %u is up, but its link %.15s to host %u is not: for %g s none came up; is "
			"the other end pulled? vi_fabric link plugs it",
			host, p->names[i], p->peers[i], fab_links_patience.quiet_ms / 1000.0);
}

/* Waits for the links of the host to hosts whose agents answer; returns how many, or -errno. */
static int start_wait(struct fab_links *l, unsigned int host, char *error)
{
	int rc = fab_links_wait(l, &fab_links_patience, error), links = 0;
	uint32_t i;

	if (rc == -ETIMEDOUT)
		say_down(l, host, error);
	for (i = 0; rc == 0 && i < l->ports[host].n; i++)
		links += fab_links_wanted(l, host, i);
	return rc != 0 ? rc : links;
}

/*
 * Called when the agent listens: gives it names, and waits for its links.  Returns the number of
 * its links, or -errno.
 */
static int start_join(const struct fabric *f, const struct survey *s, struct cl_agent *model,
		      unsigned int host, char *error)
{
	struct fab_links *l = fab_links_create((int)host, error);
	unsigned int hosts[CL_HOSTS_MAX] = { host }, count = 1, i;
	int rc;

	if (l == NULL)
		return -ENOMEM;
	for (i = 0; i < CL_HOSTS_MAX; i++) {
		if (i != host && s->rc[i] == 0)
			hosts[count++] = i;
	}
	rc = fab_links_open(l, f, hosts, count, &fab_links_patience, error);
	if (rc == 0)
		rc = names_copy(model, &l->agents[host], error);
	if (rc == 0)
		rc = start_wait(l, host, error);
	fab_links_destroy(l);
	return rc;
}

/* Starts viaductd with the arguments of `model`; returns the number of its links, or -errno. */
static int start_like(const struct fabric *f, const struct survey *s, struct cl_agent *model,
		      unsigned int host, const char *path, char *error)
{
	pid_t pid = cl_agent_pid(model);
	struct fab_args args;
	int rc = fab_args_read(pid, host, &args);

	if (rc == 0)
		rc = fab_args_environ(pid);
	if (rc == 0)
		rc = cl_spawn(path, (const char *const *)args.v, error);
	else
		snprintf(error, CL_ERROR_MAX, "what agent %d was started with cannot be read: %s",
			 (int)pid, strerror(-rc));
	if (rc == 0)
		rc = start_join(f, s, model, host, error);
	fab_args_free(&args);
	return rc;
}

/*
 * Starts it with the arguments of any agent that answers, and of another one if that leaves or
 * stops before the end.
 */
static int start_as_others(const struct fabric *f, const struct survey *s, unsigned int host,
			   const char *path, char *error)
{
	struct cl_agent model;
	unsigned int other;
	int rc = -ENODEV;
	bool again = true;

	fab_not_up(f, error);
	for (other = 0; other < CL_HOSTS_MAX && again; other++) {
		if (s->rc[other] != 0)
			continue;
		rc = fab_open(f, other, &model, error);
		if (rc == 0) {
			rc = start_like(f, s, &model, host, path, error);
			again = rc == -ESRCH || rc == -EPIPE || model.silent;
			cl_close(&model);
		}
	}
	return rc;
}

static void print_silent(const struct survey *s)
{
	unsigned int host;

	for (host = 0; host < CL_HOSTS_MAX; host++) {
		if (s->rc[host] != 0 && s->rc[host] != -ENODEV)
			fprintf(stderr, "vi_fabric: %s\n", s->error[host]);
	}
}

int fab_start(const struct fabric *f, const char *name)
{
	static struct survey s;
	char error[CL_ERROR_MAX], path[4096];
	unsigned int host;
	int rc = fab_host_number(f, name, &host, error);

	if (rc != 0)
		return fab_fail("%s", error);
	if (f->owner != geteuid())
		return fab_fail("fabric %s belongs to uid %u; only its owner starts agents",
				f->name, (unsigned int)f->owner);
	cl_greet_all(f->owner, f->name, CL_HOSTS_MAX, survey_take, &s);
	if (s.rc[host] == 0)
		return fab_fail("host %s of fabric %s is up already", name, f->name);
	if (s.rc[host] != -ENODEV)
		return fab_fail("%s", s.error[host]);
	if (fab_agent_path(path, sizeof(path)) != EXIT_OK)
		return EXIT_FAIL;
	rc = start_as_others(f, &s, host, path, error);
	if (rc < 0)
		return fab_fail("%s", error);
	printf("host %s of fabric %s is up: %d link%s\n", name, f->name, rc, rc == 1 ? "" : "s");
	print_silent(&s);
	return EXIT_OK;
}
