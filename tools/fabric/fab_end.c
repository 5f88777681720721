/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ending agents.  An agent gets a request to leave.  One that does not answer it in time, has no
 * descriptor left for it, or speaks another version of the control protocol gets signals: SIGCONT, as
 * it may be stopped, SIGTERM, and at last SIGKILL.  The kernel names the process that listens at the
 * agent's socket.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fab.h"
#include "u_poll.h"
#include "u_time.h"

#define TERM_MS 2000 /* time for an agent to leave by itself after SIGCONT */

static bool readable(int fd, int64_t deadline)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return u_poll(&pfd, 1, deadline) == 1;
}

/*
 * Returns a descriptor that is readable when the process has ended; -1 without such a process or on
 * kernels without pidfd.
 */
static int pid_watch(pid_t pid)
{
	return pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

static int pid_signal(int pidfd, int number)
{
	return syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0) == 0 ? 0 : -errno;
}

/* Waits until the agent has hung up and its process, if it can be watched, has ended. */
static bool gone(const struct cl_agent *agent, int pidfd)
{
	int64_t deadline = u_deadline_ms(FAB_END_MS);
	char byte;

	if (!readable(agent->sock, deadline) ||
	    recv(agent->sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
		return false;
	return pidfd < 0 || readable(pidfd, deadline);
}

/* Asks the agent to leave.  Returns 0 when it has left. */
static int end_asked(struct cl_agent *agent, enum w_admin_verb verb, int pidfd, char *error)
{
	int rc = cl_admin(agent, verb, "", error);

	if (rc == 0 && !gone(agent, pidfd)) {
		snprintf(error, CL_ERROR_MAX, "the agent of host %u did not leave within %d s",
			 agent->welcome.host_id, FAB_END_MS / 1000);
		rc = -ETIMEDOUT;
	}
	return rc;
}

/*
 * Does a service manager hold the socket?  Then it listens for an agent that it has not started
 * yet, or that failed to start, and must not be ended instead of that.
 */
static bool is_manager(pid_t pid)
{
	char path[32], name[16] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	if (fgets(name, sizeof(name), file) == NULL)
		name[0] = '\0';
	fclose(file);
	return strncmp(name, "systemd", 7) == 0;
}

/*
 * Ends the process by signals.  The descriptor was made before the check of the listener, so it is
 * that process, and not another one that got its number.
 */
static int end_signalled(const struct fabric *f, unsigned int host, pid_t pid, int pidfd,
			 char *error)
{
	char why[CL_ERROR_MAX];
	int rc;

	if (cl_listener_pid(f->owner, f->name, host) != pid)
		return 0;
	if (is_manager(pid)) {
		snprintf(error, CL_ERROR_MAX,
			 "the service manager, pid %d, holds the socket of host %u, and no agent "
			 "answers there; stop its socket unit",
			 (int)pid, host);
		return -EBUSY;
	}
	/* It may be stopped; sent later, SIGCONT would disturb a sanitizer's check at the end. */
	pid_signal(pidfd, SIGCONT);
	rc = pid_signal(pidfd, SIGTERM);
	if (rc == 0 && !readable(pidfd, u_deadline_ms(TERM_MS)))
		rc = pid_signal(pidfd, SIGKILL);
	if (rc == 0 && !readable(pidfd, u_deadline_ms(FAB_END_MS)))
		rc = -ETIMEDOUT;
	if (rc == 0 || rc == -ESRCH)
		return 0;
	snprintf(why, sizeof(why), "%s", error);
	snprintf(error, CL_ERROR_MAX, "%.180s; it cannot be ended by a signal: %s", why,
		 strerror(-rc));
	return rc;
}

/* Is this an error of a request other than a refusal? */
static bool beyond_asking(int rc)
{
	return rc == -ETIMEDOUT || rc == -EPIPE || rc == -ENOMEM || rc == -EPROTO ||
	       rc == -EPROTONOSUPPORT;
}

/* Ends an agent after HELLO to it, which had the result `rc` with the text `error`. */
static int end_one(const struct fabric *f, unsigned int host, int rc, struct cl_agent *agent,
		   char *error)
{
	pid_t pid;
	int pidfd;

	if (rc != 0 && !beyond_asking(rc))
		return rc;
	pid = cl_listener_pid(f->owner, f->name, host);
	if (rc == -EPIPE && pid < 0)
		return -ENODEV; /* it has left in the meantime */
	pidfd = pid_watch(pid);
	if (rc == 0)
		rc = end_asked(agent, W_ADMIN_STOP, pidfd, error);
	if (beyond_asking(rc) && pidfd >= 0)
		rc = end_signalled(f, host, pid, pidfd, error);
	if (pidfd >= 0)
		close(pidfd);
	return rc;
}

int fab_stop_host(const struct fabric *f, unsigned int host, char *error)
{
	struct cl_agent agent;
	int rc = cl_open_host(f->owner, f->name, host, W_KIND_TOOL, &agent, error);

	rc = end_one(f, host, rc, &agent, error);
	cl_close(&agent);
	return rc;
}

int fab_leave(struct cl_agent *agent, char *error)
{
	int pidfd = pid_watch(cl_agent_pid(agent));
	int rc = end_asked(agent, W_ADMIN_LEAVE, pidfd, error);

	if (pidfd >= 0)
		close(pidfd);
	return rc;
}

struct ending {
	const struct fabric *f;
	char *error;
	int rc; /* the first error that says something */
	int ended;
};

static int end_visit(void *arg, struct cl_greeted *g)
{
	struct ending *e = arg;
	int rc = end_one(e->f, g->host, g->rc, &g->agent, g->error);

	if (rc == 0) {
		e->ended++;
	} else if (rc != -ENODEV && e->rc == 0) {
		e->rc = rc;
		snprintf(e->error, CL_ERROR_MAX, "%s", g->error);
	}
	return 0;
}

int fab_stop_hosts(const struct fabric *f, unsigned int hosts, char *error)
{
	struct ending e = { .f = f, .error = error };

	cl_greet_all(f->owner, f->name, hosts, end_visit, &e);
	return e.rc != 0 ? e.rc : e.ended;
}
