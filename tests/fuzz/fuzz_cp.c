/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that a peer of vi_cp may send: one that is accepted has texts that end,
 * and is unchanged when it is written and read again; a path that is called
 * safe has no component that leads out.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fz_input.h"
#include "proto.h"

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void path_check(const char *path)
{
	char copy[CP_PATH_MAX + 1], *part, *rest = copy;

	snprintf(copy, sizeof(copy), "%s", path);
	if (!cp_path_safe(path))
		return;
	while ((part = strsep(&rest, "/")) != NULL)
		must(strcmp(part, "") != 0 && strcmp(part, ".") != 0 && strcmp(part, "..") != 0 &&
			     strlen(part) <= 255,
		     "an unsafe path passed for safe");
}

static bool is_entry(enum cp_type type)
{
	return type >= CP_HELLO && type <= CP_FILE;
}

static void entry_again(const struct cp_message *m)
{
	static struct cp_entry entry;
	static struct cp_message again;
	int len = cp_entry_init(&entry, m->type, m->path, m->target);

	must(len > 0, "an accepted entry cannot be written");
	must(cp_parse(&entry, (size_t)len, &again) == 0, "a written entry cannot be read");
	must(strcmp(m->path, again.path) == 0 && strcmp(m->target, again.target) == 0,
	     "an entry changed its names");
}

/* Puts a correct header in front, so that most inputs pass its checks. */
static size_t wrap(const uint8_t *data, size_t size, uint8_t *out)
{
	struct cp_header header;
	struct cp_entry *entry = (void *)out;
	size_t len = sizeof(header) + size;

	cp_header_init(&header, 1 + data[0] % CP_RESULT, len);
	memcpy(out, &header, sizeof(header));
	memcpy(out + sizeof(header), data, size);
	if (is_entry((enum cp_type)header.type) && len >= offsetof(struct cp_entry, text) &&
	    data[0] < 128) {
		entry->mtime_nsec %= 1000000000;
		entry->mode &= 07777;
		entry->path_length %= len - offsetof(struct cp_entry, text) + 1;
		entry->target_length =
			(uint16_t)(len - offsetof(struct cp_entry, text) - entry->path_length);
	}
	return len;
}

static void try_message(const void *data, size_t size)
{
	static struct cp_message m;

	memset(&m, 0x5a, sizeof(m));
	if (cp_parse(data, size, &m) != 0)
		return;
	must(m.type > 0 && m.type < CP_TYPES, "accepted without a type");
	if (m.type == CP_CREDIT)
		must(m.buffer < CP_BUFFERS, "credit for a buffer that is none");
	if (m.type == CP_HOLE)
		must(m.buffer < CP_BUFFERS && m.size > 0 && m.size <= CP_HOLE_MAX,
		     "a hole without bounds");
	if (m.type == CP_WELCOME)
		must(memchr(m.welcome.name, 0, sizeof(m.welcome.name)) != NULL,
		     "a name without an end");
	if (is_entry(m.type)) {
		must(memchr(m.path, 0, sizeof(m.path)) && memchr(m.target, 0, sizeof(m.target)),
		     "a name without an end");
		path_check(m.path);
		entry_again(&m);
		cp_make_printable(m.path);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size == 0 || size > sizeof(struct cp_entry))
		return 0;
	/* Exact copies on the heap: the sanitizer sees a read past their end. */
	copy = malloc(size);
	memcpy(copy, data, size);
	try_message(copy, size);
	free(copy);
	copy = malloc(sizeof(struct cp_header) + size);
	try_message(copy, wrap(data, size, copy));
	free(copy);
	return 0;
}
