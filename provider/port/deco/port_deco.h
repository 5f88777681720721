/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts that decorators share: the ops that they pass on to the port below, and a store to that
 * port.
 */
#ifndef PORT_DECO_H
#define PORT_DECO_H

#include "port.h"

/*
 * Separates the port and its decorators in view text; each segment names one of them and its
 * options.
 */
#define PORT_VIEW_SEP " | "

/*
 * Sets the ops of a decorator around `inner`, and its limits, interrupts and kind ("inner+name").  The other
 * members of `p` stay as they are.
 */
void deco_init(struct port *p, const struct port_ops *ops, const char *name, struct port *inner);

/*
 * Appends a decorator's segment to the view text of the port below, whose descriptors it passes on.  0, an
 * error of port_export_view(), or -ENOSPC if `size` is too small.
 */
int deco_export(struct port *p, const char *segment, char *text, size_t size,
		int fds[PORT_ATTACH_FDS], unsigned int *nfds_out);

int deco_slice_alloc(struct port *p, size_t len, struct port_slice *out);
void deco_slice_free(struct port *p, uint32_t id);
int deco_slice_share(struct port *p, int fd, size_t len, uint32_t *id_out);
int deco_memory_alloc(struct port *p, size_t len, struct port_slice *out);
int deco_peer_slice_open(struct port *p, uint32_t id, size_t len, int *fd_out);
void deco_flush(struct port *p);
void deco_peer_db_ring(struct port *p, uint32_t bits);
uint32_t deco_db_read(struct port *p);
void deco_db_clear(struct port *p, uint32_t bits);
void deco_db_set_mask(struct port *p, uint32_t bits);
void deco_db_clear_mask(struct port *p, uint32_t bits);
uint32_t deco_spad_read(struct port *p, unsigned int idx);
int deco_spad_write(struct port *p, unsigned int idx, uint32_t v);
uint32_t deco_peer_spad_read(struct port *p, unsigned int idx);
int deco_peer_spad_write(struct port *p, unsigned int idx, uint32_t v);
int deco_link_enable(struct port *p);
void deco_link_disable(struct port *p);
enum port_link deco_link_state(struct port *p, uint32_t *generation_out);
int deco_event_fd(struct port *p);
int deco_service(struct port *p);

/*
 * Stores n bytes through `out`, a map of the port below.  Aligned words of 4 and 8 bytes arrive
 * whole, as u_out_store32() and u_out_store64() promise.
 */
void deco_put(const struct u_out *out, void *dst, const void *src, size_t n);

/* splitmix64: any thread may draw; one thread alone draws a reproducible sequence. */
static inline uint64_t deco_random(_Atomic uint64_t *state)
{
	uint64_t z = atomic_fetch_add_explicit(state, UINT64_C(0x9e3779b97f4a7c15),
					       memory_order_relaxed);

	z += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

#endif
