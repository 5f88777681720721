/* SPDX-License-Identifier: BSD-2-Clause */
/* ring_vipl - one measurement of VIPL programs on a ring that is up; ring_experiments runs it. */
#include <stdio.h>
#include <sys/prctl.h>

#include "ring_row.h"
#include "rv.h"
#include "u_option.h"

static const char *const experiments[] = { "E1", "E2", "E3", "E4", "hop", "cost", NULL };
static int (*const runs[])(const struct rv_task *t, struct rv_result *out) = {
	rv_rate, rv_rate, rv_put, rv_put, rv_hop, rv_cost,
};

#define AT(field) U_OPTION_AT(struct rv_task, field)

static const struct u_option options[] = {
	{ "experiment", 0, "E",
	  "E1, E2, E3, E4, hop (64 bytes to and fro) or cost (of a\n"
	  "processor, for one RDMA write) (default: E1)",
	  AT(number), .words = experiments },
	{ "hosts", 0, "N", "hosts of the ring, 2 to 64 (default: 3)", AT(hosts), .min = 2,
	  .max = RV_HOSTS_MAX },
	{ "threads", 0, "N", "transfer threads of its agents, for the record (default: 1)",
	  AT(threads), .min = 1, .max = 64 },
	{ "links", 0, "N", "E1, E2: links in use at once (default: 1)", AT(links), .min = 1,
	  .max = 2 * RV_HOSTS_MAX },
	{ "first", 0, "N",
	  "E1, E2: number of the first link: 2 H is from host H to the\n"
	  "right, 2 H + 1 to the left (default: 0)",
	  AT(first), .max = 2 * RV_HOSTS_MAX - 1 },
	{ "hops", 0, "N", "hop: links between the two hosts (default: 1)", AT(hops), .min = 1,
	  .max = RV_HOSTS_MAX - 1 },
	{ "bytes", 0, "N", "of a message, 64 to 4194304 (default: 65536)", AT(bytes), .min = 64,
	  .max = 4194304, .step = 64 },
	{ "count", 0, "N", "messages of each sender (default: 4)", AT(count), .min = 1,
	  .max = 1000000 },
	{ "dilation", 0, "N", "that of the fabric's model, 1 without one (default: 1000)",
	  AT(dilation), .min = 1, .max = 100000 },
	{ "post-ns", 0, "N", "charge this for each post (default: 0)", AT(post_ns),
	  .max = 1000000 },
	U_OPTION_LAST('h', 'V')
};

static const struct u_option_tool tool = {
	.name = "ring_vipl",
	.head = "usage: ring_vipl [OPTION]...\n\n"
		"Measures once, on a ring that vi_fabric brought up with hosts host0, host1, ..., what\n"
		"VIPL programs get, and prints one JSON object.  All times are divided by the dilation.\n\n"
		"options:\n",
	.options = options,
};

static void print_result(const struct rv_task *t, const struct rv_result *r)
{
	const struct ring_row row = { .experiment = t->experiment,
				      .kind = "ours",
				      .hosts = t->hosts,
				      .threads = t->threads,
				      .links = t->links,
				      .bytes = t->bytes,
				      .value = r->value,
				      .unit = r->unit,
				      .rate = r->rate };
	json_object *o = ring_row_new(&row);

	json_object_object_add(o, "hops", json_object_new_int64(t->hops));
	ring_row_print(o);
}

int main(int argc, char **argv)
{
	struct rv_task t = { .hosts = 3,
			     .threads = 1,
			     .links = 1,
			     .hops = 1,
			     .bytes = 65536,
			     .count = 4,
			     .dilation = 1000 };
	struct rv_result r = { 0 };
	int rc = u_option_parse(&tool, argc, argv, &t);

	t.experiment = experiments[t.number];
	if (rc == U_OPTION_GO_ON && t.links + t.first > 2 * t.hosts)
		rc = u_option_refuse(&tool, "--links %u from %u on: %u hosts have %u, use --hosts",
				     t.links, t.first, t.hosts, 2 * t.hosts);
	if (rc != U_OPTION_GO_ON)
		return rc;
	prctl(PR_SET_TIMERSLACK, 1UL); /* inherited by all threads: sleeps end when they should */
	if (runs[t.number](&t, &r) != 0)
		return 1;
	print_result(&t, &r);
	return 0;
}
