/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of armed handlers. */
#include <stdlib.h>

#include "vi_notify.h"

void vi_notify_append(struct vi_notify **first, struct vi_notify **last, struct vi_notify *n)
{
	n->next = NULL;
	if (*last != NULL)
		(*last)->next = n;
	else
		*first = n;
	*last = n;
}

struct vi_notify *vi_notify_take(struct vi_notify **first, struct vi_notify **last)
{
	struct vi_notify *n = *first;

	*first = n->next;
	if (*first == NULL)
		*last = NULL;
	return n;
}

uint32_t vi_notify_cancel(struct vi_notify **first, struct vi_notify **last)
{
	uint32_t count = 0;

	while (*first != NULL) {
		free(vi_notify_take(first, last));
		count++;
	}
	return count;
}
