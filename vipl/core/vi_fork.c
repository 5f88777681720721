/* SPDX-License-Identifier: BSD-2-Clause */
/* What fork() leaves of this library in the child. */
#include <errno.h>

#include "u_cfg.h"
#include "u_close.h"
#include "u_log.h"
#include "vi_core.h"

static uint32_t generation; /* changes only while the process has one thread */

uint32_t vi_fork_generation(void)
{
	return generation;
}

/* Runs in the child before fork() returns there.  Any lock may be held by a thread it does not have. */
static void in_child(void)
{
	generation++;
	u_log_forked();
	u_cfg_forked();
	u_close_forked();
	u_idtab_forked();
	vi_conn_forked();
	vi_pool_forked(&vi_nic_pool);
	vi_pool_forked(&vi_vi_pool);
	vi_pool_forked(&vi_cq_pool);
	vi_pool_forked(&vi_ptag_pool);
}

static int watch_result;

static void watch(void)
{
	watch_result = -pthread_atfork(NULL, NULL, in_child);
}

int vi_fork_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
	return watch_result;
}
