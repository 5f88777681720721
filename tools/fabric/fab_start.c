/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting one host again.  An agent that runs gives its arguments and variables, the names that
 * hosts were given since, and the hosts to which there will be links.
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
#include "u_time.h"

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

/* Names that hosts were given after the start. */
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

/* Lists the links of the host to hosts whose agents answer; returns how many, or -errno. */
static int start_wait(const struct survey *s, struct cl_agent *agent, char *error)
{
	int64_t deadline = u_deadline_ms(FAB_WAIT_MS);
	struct json_object *ports = fab_list(agent, W_LIST_PORTS), *port, *peer;
	size_t i, n = json_object_array_length(ports);
	int rc = 0, links = 0;
	unsigned int host;

	for (i = 1; i < n && rc == 0; i++) {
		port = json_object_array_get_idx(ports, i);
		if (!json_object_object_get_ex(port, "peer", &peer))
			continue;
		host = (unsigned int)json_object_get_int(peer);
		if (host >= CL_HOSTS_MAX || s->rc[host] != 0)
			continue;
		rc = fab_port_wait(agent, (uint32_t)i, deadline);
		if (rc == 0)
			links++;
		else
			snprintf(
				error, CL_ERROR_MAX,
				"host %u is up, but its link %.15s to host %.15s is not: %s; is the "
				"other end pulled? vi_fabric link plugs it",
				agent->welcome.host_id, fab_text(port, "name"),
				fab_text(port, "peer"), strerror(-rc));
	}
	json_object_put(ports);
	return rc != 0 ? rc : links;
}

/* Call it when the agent listens. Returns the number of its links, or -errno. */
static int start_join(const struct fabric *f, const struct survey *s, struct cl_agent *model,
		      unsigned int host, char *error)
{
	struct cl_agent agent;
	int rc = fab_open(f, host, &agent, error);

	if (rc != 0)
		return rc;
	rc = names_copy(model, &agent, error);
	if (rc == 0)
		rc = start_wait(s, &agent, error);
	cl_close(&agent);
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

/* With the arguments of any agent that answers and neither leaves nor stops meanwhile. */
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
