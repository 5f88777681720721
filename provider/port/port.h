/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NTB port contract: what the layers above may rely on, and no more.
 *
 * The words are those of the kernel's NTB API.  A port hands out *addresses* - slices of memory
 * windows, and doorbells - and carries no transfers: a message is stored by its sender and needs no
 * call of a port.  Guarantees of the hardware, which every back end keeps:
 *
 *  1. A store to an outbound slice is posted; it arrives later.  Stores are
 *     made through util/u_out.h, ordered only by its fence.
 *  2. No protocol step loads through an outbound slice (about a microsecond,
 *     and poison on the strict port).
 *  3. No atomics across the link.
 *  4. port_flush() makes every earlier store visible to the peer.  It is one
 *     read across the link: for "about to sleep", never per message.
 *  5. Doorbell bits coalesce, may ring spuriously, and may get lost while a process
 *     that may ring them misbehaves: a thread that sleeps polls again after a bounded time.
 *     Clearing a mask delivers what was already set.
 *  6. Bytes in an inbound slice were written by another host: hostile until checked.
 *  7. What a process can write of a host's registers changes nothing that others rely
 *     on: the state of links, scratchpads and the agents' doorbells are out of its reach.
 *
 * One `struct port` is one process's view of one port.  The agent creates ports (emu: port_emu.h);
 * a process attaches to its agent's ports with the text and descriptors that the agent hands it
 * (port_attach()).  Decorators wrap a port (port_strict.h, port_fault.h, port_model.h).
 *
 * Each operation is documented at its function below.  All return 0 or -errno unless they say
 * otherwise; outputs are written on success only.  Any thread may call any of them, several at
 * once; none may be called from a signal handler.  "Does not block" means: no sleep and no wait
 * for the peer or for another process, though a port's own mutex may be taken for a short time.
 * "Agents only" means: on what port_attach() made, a *view*, it does nothing or answers -EPERM.
 */
#ifndef PORT_H
#define PORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port_irq.h"
#include "u_base.h"
#include "u_out.h"

#define PORT_NAME_MAX 16
#define PORT_DB_MAX 32	 /* doorbell bits a port can have; 16 by default */
#define PORT_SPAD_MAX 64 /* scratchpads a port can have; 8 by default */
#define PORT_PER_HOST 8	 /* ports of one host, `self` included */
#define PORT_ATTACH_FDS 2
#define PORT_VIEW_MAX 256 /* view text, its end included */

struct port;

struct port_limits {
	char name[PORT_NAME_MAX]; /* "self", "left", "right", ... */
	char kind[32];		  /* "emu", "emu+strict", "cdev", ... */
	uint32_t db_bits;
	uint32_t spads;
	uint64_t window_bytes; /* memory window: the sum of all inbound slices */
	uint32_t slice_align;  /* slices are this aligned, a power of two >= 4096 */
};

/* An inbound slice: my memory that the peer may write. */
struct port_slice {
	uint32_t id; /* names it to the peer; unique for the life of a link generation */
	int fd;	     /* mappable by its holder only; owned by the caller */
	size_t len;
};

enum port_dir { PORT_INBOUND, PORT_OUTBOUND };

struct port_map {
	void *base; /* inbound: cached memory.  outbound: store only, through `out` */
	size_t len;
	struct u_out out; /* of outbound maps */
	void *priv;	  /* the back end's own */
};

enum port_link { PORT_LINK_DOWN, PORT_LINK_UP };

/* The operations of a back end or a decorator; the functions below describe them. */
struct port_ops {
	int (*slice_alloc)(struct port *p, size_t len, struct port_slice *out);
	void (*slice_free)(struct port *p, uint32_t id);
	int (*slice_share)(struct port *p, int fd, size_t len, uint32_t *id_out); /* optional */
	int (*peer_slice_open)(struct port *p, uint32_t id, size_t len, int *fd_out);
	int (*map)(struct port *p, int fd, size_t len, enum port_dir dir, struct port_map *out);
	void (*unmap)(struct port *p, struct port_map *map);
	void (*flush)(struct port *p);

	void (*peer_db_ring)(struct port *p, uint32_t bits);
	uint32_t (*db_read)(struct port *p);
	void (*db_clear)(struct port *p, uint32_t bits);
	void (*db_set_mask)(struct port *p, uint32_t bits);
	void (*db_clear_mask)(struct port *p, uint32_t bits);

	uint32_t (*spad_read)(struct port *p, unsigned int idx);
	int (*spad_write)(struct port *p, unsigned int idx, uint32_t v);
	uint32_t (*peer_spad_read)(struct port *p, unsigned int idx);
	int (*peer_spad_write)(struct port *p, unsigned int idx, uint32_t v);

	int (*link_enable)(struct port *p);
	void (*link_disable)(struct port *p);
	enum port_link (*link_state)(struct port *p, uint32_t *generation_out);

	int (*event_fd)(struct port *p); /* optional */
	int (*service)(struct port *p);	 /* optional */

	int (*export_view)(struct port *p, char *text, size_t size, int fds[PORT_ATTACH_FDS],
			   unsigned int *nfds_out);
	void (*close)(struct port *p);
};

struct port {
	const struct port_ops *ops;
	struct port_limits limits;
	struct port_irq *irq; /* where this host's doorbells interrupt; shared by its ports */
	struct port *inner;   /* decorators: the port wrapped */
};

/* ---- making and closing ---------------------------------------------------------------------- */

/**
 * port_attach() - make a process's view of a port of its agent.
 * @text:	the text of port_export_view(), below PORT_VIEW_MAX bytes with its NUL.
 * @fds:	the descriptors that came with it.
 * @nfds:	how many, up to PORT_ATTACH_FDS.
 * @irq:	the interrupts of the host, from port_irq_open(); must outlive the view.
 *
 * The view owns the descriptors on success; on failure they stay the caller's.  Slices,
 * scratchpads, port_link_enable() and port_export_view() are the agent's alone: a view answers
 * -EPERM, and reads scratchpads as all ones.  Does not block.
 *
 * Return: 0; -EINVAL when the text is none of this version, which is logged; -ENOMEM and other
 * errors of mmap().
 */
int port_attach(const char *text, const int *fds, unsigned int nfds, struct port_irq *irq,
		struct port **out);

/**
 * port_decorate() - wrap a port in the decorators that a kind names.
 * @p:		 the port; owned by *@out on success.
 * @kind:	 the kind of @p, then names after plus signs: "emu", "emu+strict", "emu+fault",
 *		 "emu+strict+fault", "emu+model", "emu+model:gen3x8:1000".
 * @fault_options: for `fault` (port_fault.h), "" for none.
 * @seed:	 for `strict` and `fault`, which draw from it.
 *
 * *@out is @p itself when @kind names no decorator.
 *
 * Return: 0; -EINVAL for an unknown kind or option, which is logged; -ENOMEM.
 */
int port_decorate(struct port *p, const char *kind, const char *fault_options, uint64_t seed,
		  struct port **out);

/**
 * port_kind_check() - would port_decorate() take this kind for an emu port?
 *
 * Return: 0 or -EINVAL.  Logs nothing.
 */
int port_kind_check(const char *kind);

/**
 * port_ops_check() - is a table of operations complete?
 *
 * For back ends and decorators, when they make a port.  All operations but slice_share, event_fd
 * and service are required.
 *
 * Return: 0 or -EINVAL.
 */
int port_ops_check(const struct port_ops *ops);

/**
 * port_export_view() - describe the port for a process of this host that is to attach.
 * @text:	the back end's own text; PORT_VIEW_MAX bytes are enough.
 * @size:	of @text.
 * @fds:	descriptors to hand on with it, borrowed until the next port_service().
 * @nfds_out:	how many there are.
 *
 * The view holds for the cable that is plugged now.  After another one was plugged, and the link
 * came up with a new generation, processes attach anew; old views say that the link is down.
 * Agents only.  Does not block.
 *
 * Return: 0; -ENOSPC when @size or PORT_ATTACH_FDS is too small; -EPERM on a view.
 */
static inline int port_export_view(struct port *p, char *text, size_t size,
				   int fds[PORT_ATTACH_FDS], unsigned int *nfds_out)
{
	return p->ops->export_view(p, text, size, fds, nfds_out);
}

/**
 * port_close() - end a port and the ports that it wraps.
 * @p:	the port, or NULL.
 *
 * An agent's port drops its link.  All maps must have been unmapped before and no other thread may
 * be in a call.  A `model` port waits until all stores have landed.
 */
void port_close(struct port *p);

/* ---- windows and slices ---------------------------------------------------------------------- */

/**
 * port_slice_alloc() - allocate a slice of this port's window and offer it to the peer.
 * @len:	bytes, at least 1; rounded up to limits.slice_align.
 * @out:	the slice: its memory is zero, its length the rounded one, its descriptor the
 *		caller's to close.
 *
 * The peer opens the slice by its id, which the caller has to tell it; an offer is sent before
 * this returns, so the peer cannot hear the id first.  Offers end with the cable, the slice does
 * not.  Agents only.  Does not block.
 *
 * Return: 0; -EINVAL for a @len of 0; -ENOSPC when the window is exhausted; -ENOTCONN when there
 * is no cable to offer the slice over; -ENOBUFS when the peer has too many offers that it has not
 * opened; -ENOMEM, -EMFILE; -EPERM on a view.
 */
static inline int port_slice_alloc(struct port *p, size_t len, struct port_slice *out)
{
	return p->ops->slice_alloc(p, len, out);
}

/**
 * port_slice_free() - take back a slice of port_slice_alloc() or port_slice_share().
 * @id:	its id; one that is unknown is ignored.
 *
 * An offer that the peer has not opened is withdrawn and the bytes return to the window.  Memory
 * that is mapped anywhere stays mapped, so the peer may store into it until it unmaps it.  Agents
 * only.  Does not block.
 */
static inline void port_slice_free(struct port *p, uint32_t id)
{
	p->ops->slice_free(p, id);
}

/**
 * port_slice_share() - offer memory of another port of this host to the peer of this one.
 * @fd:		the slice's descriptor, which stays the caller's.
 * @len:	bytes of it that are offered, at least 1.
 * @id_out:	the name by which the peer opens it, for port_slice_free().
 *
 * Takes nothing of the window.  Agents only.  Does not block.
 *
 * Return: 0; -EINVAL for a @len of 0 or a descriptor that is no sealed memory; -ERANGE when the
 * memory is shorter than @len; -ENOTCONN, -ENOBUFS, -ENOMEM and -EPERM as of port_slice_alloc();
 * -EOPNOTSUPP when the back end cannot share.
 */
int port_slice_share(struct port *p, int fd, size_t len, uint32_t *id_out);

/**
 * port_peer_slice_open() - take a slice that the peer offers.
 * @id:		the peer's name for it.
 * @len:	bytes that it must have at least.
 * @fd_out:	a descriptor for port_map(), the caller's to close.
 *
 * Opening uses the offer up: the peer shares a slice again for each process that is to open it.
 * On `self` an id stays good until the slice is freed.  Agents only.  Does not block.
 *
 * Return: 0; -ENOENT when the peer offers no such slice; -ERANGE when it is shorter than @len, and
 * the offer stands; -EMFILE; -EPERM on a view.
 */
static inline int port_peer_slice_open(struct port *p, uint32_t id, size_t len, int *fd_out)
{
	return p->ops->peer_slice_open(p, id, len, fd_out);
}

/**
 * port_map() - map a slice into this process.
 * @fd:		of the slice; not needed any more afterwards.
 * @len:	bytes from its beginning, at least 1.
 * @dir:	PORT_INBOUND for memory of this host, which is cached and may be loaded and stored;
 *		PORT_OUTBOUND for the peer's, which is only stored to, through @out->out.
 * @out:	address and length; valid until port_unmap().
 *
 * A peer can hand over any descriptor, so it is checked before it is mapped: the memory cannot
 * shrink.  Does not block.
 *
 * Return: 0; -EINVAL for a @len of 0 or a descriptor that is no sealed memory; -ERANGE when the
 * memory is shorter than @len; -ENOMEM and other errors of mmap().
 */
static inline int port_map(struct port *p, int fd, size_t len, enum port_dir dir,
			   struct port_map *out)
{
	return p->ops->map(p, fd, len, dir, out);
}

/**
 * port_unmap() - undo port_map().
 * @map:	zeroed on return; one whose base is NULL is ignored.
 *
 * Stores that were made before still arrive.  No other thread may use the map.  May wait for
 * stores that a decorator holds back.
 */
static inline void port_unmap(struct port *p, struct port_map *map)
{
	if (map->base != NULL)
		p->ops->unmap(p, map);
}

/**
 * port_flush() - make stores to the peer visible to it.
 *
 * All stores that this thread made through outbound maps of the port are in the peer's memory on
 * return, and no later load is made before.  Waits for one read across the link, about a
 * microsecond of hardware: for a thread that is about to sleep, never per message.  Says nothing
 * about whether the link is up.
 */
static inline void port_flush(struct port *p)
{
	p->ops->flush(p);
}

/* ---- doorbells ------------------------------------------------------------------------------- */

/**
 * port_peer_db_ring() - ring doorbell bits at the peer.
 * @bits:	a mask; bits that the peer does not have are ignored.
 *
 * Sets the bits at the peer and interrupts its threads that wait for one of them.  Stores that
 * were fenced (u_out_fence()) before the ring are visible to a thread that clears the bit and then
 * loads. Rings of one bit coalesce.  While the link is down they are lost, without an error. A
 * posted register write: does not block; may make one system call to wake a sleeper.
 */
static inline void port_peer_db_ring(struct port *p, uint32_t bits)
{
	p->ops->peer_db_ring(p, bits);
}

/**
 * port_db_read() - which bits were rung since this view last cleared them?
 *
 * Masked bits are left out.  Each view remembers for itself the rings that it cleared; to a new one
 * no bit is rung.  Loads only, and no order towards later loads: port_db_clear() gives that.
 *
 * Return: the bits, below 1 << limits.db_bits.
 */
static inline uint32_t port_db_read(struct port *p)
{
	return p->ops->db_read(p);
}

/**
 * port_db_clear() - forget rings of some bits.
 * @bits:	a mask; bits that the port does not have are ignored.
 *
 * Loads after this see everything that the peer fenced before the rings that are cleared.  So clear
 * first, then check the memory that the bits announce: a ring after that is read again.  Other
 * views keep their bits.  Does not block.
 */
static inline void port_db_clear(struct port *p, uint32_t bits)
{
	p->ops->db_clear(p, bits);
}

/**
 * port_db_set_mask() - do not report some bits to this view.
 * @bits:	a mask; added to those that are masked already.
 *
 * port_db_read() leaves them out.  Rings still count; port_irq_wait() knows no masks, so the
 * caller leaves masked bits out of those that it waits for.  Does not block.
 */
static inline void port_db_set_mask(struct port *p, uint32_t bits)
{
	p->ops->db_set_mask(p, bits);
}

/**
 * port_db_clear_mask() - report some bits again.
 * @bits:	a mask.
 *
 * Bits that were rung while they were masked are read from now on, and the threads of this host
 * that wait for them are woken.  Does not block.
 */
static inline void port_db_clear_mask(struct port *p, uint32_t bits)
{
	p->ops->db_clear_mask(p, bits);
}

/* ---- scratchpads: the agents' alone ---------------------------------------------------------- */

/**
 * port_spad_read() - read a scratchpad of this port.
 * @idx:	below limits.spads.
 *
 * Stores that the peer made before it wrote the scratchpad are visible to later loads.  Does not
 * block.
 *
 * Return: the value; all ones for an @idx out of range and on a view.
 */
static inline uint32_t port_spad_read(struct port *p, unsigned int idx)
{
	return p->ops->spad_read(p, idx);
}

/**
 * port_spad_write() - write a scratchpad of this port.
 * @idx:	below limits.spads.
 * @v:		the value.
 *
 * Both sides may write a scratchpad; the last write stands.  Does not block.
 *
 * Return: 0; -EINVAL for an @idx out of range; -EPERM on a view.
 */
static inline int port_spad_write(struct port *p, unsigned int idx, uint32_t v)
{
	return p->ops->spad_write(p, idx, v);
}

/**
 * port_peer_spad_read() - read a scratchpad of the peer.
 * @idx:	below the peer's limits.spads.
 *
 * A read across the link, which waits about a microsecond of hardware.
 *
 * Return: the value; all ones while the link is down, for an @idx out of range and on a view.
 */
static inline uint32_t port_peer_spad_read(struct port *p, unsigned int idx)
{
	return p->ops->peer_spad_read(p, idx);
}

/**
 * port_peer_spad_write() - write a scratchpad of the peer.
 * @idx:	below the peer's limits.spads.
 * @v:		the value.
 *
 * A posted register write, behind the stores that were fenced before: does not block.
 *
 * Return: 0; -ENOTCONN while the link is down; -EINVAL for an @idx out of range; -EPERM on a view.
 */
static inline int port_peer_spad_write(struct port *p, unsigned int idx, uint32_t v)
{
	return p->ops->peer_spad_write(p, idx, v);
}

/* ---- the link -------------------------------------------------------------------------------- */

/**
 * port_link_enable() - let the link come up.
 *
 * The link is up when both sides enabled it and a cable joins them.  Does not wait for that: the
 * change shows in port_service() and port_link_state().  Enabling twice is enabling once.  Agents
 * only.
 *
 * Return: 0; -EPERM on a view.
 */
static inline int port_link_enable(struct port *p)
{
	return p->ops->link_enable(p);
}

/**
 * port_link_disable() - take the link down, for both sides.
 *
 * On return port_link_state() says down here; the peer learns of it a moment later.  Slices stay
 * allocated and maps valid.  Nothing on `self`, whose link is always up, and on a view.  Does not
 * block.
 */
static inline void port_link_disable(struct port *p)
{
	p->ops->link_disable(p);
}

/**
 * port_link_state() - is the link up, and for which time?
 * @generation_out:	may be NULL; changes with each coming up, and says of a link that is down
 *			which generation it was.
 *
 * One load: cheap enough for every poll.  On a view also down when the view is of a cable that was
 * replaced.
 *
 * Return: PORT_LINK_UP or PORT_LINK_DOWN.
 */
static inline enum port_link port_link_state(struct port *p, uint32_t *generation_out)
{
	return p->ops->link_state(p, generation_out);
}

/**
 * port_event_fd() - the agent's event source.
 *
 * Return: a descriptor, the port's own, that is readable when port_service() has work; -1 when
 * there is none, as of `self` and of views.
 */
int port_event_fd(struct port *p);

/**
 * port_service() - do the back end's own work: link changes and its traffic with the peer.
 *
 * Agents only; called when port_event_fd() is readable.  Bounded, so that one port does not starve
 * others; does not block.
 *
 * Return: how often the link changed since the last call, 0 included, or -errno.
 */
int port_service(struct port *p);

#endif
