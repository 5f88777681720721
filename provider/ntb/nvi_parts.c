/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nvi_parts.h"
#include "u_cpu.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_membarrier.h"

/*
 * Is the agent's description of a slice valid?  It is checked because a part of it comes from the
 * peer.
 */
static bool slice_ok(const struct w_geometry *g)
{
	return w_geometry_ok(g->slots, g->payload_bytes) &&
	       g->slice_len >= w_slice_bytes(g->slots, g->payload_bytes) && g->db_bit < PORT_DB_MAX;
}

/* Maps both slices, or none; closes no descriptor.  -EPROTO: the agent's description of one is invalid. */
static int map_slices(struct port *port, const struct w_linked *linked, int fd_in, int fd_out,
		      struct port_map *in, struct port_map *out)
{
	int err;

	if (!slice_ok(&linked->inbound) || !slice_ok(&linked->outbound))
		return -EPROTO;
	err = port_map(port, fd_in, linked->inbound.slice_len, PORT_INBOUND, in);
	if (err != 0)
		return err;
	err = port_map(port, fd_out, linked->outbound.slice_len, PORT_OUTBOUND, out);
	if (err != 0) {
		port_unmap(port, in);
		return err;
	}
	/* They are no memory of the program, and a core dump would have all their pages, also unused ones. */
	madvise(in->base, in->len, MADV_DONTDUMP);
	madvise(out->base, out->len, MADV_DONTDUMP);
	return 0;
}

/* Allocates the tables with an entry for each slot.  On -ENOMEM one of them may have been made. */
static int make_slot_tables(const struct w_linked *linked, struct nvi_parts *p)
{
	uint32_t slots = linked->outbound.slots;

	p->payload_after = calloc(slots, sizeof(*p->payload_after));
	if (linked->resumable)
		p->retx = calloc(slots, sizeof(*p->retx));
	return p->payload_after == NULL || (linked->resumable && p->retx == NULL) ? -ENOMEM : 0;
}

int nvi_parts_make(struct nvi_nic *nic, const struct w_linked *linked, int fd_in, int fd_out,
		   struct nvi_parts *p)
{
	/* If descriptors are missing, the port's included, this process had no numbers for them. */
	int err = -EMFILE;
	char text[U_FD_ERROR];

	p->port = nvi_port_get(nic, linked->port);
	p->generation = p->port != NULL ? nvi_port_generation(p->port) : 0;
	if (make_slot_tables(linked, p) != 0)
		err = -ENOMEM;
	else if (p->port != NULL && p->generation == 0)
		err = -EHOSTUNREACH;
	else if (p->port != NULL && fd_in >= 0 && fd_out >= 0)
		err = map_slices(p->port->port, linked, fd_in, fd_out, &p->in, &p->out);
	if (err == -EMFILE)
		u_log_ratelimited(&nic->unattached, "a connection cannot be made: %s",
				  u_fd_error(EMFILE, text));
	if (fd_in >= 0)
		close(fd_in);
	if (fd_out >= 0)
		close(fd_out);
	return err;
}

void nvi_parts_free(struct nvi_parts *p)
{
	if (p->port != NULL) {
		port_unmap(p->port->port, &p->in);
		port_unmap(p->port->port, &p->out);
	}
	nvi_port_put(p->port);
	free(p->payload_after);
	free(p->retx);
	if (p->placeholder_mem != NULL)
		munmap(p->placeholder_mem, p->placeholder_bytes);
}

/* ---- use by a channel ------------------------------------------------------------------------ */

/* Sets the channel's pointers into its inbound slice, and the sizes of that. */
static void place_inbound(struct nvi_chan *ch, const struct w_geometry *g)
{
	uint8_t *base = ch->in_map.base;

	ch->in_ctl = (struct w_control *)base;
	ch->in_slots = (struct w_slot *)(base + W_SLICE_FIFO);
	ch->in_payload = base + w_slice_payload(g->slots);
	ch->in_mask = g->slots - 1;
	ch->in_payload_bytes = g->payload_bytes;
}

/*
 * As place_inbound() for the outbound slice; also chooses how to store into it, for which ch->retx is set, and to ring.
 */
static void place_outbound(struct nvi_chan *ch, const struct w_geometry *g)
{
	uint8_t *base = ch->out_map.base;

	ch->out = ch->out_map.out;
	ch->out_ctl = (struct w_control *)base;
	ch->out_slots = (struct w_slot *)(base + W_SLICE_FIFO);
	ch->out_payload = base + w_slice_payload(g->slots);
	ch->out_mask = g->slots - 1;
	ch->out_payload_bytes = g->payload_bytes;
	ch->plain = ch->out.ops == NULL && ch->retx == NULL;
	ch->demotes = u_can_demote();
	ch->prefetches = u_gains_by_prefetch();
	ch->out_frag_max = w_frag_max(g->payload_bytes);
	ch->db_mask = UINT32_C(1) << g->db_bit;
	ch->must_fence = g->must_fence != 0 || !u_membarrier_available();
}

void nvi_chan_place(struct nvi_chan *ch, const struct w_linked *linked, const struct nvi_parts *p)
{
	ch->port = p->port->port;
	ch->port_use = p->port;
	ch->generation = p->generation;
	ch->hops = linked->hops;
	ch->in_map = p->in;
	ch->out_map = p->out;
	ch->tx.after = p->payload_after;
	ch->retx = p->retx;
	place_inbound(ch, &linked->inbound);
	place_outbound(ch, &linked->outbound);
}
