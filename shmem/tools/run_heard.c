/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "run_conn.h"
#include "run_end.h"
#include "run_far.h"
#include "run_heard.h"
#include "run_judge.h"
#include "run_output.h"

#define FRAMES 64 /* taken in a row from one machine */

/* The PE of that number, if it is on that machine and has not ended; or NULL. */
static struct run_pe *pe_of(struct run_job *job, const struct run_far *far, uint32_t number)
{
	struct run_pe *pe = number < (uint32_t)job->n_pes ? &job->pes[number] : NULL;

	return pe != NULL && pe->far == far && !pe->ended ? pe : NULL;
}

/* Notes the process of each PE there. 0 or -EPROTO. */
static int heard_started(struct run_job *job, struct run_far *far, const struct run_link *l)
{
	uint32_t pid;
	int i;

	if (far->started || l->head.bytes != (uint32_t)far->n_pes * sizeof(pid))
		return -EPROTO;
	far->started = true;
	for (i = 0; i < far->n_pes; i++) {
		struct run_pe *pe = &job->pes[far->pes[i]];

		memcpy(&pid, l->data + (size_t)i * sizeof(pid), sizeof(pid));
		pe->far_pid = (pid_t)(pid & INT32_MAX);
		if (job->options->verbose)
			run_say("%s: process %d", run_name(pe).text, (int)pe->far_pid);
	}
	return 0;
}

/* Copies status and cause out of the frame, and checks them. 0 or -EPROTO. */
static int abort_of(const struct run_link *l, struct run_wire_abort *a)
{
	if (l->head.bytes < sizeof(*a))
		return -EPROTO;
	memcpy(a, l->data, sizeof(*a));
	return a->status <= 255 && a->lost <= 1 ? 0 : -EPROTO;
}

/* Ends the job with the status and the line of that oshrun. 0 or -EPROTO. */
static int heard_complain(struct run_job *job, const struct run_link *l)
{
	struct run_wire_abort a;
	char *text = l->data + sizeof(a);
	int rc = abort_of(l, &a);

	if (rc != 0)
		return rc;
	run_clean(text);
	if (text[0] != '\0')
		run_end(job, (int)a.status, "%s", text);
	else
		run_end(job, (int)a.status, NULL);
	return 0;
}

/* Ends the job as the PE there asks. 0 or -EPROTO. */
static int heard_abort(struct run_job *job, struct run_pe *pe, const struct run_link *l)
{
	struct run_wire_abort a;
	int rc = abort_of(l, &a);

	if (rc == 0)
		run_conn_abort(job, pe, (int)a.status, a.lost != 0, l->data + sizeof(a));
	return rc;
}

/* The process of a PE has ended: has it judged. 0 or -EPROTO. */
static int heard_exited(struct run_job *job, struct run_pe *pe, const struct run_link *l)
{
	int32_t status;

	if (l->head.bytes != sizeof(status))
		return -EPROTO;
	memcpy(&status, l->data, sizeof(status));
	if (!WIFEXITED(status) && !WIFSIGNALED(status))
		return -EPROTO;
	run_judge_ended(job, pe, status);
	return 0;
}

/* Keeps the status of a PE for reports. 0 or -EPROTO. */
static int heard_status(struct run_pe *pe, const struct run_link *l)
{
	if (l->head.bytes != sizeof(*pe->far_status))
		return -EPROTO;
	memcpy(pe->far_status, l->data, sizeof(*pe->far_status));
	return 0;
}

/* Does what a frame that names a PE asks for. 0 or -EPROTO. */
static int heard_pe(struct run_job *job, struct run_pe *pe, const struct run_link *l)
{
	switch (l->head.kind) {
	case RUN_WIRE_JOIN:
		run_conn_joined(job, pe);
		return 0;
	case RUN_WIRE_FINISH:
		if (pe->state != RUN_JOINED)
			return -EPROTO;
		run_conn_finished(pe);
		return 0;
	case RUN_WIRE_ABORT:
		return heard_abort(job, pe, l);
	case RUN_WIRE_EXITED:
		return heard_exited(job, pe, l);
	case RUN_WIRE_STATUS:
		return heard_status(pe, l);
	case RUN_WIRE_OUT:
	case RUN_WIRE_ERR:
		run_output_take(job, pe, l->head.kind == RUN_WIRE_ERR, l->data, l->head.bytes);
		return 0;
	default:
		return -EPROTO;
	}
}

/* Closes the connection; a machine that leaves before its PEs ends the job. Returns 0. */
static int heard_bye(struct run_job *job, struct run_far *far)
{
	int i;

	for (i = 0; i < far->n_pes; i++) {
		if (!job->pes[far->pes[i]].ended)
			run_end(job, EXIT_FAIL, "oshrun on %s has left before its PEs",
				far->machine);
	}
	run_far_close(job, far);
	return 0;
}

/* Does what a frame asks for. 0, or -EPROTO: it breaks the rules. */
static int frame(struct run_job *job, struct run_far *far)
{
	const struct run_link *l = far->link;
	struct run_pe *pe;

	if (far->greeted == (l->head.kind == RUN_WIRE_HELLO))
		return -EPROTO;
	switch (l->head.kind) {
	case RUN_WIRE_HELLO:
		far->greeted = true;
		if (job->ending) /* there is nothing to start any more */
			run_far_close(job, far);
		else
			run_far_begin(job, far);
		return 0;
	case RUN_WIRE_STARTED:
		return heard_started(job, far, l);
	case RUN_WIRE_COMPLAIN:
		return heard_complain(job, l);
	case RUN_WIRE_BYE:
		return heard_bye(job, far);
	case RUN_WIRE_ALIVE:
		return 0;
	case RUN_WIRE_EXCHANGE:
		return run_conn_far_given(job, far, l->head.arg, l->data, l->head.bytes);
	default:
		pe = far->started ? pe_of(job, far, l->head.arg) : NULL;
		return pe != NULL ? heard_pe(job, pe, l) : -EPROTO;
	}
}

/* Ends the job, for a reason that goes by rc, and closes the connection. */
static void lost(struct run_job *job, struct run_far *far, int rc)
{
	const char *machine = far->machine;

	if (!far->greeted && rc == -EPROTO)
		run_end(job, EXIT_FAIL,
			"%s on %s wrote something that does not come from oshrun: a script that "
			"starts a shell there may write it",
			job->options->rsh, machine);
	else if (!far->greeted && rc == -ECONNRESET)
		run_far_absent(job, far);
	else if (rc == -EPROTONOSUPPORT)
		run_end(job, EXIT_FAIL, "oshrun on %s is of another version", machine);
	else if (rc == -EPROTO)
		run_end(job, EXIT_FAIL, "oshrun on %s broke the rules of its protocol", machine);
	else if (rc == -ENOMEM)
		run_end(job, EXIT_FAIL, "no memory for what oshrun on %s sends", machine);
	else
		run_end(job, EXIT_FAIL, "oshrun on %s, or the connection to it, has ended",
			machine);
	run_far_close(job, far);
}

void run_heard(struct run_job *job, struct run_far *far)
{
	int rc, i;

	if (far->link != NULL && run_output_full(job)) {
		epoll_ctl(job->poll, EPOLL_CTL_DEL, far->link->in, NULL);
		far->paused = job->paused = true;
		run_link_push(far->link);
		return;
	}
	for (i = 0; i < FRAMES && far->link != NULL; i++) {
		do {
			rc = run_link_pull(far->link);
		} while (rc == -EAGAIN);
		if (rc == 0)
			break;
		far->heard_at = run_now();
		if (rc == 1)
			rc = frame(job, far);
		if (rc < 0) {
			lost(job, far, rc);
			return;
		}
	}
	if (far->link != NULL && far->link->queued > 0) {
		run_link_push(far->link);
		run_watch(job, RUN_FAR, far->index, far->link->in, far->link->queued > 0);
	}
}
