/* SPDX-License-Identifier: BSD-2-Clause */
#include "st_told.h"

void st_told_add(struct st_wait *w, struct st_stream *s)
{
	if (s->listed)
		return;
	st_get(s);
	s->listed = true;
	s->next_listed = w->told;
	w->told = s;
	st_kick(s, w);
}

void st_tell(struct st_stream *s)
{
	struct st_wait *w = s->wait;

	if (st_lock(&w->lock) != 0) {
		st_changed();
		return;
	}
	st_told_add(w, s);
	st_unlock(&w->lock);
}
