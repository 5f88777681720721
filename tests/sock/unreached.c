// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that is linked statically, so that no preloaded library reaches it.  all_test.py runs it:
 *
 *   unreached client HOST PORT ROUNDS      echoes of 1000 bytes, then the end both ways
 *   unreached edge HOST PORT ROUNDS        the same; does not wait, in a set that has the socket before it is connected
 *   unreached refused HOST PORT            connects where nobody listens, waiting and not
 *   unreached interrupted HOST PORT        connects where nobody answers, and a signal interrupts that
 *   unreached send HOST PORT BYTES         sends so many, and ends at once
 *   unreached receive HOST PORT            sends a byte, and receives until the end, or a reset
 *   unreached reset HOST PORT              resets the connection
 *   unreached urgent HOST PORT             sends "abc" with an urgent c, then "de"
 *   unreached server HOST                  accepts until it is killed, a child for each: echoes
 *   unreached polled HOST                  the same; does not wait in accept4(), and has one child
 *   unreached reserved HOST                gives up root's rights, and binds to a port that needs them
 *   unreached alarmed HOST                 the same, after a signal has interrupted accept(), and SO_RCVTIMEO has ended
 *   unreached storm HOST                   serves one after the other, while signals interrupt all calls that wait
 *
 * HOST is an IPv4 address, or an IPv6 one.  Servers print the address and port to which they are bound.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"

#define PIECE 1000

static socklen_t parse(struct sockaddr_storage *a, const char *host, const char *port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)a;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)a;
	in_port_t number = htons((uint16_t)strtoul(port, NULL, 10));

	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		a->ss_family = AF_INET;
		v4->sin_port = number;
		return sizeof(*v4);
	}
	CHECK(inet_pton(AF_INET6, host, &v6->sin6_addr) == 1);
	a->ss_family = AF_INET6;
	v6->sin6_port = number;
	return sizeof(*v6);
}

static void print_name(const char *what, const struct sockaddr_storage *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;
	char text[64];
	const void *address = a->ss_family == AF_INET ? (const void *)&v4->sin_addr
						      : (const void *)&v6->sin6_addr;

	CHECK(inet_ntop(a->ss_family, address, text, sizeof(text)));
	printf("%s %s %u\n", what, text,
	       ntohs(a->ss_family == AF_INET ? v4->sin_port : v6->sin6_port));
	fflush(stdout);
}

static void print_names(int fd)
{
	struct sockaddr_storage a;
	socklen_t n = sizeof(a);

	CHECK(getpeername(fd, (struct sockaddr *)&a, &n) == 0);
	print_name("peer", &a);
	n = sizeof(a);
	CHECK(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	print_name("local", &a);
}

/* A socket that is connected. */
static int connected(const char *host, const char *port)
{
	struct sockaddr_storage a;
	socklen_t n = parse(&a, host, port);
	int fd = socket(a.ss_family, SOCK_STREAM, 0);

	CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&a, n) == 0);
	CHECK(connect(fd, (struct sockaddr *)&a, n) == -1 && errno == EISCONN);
	return fd;
}

static void send_all(int fd, const char *piece, size_t n)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	ssize_t sent;

	while (n > 0) {
		sent = send(fd, piece, n, MSG_NOSIGNAL);
		CHECK(sent > 0 || (sent < 0 && errno == EAGAIN && poll(&p, 1, -1) == 1));
		n -= sent > 0 ? (size_t)sent : 0;
		piece += sent > 0 ? sent : 0;
	}
}

static void receive_all(int fd, char *piece, size_t n)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t got;

	while (n > 0) {
		got = recv(fd, piece, n, 0);
		CHECK(got > 0 || (got < 0 && errno == EAGAIN && poll(&p, 1, -1) == 1));
		n -= got > 0 ? (size_t)got : 0;
		piece += got > 0 ? got : 0;
	}
}

/* Echoes, then the end of one direction, which the peer answers by the end of the other. */
static void exchange(int fd, long rounds)
{
	char sent[PIECE], got[PIECE];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	long i;

	for (i = 0; i < rounds; i++) {
		memset(sent, (int)i, sizeof(sent));
		send_all(fd, sent, sizeof(sent));
		receive_all(fd, got, sizeof(got));
		CHECK(memcmp(sent, got, sizeof(sent)) == 0);
	}
	CHECK(shutdown(fd, SHUT_WR) == 0);
	CHECK(poll(&p, 1, -1) == 1 && recv(fd, got, 1, 0) == 0);
	printf("done\n");
}

static void edge(char **args)
{
	struct sockaddr_storage a;
	socklen_t n = parse(&a, args[0], args[1]), size = sizeof(int);
	int fd = socket(a.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int set = epoll_create1(0), error = -1;
	struct epoll_event e = { .events = EPOLLOUT | EPOLLET };

	CHECK(fd >= 0 && set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) == 0);
	epoll_wait(set, &e, 1, 0); /* a socket without a connection counts as hung up */
	CHECK(connect(fd, (struct sockaddr *)&a, n) == -1 && errno == EINPROGRESS);
	while (!(e.events & EPOLLOUT) || (e.events & EPOLLHUP))
		CHECK(epoll_wait(set, &e, 1, -1) == 1);
	CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0);
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	print_names(fd);
	exchange(fd, strtol(args[2], NULL, 10));
}

static void refused(char **args)
{
	struct sockaddr_storage a;
	socklen_t n = parse(&a, args[0], args[1]), size = sizeof(int);
	int waits = socket(a.ss_family, SOCK_STREAM, 0), error = -1;
	int not = socket(a.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct pollfd p = { .fd = not, .events = POLLOUT };

	CHECK(connect(waits, (struct sockaddr *)&a, n) == -1 && errno == ECONNREFUSED);
	CHECK(connect(not, (struct sockaddr *)&a, n) == -1 && errno == EINPROGRESS);
	CHECK(poll(&p, 1, -1) == 1);
	CHECK(getsockopt(not, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == ECONNREFUSED);
	printf("done\n");
}

static void on_alarm(int number)
{
	(void)number;
}

/* Who has been interrupted waits for the connection, which goes on. */
static void interrupted(char **args)
{
	struct sigaction act = { .sa_handler = on_alarm };
	struct itimerval soon = { .it_value = { .tv_usec = 20000 } };
	struct sockaddr_storage a;
	socklen_t n = parse(&a, args[0], args[1]), size = sizeof(struct tcp_info);
	int fd = socket(a.ss_family, SOCK_STREAM, 0);
	struct tcp_info info = { .tcpi_state = TCP_CLOSE };

	CHECK(sigaction(SIGALRM, &act, NULL) == 0 && setitimer(ITIMER_REAL, &soon, NULL) == 0);
	CHECK(connect(fd, (struct sockaddr *)&a, n) == -1 && errno == EINTR);
	signal(SIGALRM, SIG_DFL);
	alarm(30);
	while (info.tcpi_state == TCP_CLOSE) {
		CHECK(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0);
		poll(NULL, 0, 1);
	}
	CHECK(info.tcpi_state == TCP_SYN_SENT);
	CHECK(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
	printf("done\n");
}

/* Byte i of a stream. */
static char byte_at(long i)
{
	return (char)((i * 2654435761u) >> 13);
}

static void send_and_end(int fd, long bytes)
{
	char piece[8192];
	long at = 0, n, i;

	while (at < bytes) {
		n = bytes - at < (long)sizeof(piece) ? bytes - at : (long)sizeof(piece);
		for (i = 0; i < n; i++)
			piece[i] = byte_at(at + i);
		send_all(fd, piece, (size_t)n);
		at += n;
	}
	_exit(0);
}

static void receive_to_end(int fd)
{
	char piece[8192];
	long at = 0, i;
	ssize_t n;

	CHECK(send(fd, "x", 1, MSG_NOSIGNAL) == 1);
	while ((n = recv(fd, piece, sizeof(piece), 0)) > 0) {
		for (i = 0; i < n; i++)
			CHECK(piece[i] == byte_at(at + i));
		at += n;
	}
	printf("%ld%s\n", at, n == 0 ? "" : errno == ECONNRESET ? " reset" : " error");
}

static void reset(int fd)
{
	struct linger l = { .l_onoff = 1 };
	char byte;

	CHECK(send(fd, "x", 1, 0) == 1 && recv(fd, &byte, 1, 0) == 1);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)) == 0);
	close(fd);
}

static void urgent(int fd)
{
	char byte;

	CHECK(send(fd, "abc", 3, MSG_OOB) == 3);
	CHECK(recv(fd, &byte, 1, 0) == 1); /* the other end has seen it */
	CHECK(send(fd, "de", 2, 0) == 2);
	CHECK(shutdown(fd, SHUT_WR) == 0 && recv(fd, &byte, 1, 0) == 0);
}

/* ---- servers ---- */

static int listening(const char *host, int flags)
{
	struct sockaddr_storage a;
	socklen_t n = parse(&a, host, "0");
	int fd = socket(a.ss_family, SOCK_STREAM | flags, 0);

	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 16) == 0);
	n = sizeof(a);
	CHECK(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	print_name("at", &a);
	return fd;
}

static void reserved(const char *host)
{
	struct sockaddr_storage a;
	socklen_t n = parse(&a, host, "1");
	int fd = socket(a.ss_family, SOCK_STREAM, 0);

	CHECK(setresuid(65534, 65534, 65534) == 0);
	CHECK(bind(fd, (struct sockaddr *)&a, n) == -1 && errno == EACCES);
	printf("done\n");
	exit(0);
}

static void echo(int fd)
{
	char piece[8192];
	ssize_t n;

	print_names(fd);
	while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
		send_all(fd, piece, (size_t)n);
	CHECK(n == 0 || errno == ECONNRESET);
	printf("%s\n", n == 0 ? "end" : "reset");
	exit(0);
}

static void serve(int listener)
{
	struct sockaddr_storage a;
	socklen_t n;
	int fd;

	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		n = sizeof(a);
		fd = accept(listener, (struct sockaddr *)&a, &n);
		CHECK(fd >= 0);
		print_name("from", &a);
		if (fork() == 0)
			echo(fd);
		close(fd);
	}
}

static void polled(const char *host)
{
	int listener = listening(host, SOCK_NONBLOCK), fd;
	struct pollfd p = { .fd = listener, .events = POLLIN };
	struct sockaddr_storage a;
	socklen_t n = 1; /* less than the address: it is cut off, and its length told */

	CHECK(accept(listener, NULL, NULL) == -1 && errno == EAGAIN);
	CHECK(poll(&p, 1, -1) == 1);
	fd = accept4(listener, (struct sockaddr *)&a, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
	CHECK(fd >= 0 && n == sizeof(struct sockaddr_in));
	CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
	CHECK(fcntl(fd, F_SETFL, 0) == 0);
	echo(fd);
}

static void alarmed(const char *host)
{
	struct sigaction act = { .sa_handler = on_alarm };
	struct itimerval soon = { .it_value = { .tv_usec = 20000 } };
	struct timeval limit = { .tv_usec = 20000 }, none = { 0 };
	int listener = listening(host, 0);

	CHECK(sigaction(SIGALRM, &act, NULL) == 0 && setitimer(ITIMER_REAL, &soon, NULL) == 0);
	CHECK(accept(listener, NULL, NULL) == -1 && errno == EINTR);
	CHECK(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
	CHECK(accept(listener, NULL, NULL) == -1 && errno == EAGAIN);
	CHECK(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)) == 0);
	printf("interrupted\n");
	fflush(stdout);
	echo(accept(listener, NULL, NULL));
}

/* Calls are interrupted at any moment; poll() has to tell of each connection that accept() has not given yet. */
static void storm(const char *host)
{
	struct sigaction act = { .sa_handler = on_alarm };
	struct itimerval often = { .it_interval = { .tv_usec = 150 },
				   .it_value = { .tv_usec = 150 } };
	int listener = listening(host, SOCK_NONBLOCK), fd;
	struct pollfd p = { .fd = listener, .events = POLLIN };
	ssize_t n;
	char byte;

	CHECK(sigaction(SIGALRM, &act, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
	for (;;) {
		if (poll(&p, 1, -1) != 1)
			continue;
		fd = accept(listener, NULL, NULL);
		CHECK(fd >= 0 || errno == EINTR || errno == EAGAIN);
		if (fd < 0)
			continue;
		while ((n = recv(fd, &byte, 1, 0)) > 0 || (n < 0 && errno == EINTR)) {
			if (n > 0)
				CHECK(send(fd, &byte, 1, MSG_NOSIGNAL) == 1);
		}
		close(fd);
	}
}

int main(int argc, char **argv)
{
	char **args = argv + 2;

	CHECK(argc >= 3);
	if (strcmp(argv[1], "server") == 0)
		serve(listening(args[0], 0));
	else if (strcmp(argv[1], "polled") == 0)
		polled(args[0]);
	else if (strcmp(argv[1], "alarmed") == 0)
		alarmed(args[0]);
	else if (strcmp(argv[1], "storm") == 0)
		storm(args[0]);
	else if (strcmp(argv[1], "reserved") == 0)
		reserved(args[0]);
	CHECK(argc >= 4);
	if (strcmp(argv[1], "refused") == 0) {
		refused(args);
	} else if (strcmp(argv[1], "interrupted") == 0) {
		interrupted(args);
	} else if (strcmp(argv[1], "receive") == 0) {
		receive_to_end(connected(args[0], args[1]));
	} else if (strcmp(argv[1], "reset") == 0) {
		reset(connected(args[0], args[1]));
	} else if (strcmp(argv[1], "urgent") == 0) {
		urgent(connected(args[0], args[1]));
	} else if (strcmp(argv[1], "send") == 0) {
		send_and_end(connected(args[0], args[1]), strtol(args[2], NULL, 10));
	} else if (strcmp(argv[1], "edge") == 0) {
		edge(args);
	} else {
		int fd = connected(args[0], args[1]);

		CHECK(strcmp(argv[1], "client") == 0);
		print_names(fd);
		exchange(fd, strtol(args[2], NULL, 10));
	}
	return 0;
}
