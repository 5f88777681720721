/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_membarrier.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "u_base.h"
#include "u_time.h"

#define DRAINED_NS 10000000 /* longer than any store stays in a store buffer */

bool u_membarrier_available(void)
{
	static _Atomic int answer; /* 0 not known yet, 1 no, 2 yes */
	const long need = MEMBARRIER_CMD_GLOBAL_EXPEDITED |
			  MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
	int known = atomic_load_explicit(&answer, memory_order_relaxed);
	long have;

	if (known == 0) {
		have = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
		known = have > 0 && (have & need) == need ? 2 : 1;
		atomic_store_explicit(&answer, known, memory_order_relaxed);
	}
	return known == 2;
}

/* 0; -ENOSYS: u_membarrier_available() is false; or -errno. */
static int membarrier_call(int command)
{
	if (!u_membarrier_available())
		return -ENOSYS;
	return syscall(SYS_membarrier, command, 0, 0) != 0 ? -errno : 0;
}

int u_membarrier(void)
{
	return membarrier_call(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

static bool private_register(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool u_membarrier_private_available(void)
{
	static _Atomic int answer; /* as in u_membarrier_available() */
	int known = atomic_load_explicit(&answer, memory_order_relaxed);

	if (u_unlikely(known == 0)) {
		known = private_register() ? 2 : 1;
		atomic_store_explicit(&answer, known, memory_order_relaxed);
	}
	return known == 2;
}

int u_membarrier_register(void)
{
	/* Else the first thread that takes a lock would register, and hold the lock while the kernel waits. */
	u_membarrier_private_available();
	return membarrier_call(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

void u_membarrier_own(void)
{
	/* Without membarrier other threads fence by themselves, and so must the caller. */
	if (!u_membarrier_available())
		atomic_thread_fence(memory_order_seq_cst);
	else if (u_membarrier_private_available())
		u_membarrier_private();
	else
		u_membarrier();
}

void u_membarrier_private(void)
{
	if (u_likely(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0))
		return;
	/*
	 * The registration never ends, so only a sandbox that was entered since then can forbid the call.
	 */
	if (!private_register() ||
	    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0)
		u_nap_ns(DRAINED_NS);
}
