/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels.  A connection of a VI is a channel: the inbound slice, which this process reads, and
 * the outbound slice, which it only writes.  Each VI has its own, so no lock, fifo or credit is
 * shared between VIs.
 */
#ifndef NVI_CHAN_H
#define NVI_CHAN_H

#include <stdatomic.h>

#include "nvi_nic.h"
#include "u_out.h"
#include "vi_core.h"
#include "w_slot.h"

#define NVI_GRANTS_MAX 16u   /* regions of its peer that a VI stores into directly */
#define NVI_REMOTES_MAX 256u /* mappings of its peer's memory that a VI has for its program */
#define NVI_READS_MAX 16u /* RDMA reads and atomic operations under way on a VI; a power of two */

/* The message being sent: its first fragment may be out, its last one is not. */
struct nvi_tx_message {
	uint8_t op;	/* 0: none */
	bool with_rdma; /* the first fragment still has to carry `rdma` */
	bool with_imm;
	bool ack;     /* ask for credit after the last fragment */
	bool returns; /* as in struct nvi_payload */
	uint32_t imm;
	uint32_t total, done;
	uint32_t entry; /* its place in the send queue (not for answers) */
	bool is_value;	/* READ_RESP: the answer is `value`, and nothing is read */
	bool offered;	/* READ_REQ: the request has an offer */
	bool placed;	/* READ_RESP: it is stored into the memory of read_req.offer */
	uint64_t value;
	/* WRITE, READ_REQ: for the wire; READ_RESP: the memory to read */
	union {
		struct w_rdma rdma;
		struct w_read_req read_req;	/* READ_REQ with an offer: for the wire */
		struct w_atomic_req atomic_req; /* ATOMIC_REQ: for the wire */
	};
	struct vi_sg sg;
};

/* The message being received. */
struct nvi_rx_message {
	bool discard;	/* its fragments are counted and dropped */
	bool has_entry; /* it consumed receive descriptor `entry` */
	uint32_t entry;
	uint32_t status; /* error bits for that descriptor */
	uint32_t total, done;
	struct w_rdma rdma;
	struct vi_sg sg;
};

/* An RDMA read of the peer, or an atomic operation of the peer that was executed, to be answered. */
struct nvi_answer {
	struct w_rdma rdma;
	bool is_value; /* the answer is the first `rdma.length` bytes of `value` */
	uint64_t value;
	uint32_t slot; /* the request's slot, to name it in an error report */
	bool offered;  /* the reader offers memory to store the answer into: */
	struct w_offer offer;
};

/*
 * A slot that was published and may have to be published again: on a resumable channel, until the
 * peer has consumed it.  Payload in the payload buffer is not copied: it is read again from its
 * source.
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
	NVI_BREAK_REPORTED,    /* the peer broke the connection and reported why */
	NVI_BREAK_LOST,	       /* process, host or link gone */
	NVI_BREAK_PROTOCOL,    /* the peer wrote something that no correct peer writes */
};

/* A reason to break the connection. */
struct nvi_fault {
	enum nvi_break why;
	enum w_err err;	  /* the error in the report to the peer, */
	uint32_t slot;	  /* and the peer's slot that it names, */
	uint32_t message; /* and the number of the message in that, if it is packed */
};

/* Bits of nvi_breaking.faults. */
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

/* Sending.  Writer: a thread that holds tx_lock. */
struct nvi_sending {
	uint32_t seq; /* slots published */
	/* how many of them the peer has consumed; read without lock by the arming */
	_Atomic uint32_t credit;
	uint32_t limit; /* `seq` at which no slot is free by that credit */
	uint32_t rung;	/* the last notify request for which the doorbell was rung */
	uint32_t asked; /* seq after the last slot that asked for credit; not below `credit` */
	uint32_t came;	/* rx.seq when the payload buffer was used last */
	uint32_t nop_end; /* seq after the last slot that only asks for credit, for nvi_tx_consumed() */
	bool drains;	  /* nvi_tx_consumed() asked for credit that has not come yet, */
	uint32_t drain_end;	/* for the slots before this seq */
	bool refuses;		/* a descriptor waits to be refused: */
	uint32_t refuse_entry;	/* this entry of the send queue, */
	uint32_t refuse_end;	/* until the slots before this seq are consumed */
	uint64_t cursor, freed; /* in the payload buffer: written, and free again, up to here */
	uint64_t *after;	/* cursor after each slot */
	struct nvi_tx_message msg;
	uint32_t reads[NVI_READS_MAX]; /* entries of reads under way; see nvi_receiving.read_head */
	uint32_t offered; /* bit n % NVI_READS_MAX: the request of read n has an offer */
	_Atomic uint32_t read_tail;
	/*
	 * Progress must be made again: the last run used up its budget, writes are to be flushed, an answer was queued,
	 * or a thread that may send nothing took in credit for what waits.  When tx_lock is dropped it is set only if
	 * tx.waiting is, or will be by the thread that queues an answer: else nothing would reset it, and the channel
	 * could not be armed.
	 */
	_Atomic bool more;
	struct nvi_grant grants[NVI_GRANTS_MAX];
	struct nvi_grant *grant_last; /* found by the last search */
	uint32_t grant_next;	      /* the next to be used for another region */
	uint32_t grant_pause; /* after a refusal, the number of writes that do not ask for a grant; */
	uint32_t grant_skip; /* how many of these are left */
	uint32_t grants_held;
	bool unheard; /* the agent drops requests for grants: no path was confirmed yet */
	bool wrote;   /* there were writes that could be stored directly if they had a grant */
	/* all sends ask for credit, so that the next write can be stored at once */
	bool direct_writes;
	uint64_t run_bytes; /* stored directly or in the payload buffer by this nvi_tx_run() */
	uint32_t unflushed; /* this many of the last started sends are: see nvi_writes_settle() */
	uint32_t stores;    /* count of all writes that were ever unflushed; never set back */
	uint32_t write_run; /* this many of the last messages in slots were writes, */
	uint32_t write_end; /* up to this slot */
	_Atomic uint32_t waiting; /* something depends on credit or answers: read without lock */
	/* Counts of slots that never wrap: see nvi_slots_sent(). */
	uint64_t acked; /* `credit` */
	/* published slots less the messages for a receive that begin in them; may be below 0 */
	uint64_t others;
	uint64_t rdma_end;   /* the last slot with bytes of a write or with a read ends here, */
	uint64_t bytes_end;  /* the last with bytes of a write or of an answer here; */
	uint64_t placed_at;  /* the last slots of placed messages in a row begin here, */
	uint64_t placed_end; /* and end here */
	/* Positions in the payload buffer, like `cursor`. */
	uint64_t consumed; /* what the peer has consumed ends here, by the credit taken in: at most at `freed` */
	uint64_t turn; /* the last message that answered one of the peer was placed from here on */
};

/* Receiving.  Writer: a thread that holds rx_lock. */
struct nvi_receiving {
	_Atomic uint32_t seq; /* slots consumed; read without lock by the arming */
	uint32_t credited;    /* how many of these were returned as credit */
	/* the `seq` at which credit goes back: after a quarter of the slots, sooner if the peer asks */
	uint32_t due;
	uint64_t cursor, cursor_credited;
	bool two_lines;	 /* the last message took two cache lines: the next poll fetches both */
	uint32_t streak; /* messages consumed since a poll found none */
	struct w_stream stream;
	struct nvi_rx_message msg;
	_Atomic uint32_t read_head; /* oldest read under way */
	_Atomic uint32_t app_polls; /* polls by the application */
	/* threads that may be about to unmap the slice: polls of CQs must load no word of it */
	uint32_t unwatched;
	/* Counts that never wrap: see nvi_next_message(). */
	uint64_t returned;   /* `credited` */
	uint64_t others;     /* consumed slots less messages, as in nvi_sending.others */
	uint64_t advertised; /* receives for messages before this one were considered */
	bool adverts_due;    /* not all receives of the queue were considered */
	uint32_t connection; /* number of the connection: marks its receives; never 0 */
};

/* Answers to the peer's reads. */
struct nvi_answers {
	struct nvi_answer queue[NVI_READS_MAX];
	_Atomic uint32_t head; /* writer: a thread that holds tx_lock, which takes answers out */
	_Atomic uint32_t tail; /* writer: a thread that holds rx_lock, which queues answers */
};

/* Breaking.  Writer: a thread that holds both locks, but for the faults. */
struct nvi_breaking {
	_Atomic uint32_t faults;   /* NVI_FAULT_*: those that are marked; either lock to mark one */
	struct nvi_fault tx_fault; /* writer: a thread that holds tx_lock */
	struct nvi_fault rx_fault; /* writer: a thread that holds rx_lock */
	bool reported;		   /* the error report was written to the peer */
	bool draining;		   /* a disconnect waits until the peer has consumed all slots */
};

/* Arming.  Writer: a thread that holds nic->chan_lock, but for by_app. */
struct nvi_arming {
	_Atomic uint32_t armed; /* the notify request at the peer, 0 while polled */
	uint32_t polled_notify; /* the word at the peer while polled: W_NOTIFY_FENCE or 0 */
	uint32_t slot;		/* rx.seq when it was armed, */
	uint32_t moves;		/* slots consumed here and at the peer until then */
	uint32_t quiet;		/* armings in a row that had few slots since the one before */
	uint32_t seen_polls;
	bool fresh; /* armed in this pass */
	/* the application, not the engine, was the last to move packets here; writer: any thread */
	_Atomic uint32_t by_app;
	uint32_t index; /* in nic->chans */
	bool listed;
};

/* The agent's name of the connection.  Writer: a thread that holds nic->ctl_lock. */
struct nvi_identity {
	uint64_t conn;	       /* 0: none */
	struct nvi_chan *next; /* in the bucket of conn */
	struct nvi_peer *peer; /* VipConnectPeerRequest under way */
};

/*
 * The channel of one VI, used for one connection after the other.  It stays with the VI's memory,
 * which is never returned, so a late access is harmless.
 */
struct nvi_chan {
	/* Set when connecting, under both locks; constant until the connection is taken apart. */
	struct vi_vi *vi;
	struct nvi_nic *nic;
	struct port *port;
	struct nvi_port *port_use;
	uint32_t generation; /* of the link over which it was made */
	uint32_t hops;	     /* more than 1: relayed, and no memory of the peer can be mapped */
	struct u_out out;
	/* slots are written with plain stores, and no slot is held for retransmission */
	bool plain;
	bool demotes;	 /* the processor can demote lines: u_can_demote() */
	bool prefetches; /* the lines of the payload buffer before a copy: u_gains_by_prefetch() */
	/* a retransmit slot per slot; NULL: the connection ends with its path */
	struct nvi_retx_slot *retx;
	/* the placeholder for its slices while it has no path; else NULL */
	uint8_t *placeholder_mem;
	size_t placeholder_bytes;
	struct w_control *in_ctl; /* written by the peer */
	struct w_slot *in_slots;
	uint8_t *in_payload;
	struct w_control *out_ctl; /* written by this end, and never read */
	struct w_slot *out_slots;
	uint8_t *out_payload;
	uint32_t in_mask, in_payload_bytes;
	uint32_t out_mask, out_payload_bytes, out_frag_max;
	uint32_t db_mask; /* rings the peer's process */
	bool must_fence;  /* the peer cannot fence for this end: see nvi_notify_request() */
	uint32_t level;

	_Alignas(U_LINE_PAIR) struct nvi_sending tx;

	_Alignas(U_LINE_PAIR) struct nvi_receiving rx;
	struct nvi_answers answers;
	struct nvi_breaking breaking;

	_Alignas(U_LINE_PAIR) struct nvi_arming arm;

	struct nvi_identity id;
	struct port_map in_map, out_map; /* both locks */
	uint64_t attempt;		 /* token of the connection attempt under way; both locks */
	uint32_t closing; /* disconnects under way: nothing is granted; under nic->mem_lock */
	struct nvi_remote *remotes; /* mappings for the program; under tx_lock */
};

/* Is it an operation that the peer answers: an RDMA read, or an atomic operation? */
static inline bool nvi_is_read(const struct vi_wqe *wqe)
{
	static_assert(VIPX_CONTROL_OP_ATOMIC > VIP_CONTROL_OP_RDMAREAD, "no other is above it");
	return (wqe->control & VIP_CONTROL_OP_MASK) >= VIP_CONTROL_OP_RDMAREAD;
}

/* Returns the number of the oldest incomplete entry of a send queue; sq->tail if all are complete. */
static inline uint32_t nvi_sq_done(const struct vi_wq *sq)
{
	return atomic_load_explicit(&sq->done, memory_order_relaxed);
}

/* Completes entry n of a send queue with error `bits` or none (0).  Caller holds tx_lock. */
static inline void nvi_complete_send(struct vi_wq *sq, uint32_t n, uint32_t bits)
{
	const struct vi_wqe *wqe = vi_wqe(sq, n);

	vi_wq_complete(sq, n, vi_wqe_op(sq, wqe) | bits, bits != 0 ? 0 : wqe->length);
}

/* Returns the channel of a new VI, for vi->prov, which the caller sets; NULL without memory. */
struct nvi_chan *nvi_chan_get(struct vi_vi *vi);
/* Gives the channel, which has none, the agent's name `conn` of its connection.  Caller holds ctl_lock. */
void nvi_chan_enter(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn);
/* Returns the channel that is used for `conn`, or NULL.  Takes ctl_lock; that may change afterwards. */
struct nvi_chan *nvi_chan_find(struct nvi_nic *nic, uint64_t conn);
/* Returns the agent's name of the connection, 0 if it has none.  This and the next three take ctl_lock. */
uint64_t nvi_chan_conn(struct nvi_chan *ch);
/* Is the channel still used for the connection `conn` of `nic`? */
bool nvi_chan_is_conn(struct nvi_chan *ch, struct nvi_nic *nic, uint64_t conn);
/* Forgets the agent's name of the connection if it is still `conn`, and returns true if it was. */
bool nvi_chan_forget(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn);

/* Does the channel still carry `conn`, and may it be used?  Caller holds a lock of the VI. */
bool nvi_chan_is_live(struct nvi_nic *nic, struct nvi_chan *ch, uint64_t conn);

/*
 * When this has returned, polls of CQs load no word of the inbound slice, so that it can be
 * unmapped, until nvi_chan_unwatched() is called.  No locks held.
 */
void nvi_chan_unwatch(struct nvi_chan *ch);
/* Ends the effect of one nvi_chan_unwatch().  Caller holds rx_lock. */
static inline void nvi_chan_unwatched(struct nvi_chan *ch)
{
	ch->rx.unwatched--;
}

/* Is a fault of one of these kinds (NVI_FAULT_*) marked? */
static inline bool nvi_chan_has_fault(const struct nvi_chan *ch, uint32_t which)
{
	return (atomic_load_explicit(&ch->breaking.faults, memory_order_relaxed) & which) != 0;
}

/* May the peer still write a slot, or credit for which sends wait? */
static inline bool nvi_chan_lives(const struct nvi_chan *ch)
{
	return vi_state(ch->vi) == VIP_STATE_CONNECTED ||
	       atomic_load_explicit(&ch->tx.waiting, memory_order_relaxed) != 0;
}

/* Is an answer queued that was not begun?  A hint, but for a caller that holds both locks of the VI. */
static inline bool nvi_answers_left(const struct nvi_chan *ch)
{
	return atomic_load_explicit(&ch->answers.tail, memory_order_relaxed) !=
	       atomic_load_explicit(&ch->answers.head, memory_order_relaxed);
}

/* Is the connection to be broken? Caller holds a lock of the VI, or chan_lock. */
static inline bool nvi_chan_breaks(const struct nvi_chan *ch)
{
	return atomic_load_explicit(&ch->in_ctl->error, memory_order_acquire) != 0 ||
	       atomic_load_explicit(&ch->breaking.faults, memory_order_relaxed) != 0;
}

#endif
