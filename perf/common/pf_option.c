/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pf_config.h"
#include "pf_together.h"

const char *const pf_op_names[] = { "send", "write", "write-imm", "read", NULL };
const char *const pf_wait_names[] = { "poll", "block", NULL };
const char *const pf_level_names[] = { "unreliable", "delivery", "reception", NULL };
const char *const pf_format_names[] = { "osu", "csv", "json", NULL };

/* Returns 0, or -EINVAL: then the table's `right` describes valid arguments. */
typedef int (*pf_set)(struct pf_config *cfg, const char *arg);

struct pf_option {
	const char *name;
	char letter;
	unsigned int tools;
	const char *arg; /* name of the argument, NULL for none */
	const char *help;
	const char *right; /* valid arguments, for the error line */
	pf_set set;
};

static int word_index(const char *const *words, const char *text, int *out)
{
	int i;

	for (i = 0; words[i]; i++) {
		if (!strcmp(words[i], text)) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

#define SET_WORD(function, field, words)                                                           \
	static int function(struct pf_config *cfg, const char *arg)                                \
	{                                                                                          \
		int i;                                                                             \
                                                                                                   \
		if (word_index(words, arg, &i))                                                    \
			return -EINVAL;                                                            \
		cfg->field = i;                                                                    \
		return 0;                                                                          \
	}

#define SET_UINT(function, field, min, max)                                                        \
	static int function(struct pf_config *cfg, const char *arg)                                \
	{                                                                                          \
		uint64_t v;                                                                        \
                                                                                                   \
		if (pf_parse_uint(arg, min, max, &v))                                              \
			return -EINVAL;                                                            \
		cfg->field = v;                                                                    \
		return 0;                                                                          \
	}

#define SET_FLAG(function, field)                                                                  \
	static int function(struct pf_config *cfg, const char *arg)                                \
	{                                                                                          \
		cfg->field = true;                                                                 \
		return 0;                                                                          \
	}

#define SET_NAME(function, field, longest)                                                         \
	static int function(struct pf_config *cfg, const char *arg)                                \
	{                                                                                          \
		if (!arg[0] || strlen(arg) > (longest))                                            \
			return -EINVAL;                                                            \
		cfg->field = arg;                                                                  \
		return 0;                                                                          \
	}

SET_WORD(set_op, op, pf_op_names)
SET_WORD(set_wait, wait, pf_wait_names)
SET_WORD(set_level, level, pf_level_names)
SET_WORD(set_format, format, pf_format_names)

/* The spelling of the other tools. */
static int set_json(struct pf_config *cfg, const char *arg)
{
	(void)arg;
	return set_format(cfg, "json");
}

SET_UINT(set_iters, iters, 1, UINT64_C(1000000000000))
SET_UINT(set_warmup, warmup, 0, UINT64_C(1000000000000))
SET_UINT(set_window, window, 1, PF_MAX_WINDOW)
SET_UINT(set_segments, segments, 1, PF_MAX_SEGMENTS)
SET_UINT(set_vis, vis, 1, PF_MAX_VIS)
SET_UINT(set_busy, busy, 1, PF_MAX_VIS)
SET_UINT(set_batch, batch, 1, PF_MAX_BATCH)
SET_UINT(set_buffers, buffers, 1, PF_MAX_BUFFERS)
SET_FLAG(set_cq, cq)
SET_FLAG(set_verify, verify)
SET_FLAG(set_bidir, bidir)
SET_FLAG(set_window_memory, window_memory)
SET_FLAG(set_spin, spin)
SET_FLAG(set_post_time, post_time)
SET_FLAG(set_quiet, quiet)
SET_FLAG(set_server, server)
SET_NAME(set_connect, connect, 63)
SET_NAME(set_host, host, 63)
SET_NAME(set_name, name, 48)
SET_NAME(set_out, out, 4095)

static int set_sizes(struct pf_config *cfg, const char *arg)
{
	return pf_parse_sizes(arg, &cfg->sizes);
}

static int set_duration(struct pf_config *cfg, const char *arg)
{
	return pf_parse_double(arg, 0.001, 86400, &cfg->duration);
}

static int set_timeout(struct pf_config *cfg, const char *arg)
{
	return pf_parse_double(arg, 0.1, 3600, &cfg->timeout);
}

static int set_percentiles(struct pf_config *cfg, const char *arg)
{
	cfg->percentiles_given = true;
	return pf_parse_percentiles(arg, cfg->percentiles, PF_MAX_PERCENTILES,
				    &cfg->percentile_count);
}

static int set_expect(struct pf_config *cfg, const char *arg)
{
	struct pf_expect e;

	if (cfg->expect_count == PF_MAX_EXPECTS || pf_parse_expect(arg, &e))
		return -EINVAL;
	if (!pf_metric_known(cfg->tool, e.metric))
		return -EINVAL;
	cfg->expects[cfg->expect_count++] = e;
	return 0;
}

static int set_pin(struct pf_config *cfg, const char *arg)
{
	uint64_t a, b;
	char copy[32], *comma;

	if (strlen(arg) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, arg);
	comma = strchr(copy, ',');
	if (comma)
		*comma = '\0';
	if (pf_parse_uint(copy, 0, CPU_SETSIZE - 1, &a))
		return -EINVAL;
	b = a;
	if (comma && pf_parse_uint(comma + 1, 0, CPU_SETSIZE - 1, &b))
		return -EINVAL;
	cfg->pin[0] = (int)a;
	cfg->pin[1] = (int)b;
	return 0;
}

static int set_hosts(struct pf_config *cfg, const char *arg)
{
	const char *comma = strchr(arg, ',');

	if (!comma || comma == arg || !comma[1] || strchr(comma + 1, ',') || comma - arg > 63 ||
	    strlen(comma + 1) > 63)
		return -EINVAL;
	free((char *)cfg->hosts[0]);
	cfg->hosts[0] = strndup(arg, (size_t)(comma - arg));
	cfg->hosts[1] = comma + 1;
	return cfg->hosts[0] ? 0 : -EINVAL;
}

static const struct pf_option options[] = {
	{ "server", 0, PF_ALL, NULL, "be the server: wait for one client, serve it, end", NULL,
	  set_server },
	{ "connect", 'c', PF_ALL, "HOST", "be the client of the server on HOST", "a host name",
	  set_connect },
	{ "host", 0, PF_ALL, "HOST", "own host, with --server or --connect (default: VIADUCT_HOST)",
	  "a host name", set_host },
	{ "hosts", 0, PF_ALL, "HOST,HOST",
	  "start both: the client on the first, the server on the second (default: both on the own "
	  "host)",
	  "two host names, as host0,host1", set_hosts },
	{ "name", 0, PF_ALL, "TEXT", "discriminator the server waits on (default: the tool's name)",
	  "1 to 48 characters", set_name },
	{ "op", 'o', PF_ALL, "OP", "send, write, write-imm or read (default: send)",
	  "send, write, write-imm or read", set_op },
	{ "wait", 'w', PF_ALL, "HOW", "poll or block (default: poll)", "poll or block", set_wait },
	{ "cq", 0, PF_ALL, NULL, "take completions from one completion queue", NULL, set_cq },
	{ "level", 'l', PF_ALL, "LEVEL", "unreliable, delivery or reception (default: delivery)",
	  "unreliable, delivery or reception", set_level },
	{ "sizes", 's', PF_ALL, "LIST",
	  "sizes in bytes: 4,64,1k..1M (.. doubles; k, M, G: powers of 1024)",
	  "sizes up to 1G and rising ranges, as 4,64,1k..1M", set_sizes },
	{ "iters", 'n', PF_ALL, "N",
	  "iterations (vi_lat) or messages per VI (vi_bw, vi_rate) of each size "
	  "(default: by size)",
	  "a count from 1", set_iters },
	{ "duration", 'D', PF_ALL, "SEC", "seconds for each size, instead of --iters",
	  "seconds, 0.001 to 86400", set_duration },
	{ "warmup", 'W', PF_ALL, "N", "iterations not counted before each size (default: by size)",
	  "a count from 0", set_warmup },
	{ "window", 0, PF_BW | PF_RATE, "N", "messages outstanding on each VI (default: 64)",
	  "1 to 4096", set_window },
	{ "vis", 0, PF_ALL, "N", "connected VIs, used in turn (default: 1)", "1 to 1024", set_vis },
	{ "busy", 0, PF_LAT, "N", "of the VIs, those that carry messages (default: all)",
	  "1 to 1024", set_busy },
	{ "batch", 0, PF_LAT, "N",
	  "round trips timed together as one sample, their mean (default: 1)", "1 to 100000",
	  set_batch },
	{ "post-time", 0, PF_LAT, NULL, "report the time inside VipPostSend, 32 posts together",
	  NULL, set_post_time },
	{ "segments", 0, PF_ALL, "N", "data segments of each descriptor (default: 1)", "1 to 252",
	  set_segments },
	{ "bidir", 'b', PF_BW | PF_RATE, NULL, "both directions at once; the sum is reported", NULL,
	  set_bidir },
	{ "window-memory", 0, PF_ALL, NULL, "buffers in window memory (VipxAllocMem)", NULL,
	  set_window_memory },
	{ "buffers", 0, PF_ALL, "N",
	  "RDMA: move from buffer to buffer, of N, each 64 messages (default: 1)", "1 to 64",
	  set_buffers },
	{ "verify", 0, PF_ALL, NULL,
	  "check every byte received; time includes filling and checking", NULL, set_verify },
	{ "percentiles", 'p', PF_ALL, "LIST", "percentiles to report (default: 50,90,99,99.9,max)",
	  "numbers from 0 to 100, min or max, as 50,99.9,max", set_percentiles },
	{ "format", 'f', PF_ALL, "FORMAT", "osu, csv or json (default: osu)", "osu, csv or json",
	  set_format },
	{ "json", 0, PF_ALL, NULL, "as --format json", NULL, set_json },
	{ "out", 0, PF_ALL, "FILE", "write the results to FILE, and the table to standard output",
	  "a file name", set_out },
	{ "expect", 'e', PF_ALL, "EXPR",
	  "exit 1 unless METRIC[@SIZE] < <= > >= VALUE holds, for every size; repeatable",
	  "METRIC[@SIZE]<VALUE with a metric listed in --help, as p99_us@64<20", set_expect },
	{ "pin", 0, PF_ALL, "A[,B]",
	  "pin the client to processor A, the server to B (default B: A)",
	  "processor numbers, as 0,1", set_pin },
	{ "spin", 0, PF_ALL, NULL, "never yield while polling", NULL, set_spin },
	{ "timeout", 't', PF_ALL, "SEC", "a peer silent for longer counts as dead (default: 10)",
	  "seconds, 0.1 to 3600", set_timeout },
	{ "quiet", 'q', PF_ALL, NULL, "no warnings about the environment", NULL, set_quiet },
	{ "help", 'h', PF_ALL, NULL, "print this and end", NULL, NULL },
	{ "version", 'V', PF_ALL, NULL, "print the version and end", NULL, NULL },
};

#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))
#define LONG_BASE 256

static void print_option(const struct pf_option *o)
{
	char left[40];
	int n = 0;

	if (o->letter)
		n = snprintf(left, sizeof(left), "-%c, ", o->letter);
	else
		n = snprintf(left, sizeof(left), "    ");
	snprintf(left + n, sizeof(left) - (size_t)n, "--%s%s%s", o->name, o->arg ? " " : "",
		 o->arg ? o->arg : "");
	printf("  %-25s %s\n", left, o->help);
}

static void print_help(const struct pf_tool *tool)
{
	size_t i;

	printf("usage: %s [OPTION]...                 client and server, both started here\n"
	       "       %s --server [OPTION]...        server only\n"
	       "       %s --connect HOST [OPTION]...  client only; its options hold for both\n\n"
	       "%s\n\noptions:\n",
	       tool->name, tool->name, tool->name, tool->summary);
	for (i = 0; i < OPTION_COUNT; i++) {
		if (options[i].tools & tool->kind)
			print_option(&options[i]);
	}
	printf("\nmetrics of --expect, also the columns of csv and the keys of json:\n%s\n"
	       "default sizes: %s\n"
	       "exit status: 0 done, 1 failure or an expectation not met, 2 bad usage\n",
	       tool->metric_help, tool->sizes);
}

static void build_getopt(const struct pf_tool *tool, struct option *longs, char *shorts)
{
	size_t i, n = 0;

	*shorts++ = ':';
	for (i = 0; i < OPTION_COUNT; i++) {
		const struct pf_option *o = &options[i];

		if (!(o->tools & tool->kind))
			continue;
		longs[n++] = (struct option){ o->name, o->arg ? required_argument : no_argument,
					      NULL, LONG_BASE + (int)i };
		if (o->letter)
			*shorts++ = o->letter;
		if (o->letter && o->arg)
			*shorts++ = ':';
	}
	*shorts = '\0';
	longs[n] = (struct option){ 0 };
}

static const struct pf_option *find_option(int c)
{
	size_t i;

	if (c >= LONG_BASE)
		return &options[c - LONG_BASE];
	for (i = 0; i < OPTION_COUNT; i++) {
		if (options[i].letter == c)
			return &options[i];
	}
	return NULL;
}

/* getopt found ':' (argument missing) or '?' (unknown, or an argument it cannot have). */
static int bad_option(const struct pf_tool *tool, int c, char **argv)
{
	const struct pf_option *o = optopt ? find_option(optopt) : NULL;
	char text[80];

	if (o)
		snprintf(text, sizeof(text), "--%s", o->name);
	else if (optopt > 0 && optopt < LONG_BASE)
		snprintf(text, sizeof(text), "-%c", optopt);
	else
		snprintf(text, sizeof(text), "%.70s", argv[optind - 1]);
	if (c == ':')
		return pf_usage(tool, text, NULL, "needs an argument; see --help");
	if (o && !o->arg)
		return pf_usage(tool, text, NULL, "takes no argument; see --help");
	return pf_usage(tool, "no option", text, "see --help");
}

static int take_option(struct pf_config *cfg, const struct pf_option *o, const char *arg)
{
	char what[40], found[80];

	if (!strcmp(o->name, "help")) {
		print_help(cfg->tool);
		return PF_EXIT_OK;
	}
	if (!strcmp(o->name, "version")) {
		printf("%s (Viaduct) %s\n", cfg->tool->name, VIADUCT_VERSION);
		return PF_EXIT_OK;
	}
	if (!o->set(cfg, arg))
		return -1;
	snprintf(what, sizeof(what), "--%s:", o->name);
	snprintf(found, sizeof(found), "'%.60s'", arg);
	fprintf(stderr, "%s: %s %s is not %s\n", cfg->tool->name, what, found, o->right);
	return PF_EXIT_USAGE;
}

static int parse_all(struct pf_config *cfg, int argc, char **argv)
{
	struct option longs[OPTION_COUNT + 1];
	char shorts[2 * OPTION_COUNT + 2];
	int c, rc;

	build_getopt(cfg->tool, longs, shorts);
	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (c == '?' || c == ':')
			return bad_option(cfg->tool, c, argv);
		rc = take_option(cfg, find_option(c), optarg);
		if (rc >= 0)
			return rc;
	}
	if (optind < argc)
		return pf_usage(cfg->tool, "no argument", argv[optind], "options only; see --help");
	rc = pf_together(cfg);
	if (cfg->post_time)
		cfg->batch = PF_POSTS;
	return rc;
}

int pf_config_parse(struct pf_config *cfg, const struct pf_tool *tool, int argc, char **argv)
{
	*cfg = (struct pf_config){
		.tool = tool,
		.level = PF_DELIVERY,
		.warmup = UINT64_MAX,
		.window = tool->window,
		.segments = 1,
		.vis = 1,
		.batch = 1,
		.buffers = 1,
		.timeout = 10,
		.pin = { -1, -1 },
		.name = tool->name,
		.argc = argc,
		.argv = argv,
	};
	if (pf_parse_sizes(tool->sizes, &cfg->sizes) ||
	    pf_parse_percentiles("50,90,99,99.9,max", cfg->percentiles, PF_MAX_PERCENTILES,
				 &cfg->percentile_count)) {
		fprintf(stderr, "%s: out of memory\n", tool->name);
		return PF_EXIT_FAILURE;
	}
	return parse_all(cfg, argc, argv);
}

void pf_config_fini(struct pf_config *cfg)
{
	free(cfg->sizes.v);
	free((char *)cfg->hosts[0]);
	cfg->sizes.v = NULL;
	cfg->hosts[0] = NULL;
}
