// SPDX-License-Identifier: BSD-2-Clause
#include "vs_late.h"

#include <errno.h>

#include "vs_obj.h"

__thread struct vs_obj *_Atomic vs_late_list __attribute__((tls_model("initial-exec")));

/*
 * Adds the object to the list of this thread.  A signal handler that interrupts this adds its own entry before or after
 * this one.
 */
static void add(struct vs_obj *o)
{
	o->next_free = atomic_load(&vs_late_list);
	while (!atomic_compare_exchange_weak(&vs_late_list, &o->next_free, o))
		;
}

bool vs_late_claim(struct vs_obj *o, bool (*act)(struct vs_obj *o))
{
	bool (*none)(struct vs_obj * o) = NULL;

	return atomic_compare_exchange_strong(&o->late, &none, act);
}

void vs_late_add(struct vs_obj *o)
{
	add(o);
}

void vs_late_run(void)
{
	struct vs_obj *o = atomic_exchange(&vs_late_list, NULL), *next;
	bool (*act)(struct vs_obj * o);
	int before = errno;

	for (; o; o = next) {
		next = o->next_free;
		act = atomic_exchange(&o->late, NULL);
		if (!act(o) && vs_late_claim(o, act))
			add(o);
	}
	errno = before;
}
