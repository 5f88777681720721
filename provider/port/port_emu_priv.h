/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside emu: the registers of a host, a process's view of a port, slices, the cable.
 *
 * The registers lie in three pages, which differ in the processes that may store there:
 *
 *	status	 the host's agent; its processes read.  Sealed: no other process can make a
 *		 writable mapping of it.
 *	regs	 the agents of the host and of its neighbours; no other process has it.
 *	doorbells	 these agents, and the processes of the host and of its neighbours.
 *
 * So a process that overwrites the memory it was given can only ring, wake, and make rings get
 * lost: sleeps have limits, and it cannot write the agents' doorbells, the scratchpads and the
 * state of the links.  Nothing in these pages is used as an index, a length or an address.
 */
#ifndef PORT_EMU_PRIV_H
#define PORT_EMU_PRIV_H

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "port.h"
#include "port_emu_cfg.h"
#include "u_log.h"

#define EMU_MAGIC 0x55504456u /* "VDPU" */
#define EMU_VERSION 2u

#define EMU_DB_DEFAULT 16u
#define EMU_SPAD_DEFAULT 8u
#define EMU_WINDOW_DEFAULT (UINT64_C(4) << 30)
#define EMU_SLICE_ALIGN 4096u
#define EMU_OFFERS_MAX 1024u  /* slices offered over one cable and not opened yet */
#define EMU_BACKLOG_MAX 4096u /* messages waiting for room in the cable */

/*
 * An interrupt word: `seq` counts rings and is the ticket and the futex.  `sleepers` has the bits
 * on which somebody may be asleep: a ring of other bits needs no system call.  See emu_raise().
 */
struct emu_irq {
	_Atomic uint32_t seq;
	_Atomic uint32_t sleepers;
	uint32_t pad[30];
};
static_assert(sizeof(struct emu_irq) == 128, "emu_irq");

struct emu_doorbells {
	struct emu_irq irq;
	struct {
		_Atomic uint32_t db[PORT_DB_MAX]; /* times rung; written by each ringer */
	} port[PORT_PER_HOST];
	uint8_t pad[2944];
};
static_assert(sizeof(struct emu_doorbells) == 4096, "emu_doorbells");

struct emu_regs {
	struct emu_irq irq; /* for the agents' doorbell bits */
	struct {
		_Atomic uint32_t db[PORT_DB_MAX]; /* for those bits: times rung by the peer */
		_Atomic uint32_t spad[PORT_SPAD_MAX];
	} port[PORT_PER_HOST];
	uint8_t pad[896];
};
static_assert(sizeof(struct emu_regs) == 4096, "emu_regs");

struct emu_status {
	uint32_t magic;
	uint32_t version;
	uint32_t pad0[30];
	_Atomic uint64_t link[PORT_PER_HOST]; /* emu_link_word() of each port */
	uint8_t pad1[3904];
};
static_assert(sizeof(struct emu_status) == 4096, "emu_status");

/* The head is public (port.h): the hot path reads the ticket without a call. */
struct port_irq {
	struct port_irq_head head;
	struct emu_irq *irq;
	struct emu_doorbells *doorbells; /* NULL in that of the agents */
	const struct emu_status *status; /* likewise */
	int device; /* the interrupt object that contains `irq`; -1: sleepers wait on a futex */
};

struct port_emu_host {
	struct port_irq irq;	   /* for the doorbells */
	struct port_irq agent_irq; /* for the agents' doorbell bits */
	struct emu_regs *regs;
	struct emu_status *status;
	int doorbells_fd;
	int regs_fd;
	int status_fd;
	int agent_irq_fd; /* -1: the agents' interrupt word is in regs */
	void *agent_page;
};

/*
 * Counts a ring and wakes sleepers.  `own`: the interrupts that the word belongs to, if it is this
 * host's; NULL: sleepers wait on a futex.
 */
void emu_raise(struct emu_irq *irq, const struct port_irq *own, uint32_t bits);
/*
 * Check a descriptor that another process made, which stays the caller's, and map its page.  0 or -errno as
 * emu_memfd_check().
 */
int emu_doorbells_map(int fd, struct emu_doorbells **out);
int emu_regs_map(int fd, struct emu_regs **out);
/* Accepts NULL. */
void emu_page_unmap(const void *page);

/* Makes a memfd of `len` zero bytes, sealed so that its size and seals stay; it can be written.  0 or -errno. */
int emu_memfd(const char *name, size_t len, int *fd_out);
/*
 * Is `fd` memory that holds `len` bytes now and for ever?  0, -EINVAL when it is not such memory,
 * -ERANGE when it is smaller.
 */
int emu_memfd_check(int fd, size_t len);

/* Returns the word of emu_status.link: bit 0 says if the link is up. */
static inline uint64_t emu_link_word(uint32_t generation, uint32_t cable, bool up)
{
	return (uint64_t)generation << 32 | (uint64_t)(cable & 0x7fffffffu) << 1 | up;
}

/* The far end of a cable; `doorbells` is NULL while there is no cable, `regs` in a client. */
struct emu_peer {
	struct emu_doorbells *doorbells;
	struct emu_regs *regs;
	/* for self: the interrupts that these words belong to */
	const struct port_irq *own, *own_agent;
	uint32_t index;
	uint32_t db_bits;
	uint32_t agent_bits;
	uint32_t spads;
};

/*
 * One process's view of a port: the agent's own, or a client's.  In a client it is constant but for
 * `seen` and `mask`, which any thread of the view writes.
 */
struct emu_view {
	struct port port;
	struct emu_doorbells *doorbells;
	struct emu_regs *regs; /* NULL in a client */
	uint32_t agent_bits;   /* doorbell bits that are in regs; 0 in a client */
	uint32_t index;
	uint32_t cable; /* the cable over which `peer` came; a view of an earlier cable is stale */
	const _Atomic uint64_t *link;
	struct emu_peer peer;
	_Atomic uint32_t mask;
	_Atomic uint32_t seen[PORT_DB_MAX];
};

static inline struct emu_view *emu_view(struct port *p)
{
	return u_container_of(p, struct emu_view, port);
}

/*
 * Clears the view, and sets its limits and this host's doorbells; the caller adds `link`, `peer` and what is an
 * agent's.
 */
void emu_view_init(struct emu_view *v, const struct port_ops *ops, struct port_irq *irq,
		   const struct port_emu_cfg *cfg);
bool emu_view_up(const struct emu_view *v);
/* Rings bits at the peer; does nothing while the link is down.  A port with a cable calls it with its lock held. */
void emu_view_ring(struct emu_view *v, uint32_t bits);

/* Writes the view text, without decorators.  0 or -ENOSPC. */
int emu_view_text(const struct emu_view *v, char *text, size_t size);
/* Copies the settings, with the defaults in place of 0.  -EINVAL, which is logged: they are impossible. */
int emu_cfg_check(const struct port_emu_cfg *cfg, struct port_emu_cfg *out);

/*
 * Operations of port.h that the agent's ports and the clients' views share; those on scratchpads are for the agent's
 * only.  A port with a cable calls those on the peer with its lock held.
 */
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

/*
 * Makes a client's view from one segment of view text.  The descriptors stay the caller's; `irq` outlives it.
 * 0, -ENOMEM, or -EINVAL and other errors of a text or a descriptor that is refused.
 */
int emu_attach(const char *text, const int *fds, unsigned int nfds, struct port_irq *irq,
	       struct port **out);

/* An entry of a table of slices by id.  A table of zeros is empty. */
struct emu_slice {
	uint32_t id;
	int fd; /* offers: the memory; own slices: -1 */
	size_t len;
	bool counted;  /* own slices: takes room of the window */
	bool unopened; /* own slices: the far side holds the offer */
};

struct emu_slices {
	struct emu_slice *v;
	uint32_t count;
	uint32_t room;
};

/*
 * Enters a copy, whose descriptor is the table's on success.  0 or -ENOMEM.  This and emu_slices_del() move
 * entries: pointers that emu_slices_find() gave are invalid afterwards.
 */
int emu_slices_add(struct emu_slices *s, const struct emu_slice *slice);

/* Returns the entry with that id, or NULL. */
struct emu_slice *emu_slices_find(const struct emu_slices *s, uint32_t id);
/* Removes an entry that emu_slices_find() gave, closing its descriptor. */
void emu_slices_del(struct emu_slices *s, struct emu_slice *slice);
/* Closes the descriptors of all entries, and empties the table. */
void emu_slices_clear(struct emu_slices *s);

enum emu_msg_type { EMU_HELLO = 1, EMU_LINK, EMU_OFFER, EMU_FREE, EMU_OPENED, EMU_DOORBELLS };

/*
 * A message over a cable.  DOORBELLS, with their descriptor, comes first, then HELLO with that of
 * the agents' registers; OFFER has the slice's.
 */
struct emu_msg {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t id;	  /* OFFER, FREE, OPENED */
	uint32_t enabled; /* HELLO, LINK */
	uint64_t len;	  /* OFFER: bytes; HELLO: window bytes */
	uint32_t index;	  /* the rest: HELLO */
	uint32_t db_bits;
	uint32_t spads;
	uint32_t agent_bits;
};
static_assert(sizeof(struct emu_msg) == 40, "emu_msg");

/* The agent's port. */
struct emu_port {
	struct emu_view view;
	struct port_emu_host *host;
	bool self;
	pthread_mutex_t lock; /* protects all below, and view.peer */

	struct emu_slices own;	  /* this host's slices that are not freed */
	struct emu_slices offers; /* the peer's, not opened yet (self: this host's) */
	uint64_t window_used;
	uint32_t unopened; /* entries of `own` that are unopened */
	uint32_t next_id;

	int sock;	 /* the cable; -1 without */
	bool hello_owed; /* the far side did not take our HELLO yet */
	int spare_fd;	 /* given up to look at a message when descriptors run out */
	int peer_fd;	 /* the peer's doorbells, for clients; -1 without */
	bool enabled;
	bool peer_enabled;
	uint32_t cables; /* plugged so far; the number of the present one */
	uint32_t generation;
	_Atomic uint64_t link; /* the agent's own copy, which no other process can write */
	struct emu_msg *backlog;
	uint32_t backlog_count;

	int epoll_fd;
	int event_fd; /* raised by local changes */
	uint32_t changes;

	/* for log lines that the far side can cause without end */
	struct u_log_ratelimit unplugged, misread;
};

static inline struct emu_port *emu_port(struct port *p)
{
	return u_container_of(emu_view(p), struct emu_port, view);
}

/* slice_alloc, slice_share, slice_free and peer_slice_open of the agent's port; they take the lock. */
int emu_offer_alloc(struct port *p, size_t len, struct port_slice *out);
int emu_offer_share(struct port *p, int fd, size_t len, uint32_t *id_out);
void emu_offer_free(struct port *p, uint32_t id);
int emu_offer_open(struct port *p, uint32_t id, size_t len, int *fd_out);

/* Functions from here on are called with the lock held. */

/*
 * Derives the state of the link from the cable and from the sides that are enabled, and stores it for this
 * agent and for the processes.  A change is counted and makes event_fd readable.  Each time that the link comes
 * up begins a new generation.  Called with the lock held, as are all below.
 */
void emu_link_update(struct emu_port *e);
/* Makes event_fd readable. */
void emu_notify(struct emu_port *e);

/*
 * Makes `fd` the cable and says hello over it; there is none now.  Takes `fd`, also on failure.  Called with
 * the lock held.  0 or -errno; -EPROTOTYPE: it is no SOCK_SEQPACKET Unix socket.
 */
int emu_cable_plug(struct emu_port *e, int fd);
/*
 * Hangs up, and drops the peer and all offers: the link is down.  Does nothing without a cable.  `why` goes to
 * the log; NULL: nothing does.  Called with the lock held.
 */
void emu_cable_unplug(struct emu_port *e, const char *why);
/*
 * Handles messages that arrived, at most `limit`.  Unplugs a cable that was hung up or breaks the protocol.
 * Called with the lock held.
 */
void emu_cable_input(struct emu_port *e, unsigned int limit);
/*
 * Sends messages that wait for room in the cable, as far as there is some; unplugs a cable that was hung up.
 * Called with the lock held.
 */
void emu_cable_output(struct emu_port *e);
/*
 * Sends now or later; a cable that cannot take it for long is unplugged.  Without a cable, or before HELLO was
 * sent, the message is dropped.  Called with the lock held.
 */
void emu_cable_say(struct emu_port *e, const struct emu_msg *msg);
/*
 * Sends an offer now; `fd` stays the caller's.  Called with the lock held.  0; -ENOBUFS: there is no room;
 * -ENOTCONN: there is no cable, HELLO was not sent yet, or the cable has just been unplugged.
 */
int emu_cable_offer(struct emu_port *e, uint32_t id, size_t len, int fd);

/* Returns a message of that type, in which the caller fills in the fields after it. */
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
