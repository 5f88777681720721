/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "st_error.h"

void st_keep_error(struct st_stream *s, int positive)
{
	int none = 0;

	/* The first one tells most. */
	atomic_compare_exchange_strong(&s->error, &none, positive);
	st_kick_all(s);
}

int st_give_error(struct st_stream *s)
{
	if (st_likely(atomic_load_explicit(&s->error, memory_order_relaxed) == 0))
		return 0;
	return -atomic_exchange(&s->error, 0);
}

ST_COLD void st_reset(struct st_stream *s)
{
	if (atomic_exchange(&s->dead, true))
		return;
	st_count(&st_counts.resets, 1);
	st_sys_reset(s->fd);
	st_sys_error(s->fd); /* the kernel keeps it, too, and would report it a second time */
	st_keep_error(s, ECONNRESET);
	st_look_after(s, 0);
}
