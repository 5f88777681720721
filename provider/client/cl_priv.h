/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CL_PRIV_H
#define CL_PRIV_H

#include "cl_client.h"
#include "u_base.h"

#define CL_TIMEOUT_MS 5000

/* Writes the one line for people into `error`, CL_ERROR_MAX bytes. */
void cl_error(char *error, const char *fmt, ...) U_PRINTF(2, 3);

/* A fabric, and the kind of client to connect as. */
struct cl_where {
	uid_t owner;
	char fabric[64];
	uint32_t kind;
};

/*
 * Writes the reason why the process at the other end of `sock` is not trusted into `error`, and returns -EACCES.  It
 * decides nothing, and the socket stays open.
 */
int cl_distrust(const struct cl_where *w, unsigned int host, int sock, char *error);

/* A call to the agent of a host, by a socket that does not block. */
struct cl_call {
	unsigned int host;
	int sock;
	bool greeted; /* HELLO is sent */
	int64_t deadline;
};

/*
 * Makes the socket of a call to c->host, and connects it as cl_call_connect() does.  0; or -errno, with one line in
 * `error`, and then, too, `c->sock` is the caller's to close, unless it is -1.
 */
int cl_call_open(const struct cl_where *w, struct cl_call *c, char *error);
/*
 * Connects a call that is not greeted, without waiting, and sends HELLO.  Returns 0 when that is done, with
 * `c->greeted` set, or when it is to be tried again, as the agent's queue is full; else -errno, with one line in
 * `error`: -ENODEV, no agent; -EACCES, another user listens there, and the socket is closed and -1.
 */
int cl_call_connect(const struct cl_where *w, struct cl_call *c, char *error);
/*
 * Reads the answer to HELLO, which has come: it does not wait.  Returns 0, with `welcome` and the descriptors of `out`
 * set, but not its `sock` and `owner`; or -errno, with one line in `error`, why there is no connection, -EPIPE when the
 * agent has left.  The socket stays open.
 */
int cl_call_welcome(const struct cl_where *w, int sock, struct cl_agent *out, char *error);
/* The process that listens at the other end; -1: not connected, or the socket does not tell. */
pid_t cl_call_pid(int sock);

/* Connects to the agent of one host; see cl_open_host(), but after an error `out` is as before. */
int cl_open_at(const struct cl_where *w, unsigned int host, struct cl_agent *out, char *error);

/*
 * Connects to the first agent of the fabric that answers.  Asks host `first`, below CL_HOSTS_MAX, before the others,
 * and more hosts at a time the longer those that were asked are silent.  0, or an error of cl_open_host() with its
 * line, and `out` is as before; -ENODEV or -EPIPE only when no address has a listener that stays.
 */
int cl_open_any(const struct cl_where *w, unsigned int first, struct cl_agent *out, char *error);

/*
 * Receives one checked message, of up to W_CTL_MAX bytes, before the deadline.  Returns its type, or -ETIMEDOUT, -EPIPE
 * (hang-up), -EPROTO, -EPROTONOSUPPORT (`buf` has its header), -EMFILE or another -errno.  Descriptors belong to the
 * caller, none after an error; their numbers are above those of standard input, output and error.
 */
int cl_recv(int sock, int64_t deadline, void *buf, int fds[W_CTL_FDS], unsigned int *nfds_out);

#endif
