/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_raw - the raw limits of two processes on this machine. */
#include <errno.h>
#include <json-c/json.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pf_config.h"
#include "pf_side.h"
#include "raw.h"
#include "u_option.h"

#define SCHEMA "viaduct.raw"

static const struct test {
	const char *name, *help;
	int (*run)(const struct raw_config *cfg, raw_emit emit);
} tests[] = {
	{ "speed", "one addition after the other, both at once: the speed of the processors",
	  raw_test_speed },
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

/* ---- output ---- */

static const char *const unit_names[] = { "ns", "messages/s", "bytes/s", "ns" };
static const char *const unit_meanings[] = { "half of a round trip", "one way", "one way",
					     "a step" };

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
	static const double scale[] = { 1, 1e-6, 1e-6, 1 };
	static const char *const shown[] = { "ns", "M/s", "MB/s", "ns" };
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

static const char *test_name(size_t i)
{
	return tests[i].name;
}

static int set_tests(void *into, const struct u_option *o, const char *arg)
{
	return pf_parse_names(arg, test_name, TEST_COUNT, ((struct raw_config *)into)->wanted);
}

static int set_sizes(void *into, const struct u_option *o, const char *arg)
{
	struct raw_config *cfg = into;
	struct pf_sizes s = { cfg->sizes, cfg->size_count };
	int rc = pf_parse_sizes(arg, &s);

	cfg->sizes = s.v;
	cfg->size_count = s.n;
	return rc;
}

#define AT(field) U_OPTION_AT(struct raw_config, field)

static const struct u_option options[] = {
	{ "tests", 't', "LIST", "tests to run, separated by commas (default: all)",
	  .call = set_tests, .expected = "a list of tests" },
	{ "sizes", 's', "LIST", "sizes in bytes: 4,64,1k..1M (default: by test)", .call = set_sizes,
	  .expected = "a list of sizes, as 4,64,1k..1M" },
	{ "pin", 0, "A,B", "processors of the two (default: the first two allowed)", AT(cpu),
	  .max = CPU_SETSIZE - 1 },
	{ "unpinned", 0, NULL, "leave the choice to the scheduler", AT(pin), .off = true },
	{ "batches", 'b', "N", "batches, whose median is reported (default: 51)", AT(batches),
	  .min = 1, .max = RAW_MAX_BATCHES },
	{ "batch-ms", 0, "MS",
	  "time of a batch, well below a slice of the scheduler\n(default: 0.5)", AT(batch_ms),
	  .least = 0.01, .most = 10000 },
	{ "timeout", 0, "SEC", "end a measurement that takes longer (default: 30)", AT(timeout),
	  .least = 0.01, .most = 3600 },
	{ "json", 0, NULL, "one JSON document instead of the table", AT(json) },
	U_OPTION_LAST('h', 'V')
};

static void print_tests(void)
{
	size_t i;

	printf("\ntests:\n");
	for (i = 0; i < TEST_COUNT; i++)
		printf("  %-12s %s\n", tests[i].name, tests[i].help);
}

static const struct u_option_tool tool = {
	.name = "vi_raw",
	.head = "usage: vi_raw [OPTION]...\n\n"
		"Measures two processes of this machine without a message library: the limits\n"
		"with which other figures are compared.\n\n"
		"options:\n",
	.options = options,
	.more = print_tests,
	.tail = "exit status: 0 done, 1 failure, 2 bad usage\n",
};

/* Two processors, unless some were given; one is enough without pinning. */
static int choose_processors(struct raw_config *cfg)
{
	int rc = cfg->cpu[0] >= 0 ? 0 : pf_first_cpus(cfg->cpu);

	return rc == -ENODEV && !cfg->pin ? 0 : rc;
}

static int parse(struct raw_config *cfg, int argc, char **argv)
{
	int rc = u_option_parse(&tool, argc, argv, cfg);

	if (rc == U_OPTION_GO_ON && choose_processors(cfg)) {
		u_option_refuse(&tool, "two processors are needed, one is allowed here; use "
				       "--unpinned, or allow more (taskset)");
		return PF_EXIT_FAILURE;
	}
	return rc;
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
