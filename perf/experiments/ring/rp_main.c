/* SPDX-License-Identifier: BSD-2-Clause */
/* ring_pair - measures the cost of relays on two processors; ring_hops runs it. */
#include <json-c/json.h>
#include <stdio.h>

#include "rp.h"
#include "u_option.h"

/* ---- rounds ---- */

enum { LATENCY, BANDWIDTH, BOTH }; /* --only */

static const uint64_t trip_bytes[] = { 4, 64 };
static const uint64_t flow_bytes[] = { 64 << 10, 256 << 10, 1 << 20, 16 << 20 };

#define COUNT(a) ((unsigned int)(sizeof(a) / sizeof((a)[0])))

static json_object *row(unsigned int round, const char *what)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "round", json_object_new_int64(round));
	json_object_object_add(o, "what", json_object_new_string(what));
	return o;
}

static void number(json_object *o, const char *name, uint64_t v)
{
	json_object_object_add(o, name, json_object_new_int64((int64_t)v));
}

static void print_row(json_object *o, const char *unit, double v)
{
	json_object_object_add(o, unit, json_object_new_double(v));
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
	fflush(stdout);
}

static int do_line(unsigned int round)
{
	double ns;

	if (rp_line(&ns) != 0)
		return -1;
	print_row(row(round, "line"), "ns", ns);
	return 0;
}

static int do_trips(unsigned int round, unsigned int hops)
{
	double ns[COUNT(trip_bytes)];

	if (rp_trips(hops, trip_bytes, COUNT(trip_bytes), ns) != 0)
		return -1;
	for (unsigned int i = 0; i < COUNT(trip_bytes); i++) {
		json_object *o = row(round, "trip");

		number(o, "hops", hops);
		number(o, "bytes", trip_bytes[i]);
		print_row(o, "ns", ns[i]);
	}
	return 0;
}

static int do_copies(unsigned int round, unsigned int hops, uint64_t bytes, bool apart)
{
	struct rp_copies c[RP_GEOMETRIES];

	if (rp_copies(hops, bytes, apart, c) != 0)
		return -1;
	for (unsigned int i = 0; i < RP_GEOMETRIES; i++) {
		json_object *o = row(round, apart ? "copies-apart" : "copies");

		number(o, "hops", hops);
		number(o, "bytes", bytes);
		number(o, "chunk", c[i].chunk);
		number(o, "ring", c[i].ring);
		print_row(o, "gbs", c[i].rate);
	}
	return 0;
}

static int do_flow(unsigned int round, unsigned int hops, bool write, uint64_t bytes)
{
	json_object *o = row(round, write ? "write" : "send");
	double rate;

	number(o, "hops", hops);
	number(o, "bytes", bytes);
	if (rp_flow(hops, write, bytes, &rate) != 0) {
		json_object_put(o);
		return -1;
	}
	print_row(o, "gbs", rate);
	return 0;
}

static int do_latency(const struct rp_config *cfg, unsigned int round)
{
	int rc = do_line(round);

	for (unsigned int h = 1; h <= cfg->hops && rc == 0; h++)
		rc = do_trips(round, h);
	return rc == 0 ? do_line(round) : rc;
}

static int do_bandwidth(unsigned int round, unsigned int hops)
{
	int rc = 0;

	for (unsigned int i = 0; i < COUNT(flow_bytes) && rc == 0; i++) {
		rc = do_copies(round, hops, flow_bytes[i], false);
		if (rc == 0 && hops > 2)
			rc = do_copies(round, hops, flow_bytes[i], true);
		if (rc == 0)
			rc = do_flow(round, hops, false, flow_bytes[i]);
		if (rc == 0)
			rc = do_flow(round, hops, true, flow_bytes[i]);
	}
	return rc;
}

static int do_round(const struct rp_config *cfg, unsigned int round)
{
	int rc = cfg->only != BANDWIDTH ? do_latency(cfg, round) : 0;

	for (unsigned int h = 2; h <= cfg->hops && cfg->only != LATENCY && rc == 0; h++)
		rc = do_bandwidth(round, h);
	return rc;
}

/* ---- command line ---- */

#define AT(field) U_OPTION_AT(struct rp_config, field)

static const char *const only[] = { "latency", "bandwidth", NULL };

static const struct u_option options[] = {
	{ "pin", 0, "A,B", "processors of the ends and of the relays (default: 0,1)", AT(cpu),
	  .max = CPU_SETSIZE - 1 },
	{ "hops", 0, "N", "up to so many links, 2 to 4 (default: 3)", AT(hops), .min = 2,
	  .max = RP_HOPS_MAX },
	{ "rounds", 0, "N", "of everything, 1 to 1000 (default: 1)", AT(rounds), .min = 1,
	  .max = 1000 },
	{ "only", 0, "WHAT", "latency or bandwidth (default: both)", AT(only), .words = only },
	U_OPTION_LAST('h', 'V')
};

static const struct u_option_tool tool = {
	.name = "ring_pair",
	.head = "usage: ring_pair [OPTION]...\n\n"
		"Measures latency to a neighbour and over relays, and the bandwidth of relays and of bare\n"
		"copies, with a thread at both ends on one processor and the relays on another,\n"
		"on a ring that vi_fabric brought up with hosts host0, host1, ..., at least twice as many\n"
		"as hops, and --relay-wait poll --relay-cpus B.  Prints a JSON object for each value.\n\n"
		"options:\n",
	.options = options,
};

static int measure(const struct rp_config *cfg)
{
	unsigned int helping = 0;
	int rc = 0;

	while (rc == 0 && helping < cfg->hops - 1)
		rc = rp_helper_start(helping++, cfg->cpu[1]);
	if (rc == 0)
		rc = rp_open(cfg);
	for (unsigned int i = 0; i < cfg->rounds && rc == 0; i++)
		rc = do_round(cfg, i);
	rp_close();
	while (helping-- > 0)
		rp_helper_stop(helping);
	return rc;
}

int main(int argc, char **argv)
{
	struct rp_config cfg = { .rounds = 1, .hops = 3, .cpu = { 0, 1 }, .only = BOTH };
	int rc = u_option_parse(&tool, argc, argv, &cfg);

	if (rc == U_OPTION_GO_ON && cfg.cpu[0] == cfg.cpu[1])
		rc = u_option_refuse(&tool, "--pin: two processors are needed; see --help");
	if (rc != U_OPTION_GO_ON)
		return rc;
	return measure(&cfg) == 0 ? 0 : 1;
}
