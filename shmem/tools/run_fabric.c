/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_fabric.h"
#include "run_job.h"

/* Windows of the emulation take memory only where it is used, so the largest costs nothing. */
#define WINDOW_MOST "1T"
/*
 * For vi_fabric to end: for itself, and for each host.  It ends one host after the other, and gives each 5 s to answer,
 * 30 s to leave, 2 s after a signal and 30 s after SIGKILL; each of these is up to a host that gets little processor
 * time.  So this passes only where vi_fabric itself does nothing.
 */
#define DOWN_MS 120000
#define HOST_DOWN_MS 70000
#define POLL_MS 5

/*
 * Writes the path of vi_fabric: next to this program, or in the tree that it was built in; else it is where the path
 * says.
 */
static void find(char *path, size_t size)
{
	static const char *const places[] = { "vi_fabric", "../../tools/vi_fabric" };
	char exe[2048];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	size_t i;

	exe[n > 0 ? n : 0] = '\0';
	for (i = 0; i < 2 && strrchr(exe, '/') != NULL; i++) {
		snprintf(path, size, "%.*s/%s", (int)(strrchr(exe, '/') - exe), exe, places[i]);
		if (access(path, X_OK) == 0)
			return;
	}
	snprintf(path, size, "vi_fabric");
}

/* In the child: executes vi_fabric, which gets the name by its environment.  `parent`: 0: it may outlive it. */
static _Noreturn void become(const struct run_fabric *f, const char *const *args, int out,
			     pid_t parent)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	if (parent != 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(EXIT_FAIL);
	}
	setsid(); /* an interrupt from the terminal is for the PEs */
	dup2(null, STDIN_FILENO);
	dup2(out >= 0 ? out : null, STDOUT_FILENO);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	if (f->name[0] != '\0')
		setenv("VIADUCT_FABRIC", f->name, 1);
	execvp(f->program, (char *const *)(uintptr_t)args);
	run_say("%s cannot be executed: %s; have it in the path", f->program, strerror(errno));
	_exit(EXIT_FAIL);
}

/* As start(), with no output, but it may outlive oshrun. */
static pid_t start_apart(const struct run_fabric *f, const char *const *args)
{
	pid_t pid = fork();

	if (pid == 0)
		become(f, args, -1, 0);
	return pid;
}

/*
 * Starts vi_fabric, which find() has found, with these arguments: its process, or -1 and errno. `out`: its standard
 * output; -1: none. It gets SIGTERM when oshrun ends in whichever way.
 */
static pid_t start(const struct run_fabric *f, const char *const *args, int out)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		become(f, args, out, parent);
	return pid;
}

/* ---- waiting, which signals and --timeout end ---- */

/* The signal for this process that has come: SIGINT, SIGTERM or SIGHUP; 0: none. Others are taken and dropped. */
static int signal_of(const struct run_fabric *f)
{
	struct signalfd_siginfo s;

	while (read(f->signals, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
		if (s.ssi_signo == SIGINT || s.ssi_signo == SIGTERM || s.ssi_signo == SIGHUP)
			return (int)s.ssi_signo;
	}
	return 0;
}

/*
 * Waits until `fd` can be read: 0; or else the exit status of oshrun: EXIT_LATE, or 128 and the signal that came.
 * `until`: 0: any time. `fd`: -1: none.
 */
static int await(const struct run_fabric *f, int fd, int64_t until)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
				{ .fd = f->signals, .events = POLLIN } };
	int64_t left = 0;
	int number;

	for (;;) {
		if (until != 0)
			left = until - run_now();
		if (left < 0)
			return EXIT_LATE;
		poll(fds, 2, until != 0 ? (int)(left / 1000000) + 1 : -1);
		if (fds[0].revents != 0)
			return EXIT_OK;
		number = signal_of(f);
		if (number != 0)
			return 128 + number;
	}
}

/* As await_end(), before Linux 5.3, where no descriptor tells of the end of a child. */
static int await_end_by_polls(const struct run_fabric *f, pid_t pid, int64_t until)
{
	siginfo_t info;
	int64_t now;
	int rc;

	do {
		info.si_pid = 0;
		if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
		    info.si_pid != 0)
			return EXIT_OK;
		now = run_now();
		if (until != 0 && now >= until)
			return EXIT_LATE;
		rc = await(f, -1, now + POLL_MS * INT64_C(1000000));
	} while (rc == EXIT_LATE);
	return rc;
}

/* Waits for the end of a child, which stays to be reaped, as await(). */
static int await_end(const struct run_fabric *f, pid_t pid, int64_t until)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), rc;

	if (fd < 0)
		return await_end_by_polls(f, pid, until);
	rc = await(f, fd, until);
	close(fd);
	return rc;
}

/* Waits for the end of a child, any time, and reaps it: its exit status; minus the signal that ended it. */
static int status_of(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return EXIT_FAIL;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/*
 * Waits for a child that is about to end, which is killed when it has not after `ms`.  Its exit status as
 * status_of(); EXIT_OK if a signal has ended the wait: the child goes on, or it would leave hosts behind.
 */
static int await_last(const struct run_fabric *f, pid_t pid, int ms)
{
	int rc = await_end(f, pid, run_now() + ms * INT64_C(1000000));

	if (rc > EXIT_LATE)
		return EXIT_OK;
	if (rc != EXIT_OK)
		kill(pid, SIGKILL);
	return status_of(pid);
}

/* Tells a child to end, by SIGTERM, and waits and returns as await_last(). */
static int end(const struct run_fabric *f, pid_t pid, int ms)
{
	kill(pid, SIGTERM);
	kill(pid, SIGCONT); /* it may be stopped */
	return await_last(f, pid, ms);
}

/* The longest time that vi_fabric may take to end the hosts. */
static int down_ms(const struct run_fabric *f)
{
	return DOWN_MS + f->hosts * HOST_DOWN_MS;
}

/* Ends the hosts of a vi_fabric that was killed, and waits for that up to down_ms(). */
static void take_down(const struct run_fabric *f)
{
	const char *const args[] = { "vi_fabric", "down", NULL };
	pid_t pid = start_apart(f, args);

	if (pid > 0)
		await_last(f, pid, down_ms(f));
}

int run_fabric_check(struct run_fabric *f, const char *name)
{
	const char *const args[] = { "vi_fabric", "status", "--name", name, NULL };
	int rc;

	find(f->program, sizeof(f->program));
	f->pid = start(f, args, -1);
	if (f->pid < 0) {
		run_say("vi_fabric cannot be started: %s", run_error(errno));
		return EXIT_FAIL;
	}
	rc = await_end(f, f->pid, f->limit_at);
	if (rc != EXIT_OK)
		end(f, f->pid, RUN_END_MS);
	else
		rc = status_of(f->pid);
	f->pid = 0;
	return rc >= EXIT_OK ? rc : EXIT_FAIL;
}

/* Waits until all is up: as await(), or EXIT_FAIL. vi_fabric prints one line then, and nothing when it fails. */
static int await_up(struct run_fabric *f, int fd)
{
	char byte;
	int rc = await(f, fd, f->limit_at);

	if (rc == EXIT_OK && read(fd, &byte, 1) != 1)
		rc = EXIT_FAIL;
	f->up = rc == EXIT_OK;
	return rc;
}

/* The hosts are not up: says why, unless vi_fabric has, and returns the exit status. */
static int give_up(struct run_fabric *f, const struct run_options *o, int rc)
{
	int status;

	if (rc == EXIT_LATE)
		run_say("the hosts of the job have not started in %g s (--timeout)", o->timeout);
	status = rc == EXIT_FAIL ? status_of(f->pid) : end(f, f->pid, down_ms(f));
	f->pid = 0;
	if (status < 0)
		take_down(f);
	if (rc != EXIT_FAIL)
		return rc;
	run_say("the host%s of the job could not be started%s%s", o->hosts == 1 ? "" : "s",
		status < 0 ? ": vi_fabric was ended by a signal, " : "",
		status < 0 ? strsignal(-status) : "");
	return status > EXIT_OK ? status : EXIT_FAIL;
}

int run_fabric_up(struct run_fabric *f, const struct run_options *o)
{
	uint64_t secret[2];
	char hosts[16];
	const char *args[] = { "vi_fabric",
			       "up",
			       "--foreground",
			       "--hosts",
			       hosts,
			       "--window",
			       o->window != NULL ? o->window : WINDOW_MOST,
			       o->topology != NULL ? "--topology" : NULL,
			       o->topology,
			       NULL };
	int fds[2], rc;

	f->hosts = o->hosts;
	find(f->program, sizeof(f->program));
	if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret)) {
		run_say("no random numbers for the name of the hosts' fabric: %s", strerror(errno));
		return EXIT_FAIL;
	}
	snprintf(f->name, sizeof(f->name), "osh-%016llx%016llx", (unsigned long long)secret[0],
		 (unsigned long long)secret[1]);
	snprintf(hosts, sizeof(hosts), "%d", o->hosts);
	if (pipe2(fds, O_CLOEXEC) != 0) {
		run_say("no pipe for vi_fabric: %s", run_error(errno));
		return EXIT_FAIL;
	}
	f->pid = start(f, args, fds[1]);
	close(fds[1]);
	if (f->pid < 0) {
		run_say("vi_fabric cannot be started: %s", run_error(errno));
		f->pid = 0;
		close(fds[0]);
		return EXIT_FAIL;
	}
	rc = await_up(f, fds[0]);
	f->out = fds[0]; /* open as long as it runs, so that it can write */
	if (rc == EXIT_OK)
		return EXIT_OK;
	rc = give_up(f, o, rc);
	close(f->out);
	return rc;
}

void run_fabric_down(struct run_fabric *f)
{
	if (!f->up)
		return;
	if (f->pid == 0 || end(f, f->pid, down_ms(f)) != EXIT_OK)
		take_down(f);
	close(f->out);
	f->up = false;
	f->pid = 0;
}
