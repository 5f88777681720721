/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine makes progress where the application does not poll: for RDMA of the peer, for handlers, and for queues
 * of a program that is busy with other work.  While an application thread sleeps in a VIPL call, that thread does the
 * engine's work and the engine is parked, so that a doorbell wakes one thread.  The engine sleeps on the doorbell
 * when every channel is armed; until then it polls the others briefly, and wakes at each tick to arm those that the
 * application stopped polling.  It does not poll when it shares its processor with the application and that polls.
 */
#include <errno.h>
#include <pthread.h>

#include "nvi_arm.h"
#include "nvi_cut.h"
#include "nvi_engine.h"
#include "nvi_progress.h"
#include "u_futex.h"
#include "u_idle.h"
#include "u_thread.h"
#include "u_time.h"

#define TICK_MIN_NS 1000000 /* time between checks of the application's polls */
#define TICK_MAX_NS 8000000
#define PARK_MAX_NS 256000000

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
	/* Slots come all the time: an old ticket makes nvi_sleep() return at once. */
	return port_irq_ticket(nic->irq) - 1;
}

void nvi_sleep(struct vi_nic *vi_nic, uint32_t ticket, int64_t deadline)
{
	struct nvi_nic *nic = vi_nic->prov;
	bool last;

	atomic_fetch_add_explicit(&nic->sleepers, 1, memory_order_seq_cst);
	/*
	 * The thread must not sleep if a channel has become polled since it was armed: its peer
	 * would not ring.
	 */
	if (atomic_load_explicit(&nic->polled, memory_order_seq_cst) == 0)
		port_irq_wait(nic->irq, ticket, nic->db_mask, u_time_left(deadline));
	/*
	 * The thread stops counting as a sleeper before the scan: a channel that the scan makes
	 * polled must end the sleep of the other threads.
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
	struct u_idle_past past;
	struct u_idle idle;
	int64_t next_tick, tick;
	int64_t next_fences; /* when to stop fences that cost more than they save, if it is busy until then */
	int64_t park;
};

/*
 * While application threads do the engine's work: sleeps until none does, or for e->park, which doubles; then checks
 * the links.
 */
static void engine_park(struct engine *e)
{
	struct nvi_nic *nic = e->nic;
	uint32_t word = atomic_load_explicit(&nic->engine_park, memory_order_seq_cst);

	if (e->park > TICK_MAX_NS)
		atomic_store_explicit(&nic->engine_deep, NVI_PARKED, memory_order_seq_cst);
	if (atomic_load_explicit(&nic->sleepers, memory_order_seq_cst) != 0)
		u_futex_wait(&nic->engine_park, word, UINT32_MAX, e->park, true);
	atomic_store_explicit(&nic->engine_deep, NVI_AWAKE, memory_order_seq_cst);
	e->park = (int64_t)u_min64((uint64_t)e->park * 2, PARK_MAX_NS);
	u_idle_moved(&e->idle);
	nvi_check_links(nic);
}

/*
 * While every channel is armed: sleeps until the doorbell rings, or for the cap of u_idle.h; after that time it makes
 * progress on all channels.
 */
static void engine_deep_sleep(struct engine *e, uint32_t ticket)
{
	struct nvi_nic *nic = e->nic;
	int err = 0;

	atomic_store_explicit(&nic->engine_deep, NVI_DEEP, memory_order_seq_cst);
	if (atomic_load_explicit(&nic->polled, memory_order_seq_cst) == 0 &&
	    atomic_load_explicit(&nic->stop, memory_order_seq_cst) == 0) {
		err = port_irq_wait(nic->irq, ticket, nic->db_mask, u_idle_cap(&e->idle));
	}
	atomic_store_explicit(&nic->engine_deep, NVI_AWAKE, memory_order_seq_cst);
	if (err == -ETIMEDOUT) {
		u_idle_slept(&e->idle, true, nvi_scan(nic, true) != 0);
		return;
	}
	u_idle_slept(&e->idle, false, true);
	e->tick = TICK_MIN_NS;
	e->next_tick = u_now_ns() + e->tick;
}

/* When nothing moved: returns at once to poll, or arms the channels that may be armed, and sleeps as that allows. */
static void engine_idle(struct engine *e, uint32_t ticket)
{
	struct nvi_nic *nic = e->nic;
	enum nvi_arm_which which = NVI_ARM_ENGINE;
	int64_t now;

	switch (u_idle(&e->idle)) {
	case U_IDLE_YIELDED:
		if (e->idle.now >= e->next_fences) {
			nvi_stop_fences(nic);
			e->next_fences = e->idle.now + TICK_MAX_NS;
		}
		/* On the processor of the application the engine would only take messages from it. */
		if (!e->idle.shared || !nvi_application_polls(nic))
			return;
		break;
	case U_IDLE_POLL:
		return;
	default:
		break;
	}
	now = u_now_ns();
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

/* The transfer thread: makes progress, polls, or sleeps, until nic->stop is set. */
static void *engine_run(void *arg)
{
	struct nvi_nic *nic = arg;
	struct engine e = {
		.nic = nic,
		.tick = TICK_MIN_NS,
		.park = TICK_MIN_NS,
	};
	uint32_t ticket;

	u_idle_past_init(&e.past, U_IDLE_ADAPTIVE);
	u_idle_begin(&e.idle, U_IDLE_ADAPTIVE, &e.past);

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
		u_idle_moved(&e.idle);
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
	/* The engine may be anywhere between two checks of `stop`. */
	port_irq_kick(nic->irq, nic->db_mask);
	atomic_fetch_add_explicit(&nic->engine_park, 1, memory_order_seq_cst);
	u_futex_wake(&nic->engine_park, 1, UINT32_MAX, true);
	u_thread_join(nic->engine);
}
