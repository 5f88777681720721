/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "nvi_attempt.h"
#include "nvi_chan.h"
#include "nvi_peer.h"
#include "u_cancel.h"
#include "u_time.h"

/*
 * A VipConnectPeerRequest under way: on the heap, because no thread waits for it yet.
 * The flags are under ctl_lock.
 */
struct nvi_peer {
	struct nvi_req req;
	int64_t deadline;
	bool busy;    /* a thread is in nvi_peer_done() */
	bool dropped; /* nvi_peer_drop() was called while it was busy: that thread frees it */
};

/* Ends the request and frees it; ch->id.peer does not name it any more. */
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
	err = nvi_attempt_begin(vi, &peer->req);
	if (err != 0) {
		free(peer);
		return err;
	}
	token = peer->req.token;
	peer->deadline = deadline;
	pthread_mutex_lock(&nic->ctl_lock);
	ch->id.peer = peer;
	pthread_mutex_unlock(&nic->ctl_lock);
	err = nvi_attempt_send(nic, &peer->req, W_PEER, &vi->attrs, local, remote);
	if (err != 0) {
		nvi_peer_drop(vi);
		nvi_attempt_end(vi, token);
	}
	return err;
}

/*
 * Marks the request as one for which this thread waits.  0, -EISCONN: no request is under way, or
 * -EAGAIN: another thread waits for it; *out counts only with 0.
 */
static int take_peer(struct nvi_chan *ch, struct nvi_peer **out)
{
	int err = 0;

	pthread_mutex_lock(&ch->nic->ctl_lock);
	if (ch->id.peer == NULL)
		err = -EISCONN;
	else if (ch->id.peer->busy)
		err = -EAGAIN;
	else
		ch->id.peer->busy = true;
	*out = ch->id.peer;
	pthread_mutex_unlock(&ch->nic->ctl_lock);
	return err;
}

/*
 * This thread does not wait for the request any more; `over`: it has its final answer.  Then, or if nvi_peer_drop() was
 * called meanwhile, it is ended and freed.
 */
static void return_peer(struct nvi_chan *ch, struct nvi_peer *peer, bool over)
{
	struct nvi_nic *nic = ch->nic;
	bool end;

	pthread_mutex_lock(&nic->ctl_lock);
	peer->busy = false;
	end = over || peer->dropped;
	if (end && ch->id.peer == peer)
		ch->id.peer = NULL;
	pthread_mutex_unlock(&nic->ctl_lock);
	if (end)
		end_peer(nic, peer);
}

struct peer_wait {
	struct nvi_chan *ch;
	struct nvi_peer *peer;
};

/* The thread is cancelled: the request stays under way, and another thread may wait for it later. */
static void peer_wait_cancelled(void *arg)
{
	struct peer_wait *w = arg;

	return_peer(w->ch, w->peer, false);
}

/* Waits for the answer until `until` or the request's deadline; -EINPROGRESS: there is none yet. */
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
		err = nvi_attempt_cancel_and_wait(ch->nic, &peer->req);
	if (err == 0)
		nvi_attrs_from_wire(remote_attrs_out, &peer->req.answer.linked.attrs);
	return_peer(ch, peer, true);
	if (err != 0)
		nvi_attempt_end(vi, token);
	return err;
}

void nvi_peer_drop(struct vi_vi *vi)
{
	struct nvi_chan *ch = vi->prov;
	struct nvi_nic *nic = ch->nic;
	struct nvi_peer *peer;
	bool busy = false;

	pthread_mutex_lock(&nic->ctl_lock);
	peer = ch->id.peer;
	ch->id.peer = NULL;
	if (peer != NULL) {
		busy = peer->busy;
		peer->dropped = true;
	}
	pthread_mutex_unlock(&nic->ctl_lock);
	/*
	 * A request for which a thread waits was cancelled with the VI's other attempts, and is
	 * freed by that thread.
	 */
	if (peer != NULL && !busy) {
		nvi_attempt_cancel(nic, &peer->req);
		end_peer(nic, peer);
	}
}
