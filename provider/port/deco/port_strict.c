/* SPDX-License-Identifier: BSD-2-Clause */
/* strict: stores land late and out of order, loads through an outbound map give poison. */
#include "port_strict.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "port_deco.h"
#include "u_fd.h"
#include "u_lock.h"
#include "u_log.h"

#define STRICT_LINES 64u   /* lines that a map holds back at most */
#define STRICT_EARLY 4u	   /* one store of so many makes a random line of its map land at once */
#define STRICT_OTHER 16u   /* ... and one makes lines of other maps land */
#define STRICT_FILL 65536u /* poison is written in pieces of this size */

struct strict_line {
	size_t off;	 /* offset of the line in the map */
	uint64_t enable; /* a bit for each byte that was stored */
	uint8_t data[U_LINE];
};

struct strict_map {
	struct strict *strict;
	struct strict_map *next;
	struct port_map inner; /* where stores land */
	uint8_t *poison;       /* the addresses that the caller gets instead */
	uint32_t count;
	struct strict_line line[STRICT_LINES];
};

struct strict {
	struct port port;
	uint64_t seed;
	struct u_lock lock; /* protects all below and the journals of all maps */
	_Atomic uint64_t random;
	struct strict_map *maps;
	int poison_fd; /* shared by all maps */
	size_t poison_len;
};

static struct strict *strict_of(struct port *p)
{
	return u_container_of(p, struct strict, port);
}

/* Returns a random number less than `below`. */
static uint32_t draw(struct strict *s, uint32_t below)
{
	return (uint32_t)(deco_random(&s->random) >> 32) % below;
}

static void land_bytes(struct strict_map *m, const struct strict_line *l, unsigned int at,
		       unsigned int n)
{
	deco_put(&m->inner.out, (uint8_t *)m->inner.base + l->off + at, l->data + at, n);
}

/*
 * Lands what was stored of the aligned word of 8 bytes at `at`: a word, or half of it, whole if all of it was
 * stored, since no processor or link divides one, and single bytes otherwise.
 */
static void land_word(struct strict_map *m, const struct strict_line *l, unsigned int at)
{
	unsigned int bytes = l->enable >> at & 0xff;

	if (bytes == 0xff) {
		land_bytes(m, l, at, 8);
		return;
	}
	for (unsigned int half = 0; half < 8; half += 4) {
		if ((bytes >> half & 0xf) == 0xf) {
			land_bytes(m, l, at + half, 4);
			continue;
		}
		for (unsigned int i = half; i < half + 4; i++) {
			if ((bytes >> i & 1) != 0)
				land_bytes(m, l, at + i, 1);
		}
	}
}

/*
 * Lands a line, its words in any order, and takes it out of the journal: a write-combining buffer that is
 * evicted early leaves as several packets.
 */
static void land_line(struct strict_map *m, uint32_t index)
{
	const struct strict_line *l = &m->line[index];
	unsigned int word = draw(m->strict, 8);
	unsigned int step = draw(m->strict, 4) * 2 + 1;

	for (unsigned int i = 0; i < 8; i++)
		land_word(m, l, (word + i * step) % 8 * 8);
	m->line[index] = m->line[--m->count];
}

/* Lands a random line, if the map holds one back. */
static void land_some(struct strict_map *m)
{
	if (m->count > 0)
		land_line(m, draw(m->strict, m->count));
}

static void land_all(struct strict_map *m)
{
	while (m->count > 0)
		land_some(m);
}

/*
 * Lands lines of other maps, each chosen at random: `all` that it holds back, or one.  They drain without a
 * fence of their own.
 */
static void land_others(struct strict_map *m, bool all)
{
	for (struct strict_map *o = m->strict->maps; o != NULL; o = o->next) {
		if (o == m || o->count == 0 || draw(m->strict, 2) == 0)
			continue;
		if (all)
			land_all(o);
		else
			land_some(o);
	}
}

/* Returns the line of the journal at this offset, a new one if need be; then another may land, to make room. */
static struct strict_line *journal_line(struct strict_map *m, size_t off)
{
	for (uint32_t i = m->count; i > 0; i--) {
		if (m->line[i - 1].off == off)
			return &m->line[i - 1];
	}
	if (m->count == STRICT_LINES)
		land_some(m);
	m->line[m->count].off = off;
	m->line[m->count].enable = 0;
	return &m->line[m->count++];
}

/*
 * Adds a store within one line to the journal; some lines of this and other maps may land.  Called with the
 * lock held, as are all that land stores.
 */
static void journal(struct strict_map *m, size_t off, const uint8_t *src, size_t n)
{
	struct strict_line *l = journal_line(m, off & ~(size_t)(U_LINE - 1));
	unsigned int at = off % U_LINE;

	memcpy(l->data + at, src, n);
	l->enable |= (n == U_LINE ? UINT64_MAX : (UINT64_C(1) << n) - 1) << at;
	if (draw(m->strict, STRICT_EARLY) == 0)
		land_some(m);
	if (draw(m->strict, STRICT_OTHER) == 0)
		land_others(m, false);
}

/*
 * For a store outside the map: logs it, and stores to read-only poison, so that the process faults
 * with the caller on the stack.
 */
static U_COLD void store_wild(struct strict_map *m, const void *dst, size_t n)
{
	u_error("port",
		"a store inside an outbound map of %zu bytes was sought, one of %zu bytes "
		"at offset %zd was made; look at the caller's stack",
		m->inner.len, n, (ssize_t)((uintptr_t)dst - (uintptr_t)m->poison));
	__atomic_store_n(m->poison, 0, __ATOMIC_SEQ_CST);
}

/* Adds the store to the journal: it lands later. */
static void strict_store(const struct u_out *out, void *dst, const void *src, size_t n)
{
	struct strict_map *m = out->priv;
	size_t off = (uintptr_t)dst - (uintptr_t)m->poison;
	const uint8_t *from = src;
	size_t piece;

	if (u_unlikely(!u_range_ok(off, n, m->inner.len))) {
		store_wild(m, dst, n);
		return;
	}
	u_lock_take(&m->strict->lock);
	for (; n > 0; n -= piece, off += piece, from += piece) {
		piece = (size_t)u_min64(n, U_LINE - off % U_LINE);
		journal(m, off, from, piece);
	}
	u_lock_drop(&m->strict->lock);
}

/* Lands all stores of this map, then those of some others, chosen at random. */
static void strict_fence(const struct u_out *out)
{
	struct strict_map *m = out->priv;

	u_lock_take(&m->strict->lock);
	land_all(m);
	u_out_fence(&m->inner.out);
	land_others(m, true);
	u_lock_drop(&m->strict->lock);
}

static const struct u_out_ops strict_out_ops = { .store = strict_store, .fence = strict_fence };

/* Writes poison into that part of the file.  0, -ENOMEM or -EIO. */
static int poison_fill(int fd, size_t from, size_t to)
{
	uint8_t *piece = malloc(STRICT_FILL);
	ssize_t n;
	int err = 0;

	if (piece == NULL)
		return -ENOMEM;
	memset(piece, PORT_STRICT_POISON, STRICT_FILL);
	while (from < to && err == 0) {
		n = pwrite(fd, piece, (size_t)u_min64(to - from, STRICT_FILL), (off_t)from);
		if (n > 0)
			from += (size_t)n;
		else if (n == 0 || errno != EINTR)
			err = -EIO;
	}
	free(piece);
	return err;
}

/* Maps `len` bytes of poison, read-only.  Called with the lock held.  0 or -errno. */
static int poison_map(struct strict *s, size_t len, uint8_t **out)
{
	void *base;
	int err;

	if (s->poison_len < len) {
		err = poison_fill(s->poison_fd, s->poison_len, len);
		if (err != 0)
			return err;
		s->poison_len = len;
	}
	base = mmap(NULL, len, PROT_READ, MAP_SHARED, s->poison_fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	*out = base;
	return 0;
}

/*
 * Makes an outbound map around `inner`, at addresses of poison.  Called with the lock held.  0; or -errno, and
 * `inner` is still to be unmapped.
 */
static int strict_enter(struct strict *s, const struct port_map *inner, struct port_map *out)
{
	struct strict_map *m = calloc(1, sizeof(*m));
	int err;

	if (m == NULL)
		return -ENOMEM;
	m->strict = s;
	m->inner = *inner;
	err = poison_map(s, inner->len, &m->poison);
	if (err != 0) {
		free(m);
		return err;
	}
	m->next = s->maps;
	s->maps = m;
	*out = (struct port_map){ .base = m->poison,
				  .len = inner->len,
				  .out = { .ops = &strict_out_ops, .priv = m },
				  .priv = m };
	return 0;
}

/* Passes inbound maps on; an outbound one gets addresses of poison. */
static int strict_map(struct port *p, int fd, size_t len, enum port_dir dir, struct port_map *out)
{
	struct strict *s = strict_of(p);
	struct port_map inner;
	int err;

	if (dir == PORT_INBOUND)
		return port_map(p->inner, fd, len, dir, out);
	err = port_map(p->inner, fd, len, dir, &inner);
	if (err != 0)
		return err;
	u_lock_take(&s->lock);
	err = strict_enter(s, &inner, out);
	u_lock_drop(&s->lock);
	if (err != 0)
		port_unmap(p->inner, &inner);
	return err;
}

/* Lands all stores of the map, and takes it off the list; it is not freed.  Takes the lock. */
static void strict_leave(struct strict *s, struct strict_map *m)
{
	struct strict_map **at = &s->maps;

	u_lock_take(&s->lock);
	land_all(m);
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	u_lock_drop(&s->lock);
}

/* Undoes strict_map(): an inbound map is passed on to the port below. */
static void strict_unmap(struct port *p, struct port_map *map)
{
	struct strict_map *m = map->priv;

	if (map->out.ops != &strict_out_ops) {
		port_unmap(p->inner, map);
		return;
	}
	strict_leave(strict_of(p), m);
	munmap(m->poison, m->inner.len);
	port_unmap(p->inner, &m->inner);
	free(m);
	memset(map, 0, sizeof(*map));
}

/* Lands the stores of all maps, then flushes the port below. */
static void strict_flush(struct port *p)
{
	struct strict *s = strict_of(p);

	u_lock_take(&s->lock);
	for (struct strict_map *m = s->maps; m != NULL; m = m->next)
		land_all(m);
	u_lock_drop(&s->lock);
	port_flush(p->inner);
}

/* Adds the segment "strict seed=N" to the view. */
static int strict_export(struct port *p, char *text, size_t size, int fds[PORT_ATTACH_FDS],
			 unsigned int *nfds_out)
{
	char segment[40];

	snprintf(segment, sizeof(segment), "strict seed=%" PRIu64, strict_of(p)->seed);
	return deco_export(p, segment, text, size, fds, nfds_out);
}

/* Closes the port below, too.  All maps were unmapped before. */
static void strict_close(struct port *p)
{
	struct strict *s = strict_of(p);

	port_close(p->inner);
	close(s->poison_fd);
	free(s);
}

static const struct port_ops strict_ops = {
	.slice_alloc = deco_slice_alloc,
	.slice_free = deco_slice_free,
	.slice_share = deco_slice_share,
	.memory_alloc = deco_memory_alloc,
	.peer_slice_open = deco_peer_slice_open,
	.map = strict_map,
	.unmap = strict_unmap,
	.flush = strict_flush,
	.peer_db_ring = deco_peer_db_ring,
	.db_read = deco_db_read,
	.db_clear = deco_db_clear,
	.db_set_mask = deco_db_set_mask,
	.db_clear_mask = deco_db_clear_mask,
	.spad_read = deco_spad_read,
	.spad_write = deco_spad_write,
	.peer_spad_read = deco_peer_spad_read,
	.peer_spad_write = deco_peer_spad_write,
	.link_enable = deco_link_enable,
	.link_disable = deco_link_disable,
	.link_state = deco_link_state,
	.event_fd = deco_event_fd,
	.service = deco_service,
	.export_view = strict_export,
	.close = strict_close,
};

int port_strict_wrap(struct port *inner, uint64_t seed, struct port **out)
{
	struct strict *s;
	int err = port_ops_check(&strict_ops);

	if (err != 0)
		return err;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->poison_fd = u_fd_above_std(memfd_create("viaduct-poison", MFD_CLOEXEC));
	if (s->poison_fd < 0) {
		err = -errno;
		free(s);
		return err;
	}
	deco_init(&s->port, &strict_ops, "strict", inner);
	s->seed = seed;
	atomic_init(&s->random, seed);
	*out = &s->port;
	return 0;
}
