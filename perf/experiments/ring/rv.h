/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VIPL programs of the ring experiments, on a fabric that is up: all hosts are threads of one
 * process, each with a NIC of its own.  Public headers only.
 *
 * The fabric's links are slower than their profile by the dilation; all results are divided by it.
 */
#ifndef RV_H
#define RV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <vipl.h>
#include <vipl_ext.h>

#include "ring_error.h"

#define RV_HOSTS_MAX 64u
#define RV_CALLERS 8u /* puts that a host has asked for at any time */

struct rv_task {
	const char *experiment;
	unsigned int number; /* of the experiment, from 0 */
	unsigned int hosts;
	unsigned int threads; /* transfer threads of the agents; only reported */
	unsigned int links;
	unsigned int first; /* E1, E2: number of the first of them */
	unsigned int hops;
	uint64_t bytes;
	uint64_t count;
	unsigned int dilation;
	unsigned int post_ns; /* processor time of a post and its completion, charged for each */
};

struct rv_result {
	double value;
	const char *unit;
	double rate; /* E3, E4: GB/s of one host; else 0 */
};

/* ---- rv_path.c ------------------------------------------------------------------------------ */

struct rv_host {
	VIP_NIC_HANDLE nic;
	VIP_NIC_ATTRIBUTES attrs;
	VIP_MEM_HANDLE pages_handle;
	pthread_t mover;
	atomic_bool stop;
	long nap_ns;
	bool moves;
	atomic_bool lost;
};

/* A connected pair of VIs, and memory of the one end that the other writes. */
struct rv_path {
	struct rv_host *from;
	struct rv_host *to;
	unsigned int number; /* its discriminator */
	uint64_t bytes;
	unsigned int depth; /* writes that may be under way, each with a buffer of its own */
	uint64_t posted;
	VIP_VI_HANDLE out;
	VIP_VI_HANDLE in;
	uint8_t *target; /* window memory of `to` */
	VIP_MEM_HANDLE target_handle;
	uint8_t *data; /* of `from`: the buffers, then pages of descriptors */
	VIP_MEM_HANDLE data_handle;
	uint8_t *answer; /* of `to`: a page with descriptors and data */
	VIP_MEM_HANDLE answer_handle;
};

/* 0, or -1 after saying why. */
int rv_host_open(struct rv_host *h, unsigned int number);
void rv_host_close(struct rv_host *h);

/* Polls all VIs of the host, and sleeps so many nanoseconds between polls. */
int rv_host_move(struct rv_host *h, long nap_ns);

int rv_path_open(struct rv_path *w, struct rv_host *from, struct rv_host *to, unsigned int number,
		 uint64_t bytes, unsigned int depth, VIP_RELIABILITY_LEVEL level);
void rv_path_close(struct rv_path *w);

/* Writes the message, which ends with the number n, into the target's memory. */
int rv_write_post(struct rv_path *w, uint64_t n);
/* The completion of the oldest write: 1 done, 0 not yet, -1 after printing the reason. */
int rv_write_done(struct rv_path *w);
uint64_t rv_target_word(const struct rv_path *w);
/* Packets that the writing VI put into slots so far; are its hosts joined by one link? */
uint64_t rv_slots_sent(const struct rv_path *w);
bool rv_neighbours(const struct rv_path *w);

/* Sends of the first 64 bytes, in either direction; the other end must have posted a receive. */
int rv_send(struct rv_path *w, bool back);
int rv_receive_post(struct rv_path *w, bool back);
int rv_receive_done(struct rv_path *w, bool back); /* as rv_write_done() */

int64_t rv_now(void);
void rv_nap(long ns); /* 0: yields */
/* Sleeps as long as a processor slower by the dilation would work; short times add up. */
void rv_charge(int64_t *owed, int64_t ns);

/* ---- rv_run.c ---- */

/* E1, E2: RDMA writes to neighbours over some links at once; GB/s of one link, the mean. */
int rv_rate(const struct rv_task *t, struct rv_result *out);
/* E3, E4: RDMA writes of all hosts to all others.  Microseconds, and the rate. */
int rv_put(const struct rv_task *t, struct rv_result *out);
/* Half of the round trip of 64 bytes over `hops` links; microseconds. */
int rv_hop(const struct rv_task *t, struct rv_result *out);
/* The processor time of one RDMA write of 64 bytes, nanoseconds. */
int rv_cost(const struct rv_task *t, struct rv_result *out);

#endif
