/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors that a library keeps, inside programs that may have closed their standard ones. */
#ifndef U_FD_H
#define U_FD_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/*
 * Moves a descriptor off 0..2, where the program would print into it.  Takes `fd`;
 * returns it, or another with close-on-exec, or -1 with errno; passes -1 on.
 */
static inline int u_fd_above_std(int fd)
{
	int high, err;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	err = high < 0 && errno == EINVAL ? EMFILE : errno; /* EINVAL: the limit is below 4 */
	close(fd);
	errno = err;
	return high;
}

#endif
