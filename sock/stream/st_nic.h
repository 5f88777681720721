/* SPDX-License-Identifier: BSD-2-Clause */
/* st_nic.h - the NIC, and names of hosts; of the helper's thread alone */
#ifndef ST_NIC_H
#define ST_NIC_H

#include "st_process.h"

#define ST_ADDRESS_BYTES (sizeof(VIP_NET_ADDRESS) + 64 + ST_DISCRIMINATOR_BYTES)

union st_address {
	VIP_NET_ADDRESS net;
	uint8_t room[ST_ADDRESS_BYTES];
};

/* 0, or why not. */
enum st_why st_nic_open(void);
void st_nic_close(void);
/* The two addresses by which this end asks for the other one; 0, or why not. */
enum st_why st_nic_addresses(struct st_stream *s, union st_address *local,
			     union st_address *remote);
bool st_nic_is_stranger(const char *host); /* under the process lock */

#endif
