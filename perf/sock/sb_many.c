/* SPDX-License-Identifier: BSD-2-Clause */
/* Many connections: the server's epoll set, and the client of one busy and many idle ones. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sb.h"

#define EVENTS 64
#define ROOM 65536

static void watch(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0)
		sb_fail("epoll_ctl");
}

/* Sends back what is there; true unless the connection has ended. */
static bool echo(int fd, char *room)
{
	ssize_t n = recv(fd, room, ROOM, MSG_DONTWAIT);

	if (n > 0)
		sb_send(fd, room, (size_t)n, true);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		sb_fail("recv");
	return n != 0;
}

/* An order during SB_MANY: false when the mode ends. */
static bool obey(int fd)
{
	struct sb_order order;
	int64_t cpu;

	if (!sb_recv(fd, &order, sizeof(order), false))
		sb_refuse("the client ended the connection within an order");
	if (order.kind != SB_USAGE)
		return false;
	cpu = sb_cpu_ns();
	sb_send(fd, &cpu, sizeof(cpu), false);
	return true;
}

struct server {
	int set, listener, orders, *fds;
	uint64_t count; /* of connections so far */
	char *room;
};

/* False when the mode ends. */
static bool serve_one(struct server *server, int fd)
{
	if (fd == server->orders)
		return obey(fd);
	if (fd == server->listener) {
		fd = sb_accept(fd);
		server->fds[server->count++] = fd;
		watch(server->set, fd);
	} else if (!echo(fd, server->room)) {
		sb_refuse("a connection ended early");
	}
	return true;
}

static void serve_set(struct server *server, const struct sb_order *order)
{
	struct epoll_event events[EVENTS];
	bool more = true;
	int n, i;

	while (more) {
		n = epoll_wait(server->set, events, EVENTS, order->polled ? 0 : -1);
		if (n < 0 && errno != EINTR)
			sb_fail("epoll_wait");
		for (i = 0; i < n; i++) {
			if (!serve_one(server, events[i].data.fd))
				more = false;
		}
		if (server->count == order->count && server->listener >= 0) {
			if (epoll_ctl(server->set, EPOLL_CTL_DEL, server->listener, NULL) != 0)
				sb_fail("epoll_ctl");
			server->listener = -1;
		}
	}
}

void sb_serve_many(int listener, int orders, const struct sb_order *order)
{
	struct server server = { .set = epoll_create1(EPOLL_CLOEXEC),
				 .listener = listener,
				 .orders = orders };
	uint64_t i;

	if (server.set < 0)
		sb_fail("epoll_create1");
	if (order->count == 0 || order->count > SB_MAX_CONNECTIONS)
		sb_refuse("an order for no or too many connections");
	server.fds = sb_memory(order->count * sizeof(*server.fds));
	server.room = sb_memory(ROOM);
	watch(server.set, orders);
	watch(server.set, listener);
	serve_set(&server, order);
	for (i = 0; i < server.count; i++)
		close(server.fds[i]);
	close(server.set);
	free(server.room);
	free(server.fds);
	sb_send(orders, "", 1, false);
}

/* ---- the client ---- */

#define SETTLE 2 /* seconds */
#define WARM 16	 /* further exchanges on each connection, so that it is what it becomes by use */

struct many {
	const struct sb_options *options;
	int orders, *fds;
	char *buffer;
};

static void open_many(struct many *many, const struct sb_options *options, int orders)
{
	long i, k;

	many->options = options;
	many->orders = orders;
	many->fds = sb_memory((size_t)options->connections * sizeof(*many->fds));
	many->buffer = sb_memory(SB_SMALL);
	sb_order(orders, SB_MANY, options->polled, 0, (uint64_t)options->connections);
	for (i = 0; i < options->connections; i++) {
		many->fds[i] = sb_connect(options->connect);
		/* At once: the other end waits 2 s at most for the answer to a promotion. */
		sb_exchange(many->fds[i], many->buffer, SB_SMALL, options->polled);
	}
	for (k = 0; k < WARM; k++) {
		for (i = 0; i < options->connections; i++)
			sb_exchange(many->fds[i], many->buffer, SB_SMALL, options->polled);
	}
}

static void close_many(struct many *many)
{
	char byte;
	long i;

	sb_order(many->orders, SB_LEAVE, false, 0, 0);
	if (!sb_recv(many->orders, &byte, 1, false))
		sb_refuse("the server ended the connection");
	for (i = 0; i < many->options->connections; i++)
		close(many->fds[i]);
	free(many->fds);
	free(many->buffer);
}

static int64_t one_busy(void *context, uint64_t count)
{
	struct many *many = context;
	int64_t began = sb_now_ns();

	while (count--)
		sb_exchange(many->fds[0], many->buffer, SB_SMALL, many->options->polled);
	return sb_now_ns() - began;
}

static int64_t cpu_of_both(int orders)
{
	int64_t cpu;

	sb_order(orders, SB_USAGE, false, 0, 0);
	if (!sb_recv(orders, &cpu, sizeof(cpu), false))
		sb_refuse("the server ended the connection");
	return cpu + sb_cpu_ns();
}

/* Waits for a message on all of them, none of which comes. */
static void wait_idle(const struct many *many, long seconds)
{
	int set = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;
	long i;

	if (set < 0)
		sb_fail("epoll_create1");
	for (i = 0; i < many->options->connections; i++)
		watch(set, many->fds[i]);
	if (epoll_wait(set, &event, 1, (int)seconds * 1000) != 0)
		sb_refuse("a message on a connection that should be idle");
	close(set);
}

void sb_epoll(const struct sb_options *options, int fd)
{
	struct many many;

	open_many(&many, options, fd);
	wait_idle(&many, SETTLE);
	sb_say(options, "epoll", SB_SMALL, "ns", sb_median(options, one_busy, &many) / 2);
	close_many(&many);
}

void sb_idle(const struct sb_options *options, int fd)
{
	struct many many;
	int64_t before;

	open_many(&many, options, fd);
	/* Work that goes on after the last use does not count. */
	wait_idle(&many, options->seconds < SETTLE ? options->seconds : SETTLE);
	before = cpu_of_both(fd);
	wait_idle(&many, options->seconds);
	sb_say(options, "idle", 0, "ms of 10 s",
	       (double)(cpu_of_both(fd) - before) / 1e6 * 10 / (double)options->seconds);
	close_many(&many);
}
