/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "osb.h"

#define MOST_OPERATIONS (1l << 20) /* the most in a batch */
#define WARM_US 20000 /* enough for connections to be made and to reach their final state */

/* The symmetric memory by which PEs exchange values. */
struct shared {
	double took;		     /* the time that PE 0 took for a batch */
	double medians[OSB_MAX_PES]; /* at PE 0 */
};

static struct osb_options options;
static struct shared *shared;
static double *samples;

_Noreturn void osb_fail(const char *what)
{
	fprintf(stderr, "PE %d: %s\n", shmem_my_pe(), what);
	fflush(stderr);
	shmem_global_exit(1);
	exit(1); /* older headers do not declare that the call above does not return */
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- one figure ---- */

static int by_value(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) -
	       (*(const double *)a < *(const double *)b);
}

static int is_active(enum osb_who who)
{
	if (who == OSB_ALL)
		return 1;
	return who == OSB_HALF ? shmem_my_pe() < shmem_n_pes() / 2 : shmem_my_pe() == 0;
}

static double time_batch(const struct osb_program *program, const struct osb_task *task, long count)
{
	double start = now_us();

	program->work(task, count);
	return now_us() - start;
}

/* Gives the time that PE 0 measured to all PEs: they must agree on the number of operations of a batch. */
static double agreed(double took)
{
	int pe;

	if (shmem_my_pe() == 0)
		for (pe = 0; pe < shmem_n_pes(); pe++)
			shmem_double_p(&shared->took, took, pe);
	shmem_barrier_all();
	took = shared->took;
	shmem_barrier_all(); /* before the next value may overwrite this one */
	return took;
}

/* Returns the number of operations in a batch of the wanted time. */
static long batch_of(const struct osb_program *program, const struct osb_task *task)
{
	long count = 1;
	double took;

	for (;;) {
		took = time_batch(program, task, count);
		if (program->who == OSB_ALL)
			took = agreed(took);
		if (took >= options.batch_us || count >= MOST_OPERATIONS)
			return count;
		count *= took < options.batch_us / 16 ? 8 : 2;
	}
}

static double median_batch(const struct osb_program *program, const struct osb_task *task)
{
	long count = batch_of(program, task), i;

	for (i = 0; i < options.batches; i++) {
		if (program->who == OSB_ALL)
			shmem_barrier_all();
		samples[i] = time_batch(program, task, count) / (double)count;
	}
	qsort(samples, (size_t)options.batches, sizeof(*samples), by_value);
	return samples[options.batches / 2];
}

/*
 * Runs until connections are warm, but only where PEs do not work together: those that do have met,
 * and agree on the batches.
 */
static void warm(const struct osb_program *program, const struct osb_task *task)
{
	static int done;
	double end = now_us() + WARM_US;

	while (!done && program->who != OSB_ALL && now_us() < end)
		program->work(task, 1);
	done = 1;
}

/* At PE 0: joins the medians of the PEs that worked to one value. */
static double joined(enum osb_who who)
{
	int npes = shmem_n_pes(), pe;
	double slowest = 0, rate = 0;

	if (who == OSB_FIRST)
		return shared->medians[0];
	for (pe = 0; pe < (who == OSB_HALF ? npes / 2 : npes); pe++) {
		if (shared->medians[pe] > slowest)
			slowest = shared->medians[pe];
		rate += 1 / shared->medians[pe];
	}
	return who == OSB_HALF ? 1 / rate : slowest;
}

/* Returns the time of an operation, at PE 0. */
static double measure(const struct osb_program *program, const struct osb_task *task)
{
	shmem_barrier_all();
	if (is_active(program->who)) {
		warm(program, task);
		shmem_double_p(&shared->medians[shmem_my_pe()], median_batch(program, task), 0);
	}
	shmem_barrier_all();
	return joined(program->who);
}

/* ---- what is printed ---- */

static double value_of(enum osb_unit unit, size_t size, double us)
{
	switch (unit) {
	case OSB_MBPS:
		return (double)size / us;
	case OSB_MPS:
		return 1 / us;
	default:
		return us;
	}
}

static const char *unit_name(enum osb_unit unit)
{
	return unit == OSB_US ? "us" : unit == OSB_MBPS ? "MB/s" : "M/s";
}

static int wanted(const struct osb_figure *figure)
{
	return !options.only || !strcmp(options.only, figure->name);
}

static int shows_bandwidth(const struct osb_program *program)
{
	int i;

	for (i = 0; i < program->figure_count; i++)
		if (program->figures[i].unit == OSB_MBPS && wanted(&program->figures[i]))
			return 1;
	return 0;
}

static void print_head(const struct osb_program *program)
{
	char name[SHMEM_MAX_NAME_LEN + 1] = "";
	int i, major, minor;

	shmem_info_get_name(name);
	shmem_info_get_version(&major, &minor);
	printf("# Viaduct OpenSHMEM %s Test (%d PEs, OpenSHMEM %d.%d of %s)\n", program->title,
	       shmem_n_pes(), major, minor, name);
	if (shows_bandwidth(program))
		printf("# Buffers are used again: sizes that fit into a cache show its speed, not that of memory\n");
	printf("%-12s", program->sizes ? "# Size" : "# Operation");
	if (!program->sizes)
		printf("%20s", "Latency (us)");
	for (i = 0; program->sizes && i < program->figure_count; i++)
		if (wanted(&program->figures[i]))
			printf("%20s", program->figures[i].head);
	printf("\n");
}

static void print_value(const struct osb_program *program, const struct osb_figure *figure,
			size_t size, double value)
{
	if (options.json) {
		printf("{\"program\": \"%s\", \"figure\": \"%s\", ", program->name, figure->name);
		if (program->sizes)
			printf("\"size_bytes\": %zu, ", size);
		printf("\"pes\": %d, \"value\": %.6g, \"unit\": \"%s\"}\n", shmem_n_pes(), value,
		       unit_name(figure->unit));
	} else if (program->sizes) {
		printf("%20.3f", value);
	} else {
		printf("%-12s%20.3f\n", figure->head, value);
	}
	fflush(stdout); /* a library that ends the process later cannot take it back */
}

/* ---- all of them ---- */

static void row(const struct osb_program *program, struct osb_task *task)
{
	int print = shmem_my_pe() == 0, i;

	if (print && program->sizes && !options.json)
		printf("%-12zu", task->size);
	for (i = 0; i < program->figure_count; i++) {
		const struct osb_figure *figure = &program->figures[i];
		double us;

		if (!wanted(figure))
			continue;
		task->which = figure->which;
		us = measure(program, task);
		if (print)
			print_value(program, figure, task->size,
				    value_of(figure->unit, task->size, us));
	}
	if (print && program->sizes && !options.json)
		printf("\n");
}

static void *room(size_t bytes)
{
	void *memory = shmem_align(4096, (bytes + 4095) / 4096 * 4096);

	if (!memory)
		osb_fail("the symmetric heap is too small: set SHMEM_SYMMETRIC_SIZE");
	memset(memory, 0, bytes);
	return memory;
}

static void prepare(const struct osb_program *program, struct osb_task *task)
{
	int npes = shmem_n_pes(), me = shmem_my_pe(), i;
	size_t most = 64;

	if (npes > OSB_MAX_PES)
		osb_fail("more PEs than this program can use");
	if (npes < 2 && program->who != OSB_ALL)
		osb_fail("at least 2 PEs are needed, as oshrun -np 2 starts them");
	for (i = 0; i < options.size_count; i++)
		if (options.sizes[i] > most)
			most = options.sizes[i];
	if (program->places)
		most *= (size_t)program->places;
	if (program->each_pe)
		most *= (size_t)npes;
	memset(task, 0, sizeof(*task));
	shared = room(sizeof(*shared));
	task->from = room(most);
	task->to = room(most);
	task->peer = program->who == OSB_HALF ? (me + npes / 2) % npes : npes - 1;
	task->size = 8;
	samples = calloc((size_t)options.batches, sizeof(*samples));
	if (!samples)
		osb_fail("no memory");
}

int osb_main(const struct osb_program *program, int argc, char **argv)
{
	struct osb_task task;
	int i;

	osb_options_parse(&options, program, argc, argv);
	shmem_init();
	prepare(program, &task);
	shmem_barrier_all();
	if (shmem_my_pe() == 0 && !options.json)
		print_head(program);
	for (i = 0; i < (program->sizes ? options.size_count : 1); i++) {
		if (program->sizes)
			task.size = options.sizes[i];
		row(program, &task);
	}
	free(samples);
	shmem_finalize();
	return 0;
}
