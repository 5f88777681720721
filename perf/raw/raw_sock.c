/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets: Unix stream and TCP over the loopback, polled and blocking. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw.h"

/* A broken pair ends the process; the parent reports it. */
static void check(ssize_t n)
{
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		_exit(1);
	if (n < 0)
		raw_pause();
}

static void send_all(int fd, const uint8_t *p, size_t len, int flags)
{
	while (len) {
		ssize_t n = send(fd, p, len, flags | MSG_NOSIGNAL);

		check(n);
		p += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

static void recv_all(int fd, uint8_t *p, size_t len, int flags)
{
	while (len) {
		ssize_t n = recv(fd, p, len, flags);

		check(n);
		p += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

static void trip_lead(struct raw_job *job, uint64_t count, int flags)
{
	while (count--) {
		send_all(job->fd[0], job->own, job->size, flags);
		recv_all(job->fd[0], job->own, job->size, flags);
	}
}

static void trip_follow(struct raw_job *job, uint64_t count, int flags)
{
	while (count--) {
		recv_all(job->fd[1], job->own, job->size, flags);
		send_all(job->fd[1], job->own, job->size, flags);
	}
}

static void polled_lead(struct raw_job *job, uint64_t count)
{
	trip_lead(job, count, MSG_DONTWAIT);
}

static void polled_follow(struct raw_job *job, uint64_t count)
{
	trip_follow(job, count, MSG_DONTWAIT);
}

static void blocking_lead(struct raw_job *job, uint64_t count)
{
	trip_lead(job, count, 0);
}

static void blocking_follow(struct raw_job *job, uint64_t count)
{
	trip_follow(job, count, 0);
}

/* The end of a batch is the answer to its last byte. */
static void flow_lead(struct raw_job *job, uint64_t count)
{
	uint8_t end;

	while (count--)
		send_all(job->fd[0], job->own, job->size, MSG_DONTWAIT);
	recv_all(job->fd[0], &end, 1, MSG_DONTWAIT);
}

static void flow_follow(struct raw_job *job, uint64_t count)
{
	while (count--)
		recv_all(job->fd[1], job->own, job->size, MSG_DONTWAIT);
	send_all(job->fd[1], job->own, 1, MSG_DONTWAIT);
}

static int failed(const char *what)
{
	int err = errno;

	fprintf(stderr, "vi_raw: %s: %s\n", what, strerror(err));
	return -err;
}

static int unix_pair(int fd[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return failed("a pair of Unix sockets");
	return 0;
}

static int listen_local(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET };
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0)
		return -1;
	if (bind(fd, (void *)addr, sizeof(*addr)) || listen(fd, 1) ||
	    getsockname(fd, (void *)addr, &len)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int tcp_pair(int fd[2])
{
	struct sockaddr_in addr;
	int on = 1, l = listen_local(&addr);

	if (l < 0)
		return failed("listening on the loopback");
	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd[0] >= 0 && !connect(fd[0], (void *)&addr, sizeof(addr)))
		fd[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	close(l);
	if (fd[1] < 0)
		return failed("connecting over the loopback");
	setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return 0;
}

static int emit_pair(const struct raw_config *cfg, raw_emit emit, struct raw_job job,
		     int (*open_pair)(int fd[2]))
{
	int fd[2] = { -1, -1 }, rc = open_pair(fd);

	job.fd[0] = fd[0];
	job.fd[1] = fd[1];
	if (!rc)
		rc = emit(cfg, &job);
	if (fd[0] >= 0)
		close(fd[0]);
	if (fd[1] >= 0)
		close(fd[1]);
	return rc;
}

static int emit_size(const struct raw_config *cfg, raw_emit emit, const char *test,
		     int (*open_pair)(int fd[2]), uint64_t size)
{
	struct raw_job job = { .test = test,
			       .variant = "polled",
			       .side = { polled_lead, polled_follow },
			       .unit = RAW_HALF_TRIP,
			       .size = size };
	int rc = emit_pair(cfg, emit, job, open_pair);

	job.variant = "blocking";
	job.side[0] = blocking_lead;
	job.side[1] = blocking_follow;
	if (!rc)
		rc = emit_pair(cfg, emit, job, open_pair);
	job.variant = "stream, polled";
	job.side[0] = flow_lead;
	job.side[1] = flow_follow;
	job.unit = RAW_BANDWIDTH;
	return rc ? rc : emit_pair(cfg, emit, job, open_pair);
}

static int emit_sizes(const struct raw_config *cfg, raw_emit emit, const char *test,
		      int (*open_pair)(int fd[2]))
{
	static const uint64_t usual[] = { 4, 64, 1024, 4096, 65536, 1048576 };
	const uint64_t *sizes = cfg->sizes ? cfg->sizes : usual;
	size_t n = cfg->sizes ? cfg->size_count : 6, i;
	int rc = 0;

	for (i = 0; !rc && i < n; i++) {
		if (sizes[i])
			rc = emit_size(cfg, emit, test, open_pair, sizes[i]);
	}
	return rc;
}

int raw_test_unix(const struct raw_config *cfg, raw_emit emit)
{
	return emit_sizes(cfg, emit, "unix", unix_pair);
}

int raw_test_tcp(const struct raw_config *cfg, raw_emit emit)
{
	return emit_sizes(cfg, emit, "tcp", tcp_pair);
}
