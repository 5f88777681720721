/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of a team send each other messages of one cache line.  A member may have OSH_MSG_SLOTS messages under way to
 * another, and learns how many of them were taken from the messages of the other direction; where there
 * are none the receiver tells it after every OSH_MSG_SLOTS / 2.
 */
#include <string.h>

#include "osh_far.h"
#include "osh_map.h"
#include "osh_msg.h"
#include "osh_wait.h"

/* Notes in the flow where the other member's inbox for this one is, and maps it if that is near. */
static OSH_COLD void open_flow(const char *fn, struct osh_team *team, int to)
{
	size_t offset = team->offsets[to] + (size_t)team->me * sizeof(struct osh_inbox);
	struct osh_flow *flow = &team->flows[to];
	int pe = team->pes[to];

	flow->remote = osh_pe.peers[pe].seg[OSH_HEAP].base + offset;
	if (osh_map(fn, pe))
		flow->theirs = (struct osh_inbox *)(osh_pe.peers[pe].at[OSH_HEAP] + offset);
}

/* Stores n bytes at offset `at` of this member's inbox at a far one, whose flow is open; they may arrive later. */
static void put_far(const char *fn, struct osh_team *team, int to, size_t at, const void *data,
		    size_t n)
{
	int pe = team->pes[to];
	struct osh_target t = { pe, team->flows[to].remote + at,
				osh_pe.peers[pe].seg[OSH_HEAP].handle };

	osh_far_put(fn, &osh_ctx_internal, &t, data, n, false);
}

/* Returns what osh_wait() takes to wait for a member: it ends the job if the member has left that. Does not wait. */
static inline struct osh_wait msg_wait(const char *fn, const struct osh_team *team, int member)
{
	struct osh_wait w = OSH_WAIT_PE(fn, NULL, team->pes[member]);

	w.at_end = team->kind == OSH_KIND_END;
	return w;
}

/* As memcpy(), but no call for n = 0: most messages have no data. */
static inline void copy(void *to, const void *from, size_t n)
{
	if (n > 0)
		memcpy(to, from, n);
}

/* Notes how many messages of this member the other has taken; ignores a number below the last, or of more than sent. */
static void note_taken(struct osh_flow *flow, uint64_t taken)
{
	/* A count of a peer: one that cannot be is not used. */
	if ((int64_t)(taken - flow->free) > 0 && taken <= flow->sent)
		flow->free = taken;
}

/* Ends the job: what a member has stored here is no message. */
static _Noreturn OSH_COLD void overwritten(const char *fn, const struct osh_team *team, int from)
{
	osh_fatal("%s: a message of PE %d was overwritten: some PE stores into the "
		  "library's part of the symmetric heap",
		  fn, team->pes[from]);
}

/* Notes the count of taken messages that a member has stored here; what is no such count ends the job. */
static OSH_COLD void read_ack(const char *fn, struct osh_team *team, int to)
{
	/* R: pairs with tell_taken() at that member: it has read the slots that it counts. */
	uint64_t taken = atomic_load_explicit(&team->inboxes[to].ack.taken, memory_order_acquire);

	if (taken >> 56 != OSH_KIND_TAKEN && taken != osh_counted(OSH_KIND_EMPTY, 0))
		overwritten(fn, team, to);
	note_taken(&team->flows[to], taken & OSH_COUNT_MASK);
}

/* May one more message be sent to a member? Does not wait; an acknowledgement that is none ends the job. */
static inline bool has_room(const char *fn, struct osh_team *team, int to)
{
	struct osh_flow *flow = &team->flows[to];

	if (osh_unlikely(flow->sent - flow->free >= OSH_MSG_SLOTS))
		read_ack(fn, team, to);
	return flow->sent - flow->free < OSH_MSG_SLOTS;
}

void osh_msg_send(const char *fn, struct osh_team *team, int to, const void *data, size_t n)
{
	struct osh_flow *flow = &team->flows[to];
	struct osh_wait w = msg_wait(fn, team, to);
	uint32_t i = (uint32_t)(flow->sent % OSH_MSG_SLOTS);
	uint64_t seq;

	if (osh_unlikely(flow->remote == 0))
		open_flow(fn, team, to);
	while (osh_unlikely(!has_room(fn, team, to)))
		osh_wait(&w);
	osh_wait_end(&w);
	flow->sent++;
	flow->told = flow->taken;
	seq = osh_counted(team->kind, flow->sent);
	if (osh_likely(flow->theirs != NULL)) {
		struct osh_msg *slot = &flow->theirs->slots[i];

		copy(slot->data, data, n);
		atomic_store_explicit(&slot->taken, flow->taken, memory_order_relaxed);
		/* A: data, `taken`, and puts before, then the number; pairs with osh_msg_recv(). */
		atomic_store_explicit(&slot->seq, seq, memory_order_release);
	} else {
		struct osh_msg msg = { .taken = flow->taken, .seq = seq };

		copy(msg.data, data, n);
		put_far(fn, team, to, i * sizeof(msg), &msg, sizeof(msg));
	}
}

/* Stores at a member how many of its messages this one has taken, and notes that it was told. */
static void tell_taken(const char *fn, struct osh_team *team, int from)
{
	struct osh_flow *flow = &team->flows[from];
	uint64_t taken = osh_counted(OSH_KIND_TAKEN, flow->taken);

	flow->told = flow->taken;
	if (osh_unlikely(flow->remote == 0))
		open_flow(fn, team, from);
	/* A: the reads of the slots before the count; pairs with read_ack(). */
	if (flow->theirs != NULL)
		atomic_store_explicit(&flow->theirs->ack.taken, taken, memory_order_release);
	else
		put_far(fn, team, from, offsetof(struct osh_inbox, ack), &taken, sizeof(taken));
}

/* Ends the job, with a line about `kind`: the next message of a member has that one, not the kind of the team. */
static _Noreturn OSH_COLD void unexpected(const char *fn, const struct osh_team *team, int from,
					  unsigned int kind)
{
	static const char *const names[OSH_KINDS] = {
		[OSH_KIND_SYNC] = "a barrier or sync",
		[OSH_KIND_BROADCAST] = "a broadcast",
		[OSH_KIND_COLLECT] = "a collect or fcollect",
		[OSH_KIND_ALLTOALL] = "an alltoall or alltoalls",
		[OSH_KIND_REDUCE] = "a reduction",
		[OSH_KIND_SCAN] = "a scan",
		[OSH_KIND_TEAM] = "a split of a team",
		[OSH_KIND_SET] = "a collective of another active set",
		[OSH_KIND_CHECK] = "a collective, with SHMEM_DEBUG,",
	};
	int pe = team->pes[from];

	if (kind == OSH_KIND_END)
		osh_wait_in_vain(fn, pe);
	if (kind >= OSH_KINDS || names[kind] == NULL)
		overwritten(fn, team, from);
	if (team->kind == OSH_KIND_END)
		osh_fatal("%s is called while PE %d is in %s", fn, pe, names[kind]);
	osh_fatal("%s: PE %d is in %s instead", fn, pe, names[kind]);
}

/*
 * Returns whether `seq` is that of the next message; false: that of the one that the slot had before, as its place is
 * used again after OSH_MSG_SLOTS.  Any other, also of another kind of collective, ends the job.
 */
static inline bool is_next(const char *fn, const struct osh_team *team, int from, uint64_t seq)
{
	uint64_t next = team->flows[from].taken + 1, count = seq & OSH_COUNT_MASK;
	unsigned int kind = (unsigned int)(seq >> 56);

	if (osh_likely(seq == osh_counted(team->kind, next)))
		return true;
	if (osh_unlikely(count == next))
		unexpected(fn, team, from, kind);
	if (osh_unlikely(count != (next > OSH_MSG_SLOTS ? next - OSH_MSG_SLOTS : 0) || kind == 0))
		overwritten(fn, team, from);
	return false;
}

bool osh_msg_is_there(const char *fn, const struct osh_team *team, int from)
{
	const struct osh_msg *slot =
		&team->inboxes[from].slots[team->flows[from].taken % OSH_MSG_SLOTS];

	return is_next(fn, team, from, atomic_load_explicit(&slot->seq, memory_order_acquire));
}

void osh_msg_recv(const char *fn, struct osh_team *team, int from, void *data, size_t n)
{
	struct osh_flow *flow = &team->flows[from];
	struct osh_msg *slot = &team->inboxes[from].slots[flow->taken % OSH_MSG_SLOTS];
	struct osh_wait w = msg_wait(fn, team, from);

	/* R: pairs with osh_msg_send() at that member; its put, if it is far, stores the number last. */
	while (!is_next(fn, team, from, atomic_load_explicit(&slot->seq, memory_order_acquire)))
		osh_wait(&w);
	osh_wait_end(&w);
	copy(data, slot->data, n);
	/* The member had read the slots before it stored this count, and the number was stored after it. */
	note_taken(flow, atomic_load_explicit(&slot->taken, memory_order_relaxed));
	flow->taken++;
	if (osh_unlikely(flow->taken - flow->told >= OSH_MSG_SLOTS / 2 && !team->ends))
		tell_taken(fn, team, from);
}
