/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sock_bench: what stream sockets cost, by POSIX calls alone, so that it is measured over TCP, Unix
 * sockets, and any library that is preloaded.
 *
 * A server and a client.  The client opens one connection on which it gives orders; the server carries
 * out each of them and waits for the next one, until SB_END or the end of the connection.
 */
#ifndef SB_H
#define SB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SB_MAX_SIZES 32
#define SB_MAX_SIZE (16u << 20)
#define SB_MAX_CONNECTIONS 4096
#define SB_SMALL 64 /* bytes of a message where the size is not varied */

enum sb_kind {
	SB_PINGPONG = 1, /* send back `count` messages of `size` bytes */
	SB_STREAM,	 /* take `count` pieces of `size` bytes, then send one byte */
	SB_CONNECT,	 /* accept `count` connections one after the other, one exchange on each */
	SB_MANY,  /* accept `count` connections and send back what comes, until the next order */
	SB_USAGE, /* during SB_MANY: send the processor time of the process, 8 bytes in ns */
	SB_LEAVE, /* ends SB_MANY: answered by one byte when its connections are closed */
	SB_END,	  /* of the server */
};

/* Both ends are programs of one build. */
struct sb_order {
	uint32_t kind, polled;
	uint32_t size, spare;
	uint64_t count;
};

/* The options of the command line. */
struct sb_options {
	const char *serve, *connect; /* one of them: an address, or unix:PATH */
	const char *test;
	size_t sizes[SB_MAX_SIZES];
	int size_count;
	bool polled;
	long batches, batch_us, connections, seconds;
};

void sb_options_parse(struct sb_options *options, int argc, char **argv);

/* ---- sb_base.c: numbers of the command line, time, and the way out ---- */

_Noreturn void sb_fail(const char *what); /* with what errno says */
_Noreturn void sb_refuse(const char *what);
_Noreturn void sb_wrong(const char *option, const char *text);		 /* wrong usage */
uint64_t sb_number(const char *option, const char *text, uint64_t most); /* from 1 on */
int64_t sb_now_ns(void);
int64_t sb_cpu_ns(void); /* processor time of this process */
void sb_relax(void);
void *sb_memory(size_t size);

/* Does the operation `count` times and returns the ns that count. */
typedef int64_t sb_work(void *context, uint64_t count);

/* Median time of an operation in batches of a length, in ns; and a first batch that does not count. */
double sb_median(const struct sb_options *options, sb_work *work, void *context);
void sb_say(const struct sb_options *options, const char *test, size_t size, const char *unit,
	    double value);

/* ---- sb_net.c: sockets; each call ends the process when it fails ---- */

int sb_listen(const char *address); /* says on standard output where */
int sb_accept(int listener);
int sb_connect(const char *address);
void sb_send(int fd, const void *from, size_t size, bool polled);
bool sb_recv(int fd, void *to, size_t size,
	     bool polled); /* false: the end of the stream, at once */
void sb_order(int fd, enum sb_kind kind, bool polled, size_t size, uint64_t count);
void sb_exchange(int fd, void *buffer, size_t size, bool polled);

/* ---- the two ends ---- */

int sb_serve(const char *address);
void sb_serve_many(int listener, int orders, const struct sb_order *order);
void sb_pingpong(const struct sb_options *options, int fd);
void sb_stream(const struct sb_options *options, int fd);
void sb_connections(const struct sb_options *options, int fd);
void sb_epoll(const struct sb_options *options, int fd);
void sb_idle(const struct sb_options *options, int fd);
void sb_call(const struct sb_options *options);
void sb_memcached(const struct sb_options *options);

#endif
