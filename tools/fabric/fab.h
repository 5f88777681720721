/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of vi_fabric on all agents of a fabric. */
#ifndef FAB_H
#define FAB_H

#include <json-c/json.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cl_client.h"

/*
 * Time for a process to end.  It may get little processor time, and nothing of it can be seen until it has ended, so
 * the limit is one of time: it bounds the wait for one that hangs.  An agent that is to stop gets signals then, at last
 * SIGKILL, by which nothing is lost, since the kernel frees what the agent has.
 */
#define FAB_END_MS 30000

struct fabric {
	uid_t owner;
	char name[64];
};

/* ---- fab_end.c ---- */

/*
 * Asks the agent to leave and waits until its process has ended.  Ends one that does not answer, or
 * cannot, by signals.  Returns 0, -ENODEV when there is none, or another error.
 */
int fab_stop_host(const struct fabric *f, unsigned int host, char *error);

/*
 * Stops the agents of hosts 0..hosts - 1.  Returns how many it stopped, or the first error, after
 * which it stopped the others too.
 */
int fab_stop_hosts(const struct fabric *f, unsigned int hosts, char *error);

/* Ends an agent started on demand if no program has a NIC there; else `error` names the program. */
int fab_leave(struct cl_agent *agent, char *error);

/* ---- fab_status.c ---- */

/* Writes that the fabric has no agent. */
void fab_not_up(const struct fabric *f, char *error);

/* Gets the items of a list as an array; refuses an answer of the agent that is not JSON. */
struct json_object *fab_list(struct cl_agent *agent, enum w_list_what what);

const char *fab_text(struct json_object *o, const char *key);

/*
 * Gets all hosts, with the ports and processes of those whose agents answer.  NULL when no agent
 * does, with the reason in `error`.
 */
struct json_object *fab_status(const struct fabric *f, char *error);

/* Prints the status.  Returns true if every agent answers and every link is up. */
bool fab_status_print(struct json_object *status, bool json);

#endif
