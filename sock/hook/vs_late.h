/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends of objects that have to wait.
 *
 * A signal handler may close a descriptor while the call that it has interrupted holds a lock which that needs.  The
 * thread then ends the object when it has left that call.
 */
#ifndef VS_LATE_H
#define VS_LATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "vs_base.h"

struct vs_obj;

/* The list of this thread. */
extern __thread struct vs_obj *_Atomic vs_late_list __attribute__((tls_model("initial-exec")));

/*
 * An object is in the list of one thread at most: false if it is in one already.  Otherwise the caller adds it, and
 * `act` gets the caller's reference.  `act` is called later, and returns false while it still cannot do its work.
 */
bool vs_late_claim(struct vs_obj *o, bool (*act)(struct vs_obj *o));
/* Adds a claimed object to the list of this thread. */
void vs_late_add(struct vs_obj *o);
/* Calls `act` of all in the list of this thread; those that return false stay.  Leaves errno alone. */
void vs_late_run(void);

/* Tries the ends that wait in this thread, if there are any. */
static inline void vs_late_check(void)
{
	if (vs_unlikely(atomic_load_explicit(&vs_late_list, memory_order_relaxed) != NULL))
		vs_late_run();
}

#endif
