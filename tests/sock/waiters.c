// SPDX-License-Identifier: BSD-2-Clause
/*
 * waiters promoted | rearmed | pool - epoll sets in which one thread waits for an action of another one
 *
 * For sock_test.py.  If a thread is never woken SIGALRM ends the program.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define POOL 4

static struct sockaddr_in address;
static int listener, one, other, set;

static void listen_somewhere(void)
{
	socklen_t n = sizeof(address);

	address = (struct sockaddr_in){ .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(bind(listener, (struct sockaddr *)&address, n) == 0 && listen(listener, 10) == 0);
	CHECK(getsockname(listener, (struct sockaddr *)&address, &n) == 0);
}

static void make_pair(void)
{
	one = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(connect(one, (struct sockaddr *)&address, sizeof(address)) == 0);
	other = accept(listener, NULL, NULL);
	CHECK(other >= 0);
}

static void control(int op, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	CHECK(epoll_ctl(set, op, fd, &e) == 0);
}

static void *start(void *(*run)(void *), void *arg)
{
	pthread_t t;

	CHECK(pthread_create(&t, NULL, run, arg) == 0);
	return (void *)t;
}

/* ---- promoted by the thread that sends, while another one waits for the answers ---- */

static sem_t answers;

static void *read_answers(void *arg)
{
	int fd = *(int *)arg, ep = epoll_create1(0);
	struct epoll_event e = { .events = EPOLLIN };
	char bytes[16];
	ssize_t n;

	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) == 0);
	for (;;) {
		CHECK(epoll_wait(ep, &e, 1, -1) == 1);
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n == 0)
			return NULL;
		if (n > 0)
			CHECK(sem_post(&answers) == 0);
	}
}

/* The pause lets the other threads fall asleep before the answer. */
static void *answer(void *arg)
{
	int fd = *(int *)arg;
	char byte;

	while (recv(fd, &byte, 1, 0) == 1) {
		poll(NULL, 0, 60);
		CHECK(send(fd, &byte, 1, MSG_NOSIGNAL) == 1);
	}
	return NULL;
}

static void promoted(void)
{
	int connection, i, ends[2];

	for (connection = 0; connection < 12; connection++) {
		pthread_t reader, server;

		make_pair();
		ends[0] = one;
		ends[1] = other;
		CHECK(sem_init(&answers, 0, 0) == 0);
		reader = (pthread_t)start(read_answers, &ends[0]);
		server = (pthread_t)start(answer, &ends[1]);
		poll(NULL, 0, 20); /* so that it falls asleep */
		for (i = 1; i <= 12; i++) {
			CHECK(send(one, "x", 1, 0) == 1);
			CHECK(sem_wait(&answers) == 0);
		}
		CHECK(shutdown(one, SHUT_RDWR) == 0);
		CHECK(pthread_join(reader, NULL) == 0 && pthread_join(server, NULL) == 0);
		close(one);
		close(other);
	}
}

/* ---- EPOLLONESHOT ---- */

static void serve(int fd)
{
	char byte;

	if (recv(fd, &byte, 1, MSG_DONTWAIT) == 1)
		CHECK(send(fd, &byte, 1, MSG_NOSIGNAL) == 1);
	control(EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT);
}

static int jobs[2];

static void *serve_what_comes(void *unused)
{
	int fd;

	while (read(jobs[0], &fd, sizeof(fd)) == sizeof(fd))
		serve(fd);
	return unused;
}

static void *pass_events_on(void *unused)
{
	struct epoll_event e;

	while (epoll_wait(set, &e, 1, -1) == 1)
		CHECK(write(jobs[1], &e.data.fd, sizeof(int)) == sizeof(int));
	return unused;
}

static void *serve_events(void *unused)
{
	struct epoll_event e;

	while (epoll_wait(set, &e, 1, -1) == 1)
		serve(e.data.fd);
	return unused;
}

static void ask(const int *ends, int count, int rounds)
{
	char byte;
	int i;

	while (rounds-- > 0) {
		for (i = 0; i < count; i++)
			CHECK(send(ends[i], "x", 1, 0) == 1);
		for (i = 0; i < count; i++)
			CHECK(recv(ends[i], &byte, 1, 0) == 1);
		if (rounds % 50 == 0)
			poll(NULL, 0, 5); /* so that all fall asleep */
	}
}

/* One thread waits, another one serves and rearms the descriptor for the next event. */
static void rearmed(void)
{
	CHECK(pipe(jobs) == 0);
	start(serve_what_comes, NULL);
	start(pass_events_on, NULL);
	make_pair();
	control(EPOLL_CTL_ADD, other, EPOLLIN | EPOLLONESHOT);
	ask(&one, 1, 1500);
}

static void pool(void)
{
	int i, ends[POOL];

	for (i = 0; i < POOL; i++)
		start(serve_events, NULL);
	for (i = 0; i < POOL; i++) {
		make_pair();
		ends[i] = one;
		control(EPOLL_CTL_ADD, other, EPOLLIN | EPOLLONESHOT);
	}
	ask(ends, POOL, 700);
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	end_when_late();
	listen_somewhere();
	set = epoll_create1(0);
	CHECK(set >= 0);
	if (strcmp(what, "promoted") == 0)
		promoted();
	else if (strcmp(what, "rearmed") == 0)
		rearmed();
	else if (strcmp(what, "pool") == 0)
		pool();
	else
		return 2;
	printf("ok\n");
	fflush(stdout);
	_exit(0);
}
