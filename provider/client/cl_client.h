/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection of a process to its host's agent: finding the host and the address of its agent,
 * starting an agent when there is none, and small synchronous requests for tools.
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
#define CL_HOSTS_MAX 64u  /* host ids that are tried when any running agent is enough */

/* A connection to an agent, past HELLO and WELCOME. */
struct cl_agent {
	int sock;		     /* blocking SOCK_SEQPACKET */
	int doorbells_fd, status_fd; /* the host's, for port_irq_open(); -1 for tools */
	uid_t owner;
	struct w_welcome welcome;
	uint64_t next_token; /* for the requests below */
	bool silent;	     /* it did not answer a request in time: no other is made */
	int patience_ms; /* time in which it has to answer; 0: the limit of cl_name() and the others */
};

/* The time to wait for agents on a machine that may be busy with other things. */
struct cl_patience {
	int ms; /* the wait ends when none of the awaited agents has answered for so long */
	bool (*stop)(void); /* called several times a second; if true, the wait ends */
};

/* The result of greeting the agent of one host. */
struct cl_greeted {
	unsigned int host;
	int rc;		       /* result of cl_open_host() */
	pid_t pid;	       /* the process that listens there; -1: none, or not known */
	struct cl_agent agent; /* if rc is 0 */
	char error[CL_ERROR_MAX];
};

/*
 * Connects as `kind` (W_KIND_NIC or W_KIND_TOOL) to the agent of the host that `device` means.  In
 * order: the aliases of VIADUCT_DEVICE, the agents' device aliases and host names, the default NIC
 * (VIADUCT_HOST, or host 0) unless VIADUCT_DEFAULT_NIC is no; NULL or "" means the default NIC.
 * Starts an agent when the fabric is the caller's own, has none, and VIADUCT_AGENT allows it.
 * Returns 0, or -EINVAL (a bad variable), -ENODEV (no such device or host), -EHOSTDOWN (no agent
 * that can be reached or started, that answers, or that takes this user), -EPROTONOSUPPORT (another
 * version), -EMFILE, -ENFILE or -ENOMEM, with one line in `error` (CL_ERROR_MAX bytes).
 */
int cl_open(const char *device, uint32_t kind, struct cl_agent *out, char *error);

/*
 * Connects to the agent of host `host` of a fabric; starts no agent.  Returns 0, or -ENODEV (no
 * agent there), -EACCES, -ETIMEDOUT, -EPIPE or another error, with one line in `error`; then `out` is closed.
 */
int cl_open_host(uid_t owner, const char *fabric, unsigned int host, uint32_t kind,
		 struct cl_agent *out, char *error);

/* Connects a tool to the first agent of a fabric that answers; starts no agent.  Returns as cl_open_host() does. */
int cl_open_some(uid_t owner, const char *fabric, struct cl_agent *out, char *error);

/*
 * Greets the agents of the hosts 0..hosts - 1, of CL_HOSTS_MAX at most, as a tool, all at once, so that all that do not
 * answer cost one time-out in total; the time of visits does not count.  `visit` is called for each once, also for
 * those without an agent, in the order of their results; its `agent` is closed then, unless `visit` has taken it and
 * set its `sock` to -1.  Ends when `visit` returns non-zero, and returns this value, else 0.
 */
int cl_greet_all(uid_t owner, const char *fabric, unsigned int hosts,
		 int (*visit)(void *arg, struct cl_greeted *g), void *arg);

/*
 * As cl_greet_all(), for the agents of `count` hosts, but waits longer: it gives up when no agent has answered for
 * `patience->ms`.  Requests to the agents that answer have that much time, too.  -EINTR: `patience->stop` ended the
 * wait, and `visit` was not called for the hosts without a result.
 */
int cl_greet_patiently(uid_t owner, const char *fabric, const unsigned int *hosts,
		       unsigned int count, const struct cl_patience *patience,
		       int (*visit)(void *arg, struct cl_greeted *g), void *arg);

/* Returns the process id of the agent; -1: not known. */
pid_t cl_agent_pid(const struct cl_agent *agent);

/*
 * Returns the id of the process that listens as host `host` now, whether it answers or not, if it is the owner's or
 * root's; -1: there is none, or its queue is full.
 */
pid_t cl_listener_pid(uid_t owner, const char *fabric, unsigned int host);

/* Closes the connection; accepts one that failed to open. */
void cl_close(struct cl_agent *agent);
/*
 * Closes a connection to an agent without waiting for any process, even if the agent sent
 * descriptors.
 */
void cl_hang_up(int sock);

/*
 * Finds the path of viaductd: VIADUCT_AGENT, near the running executable, near the library (in its build tree), the
 * installed one, PATH.  Returns 0, -ENOENT (also if VIADUCT_AGENT is set and cannot be executed: no other place is
 * tried then), or -EPERM when VIADUCT_AGENT is "none".
 */
int cl_agent_path(char *path, size_t size);

/*
 * Starts viaductd with `args` (NULL-terminated, without the program's name) as a daemon of its own: new session, it
 * has no descriptors of the caller, leaves no zombie and causes no SIGCHLD.  Waits until it listens, for up to 30
 * seconds.  Returns 0; 1 when another agent already listens there; or -ETIMEDOUT, -ENODEV (it does not start) or
 * another -errno, with one line in `error`.
 */
int cl_spawn(const char *path, const char *const *args, char *error);

/*
 * One request, one answer, five seconds at most, or agent->patience_ms; of tools, and of a process that opens a NIC,
 * which answers W_COUNT meanwhile.  They return 0, -ENOENT (unknown, or past the last), -ETIMEDOUT (later requests on
 * the connection then fail at once), -EPIPE, -EPROTO or another -errno; `out` is set only with 0.  cl_name(): `index`
 * 0, or W_NAME_DEVICE for the name of a device.  cl_route(): 0 also for a host that cannot be reached, or that there
 * is not; then `out->reachable` is 0.
 */
int cl_name(struct cl_agent *agent, const char *name, uint32_t index, struct w_name *out);
int cl_addr_name(struct cl_agent *agent, const uint8_t host[W_HOST_ADDR_LEN], struct w_name *out);
int cl_route(struct cl_agent *agent, const uint8_t host[W_HOST_ADDR_LEN], struct w_route *out);
/* Asks for item `index` of a list, as the text of a JSON object; -ENOENT past the last, and no text. */
int cl_list(struct cl_agent *agent, enum w_list_what what, uint32_t index, char text_out[400]);
/*
 * cl_list() in two steps, which do not wait: cl_list_ask() sends the request, cl_list_hear() gets its answer; -EAGAIN
 * if that has not come or another message has: to be called again.  No other request may be made between them.  An
 * earlier -ETIMEDOUT does not count here.
 */
int cl_list_ask(struct cl_agent *agent, enum w_list_what what, uint32_t index);
int cl_list_hear(struct cl_agent *agent, char text_out[400]);
/*
 * Asks all processes at once for the counters of the NICs 0..n - 1 of the host.  `out[i]` has index 1 when NIC i
 * answered, 0 when there is none or its process did not answer in five seconds, which is no error.  Returns 0, -EPIPE,
 * -ETIMEDOUT (the agent did not take all requests) or another -errno; then `out` has the answers so far.
 */
int cl_count(struct cl_agent *agent, uint32_t n, struct w_counted *out);
/* Asks for what only the owner or root may.  0; -EACCES, -EINVAL or another -errno, with one line in `error`. */
int cl_admin(struct cl_agent *agent, enum w_admin_verb verb, const char *name, char *error);

#endif
