/* SPDX-License-Identifier: BSD-2-Clause */
/* cdev: maps, doorbells and the state of the link in a process; and a client's view. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "port_cdev_priv.h"
#include "port_view.h"
#include "u_fd.h"

/* ---- maps ------------------------------------------------------------------------------------ */

/* Flags and indices are single stores; other bytes are ordered only by the fence. */
static void out_store(const struct u_out *out, void *dst, const void *src, size_t n)
{
	uint64_t v64;
	uint32_t v32;

	if (n == sizeof(v64) && ((uintptr_t)dst & 7) == 0) {
		memcpy(&v64, src, n);
		__atomic_store_n((uint64_t *)dst, v64, __ATOMIC_RELEASE);
	} else if (n == sizeof(v32) && ((uintptr_t)dst & 3) == 0) {
		memcpy(&v32, src, n);
		__atomic_store_n((uint32_t *)dst, v32, __ATOMIC_RELEASE);
	} else {
		memcpy(dst, src, n);
	}
}

/* Orders stores to write-combining memory, and makes earlier ones leave the processor now. */
static void out_fence(const struct u_out *out)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_sfence();
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshst" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static const struct u_out_ops out_ops = { .store = out_store, .fence = out_fence };

/*
 * Finds the place of a slice, if it is one of this port; else -EINVAL.  The module knows its own descriptors; a
 * descriptor of another kind, which a peer or an agent may pass, could delay the answer to a call for any time.
 */
static int slice_info(const struct cdev_view *v, int fd, struct viaduct_slice *out)
{
	struct viaduct_slice s = { .fd = fd };

	if (!u_fd_of_module(fd, "slice") || ioctl(v->fd, VIADUCT_SLICE_INFO, &s) != 0)
		return -EINVAL;
	*out = s;
	return 0;
}

int cdev_map(struct port *p, int fd, size_t len, enum port_dir dir, struct port_map *out)
{
	struct viaduct_slice s;
	void *base;
	int err;

	if (len == 0)
		return -EINVAL;
	err = slice_info(cdev_view(p), fd, &s);
	if (err != 0)
		return err;
	if (s.direction != (dir == PORT_INBOUND ? VIADUCT_INBOUND : VIADUCT_OUTBOUND))
		return -EINVAL;
	if (len > s.len)
		return -ERANGE;
	base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	madvise(base, len, MADV_DONTFORK); /* children have no connections */
	memset(out, 0, sizeof(*out));
	out->base = base;
	out->len = len;
	if (dir == PORT_OUTBOUND)
		out->out.ops = &out_ops;
	return 0;
}

void cdev_unmap(struct port *p, struct port_map *map)
{
	munmap(map->base, map->len);
	memset(map, 0, sizeof(*map));
}

void cdev_flush(struct port *p)
{
	atomic_thread_fence(memory_order_seq_cst);
	ioctl(cdev_view(p)->fd, VIADUCT_FLUSH);
	atomic_thread_fence(memory_order_seq_cst);
}

/* ---- doorbells ------------------------------------------------------------------------------- */

static uint32_t view_count(const struct cdev_view *v, unsigned int bit)
{
	return __atomic_load_n(&v->status->db_count[bit], __ATOMIC_ACQUIRE);
}

uint32_t cdev_db_read(struct port *p)
{
	struct cdev_view *v = cdev_view(p);
	uint32_t bits = 0;
	unsigned int i;

	for (uint32_t left = v->bits; left != 0; left &= left - 1) {
		i = (unsigned int)__builtin_ctz(left);
		if (view_count(v, i) != atomic_load_explicit(&v->seen[i], memory_order_relaxed))
			bits |= UINT32_C(1) << i;
	}
	return bits & ~atomic_load_explicit(&v->mask, memory_order_relaxed);
}

/* Acquire: a thread that clears, then looks, sees all that arrived before the rings it clears. */
void cdev_db_clear(struct port *p, uint32_t bits)
{
	struct cdev_view *v = cdev_view(p);
	unsigned int i;

	for (uint32_t left = bits & v->bits; left != 0; left &= left - 1) {
		i = (unsigned int)__builtin_ctz(left);
		atomic_store_explicit(&v->seen[i], view_count(v, i), memory_order_relaxed);
	}
}

void cdev_db_set_mask(struct port *p, uint32_t bits)
{
	atomic_fetch_or_explicit(&cdev_view(p)->mask, bits, memory_order_seq_cst);
}

void cdev_db_clear_mask(struct port *p, uint32_t bits)
{
	atomic_fetch_and_explicit(&cdev_view(p)->mask, ~bits, memory_order_seq_cst);
	port_irq_kick(p->irq, cdev_db_read(p) & bits);
}

void cdev_ring(struct port *p, uint32_t bits)
{
	const struct cdev_view *v = cdev_view(p);
	struct viaduct_ring ring = { .db_bits = bits & v->bits };

	if (ring.db_bits == 0)
		return;
	/* A call that was interrupted while it waited for its turn has rung nothing. */
	while (ioctl(v->fd, VIADUCT_RING, &ring) != 0 && errno == EINTR)
		;
}

uint32_t cdev_view_link(const struct cdev_view *v, uint32_t *generation_out)
{
	uint32_t link = __atomic_load_n(&v->status->link, __ATOMIC_ACQUIRE);

	*generation_out = __atomic_load_n(&v->status->generation, __ATOMIC_RELAXED);
	return link;
}

/* ---- views ----------------------------------------------------------------------------------- */

static enum port_reads_back ask_reads_back(int fd)
{
	struct viaduct_traits traits;

	if (ioctl(fd, VIADUCT_GET_TRAITS, &traits) != 0)
		return PORT_READS_BACK_UNKNOWN;
	return (traits.flags & VIADUCT_READS_BACK) != 0 ? PORT_READS_BACK_YES : PORT_READS_BACK_NO;
}

int cdev_view_init(struct cdev_view *v, const struct port_ops *ops, struct port_irq *irq,
		   const char *name, uint32_t db_bits)
{
	struct port_limits *l = &v->port.limits;
	void *page = mmap(NULL, sizeof(*v->status), PROT_READ, MAP_SHARED, v->fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	v->status = page;
	if (v->status->abi != VIADUCT_ABI) {
		cdev_view_fini(v);
		return -EPROTONOSUPPORT;
	}
	v->port.ops = ops;
	v->port.irq = irq;
	snprintf(l->name, sizeof(l->name), "%s", name);
	snprintf(l->kind, sizeof(l->kind), "cdev");
	l->db_bits = db_bits;
	l->far = true;
	l->reads_back = ask_reads_back(v->fd);
	l->slice_align = (uint32_t)sysconf(_SC_PAGESIZE);
	cdev_db_clear(&v->port, UINT32_MAX);
	return 0;
}

void cdev_view_fini(struct cdev_view *v)
{
	if (v->status != NULL)
		munmap((void *)(uintptr_t)v->status, sizeof(*v->status));
	v->status = NULL;
}

int cdev_view_text(const struct cdev_view *v, uint32_t bits, char *text, size_t size)
{
	const struct port_limits *l = &v->port.limits;
	int n = snprintf(text, size, "cdev db=%u bits=%x spads=%u window=%" PRIu64 " name=%s",
			 l->db_bits, bits, l->spads, l->window_bytes, l->name);

	return n < 0 || (size_t)n >= size ? -ENOSPC : 0;
}

/* The link as the module has it: it may be up before the agents' tables stand. */
static enum port_link view_link_state(struct port *p, uint32_t *generation_out)
{
	uint32_t generation, link = cdev_view_link(cdev_view(p), &generation);

	if (generation_out != NULL)
		*generation_out = generation;
	return link == VIADUCT_LINK_UP ? PORT_LINK_UP : PORT_LINK_DOWN;
}

/* Closes the view's own descriptor, too. */
static void view_close(struct port *p)
{
	struct cdev_view *v = cdev_view(p);

	cdev_view_fini(v);
	close(v->fd);
	free(v);
}

static const struct port_ops view_ops = {
	.slice_alloc = port_view_no_alloc,
	.slice_free = port_view_no_free,
	.slice_share = port_view_no_share,
	.memory_alloc = port_view_no_alloc,
	.peer_slice_open = port_view_no_open,
	.map = cdev_map,
	.unmap = cdev_unmap,
	.flush = cdev_flush,
	.peer_db_ring = cdev_ring,
	.db_read = cdev_db_read,
	.db_clear = cdev_db_clear,
	.db_set_mask = cdev_db_set_mask,
	.db_clear_mask = cdev_db_clear_mask,
	.spad_read = port_view_no_spad_read,
	.spad_write = port_view_no_spad_write,
	.peer_spad_read = port_view_no_spad_read,
	.peer_spad_write = port_view_no_spad_write,
	.link_enable = port_view_no_enable,
	.link_disable = port_view_no_disable,
	.link_state = view_link_state,
	.export_view = port_view_no_export,
	.close = view_close,
};

/* Parses the text of cdev_view_text(), without decorators.  0 or -EINVAL. */
static int view_parse(const char *text, struct port_limits *l, uint32_t *bits_out)
{
	int end = 0;
	int n = sscanf(text,
		       "cdev db=%" SCNu32 " bits=%" SCNx32 " spads=%" SCNu32 " window=%" SCNu64
		       " name=%15s %n",
		       &l->db_bits, bits_out, &l->spads, &l->window_bytes, l->name, &end);

	return n != 5 || text[end] != '\0' || l->db_bits == 0 || l->db_bits > PORT_DB_MAX ||
			       l->spads > PORT_SPAD_MAX
		       ? -EINVAL
		       : 0;
}

int cdev_attach(const char *text, const int *fds, unsigned int nfds, struct port_irq *irq,
		struct port **out)
{
	struct port_limits l = { 0 };
	struct cdev_view *v;
	uint32_t bits;
	int err = view_parse(text, &l, &bits);

	if (err == 0 && (nfds != 1 || !u_fd_of_module(fds[0], "client")))
		err = -EINVAL;
	if (err == 0)
		err = port_ops_check(&view_ops);
	if (err != 0)
		return err;
	v = calloc(1, sizeof(*v));
	if (v == NULL)
		return -ENOMEM;
	v->bits = bits;
	v->fd = u_fd_above_std(fcntl(fds[0], F_DUPFD_CLOEXEC, 0));
	err = v->fd < 0 ? -errno : cdev_view_init(v, &view_ops, irq, l.name, l.db_bits);
	if (err != 0) {
		if (v->fd >= 0)
			close(v->fd);
		free(v);
		return err;
	}
	v->port.limits.spads = l.spads;
	v->port.limits.window_bytes = l.window_bytes;
	*out = &v->port;
	return 0;
}
