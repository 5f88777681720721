/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "run_conn.h"
#include "run_end.h"
#include "run_told.h"

#define SIGNAL_MAX 64

/* Does what a frame asks for. 0, -EPROTO or -ENOMEM. */
static int frame(struct run_job *job, const struct run_link *l)
{
	switch (l->head.kind) {
	case RUN_WIRE_RESULT:
		return run_conn_result(job, l->head.arg, l->data, l->head.bytes);
	case RUN_WIRE_SIGNAL:
		if (l->head.arg > SIGNAL_MAX)
			return -EPROTO;
		if (run_end_is_passed((int)l->head.arg))
			run_end_pass(job, (int)l->head.arg);
		else
			run_end_told(job, (int)l->head.arg);
		return 0;
	default:
		return -EPROTO;
	}
}

void run_told(struct run_job *job)
{
	int rc;

	if (job->up_lost)
		return;
	do {
		rc = run_link_pull(job->up);
		if (rc == 1)
			rc = frame(job, job->up) == 0 ? -EAGAIN : -EPROTO;
	} while (rc == -EAGAIN);
	if (rc == 0)
		return;
	if (rc != -ECONNRESET)
		run_say("frames that do not come from oshrun: %s", strerror(-rc));
	job->up_lost = true;
	epoll_ctl(job->poll, EPOLL_CTL_DEL, job->up->in, NULL);
	run_end_kill(job);
}
