/* SPDX-License-Identifier: BSD-2-Clause */
/* viaductd: the agent of one host as a program. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_agent.h"
#include "u_close.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_option.h"
#include "viaductd_check.h"
#include "viaductd_inherit.h"
#include "viaductd_manager.h"
#include "viaductd_options.h"

enum { EXIT_OK = 0, EXIT_FAIL = 1, EXIT_USAGE = 2 };

static _Atomic(struct ag_agent *) running;
static _Atomic(bool) stop_asked;
static _Atomic(bool) time_used; /* SIGXCPU has come */

/* Ends the agent in order; a signal that comes while it is made ends it when it begins to run. */
static void on_signal(int sig)
{
	struct ag_agent *a = running;
	int saved = errno;

	stop_asked = true;
	if (a != NULL)
		ag_stop(a);
	errno = saved;
}

/* SIGXCPU comes before the hard limit, at which the kernel kills the process: ends the agent in order. */
static void on_time_used(int sig)
{
	time_used = true;
	on_signal(sig);
}

/* Interrupts a thread that waits in close(); see u_close.h. */
static void on_nudge(int sig) {}

/* Sets the handlers of all signals that the agent handles or ignores, and unblocks all signals. */
static void signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	sigset_t none;

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sa.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &sa, NULL);
	sigaction(SIGXFSZ, &sa,
		  NULL); /* memory past ulimit -f is refused to the process that asks for it */
	sigaction(SIGHUP, &sa, NULL);
	sa.sa_handler = on_nudge;
	sigaction(SIGURG, &sa, NULL);
	u_close_signal(SIGURG);
	sa.sa_handler = on_time_used;
	sigaction(SIGXCPU, &sa, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Writes the one line to the ready descriptor, if there is one, and closes it.  False: the program that started
 * the agent is gone.
 */
static bool ready(struct vd_options *o, const char *line)
{
	bool told;

	if (o->ready_fd < 0)
		return true;
	told = write(o->ready_fd, line, strlen(line)) >= 0 || errno != EPIPE;
	close(o->ready_fd);
	o->ready_fd = -1;
	return told;
}

/*
 * Makes the agent and runs it until it is stopped; the ready descriptor is told that it listens, or why not.
 * Returns an exit status: EXIT_OK also if an agent on demand finds another in its place.
 */
static int serve(struct vd_options *o)
{
	char text[U_FD_ERROR], why[AG_WHY_MAX] = "";
	struct ag_agent *a;
	int rc;

	o->cfg.why = why;
	rc = ag_create(&o->cfg, &a);
	if (rc == -EADDRINUSE) {
		ready(o, "exists\n");
		if (o->cfg.leave_when_idle)
			return EXIT_OK;
		vd_complain("host %u of fabric %s has an agent already", o->cfg.host_id, o->fabric);
		return EXIT_FAIL;
	}
	if (rc != 0) {
		vd_complain("agent of host %u of fabric %s cannot start: %s", o->cfg.host_id,
			    o->fabric, why[0] != '\0' ? why : u_fd_error(-rc, text));
		ready(o, vd_complaint());
		return EXIT_FAIL;
	}
	running = a;
	if (stop_asked)
		ag_stop(a);
	/* If a program waits at the ready descriptor, the service manager is that program's, not the agent's. */
	if (o->ready_fd < 0)
		vd_manager_ready();
	/* A program that was killed while it started hosts does not need them any more, and cannot stop this one. */
	if (ready(o, "ready\n") || o->cfg.leave_when_idle)
		rc = ag_run(a);
	running = NULL;
	if (time_used)
		u_error("ag",
			"the processor time of this agent is used up (ulimit -t of its starter), "
			"so it ends");
	ag_destroy(a);
	return rc == 0 ? EXIT_OK : EXIT_FAIL;
}

/*
 * Exit status: 0 after an orderly end, or options that are right with --check; 1 failed; 2 usage, or a
 * malformed variable.
 */
int main(int argc, char **argv)
{
	static struct vd_options o;
	int rc = EXIT_USAGE;

	if (vd_inherit_begin() != 0) {
		fprintf(stderr, "viaductd: cannot become one user: %s\n", strerror(errno));
		return EXIT_FAIL;
	}
	signals();
	if (vd_options_defaults(&o) == 0)
		rc = vd_options_parse(argc, argv, &o);
	if (rc == U_OPTION_GO_ON && vd_check(&o) != 0)
		rc = o.bad_variable ? EXIT_FAIL : EXIT_USAGE;
	if (rc == U_OPTION_GO_ON && vd_inherit_check() != 0)
		rc = EXIT_FAIL;
	if (rc == U_OPTION_GO_ON && vd_manager_socket(&o.cfg.listen_sock) != 0)
		rc = EXIT_FAIL;
	if (rc > EXIT_OK)
		ready(&o, vd_complaint());
	if (rc != U_OPTION_GO_ON)
		return rc;
	if (o.check) {
		ready(&o, "ready\n");
		return EXIT_OK;
	}
	if (o.cfg.leave_when_idle)
		vd_inherit_place();
	return serve(&o);
}
