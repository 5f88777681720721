/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to the agent.  A message for which the socket has no room is held and sent later, so
 * that a caller does not wait for the agent.
 */
#ifndef NVI_OUT_H
#define NVI_OUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The socket, and the messages for which it had no room; these are under the lock. */
struct nvi_out {
	int sock;
	pthread_mutex_t lock;
	pthread_cond_t room;
	struct nvi_out_msg *first, **end;
	uint32_t count;
	bool runs, joinable; /* the thread that sends them */
	pthread_t thread;
};

/* Makes a queue without a socket; the caller sets `sock` before it sends. */
void nvi_out_init(struct nvi_out *o);
/*
 * Waits for the end of the thread, by which held messages are freed; the caller has shut down the socket before, and
 * closes it.
 */
void nvi_out_fini(struct nvi_out *o);
/*
 * Sends, or holds a copy of the message for later; waits only while the limit of held messages is reached.  0, -ENOMEM,
 * or the socket's -errno; a held message that cannot be sent later is dropped, without an error.
 */
int nvi_out_send(struct nvi_out *o, const void *msg, uint32_t len);
/* Sends at once or not at all: -EAGAIN if there is no room, or older messages are held; else 0 or -errno. */
int nvi_out_try(struct nvi_out *o, const void *msg);

#endif
