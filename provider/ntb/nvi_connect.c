/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting as client and as server.  The exchange with the agent is described in w_ctl.h. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "nvi_attempt.h"
#include "nvi_connect.h"
#include "nvi_disconnect.h"
#include "nvi_nic.h"
#include "u_cancel.h"
#include "u_time.h"

/*
 * The times that answers may take: one that the agent can give at once, and one that needs the
 * other host, whose agent ends a connection that its process does not confirm in AG_CONFIRM_NS.
 */
#define SOON_NS INT64_C(5000000000)
#define ACCEPT_NS INT64_C(8000000000)

/*
 * Waits for a connection attempt; cancels it at the deadline.  0: connected, even if just before it was cancelled.
 * `cancel`: the thread's cancellation state while it waits.
 */
static int wait_linked(struct nvi_nic *nic, struct nvi_req *req, int64_t deadline, int cancel)
{
	int err = nvi_req_wait_cancel(nic, req, deadline, cancel);

	return err == -EINPROGRESS ? nvi_attempt_cancel_and_wait(nic, req) : err;
}

/* ---- client ---------------------------------------------------------------------------------- */

struct attempt {
	struct vi_vi *vi;
	struct nvi_req req;
};

/*
 * The thread is cancelled: waits for the agent, ends the request, and makes the VI Idle, even if it was just connected.
 */
static void attempt_cancelled(void *arg)
{
	struct attempt *a = arg;
	struct nvi_nic *nic = a->vi->nic->prov;
	int err = nvi_attempt_cancel_and_wait(nic, &a->req);

	nvi_req_end(nic, &a->req);
	if (err == 0)
		nvi_disconnect(a->vi);
	else
		nvi_attempt_end(a->vi, a->req.token);
}

/* As wait_linked(); if the thread is cancelled meanwhile, the attempt is undone. */
static int wait_attempt(struct attempt *a, int64_t deadline, int cancel)
{
	int err;

	pthread_cleanup_push(attempt_cancelled, a);
	err = wait_linked(a->vi->nic->prov, &a->req, deadline, cancel);
	pthread_cleanup_pop(0);
	return err;
}

int nvi_connect_request(struct vi_vi *vi, const struct vi_addr *local, const struct vi_addr *remote,
			int64_t deadline, VIP_VI_ATTRIBUTES *remote_attrs_out)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct nvi_nic *nic = vi->nic->prov;
	struct attempt a = { .vi = vi };
	int err = nvi_attempt_begin(vi, &a.req);

	if (err != 0)
		return err;
	err = nvi_attempt_send(nic, &a.req, W_CONNECT, &vi->attrs, local, remote);
	if (err == 0)
		err = wait_attempt(&a, deadline, cancel);
	nvi_req_end(nic, &a.req);
	if (err == 0)
		nvi_attrs_from_wire(remote_attrs_out, &a.req.answer.linked.attrs);
	else
		nvi_attempt_end(vi, a.req.token);
	return err;
}

/* ---- server ---------------------------------------------------------------------------------- */

struct listening {
	struct nvi_nic *nic;
	struct nvi_req req;
};

/*
 * Ends listening; the caller ends the request.  0: a request to connect was already on its way to this process;
 * -ETIMEDOUT: none was; -EINPROGRESS: the agent did not answer in 5 s; or as nvi_ctl_send().
 */
static int stop_listening(struct listening *l)
{
	struct w_token msg = { .token = l->req.token };
	int err = nvi_ctl_send(l->nic, &msg, W_UNLISTEN, sizeof(msg));

	return err == 0 ? nvi_req_wait(l->nic, &l->req, u_now_ns() + SOON_NS) : err;
}

/* The thread is cancelled: ends listening, and refuses a request to connect that has just arrived. */
static void listening_cancelled(void *arg)
{
	struct listening *l = arg;
	int err = nvi_req_wait(l->nic, &l->req, 0);
	struct w_conn msg;

	if (err == -EINPROGRESS)
		err = stop_listening(l);
	if (err == 0) {
		msg.conn = l->req.answer.arrived.conn;
		nvi_ctl_send(l->nic, &msg, W_REJECT, sizeof(msg));
	}
	nvi_req_end(l->nic, &l->req);
}

/*
 * Waits for a request to connect; -EINPROGRESS: none came by the deadline, and listening goes on.  If the thread is
 * cancelled meanwhile, listening ends.
 */
static int wait_arrival(struct listening *l, int64_t deadline, int cancel)
{
	int err;

	pthread_cleanup_push(listening_cancelled, l);
	err = nvi_req_wait_cancel(l->nic, &l->req, deadline, cancel);
	pthread_cleanup_pop(0);
	return err;
}

int nvi_connect_wait(struct vi_nic *vi_nic, const struct vi_addr *local, int64_t deadline,
		     struct vi_addr *remote_out, struct vi_conn *conn)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct listening l = { .nic = vi_nic->prov };
	int err = nvi_req_begin(l.nic, &l.req, NULL);

	if (err != 0)
		return err;
	err = nvi_attempt_send(l.nic, &l.req, W_LISTEN, NULL, local, NULL);
	if (err == 0)
		err = wait_arrival(&l, deadline, cancel);
	if (err == -EINPROGRESS)
		err = stop_listening(&l);
	nvi_req_end(l.nic, &l.req);
	if (err != 0)
		return err == -EINPROGRESS ? -ETIMEDOUT : err;
	conn->prov_conn = l.req.answer.arrived.conn;
	nvi_attrs_from_wire(&conn->remote_attrs, &l.req.answer.arrived.attrs);
	nvi_addr_from_wire(remote_out, &l.req.answer.arrived.remote);
	return 0;
}

int nvi_connect_accept(struct vi_conn *conn, struct vi_vi *vi)
{
	struct nvi_nic *nic = vi->nic->prov;
	struct w_accept msg;
	struct nvi_req req;
	int err = nvi_attempt_begin(vi, &req);

	if (err != 0)
		return err;
	memset(&msg, 0, sizeof(msg));
	msg.token = req.token;
	msg.conn = conn->prov_conn;
	nvi_attrs_to_wire(&msg.attrs, &vi->attrs);
	err = nvi_ctl_send(nic, &msg, W_ACCEPT, sizeof(msg));
	if (err == 0)
		err = wait_linked(nic, &req, u_now_ns() + ACCEPT_NS, PTHREAD_CANCEL_DISABLE);
	nvi_req_end(nic, &req);
	if (err != 0)
		nvi_attempt_end(vi, req.token);
	return err;
}

int nvi_connect_reject(struct vi_conn *conn)
{
	struct w_conn msg = { .conn = conn->prov_conn };

	return nvi_ctl_send(conn->nic->prov, &msg, W_REJECT, sizeof(msg));
}
