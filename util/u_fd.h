/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors of a library in programs that may have closed their standard ones or have few. */
#ifndef U_FD_H
#define U_FD_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

/* Numbers of descriptors that a process keeps begin here: VIADUCT_FD_FROM, read once, and at least 3. */
int u_fd_from(void);
void u_fd_reset(void); /* for tests: reads it again */
#define U_FD_FROM_MAX (1 << 20)

/*
 * Moves a descriptor away from 0..2, where the program would print into it, and up to
 * VIADUCT_FD_FROM if possible.  Takes `fd`; returns it, or another with close-on-exec, or -1
 * with errno; in the last two cases `fd` is closed.  Passes -1 on.
 */
int u_fd_above_std(int fd);

#define U_FD_ERROR 96

/*
 * As strerror(), with more for some errors: EMFILE and ENFILE name the limit of this process and the
 * command that raises it, ENOMEM and EFBIG the limits of its memory and of its files, if it has any.
 * Returns `text` or a constant; `err` is positive.
 */
const char *u_fd_error(int err, char text[U_FD_ERROR]);

/*
 * Writes the limits on the memory of this process and its children to `text`, for a line: "ulimit -v is 4096; raise
 * it", in KiB.  Returns `text`, or NULL: there are none.
 */
const char *u_memory_limits(char text[U_FD_ERROR]);

/*
 * Did viaduct.ko make the descriptor, of that kind: "slice", "client", "irq"; NULL: of any?  The kernel
 * tells it by the name that it gave the file.  This calls nothing of the process that made the file,
 * which may be any.  False also without /proc.
 */
bool u_fd_of_module(int fd, const char *kind);

/* True: not even this process's hard limit allows that many. */
bool u_fd_scarce(uint64_t wanted);

#endif
