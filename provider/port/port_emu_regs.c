/* SPDX-License-Identifier: BSD-2-Clause */
/* The register page of an emulated host and its interrupt word. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "port_emu_priv.h"
#include "u_futex.h"
#include "u_log.h"

#define EMU_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int emu_memfd(const char *name, size_t len, int *fd_out)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)len) != 0 || fcntl(fd, F_ADD_SEALS, EMU_SEALS) != 0) {
		err = -errno;
		close(fd);
		return err;
	}
	*fd_out = fd;
	return 0;
}

/*
 * Memory that can shrink, or that is not there when it is touched (huge pages,
 * files), would kill this process by SIGBUS at its owner's wish.
 */
int emu_memfd_check(int fd, size_t len)
{
	struct statfs fs;
	struct stat st;
	int seals;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || fstatfs(fd, &fs) != 0 ||
	    fs.f_type != TMPFS_MAGIC)
		return -EINVAL;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
		return -EINVAL;
	return (uint64_t)st.st_size < len ? -ERANGE : 0;
}

int emu_regs_map(int fd, struct emu_regs **out)
{
	struct emu_regs *regs;
	int err = emu_memfd_check(fd, sizeof(*regs));

	if (err != 0)
		return err;
	regs = mmap(NULL, sizeof(*regs), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (regs == MAP_FAILED)
		return -errno;
	if (regs->magic != EMU_MAGIC || regs->version != EMU_VERSION) {
		munmap(regs, sizeof(*regs));
		return -EPROTO;
	}
	*out = regs;
	return 0;
}

void emu_regs_unmap(struct emu_regs *regs)
{
	if (regs != NULL)
		munmap(regs, sizeof(*regs));
}

int emu_irq_init(struct port_irq *irq, int regs_fd)
{
	int err = emu_regs_map(regs_fd, &irq->regs);

	if (err == 0)
		irq->head.word = &irq->regs->seq;
	return err;
}

void emu_irq_fini(struct port_irq *irq)
{
	emu_regs_unmap(irq->regs);
}

static int regs_format(int fd)
{
	const struct emu_regs blank = { .magic = EMU_MAGIC, .version = EMU_VERSION };
	ssize_t n = pwrite(fd, &blank, sizeof(blank), 0);

	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(blank) ? 0 : -EIO;
}

int port_emu_host_create(struct port_emu_host **out)
{
	struct port_emu_host *host = calloc(1, sizeof(*host));
	int err;

	if (host == NULL)
		return -ENOMEM;
	err = emu_memfd("viaduct-regs", sizeof(struct emu_regs), &host->fd);
	if (err != 0)
		goto free_host;
	err = regs_format(host->fd);
	if (err == 0)
		err = emu_irq_init(&host->irq, host->fd);
	if (err != 0)
		goto close_fd;
	*out = host;
	return 0;

close_fd:
	close(host->fd);
free_host:
	free(host);
	return err;
}

void port_emu_host_destroy(struct port_emu_host *host)
{
	if (host == NULL)
		return;
	emu_irq_fini(&host->irq);
	close(host->fd);
	free(host);
}

struct port_irq *port_emu_host_irq(struct port_emu_host *host)
{
	return &host->irq;
}

int port_emu_host_regs_fd(const struct port_emu_host *host)
{
	/* A neighbour may have overwritten them; whoever is handed the page looks at them. */
	host->irq.regs->magic = EMU_MAGIC;
	host->irq.regs->version = EMU_VERSION;
	return host->fd;
}

int port_irq_open(int regs_fd, struct port_irq **out)
{
	struct port_irq *irq = calloc(1, sizeof(*irq));
	int err;

	if (irq == NULL)
		return -ENOMEM;
	err = emu_irq_init(irq, regs_fd);
	if (err != 0) {
		u_error("port",
			"the interrupt registers of the host were sought, descriptor %d is "
			"not a register page of this version (%d); restart the agent",
			regs_fd, err);
		free(irq);
		return err;
	}
	*out = irq;
	return 0;
}

void port_irq_close(struct port_irq *irq)
{
	if (irq == NULL)
		return;
	emu_irq_fini(irq);
	free(irq);
}

/*
 * Sleep and wake, so that no wake-up is lost (Dekker's pattern: each side
 * writes its own word, then reads the other's; all sequentially consistent):
 *
 *	ringer: counters; seq++; read sleepers	sleeper: sleepers |= bits; compare seq, sleep
 *
 * Either the ringer sees the sleeper's bits, or the sleeper's comparison (the
 * kernel's, under its lock) sees the new seq.  The ringer that saw bits takes
 * them away, so that a sleeper that timed out or was killed costs the rings
 * after it one system call and not one each.  Another sleeper may have set the
 * same bits just before that: if it is not yet asleep then the second seq++
 * keeps it awake, and if it is, the wake that follows reaches it.  Hence every
 * sleeper has its bits in `sleepers` or a wake on its way.
 */
static U_COLD void irq_wake(struct emu_regs *regs, uint32_t bits)
{
	atomic_fetch_and_explicit(&regs->sleepers, ~bits, memory_order_seq_cst);
	atomic_fetch_add_explicit(&regs->seq, 1, memory_order_seq_cst);
	u_futex_wake(&regs->seq, INT_MAX, bits, false);
}

void emu_raise(struct emu_regs *regs, uint32_t bits)
{
	atomic_fetch_add_explicit(&regs->seq, 1, memory_order_seq_cst);
	if ((atomic_load_explicit(&regs->sleepers, memory_order_seq_cst) & bits) != 0)
		irq_wake(regs, bits);
}

int port_irq_wait(struct port_irq *irq, uint32_t ticket, uint32_t bits, int64_t timeout_ns)
{
	struct emu_regs *regs = irq->regs;

	if (bits == 0)
		return -EINVAL;
	if (atomic_load_explicit(&regs->seq, memory_order_acquire) != ticket)
		return 0;
	atomic_fetch_or_explicit(&regs->sleepers, bits, memory_order_seq_cst);
	if (u_futex_wait(&regs->seq, ticket, bits, timeout_ns, false) == -ETIMEDOUT)
		return -ETIMEDOUT;
	return 0;
}

void port_irq_kick(struct port_irq *irq, uint32_t bits)
{
	if (bits != 0)
		emu_raise(irq->regs, bits);
}
