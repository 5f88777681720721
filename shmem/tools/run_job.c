/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "run_job.h"
#include "run_sink.h"

int64_t run_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int run_watch(struct run_job *job, enum run_event what, int pe, int fd, bool write_too)
{
	struct epoll_event e = { .events = EPOLLIN | (write_too ? EPOLLOUT : 0),
				 .data.u64 = (uint64_t)what << 32 | (uint32_t)pe };

	if (epoll_ctl(job->poll, EPOLL_CTL_ADD, fd, &e) == 0)
		return 0;
	return errno == EEXIST && epoll_ctl(job->poll, EPOLL_CTL_MOD, fd, &e) == 0 ? 0 : -errno;
}

void run_up_send(struct run_job *job, enum run_wire_kind kind, uint32_t arg, const void *a,
		 size_t a_bytes, const void *b, size_t b_bytes)
{
	struct run_wire_head head = run_wire_head(kind, arg, (uint32_t)(a_bytes + b_bytes));

	if (job->up_lost)
		return;
	run_sink_put(RUN_SINK_UP, (const char *)&head, sizeof(head));
	run_sink_put(RUN_SINK_UP, a, a_bytes);
	run_sink_put(RUN_SINK_UP, b, b_bytes);
}

void run_far_send(struct run_job *job, struct run_far *far, enum run_wire_kind kind, uint32_t arg,
		  const void *data, size_t bytes)
{
	if (far->link == NULL)
		return;
	if (run_link_queue(far->link, kind, arg, data, bytes, NULL, 0) != 0)
		shutdown(far->link->in, SHUT_RDWR); /* which is found by reading */
	run_link_push(far->link);
	run_watch(job, RUN_FAR, far->index, far->link->in, far->link->queued > 0);
}

void run_say(const char *fmt, ...)
{
	char line[1024];
	size_t n;
	va_list ap;

	n = (size_t)snprintf(line, sizeof(line), "oshrun: ");
	va_start(ap, fmt);
	n += (size_t)vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	if (n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (!run_sink_over(RUN_SINK_ERR, RUN_SINK_MOST)) /* else nobody reads it */
		run_sink_put(RUN_SINK_ERR, line, n);
}

const char *run_error(int err)
{
	switch (err) {
	case EMFILE:
		return "no file descriptor left; raise it with ulimit -n";
	case EFBIG:
		return "a file may not have this size; raise it with ulimit -f";
	case EAGAIN:
		return "no process or thread left; raise ulimit -u, or pids.max of the control group";
	case ENOMEM:
		return "no memory left, or none allowed (ulimit -v, ulimit -d)";
	default:
		return strerror(err);
	}
}

void run_clean(char *text)
{
	for (; *text != '\0'; text++) {
		if (iscntrl((unsigned char)*text))
			*text = '?';
	}
}
