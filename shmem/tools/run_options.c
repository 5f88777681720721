/* SPDX-License-Identifier: BSD-2-Clause */
#include <getopt.h>
#include <limits.h>
#include <stddef.h>

#include "boot_wire.h"
#include "run_options.h"
#include "u_option.h"

#define SECONDS_MAX 1e9

static const char *const map_words[] = { "cycle", "block", NULL };
static const char *const bind_words[] = { "none", "core", NULL };

static int no_effect(void *into, const struct u_option *o, const char *arg)
{
	return 0;
}

#define AT(field) U_OPTION_AT(struct run_options, field)

static const struct u_option options[] = {
	{ "np", 'n', "N", "PEs of the job (1)", AT(np), .min = 1, .max = BOOT_WIRE_PES_MAX },
	{ "per-host", 'N', "N", "as many PEs on each host, in place of --np", AT(per_host),
	  .min = 1, .max = BOOT_WIRE_PES_MAX },
	{ "hosts", 0, "N", "hosts, 1..64 (1): emulated, joined by links, for this job alone",
	  AT(hosts), .min = 1, .max = RUN_HOSTS_MAX },
	{ "topology", 0, "SPEC", "links between them, as vi_fabric takes it (ring)", AT(topology),
	  .min = 1 },
	{ "window", 0, "SIZE", "memory window of their ports (1T, the largest)", AT(window),
	  .min = 1 },
	{ "fabric", 0, "NAME",
	  "use this fabric, which runs already, and start none;\n"
	  "without --hosts all PEs are on the host of VIADUCT_HOST",
	  AT(fabric), .min = 1 },
	{ "map", 0, "HOW", "PEs go to the hosts in turn (cycle) or in groups (block)", AT(map),
	  .words = map_words },
	{ "bind-to", 0, "WHAT", "core: each PE has one processor, in turn; or none (none)",
	  AT(bind), .words = bind_words },
	{ "tag-output", 'l', NULL, "begin each line of output with [PE]", AT(tag) },
	{ "export", 'x', "VAR[=VALUE]",
	  "set a variable for the PEs; may be repeated (they have\nthose of oshrun anyway)",
	  AT(exports), .min = 1 },
	{ "wdir", 0, "DIR", "run the PEs in this directory", AT(wdir), .min = 1 },
	{ "timeout", 0, "SEC", "end the job after so many seconds, with status 124", AT(timeout),
	  .least = 0, .most = SECONDS_MAX },
	{ "hang-report", 0, "SEC",
	  "say what each PE waits for when none has made a step for\n"
	  "so long (0: never; SIGQUIT asks at any time)",
	  AT(hang_report), .least = 0, .most = SECONDS_MAX },
	{ "verbose", 'v', NULL, "say where each PE is and when it ends", AT(verbose) },
	{ NULL, .help = "\nWhat scripts for other launchers say, without effect here:" },
	{ "allow-run-as-root", 0, NULL, "no user is refused", .call = no_effect },
	{ "oversubscribe", 0, NULL, "more PEs than processors are allowed", .call = no_effect },
	{ "display-map", 0, NULL, "--verbose does it", .call = no_effect },
	{ "report-bindings", 0, NULL, "--bind-to decides", .call = no_effect },
	{ "map-by", 0, "WHAT", "--map decides", .call = no_effect },
	{ "rank-by", 0, "WHAT", "--map decides", .call = no_effect },
	{ NULL, .help = "\nOf oshrun itself:" },
	U_OPTION_LAST('h', 'V')
};

static const struct u_option_tool tool = {
	.name = "oshrun",
	.head = "Usage: oshrun [-np N] [OPTION]... PROGRAM [ARGUMENT]...\n"
		"Runs an OpenSHMEM program as a job of N PEs.\n"
		"\n"
		"Options:\n",
	.options = options,
	.tail = "\nLong options may have one dash.\n"
		"Exit status: 0 when all PEs ended with 0; else that of the first PE that failed, 128 and the\n"
		"signal that killed it, or what shmem_global_exit() was given; 1 when the job could not run,\n"
		"2 wrong usage, 124 --timeout, 126 or 127 a program that cannot be executed.\n",
	.operands = INT_MAX,
	.starts_program = true,
};

/* Together, what the user asked for. */
static int complete(struct run_options *o)
{
	if (o->np != 0 && o->per_host != 0)
		return u_option_refuse(&tool, "--np and --per-host exclude each other; see --help");
	if (o->fabric != NULL && (o->topology != NULL || o->window != NULL))
		return u_option_refuse(&tool, "--fabric starts no hosts: --topology and --window "
					      "are options of vi_fabric up; see --help");
	if (o->topology != NULL && o->hosts == 0)
		return u_option_refuse(&tool, "--topology needs --hosts; see --help");
	if (o->hosts == 0 && o->fabric == NULL)
		o->hosts = 1;
	if (o->per_host != 0)
		o->np = o->per_host * (o->hosts != 0 ? o->hosts : 1);
	if (o->np == 0)
		o->np = 1;
	if (o->np > (int)BOOT_WIRE_PES_MAX)
		return u_option_refuse(&tool, "%d PEs are more than %u; see --help", o->np,
				       BOOT_WIRE_PES_MAX);
	return U_OPTION_GO_ON;
}

int run_options_parse(int argc, char **argv, struct run_options *out)
{
	int rc = u_option_parse(&tool, argc, argv, out);

	if (rc != U_OPTION_GO_ON)
		return rc;
	if (optind == argc)
		return u_option_refuse(&tool, "a program is expected; see --help");
	out->program = argv + optind;
	return complete(out);
}
