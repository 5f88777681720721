/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of oshrun: programs with their options, and what options together mean. */
#include "run_command.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "boot_wire.h"
#include "run_machine.h"
#include "run_options.h"
#include "u_option.h"

#define SILENCE_S 60

/* ---- several programs ---- */

#define APP_AT(field) U_OPTION_AT(struct run_app, field)

static const struct u_option app_options[] = {
	{ "np", 'n', "N", "", APP_AT(np), .min = 1, .max = BOOT_WIRE_PES_MAX },
	{ "c", 'c', "N", "", APP_AT(np), .min = 1, .max = BOOT_WIRE_PES_MAX },
	{ "n", 0, "N", "", APP_AT(np), .min = 1, .max = BOOT_WIRE_PES_MAX },
	{ "export", 'x', "VAR[=VALUE]", "", APP_AT(exports), .min = 1 },
	{ "env", 0, "VAR VALUE", "", .call = run_options_export_app },
	{ "wdir", 0, "DIR", "", APP_AT(wdir), .min = 1 },
	{ "wd", 0, "DIR", "", APP_AT(wdir), .min = 1 },
	{ 0 }
};

static const struct u_option_tool app_tool = {
	.name = "oshrun: after a colon, where options of the whole job cannot stand",
	.options = app_options,
	.operands = INT_MAX,
	.starts_program = true,
};

/* Returns the number of words before the next colon, a word of its own, or the end. */
static int part(char **words)
{
	int n = 0;

	while (words[n] != NULL && strcmp(words[n], ":") != 0)
		n++;
	return n;
}

/*
 * Takes the programs after the first, whose arguments begin at argv[at]; makes the colons between them NULL.
 * U_OPTION_GO_ON; or the exit status, after a line or --help.
 */
static int parse_apps(int argc, char **argv, int at, struct run_options *out)
{
	int begin = at + part(argv + at), n, rc;
	struct run_app *app;

	for (out->n_apps = 1; begin < argc; begin += n) {
		if (out->n_apps == RUN_APPS_MAX)
			return u_option_refuse(&run_options_tool, "a job has at most %d programs",
					       RUN_APPS_MAX);
		app = &out->apps[out->n_apps++];
		app->words = argv + begin;
		n = 1 + part(app->words + 1);
		app->words[0] = NULL; /* ends the words of the program before */
		if (begin + n < argc)
			app->words[n] = NULL;
		rc = u_option_parse(&app_tool, n, app->words, app);
		if (rc != U_OPTION_GO_ON)
			return rc;
		if (optind >= n)
			return u_option_refuse(&run_options_tool,
					       "a program is expected after ':'; see --help");
		app->program = app->words + optind;
	}
	return U_OPTION_GO_ON;
}

/*
 * Gives each program the PEs after those of the one before; one PE, if its --np was not given, and adds to o->np. A
 * program alone has o->np, which the caller sets, as it is.
 */
static void number_apps(struct run_options *o)
{
	for (int i = 0; i < o->n_apps; i++) {
		if (o->n_apps > 1)
			o->np += o->apps[i].np != 0 ? o->apps[i].np : 1;
		o->apps[i].end = o->np;
	}
}

/* Refuses exports that name no variable. U_OPTION_GO_ON, or the exit status after a line. */
static int check_exports(const char *const *exports, int most)
{
	for (int i = 0; i < most && exports[i] != NULL; i++) {
		if (exports[i][0] == '=')
			return u_option_refuse(&run_options_tool,
					       "--export '%s' names no variable; see --help",
					       exports[i]);
	}
	return U_OPTION_GO_ON;
}

/* As check_exports(), for those of all and of each program. */
static int check_all_exports(const struct run_options *o)
{
	int rc = check_exports(o->exports, RUN_EXPORTS_MAX);

	for (int i = 0; i < o->n_apps && rc == U_OPTION_GO_ON; i++)
		rc = check_exports(o->apps[i].exports, RUN_APP_EXPORTS_MAX);
	return rc;
}

/* ---- all options together ---- */

/* Refuses options for emulated hosts in a job on several machines. As check_exports(). */
static int refuse_emulated(const struct run_options *o)
{
	if (!o->far || (o->hosts == 0 && o->topology == NULL && o->window == NULL))
		return U_OPTION_GO_ON;
	return u_option_refuse(&run_options_tool,
			       "--hosts, --topology and --window are for emulated hosts of this "
			       "machine, not for jobs on several machines; see --help");
}

/* Refuses options of hosts that exclude each other, or lack another. As check_exports(). */
static int check_hosts(const struct run_options *o)
{
	if (o->fabric != NULL && (o->topology != NULL || o->window != NULL))
		return u_option_refuse(&run_options_tool,
				       "--fabric starts no hosts: --topology and --window "
				       "are options of vi_fabric up; see --help");
	if (o->topology != NULL && o->hosts == 0)
		return u_option_refuse(&run_options_tool, "--topology needs --hosts; see --help");
	return refuse_emulated(o);
}

/*
 * The number of places for PEs, 0 if it is not limited; *places: the number of hosts or machines that have them. With
 * --per-host each machine has so many slots afterwards.
 */
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

/* Checks all options together, and sets what they leave open. U_OPTION_GO_ON, or the exit status after a line. */
static int complete(struct run_options *o)
{
	int rc, room, places;

	o->far = run_machine_any_far(&o->machines);
	rc = check_hosts(o);
	if (rc == U_OPTION_GO_ON)
		rc = check_all_exports(o);
	if (rc != U_OPTION_GO_ON)
		return rc;
	o->np = o->n_apps == 1 ? o->apps[0].np : 0;
	number_apps(o);
	if (o->hosts == 0 && o->fabric == NULL && !o->far)
		o->hosts = 1;
	if (o->map == RUN_MAP_UNSAID)
		o->map = o->far ? RUN_BLOCK : RUN_CYCLE;
	if (o->rsh == NULL)
		o->rsh = "ssh";
	room = count_places(o, &places);
	if (o->per_host != 0 && o->np > room)
		return u_option_refuse(
			&run_options_tool,
			"%d PEs are more than --per-host %d on %d host%s; see --hosts", o->np,
			o->per_host, places, places == 1 ? "" : "s");
	if (o->np == 0)
		o->np = o->apps[0].end = room != 0 ? room : 1;
	if (o->np > (int)BOOT_WIRE_PES_MAX)
		return u_option_refuse(&run_options_tool, "%d PEs are more than %u; see --help",
				       o->np, BOOT_WIRE_PES_MAX);
	run_options_bound(o);
	return U_OPTION_GO_ON;
}

/* Prints one line for all options that were given and have no effect; none with --quiet. */
static void say_ignored(const struct run_options *o)
{
	if (o->ignored[0] == NULL || o->quiet)
		return;
	fprintf(stderr, "oshrun: without effect here:");
	for (int i = 0; i < RUN_IGNORED_MAX && o->ignored[i] != NULL; i++)
		fprintf(stderr, "%s --%s%s", i > 0 ? "," : "", o->ignored[i],
			strcmp(o->ignored[i], "map-by") == 0 ? " after the colon" : "");
	fputc('\n', stderr);
}

int run_command_parse(int argc, char **argv, struct run_options *out)
{
	int rc;

	out->apps[0].words = argv;
	out->map = RUN_MAP_UNSAID;
	out->silence = SILENCE_S;
	rc = u_option_parse(&run_options_tool, argc, argv, out);
	if (rc != U_OPTION_GO_ON)
		return rc;
	if (out->serve)
		return optind == argc ? U_OPTION_GO_ON
				      : u_option_refuse(&run_options_tool,
							"--serve takes no program; see --help");
	if (optind == argc)
		return u_option_refuse(&run_options_tool, "a program is expected; see --help");
	out->apps[0].program = argv + optind;
	rc = parse_apps(argc, argv, optind + 1, out);
	if (rc == U_OPTION_GO_ON)
		rc = complete(out);
	if (rc == U_OPTION_GO_ON)
		say_ignored(out);
	return rc;
}
