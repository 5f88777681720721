/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of a connected VI, a connected process, a registered region; cost of registration. */
#include "scale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* 32 connections: the first 31 within a host have longer payload buffers than those that follow. */
#define WARM_VIS 64u
#define WARM_PROCESSES 2u
#define WARM_REGIONS 1000u

/* The bytes that the kernel accounts to a process under `field`. */
static double account(pid_t pid, const char *file, const char *field)
{
	char path[64], line[256];
	double kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, field, strlen(field)))
			kib = strtod(line + strlen(field), NULL);
	}
	if (f)
		fclose(f);
	if (kib < 0)
		sc_die("no %s in %s", field, path);
	return kib * 1024;
}

/* Address space of shared mappings for writing: the windows. */
static double mapped_shared(void)
{
	unsigned long long from, to;
	char line[512], flags[8];
	double sum = 0;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx %7s", &from, &to, flags) == 3 && !strcmp(flags, "rw-s"))
			sum += (double)(to - from);
	}
	if (f)
		fclose(f);
	return sum;
}

struct held {
	double own, agent, mapped, touched;
};

/* The agent may belong to another user; then only its status can be read. */
static struct held hold(const struct sc_job *job)
{
	pid_t self = getpid(), agent = job->cfg->agent;

	return (struct held){
		.own = account(self, "smaps_rollup", "Anonymous:"),
		.agent = agent ? account(agent, "status", "RssAnon:") : 0,
		.mapped = mapped_shared(),
		.touched = account(self, "smaps_rollup", "Pss_Shmem:"),
	};
}

static void keep(const struct sc_job *job, struct held before, uint32_t count)
{
	struct held after = hold(job);

	job->board->out[0] = (after.own - before.own) / count;
	job->board->out[1] = (after.agent - before.agent) / count;
	job->board->out[2] = (after.mapped - before.mapped) / count;
	job->board->out[3] = (after.touched - before.touched) / count;
}

static void emit_kept(const struct sc_job *job, uint32_t n, unsigned int rows)
{
	static const char *const variants[] = { "private memory", "memory of the agent",
						"window memory mapped", "window memory touched" };
	unsigned int i;

	for (i = 0; i < rows; i++) {
		if (i != 1 || job->cfg->agent)
			sc_emit(job->cfg, job->test, variants[i], n, job->board->out[i], "bytes");
	}
}

/* ---- VIs ---- */

static void exchange(VIP_VI_HANDLE from, VIP_VI_HANDLE to, const struct sc_slab *slab, size_t i)
{
	VIP_DESCRIPTOR *d;

	SC_CHECK(VipPostSend(from, sc_desc(slab, i), slab->handle));
	SC_CHECK(VipSendWait(from, VIP_INFINITE, &d));
	SC_CHECK(VipRecvWait(to, VIP_INFINITE, &d));
	SC_CHECK(VipPostRecv(to, sc_desc(slab, i + 1), slab->handle));
}

/* Connected VIs in pairs, each with a receive posted, after a message in each direction. */
static void add_vis(struct sc_end *end, const struct sc_slab *slab, VIP_VI_HANDLE *vis,
		    uint32_t from, uint32_t to)
{
	uint32_t i;

	for (i = from; i < to; i += 2) {
		vis[i] = sc_vi(end);
		vis[i + 1] = sc_vi(end);
		SC_CHECK(VipPostRecv(vis[i], sc_desc(slab, 4 * i), slab->handle));
		SC_CHECK(VipPostRecv(vis[i + 1], sc_desc(slab, 4 * i + 1), slab->handle));
		sc_join(end, vis[i], vis[i + 1], i);
		exchange(vis[i], vis[i + 1], slab, 4 * i + 2);
		exchange(vis[i + 1], vis[i], slab, 4 * i + 4);
	}
}

static void vi_body(struct sc_job *job, uint32_t index)
{
	static VIP_VI_HANDLE vis[WARM_VIS + SC_MAX_VIS];
	uint32_t i, total = WARM_VIS + job->cfg->vis;
	struct held before;
	struct sc_slab slab;
	struct sc_end end;

	sc_open(&end);
	sc_slab_create(&end, &slab, 4 * total + 8, 64);
	memset(vis, 0, sizeof(vis));
	add_vis(&end, &slab, vis, 0, WARM_VIS);
	before = hold(job);
	add_vis(&end, &slab, vis, WARM_VIS, total);
	keep(job, before, job->cfg->vis);
	for (i = 0; i < total; i++)
		sc_vi_destroy(vis[i]);
	sc_slab_destroy(&end, &slab);
	sc_close(&end);
}

int sc_test_vi(const struct sc_config *cfg)
{
	struct sc_job job = { .cfg = cfg, .test = "vi", .count = 1, .body = vi_body };
	int rc = sc_run(&job);

	if (!rc)
		emit_kept(&job, cfg->vis, 4);
	sc_end(&job);
	return rc;
}

/* ---- processes ---- */

static void process_body(struct sc_job *job, uint32_t index)
{
	VIP_VI_HANDLE a, b;
	struct sc_end end;
	double took;

	if (index >= WARM_PROCESSES)
		sc_await(&job->board->go, 1);
	took = -account(getpid(), "smaps_rollup", "Anonymous:");
	sc_open(&end);
	took += account(getpid(), "smaps_rollup", "Anonymous:");
	if (index >= WARM_PROCESSES)
		atomic_fetch_add(&job->board->sum.v, (uint64_t)took);
	a = sc_vi(&end);
	b = sc_vi(&end);
	sc_join(&end, a, b, index);
	atomic_fetch_add(&job->board->ready.v, 1);
	sc_await(&job->board->stop, 1);
	sc_vi_destroy(a);
	sc_vi_destroy(b);
	sc_close(&end);
}

static void process_conduct(struct sc_job *job, uint32_t index)
{
	uint32_t count = job->count - WARM_PROCESSES;
	struct held before;

	sc_await(&job->board->ready, WARM_PROCESSES);
	before = hold(job);
	atomic_store(&job->board->go.v, 1);
	sc_await(&job->board->ready, job->count);
	keep(job, before, count);
	job->board->out[0] = (double)atomic_load(&job->board->sum.v) / count;
	atomic_store(&job->board->stop.v, 1);
}

int sc_test_process(const struct sc_config *cfg)
{
	struct sc_job job = { .cfg = cfg,
			      .test = "process",
			      .count = cfg->processes,
			      .body = process_body,
			      .conduct = process_conduct };
	int rc = sc_run(&job);

	if (!rc)
		emit_kept(&job, cfg->processes, 2);
	sc_end(&job);
	return rc;
}

/* ---- regions ---- */

static void add_regions(struct sc_end *end, void *memory, VIP_MEM_HANDLE *handles, uint32_t from,
			uint32_t to)
{
	uint32_t i;

	for (i = from; i < to; i++)
		SC_CHECK(VipRegisterMem(end->nic, memory, 64, NULL, &handles[i]));
}

static void region_body(struct sc_job *job, uint32_t index)
{
	uint32_t i, total = WARM_REGIONS + job->cfg->regions;
	VIP_MEM_HANDLE *handles = malloc(total * sizeof(*handles));
	static uint8_t memory[64];
	struct held before;
	struct sc_end end;

	if (!handles)
		sc_die("out of memory");
	memset(handles, 1, total * sizeof(*handles));
	sc_open(&end);
	add_regions(&end, memory, handles, 0, WARM_REGIONS);
	before = hold(job);
	add_regions(&end, memory, handles, WARM_REGIONS, total);
	keep(job, before, job->cfg->regions);
	for (i = 0; i < total; i++)
		SC_CHECK(VipDeregisterMem(end.nic, memory, handles[i]));
	sc_close(&end);
	free(handles);
}

int sc_test_region(const struct sc_config *cfg)
{
	struct sc_job job = { .cfg = cfg, .test = "region", .count = 1, .body = region_body };
	int rc = sc_run(&job);

	if (!rc)
		emit_kept(&job, cfg->regions, 2);
	sc_end(&job);
	return rc;
}

/* ---- registration ---- */

#define TIMES 101u

static double time_of_registering(struct sc_end *end, void *memory, uint64_t size)
{
	double took[TIMES], start;
	VIP_MEM_HANDLE handle;
	uint32_t i;

	for (i = 0; i < TIMES; i++) {
		start = pf_clock_ns();
		SC_CHECK(VipRegisterMem(end->nic, memory, size, NULL, &handle));
		SC_CHECK(VipDeregisterMem(end->nic, memory, handle));
		took[i] = pf_clock_ns() - start;
	}
	return sc_median(took, TIMES);
}

/* The memory is present before: the times include registration, but no page faults. */
static void register_body(struct sc_job *job, uint32_t index)
{
	uint64_t size = job->cfg->sizes.v[job->variant];
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct sc_end end;

	if (memory == MAP_FAILED)
		sc_die("%llu bytes of memory: smaller --sizes", (unsigned long long)size);
	sc_open(&end);
	job->board->out[0] = time_of_registering(&end, memory, size);
	sc_close(&end);
	munmap(memory, size);
}

/* Touching more than this at once could push other programs out of memory. */
static bool too_large(uint64_t size)
{
	double available;
	char line[256];
	FILE *f = fopen("/proc/meminfo", "re");

	available = 0;
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "MemAvailable:", 13))
			available = strtod(line + 13, NULL) * 1024;
	}
	if (f)
		fclose(f);
	return available > 0 && (double)size > available / 2;
}

int sc_test_register(const struct sc_config *cfg)
{
	struct sc_job job = { .cfg = cfg, .test = "register", .count = 1, .body = register_body };
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < cfg->sizes.n; i++) {
		if (too_large(cfg->sizes.v[i])) {
			fprintf(stderr,
				"vi_scale: register: %llu bytes are left out: more than half of the "
				"memory available\n",
				(unsigned long long)cfg->sizes.v[i]);
			continue;
		}
		job.variant = (uint32_t)i;
		rc = sc_run(&job);
		if (!rc)
			sc_emit(cfg, job.test, "register and deregister", cfg->sizes.v[i],
				job.board->out[0], "ns");
		sc_end(&job);
	}
	return rc;
}
