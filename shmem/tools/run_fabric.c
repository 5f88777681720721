/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_fabric.h"
#include "run_job.h"

/* Windows of the emulation take memory only where it is used, so the largest costs nothing. */
#define WINDOW_MOST "1T"

/* Beside this program, in the tree that it was built in; else where the path says. */
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

/*
 * In the child: executes vi_fabric, which gets the name by its environment, and SIGTERM when oshrun ends
 * in whichever way.
 */
static _Noreturn void become(const struct run_fabric *f, const char *const *args, int out,
			     pid_t parent)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_FAIL);
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

static pid_t start(const struct run_fabric *f, const char *const *args, int out)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		become(f, args, out, parent);
	return pid;
}

/* Its exit status; minus the signal that ended it. */
static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return EXIT_FAIL;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* vi_fabric prints one line when all is up, and nothing when it fails. */
static bool is_up(int fd)
{
	char byte;
	ssize_t n;

	do {
		n = read(fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	return n == 1;
}

/* It was killed, and its hosts were not. */
static void take_down(const struct run_fabric *f)
{
	const char *const args[] = { "vi_fabric", "down", NULL };
	pid_t pid = start(f, args, -1);

	if (pid > 0)
		wait_for(pid);
}

int run_fabric_check(const char *name)
{
	const char *const args[] = { "vi_fabric", "status", "--name", name, NULL };
	struct run_fabric f = { .name = "" };
	int rc;

	find(f.program, sizeof(f.program));
	f.pid = start(&f, args, -1);
	if (f.pid < 0) {
		run_say("vi_fabric cannot be started: %s", strerror(errno));
		return EXIT_FAIL;
	}
	rc = wait_for(f.pid);
	return rc >= EXIT_OK ? rc : EXIT_FAIL;
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

	find(f->program, sizeof(f->program));
	if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret)) {
		run_say("no random numbers for the name of the hosts' fabric: %s", strerror(errno));
		return EXIT_FAIL;
	}
	snprintf(f->name, sizeof(f->name), "osh-%016llx%016llx", (unsigned long long)secret[0],
		 (unsigned long long)secret[1]);
	snprintf(hosts, sizeof(hosts), "%d", o->hosts);
	if (pipe2(fds, O_CLOEXEC) != 0) {
		run_say("no pipe for vi_fabric: %s", strerror(errno));
		return EXIT_FAIL;
	}
	f->pid = start(f, args, fds[1]);
	close(fds[1]);
	if (f->pid < 0) {
		run_say("vi_fabric cannot be started: %s", strerror(errno));
		f->pid = 0;
	} else if (is_up(fds[0])) {
		f->up = true;
		f->out = fds[0]; /* open as long as it runs, so that it can write */
		return EXIT_OK;
	}
	close(fds[0]);
	rc = f->pid != 0 ? wait_for(f->pid) : EXIT_FAIL;
	f->pid = 0;
	run_say("the host%s of the job could not be started%s%s", o->hosts == 1 ? "" : "s",
		rc < 0 ? ": vi_fabric was ended by a signal, " : "", rc < 0 ? strsignal(-rc) : "");
	if (rc < 0)
		take_down(f);
	return rc > EXIT_OK ? rc : EXIT_FAIL;
}

void run_fabric_down(struct run_fabric *f)
{
	if (!f->up)
		return;
	if (f->pid != 0) {
		kill(f->pid, SIGCONT); /* it may be stopped */
		kill(f->pid, SIGTERM);
	}
	if (f->pid == 0 || wait_for(f->pid) != EXIT_OK)
		take_down(f);
	close(f->out);
	f->up = false;
	f->pid = 0;
}
