/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "proto.h"

void cp_header_init(struct cp_header *header, enum cp_type type, size_t length)
{
	header->magic = CP_MAGIC;
	header->version = CP_VERSION;
	header->type = (uint16_t)type;
	header->length = (uint32_t)length;
	header->reserved = 0;
}

int cp_entry_init(struct cp_entry *entry, enum cp_type type, const char *path, const char *target)
{
	size_t path_length = strlen(path), target_length = target ? strlen(target) : 0;
	size_t length = offsetof(struct cp_entry, text) + path_length + target_length;

	if (path_length > CP_PATH_MAX || target_length > CP_PATH_MAX)
		return -ENAMETOOLONG;
	memset(entry, 0, offsetof(struct cp_entry, text));
	cp_header_init(&entry->header, type, length);
	entry->path_length = (uint16_t)path_length;
	entry->target_length = (uint16_t)target_length;
	memcpy(entry->text, path, path_length);
	if (target)
		memcpy(entry->text + path_length, target, target_length);
	return (int)length;
}

size_t cp_result_init(struct cp_result *result, enum cp_type type, enum cp_verdict verdict,
		      const char *text)
{
	size_t length;

	memset(result, 0, sizeof(*result));
	result->verdict = verdict;
	result->text_length = text ? (uint32_t)strnlen(text, CP_TEXT_MAX) : 0;
	if (text)
		memcpy(result->text, text, result->text_length);
	length = offsetof(struct cp_result, text) + result->text_length;
	cp_header_init(&result->header, type, length);
	return length;
}

/* Copies text of the peer; it must not hold a zero byte. */
static int take_text(char *out, size_t room, const char *from, size_t length)
{
	if (length >= room || memchr(from, 0, length))
		return -EPROTO;
	memcpy(out, from, length);
	out[length] = 0;
	return 0;
}

static int parse_entry(const void *data, size_t length, struct cp_message *out)
{
	const struct cp_entry *entry = data;
	size_t text;

	if (length < offsetof(struct cp_entry, text))
		return -EPROTO;
	text = length - offsetof(struct cp_entry, text);
	if (entry->path_length > text || entry->target_length != text - entry->path_length)
		return -EPROTO;
	if (entry->mtime_nsec > 999999999 || (entry->mode & ~07777u) ||
	    (entry->flags & ~CP_HELLO_FLAGS))
		return -EPROTO;
	out->size = entry->size;
	out->room = entry->room;
	out->uid = entry->uid;
	out->gid = entry->gid;
	out->flags = entry->flags;
	out->mtime_sec = entry->mtime_sec;
	out->mtime_nsec = entry->mtime_nsec;
	out->mode = entry->mode;
	if (take_text(out->path, sizeof(out->path), entry->text, entry->path_length))
		return -EPROTO;
	return take_text(out->target, sizeof(out->target), entry->text + entry->path_length,
			 entry->target_length);
}

static int parse_hole(const void *data, size_t length, struct cp_message *out)
{
	const struct cp_hole *hole = data;

	if (length != sizeof(*hole) || hole->buffer >= CP_BUFFERS || hole->size == 0 ||
	    hole->size > CP_HOLE_MAX)
		return -EPROTO;
	out->size = hole->size;
	out->buffer = hole->buffer;
	return 0;
}

static int parse_end(const void *data, size_t length, struct cp_message *out)
{
	const struct cp_end *end = data;

	if (length != sizeof(*end))
		return -EPROTO;
	out->size = end->size;
	memcpy(out->digest, end->digest, sizeof(out->digest));
	return 0;
}

static int parse_welcome(const void *data, size_t length, struct cp_message *out)
{
	const struct cp_welcome *welcome = data;
	const size_t fixed = offsetof(struct cp_welcome, name);

	if (length < fixed || welcome->name_length != length - fixed ||
	    welcome->buffers != CP_BUFFERS || welcome->buffer_bytes != CP_BUFFER_BYTES)
		return -EPROTO;
	memcpy(&out->welcome, welcome, fixed);
	return take_text(out->welcome.name, sizeof(out->welcome.name), welcome->name,
			 welcome->name_length);
}

static int parse_credit(const void *data, size_t length, struct cp_message *out)
{
	const struct cp_credit *credit = data;

	if (length != sizeof(*credit) || credit->buffer >= CP_BUFFERS)
		return -EPROTO;
	out->buffer = credit->buffer;
	return 0;
}

static int parse_result(const void *data, size_t length, struct cp_message *out)
{
	const struct cp_result *result = data;

	if (length < offsetof(struct cp_result, text) ||
	    result->text_length != length - offsetof(struct cp_result, text) ||
	    result->text_length > CP_TEXT_MAX || result->verdict >= CP_VERDICTS)
		return -EPROTO;
	out->verdict = (enum cp_verdict)result->verdict;
	memcpy(out->spent_ns, result->spent_ns, sizeof(out->spent_ns));
	if (take_text(out->path, sizeof(out->path), result->text, result->text_length))
		return -EPROTO;
	cp_make_printable(out->path);
	return 0;
}

static int parse_bare(const void *data, size_t length, struct cp_message *out)
{
	(void)data;
	(void)out;
	return length == sizeof(struct cp_header) ? 0 : -EPROTO;
}

static int (*const parsers[CP_TYPES])(const void *, size_t, struct cp_message *) = {
	[CP_HELLO] = parse_entry,     [CP_SOURCE] = parse_entry,  [CP_TOTAL] = parse_entry,
	[CP_DIR] = parse_entry,	      [CP_DIR_END] = parse_entry, [CP_LINK] = parse_entry,
	[CP_FILE] = parse_entry,      [CP_HOLE] = parse_hole,	  [CP_END] = parse_end,
	[CP_ABORT] = parse_bare,      [CP_NOTE] = parse_result,	  [CP_BYE] = parse_result,
	[CP_WELCOME] = parse_welcome, [CP_CREDIT] = parse_credit, [CP_RESULT] = parse_result,
};

int cp_parse(const void *data, size_t length, struct cp_message *out)
{
	struct cp_header header;

	if (length < sizeof(header))
		return -EPROTO;
	memcpy(&header, data, sizeof(header));
	if (header.magic != CP_MAGIC || header.version != CP_VERSION || header.length != length ||
	    header.type >= CP_TYPES || !parsers[header.type])
		return -EPROTO;
	out->type = (enum cp_type)header.type;
	return parsers[header.type](data, length, out);
}

bool cp_path_safe(const char *path)
{
	const char *end;
	size_t length;

	for (;; path = end + 1) {
		end = strchrnul(path, '/');
		length = (size_t)(end - path);
		if (length == 0 || length > 255)
			return false;
		if (path[0] == '.' && (length == 1 || (length == 2 && path[1] == '.')))
			return false;
		if (!*end)
			return true;
	}
}

/* Bytes of the UTF-8 character at `text`; 0: there is none. */
static size_t character_bytes(const unsigned char *text)
{
	size_t i, n = *text < 0x80 ? 1 : *text < 0xc2 ? 0 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : 4;

	if (*text > 0xf4)
		return 0;
	for (i = 1; i < n; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

static bool is_control(const unsigned char *text)
{
	return *text < 0x20 || *text == 0x7f || (text[0] == 0xc2 && text[1] < 0xa0);
}

void cp_make_printable(char *text)
{
	unsigned char *at = (unsigned char *)text;
	size_t n;

	for (; *at; at += n) {
		n = character_bytes(at);
		if (n == 0 || is_control(at)) {
			n = n ? n : 1;
			memset(at, '?', n);
		}
	}
}
