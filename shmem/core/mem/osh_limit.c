/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Only an attempt tells: what a process has of each resource is counted by the kernel, by rules of its own.  All is
 * given back at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "osh_limit.h"

#define STACK_LEAST ((size_t)1 << 20)
#define FDS_TRIED 8 /* a NIC takes as many */

/* Has this process a limit of this kind, RLIMIT_...? If so, the limit is in *out, which otherwise stays as it is. */
static bool is_limited(int limit, unsigned long long *out)
{
	struct rlimit rl;

	if (getrlimit(limit, &rl) != 0 || rl.rlim_cur == RLIM_INFINITY)
		return false;
	*out = rl.rlim_cur;
	return true;
}

/*
 * Are FDS_TRIED descriptors more than the process may still open? What failed has closed its descriptors again, so
 * one alone would not tell.
 */
static bool lacks_descriptors(void)
{
	int fds[FDS_TRIED], n = 0, err = 0;

	while (n < FDS_TRIED && err == 0) {
		fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		err = fds[n] < 0 ? errno : 0;
		n += err == 0;
	}
	while (n > 0)
		close(fds[--n]);
	return err == EMFILE;
}

/* Is it impossible to map so many bytes with this protection? */
static bool lacks_memory(size_t bytes, int protection)
{
	void *at =
		mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at != MAP_FAILED)
		munmap(at, bytes);
	return at == MAP_FAILED;
}

/* The body of a thread that ends at once. */
static void *nothing(void *unused)
{
	return NULL;
}

/* Is it impossible to start a thread? */
static bool lacks_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, nothing, NULL) != 0)
		return true;
	pthread_join(thread, NULL);
	return false;
}

/* Bytes that the stack of a new thread takes: the limit of the shell, or STACK_LEAST if that is more. */
static size_t stack_bytes(void)
{
	unsigned long long bytes = STACK_LEAST;

	is_limited(RLIMIT_STACK, &bytes);
	return bytes > STACK_LEAST ? (size_t)bytes : STACK_LEAST;
}

const char *osh_limit_find(size_t bytes, char text[OSH_LIMIT_TEXT])
{
	size_t stack = stack_bytes(), least = bytes > stack ? bytes : stack;
	unsigned long long most = 0;

	text[0] = '\0';
	if (is_limited(RLIMIT_NOFILE, &most) && lacks_descriptors())
		snprintf(text, OSH_LIMIT_TEXT,
			 "no file descriptor left (limit %llu); raise it with ulimit -n", most);
	else if (is_limited(RLIMIT_AS, &most) && lacks_memory(least, PROT_NONE))
		snprintf(text, OSH_LIMIT_TEXT,
			 "no address space left (limit %llu KiB); raise it with ulimit -v",
			 most / 1024);
	else if (is_limited(RLIMIT_DATA, &most) && lacks_memory(stack, PROT_READ | PROT_WRITE))
		snprintf(text, OSH_LIMIT_TEXT,
			 "no private memory left (limit %llu KiB); raise it with ulimit -d",
			 most / 1024);
	else if (lacks_thread())
		snprintf(text, OSH_LIMIT_TEXT,
			 "no thread left; raise ulimit -u, or pids.max of the control group");
	else if (is_limited(RLIMIT_FSIZE, &most) && most < bytes)
		snprintf(text, OSH_LIMIT_TEXT,
			 "a file, which shared memory is, may have %llu KiB only; raise it with "
			 "ulimit -f",
			 most / 1024);
	return text;
}
