/* SPDX-License-Identifier: BSD-2-Clause */
/* ring_shmem - one measurement of an OpenSHMEM program on a ring that is up; ring_experiments runs it. */
#include <stdio.h>
#include <sys/prctl.h>

#include "ring_row.h"
#include "rs.h"
#include "u_option.h"

static const char *const experiments[] = {
	"E1", "E2", "E3", "E4", "steps", "barrier", "cost", NULL
};
static void (*const runs[])(const struct rs_task *t, struct rs_result *out) = {
	rs_rate, rs_rate, rs_put, rs_put, rs_steps, rs_barrier, rs_cost,
};

#define AT(field) U_OPTION_AT(struct rs_task, field)

static const struct u_option options[] = {
	{ "experiment", 0, "E",
	  "E1, E2, E3, E4, steps, barrier or cost (of a\n"
	  "processor, for one put and quiet) (default: E1)",
	  AT(number), .words = experiments },
	{ "threads", 0, "N", "transfer threads of the agents, for the record (default: 1)",
	  AT(threads), .min = 1, .max = 64 },
	{ "links", 0, "N", "E1, E2: links in use at once (default: 1)", AT(links), .min = 1,
	  .max = 2 * RS_HOSTS_MAX },
	{ "bytes", 0, "N", "of a put, 64 to 4194304 (default: 65536)", AT(bytes), .min = 64,
	  .max = 4194304, .step = 64 },
	{ "count", 0, "N", "puts of each thread, or barriers (default: 4)", AT(count), .min = 1,
	  .max = 1000000 },
	{ "dilation", 0, "N", "that of the fabric's model, 1 without one (default: 1000)",
	  AT(dilation), .min = 1, .max = 100000 },
	{ "post-ns", 0, "N", "charge this for each put or barrier (default: 0)", AT(post_ns),
	  .max = 1000000 },
	{ "blocking", 0, NULL, "E1, E2: with shmem_double_put, or gets that block", AT(blocking) },
	{ "get", 0, NULL, "E1, E2: gets in place of puts", AT(get) },
	U_OPTION_LAST('h', 'V')
};

static const struct u_option_tool tool = {
	.name = "ring_shmem",
	.head = "usage: oshrun --fabric NAME --hosts N -np N ring_shmem [OPTION]...\n\n"
		"Measures once, on a ring that vi_fabric brought up, what OpenSHMEM programs get, one PE\n"
		"on each host, and prints one JSON object.  All times are divided by the dilation.\n\n"
		"options:\n",
	.options = options,
};

static void add_steps(json_object *o, const struct rs_steps *s)
{
	json_object *steps = json_object_new_object();

	json_object_object_add(steps, "call_us", json_object_new_double(s->call_us));
	json_object_object_add(steps, "seen_us", json_object_new_double(s->seen_us));
	json_object_object_add(steps, "done_us", json_object_new_double(s->done_us));
	json_object_object_add(o, "steps", steps);
}

static void print_result(const struct rs_task *t, const struct rs_result *r)
{
	const struct ring_row row = { .experiment = t->experiment,
				      .kind = "shmem",
				      .hosts = t->hosts,
				      .threads = t->threads,
				      .links = t->links,
				      .bytes = t->bytes,
				      .value = r->value,
				      .unit = r->unit,
				      .rate = r->rate };
	json_object *o = ring_row_new(&row);

	if (r->steps.done_us != 0)
		add_steps(o, &r->steps);
	ring_row_print(o);
}

static void measure(struct rs_task *t)
{
	struct rs_result r = { 0 };

	t->me = (unsigned int)shmem_my_pe();
	t->hosts = (unsigned int)shmem_n_pes();
	if (t->hosts < 2 || t->hosts > RS_HOSTS_MAX || t->links > 2 * t->hosts)
		rs_fail("2 to 64 PEs are expected, and at most 2 links for each");
	runs[t->number](t, &r);
	if (t->me == 0)
		print_result(t, &r);
}

int main(int argc, char **argv)
{
	struct rs_task t = {
		.threads = 1, .links = 1, .bytes = 65536, .count = 4, .dilation = 1000
	};
	int provided, rc = u_option_parse(&tool, argc, argv, &t);

	if (rc != U_OPTION_GO_ON)
		return rc;
	t.experiment = experiments[t.number];
	prctl(PR_SET_TIMERSLACK, 1UL); /* inherited by all threads: sleeps end when they should */
	if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0 ||
	    provided != SHMEM_THREAD_MULTIPLE)
		return 1;
	measure(&t);
	shmem_finalize();
	return 0;
}
