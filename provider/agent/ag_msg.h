/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that wait in a queue: a copy of the bytes, and the descriptors that go with them. */
#ifndef AG_MSG_H
#define AG_MSG_H

#include <stdint.h>

#include "ag_list.h"
#include "w_ctl.h"

struct ag_msg {
	struct ag_list node; /* of the queue */
	uint32_t len;
	uint32_t nfds;
	int fds[W_CTL_FDS]; /* owned */
	uint8_t bytes[];
};

/*
 * Copies a message, whose header says how long it is, and takes over `nfds` descriptors, at most W_CTL_FDS.
 * Returns NULL when there is no memory; then the descriptors still belong to the caller.
 */
struct ag_msg *ag_msg_new(const void *msg, const int *fds, unsigned int nfds);

/* Frees a message, not NULL, that is in no queue, and closes its descriptors. */
void ag_msg_free(struct ag_msg *m);

#endif
