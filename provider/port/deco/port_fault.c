/* SPDX-License-Identifier: BSD-2-Clause */
/* fault: lost and spurious doorbells, and a link that goes down in the middle of a store. */
#include "port_fault.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port_deco.h"
#include "port_fault_opt.h"
#include "port_fault_priv.h"
#include "u_time.h"

/*
 * Draws how many of the n bytes stored at dst pass before the link fails: all, or, if the line is torn, fewer,
 * which end at a boundary of words; may be 0.
 */
static size_t torn_length(struct fault *f, const void *dst, size_t n)
{
	size_t keep;
	size_t over;

	if (!fault_chance(f, f->opt.torn))
		return n;
	keep = (size_t)(deco_random(&f->random) % n);
	over = ((uintptr_t)dst + keep) & 7;
	return keep > over ? keep - over : 0;
}

/*
 * Stores within one line, if the map and the link are up.  The line that reaches opt.down_after, counted over
 * all maps, takes the link down, which may tear it.
 */
static void fault_line(struct fault_map *m, void *dst, const void *src, size_t n)
{
	struct fault *f = m->fault;
	bool last;

	if (fault_is_down(f) ||
	    m->generation != atomic_load_explicit(&f->ups, memory_order_relaxed))
		return;
	last = atomic_fetch_add_explicit(&f->stores, 1, memory_order_relaxed) + 1 ==
	       f->opt.down_after;
	if (u_unlikely(last))
		n = torn_length(f, dst, n);
	if (n > 0 && !fault_early_hold(m, dst, src, n))
		deco_put(&m->inner.out, dst, src, n);
	if (u_unlikely(last))
		fault_down(f);
}

/* Stores line by line; while the link is down, or when it is not that of the map any more, stores vanish. */
static void fault_store(const struct u_out *out, void *dst, const void *src, size_t n)
{
	uint8_t *to = dst;
	const uint8_t *from = src;
	size_t piece;

	for (; n > 0; n -= piece, to += piece, from += piece) {
		piece = (size_t)u_min64(n, U_LINE - (uintptr_t)to % U_LINE);
		fault_line(out->priv, to, from, piece);
	}
}

/* Fences the map below, also while the link is down.  Stores that are held stay before later ones anyway. */
static void fault_fence(const struct u_out *out)
{
	struct fault_map *m = out->priv;

	u_out_fence(&m->inner.out);
	fault_early_fence(m->fault);
}

static const struct u_out_ops fault_out_ops = { .store = fault_store, .fence = fault_fence };

/* Passes inbound maps on; an outbound one is valid for the present generation of the link. */
static int fault_map(struct port *p, int fd, size_t len, enum port_dir dir, struct port_map *out)
{
	struct fault_map *m;
	int err;

	if (dir == PORT_INBOUND)
		return port_map(p->inner, fd, len, dir, out);
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	err = port_map(p->inner, fd, len, dir, &m->inner);
	if (err != 0) {
		free(m);
		return err;
	}
	m->fault = fault_of(p);
	fault_is_down(m->fault); /* the link comes up if it is due */
	m->generation = atomic_load_explicit(&m->fault->ups, memory_order_relaxed);
	*out = (struct port_map){ .base = m->inner.base,
				  .len = m->inner.len,
				  .out = { .ops = &fault_out_ops, .priv = m },
				  .priv = m };
	return 0;
}

/* Undoes fault_map(): an inbound map is passed on to the port below. */
static void fault_unmap(struct port *p, struct port_map *map)
{
	struct fault_map *m = map->priv;

	if (map->out.ops != &fault_out_ops) {
		port_unmap(p->inner, map);
		return;
	}
	fault_early_land(m->fault);
	port_unmap(p->inner, &m->inner);
	free(m);
	memset(map, 0, sizeof(*map));
}

/* Lands what is held, then flushes the port below. */
static void fault_flush(struct port *p)
{
	fault_early_land(fault_of(p));
	port_flush(p->inner);
}

/* Is this ring one of those that are to be lost?  If so, counts it off; false when none is left. */
static bool drop_this(struct fault *f)
{
	uint32_t left = atomic_load_explicit(&f->drop_next, memory_order_relaxed);

	while (left > 0) {
		if (atomic_compare_exchange_weak_explicit(&f->drop_next, &left, left - 1,
							  memory_order_relaxed,
							  memory_order_relaxed))
			return true;
	}
	return false;
}

/* Rings, unless the link is down or the ring is chosen to be lost; may ring all bits in addition. */
static void fault_ring(struct port *p, uint32_t bits)
{
	struct fault *f = fault_of(p);

	if (fault_is_down(f) || drop_this(f) || fault_chance(f, f->opt.drop_db))
		return;
	port_peer_db_ring(p->inner, bits);
	if (fault_chance(f, f->opt.spurious_db))
		port_peer_db_ring(p->inner, UINT32_MAX);
}

static uint32_t fault_peer_spad_read(struct port *p, unsigned int idx)
{
	return fault_is_down(fault_of(p)) ? UINT32_MAX : port_peer_spad_read(p->inner, idx);
}

static int fault_peer_spad_write(struct port *p, unsigned int idx, uint32_t v)
{
	return fault_is_down(fault_of(p)) ? -ENOTCONN : port_peer_spad_write(p->inner, idx, v);
}

/* Adds the segment "fault seed=N OPTIONS" to the view. */
static int fault_export(struct port *p, char *text, size_t size, int fds[PORT_ATTACH_FDS],
			unsigned int *nfds_out)
{
	struct fault *f = fault_of(p);
	char segment[PORT_VIEW_MAX];
	int n = snprintf(segment, sizeof(segment), "fault seed=%" PRIu64 " %s", f->seed, f->text);

	if (n < 0 || (size_t)n >= sizeof(segment))
		return -ENOSPC;
	return deco_export(p, segment, text, size, fds, nfds_out);
}

/* Closes the port below, too. */
static void fault_close(struct port *p)
{
	struct fault *f = fault_of(p);

	fault_early_close(f);
	port_close(p->inner);
	fault_events_close(f);
	free(f->text);
	free(f);
}

static const struct port_ops fault_ops = {
	.slice_alloc = deco_slice_alloc,
	.slice_free = deco_slice_free,
	.slice_share = deco_slice_share,
	.memory_alloc = deco_memory_alloc,
	.peer_slice_open = deco_peer_slice_open,
	.map = fault_map,
	.unmap = fault_unmap,
	.flush = fault_flush,
	.peer_db_ring = fault_ring,
	.db_read = deco_db_read,
	.db_clear = deco_db_clear,
	.db_set_mask = deco_db_set_mask,
	.db_clear_mask = deco_db_clear_mask,
	.spad_read = deco_spad_read,
	.spad_write = deco_spad_write,
	.peer_spad_read = fault_peer_spad_read,
	.peer_spad_write = fault_peer_spad_write,
	.link_enable = fault_link_enable,
	.link_disable = fault_link_disable,
	.link_state = fault_link_state,
	.event_fd = fault_event_fd,
	.service = fault_service,
	.export_view = fault_export,
	.close = fault_close,
};

/* Makes the decorator, without its parsed options and event descriptors.  NULL: no memory. */
static struct fault *fault_new(struct port *inner, const char *options, uint64_t seed)
{
	struct fault *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->text = strdup(options);
	if (f->text == NULL) {
		free(f);
		return NULL;
	}
	deco_init(&f->port, &fault_ops, "fault", inner);
	f->seed = seed;
	atomic_init(&f->random, seed);
	atomic_init(&f->up_at, U_NEVER);
	f->enabled = port_link_state(inner, NULL) == PORT_LINK_UP;
	f->epoll_fd = -1;
	f->event_fd = -1;
	f->timer_fd = -1;
	return f;
}

int port_fault_wrap(struct port *inner, const char *options, uint64_t seed, struct port **out)
{
	struct fault_options opt;
	struct fault *f;
	int err = port_ops_check(&fault_ops);

	if (options == NULL)
		options = "";
	if (err == 0)
		err = fault_parse(options, &opt);
	if (err != 0)
		return err;
	f = fault_new(inner, options, seed);
	if (f == NULL)
		return -ENOMEM;
	f->opt = opt;
	err = fault_early_open(f);
	if (err != 0) {
		free(f->text);
		free(f);
		return err;
	}
	*out = &f->port;
	return 0;
}

/* Returns the fault decorator of the port, or NULL. */
static struct fault *fault_within(struct port *p)
{
	while (p != NULL && p->ops != &fault_ops)
		p = p->inner;
	return p != NULL ? fault_of(p) : NULL;
}

void port_fault_link(struct port *p, enum port_link state)
{
	struct fault *f = fault_within(p);

	if (f == NULL)
		return;
	if (state == PORT_LINK_DOWN)
		fault_down(f);
	else
		fault_up(f, U_NEVER);
}

void port_fault_drop_doorbells(struct port *p, uint32_t count)
{
	struct fault *f = fault_within(p);

	if (f != NULL)
		atomic_store_explicit(&f->drop_next, count, memory_order_relaxed);
}
