/* SPDX-License-Identifier: BSD-2-Clause */
/* The segments of a descriptor. */
#ifndef VI_SG_H
#define VI_SG_H

#include <stdint.h>

#include "vi_wq.h"
#include "vipl_ext.h"

struct vi_nic;
struct vi_vi;

/*
 * A walk over the local data segments of a descriptor.  The VI's lock may be dropped
 * and taken again during it, so segments and data are checked against the TPT each
 * time they are touched: they may have been deregistered in between.
 */
struct vi_sg {
	const struct vi_nic *nic;
	uint64_t ptag;
	const VIP_DESCRIPTOR_SEGMENT *seg;
	uint16_t left;	      /* segments not begun */
	uint64_t need;	      /* bytes of these that are needed; further ones are not touched */
	uint32_t access;      /* VI_READ or VI_WRITE */
	uint32_t desc_handle; /* of the memory that `seg` points into */
	uint32_t handle;      /* of the current segment's memory */
	uint8_t *at;	      /* in the current segment */
	uint32_t at_left;
};

/*
 * Starts a walk over the first `need` bytes of wqe's local segments (skips the address segment of RDMA and the
 * operands of an atomic operation).  Checks that the descriptor's own memory - all its segments - lies in its region;
 * the data is checked later, for `access`.  Returns 0 or -EFAULT (protection).  Caller holds a lock of the VI.
 */
int vi_sg_init(struct vi_sg *sg, const struct vi_vi *vi, const struct vi_wqe *wqe, uint32_t access,
	       uint64_t need);

/*
 * Gives up to `want` contiguous bytes: *len_out > 0 at *addr_out.  Segments of length 0 are skipped unchecked.
 * Returns 0, -EFAULT (protection), -ENOSPC (no segment left, or none needed).  Caller holds a lock of the VI.
 */
int vi_sg_next(struct vi_sg *sg, uint32_t want, uint8_t **addr_out, uint32_t *len_out);

/*
 * Checks the needed bytes of every segment that is left, without moving on; 0 or -EFAULT. *total_out: the sum of the
 * segments' lengths, needed or not; left after an error.  Caller holds a lock of the VI.
 */
int vi_sg_check_all(const struct vi_sg *sg, uint64_t *total_out);

#define VI_ATOMIC_SEGMENTS 2u /* address and operands; data segments follow, or none */

/* The operands of an atomic operation. */
static inline const VIPX_ATOMIC_SEGMENT *vi_wqe_atomic(const struct vi_wqe *wqe)
{
	return (const VIPX_ATOMIC_SEGMENT *)(const void *)&wqe->desc->DS[1];
}

/*
 * The number of bytes in the peer's answer to a read or an atomic operation; 0 for an atomic operation without data
 * segments.
 */
static inline uint32_t vi_wqe_answer_bytes(const struct vi_wqe *wqe)
{
	return (wqe->control & VIP_CONTROL_OP_MASK) == VIPX_CONTROL_OP_ATOMIC &&
			       wqe->segs <= VI_ATOMIC_SEGMENTS
		       ? 0
		       : wqe->length;
}

/* The address segment of an RDMA descriptor. */
static inline const VIP_ADDRESS_SEGMENT *vi_wqe_remote(const struct vi_wqe *wqe)
{
	return &wqe->desc->DS[0].Remote;
}

/*
 * Can the descriptor be started?  0, or the VIP_STATUS_ error bits with which it
 * completes: FORMAT, LENGTH or PROTECTION.  Caller holds the queue's lock.
 */
uint32_t vi_desc_check_send(const struct vi_vi *vi, const struct vi_wqe *wqe);
/*
 * Can the receive take a message of `bytes`?  As vi_desc_check_send(), but only the memory for these
 * bytes is checked.  LENGTH: the segments hold less.
 */
uint32_t vi_desc_check_recv(const struct vi_vi *vi, const struct vi_wqe *wqe, uint64_t bytes);

#endif
