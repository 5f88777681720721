/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_stat - shows the counters of a host's processes, live, by way of the agent. */
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vipl_ext.h>

#include "cl_client.h"
#include "tool_out.h"
#include "u_option.h"

#define STAT_SCHEMA "viaduct.stat"
#define STAT_SCHEMA_VERSION 1
#define OUTPUT_LOST 1 /* in addition to the negative errors of asking */
#define COUNTERS (sizeof(counter_names) / sizeof(counter_names[0]))

/* The fields of VIPX_COUNTERS after Size, in their order. */
static const char *const counter_names[] = {
	"sends_posted",	      "recvs_posted",	  "messages_sent",
	"messages_received",  "bytes_sent",	  "bytes_received",
	"rdma_writes",	      "rdma_reads",	  "slots_sent",
	"slots_received",     "dropped",	  "recv_queue_empty",
	"protection_errors",  "protocol_errors",  "doorbells_rung",
	"doorbells_taken",    "sleeps",		  "stalls",
	"connections_opened", "connections_lost",
};

_Static_assert(COUNTERS == W_COUNTERS, "the agent passes them all");
_Static_assert(sizeof(VIPX_COUNTERS) ==
		       offsetof(VIPX_COUNTERS, SendsPosted) + COUNTERS * sizeof(VIP_UINT64),
	       "every counter has a name");

struct process {
	uint32_t client;
	int pid;
	char program[W_NAME_MAX];
	bool answers;
	bool known; /* it has answered before */
	VIPX_COUNTERS counters;
};

struct snapshot {
	struct process *v;
	size_t n;
	int64_t ns; /* when it was taken */
};

struct options {
	double interval; /* 0: once */
	uint64_t count;	 /* 0: without end */
	bool json, all, total;
	const char *host;
};

/* ---- counters from the agent ---- */

static uint64_t *counter_at(VIPX_COUNTERS *c, size_t i)
{
	return (uint64_t *)(void *)((char *)c + offsetof(VIPX_COUNTERS, SendsPosted)) + i;
}

static struct process *find_process(struct snapshot *s, uint32_t client)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (s->v[i].client == client)
			return &s->v[i];
	}
	return NULL;
}

static struct process *add_process(struct snapshot *s, uint32_t client)
{
	struct process *v = reallocarray(s->v, s->n + 1, sizeof(*v));

	if (!v)
		return NULL;
	s->v = v;
	v = &s->v[s->n++];
	memset(v, 0, sizeof(*v));
	v->client = client;
	v->counters.Size = sizeof(v->counters);
	return v;
}

/* A process of the agent's list, which may change while it is read. */
static int list_process(struct snapshot *s, const char *text)
{
	json_object *o = json_tokener_parse(text);
	struct process *p;
	uint32_t id;

	if (!o)
		return -EPROTO;
	id = (uint32_t)json_object_get_int64(json_object_object_get(o, "id"));
	p = find_process(s, id);
	if (!p)
		p = add_process(s, id);
	if (p) {
		p->pid = json_object_get_int(json_object_object_get(o, "pid"));
		snprintf(p->program, sizeof(p->program), "%s",
			 json_object_get_string(json_object_object_get(o, "program")));
	}
	json_object_put(o);
	return p ? 0 : -ENOMEM;
}

static int list_processes(struct cl_agent *agent, struct snapshot *s)
{
	char text[400];
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc; i++) {
		rc = cl_list(agent, W_LIST_CLIENTS, i, text);
		if (!rc)
			rc = list_process(s, text);
	}
	return rc == -ENOENT ? 0 : rc;
}

static int take_counters(struct snapshot *s, const struct w_counted *c)
{
	struct process *p = find_process(s, c->client);

	if (!p)
		p = add_process(s, c->client);
	if (!p)
		return -ENOMEM;
	p->pid = (int)c->pid;
	p->answers = p->known = true;
	memcpy(p->program, c->program, sizeof(p->program));
	memcpy(&p->counters.SendsPosted, c->counters, sizeof(c->counters));
	return 0;
}

/* All processes are asked at once; those that are stopped do not answer. */
static int ask_processes(struct cl_agent *agent, struct snapshot *s)
{
	uint32_t i, n = (uint32_t)s->n;
	struct w_counted *counted = calloc(n ? n : 1, sizeof(*counted));
	int rc = counted ? cl_count(agent, n, counted) : -ENOMEM;

	for (i = 0; !rc && i < n; i++) {
		if (counted[i].index)
			rc = take_counters(s, &counted[i]);
	}
	free(counted);
	return rc;
}

/* Without those that have ended since they were listed. */
static int drop_ended(struct cl_agent *agent, struct snapshot *s)
{
	struct snapshot left = { 0 };
	int rc = list_processes(agent, &left);
	size_t i, n = 0;

	for (i = 0; !rc && i < s->n; i++) {
		if (s->v[i].answers || find_process(&left, s->v[i].client))
			s->v[n++] = s->v[i];
	}
	if (!rc)
		s->n = n;
	free(left.v);
	return rc;
}

static bool all_answer(const struct snapshot *s)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (!s->v[i].answers)
			return false;
	}
	return true;
}

/* Stores the last values of a process that does not answer, for when it answers again. */
static void keep_counters(struct snapshot *s, struct snapshot *before)
{
	struct process *p;
	size_t i;

	for (i = 0; i < s->n; i++) {
		p = find_process(before, s->v[i].client);
		if (!s->v[i].answers && p) {
			s->v[i].known = p->known;
			s->v[i].counters = p->counters;
		}
	}
}

static int read_counters(struct cl_agent *agent, struct snapshot *s, struct snapshot *before)
{
	struct timespec ts;
	int rc;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	s->ns = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
	rc = list_processes(agent, s);
	if (!rc)
		rc = ask_processes(agent, s);
	if (!rc && !all_answer(s))
		rc = drop_ended(agent, s);
	if (before)
		keep_counters(s, before);
	return rc;
}

/* ---- output ---- */

static uint64_t shown(struct process *p, struct process *before, size_t i)
{
	uint64_t now = *counter_at(&p->counters, i), then;

	if (before && !before->known)
		return 0;
	then = before ? *counter_at(&before->counters, i) : 0;
	return now >= then ? now - then : 0;
}

static void print_process(const struct options *o, struct process *p, struct process *before)
{
	uint64_t v;
	size_t i;

	printf("client: %u pid %d program %s", p->client, p->pid, p->program);
	if (!p->answers)
		printf(" does not answer");
	for (i = 0; p->answers && i < COUNTERS; i++) {
		v = shown(p, before, i);
		if (v || o->all)
			printf(" %s %llu", counter_names[i], (unsigned long long)v);
	}
	putchar('\n');
}

static json_object *json_process(struct process *p, struct process *before)
{
	json_object *o = json_object_new_object(), *c = json_object_new_object();
	size_t i;

	json_object_object_add(o, "client", json_object_new_int64(p->client));
	json_object_object_add(o, "pid", json_object_new_int(p->pid));
	json_object_object_add(o, "program", json_object_new_string(p->program));
	json_object_object_add(o, "answers", json_object_new_boolean(p->answers));
	for (i = 0; i < COUNTERS; i++)
		json_object_object_add(c, counter_names[i],
				       json_object_new_uint64(shown(p, before, i)));
	json_object_object_add(o, "counters", c);
	return o;
}

static void report_json(const char *host, struct snapshot *now, struct snapshot *before,
			double seconds)
{
	json_object *o = json_object_new_object(), *a = json_object_new_array();
	char text[32];
	size_t i;

	snprintf(text, sizeof(text), "%.6f", seconds);
	json_object_object_add(o, "schema", json_object_new_string(STAT_SCHEMA));
	json_object_object_add(o, "schema_version", json_object_new_int(STAT_SCHEMA_VERSION));
	json_object_object_add(o, "version", json_object_new_string(VIADUCT_VERSION));
	json_object_object_add(o, "host", json_object_new_string(host));
	json_object_object_add(o, "counting",
			       json_object_new_string(before ? "interval" : "total"));
	json_object_object_add(o, "interval_s", json_object_new_double_s(seconds, text));
	for (i = 0; i < now->n; i++)
		json_object_array_add(
			a, json_process(&now->v[i],
					before ? find_process(before, now->v[i].client) : NULL));
	json_object_object_add(o, "clients", a);
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
}

static void report_text(const struct options *o, const char *host, struct snapshot *now,
			struct snapshot *before, double seconds)
{
	size_t i;

	if (before)
		printf("host: %s clients %zu interval_s %.3f\n", host, now->n, seconds);
	else
		printf("host: %s clients %zu total\n", host, now->n);
	for (i = 0; i < now->n; i++)
		print_process(o, &now->v[i],
			      before ? find_process(before, now->v[i].client) : NULL);
}

static int report(const struct options *o, const char *host, struct snapshot *now,
		  struct snapshot *before)
{
	double seconds = before ? (double)(now->ns - before->ns) / 1e9 : 0;

	if (o->json)
		report_json(host, now, before, seconds);
	else
		report_text(o, host, now, before, seconds);
	return tool_out_flush() ? OUTPUT_LOST : 0;
}

/* ---- loop ---- */

static void sleep_until(int64_t ns)
{
	struct timespec ts = { ns / 1000000000, ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* Totals are first shown at once, increments after an interval. */
static int watch(const struct options *o, struct cl_agent *agent)
{
	bool increments = o->interval > 0 && !o->total;
	struct snapshot before = { 0 }, now = { 0 };
	int rc = read_counters(agent, &before, NULL);
	int64_t next = before.ns;
	uint64_t n;

	for (n = 0; !rc && (!o->count || n < o->count); n++) {
		if (increments || n)
			sleep_until(next += (int64_t)(o->interval * 1e9));
		now = (struct snapshot){ 0 };
		rc = read_counters(agent, &now, &before);
		if (!rc)
			rc = report(o, agent->welcome.host_name, &now, increments ? &before : NULL);
		free(before.v);
		before = now;
	}
	free(before.v);
	return rc;
}

static int run(const struct options *o)
{
	char error[CL_ERROR_MAX];
	struct cl_agent agent;
	struct w_name name;
	int rc;

	if (cl_open(o->host, W_KIND_TOOL, &agent, error)) {
		fprintf(stderr, "vi_stat: %s\n", error);
		return EXIT_FAILURE;
	}
	rc = o->host ? cl_name(&agent, o->host, 0, &name) : 0;
	if (rc || (o->host && memcmp(name.host_addr, agent.welcome.host_addr, W_HOST_ADDR_LEN))) {
		fprintf(stderr, "vi_stat: no host '%s' in fabric %s; vi_info -l lists them\n",
			o->host, agent.welcome.fabric);
		cl_close(&agent);
		return EXIT_FAILURE;
	}
	rc = watch(o, &agent);
	if (rc < 0)
		fprintf(stderr,
			"vi_stat: asking the agent of host %s: %s; has it ended? see vi_info\n",
			agent.welcome.host_name, strerror(-rc));
	cl_close(&agent);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- options ---- */

#define AT(field) U_OPTION_AT(struct options, field)

static const struct u_option options[] = {
	{ "interval", 'i', "SEC", "repeat every SEC seconds", AT(interval), .least = 0.01,
	  .most = 86400 },
	{ "count", 'c', "COUNT", "end after COUNT reports (default: 1, with -i without end)",
	  AT(count), .min = 1 },
	{ "total", 't', NULL, "totals with -i too", AT(total) },
	{ "all", 'a', NULL, "also counters that are 0", AT(all) },
	{ "json", 0, NULL, "one JSON object per report, on a line of its own", AT(json) },
	{ "host", 0, "HOST", "processes of HOST instead of VIADUCT_HOST", AT(host) },
	U_OPTION_LAST('h', 'V')
};

static const struct u_option_tool tool = {
	.name = "vi_stat",
	.head = "usage: vi_stat [OPTION]...\n\n"
		"Shows what the processes of a host have sent and received: once the totals, or with -i\n"
		"repeatedly the increments of each interval. Counters of 0 are left out.\n\n",
	.options = options,
	.tail = "\nexit status: 0 done, 1 failure, 2 bad usage\n",
};

static int stat_main(int argc, char **argv)
{
	struct options o = { 0 };
	int rc = u_option_parse(&tool, argc, argv, &o);

	if (rc != U_OPTION_GO_ON)
		return rc;
	if (o.count > 1 && o.interval <= 0)
		return u_option_refuse(&tool, "--count above 1 needs --interval; see --help");
	if (o.interval <= 0)
		o.count = 1;
	return run(&o);
}

int main(int argc, char **argv)
{
	tool_out_begin();
	return tool_out_end("vi_stat", stat_main(argc, argv));
}
