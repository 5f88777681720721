/* SPDX-License-Identifier: BSD-2-Clause */
#include "vr_all.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vr_filter.h"

#define FAILED 1

/* Writes the error line; returns the exit status. */
static int fail(const char *what, int error)
{
	fprintf(stderr, "vi_run: --all: %s: %s\n", what, strerror(error));
	return FAILED;
}

/* Sends a descriptor to vi_forward.  False: errno says why. */
static bool send_fd(int channel, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte = 0;
	struct iovec v = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(channel, &m, MSG_NOSIGNAL) == 1;
}

/*
 * The program's side: is filtered from now on, and waits until vi_forward answers.  0, or the exit status: after an
 * error line, unless vi_forward has written that.
 */
static int be_served(int channel, const struct vs_env *env)
{
	int listener = vr_filter_ask(env->bound);
	char byte;

	if (listener < 0)
		return fail(errno == EBUSY ? "another program's filter answers calls here already"
					   : "the kernel takes no filter that asks",
			    errno);
	if (!send_fd(channel, listener))
		return errno == EPIPE ? FAILED : fail("vi_forward", errno);
	close(listener);
	return read(channel, &byte, 1) == 1 ? 0 : FAILED;
}

/*
 * Moves both descriptors past those of the standard files, which this process may lack, and makes them end at exec.
 * False: errno says why.
 */
static bool lift(int ends[2])
{
	int i, fd;

	for (i = 0; i < 2; i++) {
		fd = fcntl(ends[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (fd < 0)
			return false;
		close(ends[i]);
		ends[i] = fd;
	}
	return true;
}

/* Gives vi_forward all standard files, and no others of the program's: who reads one may wait for its end. */
static void choose_files(void)
{
	int null;

	do {
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
	} while (null >= 0 && null <= STDERR_FILENO && fcntl(null, F_SETFD, 0) == 0);
	syscall(SYS_close_range, STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
}

/* Becomes vi_forward; returns the exit status after an error line. */
static int become_forward(const char *path, const struct vs_env *env, int channel, pid_t program,
			  int status_fd)
{
	static const char *const words[] = {
		[VS_NEVER] = "never", [VS_AUTO] = "auto", [VS_EAGER] = "eager"
	};
	int rc = vr_filter_inspect(program);
	char numbers[3][16];
	char *args[] = { (char *)"vi_forward",	      numbers[0], numbers[1], numbers[2],
			 (char *)words[env->promote], NULL };

	if (rc == -ESRCH)
		return FAILED; /* the program's side has ended, after its own line */
	if (rc != 0)
		return fail("the kernel does not let vi_forward look into the program", -rc);
	snprintf(numbers[0], sizeof(numbers[0]), "%d", channel);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", program);
	snprintf(numbers[2], sizeof(numbers[2]), "%d", status_fd);
	/* It asks the rules itself, for the program that connects; its own library knows only its own name. */
	if (env->promote == VS_NEVER && setenv(VS_ENV_PROMOTE, "auto", 1) != 0)
		return FAILED;
	choose_files();
	fcntl(channel, F_SETFD, 0);
	fcntl(status_fd, F_SETFD, 0);
	execv(path, args);
	return fail(path, errno);
}

/* In the child of vi_run. */
static int split(const char *path, const struct vs_env *env, int status_fd,
		 int (*run)(char **program), char **program)
{
	int ends[2], rc;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 || !lift(ends))
		return fail("no channel to vi_forward", errno);
	child = fork();
	if (child < 0)
		return fail("no process", errno);
	if (child > 0) {
		close(ends[1]);
		return become_forward(path, env, ends[0], child, status_fd);
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	close(ends[0]);
	close(status_fd);
	rc = be_served(ends[1], env);
	close(ends[1]);
	return rc != 0 ? rc : run(program);
}

int vr_all_start(struct vr_all *all, const char *path, const struct vs_env *env,
		 int (*run)(char **program), char **program)
{
	int ends[2];

	if (!vr_filter_can_ask()) {
		fprintf(stderr, "vi_run: --all is for x86-64 and arm64 alone\n");
		return FAILED;
	}
	if (setenv(VS_ENV_ALL, "1", 1) != 0 || pipe2(ends, O_CLOEXEC) != 0 || !lift(ends))
		return fail("no pipe", errno);
	all->forward = fork();
	if (all->forward == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		close(ends[0]);
		exit(split(path, env, ends[1], run, program));
	}
	if (all->forward < 0)
		fail("no process", errno);
	close(ends[1]);
	all->status_fd = ends[0];
	return all->forward < 0 ? FAILED : 0;
}

/* Reads from the pipe, also over signals: what read() returns. */
static ssize_t hear(int fd, void *to, size_t n)
{
	ssize_t got;

	do {
		got = read(fd, to, n);
	} while (got < 0 && errno == EINTR);
	return got;
}

int vr_all_wait(struct vr_all *all)
{
	int32_t status;
	int end = 0;
	char more;

	if (hear(all->status_fd, &status, sizeof(status)) != (ssize_t)sizeof(status)) {
		/* If it has ended by itself it has said why. */
		if (waitpid(all->forward, &end, 0) != all->forward || WIFSIGNALED(end))
			fprintf(stderr, "vi_run: --all: vi_forward has ended before the program\n");
		return FAILED;
	}
	/* One byte: it goes on without this process.  The end: it has ended. */
	if (hear(all->status_fd, &more, 1) == 0)
		waitpid(all->forward, NULL, 0);
	close(all->status_fd);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
