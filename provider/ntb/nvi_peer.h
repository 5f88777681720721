/* SPDX-License-Identifier: BSD-2-Clause */
/* Peer-to-peer connections (VipConnectPeerRequest). */
#ifndef NVI_PEER_H
#define NVI_PEER_H

#include "vi_provider.h"

/*
 * vi_provider_ops.peer_request: sends the request, and does not wait for its answer; nvi_peer_done() ends the request
 * at `deadline`.  -EISCONN: the VI was not Idle; after any other failure it is Idle again.
 */
int nvi_peer_request(struct vi_vi *vi, const struct vi_addr *local, const struct vi_addr *remote,
		     int64_t deadline);
/*
 * vi_provider_ops.peer_done: 0: connected; -EAGAIN: still pending at `until`, or another thread waits for it;
 * -EISCONN: no request is under way; else it failed, and the VI is Idle.
 */
int nvi_peer_done(struct vi_vi *vi, int64_t until, VIP_VI_ATTRIBUTES *remote_attrs_out);
/*
 * Cancels the VI's peer request, if there is one, and does not wait for the answer (disconnect, destroy); leaves the VI
 * in its state.  A request in nvi_peer_done() is not cancelled here: nvi_attempt_cancel_all() did that before.
 */
void nvi_peer_drop(struct vi_vi *vi);

#endif
