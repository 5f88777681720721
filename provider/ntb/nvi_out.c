/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket to the agent holds about two hundred messages, and a process does not wait for room in
 * it while the agent is stopped or overloaded.  A message that does not fit is held, and sent by a
 * thread (vi-out) that lives as long as there is something to send.  Messages stay in order.  When
 * HELD_MAX of them are held the caller waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nvi_out.h"
#include "u_thread.h"
#include "w_ctl.h"

#define HELD_MAX 8192u

struct nvi_out_msg {
	struct nvi_out_msg *next;
	uint8_t bytes[];
};

void nvi_out_init(struct nvi_out *o)
{
	memset(o, 0, sizeof(*o));
	o->sock = -1;
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->room, NULL);
	o->end = &o->first;
}

/* Waits for the end of the thread, if one was started and not joined yet. */
static void join_thread(struct nvi_out *o)
{
	if (o->joinable)
		u_thread_join(o->thread);
	o->joinable = false;
}

void nvi_out_fini(struct nvi_out *o)
{
	join_thread(o);
	pthread_mutex_destroy(&o->lock);
	pthread_cond_destroy(&o->room);
}

/* Removes the oldest held message, which was sent or cannot be sent.  Caller holds the lock. */
static void drop_first(struct nvi_out *o)
{
	struct nvi_out_msg *m = o->first;

	o->first = m->next;
	if (o->first == NULL)
		o->end = &o->first;
	o->count--;
	free(m);
	pthread_cond_broadcast(&o->room);
}

/* The thread: sends held messages in order, and ends when none is left.  After a failure it drops the rest. */
static void *out_thread(void *arg)
{
	struct nvi_out *o = arg;
	const struct nvi_out_msg *m;
	int err = 0;

	pthread_mutex_lock(&o->lock);
	while ((m = o->first) != NULL) {
		/*
		 * The message stays in the list while it is sent, so that no other one is sent
		 * before it.
		 */
		if (err == 0) {
			pthread_mutex_unlock(&o->lock);
			err = w_ctl_send(o->sock, m->bytes, NULL, 0);
			pthread_mutex_lock(&o->lock);
		}
		drop_first(o);
	}
	o->runs = false;
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

/* Starts the thread.  An earlier one sends nothing more, so joining that takes no time.  Caller holds the lock. */
static int start_thread(struct nvi_out *o)
{
	int err;

	join_thread(o);
	err = u_thread_start(&o->thread, "vi-out", out_thread, o);
	o->joinable = o->runs = err == 0;
	return err;
}

/*
 * Appends a copy of the message to those held, and starts the thread if none runs.  0 or -errno: then it is not held.
 * Caller holds the lock.
 */
static int hold(struct nvi_out *o, const void *msg, uint32_t len)
{
	struct nvi_out_msg *m = malloc(sizeof(*m) + len);
	int err;

	if (m == NULL)
		return -ENOMEM;
	m->next = NULL;
	memcpy(m->bytes, msg, len);
	*o->end = m;
	o->end = &m->next;
	o->count++;
	err = o->runs ? 0 : start_thread(o);
	if (err != 0)
		drop_first(o); /* the message is the only one, since no thread ran */
	return err;
}

int nvi_out_send(struct nvi_out *o, const void *msg, uint32_t len)
{
	int err;

	pthread_mutex_lock(&o->lock);
	while (o->count >= HELD_MAX)
		pthread_cond_wait(&o->room, &o->lock);
	err = o->first != NULL ? -EAGAIN : w_ctl_try(o->sock, msg);
	if (err == -EAGAIN)
		err = hold(o, msg, len);
	pthread_mutex_unlock(&o->lock);
	return err;
}

int nvi_out_try(struct nvi_out *o, const void *msg)
{
	int err;

	pthread_mutex_lock(&o->lock);
	err = o->first != NULL ? -EAGAIN : w_ctl_try(o->sock, msg);
	pthread_mutex_unlock(&o->lock);
	return err;
}
