/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection with another oshrun: frames of run_wire.h, in and out. */
#ifndef RUN_LINK_H
#define RUN_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run_wire.h"

struct run_link {
	int in, out;		   /* may be one descriptor */
	bool up;		   /* frames come from --serve, not from oshrun */
	uint32_t pes;		   /* that limit their length: of the machine, or of the job */
	struct run_wire_head head; /* of the frame that arrives */
	size_t got;		   /* of that frame, with its head */
	char *data;		   /* of that frame, with a 0 after it */
	/* What has to leave and did not yet; of a connection that does not block. */
	char *queue;
	size_t queued, room;
};

/*
 * A connection over both descriptors, which run_link_destroy() closes. `up`: --serve is at the other end; `pes`: its
 * PEs, or else those of the job, by which frames are limited. NULL: no memory; then the descriptors are the caller's.
 */
struct run_link *run_link_create(int in, int out, bool up, uint32_t pes);

/* Closes the descriptors and frees the connection. What is queued is lost. NULL is none. */
void run_link_destroy(struct run_link *l);

/*
 * Takes a part of a frame.  1: one is whole, in head and data, until the next call; 0: there is nothing more now;
 * -ECONNRESET: the other end is gone; -EPROTO, -EPROTONOSUPPORT: it sends something else, or another version;
 * -ENOMEM.  -EAGAIN: there may be more.
 */
int run_link_pull(struct run_link *l);

/* Queues a frame of two parts, and sends nothing: run_link_push() does.  0; or -ENOMEM with nothing queued. */
int run_link_queue(struct run_link *l, enum run_wire_kind kind, uint32_t arg, const void *a,
		   size_t a_bytes, const void *b, size_t b_bytes);

/*
 * Sends what the other end takes of the queue now, and keeps the rest; where that fails the queue is dropped, which is
 * found by reading.
 */
void run_link_push(struct run_link *l);

#endif
