/* SPDX-License-Identifier: BSD-2-Clause */
/* Window memory of this process, and the connections whose other end may store into it. */
#ifndef NVI_GIVEN_H
#define NVI_GIVEN_H

#include "nvi_nic.h"

/* The other end of a connection may store into a window; under nic->mem_lock. */
struct nvi_given {
	struct nvi_given *next; /* in the bucket of conn */
	struct nvi_window *window;
	struct nvi_chan *ch;
	uint64_t conn;
	uint64_t map; /* the number of a mapping, 0: direct stores */
	uint32_t handle;
};

struct nvi_window {
	struct nvi_port *port;
	struct port_map map;
	uint32_t slice_id;
	/* Under nic->mem_lock: */
	struct nvi_window *next;
	uint32_t given; /* entries for this window */
	uint32_t closed; /* number of threads that take it back; while any does, nothing is granted */
};

/* Returns the bucket of a connection's entries.  Caller of this and the next five holds mem_lock. */
struct nvi_given **nvi_given_bucket(struct nvi_nic *nic, uint64_t conn);
/* Returns the place of the entry for that handle and mapping; it holds NULL when there is none. */
struct nvi_given **nvi_given_find(struct nvi_nic *nic, uint64_t conn, uint32_t handle,
				  uint64_t map);
/* Returns how many mappings the other end of `conn` has. */
uint32_t nvi_given_maps(struct nvi_nic *nic, uint64_t conn);
/* Adds an entry: the other end of `conn` may store into `w`; does not look for an equal one.  False without memory. */
bool nvi_given_enter(struct nvi_nic *nic, struct nvi_window *w, struct nvi_chan *ch, uint64_t conn,
		     uint32_t handle, uint64_t map);
/* Removes and frees the entry at this place, which holds one, and wakes threads that wait for that. */
void nvi_given_remove(struct nvi_nic *nic, struct nvi_given **at);
/* Removes all entries of a connection. */
void nvi_given_remove_all_of(struct nvi_nic *nic, uint64_t conn);

/*
 * Removes a connection's entries, as its other end stores nothing any more, and wakes threads that
 * wait for that.  Takes mem_lock; no other locks held.
 */
void nvi_given_forget(struct nvi_nic *nic, uint64_t conn);
/* As nvi_given_forget(), for all connections. */
void nvi_given_forget_all(struct nvi_nic *nic);

#endif
