/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_run - runs a program with libvisock.so, and tells what the library did. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "u_option.h"
#include "vr_all.h"
#include "vr_explain.h"
#include "vr_filter.h"
#include "vr_options.h"
#include "vr_stats.h"

#define NOT_RUN 126
#define NOT_FOUND 127

static pid_t child;

/*
 * Finds a file in the build folder of this program, there at `built`, else the installed one.  False: it is not there,
 * and `path` says where it was sought last.
 */
static bool find_file(const char *built, const char *installed, int mode, char path[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
		if (slash) {
			*slash = '\0';
			if (snprintf(path, PATH_MAX, "%s/../%s", self, built) < PATH_MAX &&
			    access(path, mode) == 0)
				return true;
		}
	}
	snprintf(path, PATH_MAX, "%s", installed);
	return access(path, mode) == 0;
}

/* Puts the library at the front of LD_PRELOAD.  False: no memory. */
static bool preload(const char *library)
{
	const char *before = getenv("LD_PRELOAD");
	char *text;
	bool done;

	if (asprintf(&text, "%s%s%s", library, before && before[0] ? ":" : "",
		     before ? before : "") < 0)
		return false;
	done = setenv("LD_PRELOAD", text, 1) == 0;
	free(text);
	return done;
}

/*
 * Becomes the program; returns only after an error, which it prints, with the exit status: 127 if there is none, else
 * 126.
 */
static int run(char **program)
{
	execvp(program[0], program);
	fprintf(stderr, "vi_run: %s: %s\n", program[0], strerror(errno));
	return errno == ENOENT ? NOT_FOUND : NOT_RUN;
}

/* ---- with statistics, or for all programs: the program is a child ---- */

/* Handler of signals that the program is to get. */
static void pass_on(int number)
{
	if (child > 0)
		kill(child, number);
}

/*
 * Passes SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 on to the program; ignores SIGINT and SIGQUIT, which a terminal sends to
 * it, too.
 */
static void handle_signals(void)
{
	struct sigaction pass = { .sa_handler = pass_on, .sa_flags = SA_RESTART };
	struct sigaction leave = { .sa_handler = SIG_IGN };

	sigaction(SIGTERM, &pass, NULL);
	sigaction(SIGHUP, &pass, NULL);
	sigaction(SIGUSR1, &pass, NULL);
	sigaction(SIGUSR2, &pass, NULL);
	sigaction(SIGINT, &leave, NULL);
	sigaction(SIGQUIT, &leave, NULL);
}

/* Waits for the program's end: the exit status that a shell gives. */
static int wait_for_child(void)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return NOT_RUN;
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Runs the program as a child, then tells the statistics: its exit status, or 1 if that is 0 and they failed. */
static int run_with_stats(const struct vr_options *o)
{
	struct vs_stat_file *file;
	void (*before)(int);
	int status;

	if (vr_stats_begin(&file) != 0)
		return 1;
	before = signal(SIGCHLD, SIG_DFL); /* where it is ignored no child can be waited for */
	child = fork();
	if (child == 0) {
		if (before == SIG_IGN)
			signal(SIGCHLD, SIG_IGN);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		exit(run(o->program));
	}
	if (child < 0) {
		fprintf(stderr, "vi_run: %s\n", strerror(errno));
		vr_stats_end(file, o->stats);
		return NOT_RUN;
	}
	handle_signals();
	status = wait_for_child();
	return vr_stats_end(file, o->stats) != 0 && status == 0 ? 1 : status;
}

/*
 * Runs the program with vi_forward, at that path, then tells the statistics if they are asked for: the exit status as
 * of run_with_stats().
 */
static int run_all(const struct vr_options *o, const struct vs_env *env, const char *path)
{
	struct vs_stat_file *file;
	struct vr_all all;
	int status;

	if (o->stats && vr_stats_begin(&file) != 0)
		return 1;
	status = vr_all_start(&all, path, env, run, o->program);
	if (status == 0) {
		child = all.forward;
		handle_signals();
		status = vr_all_wait(&all);
	}
	return o->stats && vr_stats_end(file, o->stats) != 0 && status == 0 ? 1 : status;
}

/* Says on standard error that the program cannot be helped, if so; nothing about one that is not there. */
static void warn(const char *name)
{
	char path[PATH_MAX];
	enum vr_program kind = vr_program_kind(name, path);

	if (kind != VR_HELPED && kind != VR_MISSING)
		fprintf(stderr, "vi_run: %s: %s\n", path, vr_program_text(kind, false));
}

int main(int argc, char **argv)
{
	struct vr_options o = { 0 };
	static struct vs_env env;
	char library[PATH_MAX], forward[PATH_MAX];
	int rc = vr_options_parse(&o, argc, argv);

	if (rc != U_OPTION_GO_ON)
		return rc;
	rc = vr_options_apply(&o, &env);
	if (rc != 0)
		return rc;
	if (!find_file("hook/libvisock.so", VISOCK_LIBRARY, R_OK, library)) {
		fprintf(stderr, "vi_run: there is no %s\n", library);
		return 1;
	}
	if (o.all && !find_file("forward/vi_forward", VI_FORWARD, X_OK, forward)) {
		fprintf(stderr, "vi_run: there is no %s\n", forward);
		return 1;
	}
	if (o.explain) {
		vr_explain(&o, &env, library, forward);
		return 0;
	}
	if (!o.all)
		warn(o.program[0]);
	if (o.no_uring && !vr_filter_refuse_uring()) {
		fprintf(stderr, "vi_run: --no-uring: the kernel takes no filter: %s\n",
			strerror(errno));
		return 1;
	}
	if (!preload(library))
		return 1;
	if (o.all)
		return run_all(&o, &env, forward);
	return o.stats ? run_with_stats(&o) : run(o.program);
}
