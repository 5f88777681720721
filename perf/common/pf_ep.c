/* SPDX-License-Identifier: BSD-2-Clause */
#include "pf_ep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Receives beyond the window: acknowledgements and marks of two rounds. */
#define EXTRA_DESCS 6u

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *e)
{
	struct pf_ep *ep = context;

	atomic_store(&ep->lost, (int)e->ErrorCode + 1);
}

/* An unknown device name opens the default NIC, so this checks that the NIC is the right one. */
static int check_host(struct pf_ep *ep, const char *host)
{
	union {
		VIP_NET_ADDRESS addr;
		uint8_t room[sizeof(VIP_NET_ADDRESS) + 64];
	} a = { .addr = { 0 } };
	VIP_RETURN rc = VipNSGetHostByName(ep->nic, (VIP_CHAR *)host, &a.addr, 0);

	if (rc == VIP_SUCCESS &&
	    !memcmp(a.addr.HostAddress, ep->attrs.LocalNicAddress, ep->attrs.NicAddressLen))
		return 0;
	return pf_fail(ep, "no NIC of host '%.63s' on this machine: %s; vi_info -l lists the hosts",
		       host, rc ? "the fabric has no such host" : "another host was opened");
}

int pf_ep_open(struct pf_ep *ep, const char *host)
{
	VIP_RETURN rc;

	rc = VipOpenNic(host ? host : "nic0", &ep->nic);
	if (rc) {
		ep->nic = NULL;
		return pf_fail(ep, "opening the NIC of %s: %s; see the line above, or run vi_info",
			       host ? host : "the default host", VipxErrorString(rc));
	}
	rc = VipErrorCallback(ep->nic, ep, on_error);
	if (!rc)
		rc = VipQueryNic(ep->nic, &ep->attrs);
	if (!rc)
		rc = VipNSInit(ep->nic, NULL);
	if (rc)
		return PF_VIP(ep, "preparing the NIC", rc);
	return host ? check_host(ep, host) : 0;
}

static uint32_t service_of(uint32_t level)
{
	return 1u << level; /* VIP_SERVICE_* in the order of enum pf_level */
}

static int check_level(struct pf_ep *ep, const struct pf_params *p)
{
	const char *name = pf_level_names[p->level];

	if (!(ep->attrs.ReliabilityLevelSupport & service_of(p->level)))
		return pf_fail(ep, "NIC '%s' has no level %s: choose another --level",
			       ep->attrs.Name, name);
	if (p->op == PF_READ && !(ep->attrs.RDMAReadSupport & service_of(p->level)))
		return pf_fail(ep, "NIC '%s' has no RDMA read at level %s: choose another --level",
			       ep->attrs.Name, name);
	return 0;
}

int pf_ep_check(struct pf_ep *ep, const struct pf_params *p)
{
	const VIP_NIC_ATTRIBUTES *a = &ep->attrs;
	uint64_t cq_entries = (uint64_t)p->vis * 2 * (p->window + EXTRA_DESCS);
	uint32_t segments = p->segments + (p->op == PF_SEND ? 0 : 1);

	if (p->max_size > a->MaxTransferSize)
		return pf_fail(ep, "size %llu is above MaxTransferSize %lu of the NIC",
			       (unsigned long long)p->max_size, a->MaxTransferSize);
	if (p->window + EXTRA_DESCS > a->MaxDescriptorsPerQueue)
		return pf_fail(ep, "--window %u needs %u descriptors on a queue, the NIC has %lu",
			       p->window, p->window + EXTRA_DESCS, a->MaxDescriptorsPerQueue);
	if (segments > a->MaxSegmentsPerDesc)
		return pf_fail(ep, "%u segments are above MaxSegmentsPerDesc %lu of the NIC",
			       segments, a->MaxSegmentsPerDesc);
	if (p->vis + 1 > a->MaxVI)
		return pf_fail(ep, "--vis %u is above MaxVI %lu of the NIC", p->vis, a->MaxVI);
	if (p->cq && cq_entries > a->MaxCQEntries)
		return pf_fail(ep,
			       "--cq needs %llu entries, MaxCQEntries is %lu: fewer VIs or a "
			       "smaller window",
			       (unsigned long long)cq_entries, a->MaxCQEntries);
	return check_level(ep, p);
}

static int alloc_region(struct pf_ep *ep)
{
	VIP_MEM_ATTRIBUTES a = { NULL, VIP_TRUE, VIP_FALSE };
	VIP_PVOID where = NULL;
	VIP_RETURN rc;

	a.EnableRdmaRead = ep->p.op == PF_READ;
	if (ep->p.window_memory) {
		rc = VipxAllocMem(ep->nic, ep->region_len, &a, &where, &ep->region_handle);
		if (rc)
			return pf_fail(ep,
				       "%zu bytes of window memory: %s; smaller --sizes, or a "
				       "larger VIADUCT_WINDOW_BYTES",
				       ep->region_len, VipxErrorString(rc));
		ep->region = where;
		return 0;
	}
	ep->region = aligned_alloc(4096, ep->region_len);
	if (!ep->region)
		return pf_fail(ep, "%zu bytes of buffers: out of memory", ep->region_len);
	memset(ep->region, 0, ep->region_len);
	if (ep->p.adopt)
		rc = VipxAdoptMem(ep->nic, ep->region, ep->region_len, &a, VIPX_ADOPT_NO_WRITERS,
				  &ep->region_handle);
	else
		rc = VipRegisterMem(ep->nic, ep->region, ep->region_len, &a, &ep->region_handle);
	return rc ? PF_VIP(ep, "registering the buffers", rc) : 0;
}

static int alloc_descs(struct pf_ep *ep)
{
	VIP_RETURN rc;

	ep->descs_len = ep->desc_size * ep->vi_count * (ep->send_cap + ep->recv_cap);
	ep->descs_len = (ep->descs_len + 4095) & ~(size_t)4095;
	ep->descs = aligned_alloc(4096, ep->descs_len);
	if (!ep->descs)
		return pf_fail(ep, "%zu bytes of descriptors: out of memory", ep->descs_len);
	memset(ep->descs, 0, ep->descs_len);
	rc = VipRegisterMem(ep->nic, ep->descs, ep->descs_len, NULL, &ep->descs_handle);
	return rc ? PF_VIP(ep, "registering the descriptors", rc) : 0;
}

/* Numbers and sizes of descriptors and slots, and with them the length of the region. */
static void plan_memory(struct pf_ep *ep)
{
	const struct pf_params *p = &ep->p;

	/* A read has no acknowledgements: its window is bounded by the descriptors alone. */
	ep->send_cap = p->window + (p->op == PF_READ ? 0 : EXTRA_DESCS);
	ep->recv_cap = p->window + EXTRA_DESCS;
	ep->send_slots = p->verify ? p->window : p->buffers;
	ep->recv_slots = p->verify ? ep->recv_cap : p->buffers;
	/* A distance of one line is not enough: processors prefetch lines in pairs. */
	ep->slot = ((p->max_size ? p->max_size : 1) + 127) & ~(size_t)127;
	ep->desc_size = (sizeof(VIP_CONTROL_SEGMENT) +
			 (p->segments + 1) * sizeof(VIP_DESCRIPTOR_SEGMENT) + 63) &
			~(size_t)63;
	ep->region_len = ep->slot * (ep->send_slots + ep->recv_slots) * ep->vi_count;
	ep->region_len = (ep->region_len + 4095) & ~(size_t)4095;
}

static int create_vi(struct pf_ep *ep, struct pf_vi *vi)
{
	VIP_VI_ATTRIBUTES a = { 0 };
	VIP_RETURN rc;

	a.ReliabilityLevel = (VIP_RELIABILITY_LEVEL)service_of(ep->p.level);
	a.MaxTransferSize = ep->p.max_size ? ep->p.max_size : 1;
	/* A send goes directly into a receive whose memory the peer may write. */
	a.EnableRdmaWrite = ep->p.op == PF_WRITE || ep->p.op == PF_WRITE_IMM ||
			    ep->p.window_memory || ep->p.adopt;
	a.EnableRdmaRead = ep->p.op == PF_READ;
	rc = VipCreateVi(ep->nic, &a, ep->cq, ep->cq, &vi->handle);
	if (rc)
		vi->handle = NULL;
	else
		rc = VipxSetViContext(vi->handle, vi);
	return rc ? PF_VIP(ep, "creating a VI", rc) : 0;
}

static VIP_DESCRIPTOR *desc_at(struct pf_ep *ep, const struct pf_vi *vi, uint32_t i)
{
	return (VIP_DESCRIPTOR *)(void *)(vi->descs + i * ep->desc_size);
}

static int create_lists(struct pf_ep *ep, struct pf_vi *vi)
{
	uint32_t i;
	int q;

	vi->sends = calloc((size_t)ep->send_cap * 2, sizeof(*vi->sends));
	if (!vi->sends)
		return pf_fail(ep, "out of memory");
	for (i = 0; i < ep->send_cap; i++)
		vi->sends[i] = vi->sends[i + ep->send_cap] = desc_at(ep, vi, i);
	for (q = 0; q < 2; q++) {
		vi->stash[q].room = ep->send_cap + ep->recv_cap;
		vi->stash[q].v = calloc(vi->stash[q].room, sizeof(*vi->stash[q].v));
		if (!vi->stash[q].v)
			return pf_fail(ep, "out of memory");
	}
	return 0;
}

/* RDMA writes place nothing through receives, so these are empty. */
static uint32_t recv_room(const struct pf_ep *ep)
{
	return ep->p.op == PF_SEND ? (uint32_t)ep->p.max_size : 0;
}

static int post_receives(struct pf_ep *ep, uint32_t k)
{
	struct pf_vi *vi = &ep->vis[k];
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < ep->recv_cap; i++) {
		VIP_DESCRIPTOR *d = desc_at(ep, vi, ep->send_cap + i);

		d->CS.SegCount = recv_room(ep) ? (uint16_t)ep->p.segments : 0;
		pf_set_segments(ep, d->DS, pf_recv_slot(ep, k, i), recv_room(ep));
		rc = pf_repost(ep, k, d);
	}
	return rc ? rc : pf_flush(ep, k);
}

static int setup_vi(struct pf_ep *ep, uint32_t k)
{
	struct pf_vi *vi = &ep->vis[k];
	size_t area = ep->slot * (ep->send_slots + ep->recv_slots);
	int rc;

	vi->send_area = ep->region + area * k;
	vi->recv_area = vi->send_area + ep->slot * ep->send_slots;
	vi->descs = ep->descs + ep->desc_size * (ep->send_cap + ep->recv_cap) * k;
	rc = create_lists(ep, vi);
	if (!rc)
		rc = create_vi(ep, vi);
	if (!rc && ep->cq)
		*pf_place_of_handle(ep, vi->handle) = vi;
	return rc ? rc : post_receives(ep, k);
}

static int setup_cq(struct pf_ep *ep)
{
	VIP_RETURN rc;

	if (!ep->p.cq)
		return 0;
	rc = VipCreateCQ(ep->nic, ep->vi_count * 2 * (ep->p.window + EXTRA_DESCS), &ep->cq);
	if (rc)
		ep->cq = NULL;
	if (rc)
		return PF_VIP(ep, "creating the completion queue", rc);
	ep->by_handle_mask = 1;
	while (ep->by_handle_mask < ep->vi_count * 2)
		ep->by_handle_mask = ep->by_handle_mask * 2 + 1;
	ep->by_handle = calloc(ep->by_handle_mask + 1, sizeof(struct pf_vi *));
	return ep->by_handle ? 0 : pf_fail(ep, "out of memory");
}

int pf_ep_setup(struct pf_ep *ep, const struct pf_params *p)
{
	uint32_t k;
	int rc;

	ep->p = *p;
	ep->vi_count = p->vis;
	ep->vis = calloc(p->vis, sizeof(*ep->vis));
	if (!ep->vis)
		return pf_fail(ep, "out of memory");
	plan_memory(ep);
	rc = alloc_region(ep);
	if (!rc)
		rc = alloc_descs(ep);
	if (!rc)
		rc = setup_cq(ep);
	for (k = 0; !rc && k < ep->vi_count; k++)
		rc = setup_vi(ep, k);
	return rc;
}

static void destroy_vi(struct pf_vi *vi)
{
	VIP_DESCRIPTOR *d;

	if (vi->handle) {
		VipDisconnect(vi->handle);
		do {
			VipSendDone(vi->handle, &d);
		} while (d);
		do {
			VipRecvDone(vi->handle, &d);
		} while (d);
		VipDestroyVi(vi->handle);
	}
	free(vi->sends);
	free(vi->stash[0].v);
	free(vi->stash[1].v);
}

static void free_memory(struct pf_ep *ep)
{
	if (ep->descs_handle)
		VipDeregisterMem(ep->nic, ep->descs, ep->descs_handle);
	if (ep->region_handle && ep->p.window_memory)
		VipxFreeMem(ep->nic, ep->region, ep->region_handle);
	else if (ep->region_handle)
		VipDeregisterMem(ep->nic, ep->region, ep->region_handle);
	free(ep->descs);
	if (!ep->p.window_memory)
		free(ep->region);
}

void pf_ep_close(struct pf_ep *ep)
{
	uint32_t k;

	for (k = 0; ep->vis && k < ep->vi_count; k++)
		destroy_vi(&ep->vis[k]);
	free(ep->vis);
	free(ep->by_handle);
	ep->vis = NULL;
	ep->by_handle = NULL;
	if (ep->cq)
		VipDestroyCQ(ep->cq);
	free_memory(ep);
	if (ep->nic)
		VipCloseNic(ep->nic);
	ep->nic = NULL;
}
