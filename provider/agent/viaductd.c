/* SPDX-License-Identifier: BSD-2-Clause */
/* viaductd: the agent of one host as a program. */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ag_agent.h"
#include "port.h"
#include "port_fault.h"
#include "port_fault_opt.h"
#include "rt_load.h"
#include "u_base.h"
#include "u_cfg.h"
#include "u_close.h"
#include "u_cpus.h"
#include "u_fd.h"
#include "u_log.h"
#include "w_addr.h"
#include "w_slot.h"

#define ALIASES_MAX 256u
#define FDS_PORT 8u   /* descriptors that a port takes while its link is set up, at most */
#define FDS_LEAST 16u /* and beside the ports; the first clients are among them */

enum { EXIT_OK = 0, EXIT_FAIL = 1, EXIT_USAGE = 2 };

struct options {
	struct ag_cfg cfg;
	char fabric[64];
	char *names_text; /* what `names` points into */
	char *names[AG_HOSTS_MAX];
	unsigned int name_count;
	struct ag_alias aliases[ALIASES_MAX], devices[ALIASES_MAX];
	const char *alias_text[ALIASES_MAX], *device_text[ALIASES_MAX];
	unsigned int alias_count, device_count;
	const char *topology_text, *relay_cpus_text;
	bool hosts_given, threads_given;
	struct rt_topo *topology;
	int relay_cpus[AG_RELAY_CPUS_MAX];
	int ready_fd;
	bool check;	   /* look at options and variables only */
	bool bad_variable; /* what is refused is the environment's, not an option's */
};

/* The last complaint, for whoever waits at the ready descriptor. */
static char complaint[320];

static void U_PRINTF(1, 2) complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(complaint, sizeof(complaint), fmt, ap);
	va_end(ap);
	fprintf(stderr, "viaductd: %s\n", complaint);
}

struct option_rule {
	const char *name;
	const char *arg; /* as --help shows it; NULL: none */
	const char *help;
	int (*set)(struct options *o, const char *arg);
	const char *expected; /* by a complaint; NULL: `arg` says enough */
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

static int number32(const char *text, uint64_t max, uint32_t *out)
{
	return number32_from(text, 0, max, out);
}

/* A size within what the variable of the same meaning may hold. */
static int size_as(enum u_cfg_id id, const char *text, uint64_t *out)
{
	uint64_t v;

	if (u_cfg_parse_bytes(text, &v) != 0 || v < u_cfg_table[id].min || v > u_cfg_table[id].max)
		return -EINVAL;
	*out = v;
	return 0;
}

static int set_fabric(struct options *o, const char *arg)
{
	uid_t owner;
	int rc = w_fabric_parse(arg, &owner, o->fabric);

	return rc == 0 && owner == geteuid() ? 0 : -EINVAL;
}

static int set_host_id(struct options *o, const char *arg)
{
	return number32(arg, AG_HOSTS_MAX - 1, &o->cfg.host_id);
}

static int set_hosts(struct options *o, const char *arg)
{
	o->hosts_given = true;
	return number32_from(arg, 1, AG_HOSTS_MAX, &o->cfg.host_count);
}

static bool name_given(const struct options *o, const char *name)
{
	unsigned int i;

	for (i = 0; i < o->name_count; i++) {
		if (strcmp(o->names[i], name) == 0)
			return true;
	}
	return false;
}

static int set_names(struct options *o, const char *arg)
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
			complain("--names %.80s: %s is given twice; give every host another name",
				 arg, name);
			return -EINVAL;
		}
		o->names[o->name_count++] = name;
	}
	return o->name_count > 0 ? 0 : -EINVAL;
}

static int set_alias(struct options *o, const char *arg)
{
	if (o->alias_count == ALIASES_MAX)
		return -EINVAL;
	o->alias_text[o->alias_count++] = arg;
	return 0;
}

static int set_device(struct options *o, const char *arg)
{
	if (o->device_count == ALIASES_MAX)
		return -EINVAL;
	o->device_text[o->device_count++] = arg;
	return 0;
}

static int set_group(struct options *o, const char *arg)
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

static int set_on_demand(struct options *o, const char *arg)
{
	o->cfg.leave_when_idle = true;
	return 0;
}

static int set_grace(struct options *o, const char *arg)
{
	return number32(arg, 3600000, &o->cfg.grace_ms);
}

static int set_window(struct options *o, const char *arg)
{
	return size_as(U_CFG_WINDOW_BYTES, arg, &o->cfg.window_bytes);
}

static int set_doorbells(struct options *o, const char *arg)
{
	return number32_from(arg, 2, PORT_DB_MAX, &o->cfg.db_bits);
}

static int set_scratchpads(struct options *o, const char *arg)
{
	return number32_from(arg, 8, PORT_SPAD_MAX, &o->cfg.spads);
}

static int set_topology(struct options *o, const char *arg)
{
	o->topology_text = arg;
	return 0;
}

static int set_relay_threads(struct options *o, const char *arg)
{
	o->threads_given = true;
	return number32_from(arg, 1, AG_RELAY_THREADS_MAX, &o->cfg.relay_threads);
}

/* The order of the words is that of enum rl_wait. */
static int set_relay_wait(struct options *o, const char *arg)
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

static int set_relay_cpus(struct options *o, const char *arg)
{
	o->relay_cpus_text = arg;
	return arg[0] == '\0' ? -EINVAL
			      : u_cpus_parse(arg, AG_RELAY_CPUS_MAX, o->relay_cpus,
					     &o->cfg.relay_cpu_count);
}

static int set_slots(struct options *o, const char *arg)
{
	return number32(arg, 1u << 20, &o->cfg.slots);
}

static int set_payload(struct options *o, const char *arg)
{
	uint64_t v;
	int rc = size_as(U_CFG_RING_BYTES, arg, &v);

	if (rc == 0)
		o->cfg.payload_bytes = (uint32_t)v;
	return rc;
}

static int set_port(struct options *o, const char *arg)
{
	o->cfg.port_kind = arg;
	return 0;
}

static int set_fault(struct options *o, const char *arg)
{
	o->cfg.fault_options = arg;
	return 0;
}

static int set_seed(struct options *o, const char *arg)
{
	return number(arg, UINT64_MAX, &o->cfg.seed);
}

static int set_no_passrights(struct options *o, const char *arg)
{
	u_rights_forget(true);
	return 0;
}

static int set_check(struct options *o, const char *arg)
{
	o->check = true;
	return 0;
}

static int set_ready_fd(struct options *o, const char *arg)
{
	uint32_t fd;

	if (number32(arg, 1u << 20, &fd) != 0)
		return -EINVAL;
	o->ready_fd = (int)fd;
	return 0;
}

static const struct option_rule rules[] = {
	{ "fabric", "NAME", "fabric to serve (VIADUCT_FABRIC)", set_fabric,
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

static _Atomic(struct ag_agent *) running;

static void on_signal(int sig)
{
	struct ag_agent *a = running;
	int saved = errno;

	if (a != NULL)
		ag_stop(a);
	errno = saved;
}

/* Ends the wait of a thread that closes something; see u_close.h. */
static void on_nudge(int sig) {}

static void signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	sigset_t none;

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sa.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	sa.sa_handler = on_nudge;
	sigaction(SIGURG, &sa, NULL);
	u_close_signal(SIGURG);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * An agent that a set-user-ID program started has that program's effective user, whose fabric it is, and the real user
 * of whoever called it, who could stop it then.  It takes the owner's alone, and does so here rather than before it is
 * executed: so neither the loader nor this program believes the caller's environment.
 */
static int one_user(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (uid == getuid() && gid == getgid())
		return 0;
	if (uid == 0 && setgroups(0, NULL) != 0)
		return -errno;
	if (setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
		return -errno;
	return 0;
}

static void descriptors(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

static void ready(struct options *o, const char *line)
{
	ssize_t n;

	if (o->ready_fd < 0)
		return;
	n = write(o->ready_fd, line, strlen(line));
	(void)n; /* whoever started us may be gone */
	close(o->ready_fd);
	o->ready_fd = -1;
}

/* What the environment says, before options override it. */
static int defaults(struct options *o)
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
		return; /* the option knew better */
	complain("--%s %.80s: %s expected; see --help", rule->name, arg,
		 rule->expected != NULL ? rule->expected : rule->arg);
}

/* What getopt_long() answered with ':' or '?', or -1 before an argument that is no option's. */
static void argument_refused(int c, char **argv)
{
	if (c == ':')
		complain("%.80s needs an argument; see --help", argv[optind - 1]);
	else if (c == '?' && optopt != 0)
		complain("no option -%c; see --help", optopt);
	else if (c == '?')
		complain("no option %.80s, or not with an argument; see --help", argv[optind - 1]);
	else
		complain("no argument %.80s is taken; see --help", argv[optind]);
}

static int parse(int argc, char **argv, struct options *o)
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
			exit(EXIT_OK);
		}
		if (which == (int)RULE_VERSION) {
			printf("viaductd (Viaduct) %s\n", VIADUCT_VERSION);
			exit(EXIT_OK);
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

static int host_named(const struct options *o, const char *text, uint32_t *out)
{
	char standard[16];
	uint32_t i;

	for (i = 0; i < o->cfg.host_count; i++) {
		snprintf(standard, sizeof(standard), "host%u", i);
		if (strcmp(o->name_count > 0 ? o->names[i] : standard, text) == 0) {
			*out = i;
			return 0;
		}
	}
	return number32(text, o->cfg.host_count - 1, out);
}

/* Device names may be paths, but nothing that lists and JSON give a meaning. */
static int device_ok(const char *name)
{
	size_t i;

	for (i = 0; name[i] != '\0'; i++) {
		if (name[i] <= ' ' || name[i] > '~' || strchr("\"\\=,", name[i]) != NULL)
			return 0;
	}
	return i > 0;
}

/* Turns NAME=HOST into a pair. */
static int alias_resolve(const struct options *o, const char *option, const char *text,
			 int (*name_ok)(const char *name), struct ag_alias *out)
{
	const char *eq = strrchr(text, '=');
	struct ag_alias alias = { .host = 0 };

	if (eq != NULL && (size_t)(eq - text) < sizeof(alias.name))
		memcpy(alias.name, text, (size_t)(eq - text));
	if (!name_ok(alias.name)) {
		complain("%s %.80s: NAME=HOST expected, NAME of 1..63 characters", option, text);
		return -EINVAL;
	}
	if (host_named(o, eq + 1, &alias.host) != 0) {
		complain("%s %.80s: NAME=HOST expected, HOST one of the %u hosts of the fabric",
			 option, text, o->cfg.host_count);
		return -EINVAL;
	}
	*out = alias;
	return 0;
}

static int aliases_resolve(struct options *o)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; rc == 0 && i < o->alias_count; i++)
		rc = alias_resolve(o, "--alias", o->alias_text[i], w_name_ok, &o->aliases[i]);
	for (i = 0; rc == 0 && i < o->device_count; i++)
		rc = alias_resolve(o, "--device-alias", o->device_text[i], device_ok,
				   &o->devices[i]);
	return rc;
}

/* Both may come from the environment or from an option: the complaint says which. */
static int port_check(struct options *o)
{
	bool from_env = o->cfg.port_kind == u_cfg_str(U_CFG_PORT);
	struct fault_options ignored;

	if (port_kind_check(o->cfg.port_kind) != 0) {
		o->bad_variable = from_env;
		complain("%s %.40s: emu, emu+strict, emu+fault, emu+model[:PROFILE[:DILATION]] or "
			 "several of these words expected; correct %s",
			 from_env ? "VIADUCT_PORT is" : "--port", o->cfg.port_kind,
			 from_env ? "or unset it" : "it or leave it out");
		return -EINVAL;
	}
	if (fault_parse(o->cfg.fault_options, &ignored) != 0) {
		o->bad_variable = o->cfg.fault_options == u_cfg_str(U_CFG_FAULT);
		complain("%s %.40s: drop_db=P, spurious_db=P, down_after=N, down_ms=N, torn=P "
			 "expected, P from 0 to 1; correct it or leave it out",
			 o->bad_variable ? "VIADUCT_FAULT is" : "--fault", o->cfg.fault_options);
		return -EINVAL;
	}
	return 0;
}

static int topology_resolve(struct options *o)
{
	bool from_env = o->topology_text == u_cfg_str(U_CFG_TOPOLOGY);
	struct rt_size hosts = { o->hosts_given ? o->cfg.host_count : 0, 1, AG_HOSTS_MAX };
	char why[sizeof(complaint) - 32];

	/* An agent that somebody's program starts serves a fabric of one host. */
	if (from_env && o->cfg.leave_when_idle && !o->hosts_given)
		return 0;
	if (rt_load(o->topology_text, hosts, &o->topology, why, sizeof(why)) != 0) {
		o->bad_variable = from_env && u_cfg_origin(U_CFG_TOPOLOGY) == U_CFG_FROM_ENV;
		complain("%s%s", o->bad_variable ? "VIADUCT_TOPOLOGY: " : "", why);
		return -EINVAL;
	}
	o->cfg.host_count = rt_hosts(o->topology);
	o->cfg.topology = rt_topo_spec(o->topology);
	return 0;
}

static int relay_threads_check(struct options *o)
{
	uint32_t most = o->cfg.db_bits - AG_DB_BITS_RESERVED;

	if (o->cfg.relay_threads <= most)
		return 0;
	o->bad_variable = !o->threads_given;
	complain("%u transfer threads want a doorbell bit each, and of %u bits %u are left for "
		 "them; use fewer %s or more with --doorbells",
		 o->cfg.relay_threads, o->cfg.db_bits, most,
		 o->threads_given ? "with --relay-threads" : "in VIADUCT_RELAY_THREADS");
	return -EINVAL;
}

/* Threads run on what they are told to or not at all. */
static int relay_cpus_check(struct options *o)
{
	cpu_set_t set;
	uint32_t i;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 0;
	for (i = 0; i < o->cfg.relay_cpu_count; i++) {
		if (CPU_ISSET((size_t)o->relay_cpus[i], &set))
			continue;
		o->bad_variable = o->relay_cpus_text == u_cfg_str(U_CFG_RELAY_CPUS);
		complain("%s %.40s: processor %d is none of the %d that may be used here; name "
			 "others (taskset -cp $$ lists them)",
			 o->bad_variable ? "VIADUCT_RELAY_CPUS is" : "--relay-cpus",
			 o->relay_cpus_text, o->relay_cpus[i], CPU_COUNT(&set));
		return -EINVAL;
	}
	o->cfg.relay_cpus = o->relay_cpus;
	return 0;
}

/*
 * One that has none left when its links are up could serve nobody, nor be asked to stop: it had better
 * not begin.
 */
static int descriptors_check(struct options *o)
{
	unsigned int ports = o->topology != NULL ? rt_topo_ports(o->topology, o->cfg.host_id) : 1;
	uint64_t least = FDS_LEAST + (uint64_t)ports * FDS_PORT;
	char text[U_FD_ERROR];

	if (!u_fd_scarce(least))
		return 0;
	o->bad_variable = true;
	complain("agent of host %u of fabric %s needs %llu file descriptors to begin with: %s",
		 o->cfg.host_id, o->fabric, (unsigned long long)least, u_fd_error(EMFILE, text));
	return -EINVAL;
}

static int finish(struct options *o)
{
	if (topology_resolve(o) != 0)
		return -EINVAL;
	if (o->fabric[0] == '\0' && set_fabric(o, u_cfg_str(U_CFG_FABRIC)) != 0) {
		complain("fabric %.80s is not the caller's own", u_cfg_str(U_CFG_FABRIC));
		return -EINVAL;
	}
	if (o->name_count > 0 && o->name_count != o->cfg.host_count) {
		complain("--names: %u names for %u hosts; give one name for each", o->name_count,
			 o->cfg.host_count);
		return -EINVAL;
	}
	if (!w_geometry_ok(o->cfg.slots, o->cfg.payload_bytes)) {
		complain("--slots %u, --ring-bytes %u: powers of two expected, 8..4096 and 4k..64M",
			 o->cfg.slots, o->cfg.payload_bytes);
		return -EINVAL;
	}
	if (o->cfg.host_id >= o->cfg.host_count) {
		complain("--host-id %u: 0..%u expected in a fabric of %u host%s", o->cfg.host_id,
			 o->cfg.host_count - 1, o->cfg.host_count,
			 o->cfg.host_count == 1 ? "; say --hosts" : "s");
		return -EINVAL;
	}
	if (aliases_resolve(o) != 0 || port_check(o) != 0 || relay_threads_check(o) != 0 ||
	    relay_cpus_check(o) != 0 || descriptors_check(o) != 0)
		return -EINVAL;
	o->cfg.fabric = o->fabric;
	o->cfg.host_names = o->name_count > 0 ? (const char *const *)o->names : NULL;
	o->cfg.aliases = o->aliases;
	o->cfg.alias_count = o->alias_count;
	o->cfg.devices = o->devices;
	o->cfg.device_count = o->device_count;
	return 0;
}

static int serve(struct options *o)
{
	char text[U_FD_ERROR];
	struct ag_agent *a;
	int rc;

	rc = ag_create(&o->cfg, &a);
	if (rc == -EADDRINUSE) {
		ready(o, "exists\n");
		if (o->cfg.leave_when_idle)
			return EXIT_OK;
		complain("host %u of fabric %s has an agent already", o->cfg.host_id, o->fabric);
		return EXIT_FAIL;
	}
	if (rc != 0) {
		complain("agent of host %u of fabric %s cannot start: %s", o->cfg.host_id,
			 o->fabric, u_fd_error(-rc, text));
		ready(o, complaint);
		return EXIT_FAIL;
	}
	running = a;
	ready(o, "ready\n");
	rc = ag_run(a);
	running = NULL;
	ag_destroy(a);
	return rc == 0 ? EXIT_OK : EXIT_FAIL;
}

int main(int argc, char **argv)
{
	static struct options o;

	if (one_user() != 0) {
		fprintf(stderr, "viaductd: cannot become one user: %s\n", strerror(errno));
		return EXIT_FAIL;
	}
	signals();
	descriptors();
	if (defaults(&o) != 0 || parse(argc, argv, &o) != 0 || finish(&o) != 0) {
		ready(&o, complaint[0] != '\0' ? complaint : "bad value of a VIADUCT_ variable");
		return o.bad_variable ? EXIT_FAIL : EXIT_USAGE;
	}
	if (o.check) {
		ready(&o, "ready\n");
		return EXIT_OK;
	}
	return serve(&o);
}
