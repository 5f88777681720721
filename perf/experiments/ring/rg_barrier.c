/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The published barrier: a doorbell bit goes once round the ring, which tells host 0 that all have
 * come, and a second one once round, which releases them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port_model.h"
#include "rg.h"

#define ARRIVED 1u
#define RELEASED 2u
#define WAIT_NS 20000000 /* of one sleep for a doorbell */

struct member {
	const struct rg_task *task;
	struct rg_host *host;
	bool first;
	pthread_barrier_t *start;
	pthread_t thread;
	int64_t ns;
};

static void await_bit(struct member *m, uint32_t bit)
{
	struct port *p = m->host->left;

	for (;;) {
		uint32_t ticket = port_irq_ticket(p->irq);

		if ((port_db_read(p) & bit) != 0)
			break;
		port_irq_wait(p->irq, ticket, bit, WAIT_NS);
	}
	port_db_clear(p, bit);
}

static void pass(struct member *m, uint32_t bit)
{
	if (m->first)
		port_peer_db_ring(m->host->right, bit);
	await_bit(m, bit);
	if (!m->first)
		port_peer_db_ring(m->host->right, bit);
}

static void *member_main(void *arg)
{
	struct member *m = arg;
	int64_t began;

	pthread_barrier_wait(m->start);
	began = port_model_now_ns(m->host->left);
	for (uint64_t n = 0; n < m->task->count; n++) {
		pass(m, ARRIVED);
		pass(m, RELEASED);
	}
	m->ns = port_model_now_ns(m->host->left) - began;
	return NULL;
}

int rg_barrier(const struct rg_task *t, struct rg_fabric *f, struct rg_result *out)
{
	struct member m[RG_HOSTS_MAX] = { 0 };
	pthread_barrier_t start;
	int err = 0;

	pthread_barrier_init(&start, NULL, f->hosts);
	for (unsigned int i = 0; i < f->hosts && err == 0; i++) {
		m[i] = (struct member){ t, &f->host[i], i == 0, &start, 0, 0 };
		err = pthread_create(&m[i].thread, NULL, member_main, &m[i]);
	}
	if (err != 0) {
		ring_print_error("a thread was sought and there is none: %s", strerror(err));
		exit(1); /* the others wait for it */
	}
	for (unsigned int i = 0; i < f->hosts; i++)
		pthread_join(m[i].thread, NULL);
	pthread_barrier_destroy(&start);
	out->value = (double)m[0].ns / (double)t->count / 1e3;
	out->unit = "us";
	return 0;
}
