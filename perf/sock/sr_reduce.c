/* SPDX-License-Identifier: BSD-2-Clause */
/* The server: reducers, each a process, which sort again and again. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sb.h"
#include "sr.h"

struct source {
	int fd;
	struct sr_chunk *into; /* the chunk that is not full yet; NULL: none */
};

static int take_hello(int fd)
{
	struct sr_hello hello;

	if (!sb_recv(fd, &hello, sizeof(hello), false) || hello.magic != SR_MAGIC ||
	    !hello.mappers || hello.mappers > SR_MAX_PROCESSES)
		sb_refuse("a connection that is not a mapper's");
	return (int)hello.mappers;
}

/* Accepts the connections of all mappers of a sort; returns how many. */
static int accept_mappers(int listener, struct source *sources)
{
	int i, mappers = 1;

	for (i = 0; i < mappers; i++) {
		int fd = sb_accept(listener), said = take_hello(fd);

		if (i > 0 && said != mappers)
			sb_refuse("mappers of two sorts");
		mappers = said;
		sources[i] = (struct source){ .fd = fd };
	}
	return mappers;
}

/* Takes what has come.  False: the source has ended. */
static bool take(struct source *source, struct sr_chunk **list)
{
	ssize_t n;

	if (!source->into)
		source->into = sr_chunk_add(list);
	n = recv(source->fd, source->into->bytes + source->into->have,
		 SR_CHUNK - source->into->have, MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		sb_fail("recv");
	if (n > 0)
		source->into->have += (size_t)n;
	if (source->into->have == SR_CHUNK)
		source->into = NULL;
	return n != 0;
}

static void take_all(struct source *sources, int mappers, struct sr_chunk **list)
{
	struct pollfd fds[SR_MAX_PROCESSES];
	int i, open = mappers;

	for (i = 0; i < mappers; i++)
		fds[i] = (struct pollfd){ .fd = sources[i].fd, .events = POLLIN };
	while (open > 0) {
		if (poll(fds, (nfds_t)mappers, -1) < 0 && errno != EINTR)
			sb_fail("poll");
		for (i = 0; i < mappers; i++) {
			if (fds[i].fd >= 0 && fds[i].revents && !take(&sources[i], list)) {
				fds[i].fd = -1;
				open--;
			}
		}
	}
}

static void sort_once(int listener)
{
	struct source sources[SR_MAX_PROCESSES];
	int i, mappers = accept_mappers(listener, sources);
	struct sr_chunk *list = NULL;
	struct sr_sum sum;
	char end;

	take_all(sources, mappers, &list);
	sum = sr_sort(list);
	sr_chunks_free(list);
	for (i = 0; i < mappers; i++)
		sb_send(sources[i].fd, &sum, sizeof(sum), false);
	for (i = 0; i < mappers; i++) {
		sb_recv(sources[i].fd, &end, 1, false);
		close(sources[i].fd);
	}
}

static _Noreturn void reduce(const char *address)
{
	int listener = sb_listen(address);

	for (;;)
		sort_once(listener);
}

int sr_serve(const char *address, int reducers)
{
	int i, status, bad = 0;
	pid_t pid;

	for (i = 0; i < reducers; i++) {
		pid = fork();
		if (pid < 0)
			sb_fail("fork");
		if (pid == 0)
			reduce(address);
	}
	while (wait(&status) > 0)
		bad |= status;
	return bad ? 1 : 0;
}
