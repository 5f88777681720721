/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "osh_base.h"
#include "osh_globals.h"

/* Returns h, the hash of what came before, continued over n bytes. */
static uint64_t hash(uint64_t h, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n-- > 0)
		h = (h ^ *p++) * 0x100000001b3ull; /* FNV-1a */
	return h;
}

/* Returns h continued over the build identifier in a segment of notes, or h where there is none. */
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

/* Pages from `from` to `to`. */
struct range {
	uintptr_t from, to;
};

/* The writable segments of the executable, without what the dynamic linker protects. */
struct layout {
	struct range writable[OSH_DATA_PIECES];
	int count;
	uintptr_t bias;
	uint64_t id;
};

/*
 * For dl_iterate_phdr(), which names the executable first: fills `into`, a struct layout, and returns 1, so that no
 * other object is named.
 */
static int look(struct dl_phdr_info *info, size_t size, void *into)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct layout *l = into;
	struct range relro = { 0 };

	l->bias = info->dlpi_addr;
	l->id = 0xcbf29ce484222325ull;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + ph->p_vaddr;
		struct range r = { at & ~(page - 1), osh_align_up(at + ph->p_memsz, page) };

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_W) && l->count < OSH_DATA_PIECES)
			l->writable[l->count++] = r;
		/* Whole pages are protected; what is left of the last one is writable. */
		if (ph->p_type == PT_GNU_RELRO)
			relro = (struct range){ at, (at + ph->p_memsz) & ~(page - 1) };
		if (ph->p_type == PT_NOTE)
			l->id = hash_notes(l->id, (const uint8_t *)at, ph->p_memsz);
		l->id = hash(l->id, &ph->p_vaddr, sizeof(ph->p_vaddr));
		l->id = hash(l->id, &ph->p_memsz, sizeof(ph->p_memsz));
	}
	for (int i = 0; i < l->count; i++) {
		struct range *w = &l->writable[i];

		if (relro.from < w->to && relro.to > w->from)
			w->from = relro.to;
	}
	return 1;
}

/* Adds pages after the last piece, or to it if they touch; leaves them out where there are OSH_DATA_PIECES pieces. */
static void add_piece(struct osh_globals *g, uintptr_t from, uintptr_t to)
{
	struct osh_piece *last = g->count > 0 ? &g->piece[g->count - 1] : NULL;

	if (last != NULL && (uintptr_t)last->base + last->len == from) {
		last->len += to - from;
	} else if (g->count < OSH_DATA_PIECES) {
		g->piece[g->count].base = (uint8_t *)from;
		g->piece[g->count++].len = to - from;
	}
}

/* Adds what of a mapping lies in writable segments. Segments and mappings come in the order of their addresses. */
static void add_mapping(struct osh_globals *g, const struct layout *l, struct range m)
{
	for (int i = 0; i < l->count; i++) {
		uintptr_t from = l->writable[i].from, to = osh_min(m.to, l->writable[i].to);

		from = m.from > from ? m.from : from;
		if (from < to)
			add_piece(g, from, to);
	}
}

/*
 * Adds the private mappings of this process that may be read and written. A line may be longer, by the name of a
 * file; its rest is no line with two addresses and rights.
 */
static void find_mapped(struct osh_globals *g, const struct layout *l)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[128], rights[5];
	bool begins = true;
	struct range m;

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		if (begins &&
		    sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &m.from, &m.to, rights) == 3 &&
		    rights[0] == 'r' && rights[1] == 'w' && rights[3] == 'p')
			add_mapping(g, l, m);
		begins = strchr(line, '\n') != NULL;
	}
	if (maps != NULL)
		fclose(maps);
}

void osh_globals_find(struct osh_globals *g)
{
	struct layout l = { .count = 0 };
	uintptr_t offset;

	*g = (struct osh_globals){ .count = 0 };
	dl_iterate_phdr(look, &l);
	find_mapped(g, &l);
	g->id = l.id;
	for (int i = 0; i < g->count; i++) {
		offset = (uintptr_t)g->piece[i].base - l.bias;
		g->id = hash(g->id, &offset, sizeof(offset));
		g->id = hash(g->id, &g->piece[i].len, sizeof(g->piece[i].len));
	}
}

bool osh_globals_have(const void *addr)
{
	struct layout l = { .count = 0 };
	uintptr_t at = (uintptr_t)addr;
	bool have = false;

	dl_iterate_phdr(look, &l);
	for (int i = 0; i < l.count; i++)
		have |= l.writable[i].from <= at && at < l.writable[i].to;
	return have;
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

/* ---- children of fork() ---------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	bool hooked;
	const struct osh_globals *globals;
	uint8_t *copy[OSH_DATA_PIECES]; /* between the handlers before and after a fork(); or MAP_FAILED */
} children = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Is swap space in use, or is that not known? Pages there are not in memory either: then all are read. */
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

/* Returns a copy of an adopted piece in new private memory, or MAP_FAILED. */
static uint8_t *copy_piece(const struct osh_piece *p)
{
	uint8_t *copy =
		mmap(NULL, p->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy != MAP_FAILED)
		copy_adopted(copy, p->base, p->len);
	return copy;
}

void osh_globals_adopted(struct osh_piece *piece, bool adopted)
{
	/* A thread that forks holds it until it has forked. */
	pthread_mutex_lock(&children.lock);
	piece->adopted = adopted;
	pthread_mutex_unlock(&children.lock);
}

/*
 * Copies the adopted pieces, and takes the lock, which is held until after the fork. The copies are mapped over the
 * missing pages in the child, so they have to exist before.
 */
static void before_fork(void)
{
	const struct osh_globals *g;

	pthread_mutex_lock(&children.lock);
	g = children.globals;
	for (int i = 0; i < OSH_DATA_PIECES; i++)
		children.copy[i] = g != NULL && i < g->count && g->piece[i].adopted
					   ? copy_piece(&g->piece[i])
					   : MAP_FAILED;
}

/* Unmaps the copies and drops the lock of before_fork(). */
static void after_fork_parent(void)
{
	for (int i = 0; i < OSH_DATA_PIECES; i++)
		if (children.copy[i] != MAP_FAILED)
			munmap(children.copy[i], children.globals->piece[i].len);
	pthread_mutex_unlock(&children.lock);
}

/*
 * Moves the copies to where the pieces are missing, makes this process one without a job, and drops the lock of
 * before_fork(). mremap() may be a function of another library, which uses variables that are missing.
 */
static void after_fork_child(void)
{
	for (int i = 0; i < OSH_DATA_PIECES; i++) {
		const struct osh_piece *p;

		if (children.copy[i] == MAP_FAILED)
			continue;
		p = &children.globals->piece[i];
		syscall(SYS_mremap, children.copy[i], p->len, p->len, MREMAP_MAYMOVE | MREMAP_FIXED,
			p->base);
	}
	children.globals = NULL;
	osh_state_leave_to_parent();
	pthread_mutex_unlock(&children.lock);
}

int osh_globals_for_children(const struct osh_globals *g)
{
	int rc = 0;

	pthread_mutex_lock(&children.lock);
	if (!children.hooked) {
		rc = -pthread_atfork(before_fork, after_fork_parent, after_fork_child);
		children.hooked = rc == 0;
	}
	if (rc == 0)
		children.globals = g;
	pthread_mutex_unlock(&children.lock);
	return rc;
}
