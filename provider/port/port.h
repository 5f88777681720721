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
 *     and poison on the strict port).  A port may do so itself, before a ring, where the
 *     adapter would let the ring overtake stores (port_peer_db_ring()).
 *  3. No atomics across the link.
 *  4. port_flush() makes every earlier store visible to the peer.  It is one
 *     read across the link: for "about to sleep", never per message.
 *  5. Doorbell bits coalesce, may ring spuriously, and may get lost while a process
 *     that may ring them misbehaves: a thread that sleeps polls again after a bounded time.
 *     Clearing a mask delivers what was already set.
 *  6. Bytes in an inbound slice were written by another host: hostile until checked.
 *  7. Registers that a process can write hold nothing that others rely on: it cannot write the
 *     state of links, scratchpads and the agents' doorbells.
 *
 * A new kind of ports keeps these rules and has a table of all operations but those that
 * port_ops_check() calls optional (struct port_ops in port_types.h).  port_host.c makes the agent's
 * port of each kind, and the interrupts of its host; port_factory.c makes the view of a process from
 * the text of export_view(), and knows the name (port_kind_check()).  The conformance tests run on
 * the kinds in all_variants() of tests/port/rig.cc.
 *
 * One `struct port` is one process's view of one port.  The agent creates ports (emu: port_emu.h);
 * a process attaches to its agent's ports with the text and descriptors that it gets from the agent
 * (port_attach()).  Decorators wrap a port (port_strict.h, port_fault.h, port_model.h).
 *
 * Each operation is documented at its function below.  All return 0 or -errno unless they say
 * otherwise; outputs are written on success only.  Any thread may call any of them, several at
 * once; none may be called from a signal handler.  "Does not block" means: no sleep and no wait for
 * the peer or for another process, though a port's own mutex may be taken for a short time.
 * "Agents only" means: on a *view*, which port_attach() made, it does nothing or returns -EPERM.
 */
#ifndef PORT_H
#define PORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port_irq.h"
#include "port_types.h"
#include "u_base.h"
#include "u_out.h"

/* ---- making and closing ---------------------------------------------------------------------- */

/**
 * port_attach() - make a process's view of a port of its agent.
 * @text:	the text of port_export_view(), below PORT_VIEW_MAX bytes with its NUL.
 * @fds:	the descriptors that came with it.
 * @nfds:	how many, up to PORT_ATTACH_FDS.
 * @irq:	the interrupts of the host, from port_irq_open(); must outlive the view.
 *
 * The view owns the descriptors on success, and may have closed them; on failure they stay the caller's.  Slices,
 * scratchpads, port_link_enable() and port_export_view() are for the agent only: on a view they
 * return -EPERM, and scratchpads read as all ones.  Does not block.
 *
 * Return: 0; -EINVAL when the text is not of this version, which is logged; -ENOMEM and other
 * errors of mmap().
 */
int port_attach(const char *text, const int *fds, unsigned int nfds, struct port_irq *irq,
		struct port **out);

/**
 * port_decorate() - wrap a port in the decorators that a kind names.
 * @p:		 the port; owned by *@out on success.
 * @kind:	 the kind of @p, then names after plus signs: "emu", "emu+strict", "emu+fault",
 *		 "emu+strict+fault", "emu+model", "emu+model:gen3x8:1000", and likewise with "cdev".
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
 * port_kind_check() - is this a kind of ports, of emu or of cdev?
 *
 * Return: 0 or -EINVAL.  Logs nothing.
 */
int port_kind_check(const char *kind);

/**
 * port_kind_profile() - name another profile in a kind of ports.
 * @kind:	 with the decorator `model`, such as "emu+model" or "emu+fault+model:gen3x8:1000".
 * @profile:	 the name of the profile that takes the place of the model's; its dilation stays.
 *
 * Return: 0; -EINVAL when @kind is none or has no model, when there is no such profile, or when it does not allow
 * the dilation.  Logs nothing.
 */
int port_kind_profile(const char *kind, const char *profile, char out[PORT_KIND_MAX]);

/**
 * port_ops_check() - is a table of operations complete?
 *
 * For back ends and decorators, when they make a port.  All operations but slice_end, slice_share,
 * memory_alloc, view_end, event_fd and service are required.
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
 * The view is valid for the cable that is plugged now.  When another cable has been plugged and the
 * link has come up with a new generation, processes attach again; old views say that the link is
 * down.  Agents only.  Does not block.
 *
 * Return: 0; -ENOSPC when @size or PORT_ATTACH_FDS is too small; -EPERM on a view.
 */
static inline int port_export_view(struct port *p, char *text, size_t size,
				   int fds[PORT_ATTACH_FDS], unsigned int *nfds_out)
{
	return p->ops->export_view(p, text, size, fds, nfds_out);
}

/**
 * port_view_ends() - can port_view_end() end the view of a process?
 *
 * If so, the caller keeps a duplicate of the first descriptor that port_export_view() gave.
 */
bool port_view_ends(struct port *p);

/**
 * port_view_end() - end the view of a process that has left or gets another one.
 * @fd:	a duplicate of the first descriptor of the view; stays the caller's.
 *
 * A process that keeps descriptors of the view can no longer ring by it and takes no room of the
 * adapter; it can still read the state of the link (cdev).  Does nothing where port_view_ends() is
 * false.  Agents only.
 */
void port_view_end(struct port *p, int fd);

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
 * The peer opens the slice by its id, which the caller has to tell it; the offer is sent before
 * this returns, so it precedes any message with the id.  Offers end with the cable, the slice does
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
 * port_memory_alloc() - allocate memory of this port's window that is offered to nobody yet.
 * @len:	bytes, at least 1; rounded up to limits.slice_align.
 * @out:	as for port_slice_alloc(), but @out->id means nothing to the peer.
 *
 * For port_slice_share() of this port, once for each time that the peer is to open it, and for port_slice_free() with
 * @out->id.  Unlike offers it does not end with the link, and can be allocated while the link is down, if it was up
 * once.  Agents only.  Does not block.
 *
 * Return: 0; -EOPNOTSUPP when any memory can be shared, so that it does not have to be part of this
 * window; -EINVAL, -ENOSPC, -ENOMEM, -EMFILE and -EPERM as for port_slice_alloc().
 */
int port_memory_alloc(struct port *p, size_t len, struct port_slice *out);

/**
 * port_slice_free() - take back a slice of port_slice_alloc(), port_slice_share() or
 *		       port_memory_alloc().
 * @id:	its id; one that is unknown is ignored.
 *
 * An offer that the peer has not opened is withdrawn and the bytes return to the window.  Memory
 * that is mapped here stays mapped.  A peer that has mapped it may store into it until it unmaps it
 * (emu: such memory is not used again), or until its agent's port has ended the map, after which
 * stores through it are lost (cdev: only then are the pages used again).  Agents only.  Does not
 * block.
 */
static inline void port_slice_free(struct port *p, uint32_t id)
{
	p->ops->slice_free(p, id);
}

/**
 * port_slice_end() - port_slice_free() of a slice that no process of this host uses any more.
 * @id:	its id; one that is unknown is ignored.
 *
 * The caller knows that the processes which had the slice have unmapped it or have ended.  A
 * process that has kept a descriptor or a map of it nevertheless does not keep its bytes: when they
 * return to the window the map shows other memory, which nobody else has (cdev).  Agents only.
 * Does not block.
 */
void port_slice_end(struct port *p, uint32_t id);

/**
 * port_slice_share() - offer memory of this host to the peer of this port.
 * @fd:		the memory's descriptor, which stays the caller's.
 * @len:	how many of its bytes are offered, at least 1.
 * @id_out:	the name by which the peer opens it, for port_slice_free().
 *
 * Takes no room of the window, unless the memory belongs to no window and has to be put behind one
 * (cdev, where an IOMMU translates).  Then all of it is pinned, which takes time in proportion to
 * its size, and it takes room, once for all its offers, until the peer's agent has ended the last
 * of them.  Agents only.  Does not wait for the peer.
 *
 * Return: 0; -EINVAL for a @len of 0 or a descriptor of anything but sealed memory; -ERANGE when
 * the memory is shorter than @len; -ENOTCONN, -ENOBUFS, -ENOMEM and -EPERM as for
 * port_slice_alloc(); -EOPNOTSUPP when the back end cannot share, or not this memory; -ENOSPC,
 * -EDQUOT when it finds no room behind the window, -ENOMEM when it may not be pinned.
 */
int port_slice_share(struct port *p, int fd, size_t len, uint32_t *id_out);

/**
 * port_peer_slice_open() - take a slice that the peer offers.
 * @id:		the peer's name for it.
 * @len:	the least number of bytes that it must have.
 * @fd_out:	a descriptor for port_map(), the caller's to close.
 *
 * Opening uses the offer up: the peer shares a slice again for each process that is to open it.
 * Agents only.  Does not block.
 *
 * Return: 0; -ENOENT when the peer offers no such slice; -ERANGE when it is shorter than @len, and
 * the offer stays; -EPERM on a view.
 */
static inline int port_peer_slice_open(struct port *p, uint32_t id, size_t len, int *fd_out)
{
	return p->ops->peer_slice_open(p, id, len, fd_out);
}

/**
 * port_map() - map a slice into this process.
 * @fd:		the descriptor of the slice; not needed any more afterwards.
 * @len:	bytes from its beginning, at least 1.
 * @dir:	PORT_INBOUND for memory of this host, which is cached and may be loaded and stored;
 *		PORT_OUTBOUND for the peer's, which is only stored to, through @out->out.
 * @out:	address and length; valid until port_unmap().
 *
 * A peer can pass any descriptor, so it is checked before it is mapped: the memory cannot shrink
 * (emu), or is a slice of this port in this direction (cdev).  Does not block.
 *
 * Return: 0; -EINVAL for a @len of 0 or a descriptor of anything else; -ERANGE when the memory is
 * shorter than @len; -ENOMEM and other errors of mmap().
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
 * return, and no load that follows is made earlier.  Waits for one read across the link, about a
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
 * posted register write: does not block; may make one system call to wake a sleeper.  Where the
 * adapter does not keep stores before rings, as is known of some that are endpoints (cdev:
 * kmod/viaduct_quirk.c lists their drivers), it waits for a read across the link first.
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
 * first, then check the memory that the bits announce: a ring that comes later is then read again.
 * Other views keep their bits.  Does not block.
 */
static inline void port_db_clear(struct port *p, uint32_t bits)
{
	p->ops->db_clear(p, bits);
}

/**
 * port_db_set_mask() - do not report some bits to this view.
 * @bits:	a mask; added to the bits that are masked already.
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

/* ---- scratchpads: for agents only ------------------------------------------------------------ */

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
 * A posted register write, which arrives after the stores that were fenced before: does not block.  It waits for a read
 * across the link first where port_peer_db_ring() does.
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
 * allocated and maps valid.  Does nothing on `self`, whose link is always up, and on a view.  Does
 * not block.
 */
static inline void port_link_disable(struct port *p)
{
	p->ops->link_disable(p);
}

/**
 * port_link_state() - is the link up, and in which generation?
 * @generation_out:	may be NULL; changes each time that the link comes up; while the link is
 *			down, its last generation.
 *
 * One load: cheap enough for every poll.  A view also says down when it belongs to a cable that was
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
 * there is none, as on `self` and on views.
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
