/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * st_ring.h - records in a ring, whose memory the other end writes
 *
 * Positions count bytes for ever, in steps of 16, and a record is written downwards: at position p its header lies
 * right below the address that p stands for, and the payload right below the header, so that one RDMA write ends with
 * the header, which arrives last and where the reader expects it.  A record lies in one piece; the one that reaches the
 * ring's end is cut there.
 *
 * The second word of a header is the exclusive or of the ring's key and the position.  The key is random and known to
 * the two ends only, so bytes that lie there from before, which a program may have chosen, are not taken for a header.
 */
#ifndef ST_RING_H
#define ST_RING_H

#include <stdbool.h>
#include <stdint.h>

#define ST_HEADER_BYTES 16u
#define ST_RESERVE_BYTES 64u /* of a ring's room, for records without payload */

/* A reader that keeps up gets the records in this much of the ring, which stays in the caches. */
#define ST_CALM_BYTES 65536u

/* ST_REC_OVER: the next one lies at the ring's beginning.  Only allowed after the first ST_CALM_BYTES of the ring. */
enum st_record_kind { ST_REC_DATA = 0, ST_REC_FIN = 1, ST_REC_BACK = 2, ST_REC_OVER = 3 };

struct st_header {
	uint32_t length;
	uint32_t kind;
	uint64_t tag;
};

/* Bytes of the ring that a record with this payload takes, with its header, in steps of 16. */
static inline uint32_t st_record_bytes(uint32_t payload)
{
	return (payload + ST_HEADER_BYTES + 15) & ~15u;
}

/* The second word of the header of a record at `position`. */
static inline uint64_t st_tag(uint64_t key, uint64_t position)
{
	return key ^ position;
}

/* Offset of the header at a position. */
static inline uint32_t st_header_at(uint32_t ring_bytes, uint64_t position)
{
	return ring_bytes - (uint32_t)(position & (ring_bytes - 1)) - ST_HEADER_BYTES;
}

/* True: a record ST_REC_OVER may lie at this position. */
static inline bool st_may_skip(uint32_t ring_bytes, uint64_t position)
{
	return (position & (ring_bytes - 1)) >= ST_CALM_BYTES;
}

/* Position of the record that follows one of this kind and payload at `position`. */
static inline uint64_t st_next_position(uint32_t ring_bytes, uint64_t position, uint32_t kind,
					uint32_t payload)
{
	return kind == ST_REC_OVER ? (position | (ring_bytes - 1)) + 1
				   : position + st_record_bytes(payload);
}

/*
 * The most payload of a record at a position, up to `room` bytes of ring with its header; 0 also if that has no room.
 */
static inline uint32_t st_record_fits(uint32_t ring_bytes, uint64_t position, uint64_t room)
{
	uint64_t piece = ring_bytes - (position & (ring_bytes - 1));

	if (piece > room)
		piece = room & ~(uint64_t)15;
	return piece < ST_HEADER_BYTES ? 0 : (uint32_t)piece - ST_HEADER_BYTES;
}

/*
 * Looks at the place of the header at `position`: 0: none yet; 1: copied to `header`, and it is sound; -EPROTO: it has
 * the right tag, but no honest writer wrote it.
 */
int st_record_check(const uint8_t *ring, uint32_t ring_bytes, uint64_t key, uint64_t position,
		    struct st_header *header);

/* May the other end have read up to `credit`, from `acked` on, with `written` bytes written? */
static inline bool st_credit_ok(uint64_t acked, uint64_t credit, uint64_t written)
{
	return credit - acked <= written - acked && credit % 16 == 0;
}

#endif
