/* SPDX-License-Identifier: BSD-2-Clause */
/* The expedited memory barrier of the kernel. */
#ifndef U_MEMBARRIER_H
#define U_MEMBARRIER_H

#include <stdbool.h>

/*
 * Registers the process for all barriers below.  In a process that has several threads the call waits in the kernel
 * until all processors have scheduled, seconds on a busy machine: so it is made when a NIC is opened, with no
 * lock held.  The registration never ends; calling it again costs nothing.  0, or -ENOSYS or another -errno for that
 * of u_membarrier(); the barrier within the process may be available all the same.
 */
int u_membarrier_register(void);

/*
 * The sleeper's half of an asymmetric store-load barrier: on return every
 * thread of every process that called u_membarrier_register() has passed a
 * full barrier since the call.  It costs microseconds, so only a thread about to
 * sleep calls it.  Returns 0, or -ENOSYS if the kernel has no such call:
 * then both sides must use full fences (u_membarrier_available()).
 */
int u_membarrier(void);
/* Has the kernel what u_membarrier() needs?  The answer does not change. */
bool u_membarrier_available(void);

/*
 * As u_membarrier(), but for the threads of this process only; it usually interrupts no other process.
 * Without membarrier it is a full fence of the calling thread only.
 */
void u_membarrier_own(void);

/*
 * Has the kernel the barrier among the threads of one process?  A process that did not call u_membarrier_register() is
 * registered for it by the first call, which may wait for as long.  The answer does not change.
 */
bool u_membarrier_private_available(void);
/*
 * As u_membarrier_own(), but needs only the kernel's barrier among the threads of one process.  It must not be called
 * if u_membarrier_private_available() returns false.
 */
void u_membarrier_private(void);

#endif
