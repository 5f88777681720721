/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vi_scale: the cost of one more VI, process, region or connection.
 *
 * A test runs in processes of its own, which share a board.  The parent opens no NIC: it waits for
 * all of them, or for the first failure or the time limit, which end the rest.
 */
#ifndef SCALE_H
#define SCALE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <vipl.h>
#include <vipl_ext.h>

#include "pf_config.h"
#include "pf_side.h"

#define SC_MAX_PROCESSES 64u
#define SC_MAX_VIS 4096u
#define SC_MAX_REGIONS 200000u
#define SC_LINE 128u

struct sc_config {
	bool json;
	bool wanted[8]; /* by test */
	uint32_t processes, vis, regions;
	struct pf_sizes sizes;
	double duration, timeout;
	pid_t agent; /* 0: not told */
};

/* ---- scale_out.c: figures ---- */

void sc_out_begin(void);
/* A finished figure: prints or keeps it. `n`: the parameter of the figure, such as a size. */
void sc_emit(const struct sc_config *cfg, const char *test, const char *variant, uint64_t n,
	     double value, const char *unit);
/* Prints the JSON document of all figures. */
void sc_print_document(void);
void sc_out_end(void);

/* ---- scale_run.c: processes ---- */

struct sc_cell {
	_Alignas(SC_LINE) _Atomic uint64_t v;
};

struct sc_board {
	struct sc_cell ready, go, stop; /* number of processes that run; signals to them */
	struct sc_cell told;		/* a process has printed why it ends */
	struct sc_cell sum;
	struct sc_cell count[SC_MAX_PROCESSES]; /* each written by its process alone */
	double out[8];				/* results, read when all have ended */
};

struct sc_job;
typedef void (*sc_body)(struct sc_job *job, uint32_t index);

struct sc_job {
	const struct sc_config *cfg;
	const char *test;
	uint32_t count; /* processes */
	sc_body body;
	sc_body conduct;  /* one more process, which gives the signals; NULL: none */
	uint32_t variant; /* of the test, by its own count */
	struct sc_board *board;
};

/* Runs the processes; 0, or -errno after a line on standard error. The board is new each time. */
int sc_run(struct sc_job *job);
void sc_end(struct sc_job *job); /* gives the board back */

/* In a process of a job: prints the reason and ends the process. */
void sc_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void sc_check(VIP_RETURN rc, const char *call);
#define SC_CHECK(call) sc_check(call, #call)
void sc_await(struct sc_cell *cell, uint64_t least);
void sc_sleep(double seconds);
double sc_median(double *v, size_t n);

/* ---- scale_end.c: VIs ---- */

struct sc_end {
	VIP_NIC_HANDLE nic;
	VIP_NIC_ATTRIBUTES attrs;
};

/* Registered memory for descriptors, each with one segment of `bytes`. */
struct sc_slab {
	uint8_t *base;
	size_t room, count, bytes;
	VIP_MEM_HANDLE handle;
};

void sc_open(struct sc_end *end);
void sc_close(struct sc_end *end);
void sc_slab_create(struct sc_end *end, struct sc_slab *slab, size_t count, size_t bytes);
void sc_slab_destroy(struct sc_end *end, struct sc_slab *slab);
VIP_DESCRIPTOR *sc_desc(const struct sc_slab *slab, size_t i); /* ready to be posted */

VIP_VI_HANDLE sc_vi(struct sc_end *end);
void sc_vi_destroy(VIP_VI_HANDLE vi); /* disconnects first */
void sc_disconnect(VIP_VI_HANDLE vi); /* and takes every descriptor */
/* Peer to peer under two names; the other side passes them in reverse order. */
void sc_connect_begin(struct sc_end *end, VIP_VI_HANDLE vi, const char *mine, const char *theirs);
void sc_connect_end(VIP_VI_HANDLE vi);
/* Two VIs of one process. */
void sc_join(struct sc_end *end, VIP_VI_HANDLE a, VIP_VI_HANDLE b, uint32_t number);

/* ---- the tests ---- */

int sc_test_vi(const struct sc_config *cfg);
int sc_test_process(const struct sc_config *cfg);
int sc_test_region(const struct sc_config *cfg);
int sc_test_pairs(const struct sc_config *cfg);
int sc_test_connect(const struct sc_config *cfg);
int sc_test_register(const struct sc_config *cfg);

#endif
