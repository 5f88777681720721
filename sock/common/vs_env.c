// SPDX-License-Identifier: BSD-2-Clause
#include "vs_env.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "VIADUCT_SOCK_"
#define KEPT_MAX 64

struct vs_env vs_env;

/* The value of a variable; NULL: it is not set, or empty, or the program has more rights than its user. */
static const char *variable(const char *name)
{
	const char *text = secure_getenv(name);

	return text && text[0] ? text : NULL;
}

/* Writes the error line; returns -EINVAL. */
static int refuse(char *error, const char *name, const char *part, const char *expected)
{
	snprintf(error, VS_ENV_ERROR, "%s: «%s» should be %s", name, part, expected);
	return -EINVAL;
}

/* Reads env->promote, `auto` where it is not set.  0, or -EINVAL with a line in `error`. */
static int read_promote(struct vs_env *env, char *error)
{
	const char *text = variable(VS_ENV_PROMOTE);

	env->promote = VS_AUTO;
	if (text && !vs_policy_parse(text, &env->promote))
		return refuse(error, VS_ENV_PROMOTE, text, "auto, eager or never");
	return 0;
}

/* Reads the rules, and the map from addresses to hosts, into env->rules.  0, or -EINVAL with a line in `error`. */
static int read_lists(struct vs_env *env, char *error)
{
	const char *rules = variable(VS_ENV_RULES), *map = variable(VS_ENV_MAP);
	char bad[VS_BAD_MAX];

	if (rules && vs_rules_parse(&env->rules, rules, bad) != 0)
		return refuse(error, VS_ENV_RULES, bad,
			      "[program=PATTERN,][address=ADDRESS[/BITS],][port=N[-M],]POLICY");
	if (map && vs_map_parse(&env->rules, map, bad) != 0)
		return refuse(error, VS_ENV_MAP, bad, "ADDRESS[/BITS] HOST");
	return 0;
}

/*
 * Reads the IPv4 address that stands for this host into env->address, and sets env->bound.  Unset is no error: 0, or
 * -EINVAL with a line in `error`.
 */
static int read_bind(struct vs_env *env, char *error)
{
	const char *text = variable(VS_ENV_BIND);
	struct sockaddr_in v4 = { .sin_family = AF_INET };

	if (!text)
		return 0;
	if (inet_pton(AF_INET, text, &v4.sin_addr) != 1)
		return refuse(error, VS_ENV_BIND, text, "an IPv4 address");
	env->bound = vs_addr_of((struct sockaddr *)&v4, sizeof(v4), &env->address);
	return 0;
}

/*
 * Reads the pollers and the places of threads.  0, or -EINVAL with a line in `error`, as where VIADUCT_AFFINITY says
 * other places.
 */
static int read_service(struct vs_env *env, char *error)
{
	const char *service = variable(VS_ENV_SERVICE), *place = variable(VS_ENV_PLACE);
	char bad[VS_SERVICE_BAD];

	if (service && vs_service_parse(service, &env->pollers) != 0)
		return refuse(error, VS_ENV_SERVICE, service, VS_SERVICE_EXPECTED);
	if (place && vs_place_parse(place, env->affinity, bad) != 0)
		return refuse(error, VS_ENV_PLACE, bad, VS_PLACE_EXPECTED);
	if (place && variable("VIADUCT_AFFINITY") &&
	    strcmp(variable("VIADUCT_AFFINITY"), env->affinity) != 0) {
		snprintf(error, VS_ENV_ERROR,
			 "%s and VIADUCT_AFFINITY say both where threads run; set one",
			 VS_ENV_PLACE);
		return -EINVAL;
	}
	return 0;
}

/*
 * Refuses variables that begin with VIADUCT_SOCK_ and are none: they were mistyped, and would have no effect.  0, or
 * -EINVAL with a line in `error` that names the first.
 */
static int check_names(char *error)
{
	static const char *const names[] = { VS_ENV_PROMOTE, VS_ENV_RULES,    VS_ENV_MAP,
					     VS_ENV_BIND,    VS_ENV_LOOPBACK, VS_ENV_STATS,
					     VS_ENV_SERVICE, VS_ENV_PLACE,    VS_ENV_ALL };
	size_t i, n;
	char **e;

	for (e = environ; e && *e; e++) {
		n = strcspn(*e, "=");
		if (strncmp(*e, PREFIX, strlen(PREFIX)) != 0)
			continue;
		for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			if (strlen(names[i]) == n && strncmp(*e, names[i], n) == 0)
				break;
		}
		if (i < sizeof(names) / sizeof(names[0]))
			continue;
		snprintf(error, VS_ENV_ERROR, "%.*s is not a variable of Viaduct", (int)n, *e);
		return -EINVAL;
	}
	return 0;
}

int vs_env_read(struct vs_env *env, char error[VS_ENV_ERROR])
{
	const char *loopback = variable(VS_ENV_LOOPBACK), *host = variable("VIADUCT_HOST");
	const char *all = variable(VS_ENV_ALL);
	size_t i;
	int rc;

	memset(env, 0, sizeof(*env));
	snprintf(env->program, sizeof(env->program), "%s", program_invocation_short_name);
	snprintf(env->host, sizeof(env->host), "%s", host ? host : "0");
	if (loopback && strcmp(loopback, "0") != 0 && strcmp(loopback, "1") != 0)
		return refuse(error, VS_ENV_LOOPBACK, loopback, "0 or 1");
	env->loopback = loopback && loopback[0] == '1';
	if (all && strcmp(all, "0") != 0 && strcmp(all, "1") != 0)
		return refuse(error, VS_ENV_ALL, all, "0 or 1");
	env->all = all && all[0] == '1';
	rc = check_names(error);
	if (rc == 0)
		rc = read_promote(env, error);
	if (rc == 0)
		rc = read_lists(env, error);
	if (rc == 0)
		rc = read_bind(env, error);
	if (rc == 0)
		rc = read_service(env, error);
	env->possible = env->promote != VS_NEVER;
	for (i = 0; i < env->rules.rules; i++)
		env->possible |= env->rules.rule[i].policy != VS_NEVER;
	return rc;
}

static char *kept[KEPT_MAX];
static size_t kept_count;

void vs_env_keep(void)
{
	char **e;

	for (e = environ; e && *e && kept_count < KEPT_MAX; e++) {
		if (strncmp(*e, "VIADUCT_", 8) == 0 && (kept[kept_count] = strdup(*e)) != NULL)
			kept_count++;
	}
}

void vs_env_restore(void)
{
	char name[NAME_MAX];
	const char *equals;
	size_t i;

	for (i = 0; i < kept_count; i++) {
		equals = strchr(kept[i], '=');
		if (!equals || (size_t)(equals - kept[i]) >= sizeof(name))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(equals - kept[i]), kept[i]);
		setenv(name, equals + 1, 0);
	}
}

bool vs_env_host(const struct vs_env *env, const struct vs_addr *peer, char host[VS_NAME_MAX])
{
	if (vs_map_host(&env->rules, peer, host))
		return true;
	if (vs_addr_is_loopback(peer)) {
		memcpy(host, env->host, VS_NAME_MAX);
		return env->loopback;
	}
	/* The agents may know the address as an alias, which has no colon. */
	vs_addr_text(peer, host, VS_NAME_MAX);
	return vs_addr_is_v4(peer);
}
