/* SPDX-License-Identifier: BSD-2-Clause */
/* ring_vipl - one measurement of VIPL programs on a ring that is up; ring_experiments runs it. */
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "rv.h"

static void print_help(void)
{
	printf("usage: ring_vipl [OPTION]...\n\n"
	       "Measures once, on a ring that vi_fabric brought up with hosts host0, host1, ..., what\n"
	       "VIPL programs get, and prints one JSON object.  All times are divided by the dilation.\n\n"
	       "options:\n"
	       "      --experiment E      E1, E2, E3, E4, hop (64 bytes to and fro) or cost (of a\n"
	       "                          processor, for one RDMA write) (default: E1)\n"
	       "      --hosts N           hosts of the ring, 2 to %u (default: 3)\n"
	       "      --threads N         transfer threads of its agents, for the record (default: 1)\n"
	       "      --links N           E1, E2: links in use at once (default: 1)\n"
	       "      --hops N            hop: links between the two hosts (default: 1)\n"
	       "      --bytes N           of a message, 64 to 4194304 (default: 65536)\n"
	       "      --count N           messages of each sender (default: 4)\n"
	       "      --dilation N        that of the fabric's model, 1 without one (default: 1000)\n"
	       "      --post-ns N         charge this for each post (default: 0)\n"
	       "  -h, --help              print this and end\n"
	       "  -V, --version           print the version and end\n",
	       RV_HOSTS_MAX);
}

enum { EXPERIMENT = 256, HOSTS, THREADS, LINKS, HOPS, BYTES, COUNT, DILATION, POST };

static const struct option options[] = {
	{ "experiment", required_argument, NULL, EXPERIMENT },
	{ "hosts", required_argument, NULL, HOSTS },
	{ "threads", required_argument, NULL, THREADS },
	{ "links", required_argument, NULL, LINKS },
	{ "hops", required_argument, NULL, HOPS },
	{ "bytes", required_argument, NULL, BYTES },
	{ "count", required_argument, NULL, COUNT },
	{ "dilation", required_argument, NULL, DILATION },
	{ "post-ns", required_argument, NULL, POST },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static int number(const char *name, uint64_t least, uint64_t most, uint64_t *out)
{
	char *end = NULL;
	unsigned long long v = 0;

	errno = 0;
	if (*optarg >= '0' && *optarg <= '9')
		v = strtoull(optarg, &end, 10);
	if (end == NULL || errno != 0 || *end != '\0' || v < least || v > most) {
		ring_print_error(
			"--%s %.40s: a number from %llu to %llu is expected; see ring_vipl --help",
			name, optarg, (unsigned long long)least, (unsigned long long)most);
		return -EINVAL;
	}
	*out = v;
	return 0;
}

static int small(const char *name, unsigned int least, unsigned int most, unsigned int *out)
{
	uint64_t v = 0;
	int err = number(name, least, most, &v);

	if (err == 0)
		*out = (unsigned int)v;
	return err;
}

static int set_option(struct rv_task *t, int option)
{
	switch (option) {
	case EXPERIMENT:
		t->experiment = optarg;
		return 0;
	case HOSTS:
		return small("hosts", 2, RV_HOSTS_MAX, &t->hosts);
	case THREADS:
		return small("threads", 1, 64, &t->threads);
	case LINKS:
		return small("links", 1, 2 * RV_HOSTS_MAX, &t->links);
	case HOPS:
		return small("hops", 1, RV_HOSTS_MAX - 1, &t->hops);
	case BYTES:
		return number("bytes", 64, 4194304, &t->bytes);
	case COUNT:
		return number("count", 1, 1000000, &t->count);
	case DILATION:
		return small("dilation", 1, 100000, &t->dilation);
	case POST:
		return small("post-ns", 0, 1000000, &t->post_ns);
	default:
		return -EINVAL;
	}
}

static const struct {
	const char *name;
	int (*run)(const struct rv_task *t, struct rv_result *out);
} experiments[] = {
	{ "E1", rv_rate }, { "E2", rv_rate }, { "E3", rv_put },
	{ "E4", rv_put },  { "hop", rv_hop }, { "cost", rv_cost },
};

static int check(const struct rv_task *t, size_t *which)
{
	size_t n = sizeof(experiments) / sizeof(experiments[0]);

	for (*which = 0; *which < n; ++*which) {
		if (strcmp(experiments[*which].name, t->experiment) == 0)
			break;
	}
	if (*which == n)
		ring_print_error("--experiment %.40s: E1, E2, E3, E4, hop or cost is expected",
				 t->experiment);
	else if (t->bytes % 64 != 0)
		ring_print_error("--bytes %llu: a multiple of 64 is expected",
				 (unsigned long long)t->bytes);
	else if (t->links > 2 * t->hosts)
		ring_print_error("--links %u: %u hosts have %u, use --hosts", t->links, t->hosts,
				 2 * t->hosts);
	else
		return 0;
	return -EINVAL;
}

static void print_result(const struct rv_task *t, const struct rv_result *r)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "experiment", json_object_new_string(t->experiment));
	json_object_object_add(o, "kind", json_object_new_string("ours"));
	json_object_object_add(o, "hosts", json_object_new_int64(t->hosts));
	json_object_object_add(o, "threads", json_object_new_int64(t->threads));
	json_object_object_add(o, "links", json_object_new_int64(t->links));
	json_object_object_add(o, "hops", json_object_new_int64(t->hops));
	json_object_object_add(o, "bytes", json_object_new_int64((int64_t)t->bytes));
	json_object_object_add(o, "value", json_object_new_double(r->value));
	json_object_object_add(o, "unit", json_object_new_string(r->unit));
	if (r->rate != 0)
		json_object_object_add(o, "rate", json_object_new_double(r->rate));
	puts(json_object_to_json_string(o));
	json_object_put(o);
}

int main(int argc, char **argv)
{
	struct rv_task t = { .experiment = "E1",
			     .hosts = 3,
			     .threads = 1,
			     .links = 1,
			     .hops = 1,
			     .bytes = 65536,
			     .count = 4,
			     .dilation = 1000 };
	struct rv_result r = { 0 };
	size_t which;
	int option;

	while ((option = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
		if (option == 'h') {
			print_help();
			return 0;
		}
		if (option == 'V') {
			puts("ring_vipl " VIADUCT_VERSION);
			return 0;
		}
		if (set_option(&t, option) != 0)
			return 2;
	}
	if (optind < argc) {
		ring_print_error("no argument '%.40s' is known; see ring_vipl --help",
				 argv[optind]);
		return 2;
	}
	if (check(&t, &which) != 0)
		return 2;
	prctl(PR_SET_TIMERSLACK, 1UL); /* inherited by all threads: sleeps end when they should */
	if (experiments[which].run(&t, &r) != 0)
		return 1;
	print_result(&t, &r);
	return 0;
}
