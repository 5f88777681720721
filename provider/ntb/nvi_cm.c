/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections, by way of the agent.  The exchange is described in w_ctl.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nvi.h"
#include "u_cancel.h"
#include "u_time.h"

/* How long an answer that cannot take long may take. */
#define SOON_NS INT64_C(5000000000)
#define ACCEPT_NS INT64_C(30000000000)

/* ---- conversions ---------------------------------------------------------------------------- */

void nvi_attrs_to_wire(struct w_vi_attrs *w, const VIP_VI_ATTRIBUTES *attrs)
{
	w->reliability = attrs->ReliabilityLevel;
	w->flags = (attrs->EnableRdmaWrite ? W_VI_RDMA_WRITE : 0) |
		   (attrs->EnableRdmaRead ? W_VI_RDMA_READ : 0);
	w->max_transfer = attrs->MaxTransferSize;
	w->qos = (uint64_t)(uintptr_t)attrs->QoS;
	w->ptag = (uint64_t)(uintptr_t)attrs->Ptag;
}

void nvi_attrs_from_wire(VIP_VI_ATTRIBUTES *attrs, const struct w_vi_attrs *w)
{
	attrs->ReliabilityLevel = (VIP_RELIABILITY_LEVEL)w->reliability;
	attrs->MaxTransferSize = w->max_transfer;
	attrs->QoS = (VIP_QOS)(uintptr_t)w->qos;
	attrs->Ptag = (VIP_PROTECTION_HANDLE)(uintptr_t)w->ptag;
	attrs->EnableRdmaWrite = w->flags & W_VI_RDMA_WRITE ? VIP_TRUE : VIP_FALSE;
	attrs->EnableRdmaRead = w->flags & W_VI_RDMA_READ ? VIP_TRUE : VIP_FALSE;
}

static void addr_to_wire(struct w_addr *w, const struct vi_addr *a)
{
	memset(w, 0, sizeof(*w));
	memcpy(w->host, a->host, W_HOST_ADDR_LEN);
	w->host_len = W_HOST_ADDR_LEN;
	w->disc_len = (uint8_t)a->disc_len;
	memcpy(w->disc, a->disc, a->disc_len);
}

static void addr_from_wire(struct vi_addr *a, const struct w_addr *w)
{
	memset(a, 0, sizeof(*a));
	a->host_len = W_HOST_ADDR_LEN;
	memcpy(a->host, w->host, W_HOST_ADDR_LEN);
	a->disc_len = w->disc_len;
	memcpy(a->disc, w->disc, w->disc_len);
}

/* ---- states --------------------------------------------------------------------------------- */

/* Idle -> Connect Pending with a request of its own; -EISCONN from any other state. */
static int begin_attempt(struct vi_vi *vi, struct nvi_req *req)
{
	struct nvi_chan *ch = vi->prov;
	int err = nvi_req_begin(ch->nic, req, vi);

	if (err != 0)
		return err;
	vi_lock_both(vi);
	if (vi_state(vi) == VIP_STATE_IDLE) {
		vi_set_state(vi, VIP_STATE_CONNECT_PENDING);
		ch->attempt = req->token;
	} else {
		err = -EISCONN;
	}
	vi_unlock_both(vi);
	if (err != 0)
		nvi_req_end(ch->nic, req);
	return err;
}

/* The attempt failed: Connect Pending -> Idle, unless the VI is used for something else by now. */
static void end_attempt(struct vi_vi *vi, uint64_t token)
{
	struct nvi_chan *ch = vi->prov;

	vi_lock_both(vi);
	if (vi_state(vi) == VIP_STATE_CONNECT_PENDING && ch->attempt == token) {
		vi_set_state(vi, VIP_STATE_IDLE);
		ch->attempt = 0;
	}
	vi_unlock_both(vi);
}

/* Gives a request up: the agent's final answer on it comes as its answer. */
static void cancel(struct nvi_nic *nic, struct nvi_req *req)
{
	struct w_token msg = { .token = req->token };
	bool send;

	pthread_mutex_lock(&nic->ctl_lock);
	send = !req->done && !req->opening && !req->cancelled;
	req->cancelled = req->cancelled || send;
	pthread_mutex_unlock(&nic->ctl_lock);
	if (send)
		nvi_ctl_send(nic, &msg, W_CANCEL, sizeof(msg));
}

/* Gives the request up and waits for the agent's final answer, which may still be success. */
static int cancel_and_wait(struct nvi_nic *nic, struct nvi_req *req)
{
	int err;

	cancel(nic, req);
	err = nvi_req_wait(nic, req, u_now_ns() + SOON_NS);
	return err == -EINPROGRESS ? -ETIMEDOUT : err;
}

/* Waits for a connection attempt; cancels it at the deadline. */
static int wait_linked(struct nvi_nic *nic, struct nvi_req *req, int64_t deadline, int cancel)
{
	int err = nvi_req_wait_cancel(nic, req, deadline, cancel);

	return err == -EINPROGRESS ? cancel_and_wait(nic, req) : err;
}

static int send_connect(struct nvi_nic *nic, struct nvi_req *req, enum w_ctl_type type,
			const VIP_VI_ATTRIBUTES *attrs, const struct vi_addr *local,
			const struct vi_addr *remote)
{
	struct w_connect msg;

	memset(&msg, 0, sizeof(msg));
	msg.token = req->token;
	if (attrs != NULL)
		nvi_attrs_to_wire(&msg.attrs, attrs);
	addr_to_wire(&msg.local, local);
	if (remote != NULL)
		addr_to_wire(&msg.remote, remote);
	return nvi_ctl_send(nic, &msg, type, sizeof(msg));
}

/* ---- client and server ---------------------------------------------------------------------- */

struct attempt {
	struct vi_vi *vi;
	struct nvi_req req;
};

/* The thread is cancelled.  The VI is left Idle, also when it has just been connected. */
static void attempt_cancelled(void *arg)
{
	struct attempt *a = arg;
	struct nvi_nic *nic = a->vi->nic->prov;
	int err = cancel_and_wait(nic, &a->req);

	nvi_req_end(nic, &a->req);
	if (err == 0)
		nvi_disconnect(a->vi);
	else
		end_attempt(a->vi, a->req.token);
}

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
	int err = begin_attempt(vi, &a.req);

	if (err != 0)
		return err;
	err = send_connect(nic, &a.req, W_CONNECT, &vi->attrs, local, remote);
	if (err == 0)
		err = wait_attempt(&a, deadline, cancel);
	nvi_req_end(nic, &a.req);
	if (err == 0)
		nvi_attrs_from_wire(remote_attrs_out, &a.req.answer.linked.attrs);
	else
		end_attempt(vi, a.req.token);
	return err;
}

struct listening {
	struct nvi_nic *nic;
	struct nvi_req req;
};

/* An arrival may cross this; whichever answer is first counts. */
static int stop_listening(struct listening *l)
{
	struct w_token msg = { .token = l->req.token };
	int err = nvi_ctl_send(l->nic, &msg, W_UNLISTEN, sizeof(msg));

	return err == 0 ? nvi_req_wait(l->nic, &l->req, u_now_ns() + SOON_NS) : err;
}

/* The thread is cancelled.  A request that has just arrived is refused. */
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
	err = send_connect(l.nic, &l.req, W_LISTEN, NULL, local, NULL);
	if (err == 0)
		err = wait_arrival(&l, deadline, cancel);
	if (err == -EINPROGRESS)
		err = stop_listening(&l);
	nvi_req_end(l.nic, &l.req);
	if (err != 0)
		return err == -EINPROGRESS ? -ETIMEDOUT : err;
	conn->prov_conn = l.req.answer.arrived.conn;
	nvi_attrs_from_wire(&conn->remote_attrs, &l.req.answer.arrived.attrs);
	addr_from_wire(remote_out, &l.req.answer.arrived.remote);
	return 0;
}

int nvi_connect_accept(struct vi_conn *conn, struct vi_vi *vi)
{
	struct nvi_nic *nic = vi->nic->prov;
	struct w_accept msg;
	struct nvi_req req;
	int err = begin_attempt(vi, &req);

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
		end_attempt(vi, req.token);
	return err;
}

int nvi_connect_reject(struct vi_conn *conn)
{
	struct w_conn msg = { .conn = conn->prov_conn };

	return nvi_ctl_send(conn->nic->prov, &msg, W_REJECT, sizeof(msg));
}

/* ---- peer to peer --------------------------------------------------------------------------- */

/*
 * A VipConnectPeerRequest under way: on the heap, because nobody waits for it yet.
 * The flags are under ctl_lock.
 */
struct nvi_peer {
	struct nvi_req req;
	int64_t deadline;
	bool busy;    /* a thread is in nvi_peer_done() */
	bool dropped; /* the VI has no more to do with it: that thread frees it */
};

static void end_peer(struct nvi_nic *nic, struct nvi_peer *peer)
{
	nvi_req_end(nic, &peer->req);
	free(peer);
}

int nvi_peer_request(struct vi_vi *vi, const struct vi_addr *local, const struct vi_addr *remote,
		     int64_t deadline)
{
	struct nvi_nic *nic = vi->nic->prov;
	struct nvi_chan *ch = vi->prov;
	struct nvi_peer *peer = calloc(1, sizeof(*peer));
	uint64_t token;
	int err;

	if (peer == NULL)
		return -ENOMEM;
	err = begin_attempt(vi, &peer->req);
	if (err != 0) {
		free(peer);
		return err;
	}
	token = peer->req.token;
	peer->deadline = deadline;
	pthread_mutex_lock(&nic->ctl_lock);
	ch->peer = peer;
	pthread_mutex_unlock(&nic->ctl_lock);
	err = send_connect(nic, &peer->req, W_PEER, &vi->attrs, local, remote);
	if (err != 0) {
		nvi_peer_drop(vi);
		end_attempt(vi, token);
	}
	return err;
}

/* -EISCONN: no request is under way; -EAGAIN: another thread waits for it. */
static int take_peer(struct nvi_chan *ch, struct nvi_peer **out)
{
	int err = 0;

	pthread_mutex_lock(&ch->nic->ctl_lock);
	if (ch->peer == NULL)
		err = -EISCONN;
	else if (ch->peer->busy)
		err = -EAGAIN;
	else
		ch->peer->busy = true;
	*out = ch->peer;
	pthread_mutex_unlock(&ch->nic->ctl_lock);
	return err;
}

/* Lets go of the request; `over`: it has its final answer. */
static void return_peer(struct nvi_chan *ch, struct nvi_peer *peer, bool over)
{
	struct nvi_nic *nic = ch->nic;
	bool end;

	pthread_mutex_lock(&nic->ctl_lock);
	peer->busy = false;
	end = over || peer->dropped;
	if (end && ch->peer == peer)
		ch->peer = NULL;
	pthread_mutex_unlock(&nic->ctl_lock);
	if (end)
		end_peer(nic, peer);
}

struct peer_wait {
	struct nvi_chan *ch;
	struct nvi_peer *peer;
};

/* The thread is cancelled.  The request stays under way: another may wait for it. */
static void peer_wait_cancelled(void *arg)
{
	struct peer_wait *w = arg;

	return_peer(w->ch, w->peer, false);
}

static int wait_peer(struct nvi_chan *ch, struct nvi_peer *peer, int64_t until, int cancel)
{
	struct peer_wait w = { .ch = ch, .peer = peer };
	int err;

	pthread_cleanup_push(peer_wait_cancelled, &w);
	err = nvi_req_wait_cancel(ch->nic, &peer->req,
				  until < peer->deadline ? until : peer->deadline, cancel);
	pthread_cleanup_pop(0);
	return err;
}

int nvi_peer_done(struct vi_vi *vi, int64_t until, VIP_VI_ATTRIBUTES *remote_attrs_out)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct nvi_chan *ch = vi->prov;
	struct nvi_peer *peer;
	uint64_t token;
	int err = take_peer(ch, &peer);

	if (err != 0)
		return err;
	token = peer->req.token;
	err = wait_peer(ch, peer, until, cancel);
	if (err == -EINPROGRESS && u_now_ns() < peer->deadline) {
		return_peer(ch, peer, false);
		return -EAGAIN;
	}
	if (err == -EINPROGRESS)
		err = cancel_and_wait(ch->nic, &peer->req);
	if (err == 0)
		nvi_attrs_from_wire(remote_attrs_out, &peer->req.answer.linked.attrs);
	return_peer(ch, peer, true);
	if (err != 0)
		end_attempt(vi, token);
	return err;
}

void nvi_peer_drop(struct vi_vi *vi)
{
	struct nvi_chan *ch = vi->prov;
	struct nvi_nic *nic = ch->nic;
	struct nvi_peer *peer;
	bool busy = false;

	pthread_mutex_lock(&nic->ctl_lock);
	peer = ch->peer;
	ch->peer = NULL;
	if (peer != NULL) {
		busy = peer->busy;
		peer->dropped = true;
	}
	pthread_mutex_unlock(&nic->ctl_lock);
	/* A busy one was cancelled with the VI's other attempts, and is freed by its thread. */
	if (peer != NULL && !busy) {
		cancel(nic, &peer->req);
		end_peer(nic, peer);
	}
}

/* ---- disconnect ----------------------------------------------------------------------------- */

/* A blocking attempt of another thread on this VI is given up; it returns on its own. */
static void cancel_attempts(struct nvi_nic *nic, struct vi_vi *vi)
{
	struct nvi_req *req;
	uint64_t tokens[4];
	unsigned int count = 0;

	pthread_mutex_lock(&nic->ctl_lock);
	for (req = nic->reqs; req != NULL && count < 4; req = req->next) {
		if (req->vi == vi && !req->done && !req->opening && !req->cancelled) {
			req->cancelled = true;
			tokens[count++] = req->token;
		}
	}
	pthread_mutex_unlock(&nic->ctl_lock);
	while (count-- > 0) {
		struct w_token msg = { .token = tokens[count] };

		nvi_ctl_send(nic, &msg, W_CANCEL, sizeof(msg));
	}
}

/* A disconnect that waits for what is on its way. */
struct drain {
	struct nvi_chan *ch;
	int64_t until, most;
};

/* Nothing new is sent.  Returns whether there is something to wait for. */
static bool begin_drain(struct nvi_chan *ch)
{
	struct vi_vi *vi = ch->vi;
	bool any;

	vi_lock_both(vi);
	any = vi->chan == ch && ch->level != VIP_SERVICE_UNRELIABLE && nvi_chan_lives(ch);
	if (any) {
		vi->fast = &nvi_fast_closing;
		vi_wq_flush_new(&vi->sq, VIP_STATUS_DESC_FLUSHED_ERROR);
	}
	vi_unlock_both(vi);
	return any;
}

/* Caller holds tx_lock. */
static bool all_there(struct nvi_chan *ch)
{
	if (vi_state(ch->vi) != VIP_STATE_CONNECTED)
		return atomic_load_explicit(&ch->tx_waiting, memory_order_relaxed) == 0;
	/* A message of which only a part is out goes on. */
	if (ch->tx.op != 0 && ch->tx.op != W_OP_READ_RESP)
		return false;
	return nvi_tx_drained(ch) && nvi_sq_done(&ch->vi->sq) == ch->vi->sq.next;
}

static int try_drain(void *arg)
{
	struct drain *d = arg;
	struct nvi_chan *ch = d->ch;
	int over = 1;

	nvi_progress_chan(ch, true);
	u_biased_take(&ch->vi->tx_lock);
	if (ch->vi->chan == ch) {
		over = all_there(ch);
		nvi_break_after_tx(ch);
		if (ch->placeholder_mem != NULL)
			d->until = u_now_ns() + ch->nic->drain_ms * INT64_C(1000000);
	}
	u_biased_drop(&ch->vi->tx_lock);
	return over;
}

/*
 * What was sent is acknowledged, so that it can be reported as done, and what was reported as done
 * has arrived; bounded, for a peer that takes nothing.  A path that is lost is waited for: the
 * agents end the connection if there is no other.
 */
static void drain(struct vi_vi *vi)
{
	struct drain d = { .ch = vi->prov };
	int64_t now = u_now_ns();
	int over = 0;

	if (!begin_drain(d.ch))
		return;
	d.until = now + d.ch->nic->drain_ms * INT64_C(1000000);
	d.most = now + NVI_DRAIN_MOST_MS * INT64_C(1000000);
	do {
		int64_t until = d.until < d.most ? d.until : d.most;

		over = vi_wait(vi->nic, &vi->sq.sleepers, NULL, try_drain, &d, until);
		now = u_now_ns();
	} while (over == 0 && now < d.until && now < d.most);
}

int nvi_disconnect(struct vi_vi *vi)
{
	struct nvi_nic *nic = vi->nic->prov;
	struct nvi_chan *ch = vi->prov;
	struct w_conn msg;
	uint64_t conn;

	cancel_attempts(nic, vi);
	nvi_peer_drop(vi);
	drain(vi);
	nvi_given_begin_end(nic, ch, &conn);
	msg.conn = nvi_chan_close(vi);
	nvi_given_end(nic, ch, conn);
	/* The agent may be gone: then there is nobody to tell. */
	if (msg.conn != 0)
		nvi_ctl_send(nic, &msg, W_CLOSE, sizeof(msg));
	return 0;
}

void nvi_cm_cut(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn)
{
	struct w_conn msg = { .conn = conn };

	nvi_chan_lost(ch, nic, conn, W_LOST_LINK);
	/* The agent tells the other end; the VI itself stays in Error until it is disconnected. */
	if (nvi_chan_forget(ch, conn))
		nvi_ctl_send(nic, &msg, W_CLOSE, sizeof(msg));
	nvi_given_forget(nic, conn);
}
