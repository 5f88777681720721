/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_end.h"
#include "run_output.h"
#include "run_report.h"

/* The status of a PE: what it writes by itself, or what its machine has sent last. */
static struct boot_status *status_of(const struct run_job *job, const struct run_pe *pe)
{
	if (pe->far != NULL)
		return pe->far_status;
	return (struct boot_status *)(job->status + (size_t)pe->pe * BOOT_WIRE_STATUS_STRIDE);
}

/* Has the PE joined, and not left or ended? */
static bool in_job(const struct run_pe *pe)
{
	return pe->state == RUN_JOINED && !pe->ended;
}

/*
 * Notes which PEs have made steps; returns when the last of them made one, 0 if none is in the job. *waits_out: one
 * of them says that it waits.
 */
static int64_t sample(struct run_job *job, int64_t now, bool *waits_out)
{
	int64_t last = 0;
	int i;

	*waits_out = false;
	for (i = 0; i < job->n_pes; i++) {
		struct run_pe *pe = &job->pes[i];
		struct boot_status *s = status_of(job, pe);
		uint64_t steps;

		if (!in_job(pe))
			continue;
		steps = atomic_load_explicit(&s->steps, memory_order_relaxed);
		if (steps != pe->steps)
			pe->steps_since = now;
		pe->steps = steps;
		last = pe->steps_since > last ? pe->steps_since : last;
		*waits_out |= atomic_load_explicit(&s->waiting, memory_order_relaxed) != 0;
	}
	return last;
}

/* --serve: tells the oshrun that has the job that this one lives, and the status of each PE that has changed. */
static void tell_changes(struct run_job *job)
{
	struct boot_status now[1];
	struct run_pe *pe;
	int i;

	run_up_send(job, RUN_WIRE_ALIVE, 0, NULL, 0, NULL, 0);
	for (i = 0; i < job->n_pes; i++) {
		pe = &job->pes[i];
		if (pe->ended)
			continue;
		memcpy(now, status_of(job, pe), sizeof(now));
		if (pe->far_status == NULL)
			pe->far_status = calloc(1, sizeof(*pe->far_status));
		if (pe->far_status == NULL || memcmp(now, pe->far_status, sizeof(now)) == 0)
			continue;
		memcpy(pe->far_status, now, sizeof(now));
		run_up_send(job, RUN_WIRE_STATUS, (uint32_t)pe->pe, now, sizeof(now), NULL, 0);
	}
}

void run_report_sample(struct run_job *job)
{
	int64_t now = run_now(), last;
	bool waits, stands;

	if (job->up != NULL) {
		if (!run_output_full(job))
			tell_changes(job);
		return;
	}
	last = sample(job, now, &waits);
	stands = waits && (double)(now - last) / 1e9 >= job->options->hang_report;
	if (stands && !job->stalled && job->options->hang_report > 0)
		run_report(job);
	job->stalled = stands;
}

/* Has the PE given its part to an exchange, while some have not? */
static bool in_exchange(const struct run_job *job, const struct run_pe *pe)
{
	return in_job(pe) && job->given > 0 && pe->conn.exchanges > job->exchanges;
}

/* Says what the PE does, or what it waits for. */
static void state_text(const struct run_job *job, const struct run_pe *pe, struct boot_status *s,
		       char *text, size_t size)
{
	char routine[sizeof(s->routine) + 1], peer[64] = "", address[32] = "";
	int32_t who = atomic_load_explicit(&s->peer, memory_order_relaxed);
	uint64_t where = atomic_load_explicit(&s->address, memory_order_relaxed);

	if (!in_job(pe) || atomic_load_explicit(&s->waiting, memory_order_relaxed) == 0) {
		snprintf(text, size, "%s",
			 pe->ended		     ? "ended"
			 : pe->state == RUN_OUTSIDE  ? "before shmem_init"
			 : pe->state == RUN_FINISHED ? "after shmem_finalize"
						     : "runs");
		return;
	}
	memcpy(routine, s->routine, sizeof(s->routine));
	routine[sizeof(s->routine)] = '\0';
	run_clean(routine);
	if (who >= 0)
		snprintf(peer, sizeof(peer), " for PE %d", (int)who);
	else if (in_exchange(job, pe))
		snprintf(peer, sizeof(peer), " for all PEs, %d of %d %s there", job->given,
			 job->n_pes, job->given == 1 ? "is" : "are");
	if (where != 0)
		snprintf(address, sizeof(address), " at %#llx", (unsigned long long)where);
	snprintf(text, size, "waits in %s%s%s", routine, peer, address);
}

/* The machine of a PE, or else its emulated host. */
static struct run_name place_of(const struct run_pe *pe)
{
	struct run_name n;

	snprintf(n.text, sizeof(n.text), "host%u", pe->host);
	if (pe->machine != NULL)
		snprintf(n.text, sizeof(n.text), "%s", pe->machine);
	return n;
}

/* The number of the PE's process, on whichever machine; 0: not started, or (here) ended. */
static int process_of(const struct run_pe *pe)
{
	return (int)(pe->far != NULL ? pe->far_pid : pe->pid);
}

void run_report(struct run_job *job)
{
	int64_t now = run_now();
	char text[256];
	bool waits;
	int i;

	sample(job, now, &waits);
	run_say("   PE      process  host    no step for  state");
	for (i = 0; i < job->n_pes; i++) {
		const struct run_pe *pe = &job->pes[i];

		state_text(job, pe, status_of(job, pe), text, sizeof(text));
		if (in_job(pe))
			run_say("%5d %12d  %-6s %10.0f s  %s", i, process_of(pe), place_of(pe).text,
				(double)(now - pe->steps_since) / 1e9, text);
		else
			run_say("%5d %12d  %-6s %12s  %s", i, process_of(pe), place_of(pe).text, "",
				text);
	}
}
