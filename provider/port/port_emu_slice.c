/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of slices: of this host's that are not freed, and of the peer's that were offered. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "port_emu_priv.h"

int emu_slices_add(struct emu_slices *s, const struct emu_slice *slice)
{
	uint32_t room = s->room == 0 ? 16 : s->room * 2;
	struct emu_slice *v;

	if (s->count == s->room) {
		v = realloc(s->v, room * sizeof(*v));
		if (v == NULL)
			return -ENOMEM;
		s->v = v;
		s->room = room;
	}
	s->v[s->count++] = *slice;
	return 0;
}

/* Returns the entry, or NULL.  Searches from the newest: a slice is mostly opened, or freed, soon after it came. */
struct emu_slice *emu_slices_find(const struct emu_slices *s, uint32_t id)
{
	for (uint32_t i = s->count; i > 0; i--) {
		if (s->v[i - 1].id == id)
			return &s->v[i - 1];
	}
	return NULL;
}

void emu_slices_del(struct emu_slices *s, struct emu_slice *slice)
{
	if (slice->fd >= 0)
		close(slice->fd);
	*slice = s->v[--s->count];
}

void emu_slices_clear(struct emu_slices *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->v[i].fd >= 0)
			close(s->v[i].fd);
	}
	free(s->v);
	*s = (struct emu_slices){ 0 };
}
