/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "beneath.h"

/* One component at a time, for kernels without openat2(2): links are refused. */
static int open_stepwise(int dir, const char *path, int flags)
{
	const int step = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	char part[NAME_MAX + 1];
	int at = openat(dir, ".", step), next;

	while (at >= 0) {
		size_t length = strcspn(path, "/");

		if (length > NAME_MAX) {
			close(at);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(part, path, length);
		part[length] = 0;
		path += length + (path[length] == '/');
		next = openat(at, length ? part : ".", *path ? step : flags | O_NOFOLLOW);
		close(at);
		if (!*path)
			return next;
		at = next;
	}
	return -1;
}

static int has_dot_dot(const char *path)
{
	const char *at;

	for (at = strstr(path, ".."); at; at = strstr(at + 1, ".."))
		if ((at == path || at[-1] == '/') && (at[2] == '/' || !at[2]))
			return 1;
	return 0;
}

int beneath_open(int dir, const char *path, int flags, int links)
{
	struct open_how how = { .flags = (unsigned int)(flags | O_CLOEXEC),
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	int fd;

	if (!links)
		how.resolve |= RESOLVE_NO_SYMLINKS;
	if (!*path)
		path = ".";
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
		if (*path == '/' || has_dot_dot(path))
			return -EXDEV;
		fd = open_stepwise(dir, path, flags | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}
