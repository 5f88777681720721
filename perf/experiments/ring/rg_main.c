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
	{ "profile", 0, "NAME",
	  "of the links, or NAME,NAME,... for each, that between hosts\n"
	  "0 and 1 first (default: gen3x8)",
	  AT(profile) },
	{ "first", 0, "N",
	  "E1, E2: number of the first link: 2 H is from host H to the\n"
	  "right, 2 H + 1 to the left (default: 0)",
	  AT(first), .max = RG_LANES_MAX - 1 },
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

/*
 * Returns the profile of the link to the right of a host.  NULL: the option has neither one name nor as many as there
 * are hosts, or this one is no profile.
 */
static const struct port_model_profile *profile_of(const struct rg_task *t, unsigned int host)
{
	const char *at = t->profile;
	char name[PORT_KIND_MAX];
	unsigned int commas = 0;
	size_t n;

	for (const char *c = at; *c != '\0'; c++)
		commas += *c == ',';
	if (commas != 0 && commas + 1 != t->hosts)
		return NULL;
	for (unsigned int i = 0; i < host && commas != 0; i++)
		at = strchr(at, ',') + 1;
	n = strcspn(at, ",");
	if (n >= sizeof(name))
		return NULL;
	memcpy(name, at, n);
	name[n] = '\0';
	return port_model_profile_find(name);
}

/* Does the option name profiles of all links that allow the dilation?  U_OPTION_GO_ON, or the exit status. */
static int check_profiles(const struct rg_task *t)
{
	char names[PORT_MODEL_NAMES_MAX];

	for (unsigned int i = 0; i < t->hosts; i++) {
		const struct port_model_profile *p = profile_of(t, i);

		if (p == NULL)
			return u_option_refuse(
				&tool,
				"--profile '%.40s' is not one of %s, or %u of them with commas between",
				t->profile, port_model_profile_names(names), t->hosts);
		if (t->dilation > port_model_dilation_max(p))
			return u_option_refuse(&tool, "--dilation %u: %s allows up to %u",
					       t->dilation, p->name, port_model_dilation_max(p));
	}
	return U_OPTION_GO_ON;
}

static int parse(struct rg_task *t, int argc, char **argv)
{
	int rc = u_option_parse(&tool, argc, argv, t);

	if (rc != U_OPTION_GO_ON)
		return rc;
	rc = check_profiles(t);
	if (rc != U_OPTION_GO_ON)
		return rc;
	if (t->links + t->first > 2 * t->hosts)
		return u_option_refuse(&tool,
				       "--links %u from %u on: %u hosts have %u, use --hosts",
				       t->links, t->first, t->hosts, 2 * t->hosts);
	if (strcmp(t->experiment, "barrier") == 0 && !t->baseline)
		return u_option_refuse(&tool, "--experiment barrier is of the published protocol: "
					      "add --baseline");
	return U_OPTION_GO_ON;
}

static void show_profile(const struct port_model_profile *p)
{
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
	char kinds[RG_HOSTS_MAX][PORT_KIND_MAX];
	int err;

	for (unsigned int i = 0; i < t->hosts; i++)
		snprintf(kinds[i], sizeof(kinds[i]), "emu+model:%s:%u", profile_of(t, i)->name,
			 t->dilation);
	err = rg_fabric_open(&f, t->hosts, kinds);
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
		show_profile(profile_of(&t, 0));
		return 0;
	}
	prctl(PR_SET_TIMERSLACK, 1UL); /* inherited by all threads: sleeps end when they should */
	if (measure(&t, &r) != 0)
		return 1;
	print_result(&t, &r);
	return 0;
}
