/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual interfaces: creation and destruction, attributes, states. */
#ifndef VI_VI_H
#define VI_VI_H

#include <stdbool.h>
#include <stdint.h>

#include "vi_objects.h"
#include "vi_pool.h"
#include "vipl.h"
#include "vipl_ext.h"

/*
 * Makes a VI in the Idle state; the CQs may be NULL.  -EPROTOTYPE, -EMSGSIZE, -EDOM, -EKEYREJECTED or -EACCES for an
 * attribute; -ENOSPC: too many VIs or handles; -ENOMEM.  *out is set only with 0, and not held.  The caller holds the
 * CQs, which are of the same NIC.  Takes nic->lock and the locks of both CQs.
 */
int vi_vi_create(struct vi_nic *nic, const VIP_VI_ATTRIBUTES *attrs, struct vi_cq *send_cq,
		 struct vi_cq *recv_cq, struct vi_vi **out);
/*
 * -EISCONN: not Idle; -EBUSY: descriptors left, or a thread is inside a call; -EINVAL: stale id.  Cancels armed
 * handlers, and waits for a running one unless called from it.  Takes both queue locks, those of the CQs and
 * nic->lock.
 */
int vi_vi_destroy(struct vi_vi *vi, uint64_t id);
/*
 * Changes the attributes.  -EISCONN: not Idle; or the error for an attribute, as vi_vi_create(), and nothing was
 * changed.  Takes nic->lock, then both queue locks.
 */
int vi_vi_set(struct vi_vi *vi, const VIP_VI_ATTRIBUTES *attrs);
/* Fills all outputs, none of them NULL, as they are at one moment.  Takes both queue locks. */
void vi_vi_query(struct vi_vi *vi, VIP_VI_STATE *state_out, VIP_VI_ATTRIBUTES *attrs_out,
		 bool *send_empty_out, bool *recv_empty_out);

/* Sets what VipxCQTake() gives as the context of completions of this VI.  Takes both queue locks. */
void vi_vi_set_context(struct vi_vi *vi, void *context);

/* The VI of a handle, held until vi_ref_put(&vi->ref), or NULL. */
struct vi_vi *vi_vi_get(const void *handle);

/*
 * Stores the state, which is not checked, and the limit for send_unqueued(); flushes nothing.  Caller holds both queue
 * locks; a VI that becomes Connected has its `fast`.
 */
void vi_set_state(struct vi_vi *vi, VIP_VI_STATE state);

/* Takes both queue locks, rx first. */
void vi_lock_both(struct vi_vi *vi);
void vi_unlock_both(struct vi_vi *vi);

#define VI_BREAK_RAISE 1u /* raises `event`, once */
#define VI_BREAK_QUIET 2u /* the default handler does not log that event: nothing was lost */
/* The provider completes or flushes the entries of the send queue later. */
#define VI_BREAK_KEEP_SENDS 4u

/*
 * Moves the VI to the Error state and flushes both queues with DESC_FLUSHED.  Does nothing unless Connected.  `how`:
 * VI_BREAK_ bits; `event` is raised only with VI_BREAK_RAISE.  Caller holds both queue locks.
 */
void vi_break(struct vi_vi *vi, uint32_t how, VIP_ERROR_CODE event);

/*
 * Gives the counters of one VI or, if `vi` is NULL, the sums of the NIC, with those of VIs that are gone and of the
 * provider.  Sets out->Size.  Takes both queue locks of each VI, for the NIC also nic->lock.
 */
void vi_nic_counters(struct vi_nic *nic, struct vi_vi *vi, VIPX_COUNTERS *out);

extern struct vi_pool vi_vi_pool;

#endif
