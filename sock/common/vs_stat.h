/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics: a file of slots that vi_run makes and every process of the run maps.
 *
 * A process takes the next slot; when all are taken it shares one, so each counter is added to
 * atomically.  They outlive a process that is killed.  Without vi_run --stats the counters are the
 * process's own and nobody reads them.
 */
#ifndef VS_STAT_H
#define VS_STAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VS_STAT_SLOTS 2048
#define VS_STAT_MAGIC UINT64_C(0x3153544154534956) /* "VISTATS1" */

/* Why a TCP connection was not promoted, or was demoted. */
enum vs_why {
	VS_WHY_NEVER,	 /* the policy or a rule says never */
	VS_WHY_ADDRESS,	 /* the peer's address is not that of a fabric host */
	VS_WHY_FABRIC,	 /* no fabric, or its agent cannot be reached */
	VS_WHY_SHORT,	 /* it ended before it was worth it */
	VS_WHY_NO_MATCH, /* the peer did not answer: it runs without this library, or behind NAT */
	VS_WHY_OPTION,	 /* a socket option that only the kernel serves */
	VS_WHY_MEMORY,	 /* no window memory, or a limit of the fabric */
	VS_WHY_LOST,	 /* the VI or the link broke */
	VS_WHY_URGENT,	 /* urgent data (MSG_OOB) */
	VS_WHY_FORK,	 /* several processes have the socket */
	VS_WHY_EXEC,	 /* the next program has the socket */
	VS_WHY_PASSED,	 /* the descriptor was sent to another process */
	VS_WHY_STDIO,	 /* fdopen(), dprintf() or POSIX AIO */
	VS_WHY_SIGNAL,	 /* O_ASYNC: the kernel signals arrival */
	VS_WHY_URING,	 /* io_uring is used */
	VS_WHY_SET,	 /* an epoll set that is not known here */
	VS_WHY_PEER,	 /* the peer asked for it */
	VS_WHY_COUNT
};

extern const char *const vs_why_text[VS_WHY_COUNT];

enum vs_count {
	VS_TCP_SOCKETS, /* connections seen: by connect() or accept() */
	VS_TCP_RX,
	VS_TCP_TX, /* their bytes that the kernel carried */
	VS_VI_RX,
	VS_VI_TX,	 /* bytes that VIs carried */
	VS_PROMOTED,	 /* connections */
	VS_DEMOTED,	 /* those that went back to TCP */
	VS_SLEEPS,	 /* waits in the kernel for promoted connections */
	VS_POLLED,	 /* times that a poller found something on a connection */
	VS_POLLER_WAKES, /* sleeps that pollers ended */
	VS_GIVEN, /* times that a connection was given to a poller, where these are placed by core */
	VS_GIVEN_ONE_CORE, /* and that poller was held on the core of the thread that gave it */
	VS_COUNTS
};

struct vs_stat_slot {
	_Atomic uint32_t pid; /* the first process that took the slot */
	char program[28];
	_Atomic uint64_t count[VS_COUNTS];
	_Atomic uint64_t not_promoted[VS_WHY_COUNT];
	_Atomic uint64_t demoted[VS_WHY_COUNT];
};

struct vs_stat_file {
	uint64_t magic;
	_Atomic uint32_t taken; /* slots, may exceed VS_STAT_SLOTS */
	_Alignas(64) struct vs_stat_slot slot[VS_STAT_SLOTS];
};

/* That of this process; never NULL. */
extern struct vs_stat_slot *_Atomic vs_stat_mine;
extern bool vs_stat_wanted; /* somebody reads them */

/* Adds to a counter of this process. */
static inline void vs_stat_add(enum vs_count what, uint64_t n)
{
	struct vs_stat_slot *s = atomic_load_explicit(&vs_stat_mine, memory_order_relaxed);

	atomic_fetch_add_explicit(&s->count[what], n, memory_order_relaxed);
}

/* Counts a connection that was not promoted, for this reason. */
void vs_stat_not_promoted(enum vs_why why);
/* Counts a connection that went back to TCP, in all and for this reason. */
void vs_stat_demoted(enum vs_why why);

/*
 * Adds the bytes that streams have moved since the last call; does nothing without a file, or while another thread is
 * at it.
 */
void vs_stat_publish(void);
/* In a child of fork(): bytes that were moved before count for the parent. */
void vs_stat_publish_none(void);

/*
 * Maps the file and takes a slot; no file where `path` is NULL or "", which is no error.  0 or -errno, -EINVAL for a
 * file of another kind; nobody reads the counters then.
 */
int vs_stat_open(const char *path, const char *program);

/* In a child of fork(): takes a slot of its own, if there is a file. */
void vs_stat_child(const char *program);

/*
 * For vi_run: makes and maps a file without a name, which nothing can shorten.  Its descriptor or -errno; the mapping
 * stays until the process ends.
 */
int vs_stat_create(struct vs_stat_file **out);

#endif
