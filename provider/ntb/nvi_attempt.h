/* SPDX-License-Identifier: BSD-2-Clause */
/* Attempts to connect: the VI between Idle and Connected. */
#ifndef NVI_ATTEMPT_H
#define NVI_ATTEMPT_H

#include "nvi_req.h"
#include "vi_provider.h"

void nvi_attrs_to_wire(struct w_vi_attrs *w, const VIP_VI_ATTRIBUTES *attrs);
void nvi_attrs_from_wire(VIP_VI_ATTRIBUTES *attrs, const struct w_vi_attrs *w);
void nvi_addr_from_wire(struct vi_addr *a, const struct w_addr *w);

/* Idle -> Connect Pending with a request of its own; -EISCONN from any other state. */
int nvi_attempt_begin(struct vi_vi *vi, struct nvi_req *req);
/* The attempt failed: Connect Pending -> Idle, unless the VI is used for something else by now. */
void nvi_attempt_end(struct vi_vi *vi, uint64_t token);
/* Gives a request up: the agent's final answer on it comes as its answer. */
void nvi_attempt_cancel(struct nvi_nic *nic, struct nvi_req *req);
/* Gives the request up and waits for the agent's final answer, which may still be success. */
int nvi_attempt_cancel_and_wait(struct nvi_nic *nic, struct nvi_req *req);
/* A blocking attempt of another thread on this VI is given up; it returns on its own. */
void nvi_attempt_cancel_all(struct nvi_nic *nic, struct vi_vi *vi);
/* Sends CONNECT, LISTEN or PEER; `attrs` and `remote` may be NULL. */
int nvi_attempt_send(struct nvi_nic *nic, struct nvi_req *req, enum w_ctl_type type,
		     const VIP_VI_ATTRIBUTES *attrs, const struct vi_addr *local,
		     const struct vi_addr *remote);

#endif
