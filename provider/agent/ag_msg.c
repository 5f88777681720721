/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that wait in a queue, with the descriptors that they carry. */
#include "ag_msg.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_list.h"
#include "w_ctl.h"

struct ag_msg *ag_msg_new(const void *msg, const int *fds, unsigned int nfds)
{
	struct w_ctl_hdr hdr;
	struct ag_msg *m;

	memcpy(&hdr, msg, sizeof(hdr));
	m = malloc(sizeof(*m) + hdr.len);
	if (m == NULL)
		return NULL;
	ag_list_init(&m->node);
	m->len = hdr.len;
	m->nfds = nfds;
	if (nfds > 0)
		memcpy(m->fds, fds, nfds * sizeof(int));
	memcpy(m->bytes, msg, hdr.len);
	return m;
}

void ag_msg_free(struct ag_msg *m)
{
	unsigned int i;

	for (i = 0; i < m->nfds; i++)
		close(m->fds[i]);
	free(m);
}
