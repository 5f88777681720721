/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes, one measurement.  The parent waits until both have ended, or kills them at the
 * time limit.
 */
#include "raw.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pf_side.h"

#define SHM_HEADER 4096u
#define POLLS_BEFORE_YIELD 100u

/* The beginning of the shared memory; the rest belongs to the job. */
struct gate {
	struct raw_counter go;	  /* side 0 writes: number of the batch to run, 0: none yet */
	struct raw_counter ready; /* side 1 writes: number of the batch it has begun */
	struct raw_counter over;  /* side 1 writes: number of the batch it has ended */
	_Atomic uint64_t count;	  /* side 0 writes: steps of the batch, 0: end */
	_Atomic int finished;
	double median;
};

size_t raw_shm_len(const struct raw_job *job)
{
	size_t most = job->ring > job->size ? job->ring : job->size;

	return ((most + 4095) & ~(size_t)4095) * 2 * (job->pairs ? job->pairs : 1) + (1u << 17);
}

static void await_gate(struct raw_counter *c, uint64_t v)
{
	uint32_t polls = 0;

	while (raw_load(c) != v) {
		raw_pause();
		if (++polls > POLLS_BEFORE_YIELD)
			sched_yield();
	}
}

/* Both begin together, side 0 times until its part has ended. */
static double run_batch(struct gate *g, struct raw_job *job, uint64_t batch, uint64_t count)
{
	double start, end;

	job->batch = batch;
	atomic_store(&g->count, count);
	raw_store(&g->go, batch);
	if (job->side[1])
		await_gate(&g->ready, batch);
	start = pf_clock_ns();
	job->side[0](job, count);
	end = pf_clock_ns();
	if (job->side[1])
		await_gate(&g->over, batch);
	return end - start;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The shortest of a few, as a process may have lost its processor in some. */
static double quickest(struct gate *g, struct raw_job *job, uint64_t count, double enough,
		       uint64_t *batch)
{
	double took, least = 1e18;
	int i;

	for (i = 0; i < 3 && least >= enough; i++) {
		took = run_batch(g, job, ++*batch, count);
		least = took < least ? took : least;
	}
	return least;
}

/* Finds how many steps take a batch's time; leaves the number of batches run in *batch. */
static uint64_t calibrate(struct gate *g, struct raw_job *job, double goal_ns, uint64_t *batch)
{
	uint64_t count = 4;
	double took;

	for (;;) {
		took = quickest(g, job, count, goal_ns / 4, batch);
		if (took >= goal_ns / 4 || count > UINT64_C(1) << 32)
			break;
		count *= took < goal_ns / 64 ? 8 : 2;
	}
	count = (uint64_t)((double)count * goal_ns / took);
	return count < 2 ? 2 : count;
}

static void lead(const struct raw_config *cfg, struct gate *g, struct raw_job *job)
{
	static double took[RAW_MAX_BATCHES];
	uint64_t batch = 0, count = calibrate(g, job, cfg->batch_ms * 1e6, &batch);
	uint32_t i;

	for (i = 0; i < cfg->batches; i++)
		took[i] = run_batch(g, job, ++batch, count) / (double)count;
	qsort(took, cfg->batches, sizeof(took[0]), by_value);
	g->median = took[cfg->batches / 2];
	atomic_store(&g->count, 0);
	raw_store(&g->go, batch + 1);
	atomic_store(&g->finished, 1);
}

static void follow(struct gate *g, struct raw_job *job)
{
	uint64_t batch, count;

	for (batch = 1;; batch++) {
		await_gate(&g->go, batch);
		count = atomic_load(&g->count);
		if (!count)
			return;
		raw_store(&g->ready, batch);
		job->batch = batch;
		job->side[1](job, count);
		raw_store(&g->over, batch);
	}
}

static int pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

static int side_main(const struct raw_config *cfg, struct gate *g, struct raw_job *job, int side)
{
	size_t len = (job->size + 8191) & ~(uint64_t)4095;
	int cpu = cfg->cpu[job->one_core ? 0 : side];
	int rc = cfg->pin || job->one_core ? pin_to(cpu) : 0;

	if (rc) {
		fprintf(stderr, "vi_raw: pinning to processor %d: %s; give others with --pin\n",
			cpu, strerror(-rc));
		return 1;
	}
	job->own = aligned_alloc(4096, len);
	if (!job->own)
		return 1;
	memset(job->own, side + 1, len);
	if (side)
		follow(g, job);
	else
		lead(cfg, g, job);
	return 0;
}

static pid_t start_side(const struct raw_config *cfg, struct gate *g, struct raw_job *job, int side)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	_exit(side_main(cfg, g, job, side));
}

static int run_sides(const struct raw_config *cfg, struct gate *g, struct raw_job *job)
{
	pid_t pids[2] = { -1, -1 };
	sigset_t set;
	uint32_t n = 0;
	int i, rc;

	signal(SIGCHLD, SIG_DFL); /* where it is ignored no child can be waited for */
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fflush(NULL);
	for (i = 0; i < 2 && job->side[i]; i++) {
		pids[i] = start_side(cfg, g, job, i);
		if (pids[i] < 0)
			break;
		n++;
	}
	rc = pf_await_children(pids, n, i < 2 && job->side[i] ? 0 : cfg->timeout);
	return rc || atomic_load(&g->finished) ? rc : -ECHILD;
}

static double in_unit(const struct raw_job *job, double step_ns)
{
	step_ns -= job->idle_ns;
	switch (job->unit) {
	case RAW_HALF_TRIP:
		return step_ns / 2;
	case RAW_RATE:
		return 1e9 / step_ns;
	case RAW_STEP:
		return step_ns;
	default:
		return (double)job->size * 1e9 / step_ns;
	}
}

int raw_run(const struct raw_config *cfg, struct raw_job *job, double *out)
{
	size_t len = SHM_HEADER + raw_shm_len(job);
	struct gate *g = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int rc;

	if (g == MAP_FAILED) {
		rc = -errno;
		fprintf(stderr, "vi_raw: %zu bytes of shared memory: %s\n", len, strerror(-rc));
		return rc;
	}
	memset(g, 0, len);
	job->shm = (uint8_t *)g + SHM_HEADER;
	rc = run_sides(cfg, g, job);
	if (rc == -ETIMEDOUT)
		fprintf(stderr, "vi_raw: %s: not done within %.0f s; --timeout allows more\n",
			job->test, cfg->timeout);
	else if (rc)
		fprintf(stderr, "vi_raw: %s: a measuring process failed\n", job->test);
	else
		*out = in_unit(job, g->median);
	munmap(g, len);
	return rc;
}
