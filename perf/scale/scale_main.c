/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_scale - measures the cost of one more VI, process, region or connection. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scale.h"

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

static void print_help(void)
{
	size_t i;

	printf("usage: vi_scale [OPTION]...\n\n"
	       "Measures what one more VI, process, region or connection costs, and what many\n"
	       "processes of one host get when all run at once. All run on this host.\n\n"
	       "options:\n"
	       "  -t, --tests LIST     tests to run, separated by commas (default: all)\n"
	       "      --vis N          connected VIs for vi, even (default: 256)\n"
	       "      --processes N    processes for process and pairs, even (default: 16)\n"
	       "      --regions N      regions for region (default: 10000)\n"
	       "  -s, --sizes LIST     sizes for register (default: 4k,64k,1M,16M,256M,1G)\n"
	       "  -D, --duration SEC   time for connect, and for each of pairs (default: 1)\n"
	       "      --agent PID      the host's agent, to show its memory too\n"
	       "      --timeout SEC    end a test that takes longer (default: 60)\n"
	       "      --json           one JSON document instead of the table\n"
	       "  -h, --help           print this and end\n"
	       "  -V, --version        print the version and end\n\ntests:\n");
	for (i = 0; i < TEST_COUNT; i++)
		printf("  %-12s %s\n", tests[i].name, tests[i].help);
	printf("exit status: 0 done, 1 failure, 2 bad usage\n");
}

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

static int bad(const char *what, const char *found, const char *right)
{
	return pf_bad_word("vi_scale", what, found, right);
}

static const char *test_name(size_t i)
{
	return tests[i].name;
}

static int take_tests(struct sc_config *cfg, const char *arg)
{
	return pf_parse_names(arg, test_name, TEST_COUNT, cfg->wanted);
}

static int take_sizes(struct sc_config *cfg, const char *arg)
{
	struct pf_sizes s = { NULL, 0 };
	size_t i;

	if (pf_parse_sizes(arg, &s))
		return -EINVAL;
	for (i = 0; i < s.n; i++) {
		if (!s.v[i]) {
			free(s.v);
			return -EINVAL;
		}
	}
	free(cfg->sizes.v);
	cfg->sizes = s;
	return 0;
}

static int take_count(const char *arg, uint32_t least, uint32_t most, bool even, uint32_t *out)
{
	uint64_t n;

	if (pf_parse_uint(arg, least, most, &n) || (even && n % 2))
		return -EINVAL;
	*out = (uint32_t)n;
	return 0;
}

static int take_agent(struct sc_config *cfg, const char *arg)
{
	uint64_t n;

	if (pf_parse_uint(arg, 1, INT32_MAX, &n))
		return -EINVAL;
	cfg->agent = (pid_t)n;
	return 0;
}

enum { OPT_VIS = 256, OPT_PROCESSES, OPT_REGIONS, OPT_AGENT, OPT_TIMEOUT, OPT_JSON };

static const struct option longs[] = {
	{ "tests", 1, NULL, 't' },
	{ "vis", 1, NULL, OPT_VIS },
	{ "processes", 1, NULL, OPT_PROCESSES },
	{ "regions", 1, NULL, OPT_REGIONS },
	{ "sizes", 1, NULL, 's' },
	{ "duration", 1, NULL, 'D' },
	{ "agent", 1, NULL, OPT_AGENT },
	{ "timeout", 1, NULL, OPT_TIMEOUT },
	{ "json", 0, NULL, OPT_JSON },
	{ "help", 0, NULL, 'h' },
	{ "version", 0, NULL, 'V' },
	{ 0 },
};

/* Returns -1 to continue, or the exit code. */
static int take_option(struct sc_config *cfg, int c, const char *arg)
{
	switch (c) {
	case 't':
		return take_tests(cfg, arg) ? bad("--tests", arg, "a list of tests") : -1;
	case 's':
		return take_sizes(cfg, arg) ? bad("--sizes", arg, "sizes, as 4k,1M,1G") : -1;
	case 'D':
		return pf_parse_double(arg, 0.001, 60, &cfg->duration)
			       ? bad("--duration", arg, "seconds, 0.001 to 60")
			       : -1;
	case OPT_VIS:
		return take_count(arg, 2, SC_MAX_VIS, true, &cfg->vis)
			       ? bad("--vis", arg, "an even count, 2 to 4096")
			       : -1;
	case OPT_PROCESSES:
		return take_count(arg, 4, SC_MAX_PROCESSES, true, &cfg->processes)
			       ? bad("--processes", arg, "an even count, 4 to 64")
			       : -1;
	case OPT_REGIONS:
		return take_count(arg, 1, SC_MAX_REGIONS, false, &cfg->regions)
			       ? bad("--regions", arg, "a count, 1 to 200000")
			       : -1;
	case OPT_AGENT:
		return take_agent(cfg, arg) ? bad("--agent", arg, "a process") : -1;
	case OPT_TIMEOUT:
		return pf_parse_double(arg, 0.01, 3600, &cfg->timeout)
			       ? bad("--timeout", arg, "seconds, 0.01 to 3600")
			       : -1;
	case OPT_JSON:
		cfg->json = true;
		return -1;
	case 'h':
		print_help();
		return PF_EXIT_OK;
	case 'V':
		printf("vi_scale (Viaduct) %s\n", VIADUCT_VERSION);
		return PF_EXIT_OK;
	default:
		return PF_EXIT_USAGE;
	}
}

static int parse(struct sc_config *cfg, int argc, char **argv)
{
	int c, rc;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":t:s:D:hV", longs, NULL)) != -1) {
		rc = c == '?' || c == ':' ? pf_bad_option("vi_scale", c, argv[optind - 1])
					  : take_option(cfg, c, optarg);
		if (rc >= 0)
			return rc;
	}
	if (optind < argc)
		return bad("argument", argv[optind], "an option");
	if (!cfg->sizes.n && pf_parse_sizes("4k,64k,1M,16M,256M,1G", &cfg->sizes)) {
		fprintf(stderr, "vi_scale: out of memory\n");
		return PF_EXIT_FAILURE;
	}
	return -1;
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
