/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "nvi_attempt.h"
#include "nvi_chan.h"
#include "u_time.h"

/* An answer that the agent can give at once takes at most this long. */
#define SOON_NS INT64_C(5000000000)

/* ---- conversions ----------------------------------------------------------------------------- */

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

/* Converts an address; what it does not use of *w is 0. */
static void addr_to_wire(struct w_addr *w, const struct vi_addr *a)
{
	memset(w, 0, sizeof(*w));
	memcpy(w->host, a->host, W_HOST_ADDR_LEN);
	w->host_len = W_HOST_ADDR_LEN;
	w->disc_len = (uint8_t)a->disc_len;
	memcpy(w->disc, a->disc, a->disc_len);
}

void nvi_addr_from_wire(struct vi_addr *a, const struct w_addr *w)
{
	memset(a, 0, sizeof(*a));
	a->host_len = W_HOST_ADDR_LEN;
	memcpy(a->host, w->host, W_HOST_ADDR_LEN);
	a->disc_len = w->disc_len;
	memcpy(a->disc, w->disc, w->disc_len);
}

/* ---- states ---------------------------------------------------------------------------------- */

int nvi_attempt_begin(struct vi_vi *vi, struct nvi_req *req)
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

void nvi_attempt_end(struct vi_vi *vi, uint64_t token)
{
	struct nvi_chan *ch = vi->prov;

	vi_lock_both(vi);
	if (vi_state(vi) == VIP_STATE_CONNECT_PENDING && ch->attempt == token) {
		vi_set_state(vi, VIP_STATE_IDLE);
		ch->attempt = 0;
	}
	vi_unlock_both(vi);
}

/* ---- giving up ------------------------------------------------------------------------------- */

void nvi_attempt_cancel(struct nvi_nic *nic, struct nvi_req *req)
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

int nvi_attempt_cancel_and_wait(struct nvi_nic *nic, struct nvi_req *req)
{
	int err;

	nvi_attempt_cancel(nic, req);
	err = nvi_req_wait(nic, req, u_now_ns() + SOON_NS);
	return err == -EINPROGRESS ? -ETIMEDOUT : err;
}

void nvi_attempt_cancel_all(struct nvi_nic *nic, struct vi_vi *vi)
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

/* ---- asking ---------------------------------------------------------------------------------- */

int nvi_attempt_send(struct nvi_nic *nic, struct nvi_req *req, enum w_ctl_type type,
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
