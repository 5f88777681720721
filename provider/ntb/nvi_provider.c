/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cl_client.h"
#include "nvi_chan.h"
#include "nvi_connect.h"
#include "nvi_ctl.h"
#include "nvi_disconnect.h"
#include "nvi_engine.h"
#include "nvi_flush.h"
#include "nvi_mem.h"
#include "nvi_peer.h"
#include "nvi_progress.h"
#include "nvi_provider.h"
#include "nvi_remote.h"
#include "nvi_req.h"
#include "nvi_window.h"
#include "port_emu.h"
#include "u_affinity.h"
#include "u_log.h"
#include "u_membarrier.h"
#include "u_thread.h"

/* ---- opening and closing --------------------------------------------------------------------- */

/* Sets attributes and address of the NIC, from what the agent said when it was connected. */
static void fill_attrs(struct nvi_nic *nic)
{
	struct vi_nic *vi_nic = nic->vi_nic;
	VIP_NIC_ATTRIBUTES *a = &vi_nic->attrs;

	memset(a, 0, sizeof(*a));
	snprintf((char *)a->Name, sizeof(a->Name), "viaduct:%.55s", nic->welcome.host_name);
	a->HardwareVersion = 1;
	a->ProviderVersion = 0x00010000;
	a->NicAddressLen = W_HOST_ADDR_LEN;
	memcpy(vi_nic->address, nic->welcome.host_addr, W_HOST_ADDR_LEN);
	a->LocalNicAddress = vi_nic->address;
	a->ThreadSafe = VIP_TRUE;
	a->MaxDiscriminatorLen = W_DISC_MAX;
	a->MaxRegisterBytes = VI_MAX_REGISTER_BYTES;
	a->MaxRegisterRegions = VI_MAX_REGIONS;
	a->MaxRegisterBlockBytes = vi_max_region_bytes();
	a->MaxVI = VI_MAX_VIS;
	a->MaxDescriptorsPerQueue = VI_MAX_DESCRIPTORS;
	a->MaxSegmentsPerDesc = VI_MAX_SEGMENTS;
	a->MaxCQ = VI_MAX_CQS;
	a->MaxCQEntries = VI_MAX_CQ_ENTRIES;
	a->MaxTransferSize = VI_MAX_TRANSFER;
	a->NativeMTU = w_frag_max(nic->welcome.payload_bytes);
	a->MaxPtags = VI_MAX_PTAGS;
	a->ReliabilityLevelSupport = VIP_SERVICE_UNRELIABLE | VIP_SERVICE_RELIABLE_DELIVERY |
				     VIP_SERVICE_RELIABLE_RECEPTION;
	a->RDMAReadSupport = VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
}

static void close_ports(struct nvi_nic *nic)
{
	for (unsigned int i = 0; i < PORT_PER_HOST; i++)
		nvi_port_put(nic->ports[i]);
}

/* Frees a NIC whose threads have ended or were never started: hangs up, and drops its ports. */
static void nic_free(struct nvi_nic *nic)
{
	nvi_out_fini(&nic->out);
	close_ports(nic);
	port_irq_close(nic->irq);
	if (nic->out.sock >= 0)
		cl_hang_up(nic->out.sock);
	pthread_mutex_destroy(&nic->ctl_lock);
	pthread_mutex_destroy(&nic->mem_lock);
	pthread_cond_destroy(&nic->mem_changed);
	free(nic->chans);
	free(nic);
}

/* Starts the control thread and the engine, both or neither. */
static int start_threads(struct nvi_nic *nic)
{
	int err = u_thread_start(&nic->ctl, "vi-ctl", nvi_ctl_thread, nic);

	if (err != 0)
		return err;
	err = nvi_engine_start(nic);
	if (err != 0) {
		atomic_store_explicit(&nic->stop, 1, memory_order_seq_cst);
		shutdown(nic->out.sock, SHUT_RDWR);
		u_thread_join(nic->ctl);
	}
	return err;
}

/*
 * Connects to the agent of the device, and opens the doorbell; logs why the agent cannot be reached.  On failure the
 * socket may stay open in nic->out, for nic_free().
 */
static int nic_connect(struct nvi_nic *nic, const char *device)
{
	char error[CL_ERROR_MAX] = "";
	struct cl_agent agent;
	int err = cl_open(device, W_KIND_NIC, &agent, error);

	if (err != 0) {
		u_error("nvi", "device %s: %s", device, error);
		return err;
	}
	nic->out.sock = agent.sock;
	nic->welcome = agent.welcome;
	nic->db_mask = UINT32_C(1) << (agent.welcome.db_bit % PORT_DB_MAX);
	err = port_irq_open(agent.doorbells_fd, agent.status_fd, &nic->irq);
	close(agent.doorbells_fd);
	close(agent.status_fd);
	return err;
}

/* Initializes the state of window memory, and the times that peers may take. */
static void mem_init(struct nvi_nic *nic)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&nic->mem_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&nic->mem_changed, &attr);
	pthread_condattr_destroy(&attr);
	nic->revoke_ms = NVI_REVOKE_MS;
	nic->drain_ms = NVI_DRAIN_MS;
}

/* Connects to the agent and starts the threads of the NIC; on failure nothing is left. */
static int nvi_nic_open(struct vi_nic *vi_nic, const char *device)
{
	struct nvi_nic *nic = aligned_alloc(U_LINE_PAIR, u_align_up(sizeof(*nic), U_LINE_PAIR));
	int err;

	if (nic == NULL)
		return -ENOMEM;
	memset(nic, 0, sizeof(*nic));
	nic->vi_nic = vi_nic;
	pthread_mutex_init(&nic->ctl_lock, NULL);
	nvi_out_init(&nic->out);
	mem_init(nic);
	nic->held = (struct u_log_ratelimit)U_LOG_RATELIMIT(U_LOG_WARN, "nvi",
							    "peers that kept memory", NULL);
	nic->unattached = (struct u_log_ratelimit)U_LOG_RATELIMIT(U_LOG_WARN, "nvi",
								  "ports not attached", NULL);
	u_membarrier_register();
	err = nic_connect(nic, device);
	if (err == 0) {
		fill_attrs(nic);
		vi_nic->prov = nic;
		err = start_threads(nic);
	}
	if (err != 0) {
		vi_nic->prov = NULL;
		nic_free(nic);
		return err;
	}
	u_info("nvi", "device %s: host %s of fabric %s, doorbell bit %u", device,
	       nic->welcome.host_name, nic->welcome.fabric, nic->welcome.db_bit);
	return 0;
}

/* Stops the threads of the NIC, then closes its ports and its connection to the agent, and frees it. */
static void nvi_nic_close(struct vi_nic *vi_nic)
{
	struct nvi_nic *nic = vi_nic->prov;

	nvi_engine_stop(nic);
	shutdown(nic->out.sock, SHUT_RDWR);
	u_thread_join(nic->ctl);
	vi_nic->prov = NULL;
	nic_free(nic);
}

/* Gives the VI the channel that its memory has from an earlier VI, or a new one. */
static int nvi_vi_create(struct vi_vi *vi)
{
	vi->prov = nvi_chan_get(vi);
	return vi->prov != NULL ? 0 : -ENOMEM;
}

/* Drops the VI's peer request.  Its channel is kept for the next VI in the same memory. */
static void nvi_vi_destroy(struct vi_vi *vi)
{
	nvi_peer_drop(vi);
}

/* Ends the sleep of all threads that wait for the doorbell of this NIC. */
static void nvi_wake(struct vi_nic *vi_nic)
{
	struct nvi_nic *nic = vi_nic->prov;

	/* nic->sleepers is not checked, since a thread may have a ticket and not sleep yet. */
	port_irq_kick(nic->irq, nic->db_mask);
}

/* Binds the engine, not the control thread, to the processors of the decision; returns as u_affinity_move() does. */
static int nvi_place(struct vi_nic *vi_nic, const struct u_affinity *a,
		     const struct u_place_decision *d)
{
	struct nvi_nic *nic = vi_nic->prov;

	return u_affinity_move(a, nic->engine, "vi-xfer", d);
}

/* Adds the doorbells of the whole NIC, rung and taken, to `sum`, and nothing else: the core adds the VIs' counters. */
static void nvi_counters(struct vi_nic *vi_nic, VIPX_COUNTERS *sum)
{
	struct nvi_nic *nic = vi_nic->prov;

	sum->DoorbellsRung += atomic_load_explicit(&nic->rung, memory_order_relaxed);
	sum->DoorbellsTaken += atomic_load_explicit(&nic->cleared, memory_order_relaxed);
}

/* ---- names and routes ------------------------------------------------------------------------ */

/* Sends *msg to the agent, and replaces it by the answer.  0, or the -errno of failure or answer. */
static int name_call(struct nvi_nic *nic, struct w_name *msg, enum w_ctl_type type)
{
	struct nvi_req req;
	int err = nvi_ctl_call(nic, &req, msg, type, sizeof(*msg), &msg->token);

	if (err != 0)
		return err;
	*msg = req.answer.name;
	nvi_req_end(nic, &req);
	return nvi_status_errno(msg->status);
}

/* Asks the agent for address `index`, from 0, of a name.  -ENOENT: there is none, or the name is too long. */
static int nvi_name_to_host(struct vi_nic *vi_nic, const char *name, uint32_t index,
			    uint8_t *host_out)
{
	struct w_name msg;
	int err;

	if (strlen(name) >= sizeof(msg.name))
		return -ENOENT;
	memset(&msg, 0, sizeof(msg));
	memcpy(msg.name, name, strlen(name));
	msg.index = index;
	err = name_call(vi_nic->prov, &msg, W_NAME);
	if (err == 0)
		memcpy(host_out, msg.host_addr, W_HOST_ADDR_LEN);
	return err;
}

/* Asks the agent for the name of a host, cut to `size`; -ENOENT: it has none. */
static int nvi_host_to_name(struct vi_nic *vi_nic, const uint8_t *host, char *name_out, size_t size)
{
	struct w_name msg;
	int err;

	memset(&msg, 0, sizeof(msg));
	memcpy(msg.host_addr, host, W_HOST_ADDR_LEN);
	err = name_call(vi_nic->prov, &msg, W_ADDR_NAME);
	if (err == 0)
		snprintf(name_out, size, "%s", msg.name);
	return err;
}

/* Asks the agent for the route to a host; 0 also if the answer says that it is not reachable. */
static int route_call(struct vi_nic *vi_nic, const uint8_t *host, struct w_route *out)
{
	struct nvi_nic *nic = vi_nic->prov;
	struct w_route msg;
	struct nvi_req req;
	int err;

	memset(&msg, 0, sizeof(msg));
	memcpy(msg.host_addr, host, W_HOST_ADDR_LEN);
	err = nvi_ctl_call(nic, &req, &msg, W_ROUTE, sizeof(msg), &msg.token);
	if (err != 0)
		return err;
	*out = req.answer.route;
	nvi_req_end(nic, &req);
	return 0;
}

/* Asks the agent; 0 also for a host that is not reachable: out->Reachable tells. */
static int nvi_route(struct vi_nic *vi_nic, const struct vi_addr *remote, VIPX_ROUTE *out)
{
	struct w_route route;
	int err = route_call(vi_nic, remote->host, &route);

	if (err != 0)
		return err;
	out->Reachable = route.reachable;
	out->Hops = route.hops;
	out->PathKind = route.path;
	snprintf((char *)out->Host, sizeof(out->Host), "%s", route.host);
	snprintf((char *)out->Port, sizeof(out->Port), "%s", route.port_name);
	snprintf((char *)out->Reason, sizeof(out->Reason), "%s", route.reason);
	return 0;
}

/*
 * Gives the address of host i, and asks the agent how far it is; *hops_out is not set if that fails.  -ENOENT past the
 * last.
 */
static int nvi_host_list(struct vi_nic *vi_nic, uint32_t i, uint8_t *host_out, uint32_t *hops_out)
{
	struct nvi_nic *nic = vi_nic->prov;
	struct w_route route;
	int err;

	if (i >= nic->welcome.host_count)
		return -ENOENT;
	w_host_addr((uint16_t)i, host_out);
	err = route_call(vi_nic, host_out, &route);
	if (err == 0)
		*hops_out = route.hops;
	return err;
}

const struct vi_provider_ops nvi_provider = {
	.name = "ntb",
	.atomics = true,
	.nic_open = nvi_nic_open,
	.nic_close = nvi_nic_close,
	.vi_create = nvi_vi_create,
	.vi_destroy = nvi_vi_destroy,
	.connect_wait = nvi_connect_wait,
	.connect_accept = nvi_connect_accept,
	.connect_reject = nvi_connect_reject,
	.connect_request = nvi_connect_request,
	.peer_request = nvi_peer_request,
	.peer_done = nvi_peer_done,
	.disconnect = nvi_disconnect,
	.window_alloc = nvi_window_alloc,
	.window_free = nvi_window_free,
	.window_revoke = nvi_window_revoke,
	.remote_map = nvi_remote_map,
	.remote_unmap = nvi_remote_unmap,
	.flush = nvi_flush,
	.progress = nvi_progress,
	.doorbell_rung = nvi_doorbell_rung,
	.arm = nvi_arm,
	.sleep = nvi_sleep,
	.wake = nvi_wake,
	.place = nvi_place,
	.counters = nvi_counters,
	.name_to_host = nvi_name_to_host,
	.host_to_name = nvi_host_to_name,
	.route = nvi_route,
	.host_list = nvi_host_list,
};
