/* SPDX-License-Identifier: BSD-2-Clause */
/* What a PE is in its job, what it tells its launcher, and the times that it has to end: boot.h. */
#ifndef BOOT_JOB_H
#define BOOT_JOB_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define BOOT_TEXT_MAX 256

struct boot_job {
	int pe;		/* this process, 0 .. n_pes - 1 */
	int n_pes;	/* processes of the job */
	uint64_t id;	/* equal in all processes of a job, different for another job of the host */
	const char *by; /* the launcher: "oshrun", "PMIx", "PMI-1" or "singleton" */
};

/*
 * What a PE waits for, for the launcher's report about a job that makes no progress.  The PE
 * writes, the launcher reads; both use relaxed atomics.  `ending` and `left` are for the other PEs: stored with release
 * after the last message of the PE to them that is not of the barrier at the end, and after the very last.
 */
struct boot_status {
	_Atomic uint64_t steps;	  /* grows while the PE makes progress inside the library */
	_Atomic uint64_t address; /* what it waits for: an address, or 0 */
	_Atomic int32_t peer;	  /* the PE that it waits for, or -1 */
	_Atomic uint32_t waiting; /* index into the names of routines, or 0: it does not wait */
	char routine[64];	  /* the routine it waits in */
	_Atomic uint32_t left; /* it is at the end of shmem_finalize: takes part in nothing more */
	_Atomic uint32_t
		ending; /* it is in shmem_finalize: its messages are those of the barrier at the end */
	uint32_t reserved[8];
};
static_assert(sizeof(struct boot_status) == 128, "boot_status");

#define BOOT_EXIT_S 2  /* oshrun gives as much to processes that it has told to leave */
#define BOOT_FLUSH_S 1 /* a part of it */

#endif
