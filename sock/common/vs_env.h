/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings from the environment: the variables that vi_run sets. */
#ifndef VS_ENV_H
#define VS_ENV_H

#include <stdbool.h>

#include "vs_rules.h"
#include "vs_service.h"

#define VS_ENV_PROMOTE "VIADUCT_SOCK_PROMOTE"	/* auto, eager, never */
#define VS_ENV_RULES "VIADUCT_SOCK_RULES"	/* see vs_rules.h */
#define VS_ENV_MAP "VIADUCT_SOCK_MAP"		/* likewise */
#define VS_ENV_BIND "VIADUCT_SOCK_BIND"		/* the address that stands for this host */
#define VS_ENV_LOOPBACK "VIADUCT_SOCK_LOOPBACK" /* 1: also within this host, at 127.0.0.1 and ::1 */
#define VS_ENV_SERVICE "VIADUCT_SOCK_SERVICE"	/* see vs_service.h */
#define VS_ENV_PLACE "VIADUCT_SOCK_PLACE"	/* likewise */
#define VS_ENV_STATS "VIADUCT_SOCK_STATS"	/* file of counters */
#define VS_ENV_ALL "VIADUCT_SOCK_ALL"		/* 1: there is a filter, see vs_all.h */

struct vs_env {
	enum vs_policy promote;
	bool possible; /* some rule or the policy lets a connection be promoted */
	bool loopback;
	bool all;   /* calls are marked for the filter of vi_run --all */
	bool bound; /* to `address` */
	struct vs_addr address;
	unsigned int pollers;
	char affinity[VS_AFFINITY_MAX]; /* for VIADUCT_AFFINITY; "": nothing was asked for */
	char program[VS_NAME_MAX];
	char host[VS_NAME_MAX]; /* of this process: from VIADUCT_HOST, else 0 */
	struct vs_rules rules;
};

extern struct vs_env vs_env;

#define VS_ENV_ERROR 320
/*
 * Reads the environment; all earlier values are lost.  0; or -EINVAL, with a line in `error` that says what is wrong:
 * then `env` has some of the values, and is not to be used.
 */
int vs_env_read(struct vs_env *env, char error[VS_ENV_ERROR]);

/*
 * The name by which the fabric knows the host of a peer: from the map, this host's for a loopback address, or the IPv4
 * address as text, which the agents may know.  False: none, or loopback stays with the kernel; `host` may be written
 * even so.
 */
bool vs_env_host(const struct vs_env *env, const struct vs_addr *peer, char host[VS_NAME_MAX]);

/*
 * Some programs take all variables out of their environment before the first connection, when the fabric's are read:
 * vs_env_keep(), called once, copies those that begin with VIADUCT_, and vs_env_restore() puts them back where they are
 * missing.
 */
void vs_env_keep(void);
void vs_env_restore(void);

#endif
