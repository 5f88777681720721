/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations with which vi_provider_fill() replaces those that a provider lacks. */
#include <errno.h>

#include "u_time.h"
#include "vi_objects.h"
#include "vi_provider.h"

#define SLEEP_STEP_NS INT64_C(1000000)

/* Knows no device. */
static int no_nic_open(struct vi_nic *nic, const char *device)
{
	return -ENODEV;
}

static void no_nic(struct vi_nic *nic) {}

static int no_vi(struct vi_vi *vi)
{
	return -EOPNOTSUPP;
}

static void no_vi_destroy(struct vi_vi *vi) {}

static int no_connect_wait(struct vi_nic *nic, const struct vi_addr *local, int64_t deadline,
			   struct vi_addr *remote_out, struct vi_conn *conn)
{
	return -EOPNOTSUPP;
}

static int no_connect_accept(struct vi_conn *conn, struct vi_vi *vi)
{
	return -EOPNOTSUPP;
}

static int no_connect_reject(struct vi_conn *conn)
{
	return -EOPNOTSUPP;
}

static int no_connect_request(struct vi_vi *vi, const struct vi_addr *local,
			      const struct vi_addr *remote, int64_t deadline,
			      VIP_VI_ATTRIBUTES *remote_attrs_out)
{
	return -EOPNOTSUPP;
}

static int no_peer_request(struct vi_vi *vi, const struct vi_addr *local,
			   const struct vi_addr *remote, int64_t deadline)
{
	return -EOPNOTSUPP;
}

static int no_peer_done(struct vi_vi *vi, int64_t until, VIP_VI_ATTRIBUTES *remote_attrs_out)
{
	return -EOPNOTSUPP;
}

static int no_window_alloc(struct vi_nic *nic, uint64_t len, bool sealed, void **addr_out,
			   void **window_out)
{
	return -EOPNOTSUPP;
}

static void no_window_free(struct vi_nic *nic, void *window) {}

static void no_window_revoke(struct vi_nic *nic, void *window) {}

static int no_remote_map(struct vi_vi *vi, uint64_t addr, uint64_t len, uint32_t handle, void **out)
{
	return -EOPNOTSUPP;
}

/* Nothing was mapped. */
static int no_remote_unmap(struct vi_vi *vi, void *at)
{
	return -EINVAL;
}

static int no_flush(struct vi_vi *vi, int64_t deadline)
{
	return -EOPNOTSUPP;
}

static int nothing_moves(struct vi_nic *nic)
{
	return 0;
}

static uint32_t no_arm(struct vi_nic *nic)
{
	return 0;
}

/* Sleeps until the deadline, SLEEP_STEP_NS at most: nothing ends this sleep early. */
static void short_sleep(struct vi_nic *nic, uint32_t ticket, int64_t deadline)
{
	int64_t left = u_time_left(deadline);

	u_nap_ns(left < 0 || left > SLEEP_STEP_NS ? SLEEP_STEP_NS : left);
}

static int no_place(struct vi_nic *nic, const struct u_affinity *a,
		    const struct u_place_decision *d)
{
	return -EOPNOTSUPP;
}

static void no_counters(struct vi_nic *nic, VIPX_COUNTERS *sum) {}

static int no_name_to_host(struct vi_nic *nic, const char *name, uint32_t index, uint8_t *host_out)
{
	return -EOPNOTSUPP;
}

static int no_host_to_name(struct vi_nic *nic, const uint8_t *host, char *name_out, size_t size)
{
	return -EOPNOTSUPP;
}

static bool never_rung(struct vi_nic *nic)
{
	return false;
}

static int no_route(struct vi_nic *nic, const struct vi_addr *remote, VIPX_ROUTE *out)
{
	return -EOPNOTSUPP;
}

static int no_host_list(struct vi_nic *nic, uint32_t i, uint8_t *host_out, uint32_t *hops_out)
{
	return -EOPNOTSUPP;
}

void vi_provider_fill(struct vi_provider_ops *out, const struct vi_provider_ops *in)
{
#define PICK(op, missing) out->op = in->op != NULL ? in->op : (missing)
	PICK(name, "unnamed");
	out->atomics = in->atomics;
	PICK(nic_open, no_nic_open);
	PICK(nic_close, no_nic);
	PICK(vi_create, no_vi);
	PICK(vi_destroy, no_vi_destroy);
	PICK(connect_wait, no_connect_wait);
	PICK(connect_accept, no_connect_accept);
	PICK(connect_reject, no_connect_reject);
	PICK(connect_request, no_connect_request);
	PICK(peer_request, no_peer_request);
	PICK(peer_done, no_peer_done);
	PICK(disconnect, no_vi);
	PICK(window_alloc, no_window_alloc);
	PICK(window_free, no_window_free);
	PICK(window_revoke, no_window_revoke);
	PICK(remote_map, no_remote_map);
	PICK(remote_unmap, no_remote_unmap);
	PICK(flush, no_flush);
	PICK(progress, nothing_moves);
	PICK(arm, no_arm);
	PICK(sleep, short_sleep);
	PICK(wake, no_nic);
	PICK(doorbell_rung, never_rung);
	PICK(place, no_place);
	PICK(counters, no_counters);
	PICK(name_to_host, no_name_to_host);
	PICK(host_to_name, no_host_to_name);
	PICK(route, no_route);
	PICK(host_list, no_host_list);
#undef PICK
}

static void none_post_send(struct vi_vi *vi) {}

/* Stores nothing: the write has to be queued. */
static bool none_write_unqueued(struct vi_vi *vi, const uint8_t *at, uint32_t length, uint64_t addr,
				uint32_t handle)
{
	return false;
}

/* Sends nothing: the descriptor has to be queued. */
static bool none_send_unqueued(struct vi_vi *vi, VIP_DESCRIPTOR *desc, const uint8_t *at,
			       uint32_t length, uint16_t control)
{
	return false;
}

static void none_recv_posted(struct vi_vi *vi) {}

static int none_progress(struct vi_vi *vi)
{
	return 0;
}

/* Nothing can come: no word is to be watched. */
static bool none_watch(struct vi_vi *vi, struct vi_watch *out)
{
	return true;
}

const struct vi_fast_ops vi_fast_none = {
	.post_send = none_post_send,
	.send_unqueued = none_send_unqueued,
	.write_unqueued = none_write_unqueued,
	.recv_posted = none_recv_posted,
	.poll_recv = none_progress,
	.progress = none_progress,
	.watch = none_watch,
};
