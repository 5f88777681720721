/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link: one port of the host, and the neighbour to which it leads.  The link of index 0 is
 * *self*, which connects processes of this host.
 *
 * This unit tells if a link can be used, marks it to be taken down, and keeps account of its memory
 * window.  ag_setup.c brings links up and takes them down.
 */
#ifndef AG_LINK_H
#define AG_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ag_list.h"
#include "ag_ratelimit.h"
#include "ag_state.h"
#include "port.h"
#include "u_log.h"
#include "w_ctl.h"

#define AG_LINK_QUEUE 4096u		     /* messages to a neighbour that may wait */
#define AG_BEAT_NS (1000 * INT64_C(1000000)) /* time between heartbeats */
/* A neighbour that sends nothing for so long, or reads nothing, is taken to be dead. */
#define AG_SILENCE_NS (5000 * INT64_C(1000000))

enum ag_link_state {
	AG_LINK_DOWN,
	AG_LINK_SETUP, /* the port is up, and the agents exchange scratchpad words */
	AG_LINK_UP,
	AG_LINK_BAD, /* the neighbour has another version or fabric; lasts until the port goes down */
};

struct ag_link {
	/* set when the link is made */
	struct ag_agent *agent;
	uint32_t index;
	bool cabled;  /* the port is emulated, with a cable */
	bool listens; /* this end listens, and the neighbour plugs the cable */
	uint16_t peer_host;
	uint8_t peer_port;
	struct port *port; /* the outermost decorator */
	int event_fd;	   /* the port's */
	struct u_log_ratelimit ratelimit[AG_LINK_RATELIMITS];

	/* ag_cable.c, ag_links.c */
	int cable_sock; /* the socket to which the neighbour connects its cable, if this end listens; else -1 */
	int64_t retry_at;
	bool admin_down;
	bool enabled;

	/* ag_setup.c */
	enum ag_link_state state;
	uint32_t generation;	  /* of the port's link */
	uint32_t link_generation; /* counts set-ups; clients are told this number */
	uint32_t nonce, peer_nonce;
	int64_t announce_at;	/* when the words of the set-up are repeated, */
	int64_t setup_until;	/* and when it begins again */
	int64_t setup_again_at; /* when to begin, if there was no room before; 0: there was */

	/* this unit */
	/* the reason for which it is to be reset at the next safe point; NULL: it is not */
	const char *broken;
	uint64_t window_used;
	uint64_t window_reserved; /* the most that connections which are being made can take */

	/* ag_mem.c, ag_share.c */
	uint64_t memory_used; /* part of window_used: memory of processes */

	/* ag_ctl.c: the control slice */
	struct port_slice ctl;
	struct port_map in, out;   /* this host's, the neighbour's */
	uint32_t tx_next, tx_done; /* records written, records that the neighbour consumed */
	uint32_t rx_next, rx_told; /* records consumed, and how many the neighbour knows of */
	bool ring;		   /* the doorbell is to be rung */
	int64_t nudge_at, beat_at, heard_at;
	struct ag_list queue; /* of struct ag_msg; on self: messages to be handled */
	uint32_t queue_len;
	bool links_last;     /* the record before this was a link-state update */
	uint32_t stuck_at;   /* tx_done when the queue last became shorter */
	int64_t stuck_since; /* and the time of that; 0: the queue is empty */

	/* ag_record.c */
	int64_t hold_until; /* when to give up on a slice that a record names; 0: none is awaited */

	/* ag_route.c */
	uint64_t untold; /* a bit for each host whose link-state update the neighbour lacks */

	/* ag_attempt.c */
	struct ag_list held; /* of struct ag_conn: requests not sent yet, oldest first */

	/* ag_conn.c */
	struct ag_list conns; /* of struct ag_conn */
	uint32_t conn_count;

	/* ag_waiter.c */
	uint32_t offer_count;

	/* ag_circuit.c */
	struct ag_list circuits[2]; /* those whose end 0, or end 1, is over this link */
	uint32_t circuit_count;
	uint32_t asked_count; /* circuits whose end 0 is over this link */
};

/* Can records be sent and connections be made over it? */
bool ag_link_usable(const struct ag_link *l);

/*
 * Marks the link to be taken down at the next safe point.  `why` goes to the log and is not copied.
 */
void ag_link_break(struct ag_link *l, const char *why);

/* Starts the clock of heartbeats, with the first connection or circuit over the link. */
void ag_link_beats_begin(struct ag_link *l);

/* Returns the size of a slice with such a fifo and payload buffer, as the link's port allots it. */
size_t ag_link_slice_bytes(const struct ag_link *l, uint32_t slots, uint32_t payload);

/*
 * Frees a slice of the link: it is no longer part of the window.  `held`: a process may still use it.  The slice's
 * descriptor stays the caller's.
 */
void ag_link_slice_free(struct ag_link *l, const struct port_slice *slice, bool held);

/*
 * Counts a slice of that geometry, which is not made yet, as part of the window, whether there is room or not.
 * Releases the room that `reservation` held before, and sets it to the new room.
 */
void ag_link_reserve(struct ag_link *l, const struct w_geometry *g, uint64_t *reservation);

/* Releases the room that `reservation` holds, if any. */
void ag_link_unreserve(struct ag_link *l, uint64_t *reservation);

/*
 * A stream goes through so much of a payload buffer before it comes to the same line again: by then the line has left
 * the second-level cache of the peer's processor, from which it would be dearest.  A dialogue of short messages stays
 * at the beginning.
 */
#define AG_STREAM_PAYLOAD (4u << 20)

/* Is the window so small that slices in it are small?  Never where the configuration says how large they are. */
bool ag_link_is_small(const struct ag_link *l);

/*
 * Sets *g to the slots and the payload buffer of a connection over `hops` links, as this link's window has room: the
 * small geometry, for any number of links, if the window is small.  Else the slots of the configuration, and the
 * payload buffer for streams, or that for so many links, or a smaller one, so that at most a quarter of the window is
 * used or reserved; but never less than that of the configuration, even without room.
 */
void ag_link_geometry(const struct ag_link *l, unsigned int hops, struct w_geometry *g);

#endif
