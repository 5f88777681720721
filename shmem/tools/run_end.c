/* SPDX-License-Identifier: BSD-2-Clause */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_end.h"

struct run_name run_name(const struct run_pe *pe)
{
	struct run_name n;

	if (pe->machine != NULL)
		snprintf(n.text, sizeof(n.text), "PE %d on %s", pe->pe, pe->machine);
	else
		snprintf(n.text, sizeof(n.text), "PE %d on host%u", pe->pe, pe->host);
	return n;
}

/* Has the other machines signal their PEs; 0: kill them. */
static void signal_far(struct run_job *job, int number)
{
	int i;

	for (i = 0; i < job->n_fars; i++)
		run_far_send(job, &job->fars[i], RUN_WIRE_SIGNAL, (uint32_t)number, NULL, 0);
}

/* Signals all PEs of this machine that run. */
static void signal_all(struct run_job *job, int number)
{
	int i;

	for (i = 0; i < job->n_pes; i++) {
		if (job->pes[i].pid != 0)
			kill(job->pes[i].pid, number);
	}
}

/*
 * Has PEs go on that are stopped. To others SIGCONT would undo the SIGSTOP by which the address sanitizer, when a
 * process ends, stops its threads to search for leaks, and for which it waits then.
 */
static void continue_stopped(struct run_job *job)
{
	siginfo_t info;
	int i, pid;

	for (i = 0; i < job->n_pes; i++) {
		pid = job->pes[i].pid;
		info.si_pid = 0;
		if (pid != 0 &&
		    waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
		    info.si_pid != 0)
			kill(pid, SIGCONT);
	}
}

/* Sets the exit status, and the time at which PEs that have not left are killed; signals and says nothing. */
static void decide(struct run_job *job, int exit_status)
{
	job->ending = true;
	job->exit_status = exit_status;
	job->kill_at = run_now() + RUN_END_MS * INT64_C(1000000);
}

/* Tells the oshrun that has the job, the first time, why the job has to end: that one says it, and has all leave. */
static void complain(struct run_job *job, int exit_status, const char *line)
{
	struct run_wire_abort a = { .status = (uint32_t)exit_status & 0xff };

	if (job->complained)
		return;
	job->complained = true;
	run_up_send(job, RUN_WIRE_COMPLAIN, 0, &a, sizeof(a), line, strlen(line));
}

void run_end(struct run_job *job, int exit_status, const char *fmt, ...)
{
	char line[RUN_WIRE_TEXT_MAX] = "";
	va_list ap;

	if (job->ending)
		return;
	if (fmt != NULL) {
		va_start(ap, fmt);
		vsnprintf(line, sizeof(line), fmt, ap);
		va_end(ap);
	}
	if (job->up != NULL) {
		complain(job, exit_status, line);
		return;
	}
	decide(job, exit_status);
	if (fmt != NULL)
		run_say("%s", line);
	signal_all(job, SIGTERM);
	signal_far(job, SIGTERM);
	continue_stopped(job);
}

void run_end_lost(struct run_job *job, int exit_status, const char *line)
{
	if (job->ending || job->lost_at != 0)
		return;
	job->lost_at = run_now() + RUN_LOST_MS * INT64_C(1000000);
	job->lost_status = exit_status;
	snprintf(job->lost_line, sizeof(job->lost_line), "%s", line);
}

void run_end_lost_now(struct run_job *job)
{
	job->lost_at = 0;
	run_end(job, job->lost_status, "%s", job->lost_line);
}

void run_end_signalled(struct run_job *job, int number, bool pass)
{
	if (job->ending) {
		run_end_kill(job);
		return;
	}
	if (job->up != NULL) {
		if (job->kill_at != 0)
			run_end_kill(job);
		run_end(job, 128 + number, "oshrun on %s got signal %d (%s)",
			job->n_pes > 0 ? job->pes[0].machine : "", number, strsignal(number));
		/* Where the oshrun that has the job does not answer. */
		job->kill_at = run_now() + 2 * RUN_END_MS * INT64_C(1000000);
		return;
	}
	decide(job, 128 + number);
	if (pass)
		signal_all(job, number);
	signal_far(job, number);
	continue_stopped(job);
}

bool run_end_is_passed(int number)
{
	return number == SIGUSR1 || number == SIGUSR2;
}

void run_end_pass(struct run_job *job, int number)
{
	if (job->ending)
		return;
	signal_all(job, number);
	signal_far(job, number);
}

void run_end_told(struct run_job *job, int number)
{
	if (number == 0 || job->ending) {
		run_end_kill(job);
		return;
	}
	decide(job, 128 + number);
	signal_all(job, number);
	continue_stopped(job);
}

/* The other socket of a PE is closed too: a PE that is no child of oshrun dies of that. */
void run_end_kill(struct run_job *job)
{
	int i;

	signal_all(job, SIGKILL);
	signal_far(job, 0);
	for (i = 0; i < job->n_pes; i++) {
		if (job->pes[i].conn.control >= 0)
			close(job->pes[i].conn.control);
		job->pes[i].conn.control = -1;
	}
	job->kill_at = 0;
	job->fars_at = run_now() + RUN_END_MS * INT64_C(1000000);
}
