/* SPDX-License-Identifier: BSD-2-Clause */
#include "pf_ctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEP_MS 200u

/* One receive or send: its descriptor and its message, each on lines of its own. */
struct cell {
	VIP_DESCRIPTOR d;
	struct pf_ctl_msg msg __attribute__((aligned(64)));
} __attribute__((aligned(64)));

static struct cell *cell_at(struct pf_ctl *ctl, uint32_t i)
{
	return (struct cell *)ctl->memory + i;
}

static void cell_prepare(struct pf_ctl *ctl, struct cell *c)
{
	memset(&c->d, 0, sizeof(c->d));
	c->d.CS.SegCount = 1;
	c->d.CS.Control = VIP_CONTROL_OP_SENDRECV;
	c->d.CS.Length = sizeof(c->msg);
	c->d.DS[0].Local.Data.Address = &c->msg;
	c->d.DS[0].Local.Handle = ctl->handle;
	c->d.DS[0].Local.Length = sizeof(c->msg);
}

static int post_cell(struct pf_ctl *ctl, struct cell *c)
{
	VIP_RETURN rc;

	cell_prepare(ctl, c);
	rc = VipPostRecv(ctl->vi, &c->d, ctl->handle);
	return rc ? PF_VIP(ctl->ep, "posting a control receive", rc) : 0;
}

static int create_ctl_vi(struct pf_ctl *ctl)
{
	VIP_VI_ATTRIBUTES a = { 0 };
	VIP_RETURN rc;

	a.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
	a.MaxTransferSize = sizeof(struct pf_ctl_msg);
	rc = VipCreateVi(ctl->ep->nic, &a, NULL, NULL, &ctl->vi);
	if (rc)
		ctl->vi = NULL;
	return rc ? PF_VIP(ctl->ep, "creating the control VI", rc) : 0;
}

int pf_ctl_create(struct pf_ctl *ctl, struct pf_ep *ep)
{
	size_t len = ((PF_CTL_DEPTH + 1) * sizeof(struct cell) + 4095) & ~(size_t)4095;
	VIP_RETURN rc;
	uint32_t i;
	int err;

	*ctl = (struct pf_ctl){ .ep = ep };
	ctl->memory = aligned_alloc(4096, len);
	if (!ctl->memory)
		return pf_fail(ep, "out of memory");
	memset(ctl->memory, 0, len);
	rc = VipRegisterMem(ep->nic, ctl->memory, len, NULL, &ctl->handle);
	if (rc)
		return PF_VIP(ep, "registering control buffers", rc);
	err = create_ctl_vi(ctl);
	for (i = 0; !err && i < PF_CTL_DEPTH; i++)
		err = post_cell(ctl, cell_at(ctl, i));
	return err;
}

void pf_ctl_destroy(struct pf_ctl *ctl)
{
	VIP_DESCRIPTOR *d;

	if (ctl->vi) {
		VipDisconnect(ctl->vi);
		do {
			VipSendDone(ctl->vi, &d);
		} while (d);
		do {
			VipRecvDone(ctl->vi, &d);
		} while (d);
		VipDestroyVi(ctl->vi);
	}
	if (ctl->handle)
		VipDeregisterMem(ctl->ep->nic, ctl->memory, ctl->handle);
	free(ctl->memory);
	*ctl = (struct pf_ctl){ 0 };
}

int pf_ctl_send(struct pf_ctl *ctl, struct pf_ctl_msg *msg, enum pf_ctl_type type)
{
	struct cell *c = cell_at(ctl, PF_CTL_DEPTH);
	VIP_DESCRIPTOR *d;
	VIP_RETURN rc;

	cell_prepare(ctl, c);
	c->msg = *msg;
	c->msg.magic = PF_CTL_MAGIC;
	c->msg.version = PF_CTL_VERSION;
	c->msg.type = type;
	rc = VipPostSend(ctl->vi, &c->d, ctl->handle);
	if (!rc)
		rc = VipSendWait(ctl->vi, ctl->ep->p.timeout_ms, &d);
	if (rc == VIP_DESCRIPTOR_ERROR)
		return pf_lost(ctl->ep, "");
	if (rc == VIP_TIMEOUT)
		return pf_silent(ctl->ep);
	return rc ? PF_VIP(ctl->ep, "sending to the peer", rc) : 0;
}

/* Makes progress on the peer's reads and writes; every 16th poll is for the message itself. */
static VIP_RETURN poll_cell(struct pf_ctl *ctl, uint32_t n, VIP_DESCRIPTOR **out)
{
	if (VipxProgress(ctl->ep->nic) != VIP_SUCCESS && n % 16 != 0)
		return VIP_NOT_DONE;
	return VipRecvDone(ctl->vi, out);
}

/* One step of waiting; *out is set when a message is there. */
static int step(struct pf_ctl *ctl, struct pf_idle *idle, bool patient, VIP_DESCRIPTOR **out)
{
	struct pf_ep *ep = ctl->ep;
	bool poll = ep->p.wait == PF_POLL && ep->vi_count;
	VIP_RETURN rc;

	rc = poll ? poll_cell(ctl, idle->empty, out) : VipRecvWait(ctl->vi, STEP_MS, out);
	if (rc == VIP_SUCCESS)
		return 0;
	if (rc == VIP_DESCRIPTOR_ERROR)
		return pf_lost(ep, "");
	if (rc != VIP_NOT_DONE && rc != VIP_TIMEOUT)
		return PF_VIP(ep, "waiting for the peer", rc);
	if (poll) {
		/* The time starts again at the next check of the clock. */
		if (patient)
			idle->deadline = 0;
		return pf_idle(ep, idle);
	}
	if (patient || !idle->deadline)
		idle->deadline = pf_now() + (int64_t)ep->p.timeout_ms * 1000000;
	return pf_now() > idle->deadline ? pf_silent(ep) : 0;
}

static int check_msg(struct pf_ep *ep, const struct pf_ctl_msg *m, uint32_t len,
		     enum pf_ctl_type type)
{
	if (len != sizeof(*m) || m->magic != PF_CTL_MAGIC)
		return pf_fail(ep, "the peer is not a %s: another program uses the name",
			       "viaduct measuring tool");
	if (m->version != PF_CTL_VERSION)
		return pf_fail(ep,
			       "the peer speaks version %u of the tools, this is %u: use the same "
			       "release on both",
			       m->version, PF_CTL_VERSION);
	if (m->type == PF_CTL_FAIL)
		return pf_fail(ep, "the peer says: %.*s", (int)sizeof(m->text) - 1, m->text);
	if (type != PF_CTL_ANY && m->type != (uint32_t)type)
		return pf_fail(ep, "the peer sent control message %u where %u was due", m->type,
			       type);
	return 0;
}

int pf_ctl_recv(struct pf_ctl *ctl, struct pf_ctl_msg *msg, enum pf_ctl_type type, bool patient)
{
	struct pf_idle idle = { 0 };
	VIP_DESCRIPTOR *d = NULL;
	uint32_t len;
	int rc = 0;

	while (!rc && !d)
		rc = step(ctl, &idle, patient, &d);
	if (rc)
		return rc;
	len = d->CS.Length;
	*msg = *(struct pf_ctl_msg *)d->DS[0].Local.Data.Address;
	msg->text[sizeof(msg->text) - 1] = '\0';
	rc = check_msg(ctl->ep, msg, len, type);
	return rc ? rc : post_cell(ctl, (struct cell *)(void *)d);
}

void pf_ctl_ask_cause(struct pf_ctl *ctl)
{
	struct pf_ctl_msg *m;
	VIP_DESCRIPTOR *d;
	VIP_RETURN rc;

	if (!ctl->vi)
		return;
	do {
		rc = VipRecvWait(ctl->vi, STEP_MS, &d);
		if (rc != VIP_SUCCESS)
			return;
		m = d->DS[0].Local.Data.Address;
	} while (m->magic != PF_CTL_MAGIC || m->type != PF_CTL_FAIL);
	m->text[sizeof(m->text) - 1] = '\0';
	ctl->ep->cause[0] = '\0';
	pf_fail(ctl->ep, "the peer says: %.200s", m->text);
}

/* An address with room for any discriminator. */
union address {
	VIP_NET_ADDRESS a;
	uint8_t room[sizeof(VIP_NET_ADDRESS) + 256];
};

static void set_name(union address *u, const char *name)
{
	size_t len = strlen(name);

	memcpy(u->a.HostAddress + u->a.HostAddressLen, name, len);
	u->a.DiscriminatorLen = (VIP_UINT16)len;
}

static void own_address(struct pf_ep *ep, union address *u, const char *name)
{
	memset(u, 0, sizeof(*u));
	u->a.HostAddressLen = ep->attrs.NicAddressLen;
	memcpy(u->a.HostAddress, ep->attrs.LocalNicAddress, ep->attrs.NicAddressLen);
	set_name(u, name);
}

static int serve_failed(struct pf_ep *ep, const char *doing, const char *name, VIP_RETURN rc)
{
	char what[96];

	snprintf(what, sizeof(what), "%s a client on '%.60s'", doing, name);
	return PF_VIP(ep, what, rc);
}

int pf_serve_vi(struct pf_ep *ep, VIP_VI_HANDLE vi, const char *name, bool first)
{
	int64_t end = pf_now() + (int64_t)ep->p.timeout_ms * 1000000;
	union address local, remote;
	VIP_VI_ATTRIBUTES attrs;
	VIP_CONN_HANDLE conn;
	VIP_RETURN rc;

	own_address(ep, &local, name);
	do {
		rc = VipConnectWait(ep->nic, &local.a, STEP_MS, &remote.a, &attrs, &conn);
	} while (rc == VIP_TIMEOUT && !atomic_load(&ep->lost) && (first || pf_now() < end));
	if (rc && atomic_load(&ep->lost))
		return pf_lost(ep, "while connecting");
	if (rc)
		return serve_failed(ep, "waiting for", name, rc);
	rc = VipConnectAccept(conn, vi);
	if (!rc)
		return 0;
	if (rc == VIP_TIMEOUT)
		return pf_lost(ep, "while connecting");
	VipConnectReject(conn);
	return serve_failed(ep, "accepting", name, rc);
}

/* "host0 host1 ..." */
static void list_hosts(struct pf_ep *ep, char *out, size_t size)
{
	union address u[16], *p;
	VIP_NET_ADDRESS *v[16];
	VIP_AUTODISCOVERY_LIST list = { 255, v, 16 };
	VIP_ULONG len, i;
	size_t at = 0;

	for (i = 0; i < 16; i++)
		v[i] = &u[i].a;
	out[0] = '\0';
	if (VipQuerySystemManagementInfo(ep->nic, VIP_SMI_AUTODISCOVERY, &list))
		return;
	for (i = 0; i < list.NumAdAddrs && at + 66 < size; i++) {
		p = &u[i];
		len = size - at - 2;
		out[at++] = ' ';
		if (VipNSGetHostByAddr(ep->nic, &p->a, out + at, &len))
			break;
		at += strlen(out + at);
	}
}

static int find_host(struct pf_ep *ep, union address *u, const char *host, const char *name)
{
	char hosts[160];

	own_address(ep, u, name);
	if (!host)
		return 0;
	u->a.HostAddressLen = 0;
	if (VipNSGetHostByName(ep->nic, (VIP_CHAR *)host, &u->a, 0)) {
		list_hosts(ep, hosts, sizeof(hosts));
		return pf_fail(ep, "no host named '%.63s' in the fabric, it has:%s", host, hosts);
	}
	set_name(u, name);
	return 0;
}

void pf_own_host(struct pf_ep *ep, char out[64])
{
	union address u;
	VIP_ULONG len = 64;

	own_address(ep, &u, "");
	if (VipNSGetHostByAddr(ep->nic, &u.a, out, &len))
		strcpy(out, "unknown");
}

int pf_route_to(struct pf_ep *ep, const char *host, VIPX_ROUTE *out)
{
	union address u;

	own_address(ep, &u, "");
	if (host && VipNSGetHostByName(ep->nic, (VIP_CHAR *)host, &u.a, 0))
		return -ENOENT;
	*out = (VIPX_ROUTE){ .Size = sizeof(*out) };
	return VipxQueryRoute(ep->nic, &u.a, out) ? -ENOENT : 0;
}

/* "host 'x'", or a description when none was named. */
static const char *in_words(const char *host, char out[80])
{
	if (!host)
		return "this host";
	snprintf(out, 80, "host '%.63s'", host);
	return out;
}

static int not_reached(struct pf_ep *ep, union address *u, const char *host)
{
	VIPX_ROUTE route = { .Size = sizeof(route) };
	char words[80];

	if (VipxQueryRoute(ep->nic, &u->a, &route))
		route.Reason[0] = '\0';
	return pf_fail(ep, "%s is not reachable: %.150s", in_words(host, words),
		       route.Reason[0] ? route.Reason : "no path; vi_info --explain tells more");
}

static int connect_failed(struct pf_ep *ep, VIP_RETURN rc, union address *u, const char *host,
			  const char *name)
{
	char words[80], what[112];

	if (rc == VIP_NOT_REACHABLE)
		return not_reached(ep, u, host);
	if (rc == VIP_NO_MATCH)
		return pf_fail(ep, "no server waits as '%.50s' on %s: start it there with --server",
			       name, in_words(host, words));
	snprintf(what, sizeof(what), "connecting to %s", in_words(host, words));
	if (rc == VIP_REJECT)
		return pf_fail(ep,
			       "%s: %s: the server refused, as it does without memory or window "
			       "for a connection; see its message and vi_fabric status",
			       what, VipxErrorString(rc));
	return PF_VIP(ep, what, rc);
}

int pf_connect_vi(struct pf_ep *ep, VIP_VI_HANDLE vi, const char *host, const char *name)
{
	int64_t end = pf_now() + (int64_t)ep->p.timeout_ms * 1000000;
	const struct timespec pause = { 0, 2000000 };
	union address local, remote;
	VIP_VI_ATTRIBUTES attrs;
	VIP_RETURN rc;
	int err = find_host(ep, &remote, host, name);

	if (err)
		return err;
	own_address(ep, &local, name);
	for (;;) {
		rc = VipConnectRequest(vi, &local.a, &remote.a, ep->p.timeout_ms, &attrs);
		if (rc != VIP_NO_MATCH || pf_now() > end || atomic_load(&ep->lost))
			break;
		nanosleep(&pause, NULL);
	}
	if (rc && atomic_load(&ep->lost))
		return pf_lost(ep, "while connecting");
	return rc ? connect_failed(ep, rc, &remote, host, name) : 0;
}
