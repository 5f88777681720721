/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire between two oshruns, at either end: any frames in any order, parts of frames, their end.  The one on another
 * machine (--serve) starts only programs of a correct START; the one that has the job keeps a consistent state.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fz_input.h"
#include "run_conn.h"
#include "run_far.h"
#include "run_heard.h"
#include "run_judge.h"
#include "run_output.h"
#include "run_serve.h"
#include "run_told.h"

#define PES 3
#define FARS 2

static const int far_pes[PES] = { 0, 2, 1 }; /* 0 and 2 are on one machine, 1 is on the other */
static const int far_counts[FARS] = { 2, 1 };
static char word[] = "program";
static char *program[] = { word, NULL };
static struct run_options options;
static struct run_job job;
static struct run_pe pes[PES];
static struct run_far fars[FARS];
static int theirs[FARS];
static int of_pe[PES]; /* sockets of the PEs of --serve */

void __wrap_run_say(const char *fmt, ...);
void __wrap_run_say(const char *fmt, ...) {}

/* Output of PEs goes to standard output and error, which are those of the fuzzer. */
ssize_t __real_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes)
{
	return fd == STDOUT_FILENO || fd == STDERR_FILENO ? (ssize_t)bytes
							  : __real_write(fd, data, bytes);
}

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static int connect_pair(int i)
{
	int pair[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0, "no sockets");
	theirs[i] = pair[1];
	return pair[0];
}

static void begin(void)
{
	signal(SIGPIPE, SIG_IGN); /* as oshrun does */
	options = (struct run_options){
		.np = PES, .rsh = "ssh", .apps = { { .end = PES, .program = program } }, .n_apps = 1
	};
	job = (struct run_job){ .options = &options, .n_total = PES, .id = 1 };
	job.poll = epoll_create1(EPOLL_CLOEXEC);
	job.status_fd = memfd_create("status", MFD_CLOEXEC);
	theirs[0] = theirs[1] = of_pe[0] = of_pe[1] = of_pe[2] = -1;
}

static void end(void)
{
	int i;

	for (i = 0; i < FARS; i++) {
		if (theirs[i] >= 0)
			close(theirs[i]);
	}
	free(job.data);
	close(job.poll);
	close(job.status_fd);
}

/* ---- frames that arrive ---- */

static void send_bytes(struct fz_input *in, int to)
{
	uint8_t data[256];
	size_t n = fz_get(in, 1);

	n = fz_fill(in, data, n);
	if (n > 0)
		send(theirs[to], data, n, MSG_NOSIGNAL);
}

/* Sends a frame that may be correct. */
static void send_frame(struct fz_input *in, int to)
{
	enum run_wire_kind kind = (enum run_wire_kind)fz_pick(in, RUN_WIRE_ALIVE + 2);
	uint32_t arg = (uint32_t)fz_get(in, 1);
	uint8_t data[256] = { 0 };
	size_t n = fz_get(in, 1);
	struct run_wire_head head = run_wire_head(kind, arg, (uint32_t)n);

	fz_fill(in, data, n);
	send(theirs[to], &head, sizeof(head), MSG_NOSIGNAL);
	if (n > 0)
		send(theirs[to], data, n, MSG_NOSIGNAL);
}

static void act(struct fz_input *in, int to)
{
	char sink[4096];

	if (theirs[to] < 0)
		return;
	switch (fz_pick(in, 4)) {
	case 0:
		send_bytes(in, to);
		break;
	case 1:
		close(theirs[to]);
		theirs[to] = -1;
		break;
	case 2:
		recv(theirs[to], sink, sizeof(sink), 0);
		break;
	default:
		send_frame(in, to);
		break;
	}
}

/* ---- oshrun --serve ---- */

static uint32_t start_bytes;

static bool is_inside(const char *s)
{
	return s >= job.start && s < job.start + start_bytes &&
	       memchr(s, '\0', start_bytes - (size_t)(s - job.start)) != NULL;
}

static void check_app(const struct run_app *app)
{
	int i;

	must(app->program[0] != NULL, "a start of nothing");
	for (i = 0; app->program[i] != NULL; i++)
		must(is_inside(app->program[i]), "a word that does not end");
	for (i = 0; i < RUN_APP_EXPORTS_MAX && app->exports[i] != NULL; i++)
		must(is_inside(app->exports[i]), "a variable that does not end");
}

static void check_start(void)
{
	int i;

	must(job.id != 0 && job.n_pes >= 1 && job.n_pes <= job.n_total &&
		     job.n_total <= (int)BOOT_WIRE_PES_MAX,
	     "a start of no job");
	for (i = 0; i < job.n_pes; i++) {
		must(job.pes[i].pe > (i > 0 ? job.pes[i - 1].pe : -1) &&
			     job.pes[i].pe < job.n_total,
		     "a PE that is not of the job");
		must(is_inside(job.pes[i].machine), "a machine without a name");
	}
	must(options.n_apps >= 1 && options.apps[options.n_apps - 1].end == job.n_total,
	     "PEs without a program");
	for (i = 0; i < options.n_apps; i++)
		check_app(&options.apps[i]);
	for (i = 0; i < RUN_EXPORTS_MAX && options.exports[i] != NULL; i++)
		must(is_inside(options.exports[i]), "a variable that does not end");
}

static void get_ready(void)
{
	int i, pair[2];

	job.up->pes = (uint32_t)job.n_total;
	must(run_watch(&job, RUN_UP, 0, job.up->in, false) == 0, "no epoll");
	for (i = 0; i < job.n_pes && i < PES; i++) {
		must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0, "no sockets");
		job.pes[i].conn.sock = pair[0];
		of_pe[i] = pair[1];
	}
}

/* Each PE that is connected joins, or gives a few bytes to the exchange. */
static void give(void)
{
	char sink[4096];
	uint64_t data = 1;
	int i;

	for (i = 0; i < job.n_pes && i < PES; i++) {
		struct run_pe *pe = &job.pes[i];
		struct boot_wire_head head = boot_wire_head(BOOT_WIRE_JOIN, 0, 0);

		if (pe->state == RUN_JOINED)
			head = boot_wire_head(BOOT_WIRE_EXCHANGE, sizeof(data), pe->conn.exchanges);
		send(of_pe[i], &head, sizeof(head), MSG_NOSIGNAL);
		if (pe->state == RUN_JOINED)
			send(of_pe[i], &data, sizeof(data), MSG_NOSIGNAL);
		run_conn_serve(&job, pe, RUN_SOCK);
		while (recv(of_pe[i], sink, sizeof(sink), 0) > 0)
			;
	}
}

/* Sends a correct RESULT. */
static void send_result(void)
{
	static const uint8_t zeros[PES * sizeof(uint64_t)];
	uint64_t bytes = (uint64_t)job.part * (uint64_t)job.n_total;
	struct run_wire_head head = run_wire_head(RUN_WIRE_RESULT, job.exchanges, (uint32_t)bytes);
	uint32_t before = job.exchanges;
	bool waits = job.given == job.n_pes && !job.ending && job.up->got == 0;

	if (bytes > sizeof(zeros) || theirs[0] < 0)
		return;
	send(theirs[0], &head, sizeof(head), MSG_NOSIGNAL);
	send(theirs[0], zeros, bytes, MSG_NOSIGNAL);
	run_told(&job);
	must(!waits || job.exchanges == before + 1, "a result that was waited for is delivered");
}

static void serve_started(struct fz_input *in)
{
	while (in->left > 0 && !job.up_lost) {
		switch (fz_pick(in, 4)) {
		case 0:
			give();
			break;
		case 1:
			send_result();
			break;
		default:
			act(in, 0);
			run_told(&job);
			break;
		}
		must(job.given >= 0 && job.given <= job.n_pes, "more data than PEs");
	}
}

static void end_serving(void)
{
	int i;

	for (i = 0; job.pes != NULL && i < job.n_pes; i++)
		run_conn_close(&job.pes[i]);
	for (i = 0; i < PES; i++) {
		if (of_pe[i] >= 0)
			close(of_pe[i]);
	}
	free(job.pes);
	free(job.start);
	for (i = 0; i < RUN_APPS_MAX; i++)
		free(options.apps[i].program);
	run_link_destroy(job.up);
}

static void serve(struct fz_input *in)
{
	int rc = 0;

	options.apps[0].program = NULL;
	job.up =
		run_link_create(connect_pair(0), open("/dev/null", O_WRONLY | O_CLOEXEC), false, 0);
	while (in->left > 0 && rc == 0) {
		act(in, 0);
		do {
			rc = run_link_pull(job.up);
		} while (rc == -EAGAIN);
	}
	start_bytes = job.up->head.bytes;
	if (rc == 1 && run_serve_start(&job, &options, job.up) == 0) {
		check_start();
		get_ready();
		serve_started(in);
	}
	end_serving();
}

/* ---- the oshrun that has the job ---- */

static void begin_job(void)
{
	int i, at = 0;

	memset(pes, 0, sizeof(pes));
	job.pes = pes;
	job.n_pes = job.running = PES;
	job.fars = fars;
	job.n_fars = FARS;
	for (i = 0; i < FARS; i++) {
		int fd = connect_pair(i);

		fars[i] = (struct run_far){ .index = i,
					    .machine = i == 0 ? "here" : "there",
					    .n_pes = far_counts[i],
					    .pes = &far_pes[at] };
		fars[i].link = run_link_create(fd, fd, true, (uint32_t)far_counts[i]);
		must(run_watch(&job, RUN_FAR, i, fd, false) == 0, "no epoll");
		for (; fars[i].n_pes > at - (int)(fars[i].pes - far_pes); at++) {
			pes[far_pes[at]].far = &fars[i];
			pes[far_pes[at]].machine = fars[i].machine;
		}
	}
	for (i = 0; i < PES; i++) {
		pes[i].pe = i;
		pes[i].conn.sock = pes[i].conn.control = -1;
		pes[i].streams[0].fd = pes[i].streams[1].fd = -1;
		pes[i].far_status = calloc(1, sizeof(*pes[i].far_status));
	}
}

static void check_job(void)
{
	int i, running = 0;

	for (i = 0; i < PES; i++) {
		running += !pes[i].ended;
		must(pes[i].ended || pes[i].far->link != NULL, "a PE of a machine that is gone");
		must(job.ending || pes[i].conn.exchanges - job.exchanges <= 1,
		     "exchanges of a PE and of the job");
		must(pes[i].far_pid >= 0, "a process that kill() would take for a group");
	}
	must(running == job.running, "how many PEs run");
	must(job.given >= 0 && job.given < PES, "an exchange that is complete goes on");
	must(job.exit_status >= 0 && job.exit_status <= 255, "an exit status that is none");
}

static void end_job(void)
{
	int i;

	run_output_end(&job);
	for (i = 0; i < PES; i++) {
		run_conn_close(&pes[i]);
		free(pes[i].far_status);
	}
	for (i = 0; i < FARS; i++)
		run_link_destroy(fars[i].link);
}

static void have_job(struct fz_input *in)
{
	int to;

	options.tag = fz_pick(in, 2) != 0;
	begin_job();
	while (in->left > 0) {
		to = (int)fz_pick(in, FARS);
		act(in, to);
		run_heard(&job, &fars[to]);
		run_judge_all(&job);
		check_job();
	}
	end_job();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_input in = { data, size };

	begin();
	if (fz_pick(&in, 2) == 0)
		serve(&in);
	else
		have_job(&in);
	end();
	return 0;
}
