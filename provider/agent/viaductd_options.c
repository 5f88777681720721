/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of viaductd: the table of them, the variables behind them, and the command line. */
#include "viaductd_options.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_agent.h"
#include "port.h"
#include "u_base.h"
#include "u_cfg.h"
#include "u_close.h"
#include "u_cpus.h"
#include "w_addr.h"

static char complaint[VD_COMPLAINT_MAX];

void vd_complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(complaint, sizeof(complaint), fmt, ap);
	va_end(ap);
	fprintf(stderr, "viaductd: %s\n", complaint);
}

const char *vd_complaint(void)
{
	return complaint[0] != '\0' ? complaint : "bad value of a VIADUCT_ variable";
}

struct option_rule {
	const char *name;
	const char *arg; /* as --help shows it; NULL: none */
	const char *help;
	int (*set)(struct vd_options *o, const char *arg);
	/* the values that `set` takes, for the complaint; NULL: `arg` says enough */
	const char *expected;
};

static int number(const char *text, uint64_t max, uint64_t *out)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || errno != 0 || *end != '\0' || v > max)
		return -EINVAL;
	*out = v;
	return 0;
}

static int number32_from(const char *text, uint64_t min, uint64_t max, uint32_t *out)
{
	uint64_t v;

	if (number(text, max, &v) != 0 || v < min)
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

int vd_number32(const char *text, uint64_t max, uint32_t *out)
{
	return number32_from(text, 0, max, out);
}

/* Reads a size that lies within the limits of the variable `id`.  0 or -EINVAL. */
static int size_as(enum u_cfg_id id, const char *text, uint64_t *out)
{
	uint64_t v;

	if (u_cfg_parse_bytes(text, &v) != 0 || v < u_cfg_table[id].min || v > u_cfg_table[id].max)
		return -EINVAL;
	*out = v;
	return 0;
}

int vd_set_fabric(struct vd_options *o, const char *arg)
{
	uid_t owner;
	int rc = w_fabric_parse(arg, &owner, o->fabric);

	return rc == 0 && owner == geteuid() ? 0 : -EINVAL;
}

/*
 * The functions `set` of the table below: each sets an option from its text.  0, or -EINVAL, and then
 * option_refused() writes the complaint.
 */

static int set_host_id(struct vd_options *o, const char *arg)
{
	return vd_number32(arg, AG_HOSTS_MAX - 1, &o->cfg.host_id);
}

static int set_hosts(struct vd_options *o, const char *arg)
{
	o->hosts_given = true;
	return number32_from(arg, 1, AG_HOSTS_MAX, &o->cfg.host_count);
}

static bool name_given(const struct vd_options *o, const char *name)
{
	unsigned int i;

	for (i = 0; i < o->name_count; i++) {
		if (strcmp(o->names[i], name) == 0)
			return true;
	}
	return false;
}

static int set_names(struct vd_options *o, const char *arg)
{
	char *rest = NULL, *name;

	free(o->names_text);
	o->name_count = 0;
	o->names_text = strdup(arg);
	if (o->names_text == NULL)
		return -ENOMEM;
	for (name = strtok_r(o->names_text, ",", &rest); name != NULL;
	     name = strtok_r(NULL, ",", &rest)) {
		if (o->name_count == AG_HOSTS_MAX || !w_name_ok(name))
			return -EINVAL;
		if (name_given(o, name)) {
			vd_complain(
				"--names %.80s: %s is given twice; give every host another name",
				arg, name);
			return -EINVAL;
		}
		o->names[o->name_count++] = name;
	}
	return o->name_count > 0 ? 0 : -EINVAL;
}

static int set_alias(struct vd_options *o, const char *arg)
{
	if (o->alias_count == VD_ALIASES_MAX)
		return -EINVAL;
	o->alias_text[o->alias_count++] = arg;
	return 0;
}

static int set_device(struct vd_options *o, const char *arg)
{
	if (o->device_count == VD_ALIASES_MAX)
		return -EINVAL;
	o->device_text[o->device_count++] = arg;
	return 0;
}

static int set_group(struct vd_options *o, const char *arg)
{
	struct group *entry = getgrnam(arg);
	uint64_t gid;

	if (entry != NULL) {
		o->cfg.group = entry->gr_gid;
		return 0;
	}
	if (number(arg, UINT32_MAX - 1, &gid) != 0)
		return -EINVAL;
	o->cfg.group = (gid_t)gid;
	return 0;
}

static int set_on_demand(struct vd_options *o, const char *arg)
{
	o->cfg.leave_when_idle = true;
	return 0;
}

static int set_grace(struct vd_options *o, const char *arg)
{
	return vd_number32(arg, 3600000, &o->cfg.grace_ms);
}

static int set_window(struct vd_options *o, const char *arg)
{
	return size_as(U_CFG_WINDOW_BYTES, arg, &o->cfg.window_bytes);
}

static int set_doorbells(struct vd_options *o, const char *arg)
{
	return number32_from(arg, 2, PORT_DB_MAX, &o->cfg.db_bits);
}

static int set_scratchpads(struct vd_options *o, const char *arg)
{
	return number32_from(arg, 8, PORT_SPAD_MAX, &o->cfg.spads);
}

static int set_topology(struct vd_options *o, const char *arg)
{
	o->topology_text = arg;
	return 0;
}

static int set_relay_threads(struct vd_options *o, const char *arg)
{
	o->threads_given = true;
	return number32_from(arg, 1, AG_RELAY_THREADS_MAX, &o->cfg.relay_threads);
}

/* The order of the words is that of enum rl_wait. */
static int set_relay_wait(struct vd_options *o, const char *arg)
{
	const char *const *words = u_cfg_table[U_CFG_RELAY_WAIT].words;
	uint32_t i;

	for (i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], arg) == 0) {
			o->cfg.relay_wait = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int set_relay_cpus(struct vd_options *o, const char *arg)
{
	o->relay_cpus_text = arg;
	return arg[0] == '\0' ? -EINVAL
			      : u_cpus_parse(arg, AG_RELAY_CPUS_MAX, o->relay_cpus,
					     &o->cfg.relay_cpu_count);
}

static int set_slots(struct vd_options *o, const char *arg)
{
	return vd_number32(arg, 1u << 20, &o->cfg.slots);
}

static int set_payload(struct vd_options *o, const char *arg)
{
	uint64_t v;
	int rc = size_as(U_CFG_RING_BYTES, arg, &v);

	if (rc == 0)
		o->cfg.payload_bytes = (uint32_t)v;
	return rc;
}

static int set_port(struct vd_options *o, const char *arg)
{
	o->cfg.port_kind = arg;
	return 0;
}

static int set_fault(struct vd_options *o, const char *arg)
{
	o->cfg.fault_options = arg;
	return 0;
}

static int set_seed(struct vd_options *o, const char *arg)
{
	return number(arg, UINT64_MAX, &o->cfg.seed);
}

static int set_no_passrights(struct vd_options *o, const char *arg)
{
	u_rights_forget(true);
	return 0;
}

static int set_check(struct vd_options *o, const char *arg)
{
	o->check = true;
	return 0;
}

static int set_ready_fd(struct vd_options *o, const char *arg)
{
	uint32_t fd;

	if (vd_number32(arg, 1u << 20, &fd) != 0)
		return -EINVAL;
	o->ready_fd = (int)fd;
	return 0;
}

static const struct option_rule rules[] = {
	{ "fabric", "NAME", "fabric to serve (VIADUCT_FABRIC)", vd_set_fabric,
	  "a fabric of the caller's, 1..63 characters of [A-Za-z0-9._-]," },
	{ "host-id", "N", "which host this is, from 0", set_host_id, "0..63" },
	{ "hosts", "N", "hosts of the fabric, 1..64 (1, or as many as SPEC says)", set_hosts,
	  "1..64" },
	{ "topology", "SPEC", "ring, chain, mesh:WxH, torus:WxH, graph:0-1,... or file:PATH",
	  set_topology, NULL },
	{ "names", "A,B,...", "names of the hosts (host0,host1,...)", set_names,
	  "A,B,... of 1..63 characters of [A-Za-z0-9._-] each" },
	{ "alias", "NAME=HOST", "another name of a host; may be repeated", set_alias, NULL },
	{ "device-alias", "DEV=HOST", "device name that opens a host's NIC", set_device, NULL },
	{ "group", "GROUP", "members of the group may use the fabric too", set_group,
	  "the name or number of a group" },
	{ "on-demand", NULL, "leave after the last program with a NIC", set_on_demand, NULL },
	{ "grace-ms", "MS", "... when there was none for so long (2000)", set_grace, "0..3600000" },
	{ "window", "SIZE", "memory window of a port (VIADUCT_WINDOW_BYTES)", set_window,
	  "a size like 64M, from 64k to 1024G," },
	{ "doorbells", "N", "doorbell bits of a port (VIADUCT_DOORBELLS)", set_doorbells, "2..32" },
	{ "scratchpads", "N", "scratchpads of a port (VIADUCT_SCRATCHPADS)", set_scratchpads,
	  "8..64" },
	{ "relay-threads", "N", "transfer threads, 1..8 (VIADUCT_RELAY_THREADS)", set_relay_threads,
	  "1..8" },
	{ "relay-cpus", "LIST", "processors of theirs (VIADUCT_RELAY_CPUS)", set_relay_cpus,
	  "up to 8 processors, as in 2,3 or 2-5," },
	{ "relay-wait", "HOW", "adaptive, poll or block (VIADUCT_RELAY_WAIT)", set_relay_wait,
	  "adaptive, poll or block" },
	{ "slots", "N", "slots of a VI's fifo (VIADUCT_SLOTS)", set_slots, NULL },
	{ "ring-bytes", "SIZE",
	  "payload bytes of a VI's fifo, more over relays (VIADUCT_RING_BYTES)", set_payload,
	  "a power of two from 4k to 64M" },
	{ "port", "KIND", "kind of ports (VIADUCT_PORT)", set_port, NULL },
	{ "fault", "OPTIONS", "faults of ports of kind fault (VIADUCT_FAULT)", set_fault, NULL },
	{ "seed", "N", "seed of strict and fault (VIADUCT_SEED)", set_seed, NULL },
	{ "no-passrights", NULL, "be as on a kernel without SO_PASSRIGHTS, for tests",
	  set_no_passrights, NULL },
	{ "check", NULL, "look at options and variables, start nothing", set_check, NULL },
	{ "ready-fd", "FD", "write one line there when listening, or why not", set_ready_fd, NULL },
	{ "help", NULL, "print this and exit", NULL, NULL },
	{ "version", NULL, "print the version and exit", NULL, NULL },
};
#define RULE_HELP (U_ARRAY_SIZE(rules) - 2)
#define RULE_VERSION (U_ARRAY_SIZE(rules) - 1)

static void help(FILE *to)
{
	size_t i;
	char left[40];

	fprintf(to, "Usage: viaductd [OPTION]...\n"
		    "The agent of one host of a Viaduct fabric.  It stays in the foreground;\n"
		    "libvipl and vi_fabric start it when they need it.\n\n");
	for (i = 0; i < U_ARRAY_SIZE(rules); i++) {
		snprintf(left, sizeof(left), "--%s%s%s", rules[i].name,
			 rules[i].arg != NULL ? " " : "", rules[i].arg != NULL ? rules[i].arg : "");
		fprintf(to, "  %-24s %s\n", left, rules[i].help);
	}
}

/* Sets options by the environment, before the command line overrides them. */
int vd_options_defaults(struct vd_options *o)
{
	memset(o, 0, sizeof(*o));
	o->ready_fd = -1;
	o->cfg.owner = geteuid();
	o->cfg.host_count = 1;
	o->cfg.group = AG_NO_GROUP;
	if (u_cfg_load() != 0)
		return -EINVAL;
	o->cfg.slots = (uint32_t)u_cfg_uint(U_CFG_SLOTS);
	o->cfg.payload_bytes = (uint32_t)u_cfg_uint(U_CFG_RING_BYTES);
	o->cfg.window_bytes = u_cfg_uint(U_CFG_WINDOW_BYTES);
	o->cfg.db_bits = (uint32_t)u_cfg_uint(U_CFG_DOORBELLS);
	o->cfg.spads = (uint32_t)u_cfg_uint(U_CFG_SCRATCHPADS);
	o->cfg.port_kind = u_cfg_str(U_CFG_PORT);
	o->topology_text = u_cfg_str(U_CFG_TOPOLOGY);
	o->cfg.relay_threads = (uint32_t)u_cfg_uint(U_CFG_RELAY_THREADS);
	o->cfg.relay_wait = (uint32_t)u_cfg_uint(U_CFG_RELAY_WAIT);
	o->relay_cpus_text = u_cfg_str(U_CFG_RELAY_CPUS);
	u_cpus_parse(o->relay_cpus_text, AG_RELAY_CPUS_MAX, o->relay_cpus, &o->cfg.relay_cpu_count);
	o->cfg.fault_options = u_cfg_str(U_CFG_FAULT);
	o->cfg.seed = u_cfg_uint(U_CFG_SEED);
	return 0;
}

static void option_refused(const struct option_rule *rule, const char *arg)
{
	if (complaint[0] != '\0')
		return; /* its function has written the complaint */
	vd_complain("--%s %.80s: %s expected; see --help", rule->name, arg,
		    rule->expected != NULL ? rule->expected : rule->arg);
}

/*
 * Writes the complaint about an argument: getopt_long() returned ':' or '?', or -1 before an
 * argument that belongs to no option.
 */
static void argument_refused(int c, char **argv)
{
	if (c == ':')
		vd_complain("%.80s needs an argument; see --help", argv[optind - 1]);
	else if (c == '?' && optopt != 0)
		vd_complain("no option -%c; see --help", optopt);
	else if (c == '?')
		vd_complain("no option %.80s, or not with an argument; see --help",
			    argv[optind - 1]);
	else
		vd_complain("no argument %.80s is taken; see --help", argv[optind]);
}

int vd_options_parse(int argc, char **argv, struct vd_options *o)
{
	struct option longs[U_ARRAY_SIZE(rules) + 1] = { 0 };
	int which, c;
	size_t i;

	for (i = 0; i < U_ARRAY_SIZE(rules); i++) {
		longs[i].name = rules[i].name;
		longs[i].has_arg = rules[i].arg != NULL ? required_argument : no_argument;
	}
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", longs, &which)) == 0) {
		if (which == (int)RULE_HELP) {
			help(stdout);
			exit(EXIT_SUCCESS);
		}
		if (which == (int)RULE_VERSION) {
			printf("viaductd (Viaduct) %s\n", VIADUCT_VERSION);
			exit(EXIT_SUCCESS);
		}
		if (rules[which].set(o, optarg) != 0) {
			option_refused(&rules[which], optarg);
			return -EINVAL;
		}
	}
	if (c != -1 || optind < argc) {
		argument_refused(c, argv);
		return -EINVAL;
	}
	return 0;
}
