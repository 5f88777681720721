/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors of a library in programs that may have closed their standard ones or have few. */
#ifndef U_FD_H
#define U_FD_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

/*
 * Moves a descriptor away from 0..2, where the program would print into it.  Takes `fd`;
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

#define U_FD_ERROR 96

/*
 * strerror(), but for EMFILE and ENFILE one text for all callers, with the limit of this process
 * and the command that raises it.  Returns `text` or a constant; `err` is positive.
 */
const char *u_fd_error(int err, char text[U_FD_ERROR]);

/* Not even this process's hard limit allows so many. */
bool u_fd_scarce(uint64_t wanted);

#endif
