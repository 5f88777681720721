/* SPDX-License-Identifier: BSD-2-Clause */
/* The beginning and the end of the library in a process, and its children. */
#ifndef VS_INIT_H
#define VS_INIT_H

#include <stdbool.h>
#include <unistd.h>

#include "vs_obj.h"
#include "vs_table.h"

/* Writes one line to standard error, after "libvisock: "; what is longer than about 280 bytes is cut. */
void vs_say(const char *line);

/*
 * Before another process or program may use the epoll sets of this one: the kernel's have what the program has put into
 * them, and no more.
 */
void vs_unpark_all(void);
/* Before fork(), moves connections that have a VI to the kernel, for ever; and in its child. */
void vs_fork_prepare(void);
void vs_fork_child(void);

/* Before another program takes this process's place. */
void vs_exec_prepare(void);

/*
 * Before the process ends without destructors: waits 10 s at most until what was sent has arrived, and adds to the
 * statistics.  Closes nothing; does nothing in a child that shares memory.  errno stays.
 */
void vs_exit_prepare(void);

/*
 * Moves a descriptor's connection to the kernel, since it is used by calls that this library does not see, and waits
 * for that, a second at most.  It stays there.  Does nothing for one without an object.
 */
void vs_give_kernel(int fd, enum vs_why why);
/* Does this for a socket with the number of standard input, output or error, which stdio uses unseen. */
static inline void vs_stdio_fd(int fd)
{
	if (vs_unlikely(fd <= STDERR_FILENO && vs_peek(fd) != NULL))
		vs_give_kernel(fd, VS_WHY_STDIO);
}

/*
 * Moves all connections of the process to the kernel, keeps later ones there, and waits a second at most.  Only the
 * first call does so.
 */
void vs_kernel_only(enum vs_why why);

/* After dup(): gives `made` the object of `fd`, if it has one.  A connection goes to the kernel if `made` is 0 to 2. */
void vs_dup_made(int fd, int made);

/*
 * close_range(), which spares the descriptors of this library and of the fabric: once a promotion was tried, all from
 * vs_ours_from on that have FD_CLOEXEC; there `flags` are ignored.  Ends no objects.
 */
int vs_close_all(unsigned int from, unsigned int to, int flags);

/*
 * Takes the object of a descriptor away that is being closed, and ends a connection as close() does.  In a signal
 * handler the end may come after the call that it has interrupted.
 */
void vs_forget_fd(int fd);

#endif
