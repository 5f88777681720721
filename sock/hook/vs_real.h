/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of the C library beneath the hooks, as pointers that can be called at any time. */
#ifndef VS_REAL_H
#define VS_REAL_H

#include <aio.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "vs_calls.h"

/* Descriptors of this library and of VIPL have numbers from here on, which vs_close_all() spares. */
extern int vs_ours_from;

#define VS_MEMBER(ret, name, params, ...) ret(*name) params;
struct vs_real {
	VS_CALLS(VS_MEMBER, VS_MEMBER)
};
#undef VS_MEMBER

/* Written by the constructor and by the first call of those that no system call serves. */
extern struct vs_real vs_real;

/* Finds all originals.  Any thread, more than once: they are the same each time. */
void vs_real_init(void);

/* For the hook of vfork(), which jumps there. */
extern pid_t (*vs_real_vfork)(void);
extern void (*vs_real_exit)(int status); /* _exit() */

#endif
