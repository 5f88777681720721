// SPDX-License-Identifier: BSD-2-Clause
/*
 * handlers exit | sockets | close | own | set | poll - signal handlers that use descriptors while their thread is in a
 * call
 *
 * For sock_test.py.  If a thread waits for itself SIGALRM ends the program.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PAIRS 40
#define CHILDREN 12
#define STEP_US 200

static int set, one[PAIRS], other[PAIRS], count;
static _Atomic int closed, used;

/* Starts a child; one that waits for itself ends with its parent. */
static pid_t start_child(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void make_pairs(int n)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(a);
	struct epoll_event e = { .events = EPOLLIN };

	set = epoll_create1(0);
	CHECK(set >= 0 && bind(listener, (struct sockaddr *)&a, size) == 0);
	CHECK(listen(listener, n) == 0 && getsockname(listener, (struct sockaddr *)&a, &size) == 0);
	for (count = 0; count < n; count++) {
		one[count] = socket(AF_INET, SOCK_STREAM, 0);
		CHECK(connect(one[count], (struct sockaddr *)&a, sizeof(a)) == 0);
		other[count] = accept(listener, NULL, NULL);
		e.data.fd = count;
		CHECK(other[count] >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, other[count], &e) == 0);
	}
	close(listener);
}

/* Sends one byte, which comes back. */
static void echo(int i)
{
	struct epoll_event e;
	char byte = 'x';
	int n;

	CHECK(send(one[i], &byte, 1, 0) == 1);
	do
		n = epoll_wait(set, &e, 1, -1);
	while (n < 0 && errno == EINTR);
	CHECK(n == 1 && e.data.fd == i);
	CHECK(recv(other[i], &byte, 1, 0) == 1 && send(other[i], &byte, 1, 0) == 1);
	do
		n = (int)recv(one[i], &byte, 1, 0);
	while (n < 0 && errno == EINTR);
	CHECK(n == 1);
}

static void warm_up(void)
{
	int i, round;

	for (round = 0; round < 300; round++) {
		for (i = 0; i < count; i++)
			echo(i);
	}
}

static void handle(int number, void (*handler)(int))
{
	struct sigaction a = { .sa_handler = handler, .sa_flags = SA_RESTART };

	CHECK(sigaction(number, &a, NULL) == 0);
}

static void every(int us)
{
	struct itimerval t = { { 0, us }, { 0, us } };

	CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
}

/* ---- exit() ---- */

static void end(int number)
{
	(void)number;
	exit(0);
}

static void child(void)
{
	struct epoll_event e;

	make_pairs(1);
	warm_up();
	handle(SIGALRM, end);
	every(3000);
	for (;;)
		epoll_wait(set, &e, 1, 1);
}

static void exits(void)
{
	int i, status;

	for (i = 0; i < CHILDREN; i++) {
		pid_t pid = start_child();

		if (pid == 0)
			child();
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
}

/* ---- close() ---- */

static void make_and_close(int number)
{
	(void)number;
	CHECK(close(socket(AF_INET, SOCK_STREAM, 0)) == 0);
	used++;
}

static void sockets(void)
{
	make_pairs(2);
	warm_up();
	handle(SIGALRM, make_and_close);
	every(STEP_US);
	while (used < 5000) {
		echo(0);
		echo(1);
	}
	every(0);
}

static void close_next(int number)
{
	(void)number;
	if (closed < PAIRS)
		CHECK(close(other[closed++]) == 0);
}

/* The other end of each gets the end of the stream, and the set reports nothing for closed ones. */
static void closes(void)
{
	struct epoll_event e;
	char byte;
	int i;

	make_pairs(PAIRS);
	warm_up();
	handle(SIGALRM, close_next);
	every(3000);
	while (closed < PAIRS)
		CHECK(epoll_wait(set, &e, 1, 0) <= 0);
	every(0);
	for (i = 0; i < PAIRS; i++)
		CHECK(recv(one[i], &byte, 1, 0) == 0);
	CHECK(epoll_wait(set, &e, 1, 0) == 0);
}

/* The signal comes before the call, while it still polls, and in its sleep. */
static void own(void)
{
	char byte;
	int i;

	make_pairs(PAIRS);
	warm_up();
	handle(SIGALRM, close_next);
	for (i = 0; i < PAIRS; i++) {
		struct itimerval once = { { 0, 0 }, { 0, 20 + 5 * i } };

		CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
		CHECK(recv(other[i], &byte, 1, 0) == -1 && errno == EBADF);
		CHECK(recv(one[i], &byte, 1, 0) == 0);
	}
}

/* ---- the set itself ---- */

static void use_set(int number)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = 0 };
	int before = errno;

	(void)number;
	CHECK(epoll_ctl(set, EPOLL_CTL_MOD, other[0], &e) == 0 || errno == EDEADLK);
	CHECK(epoll_wait(set, &e, 1, 0) >= 0 || errno == EDEADLK);
	used++;
	errno = before;
}

static void sets(void)
{
	make_pairs(2);
	warm_up();
	handle(SIGALRM, use_set);
	every(STEP_US);
	while (used < 5000) {
		echo(0);
		echo(1);
	}
	every(0);
}

/* ---- poll() of it and of connections ---- */

static void poll_all(int number)
{
	struct pollfd v[] = { { .fd = set, .events = POLLIN },
			      { .fd = other[0], .events = POLLIN },
			      { .fd = one[0], .events = POLLIN } };
	int before = errno;

	(void)number;
	/* A wait takes longer than the time between two signals, and much longer on a busy machine. */
	CHECK(poll(v, 3, used % 16 == 0) >= 0);
	used++;
	errno = before;
}

static void polls(void)
{
	make_pairs(2);
	warm_up();
	handle(SIGALRM, poll_all);
	every(STEP_US);
	while (used < 3000) {
		echo(0);
		echo(1);
	}
	every(0);
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";
	int status;

	if (start_child() > 0) {
		end_when_late();
		CHECK(wait(&status) > 0 && WIFEXITED(status));
		return WEXITSTATUS(status);
	}
	if (strcmp(what, "exit") == 0)
		exits();
	else if (strcmp(what, "sockets") == 0)
		sockets();
	else if (strcmp(what, "close") == 0)
		closes();
	else if (strcmp(what, "own") == 0)
		own();
	else if (strcmp(what, "set") == 0)
		sets();
	else if (strcmp(what, "poll") == 0)
		polls();
	else
		return 2;
	printf("ok\n");
	return 0;
}
