/* SPDX-License-Identifier: BSD-2-Clause */
/* The segments of a descriptor, and the checks before a descriptor is started. */
#include <errno.h>

#include "vi_limits.h"
#include "vi_objects.h"
#include "vi_provider.h"
#include "vi_sg.h"

static bool is_atomic(const struct vi_wqe *wqe)
{
	return (wqe->control & VIP_CONTROL_OP_MASK) == VIPX_CONTROL_OP_ATOMIC;
}

/*
 * The number of segments before those of data, wqe->segs at most: 0 for a send or receive, 1 for RDMA, 2 for an atomic
 * operation.
 */
static uint16_t head_segments(const struct vi_wqe *wqe)
{
	uint16_t count = (wqe->control & VIP_CONTROL_OP_MASK) != VIP_CONTROL_OP_SENDRECV;

	if (u_unlikely(is_atomic(wqe)))
		count = VI_ATOMIC_SEGMENTS;
	return count < wqe->segs ? count : wqe->segs;
}

int vi_sg_init(struct vi_sg *sg, const struct vi_vi *vi, const struct vi_wqe *wqe, uint32_t access,
	       uint64_t need)
{
	uint64_t bytes =
		sizeof(VIP_CONTROL_SEGMENT) + (uint64_t)wqe->segs * sizeof(VIP_DESCRIPTOR_SEGMENT);
	const uint8_t *desc =
		vi_tpt_check(vi->nic, vi->ptag, (uintptr_t)wqe->desc, bytes, wqe->handle, VI_READ);
	uint16_t skip = head_segments(wqe);

	if (u_unlikely(desc == NULL))
		return -EFAULT;
	sg->nic = vi->nic;
	sg->ptag = vi->ptag;
	/* DS[] is declared with two elements; the segments go on after them. */
	sg->seg = (const VIP_DESCRIPTOR_SEGMENT *)(desc + sizeof(VIP_CONTROL_SEGMENT)) + skip;
	sg->left = (uint16_t)(wqe->segs - skip);
	sg->need = need;
	sg->desc_handle = wqe->handle;
	sg->handle = 0;
	sg->access = access;
	sg->at = NULL;
	sg->at_left = 0;
	return 0;
}

/*
 * Steps to the next segment that has bytes, and checks those that are needed, at sg->at; sg->at_left is 0 if none are.
 * *length_out: the length of the segment.  0; -ENOSPC: no segment is left; -EFAULT: it or its memory may not be
 * accessed.
 */
static int next_segment(struct vi_sg *sg, uint32_t *length_out)
{
	VIP_DATA_SEGMENT seg;

	do {
		if (sg->left == 0)
			return -ENOSPC;
		if (u_unlikely(vi_tpt_check(sg->nic, sg->ptag, (uintptr_t)sg->seg, sizeof(seg),
					    sg->desc_handle, VI_READ) == NULL))
			return -EFAULT;
		seg = sg->seg->Local;
		sg->seg++;
		sg->left--;
	} while (seg.Length == 0);
	*length_out = seg.Length;
	sg->at_left = sg->need < seg.Length ? (uint32_t)sg->need : seg.Length;
	sg->need -= sg->at_left;
	if (sg->at_left == 0)
		return 0;
	sg->at = vi_tpt_check(sg->nic, sg->ptag, seg.Data.AddressBits, sg->at_left, seg.Handle,
			      sg->access);
	sg->handle = seg.Handle;
	return u_unlikely(sg->at == NULL) ? -EFAULT : 0;
}

int vi_sg_next(struct vi_sg *sg, uint32_t want, uint8_t **addr_out, uint32_t *len_out)
{
	uint32_t len;
	int err;

	if (sg->at_left == 0) {
		err = sg->need != 0 ? next_segment(sg, &len) : -ENOSPC;
		if (u_unlikely(err != 0))
			return err;
	} else if (u_unlikely(vi_tpt_check(sg->nic, sg->ptag, (uintptr_t)sg->at, sg->at_left,
					   sg->handle, sg->access) == NULL)) {
		return -EFAULT;
	}
	len = want < sg->at_left ? want : sg->at_left;
	*addr_out = sg->at;
	*len_out = len;
	sg->at += len;
	sg->at_left -= len;
	return 0;
}

int vi_sg_check_all(const struct vi_sg *sg, uint64_t *total_out)
{
	struct vi_sg walk = *sg;
	uint64_t total = walk.at_left;
	uint32_t length;
	int err;

	while ((err = next_segment(&walk, &length)) == 0)
		total += length;
	if (err != -ENOSPC)
		return err;
	*total_out = total;
	return 0;
}

/* ---- checks before a descriptor is started ---------------------------------------------------- */

/*
 * Checks all segments, and the memory of the first `need` bytes.  0 or VIP_STATUS_PROTECTION_ERROR.  *total_out: the
 * sum of the segments' lengths, only with 0.
 */
static uint32_t check_segments(const struct vi_vi *vi, const struct vi_wqe *wqe, uint32_t access,
			       uint64_t need, uint64_t *total_out)
{
	struct vi_sg sg;

	if (vi_sg_init(&sg, vi, wqe, access, need) != 0 || vi_sg_check_all(&sg, total_out) != 0)
		return VIP_STATUS_PROTECTION_ERROR;
	return 0;
}

/*
 * Is the atomic operation well-formed (4 or 8 bytes, a known operation, its segments), and does the provider execute
 * it at the level of the VI?  The remote address is not checked.
 */
static bool atomic_format_ok(const struct vi_vi *vi, const struct vi_wqe *wqe)
{
	return wqe->segs >= VI_ATOMIC_SEGMENTS && (wqe->control & VIP_CONTROL_IMMEDIATE) == 0 &&
	       (wqe->length == 4 || wqe->length == 8) && wqe->imm >= VIPX_ATOMIC_FETCH &&
	       wqe->imm <= VIPX_ATOMIC_XOR &&
	       (wqe->imm != VIPX_ATOMIC_FETCH || wqe->segs > VI_ATOMIC_SEGMENTS) &&
	       vi->nic->ops->atomics && (vi->nic->attrs.RDMAReadSupport & vi->level) != 0;
}

/*
 * Are the control bits, the number of segments and the operation valid for a send queue, at the level of the VI?
 * Checks neither length nor memory.
 */
static bool send_format_ok(const struct vi_vi *vi, const struct vi_wqe *wqe)
{
	uint32_t op = wqe->control & VIP_CONTROL_OP_MASK;

	if ((wqe->control & VIP_CONTROL_RESERVED) != 0 || wqe->segs > VI_MAX_SEGMENTS)
		return false;
	if (op == VIP_CONTROL_OP_SENDRECV)
		return true;
	if (op == VIPX_CONTROL_OP_ATOMIC)
		return atomic_format_ok(vi, wqe);
	if (wqe->segs == 0)
		return false;
	return op != VIP_CONTROL_OP_RDMAREAD || (vi->nic->attrs.RDMAReadSupport & vi->level) != 0;
}

uint32_t vi_desc_check_send(const struct vi_vi *vi, const struct vi_wqe *wqe)
{
	bool read = (wqe->control & VIP_CONTROL_OP_MASK) >= VIP_CONTROL_OP_RDMAREAD;
	uint64_t total = 0;
	uint32_t bits;

	if (u_unlikely(!send_format_ok(vi, wqe)))
		return VIP_STATUS_FORMAT_ERROR;
	if (u_unlikely(wqe->length > vi->max_transfer))
		return VIP_STATUS_LENGTH_ERROR;
	bits = check_segments(vi, wqe, read ? VI_WRITE : VI_READ, UINT64_MAX, &total);
	if (u_unlikely(bits != 0))
		return bits;
	/* check_segments() has just found the address segment to be in registered memory. */
	if (u_unlikely(is_atomic(wqe)) && vi_wqe_remote(wqe)->Data.AddressBits % wqe->length != 0)
		return VIP_STATUS_FORMAT_ERROR;
	return u_likely(total == vi_wqe_answer_bytes(wqe)) ? 0 : VIP_STATUS_LENGTH_ERROR;
}

uint32_t vi_desc_check_recv(const struct vi_vi *vi, const struct vi_wqe *wqe, uint64_t bytes)
{
	uint64_t capacity = 0;
	uint32_t bits;

	if (u_unlikely((wqe->control & (VIP_CONTROL_RESERVED | VIP_CONTROL_OP_MASK)) != 0 ||
		       wqe->segs > VI_MAX_SEGMENTS))
		return VIP_STATUS_FORMAT_ERROR;
	bits = check_segments(vi, wqe, VI_WRITE, bytes, &capacity);
	if (u_unlikely(bits != 0))
		return bits;
	return u_likely(bytes <= capacity) ? 0 : VIP_STATUS_LENGTH_ERROR;
}
