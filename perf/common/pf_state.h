/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An end point: an open NIC, N connected VIs with their buffers and descriptors, and the waits.
 *
 * Every wait is bounded: it ends with an error when the peer's connection is lost (error callback
 * or error completion) or when nothing arrived for the configured time.  The end point
 * stores the first cause as one line of text.
 *
 * Memory of VI k: a send area of `send_slots` slots, then a receive area of `recv_slots` slots, of
 * `slot` bytes each.  Receive descriptors are posted once, each with its own slot (verify) or, if
 * they are for data, all with slot 0, and reposted as soon as taken, so their number on the queue
 * is constant.
 */
#ifndef PF_STATE_H
#define PF_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vipl.h>
#include <vipl_ext.h>

#include "pf_config.h"
#include "pf_pattern.h"

/* Parameters that both sides must agree on; the client sends them (pf_ctl.h). */
struct pf_params {
	uint32_t kind; /* PF_LAT ... */
	uint32_t op, wait, level;
	uint32_t cq, verify, bidir, window_memory, adopt, spin;
	uint32_t window; /* outstanding messages per VI, in effect */
	uint32_t segments, vis;
	uint32_t busy; /* VIs that carry messages; vi_lat only */
	uint32_t batch; /* vi_lat: round trips, or posts, of one sample; else descriptors of a call */
	uint32_t post_time;
	uint32_t buffers; /* used in turn for PF_RUN messages each, unless every message has its own */
	uint32_t timeout_ms;
	uint64_t max_size;
};

#define PF_RUN 64u

/* A window is sent in rounds, each acknowledged: this many messages per VI and round ... */
static inline uint32_t pf_round_len(const struct pf_params *p)
{
	return p->window >= 2 ? p->window / 2 : 1;
}

/* ... and this many rounds may be without acknowledgement. */
static inline uint32_t pf_rounds_ahead(const struct pf_params *p)
{
	return p->window >= 2 ? 2 : 1;
}

enum pf_queue { PF_SENDQ, PF_RECVQ };

/* Descriptors that were taken, or named by the completion queue, before they were wanted; circular. */
struct pf_stash {
	VIP_DESCRIPTOR **v;
	uint32_t head, count, room;
};

static inline uint32_t pf_stash_place(const struct pf_stash *s, uint32_t n)
{
	return n < s->room ? n : n - s->room;
}

/* The oldest one, NULL if there is none. */
static inline VIP_DESCRIPTOR *pf_take_from_stash(struct pf_stash *s)
{
	VIP_DESCRIPTOR *d;

	if (!s->count)
		return NULL;
	d = s->v[s->head];
	s->head = pf_stash_place(s, s->head + 1);
	s->count--;
	return d;
}

/* Descriptors that will be posted by one call. */
struct pf_posts {
	VIP_DESCRIPTOR *v[PF_MAX_CALL];
	uint32_t count;
};

struct pf_vi {
	VIP_VI_HANDLE handle;
	uint8_t *send_area, *recv_area;
	uint8_t *descs;		/* send_cap, then recv_cap of desc_size */
	VIP_DESCRIPTOR **sends; /* those for sends, twice, so that all of a call follow one another */
	struct pf_stash stash[2];
	struct pf_posts posts[2];
	uint32_t next_send;   /* descriptor to use */
	uint32_t outstanding; /* sends not yet taken */
	uint32_t came; /* messages that pf_receive_again() took while it was asked for another VI */
};

struct pf_ep {
	struct pf_params p;
	VIP_NIC_HANDLE nic;
	VIP_NIC_ATTRIBUTES attrs;
	VIP_CQ_HANDLE cq;
	struct pf_vi *vis;
	uint32_t vi_count;
	/* the VIs by their handles, with --cq: an open hash table of `by_handle_mask` + 1 places */
	struct pf_vi **by_handle;
	uint32_t by_handle_mask;
	VIPX_COMPLETION taken[PF_MAX_CALL]; /* by one call, with --cq and --batch */
	uint32_t send_cap, recv_cap;
	uint32_t send_slots, recv_slots;
	size_t desc_size, slot;
	uint8_t *descs, *region;
	size_t descs_len, region_len;
	VIP_MEM_HANDLE descs_handle, region_handle;
	uint64_t peer_region; /* address of the peer's region */
	VIP_MEM_HANDLE peer_handle;
	_Atomic int lost; /* nonzero once the error callback ran: VIP_ERROR_CODE + 1 */
	_Atomic int closing;
	uint64_t verify_errors;
	bool peer_lost;	 /* the cause is that the peer, or the path to it, is gone */
	char cause[256]; /* first error, empty if none */
};

/* Does a call post and take several descriptors? */
static inline bool pf_posts_many(const struct pf_ep *ep)
{
	return ep->p.batch > 1 && ep->p.kind != PF_LAT;
}

#endif
