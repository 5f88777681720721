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

/* Opens the NIC unless it is open, and starts the pollers: 0, or why not.  After a failure it does not try again. */
enum st_why st_nic_open(void);
/* Closes the NIC; does nothing where none is open. */
void st_nic_close(void);
/*
 * The two addresses by which this end asks for the other one; 0, or why not.  A name without an address is noted for
 * st_nic_is_stranger(), under the process lock, which it takes.
 */
enum st_why st_nic_addresses(struct st_stream *s, union st_address *local,
			     union st_address *remote);
/* True: st_nic_addresses() has found no address for that name; under the process lock. */
bool st_nic_is_stranger(const char *host);

#endif
