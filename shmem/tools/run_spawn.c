/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A PE is a child that the kernel kills when oshrun ends.  It inherits one socket; all else that oshrun
 * has open is closed when the program is executed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run_end.h"
#include "run_foreign.h"
#include "run_left.h"
#include "run_place.h"
#include "run_spawn.h"

enum { THEIRS_SOCK, THEIRS_OUT, THEIRS_ERR, THEIRS };

static const char no_memory[] = "no memory for the environment";

/* What a child that could not execute the program writes: which thing, and errno; 0: that is all. */
struct failure {
	int error;
	char what[512];
};

/*
 * Is it a variable of another launcher, in whose job oshrun runs? Those would tell a PE that it is that one's
 * process.
 */
static bool is_of_another(const char *entry)
{
	static const char settings[] = "PMIX_MCA_";

	return (strncmp(entry, "PMIX_", 5) == 0 &&
		strncmp(entry, settings, sizeof(settings) - 1) != 0) ||
	       strncmp(entry, "PMI_", 4) == 0;
}

/* Removes the variables of other launchers from the environment. 0 or -1. */
static int forget_others(void)
{
	char **at = environ, *name;
	int rc = 0;

	while (*at != NULL && rc == 0) {
		if (!is_of_another(*at)) {
			at++;
			continue;
		}
		name = strndup(*at, strcspn(*at, "="));
		rc = name == NULL ? -1 : unsetenv(name); /* the next takes its place */
		free(name);
	}
	return rc;
}

/* Sets VAR=VALUE in the environment; VAR alone stays as it is there. 0 or -1. */
static int export(const char *text)
{
	const char *equals = strchr(text, '=');
	char *name;
	int rc;

	if (equals == NULL)
		return 0;
	name = strndup(text, (size_t)(equals - text));
	rc = name == NULL ? -1 : setenv(name, equals + 1, 1);
	free(name);
	return rc;
}

/*
 * Sets the fabric of a PE. 0 or -1. With the owner's number: a PE may be in a user name space in which the user has
 * another, and would take the fabric for one of that user's.
 */
static int name_fabric(const char *name)
{
	char owned[100];

	if (strchr(name, ':') != NULL)
		return setenv("VIADUCT_FABRIC", name, 1);
	snprintf(owned, sizeof(owned), "%u:%s", (unsigned int)geteuid(), name);
	return setenv("VIADUCT_FABRIC", owned, 1);
}

/* In the child: sets all variables of the PE, with `sock` for BOOT_WIRE_VARIABLE. 0, or another value: no memory. */
static int environment(const struct run_job *job, const struct run_pe *pe,
		       const struct run_heritage *h, int sock)
{
	const struct run_options *o = job->options;
	const struct run_app *app = run_options_app(o, pe->pe);
	char number[16], of[16], host[16], socket_text[64];
	struct stat st;
	int i, rc = forget_others();

	for (i = 0; i < RUN_EXPORTS_MAX && o->exports[i] != NULL; i++)
		rc |= export(o->exports[i]);
	for (i = 0; i < RUN_APP_EXPORTS_MAX && app->exports[i] != NULL; i++)
		rc |= export(app->exports[i]);
	if (fstat(sock, &st) != 0)
		return -1;
	snprintf(socket_text, sizeof(socket_text), "%d:%llu", sock, (unsigned long long)st.st_ino);
	snprintf(number, sizeof(number), "%d", pe->pe);
	snprintf(of, sizeof(of), "%d", job->n_total);
	snprintf(host, sizeof(host), "%u", pe->host);
	rc |= setenv(BOOT_WIRE_VARIABLE, socket_text, 1);
	rc |= run_left_mark();
	rc |= setenv("OSHRUN_PE", number, 1);
	rc |= setenv("OSHRUN_NPES", of, 1);
	if (h->fabric != NULL)
		rc |= name_fabric(h->fabric);
	if (o->hosts != 0)
		rc |= setenv("VIADUCT_HOST", host, 1);
	return rc;
}

/*
 * In the child: sets the standard streams. PE 0 has the standard input of the oshrun that has the job, if it is on
 * that machine.
 */
static void streams(const struct run_pe *pe, const int theirs[THEIRS], bool serves)
{
	int null;

	if (pe->pe != 0 || serves) {
		null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (null >= 0)
			dup2(null, STDIN_FILENO);
	}
	if (theirs[THEIRS_OUT] >= 0)
		dup2(theirs[THEIRS_OUT], STDOUT_FILENO);
	if (theirs[THEIRS_ERR] >= 0)
		dup2(theirs[THEIRS_ERR], STDERR_FILENO);
}

/*
 * Refuses a program of another library, in a job of several PEs: its processes would not find each other. NULL, or
 * the error line, and errno is 0.
 */
static const char *refuse_foreign(const struct run_job *job, const char *program)
{
	static char line[sizeof(((struct failure *)0)->what)];
	char library[RUN_FOREIGN_NAME];

	if (job->n_total == 1 || !run_foreign(program, library))
		return NULL;
	snprintf(
		line, sizeof(line),
		"%s uses %s and not Viaduct's library, so each of the %d processes would be a job of one "
		"PE: build it with Viaduct's oshcc, or use that library's launcher",
		program, library, job->n_total);
	errno = 0;
	return line;
}

/*
 * In the child: executes the program. Returns only when that failed, with what could not be done, or
 * refuse_foreign().
 */
static const char *become(const struct run_job *job, const struct run_pe *pe,
			  const struct run_heritage *h, const int theirs[THEIRS], pid_t parent)
{
	const struct run_options *o = job->options;
	const struct run_app *app = run_options_app(o, pe->pe);
	const char *refused;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAIL);
	streams(pe, theirs, job->up != NULL);
	if (environment(job, pe, h, theirs[THEIRS_SOCK]) != 0)
		return no_memory;
	if (o->bind != 0 && run_place_bind(o, pe->nth) != 0)
		return "--bind-to";
	if (app->wdir != NULL && chdir(app->wdir) != 0)
		return app->wdir;
	refused = refuse_foreign(job, app->program[0]);
	if (refused != NULL)
		return refused;
	fcntl(theirs[THEIRS_SOCK], F_SETFD, 0);
	setrlimit(RLIMIT_NOFILE, &h->files);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	signal(SIGQUIT, SIG_IGN); /* at a terminal it asks oshrun for a report */
	sigprocmask(SIG_SETMASK, &h->mask, NULL);
	execvp(app->program[0], app->program);
	return app->program[0];
}

/* In the child: tells oshrun what failed, with errno, and ends. */
static _Noreturn void fail(int to, const char *what)
{
	struct failure f = { .error = errno };
	ssize_t n;

	snprintf(f.what, sizeof(f.what), "%s", what);
	n = write(to, &f, sizeof(f));
	(void)n;
	_exit(f.error == ENOENT ? EXIT_NO_EXEC + 1 : EXIT_NO_EXEC);
}

/* Closes fd; -1 is none. */
static void close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

/*
 * Makes sockets and pipes: oshrun's ends are put into the PE, the PE's into `theirs`, for the caller to close, also
 * after an error; it has set them to -1. Pipes only with --tag-output or --serve. 0 or -errno.
 */
static int connect_pe(struct run_job *job, struct run_pe *pe, int theirs[THEIRS])
{
	int fds[2], i;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return -errno;
	pe->conn.sock = fds[0];
	theirs[THEIRS_SOCK] = fds[1];
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	for (i = 0; i < 2 && (job->options->tag || job->up != NULL); i++) {
		if (pipe2(fds, O_CLOEXEC) != 0)
			return -errno;
		pe->streams[i].fd = fds[0];
		theirs[THEIRS_OUT + i] = fds[1];
		fcntl(fds[0], F_SETFL, O_NONBLOCK);
	}
	return 0;
}

/* Watches oshrun's ends of a PE's socket and pipes. 0 or -errno. */
static int watch_pe(struct run_job *job, struct run_pe *pe)
{
	int at = run_index(job, pe), rc = run_watch(job, RUN_SOCK, at, pe->conn.sock, false);

	if (rc == 0 && pe->streams[0].fd >= 0)
		rc = run_watch(job, RUN_STREAM_OUT, at, pe->streams[0].fd, false);
	if (rc == 0 && pe->streams[1].fd >= 0)
		rc = run_watch(job, RUN_STREAM_ERR, at, pe->streams[1].fd, false);
	return rc;
}

/*
 * Starts a PE, whose child writes to `to` if it fails later. 0; or -errno, and then oshrun's ends in the PE stay open
 * for run_conn_close().
 */
static int spawn_pe(struct run_job *job, struct run_pe *pe, const struct run_heritage *h, int to)
{
	int theirs[THEIRS] = { -1, -1, -1 }, i, rc;
	pid_t parent = getpid(), pid;

	rc = connect_pe(job, pe, theirs);
	if (rc == 0)
		rc = watch_pe(job, pe);
	if (rc == 0) {
		pid = fork();
		if (pid == 0)
			fail(to, become(job, pe, h, theirs, parent));
		if (pid < 0)
			rc = -errno;
		else
			pe->pid = pid;
	}
	for (i = 0; i < THEIRS; i++)
		close_if(theirs[i]);
	if (rc == 0) {
		job->running++;
		if (job->options->verbose)
			run_say("%s: process %d", run_name(pe).text, (int)pe->pid);
	}
	return rc;
}

/* The pipe ends when the last child has executed the program. */
void run_spawn_check(struct run_job *job)
{
	struct failure f;
	ssize_t n;

	if (job->starts < 0)
		return;
	do {
		n = read(job->starts, &f, sizeof(f));
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return;
	close(job->starts);
	job->starts = -1;
	if (n != (ssize_t)sizeof(f))
		return;
	f.what[sizeof(f.what) - 1] = '\0';
	run_clean(f.what);
	run_end(job, f.error == ENOENT ? EXIT_NO_EXEC + 1 : EXIT_NO_EXEC, "%s%s%s", f.what,
		f.error != 0 ? ": " : "", f.error != 0 ? strerror(f.error) : "");
}

void run_spawn(struct run_job *job, const struct run_heritage *h)
{
	char error[U_TOPO_ERROR];
	int fds[2], i, rc = 0;

	if (job->options->bind != 0 && run_place_open(job->options, error) != 0) {
		run_end(job, EXIT_FAIL, "--bind-to %s: %s", job->options->bind_word, error);
		return;
	}
	if (pipe2(fds, O_CLOEXEC) != 0) {
		run_end(job, EXIT_FAIL, "no pipe: %s", run_error(errno));
		return;
	}
	for (i = 0; i < job->n_pes && rc == 0; i++) {
		if (job->pes[i].far == NULL)
			rc = spawn_pe(job, &job->pes[i], h, fds[1]);
	}
	close(fds[1]);
	job->starts = fds[0];
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	if (rc == 0)
		rc = run_watch(job, RUN_STARTS, 0, fds[0], false);
	if (rc != 0)
		run_end(job, EXIT_FAIL, "%s cannot be started: %s", run_name(&job->pes[i - 1]).text,
			run_error(-rc));
}
