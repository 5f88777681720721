/* SPDX-License-Identifier: BSD-2-Clause */
/* Placement of the threads of a NIC on processors: docs/placement.md. */
#ifndef VI_PLACE_H
#define VI_PLACE_H

#include "u_place.h"
#include "vi_objects.h"

/*
 * Places the calling thread and the NIC's transfer thread, but no other of its threads, by `rules`; NULL: those of
 * VIADUCT_AFFINITY.  May be called again.  Without any rule the first call moves nothing, and a further one lets the
 * transfer thread use all processors of the process.  Returns 0; -EINVAL for rules that are refused; -ENXIO if they
 * are strict and cannot be met; or -errno.  After an error vi_place_query() tells of the earlier rules.  Takes
 * place_lock.
 */
int vi_place_nic(struct vi_nic *nic, const char *rules);
void vi_place_fini(struct vi_nic *nic);

/*
 * Gives what vi_place_nic() decided for a role, except Size.  -EINVAL for a role in which the NIC has no thread.
 * Takes place_lock.
 */
int vi_place_query(struct vi_nic *nic, uint64_t role, VIPX_PLACEMENT *out);

/*
 * Places the calling thread by the rules of the last vi_place_nic(); fills *out, except Size.  0; -ENXIO if they are
 * strict and cannot be met; or -errno.  Takes place_lock.
 */
int vi_place_thread(struct vi_nic *nic, const struct u_place_ask *ask, VIPX_PLACEMENT *out);

#endif
