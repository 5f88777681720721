/* SPDX-License-Identifier: BSD-2-Clause */
/* model: makes threads busy, or wait, in the time of the profile. */
#include "port_model_priv.h"
#include "u_time.h"

#define MODEL_SPIN_NS 5000	  /* a shorter wait is not worth a sleep */
#define MODEL_GRAIN_NS 300	  /* of the profile, and ... */
#define MODEL_GRAIN_MAX_NS 100000 /* ... of the machine: no thread sleeps for less */
/* of the profile: a wake-up that is late by less does not count as work */
#define MODEL_LATE_NS 300

/*
 * The time until which the calling thread is busy (CLOCK_MONOTONIC); in the past when it is idle.
 */
static _Thread_local int64_t busy_until;

int64_t model_grain(const struct model_time *t)
{
	int64_t ns = model_dilated(t, MODEL_GRAIN_NS);

	return ns < MODEL_GRAIN_MAX_NS ? ns : MODEL_GRAIN_MAX_NS;
}

void model_wait_until(const struct model_time *t, int64_t at)
{
	busy_until = at;
	if (at - u_now_ns() < model_grain(t))
		return;
	if (at - u_now_ns() > MODEL_SPIN_NS)
		u_nap_until(at);
	while (u_now_ns() < at)
		u_pause();
}

int64_t model_work_until(const struct model_time *t, int64_t busy)
{
	busy_until =
		model_busy_until(busy_until, u_now_ns(), busy, model_dilated(t, MODEL_LATE_NS));
	return busy_until;
}

void model_spend(const struct model_time *t, int64_t ns)
{
	model_wait_until(t, model_work_until(t, model_dilated(t, ns)));
}

int64_t model_busy(void)
{
	return busy_until;
}
