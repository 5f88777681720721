// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs in a guest with both ports of a link: calls of all kinds, with arguments that are valid,
 * nearly valid and invalid, on all kinds of descriptors, by several processes and threads.  A fault
 * shows in the kernel's log, as a signal, or as a call that succeeds and must not.  Usage: fuzz
 * SECONDS SEED
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "ports.h"

#define PROCESSES 2
#define THREADS 2
#define FDS 48
#define MAPS 24
#define KINDS 5

struct map {
	volatile unsigned char *base;
	size_t len;
	bool write;
};

/* The state of a thread; descriptors are shared by all threads of a process, so some are closed by others. */
struct fuzzer {
	uint64_t state;
	struct map map[MAPS];
	unsigned char *arena; /* two pages; the second cannot be accessed */
	int pinned; /* a descriptor with registered memory, or another one that has its number now */
	unsigned long calls, good, copies;
};

static int fds[FDS]; /* 0 and 1: ports, 2: a slice of the peer's memory, for ever */
#define FIRST_OTHER 3
static int64_t deadline;
static atomic_ulong *total, *mapped, *copied;

static uint64_t any(struct fuzzer *f)
{
	f->state ^= f->state << 13;
	f->state ^= f->state >> 7;
	f->state ^= f->state << 17;
	return f->state;
}

/* Numbers near limits. */
static uint64_t number(struct fuzzer *f)
{
	static const uint64_t edges[] = { 0,	      1,	  PAGE,	      4 << 20, 1ULL << 31,
					  1ULL << 32, 1ULL << 44, 1ULL << 63, ~0ULL };

	switch (any(f) % 4) {
	case 0:
		return edges[any(f) % (sizeof(edges) / sizeof(edges[0]))] + any(f) % 5 - 2;
	case 1:
		return any(f);
	case 2:
		return any(f) % 1100 * PAGE;
	default:
		return any(f) % 70;
	}
}

static int *slot(struct fuzzer *f)
{
	return &fds[any(f) % FDS];
}

static void keep(struct fuzzer *f, int fd)
{
	int *place = &fds[FIRST_OTHER + any(f) % (FDS - FIRST_OTHER)];

	if (*place >= 0)
		close(*place);
	*place = fd;
}

static void adopt(struct fuzzer *f, int port)
{
	struct viaduct_adopt adopt = { .address = (uintptr_t)f->arena, .len = any(f) % 3 * PAGE };

	if (ioctl(port, VIADUCT_ADOPT, &adopt) == 0)
		keep(f, adopt.fd);
}

/* Valid requests, which make the objects that invalid ones can be about. */
static void structured(struct fuzzer *f)
{
	struct viaduct_slice slice = { .direction = any(f) % 2,
				       .len = any(f) % 8 ? any(f) % 20 * PAGE + 1 : number(f) };
	struct viaduct_client client = { .ring_bits = any(f) % 256 };
	struct viaduct_bind bind = { .db_bits = any(f) % 256, .flags = any(f) % 2 };
	struct viaduct_spad spad = { .index = any(f) % 9, .flags = any(f) % 4 };
	struct viaduct_pin pin = { .address = (uintptr_t)f->arena + any(f) % PAGE,
				   .len = any(f) % PAGE + 1 };
	struct viaduct_unpin unpin = { .region = any(f) % 16 };
	struct viaduct_copy copy = { .region = any(f) % 8,
				     .target = any(f) % PAGE,
				     .len = any(f) % 256 + 1 };
	struct viaduct_irq_wait wait = { .db_bits = any(f) % 256,
					 .timeout_ns = any(f) % 200000,
					 .ticket = any(f) % 3 };
	struct viaduct_ring ring = { .db_bits = any(f) % 256 };
	struct viaduct_irq irq = { 0 };
	struct viaduct_end end = { 0 };
	int port = fds[any(f) % 2], fd;

	switch (any(f) % 17) {
	case 0:
	case 1:
		if (slice.direction == VIADUCT_OUTBOUND) {
			slice.window = any(f) % 2;
			slice.offset = any(f) % 1024 * PAGE;
		}
		if (ioctl(port, VIADUCT_SLICE, &slice) == 0)
			keep(f, slice.fd);
		break;
	case 2:
		if (ioctl(port, VIADUCT_CLIENT, &client) == 0)
			keep(f, client.fd);
		break;
	case 3:
		bind.eventfd = eventfd(0, EFD_NONBLOCK);
		ioctl(*slot(f), VIADUCT_BIND, &bind);
		if (any(f) % 2)
			keep(f, bind.eventfd);
		else
			close(bind.eventfd);
		break;
	case 4:
		ring_bits(*slot(f), any(f) % 256);
		break;
	case 5:
		link_set(port, any(f) % 8 != 0);
		break;
	case 6:
		if (spad.flags & VIADUCT_SPAD_WRITE)
			spad.value = any(f);
		ioctl(port, VIADUCT_SPAD, &spad);
		break;
	case 7:
		fd = any(f) % 2 ? fds[2] : *slot(f);
		if (ioctl(fd, VIADUCT_PIN, &pin) == 0)
			f->pinned = fd;
		break;
	case 8:
		ioctl(*slot(f), VIADUCT_UNPIN, &unpin);
		break;
	case 9:
	case 10:
		fd = any(f) % 4 ? f->pinned : *slot(f);
		f->copies += ioctl(fd, VIADUCT_COPY, &copy) == 0;
		break;
	case 11:
		if (ioctl(port, VIADUCT_IRQ, &irq) == 0)
			keep(f, irq.fd);
		break;
	case 12:
		ioctl(*slot(f), VIADUCT_IRQ_WAIT, &wait);
		break;
	case 13:
		ioctl(*slot(f), VIADUCT_IRQ_RAISE, &ring);
		break;
	case 14:
		end.fd = *slot(f);
		if (end.fd != fds[2]) /* copies use this slice */
			ioctl(port, VIADUCT_END, &end);
		break;
	case 15:
		adopt(f, port);
		break;
	default:
		fd = dup(*slot(f));
		if (fd >= 0)
			keep(f, fd);
	}
}

/* An argument for a wait that lies partly or completely in memory that cannot be read. */
static void *unreadable(struct fuzzer *f)
{
	if (any(f) % 2)
		return f->arena + PAGE - any(f) % sizeof(struct viaduct_irq_wait);
	return (void *)(uintptr_t)(any(f) % PAGE);
}

/* A valid wait may last for ever, so sets its time limit, if the argument is readable. */
static void limit_wait(struct fuzzer *f, unsigned char *arg, size_t room)
{
	const int64_t timeout_ns = any(f) % 200000;

	if (room >= sizeof(struct viaduct_irq_wait))
		memcpy(arg + offsetof(struct viaduct_irq_wait, timeout_ns), &timeout_ns,
		       sizeof(timeout_ns));
}

/* Makes a call that may not exist, with an argument that is valid, at the end of memory, or not mapped. */
static void random_ioctl(struct fuzzer *f)
{
	static const unsigned long calls[] = {
		VIADUCT_GET_INFO, VIADUCT_BIND,	    VIADUCT_RING,	VIADUCT_SLICE_INFO,
		VIADUCT_FLUSH,	  VIADUCT_SLICE,    VIADUCT_CLIENT,	VIADUCT_LINK,
		VIADUCT_SPAD,	  VIADUCT_IRQ,	    VIADUCT_IRQ_RAISE,	VIADUCT_PIN,
		VIADUCT_UNPIN,	  VIADUCT_COPY,	    VIADUCT_COPIED,	VIADUCT_END,
		VIADUCT_ADOPT,	  VIADUCT_IRQ_WAIT, VIADUCT_GET_TRAITS,
	};
	size_t room = 8 + any(f) % 200;
	unsigned char *arg = f->arena + PAGE - room;
	unsigned long call = calls[any(f) % (sizeof(calls) / sizeof(calls[0]))];
	uint64_t words[32];
	unsigned int i;
	int fd = -1;

	for (i = 0; i < 32; i++)
		words[i] = any(f) % 4 ? 0 : number(f);
	memcpy(arg, words, room);
	switch (any(f) % 16) {
	case 0:
		call ^= 1UL << any(f) % 32;
		break;
	case 1:
		call = _IOC(any(f) % 4, VIADUCT_IOC, any(f) % 40, any(f) % 300);
		break;
	case 2:
		if (call != VIADUCT_IRQ_WAIT)
			ioctl(*slot(f), call, (void *)(uintptr_t)number(f));
		else if (ioctl(*slot(f), call, unreadable(f)) == 0)
			_exit(5);
		return;
	default:
		break;
	}
	if (call == VIADUCT_IRQ_WAIT)
		limit_wait(f, arg, room);
	if (ioctl(*slot(f), call, arg) != 0)
		return;
	if (call == VIADUCT_SLICE)
		memcpy(&fd, arg + offsetof(struct viaduct_slice, fd), sizeof(fd));
	if (call == VIADUCT_ADOPT)
		memcpy(&fd, arg + offsetof(struct viaduct_adopt, fd), sizeof(fd));
	if (call == VIADUCT_CLIENT)
		memcpy(&fd, arg + offsetof(struct viaduct_client, fd), sizeof(fd));
	if (call == VIADUCT_IRQ)
		memcpy(&fd, arg + offsetof(struct viaduct_irq, fd), sizeof(fd));
	if (fd >= 0)
		keep(f, fd);
}

static void map_any(struct fuzzer *f)
{
	static const int sharing[] = { MAP_SHARED, MAP_SHARED, MAP_SHARED, MAP_PRIVATE };
	struct map *m = &f->map[any(f) % MAPS];
	int prot = any(f) % 8, fd = *slot(f), flags = sharing[any(f) % 4];
	size_t len = any(f) % 4 ? (any(f) % 20 + 1) * PAGE : number(f) % (1UL << 30);
	off_t off = any(f) % 2 ? 0 : (off_t)(number(f) & ~(uint64_t)(PAGE - 1));
	void *p;

	if (m->base != NULL)
		munmap((void *)m->base, m->len);
	m->base = NULL;
	p = mmap(NULL, len, prot, flags | (any(f) % 8 ? 0 : MAP_POPULATE), fd, off);
	if (p == MAP_FAILED)
		return;
	*m = (struct map){ .base = p, .len = len, .write = prot & PROT_WRITE };
	if (!(prot & (PROT_READ | PROT_WRITE)))
		mprotect(p, len, PROT_READ);
	f->good++;
}

static void use_map(struct fuzzer *f)
{
	struct map *m = &f->map[any(f) % MAPS];
	int advice;
	size_t at;
	void *p;

	if (m->base == NULL)
		return;
	at = any(f) % m->len;
	switch (any(f) % 8) {
	case 0:
		m->write = mprotect((void *)m->base, m->len, PROT_READ | PROT_WRITE) == 0;
		break;
	case 1:
		p = mremap((void *)m->base, m->len, m->len + PAGE, MREMAP_MAYMOVE);
		if (p != MAP_FAILED)
			_exit(3);
		break;
	case 2:
		/*
		 * A program that gives a page of a status or of an interrupt object back by
		 * madvise() loses it.
		 */
		advice = any(f) % 26;
		if (advice != MADV_DONTNEED && advice != MADV_DONTNEED_LOCKED)
			madvise((void *)m->base, m->len, advice);
		break;
	case 3:
		msync((void *)m->base, m->len, MS_SYNC);
		break;
	case 4:
		mlock((void *)m->base, PAGE);
		munlock((void *)m->base, PAGE);
		break;
	default:
		if (m->write)
			m->base[at] = at;
		else
			(void)m->base[at];
	}
}

static void other(struct fuzzer *f)
{
	struct pollfd p = { .fd = *slot(f), .events = any(f) };
	char bytes[64];
	int *fd = slot(f);

	switch (any(f) % 8) {
	case 0:
		poll(&p, 1, 0);
		break;
	case 1:
		if (fd >= &fds[FIRST_OTHER] && *fd >= 0) {
			close(*fd);
			*fd = -1;
		}
		break;
	case 2:
		fcntl(*fd, F_SETFL, any(f) % 2 ? O_NONBLOCK : 0);
		break;
	case 3:
		lseek(*fd, number(f), any(f) % 5);
		break;
	case 4:
		if (fd >= &fds[FIRST_OTHER] && read(*fd, bytes, 0) < 0 &&
		    write(*fd, bytes, 0) < 0 && ftruncate(*fd, number(f)) == 0)
			_exit(4);
		break;
	case 5:
		syscall(SYS_fallocate, *fd, any(f) % 8, number(f), number(f));
		break;
	case 6:
		close(open("/dev/viaduct0", O_RDWR));
		break;
	default:
		fsync(*fd);
	}
}

static void *run(void *arg)
{
	struct fuzzer *f = arg;
	static void (*const kinds[KINDS])(struct fuzzer *) = { structured, random_ioctl, map_any,
							       use_map, other };

	while (now_ms() < deadline) {
		kinds[any(f) % KINDS](f);
		f->calls++;
	}
	*total += f->calls;
	*mapped += f->good;
	*copied += f->copies;
	return NULL;
}

static int process(uint64_t seed)
{
	struct fuzzer fuzzer[THREADS] = { 0 };
	pthread_t thread[THREADS];
	int i;

	for (i = 0; i < THREADS; i++) {
		fuzzer[i].arena = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		mprotect(fuzzer[i].arena + PAGE, PAGE, PROT_NONE);
		fuzzer[i].pinned = fds[2];
		fuzzer[i].state = (seed + i + 1) * 0x9e3779b97f4a7c15ULL;
		pthread_create(&thread[i], NULL, run, &fuzzer[i]);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	struct viaduct_slice slice;
	atomic_ulong *sums;
	int pid[PROCESSES], i, status, rest;

	for (i = 0; i < FDS; i++)
		fds[i] = i < 2 ? open_port(i) : -1;
	sums = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	total = &sums[0];
	mapped = &sums[1];
	copied = &sums[2];
	CHECK(both_up(fds[0], fds[1]) &&
		      make_slice(fds[0], VIADUCT_OUTBOUND, 0, 0, 16 * PAGE, &slice) == 0,
	      "the link comes up");
	fds[2] = slice.fd;
	printf("note seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	deadline = now_ms() + (argc > 1 ? atoi(argv[1]) : 10) * 1000;
	for (i = 0; i < PROCESSES; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			_exit(process(seed + i * 100));
	}
	for (i = 0; i < PROCESSES; i++) {
		rest = waitpid(pid[i], &status, 0) == pid[i] && WIFEXITED(status)
			       ? WEXITSTATUS(status)
			       : status;
		errno = rest;
		CHECK(rest == 0, "a process of calls comes to its end");
	}
	printf("note %lu calls, %lu mappings, %lu copies\n", *total, *mapped, *copied);
	CHECK(*total > 1000 && *mapped > 10 && *copied > 10, "they were many");
	CHECK(both_up(fds[0], fds[1]), "then the ports can be used");
	return end();
}
