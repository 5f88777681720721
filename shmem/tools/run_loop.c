/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_conn.h"
#include "run_end.h"
#include "run_loop.h"
#include "run_output.h"
#include "run_report.h"

#define EVENTS 64
#define PATIENCE_NS INT64_C(2000000000)

/* ---- processes that have ended ---- */

/* It was in the job: the others have to end the same way, or the job has failed. */
static void judge_unfinished(struct run_job *job, struct run_pe *pe)
{
	if (job->patient_at != 0)
		return;
	job->patient_at = run_now() + PATIENCE_NS;
	job->impatient_with = pe->pe;
}

static void judge_exit(struct run_job *job, struct run_pe *pe, int code)
{
	if (pe->lost) /* it has said why, and others may know better */
		return;
	if (pe->state == RUN_JOINED && code != 0)
		run_end(job, code, "%s ended with exit status %d and without shmem_finalize",
			run_name(pe).text, code);
	else if (pe->state == RUN_JOINED)
		judge_unfinished(job, pe);
	else if (code != 0 && job->exit_status == 0)
		job->exit_status = code;
	run_conn_check_ended(job);
}

static void judge(struct run_job *job, struct run_pe *pe, int status)
{
	if (job->options->verbose && WIFEXITED(status))
		run_say("%s: ended with exit status %d", run_name(pe).text, WEXITSTATUS(status));
	if (job->ending)
		return;
	if (WIFSIGNALED(status))
		run_end(job, 128 + WTERMSIG(status), "%s was killed by signal %d (%s)%s",
			run_name(pe).text, WTERMSIG(status), strsignal(WTERMSIG(status)),
			WCOREDUMP(status) ? ", core dumped" : "");
	else
		judge_exit(job, pe, WEXITSTATUS(status));
}

/* What it had sent before is taken first: it may have left the job, or ended it. */
static void pe_ended(struct run_job *job, struct run_pe *pe, int status)
{
	run_conn_serve(job, pe, RUN_CONTROL);
	run_conn_serve(job, pe, RUN_SOCK);
	pe->pid = 0;
	pe->ended = true;
	job->running--;
	judge(job, pe, status);
}

static void reap(struct run_job *job, struct run_fabric *fabric)
{
	int status, i;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == fabric->pid) {
			fabric->pid = 0;
			run_end(job, EXIT_FAIL,
				"vi_fabric, which has the hosts of the job, has ended");
		}
		for (i = 0; i < job->n_pes && job->pes[i].pid != pid; i++)
			;
		if (i < job->n_pes)
			pe_ended(job, &job->pes[i], status);
	}
}

/* ---- signals ---- */

static void take_signal(struct run_job *job, struct run_fabric *fabric, int fd)
{
	struct signalfd_siginfo s;

	if (read(fd, &s, sizeof(s)) != (ssize_t)sizeof(s))
		return;
	if (s.ssi_signo == SIGCHLD)
		reap(job, fabric);
	else if (s.ssi_signo == SIGQUIT)
		run_report(job);
	else /* one from the terminal has reached the PEs already */
		run_end_signalled(job, (int)s.ssi_signo, s.ssi_code != SI_KERNEL);
}

/* ---- time ---- */

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

	if (next == 0)
		return -1;
	left = next - run_now();
	return left <= 0 ? 0 : (int)((left + 999999) / 1000000);
}

static bool due(int64_t *at, int64_t now)
{
	if (*at == 0 || *at > now)
		return false;
	*at = 0;
	return true;
}

static void take_time(struct run_job *job)
{
	int64_t now = run_now();

	if (due(&job->sample_at, now)) {
		run_report_sample(job);
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
}

static void take_event(struct run_job *job, struct run_fabric *fabric, int signals, uint64_t data)
{
	struct run_pe *pe = &job->pes[(uint32_t)data];
	enum run_event what = (enum run_event)(data >> 32);

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
		if (pe->streams[what - RUN_STREAM_OUT].fd >= 0)
			run_output_read(pe, what - RUN_STREAM_OUT);
		break;
	}
}

/* The last has ended: had some left the job, and some not? */
static void judge_all(struct run_job *job)
{
	int i;

	if (job->lost_at != 0)
		run_end_lost_now(job);
	for (i = 0; i < job->n_pes && job->patient_at != 0; i++) {
		if (job->pes[i].state == RUN_FINISHED)
			run_end(job, EXIT_FAIL, "%s ended without shmem_finalize, unlike PE %d",
				run_name(&job->pes[job->impatient_with]).text, i);
	}
}

void run_loop(struct run_job *job, struct run_fabric *fabric, int signals)
{
	struct epoll_event events[EVENTS];
	int i, n;

	reap(job, fabric);
	while (job->running > 0) {
		n = epoll_wait(job->poll, events, EVENTS, wait_ms(job));
		for (i = 0; i < n; i++)
			take_event(job, fabric, signals, events[i].data.u64);
		take_time(job);
	}
	judge_all(job);
}
