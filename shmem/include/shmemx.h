/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shmemx.h - what Viaduct offers beyond OpenSHMEM 1.6
 */
#ifndef SHMEMX_H
#define SHMEMX_H

#include "shmem.h"

/*
 * The cache routines, which OpenSHMEM 1.5 removed, for programs that call them: caches are coherent, so
 * what is left is that the statements after the call read memory again.
 */
#define shmem_clear_cache_inv() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define shmem_set_cache_inv() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define shmem_clear_cache_line_inv(dest) ((void)(dest), __atomic_signal_fence(__ATOMIC_SEQ_CST))
#define shmem_set_cache_line_inv(dest) ((void)(dest), __atomic_signal_fence(__ATOMIC_SEQ_CST))
#define shmem_udcflush() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define shmem_udcflush_line(dest) ((void)(dest), __atomic_signal_fence(__ATOMIC_SEQ_CST))

#endif
