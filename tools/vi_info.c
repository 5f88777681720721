/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vi_info - shows the fabric as a program finds it: hosts, ports, NIC, limits, variables, routes.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info/info.h"
#include "tool_out.h"
#include "u_cfg.h"

#define EXIT_USAGE 2

enum section { SUMMARY, VERBOSE, NAMES, ENV, EXPLAIN, TOPOLOGY };

struct options {
	enum section section;
	bool chosen; /* a section was asked for */
	bool json, sh;
	bool elsewhere;	    /* the agent of that host, or of the default, cannot be asked */
	const char *host;   /* the host whose agent is asked */
	const char *target; /* of --explain, NULL: all */
};

static const char help[] =
	"usage: vi_info [OPTION]...\n\n"
	"Shows what a program would find here: the hosts of the fabric, the ports of this host,\n"
	"the NIC and its limits. Every line is \"key: value\", but for pictures.\n\n"
	"  -v, --verbose          everything, with all attributes of the NIC\n"
	"  -l, --list             names of the hosts only\n"
	"  -e, --env              every VIADUCT_* variable: value, default, origin, meaning\n"
	"      --format=sh        with --env: as commands a shell can read back\n"
	"      --explain[=HOST]   the shortest paths to HOST, or to each host, port by port; why\n"
	"                         there is none; which losses reliable connections survive\n"
	"      --topology         a picture of the hosts and links, which of these are down, and\n"
	"                         the transfer threads; as far as this host knows\n"
	"      --host HOST        ask the agent of HOST instead of VIADUCT_HOST\n"
	"      --json             JSON, of the part asked for or of everything\n"
	"  -h, --help             print this and end\n"
	"  -V, --version          print the version and end\n\n"
	"exit status: 0 done, 1 failure, 2 bad usage\n";

enum { OPT_EXPLAIN = 256, OPT_TOPOLOGY, OPT_HOST, OPT_JSON, OPT_FORMAT };

static const struct option longs[] = {
	{ "verbose", no_argument, NULL, 'v' },
	{ "list", no_argument, NULL, 'l' },
	{ "env", no_argument, NULL, 'e' },
	{ "format", required_argument, NULL, OPT_FORMAT },
	{ "explain", optional_argument, NULL, OPT_EXPLAIN },
	{ "topology", no_argument, NULL, OPT_TOPOLOGY },
	{ "host", required_argument, NULL, OPT_HOST },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static int usage(const char *what, const char *found, const char *right)
{
	fprintf(stderr, "vi_info: %s%s%s%s: %s\n", what, found ? " '" : "", found ? found : "",
		found ? "'" : "", right);
	return EXIT_USAGE;
}

static int choose(struct options *o, enum section s)
{
	if (o->chosen && o->section != s)
		return usage("-v, -l, -e, --explain, --topology", NULL, "give one of them");
	o->section = s;
	o->chosen = true;
	return -1;
}

static int take_format(struct options *o, const char *arg)
{
	if (strcmp(arg, "sh"))
		return usage("--format:", arg, "is not sh, the only format of --env");
	o->sh = true;
	return -1;
}

/* Returns -1 to continue, or the exit code. */
static int take(struct options *o, int c, char **argv)
{
	switch (c) {
	case 'v':
		return choose(o, VERBOSE);
	case 'l':
		return choose(o, NAMES);
	case 'e':
		return choose(o, ENV);
	case OPT_EXPLAIN:
		o->target = optarg;
		return choose(o, EXPLAIN);
	case OPT_TOPOLOGY:
		return choose(o, TOPOLOGY);
	case OPT_HOST:
		o->host = optarg;
		return -1;
	case OPT_JSON:
		o->json = true;
		return -1;
	case OPT_FORMAT:
		return take_format(o, optarg);
	case 'h':
		fputs(help, stdout);
		return EXIT_SUCCESS;
	case 'V':
		puts("vi_info (Viaduct) " VIADUCT_VERSION);
		return EXIT_SUCCESS;
	case ':':
		return usage(argv[optind - 1], NULL, "needs an argument; see --help");
	default:
		return usage("no option", argv[optind - 1], "see --help");
	}
}

static int parse(struct options *o, int argc, char **argv)
{
	int c, rc;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":vlehV", longs, NULL)) != -1) {
		rc = take(o, c, argv);
		if (rc >= 0)
			return rc;
	}
	if (optind < argc && o->section == EXPLAIN && !o->target)
		o->target = argv[optind++]; /* --explain HOST */
	if (optind < argc)
		return usage("no argument", argv[optind], "is taken; see --help");
	if (o->sh && (o->section != ENV || o->json))
		return usage("--format=sh", NULL, "goes with --env, without --json");
	if (o->target && !o->target[0])
		return usage("--explain", NULL, "needs a host name or nothing");
	return -1;
}

/* The sections that other agents can answer, when the host's own is down or silent. */
static int open_elsewhere(struct options *o, struct cl_agent *agent)
{
	char ignored[CL_ERROR_MAX], fabric[64];
	uid_t owner;

	if (o->section == EXPLAIN || w_fabric_parse(u_cfg_str(U_CFG_FABRIC), &owner, fabric) ||
	    cl_open_some(owner, fabric, agent, ignored))
		return EXIT_FAILURE;
	o->elsewhere = true;
	return 0;
}

static int open_agent(struct options *o, struct cl_agent *agent)
{
	char error[CL_ERROR_MAX];
	struct w_name name;
	int rc = cl_open(o->host, W_KIND_TOOL, agent, error);

	if (rc) {
		fprintf(stderr, "vi_info: %s\n", error);
		return rc == -EHOSTDOWN ? open_elsewhere(o, agent) : EXIT_FAILURE;
	}
	if (!o->host)
		return 0;
	if (!cl_name(agent, o->host, 0, &name) &&
	    !memcmp(name.host_addr, agent->welcome.host_addr, W_HOST_ADDR_LEN))
		return 0;
	fprintf(stderr, "vi_info: no host '%s' in fabric %s; vi_info -l lists them\n", o->host,
		agent->welcome.fabric);
	cl_close(agent);
	return EXIT_FAILURE;
}

static json_object *document(void)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "schema", json_object_new_string(INFO_SCHEMA));
	json_object_object_add(o, "schema_version", json_object_new_int(INFO_SCHEMA_VERSION));
	json_object_object_add(o, "version", json_object_new_string(VIADUCT_VERSION));
	return o;
}

/* The sections from the agent and the NIC; if one of them is missing, the command fails. */
static int collect_fabric(const struct options *o, struct cl_agent *agent, json_object *all)
{
	bool everything = o->section == SUMMARY || o->section == VERBOSE;
	json_object *part;

	json_object_object_add(all, "fabric", info_fabric(agent));
	if (everything || o->section == NAMES)
		json_object_object_add(all, "hosts", info_hosts(agent));
	if (everything)
		info_greet_hosts(agent, info_array(all, "hosts"));
	if (everything && !o->elsewhere) {
		json_object_object_add(all, "ports", info_ports(agent));
		json_object_object_add(all, "aliases", info_aliases(agent));
		json_object_object_add(all, "clients", info_list(agent, W_LIST_CLIENTS));
		part = info_nic(o->host);
		json_object_object_add(all, "nic", part);
		if (!part)
			return EXIT_FAILURE;
	}
	if (o->section == EXPLAIN || (everything && o->json && !o->elsewhere)) {
		part = info_explain(agent, o->target);
		json_object_object_add(all, "explain", part);
		if (!part)
			return EXIT_FAILURE;
	}
	if (o->section == TOPOLOGY || (everything && o->json)) {
		part = info_topology(agent);
		json_object_object_add(all, "topology", part);
		if (!part)
			return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

static int collect(struct options *o, json_object *all)
{
	bool everything = o->section == SUMMARY || o->section == VERBOSE, bad = false;
	struct cl_agent agent;
	int rc = EXIT_SUCCESS;

	if (o->section == ENV || (everything && o->json))
		json_object_object_add(all, "environment", info_env(&bad));
	if (o->section == ENV)
		return bad ? EXIT_FAILURE : EXIT_SUCCESS;
	rc = open_agent(o, &agent);
	if (rc)
		return rc;
	rc = collect_fabric(o, &agent, all);
	if (agent.silent)
		rc = EXIT_FAILURE;
	cl_close(&agent);
	return rc;
}

static void print_text(const struct options *o, json_object *all)
{
	switch (o->section) {
	case SUMMARY:
		info_print_summary(all);
		break;
	case VERBOSE:
		info_print_verbose(all);
		break;
	case NAMES:
		info_print_names(info_array(all, "hosts"));
		break;
	case ENV:
		o->sh ? info_print_env_sh(info_array(all, "environment"))
		      : info_print_env(info_array(all, "environment"));
		break;
	case EXPLAIN:
		info_print_explain(info_array(all, "explain"));
		break;
	case TOPOLOGY:
		info_print_topology(json_object_object_get(all, "topology"));
		break;
	}
}

static void print(const struct options *o, json_object *all)
{
	if (o->json)
		puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY |
								 JSON_C_TO_STRING_NOSLASHESCAPE));
	else
		print_text(o, all);
}

static int info_main(int argc, char **argv)
{
	struct options o = { 0 };
	json_object *all;
	int rc = parse(&o, argc, argv);

	if (rc >= 0)
		return rc;
	all = document();
	rc = collect(&o, all);
	if (!rc || o.section == ENV)
		print(&o, all);
	json_object_put(all);
	return o.elsewhere ? EXIT_FAILURE : rc;
}

int main(int argc, char **argv)
{
	tool_out_begin();
	return tool_out_end("vi_info", info_main(argc, argv));
}
