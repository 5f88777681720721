// SPDX-License-Identifier: BSD-2-Clause
#include "vs_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "vs_real.h"
#include "vs_sock_promote.h"
#include "vs_table.h"

#define TURN_MS 50
#define ASKED_WAIT_MS 1000

#define CALLS 16

static int parent = -1; /* the child's end */
/* Descriptors + 1 of calls of vfork() under way: a child of another thread's fork() would hold them open. */
static _Atomic int open_ends[CALLS];
static __thread int mine = -1;

/* True: some socket of the table has a VI, or may get one. */
static bool any_on_vi(void)
{
	struct vs_obj *o;
	bool yes = false;
	int fd = -1;

	while (!yes && (fd = vs_table_next(fd + 1)) >= 0) {
		o = vs_get(fd);
		if (!o)
			continue;
		yes = vs_is_socket(o) && vs_sock_uses_vi(o);
		vs_put(o);
	}
	return yes;
}

/* Puts `is` in the place of an entry `was` of open_ends; false: there is none. */
static bool replace(int was, int is)
{
	for (int i = 0; i < CALLS; i++) {
		int found = was;

		if (atomic_compare_exchange_strong(&open_ends[i], &found, is))
			return true;
	}
	return false;
}

/*
 * Returns a copy of the descriptor with a number among this library's, and closes the descriptor; if there is none, the
 * descriptor itself.
 */
static int raise_number(int fd)
{
	int high = vs_real.fcntl64(fd, F_DUPFD_CLOEXEC, (unsigned long)vs_ours_from);

	if (high < 0)
		return fd;
	vs_real.close(fd);
	return high;
}

bool vs_ask_open(int ends[2])
{
	int before = errno;

	if (!any_on_vi())
		return false;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		errno = before;
		return false;
	}
	ends[0] = raise_number(ends[0]);
	ends[1] = raise_number(ends[1]);
	if (!replace(0, ends[1] + 1)) {
		vs_real.close(ends[0]);
		vs_real.close(ends[1]);
		errno = before;
		return false;
	}
	mine = ends[1];
	errno = before;
	return true;
}

void vs_ask_begin(int ends[2])
{
	vs_real.close(ends[0]);
	parent = ends[1];
}

void vs_ask_forked(void)
{
	if (parent >= 0)
		vs_real.close(parent);
	parent = -1;
	for (int i = 0; i < CALLS; i++) {
		int end = atomic_exchange(&open_ends[i], 0) - 1;

		if (end >= 0 && end != mine)
			vs_real.close(end);
	}
	mine = -1;
}

void vs_ask_for(struct vs_obj *o)
{
	struct vs_obj *answer = NULL;
	ssize_t n;

	if (parent < 0 || !vs_is_socket(o) ||
	    vs_real.send(parent, &o, sizeof(o), MSG_NOSIGNAL) != sizeof(o))
		return;
	do
		n = vs_real.recv(parent, &answer, sizeof(answer), 0);
	while (n < 0 && errno == EINTR);
}

/* ---- the parent ---- */

/* True: the child has ended, or cannot be waited for.  Another process, which it has made, may have its end still. */
static bool has_ended(pid_t child)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
	       info.si_pid != 0;
}

/*
 * If the child asks for a socket: moves that to the kernel, for which it waits a second at most, and answers.  False:
 * the child's end is closed, or no answer can be sent.  The address of the object is the same in both.
 */
static bool serve_one(int fd)
{
	struct vs_obj *o = NULL;
	ssize_t n = vs_real.recv(fd, &o, sizeof(o), MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n != sizeof(o))
		return false;
	if (vs_hold_living(o)) {
		vs_sock_bar(o, VS_WHY_EXEC);
		vs_sock_wait_tcp(o, ASKED_WAIT_MS);
		vs_put(o);
	}
	return vs_real.send(fd, &o, sizeof(o), MSG_NOSIGNAL) == sizeof(o);
}

void vs_ask_serve(int ends[2], pid_t child)
{
	struct pollfd p = { .fd = ends[0], .events = POLLIN };
	int before = errno, n = 0;

	replace(ends[1] + 1, 0);
	mine = -1;
	vs_real.close(ends[1]);
	while (child > 0) {
		n = vs_real.poll(&p, 1, TURN_MS);
		if (n > 0 && !serve_one(p.fd))
			break;
		if (n == 0 && has_ended(child))
			break;
	}
	vs_real.close(ends[0]);
	errno = before;
}
