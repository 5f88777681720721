/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "pf_config.h"
#include "pf_together.h"
#include "u_option.h"

const char *const pf_op_names[] = { "send", "write", "write-imm", "read", NULL };
const char *const pf_wait_names[] = { "poll", "block", NULL };
const char *const pf_level_names[] = { "unreliable", "delivery", "reception", NULL };
const char *const pf_format_names[] = { "osu", "csv", "json", NULL };

static int set_hosts(void *into, const struct u_option *o, const char *arg)
{
	return pf_parse_hosts(arg, ((struct pf_config *)into)->hosts);
}

static int set_sizes(void *into, const struct u_option *o, const char *arg)
{
	return pf_parse_sizes(arg, &((struct pf_config *)into)->sizes);
}

static int set_percentiles(void *into, const struct u_option *o, const char *arg)
{
	struct pf_config *cfg = into;

	cfg->percentiles_given = true;
	return pf_parse_percentiles(arg, cfg->percentiles, PF_MAX_PERCENTILES,
				    &cfg->percentile_count);
}

static int set_expect(void *into, const struct u_option *o, const char *arg)
{
	struct pf_config *cfg = into;
	struct pf_expect e;

	if (cfg->expect_count == PF_MAX_EXPECTS)
		return -ENOSPC;
	if (pf_parse_expect(arg, &e) || !pf_metric_known(cfg->tool, e.metric))
		return -EINVAL;
	cfg->expects[cfg->expect_count++] = e;
	return 0;
}

#define AT(field) U_OPTION_AT(struct pf_config, field)
#define COUNT_MAX UINT64_C(1000000000000)

static const struct u_option options[] = {
	{ "server", 0, NULL, "be the server: wait for one client, serve it, end", AT(server) },
	{ "connect", 'c', "HOST", "be the client of the server on HOST", AT(connect), .min = 1,
	  .max = 63 },
	{ "host", 0, "HOST", "own host, with --server or --connect (default: VIADUCT_HOST)",
	  AT(host), .min = 1, .max = 63 },
	{ "hosts", 0, "HOST,HOST",
	  "start both: the client on the first, the server on the second (default: both on the own "
	  "host)",
	  .call = set_hosts, .expected = "two host names, as host0,host1" },
	{ "name", 0, "TEXT", "discriminator the server waits on (default: the tool's name)",
	  AT(name), .min = 1, .max = 48 },
	{ "op", 'o', "OP", "send, write, write-imm or read (default: send)", AT(op),
	  .words = pf_op_names },
	{ "wait", 'w', "HOW", "poll or block (default: poll)", AT(wait), .words = pf_wait_names },
	{ "cq", 0, NULL, "take completions from one completion queue", AT(cq) },
	{ "level", 'l', "LEVEL", "unreliable, delivery or reception (default: delivery)", AT(level),
	  .words = pf_level_names },
	{ "sizes", 's', "LIST", "sizes in bytes: 4,64,1k..1M (.. doubles; k, M, G: powers of 1024)",
	  .call = set_sizes,
	  .expected = "a list of sizes up to 1G and rising ranges, as 4,64,1k..1M" },
	{ "iters", 'n', "N",
	  "iterations (vi_lat) or messages per VI (vi_bw, vi_rate) of each size "
	  "(default: by size)",
	  AT(iters), .min = 1, .max = COUNT_MAX },
	{ "duration", 'D', "SEC", "seconds for each size, instead of --iters", AT(duration),
	  .least = 0.001, .most = 86400 },
	{ "warmup", 'W', "N", "iterations not counted before each size (default: by size)",
	  AT(warmup), .max = COUNT_MAX },
	{ "window", 0, "N", "messages outstanding on each VI (default: 64)", AT(window), .min = 1,
	  .max = PF_MAX_WINDOW, .tools = PF_BW | PF_RATE },
	{ "vis", 0, "N", "connected VIs, used in turn (default: 1)", AT(vis), .min = 1,
	  .max = PF_MAX_VIS },
	{ "busy", 0, "N", "of the VIs, those that carry messages (default: all)", AT(busy),
	  .min = 1, .max = PF_MAX_VIS, .tools = PF_LAT },
	{ "batch", 0, "N", "round trips timed together as one sample, their mean (default: 1)",
	  AT(batch), .min = 1, .max = PF_MAX_BATCH, .tools = PF_LAT },
	{ "batch", 0, "N",
	  "descriptors posted, and taken, by one call: at most half of --window (default: 1); "
	  "with --cq a call takes those of all VIs",
	  AT(batch), .min = 1, .max = PF_MAX_CALL, .tools = PF_BW | PF_RATE },
	{ "post-time", 0, NULL, "report the time inside VipPostSend, 32 posts together",
	  AT(post_time), .tools = PF_LAT },
	{ "segments", 0, "N", "data segments of each descriptor (default: 1)", AT(segments),
	  .min = 1, .max = PF_MAX_SEGMENTS },
	{ "bidir", 'b', NULL, "both directions at once; the sum is reported", AT(bidir),
	  .tools = PF_BW | PF_RATE },
	{ "window-memory", 0, NULL, "buffers in window memory (VipxAllocMem)", AT(window_memory) },
	{ "adopt", 0, NULL, "buffers of the program made window memory (VipxAdoptMem)", AT(adopt) },
	{ "buffers", 0, "N",
	  "RDMA: move from buffer to buffer, of N, each 64 messages (default: 1)", AT(buffers),
	  .min = 1, .max = PF_MAX_BUFFERS },
	{ "verify", 0, NULL, "check every byte received; time includes filling and checking",
	  AT(verify) },
	{ "percentiles", 'p', "LIST", "percentiles to report (default: 50,90,99,99.9,max)",
	  .call = set_percentiles,
	  .expected = "a list of numbers from 0 to 100, min or max, as 50,99.9,max" },
	{ "format", 'f', "FORMAT", "osu, csv or json (default: osu)", AT(format),
	  .words = pf_format_names },
	{ "json", 0, NULL, "as --format json", AT(format), .min = PF_JSON },
	{ "out", 0, "FILE", "write the results to FILE, and the table to standard output", AT(out),
	  .min = 1, .max = 4095 },
	{ "expect", 'e', "EXPR",
	  "exit 1 unless METRIC[@SIZE] < <= > >= VALUE holds, for every size; repeatable",
	  .call = set_expect,
	  .expected = "METRIC[@SIZE]<VALUE with a metric listed in --help, as p99_us@64<20" },
	{ "pin", 0, "A[,B]", "pin the client to processor A, the server to B (default B: A)",
	  AT(pin), .max = CPU_SETSIZE - 1 },
	{ "spin", 0, NULL, "never yield while polling", AT(spin) },
	{ "timeout", 't', "SEC", "a peer silent for longer counts as dead (default: 10)",
	  AT(timeout), .least = 0.1, .most = 3600 },
	{ "quiet", 'q', NULL, "no warnings about the environment", AT(quiet) },
	U_OPTION_LAST('h', 'V')
};

int pf_config_parse(struct pf_config *cfg, const struct pf_tool *tool, int argc, char **argv)
{
	const struct u_option_tool t = {
		.name = tool->name,
		.head = tool->head,
		.options = options,
		.tail = tool->tail,
		.mask = tool->kind,
	};
	int rc;

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
		u_option_refuse(&t, "out of memory");
		return PF_EXIT_FAILURE;
	}
	rc = u_option_parse(&t, argc, argv, cfg);
	if (rc == U_OPTION_GO_ON)
		rc = pf_together(cfg, &t);
	if (cfg->post_time)
		cfg->batch = PF_POSTS;
	return rc;
}

void pf_config_fini(struct pf_config *cfg)
{
	free(cfg->sizes.v);
	free((char *)cfg->hosts[0]);
	cfg->sizes.v = NULL;
	cfg->hosts[0] = NULL;
}
