/* SPDX-License-Identifier: BSD-2-Clause */
/* A process's view of an emulated port: maps, doorbells, scratchpads, link; and a client's view. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "port_emu_priv.h"
#include "port_view.h"
#include "u_fd.h"
#include "u_log.h"

/* Returns the mask of so many doorbell bits. */
static uint32_t db_valid(uint32_t db_bits)
{
	return db_bits >= 32 ? UINT32_MAX : (UINT32_C(1) << db_bits) - 1;
}

/* In a new view no bit is rung: it leaves out rings from before it was made. */
void emu_view_init(struct emu_view *v, const struct port_ops *ops, struct port_irq *irq,
		   const struct port_emu_cfg *cfg)
{
	struct port_limits *l = &v->port.limits;

	memset(v, 0, sizeof(*v));
	v->port.ops = ops;
	v->port.irq = irq;
	v->doorbells = irq->doorbells;
	v->index = cfg->index;
	memcpy(l->name, cfg->name, sizeof(l->name));
	snprintf(l->kind, sizeof(l->kind), "emu");
	l->db_bits = cfg->db_bits;
	l->spads = cfg->spads;
	l->window_bytes = cfg->window_bytes;
	l->slice_align = EMU_SLICE_ALIGN;
	emu_db_clear(&v->port, UINT32_MAX);
}

/* Can the name be one word of view text? */
static bool name_ok(const char name[PORT_NAME_MAX])
{
	size_t n = strnlen(name, PORT_NAME_MAX);

	if (n == 0 || n == PORT_NAME_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (name[i] <= ' ' || name[i] > '~' || name[i] == '|')
			return false;
	}
	return true;
}

int emu_cfg_check(const struct port_emu_cfg *cfg, struct port_emu_cfg *out)
{
	struct port_emu_cfg c = *cfg;

	if (c.db_bits == 0)
		c.db_bits = EMU_DB_DEFAULT;
	if (c.spads == 0)
		c.spads = EMU_SPAD_DEFAULT;
	if (c.window_bytes == 0)
		c.window_bytes = EMU_WINDOW_DEFAULT;
	if (!name_ok(c.name) || c.index >= PORT_PER_HOST || c.db_bits > PORT_DB_MAX ||
	    c.spads > PORT_SPAD_MAX) {
		u_error("port",
			"port %.15s index %u doorbells %u scratchpads %u is impossible; use a "
			"printable name, an index below %d, 1 to %d doorbells, 1 to %d scratchpads",
			c.name, c.index, c.db_bits, c.spads, PORT_PER_HOST, PORT_DB_MAX,
			PORT_SPAD_MAX);
		return -EINVAL;
	}
	*out = c;
	return 0;
}

/*
 * Checks a descriptor before it is mapped: 0, -EINVAL or -ERANGE.  Processes of a host also share memory of an
 * adapter's window, a slice of viaduct.ko, which cannot shrink either.  All descriptors that `self` maps come
 * from the agent.
 */
static int map_check(const struct emu_view *v, int fd, size_t len)
{
	int err = emu_memfd_check(fd, len);

	return err == -EINVAL && v->index == 0 && u_fd_of_module(fd, "slice") ? 0 : err;
}

int emu_map(struct port *p, int fd, size_t len, enum port_dir dir, struct port_map *out)
{
	void *base;
	int err;

	if (len == 0)
		return -EINVAL;
	err = map_check(emu_view(p), fd, len);
	if (err != 0)
		return err;
	base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return errno == EINVAL ? -ERANGE : -errno; /* EINVAL: the slice is shorter */
	memset(out, 0, sizeof(*out));
	out->base = base;
	out->len = len;
	return 0;
}

void emu_unmap(struct port *p, struct port_map *map)
{
	munmap(map->base, map->len);
	memset(map, 0, sizeof(*map));
}

/* Processors that share memory are coherent: a full fence is enough. */
void emu_flush(struct port *p)
{
	atomic_thread_fence(memory_order_seq_cst);
}

/* Returns how often the bit was rung. */
static uint32_t view_count(const struct emu_view *v, unsigned int bit)
{
	const _Atomic uint32_t *db = &v->doorbells->port[v->index].db[bit];

	if ((v->agent_bits & UINT32_C(1) << bit) != 0)
		db = &v->regs->port[v->index].db[bit];
	return atomic_load_explicit(db, memory_order_acquire);
}

static bool view_rung(const struct emu_view *v, unsigned int bit)
{
	return view_count(v, bit) != atomic_load_explicit(&v->seen[bit], memory_order_relaxed);
}

uint32_t emu_db_read(struct port *p)
{
	struct emu_view *v = emu_view(p);
	uint32_t bits = 0;

	for (unsigned int i = 0; i < p->limits.db_bits; i++)
		bits |= (uint32_t)view_rung(v, i) << i;
	return bits & ~atomic_load_explicit(&v->mask, memory_order_relaxed);
}

/* Acquire: a thread that clears, then looks, sees all that was stored before the rings it clears. */
void emu_db_clear(struct port *p, uint32_t bits)
{
	struct emu_view *v = emu_view(p);
	unsigned int i;

	for (uint32_t left = bits & db_valid(p->limits.db_bits); left != 0; left &= left - 1) {
		i = (unsigned int)__builtin_ctz(left);
		atomic_store_explicit(&v->seen[i], view_count(v, i), memory_order_relaxed);
	}
}

void emu_db_set_mask(struct port *p, uint32_t bits)
{
	atomic_fetch_or_explicit(&emu_view(p)->mask, bits, memory_order_seq_cst);
}

void emu_db_clear_mask(struct port *p, uint32_t bits)
{
	atomic_fetch_and_explicit(&emu_view(p)->mask, ~bits, memory_order_seq_cst);
	port_irq_kick(p->irq, emu_db_read(p) & bits);
}

uint32_t emu_spad_read(struct port *p, unsigned int idx)
{
	const struct emu_view *v = emu_view(p);

	if (idx >= p->limits.spads)
		return UINT32_MAX;
	return atomic_load_explicit(&v->regs->port[v->index].spad[idx], memory_order_acquire);
}

int emu_spad_write(struct port *p, unsigned int idx, uint32_t v)
{
	struct emu_view *view = emu_view(p);

	if (idx >= p->limits.spads)
		return -EINVAL;
	atomic_store_explicit(&view->regs->port[view->index].spad[idx], v, memory_order_release);
	return 0;
}

/*
 * Reads a scratchpad of the peer: all ones while the link is down, as such a read completes on
 * hardware.
 */
uint32_t emu_peer_spad_read(struct port *p, unsigned int idx)
{
	struct emu_view *v = emu_view(p);

	if (!emu_view_up(v) || idx >= v->peer.spads)
		return UINT32_MAX;
	return atomic_load_explicit(&v->peer.regs->port[v->peer.index].spad[idx],
				    memory_order_acquire);
}

/* 0, -ENOTCONN while the link is down, or -EINVAL for a scratchpad that the peer does not have. */
int emu_peer_spad_write(struct port *p, unsigned int idx, uint32_t value)
{
	struct emu_view *v = emu_view(p);

	if (!emu_view_up(v))
		return -ENOTCONN;
	if (idx >= v->peer.spads)
		return -EINVAL;
	atomic_store_explicit(&v->peer.regs->port[v->peer.index].spad[idx], value,
			      memory_order_release);
	return 0;
}

/*
 * Is the link up?  Not for a view of an earlier cable: the present one leads to registers that this
 * view does not have.
 */
bool emu_view_up(const struct emu_view *v)
{
	uint32_t low = (uint32_t)atomic_load_explicit(v->link, memory_order_acquire);

	return v->peer.doorbells != NULL && low == ((v->cable & 0x7fffffffu) << 1 | 1);
}

/* As emu_view_up(); the generation is that of the present cable, also if the view is of an earlier one. */
enum port_link emu_link_state(struct port *p, uint32_t *generation_out)
{
	struct emu_view *v = emu_view(p);
	uint64_t word = atomic_load_explicit(v->link, memory_order_acquire);
	bool up = emu_view_up(v);

	if (generation_out != NULL)
		*generation_out = (uint32_t)(word >> 32);
	return up ? PORT_LINK_UP : PORT_LINK_DOWN;
}

/*
 * Counts a ring of each bit and wakes sleepers.  Release: a thread that clears the bit sees the stores from before
 * the ring.
 */
static void ring_counters(_Atomic uint32_t *db, struct emu_irq *irq, const struct port_irq *own,
			  uint32_t bits)
{
	for (uint32_t left = bits; left != 0; left &= left - 1)
		atomic_fetch_add_explicit(&db[__builtin_ctz(left)], 1, memory_order_seq_cst);
	emu_raise(irq, own, bits);
}

void emu_view_ring(struct emu_view *v, uint32_t bits)
{
	const struct emu_peer *peer = &v->peer;

	if (!emu_view_up(v))
		return;
	bits &= db_valid(peer->db_bits);
	if ((bits & ~peer->agent_bits) != 0)
		ring_counters(peer->doorbells->port[peer->index].db, &peer->doorbells->irq,
			      peer->own, bits & ~peer->agent_bits);
	if (u_unlikely((bits & peer->agent_bits) != 0))
		ring_counters(peer->regs->port[peer->index].db,
			      peer->own_agent != NULL ? peer->own_agent->irq : &peer->regs->irq,
			      peer->own_agent, bits & peer->agent_bits);
}

void emu_peer_db_ring(struct port *p, uint32_t bits)
{
	emu_view_ring(emu_view(p), bits);
}

/*
 * Writes the view text: the description of the port for a client; the descriptor of the peer's
 * doorbells goes with it. cable=0 and no descriptor: no cable, or (self) none is needed.
 */
int emu_view_text(const struct emu_view *v, char *text, size_t size)
{
	const struct port_limits *l = &v->port.limits;
	int n = snprintf(text, size,
			 "emu index=%u peer=%u db=%u,%u spads=%u,%u window=%" PRIu64
			 " cable=%u name=%s",
			 v->index, v->peer.index, l->db_bits, v->peer.db_bits, l->spads,
			 v->peer.spads, l->window_bytes, v->cable, l->name);

	return n < 0 || (size_t)n >= size ? -ENOSPC : 0;
}

/* Parses the text of emu_view_text(), without decorators.  0, or -EINVAL, after which *peer may have changed. */
static int view_parse(const char *text, struct port_emu_cfg *cfg, struct emu_peer *peer,
		      uint32_t *cable_out)
{
	struct port_emu_cfg c = { 0 };
	int end = 0;
	int n = sscanf(text,
		       "emu index=%" SCNu32 " peer=%" SCNu32 " db=%" SCNu32 ",%" SCNu32
		       " spads=%" SCNu32 ",%" SCNu32 " window=%" SCNu64 " cable=%" SCNu32
		       " name=%15s %n",
		       &c.index, &peer->index, &c.db_bits, &peer->db_bits, &c.spads, &peer->spads,
		       &c.window_bytes, cable_out, c.name, &end);

	if (n != 9 || text[end] != '\0' || peer->index >= PORT_PER_HOST ||
	    peer->db_bits > PORT_DB_MAX || peer->spads > PORT_SPAD_MAX)
		return -EINVAL;
	return emu_cfg_check(&c, cfg);
}

/* port_close() of a view: unmaps the peer's doorbells; the host's pages belong to its port_irq. */
static void view_close(struct port *p)
{
	struct emu_view *v = emu_view(p);

	if (v->peer.doorbells != v->doorbells)
		emu_page_unmap(v->peer.doorbells);
	free(v);
}

static const struct port_ops view_ops = {
	.slice_alloc = port_view_no_alloc,
	.slice_free = port_view_no_free,
	.slice_share = port_view_no_share,
	.memory_alloc = port_view_no_alloc,
	.peer_slice_open = port_view_no_open,
	.map = emu_map,
	.unmap = emu_unmap,
	.flush = emu_flush,
	.peer_db_ring = emu_peer_db_ring,
	.db_read = emu_db_read,
	.db_clear = emu_db_clear,
	.db_set_mask = emu_db_set_mask,
	.db_clear_mask = emu_db_clear_mask,
	.spad_read = port_view_no_spad_read,
	.spad_write = port_view_no_spad_write,
	.peer_spad_read = port_view_no_spad_read,
	.peer_spad_write = port_view_no_spad_write,
	.link_enable = port_view_no_enable,
	.link_disable = port_view_no_disable,
	.link_state = emu_link_state,
	.export_view = port_view_no_export,
	.close = view_close,
};

/*
 * Maps the peer's doorbells.  Without a descriptor the peer is this host itself (self), or there is none.  0;
 * or -EINVAL, also when one is missing, and other errors.
 */
static int view_peer(struct emu_view *v, const int *fds, unsigned int nfds)
{
	if (nfds > 1)
		return -EINVAL;
	if (nfds == 1)
		return emu_doorbells_map(fds[0], &v->peer.doorbells);
	if (v->cable != 0 && v->peer.db_bits != 0)
		return -EINVAL;
	if (v->peer.db_bits != 0) {
		v->peer.doorbells = v->doorbells;
		v->peer.own = v->port.irq;
	}
	return 0;
}

int emu_attach(const char *text, const int *fds, unsigned int nfds, struct port_irq *irq,
	       struct port **out)
{
	struct port_emu_cfg cfg;
	struct emu_peer peer = { 0 };
	struct emu_view *v;
	uint32_t cable;
	int err = view_parse(text, &cfg, &peer, &cable);

	if (err == 0)
		err = port_ops_check(&view_ops);
	if (err != 0)
		return err;
	v = calloc(1, sizeof(*v));
	if (v == NULL)
		return -ENOMEM;
	emu_view_init(v, &view_ops, irq, &cfg);
	v->link = &irq->status->link[v->index];
	v->peer = peer;
	v->cable = cable;
	err = view_peer(v, fds, nfds);
	if (err != 0) {
		free(v);
		return err;
	}
	*out = &v->port;
	return 0;
}
