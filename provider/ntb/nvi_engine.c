/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine serves what the application does not poll: RDMA of the peer, handlers, queues of a
 * program that computes.  While an application thread sleeps in a VIPL call, that thread does the
 * engine's work and the engine is parked, so that a doorbell wakes one thread.  The engine sleeps
 * on the doorbell when every channel is armed; until then it polls the others briefly, and wakes
 * by the tick to arm those that the application stopped polling.
 */
#include <errno.h>
#include <pthread.h>

#include "nvi_arm.h"
#include "nvi_cut.h"
#include "nvi_engine.h"
#include "nvi_progress.h"
#include "u_contention.h"
#include "u_futex.h"
#include "u_thread.h"
#include "u_time.h"

#define SPIN_NS 50000	    /* the engine polls so long after something moved, */
#define EMPTY_POLLS 16u	    /* and polls so often before it offers the processor again */
#define TICK_MIN_NS 1000000 /* between checks of what the application polls */
#define TICK_MAX_NS 8000000
#define COARSE_MIN_NS 2000000	/* a lost doorbell is noticed after so long, at first, */
#define COARSE_MAX_NS 256000000 /* and at last */

/* ---- sleeping application threads ------------------------------------------------------------ */

uint32_t nvi_arm(struct vi_nic *vi_nic)
{
	struct nvi_nic *nic = vi_nic->prov;
	uint32_t ticket;

	for (int i = 0; i < 16; i++) {
		ticket = port_irq_ticket(nic->irq);
		nvi_rung(nic);
		if (nvi_arm_polled(nic, NVI_ARM_ALL) == 0)
			return ticket;
		nvi_scan(nic, true);
	}
	/* Busy: a ticket of the past ends the sleep at once. */
	return port_irq_ticket(nic->irq) - 1;
}

void nvi_sleep(struct vi_nic *vi_nic, uint32_t ticket, int64_t deadline)
{
	struct nvi_nic *nic = vi_nic->prov;
	bool last;

	atomic_fetch_add_explicit(&nic->sleepers, 1, memory_order_seq_cst);
	/* Not where a channel was made polled since it was armed: its peer would not ring. */
	if (atomic_load_explicit(&nic->polled, memory_order_seq_cst) == 0)
		port_irq_wait(nic->irq, ticket, nic->db_mask, u_time_left(deadline));
	/*
	 * Awake before the scan: a channel that it makes polled must end the sleep of the other
	 * threads.
	 */
	last = atomic_fetch_sub_explicit(&nic->sleepers, 1, memory_order_seq_cst) == 1;
	nvi_rung(nic);
	nvi_scan(nic, true);
	if (last)
		nvi_engine_kick(nic);
}

/* ---- the engine ------------------------------------------------------------------------------ */

struct engine {
	struct nvi_nic *nic;
	int64_t idle_since;  /* 0: something moved just now */
	uint32_t polls_left; /* left until the processor is offered */
	int64_t next_tick, tick;
	int64_t next_fences; /* when to stop fences that are not worth it, if it is busy till then */
	int64_t coarse;
	int64_t park;
	struct u_contention contention;
};

/* An application thread serves: wait until none does. */
static void engine_park(struct engine *e)
{
	struct nvi_nic *nic = e->nic;
	uint32_t word = atomic_load_explicit(&nic->engine_park, memory_order_seq_cst);

	if (e->park > TICK_MAX_NS)
		atomic_store_explicit(&nic->engine_deep, NVI_PARKED, memory_order_seq_cst);
	if (atomic_load_explicit(&nic->sleepers, memory_order_seq_cst) != 0)
		u_futex_wait(&nic->engine_park, word, UINT32_MAX, e->park, true);
	atomic_store_explicit(&nic->engine_deep, NVI_AWAKE, memory_order_seq_cst);
	e->park = (int64_t)u_min64((uint64_t)e->park * 2, COARSE_MAX_NS);
	e->idle_since = 0;
	nvi_check_links(nic);
}

/* Everything is armed: sleep until the doorbell rings. */
static void engine_deep_sleep(struct engine *e, uint32_t ticket)
{
	struct nvi_nic *nic = e->nic;
	int err = 0;

	atomic_store_explicit(&nic->engine_deep, NVI_DEEP, memory_order_seq_cst);
	if (atomic_load_explicit(&nic->polled, memory_order_seq_cst) == 0 &&
	    atomic_load_explicit(&nic->stop, memory_order_seq_cst) == 0) {
		err = port_irq_wait(nic->irq, ticket, nic->db_mask, e->coarse);
	}
	atomic_store_explicit(&nic->engine_deep, NVI_AWAKE, memory_order_seq_cst);
	if (err == -ETIMEDOUT) {
		/* What was found now was not rung for; what comes next may not be, either. */
		e->coarse = nvi_scan(nic, true) != 0
				    ? COARSE_MIN_NS
				    : (int64_t)u_min64((uint64_t)e->coarse * 2, COARSE_MAX_NS);
		return;
	}
	e->coarse = COARSE_MIN_NS;
	e->idle_since = 0;
	e->tick = TICK_MIN_NS;
	e->next_tick = u_now_ns() + e->tick;
}

/* Offers the processor; when no other thread wants it, a few more polls follow without delay. */
static void engine_offer(struct engine *e, int64_t now)
{
	e->polls_left = u_contention_offer(&e->contention, now) < U_ALONE_NS ? EMPTY_POLLS : 0;
}

/* Nothing moved: arm what may be armed, and sleep as deep as that allows. */
static void engine_idle(struct engine *e, uint32_t ticket)
{
	struct nvi_nic *nic = e->nic;
	enum nvi_arm_which which = NVI_ARM_ENGINE;
	int64_t now;

	if (e->polls_left > 0) {
		e->polls_left--;
		u_pause();
		return;
	}
	now = u_now_ns();
	if (e->idle_since == 0)
		e->idle_since = now;
	if (now - e->idle_since < SPIN_NS && !u_contention_sleeps(&e->contention)) {
		if (now >= e->next_fences) {
			nvi_stop_fences(nic);
			e->next_fences = now + TICK_MAX_NS;
		}
		engine_offer(e, now);
		return;
	}
	if (now >= e->next_tick) {
		which = NVI_ARM_IDLE;
		e->tick = (int64_t)u_min64((uint64_t)e->tick * 2, TICK_MAX_NS);
		e->next_tick = now + e->tick;
	}
	nvi_check_links(nic);
	if (nvi_arm_polled(nic, which) != 0) {
		nvi_scan(nic, true);
		return;
	}
	if (atomic_load_explicit(&nic->polled, memory_order_seq_cst) == 0)
		engine_deep_sleep(e, ticket);
	else
		port_irq_wait(nic->irq, ticket, nic->db_mask, e->next_tick - now);
}

static void *engine_run(void *arg)
{
	struct nvi_nic *nic = arg;
	struct engine e = {
		.nic = nic,
		.tick = TICK_MIN_NS,
		.coarse = COARSE_MIN_NS,
		.park = TICK_MIN_NS,
	};
	uint32_t ticket;

	while (atomic_load_explicit(&nic->stop, memory_order_acquire) == 0) {
		if (atomic_load_explicit(&nic->sleepers, memory_order_seq_cst) != 0) {
			engine_park(&e);
			continue;
		}
		e.park = TICK_MIN_NS;
		ticket = port_irq_ticket(nic->irq);
		if (nvi_scan(nic, nvi_rung(nic)) == 0) {
			engine_idle(&e, ticket);
			continue;
		}
		e.idle_since = 0;
		u_contention_moved(&e.contention);
	}
	return NULL;
}

int nvi_engine_start(struct nvi_nic *nic)
{
	return u_thread_start(&nic->engine, "vi-xfer", engine_run, nic);
}

void nvi_engine_stop(struct nvi_nic *nic)
{
	atomic_store_explicit(&nic->stop, 1, memory_order_seq_cst);
	/* A stopping engine may be anywhere between two checks of `stop`. */
	port_irq_kick(nic->irq, nic->db_mask);
	atomic_fetch_add_explicit(&nic->engine_park, 1, memory_order_seq_cst);
	u_futex_wake(&nic->engine_park, 1, UINT32_MAX, true);
	pthread_join(nic->engine, NULL);
}
