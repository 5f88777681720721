/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_conn.h"
#include "run_end.h"
#include "run_far.h"
#include "run_heard.h"
#include "run_judge.h"
#include "run_loop.h"
#include "run_output.h"
#include "run_report.h"
#include "run_sink.h"
#include "run_spawn.h"
#include "run_told.h"

#define EVENTS 64

/* Takes the status of each child that has ended, vi_fabric and remote shells too, and has judged what that means. */
static void reap(struct run_job *job, struct run_fabric *fabric)
{
	int status, i;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		run_spawn_check(job); /* which PE could not be started, and why, comes first */
		if (pid == fabric->pid) {
			fabric->pid = 0;
			run_end(job, EXIT_FAIL,
				"vi_fabric, which has the hosts of the job, has ended");
		}
		run_far_reaped(job, pid, status);
		for (i = 0; i < job->n_pes && job->pes[i].pid != pid; i++)
			;
		if (i < job->n_pes)
			run_judge_ended(job, &job->pes[i], status);
	}
}

/* ---- signals ---- */

/* Takes one signal: reaps, reports, passes it on, or ends the job. */
static void take_signal(struct run_job *job, struct run_fabric *fabric, int fd)
{
	struct signalfd_siginfo s;

	if (read(fd, &s, sizeof(s)) != (ssize_t)sizeof(s))
		return;
	if (s.ssi_signo == SIGCHLD)
		reap(job, fabric);
	else if (run_end_is_passed((int)s.ssi_signo))
		run_end_pass(job, (int)s.ssi_signo);
	else if (s.ssi_signo != SIGQUIT) /* one from the terminal has reached the PEs already */
		run_end_signalled(job, (int)s.ssi_signo, s.ssi_code != SI_KERNEL);
	else if (job->up == NULL)
		run_report(job);
}

/* ---- time ---- */

/* The sooner of two times, of which 0 is none. */
static int64_t sooner(int64_t a, int64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Until the next of the deadlines, in ms rounded up; -1: there is none. */
static int wait_ms(const struct run_job *job)
{
	int64_t next = sooner(sooner(sooner(job->kill_at, job->lost_at), job->limit_at),
			      sooner(job->patient_at, job->sample_at));
	int64_t left;

	next = sooner(next, job->fars_at);
	if (next == 0)
		return -1;
	left = next - run_now();
	return left <= 0 ? 0 : (int)((left + 999999) / 1000000);
}

/* Has the time come? Then it is set to 0, which is none. */
static bool due(int64_t *at, int64_t now)
{
	if (*at == 0 || *at > now)
		return false;
	*at = 0;
	return true;
}

/* Does what is due by now. */
static void take_time(struct run_job *job)
{
	int64_t now = run_now();

	if (due(&job->sample_at, now)) {
		run_report_sample(job);
		run_far_check(job);
		job->sample_at = now + RUN_SAMPLE_NS;
	}
	if (due(&job->limit_at, now) && !job->ending) {
		run_report(job);
		run_end(job, EXIT_LATE, "the job has not ended in %g s (--timeout)",
			job->options->timeout);
	}
	if (due(&job->patient_at, now))
		run_end(job, EXIT_FAIL, "%s ended without shmem_finalize, and others have not",
			run_name(&job->pes[job->impatient_with]).text);
	if (due(&job->lost_at, now))
		run_end_lost_now(job);
	if (due(&job->kill_at, now))
		run_end_kill(job);
	if (due(&job->fars_at, now))
		run_far_kill(job);
}

/* Handles one event; `data` is that of epoll: what it is about, and the index. */
static void take_event(struct run_job *job, struct run_fabric *fabric, int signals, uint64_t data)
{
	enum run_event what = (enum run_event)(data >> 32);
	uint32_t index = (uint32_t)data;
	struct run_pe *pe = &job->pes[index < (uint32_t)job->n_pes ? index : 0];

	switch (what) {
	case RUN_SIGNAL:
		take_signal(job, fabric, signals);
		break;
	case RUN_SOCK:
	case RUN_CONTROL:
		run_conn_serve(job, pe, what);
		break;
	case RUN_STREAM_OUT:
	case RUN_STREAM_ERR:
		run_output_read(job, pe, what - RUN_STREAM_OUT);
		break;
	case RUN_FAR:
		run_heard(job, &job->fars[index]);
		break;
	case RUN_UP:
		run_told(job);
		break;
	case RUN_STARTS:
		run_spawn_check(job);
		break;
	case RUN_WRITTEN:
		run_sink_seen();
		run_output_check(job);
		break;
	}
}

/*
 * ms to wait, when all PEs have ended: RUN_BYE_MS for other machines to say so, or, where none is connected or the job
 * is ending, RUN_END_MS for their remote shells to end.
 */
static int64_t far_ms(const struct run_job *job)
{
	int i;

	for (i = 0; i < job->n_fars; i++) {
		if (job->fars[i].link != NULL && !job->ending)
			return RUN_BYE_MS;
	}
	return RUN_END_MS;
}

/* Takes again what others have written, when somebody reads it here, or the job ends. */
static void resume(struct run_job *job)
{
	if (!job->paused)
		return;
	if (run_output_full(job)) {
		job->fars_at = 0; /* they cannot say that all has ended */
		return;
	}
	job->paused = false;
	run_output_resume(job);
	run_far_resume(job);
}

/* Waits for events, `ms` at most (-1: any time), and for what is due, and handles both. */
static void step(struct run_job *job, struct run_fabric *fabric, int signals, int ms)
{
	struct epoll_event events[EVENTS];
	int i, n, next = wait_ms(job);

	n = epoll_wait(job->poll, events, EVENTS, ms < 0 || (next >= 0 && next < ms) ? next : ms);
	for (i = 0; i < n; i++)
		take_event(job, fabric, signals, events[i].data.u64);
	take_time(job);
}

/* Have all sinks written what was put there, or failed? */
static bool is_written(void)
{
	return !run_sink_busy(RUN_SINK_OUT) && !run_sink_busy(RUN_SINK_ERR) &&
	       !run_sink_busy(RUN_SINK_UP);
}

void run_loop_flush(struct run_job *job, struct run_fabric *fabric, int signals)
{
	int64_t until = 0, left = 0;

	while (!is_written() && left >= 0) {
		if (until == 0 && (job->ending || job->complained || job->up_lost))
			until = run_now() + RUN_END_MS * INT64_C(1000000);
		left = until != 0 ? until - run_now() : 0;
		step(job, fabric, signals, until != 0 ? (int)(left / 1000000) + 1 : -1);
	}
	run_output_check(job);
	if (!is_written())
		run_sink_abandon();
}

void run_loop(struct run_job *job, struct run_fabric *fabric, int signals)
{
	reap(job, fabric);
	while (job->running > 0 || run_far_any(job)) {
		step(job, fabric, signals, -1);
		resume(job);
		if (job->running == 0 && job->fars_at == 0)
			job->fars_at = run_now() + far_ms(job) * INT64_C(1000000);
	}
	run_judge_all(job);
}
