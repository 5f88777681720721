/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NTB port contract: what the layers above may rely on, and no more.
 *
 * The words are those of the kernel's NTB API.  A port hands out *addresses* -
 * slices of memory windows and doorbells - not transfers; it is out of the way
 * of a message.  What hardware promises, and so what every back end keeps:
 *
 *  1. A store to an outbound slice is posted; it arrives later.  Stores are
 *     made through util/u_out.h, ordered only by its fence.
 *  2. No protocol step loads through an outbound slice (about a microsecond,
 *     and poison on the strict port).
 *  3. No atomics across the link.
 *  4. port_flush() makes every earlier store visible to the peer.  It is one
 *     read across the link: for "about to sleep", never per message.
 *  5. Doorbell bits coalesce, may ring spuriously, and may get lost while somebody
 *     else who may ring them misbehaves: who sleeps looks again after a while.
 *     Clearing a mask delivers what was already set.
 *  6. Bytes in an inbound slice were written by another host: hostile until checked.
 *  7. What a process can write of a host's registers changes nothing that others rely
 *     on: the state of links, scratchpads and the agents' doorbells are out of its reach.
 *
 * One `struct port` is one process's view of one port.  The agent creates ports
 * (emu: port_emu.h); a client attaches to the agent's ports with what the agent
 * hands it (port_attach()).  Decorators wrap a port (port_strict.h, port_fault.h,
 * port_model.h).
 *
 * All functions return 0 or -errno unless they say otherwise.
 */
#ifndef PORT_H
#define PORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

struct port_ops {
	/*
	 * Windows and slices.  slice_alloc answers -ENOSPC when the window is
	 * exhausted, -ENOTCONN when there is no cable to offer the slice over, and
	 * -ENOBUFS (as slice_share) when the peer has too many offers not opened
	 * yet.  Offers end with the cable; the memory is freed all the same.
	 */
	int (*slice_alloc)(struct port *p, size_t len, struct port_slice *out);
	void (*slice_free)(struct port *p, uint32_t id);
	/* Lets the peer of *this* port open memory allocated on another port of the same host. */
	int (*slice_share)(struct port *p, int fd, size_t len, uint32_t *id_out);
	/*
	 * A descriptor of the peer's slice `id`; -ENOENT when the peer offers no such
	 * slice, -ERANGE when it is shorter than len.  Opening takes the offer: a
	 * slice that several processes are to open is shared again for each (on
	 * `self` an id stays good until it is freed).
	 */
	int (*peer_slice_open)(struct port *p, uint32_t id, size_t len, int *fd_out);
	int (*map)(struct port *p, int fd, size_t len, enum port_dir dir, struct port_map *out);
	void (*unmap)(struct port *p, struct port_map *map);
	void (*flush)(struct port *p);

	/*
	 * Doorbells: bits are rung at the peer, read here.  Masks are this view's: a
	 * masked bit is not read, and whoever masks it leaves it out of the bits he
	 * waits for.
	 */
	void (*peer_db_ring)(struct port *p, uint32_t bits);
	uint32_t (*db_read)(struct port *p); /* bits rung since this view last cleared them */
	void (*db_clear)(struct port *p, uint32_t bits);
	void (*db_set_mask)(struct port *p, uint32_t bits);
	void (*db_clear_mask)(struct port *p, uint32_t bits);

	/* Scratchpads: mine, which the peer may write, and the peer's.  The agents' alone. */
	uint32_t (*spad_read)(struct port *p, unsigned int idx);
	int (*spad_write)(struct port *p, unsigned int idx, uint32_t v);
	uint32_t (*peer_spad_read)(struct port *p, unsigned int idx);
	int (*peer_spad_write)(struct port *p, unsigned int idx, uint32_t v);

	/* Link: up when both sides enabled it. The generation changes with each coming up. */
	int (*link_enable)(struct port *p);
	void (*link_disable)(struct port *p);
	enum port_link (*link_state)(struct port *p, uint32_t *generation_out);

	/*
	 * The agent's event source: a descriptor readable when service() has work
	 * (link changes, the back end's own traffic); service() returns the number
	 * of link changes since the last call, or -errno.  -1 when there is none.
	 */
	int (*event_fd)(struct port *p);
	int (*service)(struct port *p);

	/*
	 * What a client of this host needs to attach: back-end text (PORT_VIEW_MAX is
	 * enough) and descriptors, borrowed until the next service().  It holds for
	 * the cable that is plugged now: after another one was plugged (the link came
	 * up anew) clients attach anew, and old views say that the link is down.
	 */
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

/*
 * A client's view of an agent's port, from what export_view() gave.  Takes
 * ownership of the descriptors on success.  `irq` is the host's, see port_irq_open(),
 * and outlives the view.  Slices, scratchpads, link_enable and export_view are the agent's:
 * a view answers -EPERM, and reads scratchpads as all ones.
 */
int port_attach(const char *text, const int *fds, unsigned int nfds, struct port_irq *irq,
		struct port **out);

/*
 * Wraps `p` in the decorators that `kind` names ("emu", "emu+strict", "emu+fault",
 * "emu+strict+fault", "emu+model", "emu+model:gen3x8:1000").  Takes ownership of `p` on success;
 * *out is `p` when there are none.
 */
int port_decorate(struct port *p, const char *kind, const char *fault_options, uint64_t seed,
		  struct port **out);

/* Would port_decorate() take this kind, for an emu port?  0 or -EINVAL; logs nothing. */
int port_kind_check(const char *kind);

/* Refuses incomplete back ends: every op but slice_share, event_fd and service is required. */
int port_ops_check(const struct port_ops *ops);

/*
 * Interrupts.  All ports of a host interrupt one place; a process waits there
 * for its doorbell bits.  (A back end may have another one for bits that are the
 * agents' alone; emu: agent_bits.)  The protocol that loses no wake-up:
 *
 *	ticket = port_irq_ticket(irq);
 *	clear and look at the doorbells and everything they announce;
 *	if nothing: port_irq_wait(irq, ticket, bits, timeout_ns);
 *
 * wait returns at once if any doorbell of the host rang since the ticket.  A process of
 * the host that scribbles over its interrupt can keep others asleep, but not beyond
 * timeout_ns.
 */
struct port_irq;

/* How every struct port_irq begins. */
struct port_irq_head {
	const _Atomic uint32_t *word; /* counts interrupts of this host */
};

/* One load: cheap enough for every poll. */
static inline uint32_t port_irq_ticket(const struct port_irq *irq)
{
	const struct port_irq_head *head = (const struct port_irq_head *)irq;

	return atomic_load_explicit(head->word, memory_order_acquire);
}

/*
 * Sleeps until one of `bits` is rung on any port of this host.  timeout_ns < 0:
 * without limit.  Returns 0 when something may have rung, -ETIMEDOUT.  Uses no
 * processor time while it sleeps.  Any number of threads may wait.
 */
int port_irq_wait(struct port_irq *irq, uint32_t ticket, uint32_t bits, int64_t timeout_ns);

/* Wakes local waiters on `bits` without a doorbell (new work from this process). */
void port_irq_kick(struct port_irq *irq, uint32_t bits);

/* Inline wrappers: call these, not the ops. */
static inline int port_slice_alloc(struct port *p, size_t len, struct port_slice *out)
{
	return p->ops->slice_alloc(p, len, out);
}

static inline void port_slice_free(struct port *p, uint32_t id)
{
	p->ops->slice_free(p, id);
}

int port_slice_share(struct port *p, int fd, size_t len, uint32_t *id_out);

static inline int port_peer_slice_open(struct port *p, uint32_t id, size_t len, int *fd_out)
{
	return p->ops->peer_slice_open(p, id, len, fd_out);
}

static inline int port_map(struct port *p, int fd, size_t len, enum port_dir dir,
			   struct port_map *out)
{
	return p->ops->map(p, fd, len, dir, out);
}

static inline void port_unmap(struct port *p, struct port_map *map)
{
	if (map->base != NULL)
		p->ops->unmap(p, map);
}

static inline void port_flush(struct port *p)
{
	p->ops->flush(p);
}

static inline void port_peer_db_ring(struct port *p, uint32_t bits)
{
	p->ops->peer_db_ring(p, bits);
}

static inline uint32_t port_db_read(struct port *p)
{
	return p->ops->db_read(p);
}

static inline void port_db_clear(struct port *p, uint32_t bits)
{
	p->ops->db_clear(p, bits);
}

static inline void port_db_set_mask(struct port *p, uint32_t bits)
{
	p->ops->db_set_mask(p, bits);
}

static inline void port_db_clear_mask(struct port *p, uint32_t bits)
{
	p->ops->db_clear_mask(p, bits);
}

static inline uint32_t port_spad_read(struct port *p, unsigned int idx)
{
	return p->ops->spad_read(p, idx);
}

static inline int port_spad_write(struct port *p, unsigned int idx, uint32_t v)
{
	return p->ops->spad_write(p, idx, v);
}

static inline uint32_t port_peer_spad_read(struct port *p, unsigned int idx)
{
	return p->ops->peer_spad_read(p, idx);
}

static inline int port_peer_spad_write(struct port *p, unsigned int idx, uint32_t v)
{
	return p->ops->peer_spad_write(p, idx, v);
}

static inline int port_link_enable(struct port *p)
{
	return p->ops->link_enable(p);
}

static inline void port_link_disable(struct port *p)
{
	p->ops->link_disable(p);
}

static inline enum port_link port_link_state(struct port *p, uint32_t *generation_out)
{
	return p->ops->link_state(p, generation_out);
}

int port_event_fd(struct port *p);
int port_service(struct port *p);

static inline int port_export_view(struct port *p, char *text, size_t size,
				   int fds[PORT_ATTACH_FDS], unsigned int *nfds_out)
{
	return p->ops->export_view(p, text, size, fds, nfds_out);
}

/* Accepts NULL. */
void port_close(struct port *p);

#endif
