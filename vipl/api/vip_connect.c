/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "u_time.h"
#include "vi_conn.h"
#include "vi_vi.h"
#include "vip_api.h"

/* ---- server --------------------------------------------------------------------------------- */

/*
 * Waits for a request to connect to `local_addr`, which has to be of this NIC, else -EINVAL.  0, and fills *remote_out
 * and `conn`; or -errno, -ETIMEDOUT after `timeout` milliseconds.
 */
static int wait_for(struct vi_nic *nic, const VIP_NET_ADDRESS *local_addr, VIP_ULONG timeout,
		    struct vi_addr *remote_out, struct vi_conn *conn)
{
	struct vi_addr local;
	int err = vip_addr_in(nic, local_addr, &local);

	if (err == 0)
		err = vip_addr_own(nic, &local);
	if (err == 0)
		err = nic->ops->connect_wait(nic, &local, u_deadline_ms(timeout), remote_out, conn);
	return err;
}

/* Cleanup of a thread that is cancelled while it waits: drops its reference. */
static void put_ref(void *ref)
{
	vi_ref_put(ref);
}

static void free_conn(void *conn)
{
	vi_conn_free(conn);
}

/*
 * Waits for a request to connect, and makes a handle for it; refuses it, -ENOSPC, if that is impossible.  0 or -errno,
 * which leaves the outputs.  A thread that is cancelled meanwhile leaves nothing.
 */
static int connect_wait(struct vi_nic *nic, const VIP_NET_ADDRESS *local, VIP_ULONG timeout,
			VIP_NET_ADDRESS *remote_out, VIP_VI_ATTRIBUTES *attrs_out,
			VIP_CONN_HANDLE *handle_out)
{
	struct vi_conn *conn;
	VIP_VI_ATTRIBUTES attrs;
	struct vi_addr remote;
	uint64_t id = 0;
	int err = vi_conn_create(nic, &conn);

	if (err != 0)
		return err;
	pthread_cleanup_push(free_conn, conn);
	err = wait_for(nic, local, timeout, &remote, conn);
	pthread_cleanup_pop(0);
	if (err == 0) {
		attrs = conn->remote_attrs;
		id = vi_conn_publish(conn);
		if (id == 0) {
			nic->ops->connect_reject(conn);
			err = -ENOSPC;
		}
	}
	if (err != 0) {
		vi_conn_free(conn);
		return err;
	}
	vip_addr_out(remote_out, &remote);
	*attrs_out = attrs;
	*handle_out = vi_id_handle(id);
	return 0;
}

VIP_RETURN VipConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *LocalAddr, VIP_ULONG Timeout,
			  VIP_NET_ADDRESS *RemoteAddr, VIP_VI_ATTRIBUTES *RemoteViAttribs,
			  VIP_CONN_HANDLE *ConnHandle)
{
	struct vi_nic *nic;
	int err;

	if (LocalAddr == NULL || RemoteAddr == NULL || RemoteViAttribs == NULL ||
	    ConnHandle == NULL)
		return VIP_INVALID_PARAMETER;
	nic = vi_nic_get(NicHandle);
	if (nic == NULL)
		return VIP_INVALID_PARAMETER;
	pthread_cleanup_push(put_ref, &nic->ref);
	err = connect_wait(nic, LocalAddr, Timeout, RemoteAddr, RemoteViAttribs, ConnHandle);
	pthread_cleanup_pop(1);
	return vi_return(err);
}

/* Checks that the VI is Idle, -EISCONN if not, and that both sides agree: -EPROTOTYPE, -EMSGSIZE or -EDOM if not. */
static int compare_attrs(struct vi_vi *vi, const VIP_VI_ATTRIBUTES *remote)
{
	VIP_VI_ATTRIBUTES own;
	VIP_VI_STATE state;
	bool empty[2];

	vi_vi_query(vi, &state, &own, &empty[0], &empty[1]);
	if (state != VIP_STATE_IDLE)
		return -EISCONN;
	if (own.ReliabilityLevel != remote->ReliabilityLevel)
		return -EPROTOTYPE;
	if (own.MaxTransferSize != remote->MaxTransferSize)
		return -EMSGSIZE;
	return own.QoS != remote->QoS ? -EDOM : 0;
}

/*
 * Connects the VI with the client, if it is of the same NIC, else -EINVAL, and has the same attributes, else an error
 * of compare_attrs().  The caller keeps `conn`, and ends or returns it.
 */
static int accept_conn(struct vi_conn *conn, struct vi_vi *vi)
{
	int err;

	if (vi->nic != conn->nic)
		return -EINVAL;
	err = compare_attrs(vi, &conn->remote_attrs);
	return err != 0 ? err : conn->nic->ops->connect_accept(conn, vi);
}

VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_vi *vi = vi_vi_get(ViHandle);
	struct vi_conn *conn;
	int err;

	if (vi == NULL)
		return VIP_INVALID_PARAMETER;
	conn = vi_conn_take(ConnHandle);
	if (conn == NULL) {
		vi_ref_put(&vi->ref);
		return VIP_INVALID_PARAMETER;
	}
	err = accept_conn(conn, vi);
	/* Accepted, or the client is gone: decided.  Any other failure leaves the request alive. */
	if (err == 0 || err == -ETIMEDOUT || err == -EHOSTUNREACH)
		vi_conn_end(conn);
	else
		vi_conn_return(conn);
	vi_ref_put(&vi->ref);
	return vi_return(err);
}

VIP_RETURN VipConnectReject(VIP_CONN_HANDLE ConnHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_conn *conn = vi_conn_take(ConnHandle);

	if (conn == NULL)
		return VIP_INVALID_PARAMETER;
	/* A failure means that the client has given up, which is as good as a refusal. */
	conn->nic->ops->connect_reject(conn);
	vi_conn_end(conn);
	return VIP_SUCCESS;
}

/* ---- client --------------------------------------------------------------------------------- */

/*
 * Checks both addresses and the state, then waits until connected.  -EINVAL: a bad address, or `local_addr` is not of
 * this NIC; -EISCONN: the VI is not Idle; else the result of the provider.
 */
static int connect_request(struct vi_vi *vi, const VIP_NET_ADDRESS *local_addr,
			   const VIP_NET_ADDRESS *remote_addr, VIP_ULONG timeout,
			   VIP_VI_ATTRIBUTES *attrs_out)
{
	struct vi_addr local;
	struct vi_addr remote;
	int err = vip_addr_in(vi->nic, local_addr, &local);

	if (err == 0)
		err = vip_addr_own(vi->nic, &local);
	if (err == 0)
		err = vip_addr_in(vi->nic, remote_addr, &remote);
	if (err == 0 && vi_state(vi) != VIP_STATE_IDLE)
		err = -EISCONN;
	if (err != 0)
		return err;
	return vi->nic->ops->connect_request(vi, &local, &remote, u_deadline_ms(timeout),
					     attrs_out);
}

VIP_RETURN VipConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS *LocalAddr,
			     VIP_NET_ADDRESS *RemoteAddr, VIP_ULONG Timeout,
			     VIP_VI_ATTRIBUTES *RemoteViAttribs)
{
	struct vi_vi *vi;
	int err;

	if (LocalAddr == NULL || RemoteAddr == NULL || RemoteViAttribs == NULL || Timeout == 0)
		return VIP_INVALID_PARAMETER;
	vi = vi_vi_get(ViHandle);
	if (vi == NULL)
		return VIP_INVALID_PARAMETER;
	pthread_cleanup_push(put_ref, &vi->ref);
	err = connect_request(vi, LocalAddr, RemoteAddr, Timeout, RemoteViAttribs);
	pthread_cleanup_pop(1);
	return vi_return(err);
}

VIP_RETURN VipDisconnect(VIP_VI_HANDLE ViHandle)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_vi *vi = vi_vi_get(ViHandle);
	int err;

	if (vi == NULL)
		return VIP_INVALID_PARAMETER;
	err = vi->nic->ops->disconnect(vi);
	vi_ref_put(&vi->ref);
	return vi_return(err);
}

/* ---- peer to peer --------------------------------------------------------------------------- */

/* Checks as connect_request(), then begins a peer request, and does not wait. */
static int peer_request(struct vi_vi *vi, const VIP_NET_ADDRESS *local_addr,
			const VIP_NET_ADDRESS *remote_addr, VIP_ULONG timeout)
{
	struct vi_addr local;
	struct vi_addr remote;
	int err = vip_addr_in(vi->nic, local_addr, &local);

	if (err == 0)
		err = vip_addr_own(vi->nic, &local);
	if (err == 0)
		err = vip_addr_in(vi->nic, remote_addr, &remote);
	if (err == 0 && vi_state(vi) != VIP_STATE_IDLE)
		err = -EISCONN;
	if (err != 0)
		return err;
	return vi->nic->ops->peer_request(vi, &local, &remote, u_deadline_ms(timeout));
}

VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS *LocalAddr,
				 VIP_NET_ADDRESS *RemoteAddr, VIP_ULONG Timeout)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	struct vi_vi *vi;
	int err;

	if (LocalAddr == NULL || RemoteAddr == NULL || Timeout == 0)
		return VIP_INVALID_PARAMETER;
	vi = vi_vi_get(ViHandle);
	if (vi == NULL)
		return VIP_INVALID_PARAMETER;
	err = peer_request(vi, LocalAddr, RemoteAddr, Timeout);
	vi_ref_put(&vi->ref);
	return vi_return(err);
}

/* Waits until the VI's peer request is decided, or until the deadline `until`: then VIP_NOT_DONE; 0: does not wait. */
static VIP_RETURN peer_result(const void *handle, int64_t until, VIP_VI_ATTRIBUTES *attrs_out)
{
	struct vi_vi *vi;
	int err;

	if (attrs_out == NULL)
		return VIP_INVALID_PARAMETER;
	vi = vi_vi_get(handle);
	if (vi == NULL)
		return VIP_INVALID_PARAMETER;
	pthread_cleanup_push(put_ref, &vi->ref);
	err = vi->nic->ops->peer_done(vi, until, attrs_out);
	pthread_cleanup_pop(1);
	return vi_return(err);
}

VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *RemoteViAttribs)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	return peer_result(ViHandle, 0, RemoteViAttribs);
}

VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *RemoteViAttribs)
{
	return peer_result(ViHandle, U_NEVER, RemoteViAttribs);
}
