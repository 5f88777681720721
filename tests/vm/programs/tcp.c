// SPDX-License-Identifier: BSD-2-Clause
/*
 * A ping-pong of 4 bytes and a stream over TCP, between two guests.
 *
 *   tcp serve PORT              answers one client
 *   tcp measure ADDRESS PORT    prints figures
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 200
#define CHUNK (1 << 20)
#define CHUNKS 24

static char chunk[CHUNK];

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void send_all(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n <= 0)
			fail("send");
		at += n;
		len -= (size_t)n;
	}
}

static void recv_all(int fd, void *data, size_t len)
{
	if (recv(fd, data, len, MSG_WAITALL) != (ssize_t)len)
		fail("recv");
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void no_delay(int fd)
{
	int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
		fail("TCP_NODELAY");
}

static int serve(const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0), fd;
	uint32_t word;
	int i;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(listener, 1) != 0)
		fail("listen");
	printf("listens\n");
	fflush(stdout);
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		fail("accept");
	no_delay(fd);
	for (i = 0; i < 2 * ROUNDS; i++) {
		recv_all(fd, &word, sizeof(word));
		send_all(fd, &word, sizeof(word));
	}
	for (i = 0; i < CHUNKS; i++)
		recv_all(fd, chunk, CHUNK);
	send_all(fd, &word, sizeof(word));
	recv(fd, &word, sizeof(word), 0); /* until the client closes, so the port is free at once */
	return 0;
}

static double ping(int fd)
{
	double start = now_us();
	uint32_t word = 1;

	send_all(fd, &word, sizeof(word));
	recv_all(fd, &word, sizeof(word));
	return (now_us() - start) / 2;
}

static int measure(const char *address, const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), i;
	double times[ROUNDS], start;
	uint32_t word;

	inet_pton(AF_INET, address, &at.sin_addr);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0)
		fail("connect");
	no_delay(fd);
	for (i = 0; i < ROUNDS; i++)
		ping(fd); /* not counted */
	for (i = 0; i < ROUNDS; i++)
		times[i] = ping(fd);
	qsort(times, ROUNDS, sizeof(*times), by_value);
	printf("figure tcp_4B %.3f us\n", times[ROUNDS / 2]);
	start = now_us();
	for (i = 0; i < CHUNKS; i++)
		send_all(fd, chunk, CHUNK);
	recv_all(fd, &word, sizeof(word));
	printf("figure tcp_stream %.3f MB/s\n", (double)CHUNKS * CHUNK / (now_us() - start));
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		return serve(argv[2]);
	if (argc == 4 && strcmp(argv[1], "measure") == 0)
		return measure(argv[2], argv[3]);
	return 2;
}
