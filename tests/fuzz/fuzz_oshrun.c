/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames that PEs may send to oshrun: any in any order, parts of frames, their end.  The job stays consistent: a PE
 * has made as many exchanges as the job or one more, and one that keeps the rules gets the data that was given.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fz_input.h"
#include "run_conn.h"
#include "run_end.h"

#define PES 3

static struct run_options options = { .np = PES };
static struct run_job job;
static struct run_pe pes[PES];
static int theirs[PES];

void __wrap_run_say(const char *fmt, ...);
void __wrap_run_say(const char *fmt, ...) {}

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void begin(void)
{
	int pair[2], i;

	memset(pes, 0, sizeof(pes));
	job = (struct run_job){ .options = &options,
				.pes = pes,
				.n_pes = PES,
				.n_total = PES,
				.running = PES,
				.id = 1 };
	job.poll = epoll_create1(EPOLL_CLOEXEC);
	job.status_fd = memfd_create("status", MFD_CLOEXEC);
	for (i = 0; i < PES; i++) {
		must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "no sockets");
		pes[i] = (struct run_pe){ .pe = i, .conn = { .sock = pair[0], .control = -1 } };
		theirs[i] = pair[1];
		run_watch(&job, RUN_SOCK, i, pair[0], false);
	}
}

static void end(void)
{
	int i;

	for (i = 0; i < PES; i++) {
		run_conn_close(&pes[i]);
		if (theirs[i] >= 0)
			close(theirs[i]);
	}
	free(job.data);
	close(job.poll);
	close(job.status_fd);
}

static void check(void)
{
	int i;

	for (i = 0; i < PES && !job.ending; i++)
		must(pes[i].conn.exchanges - job.exchanges <= 1,
		     "exchanges of a PE and of the job");
	must(job.given >= 0 && job.given < PES, "an exchange that is complete goes on");
	must(job.given == 0 || job.data != NULL, "data were given to nobody");
}

/* Sends a small frame that may be correct. */
static void send_frame(struct fz_input *in, int pe)
{
	uint8_t data[16];
	enum boot_wire_kind kind = (enum boot_wire_kind)fz_pick(in, 8);
	uint32_t arg = (uint32_t)fz_get(in, 1);
	size_t n = fz_pick(in, sizeof(data));
	struct boot_wire_head head = boot_wire_head(kind, (uint32_t)n, arg);

	n = fz_fill(in, data, n);
	send(theirs[pe], &head, sizeof(head), MSG_NOSIGNAL | MSG_DONTWAIT);
	send(theirs[pe], data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_bytes(struct fz_input *in, int pe)
{
	uint8_t data[256];
	size_t n = fz_get(in, 1);

	n = fz_fill(in, data, n);
	if (n > 0)
		send(theirs[pe], data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Puts another socket in the place of the control socket, which a WELCOME has brought, and sends a message there. */
static void send_control(struct fz_input *in, int pe)
{
	struct {
		struct boot_wire_head head;
		uint8_t data[300];
	} m;
	uint32_t kind = fz_pick(in, 8), arg = (uint32_t)fz_get(in, 1);
	size_t n = fz_get(in, 1);
	int pair[2];

	m.head = boot_wire_head((enum boot_wire_kind)kind, (uint32_t)n, arg);
	n = fz_fill(in, m.data, n);
	if (pes[pe].conn.control < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
		return;
	close(pes[pe].conn.control);
	pes[pe].conn.control = pair[0];
	send(pair[1], &m, sizeof(m.head) + n, MSG_NOSIGNAL | MSG_DONTWAIT);
	run_conn_serve(&job, &pes[pe], RUN_CONTROL);
	close(pair[1]);
}

static void leave(int pe)
{
	if (theirs[pe] >= 0)
		close(theirs[pe]);
	theirs[pe] = -1;
	pes[pe].ended = true;
	run_conn_serve(&job, &pes[pe], RUN_SOCK);
	run_conn_check_ended(&job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_input in = { data, size };
	char sink[4096];
	int pe;

	begin();
	while (in.left > 0) {
		pe = (int)fz_pick(&in, PES);
		switch (fz_pick(&in, 5)) {
		case 0:
			send_frame(&in, pe);
			break;
		case 1:
			send_bytes(&in, pe);
			break;
		case 2:
			send_control(&in, pe);
			break;
		case 3:
			leave(pe);
			break;
		default:
			if (theirs[pe] >= 0)
				recv(theirs[pe], sink, sizeof(sink), MSG_DONTWAIT);
			break;
		}
		run_conn_serve(&job, &pes[pe], RUN_SOCK);
		check();
	}
	end();
	return 0;
}
