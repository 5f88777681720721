/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol of vi_cp, version 2.
 *
 * The client is the program that was given SRC and DEST, the server the one with
 * --serve.  One of them is the sender, the other the receiver: HELLO says which.
 * They are joined by one VI on reliable delivery.  The receiver owns a window of
 * CP_BUFFERS buffers of CP_BUFFER_BYTES, which the sender fills by RDMA write with
 * immediate data, in order 0, 1, ..., CP_BUFFERS - 1, 0, ...; the immediate data is the
 * number of the buffer.  All else are messages that begin with struct cp_header, in the
 * byte order of little-endian machines.
 *
 * A push begins with
 *	client -> server  HELLO{flags,path}	what to copy to, below the served directory
 *	server -> client  WELCOME		the window, and the name to use if path is a new one
 *						(or RESULT: why not)
 * and a pull with
 *	client -> server  HELLO{flags}		-> RESULT
 *	client -> server  SOURCE{path,target}	once or more; target: the name to use, if any	-> RESULT
 *	client -> server  WELCOME		the window; the server sends from now on
 *
 * Then, from the sender to the receiver:
 *	TOTAL{size}		about how many bytes will follow: no answer
 *	DIR{path}		make a directory, or use an existing one	-> RESULT
 *	DIR_END{path}		its mode and time, after its contents		-> RESULT
 *	LINK{path,target}	make a symbolic link				-> RESULT
 *	FILE{path,size}		a file begins: no answer, but with
 *				CP_NO_CLOBBER in the HELLO			-> RESULT
 *	(RDMA writes)		its contents					-> CREDIT each
 *	HOLE{size,buffer}	zero bytes, in place of a filled buffer		-> CREDIT
 *	END{size,sha256}	if the file is complete, it gets its name	-> RESULT
 *	ABORT			the sender cannot read on: discard the file	-> RESULT
 *	NOTE{text}		a file was not copied, and why			-> RESULT
 *	BYE			the sender has finished				-> RESULT
 *
 * The sender waits for each RESULT before it continues, and fills a buffer again only
 * after its CREDIT, so at most CP_BUFFERS + 3 messages and writes are under way in each
 * direction: both sides have CP_RECEIVES receives posted and never run out of them.
 * The RESULT of a file reports an error of it, which does not end the session; a
 * message that breaks these rules does.
 *
 * Neither side trusts the other: every length is checked against the bytes that
 * arrived, a path has no empty, "." or ".." component and no leading slash, no link on the
 * path to a destination is followed, a server reads nothing outside its directory, a client
 * that pulls accepts only names that it asked for, and a write out of order ends the
 * session.
 */
#ifndef VI_CP_PROTO_H
#define VI_CP_PROTO_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "messages are in host byte order");

#define CP_MAGIC 0x50434956u /* "VICP" */
#define CP_VERSION 2u
#define CP_BUFFERS 8u
#define CP_BUFFER_BYTES (1u << 20)
#define CP_RECEIVES (CP_BUFFERS + 6u)
#define CP_PATH_MAX 4095u
#define CP_TEXT_MAX 255u
#define CP_NAME_MAX 255u
#define CP_DIGEST_BYTES 32u
#define CP_HOLE_MAX                                                                                \
	(UINT32_C(64) << 20) /* of one HOLE: hashing it takes no longer than 64 buffers */

/* In the HELLO, of the whole session: */
#define CP_PULL 1u	/* the server sends */
#define CP_DIRECTORY 2u /* the destination is a directory, made if it is not there */
#define CP_RECURSIVE 4u /* directories are copied, too */
#define CP_PRESERVE 8u	/* modes and times are preserved */
#define CP_ARCHIVE                                                                                 \
	16u /* owners too, by a receiver that may; links that are named are copied as such */
#define CP_NO_CLOBBER 32u /* existing files are not replaced */
#define CP_ANYWHERE 64u	  /* paths are not confined to the served directory; --spawn only */
#define CP_HELLO_FLAGS 127u
/* In a FILE: */
#define CP_STREAM 1u /* its size is not known before its end */

enum cp_type {
	CP_HELLO = 1, /* struct cp_entry */
	CP_SOURCE,    /* struct cp_entry */
	CP_TOTAL,     /* struct cp_entry */
	CP_DIR,	      /* struct cp_entry */
	CP_DIR_END,   /* struct cp_entry */
	CP_LINK,      /* struct cp_entry */
	CP_FILE,      /* struct cp_entry */
	CP_HOLE,      /* struct cp_hole */
	CP_END,	      /* struct cp_end */
	CP_ABORT,     /* struct cp_header */
	CP_NOTE,      /* struct cp_result */
	CP_BYE,	      /* struct cp_result */
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
	uint64_t size; /* FILE: expected, to show progress; TOTAL */
	uint64_t room; /* FILE: to reserve on disk */
	int64_t mtime_sec;
	uint32_t mtime_nsec;
	uint32_t mode; /* permission bits */
	uint32_t uid, gid;
	uint32_t flags; /* HELLO, FILE, else 0 */
	uint16_t path_length;
	uint16_t target_length;		/* LINK, SOURCE, else 0 */
	char text[2 * CP_PATH_MAX + 2]; /* path, then target, no zero bytes; sent as long as needed */
};
static_assert(offsetof(struct cp_entry, text) == 64, "cp_entry");

struct cp_hole {
	struct cp_header header;
	uint64_t size; /* at most CP_HOLE_MAX */
	uint32_t buffer;
	uint32_t reserved;
};
static_assert(sizeof(struct cp_hole) == 32, "cp_hole");

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
	uint32_t name_length; /* 0: the destination is a directory */
	char name[CP_NAME_MAX +
		  1]; /* else the new name of the one thing copied; sent as long as needed */
};
static_assert(offsetof(struct cp_welcome, name) == 40, "cp_welcome");

struct cp_credit {
	struct cp_header header;
	uint32_t buffer;
	uint32_t reserved;
};
static_assert(sizeof(struct cp_credit) == 24, "cp_credit");

/* How a side spent its time, in nanoseconds. */
enum cp_spent {
	CP_SPENT_DISK, /* reading or writing */
	CP_SPENT_HASH,
	CP_SPENT_SYNC, /* until written data is on disk */
	CP_SPENT_WAIT, /* for the other side */
	CP_SPENT
};

enum cp_verdict { CP_DONE, CP_FAILED, CP_LEFT_ALONE, CP_VERDICTS };

struct cp_result {
	struct cp_header header;
	uint32_t verdict; /* enum cp_verdict */
	uint32_t text_length;
	uint64_t spent_ns[CP_SPENT]; /* in BYE and its answer */
	char text[CP_TEXT_MAX + 1];  /* for people; sent as long as needed */
};
static_assert(offsetof(struct cp_result, text) == 56, "cp_result");

#define CP_MESSAGE_MAX ((sizeof(struct cp_entry) + 63u) & ~(size_t)63u)

/* A received message, checked and copied out. */
struct cp_message {
	enum cp_type type;
	uint64_t size;	   /* TOTAL, FILE, HOLE, END */
	uint64_t room;	   /* FILE */
	int64_t mtime_sec; /* DIR_END, LINK, FILE */
	uint32_t mtime_nsec;
	uint32_t mode;
	uint32_t uid, gid;
	uint32_t flags;		 /* HELLO, FILE */
	uint32_t buffer;	 /* CREDIT, HOLE */
	enum cp_verdict verdict; /* RESULT */
	uint64_t spent_ns[CP_SPENT];
	struct cp_welcome welcome; /* its name ends */
	uint8_t digest[CP_DIGEST_BYTES];
	char path[CP_PATH_MAX + 1]; /* also the text of a RESULT or NOTE, made printable */
	char target[CP_PATH_MAX + 1];
};

/* Starts a message. */
void cp_header_init(struct cp_header *header, enum cp_type type, size_t length);

/* Fills an entry; returns its length or -ENAMETOOLONG. */
int cp_entry_init(struct cp_entry *entry, enum cp_type type, const char *path, const char *target);

/* Fills a RESULT, NOTE or BYE, whose text may be NULL and is cut if too long; returns its length. */
size_t cp_result_init(struct cp_result *result, enum cp_type type, enum cp_verdict verdict,
		      const char *text);

/* Is `length` bytes at `data` a whole message of this version?  0 or -EPROTO; fills `out` on success. */
int cp_parse(const void *data, size_t length, struct cp_message *out);

/* Is this a path that stays below the directory it is relative to? */
bool cp_path_safe(const char *path);

/* Replaces control characters, and bytes that are not UTF-8, by «?»: a terminal may take them as commands. */
void cp_make_printable(char *text);

#endif
