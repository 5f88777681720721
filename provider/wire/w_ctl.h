/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages: between a process and its host's agent (over a Unix
 * SOCK_SEQPACKET socket, which also passes descriptors), and between the agents of
 * neighbours (through a control slice, no descriptors: slices are named by id).
 * Both have the header and the types below.  The records of agents are in w_cm.h, the messages of
 * tools in w_tool.h.
 *
 * A connection end is an agent's record, named by `conn` (nonzero, generation
 * inside).  A process names its attempts by `token`, echoed in every answer.
 *
 * Connection set-up (client C on host A, server S on host B; agents a, b):
 *
 *	S->b  LISTEN{token, local}                         VipConnectWait
 *	C->a  CONNECT{token, local, remote, attrs}         VipConnectRequest
 *	      a->b  CM_REQ{src}         b: no waiter ->  CM_REFUSE{NO_MATCH}
 *	      b->S  ARRIVED{token, conn, remote address, attrs}; the waiter is used up
 *	S->b  ACCEPT{conn, token, attrs} or REJECT{conn}   (REJECT -> CM_REFUSE{REJECT})
 *	      b allocates S's inbound slice; b->a CM_ACCEPT{slice id, geometry, db_bit}
 *	      a allocates C's inbound slice, opens S's;
 *	      a->C  LINKED{token, conn, geometry, attrs} + fds {inbound, outbound}
 *	      a->b  CM_CONFIRM{slice id, geometry, db_bit}
 *	      b->S  LINKED + fds {inbound, outbound}       S is connected, accept returns
 *	C->a  CONFIRM{conn}                                C is connected
 *
 * A client that gives up sends CANCEL{token}: answered by REFUSED{TIMEOUT}, and
 * b's ACCEPT is answered by REFUSED{TIMEOUT} or the request just vanishes.
 * LINKED that crosses a CANCEL is answered by the client with CLOSE{conn}.  A LINKED that is not
 * confirmed in 4 s ends: LOST to C, and CM_CLOSE{W_LOST_PROCESS}, so that S, which is connected, gets
 * LOST.  What S sent before C had mapped the connection waits in C's slice.  An older agent sends
 * CM_CONFIRM when C has confirmed, and CM_CANCEL{TIMED_OUT} instead of that CM_CLOSE; then S gets
 * REFUSED{TIMED_OUT}.
 *
 * A failed ACCEPT (BAD_RELIABILITY, BAD_MTU, BAD_QOS, no window left at b) leaves
 * the request alive; after any other REFUSED the conn is gone.  A conn may vanish
 * at any time, so naming one that is gone is answered by REFUSED{TIMED_OUT}
 * (ACCEPT) or by nothing.  Every token gets exactly one LINKED or REFUSED.  A
 * CANCEL of an ACCEPT's token withdraws the accept and ends the connection.
 *
 * Peer to peer: PEER{token, local, remote, attrs} at both.  The end whose local
 * address is lower (host part, then discriminator, bytes then length; equal: the
 * one that came first) decides: its agent waits, the other's sends CM_PEER.
 * When both are there the deciding agent plays b from ACCEPT on, with attributes
 * compared by it; a mismatch refuses both.  The other agent sends CM_CONFIRM when its process has
 * confirmed.  An attempt withdrawn (CM_PEER_CANCEL)
 * leaves the other waiting.  A peer that was LINKED, did not CANCEL, and sends CLOSE instead of
 * CONFIRM could not map the connection: the other is refused with NO_RESOURCE.
 *
 * A resumable connection outlives its path.  When a link or a relay on it is gone, or there is a
 * shorter one, each agent has its process unmap the connection and report the slots that it
 * consumed:
 *
 *	a->C  SUSPEND{conn}	  C->a  SUSPENDED{conn, consumed}	   b and S likewise
 *	      a->b  CM_RESUME{epoch, consumed}	by another path; epoch is one more than before
 *	      b->a  CM_ACCEPT{epoch, consumed, slice id, geometry, db_bit}
 *	a->C  RESUMED{conn, consumed} + fds	C sends again what S did not consume
 *	C->a  CONFIRM{conn}
 *	      a->b  CM_CONFIRM{epoch, slice id, geometry, db_bit}
 *	b->S  RESUMED{conn, consumed} + fds	S sends again what C did not consume
 *	S->b  CONFIRM{conn}
 *
 * A process that finds the link of the new path down does not confirm, and stays suspended.
 *
 * Only the agent of the end that asked for the connection resumes it.  When that end is closed
 * before, a CM_RESUME{epoch, reason} says so: the other end is lost for that reason, and its agent refuses.
 * Messages about an earlier epoch are ignored.  A connection that was not resumed in time is lost, with
 * W_LOST_LINK, at both ends.
 *
 * The other agent waits for that, and asks whether there is an end to wait for: an agent that was
 * started again knows none of the connections of the one before.
 *
 *	b->a  CM_QUERY{src, dst}	a: an end of that name, with that other end ->  no answer
 *	a->b  CM_UNKNOWN{src, dst}	otherwise
 *	b->S  LOST{conn, W_LOST_LINK}
 *
 * After that, CLOSE{conn} by either process -> CM_CLOSE -> LOST{conn, reason} at
 * the other, which answers with its own CLOSE{conn} when it has unmapped.  An end whose
 * process died is closed by its agent with reason W_LOST_PROCESS; a link or an
 * agent that is gone closes every end that used it with W_LOST_LINK.
 */
#ifndef W_CTL_H
#define W_CTL_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define W_CTL_MAGIC 0x54434456u /* "VDCT" */
#define W_CTL_VERSION 7u
#define W_CTL_MAX 512u /* bytes of the longest message */
#define W_CTL_FDS 4u

#define W_HOST_ADDR_LEN 6u /* NicAddressLen */
#define W_DISC_MAX 64u	   /* MaxDiscriminatorLen */
#define W_NAME_MAX 64u
#define W_PORTS_MAX 8u		  /* ports of a host */
#define W_DB_BITS_MAX 32u	  /* doorbell bits of a port */
#define W_NAME_DEVICE 0xfffffffeu /* as W_NAME index: look `name` up as a device name */

struct w_addr {
	uint8_t host[W_HOST_ADDR_LEN];
	uint8_t host_len; /* 6; a wrong length is NOT_REACHABLE, not a protocol error */
	uint8_t disc_len; /* <= W_DISC_MAX */
	uint8_t disc[W_DISC_MAX];
};
static_assert(sizeof(struct w_addr) == 72, "w_addr");

/* Host address of host `id`: 02:56:44:00:hi:lo. */
static inline void w_host_addr(uint16_t id, uint8_t out[W_HOST_ADDR_LEN])
{
	out[0] = 0x02;
	out[1] = 0x56;
	out[2] = 0x44;
	out[3] = 0x00;
	out[4] = (uint8_t)(id >> 8);
	out[5] = (uint8_t)id;
}

struct w_vi_attrs {
	uint32_t reliability; /* VIP_RELIABILITY_LEVEL */
	uint32_t flags;	      /* W_VI_RDMA_WRITE, W_VI_RDMA_READ */
	uint64_t max_transfer;
	uint64_t qos;
	uint64_t ptag; /* opaque to the peer; 0 for none */
};
static_assert(sizeof(struct w_vi_attrs) == 32, "w_vi_attrs");
#define W_LEVEL_UNRELIABLE 1u /* VIP_SERVICE_UNRELIABLE */
#define W_VI_RDMA_WRITE 1u
#define W_VI_RDMA_READ 2u

/* The description of an inbound slice, which the two ends of a connection exchange. */
struct w_geometry {
	uint32_t slots;
	uint32_t payload_bytes;
	uint32_t db_bit;     /* doorbell bit (number) to ring for this end's process */
	uint32_t must_fence; /* 1: this end has no membarrier, so its sender must fence */
	uint32_t slice_id;   /* agent to agent */
	uint32_t reserved;
	uint64_t slice_len;
};
static_assert(sizeof(struct w_geometry) == 32, "w_geometry");

/* How far the receiver of a connection had got when its path was lost. */
struct w_consumed {
	uint32_t slots;	 /* consumed; the next one is this */
	uint32_t cursor; /* of the payload buffer, within it */
};
static_assert(sizeof(struct w_consumed) == 8, "w_consumed");

enum w_status {		       /* outcome of a request */
		W_SUCCESS = 0, /* W_OK is a name of <unistd.h> */
		W_NO_MATCH,
		W_REJECTED,
		W_TIMED_OUT,
		W_NOT_REACHABLE,
		W_NO_RESOURCE, /* window, descriptors, table full */
		W_BAD_STATE,
		W_BAD_RELIABILITY,
		W_BAD_MTU,
		W_BAD_QOS,
		W_UNKNOWN_NAME,
		W_DENIED,
		W_BAD_VERSION,
		W_BAD_REQUEST,
		W_STATUS_MAX
};

enum w_lost { W_LOST_CLOSED = 1, W_LOST_PROCESS, W_LOST_LINK, W_LOST_MAX };

enum w_ctl_type {
	/* process -> agent */
	W_HELLO = 1, /* struct w_hello */
	W_LISTEN,    /* struct w_connect: token, local */
	W_UNLISTEN,  /* struct w_token; answered by W_UNLISTENED */
	W_CONNECT,   /* struct w_connect */
	W_PEER,	     /* struct w_connect */
	W_CANCEL,    /* struct w_token */
	W_ACCEPT,    /* struct w_accept */
	W_REJECT,    /* struct w_conn */
	W_CONFIRM,   /* struct w_conn */
	W_CLOSE,     /* struct w_conn */
	W_ALLOC,     /* struct w_alloc: window memory; answered by W_ALLOCATED + fd */
	W_FREE,	     /* struct w_alloc: slice_id */
	W_TELL,	     /* struct w_tell: to the process at the other end of conn */
	W_NAME,	     /* struct w_name: look-up by name and index; answered by W_NAMED */
	W_ADDR_NAME, /* struct w_name: look-up by address; answered by W_NAMED */
	W_ROUTE,     /* struct w_route: how a host would be reached; answered by W_ROUTED */
	W_LIST,	     /* struct w_list: item `index` of `what`; answered by W_LISTED */
	W_ADMIN,     /* struct w_admin: vi_fabric's; answered by W_DONE */
	W_COUNT, /* struct w_count: counters of NIC `index`; the agent passes it to that process */
	W_COUNTED,    /* struct w_counted: the process's answer, passed to the client that asked */
	W_SUSPENDED,  /* struct w_suspended: W_SUSPEND was done */
	W_PORT_AGAIN, /* struct w_conn, conn is the index: W_PORT's descriptors were lost here */

	/* agent -> process */
	W_WELCOME = 64, /* struct w_welcome */
	/*
	 * struct w_port + fds: a port to attach.  Sent before its first use, and again
	 * before the next use when its link came up again (with a new link_generation).
	 */
	W_PORT,
	W_UNLISTENED, /* struct w_token */
	W_ARRIVED,    /* struct w_arrived */
	W_LINKED,     /* struct w_linked + fds {inbound, outbound} */
	W_REFUSED,    /* struct w_refused */
	W_LOST,	      /* struct w_lost_msg */
	W_ALLOCATED,  /* struct w_alloc + fd */
	W_TOLD,	      /* struct w_tell (+ fd when it names a slice) */
	W_NAMED,      /* struct w_name */
	W_ROUTED,     /* struct w_route */
	W_LISTED,     /* struct w_listed */
	W_DONE,	      /* struct w_refused: status of W_ADMIN, or of a HELLO refused */
	W_SUSPEND,    /* struct w_conn: unmap the connection, and say how far it got */
	W_RESUMED,    /* struct w_linked + fds: it goes on; answered by CONFIRM */

	/* agent -> agent, through the control slice */
	W_CM_REQ = 128, /* struct w_cm */
	W_CM_REFUSE,
	W_CM_ACCEPT,
	W_CM_CONFIRM,
	W_CM_CANCEL,
	W_CM_CLOSE,
	W_CM_PEER,
	W_CM_PEER_CANCEL,
	W_CM_TELL,	/* struct w_cm_tell */
	W_CM_HEARTBEAT, /* struct w_cm: src only; to a neighbour */
	W_CM_LINKS,	/* struct w_cm_links; to a neighbour, which passes on newer ones */
	W_CM_RESUME,	/* struct w_cm: a connection goes on over another path */
	W_CM_QUERY,	/* struct w_cm: do you know this end?  Relays keep no state of it */
	W_CM_UNKNOWN,	/* struct w_cm: the answer, if it does not */
};

struct w_ctl_hdr {
	uint32_t magic;
	uint16_t version;
	uint16_t type; /* enum w_ctl_type */
	uint32_t len;  /* of the whole message */
	uint32_t reserved;
};
static_assert(sizeof(struct w_ctl_hdr) == 16, "w_ctl_hdr");

#define W_KIND_NIC 1u  /* a VipOpenNic: gets ports and may connect */
#define W_KIND_TOOL 2u /* vi_info, vi_fabric, vi_stat: look-ups, lists, admin only */

struct w_hello {
	struct w_ctl_hdr hdr;
	uint32_t kind;
	uint32_t pid;
	char program[W_NAME_MAX]; /* for vi_info and vi_stat */
};

struct w_welcome {
	struct w_ctl_hdr hdr;
	uint16_t host_id;
	uint16_t host_count; /* hosts of the fabric */
	uint32_t client_id;
	uint32_t db_bit; /* this process's doorbell bit, on every port of the host */
	uint32_t port_count;
	uint32_t slots; /* of new connections to neighbours, where the window is smallest */
	uint32_t payload_bytes;
	uint8_t host_addr[8]; /* W_HOST_ADDR_LEN used */
	char host_name[W_NAME_MAX];
	char fabric[W_NAME_MAX];
	/* + fds: the host's doorbells, and its status, read-only (for port_irq_open()) */
};

/* fds: as port_export_view() gave them. */
struct w_port {
	struct w_ctl_hdr hdr;
	uint32_t index;
	uint32_t link_up;
	uint32_t link_generation;
	uint32_t reserved;
	char view[256]; /* text for port_attach() */
};

struct w_token {
	struct w_ctl_hdr hdr;
	uint64_t token;
};

struct w_connect {
	struct w_ctl_hdr hdr;
	uint64_t token;
	struct w_vi_attrs attrs;
	struct w_addr local;
	struct w_addr remote;
};

struct w_arrived {
	struct w_ctl_hdr hdr;
	uint64_t token; /* of the LISTEN */
	uint64_t conn;
	struct w_vi_attrs attrs; /* the client's */
	struct w_addr remote;	 /* the client's local address */
};

struct w_accept {
	struct w_ctl_hdr hdr;
	uint64_t token; /* the answer (LINKED or REFUSED) carries it */
	uint64_t conn;
	struct w_vi_attrs attrs; /* the server VI's */
};

struct w_conn {
	struct w_ctl_hdr hdr;
	uint64_t conn;
};

struct w_linked {
	struct w_ctl_hdr hdr;
	uint64_t token;
	uint64_t conn;
	struct w_vi_attrs attrs;    /* the peer's */
	struct w_geometry inbound;  /* of my inbound slice */
	struct w_geometry outbound; /* of the peer's, which I write; db_bit: rings the peer */
	uint32_t port;		    /* index of the port that carries it */
	uint32_t hops;		    /* 0 same host, 1 neighbour, more: relayed */
	/* 1: the connection outlives its path; hold slots for retransmission */
	uint32_t resumable;
	uint32_t reserved;
	struct w_consumed consumed; /* RESUMED: of mine, by the peer */
};

struct w_refused {
	struct w_ctl_hdr hdr;
	uint64_t token;
	uint32_t status; /* enum w_status */
	uint32_t reserved;
	char text[160]; /* one line for people; may be empty */
};

struct w_lost_msg {
	struct w_ctl_hdr hdr;
	uint64_t conn;
	uint32_t reason; /* enum w_lost */
	uint32_t reserved;
};

struct w_suspended {
	struct w_ctl_hdr hdr;
	uint64_t conn;
	struct w_consumed consumed; /* of the peer's */
};

struct w_alloc {
	struct w_ctl_hdr hdr;
	uint64_t token;
	uint64_t length;
	uint32_t slice_id; /* by which the process names it.  ALLOC: one of those below */
	uint32_t status;   /* enum w_status */
};
#define W_ALLOC_SEALED 0u /* sealed memory, which can be mapped several times */
#define W_ALLOC_ANY 1u	  /* that, or a slice of an adapter's window */

#define W_TELL_MAX 96u

/* A process's own message to the process at the other end of a connection. */
struct w_tell {
	struct w_ctl_hdr hdr;
	uint64_t conn;
	uint32_t slice_id; /* in: window memory of mine (W_ALLOCATED) to open at the peer, 0 none */
	uint32_t body_len; /* <= W_TELL_MAX */
	uint8_t body[W_TELL_MAX];
};

struct w_name {
	struct w_ctl_hdr hdr;
	uint64_t token;
	uint32_t index; /* NameIndex */
	uint32_t status;
	uint8_t host_addr[8];
	char name[W_NAME_MAX];
};

struct w_route {
	struct w_ctl_hdr hdr;
	uint64_t token;
	uint8_t host_addr[8];
	uint32_t reachable;
	uint32_t hops;
	uint32_t path; /* 0 none, 1 self, 2 neighbour, 3 relayed */
	uint32_t port; /* index */
	char host[W_NAME_MAX];
	char port_name[16];
	char reason[160];
};

static_assert(sizeof(struct w_port) <= W_CTL_MAX, "w_port");

/*
 * The one validator of control messages: are `len` bytes at `msg` a complete,
 * known message of this version, with every bounded field in its bounds and
 * every text terminated?  A w_addr's host_len and the existence of ids are left
 * to the receiver.  Returns its type, or -EPROTO, or -EPROTONOSUPPORT
 * for another version.
 */
int w_ctl_check(const void *msg, uint32_t len);

/* Fills the header of a message of `type`, with `len` bytes in all.  The other bytes stay as they are. */
void w_ctl_init(void *msg, enum w_ctl_type type, uint32_t len);

/*
 * Sends one message, whose header says how long it is, with up to W_CTL_FDS descriptors.  0 or -errno; -EINVAL:
 * it is too long, or has too many.
 */
int w_ctl_send(int sock, const void *msg, const int *fds, unsigned int nfds);
/* As w_ctl_send() without descriptors, but -EAGAIN where that would wait for room. */
int w_ctl_try(int sock, const void *msg);
/*
 * Receives a message.  Returns its bytes, 0 at hang-up, or -errno, with which `fds` and *nfds_out are not set.
 * Descriptors are close-on-exec and the caller's.  -EPROTO: the message was longer than `size`, or had more
 * descriptors than W_CTL_FDS, or one that is neither memory nor the kernel module's; it is consumed and its
 * descriptors are closed.  When this process has no number left for a descriptor, the message comes without
 * descriptors.
 */
int w_ctl_recv(int sock, void *buf, uint32_t size, int fds[W_CTL_FDS], unsigned int *nfds_out);
/*
 * As w_ctl_recv(), from a sender that must not send descriptors.  `peek`: the kernel does not keep them out of
 * the socket's queue (u_rights_pass()), so peek before reading.  -EBADMSG: some came; with `peek` the message
 * is then still in the queue with them.
 */
int w_ctl_recv_bare(int sock, void *buf, uint32_t size, bool peek);

const char *w_status_text(enum w_status status);

#endif
