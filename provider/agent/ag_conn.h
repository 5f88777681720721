/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends of connections: the table of them, their moves from one link or state to another, and the
 * inbound slice that an end allots.
 *
 * An end belongs to its process (client->conns) and to the first link of its path (link->conns).
 * It is made here; ag_end.c ends it.
 */
#ifndef AG_CONN_H
#define AG_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_client.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_state.h"
#include "port.h"
#include "rt_topo.h"
#include "w_addr.h"
#include "w_ctl.h"
#include "w_slot.h"

enum ag_state {
	AG_HELD = 1,  /* will be AG_REQUESTED; on link->held until the queue has room */
	AG_REQUESTED, /* client, or the peer that does not decide: asked the other agent */
	AG_WAITING,   /* the peer that decides: no offer yet */
	AG_ARRIVED,   /* server: the process was told, has not answered */
	AG_ACCEPTING, /* server or deciding peer: CM_ACCEPT sent */
	AG_LINKED,    /* client: LINKED sent, CONFIRM awaited */
	AG_CONNECTED,
	AG_LOST,   /* the other end closed; ours has not yet */
	AG_CLOSED, /* ours closed; the other end has not yet */
};

/*
 * The state of a resumable connection that has lost its path, in addition to AG_CONNECTED.  The
 * *first* end, which asked for the connection, resumes it.
 */
enum ag_resume {
	AG_ON_PATH,
	AG_SUSPENDING, /* SUSPEND sent to the process */
	AG_SUSPENDED,  /* SUSPENDED came; no path yet, or the first end has not asked */
	AG_RESUMING,   /* first end: RESUME sent; other end: ACCEPT sent */
	AG_RESUMED,    /* RESUMED sent to the process, CONFIRM awaited */
};

/*
 * A process confirms a connection by a thread of the library, within this time: nearly as
 * long as an agent may be silent, since a machine may stand still for some seconds.
 */
#define AG_CONFIRM_NS (4000 * INT64_C(1000000))

/*
 * A process that has not confirmed so many connections in a row in time makes none for
 * AG_UNTRUSTED_NS after the last: each takes room at the process that accepts it, and delays a peer.
 */
#define AG_UNCONFIRMED_MAX 3u
#define AG_UNTRUSTED_NS (30000 * INT64_C(1000000))

struct ag_pending_resume;

struct ag_conn {
	struct ag_list in_client; /* of client->conns */
	struct ag_list in_hash;	  /* of agent->hash, by peer_host and peer_conn */
	struct ag_list in_link;	  /* of link->conns */
	struct ag_list in_held;	  /* of link->held, while AG_HELD */
	struct ag_list in_linked; /* of agent->linked, while AG_LINKED */
	int64_t confirm_until;	  /* while AG_LINKED; */
	bool postponed; /* its time was extended once, as the process had sent something that was not read */
	uint64_t id;
	uint64_t token;		  /* of the attempt or the accept */
	struct ag_client *client; /* NULL once its process closed it or died */
	struct ag_link *link;	  /* the first of its path */
	struct rt_path path;
	uint16_t peer_host;
	uint64_t peer_conn; /* the id of the other end; 0 while not known */
	enum ag_state state;
	bool peer;	  /* made by W_PEER */
	bool first;	  /* this end asked for the connection */
	bool withdrawn;	  /* cancelled while LINKED was on its way: CLOSE will follow */
	bool resumable;	  /* it outlives its path */
	enum w_lost left; /* the reason for which its process left it, if it did */
	struct w_vi_attrs attrs, peer_attrs;
	struct w_addr local, remote;

	/* the inbound slice */
	bool has_slice;
	bool opening;		    /* counted for its process as AG_OPENING */
	uint64_t charged;	    /* bytes of the slice that count for its process, */
	uint32_t charged_port;	    /* and the port whose window that is */
	bool held;		    /* its process has it, and may still use it */
	struct port_slice slice;    /* its fd is -1 once handed over */
	uint64_t reservation;	    /* in the link's window, until there is a slice */
	struct w_geometry geometry; /* of the slice, or of the one to be made */

	/* ag_share.c */
	struct ag_list shares; /* of struct ag_share: memory that its process named over it */

	/* ag_suspend.c, ag_resume_ask.c, ag_resume.c */
	enum ag_resume resume;
	struct ag_list in_resuming; /* of agent->resuming, unless AG_ON_PATH */
	bool paths_changed;	    /* paths have changed since a path was last asked for */
	bool path_closed;	    /* CLOSE came: the other end stores nothing any more */
	uint8_t full_port; /* the first port of a path that had no room when it was asked for; 0: none */
	uint32_t epoch;		    /* counts its paths */
	struct w_consumed consumed; /* by the process, when it was suspended */
	int64_t resume_from;
	int64_t resume_until;			  /* 0: it cannot go on */
	int64_t ask_at;				  /* the next attempt, or the next query */
	struct ag_pending_resume *pending_resume; /* a RESUME that came before the suspension */
};

/*
 * Makes an end of a connection of `c` over `l`, which the table owns, in `state`, which is before AG_CONNECTED.  Its
 * other host is the neighbour; the caller sets path, addresses and, if it is another, the host.  NULL: its process
 * has too many, or there is no memory.
 */
struct ag_conn *ag_conn_new(struct ag_client *c, struct ag_link *l, enum ag_state state);

/*
 * May the process of `c` make connections?  Not for AG_UNTRUSTED_NS after it has failed to confirm AG_UNCONFIRMED_MAX
 * of them in a row in time.
 */
bool ag_conn_trusts(const struct ag_client *c);

/*
 * Removes an end from its process, which it has, and for which neither the end nor its slice counts any more; the slice
 * remains.  ag_end_detach() ends its shares first.
 */
void ag_conn_leave_client(struct ag_conn *conn);

/* Takes an end that has neither process nor slice out of all tables and frees it. */
void ag_conn_remove(struct ag_conn *conn);

/* Returns the bucket of `table` for the connection of that id at that host. */
struct ag_list *ag_conn_bucket(const struct ag_agent *a, struct ag_list table[AG_HASH],
			       uint16_t host, uint64_t conn);

/* Return the end with that id, of any process or of `c`, or NULL. */
struct ag_conn *ag_conn_get(struct ag_agent *a, uint64_t id);
struct ag_conn *ag_conn_of_client(struct ag_client *c, uint64_t id);

/* Returns the attempt or accept of `c` with that token that is not settled yet, AG_LINKED included, or NULL. */
struct ag_conn *ag_conn_by_token(struct ag_client *c, uint64_t token);

/* Returns the end whose other end has that id at that host, or NULL. */
struct ag_conn *ag_conn_by_peer(struct ag_agent *a, uint16_t peer_host, uint64_t peer_conn);

/* Can records be sent to its other end?  Not while it waits for a path. */
bool ag_conn_on_path(const struct ag_conn *conn);

/*
 * Gives it another path, whose first link is `l`.  Releases its reservation in the window of the link before, and takes
 * it off that link's held requests; its slice and state are not changed.
 */
void ag_conn_move(struct ag_conn *conn, struct ag_link *l, const struct rt_path *path);

/* Sets the id of its other end, for ag_conn_by_peer(); 0: not known any more.  `peer_host` is set before. */
void ag_conn_set_peer(struct ag_conn *conn, uint64_t peer_conn);
void ag_conn_set_state(struct ag_conn *conn, enum ag_state state);

/* Limits `g` to the slots and the payload buffer that `most` names; 0 or an impossible size there: no limit. */
void ag_conn_limit_geometry(struct w_geometry *g, const struct w_geometry *most);

/*
 * For an end without a slice: sets the largest geometry for which its link has room, at least that for a neighbour
 * even if it has none, within `most` unless that is NULL, and reserves that room in place of an earlier reservation.
 */
void ag_conn_set_geometry(struct ag_conn *conn, const struct w_geometry *most);

/*
 * Allots its slice, of the geometry that was set, which replaces its reservation, and counts it for its process.  The
 * geometry then names the slice.  0, -EDQUOT (the process may not have so much, or not one more end that opens) or
 * another -errno; logged, and the reservation stays.
 */
int ag_conn_slice_alloc(struct ag_conn *conn);

/* Ends the counting of its slice, and of the end as opening, for its process. */
void ag_conn_uncharge(struct ag_conn *conn);

/*
 * Frees its slice, if it has one.  A process that still has the slice keeps its bytes, as it may still be reading
 * messages from it.
 */
void ag_conn_slice_free(struct ag_conn *conn);

#endif
