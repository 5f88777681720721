/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a connection: mapped slices, the view of their port, and tables with an entry for each slot. */
#ifndef NVI_PARTS_H
#define NVI_PARTS_H

#include "nvi_chan.h"

struct nvi_parts {
	struct nvi_port *port;
	uint32_t generation; /* of the link */
	struct port_map in, out;
	uint64_t *payload_after;
	struct nvi_retx_slot *retx;
	uint8_t *placeholder_mem; /* anonymous memory */
	size_t placeholder_bytes;
};

/*
 * Maps the slices of `linked` and makes the tables, into `p`, which is zero before.  0 or -errno: -EHOSTUNREACH: the
 * link is down; -EMFILE: a descriptor or the port is missing; -EPROTO.  Takes over the descriptors, also on failure.
 * On failure the caller frees the parts that were made (nvi_parts_free()).
 */
int nvi_parts_make(struct nvi_nic *nic, const struct w_linked *linked, int fd_in, int fd_out,
		   struct nvi_parts *p);
/* Unmaps the slices, drops the view and frees the tables; parts that were not made are left out. */
void nvi_parts_free(struct nvi_parts *p);
/*
 * Makes the channel use these parts, but for the placeholder; those that it used before are not freed.  Caller holds
 * both locks; the channel is not listed.
 */
void nvi_chan_place(struct nvi_chan *ch, const struct w_linked *linked, const struct nvi_parts *p);

#endif
