/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vi_info - shows the fabric as a program finds it: hosts, ports, NIC, limits, variables, routes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "info/info.h"
#include "tool_out.h"
#include "u_cfg.h"
#include "u_option.h"

enum section { SUMMARY, VERBOSE, NAMES, ENV, EXPLAIN, TOPOLOGY, PLACEMENT };

struct options {
	enum section section;
	bool wanted[PLACEMENT + 1]; /* by section */
	bool json;
	bool elsewhere;	    /* the agent of that host, or of the default, cannot be asked */
	const char *format; /* NULL: as for people */
	const char *host;   /* the host whose agent is asked */
	const char *target; /* of --explain, "": all; NULL: not asked for */
};

#define AT(field) U_OPTION_AT(struct options, field)

static const char *const formats[] = { "sh", NULL };

static const struct u_option options[] = {
	{ "verbose", 'v', NULL, "every host, port and program, and all limits of the NIC",
	  AT(wanted[VERBOSE]) },
	{ "list", 'l', NULL, "names of the hosts only", AT(wanted[NAMES]) },
	{ "env", 'e', NULL, "every VIADUCT_* variable: value, default, origin, meaning",
	  AT(wanted[ENV]) },
	{ "format", 0, "=sh", "with --env: as commands a shell can read back", AT(format),
	  .words = formats },
	{ "explain", 0, "[=HOST]",
	  "the shortest paths to HOST, or to each host, port by port; why\n"
	  "there is none; which losses reliable connections survive",
	  AT(target), .min = 1, .expected = "a host name" },
	{ "topology", 0, NULL,
	  "a picture of the hosts and links, which of these are down, and\n"
	  "the transfer threads; as far as this host knows",
	  AT(wanted[TOPOLOGY]) },
	{ "placement", 0, NULL,
	  "the processors that the threads of a program would get here, and\n"
	  "those of the agent's threads: what was asked, what was got, why",
	  AT(wanted[PLACEMENT]) },
	{ "host", 0, "HOST", "ask the agent of HOST instead of VIADUCT_HOST", AT(host) },
	{ "json", 0, NULL, "JSON, of the part asked for or of everything", AT(json) },
	U_OPTION_LAST('h', 'V')
};

static const struct u_option_tool tool = {
	.name = "vi_info",
	.head = "usage: vi_info [OPTION]...\n\n"
		"Shows what a program would find here: a picture of the hosts and their links, whether\n"
		"these are emulated, this host, those that it can reach, and the NIC. Every line is\n"
		"\"key: value\", but for pictures.\n\n",
	.options = options,
	.tail = "\nexit status: 0 done, 1 failure, 2 bad usage\n",
	.operands = 1, /* --explain HOST */
};

static int parse(struct options *o, int argc, char **argv)
{
	int rc = u_option_parse(&tool, argc, argv, o), i, asked = 0;

	if (rc != U_OPTION_GO_ON)
		return rc;
	o->wanted[EXPLAIN] = o->target != NULL;
	for (i = 0; i <= PLACEMENT; i++) {
		asked += o->wanted[i];
		o->section = o->wanted[i] ? (enum section)i : o->section;
	}
	if (asked > 1)
		return u_option_refuse(
			&tool, "of -v, -l, -e, --explain, --topology, --placement give one");
	if (optind < argc && (o->target == NULL || *o->target != '\0' || *argv[optind] == '\0'))
		return u_option_refuse(&tool, "no argument '%.80s' is known; see --help",
				       argv[optind]);
	if (optind < argc)
		o->target = argv[optind];
	if (o->format != NULL && (o->section != ENV || o->json))
		return u_option_refuse(&tool, "--format=sh goes with --env, without --json");
	return U_OPTION_GO_ON;
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
	if (o->section == VERBOSE || (everything && o->json)) /* info_topology() asks them, too */
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
		part = info_explain(agent, o->target && o->target[0] ? o->target : NULL);
		json_object_object_add(all, "explain", part);
		if (!part)
			return EXIT_FAILURE;
	}
	if (o->section == TOPOLOGY || o->section == SUMMARY || (everything && o->json)) {
		part = info_topology(agent);
		json_object_object_add(all, "topology", part);
		if (!part)
			return EXIT_FAILURE;
	}
	if (o->section == PLACEMENT || (everything && o->json)) {
		part = info_placement(agent);
		json_object_object_add(all, "placement", part);
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
		o->format ? info_print_env_sh(info_array(all, "environment"))
			  : info_print_env(info_array(all, "environment"));
		break;
	case EXPLAIN:
		info_print_explain(info_array(all, "explain"));
		break;
	case TOPOLOGY:
		info_print_topology(json_object_object_get(all, "topology"));
		break;
	case PLACEMENT:
		info_print_placement(json_object_object_get(all, "placement"));
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
