/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of this library in the child of a fork(). */
#include <pthread.h>

#include "u_adopt.h"
#include "u_cfg.h"
#include "u_close.h"
#include "u_idtab.h"
#include "u_log.h"
#include "u_maps.h"
#include "u_thread.h"
#include "vi_fork.h"

static _Atomic uint32_t generation; /* changes only while the process has one thread */
static void (*_Atomic renew_shared)(void);
static int watch_result;

uint32_t vi_fork_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_relaxed);
}

/*
 * Runs in the child before fork() returns there: begins a new generation, and initialises all shared state again.  Any
 * lock may be held, by a thread that the child does not have.
 */
static void in_child(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
	u_log_forked();
	u_cfg_forked();
	u_thread_forked();
	u_close_forked();
	u_maps_forked();
	u_adopt_forked();
	u_idtab_forked();
	atomic_load_explicit(&renew_shared, memory_order_relaxed)();
}

/* Registers in_child(), for pthread_once(); the result is in watch_result. */
static void watch(void)
{
	watch_result = -pthread_atfork(NULL, NULL, in_child);
}

int vi_fork_watch(void (*renew)(void))
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	atomic_store_explicit(&renew_shared, renew, memory_order_relaxed);
	pthread_once(&once, watch);
	return watch_result;
}
