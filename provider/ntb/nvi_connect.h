/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of clients and servers, by way of the agent. */
#ifndef NVI_CONNECT_H
#define NVI_CONNECT_H

#include "vi_provider.h"

/*
 * vi_provider_ops.connect_wait: waits for a client's request to connect; -ETIMEDOUT: none came.  Only on success sets
 * *remote_out, and in *conn the client's attributes and the agent's name of the request.
 */
int nvi_connect_wait(struct vi_nic *nic, const struct vi_addr *local, int64_t deadline,
		     struct vi_addr *remote_out, struct vi_conn *conn);
/*
 * vi_provider_ops.connect_accept: connects the VI with the client, and waits until that is done or has failed.
 * -EISCONN: the VI was not Idle; after any other failure it is Idle again.
 */
int nvi_connect_accept(struct vi_conn *conn, struct vi_vi *vi);
/* vi_provider_ops.connect_reject: refuses the client's request; does not wait. */
int nvi_connect_reject(struct vi_conn *conn);
/*
 * vi_provider_ops.connect_request: waits until connected, refused or cancelled at the deadline; -EISCONN: the VI was
 * not Idle; after any other failure it is Idle again.
 */
int nvi_connect_request(struct vi_vi *vi, const struct vi_addr *local, const struct vi_addr *remote,
			int64_t deadline, VIP_VI_ATTRIBUTES *remote_attrs_out);

#endif
