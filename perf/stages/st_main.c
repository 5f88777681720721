/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_stages - splits the latency of a message by stage. */
#include <errno.h>
#include <json-c/json.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "pf_config.h"
#include "pf_side.h"
#include "st.h"
#include "u_option.h"

#define SCHEMA "viaduct.stages"
#define MOST_BYTES (UINT64_C(1) << 20)
#define MESSAGES_LEAST (2 * ST_ROUNDS) /* a batch; there are that many times so many */

/* ---- the report ---- */

static const char *const point_names[ST_POINTS] = {
	"post entered",	  "payload written",	"slot published",   "slot seen",
	"payload copied", "completion written", "completion taken",
};

struct row {
	char name[64];
	double mean, low, median, high, net; /* nanoseconds */
};

/* Stamps of one process follow each other; between two processes they overlap. */
static uint32_t stamps_in(size_t stage)
{
	if (stage == ST_WHOLE)
		return ST_POINTS - 2;
	return stage == ST_PUBLISHED ? 0 : 1;
}

static void set_name(struct row *row, size_t stage)
{
	if (stage == ST_WHOLE)
		snprintf(row->name, sizeof(row->name), "post entered -> completion taken");
	else if (stage == ST_TURN)
		snprintf(row->name, sizeof(row->name), "completion taken -> answer's post");
	else
		snprintf(row->name, sizeof(row->name), "%s -> %s", point_names[stage],
			 point_names[stage + 1]);
}

static void make_rows(struct st_result *res, struct row rows[ST_POINTS + 1])
{
	size_t i;

	for (i = 0; i <= ST_POINTS; i++) {
		struct row *row = &rows[i];

		set_name(row, i);
		row->mean = st_series_mean(&res->stage[i]) * res->ns_per_tick;
		row->low = st_series_at(&res->stage[i], 10) * res->ns_per_tick;
		row->median = st_series_at(&res->stage[i], 50) * res->ns_per_tick;
		row->high = st_series_at(&res->stage[i], 90) * res->ns_per_tick;
		row->net = row->median - stamps_in(i) * res->stamp_ns;
		if (row->net < 0)
			row->net = 0;
	}
}

static void print_table(const struct st_config *cfg, struct st_result *res, const struct row *rows)
{
	size_t i;

	printf("# a message of %u B, reliable delivery, %s -> %s and back\n", cfg->size,
	       cfg->hosts[0] ? cfg->hosts[0] : "default host",
	       cfg->hosts[1] ? cfg->hosts[1] : "default host");
	if (cfg->pin)
		printf("# processors %d and %d\n", cfg->cpu[0], cfg->cpu[1]);
	if (cfg->tsc)
		printf("# times of the time stamp counter, %.3f GHz", 1 / res->ns_per_tick);
	else
		printf("# times of CLOCK_MONOTONIC");
	printf("; a stamp takes %.1f ns\n", res->stamp_ns);
	printf("%-42s %8s %8s %8s %12s\n", "# stage, ns", "10 %", "median", "90 %",
	       "without stamp");
	for (i = 0; i <= ST_POINTS; i++)
		printf("%-42s %8.1f %8.1f %8.1f %12.1f\n", rows[i].name, rows[i].low,
		       rows[i].median, rows[i].high, rows[i].net);
	printf("# half round trip: %.1f ns with stamps, %.1f ns without any\n",
	       st_series_at(&res->stamped, 50), st_series_at(&res->bare, 50));
	printf("# %zu message%s matched, %zu left out: another thread took them in\n",
	       res->stage[ST_WHOLE].count, res->stage[ST_WHOLE].count == 1 ? "" : "s",
	       res->left_out);
}

static void add_double(json_object *o, const char *key, double value)
{
	json_object_object_add(o, key, json_object_new_double(value));
}

static json_object *json_row(const struct row *row)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "stage", json_object_new_string(row->name));
	add_double(o, "mean_ns", row->mean);
	add_double(o, "p10_ns", row->low);
	add_double(o, "p50_ns", row->median);
	add_double(o, "p90_ns", row->high);
	add_double(o, "without_stamp_ns", row->net);
	return o;
}

static json_object *json_placement(const struct st_config *cfg)
{
	json_object *o = json_object_new_object(), *pin = json_object_new_array();
	json_object *hosts = json_object_new_array();
	int i;

	for (i = 0; i < 2; i++) {
		json_object_array_add(hosts,
				      cfg->hosts[i] ? json_object_new_string(cfg->hosts[i]) : NULL);
		if (cfg->pin)
			json_object_array_add(pin, json_object_new_int(cfg->cpu[i]));
	}
	json_object_object_add(o, "hosts", hosts);
	json_object_object_add(o, "pinned_cpus", pin);
	return o;
}

static void print_json(const struct st_config *cfg, struct st_result *res, const struct row *rows)
{
	json_object *o = json_object_new_object(), *stages = json_object_new_array();
	size_t i;

	for (i = 0; i < ST_WHOLE; i++)
		json_object_array_add(stages, json_row(&rows[i]));
	json_object_object_add(o, "schema", json_object_new_string(SCHEMA));
	json_object_object_add(o, "schema_version", json_object_new_int(1));
	json_object_object_add(o, "tool", json_object_new_string("vi_stages"));
	json_object_object_add(o, "version", json_object_new_string(VIADUCT_VERSION));
	json_object_object_add(o, "size_bytes", json_object_new_int64(cfg->size));
	json_object_object_add(o, "placement", json_placement(cfg));
	json_object_object_add(o, "clock", json_object_new_string(cfg->tsc ? "tsc" : "monotonic"));
	add_double(o, "ns_per_tick", res->ns_per_tick);
	add_double(o, "stamp_ns", res->stamp_ns);
	json_object_object_add(o, "stages", stages);
	json_object_object_add(o, "whole", json_row(&rows[ST_WHOLE]));
	json_object_object_add(o, "turn", json_row(&rows[ST_TURN]));
	add_double(o, "half_round_trip_stamped_ns", st_series_at(&res->stamped, 50));
	add_double(o, "half_round_trip_ns", st_series_at(&res->bare, 50));
	json_object_object_add(o, "messages",
			       json_object_new_int64((int64_t)res->stage[ST_WHOLE].count));
	json_object_object_add(o, "left_out", json_object_new_int64((int64_t)res->left_out));
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	json_object_put(o);
}

static int report(const struct st_config *cfg, struct st_result *res)
{
	struct row rows[ST_POINTS + 1];

	make_rows(res, rows);
	if (cfg->json)
		print_json(cfg, res, rows);
	else
		print_table(cfg, res, rows);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "vi_stages: writing to standard output: %s\n", strerror(errno));
		return -EIO;
	}
	return 0;
}

/* ---- the two processes ---- */

static int run_child(const struct st_config *cfg, struct st_shared *sh, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		return PF_EXIT_FAILURE;
	return st_side_run(cfg, sh, 1, NULL) ? PF_EXIT_FAILURE : PF_EXIT_OK;
}

static void complain(const struct st_shared *sh)
{
	uint32_t side = atomic_load(&sh->blamed);

	fprintf(stderr, "vi_stages: %s\n", side ? sh->cause[side - 1] : "the other process died");
}

static int run_both(const struct st_config *cfg, struct st_shared *sh, struct st_result *res)
{
	pid_t parent = getpid(), child;
	int status = 0, rc;

	signal(SIGCHLD, SIG_DFL); /* where it is ignored no child can be waited for */
	fflush(NULL);
	child = fork();
	if (child == 0)
		_exit(run_child(cfg, sh, parent));
	if (child < 0)
		return st_fail(sh, 0, "fork: %s", strerror(errno));
	rc = st_side_run(cfg, sh, 0, res);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return rc || status ? -EIO : 0;
}

static int run(const struct st_config *cfg)
{
	struct st_result res;
	struct st_shared *sh =
		mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int rc = st_result_init(&res, cfg->batches);

	if (rc || sh == MAP_FAILED) {
		fprintf(stderr, "vi_stages: out of memory\n");
		rc = -ENOMEM;
	} else {
		sh->id = (uint32_t)getpid();
		rc = run_both(cfg, sh, &res);
		if (rc)
			complain(sh);
		else
			rc = report(cfg, &res);
	}
	st_result_fini(&res);
	if (sh != MAP_FAILED)
		munmap(sh, sizeof(*sh));
	return rc ? PF_EXIT_FAILURE : PF_EXIT_OK;
}

/* ---- command line ---- */

/* Does the counter run at a constant rate? */
static bool constant_tsc(void)
{
#if defined(__x86_64__)
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
#else
	return false;
#endif
}

static int set_hosts(void *into, const struct u_option *o, const char *arg)
{
	return pf_parse_hosts(arg, ((struct st_config *)into)->hosts);
}

static int set_clock(void *into, const struct u_option *o, const char *arg)
{
	bool tsc = !strcmp(arg, "tsc");

	if (tsc ? !constant_tsc() : strcmp(arg, "monotonic") != 0)
		return -EINVAL;
	((struct st_config *)into)->tsc = tsc;
	return 0;
}

#define AT(field) U_OPTION_AT(struct st_config, field)

static const struct u_option options[] = {
	{ "size", 's', "BYTES", "bytes of a message, 1 to 1M (default: 4)", AT(size), .size = true,
	  .min = 1, .max = MOST_BYTES },
	{ "messages", 'n', "N", "messages to measure, 200 to 2000000 (default: 20000)",
	  AT(messages), .min = MESSAGES_LEAST, .max = MESSAGES_LEAST * ST_MAX_BATCHES },
	{ "hosts", 0, "A,B", "hosts of the two processes (default: the default host)",
	  .call = set_hosts, .expected = "two hosts, as a,b" },
	{ "pin", 0, "A,B", "their processors (default: the first two allowed)", AT(cpu),
	  .max = CPU_SETSIZE - 1 },
	{ "unpinned", 0, NULL, "leave the choice to the scheduler", AT(pin), .off = true },
	{ "clock", 0, "CLOCK",
	  "tsc, the processors' time stamp counter, or monotonic, the\n"
	  "system's clock (default: tsc where its rate is constant)",
	  .call = set_clock, .expected = "a clock of this machine" },
	{ "timeout", 't', "SEC", "a process silent for longer counts as dead (default: 10)",
	  AT(timeout), .least = 0.01, .most = 3600 },
	{ "json", 0, NULL, "one JSON document instead of the table", AT(json) },
	U_OPTION_LAST('h', 'V')
};

static const struct u_option_tool tool = {
	.name = "vi_stages",
	.head = "usage: vi_stages [OPTION]...\n\n"
		"Shows where the time of one message goes: round trips between two processes over a\n"
		"VI, with a library of its own that notes the time at each stage.\n\n"
		"options:\n",
	.options = options,
	.tail = "\nEvery time holds the cost of one stamp, which the last column leaves out.\n"
		"exit status: 0 done, 1 failure, 2 bad usage\n",
};

static int parse(struct st_config *cfg, int argc, char **argv)
{
	int rc = u_option_parse(&tool, argc, argv, cfg);

	if (rc != U_OPTION_GO_ON)
		return rc;
	cfg->batches = cfg->messages / MESSAGES_LEAST;
	if (cfg->pin && cfg->cpu[0] < 0 && pf_first_cpus(cfg->cpu)) {
		u_option_refuse(&tool, "two processors are needed, one is allowed here; use "
				       "--unpinned, or allow more (taskset)");
		return PF_EXIT_FAILURE;
	}
	return U_OPTION_GO_ON;
}

int main(int argc, char **argv)
{
	struct st_config cfg = {
		.size = 4, .messages = 20000, .pin = true, .cpu = { -1, -1 }, .timeout = 10
	};
	int rc;

	cfg.tsc = constant_tsc();
	rc = parse(&cfg, argc, argv);
	if (rc < 0)
		rc = run(&cfg);
	else if (rc == PF_EXIT_OK && fflush(stdout))
		rc = PF_EXIT_FAILURE;
	free((char *)cfg.hosts[0]);
	return rc;
}
