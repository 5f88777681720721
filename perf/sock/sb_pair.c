/* SPDX-License-Identifier: BSD-2-Clause */
/* The client of one connection, and of one after the other. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "sb.h"

struct pair {
	const struct sb_options *options;
	int fd;
	size_t size;
	char *buffer;
};

/* The order and the first exchange, after which the server is awake, do not count. */
static int64_t trips(void *context, uint64_t count)
{
	struct pair *pair = context;
	bool polled = pair->options->polled;
	int64_t began;

	sb_order(pair->fd, SB_PINGPONG, polled, pair->size, count + 1);
	sb_exchange(pair->fd, pair->buffer, pair->size, polled);
	began = sb_now_ns();
	while (count--)
		sb_exchange(pair->fd, pair->buffer, pair->size, polled);
	return sb_now_ns() - began;
}

/* All pieces, until the server says that it has them. */
static int64_t pieces(void *context, uint64_t count)
{
	struct pair *pair = context;
	bool polled = pair->options->polled;
	int64_t began = sb_now_ns();
	char byte;

	sb_order(pair->fd, SB_STREAM, polled, pair->size, count);
	while (count--)
		sb_send(pair->fd, pair->buffer, pair->size, polled);
	if (!sb_recv(pair->fd, &byte, 1, polled))
		sb_refuse("the server ended the connection");
	return sb_now_ns() - began;
}

static int64_t short_ones(void *context, uint64_t count)
{
	struct pair *pair = context;
	int64_t began;
	int fd;

	sb_order(pair->fd, SB_CONNECT, false, SB_SMALL, count);
	began = sb_now_ns();
	while (count--) {
		fd = sb_connect(pair->options->connect);
		sb_exchange(fd, pair->buffer, SB_SMALL, false);
		close(fd);
	}
	return sb_now_ns() - began;
}

void sb_pingpong(const struct sb_options *options, int fd)
{
	struct pair pair = { .options = options, .fd = fd, .buffer = sb_memory(SB_MAX_SIZE) };
	int i;

	for (i = 0; i < options->size_count; i++) {
		pair.size = options->sizes[i];
		sb_say(options, "pingpong", pair.size, "ns", sb_median(options, trips, &pair) / 2);
	}
	free(pair.buffer);
}

void sb_stream(const struct sb_options *options, int fd)
{
	struct pair pair = { .options = options, .fd = fd, .buffer = sb_memory(SB_MAX_SIZE) };
	int i;

	for (i = 0; i < options->size_count; i++) {
		pair.size = options->sizes[i];
		sb_say(options, "stream", pair.size, "bytes/s",
		       (double)pair.size * 1e9 / sb_median(options, pieces, &pair));
	}
	free(pair.buffer);
}

void sb_connections(const struct sb_options *options, int fd)
{
	struct pair pair = { .options = options, .fd = fd, .buffer = sb_memory(SB_SMALL) };

	sb_say(options, "connect", SB_SMALL, "connections/s",
	       1e9 / sb_median(options, short_ones, &pair));
	free(pair.buffer);
}

/* The cost of a call that concerns no socket. */
static int64_t calls(void *context, uint64_t count)
{
	int64_t began = sb_now_ns();
	int *fd = context;
	char byte;

	while (count--) {
		if (read(*fd, &byte, 1) != 0)
			sb_fail("read");
	}
	return sb_now_ns() - began;
}

void sb_call(const struct sb_options *options)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		sb_fail("/dev/null");
	sb_say(options, "call", 0, "ns", sb_median(options, calls, &fd));
	close(fd);
}
