/* SPDX-License-Identifier: BSD-2-Clause */
/* ring_port - one measurement of the raw link or of the published protocol; ring_experiments runs it. */
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "port_model.h"
#include "rg.h"

static void print_help(void)
{
	printf("usage: ring_port [OPTION]...\n\n"
	       "Measures once, on emulated hosts whose links have the model of a profile, the raw\n"
	       "link or the published protocol, and prints one JSON object.\n\n"
	       "options:\n"
	       "      --experiment E      E1, E2, E3 or E4 (default: E1)\n"
	       "      --baseline          the published protocol (default: the raw link)\n"
	       "      --hosts N           hosts of the ring, 3 to %u (default: 3)\n"
	       "      --threads N         transfer threads of a host, 1 to %u (default: 1)\n"
	       "      --links N           E1, E2: links in use at once (default: 1)\n"
	       "      --bytes N           of a message, 64 to %llu, a multiple of 64 (default: 65536)\n"
	       "      --count N           messages of each sender (default: 4)\n"
	       "      --profile NAME      of the links (default: gen3x8)\n"
	       "      --dilation N        how many times slower than the profile (default: 1000)\n"
	       "      --show-profile      print the profile and end\n"
	       "  -h, --help              print this and end\n"
	       "  -V, --version           print the version and end\n",
	       RG_HOSTS_MAX, RG_THREADS_MAX, (unsigned long long)RG_BYTES_MAX);
}

enum { EXPERIMENT = 256, BASELINE, HOSTS, THREADS, LINKS, BYTES, COUNT, PROFILE, DILATION, SHOW };

static const struct option options[] = {
	{ "experiment", required_argument, NULL, EXPERIMENT },
	{ "baseline", no_argument, NULL, BASELINE },
	{ "hosts", required_argument, NULL, HOSTS },
	{ "threads", required_argument, NULL, THREADS },
	{ "links", required_argument, NULL, LINKS },
	{ "bytes", required_argument, NULL, BYTES },
	{ "count", required_argument, NULL, COUNT },
	{ "profile", required_argument, NULL, PROFILE },
	{ "dilation", required_argument, NULL, DILATION },
	{ "show-profile", no_argument, NULL, SHOW },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static bool number_ok(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	char *end;
	unsigned long long v;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno != 0 || *end != '\0' || v < least || v > most)
		return false;
	*out = v;
	return true;
}

static int number(const char *name, const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	if (number_ok(text, least, most, out))
		return 0;
	ring_print_error("--%s %.40s: a number from %llu to %llu is expected; see ring_port --help",
			 name, text, (unsigned long long)least, (unsigned long long)most);
	return -EINVAL;
}

static int small(const char *name, unsigned int least, unsigned int most, unsigned int *out)
{
	uint64_t v = 0;
	int err = number(name, optarg, least, most, &v);

	if (err == 0)
		*out = (unsigned int)v;
	return err;
}

static int set_option(struct rg_task *t, int option)
{
	switch (option) {
	case EXPERIMENT:
		t->experiment = optarg;
		return 0;
	case BASELINE:
		t->baseline = true;
		return 0;
	case HOSTS:
		return small("hosts", 3, RG_HOSTS_MAX, &t->hosts);
	case THREADS:
		return small("threads", 1, RG_THREADS_MAX, &t->threads);
	case LINKS:
		return small("links", 1, RG_LANES_MAX, &t->links);
	case BYTES:
		return number("bytes", optarg, 64, RG_BYTES_MAX, &t->bytes);
	case COUNT:
		return number("count", optarg, 1, 1000000, &t->count);
	case PROFILE:
		t->profile = optarg;
		return 0;
	case DILATION:
		return small("dilation", 1, PORT_MODEL_DILATION_MAX, &t->dilation);
	default:
		return -EINVAL;
	}
}

static int check(struct rg_task *t)
{
	static const char *const known[] = { "E1", "E2", "E3", "E4" };
	size_t i;

	for (i = 0; i < U_ARRAY_SIZE(known) && strcmp(t->experiment, known[i]) != 0; i++)
		;
	if (i == U_ARRAY_SIZE(known))
		ring_print_error("--experiment %.40s: E1, E2, E3 or E4 is expected", t->experiment);
	else if (port_model_profile_find(t->profile) == NULL)
		ring_print_error("--profile %.40s: gen3x8 is expected", t->profile);
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
	puts(json_object_to_json_string(o));
	json_object_put(o);
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
	json_object *o = json_object_new_object();

	json_object_object_add(o, "experiment", json_object_new_string(t->experiment));
	json_object_object_add(o, "kind", json_object_new_string(t->baseline ? "baseline" : "raw"));
	json_object_object_add(o, "hosts", json_object_new_int64(t->hosts));
	json_object_object_add(o, "threads", json_object_new_int64(t->threads));
	json_object_object_add(o, "links", json_object_new_int64(t->links));
	json_object_object_add(o, "bytes", json_object_new_int64((int64_t)t->bytes));
	json_object_object_add(o, "value", json_object_new_double(r->value));
	json_object_object_add(o, "unit", json_object_new_string(r->unit));
	if (r->rate != 0)
		json_object_object_add(o, "rate", json_object_new_double(r->rate));
	if (r->split.data != 0)
		add_split(o, &r->split);
	puts(json_object_to_json_string(o));
	json_object_put(o);
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
	if (strcmp(t->experiment, "E3") >= 0 && t->baseline)
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
	bool show = false;
	int option;

	while ((option = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
		if (option == 'h') {
			print_help();
			return 0;
		}
		if (option == 'V') {
			puts("ring_port " VIADUCT_VERSION);
			return 0;
		}
		if (option == SHOW)
			show = true;
		else if (set_option(&t, option) != 0)
			return 2;
	}
	if (optind < argc) {
		ring_print_error("no argument '%.40s' is known; see ring_port --help",
				 argv[optind]);
		return 2;
	}
	if (check(&t) != 0)
		return 2;
	if (show) {
		show_profile(t.profile);
		return 0;
	}
	prctl(PR_SET_TIMERSLACK, 1UL); /* inherited by all threads: sleeps end when they should */
	if (measure(&t, &r) != 0)
		return 1;
	print_result(&t, &r);
	return 0;
}
