/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory in which members of a team receive short messages: its layout, which all PEs agree on. */
#ifndef OSH_INBOX_H
#define OSH_INBOX_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "osh_base.h"

/*
 * What a message is about.  A member that gets a message of another kind than it waits for is in another routine
 * than the sender.  None is 0, so a word of zeros is no message, and not what a slot has before the first either.
 */
enum osh_kind {
	OSH_KIND_EMPTY = 1, /* before the first */
	OSH_KIND_TAKEN,	    /* a count of messages that were taken */
	OSH_KIND_END,	    /* the barrier at the end of a PE */
	OSH_KIND_SYNC,
	OSH_KIND_BROADCAST,
	OSH_KIND_COLLECT,
	OSH_KIND_ALLTOALL,
	OSH_KIND_REDUCE,
	OSH_KIND_SCAN,
	OSH_KIND_TEAM,
	OSH_KIND_SET,
	OSH_KIND_CHECK, /* what SHMEM_DEBUG adds to each routine */
	OSH_KINDS
};

/* A count of messages, with a kind in the upper byte. */
#define OSH_COUNT_MASK (UINT64_MAX >> 8)
static inline uint64_t osh_counted(enum osh_kind kind, uint64_t count)
{
	return (uint64_t)kind << 56 | count;
}

/*
 * A message of a collective: one cache line, of which the last word is stored last.  `seq` has its kind, and the
 * number of the message, counted from 1 between two members in one direction; `taken` is how many messages of the
 * other direction its sender has taken.
 *
 * Writer: the sending member alone, which stores here when its account says that the slot was taken.
 */
#define OSH_MSG_DATA 48u
struct osh_msg {
	uint8_t data[OSH_MSG_DATA];
	_Atomic uint64_t taken;
	_Atomic uint64_t seq;
};
static_assert(sizeof(struct osh_msg) == OSH_CACHE_LINE, "osh_msg");

#define OSH_MSG_SLOTS 8u /* messages of one member that wait at another */

/* What each member has for each other member, in its memory.  Writer: that other member, from its process. */
struct osh_inbox {
	struct osh_msg slots[OSH_MSG_SLOTS];
	struct { /* what that member has taken of this one's, where no message told it; has a kind */
		_Atomic uint64_t taken;
		uint8_t pad[OSH_CACHE_LINE - 8];
	} ack;
};

#endif
