/* SPDX-License-Identifier: BSD-2-Clause */
/* The server: carries out the orders of one client. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sb.h"

static void need(bool more)
{
	if (!more)
		sb_refuse("the client ended the connection within an order");
}

static void pingpong(int fd, const struct sb_order *order, void *buffer)
{
	uint64_t i;

	for (i = 0; i < order->count; i++) {
		need(sb_recv(fd, buffer, order->size, order->polled));
		sb_send(fd, buffer, order->size, order->polled);
	}
}

static void stream(int fd, const struct sb_order *order, void *buffer)
{
	uint64_t i;

	for (i = 0; i < order->count; i++)
		need(sb_recv(fd, buffer, order->size, order->polled));
	sb_send(fd, buffer, 1, order->polled);
}

static void accept_each(int listener, const struct sb_order *order, void *buffer)
{
	uint64_t i;
	int fd;

	for (i = 0; i < order->count; i++) {
		fd = sb_accept(listener);
		need(sb_recv(fd, buffer, order->size, false));
		sb_send(fd, buffer, order->size, false);
		close(fd);
	}
}

static void carry_out(int listener, int fd, const struct sb_order *order, void *buffer)
{
	if (order->size > SB_MAX_SIZE)
		sb_refuse("an order for messages that are too long");
	switch (order->kind) {
	case SB_PINGPONG:
		pingpong(fd, order, buffer);
		break;
	case SB_STREAM:
		stream(fd, order, buffer);
		break;
	case SB_CONNECT:
		accept_each(listener, order, buffer);
		break;
	case SB_MANY:
		sb_serve_many(listener, fd, order);
		break;
	default:
		sb_refuse("an order that is not known");
	}
}

int sb_serve(const char *address)
{
	int listener = sb_listen(address), fd = sb_accept(listener);
	void *buffer = sb_memory(SB_MAX_SIZE);
	struct sb_order order = { 0 };

	while (sb_recv(fd, &order, sizeof(order), order.polled) && order.kind != SB_END)
		carry_out(listener, fd, &order, buffer);
	close(fd);
	close(listener);
	free(buffer);
	return order.kind == SB_END ? 0 : 1;
}
