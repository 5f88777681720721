/* SPDX-License-Identifier: BSD-2-Clause */
/* A job of oshrun: its PEs, what they have said, and how it ends. */
#ifndef RUN_JOB_H
#define RUN_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "boot.h"
#include "boot_wire.h"
#include "run_options.h"

enum { EXIT_OK = 0, EXIT_FAIL = 1, EXIT_USAGE = 2, EXIT_LATE = 124, EXIT_NO_EXEC = 126 };

#define RUN_END_MS 2000 /* for PEs to leave after a signal */
/* For the end of a PE or of a host to be told, after another PE has noticed it. */
#define RUN_LOST_MS 1000

/* The data of all PEs in one exchange; freed with the last reference. */
struct run_data {
	unsigned int references;
	uint64_t bytes;
	char at[];
};

struct run_conn {
	int sock, control;	   /* of oshrun; -1: closed */
	uint32_t exchanges;	   /* that this PE has made */
	struct boot_wire_head in;  /* of the frame that arrives */
	size_t in_bytes;	   /* of that frame, with its head, so far */
	struct boot_wire_head out; /* of the frame that leaves, while `result` is not NULL */
	struct run_data *result;
	uint64_t out_bytes; /* of that frame, with its head, so far */
};

/* A stream of a PE whose lines get a prefix. */
struct run_stream {
	int fd; /* -1: closed */
	size_t bytes;
	char *line; /* begun, not ended */
};

enum run_state { RUN_OUTSIDE, RUN_JOINED, RUN_FINISHED };

struct run_pe {
	int pe;
	unsigned int host;
	pid_t pid; /* 0: it was not started, or has ended */
	bool ended;
	enum run_state state;
	bool lost; /* it has ended the job, as it could not reach another */
	struct run_conn conn;
	struct run_stream streams[2]; /* standard output and error */
	uint64_t steps;		      /* as seen last, and since when */
	int64_t steps_since;
};

struct run_job {
	const struct run_options *options;
	struct run_pe *pes;
	int n_pes, running;
	uint64_t id;
	int poll; /* epoll */

	/* The exchange under way. */
	uint32_t exchanges; /* before it */
	uint32_t part;	    /* bytes of each PE */
	int given;	    /* PEs that have sent theirs; 0: none is under way */
	struct run_data *data;

	/* Statuses: in a file that is mapped here and, each its own, in the PEs. */
	int status_fd;
	char *status;

	/* The end. */
	bool ending;	    /* all PEs were told to leave */
	int exit_status;    /* decided by the first that failed */
	int64_t kill_at;    /* u_now, or 0 */
	int64_t limit_at;   /* of --timeout */
	int64_t patient_at; /* a PE has ended that had not left the job; the others shall by then */
	int impatient_with; /* that PE */
	int64_t sample_at;
	/* A PE could not reach another: what it said, unless something tells why that one is gone. */
	int64_t lost_at;
	int lost_status;
	char lost_line[512];
	bool stalled; /* a report was printed since the last step */
};

/* What an event is about, in the upper half of epoll's data; the PE in the lower. */
enum run_event { RUN_SIGNAL, RUN_SOCK, RUN_CONTROL, RUN_STREAM_OUT, RUN_STREAM_ERR };

int64_t run_now(void); /* CLOCK_MONOTONIC in ns */

/* Adds to, or changes in, the epoll.  0 or -errno. */
int run_watch(struct run_job *job, enum run_event what, int pe, int fd, bool write_too);

/* A line on standard error, after "oshrun: ", in one write. */
void run_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Text of somebody else as part of a line: control characters become '?'. */
void run_clean(char *text);

#endif
