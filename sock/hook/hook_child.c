// SPDX-License-Identifier: BSD-2-Clause
/* Calls that make processes. */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <unistd.h>

#include "hook.h"
#include "vs_ask.h"
#include "vs_init.h"
#include "vs_sock.h"
#include "vs_table.h"

/* After a call like fork(): makes the library ready in the child.  Returns `pid`, and leaves errno alone. */
static pid_t after(pid_t pid)
{
	int before = errno;

	if (pid == 0)
		vs_fork_child();
	errno = before;
	return pid;
}

/* Connections go back to the kernel, if there are any. */
static void before_fork(void)
{
	if (vs_unlikely(vs_table_count() > 0))
		vs_fork_prepare();
}

/* As the original; connections that have a VI go back to the kernel before. */
VS_HOOK pid_t fork(void)
{
	before_fork();
	return after(vs_real.fork());
}

VS_HOOK pid_t _Fork(void)
{
	before_fork();
	return after(vs_real._Fork());
}

pid_t vs_vfork_as_fork(void);
/*
 * vfork() where some descriptor has an object: makes the child by fork(), since one of the original would change
 * objects in its parent's memory.  The parent returns when a child that may ask for sockets has another program, or has
 * ended; without any to ask for, at once.
 */
pid_t vs_vfork_as_fork(void)
{
	int ends[2];
	bool asks = vs_ask_open(ends);
	pid_t pid;

	vs_unpark_all();
	pid = after(vs_real.fork());

	if (asks && pid == 0)
		vs_ask_begin(ends);
	else if (asks)
		vs_ask_serve(ends, pid);
	return pid;
}

/*
 * As long as no descriptor has an object the original is entered by a jump, since a function that
 * calls it would return twice to a frame that is gone.
 */
VS_HOOK pid_t vfork(void);
#if defined(__x86_64__)
__asm__(".text\n"
	".globl vfork\n"
	".type vfork, @function\n"
	"vfork:\n"
	"	endbr64\n"
	"	cmpl $0, vs_table_objects(%rip)\n"
	"	jne vs_vfork_as_fork\n"
	"	jmp *vs_real_vfork(%rip)\n"
	".size vfork, .-vfork\n"
	".globl __vfork\n"
	".set __vfork, vfork\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl vfork\n"
	".type vfork, %function\n"
	"vfork:\n"
	"	adrp x1, vs_table_objects\n"
	"	ldr w1, [x1, #:lo12:vs_table_objects]\n"
	"	cbnz w1, 1f\n"
	"	adrp x1, vs_real_vfork\n"
	"	ldr x1, [x1, #:lo12:vs_real_vfork]\n"
	"	br x1\n"
	"1:	b vs_vfork_as_fork\n"
	".size vfork, .-vfork\n"
	".globl __vfork\n"
	".set __vfork, vfork\n");
#else
pid_t vfork(void)
{
	return fork();
}
#endif

/* Ends the objects of standard input, output and error, where the C library has put other files. */
static void forget_stdio(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		vs_forget_fd(fd);
}

/*
 * As the original.  Connections that have a VI go back to the kernel before; the library is made ready in the process
 * that goes on, where the objects of descriptors 0 to 2 end unless `noclose` is set.
 */
VS_HOOK int daemon(int nochdir, int noclose)
{
	int rc;

	before_fork();
	rc = vs_real.daemon(nochdir, noclose);
	if (rc == 0) {
		vs_fork_child();
		if (!noclose)
			forget_stdio();
	}
	return rc;
}

/*
 * As the original.  Connections that have a VI go back to the kernel before; the objects of descriptors 0 to 2 end in
 * the child, whose library is made ready.
 */
VS_HOOK int forkpty(int *terminal, char *name, const struct termios *t, const struct winsize *w)
{
	pid_t pid;

	before_fork();
	pid = after(vs_real.forkpty(terminal, name, t, w));
	if (pid == 0)
		forget_stdio();
	return pid;
}

struct start {
	int (*run)(void *arg);
	void *arg;
};

/*
 * What a child of clone() runs, with a struct start: makes the library ready, bars promotion for ever, and returns what
 * the program's function returns.
 */
static int run_child(void *arg)
{
	struct start start = *(struct start *)arg;

	/* VIPL's handlers of fork() have not run, so this process makes no VIs. */
	vs_sock_bar_new(VS_WHY_FORK);
	vs_fork_child();
	return start.run(start.arg);
}

/*
 * As the original.  Before a child with memory and descriptors of its own is made, connections go back to the kernel,
 * and the child promotes none; a thread, or a child that shares either with its parent, passes.
 */
VS_HOOK int clone(int (*run)(void *arg), void *stack, int flags, void *arg, ...)
{
	struct start start = { run, arg };
	pid_t *parents, *theirs;
	va_list ap;
	void *tls;

	va_start(ap, arg);
	parents = va_arg(ap, pid_t *);
	tls = va_arg(ap, void *);
	theirs = va_arg(ap, pid_t *);
	va_end(ap);
	if (!run || (flags & (CLONE_VM | CLONE_FILES)) || vs_table_count() == 0)
		return vs_real.clone(run, stack, flags, arg, parents, tls, theirs);
	before_fork();
	return vs_real.clone(run_child, stack, flags, &start, parents, tls, theirs);
}

/* ---- posix_spawn(), whose child is the C library's own: its descriptors are known before ---- */

/* The connection of `fd` goes to the kernel at once, for the program to come. */
VS_HOOK int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int fd, int to)
{
	if (vs_unlikely(vs_peek(fd) != NULL))
		vs_give_kernel(fd, VS_WHY_EXEC);
	return vs_real.posix_spawn_file_actions_adddup2(actions, fd, to);
}

VS_ALSO(__fork, fork);
