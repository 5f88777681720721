/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>
#include <string.h>

#include "st_nic.h"
#include "st_poller.h"

/* Streams find a lost connection by themselves; the NIC would print each otherwise. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	(void)context;
	(void)error;
}

/*
 * Opens the NIC, and keeps the processors of this thread: it is none of the application's, so a rule that places those
 * is not for it.
 */
static VIP_RETURN open_unmoved(const char *device, VIP_NIC_HANDLE *nic)
{
	cpu_set_t before;
	bool known = sched_getaffinity(0, sizeof(before), &before) == 0;
	VIP_RETURN rc = VipOpenNic(device, nic);

	if (known)
		sched_setaffinity(0, sizeof(before), &before);
	return rc;
}

enum st_why st_nic_open(void)
{
	const char *device = st_process.config.device != NULL ? st_process.config.device : "nic0";
	VIP_NIC_HANDLE nic;
	VIP_RETURN rc;

	if (st_process.nic != NULL)
		return ST_WHY_NONE;
	if (st_process.nic_failed)
		return ST_WHY_NO_NIC;
	rc = open_unmoved(device, &nic);
	if (rc == VIP_SUCCESS) {
		VipErrorCallback(nic, NULL, on_error);
		rc = VipNSInit(nic, NULL);
		if (rc == VIP_SUCCESS)
			rc = VipQueryNic(nic, &st_process.nic_attributes);
		if (rc != VIP_SUCCESS)
			VipCloseNic(nic);
	}
	if (rc != VIP_SUCCESS) {
		st_process.nic_failed = true;
		st_log("no NIC (%s): connections stay on TCP; vi_info tells more",
		       VipxErrorString(rc));
		return ST_WHY_NO_NIC;
	}
	st_process.nic = nic;
	st_pollers_start();
	if (st_process.config.opened != NULL)
		st_process.config.opened(nic);
	/* The program may have moved since st_init(): this thread began with the processors of one of its threads. */
	st_process.alone = st_sys_processors() == 1 || st_pollers_share();
	return ST_WHY_NONE;
}

void st_nic_close(void)
{
	if (st_process.nic == NULL)
		return;
	VipNSShutdown(st_process.nic);
	VipCloseNic(st_process.nic);
	st_process.nic = NULL;
}

bool st_nic_is_stranger(const char *host)
{
	for (uint32_t i = 0; i < st_process.strangers_count; i++)
		if (strcmp(st_process.strangers[i], host) == 0)
			return true;
	return false;
}

/* Notes a name that has no address; takes the process lock. */
static void note_stranger(const char *host)
{
	st_lock(&st_process.lock);
	if (st_process.strangers_count < ST_NAMES && !st_nic_is_stranger(host))
		memcpy(st_process.strangers[st_process.strangers_count++], host, strlen(host) + 1);
	st_unlock(&st_process.lock);
}

enum st_why st_nic_addresses(struct st_stream *s, union st_address *local, union st_address *remote)
{
	uint16_t len = st_process.nic_attributes.NicAddressLen;
	enum st_role other = s->origin.role == ST_CONNECTOR ? ST_ACCEPTOR : ST_CONNECTOR;

	if (len > 64 ||
	    VipNSGetHostByName(st_process.nic, s->host, &remote->net, 0) != VIP_SUCCESS) {
		note_stranger(s->host);
		return ST_WHY_NO_HOST;
	}
	local->net.HostAddressLen = len;
	memcpy(local->room + offsetof(VIP_NET_ADDRESS, HostAddress),
	       st_process.nic_attributes.LocalNicAddress, len);
	local->net.DiscriminatorLen = remote->net.DiscriminatorLen = ST_DISCRIMINATOR_BYTES;
	if (st_discriminator(&s->origin, s->origin.role,
			     local->room + offsetof(VIP_NET_ADDRESS, HostAddress) + len) != 0 ||
	    st_discriminator(&s->origin, other,
			     remote->room + offsetof(VIP_NET_ADDRESS, HostAddress) + len) != 0)
		return ST_WHY_NO_PEER;
	return ST_WHY_NONE;
}
