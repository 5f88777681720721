/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control slice of a link: a fifo of records from each agent to the other, the queue before
 * it, heartbeats, and the detection of a neighbour that is silent or does not read.
 *
 * ag_ctl_next() returns the records that came; ag_record.c handles them.  Self has only the queue:
 * this agent handles the records in it.
 */
#ifndef AG_CTL_H
#define AG_CTL_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_link.h"
#include "ag_msg.h"
#include "ag_state.h"
#include "w_ctl.h"

#define AG_CTL_MSG_MAX (W_CTL_MAX - 8) /* bytes of the longest record */
#define AG_CTL_BATCH 256u /* records of one neighbour that are handled before those of others */

/*
 * Allots and maps this host's control slice, empty, and sets the counts of records to 0; the neighbour's slice is
 * mapped by ag_setup.c.  0; or -errno, and there is none.
 */
int ag_ctl_open(struct ag_link *l);

/* Frees this host's control slice and queued records.  Accepts a link without one. */
void ag_ctl_close(struct ag_link *l);

/* Returns the size of a control slice. */
uint32_t ag_ctl_bytes(void);

/*
 * Queues a copy of a record for the neighbour, or on self for this agent.  Drops it while the link
 * is not up.  If more records wait than can wait for a neighbour that reads, or there is no memory,
 * drops the record and marks the link to be taken down (ag_link_break()).
 */
void ag_ctl_send(struct ag_link *l, const void *msg);

/*
 * Is so much queued that requests of processes have to wait?  Other records, such as answers, are
 * still queued.
 */
bool ag_ctl_full(const struct ag_link *l);

/*
 * Is so much queued that requests to connect have to wait?  They wait earlier than others, because
 * a request that was not sent can be cancelled without a record.
 */
bool ag_ctl_busy(const struct ag_link *l);

/* Takes the oldest message out of the queue, which is not empty.  The caller frees it. */
struct ag_msg *ag_ctl_pop(struct ag_link *l);

/* Reads the neighbour's credit.  False: the link is down or is to be reset. */
bool ag_ctl_take_credit(struct ag_link *l);

/*
 * Writes link-state updates and queued records, as many as there is credit for, after ag_ctl_take_credit() was true.
 * ag_ctl_ring() tells the neighbour.
 */
void ag_ctl_write(struct ag_link *l);

/* Rings the neighbour's doorbell, if records, or much credit, were written since it was last rung. */
void ag_ctl_ring(struct ag_link *l);

/*
 * Copies the next record into `copy` (AG_CTL_MSG_MAX bytes, aligned to 8) and checks it.  False:
 * there is none, or it is malformed, and then the link is marked to be reset.  Returns the same
 * record again until ag_ctl_consumed() is called.
 */
bool ag_ctl_next(struct ag_link *l, void *copy);

/*
 * The record that ag_ctl_next() returned has been handled: goes on to the next one, and the neighbour counts as heard
 * at `now`.  Calls ag_ctl_return_credit() once half of the slice's records were consumed that the neighbour does not
 * know of.
 */
void ag_ctl_consumed(struct ag_link *l, int64_t now);

/*
 * Writes how many records were consumed to the neighbour, if it does not know.  It does not ring: if these are many,
 * the next ag_ctl_ring() does.
 */
void ag_ctl_return_credit(struct ag_link *l);

/* Has nothing come for AG_SILENCE_NS, though connections or circuits use the link? */
bool ag_ctl_silent(const struct ag_link *l, int64_t now);

/*
 * While connections or circuits use the link: queues a heartbeat when it is due, and breaks a silent link.  Returns the
 * next deadline, or U_NEVER while none uses it.
 */
int64_t ag_ctl_beat_timer(struct ag_link *l, int64_t now);

/*
 * Breaks a link whose neighbour consumes nothing, and rings again for records that were not
 * consumed; ag_ctl_take_credit() comes before.  Returns the next deadline, or U_NEVER if nothing waits.
 */
int64_t ag_ctl_queue_timer(struct ag_link *l, int64_t now);

#endif
