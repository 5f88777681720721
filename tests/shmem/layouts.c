/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: layouts none|guard|hole|shared|file|stack|locked [reach] Variables of which a part is
 * other memory: the rest is symmetric all the same.  With `reach` a PE accesses that part, which is
 * not symmetric, so the job must end with a line.
 */
#include <pthread.h>
#include <shmem.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define UNIT 65536 /* a multiple of the page size of any machine */

static alignas(UNIT) char below[UNIT], part[4 * UNIT], above[2 * UNIT];
static char written[2 * UNIT] = { 1 };
static long small, small_written = 7;
static volatile long stored;

#ifdef REPLACED
/*
 * Like the function of a library that replaces functions of the C library, and does not support all
 * of their uses.
 */
void *mremap(void *at, size_t old_len, size_t len, int flags, ...)
{
	return MAP_FAILED;
}
#endif

static bool set_up(const char *what)
{
	void *got = part;
	FILE *file;

	memset(part, 2, sizeof(part));
	if (strcmp(what, "guard") == 0) {
		return mprotect(part, UNIT, PROT_NONE) == 0;
	} else if (strcmp(what, "hole") == 0) {
		return munmap(part, UNIT) == 0;
	} else if (strcmp(what, "shared") == 0) {
		got = mmap(part, sizeof(part), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	} else if (strcmp(what, "file") == 0) {
		file = fopen("/proc/self/exe", "r");
		got = mmap(part, UNIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
			   fileno(file), 0);
		return got == part && memcmp(part, "\177ELF", 4) == 0 && fclose(file) == 0;
	} else if (strcmp(what, "locked") == 0) {
		return syscall(SYS_mlock, part, UNIT) == 0;
	}
	return got == part;
}

static int use(void)
{
	int me = shmem_my_pe(), n = shmem_n_pes(), to = (me + 1) % n, from = (me + n - 1) % n,
	    bad = 0;
	static long sum, ours;

	shmem_barrier_all();
	shmem_char_p(&below[UNIT - 1], (char)(me + 1), to);
	shmem_char_p(&above[2 * UNIT - 1], (char)(me + 2), to);
	shmem_char_p(&written[2 * UNIT - 1], (char)(me + 3), to);
	shmem_long_p(&small, me + 4, to);
	shmem_long_atomic_add(&small_written, me, to);
	ours = me + 1;
	shmem_barrier_all();
	bad += below[UNIT - 1] != from + 1 || above[2 * UNIT - 1] != from + 2;
	bad += written[2 * UNIT - 1] != from + 3 || written[0] != 1;
	bad += small != from + 4 || small_written != 7 + from;
	shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &ours, 1);
	bad += sum != n * (n + 1) / 2;
	shmem_barrier_all();
	if (bad != 0)
		printf("PE %d: %d of the variables are wrong\n", me, bad);
	return bad;
}

static int run(const char *what, bool reach)
{
	int bad;

	shmem_init();
	if (reach)
		shmem_char_p(&part[5], 1, 1 - shmem_my_pe());
	bad = use();
	if (strcmp(what, "none") == 0 || strcmp(what, "file") == 0) {
		shmem_char_p(&part[5], 9, (shmem_my_pe() + 1) % shmem_n_pes());
		shmem_barrier_all();
		bad += part[5] != 9;
	}
	stored = 5;
	shmem_finalize();
	return bad != 0 || stored != 5 || small_written < 7;
}

/* ---- on a stack that is a static array -------------------------------------------------------- */

static ucontext_t main_context, own_context;
static int result = 1;

static void run_there(void)
{
	result = run("stack", false);
}

static int run_on_stack(void)
{
	getcontext(&own_context);
	own_context.uc_stack.ss_sp = part;
	own_context.uc_stack.ss_size = sizeof(part);
	own_context.uc_link = &main_context;
	makecontext(&own_context, run_there, 0);
	swapcontext(&main_context, &own_context);
	return result;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "none";

	if (!set_up(what)) {
		perror(what);
		return 77;
	}
	if (strcmp(what, "stack") == 0)
		return run_on_stack();
	return run(what, argc > 2);
}
