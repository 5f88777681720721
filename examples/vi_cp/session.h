/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One session: the part that sender and receiver, on either side, have in common.
 *
 * Functions return 0 or -errno: -EPROTO when the other side broke the protocol, -ENOTCONN when it
 * is gone, -EINTR after a signal to stop, -ETIMEDOUT when it was silent for too long.
 */
#ifndef VI_CP_SESSION_H
#define VI_CP_SESSION_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "link.h"
#include "progress.h"
#include "proto.h"

/* Counts of copied files. */
struct copied {
	unsigned int files, dirs, links, left_alone, failures;
	uint64_t bytes;
};

struct session {
	struct link link;
	const char *host;		   /* the server, at the client; NULL at the server */
	const volatile sig_atomic_t *stop; /* a signal came; or NULL */
	unsigned int idle_ms;		   /* the longest silence; 0: any */
	bool verbose;			   /* print the digest of every file */
	struct cp_message message;	   /* the last */
	struct progress progress;
	struct copied copied;
	uint64_t spent_ns[CP_SPENT];	   /* by this side, */
	uint64_t other_spent_ns[CP_SPENT]; /* and by the other, once it said so */
};

/* The next message, in s->message, or filled buffer; its receive is posted again. */
int session_next(struct session *s, struct link_event *event);

int session_say(struct session *s, enum cp_type type); /* a message that is a bare header */
int session_tell(struct session *s, enum cp_type type, enum cp_verdict verdict, const char *text);
int session_welcome(struct session *s, const char *name);

/* Waits for a RESULT, which is in s->message then. */
int session_result(struct session *s);

/* Adds the time since *since_ns to the time spent on `what`, and sets *since_ns to now. */
void session_spent(struct session *s, enum cp_spent what, uint64_t *since_ns);
uint64_t session_now_ns(void);

/* One line on standard error, after the program's name; replaces control characters. */
void session_complain(struct session *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* One line on standard output; replaces control characters. */
void session_print_digest(struct session *s, const uint8_t *digest, const char *name);

#endif
