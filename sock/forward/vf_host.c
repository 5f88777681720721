// SPDX-License-Identifier: BSD-2-Clause
#include "vf_host.h"

#include <stdio.h>
#include <string.h>

#include "vf_target.h"
#include "vipl.h"
#include "vs_env.h"

#define ADDRESS_BYTES 64
#define NAMES 64

static enum vs_policy otherwise;
static VIP_NIC_HANDLE nic;
static enum { CLOSED, OPEN, FAILED } state;
/* Names that were found; a full table forgets the oldest. */
static char names[NAMES][VS_NAME_MAX];
static unsigned int names_next;

bool vf_host_init(enum vs_policy promote)
{
	char error[VS_ENV_ERROR];

	otherwise = promote;
	if (vs_env_read(&vs_env, error) == 0)
		return true;
	fprintf(stderr, "vi_forward: %s\n", error);
	return false;
}

bool vf_host_may(const struct vs_addr *a)
{
	return vs_env.possible && (vs_env.loopback || !vs_addr_is_loopback(a));
}

/* A lost NIC ends promotion, and nothing else. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	(void)context;
	(void)error;
}

/* Opens a NIC, for its name service; tried once. */
static bool is_open(void)
{
	if (state != CLOSED)
		return state == OPEN;
	state = FAILED;
	if (VipOpenNic("nic0", &nic) != VIP_SUCCESS)
		return false;
	VipErrorCallback(nic, NULL, on_error);
	if (VipNSInit(nic, NULL) == VIP_SUCCESS)
		state = OPEN;
	else
		VipCloseNic(nic);
	return state == OPEN;
}

/* Does the fabric know this host?  One that was found stays known. */
static bool is_known(const char *host)
{
	union {
		VIP_NET_ADDRESS net;
		uint8_t room[sizeof(VIP_NET_ADDRESS) + ADDRESS_BYTES];
	} address;
	VIP_NIC_ATTRIBUTES attributes;
	char name[VS_NAME_MAX];
	unsigned int i;

	for (i = 0; i < NAMES; i++) {
		if (names[i][0] && strcmp(names[i], host) == 0)
			return true;
	}
	snprintf(name, sizeof(name), "%s", host);
	if (!is_open() || VipQueryNic(nic, &attributes) != VIP_SUCCESS ||
	    attributes.NicAddressLen > ADDRESS_BYTES ||
	    VipNSGetHostByName(nic, name, &address.net, 0) != VIP_SUCCESS)
		return false;
	snprintf(names[names_next++ % NAMES], VS_NAME_MAX, "%s", host);
	return true;
}

bool vf_host_carries(pid_t thread, const struct vs_addr *peer, const struct vs_addr *local)
{
	char program[VS_NAME_MAX] = "", host[VS_NAME_MAX];

	if (!vf_host_may(peer))
		return false;
	if (vs_env.rules.rules > 0)
		vf_target_name(thread, program);
	return vs_rules_policy(&vs_env.rules, program, peer, local, otherwise) != VS_NEVER &&
	       vs_env_host(&vs_env, peer, host) && is_known(host);
}
