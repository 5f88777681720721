/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_scale - measures the cost of one more VI, process, region or connection. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scale.h"
#include "u_option.h"

static const struct test {
	const char *name, *help;
	int (*run)(const struct sc_config *cfg);
} tests[] = {
	{ "process", "memory of a process with an open NIC; of the agent, with two VIs connected",
	  sc_test_process },
	{ "vi", "memory of a connected VI that carried a message each way", sc_test_vi },
	{ "region", "memory of a registered region", sc_test_region },
	{ "connect", "connections made and closed, one after the other", sc_test_connect },
	{ "register", "time to register and deregister memory, by size", sc_test_register },
	{ "pairs", "2, 4, ... processes in pairs, all at once: together, and the slowest",
	  sc_test_pairs },
};

#define TEST_COUNT (sizeof(tests) / sizeof(tests[0]))

static int run_tests(const struct sc_config *cfg)
{
	size_t i;
	int rc = 0;

	sc_out_begin();
	if (!cfg->json)
		printf("# %-8s %-28s %12s %14s\n", "test", "figure", "n", "value");
	for (i = 0; !rc && i < TEST_COUNT; i++) {
		if (cfg->wanted[i])
			rc = tests[i].run(cfg);
	}
	if (!rc && cfg->json)
		sc_print_document();
	sc_out_end();
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "vi_scale: writing to standard output: %s\n", strerror(errno));
		rc = -EIO;
	}
	return rc ? PF_EXIT_FAILURE : PF_EXIT_OK;
}

/* ---- command line ---- */

static const char *test_name(size_t i)
{
	return tests[i].name;
}

static int set_tests(void *into, const struct u_option *o, const char *arg)
{
	return pf_parse_names(arg, test_name, TEST_COUNT, ((struct sc_config *)into)->wanted);
}

static int set_sizes(void *into, const struct u_option *o, const char *arg)
{
	return pf_parse_sizes(arg, &((struct sc_config *)into)->sizes);
}

#define AT(field) U_OPTION_AT(struct sc_config, field)

static const struct u_option options[] = {
	{ "tests", 't', "LIST", "tests to run, separated by commas (default: all)",
	  .call = set_tests, .expected = "a list of tests" },
	{ "vis", 0, "N", "connected VIs for vi, even (default: 256)", AT(vis), .min = 2,
	  .max = SC_MAX_VIS, .step = 2 },
	{ "processes", 0, "N", "processes for process and pairs, even (default: 16)", AT(processes),
	  .min = 4, .max = SC_MAX_PROCESSES, .step = 2 },
	{ "regions", 0, "N", "regions for region (default: 10000)", AT(regions), .min = 1,
	  .max = SC_MAX_REGIONS },
	{ "sizes", 's', "LIST", "sizes for register (default: 4k,64k,1M,16M,256M,1G)",
	  .call = set_sizes, .expected = "a list of sizes, as 4k,1M,1G" },
	{ "duration", 'D', "SEC", "time for connect, and for each of pairs (default: 1)",
	  AT(duration), .least = 0.001, .most = 60 },
	{ "agent", 0, "PID", "the host's agent, to show its memory too", AT(agent), .min = 1 },
	{ "timeout", 0, "SEC", "end a test that takes longer (default: 60)", AT(timeout),
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
	.name = "vi_scale",
	.head = "usage: vi_scale [OPTION]...\n\n"
		"Measures what one more VI, process, region or connection costs, and what many\n"
		"processes of one host get when all run at once. All run on this host.\n\n"
		"options:\n",
	.options = options,
	.more = print_tests,
	.tail = "exit status: 0 done, 1 failure, 2 bad usage\n",
};

static int parse(struct sc_config *cfg, int argc, char **argv)
{
	int rc = u_option_parse(&tool, argc, argv, cfg);
	size_t i;

	if (rc != U_OPTION_GO_ON)
		return rc;
	if (!cfg->sizes.n && pf_parse_sizes("4k,64k,1M,16M,256M,1G", &cfg->sizes)) {
		u_option_refuse(&tool, "out of memory");
		return PF_EXIT_FAILURE;
	}
	for (i = 0; i < cfg->sizes.n; i++) {
		if (!cfg->sizes.v[i])
			return u_option_refuse(&tool, "--sizes: a region has 1 byte at least");
	}
	return U_OPTION_GO_ON;
}

int main(int argc, char **argv)
{
	struct sc_config cfg = {
		.processes = 16, .vis = 256, .regions = 10000, .duration = 1, .timeout = 60
	};
	int rc;

	memset(cfg.wanted, 1, sizeof(cfg.wanted));
	rc = parse(&cfg, argc, argv);
	if (rc < 0)
		rc = run_tests(&cfg);
	free(cfg.sizes.v);
	return rc;
}
