/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_close.h"
#include "u_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "u_thread.h"
#include "u_time.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define UNREAD_MAX 4096 /* messages that are read before a socket is closed */
#define NUDGE_NS INT64_C(1000000)
#define NUDGE_MAX_NS INT64_C(1000000000)

/* One descriptor, and the thread that closes it. */
struct closer {
	struct closer *next;
	pthread_t thread;
	int fd;
	int64_t every, nudge_at; /* the interval of signals, and the time of the next */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below */
static struct closer *busy, *waiting;
static unsigned int busy_count, waiting_count;
static int nudge_signal;

static _Atomic bool forgotten;

void u_rights_forget(bool forget)
{
	atomic_store(&forgotten, forget);
}

bool u_rights_pass(int sock, bool pass)
{
	int on = pass;

	if (atomic_load(&forgotten))
		return pass;
	return setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on)) == 0 || pass;
}

/* Enters `c` among those that are being closed, with the time of its first signal.  Caller holds the lock. */
static void begin(struct closer *c)
{
	c->every = NUDGE_NS;
	c->nudge_at = u_now_ns() + c->every;
	c->next = busy;
	busy = c;
	busy_count++;
}

/* Takes the descriptor that has waited longest off the list, or returns NULL.  Caller holds the lock. */
static struct closer *next_waiting(void)
{
	struct closer *c = waiting;

	if (c != NULL) {
		waiting = c->next;
		waiting_count--;
	}
	return c;
}

/*
 * Ends the work of `c`, frees it, and returns the next descriptor that waits, entered for the calling thread, or NULL.
 * Takes the lock.
 */
static struct closer *done(struct closer *c)
{
	struct closer **at = &busy, *next;

	pthread_mutex_lock(&lock);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	busy_count--;
	next = next_waiting();
	if (next != NULL) {
		next->thread = pthread_self();
		begin(next);
	}
	pthread_mutex_unlock(&lock);
	free(c);
	return next;
}

/* A thread that closes descriptors: `arg`, a struct closer that was entered, then those that wait, and frees each. */
static void *closer_run(void *arg)
{
	struct closer *c = arg;
	sigset_t nudge;

	pthread_mutex_lock(&lock); /* then the starting thread has noted this one */
	sigemptyset(&nudge);
	if (nudge_signal != 0)
		sigaddset(&nudge, nudge_signal);
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_UNBLOCK, &nudge, NULL);
	while (c != NULL) {
		close(c->fd);
		c = done(c);
	}
	return NULL;
}

/*
 * Starts threads for descriptors that wait, up to U_CLOSE_MAX in all.  If that fails they go on waiting; the next call
 * tries again.  Caller holds the lock.
 */
static void start_waiting(void)
{
	struct closer *c;

	while (waiting != NULL && busy_count < U_CLOSE_MAX) {
		c = waiting;
		if (u_thread_start(&c->thread, "vi-close", closer_run, c) != 0)
			return;
		u_thread_detach(c->thread);
		next_waiting();
		begin(c);
	}
}

void u_close_apart(int fd)
{
	struct closer *c = calloc(1, sizeof(*c)), **at;

	if (c == NULL)
		return; /* left open: any close might block */
	c->fd = fd;
	pthread_mutex_lock(&lock);
	for (at = &waiting; *at != NULL; at = &(*at)->next)
		;
	*at = c;
	waiting_count++;
	start_waiting();
	pthread_mutex_unlock(&lock);
}

/*
 * Peeks at the next message, with room for its sender's credentials, which distinguish an empty message from none, but
 * without room for a descriptor.  Returns 1 when the message has no descriptor, 0 when there is no message or the peek
 * failed, -EBUSY when it has descriptors, -EAGAIN to peek again: a signal came, or a reset by the peer was reported,
 * once, ahead of the messages that came before it.  SO_PASSCRED is set.
 */
static int peek(int sock)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct msghdr mh = { .msg_control = &control, .msg_controllen = sizeof(control) };

	if (recvmsg(sock, &mh, MSG_PEEK | MSG_DONTWAIT) < 0)
		return errno == ECONNRESET || errno == EINTR ? -EAGAIN : 0;
	if ((mh.msg_flags & MSG_CTRUNC) != 0)
		return -EBUSY;
	return mh.msg_controllen > 0;
}

/*
 * Reads and discards the queue of a socket that was shut down, so that nothing is added.  True: it is empty.  False:
 * descriptors wait there, or more than UNREAD_MAX messages, or a call failed.
 */
static bool read_clean(int sock)
{
	int i, on = 1, more = -EAGAIN;
	char byte;

	if (setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0)
		return false;
	for (i = 0; i < UNREAD_MAX && (more == 1 || more == -EAGAIN); i++) {
		more = peek(sock);
		if (more == 1)
			recv(sock, &byte, sizeof(byte), MSG_DONTWAIT);
	}
	return more == 0;
}

/* Closing a socket with unread messages resets it, and its peer loses the last messages. */
void u_hang_up(int sock)
{
	shutdown(sock, SHUT_RDWR);
	if (read_clean(sock))
		close(sock);
	else
		u_close_apart(sock);
}

void u_hang_up_listener(int sock)
{
	int early;

	shutdown(sock, SHUT_RD);
	do {
		early = accept4(sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (early >= 0)
			u_hang_up(early);
	} while (early >= 0 || errno == EINTR || errno == ECONNABORTED);
	if (errno == EINVAL || errno == EAGAIN)
		close(sock);
	else
		u_close_apart(sock);
}

/* Only memory of memfd_create() has seals. */
void u_close_foreign(int fd)
{
	if (fd < 0)
		return;
	if (fcntl(fd, F_GET_SEALS) >= 0 || u_fd_of_module(fd, NULL))
		close(fd);
	else
		u_close_apart(fd);
}

void u_close_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	busy = waiting = NULL;
	busy_count = waiting_count = 0;
}

unsigned int u_close_busy(void)
{
	unsigned int count;

	pthread_mutex_lock(&lock);
	count = busy_count + waiting_count;
	pthread_mutex_unlock(&lock);
	return count;
}

void u_close_signal(int sig)
{
	pthread_mutex_lock(&lock);
	nudge_signal = sig;
	pthread_mutex_unlock(&lock);
}

/*
 * Sends the signal to a closing thread if it is due, and sets the time of the next.  The thread cannot end before this
 * returns: it first takes the lock to leave the list.  Caller holds the lock.
 */
static void nudge(struct closer *c, int64_t now)
{
	if (now < c->nudge_at)
		return;
	if (nudge_signal != 0)
		pthread_kill(c->thread, nudge_signal);
	c->every = c->every * 2 < NUDGE_MAX_NS ? c->every * 2 : NUDGE_MAX_NS;
	c->nudge_at = now + c->every;
}

int64_t u_close_timers(int64_t now)
{
	int64_t next = U_NEVER;
	struct closer *c;

	pthread_mutex_lock(&lock);
	start_waiting();
	for (c = busy; c != NULL; c = c->next) {
		nudge(c, now);
		next = c->nudge_at < next ? c->nudge_at : next;
	}
	if (waiting != NULL && now + NUDGE_MAX_NS / 10 < next)
		next = now + NUDGE_MAX_NS / 10;
	pthread_mutex_unlock(&lock);
	return next;
}
