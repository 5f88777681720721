/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_stages - splits the latency of a message by stage. */
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
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

#define SCHEMA "viaduct.stages"
#define MOST_BYTES (UINT64_C(1) << 20)

static void print_help(void)
{
	printf("usage: vi_stages [OPTION]...\n\n"
	       "Shows where the time of one message goes: round trips between two processes over a\n"
	       "VI, with a library of its own that notes the time at each stage.\n\n"
	       "options:\n"
	       "  -s, --size BYTES     bytes of a message, 1 to 1M (default: 4)\n"
	       "  -n, --messages N     messages to measure, 200 to 2000000 (default: 20000)\n"
	       "      --hosts A,B      hosts of the two processes (default: the default host)\n"
	       "      --pin A,B        their processors (default: the first two allowed)\n"
	       "      --unpinned       leave the choice to the scheduler\n"
	       "      --clock CLOCK    tsc, the processors' time stamp counter, or monotonic, the\n"
	       "                       system's clock (default: tsc where its rate is constant)\n"
	       "  -t, --timeout SEC    a process silent for longer counts as dead (default: 10)\n"
	       "      --json           one JSON document instead of the table\n"
	       "  -h, --help           print this and end\n"
	       "  -V, --version        print the version and end\n\n"
	       "Every time holds the cost of one stamp, which the last column leaves out.\n"
	       "exit status: 0 done, 1 failure, 2 bad usage\n");
}

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
	printf("# %zu messages matched, %zu left out: another thread took them in\n",
	       res->stage[ST_WHOLE].count, res->left_out);
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

static int bad(const char *what, const char *found, const char *right)
{
	return pf_bad_word("vi_stages", what, found, right);
}

static int take_size(struct st_config *cfg, const char *arg)
{
	uint64_t n;

	if (pf_parse_size(arg, &n) || n < 1 || n > MOST_BYTES)
		return -EINVAL;
	cfg->size = (uint32_t)n;
	return 0;
}

static int take_messages(struct st_config *cfg, const char *arg)
{
	uint64_t n;

	if (pf_parse_uint(arg, 2 * ST_ROUNDS, 2 * ST_ROUNDS * ST_MAX_BATCHES, &n))
		return -EINVAL;
	cfg->batches = (uint32_t)(n / (2 * ST_ROUNDS));
	return 0;
}

/* "A,B", into the two names of it. */
static int take_pair(char *arg, const char *out[2])
{
	char *comma = strchr(arg, ',');

	if (!comma || comma == arg || !comma[1] || strchr(comma + 1, ','))
		return -EINVAL;
	*comma = '\0';
	out[0] = arg;
	out[1] = comma + 1;
	return 0;
}

static int take_clock(struct st_config *cfg, const char *arg)
{
	if (!strcmp(arg, "monotonic"))
		cfg->tsc = false;
	else if (strcmp(arg, "tsc") || !constant_tsc())
		return -EINVAL;
	return 0;
}

enum { OPT_HOSTS = 256, OPT_PIN, OPT_UNPINNED, OPT_CLOCK, OPT_JSON };

static const struct option longs[] = {
	{ "size", 1, NULL, 's' },
	{ "messages", 1, NULL, 'n' },
	{ "hosts", 1, NULL, OPT_HOSTS },
	{ "pin", 1, NULL, OPT_PIN },
	{ "unpinned", 0, NULL, OPT_UNPINNED },
	{ "clock", 1, NULL, OPT_CLOCK },
	{ "timeout", 1, NULL, 't' },
	{ "json", 0, NULL, OPT_JSON },
	{ "help", 0, NULL, 'h' },
	{ "version", 0, NULL, 'V' },
	{ 0 },
};

/* An option with a value.  Returns -1 to continue, or the exit code. */
static int take_value(struct st_config *cfg, int c, char *arg)
{
	switch (c) {
	case 's':
		return take_size(cfg, arg) ? bad("--size", arg, "bytes, 1 to 1M") : -1;
	case 'n':
		return take_messages(cfg, arg) ? bad("--messages", arg, "200 to 2000000") : -1;
	case 't':
		return pf_parse_double(arg, 0.01, 3600, &cfg->timeout)
			       ? bad("--timeout", arg, "seconds, 0.01 to 3600")
			       : -1;
	case OPT_HOSTS:
		return take_pair(arg, cfg->hosts) ? bad("--hosts", arg, "two hosts, as a,b") : -1;
	case OPT_PIN:
		return pf_parse_cpus(arg, cfg->cpu) ? bad("--pin", arg, "two processors, as 0,1")
						    : -1;
	case OPT_CLOCK:
		return take_clock(cfg, arg) ? bad("--clock", arg, "a clock of this machine") : -1;
	default:
		return PF_EXIT_USAGE;
	}
}

static int take_option(struct st_config *cfg, int c, char *arg)
{
	switch (c) {
	case OPT_UNPINNED:
		cfg->pin = false;
		return -1;
	case OPT_JSON:
		cfg->json = true;
		return -1;
	case 'h':
		print_help();
		return PF_EXIT_OK;
	case 'V':
		printf("vi_stages (Viaduct) %s\n", VIADUCT_VERSION);
		return PF_EXIT_OK;
	default:
		return take_value(cfg, c, arg);
	}
}

static int choose_processors(struct st_config *cfg)
{
	return !cfg->pin || cfg->cpu[0] >= 0 ? 0 : pf_first_cpus(cfg->cpu);
}

static int parse(struct st_config *cfg, int argc, char **argv)
{
	int c, rc;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":s:n:t:hV", longs, NULL)) != -1) {
		rc = c == '?' || c == ':' ? pf_bad_option("vi_stages", c, argv[optind - 1])
					  : take_option(cfg, c, optarg);
		if (rc >= 0)
			return rc;
	}
	if (optind < argc)
		return bad("argument", argv[optind], "an option");
	if (choose_processors(cfg)) {
		fprintf(stderr, "vi_stages: two processors are needed, one is allowed here; use "
				"--unpinned, or allow more (taskset)\n");
		return PF_EXIT_FAILURE;
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct st_config cfg = {
		.size = 4, .batches = 100, .pin = true, .cpu = { -1, -1 }, .timeout = 10
	};
	int rc;

	cfg.tsc = constant_tsc();
	rc = parse(&cfg, argc, argv);
	if (rc < 0)
		return run(&cfg);
	if (rc == PF_EXIT_OK && fflush(stdout))
		rc = PF_EXIT_FAILURE;
	return rc;
}
