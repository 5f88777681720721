/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the self-test: what both ends have, how they talk, and the table of clauses. */
#ifndef PST_PRIV_H
#define PST_PRIV_H

#include "pst.h"
#include "u_time.h"

#define PST_ARGS 12
#define PST_PADS 4 /* that the exchange of slices needs */

/*
 * A message: one line of the control slice, stored again now and then.  `ack` is the last that its sender
 * has taken: the next is said only after that, so none is lost.
 */
struct pst_record {
	uint32_t seq, kind, args[PST_ARGS], ack, check;
};

/* The judge asks for a clause, the helper is ready, and replies with what it saw; steps are those of a clause. */
enum pst_kind { PST_REQUEST = 1, PST_READY, PST_REPLY, PST_STEP, PST_DONE };

/* The data slice.  Words on lines of their own, then an area for payload.  It fits into a window of 64 KiB. */
enum {
	PST_AT_WORD = 0,
	PST_AT_HALF = 64,
	PST_AT_FLAG = 128,
	PST_AT_ACK = 192,
	PST_AT_RUNG = 256,
	PST_AT_AREA = 8192,
	PST_AREA = 32768,
	PST_DATA = PST_AT_AREA + PST_AREA,
};
#define PST_CTL 4096u

/* Flags of an acknowledgement. */
#define PST_ACK_STOP UINT32_C(0x80000000)
#define PST_ACK_AGAIN UINT32_C(0x40000000)

/* A slice of this host that the peer stores into, and the peer's that this host stores into. */
struct pst_slice {
	struct port_slice own;
	struct port_map in, out;
};

struct pst {
	struct port *port;
	const struct pst_cfg *cfg;
	bool judge;
	uint32_t epoch; /* how often slices were exchanged */
	uint32_t generation;
	struct pst_slice ctl, data;
	struct pst_record said;
	uint32_t heard;	   /* sequence number of the last record that was taken */
	bool said_any;	   /* a record of this exchange has been stored */
	bool pads_restate; /* the peer may not have seen that its slices were opened */
	uint32_t pad[PST_PADS];
	int64_t restated_at;
	uint32_t ticket;	   /* of the interrupts, from before the peer was told to ring */
	uint32_t seen;		   /* of a half: the last value that it looked at */
	struct pst_report *report; /* the judge's */
};

/* A clause in one direction, as both ends have it. */
struct pst_job {
	uint32_t clause;
	bool judge_writes;
	uint32_t seed;
	int64_t share_ns;
};

/* Why a clause is broken: pst_why_text() has the words. */
enum pst_why {
	PST_WHY_NOTHING,
	PST_WHY_NO_ANSWER,
	PST_WHY_LINK_ENDED,
	PST_WHY_SAME_ROLE,
	PST_WHY_ERROR,
	PST_WHY_TORN,
	PST_WHY_FLAG_FIRST,
	PST_WHY_BYTES,
	PST_WHY_FLUSH_EARLY,
	PST_WHY_SLICE_SHORT,
	PST_WHY_SLICE_DIRTY,
	PST_WHY_SLICE_STRAY,
	PST_WHY_SLICE_RANGE,
	PST_WHY_SLICE_FREED,
	PST_WHY_RING_FIRST,
	PST_WHY_STORE_LOST,
	PST_WHY_RING_LOST,
	PST_WHY_NO_WAKE,
	PST_WHY_BITS_LOST,
	PST_WHY_CLEARED_MORE,
	PST_WHY_MASK_IGNORED,
	PST_WHY_MASK_LOSES,
	PST_WHY_PAD_LOST,
	PST_WHY_PAD_READ,
	PST_WHY_PAD_RANGE,
	PST_WHY_PAD_FIRST,
	PST_WHY_VIEW_MAY,
	PST_WHY_LINK_STILL_UP,
	PST_WHY_LINK_UNTOLD,
	PST_WHY_LINK_GENERATION,
	PST_WHY_LINK_REACHES,
	PST_WHYS
};

/* Halves of a clause: 0; -EOPNOTSUPP when this port cannot show it; -ETIMEDOUT, -ENOTCONN, -errno. */
typedef int pst_half(struct pst *s, const struct pst_job *job, struct pst_counts *c);

struct pst_clause {
	const char *id, *rule, *needs;
	pst_half *write, *read; /* NULL: cannot be tested; `why_not` says why */
	const char *why_not;
	uint32_t weight;  /* its part of the time; 0: it ends by itself */
	const char *what; /* was tried, in words */
};

extern const struct pst_clause pst_clauses[];
extern const unsigned int pst_clause_count;
const char *pst_why_text(uint32_t why);

/* ---- pst_talk.c -------------------------------------------------------------------------------- */

/* A wait: the deadline counts only when the loop has looked once more after it. */
struct pst_wait {
	int64_t deadline;
	uint32_t turns;
	bool over;
};

struct pst_wait pst_wait_begin(int64_t ns);
/* Serves the port, stores the last record again now and then, yields.  0, -ETIMEDOUT or -ENOTCONN. */
int pst_poll(struct pst *s, struct pst_wait *w);

/* Exchanges slices with the peer, and forgets those from before.  -EALREADY: the peer has this end's role. */
int pst_join(struct pst *s);
/* Gives up the slices and says nothing any more. */
void pst_leave(struct pst *s);
/* Has the peer begun to exchange slices once more? */
bool pst_peer_rejoins(const struct pst *s);

/* Says it when the peer has taken what was said before, or has not for gone_ns.  Without slices nothing is said. */
void pst_say(struct pst *s, uint32_t kind, const uint32_t *args, unsigned int n);
/*
 * A record of this kind.  -ENOTCONN also when slices could not be exchanged again.  -EPROTO when the peer has gone on
 * to another clause.
 */
int pst_hear(struct pst *s, uint32_t kind, uint32_t args[PST_ARGS], int64_t ns);
/* A step that the peer numbers so. */
void pst_step_say(struct pst *s, uint32_t step);
int pst_step_hear(struct pst *s, uint32_t step);

/* ---- small parts ------------------------------------------------------------------------------- */

void pst_wrong(struct pst_counts *c, uint32_t why, uint32_t at);
/* Fences and flushes: nothing stays on its way. */
void pst_settle(struct pst *s);
/* Counts until the time is over, but `least` times. */
bool pst_enough(int64_t until, uint32_t tried, uint32_t least);

static inline uint32_t *pst_in32(const struct pst_slice *l, size_t off)
{
	return (uint32_t *)((uint8_t *)l->in.base + off);
}

static inline uint32_t pst_load32(const struct pst_slice *l, size_t off)
{
	return __atomic_load_n(pst_in32(l, off), __ATOMIC_ACQUIRE);
}

static inline uint64_t pst_load64(const struct pst_slice *l, size_t off)
{
	return __atomic_load_n((uint64_t *)(void *)pst_in32(l, off), __ATOMIC_ACQUIRE);
}

static inline void pst_store32(const struct pst_slice *l, size_t off, uint32_t v)
{
	u_out_store32(&l->out.out, (_Atomic uint32_t *)(void *)((uint8_t *)l->out.base + off), v);
}

static inline void pst_store64(const struct pst_slice *l, size_t off, uint64_t v)
{
	u_out_store64(&l->out.out, (_Atomic uint64_t *)(void *)((uint8_t *)l->out.base + off), v);
}

static inline void pst_fence(const struct pst_slice *l)
{
	u_out_fence(&l->out.out);
}

/* A word that the peer polls: stored, and on its way. */
void pst_signal(struct pst *s, size_t off, uint32_t v);
/* Waits until the peer has stored a word other than `old` there. */
int pst_await(struct pst *s, size_t off, uint32_t old, uint32_t *out);

static inline uint32_t pst_mix(uint32_t a, uint32_t b)
{
	uint32_t x = (a ^ 0x7f4a7c15u) * 0x9e3779b1u ^ b;

	x = (x ^ x >> 15) * 0x85ebca77u;
	x = (x ^ x >> 13) * 0xc2b2ae3du;
	return x ^ x >> 16;
}

/* ---- clauses ------------------------------------------------------------------------------------ */

pst_half pst_word_write, pst_word_read, pst_order_write, pst_order_read, pst_bytes_write,
	pst_bytes_read;
pst_half pst_flush_write, pst_flush_read, pst_pad_order_write, pst_pad_order_read;
pst_half pst_pads_write, pst_pads_read;
pst_half pst_slices_write, pst_slices_read, pst_freed_write, pst_freed_read;
pst_half pst_ring_order_write, pst_ring_order_read, pst_rings_write, pst_rings_read;
pst_half pst_bits_write, pst_bits_read, pst_clear_write, pst_clear_read, pst_mask_write,
	pst_mask_read;
pst_half pst_view_both, pst_link_write, pst_link_read;
pst_half pst_time_write, pst_time_read;

#endif
