/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside cdev: a view of a port, the table of offers, the agent's port. */
#ifndef PORT_CDEV_PRIV_H
#define PORT_CDEV_PRIV_H

#include <pthread.h>
#include <sys/stat.h>

#include "../../kmod/viaduct_ioctl.h"
#include "port_emu_priv.h"

#define CDEV_OFFERS_MAX 1024u /* slices offered over one link and not opened yet */

/* The bits of a mask from 0 on without a gap, at most PORT_DB_MAX: adapters have no others. */
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

/* Maps the status page; v->fd and v->bits are set.  0 or -errno. */
int cdev_view_init(struct cdev_view *v, const struct port_ops *ops, struct port_irq *irq,
		   const char *name, uint32_t db_bits);
void cdev_view_fini(struct cdev_view *v);
int cdev_view_text(const struct cdev_view *v, uint32_t bits, char *text, size_t size);
/* A client's view from one segment of view text.  The descriptors stay the caller's. */
int cdev_attach(const char *text, const int *fds, unsigned int nfds, struct port_irq *irq,
		struct port **out);

/* Operations that the agent's ports and the clients' views share. */
int cdev_map(struct port *p, int fd, size_t len, enum port_dir dir, struct port_map *out);
void cdev_unmap(struct port *p, struct port_map *map);
void cdev_flush(struct port *p);
void cdev_ring(struct port *p, uint32_t bits);
uint32_t cdev_db_read(struct port *p);
void cdev_db_clear(struct port *p, uint32_t bits);
void cdev_db_set_mask(struct port *p, uint32_t bits);
void cdev_db_clear_mask(struct port *p, uint32_t bits);
/* As the module says: VIADUCT_LINK_*. */
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
	_Atomic uint32_t ack;	/* the reader's, as the writer has read it */
	_Atomic uint32_t ends;	/* slices of the writer's that the reader is to end, so far */
	_Atomic uint32_t ended; /* of the reader's, how many the writer has ended */
	uint32_t pad[11];
	_Atomic uint32_t opened[CDEV_OFFERS_MAX]; /* ids of the reader's that the writer opened */
	struct {
		_Atomic uint32_t id; /* written behind the rest; 0: nothing is offered */
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
	uint32_t taken[CDEV_OFFERS_MAX]; /* ids of the neighbour's that were opened */
};

struct cdev_place {
	uint32_t window;
	uint64_t offset, len;
};

void cdev_tables_init(struct cdev_tables *t, struct port *p);
void cdev_tables_fini(struct cdev_tables *t);

/* A new generation of the link: both tables are mapped, and this host's is empty.  0, -EAGAIN, -errno. */
int cdev_tables_begin(struct cdev_tables *t, int port_fd);
/* The link is down: the neighbour's table is not there any more. */
void cdev_tables_end(struct cdev_tables *t);
/* Says hello and answers the neighbour's.  True when both did. */
bool cdev_tables_greet(struct cdev_tables *t);
/* Does the neighbour still mean the generation in which cdev_tables_greet() was true? */
bool cdev_tables_stand(const struct cdev_tables *t);

/* 0 and the id, or -ENOBUFS. */
int cdev_tables_offer(struct cdev_tables *t, const struct cdev_place *place, uint32_t *id_out);
void cdev_tables_withdraw(struct cdev_tables *t, uint32_t id);
/* 0, or -ENOENT. */
int cdev_tables_find(struct cdev_tables *t, uint32_t id, struct cdev_place *out);
void cdev_tables_take(struct cdev_tables *t, uint32_t id);

/* Slice number n that the neighbour is to end; it sees what was told. */
void cdev_tables_end_ask(struct cdev_tables *t, uint32_t n, uint32_t id);
void cdev_tables_end_tell(struct cdev_tables *t, uint32_t count);
/* How many it says that it has ended. */
uint32_t cdev_tables_ended(const struct cdev_tables *t);
/* The same of its slices, which this host is to end. */
uint32_t cdev_tables_end_wanted(const struct cdev_tables *t);
uint32_t cdev_tables_end_id(const struct cdev_tables *t, uint32_t n);
void cdev_tables_end_answer(struct cdev_tables *t, uint32_t count);

/* ---- slices ---------------------------------------------------------------------------------- */

struct cdev_slice {
	struct cdev_slice *next;
	uint32_t id;
	int fd; /* keeps the pages */
	uint64_t len;
	uint32_t window; /* own slices: where it is.  Several entries can be of one slice */
	uint64_t offset;
	bool counted; /* own slices: takes part of the window */
	bool ends;    /* own slices: processes have let go of it */
	bool offered; /* own slices: the neighbour knows it, or may */
	/* Own slices that lead to other memory of this host: of which file.  inode 0: the window's own. */
	dev_t device;
	ino_t inode;
};

/* With a descriptor of its own; NULL and errno. */
struct cdev_slice *cdev_slice_new(int fd, uint64_t len);
void cdev_slice_delete(struct cdev_slice *s);
/* A list is empty when it is NULL. */
void cdev_list_add(struct cdev_slice **list, struct cdev_slice *s);
struct cdev_slice *cdev_list_find(struct cdev_slice *list, uint32_t id);
/* One that leads to this memory, or NULL. */
struct cdev_slice *cdev_list_adopted(struct cdev_slice *list, const struct stat *memory);
void cdev_list_take(struct cdev_slice **list, struct cdev_slice *s);
void cdev_list_clear(struct cdev_slice **list);

struct cdev_ends {
	struct cdev_slice *leaving; /* own ones that were freed, oldest first */
	uint32_t asked, answered;   /* of these, in this generation of the link */
	struct cdev_slice *opened;  /* the neighbour's */
	_Atomic uint32_t served;    /* of what it asks for */
};

/* An own slice that was offered is freed: its pages are kept until the neighbour has answered. */
void cdev_ends_leave(struct cdev_ends *e, struct cdev_slice *s);
void cdev_ends_ask(struct cdev_ends *e, struct cdev_tables *t);
/* A slice or a view of a process, by any of its descriptors: whoever keeps it has nothing of the adapter any more. */
void cdev_end(int port_fd, int fd);
/*
 * While the link is down nobody answers, perhaps for long: the places of slices that leave stay taken, but memory of
 * programs is given back, unless another offer of it stands.  Of one of them, and of all.
 */
void cdev_slice_disown(const struct cdev_slice *s, struct cdev_slice *own, int port_fd);
void cdev_ends_disown(const struct cdev_ends *e, struct cdev_slice *own, int port_fd);
/* Does the neighbour ask for something?  Any thread may call it. */
bool cdev_ends_wanted(const struct cdev_ends *e, const struct cdev_tables *t);
/* Ends that. */
void cdev_ends_serve(struct cdev_ends *e, struct cdev_tables *t, int port_fd);
/* Before this host greets: the neighbour's slices of the last generation have ended. */
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
	uint32_t memory_id; /* given last to memory that is not offered */
	bool timed;
	int client_fd; /* the last that was exported */
	int epoll_fd, event_fd, timer_fd;
};

/*
 * Deletes an own slice that is in no list any more.  If it was the last entry, and processes have let go of the slice,
 * none of them has its pages any more.
 */
void cdev_own_delete(struct cdev_port *c, struct cdev_slice *s);
/* Own slices that the neighbour has ended are deleted. */
void cdev_ends_answered(struct cdev_port *c);
/* The neighbour has greeted, and so ended all of the last generation. */
void cdev_ends_begun(struct cdev_port *c);

/* While the link is up.  Asks, answers, and takes answers.  Caller holds the lock, as of the next. */
void cdev_offers_step(struct cdev_port *c);
/* Has service called every few milliseconds, or not. */
void cdev_timer_set(struct cdev_port *c, bool on);

/* Operations on slices of the agent's port; they take the lock. */
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
