/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neither a process group nor the kernel's «subreaper» would do: shells and daemons make groups and sessions of
 * their own, in which the terminal's signals would not reach PEs either; and a process that takes over orphans
 * would have the agents that PEs start and the masters of ssh connections among its children.
 *
 * A process may end, and another have its number, at any time: so it is held by a descriptor before it is looked at.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run_job.h"
#include "run_left.h"

#define VARIABLE "OSHRUN_JOB"
#define RUN_LEFT_MS 1000
#define POLL_MS 5
#define AT_ONCE 64 /* processes that are waited for together */
#define LOOKS 8	   /* at an environment that is empty */
#define FIELDS_10 " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"

/* What a process is to the job. */
enum left {
	LEFT_NOT,  /* none of its */
	LEFT_ONE,  /* one that it left behind */
	LEFT_OPEN, /* cannot be told now */
};

static char name[17]; /* of the job */

int run_left_begin(void)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return -EIO;
	snprintf(name, sizeof(name), "%016llx", (unsigned long long)number);
	return 0;
}

int run_left_mark(void)
{
	return setenv(VARIABLE, name, 1);
}

enum found { FOUND_NOTHING, FOUND_OTHERS, FOUND_IT };

/*
 * Has the file of /proc/PID this string among its strings, which end with zeros, or others, or none?  The memory
 * that it shows is gone after execve(): where its begin can no longer be read, more may have followed.
 */
static enum found find_string(int pid, const char *file, const char *string)
{
	enum found found = FOUND_NOTHING;
	char path[64], *text = NULL;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	f = fopen(path, "re");
	if (f == NULL)
		return FOUND_OTHERS; /* those of another user */
	while (found != FOUND_IT && getdelim(&text, &room, '\0', f) > 0)
		found = strcmp(text, string) == 0 ? FOUND_IT : FOUND_OTHERS;
	rewind(f);
	if (found == FOUND_OTHERS && getc(f) == EOF)
		found = FOUND_NOTHING;
	free(text);
	fclose(f);
	return found;
}

/*
 * Is it an agent on demand? One that a PE has started because there was none serves other programs as well, and
 * leaves by itself.
 */
static bool is_agent(int pid)
{
	return find_string(pid, "cmdline", "--on-demand") == FOUND_IT;
}

/*
 * Is it a process of this user? The memory in which its environment lies could make a reader wait, which only harms
 * its own user.
 */
static bool is_ours(int pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &st) == 0 && st.st_uid == geteuid();
}

/*
 * Where the code of its program begins.  0 for threads of the kernel and for processes that have ended, and while the
 * kernel loads the program.
 */
static unsigned long long start_of_code(int pid)
{
	char path[64], text[1024];
	unsigned long long start = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* Field 26; the second is a name in parentheses, in which anything may be. */
	if (strrchr(text, ')') != NULL)
		sscanf(strrchr(text, ')') + 1, " %*s" FIELDS_10 FIELDS_10 " %*s %*s %llu", &start);
	return start;
}

/* Has it a program? Threads of the kernel, and processes that have ended, have none. */
static bool has_program(int pid)
{
	char path[64], target[1];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return readlink(path, target, sizeof(target)) > 0;
}

/*
 * What a process is to the job. In execve() a process has its new memory for a while before its environment can be
 * read there. One that is empty though a program is loaded may have been read in the meantime, so it is read again.
 */
static enum left is_left(int pid)
{
	char entry[sizeof(VARIABLE) + sizeof(name)];

	if (!is_ours(pid))
		return LEFT_NOT;
	snprintf(entry, sizeof(entry), "%s=%s", VARIABLE, name);
	for (int i = 0; i < LOOKS; i++) {
		enum found found = find_string(pid, "environ", entry);

		if (found == FOUND_IT)
			return is_agent(pid) ? LEFT_NOT : LEFT_ONE;
		if (found == FOUND_OTHERS)
			return LEFT_NOT;
		if (start_of_code(pid) == 0)
			return has_program(pid) ? LEFT_OPEN : LEFT_NOT;
	}
	return LEFT_NOT;
}

/* Sends a signal, by the descriptor if that is not -1: before Linux 5.3 processes have none. False: that failed. */
static bool send(int pid, int fd, int number)
{
	if (fd >= 0)
		return syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0;
	return kill(pid, number) == 0;
}

/*
 * Sends a signal, and after SIGTERM SIGCONT, to the process, if it is one of the job: LEFT_ONE; then its descriptor,
 * for the caller to close, is in *fd_out, or -1 where there are none. LEFT_NOT also if this process may not send
 * signals to it.
 */
static enum left tell(int pid, int number, int *fd_out)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	enum left left = fd >= 0 || errno != ESRCH ? is_left(pid) : LEFT_NOT;

	if (left == LEFT_ONE && !send(pid, fd, number))
		left = LEFT_NOT;
	if (left == LEFT_ONE) {
		if (number == SIGTERM)
			send(pid, fd, SIGCONT); /* it may be stopped */
		*fd_out = fd;
	} else if (fd >= 0) {
		close(fd);
	}
	return left;
}

/*
 * Sends a signal to all processes that the job has left, up to AT_ONCE. Returns how many have descriptors in `fds`, for
 * the caller to close, -1: there are no processes left, nor any of which that cannot be told now.
 */
static int tell_all(int number, struct pollfd fds[AT_ONCE])
{
	DIR *proc = opendir("/proc");
	bool found = false;
	struct dirent *entry;
	int n = 0, fd = -1;

	while (proc != NULL && n < AT_ONCE && (entry = readdir(proc)) != NULL) {
		int pid = (int)strtol(entry->d_name, NULL, 10);
		enum left left = pid <= 1 || pid == getpid() ? LEFT_NOT : tell(pid, number, &fd);

		found = found || left != LEFT_NOT;
		if (left == LEFT_ONE && fd >= 0)
			fds[n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
	if (proc != NULL)
		closedir(proc);
	return found ? n : -1;
}

/* Has a signal come by which the user says that he does not want to wait? Those before it are taken and dropped. */
static bool is_hurried(int signals)
{
	struct signalfd_siginfo s;

	while (read(signals, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
		if (s.ssi_signo == SIGINT || s.ssi_signo == SIGTERM || s.ssi_signo == SIGHUP)
			return true;
	}
	return false;
}

/*
 * Waits until those have ended, or for POLL_MS where there are none. False: the time is over, or a signal for this
 * process has come.
 */
static bool await(struct pollfd *fds, int n, int signals, int64_t until)
{
	int64_t left;

	for (int i = 0; i < n;) {
		left = until - run_now();
		if (left <= 0 || is_hurried(signals))
			return false;
		if (poll(&fds[i], 1,
			 left / 1000000 < POLL_MS ? (int)(left / 1000000) + 1 : POLL_MS) > 0)
			i++;
	}
	if (n == 0) /* there are no descriptors, or no processes that are known */
		poll(NULL, 0, POLL_MS);
	return run_now() < until;
}

void run_left_end(int signals)
{
	int64_t until = run_now() + RUN_LEFT_MS * INT64_C(1000000);
	int64_t last = until + RUN_LEFT_MS * INT64_C(1000000);
	struct pollfd fds[AT_ONCE];
	int number = SIGTERM, n;

	while (name[0] != '\0' && run_now() < last && (n = tell_all(number, fds)) >= 0) {
		if (!await(fds, n, signals, number == SIGTERM ? until : last))
			number = SIGKILL;
		while (n > 0)
			close(fds[--n].fd);
	}
}
