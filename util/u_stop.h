/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stops all other threads of this process for the time of one function.  They are stopped by ptrace, so
 * none is inside a system call: one that waited makes its call again afterwards, by the new pages where
 * the function has exchanged those of a futex.
 */
#ifndef U_STOP_H
#define U_STOP_H

/*
 * Calls run(arg) while every other thread is stopped and the signals of this one wait.  `run` is called
 * in a process that shares all memory with this one, on a stack of its own.  A stopped thread may hold any
 * lock, and a function of the C library may be replaced by one that takes locks: `run` makes system calls
 * by syscall() and nothing else, and looks at no thread-local variable but errno.  What it does to memory that
 * other threads use is hidden from the thread sanitizer, whose locks they may hold, too.
 *
 * Some system calls of other threads end with EINTR, as they do after SIGSTOP and SIGCONT: epoll_wait(), semop()
 * and others of signal(7).
 *
 * Returns what `run` did, or an error without having called it: -EOPNOTSUPP where the threads cannot be
 * stopped, of which `why` tells the reason: a debugger has them, a filter of system calls or a security module
 * forbids it, an emulator does not know it, /proc is of another PID name space; -ENOMEM, -EMFILE and the like.
 */
int u_stop_others(int (*run)(void *arg), void *arg, const char **why);

#endif
