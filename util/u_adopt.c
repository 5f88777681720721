/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_adopt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "u_base.h"
#include "u_copy.h"
#include "u_fd.h"

/* One thread at a time: of two that adopt the same memory one finds it adopted. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void u_adopt_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* ---- holding writers -------------------------------------------------------------------------- */

/*
 * From hold_writers() to let_go() a thread that stores into the range waits in the kernel.  It may
 * hold any lock, so between the two this thread only copies and maps: no allocation, no log line, and
 * no signal handler.
 */
struct hold {
	int fd; /* of a userfaultfd; -1: nobody is held */
	sigset_t signals;
};

static int open_fd(unsigned int flags)
{
	return u_fd_above_std((int)syscall(SYS_userfaultfd, O_CLOEXEC | flags));
}

/* Stores of the kernel can be held by processes with CAP_SYS_PTRACE, those of threads by any. */
static int hold_open(struct hold *h)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};

	h->fd = open_fd(0);
	if (h->fd < 0 && errno == EPERM)
		h->fd = open_fd(UFFD_USER_MODE_ONLY);
	if (h->fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : -EOPNOTSUPP;
	if (ioctl(h->fd, UFFDIO_API, &api) == 0)
		return 0;
	close(h->fd);
	h->fd = -1;
	return -EOPNOTSUPP;
}

static void hold_close(struct hold *h)
{
	if (h->fd >= 0)
		close(h->fd);
}

static void let_go(const struct hold *h, void *start, size_t len)
{
	struct uffdio_range range = { .start = (uintptr_t)start, .len = len };
	int err = errno;

	if (h->fd < 0)
		return;
	/* Where the range has new pages there is nothing to unregister, and writers wake all the same. */
	ioctl(h->fd, UFFDIO_UNREGISTER, &range);
	ioctl(h->fd, UFFDIO_WAKE, &range);
	pthread_sigmask(SIG_SETMASK, &h->signals, NULL);
	errno = err;
}

/* All pages of the range are present, so that each can be protected. */
static int hold_writers(struct hold *h, void *start, size_t len)
{
	struct uffdio_register reg = {
		.range = { .start = (uintptr_t)start, .len = len },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect protect = {
		.range = reg.range,
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	sigset_t all;
	int err;

	if (h->fd < 0)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &h->signals);
	if (ioctl(h->fd, UFFDIO_REGISTER, &reg) == 0 &&
	    ioctl(h->fd, UFFDIO_WRITEPROTECT, &protect) == 0)
		return 0;
	err = errno == EINVAL ? EOPNOTSUPP : errno;
	let_go(h, start, len);
	return -err;
}

/* ---- pages ------------------------------------------------------------------------------------ */

static bool is_gap(void *at)
{
	unsigned char seen;

	return mincore(at, 1, &seen) != 0 && errno == ENOMEM;
}

/*
 * Moves a mapping, or a second one of a shared one for an `old_len` of 0, to `start` in one step: a
 * thread that comes to a page meanwhile waits in the kernel.  The kernel checks first and unmaps
 * then; where it finds no memory for itself after that, the range would be a gap, and gets private
 * pages with the content of `content`.
 */
static int exchange(void *start, size_t len, void *from, size_t old_len, const void *content)
{
	int err;

	if (mremap(from, old_len, len, MREMAP_MAYMOVE | MREMAP_FIXED, start) != MAP_FAILED)
		return 0;
	err = errno;
	if (is_gap(start) &&
	    mmap(start, len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == start)
		u_copy_shared(start, content, len);
	return -err;
}

static bool overlaps(const void *start, size_t len, const void *other, size_t other_len)
{
	return (uintptr_t)other < (uintptr_t)start + len &&
	       (uintptr_t)start < (uintptr_t)other + other_len;
}

/* That of the first thread has a name, but a mapping of another's is like any. */
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

/* ---- content ---------------------------------------------------------------------------------- */

/*
 * Others may write there; it is hidden from the thread sanitizer as other copies are (u_copy.h). The address
 * sanitizer forbids bytes between the variables of a program, which belong to whole pages all the same. It checks
 * each memcpy() of a program that is built with it, so no compiler may make one of this loop.
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define RAW __attribute__((noinline, no_sanitize_thread, no_sanitize_address))
#else
#define RAW
#endif

RAW static void copy_raw(void *to, const void *from, size_t len)
{
	for (size_t i = 0; i < len / sizeof(uint64_t); i++) {
		((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
		__asm__ volatile("" ::: "memory");
	}
}

RAW static bool is_zero(const void *at, size_t len)
{
	const uint64_t *words = at;
	uint64_t any = 0;

	for (size_t i = 0; i < len / sizeof(*words); i++)
		any |= words[i];
	return any == 0;
}

/*
 * Copies whole pages to others that are zero.  Pages of zeros are left out, so of a large array that
 * the program has not touched none is taken.  0; -ENOMEM: there are no pages for all of it.
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
		if (u_maps_populate(to + at, end - at, MADV_POPULATE_WRITE) != 0)
			return -ENOMEM;
		copy_raw(to + at, from + at, end - at);
		at = end;
	}
	return 0;
}

/* ---- there ------------------------------------------------------------------------------------ */

static int adopt_held(const struct hold *h, void *start, size_t len, void *pages)
{
	int err;

	copy_raw(pages, start, len);
	err = exchange(start, len, pages, 0, pages);
	let_go(h, start, len);
	return err;
}

static int adopt_locked(struct hold *h, void *start, size_t len, void *pages, char why[U_MAPS_WHY])
{
	int err = u_maps_check_plain(start, len, why);

	if (err != 0)
		return err;
	snprintf(why, U_MAPS_WHY, "it cannot be made present");
	err = u_maps_populate(start, len, MADV_POPULATE_READ);
	if (err == 0 && h->fd >= 0)
		err = u_maps_populate(pages, len, MADV_POPULATE_WRITE);
	if (err == 0 && madvise(pages, len, MADV_DONTFORK) != 0)
		err = -errno;
	if (err != 0)
		return err == -ENOMEM ? err : -EOPNOTSUPP;
	if (h->fd < 0) {
		err = copy_to_zeros(pages, start, len);
		return err != 0 ? err : exchange(start, len, pages, 0, pages);
	}
	snprintf(why, U_MAPS_WHY, "the kernel holds no writers of it");
	err = hold_writers(h, start, len);
	return err != 0 ? err : adopt_held(h, start, len, pages);
}

int u_adopt(void *start, size_t len, void *pages, bool exact, char why[U_MAPS_WHY])
{
	struct hold h = { .fd = -1 };
	int err = 0;

	if (is_own_stack(start, len)) {
		snprintf(why, U_MAPS_WHY, "part of it is the stack of this thread");
		return -EOPNOTSUPP;
	}
	snprintf(why, U_MAPS_WHY, "the kernel holds no writers for this process (userfaultfd)");
	if (exact)
		err = hold_open(&h);
	if (err != 0)
		return err;
	pthread_mutex_lock(&lock);
	err = adopt_locked(&h, start, len, pages, why);
	pthread_mutex_unlock(&lock);
	hold_close(&h);
	return err;
}

/* ---- back ------------------------------------------------------------------------------------- */

/* One range of memory that goes back, from `start` to `end`, in places of which `pages` may be mapped. */
struct undo {
	struct hold hold;
	bool exact; /* writers are held */
	struct u_mapping pages;
	uint8_t *start, *end;
	uint8_t *content; /* `pages` */
	uint8_t *fresh;	  /* private pages, for the whole range */
	uint8_t *done;	  /* up to here the pages of `fresh` have been used or unmapped */
};

/* Unmaps the fresh pages that are not needed for what lies before `until`. */
static void drop_fresh(struct undo *u, uint8_t *until)
{
	if (until > u->done)
		munmap(u->fresh + (u->done - u->start), (size_t)(until - u->done));
	u->done = until;
}

/* Does the program still have there what u_adopt() has mapped? */
static bool is_adopted(const struct undo *u, const struct u_mapping *m)
{
	return m->inode == u->pages.inode && m->dev_major == u->pages.dev_major &&
	       m->dev_minor == u->pages.dev_minor && !m->private_anonymous &&
	       m->from - m->offset == (uintptr_t)u->start - (uintptr_t)u->content + u->pages.from -
					      u->pages.offset;
}

/* Where no page of a mapping can be written nobody has to be held, and no userfaultfd is needed. */
static int hold_mapping(struct undo *u, uint8_t *from, size_t len, const struct u_mapping *m)
{
	int err = 0;

	if (!m->writable || !u->exact)
		return 0;
	if (u->hold.fd < 0)
		err = hold_open(&u->hold);
	if (err == 0)
		err = u_maps_populate(from, len, MADV_POPULATE_READ) != 0 ? -ENOMEM : 0;
	return err != 0 ? err : hold_writers(&u->hold, from, len);
}

/* All pages were made present where writers are held, since none can be taken meanwhile. */
static int copy_back(const struct undo *u, uint8_t *fresh, const uint8_t *content, size_t len)
{
	if (!u->exact)
		return copy_to_zeros(fresh, content, len);
	u_copy_shared(fresh, content, len);
	return 0;
}

static int put_back(struct undo *u, uint8_t *from, uint8_t *to, const struct u_mapping *m)
{
	uint8_t *fresh = u->fresh + (from - u->start), *content = u->content + (from - u->start);
	int rights = (m->readable ? PROT_READ : 0) | (m->writable ? PROT_WRITE : 0) |
		     (m->executable ? PROT_EXEC : 0);
	size_t len = (size_t)(to - from);
	int err;

	err = hold_mapping(u, from, len, m);
	if (err != 0)
		return err;
	err = copy_back(u, fresh, content, len);
	if (err == 0 && rights != (PROT_READ | PROT_WRITE) && mprotect(fresh, len, rights) != 0)
		err = -errno;
	if (err == 0)
		err = exchange(from, len, fresh, len, content);
	if (m->writable)
		let_go(&u->hold, from, len);
	if (err == 0)
		u->done = to;
	return err;
}

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
		.hold = { .fd = -1 },
		.exact = exact,
		.start = start,
		.end = (uint8_t *)start + len,
		.content = pages,
		.done = start,
	};
	int err = 0;

	u.fresh = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (u.fresh == MAP_FAILED)
		return -errno;
	if (exact)
		err = u_maps_populate(u.fresh, len, MADV_POPULATE_WRITE);
	if (err == 0) {
		pthread_mutex_lock(&lock);
		err = undo_locked(&u);
		pthread_mutex_unlock(&lock);
	}
	drop_fresh(&u, u.end);
	hold_close(&u.hold);
	return err;
}
