/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values of shmem.h that the units below the types know.  They do not include that header, which has the names of
 * the specification; shmem/api/api_setup.c asserts that the values are equal.
 */
#ifndef OSH_SPEC_H
#define OSH_SPEC_H

#define OSH_THREAD_MULTIPLE 3 /* SHMEM_THREAD_MULTIPLE, the highest level */

/* Handles that are no addresses. */
#define OSH_TEAM_INVALID_HANDLE 0u
#define OSH_TEAM_WORLD_HANDLE 1u
#define OSH_TEAM_SHARED_HANDLE 2u
#define OSH_CTX_DEFAULT_HANDLE 1u

/* Options of a context. */
#define OSH_CTX_SERIALIZED (1l << 0)
#define OSH_CTX_PRIVATE (1l << 1)
#define OSH_CTX_NOSTORE (1l << 2)
#define OSH_CTX_SESSION_BATCH (1l << 3)
#define OSH_CTX_OPTIONS                                                                            \
	(OSH_CTX_SERIALIZED | OSH_CTX_PRIVATE | OSH_CTX_NOSTORE | OSH_CTX_SESSION_BATCH)

#endif
