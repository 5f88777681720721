/* SPDX-License-Identifier: BSD-2-Clause */
/* ring_pair - measures the cost of relays on two processors; ring_hops runs it. */
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rp.h"

/* ---- rounds ---- */

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
	int rc = cfg->latency ? do_latency(cfg, round) : 0;

	for (unsigned int h = 2; h <= cfg->hops && cfg->bandwidth && rc == 0; h++)
		rc = do_bandwidth(round, h);
	return rc;
}

/* ---- command line ---- */

static void print_help(void)
{
	printf("usage: ring_pair [OPTION]...\n\n"
	       "Measures latency to a neighbour and over relays, and bandwidth over relays beside that\n"
	       "of bare copies, with a thread at both ends on one processor and the relays on another,\n"
	       "on a ring that vi_fabric brought up with hosts host0, host1, ..., at least twice as many\n"
	       "as hops, and --relay-wait poll --relay-cpus B.  Prints a JSON object for each value.\n\n"
	       "options:\n"
	       "      --pin A,B           processors of the ends and of the relays (default: 0,1)\n"
	       "      --hops N            up to so many links, 2 to %u (default: 3)\n"
	       "      --rounds N          of everything, 1 to 1000 (default: 1)\n"
	       "      --only WHAT         latency or bandwidth (default: both)\n"
	       "  -h, --help              print this and end\n"
	       "  -V, --version           print the version and end\n",
	       RP_HOPS_MAX);
}

enum { PIN = 256, HOPS, ROUNDS, ONLY };

static const struct option options[] = {
	{ "pin", required_argument, NULL, PIN },
	{ "hops", required_argument, NULL, HOPS },
	{ "rounds", required_argument, NULL, ROUNDS },
	{ "only", required_argument, NULL, ONLY },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static int refuse(const char *name, const char *expected)
{
	ring_print_error("--%s %.40s: %s is expected; see ring_pair --help", name, optarg,
			 expected);
	return -1;
}

static int small(const char *text, long most, char after, long *out, const char **rest)
{
	char *end;

	if (*text < '0' || *text > '9')
		return -1;
	errno = 0;
	*out = strtol(text, &end, 10);
	if (errno != 0 || *end != after || *out > most)
		return -1;
	if (rest != NULL)
		*rest = end + 1;
	return 0;
}

static int set_pin(struct rp_config *cfg)
{
	const char *rest;
	long a, b;

	if (small(optarg, CPU_SETSIZE - 1, ',', &a, &rest) != 0 ||
	    small(rest, CPU_SETSIZE - 1, '\0', &b, NULL) != 0 || a == b)
		return refuse("pin", "the numbers of two processors, as in 0,1,");
	cfg->cpu[0] = (int)a;
	cfg->cpu[1] = (int)b;
	return 0;
}

static int set_only(struct rp_config *cfg)
{
	cfg->latency = strcmp(optarg, "latency") == 0;
	cfg->bandwidth = strcmp(optarg, "bandwidth") == 0;
	if (!cfg->latency && !cfg->bandwidth)
		return refuse("only", "latency or bandwidth");
	return 0;
}

static int set_option(struct rp_config *cfg, int option)
{
	long v;

	switch (option) {
	case PIN:
		return set_pin(cfg);
	case HOPS:
		if (small(optarg, RP_HOPS_MAX, '\0', &v, NULL) != 0 || v < 2)
			return refuse("hops", "a number from 2 to 4");
		cfg->hops = (unsigned int)v;
		return 0;
	case ROUNDS:
		if (small(optarg, 1000, '\0', &v, NULL) != 0 || v < 1)
			return refuse("rounds", "a number from 1 to 1000");
		cfg->rounds = (unsigned int)v;
		return 0;
	case ONLY:
		return set_only(cfg);
	default:
		return -1;
	}
}

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
	struct rp_config cfg = {
		.rounds = 1, .hops = 3, .cpu = { 0, 1 }, .latency = true, .bandwidth = true
	};
	int option;

	while ((option = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
		if (option == 'h') {
			print_help();
			return 0;
		}
		if (option == 'V') {
			puts("ring_pair " VIADUCT_VERSION);
			return 0;
		}
		if (set_option(&cfg, option) != 0)
			return 2;
	}
	if (optind < argc) {
		ring_print_error("no argument '%.40s' is known; see ring_pair --help",
				 argv[optind]);
		return 2;
	}
	return measure(&cfg) == 0 ? 0 : 1;
}
