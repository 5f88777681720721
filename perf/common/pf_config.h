/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration of a measuring tool.  One table of options (pf_option.c) drives both the
 * parser and --help; each tool has the options that its mask selects.
 */
#ifndef PF_CONFIG_H
#define PF_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PF_EXIT_OK 0
#define PF_EXIT_FAILURE 1
#define PF_EXIT_USAGE 2

#define PF_MAX_PERCENTILES 32u
#define PF_MAX_EXPECTS 32u
#define PF_MAX_VIS 1024u
#define PF_MAX_BATCH 100000u
#define PF_MAX_CALL 256u /* descriptors of one call */
#define PF_POSTS 32u	 /* back to back, for --post-time */
#define PF_MAX_WINDOW 4096u
#define PF_MAX_SEGMENTS 252u
#define PF_MAX_BUFFERS 64u
#define PF_MAX_SIZE (UINT64_C(1) << 30)

enum pf_op { PF_SEND, PF_WRITE, PF_WRITE_IMM, PF_READ, PF_OP_COUNT };
enum pf_wait { PF_POLL, PF_BLOCK, PF_WAIT_COUNT };
enum pf_level { PF_UNRELIABLE, PF_DELIVERY, PF_RECEPTION, PF_LEVEL_COUNT };
enum pf_format { PF_OSU, PF_CSV, PF_JSON };

extern const char *const pf_op_names[];
extern const char *const pf_wait_names[];
extern const char *const pf_level_names[];
extern const char *const pf_format_names[];

enum pf_compare { PF_LT, PF_LE, PF_GT, PF_GE };

/* METRIC[@SIZE] OP VALUE */
struct pf_expect {
	const char *text; /* as given */
	char metric[32];
	bool any_size;
	uint64_t size;
	enum pf_compare compare;
	double value;
};

struct pf_sizes {
	uint64_t *v;
	size_t n;
};

struct pf_tool;

struct pf_config {
	const struct pf_tool *tool;
	enum pf_op op;
	enum pf_wait wait;
	enum pf_level level;
	enum pf_format format;
	bool cq, verify, bidir, window_memory, adopt, spin, quiet, post_time;
	struct pf_sizes sizes;
	uint64_t iters;	 /* 0: by size */
	uint64_t warmup; /* iterations; UINT64_MAX: by size */
	double duration; /* seconds per size, 0: count iterations */
	uint32_t window, segments, vis;
	uint32_t busy;	  /* VIs that carry messages, 0: all */
	uint32_t batch;	  /* vi_lat: round trips of one sample; else descriptors of a call */
	uint32_t buffers; /* of each VI, used in turn by RDMA operations */
	double timeout;	  /* seconds without any progress until the peer counts as dead */
	double percentiles[PF_MAX_PERCENTILES];
	size_t percentile_count;
	bool percentiles_given;
	struct pf_expect expects[PF_MAX_EXPECTS];
	size_t expect_count;
	int pin[2]; /* processors of client and server, -1: not pinned */
	const char *out;

	bool server;
	const char *connect;  /* host of the server */
	const char *host;     /* own host */
	const char *hosts[2]; /* of the client and the server that one command starts */
	const char *name;     /* discriminator */
	int argc;
	char **argv;
};

/* Kinds of tools, as a mask in the option table. */
#define PF_LAT 1u
#define PF_BW 2u
#define PF_RATE 4u

#define PF_HEAD(name, summary)                                                                     \
	"usage: " name " [OPTION]...                 client and server, both started here\n"       \
	"       " name " --server [OPTION]...        server only\n"                                \
	"       " name                                                                             \
	" --connect HOST [OPTION]...  client only; its options hold for both\n\n" summary          \
	"\n\noptions:\n"
#define PF_TAIL(metrics, sizes)                                                                    \
	"\nmetrics of --expect, also the columns of csv and the keys of json:\n" metrics           \
	"\ndefault sizes: " sizes                                                                  \
	"\nexit status: 0 done, 1 failure or an expectation not met, 2 bad usage\n"

struct pf_run;
struct pf_batch;

struct pf_tool {
	const char *name;
	unsigned int kind;	 /* PF_LAT, PF_BW or PF_RATE */
	const char *head, *tail; /* of --help, before and after the options */
	const char *title;	 /* of the table */
	const char *column;	 /* of the table's main value */
	const char *metric;	 /* the main value */
	const char *sizes;	 /* default of --sizes */
	uint32_t window;	 /* default of --window */
	/* Before a batch, on both sides: puts the buffers into order. */
	void (*prepare)(struct pf_run *run, const struct pf_batch *batch);
	/* The client's and the server's part of one batch; 0 or -errno with the cause noted. */
	int (*client)(struct pf_run *run, const struct pf_batch *batch);
	int (*server)(struct pf_run *run, const struct pf_batch *batch);
};

/*
 * Fills the configuration from the command line.  Returns -1 to continue, or the exit code: 0 after
 * --help or --version, 2 after one line on standard error about the mistake.
 */
int pf_config_parse(struct pf_config *cfg, const struct pf_tool *tool, int argc, char **argv);
void pf_config_fini(struct pf_config *cfg);

uint64_t pf_largest(const struct pf_sizes *s);

/* Does the tool know the metric?  Percentiles are spelled p99_us, p99.9_us or p99_9_us. */
bool pf_metric_known(const struct pf_tool *tool, const char *metric);

/* Text parsers, also used by the tests.  Return 0 or -EINVAL; nothing is written on failure. */
int pf_parse_sizes(const char *text, struct pf_sizes *out);
/* "A,B", of which out[0] is to be freed. */
int pf_parse_hosts(const char *text, const char *out[2]);
int pf_parse_percentiles(const char *text, double *out, size_t max, size_t *count_out);
int pf_parse_expect(const char *text, struct pf_expect *out);
/* A list of names with commas: sets out[i] where name(i) is in it, and clears the others. */
int pf_parse_names(const char *text, const char *(*name)(size_t i), size_t count, bool *out);

#endif
