/* SPDX-License-Identifier: BSD-2-Clause */
/* A link: the check that it can be used, and the account of its memory window. */
#include "ag_link.h"

#include "ag_cfg.h"
#include "u_time.h"
#include "w_ctl.h"
#include "w_slot.h"

void ag_link_beats_begin(struct ag_link *l)
{
	l->heard_at = u_now_ns();
	l->beat_at = l->heard_at + AG_BEAT_NS;
}

bool ag_link_usable(const struct ag_link *l)
{
	return l->index == 0 || (l->state == AG_LINK_UP && l->broken == NULL);
}

void ag_link_break(struct ag_link *l, const char *why)
{
	l->broken = why;
	l->agent->dirty = true;
}

size_t ag_link_slice_bytes(const struct ag_link *l, uint32_t slots, uint32_t payload)
{
	return u_align_up(w_slice_bytes(slots, payload), l->port->limits.slice_align);
}

void ag_link_reserve(struct ag_link *l, const struct w_geometry *g, uint64_t *reservation)
{
	ag_link_unreserve(l, reservation);
	*reservation = ag_link_slice_bytes(l, g->slots, g->payload_bytes);
	l->window_reserved += *reservation;
}

void ag_link_slice_free(struct ag_link *l, const struct port_slice *slice, bool held)
{
	l->window_used -= slice->len;
	if (held)
		port_slice_free(l->port, slice->id);
	else
		port_slice_end(l->port, slice->id);
}

void ag_link_unreserve(struct ag_link *l, uint64_t *reservation)
{
	l->window_reserved -= *reservation;
	*reservation = 0;
}

/*
 * A payload buffer longer than that of the configuration is given while no more than this part of the window is in
 * use, so that other connections find room.
 */
#define LARGE_PAYLOAD_SHARE 4u

/*
 * A new connection gets a payload buffer of AG_STREAM_PAYLOAD while all slices of the link, with its own, take no more
 * than this part of the window and no more than STREAM_MOST bytes, all of which streams may touch.
 */
#define STREAM_SHARE 16u
#define STREAM_MOST (UINT64_C(256) << 20)

/* In a window of at most so many bytes a slice takes 16 KiB, also over relays. */
#define SMALL_WINDOW (UINT64_C(4) << 20)
#define SMALL_SLOTS 32u
#define SMALL_PAYLOAD (8u << 10)

/*
 * Has the link room for another payload buffer for streams, and was no other one set?  Not on adapters: the memory
 * of their windows is there in any case, in pieces, and is cleared for each slice.
 */
static bool has_stream_room(const struct ag_link *l)
{
	const struct ag_agent *a = l->agent;
	uint64_t window = l->port->limits.window_bytes;
	uint64_t used = l->window_used + l->window_reserved +
			ag_link_slice_bytes(l, a->cfg.slots, AG_STREAM_PAYLOAD);
	uint64_t slices = used - l->memory_used;

	return a->geometry_by_window && !l->port->limits.far &&
	       used <= window / LARGE_PAYLOAD_SHARE && slices <= window / STREAM_SHARE &&
	       slices <= STREAM_MOST;
}

/*
 * Returns the payload buffer of a connection over `hops` links, 0 within the host: that for streams, or that for so
 * many hops, or a smaller one, so that at most a quarter of the window is used or reserved; but never less than that of
 * the configuration, even without room.
 */
static uint32_t payload_for(const struct ag_link *l, unsigned int hops)
{
	const struct ag_cfg *cfg = &l->agent->cfg;
	uint64_t most = l->port->limits.window_bytes / LARGE_PAYLOAD_SHARE;
	uint64_t used = l->window_used + l->window_reserved;
	uint32_t payload = w_payload_of_path(cfg->payload_bytes, hops);

	if (hops <= 1 && has_stream_room(l))
		return AG_STREAM_PAYLOAD;
	while (payload > cfg->payload_bytes &&
	       used + ag_link_slice_bytes(l, cfg->slots, payload) > most)
		payload /= 2;
	return payload;
}

bool ag_link_is_small(const struct ag_link *l)
{
	uint64_t window = l->port->limits.window_bytes;

	return l->agent->geometry_by_window && window != 0 && window <= SMALL_WINDOW;
}

void ag_link_geometry(const struct ag_link *l, unsigned int hops, struct w_geometry *g)
{
	bool small = ag_link_is_small(l);

	*g = (struct w_geometry){
		.slots = small ? SMALL_SLOTS : l->agent->cfg.slots,
		.payload_bytes = small ? SMALL_PAYLOAD : payload_for(l, hops),
	};
}
