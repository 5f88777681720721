/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * oshrun: runs a program as the PEs of a job.
 *
 * It has the hosts of the job started (run_fabric.c), then starts the PEs (run_spawn.c), gives each
 * what it asks of its launcher (run_conn.c), hears that it has ended (run_loop.c), and decides how the job ends
 * (run_judge.c, run_end.c).
 * On other machines it has itself started by a remote shell (run_far.c): there it serves (run_serve.c) this one,
 * which hears of the PEs there (run_heard.c) and has their launcher told (run_told.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "run_command.h"
#include "run_conn.h"
#include "run_end.h"
#include "run_fabric.h"
#include "run_far.h"
#include "run_job.h"
#include "run_left.h"
#include "run_loop.h"
#include "run_output.h"
#include "run_place.h"
#include "run_report.h"
#include "run_serve.h"
#include "run_sink.h"
#include "run_spawn.h"
#include "u_option.h"

/* Opens what is closed of the numbers up to 2, so that no socket gets one. */
static void open_standard(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Raises the limit of descriptors to the most allowed; *before: what it was. Each PE takes up to four of them here. */
static void raise_files(struct rlimit *before)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, before) != 0)
		return;
	most = *before;
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

/*
 * Blocks the signals that oshrun reads; *before: what was blocked. A signal that the caller ignores stays ignored,
 * but for SIGQUIT: it asks for a report only, and shells ignore it for jobs in the background. SIGPIPE and SIGXFSZ are
 * ignored from now on. Returns a signalfd, which does not block, or -errno.
 */
static int take_signals(sigset_t *before)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
	struct sigaction old;
	sigset_t mine;
	size_t i;
	int fd;

	sigemptyset(&mine);
	sigaddset(&mine, SIGCHLD);
	sigaddset(&mine, SIGQUIT);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaddset(&mine, numbers[i]);
	}
	signal(SIGCHLD, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file that is too large is an error that is told */
	sigprocmask(SIG_BLOCK, &mine, before);
	fd = signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd >= 0 ? fd : -errno;
}

/*
 * Makes the file of the statuses, and maps it. 0 or -errno. No PE can make the file shorter, which would have this
 * process killed.
 */
static int make_statuses(struct run_job *job)
{
	size_t bytes = (size_t)job->n_total * BOOT_WIRE_STATUS_STRIDE;
	void *at;

	job->status_fd = memfd_create("oshrun", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (job->status_fd < 0 || ftruncate(job->status_fd, (off_t)bytes) != 0 ||
	    fcntl(job->status_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return -errno;
	at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, job->status_fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	job->status = at;
	return 0;
}

/* Makes the PEs, and says where each is to run. 0 or -ENOMEM. */
static int make_pes(struct run_job *job)
{
	int i;

	job->pes = calloc((size_t)job->n_pes, sizeof(*job->pes));
	if (job->pes == NULL)
		return -ENOMEM;
	for (i = 0; i < job->n_pes; i++) {
		job->pes[i].pe = i;
		job->pes[i].host = run_place_host(job->options, i);
		job->pes[i].conn.sock = job->pes[i].conn.control = -1;
		job->pes[i].nth = i;
		job->pes[i].streams[0].fd = job->pes[i].streams[1].fd = -1;
	}
	return job->options->far ? run_far_prepare(job) : 0;
}

/* Makes what a job has in addition to its PEs: statuses, its name, the epoll with sinks and signals. 0 or -errno. */
static int make_rest(struct run_job *job, int signals)
{
	int rc = make_statuses(job);

	if (rc == 0)
		rc = run_left_begin();
	if (rc != 0)
		return rc;
	job->poll = epoll_create1(EPOLL_CLOEXEC);
	if (job->poll < 0)
		return -errno;
	rc = run_watch(job, RUN_WRITTEN, 0, run_sink_event(), false);
	return rc == 0 ? run_watch(job, RUN_SIGNAL, 0, signals, false) : rc;
}

/* Fills the job by the options. 0 or -errno. */
static int make_job(struct run_job *job, const struct run_options *o, int signals)
{
	int rc;

	job->options = o;
	job->n_pes = job->n_total = o->np;
	do {
		if (getrandom(&job->id, sizeof(job->id), 0) != (ssize_t)sizeof(job->id))
			return -EIO;
	} while (job->id == 0);
	rc = make_pes(job);
	return rc == 0 ? make_rest(job, signals) : rc;
}

/* Closes the connections of PEs, and frees PEs, machines and data of the job. */
static void end_job(struct run_job *job)
{
	int i;

	for (i = 0; i < job->n_pes; i++)
		run_conn_close(&job->pes[i]);
	free(job->data);
	run_far_free(job);
	free(job->pes);
}

/*
 * Starts the hosts, or checks that those of --fabric run. 0, or the exit status of oshrun. Does nothing for a job on
 * several machines: it uses the hosts that they are.
 */
static int make_hosts(const struct run_job *job, struct run_fabric *fabric)
{
	const struct run_options *o = job->options;

	if (o->far)
		return EXIT_OK;
	return o->fabric != NULL ? run_fabric_check(fabric, o->fabric) : run_fabric_up(fabric, o);
}

/*
 * Runs the PEs that another oshrun asks for, until all have ended.  Returns 0 whatever their statuses, which are sent
 * to that one, or the exit status of an oshrun that could not start them.
 */
static int serve(struct run_job *job, struct run_options *o, const struct run_heritage *h,
		 int signals)
{
	int rc = run_serve_begin(job, o, signals);

	if (rc != EXIT_OK)
		return rc;
	rc = make_rest(job, signals);
	if (rc != 0) {
		run_end(job, EXIT_FAIL, "%s: the job cannot be prepared: %s", job->pes[0].machine,
			run_error(-rc));
		return EXIT_FAIL;
	}
	run_serve(job, h, signals);
	return EXIT_OK;
}

/* Runs the job from its hosts to its end, and returns its exit status. */
static int run(struct run_job *job, struct run_heritage *h, int signals)
{
	const struct run_options *o = job->options;
	static struct run_fabric fabric;
	int rc;

	if (o->timeout > 0)
		job->limit_at = run_now() + (int64_t)(o->timeout * 1e9);
	fabric.signals = signals;
	fabric.limit_at = job->limit_at;
	rc = make_hosts(job, &fabric);
	if (rc != EXIT_OK)
		return rc;
	h->fabric = o->fabric != NULL ? o->fabric : fabric.up ? fabric.name : NULL;
	job->sample_at = run_now() + RUN_SAMPLE_NS;
	run_far_start(job);
	run_spawn(job, h);
	run_loop(job, &fabric, signals);
	run_left_end(signals);
	run_output_end(job);
	run_loop_flush(job, &fabric, signals);
	end_job(job);
	rc = job->exit_status;
	run_fabric_down(&fabric);
	return rc;
}

/* Does what the options say, and returns the exit status. */
static int act(struct run_options *options)
{
	static struct run_heritage heritage;
	static struct run_job job = { .starts = -1 };
	int rc, signals;

	raise_files(&heritage.files);
	signals = take_signals(&heritage.mask);
	if (signals >= 0 && options->serve)
		return serve(&job, options, &heritage, signals);
	rc = signals < 0 ? signals : make_job(&job, options, signals);
	if (rc != 0) {
		run_say("the job cannot be prepared: %s", run_error(-rc));
		return EXIT_FAIL;
	}
	return run(&job, &heritage, signals);
}

int main(int argc, char **argv)
{
	static struct run_options options;
	int rc;

	open_standard();
	rc = run_command_parse(argc, argv, &options);
	if (rc != U_OPTION_GO_ON)
		return rc;
	rc = act(&options);
	run_sink_finish(RUN_END_MS);
	return rc;
}
