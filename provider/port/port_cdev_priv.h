/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside cdev: a view of a port, the table of offers, the agent's port. */
#ifndef PORT_CDEV_PRIV_H
#define PORT_CDEV_PRIV_H

#include <pthread.h>
#include <sys/stat.h>

#include "../../kmod/viaduct_ioctl.h"
#include "port_emu_priv.h"

#define CDEV_OFFERS_MAX 1024u /* slices offered over one link and not opened yet */

/* Returns how many bits of a mask are set from bit 0 on without a gap, at most PORT_DB_MAX. */
uint32_t cdev_bits(uint64_t mask);

/* ---- a process's view: the agent's own, or a client's --------------------------------------- */

struct cdev_view {
	struct port port;
	int fd; /* port descriptor or client descriptor; the view's own */
	const struct viaduct_status *status;
	uint32_t bits; /* doorbell bits that the view rings and reads */
	_Atomic uint32_t mask;
	_Atomic uint32_t seen[PORT_DB_MAX];
};

static inline struct cdev_view *cdev_view(struct port *p)
{
	return u_container_of(p, struct cdev_view, port);
}

/*
 * Maps the status page and sets ops, interrupts and limits, but not scratchpads and window; v->fd and v->bits
 * are set, the rest is 0.  To the view no bit is rung yet.  0 or -errno; -EPROTONOSUPPORT: a module of another
 * version.
 */
int cdev_view_init(struct cdev_view *v, const struct port_ops *ops, struct port_irq *irq,
		   const char *name, uint32_t db_bits);
/* Unmaps the status page; v->fd stays open. */
void cdev_view_fini(struct cdev_view *v);
/* Writes the view text of a client that may ring these bits.  -ENOSPC: `size` is too small. */
int cdev_view_text(const struct cdev_view *v, uint32_t bits, char *text, size_t size);
/*
 * Makes a client's view from one segment of view text and its one descriptor, which stays the caller's.  0 or
 * -errno; -EINVAL: they are no view of this kind.
 */
int cdev_attach(const char *text, const int *fds, unsigned int nfds, struct port_irq *irq,
		struct port **out);

/* Operations of port.h that the agent's ports and the clients' views share. */
int cdev_map(struct port *p, int fd, size_t len, enum port_dir dir, struct port_map *out);
void cdev_unmap(struct port *p, struct port_map *map);
void cdev_flush(struct port *p);
void cdev_ring(struct port *p, uint32_t bits);
uint32_t cdev_db_read(struct port *p);
void cdev_db_clear(struct port *p, uint32_t bits);
void cdev_db_set_mask(struct port *p, uint32_t bits);
void cdev_db_clear_mask(struct port *p, uint32_t bits);
/*
 * Returns the state of the link as the module has it, VIADUCT_LINK_*, and its generation; generation_out is not
 * NULL.
 */
uint32_t cdev_view_link(const struct cdev_view *v, uint32_t *generation_out);

/* ---- the table of offers --------------------------------------------------------------------- */

#define CDEV_TABLE_MAGIC 0x32445643u /* "CVD2" */
#define CDEV_ENDS_MAX 256u	     /* ends that were asked for and not answered yet */

/*
 * At the beginning of window 0 of each host; the neighbour's agent writes all of it.  An id is the
 * number of an offer in its upper 22 bits, and its slot in the lower 10.
 */
struct cdev_table {
	_Atomic uint32_t magic;
	_Atomic uint32_t hello; /* the writer's nonce of this generation of the link */
	_Atomic uint32_t ack;	/* the reader's nonce, as the writer has read it */
	_Atomic uint32_t ends;	/* slices of the writer's that the reader is to end, so far */
	_Atomic uint32_t ended; /* how many of the reader's slices the writer has ended */
	uint32_t pad[11];
	/* ids of the reader's offers that the writer opened */
	_Atomic uint32_t opened[CDEV_OFFERS_MAX];
	struct {
		_Atomic uint32_t id; /* written after the rest; 0: nothing is offered */
		_Atomic uint32_t window;
		_Atomic uint64_t offset;
		_Atomic uint64_t len;
		uint64_t pad;
	} offer[CDEV_OFFERS_MAX];
	_Atomic uint32_t end[CDEV_ENDS_MAX]; /* the ids of `ends`, a fifo */
};
static_assert(sizeof(struct cdev_table) == 64 + CDEV_OFFERS_MAX * 36 + CDEV_ENDS_MAX * 4,
	      "cdev_table");

struct cdev_tables {
	struct port *port;
	int slice_fd;	     /* of this host's table; -1: not made yet */
	struct port_map in;  /* this host's, */
	struct port_map out; /* and the neighbour's */
	uint32_t nonce;
	_Atomic uint32_t peer_nonce;
	uint32_t count;			 /* offers made */
	uint32_t mine[CDEV_OFFERS_MAX];	 /* ids of offers that stand, by slot */
	uint32_t taken[CDEV_OFFERS_MAX]; /* ids of the neighbour's offers that were opened */
};

struct cdev_place {
	uint32_t window;
	uint64_t offset, len;
};

/* Begins without tables: cdev_tables_begin() maps them, by the maps of the port. */
void cdev_tables_init(struct cdev_tables *t, struct port *p);

/* Unmaps both tables, and gives back the slice of this host's. */
void cdev_tables_fini(struct cdev_tables *t);

/*
 * Begins a new generation of the link, with a new nonce: maps both tables and empties this host's;
 * cdev_tables_greet() is next.  0; -EAGAIN: the place of the table is not free yet; -errno.
 */
int cdev_tables_begin(struct cdev_tables *t, int port_fd);
/* The link is down: unmaps the neighbour's table. */
void cdev_tables_end(struct cdev_tables *t);
/*
 * Says hello and answers the neighbour's hello.  True when both hosts did; until then it is called again and
 * again.
 */
bool cdev_tables_greet(struct cdev_tables *t);
/* Is the neighbour still in the generation in which cdev_tables_greet() was true? */
bool cdev_tables_stand(const struct cdev_tables *t);

/* Enters an offer; both tables are mapped.  0 and the id; or -ENOBUFS: too many were not opened yet. */
int cdev_tables_offer(struct cdev_tables *t, const struct cdev_place *place, uint32_t *id_out);
/* Takes an offer back; ignored if it does not stand any more. */
void cdev_tables_withdraw(struct cdev_tables *t, uint32_t id);
/* Looks up an offer of the neighbour.  0; or -ENOENT, also if it was opened already. */
int cdev_tables_find(struct cdev_tables *t, uint32_t id, struct cdev_place *out);
/* Uses an offer of the neighbour up, which cdev_tables_find() gave, and tells it so. */
void cdev_tables_take(struct cdev_tables *t, uint32_t id);

/*
 * Enters number n of the slices that the neighbour is to end; it sees them when
 * cdev_tables_end_tell() has told it the count.
 */
void cdev_tables_end_ask(struct cdev_tables *t, uint32_t n, uint32_t id);

/* Tells the neighbour how many slices it is to end so far, those that were entered last included. */
void cdev_tables_end_tell(struct cdev_tables *t, uint32_t count);
/* Returns how many slices the neighbour says that it has ended. */
uint32_t cdev_tables_ended(const struct cdev_tables *t);
/* Return how many slices of the neighbour this host is to end, and the id of number n. */
uint32_t cdev_tables_end_wanted(const struct cdev_tables *t);
uint32_t cdev_tables_end_id(const struct cdev_tables *t, uint32_t n);
/* Tells the neighbour that this host has ended so many of its slices. */
void cdev_tables_end_answer(struct cdev_tables *t, uint32_t count);

/* ---- slices ---------------------------------------------------------------------------------- */

struct cdev_slice {
	struct cdev_slice *next;
	uint32_t id;
	int fd; /* keeps the pages */
	uint64_t len;
	uint32_t window; /* own slices: its place in the windows.  Several entries can belong to one slice */
	uint64_t offset;
	bool counted; /* own slices: takes room of the window */
	bool ends;    /* own slices: no process uses it any more */
	bool offered; /* own slices: the neighbour knows it, or may */
	/*
	 * Own slices that lead to other memory of this host: the file of that memory.  inode 0:
	 * memory of the window itself.
	 */
	dev_t device;
	ino_t inode;
};

/* Makes an entry with a duplicate of the descriptor; NULL and errno on failure. */
struct cdev_slice *cdev_slice_new(int fd, uint64_t len);
/* Closes the entry's descriptor, and frees it. */
void cdev_slice_delete(struct cdev_slice *s);
/* A list is empty when it is NULL. */
void cdev_list_add(struct cdev_slice **list, struct cdev_slice *s);

/* Returns the entry with that id, or NULL. */
struct cdev_slice *cdev_list_find(struct cdev_slice *list, uint32_t id);
/* Returns a slice that leads to this memory, or NULL. */
struct cdev_slice *cdev_list_adopted(struct cdev_slice *list, const struct stat *memory);
/* Takes an entry off the list that it is in; it stays the caller's. */
void cdev_list_take(struct cdev_slice **list, struct cdev_slice *s);

/* Deletes all entries, and empties the list. */
void cdev_list_clear(struct cdev_slice **list);

struct cdev_ends {
	struct cdev_slice *leaving; /* own slices that were freed, oldest first */
	uint32_t asked, answered;   /* how many of these, in this generation of the link */
	struct cdev_slice *opened;  /* the neighbour's slices that are open here */
	_Atomic uint32_t served;    /* how many of its requests to end slices were served */
};

/* An own slice that was offered is freed: its pages are kept until the neighbour has answered. */
void cdev_ends_leave(struct cdev_ends *e, struct cdev_slice *s);
/*
 * Asks the neighbour to end slices that were freed, as many as the fifo has room for.  The link is up, and the
 * caller holds the lock.
 */
void cdev_ends_ask(struct cdev_ends *e, struct cdev_tables *t);
/*
 * Ends a slice or a view of a process, given by any of its descriptors: a process that keeps it can
 * no longer use the adapter by it.
 */
void cdev_end(int port_fd, int fd);
/*
 * While the link is down nobody answers, perhaps for long: the places of slices that leave stay
 * taken, but memory of programs is given back, unless it has another offer.  For one slice, and for
 * all of them.
 */
void cdev_slice_disown(const struct cdev_slice *s, struct cdev_slice *own, int port_fd);
void cdev_ends_disown(const struct cdev_ends *e, struct cdev_slice *own, int port_fd);
/* Does the neighbour want slices to be ended?  Any thread may call it. */
bool cdev_ends_wanted(const struct cdev_ends *e, const struct cdev_tables *t);
/*
 * Ends the slices that the neighbour wants to be ended, and tells it how many.  The link is up, and the caller
 * holds the lock.
 */
void cdev_ends_serve(struct cdev_ends *e, struct cdev_tables *t, int port_fd);
/* Before this host greets: ends all slices of the neighbour from the last generation. */
void cdev_ends_begin(struct cdev_ends *e, int port_fd);
void cdev_ends_fini(struct cdev_ends *e);

/* ---- the agent's port ------------------------------------------------------------------------ */

enum cdev_phase { CDEV_DOWN, CDEV_GREETS, CDEV_UP };

struct cdev_port {
	struct cdev_view view;
	uint32_t agent_bits;
	uint64_t window_most;
	/* Loaded by any thread, changed under the lock, as the rest is. */
	_Atomic bool up;
	_Atomic uint32_t generation;
	_Atomic uint32_t life; /* the module's generation of the link */

	pthread_mutex_t lock;
	bool enabled, gone, told;
	enum cdev_phase phase;
	uint32_t changes;
	struct cdev_tables tables;
	struct cdev_slice *own;
	struct cdev_ends ends;
	uint64_t window_used;
	uint32_t memory_id; /* the last id given to memory that is not offered */
	bool timed;
	int client_fd; /* the descriptor of the view exported last */
	int epoll_fd, event_fd, timer_fd;
};

/*
 * Deletes an own slice that is in no list any more.  If it was the last entry, and no process uses
 * the slice any more, this takes its pages from all maps.
 */
void cdev_own_delete(struct cdev_port *c, struct cdev_slice *s);
/*
 * Deletes the own slices that the neighbour says that it has ended; ignores a count that is false.  Caller
 * holds the lock.
 */
void cdev_ends_answered(struct cdev_port *c);
/*
 * The neighbour has greeted, so it has ended all slices of the last generation: deletes those, and begins to
 * count both sides' requests by the nonces.
 */
void cdev_ends_begun(struct cdev_port *c);

/*
 * While the link is up: asks the neighbour to end slices, answers its requests, and takes its
 * answers.  Caller holds the lock, here and in the next function.
 */
void cdev_offers_step(struct cdev_port *c);
/*
 * Makes event_fd readable every few milliseconds, so that port_service() is called, or ends that.
 */
void cdev_timer_set(struct cdev_port *c, bool on);

/*
 * memory_alloc, slice_alloc, slice_share, slice_free, slice_end and peer_slice_open of the agent's port; they take
 * the lock.
 */
int cdev_offer_memory(struct port *p, size_t len, struct port_slice *out);
int cdev_offer_alloc(struct port *p, size_t len, struct port_slice *out);
int cdev_offer_share(struct port *p, int fd, size_t len, uint32_t *id_out);
void cdev_offer_free(struct port *p, uint32_t id);
void cdev_offer_end(struct port *p, uint32_t id);
int cdev_offer_open(struct port *p, uint32_t id, size_t len, int *fd_out);

static inline struct cdev_port *cdev_port(struct port *p)
{
	return u_container_of(cdev_view(p), struct cdev_port, view);
}

#endif
