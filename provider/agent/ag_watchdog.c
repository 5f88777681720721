/* SPDX-License-Identifier: BSD-2-Clause */
#include "ag_watchdog.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "u_futex.h"
#include "u_log.h"
#include "u_thread.h"
#include "u_time.h"

#define ANY UINT32_MAX
/* if the watchdog itself is so late, no thread of the process ran */
#define LATE_NS (AG_STAND_NS / 4)

static bool at_work(uint32_t seq)
{
	return (seq & 1) != 0;
}

/*
 * Sleeps while the watched thread rests, or until the watchdog is to stop.  Each thread writes its own word,
 * then reads the other's, so one of them sees the other's store.
 */
static void sleep_until_work(struct ag_watchdog *w)
{
	atomic_store(&w->asleep, 1);
	while (!at_work(atomic_load(&w->seq)) && atomic_load(&w->asleep) == 1 &&
	       atomic_load(&w->stop) == 0)
		u_futex_wait(&w->asleep, 1, ANY, -1, true);
	atomic_store(&w->asleep, 0);
}

/* Reads the first word of a file of the watched thread in /proc, or "unknown" if it cannot be read. */
static void thread_word(const struct ag_watchdog *w, const char *what, char *text, size_t size)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", w->tid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n ")] = '\0';
	if (text[0] == '\0' || strcmp(text, "0") == 0)
		snprintf(text, size, "unknown");
}

/* Logs, at a limited rate, that the agent stands still, and in which system call. */
static void report(struct ag_watchdog *w)
{
	char call[32], where[64];

	thread_word(w, "syscall", call, sizeof(call));
	thread_word(w, "wchan", where, sizeof(where));
	u_log_ratelimited(
		w->ratelimit,
		"the agent of host %u has stood still for more than %d s (system call %s, in %s): "
		"nobody is served",
		w->host, (int)(AG_STAND_NS / 1000000000), call, where);
	atomic_fetch_add(&w->reports, 1);
}

/*
 * Sleeps for AG_STAND_NS, and reports if the watched thread was at the same work all the time; once for each
 * time.  A delay of all threads is not reported.
 */
static void check(struct ag_watchdog *w, uint32_t *reported)
{
	uint32_t seq = atomic_load(&w->seq);
	int64_t from = u_now_ns();

	u_futex_wait(&w->stop, 0, ANY, AG_STAND_NS, true);
	if (atomic_load(&w->seq) != seq || *reported == seq || u_now_ns() - from < AG_STAND_NS ||
	    u_now_ns() - from > AG_STAND_NS + LATE_NS)
		return;
	*reported = seq;
	report(w);
}

/* Checks the watched thread while it works.  Logs a turn that takes too long, once, and does nothing else about it. */
static void *watchdog_run(void *arg)
{
	struct ag_watchdog *w = arg;
	uint32_t reported = 0;

	while (atomic_load(&w->stop) == 0) {
		if (at_work(atomic_load(&w->seq)))
			check(w, &reported);
		else
			sleep_until_work(w);
	}
	return NULL;
}

int ag_watchdog_start(struct ag_watchdog *w, struct u_log_ratelimit *ratelimit, uint32_t host)
{
	w->ratelimit = ratelimit;
	w->host = host;
	w->tid = (int)syscall(SYS_gettid);
	atomic_store(&w->stop, 0);
	atomic_store(&w->asleep, 0);
	atomic_store(&w->seq, 1);
	return u_thread_start(&w->thread, "vi-agent-dog", watchdog_run, w);
}

/* Wakes the watchdog, if it sleeps because the watched thread rested. */
static void wake(struct ag_watchdog *w)
{
	if (atomic_exchange(&w->asleep, 0) != 0)
		u_futex_wake(&w->asleep, 1, ANY, true);
}

void ag_watchdog_stop(struct ag_watchdog *w)
{
	atomic_store(&w->stop, 1);
	u_futex_wake(&w->stop, 1, ANY, true);
	wake(w);
	u_thread_join(w->thread);
}

void ag_watchdog_rest(struct ag_watchdog *w)
{
	atomic_fetch_add(&w->seq, 1);
}

void ag_watchdog_work(struct ag_watchdog *w)
{
	atomic_fetch_add(&w->seq, 1);
	if (atomic_load(&w->asleep) != 0)
		wake(w);
}
