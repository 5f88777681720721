/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "run_fabric.h"
#include "run_left.h"
#include "run_loop.h"
#include "run_output.h"
#include "run_report.h"
#include "run_serve.h"
#include "run_sink.h"

/* ---- START ---- */

struct text {
	char *at;
	size_t left;
};

/* Takes the next string, which stays where it is; NULL: there is no more that ends. */
static char *take_string(struct text *t)
{
	char *s = t->at, *end = memchr(s, '\0', t->left);

	if (end == NULL)
		return NULL;
	t->left -= (size_t)(end + 1 - s);
	t->at = end + 1;
	return s;
}

/* Makes the PEs of this machine. 0; -EPROTO: no numbers of PEs of the job, or they do not grow; -ENOMEM. */
static int take_pes(struct run_job *job, struct text *t)
{
	size_t bytes = (size_t)job->n_pes * sizeof(uint32_t);
	uint32_t number;
	int64_t before = -1;
	int i;

	if (t->left < bytes)
		return -EPROTO;
	job->pes = calloc((size_t)job->n_pes, sizeof(*job->pes));
	if (job->pes == NULL)
		return -ENOMEM;
	for (i = 0; i < job->n_pes; i++, before = number) {
		memcpy(&number, t->at + (size_t)i * sizeof(number), sizeof(number));
		if (number <= before || number >= (uint32_t)job->n_total)
			return -EPROTO;
		job->pes[i].pe = (int)number;
		job->pes[i].nth = i;
		job->pes[i].conn.sock = job->pes[i].conn.control = -1;
		job->pes[i].streams[0].fd = job->pes[i].streams[1].fd = -1;
	}
	t->at += bytes;
	t->left -= bytes;
	return 0;
}

/* Takes n strings VAR=VALUE. 0 or -EPROTO. */
static int take_exports(const char **exports, uint32_t n, struct text *t)
{
	for (uint32_t i = 0; i < n; i++) {
		exports[i] = take_string(t);
		if (exports[i] == NULL || strchr(exports[i], '=') == NULL || exports[i][0] == '=')
			return -EPROTO;
	}
	return 0;
}

/* Takes folder, exports and words of a program. 0, -EPROTO or -ENOMEM. */
static int take_app(struct run_app *app, const struct run_wire_app *a, struct text *t)
{
	const char *folder = take_string(t);

	if (folder == NULL || a->words < 1 || a->words > t->left ||
	    a->exports > RUN_APP_EXPORTS_MAX)
		return -EPROTO;
	app->wdir = folder[0] != '\0' ? folder : NULL;
	app->end = (int)a->end;
	if (take_exports(app->exports, a->exports, t) != 0)
		return -EPROTO;
	app->program = calloc((size_t)a->words + 1, sizeof(*app->program));
	if (app->program == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < a->words; i++) {
		app->program[i] = take_string(t);
		if (app->program[i] == NULL)
			return -EPROTO;
	}
	return 0;
}

/* Has each program, of which there is one or more, a PE, and the last one the last PE? */
static bool are_apps(const struct run_wire_app *apps, uint32_t n, uint32_t pes)
{
	for (uint32_t i = 0; i < n; i++) {
		if (apps[i].end <= (i > 0 ? apps[i - 1].end : 0))
			return false;
	}
	return apps[n - 1].end == pes;
}

/* Takes the programs and the strings, which stay in job->start. 0, -EPROTO: not all is there, or more; or -ENOMEM. */
static int take_rest(struct run_job *job, struct run_options *o, const struct run_wire_start *s,
		     struct text *t)
{
	size_t bytes = s->apps * sizeof(struct run_wire_app);
	struct run_wire_app apps[RUN_APPS_MAX];
	const char *machine;
	int rc;

	if (t->left < bytes)
		return -EPROTO;
	memcpy(apps, t->at, bytes);
	t->at += bytes;
	t->left -= bytes;
	machine = take_string(t);
	if (!are_apps(apps, s->apps, s->pes) || machine == NULL)
		return -EPROTO;
	for (int i = 0; i < job->n_pes; i++)
		job->pes[i].machine = machine;
	rc = take_exports(o->exports, s->exports, t);
	for (o->n_apps = 0; o->n_apps < (int)s->apps && rc == 0; o->n_apps++)
		rc = take_app(&o->apps[o->n_apps], &apps[o->n_apps], t);
	return rc != 0 || t->left == 0 ? rc : -EPROTO;
}

int run_serve_start(struct run_job *job, struct run_options *o, struct run_link *l)
{
	struct run_wire_start s;
	struct text t;
	int rc;

	if (l->head.kind != RUN_WIRE_START || l->head.bytes < sizeof(s))
		return -EPROTO;
	memcpy(&s, l->data, sizeof(s));
	t.at = l->data + sizeof(s);
	t.left = l->head.bytes - sizeof(s);
	job->start = l->data;
	l->data = NULL;
	if (s.job == 0 || s.pes > BOOT_WIRE_PES_MAX || s.here < 1 || s.here > s.pes ||
	    s.exports > RUN_EXPORTS_MAX || s.apps < 1 || s.apps > RUN_APPS_MAX ||
	    run_options_bind(o, s.bind, s.map_by) != 0)
		return -EPROTO;
	job->id = s.job;
	job->n_total = o->np = (int)s.pes;
	job->n_pes = (int)s.here;
	rc = take_pes(job, &t);
	return rc == 0 ? take_rest(job, o, &s, &t) : rc;
}

/*
 * Makes a connection of standard input and output, which are for it alone from now on. NULL: no memory or
 * descriptors.
 */
static struct run_link *take_standard(void)
{
	int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (in < 0 || out < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0)
		return NULL;
	close(null);
	fcntl(in, F_SETFL, fcntl(in, F_GETFL) & ~O_NONBLOCK);
	/* For no PEs: before START a RESULT, whose length goes by them, is refused. */
	return run_link_create(in, out, false, 0);
}

/* Waits until something arrives. False: a signal has, which stays to be read. */
static bool await(int in, int signals)
{
	struct pollfd fds[] = { { .fd = in, .events = POLLIN },
				{ .fd = signals, .events = POLLIN } };

	return poll(fds, 2, -1) < 0 || (fds[1].revents & POLLIN) == 0;
}

int run_serve_begin(struct run_job *job, struct run_options *o, int signals)
{
	int rc;

	if (isatty(STDIN_FILENO) || isatty(STDOUT_FILENO)) {
		run_say("--serve is for oshrun, not for a terminal; see --help");
		return EXIT_USAGE;
	}
	job->options = o;
	job->up = take_standard();
	if (job->up == NULL) {
		run_say("--serve: no memory or descriptors");
		return EXIT_FAIL;
	}
	run_sink_up(job->up->out);
	run_up_send(job, RUN_WIRE_HELLO, 0, NULL, 0, NULL, 0);
	do {
		rc = await(job->up->in, signals) ? run_link_pull(job->up) : -ECONNRESET;
	} while (rc == -EAGAIN || rc == 0);
	if (rc == 1 && job->up->head.kind == RUN_WIRE_SIGNAL)
		rc = -ECONNRESET; /* the job has ended before its start */
	else if (rc == 1)
		rc = run_serve_start(job, o, job->up);
	if (rc == -ECONNRESET)
		return EXIT_FAIL;
	if (rc != 0) {
		run_say("--serve: what arrives does not come from oshrun: %s", strerror(-rc));
		return EXIT_FAIL;
	}
	job->up->pes = (uint32_t)job->n_total;
	fcntl(job->up->in, F_SETFL, fcntl(job->up->in, F_GETFL) | O_NONBLOCK);
	return EXIT_OK;
}

/* ---- the PEs ---- */

/* Tells the oshrun that has the job the process of each PE; without memory that connection counts as lost. */
static void tell_started(struct run_job *job)
{
	uint32_t *pids = calloc((size_t)job->n_pes, sizeof(*pids));
	int i;

	if (pids == NULL) {
		job->up_lost = true;
		return;
	}
	for (i = 0; i < job->n_pes; i++)
		pids[i] = (uint32_t)job->pes[i].pid;
	run_up_send(job, RUN_WIRE_STARTED, 0, pids, sizeof(*pids) * (size_t)job->n_pes, NULL, 0);
	free(pids);
}

void run_serve(struct run_job *job, const struct run_heritage *h, int signals)
{
	static struct run_fabric none;

	job->sample_at = run_now() + RUN_SAMPLE_NS;
	run_spawn(job, h);
	tell_started(job);
	if (run_watch(job, RUN_UP, 0, job->up->in, false) != 0)
		job->up_lost = true;
	run_loop(job, &none, signals);
	run_left_end(signals);
	run_output_end(job);
	run_up_send(job, RUN_WIRE_BYE, 0, NULL, 0, NULL, 0);
	run_loop_flush(job, &none, signals);
}
