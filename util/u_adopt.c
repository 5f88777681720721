/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_adopt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "u_base.h"
#include "u_stop.h"

/* One thread at a time: if two adopt the same memory, the second finds it adopted. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void u_adopt_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* ---- content ---------------------------------------------------------------------------------- */

/*
 * Others may write there, so the copy is hidden from the thread sanitizer as other copies are (u_copy.h).  The
 * address sanitizer forbids access to bytes between the variables of a program, but whole pages include them.  It
 * checks each memcpy() of a program that is built with it, so the compiler must not turn this loop into one.
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define RAW __attribute__((noinline, no_sanitize_thread, no_sanitize_address))
#else
#define RAW
#endif

/* Copies aligned words of 8 bytes; bytes after the last whole word are left out. */
RAW static void copy_raw(void *to, const void *from, size_t len)
{
	for (size_t i = 0; i < len / sizeof(uint64_t); i++) {
		((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
		__asm__ volatile("" ::: "memory");
	}
}

/* Are all aligned words of 8 bytes zero?  Bytes after the last whole word are left out. */
RAW static bool is_zero(const void *at, size_t len)
{
	const uint64_t *words = at;
	uint64_t any = 0;

	for (size_t i = 0; i < len / sizeof(*words); i++)
		any |= words[i];
	return any == 0;
}

/* ---- pages ------------------------------------------------------------------------------------ */

/*
 * As madvise(), but repeats a call that ends with EINTR or EAGAIN.  0 or -errno.
 *
 * Other threads are stopped, and a program may replace mmap(), mremap() and the like by functions of its own, which
 * take locks or behave differently: so these are system calls.
 */
static int advise(void *at, size_t len, int advice)
{
	long rc;

	do {
		rc = syscall(SYS_madvise, at, len, (long)advice);
	} while (rc != 0 && (errno == EAGAIN || errno == EINTR));
	return rc != 0 ? -errno : 0;
}

/* Linux before 5.14 does not know the advice. */
static bool is_unknown(int err)
{
	return err == -EINVAL || err == -EPERM || err == -ENOSYS;
}

#define MASK_BYTES 8L /* the kernel's size of a signal mask */

/*
 * Makes pages present that are about to be overwritten.  0 or -ENOMEM.  Without the advice a system call stores a
 * signal mask at the beginning of each page: it fails where an ordinary store would cause SIGBUS.
 */
static int take_pages(uint8_t *at, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int err = advise(at, len, MADV_POPULATE_WRITE);

	if (err == 0)
		return 0;
	if (!is_unknown(err))
		return -ENOMEM;
	for (size_t i = 0; i < len; i += page)
		if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, at + i, MASK_BYTES) != 0)
			return -ENOMEM;
	return 0;
}

/*
 * Can all pages be read?  Makes them present.  0 or -errno.  Without the advice: the call fails for its first
 * argument, after it has read the mask.
 */
static int check_pages(uint8_t *at, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int err = advise(at, len, MADV_POPULATE_READ);

	if (!is_unknown(err))
		return err;
	for (size_t i = 0; i < len; i += page)
		if (syscall(SYS_rt_sigprocmask, -1L, at + i, NULL, MASK_BYTES) != 0 &&
		    errno == EFAULT)
			return -EFAULT;
	return 0;
}

/*
 * Copies whole pages to others that are zero.  Pages of zeros are left out, so a large array that the program has not
 * touched takes no memory.  0; -ENOMEM: there are not enough pages.  Then some may have been copied.
 */
static int copy_to_zeros(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), at = 0, end;

	while (at < len) {
		if (is_zero(from + at, page)) {
			at += page;
			continue;
		}
		for (end = at + page; end < len && !is_zero(from + end, page);)
			end += page;
		if (take_pages(to + at, end - at) != 0)
			return -ENOMEM;
		copy_raw(to + at, from + at, end - at);
		at = end;
	}
	return 0;
}

/* Is the page not mapped? */
static bool is_gap(void *at)
{
	unsigned char seen;

	return syscall(SYS_mincore, at, 1L, &seen) != 0 && errno == ENOMEM;
}

/*
 * Moves a mapping to `start`, or for an `old_len` of 0 makes a second mapping of a shared one there, in one step: a
 * thread that touches a page during that waits in the kernel.  The kernel checks first and then unmaps; if it finds no
 * memory for itself after that, the range is a gap, and this function puts private pages with the content of `content`
 * there.  Returns 0, or -errno, also after it
 * has put private pages there.
 */
static int exchange(void *start, size_t len, void *from, size_t old_len, const void *content)
{
	int err;

	if (u_maps_move(from, old_len, len, start) != MAP_FAILED)
		return 0;
	err = errno;
	if (is_gap(start) && syscall(SYS_mmap, start, len, (long)(PROT_READ | PROT_WRITE),
				     (long)(MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE), -1L,
				     0L) == (long)(uintptr_t)start)
		copy_raw(start, content, len);
	return -err;
}

/*
 * Can shared pages be mapped a second time?  Neither valgrind nor QEMU's user mode does that.  True also if there are
 * not enough mappings to try it.
 */
static bool can_map_twice(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int flags = MAP_SHARED | MAP_ANONYMOUS;
	void *one = mmap(NULL, page, PROT_READ, flags, -1, 0);
	void *two = mmap(NULL, page, PROT_READ, flags, -1, 0);
	bool tried = one != MAP_FAILED && two != MAP_FAILED;

	if (two != MAP_FAILED)
		munmap(two, page); /* the second mapping takes its place */
	two = tried ? (void *)syscall(SYS_mremap, one, 0L, page, (long)MREMAP_MAYMOVE) : MAP_FAILED;
	if (two != MAP_FAILED)
		munmap(two, page);
	if (one != MAP_FAILED)
		munmap(one, page);
	return !tried || two != MAP_FAILED;
}

/* A copy and an exchange of pages, for which other threads may have to be stopped. */
struct swap {
	uint8_t *start; /* of the range that is exchanged */
	size_t len;
	uint8_t *to;		/* pages of zeros, which get the content */
	const uint8_t *content; /* `start`, or another mapping of its pages */
	size_t old_len;		/* for exchange() of `to` */
	int rights;		/* of `to` */
};

/*
 * Copies the content and exchanges the pages; `arg`: a struct swap.  0 or -errno.  Runs while other threads are
 * stopped, if they have to be.
 */
static int swap_pages(void *arg)
{
	const struct swap *x = arg;
	int err = copy_to_zeros(x->to, x->content, x->len);

	if (err == 0 && x->rights != (PROT_READ | PROT_WRITE) &&
	    syscall(SYS_mprotect, x->to, x->len, (long)x->rights) != 0)
		err = -errno;
	return err != 0 ? err
			: exchange(x->start, x->len, x->to, x->old_len,
				   x->old_len == 0 ? x->to : x->content);
}

static bool overlaps(const void *start, size_t len, const void *other, size_t other_len)
{
	return (uintptr_t)other < (uintptr_t)start + len &&
	       (uintptr_t)start < (uintptr_t)other + other_len;
}

/*
 * Does the range meet the stack of this thread, or its thread-local variables?  u_maps_check_plain() refuses the
 * first thread's stack by its name; other stacks are like any memory.
 */
static bool is_own_stack(const void *start, size_t len)
{
	bool own = overlaps(start, len, &own, sizeof(own)) ||
		   overlaps(start, len, &errno, sizeof(errno));
	pthread_attr_t attr;
	size_t size = 0;
	void *at = NULL;

	if (own || pthread_getattr_np(pthread_self(), &attr) != 0)
		return own;
	if (pthread_attr_getstack(&attr, &at, &size) == 0)
		own = overlaps(start, len, at, size);
	pthread_attr_destroy(&attr);
	return own;
}

/* ---- adopting --------------------------------------------------------------------------------- */

/*
 * Does the work of u_adopt(), with `lock` held, for a range that is no stack.  Returns as u_adopt(); `why` is also
 * overwritten after success.
 */
static int adopt_locked(struct swap *x, bool exact, char why[U_MAPS_WHY])
{
	int err = u_maps_check_plain(x->start, x->len, why);
	const char *reason = NULL;

	if (err != 0)
		return err;
	snprintf(why, U_MAPS_WHY, "it cannot be made present");
	err = check_pages(x->start, x->len);
	if (err == 0)
		err = advise(x->to, x->len, MADV_DONTFORK);
	if (err != 0)
		return err == -ENOMEM ? err : -EOPNOTSUPP;
	err = exact ? u_stop_others(swap_pages, x, &reason) : swap_pages(x);
	snprintf(why, U_MAPS_WHY, "%s", reason != NULL ? reason : "its pages cannot be exchanged");
	return err != 0 && !can_map_twice() ? -EOPNOTSUPP : err;
}

int u_adopt(void *start, size_t len, void *pages, bool exact, char why[U_MAPS_WHY])
{
	struct swap x = {
		.start = start,
		.len = len,
		.to = pages,
		.content = start,
		.rights = PROT_READ | PROT_WRITE,
	};
	int err;

	if (is_own_stack(start, len)) {
		snprintf(why, U_MAPS_WHY, "part of it is the stack of this thread");
		return -EOPNOTSUPP;
	}
	pthread_mutex_lock(&lock);
	err = adopt_locked(&x, exact, why);
	pthread_mutex_unlock(&lock);
	return err;
}

/* ---- giving back ------------------------------------------------------------------------------ */

/* A range of memory that is given back, from `start` to `end`; `pages` may be mapped in parts of it. */
struct undo {
	bool exact; /* writers are stopped */
	struct u_mapping pages;
	uint8_t *start, *end;
	uint8_t *content; /* `pages` */
	uint8_t *fresh;	  /* private pages, for the whole range */
	uint8_t *done;	  /* up to here the pages of `fresh` have been used or unmapped */
};

/* Unmaps the fresh pages from u->done up to `until`, which are not needed, and moves u->done there. */
static void drop_fresh(struct undo *u, uint8_t *until)
{
	if (until > u->done)
		munmap(u->fresh + (u->done - u->start), (size_t)(until - u->done));
	u->done = until;
}

/* Is this still a mapping, or a part of one, that u_adopt() has made?  The protection does not matter. */
static bool is_adopted(const struct undo *u, const struct u_mapping *m)
{
	return m->inode == u->pages.inode && m->dev_major == u->pages.dev_major &&
	       m->dev_minor == u->pages.dev_minor && !m->private_anonymous &&
	       m->from - m->offset == (uintptr_t)u->start - (uintptr_t)u->content + u->pages.from -
					      u->pages.offset;
}

/*
 * Gives back a part of the range, whose mapping is `m`.  If that cannot be written, no thread has to be stopped.  0,
 * and u->done becomes `to`; or -errno.
 */
static int put_back(struct undo *u, uint8_t *from, uint8_t *to, const struct u_mapping *m)
{
	size_t len = (size_t)(to - from);
	struct swap x = {
		.start = from,
		.len = len,
		.to = u->fresh + (from - u->start),
		.content = u->content + (from - u->start),
		.old_len = len,
		.rights = (m->readable ? PROT_READ : 0) | (m->writable ? PROT_WRITE : 0) |
			  (m->executable ? PROT_EXEC : 0),
	};
	const char *why;
	int err = u->exact && m->writable ? u_stop_others(swap_pages, &x, &why) : swap_pages(&x);

	if (err == 0)
		u->done = to;
	return err;
}

/*
 * Gives back each part of the range that still is as u_adopt() made it; stops at the first failure.  0 or -errno.
 * u->done tells which fresh pages are left, which the caller unmaps.  `lock` is held.
 */
static int undo_locked(struct undo *u)
{
	uint8_t *at = u->start, *from, *to;
	struct u_mapping m;
	int err = u_maps_find(u->content, &u->pages);

	while (err == 0 && at < u->end) {
		err = u_maps_find(at, &m);
		if (err != 0 || m.from >= (uintptr_t)u->end)
			break;
		from = m.from > (uintptr_t)at ? (uint8_t *)(uintptr_t)m.from : at;
		to = m.to < (uintptr_t)u->end ? (uint8_t *)(uintptr_t)m.to : u->end;
		at = to;
		if (!is_adopted(u, &m))
			continue;
		drop_fresh(u, from);
		err = put_back(u, from, to, &m);
	}
	return err == -ENOENT ? 0 : err;
}

int u_adopt_undo(void *start, size_t len, void *pages, bool exact)
{
	struct undo u = {
		.exact = exact,
		.start = start,
		.end = (uint8_t *)start + len,
		.content = pages,
		.done = start,
	};
	int err;

	u.fresh = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (u.fresh == MAP_FAILED)
		return -errno;
	pthread_mutex_lock(&lock);
	err = undo_locked(&u);
	pthread_mutex_unlock(&lock);
	drop_fresh(&u, u.end);
	return err;
}
