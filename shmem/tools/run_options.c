/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of options of oshrun, and what sets options that are not a value alone. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "boot_wire.h"
#include "run_machine.h"
#include "run_options.h"
#include "u_option.h"

#define SECONDS_MAX 1e9

static const char *const map_words[] = { "cycle", "block", NULL };
static const char *const bind_words[] = { "none",    "core",   "hwthread", "cache", "l3cache",
					  "package", "socket", "numa",	   NULL };
/* The part that each word means; the first means none. */
static const enum u_topo_part bind_parts[] = { U_TOPO_CPU,     U_TOPO_CORE,  U_TOPO_CPU,
					       U_TOPO_CACHE,   U_TOPO_CACHE, U_TOPO_PACKAGE,
					       U_TOPO_PACKAGE, U_TOPO_NODE };

/* Does nothing and returns 0: the option asks for what oshrun does anyway. */
static int no_effect(void *into, const struct u_option *o, const char *arg)
{
	return 0;
}

/* Notes an option that has no effect, for a line that says so. Returns 0. */
static int ignore(void *into, const struct u_option *o, const char *arg)
{
	struct run_options *out = into;
	size_t i = 0;

	while (i < RUN_IGNORED_MAX && out->ignored[i] != NULL && out->ignored[i] != o->name)
		i++;
	if (i < RUN_IGNORED_MAX)
		out->ignored[i] = o->name;
	return 0;
}

/* Takes the second argument of an option that has two, the word at optind; NULL: there is none. */
static const char *second_argument(char **words)
{
	const char *word = words[optind];

	if (word != NULL)
		optind++;
	return word;
}

/* As ignore(), of an option with two arguments. 0, or -EINVAL: there is no second. */
static int ignore_two(void *into, const struct u_option *o, const char *arg)
{
	const struct run_options *out = into;

	return second_argument(out->apps[0].words) != NULL ? ignore(into, o, arg) : -EINVAL;
}

/* Are the first n bytes of the text this word, whole? */
static bool is_word(const char *text, size_t n, const char *word)
{
	return strlen(word) == n && strncmp(text, word, n) == 0;
}

/* "ppr:N:node" of Open MPI: N PEs on each host. 0 or -EINVAL. */
static int map_by_number(struct run_options *out, const char *arg)
{
	char text[16];
	size_t n = strcspn(arg, ":");
	uint64_t number;

	if (n >= sizeof(text) || strcmp(arg + n, ":node") != 0)
		return -EINVAL;
	memcpy(text, arg, n);
	text[n] = '\0';
	if (u_option_number(text, false, 1, BOOT_WIRE_PES_MAX, &number) != 0)
		return -EINVAL;
	out->per_host = (int)number;
	return 0;
}

/* Sets WHAT of --map-by, such as "package", "core:OVERSUBSCRIBE", "slot" or "node". 0 or -EINVAL. */
static int map_by(void *into, const struct u_option *o, const char *arg)
{
	struct run_options *out = into;
	size_t n = strcspn(arg, ":");
	bool node = is_word(arg, n, "node");

	if (is_word(arg, n, "ppr") && arg[n] == ':')
		return map_by_number(out, arg + n + 1);
	if (arg[n] == ':' && strcasecmp(arg + n, ":oversubscribe") != 0)
		ignore(into, o, arg);
	for (int i = 1; bind_words[i] != NULL; i++) {
		if (is_word(arg, n, bind_words[i])) {
			out->mapped = true;
			out->map_by = bind_parts[i];
			return 0;
		}
	}
	if (!node && !is_word(arg, n, "slot"))
		return -EINVAL;
	if (out->map == RUN_MAP_UNSAID)
		out->map = node ? RUN_CYCLE : RUN_BLOCK;
	return 0;
}

/*
 * Adds NAME=VALUE, of which VALUE is the next word of the command line, as a text of its own that is never freed. 0;
 * -EINVAL: none, or no name; -ENOSPC: too many; -ENOMEM.
 */
static int export_two(const char **exports, size_t most, char **words, const char *name)
{
	const char *value = second_argument(words);
	char *text;
	size_t i;

	if (value == NULL || name[0] == '\0' || strchr(name, '=') != NULL)
		return -EINVAL;
	for (i = 0; i < most && exports[i] != NULL; i++)
		;
	if (i == most)
		return -ENOSPC;
	if (asprintf(&text, "%s=%s", name, value) < 0)
		return -ENOMEM;
	exports[i] = text;
	return 0;
}

/* Sets a variable for all programs. Returns as export_two(). */
static int export_to_all(void *into, const struct u_option *o, const char *name)
{
	struct run_options *out = into;

	return export_two(out->exports, RUN_EXPORTS_MAX, out->apps[0].words, name);
}

int run_options_export_app(void *into, const struct u_option *o, const char *name)
{
	struct run_app *app = into;

	return export_two(app->exports, RUN_APP_EXPORTS_MAX, app->words, name);
}

/* Sets a variable for the first program alone. Returns as export_two(). */
static int export_to_first(void *into, const struct u_option *o, const char *name)
{
	struct run_options *out = into;

	return run_options_export_app(&out->apps[0], o, name);
}

/* Prints that the word of this option names no machine, and returns -ECANCELED. */
static int refuse_machine(const char *option, const char *word)
{
	u_option_refuse(&run_options_tool,
			"%s '%.80s' is no NAME or NAME:N of a machine, with N of 1 to %u PEs, "
			"among at most %d machines; see --help",
			option, word, BOOT_WIRE_PES_MAX, RUN_MACHINES_MAX);
	return -ECANCELED;
}

/* Adds the machines of --host. 0, or -ECANCELED after a line. */
static int host_list(void *into, const struct u_option *o, const char *arg)
{
	struct run_options *out = into;
	char word[RUN_MACHINE_WORD];

	return run_machine_list(&out->machines, arg, word) ? 0 : refuse_machine("--host", word);
}

/* Adds the machines of --hostfile. 0; -ECANCELED after a line; or -errno: the file cannot be read. */
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
	{ "np", 'n', "N", "PEs of the job (1)", AT(apps[0].np), .min = 1,
	  .max = BOOT_WIRE_PES_MAX },
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
	  "next core or what it says; slot: --map block, node: --map\n"
	  "cycle, ppr:N:node: --per-host N",
	  .call = map_by, .expected = "slot, node, ppr:N:node, or what --bind-to takes" },
	{ "tag-output", 'l', NULL, "begin each line of output with [PE]", AT(tag) },
	{ "export", 'x', "VAR[=VALUE]",
	  "set a variable for the PEs; may be repeated (they have\nthose of oshrun anyway)",
	  AT(exports), .min = 1 },
	{ "wdir", 0, "DIR", "run the PEs in this directory", AT(apps[0].wdir), .min = 1 },
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
	{ "c", 'c', "N", "--np", AT(apps[0].np), .min = 1, .max = BOOT_WIRE_PES_MAX },
	{ "n", 0, "N", "--np", AT(apps[0].np), .min = 1, .max = BOOT_WIRE_PES_MAX },
	{ "ppn", 0, "N", "--per-host", AT(per_host), .min = 1, .max = BOOT_WIRE_PES_MAX },
	{ "npernode", 0, "N", "--per-host", AT(per_host), .min = 1, .max = BOOT_WIRE_PES_MAX },
	{ "genv", 0, "VAR VALUE", "--export VAR=VALUE", .call = export_to_all },
	{ "env", 0, "VAR VALUE", "the same for this program alone", .call = export_to_first },
	{ "wd", 0, "DIR", "--wdir", AT(apps[0].wdir), .min = 1 },
	{ "machinefile", 0, "FILE", "--hostfile", .call = host_file },
	{ "quiet", 'q', NULL, "say nothing of options without effect", AT(quiet) },
	{ NULL, .help = "\nThe same; what they ask for is so anyway:" },
	{ "use-hwthread-cpus", 0, NULL, "--bind-to decides", .call = no_effect },
	{ "allow-run-as-root", 0, NULL, "no user is refused", .call = no_effect },
	{ "oversubscribe", 0, NULL, "more PEs than processors are allowed", .call = no_effect },
	{ NULL, .help = "\nThe same, without effect here, which is said:" },
	{ "mca", 0, "NAME VALUE", "of Open MPI alone", .call = ignore_two },
	{ "display-map", 0, NULL, "--verbose does it", .call = ignore },
	{ "report-bindings", 0, NULL, "--bind-to decides", .call = ignore },
	{ "rank-by", 0, "WHAT", "--map decides", .call = ignore },
	{ NULL, .help = "\nOf oshrun itself:" },
	{ "serve", 0, NULL, "start PEs for the oshrun at standard input and output", AT(serve) },
	U_OPTION_LAST('h', 'V')
};

const struct u_option_tool run_options_tool = {
	.name = "oshrun",
	.head = "Usage: oshrun [-np N] [OPTION]... PROGRAM [ARGUMENT]... [: [-np N] PROGRAM...]...\n"
		"Runs an OpenSHMEM program as a job of N PEs, here or on several machines.\n"
		"After a colon another program is part of the job; --np, --wdir and -env are for\n"
		"the program that follows, other options before the first for all.\n"
		"\n"
		"Options:\n",
	.options = options,
	.tail = "\nLong options may have one dash, and are not shortened.\n"
		"Exit status: 0 when all PEs ended with 0; else that of the first PE that failed, 128 and the\n"
		"signal that killed it, or what shmem_global_exit() was given; 1 when the job could not run,\n"
		"2 wrong usage, 124 --timeout, 126 or 127 a program that cannot be executed.\n",
	.operands = INT_MAX,
	.starts_program = true,
};

void run_options_bound(struct run_options *o)
{
	o->bind_part = bind_parts[o->bind];
	if (!o->mapped)
		o->map_by = o->bind_part;
	o->bind_word = bind_words[o->bind];
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
