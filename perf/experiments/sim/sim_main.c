/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_sim: simulates one case and writes its result as JSON; perf/ring_sim runs the cases. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "sim.h"
#include "u_option.h"
#include "w_slot.h"

static const char *const pattern_names[] = { "latency",	  "stream",    "alltoall", "random",
					     "neighbour", "bisection", "routes",   NULL };
static const char *const model_names[] = { "auto", "fragments", "fluid", NULL };

#define AT(field) U_OPTION_AT(struct sim_options, field)

static const struct u_option options[] = {
	{ "profile", 0, "FILE", "costs of links and hosts; repeatable, the first with a key counts",
	  AT(profiles) },
	{ "topology", 0, "SPEC", "ring, chain, mesh:WxH, torus:WxH or graph:0-1,1-2 (ring)",
	  AT(topology) },
	{ "hosts", 0, "N", "2 to 1024 (2)", AT(hosts), .min = 2, .max = RT_HOSTS_MAX },
	{ "pattern", 0, "NAME",
	  "latency, stream, alltoall, random, neighbour, bisection or routes\n"
	  "(routes: no traffic)",
	  AT(pattern), .words = pattern_names },
	{ "model", 0, "NAME", "fragments, fluid or auto (auto)", AT(model), .words = model_names },
	{ "bytes", 0, "N", "of a message (262144)", AT(bytes), .min = 1, .max = UINT64_C(1) << 40 },
	{ "messages", 0, "N", "of a flow (1)", AT(messages), .min = 1, .max = 1000000 },
	{ "per-pair", 0, "N", "flows of a host or of a pair, with random and bisection (4)",
	  AT(per_pair), .min = 1, .max = 4096 },
	{ "threads", 0, "N", "transfer threads of a relaying host (4)", AT(threads), .min = 1,
	  .max = 64 },
	{ "apps", 0, "N", "application threads of a host (4)", AT(apps), .min = 1, .max = 64 },
	{ "dma", 0, NULL,
	  "an engine carries what does not fit into a slot; else threads store\n"
	  "everything themselves, as Viaduct does",
	  AT(dma) },
	{ "interrupts", 0, NULL, "threads sleep until an interrupt; else they poll",
	  AT(interrupts) },
	{ "slots", 0, "N", "of a connection's fifo, 8 to 4096 (128)", AT(slots), .min = W_SLOTS_MIN,
	  .max = W_SLOTS_MAX },
	{ "ring-bytes", 0, "N", "of its ring to a neighbour, a power of two (262144)",
	  AT(payload_bytes), .min = W_PAYLOAD_MIN, .max = W_PAYLOAD_MAX },
	{ "seed", 0, "N", "of the random pattern and of flows' paths (1)", AT(seed) },
	{ "budget", 0, "N", "fragments times hops, above which auto is fluid (400000)",
	  AT(budget) },
	{ "fluid", 0, "N", "flows squared times hops, above which fluid takes a sample\n(20000000)",
	  AT(fluid), .min = 1 },
	{ "ways", 0, "N", "flows followed for the loads of links; of more a sample (2000000)",
	  AT(ways), .min = 1 },
	U_OPTION_LAST(0, 0)
};

static const struct u_option_tool tool = {
	.name = "vi_sim",
	.head = "usage: vi_sim --profile FILE [OPTION]...\n\n"
		"Simulates one case of a fabric and writes the result to standard output as JSON.\n\n",
	.options = options,
};

static int parse(int argc, char *argv[], struct sim_options *o)
{
	int rc = u_option_parse(&tool, argc, argv, o);

	while (o->profile_count < SIM_PROFILES && o->profiles[o->profile_count] != NULL)
		o->profile_count++;
	if (rc != U_OPTION_GO_ON)
		return rc;
	if (o->profile_count == 0)
		return u_option_refuse(&tool, "--profile FILE is needed; see --help");
	if (!w_geometry_ok(o->slots, o->payload_bytes))
		return u_option_refuse(&tool, "--slots and --ring-bytes must be powers of two");
	return U_OPTION_GO_ON;
}

static int traffic_run(const struct sim_options *o, const struct sim_profile *p,
		       const struct sim_net *net, struct sim_result *r)
{
	bool in_turn = o->pattern == SIM_LATENCY || o->pattern == SIM_STREAM;

	if (o->pattern == SIM_ROUTES || r->count == 0)
		return 0;
	if (r->model == SIM_FRAGMENTS)
		return sim_fragments_run(o, p, net, r, in_turn);
	if (in_turn || p->cores > 0) {
		fprintf(stderr, "vi_sim: %s need --model fragments\n",
			in_turn ? "flows in turn" : "shared cores");
		return -EOPNOTSUPP;
	}
	return sim_fluid_run(o, p, net, r);
}

static int simulate(const struct sim_options *o, const struct sim_profile *p, struct sim_net *net)
{
	struct sim_result result = { 0 };
	struct json_object *report;
	int err = sim_traffic(o, net, &result);

	if (err == 0)
		err = traffic_run(o, p, net, &result);
	if (err != 0) {
		fprintf(stderr, "vi_sim: %s\n", strerror(-err));
	} else {
		report = sim_report(o, p, net, &result);
		puts(json_object_to_json_string_ext(report, JSON_C_TO_STRING_PLAIN));
		json_object_put(report);
		err = fflush(stdout) == 0 ? 0 : -EIO;
	}
	sim_traffic_free(&result);
	return err;
}

int main(int argc, char *argv[])
{
	struct sim_options o = {
		.topology = "ring",
		.hosts = 2,
		.pattern = SIM_LATENCY,
		.bytes = 262144,
		.messages = 1,
		.per_pair = 4,
		.threads = 4,
		.apps = 4,
		.slots = 128,
		.payload_bytes = 262144,
		.seed = 1,
		.budget = 400000,
		.fluid = 20000000,
		.ways = 2000000,
	};
	struct sim_profile profile;
	struct sim_net net;
	char why[SIM_WHY];
	int rc = parse(argc, argv, &o);

	if (rc != U_OPTION_GO_ON)
		return rc;
	if (sim_profile_read(o.profiles, o.profile_count, &profile, why, sizeof(why)) != 0 ||
	    sim_net_open(&o, &net, why, sizeof(why)) != 0)
		return u_option_refuse(&tool, "%s", why);
	profile.dma = o.dma;
	rc = simulate(&o, &profile, &net) == 0 ? 0 : 1;
	sim_net_close(&net);
	return rc;
}
