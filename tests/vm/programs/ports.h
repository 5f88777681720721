/* SPDX-License-Identifier: BSD-2-Clause */
/* For programs that run in a guest with both ports of a link: the ports, checks, and the script of the suite. */
#ifndef PORTS_H
#define PORTS_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../../kmod/viaduct_ioctl.h"

#define PAGE 4096
#define WAIT_MS (30000 * patience())

static int failures;

/* The guest's kernel takes so many times as long as a stock kernel. */
static inline int patience(void)
{
	const char *times = getenv("VM_PATIENCE");

	return times != NULL ? atoi(times) : 1;
}

#define CHECK(cond, ...) check(!!(cond), __LINE__, __VA_ARGS__)

static inline bool check(bool good, int line, const char *text)
{
	if (good) {
		printf("ok %s\n", text);
	} else {
		printf("not ok %s (line %d, errno %d)\n", text, line, errno);
		failures++;
	}
	fflush(stdout);
	return good;
}

static inline int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline int open_port(int number)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/viaduct%d", number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		printf("not ok open %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return fd;
}

static inline const volatile struct viaduct_status *status_of(int fd)
{
	return mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
}

static inline int link_set(int fd, unsigned int enable)
{
	struct viaduct_link link = { .enable = enable };

	return ioctl(fd, VIADUCT_LINK, &link);
}

/* Waits until the link has the state `want`; each wait ends by an event of the descriptor. */
static inline bool wait_link(int fd, unsigned int want)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct viaduct_info info;

	for (;;) {
		if (ioctl(fd, VIADUCT_GET_INFO, &info) != 0)
			return false;
		if (info.link == want)
			return true;
		if (poll(&p, 1, WAIT_MS) <= 0)
			return false;
	}
}

static inline bool both_up(int a, int b)
{
	return link_set(a, 1) == 0 && link_set(b, 1) == 0 && wait_link(a, VIADUCT_LINK_UP) &&
	       wait_link(b, VIADUCT_LINK_UP);
}

static inline int make_slice(int fd, unsigned int dir, unsigned int window, uint64_t off,
			     uint64_t len, struct viaduct_slice *out)
{
	*out = (struct viaduct_slice){
		.direction = dir, .window = window, .offset = off, .len = len
	};
	return ioctl(fd, VIADUCT_SLICE, out);
}

static inline int make_client(int fd, uint64_t ring_bits)
{
	struct viaduct_client client = { .ring_bits = ring_bits };

	return ioctl(fd, VIADUCT_CLIENT, &client) == 0 ? client.fd : -1;
}

static inline int ring_bits(int fd, uint64_t bits)
{
	struct viaduct_ring ring = { .db_bits = bits };

	return ioctl(fd, VIADUCT_RING, &ring);
}

static inline void *map_slice(const struct viaduct_slice *slice)
{
	return mmap(NULL, slice->len, PROT_READ | PROT_WRITE, MAP_SHARED, slice->fd, 0);
}

/* Asks the script of the suite to do something; it answers with a line when it has. */
static inline void begin_ask(const char *what)
{
	printf("do %s\n", what);
	fflush(stdout);
}

static inline void end_ask(void)
{
	char line[64];

	if (fgets(line, sizeof(line), stdin) == NULL)
		exit(1);
}

static inline void ask(const char *what)
{
	begin_ask(what);
	end_ask();
}

static inline int end(void)
{
	printf("end %d\n", failures);
	return failures != 0;
}

#endif
