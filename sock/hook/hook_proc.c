// SPDX-License-Identifier: BSD-2-Clause
/* Calls that replace the program, end it, or use a descriptor by calls that the library does not replace. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "hook.h"
#include "vs_init.h"
#include "vs_table.h"

/* ---- another program ---- */

/* Before each of these calls connections that the next program gets go to the kernel, and the others' bytes leave. */
VS_HOOK int execve(const char *path, char *const *argv, char *const *envp)
{
	vs_exec_prepare();
	return vs_real.execve(path, argv, envp);
}

VS_HOOK int execv(const char *path, char *const *argv)
{
	vs_exec_prepare();
	return vs_real.execv(path, argv);
}

VS_HOOK int execvp(const char *file, char *const *argv)
{
	vs_exec_prepare();
	return vs_real.execvp(file, argv);
}

VS_HOOK int execvpe(const char *file, char *const *argv, char *const *envp)
{
	vs_exec_prepare();
	return vs_real.execvpe(file, argv, envp);
}

VS_HOOK int fexecve(int fd, char *const *argv, char *const *envp)
{
	vs_exec_prepare();
	return vs_real.fexecve(fd, argv, envp);
}

VS_HOOK int execveat(int fd, const char *path, char *const *argv, char *const *envp, int flags)
{
	vs_exec_prepare();
	return vs_real.execveat(fd, path, argv, envp, flags);
}

enum how { BY_PATH, BY_SEARCH, WITH_ENVIRONMENT };

/* How many arguments there are, up to the NULL. */
static size_t count(const char *arg, va_list ap)
{
	size_t n = 0;

	while (arg) {
		n++;
		arg = va_arg(ap, const char *);
	}
	return n;
}

/*
 * Calls execv() or the like with the arguments as a list, and returns -1 if that fails.  The list is made on the stack,
 * since these calls are allowed in a child of vfork().
 */
static int run_list(enum how how, const char *program, const char *arg, va_list ap)
{
	char *const *envp;
	char **argv;
	va_list again;
	size_t i, n;

	va_copy(again, ap);
	n = count(arg, again);
	va_end(again);
	argv = __builtin_alloca((n + 1) * sizeof(*argv));
	for (i = 0; i < n; i++) {
		argv[i] = (char *)(uintptr_t)arg;
		arg = va_arg(ap, const char *);
	}
	argv[n] = NULL;
	if (how == BY_PATH)
		return execv(program, argv);
	if (how == BY_SEARCH)
		return execvp(program, argv);
	envp = va_arg(ap, char *const *);
	return execve(program, argv, envp);
}

/* As execv() of this file, with the arguments as a list. */
VS_HOOK int execl(const char *path, const char *arg, ...)
{
	va_list ap;
	int rc;

	va_start(ap, arg);
	rc = run_list(BY_PATH, path, arg, ap);
	va_end(ap);
	return rc;
}

/* As execvp() of this file, with the arguments as a list. */
VS_HOOK int execlp(const char *file, const char *arg, ...)
{
	va_list ap;
	int rc;

	va_start(ap, arg);
	rc = run_list(BY_SEARCH, file, arg, ap);
	va_end(ap);
	return rc;
}

/* As execve() of this file, with the arguments as a list and the environment after its NULL. */
VS_HOOK int execle(const char *path, const char *arg, ...)
{
	va_list ap;
	int rc;

	va_start(ap, arg);
	rc = run_list(WITH_ENVIRONMENT, path, arg, ap);
	va_end(ap);
	return rc;
}

/* ---- the end, without destructors; quick_exit() calls what vs_init.c has registered ---- */

/* Waits at most 10 s until what was sent has arrived, then ends the process. */
VS_HOOK void _exit(int status)
{
	vs_exit_prepare();
	for (;;)
		vs_real_exit(status);
}

/* ---- descriptors used by the C library itself ---- */

/* The connection goes to the kernel first, since stdio uses it unseen. */
VS_HOOK FILE *fdopen(int fd, const char *mode)
{
	if (vs_unlikely(vs_peek(fd) != NULL))
		vs_give_kernel(fd, VS_WHY_STDIO);
	return vs_real.fdopen(fd, mode);
}

/*
 * Before fclose() or freopen(): ends the connection of the descriptor, after a flush.  The C library closes it by
 * itself, and the next one may have its number.
 */
static void closes(FILE *f)
{
	int before = errno, fd = f ? fileno(f) : -1;

	if (vs_unlikely(vs_peek(fd) != NULL)) {
		fflush(f);
		vs_forget_fd(fd);
	}
	errno = before;
}

VS_HOOK int fclose(FILE *f)
{
	closes(f);
	return vs_real.fclose(f);
}

VS_HOOK FILE *freopen(const char *path, const char *mode, FILE *f)
{
	closes(f);
	return vs_real.freopen(path, mode, f);
}

VS_HOOK FILE *freopen64(const char *path, const char *mode, FILE *f)
{
	closes(f);
	return vs_real.freopen64(path, mode, f);
}

/* As the original; a connection goes to the kernel first, and stays there. */
VS_HOOK int vdprintf(int fd, const char *fmt, va_list ap)
{
	if (vs_unlikely(vs_peek(fd) != NULL))
		vs_give_kernel(fd, VS_WHY_STDIO);
	return vs_real.vdprintf(fd, fmt, ap);
}

/* As vdprintf(), which moves a connection to the kernel. */
VS_HOOK int dprintf(int fd, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vdprintf(fd, fmt, ap);
	va_end(ap);
	return n;
}

VS_HOOK int __vdprintf_chk(int fd, int flag, const char *fmt, va_list ap);
/* As vdprintf(), which moves a connection to the kernel; `flag` is ignored. */
VS_HOOK int __vdprintf_chk(int fd, int flag, const char *fmt, va_list ap)
{
	return vdprintf(fd, fmt, ap);
}

VS_HOOK int __dprintf_chk(int fd, int flag, const char *fmt, ...);
/* As vdprintf(), which moves a connection to the kernel; `flag` is ignored. */
VS_HOOK int __dprintf_chk(int fd, int flag, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vdprintf(fd, fmt, ap);
	va_end(ap);
	return n;
}

/* Before POSIX AIO, whose threads use the descriptor: moves its connection to the kernel. */
static void aio(const struct aiocb *c)
{
	if (vs_unlikely(c && vs_peek(c->aio_fildes) != NULL))
		vs_give_kernel(c->aio_fildes, VS_WHY_STDIO);
}

VS_HOOK int aio_read(struct aiocb *c)
{
	aio(c);
	return vs_real.aio_read(c);
}

VS_HOOK int aio_write(struct aiocb *c)
{
	aio(c);
	return vs_real.aio_write(c);
}

/* Moves the connections of all descriptors in the list to the kernel.  Returns what the C library's call returns. */
VS_HOOK int lio_listio(int mode, struct aiocb *const *list, int n, struct sigevent *event)
{
	int i;

	for (i = 0; list && i < n; i++)
		aio(list[i]);
	return vs_real.lio_listio(mode, list, n, event);
}

#if __WORDSIZE == 64 /* where both structures are the same */
VS_HOOK int aio_read64(struct aiocb64 *c)
{
	return aio_read((struct aiocb *)(void *)c);
}

VS_HOOK int aio_write64(struct aiocb64 *c)
{
	return aio_write((struct aiocb *)(void *)c);
}

VS_HOOK int lio_listio64(int mode, struct aiocb64 *const *list, int n, struct sigevent *event)
{
	return lio_listio(mode, (struct aiocb *const *)(const void *)list, n, event);
}
#endif

VS_ALSO(_IO_fdopen, fdopen);
VS_ALSO(_IO_fclose, fclose);
VS_ALSO(_Exit, _exit);
