/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop of vi_forward: one thread, which sleeps in epoll_wait() alone. */
#ifndef VF_LOOP_H
#define VF_LOOP_H

#include <stdint.h>

/* A descriptor, embedded in what it belongs to. */
struct vf_source {
	void (*ready)(struct vf_source *s, uint32_t events);
	int fd;
	uint32_t wanted; /* 0: it is not in the set */
};

/* 0 or -errno. */
int vf_loop_init(void);
/* Asks for these events, level-triggered; 0 takes the descriptor out of the set.  0 or -errno. */
int vf_loop_want(struct vf_source *s, uint32_t events);
/* Waits so long at most, -1 for ever, and calls ready() of those that are.  One that leaves the set is not called. */
void vf_loop_turn(int ms);
/* Milliseconds of a clock that only goes forward. */
int64_t vf_loop_now(void);

#endif
