/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection requests that the consumer has not decided yet. */
#ifndef VI_CONN_H
#define VI_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "vipl.h"

struct vi_nic;

/* A connection request that VipConnectWait handed out: the object of a VIP_CONN_HANDLE. */
struct vi_conn {
	uint64_t id;
	struct vi_nic *nic;
	uint64_t prov_conn; /* the provider's name for it */
	VIP_VI_ATTRIBUTES remote_attrs;
	/* Used only by vi_conn.c, under its lock. */
	bool taken;		     /* accept or reject under way */
	struct vi_conn *next, *prev; /* nic->conns */
};

/* Allocates a request without a handle.  0 or -ENOMEM. */
int vi_conn_create(struct vi_nic *nic, struct vi_conn **out);
void vi_conn_free(struct vi_conn *conn); /* one that was never published; accepts NULL */
/*
 * Gives it a handle and enters it into the NIC's list, after which other threads may take and end it.  Returns its id,
 * or 0 when the table is full: then the caller frees it.
 */
uint64_t vi_conn_publish(struct vi_conn *conn);

/*
 * The request of a handle, for one caller at a time, or NULL, also while another has it; its NIC is held meanwhile.
 * The caller ends its use with vi_conn_return() (undecided, can be taken again) or vi_conn_end(), which frees it and
 * tells the client nothing.
 */
struct vi_conn *vi_conn_take(const void *handle);
void vi_conn_return(struct vi_conn *conn);
void vi_conn_end(struct vi_conn *conn);
/* For closing: refuses and frees all that are left.  No lock held. */
void vi_conn_refuse_all(struct vi_nic *nic);
void vi_conn_forked(void); /* in a child of fork() */

#endif
