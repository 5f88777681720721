/* SPDX-License-Identifier: BSD-2-Clause */
/* The back end of oshrun; boot_wire.h says what is sent. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "boot_back.h"
#include "boot_wire.h"

#define TOLD_MS 1000

static struct {
	int sock;		   /* frames; stays open when the job is left, for the next start */
	uint32_t n_pes, exchanges; /* of the WELCOME, and since */
	_Atomic int control;	   /* the other socket; -1: not in the job */
	_Atomic int telling;	   /* threads that may be about to send there */
	char *statuses;		   /* of all PEs; once mapped they stay */
} local = { .sock = -1, .control = -1 };

/* Is VIADUCT_OSHRUN set, and not empty? Whether it names a socket is seen by local_start(). */
static bool local_announced(void)
{
	const char *text = secure_getenv(BOOT_WIRE_VARIABLE);

	return text != NULL && text[0] != '\0';
}

/*
 * Finds the socket that the variable names, if it is still there, and sets FD_CLOEXEC. 0; -EINVAL: no such text;
 * -EBADF: another file; or -errno.
 */
static int local_socket(int *out)
{
	uint64_t inode;
	struct stat st;
	int fd, rc;

	rc = boot_wire_variable(secure_getenv(BOOT_WIRE_VARIABLE), &fd, &inode);
	if (rc != 0)
		return rc;
	if (fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode) || st.st_ino != inode)
		return -EBADF;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		return -errno;
	*out = fd;
	return 0;
}

/*
 * Receives a head and the two descriptors that come with its first byte. 0 or -errno, -EMFILE: too many are open. What
 * is in fds, which the caller has set to -1, is the caller's, also then.
 */
static int welcome_head(struct boot_wire_head *head, int fds[2])
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = head, .iov_len = sizeof(*head) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t n;

	do {
		n = recvmsg(local.sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ECONNRESET;
	c = CMSG_FIRSTHDR(&msg);
	if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	if (c->cmsg_len < CMSG_LEN(2 * sizeof(int))) {
		if (c->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(fds, CMSG_DATA(c), sizeof(int));
		return -EMFILE; /* the kernel leaves out what the process has no room for */
	}
	memcpy(fds, CMSG_DATA(c), 2 * sizeof(int));
	return boot_recv_all(local.sock, (char *)head + n, sizeof(*head) - (size_t)n);
}

/* Receives a WELCOME and checks it. 0 or -errno; descriptors that are not -1 are the caller's, also then. */
static int welcome_receive(struct boot_wire_welcome *w, int fds[2])
{
	struct boot_wire_head head;
	int rc;

	fds[0] = fds[1] = -1;
	rc = welcome_head(&head, fds);
	if (rc == 0)
		rc = boot_wire_check_run(&head, BOOT_WIRE_WELCOME, sizeof(*w));
	if (rc == 0)
		rc = boot_recv_all(local.sock, w, sizeof(*w));
	return rc == 0 ? boot_wire_check_welcome(w) : rc;
}

/* Maps the statuses of all PEs, the first time, and leaves fd open. 0; -EPROTO: the file is too small; or -errno. */
static int statuses_map(int fd, uint32_t n_pes)
{
	size_t len = (size_t)n_pes * BOOT_WIRE_STATUS_STRIDE;
	struct stat st;
	void *at;

	if (local.statuses != NULL)
		return 0;
	if (fstat(fd, &st) != 0 || st.st_size < (off_t)len)
		return -EPROTO;
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	local.statuses = at;
	return 0;
}

/* From now on the kernel kills this process, by SIGKILL, when oshrun ends. 0 or -errno. */
static int control_watch(int fd)
{
	if (fcntl(fd, F_SETOWN, getpid()) != 0 || fcntl(fd, F_SETSIG, SIGKILL) != 0 ||
	    fcntl(fd, F_SETFL, O_ASYNC) != 0)
		return -errno;
	return 0;
}

/* Closes both; -1 is none. */
static void fds_close(const int fds[2])
{
	if (fds[0] >= 0)
		close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
}

/* Says JOIN, and takes statuses and control socket from the WELCOME. 0; or -errno, with nothing left open. */
static int local_join(struct boot_wire_welcome *w)
{
	struct boot_wire_head join = boot_wire_head(BOOT_WIRE_JOIN, 0, 0);
	int fds[2], rc;

	rc = boot_send_all(local.sock, &join, sizeof(join));
	if (rc != 0)
		return rc;
	rc = welcome_receive(w, fds);
	if (rc == 0)
		rc = statuses_map(fds[0], w->n_pes);
	if (rc == 0)
		rc = control_watch(fds[1]);
	if (rc != 0) {
		fds_close(fds);
		return rc;
	}
	close(fds[0]);
	local.control = fds[1];
	return 0;
}

/*
 * Joins: start() of boot_back.h. Each start reads the variable again. From then on the end of oshrun kills this
 * process.
 */
static int local_start(struct boot_job *job, char error[BOOT_TEXT_MAX])
{
	struct boot_wire_welcome w;
	int rc = local_socket(&local.sock);

	if (rc != 0)
		return boot_error(error, rc,
				  "%s=%.40s names no socket of oshrun: a program that a PE "
				  "starts is no PE, and a wrapper must leave descriptors open; "
				  "start it with oshrun -np N PROGRAM",
				  BOOT_WIRE_VARIABLE, secure_getenv(BOOT_WIRE_VARIABLE));
	rc = local_join(&w);
	if (rc == -EPROTONOSUPPORT || rc == -EPROTO)
		return boot_error(error, rc,
				  "oshrun speaks another version of its protocol, not %d; use the "
				  "oshrun that was installed with this library",
				  BOOT_WIRE_VERSION);
	if (rc != 0)
		return boot_error(error, rc, "oshrun does not let this process join: %s",
				  strerror(-rc));
	local.n_pes = w.n_pes;
	local.exchanges = w.exchanges;
	job->pe = (int)w.pe;
	job->n_pes = (int)w.n_pes;
	job->id = w.job;
	return 0;
}

/* Exchanges, and checks that the result is that of this exchange. 0 or -errno, -EPROTO: it is another. */
static int local_exchange(const void *mine, size_t bytes, void *all)
{
	struct boot_wire_head head =
		boot_wire_head(BOOT_WIRE_EXCHANGE, (uint32_t)bytes, local.exchanges);
	uint64_t total = (uint64_t)bytes * local.n_pes;
	int rc;

	rc = boot_send_all(local.sock, &head, sizeof(head));
	if (rc == 0)
		rc = boot_send_all(local.sock, mine, bytes);
	if (rc == 0)
		rc = boot_recv_all(local.sock, &head, sizeof(head));
	if (rc == 0)
		rc = boot_wire_check_run(&head, BOOT_WIRE_RESULT, total);
	if (rc == 0 && head.arg != local.exchanges)
		rc = -EPROTO;
	if (rc == 0)
		rc = boot_recv_all(local.sock, all, total);
	if (rc == 0)
		local.exchanges++;
	return rc;
}

static int local_barrier(void)
{
	return local_exchange(NULL, 0, NULL);
}

/*
 * Detaches the control socket and returns it, open: its hang-up no longer ends this process.  -1: there is none, or
 * another thread has taken it.
 */
static int control_take(void)
{
	int fd = atomic_exchange(&local.control, -1);

	if (fd >= 0)
		fcntl(fd, F_SETFL, 0);
	return fd;
}

/* Says FINISH, and closes the control socket: the end of oshrun no longer ends this process. */
static void local_finish(void)
{
	struct boot_wire_head head = boot_wire_head(BOOT_WIRE_FINISH, 0, 0);
	int control = control_take();

	boot_send_all(local.sock, &head, sizeof(head));
	if (control >= 0)
		close(control);
}

/*
 * Waits, up to TOLD_MS, while another thread tells oshrun that the job has to end. Several threads may find out that
 * at a time, as when the agent is gone. One of them tells, and the process must not end before. The limit is for a
 * signal handler that interrupts the one that tells.
 */
static void await_told(void)
{
	int naps;

	for (naps = 0; local.telling > 0 && naps < TOLD_MS; naps++)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

/* Sends an ABORT, with `why`, or NULL, cut to what fits and the lowest 8 bits of the status; a failure is not told. */
static void tell_abort(int control, int status, const char *why, bool lost)
{
	struct {
		struct boot_wire_head head;
		char text[BOOT_WIRE_TEXT_MAX];
	} msg;
	size_t len = why != NULL ? strnlen(why, BOOT_WIRE_TEXT_MAX - 1) : 0;

	msg.head = boot_wire_head(BOOT_WIRE_ABORT, (uint32_t)len,
				  ((uint32_t)status & 0xff) | (lost ? BOOT_WIRE_LOST : 0));
	if (len > 0)
		memcpy(msg.text, why, len);
	send(control, &msg, sizeof(msg.head) + len, MSG_NOSIGNAL);
}

/* Sends an ABORT by the control socket, once; a thread that comes later waits until the first has. */
static void local_abort(int status, const char *why, bool lost)
{
	int control;

	local.telling++;
	control = control_take();
	if (control >= 0)
		tell_abort(control, status, why, lost);
	local.telling--;
	if (control < 0)
		await_told();
}

/* The status of any PE of the job. */
static struct boot_status *local_status(int pe)
{
	return (struct boot_status *)(local.statuses + (size_t)pe * BOOT_WIRE_STATUS_STRIDE);
}

const struct boot_back boot_local = {
	.name = "oshrun",
	.announced = local_announced,
	.start = local_start,
	.exchange = local_exchange,
	.barrier = local_barrier,
	.finish = local_finish,
	.abort = local_abort,
	.patient = true,
	.status = local_status,
};
