/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot_wire.h"
#include "run_machine.h"
#include "run_options.h"
#include "u_option.h"

#define SECONDS_MAX 1e9
#define SILENCE_S 60

static const char *const map_words[] = { "cycle", "block", NULL };
static const char *const bind_words[] = { "none",    "core",   "hwthread", "cache", "l3cache",
					  "package", "socket", "numa",	   NULL };
/* What they mean; the first has no part. */
static const enum u_topo_part bind_parts[] = { U_TOPO_CPU,     U_TOPO_CORE,  U_TOPO_CPU,
					       U_TOPO_CACHE,   U_TOPO_CACHE, U_TOPO_PACKAGE,
					       U_TOPO_PACKAGE, U_TOPO_NODE };

static const struct u_option_tool tool;

static int no_effect(void *into, const struct u_option *o, const char *arg)
{
	return 0;
}

/* The second argument of an option that has two; NULL: there is none. */
static const char *second_argument(const struct run_options *out)
{
	const char *word = out->words[optind];

	if (word != NULL)
		optind++;
	return word;
}

static int two_without_effect(void *into, const struct u_option *o, const char *arg)
{
	return second_argument(into) != NULL ? 0 : -EINVAL;
}

/* Such as "package" or "core:OVERSUBSCRIBE"; what says nothing about processors has no effect. */
static int map_by(void *into, const struct u_option *o, const char *arg)
{
	struct run_options *out = into;
	size_t n = strcspn(arg, ":");

	for (int i = 1; bind_words[i] != NULL; i++) {
		if (strlen(bind_words[i]) == n && strncmp(bind_words[i], arg, n) == 0) {
			out->mapped = true;
			out->map_by = bind_parts[i];
		}
	}
	return 0;
}

static int export_two(void *into, const struct u_option *o, const char *name)
{
	struct run_options *out = into;
	const char *value = second_argument(out);
	char *text;
	size_t i;

	if (value == NULL || name[0] == '\0' || strchr(name, '=') != NULL)
		return -EINVAL;
	for (i = 0; i < RUN_EXPORTS_MAX && out->exports[i] != NULL; i++)
		;
	if (i == RUN_EXPORTS_MAX)
		return -ENOSPC;
	if (asprintf(&text, "%s=%s", name, value) < 0)
		return -ENOMEM;
	out->exports[i] = text;
	return 0;
}

static int refuse_machine(const char *option, const char *word)
{
	u_option_refuse(&tool,
			"%s '%.80s' is no NAME or NAME:N of a machine, with N of 1 to %u PEs, "
			"among at most %d machines; see --help",
			option, word, BOOT_WIRE_PES_MAX, RUN_MACHINES_MAX);
	return -ECANCELED;
}

static int host_list(void *into, const struct u_option *o, const char *arg)
{
	struct run_options *out = into;
	char word[RUN_MACHINE_WORD];

	return run_machine_list(&out->machines, arg, word) ? 0 : refuse_machine("--host", word);
}

static int host_file(void *into, const struct u_option *o, const char *arg)
{
	struct run_options *out = into;
	char word[RUN_MACHINE_WORD];
	int rc = run_machine_file(&out->machines, arg, word);

	if (rc == RUN_MACHINE_UNREAD)
		return -errno;
	return rc == 0 ? 0 : refuse_machine("--hostfile:", word);
}

#define AT(field) U_OPTION_AT(struct run_options, field)

static const struct u_option options[] = {
	{ "np", 'n', "N", "PEs of the job (1)", AT(np), .min = 1, .max = BOOT_WIRE_PES_MAX },
	{ "per-host", 'N', "N", "as many PEs on each host; with --np at most so many", AT(per_host),
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
	{ "map", 0, "HOW",
	  "PEs go to the hosts in turn (cycle) or in groups (block);\n"
	  "block is the default for machines, cycle for emulated hosts",
	  AT(map), .words = map_words },
	{ "host", 'H', "NAME[:N],...",
	  "run N PEs (1) on each of these machines, of which this one\n"
	  "may be one; without --np as many PEs as that makes",
	  .call = host_list },
	{ "hostfile", 0, "FILE", "the same from a file with lines of NAME slots=N",
	  .call = host_file },
	{ "rsh", 0, "COMMAND",
	  "remote shell that starts oshrun on the others: COMMAND is\n"
	  "called with NAME and a command line (ssh)",
	  AT(rsh), .min = 1 },
	{ "bind-to", 0, "WHAT",
	  "each PE has the processors of one core, hwthread, cache,\n"
	  "package (socket) or numa node, in turn; or none (none)",
	  AT(bind), .words = bind_words },
	{ "map-by", 0, "WHAT",
	  "with --bind-to: PEs go to these in turn, and there to the\n"
	  "next core or what it says; another word has no effect",
	  .call = map_by },
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
	{ "silence", 0, "SEC",
	  "end the job when nothing has come from another machine for so\n"
	  "long (60; 0: never)",
	  AT(silence), .least = 0, .most = SECONDS_MAX },
	{ "verbose", 'v', NULL, "say where each PE is and when it ends", AT(verbose) },
	{ NULL, .help = "\nWhat scripts for other launchers say:" },
	{ "c", 'c', "N", "--np", AT(np), .min = 1, .max = BOOT_WIRE_PES_MAX },
	{ "n", 0, "N", "--np", AT(np), .min = 1, .max = BOOT_WIRE_PES_MAX },
	{ "ppn", 0, "N", "--per-host", AT(per_host), .min = 1, .max = BOOT_WIRE_PES_MAX },
	{ "npernode", 0, "N", "--per-host", AT(per_host), .min = 1, .max = BOOT_WIRE_PES_MAX },
	{ "genv", 0, "VAR VALUE", "--export VAR=VALUE", .call = export_two },
	{ "env", 0, "VAR VALUE", "--export VAR=VALUE", .call = export_two },
	{ "wd", 0, "DIR", "--wdir", AT(wdir), .min = 1 },
	{ "machinefile", 0, "FILE", "--hostfile", .call = host_file },
	{ NULL, .help = "\nThe same, without effect here:" },
	{ "mca", 0, "NAME VALUE", "of Open MPI alone", .call = two_without_effect },
	{ "quiet", 'q', NULL, "nothing is said without a need", .call = no_effect },
	{ "use-hwthread-cpus", 0, NULL, "--bind-to decides", .call = no_effect },
	{ "allow-run-as-root", 0, NULL, "no user is refused", .call = no_effect },
	{ "oversubscribe", 0, NULL, "more PEs than processors are allowed", .call = no_effect },
	{ "display-map", 0, NULL, "--verbose does it", .call = no_effect },
	{ "report-bindings", 0, NULL, "--bind-to decides", .call = no_effect },
	{ "rank-by", 0, "WHAT", "--map decides", .call = no_effect },
	{ NULL, .help = "\nOf oshrun itself:" },
	{ "serve", 0, NULL, "start PEs for the oshrun at standard input and output", AT(serve) },
	U_OPTION_LAST('h', 'V')
};

static const struct u_option_tool tool = {
	.name = "oshrun",
	.head = "Usage: oshrun [-np N] [OPTION]... PROGRAM [ARGUMENT]...\n"
		"Runs an OpenSHMEM program as a job of N PEs, here or on several machines.\n"
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

/* Other launchers begin a second program by a colon; it would be an argument of the first here. */
static int refuse_second_program(char **word)
{
	for (; *word != NULL; word++) {
		if (strcmp(*word, ":") == 0)
			return u_option_refuse(
				&tool, "':' begins another program, which oshrun cannot start: a "
				       "script can, by OSHRUN_PE; it can also give a program that "
				       "argument");
	}
	return U_OPTION_GO_ON;
}

static int refuse_emulated(const struct run_options *o)
{
	if (!o->far || (o->hosts == 0 && o->topology == NULL && o->window == NULL))
		return U_OPTION_GO_ON;
	return u_option_refuse(&tool,
			       "--hosts, --topology and --window are for emulated hosts of this "
			       "machine, not for jobs on several machines; see --help");
}

static int check_hosts(const struct run_options *o)
{
	int i;

	if (o->fabric != NULL && (o->topology != NULL || o->window != NULL))
		return u_option_refuse(&tool, "--fabric starts no hosts: --topology and --window "
					      "are options of vi_fabric up; see --help");
	for (i = 0; i < RUN_EXPORTS_MAX && o->exports[i] != NULL; i++) {
		if (o->exports[i][0] == '=')
			return u_option_refuse(&tool, "--export '%s' names no variable; see --help",
					       o->exports[i]);
	}
	if (o->topology != NULL && o->hosts == 0)
		return u_option_refuse(&tool, "--topology needs --hosts; see --help");
	return refuse_emulated(o);
}

/* Places for PEs, and the hosts or machines that have them. */
static int count_places(struct run_options *o, int *places)
{
	int i, sum = 0;

	*places = o->far ? o->machines.n : o->hosts != 0 ? o->hosts : 1;
	for (i = 0; i < o->machines.n; i++) {
		if (o->per_host != 0)
			o->machines.at[i].slots = o->per_host;
		sum += o->machines.at[i].slots;
	}
	return o->per_host != 0 ? o->per_host * *places : sum;
}

/* Together, what the user asked for. */
static int complete(struct run_options *o)
{
	int rc, room, places;

	o->far = run_machine_any_far(&o->machines);
	rc = check_hosts(o);
	if (rc != U_OPTION_GO_ON)
		return rc;
	if (o->hosts == 0 && o->fabric == NULL && !o->far)
		o->hosts = 1;
	if (o->map == RUN_MAP_UNSAID)
		o->map = o->far ? RUN_BLOCK : RUN_CYCLE;
	if (o->rsh == NULL)
		o->rsh = "ssh";
	room = count_places(o, &places);
	if (o->per_host != 0 && o->np > room)
		return u_option_refuse(
			&tool, "%d PEs are more than --per-host %d on %d host%s; see --hosts",
			o->np, o->per_host, places, places == 1 ? "" : "s");
	if (o->np == 0)
		o->np = room != 0 ? room : 1;
	if (o->np > (int)BOOT_WIRE_PES_MAX)
		return u_option_refuse(&tool, "%d PEs are more than %u; see --help", o->np,
				       BOOT_WIRE_PES_MAX);
	o->bind_part = bind_parts[o->bind];
	if (!o->mapped)
		o->map_by = o->bind_part;
	o->bind_word = bind_words[o->bind];
	return U_OPTION_GO_ON;
}

int run_options_bind(struct run_options *o, unsigned int bind, unsigned int map_by)
{
	if (bind >= sizeof(bind_parts) / sizeof(bind_parts[0]) || map_by > U_TOPO_NODE)
		return -EPROTO;
	o->bind = bind;
	o->bind_word = bind_words[bind];
	o->bind_part = bind_parts[bind];
	o->map_by = (enum u_topo_part)map_by;
	return 0;
}

int run_options_parse(int argc, char **argv, struct run_options *out)
{
	int rc;

	out->words = argv;
	out->map = RUN_MAP_UNSAID;
	out->silence = SILENCE_S;
	rc = u_option_parse(&tool, argc, argv, out);
	if (rc != U_OPTION_GO_ON)
		return rc;
	if (out->serve)
		return optind == argc
			       ? U_OPTION_GO_ON
			       : u_option_refuse(&tool, "--serve takes no program; see --help");
	if (optind == argc)
		return u_option_refuse(&tool, "a program is expected; see --help");
	out->program = argv + optind;
	rc = refuse_second_program(out->program + 1);
	return rc == U_OPTION_GO_ON ? complete(out) : rc;
}
