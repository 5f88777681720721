/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that a launcher may send to a PE: the answers of oshrun, with or without descriptors, those of PMI-1, and
 * the texts of both.  A PE that joins has a valid number in the job.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "boot_back.h"
#include "boot_pmi1_text.h"
#include "boot_wire.h"
#include "fz_input.h"

#define EXCHANGE 8
#define ALL_MAX ((1 << 20) * EXCHANGE)

static char all[ALL_MAX];

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void set_number(const char *name, unsigned long value, const char *rest)
{
	char text[64];

	snprintf(text, sizeof(text), "%lu%s", value, rest);
	setenv(name, text, 1);
}

/* Joins.  Everything that the launcher sends is in the socket before the PE starts. */
static void join(const struct boot_back *back)
{
	char error[BOOT_TEXT_MAX] = "", mine[EXCHANGE] = "";
	struct boot_job job = { .pe = -1 };

	if (back->start(&job, error) != 0) {
		must(error[0] != '\0' && memchr(error, 0, sizeof(error)) != NULL,
		     "no reason is given");
		return;
	}
	must(job.pe >= 0 && job.pe < job.n_pes, "a place outside the job");
	if ((size_t)job.n_pes * EXCHANGE <= ALL_MAX && back->barrier() == 0)
		back->exchange(mine, EXCHANGE, all);
	back->finish();
}

static void send_with(int to, const void *data, size_t bytes, const int *fds, unsigned int count)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = { .room = { 0 } };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (count > 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
	}
	sendmsg(to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void of_oshrun(struct fz_input *in, const int pair[2])
{
	int fds[2], control[2];
	unsigned int count = fz_pick(in, 3);
	struct stat st;
	char rest[32];

	fds[0] = memfd_create("status", MFD_CLOEXEC);
	must(ftruncate(fds[0], BOOT_WIRE_STATUS_STRIDE) == 0, "no file");
	must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, control) == 0, "no sockets");
	fds[1] = control[1];
	fstat(pair[1], &st);
	snprintf(rest, sizeof(rest), ":%lu", (unsigned long)st.st_ino);
	set_number(BOOT_WIRE_VARIABLE, (unsigned long)pair[1], rest);
	if (in->left > 0)
		send_with(pair[0], in->at, in->left, fds, count);
	shutdown(pair[0], SHUT_WR);
	join(&boot_local);
	/* The PE has left, or has none: closing this end kills nobody. */
	close(control[1]);
	close(control[0]);
	close(fds[0]);
}

/* The sockets keep message boundaries, so a line is received at a time, as from a launcher that answers. */
static void of_pmi1(struct fz_input *in, const int pair[2])
{
	char line[256];
	size_t n;

	set_number("PMI_FD", (unsigned long)pair[1], "");
	set_number("PMI_SIZE", 1 + fz_pick(in, 4), "");
	setenv("PMI_RANK", "0", 1);
	while (in->left > 0) {
		n = fz_get(in, 1);
		n = fz_fill(in, line, n < sizeof(line) ? n : sizeof(line));
		if (n > 0)
			send(pair[0], line, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	shutdown(pair[0], SHUT_WR);
	join(&boot_pmi1);
}

static void of_texts(struct fz_input *in)
{
	char *text = calloc(1, in->left + 1), value[32];
	unsigned char bytes[8], again[8];
	char hex[17];
	uint64_t inode;
	unsigned int number;
	int fd;

	fz_fill(in, text, in->left);
	if (boot_wire_variable(text, &fd, &inode) == 0)
		must(fd >= 0, "a negative descriptor");
	if (boot_pmi1_value(text, "kvsname_max", value, sizeof(value)) == 0)
		must(strchr(value, ' ') == NULL && strstr(text, value) != NULL, "another value");
	if (boot_pmi1_number(text, "vallen_max", 1000, &number) == 0)
		must(number <= 1000, "a number beyond its limit");
	boot_pmi1_answer(text, "maxes");
	if (boot_pmi1_from_hex(text, bytes, sizeof(bytes)) == 0) {
		boot_pmi1_to_hex(bytes, sizeof(bytes), hex);
		must(boot_pmi1_from_hex(hex, again, sizeof(again)) == 0 &&
			     memcmp(bytes, again, sizeof(bytes)) == 0 && strcmp(hex, text) == 0,
		     "digits changed");
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_input in = { data, size };
	uint32_t what = fz_pick(&in, 3);
	int pair[2];

	if (what == 2) {
		of_texts(&in);
		return 0;
	}
	must(socketpair(AF_UNIX, what == 0 ? SOCK_STREAM : SOCK_SEQPACKET, 0, pair) == 0,
	     "no sockets");
	if (what == 0)
		of_oshrun(&in, pair);
	else
		of_pmi1(&in, pair);
	close(pair[0]);
	close(pair[1]);
	return 0;
}
