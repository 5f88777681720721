/* SPDX-License-Identifier: BSD-2-Clause */
/* A system call as syscall() makes it, which is replaced here. */
#ifndef VS_RAW_H
#define VS_RAW_H

#include <errno.h>

#if defined(__x86_64__)
#define VS_HAVE_RAW 1
/* A system call: its result, or -errno. */
static inline long vs_raw6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long rc;

	__asm__ volatile("syscall"
			 : "=a"(rc)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return rc;
}
#elif defined(__aarch64__)
#define VS_HAVE_RAW 1
/* A system call: its result, or -errno. */
static inline long vs_raw6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#endif

#ifdef VS_HAVE_RAW
/* As syscall(): -1 and errno, or the result. */
static inline long vs_raw(long n, long a, long b, long c, long d, long e, long f)
{
	long rc = vs_raw6(n, a, b, c, d, e, f);

	if (rc < 0 && rc > -4096) {
		errno = (int)-rc;
		return -1;
	}
	return rc;
}

#define VS_RAW_PICK(n, a, b, c, d, e, f, ...)                                                      \
	vs_raw(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* With as many arguments as the call has. */
#define vs_raw_call(...) VS_RAW_PICK(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#else
/* Here syscall() is not replaced. */
#define vs_raw_call(...) syscall(__VA_ARGS__)
#endif

#endif
