/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * st_wire.h - what two ends of a stream tell each other, and the checks of it
 *
 * Messages go as sends.  Everything that comes from the other end is copied once, checked here, and the copy is used.
 * Integers are little-endian, as are the processors that this runs on.
 */
#ifndef ST_WIRE_H
#define ST_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "st_stream.h"

#define ST_WIRE_MAGIC 0x314b5356u /* "VSK1" */
#define ST_WIRE_VERSION 3	  /* 2: ST_REC_OVER; 3: the word `closed` */

#define ST_RING_LEAST 4096u
#define ST_RING_MOST (16u << 20)

enum st_message_kind {
	ST_MSG_HELLO = 1,  /* where the sender's ring and words are */
	ST_MSG_SWITCH = 2, /* its bytes leave TCP after `count` of them */
	ST_MSG_YES = 3,	   /* the answer to SWITCH */
	ST_MSG_NO = 4,
	ST_MSG_PROOF = 5, /* the second half of the token */
	ST_MSG_BACK = 6	  /* please go back to TCP */
};

struct st_message {
	uint32_t magic;
	uint8_t version, kind;
	uint16_t reserved; /* 0 */
	union {
		struct {
			uint64_t ring, words; /* addresses in the sender's memory */
			uint64_t key;	      /* of headers in that ring */
			uint32_t handle;      /* of both */
			uint32_t ring_bytes;
		} hello;
		struct {
			uint64_t count, half;
		} change; /* SWITCH: both; PROOF: half */
		uint8_t bytes[32];
	};
};

static_assert(sizeof(struct st_message) == 40, "a message");

/* The kind, or -EPROTO: malformed, or of another length; -EPROTONOSUPPORT: another version. */
int st_message_check(const struct st_message *m, size_t bytes);

/* ---- the token and the mark, on TCP -------------------------------------------------------------------------- */

#define ST_TOKEN_BYTES 16
struct st_token {
	uint64_t half[2];
};

/* The mark after which TCP goes on: `key` of the ring, and the ring's end. */
struct st_token st_mark(uint64_t key, uint64_t written);

/* ---- the words ----------------------------------------------------------------------------------------------- */

/* Lie in each end's memory, after its ring; the other end writes there. */
struct st_words {
	uint64_t credit;       /* up to where the other end has read its ring */
	uint64_t credit_bytes; /* payload up to there */
	uint64_t arm[2];       /* numbers: the other end wants a wake for records, for credit */
	uint64_t closed;       /* not 0: the other end has closed, and reads nothing more */
};

enum { ST_ARM_DATA, ST_ARM_ROOM };
#define ST_WORDS_BYTES 4096

/* ---- addresses ----------------------------------------------------------------------------------------------- */

#define ST_DISCRIMINATOR_BYTES 39

/*
 * The discriminator of one end of this connection, whose role it is, for VipConnectPeerRequest(): 0; -EOPNOTSUPP:
 * neither IPv4 nor IPv6, or it is connected to itself.
 */
int st_discriminator(const struct st_origin *o, enum st_role role,
		     uint8_t out[ST_DISCRIMINATOR_BYTES]);

#endif
