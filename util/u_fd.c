/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static _Atomic int from; /* 0: not read yet */

void u_fd_reset(void)
{
	atomic_store_explicit(&from, 0, memory_order_relaxed);
}

int u_fd_from(void)
{
	int n = atomic_load_explicit(&from, memory_order_relaxed);
	const char *text;
	unsigned long v;

	if (n != 0)
		return n;
	text = secure_getenv("VIADUCT_FD_FROM");
	v = text != NULL ? strtoul(text, NULL, 10) : 0; /* u_cfg_load() refuses a bad one */
	n = v > STDERR_FILENO && v <= U_FD_FROM_MAX ? (int)v : STDERR_FILENO + 1;
	atomic_store_explicit(&from, n, memory_order_relaxed);
	return n;
}

int u_fd_above_std(int fd)
{
	int least = u_fd_from(), high, err;

	if (fd < 0 || fd >= least)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, least);
	if (high < 0 && fd > STDERR_FILENO)
		return fd;
	if (high < 0)
		high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	err = high < 0 && errno == EINVAL ? EMFILE : errno; /* EINVAL: the limit is below 4 */
	close(fd);
	errno = err;
	return high;
}

const char *u_memory_limits(char text[U_FD_ERROR])
{
	struct rlimit data, space;
	bool has_data = getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY;
	bool has_space = getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;

	if (has_data && has_space)
		snprintf(text, U_FD_ERROR, "ulimit -d is %llu, -v is %llu; raise them",
			 (unsigned long long)data.rlim_cur / 1024,
			 (unsigned long long)space.rlim_cur / 1024);
	else if (has_data || has_space)
		snprintf(text, U_FD_ERROR, "ulimit -%c is %llu; raise it", has_data ? 'd' : 'v',
			 (unsigned long long)(has_data ? data : space).rlim_cur / 1024);
	return has_data || has_space ? text : NULL;
}

const char *u_fd_error(int err, char text[U_FD_ERROR])
{
	static const char no_memory[] = "no memory left, and ";
	char limits[U_FD_ERROR];
	struct rlimit rl = { 0 };

	if (err == ENOMEM && u_memory_limits(limits) != NULL) {
		snprintf(text, U_FD_ERROR, "%s%.*s", no_memory,
			 (int)(U_FD_ERROR - sizeof(no_memory)), limits);
		return text;
	}
	if (err == EMFILE) {
		getrlimit(RLIMIT_NOFILE, &rl);
		snprintf(text, U_FD_ERROR,
			 "no file descriptor left (limit %llu); raise it with ulimit -n",
			 (unsigned long long)rl.rlim_cur);
		return text;
	}
	if (err == ENFILE)
		return "no file descriptor left on this machine; raise fs.file-max with sysctl";
	if (err == EFBIG && getrlimit(RLIMIT_FSIZE, &rl) == 0 && rl.rlim_cur != RLIM_INFINITY) {
		snprintf(text, U_FD_ERROR,
			 "a file may have %llu bytes only; raise the limit with ulimit -f",
			 (unsigned long long)rl.rlim_cur);
		return text;
	}
	return strerror(err);
}

bool u_fd_of_module(int fd, const char *kind)
{
	static const char ours[] = "anon_inode:[viaduct-";
	char path[32], name[64];
	ssize_t n;

	if (fd < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < (ssize_t)sizeof(ours))
		return false;
	name[n - 1] = '\0'; /* in place of the closing bracket */
	return strncmp(name, ours, sizeof(ours) - 1) == 0 &&
	       (kind == NULL || strcmp(name + sizeof(ours) - 1, kind) == 0);
}

bool u_fd_scarce(uint64_t wanted)
{
	struct rlimit rl;

	return getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_max < wanted;
}
