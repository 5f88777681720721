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
#ifndef PF_EP_H
#define PF_EP_H

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

/* Notes the first cause and returns -EIO. */
int pf_fail(struct pf_ep *ep, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* pf_fail() for a call that returned `rc`; adds a remedy. */
int pf_fail_vip(struct pf_ep *ep, const char *what, VIP_RETURN rc);

/* pf_fail() for a peer or path that is lost; `how` is a detail or "". */
int pf_lost(struct pf_ep *ep, const char *how);
/* pf_fail() for a silence longer than the time allowed. */
int pf_silent(struct pf_ep *ep);

/* Opens the NIC of `host` (NULL: the default one).  Returns 0 or -errno with the cause noted. */
int pf_ep_open(struct pf_ep *ep, const char *host);

/* Allocates VIs and memory as p says and posts the receives.  The VIs are idle. */
int pf_ep_setup(struct pf_ep *ep, const struct pf_params *p);

/* Disconnects, reaps all descriptors and closes; works on a partly built end point. */
void pf_ep_close(struct pf_ep *ep);

/* Does the level, with its reads, exist on this NIC? And do window and segments fit? */
int pf_ep_check(struct pf_ep *ep, const struct pf_params *p);

/*
 * Takes the next completed descriptor of a queue of VI k, waiting as configured.  Returns 0 or
 * -errno with the cause noted; a completion with an error is an error.
 */
int pf_take(struct pf_ep *ep, uint32_t k, enum pf_queue q, VIP_DESCRIPTOR **out);

/*
 * Posts message m of VI k, `size` bytes from its slot, as the configured operation; takes a
 * completion first when all send descriptors are in use.
 */
int pf_post_message(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size);
/* pf_post_message() in two steps, so that the second can be timed by itself. */
int pf_prepare_message(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size,
		       VIP_DESCRIPTOR **out);
int pf_post_prepared(struct pf_ep *ep, uint32_t k, VIP_DESCRIPTOR *d);
/* Posts an empty send with immediate data. */
int pf_post_mark(struct pf_ep *ep, uint32_t k, uint32_t immediate);
/* Posts a reaped receive descriptor again. */
int pf_repost(struct pf_ep *ep, uint32_t k, VIP_DESCRIPTOR *d);
/*
 * Posts what is still to be posted on VI k.  With --batch the functions above post only when there are
 * enough descriptors for a call.
 */
int pf_flush(struct pf_ep *ep, uint32_t k);
int pf_flush_queue(struct pf_ep *ep, struct pf_vi *vi, enum pf_queue q);
/* Does a call post and take several descriptors? */
static inline bool pf_posts_many(const struct pf_ep *ep)
{
	return ep->p.batch > 1 && ep->p.kind != PF_LAT;
}
/* Waits for 1 to --batch completions of the completion queue, which go to ep->taken. */
int pf_poll_cq_many(struct pf_ep *ep, uint32_t *count_out);
/* Puts one of them into the stash of its queue. */
int pf_stash_taken(struct pf_ep *ep, const VIPX_COMPLETION *c);
/*
 * As pf_take() for up to `most` descriptors, which go to the stash of the queue; that is empty.  With --cq, up to
 * --batch completions go to the stashes of their queues at a time, until this one has any; it may have some before.
 */
int pf_poll_many(struct pf_ep *ep, struct pf_vi *vi, enum pf_queue q, uint32_t most);
/*
 * What follows on a poll of the queue that returned `rc`: 0 with a descriptor in *out, maybe after more
 * polls, or -errno with the cause noted.
 */
int pf_poll_on(struct pf_ep *ep, struct pf_vi *vi, enum pf_queue q, VIP_RETURN rc,
	       VIP_DESCRIPTOR **out);
/* As pf_take(), with as little as can be before the call that finds a descriptor. */
static inline int pf_take_fast(struct pf_ep *ep, uint32_t k, enum pf_queue q, VIP_DESCRIPTOR **out)
{
	struct pf_vi *vi = &ep->vis[k];
	VIP_RETURN rc;

	if (ep->cq || ep->p.wait == PF_BLOCK)
		return pf_take(ep, k, q, out);
	rc = q == PF_RECVQ ? VipRecvDone(vi->handle, out) : VipSendDone(vi->handle, out);
	return rc == VIP_SUCCESS ? 0 : pf_poll_on(ep, vi, q, rc, out);
}
/*
 * Are all messages of a size alike?  So are sends of one buffer and one direction, without --verify, in
 * vi_rate and vi_bw.  Their descriptors are prepared once, so that little but the calls is timed.
 */
bool pf_posts_unchanged(const struct pf_ep *ep);
/* Prepares all send descriptors for such messages; none is posted. */
void pf_prepare_all(struct pf_ep *ep, uint32_t size);
/* Posts the next n messages of VI k, with --batch by one call of at most so many. */
int pf_post_again(struct pf_ep *ep, uint32_t k, uint32_t n);
/*
 * Takes 1 to `most` messages of VI k, and posts their receives again; with --batch by a call each.  With --cq and
 * --batch a call takes those of other VIs too, which then have come, and pf_flush() posts the receives.
 */
int pf_receive_again(struct pf_ep *ep, uint32_t k, uint32_t most, uint32_t size,
		     uint32_t *count_out);
/* The place of the VI of a handle in by_handle; NULL is there if it is none of the VIs. */
struct pf_vi **pf_place_of_handle(const struct pf_ep *ep, VIP_VI_HANDLE handle);
/* Takes completions of sends until at most `left` are outstanding on VI k. */
int pf_reap(struct pf_ep *ep, uint32_t k, uint32_t left);

/* Splits `len` bytes at `base`, in the region, over the configured number of segments. */
void pf_set_segments(struct pf_ep *ep, VIP_DESCRIPTOR_SEGMENT *s, uint8_t *base, uint32_t len);

/* The address of message m of VI k. */
uint8_t *pf_send_slot(struct pf_ep *ep, uint32_t k, uint64_t m);
uint8_t *pf_recv_slot(struct pf_ep *ep, uint32_t k, uint64_t m);
/* The address of the data of a reaped receive descriptor. */
const uint8_t *pf_recv_data(const VIP_DESCRIPTOR *d);

/* Is this the content of message m of VI k?  0, or -EIO with the cause noted and counted. */
int pf_check(struct pf_ep *ep, const uint8_t *buf, uint32_t size, uint32_t k, uint64_t m);

/* State of a bounded wait; all zero to begin with. */
struct pf_idle {
	uint32_t empty;
	int64_t deadline;
};

/* After an empty poll: pauses, yields, makes progress, checks for loss and the deadline. */
int pf_idle(struct pf_ep *ep, struct pf_idle *idle);

int64_t pf_now(void);

/* The name of a return code, such as "VIP_TIMEOUT", for causes. */
#define PF_VIP(ep, what, rc) pf_fail_vip(ep, what, rc)

#endif
