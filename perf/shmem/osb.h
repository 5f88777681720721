/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common part of the OpenSHMEM benchmarks.  They use only the C library and the shmem.h of OpenSHMEM 1.4 or
 * newer, so they compile with any implementation:
 *
 *	oshcc -O2 -o osb_put osb_put.c osb.c osb_options.c
 */
#ifndef OSB_H
#define OSB_H

#include <shmem.h>
#include <stddef.h>

#define OSB_MAX_PES 256
#define OSB_MAX_SIZES 64

/* Are there teams, and collectives on them? */
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5
#define OSB_TEAMS 1
#else
#define OSB_TEAMS 0
#endif

/* The value that is computed from the time of an operation. */
enum osb_unit { OSB_US, OSB_MBPS, OSB_MPS }; /* microseconds, 10^6 bytes/s, 10^6 operations/s */

struct osb_figure {
	const char *name; /* in JSON and for --only */
	const char *head; /* heading of the column, or name of the row where there are no sizes */
	enum osb_unit unit;
	int which; /* the program's own number of it */
};

/* A task: one figure for one size. */
struct osb_task {
	int which;	 /* the number of the figure */
	size_t size;	 /* bytes */
	char *from, *to; /* symmetric */
	int peer;
};

/* Does `count` operations.  They are complete when it returns. */
typedef void osb_work(const struct osb_task *task, long count);

enum osb_who {
	OSB_FIRST, /* PE 0 works, towards the last PE; the others wait */
	OSB_HALF,  /* each PE of the first half works, towards one of the second; rates are added */
	OSB_ALL,   /* all work together; the slowest one counts */
};

struct osb_program {
	const char *name;
	const char *title;
	const char *about; /* for --help: lines without a newline at the end */
	const char *sizes; /* the default, like "1..1M"; NULL: a row for each figure */
	const struct osb_figure *figures;
	int figure_count;
	enum osb_who who;
	long places; /* how many data `from` and `to` hold; 0 means 1 */
	int each_pe; /* that much for each PE */
	size_t unit; /* sizes are multiples of this */
	osb_work *work;
};

/* The options of the command line. */
struct osb_options {
	size_t sizes[OSB_MAX_SIZES];
	int size_count;
	const char *only; /* the name of the only figure, or NULL */
	long batches;
	double batch_us;
	int json;
};

/**
 * Reads the command line.  Ends the process for --help, --version and, with status 2, for arguments that it does not
 * understand.  Does not call OpenSHMEM.
 */
void osb_options_parse(struct osb_options *options, const struct osb_program *program, int argc,
		       char **argv);

/**
 * Runs a benchmark: reads the options, measures each figure for each size, prints a table or JSON.  Returns the value
 * that main() is to return.
 */
int osb_main(const struct osb_program *program, int argc, char **argv);

/** Ends the job with status 1 after a line on standard error. */
_Noreturn void osb_fail(const char *what);

#endif
