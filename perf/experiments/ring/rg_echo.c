/* SPDX-License-Identifier: BSD-2-Clause */
/* Every host stores to its right neighbour, which answers with a word: the bound of a link. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port_model.h"
#include "rg.h"

struct echo {
	const struct rg_task *task;
	struct rg_lane lane;
	pthread_barrier_t *start;
	uint8_t *data;
	pthread_t sender;
	pthread_t answerer;
	int64_t ns;
};

static _Atomic uint64_t *last_word(struct echo *e)
{
	return (_Atomic uint64_t *)(rg_slot_in(&e->lane, 0) + e->task->bytes - sizeof(uint64_t));
}

static void *answerer(void *arg)
{
	struct echo *e = arg;

	for (uint64_t n = 1; n <= e->task->count; n++) {
		rg_word_wait(e->lane.to, last_word(e), n);
		rg_release(&e->lane, 0);
	}
	return NULL;
}

static void *sender(void *arg)
{
	struct echo *e = arg;
	struct u_out *out = &e->lane.window.out.out;
	size_t body = e->task->bytes - sizeof(uint64_t);
	uint8_t *to = rg_slot_out(&e->lane, 0);
	int64_t began;

	pthread_barrier_wait(e->start);
	began = port_model_now_ns(e->lane.from);
	for (uint64_t n = 1; n <= e->task->count; n++) {
		u_out_copy(out, to, e->data, body);
		u_out_store64(out, (_Atomic uint64_t *)(to + body), n);
		u_out_fence(out);
		rg_word_wait(e->lane.from, &rg_words(&e->lane)->released[0], n);
	}
	e->ns = port_model_now_ns(e->lane.from) - began;
	return NULL;
}

static void start_all(struct echo *e, unsigned int n)
{
	int err = 0;

	for (unsigned int i = 0; i < n && err == 0; i++) {
		err = pthread_create(&e[i].answerer, NULL, answerer, &e[i]);
		if (err == 0)
			err = pthread_create(&e[i].sender, NULL, sender, &e[i]);
	}
	if (err != 0) {
		ring_print_error("a thread was sought and there is none: %s", strerror(err));
		exit(1);
	}
}

static int echo_open(struct echo *e, const struct rg_task *t, struct rg_fabric *f, unsigned int i,
		     pthread_barrier_t *start)
{
	e->task = t;
	e->start = start;
	e->data = calloc(1, t->bytes);
	if (e->data == NULL)
		return -ENOMEM;
	return rg_lane_open(&e->lane, f->host[i].right, f->host[(i + 1) % f->hosts].left, 1,
			    t->bytes);
}

int rg_echo(const struct rg_task *t, struct rg_fabric *f, struct rg_result *out)
{
	struct echo e[RG_HOSTS_MAX] = { 0 };
	pthread_barrier_t start;
	unsigned int open = 0;
	int64_t sum = 0;
	int err = 0;

	pthread_barrier_init(&start, NULL, f->hosts);
	for (; open < f->hosts; open++) {
		err = echo_open(&e[open], t, f, open, &start);
		if (err != 0)
			break;
	}
	if (err == 0) {
		start_all(e, open);
		for (unsigned int i = 0; i < open; i++) {
			pthread_join(e[i].sender, NULL);
			pthread_join(e[i].answerer, NULL);
			sum += e[i].ns;
		}
		out->value = (double)sum / (double)(open * t->count) / 1e3;
		out->unit = "us";
	}
	for (unsigned int i = 0; i < open; i++)
		rg_lane_close(&e[i].lane);
	for (unsigned int i = 0; i < f->hosts; i++)
		free(e[i].data);
	pthread_barrier_destroy(&start);
	return err;
}
