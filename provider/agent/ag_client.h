/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of this host that are connected to the agent, each with a queue of messages to it.
 *
 * A client that is to go is only marked (ag_client_drop()): it is freed when the present event has
 * been handled (ag_session_reap()).
 */
#ifndef AG_CLIENT_H
#define AG_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "ag_holder.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_state.h"
#include "port.h"
#include "w_ctl.h"

#define AG_CLIENT_CONNS_MAX 65536u

/* A process that has not said HELLO for so long is dropped. */
#define AG_HELLO_NS (10000 * INT64_C(1000000))
/* Time between attempts to send messages for which the kernel had no room. */
#define AG_FLUSH_NS (10 * INT64_C(1000000))

/* A tool's request for the counters of a process, which has not answered yet. */
struct ag_question {
	uint32_t nic; /* id of the process's client; 0: none was asked */
	uint64_t token;
};

struct ag_client {
	struct ag_list node; /* of agent->clients */
	struct ag_agent *agent;
	int sock;
	/* readable when the process ends, even if a forked child keeps the socket; -1: none */
	int pidfd;
	uint32_t index; /* in agent->client_slot */
	uint32_t id;
	uint32_t db_bit;
	uint32_t kind; /* enum w_kind; 0 before HELLO */
	uid_t uid;
	pid_t pid;
	char program[W_NAME_MAX];
	struct ag_holders holders;
	bool counted; /* it counts for `holders`, until it is gone, so that the next client has room */
	bool gone;    /* to be freed when the present event has been handled */
	bool left;    /* the process has hung up or ended; it uses nothing any more */
	bool leaving;	 /* its socket is closed when the queue is empty */
	bool paused;	 /* not read until the links' queues are shorter */
	uint32_t events; /* for which the socket is watched */
	int64_t hello_until;

	/* the queue */
	struct ag_list queue; /* of struct ag_msg */
	uint32_t queue_len;
	uint32_t queue_fds; /* descriptors in it */
	int64_t flush_at;   /* when to try again, after the kernel had no room; 0: it had */
	uint64_t missed;    /* messages of other processes that it was not sent */
	/* link generation of the port that it was told about, + 1; 0: none */
	uint32_t port_sent[PORT_PER_HOST];
	int view_fd[PORT_PER_HOST]; /* a descriptor of its view, to end that; -1: none */

	/* its objects; each list belongs to the unit for such objects */
	struct ag_list conns, listens, allocs;
	uint32_t conn_count, pending_count, listen_count, alloc_count, share_count;
	uint32_t alloc_id; /* ag_mem.c: the id given last */

	/* ag_listing.c: a tool's requests, by the index of the process that was asked for its counters */
	struct ag_question *questions;
	uint32_t question_slots;
};

/*
 * Makes a client of a process that is allowed to be one, and takes over `sock`.  0, or -EDQUOT (the process or its
 * user has too many), -ENOSPC or -ENOMEM; then the socket still belongs to the caller.
 */
int ag_client_new(struct ag_agent *a, int sock, const struct ucred *cred);

/*
 * Frees a client that has no connections, waiters or memory any more, with the messages that were not sent, and closes
 * its socket.
 */
void ag_client_free(struct ag_client *c);

/*
 * Marks a client to be freed by ag_session_reap(); from then on it does not count for its process and user.  `why` is
 * logged, unless it is NULL.  Does nothing for a client that is marked.
 */
void ag_client_drop(struct ag_client *c, const char *why);

/* Marks a client to be freed whose process has hung up, or ended. */
void ag_client_left(struct ag_client *c);

/*
 * Sets the events for which its socket is watched, by its state and its queue; to be called when these change.  A
 * client that cannot be watched is dropped.
 */
void ag_client_watch(struct ag_client *c);

/*
 * Sends a copy of a message, or queues it while the socket has no room, and takes over the descriptors in any
 * case.  Nothing is sent to a client that is marked to be freed.  A client that does not read, so that too many
 * messages or descriptors wait, or for whose message there is no memory, is dropped; if too many descriptors wait for
 * its user, the user's client with most of them.
 */
void ag_client_send(struct ag_client *c, const void *msg, const int *fds, unsigned int nfds);

/* Sends a refusal, or the result of a request, of that type; if `text` is NULL, with the text of the status. */
void ag_client_refuse(struct ag_client *c, enum w_ctl_type type, uint64_t token,
		      enum w_status status, const char *text);

/*
 * May it be sent a message of another process?  False, and counted, while many messages wait for
 * it: other processes can send any number, and a process that reads slowly must not be dropped for
 * that.
 */
bool ag_client_hears(struct ag_client *c);

/*
 * Tells the client about a port, by W_PORT with the descriptors of a view, unless it was told since the link came up.
 * An earlier view is ended first.  0; or -errno when there are no descriptors for it: the next call tries again.
 */
int ag_client_port(struct ag_client *c, struct ag_link *l);

/* May its process have so many more bytes of the window of `l`?  Logs it if not. */
bool ag_client_may_use(struct ag_client *c, const struct ag_link *l, uint64_t bytes);

/*
 * Allocates a slice of the window of `l` for its process; the caller counts it for the process and the window.  0,
 * -EDQUOT (it may not have so much) or another -errno; the log says why.
 */
int ag_client_slice(struct ag_client *c, const struct ag_link *l, uint64_t bytes,
		    struct port_slice *out);

/* The socket has room: sends queued messages. */
void ag_client_writable(struct ag_client *c);

/* Reads clients again that were paused, if the queues of all links but self are short; else does nothing. */
void ag_client_resume(struct ag_agent *a);

/*
 * Sends messages for which the kernel had no room, and drops processes that send no HELLO.  Returns
 * the next deadline.
 */
int64_t ag_client_timers(struct ag_agent *a, int64_t now);

#endif
