/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a process reaches its host's agent: which host, where its agent listens,
 * starting one when there is none, and small synchronous requests for tools.
 */
#ifndef CL_CLIENT_H
#define CL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "w_addr.h"
#include "w_ctl.h"
#include "w_tool.h"

#define CL_ERROR_MAX 256
#define CL_FDS_LOADED 10u /* descriptors without which a program may end before it can say why */
#define CL_HOSTS_MAX 64u  /* host ids that are tried when any living agent will do */

/* A connection to an agent, past HELLO and WELCOME. */
struct cl_agent {
	int sock;		     /* blocking SOCK_SEQPACKET */
	int doorbells_fd, status_fd; /* of the host, for port_irq_open(); -1 for tools */
	uid_t owner;
	struct w_welcome welcome;
	uint64_t next_token; /* of the requests below */
	bool silent;	     /* it did not answer one of them in time: no other is made */
	int patience_ms;     /* in which it has to answer; 0: as cl_name() and the like say */
};

/* How long agents are waited for on a machine that may be busy with other things. */
struct cl_patience {
	int ms;		    /* in which none of those that are waited for has answered */
	bool (*stop)(void); /* asked several times a second; if true, the wait ends */
};

/* The result of greeting the agent of one host. */
struct cl_greeted {
	unsigned int host;
	int rc;		       /* as of cl_open_host() */
	pid_t pid;	       /* of the process that listens there; -1: none, or not known */
	struct cl_agent agent; /* if rc is 0 */
	char error[CL_ERROR_MAX];
};

/*
 * Connects as `kind` (W_KIND_NIC or W_KIND_TOOL) to the agent of the host that
 * `device` means.  In order: the aliases of VIADUCT_DEVICE, the agents' device
 * aliases and host names, the default NIC (VIADUCT_HOST, or host 0) unless
 * VIADUCT_DEFAULT_NIC is no; NULL or "" is the default NIC.  Starts an agent when
 * the fabric is the caller's own, has none, and VIADUCT_AGENT allows it.
 * Returns 0, or -EINVAL (a bad variable), -ENODEV (no such device or host), -EHOSTDOWN
 * (no agent that can be reached or started, that answers, or that takes this user),
 * -EPROTONOSUPPORT (another version), -EMFILE, -ENFILE or -ENOMEM, with one line in
 * `error` (CL_ERROR_MAX bytes).
 */
int cl_open(const char *device, uint32_t kind, struct cl_agent *out, char *error);

/*
 * Connects to the agent of host `host` of a fabric; starts nothing.  Returns 0, or -ENODEV (no
 * agent there), -EACCES, -ETIMEDOUT, -EPIPE and the like.
 */
int cl_open_host(uid_t owner, const char *fabric, unsigned int host, uint32_t kind,
		 struct cl_agent *out, char *error);

/* The first agent of a fabric that answers, for a tool; starts nothing.  Returns as cl_open_host() does. */
int cl_open_some(uid_t owner, const char *fabric, struct cl_agent *out, char *error);

/*
 * Greets the agents of the hosts 0..hosts - 1 as a tool, all at once, so that those that do not
 * answer cost one time-out together.  `visit` is called for each once, in the order of their answers;
 * its `agent` is closed then.  Ends, and returns it, when `visit` returns non-zero.
 */
int cl_greet_all(uid_t owner, const char *fabric, unsigned int hosts,
		 int (*visit)(void *arg, struct cl_greeted *g), void *arg);

/*
 * As cl_greet_all(), for the agents of `count` hosts, each of which is waited for as long as others answer.  Requests
 * to the agents that answer have that much time, too.  -EINTR: it was stopped.
 */
int cl_greet_patiently(uid_t owner, const char *fabric, const unsigned int *hosts,
		       unsigned int count, const struct cl_patience *patience,
		       int (*visit)(void *arg, struct cl_greeted *g), void *arg);

/* The agent's process; -1: it does not tell. */
pid_t cl_agent_pid(const struct cl_agent *agent);

/*
 * The process that listens as host `host` now, whether it answers or not, if it is the owner's or root's;
 * -1: there is none, or its queue is full.
 */
pid_t cl_listener_pid(uid_t owner, const char *fabric, unsigned int host);

/* Accepts one that failed to open. */
void cl_close(struct cl_agent *agent);
/*
 * Closes a connection to an agent without waiting for any process, even if the agent sent
 * descriptors.
 */
void cl_hang_up(int sock);

/*
 * Path of viaductd: VIADUCT_AGENT, beside the running executable, in the build
 * tree around the library, the installed one, PATH.  Returns 0, -ENOENT, or
 * -EPERM when VIADUCT_AGENT is "none".
 */
int cl_agent_path(char *path, size_t size);

/*
 * Starts viaductd with `args` (NULL-terminated, without the program's name) as a
 * daemon of its own: new session, no descriptors of the caller's, no zombie, no
 * SIGCHLD.  Waits until it listens.  Returns 0, 1 when another agent listens there
 * already, -ETIMEDOUT, or another error with one line in `error`.
 */
int cl_spawn(const char *path, const char *const *args, char *error);

/*
 * One request, one answer, five seconds at most; for W_KIND_TOOL connections.
 * They return 0, -ENOENT (unknown, or past the last), -EACCES, -ETIMEDOUT (from then on at once),
 * -EPIPE, -EPROTO.
 */
int cl_name(struct cl_agent *agent, const char *name, uint32_t index, struct w_name *out);
int cl_addr_name(struct cl_agent *agent, const uint8_t host[W_HOST_ADDR_LEN], struct w_name *out);
int cl_route(struct cl_agent *agent, const uint8_t host[W_HOST_ADDR_LEN], struct w_route *out);
/* Item `index` of a list, as the text of a JSON object; -ENOENT past the last. */
int cl_list(struct cl_agent *agent, enum w_list_what what, uint32_t index, char text_out[400]);
/*
 * As cl_list() in two steps, which do not wait: the answer to the last request, -EAGAIN if that has not come or another
 * message has.  Nothing else may be asked before.
 */
int cl_list_ask(struct cl_agent *agent, enum w_list_what what, uint32_t index);
int cl_list_hear(struct cl_agent *agent, char text_out[400]);
/*
 * Counters of the NICs 0..n - 1 of the host, from their processes, which are asked at once.  `out[i]` has
 * index 1 when NIC i answered, 0 when there is none or its process did not.  Returns 0 or -EPIPE and the like.
 */
int cl_count(struct cl_agent *agent, uint32_t n, struct w_counted *out);
int cl_admin(struct cl_agent *agent, enum w_admin_verb verb, const char *name, char *error);

#endif
