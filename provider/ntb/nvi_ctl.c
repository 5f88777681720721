/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread (vi-ctl) handles the messages that the agent sends.  It alone opens channels and marks
 * them lost, so that the changes of one connection are made in the agent's order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvi_break.h"
#include "nvi_chan.h"
#include "nvi_conn.h"
#include "nvi_ctl.h"
#include "nvi_cut.h"
#include "nvi_given.h"
#include "nvi_req.h"
#include "nvi_resume.h"
#include "nvi_window.h"
#include "u_fd.h"
#include "u_log.h"

/* A message of the agent, with the descriptors that came with it. */
struct incoming {
	union {
		struct w_ctl_hdr hdr;
		uint8_t bytes[W_CTL_MAX];
		struct w_token token;
		struct w_port port;
		struct w_arrived arrived;
		struct w_linked linked;
		struct w_refused refused;
		struct w_lost_msg lost;
		struct w_conn conn;
		struct w_alloc alloc;
		struct w_count count;
		struct w_tell tell;
	} m;
	int fds[W_CTL_FDS];
	unsigned int nfds;
};

/*
 * Takes descriptor i out of the message: it becomes the caller's, and is not closed with the
 * message.  Returns -1 if the message has no descriptor i.
 */
static int take_fd(struct incoming *in, unsigned int i)
{
	int fd = -1;

	if (i < in->nfds) {
		fd = in->fds[i];
		in->fds[i] = -1;
	}
	return fd;
}

/* Closes both descriptors; leaves out one that is -1. */
static void close_fds(int a, int b)
{
	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Passes the answer to the thread that waits for it, with its descriptor.  False: no thread waits.  Takes ctl_lock. */
static bool pass_agent_answer(struct nvi_nic *nic, struct incoming *in, uint64_t token, int err)
{
	struct nvi_req *req;
	bool wanted;

	pthread_mutex_lock(&nic->ctl_lock);
	req = nvi_req_find(nic, token);
	wanted = req != NULL && !req->done;
	if (wanted) {
		if (in->nfds > 0)
			req->fd = take_fd(in, 0);
		nvi_req_finish(req, in->m.bytes, err);
	}
	pthread_mutex_unlock(&nic->ctl_lock);
	return wanted;
}

/* Handles a client's request to connect: rejects it when no thread waits for it any more. */
static void on_arrived(struct nvi_nic *nic, struct incoming *in)
{
	struct nvi_req *req;
	bool wanted;

	pthread_mutex_lock(&nic->ctl_lock);
	req = nvi_req_find(nic, in->m.arrived.token);
	wanted = req != NULL && !req->done;
	if (wanted)
		nvi_req_finish(req, in->m.bytes, 0);
	pthread_mutex_unlock(&nic->ctl_lock);
	if (!wanted)
		nvi_ctl_send_conn(nic, W_REJECT, in->m.arrived.conn);
}

/*
 * Handles allocated memory: frees it if no thread waits for it any more, since no other message
 * would name it again.
 */
static void on_allocated(struct nvi_nic *nic, struct incoming *in)
{
	struct w_alloc msg = { .slice_id = in->m.alloc.slice_id };
	bool made = in->m.alloc.status == W_SUCCESS;

	if (!pass_agent_answer(nic, in, in->m.alloc.token, nvi_status_errno(in->m.alloc.status)) &&
	    made)
		nvi_ctl_send(nic, &msg, W_FREE, sizeof(msg));
}

/* ---- connections ----------------------------------------------------------------------------- */

/*
 * LINKED: the agents have made the connection.  Maps it, confirms it, and wakes the thread that
 * waits.  Closes it at the agent if it is not wanted any more or cannot be mapped.
 */
static void on_linked(struct nvi_nic *nic, struct incoming *in)
{
	const struct w_linked *linked = &in->m.linked;
	struct nvi_req *req;
	int err;

	pthread_mutex_lock(&nic->ctl_lock);
	req = nvi_req_find(nic, linked->token);
	if (req == NULL || req->done || req->cancelled || req->vi == NULL) {
		if (req != NULL && !req->done)
			nvi_req_finish(req, NULL, -ETIMEDOUT);
		pthread_mutex_unlock(&nic->ctl_lock);
		nvi_ctl_send_conn(nic, W_CLOSE, linked->conn);
		return;
	}
	req->opening = true;
	nvi_chan_enter(nic, req->vi->prov, linked->conn);
	pthread_mutex_unlock(&nic->ctl_lock);

	err = nvi_chan_open(nic, req->vi, linked, take_fd(in, 0), take_fd(in, 1));
	if (err == 0) {
		nvi_ctl_send_conn(nic, W_CONFIRM, linked->conn);
	} else {
		nvi_chan_forget(nic, req->vi->prov, linked->conn);
		nvi_ctl_send_conn(nic, W_CLOSE, linked->conn);
	}

	pthread_mutex_lock(&nic->ctl_lock);
	req->opening = false;
	nvi_req_finish(req, in->m.bytes, err);
	pthread_mutex_unlock(&nic->ctl_lock);
}

/*
 * SUSPEND: the path is lost, or there is a shorter one.  Suspends the connection, or cuts it if
 * that fails.
 */
static void on_suspend(struct nvi_nic *nic, uint64_t conn)
{
	struct w_suspended msg = { .conn = conn };
	struct nvi_chan *ch = nvi_chan_find(nic, conn);

	if (ch == NULL)
		return;
	if (nvi_chan_suspend(ch, nic, conn, &msg.consumed) == 0)
		nvi_ctl_send(nic, &msg, W_SUSPENDED, sizeof(msg));
	else
		nvi_cut(nic, ch, conn);
}

/*
 * RESUMED: resumes a suspended connection over its new path, and confirms that; or cuts it, unless the link is down
 * again.
 */
static void on_resumed(struct nvi_nic *nic, struct incoming *in)
{
	const struct w_linked *linked = &in->m.linked;
	struct nvi_chan *ch = nvi_chan_find(nic, linked->conn);
	int fd_in = take_fd(in, 0), fd_out = take_fd(in, 1), err;

	if (ch == NULL) {
		close_fds(fd_in, fd_out);
		return;
	}
	err = nvi_chan_resume(ch, nic, linked, fd_in, fd_out);
	/* The link is down again.  The connection stays suspended: the agent gets no CONFIRM. */
	if (err == -EHOSTUNREACH)
		return;
	if (err != 0) {
		nvi_cut(nic, ch, linked->conn);
		return;
	}
	/* The peer had unmapped this process's memory before it accepted the new path. */
	nvi_given_forget(nic, linked->conn);
	nvi_ctl_send_conn(nic, W_CONFIRM, linked->conn);
	nvi_chan_confirmed(ch, nic, linked->conn);
}

/* LOST: breaks the connection, whose other end is gone; that stores into no window of this process any more. */
static void on_lost(struct nvi_nic *nic, const struct w_lost_msg *lost)
{
	struct nvi_chan *ch = nvi_chan_find(nic, lost->conn);

	if (ch != NULL)
		nvi_chan_lost(ch, nic, lost->conn, (enum w_lost)lost->reason);
	nvi_given_forget(nic, lost->conn);
}

/* TOLD: handles a message about grants from the process at the other end; dropped if there is no such connection. */
static void on_told(struct nvi_nic *nic, struct incoming *in)
{
	struct nvi_chan *ch = nvi_chan_find(nic, in->m.tell.conn);
	int fd = take_fd(in, 0);

	if (ch != NULL)
		nvi_grant_told(nic, ch, &in->m.tell, fd);
	if (fd >= 0)
		close(fd);
}

/* ---- ports and counters ---------------------------------------------------------------------- */

/* Replaces the view of a port by `p`, or by none if that is NULL; connections may still use the old one. */
static void port_replace(struct nvi_nic *nic, uint32_t index, struct nvi_port *p)
{
	struct nvi_port *old;

	u_lock_take(&nic->chan_lock);
	old = nic->ports[index];
	nic->ports[index] = p;
	u_lock_drop(&nic->chan_lock);
	nvi_port_put(old);
}

/*
 * Attaches to a port.  The agent has ended the view that this process had of it before, by which no ring reaches the
 * peer any more: without the new one, paths over that port are refused.  On failure asks the agent for it again.
 */
static void on_port(struct nvi_nic *nic, struct incoming *in)
{
	const struct w_port *msg = &in->m.port;
	char text[U_FD_ERROR];
	struct nvi_port *p;
	int err;

	if (msg->index >= PORT_PER_HOST)
		return;
	p = calloc(1, sizeof(*p));
	err = p == NULL ? -ENOMEM : port_attach(msg->view, in->fds, in->nfds, nic->irq, &p->port);
	/* When this process has no numbers left, a message comes without its descriptors. */
	if (err == -EINVAL && in->nfds == 0)
		err = -EMFILE;
	if (err != 0) {
		free(p);
		port_replace(nic, msg->index, NULL);
		u_log_ratelimited(&nic->unattached, "port %u (%s) cannot be attached: %s",
				  msg->index, msg->view, u_fd_error(-err, text));
		nvi_ctl_send_conn(nic, W_PORT_AGAIN, msg->index);
		return;
	}
	for (unsigned int i = 0; i < in->nfds; i++)
		in->fds[i] = -1;
	atomic_store_explicit(&p->users, 1, memory_order_relaxed);
	p->generation = nvi_port_generation(p);
	port_replace(nic, msg->index, p);
}

/* Sends the counters of the NIC, for which a tool (vi_stat) asks. */
static void on_count(struct nvi_nic *nic, const struct w_count *count)
{
	struct w_counted msg = { .token = count->token, .client = count->client };
	VIPX_COUNTERS c;

	static_assert(sizeof(c) - offsetof(VIPX_COUNTERS, SendsPosted) == sizeof(msg.counters),
		      "the wire carries every counter");
	vi_nic_counters(nic->vi_nic, NULL, &c);
	memcpy(msg.counters, &c.SendsPosted, sizeof(msg.counters));
	nvi_ctl_send(nic, &msg, W_COUNTED, sizeof(msg));
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Handles the message by its type; one of an unknown type is ignored. */
static void dispatch(struct nvi_nic *nic, struct incoming *in)
{
	switch (in->m.hdr.type) {
	case W_PORT:
		on_port(nic, in);
		break;
	case W_ARRIVED:
		on_arrived(nic, in);
		break;
	case W_LINKED:
		on_linked(nic, in);
		break;
	case W_LOST:
		on_lost(nic, &in->m.lost);
		break;
	case W_SUSPEND:
		on_suspend(nic, in->m.conn.conn);
		break;
	case W_RESUMED:
		on_resumed(nic, in);
		break;
	case W_TOLD:
		on_told(nic, in);
		break;
	case W_COUNT:
		on_count(nic, &in->m.count);
		break;
	case W_REFUSED:
	case W_DONE:
		pass_agent_answer(nic, in, in->m.refused.token,
				  nvi_status_errno(in->m.refused.status));
		break;
	case W_UNLISTENED:
		pass_agent_answer(nic, in, in->m.token.token, -ETIMEDOUT);
		break;
	case W_ALLOCATED:
		on_allocated(nic, in);
		break;
	case W_NAMED:
	case W_ROUTED:
	case W_LISTED:
		/* The token of these messages is in the place of that of W_ALLOCATED. */
		pass_agent_answer(nic, in, in->m.alloc.token, 0);
		break;
	default:
		u_debug("nvi", "control message of type %u ignored", in->m.hdr.type);
		break;
	}
}

/*
 * Marks the connections of a bucket as lost, some at a time, because nvi_chan_lost() is called
 * without the lock.  A connection stays in its bucket until its VI is disconnected.
 */
static void lose_bucket(struct nvi_nic *nic, unsigned int i)
{
	enum { BATCH = 64 };
	struct nvi_chan *lost[BATCH], *ch;
	uint64_t conns[BATCH];
	unsigned int count;

	do {
		count = 0;
		pthread_mutex_lock(&nic->ctl_lock);
		for (ch = nic->conns[i]; ch != NULL && count < BATCH; ch = ch->id.next) {
			if (nvi_chan_lives(ch)) {
				conns[count] = ch->id.conn;
				lost[count++] = ch;
			}
		}
		pthread_mutex_unlock(&nic->ctl_lock);
		for (unsigned int k = 0; k < count; k++)
			nvi_chan_lost(lost[k], nic, conns[k], W_LOST_LINK);
	} while (count == BATCH);
}

/*
 * The agent is gone: ends every request and, unless the NIC is being closed, breaks every connection and raises an
 * event.
 */
static void agent_lost(struct nvi_nic *nic)
{
	struct nvi_req *req;
	bool stopping = atomic_load_explicit(&nic->stop, memory_order_acquire) != 0;

	pthread_mutex_lock(&nic->ctl_lock);
	nic->dead = true;
	for (req = nic->reqs; req != NULL; req = req->next)
		if (!req->done)
			nvi_req_finish(req, NULL, -ENOTCONN);
	pthread_mutex_unlock(&nic->ctl_lock);
	if (stopping)
		return;
	u_warn("nvi",
	       "the agent of host %s is gone; its connections are lost; close the NIC and "
	       "open it again",
	       nic->welcome.host_name);
	for (unsigned int i = 0; i < NVI_CONN_BUCKETS; i++)
		lose_bucket(nic, i);
	nvi_given_forget_all(nic);
	vi_event_raise(nic->vi_nic, NULL, VIP_RESOURCE_NIC, VIP_ERROR_CATASTROPHIC);
}

void *nvi_ctl_thread(void *arg)
{
	struct nvi_nic *nic = arg;
	struct incoming in;
	int got;

	for (;;) {
		got = w_ctl_recv(nic->out.sock, in.m.bytes, sizeof(in.m.bytes), in.fds, &in.nfds);
		if (got == -EINTR)
			continue;
		if (got <= 0)
			break;
		if (w_ctl_check(in.m.bytes, (uint32_t)got) >= 0)
			dispatch(nic, &in);
		for (unsigned int i = 0; i < in.nfds; i++)
			if (in.fds[i] >= 0)
				close(in.fds[i]);
	}
	agent_lost(nic);
	return NULL;
}
