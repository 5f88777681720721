/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses the launcher's back end, and keeps children of fork from it. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "boot.h"
#include "boot_back.h"
#include "boot_wire.h"

/*
 * The first of those that are announced counts.  oshrun removes what announces the others, so where both are
 * there another launcher was started by a PE of oshrun, and has started this process.
 */
static const struct boot_back *const backs[] = { &boot_pmix, &boot_pmi1, &boot_local,
						 &boot_single };

static struct {
	_Atomic(const struct boot_back *) back; /* NULL: not in a job */
	const struct boot_back *chosen; /* by the first start; the environment is read only then */
	_Atomic int pid;		/* of the process that started */
	int pe, n_pes;
} boot;

static struct boot_status unseen;

/* Variables of launchers that say how many processes they started, and what makes them usable. */
static const struct {
	const char *variable, *launcher, *remedy;
} strangers[] = {
	{ "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun", "use an mpirun that was built with PMIx" },
	{ "SLURM_STEP_NUM_TASKS", "srun", "use srun --mpi=pmix" },
	{ "PMI_SIZE", "a launcher with PMI", "use an mpiexec that sets PMI_FD" },
	{ "MPI_LOCALNRANKS", "mpiexec", "use an mpiexec that sets PMI_FD" },
	{ "PALS_RANKID", "PALS", "use a launcher with PMIx" },
};

/* Says why no back end is announced, and returns -ENODEV. */
static int refuse(char error[BOOT_TEXT_MAX])
{
	size_t i;

	if (secure_getenv("PMIX_NAMESPACE") != NULL || secure_getenv("PMI_FD") != NULL)
		return boot_error(
			error, -ENODEV,
			"a process of a job has started this program, whose launcher knows "
			"that process alone: start it with oshrun -np N PROGRAM, or set "
			"SHMEM_VIADUCT_SINGLETON=1 for a job of one PE");
	for (i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
		if (secure_getenv(strangers[i].variable) != NULL)
			return boot_error(error, -ENODEV,
					  "%s started this program (%s is set) but offers neither "
					  "PMIx nor PMI-1: %s, or oshrun -np N PROGRAM",
					  strangers[i].launcher, strangers[i].variable,
					  strangers[i].remedy);
	}
	return boot_error(error, -ENODEV,
			  "no launcher started this program: start it with oshrun -np N PROGRAM, "
			  "or set SHMEM_VIADUCT_SINGLETON=1 for a job of one PE");
}

/* The first of the back ends that the environment announces, in the order of `backs`, or NULL. */
static const struct boot_back *choose(void)
{
	size_t i;

	for (i = 0; i < sizeof(backs) / sizeof(backs[0]); i++) {
		if (backs[i]->announced())
			return backs[i];
	}
	return NULL;
}

/*
 * Sets the id of the job, a number that all its PEs have, and no other job: PE 0 draws it. 0 or -errno. It is an
 * exchange, for which the back end has to have joined, and which all PEs call.
 */
static int draw_id(struct boot_job *job)
{
	uint64_t mine = 0, *all;
	int rc;

	if (getrandom(&mine, sizeof(mine), 0) != (ssize_t)sizeof(mine))
		return -EIO;
	all = calloc((size_t)job->n_pes, sizeof(*all));
	if (all == NULL)
		return -ENOMEM;
	rc = boot.chosen->exchange(&mine, sizeof(mine), all);
	job->id = all[0];
	free(all);
	return rc;
}

/*
 * Joins by the chosen back end. 0, or -errno with a line. Where no id can be drawn the launcher is asked to end the
 * job, and the function returns.
 */
static int start(struct boot_job *job, char error[BOOT_TEXT_MAX])
{
	int rc = boot.chosen->start(job, error);

	if (rc != 0)
		return rc;
	if (job->id == 0)
		rc = draw_id(job);
	if (rc == 0)
		return 0;
	boot.chosen->abort(1, "no data can be exchanged", false);
	return boot_error(error, rc, "%s does not exchange data between the PEs: %s", job->by,
			  strerror(-rc));
}

/* Has this process itself joined? Not in a child of fork. */
static bool in_job(void)
{
	return boot.back != NULL && boot.pid == getpid();
}

int boot_start(struct boot_job *job, char error[BOOT_TEXT_MAX])
{
	struct boot_job found = { .id = 0 };
	int rc;

	if (boot.back != NULL)
		return boot_error(error, -EALREADY,
				  boot.pid == getpid() ? "this process is a PE already"
						       : "a child of a PE is no PE itself");
	if (boot.chosen == NULL)
		boot.chosen = choose();
	if (boot.chosen == NULL)
		return refuse(error);
	found.by = boot.chosen->name;
	rc = start(&found, error);
	if (rc != 0)
		return rc;
	boot.pid = getpid();
	boot.pe = found.pe;
	boot.n_pes = found.n_pes;
	boot.back = boot.chosen;
	*job = found;
	return 0;
}

int boot_exchange(const void *mine, size_t bytes, void *all)
{
	if (!in_job())
		return -ENOTCONN;
	if (bytes > BOOT_WIRE_DATA_MAX)
		return -EMSGSIZE;
	return boot.chosen->exchange(mine, bytes, all);
}

int boot_barrier(void)
{
	return in_job() ? boot.chosen->barrier() : -ENOTCONN;
}

struct boot_status *boot_status(void)
{
	struct boot_status *s = boot.back != NULL ? boot.chosen->status(boot.pe) : NULL;

	return s != NULL ? s : &unseen;
}

const struct boot_status *boot_status_of(int pe)
{
	return boot.back != NULL ? boot.chosen->status(pe) : NULL;
}

void boot_finish(void)
{
	if (!in_job())
		return;
	boot.back = NULL;
	boot.chosen->finish();
}

/* ---- the end of the job ---------------------------------------------------------------------- */

/* boot_exit() has been called. */
static struct {
	_Atomic int pid;    /* of the process that ends; its children are not in boot_exit() */
	_Atomic int thread; /* which calls exit() */
	int status;
	_Atomic bool told; /* the launcher, or nobody has to be */
} leaving;

bool boot_is_leaving(void)
{
	return leaving.pid == getpid();
}

/*
 * boot_exit() was called before. The thread that calls exit() goes on with what is left of that; for the others there
 * is nothing more to do.
 */
static _Noreturn void leave_again(void)
{
	if (leaving.thread == gettid())
		exit(leaving.status);
	for (;;)
		pause();
}

/*
 * Says why, unless that is NULL, asks the launcher to end the job, and ends the process by _exit(). Outside of a job,
 * and in a child of fork, the launcher is not asked. Once boot_exit() was called it waits for that end instead.
 */
static _Noreturn void end(int status, const char *why, bool lost)
{
	if (boot_is_leaving())
		leave_again();
	if (in_job()) {
		/* oshrun prints the line itself, with PE and host; other launchers may print nothing. */
		if (why != NULL && boot.chosen != &boot_local) {
			dprintf(STDERR_FILENO, "PE %d of %d: %s\n", boot.pe, boot.n_pes, why);
			/* Launchers drop what they have not read when they end a job. */
			nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
		}
		boot.chosen->abort(status, why, lost);
	} else if (why != NULL) {
		dprintf(STDERR_FILENO, "shmem: %s\n", why);
	}
	_exit(status);
}

_Noreturn void boot_abort(int status, const char *why)
{
	end(status, why, false);
}

_Noreturn void boot_abort_lost(int status, const char *why)
{
	end(status, why, true);
}

/* Asks the launcher to end the job, unless that was done already. */
static void tell_once(void)
{
	if (!atomic_exchange(&leaving.told, true) && in_job())
		boot.chosen->abort(leaving.status, NULL, false);
}

/*
 * The body of a thread that ends the process after BOOT_EXIT_S, wherever exit() stands: another thread may keep a
 * stream of stdio locked for ever. A launcher that was not told before is told then.
 */
static void *leave_late(void *unused)
{
	nanosleep(&(struct timespec){ BOOT_EXIT_S, 0 }, NULL);
	tell_once();
	_exit(leaving.status);
}

/* Starts a thread that no signal of the program interrupts. 0; or an errno, positive, without a thread. */
static int thread_begin(pthread_t *thread, void *(*run)(void *))
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

/* The body of a thread of boot_flush(), which waits for ever if another thread keeps a stream locked. */
static void *flush_all(void *unused)
{
	fflush(stdout); /* before one that a thread has locked */
	fflush(NULL);
	return NULL;
}

void boot_flush(void)
{
	struct timespec end;
	pthread_t thread;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += BOOT_FLUSH_S;
	if (thread_begin(&thread, flush_all) == 0)
		pthread_timedjoin_np(thread, NULL, &end);
}

_Noreturn void boot_exit(int status)
{
	bool patient = in_job() && boot.chosen->patient;
	int nobody = 0, rc;
	pthread_t late;

	if (boot_is_leaving())
		leave_again();
	if (boot.back != NULL && !in_job()) {
		fflush(NULL);
		_exit(status); /* a child, whose parent has the functions of atexit() */
	}
	if (!atomic_compare_exchange_strong(&leaving.pid, &nobody, getpid()))
		leave_again();
	leaving.thread = gettid();
	leaving.status = status;
	rc = thread_begin(&late, leave_late);
	if (patient) {
		/* All PEs are told to leave, and this one is about to. */
		signal(SIGTERM, SIG_IGN);
		tell_once();
	} else if (rc != 0) {
		tell_once(); /* nothing would end an exit() that takes for ever */
		_exit(status);
	}
	exit(status);
}

/*
 * Tells the launcher of a boot_exit() of which it was not told yet. This library's destructors run after those of the
 * program and the functions that it gave to atexit(), so a launcher that kills the process at once costs it nothing
 * of these. What stdio holds is written here.
 */
static __attribute__((destructor)) void tell_at_last(void)
{
	if (!boot_is_leaving() || !in_job() || leaving.told)
		return;
	boot_flush();
	tell_once();
}
