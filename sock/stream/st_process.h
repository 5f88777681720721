/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * st_process.h - what all streams of a process share: the NIC, the helper's list, sleepers, statistics
 */
#ifndef ST_PROCESS_H
#define ST_PROCESS_H

#include "st_state.h"

#define ST_NAMES 64
#define ST_NEVER UINT64_MAX

struct st_sleeper;

struct st_process {
	struct st_lock lock;
	struct st_config config;
	bool ready;	    /* st_init() was called */
	_Atomic bool alone; /* all threads have one processor, or each shares one with a poller */
	uint64_t era;	    /* grows with each fork */
	VIP_NIC_HANDLE nic;
	VIP_NIC_ATTRIBUTES nic_attributes;
	bool nic_failed;
	struct st_stream *streams; /* the helper's */
	struct st_stream *all;
	struct st_wait *waits;
	int helper_fd;
	bool helper_runs;
	_Atomic bool helper_ends; /* set after end_at of st_helper.c */
	pthread_t helper;
	char strangers[ST_NAMES][64]; /* names of no host */
	uint32_t strangers_count;
	_Atomic bool
		all_due; /* the list was locked by the thread that a signal handler has interrupted */
	struct st_lock sleepers_lock;
	struct st_sleeper *sleepers;
	_Atomic uint32_t sleepers_count;
	_Atomic uint64_t changes; /* st_changes() */
};

extern struct st_process st_process;

/* Counted by any thread. */
struct st_counts {
	/* Sums of streams that are gone: each living stream counts its own. */
	_Atomic uint64_t vi_sent, vi_received;
	_Atomic uint64_t tcp_sent, tcp_received, promotions, attempts, given_up, demotions[16],
		wakes_sent, wakes_received, arms, resets, polled, poller_wakes, looks, given,
		given_one_core;
};
extern struct st_counts st_counts;

static inline void st_count(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

/* Counted under a lock: no other thread writes it. */
static inline void st_count_own(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
			      memory_order_relaxed);
}

/* Gives a line, cut at 255 bytes, to st_config.log, if that is set; to be called with no lock held. */
void st_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns the number from which on own descriptors are to lie, out of the program's way but within its limit. */
int st_low_fd(void);

/*
 * The helper looks after the stream, to which its list has a reference, at `due` or sooner.  Takes the process lock; in
 * a signal handler that has interrupted the holder it makes all streams due instead.
 */
void st_look_after(struct st_stream *s, uint64_t due);
/* Wakes the helper's thread; does nothing where none runs. */
void st_helper_wake(void);

/* ---- sleepers ------------------------------------------------------------------------------------------------ */

struct st_sleeper {
	int fd;
	bool listed;
	struct st_stream *stream; /* NULL: any */
	struct st_wait *wait;
	const void *tag; /* see st_sleep_for() */
	uint64_t era;
	struct st_sleeper *next, **prev;
};

/* Wakes sleepers on the stream, or on the wait object; those that registered for any as well; but not this thread. */
void st_kick(struct st_stream *s, struct st_wait *w);
/* Wakes all sleepers on the stream, this thread too, and counts a change. */
void st_kick_all(struct st_stream *s);
/* Counts a change for st_changes(); wakes nobody. */
void st_changed(void);

#endif
