/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_sim: simulates one case and writes its result as JSON; perf/ring_sim runs the cases. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "sim.h"
#include "w_slot.h"

static const char usage_text[] =
	"usage: vi_sim --profile FILE [OPTION]...\n"
	"\n"
	"Simulates one case of a fabric and writes the result to standard output as JSON.\n"
	"\n"
	"  --profile FILE     costs of links and hosts; repeatable, the first with a key counts\n"
	"  --topology SPEC    ring, chain, mesh:WxH, torus:WxH or graph:0-1,1-2 (ring)\n"
	"  --hosts N          2 to 1024 (2)\n"
	"  --pattern NAME     latency, stream, alltoall, random, neighbour, bisection or routes\n"
	"                     (routes: no traffic)\n"
	"  --model NAME       fragments, fluid or auto (auto)\n"
	"  --bytes N          of a message (262144)\n"
	"  --messages N       of a flow (1)\n"
	"  --per-pair N       flows of a host or of a pair, with random and bisection (4)\n"
	"  --threads N        transfer threads of a relaying host (4)\n"
	"  --apps N           application threads of a host (4)\n"
	"  --dma              an engine carries what does not fit into a slot; else threads store\n"
	"                     everything themselves, as Viaduct does\n"
	"  --interrupts       threads sleep until an interrupt; else they poll\n"
	"  --slots N          of a connection's fifo, 8 to 4096 (128)\n"
	"  --ring-bytes N     of its ring to a neighbour, a power of two (262144)\n"
	"  --seed N           of the random pattern and of flows' paths (1)\n"
	"  --budget N         fragments times hops, above which auto is fluid (400000)\n"
	"  --fluid N          flows squared times hops, above which fluid takes a sample\n"
	"                     (20000000)\n"
	"  --ways N           flows followed for the loads of links; of more a sample (2000000)\n"
	"  --help, --version\n";

static const char *const pattern_names[] = { "latency",	  "stream",    "alltoall", "random",
					     "neighbour", "bisection", "routes",   NULL };
static const char *const model_names[] = { "auto", "fragments", "fluid", NULL };

enum option_id {
	OPT_PROFILE = 256,
	OPT_TOPOLOGY,
	OPT_HOSTS,
	OPT_PATTERN,
	OPT_MODEL,
	OPT_BYTES,
	OPT_MESSAGES,
	OPT_PER_PAIR,
	OPT_THREADS,
	OPT_APPS,
	OPT_DMA,
	OPT_INTERRUPTS,
	OPT_SLOTS,
	OPT_RING_BYTES,
	OPT_SEED,
	OPT_BUDGET,
	OPT_FLUID,
	OPT_WAYS,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{ "profile", required_argument, NULL, OPT_PROFILE },
	{ "topology", required_argument, NULL, OPT_TOPOLOGY },
	{ "hosts", required_argument, NULL, OPT_HOSTS },
	{ "pattern", required_argument, NULL, OPT_PATTERN },
	{ "model", required_argument, NULL, OPT_MODEL },
	{ "bytes", required_argument, NULL, OPT_BYTES },
	{ "messages", required_argument, NULL, OPT_MESSAGES },
	{ "per-pair", required_argument, NULL, OPT_PER_PAIR },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "apps", required_argument, NULL, OPT_APPS },
	{ "dma", no_argument, NULL, OPT_DMA },
	{ "interrupts", no_argument, NULL, OPT_INTERRUPTS },
	{ "slots", required_argument, NULL, OPT_SLOTS },
	{ "ring-bytes", required_argument, NULL, OPT_RING_BYTES },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "budget", required_argument, NULL, OPT_BUDGET },
	{ "fluid", required_argument, NULL, OPT_FLUID },
	{ "ways", required_argument, NULL, OPT_WAYS },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static const char *option_name(int id)
{
	const struct option *o = long_options;

	while (o->val != id)
		o++;
	return o->name;
}

static bool parse_number(int id, uint64_t least, uint64_t most, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(optarg, &end, 10);
	if (optarg[0] >= '0' && optarg[0] <= '9' && *end == '\0' && errno == 0 && *out >= least &&
	    *out <= most)
		return true;
	fprintf(stderr, "vi_sim: --%s '%s' is not a number from %llu to %llu\n", option_name(id),
		optarg, (unsigned long long)least, (unsigned long long)most);
	return false;
}

static bool parse_count(int id, unsigned int least, unsigned int most, unsigned int *out)
{
	uint64_t value;

	if (!parse_number(id, least, most, &value))
		return false;
	*out = (unsigned int)value;
	return true;
}

static bool parse_word(int id, const char *const *words, unsigned int *out)
{
	for (unsigned int i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], optarg) == 0) {
			*out = i;
			return true;
		}
	}
	fprintf(stderr, "vi_sim: --%s '%s' is none of:", option_name(id), optarg);
	for (unsigned int i = 0; words[i] != NULL; i++)
		fprintf(stderr, " %s", words[i]);
	fputc('\n', stderr);
	return false;
}

static bool parse_profile(struct sim_options *o)
{
	if (o->profile_count == SIM_PROFILES) {
		fprintf(stderr, "vi_sim: at most %u --profile\n", SIM_PROFILES);
		return false;
	}
	o->profiles[o->profile_count++] = optarg;
	return true;
}

/* The options of the simulated case. */
static bool parse_case(int id, struct sim_options *o)
{
	unsigned int word = 0;

	switch (id) {
	case OPT_PROFILE:
		return parse_profile(o);
	case OPT_TOPOLOGY:
		o->topology = optarg;
		return true;
	case OPT_HOSTS:
		return parse_count(id, 2, RT_HOSTS_MAX, &o->hosts);
	case OPT_PATTERN:
		if (!parse_word(id, pattern_names, &word))
			return false;
		o->pattern = (enum sim_pattern)word;
		return true;
	case OPT_MODEL:
		if (!parse_word(id, model_names, &word))
			return false;
		o->model = (enum sim_model)word;
		return true;
	case OPT_BYTES:
		return parse_number(id, 1, UINT64_C(1) << 40, &o->bytes);
	case OPT_MESSAGES:
		return parse_count(id, 1, 1000000, &o->messages);
	case OPT_PER_PAIR:
		return parse_count(id, 1, 4096, &o->per_pair);
	default:
		return false;
	}
}

/* The options that say how. */
static bool parse_manner(int id, struct sim_options *o)
{
	switch (id) {
	case OPT_THREADS:
		return parse_count(id, 1, 64, &o->threads);
	case OPT_APPS:
		return parse_count(id, 1, 64, &o->apps);
	case OPT_DMA:
		o->dma = true;
		return true;
	case OPT_INTERRUPTS:
		o->interrupts = true;
		return true;
	case OPT_SLOTS:
		return parse_count(id, W_SLOTS_MIN, W_SLOTS_MAX, &o->slots);
	case OPT_RING_BYTES:
		return parse_count(id, W_PAYLOAD_MIN, W_PAYLOAD_MAX, &o->payload_bytes);
	case OPT_SEED:
		return parse_number(id, 0, UINT64_MAX, &o->seed);
	case OPT_BUDGET:
		return parse_number(id, 0, UINT64_MAX, &o->budget);
	case OPT_FLUID:
		return parse_number(id, 1, UINT64_MAX, &o->fluid);
	case OPT_WAYS:
		return parse_number(id, 1, UINT64_MAX, &o->ways);
	default:
		return parse_case(id, o);
	}
}

/* 0: continue; 1: --help or --version was printed; 2: bad usage. */
static int parse(int argc, char *argv[], struct sim_options *o)
{
	int id;

	while ((id = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (id == OPT_HELP || id == OPT_VERSION) {
			fputs(id == OPT_HELP ? usage_text : "vi_sim " VIADUCT_VERSION "\n", stdout);
			return 1;
		}
		if (id == '?' || !parse_manner(id, o))
			return 2;
	}
	if (optind < argc) {
		fprintf(stderr, "vi_sim: no argument '%s' is known\n", argv[optind]);
		return 2;
	}
	if (o->profile_count == 0) {
		fprintf(stderr, "vi_sim: --profile FILE is needed; see --help\n");
		return 2;
	}
	if (!w_geometry_ok(o->slots, o->payload_bytes)) {
		fprintf(stderr, "vi_sim: --slots and --ring-bytes must be powers of two\n");
		return 2;
	}
	return 0;
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
	int told = parse(argc, argv, &o);

	if (told != 0)
		return told == 1 ? 0 : 2;
	if (sim_profile_read(o.profiles, o.profile_count, &profile, why, sizeof(why)) != 0 ||
	    sim_net_open(&o, &net, why, sizeof(why)) != 0) {
		fprintf(stderr, "vi_sim: %s\n", why);
		return 2;
	}
	profile.dma = o.dma;
	told = simulate(&o, &profile, &net) == 0 ? 0 : 1;
	sim_net_close(&net);
	return told;
}
