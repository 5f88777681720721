/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pf_role.h"

/* The server that this command has started. */
struct child {
	pid_t pid;
	int ready; /* read end: a byte when it listens, end of file when it is gone */
};

static void complain(struct pf_run *run, const char *role)
{
	fprintf(stderr, "%s: %s: %s\n", run->cfg->tool->name, role,
		run->ep.cause[0] ? run->ep.cause : "out of memory");
}

static int pin(struct pf_run *run, int cpu)
{
	int rc = cpu < 0 ? 0 : pf_env_pin(cpu);

	return rc ? pf_fail(&run->ep, "--pin %d: %s", cpu, strerror(-rc)) : 0;
}

/* ---- server ---- */

/* Sends the cause to a connected client; returns whether that succeeded. */
static bool tell_client(struct pf_run *run)
{
	struct pf_ctl_msg msg = { 0 };

	if (!run->ctl.vi || atomic_load(&run->ep.lost))
		return false;
	snprintf(msg.text, sizeof(msg.text), "%.239s", run->ep.cause);
	return !pf_ctl_send(&run->ctl, &msg, PF_CTL_FAIL);
}

/* `ready`: a pipe to which a byte is written when a client may come, or -1. */
static int serve(struct pf_config *cfg, int ready)
{
	struct pf_run run = { .cfg = cfg };
	bool told = false;
	int rc = pin(&run, cfg->pin[1]);

	if (!rc)
		rc = pf_server_start(&run);
	if (!rc && ready >= 0 && write(ready, "", 1) != 1)
		rc = pf_fail(&run.ep, "the client is gone");
	if (!rc)
		rc = pf_server_serve(&run);
	if (rc)
		told = tell_client(&run);
	/* For a server started here, the client reports the server's cause or its own. */
	if (rc && (ready < 0 || !(told || run.ep.peer_lost)))
		complain(&run, "server");
	pf_run_close(&run);
	return rc ? PF_EXIT_FAILURE : PF_EXIT_OK;
}

static int start_child(struct pf_config *cfg, struct child *child)
{
	pid_t parent = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fflush(NULL);
	signal(SIGCHLD, SIG_DFL); /* where it is ignored no child can be waited for */
	child->pid = fork();
	if (child->pid < 0)
		return -errno;
	if (!child->pid) {
		close(fds[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(PF_EXIT_FAILURE);
		cfg->host = cfg->hosts[1];
		_exit(serve(cfg, fds[1]));
	}
	close(fds[1]);
	child->ready = fds[0];
	return 0;
}

/* 0 when it listens, -ECHILD when it has ended, -ETIMEDOUT. */
static int await_child(struct child *child, double timeout)
{
	struct pollfd p = { .fd = child->ready, .events = POLLIN };
	char byte;

	if (poll(&p, 1, (int)(timeout * 1000) + 5000) != 1)
		return -ETIMEDOUT;
	return read(child->ready, &byte, 1) == 1 ? 0 : -ECHILD;
}

/* End of file on the pipe shows that the process has ended; one that does not end is killed. */
static int end_child(struct child *child, bool failed, double timeout)
{
	struct pollfd p = { .fd = child->ready, .events = POLLIN };
	int status = 0;

	if (!child->pid)
		return PF_EXIT_OK;
	if (poll(&p, 1, failed ? 500 : (int)(timeout * 1000)) == 0)
		kill(child->pid, SIGKILL);
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	close(child->ready);
	return WIFEXITED(status) ? WEXITSTATUS(status) : PF_EXIT_FAILURE;
}

/* ---- client ---- */

static void read_environment(const struct pf_config *cfg, struct pf_env *env)
{
	size_t i;

	pf_env_read(env, 2, cfg->wait == PF_POLL, cfg->pin[0] >= 0 && cfg->pin[0] == cfg->pin[1]);
	for (i = 0; !cfg->quiet && i < env->warning_count; i++)
		fprintf(stderr, "%s: warning: %s\n", cfg->tool->name, env->warnings[i]);
}

static int measure(struct pf_run *run, struct pf_report *rep, unsigned int *missed)
{
	int rc = pf_hist_init(&run->hist);

	if (!rc)
		rc = pin(run, run->cfg->pin[0]);
	if (!rc)
		rc = pf_client_start(run);
	if (rc)
		return rc;
	if (run->ep.p.window < (run->cfg->window & ~1u) && !run->cfg->quiet)
		fprintf(stderr, "%s: --verify: window %u instead of %u, so that buffers fit\n",
			run->cfg->tool->name, run->ep.p.window, run->cfg->window);
	pf_report_begin(rep, &run->place);
	rc = pf_measure(run, rep, missed);
	return rc ? rc : pf_client_end(run);
}

static int run_client(struct pf_config *cfg, struct pf_report *rep, const struct pf_env *env)
{
	struct pf_run run = { .cfg = cfg };
	unsigned int missed = 0;
	int rc = measure(&run, rep, &missed);

	if (rc) {
		if (run.ep.nic)
			pf_ctl_ask_cause(&run.ctl);
		complain(&run, "client");
	} else {
		rc = pf_report_end(rep, &run.place, env, missed);
	}
	pf_run_close(&run);
	pf_hist_fini(&run.hist);
	return rc || missed ? PF_EXIT_FAILURE : PF_EXIT_OK;
}

static int client_of_child(struct pf_config *cfg, struct pf_report *rep, const struct pf_env *env)
{
	struct child child = { 0 };
	char name[64];
	int rc, server;

	snprintf(name, sizeof(name), "%.24s.%d", cfg->name, (int)getpid());
	cfg->name = name;
	cfg->connect = cfg->hosts[1];
	rc = start_child(cfg, &child);
	if (!rc)
		rc = await_child(&child, cfg->timeout);
	cfg->host = cfg->hosts[0];
	if (rc && rc != -ECHILD)
		fprintf(stderr, "%s: starting the server: %s\n", cfg->tool->name, strerror(-rc));
	rc = rc ? PF_EXIT_FAILURE : run_client(cfg, rep, env);
	server = end_child(&child, rc != PF_EXIT_OK, cfg->timeout);
	return rc ? rc : server;
}

static int client(struct pf_config *cfg)
{
	struct pf_report rep;
	struct pf_env env;
	int rc;

	read_environment(cfg, &env);
	if (pf_report_open(&rep, cfg))
		rc = PF_EXIT_FAILURE;
	else if (cfg->connect)
		rc = run_client(cfg, &rep, &env);
	else
		rc = client_of_child(cfg, &rep, &env);
	pf_report_close(&rep);
	return rc;
}

/* Opens a standard stream that the caller has closed, so that no socket gets its number. */
static void keep_streams(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int pf_main(const struct pf_tool *tool, int argc, char **argv)
{
	struct pf_config cfg;
	int rc;

	keep_streams();
	rc = pf_config_parse(&cfg, tool, argc, argv);
	if (rc < 0) {
		rc = cfg.server ? serve(&cfg, -1) : client(&cfg);
	} else if (rc == PF_EXIT_OK && fflush(stdout)) {
		fprintf(stderr, "%s: writing to standard output: %s\n", tool->name,
			strerror(errno));
		rc = PF_EXIT_FAILURE;
	}
	pf_config_fini(&cfg);
	return rc;
}
