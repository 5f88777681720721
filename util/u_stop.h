/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stops all other threads of this process for the time of one function.  They are stopped by ptrace, so
 * none is inside a system call: a thread that waited in one makes the call again afterwards, and so uses
 * the new page of a futex if the function has exchanged it.
 */
#ifndef U_STOP_H
#define U_STOP_H

/*
 * Calls run(arg) while every other thread is stopped and signals to this one wait.  `run` is called
 * in a process that shares all memory with this one, on a stack of its own.  A stopped thread may hold any
 * lock, and a function of the C library may be replaced by one that takes locks: so `run` only makes system
 * calls by syscall(), and uses no thread-local variable except errno.  Its accesses to memory that other threads
 * use are hidden from the thread sanitizer, whose locks those threads may hold, too.
 *
 * Some system calls of other threads end with EINTR, as they do after SIGSTOP and SIGCONT: epoll_wait(), semop()
 * and others of signal(7).
 *
 * Returns the result of `run`, or an error without having called it: -EOPNOTSUPP if the threads cannot be
 * stopped, and then `why` gets the reason: a debugger has them, a filter of system calls or a security module
 * forbids ptrace, an emulator lacks it, /proc is of another PID name space; -ENOMEM, -EMFILE and the like.
 * *why is a constant, and NULL if `run` was called.
 */
int u_stop_others(int (*run)(void *arg), void *arg, const char **why);

#endif
