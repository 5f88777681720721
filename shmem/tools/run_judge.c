/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <sys/wait.h>

#include "run_conn.h"
#include "run_end.h"
#include "run_judge.h"
#include "run_output.h"

#define PATIENCE_NS INT64_C(2000000000)

/*
 * A PE that was in the job has ended with 0: the others have PATIENCE_NS to end the same way, or the job has failed.
 * Only the first such PE begins that time.
 */
static void judge_unfinished(struct run_job *job, struct run_pe *pe)
{
	if (job->patient_at != 0)
		return;
	job->patient_at = run_now() + PATIENCE_NS;
	job->impatient_with = pe->pe;
}

/* Judges a PE that ended with this exit status: the job may end, or get its exit status. */
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

/* Decides what the end of a PE means for the job; nothing, if that is ending. */
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
void run_judge_ended(struct run_job *job, struct run_pe *pe, int status)
{
	int32_t told = status;

	run_conn_serve(job, pe, RUN_CONTROL);
	run_conn_serve(job, pe, RUN_SOCK);
	pe->pid = 0;
	pe->ended = true;
	job->running--;
	if (job->up == NULL) {
		judge(job, pe, status);
		return;
	}
	run_output_drain(job, pe);
	run_up_send(job, RUN_WIRE_EXITED, (uint32_t)pe->pe, &told, sizeof(told), NULL, 0);
}

void run_judge_all(struct run_job *job)
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
