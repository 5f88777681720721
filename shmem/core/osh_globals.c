/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "osh_base.h"
#include "osh_globals.h"
#include "osh_state.h"

static uint64_t hash(uint64_t h, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n-- > 0)
		h = (h ^ *p++) * 0x100000001b3ull; /* FNV-1a */
	return h;
}

/* The build identifier in a segment of notes, if there is one. */
static uint64_t hash_notes(uint64_t h, const uint8_t *p, size_t n)
{
	while (n >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)p;
		size_t name = osh_align_up(note->n_namesz, 4),
		       desc = osh_align_up(note->n_descsz, 4);
		size_t whole = sizeof(*note) + name + desc;

		if (name > n || desc > n || whole > n)
			break;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4)
			h = hash(h, p + sizeof(*note) + name, note->n_descsz);
		p += whole;
		n -= whole;
	}
	return h;
}

/* The first object that dl_iterate_phdr() names is the executable. */
static int look(struct dl_phdr_info *info, size_t size, void *into)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct osh_globals *s = into;
	uintptr_t start = 0, end = 0, relro = 0;

	s->id = 0xcbf29ce484222325ull;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_W)) {
			if (start == 0)
				start = at;
			end = at + ph->p_memsz;
		}
		if (ph->p_type == PT_GNU_RELRO)
			relro = at + ph->p_memsz;
		if (ph->p_type == PT_NOTE)
			s->id = hash_notes(s->id, (const uint8_t *)at, ph->p_memsz);
		s->id = hash(s->id, &ph->p_vaddr, sizeof(ph->p_vaddr));
		s->id = hash(s->id, &ph->p_memsz, sizeof(ph->p_memsz));
	}
	/* The dynamic linker protects whole pages; what it leaves of the last one is writable. */
	relro &= ~(page - 1);
	if (relro > start)
		start = relro;
	start &= ~(page - 1);
	end = osh_align_up(end, page);
	s->base = (uint8_t *)start;
	s->len = end > start ? end - start : 0;
	return 1;
}

void osh_globals_find(struct osh_globals *s)
{
	*s = (struct osh_globals){ 0 };
	dl_iterate_phdr(look, s);
}

/*
 * Copies whole pages to others that are zero.  Pages of zeros are left out: a large array that the program has not
 * touched takes no memory for its copy. The address sanitizer forbids bytes between variables, so it does not look;
 * it checks each memcpy() of a program that is built with it, so no compiler may make one of this loop.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
__attribute__((noinline, no_sanitize_address, no_sanitize_thread))
#endif
static void
copy_to_zeros(uint8_t *to, const uint8_t *from, size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), count = page / sizeof(uint64_t);

	for (size_t at = 0; at < n; at += page) {
		const uint64_t *words = (const uint64_t *)(from + at);
		uint64_t any = 0;

		for (size_t i = 0; i < count; i++)
			any |= words[i];
		for (size_t i = 0; any != 0 && i < count; i++) {
			((uint64_t *)(to + at))[i] = words[i];
			__asm__ volatile("" ::: "memory");
		}
	}
}

int osh_globals_privatise(const struct osh_globals *s)
{
	uint8_t *copy;

	copy = mmap(NULL, s->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return -errno;
	copy_to_zeros(copy, s->base, s->len);
	if (mremap(copy, s->len, s->len, MREMAP_MAYMOVE | MREMAP_FIXED, s->base) == MAP_FAILED) {
		int rc = -errno;

		munmap(copy, s->len);
		return rc;
	}
	return 0;
}

/* ---- children of fork() ---------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	bool hooked;
	const struct osh_globals *range;
	uint8_t *copy; /* between the handlers before and behind a fork() */
} children = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Pages that are swapped out are not in memory either: then all are read. */
static bool is_swapping(void)
{
	struct sysinfo s;

	return sysinfo(&s) != 0 || s.freeswap != s.totalswap;
}

/* Copies adopted memory to pages that are zero.  To read a page makes it present: those that are not are left out. */
static void copy_adopted(uint8_t *to, const uint8_t *from, size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char there[1024];
	bool all = is_swapping();

	for (size_t at = 0; at < n; at += sizeof(there) * page) {
		size_t len = osh_min(n - at, sizeof(there) * page);

		if (all || mincore((void *)(uintptr_t)(from + at), len, there) != 0)
			memset(there, 1, sizeof(there));
		for (size_t i = 0; i < len / page; i++) {
			if (there[i] & 1)
				copy_to_zeros(to + at + i * page, from + at + i * page, page);
		}
	}
}

/* The copy is mapped over the missing pages in the child, so it has to exist before. */
static void before_fork(void)
{
	pthread_mutex_lock(&children.lock);
	children.copy = MAP_FAILED;
	if (children.range == NULL)
		return;
	children.copy = mmap(NULL, children.range->len, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (children.copy != MAP_FAILED)
		copy_adopted(children.copy, children.range->base, children.range->len);
}

static void after_fork_parent(void)
{
	if (children.copy != MAP_FAILED)
		munmap(children.copy, children.range->len);
	pthread_mutex_unlock(&children.lock);
}

static void after_fork_child(void)
{
	if (children.copy != MAP_FAILED)
		mremap(children.copy, children.range->len, children.range->len,
		       MREMAP_MAYMOVE | MREMAP_FIXED, children.range->base);
	children.range = NULL;
	osh_state_leave_to_parent();
	pthread_mutex_unlock(&children.lock);
}

int osh_globals_for_children(const struct osh_globals *s)
{
	int rc = 0;

	pthread_mutex_lock(&children.lock);
	if (!children.hooked) {
		rc = -pthread_atfork(before_fork, after_fork_parent, after_fork_child);
		children.hooked = rc == 0;
	}
	if (rc == 0)
		children.range = s;
	pthread_mutex_unlock(&children.lock);
	return rc;
}
