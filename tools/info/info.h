/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vi_info in three steps: collect into JSON objects, one per section; print those as JSON or as
 * lines "key: value".  Text and --json are made from one set of objects.
 */
#ifndef INFO_H
#define INFO_H

#include <json-c/json.h>
#include <stdbool.h>

#include "cl_client.h"
#include "rt_topo.h"

#define INFO_SCHEMA "viaduct.info"
#define INFO_SCHEMA_VERSION 1

/* ---- collect: the caller puts the object; NULL when out of memory ---- */

/* fabric, owner, own host. */
json_object *info_fabric(const struct cl_agent *agent);
/* A whole list of the agent. */
json_object *info_list(struct cl_agent *agent, enum w_list_what what);
/* The ports of the agent's host, and the other names of hosts and devices. */
json_object *info_ports(struct cl_agent *agent);
json_object *info_aliases(struct cl_agent *agent);
/* The hosts with the path to each. */
json_object *info_hosts(struct cl_agent *agent);
/* Adds to each host whether its own agent answers, or why not. */
void info_greet_hosts(const struct cl_agent *agent, json_object *hosts);
/* Attributes of the NIC that `device` opens (NULL: the default); NULL when it cannot be opened. */
json_object *info_nic(const char *device);
/* Every VIADUCT_* variable; `bad_out`: some have values that are refused. */
json_object *info_env(bool *bad_out);
/* The routes to one host, or to all (NULL); NULL when there is no such host. */
json_object *info_explain(struct cl_agent *agent, const char *host);
/*
 * The links, a picture of them, and the transfer threads, from the agent, and the ports of every
 * host, as far as its agent answers; NULL when the agent does not answer.
 */
json_object *info_topology(struct cl_agent *agent);

/* The processors for a program that starts here, and those of the agent's threads; NULL: bad rules. */
json_object *info_placement(struct cl_agent *agent);

/* ---- the network, as an agent knows it ---- */

struct info_net {
	struct rt_topo *topo;
	unsigned int here, hosts;
	char (*name)[W_NAME_MAX]; /* of each host */
	uint8_t *up, *bridges;	  /* a bit per port of each host */
	bool *heard;		  /* else its links are taken to be up */
};

/* Returns non-zero on failure, with the reason on standard error. */
int info_net_open(struct cl_agent *agent, struct info_net *out);
/* Accepts one that failed to open. */
void info_net_close(struct info_net *net);
/* A link by both its ends, the one at `host` first. */
json_object *info_link(const struct info_net *net, unsigned int host, unsigned int port);

/* ---- print ---- */

void info_print_summary(json_object *all);
void info_print_verbose(json_object *all);
void info_print_names(json_object *hosts);
void info_print_env(json_object *env);
void info_print_env_sh(json_object *env);
void info_print_explain(json_object *explain);
void info_print_topology(json_object *topology);
void info_print_placement(json_object *placement);

/* ---- small helpers on JSON ---- */

/* Text of a field, "" when it is missing. */
const char *info_text(json_object *o, const char *key);
int64_t info_int(json_object *o, const char *key);
bool info_bool(json_object *o, const char *key);
json_object *info_array(json_object *o, const char *key);
void info_put_text(json_object *o, const char *key, const char *text);
/* The route to a host, or the reason why there is none. */
void info_put_route(json_object *o, const struct w_route *r);
/* 0 or -errno of the agent's answer. */
int info_route(struct cl_agent *agent, uint16_t id, struct w_route *out);

#endif
