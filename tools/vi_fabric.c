/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_fabric: starts and stops emulated hosts and their links, shows them and changes them. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fab.h"
#include "fabric/fab_change.h"
#include "fabric/fab_say.h"
#include "fabric/fab_start.h"
#include "fabric/fab_up.h"
#include "tool_out.h"
#include "u_base.h"
#include "u_cfg.h"

#define DONE (-1) /* of parse(): nothing is left to be done */

static void help(void)
{
	fputs("Usage: vi_fabric COMMAND [ARGUMENT]... [OPTION]...\n"
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
	      "Options:\n"
	      "  --name NAME             the fabric (VIADUCT_FABRIC)\n"
	      "  --json                  status: as one JSON object\n"
	      "  --help, --version\n"
	      "\n"
	      "Options of up:\n"
	      "  --hosts N               hosts, 1..64 (2, or as many as the topology asks for)\n"
	      "  --topology SPEC         links between them (VIADUCT_TOPOLOGY, ring):\n"
	      "                            ring, chain, mesh:WxH, torus:WxH;\n"
	      "                            graph:0-1,1-2,... with hosts by their numbers;\n"
	      "                            file:PATH with a link A-B on each line, # comments\n"
	      "  --names A,B,...         their names (host0,host1,...)\n"
	      "  --alias NAME=HOST       another name of a host; may be repeated\n"
	      "  --device-alias DEV=HOST device name that opens a host's NIC; may be repeated\n"
	      "  --group GROUP           members of the group may use the fabric too\n"
	      "  --window SIZE           memory window of a port, e.g. 64M (VIADUCT_WINDOW_BYTES)\n"
	      "  --doorbells N           doorbell bits of a port, 2..32 (VIADUCT_DOORBELLS)\n"
	      "  --scratchpads N         scratchpads of a port, 8..64 (VIADUCT_SCRATCHPADS)\n"
	      "  --port KIND             emu, with +strict, +fault and +model (VIADUCT_PORT)\n"
	      "  --relay-threads N       transfer threads of an agent that relays, 1..8\n"
	      "                          (VIADUCT_RELAY_THREADS)\n"
	      "  --relay-cpus LIST       processors they run on in turn, e.g. 2,3 or 2-5\n"
	      "                          (VIADUCT_RELAY_CPUS)\n"
	      "  --relay-wait HOW        adaptive, poll or block (VIADUCT_RELAY_WAIT)\n"
	      "  --foreground            stay, and take the fabric down at SIGINT or SIGTERM\n"
	      "\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage.\n",
	      stdout);
}

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

enum {
	OPT_NAME = 1,
	OPT_JSON,
	OPT_HOSTS,
	OPT_TOPOLOGY,
	OPT_FOREGROUND,
	OPT_PASS,
	OPT_WINDOW,
	OPT_DOORBELLS,
	OPT_SCRATCHPADS,
	OPT_HELP,
	OPT_VERSION
};

static const struct option options[] = {
	{ "name", required_argument, NULL, OPT_NAME },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "hosts", required_argument, NULL, OPT_HOSTS },
	{ "topology", required_argument, NULL, OPT_TOPOLOGY },
	{ "relay-threads", required_argument, NULL, OPT_PASS },
	{ "relay-cpus", required_argument, NULL, OPT_PASS },
	{ "relay-wait", required_argument, NULL, OPT_PASS },
	{ "foreground", no_argument, NULL, OPT_FOREGROUND },
	{ "names", required_argument, NULL, OPT_PASS },
	{ "alias", required_argument, NULL, OPT_PASS },
	{ "device-alias", required_argument, NULL, OPT_PASS },
	{ "group", required_argument, NULL, OPT_PASS },
	{ "port", required_argument, NULL, OPT_PASS },
	{ "window", required_argument, NULL, OPT_WINDOW },
	{ "doorbells", required_argument, NULL, OPT_DOORBELLS },
	{ "scratchpads", required_argument, NULL, OPT_SCRATCHPADS },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ 0 },
};

struct command_line {
	struct fabric fabric;
	const char *fabric_text;
	struct fab_up_args up;
	bool json;
	bool up_only; /* an option of `up` was given */
};

static bool in_range(const char *text, unsigned long min, unsigned long max, unsigned long *out)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v < min || v > max)
		return false;
	*out = v;
	return true;
}

static int pass_on(struct command_line *cl, const char *name, const char *arg)
{
	static const char *const dashed[] = { "--names",      "--alias",       "--device-alias",
					      "--group",      "--port",	       "--window",
					      "--doorbells",  "--scratchpads", "--relay-threads",
					      "--relay-cpus", "--relay-wait" };
	size_t i;

	if (cl->up.count + 2 > FAB_ARGS_MAX)
		return fab_usage("too many options");
	for (i = 0; i < U_ARRAY_SIZE(dashed); i++) {
		if (strcmp(dashed[i] + 2, name) == 0)
			cl->up.v[cl->up.count++] = dashed[i];
	}
	cl->up.v[cl->up.count++] = arg;
	cl->up_only = true;
	return EXIT_OK;
}

static int option_take(struct command_line *cl, int c, const char *name, const char *arg)
{
	const struct u_cfg_entry *window = &u_cfg_table[U_CFG_WINDOW_BYTES];
	unsigned long v;
	uint64_t bytes;

	switch (c) {
	case OPT_NAME:
		cl->fabric_text = arg;
		return EXIT_OK;
	case OPT_JSON:
		cl->json = true;
		return EXIT_OK;
	case OPT_FOREGROUND:
		cl->up.foreground = cl->up_only = true;
		return EXIT_OK;
	case OPT_HOSTS:
		if (!in_range(arg, 1, CL_HOSTS_MAX, &v))
			return fab_usage("--hosts: 1..%u expected, found %s", CL_HOSTS_MAX, arg);
		cl->up.hosts = (unsigned int)v;
		cl->up_only = true;
		return EXIT_OK;
	case OPT_TOPOLOGY:
		if (arg[0] == '\0')
			return fab_usage(
				"--topology: ring, chain, mesh:WxH, torus:WxH, graph:A-B,C-D "
				"or file:PATH expected, found nothing");
		cl->up.topology = arg;
		cl->up_only = true;
		return EXIT_OK;
	case OPT_WINDOW:
		if (u_cfg_parse_bytes(arg, &bytes) != 0 || bytes < window->min ||
		    bytes > window->max)
			return fab_usage(
				"--window: a size like 64M, from %lluk to %lluG, expected, "
				"found %s",
				(unsigned long long)window->min >> 10,
				(unsigned long long)window->max >> 30, arg);
		return pass_on(cl, name, arg);
	case OPT_DOORBELLS:
		if (!in_range(arg, 2, 32, &v))
			return fab_usage("--doorbells: 2..32 expected, found %s", arg);
		return pass_on(cl, name, arg);
	case OPT_SCRATCHPADS:
		if (!in_range(arg, 8, 64, &v))
			return fab_usage("--scratchpads: 8..64 expected, found %s", arg);
		return pass_on(cl, name, arg);
	default:
		return pass_on(cl, name, arg);
	}
}

/* Reports the option for which getopt_long() returned ':' or '?'; `text` is that argument. */
static int option_refused(int c, const char *text)
{
	if (c == ':')
		return fab_usage("%.80s needs an argument", text);
	if (optopt >= ' ')
		return fab_usage("no option -%c", optopt);
	return optopt != 0 ? fab_usage("%.80s: this option takes no argument", text)
			   : fab_usage("no option %.80s", text);
}

/* Returns DONE when the error has been printed. */
static int parse(int argc, char **argv, struct command_line *cl)
{
	int c, which, rc = EXIT_OK;

	opterr = 0;
	while (rc == EXIT_OK && (c = getopt_long(argc, argv, ":", options, &which)) != -1) {
		if (c == OPT_HELP) {
			help();
			return DONE;
		}
		if (c == OPT_VERSION) {
			printf("vi_fabric (Viaduct) %s\n", VIADUCT_VERSION);
			return DONE;
		}
		if (c == ':' || c == '?')
			return option_refused(c, argv[optind - 1]);
		rc = option_take(cl, c, options[which].name, optarg);
	}
	return rc;
}

static int run(struct command_line *cl, int argc, char **argv)
{
	static const struct {
		const char *name;
		int args;
	} commands[] = { { "up", 0 },	 { "down", 0 },	  { "status", 0 }, { "link", 3 },
			 { "alias", 1 }, { "device", 1 }, { "start", 1 },  { "stop", 1 } };
	size_t i;

	for (i = 0; argc > 0 && i < U_ARRAY_SIZE(commands); i++) {
		if (strcmp(argv[0], commands[i].name) == 0)
			break;
	}
	if (argc == 0 || i == U_ARRAY_SIZE(commands))
		return fab_usage(argc == 0 ? "a command is expected" : "no command %s", argv[0]);
	if (argc - 1 != commands[i].args)
		return fab_usage("%s takes %d arguments, found %d", argv[0], commands[i].args,
				 argc - 1);
	if ((cl->up_only && i != 0) || (cl->json && i != 2))
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
	int rc = parse(argc, argv, &cl);

	if (rc != EXIT_OK)
		return rc == DONE ? EXIT_OK : rc;
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
	tool_out_begin();
	return tool_out_end("vi_fabric", fabric_main(argc, argv));
}
