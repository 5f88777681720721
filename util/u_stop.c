/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_stop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "u_base.h"
#include "u_cancel.h"
#include "u_fd.h"

/*
 * A helper process stops the threads, since a thread may not trace others of its process.  It is made as by
 * vfork(): it has the memory of this process, and the thread that made it waits in the kernel until it ends.
 * It makes system calls only, since stopped threads may hold the locks of the C library.  When it ends,
 * for any reason, the kernel resumes all threads that it has stopped.
 */

/* Not instrumented for the thread sanitizer, whose locks a stopped thread may hold. */
#define RAW __attribute__((no_sanitize_thread))

#define STACK_BYTES (256u << 10)
#define TIDS_MAX (4u << 20) /* above every thread id: PID_MAX_LIMIT of the kernel */
#define THREADS_MAX (64u << 10)
#define LIMIT_S 5 /* the longest wait for a thread to stop */

struct thread {
	int32_t tid;
	int32_t signal; /* the one that it was about to take, and takes when it is resumed */
};

/* The helper's own memory; pages that are not touched take none. */
struct room {
	uint8_t stack[STACK_BYTES];
	uint8_t known[TIDS_MAX / 8]; /* a bit for each number of a thread */
	char names[32u << 10];
	struct thread threads[THREADS_MAX];
};

struct stop {
	int (*run)(void *arg);
	void *arg;
	struct room *room;
	uint32_t count;	  /* of room->threads */
	uint32_t stopped; /* how many of these have stopped; the others have been told to */
	uint64_t listed;  /* threads in the last list of them */
	bool own;	  /* the calling thread is in that list */
	int tasks;	  /* /proc/self/task of the process that has the threads */
	int32_t self;	  /* the thread that waits for the helper */
	const char *why;  /* NULL: `run` was called */
	bool done;	  /* the helper has this memory, and has set `err` */
	int err;
};

static const char denied[] =
	"other threads cannot be stopped: ptrace is forbidden, or in use by a debugger";
static const char foreign[] = "other threads cannot be stopped: /proc is of another PID name space";
static const char late[] = "a thread cannot be stopped: the kernel keeps it inside a system call";

/* ---- in the helper ------------------------------------------------------------------------------ */

RAW static long trace(long request, int32_t tid, long data)
{
	return syscall(SYS_ptrace, request, (long)tid, 0L, data);
}

/* Whole seconds of the monotonic clock, by a system call. */
RAW static int64_t now_s(void)
{
	struct timespec t = { 0 };

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/*
 * Has the thread ended?  The letter after the name in parentheses, in /proc/self/task/TID/stat, shows it.  `tid`: its
 * number as text.
 */
RAW static bool has_ended(const struct stop *s, const char *tid)
{
	char path[32], text[256], *end = text;
	long fd, n;

	for (n = 0; tid[n] != '\0' && n < 16; n++)
		path[n] = tid[n];
	for (const char *rest = "/stat"; *rest != '\0';)
		path[n++] = *rest++;
	path[n] = '\0';
	fd = syscall(SYS_openat, (long)s->tasks, path, O_RDONLY | O_CLOEXEC, 0L);
	if (fd < 0)
		return errno == ENOENT || errno == ESRCH;
	n = syscall(SYS_read, fd, text, sizeof(text));
	syscall(SYS_close, fd);
	for (long i = 0; i + 2 < n; i++)
		if (text[i] == ')')
			end = text + i + 2;
	return n <= 0 || *end == 'Z' || *end == 'X';
}

/* Reads the digits at the beginning of the name as a number; 0: there are none. */
RAW static int32_t number(const char *name)
{
	int32_t tid = 0;

	for (const char *c = name; *c >= '0' && *c <= '9'; c++)
		tid = tid * 10 + (*c - '0');
	return tid;
}

/*
 * Begins to stop a thread.  1: begun; 0: it is known, has ended, or is the calling one; -EPERM, -EOPNOTSUPP: it cannot
 * be stopped.  After 1 await() waits for it.  `name`: that of its folder in /proc/self/task.
 */
RAW static int begin(struct stop *s, const char *name)
{
	int32_t tid = number(name);
	int err;

	if (tid <= 0 || tid == s->self || (uint32_t)tid >= TIDS_MAX ||
	    s->room->known[tid / 8] & (1u << (tid % 8)))
		return 0;
	if (s->count == THREADS_MAX)
		return -EOPNOTSUPP;
	if (trace(PTRACE_SEIZE, tid, 0) == 0 && trace(PTRACE_INTERRUPT, tid, 0) == 0) {
		s->room->known[tid / 8] |= (uint8_t)(1u << (tid % 8));
		s->room->threads[s->count++] = (struct thread){ .tid = tid };
		return 1;
	}
	err = -errno;
	if (err == -ESRCH || has_ended(s, name))
		return 0;
	s->why = denied;
	return err == -EPERM ? -EPERM : -EOPNOTSUPP;
}

struct entry {
	uint64_t inode, offset;
	uint16_t len;
	uint8_t type;
	char name[];
};

/*
 * Lists the threads, and, unless `only_check`, begins to stop new ones.  Returns the number of those, or -errno.  Sets
 * s->listed, and s->own if the calling thread is among them.
 */
RAW static int list(struct stop *s, bool only_check)
{
	char *names = s->room->names;
	int found = 0, err;
	long n;

	s->listed = 0;
	if (syscall(SYS_lseek, (long)s->tasks, 0L, SEEK_SET) < 0)
		return -EOPNOTSUPP;
	while ((n = syscall(SYS_getdents64, (long)s->tasks, names, sizeof(s->room->names))) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *)(void *)(names + at);

			s->listed += number(e->name) > 0;
			s->own |= number(e->name) == s->self;
			err = only_check ? 0 : begin(s, e->name);
			if (err < 0)
				return err;
			found += err;
			at += e->len;
		}
	}
	return n < 0 ? -EOPNOTSUPP : found;
}

/*
 * Waits until the thread has stopped, at most until `end`, of now_s(): then -EOPNOTSUPP, and s->why is set.  0 also if
 * it has ended: then t->tid becomes 0.  Notes a signal that it was about to take in t->signal.
 */
RAW static int await(struct stop *s, struct thread *t, int64_t end)
{
	const struct timespec nap = { .tv_nsec = 20000 };
	int status = 0;
	long got;

	while ((got = syscall(SYS_wait4, (long)t->tid, &status, __WALL | WNOHANG, NULL)) == 0) {
		if (now_s() > end) {
			s->why = late;
			return -EOPNOTSUPP;
		}
		syscall(SYS_nanosleep, &nap, NULL);
	}
	/* It may have ended, and may have been about to take a signal. */
	if (got < 0 || !WIFSTOPPED(status))
		t->tid = 0;
	else if (status >> 16 == 0)
		t->signal = WSTOPSIG(status);
	return 0;
}

/*
 * Was the last list() complete?  The kernel cuts a list at a thread that ends.  The folder has two more links than
 * threads.
 */
RAW static bool has_all(const struct stop *s)
{
	struct stat folder;

	return syscall(SYS_newfstatat, (long)s->tasks, "", &folder, (long)AT_EMPTY_PATH) == 0 &&
	       s->listed + 2 >= folder.st_nlink;
}

/*
 * Repeats until a list is complete and has no new thread: stopped threads make no others.  0 or -errno, -EOPNOTSUPP
 * after LIMIT_S seconds, too; threads that have stopped by then stay so until let_all_go().
 */
RAW static int stop_all(struct stop *s)
{
	int64_t end = now_s() + LIMIT_S;
	int found, err;
	bool all;

	do {
		found = list(s, false);
		if (found < 0)
			return found;
		for (; s->stopped < s->count; s->stopped++) {
			err = await(s, &s->room->threads[s->stopped], end);
			if (err != 0)
				return err;
		}
		all = has_all(s);
		if (!all && now_s() > end) {
			s->why = late;
			return -EOPNOTSUPP;
		}
	} while (found > 0 || !all);
	return 0;
}

/*
 * Checks that the list has the calling thread: thread ids of another name space are those of other processes.  0, or
 * -EOPNOTSUPP, and then s->why is set.
 */
RAW static int find_self(struct stop *s)
{
	int err = list(s, true);

	if (err < 0 || s->own)
		return err;
	s->why = foreign;
	return -EOPNOTSUPP;
}

/* Resumes the stopped threads; the end of this process resumes the rest, with signals that they were about to take. */
RAW static void let_all_go(const struct stop *s)
{
	for (uint32_t i = 0; i < s->stopped; i++)
		if (s->room->threads[i].tid != 0)
			trace(PTRACE_DETACH, s->room->threads[i].tid, s->room->threads[i].signal);
}

/* The helper: stops the threads, calls `run`, and resumes them.  Returns 0; the result is in s->err. */
RAW static int help(void *arg)
{
	struct stop *s = arg;
	int err = find_self(s);

	if (err == 0)
		err = stop_all(s);
	if (err == 0) {
		s->why = NULL;
		err = s->run(s->arg);
	}
	let_all_go(s);
	s->err = err;
	s->done = true;
	return 0;
}

/* ---- in the process --------------------------------------------------------------------------- */

/*
 * clone() by the name that no sanitizer replaces.  The thread sanitizer's clone() assumes that each child has memory of
 * its own, and stores a note that no thread may be started from now on, here in memory that this process shares.
 */
extern int __clone(int (*run)(void *), void *stack, int flags, void *arg, ...);

/*
 * Starts the helper, and waits until it has ended.  wait() of the program does not see it, since it ends without a
 * signal.  0 or -errno of the start; s->done and s->err tell the rest.
 */
static int start_helper(struct stop *s)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	sigset_t all, before;
	int pid, err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = __clone(help, s->room->stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_UNTRACED,
		      s);
	err = pid < 0 ? -errno : 0;
	if (pid > 0)
		while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

/* Starts a helper and waits for its end.  Returns the result of `run`, or -errno with the reason in s->why. */
static int stop_by_helper(struct stop *s)
{
	int err;

	s->room = mmap(NULL, sizeof(*s->room), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->room == MAP_FAILED)
		return -ENOMEM;
	s->count = s->stopped = 0;
	err = start_helper(s);
	munmap(s->room, sizeof(*s->room));
	if (err != 0)
		return err == -ENOMEM ? err : -EOPNOTSUPP;
	if (s->done)
		return s->err;
	s->why =
		"other threads cannot be stopped: an emulator gives no process the memory of another";
	return -EOPNOTSUPP;
}

/* Allows or forbids tracing of this process: Yama demands that it agrees; without Yama prctl() fails. */
static bool agree(bool on)
{
	return prctl(PR_SET_PTRACER, on ? PR_SET_PTRACER_ANY : 0, 0, 0, 0) == 0;
}

int u_stop_others(int (*run)(void *arg), void *arg, const char **why)
{
	struct stop s = { .run = run, .arg = arg, .self = (int32_t)syscall(SYS_gettid) };
	int err;

	*why = "/proc/self/task cannot be read";
	s.tasks = u_fd_above_std(open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (s.tasks < 0)
		return errno == ENOENT || errno == EACCES ? -EOPNOTSUPP : -errno;
	s.why = "there is no process that could stop other threads";
	err = stop_by_helper(&s);
	if (err == -EPERM && s.why == denied && agree(true)) {
		err = stop_by_helper(&s);
		agree(false);
	}
	close(s.tasks);
	*why = s.why;
	return err == -EPERM ? -EOPNOTSUPP : err;
}
