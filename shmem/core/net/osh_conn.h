/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that this PE makes to others, and the addresses of PEs. */
#ifndef OSH_CONN_H
#define OSH_CONN_H

#include "osh_state.h"

#define OSH_CONN_REMEDY                                                                            \
	"; lower VIADUCT_RING_BYTES, or raise VIADUCT_WINDOW_BYTES or ulimit -n, of the agent"

union osh_address {
	VIP_NET_ADDRESS addr;
	uint8_t room[sizeof(VIP_NET_ADDRESS) + 64 + 16]; /* 64: the host; 16: the discriminator */
};

/* The attributes of the VIs of both ends. */
extern const VIP_VI_ATTRIBUTES osh_conn_attrs;

/* Notes the address of this PE; before all other calls. `host`: address of this host. */
void osh_conn_init(const uint8_t *host, size_t host_len);
/* The address of this PE. */
const union osh_address *osh_conn_here(void);
/* An address of this host that no PE has and none connects to. */
union osh_address osh_conn_nobody(void);
/* The PE of this job that has an address, or -1; the host in it is not looked at. */
int osh_conn_pe_of(const union osh_address *from);

/*
 * Connects a new VI, for osh_conn_close(), to a PE, and waits as long as that PE is late, but 30 s at most for a way to
 * its host; a failure ends the job.
 */
VIP_VI_HANDLE osh_conn_open(const char *fn, int pe);
/* Disconnects and destroys a VI, whatever is still posted to it. */
void osh_conn_close(VIP_VI_HANDLE vi);

/*
 * Ends the job with the reason that the agent of this host is gone, if it is: connections end of that, too. Else it
 * returns, and the caller gives its own reason. The NIC has to be open.
 */
void osh_conn_check_agent(void);
/* Ends the job: the agent of this host is gone. `rc`: what VipConnectWait() returned. */
_Noreturn void osh_conn_agent_gone(VIP_RETURN rc);

/* Sleeps for a millisecond, between two tries. */
void osh_conn_nap(void);

#endif
