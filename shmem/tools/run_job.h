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
#include "run_link.h"
#include "run_options.h"

enum { EXIT_OK = 0, EXIT_FAIL = 1, EXIT_USAGE = 2, EXIT_LATE = 124, EXIT_NO_EXEC = 126 };

#define RUN_END_MS 2000	 /* for PEs to leave after a signal */
#define RUN_BYE_MS 60000 /* for another machine to say that all has ended, when its PEs have */
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
	int fd;	     /* -1: closed */
	bool paused; /* not watched, while nobody reads what oshrun writes */
	size_t bytes;
	char *line; /* begun, not ended */
};

enum run_state { RUN_OUTSIDE, RUN_JOINED, RUN_FINISHED };

/* The oshrun on another machine that has PEs of the job there; run_wire.h says what it sends. */
struct run_far {
	int index;
	const char *machine;
	int n_pes;
	const int *pes;	       /* their numbers */
	pid_t pid;	       /* of the remote shell; 0: it has ended */
	int status;	       /* then */
	struct run_link *link; /* NULL: closed */
	bool greeted, started; /* what it has said */
	bool paused;	       /* as a stream */
	int64_t heard_at;      /* when something came last */
};

struct run_pe {
	int pe;
	int nth;	     /* 0 for the first PE of the machine */
	unsigned int host;   /* emulated */
	const char *machine; /* in jobs on several machines, else NULL */
	struct run_far *far; /* of a PE of another machine, else NULL */
	struct boot_status *far_status;
	pid_t pid; /* 0: it was not started, or has ended, or is on another machine */
	pid_t far_pid;
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
	int n_pes;   /* of `pes`: all, or those that are here (--serve) */
	int n_total; /* of the job */
	int running; /* of n_pes */
	struct run_far *fars;
	int *far_pes; /* numbers of PEs, by their machine */
	int n_fars;
	struct run_link *up; /* --serve: to the oshrun that has the job; else NULL */
	char *start;	 /* --serve: what came with RUN_WIRE_START; options and PEs point into it */
	bool complained; /* that one was told why the job has to end */
	bool up_lost;	 /* it is gone */
	uint64_t id;
	int poll;   /* epoll */
	int starts; /* says when all PEs have executed their program, or one could not; -1: closed */
	bool paused; /* a stream or a machine is */

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
	int64_t fars_at; /* other machines have said by then that they have ended */
	/* A PE could not reach another: what it said, unless something tells why that one is gone. */
	int64_t lost_at;
	int lost_status;
	char lost_line[512];
	bool stalled; /* a report was printed since the last step */
};

/* What an event is about, in the upper half of epoll's data; the index in job->pes in the lower. */
enum run_event {
	RUN_SIGNAL,
	RUN_SOCK,
	RUN_CONTROL,
	RUN_STREAM_OUT,
	RUN_STREAM_ERR,
	RUN_FAR, /* `pe` is the index of the far launcher */
	RUN_UP,
	RUN_STARTS,
	RUN_WRITTEN,
};

/* Where in job->pes it is. */
static inline int run_index(const struct run_job *job, const struct run_pe *pe)
{
	return (int)(pe - job->pes);
}

int64_t run_now(void); /* CLOCK_MONOTONIC in ns */

/* Has the epoll watch fd, or changes what it watches: reading, and with `write_too` writing.  0 or -errno. */
int run_watch(struct run_job *job, enum run_event what, int pe, int fd, bool write_too);

/* Sends a frame to the oshrun that has the job (--serve), without waiting; does nothing when that is gone. */
void run_up_send(struct run_job *job, enum run_wire_kind kind, uint32_t arg, const void *a,
		 size_t a_bytes, const void *b, size_t b_bytes);
/*
 * Sends a frame to another machine, without waiting; does nothing when the connection is closed. Without memory the
 * connection is lost, which is found by reading.
 */
void run_far_send(struct run_job *job, struct run_far *far, enum run_wire_kind kind, uint32_t arg,
		  const void *data, size_t bytes);

/* A line on standard error, after "oshrun: "; dropped while RUN_SINK_MOST bytes or more wait to be written there. */
void run_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* As strerror(), of a positive errno, but of what a limit of the shell can have caused it names the limit. */
const char *run_error(int err);

/* Text of somebody else as part of a line: control characters become '?'. */
void run_clean(char *text);

#endif
