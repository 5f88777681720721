/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections made and closed one after the other between two processes. */
#include "scale.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#define WARM 20u
#define MOST 100000u

/* Both sides of a cycle start together: they wait by polling. */
static void await_now(struct sc_cell *cell, uint64_t least)
{
	while (atomic_load(&cell->v) < least)
		sched_yield();
}

struct cycle {
	struct sc_end end;
	struct sc_slab slab;
	VIP_VI_HANDLE vi;
	char mine[64], theirs[64];
};

static void open_cycle(struct cycle *c, uint32_t index)
{
	snprintf(c->mine, sizeof(c->mine), "scale-%d-%u", (int)getppid(), index);
	snprintf(c->theirs, sizeof(c->theirs), "scale-%d-%u", (int)getppid(), 1 - index);
	sc_open(&c->end);
	sc_slab_create(&c->end, &c->slab, 1, 8);
	c->vi = sc_vi(&c->end);
}

static void close_cycle(struct cycle *c)
{
	sc_vi_destroy(c->vi);
	sc_slab_destroy(&c->end, &c->slab);
	sc_close(&c->end);
}

static void connect_now(struct cycle *c)
{
	sc_connect_begin(&c->end, c->vi, c->mine, c->theirs);
	sc_connect_end(c->vi);
}

static void lead(struct sc_job *job, struct cycle *c)
{
	static double joined[MOST], parted[MOST];
	double begin = 0, start, middle, end = 0;
	uint32_t n;

	for (n = 0; n < WARM + MOST; n++) {
		await_now(&job->board->ready, n + 1);
		start = pf_clock_ns();
		begin = n == WARM ? start : begin;
		if (n > WARM && start - begin > job->cfg->duration * 1e9)
			break;
		atomic_store(&job->board->go.v, n + 1);
		connect_now(c);
		middle = pf_clock_ns();
		sc_disconnect(c->vi);
		end = pf_clock_ns();
		if (n >= WARM) {
			joined[n - WARM] = middle - start;
			parted[n - WARM] = end - middle;
		}
	}
	atomic_store(&job->board->stop.v, 1);
	atomic_store(&job->board->go.v, n + 1);
	n -= WARM;
	job->board->out[0] = n * 1e9 / (start - begin);
	job->board->out[1] = sc_median(joined, n);
	job->board->out[2] = sc_median(parted, n);
}

/* A receive that is posted ends when the other side disconnects. */
static void follow(struct sc_job *job, struct cycle *c)
{
	VIP_DESCRIPTOR *d;
	VIP_RETURN rc;
	uint64_t n;

	for (n = 1;; n++) {
		SC_CHECK(VipPostRecv(c->vi, sc_desc(&c->slab, 0), c->slab.handle));
		atomic_store(&job->board->ready.v, n);
		await_now(&job->board->go, n);
		if (atomic_load(&job->board->stop.v))
			return;
		connect_now(c);
		rc = VipRecvWait(c->vi, VIP_INFINITE, &d);
		if (rc != VIP_DESCRIPTOR_ERROR)
			sc_die("VipRecvWait on a lost connection: %s", VipxErrorString(rc));
		sc_disconnect(c->vi);
	}
}

static void connect_body(struct sc_job *job, uint32_t index)
{
	struct cycle c;

	open_cycle(&c, index);
	if (index)
		follow(job, &c);
	else
		lead(job, &c);
	close_cycle(&c);
}

int sc_test_connect(const struct sc_config *cfg)
{
	struct sc_job job = { .cfg = cfg, .test = "connect", .count = 2, .body = connect_body };
	int rc = sc_run(&job);

	if (!rc) {
		sc_emit(cfg, job.test, "connections made and closed", 1, job.board->out[0], "1/s");
		sc_emit(cfg, job.test, "connect", 1, job.board->out[1], "ns");
		sc_emit(cfg, job.test, "disconnect", 1, job.board->out[2], "ns");
	}
	sc_end(&job);
	return rc;
}
