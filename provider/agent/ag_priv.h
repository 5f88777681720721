/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's objects.  All of them belong to the thread in ag_run(); only the
 * wake-up descriptor and the stop flags are touched by others.
 */
#ifndef AG_PRIV_H
#define AG_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "ag_agent.h"
#include "ag_list.h"
#include "ag_watchdog.h"
#include "port.h"
#include "port_emu.h"
#include "rl_relay.h"
#include "rt_topo.h"
#include "u_log.h"
#include "w_addr.h"
#include "w_ctl.h"
#include "w_slot.h"

#define AG_DB_BIT                                                                                  \
	0u /* the agent's doorbell bit; then those of transfer threads; processes share the rest */

#define AG_BACKLOG                                                                                 \
	1024 /* who waits to be accepted: a few dozen unauthorised users do not keep others from it */
#define AG_CLIENTS_MAX 4096u
#define AG_LISTENS_MAX 1024u /* per client */
#define AG_PENDING_MAX 4096u /* per client: attempts and requests not yet connected */
#define AG_CLIENT_CONNS_MAX 65536u
/* Window memory of a client, and of all of one user: less where the process may have few descriptors. */
#define AG_CLIENT_ALLOCS 4096u
#define AG_USER_ALLOCS 16384u
#define AG_CONNS_MAX (1u << 20)
#define AG_SHARES_MAX 4096u	    /* per allocation */
#define AG_CLIENT_SHARES_MAX 65536u /* of all its allocations */
#define AG_OFFERS_MAX 4096u	    /* per link */
#define AG_LINK_QUEUE 4096u	    /* messages towards a neighbour that may wait */
/* With so many waiting, requests to connect are held back, where cancelling costs no message. */
#define AG_LINK_REQUESTS 128u
#define AG_CLIENT_QUEUE 8192u /* messages to a client that may wait, beside two per connection */
/* With so many waiting, what other processes say to it is left out; answers are not. */
#define AG_CLIENT_HEARS (AG_CLIENT_QUEUE / 2)
/*
 * Descriptors that wait for one client, and for all of one user; less where the process may have few.  Of a user
 * whose clients have more the one with most is dropped.
 */
#define AG_CLIENT_FDS 2048u
#define AG_USER_FDS 8192u
/*
 * Processes of one user, the owner and root aside, and connections of one user that have not said HELLO; less where the
 * process may have few descriptors.  Of a user with more of the latter the oldest is dropped.
 */
#define AG_USER_CLIENTS 1024u
#define AG_USER_SILENT 256u
#define AG_HELLO_NS                                                                                \
	(10000 * INT64_C(1000000)) /* a process that says nothing for so long is dropped */
#define AG_FLUSH_NS                                                                                \
	(10 * INT64_C(1000000)) /* between attempts to send what the kernel has no room for */
#define AG_ALIASES_MAX 1024u

#define AG_RETRY_NS (100 * INT64_C(1000000)) /* between attempts to plug a cable */
#define AG_NUDGE_NS (20 * INT64_C(1000000))  /* unanswered records are rung for again */
#define AG_BEAT_NS (1000 * INT64_C(1000000)) /* heartbeat */
#define AG_SILENCE_NS (5000 * INT64_C(1000000))
/* A connection that has no path for so long is lost; */
#define AG_RESUME_NS (800 * INT64_C(1000000))
#define AG_ASK_NS (50 * INT64_C(1000000))	    /* between attempts to find it one; */
#define AG_RESUME_SLOW_NS (4000 * INT64_C(1000000)) /* where there is one, so long */
#define AG_RETURN_NS                                                                               \
	(200 * INT64_C(1000000)) /* a shorter path is taken when it has lasted so long */
#define AG_HOLD_NS (2000 * INT64_C(1000000)) /* a granted slice arrives within this */

/* Lines that others can cause without end have a rate limit each: of the agent, */
enum ag_ratelimit {
	AG_RATELIMIT_CLIENT,
	AG_RATELIMIT_CLOSE,
	AG_RATELIMIT_STAND,
	AG_RATELIMIT_CIRCUIT,
	AG_RATELIMIT_LOST,
	AG_RATELIMITS
};
/* and of each link. */
enum ag_link_ratelimit {
	AG_RATELIMIT_STATE,
	AG_RATELIMIT_SETUP,
	AG_RATELIMIT_CUT,
	AG_RATELIMIT_RECORD,
	AG_RATELIMIT_ROOM,
	AG_LINK_RATELIMITS
};

/* A message on its way, with descriptors that it owns. */
struct ag_msg {
	struct ag_list node;
	uint32_t len;
	uint32_t nfds;
	int fds[W_CTL_FDS];
	uint8_t bytes[];
};

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
 * Where a resumable connection is that has lost its path; beside AG_CONNECTED.  One end, which
 * asked for the connection, resumes it.
 */
enum ag_resume {
	AG_ON_PATH,
	AG_SUSPENDING, /* SUSPEND sent to the process */
	AG_SUSPENDED,  /* it said how far it got; no path yet, or the other end has not asked */
	AG_RESUMING,   /* first end: RESUME sent; the other: ACCEPT sent */
	AG_RESUMED,    /* RESUMED sent to the process, CONFIRM awaited */
};

/* One end of a connection. */
struct ag_conn {
	struct ag_list in_client; /* of client->conns */
	struct ag_list in_hash;	  /* by peer_host and peer_conn */
	struct ag_list in_link;	  /* of link->conns */
	struct ag_list in_held;	  /* of link->held, while AG_HELD */
	struct ag_list shares;	  /* of struct ag_share: memory that its process named over it */
	uint64_t id;
	uint64_t peer_conn;	  /* 0 while not known */
	uint64_t token;		  /* of the attempt or the accept */
	struct ag_client *client; /* NULL once its process closed it or died */
	struct ag_link *link;	  /* the first of its path */
	struct rt_path path;
	uint16_t peer_host;
	enum ag_state state;
	bool first;	  /* this end asked for the connection */
	bool resumable;	  /* it outlives its path */
	enum w_lost left; /* why its process left it, if it did */
	enum ag_resume resume;
	bool paths_changed; /* since it was asked for last */
	uint8_t full_port;  /* the first of a path that had no room when it was asked for, or 0 */
	/* its other end, or a relay for it, said that nothing is stored any more */
	bool path_closed;
	uint32_t epoch;
	struct w_consumed consumed;	   /* by our process, when it was suspended */
	int64_t resume_from, resume_until; /* until 0: it cannot go on */
	int64_t ask_at;			   /* the next attempt, or query */
	struct ag_list in_resuming;	   /* of agent->resuming, unless AG_ON_PATH */
	/* the first end's RESUME, until our process is suspended */
	struct ag_pending_resume *pending_resume;
	bool peer;	/* made by W_PEER */
	bool withdrawn; /* cancelled when LINKED was under way: CLOSE will follow */
	bool has_slice;
	struct port_slice slice; /* inbound; its fd is -1 once handed over */
	uint64_t reservation;	 /* of the link's window, until there is a slice */
	struct w_vi_attrs attrs;
	struct w_vi_attrs peer_attrs;
	struct w_geometry
		/*
		 * of slice; its slots and payload buffer before there is one, and the same on each
		 * way
		 */
		geometry;
	struct w_addr local;
	struct w_addr remote;
};

/* A RESUME that waits. */
struct ag_pending_resume {
	struct ag_link *link;
	struct rt_path path;
	struct w_cm cm;
};

struct ag_listen {
	struct ag_list node; /* of agent->listens */
	struct ag_list in_client;
	struct ag_client *client;
	uint64_t token;
	struct w_addr local;
};

/* Another host's peer-to-peer request that nobody here answers yet. */
struct ag_offer {
	struct ag_list node;  /* of agent->offers */
	struct ag_link *link; /* that it came over */
	struct rt_path path;  /* back */
	uint16_t src_host;
	uint64_t src_conn;
	struct w_vi_attrs attrs;
	struct w_geometry geometry; /* the largest of a connection */
	struct w_addr local;	    /* the sender's */
	struct w_addr remote;
};

/*
 * Window memory named to a neighbour over a connection, under an id of its own, until it is
 * named over it again or either end is closed.
 */
struct ag_share {
	struct ag_list node;
	struct ag_list in_conn;
	struct ag_alloc *alloc;
	struct ag_client *client;
	struct ag_link *link;
	uint32_t id;
};

/* Window memory of a process. */
struct ag_alloc {
	struct ag_list node;
	struct port_slice slice; /* of the self port, which keeps its descriptor; fd is -1 */
	struct ag_list shares;	 /* of struct ag_share */
	uint32_t share_count;
};

/* A tool asked a process for its counters, and has had no answer yet. */
struct ag_question {
	uint32_t nic; /* id of that client; 0: none was asked */
	uint64_t token;
};

struct ag_client {
	struct ag_list node;
	struct ag_agent *agent;
	int sock;
	int pidfd; /* tells of its end even if a forked child keeps the socket; -1: not to be had */
	uint32_t index;
	uint32_t id;
	uint32_t db_bit;
	uint32_t kind; /* 0 before HELLO */
	uid_t uid;
	pid_t pid;
	char program[W_NAME_MAX];
	bool gone;    /* to be freed when the event is done */
	bool leaving; /* hang up when the queue is empty */
	bool paused;  /* not read until the links' queues drain */
	uint32_t events;
	struct ag_list conns, listens, allocs;
	uint32_t conn_count, pending_count, listen_count, alloc_count, share_count;
	struct ag_list queue;
	uint32_t queue_len;
	struct ag_question *questions; /* of a tool: by the index of the NIC's client */
	uint32_t question_slots;
	uint32_t queue_fds;   /* descriptors in it */
	int64_t flush_at;     /* the kernel had no room to send: when to try again; 0: it had */
	int64_t hello_until;
	uint64_t missed;		   /* messages of other processes that it was not told */
	uint32_t port_sent[PORT_PER_HOST]; /* generation told + 1; 0: never told */
};

enum ag_link_state {
	AG_LINK_DOWN,
	AG_LINK_SETUP, /* the port is up, the agents are exchanging words */
	AG_LINK_UP,
	AG_LINK_BAD, /* the neighbour cannot be talked to; until the port goes down */
};

/* One port of the host with what lies behind it. links[0] is self. */
struct ag_link {
	struct ag_agent *agent;
	uint32_t index;
	bool listens; /* the cable is plugged by the neighbour */
	uint16_t peer_host;
	uint8_t peer_port;
	struct port *port; /* outermost decorator */
	struct port *emu;  /* innermost: where the cable is plugged */
	int cable_sock;	   /* if it listens; else -1 */
	int event_fd;	   /* as watched */
	int64_t retry_at;
	bool admin_down;
	bool enabled;

	enum ag_link_state state;
	uint32_t generation;	  /* the port's */
	uint32_t link_generation; /* counts set-ups; told to clients */
	uint32_t nonce, peer_nonce;
	struct port_slice ctl;
	struct port_map in, out;
	uint32_t tx_next, tx_done; /* records written, records the neighbour consumed */
	uint32_t rx_next, rx_told;
	bool ring;
	int64_t nudge_at, beat_at, heard_at;
	int64_t hold_until;  /* when to give up on a slice that a record names; 0: none awaited */
	int64_t announce_at; /* set-up words are repeated */
	int64_t setup_until; /* and then begun anew */
	int64_t setup_again_at; /* there was no room to begin; 0: there was */
	const char *broken;	/* to be reset at the next safe point, and why */

	struct ag_list queue; /* of struct ag_msg; for self: messages to handle */
	uint32_t queue_len;
	uint64_t untold; /* a bit for each host of whose links the neighbour is still to be told */
	bool said;	 /* the record before this was about links */
	uint32_t stuck_at;   /* tx_done when the queue was last seen to move */
	int64_t stuck_since; /* and when; 0: nothing waits in it */
	struct ag_list held; /* of struct ag_conn: requests, oldest first */
	struct ag_list conns;
	uint32_t conn_count;
	struct ag_list circuits[2]; /* that have it on that side */
	uint32_t circuit_count;
	uint32_t asked_count; /* of them, asked by who came over it */
	uint32_t offer_count;
	uint64_t window_used;
	uint64_t window_reserved; /* to connections that are being made, at most */
	struct u_log_ratelimit ratelimit[AG_LINK_RATELIMITS];
};

#define AG_HASH 4096u

struct ag_conn_slot {
	struct ag_conn *conn;
	uint32_t generation;
	uint32_t next_free; /* index + 1 */
};

struct ag_agent {
	struct ag_cfg cfg; /* its pointers are replaced by what follows */
	char fabric[W_NAME_MAX];
	char (*names)[W_NAME_MAX]; /* of the hosts */
	struct ag_alias *aliases, *devices;
	uint32_t alias_count, device_count;

	int epoll;
	int wake; /* eventfd: doorbells, ag_stop() */
	int listen_sock;
	uint32_t client_fds, user_fds, client_allocs, user_allocs; /* the ceilings in use */
	uint32_t user_clients, user_silent;
	bool rights_kept_out;	 /* the kernel lets no descriptor of a process into a queue */
	int spare_fd;		 /* given up to answer a client when descriptors run out */
	int64_t listen_again_at; /* 0: listen_sock is watched */
	_Atomic bool stop;
	_Atomic bool irq_stop;
	pthread_t irq_thread;
	bool irq_started;
	struct port_emu_host *host;
	struct port_irq *irq;	    /* of transfer threads */
	struct port_irq *agent_irq; /* of AG_DB_BIT, which no process can touch */
	struct ag_link links[PORT_PER_HOST];
	uint32_t link_count;

	struct rt_topo *topo;
	uint8_t *up;	     /* of each host: the links that it says are up */
	uint64_t *up_serial; /* of that link-state update; 0: never heard, and taken to be up */
	uint8_t *bridges;    /* of each host: the links that nothing can stand in for */
	struct ag_list resuming, retired;
	int64_t return_at;	/* when to look for connections that have a shorter path now */
	struct rl_relay *relay; /* NULL where nothing is relayed */
	uint32_t relay_threads;
	int relay_cpus[AG_RELAY_CPUS_MAX];
	_Atomic bool relay_broken; /* rl_broken() has something */
	uint64_t hash_key; /* others, who choose the names of their connections, do not know it */
	struct ag_list circuits[AG_HASH];
	uint32_t circuit_count;
	uint64_t relay_dropped; /* records that no relay should have been sent */
	uint64_t relay_refused; /* circuits that there was no room for */

	struct ag_list clients;
	struct ag_client **client_slot;
	uint32_t client_slots, client_count, client_serial;
	uint32_t nic_count; /* clients that opened a NIC: the others only look */
	int64_t clients_at; /* not before then has a client something to be done in time */
	struct ag_list listens;
	struct ag_list offers;
	struct ag_conn_slot *conn_slot;
	uint32_t conn_slots, conn_count, conn_free;
	struct ag_list hash[AG_HASH];
	int64_t idle_since;
	struct u_log_ratelimit ratelimit[AG_RATELIMITS];
	struct ag_watchdog watchdog;
	bool dirty; /* something was queued, dropped or broken since it was last settled */
};

/* ag_client.c */
int ag_client_accept(struct ag_agent *a);
/* False: too much is being closed apart for more to be taken in. */
bool ag_closing_keeps_up(struct ag_agent *a);
void ag_client_event(struct ag_client *c, uint32_t events);
/* The process has ended: what it sent is read, then it is dropped. */
void ag_client_ended(struct ag_client *c);
/* Queues a message; takes the descriptors in any case.  A client whose queue is full is dropped. */
void ag_client_send(struct ag_client *c, const void *msg, const int *fds, unsigned int nfds);
/* May it be told what another process says?  If not, that is counted. */
bool ag_client_hears(struct ag_client *c);
void ag_client_drop(struct ag_client *c, const char *why);
void ag_client_reap(struct ag_agent *a);
void ag_client_free(struct ag_client *c);
void ag_client_resume(struct ag_agent *a);
void ag_client_limits(struct ag_agent *a);
int64_t ag_client_timers(struct ag_agent *a, int64_t now); /* next deadline */
/* Tells the client about a port it has not heard of since its link came up. */
int ag_client_port(struct ag_client *c, struct ag_link *l);
void ag_client_refuse(struct ag_client *c, enum w_ctl_type type, uint64_t token,
		      enum w_status status, const char *text);

/* ag_conn.c: tables of connection ends, waiters, offers. */
/* Of a table by host and connection: where those of that name are. */
struct ag_list *ag_bucket(const struct ag_agent *a, struct ag_list table[AG_HASH], uint16_t host,
			  uint64_t conn);
struct ag_conn *ag_conn_new(struct ag_client *c, struct ag_link *l, enum ag_state state);
void ag_conn_free(struct ag_conn *conn); /* slice included */
struct ag_conn *ag_conn_get(struct ag_agent *a, uint64_t id);
struct ag_conn *ag_conn_of_client(struct ag_client *c, uint64_t id);
struct ag_conn *ag_conn_by_token(struct ag_client *c, uint64_t token);
struct ag_conn *ag_conn_by_peer(struct ag_agent *a, uint16_t peer_host, uint64_t peer_conn);
/* It goes, or will go, by another path. */
bool ag_conn_on_path(const struct ag_conn *conn); /* else nothing can be said to its other end */
void ag_conn_move(struct ag_conn *conn, struct ag_link *l, const struct rt_path *path);
void ag_conn_set_peer(struct ag_conn *conn, uint64_t peer_conn);
void ag_conn_set_state(struct ag_conn *conn, enum ag_state state);
void ag_conn_detach(struct ag_conn *conn); /* its process has no more to do with it */
/*
 * Counts a slice with such a payload buffer, which is not made yet, among those that take up the
 * window.
 */
void ag_window_reserve(struct ag_link *l, uint32_t payload, uint64_t *reservation);
void ag_window_unreserve(struct ag_link *l, uint64_t *reservation);
/* The largest payload buffer of a connection over `hops` links that the link has room for. */
uint32_t ag_payload_of_path(const struct ag_link *l, unsigned int hops);
/* Not more slots, nor a larger payload buffer, than `most` names; 0 there: any. */
void ag_geometry_limit(struct w_geometry *g, const struct w_geometry *most);
/* Before the connection has a slice: the largest, within `most` unless that is NULL. */
void ag_conn_set_geometry(struct ag_conn *conn, const struct w_geometry *most);
int ag_conn_slice_alloc(struct ag_conn *conn);
void ag_conn_slice_free(struct ag_conn *conn);
struct ag_listen *ag_listen_new(struct ag_client *c, uint64_t token, const struct w_addr *local);
struct ag_listen *ag_listen_match(struct ag_agent *a, const struct w_addr *remote);
struct ag_listen *ag_listen_by_token(struct ag_client *c, uint64_t token);
void ag_listen_free(struct ag_listen *l);
struct ag_offer *ag_offer_new(struct ag_link *l, const struct w_cm *cm);
struct ag_offer *ag_offer_match(const struct ag_conn *conn);
struct ag_offer *ag_offer_by_conn(struct ag_agent *a, uint16_t src_host, uint64_t src_conn);
void ag_offer_free(struct ag_offer *offer);
bool ag_addr_equal(const struct w_addr *a, const struct w_addr *b);
int ag_addr_compare(const struct w_addr *a, const struct w_addr *b);

/* ag_cm.c: requests of processes about connections. */
void ag_connect_listen(struct ag_client *c, const struct w_connect *m);
void ag_connect_unlisten(struct ag_client *c, const struct w_token *m);
void ag_connect_request(struct ag_client *c, const struct w_connect *m);
void ag_peer_request(struct ag_client *c, const struct w_connect *m);
void ag_connect_cancel(struct ag_client *c, const struct w_token *m);
void ag_connect_accept(struct ag_client *c, const struct w_accept *m);
void ag_connect_reject(struct ag_client *c, const struct w_conn *m);
void ag_connect_confirm(struct ag_client *c, const struct w_conn *m);
void ag_connect_close(struct ag_client *c, const struct w_conn *m);
/* The process of `conn` is done with it, for `reason`. */
void ag_connect_leave(struct ag_conn *conn, enum w_lost reason);
/* Tells its process, if it has one, that the connection is lost. */
void ag_cm_tell_lost(struct ag_conn *conn, enum w_lost reason);
void ag_connect_link_down(struct ag_link *l, const char *why);
/* Sends held requests while the queue has room; returns whether it did. */
bool ag_attempt_unhold(struct ag_link *l);
/* Connects conn's process to the slices.  Takes out_fd in any case. */
int ag_cm_linked(struct ag_conn *conn, enum w_ctl_type type, const struct w_cm *cm, int out_fd);
/* Opens what the other end named.  -EAGAIN: the slice has not arrived, though it will. */
int ag_cm_outbound(struct ag_link *l, const struct w_geometry *g, bool last_chance, int *fd_out);
/* Answers a record in the name of its destination: there, or from a relay on its way. */
void ag_cm_answer(struct ag_link *l, const struct w_cm *req, enum w_ctl_type type,
		  enum w_status status);
void ag_cm_refuse(struct ag_link *l, const struct w_cm *req, enum w_status status);
/*
 * What its ends are told of a connection that fails for `err`: want of room, or a path that is
 * lost.
 */
enum w_status ag_cm_status(int err);
/* Sends a record about `conn` to the agent of its other end. */
void ag_cm_send(struct ag_conn *conn, enum w_ctl_type type, uint32_t status);

struct ag_conn *ag_cm_end_of(struct ag_link *l, const struct w_cm *cm);
bool ag_cm_addresses_ok(struct ag_agent *a, const struct w_cm *cm);
bool ag_attempt_is_own(struct ag_client *c, const struct w_connect *m);
struct ag_link *ag_attempt_link(struct ag_client *c, const struct w_connect *m,
				struct rt_path *path, uint16_t *host_out);
struct ag_conn *ag_attempt_new(struct ag_client *c, struct ag_link *l, const struct w_connect *m,
			       const struct rt_path *path, uint16_t host, enum ag_state state);
void ag_attempt_request(struct ag_conn *conn);
bool ag_attempt_move(struct ag_conn *conn);
void ag_peer_offered(struct ag_link *l, const struct w_cm *cm);
void ag_peer_withdrawn(struct ag_link *l, const struct w_cm *cm);
void ag_remote_request(struct ag_link *l, const struct w_cm *cm);
void ag_remote_refuse(struct ag_link *l, const struct w_cm *cm);
int ag_remote_accept(struct ag_link *l, const struct w_cm *cm, bool last_chance);
int ag_remote_confirm(struct ag_link *l, const struct w_cm *cm, bool last_chance);
void ag_remote_cancel(struct ag_link *l, const struct w_cm *cm);
void ag_remote_close(struct ag_link *l, const struct w_cm *cm);

/* ag_resume.c: connections that outlive their path. */
/* Is every link of its path one that others can stand in for?  Both ends find the same. */
bool ag_resume_can(const struct ag_conn *conn);
/* Its path is gone, or a shorter one is wanted. */
void ag_resume_begin(struct ag_conn *conn);
/* The link that it uses is down; false: it is not resumable. */
bool ag_resume_link_down(struct ag_conn *conn);
void ag_resume_suspended(struct ag_client *c, const struct w_suspended *m);
/* The process has mapped the new path; false: it was not asked. */
bool ag_resume_confirm(struct ag_conn *conn);
/* Records about a connection that has lost its path; false: this one is no such. */
bool ag_resume_closed(struct ag_conn *conn, const struct w_cm *cm);
bool ag_resume_refused(struct ag_conn *conn, const struct w_cm *cm);
void ag_resume_request(struct ag_link *l, const struct w_cm *cm);
/* Whoever waits for the end that the record names asks whether there is one, or is told that there is none. */
void ag_resume_query(struct ag_link *l, const struct w_cm *cm);
void ag_resume_unknown(struct ag_link *l, const struct w_cm *cm);
int ag_resume_accept(struct ag_conn *conn, const struct w_cm *cm, bool last_chance);
int ag_resume_confirmed(struct ag_conn *conn, const struct w_cm *cm, bool last_chance);
/* Who sent the CLOSE (NULL: nobody over `l`) stores no more into what was left in the epoch it names. */
void ag_resume_left(struct ag_link *l, const struct w_cm *cm);
/* Calls off the attempt that is under way; false: there is none. */
bool ag_resume_withdraw(struct ag_conn *conn, enum w_lost reason);
/*
 * Closed, and its path is lost: has the other end told by a new one; false: that one asks, or is
 * told.
 */
bool ag_resume_final_message(struct ag_conn *conn);
/* It is not to be resumed any more. */
void ag_resume_forget(struct ag_conn *conn);
/* Paths have changed. */
void ag_resume_retry(struct ag_agent *a);
int64_t ag_resume_timers(struct ag_agent *a, int64_t now);

/* ag_peer.c: what comes from other agents (and from this one, through self). */
/* Joins a waiting peer with the offer, or refuses both.  Frees the offer. */
void ag_peer_join(struct ag_conn *conn, struct ag_offer *offer);
/* A deciding peer whose partner withdrew waits again. */
void ag_peer_rewait(struct ag_conn *conn);
enum w_status ag_attrs_compare(const struct w_vi_attrs *a, const struct w_vi_attrs *b);

/* ag_route.c: the topology, who says which links are up, paths. */
int ag_route_init(struct ag_agent *a);
void ag_route_free(struct ag_agent *a);
/* A path to `host` now, whose first link is usable.  0, or -EHOSTUNREACH with the reason. */
int ag_route_find(struct ag_agent *a, unsigned int host, uint32_t flow, struct rt_path *out,
		  char *why, size_t size);
/* The same by another link than that of `port`.  0 or -EHOSTUNREACH. */
int ag_route_find_other(struct ag_agent *a, unsigned int host, uint32_t flow, uint8_t port,
			struct rt_path *out);
struct ag_link *ag_route_link(struct ag_agent *a, const struct rt_path *path);
/* A link of this host went up or down. */
void ag_route_changed(struct ag_link *l);
/* Takes in a link-state update of the neighbour.  Returns whether paths may have changed. */
bool ag_route_links(struct ag_link *l, const struct w_cm_links *m);
/* Takes the next link-state update that the neighbour is to be told; false: there is none. */
bool ag_route_untold(struct ag_link *l, struct w_cm_links *out);
void ag_path_set(struct w_path *w, const struct rt_path *path);
/* The path back to its source. */
int ag_path_back(struct ag_agent *a, uint16_t src_host, const struct w_path *w,
		 struct rt_path *out);
/* Did a record over `l` come over the path that it names, and does that lead to its destination? */
bool ag_path_ok(struct ag_link *l, uint16_t src_host, uint16_t dst_host, const struct w_path *w);

/* ag_relay.c: records and connections of other hosts. */
/* Refuses what no relay can be made of; the log says what. */
int ag_relay_check(const struct ag_cfg *cfg);
void ag_relay_choose(struct ag_agent *a); /* how many transfer threads there are to be */
int ag_relay_init(struct ag_agent *a);
void ag_relay_free(struct ag_agent *a);
/* The bits of transfer threads end before this one. */
uint32_t ag_relay_db_bits_end(const struct ag_agent *a);
/* Passes on a record whose path goes on from here.  -EAGAIN as the records of this host. */
int ag_relay_record(struct ag_link *l, const void *msg, bool last_chance);
void ag_relay_link_down(struct ag_link *l);
/* Ends circuits whose nodes broke the rules. */
void ag_relay_settle(struct ag_agent *a);

/* ag_link.c: ports, cables, set-up.  ag_ctl.c: the control slice. */
int ag_link_create(struct ag_agent *a, uint32_t index);
void ag_link_destroy(struct ag_link *l);
void ag_link_accept(struct ag_link *l);
void ag_link_service(struct ag_link *l);
void ag_link_check(struct ag_link *l); /* at the port's state and the neighbour's set-up words */
void ag_link_reset(struct ag_link *l, const char *why);
int ag_link_admin(struct ag_link *l, bool up);
int64_t ag_link_timers(struct ag_link *l, int64_t now); /* next deadline */
bool ag_link_usable(const struct ag_link *l);
int ag_ctl_open(struct ag_link *l);
void ag_ctl_close(struct ag_link *l);
/* Queues a record.  When that cannot be, the link is reset soon. */
void ag_ctl_send(struct ag_link *l, const void *msg);
/* What a process asks for waits; answers and the like are still taken. */
bool ag_ctl_full(const struct ag_link *l);
bool ag_ctl_busy(const struct ag_link *l); /* likewise, for requests to connect */
#define AG_CTL_MSG_MAX (W_CTL_MAX - 8)
#define AG_CTL_BATCH 256u
bool ag_ctl_take_credit(struct ag_link *l);
void ag_ctl_write(struct ag_link *l);
void ag_ctl_ring(struct ag_link *l);
bool ag_ctl_next(struct ag_link *l, void *copy);
void ag_ctl_consumed(struct ag_link *l, int64_t now);
void ag_ctl_return_credit(struct ag_link *l);
struct ag_msg *ag_ctl_pop(struct ag_link *l);
bool ag_ctl_silent(const struct ag_link *l, int64_t now);
int64_t ag_ctl_beat_timer(struct ag_link *l, int64_t now);
int64_t ag_ctl_queue_timer(struct ag_link *l, int64_t now);

/* ag_record.c */
void ag_record_receive(struct ag_link *l);
void ag_record_pump(struct ag_link *l);
void ag_record_drain_self(struct ag_agent *a);
int64_t ag_record_timers(struct ag_link *l, int64_t now);

uint32_t ag_ctl_bytes(void);

/* ag_mem.c */
void ag_mem_alloc(struct ag_client *c, const struct w_alloc *m);
void ag_mem_free(struct ag_client *c, const struct w_alloc *m);
void ag_mem_tell(struct ag_client *c, const struct w_tell *m);
void ag_mem_told(struct ag_link *l, const struct w_cm_tell *m);
void ag_mem_link_down(struct ag_link *l);   /* what was named to the neighbour means nothing now */
void ag_mem_conn_end(struct ag_conn *conn); /* likewise of what was named over it */
void ag_mem_release(struct ag_client *c, struct ag_alloc *m);

/* ag_name.c: names, routes, lists, administration. */
int ag_names_init(struct ag_agent *a, const struct ag_cfg *cfg);
void ag_names_free(struct ag_agent *a);
void ag_name_lookup(struct ag_client *c, const struct w_name *m);
void ag_name_reverse(struct ag_client *c, const struct w_name *m);
void ag_name_route(struct ag_client *c, const struct w_route *m);
void ag_list_item(struct ag_client *c, const struct w_list *m);
/* A tool asks for the counters of a NIC; its process answers. */
void ag_count(struct ag_client *c, const struct w_count *m);
void ag_counted(struct ag_client *c, const struct w_counted *m);
void ag_admin(struct ag_client *c, const struct w_admin *m);
/* The host that a host address names; -ENOENT when it is none of the fabric's. */
int ag_host_of(const struct ag_agent *a, const uint8_t *host, unsigned int len);

/* ag_agent.c */
void ag_link_break(struct ag_link *l, const char *why); /* resets it at the next safe point */
void ag_wake(struct ag_agent *a);			/* from any thread */
int ag_watch(struct ag_agent *a, int fd, uint32_t events, uint64_t what);
struct ag_msg *ag_msg_new(const void *msg, const int *fds, unsigned int nfds);
void ag_msg_free(struct ag_msg *m);

/* ag_loop.c */
int ag_loop_open(struct ag_agent *a);
int ag_irq_start(struct ag_agent *a);
void ag_irq_end(struct ag_agent *a);

/* ag_ratelimit.c: rate limits of the log. */
void ag_ratelimits_init(struct u_log_ratelimit r[AG_RATELIMITS]);
void ag_ratelimits_init_link(struct u_log_ratelimit r[AG_LINK_RATELIMITS], const char *name);
int64_t ag_ratelimits_tell(struct u_log_ratelimit *ratelimits, unsigned int count);

/* What an epoll event is about: kind (upper half) and index. */
#define AG_EV_WAKE 0u
#define AG_EV_LISTEN 1u
#define AG_EV_CABLE 2u /* listening cable socket of a link */
#define AG_EV_PORT 3u
#define AG_EV_CLIENT 4u
#define AG_EV_PROCESS 5u
#define AG_EV(kind, index) ((uint64_t)(kind) << 32 | (index))

#endif
