// SPDX-License-Identifier: BSD-2-Clause
/*
 * The originals are looked up all at once by the constructor, since a look-up at the first call may
 * allocate, and allocators call read() and close().  Other constructors and allocators may call
 * hooks before that: then a system call serves, or the look-up comes then.
 */
#include "vs_real.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vs_raw.h"

#define ARGS(...) , ##__VA_ARGS__
#define PLAIN_ARGS(...) __VA_ARGS__

#define RAW_CALL(ret, name, params, args, number)                                                  \
	static ret first_##name params                                                             \
	{                                                                                          \
		return (ret)vs_raw_call(number ARGS args);                                         \
	}
#define LATE_CALL(ret, name, params, args)                                                         \
	static ret first_##name params                                                             \
	{                                                                                          \
		vs_real_init();                                                                    \
		return vs_real.name args;                                                          \
	}
VS_CALLS(RAW_CALL, LATE_CALL)

/* Serves as vfork() until vs_real_init() has found the original; first_exit() does so as _exit(). */
static pid_t first_vfork(void)
{
	return fork();
}

static void first_exit(int status)
{
	vs_raw_call(SYS_exit_group, status);
}

int vs_ours_from = 1000;

#define FIRST(ret, name, ...) .name = first_##name,
struct vs_real vs_real = { VS_CALLS(FIRST, FIRST) };
pid_t (*vs_real_vfork)(void) = first_vfork;
void (*vs_real_exit)(int status) = first_exit;

struct original {
	const char *name;
	void **at;
};

/* Stores the address of the original; where there is none, *at stays as it was. */
static void find(const char *name, void **at)
{
	void *original = dlsym(RTLD_NEXT, name);

	if (original)
		__atomic_store_n(at, original, __ATOMIC_RELAXED);
}

void vs_real_init(void)
{
#define ROW(ret, name, ...) { #name, (void **)&vs_real.name },
	static const struct original all[] = { VS_CALLS(ROW, ROW){ "vfork",
								   (void **)&vs_real_vfork },
					       { "_exit", (void **)&vs_real_exit } };
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		find(all[i].name, all[i].at);
}
