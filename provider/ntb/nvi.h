/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the NTB provider.
 *
 * A connection of a VI is a channel: the inbound slice, which this process
 * reads, and the outbound slice, which it only writes.  Each VI has its own, so
 * no lock, fifo or credit is shared between VIs.
 *
 *	nvi_tx.c	the only writer of slots and payload
 *	nvi_rx.c	the only reader of slots and payload
 *	nvi_arm.c	who rings whom: notify requests, polled and armed channels
 *	nvi_engine.c	the transfer thread, and sleeping
 *	nvi_chan.c	channels: mapping, breaking, taking apart
 *	nvi_cm.c	connections, by way of the agent
 *	nvi_resume.c	connections that go on over another path
 *	nvi_ctl.c	the control socket and its thread
 *	nvi_mem.c	window memory
 *	nvi_grant.c	direct stores into the peer's window memory
 *	nvi_nic.c	opening, names, the table of operations
 *
 * Locks, in order: nic->mem_lock, vi->rx_lock, vi->tx_lock, nic->chan_lock, nic->ctl_lock.
 */
#ifndef NVI_H
#define NVI_H

#include <pthread.h>
#include <stdatomic.h>

#include "port.h"
#include "u_lock.h"
#include "u_log.h"
#include "u_out.h"
#include "u_trace.h"
#include "vi_core.h"
#include "vi_provider.h"
#include "w_ctl.h"
#include "w_slot.h"

#define NVI_GRANTS_MAX 16u /* regions of its peer that a VI stores into directly */
#define NVI_READS_MAX 16u  /* RDMA reads a VI has under way; a power of two */
#define NVI_RX_BATCH 32u   /* slots consumed before the lock is let go */

/* The message being sent: begun, and not all its fragments are out. */
struct nvi_tx_message {
	uint8_t op;	/* 0: none */
	bool with_rdma; /* the first fragment still has to carry `rdma` */
	bool with_imm;
	bool ack; /* ask for credit after the last fragment */
	uint32_t imm;
	uint32_t total, done;
	uint32_t entry;	    /* its place in the send queue (not for answers) */
	struct w_rdma rdma; /* WRITE, READ_REQ: for the wire; READ_RESP: where to read */
	struct vi_sg sg;
};

/* The message being received. */
struct nvi_rx_message {
	bool discard;	/* what comes is counted and dropped */
	bool has_entry; /* it consumed receive descriptor `entry` */
	uint32_t entry;
	uint32_t status; /* error bits for that descriptor */
	uint32_t total, done;
	struct w_rdma rdma;
	struct vi_sg sg;
};

/* An RDMA read of the peer, to be answered. */
struct nvi_answer {
	struct w_rdma rdma;
	uint32_t slot; /* the request's, to name it in an error report */
};

/*
 * A slot that was published and may have to be again: of a resumable channel, until the peer has
 * consumed it.  Payload in the payload buffer is not copied; it is still where it came from.
 */
struct nvi_retx_slot {
	struct w_slot line;
	bool answer;	 /* buffered payload comes from the region that the peer reads: */
	uint32_t handle; /* this one, */
	uint64_t addr;	 /* from here; */
	uint32_t entry;	 /* else from this entry of the send queue, */
	uint32_t offset; /* from this byte on */
};

enum nvi_break {
	NVI_BREAK_LOCAL,       /* this end's operation failed; its descriptor carries the error */
	NVI_BREAK_PEER_CLOSED, /* the peer disconnected */
	NVI_BREAK_REPORTED,    /* the peer broke off and said why */
	NVI_BREAK_LOST,	       /* process, host or link gone */
	NVI_BREAK_PROTOCOL,    /* the peer wrote nonsense */
};

/* A reason to break the connection. */
struct nvi_fault {
	enum nvi_break why;
	enum w_err err; /* what the error report to the peer says, */
	uint32_t slot;	/* and the peer's slot that it names */
};

/* Bits of nvi_chan.faults. */
#define NVI_FAULT_TX 1u /* found by a thread that held tx_lock */
#define NVI_FAULT_RX 2u /* found by a thread that held rx_lock */

enum nvi_grant_state { NVI_GRANT_NONE, NVI_GRANT_ASKED, NVI_GRANT_DENIED, NVI_GRANT_HELD };

/* Window memory of the peer that this VI may, or may not, store into. */
struct nvi_grant {
	uint32_t handle;
	enum nvi_grant_state state;
	uint64_t base, length; /* at the peer */
	uint64_t uses;	       /* writes since its state changed */
	struct port_map map;
};

/*
 * One VI's connection, used for one connection after the other.  It stays with the
 * VI's memory, which is never returned, so a late access is harmless.
 */
struct nvi_chan {
	/* Set at connection, constant until it is taken apart. */
	struct vi_vi *vi;
	struct nvi_nic *nic;
	struct port *port;
	struct nvi_port *port_use;
	uint32_t generation; /* of the link that it was made on */
	uint32_t hops;	     /* more than 1: relayed, and no memory of the peer can be mapped */
	struct u_out out;
	/* written with plain stores, and no slot is held for retransmission */
	bool plain;
	/* a place per slot; NULL: the connection ends with its path */
	struct nvi_retx_slot *retx;
	/* what it uses for slices while it has no path; else NULL */
	uint8_t *placeholder_mem;
	struct w_control *in_ctl; /* the peer writes */
	struct w_slot *in_slots;
	uint8_t *in_payload;
	struct w_control *out_ctl; /* I write, never read */
	struct w_slot *out_slots;
	uint8_t *out_payload;
	uint32_t in_mask, in_payload_bytes;
	uint32_t out_mask, out_payload_bytes, out_frag_max;
	uint32_t db_mask; /* rings the peer's process */
	bool must_fence;  /* the peer cannot fence for me: see nvi_notify_request() */
	uint32_t level;

	/* Sending, under tx_lock. */
	_Alignas(U_LINE_PAIR) uint32_t tx_seq; /* slots published */
	_Atomic uint32_t
		tx_credit; /* of them, consumed by the peer; read without lock by the arming */
	uint32_t tx_rung;  /* the notify request rung for last */
	uint32_t tx_asked; /* tx_seq after the last slot that asked for credit */
	uint32_t tx_drain; /* tx_seq when nvi_tx_drained() was asked first, if tx_drains */
	bool tx_drains;
	uint64_t payload_cursor, payload_freed;
	uint64_t *payload_after; /* payload_cursor after each slot */
	struct nvi_tx_message tx;
	uint32_t reads[NVI_READS_MAX]; /* entries of reads under way; see read_head */
	_Atomic uint32_t read_tail;    /* writer: tx_lock */
	_Atomic bool tx_more;	       /* the last run ended by its budget: make progress again */
	struct nvi_grant grants[NVI_GRANTS_MAX];
	struct nvi_grant *grant_last; /* found last */
	uint32_t grant_next;	      /* to be used again */
	uint32_t grant_pause;	      /* after the last refusal, in writes; */
	uint32_t grant_skip;	      /* of them still to come without asking */
	uint32_t grants_held;
	uint64_t tx_direct;	     /* bytes stored directly in this run */
	uint32_t tx_unflushed;	     /* the last started so many sends: see nvi_writes_settle() */
	uint32_t tx_stores;	     /* all that ever were; never set back */
	uint32_t write_run;	     /* the last so many messages in slots were writes, */
	uint32_t write_end;	     /* up to this slot */
	_Atomic uint32_t tx_waiting; /* something depends on credit or answers: read without lock */

	/* Receiving, under rx_lock. */
	_Alignas(U_LINE_PAIR) _Atomic uint32_t
		rx_seq;	      /* slots consumed; read without lock by the arming */
	uint32_t rx_credited; /* of them, returned as credit */
	uint64_t rx_cursor, rx_cursor_credited;
	bool rx_ack;
	bool rx_two_lines;  /* the last message took two: fetch both while waiting for the next */
	uint32_t rx_streak; /* messages consumed since a poll found none */
	struct w_stream stream;
	struct nvi_rx_message rx;
	_Atomic uint32_t read_head; /* oldest read under way; writer: rx_lock */
	_Atomic uint32_t app_polls; /* polls by the application */

	/* Answers to the peer's reads: queued under rx_lock, taken under tx_lock. */
	struct nvi_answer answers[NVI_READS_MAX];
	_Atomic uint32_t answer_head; /* writer: tx_lock */
	_Atomic uint32_t answer_tail; /* writer: rx_lock */

	/* Breaking. */
	_Atomic uint32_t faults; /* NVI_FAULT_*: which of these are set; cleared under both locks */
	struct nvi_fault tx_fault; /* writer: tx_lock */
	struct nvi_fault rx_fault; /* writer: rx_lock */
	bool reported;		   /* the error word is out; both locks */

	/* Arming, under nic->chan_lock. */
	/* the notify request at the peer, 0 when polled */
	_Alignas(U_LINE_PAIR) _Atomic uint32_t armed;
	uint32_t polled_notify; /* that word while it is polled */
	uint32_t armed_slot;	/* rx_seq when it was armed, */
	uint32_t armed_moves;	/* and the slots of both ways */
	uint32_t quiet_arms;	/* in a row, with few slots since the one before */
	uint32_t seen_polls;
	bool fresh;		 /* armed in this pass */
	_Atomic uint32_t by_app; /* the application, not the engine, moved packets here last */
	uint32_t index;		 /* in nic->chans */
	bool listed;

	/* Identity, under nic->ctl_lock. */
	uint64_t conn; /* 0: none */
	struct port_map in_map, out_map;
	uint64_t attempt;      /* token of the connection attempt under way; both locks */
	uint32_t closing;      /* disconnects under way: nothing is granted; under nic->mem_lock */
	struct nvi_chan *next; /* in the bucket of conn */
	struct nvi_peer *peer; /* VipConnectPeerRequest under way */
};

#define NVI_CONN_BUCKETS 256u

/* A view of a port; a new one replaces it when its link comes back. */
struct nvi_port {
	struct port *port;
	_Atomic uint32_t users; /* nic->ports and channels */
	/* link generation last seen, 0 when it was down; under chan_lock */
	uint32_t generation;
};

enum nvi_deep {
	NVI_AWAKE,
	NVI_DEEP,   /* on the doorbell, all channels armed */
	NVI_PARKED, /* an application thread does its work */
};

/* Messages to the agent that its socket had no room for; all under the lock. */
struct nvi_out {
	pthread_mutex_t lock;
	pthread_cond_t room;
	struct nvi_out_msg *first, **end;
	uint32_t count;
	bool runs, joinable; /* the thread that sends them */
	pthread_t thread;
};

struct nvi_nic {
	struct vi_nic *vi_nic;
	int sock;
	struct w_welcome welcome;
	struct port_irq *irq;
	uint32_t db_mask;
	struct nvi_port *ports[PORT_PER_HOST]; /* under chan_lock; writer: the control thread */

	/* Channels that are connected. */
	_Alignas(U_LINE_PAIR) struct u_lock chan_lock;
	struct nvi_chan **chans;
	uint32_t chan_count, chan_cap;
	_Atomic uint32_t polled;      /* of them, not armed */
	_Atomic uint32_t ticket_seen; /* interrupts looked at by polls */

	/* The transfer thread. */
	pthread_t engine, ctl;
	_Atomic uint32_t stop;
	_Atomic uint32_t sleepers; /* application threads in sleep(): they do the engine's work */
	_Atomic uint32_t engine_deep;	/* enum nvi_deep: the engine sleeps, kick it for new work */
	_Atomic uint32_t engine_park;	/* futex: bumped to wake a parked engine */
	_Atomic uint64_t rung, cleared; /* counters of doorbells, both ways */

	/* Window memory of this process, and who was granted it. */
	pthread_mutex_t mem_lock;
	pthread_cond_t mem_changed;
	struct nvi_window *windows;
	struct nvi_given *given[NVI_CONN_BUCKETS];
	uint32_t revoke_ms; /* how long a peer may take to give memory back, */
	uint32_t drain_ms;  /* and a disconnect waits for what is on its way, while there is one */

	/* Control. */
	pthread_mutex_t ctl_lock;
	bool dead; /* the agent is gone */
	uint64_t next_token;
	struct nvi_req *reqs;
	struct nvi_chan *conns[NVI_CONN_BUCKETS];

	struct nvi_out out;
	struct u_log_ratelimit held, unattached; /* lines that peers can cause without end */
};

static inline uint32_t nvi_sq_done(const struct vi_wq *sq)
{
	return atomic_load_explicit(&sq->done, memory_order_relaxed);
}

/* Completes entry n of a send queue with error `bits` or none. */
static inline void nvi_complete_send(struct vi_wq *sq, uint32_t n, uint32_t bits)
{
	const struct vi_wqe *wqe = vi_wqe(sq, n);

	vi_wq_complete(sq, n, vi_wqe_op(sq, wqe) | bits, bits != 0 ? 0 : wqe->length);
}

/* ---- nvi_tx.c ------------------------------------------------------------------------------- */

/* The same for resumable channels. */
bool nvi_send_resumable(struct vi_vi *vi, const uint8_t *at, uint32_t n, uint16_t control,
			uint32_t imm);
bool nvi_send_now(struct vi_vi *vi, const uint8_t *at, uint32_t n, uint16_t control, uint32_t imm);
void nvi_post_send(struct vi_vi *vi);
/* Answers a read of n <= W_INLINE_MAX bytes; false when it has to wait.  Caller holds both locks. */
bool nvi_answer_now(struct nvi_chan *ch, const void *src, uint32_t n);
/* Takes in credit, completes what it covers, sends what is pending. Caller holds tx_lock. */
int nvi_tx_progress(struct nvi_chan *ch);
/* Credit and completions only. Returns nonzero when something changed, -EPROTO for impossible credit. */
int nvi_tx_credit(struct nvi_chan *ch);
/* The same for a count that came otherwise. */
int nvi_tx_take_credit(struct nvi_chan *ch, uint32_t credit);
/*
 * Publishes the retransmit slots, from the first slot that the peer did not consume.  0 or -EFAULT;
 * both locks.
 */
int nvi_tx_again(struct nvi_chan *ch);
void nvi_tx_update_waiting(struct nvi_chan *ch);
/*
 * Has the peer consumed all that had been sent when this was asked first?  Asks it for credit.  Caller
 * holds tx_lock and asks again when credit came.
 */
bool nvi_tx_drained(struct nvi_chan *ch);

/* ---- nvi_rx.c ------------------------------------------------------------------------------- */

/* Takes in what lies in the slots, and breaks if it finds a fault. Caller holds rx_lock. */
void nvi_rx_drain(struct nvi_chan *ch);
/* Takes up to `budget` slots. Caller holds rx_lock. Returns how many. */
int nvi_rx(struct nvi_chan *ch, uint32_t budget);
/* The same, but one slot if it is a plain message: for who waits for that. */
int nvi_rx_next(struct nvi_chan *ch);
/* Gives back all credit now. Caller holds rx_lock. */
void nvi_rx_return_credit(struct nvi_chan *ch);

static inline bool nvi_rx_ready(const struct nvi_chan *ch)
{
	uint32_t n = atomic_load_explicit(&ch->rx_seq, memory_order_relaxed);

	return atomic_load_explicit(&ch->in_slots[n & ch->in_mask].head.seq,
				    memory_order_acquire) == w_seq(n);
}

/* ---- nvi_arm.c ------------------------------------------------------------------------------ */

/*
 * The sender's half of the wake-up handshake: between what was published and
 * the load of the notify request.  The peer's membarrier stands for the fence, unless it has none.
 */
static inline uint32_t nvi_notify_request(struct nvi_chan *ch)
{
	if (u_unlikely(ch->must_fence))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	return atomic_load_explicit(&ch->in_ctl->notify, memory_order_relaxed);
}

void nvi_ring(struct nvi_chan *ch);
void nvi_ring_slots_slow(struct nvi_chan *ch, uint32_t notify);
void nvi_ring_credit_slow(struct nvi_chan *ch, uint32_t notify);

/* After publishing slots: rings if the peer waits for one of them and was not rung for it. */
static inline void nvi_ring_slots(struct nvi_chan *ch)
{
	uint32_t notify = nvi_notify_request(ch);

	if (u_unlikely(notify != 0))
		nvi_ring_slots_slow(ch, notify);
}

/* After returning credit. */
static inline void nvi_ring_credit(struct nvi_chan *ch)
{
	uint32_t notify = nvi_notify_request(ch);

	if (u_unlikely(notify != 0))
		nvi_ring_credit_slow(ch, notify);
}

int nvi_chan_list(struct nvi_chan *ch);
void nvi_chan_unlist(struct nvi_chan *ch);
/* The channel moved something, or has work that needs polling: it is polled, not armed. */
void nvi_disarm_slow(struct nvi_chan *ch);

static inline void nvi_disarm(struct nvi_chan *ch)
{
	if (u_unlikely(atomic_load_explicit(&ch->armed, memory_order_relaxed) != 0))
		nvi_disarm_slow(ch);
}

/* Has anything come that progress would take in? Looks only at memory; any thread. */
bool nvi_chan_ready(const struct nvi_chan *ch);

enum nvi_arm_which {
	NVI_ARM_ENGINE, /* those that the engine alone serves */
	NVI_ARM_IDLE,	/* and those that the application did not poll since the last such call */
	NVI_ARM_ALL,	/* somebody is about to sleep */
};

/*
 * Arms polled channels.  Afterwards whatever arrives at an armed channel rings.
 * Returns nonzero if an armed channel had something: then it is polled again.
 */
int nvi_arm_polled(struct nvi_nic *nic, enum nvi_arm_which which);
/* What is polled, though it used to be slept for, asks the peer for no more fences. */
void nvi_stop_fences(struct nvi_nic *nic);

/*
 * Makes progress on every channel that has something, or (all = false) only those that the
 * application does not poll itself.  Returns how many moved packets.
 */
int nvi_scan(struct nvi_nic *nic, bool all);
/* Breaks the connections over links that are gone, where no agent noticed. */
void nvi_check_links(struct nvi_nic *nic);
/* Were doorbells of this process rung since the last call? */
bool nvi_rung(struct nvi_nic *nic);

/* ---- nvi_engine.c --------------------------------------------------------------------------- */

int nvi_engine_start(struct nvi_nic *nic);
void nvi_engine_stop(struct nvi_nic *nic);
void nvi_engine_kick(struct nvi_nic *nic);
int nvi_progress_vi(struct vi_vi *vi);
int nvi_poll_recv(struct vi_vi *vi);
void nvi_unpolled(struct vi_vi *vi);
int nvi_progress_chan(struct nvi_chan *ch, bool by_app);
int nvi_progress(struct vi_nic *nic);
bool nvi_doorbell_rung(struct vi_nic *nic);
uint32_t nvi_arm(struct vi_nic *nic);
void nvi_sleep(struct vi_nic *nic, uint32_t ticket, int64_t deadline);

/* ---- nvi_chan.c ----------------------------------------------------------------------------- */

/* The last one while a disconnect waits: what is posted is flushed. */
extern const struct vi_fast_ops nvi_fast, nvi_fast_resumable, nvi_fast_closing;

/* The view of port `index` now in use, with a use taken; NULL when there is none. */
struct nvi_port *nvi_port_get(struct nvi_nic *nic, unsigned int index);
void nvi_port_put(struct nvi_port *p); /* accepts NULL */
/* The generation of its link, 0 while it is down. */
uint32_t nvi_port_generation(const struct nvi_port *p);

/* The channel of a new VI, NULL without memory. */
struct nvi_chan *nvi_chan_get(struct vi_vi *vi);

/* What a connection is made of: mapped slices, the view of their port, and books about slots. */
struct nvi_parts {
	struct nvi_port *port;
	uint32_t generation; /* of the link */
	struct port_map in, out;
	uint64_t *payload_after;
	struct nvi_retx_slot *retx;
	uint8_t *placeholder_mem;
};
/* Takes the descriptors in every case.  On failure the parts there are remain to be freed. */
int nvi_parts_make(struct nvi_nic *nic, const struct w_linked *linked, int fd_in, int fd_out,
		   struct nvi_parts *p);
void nvi_parts_free(struct nvi_parts *p);
/* From now on the channel uses these. Caller holds both locks; it is not listed. */
void nvi_chan_place(struct nvi_chan *ch, const struct w_linked *linked, const struct nvi_parts *p);
/* Maps the slices of `linked` and connects vi. Takes the descriptors in every case. */
int nvi_chan_open(struct nvi_nic *nic, struct vi_vi *vi, const struct w_linked *linked, int fd_in,
		  int fd_out);
/* Takes the connection apart: flushes, unmaps. The VI becomes Idle. Returns its conn, 0 if none. */
uint64_t nvi_chan_close(struct vi_vi *vi);
/* The agent's name of the connection, 0 if it has none. */
uint64_t nvi_chan_conn(struct nvi_chan *ch);
/* Is `conn` of `nic` still what the channel is used for? */
bool nvi_chan_is_conn(struct nvi_chan *ch, struct nvi_nic *nic, uint64_t conn);
/* The agent's name of the connection is forgotten, if it is (still) `conn`. */
bool nvi_chan_forget(struct nvi_chan *ch, uint64_t conn);

/*
 * Marks the connection as one to be broken.  The thread that found the fault holds one lock of the VI
 * and breaks by nvi_break_after_tx() or nvi_break_after_rx() before it drops that lock; where it cannot,
 * the engine does.  Until then nothing is sent.  Of several faults of a side the first counts.
 * Caller holds tx_lock.
 */
void nvi_fault_tx(struct nvi_chan *ch, struct nvi_fault fault);
/* As nvi_fault_tx(), for a thread that holds rx_lock. */
void nvi_fault_rx(struct nvi_chan *ch, struct nvi_fault fault);
/* Is a fault of one of these kinds (NVI_FAULT_*) marked? */
static inline bool nvi_chan_has_fault(const struct nvi_chan *ch, uint32_t which)
{
	return (atomic_load_explicit(&ch->faults, memory_order_relaxed) & which) != 0;
}

/*
 * Breaks the connection: the VI goes to Error, and for a fault of this end, or nonsense of the peer, the
 * peer gets the error report.  Caller holds both locks.
 *
 * When the fault is this end's the peer is there, and takes in what was sent before the report: sends
 * that are out stay in the queue until it has given credit for them, has itself reported what it
 * refused, or is gone.  While they do tx_waiting is set in the Error state, and in no other case.
 */
void nvi_chan_break(struct nvi_chan *ch, struct nvi_fault fault);
void nvi_break_after_tx_slow(struct nvi_chan *ch);
void nvi_break_after_rx_slow(struct nvi_chan *ch);
/*
 * Breaks a connection in which sending found a fault, unless another thread holds rx_lock: then the
 * engine does.  Caller holds tx_lock.
 */
static inline void nvi_break_after_tx(struct nvi_chan *ch)
{
	if (u_unlikely(nvi_chan_has_fault(ch, NVI_FAULT_TX)))
		nvi_break_after_tx_slow(ch);
}
/* Breaks a connection in which receiving found a fault.  Caller holds rx_lock. */
static inline void nvi_break_after_rx(struct nvi_chan *ch)
{
	if (u_unlikely(nvi_chan_has_fault(ch, NVI_FAULT_RX)))
		nvi_break_after_rx_slow(ch);
}
/* Is there something to be awaited from the peer? */
static inline bool nvi_chan_lives(const struct nvi_chan *ch)
{
	return vi_state(ch->vi) == VIP_STATE_CONNECTED ||
	       atomic_load_explicit(&ch->tx_waiting, memory_order_relaxed) != 0;
}
/* Is there a break to be done? Caller holds a lock of the VI, or chan_lock. */
static inline bool nvi_chan_breaks(const struct nvi_chan *ch)
{
	return atomic_load_explicit(&ch->in_ctl->error, memory_order_acquire) != 0 ||
	       atomic_load_explicit(&ch->faults, memory_order_relaxed) != 0;
}
/* Breaks for faults that were found, or because the peer's error report is there.  No locks held. */
void nvi_chan_check_breaks(struct nvi_chan *ch);
/* The other end of `conn` is gone; nothing happens when the channel has moved on. */
void nvi_chan_lost(struct nvi_chan *ch, struct nvi_nic *nic, uint64_t conn, enum w_lost reason);

/* ---- nvi_resume.c ---------------------------------------------------------------------------- */

/*
 * The connection loses its path: unmaps it; `consumed_out`: how far it got.  0, or it cannot go on.
 */
int nvi_chan_suspend(struct nvi_chan *ch, struct nvi_nic *nic, uint64_t conn,
		     struct w_consumed *consumed_out);
/* It goes on over another.  Takes the descriptors in every case. */
int nvi_chan_resume(struct nvi_chan *ch, struct nvi_nic *nic, const struct w_linked *linked,
		    int fd_in, int fd_out);

/* ---- nvi_mem.c, nvi_grant.c ------------------------------------------------------------------ */

#define NVI_REVOKE_MS 2000u
#define NVI_DRAIN_MS 2000u	      /* behind the last loss of the path, if there was one; */
#define NVI_DRAIN_MOST_MS 6000u	      /* in all */
#define NVI_WRITE_NOW_MAX (16u << 20) /* bytes stored while tx_lock is held */
#define NVI_WRITE_WAIT 4096u	      /* a write so long rather waits than goes through slots, */
#define NVI_WRITE_RUN 8u	      /* and so does one after so many that went there in a row */

/* The other end of a connection may store into a window; under nic->mem_lock. */
struct nvi_given {
	struct nvi_given *next; /* in the bucket of conn */
	struct nvi_window *window;
	struct nvi_chan *ch;
	uint64_t conn;
	uint32_t handle;
};

struct nvi_window {
	struct nvi_port *port;
	struct port_map map;
	uint32_t slice_id;
	/* Under nic->mem_lock: */
	struct nvi_window *next;
	uint32_t given;	 /* to so many connections */
	uint32_t closed; /* threads that take it back: nothing more is granted */
};

/* vi_fast_ops.write_now: stores into the peer's memory. */
bool nvi_write_now(struct vi_vi *vi, const uint8_t *at, uint32_t n, uint64_t addr, uint32_t handle);

enum nvi_write_method {
	NVI_METHOD_SLOTS, /* like any descriptor */
	NVI_METHOD_WAIT,  /* soon directly: when the peer has consumed what is before it */
	NVI_METHOD_DONE,  /* it is complete */
};

/*
 * Stores an RDMA write, the next to be started, straight into the peer's memory if it was
 * granted; asks for a grant if not.  `wqe`'s own memory is there.  Caller holds tx_lock.
 */
enum nvi_write_method nvi_write_queued(struct nvi_chan *ch, struct vi_wqe *wqe);
/*
 * Direct writes whose completion says that they arrived - all of a resumable channel, and those of
 * reliable reception - stay incomplete until the link was seen to stand behind them.  One flush
 * completes whatever was stored before it; false when the link is gone.  Caller holds tx_lock.
 */
bool nvi_writes_settle(struct nvi_chan *ch);
/* The same, but then a resumable channel takes the writes back, for slots, and any other breaks. */
bool nvi_writes_flush(struct nvi_chan *ch);
/* The same with tx_lock let go during the flush: others store meanwhile.  Returns whether something moved. */
int nvi_writes_check(struct nvi_chan *ch);
/* A provider's message of the process at the other end, with the descriptor that came or -1. */
void nvi_grant_told(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_tell *msg, int fd);
/* Unmaps what the connection was granted. Caller holds both locks. */
void nvi_grants_drop(struct nvi_chan *ch);

/*
 * A disconnect begins: on return the peer stores nothing any more, if it keeps the rules and is
 * not too slow.  Nothing is granted to the channel until nvi_given_end().  No locks held.
 */
void nvi_given_begin_end(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t *conn_out);
void nvi_given_end(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn);
/* The other end of the connection stores nothing any more. No locks held. */
void nvi_given_forget(struct nvi_nic *nic, uint64_t conn);
void nvi_given_forget_all(struct nvi_nic *nic);
/* Nobody may store into the window directly any more: asks, waits, cuts who does not answer. */
void nvi_window_revoke(struct vi_nic *vi_nic, void *window);
/* Enters a window, after which it may be granted; and the end of that, when its handle is gone. */
void nvi_window_enter(struct nvi_nic *nic, struct nvi_window *w);
void nvi_window_leave(struct nvi_nic *nic, struct nvi_window *w);

/* ---- nvi_cm.c, nvi_ctl.c -------------------------------------------------------------------- */

/* A request to the agent that somebody waits for. */
struct nvi_req {
	struct nvi_req *next;
	uint64_t token;
	pthread_cond_t cond;
	struct vi_vi *vi; /* to connect when LINKED comes; NULL: none */
	bool done, cancelled;
	bool opening; /* the control thread is mapping the connection */
	int err;      /* the provider's own failure, when done */
	int fd;	      /* that came with the answer, -1 */
	union {
		struct w_ctl_hdr hdr;
		uint8_t bytes[W_CTL_MAX];
		struct w_arrived arrived;
		struct w_linked linked;
		struct w_refused refused;
		struct w_alloc alloc;
		struct w_name name;
		struct w_route route;
		struct w_listed listed;
		struct w_token token_only;
	} answer;
};

/* Enters a request under a new token; -ENOTCONN when the agent is gone. */
int nvi_req_begin(struct nvi_nic *nic, struct nvi_req *req, struct vi_vi *vi);
/*
 * The answer's own 0 or -errno; -EINPROGRESS when there is none at the deadline.  Cancellation is off;
 * the second may be cancelled meanwhile if `cancel`, the state that the thread came with, says so.
 */
int nvi_req_wait(struct nvi_nic *nic, struct nvi_req *req, int64_t deadline);
int nvi_req_wait_cancel(struct nvi_nic *nic, struct nvi_req *req, int64_t deadline, int cancel);
/* Leaves the table; descriptors not taken are closed. */
void nvi_req_end(struct nvi_nic *nic, struct nvi_req *req);
/* Does not wait for the agent; what follows is behind it. */
int nvi_ctl_send(struct nvi_nic *nic, void *msg, enum w_ctl_type type, uint32_t len);
/* The same, but keeps nothing where the socket has no room: -EAGAIN. */
int nvi_ctl_try(struct nvi_nic *nic, void *msg, enum w_ctl_type type, uint32_t len);
/* begin, send, wait, end: for requests that the agent answers at once. */
int nvi_ctl_call(struct nvi_nic *nic, struct nvi_req *req, void *msg, enum w_ctl_type type,
		 uint32_t len, uint64_t *token_in_msg);
void *nvi_ctl_thread(void *nic);
int nvi_status_errno(uint32_t status);

void nvi_attrs_to_wire(struct w_vi_attrs *w, const VIP_VI_ATTRIBUTES *attrs);
void nvi_attrs_from_wire(VIP_VI_ATTRIBUTES *attrs, const struct w_vi_attrs *w);

int nvi_connect_wait(struct vi_nic *nic, const struct vi_addr *local, int64_t deadline,
		     struct vi_addr *remote_out, struct vi_conn *conn);
int nvi_connect_accept(struct vi_conn *conn, struct vi_vi *vi);
int nvi_connect_reject(struct vi_conn *conn);
int nvi_connect_request(struct vi_vi *vi, const struct vi_addr *local, const struct vi_addr *remote,
			int64_t deadline, VIP_VI_ATTRIBUTES *remote_attrs_out);
int nvi_peer_request(struct vi_vi *vi, const struct vi_addr *local, const struct vi_addr *remote,
		     int64_t deadline);
int nvi_peer_done(struct vi_vi *vi, int64_t until, VIP_VI_ATTRIBUTES *remote_attrs_out);
int nvi_disconnect(struct vi_vi *vi);
/* Breaks the connection, if the channel still is `conn`, and has the agent tell the other end. */
void nvi_cm_cut(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn);
/* Forgets a peer request for good (disconnect, destroy). */
void nvi_peer_drop(struct vi_vi *vi);

/* ---- nvi_out.c ------------------------------------------------------------------------------ */

void nvi_out_init(struct nvi_out *o);
/* The socket is shut down before. */
void nvi_out_fini(struct nvi_out *o);
int nvi_out_send(struct nvi_nic *nic, const void *msg, uint32_t len);
int nvi_out_try(struct nvi_nic *nic, const void *msg);

/* ---- nvi_mem.c ------------------------------------------------------------------------------ */

int nvi_window_alloc(struct vi_nic *nic, uint64_t len, void **addr_out, void **window_out);
void nvi_window_free(struct vi_nic *nic, void *window);

#endif
