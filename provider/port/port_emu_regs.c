/* SPDX-License-Identifier: BSD-2-Clause */
/* The registers of an emulated host and its interrupt words. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "port_cdev_irq.h"
#include "port_emu_priv.h"
#include "port_emu_regs.h"
#include "u_fd.h"
#include "u_futex.h"
#include "u_log.h"

#define EMU_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Makes a memfd of `len` bytes, without seals.  0 or -errno. */
static int memfd(const char *name, size_t len, int *fd_out)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)len) != 0) {
		err = -errno;
		close(fd);
		return err;
	}
	*fd_out = fd;
	return 0;
}

int emu_memfd(const char *name, size_t len, int *fd_out)
{
	int fd = -1, err = memfd(name, len, &fd);

	if (err != 0)
		return err;
	if (fcntl(fd, F_ADD_SEALS, EMU_SEALS) != 0) {
		err = -errno;
		close(fd);
		return err;
	}
	*fd_out = fd;
	return 0;
}

/*
 * Memory that can shrink, or that is not there when it is touched (huge pages, files), would let
 * its owner kill this process by SIGBUS.  Seals are checked first: only memory has any, and any
 * other query of a file could wait for the process that serves a user's file system.
 */
int emu_memfd_check(int fd, size_t len)
{
	struct statfs fs;
	struct stat st;
	int seals;

	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
		return -EINVAL;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || fstatfs(fd, &fs) != 0 ||
	    fs.f_type != TMPFS_MAGIC)
		return -EINVAL;
	return (uint64_t)st.st_size < len ? -ERANGE : 0;
}

/* Checks the memory as emu_memfd_check() does, and maps it.  0 or -errno. */
static int page_map(int fd, size_t len, int prot, void **out)
{
	int err = emu_memfd_check(fd, len);
	void *page;

	if (err != 0)
		return err;
	page = mmap(NULL, len, prot, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	*out = page;
	return 0;
}

int emu_doorbells_map(int fd, struct emu_doorbells **out)
{
	void *page = NULL;
	int err = page_map(fd, sizeof(**out), PROT_READ | PROT_WRITE, &page);

	if (err == 0)
		*out = page;
	return err;
}

int emu_regs_map(int fd, struct emu_regs **out)
{
	void *page = NULL;
	int err = page_map(fd, sizeof(**out), PROT_READ | PROT_WRITE, &page);

	if (err == 0)
		*out = page;
	return err;
}

/* Maps the status page of an agent for reading.  -EPROTO: it is of another version, or no such page. */
static int status_map(int fd, const struct emu_status **out)
{
	const struct emu_status *status;
	void *page = NULL;
	int err = page_map(fd, sizeof(*status), PROT_READ, &page);

	if (err != 0)
		return err;
	status = page;
	if (status->magic != EMU_MAGIC || status->version != EMU_VERSION) {
		emu_page_unmap(status);
		return -EPROTO;
	}
	*out = status;
	return 0;
}

void emu_page_unmap(const void *page)
{
	if (page != NULL)
		munmap((void *)(uintptr_t)page, sizeof(struct emu_doorbells));
}

/* Sets the interrupt word and the object that contains it, -1 for none. */
static void irq_init(struct port_irq *irq, struct emu_irq *word, int device)
{
	irq->irq = word;
	irq->device = device;
	irq->head.word = &word->seq;
}

/*
 * Opens the doorbells of the caller's own host: a memfd, or an interrupt object, which begins as the page of
 * doorbells does.  The descriptor stays the caller's.  0 or -errno.
 */
static int doorbells_open(int fd, struct emu_doorbells **out)
{
	void *page = NULL;
	int err;

	if (!u_fd_of_module(fd, "irq"))
		return emu_doorbells_map(fd, out);
	err = cdev_irq_map(fd, &page);
	if (err == 0)
		*out = page;
	return err;
}

/* Makes the doorbells, or maps those of the interrupt object that host->doorbells_fd is.  0 or -errno. */
static int doorbells_make(struct port_emu_host *host)
{
	int device = host->doorbells_fd;
	int err = 0;

	if (device < 0)
		err = emu_memfd("viaduct-doorbells", sizeof(struct emu_doorbells),
				&host->doorbells_fd);
	if (err == 0)
		err = doorbells_open(host->doorbells_fd, &host->irq.doorbells);
	if (err == 0)
		irq_init(&host->irq, &host->irq.doorbells->irq, device);
	return err;
}

/* Makes the agents' registers, and maps their interrupt object if the host has one.  0 or -errno. */
static int regs_make(struct port_emu_host *host)
{
	int err = emu_memfd("viaduct-regs", sizeof(struct emu_regs), &host->regs_fd);

	if (err == 0)
		err = emu_regs_map(host->regs_fd, &host->regs);
	if (err == 0 && host->agent_irq_fd >= 0)
		err = cdev_irq_map(host->agent_irq_fd, &host->agent_page);
	if (err == 0)
		irq_init(&host->agent_irq,
			 host->agent_page != NULL ? host->agent_page : &host->regs->irq,
			 host->agent_irq_fd);
	return err;
}

/*
 * Makes the status page, and seals it when this process has its writable mapping: from then on nobody gets
 * another one.  0; or -errno, and port_emu_host_destroy() frees what was made.
 */
static int status_make(struct port_emu_host *host)
{
	int err = memfd("viaduct-status", sizeof(struct emu_status), &host->status_fd);
	void *page;

	if (err != 0)
		return err;
	page = mmap(NULL, sizeof(struct emu_status), PROT_READ | PROT_WRITE, MAP_SHARED,
		    host->status_fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	host->status = page;
	host->irq.status = host->status;
	host->status->magic = EMU_MAGIC;
	host->status->version = EMU_VERSION;
	return fcntl(host->status_fd, F_ADD_SEALS, EMU_SEALS | F_SEAL_FUTURE_WRITE) == 0 ? 0
											 : -errno;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

int port_emu_host_create_on(int irq_fd, int agent_irq_fd, struct port_emu_host **out)
{
	struct port_emu_host *host = calloc(1, sizeof(*host));
	int err;

	if (host == NULL) {
		close_fd(irq_fd);
		close_fd(agent_irq_fd);
		return -ENOMEM;
	}
	host->doorbells_fd = irq_fd;
	host->agent_irq_fd = agent_irq_fd;
	host->regs_fd = host->status_fd = -1;
	err = doorbells_make(host);
	if (err == 0)
		err = regs_make(host);
	if (err == 0)
		err = status_make(host);
	if (err != 0) {
		port_emu_host_destroy(host);
		return err;
	}
	*out = host;
	return 0;
}

int port_emu_host_create(struct port_emu_host **out)
{
	return port_emu_host_create_on(-1, -1, out);
}

void port_emu_host_destroy(struct port_emu_host *host)
{
	if (host == NULL)
		return;
	emu_page_unmap(host->irq.doorbells);
	emu_page_unmap(host->regs);
	emu_page_unmap(host->status);
	emu_page_unmap(host->agent_page);
	close_fd(host->doorbells_fd);
	close_fd(host->regs_fd);
	close_fd(host->status_fd);
	close_fd(host->agent_irq_fd);
	free(host);
}

struct port_irq *port_emu_host_irq(struct port_emu_host *host)
{
	return &host->irq;
}

struct port_irq *port_emu_host_agent_irq(struct port_emu_host *host)
{
	return &host->agent_irq;
}

int port_emu_host_doorbells_fd(const struct port_emu_host *host)
{
	return host->doorbells_fd;
}

int port_emu_host_status_fd(const struct port_emu_host *host)
{
	return host->status_fd;
}

int port_irq_open(int doorbells_fd, int status_fd, struct port_irq **out)
{
	struct port_irq *irq = calloc(1, sizeof(*irq));
	int err;

	if (irq == NULL)
		return -ENOMEM;
	irq->device = -1;
	err = doorbells_open(doorbells_fd, &irq->doorbells);
	if (err == 0)
		err = status_map(status_fd, &irq->status);
	if (err == 0 && u_fd_of_module(doorbells_fd, "irq")) {
		irq->device = u_fd_above_std(fcntl(doorbells_fd, F_DUPFD_CLOEXEC, 0));
		err = irq->device < 0 ? -errno : 0;
	}
	if (err != 0) {
		u_error("port",
			"the doorbells and the status of the host were sought, descriptors %d and "
			"%d are not such pages of this version (%d); restart the agent",
			doorbells_fd, status_fd, err);
		port_irq_close(irq);
		return err;
	}
	irq_init(irq, &irq->doorbells->irq, irq->device);
	*out = irq;
	return 0;
}

void port_irq_close(struct port_irq *irq)
{
	if (irq == NULL)
		return;
	emu_page_unmap(irq->doorbells);
	emu_page_unmap(irq->status);
	close_fd(irq->device);
	free(irq);
}

/*
 * Wakes the sleepers on `bits`, after the ring was counted.
 *
 * Sleep and wake, so that no wake-up is lost (Dekker's pattern: each side
 * writes its own word, then reads the other's; all sequentially consistent):
 *
 *	ringer: counters; seq++; read sleepers	sleeper: sleepers |= bits; compare seq, sleep
 *
 * Either the ringer sees the sleeper's bits, or the sleeper's comparison (the kernel's, under its
 * lock) sees the new seq.  The ringer that saw bits removes them, so that a sleeper that timed out
 * or was killed costs one system call in all, and not one for each later ring.  Another sleeper may
 * have set the same bits just before that: if it is not yet asleep then the second seq++ keeps it
 * awake, and if it is, the wake that follows reaches it.  Hence every sleeper has its bits in
 * `sleepers` or a wake on its way.
 */
static U_COLD void irq_wake(struct emu_irq *irq, const struct port_irq *own, uint32_t bits)
{
	atomic_fetch_and_explicit(&irq->sleepers, ~bits, memory_order_seq_cst);
	atomic_fetch_add_explicit(&irq->seq, 1, memory_order_seq_cst);
	if (own != NULL && own->device >= 0)
		cdev_irq_wake(own->device, bits);
	else
		u_futex_wake(&irq->seq, INT_MAX, bits, false);
}

void emu_raise(struct emu_irq *irq, const struct port_irq *own, uint32_t bits)
{
	atomic_fetch_add_explicit(&irq->seq, 1, memory_order_seq_cst);
	if ((atomic_load_explicit(&irq->sleepers, memory_order_seq_cst) & bits) != 0)
		irq_wake(irq, own, bits);
}

int port_irq_wait(struct port_irq *irq, uint32_t ticket, uint32_t bits, int64_t timeout_ns)
{
	struct emu_irq *word = irq->irq;
	int err;

	if (bits == 0)
		return -EINVAL;
	if (atomic_load_explicit(&word->seq, memory_order_acquire) != ticket)
		return 0;
	atomic_fetch_or_explicit(&word->sleepers, bits, memory_order_seq_cst);
	err = irq->device >= 0 ? cdev_irq_wait(irq->device, ticket, bits, timeout_ns)
			       : u_futex_wait(&word->seq, ticket, bits, timeout_ns, false);
	return err == -ETIMEDOUT ? -ETIMEDOUT : 0;
}

void port_irq_kick(struct port_irq *irq, uint32_t bits)
{
	if (bits != 0)
		emu_raise(irq->irq, irq, bits);
}
