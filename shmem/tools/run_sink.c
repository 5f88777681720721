/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "run_sink.h"

#define FULL_BYTES ((size_t)256 << 10)
#define ATOMIC_BYTES                                                                               \
	((size_t)4096) /* PIPE_BUF: more in one write may be mixed with what others write */

struct sink {
	int fd;
	pthread_mutex_t lock;
	pthread_cond_t more;
	bool started; /* the thread */
	char *data;   /* that has come since the thread took what it writes */
	size_t bytes, room;
	size_t writing; /* bytes that the thread has taken */
	int error;
};

#define SINK(number)                                                                               \
	{                                                                                          \
		.fd = number, .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER  \
	}
static struct sink sinks[RUN_SINKS] = { SINK(STDOUT_FILENO), SINK(STDERR_FILENO), SINK(-1) };
static int event = -1;
static pid_t owner; /* the process that has the event and the threads */

/* ---- the threads ---- */

/* Bytes of the next write: the whole lines that one may have, or one line. */
static size_t piece(const char *at, size_t bytes)
{
	const char *end;

	if (bytes <= ATOMIC_BYTES)
		return bytes;
	end = memrchr(at, '\n', ATOMIC_BYTES);
	if (end == NULL)
		end = memchr(at + ATOMIC_BYTES, '\n', bytes - ATOMIC_BYTES);
	return end != NULL ? (size_t)(end + 1 - at) : bytes;
}

/* Writes all, also to a descriptor that does not block. 0 or an errno. */
static int write_all(int fd, const char *at, size_t bytes)
{
	ssize_t n;

	while (bytes > 0) {
		n = write(fd, at, piece(at, bytes));
		if (n < 0 && errno == EAGAIN) /* oshrun was given a pipe that does not block */
			poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return errno;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* Makes the event readable. */
static void notify(void)
{
	const uint64_t one = 1;
	ssize_t n = write(event, &one, sizeof(one));

	(void)n; /* it can be read already */
}

/* A thread of a sink: writes what is put there, for ever. `arg`: the sink. */
static void *run(void *arg)
{
	struct sink *s = arg;
	char *data;
	int error;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (s->bytes == 0)
			pthread_cond_wait(&s->more, &s->lock);
		data = s->data;
		s->writing = s->bytes;
		s->data = NULL;
		s->bytes = s->room = 0;
		pthread_mutex_unlock(&s->lock);
		error = write_all(s->fd, data, s->writing);
		free(data);
		pthread_mutex_lock(&s->lock);
		s->writing = 0;
		s->error = error != 0 ? error : s->error;
		notify();
	}
	return NULL;
}

/* Starts the thread of a sink, the first time. False: it has no thread, as in a child: the caller writes. */
static bool start(struct sink *s)
{
	sigset_t all, before;
	pthread_t thread;
	int rc;

	if (run_sink_event() < 0 || owner != getpid())
		return false;
	if (s->started)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		return false;
	pthread_detach(thread);
	s->started = true;
	return true;
}

/* ---- the others ---- */

int run_sink_event(void)
{
	if (event < 0) {
		event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		owner = getpid();
	}
	return event;
}

void run_sink_seen(void)
{
	uint64_t count;
	ssize_t n = read(event, &count, sizeof(count));

	(void)n;
}

void run_sink_up(int fd)
{
	sinks[RUN_SINK_UP].fd = fd;
}

/* Makes room for so many bytes more; the caller has the lock. False: no memory. */
static bool reserve(struct sink *s, size_t more)
{
	size_t room = s->room != 0 ? s->room : 4096;
	char *data;

	while (room < s->bytes + more)
		room *= 2;
	data = room != s->room ? realloc(s->data, room) : s->data;
	if (data == NULL)
		return false;
	s->data = data;
	s->room = room;
	return true;
}

void run_sink_put(enum run_sink which, const char *data, size_t bytes)
{
	struct sink *s = &sinks[which];

	if (bytes == 0)
		return;
	if (!start(s)) {
		if (s->error != 0)
			return;
		s->error = write_all(s->fd, data, bytes);
		if (s->error != 0)
			notify();
		return;
	}
	pthread_mutex_lock(&s->lock);
	if (s->error == 0 && reserve(s, bytes)) {
		memcpy(s->data + s->bytes, data, bytes);
		s->bytes += bytes;
		pthread_cond_signal(&s->more);
	} else if (s->error == 0) {
		s->error = ENOMEM;
		notify();
	}
	pthread_mutex_unlock(&s->lock);
}

/* Bytes that are not written yet; 0 where there is no thread, or after an error. */
static size_t left(struct sink *s)
{
	size_t n;

	if (!s->started || owner != getpid()) /* a child may have got the lock held */
		return 0;
	pthread_mutex_lock(&s->lock);
	n = s->error == 0 ? s->bytes + s->writing : 0;
	pthread_mutex_unlock(&s->lock);
	return n;
}

bool run_sink_full(enum run_sink which)
{
	return left(&sinks[which]) >= FULL_BYTES;
}

bool run_sink_over(enum run_sink which, size_t bytes)
{
	return left(&sinks[which]) >= bytes;
}

bool run_sink_busy(enum run_sink which)
{
	return left(&sinks[which]) > 0;
}

int run_sink_error(enum run_sink which)
{
	int error;

	pthread_mutex_lock(&sinks[which].lock);
	error = sinks[which].error;
	pthread_mutex_unlock(&sinks[which].lock);
	return error;
}

void run_sink_abandon(void)
{
	int i;

	for (i = 0; i < RUN_SINKS; i++) {
		pthread_mutex_lock(&sinks[i].lock);
		sinks[i].error = ECANCELED;
		pthread_mutex_unlock(&sinks[i].lock);
	}
}

/* CLOCK_MONOTONIC in ms. */
static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void run_sink_finish(int ms)
{
	int64_t until = now_ms() + ms, wait = ms;
	int i;

	for (i = 0; i < RUN_SINKS; i++) {
		while (run_sink_busy((enum run_sink)i) && wait > 0) {
			poll(&(struct pollfd){ .fd = event, .events = POLLIN }, 1, (int)wait);
			run_sink_seen();
			wait = until - now_ms();
		}
	}
}
