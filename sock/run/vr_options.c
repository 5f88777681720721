/* SPDX-License-Identifier: BSD-2-Clause */
#include "vr_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "u_option.h"

#define AT(field) U_OPTION_AT(struct vr_options, field)
#define USAGE 2

static const char *const promote_words[] = { "auto", "eager", "never", NULL };

static const struct u_option options[] = {
	{ "host", 0, "HOST",
	  "be on this host: a number or hostN of emulated ones, or a host\n"
	  "that --map gives an address of its own",
	  AT(host), .min = 1 },
	{ "fabric", 0, "NAME", "use this fabric (VIADUCT_FABRIC)", AT(fabric), .min = 1 },
	{ "promote", 0, "WHEN",
	  "move connections to VIs once they are worth it (auto), at once\n"
	  "(eager), or not at all (never)",
	  AT(promote), .words = promote_words },
	{ "rules", 0, "RULES",
	  "for some connections another WHEN; the first rule that fits:\n"
	  "[program=PATTERN,][address=ADDRESS[/BITS],][port=N[-M],]WHEN;...",
	  AT(rules), .min = 1 },
	{ "map", 0, "MAP", "hosts of addresses: ADDRESS[/BITS] HOST;...", AT(map), .min = 1 },
	{ "service", 0, "WHAT",
	  "poller:N: N threads look at the connections of epoll sets for the\n"
	  "program; none (VIADUCT_SOCK_SERVICE)",
	  AT(service), .min = 1 },
	{ "place", 0, "PLACES",
	  "processors of the program's threads (app), the pollers (svc), and\n"
	  "what moves packets (irq): app=LIST,svc=PLACE,irq=PLACE, each a LIST\n"
	  "such as 2-5,8, or core, llc, package, other relative to the program's,\n"
	  "device or none; dynamic: the pollers move by load; strict: what\n"
	  "cannot be had is an error (VIADUCT_SOCK_PLACE)",
	  AT(place), .min = 1 },
	{ "loopback", 0, NULL, "also connections to 127.0.0.1 and ::1", AT(loopback) },
	{ "no-uring", 0, NULL,
	  "let io_uring fail with ENOSYS, so that programs which can do\n"
	  "without keep their VIs; unless root, set-user-ID is void then",
	  AT(no_uring) },
	{ "all", 0, NULL,
	  "also programs that no preloaded library reaches, as those in Go and\n"
	  "static ones: a helper process carries their bytes; unless root,\n"
	  "set-user-ID is void then",
	  AT(all) },
	{ "stats", 0, "[=FILE]",
	  "say at the end what VIs and TCP carried, and why connections were\n"
	  "not promoted; to FILE as JSON",
	  AT(stats) },
	{ "explain", 0, NULL,
	  "say what would be done, and whether the program can be helped;\n"
	  "run nothing",
	  AT(explain) },
	U_OPTION_LAST('h', 'V'),
};

static const struct u_option_tool tool = {
	.name = "vi_run",
	.head = "usage: vi_run [OPTION]... PROGRAM [ARG]...\n\n"
		"Runs a program whose TCP connections between hosts of a fabric are carried by VIs.\n\n",
	.options = options,
	.operands = INT32_MAX,
	.starts_program = true,
};

int vr_options_parse(struct vr_options *o, int argc, char **argv)
{
	int rc = u_option_parse(&tool, argc, argv, o);

	if (rc != U_OPTION_GO_ON)
		return rc;
	o->program = argv + optind;
	if (!o->program[0] && !o->explain)
		return u_option_refuse(&tool, "no program is named");
	return rc;
}

/* ---- the environment ---- */

/* Sets a variable; does nothing for NULL.  False: no memory. */
static bool put(const char *name, const char *value)
{
	return !value || setenv(name, value, 1) == 0;
}

/* Reads the number of "hostN" or "N".  False: it is neither. */
static bool emulated_number(const char *host, unsigned int *number)
{
	uint64_t n;

	if (strncmp(host, "host", 4) == 0)
		host += 4;
	if (u_option_number(host, false, 0, 65533, &n) != 0)
		return false;
	*number = (unsigned int)n;
	return true;
}

/*
 * The address that stands for the host: an IPv4 one that the map gives it without a range, or that of an emulated host.
 * False: there is none.
 */
static bool address_of(const struct vs_env *env, const char *host, struct vs_addr *out)
{
	unsigned int number;
	size_t i;

	for (i = 0; i < env->rules.mapped; i++) {
		if (env->rules.map[i].bits == 128 && strcmp(env->rules.map[i].host, host) == 0 &&
		    vs_addr_is_v4(&env->rules.map[i].addr)) {
			*out = env->rules.map[i].addr;
			return true;
		}
	}
	return emulated_number(host, &number) && vs_emulated_addr(number, out);
}

/*
 * Makes the program, and `env`, one of the host in --host: 0, or the exit status, after an error line if that has no
 * address, without one if there is no memory.
 */
static int set_host(const struct vr_options *o, struct vs_env *env)
{
	char text[64];

	if (!address_of(env, o->host, &env->address))
		return u_option_refuse(&tool,
				       "--host '%.80s' should be hostN or N, or have an IPv4 "
				       "address of its own in --map",
				       o->host);
	vs_addr_text(&env->address, text, sizeof(text));
	env->bound = true;
	return put("VIADUCT_HOST", o->host) && put(VS_ENV_BIND, text) ? 0 : 1;
}

int vr_options_apply(const struct vr_options *o, struct vs_env *env)
{
	char error[VS_ENV_ERROR];

	if (!put("VIADUCT_FABRIC", o->fabric) || !put(VS_ENV_PROMOTE, o->promote) ||
	    !put(VS_ENV_RULES, o->rules) || !put(VS_ENV_MAP, o->map) ||
	    !put(VS_ENV_SERVICE, o->service) || !put(VS_ENV_PLACE, o->place) ||
	    !put(VS_ENV_LOOPBACK, o->loopback ? "1" : NULL)) {
		fprintf(stderr, "vi_run: no memory for the environment\n");
		return 1;
	}
	if (vs_env_read(env, error) != 0) {
		fprintf(stderr, "vi_run: %s\n", error);
		return USAGE;
	}
	if (env->affinity[0] && !put("VIADUCT_AFFINITY", env->affinity)) {
		fprintf(stderr, "vi_run: no memory for the environment\n");
		return 1;
	}
	return o->host ? set_host(o, env) : 0;
}
