/* SPDX-License-Identifier: BSD-2-Clause */
/* The arithmetic of the model, on times that the caller gives: no clock is read here. */
#ifndef PORT_MODEL_TIME_H
#define PORT_MODEL_TIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "port_model_profiles.h"

/* No correct sender is so far ahead of its link; a value that says so is garbage. */
#define MODEL_BACKLOG_MAX INT64_C(10000000000)
/* The most time that a piece of a store may take on the link, so that a hundred senders can queue for it. */
#define MODEL_PIECE_NS_MAX (MODEL_BACKLOG_MAX / 100)
#define MODEL_PIECE 4096u /* a longer store is queued, and lands, in pieces */

/* The state of one port that all processes of a host share. */
struct model_link {
	/* when the link has sent all that was queued; written by any sender */
	_Atomic int64_t free_at;
};

struct model_time {
	const struct port_model_profile *profile;
	uint32_t dilation;
};

/* The length of n bytes on the link: each packet has a header. */
static inline uint64_t model_wire_bytes(const struct port_model_profile *p, uint64_t n)
{
	uint64_t packets = (n + p->payload_bytes - 1) / p->payload_bytes;

	return n + packets * p->packet_bytes;
}

static inline int64_t model_dilated(const struct model_time *t, int64_t ns)
{
	return ns * t->dilation;
}

/* Returns how long the link is busy with so many bytes of packets. */
static inline int64_t model_bytes_ns(const struct model_time *t, uint64_t wire)
{
	return (int64_t)(wire * 1000000000 * t->dilation / t->profile->line_rate);
}

/* Returns how long the link is busy with a store of n bytes, at most a few KiB. */
static inline int64_t model_send_ns(const struct model_time *t, uint64_t n)
{
	return model_bytes_ns(t, model_wire_bytes(t->profile, n));
}

/* Returns the greatest dilation of a profile, at most `most`: its pieces take no longer than MODEL_PIECE_NS_MAX. */
static inline uint32_t model_dilation_max(const struct port_model_profile *p, uint32_t most)
{
	const struct model_time t = { p, 1 };
	int64_t max = MODEL_PIECE_NS_MAX / (model_send_ns(&t, MODEL_PIECE) + 1);

	return max < most ? (uint32_t)max : most;
}

/* Returns how long one processor takes to copy so many bytes. */
static inline int64_t model_copy_ns(const struct port_model_profile *p, uint64_t n)
{
	return (int64_t)((double)n * 1e9 / (double)p->copy_rate);
}

/*
 * Takes the link at `now`, after all earlier senders, for `busy`; returns when the last bit has
 * left.
 */
static inline int64_t model_reserve(struct model_link *link, int64_t now, int64_t busy)
{
	int64_t seen = atomic_load_explicit(&link->free_at, memory_order_relaxed);
	int64_t end;

	do {
		end = seen > now && seen - now < MODEL_BACKLOG_MAX ? seen : now;
		end += busy;
	} while (!atomic_compare_exchange_weak_explicit(
		&link->free_at, &seen, end, memory_order_relaxed, memory_order_relaxed));
	return end;
}

/*
 * Returns when a sender may continue whose store leaves at `end`: before that, the adapter must
 * have room to buffer it.
 */
static inline int64_t model_accepted_at(const struct model_time *t, int64_t end)
{
	return end - model_send_ns(t, t->profile->posted_bytes);
}

static inline int64_t model_lands_at(const struct model_time *t, int64_t end)
{
	return end + model_dilated(t, t->profile->latency_ns);
}

static inline int64_t model_interrupts_at(const struct model_time *t, int64_t end)
{
	return model_lands_at(t, end) + model_dilated(t, t->profile->interrupt_ns);
}

/*
 * Returns when a thread ends work of length `busy` that it begins at `now`; its work before ended
 * at `before`.  A thread that woke up late, by less than `late`, is not charged for that: its work
 * counts from the time at which it should have been awake.
 */
static inline int64_t model_busy_until(int64_t before, int64_t now, int64_t busy, int64_t late)
{
	bool in_turn = before <= now ? now - before < late : before - now < MODEL_BACKLOG_MAX;

	return (in_turn ? before : now) + busy;
}

#endif
