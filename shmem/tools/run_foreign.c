/* SPDX-License-Identifier: BSD-2-Clause */
/* The libraries that an executable needs are named in its dynamic section. */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run_foreign.h"

#define HEADERS_MAX 64
#define ENTRIES_MAX 4096

struct image {
	int fd, n;
	ElfW(Phdr) headers[HEADERS_MAX];
};

/* Reads n bytes at offset `at`. False: they are not all there. */
static bool read_all(int fd, void *to, size_t n, uint64_t at)
{
	return at <= INT64_MAX && pread(fd, to, n, (off_t)at) == (ssize_t)n;
}

/*
 * Opens a program, which is found as execvp() does, but does not wait for one who writes into a FIFO. -1: there is
 * none.
 */
static int open_program(const char *program)
{
	const char *path = getenv("PATH"), *end;
	char name[PATH_MAX];
	int fd;

	if (strchr(program, '/') != NULL || path == NULL)
		return open(program, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	for (;; path = end + 1) {
		end = strchrnul(path, ':');
		snprintf(name, sizeof(name), "%.*s%s%s", (int)(end - path), path,
			 end == path ? "" : "/", program);
		fd = access(name, X_OK) == 0 ? open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
		if (fd >= 0 || *end == '\0')
			return fd;
	}
}

/* Reads the program headers. False: it is no executable of this word size, or cannot be read. */
static bool read_headers(struct image *image)
{
	ElfW(Ehdr) head;

	if (!read_all(image->fd, &head, sizeof(head), 0) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
	    head.e_phentsize != sizeof(image->headers[0]) || head.e_phnum > HEADERS_MAX)
		return false;
	image->n = head.e_phnum;
	return read_all(image->fd, image->headers, sizeof(image->headers[0]) * (size_t)image->n,
			head.e_phoff);
}

/* Where in the file the byte at an address is; UINT64_MAX: nowhere. */
static uint64_t place_of(const struct image *image, uint64_t address)
{
	for (int i = 0; i < image->n; i++) {
		const ElfW(Phdr) *h = &image->headers[i];

		if (h->p_type == PT_LOAD && address >= h->p_vaddr &&
		    address - h->p_vaddr < h->p_filesz)
			return h->p_offset + (address - h->p_vaddr);
	}
	return UINT64_MAX;
}

static bool begins(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

/* Notes the name in `library`, "" before, if it is the first of a library of others. False: it is that of ours. */
static bool consider(const char *name, char library[RUN_FOREIGN_NAME])
{
	static const char *const others[] = { "liboshmem.so", "libsma.so", "libshmem.so",
					      "libmpi.so", "libmpich.so" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (begins(name, others[i]) && library[0] == '\0')
			snprintf(library, RUN_FOREIGN_NAME, "%s", name);
	}
	return !begins(name, "libviaduct-shmem.so");
}

/* Does it need a library of others, which is in `library`, "" before, then, and not ours? */
static bool find_needed(const struct image *image, const ElfW(Phdr) * dynamic,
			char library[RUN_FOREIGN_NAME])
{
	uint64_t n = dynamic->p_filesz / sizeof(ElfW(Dyn)), strings = UINT64_MAX;
	char name[RUN_FOREIGN_NAME];
	ElfW(Dyn) entry;

	for (int pass = 0; pass < 2; pass++) {
		for (uint64_t i = 0; i < n && i < ENTRIES_MAX; i++) {
			if (!read_all(image->fd, &entry, sizeof(entry),
				      dynamic->p_offset + i * sizeof(entry)) ||
			    entry.d_tag == DT_NULL)
				break;
			if (pass == 0 && entry.d_tag == DT_STRTAB)
				strings = place_of(image, entry.d_un.d_ptr);
			if (pass == 0 || entry.d_tag != DT_NEEDED || strings == UINT64_MAX)
				continue;
			memset(name, 0, sizeof(name));
			if (pread(image->fd, name, sizeof(name) - 1,
				  (off_t)(strings + entry.d_un.d_val)) > 0 &&
			    !consider(name, library))
				return false;
		}
	}
	return library[0] != '\0';
}

bool run_foreign(const char *program, char library[RUN_FOREIGN_NAME])
{
	struct image image = { .fd = open_program(program) };
	bool foreign = false;

	library[0] = '\0';
	if (image.fd < 0)
		return false;
	if (read_headers(&image)) {
		for (int i = 0; i < image.n; i++) {
			if (image.headers[i].p_type == PT_DYNAMIC)
				foreign = find_needed(&image, &image.headers[i], library);
		}
	}
	close(image.fd);
	return foreign;
}
