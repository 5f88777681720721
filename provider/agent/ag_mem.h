/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Window memory of processes: allotting it, and the messages by which two connected processes tell
 * each other about theirs.
 *
 * Each piece is a slice of one port: of `self` or, where the host's ports are adapters, of one of these, since only
 * memory behind an adapter can be stored into through it.
 */
#ifndef AG_MEM_H
#define AG_MEM_H

#include "ag_client.h"
#include "ag_link.h"
#include "w_cm.h"
#include "w_ctl.h"

struct ag_alloc;

/*
 * Handle W_ALLOC, W_FREE and W_TELL of a process.  Only W_ALLOC is answered, by W_ALLOCATED with a descriptor or
 * W_NO_RESOURCE.
 */
void ag_mem_alloc(struct ag_client *c, const struct w_alloc *m);
void ag_mem_free(struct ag_client *c, const struct w_alloc *m);
void ag_mem_tell(struct ag_client *c, const struct w_tell *m);

/* Handles W_CM_TELL of another agent, for a process of this host. */
void ag_mem_told(struct ag_link *l, const struct w_cm_tell *m);

/*
 * Frees a piece of a process, and `m`, with its shares and its descriptor here; it no longer counts for the process.
 * When the agent ends, the process may go on using it.
 */
void ag_mem_release(struct ag_client *c, struct ag_alloc *m);

#endif
