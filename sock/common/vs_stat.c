// SPDX-License-Identifier: BSD-2-Clause
#include "vs_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const vs_why_text[VS_WHY_COUNT] = {
	[VS_WHY_NEVER] = "promotion is off, or a rule says never",
	[VS_WHY_ADDRESS] = "the peer's address is of no host of the fabric",
	[VS_WHY_FABRIC] = "no fabric, or its agent cannot be reached",
	[VS_WHY_SHORT] = "ended before it was promoted",
	[VS_WHY_NO_MATCH] = "the peer did not answer: it runs without this library, or behind NAT",
	[VS_WHY_OPTION] = "a socket option that only the kernel serves",
	[VS_WHY_MEMORY] = "no window memory, or a limit of the fabric",
	[VS_WHY_LOST] = "the VI or its link broke",
	[VS_WHY_URGENT] = "urgent data (MSG_OOB)",
	[VS_WHY_FORK] = "several processes have the socket (fork)",
	[VS_WHY_EXEC] = "the next program has the socket (exec)",
	[VS_WHY_PASSED] = "the descriptor was sent to another process",
	[VS_WHY_STDIO] = "fdopen(), dprintf() or POSIX AIO",
	[VS_WHY_SIGNAL] = "O_ASYNC: the kernel signals arrival",
	[VS_WHY_URING] = "the program uses io_uring",
	[VS_WHY_SET] = "an epoll set that the library does not know",
	[VS_WHY_PEER] = "the peer asked for it",
};

static struct vs_stat_slot own;
static struct vs_stat_file *file;
struct vs_stat_slot *_Atomic vs_stat_mine = &own;
bool vs_stat_wanted;

static struct vs_stat_slot *mine(void)
{
	return atomic_load_explicit(&vs_stat_mine, memory_order_relaxed);
}

void vs_stat_not_promoted(enum vs_why why)
{
	atomic_fetch_add_explicit(&mine()->not_promoted[why], 1, memory_order_relaxed);
}

void vs_stat_demoted(enum vs_why why)
{
	vs_stat_add(VS_DEMOTED, 1);
	atomic_fetch_add_explicit(&mine()->demoted[why], 1, memory_order_relaxed);
}

/* This process counts in the next slot of the file; the name is written if no other has the slot. */
static void take_slot(const char *program)
{
	uint32_t at = atomic_fetch_add(&file->taken, 1);
	struct vs_stat_slot *s = &file->slot[at % VS_STAT_SLOTS];
	uint32_t none = 0;

	if (atomic_compare_exchange_strong(&s->pid, &none, (uint32_t)getpid()))
		snprintf(s->program, sizeof(s->program), "%s", program);
	atomic_store_explicit(&vs_stat_mine, s, memory_order_relaxed);
}

/*
 * Maps the file if it is one of statistics, and sets `file`: 0, -EINVAL or -errno.  `fd` is left open.  The calls are
 * made directly: hooks are not ready when this runs.
 */
static int map_file(int fd)
{
	struct stat st;
	void *at;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (size_t)st.st_size != sizeof(*file))
		return -EINVAL;
	at = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	file = at;
	if (file->magic == VS_STAT_MAGIC)
		return 0;
	munmap(file, sizeof(*file));
	file = NULL;
	return -EINVAL;
}

int vs_stat_open(const char *path, const char *program)
{
	int fd, rc;

	if (!path || path[0] == '\0')
		return 0;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = map_file(fd);
	syscall(SYS_close, fd);
	if (rc != 0)
		return rc;
	take_slot(program);
	vs_stat_wanted = true;
	return 0;
}

void vs_stat_child(const char *program)
{
	if (vs_stat_wanted)
		take_slot(program);
}

int vs_stat_create(struct vs_stat_file **out)
{
	int fd = memfd_create("viaduct-sock", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *at;
	int rc;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(**out)) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		goto failed;
	at = mmap(NULL, sizeof(**out), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		goto failed;
	*out = at;
	(*out)->magic = VS_STAT_MAGIC;
	return fd;
failed:
	rc = -errno;
	close(fd);
	return rc;
}
