/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_raw - the raw limits of two processes on this machine. */
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pf_config.h"
#include "pf_side.h"
#include "raw.h"

#define SCHEMA "viaduct.raw"

static const struct test {
	const char *name, *help;
	int (*run)(const struct raw_config *cfg, raw_emit emit);
} tests[] = {
	{ "line", "a flag in a cache line to and fro, one pause per poll: R", raw_test_line },
	{ "slot", "64 B slots with a sequence, a fifo of 64, to and fro", raw_test_slot },
	{ "fifo", "such slots one way: messages per second", raw_test_fifo },
	{ "pingpong", "copy in, flag, copy out, to and fro", raw_test_pingpong },
	{ "put", "copy in, flag, to and fro", raw_test_put },
	{ "stream", "whole messages one way, one and two copies", raw_test_stream },
	{ "chunk", "two copies in chunks through a buffer, one way", raw_test_chunk },
	{ "memcpy", "one process copies alone", raw_test_memcpy },
	{ "futex", "sleep and wake, two processors", raw_test_futex },
	{ "asleep", "as futex, but the other surely sleeps before it is woken", raw_test_asleep },
	{ "shared-core", "sched_yield and futex, both on the first processor",
	  raw_test_shared_core },
	{ "unix", "Unix stream socket", raw_test_unix },
	{ "tcp", "TCP over the loopback", raw_test_tcp },
};

#define TEST_COUNT (sizeof(tests) / sizeof(tests[0]))

static json_object *results;

static void print_help(void)
{
	size_t i;

	printf("usage: vi_raw [OPTION]...\n\n"
	       "Measures two processes of this machine without a message library: the limits\n"
	       "with which other figures are compared.\n\n"
	       "options:\n"
	       "  -t, --tests LIST     tests to run, separated by commas (default: all)\n"
	       "  -s, --sizes LIST     sizes in bytes: 4,64,1k..1M (default: by test)\n"
	       "      --pin A,B        processors of the two (default: the first two allowed)\n"
	       "      --unpinned       leave the choice to the scheduler\n"
	       "  -b, --batches N      batches, whose median is reported (default: 51)\n"
	       "      --batch-ms MS    time of a batch, well below a slice of the scheduler\n"
	       "                       (default: 0.5)\n"
	       "      --timeout SEC    end a measurement that takes longer (default: 30)\n"
	       "      --json           one JSON document instead of the table\n"
	       "  -h, --help           print this and end\n"
	       "  -V, --version        print the version and end\n\ntests:\n");
	for (i = 0; i < TEST_COUNT; i++)
		printf("  %-12s %s\n", tests[i].name, tests[i].help);
	printf("exit status: 0 done, 1 failure, 2 bad usage\n");
}

/* ---- output ---- */

static const char *const unit_names[] = { "ns", "messages/s", "bytes/s" };
static const char *const unit_meanings[] = { "half of a round trip", "one way", "one way" };

static json_object *json_row(const struct raw_job *job, double value)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "test", json_object_new_string(job->test));
	json_object_object_add(o, "variant", json_object_new_string(job->variant));
	json_object_object_add(o, "size_bytes", json_object_new_int64((int64_t)job->size));
	json_object_object_add(o, "window_messages", json_object_new_int64(job->window));
	json_object_object_add(o, "chunk_bytes", json_object_new_int64((int64_t)job->chunk));
	json_object_object_add(o, "ring_bytes", json_object_new_int64((int64_t)job->ring));
	json_object_object_add(o, "one_core", json_object_new_boolean(job->one_core));
	json_object_object_add(o, "value", json_object_new_double(value));
	json_object_object_add(o, "unit", json_object_new_string(unit_names[job->unit]));
	json_object_object_add(o, "meaning", json_object_new_string(unit_meanings[job->unit]));
	return o;
}

static void table_row(const struct raw_job *job, double value)
{
	static const double scale[] = { 1, 1e-6, 1e-6 };
	static const char *const shown[] = { "ns", "M/s", "MB/s" };
	char detail[80] = "";

	if (job->window)
		snprintf(detail, sizeof(detail), "window %u, %llu KiB in %llu KiB", job->window,
			 (unsigned long long)job->chunk / 1024,
			 (unsigned long long)job->ring / 1024);
	printf("%-12s %-26s %9llu %12.2f %-5s %s\n", job->test, job->variant,
	       (unsigned long long)job->size, value * scale[job->unit], shown[job->unit], detail);
	fflush(stdout);
}

static int emit(const struct raw_config *cfg, struct raw_job *job)
{
	double value;
	int rc = raw_run(cfg, job, &value);

	if (rc)
		return rc;
	if (cfg->json)
		json_object_array_add(results, json_row(job, value));
	else
		table_row(job, value);
	return 0;
}

static json_object *json_document(const struct raw_config *cfg)
{
	json_object *o = json_object_new_object(), *pin = json_object_new_array();
	int i;

	for (i = 0; cfg->pin && i < 2; i++)
		json_object_array_add(pin, json_object_new_int(cfg->cpu[i]));
	json_object_object_add(o, "schema", json_object_new_string(SCHEMA));
	json_object_object_add(o, "schema_version", json_object_new_int(1));
	json_object_object_add(o, "tool", json_object_new_string("vi_raw"));
	json_object_object_add(o, "version", json_object_new_string(VIADUCT_VERSION));
	json_object_object_add(o, "pinned_cpus", pin);
	json_object_object_add(o, "batches", json_object_new_int((int)cfg->batches));
	json_object_object_add(o, "batch_ms", json_object_new_double(cfg->batch_ms));
	json_object_object_add(o, "results", json_object_get(results));
	return o;
}

static int run_tests(const struct raw_config *cfg)
{
	json_object *o;
	size_t i;
	int rc = 0;

	results = json_object_new_array();
	if (!cfg->json)
		printf("# %-10s %-26s %9s %12s\n", "test", "variant", "bytes", "median");
	for (i = 0; !rc && i < TEST_COUNT; i++) {
		if (cfg->wanted[i])
			rc = tests[i].run(cfg, emit);
	}
	if (!rc && cfg->json) {
		o = json_document(cfg);
		puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
		json_object_put(o);
	}
	json_object_put(results);
	if (fflush(stdout) || ferror(stdout))
		rc = rc ? rc : -EIO;
	return rc ? PF_EXIT_FAILURE : PF_EXIT_OK;
}

/* ---- command line ---- */

static int bad(const char *what, const char *found, const char *right)
{
	return pf_bad_word("vi_raw", what, found, right);
}

static const char *test_name(size_t i)
{
	return tests[i].name;
}

static int take_tests(struct raw_config *cfg, const char *arg)
{
	return pf_parse_names(arg, test_name, TEST_COUNT, cfg->wanted);
}

static int take_sizes(struct raw_config *cfg, const char *arg)
{
	struct pf_sizes s = { cfg->sizes, cfg->size_count };
	int rc = pf_parse_sizes(arg, &s);

	if (rc)
		return rc;
	cfg->sizes = s.v;
	cfg->size_count = s.n;
	return 0;
}

static int take_batches(struct raw_config *cfg, const char *arg)
{
	uint64_t n;
	int rc = pf_parse_uint(arg, 1, RAW_MAX_BATCHES, &n);

	if (!rc)
		cfg->batches = (uint32_t)n;
	return rc;
}

enum { OPT_PIN = 256, OPT_UNPINNED, OPT_BATCH_MS, OPT_TIMEOUT, OPT_JSON };

static const struct option longs[] = {
	{ "tests", 1, NULL, 't' },
	{ "sizes", 1, NULL, 's' },
	{ "pin", 1, NULL, OPT_PIN },
	{ "unpinned", 0, NULL, OPT_UNPINNED },
	{ "batches", 1, NULL, 'b' },
	{ "batch-ms", 1, NULL, OPT_BATCH_MS },
	{ "timeout", 1, NULL, OPT_TIMEOUT },
	{ "json", 0, NULL, OPT_JSON },
	{ "help", 0, NULL, 'h' },
	{ "version", 0, NULL, 'V' },
	{ 0 },
};

/* Returns -1 to continue, or the exit code. */
static int take_option(struct raw_config *cfg, int c, const char *arg)
{
	switch (c) {
	case 't':
		return take_tests(cfg, arg) ? bad("--tests", arg, "a list of tests") : -1;
	case 's':
		return take_sizes(cfg, arg) ? bad("--sizes", arg, "sizes, as 4,64,1k..1M") : -1;
	case 'b':
		return take_batches(cfg, arg) ? bad("--batches", arg, "a count, 1 to 1001") : -1;
	case OPT_PIN:
		return pf_parse_cpus(arg, cfg->cpu) ? bad("--pin", arg, "two processors, as 0,1")
						    : -1;
	case OPT_BATCH_MS:
		return pf_parse_double(arg, 0.01, 10000, &cfg->batch_ms)
			       ? bad("--batch-ms", arg, "milliseconds, 0.01 to 10000")
			       : -1;
	case OPT_TIMEOUT:
		return pf_parse_double(arg, 0.01, 3600, &cfg->timeout)
			       ? bad("--timeout", arg, "seconds, 0.01 to 3600")
			       : -1;
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
		printf("vi_raw (Viaduct) %s\n", VIADUCT_VERSION);
		return PF_EXIT_OK;
	default:
		return PF_EXIT_USAGE;
	}
}

/* Two processors, unless some were given; one is enough without pinning. */
static int choose_processors(struct raw_config *cfg)
{
	int rc = cfg->cpu[0] >= 0 ? 0 : pf_first_cpus(cfg->cpu);

	return rc == -ENODEV && !cfg->pin ? 0 : rc;
}

static int parse(struct raw_config *cfg, int argc, char **argv)
{
	int c, rc;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":t:s:b:hV", longs, NULL)) != -1) {
		rc = c == '?' || c == ':' ? pf_bad_option("vi_raw", c, argv[optind - 1])
					  : take_option(cfg, c, optarg);
		if (rc >= 0)
			return rc;
	}
	if (optind < argc)
		return bad("argument", argv[optind], "an option");
	if (choose_processors(cfg)) {
		fprintf(stderr, "vi_raw: two processors are needed, one is allowed here; use "
				"--unpinned, or allow more (taskset)\n");
		return PF_EXIT_FAILURE;
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct raw_config cfg = {
		.pin = true, .cpu = { -1, -1 }, .batches = 51, .batch_ms = 0.5, .timeout = 30
	};
	int rc;

	memset(cfg.wanted, 1, sizeof(cfg.wanted));
	rc = parse(&cfg, argc, argv);
	if (rc < 0)
		rc = run_tests(&cfg);
	free(cfg.sizes);
	return rc;
}
