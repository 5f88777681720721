/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts viaductd from inside a user's program.
 *
 * Two forks and a new session make it no child of the program.  The first fork is a raw clone()
 * without an exit signal: the program sees no SIGCHLD, and its wait() does not return for an
 * unknown child.  Between fork and exec only raw system calls are made, since another thread may
 * hold any lock, even one of a sanitizer's wrappers.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cl_priv.h"
#include "u_cfg.h"
#include "u_fd.h"
#include "u_poll.h"
#include "u_time.h"

#ifndef VIADUCTD_PATH
#define VIADUCTD_PATH "/usr/libexec/viaduct/viaductd"
#endif

/*
 * For viaductd to listen, or to say why it cannot.  Nothing of it can be seen before, so the limit is one of time: it
 * bounds the wait for one that hangs.  One that only gets little processor time goes on, and the next attempt to open
 * a NIC finds it.
 */
#define SPAWN_TIMEOUT_MS 30000
#define ARGS_MAX 512
#define READY_FD 3

/* ---- finding it ---- */

/* Makes a path of the directory of `base` followed by `rest`.  0, or -ENOENT: it cannot be executed, or is too long. */
static int beside(const char *base, const char *rest, char *path, size_t size)
{
	const char *slash = strrchr(base, '/');
	int n;

	if (slash == NULL)
		return -ENOENT;
	n = snprintf(path, size, "%.*s/%s", (int)(slash - base), base, rest);
	return n > 0 && (size_t)n < size && access(path, X_OK) == 0 ? 0 : -ENOENT;
}

/* Finds viaductd near a file: in its directory, its build tree or where it is installed.  0 or -ENOENT. */
static int near_file(const char *base, char *path, size_t size)
{
	static const char *const places[] = {
		"viaductd",
		"../provider/agent/viaductd",
		"../../provider/agent/viaductd",
		"../libexec/viaduct/viaductd",
		"../../libexec/viaduct/viaductd",
	};
	size_t i;

	for (i = 0; i < U_ARRAY_SIZE(places); i++) {
		if (beside(base, places[i], path, size) == 0)
			return 0;
	}
	return -ENOENT;
}

/* Finds viaductd near the running executable or near this library.  0 or -ENOENT. */
static int near_us(char *path, size_t size)
{
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char real[4096];
	Dl_info info;

	if (n > 0) {
		exe[n] = '\0';
		if (near_file(exe, path, size) == 0)
			return 0;
	}
	if (dladdr((void *)(uintptr_t)&cl_agent_path, &info) == 0 || info.dli_fname == NULL ||
	    realpath(info.dli_fname, real) == NULL)
		return -ENOENT;
	return near_file(real, path, size);
}

/* Finds viaductd in PATH, but not for a set-user-ID program.  0 or -ENOENT. */
static int in_path(char *path, size_t size)
{
	const char *dirs = secure_getenv("PATH");
	size_t len;

	while (dirs != NULL && *dirs != '\0') {
		len = strcspn(dirs, ":");
		if (len > 0 && len < size &&
		    (size_t)snprintf(path, size, "%.*s/viaductd", (int)len, dirs) < size &&
		    access(path, X_OK) == 0)
			return 0;
		dirs += len;
		dirs += *dirs == ':';
	}
	return -ENOENT;
}

int cl_agent_path(char *path, size_t size)
{
	const char *chosen = u_cfg_str(U_CFG_AGENT);

	if (chosen != NULL && strcmp(chosen, "none") == 0)
		return -EPERM;
	if (chosen != NULL && chosen[0] != '\0') {
		if (strlen(chosen) >= size || access(chosen, X_OK) != 0)
			return -ENOENT;
		memcpy(path, chosen, strlen(chosen) + 1);
		return 0;
	}
	if (near_us(path, size) == 0)
		return 0;
	if (strlen(VIADUCTD_PATH) < size && access(VIADUCTD_PATH, X_OK) == 0) {
		memcpy(path, VIADUCTD_PATH, strlen(VIADUCTD_PATH) + 1);
		return 0;
	}
	return in_path(path, size);
}

/* ---- starting it ---- */

/*
 * Forks without an exit signal, so waitpid() needs __WALL, and without the handlers of pthread_atfork(); returns as
 * fork() does.  Emulators of user programs insist on a signal: there the program may see one SIGCHLD.
 */
static long raw_fork(void)
{
	long pid = syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);

	if (pid < 0 && errno == EINVAL)
		pid = syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
	return pid;
}

/* Closes all descriptors from `first` on. */
static void close_from(int first)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, (unsigned int)first, ~0u, 0u) == 0)
		return;
#endif
	for (; first < 65536; first++)
		syscall(SYS_close, first);
}

/* Ends the process without handlers or locks; does not return. */
static void leave(int status)
{
	for (;;)
		syscall(SYS_exit_group, status);
}

/*
 * Runs in the grandchild: executes viaductd with `ready` as descriptor READY_FD, /dev/null as those before it, and no
 * others; with `to_root` in the folder /.  Does not return: if it cannot execute, it says so to `ready` and ends with
 * 127.
 */
static void become_daemon(const char *path, char *const *argv, int ready, int to_root)
{
	static const char failed[] = "the program cannot be executed\n";
	long null, fd;
	int i;

	/* Numbers above 0..3, so that no descriptor is copied onto itself. */
	fd = syscall(SYS_fcntl, ready, F_DUPFD, READY_FD + 1);
	null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
	if (null >= 0 && null <= READY_FD)
		null = syscall(SYS_fcntl, null, F_DUPFD, READY_FD + 1);
	if (fd < 0 || null < 0)
		leave(127);
	for (i = 0; i < READY_FD; i++)
		syscall(SYS_dup3, null, i, 0);
	syscall(SYS_dup3, fd, READY_FD, 0);
	close_from(READY_FD + 1);
	if (to_root && syscall(SYS_chdir, "/") != 0)
		leave(127);
	syscall(SYS_execve, path, argv, environ);
	syscall(SYS_write, READY_FD, failed, sizeof(failed) - 1);
	leave(127);
}

/*
 * Starts viaductd as a daemon, and waits only until it was forked.  0, -EAGAIN (the second fork failed) or
 * another -errno.  `ready` stays open here: the caller closes it, so that a read at its other end sees the daemon end.
 */
static int start(const char *path, char *const *argv, int ready)
{
	const char *log = u_cfg_str(U_CFG_LOG_FILE);
	int to_root = log == NULL || log[0] == '\0' || log[0] == '/';
	sigset_t all, before;
	int status;
	long pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = raw_fork();
	if (pid == 0) {
		syscall(SYS_setsid);
		pid = raw_fork();
		if (pid == 0)
			become_daemon(path, argv, ready, to_root);
		leave(pid < 0);
	}
	status = pid < 0 ? -errno : 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return status;
	while (waitpid((pid_t)pid, &status, __WALL) < 0) {
		if (errno != EINTR)
			return 0;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EAGAIN;
}

/*
 * Waits for the one line that viaductd writes when it listens or cannot.  0; 1: another agent listens there;
 * -ETIMEDOUT, or -ENODEV: it does not start.  `error` then says why.
 */
static int wait_ready(int fd, char *error)
{
	int64_t deadline = u_deadline_ms(SPAWN_TIMEOUT_MS);
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char line[CL_ERROR_MAX], text[U_FD_ERROR];
	ssize_t n = 0;
	int rc;

	rc = u_poll(&pfd, 1, deadline);
	if (rc < 0) {
		cl_error(error, "viaductd was started; waiting for it failed: %s",
			 u_fd_error(-rc, text));
		return rc;
	}
	if (rc == 0) {
		cl_error(error,
			 "viaductd was started but did not listen within %d s; try "
			 "again, or start it beforehand with vi_fabric up",
			 SPAWN_TIMEOUT_MS / 1000);
		return -ETIMEDOUT;
	}
	do {
		n = read(fd, line, sizeof(line) - 1);
	} while (n < 0 && errno == EINTR);
	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (strcmp(line, "ready") == 0 || strcmp(line, "exists") == 0)
		return line[0] == 'e';
	if (n <= 0)
		snprintf(line, sizeof(line), "%s",
			 u_fd_scarce(CL_FDS_LOADED) ? u_fd_error(EMFILE, text)
						    : "it ended at once");
	cl_error(error, "viaductd does not start: %s", line);
	return -ENODEV;
}

/* Makes a pipe, close-on-exec, whose numbers are above those of standard input, output and error.  0 or -errno. */
static int ready_pipe(int fds[2])
{
	int rc;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	fds[0] = u_fd_above_std(fds[0]);
	rc = fds[0] < 0 ? -errno : 0;
	fds[1] = u_fd_above_std(fds[1]);
	rc = fds[1] < 0 ? -errno : rc;
	if (rc == 0)
		return 0;
	if (fds[0] >= 0)
		close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
	return rc;
}

int cl_spawn(const char *path, const char *const *args, char *error)
{
	const char *argv[ARGS_MAX];
	char ready[16], whole[PATH_MAX], text[U_FD_ERROR];
	unsigned int n = 0;
	int fds[2], rc;

	/* The daemon changes its directory before it is executed. */
	if (realpath(path, whole) != NULL)
		path = whole;
	snprintf(ready, sizeof(ready), "%d", READY_FD);
	argv[n++] = path;
	argv[n++] = "--ready-fd"; /* first, so that it can report there an error in the rest */
	argv[n++] = ready;
	while (*args != NULL && n < ARGS_MAX - 1)
		argv[n++] = *args++;
	argv[n] = NULL;
	rc = *args != NULL ? -E2BIG : ready_pipe(fds);
	if (rc != 0) {
		cl_error(error, "%s cannot be started: %s", path, u_fd_error(-rc, text));
		return rc;
	}
	rc = start(path, (char *const *)(uintptr_t)argv, fds[1]);
	close(fds[1]);
	if (rc == 0)
		rc = wait_ready(fds[0], error);
	else
		cl_error(error, "%s cannot be started: %s", path, u_fd_error(-rc, text));
	close(fds[0]);
	return rc;
}
