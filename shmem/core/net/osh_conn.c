/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <string.h>
#include <time.h>

#include "osh_conn.h"
#include "osh_wait.h"

#define PATIENCE_S 30 /* for a way to another host */

struct discriminator {
	char kind[4];
	uint32_t pe;
	uint64_t job;
};

static_assert(sizeof(struct discriminator) == 16, "osh_address has room for it");

/* Written by osh_conn_init(), before the threads that read it are started. */
static union osh_address here;

const VIP_VI_ATTRIBUTES osh_conn_attrs = {
	.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
	.MaxTransferSize = 1u << 30,
	.EnableRdmaWrite = VIP_TRUE,
	.EnableRdmaRead = VIP_TRUE,
};

/* Fills the address of PE `pe` of this job on a host. */
static void address_of(union osh_address *a, const uint8_t *host, size_t len, int pe)
{
	struct discriminator d = { { 'o', 's', 'h', 0 }, (uint32_t)pe, osh_pe.job.id };

	memset(a, 0, sizeof(*a));
	a->addr.HostAddressLen = (VIP_UINT16)len;
	a->addr.DiscriminatorLen = sizeof(d);
	memcpy(a->addr.HostAddress, host, len);
	memcpy(a->addr.HostAddress + len, &d, sizeof(d));
}

void osh_conn_init(const uint8_t *host, size_t host_len)
{
	address_of(&here, host, host_len, osh_pe.me);
}

const union osh_address *osh_conn_here(void)
{
	return &here;
}

union osh_address osh_conn_nobody(void)
{
	union osh_address nobody = here;
	uint8_t *discriminator = nobody.addr.HostAddress + nobody.addr.HostAddressLen;

	discriminator[0] ^= 1;
	return nobody;
}

int osh_conn_pe_of(const union osh_address *from)
{
	struct discriminator d;

	if (from->addr.DiscriminatorLen != sizeof(d))
		return -1;
	memcpy(&d, from->addr.HostAddress + from->addr.HostAddressLen, sizeof(d));
	if (memcmp(d.kind, "osh", 4) != 0 || d.job != osh_pe.job.id || d.pe >= (uint32_t)osh_pe.n)
		return -1;
	return (int)d.pe;
}

/* ---- the agent ------------------------------------------------------------------------------- */

_Noreturn void osh_conn_agent_gone(VIP_RETURN rc)
{
	osh_fatal("the agent of this host is gone (VipConnectWait: %s)", VipxErrorString(rc));
}

void osh_conn_check_agent(void)
{
	union osh_address nobody = osh_conn_nobody(), from;
	VIP_VI_ATTRIBUTES attrs;
	VIP_CONN_HANDLE conn;
	VIP_RETURN rc;

	rc = VipConnectWait(osh_pe.nic, &nobody.addr, 0, &from.addr, &attrs, &conn);
	if (rc == VIP_ERROR_RESOURCE)
		osh_conn_agent_gone(rc);
}

/* ---- connecting ------------------------------------------------------------------------------ */

void osh_conn_nap(void)
{
	struct timespec t = { 0, 1000000 };

	nanosleep(&t, NULL);
}

/*
 * May the connection be asked for again, for any time? The other PE may accept many connections at a time, be short
 * of a processor or be stopped, as by a debugger, for any time. One that has ended ends the job.
 */
static bool is_late(VIP_RETURN rc)
{
	return rc == VIP_NO_MATCH || rc == VIP_TIMEOUT;
}

/* Is something short that a connection needs, here or at the other PE, which rejects it then? */
static bool is_short(VIP_RETURN rc)
{
	return rc == VIP_ERROR_RESOURCE || rc == VIP_REJECT;
}

VIP_VI_HANDLE osh_conn_open(const char *fn, int pe)
{
	const struct osh_peer *p = &osh_pe.peers[pe];
	VIP_VI_ATTRIBUTES attrs = osh_conn_attrs, theirs;
	time_t end = time(NULL) + PATIENCE_S;
	union osh_address there, mine = here;
	VIP_VI_HANDLE vi;
	VIP_RETURN rc;

	rc = VipCreateVi(osh_pe.nic, &attrs, NULL, NULL, &vi);
	if (rc != VIP_SUCCESS) {
		osh_conn_check_agent();
		osh_fatal("%s: no VI for a connection to PE %d (%s)", fn, pe, VipxErrorString(rc));
	}
	address_of(&there, p->host, p->host_len, pe);
	osh_wait_show(fn, NULL, pe);
	while ((rc = VipConnectRequest(vi, &mine.addr, &there.addr, 2000, &theirs)) !=
	       VIP_SUCCESS) {
		if (!is_late(rc) && (rc != VIP_NOT_REACHABLE || time(NULL) > end)) {
			osh_conn_check_agent();
			osh_fatal_lost("%s: no connection to PE %d: VipConnectRequest says %s%s",
				       fn, pe, VipxErrorString(rc),
				       is_short(rc) ? OSH_CONN_REMEDY : "");
		}
		osh_conn_nap();
	}
	osh_wait_shown_end();
	return vi;
}

void osh_conn_close(VIP_VI_HANDLE vi)
{
	VIP_DESCRIPTOR *desc;

	VipDisconnect(vi);
	while (VipSendDone(vi, &desc) != VIP_NOT_DONE && desc != NULL)
		;
	VipDestroyVi(vi);
}
