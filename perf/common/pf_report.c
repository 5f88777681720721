/* SPDX-License-Identifier: BSD-2-Clause */
#include "pf_report.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int told(const struct pf_config *cfg, const char *what, int err)
{
	fprintf(stderr, "%s: %s %s: %s\n", cfg->tool->name, what, cfg->out ? cfg->out : "",
		strerror(err));
	return -err;
}

/* Follows a symbolic link, so that the rename does not replace it. */
static int find_target(struct pf_report *rep)
{
	rep->target = realpath(rep->cfg->out, NULL);
	if (!rep->target)
		rep->target = strdup(rep->cfg->out);
	return rep->target ? 0 : told(rep->cfg, "writing", ENOMEM);
}

/*
 * May the path be replaced?  Only if it is absent or a regular file: a rename would remove a
 * device, FIFO or link.
 */
static bool replaceable(const char *path)
{
	struct stat st;

	return lstat(path, &st) ? errno == ENOENT : S_ISREG(st.st_mode);
}

static int open_straight(struct pf_report *rep)
{
	int fd = open(rep->target, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, 0666);

	if (fd < 0)
		return told(rep->cfg, "writing", errno);
	rep->file = fdopen(fd, "w");
	return rep->file ? 0 : told(rep->cfg, "writing", errno);
}

static int open_part(struct pf_report *rep)
{
	int fd;

	if (asprintf(&rep->part, "%s.XXXXXX", rep->target) < 0) {
		rep->part = NULL;
		return told(rep->cfg, "writing", ENOMEM);
	}
	fd = mkostemp(rep->part, O_CLOEXEC);
	if (fd < 0) {
		int err = errno;

		free(rep->part);
		rep->part = NULL;
		return told(rep->cfg, "writing", err);
	}
	rep->file = fdopen(fd, "w");
	return rep->file ? 0 : told(rep->cfg, "writing", errno);
}

static int open_out(struct pf_report *rep)
{
	int rc = find_target(rep);

	if (rc)
		return rc;
	return replaceable(rep->target) ? open_part(rep) : open_straight(rep);
}

int pf_report_open(struct pf_report *rep, const struct pf_config *cfg)
{
	*rep = (struct pf_report){ .cfg = cfg };
	rep->results = json_object_new_array();
	if (!rep->results)
		return told(cfg, "report", ENOMEM);
	return cfg->out ? open_out(rep) : 0;
}

/* ---- table ---- */

static const char *meaning(const struct pf_config *cfg)
{
	if (cfg->tool->kind != PF_LAT)
		return cfg->bidir ? "sum of both directions" : "one direction";
	if (cfg->post_time)
		return "time inside VipPostSend, average";
	return cfg->op == PF_READ ? "whole read, average" : "half of the round trip, average";
}

static void osu_begin(const struct pf_config *cfg, const struct pf_place *p, FILE *f)
{
	size_t i;

	fprintf(f, "# %s v%s\n", cfg->tool->title, VIADUCT_VERSION);
	fprintf(f, "# %s: %s\n", cfg->tool->column, meaning(cfg));
	fprintf(f, "# op %s, wait %s%s, level %s, VIs %u, segments %u", pf_op_names[cfg->op],
		pf_wait_names[cfg->wait], cfg->cq ? " on a CQ" : "", pf_level_names[cfg->level],
		cfg->vis, cfg->segments);
	if (cfg->tool->kind != PF_LAT)
		fprintf(f, ", window %u", p->window);
	fprintf(f, "%s\n# %s -> %s, path %s\n", cfg->verify ? ", verified" : "", p->client_host,
		p->server_host, p->path);
	if (cfg->tool->kind == PF_BW)
		fputs("# buffers are used again: sizes that fit into a cache show its speed, not that of memory\n",
		      f);
	fprintf(f, "%-10s%20s", "# Size", cfg->tool->column);
	for (i = 0; cfg->percentiles_given && i < cfg->percentile_count; i++) {
		char key[32], head[48];

		pf_percentile_key(cfg, cfg->percentiles[i], key);
		key[strlen(key) - 3] = '\0';
		snprintf(head, sizeof(head), "%s (us)", key);
		fprintf(f, "%18s", head);
	}
	fputc('\n', f);
}

static void osu_row(const struct pf_config *cfg, const struct pf_result *r, FILE *f)
{
	double v = 0;
	size_t i;

	pf_metric_value(cfg, r, cfg->tool->metric, &v);
	fprintf(f, "%-10llu%20.2f", (unsigned long long)r->size, v);
	for (i = 0; cfg->percentiles_given && i < cfg->percentile_count; i++) {
		v = (double)pf_hist_percentile(r->hist, cfg->percentiles[i]);
		fprintf(f, "%18.2f", v * pf_sample_scale(cfg) / 1000.0);
	}
	fputc('\n', f);
}

/* ---- csv ---- */

static void csv_row(const struct pf_config *cfg, const struct pf_result *r, FILE *f, int head)
{
	struct pf_metric m[PF_MAX_METRICS];
	size_t n = pf_metrics(cfg, r, m), i;

	if (head) {
		fprintf(f, "tool,op,wait,level,cq,vis,segments,bidir,verify,size_bytes,iterations,"
			   "messages,elapsed_s");
		for (i = 0; i < n; i++)
			fprintf(f, ",%s", m[i].key);
		fputc('\n', f);
	}
	fprintf(f, "%s,%s,%s,%s,%d,%u,%u,%d,%d,%llu,%llu,%llu,%.9f", cfg->tool->name,
		pf_op_names[cfg->op], pf_wait_names[cfg->wait], pf_level_names[cfg->level], cfg->cq,
		cfg->vis, cfg->segments, cfg->bidir, cfg->verify, (unsigned long long)r->size,
		(unsigned long long)r->iterations, (unsigned long long)r->messages,
		(double)r->elapsed_ns / 1e9);
	for (i = 0; i < n; i++)
		fprintf(f, ",%.3f", m[i].value);
	fputc('\n', f);
}

/* ---- json ---- */

static void put_text(json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

static void put_int(json_object *o, const char *key, int64_t v)
{
	json_object_object_add(o, key, json_object_new_int64(v));
}

static void put_bool(json_object *o, const char *key, bool v)
{
	json_object_object_add(o, key, json_object_new_boolean(v));
}

static void put_double(json_object *o, const char *key, double v)
{
	char text[64];

	snprintf(text, sizeof(text), "%.9f", v);
	json_object_object_add(o, key, json_object_new_double_s(v, text));
}

static void json_row(struct pf_report *rep, const struct pf_result *r)
{
	struct pf_metric m[PF_MAX_METRICS];
	size_t n = pf_metrics(rep->cfg, r, m), i;
	json_object *o = json_object_new_object();

	put_int(o, "size_bytes", (int64_t)r->size);
	put_int(o, "iterations", (int64_t)r->iterations);
	put_int(o, "messages", (int64_t)r->messages);
	put_int(o, "bytes", (int64_t)r->bytes);
	put_int(o, "samples", (int64_t)r->hist->count);
	put_double(o, "elapsed_s", (double)r->elapsed_ns / 1e9);
	for (i = 0; i < n; i++)
		put_double(o, m[i].key, m[i].value);
	put_bool(o, "verified", rep->cfg->verify);
	json_object_array_add(rep->results, o);
}

/* Descriptors of one call: a round, which is half a window, has no more. */
static uint32_t per_call(const struct pf_config *cfg, const struct pf_place *p)
{
	uint32_t round = p->window >= 2 ? p->window / 2 : 1;

	return cfg->batch < round ? cfg->batch : round;
}

static json_object *json_test(const struct pf_config *cfg, const struct pf_place *p)
{
	json_object *o = json_object_new_object();

	put_text(o, "op", pf_op_names[cfg->op]);
	put_text(o, "wait", pf_wait_names[cfg->wait]);
	put_text(o, "level", pf_level_names[cfg->level]);
	put_text(o, "value_meaning", meaning(cfg));
	put_bool(o, "cq", cfg->cq);
	put_int(o, "vis", cfg->vis);
	put_int(o, "busy_vis", cfg->busy && cfg->busy < cfg->vis ? cfg->busy : cfg->vis);
	put_int(o, "batch_round_trips", cfg->tool->kind == PF_LAT ? cfg->batch : 1);
	put_int(o, "batch_descriptors", cfg->tool->kind == PF_LAT ? 1 : per_call(cfg, p));
	put_bool(o, "post_time", cfg->post_time);
	put_int(o, "segments", cfg->segments);
	put_int(o, "window_messages", p->window);
	put_bool(o, "bidir", cfg->bidir);
	put_bool(o, "verify", cfg->verify);
	put_bool(o, "window_memory", cfg->window_memory);
	put_bool(o, "adopted_memory", cfg->adopt);
	put_int(o, "buffers", cfg->buffers);
	put_bool(o, "spin", cfg->spin);
	put_double(o, "timeout_s", cfg->timeout);
	return o;
}

static json_object *json_end(const char *host, int pid, int cpu)
{
	json_object *o = json_object_new_object();

	put_text(o, "host", host);
	put_int(o, "pid", pid);
	if (cpu < 0)
		json_object_object_add(o, "pinned_cpu", NULL);
	else
		put_int(o, "pinned_cpu", cpu);
	return o;
}

static json_object *json_placement(const struct pf_place *p)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "client", json_end(p->client_host, p->client_pid, p->client_cpu));
	json_object_object_add(o, "server", json_end(p->server_host, p->server_pid, p->server_cpu));
	put_text(o, "path", p->path);
	put_int(o, "hops", (int64_t)p->hops);
	put_text(o, "port", p->port);
	return o;
}

static json_object *json_environment(const struct pf_env *env)
{
	json_object *o = json_object_new_object(), *w = json_object_new_array();
	size_t i;

	put_text(o, "cpu_model", env->cpu_model);
	put_text(o, "architecture", env->arch);
	put_text(o, "kernel", env->kernel);
	put_text(o, "governor", env->governor);
	put_int(o, "cpus_online", env->cpus_online);
	put_int(o, "cpus_allowed", env->cpus_allowed);
	put_bool(o, "virtual_machine", env->virtual_machine);
	put_double(o, "load_average_1min", env->load_average);
	put_double(o, "cpu_quota_cpus", env->cpu_quota);
	for (i = 0; i < env->warning_count; i++)
		json_object_array_add(w, json_object_new_string(env->warnings[i]));
	json_object_object_add(o, "warnings", w);
	return o;
}

static void put_command(json_object *o, const struct pf_config *cfg)
{
	json_object *a = json_object_new_array();
	char when[32];
	time_t now = time(NULL);
	struct tm tm;
	int i;

	for (i = 0; i < cfg->argc; i++)
		json_object_array_add(a, json_object_new_string(cfg->argv[i]));
	json_object_object_add(o, "command_line", a);
	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	put_text(o, "time_utc", when);
}

static json_object *json_expectations(const struct pf_config *cfg, unsigned int missed)
{
	json_object *o = json_object_new_object(), *a = json_object_new_array();
	size_t i;

	for (i = 0; i < cfg->expect_count; i++)
		json_object_array_add(a, json_object_new_string(cfg->expects[i].text));
	json_object_object_add(o, "texts", a);
	put_int(o, "missed", missed);
	return o;
}

static json_object *json_document(struct pf_report *rep, const struct pf_place *place,
				  const struct pf_env *env, unsigned int missed)
{
	const struct pf_config *cfg = rep->cfg;
	json_object *o = json_object_new_object();

	put_text(o, "schema", PF_SCHEMA);
	put_int(o, "schema_version", PF_SCHEMA_VERSION);
	put_text(o, "tool", cfg->tool->name);
	put_text(o, "version", VIADUCT_VERSION);
	put_command(o, cfg);
	json_object_object_add(o, "test", json_test(cfg, place));
	json_object_object_add(o, "placement", json_placement(place));
	json_object_object_add(o, "environment", json_environment(env));
	json_object_object_add(o, "results", json_object_get(rep->results));
	json_object_object_add(o, "expectations", json_expectations(cfg, missed));
	return o;
}

/* ---- all ---- */

static bool table_on_stdout(const struct pf_report *rep)
{
	return rep->cfg->format == PF_OSU || rep->file;
}

/* The stream for the rows of the chosen format. */
static FILE *row_file(const struct pf_report *rep)
{
	return rep->file ? rep->file : stdout;
}

void pf_report_begin(struct pf_report *rep, const struct pf_place *place)
{
	if (table_on_stdout(rep))
		osu_begin(rep->cfg, place, stdout);
	if (rep->file && rep->cfg->format == PF_OSU)
		osu_begin(rep->cfg, place, rep->file);
	fflush(stdout);
}

void pf_report_add(struct pf_report *rep, const struct pf_result *r)
{
	if (table_on_stdout(rep))
		osu_row(rep->cfg, r, stdout);
	if (rep->file && rep->cfg->format == PF_OSU)
		osu_row(rep->cfg, r, rep->file);
	if (rep->cfg->format == PF_CSV)
		csv_row(rep->cfg, r, row_file(rep), !rep->rows);
	if (rep->cfg->format == PF_JSON)
		json_row(rep, r);
	rep->rows++;
	fflush(stdout);
}

static int finish_file(struct pf_report *rep)
{
	mode_t mask = umask(0);
	int bad, err;

	umask(mask);
	errno = 0;
	bad = ferror(rep->file) || (rep->part && fchmod(fileno(rep->file), 0666 & ~mask)) ||
	      fflush(rep->file);
	err = errno;
	if (fclose(rep->file) && !bad) {
		bad = 1;
		err = errno;
	}
	rep->file = NULL;
	if (!bad && rep->part && rename(rep->part, rep->target)) {
		bad = 1;
		err = errno;
	}
	if (bad)
		return told(rep->cfg, "writing", err ? err : EIO);
	free(rep->part);
	rep->part = NULL;
	return 0;
}

int pf_report_end(struct pf_report *rep, const struct pf_place *place, const struct pf_env *env,
		  unsigned int missed)
{
	if (rep->cfg->format == PF_JSON) {
		json_object *o = json_document(rep, place, env, missed);

		fprintf(row_file(rep), "%s\n",
			json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
								  JSON_C_TO_STRING_NOSLASHESCAPE));
		json_object_put(o);
	}
	errno = 0;
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "%s: writing to standard output: %s; the table is incomplete\n",
			rep->cfg->tool->name, strerror(errno ? errno : EIO));
		return -EIO;
	}
	return rep->file ? finish_file(rep) : 0;
}

void pf_report_close(struct pf_report *rep)
{
	if (rep->file)
		fclose(rep->file);
	if (rep->part)
		unlink(rep->part);
	free(rep->part);
	free(rep->target);
	json_object_put(rep->results);
	*rep = (struct pf_report){ 0 };
}
