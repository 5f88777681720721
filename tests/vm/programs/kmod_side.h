/* SPDX-License-Identifier: BSD-2-Clause */
/* For programs of guests: a port of viaduct.ko, checks, and the script of the suite at standard input and output. */
#ifndef KMOD_SIDE_H
#define KMOD_SIDE_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../kmod/viaduct_ioctl.h"

#define PAGE 4096
#define WAIT_MS (120000 * patience()) /* for every event, also the boot of a machine */

static int failures;

/* The guest's kernel takes so many times as long as a stock kernel. */
static inline int patience(void)
{
	const char *times = getenv("VM_PATIENCE");

	return times != NULL ? atoi(times) : 1;
}

#define CHECK(cond, ...) check(!!(cond), __LINE__, __VA_ARGS__)

static void check(bool good, int line, const char *text)
{
	if (good) {
		printf("ok %s\n", text);
	} else {
		printf("not ok %s (line %d, errno %d)\n", text, line, errno);
		failures++;
	}
	fflush(stdout);
}

struct side {
	int fd;
	struct viaduct_info info;
	const volatile struct viaduct_status *status;
};

static void open_side(struct side *s, const char *path)
{
	s->fd = open(path, O_RDWR | O_CLOEXEC);
	if (s->fd < 0) {
		printf("not ok open %s: %s\n", path, strerror(errno));
		exit(1);
	}
	s->status = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, s->fd, 0);
}

static int link_set(struct side *s, unsigned int enable)
{
	struct viaduct_link link = { .enable = enable };

	return ioctl(s->fd, VIADUCT_LINK, &link);
}

/* Waits until the link has the state `want`; each wait ends by an event of the descriptor. */
static bool wait_link(struct side *s, unsigned int want)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	for (;;) {
		if (ioctl(s->fd, VIADUCT_GET_INFO, &s->info) != 0)
			return false;
		if (s->info.link == want)
			return true;
		if (poll(&p, 1, WAIT_MS) <= 0)
			return false;
	}
}

static int slice(struct side *s, unsigned int dir, unsigned int window, uint64_t off, uint64_t len,
		 struct viaduct_slice *out)
{
	*out = (struct viaduct_slice){
		.direction = dir, .window = window, .offset = off, .len = len
	};
	return ioctl(s->fd, VIADUCT_SLICE, out);
}

static void *map(int fd, size_t len, off_t off)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, off);
}

static inline bool rung(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t value;

	return poll(&p, 1, WAIT_MS) == 1 && read(fd, &value, sizeof(value)) == sizeof(value);
}

/* Asks the script of the suite to do something; it answers with a line when it has. */
static const char *ask(const char *format, ...)
{
	static char line[256];
	va_list args;

	printf("do ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin) == NULL)
		exit(1);
	return line;
}

#endif
