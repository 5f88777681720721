/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to the agent, and the threads that wait for the answers. */
#ifndef NVI_REQ_H
#define NVI_REQ_H

#include "nvi_nic.h"
#include "w_tool.h"

struct nvi_req {
	struct nvi_req *next;
	uint64_t token;
	pthread_cond_t cond;
	struct vi_vi *vi; /* to connect when LINKED comes; NULL: none */
	bool done, cancelled;
	bool opening; /* the control thread is mapping the connection */
	int err;      /* the provider's own failure, when done */
	int fd;	      /* descriptor that came with the answer, or -1 */
	union {
		struct w_ctl_hdr hdr;
		uint8_t bytes[W_CTL_MAX];
		struct w_arrived arrived;
		struct w_linked linked;
		struct w_refused refused;
		struct w_alloc alloc;
		struct w_name name;
		struct w_route route;
		struct w_listed listed;
		struct w_token token_only;
	} answer;
};

/*
 * Fills in the header of a message and sends it to the agent, without waiting unless thousands are held already; the
 * agent gets messages in the order of these calls.  0, -ENOMEM, or -ENOTCONN: the agent is gone.
 */
int nvi_ctl_send(struct nvi_nic *nic, void *msg, enum w_ctl_type type, uint32_t len);
/* As nvi_ctl_send(), but holds nothing for later: -EAGAIN if the socket has no room, else the socket's -errno. */
int nvi_ctl_try(struct nvi_nic *nic, void *msg, enum w_ctl_type type, uint32_t len);
/* Sends a message that has only the name of a connection (or an index, for W_PORT_AGAIN); a failure is not told. */
void nvi_ctl_send_conn(struct nvi_nic *nic, enum w_ctl_type type, uint64_t conn);

/*
 * Enters a request under a new token, req->token, which the caller puts into its message; `vi` may be NULL.  -ENOTCONN
 * when the agent is gone: then there is no request to end.
 */
int nvi_req_begin(struct nvi_nic *nic, struct nvi_req *req, struct vi_vi *vi);
/*
 * Wait for the answer.  Return its 0 or -errno; -EINPROGRESS when there is none at the deadline.
 * Cancellation of the thread is off; while nvi_req_wait_cancel() waits it is in the state `cancel`,
 * which the thread had before.
 */
int nvi_req_wait(struct nvi_nic *nic, struct nvi_req *req, int64_t deadline);
int nvi_req_wait_cancel(struct nvi_nic *nic, struct nvi_req *req, int64_t deadline, int cancel);
/*
 * Removes the request from the table, when no connection is being opened for it any more (it waits for that), and
 * closes the descriptor of the answer unless req->fd was set to -1.  Takes ctl_lock.
 */
void nvi_req_end(struct nvi_nic *nic, struct nvi_req *req);
/* Returns the request with this token, or NULL.  Caller holds ctl_lock. */
struct nvi_req *nvi_req_find(struct nvi_nic *nic, uint64_t token);
/*
 * Wakes the thread that waits for the request; `answer`: W_CTL_MAX bytes, or NULL.  Caller holds
 * ctl_lock.
 */
void nvi_req_finish(struct nvi_req *req, const void *answer, int err);
/*
 * Begins a request, sends it and waits for the answer: for requests that the agent answers at once.  0: the answer is
 * in req->answer, and the caller ends the request; on failure, also -ETIMEDOUT after 5 s, it was ended.
 * `token_in_msg`: the member of `msg` that gets the token.
 */
int nvi_ctl_call(struct nvi_nic *nic, struct nvi_req *req, void *msg, enum w_ctl_type type,
		 uint32_t len, uint64_t *token_in_msg);
/* Returns the -errno for a status of the agent, 0 for W_SUCCESS, -EPROTO for an unknown one. */
int nvi_status_errno(uint32_t status);

#endif
