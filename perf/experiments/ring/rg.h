/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The raw link and the published protocol, on ports with the model.
 *
 * The hosts of a ring are threads of one process.  All times are those of the
 * profile, in nanoseconds.
 */
#ifndef RG_H
#define RG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port_emu.h"
#include "ring_error.h"

#define RG_HOSTS_MAX 8u
#define RG_THREADS_MAX 8u
#define RG_LANES_MAX (2 * RG_HOSTS_MAX)
#define RG_CALLERS 8u /* puts that a host has asked for at any time, with any number of threads */
#define RG_SPADS 8u
#define RG_BYTES_MAX (UINT64_C(4) << 20)

/* ---- rg_fabric.c: hosts in a ring ---- */

struct rg_host {
	struct port_emu_host *emu;
	struct port *left;
	struct port *right;
};

struct rg_fabric {
	unsigned int hosts;
	struct rg_host host[RG_HOSTS_MAX];
};

/*
 * Starts `hosts` hosts; kinds[i] is that of both ports of the link to the right of host i.  0, or -errno after printing
 * the reason.
 */
int rg_fabric_open(struct rg_fabric *f, unsigned int hosts, const char (*kinds)[PORT_KIND_MAX]);
void rg_fabric_close(struct rg_fabric *f);

/* ---- rg_lane.c: one direction of one link ---- */

/* The content of the scratchpads for a transfer. */
struct rg_meta {
	uint32_t kind; /* enum rg_kind */
	uint32_t thread;
	uint32_t source;
	uint32_t target;
	uint32_t seq;
	uint32_t offset_lines; /* in the heap of the target, in lines of 64 bytes */
	uint32_t bytes;
	uint32_t caller;
};
_Static_assert(sizeof(struct rg_meta) == RG_SPADS * sizeof(uint32_t), "one word a scratchpad");

enum rg_kind { RG_DATA = 1, RG_ACK };

/* The parts of the time of transfers. */
struct rg_split {
	int64_t setup;	   /* address and descriptor */
	int64_t wait;	   /* for a free doorbell: window slot and scratchpads */
	int64_t data;	   /* into the window */
	int64_t meta;	   /* through the scratchpads */
	int64_t interrupt; /* from the doorbell until the metadata was read */
};

/* Written by the receiver into memory of the sender. */
struct rg_words {
	_Atomic uint64_t taken;			   /* transfers whose metadata was read */
	_Atomic uint64_t released[RG_THREADS_MAX]; /* slots given back */
};

struct rg_mem {
	struct port_slice slice;
	int fd; /* the writer's */
	struct port_map in;
	struct port_map out;
};

struct rg_lane {
	struct port *from;
	struct port *to;
	unsigned int slots;
	size_t slot_bytes;
	struct rg_mem window; /* of `to`: the slots */
	struct rg_mem words;  /* of `from`: struct rg_words */
	pthread_mutex_t spads;
	uint64_t issued; /* transfers whose metadata was written; under `spads` */
	_Atomic int64_t rung_at;
	pthread_mutex_t slot[RG_THREADS_MAX];
	uint64_t used[RG_THREADS_MAX]; /* under slot[i] */
	uint64_t taken;		       /* the receiver's */
	uint64_t released[RG_THREADS_MAX];
	int64_t interrupts_ns;
};

/* Both ports belong to one link.  0, or -errno after printing the reason. */
int rg_lane_open(struct rg_lane *l, struct port *from, struct port *to, unsigned int slots,
		 size_t slot_bytes);
void rg_lane_close(struct rg_lane *l);

static inline uint8_t *rg_slot_in(const struct rg_lane *l, unsigned int slot)
{
	return (uint8_t *)l->window.in.base + slot * l->slot_bytes;
}

static inline uint8_t *rg_slot_out(const struct rg_lane *l, unsigned int slot)
{
	return (uint8_t *)l->window.out.base + slot * l->slot_bytes;
}

/* Stores into the sender's words, from the receiver's side. */
void rg_word_store(struct rg_lane *l, _Atomic uint64_t *word, uint64_t v);
struct rg_words *rg_words(const struct rg_lane *l);

/* Waits until *word is at least v: polls, with sleeps that are short for the profile. */
void rg_word_wait(struct port *p, _Atomic uint64_t *word, uint64_t v);

/*
 * The published protocol's transfer, through slot and doorbell bit meta->thread: address set-up,
 * a free doorbell, data into the window, metadata through the scratchpads, the interrupt.
 * Adds to *split, which may be NULL.
 */
void rg_transfer(struct rg_lane *l, const struct rg_meta *meta, const void *data,
		 struct rg_split *split);
/* A transfer without data, so without a slot. */
void rg_signal(struct rg_lane *l, const struct rg_meta *meta);
/* The interrupt handler: waits for a doorbell, reads the metadata.  False when *stop. */
bool rg_take(struct rg_lane *l, struct rg_meta *meta, const atomic_bool *stop);
void rg_release(struct rg_lane *l, unsigned int slot);

/* ---- experiments ---- */

struct rg_task {
	const char *experiment;
	const char *profile; /* one for all links, or one for each, with commas between */
	bool baseline;
	bool show; /* the profile is to be printed only */
	unsigned int hosts;
	unsigned int threads;
	unsigned int links;
	unsigned int first; /* E1, E2: number of the first of them */
	uint64_t bytes;
	uint64_t count; /* transfers of each sender, puts of each caller */
	unsigned int dilation;
};

struct rg_result {
	double value;
	const char *unit;
	double rate;	       /* E3 and E4 of the published protocol: GB/s of one host; else 0 */
	struct rg_split split; /* of one transfer; all 0 where it is not known */
};

/* E1, E2 and raw E4: senders that stream over some lanes.  GB/s of one link, the mean. */
int rg_rate(const struct rg_task *t, struct rg_fabric *f, struct rg_result *out);
/* Raw E3: all hosts store to their neighbours, which answer.  Microseconds. */
int rg_echo(const struct rg_task *t, struct rg_fabric *f, struct rg_result *out);
/* E3 and E4 of the published protocol: puts round the ring.  Microseconds, and the rate. */
int rg_put(const struct rg_task *t, struct rg_fabric *f, struct rg_result *out);
/* The published barrier of all hosts, by doorbells.  Microseconds. */
int rg_barrier(const struct rg_task *t, struct rg_fabric *f, struct rg_result *out);

#endif
