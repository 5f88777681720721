/* SPDX-License-Identifier: BSD-2-Clause */
/* A load for memcached: connections of which each has one request under way, in one epoll set. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sb.h"

#define EVENTS 64
#define KEY "sock_bench"
#define MAX_VALUE 65536
#define STORED "STORED\r\n"

struct load {
	const struct sb_options *options;
	int set, *fds;
	size_t *had; /* bytes of the answer that have come */
	size_t answer;
	char request[64], *room;
};

/* Stores the value for which all will ask; the answers then have one length. */
static void store(struct load *load, size_t size)
{
	int fd = sb_connect(load->options->connect);
	char *value = sb_memory(size), head[64], said[sizeof(STORED) - 1];
	int n = snprintf(head, sizeof(head), "set " KEY " 0 0 %zu\r\n", size);

	sb_send(fd, head, (size_t)n, false);
	sb_send(fd, value, size, false);
	sb_send(fd, "\r\n", 2, false);
	if (!sb_recv(fd, said, sizeof(said), false) || memcmp(said, STORED, sizeof(said)) != 0)
		sb_refuse("the server does not store a value as memcached does");
	snprintf(load->request, sizeof(load->request), "get " KEY "\r\n");
	n = snprintf(head, sizeof(head), "VALUE " KEY " 0 %zu\r\n\r\nEND\r\n", size);
	load->answer = (size_t)n + size;
	load->room = sb_memory(load->answer);
	free(value);
	close(fd);
}

static void ask(struct load *load, long i)
{
	load->had[i] = 0;
	sb_send(load->fds[i], load->request, strlen(load->request), false);
}

/* Takes what has come; true when it is the whole answer. */
static bool answered(struct load *load, long i)
{
	ssize_t n = recv(load->fds[i], load->room, load->answer - load->had[i], MSG_DONTWAIT);

	if (n == 0)
		sb_refuse("the server ended a connection");
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		sb_fail("recv");
	if (n < 0)
		return false;
	if (load->had[i] == 0 && load->room[0] != 'V')
		sb_refuse("the server does not answer as memcached does");
	load->had[i] += (size_t)n;
	return load->had[i] == load->answer;
}

static void open_all(struct load *load)
{
	struct epoll_event event = { .events = EPOLLIN };
	long i;

	load->set = epoll_create1(EPOLL_CLOEXEC);
	if (load->set < 0)
		sb_fail("epoll_create1");
	load->fds = sb_memory((size_t)load->options->connections * sizeof(*load->fds));
	load->had = sb_memory((size_t)load->options->connections * sizeof(*load->had));
	for (i = 0; i < load->options->connections; i++) {
		load->fds[i] = sb_connect(load->options->connect);
		event.data.u64 = (uint64_t)i;
		if (epoll_ctl(load->set, EPOLL_CTL_ADD, load->fds[i], &event) != 0)
			sb_fail("epoll_ctl");
		ask(load, i);
	}
}

static void close_all(struct load *load)
{
	long i;

	for (i = 0; i < load->options->connections; i++)
		close(load->fds[i]);
	close(load->set);
	free(load->fds);
	free(load->had);
	free(load->room);
}

static int64_t requests(void *context, uint64_t count)
{
	struct load *load = context;
	struct epoll_event events[EVENTS];
	int64_t began = sb_now_ns();
	uint64_t done = 0;
	int n, i;

	while (done < count) {
		n = epoll_wait(load->set, events, EVENTS, load->options->polled ? 0 : -1);
		if (n < 0 && errno != EINTR)
			sb_fail("epoll_wait");
		for (i = 0; i < n; i++) {
			if (!answered(load, (long)events[i].data.u64))
				continue;
			ask(load, (long)events[i].data.u64);
			done++;
		}
	}
	/* As many as were done; the caller divides by `count`. */
	return (int64_t)((double)(sb_now_ns() - began) * (double)count / (double)done);
}

void sb_memcached(const struct sb_options *options)
{
	struct load load = { .options = options };
	size_t size;
	int i;

	for (i = 0; i < options->size_count; i++) {
		size = options->sizes[i];
		if (size > MAX_VALUE)
			sb_refuse("a value for memcached is at most 64 KiB here");
		store(&load, size);
		open_all(&load);
		sb_say(options, "memcached", size, "requests/s",
		       1e9 / sb_median(options, requests, &load));
		close_all(&load);
	}
}
