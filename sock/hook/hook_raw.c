// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls that reach sockets past the C library's functions for them.
 *
 * syscall(): some programs close their descriptors by it (libuv does), set up io_uring, or end.  Other system
 * calls pass.
 *
 * io_uring: the kernel uses descriptors by itself then, and knows nothing of VIs.  So once a ring has been
 * set up, all connections of the process are the kernel's.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hook.h"
#include "vs_init.h"
#include "vs_raw.h"

/* After a call that makes a ring: if it did, all connections go to the kernel.  Returns rc. */
static int ring_made(int rc)
{
	if (rc >= 0)
		vs_kernel_only(VS_WHY_URING);
	return rc;
}

#ifdef VS_HAVE_RAW
/*
 * As the original: -1 and errno, or the result.  SYS_close is done by close() here; what was sent is delivered before
 * SYS_exit_group, as by _exit(); SYS_io_uring_setup moves all connections to the kernel.  The others pass, also those
 * for which there are hooks.
 */
VS_HOOK __attribute__((no_sanitize_address)) long syscall(long number, ...)
{
	long a[6];
	va_list ap;
	int i;

	/* Those that the caller has not given are read, too, as the C library's function does. */
	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (vs_unlikely(number == SYS_exit_group))
		vs_exit_prepare();
	if (number == SYS_close)
		return close((int)a[0]);
	if (vs_unlikely(number == SYS_io_uring_setup))
		return ring_made((int)vs_raw(number, a[0], a[1], a[2], a[3], a[4], a[5]));
	return vs_raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
#endif

/*
 * Those of liburing, which makes system calls by itself.  Each returns what the original does: 0 and more, or -errno.
 */

int io_uring_setup(unsigned int entries, void *params) VS_HOOK;
int io_uring_queue_init(unsigned int entries, void *ring, unsigned int flags) VS_HOOK;
int io_uring_queue_init_params(unsigned int entries, void *ring, void *params) VS_HOOK;
int io_uring_queue_init_mem(unsigned int entries, void *ring, void *params, void *buf,
			    size_t n) VS_HOOK;

static void *original(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/*
 * Calls the original of liburing, -ENOSYS where there is none.  Once a ring is made all connections are the kernel's,
 * for ever.
 */
int io_uring_setup(unsigned int entries, void *params)
{
	int (*call)(unsigned int, void *) = original("io_uring_setup");

	return call ? ring_made(call(entries, params)) : -ENOSYS;
}

/*
 * Calls the original of liburing, -ENOSYS where there is none.  Once a ring is made all connections are the kernel's,
 * for ever.
 */
int io_uring_queue_init(unsigned int entries, void *ring, unsigned int flags)
{
	int (*call)(unsigned int, void *, unsigned int) = original("io_uring_queue_init");

	return call ? ring_made(call(entries, ring, flags)) : -ENOSYS;
}

/*
 * Calls the original of liburing, -ENOSYS where there is none.  Once a ring is made all connections are the kernel's,
 * for ever.
 */
int io_uring_queue_init_params(unsigned int entries, void *ring, void *params)
{
	int (*call)(unsigned int, void *, void *) = original("io_uring_queue_init_params");

	return call ? ring_made(call(entries, ring, params)) : -ENOSYS;
}

/*
 * Calls the original of liburing, -ENOSYS where there is none.  Once a ring is made all connections are the kernel's,
 * for ever.
 */
int io_uring_queue_init_mem(unsigned int entries, void *ring, void *params, void *buf, size_t n)
{
	int (*call)(unsigned int, void *, void *, void *, size_t) =
		original("io_uring_queue_init_mem");

	return call ? ring_made(call(entries, ring, params, buf, n)) : -ENOSYS;
}
