/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * st_state.h - the state of a stream
 *
 * Locks, in the order in which a thread takes them: rx, tx, wait object, process.  Descriptors are posted to the VI's
 * send queue under tx.  Paths change under the lock of their direction; the VI goes (st_link_free()) under both.
 */
#ifndef ST_STATE_H
#define ST_STATE_H

#include <vipl.h>
#include <vipl_ext.h>

#include "st_ring.h"
#include "st_stream.h"
#include "st_sys.h"
#include "st_wire.h"

#define ST_RECVS 8
#define ST_SENDS 16	 /* descriptors of the send queue */
#define ST_SENDS_DATA 10 /* of these, the most for records at a time */
#define ST_ARM_SENDS 2	 /* those that an arm takes */
#define ST_BOUNCE 4096u	 /* the most payload that one slot has room for */
#define ST_SLOT_BYTES (ST_BOUNCE + 64u)
#define ST_STASH_MOST (256u << 10)

/* Registered memory that no peer reaches: descriptors and what they send from. */
struct st_block {
	VIP_DESCRIPTOR recvs[ST_RECVS], sends[ST_SENDS];
	struct st_message inbox[ST_RECVS];
	uint64_t read_back[8];
	uint8_t slots[ST_SENDS][ST_SLOT_BYTES] __attribute__((aligned(64)));
};

enum st_phase {
	ST_PHASE_NONE,	/* no VI */
	ST_PHASE_ASKED, /* st_promote() was called */
	ST_PHASE_MATCH, /* a peer request is under way */
	ST_PHASE_HELLO, /* connected, waiting for the greeting */
	ST_PHASE_UP,	/* both greetings are there */
	ST_PHASE_LOST	/* the VI is lost and disconnected; the ring may hold records */
};

struct st_link {
	VIP_VI_HANDLE vi;
	struct st_block *block;
	VIP_MEM_HANDLE block_handle;
	uint8_t *ring; /* window memory, written by the peer: the ring, then the words */
	struct st_words *words;
	VIP_MEM_HANDLE ring_handle;
	uint32_t ring_bytes;
	uint64_t key;
	struct {
		uint64_t ring, words, key;
		uint32_t handle, ring_bytes;
	} peer;
	/* Under tx: */
	uint32_t send_head, send_tail; /* descriptors [tail, head) are posted */
	/* For each descriptor: */
	enum st_send_use { ST_USE_DATA, ST_USE_BIG, ST_USE_WORD, ST_USE_READ } use[ST_SENDS];
	_Atomic uint8_t taken[ST_SENDS]; /* completed, and taken from the queue */
	bool starved;			 /* no descriptor was left to arm with */
	bool mixed;			 /* something but a write was posted since the last flush */
	bool direct;			 /* writes have lately been stores */
	bool relayed;			 /* packets pass agents of other hosts */
	uint64_t rung[2];		 /* numbers of the other end's arms that were rung for */
	bool unrung;			 /* one could not be */
	bool told_closed;		 /* the peer's word `closed` was written */
	uint64_t rung_position,
		rung_credit; /* those that had left when the arm words were looked at */
	uint64_t number[2];  /* of own arms */
	_Atomic bool armed[2], confirmed[2]; /* an own arm is out; it was read back */
	/* Messages taken from the receive queue, until the helper handles them; under inbox_lock. */
	struct st_lock inbox_lock;
	struct st_message inbox[ST_RECVS];
	uint32_t inbox_count;
	_Atomic bool broken; /* a flushed or failed descriptor was seen */
	bool confirming;     /* under tx: a sleeper looks for the answer of its read */
	_Atomic uint32_t
		news; /* grows with each descriptor taken: a sleeper that took one looks again */
};

enum st_tx_path { ST_TX_TCP, ST_TX_ASKED, ST_TX_PROVING, ST_TX_RING };
enum st_rx_path { ST_RX_TCP, ST_RX_TOKEN, ST_RX_RING, ST_RX_MARK };

/* References to a stream or wait object that handlers gave back while their threads had the process lock. */
struct st_deferred {
	_Atomic int count;
	struct st_deferred *next;
	struct st_stream *stream;
	struct st_wait *wait; /* where it is of none */
};

struct st_stream {
	_Atomic int refs;
	int fd; /* the kernel's socket */
	struct st_origin origin;
	void *context;
	_Atomic(struct st_wait *) wait; /* set once */
	struct st_link *link;		/* changed under rx and tx */
	_Atomic bool closed, foreign;
	_Atomic bool dead; /* reset: after `error` was given, 0 and EPIPE */
	_Atomic int error; /* positive, given once */

	struct st_lock rx_lock;
	struct {
		_Atomic(enum st_rx_path) path; /* written under rx_lock */
		uint64_t tcp_bytes; /* read from the kernel's socket, tokens not counted */
		uint64_t taken;	    /* read from it here, all */
		uint8_t *stash;	    /* bytes that come before all others */
		uint32_t stash_at, stash_end, stash_size;
		bool asked; /* SWITCH has come, and has no answer yet */
		uint64_t asked_since;
		uint64_t asked_at, moved_since; /* `tcp_bytes` of the last look, since when */
		uint64_t until;			/* asked, TOKEN: bytes of TCP before it */
		uint64_t half;			/* TOKEN: its first half, MARK: see st_mark() */
		uint8_t token[ST_TOKEN_BYTES];
		uint32_t token_have;
		uint64_t token_since; /* when its first byte came */
		uint64_t position;    /* of the record being read */
		uint32_t offset;      /* payload of it that was read */
		uint64_t bytes;	      /* payload read */
		uint64_t scan;	      /* the records before it were looked at */
		uint64_t scan_bytes;  /* their payload, from the stream's beginning on VIs */
		uint64_t told;	      /* credit returned */
		uint32_t empty_looks;
		uint64_t edges;
		uint64_t ring_key, ring_position; /* kept for the mark */
		_Atomic uint64_t moved;		  /* payload from VIs, for st_stats() */
		bool fin, shut, proof_due;
		bool credit_due; /* found no slot: the helper's */
		bool scan_fin;	 /* the last record that was looked at ends the ring's use, */
		bool scan_last;	 /* and the stream */
	} rx;

	struct st_lock tx_lock;
	struct {
		_Atomic(enum st_tx_path) path; /* written under tx_lock */
		uint64_t tcp_bytes; /* given to the kernel's socket, tokens not counted */
		uint64_t given;	    /* given to it here, all */
		uint8_t pend[2 * ST_TOKEN_BYTES]; /* goes on TCP before all others */
		uint32_t pend_bytes;
		bool pend_lazy; /* only when more follows */
		struct st_token token;
		uint64_t position, acked;    /* of the ring */
		uint64_t bytes, acked_bytes; /* payload */
		uint8_t *held;		     /* kept back by MSG_MORE */
		uint32_t held_bytes;
		uint64_t held_since, asked_since, next_ask, ask_after;
		uint64_t edges;
		_Atomic uint64_t moved; /* payload to VIs, for st_stats() */
		bool fin, full;
		uint32_t full_tries;
		bool fin_due;	      /* the ring's FIN waits for room or a slot */
		bool kernel_fin_due;  /* the kernel's shutdown waits for the ring's FIN to arrive */
		bool at_risk;	      /* see st_risk.h; while it is true, */
		struct linger linger; /* the value that the program has set */
	} tx;

	/* The helper's alone; `quiet` is written under tx, too: see st_quiet.h. */
	_Atomic bool quiet;
	uint64_t seen_sent, seen_read; /* positions at the helper's last look */
	uint64_t seen_taken;	       /* TCP's bytes that were read by then */
	/* The helper's, under the process lock: */
	struct st_stream *next, **prev; /* in the list of those that it looks after */
	uint64_t due;
	bool busy; /* the helper works on it */
	/* The helper's alone, but for st_promote(), st_demote(), st_close(), under the process lock: */
	_Atomic int phase;
	char host[64];
	uint32_t ring_bytes;
	uint64_t deadline, backoff, close_deadline, lost_at;
	_Atomic(enum st_why) why;
	_Atomic bool want_tcp, asked_back,
		answered_back; /* demotion: wanted; BACK sent; the peer's BACK came */
	_Atomic bool closing, flushed;
	bool tcp_due;	/* closed, and the other end might still write to TCP */
	int closing_fd; /* a copy of the socket, held until the other end has all */
	struct st_stream *next_all, **prev_all;
	struct st_stream *next_listed; /* a list of st_wait_take() */
	bool listed;
	struct st_deferred deferred;
};

struct st_wait {
	_Atomic int refs;
	struct st_lock lock;
	VIP_CQ_HANDLE cq; /* NULL before the NIC is open */
	_Atomic int cq_fd, epoll_fd;
	struct st_deferred deferred;
	uint64_t era;		      /* of the process that made the queue: st_process.era */
	struct st_stream *told;	      /* with entries, not yet given by st_wait_take() */
	struct st_wait *next, **prev; /* all of the process */
	/* The helper's alone: */
	uint32_t quiet; /* streams that it does not look at */
	bool watched;	/* it waits for the queue's descriptor */
	struct st_wait *next_quiet, **prev_quiet;
};

/*
 * Takes the lock of the receiving side: 0, -EDEADLK.  Other threads take it before the sending side, so a signal
 * handler whose thread has the latter must not wait for it.
 */
static inline int st_lock_rx(struct st_stream *s)
{
	if (st_likely(st_trylock(&s->rx_lock)))
		return 0;
	return st_lock_is_mine(&s->tx_lock) ? st_lock_held_error() : st_lock(&s->rx_lock);
}

#endif
