/* SPDX-License-Identifier: BSD-2-Clause */
/* ring_port - one measurement of the raw link or of the published protocol; ring_experiments runs it. */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "port_model.h"
#include "rg.h"
#include "ring_row.h"
#include "u_option.h"

#define AT(field) U_OPTION_AT(struct rg_task, field)

static const char *const experiments[] = { "E1", "E2", "E3", "E4", "barrier", NULL };

static const struct u_option options[] = {
	{ "experiment", 0, "E", "E1, E2, E3, E4 or barrier (default: E1)", AT(experiment),
	  .words = experiments },
	{ "baseline", 0, NULL, "the published protocol (default: the raw link)", AT(baseline) },
	{ "hosts", 0, "N", "hosts of the ring, 3 to 8 (default: 3)", AT(hosts), .min = 3,
	  .max = RG_HOSTS_MAX },
	{ "threads", 0, "N", "transfer threads of a host, 1 to 8 (default: 1)", AT(threads),
	  .min = 1, .max = RG_THREADS_MAX },
	{ "links", 0, "N", "E1, E2: links in use at once (default: 1)", AT(links), .min = 1,
	  .max = RG_LANES_MAX },
	{ "bytes", 0, "N", "of a message, 64 to 4194304, a multiple of 64 (default: 65536)",
	  AT(bytes), .min = 64, .max = RG_BYTES_MAX, .step = 64 },
	{ "count", 0, "N", "messages of each sender (default: 4)", AT(count), .min = 1,
	  .max = 1000000 },
	{ "profile", 0, "NAME", "of the links (default: gen3x8)", AT(profile) },
	{ "dilation", 0, "N", "how many times slower than the profile (default: 1000)",
	  AT(dilation), .min = 1, .max = PORT_MODEL_DILATION_MAX },
	{ "show-profile", 0, NULL, "print the profile and end", AT(show) },
	U_OPTION_LAST('h', 'V')
};

static const struct u_option_tool tool = {
	.name = "ring_port",
	.head = "usage: ring_port [OPTION]...\n\n"
		"Measures once, on emulated hosts whose links have the model of a profile, the raw\n"
		"link or the published protocol, and prints one JSON object.\n\n"
		"options:\n",
	.options = options,
};

static int parse(struct rg_task *t, int argc, char **argv)
{
	int rc = u_option_parse(&tool, argc, argv, t);

	if (rc != U_OPTION_GO_ON)
		return rc;
	if (port_model_profile_find(t->profile) == NULL)
		return u_option_refuse(&tool, "--profile '%.40s' is not gen3x8", t->profile);
	if (t->links > 2 * t->hosts)
		return u_option_refuse(&tool, "--links %u: %u hosts have %u, use --hosts", t->links,
				       t->hosts, 2 * t->hosts);
	if (strcmp(t->experiment, "barrier") == 0 && !t->baseline)
		return u_option_refuse(&tool, "--experiment barrier is of the published protocol: "
					      "add --baseline");
	return U_OPTION_GO_ON;
}

static void show_profile(const char *name)
{
	const struct port_model_profile *p = port_model_profile_find(name);
	json_object *o = json_object_new_object();

	json_object_object_add(o, "name", json_object_new_string(p->name));
	json_object_object_add(o, "line_rate", json_object_new_int64((int64_t)p->line_rate));
	json_object_object_add(o, "payload_bytes", json_object_new_int64(p->payload_bytes));
	json_object_object_add(o, "packet_bytes", json_object_new_int64(p->packet_bytes));
	json_object_object_add(o, "posted_bytes", json_object_new_int64(p->posted_bytes));
	json_object_object_add(o, "latency_ns", json_object_new_int64(p->latency_ns));
	json_object_object_add(o, "register_write_ns", json_object_new_int64(p->register_write_ns));
	json_object_object_add(o, "register_read_ns", json_object_new_int64(p->register_read_ns));
	json_object_object_add(o, "interrupt_ns", json_object_new_int64(p->interrupt_ns));
	json_object_object_add(o, "dma_setup_ns", json_object_new_int64(p->dma_setup_ns));
	json_object_object_add(o, "copy_rate", json_object_new_int64((int64_t)p->copy_rate));
	ring_row_print(o);
}

static void add_split(json_object *o, const struct rg_split *s)
{
	json_object *split = json_object_new_object();

	json_object_object_add(split, "address_setup_ns", json_object_new_int64(s->setup));
	json_object_object_add(split, "doorbell_wait_ns", json_object_new_int64(s->wait));
	json_object_object_add(split, "data_ns", json_object_new_int64(s->data));
	json_object_object_add(split, "metadata_ns", json_object_new_int64(s->meta));
	json_object_object_add(split, "interrupt_ns", json_object_new_int64(s->interrupt));
	json_object_object_add(o, "split", split);
}

static void print_result(const struct rg_task *t, const struct rg_result *r)
{
	const struct ring_row row = { .experiment = t->experiment,
				      .kind = t->baseline ? "baseline" : "raw",
				      .hosts = t->hosts,
				      .threads = t->threads,
				      .links = t->links,
				      .bytes = t->bytes,
				      .value = r->value,
				      .unit = r->unit,
				      .rate = r->rate };
	json_object *o = ring_row_new(&row);

	if (r->split.data != 0)
		add_split(o, &r->split);
	ring_row_print(o);
}

static int measure(struct rg_task *t, struct rg_result *r)
{
	struct rg_fabric f;
	char kind[64];
	int err;

	snprintf(kind, sizeof(kind), "emu+model:%s:%u", t->profile, t->dilation);
	err = rg_fabric_open(&f, t->hosts, kind);
	if (err != 0)
		return err;
	if (strcmp(t->experiment, "E4") == 0 && !t->baseline)
		t->links = t->hosts;
	if (strcmp(t->experiment, "barrier") == 0)
		err = rg_barrier(t, &f, r);
	else if (strcmp(t->experiment, "E3") >= 0 && t->baseline)
		err = rg_put(t, &f, r);
	else if (strcmp(t->experiment, "E3") == 0)
		err = rg_echo(t, &f, r);
	else
		err = rg_rate(t, &f, r);
	rg_fabric_close(&f);
	return err;
}

int main(int argc, char **argv)
{
	struct rg_task t = { .experiment = "E1",
			     .profile = "gen3x8",
			     .hosts = 3,
			     .threads = 1,
			     .links = 1,
			     .bytes = 65536,
			     .count = 4,
			     .dilation = 1000 };
	struct rg_result r = { 0 };
	int rc = parse(&t, argc, argv);

	if (rc != U_OPTION_GO_ON)
		return rc;
	if (t.show) {
		show_profile(t.profile);
		return 0;
	}
	prctl(PR_SET_TIMERSLACK, 1UL); /* inherited by all threads: sleeps end when they should */
	if (measure(&t, &r) != 0)
		return 1;
	print_result(&t, &r);
	return 0;
}
