/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_fabric: starts and stops emulated hosts and their links, shows them and changes them. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "fabric/fab.h"
#include "fabric/fab_change.h"
#include "fabric/fab_say.h"
#include "fabric/fab_start.h"
#include "fabric/fab_up.h"
#include "tool_out.h"
#include "u_base.h"
#include "u_cfg.h"
#include "u_option.h"

struct command_line {
	struct fabric fabric;
	const char *fabric_text;
	struct fab_up_args up;
	bool json;
};

/* An option that viaductd gets, which checks it. */
static int pass_on(void *into, const struct u_option *o, const char *arg)
{
	struct fab_up_args *up = &((struct command_line *)into)->up;
	char *text;

	if (up->count == FAB_ARGS_MAX)
		return -ENOSPC;
	if (asprintf(&text, "--%s=%s", o->name, arg) < 0)
		return -ENOMEM;
	up->v[up->count++] = text;
	return 0;
}

#define AT(field) U_OPTION_AT(struct command_line, field)

static const struct u_option options[] = {
	{ "hosts", 0, "N", "hosts, 1..64 (2, or as many as the topology asks for)", AT(up.hosts),
	  .min = 1, .max = CL_HOSTS_MAX },
	{ "topology", 0, "SPEC",
	  "links between them (VIADUCT_TOPOLOGY, ring):\n"
	  "  ring, chain, mesh:WxH, torus:WxH;\n"
	  "  graph:0-1,1-2,... with hosts by their numbers;\n"
	  "  file:PATH with a link A-B on each line, # comments",
	  AT(up.topology), .min = 1,
	  .expected = "ring, chain, mesh:WxH, torus:WxH, graph:A-B,C-D or file:PATH" },
	{ "names", 0, "A,B,...", "their names (host0,host1,...)", .call = pass_on },
	{ "alias", 0, "NAME=HOST", "another name of a host; may be repeated", .call = pass_on },
	{ "device-alias", 0, "DEV=HOST", "device name that opens a host's NIC; may be repeated",
	  .call = pass_on },
	{ "group", 0, "GROUP", "members of the group may use the fabric too", .call = pass_on },
	{ "window", 0, "SIZE", "memory window of a port, e.g. 64M (VIADUCT_WINDOW_BYTES)",
	  .call = pass_on },
	{ "doorbells", 0, "N", "doorbell bits of a port, 2..32 (VIADUCT_DOORBELLS)",
	  .call = pass_on },
	{ "scratchpads", 0, "N", "scratchpads of a port, 8..64 (VIADUCT_SCRATCHPADS)",
	  .call = pass_on },
	{ "port", 0, "KIND", "emu or cdev, with +strict, +fault and +model (VIADUCT_PORT)",
	  .call = pass_on },
	{ "profiles", 0, "LIST",
	  "adapters that models imitate: A-B=PROFILE,... for links,\n"
	  "A.PORT=PROFILE for one end (VIADUCT_PROFILES)",
	  .call = pass_on },
	{ "relay-threads", 0, "N",
	  "transfer threads of an agent that relays, 1..8\n(VIADUCT_RELAY_THREADS)",
	  .call = pass_on },
	{ "relay-cpus", 0, "LIST",
	  "processors they run on in turn, e.g. 2,3 or 2-5\n(VIADUCT_RELAY_CPUS)",
	  .call = pass_on },
	{ "relay-wait", 0, "HOW", "adaptive, poll or block (VIADUCT_RELAY_WAIT)", .call = pass_on },
	{ "foreground", 0, NULL, "stay, and take the fabric down at SIGINT or SIGTERM",
	  AT(up.foreground) },
	{ NULL, .help = "\nOptions of all commands:" },
	{ "name", 0, "NAME", "the fabric (VIADUCT_FABRIC)", AT(fabric_text) },
	{ "json", 0, NULL, "status: as one JSON object", AT(json) },
	U_OPTION_LAST(0, 0)
};

static const struct u_option_tool tool = {
	.name = "vi_fabric",
	.head = "Usage: vi_fabric COMMAND [ARGUMENT]... [OPTION]...\n"
		"Brings a fabric of emulated hosts up and down, shows it and changes it.\n"
		"\n"
		"Commands:\n"
		"  up                      start the agents of its hosts, wait for their links\n"
		"  down                    stop the agents, wait until they have ended\n"
		"  status                  hosts, ports and links, processes, relayed packets\n"
		"  start HOST              start the agent of one host again, like the others\n"
		"  stop HOST               stop the agent of one host\n"
		"  link HOST PORT up|down  take one end of a link up or down (PORT: left, right, up,\n"
		"                          down; to3 and the like in a graph; status lists them)\n"
		"  alias NAME=HOST         give a host another name\n"
		"  device DEV=HOST         let a device name open the NIC of a host\n"
		"\n"
		"Options of up:\n",
	.options = options,
	.tail = "\nExit status: 0 done, 1 failed, 2 wrong usage.\n",
	.operands = INT_MAX, /* run() counts them */
};

static int cmd_up(const struct fabric *f, const struct fab_up_args *asked)
{
	int rc = fab_up(f, asked);

	if (rc != EXIT_OK || !asked->foreground)
		return rc;
	tool_out_flush();
	return fab_stay(f);
}

/* Exit status 0 only when every agent answers and every link is up. */
static int cmd_status(const struct fabric *f, bool json)
{
	char error[CL_ERROR_MAX];
	struct json_object *status = fab_status(f, error);
	bool up;

	if (status == NULL)
		return fab_fail("%s", error);
	up = fab_status_print(status, json);
	json_object_put(status);
	return up ? EXIT_OK : EXIT_FAIL;
}

static int run(struct command_line *cl, int argc, char **argv)
{
	static const struct {
		const char *name;
		int args;
	} commands[] = { { "up", 0 },	 { "down", 0 },	  { "status", 0 }, { "link", 3 },
			 { "alias", 1 }, { "device", 1 }, { "start", 1 },  { "stop", 1 } };
	const struct fab_up_args *up = &cl->up;
	size_t i;

	for (i = 0; argc > 0 && i < U_ARRAY_SIZE(commands); i++) {
		if (strcmp(argv[0], commands[i].name) == 0)
			break;
	}
	if (argc == 0 || i == U_ARRAY_SIZE(commands))
		return fab_usage(argc == 0 ? "a command is expected" : "no command %s", argv[0]);
	if (argc - 1 != commands[i].args)
		return fab_usage("%s takes %d argument%s, found %d", argv[0], commands[i].args,
				 commands[i].args == 1 ? "" : "s", argc - 1);
	if ((i != 0 &&
	     (up->hosts != 0 || up->topology != NULL || up->foreground || up->count > 0)) ||
	    (cl->json && i != 2))
		return fab_usage("an option is not one of %s's", argv[0]);
	switch (i) {
	case 0:
		return cmd_up(&cl->fabric, &cl->up);
	case 1:
		return fab_down(&cl->fabric);
	case 2:
		return cmd_status(&cl->fabric, cl->json);
	case 3:
		return fab_link(&cl->fabric, argv + 1);
	case 6:
		return fab_start(&cl->fabric, argv[1]);
	case 7:
		return fab_stop(&cl->fabric, argv[1]);
	default:
		return fab_name(&cl->fabric, i == 4 ? W_ADMIN_ALIAS : W_ADMIN_DEVICE, argv[1]);
	}
}

static int fabric_main(int argc, char **argv)
{
	static struct command_line cl;
	int rc = u_option_parse(&tool, argc, argv, &cl);

	if (rc != U_OPTION_GO_ON)
		return rc;
	if (u_cfg_load() != 0)
		return EXIT_FAIL;
	if (cl.fabric_text == NULL)
		cl.fabric_text = u_cfg_str(U_CFG_FABRIC);
	rc = w_fabric_parse(cl.fabric_text, &cl.fabric.owner, cl.fabric.name);
	if (rc == -ENOENT)
		return fab_usage("fabric %s: there is no user of the name before the colon",
				 cl.fabric_text);
	if (rc != 0)
		return fab_usage("fabric %s: NAME or OWNER:NAME of [A-Za-z0-9._-] expected",
				 cl.fabric_text);
	return run(&cl, argc - optind, argv + optind);
}

int main(int argc, char **argv)
{
	signal(SIGCHLD, SIG_DFL); /* where it is ignored no child can be waited for */
	tool_out_begin();
	return tool_out_end("vi_fabric", fabric_main(argc, argv));
}
