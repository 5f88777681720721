/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a process becomes a PE: its number, the number of PEs, the exchange of data among them before
 * they can communicate otherwise, and the end of the job.  One of several back ends does it, that
 * of the launcher that started the process.
 *
 * All calls but boot_status(), boot_flush() and those that end the job are for one thread at a time.
 */
#ifndef BOOT_H
#define BOOT_H

#include <stdbool.h>
#include <stddef.h>

#include "boot_job.h"

/*
 * Finds the launcher, by the first call in a process, and joins the job.  0, or -errno with one line for people in
 * `error`: what was sought, what was found, what to do; *job is then as it was.  -EALREADY: this process, or the
 * one that forked it, has joined and not left; -ENODEV: no launcher.
 */
int boot_start(struct boot_job *job, char error[BOOT_TEXT_MAX]);

/*
 * Gives `bytes` bytes to every PE of the job and gets those of all, `bytes` each, in the order of the
 * PEs.  All PEs call it, with equal `bytes`, at most 65,536.  Returns when every PE has called.
 * 0, or -errno: the job is at its end; -ENOTCONN: this process is not in it, as no child of fork is; -EMSGSIZE:
 * too many bytes; -EBADMSG: a PE gave another number of bytes (oshrun ends the job then, with a line).  After an error
 * `all` may be written in part.
 */
int boot_exchange(const void *mine, size_t bytes, void *all);

/* Returns when every PE of the job has called.  0, or -errno: the job is at its end, or -ENOTCONN as above. */
int boot_barrier(void);

/*
 * Where this PE says what it waits for.  Never NULL: where the launcher cannot see it, or this process is in no job, it
 * is memory of the process that nobody reads.
 */
struct boot_status *boot_status(void);

/* What PE `pe` says, or NULL where the launcher does not show it to the others. */
const struct boot_status *boot_status_of(int pe);

/*
 * Leaves the job: from now on the end of this process by exit() is no failure.  May be followed by
 * boot_start().  Does nothing in a child of fork.
 */
void boot_finish(void);

/*
 * Ends the whole job with this exit status, and this process by _exit(): a caller that wants what stdio holds to be
 * written calls boot_flush() before.  `why`: one line for people, or NULL if the program wished it.  Any thread may
 * call it, at any time; in a child of fork, or outside of a job, it ends this process alone.  After boot_exit() it
 * only waits for the end, with the status of that.
 */
void boot_abort(int status, const char *why) __attribute__((noreturn));

/*
 * As boot_abort(), where the reason is that another PE cannot be reached: what ended that one is the reason for
 * people, if the launcher learns of it.
 */
void boot_abort_lost(int status, const char *why) __attribute__((noreturn));

/*
 * Ends the whole job with this exit status, and this process as exit() does: with the functions of atexit(), static
 * destructors and what stdio holds.  After BOOT_EXIT_S it ends by _exit(), however far that is.  A
 * launcher that gives the process time is told before, another after the destructors, or when that
 * time is over.  Any thread may call it, at any time; in a child of fork it ends the child alone, without the
 * functions of atexit().  Once it is called, boot_abort() and boot_exit() of other threads wait for the end.
 */
void boot_exit(int status) __attribute__((noreturn));

/* Has this process called boot_exit()? */
bool boot_is_leaving(void);

/* Writes what stdio holds, for BOOT_FLUSH_S at most: another thread may have a stream locked while it reads. */
void boot_flush(void);

#endif
