/* SPDX-License-Identifier: BSD-2-Clause */
/* Fragments in queues and on link directions. */
#ifndef SIM_WIRE_H
#define SIM_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim.h"
#include "sim_engine.h"

/* A fragment of a flow, or credit for a part of it on the way back. */
struct sim_frag {
	struct sim_frag *next;
	struct sim_flow *flow;
	double due;	   /* when it has crossed the link that it is on */
	unsigned int hops; /* that it has made */
	uint32_t payload;
	uint32_t slots, bytes; /* credit */
	bool is_credit;
	bool asks; /* credit is to be given at once */
};

/* First in, first out; the reader sleeps while it is empty. */
struct sim_queue {
	struct sim_frag *head, **tail;
	sg_sem_t filled;
};

typedef void sim_arrive_fn(void *arg, struct sim_frag *frag);

/* A link direction: one fragment at a time is on it, and each arrives its latency later. */
struct sim_wire {
	unsigned int route;
	double latency;
	struct sim_queue waiting; /* for the DMA engine */
	struct sim_queue flying;
	sg_sem_t idle;
	sim_arrive_fn *arrive;
	void *arg;
};

void sim_queue_init(struct sim_queue *q);
void sim_queue_put(struct sim_queue *q, struct sim_frag *frag);
/* *slept, if not NULL: the queue was empty. */
struct sim_frag *sim_queue_get(struct sim_queue *q, bool *slept);

/* 0 or -errno.  Each fragment is handed to `arrive`. */
int sim_wire_open(struct sim_wire *w, unsigned int route, double latency, bool has_dma,
		  sim_arrive_fn *arrive, void *arg);
/* The caller is busy until the fragment has left, ... */
void sim_wire_store(struct sim_wire *w, struct sim_frag *frag);
/* ... or leaves it to the DMA engine. */
void sim_wire_post(struct sim_wire *w, struct sim_frag *frag);

#endif
