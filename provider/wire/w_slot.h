/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layout of the slice of a VI connection.  One end of a connection owns the inbound slice and
 * reads it; the other end maps it outbound and writes it.
 *
 *	control   line 0: credit, written by the peer's receiver
 *		  line 2: notify, the notify request of the peer
 *		  line 4: error report of the peer's receiver
 *		  from 2048 on: adverts of the peer's receives
 *	fifo	  `slots` slots of 128 bytes
 *	payload	  `payload_bytes` bytes
 *
 * A slot is two lines.  The first holds 48 payload bytes and, at its end, the
 * header, whose last word is the sequence that publishes it: a message of up to
 * 48 bytes is one line written and one line read.  The second line extends the
 * inline payload to 112 bytes.  Longer fragments lie in the payload buffer.
 *
 * All fields are little-endian.  Everything here was written by another host.
 */
#ifndef W_SLOT_H
#define W_SLOT_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire is little-endian and so must the host be"
#endif

#define W_SLOT_BYTES 128u
#define W_HEAD_INLINE 48u
#define W_TAIL_INLINE 64u
#define W_INLINE_MAX (W_HEAD_INLINE + W_TAIL_INLINE)
#define W_PAYLOAD_ALIGN 64u

#define W_SLOTS_MIN 8u
#define W_SLOTS_MAX 4096u
#define W_PAYLOAD_MIN 4096u
#define W_PAYLOAD_MAX (64u << 20)
#define W_PAYLOAD_TIMES_MAX 16u /* see w_payload_of_path() */

enum w_op {
	W_OP_SEND = 1,	    /* fragment of a message for a receive descriptor */
	W_OP_WRITE = 2,	    /* fragment of an RDMA write */
	W_OP_READ_REQ = 3,  /* RDMA read request; `struct w_rdma` or `struct w_read_req` inline */
	W_OP_READ_RESP = 4, /* fragment of the answer */
	W_OP_ABORT = 5,	    /* the SEND or WRITE under way ends here, incomplete */
	/* only a slot that asks for credit; may come anywhere, also inside a message */
	W_OP_NOP = 6,
	W_OP_ATOMIC_REQ = 7, /* atomic operation; `struct w_atomic_req` inline; READ_RESP answers */
};

#define W_F_FIRST 0x01u	   /* first fragment of a message */
#define W_F_LAST 0x02u	   /* last fragment */
#define W_F_IMM 0x04u	   /* the message ends with immediate data; on all its fragments */
#define W_F_BUFFERED 0x08u /* the fragment's payload lies in the payload buffer, not inline */
#define W_F_ACK 0x10u	   /* the sender waits for credit: return it at once */
/* A whole message, or answer to a read, that was stored at its destination before the slot was published. */
#define W_F_PLACED 0x20u
/* Several whole messages of one length, each for a receive: see w_packed_ok(). */
#define W_F_PACKED 0x40u
/* With BUFFERED: the payload lies at the beginning of the payload buffer, and nothing else in that is in use. */
#define W_F_REWOUND 0x80u
#define W_F_KNOWN 0xffu

/*
 * Begins the inline area of the FIRST fragment of W_OP_WRITE (inline payload
 * follows it) and of W_OP_READ_REQ (alone, or in a w_read_req).
 */
struct w_rdma {
	uint64_t addr;
	uint32_t handle;
	uint32_t length; /* READ_REQ: bytes wanted; WRITE: 0 */
};
static_assert(sizeof(struct w_rdma) == 16, "w_rdma");

/*
 * The memory into which the answer to a read may be stored: one piece of window memory, as long as the answer, which
 * the peer may be granted.
 */
struct w_offer {
	uint64_t addr;
	uint32_t handle;
	uint32_t consumed; /* slots of the peer that this end had consumed: see nvi_answer.c */
};
static_assert(sizeof(struct w_offer) == 16, "w_offer");

/* The inline area of a W_OP_READ_REQ with an offer. */
struct w_read_req {
	struct w_rdma rdma;
	struct w_offer offer;
};
static_assert(sizeof(struct w_read_req) == 32 && sizeof(struct w_read_req) <= W_HEAD_INLINE,
	      "w_read_req");

enum w_atomic_op {
	W_ATOMIC_FETCH = 1,
	W_ATOMIC_SWAP,
	W_ATOMIC_COMPARE_SWAP,
	W_ATOMIC_ADD,
	W_ATOMIC_AND,
	W_ATOMIC_OR,
	W_ATOMIC_XOR,
	W_ATOMIC_MAX
};

/*
 * The operands in the inline area of W_OP_ATOMIC_REQ; `length` of its w_rdma is their size, 4 or 8, and the address
 * is a multiple of that.
 */
struct w_atomic {
	uint64_t operand;
	uint64_t compare; /* of COMPARE_SWAP */
	uint32_t op;	  /* enum w_atomic_op */
	uint32_t fetch;	  /* 1: the answer is the value that was there; 0: it is empty */
};
static_assert(sizeof(struct w_atomic) == 24, "w_atomic");

struct w_atomic_req {
	struct w_rdma rdma;
	struct w_atomic atomic;
};
static_assert(sizeof(struct w_atomic_req) == 40 && sizeof(struct w_atomic_req) <= W_HEAD_INLINE,
	      "w_atomic_req");

/* The last 16 bytes of a slot's first line. */
struct w_head {
	uint8_t op;
	uint8_t flags;
	uint16_t reserved; /* 0 */
	/*
	 * FIRST but not LAST: bytes of the whole message.  LAST with IMM: immediate data.  PACKED:
	 * number of messages.  Otherwise 0.
	 */
	uint32_t arg;
	uint32_t frag;	      /* payload bytes of this fragment; PACKED: of each message */
	_Atomic uint32_t seq; /* w_seq(n) for the n-th slot of the connection; stored last */
};
static_assert(sizeof(struct w_head) == 16, "w_head");

/* The first four bytes of a header whose `reserved` is 0. */
#define W_WHAT(op, flags) ((uint32_t)(op) | (uint32_t)(flags) << 8)

struct w_slot {
	uint8_t data[W_HEAD_INLINE];
	struct w_head head;
	uint8_t more[W_TAIL_INLINE];
};
static_assert(sizeof(struct w_slot) == W_SLOT_BYTES, "w_slot");
static_assert(offsetof(struct w_slot, head.seq) == 60, "w_slot.seq");

/* Does the slot begin a message that takes a receive descriptor, or several? */
static inline int w_takes_receive(uint8_t op, uint8_t flags)
{
	return (flags & W_F_FIRST) && (op == W_OP_SEND || (op == W_OP_WRITE && (flags & W_F_IMM)));
}

/*
 * How many messages that take a receive descriptor begin with the slot?  Both ends number messages by
 * this, from 0.
 */
static inline uint32_t w_receives(uint8_t op, uint8_t flags, uint32_t arg)
{
	if (!w_takes_receive(op, flags))
		return 0;
	return flags & W_F_PACKED ? arg : 1;
}

/*
 * May a slot carry `count` messages of `length` bytes each?  They lie one after the other in the
 * inline area, the first at its beginning.
 */
static inline int w_fits_packed(uint32_t count, uint32_t length)
{
	return count >= 2 && count <= W_INLINE_MAX && length >= 1 && length <= W_INLINE_MAX &&
	       count * length <= W_INLINE_MAX;
}

/* Is a slot with PACKED well-formed? */
static inline int w_packed_ok(uint8_t op, uint8_t flags, uint32_t arg, uint32_t frag)
{
	return op == W_OP_SEND && (flags & ~W_F_ACK) == (W_F_FIRST | W_F_LAST | W_F_PACKED) &&
	       w_fits_packed(arg, frag);
}

/* Sequence of the n-th slot (n counts from 0): never 0, never all ones. */
static inline uint32_t w_seq(uint32_t n)
{
	return (n & 0x7fffffffu) | 0x40000000u;
}

/*
 * Places the next buffered payload, of at most `payload_bytes`, a power of two.  Its place follows from the
 * payloads before it, so it is not sent: fragments are placed one after the other, each aligned to
 * W_PAYLOAD_ALIGN and in one piece; one that does not fit before the end starts at 0. `cursor` counts payload
 * bytes ever used. Returns the offset and moves the cursor past the payload (and past skipped bytes).
 */
static inline uint32_t w_payload_place(uint64_t *cursor, uint32_t payload_bytes, uint32_t length)
{
	uint64_t need = ((uint64_t)length + W_PAYLOAD_ALIGN - 1) & ~(uint64_t)(W_PAYLOAD_ALIGN - 1);
	uint32_t offset = (uint32_t)(*cursor & (payload_bytes - 1));

	if (need > payload_bytes - offset) {
		*cursor += payload_bytes - offset;
		offset = 0;
	}
	*cursor += need;
	return offset;
}

/*
 * Returns the cursor with which w_payload_place() next gives the beginning of the payload buffer: past the rest of
 * the buffer, which is skipped.  A sender whose peer has consumed all payloads may begin there again, and marks that
 * by REWOUND: lines that were used a moment ago are in the nearest caches.
 */
static inline uint64_t w_payload_rewind(uint64_t cursor, uint32_t payload_bytes)
{
	return (cursor + payload_bytes - 1) & ~(uint64_t)(payload_bytes - 1);
}

/* As w_payload_place(), for the payload of a slot with these flags: with REWOUND at the beginning. */
static inline uint32_t w_payload_find(uint64_t *cursor, uint32_t payload_bytes, uint8_t flags,
				      uint32_t length)
{
	if (flags & W_F_REWOUND)
		*cursor = w_payload_rewind(*cursor, payload_bytes);
	return w_payload_place(cursor, payload_bytes, length);
}

/* The greatest length of a fragment, such that the copies of both sides overlap in time. */
static inline uint32_t w_frag_max(uint32_t payload_bytes)
{
	return payload_bytes / 4 < 32768 ? payload_bytes / 4 : 32768;
}

/* Why the peer broke the connection: its error report. */
enum w_err {
	W_ERR_NONE = 0,
	W_ERR_NO_DESC = 1,   /* no receive descriptor was posted */
	W_ERR_TOO_LONG = 2,  /* the message is longer than the receive buffers */
	W_ERR_RECV_DESC = 3, /* the receive descriptor was malformed or unprotected */
	W_ERR_RDMA_PROT = 4, /* the remote region refused the access */
	W_ERR_PROTOCOL = 5,  /* malformed slot, or one that must not come now */
	W_ERR_SENDER = 6,    /* the peer's own send failed: its earlier messages are valid */
	W_ERR_MAX
};

/*
 * A receive of the peer that may be stored into: its memory lies in a window.  Message n is the only
 * one that may be stored there; its advert is number n mod W_ADVERTS.
 */
struct w_advert {
	_Atomic uint64_t addr;
	_Atomic uint32_t handle;
	_Atomic uint32_t length;
	_Atomic uint64_t tag; /* w_advert_tag(n); stored last */
	uint64_t pad;
};
static_assert(sizeof(struct w_advert) == 32, "w_advert");

#define W_ADVERTS 64u

/* The tag of advert n; never 0, which marks that there is no advert. */
static inline uint64_t w_advert_tag(uint64_t n)
{
	return n + 1;
}

/* The first page of a slice; every word has one writer: the peer. */
struct w_control {
	_Atomic uint32_t credit; /* slots of mine that the peer consumed, counted from 0 */
	uint32_t pad0[31];
	_Atomic uint32_t notify; /* the notify request of the peer: w_notify() */
	uint32_t pad1[31];
	_Atomic uint64_t error; /* w_error_word(), when the peer's receiver broke the connection */
	uint32_t pad2[446];
	struct w_advert adverts[W_ADVERTS];
};
static_assert(offsetof(struct w_control, adverts) == 2048, "w_control.adverts");
static_assert(sizeof(struct w_control) == 4096, "w_control");

#define W_NOTIFY_SLOT 0x1u   /* ring, once, when slot `slot` or a later one is published */
#define W_NOTIFY_CREDIT 0x2u /* ring each time credit is returned */
/* The sender fences between publishing and checking this word, which it then loads again. */
#define W_NOTIFY_FENCE 0x4u

/* Makes a notify request from bits W_NOTIFY_... and the number of the slot, of which 29 bits are kept. */
static inline uint32_t w_notify(uint32_t bits, uint32_t slot)
{
	return bits | slot << 3;
}

/*
 * Is the slot that `notify` waits for among the first `published`?  0 also if it waits for none; both numbers
 * wrap.
 */
static inline int w_notify_due(uint32_t notify, uint32_t published)
{
	uint32_t past = (published - (notify >> 3)) & 0x1fffffffu;

	return (notify & W_NOTIFY_SLOT) && past != 0 && past < 0x10000000u;
}

/*
 * An error report: the slot (counted from 0) whose message failed, the number of the message in a slot with PACKED
 * (counted from 0; else 0), and the reason.
 */
static inline uint64_t w_error_word(uint32_t slot, uint32_t message, enum w_err err)
{
	return (uint64_t)slot << 32 | 0x80000000u | message << 8 | (uint32_t)err;
}

static inline uint32_t w_error_slot(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

static inline uint32_t w_error_message(uint64_t word)
{
	return (uint32_t)word >> 8 & 0xffu;
}

static inline enum w_err w_error_why(uint64_t word)
{
	return (enum w_err)(word & 0xffu);
}

#define W_SLICE_FIFO 4096u /* offset of the fifo in a slice, after its struct w_control */

/* Returns the bytes of a slice of that geometry, before its port rounds them up. */
static inline size_t w_slice_bytes(uint32_t slots, uint32_t payload_bytes)
{
	return W_SLICE_FIFO + (((size_t)slots * W_SLOT_BYTES + 4095) & ~(size_t)4095) +
	       payload_bytes;
}

/* Returns the offset of the payload buffer in a slice, after the fifo, which takes whole pages. */
static inline size_t w_slice_payload(uint32_t slots)
{
	return W_SLICE_FIFO + (((size_t)slots * W_SLOT_BYTES + 4095) & ~(size_t)4095);
}

/* Can a fifo have so many slots: a power of two within the limits? */
static inline int w_slots_ok(uint32_t slots)
{
	return slots >= W_SLOTS_MIN && slots <= W_SLOTS_MAX && (slots & (slots - 1)) == 0;
}

/* Can a payload buffer have so many bytes: a power of two within the limits? */
static inline int w_payload_ok(uint32_t payload_bytes)
{
	return payload_bytes >= W_PAYLOAD_MIN && payload_bytes <= W_PAYLOAD_MAX &&
	       (payload_bytes & (payload_bytes - 1)) == 0;
}

/*
 * Returns the size of the payload buffers of a connection over so many links, if one over a single link has
 * `payload_bytes`: the bytes in flight are spread over all payload buffers of a path, and the copy at each host
 * needs some of them.  That is `payload_bytes` times the links, rounded up to a power of two,
 * W_PAYLOAD_TIMES_MAX at most; never above W_PAYLOAD_MAX.
 */
static inline uint32_t w_payload_of_path(uint32_t payload_bytes, unsigned int links)
{
	uint32_t times = 1;

	while (times < links && times < W_PAYLOAD_TIMES_MAX)
		times *= 2;
	return payload_bytes <= W_PAYLOAD_MAX / times ? payload_bytes * times : W_PAYLOAD_MAX;
}

/* Does this version use these dimensions?  Checks the proposal of a peer. */
static inline int w_geometry_ok(uint32_t slots, uint32_t payload_bytes)
{
	return w_slots_ok(slots) && w_payload_ok(payload_bytes);
}

/* The receiver's place in the stream of fragments, for the validator. */
struct w_stream {
	uint8_t op;	     /* of the message under way; 0 between messages */
	uint8_t imm;	     /* it ends with immediate data: W_F_IMM or 0 */
	uint32_t total;	     /* bytes of the whole message */
	uint32_t done;	     /* bytes that came so far */
	uint32_t max_length; /* longest message the VI accepts */
	uint32_t payload_bytes;
};

/*
 * The one validator of slots: given a private copy of a slot's header (and, for a FIRST WRITE, a
 * READ_REQ or an ATOMIC_REQ, of its w_rdma), says whether a correct peer could have sent it now,
 * and moves the stream on.  On success *inline_off is where inline payload starts in the slot.
 * Returns 0, or -EPROTO and leaves the stream unchanged.
 */
int w_slot_check(struct w_stream *s, uint8_t op, uint8_t flags, uint16_t reserved, uint32_t arg,
		 uint32_t frag, const struct w_rdma *rdma, uint32_t *inline_off);

/* Checks the private copy of an ATOMIC_REQ's w_atomic.  0 or -EPROTO. */
int w_atomic_check(const struct w_atomic *a);

/*
 * May a relay forward a slot with this header, of which it has a private copy?  On success *inline_out is how
 * many of its bytes lie in the slot itself, its w_rdma included.  The receiver checks whether such a slot may
 * come now.  Returns 0 or -EPROTO, after which *inline_out has no meaning.
 */
int w_slot_bounds(uint8_t op, uint8_t flags, uint16_t reserved, uint32_t arg, uint32_t frag,
		  uint32_t payload_bytes, uint32_t *inline_out);

#endif
