/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket (nvi_out.c sends): requests to the host's agent, and the thread (vi-ctl) that
 * takes what the agent sends.  Channels are opened and lost on that thread
 * alone, so that what happens to one connection happens in the agent's order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nvi.h"
#include "u_cancel.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_time.h"

int nvi_status_errno(uint32_t status)
{
	static const int table[W_STATUS_MAX] = {
		[W_NO_MATCH] = -ENOMSG,
		[W_REJECTED] = -ECONNREFUSED,
		[W_TIMED_OUT] = -ETIMEDOUT,
		[W_NOT_REACHABLE] = -EHOSTUNREACH,
		[W_NO_RESOURCE] = -ENOSPC,
		[W_BAD_STATE] = -EISCONN,
		[W_BAD_RELIABILITY] = -EPROTOTYPE,
		[W_BAD_MTU] = -EMSGSIZE,
		[W_BAD_QOS] = -EDOM,
		[W_UNKNOWN_NAME] = -ENOENT,
		[W_DENIED] = -EINVAL,
		[W_BAD_VERSION] = -EINVAL,
		[W_BAD_REQUEST] = -EINVAL,
	};

	return status < W_STATUS_MAX ? table[status] : -EPROTO;
}

/* ---- requests ------------------------------------------------------------------------------- */

int nvi_ctl_send(struct nvi_nic *nic, void *msg, enum w_ctl_type type, uint32_t len)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	int err;

	w_ctl_init(msg, type, len);
	err = nvi_out_send(nic, msg, len);
	return err < 0 && err != -ENOMEM ? -ENOTCONN : err;
}

int nvi_ctl_try(struct nvi_nic *nic, void *msg, enum w_ctl_type type, uint32_t len)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	w_ctl_init(msg, type, len);
	return nvi_out_try(nic, msg);
}

int nvi_req_begin(struct nvi_nic *nic, struct nvi_req *req, struct vi_vi *vi)
{
	pthread_condattr_t attr;
	int err = 0;

	memset(req, 0, sizeof(*req));
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&req->cond, &attr);
	pthread_condattr_destroy(&attr);
	req->fd = -1;
	req->vi = vi;
	pthread_mutex_lock(&nic->ctl_lock);
	if (nic->dead)
		err = -ENOTCONN;
	req->token = ++nic->next_token;
	req->next = nic->reqs;
	nic->reqs = req;
	pthread_mutex_unlock(&nic->ctl_lock);
	if (err != 0)
		nvi_req_end(nic, req);
	return err;
}

void nvi_req_end(struct nvi_nic *nic, struct nvi_req *req)
{
	struct nvi_req **at = &nic->reqs;

	pthread_mutex_lock(&nic->ctl_lock);
	/* The control thread may be opening the connection right now. */
	while (req->opening)
		pthread_cond_wait(&req->cond, &nic->ctl_lock);
	while (*at != NULL && *at != req)
		at = &(*at)->next;
	if (*at == req)
		*at = req->next;
	pthread_mutex_unlock(&nic->ctl_lock);
	if (req->fd >= 0)
		close(req->fd);
	pthread_cond_destroy(&req->cond);
}

static void unlock(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

/* Caller holds ctl_lock. */
static void wait_done(struct nvi_nic *nic, struct nvi_req *req, int64_t deadline)
{
	struct timespec until = { .tv_sec = deadline / 1000000000,
				  .tv_nsec = deadline % 1000000000 };
	int err = 0;

	while (!req->done && err == 0) {
		if (deadline == U_NEVER)
			pthread_cond_wait(&req->cond, &nic->ctl_lock);
		else
			err = pthread_cond_timedwait(&req->cond, &nic->ctl_lock, &until);
	}
}

int nvi_req_wait_cancel(struct nvi_nic *nic, struct nvi_req *req, int64_t deadline, int cancel)
{
	int err;

	pthread_mutex_lock(&nic->ctl_lock);
	pthread_cleanup_push(unlock, &nic->ctl_lock);
	pthread_setcancelstate(cancel, NULL);
	wait_done(nic, req, deadline);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	err = req->done ? req->err : -EINPROGRESS;
	pthread_mutex_unlock(&nic->ctl_lock);
	return err;
}

int nvi_req_wait(struct nvi_nic *nic, struct nvi_req *req, int64_t deadline)
{
	return nvi_req_wait_cancel(nic, req, deadline, PTHREAD_CANCEL_DISABLE);
}

int nvi_ctl_call(struct nvi_nic *nic, struct nvi_req *req, void *msg, enum w_ctl_type type,
		 uint32_t len, uint64_t *token_in_msg)
{
	int err = nvi_req_begin(nic, req, NULL);

	if (err != 0)
		return err;
	*token_in_msg = req->token;
	err = nvi_ctl_send(nic, msg, type, len);
	if (err == 0)
		err = nvi_req_wait(nic, req, u_now_ns() + INT64_C(5000000000));
	if (err == -EINPROGRESS)
		err = -ETIMEDOUT;
	if (err != 0)
		nvi_req_end(nic, req);
	return err;
}

/* ---- what the agent sends ------------------------------------------------------------------- */

/* A message of the agent's, with the descriptors that came along. */
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

/* Takes descriptor i out of the message, so that it is not closed with it. */
static int take_fd(struct incoming *in, unsigned int i)
{
	int fd = -1;

	if (i < in->nfds) {
		fd = in->fds[i];
		in->fds[i] = -1;
	}
	return fd;
}

static void close_fds(int a, int b)
{
	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
}

static struct nvi_req *find_req(struct nvi_nic *nic, uint64_t token)
{
	struct nvi_req *req = nic->reqs;

	while (req != NULL && req->token != token)
		req = req->next;
	return req;
}

/* Caller holds ctl_lock. */
static void finish_req(struct nvi_req *req, const struct incoming *in, int err)
{
	if (in != NULL)
		memcpy(&req->answer, in->m.bytes, sizeof(req->answer));
	req->err = err;
	req->done = true;
	pthread_cond_broadcast(&req->cond);
}

static void send_conn(struct nvi_nic *nic, enum w_ctl_type type, uint64_t conn)
{
	struct w_conn msg = { .conn = conn };

	nvi_ctl_send(nic, &msg, type, sizeof(msg));
}

/* Returns whether somebody waits for it. */
static bool answer(struct nvi_nic *nic, struct incoming *in, uint64_t token, int err)
{
	struct nvi_req *req;
	bool wanted;

	pthread_mutex_lock(&nic->ctl_lock);
	req = find_req(nic, token);
	wanted = req != NULL && !req->done;
	if (wanted) {
		if (in->nfds > 0)
			req->fd = take_fd(in, 0);
		finish_req(req, in, err);
	}
	pthread_mutex_unlock(&nic->ctl_lock);
	return wanted;
}

/* Nobody waits for this request any more: the client behind it is told no. */
static void on_arrived(struct nvi_nic *nic, struct incoming *in)
{
	struct nvi_req *req;
	bool wanted;

	pthread_mutex_lock(&nic->ctl_lock);
	req = find_req(nic, in->m.arrived.token);
	wanted = req != NULL && !req->done;
	if (wanted)
		finish_req(req, in, 0);
	pthread_mutex_unlock(&nic->ctl_lock);
	if (!wanted)
		send_conn(nic, W_REJECT, in->m.arrived.conn);
}

/* Whoever asked for this memory has given up: without a name it would stay for good. */
static void on_allocated(struct nvi_nic *nic, struct incoming *in)
{
	struct w_alloc msg = { .slice_id = in->m.alloc.slice_id };
	bool made = in->m.alloc.status == W_SUCCESS;

	if (!answer(nic, in, in->m.alloc.token, nvi_status_errno(in->m.alloc.status)) && made)
		nvi_ctl_send(nic, &msg, W_FREE, sizeof(msg));
}

static void enter_conn(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn)
{
	struct nvi_chan **bucket = &nic->conns[conn % NVI_CONN_BUCKETS];

	ch->conn = conn;
	ch->next = *bucket;
	*bucket = ch;
}

/* The connection is made: map it, confirm it, tell whoever waits. */
static void on_linked(struct nvi_nic *nic, struct incoming *in)
{
	const struct w_linked *linked = &in->m.linked;
	struct nvi_req *req;
	int err;

	pthread_mutex_lock(&nic->ctl_lock);
	req = find_req(nic, linked->token);
	if (req == NULL || req->done || req->cancelled || req->vi == NULL) {
		if (req != NULL && !req->done)
			finish_req(req, NULL, -ETIMEDOUT);
		pthread_mutex_unlock(&nic->ctl_lock);
		send_conn(nic, W_CLOSE, linked->conn);
		return;
	}
	req->opening = true;
	enter_conn(nic, req->vi->prov, linked->conn);
	pthread_mutex_unlock(&nic->ctl_lock);

	err = nvi_chan_open(nic, req->vi, linked, take_fd(in, 0), take_fd(in, 1));
	if (err == 0) {
		send_conn(nic, W_CONFIRM, linked->conn);
	} else {
		nvi_chan_forget(req->vi->prov, linked->conn);
		send_conn(nic, W_CLOSE, linked->conn);
	}

	pthread_mutex_lock(&nic->ctl_lock);
	req->opening = false;
	finish_req(req, in, err);
	pthread_mutex_unlock(&nic->ctl_lock);
}

static struct nvi_chan *find_conn(struct nvi_nic *nic, uint64_t conn)
{
	struct nvi_chan *ch;

	pthread_mutex_lock(&nic->ctl_lock);
	ch = nic->conns[conn % NVI_CONN_BUCKETS];
	while (ch != NULL && ch->conn != conn)
		ch = ch->next;
	pthread_mutex_unlock(&nic->ctl_lock);
	return ch;
}

/* The path is gone, or there is a better one.  Whoever cannot wait for that ends the connection. */
static void on_suspend(struct nvi_nic *nic, uint64_t conn)
{
	struct w_suspended msg = { .conn = conn };
	struct nvi_chan *ch = find_conn(nic, conn);

	if (ch == NULL)
		return;
	if (nvi_chan_suspend(ch, nic, conn, &msg.consumed) == 0)
		nvi_ctl_send(nic, &msg, W_SUSPENDED, sizeof(msg));
	else
		nvi_cm_cut(nic, ch, conn);
}

static void on_resumed(struct nvi_nic *nic, struct incoming *in)
{
	const struct w_linked *linked = &in->m.linked;
	struct nvi_chan *ch = find_conn(nic, linked->conn);
	int fd_in = take_fd(in, 0), fd_out = take_fd(in, 1), err;

	if (ch == NULL) {
		close_fds(fd_in, fd_out);
		return;
	}
	err = nvi_chan_resume(ch, nic, linked, fd_in, fd_out);
	/* The link is down again.  It stays suspended: the agent waits for CONFIRM, and sees it too. */
	if (err == -EHOSTUNREACH)
		return;
	if (err != 0) {
		nvi_cm_cut(nic, ch, linked->conn);
		return;
	}
	/* Its peer unmapped our memory before it agreed to go on. */
	nvi_given_forget(nic, linked->conn);
	send_conn(nic, W_CONFIRM, linked->conn);
}

static void on_lost(struct nvi_nic *nic, const struct w_lost_msg *lost)
{
	struct nvi_chan *ch = find_conn(nic, lost->conn);

	if (ch != NULL)
		nvi_chan_lost(ch, nic, lost->conn, (enum w_lost)lost->reason);
	nvi_given_forget(nic, lost->conn);
}

static void on_told(struct nvi_nic *nic, struct incoming *in)
{
	struct nvi_chan *ch = find_conn(nic, in->m.tell.conn);
	int fd = take_fd(in, 0);

	if (ch != NULL)
		nvi_grant_told(nic, ch, &in->m.tell, fd);
	if (fd >= 0)
		close(fd);
}

/* A port to attach. A new view of a port replaces the old one, which connections may still use. */
static void on_port(struct nvi_nic *nic, struct incoming *in)
{
	const struct w_port *msg = &in->m.port;
	char text[U_FD_ERROR];
	struct nvi_port *old, *p;
	int err;

	if (msg->index >= PORT_PER_HOST)
		return;
	p = calloc(1, sizeof(*p));
	err = p == NULL ? -ENOMEM : port_attach(msg->view, in->fds, in->nfds, nic->irq, &p->port);
	/* A message keeps none of its descriptors when there is no number for them. */
	if (err == -EINVAL && in->nfds == 0)
		err = -EMFILE;
	if (err != 0) {
		free(p);
		u_log_ratelimited(&nic->unattached, "port %u (%s) cannot be attached: %s",
				  msg->index, msg->view, u_fd_error(-err, text));
		send_conn(nic, W_PORT_AGAIN, msg->index);
		return;
	}
	for (unsigned int i = 0; i < in->nfds; i++)
		in->fds[i] = -1;
	atomic_store_explicit(&p->users, 1, memory_order_relaxed);
	p->generation = nvi_port_generation(p);
	u_lock_take(&nic->chan_lock);
	old = nic->ports[msg->index];
	nic->ports[msg->index] = p;
	u_lock_drop(&nic->chan_lock);
	nvi_port_put(old);
}

/* Somebody (vi_stat) wants to see the counters. */
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
		answer(nic, in, in->m.refused.token, nvi_status_errno(in->m.refused.status));
		break;
	case W_UNLISTENED:
		answer(nic, in, in->m.token.token, -ETIMEDOUT);
		break;
	case W_ALLOCATED:
		on_allocated(nic, in);
		break;
	case W_NAMED:
	case W_ROUTED:
	case W_LISTED:
		/* Their tokens stand where W_ALLOCATED's does. */
		answer(nic, in, in->m.alloc.token, 0);
		break;
	default:
		u_debug("nvi", "control message of type %u ignored", in->m.hdr.type);
		break;
	}
}

/* Connections leave the bucket only by their owners' disconnect: some at a time. */
static void lose_bucket(struct nvi_nic *nic, unsigned int i)
{
	enum { BATCH = 64 };
	struct nvi_chan *lost[BATCH], *ch;
	uint64_t conns[BATCH];
	unsigned int count;

	do {
		count = 0;
		pthread_mutex_lock(&nic->ctl_lock);
		for (ch = nic->conns[i]; ch != NULL && count < BATCH; ch = ch->next) {
			if (nvi_chan_lives(ch)) {
				conns[count] = ch->conn;
				lost[count++] = ch;
			}
		}
		pthread_mutex_unlock(&nic->ctl_lock);
		for (unsigned int k = 0; k < count; k++)
			nvi_chan_lost(lost[k], nic, conns[k], W_LOST_LINK);
	} while (count == BATCH);
}

/* The agent is gone: every connection and every request ends. */
static void agent_lost(struct nvi_nic *nic)
{
	struct nvi_req *req;
	bool stopping = atomic_load_explicit(&nic->stop, memory_order_acquire) != 0;

	pthread_mutex_lock(&nic->ctl_lock);
	nic->dead = true;
	for (req = nic->reqs; req != NULL; req = req->next)
		if (!req->done)
			finish_req(req, NULL, -ENOTCONN);
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
		got = w_ctl_recv(nic->sock, in.m.bytes, sizeof(in.m.bytes), in.fds, &in.nfds);
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
