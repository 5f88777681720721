// SPDX-License-Identifier: BSD-2-Clause
#include "vs_init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "st_stream.h"
#include "vs_ask.h"
#include "vs_env.h"
#include "vs_epoll.h"
#include "vs_io_wait.h"
#include "vs_item.h"
#include "vs_late.h"
#include "vs_mark.h"
#include "vs_place.h"
#include "vs_real.h"
#include "vs_signal.h"
#include "vs_sock.h"
#include "vs_sock_promote.h"
#include "vs_table.h"
#include "vs_time.h"

#define EXEC_WAIT_MS 1000
#define FORK_WAIT_MS 1000
#define LINGER_MS 10000
#define NUMBERS_LEAST 64

void vs_say(const char *line)
{
	char text[300];
	size_t n;

	snprintf(text, sizeof(text), "libvisock: %s\n", line);
	n = strlen(text);
	if (vs_real.write(STDERR_FILENO, text, n) != (ssize_t)n)
		return; /* there is nobody to tell */
}

/* The process whose streams these are: a child that shares its memory has another number. */
static pid_t own;

void vs_exit_prepare(void)
{
	int before = errno;

	if (!vs_env.possible || getpid() != own)
		return;
	st_deliver(LINGER_MS);
	vs_stat_publish();
	errno = before;
}

/*
 * True: neither statistics nor a log are asked for.  Standard error is the program's: nothing is written there then.
 * The variable is that of the process that has started this one if that was silent.
 */
static bool is_silent(void)
{
	const char *file = secure_getenv("VIADUCT_LOG_FILE");

	return !vs_stat_wanted && !secure_getenv("VIADUCT_LOG") &&
	       (!file || strcmp(file, "/dev/null") == 0);
}

/*
 * Chooses where the numbers of own descriptors begin, here, for streams, and for the fabric by VIADUCT_FD_FROM: where
 * those of the program hardly ever are, but within its limit.
 */
static void choose_numbers(struct st_config *config)
{
	struct rlimit limit;
	char text[16];

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < (rlim_t)vs_ours_from + NUMBERS_LEAST)
		vs_ours_from = (int)(limit.rlim_cur / 2);
	config->low_fd = vs_ours_from;
	snprintf(text, sizeof(text), "%d", vs_ours_from);
	setenv("VIADUCT_FD_FROM", text, 1);
}

static void end(void *unused);

int __cxa_atexit(void (*run)(void *arg), void *arg, void *library);

static void begin(void) __attribute__((constructor));
/*
 * When the library is loaded: finds the originals, reads the environment, begins statistics and, if some connection may
 * be promoted, streams.  With a mistake in the environment, which it prints, none is.
 */
static void begin(void)
{
	char error[VS_ENV_ERROR];
	int before = errno;
	struct st_config config = { .size = sizeof(config),
				    .log = vs_say,
				    .sleep = vs_io_sleep,
				    .opened = vs_place_threads };

	own = getpid();
	/* Before there is anything else to run at exit(), so that it is the last: destructors of libraries may send. */
	__cxa_atexit(end, NULL, NULL);
	vs_real_init();
	at_quick_exit(vs_exit_prepare);
	if (vs_env_read(&vs_env, error) != 0) {
		vs_say(error);
		vs_env = (struct vs_env){ .promote = VS_NEVER };
	}
	if (vs_env.all)
		vs_mark_calls();
	vs_stat_open(secure_getenv(VS_ENV_STATS), vs_env.program);
	vs_spin_init();
	config.spin_us = (uint32_t)(vs_spin_ns / 1000);
	config.pollers = vs_env.pollers;
	if (vs_env.possible) {
		if (is_silent()) {
			config.log = NULL;
			setenv("VIADUCT_LOG_FILE", "/dev/null", 0);
		}
		if (vs_env.affinity[0])
			setenv("VIADUCT_AFFINITY", vs_env.affinity, 1);
		choose_numbers(&config);
		vs_env_keep();
		st_init(&config);
	}
	errno = before;
}

/*
 * True: a signal handler has interrupted a use of a stream or a set, and calls exit(): nothing can be closed in order.
 */
static bool interrupted(void)
{
	return vs_items_held() || vs_sock_any_interrupted();
}

/*
 * At exit(): ends all sockets, which counts them, and waits 10 s at most until what they sent arrives; in a handler
 * that has interrupted a use of one it only waits.
 */
static void end(void *unused)
{
	struct vs_obj *o;
	int fd = -1;

	(void)unused;
	if (interrupted()) {
		vs_exit_prepare();
		return;
	}
	while ((fd = vs_table_next(fd + 1)) >= 0) {
		o = vs_table_take(fd);
		if (!o)
			continue;
		if (vs_is_socket(o))
			vs_sock_close(o, fd);
		vs_put(o);
	}
	vs_stat_publish();
	if (vs_env.possible)
		st_fini(LINGER_MS);
}

/* ---- descriptors ---- */

/* Gives the reference of a set back that was closed by a handler; false: it is not possible yet. */
static bool put_late(struct vs_obj *o)
{
	if (vs_items_held())
		return false;
	vs_put(o);
	return true;
}

void vs_forget_fd(int fd)
{
	struct vs_obj *o = vs_table_take(fd);

	if (!o)
		return;
	if (vs_is_socket(o)) {
		if (vs_sock_close_late(o, fd))
			return;
		vs_sock_close(o, fd);
	} else if (vs_unlikely(vs_items_held()) && vs_late_claim(o, put_late)) {
		vs_late_add(o);
		return;
	}
	vs_put(o);
}

void vs_dup_made(int fd, int made)
{
	struct vs_obj *o = vs_get(fd);

	if (!o)
		return;
	vs_table_set(made, o);
	vs_put(o);
	vs_stdio_fd(made);
}

void vs_give_kernel(int fd, enum vs_why why)
{
	struct vs_obj *o = vs_get(fd);

	if (!o)
		return;
	vs_sock_share();
	vs_sock_bar(o, why);
	vs_sock_wait_tcp(o, EXEC_WAIT_MS);
	vs_put(o);
}

/* Those from vs_ours_from on that an exec would close may be ours, but only once a promotion was tried. */
int vs_close_all(unsigned int from, unsigned int to, int flags)
{
	unsigned int ours = (unsigned int)vs_ours_from;
	struct dirent *e;
	int fd, have, rc = 0;
	DIR *d;

	if (!vs_sock_any_asked() || to < ours)
		return vs_real.close_range(from, to, flags);
	/* First: the folder's own descriptor may be among these numbers. */
	if (from < ours)
		rc = vs_real.close_range(from, ours - 1, flags);
	d = rc == 0 ? opendir("/proc/self/fd") : NULL;
	if (!d)
		return rc == 0 ? vs_real.close_range(from < ours ? ours : from, to, flags) : rc;
	while ((e = readdir(d)) != NULL) {
		fd = (int)strtol(e->d_name, NULL, 10);
		if (e->d_name[0] == '.' || fd < vs_ours_from || (unsigned int)fd < from ||
		    (unsigned int)fd > to || fd == dirfd(d))
			continue;
		have = vs_real.fcntl64(fd, F_GETFD, 0);
		if (have >= 0 && !(have & FD_CLOEXEC))
			vs_real.close(fd);
	}
	closedir(d);
	return rc;
}

/* ---- other processes ---- */

/* Calls `act` for all sockets; `busy`: for those alone that have a VI or may get one. */
static void each_socket(void (*act)(struct vs_obj *o, enum vs_why why), enum vs_why why, bool busy)
{
	struct vs_obj *o;
	int fd = -1;

	while ((fd = vs_table_next(fd + 1)) >= 0) {
		o = vs_get(fd);
		if (!o)
			continue;
		if (vs_is_socket(o) && (!busy || vs_sock_uses_vi(o)))
			act(o, why);
		vs_put(o);
	}
}

void vs_unpark_all(void)
{
	int fd = -1, before = errno;
	struct vs_obj *o;

	while ((fd = vs_table_next(fd + 1)) >= 0) {
		o = vs_get(fd);
		if (!o)
			continue;
		if (o->kind == VS_EPOLL && o->epoll)
			vs_epoll_unpark(o);
		vs_put(o);
	}
	errno = before;
}

/* Rounded down; 0 when it is over. */
static int ms_left(const struct timespec *until)
{
	struct timespec left = vs_time_left(until);

	return (int)(left.tv_sec * 1000 + left.tv_nsec / 1000000);
}

/*
 * Bars all sockets, for ever - with `busy` those alone that have a VI or may soon - then waits until they are with the
 * kernel, wait_ms at most in all.
 */
static void bar_all(enum vs_why why, bool busy, int wait_ms)
{
	struct timespec until = vs_in_ns((uint64_t)wait_ms * 1000000);
	int fd = -1, before = errno;
	struct vs_obj *o;

	each_socket(vs_sock_forbid, why, busy);
	each_socket(vs_sock_bar, why, busy);
	while ((fd = vs_table_next(fd + 1)) >= 0) {
		o = vs_get(fd);
		if (!o)
			continue;
		vs_sock_wait_tcp(o, ms_left(&until));
		vs_put(o);
	}
	errno = before;
}

void vs_kernel_only(enum vs_why why)
{
	if (!vs_sock_bar_new(why))
		bar_all(why, false, EXEC_WAIT_MS);
}

/*
 * A child has the sockets but not the VIs of its parent.  So the bytes of connections that have one go
 * back to the kernel before fork(), and stay there: from then on two processes may use them.
 */
void vs_fork_prepare(void)
{
	vs_unpark_all();
	vs_sock_share();
	bar_all(VS_WHY_FORK, true, FORK_WAIT_MS);
}

/*
 * In a child: the VIs are the parent's, no lock is held, and it counts in a slot of its own; bytes moved before count
 * for the parent.
 */
void vs_fork_child(void)
{
	own = getpid();
	vs_ask_forked();
	vs_table_forked();
	vs_sock_forked();
	vs_epoll_forked();
	if (vs_env.possible)
		st_fork_child();
	vs_stat_child(vs_env.program);
	vs_stat_publish_none();
}

/*
 * The next program gets those without FD_CLOEXEC, by the kernel, where they stay if exec fails; what the others have
 * sent arrives.  Waits a second at most for all, and in a child of vfork() for its parent.
 */
void vs_exec_prepare(void)
{
	struct timespec until = vs_in_ns(EXEC_WAIT_MS * 1000000ull);
	int fd = -1, flags, before = errno;
	struct vs_obj *o;

	vs_unpark_all();
	while ((fd = vs_table_next(fd + 1)) >= 0) {
		flags = vs_real.fcntl64(fd, F_GETFD, 0);
		o = flags >= 0 ? vs_get(fd) : NULL;
		if (!o)
			continue;
		if (flags & FD_CLOEXEC) {
			vs_sock_deliver(o, ms_left(&until));
		} else {
			vs_sock_bar(o, VS_WHY_EXEC);
			if (vs_sock_wait_tcp(o, ms_left(&until)) != 0)
				vs_ask_for(o);
		}
		vs_put(o);
	}
	vs_stat_publish();
	errno = before;
}
