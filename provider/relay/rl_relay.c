/* SPDX-License-Identifier: BSD-2-Clause */
/* The relay as its agent sees it: its threads, and circuits that are added and removed. */
#include "rl_relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rl_priv.h"

int rl_open(const struct rl_cfg *cfg, struct rl_relay **out)
{
	struct rl_relay *r;
	unsigned int i;

	if (cfg->threads == 0 || cfg->threads > RL_THREADS_MAX ||
	    cfg->first_db_bit > PORT_DB_MAX - cfg->threads || cfg->port_count > PORT_PER_HOST)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	r->cfg = *cfg;
	memcpy(r->ports, cfg->ports, cfg->port_count * sizeof(r->ports[0]));
	for (i = 0; i < cfg->threads && cfg->cpus != NULL; i++)
		r->cpus[i] = cfg->cpus[i];
	for (i = 0; i < cfg->threads; i++) {
		struct rl_thread *t = &r->threads[i];

		t->relay = r;
		t->index = i;
		t->db_mask = UINT32_C(1) << (cfg->first_db_bit + i);
		t->ticket = port_irq_ticket(cfg->irq) - 1;
		pthread_mutex_init(&t->lock, NULL);
	}
	*out = r;
	return 0;
}

void rl_close(struct rl_relay *r)
{
	unsigned int i;

	if (r == NULL)
		return;
	for (i = 0; i < r->cfg.threads; i++) {
		rl_thread_stop(&r->threads[i]);
		pthread_mutex_destroy(&r->threads[i].lock);
		free(r->threads[i].circuits);
	}
	free(r);
}

unsigned int rl_thread_of(const struct rl_relay *r, uint64_t flow)
{
	return (unsigned int)((flow * UINT64_C(0x9e3779b97f4a7c15) >> 32) % r->cfg.threads);
}

uint32_t rl_db_bit(const struct rl_relay *r, unsigned int thread)
{
	return r->cfg.first_db_bit + thread;
}

/*
 * Makes a circuit of the thread, polled at first; takes the thread's lock, and does not wake the thread.  0 or -ENOMEM:
 * then the maps stay the caller's.
 */
int rl_circuit_create(struct rl_thread *t, const struct rl_side side[2], uint32_t slots,
		      uint32_t payload_bytes, void *user, struct rl_circuit **out)
{
	struct rl_circuit *c = calloc(1, sizeof(*c));
	int rc;

	if (c == NULL)
		return -ENOMEM;
	c->thread = t;
	c->user = user;
	c->mask = slots - 1;
	c->payload_bytes = payload_bytes;
	rl_end_place(c, 0, &side[0]);
	rl_end_place(c, 1, &side[1]);
	rl_thread_lock(t);
	rc = rl_thread_enlist(t, c);
	if (rc == 0)
		t->counters.circuits++;
	rl_thread_unlock(t);
	if (rc != 0) {
		free(c);
		return rc;
	}
	*out = c;
	return 0;
}

int rl_add(struct rl_relay *r, unsigned int thread, const struct rl_side side[2], uint32_t slots,
	   uint32_t payload_bytes, void *user, struct rl_circuit **out)
{
	struct rl_thread *t = &r->threads[thread];
	int rc = rl_thread_start(t);

	if (rc == 0)
		rc = rl_circuit_create(t, side, slots, payload_bytes, user, out);
	if (rc == 0)
		port_irq_kick(r->cfg.irq, t->db_mask);
	return rc;
}

void rl_drain(struct rl_circuit *c, unsigned int side)
{
	struct rl_thread *t = c->thread;

	rl_thread_lock(t);
	if (!c->broken) {
		rl_move_all(c, side);
		rl_thread_moved(c);
		port_flush(c->end[1 - side].port);
	}
	rl_thread_unlock(t);
}

/* Takes the circuit off the list of those that rl_broken() is to report.  The caller holds the lock. */
static void forget_broken(struct rl_thread *t, struct rl_circuit *c)
{
	struct rl_circuit **at = &t->broken;

	while (*at != NULL && *at != c)
		at = &(*at)->next_broken;
	if (*at == c)
		*at = c->next_broken;
}

void rl_remove(struct rl_circuit *c)
{
	struct rl_thread *t = c->thread;
	unsigned int i;

	rl_thread_lock(t);
	if (c->index != UINT32_MAX)
		rl_thread_delist(c);
	forget_broken(t, c);
	t->counters.circuits--;
	rl_thread_unlock(t);
	for (i = 0; i < 2; i++) {
		port_unmap(c->end[i].port, &c->end[i].out_map);
		port_unmap(c->end[i].port, &c->end[i].in_map);
	}
	free(c);
}

void *rl_broken(struct rl_relay *r)
{
	void *user = NULL;
	unsigned int i;

	for (i = 0; i < r->cfg.threads && user == NULL; i++) {
		struct rl_thread *t = &r->threads[i];

		rl_thread_lock(t);
		if (t->broken != NULL) {
			user = t->broken->user;
			t->broken = t->broken->next_broken;
		}
		rl_thread_unlock(t);
	}
	return user;
}

void rl_counters(struct rl_relay *r, struct rl_counters *out)
{
	unsigned int i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < r->cfg.threads; i++) {
		struct rl_thread *t = &r->threads[i];

		rl_thread_lock(t);
		out->circuits += t->counters.circuits;
		out->slots += t->counters.slots;
		out->bytes += t->counters.bytes;
		out->sleeps += t->counters.sleeps;
		out->rings += t->counters.rings;
		out->broken += t->counters.broken;
		rl_thread_unlock(t);
	}
}
