/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of a stream, as poll() and epoll name them. */
#ifndef VS_READY_H
#define VS_READY_H

#include "st_stream.h"
#include "vs_obj.h"

/* Events of poll() or epoll that a stream has, of those asked for, and which the kernel has to tell. */
struct vs_ready {
	unsigned int events; /* found, asked for, by the stream itself */
	unsigned int kernel; /* the kernel's word counts for these */
	uint64_t in_edges, out_edges;
};

/* Fills `look`: a kept error counts, as ST_ERR and ST_IN, and fewer bytes than SO_RCVLOWAT do not. */
void vs_ready_get(struct vs_obj *o, struct st_stream *s, unsigned int asked, struct vs_ready *look);
/* The same events as the stream names them, for st_arm(); ST_ERR and ST_HUP always. */
unsigned int vs_stream_events(unsigned int asked);

/* Counts a promotion once it is seen, and notes that bytes may have gone over a VI. */
void vs_ready_note(struct vs_obj *o);

/*
 * SIOCATMARK of a stream: 0 with *at, which is 1 if the next byte is the one after an urgent byte; -1 and errno.  Takes
 * marks that have come.
 */
int vs_ready_at_mark(struct st_stream *s, int fd, int *at);

#endif
