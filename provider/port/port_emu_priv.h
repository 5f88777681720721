/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside emu: the register page, a process's view of a port, slices, the cable.
 *
 * Every process of a neighbour may write a register page, as a neighbour's
 * hardware may write ours.  What it can do with that is ring, wake, and lie
 * about doorbells, scratchpads and the link word; nothing here is used as an
 * index, a length or an address.
 */
#ifndef PORT_EMU_PRIV_H
#define PORT_EMU_PRIV_H

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "port_emu.h"
#include "u_log.h"

#define EMU_MAGIC 0x55504456u /* "VDPU" */
#define EMU_VERSION 1u

#define EMU_DB_DEFAULT 16u
#define EMU_SPAD_DEFAULT 8u
#define EMU_WINDOW_DEFAULT (UINT64_C(4) << 30)
#define EMU_SLICE_ALIGN 4096u
#define EMU_OFFERS_MAX 1024u  /* slices offered over one cable and not opened yet */
#define EMU_BACKLOG_MAX 4096u /* messages waiting for room in the cable */

struct emu_port_regs {
	_Atomic uint32_t db[PORT_DB_MAX]; /* times rung; written by the peer and local rings */
	_Atomic uint32_t spad[PORT_SPAD_MAX];
	_Atomic uint64_t link; /* emu_link_word(); written by the owning agent */
	uint64_t pad[7];
};
static_assert(sizeof(struct emu_port_regs) == 448, "emu_port_regs");

struct emu_regs {
	uint32_t magic;
	uint32_t version;
	uint32_t pad0[30];
	/*
	 * The interrupt word: counts rings of any bit of any port; the ticket and
	 * the futex.  `sleepers` has the bits somebody may be asleep on: a ring
	 * that meets none of them needs no system call.  See emu_raise().
	 */
	_Atomic uint32_t seq;
	_Atomic uint32_t sleepers;
	uint32_t pad1[94];
	struct emu_port_regs port[PORT_PER_HOST];
};
static_assert(sizeof(struct emu_regs) == 4096, "emu_regs");

/* The head is public (port.h): the hot path reads the ticket without a call. */
struct port_irq {
	struct port_irq_head head;
	struct emu_regs *regs;
};

struct port_emu_host {
	struct port_irq irq;
	int fd;
};

int emu_irq_init(struct port_irq *irq, int regs_fd);
void emu_irq_fini(struct port_irq *irq);
void emu_raise(struct emu_regs *regs, uint32_t bits);
/* Checks a descriptor that somebody else made and maps its register page. */
int emu_regs_map(int fd, struct emu_regs **out);
void emu_regs_unmap(struct emu_regs *regs);

/* A sealed memfd of `len` bytes. */
int emu_memfd(const char *name, size_t len, int *fd_out);
/*
 * Is `fd` memory that holds `len` bytes now and for ever?  0, -EINVAL when it
 * is no such memory, -ERANGE when it is smaller.
 */
int emu_memfd_check(int fd, size_t len);

static inline uint64_t emu_link_word(uint32_t generation, uint32_t cable, bool up)
{
	return (uint64_t)generation << 32 | (uint64_t)(cable & 0x7fffffffu) << 1 | up;
}

/* The far end of a cable; regs is NULL while there is none. */
struct emu_peer {
	struct emu_regs *regs;
	uint32_t index;
	uint32_t db_bits;
	uint32_t spads;
};

/*
 * One process's view of a port: the agent's own, or a client's.  Besides the
 * inner workings of `seen` and `mask` (any thread of the view), constant in a client.
 */
struct emu_view {
	struct port port;
	struct emu_regs *own;
	uint32_t index;
	uint32_t cable; /* which cable `peer` came over; another one makes the view stale */
	const _Atomic uint64_t *link;
	struct emu_peer peer;
	_Atomic uint32_t mask;
	_Atomic uint32_t seen[PORT_DB_MAX];
};

static inline struct emu_view *emu_view(struct port *p)
{
	return u_container_of(p, struct emu_view, port);
}

static inline struct emu_port_regs *emu_own(struct emu_view *v)
{
	return &v->own->port[v->index];
}

void emu_view_init(struct emu_view *v, const struct port_ops *ops, struct port_irq *irq,
		   const struct port_emu_cfg *cfg);
bool emu_view_up(const struct emu_view *v);
void emu_view_ring(struct emu_view *v, uint32_t bits);
int emu_view_text(const struct emu_view *v, char *text, size_t size);
int emu_cfg_check(const struct port_emu_cfg *cfg, struct port_emu_cfg *out);

/* Ops that the agent's ports and the clients' views share. */
int emu_map(struct port *p, int fd, size_t len, enum port_dir dir, struct port_map *out);
void emu_unmap(struct port *p, struct port_map *map);
void emu_flush(struct port *p);
uint32_t emu_db_read(struct port *p);
void emu_db_clear(struct port *p, uint32_t bits);
void emu_db_set_mask(struct port *p, uint32_t bits);
void emu_db_clear_mask(struct port *p, uint32_t bits);
uint32_t emu_spad_read(struct port *p, unsigned int idx);
int emu_spad_write(struct port *p, unsigned int idx, uint32_t v);
uint32_t emu_peer_spad_read(struct port *p, unsigned int idx);
int emu_peer_spad_write(struct port *p, unsigned int idx, uint32_t v);
enum port_link emu_link_state(struct port *p, uint32_t *generation_out);
void emu_peer_db_ring(struct port *p, uint32_t bits);

/* A client's view from one segment of view text.  The descriptors stay the caller's. */
int emu_attach(const char *text, const int *fds, unsigned int nfds, struct port_irq *irq,
	       struct port **out);

/* Slices by id.  Zero-initialised is empty. */
struct emu_slice {
	uint32_t id;
	int fd; /* offers: the memory; own slices: -1 */
	size_t len;
	bool counted;  /* own slices: takes part of the window */
	bool unopened; /* own slices: the far side holds the offer */
};

struct emu_slices {
	struct emu_slice *v;
	uint32_t count;
	uint32_t room;
};

int emu_slices_add(struct emu_slices *s, const struct emu_slice *slice);
struct emu_slice *emu_slices_find(const struct emu_slices *s, uint32_t id);
/* Removes an entry that emu_slices_find() gave, closing its descriptor. */
void emu_slices_del(struct emu_slices *s, struct emu_slice *slice);
void emu_slices_clear(struct emu_slices *s);

enum emu_msg_type { EMU_HELLO = 1, EMU_LINK, EMU_OFFER, EMU_FREE, EMU_TAKEN };

/* Everything said over a cable.  HELLO brings the register page, OFFER the slice. */
struct emu_msg {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t id;	  /* OFFER, FREE, TAKEN */
	uint32_t enabled; /* HELLO, LINK */
	uint64_t len;	  /* OFFER: bytes; HELLO: window bytes */
	uint32_t index;	  /* the rest: HELLO */
	uint32_t db_bits;
	uint32_t spads;
	uint32_t reserved;
};
static_assert(sizeof(struct emu_msg) == 40, "emu_msg");

/* The agent's port. */
struct emu_port {
	struct emu_view view;
	struct port_emu_host *host;
	bool self;
	pthread_mutex_t lock; /* all below, and view.peer */

	struct emu_slices own;	  /* mine, living */
	struct emu_slices offers; /* the peer's, not opened yet (self: mine, until freed) */
	uint64_t window_used;
	uint32_t unopened; /* entries of `own` that are */
	uint32_t next_id;

	int sock;    /* the cable; -1 without */
	int peer_fd; /* the peer's register page, for clients; -1 without */
	bool enabled;
	bool peer_enabled;
	uint32_t cables; /* plugged so far; numbers the present one */
	uint32_t generation;
	_Atomic uint64_t link; /* the agent's own copy: nobody else can write it */
	struct emu_msg *backlog;
	uint32_t backlog_count;

	int epoll_fd;
	int event_fd; /* raised by local changes */
	uint32_t changes;

	struct u_log_gate unplugged, misread; /* lines that the far side can cause without end */
};

static inline struct emu_port *emu_port(struct port *p)
{
	return u_container_of(emu_view(p), struct emu_port, view);
}

/* Called with the lock held, as all that follows. */
void emu_link_update(struct emu_port *e);
void emu_notify(struct emu_port *e);

int emu_cable_plug(struct emu_port *e, int fd);
void emu_cable_unplug(struct emu_port *e, const char *why);
/* Handles what arrived, at most so many messages. */
void emu_cable_input(struct emu_port *e, unsigned int limit);
void emu_cable_output(struct emu_port *e);
/* Sends now or later; a cable that cannot take it for long is unplugged. */
void emu_cable_say(struct emu_port *e, const struct emu_msg *msg);
/* Sends an offer now, or -ENOBUFS. */
int emu_cable_offer(struct emu_port *e, uint32_t id, size_t len, int fd);

static inline struct emu_msg emu_msg(enum emu_msg_type type)
{
	struct emu_msg msg;

	memset(&msg, 0, sizeof(msg));
	msg.magic = EMU_MAGIC;
	msg.version = EMU_VERSION;
	msg.type = (uint16_t)type;
	return msg;
}

#endif
