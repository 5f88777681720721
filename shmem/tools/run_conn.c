/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run_conn.h"
#include "run_end.h"

#define HEAD sizeof(struct boot_wire_head)

/* ---- what leaves ---- */

/* Drops a reference, and frees with the last; NULL is none. */
static void data_put(struct run_data *d)
{
	if (d != NULL && --d->references == 0)
		free(d);
}

/* Sends what the socket takes of a RESULT, and watches it for the rest; where it fails the result is dropped. */
static void push(struct run_job *job, struct run_pe *pe)
{
	struct run_conn *c = &pe->conn;
	struct iovec iov[2];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	uint64_t past;
	ssize_t n;

	while (c->result != NULL && c->sock >= 0) {
		past = c->out_bytes > HEAD ? c->out_bytes - HEAD : 0;
		iov[0].iov_base = (char *)&c->out + (c->out_bytes < HEAD ? c->out_bytes : HEAD);
		iov[0].iov_len = c->out_bytes < HEAD ? HEAD - c->out_bytes : 0;
		iov[1].iov_base = c->result->at + past;
		iov[1].iov_len = c->result->bytes - past;
		n = sendmsg(c->sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (n > 0)
			c->out_bytes += (uint64_t)n;
		if (n <= 0 || c->out_bytes == HEAD + c->result->bytes) {
			data_put(c->result);
			c->result = NULL;
		}
	}
	if (c->sock >= 0)
		run_watch(job, RUN_SOCK, run_index(job, pe), c->sock, c->result != NULL);
}

/* Sends a WELCOME with its descriptors, statuses and `other`, which an empty socket takes whole.  0 or -errno. */
static int send_welcome(const struct run_job *job, const struct run_pe *pe, int other)
{
	struct {
		struct boot_wire_head head;
		struct boot_wire_welcome w;
	} m = { .head = boot_wire_head(BOOT_WIRE_WELCOME, sizeof(m.w), 0),
		.w = { .job = job->id,
		       .pe = (uint32_t)pe->pe,
		       .n_pes = (uint32_t)job->n_total,
		       .exchanges = pe->conn.exchanges } };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = { .room = { 0 } };
	struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int fds[2] = { job->status_fd, other };
	ssize_t n;

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(&control.head), fds, sizeof(fds));
	n = sendmsg(pe->conn.sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(m) ? 0 : -ENOBUFS;
}

/* Answers JOIN, with a new control socket; closes an older one. 0, also for a PE that has just ended; or -errno. */
static int welcome(struct run_job *job, struct run_pe *pe)
{
	int fds[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return -errno;
	if (pe->conn.control >= 0)
		close(pe->conn.control);
	pe->conn.control = fds[0];
	rc = run_watch(job, RUN_CONTROL, run_index(job, pe), fds[0], false);
	if (rc == 0)
		rc = send_welcome(job, pe, fds[1]);
	close(fds[1]);
	return rc == -EPIPE ? 0 : rc; /* the PE has just ended, which is judged elsewhere */
}

/* ---- what arrives ---- */

#define FDS_MAX 253 /* that the kernel passes in one message */

/*
 * Closes descriptors that a PE passes: they are no part of this protocol; the end of a socket that lingers would take
 * long.
 */
static void close_passed(struct msghdr *msg)
{
	const struct linger none = { .l_onoff = 0 };
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
			close(fd);
		}
	}
}

/* As recv(), with -1 and errno, but without waiting; descriptors that come with the bytes are closed. */
static ssize_t receive(int sock, void *at, size_t bytes)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = at, .iov_len = bytes };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n >= 0)
		close_passed(&msg);
	return n;
}

/* Ends the job, for what the PE has done, and closes its socket: it is not listened to any more. */
static void broken(struct run_job *job, struct run_pe *pe, const char *how)
{
	run_end(job, EXIT_FAIL, "%s %s", run_name(pe).text, how);
	if (pe->conn.sock >= 0)
		close(pe->conn.sock);
	pe->conn.sock = -1;
}

void run_conn_check_ended(struct run_job *job)
{
	const struct run_pe *joined = NULL;
	int i;

	if (job->up != NULL) /* the oshrun that has the job knows of all */
		return;
	for (i = 0; i < job->n_pes && joined == NULL; i++) {
		if (job->pes[i].state == RUN_JOINED && !job->pes[i].ended)
			joined = &job->pes[i];
	}
	for (i = 0; i < job->n_pes && joined != NULL; i++) {
		const struct run_pe *pe = &job->pes[i];

		if (pe->ended && pe->state == RUN_OUTSIDE)
			run_end(job, EXIT_FAIL,
				"%s has ended and never called shmem_init, as PE %d has",
				run_name(pe).text, joined->pe);
		else if (pe->ended && job->given > 0 && pe->conn.exchanges == job->exchanges)
			run_end(job, EXIT_FAIL, "%s has ended; PE %d still waits for it",
				run_name(pe).text, joined->pe);
	}
}

/* Notes that the PE has joined. False: it had before and has not left; the job is ended and its socket closed. */
static bool join_state(struct run_job *job, struct run_pe *pe)
{
	if (pe->state == RUN_JOINED) {
		broken(job, pe,
		       "began again: its program has ended without shmem_finalize, or has "
		       "started another as the same PE");
		return false;
	}
	pe->state = RUN_JOINED;
	pe->steps_since = run_now();
	return true;
}

/* Answers the JOIN of a PE, and passes it on (--serve); one that comes twice, or cannot be answered, ends the job. */
static void join(struct run_job *job, struct run_pe *pe)
{
	if (!join_state(job, pe))
		return;
	if (job->up != NULL)
		run_up_send(job, RUN_WIRE_JOIN, (uint32_t)pe->pe, NULL, 0, NULL, 0);
	if (welcome(job, pe) != 0)
		broken(job, pe, "cannot be answered: no descriptors or memory left");
	else
		run_conn_check_ended(job);
}

void run_conn_joined(struct run_job *job, struct run_pe *pe)
{
	if (join_state(job, pe))
		run_conn_check_ended(job);
}

void run_conn_finished(struct run_pe *pe)
{
	if (pe->state == RUN_JOINED)
		pe->state = RUN_FINISHED;
}

/*
 * Sends the data of all PEs to all, here and on other machines, which ends the exchange; what a socket does not take
 * now goes later. Takes `data` over.
 */
static void deliver(struct run_job *job, struct run_data *data)
{
	struct run_conn *c;
	int i;

	data->references = 1;
	job->given = 0;
	for (i = 0; i < job->n_fars; i++)
		run_far_send(job, &job->fars[i], RUN_WIRE_RESULT, job->exchanges, data->at,
			     data->bytes);
	for (i = 0; i < job->n_pes; i++) {
		c = &job->pes[i].conn;
		if (job->pes[i].far != NULL)
			continue;
		data->references++;
		c->result = data;
		c->out_bytes = 0;
		c->out = boot_wire_head(BOOT_WIRE_RESULT, (uint32_t)data->bytes, job->exchanges);
	}
	job->exchanges++;
	for (i = 0; i < job->n_pes; i++)
		push(job, &job->pes[i]);
	data_put(data);
}

/* All that are here have given their data: delivers them, or (--serve) sends them to the oshrun that has the job. */
static void exchange_end(struct run_job *job)
{
	struct run_data *data = job->data;

	job->data = NULL;
	if (job->up == NULL) {
		deliver(job, data);
		return;
	}
	run_up_send(job, RUN_WIRE_EXCHANGE, job->exchanges, data->at, data->bytes, NULL, 0);
	free(data);
}

int run_conn_result(struct run_job *job, uint32_t number, const void *data, uint32_t bytes)
{
	struct run_data *copy;

	if (job->given != job->n_pes || number != job->exchanges ||
	    bytes != (uint64_t)job->part * (unsigned int)job->n_total)
		return -EPROTO;
	copy = malloc(sizeof(*copy) + bytes);
	if (copy == NULL)
		return -ENOMEM;
	copy->bytes = bytes;
	if (bytes > 0)
		memcpy(copy->at, data, bytes);
	deliver(job, copy);
	return 0;
}

/*
 * Is there room for so many bytes of each, and are they as many as the others gave? The first of an exchange makes the
 * room and decides the length. False: the job is ended.
 */
static bool exchange_room(struct run_job *job, struct run_pe *pe, uint32_t part)
{
	uint64_t bytes = (uint64_t)part * (unsigned int)job->n_pes;

	if (job->data == NULL) {
		job->data = malloc(sizeof(*job->data) + bytes);
		if (job->data == NULL) {
			run_end(job, EXIT_FAIL, "no memory for an exchange");
			return false;
		}
		job->data->bytes = bytes;
		job->part = part;
	}
	if (part != job->part) {
		broken(job, pe,
		       "exchanged data of another length than the other PEs: they run other "
		       "programs, or with another version of the library");
		return false;
	}
	return true;
}

/* The head of an EXCHANGE is there: has the PE the right to it now, and is there room? False: the job is ended. */
static bool exchange_begin(struct run_job *job, struct run_pe *pe)
{
	const struct boot_wire_head *h = &pe->conn.in;

	if (pe->state != RUN_JOINED || h->arg != pe->conn.exchanges || h->arg != job->exchanges ||
	    pe->conn.result != NULL) {
		broken(job, pe, "broke the rules of oshrun: an exchange out of turn");
		return false;
	}
	return exchange_room(job, pe, h->bytes);
}

/* Counts the data of a PE as given; with the last the exchange ends. */
static void exchange_given(struct run_job *job, struct run_pe *pe)
{
	pe->conn.exchanges++;
	if (++job->given == job->n_pes)
		exchange_end(job);
	else
		run_conn_check_ended(job);
}

int run_conn_far_given(struct run_job *job, const struct run_far *far, uint32_t number,
		       const void *data, uint32_t bytes)
{
	uint32_t part = bytes / (uint32_t)far->n_pes;
	struct run_pe *pe;
	int i;

	if (number != job->exchanges || bytes != (uint64_t)part * (unsigned int)far->n_pes)
		return -EPROTO;
	for (i = 0; i < far->n_pes; i++) {
		pe = &job->pes[far->pes[i]];
		if (pe->state != RUN_JOINED || pe->conn.exchanges != number)
			return -EPROTO;
	}
	if (!exchange_room(job, &job->pes[far->pes[0]], part))
		return 0;
	for (i = 0; i < far->n_pes; i++)
		memcpy(job->data->at + (uint64_t)far->pes[i] * part,
		       (const char *)data + (uint64_t)i * part, part);
	for (i = 0; i < far->n_pes; i++)
		exchange_given(job, &job->pes[far->pes[i]]);
	return 0;
}

/* Checks a head that is whole, and makes room for its data. False: nothing more is taken from this PE; the job ends. */
static bool head_ok(struct run_job *job, struct run_pe *pe)
{
	const struct boot_wire_head *h = &pe->conn.in;
	int rc = boot_wire_check_pe(h);

	if (rc == -EPROTONOSUPPORT)
		broken(job, pe,
		       "speaks another version of oshrun's protocol: use the oshrun that was "
		       "installed with its library");
	else if (rc != 0 || h->kind == BOOT_WIRE_ABORT)
		broken(job, pe, "broke the rules of oshrun: no such frame");
	else
		return h->kind != BOOT_WIRE_EXCHANGE || exchange_begin(job, pe);
	return false;
}

/* Does what a frame that is whole, and whose head was checked, asks for. */
static void frame(struct run_job *job, struct run_pe *pe)
{
	struct run_conn *c = &pe->conn;

	c->in_bytes = 0;
	switch (c->in.kind) {
	case BOOT_WIRE_JOIN:
		join(job, pe);
		break;
	case BOOT_WIRE_EXCHANGE:
		exchange_given(job, pe);
		break;
	default:
		if (job->up != NULL && pe->state == RUN_JOINED)
			run_up_send(job, RUN_WIRE_FINISH, (uint32_t)pe->pe, NULL, 0, NULL, 0);
		run_conn_finished(pe);
		break;
	}
}

/* Takes a part of a frame.  False: there is nothing more, or nothing is taken any more. */
static bool pull(struct run_job *job, struct run_pe *pe)
{
	struct run_conn *c = &pe->conn;
	size_t past = c->in_bytes >= HEAD ? c->in_bytes - HEAD : 0;
	char *at = (char *)&c->in + c->in_bytes;
	size_t want = HEAD - c->in_bytes;
	ssize_t n;

	if (c->in_bytes >= HEAD) { /* only an EXCHANGE has data */
		at = job->data->at + (uint64_t)run_index(job, pe) * job->part + past;
		want = job->part - past;
	}
	n = receive(c->sock, at, want);
	if (n < 0 && errno == EINTR)
		return true;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) {
		close(c->sock); /* whether that matters is seen when the process ends */
		c->sock = -1;
	}
	if (n <= 0)
		return false;
	c->in_bytes += (size_t)n;
	if (c->in_bytes == HEAD && !head_ok(job, pe))
		return false;
	if (c->in_bytes >= HEAD && c->in_bytes == HEAD + c->in.bytes)
		frame(job, pe);
	return c->sock >= 0;
}

void run_conn_abort(struct run_job *job, struct run_pe *pe, int status, bool lost, char *text)
{
	char line[BOOT_WIRE_TEXT_MAX + sizeof(struct run_name) + 4];
	struct run_wire_abort a = { .status = (uint32_t)status, .lost = lost };

	pe->lost |= lost && text[0] != '\0';
	if (job->up != NULL) {
		run_up_send(job, RUN_WIRE_ABORT, (uint32_t)pe->pe, &a, sizeof(a), text,
			    strlen(text));
		return;
	}
	run_clean(text);
	snprintf(line, sizeof(line), "%s: %.*s", run_name(pe).text, (int)BOOT_WIRE_TEXT_MAX, text);
	if (text[0] != '\0' && lost)
		run_end_lost(job, status, line);
	else if (text[0] != '\0')
		run_end(job, status, "%s", line);
	else
		run_end(job, status, NULL);
}

/* Takes an ABORT, or the end of that socket; then closes it. Anything else is ignored, but closes it, too. */
static void serve_control(struct run_job *job, struct run_pe *pe)
{
	struct {
		struct boot_wire_head head;
		char text[BOOT_WIRE_TEXT_MAX];
	} m = { .text = "" };
	ssize_t n;

	do {
		n = receive(pe->conn.control, &m, sizeof(m) - 1);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return;
	close(pe->conn.control);
	pe->conn.control = -1;
	if (n < (ssize_t)HEAD || boot_wire_check_pe(&m.head) != 0 ||
	    m.head.kind != BOOT_WIRE_ABORT || m.head.bytes != (size_t)n - HEAD)
		return;
	m.text[m.head.bytes] = '\0';
	run_conn_abort(job, pe, m.head.arg & 0xff, m.head.arg & BOOT_WIRE_LOST, m.text);
}

void run_conn_serve(struct run_job *job, struct run_pe *pe, enum run_event which)
{
	if (which == RUN_CONTROL && pe->conn.control >= 0)
		serve_control(job, pe);
	if (which != RUN_SOCK || pe->conn.sock < 0)
		return;
	/* Also when all were told to leave: until they are killed they may call shmem_finalize. */
	while (pull(job, pe))
		;
	if (pe->conn.sock >= 0 && pe->conn.result != NULL)
		push(job, pe);
}

void run_conn_close(struct run_pe *pe)
{
	if (pe->conn.sock >= 0)
		close(pe->conn.sock);
	if (pe->conn.control >= 0)
		close(pe->conn.control);
	pe->conn.sock = pe->conn.control = -1;
	data_put(pe->conn.result);
	pe->conn.result = NULL;
}
