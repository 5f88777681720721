/* SPDX-License-Identifier: BSD-2-Clause */
/* Joining and leaving the job, and what a program may ask about it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "osh_barrier.h"
#include "osh_blocks.h"
#include "osh_conn.h"
#include "osh_env.h"
#include "osh_far.h"
#include "osh_init.h"
#include "osh_map.h"
#include "osh_open.h"
#include "osh_order.h"
#include "osh_set.h"
#include "osh_wait.h"

static struct {
	pthread_mutex_t lock;
	int count;     /* shmem_init less shmem_finalize */
	bool implicit; /* finalize at exit */
	bool ended;    /* that has happened; functions of atexit() may still call shmem_finalize */
	pid_t pid;
} library = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Prints the error and returns -1. */
static int refuse(const char *error)
{
	fprintf(stderr, "shmem: %s\n", error);
	return -1;
}

/*
 * Ends the job with this line. All PEs may have the same to say, so one that can joins the job, and ends it: the
 * launcher says it once.
 */
static _Noreturn void end_job(const char *error)
{
	char ignored[BOOT_TEXT_MAX];
	struct boot_job job;

	boot_flush();
	boot_start(&job, ignored);
	if (osh_pe.nic != NULL)
		osh_conn_check_agent();
	osh_fatal("%s", error);
}

/* PE 0 prints what SHMEM_VERSION and SHMEM_INFO ask for. */
static void announce(void)
{
	if (osh_pe.me != 0)
		return;
	if (osh_env.version)
		printf("OpenSHMEM 1.6, Viaduct %s: %d PE%s, started by %s\n", VIADUCT_VERSION,
		       osh_pe.n, osh_pe.n == 1 ? "" : "s", osh_pe.job.by);
	if (!osh_env.info)
		return;
	osh_env_print();
	printf("PE 0 %s processors with others of this machine, so its waits %s\n",
	       osh_pe.oversubscribed ? "shares" : "does not share",
	       osh_pe.oversubscribed ? "soon let others run" : "look longer first");
	fflush(stdout);
}

/* Joins the job, and opens all units in their order. 0, or -1 with a line; what was opened by then stays open. */
static int open_all(char error[BOOT_TEXT_MAX])
{
	int rc;

	if (osh_env_read(error) != 0 || boot_start(&osh_pe.job, error) != 0)
		return -1;
	osh_pe.me = osh_pe.job.pe;
	osh_pe.n = osh_pe.job.n_pes;
	osh_say_pe(osh_pe.me);
	if (osh_open(error) != 0)
		return -1;
	osh_ctx_init(&osh_ctx_default, NULL, 0);
	osh_ctx_init(&osh_ctx_internal, NULL, 0);
	osh_ctx_default.locked = osh_ctx_internal.locked = osh_pe.level == OSH_THREAD_MULTIPLE;
	if (osh_teams_open() != 0 || osh_blocks_open() != 0) {
		snprintf(error, BOOT_TEXT_MAX, "out of memory");
		return -1;
	}
	atomic_store_explicit(&boot_status()->ending, 0, memory_order_relaxed);
	atomic_store_explicit(&boot_status()->left, 0, memory_order_relaxed);
	/* Inboxes are empty everywhere before anyone stores into them. */
	osh_wait_show("shmem_init", NULL, -1);
	rc = boot_barrier();
	osh_wait_shown_end();
	if (rc != 0) {
		snprintf(error, BOOT_TEXT_MAX, "the job ended while it started");
		return -1;
	}
	return 0;
}

/*
 * Completes the operations of the default context and the library's own, and says that this PE is at its end. From here
 * on it takes part in the last barrier only: a wait for more, or for a lock of it, is in vain. In a child of fork() it
 * ends the process.
 */
static void begin_end(const char *fn)
{
	if (osh_pe.child)
		osh_not_in_job(fn);
	osh_quiet(&osh_ctx_default);
	osh_quiet(&osh_ctx_internal);
	/* A: pairs with give_up_on_left() in osh_wait.c: all operations before are complete. */
	atomic_store_explicit(&boot_status()->ending, 1, memory_order_release);
}

/*
 * Says that this PE leaves the job, after completing the library's own operations. From here on it sends no message: a
 * wait for one is in vain.
 */
static void leave(const char *fn)
{
	osh_quiet(&osh_ctx_internal);
	/* A: as in begin_end(). */
	atomic_store_explicit(&boot_status()->left, 1, memory_order_release);
	osh_wait_show(fn, NULL, -1);
}

/* Leaves the job and gives all back; waits for all other PEs to do so. */
static void close_all(const char *fn)
{
	begin_end(fn);
	osh_barrier_end(fn);
	leave(fn);
	osh_sets_close();
	osh_teams_close();
	osh_far_fini(&osh_ctx_default);
	osh_far_fini(&osh_ctx_internal);
	osh_blocks_close();
	/* From here on no PE uses the memory of another. */
	boot_barrier();
	osh_wait_shown_end();
	osh_close();
	boot_finish();
	memset(&osh_pe, 0, sizeof(osh_pe));
}

/*
 * One shmem_finalize: the last of as many as shmem_init leaves the job, others are barriers; one too many prints a
 * line, and after shmem_global_exit it does nothing. Takes the lock itself.
 */
static void finalize(const char *fn)
{
	if (boot_is_leaving()) /* a static destructor after shmem_global_exit: the others are gone */
		return;
	pthread_mutex_lock(&library.lock);
	if (library.count == 0 && library.ended)
		;
	else if (library.count == 0)
		refuse("shmem_finalize without shmem_init");
	else if (--library.count == 0)
		close_all(fn);
	else
		osh_barrier_all(fn);
	pthread_mutex_unlock(&library.lock);
}

/*
 * Does what shmem_finalize does, where a process in the job ends without it and with status 0. One that ends with an
 * error is left to the launcher, since the others may never come. A child of it has no part in the job.
 */
static void at_exit(int status, void *unused)
{
	if (library.count == 0 || library.pid != getpid() || status != 0)
		return;
	library.count = 1;
	library.ended = true;
	finalize("exit, which implies shmem_finalize,");
}

/* Has at_exit() called at the end of the process; once. */
static void finalize_at_exit(void)
{
	if (!library.implicit)
		library.implicit = on_exit(at_exit, NULL) == 0;
}

/*
 * One shmem_init: the first joins the job, others are barriers. 0; or -1, after a line, with *provided as before.
 * `must`: a failure is the end of the job, unless the level is no level. Takes the lock itself.
 */
static int init(int requested, int *provided, bool must)
{
	char error[BOOT_TEXT_MAX] = "";
	int rc = 0;

	pthread_mutex_lock(&library.lock);
	if (library.count == 0) {
		if (requested < 0 || requested > OSH_THREAD_MULTIPLE) {
			rc = refuse("the thread level asked for is none of the four");
			goto out;
		}
		osh_pe.level = requested;
		rc = open_all(error);
		if (rc != 0 && must)
			end_job(error);
		if (rc != 0) {
			rc = refuse(error);
			goto out;
		}
		library.pid = getpid();
		finalize_at_exit();
		announce();
	} else {
		osh_barrier_all("shmem_init");
	}
	library.count++;
	if (provided != NULL)
		*provided = osh_pe.level;
out:
	pthread_mutex_unlock(&library.lock);
	return rc;
}

int osh_init(int requested, int *provided)
{
	return init(requested, provided, false);
}

void osh_init_or_end(void)
{
	init(0, NULL, true);
}

void osh_finalize(void)
{
	finalize("shmem_finalize");
}

void osh_start_pes(void)
{
	if (library.count == 0)
		osh_init_or_end();
}

void osh_global_exit(int status)
{
	boot_exit(status);
}

/* ---- queries --------------------------------------------------------------------------------- */

bool osh_initialized(void)
{
	return library.count > 0;
}

int osh_thread_level(void)
{
	return osh_pe.level;
}

int osh_my_pe(void)
{
	return osh_pe.me;
}

int osh_n_pes(void)
{
	return osh_pe.job.n_pes;
}

int osh_pe_accessible(int pe)
{
	return pe >= 0 && pe < osh_pe.n;
}

int osh_addr_accessible(const void *addr, int pe)
{
	size_t offset;
	int s;

	if (pe < 0 || pe >= osh_pe.n)
		return 0;
	s = osh_segment_of(addr, 1, &offset);
	if (osh_is_data(s))
		return osh_pe.peers[pe].same_program;
	return s != OSH_SEGMENTS && (s != OSH_HEAP || offset >= osh_pe.internal_bytes);
}

void *osh_ptr(const void *addr, int pe)
{
	size_t offset = 0;
	uint8_t *base;

	if (!osh_addr_accessible(addr, pe))
		return NULL;
	base = osh_map_segment("shmem_ptr", pe, osh_segment_of(addr, 1, &offset));
	return base == NULL ? NULL : base + offset;
}

void *osh_team_ptr(struct osh_team *team, const void *addr, int pe)
{
	if (team == NULL || pe < 0 || pe >= team->n)
		return NULL;
	return osh_ptr(addr, team->pes[pe]);
}
