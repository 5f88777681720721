/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bringing a fabric up.  One viaductd checks the options first; then one is started for each host,
 * and replaces an agent that a program started on demand.  If one fails, those that were started
 * are stopped.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fab_host.h"
#include "fab_say.h"
#include "fab_up.h"
#include "fab_wait.h"
#include "rt_load.h"
#include "u_base.h"
#include "u_cfg.h"
#include "u_fd.h"

#define HOSTS_DEFAULT 2
#define TAKE_OVERS 5 /* the most attempts to replace agents that programs started */
#define CHECK_FD 3
#define CHECK_FD_TEXT "3"

/* The arguments of one host's viaductd. */
struct agent_args {
	const char *v[FAB_ARGS_MAX + 16];
	unsigned int count;
	char id[16], hosts[16];
};

static void add_args(struct agent_args *a, const char *const *v, unsigned int count)
{
	memcpy(&a->v[a->count], v, count * sizeof(*v));
	a->count += count;
	a->v[a->count] = NULL;
}

static void host_args(struct agent_args *a, const struct fabric *f, const struct fab_up_args *up,
		      unsigned int host)
{
	const char *const named[] = { "--fabric", f->name };
	const char *const own[] = { "--host-id", a->id,	       "--hosts",
				    a->hosts,	 "--topology", up->topology };

	if (!w_name_secret(f->name))
		add_args(a, named, U_ARRAY_SIZE(named));
	else
		setenv("VIADUCT_FABRIC", f->name, 1);
	snprintf(a->id, sizeof(a->id), "%u", host);
	snprintf(a->hosts, sizeof(a->hosts), "%u", up->hosts);
	add_args(a, own, U_ARRAY_SIZE(own));
	add_args(a, up->v, up->count);
}

static int spawn_host(const struct fabric *f, const struct fab_up_args *up, unsigned int host,
		      const char *path, char *error)
{
	struct agent_args args = { .count = 0 };

	host_args(&args, f, up, host);
	return cl_spawn(path, args.v, error);
}

/* Executes viaductd without standard error, and with `fd` as CHECK_FD. */
static int run_check(const char *path, const struct agent_args *args, int fd, pid_t *pid_out)
{
	posix_spawn_file_actions_t actions;
	int rc = posix_spawn_file_actions_init(&actions);

	if (rc != 0)
		return -rc;
	rc = posix_spawn_file_actions_adddup2(&actions, fd, CHECK_FD);
	if (rc == 0)
		rc = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
						      O_WRONLY, 0);
	if (rc == 0)
		rc = posix_spawn(pid_out, path, &actions, NULL, (char *const *)(uintptr_t)args->v,
				 environ);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

/* Waits for the check.  Returns its status from waitpid(); its error line goes to `line`. */
static int await_check(int fd, pid_t pid, char *line, size_t size)
{
	ssize_t n;
	int status = 0;

	do {
		n = read(fd, line, size - 1);
	} while (n < 0 && errno == EINTR);
	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Prints the reason for which the check failed; the line «ready», which says that the options are right, is none. */
static int check_failed(const char *line, int status)
{
	char text[U_FD_ERROR];

	if (WIFSIGNALED(status))
		return fab_fail("viaductd was ended by a signal, %s, while it checked its options",
				strsignal(WTERMSIG(status)));
	if (strcmp(line, "ready") == 0)
		return fab_fail(
			"viaductd took its options, but ended with status %d then; set VIADUCT_AGENT "
			"to its path",
			WEXITSTATUS(status));
	if (line[0] == '\0' && u_fd_scarce(CL_FDS_LOADED))
		return fab_fail("viaductd does not start: %s", u_fd_error(EMFILE, text));
	fab_fail("%s",
		 line[0] != '\0' ? line : "viaductd ended at once; set VIADUCT_AGENT to its path");
	return WEXITSTATUS(status) == EXIT_USAGE ? EXIT_USAGE : EXIT_FAIL;
}

/* Makes viaductd check the options that it will get.  Returns its exit status, and prints its error. */
static int up_check(const struct fabric *f, const struct fab_up_args *up, const char *path)
{
	static const char *const check[] = { "--ready-fd", CHECK_FD_TEXT, "--check" };
	struct agent_args args = { .count = 0 };
	char line[CL_ERROR_MAX] = "", text[U_FD_ERROR];
	int fds[2], rc, status;
	pid_t pid;

	add_args(&args, &path, 1);
	add_args(&args, check, U_ARRAY_SIZE(check));
	host_args(&args, f, up, 0);
	if (pipe2(fds, O_CLOEXEC) != 0)
		return fab_fail("%s cannot be started: %s", path, u_fd_error(errno, text));
	rc = run_check(path, &args, fds[1], &pid);
	close(fds[1]);
	status = rc == 0 ? await_check(fds[0], pid, line, sizeof(line)) : 0;
	close(fds[0]);
	if (rc != 0)
		return fab_fail("%s cannot be started: %s", path, u_fd_error(-rc, text));
	return status == 0 ? EXIT_OK : check_failed(line, status);
}

static int up_wait(const struct fabric *f, unsigned int hosts, char *error)
{
	struct fab_links *l = fab_links_create(-1, error);
	unsigned int all[CL_HOSTS_MAX], host;
	int rc;

	if (l == NULL)
		return -ENOMEM;
	for (host = 0; host < hosts; host++)
		all[host] = host;
	rc = fab_links_open(l, f, all, hosts, &fab_links_patience, error);
	if (rc == 0)
		rc = fab_links_wait(l, &fab_links_patience, error);
	fab_links_destroy(l);
	return rc;
}

/* Ends an agent that a program started for itself, if no program has a NIC there. */
static int take_over(const struct fabric *f, char *error)
{
	struct cl_agent agent;
	int i, rc = 0;

	for (i = 0; i < TAKE_OVERS && (rc == 0 || rc == -EPIPE); i++) {
		rc = fab_open_any(f, &agent, error);
		if (rc != 0)
			return rc == -ENODEV ? 0 : rc;
		rc = fab_leave(&agent, error);
		cl_close(&agent);
	}
	if (rc == 0)
		snprintf(error, CL_ERROR_MAX,
			 "programs keep starting agents of fabric %s; set VIADUCT_AGENT=none "
			 "for them",
			 f->name);
	return rc != 0 ? rc : -EBUSY;
}

/* Finds out who listens there.  1: an agent; an error: a user who is not trusted, and `error` names the process. */
static int other_listener(const struct fabric *f, unsigned int host, char *error)
{
	struct cl_agent agent;
	int rc = fab_open(f, host, &agent, error);

	if (rc == 0)
		cl_close(&agent);
	if (rc == -EACCES)
		return rc;
	snprintf(error, CL_ERROR_MAX, "host %u of fabric %s has got another agent meanwhile", host,
		 f->name);
	return 1;
}

/* Starts the agent of a host; a program may have started one since the check. */
static int start_host(const struct fabric *f, const struct fab_up_args *up, unsigned int host,
		      const char *path, char *error)
{
	int i, rc = 1;

	for (i = 0; i < TAKE_OVERS && rc == 1; i++) {
		rc = spawn_host(f, up, host, path, error);
		if (rc != 1)
			return rc;
		rc = other_listener(f, host, error);
		if (rc != 1)
			return rc;
		if (host == 0 && take_over(f, error) == 0)
			continue;
		rc = -EBUSY;
	}
	return rc == 1 ? -EBUSY : rc;
}

/* Starts the agents.  `*started_out`: the number of hosts that have to be stopped if it fails. */
static int up_start(const struct fabric *f, const struct fab_up_args *up, const char *path,
		    unsigned int *started_out, char *error)
{
	unsigned int *host = started_out;
	int rc = 0;

	for (*host = 0; *host < up->hosts && rc == 0; *host += rc == 0)
		rc = fab_interrupted() ? -EINTR : start_host(f, up, *host, path, error);
	if (rc == 0)
		rc = up_wait(f, up->hosts, error);
	if (rc == 0 && fab_interrupted() && !up->foreground)
		rc = -EINTR;
	if (rc == -EINTR)
		snprintf(error, CL_ERROR_MAX, "interrupted; what was started is stopped again");
	return rc;
}

static void stay_signals(sigset_t *out)
{
	sigemptyset(out);
	sigaddset(out, SIGINT);
	sigaddset(out, SIGTERM);
}

static int agents_start(const struct fabric *f, const struct fab_up_args *up, const char *path)
{
	char error[CL_ERROR_MAX], ignored[CL_ERROR_MAX];
	unsigned int started;
	sigset_t signals;

	/* The reader of the output may be gone: that must not end this process while some hosts have started. */
	signal(SIGPIPE, SIG_IGN);
	if (up->foreground)
		stay_signals(&signals);
	else
		fab_end_signals(&signals);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (up_start(f, up, path, &started, error) != 0) {
		fab_stop_hosts(f, started, ignored);
		return fab_fail("%s", error);
	}
	printf("fabric %s is up: %u host%s, %.*s\n", f->name, up->hosts, up->hosts == 1 ? "" : "s",
	       (int)strcspn(up->topology, ":"), up->topology);
	return EXIT_OK;
}

static int agents_bring_up(const struct fabric *f, const struct fab_up_args *up)
{
	char error[CL_ERROR_MAX], path[4096];
	int rc;

	if (f->owner != geteuid())
		return fab_fail("fabric %s belongs to uid %u; only its owner brings it up", f->name,
				(unsigned int)f->owner);
	if (fab_agent_path(path, sizeof(path)) != EXIT_OK)
		return EXIT_FAIL;
	rc = up_check(f, up, path);
	if (rc == EXIT_OK && take_over(f, error) != 0)
		return fab_fail("%s", error);
	return rc == EXIT_OK ? agents_start(f, up, path) : rc;
}

/* Starts a fabric.  If the topology is a file, all agents get the text that it had at the start. */
int fab_up(const struct fabric *f, const struct fab_up_args *asked)
{
	struct rt_size hosts = { asked->hosts, HOSTS_DEFAULT, CL_HOSTS_MAX };
	struct fab_up_args up = *asked;
	struct rt_topo *topo = NULL;
	char why[CL_ERROR_MAX];
	int rc;

	if (up.topology == NULL)
		up.topology = u_cfg_str(U_CFG_TOPOLOGY);
	if (rt_load(up.topology, hosts, &topo, why, sizeof(why)) != 0) {
		if (asked->topology != NULL)
			return fab_usage("%s", why);
		return fab_fail("VIADUCT_TOPOLOGY: %s; correct or unset it", why);
	}
	up.hosts = rt_hosts(topo);
	up.topology = rt_topo_spec(topo);
	rc = agents_bring_up(f, &up);
	rt_topo_free(topo);
	return rc;
}

int fab_stay(const struct fabric *f)
{
	char error[CL_ERROR_MAX];
	sigset_t signals;
	int sig;

	stay_signals(&signals);
	sigwait(&signals, &sig);
	return fab_stop_hosts(f, CL_HOSTS_MAX, error) < 0 ? fab_fail("%s", error) : EXIT_OK;
}
