/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sb.h"

#define UNIX "unix:"

union place {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_un un;
};

static socklen_t unix_place(const char *path, union place *out)
{
	if (!*path || strlen(path) >= sizeof(out->un.sun_path))
		sb_refuse("the path of the socket is empty or too long");
	out->un.sun_family = AF_UNIX;
	memcpy(out->un.sun_path, path, strlen(path) + 1);
	return sizeof(out->un);
}

/* ADDRESS, ADDRESS:PORT or unix:PATH. */
static socklen_t place_of(const char *text, union place *out)
{
	char address[64];
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);
	unsigned long port;
	char *end = NULL;

	memset(out, 0, sizeof(*out));
	if (strncmp(text, UNIX, strlen(UNIX)) == 0)
		return unix_place(text + strlen(UNIX), out);
	if (len >= sizeof(address))
		sb_refuse("this is no address");
	memcpy(address, text, len);
	address[len] = '\0';
	port = colon ? strtoul(colon + 1, &end, 10) : 0;
	if (port > 65535 || (colon && (!colon[1] || *end)))
		sb_refuse("this is no port");
	out->in.sin_family = AF_INET;
	out->in.sin_port = htons((uint16_t)port);
	if (inet_pton(AF_INET, address, &out->in.sin_addr) != 1)
		sb_refuse("this is no IPv4 address");
	return sizeof(out->in);
}

static int new_socket(const union place *place)
{
	int fd = socket(place->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		sb_fail("socket");
	return fd;
}

static int at_once(int fd, sa_family_t family)
{
	int on = 1;

	if (family == AF_INET && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
		sb_fail("TCP_NODELAY");
	return fd;
}

int sb_listen(const char *address)
{
	union place place;
	socklen_t len = place_of(address, &place);
	int fd = new_socket(&place);

	if (bind(fd, &place.any, len) != 0)
		sb_fail("bind");
	if (listen(fd, SOMAXCONN) != 0)
		sb_fail("listen");
	if (getsockname(fd, &place.any, &len) != 0)
		sb_fail("getsockname");
	printf("port %d\n", place.any.sa_family == AF_INET ? ntohs(place.in.sin_port) : 0);
	fflush(stdout);
	return fd;
}

int sb_accept(int listener)
{
	union place peer;
	socklen_t len = sizeof(peer);
	int fd = accept(listener, &peer.any, &len);

	if (fd < 0)
		sb_fail("accept");
	return at_once(fd, peer.any.sa_family);
}

int sb_connect(const char *address)
{
	union place place;
	socklen_t len = place_of(address, &place);
	int fd = new_socket(&place);

	at_once(fd, place.any.sa_family);
	if (connect(fd, &place.any, len) != 0)
		sb_fail("connect");
	return fd;
}

/* After a call that failed: any reason but a full or an empty socket ends the program. */
static void once_more(const char *what)
{
	if (errno != EAGAIN && errno != EINTR)
		sb_fail(what);
	sb_relax();
}

void sb_send(int fd, const void *from, size_t size, bool polled)
{
	const char *p = from;
	ssize_t n;

	while (size) {
		n = send(fd, p, size, MSG_NOSIGNAL | (polled ? MSG_DONTWAIT : 0));
		if (n < 0) {
			once_more("send");
			continue;
		}
		p += n;
		size -= (size_t)n;
	}
}

bool sb_recv(int fd, void *to, size_t size, bool polled)
{
	size_t had = 0;
	ssize_t n;

	while (had < size) {
		n = recv(fd, (char *)to + had, size - had, polled ? MSG_DONTWAIT : 0);
		if (n < 0)
			once_more("recv");
		else if (n == 0 && had == 0)
			return false;
		else if (n == 0)
			sb_refuse("the connection ended within a message");
		had += n > 0 ? (size_t)n : 0;
	}
	return true;
}

void sb_order(int fd, enum sb_kind kind, bool polled, size_t size, uint64_t count)
{
	struct sb_order order = {
		.kind = kind, .polled = polled, .size = (uint32_t)size, .count = count
	};

	sb_send(fd, &order, sizeof(order), polled);
}

void sb_exchange(int fd, void *buffer, size_t size, bool polled)
{
	sb_send(fd, buffer, size, polled);
	if (!sb_recv(fd, buffer, size, polled))
		sb_refuse("the server ended the connection");
}
