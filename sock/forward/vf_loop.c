// SPDX-License-Identifier: BSD-2-Clause
#include "vf_loop.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <time.h>

#define BATCH 64

static int set = -1;
static struct epoll_event batch[BATCH];
static int batch_count;

int vf_loop_init(void)
{
	set = epoll_create1(EPOLL_CLOEXEC);
	return set < 0 ? -errno : 0;
}

int vf_loop_want(struct vf_source *s, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = s };
	int op = EPOLL_CTL_MOD, i;

	if (events == s->wanted)
		return 0;
	if (events == 0)
		op = EPOLL_CTL_DEL;
	else if (s->wanted == 0)
		op = EPOLL_CTL_ADD;
	if (epoll_ctl(set, op, s->fd, &e) != 0 && op != EPOLL_CTL_DEL)
		return -errno;
	s->wanted = events;
	for (i = 0; events == 0 && i < batch_count; i++) {
		if (batch[i].data.ptr == s)
			batch[i].data.ptr = NULL;
	}
	return 0;
}

void vf_loop_turn(int ms)
{
	struct vf_source *s;
	int i;

	batch_count = epoll_wait(set, batch, BATCH, ms);
	for (i = 0; i < batch_count; i++) {
		s = batch[i].data.ptr;
		if (s)
			s->ready(s, batch[i].events);
	}
	batch_count = 0;
}

int64_t vf_loop_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
