/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks: as in the specification. */
#ifndef OSH_LOCK_H
#define OSH_LOCK_H

void osh_set_lock(const char *fn, long *lock);
void osh_clear_lock(const char *fn, long *lock);
int osh_test_lock(const char *fn, long *lock);

#endif
