/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages between agents, W_CM_*; the comment at the top of w_ctl.h draws the exchange.
 *
 * A record carries its whole path (struct w_path).  Agents on the path pass it on; in ACCEPT and
 * CONFIRM they replace the slice that the record names by a bypass buffer of their own.
 */
#ifndef W_CM_H
#define W_CM_H

#include <assert.h>
#include <stdint.h>

#include "w_ctl.h"

#define W_HOPS_MAX 64u

/*
 * The path of a record: the port index out of each host, from src_host to dst_host.  An agent that
 * receives a record checks that its path leads to this host by the link over which it came, and on
 * to dst_host.
 */
struct w_path {
	uint8_t hops; /* 0: both are the same host */
	uint8_t at;   /* hops that the record has made, the one to the reader included */
	uint16_t reserved[3];
	uint8_t port[W_HOPS_MAX];
};
static_assert(sizeof(struct w_path) == 72, "w_path");

/* A record between agents.  src and dst are hosts; the conns name the ends of the connection there. */
struct w_cm {
	struct w_ctl_hdr hdr;
	uint16_t src_host;
	uint16_t dst_host;
	uint32_t status; /* REFUSE, CANCEL: enum w_status; CLOSE: enum w_lost, RESUME: that, or 0 */
	uint64_t src_conn;
	uint64_t dst_conn; /* 0 when not known yet */
	struct w_vi_attrs attrs;
	/* REQ and PEER: most slots and the largest payload buffer, or 0: any */
	struct w_geometry geometry;
	struct w_addr local;	    /* of the sending end */
	struct w_addr remote;	    /* of the receiving end */
	uint32_t epoch;		    /* paths that the connection had before this one */
	struct w_consumed consumed; /* RESUME, and ACCEPT after it: by the sending end */
	uint32_t reserved;
	struct w_path path;
};
static_assert(sizeof(struct w_cm) <= W_CTL_MAX, "w_cm");

struct w_cm_tell {
	struct w_ctl_hdr hdr;
	uint16_t src_host;
	uint16_t dst_host;
	uint32_t slice_id;
	uint64_t src_conn;
	uint64_t dst_conn;
	uint64_t slice_len;
	uint32_t body_len;
	uint32_t epoch;
	uint8_t body[W_TELL_MAX];
	struct w_path path;
};
static_assert(sizeof(struct w_cm_tell) <= W_CTL_MAX, "w_cm_tell");

/*
 * The last serial of link-state updates.  Its origin cannot send a greater one, so it sends 0 and
 * begins again from low serials.  Serials of Viaduct 1.3 and before are times, in nanoseconds since
 * 1970, which reach this number in the year 2116.
 */
#define W_LINKS_LAST (UINT64_C(1) << 62)

/* A link-state update: the links of host `origin` that this host reports as up. */
struct w_cm_links {
	struct w_ctl_hdr hdr;
	uint16_t src_host; /* the neighbour that sends it, or passes it on */
	uint16_t dst_host;
	uint16_t origin;
	uint16_t up; /* a bit per port index */
	uint64_t serial; /* an origin's update with the greatest serial is its newest; 0: forget its updates */
};
static_assert(sizeof(struct w_cm_links) == 32, "w_cm_links");

#endif
