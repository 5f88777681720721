// SPDX-License-Identifier: BSD-2-Clause
/*
 * vi_forward - carries the connections of programs that no preloaded library reaches.
 *
 * vi_run --all starts it, under the preloaded library itself: its sockets to hosts of the fabric are promoted, counted
 * and given back to TCP as those of any program.  What it does is in docs/sockets.md, section 12.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vf_accept.h"
#include "vf_connect.h"
#include "vf_flow.h"
#include "vf_host.h"
#include "vf_loop.h"
#include "vf_name.h"
#include "vf_notify.h"
#include "vf_pair.h"

#define USAGE 2
#define DELIVER_MS 10000 /* that vi_run waits for what the program has sent */
#define OTHERS_MS 100	 /* that processes of the program's may take to end with it */
#define IDLE_MS                                                                                    \
	60000 /* after the last process, as the kernel keeps a connection whose peer says nothing */

static pid_t program;
static int status_fd;
static int64_t program_ended = -1;
static bool unused; /* no process has the filter any more */

/* Writes the error line; returns the exit status. */
static int fail(const char *what, int error)
{
	fprintf(stderr, "vi_run: --all: %s: %s\n", what, strerror(error));
	return 1;
}

/* ---- calls ---- */

static void answer(const struct vf_call *call)
{
	switch (call->number) {
	case SYS_connect:
		vf_connect(call);
		break;
	case SYS_accept:
	case SYS_accept4:
		vf_accept(call);
		break;
	case SYS_getpeername:
		vf_name_peer(call);
		break;
	case SYS_getsockname:
		vf_name_local(call);
		break;
	case SYS_bind:
		vf_name_bind(call);
		break;
	default:
		vf_notify_go_on(call->id);
	}
}

static void asked(struct vf_source *source, uint32_t events)
{
	struct vf_call call;

	if ((events & EPOLLIN) && vf_notify_next(&call))
		answer(&call);
	else if (events & EPOLLHUP) {
		unused = true;
		vf_loop_want(source, 0);
	}
}

/* ---- processes ---- */

/* Tells vi_run that the program has ended. */
static void tell(int status)
{
	int32_t word = status;

	program_ended = vf_loop_now();
	if (write(status_fd, &word, sizeof(word)) != (ssize_t)sizeof(word))
		status_fd = -1; /* vi_run is gone */
}

/* Takes the exit status of each child that has ended: the program, and those that lost their parents. */
static void reap(void)
{
	pid_t ended;
	int status;

	while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
		if (ended == program)
			tell(status);
	}
}

static void signalled(struct vf_source *source, uint32_t events)
{
	struct signalfd_siginfo info;

	(void)events;
	while (read(source->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap();
		else if (program_ended < 0)
			kill(program, (int)info.ssi_signo);
	}
}

/* vi_run passes its signals on to this process, and this to the program. */
static int handle_signals(struct vf_source *source)
{
	static const int passed[] = { SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD };
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaddset(&set, passed[i]);
	signal(SIGCHLD, SIG_DFL); /* where it is ignored no child can be waited for */
	signal(SIGINT, SIG_IGN);  /* a terminal sends them to the program, too */
	signal(SIGQUIT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN); /* where vi_run is gone nobody reads the status */
	if (sigprocmask(SIG_SETMASK, &set, NULL) != 0)
		return -errno;
	source->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return source->fd < 0 ? -errno : vf_loop_want(source, EPOLLIN);
}

/* ---- the beginning and the end ---- */

/* Receives the descriptor of the filter.  -1: the program could not be filtered, and has said why. */
static int receive_fd(int channel)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte;
	struct iovec v = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	int fd = -1;

	if (recvmsg(channel, &m, MSG_CMSG_CLOEXEC) == 1) {
		c = CMSG_FIRSTHDR(&m);
		if (c && c->cmsg_type == SCM_RIGHTS)
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	}
	return fd;
}

/* Leaves the program's files alone; standard error stays where statistics or a log are asked for. */
static void leave_files(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (!getenv("VIADUCT_SOCK_STATS") && !getenv("VIADUCT_LOG"))
		dup2(null, STDERR_FILENO);
	close(null);
}

/* Two descriptors for each connection. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Everything but the program's own start.  0, or the exit status after an error line. */
static int begin(int channel, enum vs_policy promote, struct vf_source *calls,
		 struct vf_source *signals)
{
	int rc = vf_loop_init();

	calls->fd = receive_fd(channel);
	if (calls->fd < 0) {
		unused = true; /* only its exit status is left */
		return rc == 0 && handle_signals(signals) == 0 ? 0 : 1;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	raise_limit();
	if (!vf_host_init(promote))
		return 1;
	if (rc == 0)
		rc = vf_pair_init();
	if (rc != 0)
		return fail("vi_forward", rc == 0 ? 0 : -rc);
	rc = vf_notify_init(calls->fd);
	if (rc != 0)
		return fail(rc == -EOPNOTSUPP ? "this needs Linux 5.14 or later" : "the filter",
			    -rc);
	rc = vf_loop_want(calls, EPOLLIN);
	if (rc == 0)
		rc = handle_signals(signals);
	if (rc != 0 || send(channel, "", 1, MSG_NOSIGNAL) != 1)
		return fail("vi_forward", rc == 0 ? errno : -rc);
	leave_files();
	return 0;
}

/* The earlier of two times to wait, of which -1 is never. */
static int sooner(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

/* True: there is nothing left to do. */
static bool is_done(void)
{
	if (program_ended < 0 || !unused)
		return false;
	return vf_flow_count() == 0 || vf_loop_now() - vf_flow_moved() > IDLE_MS;
}

/*
 * Has vi_run end though this process goes on, for other processes or because delivery has lasted long enough.
 * Otherwise the end of this process, after delivery, tells it.
 */
static void let_go(void)
{
	bool delivered = vf_flow_count() == 0;

	if (status_fd < 0 || program_ended < 0 || is_done())
		return;
	if (delivered ? !unused && vf_loop_now() - program_ended > OTHERS_MS
		      : vf_loop_now() - program_ended > DELIVER_MS) {
		if (write(status_fd, "", 1) == 1)
			close(status_fd);
		status_fd = -1;
	}
}

int main(int argc, char **argv)
{
	static struct vf_source calls = { .ready = asked }, signals = { .ready = signalled };
	enum vs_policy promote;
	int channel, wait, rc;

	if (argc != 5 || !vs_policy_parse(argv[4], &promote)) {
		fprintf(stderr, "vi_forward: vi_run --all starts this program\n");
		return USAGE;
	}
	channel = (int)strtol(argv[1], NULL, 10);
	program = (pid_t)strtol(argv[2], NULL, 10);
	status_fd = (int)strtol(argv[3], NULL, 10);
	fcntl(status_fd, F_SETFD, FD_CLOEXEC);
	rc = begin(channel, promote, &calls, &signals);
	close(channel);
	if (rc != 0)
		return rc;
	reap(); /* it may have ended before its signal was awaited */
	while (!is_done()) {
		wait = sooner(vf_connect_check(), vf_accept_check());
		vf_loop_turn(sooner(wait, program_ended >= 0 ? OTHERS_MS : -1));
		let_go();
	}
	return 0;
}
