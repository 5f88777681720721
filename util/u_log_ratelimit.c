/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rate limits of the log.  The state of a rate limit is one word, so that exactly
 * U_LOG_RATELIMIT_LINES pass in a period, with any number of threads; each line that does not pass is
 * counted, and each count is reported once.
 */
#include <errno.h>
#include <inttypes.h>

#include "u_log.h"
#include "u_log_spec.h"
#include "u_time.h"

#define PERIOD_NS ((int64_t)U_LOG_RATELIMIT_S * 1000000000)

/* Periods are counted from 1: before a first line the state has period 0, and no line in it. */
static uint32_t period_of(int64_t now)
{
	return (uint32_t)(now / PERIOD_NS) + 1;
}

static uint32_t state_period(uint64_t state)
{
	return (uint32_t)(state >> 32);
}

bool u_log_ratelimit_pass(struct u_log_ratelimit *g, int64_t now, uint64_t *left_out)
{
	uint64_t was = atomic_load_explicit(&g->state, memory_order_relaxed);
	uint32_t period, lines;

	do {
		period = period_of(now);
		/*
		 * If another thread has read the clock later, in a new period, this line counts in
		 * that one.
		 */
		if (state_period(was) >= period) {
			period = state_period(was);
			lines = (uint32_t)was;
		} else {
			lines = 0;
		}
		if (lines >= U_LOG_RATELIMIT_LINES) {
			atomic_fetch_add_explicit(&g->left_out, 1, memory_order_relaxed);
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&g->state, &was, (uint64_t)period << 32 | (lines + 1), memory_order_relaxed,
		memory_order_relaxed));
	*left_out = atomic_exchange_explicit(&g->left_out, 0, memory_order_relaxed);
	return true;
}

int64_t u_log_ratelimit_end(const struct u_log_ratelimit *g)
{
	return (int64_t)state_period(atomic_load_explicit(&g->state, memory_order_relaxed)) *
	       PERIOD_NS;
}

/* Writes "4711 more lines about ... were left out", unless the number is 0. */
static void tell(const struct u_log_ratelimit *g, uint64_t left_out)
{
	if (left_out != 0)
		u_log(g->level, g->area, "%" PRIu64 " more line%s about %s%s%s %s left out",
		      left_out, left_out == 1 ? "" : "s", g->what, g->whose != NULL ? " " : "",
		      g->whose != NULL ? g->whose : "", left_out == 1 ? "was" : "were");
}

void u_log_ratelimited(struct u_log_ratelimit *g, const char *fmt, ...)
{
	int saved = errno;
	uint64_t left_out;
	va_list args;

	if (!u_log_enabled(g->level, g->area) || !u_log_ratelimit_pass(g, u_now_ns(), &left_out))
		return;
	tell(g, left_out);
	va_start(args, fmt);
	errno = saved; /* for %m */
	u_vlog(g->level, g->area, fmt, args);
	va_end(args);
}

int64_t u_log_ratelimit_tell(struct u_log_ratelimit *g)
{
	int64_t end;

	if (atomic_load_explicit(&g->left_out, memory_order_relaxed) == 0)
		return U_NEVER;
	end = u_log_ratelimit_end(g);
	if (u_now_ns() < end)
		return end;
	tell(g, atomic_exchange_explicit(&g->left_out, 0, memory_order_relaxed));
	return U_NEVER;
}
