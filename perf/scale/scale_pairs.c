/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes in pairs on one host, all at once: their sum, and the share of the slowest. */
#include "scale.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STREAM_WINDOW 64u
#define ACKS 4u
#define SLICE_MS 200u

/* Descriptors of one side: receives first, then sends, which are used in turn. */
struct side {
	struct sc_job *job;
	struct sc_end end;
	struct sc_slab slab;
	VIP_VI_HANDLE vi;
	uint32_t recvs, sends;
	uint64_t sent, reaped;
};

static bool over(const struct side *s)
{
	return atomic_load_explicit(&s->job->board->stop.v, memory_order_relaxed) != 0;
}

/* The other side leaves at the end; calls that fail after that are not failures. */
static bool went_well(const struct side *s, VIP_RETURN rc, const char *what)
{
	if (rc == VIP_SUCCESS)
		return true;
	if (!over(s))
		sc_check(rc, what);
	return false;
}

typedef VIP_RETURN (*wait_call)(VIP_VI_HANDLE, VIP_ULONG, VIP_DESCRIPTOR **);

/* Waits by the method that the library chooses. */
static VIP_DESCRIPTOR *take(const struct side *s, wait_call wait, const char *what)
{
	VIP_DESCRIPTOR *d;
	VIP_RETURN rc;

	do {
		rc = wait(s->vi, SLICE_MS, &d);
	} while (rc == VIP_TIMEOUT && !over(s));
	return went_well(s, rc, what) ? d : NULL;
}

static bool receive(const struct side *s)
{
	VIP_DESCRIPTOR *d = take(s, VipRecvWait, "VipRecvWait");

	if (!d)
		return false;
	d->CS.Status = 0;
	d->CS.Length = (VIP_UINT32)s->slab.bytes;
	return went_well(s, VipPostRecv(s->vi, d, s->slab.handle), "VipPostRecv");
}

static bool send_one(struct side *s)
{
	VIP_DESCRIPTOR *d = sc_desc(&s->slab, s->recvs + s->sent % s->sends);

	if (s->sent - s->reaped == s->sends) {
		if (!take(s, VipSendWait, "VipSendWait"))
			return false;
		s->reaped++;
	}
	s->sent++;
	return went_well(s, VipPostSend(s->vi, d, s->slab.handle), "VipPostSend");
}

/* Messages after which the receiver answers, and how many of them may be without answer. */
static uint32_t round_of(const struct side *s)
{
	return s->job->variant > 1 ? s->job->variant / 2 : 1;
}

static void stream(struct side *s)
{
	uint32_t n, ahead = 0, most = s->job->variant > 1 ? 2 : 1;
	bool good = true;

	while (good && !over(s)) {
		for (n = 0; good && n < round_of(s); n++)
			good = send_one(s);
		if (good && ++ahead == most) {
			good = receive(s);
			ahead--;
		}
	}
}

static void drain(struct side *s, struct sc_cell *count)
{
	uint64_t n = 0;
	bool good = true;

	while (good && !over(s)) {
		good = receive(s);
		if (!good)
			break;
		n++;
		atomic_store_explicit(&count->v, n, memory_order_relaxed);
		if (n % round_of(s) == 0)
			good = send_one(s);
	}
}

static void set_up(struct side *s, uint32_t index)
{
	char mine[64], theirs[64];
	uint32_t i;

	snprintf(mine, sizeof(mine), "scale-%d-%u", (int)getppid(), index);
	snprintf(theirs, sizeof(theirs), "scale-%d-%u", (int)getppid(), index ^ 1);
	sc_open(&s->end);
	s->recvs = index % 2 ? s->job->variant + ACKS : ACKS;
	s->sends = index % 2 ? ACKS : s->job->variant;
	sc_slab_create(&s->end, &s->slab, s->recvs + s->sends, 8);
	s->vi = sc_vi(&s->end);
	for (i = 0; i < s->recvs; i++)
		SC_CHECK(VipPostRecv(s->vi, sc_desc(&s->slab, i), s->slab.handle));
	sc_connect_begin(&s->end, s->vi, mine, theirs);
	sc_connect_end(s->vi);
}

static void pairs_body(struct sc_job *job, uint32_t index)
{
	struct side s = { .job = job };

	set_up(&s, index);
	atomic_fetch_add(&job->board->ready.v, 1);
	sc_await(&job->board->go, 1);
	if (index % 2)
		drain(&s, &job->board->count[index]);
	else
		stream(&s);
	sc_vi_destroy(s.vi);
	sc_slab_destroy(&s.end, &s.slab);
	sc_close(&s.end);
}

/* The messages that all pairs have received since `before`; *least: those of the slowest. */
static uint64_t received(const struct sc_job *job, const uint64_t *before, uint64_t *least)
{
	uint64_t got, sum = 0;
	uint32_t i;

	*least = UINT64_MAX;
	for (i = 1; i < job->count; i += 2) {
		got = atomic_load(&job->board->count[i].v) - before[i];
		sum += got;
		*least = got < *least ? got : *least;
	}
	return sum;
}

static void pairs_conduct(struct sc_job *job, uint32_t index)
{
	uint64_t before[SC_MAX_PROCESSES], least, sum;
	double start, took;
	uint32_t i;

	sc_await(&job->board->ready, job->count);
	atomic_store(&job->board->go.v, 1);
	for (i = 1; i < job->count; i += 2)
		sc_await(&job->board->count[i], 1);
	start = pf_clock_ns();
	for (i = 1; i < job->count; i += 2)
		before[i] = atomic_load(&job->board->count[i].v);
	do {
		sc_sleep(job->cfg->duration);
		sum = received(job, before, &least);
	} while (!sum);
	took = (pf_clock_ns() - start) / 1e9;
	atomic_store(&job->board->stop.v, 1);
	job->board->out[0] = (double)sum / took;
	job->board->out[1] = (double)least * (job->count / 2) / (double)sum;
}

static int run_pairs(const struct sc_config *cfg, uint32_t processes, uint32_t window)
{
	struct sc_job job = { .cfg = cfg,
			      .test = "pairs",
			      .count = processes,
			      .variant = window,
			      .body = pairs_body,
			      .conduct = pairs_conduct };
	bool trip = window == 1;
	int rc = sc_run(&job);

	if (!rc) {
		sc_emit(cfg, job.test, trip ? "to and fro, all together" : "streams, all together",
			processes, job.board->out[0], trip ? "round trips/s" : "messages/s");
		sc_emit(cfg, job.test,
			trip ? "to and fro, least over mean" : "streams, least over mean",
			processes, job.board->out[1], "ratio");
	}
	sc_end(&job);
	return rc;
}

int sc_test_pairs(const struct sc_config *cfg)
{
	uint32_t n;
	int rc = 0;

	for (n = 2; !rc && n <= cfg->processes;
	     n = n < cfg->processes && 2 * n > cfg->processes ? cfg->processes : 2 * n) {
		rc = run_pairs(cfg, n, STREAM_WINDOW);
		if (!rc)
			rc = run_pairs(cfg, n, 1);
	}
	return rc;
}
