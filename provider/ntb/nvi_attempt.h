/* SPDX-License-Identifier: BSD-2-Clause */
/* Attempts to connect: the VI between Idle and Connected. */
#ifndef NVI_ATTEMPT_H
#define NVI_ATTEMPT_H

#include "nvi_req.h"
#include "vi_provider.h"

/*
 * These convert attributes and an address, all of their fields.  They check nothing: an address in a message was
 * checked by w_ctl_check() before.
 */
void nvi_attrs_to_wire(struct w_vi_attrs *w, const VIP_VI_ATTRIBUTES *attrs);
void nvi_attrs_from_wire(VIP_VI_ATTRIBUTES *attrs, const struct w_vi_attrs *w);
void nvi_addr_from_wire(struct vi_addr *a, const struct w_addr *w);

/*
 * Enters a request and moves the VI from Idle to Connect Pending.  0, -EISCONN if the VI is in another state;
 * -ENOTCONN when the agent is gone.  On failure no request is left.  Takes both locks of the VI.
 */
int nvi_attempt_begin(struct vi_vi *vi, struct nvi_req *req);
/*
 * The attempt failed: moves the VI from Connect Pending to Idle, unless another attempt has begun
 * on it since.  Takes both locks of the VI.  The request is not ended by it.
 */
void nvi_attempt_end(struct vi_vi *vi, uint64_t token);
/*
 * Asks the agent to cancel a request, once, unless the answer has come.  The request still gets one
 * final answer, for which this does not wait.  Takes ctl_lock.
 */
void nvi_attempt_cancel(struct nvi_nic *nic, struct nvi_req *req);
/*
 * Cancels the request and waits up to 5 s for the agent's final answer.  0: it was connected before the
 * cancellation; -ETIMEDOUT: no answer in time; else the -errno of the answer.
 */
int nvi_attempt_cancel_and_wait(struct nvi_nic *nic, struct nvi_req *req);
/*
 * Cancels the attempts of other threads on this VI, four at most.  Does not wait: their calls return
 * when the agent has answered.  Takes ctl_lock.
 */
void nvi_attempt_cancel_all(struct nvi_nic *nic, struct vi_vi *vi);
/*
 * Sends CONNECT, LISTEN or PEER to the agent, without waiting; `attrs` and `remote` may be NULL.  Returns as
 * nvi_ctl_send() does; on failure the request and the state of the VI stay as they are.
 */
int nvi_attempt_send(struct nvi_nic *nic, struct nvi_req *req, enum w_ctl_type type,
		     const VIP_VI_ATTRIBUTES *attrs, const struct vi_addr *local,
		     const struct vi_addr *remote);

#endif
