/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol of vi_cp, version 1.
 *
 * Sender S and receiver R are joined by one VI on reliable delivery.  R owns a
 * window of CP_BUFFERS buffers of CP_BUFFER_BYTES, which S fills by RDMA write
 * with immediate data, in order 0, 1, ..., CP_BUFFERS - 1, 0, ...; the immediate
 * data is the number of the buffer.  All else are messages that begin with
 * struct cp_header, in the byte order of little-endian machines.
 *
 *	S -> R	HELLO{path}	the directory below R's own to copy into; path may be empty
 *	R -> S	WELCOME		where the window is (or RESULT: why not)
 *
 *	S -> R	DIR{path}	make a directory, or use the one there		-> RESULT
 *	S -> R	DIR_END{path}	its mode and time, after its contents		-> RESULT
 *	S -> R	LINK{path,target} make a symbolic link				-> RESULT
 *	S -> R	FILE{path,size}	a file begins: no answer
 *	S -> R	(RDMA writes)	its contents					-> CREDIT each
 *	S -> R	END{size,sha256} is it whole? then it gets its name		-> RESULT
 *	S -> R	ABORT		S cannot read on: forget the file		-> RESULT
 *	S -> R	BYE		all is said					-> RESULT
 *
 * S waits for each RESULT before it goes on, and fills a buffer again only
 * after its CREDIT, so that at most CP_BUFFERS + 2 things are under way each way:
 * both sides keep CP_RECEIVES receives posted and none of them can run out.
 * An error of one file is told in its RESULT and does not end the session; a
 * message that breaks these rules does.
 *
 * R trusts nothing: every length is checked against the bytes that really came, a
 * path has no empty, "." or ".." component and no leading slash, no link on the way is
 * followed, and a write that is out of turn ends the session.
 */
#ifndef VI_CP_PROTO_H
#define VI_CP_PROTO_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "messages are in host byte order");

#define CP_MAGIC 0x50434956u /* "VICP" */
#define CP_VERSION 1u
#define CP_BUFFERS 8u
#define CP_BUFFER_BYTES (1u << 20)
#define CP_RECEIVES (CP_BUFFERS + 4u)
#define CP_PATH_MAX 4095u
#define CP_TEXT_MAX 255u
#define CP_DIGEST_BYTES 32u

enum cp_type {
	CP_HELLO = 1, /* struct cp_entry */
	CP_DIR,	      /* struct cp_entry */
	CP_DIR_END,   /* struct cp_entry */
	CP_LINK,      /* struct cp_entry */
	CP_FILE,      /* struct cp_entry */
	CP_END,	      /* struct cp_end */
	CP_ABORT,     /* struct cp_header */
	CP_BYE,	      /* struct cp_header */
	CP_WELCOME,   /* struct cp_welcome */
	CP_CREDIT,    /* struct cp_credit */
	CP_RESULT,    /* struct cp_result */
	CP_TYPES
};

struct cp_header {
	uint32_t magic;
	uint16_t version;
	uint16_t type;	 /* enum cp_type */
	uint32_t length; /* of the whole message */
	uint32_t reserved;
};
static_assert(sizeof(struct cp_header) == 16, "cp_header");

struct cp_entry {
	struct cp_header header;
	uint64_t size; /* FILE: expected, to reserve room and to show progress */
	int64_t mtime_sec;
	uint32_t mtime_nsec;
	uint32_t mode; /* permission bits */
	uint16_t path_length;
	uint16_t target_length; /* LINK, else 0 */
	uint32_t reserved;
	char text[2 * CP_PATH_MAX + 2]; /* path, then target, no zero bytes; sent as long as needed */
};
static_assert(offsetof(struct cp_entry, text) == 48, "cp_entry");

struct cp_end {
	struct cp_header header;
	uint64_t size; /* bytes sent */
	uint8_t digest[CP_DIGEST_BYTES];
};
static_assert(sizeof(struct cp_end) == 56, "cp_end");

struct cp_welcome {
	struct cp_header header;
	uint64_t address;
	uint32_t handle;
	uint32_t buffers;
	uint32_t buffer_bytes;
	uint32_t reserved;
};
static_assert(sizeof(struct cp_welcome) == 40, "cp_welcome");

struct cp_credit {
	struct cp_header header;
	uint32_t buffer;
	uint32_t reserved;
};
static_assert(sizeof(struct cp_credit) == 24, "cp_credit");

struct cp_result {
	struct cp_header header;
	uint32_t failed;
	uint32_t text_length;
	char text[CP_TEXT_MAX + 1]; /* for people; sent as long as needed */
};
static_assert(offsetof(struct cp_result, text) == 24, "cp_result");

#define CP_MESSAGE_MAX ((sizeof(struct cp_entry) + 63u) & ~(size_t)63u)

/* A received message, checked and copied out. */
struct cp_message {
	enum cp_type type;
	uint64_t size;	   /* FILE, END */
	int64_t mtime_sec; /* DIR_END, LINK, FILE */
	uint32_t mtime_nsec;
	uint32_t mode;
	uint32_t buffer; /* CREDIT */
	bool failed;	 /* RESULT */
	struct cp_welcome welcome;
	uint8_t digest[CP_DIGEST_BYTES];
	char path[CP_PATH_MAX + 1]; /* also the text of a RESULT, made printable */
	char target[CP_PATH_MAX + 1];
};

/* Starts a message. */
void cp_header_init(struct cp_header *header, enum cp_type type, size_t length);

/* Fills an entry; returns its length or -ENAMETOOLONG. */
int cp_entry_init(struct cp_entry *entry, enum cp_type type, const char *path, const char *target);

/* Is `length` bytes at `data` a whole message of this version?  0 or -EPROTO; fills `out` on success. */
int cp_parse(const void *data, size_t length, struct cp_message *out);

/* Is this a path that stays below the directory it is relative to? */
bool cp_path_safe(const char *path);

/* Replaces what could play tricks on a terminal. */
void cp_make_printable(char *text);

#endif
