/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for memory that another PE or thread changes, and what the launcher can see of it. */
#ifndef OSH_WAIT_H
#define OSH_WAIT_H

#include "osh_ops.h"

/* Notes for the launcher that this PE waits in `fn`, for an address or a PE; osh_wait_shown_end() ends that. */
void osh_wait_show(const char *fn, const volatile void *addr, int pe);
void osh_wait_shown_end(void);
/* Ends the job: what `fn` waits for will not come, as that PE is at its end. */
_Noreturn void osh_wait_in_vain(const char *fn, int pe);

#endif
