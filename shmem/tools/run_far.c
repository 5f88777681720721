/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_end.h"
#include "run_far.h"
#include "run_place.h"

#define RSH_WORDS 64

/* ---- places ---- */

/* Gives a machine its PEs, and, if it is another than this one and has any, an entry in job->fars. */
static void place(struct run_job *job, int machine)
{
	const struct run_machine *m = &job->options->machines.at[machine];
	struct run_far *far = m->here ? NULL : &job->fars[job->n_fars];
	int nth = 0, i;

	for (i = 0; i < job->n_pes; i++) {
		struct run_pe *pe = &job->pes[i];

		if (run_place_machine(job->options, i) != machine)
			continue;
		pe->machine = m->name;
		pe->far = far;
		pe->nth = nth++;
		if (far != NULL)
			job->far_pes[far->pes - job->far_pes + far->n_pes++] = i;
	}
	if (far == NULL || nth == 0)
		return;
	far->machine = m->name;
	far->index = job->n_fars++;
	far[1].pes = far->pes + nth;
}

int run_far_prepare(struct run_job *job)
{
	const struct run_machines *m = &job->options->machines;
	int i;

	job->fars = calloc((size_t)m->n + 1, sizeof(*job->fars));
	job->far_pes = calloc((size_t)job->n_pes, sizeof(*job->far_pes));
	if (job->fars == NULL || job->far_pes == NULL)
		return -ENOMEM;
	job->fars[0].pes = job->far_pes;
	for (i = 0; i < m->n; i++)
		place(job, i);
	for (i = 0; i < job->n_pes; i++) {
		struct run_pe *pe = &job->pes[i];

		if (pe->far == NULL)
			continue;
		pe->far_status = calloc(1, sizeof(*pe->far_status));
		if (pe->far_status == NULL)
			return -ENOMEM;
	}
	return 0;
}

void run_far_free(struct run_job *job)
{
	int i;

	for (i = 0; i < job->n_pes; i++)
		free(job->pes[i].far_status);
	free(job->fars);
	free(job->far_pes);
}

/* ---- the remote shell ---- */

/*
 * "exec '/path/of/oshrun' --serve" for a shell on the other machine, where it has the same path. False: that cannot
 * be written so.
 */
static bool command_line(char *line, size_t size)
{
	char path[2048];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n <= 0 || (size_t)n == sizeof(path) - 1)
		return false;
	path[n] = '\0';
	if (strchr(path, '\'') != NULL)
		return false;
	return (size_t)snprintf(line, size, "exec '%s' --serve", path) < size;
}

/* In the child: executes the remote shell. Its own session: an interrupt from the terminal is passed on by frames. */
static _Noreturn void become(const struct run_job *job, const struct run_far *far, int sock,
			     pid_t parent)
{
	char line[2200], *words[RSH_WORDS + 3], *rest, *rsh = strdup(job->options->rsh);
	sigset_t none;
	int n = 0;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || rsh == NULL)
		_exit(EXIT_FAIL);
	setsid();
	dup2(sock, STDIN_FILENO);
	dup2(sock, STDOUT_FILENO);
	for (words[n] = strtok_r(rsh, " \t", &rest); words[n] != NULL && n < RSH_WORDS;
	     words[n] = strtok_r(NULL, " \t", &rest))
		n++;
	if (n == 0 || n == RSH_WORDS || !command_line(line, sizeof(line))) {
		run_say("--rsh '%s' cannot be called with the path of this oshrun",
			job->options->rsh);
		_exit(EXIT_FAIL);
	}
	words[n++] = (char *)(uintptr_t)far->machine;
	words[n++] = line;
	words[n] = NULL;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execvp(words[0], words);
	run_say("%s: %s; --rsh says how programs are started on other machines", words[0],
		strerror(errno));
	_exit(EXIT_NO_EXEC);
}

/*
 * Starts the remote shell of a machine, whose PEs count as running from now on. 0; or -errno, with no connection, and a
 * shell that runs (far->pid) is left to run_far_kill().
 */
static int start(struct run_job *job, struct run_far *far)
{
	pid_t parent = getpid();
	int fds[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return -errno;
	far->pid = fork();
	err = far->pid < 0 ? -errno : -ENOMEM;
	if (far->pid == 0)
		become(job, far, fds[1], parent);
	close(fds[1]);
	far->link = far->pid > 0 ? run_link_create(fds[0], fds[0], true, (uint32_t)far->n_pes)
				 : NULL;
	if (far->link == NULL) {
		close(fds[0]);
		far->pid = far->pid > 0 ? far->pid : 0;
		return err;
	}
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	job->running += far->n_pes;
	return run_watch(job, RUN_FAR, far->index, fds[0], false);
}

void run_far_start(struct run_job *job)
{
	int i, rc = 0;

	for (i = 0; i < job->n_fars && rc == 0; i++)
		rc = start(job, &job->fars[i]);
	if (rc != 0)
		run_end(job, EXIT_FAIL, "the remote shell for %s cannot be started: %s",
			job->fars[i - 1].machine, run_error(-rc));
}

/* ---- START ---- */

struct text {
	char at[RUN_WIRE_START_MAX];
	size_t n;
	bool full;
};

/* Appends to a START; what does not fit is left out, and t->full set. */
static void add(struct text *t, const void *data, size_t bytes)
{
	if (bytes > sizeof(t->at) - t->n) {
		t->full = true;
		return;
	}
	memcpy(t->at + t->n, data, bytes);
	t->n += bytes;
}

/* Appends a string with its 0, as add(). */
static void add_string(struct text *t, const char *s)
{
	add(t, s, strlen(s) + 1);
}

/* Is it a variable of this library for PEs elsewhere, and none that describes this machine? */
static bool travels(const char *variable)
{
	static const char *const with[] = { "VIADUCT_", "SHMEM_", "SMA_" };
	static const char *const but[] = { "VIADUCT_HOST=", "VIADUCT_ADAPTERS=",
					   BOOT_WIRE_VARIABLE "=" };
	bool yes = false;
	size_t i;

	for (i = 0; i < sizeof(with) / sizeof(with[0]); i++)
		yes |= strncmp(variable, with[i], strlen(with[i])) == 0;
	for (i = 0; i < sizeof(but) / sizeof(but[0]); i++)
		yes &= strncmp(variable, but[i], strlen(but[i])) != 0;
	return yes;
}

/* Adds VAR=VALUE as it is, VAR with the value that it has here, if it has one. Returns how many that are: 1 or 0. */
static uint32_t add_export(struct text *t, const char *text)
{
	const char *value = strchr(text, '=') != NULL ? "" : getenv(text);

	if (value == NULL)
		return 0;
	add(t, text, strlen(text));
	if (strchr(text, '=') == NULL)
		add(t, "=", 1);
	add_string(t, value);
	return 1;
}

/* Adds the variables for all PEs of the machine, and returns how many. */
static uint32_t add_variables(struct text *t, const struct run_options *o)
{
	uint32_t n = 0;
	char fabric[512];
	int i;

	for (i = 0; environ[i] != NULL; i++) {
		if (travels(environ[i]))
			n += add_export(t, environ[i]);
	}
	if (o->fabric != NULL) {
		snprintf(fabric, sizeof(fabric), "VIADUCT_FABRIC=%s", o->fabric);
		n += add_export(t, fabric);
	}
	for (i = 0; i < RUN_EXPORTS_MAX && o->exports[i] != NULL; i++)
		n += add_export(t, o->exports[i]);
	return n;
}

/* Adds the folder of a program: that of this oshrun, unless --wdir says another, which may be relative to that. */
static void add_folder(struct text *t, const struct run_app *app)
{
	char *here = app->wdir == NULL || app->wdir[0] != '/' ? getcwd(NULL, 0) : NULL;

	if (here != NULL)
		add(t, here, strlen(here));
	if (here != NULL && app->wdir != NULL)
		add(t, "/", 1);
	add_string(t, app->wdir != NULL ? app->wdir : "");
	free(here);
}

/* Adds folder, exports and words of a program, and returns how many they are. */
static struct run_wire_app add_app(struct text *t, const struct run_app *app)
{
	struct run_wire_app a = { .end = (uint32_t)app->end };
	int i;

	add_folder(t, app);
	for (i = 0; i < RUN_APP_EXPORTS_MAX && app->exports[i] != NULL; i++)
		a.exports += add_export(t, app->exports[i]);
	for (; app->program[a.words] != NULL; a.words++)
		add_string(t, app->program[a.words]);
	return a;
}

void run_far_begin(struct run_job *job, struct run_far *far)
{
	const struct run_options *o = job->options;
	struct text *t = calloc(1, sizeof(*t));
	struct run_wire_start s = { .job = job->id,
				    .pes = (uint32_t)job->n_total,
				    .here = (uint32_t)far->n_pes,
				    .apps = (uint32_t)o->n_apps,
				    .bind = o->bind,
				    .map_by = (uint32_t)o->map_by };
	struct run_wire_app apps[RUN_APPS_MAX] = { { 0 } };
	size_t at_apps;

	if (t == NULL) {
		run_end(job, EXIT_FAIL, "no memory for the start of %s", far->machine);
		return;
	}
	add(t, &s, sizeof(s));
	add(t, far->pes, sizeof(*far->pes) * (size_t)far->n_pes);
	at_apps = t->n;
	add(t, apps, sizeof(apps[0]) * s.apps);
	add_string(t, far->machine);
	s.exports = add_variables(t, o);
	for (int i = 0; i < o->n_apps; i++)
		apps[i] = add_app(t, &o->apps[i]);
	memcpy(t->at, &s, sizeof(s));
	memcpy(t->at + at_apps, apps, sizeof(apps[0]) * s.apps);
	if (t->full || s.exports > RUN_EXPORTS_MAX)
		run_end(job, EXIT_FAIL, "more than %u bytes of arguments, or %d variables, for %s",
			RUN_WIRE_START_MAX, RUN_EXPORTS_MAX, far->machine);
	else
		run_far_send(job, far, RUN_WIRE_START, 0, t->at, t->n);
	free(t);
}

/* ---- the end ---- */

bool run_far_any(const struct run_job *job)
{
	int i;

	for (i = 0; i < job->n_fars; i++) {
		if (job->fars[i].link != NULL || job->fars[i].pid != 0)
			return true;
	}
	return false;
}

void run_far_close(struct run_job *job, struct run_far *far)
{
	int i;

	if (far->link == NULL)
		return;
	run_link_destroy(far->link);
	far->link = NULL;
	if (!job->ending)
		job->fars_at = 0; /* until its remote shell ends */
	for (i = 0; i < far->n_pes; i++) {
		struct run_pe *pe = &job->pes[far->pes[i]];

		job->running -= !pe->ended;
		pe->ended = true;
	}
}

void run_far_absent(struct run_job *job, struct run_far *far)
{
	char line[512];

	snprintf(line, sizeof(line),
		 "%s does not start oshrun on %s, where it has to have the path that it has here",
		 job->options->rsh, far->machine);
	if (far->pid != 0) /* its exit status may come yet */
		run_end_lost(job, EXIT_FAIL, line);
	else if (WIFEXITED(far->status))
		run_end(job, EXIT_FAIL, "%s: it ended with exit status %d", line,
			WEXITSTATUS(far->status));
	else
		run_end(job, EXIT_FAIL, "%s: it was ended by a signal, %s", line,
			strsignal(WTERMSIG(far->status)));
}

void run_far_reaped(struct run_job *job, pid_t pid, int status)
{
	int i;

	for (i = 0; i < job->n_fars; i++) {
		struct run_far *far = &job->fars[i];

		if (far->pid != pid)
			continue;
		far->pid = 0;
		far->status = status;
		if (far->link == NULL && !far->greeted)
			run_far_absent(job, far);
	}
}

void run_far_check(struct run_job *job)
{
	int64_t now = run_now();
	int i;

	for (i = 0; i < job->n_fars && job->options->silence > 0; i++) {
		const struct run_far *far = &job->fars[i];

		if (far->link != NULL && far->greeted && !far->paused &&
		    (double)(now - far->heard_at) / 1e9 > job->options->silence)
			run_end(job, EXIT_FAIL,
				"nothing has come from oshrun on %s for %g s (--silence)",
				far->machine, job->options->silence);
	}
}

void run_far_resume(struct run_job *job)
{
	int i;

	for (i = 0; i < job->n_fars; i++) {
		struct run_far *far = &job->fars[i];

		if (far->paused && far->link != NULL) {
			far->heard_at = run_now();
			run_watch(job, RUN_FAR, i, far->link->in, far->link->queued > 0);
		}
		far->paused = false;
	}
}

void run_far_kill(struct run_job *job)
{
	int i;

	for (i = 0; i < job->n_fars; i++) {
		struct run_far *far = &job->fars[i];

		if (far->link != NULL)
			run_end(job, EXIT_FAIL, "oshrun on %s does not answer", far->machine);
		run_far_close(job, far);
		if (far->pid != 0)
			kill(far->pid, SIGKILL);
	}
}
