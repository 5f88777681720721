// SPDX-License-Identifier: BSD-2-Clause
#include "vs_mark.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vs_all.h"
#include "vs_raw.h"
#include "vs_real.h"

/* A system call that may sleep: as the C library's, a thread can be cancelled in it. */
static int marked(long number, int fd, const void *a, void *alen, long flags)
{
	int type, rc;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	rc = (int)vs_raw_call(number, fd, a, alen, flags, 0, VS_ALL_MARK);
	pthread_setcanceltype(type, NULL);
	return rc;
}

static int marked_connect(int fd, const struct sockaddr *a, socklen_t alen)
{
	return marked(SYS_connect, fd, a, (void *)(uintptr_t)alen, 0);
}

static int marked_accept(int fd, struct sockaddr *a, socklen_t *alen)
{
	return marked(SYS_accept4, fd, a, alen, 0);
}

static int marked_accept4(int fd, struct sockaddr *a, socklen_t *alen, int flags)
{
	return marked(SYS_accept4, fd, a, alen, flags);
}

static int marked_bind(int fd, const struct sockaddr *a, socklen_t alen)
{
	return (int)vs_raw_call(SYS_bind, fd, a, alen, 0, 0, VS_ALL_MARK);
}

void vs_mark_calls(void)
{
	vs_real.connect = marked_connect;
	vs_real.accept = marked_accept;
	vs_real.accept4 = marked_accept4;
	vs_real.bind = marked_bind;
}
