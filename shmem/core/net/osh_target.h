/* SPDX-License-Identifier: BSD-2-Clause */
/* From a symmetric address and a PE of a team to the place where the memory can be reached. */
#ifndef OSH_TARGET_H
#define OSH_TARGET_H

#include "osh_far.h"

/*
 * Ends the job, and says why: not called in a job, no PE of that number in the world, or (it looks no further) an
 * address that is not symmetric.
 */
_Noreturn void osh_bad_access(const char *fn, const void *addr, size_t n, int pe);

/*
 * The number in the world of PE `pe` of the context's team; a PE that does not exist ends the job. Outside of a job it
 * is not checked: osh_target() does.
 */
int osh_world_pe_checked(const char *fn, const struct osh_ctx *ctx, int pe);

/*
 * Where n bytes of PE `pe` of the world are mapped here, after mapping them if need be; or NULL, with *t filled for a
 * far PE.  That may have to be asked first where it has them: by `ctx`, the context of the operation.  An address or a
 * PE that is not valid ends the job, and with SHMEM_DEBUG one in the heap that is not allocated.
 */
void *osh_target(const char *fn, struct osh_ctx *ctx, const void *addr, size_t n, int pe,
		 struct osh_target *t);

#endif
